"""Data larger than a GPU's memory, block by block: the hits of the CPU."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from oracles.epistasis import assert_same, random_partners, scan_of_blocks
from test_epistasis_gpu import gpu, run  # noqa: F401

from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.scan_data import OneHot

pytestmark = pytest.mark.gpu
cupyx = pytest.importorskip("cupyx")


def pinned(data):
    classes = []
    for one in data.classes:
        words = cupyx.empty_pinned(one.words.shape, np.uint64)
        words[...] = one.words
        classes.append(OneHot(words, one.n_samples))
    return replace(data, classes=tuple(classes))


PAIRS = 2, (3000, 2570), range(1300)
FEW_PEOPLE = 3, (300, 257), range(508, 516)
MANY_PEOPLE = 3, (20_011, 15_013), range(130, 133)


@pytest.mark.parametrize(
    ("score", "n_incomplete", "order", "n_samples", "first"),
    [
        ("k2", 131, *PAIRS),
        ("interaction", 1, *PAIRS),
        ("k2", 1, *FEW_PEOPLE),
        ("interaction", 131, *FEW_PEOPLE),
        ("k2", 900, *MANY_PEOPLE),
        ("mutual_information", 131, *MANY_PEOPLE),
    ],
)
def test_hits_are_those_of_the_cpu(gpu, rng, score, n_incomplete, order, n_samples, first):  # noqa: F811
    """Blocks of 512 sites: the least, because no memory is left."""
    from popdesic.engine.backend_gpu import GpuBackend

    data = scan_of_blocks(rng, score, n_incomplete, 1300 - n_incomplete, n_samples, 0.02)
    expected = run(CpuBackend(threads=os.cpu_count()), order, data, first, 60)
    small = GpuBackend(kernel=gpu.kernel, device_bytes=1)
    for given in (data, pinned(replace(data, complete_from=n_incomplete))):
        assert_same(run(small, order, given, first, 60), expected)


@pytest.mark.parametrize("order", [2, 3])
def test_partners_and_classes_beyond_sixteen_bits(gpu, rng, order):  # noqa: F811
    from popdesic.engine.backend_gpu import GpuBackend

    data = scan_of_blocks(rng, "k2", 0, 1100, (70_001, 66_003))
    data = replace(data, partners=random_partners(rng, 1100, 0.05))
    first = range(1100) if order == 2 else range(511, 513)
    expected = run(CpuBackend(threads=os.cpu_count()), order, data, first, 20)
    small = GpuBackend(kernel=gpu.kernel, device_bytes=1)
    assert_same(run(small, order, data, first, 20), expected)


@pytest.mark.parametrize("order", [2, 3])
def test_planes_that_lack_more_than_the_data_say_are_refused(gpu, rng, order):  # noqa: F811
    data = replace(scan_of_blocks(rng, "k2", 300, 400, (500, 410)), complete_from=299)
    with pytest.raises(UserError, match="n_missing 0"):
        run(gpu, order, data, range(700) if order == 2 else range(250, 260), 20)
