"""How a GPU scan cuts its work: cores, items (blocks of y and z) and batches of first sites x."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Sites of one tile of y, and how many the padded number is a multiple of, by stored states: rows
#: are made in blocks of 512.
TILE_SITES, PADDING = 64, {2: 256, 3: 512}
#: Samples of one step of depth.
STEP_BITS = 256
#: Steps of one stage of packed planes (kernels/common.cuh).
STAGE_STEPS = 4
#: Rows of tiles walked together, so that their planes stay in L2.
ROW_GROUP = 8
#: Steps of depth of an x (mean) from which on thread blocks keep in step, and from which on the
#: core `deep` is the faster, by stored states.
LOCKSTEP_STEPS, DEEP_STEPS = 48, {2: 75, 3: 165}
#: Two first sites may share an operand (core `deep`): their states (2: neither) in the parts
#: of its depth, and how many parts in a row the kernel adds up (kernels/epistasis/parts.cuh).
PARTS, RUN = ((0, 1), (0, 2), (0, 0), (2, 0), (1, 0), (1, 2), (1, 1), (2, 1)), 4
#: Steps of depth (mean) that two first sites must save by it, by stored states: twice as many
#: counts pass through memory, and those of three states have few threads to score them.
JOINT_STEPS = {2: 160, 3: 350}
#: Items for each thread block that a launch should have: fewer are cut into runs of x.
ITEMS_A_BLOCK = 12


@dataclass(frozen=True)
class Core:
    """One way to count: its kernel file and how it cuts the work.

    Parameters
    ----------
    defines : what the file is compiled with beside what every core takes.
    threads : of a thread block.
    cluster : tiles of y that share the copies of z.
    relay : whether counts pass through memory to threads that score alone. Its kernel takes `Scan`
        by value; where one thread counts and scores, a pointer to it is a tenth faster.
    """

    file: str
    defines: tuple[tuple[str, int], ...]
    threads: int
    cluster: int = 1
    relay: bool = False

    def z_sites(self, order: int, states: int) -> int:
        """Sites of z of one item (Z_SITES in the kernel file)."""
        if self.relay:
            return {2: 128, 3: 64}[states]
        return {2: 128 if order == 2 else 64, 3: 32}[states]

    def stash_bytes(self, order: int, states: int) -> int:
        """Shared memory of the counts that are being scored."""
        products = 2 if order == 3 and states == 2 else 1
        return 0 if self.relay else 8 * 4 * products * states**2 * 32 * 4

    def scratch_words(self, order: int, states: int, parts: int) -> int:
        """Words that one thread block keeps of what was counted; `parts` of the depth."""
        if self.relay:  # two buffers of a tile for each part
            return 2 * parts * TILE_SITES * self.z_sites(order, states) * states**2
        return 8 * 8 * (states**2 + 1) * 32 if order == 3 and states == 3 else 0


#: The cores: of the kernels, and `deep`, wgmma for more samples.
CORES = {
    "deep": Core("epistasis/sm90_deep", (), 512, 2, relay=True),
    "wgmma": Core("epistasis/sm90_fused", (("Y_GROUPS", 1), ("UNROLL", 2)), 384, 2),
    "mma": Core("epistasis/multistage", (("Y_GROUPS", 2), ("UNROLL", 2), ("POPC", 0)), 256),
    "popc": Core("epistasis/multistage", (("Y_GROUPS", 2), ("UNROLL", 2), ("POPC", 1)), 256),
}


def choose_core(kernel: str, order: int, states: int, steps: float) -> Core:
    """The fastest core of a kernel; `steps`: mean depth of an x."""
    if kernel == "wgmma":
        if order == 2 or steps >= DEEP_STEPS[states]:
            kernel = "deep"
        elif states == 3:
            kernel = "mma"  # the rows of three states do not fit the accumulators of wgmma
    return CORES[kernel]


def order_items(y: range, z: range, tile: int, width: int) -> np.ndarray:
    """Items (row, column) that hold all pairs y < z of these sites, int32 (n, 2).

    Row r stands for `tile` sites of y from r * tile on, column c for `width` sites of z. Rows come
    in groups, column by column.
    """
    group = np.arange(y.start // tile, -(-y.stop // tile), ROW_GROUP, np.int32)[:, None]
    column = np.arange(z.start // width, -(-z.stop // width), dtype=np.int32)
    # rows of a group that hold sites before the column's end
    rows = -(-np.minimum((column + 1) * width, y.stop) // tile) - group
    rows = np.clip(rows, 0, ROW_GROUP).ravel()
    ends = np.cumsum(rows)
    items = np.empty((rows.sum(), 2), np.int32)
    items[:, 0] = np.repeat(np.repeat(group, len(column)) - (ends - rows), rows)
    items[:, 0] += np.arange(len(items), dtype=np.int32)
    items[:, 1] = np.repeat(np.tile(column, len(group)), rows)
    return items


def cut_runs(items: np.ndarray, operands: int, blocks: int) -> np.ndarray:
    """Items with runs of the operands of a batch, int32 (n, 4): row, column, begin, end.

    So many runs that each of `blocks` (thread blocks or clusters of them) has some items if the
    operands suffice, and that few of them idle at the end.
    """
    n = max(1, len(items))
    least = max(1, min(operands, -(-ITEMS_A_BLOCK * blocks // n)))
    choices = np.arange(least, min(operands, 2 * least + ITEMS_A_BLOCK) + 1)
    took = -(-n * choices // blocks) / choices
    runs = int(choices[took <= 1.002 * took.min()][0])
    ends = np.linspace(0, operands, runs + 1).astype(np.int32)
    out = np.empty((runs, len(items), 4), np.int32)
    out[:, :, :2] = items
    out[:, :, 2], out[:, :, 3] = ends[:-1, None], ends[1:, None]
    return out.reshape(-1, 4)


def joint_depths(sizes: np.ndarray, both: np.ndarray) -> np.ndarray:
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


def largest_sum(depths: np.ndarray) -> int:
    """Most samples of a class that the parts of a run hold together."""
    runs = depths[:, -2 * len(PARTS) :].reshape(-1, RUN, 2)
    return int(runs.sum(axis=1).max(initial=0))


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
        """All stages, each beside its operand, int32 (n, 2): the same samples come together.

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
