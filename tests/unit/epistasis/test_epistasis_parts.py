"""Parts of a GPU scan: each combination in one of them, that with the fewest products."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from popdesic.epistasis import parts_plan
from popdesic.epistasis.parts_plan import both, incomplete_sites, parts_of
from popdesic.epistasis.scan_data import OneHot, ScanData
from popdesic.epistasis.scan_work import LEAST_BLOCK, first_site_work


def data_of(incomplete, states: int = 3) -> ScanData:
    """Scan data of which only missing genotypes matter."""
    controls = np.zeros((len(incomplete), states, 2), np.uint64)
    cases = controls[:, :, :1].copy()
    for k, site in enumerate(np.flatnonzero(incomplete)):
        (controls if k % 2 else cases)[site, 2, -1] = 1 << 40
    table, rank = np.zeros(200, np.int64), np.arange(len(incomplete), dtype=np.int32)
    return ScanData((OneHot(controls, 128), OneHot(cases, 60)), table, table, rank)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("looked_at", [3, 16, 256])
@pytest.mark.parametrize("chosen", [(), (0,), (5, 2), (22,), range(23)])
def test_the_last_site_with_missing_genotypes_is_found(monkeypatch, looked_at, threads, chosen):
    monkeypatch.setattr(parts_plan, "LOOKED_AT", looked_at)
    monkeypatch.setattr(parts_plan, "PIECES", 2)
    incomplete = np.isin(np.arange(23), list(chosen))
    found = incomplete_sites(data_of(incomplete), threads)
    assert (found >= incomplete).all()
    assert np.flatnonzero(found)[-1:].tolist() == np.flatnonzero(incomplete)[-1:].tolist()


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("n", [0, 1, 23, 40])
@pytest.mark.parametrize("last", [None, 0, 5, 12, 22])
def test_each_combination_is_in_one_part(order, n, last):
    tile, incomplete = 8, np.zeros(n, bool)
    if last is not None:
        incomplete[last : last + 1] = True
    parts = parts_of(data_of(incomplete), order, tile)
    end = 0 if last is None or last >= n else last + 1
    assert (len(parts) > 1) == (end > 0 and n - -(-end // tile) * tile >= max(1, n * LEAST_BLOCK))
    for sites in itertools.combinations(range(n), order):
        x, y, z = sites[0], sites[-2], sites[-1]
        own = [p for p in parts if x in p.first and y in p.y and z in p.z]
        assert len(own) == 1
        # missing genotypes of a site are counted
        assert own[0].states == 3 or not incomplete[list(sites[1:])].any()
        assert own[0].x_states == 3 or not incomplete[list(sites)].any()
    for part in parts[1:]:  # no block of y begins in one part and ends in another
        assert part.y.start % tile == 0
        assert part.z.start % tile == 0


def test_sites_without_the_plane_of_missing_genotypes_are_one_part():
    (part,) = parts_of(data_of(np.zeros(40, bool), 2), 3, 8)
    assert (part.states, part.x_states, len(part.first)) == (2, 2, 40)


def test_sites_in_both_ranges():
    assert both(range(3, 9), range(5, 20)) == range(5, 9)
    assert len(both(range(3, 5), range(7, 9))) == 0


@pytest.mark.parametrize("order", [2, 3])
def test_work_is_that_of_the_parts(order):
    """By products: those of three stored states take 9 / 4 times those of two."""
    stored = np.full((4096, 3), 200_000, np.int64)
    stored[:, 2] = 0
    complete = first_site_work(stored[:, :2], 9375, order, "gpu")
    stored[:205, 2] = 2000
    found = first_site_work(stored, 9375, order, "gpu")
    assert (found[256:] == complete[256:]).all()
    if order == 2:  # with a site before the block 9 / 4, with one in it 6 / 4
        outside = 256 - 64 * (np.arange(1, 257) // 64)
        assert found[:256] == pytest.approx(1.5 * complete[:256] + 0.75 * outside)
    else:
        assert (found[:256] < 1.2 * complete[:256]).all()
    assert found.sum() < 1.2 * complete.sum()
    stored[:, 2] = 2000  # one part: pairs have equal work
    whole = first_site_work(stored, 9375, order, "gpu").sum() / complete.sum()
    assert whole == pytest.approx({2: 1.0, 3: 2.2}[order], rel=0.02)
