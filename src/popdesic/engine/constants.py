"""Numbers that callers, backends and CUDA sources share."""

from __future__ import annotations

import numpy as np

#: Bits of the levels of residuals, and the level that stands for a residual of zero.
LEVEL_BITS, ZERO_LEVEL = 8, 128
#: Most neighbours of a sample.
MOST_NEIGHBORS = 256
#: How a distance follows from counts (`distance.nearest.Measure`): square root of a ratio, a ratio,
#: or the distance of genotypes divided by their sums.
ROOT, RATIO, SHARES = 0, 1, 2
#: Number of an entry of a list that holds nobody yet: it comes after everybody at any distance.
NOBODY = int(np.iinfo(np.int32).max)
#: Mismatch shares are compared as whole numbers of 2**-20: no rounding decides an order.
SHARE_BITS = 20
