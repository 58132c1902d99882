"""Slow, obvious search for runs without opposite homozygotes: the oracle of its tests."""

from __future__ import annotations

import numpy as np

UNITS = 1_000_000  # of 1e-6 cM


def opposite_homozygotes(x: np.ndarray, y: np.ndarray) -> int:
    """Sites at which one genotype is 0 and the other 2; negative: missing."""
    return sum({p, q} == {0, 2} for p, q in zip(x.tolist(), y.tolist(), strict=True))


def runs_of_pair(x: np.ndarray, y: np.ndarray, windows, tolerance: int, min_length: float):
    """First and last window of every candidate of two samples, window by window."""
    found, run = [], []

    def close() -> None:
        if run:
            length = round(float(windows.right[run[-1]]) * UNITS) - round(
                float(windows.left[run[0]]) * UNITS
            )
            for w in range(run[0], run[-1]):
                if windows.masked[w]:
                    length -= round(float(windows.right[w]) * UNITS)
                    length += round(float(windows.left[w]) * UNITS)
            if length >= round(min_length * UNITS):
                found.append((run[0], run[-1]))
        run.clear()

    for w in range(len(windows.first)):
        if w and windows.contig[w] != windows.contig[w - 1]:
            close()
        if windows.masked[w]:
            continue
        sites = slice(int(windows.first[w]), int(windows.first[w] + windows.sites[w]))
        if opposite_homozygotes(x[sites], y[sites]) <= tolerance:
            run.append(w)
        else:
            close()
    close()
    return found


def candidates(a: np.ndarray, b: np.ndarray | None, windows, tolerance: int, min_length: float):
    """Rows (i, j, first, last) of all pairs, in order; b None: pairs i < j of a."""
    rows = []
    for i in range(len(a)):
        for j in range(i + 1 if b is None else 0, len(a if b is None else b)):
            other = a[j] if b is None else b[j]
            rows += [
                (i, j, *run) for run in runs_of_pair(a[i], other, windows, tolerance, min_length)
            ]
    return rows
