"""What sites and pairs of sites say about the phenotype: offsets of the filter by interaction.

N times the mutual information in nats, float32, rounded down (by ROUNDING of it, which also covers
the rounding of a kernel's sums), for scans without missing genotypes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy
import numpy as np

from .layout import TILE_SITES, divide_up

if TYPE_CHECKING:
    from .epistasis import Scanner

#: As in kernels/epistasis/information.cuh.
ROUNDING = 2.0**-20
#: Threads of a thread block, and most thread blocks in the second dimension of a grid.
THREADS, MAX_GRID = 256, 65_535


def information_of_sites(
    sizes: cupy.ndarray, classes: tuple[int, int], total: cupy.ndarray, bits: int
) -> cupy.ndarray:
    """Of each site, float32 (n,).

    Parameters
    ----------
    sizes : int array, (n, 2, 2)
        Samples of each class with the site in each stored state.
    classes : tuple of int
        Controls and cases.
    total : int64 array
        The table of n ln n, with `bits` bits after the point.
    """
    third = cupy.asarray(classes, dtype=sizes.dtype) - sizes.sum(axis=2)
    cells = cupy.concatenate([sizes, third[:, :, None]], axis=2)
    cost = (total[cells.sum(axis=1)] - total[cells].sum(axis=1)).sum(axis=1)
    n0, n1 = classes
    whole = total[n0 + n1] - total[n0] - total[n1]
    return ((whole - cost) * (2.0**-bits * (1 - ROUNDING))).astype(np.float32)


def information_of_pairs(
    scan: Scanner, tables: np.uint64, first_site: int
) -> tuple[cupy.ndarray, int]:
    """Of all pairs y < z of sites from `first_site` on: float32, and the address of row 0.

    `tables`: the address of the pair tables of site 0 (`Scanner._pair_tables`).
    """
    first_row, n = first_site // TILE_SITES * TILE_SITES, scan.data.n_sites
    known = cupy.empty((scan.padded - first_row, scan.padded), np.float32)
    address = known.data.ptr - first_row * scan.padded * 4
    function = scan.load(scan.core.file, "pair_information", **scan.shape_of(2, 1).defines)
    function(
        (divide_up(scan.padded, THREADS), min(MAX_GRID, max(1, n - first_site))),
        (THREADS,),
        (
            *(tables, np.int32(first_site), np.int32(n), np.int32(scan.padded)),
            *(scan.total, scan.part, np.float64(2.0**-scan.data.lr_bits)),
            *(scan.margins, *map(np.uint32, scan.n_classes), np.uint64(address)),
        ),
    )
    return known, address
