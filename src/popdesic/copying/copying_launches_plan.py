"""Launches of haplotype copying on a GPU: how states lie on threads, what fits its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..engine.layout import KernelSource, divide_up
from .copying_plan import DOSE_UNITS, UNITS, MapWindow

_FIELDS = "called n_called alleles stays mask own n_own n_states kept first last out"
#: `Task` of kernels/copying/copying.cu.
TASK = np.dtype([*((name, np.int64) for name in _FIELDS.split()), ("loss", np.float64)])
#: The forward pass keeps the states before every so many called sites. The states of such a run of
#: sites are in memory at a time, of all targets of a launch: of few sites, they stay in the cache.
CHECKPOINT = 64
COPYING = KernelSource.of(
    "copying/copying",
    CHECKPOINT=CHECKPOINT,
    COPY_UNITS=UNITS,
    DOSE_UNITS=DOSE_UNITS,
    TASK_BYTES=TASK.itemsize,
)
#: Threads of `turn_columns`, and words of a row that a thread block has.
TURN_THREADS, TURN_WORDS = 256, 8
#: States of a thread in registers: the backward pass has two sets of them.
MOST_FORWARD, MOST_BACKWARD = 160, 64
#: Share of the free memory for the panel; the rest is for the targets of a launch.
PANEL_SHARE = 0.5


class DevicePanel(NamedTuple):
    """What `impute_on_device` takes of a panel, and the model's numbers.

    Attributes
    ----------
    rows : uint32 (n_sites, n_words)
    cm : float64 (n_sites)
    minor, flipped : int64, bool (n_sites)
        As in `copying_cpu.impute_loop`.
    n_haplotypes : int
    counted : function
        Words of `rows` without some haplotypes.
    recombination : function
        Of genetic positions and a number of states: float64.
    loss, small : float
        Emission of a mismatch (a float32); share of the mean posterior that is small.
    """

    rows: np.ndarray
    cm: np.ndarray
    minor: np.ndarray
    flipped: np.ndarray
    n_haplotypes: int
    counted: Callable[[np.ndarray], np.ndarray]
    recombination: Callable[[np.ndarray, int], np.ndarray]
    loss: float
    small: float


class StateShape(NamedTuple):
    """How the states of a target lie on a thread block.

    Attributes
    ----------
    warps : int
    states : int
        Of a thread, in registers at a time.
    chunks : int
        Sets of states that pass through the registers at each site.
    """

    warps: int
    states: int
    chunks: int

    @property
    def words(self) -> int:
        """Words of a row that the block has room for."""
        return self.warps * self.states * self.chunks

    def defines(self, pitch: int, backward: bool) -> tuple[tuple[str, int], ...]:
        """Definitions of a pass; states in memory have a pitch of so many words."""
        return (
            ("BACKWARD", int(backward)),
            ("COPY_THREADS", 32 * self.warps),
            ("COPY_STATES", self.states),
            ("COPY_CHUNKS", self.chunks),
            ("PITCH", pitch),
        )


def shape_for(n_haplotypes: int, most: int) -> StateShape:
    """The fewest warps whose registers hold all haplotypes, at most 8; above it in equal chunks.

    Parameters
    ----------
    n_haplotypes : int
    most : int
        States of a thread.
    """

    def states_for(slots: int) -> int:  # whole words, a byte or two
        states = 8 * divide_up(n_haplotypes, 32 * slots * 8)
        return states + 8 * (states % 32 == 24)

    for warps in (1, 2, 4, 8):
        if states_for(warps) <= most:
            return StateShape(warps, states_for(warps), 1)
    chunks = divide_up(n_haplotypes, 8 * 32 * most)
    return StateShape(8, states_for(8 * chunks), chunks)


def defines_for(n_haplotypes: int, backward: bool) -> tuple[tuple[str, int], ...]:
    """Definitions of one of the passes over so many haplotypes."""
    *shapes, pitch = shapes_for(n_haplotypes)
    return shapes[backward].defines(pitch, backward)


def shapes_for(n_haplotypes: int) -> tuple[StateShape, StateShape, int]:
    """Shapes of the forward and the backward pass, and the pitch of states in memory."""
    forward = shape_for(n_haplotypes, MOST_FORWARD)
    backward = shape_for(n_haplotypes, MOST_BACKWARD)
    return forward, backward, max(forward.words, backward.words)


def target_bytes(n_called: int, n_filled: int, pitch: int) -> int:
    """Device memory of one target in a window with some called and some filled sites."""
    kept = divide_up(n_called, CHECKPOINT) + CHECKPOINT + 1
    return 32 * pitch * (4 * kept + 16) + n_called * (16 + 4 + 1) + 2 * n_filled + TASK.itemsize


def panel_bytes(n_sites: int, n_words: int, pitch: int) -> int:
    """Device memory of some sites of a panel: rows, columns, numbers of sites."""
    return 4 * n_words * (n_sites + 32 * divide_up(n_sites, 32)) + 4 * pitch + 13 * n_sites


def group_windows(
    windows: Sequence[MapWindow], n_words: int, pitch: int, room: int
) -> list[list[MapWindow]] | None:
    """Windows whose sites are on the device together; None where one alone has no room."""
    groups: list[list[MapWindow]] = []
    for window in windows:
        if groups and panel_bytes(window.stop - groups[-1][0].start, n_words, pitch) <= room:
            groups[-1].append(window)
            continue
        if panel_bytes(window.stop - window.start, n_words, pitch) > room:
            return None
        groups.append([window])
    return groups


def cut_targets(sizes: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Runs of targets, at least one, whose bytes fit: begin and end of each."""
    found, begin, used = [], 0, 0
    for number, size in enumerate(sizes):
        if number > begin and used + size > room:
            found.append((begin, number))
            begin, used = number, 0
        used += size
    return [*found, (begin, len(sizes))] if len(sizes) else found
