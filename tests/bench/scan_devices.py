"""Scans of triples on one and on several devices, for `bench_epistasis.py --devices`.

One process with one device each. Jobs are units of equal work (`popdesic.epistasis.units`); a
process that is free takes the next one, as the jobs of a run take devices. Each job sets its scan
up anew.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from popdesic.epistasis.scan_data import OneHot, ScanData
from popdesic.epistasis.scan_work import first_site_work
from popdesic.epistasis.units import count_stored, unit_bounds

#: Jobs of a scan, for any number of devices.
UNITS = 16


def cut(words: np.ndarray) -> list[range]:
    """First sites of the jobs, by the planes of all samples."""
    work = first_site_work(count_stored(words), words.shape[2], 3, "gpu")
    bounds = unit_bounds(work, UNITS).tolist()
    return [range(a, b) for a, b in itertools.pairwise(bounds)]


def work(make: Callable[[], ScanData], units: list[range], ready, taken, times) -> None:
    """One process with one device: wait for the others, then take jobs until there are none."""
    from popdesic.engine.compile_gpu import current_device
    from popdesic.epistasis.scan_gpu import Scanner

    data, device = make(), current_device()
    Scanner(data, 3, 1000, None, device).triples(range(2))  # compiles
    ready.wait()
    started = time.perf_counter()
    while True:
        with taken.get_lock():
            unit, taken.value = taken.value, taken.value + 1
        if unit >= len(units):
            break
        scanner = Scanner(data, 3, 1000, None, device)
        scanner.triples(units[unit])
        scanner.best.close()
        del scanner
    times.put((started, time.perf_counter()))


def measure(make: Callable[[], ScanData], units: list[range], n_devices: int) -> float:
    """Seconds until all jobs are done, including the set-up of each job."""
    context = multiprocessing.get_context("spawn")
    ready, taken, times = context.Barrier(n_devices), context.Value("i", 0), context.Queue()
    processes = []
    for i in range(n_devices):
        os.environ["CUDA_VISIBLE_DEVICES"] = str(i)  # read by the process at its start
        processes.append(context.Process(target=work, args=(make, units, ready, taken, times)))
        processes[-1].start()
    spans = [times.get() for _ in processes]
    for process in processes:
        process.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)


def compare(name: str, make: Callable[[], ScanData], words: np.ndarray, n_devices: int) -> None:
    """Print the times on one device and on several."""
    units = cut(words)
    one, all_of_them = (measure(make, units, n) for n in (1, n_devices))
    ratio = one / all_of_them
    print(
        f"{name}: {one:.2f} s on one device, {all_of_them:.2f} s on {n_devices}: "
        f"{ratio:.2f} times, {ratio / n_devices:.1%} efficiency",
        flush=True,
    )


def save(folder: Path, data: ScanData) -> None:
    """Write scan data for `load`."""
    for number, one in enumerate(data.classes):
        np.save(folder / f"words{number}.npy", one.words)
    sizes = np.array([one.n_samples for one in data.classes])
    np.savez(folder / "rest.npz", total=data.total, part=data.part, rank=data.rank, sizes=sizes)


def load(folder: Path) -> ScanData:
    """What `save` wrote, in pinned memory."""
    import cupyx

    classes, rest = [], np.load(folder / "rest.npz")
    for number, n_samples in enumerate(rest["sizes"].tolist()):
        words = np.load(folder / f"words{number}.npy")
        pinned = cupyx.empty_pinned(words.shape, words.dtype)
        pinned[...] = words
        classes.append(OneHot(pinned, n_samples))
    return ScanData(tuple(classes), rest["total"], rest["part"], rest["rank"])
