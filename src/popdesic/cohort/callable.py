"""Where a cohort could be called: a BED mask of its sheet row, or the reference blocks of its gVCF.

A VCF lists variant sites alone. A site that it does not list is homozygous reference where the
samples could be called, and unknown elsewhere.

Two files that ingest writes beside `raw.bed` hold such intervals, if the cohort's files have any:

- `raw.callable.npz`: reference blocks of a gVCF, by sample in the order of `raw.fam`;
- `raw.dropped.npz`: positions of records that were read but are no site of `raw.bim` (indels,
  multiallelic records, records that a filter dropped). There nothing is known of a biallelic site.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from ..core.errors import UserError, shorten
from ..core.files import beside
from ..core.tables import write_npz
from ..core.text import opened
from ..io.sites import canonical_contig, canonical_contigs

#: Number of an interval's sample that stands for all samples.
EVERYONE = -1
#: Bits of a position within a place: contig << POSITION_BITS | position.
POSITION_BITS = 33
#: Ends of the files that ingest writes beside raw.bed.
BLOCKS, DROPPED = ".callable.npz", ".dropped.npz"


class Callable:
    """Intervals of contigs, each of one sample or of all.

    Intervals of one sample that touch or overlap are joined, and all are in order of contig, start
    and sample, so that equal coverage has equal bytes.

    Attributes
    ----------
    contigs : tuple of str
        Canonical names of the contigs, sorted.
    contig : int32 array, (n_intervals,)
        Numbers in `contigs`.
    start, end : int64 arrays, (n_intervals,)
        Counted from 0, half-open.
    sample : int32 array, (n_intervals,)
        Number of a sample, or EVERYONE.
    """

    def __init__(
        self,
        contig: Sequence[str] | np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        sample: np.ndarray | None = None,
    ):
        """`contig`: names, (n_intervals,); `sample`: None if all are of all samples.

        ValueError: an interval is empty, starts below 0 or ends at 2**33 or more.
        """
        start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
        if (start < 0).any() or (end <= start).any() or (end >= 1 << POSITION_BITS).any():
            raise ValueError("an interval starts below 0, is empty, or ends too far right")
        names = canonical_contigs(np.asarray(contig, object))
        self.contigs = tuple(sorted(set(names.tolist())))
        number = {name: k for k, name in enumerate(self.contigs)}
        which = np.array([number[name] for name in names.tolist()], np.int64)
        if sample is None:
            sample = np.full(len(start), EVERYONE)
        place = which << POSITION_BITS
        first, last, sample = _joined(place | start, place | end, np.asarray(sample, np.int64))
        self.contig = (first >> POSITION_BITS).astype(np.int32)
        self.start = first & ((1 << POSITION_BITS) - 1)
        self.end = last & ((1 << POSITION_BITS) - 1)
        self.sample = sample.astype(np.int32)

    def __len__(self) -> int:
        """Number of intervals."""
        return len(self.start)

    @property
    def by_sample(self) -> bool:
        """Whether any interval is of one sample alone."""
        return bool((self.sample != EVERYONE).any())

    def without_sample(self, number: int) -> Callable:
        """The same without a sample; those behind it move up."""
        kept = self.sample != number
        names = np.array(self.contigs, object)[self.contig[kept]]
        sample = self.sample[kept] - (self.sample[kept] > number)
        return Callable(names, self.start[kept], self.end[kept], sample)

    def save(self, path: Path) -> None:
        """Write as .npz."""
        write_npz(
            path,
            contigs=np.array(self.contigs, np.str_),
            contig=self.contig,
            start=self.start,
            end=self.end,
            sample=self.sample,
        )

    @classmethod
    def load(cls, path: Path) -> Callable:
        """Read what `save` wrote."""
        found = cls.__new__(cls)
        with np.load(path) as kept:
            found.contigs = tuple(kept["contigs"].tolist())
            for name in ("contig", "start", "end", "sample"):
                setattr(found, name, kept[name])
        return found

    def covers(self, chrom: Sequence[str] | np.ndarray, pos: np.ndarray) -> np.ndarray:
        """Whether an interval of all samples covers each site: bool (n_sites,).

        `chrom` are names of contigs in any spelling, `pos` positions counted from 1; in any order.
        """
        return self._covers(chrom, pos, np.empty(0, np.int64))[:, 0]

    def covers_samples(
        self, chrom: Sequence[str] | np.ndarray, pos: np.ndarray, samples: np.ndarray
    ) -> np.ndarray:
        """Whether each site is covered in each of these samples: bool (n_sites, len(samples)).

        As `covers`; an interval of all samples covers each. Takes n_sites * n_samples bytes: ask
        for chunks of sites, which costs no more if they are in order.
        """
        found = self._covers(chrom, pos, np.asarray(samples, np.int64))
        return found[:, 1:] | found[:, :1]

    def _covers(self, chrom, pos, samples: np.ndarray) -> np.ndarray:
        """Bool (n_sites, 1 + len(samples)): intervals of all samples, then those of each."""
        place = self._places(chrom, pos)
        order = None
        if len(place) > 1 and (place[1:] < place[:-1]).any():
            order = np.argsort(place, kind="stable")
            place = place[order]
        covered = np.zeros((len(place), 1 + len(samples)), bool)
        known = place[np.searchsorted(place, 0) :]
        if len(known) and len(self):
            # Intervals before the first were passed by all that follow `before`; those from `after`
            # on start behind the last site.
            before = int(np.searchsorted(self._reach, known[0], "right"))
            after = int(np.searchsorted(self._first, known[-1], "right"))
            column = np.zeros(after - before, np.int64)
            sample = self.sample[before:after]
            if len(samples):
                size = 1 + max(int(sample.max(initial=0)), int(samples.max()))
                number = np.full(size, -1, np.int64)
                number[samples] = 1 + np.arange(len(samples))
                column = np.where(sample == EVERYONE, 0, number[np.maximum(sample, 0)])
            else:
                column[sample != EVERYONE] = -1
            wanted = column >= 0
            column = column[wanted]
            low = np.searchsorted(place, self._first[before:after][wanted], "left")
            high = np.searchsorted(place, self._last[before:after][wanted], "left")
            some = low < high
            steps = np.zeros((len(place) + 1, covered.shape[1]), np.int8)
            # Intervals of one sample neither touch nor overlap: no two begin or end at one site.
            steps[low[some], column[some]] += 1
            steps[high[some], column[some]] -= 1
            covered = np.cumsum(steps[:-1], axis=0, dtype=np.int8) > 0
        if order is None:
            return covered
        unsorted = np.empty_like(covered)
        unsorted[order] = covered
        return unsorted

    def _places(self, chrom, pos) -> np.ndarray:
        """Contig and position (from 0) of each site as one int64; negative on unknown contigs."""
        number = {name: k for k, name in enumerate(self.contigs)}
        names = np.asarray(chrom, object)
        place = np.asarray(pos, np.int64) - 1
        ends = np.flatnonzero(names[1:] != names[:-1]) + 1
        for first, last in zip([0, *ends], [*ends, len(names)], strict=True):
            if first < last:
                which = number.get(canonical_contig(names[first]), -1)
                if which < 0:
                    place[first:last] = -1
                else:
                    place[first:last] |= which << POSITION_BITS
        return place

    @cached_property
    def _first(self) -> np.ndarray:
        return self.contig.astype(np.int64) << POSITION_BITS | self.start

    @cached_property
    def _last(self) -> np.ndarray:
        return self.contig.astype(np.int64) << POSITION_BITS | self.end

    @cached_property
    def _reach(self) -> np.ndarray:
        """How far any interval up to each one reaches."""
        return np.maximum.accumulate(self._last)


def _joined(
    first: np.ndarray, last: np.ndarray, sample: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join intervals of one sample that touch or overlap; in order of place and sample."""
    if not len(first):
        return first, last, sample
    order = np.lexsort((first, sample))
    first, last, sample = first[order], last[order], sample[order]
    # Samples one after the other on one axis, so that one running maximum serves all.
    rank = np.concatenate([[0], np.cumsum(sample[1:] != sample[:-1])])
    bounds = np.flatnonzero(np.diff(rank)) + 1
    reach = np.concatenate([np.maximum.accumulate(part) for part in np.split(last, bounds)])
    new = np.ones(len(first), bool)
    new[1:] = (first[1:] > reach[:-1]) | (rank[1:] != rank[:-1])
    begins = np.flatnonzero(new)
    first, sample = first[begins], sample[begins]
    last = reach[np.concatenate([begins[1:], [len(reach)]]) - 1]
    order = np.lexsort((sample, first))
    return first[order], last[order], sample[order]


def read_bed(path: Path, shown: str, *, beginning: bool = False) -> Callable:
    """Read a BED file, which may be gzipped: contig, start and end in its first three columns.

    Parameters
    ----------
    shown : str
        Where the path comes from, for messages.
    beginning : bool
        Only the first thousand lines, to see whether it is a BED file.

    Raises
    ------
    UserError
        The file is missing or damaged, a line does not have three columns, an interval is not two
        numbers, start below end, or there is no interval.
    """
    names: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    with opened(path, shown) as lines:
        for row, line in enumerate(lines, 1):
            if row == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if b"\r" in line.rstrip(b"\r\n"):
                raise UserError(
                    f"{path} ({shown}), row {row}: lines end with a carriage return alone, as in "
                    "files of old Macs; save it with Unix line ends (tr '\\r' '\\n')."
                )
            words = line.split(None, 3)[:3]
            if not words or line.startswith(b"#") or words[0] in (b"track", b"browser"):
                continue
            if beginning and row > 1000:
                break
            try:
                name, start, end = words[0].decode("utf-8"), int(words[1]), int(words[2])
                if b"_" in words[1] + words[2]:  # Python reads 1_000 as a number
                    raise ValueError
            except (IndexError, ValueError):
                start = end = -1
            if not 0 <= start < end < 1 << POSITION_BITS:
                text = shorten(b" ".join(words).decode("utf-8", "replace"))
                raise UserError(
                    f"{path} ({shown}), row {row}: '{text}' is not a contig, a start from 0 on and "
                    "an end behind it; give a BED file, such as the mask of the calling."
                )
            names.append(name)
            starts.append(start)
            ends.append(end)
    if not names:
        raise UserError(f"{path} ({shown}) has no interval; give a BED file with some.")
    return Callable(names, np.array(starts), np.array(ends))


def load_beside(raw: Path, end: str) -> Callable | None:
    """The intervals that ingest wrote beside a cohort's raw.bed, BLOCKS or DROPPED, if any."""
    path = beside(raw, end)
    return Callable.load(path) if path.is_file() else None
