"""Numbers that callers, backends and CUDA sources share."""

from __future__ import annotations

import numpy as np

#: Bits of the levels of residuals, and the level that stands for a residual of zero.
LEVEL_BITS, ZERO_LEVEL = 8, 128
#: Most individuals that become intermediate nodes together in a closure (of a matrix that is not
#: streamed through a device), and the side of the base block that Floyd-Warshall closes.
PANEL, BASE = 512, 128
#: Largest weight in fixed point, which stands for infinity: a sum of two does not overflow.
INFINITY_INT32, INFINITY_INT64 = np.int32(2**30 - 1), np.int64(2**62 - 1)
