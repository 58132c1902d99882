"""Sites of a cohort's files as they are written to `raw.bed` and `raw.bim`: each of them once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import compress, islice
from pathlib import Path

import numpy as np

from ..core.files import atomic_path, beside, has_lists, is_file, named_rows
from ..io.batches import CHUNK_BYTES, UNKNOWN_ALLELE, SiteBatch
from ..io.bed import LEAST_NAMED, name_rows, open_bed
from ..io.columns import TABLE_ROWS
from ..io.formats import PLINK, find_format
from ..io.genotypes import BED_MAGIC, bed_row_bytes
from ..io.listed_rows import ListedRows, RowsFile, write_again
from ..io.sites import canonical_contig

#: The unknown allele in a .bim.
PLINK_UNKNOWN = "0"


class RawRows:
    """Rows of a .bed in writing; or their numbers, while a large source has the same bytes."""

    def __init__(self, file: RowsFile, path: Path, source: Path | None, row_bytes: int) -> None:
        kind, prefix = find_format(source) if source else ("", "")
        prefix = prefix if kind == PLINK else ""
        self._path, self._row_bytes, self._bed = path, row_bytes, beside(prefix, ".bed")
        large = kind == PLINK and is_file(self._bed) and self._bed.stat().st_size >= LEAST_NAMED
        if large:  # its rows lie in it, as in no raw.bed that names others' rows or has lists
            large = not has_lists(self._bed) and named_rows(self._bed) is None
        self._same = open_bed(prefix) if large else None
        self._numbers: list[np.ndarray] = []
        self.file = file

    def add(self, rows: np.ndarray, lines: np.ndarray) -> None:
        """Add rows, uint8 (n, row_bytes), of these lines of the source, from 1."""
        if self._same is not None:
            numbers = lines.astype(np.int64) - 1
            if np.array_equal(self._same[numbers], rows):
                self._numbers.append(numbers)
                return
            self._write_same()
        self.file.add(rows)

    def _write_same(self) -> None:
        for numbers in self._numbers:
            self.file.add(self._same[numbers])
        self._same = None

    def close(self, named: bool) -> None:
        """Write what is left; `named`: the file may name the source's rows."""
        if self._same is not None and not (named and self._numbers):
            self._write_same()
        self.file.close()
        if self._same is not None:
            name_rows(self._path, self._bed, np.concatenate(self._numbers), self._row_bytes)


def write_sites(batches: Iterator[SiteBatch], bed: RawRows, bim_path: Path) -> tuple[bool, int]:
    """Write the batches without duplicate sites.

    Returns
    -------
    in_order : bool
        Whether positions never decreased and no contig reappeared; if not, duplicates that are
        far apart remain.
    n_sites : int
    """
    repeats = RepeatFinder()
    n_sites = 0
    with open(bim_path, "w", encoding="utf-8", newline="\n") as bim:
        for batch in batches:
            alt = batch.alt
            if UNKNOWN_ALLELE in alt:
                alt = [PLINK_UNKNOWN if one == UNKNOWN_ALLELE else one for one in alt]
            columns = (batch.chrom, batch.id, batch.pos.tolist(), alt, batch.ref)
            lines = map("{}\t{}\t0\t{}\t{}\t{}\n".format, *columns)
            new = repeats.find_new(batch.chrom, batch.pos, batch.ref, alt)
            rows, numbers = batch.rows, batch.line
            if not new.all():
                lines = compress(lines, new)
                rows, numbers = rows[new], numbers[new]
            bim.write("".join(lines))
            bed.add(rows, numbers)
            n_sites += int(new.sum())
    return repeats.in_order, n_sites


class RepeatFinder:
    """Finds duplicates by chrom:pos:ref:alt in a stream of sites.

    In a sorted stream duplicates share the previous position, so memory does not grow; `in_order`
    says whether the stream was sorted so far.
    """

    def __init__(self) -> None:
        self.in_order = True
        self._contigs: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        self._last = np.empty((0, 2), np.int64)  # keys at the last position

    def find_new(
        self, chrom: list[str], pos: np.ndarray, ref: list[str], alt: list[str]
    ) -> np.ndarray:
        """Return (n_sites) bool, False where a site duplicates a recent one."""
        keys = self.keys(chrom, pos, ref, alt)
        n_before = len(self._last)
        keys = np.concatenate([self._last, keys])
        places = keys[:, 0] >> 4
        self.in_order &= bool((np.diff(places) >= 0).all())
        new = _first_of_each(keys)
        self._last = keys[new & (places == places[-1])]
        return new[n_before:]

    def keys(self, chrom: list[str], pos: np.ndarray, ref: list[str], alt: list[str]) -> np.ndarray:
        """Return int64 (n_sites, 2): contig by first appearance, position (31 bits), bases (4).

        An unknown ALT has the code of REF, which no known one has. The second column numbers pairs
        of longer alleles, from 1.
        """
        for name in dict.fromkeys(chrom):
            if name not in self._contigs:  # `chr1` and `1` are the same
                same = self._contigs.get(canonical_contig(name), len(self._contigs))
                self._contigs[name] = self._contigs[canonical_contig(name)] = same
        contig = np.array([self._contigs[name] for name in chrom], np.int64)
        if PLINK_UNKNOWN in alt:
            alt = [one if two == PLINK_UNKNOWN else two for one, two in zip(ref, alt, strict=True)]
        pairs = np.zeros(len(pos), np.int64)
        if len("".join(ref)) + len("".join(alt)) > 2 * len(pos):
            ref, alt = list(ref), list(alt)
            for k, pair in enumerate(zip(ref, alt, strict=True)):
                if len(pair[0]) + len(pair[1]) > 2:
                    pairs[k] = self._pairs.setdefault(pair, len(self._pairs) + 1)
                    ref[k] = alt[k] = "A"
        places = contig << 35 | pos << 4 | _base_codes(ref) << 2 | _base_codes(alt)
        return np.stack([places, pairs], axis=1)


def _base_codes(bases: list[str]) -> np.ndarray:
    """Return 0, 1, 3, 2 for A, C, G, T in either case: two bits of their ASCII codes."""
    return (np.frombuffer("".join(bases).encode("ascii"), np.uint8) >> 1 & 3).astype(np.int64)


def _first_of_each(keys: np.ndarray) -> np.ndarray:
    """Return (n) bool, True at the first of each row of int64 (n, 2)."""
    places, pairs = keys.T
    if (places[1:] > places[:-1]).all():  # almost always
        return np.ones(len(keys), bool)
    order = np.lexsort((pairs, places))  # stable: of equal rows the first comes first
    first = np.ones(len(keys), bool)
    first[order[1:]] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return first


def drop_late_duplicates(bed_path: Path, bim_path: Path, n_samples: int) -> int:
    """Remove duplicates that are far apart; return how many sites remain.

    Takes 8 bytes per site, for unsorted files only.
    """
    finder = RepeatFinder()
    with open(bim_path, encoding="utf-8", newline="\n") as bim:
        parts = []
        while lines := [line.rstrip("\n").split("\t") for line in islice(bim, TABLE_ROWS)]:
            chrom, _, _, pos, alt, ref = zip(*lines, strict=True)
            parts.append(finder.keys(chrom, np.array(pos, np.int64), ref, alt))
    return keep_sites(bed_path, bim_path, n_samples, _first_of_each(np.concatenate(parts)))


def keep_sites(bed_path: Path, bim_path: Path, n_samples: int, new: np.ndarray) -> int:
    """Keep these sites of both files, rows in place; return how many there are."""
    if new.all():
        return len(new)
    with (
        atomic_path(bim_path) as rest,
        open(rest, "w", encoding="utf-8", newline="\n") as out,
        open(bim_path, encoding="utf-8", newline="\n") as bim,
    ):
        out.writelines(compress(bim, new))
    kept, row_bytes = np.flatnonzero(new), bed_row_bytes(n_samples)
    n_block = max(1, CHUNK_BYTES // row_bytes)
    if has_lists(bed_path):
        write_again(bed_path, ListedRows(bed_path, n_samples, len(new)), kept, n_samples)
        return len(kept)
    rows = np.memmap(bed_path, np.uint8, "r+", offset=len(BED_MAGIC), shape=(len(new), row_bytes))
    for start in range(0, len(kept), n_block):
        # Rows only move towards the front, so each is read before it is overwritten.
        block = rows[kept[start : start + n_block]]
        rows[start : start + len(block)] = block
    rows.flush()
    del rows
    os.truncate(bed_path, len(BED_MAGIC) + len(kept) * row_bytes)
    return len(kept)
