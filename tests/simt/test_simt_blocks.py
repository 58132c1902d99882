"""Data larger than the device: block by block, the hits of a scan of all sites at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracles.epistasis import random_partners, scan_of_blocks

from popdesic.core.errors import UserError
from popdesic.engine.select import cpu_backend
from simt.test_simt_scans import assert_same, run


def by_blocks(machine, data, order, firsts, block, top=60, cutoff=None, kernel="popc"):
    from popdesic.epistasis.blocks_gpu import scan_blocks
    from popdesic.epistasis.scan_gpu import scan_step

    given = (top, cutoff, machine.device, kernel, 2)
    return scan_blocks(scan_step, data, order, firsts, *given, block)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "interaction"])
@pytest.mark.parametrize(("order", "first"), [(2, range(240, 262)), (3, range(254, 258))])
def test_hits_are_those_of_all_sites(machine, rng, monkeypatch, score, order, first):
    """In three blocks, the last of which is short, from memory that is not pinned."""
    from popdesic.epistasis import blocks_gpu

    monkeypatch.setattr(blocks_gpu, "STAGING_BYTES", 3000)
    n = 520 if order == 3 else 600
    data = scan_of_blocks(rng, score, 0, n, (70, 61))
    if order == 3:
        data = replace(data, partners=random_partners(rng, n, 0.05))
    expected = run(cpu_backend(1), order, data, first, 60)
    assert_same(by_blocks(machine, data, order, [first], 256), expected)


@pytest.mark.parametrize(("order", "first"), [(2, range(300)), (3, range(254, 258))])
def test_steps_share_score_tables(machine, rng, monkeypatch, order, first):
    from popdesic.epistasis.bound import K2Terms

    made, of = [], K2Terms.of
    monkeypatch.setattr(K2Terms, "of", lambda *given: made.append(given) or of(*given))
    data = scan_of_blocks(rng, "k2", 0, 300, (40, 31))
    expected = run(cpu_backend(1), order, data, first, 50)
    assert_same(by_blocks(machine, data, order, [first], 256, 50), expected)
    assert len(made) == 1


def test_pairs_of_five_blocks(machine, rng):
    """Blocks of z in turns rising and falling: some move from place to place."""
    data = scan_of_blocks(rng, "k2", 0, 1100, (40, 31))
    expected = run(cpu_backend(1), 2, data, range(1100), 50)
    assert_same(by_blocks(machine, data, 2, [range(1100)], 256, 50), expected)


@pytest.mark.parametrize("known", [False, True])
def test_missing_genotypes_in_some_blocks(machine, rng, known):
    from popdesic.engine.backend_gpu import GpuBackend

    data, first = scan_of_blocks(rng, "k2", 520, 60, (70, 61)), range(505, 522)
    data = replace(data, complete_from=520 if known else None)
    expected = run(cpu_backend(1), 2, data, first, 60)
    assert_same(by_blocks(machine, data, 2, [first], 512), expected)
    small = GpuBackend(kernel="popc", device_bytes=1)
    machine.launched.clear()
    assert_same(run(small, 2, data, first, 60), expected)
    assert machine.launched.count("pack_rows") > 2


def test_a_cutoff_and_several_runs_of_first_sites(machine, rng):
    data = scan_of_blocks(rng, "k2", 0, 300, (40, 31))
    firsts = [range(3, 9), range(255, 260)]
    cpu = cpu_backend(1)
    expected = [run(cpu, 2, data, first, 50) for first in firsts]
    cutoff = int(expected[0].cost[20])
    found = by_blocks(machine, data, 2, firsts, 256, 50, cutoff)
    both = sorted(cost for hits in expected for cost in hits.cost.tolist() if cost <= cutoff)
    assert found.cost.tolist() == both[:50]


@pytest.mark.parametrize(("device", "order"), [("cpu", 2), ("cpu", 3), ("gpu", 2)])
def test_planes_that_lack_more_than_the_data_say_are_refused(machine, rng, order, device):
    from popdesic.engine.backend_gpu import GpuBackend

    backend = cpu_backend(1) if device == "cpu" else GpuBackend(kernel="popc")
    data = replace(scan_of_blocks(rng, "k2", 20, 60, (50, 41)), complete_from=19)
    first = range(80) if order == 2 else range(15, 17)
    with pytest.raises(UserError, match="n_missing 0"):
        run(backend, order, data, first, 20)
    # as many as there are, and more, are right
    hits = [run(backend, order, replace(data, complete_from=n), first, 20) for n in (20, 64, None)]
    assert_same(hits[0], hits[1])
    assert_same(hits[0], hits[2])
