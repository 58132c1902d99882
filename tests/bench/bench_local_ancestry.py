"""Local ancestry of drawn people whose tracts are known, with phase by ourselves and the true one.

    python tests/bench/bench_local_ancestry.py [--seeds 11 12 13] [--splits 1050 3500] [--flare JAR]

Draws two sources that separated so many generations ago (F_ST 0.05 and 0.13), and people who
descend from both in halves, since 10 generations, on 15 Mb with a site in 4 kb. True tracts come
from the nodes of the tree sequence at the admixture. A line a scene: F_ST, the share of sites with
the right pair of labels, with phase by `popdesic.phase_genotypes` from the sources and with the
true phase, the lowest share of a sample, the mean error of proportions, and the median number of
generations. Under "unmixed" are people of the first source: the mean proportion that they are given
of it, and the lowest. With `--flare`, the jar of FLARE (github.com/browning-lab/flare): its share
of right sites and the lowest of a sample, from the same sources, the same phase and the true map,
at all sites (`min-mac=1`) and at those that its default keeps (`min-mac=50`).
"""

from __future__ import annotations

import gzip
import subprocess
import tempfile
from pathlib import Path

import commandline
import msprime
import numpy as np
from bench_copying import write_vcf

from popdesic.copying.copying import haplotypes_of
from popdesic.copying.fit import fit_model
from popdesic.copying.local_ancestry import Sources, mix_sample
from popdesic.copying.phasing import phase_alleles
from popdesic.core.random_numbers import lots_of
from popdesic.core.threads import run_tasks

SIZE, ADMIXED, MAF, SITE_BP = 10_000, 10, 0.01, 4_000
THREADS = 2
FLARE_FILES = {
    "ref": "ref.vcf.gz",
    "gt": "gt.vcf.gz",
    "ref-panel": "panel",
    "map": "map",
    "out": "out",
}


def draw(split: int, people: int, targets: int, megabases: float, seed: int):
    """Haplotypes of sources, mixed and unmixed people (n, n_sites), labels of mixed, positions."""
    past = msprime.Demography()
    for name in ("A", "B", "mixed", "past"):
        past.add_population(name=name, initial_size=SIZE)
    past.add_admixture(ADMIXED, derived="mixed", ancestral=["A", "B"], proportions=[0.5, 0.5])
    past.add_census(ADMIXED + 0.01)
    past.add_population_split(split, derived=["A", "B"], ancestral="past")
    drawn = msprime.sim_ancestry(
        {"A": people + targets, "B": people, "mixed": targets},
        demography=past,
        sequence_length=megabases * 1e6,
        recombination_rate=1e-8,
        random_seed=seed,
    )
    census = np.flatnonzero(drawn.tables.nodes.flags & msprime.NODE_IS_CEN_EVENT)
    mixed = drawn.samples(population=2)
    edges = drawn.tables.link_ancestors(mixed, census)
    drawn = msprime.sim_mutations(
        drawn, 1.25e-8, random_seed=seed, model=msprime.BinaryMutationModel()
    )
    alleles = drawn.genotype_matrix().astype(np.int8)
    positions = drawn.tables.sites.position.astype(np.int64)
    a, b = drawn.samples(population=0), drawn.samples(population=1)
    sources = np.concatenate([a[: 2 * people], b])
    share = alleles[:, sources].mean(axis=1)
    rng = np.random.default_rng(seed)
    common = rng.permutation(np.flatnonzero(np.minimum(share, 1 - share) >= MAF))
    kept = np.sort(common[np.unique(positions[common] // SITE_BP, return_index=True)[1]])
    alleles, positions = alleles[kept].T, positions[kept]
    truth = np.full((len(mixed), len(positions)), -1)
    for left, right, parent, child in zip(
        edges.left, edges.right, edges.parent, edges.child, strict=True
    ):
        inside = slice(*np.searchsorted(positions, [left, right]))
        truth[np.searchsorted(mixed, child), inside] = drawn.node(int(parent)).population
    return alleles[sources], alleles[mixed], alleles[a[2 * people :]], truth, positions


def f_st(sources: np.ndarray) -> float:
    """F_ST of two sources of equal size (Hudson, as ratio of sums)."""
    n = len(sources) // 2
    a, b = sources[:n].mean(axis=0), sources[n:].mean(axis=0)
    within = (a * (1 - a) + b * (1 - b)) / (n - 1)
    return float(((a - b) ** 2 - within).sum() / (a * (1 - b) + b * (1 - a)).sum())


def by_flare(jar: Path, least: int, rows, targets, positions) -> tuple[np.ndarray, np.ndarray]:
    """The sites that FLARE keeps; how many haplotypes have the second label, (n_targets, kept)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_vcf(folder / "ref.vcf.gz", rows, positions, "r")
        write_vcf(folder / "gt.vcf.gz", targets, positions, "t")
        labels = np.repeat(["A", "B"], len(rows) // 4)
        panel = "".join(f"r{k} {label}\n" for k, label in enumerate(labels))
        (folder / "panel").write_text(panel)
        ends = (positions[0], positions[-1])
        (folder / "map").write_text("".join(f"1 . {at * 1e-6:.6f} {at}\n" for at in ends))
        files = [f"{key}={folder}/{file}" for key, file in FLARE_FILES.items()]
        command = ["java", "-jar", jar, *files, f"nthreads={THREADS}", "seed=1", f"min-mac={least}"]
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        with gzip.open(folder / "out.anc.vcf.gz", "rt") as lines:
            records = [line.split() for line in lines if not line.startswith("#")]
    kept = np.searchsorted(positions, [int(record[1]) for record in records])
    fields = records[0][8].split(":")
    one, two = fields.index("AN1"), fields.index("AN2")
    calls = [[call.split(":") for call in record[9:]] for record in records]
    return kept, np.array([[int(c[one]) + int(c[two]) for c in row] for row in calls]).T


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--splits", type=int, nargs="+", default=[1050, 3500])
    parser.add_argument("--people", type=int, default=100, help="of each source")
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--megabases", type=float, default=15.0)
    parser.add_argument("--flare", type=Path, metavar="JAR")
    options = commandline.parse(parser, seeds=[1], people=10, targets=2, megabases=1)
    print(
        "split  seed   F_ST  right  lowest  right, true phase  error  generations  unmixed lowest"
    )
    for split in options.splits:
        for seed in options.seeds:
            drawn = draw(split, options.people, options.targets, options.megabases, seed)
            rows, mixed, unmixed, truth, positions = drawn
            panel = haplotypes_of(rows, positions * 1e-6)
            ne, mismatch = fit_model(panel, np.arange(len(rows)) // 2, threads=THREADS)
            sources = Sources(panel, np.repeat([0, 1], len(rows) // 2), ne, mismatch)

            def phased(alleles, panel=panel, ne=ne, mismatch=mismatch):
                sites = np.arange(alleles.shape[1])
                genotypes = alleles[0::2] + alleles[1::2]
                how = {"ne": ne, "mismatch": mismatch, "threads": THREADS}
                lots = lots_of(range(len(genotypes)))
                return phase_alleles(panel, sites, genotypes, lots, **how)

            def mix(alleles, sources=sources):
                tasks = [([sources], [both]) for both in alleles]
                return run_tasks(mix_sample, tasks, THREADS)

            pairs = truth.reshape(options.targets, 2, -1).sum(axis=1)
            ours = phased(mixed)
            found, true = mix(ours), mix(mixed.reshape(options.targets, 2, -1))
            right = []
            for several in (found, true):
                called = [
                    np.stack([p[:, 0, 0], p[:, 0, 1] + p[:, 1, 0], p[:, 1, 1]]).argmax(axis=0)
                    for one in several
                    for p in one.pairs
                ]
                right.append((np.array(called) == pairs).mean(axis=1))
            errors = [
                abs(one.proportions[1] - pair.mean() / 2)
                for one, pair in zip(found, pairs, strict=True)
            ]
            pure = np.array([one.proportions[0] for one in mix(phased(unmixed))])
            print(
                f"{split:5}{seed:6}{f_st(rows):7.3f}{right[0].mean():7.3f}{right[0].min():8.3f}"
                f"{right[1].mean():19.3f}{np.mean(errors):7.3f}"
                f"{np.median([one.generations for one in found]):13.1f}"
                f"{pure.mean():9.3f}{pure.min():7.3f}",
                flush=True,
            )
            if not options.flare:
                continue
            for phase, both in (("our phase", ours.reshape(mixed.shape)), ("true phase", mixed)):
                for least in (1, 50):
                    kept, labels = by_flare(options.flare, least, rows, both, positions)
                    right = (labels == pairs[:, kept]).mean(axis=1)
                    print(
                        f"    FLARE, {phase}, min-mac {least} ({len(kept)} sites)"
                        f" {right.mean():.3f}, lowest {right.min():.3f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
