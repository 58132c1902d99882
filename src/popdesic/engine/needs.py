"""How much memory work asks of a device, so that small jobs can share one (`lease.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.limits import MOST_EXACT, SPREAD_LEAST

#: The driver's own memory for a process with all kernels of a job loaded, and buffers of results.
CONTEXT_BYTES = 2 << 30
#: Accumulators and totals of a pair of samples: 12 bytes for each of at most eight outputs; larger
#: blocks are multiplied tile by tile at nearly the same speed.
PAIR_BYTES, TILE_SAMPLES = 12 * 8, 1 << 13
#: Copies of the planes of both blocks that a product makes: two ranges sent, packed ones, ones by
#: site; beyond MOST_PLANES they pass in ranges.
PLANE_COPIES, MOST_PLANES = 5, 24 << 30
#: LD: planes of the sites of a contig, and squares of their correlations.
LD_BYTES = 16 << 30
#: Of one sample: blocks of genotypes on their way, turned around, and vectors.
GENOTYPE_BYTES = 1 << 18
#: Sums of a group of blocks of sites, and digits of the vectors that they are multiplied with.
PASS_BYTES = 2 << 30
#: Planes that are counted at a time, and counts that come back at a time.
COUNTED_BYTES = 64 << 20
#: Of a point of a map (coordinates, sums of forces), and of an edge of its graph in the row of one
#: end (both ends, share); of a point of a densMAP besides.
POINT_BYTES, EDGE_BYTES, DENSITY_BYTES = 8 + 16, 12, 16 + 4 * 8 + 16
#: Sites of genotypes on their way to a device at a time, and lists of pairs that are close.
CHUNK_SITES, LIST_BYTES = 1024, 64 << 20
#: Samples of a block are padded to this many.
PADDED = 256
#: Of a search for nearest points: largest side of a tile (`tile_plan.py`), room of a list
#: of candidates in bytes.
TILE_SIDE, CANDIDATE_BYTES = 1 << 15, 16 * 768


def product_bytes(own: tuple[int, int, int], others: Sequence[tuple[int, int, int]] = ()) -> int:
    """Device memory with which products of one kept block and others run at full speed.

    With less, planes pass in shorter ranges of sites and samples in smaller blocks.

    Parameters
    ----------
    own, others : (n_samples, n_planes, n_words)
        Shapes of planes; without others, `own` is compared with itself.
    """
    samples, planes = _padded(own[0]), 8 * math.prod(own)
    most = max((_padded(other[0]) for other in others), default=samples)
    samples, most = min(samples, TILE_SAMPLES), min(most, TILE_SAMPLES)
    largest = max((8 * math.prod(other) for other in others), default=planes)
    copies = min(MOST_PLANES, PLANE_COPIES * (planes + largest))
    return CONTEXT_BYTES + PAIR_BYTES * samples * most + planes + copies


def closure_bytes(n: int) -> int:
    """Device memory of the shortest paths among n points, as int64, with padding and panels."""
    return CONTEXT_BYTES + 24 * (n + 4 * PADDED) ** 2


def closing_devices(n: int, devices: int) -> int:
    """How many of some devices find the shortest paths among n points: one if they are few."""
    return devices if n >= SPREAD_LEAST else 1


def genotype_bytes(n_samples: int, n_sites: int) -> int:
    """Device memory with which products of genotypes with vectors keep the packed genotypes.

    They are there twice, by site and by person (`genotype_passes_gpu.py`).
    """
    return 2 * CONTEXT_BYTES + n_samples * (n_sites // 2 + GENOTYPE_BYTES) + PASS_BYTES


def counting_bytes(shape: tuple[int, int, int], n_groups: int) -> int:
    """Device memory of counts of planes (n_samples, n_planes, n_words) by groups of samples."""
    row = 8 * shape[1] * shape[2]
    parts = 2 * min(shape[0] * row, max(COUNTED_BYTES, row))
    return CONTEXT_BYTES + parts + 64 * shape[2] * (9 + 12 * n_groups) + COUNTED_BYTES


def layout_bytes(n: int, neighbors: int) -> int:
    """Device memory of the layout of n points, whose graph has twice as many edges at most."""
    return CONTEXT_BYTES + n * (POINT_BYTES + DENSITY_BYTES + 2 * neighbors * EDGE_BYTES)


def expected_bytes(n: int, n_sites: int, context: int = CONTEXT_BYTES) -> int:
    """Device memory of kinships of n people beside expected genotypes: pairs, digits, a chunk."""
    people, sites = _padded(n), n_sites + PADDED
    return context + 8 * n * n + 4 * people * sites + 4 * people * CHUNK_SITES + LIST_BYTES


def points_bytes(n: int, n_axes: int, k: int) -> int:
    """Device memory for the k nearest of n points with coordinates on some axes."""
    return CONTEXT_BYTES + n * (12 * n_axes + 16 * k) + 4 * TILE_SIDE * CANDIDATE_BYTES


def by_weights(n_axes: int) -> bool:
    """Whether axes that so many samples define get weights of sites, by which others are placed."""
    return n_axes > MOST_EXACT


def _padded(n_samples: int) -> int:
    return -(-n_samples // PADDED) * PADDED
