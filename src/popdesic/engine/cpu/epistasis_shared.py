"""Exhaustive scans of several phenotypes at once on CPUs (contract: `engine.base.SharedScan`).

As `epistasis.py`: chunks of x, tiles of y, blocks of z. People that several phenotypes share are
counted once: their compacted planes, pair tables and products. Each phenotype has scores, limits
and heaps of its own, one heap for each worker.
"""

from __future__ import annotations

from dataclasses import replace
from queue import SimpleQueue

import numpy as np

from ..base import Hits, OneHot, SharedScan, SharedTrait
from ..scan_work import CHUNK, CHUNK_BYTES
from ..threads import run_tasks
from .epistasis import PILOT_EXCESS, fits_prevail, padded_width, whole_groups, word_major
from .epistasis_cells import cost_bound
from .epistasis_hits import best_of_heaps
from .epistasis_kernels import TILE, kernels
from .epistasis_shared_kernels import shared_kernels

_UNLIMITED = np.iinfo(np.int64).max


class _Scan:
    """Arrays that all tasks of one scan read, and the workers' heaps."""

    def __init__(self, data: SharedScan, order: int, top: int, limits: list[int], threads: int):
        self.data, self.order, self.top, self.threads = data, order, top, threads
        self.n_states, n_sites = data.groups[0].words.shape[1], data.n_sites
        self.width = padded_width(n_sites)
        self.words = [np.ascontiguousarray(one.words, np.uint64) for one in data.groups]
        planes = [word_major(words, self.width) for words in self.words]
        rows = np.array([len(plane) for plane in planes], np.int64)
        self.planes, self.starts = np.concatenate(planes), np.cumsum(rows) - rows
        self.depths = rows // self.n_states
        self.sizes = np.array([one.n_samples for one in data.groups], np.int64)
        self.margins = np.zeros((len(self.words), self.n_states, self.width), np.int32)
        for g, words in enumerate(self.words):
            self.margins[g, :, :n_sites] = np.bitwise_count(words).sum(axis=2).T
        missing = self.margins[:, 2:, :n_sites].sum(axis=(0, 1)) > 0
        self.states_of = np.where(missing, 3, 2).astype(np.int64)
        traits = data.traits
        longest = max(len(trait.total) for trait in traits)
        tables = np.zeros((2, len(traits), longest), np.int64)
        shift = np.zeros(len(traits), np.int64)
        for t, trait in enumerate(traits):
            tables[0, t, : len(trait.total)] = trait.total
            tables[1, t, : len(trait.part)] = trait.part
            n0, n1 = self.classes(trait, self.sizes)
            shift[t] = int(trait.total[n0 + n1]) - int(trait.part[n0]) - int(trait.part[n1])
        bound = [cost_bound(trait.total, trait.part, 3**order) for trait in traits]
        bits = [-1 if trait.lr_bits is None else trait.lr_bits for trait in traits]
        self.total, self.part, self.shift = *tables, shift
        #: Whether what parts of a combination say about the class is looked up.
        self.known = bits[0] >= 0 and self.n_states == 2
        known = np.zeros((len(traits), self.width if self.known else 0), np.int64)
        for t, trait in enumerate(traits):
            if self.known:
                known[t] = self._of_sites(t, trait)
        self.traits = (
            np.array([(trait.cases, trait.rest) for trait in traits], np.int64),
            *(data.subtract, known, *tables, shift, np.array(bound, np.float64)),
            *(np.stack([trait.rank for trait in traits]).astype(np.int32), self._rule()),
            np.array(bits, np.int64),
            np.stack([trait.place for trait in traits]).astype(np.int32),
            np.stack([trait.labels for trait in traits]).astype(np.int8),
        )
        self.heaps, self.free = [], SimpleQueue()
        for _ in range(max(1, threads)):
            state = np.array([(0, limit) for limit in limits], np.int64)
            self.heaps.append((np.empty((len(traits), top, 5), np.int64), state))
            self.free.put(self.heaps[-1])

    def classes(self, trait: SharedTrait, of_groups: np.ndarray) -> np.ndarray:
        """Controls and cases of a phenotype from what all groups have: (2, ...)."""
        cases = of_groups[trait.cases]
        rest = of_groups[trait.rest] if trait.rest >= 0 else np.zeros_like(cases)
        base = of_groups[0]
        return np.stack([base - rest - cases if self.data.subtract else base + rest, cases])

    def _rule(self) -> tuple:
        """`partner_rule` with a row of chromosomes for each phenotype, and one of all sites."""
        n, partners = self.data.n_sites, self.data.partners
        chrom, pos, middle = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int8)
        least, most = 0, 1.0
        if partners is not None:
            chrom, pos = partners.chrom.astype(np.int32), partners.pos.astype(np.int32)
            middle = partners.middle.astype(np.int8)
            least, most = int(partners.min_distance_bp), float(partners.max_r2)
        rows = [np.where(trait.place < 0, -1, chrom) for trait in self.data.traits]
        return np.stack([*rows, chrom]).astype(np.int32), pos, middle, least, most

    def _of_sites(self, t: int, trait: SharedTrait) -> np.ndarray:
        """I(site; class) of a phenotype as an integer, int64 (width,)."""
        margins = self.classes(trait, self.margins)
        third = self.classes(trait, self.sizes)[:, None] - margins.sum(axis=1)
        controls, cases = np.concatenate([margins, third[:, None]], axis=1)
        total, part = self.total[t], self.part[t]
        return self.shift[t] - (total[controls + cases] - part[controls] - part[cases]).sum(axis=0)

    def tables(self, n: int) -> np.ndarray:
        """Room for pair tables of n sites with all others."""
        shape = (n, len(self.sizes), self.n_states, self.n_states, self.width)
        return np.zeros(shape, np.int32)

    def fill_row(self, site: int, first: int, out: np.ndarray) -> None:
        """A site's row of `tables`, from the block of `first` on."""
        shared_kernels()[0](
            self.planes, self.starts, self.depths, self.n_states, self.states_of, site, first, out
        )

    def of_pairs(self, n: int) -> np.ndarray:
        """Room for I(pair; class) of n sites with all others, (n_traits, n, width), or empty."""
        shape = (len(self.data.traits), n, self.width)
        return np.zeros(shape if self.known else (0, 0, 0), np.int64)

    def fill_of_pairs(self, out: np.ndarray, i: int, tables: np.ndarray, site: int) -> None:
        """Row i of `of_pairs`: `site` with all later sites, from its row of `tables`."""
        for t, trait in enumerate(self.data.traits if self.known else ()):
            sizes, margins = self.classes(trait, self.sizes), self.classes(trait, self.margins)
            kernels()[4](
                self.classes(trait, tables), sizes, margins, self.n_states, site, site,
                self.total[t], self.part[t], self.shift[t], out[t, i],
            )  # fmt: skip

    def chunk_depths(self, start: int, stop: int) -> np.ndarray:
        """Words of the compacted planes of some x: int64 (x, groups, n_states)."""
        carriers = np.moveaxis(self.margins[:, :, start:stop], 2, 0).astype(np.int64)
        return np.ascontiguousarray(whole_groups(-(-carriers // 64)))

    def hits(self) -> list[Hits]:
        """The best of each phenotype, as sites of its own scan."""
        found = []
        for t, trait in enumerate(self.data.traits):
            heaps = [(heap[t], state[t]) for heap, state in self.heaps]
            best = best_of_heaps(heaps, self.top, self.order)
            found.append(Hits(best.cost, np.sort(trait.place[best.sites], axis=1)))
        return found


def scan_shared(
    data: SharedScan, order: int, first: range, top: int, *, threads: int = 1
) -> list[Hits]:
    """See `engine.base.Backend.scan_shared`."""
    limits = _limits_by_half(data, order, first, top, threads)
    hits = _scan(data, order, first, top, limits, threads)
    short = [
        t
        for t, (limit, one) in enumerate(zip(limits, hits, strict=True))
        if limit != _UNLIMITED and len(one.cost) < top
    ]
    if short:  # half the sites were too good: not all of the best are here
        chosen = replace(data, traits=tuple(data.traits[t] for t in short))
        again = _scan(chosen, order, first, top, [_UNLIMITED] * len(short), threads)
        for t, one in zip(short, again, strict=True):
            hits[t] = one
    return hits


def _limits_by_half(
    data: SharedScan, order: int, first: range, top: int, threads: int
) -> list[int]:
    """Costs that more than `top` triples should reach, as `epistasis.scan_triples` does."""
    limits = [_UNLIMITED] * len(data.traits)
    if order == 2 or data.traits[0].lr_bits is None:
        return limits
    if not fits_prevail(data.n_sites, first, top):
        return limits
    some, wanted = slice(None, None, 2), int(np.ceil(PILOT_EXCESS * top / 8))
    partners = data.partners
    if partners is not None:
        columns = {name: getattr(partners, name)[some] for name in ("chrom", "pos", "middle")}
        partners = replace(partners, **columns)
    half = SharedScan(
        tuple(OneHot(one.words[some], one.n_samples) for one in data.groups),
        tuple(
            replace(
                trait, rank=trait.rank[some], place=trait.place[some], labels=trait.labels[some]
            )
            for trait in data.traits
        ),
        data.subtract,
        partners,
    )
    rows = range(-(-first.start // 2), -(-first.stop // 2))
    hits = scan_shared(half, order, rows, wanted, threads=threads)
    return [int(one.cost[-1]) if len(one.cost) == wanted else _UNLIMITED for one in hits]


def _scan(
    data: SharedScan, order: int, first: range, top: int, limits: list[int], threads: int
) -> list[Hits]:
    scan = _Scan(data, order, top, limits, threads)
    if order == 2:
        _scan_pairs(scan, first)
        return scan.hits()
    start, stop = first.start, min(first.stop, data.n_sites - 2)
    row_bytes = 4 * len(scan.sizes) * scan.n_states**2 * scan.width
    while start < stop:
        depths = scan.chunk_depths(start, min(stop, start + CHUNK))
        rows = np.cumsum(depths.sum(axis=(1, 2))) * scan.n_states
        n = int(np.searchsorted(rows * scan.width * 8, CHUNK_BYTES, "right"))
        n = max(1, min(n, CHUNK_BYTES // row_bytes))
        _scan_chunk(scan, start, depths[:n])
        start += len(depths[:n])
    return scan.hits()


def _scan_pairs(scan: _Scan, first: range) -> None:
    _, pairs, _ = shared_kernels()

    def work(start: int, stop: int) -> None:
        heap, state = scan.free.get()
        tables = scan.tables(1)[0]
        for x in range(start, stop):
            scan.fill_row(x, x, tables)
            pairs(tables, scan.sizes, scan.margins, scan.n_states, x, *scan.traits, heap, state)
        scan.free.put((heap, state))

    stop = min(first.stop, scan.data.n_sites)
    starts = range(first.start, stop, TILE)
    run_tasks(work, [(start, min(start + TILE, stop)) for start in starts], scan.threads)


def _scan_chunk(scan: _Scan, start: int, depths: np.ndarray) -> None:
    compact, triples = kernels()[0], shared_kernels()[2]
    n, n_sites = len(depths), scan.data.n_sites
    rows = depths.ravel() * scan.n_states
    offsets = (np.cumsum(rows) - rows).reshape(depths.shape)
    compacted = np.zeros((max(1, int(rows.sum())), scan.width), np.uint64)
    tables_x, of_x = scan.tables(n), scan.of_pairs(n)

    def prepare(i: int) -> None:
        scan.fill_row(start + i, start, tables_x[i])
        scan.fill_of_pairs(of_x, i, tables_x[i], start + i)
        for g, words in enumerate(scan.words):
            for s in range(scan.n_states):
                compact(
                    words, start + i, s, start + i + 1, compacted, offsets[i, g, s],
                    depths[i, g, s],
                )  # fmt: skip

    def work(y0: int, y1: int) -> None:
        heap, state = scan.free.get()
        tables_y, of_y = scan.tables(y1 - y0), scan.of_pairs(y1 - y0)
        for y in range(y0, y1):
            scan.fill_row(y, y0, tables_y[y - y0])
            scan.fill_of_pairs(of_y, y - y0, tables_y[y - y0], y)
        triples(
            tables_y, tables_x, compacted, offsets, depths, scan.sizes, scan.margins,
            scan.states_of, scan.n_states, start, y0, y1, of_x, of_y, *scan.traits, heap, state,
        )  # fmt: skip
        scan.free.put((heap, state))

    run_tasks(prepare, [(i,) for i in range(n)], scan.threads)
    tiles = range(start + 1, n_sites - 1, TILE)
    run_tasks(work, [(y0, min(y0 + TILE, n_sites - 1)) for y0 in tiles], scan.threads)
