"""Blocks of sites of data larger than a device: each combination in one step, one load a step."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from reference_epistasis import random_partners, scan_of_blocks

from popdesic.engine.gpu.epistasis_block_plans import (
    BLOCK_STEP,
    ScanSize,
    block_ranges,
    block_sites,
    block_steps,
)

BIOBANK = ScanSize(2, 2, 2 * 62_504, 250_000, False, 1 << 31, 140 << 30)
STUDY = replace(BIOBANK, order=3, row_bytes=2 * 640, largest_class=3000)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 17, 30])
def test_each_combination_is_in_one_step(order, n, block=8):
    blocks = [range(a, min(a + block, n)) for a in range(0, n, block)]
    held: dict[tuple[int, ...], int] = dict.fromkeys(itertools.combinations(range(n), order), 0)
    for step in block_steps(len(blocks), order, range(len(blocks))):
        rows = [site for i in step for site in blocks[i]]
        ranges = block_ranges(len(step), block, len(rows))
        ranges = ranges if order == 3 else (ranges[0], ranges[2])
        for places in itertools.product(*ranges):
            if all(a < b for a, b in itertools.pairwise(places)):
                held[tuple(rows[place] for place in places)] += 1
    assert set(held.values()) <= {1}


@pytest.mark.parametrize("order", [2, 3])
def test_a_step_needs_one_block_that_the_one_before_lacks(order):
    steps = list(block_steps(6, order, range(6)))
    kept: list[int | None] = [None] * order
    for step in steps:
        kept[len(step) - 1] = step[-1]
        assert kept[: len(step)] == list(step)
    assert len(steps) == {2: 6 + 15, 3: 6 + 15 + 20}[order]


def test_only_blocks_with_first_sites_come_first():
    assert {step[0] for step in block_steps(5, 3, {1, 3})} == {1, 3}
    assert list(block_steps(3, 2, [2])) == [(2,)]


@pytest.mark.parametrize(("size", "n_sites"), [(BIOBANK, 500_000), (STUDY, 500_000)])
@pytest.mark.parametrize("room", [1, 10 << 30, 40 << 30, 120 << 30])
def test_blocks_fit_the_memory(size, n_sites, room):
    block = block_sites(size, n_sites, room)
    assert block % BLOCK_STEP == 0
    needed = size.bytes(size.order * block) + block * size.row_bytes
    assert needed <= room or block == BLOCK_STEP
    n_blocks = -(-n_sites // block)
    assert n_blocks * block - n_sites < n_blocks * BLOCK_STEP  # about equal blocks


def test_blocks_of_a_biobank_are_scanned_longer_than_they_are_loaded():
    """On an H200: pairs at 1.2e15 combinations x samples a second, copies at 50 GB/s."""
    block = block_sites(BIOBANK, 500_000, 120 << 30)
    assert block * BIOBANK.row_bytes / 50e9 < 0.1 * block**2 * 500_000 / 1.2e15
    assert block_sites(STUDY, 500_000, 120 << 30) > 16_384


@pytest.mark.parametrize("begin", [None, 0, 5, 40])
def test_data_of_some_sites(begin):
    rng = np.random.default_rng(1)
    data = scan_of_blocks(rng, "k2", 5, 35, (70, 61))
    data = replace(data, partners=random_partners(rng, 40, 0.5), complete_from=begin)
    rows = np.array([0, 3, 4, 5, 20, 39])
    some = data.of_sites(rows)
    for one, whole in zip(some.classes, data.classes, strict=True):
        assert (one.words == whole.words[rows]).all()
    assert (some.rank == data.rank[rows]).all()
    assert (some.partners.pos == data.partners.pos[rows]).all()
    assert some.complete_from == {None: None, 0: 0, 5: 3, 40: 6}[begin]
