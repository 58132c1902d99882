"""Haplotype copying on a GPU: the passes of `copying_cpu`, with its bytes.

A thread block imputes one target in one window. Windows come in groups whose sites fit the device,
targets in runs. What calls and masks several targets share is sent once.
"""

from __future__ import annotations

from collections.abc import Sequence

import cupy
import numpy as np

from ..engine.compile_gpu import load_function
from ..engine.devices import Device
from ..engine.layout import divide_up
from .copying_launches_plan import (
    CHECKPOINT,
    COPYING,
    PANEL_SHARE,
    TASK,
    TURN_THREADS,
    TURN_WORDS,
    DevicePanel,
    cut_targets,
    defines_for,
    group_windows,
    shapes_for,
    target_bytes,
)
from .copying_plan import UNITS, MapWindow


class _Pool:
    """Arrays that several targets share, one behind the other."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, ...]] = []
        self.places: dict[object, int] = {}
        self.size = 0

    def place(self, key: object, make) -> int:
        """Where the arrays of a key begin; `make` gives them, the first time."""
        if key not in self.places:
            self.places[key] = self.size
            self.parts.append(make())
            self.size += len(self.parts[-1][0])
        return self.places[key]

    def send(self, *dtypes) -> list[cupy.ndarray]:
        """All of them on the device."""
        return [
            cupy.asarray(np.concatenate([*parts, np.zeros(1, dtype)]).astype(dtype))
            for parts, dtype in zip(zip(*self.parts, strict=True), dtypes, strict=True)
        ]


class _Group:
    """The sites of some windows on the device."""

    def __init__(self, panel: DevicePanel, windows: list[MapWindow], device: Device) -> None:
        self.panel, self.device = panel, device
        self.start, stop = windows[0].start, windows[-1].stop
        self.forward, self.backward, self.pitch = shapes_for(panel.n_haplotypes)
        rows = panel.rows[self.start : stop]
        n_sites, self.words = rows.shape
        self.rows = cupy.zeros(rows.size + self.pitch, np.uint32)
        self.rows[: rows.size] = cupy.asarray(np.ascontiguousarray(rows)).reshape(-1)
        self.minor = cupy.asarray(panel.minor[self.start : stop].astype(np.int32))
        self.flipped = cupy.asarray(panel.flipped[self.start : stop].astype(np.uint8))
        self.cm = cupy.asarray(panel.cm[self.start : stop])
        parts = divide_up(n_sites, 32)
        self.columns = cupy.empty((parts, 32 * self.words), np.uint32)
        self._load("turn_columns")(
            (parts, divide_up(self.words, TURN_WORDS)),
            (TURN_THREADS,),
            (self.rows, np.int32(self.words), np.int64(n_sites), self.flipped, self.columns),
        )

    def _load(self, name: str) -> cupy.RawKernel:
        defines = defines_for(self.panel.n_haplotypes, name == "copy_backward")
        return load_function(COPYING, name, defines, self.device.capability)

    def impute(
        self,
        tasks: list[tuple[int, MapWindow]],
        sites: np.ndarray,
        alleles: np.ndarray,
        own: np.ndarray | None,
        out: np.ndarray,
    ) -> None:
        """Some targets, each in a window."""
        records = np.zeros(len(tasks), TASK)
        called, masks = _Pool(), _Pool()
        calls, stays, kept, filled = [np.zeros(1, np.uint8)], 0, 0, 0
        owned: list[int] = []
        for record, (target, window) in zip(records, tasks, strict=True):
            low, high = np.searchsorted(sites, [window.start, window.stop])
            known = alleles[target, low:high] >= 0
            masked = np.empty(0, np.int64) if own is None else own[target][own[target] >= 0]
            n_states, n_called = self.panel.n_haplotypes - len(masked), int(known.sum())

            def make_called(low=low, high=high, known=known, n_states=n_states):
                numbers = sites[low:high][known]
                rho = self.panel.recombination(self.panel.cm[numbers], n_states)
                keep, jump = (1.0 - rho) * UNITS, (rho * UNITS / n_states).astype(np.float32)
                return numbers - self.start, keep, jump

            def make_mask(masked=masked):
                words = np.zeros(self.pitch, np.uint32)
                words[: self.words] = self.panel.counted(masked)
                return (words,)

            record["called"] = called.place((window, n_states, known.tobytes()), make_called)
            record["mask"] = masks.place(masked.tobytes(), make_mask) // self.pitch
            record["n_called"], record["n_states"] = n_called, n_states
            record["alleles"] = record["stays"] = stays
            record["own"], record["n_own"] = len(owned), len(masked)
            record["kept"], record["out"] = kept, filled
            record["first"], record["last"] = window.first - self.start, window.last - self.start
            calls.append(alleles[target, low:high][known].astype(np.uint8))
            owned += masked.tolist()
            stays += n_called
            kept += divide_up(n_called, CHECKPOINT)
            filled += window.last - window.first
        records["loss"] = self.panel.loss
        doses = self._run(records, called, masks, (calls, owned), (stays, kept, filled))
        for record, (target, window) in zip(records, tasks, strict=True):
            begin = int(record["out"])
            row = out[target, window.first : window.last]
            row[:] = doses[begin : begin + len(row)]

    def _run(self, records, called, masks, lists, sizes) -> np.ndarray:
        calls, owned = lists
        stays, kept, filled = (max(1, size) for size in sizes)
        n, states = len(records), 32 * self.pitch
        given = (
            *(self.rows, np.int32(self.words), *called.send(np.int32, np.float64, np.float32)),
            *(cupy.asarray(np.concatenate(calls[1:] + calls[:1])), *masks.send(np.uint32)),
            cupy.asarray(records.view(np.uint8)),
        )
        checkpoints = cupy.empty(kept * states, np.float32)
        scratch = cupy.empty(n * CHECKPOINT * states, np.float32)
        shares = cupy.empty(stays, np.float32)
        between = (checkpoints, scratch, shares)
        self._load("copy_forward")((n,), (32 * self.forward.warps,), (*given, *between))
        doses = cupy.empty(filled, np.uint16)
        passed = cupy.empty(n * states if self.backward.chunks > 1 else 1, np.float32)
        arguments = (
            *(*given, *between, self.columns, self.minor, self.flipped, self.cm),
            *(cupy.asarray(np.array([*owned, 0], np.int32)), np.float64(self.panel.small)),
            *(passed, cupy.empty(n * 4 * states, np.int32), doses),
        )
        self._load("copy_backward")((n,), (32 * self.backward.warps,), arguments)
        return cupy.asnumpy(doses)


def impute_on_device(
    panel: DevicePanel,
    windows: Sequence[MapWindow],
    sites: np.ndarray,
    alleles: np.ndarray,
    own: np.ndarray | None,
    device: Device,
    free_bytes: int,
) -> np.ndarray | None:
    """`impute_alleles`; None where the device has no room for a window of the panel."""
    pitch = shapes_for(panel.n_haplotypes)[2]
    room = int(PANEL_SHARE * free_bytes)
    groups = group_windows(windows, panel.rows.shape[1], pitch, room)
    if groups is None:
        return None
    out = np.zeros((len(alleles), len(panel.rows)), np.uint16)
    for group in groups:
        on_device = _Group(panel, group, device)
        tasks = [(target, window) for window in group for target in range(len(alleles))]
        called = {w: int(np.diff(np.searchsorted(sites, [w.start, w.stop]))[0]) for w in group}
        sizes = [target_bytes(called[w], w.last - w.first, pitch) for _, w in tasks]
        for begin, end in cut_targets(sizes, free_bytes - room):
            on_device.impute(tasks[begin:end], sites, alleles, own, out)
    return out
