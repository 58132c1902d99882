"""Pairs of samples that are looked at again, chosen on the device of a backend."""

from __future__ import annotations

from ..distance.nearest import MOST_NEIGHBORS
from ..engine.backend import Backend, on_cpu
from ..engine.plane_parts import PlaneParts
from ..engine.terms import Planes
from .screen import Screen, Screened


def screen_pairs(
    backend: Backend, a: Planes, b: Planes | None, screen: Screen, top: int
) -> Screened:
    """Pairs of samples that are looked at again, with their counts, and best matches.

    Parameters
    ----------
    a, b : Planes
        Different samples over the same sites; ``b=None``: `a` with itself. Memory maps will
        do; either may be what `keep_planes` gave.
    screen : Screen
    top : int
        Best matches of each sample of b in a.

    Returns
    -------
    Screened
        Best matches, and counts of each pair, are the same from every backend.
    """
    if backend.name == "gpu" and top <= MOST_NEIGHBORS:
        from ..engine.stream_gpu import device_errors
        from ..engine.tiles_gpu import BlockSums, TileSums
        from .screen_gpu import screen_between, screen_own

        with device_errors(f"the comparison of {a.n_samples} samples"):
            if b is None:
                tiles = TileSums(backend, PlaneParts.of([a]))
                return screen_own(tiles, screen, top, backend.device)
            return screen_between(BlockSums(backend, a, b), screen, top, backend.device)
    if backend.name == "gpu":
        on_cpu("the choice of pairs", f"the device keeps at most {MOST_NEIGHBORS} matches a sample")
    from .screen_cpu import screen_blocks

    return screen_blocks(backend, a, b, screen, top)
