"""GPU scans of classes with more samples in one genotype than 16 bits hold: the CPU's hits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from oracles.epistasis import assert_same, make_scan, random_partners, random_scan
from test_epistasis_gpu import gpu, run  # noqa: F401

from popdesic.core.errors import UserError
from popdesic.epistasis.scan_sites import scan_pairs
from popdesic.epistasis.scores import lr_bits, score_tables

pytestmark = pytest.mark.gpu
cupy = pytest.importorskip("cupy")

THIRDS = (1 / 3, 1 / 3, 1 / 3)
#: Thirds of both, and of the first alone, exceed 65 535 samples.
LARGE, HALF = (230_003, 201_001), (300_007, 50_003)


def on_cpu(*given):
    from popdesic.engine.backend_cpu import CpuBackend

    return run(CpuBackend(threads=8), *given)


def scanner_of(gpu, order, data, top):  # noqa: F811
    from popdesic.epistasis.scan_gpu import Scanner

    return Scanner(data, order, top, None, gpu.device, gpu.kernel)


def draw(rng, n_sites, n_samples, score, missing=0.0, frequencies=THIRDS, copies=()):
    """Scan data, and states (n_sites, n_samples); `copies`: pairs of sites (from, to)."""
    tables = score_tables(score, *n_samples)
    data, states, cases = random_scan(
        rng, n_sites, n_samples, missing=missing, frequencies=frequencies, tables=tables
    )
    for a, b in copies:
        states[b] = states[a]
    data = make_scan(states, cases, data.rank, *tables)
    return replace(data, lr_bits=lr_bits(score, sum(n_samples))), states


@pytest.fixture
def limit(monkeypatch):
    """Sets the largest count of a class that shares a word."""
    from popdesic.epistasis import classes_gpu, packing_gpu, scan_gpu

    def change(most: int, many: float = math.inf) -> None:
        for module in (scan_gpu, classes_gpu, packing_gpu):
            monkeypatch.setattr(module, "MAX_SHARED", most)
        monkeypatch.setattr(packing_gpu, "MANY_OVERFLOWING", many)

    return change


@pytest.mark.parametrize("missing", [0.0, 0.01])
@pytest.mark.parametrize(("n_samples", "score"), [(LARGE, "k2"), (HALF, "interaction")])
@pytest.mark.parametrize("order", [2, 3])
def test_many_carriers_of_each_genotype(gpu, rng, order, n_samples, missing, score):  # noqa: F811
    data, _ = draw(rng, 9, n_samples, score, missing)
    expected = on_cpu(order, data, range(9), 20)
    scanner = scanner_of(gpu, order, data, 20)
    # no two sites have so many samples in common: triples are counted in 16 bits
    assert (scanner.split_accumulators, scanner.overflowing) == (int(order == 2), None)
    assert_same((scanner.pairs if order == 2 else scanner.triples)(range(9)), expected)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
@pytest.mark.parametrize("missing", [0.0, 0.01])
@pytest.mark.parametrize("order", [2, 3])
def test_many_carriers_in_common(gpu, rng, order, missing, score):  # noqa: F811
    data, _ = draw(rng, 9, LARGE, score, missing, copies=[(2, 5), (0, 7), (7, 8)])
    expected = on_cpu(order, data, range(9), 20)
    scanner = scanner_of(gpu, order, data, 20)
    assert (scanner.split_accumulators, scanner.overflowing) == (1, None)
    assert_same((scanner.pairs if order == 2 else scanner.triples)(range(9)), expected)


@pytest.mark.parametrize("missing", [0.0, 0.005])
def test_blocks_of_both_kinds(gpu, rng, missing):  # noqa: F811
    """Copies of a site lie in one block of y and z; the others are counted in 16 bits."""
    data, _ = draw(rng, 270, LARGE, "k2", missing, copies=[(260, 268), (261, 269)])
    scanner = scanner_of(gpu, 3, data, 30)
    assert scanner.split_accumulators == 0
    assert scanner.overflowing.sum() == 1
    assert_same(scanner.triples(range(2)), on_cpu(3, data, range(2), 30))


@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("many", [0.0, math.inf])
def test_every_way_to_count_gives_the_same_hits(gpu, rng, limit, many, missing, score):  # noqa: F811
    """With a smaller limit: all blocks in two words, some of them, or none."""
    limit(120, many)
    data, _ = draw(rng, 230, (700, 577), score, missing, frequencies=None)
    data = replace(data, partners=random_partners(rng, 230, 0.9))
    scanner = scanner_of(gpu, 3, data, 100)
    assert scanner.split_accumulators == int(many == 0)
    assert (scanner.overflowing is None) == (many == 0)
    assert_same(scanner.triples(range(230)), on_cpu(3, data, range(230), 100))


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_awkward_sizes_in_two_words(gpu, rng, limit, missing):  # noqa: F811
    limit(-1, 0.0)
    for n in (1, 2, 15, 16, 17, 63, 64, 65):
        data, _ = draw(rng, n, (33, 20), "k2", missing, frequencies=None)
        for order in (2, 3):
            found = run(gpu, order, data, range(n), 25)
            assert_same(found, on_cpu(order, data, range(n), 25))


@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_largest_counts_of_pairs(gpu, rng, limit, missing, monkeypatch):  # noqa: F811
    from popdesic.epistasis import packing_gpu
    from popdesic.epistasis.layout import BLOCK_SITES, TILE_SITES

    limit(0)
    monkeypatch.setattr(packing_gpu, "TABLES_SHARE", 0.0)  # in strips
    data, states = draw(rng, 600, (300, 211), "k2", missing, frequencies=None)
    scanner = scanner_of(gpu, 3, data, 5)
    scanner.split_accumulators = 1
    found = scanner._measure_pairs()
    stored = np.zeros((600, 600), int)
    cells = np.zeros((600, 600), int)
    cases = np.arange(511) >= 300
    for of_class in (~cases, cases):
        planes = [(states[:, of_class] == s).astype(np.float32) for s in (0, 1, 2, 3)]
        for s, t in np.ndindex(4, 4):
            both = (planes[s] @ planes[t].T).astype(int)
            if max(s, t) < 3:
                stored = np.maximum(stored, both)
            if 2 not in (s, t):
                cells = np.maximum(cells, both)
    for k, table in enumerate((stored, cells)):
        upper = np.triu(table, 1)
        expected = np.zeros(found.shape[:2], int)
        for (row, column), _ in np.ndenumerate(expected):
            y, z = row * TILE_SITES, column * BLOCK_SITES
            block = upper[y : y + TILE_SITES, z : z + BLOCK_SITES]
            expected[row, column] = block.max(initial=0)
        assert (found[:, :, k] == expected).all()


@pytest.mark.parametrize("gpu", ["deep"], indirect=True)
def test_more_samples_than_a_float_counts_are_refused(gpu, rng, monkeypatch):  # noqa: F811
    from popdesic.epistasis import classes_gpu

    monkeypatch.setattr(classes_gpu, "MAX_CLASS", 40)
    data, _ = draw(rng, 5, (41, 7), "k2")
    with pytest.raises(
        UserError, match=r"41 samples of one class, .* at most 40; set device to cpu"
    ):
        scan_pairs(gpu, data, range(5), 3)
