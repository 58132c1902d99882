"""Sites with and without missing genotypes are scanned apart on a GPU: the hits of the CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracles.epistasis import assert_same, random_partners, scan_of_blocks
from test_epistasis_blocks_gpu import pinned
from test_epistasis_gpu import gpu, run  # noqa: F401

from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend

pytestmark = pytest.mark.gpu
pytest.importorskip("cupy")


@pytest.mark.parametrize("score", ["k2", "k2_excess", "gini", "interaction"])
@pytest.mark.parametrize("n_incomplete", [1, 128, 131, 300])
@pytest.mark.parametrize(
    ("order", "n_samples", "first"),
    [
        (2, (300, 257), range(700)),
        (2, (20_011, 15_013), range(100, 290)),
        (3, (300, 257), range(120, 140)),
        (3, (3001, 2777), range(250, 260)),
        (3, (20_011, 15_013), range(127, 130)),
    ],
)
def test_hits_are_those_of_the_cpu(gpu, rng, score, n_incomplete, order, n_samples, first):  # noqa: F811
    data = scan_of_blocks(rng, score, n_incomplete, 700 - n_incomplete, n_samples, 0.02)
    expected = run(CpuBackend(threads=8), order, data, first, 60)
    assert_same(run(gpu, order, data, first, 60), expected)


@pytest.mark.parametrize("n_samples", [(3001, 2777), (20_011, 17_013)])
@pytest.mark.parametrize("n_incomplete", [1, 131, 700])
def test_pairs_of_pinned_planes(gpu, rng, n_samples, n_incomplete):  # noqa: F811
    """Planes of missing genotypes of complete sites arrive last where rows are long."""
    data = scan_of_blocks(rng, "k2", n_incomplete, 2000 - n_incomplete, n_samples, 0.02)
    for first in (range(2000), range(60, 120)):
        expected = run(CpuBackend(threads=8), 2, data, first, 60)
        given = pinned(replace(data, complete_from=n_incomplete))
        assert_same(run(gpu, 2, given, first, 60), expected)
    wrong = pinned(replace(data, complete_from=n_incomplete - 1))
    with pytest.raises(UserError, match="n_missing 0"):
        run(gpu, 2, wrong, range(2000), 60)


@pytest.mark.parametrize("order", [2, 3])
def test_partners_and_classes_beyond_sixteen_bits(gpu, rng, order):  # noqa: F811
    """With 16 bits for no count, for some blocks of pairs, and for all of them."""
    for n_samples in ((70_001, 66_003), (70_001, 50)):
        data = scan_of_blocks(rng, "k2", 20, 240, n_samples, 0.01)
        data = replace(data, partners=random_partners(rng, 260, 0.05))
        first = range(260) if order == 2 else range(126, 130)
        expected = run(CpuBackend(threads=8), order, data, first, 20)
        assert_same(run(gpu, order, data, first, 20), expected)
