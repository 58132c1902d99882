"""Squares of people's products with others from pairs of sites: those of the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.random_cohorts import random_calls

from popdesic.components import stretch_squares
from popdesic.components.stretch_squares import counts_pairs, squares_between
from popdesic.core.random_numbers import lots_of
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.genotype_products import Flips
from popdesic.engine.genotype_products_cpu import CpuProducts
from popdesic.io.genotypes import unpack_bed

SIZES, N_SITES = [90, 40], 300


def scene(missing: float, known: int, n_stretches: int = 7):
    """Calls, flips without signs of any use, and standardised genotypes (n, n_sites)."""
    rng = np.random.default_rng(3)
    calls = random_calls(rng, SIZES, N_SITES, missing)
    pairs = zip(calls.parts, calls.keep, strict=True)
    genotypes = np.concatenate([unpack_bed(part, len(who))[:, who] for part, who in pairs], axis=1)
    mean, inverse = calls.standard
    x = np.where(genotypes >= 0, (genotypes - mean[:, None]) * inverse[:, None], 0.0).T
    vectors = np.linalg.qr(rng.normal(size=(len(x), known)))[0]
    stretch = np.sort(rng.integers(0, n_stretches, N_SITES))
    signs = rng.choice(np.array([1, -1], np.int8), (n_stretches, len(x), 400))
    return calls, Flips(signs, stretch, vectors, x.T @ vectors), x


def expected_of(x: np.ndarray, flips: Flips) -> float:
    left, total = x - flips.known @ (flips.known.T @ x), 0.0
    for stretch in np.unique(flips.stretch):
        products = left[:, flips.stretch == stretch]
        products = products @ products.T
        total += (products**2).sum() - (np.diag(products) ** 2).sum()
    return total


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("known", [0, 3])
def test_they_are_those_of_the_matrices_of_people(missing, known):
    calls, flips, x = scene(missing, known)
    lots = lots_of(range(len(x)))
    found = squares_between(calls, flips, lots, CpuBackend(1))
    assert found == pytest.approx(expected_of(x, flips), rel=1e-9)
    assert squares_between(calls, flips, lots, CpuBackend(3)) == found
    signs = float(CpuProducts(calls).spread_by_person(flips).sum())
    assert found == pytest.approx(signs, rel=0.02)


def test_some_people_stand_for_all(monkeypatch):
    calls, flips, x = scene(0.02, 2)
    monkeypatch.setattr(stretch_squares, "PEOPLE", 60)
    found = squares_between(calls, flips, lots_of(range(len(x))), CpuBackend(1))
    assert found != expected_of(x, flips)
    assert found == pytest.approx(expected_of(x, flips), rel=0.01)


def test_some_sites_are_those_rows():
    calls, flips, x = scene(0.02, 2)
    rows = np.flatnonzero(np.random.default_rng(1).random(N_SITES) < 0.5)
    some = type(calls)(calls.parts, rows, calls.keep, calls.af[rows])
    own = Flips(flips.signs, flips.stretch[rows], flips.known, flips.projections[rows])
    found = squares_between(some, own, lots_of(range(len(x))), CpuBackend(1))
    assert found == pytest.approx(expected_of(x[:, rows], own), rel=1e-9)


def test_long_stretches_and_very_many_genotypes_are_left_to_signs(monkeypatch):
    calls, flips, _ = scene(0.0, 0)
    assert counts_pairs(calls, flips.stretch)
    assert counts_pairs(calls, np.zeros(N_SITES, int)) == (N_SITES <= stretch_squares.MOST_SITES)
    monkeypatch.setattr(stretch_squares, "MOST_GENOTYPES", N_SITES)
    assert not counts_pairs(calls, flips.stretch)
