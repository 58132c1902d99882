"""Large classes, with a smaller limit of what shares a word: the oracle's hits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from oracles.epistasis import assert_same, draw_scan, scan

from simt.test_simt_scans import run


@pytest.fixture
def limit(machine, monkeypatch):
    """Sets the largest count of a class that shares a word; a device with room for every scan."""
    from popdesic.epistasis import classes_gpu, packing_gpu, scan_gpu

    machine.device = replace(machine.device, capability=90, shared_bytes=107_520)  # the least

    def change(most: int, many: float = math.inf) -> None:
        for module in (scan_gpu, classes_gpu, packing_gpu):
            monkeypatch.setattr(module, "MAX_SHARED", most)
        monkeypatch.setattr(packing_gpu, "MANY_OVERFLOWING", many)

    return change


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("score", ["k2", "gini", "interaction"])
@pytest.mark.parametrize(("order", "n_sites"), [(2, 33), (3, 11)])
def test_counts_in_two_words(limit, rng, kernel, missing, score, order, n_sites):
    from popdesic.engine.backend_gpu import GpuBackend

    limit(-1, 0.0)
    data, states, cases = draw_scan(rng, score, n_sites, (40, 31), missing)
    expected = scan(data, states, cases, order, range(n_sites), 20)
    assert_same(run(GpuBackend(kernel=kernel), order, data, range(n_sites), 20), expected)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_blocks_of_both_kinds(limit, machine, rng, missing):
    from popdesic.engine.devices import Device  # noqa: F401
    from popdesic.epistasis.scan_gpu import Scanner

    first = range(50, 53)
    limit(13)
    # One draw in 20 has no two sites with so many people in common (in 1 000 if none is missing).
    for _ in range(9):
        data, states, cases = draw_scan(rng, "k2", 70, (60, 51), missing)
        scanner = Scanner(data, 3, 30, None, machine.device, "popc")
        if scanner.overflowing is not None:
            break
    assert (
        scanner.split_accumulators == 0
        and scanner.overflowing.any()
        and not scanner.overflowing[:, :1].all()
    )
    assert_same(scanner.triples(first), scan(data, states, cases, 3, first, 30))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_largest_counts_of_pairs(limit, machine, rng, missing, monkeypatch):
    from popdesic.epistasis import packing_gpu
    from popdesic.epistasis.layout import BLOCK_SITES, TILE_SITES
    from popdesic.epistasis.scan_gpu import Scanner

    limit(0)
    monkeypatch.setattr(packing_gpu, "TABLES_SHARE", 0.0)
    n = 70
    data, states, cases = draw_scan(rng, "k2", n, (40, 31), missing)
    scanner = Scanner(data, 3, 5, None, machine.device, "popc")
    scanner.split_accumulators = 1
    found = scanner._measure_pairs()
    expected = np.zeros(found.shape, int)
    for of_class in (~cases, cases):
        own = states[:, of_class]
        for y in range(n):
            for z in range(y + 1, n):
                at = expected[y // TILE_SITES, z // BLOCK_SITES]
                for s, t in np.ndindex(4, 4):
                    both = int(((own[y] == s) & (own[z] == t)).sum())
                    if max(s, t) < 3:
                        at[0] = max(at[0], both)
                    if 2 not in (s, t):
                        at[1] = max(at[1], both)
    assert (found == expected).all()
