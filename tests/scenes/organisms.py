"""Small studies of species with and without a preset, drawn by msprime, whose truth is known.

Each has two populations that parted so long ago that F_ST between them is `F_ST`, and a clone: the
last sample has the genotypes of the first. Contigs have the names and lengths of the species, so
that `popdesic init` recognises it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msprime
import numpy as np

from popdesic.core.places import RESOURCES

#: Hudson's F_ST of the populations: t / (t + 2 N), of N diploids and t generations.
F_ST = 0.1
#: Of the whole genome: sites that are aimed at, and 4 N r, to which N is chosen.
N_SITES, CROSSOVERS = 8_000, 8_000
#: Share of calls that are missing.
MISSING = 0.01
MB = 1_000_000
YEAST = {
    **{"I": 230218, "II": 813184, "III": 316620, "IV": 1531933, "V": 576874, "VI": 270161},
    **{"VII": 1090940, "VIII": 562643, "IX": 439888, "X": 745751, "XI": 666816},
    **{"XII": 1078177, "XIII": 924431, "XIV": 784333, "XV": 1091291, "XVI": 948066},
}
PLASMODIUM = (
    *(640851, 947102, 1067971, 1200490, 1343557, 1418242, 1445207, 1472805),
    *(1541735, 1687656, 2038340, 2271494, 2925236, 3291936),
)


@dataclass(frozen=True)
class Organism:
    """A study to draw.

    Attributes
    ----------
    species : str
        What `init` should propose; empty if there is no preset.
    contigs : dict of int
        Lengths by name.
    cm_per_mb : float
    kinds : dict of int
        Samples of each population, by ploidy.
    inbred : bool
        Diploids without heterozygous genotypes.
    x : str
        Contig of which every second sample, a male, has one copy.
    """

    species: str
    contigs: dict[str, int]
    cm_per_mb: float
    kinds: dict[int, int] = field(default_factory=lambda: {2: 15})
    inbred: bool = False
    x: str = ""


def lengths_of(species: str, build: str) -> dict[str, int]:
    """Lengths of an assembly's contigs, without Y."""
    rows = (RESOURCES / "assemblies.tsv").read_text("utf-8").splitlines()
    fields = [row.split("\t") for row in rows if row.startswith(f"{species}\t{build}\t")]
    return {name: int(length) for _, _, name, length in fields if name != "Y"}


def organisms() -> dict[str, Organism]:
    """All studies by name."""
    bees = lengths_of("honey bee", "Amel_HAv3.1")
    cattle = lengths_of("cattle", "ARS-UCD1.3")
    cress = lengths_of("thale cress", "TAIR10")
    genomes = [f"{k}{genome}" for k in range(1, 8) for genome in "ABD"]
    parasite = {f"Pf3D7_{k:02d}_v3": length for k, length in enumerate(PLASMODIUM, 1)}
    return {
        "mouse": Organism("mouse", lengths_of("mouse", "GRCm39"), 0.5, x="X"),
        "cattle": Organism("cattle", {k: n for k, n in cattle.items() if k != "X"}, 0.93),
        "Drosophila": Organism("drosophila", lengths_of("fruit fly", "BDGP6.46"), 1.0, x="X"),
        "Arabidopsis": Organism("arabidopsis", cress, 3.7, inbred=True),
        "wheat": Organism("wheat", dict.fromkeys(genomes, 680 * MB), 0.2, inbred=True),
        "yeast": Organism("yeast", YEAST, 375),
        "haploid yeast": Organism("yeast", YEAST, 375, {1: 15}),
        "Plasmodium": Organism("plasmodium", parasite, 74, {1: 15}),
        "honeybee": Organism("honeybee", bees, 22, {2: 10, 1: 5}),
        "tetraploid": Organism("", {f"chr{k:02d}": 60 * MB for k in range(1, 13)}, 1, {4: 15}),
        "2x and 4x": Organism("", {f"scaffold_{k}": 25 * MB for k in range(1, 9)}, 3, {2: 8, 4: 8}),
    }


def draw_study(organism: Organism, folder: Path, seed: int, n_sites: int = N_SITES) -> list[str]:
    """Write `study.vcf` and the table `samples.tsv`; return the names, the clone last."""
    rng = np.random.default_rng(seed)
    kinds = [p for _ in (0, 1) for p, n in organism.kinds.items() for _ in range(n)]
    size = len(kinds) // 2
    names = [f"{'ab'[k // size]}{k % size:02d}" for k in range(len(kinds))] + ["clone"]
    male = np.arange(len(names)) % 2 == 1
    male[-1] = male[0]
    table = [f"{one}\t{one[0] if one != 'clone' else 'a'}" for one in names]
    if organism.x:
        table = [f"{row}\t{'FM'[sex]}" for row, sex in zip(table, male.tolist(), strict=True)]
    head = "sample\tpopulation" + "\tsex" * bool(organism.x)
    (folder / "samples.tsv").write_text("\n".join([head, *table]) + "\n")
    total = sum(organism.contigs.values())
    with open(folder / "study.vcf", "w", encoding="utf-8") as file:
        file.write("##fileformat=VCFv4.2\n")
        for name, length in organism.contigs.items():
            file.write(f"##contig=<ID={name},length={length}>\n")
        fixed = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
        file.write("\t".join([*fixed, *names]) + "\n")
        for k, (name, length) in enumerate(organism.contigs.items()):
            one = np.full(len(kinds), organism.inbred)
            if name == organism.x:
                one |= male[:-1]
            copies = np.where(one, 1, kinds).tolist()
            positions, alleles = _contig(organism, copies, length, total, seed + 100 * k, n_sites)
            for at, calls in zip(positions, _calls(alleles, copies, organism, rng), strict=True):
                row = [name, str(at), ".", "A", "G", ".", "PASS", ".", "GT", *calls]
                file.write("\t".join(row) + "\n")
    return names


def _contig(organism: Organism, copies, length: int, total: int, seed: int, n_sites: int):
    """Positions of sites, and alleles, one row a site and one column a copy."""
    rate = organism.cm_per_mb * 1e-8
    people = max(50, round(CROSSOVERS / (4 * rate * total)))
    demography = msprime.Demography.isolated_model([people, people])
    demography.add_population(name="root", initial_size=people)
    parted = 2 * people * F_ST / (1 - F_ST)
    demography.add_population_split(time=parted, derived=[0, 1], ancestral="root")
    half = len(copies) // 2
    trees = msprime.sim_ancestry(
        [msprime.SampleSet(1, population=int(k >= half), ploidy=p) for k, p in enumerate(copies)],
        demography=demography,
        ploidy=2,
        sequence_length=length,
        recombination_rate=rate,
        random_seed=seed + 1,
    )
    branches = 4 * people * (1 / np.arange(1, sum(copies))).sum()
    mutation = n_sites / (branches * total)
    trees = msprime.sim_mutations(trees, rate=mutation, random_seed=seed + 1, model="binary")
    nodes = [node for k in range(trees.num_individuals) for node in trees.individual(k).nodes]
    alleles = trees.genotype_matrix(samples=nodes)
    varies = (alleles.min(axis=1) == 0) & (alleles.max(axis=1) == 1)
    positions = trees.tables.sites.position.astype(int) + 1
    return positions[varies].tolist(), alleles[varies]


def _calls(alleles: np.ndarray, copies: list[int], organism: Organism, rng):
    """The calls of each site as text, the clone last."""
    ends = np.cumsum(copies).tolist()
    starts = [0, *ends[:-1]]
    twice = 2 if organism.inbred else 1
    for row in alleles.tolist():
        calls = ["/".join(map(str, row[a:b] * twice)) for a, b in zip(starts, ends, strict=True)]
        calls.append(calls[0])
        for k in np.flatnonzero(rng.random(len(calls)) < MISSING).tolist():
            calls[k] = "/".join("." * len(calls[k].split("/")))
        yield calls
