"""Alleles of the study's populations, from the counts of its cohorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from ..core.errors import UserError


@dataclass(frozen=True)
class PopulationCounts:
    """Counts of populations at every site of the panel.

    Attributes
    ----------
    names : list of str
        Populations, sorted.
    people : int64 array, (n_populations,)
    pseudo_haploid : int64 array, (n_populations,)
        How many of them are pseudo-haploid.
    alleles : int32 array, (n_sites, n_populations, 2)
        Alleles called, and those that are ALT. A pseudo-haploid sample has one allele: its
        genotype is one read of one chromosome, counted twice.
    genotypes : int32 array, (n_sites, n_populations, 3)
        Diploid people with 0, 1, 2 ALT alleles.
    inbred : bool array, (n_populations,), optional
        Populations whose samples are inbred: the two alleles of a sample are not independent.
    polyploid : int
        Ploidy of all people if it is above 2; else 0. Above 2 too if there are several.
    of_people : int64 array, (n_populations,), optional
        Alleles of all people, where they are of several ploidies.
    """

    names: list[str]
    people: np.ndarray
    pseudo_haploid: np.ndarray
    alleles: np.ndarray
    genotypes: np.ndarray
    inbred: np.ndarray | None = None
    polyploid: int = 0
    of_people: np.ndarray | None = None

    @property
    def most_alleles(self) -> np.ndarray:
        """Alleles of all people at a site, int64 (n_populations,)."""
        if self.of_people is not None:
            return self.of_people
        if self.polyploid:
            return self.polyploid * self.people
        return 2 * self.people - self.pseudo_haploid

    def at(self, sites: np.ndarray) -> PopulationCounts:
        """The counts at some sites."""
        return replace(self, alleles=self.alleles[sites], genotypes=self.genotypes[sites])

    @property
    def frequencies(self) -> np.ndarray:
        """ALT frequency, NaN where nobody is called: float64 (n_sites, n_populations)."""
        called = self.alleles[..., 0]
        with np.errstate(invalid="ignore"):
            return np.where(called > 0, self.alleles[..., 1] / np.maximum(called, 1), np.nan)

    def sampling(self, sites: np.ndarray) -> np.ndarray:
        """What sampling adds to p^2, without bias: float64 (n, n_populations).

        NaN without two alleles that are independent: of inbred populations of two samples. For n
        alleles it is p (1 - p) / (n - 1). Of inbred populations, as ADMIXTOOLS' `inbreed: YES`,
        p^2 less the share of pairs of alleles of different samples that are both ALT: with m
        diploid samples, of which v have two ALT alleles, and a ALT alleles in all,

            p^2 - (a (a - 1) - 2 v) / (n (n - 1) - 2 m).
        """
        n, alt = self.alleles[sites, :, 0].astype(np.float64), self.alleles[sites, :, 1]
        p = alt / np.maximum(n, 1)
        found = np.where(n > 1, p * (1 - p) / np.maximum(n - 1, 1), np.nan)
        for k in np.flatnonzero(self.inbred) if self.inbred is not None else ():
            states = self.genotypes[sites, k]
            pairs = n[:, k] * (n[:, k] - 1) - 2 * states.sum(axis=1)
            both = (alt[:, k] * (alt[:, k] - 1.0) - 2 * states[:, 2]) / np.maximum(pairs, 1)
            found[:, k] = np.where(pairs > 0, p[:, k] ** 2 - both, np.nan)
        return found


def population_sizes(paths: Sequence[Path]) -> dict[str, int]:
    """People of each population, from the counts of cohorts (`counts.count_cohort`)."""
    sizes: dict[str, int] = {}
    for path in paths:
        with np.load(path) as arrays:
            for name, size in zip(arrays["populations"].tolist(), arrays["sizes"], strict=True):
                sizes[name] = sizes.get(name, 0) + int(size)
    return sizes


def load_counts(
    paths: Sequence[Path], min_size: int = 1, order: np.ndarray | None = None
) -> PopulationCounts:
    """Add the counts of cohorts (`counts.count_cohort`).

    Populations of fewer than `min_size` people are left out.

    Parameters
    ----------
    order : int array, (n_sites,), optional
        Numbers of sites among those of the panel and, after them, those beside it
        (`cohort.panel.SiteLists.load`). By default those of the panel.
    """
    sizes = population_sizes(paths)
    names = sorted(name for name, size in sizes.items() if size >= min_size)
    if not paths:
        return sum_groups((), names, 0)
    first = _read(paths[0], order)
    n_sites = len(first[0] if order is None else order)

    def groups() -> Iterator[tuple[str, int, int, np.ndarray]]:
        for counts, words in chain([first], (_read(path, order) for path in paths[1:])):
            if len(counts) != n_sites:
                raise UserError(
                    f"{paths[0]} and another cohort's counts, or the panel, have different numbers "
                    "of sites; delete results/population and run again."
                )
            for g, (name, ploidy, size) in enumerate(zip(*words, strict=True)):
                if sizes[name] >= min_size:
                    own = counts[:, g] if order is None else counts[order, g]
                    yield name, ploidy, size, own.astype(np.int32)

    return replace(sum_groups(groups(), names, n_sites), of_people=_alleles_of(paths, names))


def _alleles_of(paths: Sequence[Path], names: list[str]) -> np.ndarray | None:
    """Alleles of the people of some populations; None unless they are of several ploidies."""
    found = dict.fromkeys(names, 0)
    for path in paths:
        with np.load(path) as arrays:
            if "alleles" not in arrays:
                return None
            for name, number in zip(arrays["populations"], arrays["alleles"], strict=True):
                if name in found:
                    found[name] += int(number)
    return np.array(list(found.values()), np.int64)


def _read(path: Path, order: np.ndarray | None) -> tuple[np.ndarray, list[list]]:
    """Counts of a cohort at sites of the panel, or of both lists, and what its groups are."""
    with np.load(path) as arrays:
        counts = arrays["counts"]
        if order is not None:
            counts = np.concatenate([counts, arrays["further"]])
        return counts, [arrays[name].tolist() for name in ("populations", "ploidy", "sizes")]


def sum_groups(
    groups: Iterable[tuple[str, int, int, np.ndarray]], names: list[str], n_sites: int
) -> PopulationCounts:
    """Add people of one population and ploidy at a time.

    Parameters
    ----------
    groups : iterable of (population, ploidy, people, counts)
        counts: int32 (n_sites, 3), people with 0, 1, 2 ALT alleles; ploidy 1: pseudo-haploid. Of
        a ploidy above 2 layers, not people: of two alleles, or of one if it is odd.
    names : list of str
        All populations, sorted.
    """
    index = {name: k for k, name in enumerate(names)}
    alleles = np.zeros((n_sites, len(names), 2), np.int32)
    genotypes = np.zeros((n_sites, len(names), 3), np.int32)
    people, haploid = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    polyploid = 0
    for name, ploidy, size, counts in groups:
        k = index[name]
        people[k] += size
        polyploid = ploidy if ploidy > 2 else polyploid
        if ploidy > 2 and ploidy % 2 == 0:
            alleles[:, k, 0] += 2 * counts.sum(axis=1, dtype=np.int32)
            alleles[:, k, 1] += counts[:, 1] + 2 * counts[:, 2]
        elif ploidy == 2:
            genotypes[:, k] += counts
            alleles[:, k, 0] += 2 * counts.sum(axis=1, dtype=np.int32)
            alleles[:, k, 1] += counts[:, 1] + 2 * counts[:, 2]
        else:
            alleles[:, k, 0] += counts[:, 0] + counts[:, 2]
            alleles[:, k, 1] += counts[:, 2]
            haploid[k] += size if ploidy == 1 else 0
    return PopulationCounts(names, people, haploid, alleles, genotypes, polyploid=polyploid)
