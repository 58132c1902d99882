"""How GPU scans divide their work: each combination is in one item, each sample in one step."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from support.cards import CARDS
from support.launches import HOPPER, scan_shape

from popdesic.core.errors import UserError
from popdesic.engine.devices import Device, scan_kernels
from popdesic.epistasis import scan_plan
from popdesic.epistasis.layout import (
    BLOCK_SITES,
    COMPACT_ROWS,
    PARTS,
    PARTS_IN_A_ROW,
    STEP_BITS,
    TILE_SITES,
)
from popdesic.epistasis.scan_plan import (
    CORES,
    ITEMS_A_BLOCK,
    STAGE_STEPS,
    Batch,
    Pace,
    choose_core,
    cut_runs,
    overflowing_items,
    schedule_tiles,
    shared_depths,
)
from popdesic.epistasis.shared_layout_plan import SharedNeeds, choose_layout, forms


@pytest.mark.parametrize(("tile", "width"), [(64, 32), (64, 64), (128, 64), (128, 128)])
@pytest.mark.parametrize(
    ("y", "z"), [((0, 700), (0, 700)), ((130, 300), (128, 701)), ((5, 6), (0, 9))]
)
def test_every_pair_lies_in_one_item(tile, width, y, z):
    items = schedule_tiles(range(*y), range(*z), tile, width)
    resident = np.zeros((y[1] + tile, z[1] + width), int)
    for row, column in items:
        resident[row * tile : (row + 1) * tile, column * width : (column + 1) * width] += 1
    assert resident.max() == 1
    first, second = np.triu_indices(z[1], 1)
    wanted = (first >= y[0]) & (first < y[1]) & (second >= z[0])
    assert (resident[first[wanted], second[wanted]] == 1).all()
    # no item lies entirely below the diagonal
    assert ((items[:, 1] + 1) * width > items[:, 0] * tile).all()


@pytest.mark.parametrize(("tile", "width"), [(64, 32), (64, 64), (128, 64)])
@pytest.mark.parametrize(
    ("y", "z"), [((128, 700), (0, 128)), ((256, 257), (70, 200)), ((1280, 2400), (0, 1))]
)
def test_every_pair_of_two_ranges_lies_in_one_item(tile, width, y, z):
    items = schedule_tiles(range(*y), range(*z), tile, width, whole=True)
    resident = np.zeros((y[1] + tile, z[1] + width), int)
    for row, column in items:
        resident[row * tile : (row + 1) * tile, column * width : (column + 1) * width] += 1
    assert resident.max() == 1
    assert resident[y[0] : y[1], z[0] : z[1]].min() == 1
    # neighbours in the list are close to each other: at most eight rows at a time
    assert np.ptp(items[: scan_plan.ROW_GROUP, 0]) < scan_plan.ROW_GROUP


@pytest.mark.parametrize(
    ("n_items", "n_x", "blocks"),
    [(3, 256, 66), (465, 40, 66), (2080, 20, 66), (50, 1, 66), (0, 7, 9)],
)
@pytest.mark.parametrize("longest", [math.inf, 16])
def test_runs_cover_all_first_sites_once(n_items, n_x, blocks, longest):
    items = np.stack([np.arange(n_items), np.arange(n_items)], axis=-1).astype(np.int32)
    cut = cut_runs(items, n_x, blocks, longest)
    assert np.diff(cut[:, 2:]).max(initial=0) <= longest
    assert len(cut) >= min(ITEMS_A_BLOCK * blocks, n_items * n_x)
    if n_x > 1:  # at most 5 % idle at the end
        rounds = -(-len(cut) // blocks)
        assert rounds * blocks <= 1.05 * len(cut)
    for item in items:
        runs = cut[(cut[:, :2] == item).all(axis=1), 2:]
        covered = np.concatenate([np.arange(begin, end) for begin, end in runs])
        assert covered.tolist() == list(range(n_x))


def test_segments_are_padded_to_steps_and_sites_to_stages(rng):
    sizes = rng.integers(0, 3000, (40, 4))
    sizes[7] = 0
    batch = Batch.of(sizes, 0)
    steps = np.diff(batch.segments, axis=1)
    assert (steps * STEP_BITS >= sizes).all()
    assert ((steps - 1) * STEP_BITS < sizes).all()
    stages = np.diff(batch.stages)
    assert (stages * STAGE_STEPS >= batch.segments[:, -1]).all()
    assert stages[7] == 0
    assert len(batch.head(9)) == 9
    assert batch.head(9).stages.tolist() == batch.stages[:10].tolist()


def test_stages_of_the_same_samples_are_scheduled_together(rng):
    n, carried = (60_000, 40_000), rng.uniform(0.1, 0.4, (12, 2))
    sizes = (carried[:, :, None] * n).astype(int).reshape(12, 4)
    sizes[3] = 0
    batch = Batch.of(sizes, 0)
    stage, x = batch.visits().T
    assert sorted(stage) == list(range(batch.stages[-1]))
    assert (batch.stages[x] <= stage).all()
    assert (stage < batch.stages[x + 1]).all()
    # controls first, with their samples in ascending order for every x and both states
    step = STAGE_STEPS * (stage - batch.stages[x])
    segment = (batch.segments[x, 1:] <= step[:, None]).sum(axis=1)
    assert (np.diff(segment % 2) >= 0).all()
    sample = (step - batch.segments[x, segment]) * STEP_BITS / sizes[x, segment]
    assert (np.diff(sample[segment % 2 == 0]) >= -0.05).all()


@pytest.mark.parametrize("n_states", [2, 3])
def test_parts_of_two_sites_make_both_tables(n_states, rng):
    # sites, classes, samples; the last state is not stored
    states = rng.integers(0, n_states + 1, (6, 2, 500))
    of_class = np.array([500, 300])
    within = np.arange(500) < of_class[:, None]
    sizes = np.stack([((states == s) & within).sum(axis=2) for s in range(n_states)], axis=-1)
    table = np.zeros((5, 2, 3, 3), int)
    for x, c in np.ndindex(5, 2):
        pair = states[x : x + 2, c, : of_class[c]].clip(max=2)
        np.add.at(table[x, c], tuple(pair), 1)
    depths = shared_depths(sizes, table[..., :2, :2]).reshape(5, -1, 2)
    for part, (s, t) in enumerate(PARTS):
        assert (depths[:, part - len(PARTS)] == table[:, :, s, t]).all()
    if n_states == 3:
        assert (depths[:, 0] == sizes[:-1, :, 2]).all()
        assert (depths[:, 1] == sizes[1:, :, 2]).all()
    # what the kernel derives from the sums after each part
    sums = depths[:, -len(PARTS) :].reshape(5, -1, PARTS_IN_A_ROW, 2).cumsum(axis=2)
    after = sums.reshape(5, len(PARTS), 2)
    for s in (0, 1):
        assert (after[:, PARTS_IN_A_ROW * s + 2] == sizes[:-1, :, s]).all()
        other = (
            after[:, PARTS_IN_A_ROW * s + 3]
            - after[:, PARTS_IN_A_ROW * s + 1]
            + after[:, PARTS_IN_A_ROW - PARTS_IN_A_ROW * s]
        )
        assert (other == sizes[1:, :, s]).all()


def test_core_follows_depth_and_states():
    assert choose_core("wgmma", 2, 3, 0.0) is CORES["deep"]
    assert choose_core("wgmma", 3, 2, 1e4) is CORES["deep"]
    assert choose_core("wgmma", 3, 2, 8.0) is CORES["wgmma"]
    assert choose_core("wgmma", 3, 2, 30.0) is CORES["middle"]
    assert choose_core("wgmma", 3, 3, 8.0) is CORES["mma"]
    assert choose_core("wgmma", 3, 2, 8.0, x_states=3) is CORES["mma"]
    assert choose_core("wgmma", 3, 2, 1e4, x_states=3) is CORES["deep"]
    assert choose_core("popc", 3, 3, 1e4) is CORES["popc"]
    # the core that also counts in two words
    assert choose_core("wgmma", 3, 2, 8.0, overflowing=True) is CORES["deep"]
    assert choose_core("mma", 3, 2, 8.0, overflowing=True) is CORES["mma"]


@pytest.mark.parametrize(
    ("name", "order", "states", "table"),
    [
        (name, *form)
        for name in CORES
        for form in ((2, 2, 0), (2, 3, 0), (2, 2, 1), (3, 2, 0), (3, 3, 0))
        if not CORES[name].epilogue_subtiles
        or form[1] == 2  # its accumulators do not hold three states
    ],
)
@pytest.mark.parametrize(("split_cells", "split_accumulators"), [(0, 0), (1, 0), (1, 1)])
def test_scans_fit_shared_memory(name, order, states, table, split_cells, split_accumulators):
    core = CORES[name]
    if split_accumulators and core.epilogue_subtiles:
        pytest.skip("counts share a word")
    sites_only = scan_plan.keeps_sites_only(core, order, states, split_accumulators)
    given = {
        "split_cells": split_cells,
        "split_accumulators": split_accumulators,
        "sites_only": sites_only,
        "lockstep": 8,
    }
    shape = scan_shape(core, order, states, table=table, **given)
    slot = (TILE_SITES + core.z_sites(order, states, split_accumulators)) * states * 128
    assert shape.shared_bytes <= HOPPER.shared_bytes
    assert shape.defines["STAGES"] * slot < shape.shared_bytes
    assert shape.defines["STAGES"] >= (1 if name == "popc" else 2)
    assert ("CLUSTER" in shape.defines) == (core.cluster > 1)
    assert shape.defines.get("CHUNK", 4) == 4  # nothing is scored in smaller parts
    assert not shape.defines.get("STASH_IN_SLOTS")
    assert ("SCRATCH_SHARED" in shape.defines) == (core.cluster == 1)
    assert ("OPERAND_SITES" in shape.defines) == (order == 3)


@pytest.mark.parametrize(("split_cells", "split_accumulators"), [(0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    ("order", "states", "x_states"),
    [(order, *states) for order in (2, 3) for states in ((2, 2), (2, 3), (3, 3))],
)
@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: str(card.capability))
def test_scans_fit_every_card(card, order, states, x_states, split_cells, split_accumulators):
    device = card.device()
    for kernel in scan_kernels(device):
        core = choose_core(
            *(kernel, order, states, 0.0),
            overflowing=bool(split_accumulators),
            shared_bytes=device.shared_bytes,
            x_states=x_states,
        )
        sites_only = scan_plan.keeps_sites_only(core, order, x_states, split_accumulators)
        given = {
            "split_cells": split_cells,
            "split_accumulators": split_accumulators,
            "sites_only": sites_only,
            "device": device,
        }
        given["x_states"] = x_states
        if (card.capability, order, states, split_accumulators) == (
            75,
            3,
            3,
            1,
        ):  # the only form without room
            with pytest.raises(UserError, match="shared memory for a block"):
                scan_shape(core, order, states, **given)
            continue
        shape = scan_shape(core, order, states, **given)
        assert shape.shared_bytes <= card.shared_bytes
        assert shape.defines["STAGES"] >= (1 if core is CORES["popc"] else 2)


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: str(card.capability))
def test_quads_fit_every_card(card):
    """A value of each pair of sites of y and z waits in scratch."""
    device = card.device()
    for kernel, states in itertools.product(scan_kernels(device), (2, 3)):
        core = choose_core(kernel, 4, states, 8.0, shared_bytes=device.shared_bytes)
        assert core is not CORES["wgmma"] and core is not CORES["middle"]
        given = {"sites_only": True, "device": device}
        without = scan_shape(core, 3, states, **given).defines
        shape = scan_shape(core, 4, states, **given)
        assert shape.shared_bytes <= card.shared_bytes
        assert not shape.defines.get("RESIDENT_SUMS")
        pairs = TILE_SITES * core.z_sites(3, states)
        if core.epilogue_workspace:
            assert shape.defines["LAUNCH_SCRATCH"] == without["LAUNCH_SCRATCH"] + pairs
        else:
            cells = 0 if states == 2 else states**2
            assert shape.defines["LAUNCH_SCRATCH"] == (cells + 1) * pairs


@pytest.mark.parametrize(("overlapped", "resident"), [(0, 0), (8, 0), (16, 0), (8, 8192)])
def test_forms_take_ever_less_memory_and_the_first_that_fits_is_taken(overlapped, resident):
    needs = SharedNeeds(32768, 8192, 5120, 81920 * bool(overlapped), 3, overlapped, resident)
    every = list(forms(needs))
    assert [form.resident for form in every[:3]] == [int(resident > 0)] * 2 + [0]
    for kind in (0, 1):  # a form that holds sums may take less than the first one that does not
        sizes = [form.shared_bytes for form in every if form.resident == kind]
        assert sizes == sorted(sizes, reverse=True)
    assert every[0].defines == {
        "STAGES": 3,
        "CHUNK": 4,
        "MARGIN_SETS": 2,
        "STASH_IN_SLOTS": 0,
        "SCRATCH_SHARED": 1,
        "RESIDENT_SUMS": int(resident > 0),
    }
    for form in every:
        chosen = choose_layout(needs, form.shared_bytes)
        assert chosen.shared_bytes <= form.shared_bytes
        assert every.index(chosen) <= every.index(form)
        # counts lie in slots only where none is filled meanwhile
        assert not (form.stash_in_slots and overlapped)
    assert choose_layout(needs, 0) == every[-1]


def test_a_device_with_too_little_shared_memory_is_named():
    small = Device(0, "Tiny", 80, 1, 40_000, 1)
    with pytest.raises(UserError, match="Tiny has 40000 bytes of shared memory"):
        scan_shape(CORES["mma"], order=2, states=2, device=small)


@pytest.mark.parametrize("order", [2, 3])
def test_launches_grow_with_work_done_and_shrink_with_the_pass_rate(order):
    pace = Pace(order, top=10, start=1000)
    assert pace.budget(1 << 20) == 1000
    pace.note(1000, 1)
    assert pace.budget(1 << 20) <= 1000 * scan_plan.GROWTH[order]
    pace.note(1000, 900)
    if order == 3:  # at that pass rate, half of the room
        assert pace.budget(9000) == 5000
    else:  # the pass rate of pairs is capped
        assert pace.passing == 0.32


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("n", [2, 300, 513, 1400, 9000])
def test_upload_blocks_cover_all_sites_once_in_whole_row_blocks(n, states):
    for first in (0, n // 2):
        start = scan_plan.align(first, states)
        blocks = scan_plan.upload_blocks(start, n, states)
        assert [site for block in blocks for site in block] == list(range(start, n))
        for block in blocks:
            assert block.start == scan_plan.align(block.start, states)
            assert block.start * states % COMPACT_ROWS == 0
    assert 0 <= scan_plan.padded_sites(n, states) - n < scan_plan.PADDING[states]


@pytest.mark.parametrize(("tile", "width"), [(64, 32), (64, 64), (128, 64), (128, 128)])
def test_an_item_with_a_crowded_block_is_crowded(tile, width, rng):
    overflowing = rng.random((8, 16)) < 0.04
    items = schedule_tiles(range(512), range(512), tile, width)
    found = overflowing_items(items, overflowing, tile, width)
    for (row, column), one in zip(items, found, strict=True):
        y, z = range(row * tile, (row + 1) * tile), range(column * width, (column + 1) * width)
        resident = [overflowing[j // TILE_SITES, k // BLOCK_SITES] for j in y for k in z]
        assert one == any(resident)


def test_missing_samples_are_bounded_by_the_worst_site():
    largest = np.array([7, (1 << 23) - 1], np.int32)
    assert scan_plan.missing_samples(3, largest) == (21, 3 * ((1 << 23) - 1))
