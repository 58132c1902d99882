"""Cohorts called apart against their joint call: heterozygosity, F_ST, kinship and axes.

    python tests/bench/bench_merging.py [--seeds 5] [--samples 60] [--length 8e6] [--quick]

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
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import commandline
import numpy as np
from called_apart import NAMES, STRETCH, Difference, Numbers, Placed, Scene, compare, measure, place
from timing import print_table

from popdesic.cohort.absent import Absent


def within(scene: Scene, joint: Placed, founders: tuple[str, ...]) -> Placed:
    """The joint call at the positions that every founder's mask covers; others as the masks say."""
    stretch = (joint.positions - 1) // STRETCH
    kept = np.logical_and.reduce([scene.masks[name][stretch] for name in founders])
    genotypes = joint.genotypes[:, kept].copy()
    for name in NAMES:
        hidden = ~scene.masks[name][stretch[kept]]
        genotypes[np.ix_(joint.population == name, hidden)] = -1
    return Placed(genotypes, joint.population, joint.positions[kept])


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


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=60, help="samples of each population")
    parser.add_argument("--length", type=float, default=8e6, help="bases")
    parser.add_argument("--covered", type=float, default=0.85, help="share of a mask")
    options = commandline.parse(parser, seeds=1, samples=12, length=4e5)
    bcftools = commandline.find_peer("bcftools")
    found: dict[str, list[Difference]] = {}
    for seed in range(1, options.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            scene = Scene(Path(folder), seed, options.samples, int(options.length), options.covered)
            for name, numbers, truth in ways(scene, bcftools):
                found.setdefault(name, []).append(compare(numbers, truth))
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


if __name__ == "__main__":
    main()
