"""Statistics of populations: diversity, differentiation, f-statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from ..cohort.samples import UNKNOWN
from ..core.threads import usable_cpus
from ..population.allele_counts import PopulationCounts, sum_groups
from ..population.differentiation import pair_table
from ..population.diversity import population_table
from ..population.doubletons import doubleton_sites, find_carriers, sharing_table
from ..population.f_statistics import f3_screen, f4_tests
from .arrays import ArrayLike, thread_count, whole_number
from .packing import PackedGenotypes, packed, site_bits

#: Blocks of sites over which errors are estimated, unless told otherwise.
BLOCKS = 50


def diversity(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    *,
    blocks: int | ArrayLike = BLOCKS,
    pseudo_haploid: ArrayLike | None = None,
    inbred: Sequence[str] = (),
    threads: int | None = None,
) -> pd.DataFrame:
    """Heterozygosity, inbreeding and private alleles of populations.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    populations : array-like of str, (n_samples,)
        Label of each sample; None, NaN, '' and 'NA': the sample does not count.
    blocks : int or array-like (n_sites,)
        Errors come from leaving out one block of neighbouring sites at a time. A number: so many
        blocks of equal size, in the order of the sites; or a label of each site: neighbours with
        one label are a block.
    pseudo_haploid : array-like of bool, (n_samples,), optional
        Samples whose genotypes are one read of one chromosome, counted twice: they count one
        allele a site.
    inbred : sequence of str
        Populations whose samples are inbred: `expected` compares alleles of different samples.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    DataFrame
        One row a population, by name: `people`, `pseudo_haploid`, `sites` with two alleles,
        `call_rate`, `observed` and `expected` heterozygosity (means over the sites given, the
        latter unbiased: Nei 1978), `f` = 1 - observed / expected, each with its block jackknife
        error; `polymorphic` sites; `hwe_sites` with both alleles, the share of them whose exact
        test of Hardy-Weinberg proportions has a mid-p below 0.05 (`hwe_low`), and that which
        chance gives (`hwe_expected`); `private` alleles a site with their error, expected among
        `private_alleles` alleles drawn from each population (rarefaction: Kalinowski 2004);
        `blocks`.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 1, 2, 0], [1, 1, 2, 0], [2, 1, 0, 0], [1, 2, 0, 1]]
    >>> table = popdesic.diversity(genotypes, ["A", "A", "B", "B"], blocks=2)
    >>> table[["population", "people", "observed", "expected", "private"]].round(3)
      population  people  observed  expected  private
    0          A       2     0.375     0.292     0.25
    1          B       2     0.375     0.375     0.50
    """
    counts, starts, _ = _counts(genotypes, populations, blocks, pseudo_haploid, threads)
    from ..population.allele_sums_cpu import own_sums

    counts = _with_inbred(counts, inbred)
    masked = np.zeros(len(counts.alleles), bool)
    own = own_sums(counts.alleles, counts.genotypes, masked, starts, counts.inbred)
    table = population_table(counts, own, starts)
    return table.drop(columns=["pi", "pi_error"])


def shared_doubletons(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    *,
    threads: int | None = None,
) -> pd.DataFrame:
    """How often populations share alleles that two of all samples carry, beside chance.

    Such alleles are young: sharing them tells of recent common ancestors (Mathieson and McVean
    2014). Give all sites of sequenced samples: an array has too few rare alleles.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    populations, threads
        As in `diversity`. Give every sample its own label to compare pairs of samples.

    Returns
    -------
    DataFrame
        One row a pair of populations, each with itself too where it has two samples:
        `population1`, `population2`; `doubletons` that one sample of each carries (two samples of
        one population); how many are `expected` if labels were assigned at random, their `ratio`,
        and `z`, the difference in standard deviations of such assignments. z of a few doubletons
        is not normal. The rarer allele counts, REF or ALT. Two copies in one sample do not, nor do
        sites where more than 5 % of the samples with a label are missing. NaN where there is no
        doubleton.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[1, 0, 1, 0], [1, 0, 0, 2], [0, 1, 1, 2], [0, 1, 0, 2]]
    >>> table = popdesic.shared_doubletons(genotypes, ["A", "A", "B", "B"])
    >>> table[["population1", "population2", "doubletons", "expected"]]
      population1 population2  doubletons  expected
    0           A           A           1       0.5
    1           A           B           1       2.0
    2           B           B           1       0.5
    """
    planes = packed(genotypes)
    counts, _, _ = _counts(planes, populations, 1, None, threads)
    labels = _labels(populations, planes.n_samples)
    number = {name: k for k, name in enumerate(counts.names)}
    group = np.array([number.get(label, -1) for label in labels], np.int64)
    known = np.flatnonzero(group >= 0)
    sites = doubleton_sites(counts.genotypes.sum(axis=1), len(known))
    carriers = find_carriers(planes.words, sites, known)
    return sharing_table(carriers, group, list(counts.names))


def f_st(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    *,
    blocks: int | ArrayLike = BLOCKS,
    pseudo_haploid: ArrayLike | None = None,
    inbred: Sequence[str] = (),
    threads: int | None = None,
) -> pd.DataFrame:
    """F_ST of all pairs of populations: Hudson's, and that of Weir and Cockerham.

    Both are ratios of sums over sites (Bhatia et al. 2013). Hudson's does not depend on the numbers
    of people; Weir and Cockerham's (1984) is that of `plink1.9 --fst`, of the diploid people.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    populations, blocks, pseudo_haploid, threads
        As in `diversity`.
    inbred : sequence of str
        Populations whose samples are inbred: heterozygosity is taken between samples, not within.

    Returns
    -------
    DataFrame
        One row a pair: `population1`, `population2`; `fst`, its block jackknife `error` and `z`
        (Hudson); `weir_cockerham`, `weir_cockerham_error`; `sharing_distance`: share of alleles
        that two people, one of each population, do not share; `sites`, `blocks`. NaN where nothing
        can be estimated.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 1, 2, 0], [1, 1, 2, 0], [2, 1, 0, 0], [1, 2, 0, 1]]
    >>> table = popdesic.f_st(genotypes, ["A", "A", "B", "B"], blocks=2)
    >>> table[["population1", "population2", "fst", "sites"]].round(3)
      population1 population2    fst  sites
    0           A           B  0.439      4
    """
    table = _pairs(genotypes, populations, blocks, pseudo_haploid, threads, inbred)
    return table.drop(columns=["f2", "f2_error", "d_xy", "d_xy_error"])


def f2(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    *,
    blocks: int | ArrayLike = BLOCKS,
    pseudo_haploid: ArrayLike | None = None,
    inbred: Sequence[str] = (),
    threads: int | None = None,
) -> pd.DataFrame:
    """f2 of all pairs of populations: the mean squared difference of frequencies, unbiased.

    On a tree it is the length of the branches between two populations (Patterson et al. 2012).

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    populations, blocks, pseudo_haploid, threads
        As in `diversity`.
    inbred : sequence of str
        Populations whose samples are inbred: heterozygosity is taken between samples, not within.

    Returns
    -------
    DataFrame
        One row a pair: `population1`, `population2`, `f2`, its block jackknife `error`, `z`,
        `sites`, `blocks`.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 1, 2, 0], [1, 1, 2, 0], [2, 1, 0, 0], [1, 2, 0, 1]]
    >>> popdesic.f2(genotypes, ["A", "A", "B", "B"], blocks=2)[["population1", "f2"]].round(3)
      population1    f2
    0           A  0.26
    """
    table = _pairs(genotypes, populations, blocks, pseudo_haploid, threads, inbred)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(table.f2_error > 0, table.f2 / table.f2_error, np.nan)
    found = table[["population1", "population2", "f2", "f2_error", "sites", "blocks"]]
    found = found.rename(columns={"f2_error": "error"})
    found.insert(4, "z", z)
    return found


def f3(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    *,
    blocks: int | ArrayLike = BLOCKS,
    pseudo_haploid: ArrayLike | None = None,
    inbred: Sequence[str] = (),
    threads: int | None = None,
) -> pd.DataFrame:
    """f3 of every population as target and every pair of others as sources.

    A negative f3(target; a, b) shows that the target is a mixture of populations like a and b. With
    an outgroup as target it is the drift that a and b share (Patterson et al. 2012).

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    populations, blocks, pseudo_haploid, threads
        As in `diversity`.
    inbred : sequence of str
        Populations whose samples are inbred: heterozygosity is taken between samples, not within.

    Returns
    -------
    DataFrame
        `target`, `source1`, `source2`, `f3`, its block jackknife `error`, `z`, `z_corrected` (for
        the skewness of f3: compare it with Student's t), `sites`, `blocks`, by rising
        `z_corrected`. Among many, some below -2 are chance.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 0, 2], [0, 0, 2], [1, 1, 1], [1, 1, 0], [2, 2, 0], [2, 2, 0]]
    >>> table = popdesic.f3(genotypes, list("AABBCC"), blocks=2)
    >>> table.loc[table.target == "B", ["target", "source1", "source2", "f3"]].round(3)
      target source1 source2     f3
    0      B       A       C -0.306
    """
    counts, starts, _ = _counts(genotypes, populations, blocks, pseudo_haploid, threads, 3)
    return f3_screen(_with_inbred(counts, inbred), starts)


def f4(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    tests: Sequence[Sequence[str]],
    *,
    blocks: int | ArrayLike = BLOCKS,
    pseudo_haploid: ArrayLike | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """f4 and D of chosen populations: 0 if A and B are a pair of a tree against C and D.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    populations : array-like of str, (n_samples,)
        Label of each sample; None, NaN, '' and 'NA': the sample does not count.
    tests : sequence of four labels each
        A, B, C, D.
    blocks, pseudo_haploid, threads
        As in `diversity`.

    Returns
    -------
    DataFrame
        One row a test, in their order: `a`, `b`, `c`, `d`, `f4`, its block jackknife `error`, `z`,
        `d_statistic`, `d_error`, `d_z`, `sites`, `blocks`.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 1, 2, 0], [1, 1, 2, 0], [2, 1, 0, 0], [1, 2, 0, 1]]
    >>> popdesic.f4(genotypes, list("ABCD"), [list("ABCD")], blocks=2)[["f4", "sites"]].round(3)
          f4  sites
    0 -0.062      4
    """
    counts, starts, _ = _counts(genotypes, populations, blocks, pseudo_haploid, threads)
    if isinstance(tests, str) or not hasattr(tests, "__len__") or not len(tests):
        raise ValueError(f"tests is {tests!r}; give at least one list of four populations.")
    chosen = [list(map(str, one)) if hasattr(one, "__len__") else [one] for one in tests]
    for row, names in enumerate(chosen):
        if len(set(names)) != 4 or len(names) != 4:
            raise ValueError(f"tests[{row}] is {names}; give four different populations.")
        for name in names:
            if name not in counts.names:
                known = ", ".join(counts.names[:10])
                raise ValueError(
                    f"tests[{row}] names {name!r}, which no sample has as its population; give "
                    f"some of {known}."
                )
    return f4_tests(counts, starts, chosen)


def _pairs(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    blocks: int | ArrayLike,
    pseudo_haploid: ArrayLike | None,
    threads: int | None,
    inbred: Sequence[str],
) -> pd.DataFrame:
    from ..population.allele_sums_cpu import pair_sums

    counts, starts, threads = _counts(genotypes, populations, blocks, pseudo_haploid, threads, 2)
    counts = _with_inbred(counts, inbred)
    masked = np.zeros(len(counts.alleles), bool)
    sums = pair_sums(counts.alleles, counts.genotypes, masked, starts, threads, counts.inbred)
    return pair_table(counts, sums)


def _with_inbred(counts: PopulationCounts, inbred: Sequence[str]) -> PopulationCounts:
    if isinstance(inbred, str) or not set(inbred) <= set(counts.names):
        raise ValueError(
            f"inbred is {inbred!r}; give a list of some of {', '.join(counts.names[:10])}."
        )
    return replace(counts, inbred=np.isin(counts.names, list(inbred)))


def _counts(
    genotypes: ArrayLike | PackedGenotypes,
    populations: ArrayLike,
    blocks: int | ArrayLike,
    pseudo_haploid: ArrayLike | None,
    threads: int | None,
    fewest: int = 1,
) -> tuple[PopulationCounts, np.ndarray, int]:
    """Counts of populations, first site of each block with the number of sites, and threads."""
    from ..population.plane_counts_cpu import count_by_site

    planes = packed(genotypes)
    n, n_sites = planes.n_samples, planes.n_sites
    threads = thread_count(threads) or usable_cpus()
    labels = _labels(populations, n)
    known = ~labels.isin(UNKNOWN).to_numpy()
    single = np.zeros(n, bool) if pseudo_haploid is None else np.asarray(pseudo_haploid)
    if single.shape != (n,) or single.dtype != bool:
        raise ValueError(
            f"pseudo_haploid is {single.dtype} of the shape {single.shape}; give True or False for "
            f"each of the {n} samples."
        )
    starts = _block_starts(blocks, n_sites)
    names = sorted(set(labels[known]))
    if not names:
        raise ValueError("no sample has a population; give a label for some of them.")
    if len(names) < fewest:
        raise ValueError(
            f"populations names only {', '.join(names)}; give labels of at least {fewest}."
        )
    used = site_bits(planes)

    def groups() -> Iterator[tuple[str, int, int, np.ndarray]]:
        for name in names:
            own = (labels == name).to_numpy()
            for ploidy, kind in ((2, ~single), (1, single)):
                rows = np.flatnonzero(own & kind)
                if len(rows):
                    total = np.zeros((3, 64 * planes.words.shape[2]), np.int32)
                    count_by_site(planes.words, used, rows, total, threads)
                    yield name, ploidy, len(rows), total[:, :n_sites].T

    return sum_groups(groups(), names, n_sites), starts, threads


def _labels(populations: ArrayLike, n: int) -> pd.Series:
    """Label of each of n samples as text; '' where it is None or NaN."""
    labels = pd.Series(np.asarray(populations, dtype=object).ravel())
    if len(labels) != n or np.ndim(populations) != 1:
        raise ValueError(
            f"populations have the shape {np.shape(populations)}; give a label for each of the {n} "
            "samples."
        )
    return labels.where(labels.notna(), "").astype(str)


def _block_starts(blocks: int | ArrayLike, n_sites: int) -> np.ndarray:
    """First site of each block, and the number of sites: int64 (n_blocks + 1,)."""
    if np.ndim(blocks) == 0:
        count = min(whole_number(blocks, "blocks"), n_sites)
        return np.rint(np.linspace(0, n_sites, count + 1)).astype(np.int64)
    labels = np.asarray(blocks)
    if labels.shape != (n_sites,):
        raise ValueError(
            f"blocks have the shape {labels.shape}; give a number of blocks, or a label for each "
            f"of the {n_sites} sites."
        )
    unknown = pd.isna(labels)
    if unknown.any():
        site = int(np.argmax(unknown))
        raise ValueError(f"blocks[{site}] is {labels[site]}; give a label for each site.")
    edges = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    return np.array([0, *edges, n_sites], np.int64)
