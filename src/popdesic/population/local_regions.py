"""Regions of windows that are alike beyond the reach of LD, against random orders of windows."""

from __future__ import annotations

import numpy as np

#: Fewer windows say nothing.
LEAST_WINDOWS = 20
#: Chance of any region in a genome without one.
LEVEL = 0.05
#: Random orders of the windows.
DRAWS = 199
#: Windows nearer than this are not compared, because LD reaches over the edge of a window.
APART = 3
#: Least likeness of windows in a region, and robust standard deviations of chance below it. Recent
#: admixture makes windows alike over tens of megabases, but weakly: up to 0.1 in the example.
LEAST_ALIKE, LEAST_OUT = 0.15, 2.0


def find_alike_regions(
    likeness: np.ndarray, contig: np.ndarray, seed: int = 1
) -> list[tuple[int, int, float]]:
    """Runs of windows that are like each other beyond the reach of LD.

    A window is as like its surroundings as the mean of its likeness with the windows APART and
    APART + 1 places before it, or behind it, whichever is more. It scores what this is above
    LEAST_ALIKE, or above LEAST_OUT robust standard deviations of random orders if that is more; a
    run scores the sum of its windows. The null are the highest runs of DRAWS random orders of the
    windows that do not belong to the run, APART neighbours as one, so that it has their LD. A run
    is a region if it is also longer than APART and all of it is alike by LEAST_ALIKE.

    Parameters
    ----------
    likeness : float64 array, (n_windows, n_windows)
        Correlations: 1 is the same, 0 chance.
    contig : array, (n_windows,)
        Runs do not reach from one to the next.

    Returns
    -------
    list of (first, end, p)
        Windows [first, end), by falling score, none in two regions; p is family-wise.
    """
    rest = np.arange(len(likeness))
    found: list[tuple[int, int, float]] = []
    rng = np.random.default_rng(seed)
    drawn = _drawn(likeness, contig, rest, rng)
    middle = np.median(drawn)
    spread = 1.4826 * np.median(np.abs(drawn - middle))
    least = max(LEAST_ALIKE, middle + LEAST_OUT * spread)
    while len(rest):
        own = np.nan_to_num(_surroundings(likeness, contig[rest], rest))
        first, end, score = _best_run(own - least, contig[rest])
        if score <= 0:
            break
        # Windows of an earlier region may lie between: each piece is a region of its own.
        rows = rest[first:end]
        pieces = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
        pieces = [piece for piece in pieces if _alike(likeness, piece)]
        rest = np.delete(rest, np.arange(first, end))
        if not pieces:
            continue
        if len(rest) < LEAST_WINDOWS // 2:  # too few are left to say what is usual
            break
        drawn = _drawn(likeness, contig, rest, rng)
        null = np.array([_highest(row - least, contig[rest]) for row in drawn])
        p = (1 + int((null >= score - 1e-9).sum())) / (1 + len(null))
        if p > LEVEL:
            break
        found += [(int(piece[0]), int(piece[-1]) + 1, p) for piece in pieces]
    return found


def _alike(likeness: np.ndarray, rows: np.ndarray) -> bool:
    """Whether windows reach beyond LD, and are alike there by LEAST_ALIKE on average."""
    first, second = np.triu_indices(len(rows), APART)
    return len(first) > 0 and bool(likeness[rows[first], rows[second]].mean() >= LEAST_ALIKE)


def _surroundings(likeness: np.ndarray, contig: np.ndarray, order: np.ndarray) -> np.ndarray:
    """How like each window of an order is to those around it: (n,); NaN without any."""
    n = len(order)
    sums, counts = np.zeros((2, n)), np.zeros((2, n))
    for lag in range(APART, min(APART + 2, n)):
        same = contig[:-lag] == contig[lag:]
        values = np.where(same, likeness[order[:-lag], order[lag:]], 0.0)
        sums[0, :-lag] += values
        counts[0, :-lag] += same
        sums[1, lag:] += values
        counts[1, lag:] += same
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf).max(axis=0)
    return np.where(np.isfinite(means), means, np.nan)


def _drawn(
    likeness: np.ndarray, contig: np.ndarray, rows: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """`_surroundings` of random orders of the windows `rows`: (DRAWS, n)."""
    n = len(rows)
    found = np.empty((DRAWS, n))
    for draw in range(DRAWS):
        starts = np.arange(-int(rng.integers(APART)), n, APART)
        order = (rng.permutation(starts)[:, None] + np.arange(APART)).ravel()
        order = order[(order >= 0) & (order < n)]
        found[draw] = _surroundings(likeness, contig[rows], rows[order])
    return np.nan_to_num(found)


def _best_run(scores: np.ndarray, contig: np.ndarray) -> tuple[int, int, float]:
    """First, end and score of the run of windows with the highest sum."""
    best, run, begin = (0, 0, 0.0), 0.0, 0
    for w, score in enumerate(scores.tolist()):
        if run <= 0 or contig[w] != contig[w - 1]:
            run, begin = 0.0, w
        run += score
        if run > best[2]:
            best = (begin, w + 1, run)
    return best


def _highest(scores: np.ndarray, contig: np.ndarray) -> float:
    """Score of `_best_run`: the largest rise of the running sum, which falls between contigs."""
    sums = np.cumsum(scores)
    before = np.concatenate([[0.0], sums[:-1]])
    starts = np.flatnonzero(np.concatenate([[True], contig[1:] != contig[:-1]]))
    best = 0.0
    for first, last in zip(starts, [*starts[1:], len(scores)], strict=True):
        low = np.minimum.accumulate(before[first:last])
        best = max(best, float((sums[first:last] - low).max()))
    return best
