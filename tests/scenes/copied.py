"""Mosaics of a panel, imputed on a device and on the CPU: the same bytes."""

from __future__ import annotations

import numpy as np

from popdesic.copying.copying import haplotypes_of, impute_alleles
from popdesic.engine.backend import Backend

MODEL = {"ne": 3000.0, "mismatch": 1e-3}


def draw_mosaics(
    rng: np.random.Generator, n: int, n_sites: int, n_targets: int, missing: float = 0.05
) -> tuple[np.ndarray, ...]:
    """A panel with shared stretches (n, n_sites), its map, typed sites, alleles of mosaics."""
    share = rng.beta(0.4, 1.2, n_sites)
    founders = rng.random((6, n_sites)) < share
    cm = np.cumsum(rng.exponential(0.02, n_sites) * (rng.random(n_sites) < 0.9))

    def copies(source: np.ndarray, count: int) -> np.ndarray:
        at = rng.integers(0, len(source), (count, n_sites))
        kept = np.where(rng.random((count, n_sites)) < 0.03, np.arange(n_sites), 0)
        kept = np.maximum.accumulate(kept, axis=1)
        chosen = np.take_along_axis(at, kept, axis=1)
        return (source[chosen, np.arange(n_sites)] ^ (rng.random(chosen.shape) < 0.003)).astype(
            np.int8
        )

    panel = copies(founders, n)
    sites = np.flatnonzero(rng.random(n_sites) < 0.6)
    alleles = np.ascontiguousarray(copies(panel, n_targets)[:, sites])
    alleles[rng.random(alleles.shape) < missing] = -1
    return panel, cm, sites, alleles


def check_copying(
    backend: Backend, drawn: tuple[np.ndarray, ...], own: np.ndarray | None = None, **model: float
) -> np.ndarray:
    """Units of the device, which are those of the CPU."""
    panel, cm, sites, alleles = drawn
    packed, numbers = haplotypes_of(panel, cm), MODEL | model
    found = impute_alleles(packed, sites, alleles, **numbers, own=own, backend=backend)
    expected = impute_alleles(packed, sites, alleles, **numbers, own=own, threads=1)
    np.testing.assert_array_equal(found, expected)
    return found
