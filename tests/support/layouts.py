"""Maps before their first epoch, for tests of what lays them out."""

from __future__ import annotations

import numpy as np

from popdesic.maps.densmap import density_tables
from popdesic.maps.layouts import BOUND, POINT_BITS, RADIUS_BITS, SHARE_BITS, Density, Layout
from popdesic.maps.umap_layout import force_tables

CURVE = 0.992176, 1.112253
#: Number of points, share of the pairs that are edges, how far points are apart at most.
SCENES = [
    *((1, 0.0, 3), (2, 0.0, 3), (2, 1.0, 3), (3, 1.0, 1 << POINT_BITS), (15, 0.3, BOUND)),
    *((16, 0.5, 1 << POINT_BITS), (17, 0.9, 3 << POINT_BITS), (33, 1.0, 10 << POINT_BITS)),
    *((64, 0.02, 10 << POINT_BITS), (65, 0.4, 10 << POINT_BITS), (300, 0.03, 10 << POINT_BITS)),
]


def draw_layout(
    n: int,
    density: float,
    spread: int,
    *,
    epochs: int = 3,
    draws: int = 5,
    seed: int = 1,
    dense: bool = False,
) -> Layout:
    """A random graph; the last point has an edge to every other where there are many edges.

    `dense`: of a densMAP, after the first epoch.
    """
    rng = np.random.default_rng(seed + n)
    joined = np.triu(rng.random((n, n)) < density, 1)
    if density > 0 and n > 2:
        joined[: n - 1, n - 1] = True
    shares = np.triu(rng.integers(1, 1 << SHARE_BITS, (n, n), endpoint=True), 1) * joined
    shares += shares.T
    rows, ends = map(np.ascontiguousarray, np.nonzero(shares))
    points = rng.integers(-spread, spread, (n, 2), endpoint=True)
    points[n // 2] = points[0]  # one place
    starts = np.searchsorted(rows, np.arange(n + 1))
    steps = rng.integers(1, 1 << 15, epochs)
    about = shares[rows, ends], *force_tables(*CURVE), steps, draws, seed
    term = None
    if dense:
        radii = rng.normal(size=n) * (1 << RADIUS_BITS)
        term = Density(radii.astype(np.int64), *density_tables(*CURVE), rng.uniform(5, 30), 1)
    return Layout(points, starts, ends, *about, term)
