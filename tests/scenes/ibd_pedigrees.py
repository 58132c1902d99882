"""Planted pedigrees: genes dropped through families with recombination, and what pairs share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

#: Parents of each person of a family, None for a founder. Parents come before their children.
Parents = list[tuple[int, int] | None]


@dataclass(frozen=True)
class Family:
    """A family; `descendants`: everyone who was not married into it."""

    parents: Parents
    descendants: tuple[int, ...]

    def kinship(self, a: int, b: int) -> float:
        """Kinship of two people by the pedigree; 0.5 of a person without inbreeding with itself."""
        return _kinship(tuple(self.parents), max(a, b), min(a, b))

    def degree(self, a: int, b: int) -> int | None:
        """Degree of relationship: 1 for a kinship of 1/4, 2 for 1/8, ...; None: unrelated."""
        phi = self.kinship(a, b)
        return round(-np.log2(phi)) - 1 if phi > 0 else None

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of descendants."""
        return list(itertools.combinations(self.descendants, 2))


@cache
def _kinship(parents: tuple, a: int, b: int) -> float:
    """Kinship of a >= b: through the parents of the later one."""
    if a == b:
        both = parents[a]
        return 0.5 if both is None else 0.5 * (1 + _kinship(parents, max(both), min(both)))
    if parents[a] is None:
        return 0.0
    return sum(_kinship(parents, max(p, b), min(p, b)) for p in parents[a]) / 2


def branching_family(generations: int = 4) -> Family:
    """A person with two children by one spouse and one by another, and a line of descent of each.

    With four generations it has relatives to the seventh degree: direct lines, full and half
    siblings, uncles, cousins to the third and cousins removed, full and half.
    """
    parents: Parents = [None, None, None]
    descendants = [0, 1, 2]
    for spouse in (1, 1, 2):
        parents.append((0, spouse))
        person = len(parents) - 1
        descendants.append(person)
        for _ in range(generations - 1):
            parents += [None, (person, len(parents))]
            person = len(parents) - 1
            descendants.append(person)
    return Family(parents, tuple(descendants))


def drop_genes(
    family: Family, chrom: np.ndarray, cm: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Founder haplotypes (2 f and 2 f + 1 of founder f) of everyone: int16 (n_people, 2, n_sites).

    Crossovers are a Poisson process, one a Morgan and meiosis, as in `cm`.
    """
    founders = itertools.count(0, 2)
    origin = np.empty((len(family.parents), 2, len(cm)), np.int16)
    for person, both in enumerate(family.parents):
        if both is None:
            first = next(founders)
            origin[person] = np.array([[first], [first + 1]])
        else:
            for side, parent in enumerate(both):
                own = meiosis(chrom, cm, rng)
                origin[person, side] = np.where(own, origin[parent, 1], origin[parent, 0])
    return origin


def meiosis(chrom: np.ndarray, cm: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which of a parent's two haplotypes is passed on at each site: bool (n_sites,)."""
    edges = np.flatnonzero(np.concatenate([[True], chrom[1:] != chrom[:-1], [True]]))
    passed = np.empty(len(cm), bool)
    for first, last in itertools.pairwise(edges):
        length = cm[last - 1] - cm[first]
        places = cm[first] + np.sort(rng.uniform(0, length, rng.poisson(length / 100)))
        crossed = np.searchsorted(places, cm[first:last])
        passed[first:last] = (crossed + rng.integers(2)) % 2 == 1
    return passed


def shared_alleles(origin: np.ndarray, a: int, b: int) -> np.ndarray:
    """Alleles that two people share by descent at each site: int8 (n_sites,), 0 to 2."""
    one, two = origin[a], origin[b]
    straight = (one[0] == two[0]).astype(np.int8) + (one[1] == two[1])
    crossed = (one[0] == two[1]).astype(np.int8) + (one[1] == two[0])
    return np.maximum(straight, crossed)


def stretches(inside: np.ndarray, chrom: np.ndarray, cm: np.ndarray) -> np.ndarray:
    """First and last site, and length in cM, of each run of sites within a contig: (n, 3)."""
    new = np.concatenate([[True], chrom[1:] != chrom[:-1]])
    before = np.concatenate([[False], inside[:-1]]) & ~new
    behind = np.concatenate([inside[1:], [False]]) & ~np.concatenate([new[1:], [True]])
    first, last = np.flatnonzero(inside & ~before), np.flatnonzero(inside & ~behind)
    return np.column_stack([first, last, cm[last] - cm[first]])
