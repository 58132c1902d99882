"""Groups, and samples of mixed ancestry between them: who is mixed, and in which shares, is known.

The groups and amounts of drift differ from those of `worlds`: two to five sources of uneven size,
some with populations of their own and families, and mixed people in a few ways at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import populations
from .worlds import MIN_MAF, drift

#: Sites drawn, numbers of sources, F of the drift of each from their ancestor, and their people.
SITES, SOURCES, DRIFT, PEOPLE = 5_000, (2, 5), (0.02, 0.12), (40, 200)
#: F of populations of a source, and most of them.
WITHIN, MOST_POPULATIONS = (0.001, 0.006), 3
#: Couples of a source with families, who have three children each.
COUPLES = 8


@dataclass(frozen=True, eq=False)
class Bridged:
    """People of a few sources, and mixed ones.

    Attributes
    ----------
    genotypes : int8 array, (n_sites, n)
    chrom, pos : arrays, (n_sites,)
    shares : float64 array, (n, n_sources)
        Ancestry; one 1 in each row of an unmixed person.
    related : bool array, (n,)
        Children of others that are there.
    """

    genotypes: np.ndarray
    chrom: np.ndarray
    pos: np.ndarray
    shares: np.ndarray
    related: np.ndarray


def bridged(seed: int, sites: int = SITES) -> Bridged:
    """Draw sources and the mixed between them; the same seed gives the same people."""
    rng = np.random.default_rng([seed, *b"bridges"])
    count = int(rng.integers(SOURCES[0], SOURCES[1] + 1))
    root = rng.beta(0.8, 0.8, sites)
    af = np.array([drift(rng, root, rng.uniform(*DRIFT)) for _ in range(count)])
    genotypes, shares, related = [], [], []

    def add(frequencies: np.ndarray, share: np.ndarray, is_related: bool = False) -> None:
        n = len(share)
        drawn = rng.binomial(2, np.broadcast_to(frequencies, (n, sites))).astype(np.int8)
        include(drawn, share, is_related)

    def include(drawn: np.ndarray, share: np.ndarray, is_related: bool) -> None:
        genotypes.append(drawn)
        shares.append(share)
        related.extend([is_related] * len(share))

    families = int(rng.integers(-count, count))
    for source in range(count):
        own = np.zeros(count)
        own[source] = 1
        for _ in range(int(rng.integers(1, MOST_POPULATIONS + 1))):
            n = int(rng.integers(*PEOPLE)) // 2 + 20
            add(drift(rng, af[source], rng.uniform(*WITHIN)), np.tile(own, (n, 1)))
        if source == families:
            parents = genotypes[-1][: 2 * COUPLES] / 2
            pairs = np.repeat(np.arange(COUPLES), 3)
            children = rng.binomial(1, parents[2 * pairs]) + rng.binomial(1, parents[2 * pairs + 1])
            include(children.astype(np.int8), np.tile(own, (3 * COUPLES, 1)), True)
    for kind in rng.permutation(["first", "shares", "few", "three"])[: rng.integers(1, 4)]:
        n = int(rng.integers(8, 60))
        share = np.zeros((n, count))
        one, other = rng.permutation(count)[:2]
        if kind == "three" and count > 2:
            some = rng.permutation(count)[:3]
            share[:, some] = rng.dirichlet(rng.uniform(2, 8, 3), n)
        else:
            part = {"few": rng.uniform(0.05, 0.3, n)}.get(kind, rng.uniform(0.1, 0.9, n))
            if kind == "first":
                part = np.full(n, 0.5)
            share[:, one], share[:, other] = part, 1 - part
        if kind == "first":  # one copy from each source
            copies = [rng.binomial(1, np.broadcast_to(af[k], (n, sites))) for k in (one, other)]
            include(np.sum(copies, axis=0).astype(np.int8), share, False)
        else:
            add(np.clip(share @ af, 0, 1), share)
    found = np.concatenate(genotypes).T
    maf = found.mean(axis=1) / 2
    found = found[np.minimum(maf, 1 - maf) >= MIN_MAF]
    return Bridged(
        found, *populations.spread_out(len(found)), np.concatenate(shares), np.array(related)
    )
