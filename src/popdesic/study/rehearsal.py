"""What jobs of a usual study do on a GPU, done once on little data (``popdesic tune``).

That compiles the kernels that they launch, ours and those of CuPy's operations on arrays, into
CuPy's folder, where jobs find them. A default study seeks no epistasis, profiles or segments by
descent; their jobs compile their kernels themselves.
"""

from __future__ import annotations

import functools
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.threads import run_tasks, usable_cpus
from ..distance.find_nearest import nearest_between, nearest_points, nearest_samples
from ..distance.nearest import ROOT, Measure
from ..engine.genotype_products import Calls, Flips
from ..engine.plane_parts import PlaneParts
from ..engine.site_pairs import r2_pairs
from ..engine.terms import KINSHIP, SQUARED, Planes
from ..geodesic import closure
from ..maps import umap_layout
from ..maps.fuzzy_graph import fuzzy_graph
from ..population.count_groups import count_groups
from ..relatives.expect_kinship import expected_kinship
from ..relatives.screen import Screen
from ..relatives.screen_pairs import screen_pairs

if TYPE_CHECKING:
    from ..engine.backend_gpu import GpuBackend

log = logging.getLogger(__name__)

#: The folder that Python finds this package in.
PACKAGES = Path(__file__).resolve().parents[2]

#: Types of closures (`geodesic.weights`).
NUMBERS = ("int32", "int64", "float32", "float64")
#: Samples and sites of all other work; samples whose counts have two bytes, and four.
SAMPLES, SITES, COUNTED = 300, 700, (300, 1 << 16)
#: Vectors of products with genotypes: one to four tiles of eight.
VECTORS = (8, 16, 24, 32)
#: Costs (dense, pair, row, rows, move) by which all sites go one way (`engine/rare_sites_gpu.py`).
WAYS = (None, (1, 1e-12, 1, 0, 0), (1, 1e9, 1e-12, 0, 0))


def draw_planes(rng: np.random.Generator, n: int, n_sites: int, masked: bool) -> Planes:
    """Planes of random genotypes, `masked`: some are missing."""
    genotypes = rng.integers(0, 3, (n, n_sites))
    planes = [genotypes >= 1, genotypes == 2]
    planes += [rng.random((n, n_sites)) < 0.9] if masked else []
    bits = np.zeros((n, len(planes), -(-n_sites // 64) * 64), np.uint8)
    bits[:, :, :n_sites] = np.stack(planes, axis=1)
    return Planes(np.packbits(bits, axis=2, bitorder="little").view(np.uint64), n_sites)


def closures(backend: GpuBackend, number: str) -> None:
    """Geodesics: whole closures with pruning, on one device and in two parts; newcomers."""
    from ..engine.spread_gpu import Spread

    rng, n = np.random.default_rng(1), 2 * closure.PANEL + 1
    places = np.sort(rng.random((n, 1)), axis=0) + (np.arange(n)[:, None] * 8 // n) * 9.0
    weights = (((places - places.T) ** 2 + 0.01) * 2**12).astype(number)
    np.fill_diagonal(weights, 0)
    spread = Spread(weights, 2 * [backend.device.index])
    spread.close(functools.partial(closure.close_paths, backend=backend, prune=False))
    spread.fetch(np.empty_like(weights))
    held = backend.minplus().hold(weights)
    closure.close_paths(held, backend, prune=True)
    backend.minplus().fetch(held, weights)
    # as `founder_paths` closes a matrix that others are added to
    few = np.ascontiguousarray(weights[: n // 2, : n // 2])
    held = backend.minplus().hold(few)
    closure.insert_paths(held, len(few) // 2, backend)
    backend.minplus().fetch(held, few)


def products(backend: GpuBackend) -> None:
    """Distances and comparisons of cohorts: every way of rare sites, one and two blocks."""
    from ..engine.rare_sites_plan import SiteCosts

    rng = np.random.default_rng(1)
    for costs in WAYS:
        backend.rare_sites = SiteCosts(*costs) if costs else False
        for masked in (False, True):
            a, b = (draw_planes(rng, n, SITES, masked) for n in (SAMPLES, SAMPLES // 2))
            for terms in (SQUARED, KINSHIP):
                backend.bitgemm(a, None, terms)
                backend.bitgemm(backend.keep_planes(a), b, terms)
            for other in (None, b):
                screen_pairs(backend, a, other, Screen(0.05, 0.02, 1, 1, 0.02, 0.05), 1)


def correlations(backend: GpuBackend) -> None:
    """LD: windows that are too wide to be counted pair by pair, and narrow ones."""
    rng, rows = np.random.default_rng(1), np.arange(SITES)
    for masked in (False, True):
        planes = draw_planes(rng, SITES, SAMPLES, masked)
        for width in (300, 30):
            ends = np.minimum(rows + width, SITES)
            r2_pairs(backend, planes, ends, 0.2, lambda *_: None)


def neighbors(backend: GpuBackend) -> None:
    """Large studies: nearest samples and points."""
    rng = np.random.default_rng(1)
    backend.rare_sites = False
    for masked in (False, True):
        own, other = (draw_planes(rng, SAMPLES, SITES, masked) for _ in range(2))
        planes, measure = PlaneParts.of([own]), Measure(SQUARED, ROOT, SITES, 1, 1)
        nearest_samples(backend, planes, measure, 5)
        nearest_between(backend, own, other, measure, 5)
    nearest_points(backend, rng.normal(size=(SAMPLES, 4)), 5)


def components(backend: GpuBackend) -> None:
    """Axes and components of large studies: products of genotypes with vectors."""
    rng = np.random.default_rng(1)
    parts = [rng.integers(0, 256, (SITES, n), np.uint8) for n in (40, 30)]
    keep = tuple(np.arange(4 * part.shape[1]) % 7 > 0 for part in parts)
    n = sum(int(who.sum()) for who in keep)
    calls = Calls(tuple(parts), None, keep, rng.uniform(0.1, 0.9, SITES))
    found = backend.genotype_products(calls)
    for k in VECTORS:
        vectors = rng.normal(size=(n, k))
        found.normal(vectors)
        found.project(vectors)
    found.sample_sums()
    columns = found.columns
    block = columns.put(rng.normal(size=(n, 16)))
    columns.add(columns.zeros(n), [block], columns.gram([block], block))
    vectors, known = rng.normal(size=(n, 2)), np.linalg.qr(rng.normal(size=(n, 2)))[0]
    found.normal(vectors, np.ones((2, 2)))
    found.joint(vectors)
    signs, stretch = (
        rng.choice(np.array([-1, 1], np.int8), (2, n, 2)),
        np.arange(SITES) * 2 // SITES,
    )
    flips = Flips(signs, stretch, known, found.project(known))
    found.flipped(vectors, flips)
    rows = columns.rows(1, n)
    rows[:] = 0
    columns.add_own(rows[0].copy(), rows, columns.own_products(rows, rows[0]))
    found.spread_by_person(flips)


def kinships(backend: GpuBackend) -> None:
    """PC-Relate."""
    rng, n = np.random.default_rng(1), 70
    pairs = expected_kinship(backend, np.ones((n, 1)), 64)
    genotypes = rng.integers(0, 3, (64, n)).astype(np.int8)
    pairs.add(0, genotypes, rng.uniform(0.2, 0.8, (64, 1)))
    pairs.divide()
    pairs.squares(np.ones(n, bool))
    pairs.subtract(np.zeros((1, n)), np.zeros((1, n)))
    pairs.close(0.1)
    pairs.scale(np.ones(n))
    pairs.own()
    pairs.block(0, n)


def maps(backend: GpuBackend) -> None:
    """UMAPs of large studies."""
    rng, n = np.random.default_rng(1), 40
    near = np.stack([(i + 1 + np.arange(6)) % n for i in range(n)])
    graph = fuzzy_graph(near, np.sort(rng.random((n, 6)), axis=1), 1e-3)
    options = {"start": rng.normal(size=(n, 2)), "min_dist": 0.3, "seed": 1, "epochs": 3}
    umap_layout.optimize_layout(graph, **options, backend=backend)


def counts(backend: GpuBackend) -> None:
    """Counts of genotypes by site over populations of large cohorts."""
    rng = np.random.default_rng(1)
    used, values = np.array([2**40 - 1], np.uint64), np.arange(64)
    for n in COUNTED:
        for masked in (False, True):
            words = draw_planes(rng, n, 60, masked).words
            count_groups(
                backend,
                words,
                used,
                values,
                60,
                lambda first, part, sums: np.arange(len(part)) % 2,
                2,
            )


def rehearsals() -> dict[str, Callable[[GpuBackend], None]]:
    """Work by its name, that of several seconds first."""
    named = {
        f"closures of {number}": lambda backend, number=number: closures(backend, number)
        for number in NUMBERS
    }
    others = products, correlations, neighbors, components, kinships, maps, counts
    return named | {work.__name__: work for work in others}


def _timed(index: int, name: str) -> float:
    """Rehearse one kind of work, or compile one variant, on a device; CPU seconds that it took."""
    from ..engine.backend_gpu import GpuBackend
    from ..engine.precompile_gpu import compile_variant

    start = time.process_time()
    backend, works = GpuBackend.unmeasured(index), rehearsals()
    if name in works:
        works[name](backend)
    else:
        compile_variant(backend.device, name)
    return time.process_time() - start


def _timed_in_process(index: int, name: str) -> float:
    """`_timed` in a process of its own; RuntimeError with the end of what it wrote if it fails."""
    code = f"from {__name__} import _timed\nprint(_timed({index}, {name!r}))"
    paths = [str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def rehearse_all(index: int, variants: list[str], processes: int | None = None) -> dict[str, float]:
    """Rehearse all work and compile all variants, each in a process of its own.

    Parameters
    ----------
    index : int
        Number of the device, whose lease the caller has.
    variants : list of str
        Labels of the micro-kernels that will be measured.
    processes : int, optional
        Processes at a time; by default one a usable CPU.

    Returns
    -------
    dict
        Name of the work -> CPU seconds that it took. What failed is logged and left out: jobs then
        compile what they need.
    """

    def timed(name: str) -> float | None:
        try:
            return _timed_in_process(index, name)
        except RuntimeError as reason:
            log.warning("GPU, %s: not compiled in advance: %s", name, reason)
            return None

    names = [*variants, *rehearsals()]
    seconds = run_tasks(timed, [(name,) for name in names], processes or usable_cpus())
    return {name: one for name, one in zip(names, seconds, strict=True) if one is not None}
