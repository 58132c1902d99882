"""Simulated people of known relatedness, to test what kinship and identity may conclude."""

from __future__ import annotations

from dataclasses import dataclass

import msprime
import numpy as np

from popdesic.cohort.encode import planes_in_memory
from popdesic.engine.backend import Backend
from popdesic.engine.terms import KINSHIP
from popdesic.io.genotypes import pack_bed
from popdesic.relatives import independence, kinship
from popdesic.relatives.resolution import THIRD, Resolution, resolve

#: Crossovers per base pair and generation.
CROSSOVERS = 1e-8


@dataclass(frozen=True)
class People:
    """Haplotypes int8 (n_people, 2, n_sites), contig and position of each site."""

    haplotypes: np.ndarray
    contig: np.ndarray
    pos: np.ndarray

    @property
    def genotypes(self) -> np.ndarray:
        """int8 (n_people, n_sites)."""
        return self.haplotypes.sum(axis=1, dtype=np.int8)


def one_population() -> msprime.Demography:
    """A population grown from 10 000 to a million, so that nobody shares a recent ancestor."""
    history = msprime.Demography()
    history.add_population(name="A", initial_size=1_000_000)
    history.add_population_parameters_change(time=100, initial_size=10_000, population="A")
    return history


def three_populations() -> msprime.Demography:
    """Africa, Europe and East Asia, roughly (Gutenkunst et al. 2009), grown as above."""
    history = msprime.Demography()
    for name, size in (("A", 12_300), ("B", 5_000), ("C", 4_000), ("BC", 2_100)):
        history.add_population(name=name, initial_size=size if name == "BC" else 1_000_000)
        if name != "BC":
            history.add_population_parameters_change(time=60, initial_size=size, population=name)
    history.add_population_split(time=850, derived=["B", "C"], ancestral="BC")
    history.add_population_split(time=2_000, derived=["BC"], ancestral="A")
    return history


def draw_people(
    n: int,
    regions: int,
    length: float,
    *,
    sites: int,
    seed: int = 1,
    structured: bool = False,
    min_maf: float = 0.01,
) -> People:
    """Unrelated people over `regions` contigs of `length` base pairs, at most `sites` on each."""
    history = three_populations() if structured else one_population()
    who = {"A": n // 3, "B": n // 3, "C": n - 2 * (n // 3)} if structured else {"A": n}
    parts, contig, pos = [], [], []
    for region in range(regions):
        seeds = {"random_seed": 1_000 * seed + region + 1}
        trees = msprime.sim_ancestry(
            who, demography=history, sequence_length=length, recombination_rate=CROSSOVERS, **seeds
        )
        # About 4e4 generations of branches: three times as many common sites as are kept.
        rate = min(1.25e-8, sites / length / 1e4)
        mutated = msprime.sim_mutations(
            trees, rate=rate, model=msprime.BinaryMutationModel(), **seeds
        )
        alleles = (mutated.genotype_matrix() > 0).astype(np.int8)
        frequency = alleles.mean(axis=1)
        common = np.flatnonzero(np.minimum(frequency, 1 - frequency) >= min_maf)
        if len(common) > sites:
            common = common[np.arange(sites) * len(common) // sites]
        parts.append(alleles[common])
        contig.append(np.full(len(common), region))
        pos.append(mutated.sites_position[common].astype(np.int64))
    haplotypes = np.concatenate(parts).T.reshape(n, 2, -1)
    return People(haplotypes, np.concatenate(contig), np.concatenate(pos))


def meiosis(parent: np.ndarray, people: People, rng: np.random.Generator) -> np.ndarray:
    """One gamete of a parent's haplotypes (2, n_sites)."""
    apart = np.diff(people.pos, prepend=0)
    odd = 0.5 * (1 - np.exp(-2 * CROSSOVERS * np.maximum(apart, 0)))  # Haldane's map function
    odd[np.diff(people.contig, prepend=-1) != 0] = 0.5
    which = np.cumsum(rng.random(len(odd)) < odd) % 2
    return parent[which, np.arange(len(odd))]


def add_families(people: People, families: int, seed: int = 1, error_rate: float = 0.002):
    """Add duplicates, children and grandchildren of some of the unrelated people.

    Each family uses three people: a father, a mother, and the wife of their son.

    Returns
    -------
    people : People
        The given people first.
    pairs : dict
        Pairs of row numbers by relation: ``duplicate``, ``parent and child``, ``full siblings``,
        ``second degree``.
    """
    rng = np.random.default_rng(seed)
    rows = list(people.haplotypes)
    pairs: dict[str, list[tuple[int, int]]] = {
        name: [] for name in ("duplicate", "parent and child", "full siblings", "second degree")
    }

    def add(person) -> int:
        rows.append(np.asarray(person, np.int8))
        return len(rows) - 1

    def child(a: int, b: int) -> int:
        return add([meiosis(rows[a], people, rng), meiosis(rows[b], people, rng)])

    for family in range(families):
        father, mother, wife = 3 * family, 3 * family + 1, 3 * family + 2
        son, daughter = child(father, mother), child(father, mother)
        grandchild = child(son, wife)
        wrong = rng.random(rows[wife].shape) < error_rate / 2
        twin = add(np.where(wrong, 1 - rows[wife], rows[wife]))
        pairs["duplicate"].append((wife, twin))
        pairs["parent and child"] += [(p, c) for p in (father, mother) for c in (son, daughter)]
        pairs["parent and child"] += [(son, grandchild), (wife, grandchild), (twin, grandchild)]
        pairs["full siblings"].append((son, daughter))
        pairs["second degree"] += [(p, grandchild) for p in (father, mother, daughter)]
    return People(np.stack(rows), people.contig, people.pos), pairs


def resolution_of(people: People, backend: Backend, founders: int | None = None) -> Resolution:
    """The resolution of these sites, measured on the first `founders` people."""
    genotypes = people.genotypes[:founders]
    planes = planes_in_memory(pack_bed(np.ascontiguousarray(genotypes.T)), len(genotypes))
    return resolve(
        *independence.measure_variances([planes], people.contig.astype(str), backend),
        panel="scene",
        sites=genotypes.shape[1],
        founders=len(genotypes),
        max_mismatch=0.02,
        siblings=independence.siblings_alike(people.contig, people.pos),
    )


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on all pairs (n, n): kinship, whether it is reported, whether it is a duplicate."""

    kinship: np.ndarray
    related: np.ndarray
    same: np.ndarray

    def count(self, what: np.ndarray, n: int | None = None) -> int:
        """Pairs among the first `n` people."""
        return int(np.triu(what[:n, :n], 1).sum())


def judge(people: People, found: Resolution, backend: Backend) -> Verdicts:
    """Verdicts as `compare_cohorts` reaches them, for third-degree and closer relatives."""
    genotypes = people.genotypes
    planes = planes_in_memory(pack_bed(np.ascontiguousarray(genotypes.T)), len(genotypes))
    counts = dict(zip(KINSHIP.outputs, backend.bitgemm(planes, None, KINSHIP), strict=True))
    wrong = counts["het_a"] + counts["het_b"] - 2 * counts["both_het"] + counts["ibs0"]
    same = found.same(wrong, counts["called"])
    least = np.maximum(found.least_kinship(counts["called"]), THIRD)
    rows, columns, _ = kinship.close_pairs(
        counts, min_kinship=least, min_called=1, upper=False, same=same
    )
    related = np.zeros(same.shape, bool)
    related[rows, columns] = True
    return Verdicts(kinship.king_robust(counts), related, same)
