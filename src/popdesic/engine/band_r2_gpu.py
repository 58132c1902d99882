"""Correlations of sites within narrow windows on a GPU, pair by pair (kernels/engine/band.cu)."""

from __future__ import annotations

import cupy
import numpy as np

from .compile_gpu import load_function
from .devices import Device
from .site_pairs_plan import BAND, BAND_WARPS
from .terms import Planes

#: Samples up to which sums of one pair fit 31 bits: four for each.
MOST_SAMPLES = (1 << 31) // 4


def band_r2(planes: Planes, ends: np.ndarray, first: int, last: int, device: Device) -> np.ndarray:
    """`band_r2` of some rows: float64 (last - first, width)."""
    width = max(0, int((ends[first:last] - np.arange(first, last)).max(initial=1)) - 1)
    if not width or last <= first:
        return np.full((max(last - first, 0), width), np.nan)
    cupy.cuda.Device(device.index).use()  # the caller may be a thread of its own
    part = np.ascontiguousarray(planes.words[first : int(ends[first:last].max())])
    words = cupy.empty(part.shape, np.uint64)
    words.set(part)  # `asarray` would first copy it to pinned memory of its own
    out = cupy.empty((last - first, width), np.float64)
    load_function(BAND, "band_r2", (), device.capability)(
        (last - first,),
        (32 * BAND_WARPS,),
        (
            *(words, cupy.asarray(np.minimum(ends[first:last], planes.n_samples) - first), out),
            *(np.int64(planes.n_sites), np.int64(words.shape[2])),
            *(np.int32(words.shape[1]), np.int32(width)),
        ),
    )
    return cupy.asnumpy(out)
