"""Draw whole genomes of populations that have grown: nearly all sites are rare.

Populations have together grown by 1 % a generation for the last 460, from 10 000 people whom they
descend from (msprime, mutation rate 1.25e-8, recombination 1e-8). Regions of several chromosomes
are drawn, each with a history of its own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msprime
import numpy as np

#: Generations of growth, its rate, and people at its end and before.
GENERATIONS, GROWTH, LARGE, SMALL = 460, 0.01, 1_000_000, 10_000
CHROMOSOMES = 20
#: Share of missing genotypes of a study.
MISSING_SHARE = 0.001
#: Calls of two haplotypes without and with the ALT allele, and a missing one.
CALLS = np.frombuffer(b"\t0|0\t0|1\t1|0\t1|1\t./.", np.uint8).reshape(5, 4)


def draw_haplotypes(
    n_samples: int, length: int, seed: int, populations: int = 1
) -> Iterator[tuple[int, np.ndarray]]:
    """Position and alleles, int8 (2 n_samples), of each site of one region, 0 for the ancestral.

    Samples are in order of their populations, which are of equal size but for the last ones.
    """
    history, names = msprime.Demography(), [f"P{k}" for k in range(populations)]
    for name in names:
        history.add_population(name=name, initial_size=LARGE // populations, growth_rate=GROWTH)
    if populations > 1:
        history.add_population(name="before", initial_size=SMALL)
        history.add_population_split(GENERATIONS, derived=names, ancestral="before")
    else:
        history.add_population_parameters_change(GENERATIONS, initial_size=SMALL, growth_rate=0)
    bounds = np.linspace(0, n_samples, populations + 1).astype(int).tolist()
    trees = msprime.sim_ancestry(
        {name: last - first for name, (first, last) in zip(names, pairwise(bounds), strict=True)},
        demography=history,
        sequence_length=length,
        recombination_rate=1e-8,
        random_seed=seed,
    )
    trees = msprime.sim_mutations(
        trees, rate=1.25e-8, model=msprime.BinaryMutationModel(), random_seed=seed + 1
    )
    for variant in trees.variants():
        yield int(variant.site.position) + 1, variant.genotypes


def write_genomes(
    folder: Path,
    n_samples: int,
    length: int,
    n_cohorts: int,
    *,
    device: str,
    min_maf: float | None = None,
    populations: int = 4,
    seed: int = 1,
) -> int:
    """Write a study of bgzipped VCF files, called together; return its number of sites.

    length: base pairs of all chromosomes. Each cohort has people of all populations.
    """
    for name in ("config", "data"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_samples)
    starts = np.linspace(0, n_samples, populations + 1).astype(int)
    population = np.searchsorted(starts, order, side="right") - 1
    columns = np.array_split(order, n_cohorts)
    cohorts = [f"c{k:02d}" for k in range(n_cohorts)]
    names = [[f"s{k:06d}" for k in range(own[0], own[1])] for own in pairwise(
        np.cumsum([0, *map(len, columns)]).tolist())]  # fmt: skip
    packers, n_sites = [], 0
    for cohort, own in zip(cohorts, names, strict=True):
        with open(folder / f"data/{cohort}.vcf.gz", "wb") as file:
            packers.append(subprocess.Popen(["bgzip"], stdin=subprocess.PIPE, stdout=file))
        head = "##fileformat=VCFv4.2\n"
        head += "".join(f"##contig=<ID={k + 1}>\n" for k in range(CHROMOSOMES))
        head += '##FORMAT=<ID=GT,Number=1,Type=String,Description="GT">\n'
        head += "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join(own) + "\n"
        packers[-1].stdin.write(head.encode())
    for k in range(CHROMOSOMES):
        sites = draw_haplotypes(n_samples, length // CHROMOSOMES, seed + 2 * k, populations)
        for position, alleles in sites:
            calls = 2 * alleles[0::2] + alleles[1::2]
            calls[rng.integers(0, n_samples, rng.binomial(n_samples, MISSING_SHARE))] = 4
            for packer, own in zip(packers, columns, strict=True):
                row = f"{k + 1}\t{position}\t.\tA\tC\t.\tPASS\t.\tGT".encode()
                packer.stdin.write(row + CALLS[calls[own]].tobytes() + b"\n")
            n_sites += 1
    for packer in packers:
        packer.stdin.close()
    if any(packer.wait() for packer in packers):
        raise SystemExit("Error: bgzip failed.")
    sheet = ["cohort\tgenotypes\tfounder", *(f"{c}\tdata/{c}.vcf.gz\tyes" for c in cohorts)]
    (folder / "config/cohorts.tsv").write_text("\n".join(sheet) + "\n")
    rows = ["sample\tcohort\tpopulation"]
    labels = iter(population.tolist())
    for cohort, own in zip(cohorts, names, strict=True):
        rows += [f"{name}\t{cohort}\tP{next(labels)}" for name in own]
    (folder / "config/samples.tsv").write_text("\n".join(rows) + "\n")
    config = f"device: {device}\n"
    if min_maf is not None:
        config += f"panel: {{min_maf: {min_maf}}}\n"
    (folder / "config/config.yaml").write_text(config)
    return n_sites
