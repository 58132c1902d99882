"""Mixture analysis: does a sample with several people's DNA contain a given person's?

A research tool, not for casework. It assumes independent sites (LD makes all evidence too strong),
contributors unrelated to each other and to the tested person (a contributor's relatives are
included far too often), the panel's frequencies, and the same error rates at all sites.
"""

from __future__ import annotations

import numpy as np

from ..engine.terms import Product, Terms

#: Sites at which the reference (second block) has an allele that the mixture (first block) lacks,
#: and jointly called sites: r & ~m (FastID mixture analysis).
MIXTURE = Terms(
    ("absent", "called"),
    (
        Product(0, 1, "z", "u"),
        Product(0, 1, "v", "z"),
        Product(0, 1, "v", "e"),
        Product(1, 1, "c", "c"),
    ),
)
#: Contamination is sought at sites of at least this minor allele frequency (on the
#: panel). At a rare site almost nobody has an allele that someone else lacks.
COMMON = 0.05
#: Most references that are listed for a sample, those with the fewest absent alleles: a sample with
#: heterozygotes at all sites has the alleles of everyone.
MOST_REFERENCES = 20
#: Largest share of common sites at which a contributor has an allele that the mixture lacks.
MOST_ABSENT = 0.02
#: Chances that an allele of a contributor is not seen, and that an allele of nobody is.
DROPOUT, DROP_IN = 0.05, 0.01
#: Most contributors that are tried if their number is not given.
MOST_CONTRIBUTORS = 6
#: A reference is included at or above this log10 likelihood ratio, excluded at or below minus it.
DECISIVE = 4.0


def common_sites(af: np.ndarray) -> np.ndarray:
    """Sites at which contamination is sought: bool (n_sites,), from the panel's ALT frequencies."""
    return np.minimum(af, 1 - af) >= COMMON


def absent_by_chance(af: np.ndarray) -> float:
    """Expected share of sites at which someone has an allele that an unrelated person lacks.

    The mean over sites of ``q²(1 - q²) + p²(1 - p²)``, with allele frequencies p and q.
    """
    alt, ref = af**2, (1 - af) ** 2
    return float(np.mean(ref * (1 - ref) + alt * (1 - alt)))


def screening_limit(af: np.ndarray, max_absent: float) -> float:
    """The limit of absent alleles over all sites that corresponds to `max_absent` at common ones.

    An allele of a contributor that is not seen is a heterozygote's, nearly always. So the absent
    alleles of a true contributor are spread over the sites as heterozygotes are, 2pq.
    """
    het, common = af * (1 - af), common_sites(af)
    at_common = float(het[common].sum())
    if not at_common:
        return -1.0
    return max_absent * float(common.mean()) * float(het.sum()) / at_common


def detection(copies: np.ndarray, dropout: float, drop_in: float) -> np.ndarray:
    """Probability that an allele is seen, given its number of copies among the contributors.

    ``1 - dropout**copies * (1 - drop_in)``: each copy may drop out independently, and any allele
    may drop in (semi-continuous model; Curran, Gill and Bill 2005).
    """
    return 1 - dropout ** copies.astype(np.float64) * (1 - drop_in)


def evidence_tables(
    mixture: np.ndarray, af: np.ndarray, contributors: int, *, dropout: float, drop_in: float
) -> tuple[np.ndarray, np.ndarray]:
    """Probability of the alleles seen at each site, with and without a given reference.

    Parameters
    ----------
    mixture : int8 array, (n_sites,)
        0: only REF seen, 1: both, 2: only ALT, -1: not called.
    af : float64 array, (n_sites,)
    contributors : int
        Number of people in the mixture, the reference included.

    Returns
    -------
    with_reference : float64 array, (n_sites, 3)
        log10 P(evidence | reference of genotype 0, 1, 2 and contributors - 1 unknown people);
        0 if the mixture is not called.
    unknown : float64 array, (n_sites,)
        log10 P(evidence | `contributors` unknown people).
    """
    from scipy.special import gammaln, xlogy

    p = np.clip(af, 5e-5, 1 - 5e-5)
    called = mixture >= 0
    ref_shows, alt_shows = mixture <= 1, mixture >= 1

    def probability(known: int, n_unknown: int) -> np.ndarray:
        """Sum over the unknown people's ALT count; known: reference's genotype or -1."""
        n = 2 * n_unknown
        alt = np.arange(n + 1)
        log_binomial = gammaln(n + 1) - gammaln(alt + 1) - gammaln(n - alt + 1)
        weight = np.exp(log_binomial + xlogy(alt, p[:, None]) + xlogy(n - alt, 1 - p[:, None]))
        total = n + (2 if known >= 0 else 0)
        copies = alt + max(known, 0)
        of_alt = detection(copies, dropout, drop_in)
        of_ref = detection(total - copies, dropout, drop_in)
        of_alt = np.where(alt_shows[:, None], of_alt, 1 - of_alt)
        of_ref = np.where(ref_shows[:, None], of_ref, 1 - of_ref)
        return (weight * of_alt * of_ref).sum(axis=1)

    with np.errstate(divide="ignore"):
        known = np.stack([np.log10(probability(g, contributors - 1)) for g in range(3)], axis=1)
        unknown = np.log10(probability(-1, contributors))
    return np.where(called[:, None], known, 0.0), np.where(called, unknown, 0.0)


def count_contributors(
    mixture: np.ndarray, af: np.ndarray, *, dropout: float, drop_in: float
) -> int:
    """The most likely number of unknown people, 1 to MOST_CONTRIBUTORS."""
    likelihoods = [
        evidence_tables(mixture, af, n, dropout=dropout, drop_in=drop_in)[1].sum()
        for n in range(1, MOST_CONTRIBUTORS + 1)
    ]
    return int(np.argmax(likelihoods)) + 1


def likelihood_ratios(
    mixture: np.ndarray,
    references: np.ndarray,
    af: np.ndarray,
    contributors: int,
    *,
    dropout: float,
    drop_in: float,
) -> np.ndarray:
    """log10 likelihood ratio of each reference being in the mixture.

    P(evidence | reference + contributors - 1 unknown) / P(evidence | contributors unknown), over
    jointly called sites.

    Parameters
    ----------
    mixture : int8 array, (n_sites,)
    references : int8 array, (n_references, n_sites)
        Genotypes, -1 missing.

    Returns
    -------
    float64 array, (n_references,)
    """
    known, unknown = evidence_tables(mixture, af, contributors, dropout=dropout, drop_in=drop_in)
    gain = known - unknown[:, None]
    sites = np.arange(len(af))
    return np.array(
        [np.where(row >= 0, gain[sites, np.maximum(row, 0)], 0.0).sum() for row in references]
    )


def log10_rmne(mixture: np.ndarray, af: np.ndarray, absent: int) -> float:
    """Bound on the probability that a random person is not excluded (RMNE), as log10.

    A random person has an allele that the mixture lacks with probability 1 - (1 - p)^2 if only
    REF is seen, 1 - p^2 if only ALT is seen. The probability of at most `absent` such sites is at
    most min over t >= 0 of exp(t absent) prod (1 - q + q exp(-t)) (Chernoff). This upper bound is
    returned; it holds if sites are independent.
    """
    p = np.clip(af, 5e-5, 1 - 5e-5)
    lacks = np.select([mixture == 0, mixture == 2], [1 - (1 - p) ** 2, 1 - p**2], 0.0)
    lacks = lacks[lacks > 0]
    if absent >= lacks.sum():
        return 0.0

    def bound(t: float) -> float:
        return float(t * absent + np.log1p(-lacks * -np.expm1(-t)).sum())

    if absent == 0:
        return float(np.log1p(-lacks).sum() / np.log(10))
    low, high = 0.0, 1.0
    while bound(high * 2) < bound(high) and high < 64:
        high *= 2
    high *= 2
    for _ in range(80):  # the bound is convex in t
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if bound(left) <= bound(right):
            high = right
        else:
            low = left
    return min(0.0, bound((low + high) / 2) / np.log(10))


def verdict(log10_lr: float) -> str:
    """Verdict for a likelihood ratio."""
    if log10_lr >= DECISIVE:
        return "included"
    return "excluded" if log10_lr <= -DECISIVE else "undecided"
