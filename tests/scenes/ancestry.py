"""Families over two diverged populations, with known kinship, for tests and benches.

Two ancestral populations diverge from common frequencies by drift (Balding and Nichols 1995);
linked inheritance is by gene dropping on 22 chromosomes of 1.6 Morgan. Families are drawn within
populations and over both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Chromosomes and Morgans of each.
CHROMOSOMES, MORGANS = 22, 1.6
#: True kinship of each class of pairs.
TRUTH = {
    "unrelated, one population": 0.0,
    "unrelated, two populations": 0.0,
    "unrelated F1 x F1": 0.0,
    "first cousins, one population": 1 / 16,
    "first cousins, F1": 1 / 16,
    "half siblings, one population": 1 / 8,
    "half siblings over two ancestries": 1 / 8,
    "full siblings, one population": 1 / 4,
    "full siblings, F1": 1 / 4,
    "parent and child, one population": 1 / 4,
    "parent and F1 child": 1 / 4,
    "duplicate": 1 / 2,
}
#: Kinship of a relative of each degree, and the label of its class.
LABELS = {
    1 / 16: ("third degree",),
    1 / 8: ("second degree",),
    1 / 2: ("duplicate or identical twin",),
}


@dataclass(frozen=True)
class Scene:
    """Genotypes of known pedigree.

    Attributes
    ----------
    genotypes : int8 array, (n_samples, n_sites)
        -1 where missing.
    ancestry : float64 array, (n_samples,)
        Share of the second population.
    pairs : dict
        Pairs of row numbers by class (TRUTH).
    haplotypes : int32 array, (n_samples, 2, n_sites)
        Founder haplotype from which each allele descends.
    """

    genotypes: np.ndarray
    ancestry: np.ndarray
    pairs: dict[str, list[tuple[int, int]]]
    haplotypes: np.ndarray

    def kinship(self, i: int, j: int) -> float:
        """Realised kinship: probability that two alleles drawn at random descend from one."""
        a, b = self.haplotypes[i], self.haplotypes[j]
        return float(np.mean(a[:, None] == b[None]))


def label_of(name: str) -> tuple[str, ...]:
    """Labels that are right for a class; none for unrelated pairs."""
    if name.startswith("full"):
        return ("full siblings",)
    if name.startswith("parent"):
        return ("parent and child",)
    return LABELS.get(TRUTH[name], ("distant",))


def draw_scene(
    *,
    fst: float,
    families: int = 6,
    singles: int = 60,
    sites: int = 8_000,
    missing: float = 0.02,
    errors: float = 0.001,
    seed: int = 1,
    frequencies: tuple[float, float] = (0.05, 0.95),
) -> Scene:
    """Unrelated people of both populations and F1 people, and `families` families of each kind.

    Parameters
    ----------
    fst : float
        Drift of each population from the common ancestor.
    singles : int
        Unrelated people of each population; F1 people are half as many.
    errors : float
        Share of genotypes with one allele read wrongly.
    frequencies : tuple
        Range of the ancestral frequencies.
    """
    rng = np.random.default_rng(seed)
    ancestral = rng.uniform(*frequencies, sites)
    a, b = ancestral * (1 - fst) / fst, (1 - ancestral) * (1 - fst) / fst
    drifted = [rng.beta(a, b), rng.beta(a, b)]
    # Sites at equal steps along the chromosomes; Haldane's map function.
    chromosome = CHROMOSOMES * np.arange(sites) // sites
    step = MORGANS * CHROMOSOMES / sites
    odd = np.full(sites, (1 - np.exp(-2 * step)) / 2)
    odd[np.diff(chromosome, prepend=-1) != 0] = 0.5
    alleles: list[np.ndarray] = []
    people: list[np.ndarray] = []
    shares: list[float] = []
    pairs: dict[str, list[tuple[int, int]]] = {name: [] for name in TRUTH}

    def add(haplotypes, share: float) -> int:
        people.append(np.asarray(haplotypes, np.int32))
        shares.append(share)
        return len(people) - 1

    def founder(one: int, other: int) -> int:
        """A person with one haplotype of each of two populations."""
        alleles.extend(rng.random(sites) < drifted[population] for population in (one, other))
        last = len(alleles)
        return add(np.repeat([[last - 2], [last - 1]], sites, axis=1), (one + other) / 2)

    def gamete(parent: int) -> np.ndarray:
        which = np.cumsum(rng.random(sites) < odd) % 2
        return people[parent][which, np.arange(sites)]

    def child(one: int, other: int) -> int:
        return add([gamete(one), gamete(other)], (shares[one] + shares[other]) / 2)

    lone: list[list[int]] = [[], [], []]
    for k in range(2 * singles + singles // 2):
        kind = min(k // singles, 2)
        lone[kind].append(founder(*((0, 0), (1, 1), (0, 1))[kind]))
    for k in range(families):
        home, away = k % 2, 1 - k % 2
        # One population: siblings and their children.
        father, mother, two, three = (founder(home, home) for _ in range(4))
        son, daughter = child(father, mother), child(father, mother)
        pairs["full siblings, one population"].append((son, daughter))
        pairs["parent and child, one population"] += [(father, son), (mother, daughter)]
        pairs["first cousins, one population"].append((child(son, two), child(daughter, three)))
        pairs["half siblings, one population"].append((son, child(father, two)))
        pairs["duplicate"].append((mother, add(people[mother], shares[mother])))
        # Over both: a father whose children have mothers of both populations.
        father, near, far = founder(home, home), founder(home, home), founder(away, away)
        pure, mixed, sibling = child(father, near), child(father, far), child(father, far)
        pairs["half siblings over two ancestries"] += [(pure, mixed), (pure, sibling)]
        pairs["full siblings, F1"].append((mixed, sibling))
        pairs["parent and F1 child"] += [(father, mixed), (far, sibling)]
        # F1 cousins: two siblings of one population marry into the other.
        father, mother = founder(home, home), founder(home, home)
        two, three = founder(away, away), founder(away, away)
        son, daughter = child(father, mother), child(father, mother)
        pairs["first cousins, F1"].append((child(son, two), child(daughter, three)))
    for kind, name in ((0, "one population"), (1, "one population"), (2, "F1 x F1")):
        name = f"unrelated {name}" if kind == 2 else f"unrelated, {name}"
        pairs[name] += [(i, j) for i in lone[kind] for j in lone[kind] if i < j]
    pairs["unrelated, two populations"] = [(i, j) for i in lone[0] for j in lone[1]]

    haplotypes = np.stack(people)
    drawn = np.stack(alleles).astype(np.int8)
    genotypes = drawn[haplotypes, np.arange(sites)].sum(axis=1, dtype=np.int8)
    wrong = rng.random(genotypes.shape) < errors
    shift = np.where(genotypes == 1, rng.choice([-1, 1], genotypes.shape), 1 - genotypes)
    genotypes = np.where(wrong, genotypes + shift, genotypes).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return Scene(genotypes, np.array(shares), pairs, haplotypes)
