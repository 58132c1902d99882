"""Doubletons: alleles that two copies of a sample set carry, and which populations share them.

Such an allele is young, so both copies descend from a recent ancestor: who shares doubletons with
whom tells of recent contacts that common alleles do not show (Mathieson and McVean 2014).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Largest share of missing calls at a site that counts: where many are missing, an allele with two
#: copies among the others may have more.
MOST_MISSING = 0.05


def doubleton_sites(counts: np.ndarray, n_samples: int) -> np.ndarray:
    """Sites at which two heterozygotes carry the rarer allele, and nobody else.

    Parameters
    ----------
    counts : int array, (n_sites, 3)
        Samples with 0, 1, 2 ALT alleles; the others are missing.
    n_samples : int
        Samples, missing ones too.

    Returns
    -------
    int64 array
        Their numbers. Not of sites where more than MOST_MISSING of the samples are missing.
    """
    ref, het, alt = np.asarray(counts, np.int64).T
    enough = n_samples - ref - het - alt <= MOST_MISSING * n_samples
    return np.flatnonzero((het == 2) & ((ref == 0) | (alt == 0)) & enough)


def find_carriers(words: np.ndarray, sites: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """The two heterozygotes of each of these sites: int64 (len(sites), 2), numbers of samples.

    Parameters
    ----------
    words : uint64 array, (n_samples, 2 or 3, n_words)
        Planes u, v and, if calls are missing, c.
    sites : int array
        `doubleton_sites` of these samples.
    samples : int array
        Numbers of the samples that count, rising.
    """
    found = np.empty((len(sites), 2), np.int64)
    n_found = np.zeros(len(sites), np.int64)
    word, bit = sites >> 6, (sites & 63).astype(np.uint64)
    for sample in samples:
        planes = words[sample][:, word]
        het = planes[0] & ~planes[1]
        if len(planes) == 3:
            het &= planes[2]
        here = np.flatnonzero(het >> bit & np.uint64(1))
        found[here, n_found[here]] = sample
        n_found[here] += 1
    return found


def sharing_table(carriers: np.ndarray, group: np.ndarray, names: list[str]) -> pd.DataFrame:
    """How many doubletons pairs of groups share, beside what chance gives.

    Chance means that labels are assigned to samples at random; doubletons stay where they are.
    With w doubletons of a pair of samples, a number of a pair of groups is the sum of w over their
    pairs of samples. Its mean is p2 S; its variance is p2 Q + p3 R + p4 (S^2 - Q - R) - (p2 S)^2:
    S and Q are the sums of w and w^2, R the sum of w w' over ordered pairs of pairs with one sample
    in common, and p2, p3, p4 the probabilities that a pair, two such pairs, and two pairs without a
    common sample are of these groups (as the join counts of Cliff and Ord 1981).

    Parameters
    ----------
    carriers : int64 array, (n, 2)
        Samples that share each doubleton.
    group : int64 array, (n_samples,)
        Group of each sample; -1: none.
    names : list of str

    Returns
    -------
    DataFrame
        As `popdesic.shared_doubletons` returns it.
    """
    k = len(names)
    one, other = np.triu_indices(k)
    number = np.empty((k, k), np.int64)
    number[one, other] = number[other, one] = np.arange(len(one))
    size = np.bincount(group[group >= 0], minlength=k).astype(np.float64)
    shared = np.bincount(number[tuple(group[carriers].T)], minlength=len(one))
    each, weight = np.unique(np.sort(carriers, axis=1), axis=0, return_counts=True)
    of_sample = np.bincount(each.T.ravel(), np.tile(weight, 2), minlength=len(group))
    s, q = float(weight.sum()), float((weight * weight).sum())
    r = float((of_sample**2).sum()) - 2 * q
    a, b, same = size[one], size[other], one == other
    n2, n3, n4 = np.maximum(np.multiply.accumulate(size.sum() - np.arange(4)), 1)[1:]
    p2 = np.where(same, a * (a - 1), 2 * a * b) / n2
    p3 = np.where(same, a * (a - 1) * (a - 2), a * b * (a + b - 2)) / n3
    p4 = (a - 1) * np.where(same, a * (a - 2) * (a - 3), 4 * a * b * (b - 1)) / n4
    variance = p2 * q + p3 * r + p4 * (s * s - q - r) - (p2 * s) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = shared / (p2 * s)
        z = np.where(variance > 1e-9 * s * s, (shared - p2 * s) / np.sqrt(variance), np.nan)
    table = pd.DataFrame(
        {
            "population1": np.array(names, object)[one],
            "population2": np.array(names, object)[other],
            "doubletons": shared,
            "expected": p2 * s,
            "ratio": ratio,
            "z": z,
        }
    )
    return table[p2 > 0].reset_index(drop=True)
