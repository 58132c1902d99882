"""Sums over sites of what tells populations apart, by block of sites and pair of populations.

For two populations a and b with n alleles called, frequency p of ALT, and m people called of whom
a share h is heterozygous, at each site where both have at least two alleles (Hudson's F_ST in the
form of Bhatia et al. 2013, Genome Research 23, equation 10):

    f2  = (p_a - p_b)^2 - p_a (1 - p_a) / (n_a - 1) - p_b (1 - p_b) / (n_b - 1)
    d   = p_a (1 - p_b) + p_b (1 - p_a)            F_ST = sum of f2 / sum of d

(of inbred populations what `PopulationCounts.sampling` says in place of p (1 - p) / (n - 1)),

the components of variance a (between populations), b (between people within populations) and c
(within people) of Weir and Cockerham (1984, equations 2 to 4) for two populations, over people
called, and the allele-sharing distance: sum over pairs of people of |g - g'| and number of pairs.
"""

from __future__ import annotations

import numba
import numpy as np

from ..core.threads import run_tasks
from .sum_names import OWN_SUMS, PAIR_SUMS


def pair_sums(
    alleles: np.ndarray,
    genotypes: np.ndarray,
    masked: np.ndarray,
    starts: np.ndarray,
    threads: int = 1,
    inbred: np.ndarray | None = None,
) -> np.ndarray:
    """Sums of all pairs of populations in each block of sites.

    Parameters
    ----------
    alleles : int32 array, (n_sites, n_populations, 2)
        Alleles called (two of a diploid, one of a pseudo-haploid sample) and those that are ALT.
    genotypes : int32 array, (n_sites, n_populations, 3)
        Diploid people with 0, 1, 2 ALT alleles.
    masked : bool array, (n_sites,)
        Whether a site lies in the mask.
    starts : int64 array, (n_blocks + 1,)
        First site of each block.
    inbred : bool array, (n_populations,), optional
        Populations whose samples are inbred.

    Returns
    -------
    float64 array, (n_blocks, n_pairs, len(PAIR_SUMS))
        Pairs (0, 1), (0, 2), …, (1, 2), … .
    """
    n = alleles.shape[1]
    out = np.zeros((len(starts) - 1, n * (n - 1) // 2, len(PAIR_SUMS)))
    tasks = [(block,) for block in range(len(starts) - 1)]
    inbred = np.zeros(n, bool) if inbred is None else inbred

    def work(block: int) -> None:
        part = slice(starts[block], starts[block + 1])
        pair_sums_loop(alleles[part], genotypes[part], masked[part], inbred, out[block])

    run_tasks(work, tasks, threads)
    return out


@numba.njit(nogil=True, cache=True)
def pair_sums_loop(alleles, genotypes, masked, inbred, out):
    n_populations = alleles.shape[1]
    p = np.zeros(n_populations)
    own = np.zeros(n_populations)
    known = np.zeros(n_populations, np.bool_)
    people = np.zeros(n_populations)
    q = np.zeros(n_populations)
    h = np.zeros(n_populations)
    for s in range(alleles.shape[0]):
        for k in range(n_populations):
            n, alt = alleles[s, k, 0], alleles[s, k, 1]
            m = genotypes[s, k, 0] + genotypes[s, k, 1] + genotypes[s, k, 2]
            people[k] = m
            known[k] = n > 1
            if n > 1:
                p[k] = alt / n
                own[k] = p[k] * (1.0 - p[k]) / (n - 1.0)
                if inbred[k]:
                    among = n * (n - 1.0) - 2.0 * m  # pairs of alleles of different samples
                    known[k] = among > 0.0
                    if known[k]:
                        own[k] = p[k] ** 2 - (alt * (alt - 1.0) - 2.0 * genotypes[s, k, 2]) / among
            if m > 0:
                q[k] = (genotypes[s, k, 1] + 2 * genotypes[s, k, 2]) / (2.0 * m)
                h[k] = genotypes[s, k, 1] / m
        pair = 0
        for a in range(n_populations):
            for b in range(a + 1, n_populations):
                if known[a] and known[b]:
                    d = p[a] * (1.0 - p[b]) + p[b] * (1.0 - p[a])
                    out[pair, 0] += 1.0
                    out[pair, 1] += (p[a] - p[b]) ** 2 - own[a] - own[b]
                    out[pair, 2] += d
                    if masked[s]:
                        out[pair, 9] += d
                x, y = people[a], people[b]
                if x > 0.0 and y > 0.0:
                    if x + y > 2.0:
                        mean = 0.5 * (x + y)
                        total = x + y
                        size = total - (x * x + y * y) / total
                        frequency = (x * q[a] + y * q[b]) / total
                        spread = (x * (q[a] - frequency) ** 2 + y * (q[b] - frequency) ** 2) / mean
                        het = (x * h[a] + y * h[b]) / total
                        rest = frequency * (1.0 - frequency) - 0.5 * spread
                        out[pair, 3] += 1.0
                        out[pair, 4] += mean / size * (spread - (rest - 0.25 * het) / (mean - 1.0))
                        out[pair, 5] += (
                            mean / (mean - 1.0) * (rest - (2.0 * mean - 1.0) / (4.0 * mean) * het)
                        )
                        out[pair, 6] += 0.5 * het
                    za, ea, va = genotypes[s, a, 0], genotypes[s, a, 1], genotypes[s, a, 2]
                    zb, eb, vb = genotypes[s, b, 0], genotypes[s, b, 1], genotypes[s, b, 2]
                    out[pair, 7] += (
                        float(za) * (eb + 2 * vb)
                        + float(ea) * (zb + vb)
                        + float(va) * (eb + 2 * zb)
                    )
                    out[pair, 8] += x * y
                pair += 1


def own_sums(
    alleles: np.ndarray,
    genotypes: np.ndarray,
    masked: np.ndarray,
    starts: np.ndarray,
    inbred: np.ndarray | None = None,
) -> np.ndarray:
    """Sums of each population in each block: float64 (n_blocks, n_populations, len(OWN_SUMS)).

    `sites` with two alleles or more, `called` alleles; `ho` sums the shares of heterozygotes over
    `ho_sites` with anyone diploid, `he` the unbiased 2 p (1 - p) n / (n - 1) over `sites`,
    `he_diploid` that of the diploid people over `ho_sites`; `polymorphic` sites have both alleles
    in the population. Of inbred populations both compare alleles of different samples alone, which
    `sites` and `ho_sites` must have.
    Parameters as in `pair_sums`.
    """
    n = alleles.shape[1]
    out = np.zeros((len(starts) - 1, n, len(OWN_SUMS)))
    inbred = np.zeros(n, bool) if inbred is None else inbred
    for block in range(len(starts) - 1):
        part = slice(starts[block], starts[block + 1])
        own_sums_loop(alleles[part], genotypes[part], masked[part], inbred, out[block])
    return out


@numba.njit(nogil=True, cache=True)
def own_sums_loop(alleles, genotypes, masked, inbred, out):
    n_populations = alleles.shape[1]
    for s in range(alleles.shape[0]):
        for k in range(n_populations):
            n, alt = alleles[s, k, 0], alleles[s, k, 1]
            out[k, 1] += n
            out[k, 5] += alt
            if 0 < alt < n:
                out[k, 6] += 1.0
            m = genotypes[s, k, 0] + genotypes[s, k, 1] + genotypes[s, k, 2]
            both = genotypes[s, k, 1]  # ordered pairs of different alleles within samples: twice
            pairs = n * (n - 1.0)
            differ = 2.0 * alt * (n - alt)
            if inbred[k]:
                pairs -= 2.0 * m
                differ -= 2.0 * both
            if pairs > 0.0:
                he = differ / pairs
                out[k, 0] += 1.0
                out[k, 4] += he
                if masked[s]:
                    out[k, 7] += he
            if m > 0:
                own = genotypes[s, k, 1] + 2.0 * genotypes[s, k, 2]
                pairs = 2.0 * m * (2.0 * m - 1.0)
                differ = 2.0 * own * (2.0 * m - own)
                if inbred[k]:
                    pairs -= 2.0 * m
                    differ -= 2.0 * both
                if pairs > 0.0:
                    out[k, 2] += 1.0
                    out[k, 3] += genotypes[s, k, 1] / m
                    out[k, 8] += differ / pairs


def private_sums(
    alleles: np.ndarray, starts: np.ndarray, drawn: int
) -> tuple[np.ndarray, np.ndarray]:
    """Private alleles expected among as many alleles of each population, by rarefaction.

    Of g alleles drawn from each population, without replacement from the n called there, an allele
    with count c is not among those of a population with the chance (Kalinowski 2004, Conservation
    Genetics 5; ADZE: Szpiech et al. 2008, Bioinformatics 24)

        Q = C(n - c, g) / C(n, g),

    so that population j has the sum over both alleles of (1 - Q_j) times the product of the Q of
    all others.

    Parameters
    ----------
    alleles, starts
        As in `pair_sums`.
    drawn : int
        g. Sites where a population has fewer alleles are left out.

    Returns
    -------
    private : float64 array, (n_blocks, n_populations)
    sites : float64 array, (n_blocks,)
    """
    most = int(alleles[..., 0].max(initial=1))
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, most + 1)))])
    out = np.zeros((len(starts) - 1, alleles.shape[1]))
    sites = np.zeros(len(out))
    for block in range(len(out)):
        sites[block] = private_sums_loop(
            alleles[starts[block] : starts[block + 1]], drawn, logs, out[block]
        )
    return out, sites


@numba.njit(nogil=True, cache=True)
def private_sums_loop(alleles, drawn, logs, out):
    n_populations = alleles.shape[1]
    absent = np.ones(n_populations)
    before = np.ones(n_populations + 1)
    used = 0
    for s in range(alleles.shape[0]):
        least = alleles[s, 0, 0] if n_populations else 0
        for k in range(1, n_populations):
            least = min(least, alleles[s, k, 0])
        if least < drawn:
            continue
        used += 1
        for ref in range(2):
            for k in range(n_populations):
                n, alt = alleles[s, k, 0], alleles[s, k, 1]
                rest = alt if ref else n - alt  # alleles of the other kind
                if rest == n:
                    absent[k] = 1.0
                elif rest < drawn:
                    absent[k] = 0.0
                else:
                    absent[k] = np.exp(logs[rest] - logs[rest - drawn] - logs[n] + logs[n - drawn])
                before[k + 1] = before[k] * absent[k]
            behind = 1.0
            for k in range(n_populations - 1, -1, -1):
                out[k] += (1.0 - absent[k]) * before[k] * behind
                behind *= absent[k]
    return used
