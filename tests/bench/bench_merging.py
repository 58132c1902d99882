"""Cohorts called apart against their joint call: heterozygosity, F_ST, kinship and axes.

    python tests/bench/bench_merging.py [--seeds 5] [--samples 60] [--length 8e6] [--quick]
    python tests/bench/bench_merging.py --real

Three populations (msprime), one cohort each. Their files list variant sites alone. "masked" files
list those within a mask of the cohort's own, which covers `--covered` of the genome. All ways keep
the filters of a study (call rate 0.95, MAF 0.01). "shared sites" is `absent: missing`, what a study
did with such files before it stopped; "reference" and "mask" are the ways of the cohort sheet.
`bcftools merge -0` takes every absent genotype as reference. As newcomers, B and C are placed on
the panel of A.

Columns: panel sites (mean over seeds); the differences from the joint call that are largest over
seeds, populations and pairs, in percent, with their sign; mean absolute difference of KING kinship
over pairs of samples by the mean absolute kinship; Procrustes distance of the first two components.
Of masked files, the joint call is that of the positions that every founder's mask covers, with
newcomers' genotypes outside their masks hidden. What masks hide changes each number by chance: the
row "joint, masked" compares it with the whole joint call.

The second table tells chance from bias: the mean over seeds of the shift from the whole joint call
(of heterozygosity over populations, F_ST over pairs, kinship over pairs of samples), with its
standard error. "joint, other regions" is the joint call that loses other regions of the same size,
`--draws` times for each seed.

The third table shows which files stop because they list variant sites alone or lack sites by
frequency (`absent.refuse_lack`), among those whose sites were lost otherwise, for every ordered
pair of populations. The last one
counts A/T and C/G sites that `match.orient` tells, for the same pairs. --real makes the third table
alone, of chromosome 22 of eight real populations (kg1_chr22_564 in POPDESIC_SHARED).
"""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from scenes.called_apart import (
    NAMES,
    STRETCH,
    Difference,
    Numbers,
    Placed,
    Scene,
    compare,
    draw_masks,
    measure,
    place,
)
from timing import print_table

from popdesic.cohort.absent import (
    MAX_REFERENCE_ONLY,
    Absent,
    Lack,
    has_rare,
    measure_lack,
    refuse_lack,
)
from popdesic.cohort.fixed_sites import count_genotypes
from popdesic.cohort.match import match, orient
from popdesic.core.errors import UserError


def within(scene: Scene, joint: Placed, founders: tuple[str, ...]) -> Placed:
    """The joint call at the positions that every founder's mask covers; others as the masks say."""
    stretch = (joint.positions - 1) // STRETCH
    kept = np.logical_and.reduce([scene.masks[name][stretch] for name in founders])
    genotypes = joint.genotypes[:, kept].copy()
    for name in NAMES:
        hidden = ~scene.masks[name][stretch[kept]]
        genotypes[np.ix_(joint.population == name, hidden)] = -1
    return Placed(genotypes, joint.population, joint.positions[kept])


def other_regions(scene: Scene, joint: Placed, draws: int, covered: float) -> Iterator[Placed]:
    """The joint call within other masks of the same share."""
    masks = scene.masks
    for draw in range(draws):
        scene.masks = draw_masks(scene.truth, 1_000 + draw, covered)
        yield within(scene, joint, NAMES)
    scene.masks = masks


def shifts(found: Numbers, truth: Numbers) -> list[float]:
    """Mean relative shifts of heterozygosity, F_ST and kinship, with their signs."""
    upper = np.triu_indices(len(truth.kinship), 1)
    kinship = (found.kinship - truth.kinship)[upper]
    return [
        float((found.heterozygosity / truth.heterozygosity - 1).mean()),
        float((found.f_st / truth.f_st - 1).mean()),
        float(np.nanmean(kinship) / np.nanmean(np.abs(truth.kinship[upper]))),
    ]


@dataclass(frozen=True)
class RealSites:
    """Genotypes int8 (n_sites, n_samples), -1 missing, and positions."""

    genotypes: np.ndarray
    pos: np.ndarray


@dataclass(frozen=True)
class RealScene:
    """What `recognised` needs of real data: sites, and the samples of each population."""

    truth: RealSites
    numbers: dict[str, np.ndarray]


def read_real(folder: Path) -> RealScene:
    """The called sites of the only VCF of a data set that vary and have two alleles."""
    from popdesic.cohort.ingest import ingest_cohort
    from popdesic.io.bed import open_bed, read_bim, read_fam
    from popdesic.io.genotypes import unpack_bed

    (vcf,) = folder.glob("*.vcf.gz")
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch) / "raw"
        ingest_cohort(vcf, raw)
        names, sites = read_fam(raw)["sample"], read_bim(raw)
        genotypes = unpack_bed(np.ascontiguousarray(open_bed(raw)), len(names))
    kept = (genotypes >= 0).all(axis=1) & (genotypes > 0).any(axis=1)
    kept &= ~sites.pos.duplicated(keep=False).to_numpy()
    sheet = pd.read_csv(folder / "samples.tsv", sep="\t", dtype=str).set_index("sample_id")
    labels = sheet.population.reindex(names).to_numpy()
    numbers = {name: np.flatnonzero(labels == name) for name in sorted(set(labels))}
    return RealScene(RealSites(genotypes[kept], sites.pos.to_numpy()[kept]), numbers)


def lists(scene: Scene | RealScene, own: str, other: str, seed: int) -> dict[str, np.ndarray]:
    """Which sites the file of a population lists, by the way in which it was made."""
    rng = np.random.default_rng(seed)
    genotypes = scene.truth.genotypes
    mine, third = (genotypes[:, scene.numbers[name]] for name in (own, other))
    varies, n = (mine > 0).any(axis=1), len(genotypes)
    rate, elsewhere = (
        np.minimum(p, 1 - p) for p in (mine.mean(axis=1) / 2, third.mean(axis=1) / 2)
    )
    stretch = (scene.truth.pos - 1) // STRETCH
    return {
        "5 % lost at random": rng.random(n) < 0.95,
        "50 % lost at random": rng.random(n) < 0.5,
        "regions of 20 kb lost": (rng.random(stretch.max() // 50 + 1) < 0.7)[stretch // 50],
        "array, 40 % of the sites common in another population": (elsewhere > 0.05)
        & (rng.random(n) < 0.4),
        "array, 40 % of the sites common in its own": (rate > 0.05) & (rng.random(n) < 0.4),
        "variants": varies,
        "variants and 20 % of the others": varies | (rng.random(n) < 0.2),
        "variants of a call with another population": varies | (third > 0).any(axis=1),
        "MAF of 1 % or more": rate >= 0.01,
        "variants in regions of 20 kb": varies
        & (rng.random(stretch.max() // 50 + 1) < 0.3)[stretch // 50],
        "variants, 20 % of them at random": varies & (rng.random(n) < 0.2),
        "MAF of 1 % or more, in regions of 20 kb": (rate >= 0.01)
        & (rng.random(stretch.max() // 50 + 1) < 0.3)[stretch // 50],
    }


def recognised(scene: Scene | RealScene, seed: int) -> Iterator[tuple[str, Lack, float, bool]]:
    """What each file lacks of another population's variants.

    With its share of REF-only sites, and whether it stops.
    """
    genotypes = scene.truth.genotypes
    for own, known in itertools.permutations(scene.numbers, 2):
        other = next(name for name in scene.numbers if name not in (own, known))
        counts = genotypes[:, scene.numbers[known]]
        varies = (counts > 0).any(axis=1)
        sites = pd.DataFrame({"chrom": "1", "pos": scene.truth.pos})
        for name, listed in lists(scene, own, other, seed).items():
            rate = counts[varies].mean(axis=1) / 2
            lack = measure_lack(sites[listed], sites[varies], listed[varies], rate)
            mine = genotypes[np.ix_(listed, scene.numbers[own])]
            same = (mine == 0).all(axis=1).mean()
            only = same <= MAX_REFERENCE_ONLY and has_rare(count_genotypes(mine))
            yield name, lack, float(same), refused(lack, variants_only=only)


def refused(lack: Lack, *, variants_only: bool) -> bool:
    """Whether `refuse_lack` stops a file."""
    try:
        refuse_lack("own", lack, "others", 0, variants_only=variants_only)
    except UserError:
        return True
    return False


def oriented(scene: Scene, seed: int) -> np.ndarray:
    """A/T and C/G sites of newcomers on both strands: in doubt, told by frequency, told wrongly."""
    truth, total = scene.truth, np.zeros(3, np.int64)
    turned = np.random.default_rng(seed).random(len(truth.pos)) < 0.5
    sites = pd.DataFrame({"chrom": "1", "pos": truth.pos, "ref": truth.ref, "alt": truth.alt})
    file = sites.copy()
    for name in ("ref", "alt"):
        other = sites[name].map(dict(zip("ACGT", "TGCA", strict=True)))
        file[name] = sites[name].where(~turned, other)
    for own, known in itertools.permutations(NAMES, 2):
        panel, mine = (
            truth.genotypes[:, scene.numbers[name]].mean(axis=1) / 2 for name in (known, own)
        )
        on_panel = np.flatnonzero((panel >= 0.01) & (panel <= 0.99))
        found = match(file, sites.iloc[on_panel].reset_index(drop=True))
        doubt = int((found.candidate >= 0).sum())
        n_called = np.full(len(on_panel), len(scene.numbers[own]))
        row = np.maximum(found.row, found.candidate)
        found = orient(found, mine[row], n_called, panel[on_panel])
        # The counts of ALT stand as they are on either strand: none is to be turned.
        told = found.oriented
        total += doubt, int(told.sum()), int((told & found.swapped).sum())
    return total


def merged_by_bcftools(scene: Scene, kind: str, bcftools: str) -> Placed:
    """`bcftools merge -0` of the cohorts' files, as one cohort."""
    files = []
    for name in NAMES:
        packed = scene.folder / f"{kind}.{name}.vcf.gz"
        subprocess.run([bcftools, "view", "-Oz", "-o", packed, scene.file(kind, name)], check=True)
        subprocess.run([bcftools, "index", "-f", packed], check=True)
        files.append(packed)
    out = scene.folder / f"{kind}.merged.vcf"
    # The filters of a panel: biallelic sites of MAF 0.01 by bcftools' own frequencies.
    merge = [bcftools, "merge", "-0", "-m", "all", "-Ou", *files]
    first = subprocess.Popen(merge, stdout=subprocess.PIPE)
    view = [bcftools, "view", "-m2", "-M2", "-q", "0.01:minor", "-Ov", "-o", out]
    subprocess.run(view, stdin=first.stdout, check=True)
    assert first.wait() == 0
    folder = scene.folder / f"bcftools.{kind}"
    said = {"all": Absent("missing")}
    return place(folder, {"all": out}, scene.population, said, ["all"])


def ways(scene: Scene, bcftools: str | None) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Name, what is found, and what the joint call gives."""
    for founders, title in ((NAMES, "founders"), (("A",), "newcomers B, C")):
        placed = scene.joint(founders)
        joint, hidden = measure(placed), measure(within(scene, placed, founders))
        runs = [
            ("variants, shared sites", "variants", "missing", joint),
            ("variants, reference", "variants", "reference", joint),
            ("masked, shared sites", "masked", "missing", joint),
            ("masked, mask", "masked", "mask", hidden),
        ]
        for name, kind, rule, truth in runs:
            yield f"{title}: {name}", measure(scene.run(kind, rule, founders)), truth
        yield f"{title}: joint, masked", hidden, joint
        if bcftools and founders == NAMES:
            for kind, truth in (("variants", joint), ("masked", hidden)):
                found = measure(merged_by_bcftools(scene, kind, bcftools))
                yield f"{title}: {kind}, bcftools merge -0", found, truth


def largest(values: list[np.ndarray]) -> str:
    """The value that is farthest from 0, in percent."""
    every = np.concatenate(values)
    return f"{100 * every[np.abs(every).argmax()]:+.3f}"


def with_error(values: np.ndarray) -> str:
    """Mean and standard error over seeds, in percent."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{100 * values.mean():+.2f} +- {100 * error:.2f}"


def span(values: list[float]) -> str:
    """Smallest and largest value, in percent."""
    return f"{100 * min(values):.1f} to {100 * max(values):.1f}"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=60, help="samples of each population")
    parser.add_argument("--length", type=float, default=8e6, help="bases")
    parser.add_argument("--draws", type=int, default=10, help="other regions for each seed")
    parser.add_argument("--covered", type=float, default=0.85, help="share of a mask")
    parser.add_argument("--real", action="store_true", help="real populations alone")
    options = commandline.parse(parser, seeds=1, samples=12, length=4e5, draws=2)
    lacks: dict[str, list[list]] = {}
    if options.real:
        shared = Path(os.environ.get("POPDESIC_SHARED", commandline.ROOT.parent / "shared"))
        scene = read_real(shared / "data/kg1_chr22_564")
        for name, *case in recognised(scene, 1):
            lacks.setdefault(name, []).append(case)
        print_lacks(lacks, f", {len(scene.truth.pos)} sites of chromosome 22")
        return
    bcftools = commandline.find_peer("bcftools")
    found: dict[str, list[Difference]] = {}
    shifted: dict[str, list[list[float]]] = {}
    strands = np.zeros(3, np.int64)
    for seed in range(1, options.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            scene = Scene(Path(folder), seed, options.samples, int(options.length), options.covered)
            for name, numbers, truth in ways(scene, bcftools):
                found.setdefault(name, []).append(compare(numbers, truth))
                if name == "founders: joint, masked":
                    shifted.setdefault(name, []).append(shifts(numbers, truth))
            placed = scene.joint()
            whole = measure(placed)
            drawn = [
                shifts(measure(one), whole)
                for one in other_regions(scene, placed, options.draws, options.covered)
            ]
            shifted.setdefault("founders: joint, other regions", []).append(np.mean(drawn, axis=0))
            strands += oriented(scene, seed)
            for name, *case in recognised(scene, seed):
                lacks.setdefault(name, []).append(case)
    rows = [
        (
            name,
            round(np.mean([one.sites for one in several])),
            largest([one.heterozygosity for one in several]),
            largest([one.f_st for one in several]),
            f"{100 * max(one.kinship for one in several):.3f}",
            f"{max(one.axes for one in several):.6f}",
        )
        for name, several in found.items()
    ]
    print_table(
        f"Largest differences from the joint call, {options.seeds} seeds, "
        f"3 x {options.samples} samples",
        ("way", "sites", "heterozygosity %", "F_ST %", "kinship %", "PCA"),
        rows,
    )
    print_table(
        f"Mean shift from the whole joint call +- its standard error, {options.seeds} seeds",
        ("way", "heterozygosity %", "F_ST %", "kinship %"),
        [(name, *map(with_error, np.transpose(values))) for name, values in shifted.items()],
    )
    print_lacks(lacks)
    print_table(
        "A/T and C/G sites of newcomers with half of their sites on the other strand",
        ("in doubt", "told by frequency", "told wrongly"),
        [tuple(strands.tolist())],
    )


def print_lacks(lacks: dict[str, list[list]], of: str = "") -> None:
    print_table(
        f"Files that lack sites{of}: which stop",
        ("file", "stop", "lack %", "heterozygosity %", "common listed %", "near %", "REF only %"),
        [
            (
                name,
                f"{sum(stops for _, _, stops in cases)} of {len(cases)}",
                span([lack.lacking / lack.wanted for lack, _, _ in cases]),
                span([lack.bias - 1 for lack, _, _ in cases]),
                span([lack.common_listed for lack, _, _ in cases]),
                span([lack.near_listed for lack, _, _ in cases]),
                span([same for _, same, _ in cases]),
            )
            for name, cases in lacks.items()
        ],
    )


if __name__ == "__main__":
    main()
