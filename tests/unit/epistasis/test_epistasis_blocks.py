"""Blocks of sites of data larger than a device: each combination in one step, one load a step."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from oracles.epistasis import random_partners, scan_of_blocks

from popdesic.epistasis import scan_work
from popdesic.epistasis.blocks_plan import (
    BLOCK_STEP,
    ScanSize,
    block_loads,
    block_ranges,
    block_sites,
    block_steps,
)
from popdesic.epistasis.parts_plan import parts_of
from popdesic.epistasis.scan_data import OneHot, ScanData

BIOBANK = ScanSize(2, 2, 2 * 62_504, 250_000, False, 1 << 31, 140 << 30)
STUDY = replace(BIOBANK, order=3, row_bytes=2 * 640, largest_class=3000)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 17, 30])
@pytest.mark.parametrize("begin", [0, 3, 8, 13])
def test_each_combination_is_in_one_part_of_one_step(monkeypatch, order, n, begin, block=8):
    monkeypatch.setattr(scan_work, "LEAST_BLOCK", 0.0)
    blocks = [range(a, min(a + block, n)) for a in range(0, n, block)]
    held: dict[tuple[int, ...], int] = dict.fromkeys(itertools.combinations(range(n), order), 0)
    for step in block_steps(len(blocks), order, range(len(blocks))):
        rows = [site for i in step for site in blocks[i]]
        first, *within = block_ranges(len(step), block, len(rows))
        planes = tuple(OneHot(np.zeros((len(rows), 3, 1), np.uint64), 9) for _ in range(2))
        rank = np.arange(len(rows), dtype=np.int32)
        complete = sum(site < begin for site in rows)
        data = ScanData(planes, rank, rank, rank, complete_from=complete)
        for part in parts_of(data, order, 4):
            part = part.within(first, *within)
            ranges = (part.first, part.y, part.z) if order == 3 else (part.first, part.z)
            assert order == 3 or set(part.first) <= set(part.y)
            for places in itertools.product(*ranges):
                if all(a < b for a, b in itertools.pairwise(places)):
                    sites = tuple(rows[place] for place in places)
                    held[sites] += 1
                    assert part.states == 3 or min(sites[1:]) >= begin
                    assert part.x_states == 3 or min(sites) >= begin
    assert set(held.values()) <= {1}


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_a_step_needs_at_most_one_new_block(order, n, rng):
    for first in (range(n), np.flatnonzero(rng.random(n) < 0.5).tolist()):
        steps = list(block_steps(n, order, first))
        kept: list[int | None] = [None] * order
        for step, (moves, new) in zip(steps, block_loads(steps, order), strict=True):
            missing = set(step) - set(kept)
            assert len(missing) == (new is not None)
            for source, place in moves:
                kept[place] = kept[source]
            if new is not None:
                kept[new] = missing.pop()
            assert kept[: len(step)] == list(step)
        wanted = {c for k in range(1, order + 1) for c in itertools.combinations(range(n), k)}
        assert sorted(steps) == sorted(c for c in wanted if c[0] in first)


def test_few_blocks_are_loaded_twice():
    """Of pairs: one block for two, of different blocks, and one."""
    loads = list(block_loads(block_steps(10, 2, range(10)), 2))
    assert sum(new is not None for _, new in loads) == 10 * 9 // 2 + 1


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
