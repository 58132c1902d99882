"""Exhaustive scans of pairs, triples and quads on CPUs (contract: `scan_data.ScanData`).

Loops: chunks of x (their compacted planes are made once), tiles of y (their pair tables with all z
are counted once a chunk) shared among threads, blocks of z that stay in the first-level cache.
Quads have chunks of w and of x.
A worker keeps its best `top` in a heap ordered by (cost, panel ranks), a total order, so that the
hits do not depend on threads, tiles or the bound. All counts and costs are exact; those of
interactions are exact up to a fit whose result is rounded (`epistasis.interaction_cpu`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..core.threads import run_tasks
from .block_tables_cpu import Costs
from .cells_cpu import cost_bound
from .hits_cpu import Heaps, Kept, partner_rule, ranks_of_sites, read_only
from .quad_kernels_cpu import quad_kernels
from .scan_data import MOST_QUAD_SITES, Hits, ScanData, cell_cost
from .scan_kernels_cpu import TILE, kernels, padded_width, whole_groups, word_major
from .scan_work import CHUNK, CHUNK_BYTES, require_complete

#: Triples by interaction for each hit kept, up to which a scan of half the sites comes first: there
#: fits cost more than an eighth of the triples.
PILOT_TESTS = 50_000
#: Hits that the pilot lets in for each one kept.
PILOT_EXCESS = 1.5
#: Least sites of a pilot.
PILOT_SITES = 40
#: Most sites w, and most x, of a chunk of quads.
QUAD_CHUNK = 8


class _Scan:
    """Arrays that all tasks of one scan read, and the workers' heaps."""

    def __init__(self, data: ScanData, order: int, top: int, cutoff: int | None, threads: int):
        self.data, self.threads = data, threads
        self.n_states = data.classes[0].words.shape[1]
        self.width = padded_width(data.n_sites)
        self.words = [np.ascontiguousarray(one.words, np.uint64) for one in data.classes]
        self.planes = [word_major(words, self.width) for words in self.words]
        self.sizes = np.array([one.n_samples for one in data.classes], np.int64)
        self.margins = np.zeros((2, self.n_states, self.width), np.int32)
        for c, words in enumerate(self.words):
            self.margins[c, :, : data.n_sites] = np.bitwise_count(words).sum(axis=2).T
        missing = self.margins[:, 2:, : data.n_sites].sum(axis=(0, 1)) > 0
        if data.complete_from is not None:
            require_complete(missing[data.complete_from :])
        self.states_of = np.where(missing, 3, 2).astype(np.int64)
        total, part = (read_only(table, np.int64) for table in (data.total, data.part))
        n0, n1 = self.sizes
        shift = int(cell_cost(n0, n1, total, part))
        self.rule = partner_rule(data.partners)
        self.rank = ranks_of_sites(data.rank)
        bound = np.array(cost_bound(total, part, 3**order), np.float64)
        bits = -1 if data.lr_bits is None else data.lr_bits
        self.costs = Costs(total, part, shift, bound, bits)
        #: Whether what parts of a combination say about the class is looked up.
        self.known = bits >= 0 and self.n_states == 2
        self.known_sites = self.of_sites()
        self.heaps = Heaps(top, cutoff, threads)

    def of_sites(self) -> np.ndarray:
        """I(site; class) as an integer, int64 (width,); empty if it is not looked up."""
        if not self.known:
            return np.zeros(0, np.int64)
        third = self.sizes[:, None] - self.margins.sum(axis=1)
        controls, cases = np.stack([*np.moveaxis(self.margins, 1, 0), third], axis=1)
        total, part, shift, *_ = self.costs
        return shift - cell_cost(controls, cases, total, part).sum(axis=0)

    def of_pairs(self, n: int) -> np.ndarray:
        """Room for I(pair; class) of n sites with all others, int64 (n, width), or empty."""
        return np.zeros((n, self.width) if self.known else (0, 0), np.int64)

    def fill_of_pairs(self, out: np.ndarray, i: int, tables: np.ndarray, site: int) -> None:
        """Row i of `of_pairs`: `site` with all later sites, from its row of tables."""
        if self.known:
            kernels()[4](
                tables, self.sizes, self.margins, self.n_states, site, site, *self.costs[:3], out[i]
            )

    @contextmanager
    def kept(self) -> Iterator[Kept]:
        """A heap for one task."""
        heap = self.heaps.free.get()
        yield Kept(self.rank, self.rule, *heap)
        self.heaps.free.put(heap)

    def tables(self, n: int) -> np.ndarray:
        return np.zeros((n, 2, self.n_states, self.n_states, self.width), np.int32)


def scan_pairs(
    data: ScanData, first: range, top: int, cutoff: int | None = None, *, threads: int = 1
) -> Hits:
    """See `scan_pairs`."""
    scan = _Scan(data, 2, top, cutoff, threads)
    _, count_row, pairs, _, _ = kernels()

    def work(start: int, stop: int) -> None:
        tables = scan.tables(1)[0]
        with scan.kept() as kept:
            for x in range(start, stop):
                count_row(*scan.planes, scan.n_states, scan.states_of, x, x, tables)
                pairs(
                    tables, scan.sizes, scan.margins, scan.n_states, x, scan.known_sites,
                    scan.costs, kept,
                )  # fmt: skip

    starts = range(first.start, min(first.stop, data.n_sites), TILE)
    run_tasks(work, [(s, min(s + TILE, first.stop, data.n_sites)) for s in starts], threads)
    return scan.heaps.hits(2)


def scan_triples(
    data: ScanData, first: range, top: int, cutoff: int | None = None, *, threads: int = 1
) -> Hits:
    """See `scan_triples`."""
    by_interaction = data.lr_bits is not None
    if cutoff is None and by_interaction and fits_prevail(data.n_sites, first, top):
        limit = _cutoff_by_half(data, first, top, threads)
        if limit is not None:
            hits = scan_triples(data, first, top, limit, threads=threads)
            if len(hits.cost) == top:  # else the half was too good: not all of the best are here
                return hits
    scan = _Scan(data, 3, top, cutoff, threads)
    stop = min(first.stop, data.n_sites - 2)
    start = first.start
    while start < stop:
        depths = _depths(scan, start, min(stop, start + CHUNK))
        rows = np.cumsum(depths.sum(axis=(1, 2))) * scan.n_states
        n = max(1, int(np.searchsorted(rows * scan.width * 8, CHUNK_BYTES, "right")))
        _scan_chunk(scan, start, depths[:n])
        start += len(depths[:n])
    return scan.heaps.hits(3)


def fits_prevail(sites: int, first: range, top: int) -> bool:
    """Whether a scan of triples by interaction spends most of its time on fits of its first hits.

    K hits of n tests need K (1 + ln(n / K)) fits or more, as the worst hit kept gets better.
    """
    rest = max(0, sites - first.stop)
    tests = math.comb(sites - min(first.start, sites), 3) - math.comb(rest, 3)
    return sites >= 2 * PILOT_SITES and 8 * top <= tests <= PILOT_TESTS * top


def _cutoff_by_half(data: ScanData, first: range, top: int, threads: int) -> int | None:
    """A cost that more than `top` triples should reach, by a scan of every second site."""
    wanted = math.ceil(PILOT_EXCESS * top / 8)
    half = data.of_sites(slice(None, None, 2))
    rows = range(-(-first.start // 2), -(-first.stop // 2))
    hits = scan_triples(half, rows, wanted, threads=threads)
    return int(hits.cost[-1]) if len(hits.cost) == wanted else None


def _depths(scan: _Scan, start: int, stop: int) -> np.ndarray:
    """Words of the compacted planes: int64 (x, 2, n_states)."""
    carriers = np.moveaxis(scan.margins[:, :, start:stop], 2, 0).astype(np.int64)
    return whole_groups(-(-carriers // 64))


def _places(scan: _Scan, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows for compacted planes of such depths, and where each state's begin."""
    rows = depths.ravel() * scan.n_states
    offsets = (np.cumsum(rows) - rows).reshape(depths.shape)
    return np.zeros((max(1, int(rows.sum())), scan.width), np.uint64), offsets


def _chunk(scan: _Scan, start: int, depths: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pair tables of a chunk's sites, their compacted planes, where these begin, their depths."""
    compact, count_row, *_ = kernels()
    depths = np.ascontiguousarray(depths)
    compacted, offsets = _places(scan, depths)
    tables = scan.tables(len(depths))

    def prepare(i: int) -> None:
        count_row(*scan.planes, scan.n_states, scan.states_of, start + i, start, tables[i])
        for c in range(2):
            for g in range(scan.n_states):
                compact(
                    scan.words[c], start + i, g, start + i + 1, compacted, offsets[i, c, g],
                    depths[i, c, g],
                )  # fmt: skip

    run_tasks(prepare, [(i,) for i in range(len(depths))], scan.threads)
    return tables, compacted, offsets, depths


def _scan_chunk(scan: _Scan, start: int, depths: np.ndarray) -> None:
    _, count_row, _, triples, _ = kernels()
    n, n_sites = len(depths), scan.data.n_sites
    tables_x, *planes = _chunk(scan, start, depths)
    of_x = scan.of_pairs(n)
    for i in range(n):
        scan.fill_of_pairs(of_x, i, tables_x[i], start + i)

    def work(y0: int, y1: int) -> None:
        tables_y, of_y = scan.tables(y1 - y0), scan.of_pairs(y1 - y0)
        for y in range(y0, y1):
            count_row(*scan.planes, scan.n_states, scan.states_of, y, y0, tables_y[y - y0])
            scan.fill_of_pairs(of_y, y - y0, tables_y[y - y0], y)
        with scan.kept() as kept:
            triples(
                tables_y, tables_x, tuple(planes), scan.sizes, scan.margins,
                scan.states_of, start, y0, y1, (scan.known_sites, of_x, of_y), scan.costs, kept,
            )  # fmt: skip

    tiles = range(start + 1, n_sites - 1, TILE)
    run_tasks(work, [(y0, min(y0 + TILE, n_sites - 1)) for y0 in tiles], scan.threads)


def scan_quads(
    data: ScanData, first: range, top: int, cutoff: int | None = None, *, threads: int = 1
) -> Hits:
    """See `scan_quads`."""
    if data.n_sites > MOST_QUAD_SITES:
        raise ValueError(f"{data.n_sites} sites: at most {MOST_QUAD_SITES} for a scan of quads")
    scan = _Scan(data, 4, top, cutoff, threads)
    stop = min(first.stop, data.n_sites - 3)
    # chunks of w and x for whose pairs all samples would fit
    words = sum(words.shape[2] for words in scan.words) * scan.n_states
    side = min(max(1, math.isqrt(CHUNK_BYTES // (8 * words * scan.width))), QUAD_CHUNK)
    for w0 in range(first.start, stop, side):
        w1 = min(stop, w0 + side)
        chunk_w = _chunk(scan, w0, _depths(scan, w0, w1))
        for x0 in range(w0 + 1, data.n_sites - 2, side):
            x1 = min(data.n_sites - 2, x0 + side)
            _scan_pairs_of_sites(scan, w0, x0, chunk_w, _chunk(scan, x0, _depths(scan, x0, x1)))
    return scan.heaps.hits(4)


def _scan_pairs_of_sites(scan: _Scan, w0: int, x0: int, chunk_w: tuple, chunk_x: tuple) -> None:
    """All quads whose first two sites are of a chunk of w and one of x."""
    compact, information, quads = quad_kernels()
    count_row, n_sites, n_states = kernels()[1], scan.data.n_sites, scan.n_states
    (tables_w, *planes_w), tables_x = chunk_w, chunk_x[0]
    n_w, n_x = len(tables_w), len(tables_x)
    two = [(i, j) for i in range(n_w) for j in range(n_x) if w0 + i < x0 + j]
    carriers = np.moveaxis(tables_w[..., x0 : x0 + n_x], 4, 1).astype(np.int64)
    for i, j in np.ndindex(n_w, n_x):
        if w0 + i >= x0 + j:
            carriers[i, j] = 0  # no pair
    depths = np.ascontiguousarray(whole_groups(-(-carriers // 64)))
    compacted, offsets = _places(scan, depths)
    sizes = np.zeros((*carriers.shape, n_states, scan.width), np.int32)
    known = np.zeros((n_w, n_x, scan.width) if scan.known else (0, 0, 0), np.int64)

    def prepare(i: int, j: int) -> None:
        w, x = w0 + i, x0 + j
        for c, g, h in np.ndindex(2, n_states, n_states):
            words = scan.words[c]
            compact(
                words, words[w, g] & words[x, h], x + 1, compacted, offsets[i, j, c, g, h],
                depths[i, j, c, g, h], sizes[i, j, c, g, h],
            )  # fmt: skip
        if scan.known:
            information(
                tables_x[j], tables_w[i], tuple(planes_w), i, w, x,
                (n_states, scan.margins, scan.states_of), scan.sizes, scan.costs, known[i, j],
            )  # fmt: skip

    def work(y0: int, y1: int) -> None:
        tables_y = scan.tables(y1 - y0)
        for y in range(y0, y1):
            count_row(*scan.planes, n_states, scan.states_of, y, y0, tables_y[y - y0])
        with scan.kept() as kept:
            quads(
                tables_y, chunk_w, chunk_x, (compacted, offsets, depths, sizes, known), scan.sizes,
                scan.margins, scan.states_of, (w0, x0, y0, y1), scan.costs, kept,
            )  # fmt: skip

    run_tasks(prepare, two, scan.threads)
    tiles = range(x0 + 1, n_sites - 1, TILE)
    run_tasks(work, [(y0, min(y0 + TILE, n_sites - 1)) for y0 in tiles], scan.threads)
