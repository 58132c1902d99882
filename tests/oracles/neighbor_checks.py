"""What lists of neighbours and pairs must be on any backend: those of all pairs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from support.operands import planes_of

from oracles.reference import draw_genotypes, nearest
from popdesic.distance.find_nearest import nearest_between, nearest_points, nearest_samples
from popdesic.distance.matrix import distances_of_counts
from popdesic.distance.nearest import Nearest
from popdesic.distance.neighbors import measure_of
from popdesic.distance.tiles import pairwise_counts
from popdesic.engine.backend import Backend
from popdesic.engine.plane_parts import PlaneParts
from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import KINSHIP, Planes
from popdesic.relatives.kinship import king_robust, mismatching
from popdesic.relatives.matches import NEVER, rank_key
from popdesic.relatives.screen import Screen, Screened
from popdesic.relatives.screen_pairs import screen_pairs

METRICS = ("euclidean", "manhattan", "ibs", "normalized")
#: Relatives, one person and mixtures; only by mismatches; everybody.
SCREENS = {
    "usual": Screen(0.0973, 0.02, 5, 20, 0.02, 0.05),
    "no relatives": Screen(np.inf, -1.0, 1, 1, 0.02, 0.0),
    "all": Screen(-10.0, 0.02, 0, 0, 0.02, 0.05),
}


def draw_people(
    seed: int, n_samples: int, n_sites: int, missing: float = 0.0, copies: int = 0
) -> np.ndarray:
    """Genotypes int8 (n_samples, n_sites); some samples are copies of others, to make ties."""
    rng = np.random.default_rng(seed)
    found = draw_genotypes(rng, n_samples, n_sites, missing)
    for _ in range(copies):
        i, j = rng.integers(0, n_samples, 2)
        found[i] = found[j]
    return found


def parts_of(genotypes: np.ndarray, cuts: tuple[int, ...] = (), **options) -> PlaneParts:
    """Planes of people in cohorts that end at these numbers."""
    bounds = [0, *cuts, len(genotypes)]
    pieces = [genotypes[a:b] for a, b in pairwise(bounds)]
    return PlaneParts.of([planes_of(piece, **options) for piece in pieces])


def check_nearest(
    backend: Backend, genotypes: np.ndarray, k: int, metric: str, min_called: int = 1, cuts=()
) -> Nearest:
    """Neighbours of people equal those sorted out of the matrix of all pairs, byte by byte."""
    options = {"metric": metric, "missing": "pairwise"}
    measure = measure_of(metric, genotypes.shape[1], min_called)
    found = nearest_samples(backend, parts_of(genotypes, cuts), measure, k)
    counts = pairwise_counts(planes_of(genotypes), None, cpu_backend(1), **options)
    n, n_sites = genotypes.shape
    options = {"metric": metric, "n_sites": n_sites, "min_called": max(1, min_called)}
    distances = distances_of_counts(counts, np.arange(n), **options)
    expected = nearest(distances, k)
    np.testing.assert_array_equal(found.index, expected)
    np.testing.assert_array_equal(found.distance, np.take_along_axis(distances, expected, 1))
    np.testing.assert_array_equal(found.called, np.take_along_axis(counts["called"], expected, 1))
    assert found.few == np.triu(counts["called"] < max(1, min_called), 1).sum()
    return found


def check_between(
    backend: Backend,
    genotypes: np.ndarray,
    cut: int,
    k: int,
    metric: str,
    min_called: int = 1,
    **held,
) -> None:
    """Neighbours of two cohorts in each other equal those of the matrix of all pairs.

    `held`: functions `a` and `b` that put the planes of a cohort where the backend has them.
    """
    options = {"metric": metric, "missing": "pairwise"}
    counts = pairwise_counts(planes_of(genotypes), None, cpu_backend(1), **options)
    about = {"metric": metric, "n_sites": genotypes.shape[1], "min_called": max(1, min_called)}
    distances, called = distances_of_counts(counts, **about), counts["called"]
    a, b = (
        held.get(side, lambda planes: planes)(planes_of(part))
        for side, part in (("a", genotypes[:cut]), ("b", genotypes[cut:]))
    )
    measure = measure_of(metric, genotypes.shape[1], min_called)
    of_a, of_b = nearest_between(backend, a, b, measure, k)
    few = (called[:cut, cut:] < max(1, min_called)).sum()
    for found, block, sites in (
        (of_a, distances[:cut, cut:], called[:cut, cut:]),
        (of_b, distances[cut:, :cut], called[cut:, :cut]),
    ):
        expected = np.argsort(block, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(found.index, expected)
        np.testing.assert_array_equal(found.distance, np.take_along_axis(block, expected, 1))
        np.testing.assert_array_equal(found.called, np.take_along_axis(sites, expected, 1))
        assert found.few == few


def check_points(backend: Backend, points: np.ndarray, k: int) -> Nearest:
    """Neighbours of points equal those sorted out of all squared distances."""
    squared = np.zeros((len(points), len(points)))
    for column in points.T:
        squared += np.subtract.outer(column, column) ** 2
    found = nearest_points(backend, points, k)
    expected = nearest(squared, k)
    np.testing.assert_array_equal(found.index, expected)
    np.testing.assert_array_equal(found.distance, np.sqrt(np.take_along_axis(squared, expected, 1)))
    return found


def awkward_points() -> dict[str, np.ndarray]:
    """Points whose squared distances float32 cannot tell apart, or hold."""
    rng = np.random.default_rng(1)
    return {
        "grid": rng.integers(0, 3, (500, 3)).astype(float),
        "same": np.ones((40, 2)),
        "far from the origin": 1e6 + rng.normal(size=(400, 3)),
        "one far away": np.concatenate([rng.normal(size=(300, 4)), np.full((1, 4), 1e9)]),
        "tiny": rng.normal(size=(200, 5)) * 1e-40,
        "huge": rng.normal(size=(200, 5)) * 1e40,
        "sorted": np.sort(rng.normal(size=(1500, 1)), axis=0) ** 2,
        "line": np.arange(300.0)[:, None] / 3,
    }


def wanted(counts: np.ndarray, screen: Screen) -> np.ndarray:
    """Pairs that no limit rules out, by the formulas of `compare`: bool, from counts (5, m, n)."""
    named = dict(zip(KINSHIP.outputs, counts, strict=True))
    differ, called = mismatching(named), named["called"]
    with np.errstate(invalid="ignore"):
        close = king_robust(named) >= screen.min_kinship
    same = differ <= screen.max_same * called
    absent = named["ibs0"] + np.minimum(named["het_a"], named["het_b"]) - named["both_het"]
    mixed = (differ > screen.max_mismatch * called) & (absent <= screen.max_absent * called)
    return (close | same | mixed) & (called >= screen.least_related)


def check_screen(
    backend: Backend, genotypes: np.ndarray, cut: int | None, screen: Screen, top: int, **held
) -> Screened:
    """Pairs and best matches equal those of counts of all pairs.

    `cut`: samples of the first block; None: all with themselves. `held`: see `check_between`.
    """
    parts = (genotypes,) if cut is None else (genotypes[:cut], genotypes[cut:])
    a, b = [held.get(x, lambda p: p)(planes_of(y)) for x, y in zip("ab", parts, strict=False)] + (
        [None] if cut is None else []
    )
    found = screen_pairs(backend, a, b, screen, top)
    other = cpu_backend(1)
    counts = other.bitgemm(planes_of(parts[0]), planes_of(parts[-1]), KINSHIP)
    expected = wanted(counts, screen)
    few = counts[4] < screen.least_matched
    key = rank_key(
        mismatching(dict(zip(KINSHIP.outputs, counts, strict=True))),
        counts[4],
        screen.least_matched,
    )
    if cut is None:
        expected, few = np.triu(expected, 1), np.triu(few, 1)
        np.fill_diagonal(key, NEVER)
    assert found.few == few.sum()
    marked = np.zeros_like(expected)
    marked[found.rows, found.columns] = True
    assert not (expected & ~marked).any()
    # the limits are widened by rounding alone; pairs without a heterozygous site have no kinship
    known = np.minimum(counts[2], counts[3]) > 0
    np.testing.assert_array_equal(marked & known, expected & known)
    order = np.lexsort((found.columns, found.rows))
    np.testing.assert_array_equal(order, np.arange(marked.sum()))
    np.testing.assert_array_equal(found.counts, counts[:, found.rows, found.columns])
    order = np.argsort(key, axis=0, kind="stable")[:top].T
    ranked = np.full((key.shape[1], top), NEVER)
    ranked[:, : order.shape[1]] = np.take_along_axis(key.T, order, axis=1)
    np.testing.assert_array_equal(found.best.key, ranked)
    i, rank = np.nonzero(ranked < NEVER)
    np.testing.assert_array_equal(found.best.index[i, rank], order[i, rank])
    assert (found.best.index[ranked == NEVER] == -1).all()
    np.testing.assert_array_equal(found.best.called[i, rank], counts[4][order[i, rank], i])
    same = screen_pairs(other, *map(_on_host, (a, b)), screen, top)
    for name in ("mismatches", "called", "index"):
        np.testing.assert_array_equal(getattr(found.best, name), getattr(same.best, name))
    np.testing.assert_array_equal(found.rows, same.rows)
    np.testing.assert_array_equal(found.columns, same.columns)
    return found


def _on_host(planes):
    """Planes as the CPU has them."""
    if planes is None or isinstance(planes.words, np.ndarray):
        return planes
    return Planes(planes.words.get(), planes.n_sites)
