"""Likelihood ratios of genotype pairs: one shared allele against none, two against one.

A site's genotypes are drawn from allele frequencies (Hardy-Weinberg), and each observed genotype
has one allele misread with the error rate. The log10 ratio of a stretch of sites is the sum over
its sites: the LOD of Morton (1955). Sites count as independent. Linkage disequilibrium makes them
less so, which is why a segment needs a length as well as a LOD.
"""

from __future__ import annotations

import numpy as np

#: Ratios are kept as whole numbers of 1/SCALE of a log10, so that sums are the same in any order.
SCALE = 4096
#: Frequencies nearer to 0 or 1 are moved here: no genotype is impossible.
LEAST_FREQUENCY = 1e-3
#: Share of a site's gain that counts to the score of ends: neighbours in linkage disequilibrium say
#: the same. With 1, three times as many false segments of 5 cM are kept, and 0.3 % more true ones.
GAIN_SHARE = 0.6


def misreadings(error_rate: float) -> np.ndarray:
    """Chance of each observed genotype (columns) by true genotype (rows): float64 (3, 3).

    With `error_rate` one allele is misread; of a heterozygote either one, equally often.
    """
    e = error_rate
    return np.array([[1 - e, e, 0], [e / 2, 1 - e, e / 2], [0, e, 1 - e]])


def genotype_pairs(af: np.ndarray, shared: int) -> np.ndarray:
    """Chance of each pair of true genotypes of two people: float64 (n_sites, 3, 3).

    Parameters
    ----------
    af : float64 array, (n_sites,)
        Frequency of ALT.
    shared : int
        Alleles that the two share by descent: 0, 1 or 2.
    """
    p = np.asarray(af, np.float64)[:, None, None]
    q = 1 - p
    alone = np.concatenate([q * q, 2 * p * q, p * p], axis=1)
    if shared == 0:
        return alone * alone.transpose(0, 2, 1)
    if shared == 2:
        return alone * np.eye(3)
    found = np.zeros((len(p), 3, 3))
    for common, chance in ((0, q), (1, p)):
        for own, of_own in ((0, q), (1, p)):
            for other, of_other in ((0, q), (1, p)):
                found[:, common + own, common + other] += (chance * of_own * of_other)[:, 0, 0]
    return found


def _seen_pairs(af: np.ndarray, error_rate: float, shared: int) -> np.ndarray:
    """Chance of each pair of observed genotypes: float64 (n_sites, 3, 3), none of them 0."""
    read = misreadings(error_rate)
    p = np.clip(np.nan_to_num(af, nan=0.5), LEAST_FREQUENCY, 1 - LEAST_FREQUENCY)
    return read.T @ genotype_pairs(p, shared) @ read


def all_seen_pairs(af: np.ndarray, error_rate: float) -> list[np.ndarray]:
    """Chances of observed genotype pairs with 0, 1 and 2 shared alleles, for functions below."""
    return [_seen_pairs(np.asarray(af, np.float64), error_rate, shared) for shared in range(3)]


def log_ratios(
    af: np.ndarray, error_rate: float, shared: int, seen: list[np.ndarray] | None = None
) -> np.ndarray:
    """log10 of the ratio of sharing `shared` alleles to sharing one fewer, as whole numbers.

    Parameters
    ----------
    af : float64 array, (n_sites,)
        Frequency of ALT; NaN: the site says nothing.
    error_rate : float
        Share of genotypes with one allele misread, above 0.
    shared : int
        1 or 2.
    seen : list of arrays, optional
        `all_seen_pairs`, if they are known.

    Returns
    -------
    int32 array, (n_sites, 16)
        In units of 1 / SCALE; the column is 4 x genotype + other genotype, missing ones 3 and 0.
    """
    af = np.asarray(af, np.float64)
    seen = seen or all_seen_pairs(af, error_rate)
    more, fewer = seen[shared], seen[shared - 1]
    table = np.zeros((len(af), 4, 4), np.int32)
    table[:, :3, :3] = np.rint(SCALE * np.log10(more / fewer))
    table[np.isnan(af)] = 0
    return table.reshape(len(af), 16)


def end_scores(
    af: np.ndarray, error_rate: float, shared: int, seen: list[np.ndarray] | None = None
) -> np.ndarray:
    """log10 ratios as of `log_ratios`, of what contradicts a segment and what does not.

    Where a segment ends is told by opposite homozygotes (one shared allele) or differing genotypes
    (two), which it can have by errors only. All other pairs of genotypes of a site score alike:
    in linkage disequilibrium neighbours say the same, and where they speak against a segment, they
    could end one that nothing contradicts.

    Returns
    -------
    int32 array, (n_sites, 2)
        In units of 1 / SCALE: of a pair that does not contradict, of one that does.
    """
    af = np.asarray(af, np.float64)
    seen = seen or all_seen_pairs(af, error_rate)
    pairs = seen[shared], seen[shared - 1]
    steps = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    against = [np.sum(one * (steps > 2 - shared), axis=(1, 2)) for one in pairs]
    gain = GAIN_SHARE * np.log10((1 - against[0]) / (1 - against[1]))
    loss = np.log10(against[0] / against[1])
    table = np.rint(SCALE * np.stack([gain, loss], axis=1)).astype(np.int32)
    table[np.isnan(af)] = 0
    return table


def contradictions(af: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chance of a contradiction at the error rate e, ``linear * e + square * e**2``.

    Returns
    -------
    linear, square : float64 arrays, (n_sites, 2)
        Of opposite homozygotes with one shared allele, and of different genotypes with two; 0 where
        `af` is NaN.
    """
    af = np.asarray(af, np.float64)
    steps = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    at = []
    for rate in (0.25, 0.5):  # a polynomial of degree two without a constant
        seen = [_seen_pairs(af, rate, shared) for shared in (1, 2)]
        at.append(
            np.stack([(seen[0] * (steps > 1)).sum((1, 2)), (seen[1] * (steps > 0)).sum((1, 2))], 1)
        )
    square = 8 * (at[1] - 2 * at[0])
    linear = 4 * at[0] - square / 4
    linear[np.isnan(af)] = square[np.isnan(af)] = 0
    return linear, square


def expected_lod(af: np.ndarray, error_rate: float) -> np.ndarray:
    """Mean log10 ratio that a site adds between two people who share one allele: (n_sites,)."""
    table = log_ratios(af, error_rate, 1).reshape(-1, 4, 4)[:, :3, :3] / SCALE
    return np.sum(table * _seen_pairs(af, error_rate, 1), axis=(1, 2))
