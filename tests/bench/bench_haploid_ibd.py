"""Identity by descent of haploids where the truth is known, beside hmmIBD.

    python tests/bench/bench_haploid_ibd.py [--strangers 60] [--sites 12000] [--contigs 12]
        [--block 15] [--max-generations 10] [--iterations 100] [--seeds 1 2] [--hmmibd PATH]
        [--coalescent] [--quick]

Contigs of 100 cM; 0.1 % of all alleles are wrong, 2 % are missing (`tests/scenes/haploids.py`):
strangers, two clones of one, four progeny of two, and two progeny of one of these and a stranger.
ALT frequencies are those of the population. Sites within 5 bp of the one before are left out.
--block: sites of a block that has eight haplotypes alone, so that its sites predict each other. One
thread.

Rows, by kind of pair: pairs; true and found share of IBD; distance of both, mean and largest; share
of sites whose state is right on the most likely path; highest LOD. Then seconds for all pairs.

--coalescent: strangers of one population by msprime (three contigs of 50 cM), and the sites that a
study takes (`ibd.haploid_study.unlinked_sites`). One more line: what strangers share in segments of
at least MIN_CM, by their genealogies (from SHORTEST on) and as found.

--hmmibd: the program of https://github.com/glipsnort/hmmIBD. It reads the same alleles and
frequencies as text, and prints five decimals. Rows: pairs whose fits took the same iterations; the
largest distance of shares of IBD; segments of it, of ours, and of both with the same ends.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from scenes.haploids import SHORTEST, Haploids, coalescent_haploids, haploids
from timing import print_table

import popdesic
from popdesic.engine.select import cpu_backend
from popdesic.ibd.haploid_study import unlinked_sites

#: Recombination in hmmIBD and in the scenes.
CM_A_BP = 7.4e-5
#: Shortest segment of strangers that counts, in cM.
MIN_CM = 3.0


def kinds_of(scene: Haploids, pairs: pd.DataFrame, shared: np.ndarray) -> np.ndarray:
    """The kind of each pair."""
    kinds = np.array(scene.kinds, object)
    one, two = kinds[pairs.sample1], kinds[pairs.sample2]
    names = np.where(one == two, one + "s", one + " and " + two)
    return np.where(shared.any(axis=1), np.where(shared.all(axis=1), "clones", names), "strangers")


def judge(scene: Haploids, pairs: pd.DataFrame, segments: pd.DataFrame) -> pd.DataFrame:
    """Of each pair: its kind, true share, distance, share of sites that are right, LOD."""
    one, two = pairs.sample1.to_numpy(), pairs.sample2.to_numpy()
    shared = scene.ancestors[one] == scene.ancestors[two]
    rows = {pair: k for k, pair in enumerate(zip(one.tolist(), two.tolist(), strict=True))}
    found = np.zeros_like(shared)
    for segment in segments.itertuples():
        inside = (scene.contigs == segment.contig) & (scene.positions >= segment.start)
        inside &= scene.positions <= segment.end
        found[rows[segment.sample1, segment.sample2]] |= inside
    true = shared.mean(axis=1)
    return pd.DataFrame(
        {
            "kind": kinds_of(scene, pairs, shared),
            "true": true,
            "found": pairs.fraction,
            "distance": (pairs.fraction - true).abs(),
            "right": (found == shared).mean(axis=1),
            "LOD": pairs.LOD,
        }
    )


def apart(scene: Haploids) -> Haploids:
    """Sites more than 5 bp behind the one before, as hmmIBD takes them; cM by base pairs."""
    new = np.append(True, scene.contigs[1:] != scene.contigs[:-1])
    kept = new | (np.diff(scene.positions, prepend=0) > 5)
    return scene._replace(
        **{name: getattr(scene, name)[..., kept] for name in ("alleles", "ancestors", "af")},
        **{name: getattr(scene, name)[kept] for name in ("positions", "contigs")},
        cm=scene.positions[kept] * CM_A_BP,
    )


def unlinked(scene: Haploids) -> Haploids:
    """The sites that a study takes."""
    planes = popdesic.pack(np.where(scene.alleles < 0, -1, 2 * scene.alleles).astype(np.int8))
    kept = unlinked_sites(planes, scene.contigs, scene.cm, cpu_backend(1))
    return scene._replace(
        **{name: getattr(scene, name)[..., kept] for name in ("alleles", "ancestors", "af")},
        **{name: getattr(scene, name)[kept] for name in ("positions", "contigs", "cm")},
    )


def beside_trees(shared: np.ndarray, segments: pd.DataFrame, cm: float) -> list[str]:
    """Shares of the genome in long segments of strangers: true, found, distance, found of none."""
    n = len(shared)
    found = np.zeros((n, n))
    for one in segments[(segments.cM >= MIN_CM) & (segments.sample2 < n)].itertuples():
        found[one.sample1, one.sample2] += one.cM / cm
    pairs = np.triu_indices(n, 1)
    true, seen = shared[pairs], found[pairs]
    numbers = true.mean(), seen.mean(), np.abs(true - seen).mean(), seen[true == 0].mean()
    return [str(len(true)), str(int((true == 0).sum())), *(f"{value:.4f}" for value in numbers)]


def peer(program: Path, scene: Haploids, iterations: int, most: float | None) -> tuple:
    """Tables of pairs and segments of hmmIBD, and its seconds."""
    numbers = pd.factorize(scene.contigs)[0] + 1
    places = pd.DataFrame({"chrom": numbers, "pos": scene.positions})
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        alleles = pd.DataFrame(scene.alleles.T).add_prefix("s")
        pd.concat([places, alleles], axis=1).to_csv(base / "in", sep="\t", index=False)
        places.assign(ref=1 - scene.af, alt=scene.af).to_csv(
            base / "af", sep="\t", index=False, header=False
        )
        command = [program, "-i", base / "in", "-f", base / "af", "-o", base / "out"]
        command += ["-m", str(iterations)] + (["-n", str(most)] if most else [])
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        segments = pd.read_csv(base / "out.hmm.txt", sep="\t")
        return pd.read_csv(base / "out.hmm_fract.txt", sep="\t"), segments, seconds


def compare(pairs: pd.DataFrame, segments: pd.DataFrame, theirs: tuple) -> list:
    """The row of a comparison."""
    table, stretches, seconds = theirs
    stretches = stretches[stretches.different == 0]
    ends = set(
        zip(stretches.sample1, stretches.sample2, stretches.start, stretches.end, strict=True)
    )
    own = {
        (f"s{one.sample1}", f"s{one.sample2}", one.start, one.end) for one in segments.itertuples()
    }
    same = (pairs.iterations - table.N_fit_iteration).isin([0, 1])  # it counts from 0 if it settles
    distance = (pairs.fraction - table.fract_sites_IBD).abs().max()
    return [
        *(len(pairs), int(same.sum()), f"{distance:.1e}"),
        *(len(ends), len(own), len(ends & own), f"{seconds:.2f}"),
    ]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--strangers", type=int, default=60)
    parser.add_argument("--sites", type=int, default=12_000)
    parser.add_argument("--contigs", type=int, default=12)
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--max-generations", type=float)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--coalescent", action="store_true")
    parser.add_argument("--hmmibd", type=Path)
    options = commandline.parse(parser, strangers=12, sites=1200, contigs=6, seeds=[1])
    parts, rows, seconds, sizes, trees = [], [], 0.0, [], []
    for seed in options.seeds:
        if options.coalescent:
            scene, shared = coalescent_haploids(seed, options.strangers)
            scene = unlinked(apart(scene))
        else:
            size = options.strangers, options.sites, options.contigs
            scene = apart(haploids(seed, *size, block=options.block))
        given = {"centimorgans": scene.cm, "af": scene.af, "threads": 1}
        given |= {"max_generations": options.max_generations, "iterations": options.iterations}
        sites = scene.positions, scene.contigs
        popdesic.haploid_ibd(scene.alleles[:2], *sites, **given)  # compiled, if it was not
        start = time.perf_counter()
        pairs, segments = popdesic.haploid_ibd(scene.alleles, *sites, **given)
        took = time.perf_counter() - start
        seconds += took
        parts.append(judge(scene, pairs, segments))
        sizes.append(pairs.iterations.mean())
        if options.coalescent:
            trees.append([str(seed), *beside_trees(shared, segments, 150.0)])
        if options.hmmibd:
            theirs = peer(options.hmmibd, scene, options.iterations, options.max_generations)
            rows.append([seed, *compare(pairs, segments, theirs), f"{took:.2f}"])
    table = pd.concat(parts)
    print_table(
        f"{len(options.seeds)} draws of {len(scene.kinds)} samples, {options.sites} sites",
        ["pairs of", "pairs", "true", "found", "mean off", "most off", "sites right", "LOD"],
        [
            [
                *(kind, len(one), f"{one.true.mean():.4f}", f"{one.found.mean():.4f}"),
                *(f"{one.distance.mean():.4f}", f"{one.distance.max():.4f}"),
                *(f"{one.right.mean():.4f}", f"{one.LOD.max():.1f}"),
            ]
            for kind, one in table.groupby("kind")
        ],
    )
    print(
        f"{seconds:.2f} s for {len(table)} pairs, {1e3 * seconds / len(table):.2f} ms a pair; "
        f"{np.mean(sizes):.1f} iterations a pair"
    )
    if trees:
        header = [
            "draw",
            "pairs",
            f"without {SHORTEST} cM",
            "true",
            "found",
            "off",
            "found of none",
        ]
        print_table(f"strangers in segments of at least {MIN_CM:g} cM", header, trees)
    if rows:
        header = ["draw", "pairs", "same iterations", "most off", "its segments", "ours", "both"]
        print_table("beside hmmIBD", [*header, "its s", "our s"], rows)


if __name__ == "__main__":
    main()
