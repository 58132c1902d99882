"""Structure within each community: none, a continuum, or finer groups.

Components of the whole study show what parts its communities. Within one, the components of its own
samples are tested, as those of a study are, and the samples are looked at for a gap on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..embedding.noise_null import significant_axes
from ..embedding.relationship import CHUNK_SITES, alt_frequency, relationship_among
from ..io.errors import UserError
from ..io.sites import chunks
from .depth import Genotypes
from .splits import split_samples

#: Fewest and most samples of a community in which structure is looked for; of more, so many evenly
#: spaced.
FEWEST_SAMPLES, MOST_SAMPLES = 20, 500
#: Allele frequencies below this, in a community, do not count: a few carriers make components.
MIN_MAF = 0.02


def structure_within(
    genotypes: Genotypes, community: np.ndarray, fine: np.ndarray
) -> list[dict[str, Any]]:
    """What is known of each community, in their order.

    Parameters
    ----------
    community, fine : int arrays, (n,)
        Communities 1, 2, … and finer ones.

    Returns
    -------
    list of dict
        `community`, `samples`, `fine` (finer communities in it), `significant` (components of its
        own unrelated samples; None if these are fewer than FEWEST_SAMPLES) and `structure`:
        ``discrete`` where there are finer communities or where its own components show a gap,
        ``continuous`` where components are significant and show none, ``one`` where none is, and
        ``unknown`` for too few samples.
    """
    found = []
    for number in range(1, int(community.max()) + 1):
        members = np.flatnonzero(community == number)
        finer = len(np.unique(fine[members]))
        scores = own_components(genotypes, members)
        significant = None if scores is None else scores.shape[1]
        kind = "unknown" if scores is None else "continuous" if significant else "one"
        if finer > 1 or (significant and split_samples(scores).halves):
            kind = "discrete"
        found.append(
            {
                "community": number,
                "samples": len(members),
                "fine": finer,
                "significant": significant,
                "structure": kind,
            }
        )
    return found


def own_components(genotypes: Genotypes, members: np.ndarray) -> np.ndarray | None:
    """Scores of unrelated samples on significant components of their own, (m, k); None if too few.

    Parameters
    ----------
    members : int64 array
        Sample numbers, ascending.
    """
    own = members[genotypes.unrelated[members]]
    if len(own) < FEWEST_SAMPLES:
        return None
    own = own[np.linspace(0, len(own) - 1, min(len(own), MOST_SAMPLES)).astype(np.int64)]
    n, n_sites = len(own), len(genotypes.sites)
    parts = [genotypes.read(a, b)[:, own] for a, b in chunks(n_sites, CHUNK_SITES)]
    values = np.concatenate(parts) if parts else np.empty((0, n), np.int8)
    af = alt_frequency(values)
    with np.errstate(invalid="ignore"):
        common = np.minimum(af, 1 - af) >= MIN_MAF
    values, af, sites = values[common], af[common], genotypes.sites[common]

    def read(first: int, last: int) -> np.ndarray:
        return values[first:last]

    relationship = relationship_among(read, [n], af)
    try:
        axes, tests, _ = significant_axes(relationship, read, [n], af, sites, "auto")
    except UserError:  # nothing varies
        return np.empty((n, 0))
    return axes.place(np.ones(n, bool), np.empty((0, n)), np.empty(0))[:, : tests.count]
