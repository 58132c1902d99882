"""The nearest samples and points of every one, on the device of a backend."""

from __future__ import annotations

import numpy as np

from ..engine.backend import Backend
from ..engine.plane_parts import PlaneParts
from ..engine.terms import Planes
from .nearest import Measure, Nearest


def nearest_samples(backend: Backend, planes: PlaneParts, measure: Measure, k: int) -> Nearest:
    """The `k` nearest other samples of every sample, without an array of all pairs.

    Parameters
    ----------
    planes : PlaneParts
    measure : Measure
    k : int
        At most `nearest.MOST_NEIGHBORS`; all others where there are fewer.

    Returns
    -------
    Nearest
        Ties go to the earlier sample; samples at an infinite distance are listed only where
        there are not enough others. The same bytes from every backend.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from ..engine.tiles_gpu import TileSums
        from .nearest_gpu import nearest_samples as on_gpu

        with device_errors(f"the neighbours of {planes.n_samples} samples"):
            return on_gpu(TileSums(backend, planes), measure, k, backend.device)
    from .nearest_cpu import nearest_samples as by_tiles

    return by_tiles(backend, planes, measure, k)


def nearest_between(
    backend: Backend, a: Planes, b: Planes, measure: Measure, k: int
) -> tuple[Nearest, Nearest]:
    """The `k` nearest samples in b of every sample of a, and the reverse.

    Parameters
    ----------
    a, b : Planes
        Different samples over the same sites. Memory maps will do; either may be what
        `keep_planes` gave.
    measure, k
        As in `nearest_samples`; all of the others where there are fewer.

    Returns
    -------
    of_a, of_b : Nearest
        Samples are numbered in either block. `few` of both is the same.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from ..engine.tiles_gpu import BlockSums
        from .nearest_gpu import nearest_between as on_gpu

        with device_errors(f"the neighbours of {a.n_samples} and {b.n_samples} samples"):
            tiles = BlockSums(backend, a, b)
            of_rows, of_columns = on_gpu(tiles, measure, k, backend.device)
        return (of_columns, of_rows) if tiles.turned else (of_rows, of_columns)
    from .nearest_cpu import nearest_between as by_tiles

    return by_tiles(backend, a, b, measure, k)


def nearest_points(backend: Backend, points: np.ndarray, k: int) -> Nearest:
    """The `k` nearest other points of every point by Euclidean distance.

    Parameters
    ----------
    points : float64 array, (n, m)
        Finite.
    k : int
        As in `nearest_samples`.

    Returns
    -------
    Nearest
        By squared distances, summed in float64 in the order of the coordinates; `distance`
        holds their roots. Ties go to the earlier point. The same bytes from every backend.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .nearest_gpu import nearest_points as on_gpu

        with device_errors(f"the neighbours of {len(points)} points"):
            return on_gpu(points, k, backend.device)
    from .nearest_cpu import nearest_of_points

    return nearest_of_points(points, k, backend.threads)
