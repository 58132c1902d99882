"""Barriers: silent under isolation by distance alone, found where migration stops.

Allele frequencies come from a forward simulation of a lattice of demes, which shares nothing with
the landscapes that set the threshold.
"""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.geography.barriers import find_barriers
from popdesic.geography.places import gabriel_edges

SIDE, DEME, PEOPLE = 6, 100, 5


def draw_lattice(rng, *, wall: bool, sites: int = 500, generations: int = 150):
    """Differences (`GeneticDistances.differences`) and points of a lattice of demes.

    Wright-Fisher drift in demes of DEME people, 4 % of whom come from the neighbours; a wall in
    the middle lets nobody pass.
    """
    points = np.array([(x, y) for y in range(SIDE) for x in range(SIDE)], float)
    near = (np.abs(points[:, None] - points[None]).sum(-1) == 1).astype(float)
    if wall:
        left = points[:, 0] < SIDE / 2
        near[left[:, None] != left[None]] = 0
    migration = 0.01 * near
    migration += np.diag(1 - migration.sum(axis=1))
    start = rng.uniform(0.2, 0.8, sites)
    frequency = np.broadcast_to(start, (SIDE**2, sites)).copy()
    for _ in range(generations):
        frequency = rng.binomial(2 * DEME, migration @ frequency) / (2 * DEME)
    observed = rng.binomial(2 * PEOPLE, frequency) / (2 * PEOPLE)
    own = 2 * PEOPLE / (2 * PEOPLE - 1) * (observed * (1 - observed)).mean(axis=1)
    squared = ((observed[:, None] - observed[None]) ** 2).mean(axis=-1)
    squared -= (own[:, None] + own[None]) / (2 * PEOPLE)
    values = squared / (2 * own.mean())
    np.fill_diagonal(values, 0)
    return values, points


def found_on(rng, *, wall: bool, draws: int = 99):
    values, points = draw_lattice(rng, wall=wall, generations=400 if wall else 150)
    ground = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    edges = gabriel_edges(points)
    sizes = np.full(len(points), PEOPLE)
    found = find_barriers(values, ground, sizes, edges, draws=draws, error_rate=0.05, rng=rng)
    middle = (SIDE - 1) / 2
    crossing = (points[edges[:, 0], 0] < middle) != (points[edges[:, 1], 0] < middle)
    return found, crossing


def test_silent_without_barriers():
    """At most 3 of 16 lattices: chance 0.7 % to have more if one of 20 has any false edge."""
    rng = np.random.default_rng(21)
    false = [any(found_on(rng, wall=False)[0].kinds) for _ in range(16)]
    assert sum(false) <= 3


def test_a_wall_is_found_edge_by_edge():
    rng = np.random.default_rng(22)
    for _ in range(2):
        found, crossing = found_on(rng, wall=True)
        kinds = np.array(found.kinds)
        assert (kinds[crossing] == "barrier").sum() >= SIDE - 1
        assert (kinds[~crossing] == "barrier").sum() <= 1
        assert ((found.scores > found.threshold[1]) == (kinds == "barrier")).all()
        assert ((found.p <= 0.025) == (kinds != "")).all()


def test_a_corridor_is_found():
    """One edge whose places share all their genes in a landscape that is otherwise noise."""
    rng = np.random.default_rng(23)
    values, points = draw_lattice(rng, wall=False)
    ground = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    edges = gabriel_edges(points)
    a, b = edges[20]
    values[a, b] = values[b, a] = 0.0
    sizes = np.full(len(points), PEOPLE)
    found = find_barriers(values, ground, sizes, edges, draws=99, error_rate=0.05, rng=rng)
    assert found.kinds[20] == "corridor" and found.kinds.count("corridor") == 1


def test_long_edges_are_expected_to_differ_more():
    rng = np.random.default_rng(27)
    points = rng.normal(size=(40, 2))
    ground = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    noise = np.triu(rng.normal(1, 0.1, ground.shape), 1)
    values = 0.2 * ground * (noise + noise.T)
    edges = gabriel_edges(points)
    sizes = np.full(40, PEOPLE)
    found = find_barriers(values, ground, sizes, edges, draws=99, error_rate=0.05, rng=rng)
    np.testing.assert_allclose(found.expected, 0.2 * ground[tuple(edges.T)], atol=0.03)
    assert not any(found.kinds)


def test_too_few_edges_are_not_tested():
    rng = np.random.default_rng(24)
    points = rng.normal(size=(4, 2))
    ground = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    sizes = np.ones(4, int)
    options = {"draws": 99, "error_rate": 0.05, "rng": rng}
    assert find_barriers(ground, ground, sizes, gabriel_edges(points), **options) is None
    edges = np.array([(a, b) for a in range(4) for b in range(a + 1, 4)])
    assert find_barriers(np.zeros((4, 4)), ground, sizes, edges, **options) is None


def test_the_same_seed_gives_the_same_edges():
    first, second = (found_on(np.random.default_rng(25), wall=True, draws=39)[0] for _ in "ab")
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.kinds == second.kinds


def test_too_few_landscapes_are_refused():
    with pytest.raises(ValueError, match="9 landscapes"):
        found_on(np.random.default_rng(26), wall=True, draws=9)
