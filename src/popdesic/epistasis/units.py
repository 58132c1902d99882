"""Units of work: scans cut into jobs of equal work, by a function of the planes alone.

All work of a scan lies on a line, first site by first site, and that of permuted scans one scan
after the other. A unit is an equal share of the line, rounded to whole first sites. The number of
units changes no hit: the best hits of all units are merged (`scan_data.merge_hits`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.tables import write_npz
from .scan_data import Hits, merge_hits
from .scan_work import device_kind, first_site_work

#: Planes that are counted at once.
COUNT_BYTES = 1 << 26


@dataclass(frozen=True)
class Span:
    """First sites of one scan that a unit takes; `scan` is the number of the permutation."""

    scan: int
    first: range


def count_stored(words: np.ndarray) -> np.ndarray:
    """Samples in each stored state of each site, int64 (n_sites, n_states); words: onehot.npy."""
    step = max(1, COUNT_BYTES // max(1, words[:1].nbytes))
    parts = [
        np.bitwise_count(words[start : start + step]).sum(axis=2, dtype=np.int64)
        for start in range(0, len(words), step)
    ]
    return np.concatenate(parts) if parts else np.zeros(words.shape[:2], np.int64)


def read_work(folder: Path, order: int, device: str) -> np.ndarray:
    """Work by first site of the planes in results/reorder, float64 (n_sites,).

    `device` is the configured one, so that all jobs of a scan cut it alike, wherever they run.
    """
    words = np.load(folder / "onehot.npy", mmap_mode="r")
    return first_site_work(count_stored(words), words.shape[2], order, device_kind(device))


def unit_bounds(work: np.ndarray, n_units: int, scans: int = 1) -> np.ndarray:
    """Where units begin and end on the line of first sites: int64 (n_units + 1,).

    Place s * n_sites + x is first site x of scan s; each cut is the place nearest to its share.
    """
    n_sites, done = len(work), np.concatenate([[0.0], np.cumsum(work)])
    if not done[-1]:
        done = np.arange(n_sites + 1, dtype=float)
    shares = scans * np.arange(1, n_units, dtype=np.int64)
    scan, wanted = shares // n_units, shares % n_units / n_units * done[-1]
    after = np.clip(np.searchsorted(done, wanted), 1, max(1, n_sites))
    nearer = wanted - done[after - 1] <= done[np.minimum(after, n_sites)] - wanted
    inner = scan * n_sites + after - nearer
    return np.concatenate([[0], inner, [scans * n_sites]])


def unit_range(work: np.ndarray, unit: int, n_units: int) -> range:
    """First sites of unit `unit` of `n_units` of a scan."""
    bounds = unit_bounds(work, n_units)
    return range(int(bounds[unit]), int(bounds[unit + 1]))


def unit_spans(work: np.ndarray, scans: int, unit: int, n_units: int) -> list[Span]:
    """What unit `unit` of `n_units` takes of several scans of the same sites."""
    n_sites, bounds = len(work), unit_bounds(work, n_units, scans)
    start, stop = int(bounds[unit]), int(bounds[unit + 1])
    spans = []
    while start < stop:
        scan = start // n_sites
        end = min(stop, (scan + 1) * n_sites)
        spans.append(Span(scan, range(start - scan * n_sites, end - scan * n_sites)))
        start = end
    return spans


def check_spans(spans: Sequence[tuple[int, int]], n_sites: int, folder: Path) -> None:
    """Refuse units that do not hold each first site once.

    Parameters
    ----------
    spans : sequence of (start, stop)
        First sites of the units of one scan, in any order.
    n_sites : int
    folder : Path
        Of the units, for the message.
    """
    place = 0
    for start, stop in sorted(spans):
        if start != place or stop < start:
            break
        place = stop
    else:
        if place == n_sites:
            return
    raise UserError(
        f"{folder}: the units of a scan do not hold each of its {n_sites} first sites once (place "
        f"{place}); some are of another cut. Remove this folder and run again."
    )


def write_unit(out: Path, first: range, hits: Hits) -> dict[str, int]:
    """Write a unit's hits as npz (cost, sites, first: where its first sites start and stop)."""
    span = np.array([first.start, first.stop])
    write_npz(out, cost=hits.cost, sites=hits.sites, first=span)
    return {"first_sites": len(first), "hits": len(hits.cost)}


def rate_of_unit(
    first: range, n_sites: int, n_samples: int, order: int, seconds: float
) -> dict[str, object]:
    """What a unit did, and how fast, for its log: combinations times samples a second.

    Combinations that partner limits exclude count as well, as in the forecast.
    """
    rest = (n_sites - min(n_sites, end) for end in (first.start, first.stop))
    before, after = (math.comb(n, order) for n in rest)
    tests = before - after
    rate = tests * n_samples / max(seconds, 1e-9)
    return {
        "combinations": tests,
        "rate": f"{rate:.3g} combinations x samples/s ({n_samples} samples, {seconds:.3g} s)",
    }


def merge_units(units: list[Path], rank: np.ndarray, top: int) -> Hits:
    """The best `top` hits of all units of a scan (`write_unit`), which hold all first sites."""
    parts, spans = [], []
    for path in units:
        with np.load(path) as file:
            parts.append(Hits(file["cost"], file["sites"]))
            spans.append(tuple(file["first"].tolist()))
    check_spans(spans, len(rank), units[0].parent)
    return merge_hits(parts, rank, top)
