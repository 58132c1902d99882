"""Painting: how much of its genome a haplotype copies from each haplotype of a panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.threads import run_tasks, usable_cpus
from .copying import Haplotypes, recombination
from .copying_plan import cut_windows
from .painting_plan import stretch_count


class Painting(NamedTuple):
    """What targets copy from donors.

    Attributes
    ----------
    lengths : float64 array, (n_stretches, n_targets, n_donors)
        Expected length that is copied, in centimorgans, by stretch of the map; exact sums of
        multiples of 2^-36.
    segments : float64 array, (n_targets, n_donors)
        Expected number of segments: an unbroken run of one donor haplotype is one.
    """

    lengths: np.ndarray
    segments: np.ndarray


def paint_alleles(
    panel: Haplotypes,
    alleles: np.ndarray,
    targets: np.ndarray,
    owner: np.ndarray,
    stretches: np.ndarray,
    *,
    ne: float,
    mismatch: float,
    own: np.ndarray | None = None,
    threads: int | None = None,
) -> Painting:
    """Lengths and numbers of segments that haplotypes copy, by sample on both sides.

    A haplotype copies from all haplotypes of the panel but its own. A row depends on the panel, the
    numbers of the model and the sample's own alleles, not on others that are painted with it.

    Parameters
    ----------
    panel : Haplotypes
    alleles : int8 (n_haplotypes, n_sites)
        Alleles 0 and 1 at all sites of the panel; -1: missing, as if the site were not typed.
    targets : int array, (n_haplotypes,)
        Number of the sample of each of these, rising from 0.
    owner : int array, (panel.n_haplotypes,)
        Number of the donor that each haplotype of the panel belongs to, rising from 0.
    stretches : int64 (n_sites)
        Number of the stretch of each site.
    ne, mismatch, threads
        As of `copying.impute_alleles`.
    own : int64 (n_haplotypes, n_own), optional
        Haplotypes of the panel that are not copied; -1: none.

    Returns
    -------
    Painting
        Each haplotype's lengths sum to that of the map.

    Notes
    -----
    Coancestry by all pairs is that of Lawson et al. (2012, PLoS Genetics 8:e1002453); a segment
    counts only where the donor haplotype changes.
    """
    from .painting_cpu import paint_loop

    rows, loss = panel.rows, np.float32(mismatch / (1 - mismatch))
    windows, padded = cut_windows(panel.cm), 32 * panel.rows.shape[1]
    n_stretches, n_donors = int(stretches[-1]) + 1, int(owner[-1]) + 1
    first_of = np.flatnonzero(np.r_[True, np.diff(owner) != 0])
    donors = owner[first_of]
    n_targets = int(targets[-1]) + 1 if len(targets) else 0
    found = Painting(np.zeros((n_stretches, n_targets, n_donors)), np.zeros((n_targets, n_donors)))

    def paint(target: int) -> None:
        for one in np.flatnonzero(targets == target):
            masked = np.empty(0, np.int64) if own is None else own[one][own[one] >= 0]
            called = np.flatnonzero(alleles[one] >= 0)
            n_states = panel.n_haplotypes - len(masked)
            counted = panel.counted(masked)
            lengths, counts = np.zeros((n_stretches, padded)), np.zeros(padded)
            if not len(called):  # all donors alike
                whole = nearest_lengths(panel.cm, np.arange(len(panel.cm)))
                lengths += np.bincount(stretches, whole)[:, None] / n_states
                lengths[:, masked] = 0
            weights = nearest_lengths(panel.cm, called)
            for window in windows:
                begin, end = np.searchsorted(called, [window.start, window.stop])
                core = np.searchsorted(called, [window.first, window.last]) - begin
                if core[0] == core[1]:
                    continue
                sites = called[begin:end]
                paint_loop(
                    rows,
                    (sites, alleles[one][sites]),
                    (recombination(panel.cm[sites], ne, n_states), loss),
                    counted,
                    n_states,
                    tuple(core.tolist()),
                    weights[begin:end],
                    stretches[sites],
                    lengths,
                    counts,
                )
            n = panel.n_haplotypes
            summed = np.add.reduceat(lengths[:, :n], first_of, axis=1)
            found.lengths[:, target, donors] += summed
            found.segments[target, donors] += np.add.reduceat(counts[:n], first_of)

    run_tasks(paint, [(target,) for target in range(n_targets)], threads or usable_cpus())
    return found


def stretch_numbers(cm: np.ndarray) -> np.ndarray:
    """Stretch of each site, from 0: parts of the map of equal length, int64 (n_sites)."""
    span = float(cm[-1] - cm[0])
    count = stretch_count(span)
    if count == 1:
        return np.zeros(len(cm), np.int64)
    return np.minimum((cm - cm[0]) * (count / span), count - 1).astype(np.int64)


def joined_stretches(maps: Sequence[np.ndarray]) -> tuple[int, list[np.ndarray]]:
    """Stretches of several maps that follow each other: their number, and that of each site.

    Parameters
    ----------
    maps : sequence of float64 arrays, (n_sites,)
        Centimorgans, not falling.
    """
    spans = [float(cm[-1] - cm[0]) for cm in maps]
    total, count = sum(spans), stretch_count(sum(spans))
    found, begin = [], 0.0
    for cm, span in zip(maps, spans, strict=True):
        place = begin + np.asarray(cm) - cm[0]
        begin += span
        scaled = place * (count / total) if total > 0 else place
        found.append(np.minimum(scaled, count - 1).astype(np.int64))
    return count, found


def nearest_lengths(cm: np.ndarray, called: np.ndarray) -> np.ndarray:
    """Length of the map that is nearest to each called site: float64, in cM.

    The first one's begins where the map begins, and the last one's ends where it ends.
    """
    places = cm[called]
    ends = np.concatenate([cm[:1], (places[1:] + places[:-1]) / 2, cm[-1:]])
    return np.diff(ends) if len(called) else np.empty(0)
