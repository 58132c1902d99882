"""Plans of matrices on several devices: each entry has one owner, each device as much work."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from popdesic.core.limits import SPREAD_LEAST
from popdesic.engine.minplus import closure_panel
from popdesic.engine.minplus_plan import padded
from popdesic.engine.needs import closing_devices
from popdesic.engine.spread_plan import SpreadPlan

SIZES = [1, 2, 63, 64, 65, 128, 129, 257, 500, 1000, 4097, 5000]
PLANS = [SpreadPlan.of(n, devices) for n, devices in itertools.product(SIZES, (1, 2, 3, 8))]


def name(plan: SpreadPlan) -> str:
    return f"{plan.n}-{plan.panel}-{plan.devices}"


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_every_individual_has_one_row_and_one_column(plan):
    assert np.array_equal(np.sort(plan.order), np.arange(plan.n))
    for panel in range(plan.panels):
        rows, owner = plan.rows(panel), plan.owner(panel)
        assert plan.order[plan.columns(panel)].tolist() == list(rows)
        stored = plan.order[plan.offsets[owner] : plan.offsets[owner + 1]]
        assert stored[plan.stored(panel)].tolist() == list(rows)
    assert all(np.diff(plan.offsets) > 0), "a device without rows"


@pytest.mark.parametrize("block", [64, 128])
@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_every_tile_of_the_upper_triangle_is_updated_once(plan, block):
    seen = np.zeros((plan.n // block,) * 2, int)
    place = plan.order[::block] // block
    for device in range(plan.devices):
        tiles = plan.tiles(device, block).astype(int)
        own = plan.offsets[device] // block
        np.add.at(seen, (place[own + tiles[:, 0]], place[tiles[:, 1]]), 1)
        of_panels = plan.tiles_of_panels(device, block)
        for panel in range(plan.panels):
            rows, columns = plan.hole(device, panel, block)
            inside = [(i, j) for i, j in tiles.tolist() if i in rows or j in columns]
            assert sorted(of_panels[panel].tolist()) == sorted(map(list, inside))
        assert plan.hole(device, plan.panels, block) == (range(0), range(0))
    assert np.array_equal(seen, np.triu(np.ones_like(seen)))


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_the_columns_of_a_panel_are_known_once(plan):
    """Columns before the diagonal are known where their rows are, the others where the panel is."""
    for panel in range(plan.panels):
        known = np.zeros(plan.n, int)
        for device in range(plan.devices):
            for columns in plan.known(device, panel):
                known[columns] += 1
                behind = plan.order[columns] >= plan.rows(panel).start
                owners = [plan.owner(one // plan.panel) for one in plan.order[columns]]
                assert (behind | (np.array(owners) == device)).all()
                assert device == plan.owner(panel) or not behind.any()
        assert (known == 1).all()


@pytest.mark.parametrize("devices", [2, 3, 4, 8])
def test_devices_have_as_much_work(devices):
    plan = SpreadPlan.of(30000, devices)
    tiles = [len(plan.tiles(device, 128)) for device in range(devices)]
    assert sum(tiles) == 235 * 236 // 2
    assert max(tiles) / (sum(tiles) / devices) < {2: 1.01, 3: 1.02, 4: 1.03, 8: 1.08}[devices]


def test_panels_are_those_of_one_device():
    """Sums of floats depend on them."""
    for n in SIZES:
        assert SpreadPlan.of(n, 2).panel == closure_panel(padded(n))


def test_devices_share_the_memory():
    one, two = (SpreadPlan.of(30000, devices).device_bytes(4) for devices in (1, 2))
    assert 30000**2 * 4 < one < 1.1 * 30080**2 * 4
    assert two < 0.6 * one


def test_few_points_take_one_device():
    assert closing_devices(SPREAD_LEAST - 1, 4) == 1
    assert closing_devices(SPREAD_LEAST, 4) == 4
