"""The tile of two cohorts: pairwise counts of all their samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..cohort.planes import study_ploidies
from ..core.tables import write_npz
from ..core.triangle import pack_counts, upper_triangle
from ..engine.backend import Backend
from ..engine.terms import Planes
from .any_ploidy import mixed_counts, polyploid_counts
from .tiles import SYMMETRIC, count_type, load_of_one_panel, pairwise_counts, tile_outputs


def measure_tile(
    folder_a: Path,
    folder_b: Path,
    out: Path,
    backend: Backend,
    *,
    metric: str,
    missing: str,
    held: Mapping[Path, Planes] | None = None,
) -> dict[str, int]:
    """Integer distances between all samples of two cohorts, written as one tile.

    Parameters
    ----------
    folder_a, folder_b : Path
        Folders with `planes.npy` and `planes.json`; the same folder twice gives the diagonal tile.
    out : Path
        `.npz` with (n_a, n_b) `squared`, `called` (over jointly called sites) and the other
        matrices that `metric` needs (`tile_outputs`), of `count_type`; `samples_a`, `samples_b`,
        `n_sites`, `panel`. The diagonal tile has the triangle of those in SYMMETRIC. Numbers take
        two or three bytes above the least where they can (`triangle.pack_counts`). `tile_counts`
        reads it.
    missing : str
        ``pairwise``: jointly called sites; ``imputed``: all sites, imputed genotypes included.
    held : dict
        Planes of a folder that the backend has at hand (`Backend.keep_planes`).

    Returns
    -------
    dict
        Samples of both cohorts, sites, and compared site-pairs.

    Raises
    ------
    UserError
        The two cohorts were encoded on different panels.
    """
    (a, about_a), (b, about_b) = load_of_one_panel([folder_a, folder_b])
    same = folder_a == folder_b
    kinds = study_ploidies(about_a)
    ploidy = math.lcm(*kinds)
    if len(kinds) > 1:
        each = np.array(about_a["each"]), np.array(about_b["each"])
        parts = a, None if same else b, each, kinds, backend
        counts = mixed_counts(*parts, differences="ibs0" in tile_outputs(metric))
    elif ploidy > 2:
        parts = a, None if same else b, ploidy, backend
        counts = polyploid_counts(*parts, differences="ibs0" in tile_outputs(metric))
    else:
        a, b = (held or {}).get(folder_a, a), (held or {}).get(folder_b, b)
        counts = pairwise_counts(a, None if same else b, backend, metric=metric, missing=missing)
    dtype = count_type(a.n_sites, ploidy)
    counts = {name: matrix.astype(dtype) for name, matrix in counts.items()}
    if same:
        counts |= {name: upper_triangle(counts[name]) for name in SYMMETRIC if name in counts}
    packed = [pack_counts(name, matrix) for name, matrix in counts.items()]
    write_npz(
        out,
        **{name: part for parts in packed for name, part in parts.items()},
        samples_a=np.array(about_a["samples"]),
        samples_b=np.array(about_b["samples"]),
        n_sites=np.int64(a.n_sites),
        panel=np.array(about_a["panel"]),
        **({"ploidy": np.int64(ploidy)} if ploidy > 2 else {}),
    )
    sizes = len(about_a["samples"]), len(about_b["samples"])
    pairs = sizes[0] * (sizes[0] + 1) // 2 if same else sizes[0] * sizes[1]
    return {
        "samples_a": sizes[0],
        "samples_b": sizes[1],
        "sites": a.n_sites,
        "site_pairs": pairs * a.n_sites,
    }
