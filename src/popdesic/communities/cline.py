"""Whether samples without a gap between them spread as along a gradient.

That no gap supports a split does not make a gradient: families in a population without structure
leave most samples in one spot, and groups that mixed samples join have a gap that is deep but
narrow. Along a gradient (a cline, or isolation by distance on a line or in a plane) samples are
spread over the whole of the coordinate along which they differ most.
"""

from __future__ import annotations

import numpy as np

from .splits import FEWEST, MAX_P, MIN_DIP, Gap
from .straighten import neighbor_graph, straight_coordinates

#: Smallest share of the range that the middle four fifths of the samples take up. In simulations
#: chains, grids and gradients of admixture have 0.57 to 0.87, families among unrelated samples that
#: leave no gap at most 0.39; a normal distribution has 0.55 (tests/unit/communities/test_cline.py).
LEAST_SPREAD = 0.5
#: Shares of the samples between which the middle and the range lie.
MIDDLE, RANGE = (0.1, 0.9), (0.01, 0.99)


def measure_spread(scores: np.ndarray, threads: int = 1) -> float | None:
    """Share of the range that the middle four fifths of the samples take up.

    Measured on the first straight coordinate (`straighten`).

    Parameters
    ----------
    scores : float64 array, (n, k)
        On the significant principal components.
    threads : int
        Changes no byte.

    Returns
    -------
    float or None
        None with too few samples, or where they do not differ.
    """
    n, k = scores.shape
    if not k or n < max(2 * FEWEST, k + 2):
        return None
    first = straight_coordinates(scores, neighbor_graph(scores, threads=threads), threads)[:, 0]
    low, high = np.quantile(first, MIDDLE)
    least, most = np.quantile(first, RANGE)
    return float((high - low) / (most - least)) if most > least else None


def is_cline(spread: float, gap: Gap | None) -> bool:
    """Whether samples spread as along a gradient, and their clearest gap is not a deep one."""
    deep = gap is not None and gap.dip >= MIN_DIP and gap.p < MAX_P
    return spread >= LEAST_SPREAD and not deep
