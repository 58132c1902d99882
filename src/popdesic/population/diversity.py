"""Diversity within populations: heterozygosity, private alleles, site-frequency spectrum."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..engine.sum_names import OWN_SUMS
from .allele_counts import PopulationCounts
from .jackknife import jackknife

#: Most alleles that spectra are projected to.
MOST_ALLELES = 40
#: Share of the sites of a population that may have too few alleles for its spectrum.
LEFT_OUT = 0.05


def population_table(
    counts: PopulationCounts,
    own: np.ndarray,
    base_pairs: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row a population.

    Parameters
    ----------
    own : float64 array, (n_blocks, n_populations, len(OWN_SUMS))
        `allele_sums.own_sums`.
    base_pairs : float64 array, (n_blocks,), optional
        Callable positions (`population.mask`); nucleotide diversity is only given with them.

    Returns
    -------
    DataFrame
        `population`, `people`, `pseudo_haploid`, `sites` (with two alleles), `call_rate`,
        `observed` and `expected` heterozygosity (means over sites, the latter unbiased) with their
        block jackknife errors, `f` = 1 - observed / expected with its error (diploid people),
        `polymorphic` sites, `private` alleles, `pi`, `pi_error`, `blocks`.
    """
    sums = {name: own[..., k] for k, name in enumerate(OWN_SUMS)}
    expected = jackknife(sums["he"], sums["sites"], sums["sites"])
    observed = jackknife(sums["ho"], sums["ho_sites"], sums["ho_sites"])
    share = jackknife(sums["ho"], sums["he_diploid"], sums["ho_sites"])
    diploid = counts.people - counts.pseudo_haploid
    most = (2 * diploid + counts.pseudo_haploid) * max(len(counts.alleles), 1)
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
            "private": sums["private"].sum(axis=0).astype(np.int64),
            "pi": np.nan,
            "pi_error": np.nan,
            "blocks": expected.blocks,
        }
    )
    if base_pairs is not None:
        found = jackknife(sums["masked_he"], base_pairs[:, None], base_pairs[:, None])
        table["pi"], table["pi_error"] = found.value, found.error
    return table


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
    if not called.size:
        return pd.DataFrame(columns=columns)
    reach = np.quantile(called, LEFT_OUT, axis=0, method="lower").min()
    m = min(int(reach) // 2 * 2, MOST_ALLELES)
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
    most = int(n.max(initial=0)) + 1
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])

    def choose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        inside = (b >= 0) & (b <= a)
        b = np.where(inside, b, 0)
        return np.where(inside, logs[a] - logs[b] - logs[a - b], -np.inf)

    kinds, times = np.unique(n.astype(np.int64) * (most + 1) + alt, return_counts=True)
    size, derived = kinds // (most + 1), kinds % (most + 1)
    k = np.arange(m + 1)
    chance = np.exp(
        choose(derived[:, None], k[None])
        + choose((size - derived)[:, None], m - k[None])
        - choose(size, np.full(len(size), m))[:, None]
    )
    exact = size == m
    chance[exact] = derived[exact, None] == k
    values = times @ chance
    folded = np.where(k < m - k, values + values[::-1], np.where(2 * k == m, values, 0.0))
    return values, folded
