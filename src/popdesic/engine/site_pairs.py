"""Squared correlations of pairs of sites, by fused kernels of a GPU or by blocks of bit-GEMM."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .backend import Backend, on_cpu
from .terms import LD, PRODUCT, Planes

#: Called with rows, columns (int64) and r2 (float64) of all pairs of a block of sites.
OnBlock = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
#: Sites a side of one block of correlations.
BLOCK_SITES = 1024
#: Sites of the widest window whose pairs are counted one by one.
NARROW = 256
#: Sites whose pairs a GPU counts in one call: each call waits for its results.
SENT_SITES = 1 << 14
#: Runs of BLOCK_SITES rows that are shown to `on_block`, at least, where there are as many.
SAMPLED_BLOCKS = 32


def r2_block(a: Planes, b: Planes | None, backend: Backend) -> np.ndarray:
    """Squared Pearson correlation of the ALT counts of sites, over jointly called samples.

    Parameters
    ----------
    a, b : Planes
        Variant-major (`site_planes`), over the same samples. ``b=None``: a against itself.

    Returns
    -------
    float64 array, (m, n)
        NaN where one of the two sites does not vary over the jointly called samples. This is what
        `plink1.9 --r2` gives for unphased genotypes.
    """
    from .site_pairs_cpu import r2_complete, r2_masked

    other = a if b is None else b
    if a.complete and other.complete:
        product = backend.bitgemm(a, b, PRODUCT)[0]
        return r2_complete(a.n_sites, *moments(a), *moments(other), product, backend.threads)
    return r2_masked(backend.bitgemm(a, b, LD), backend.threads)


def moments(planes: Planes) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the ALT counts of each site and of their squares; missing genotypes count as 0."""
    carriers, homozygotes = np.bitwise_count(planes.words[:, :2]).sum(axis=2, dtype=np.int64).T
    return carriers + homozygotes, carriers + 3 * homozygotes


def called_samples(planes: Planes) -> np.ndarray:
    """Bits that are called in each row, int64: samples of a site, or sites of a sample."""
    if planes.complete:
        return np.full(planes.n_samples, planes.n_sites)
    return np.bitwise_count(planes.words[:, 2]).sum(axis=1, dtype=np.int64)


def r2_pairs(
    backend: Backend,
    planes: Planes,
    ends: np.ndarray,
    least: float,
    on_block: OnBlock | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of sites within their windows whose squared correlation is at least `least`.

    Parameters
    ----------
    planes : Planes
        Variant-major: a row is a site, a bit a sample.
    ends : int64 array, (n_sites,)
        Site i is compared with the sites i + 1 ... ends[i] - 1.
    least : float
    on_block : callable, optional
        Called with rows, columns (int64) and r2 (float64) of all pairs of a block, in a fixed
        order; of many blocks those of every n-th row of blocks.

    Returns
    -------
    rows, columns : int64 arrays
    r2 : float64 array
        Over jointly called samples. Ordered by row, then column; the same from every backend.
    """
    if backend.name == "gpu" and not is_narrow(ends):
        from .site_pairs_gpu import r2_candidates
        from .stream_gpu import device_errors

        with device_errors(f"the correlations of {planes.n_samples} sites"):
            candidates = r2_candidates(planes, ends, least, backend.device)
        if candidates is not None:
            if on_block is not None:
                show_sampled_blocks(backend, planes, ends, on_block)
            return exact_pairs(planes, *candidates, least, backend.threads)
    return r2_pairs_by_blocks(backend, planes, ends, least, on_block)


def band_r2(
    backend: Backend, planes: Planes, ends: np.ndarray, first: int, last: int
) -> np.ndarray:
    """Squared correlations of some sites with those that follow within narrow windows.

    Parameters
    ----------
    planes : Planes
        Variant-major.
    ends : int64 array, (n_sites,)
        As in `r2_pairs`.
    first, last : int
        The sites i of this call.

    Returns
    -------
    float64 array, (last - first, width)
        Of site first + i with site first + i + 1 + k, over jointly called samples; NaN beyond
        the window, and where a site does not vary. The same bytes from every backend.
    """
    if backend.name == "gpu":
        from .band_r2_gpu import MOST_SAMPLES
        from .band_r2_gpu import band_r2 as on_gpu
        from .stream_gpu import device_errors

        if planes.n_sites <= MOST_SAMPLES:
            with device_errors(f"the correlations of {last - first} sites"):
                return on_gpu(planes, ends, first, last, backend.device)
        on_cpu("correlations of sites", f"{planes.n_sites} samples are too many for the device")
    from .site_pairs_cpu import band_r2 as by_pairs

    return by_pairs(planes.words, planes.n_sites, ends, first, last, backend.threads)


def r2_pairs_by_blocks(
    backend: Backend,
    planes: Planes,
    ends: np.ndarray,
    least: float,
    on_block: OnBlock | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`r2_pairs` by correlations of one block of sites after another."""
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    every = _sampling(planes.n_samples)
    if is_narrow(ends):
        for first, r2 in band_blocks(backend, planes, ends):
            if on_block is not None and first // BLOCK_SITES % every == 0 and r2.size:
                on_block(*_inside(r2, ends, first))
            i, k = np.nonzero(r2 >= least)  # False for NaN
            parts.append((i + first, i + first + 1 + k, r2[i, k]))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))
    for i, j, r2 in band_pairs(backend, planes, ends):
        if on_block is not None and len(i) and i[0] // BLOCK_SITES % every == 0:
            on_block(i, j, r2)
        there = r2 >= least
        parts.append((i[there], j[there], r2[there]))
    rows, columns, r2 = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((columns, rows))
    return rows[order], columns[order], r2[order]


def show_sampled_blocks(
    backend: Backend, planes: Planes, ends: np.ndarray, on_block: OnBlock
) -> None:
    """Hand all pairs inside the windows of some runs of sites to `on_block`."""
    for pairs in band_pairs(backend, planes, ends, _sampling(planes.n_samples)):
        on_block(*pairs)


def _sampling(n_sites: int) -> int:
    """One of so many runs of BLOCK_SITES rows is shown: of about SAMPLED_BLOCKS in all."""
    return max(1, -(-n_sites // BLOCK_SITES) // SAMPLED_BLOCKS)


def exact_pairs(
    planes: Planes, rows: np.ndarray, columns: np.ndarray, least: float, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of some candidate pairs whose r2 is at least `least`, with r2 from their tables."""
    r2 = r2_of_tables(tables_of(planes, rows, columns, threads))
    there = r2 >= least
    return rows[there], columns[there], r2[there]


def band_pairs(
    backend: Backend,
    planes: Planes,
    ends: np.ndarray,
    every: int = 1,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pairs of sites (i, j) with i < j < ends[i] and their r2, some rows at a time.

    Narrow windows are counted pair by pair: a block of products holds many pairs that no window
    asks for.

    Parameters
    ----------
    planes : Planes
        Variant-major (`site_planes`).
    ends : int64 array, (n_sites,)
        Ascending.
    every : int
        Give only the first of so many runs of BLOCK_SITES rows.

    Yields
    ------
    i, j : int64 arrays, (n_pairs,)
    r2 : float64 array, (n_pairs,)
        As from `r2_block`: NaN for sites that do not vary.
    """
    if is_narrow(ends):
        for first, r2 in band_blocks(backend, planes, ends, every):
            yield _inside(r2, ends, first)
        return
    for first in range(0, planes.n_samples, BLOCK_SITES * every):
        last = min(planes.n_samples, first + BLOCK_SITES)
        yield from _blocks(backend, planes, ends, first, last)


def is_narrow(ends: np.ndarray) -> bool:
    """Whether the pairs of these windows are counted one by one."""
    return int((ends - np.arange(len(ends))).max(initial=1)) <= NARROW


def band_blocks(
    backend: Backend, planes: Planes, ends: np.ndarray, every: int = 1
) -> Iterator[tuple[int, np.ndarray]]:
    """First site and `band_r2` of runs of BLOCK_SITES sites, of narrow windows."""
    n = planes.n_samples
    at_once = BLOCK_SITES
    if every == 1 and backend.name == "gpu":
        at_once *= max(1, SENT_SITES // BLOCK_SITES)
    for start in range(0, n, at_once * every):
        end = min(n, start + at_once)
        found = band_r2(backend, planes, ends, start, end)
        for first in range(start, end, BLOCK_SITES):
            last = min(end, first + BLOCK_SITES)
            width = max(0, int((ends[first:last] - np.arange(first, last)).max()) - 1)
            yield first, found[first - start : last - start, :width]


def _inside(r2, ends, first):
    """The pairs inside the windows of some rows, and their r2."""
    rows = np.arange(first, first + len(r2))
    i, k = np.nonzero(np.arange(r2.shape[1]) < (ends[rows] - rows - 1)[:, None])
    return i + first, i + first + 1 + k, r2[i, k]


def _blocks(backend, planes, ends, first, last):
    """The pairs of `band_pairs` of some rows, from blocks of products."""
    a = Planes(planes.words[first:last], planes.n_sites)
    top = max(last, int(ends[first:last].max()))
    for column in range(first, top, last - first):
        columns = slice(column, min(column + last - first, top))
        b = None if column == first else Planes(planes.words[columns], planes.n_sites)
        r2 = r2_block(a, b, backend)
        i, j = np.indices(r2.shape, np.int64)
        i, j = i + first, j + column
        inside = (j > i) & (j < ends[first:last, None])
        yield i[inside], j[inside], r2[inside]


def tables_of(planes: Planes, rows: np.ndarray, columns: np.ndarray, threads: int = 1):
    """int64 (n_pairs, 3, 3) genotype tables of pairs of sites, over jointly called samples.

    `planes` are variant-major (sites by samples).
    """
    from .site_pairs_cpu import pair_tables

    return pair_tables(planes.with_mask().words, rows, columns, threads)


def r2_of_tables(tables: np.ndarray) -> np.ndarray:
    """Squared correlations of pairs from their genotype tables, int (n_pairs, 3, 3)."""
    g = np.arange(3)
    n = tables.sum(axis=(1, 2))
    by_a, by_b = tables.sum(axis=2), tables.sum(axis=1)
    sum_a, sum_b = by_a @ g, by_b @ g
    covariance = (n * (tables @ g @ g) - sum_a * sum_b).astype(np.float64)
    variance_a = (n * (by_a @ (g * g)) - sum_a * sum_a).astype(np.float64)
    variance_b = (n * (by_b @ (g * g)) - sum_b * sum_b).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return covariance * covariance / (variance_a * variance_b)
