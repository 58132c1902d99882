"""Checks of one cohort's samples beyond their call rate: heterozygosity, sex, pedigree."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..io.bed import open_cohort
from ..io.genotypes import MISSING, unpack_bed
from ..io.sites import canonical_contig, canonical_contigs

#: Sites per chunk.
CHUNK_SITES = 4_096
#: Smallest population in which heterozygosity outliers are sought.
LEAST_SAMPLES = 5
#: Minimum number of X sites to infer sex, and their minimum minor allele frequency.
LEAST_X_SITES, X_MAF = 20, 0.05
#: Minimum call rate on X, outside the pseudo-autosomal regions, to infer a sample's sex. If haploid
#: calls are read as missing, males keep few X calls, and these (called as diploid nevertheless) do
#: not represent X.
LEAST_X_CALLED = 0.5
#: PLINK's thresholds of the X inbreeding coefficient: females below, males above.
FEMALE_BELOW, MALE_ABOVE = 0.2, 0.8
#: Columns that `check_samples` adds, and the filters in order of precedence.
COLUMNS = ["het_sd", "sex", "x_sites", "x_f", "sex_from_x", "mendel_sites", "mendel_errors"]
COLUMNS += ["left_out"]
FILTERS = [
    "qc.min_sample_call_rate",
    "qc.max_heterozygosity_sd",
    "qc.sex_mismatch",
    "qc.max_mendel_rate",
]


@dataclass(frozen=True)
class Checks:
    """Stated sexes and parents, and limits of the checks; the defaults exclude no sample.

    Attributes
    ----------
    sexes : dict
        M or F by sample.
    parents : dict
        (father, mother) by child; names outside the cohort count as unknown.
    x_contigs, other_contigs : list of str
        Contigs of the X chromosome; other contigs without autosomal inheritance.
    par : list of (int, int)
        First and last positions of the pseudo-autosomal regions of the X contigs, where males are
        diploid (`par.pseudoautosomal`).
    max_heterozygosity_sd : float
        Largest deviation from the population median, in robust standard deviations; 0: no limit.
    sex_mismatch : {'report', 'drop'}
        Action when X-inferred sex disagrees with the sheet.
    max_mendel_rate : float
        Largest rate of Mendelian errors of a child.
    """

    sexes: dict[str, str] = field(default_factory=dict)
    parents: dict[str, tuple[str, str]] = field(default_factory=dict)
    x_contigs: tuple[str, ...] = ()
    other_contigs: tuple[str, ...] = ()
    par: tuple[tuple[int, int], ...] = ()
    max_heterozygosity_sd: float = 0.0
    sex_mismatch: str = "report"
    max_mendel_rate: float = 1.0


def check_samples(
    prefix: Path, bim: pd.DataFrame, samples: pd.DataFrame, checks: Checks
) -> pd.DataFrame:
    """Add the columns `COLUMNS` to a cohort's sample table and set `keep`.

    Parameters
    ----------
    prefix : Path
        Stem of the raw .bed and .fam.
    bim : DataFrame
        The cohort's sites.
    samples : DataFrame
        `sample`, `population`, `heterozygosity`, `keep` (from the call rate alone).

    Returns
    -------
    DataFrame
        With `het_sd` (deviation of the heterozygosity, see `heterozygosity_deviation`), `sex` (as
        stated: M, F or NA), `x_sites` (X sites that inform the sex; NA in a cohort without X),
        `x_f` (see `x_inbreeding`; NA where these are too few), `sex_from_x` (M, F or NA),
        `mendel_sites` (autosomal sites called in the child and a parent), `mendel_errors`,
        `left_out` (the filter that excluded the sample, or NA).
    """
    names = samples["sample"].tolist()
    enough = (samples.keep == "yes").to_numpy()
    contigs = canonical_contigs(bim.chrom)
    on_x = np.isin(contigs, [canonical_contig(c) for c in checks.x_contigs])
    not_autosomal = on_x | np.isin(contigs, [canonical_contig(c) for c in checks.other_contigs])
    rows, _ = open_cohort(prefix, names)
    heterozygosity = samples.heterozygosity
    if not_autosomal.any():  # a single X would lower the heterozygosity of males
        heterozygosity = autosomal_heterozygosity(rows, np.flatnonzero(~not_autosomal), len(names))
    het = heterozygosity_deviation(heterozygosity, samples.population, enough)
    haploid_in_males = np.flatnonzero(on_x & ~inside(bim.pos.to_numpy(), checks.par))
    x_sites, x_f = x_inbreeding(rows, haploid_in_males, len(names), enough, samples.population)
    sex = np.where(x_f < FEMALE_BELOW, "F", np.where(x_f > MALE_ABOVE, "M", "NA"))
    index = {name: k for k, name in enumerate(names)}
    trios = [
        (index[child], index.get(father, -1), index.get(mother, -1))
        for child, (father, mother) in checks.parents.items()
        if child in index and (father in index or mother in index)
    ]
    sites, errors = mendel_errors(rows, np.flatnonzero(~not_autosomal), len(names), trios)
    stated = np.array([checks.sexes.get(name, "NA") for name in names])
    wrong_sex = (stated != "NA") & (sex != "NA") & (stated != sex)
    children = np.isin(np.arange(len(names)), [child for child, _, _ in trios])
    too_many = children & (errors > checks.max_mendel_rate * np.maximum(sites, 1))
    limit = checks.max_heterozygosity_sd
    outlying = np.abs(np.nan_to_num(het)) > limit if limit else np.zeros(len(names), bool)
    dropped_by_sex = wrong_sex if checks.sex_mismatch == "drop" else np.zeros(len(names), bool)
    left_out = np.full(len(names), "NA", object)
    for reason, excluded in reversed(
        list(zip(FILTERS, (~enough, outlying, dropped_by_sex, too_many), strict=True))
    ):
        left_out[excluded] = reason  # the first filter that applies is recorded
    return samples.assign(
        keep=np.where(left_out == "NA", "yes", "no"),
        het_sd=het,
        sex=stated,
        x_sites=x_sites if on_x.any() else np.nan,
        x_f=x_f,
        sex_from_x=sex,
        mendel_sites=np.where(children, sites, np.nan),
        mendel_errors=np.where(children, errors, np.nan),
        left_out=left_out,
    )


def autosomal_heterozygosity(rows: np.ndarray, which: np.ndarray, n_samples: int) -> pd.Series:
    """Return each sample's share of heterozygous among called genotypes at these rows."""
    from .genotypes_cpu import add_by_sample

    counts = np.zeros((n_samples, 4), np.int64)
    for first in range(0, len(which), CHUNK_SITES):
        add_by_sample(np.ascontiguousarray(rows[which[first : first + CHUNK_SITES]]), counts)
    return pd.Series(counts[:, 1] / np.maximum(counts[:, :3].sum(axis=1), 1))


def heterozygosity_deviation(
    heterozygosity: pd.Series, population: pd.Series, counted: np.ndarray
) -> np.ndarray:
    """Return each sample's deviation from its population median, in robust standard deviations.

    The standard deviation is 1.4826 times the median absolute deviation over the samples in
    `counted`, bool (n,). NaN in populations with fewer than five of them or without spread.
    """
    out = np.full(len(heterozygosity), np.nan)
    values = heterozygosity.to_numpy(np.float64)
    for label in population.unique():
        member = (population == label).to_numpy()
        known = values[member & counted]
        if len(known) >= LEAST_SAMPLES:
            middle = np.median(known)
            spread = 1.4826 * np.median(np.abs(known - middle))
            if spread > 0:
                out[member] = (values[member] - middle) / spread
    return out


def inside(pos: np.ndarray, regions) -> np.ndarray:
    """Return bool (n,): whether positions lie in a region, first and last position included."""
    within = np.zeros(len(pos), bool)
    for first, last in regions:
        within |= (pos >= first) & (pos <= last)
    return within


def _runs(rows: np.ndarray, which: np.ndarray, n_samples: int):
    for first in range(0, len(which), CHUNK_SITES):
        yield unpack_bed(np.ascontiguousarray(rows[which[first : first + CHUNK_SITES]]), n_samples)


def x_inbreeding(
    rows: np.ndarray,
    which: np.ndarray,
    n_samples: int,
    counted: np.ndarray,
    population: pd.Series,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the X inbreeding coefficient of each sample: near 1 in males, near 0 in females.

    F = 1 - observed / expected heterozygous sites. The expectation sums 2 p q over the sites called
    in the sample, with allele frequencies of the samples `counted` in its own population: pooled
    over populations, females would look inbred. Homozygous males do not bias p. Populations of
    fewer than five are pooled.

    Parameters
    ----------
    which : int array
        X sites outside the pseudo-autosomal regions.

    Returns
    -------
    sites : int64 array, (n_samples,)
        Sites with MAF >= X_MAF that are called in the sample.
    coefficient : float64 array, (n_samples,)
        NaN if these are fewer than LEAST_X_SITES, or if the call rate at the sites `which` is
        below LEAST_X_CALLED.
    """
    sizes = population[counted].value_counts()
    large = sizes.index[sizes >= LEAST_SAMPLES]
    labels = population.where(population.isin(large), "").to_numpy()
    observed, expected = np.zeros(n_samples), np.zeros(n_samples)
    n_sites, n_called = np.zeros(n_samples, np.int64), np.zeros(n_samples, np.int64)
    for genotypes in _runs(rows, which, n_samples):
        n_called += (genotypes != MISSING).sum(axis=0)
        for label in np.unique(labels):
            member = labels == label
            there = genotypes[:, member]
            called = there != MISSING
            of_these = called & counted[member]
            n = of_these.sum(axis=1)
            p = np.where(of_these, there, 0).sum(axis=1) / np.maximum(2 * n, 1)
            common = (np.minimum(p, 1 - p) >= X_MAF) & (n > 1)
            called, p = called[common], p[common]
            observed[member] += (there[common] == 1).sum(axis=0)
            expected[member] += called.T @ (2 * p * (1 - p))
            n_sites[member] += called.sum(axis=0)
    enough = (n_sites >= LEAST_X_SITES) & (n_called >= LEAST_X_CALLED * len(which))
    with np.errstate(invalid="ignore", divide="ignore"):
        return n_sites, np.where(enough, 1 - observed / expected, np.nan)


def mendel_errors(
    rows: np.ndarray, which: np.ndarray, n_samples: int, trios: list[tuple[int, int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Count Mendelian errors: genotypes of children that are impossible given their parents.

    Parameters
    ----------
    trios : list of (child, father, mother)
        Sample numbers, -1 for an unknown parent.

    Returns
    -------
    sites, errors : int64 arrays, (n_samples,)
        Sites called in the child and at least one parent, and the errors among them. A parent
        without a call may have transmitted either allele.
    """
    sites, errors = np.zeros(n_samples, np.int64), np.zeros(n_samples, np.int64)
    if not trios:
        return sites, errors
    child, father, mother = np.array(trios).T
    for genotypes in _runs(rows, which, n_samples):
        unknown = np.full((len(genotypes), 1), MISSING, np.int8)
        padded = np.concatenate([genotypes, unknown], axis=1)  # column -1 is an unknown parent
        c, f, m = padded[:, child], padded[:, father], padded[:, mother]
        known = (c != MISSING) & ((f != MISSING) | (m != MISSING))
        least = (f == 2).astype(np.int8) + (m == 2)
        most = (f != 0).astype(np.int8) + (m != 0)
        impossible = known & ((c < least) | (c > most))
        np.add.at(sites, child, known.sum(axis=0))
        np.add.at(errors, child, impossible.sum(axis=0))
    return sites, errors
