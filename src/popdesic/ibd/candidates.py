"""Candidates of identity by descent: runs of windows with few opposite homozygotes.

Two people who share an allele by descent along a segment are never opposite homozygotes (genotypes
0 and 2) in it, genotyping errors apart. The panel is cut into windows of consecutive sites of one
contig; x[w] counts the opposite homozygotes of a pair in window w, over sites at which both are
called. A window is good if x[w] <= tolerance. A candidate is a maximal run of good windows of one
contig that is at least `min_length` long (Seidman et al. 2020, IBIS, walk over the same counts).
Masked windows are transparent: they neither end a run nor add to its length.

No run is missed if only few windows are looked at. Every run that is long enough begins with a
minimal run: the shortest one from its first window that is long enough. `Probes` is a list of
windows of which every minimal run holds at least `depth` in a row; a window that is long enough
by itself stands there twice. So a pair can only have a candidate where so many probes in a row are
good; only there are neighbours visited. Whether a probe reports a run depends on the windows
around it alone: neither tiles nor threads nor devices change a byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UserError
from ..engine.terms import Planes

#: Lengths are compared as whole numbers of 1e-6 cM, so that all devices decide alike.
UNITS_PER_CENTIMORGAN = 1_000_000
#: Offset of the columns of a block that makes every pair i < j + offset.
ALL_PAIRS = 1 << 40
#: Most sites of a window.
MOST_SITES = 256


@dataclass(frozen=True)
class Windows:
    """Windows of consecutive panel sites, in panel order.

    Attributes
    ----------
    contig : int32 array, (n_windows,)
        A number for each contig; the windows of one stand together.
    first, sites : int64 arrays, (n_windows,)
        First site in the planes, and how many, 1 ... `MOST_SITES`.
    left, right : float64 arrays, (n_windows,)
        Ends in cM. Within a contig no window begins before the one in front of it ends.
    masked : bool array, (n_windows,)
        Transparent windows.

    Raises
    ------
    ValueError
        Arrays of different lengths, or windows that are not as described.
    """

    contig: np.ndarray
    first: np.ndarray
    sites: np.ndarray
    left: np.ndarray
    right: np.ndarray
    masked: np.ndarray

    def __post_init__(self) -> None:
        arrays = self.contig, self.first, self.sites, self.left, self.right, self.masked
        if {np.shape(array) for array in arrays} != {(len(self.first),)}:
            raise ValueError("the arrays of windows have different lengths")
        same = self.contig[1:] == self.contig[:-1]
        if int((~same).sum()) + 1 != len(np.unique(self.contig)) and len(same):
            raise ValueError("the windows of a contig do not stand together")
        if ((self.sites < 1) | (self.sites > MOST_SITES) | (self.first < 0)).any():
            raise ValueError(f"a window has no site, or more than {MOST_SITES}")
        left, right = self.ends()
        behind = (left[1:] >= right[:-1]) | ~same
        if not (behind.all() and (left <= right).all()):
            raise ValueError("windows are not in the order of the genetic map")

    def __len__(self) -> int:
        return len(self.first)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Left and right ends in 1e-6 cM, int64. ValueError: one is not finite."""
        both = np.stack([self.left, self.right]) * UNITS_PER_CENTIMORGAN
        if not np.isfinite(both).all():
            raise ValueError("an end of a window is not a number of centimorgans")
        left, right = np.rint(both).astype(np.int64)
        return left, right


class Probes(NamedTuple):
    """The windows that are not masked, and which of them every pair is asked at.

    Attributes
    ----------
    number : int32 array, (n,)
        Of each window that is not masked among all windows.
    first, sites : int64 arrays, (n,)
    left, right : int64 arrays, (n,)
        Ends in 1e-6 cM, the lengths of masked windows in front left out:
        ``right[last] - left[first]`` is the length of a run.
    begin, end : int32 arrays, (n,)
        First window of the same contig, and the one behind its last.
    probe : int32 array, (n_probes,)
        Windows, ascending. Every run of at least `min_length` holds `depth` of them in a row; the
        same window may stand there twice.
    stop : int32 array, (n_probes,)
        A run that holds this window as well was found by an earlier probe; `begin` - 1 where
        no window is meant.
    fresh : bool array, (n_probes,)
        Whether this is the contig's first probe.
    depth : int
        1 or 2.
    min_length : int
        In 1e-6 cM.
    """

    number: np.ndarray
    first: np.ndarray
    sites: np.ndarray
    left: np.ndarray
    right: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    probe: np.ndarray
    stop: np.ndarray
    fresh: np.ndarray
    depth: int
    min_length: int

    @classmethod
    def of(cls, windows: Windows, min_length: float, depth: int = 2) -> Probes:
        """Probes of all runs of at least `min_length` cM."""
        least = int(np.rint(min_length * UNITS_PER_CENTIMORGAN))
        left, right = windows.ends()
        hidden = np.where(windows.masked, right - left, 0)
        before = np.cumsum(hidden) - hidden  # a constant more for later contigs
        number = np.flatnonzero(~windows.masked)
        left, right = (left - before)[number], (right - before)[number]
        begin, end = _bounds(windows.contig[number])
        first, last = _minimal_runs(left, right, begin, end, least)
        probe = _pairs_of_probes(first, last) if depth > 1 else _hitting_set(first, last)
        stop, fresh = begin[probe] - 1, np.ones(len(probe), bool)
        fresh[1:] = begin[probe[1:]] != begin[probe[:-1]]
        same = begin[probe[depth:]] == begin[probe[:-depth]]
        stop[depth:] = np.where(same, probe[:-depth], stop[depth:])
        chosen = number.astype(np.int32), windows.first[number], windows.sites[number]
        starts, counts = (np.ascontiguousarray(x, np.int64) for x in chosen[1:])
        places = (x.astype(np.int32) for x in (begin, end, probe, stop))
        return cls(chosen[0], starts, counts, left, right, *places, fresh, depth, least)

    @property
    def bits(self) -> int:
        """Bits that hold the sites of any window: 32, 64, 128 or 256."""
        largest = int(self.sites.max(initial=1))
        return max(32, 1 << (largest - 1).bit_length())


class Candidates(NamedTuple):
    """Runs of pairs, ordered by pair and place.

    Attributes
    ----------
    i, j : int32 arrays, (n,)
        Samples of the two blocks; i < j where both are the same block.
    first, last : int32 arrays, (n,)
        Windows, both inclusive, neither of them masked.
    """

    i: np.ndarray
    j: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def joined(cls, parts: list[np.ndarray], probes: Probes) -> Candidates:
        """Of rows (i, j, first, last), int32 (n, 4), with places in the arrays of `probes`."""
        rows = np.concatenate([np.zeros((0, 4), np.int32), *parts])
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
        i, j, first, last = (np.ascontiguousarray(column) for column in rows.T)
        return cls(i, j, probes.number[first], probes.number[last])


def require_room(n_found: int, most: int, probes: Probes, n_pairs: int) -> None:
    """Raise a `UserError` if there are more candidates than may be kept."""
    if n_found > most:
        min_cm = probes.min_length / UNITS_PER_CENTIMORGAN
        raise UserError(
            f"{n_found} or more runs of {min_cm:g} cM without opposite homozygotes were found "
            f"in {n_pairs} pairs of samples, more than the {most} that can be judged; raise "
            "ibd.min_cm, or leave out cohorts of clones, isolates or very few sites."
        )


def check_operands(a: Planes, b: Planes | None, windows: Windows, tolerance: int) -> None:
    """Raise a ValueError: different sites, windows behind the last one, a negative tolerance."""
    if b is not None and a.n_sites != b.n_sites:
        raise ValueError(f"planes over {a.n_sites} and {b.n_sites} sites cannot be compared")
    if len(windows) and int((windows.first + windows.sites).max()) > a.n_sites:
        raise ValueError(f"a window ends behind the last of {a.n_sites} sites")
    if tolerance < 0:
        raise ValueError(f"a tolerance of {tolerance} opposite homozygotes; give 0 or more")


def search_blocks(
    a: Planes,
    b: Planes | None,
    probes: Probes,
    side: int,
    most: int,
    pack: Callable[[Planes, slice, int], Any],
    compare: Callable[[Any, Any, int], list[np.ndarray]],
) -> Candidates:
    """Candidates by blocks of `side` samples, rows one after the other.

    Parameters
    ----------
    pack : callable
        Packed windows of some samples of planes, for rows (0) or for columns (1): those of columns
        are not needed any more when the next are asked for.
    compare : callable
        Runs of two packed blocks, int32 (n, 4) of (i, j, first, last), numbered within blocks and
        `probes`. Its last argument is an offset: pairs with i < j + offset count.

    Raises
    ------
    UserError
        More runs than `most`.
    """
    others, parts, n_found, n_pairs = a if b is None else b, [], 0, 0
    for first in range(0, a.n_samples if len(probes.probe) else 0, side):
        rows = slice(first, min(first + side, a.n_samples))
        of_rows = of_columns = None  # gives their memory back
        of_rows = pack(a, rows, 0)
        for start in range(first if b is None else 0, others.n_samples, side):
            columns, of_columns = slice(start, min(start + side, others.n_samples)), None
            of_columns = of_rows if b is None and rows == columns else pack(others, columns, 1)
            offset = start - first if b is None else ALL_PAIRS
            for found in compare(of_rows, of_columns, offset):
                parts.append(found + np.array([first, start, 0, 0], np.int32))
                n_found += len(found)
            n_pairs += (rows.stop - first) * (columns.stop - start)
            require_room(n_found, most, probes, n_pairs)
    return Candidates.joined(parts, probes)


def _bounds(contig: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First window of each window's contig, and the one behind its last: int64 (n,)."""
    starts = np.flatnonzero(np.diff(contig, prepend=contig[:1] - 1))
    lengths = np.diff(starts, append=len(contig))
    return np.repeat(starts, lengths), np.repeat(starts + lengths, lengths)


def _minimal_runs(
    left: np.ndarray, right: np.ndarray, begin: np.ndarray, end: np.ndarray, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """First and last windows of the shortest runs that are long enough: int64 (n_runs,)."""
    last = np.empty(len(left), np.int64)
    for start in np.unique(begin):
        own = slice(start, end[start])
        last[own] = start + np.searchsorted(right[own], left[own] + least)
    first = np.arange(len(left))
    last = np.maximum(first, last)
    there = last < end
    return first[there], last[there]


def _pairs_of_probes(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Windows of which every run holds two in a row, one in each half: int64, ascending.

    A run of one window has it twice.
    """
    alone, longer = first[first == last], first < last
    first, last = first[longer], last[longer]
    middle = (first + last) // 2
    halves = np.concatenate([first, middle + 1]), np.concatenate([middle, last])
    found = np.setdiff1d(_hitting_set(*halves), alone)
    return np.sort(np.concatenate([found, alone, alone]))


def _hitting_set(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The fewest windows of which every run holds one: int64, ascending."""
    found, latest = [], -1
    order = np.lexsort((first, last))
    for start, stop in zip(first[order].tolist(), last[order].tolist(), strict=True):
        if start > latest:
            latest = stop
            found.append(latest)
    return np.array(found, np.int64)
