"""Diversity within populations: heterozygosity, private alleles, site-frequency spectrum."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .allele_counts import PopulationCounts
from .jackknife import jackknife
from .sum_names import OWN_SUMS

#: Most alleles that spectra are projected to.
MOST_ALLELES = 40
#: Share of the sites of a population that may have too few alleles for spectra and private alleles.
LEFT_OUT = 0.05


def population_table(
    counts: PopulationCounts,
    own: np.ndarray,
    starts: np.ndarray,
    base_pairs: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row a population.

    Parameters
    ----------
    own : float64 array, (n_blocks, n_populations, len(OWN_SUMS))
        `allele_sums.own_sums`.
    starts : int64 array, (n_blocks + 1,)
        `blocks.block_starts`.
    base_pairs : float64 array, (n_blocks,), optional
        Callable positions (`population.mask`); nucleotide diversity is only given with them.

    Returns
    -------
    DataFrame
        `population`, `people`, `pseudo_haploid`, `sites` (with two alleles), `call_rate`,
        `observed` and `expected` heterozygosity (means over sites, the latter unbiased) with their
        block jackknife errors, `f` = 1 - observed / expected with its error (diploid people),
        `polymorphic` sites; `hwe_sites` with both alleles among diploid people, the share of them
        whose exact test of Hardy-Weinberg proportions has a mid-p below 0.05 (`hwe_low`), and
        that expected by chance (`hwe_expected`); `private` alleles a site with their error,
        expected among as many alleles of each population (`private_alleles`, see `alleles_reached`;
        NA of a population alone); `pi`, `pi_error`, `blocks`.
    """
    from .allele_sums_cpu import private_sums
    from .equilibrium_cpu import low_sites

    drawn = max(alleles_reached(counts), 2)
    found, compared = private_sums(counts.alleles, starts, drawn)
    if len(counts.names) < 2:
        compared = np.zeros(len(compared))
    private = jackknife(found, compared[:, None], compared[:, None])
    sums = {name: own[..., k] for k, name in enumerate(OWN_SUMS)}
    expected = jackknife(sums["he"], sums["sites"], sums["sites"])
    observed = jackknife(sums["ho"], sums["ho_sites"], sums["ho_sites"])
    share = jackknife(sums["ho"], sums["he_diploid"], sums["ho_sites"])
    tested, low, chance = low_sites(counts.genotypes).T
    with np.errstate(invalid="ignore"):
        low, chance = low / tested, chance / tested
    most = counts.most_alleles * max(len(counts.alleles), 1)
    table = pd.DataFrame(
        {
            "population": counts.names,
            "people": counts.people,
            "pseudo_haploid": counts.pseudo_haploid,
            "sites": sums["sites"].sum(axis=0).astype(np.int64),
            "call_rate": sums["called"].sum(axis=0) / np.maximum(most, 1),
            "observed": observed.value,
            "observed_error": observed.error,
            "expected": expected.value,
            "expected_error": expected.error,
            "f": 1 - share.value,
            "f_error": share.error,
            "polymorphic": sums["polymorphic"].sum(axis=0).astype(np.int64),
            "hwe_sites": tested.astype(np.int64),
            "hwe_low": low,
            "hwe_expected": chance,
            "private": private.value,
            "private_error": private.error,
            "private_alleles": drawn,
            "pi": np.nan,
            "pi_error": np.nan,
            "blocks": expected.blocks,
        }
    )
    if base_pairs is not None:
        found = jackknife(sums["masked_he"], base_pairs[:, None], base_pairs[:, None])
        table["pi"], table["pi_error"] = found.value, found.error
    return table


def alleles_reached(counts: PopulationCounts) -> int:
    """The most alleles that 1 - LEFT_OUT of the sites of every population have; 0 without any.

    Sites at which nobody counts, as those on X, do not matter.
    """
    return int(_reached(counts).min(initial=2**31 - 1)) if counts.alleles[..., 0].any() else 0


def without_alleles(counts: PopulationCounts) -> list[str]:
    """Populations that lack two alleles at more than LEFT_OUT of the sites."""
    return [name for name, most in zip(counts.names, _reached(counts), strict=True) if most < 2]


def _reached(counts: PopulationCounts) -> np.ndarray:
    """The most alleles that 1 - LEFT_OUT of the sites of each population have: int (n,)."""
    called = counts.alleles[..., 0]
    called = called[called.any(axis=1)]
    last = int(LEFT_OUT * (len(called) - 1))
    own = [np.partition(column, last)[last] if len(column) else 0 for column in called.T]
    return np.array(own, np.int64)


def spectrum(counts: PopulationCounts) -> pd.DataFrame:
    """Site-frequency spectra of all populations, projected to one number of alleles.

    Sites differ in the number of alleles called. Each adds the hypergeometric chances of drawing k
    ALT alleles among m of its n (as in dadi and easySFS), so that spectra can be compared; with
    m = n these are counts of sites. m is the largest even number that 95 % of the sites of every
    population reach, and at most MOST_ALLELES.

    Returns
    -------
    DataFrame
        `population`, `alleles` (m), `count` (k, 0 to m), `sites` with k ALT alleles, `folded`:
        sites whose rarer allele has count k (0 for k > m / 2), `sites_used`.
    """
    called, alt = counts.alleles[..., 0], counts.alleles[..., 1]
    columns = ["population", "alleles", "count", "sites", "folded", "sites_used"]
    m = min(alleles_reached(counts) // 2 * 2, MOST_ALLELES)
    if m < 2:
        return pd.DataFrame(columns=columns)
    parts = []
    for k, name in enumerate(counts.names):
        known = called[:, k] >= m
        values, folded = _projected(called[known, k], alt[known, k], m)
        parts.append(
            pd.DataFrame(
                {
                    "population": name,
                    "alleles": m,
                    "count": np.arange(m + 1),
                    "sites": values,
                    "folded": folded,
                    "sites_used": int(known.sum()),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _projected(n: np.ndarray, alt: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Spectrum of sites with n alleles, alt of them ALT, among m drawn; and the folded one."""
    size, derived, times = _kinds(n.astype(np.int64), alt.astype(np.int64))
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size.max(initial=m) + 1)))])

    def choose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return logs[a] - logs[b] - logs[a - b]

    # The lowest possible count, and from each count to the next by the ratio of their chances.
    least = np.maximum(m - (size - derived), 0)
    chance = choose(derived, least) + choose(size - derived, m - least) - choose(size, m)
    chance = np.exp(chance) * times
    values = np.zeros(m + 1)
    for k in range(m + 1):
        begun = k >= least
        values[k] = chance[begun].sum()
        below = (k + 1) * np.where(begun, size - derived - m + k + 1.0, 1.0)
        chance *= np.where(begun, np.maximum((derived - k) * (m - k) / below, 0.0), 1.0)
    count = np.arange(m + 1)
    folded = np.where(
        count < m - count, values + values[::-1], np.where(2 * count == m, values, 0.0)
    )
    return values, folded


def _kinds(n: np.ndarray, alt: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Different pairs (n, alt), and how often each of them occurs."""
    low, width = int(n.min()) if len(n) else 0, int(n.max(initial=0)) + 1
    codes = (n - low) * width + alt
    if (width - low) * width <= 32 * len(n):  # faster than sorting
        counts = np.bincount(codes)
        kinds = np.flatnonzero(counts)
        times = counts[kinds]
    else:
        kinds, times = np.unique(codes, return_counts=True)
    return kinds // width + low, kinds % width, times
