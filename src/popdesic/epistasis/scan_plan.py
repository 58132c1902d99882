"""How a GPU scan cuts its work: cores, items (blocks of y and z) and batches of first sites x."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ..core.errors import UserError
from ..engine.devices import Device
from ..engine.layout import STAGE_BITS, KernelSource
from .layout import BLOCK_SITES, COMPACT_ROWS, DEEP, FUSED, MULTISTAGE, PARTS, STEP_BITS, TILE_SITES
from .scan_data import LEVEL_BITS
from .shared_layout_plan import SPARE_BYTES, SharedNeeds, choose_layout

#: How many sites the padded number is a multiple of, by stored states: rows are made in whole
#: blocks of COMPACT_ROWS.
PADDING = {2: COMPACT_ROWS // 2, 3: COMPACT_ROWS}
#: Steps of one stage of packed planes.
STAGE_STEPS = STAGE_BITS // STEP_BITS
#: Rows of tiles walked together, so that their planes stay in L2.
ROW_GROUP = 8
#: Steps of depth of an x (mean) from which on thread blocks keep in step, and from which on the
#: core `deep` is the faster, by stored states; before it, `middle` is, from MIDDLE_STEPS on.
LOCKSTEP_STEPS, DEEP_STEPS, MIDDLE_STEPS = 48, {2: 56, 3: 165}, 10
#: Steps of depth (mean) that two first sites must save by it, by stored states: twice as many
#: counts pass through memory, and those of three states have few threads to score them.
SHARED_STEPS = {2: 160, 3: 350}
#: Items for each thread block that a launch should have: fewer are cut into runs of x.
ITEMS_A_BLOCK = 12
#: Most x of a run where scoring dominates: thread blocks then read planes that are still in L2.
#: Some units of 0.1 s take a fifth longer otherwise.
LONGEST_RUN = 32
#: Largest number of samples of a class that share a word with those of the other class, and that
#: a kernel turns into a float exactly.
MAX_SHARED, MAX_CLASS = (1 << 16) - 1, (1 << 23) - 1
#: Share of the blocks with larger counts from which on all blocks are counted in two words.
MANY_OVERFLOWING = 1 / 2
#: By order: the next launch is assumed to let through at most so many times the number of hits,
#: once a cutoff is known; triples, which cost more, as many as the one before.
PASSING = {2: 32, 3: math.inf, 4: math.inf}
#: By order: a launch may have so many times the combinations of all launches before. Triples that a
#: weak cutoff lets through cost more than another launch, pairs less.
GROWTH = {2: 64, 3: 8, 4: 8}
#: Blocks of rows of all stages that are compacted before others.
COMPACT_WIDTH = 8
#: Stages after which thread blocks wait for each other (`Lockstep` in common.cuh).
LOCKSTEP = 8
#: Most thread blocks in the second dimension of a grid.
MAX_GRID = 65535
#: Bounds, as shares of the sites, of the blocks in which a scan of pairs uploads planes: a block is
#: scanned while the next ones are copied. A small first block gives a first cutoff.
UPLOADS = (0.06, 0.4, 0.7, 1)
#: Share of the device's memory for the packed planes of one batch of triples, and most x of one.
PACKED_SHARE, BATCH = 1 / 8, 512
#: Words of the record of a pair or triple, by `split_cells`, and of a quad. So many times fewer
#: quads than triples have room for records, and a batch of them so many times fewer x.
RECORD_WORDS, QUAD_WORDS, FEWER_QUADS = {0: 32, 1: 64}, {0: 84, 1: 168}, 4
#: Combinations of a scan's first launch, before any cost is known; and where a record is counted
#: from the planes: more of them cost more than another launch.
FIRST_LAUNCH, FIRST_SITES_ONLY = 1 << 21, 1 << 18
#: Shared memory of triples of three states by `mma`, counted in two words.
MMA_SPLIT_BYTES = 107_520
#: Combinations of a thread where triples are scored in phases, by stored states.
COMBINATIONS = {2: 16, 3: 8}
#: Counts that the margins of one site of y and of z take in shared memory, by stored states: padded
#: so that 8 sites lie in different banks.
MARGINS = {2: (12, 8), 3: (20, 12)}


#: What a filter looks up is rounded down by this share of it, which also covers the rounding of a
#: kernel's sums.
ROUNDING = 2.0**-20


@dataclass(frozen=True)
class Core:
    """One way to count: its kernel file (`source`) and how it cuts the work.

    Parameters
    ----------
    defines : what the file is compiled with in addition to what every core takes.
    threads : of a thread block.
    cluster : tiles of y that share the copies of z.
    epilogue_workspace : whether counts pass through memory to epilogue warps. Such a kernel takes
        `Scan` by value; where the same threads count and score, a pointer to it is a tenth faster.
    epilogue_subtiles : into which the sites of y are cut, each with counts and margins of z of its
        own in shared memory, from threads that count to others that score; 0: the same do both.
    z_of_triples : sites of z of one item, with `epilogue_subtiles`: fewer leave room for operands.
    """

    source: KernelSource
    defines: tuple[tuple[str, int], ...]
    threads: int
    cluster: int = 1
    epilogue_workspace: bool = False
    epilogue_subtiles: int = 0
    z_of_triples: int = 64

    @property
    def tile_sites(self) -> int:
        """Sites of y of one item."""
        return TILE_SITES * self.cluster

    def z_sites(
        self, order: int, states: int, split_accumulators: int = 0, columns: int = 0
    ) -> int:
        """Sites of z of one item (Z_SITES in the kernel file).

        `split_accumulators` as in `scan_shape`; `columns`: stored states of z, 0: as many as of y.
        """
        columns = columns or states
        if self.epilogue_workspace:
            return {2: 128, 3: 64}[columns]
        if columns != states:
            return 32 if split_accumulators else 64
        if self.epilogue_subtiles:
            return self.z_of_triples if order == 3 else 64
        return {2: 128 if order == 2 and not split_accumulators else 64, 3: 32}[states]

    def stash_bytes(
        self,
        order: int,
        states: int,
        split_accumulators: int = 0,
        x_states: int = 0,
        columns: int = 0,
    ) -> int:
        """Shared memory of the counts of one combination of each thread that scores."""
        products = 2 if (order == 3 and (x_states or states) == 2) or split_accumulators else 1
        if self.epilogue_workspace or self.epilogue_subtiles:
            return 0
        return 8 * products * states * (columns or states) * 32 * 4

    def counts_bytes(self, order: int) -> int:
        """Shared memory of the counts of one first site, where other threads score them."""
        return (
            TILE_SITES * self.z_of_triples * 8 * 4 if self.epilogue_subtiles and order == 3 else 0
        )

    def scratch_words(
        self,
        order: int,
        states: int,
        parts: int,
        split_accumulators: int = 0,
        x_states: int = 0,
        columns: int = 0,
        quads: int = 0,
    ) -> int:
        """Words that one thread block keeps of what was counted; `parts` of the depth.

        `quads`: 1, and a value of each pair of its sites (QUADS in the kernels).
        """
        value = quads * (order == 3)
        if self.epilogue_workspace:  # two buffers of a tile for each part and word
            tiles, columns = parts * (1 + split_accumulators), columns or states
            width = self.z_sites(order, states, columns=columns)
            return TILE_SITES * width * (2 * tiles * states * columns + value)
        counts = (1 + split_accumulators) * states**2 + 1
        if order == 2 or not ((x_states or states) == 3 or split_accumulators):
            counts = value
        return 8 * COMBINATIONS[states] * counts * 32


#: The cores: of the kernels, and `middle` and `deep`, wgmma for more samples.
CORES = {
    "deep": Core(DEEP, (), 512, 2, epilogue_workspace=True),
    "middle": Core(FUSED, (), 896, 2, epilogue_subtiles=2, z_of_triples=32),
    "wgmma": Core(FUSED, (), 896, 2, epilogue_subtiles=2),
    "mma": Core(MULTISTAGE, (("UNROLL", 2), ("POPC", 0)), 256),
    "popc": Core(MULTISTAGE, (("UNROLL", 2), ("POPC", 1)), 256),
}


def choose_core(
    kernel: str,
    order: int,
    states: int,
    steps: float,
    *,
    overflowing: bool = False,
    shared_bytes: int = MMA_SPLIT_BYTES,
    x_states: int = 0,
) -> Core:
    """The fastest core of a kernel.

    Parameters
    ----------
    steps : mean depth of an x.
    x_states : stored states of x; 0: as many as of y and z.
    overflowing : whether some counts may need words of their own (`split_accumulators`).
    shared_bytes : of the device, for a thread block.
    """
    if kernel == "wgmma":
        if order != 3 or overflowing or steps >= DEEP_STEPS[states]:
            kernel = "deep"
        elif (x_states or states) == 3:
            kernel = "mma"  # the counts of three states do not fit the accumulators of wgmma
        elif steps >= MIDDLE_STEPS:
            kernel = "middle"
    if (
        kernel == "mma"
        and overflowing
        and order > 2
        and states == 3
        and shared_bytes < MMA_SPLIT_BYTES
    ):
        kernel = "popc"
    return CORES[kernel]


def widest_tile(kernel: str) -> int:
    """Sites of y of one item, of the cores of a kernel."""
    names = ("deep", "middle", "wgmma") if kernel == "wgmma" else (kernel,)
    return max(CORES[name].tile_sites for name in names)


def column_states(order: int, states: int, x_states: int, table: int = 0) -> int:
    """Stored states of z: of pairs that are scored, those of the first site, else those of y.

    Where the first site alone has missing genotypes, it is z, and y the complete one after it.
    """
    return (x_states or states) if order == 2 and not table else states


def schedule_tiles(y: range, z: range, tile: int, width: int, whole: bool = False) -> np.ndarray:
    """Items (row, column) that hold all pairs y < z of these sites, int32 (n, 2).

    With `whole`, all pairs of one of y and one of z. Row r stands for `tile` sites of y from
    r * tile on, column c for `width` sites of z. Rows come in groups, column by column.
    """
    group = np.arange(y.start // tile, -(-y.stop // tile), ROW_GROUP, np.int32)[:, None]
    column = np.arange(z.start // width, -(-z.stop // width), dtype=np.int32)
    # rows of a group that hold sites before the column's end
    ends = np.full_like(column, y.stop) if whole else np.minimum((column + 1) * width, y.stop)
    rows = -(-ends // tile) - group
    rows = np.clip(rows, 0, ROW_GROUP).ravel()
    ends = np.cumsum(rows)
    items = np.empty((rows.sum(), 2), np.int32)
    items[:, 0] = np.repeat(np.repeat(group, len(column)) - (ends - rows), rows)
    items[:, 0] += np.arange(len(items), dtype=np.int32)
    items[:, 1] = np.repeat(np.tile(column, len(group)), rows)
    return items


def cut_runs(
    items: np.ndarray, operands: int, blocks: int, longest: float = math.inf
) -> np.ndarray:
    """Items with runs of the operands of a batch, int32 (n, 4): row, column, begin, end.

    There are enough runs to give each of `blocks` (thread blocks or clusters) some items, if the
    operands suffice, and their number leaves few blocks idle in the last wave. None has more
    operands than `longest`.
    """
    n = max(1, len(items))
    least = max(1, min(operands, -(-ITEMS_A_BLOCK * blocks // n)), math.ceil(operands / longest))
    choices = np.arange(least, min(operands, 2 * least + ITEMS_A_BLOCK) + 1)
    took = -(-n * choices // blocks) / choices
    runs = int(choices[took <= 1.002 * took.min()][0])
    ends = np.linspace(0, operands, runs + 1).astype(np.int32)
    out = np.empty((runs, len(items), 4), np.int32)
    out[:, :, :2] = items
    out[:, :, 2], out[:, :, 3] = ends[:-1, None], ends[1:, None]
    return out.reshape(-1, 4)


def states_in_depth(x_states: int) -> list[int]:
    """Stored states of x in the order of the depth, as `stored_state` of parts.cuh has them."""
    return [1, 0] if x_states == 2 else [2, 0, 1]


def depths_of(sizes: np.ndarray, x_states: int) -> np.ndarray:
    """Samples in each segment of an x, controls and cases of each state, int64 (n, segments).

    Parameters
    ----------
    sizes : (n, 2, states) samples of each site, class and stored state.
    """
    return sizes[:, :, states_in_depth(x_states)].transpose(0, 2, 1).reshape(len(sizes), -1)


def shared_depths(sizes: np.ndarray, both: np.ndarray) -> np.ndarray:
    """Samples in each segment of x and the site after it, int64 (n - 1, 2 parts).

    Parameters
    ----------
    sizes : (n, 2, states) samples of each site, class and stored state.
    both : (n - 1, 2, 2, 2) samples of each class with the site in states 0, 1 and the one after it.
    """
    table = np.zeros((len(both), 2, 3, 3), np.int64)
    table[..., :2, :2] = both
    table[..., :2, 2] = sizes[:-1, :, :2] - both.sum(axis=3)
    table[..., 2, :2] = sizes[1:, :, :2] - both.sum(axis=2)
    of_x, of_next = np.transpose(PARTS)
    parts = [sizes[:-1, :, 2:], sizes[1:, :, 2:], table[:, :, of_x, of_next]]
    return np.concatenate(parts, axis=2).transpose(0, 2, 1).reshape(len(both), -1)


@dataclass
class Batch:
    """Where operands, of some x or of all samples, end in the packed planes."""

    stages: np.ndarray
    segments: np.ndarray
    first_site: int

    @classmethod
    def of(cls, sizes: np.ndarray, first_site: int) -> Batch:
        """sizes: samples of each segment, int64 (n, segments)."""
        steps = -(-sizes // STEP_BITS)
        segments = np.zeros((len(sizes), sizes.shape[1] + 1), np.int32)
        np.cumsum(steps, axis=1, out=segments[:, 1:])
        stages = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(-(-segments[:, -1] // STAGE_STEPS), out=stages[1:])
        return cls(stages, segments, first_site)

    def __len__(self) -> int:
        return len(self.segments)

    def visits(self) -> np.ndarray:
        """All stages with their operands, int32 (n, 2); stages of the same samples are adjacent.

        Segments of controls and of cases take turns in the depth of an operand.
        """
        operand = np.repeat(np.arange(len(self)), np.diff(self.stages))
        step = STAGE_STEPS * (np.arange(len(operand)) - self.stages[operand])
        ends = self.segments[operand, 1:]
        segment = (ends <= step[:, None]).sum(axis=1)
        begin, end = self.segments[operand, segment], self.segments[operand, segment + 1]
        place = segment % 2 + (step - begin) / (end - begin)
        order = np.argsort(place, kind="stable")
        return np.stack([order, operand[order]], axis=-1).astype(np.int32)

    def head(self, n: int) -> Batch:
        """The first n of these operands."""
        return Batch(self.stages[: n + 1], self.segments[:n], self.first_site)


@dataclass(frozen=True)
class ScanShape:
    """One compiled form of a scan kernel: its definitions and the shared memory that it takes."""

    defines: dict[str, int]
    shared_bytes: int


def scan_shape(
    core: Core,
    *,
    order: int,
    states: int,
    table: int,
    split_cells: int,
    operand_sites: int,
    parts: int,
    sites_only: bool,
    lockstep: int,
    device: Device,
    split_accumulators: int = 0,
    x_states: int = 0,
) -> ScanShape:
    """How a core is compiled for pairs or triples, or triples for each genotype of one more site.

    Parameters
    ----------
    order, states : int
        Sites of a combination, stored states of a site.
    table : int
        1: counts of pairs are written, nothing is scored.
    split_cells : int
        1: the cells of both classes do not share a word.
    operand_sites, parts : int
        First sites of one operand, and parts of its depth.
    sites_only : bool
        Of the scan that this launch is part of (`keeps_sites_only`).
    lockstep : int
        Stages after which thread blocks wait for each other; 0: never.
    split_accumulators : int
        1: nor do the products: both classes, or people and their levels, are counted in words of
        their own.
    x_states : int
        Stored states of x, of pairs of the first site; 0: as many as of y and z.

    Raises
    ------
    UserError
        The device has too little shared memory.
    """
    x_states, quads, order = x_states or states, int(order == 4), min(order, 3)
    columns = column_states(order, states, x_states, table)
    defines = {"ORDER": order, "TABLE": table, "COLUMN_STATES": columns, **dict(core.defines)}
    if order == 3:
        defines["OPERAND_SITES"] = operand_sites
    z_sites = core.z_sites(order, states, split_accumulators, columns)
    slot = (TILE_SITES * states + z_sites * columns) * STAGE_BITS // 8
    stash, margins = core.stash_bytes(order, states, split_accumulators, x_states, columns), 0
    if order == 3:
        of_y, of_z = MARGINS[states]
        margins = (
            4
            * (1 + split_cells)
            * (TILE_SITES * of_y + max(1, core.epilogue_subtiles) * z_sites * of_z)
        )
    if core.cluster > 1:
        fixed = SPARE_BYTES + core.counts_bytes(order) + 2 * margins
        stages = max(2, min(6, (device.shared_bytes - fixed) // slot))
        defines |= {"LOCKSTEP": lockstep, "CLUSTER": core.cluster, "STAGES": stages}
        shared = fixed + stages * slot
    else:
        stages = 1 if defines["POPC"] else 2 if sites_only else 3
        scratch = 4 * core.scratch_words(
            order, states, parts, split_accumulators, x_states, columns, quads
        )
        overlapped = order == 3 and (x_states == 3 or bool(split_accumulators))
        in_phases = COMBINATIONS[states] * overlapped
        resident = 8 * 32 * in_phases * (not split_accumulators) * (not quads)
        needs = SharedNeeds(slot, stash, margins, scratch, stages, in_phases, 4 * resident)
        form = choose_layout(needs, device.shared_bytes)
        defines |= form.defines
        shared = form.shared_bytes
    if shared > device.shared_bytes:
        raise UserError(
            f"{device.name} has {device.shared_bytes} bytes of shared memory for a "
            f"block and an epistasis scan needs {shared}; use another GPU or set device to cpu."
        )
    defines |= {"LAUNCH_THREADS": core.threads, "LAUNCH_SHARED": shared}
    defines |= {"LAUNCH_Z_SITES": z_sites}
    words = core.scratch_words(order, states, parts, split_accumulators, x_states, columns, quads)
    defines["LAUNCH_SCRATCH"] = resident if defines.get("RESIDENT_SUMS") else words
    return ScanShape(defines, shared)


def scan_defines(
    *,
    split_cells: int,
    states: int,
    split_accumulators: int = 0,
    operand_sites: int = 1,
    interaction: bool = False,
    residuals: bool = False,
    logs: bool = False,
    x_states: int = 0,
    planes: int = 0,
    quads: int = 0,
) -> dict[str, int]:
    """What every kernel of one scan is compiled with.

    `logs`: of `K2Terms`.
    `x_states`, `planes`: states of x that are counted, and states that are stored; 0: as many as of
    y and z. A scan kernel may have other COLUMN_STATES (`scan_shape`).
    `quads`: 1 if triples are scanned for each genotype of one more site.
    """
    of_y, of_z = MARGINS[states]
    x_states = x_states or states
    return {
        "INTERACTION": int(interaction),
        "RESIDUALS": int(residuals),
        "LOGS": int(logs),
        "SPLIT_CELLS": split_cells,
        "SPLIT_ACCUMULATORS": split_accumulators,
        "STATES": states,
        "COLUMN_STATES": states,
        "X_STATES": x_states,
        "PLANES": planes or x_states,
        "OPERAND_SITES": operand_sites,
        "SEGMENTS": 1 + LEVEL_BITS if residuals else operand_segments(x_states, operand_sites),
        "RECORD_WORDS": (QUAD_WORDS if quads else RECORD_WORDS)[split_cells],
        "QUADS": quads,
        "MARGINS_Y": of_y,
        "MARGINS_Z": of_z,
    }


def operand_segments(states: int, operand_sites: int) -> int:
    """Segments of an operand: controls and cases of each part of its depth; `states`: of x."""
    alone = 2 * (states == 3)  # the samples that miss one of two first sites
    return 2 * (states if operand_sites == 1 else alone + len(PARTS))


def keeps_sites_only(core: Core, order: int, states: int, split_accumulators: int = 0) -> bool:
    """Whether records hold sites alone: the cells of the first states are gone by then.

    `states`: of x.
    """
    if order == 4:
        return True
    return order == 3 and (states == 3 or bool(split_accumulators)) and not core.epilogue_workspace


def shares_operand(saved: float, states: int) -> bool:
    """Whether two first sites share an operand: `saved` steps of depth pay for more counts."""
    return saved >= SHARED_STEPS[states]


def overflowing_items(
    items: np.ndarray, overflowing: np.ndarray, tile: int, width: int
) -> np.ndarray:
    """Whether an item holds a crowded block, bool (n_items,).

    Parameters
    ----------
    items : as from `schedule_tiles` with `tile` and `width`.
    overflowing : bool (tiles of TILE_SITES sites of y, blocks of BLOCK_SITES sites of z).
    """
    rows, columns = tile // TILE_SITES, width // BLOCK_SITES
    n_rows, n_columns = overflowing.shape
    inside = overflowing.reshape(n_rows // rows, rows, n_columns // columns, columns)
    return inside.any(axis=(1, 3))[items[:, 0], items[:, 1]]


@dataclass
class Pace:
    """How many combinations the next launch takes.

    Each launch has at most GROWTH times as many as all before it, and as many as half fill the
    room for records if they pass at the rate of the launch before.
    """

    order: int
    top: int
    start: int
    combinations: int = 0
    passing: float = 0.0

    def budget(self, capacity: int) -> int:
        """Combinations of the next launch."""
        budget = max(self.start, GROWTH[self.order] * self.combinations)
        return min(budget, int(capacity / 2 / max(self.passing, 1e-12)))

    def note(self, n: int, found: int) -> None:
        """A launch of n combinations let `found` of them through."""
        self.passing = min(found, PASSING[self.order] * self.top) / n
        self.combinations += n


def upload_blocks(start: int, n_sites: int, states: int) -> list[range]:
    """Sites from `start` on in the blocks in which a scan of pairs sends them."""
    span = n_sites - start
    ends = [align(start + int(span * share), states) for share in UPLOADS[:-1]]
    return [range(a, b) for a, b in itertools.pairwise([start, *ends, n_sites]) if a < b]


def align(site: int, states: int) -> int:
    """The first site of the block of rows that holds `site`."""
    return site // PADDING[states] * PADDING[states]


def padded_sites(n_sites: int, states: int) -> int:
    """Sites in whole blocks of rows."""
    return -(-n_sites // PADDING[states]) * PADDING[states]


def operand_bytes(n_sites: int, states: int) -> int:
    """Bytes of one stage of packed planes of some sites."""
    return n_sites * states * STAGE_BITS // 8


def missing_samples(order: int, largest: np.ndarray) -> tuple[int, int]:
    """At most so many samples of each class lack a genotype at the sites of a combination.

    Parameters
    ----------
    largest : (2,) samples of each class that lack a genotype, at the worst site.
    """
    controls, cases = (order * largest.astype(np.int64)).tolist()
    return controls, cases
