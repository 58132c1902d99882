"""From .bed rows to the planes of scans, in memory that does not grow with sites or samples.

First the genotypes of every site are counted, which decides which are stored and the order of the
sites. Then planes are made block by block in that order: the rows of a block are read in the order
of the panel and put in their places, and the block is written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..core.threads import run_tasks
from ..io.sites import chunks

#: Bytes of planes of a block, and of .bed rows that a thread reads at once.
BLOCK_BYTES, READ_BYTES = 1 << 28, 1 << 23
#: Bytes of a file that Linux maps around one that is read, if it holds them already.
MAPPED_AROUND = 1 << 16
#: Codes of genotypes 0, 1 and 2 in a .bed file.
BED_CODES = np.array([3, 2, 0], np.uint8)


@dataclass(frozen=True)
class ScannedRows:
    """Genotypes as .bed files have them, and who is a control and who a case.

    Attributes
    ----------
    read : callable
        ``read(rows)``: .bed codes of these rows of the panel, uint64 (n_rows, n_words), 32 a word.
    masks : uint64 array, (2, n_words)
        Both bits of the codes of controls, and of cases. Planes have them in this order.
    files : int
        Memory-mapped files that a row is in.
    done : callable
        Called from time to time: memory of what was read is needed no more.
    """

    read: Callable[[np.ndarray], np.ndarray]
    masks: np.ndarray
    files: int = 0
    done: Callable[[], None] = lambda: None

    @property
    def sizes(self) -> tuple[int, int]:
        """Controls and cases."""
        controls, cases = np.bitwise_count(self.masks).sum(axis=1, dtype=np.int64).tolist()
        return controls // 2, cases // 2


def class_masks(places: np.ndarray, cases: np.ndarray, n_words: int) -> np.ndarray:
    """`ScannedRows.masks`.

    Parameters
    ----------
    places : int64 array, (n_samples,)
        Number of each sample's code in a row, rising.
    cases : int8 array, (n_samples,)
        0 control, 1 case, others are in neither.
    """
    masks = np.zeros((2, 8 * n_words), np.uint8)
    for c in (0, 1):
        chosen = places[cases == c]
        np.bitwise_or.at(masks[c], chosen // 4, np.uint8(3) << (2 * (chosen % 4)).astype(np.uint8))
    return masks.view(np.uint64)


def words_of_rows(parts: list[np.ndarray]) -> np.ndarray:
    """Rows of cohorts, uint8 (n_rows, row_bytes) each, side by side as uint64 (n_rows, n_words)."""
    ends = np.cumsum([part.shape[1] for part in parts])
    out = np.zeros((len(parts[0]), -(-int(ends[-1]) // 8) * 8), np.uint8)
    for part, end in zip(parts, ends.tolist(), strict=True):
        out[:, end - part.shape[1] : end] = part
    return out.view(np.uint64)


def count_scanned(packed: ScannedRows, rows: np.ndarray, threads: int = 1) -> np.ndarray:
    """Samples of both classes with genotypes 0, 1, 2 and missing: int64 (len(rows), 4)."""
    from .onehot_cpu import count_codes  # numba starts slowly

    out = np.zeros((len(rows), 4), np.int64)

    def count(first: int, last: int) -> None:
        count_codes(packed.read(rows[first:last]), packed.masks, out[first:last])

    _run(count, packed, len(rows), threads)
    return out


def plane_blocks(
    packed: ScannedRows, rows: np.ndarray, stored: np.ndarray, n_states: int, threads: int = 1
) -> Iterator[np.ndarray]:
    """Yield planes of sites, as `scan_data.OneHot` with both classes, in blocks of `BLOCK_BYTES`.

    Parameters
    ----------
    rows : int64 array, (n_sites,)
        Rows of the panel, in the order of the planes.
    stored : int array, (n_sites, 2)
        Genotypes of the first two states.
    n_states : int
        3: missing genotypes have a plane.
    """
    from .onehot_cpu import fill_planes

    n_words = [-(-n // 64) for n in packed.sizes]
    starts, codes = np.array([0, n_words[0]], np.int64), BED_CODES[stored]
    shape = (n_states, sum(n_words))
    for first, last in chunks(len(rows), max(1, BLOCK_BYTES // max(1, 8 * n_states * shape[1]))):
        out = np.zeros((last - first, *shape), np.uint64)
        by_row = first + np.argsort(rows[first:last], kind="stable")

        def fill(start: int, stop: int, out=out, by_row=by_row, first=first) -> None:
            chosen = by_row[start:stop]
            made = np.zeros((len(chosen), *shape), np.uint64)
            words = packed.read(rows[chosen])
            fill_planes(words, packed.masks, codes[chosen], starts, made)
            out[chosen - first] = made

        _run(fill, packed, last - first, threads)
        yield out


def _run(work, packed: ScannedRows, n_rows: int, threads: int) -> None:
    """Run `work` of ranges of rows, and let go of what it read after about each `BLOCK_BYTES`."""
    mapped = packed.files * MAPPED_AROUND
    row = max(1, packed.masks[0].nbytes)
    size = max(1, min(READ_BYTES // row, BLOCK_BYTES // max(1, 4 * mapped)))
    pieces = list(chunks(n_rows, size))
    for first, last in chunks(len(pieces), max(threads, BLOCK_BYTES // (size * (row + mapped)))):
        run_tasks(work, pieces[first:last], threads)
        packed.done()
