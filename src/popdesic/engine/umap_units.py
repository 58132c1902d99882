"""Units of the integers that optimisers of UMAP compute with: Python and `kernels/umap/`."""

from __future__ import annotations

#: Fractional bits of coordinates, of the tables' forces, of shares of edges and of steps.
POINT_BITS, FORCE_BITS, SHARE_BITS, STEP_BITS = 20, 24, 20, 16
#: Intervals of a table between two powers of two (their bits), and bits of a place in one.
INTERVAL_BITS, PLACE_BITS = 5, 16
#: Largest force in one coordinate, as in umap-learn, and largest coordinate.
FARTHEST, BOUND = 4 << POINT_BITS, 1 << 29
#: Highest bit of a squared distance.
TOP_BIT = 62
#: Fractional bits of sums of densMAP's spreads, and of logarithms of local radii.
SPREAD_BITS, RADIUS_BITS = 32, 16
#: What is added to a local radius before its logarithm is taken (umap-learn's 1e-8), in units of
#: squared distances.
LEAST_RADIUS = round(1e-8 * 2 ** (2 * POINT_BITS))
