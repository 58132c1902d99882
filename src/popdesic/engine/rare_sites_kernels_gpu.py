"""Launch the kernels of rare sites (engine/rare_sites.cu): transposes, carriers, pairs."""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np

from .compile_gpu import load_function
from .layout import divide_up
from .rare_sites_plan import ADDER_WORDS, ADDERS, RARE_SITES, SITE_THREADS, SQUARE_SIDE

#: Accumulators that `add_pairs` works on together, so that they stay in L2 (H200, pairs of 60 to
#: 200 carriers: 11 ps a pair, 49 without bands), and pairs of a site below which reading its list
#: once a band costs more than that saves (2.5 ms with bands, 0.6 without).
BAND_BYTES, FEW_PAIRS = 32 << 20, 256


@dataclass
class SiteMajor:
    """One side's planes of a range by site: uint32 (n_sites, n_planes, row_words)."""

    words: cupy.ndarray
    counts: cupy.ndarray
    n_samples: int

    @property
    def row_words(self) -> int:
        return self.words.shape[2]


def rare_sites_function(name: str, capability: int) -> cupy.RawKernel:
    return load_function(RARE_SITES, name, (), capability)


def to_site_major(words: cupy.ndarray, first: int, n_sites: int, capability: int) -> SiteMajor:
    """Planes (n_samples, n_planes, .) from word `first` on by site, and bits of each site."""
    n_samples, n_planes, row_words = words.shape
    out_words = divide_up(n_samples, SQUARE_SIDE) * SQUARE_SIDE // 32
    out = cupy.empty((n_sites, n_planes, out_words), np.uint32)
    counts = cupy.zeros((n_planes, n_sites), np.uint32)
    rare_sites_function("transpose_bits", capability)(
        (divide_up(n_sites, SQUARE_SIDE), divide_up(n_samples, SQUARE_SIDE), n_planes),
        ((SQUARE_SIDE // 32) ** 2,),
        (
            words[:, :, first:],
            np.uint64(0),
            np.int32(n_samples),
            np.int64(2 * row_words * n_planes),
            np.int64(2 * row_words),
            np.int64(n_sites),
            out,
            np.int64(n_planes * out_words),
            np.int64(out_words),
            counts,
        ),
    )
    return SiteMajor(out, counts, n_samples)


def gather(turned: SiteMajor, sites: cupy.ndarray, capability: int) -> cupy.ndarray:
    """Planes of the listed sites by sample: uint64 (n_samples, n_planes, n_words)."""
    _, n_planes, row_words = turned.words.shape
    out_words = divide_up(len(sites), SQUARE_SIDE) * SQUARE_SIDE // 32
    out = cupy.empty((turned.n_samples, n_planes, out_words // 2), np.uint64)
    rare_sites_function("transpose_bits", capability)(
        (divide_up(turned.n_samples, SQUARE_SIDE), divide_up(len(sites), SQUARE_SIDE), n_planes),
        ((SQUARE_SIDE // 32) ** 2,),
        (
            turned.words,
            sites,
            np.int32(len(sites)),
            np.int64(n_planes * row_words),
            np.int64(row_words),
            np.int64(turned.n_samples),
            out,
            np.int64(n_planes * out_words),
            np.int64(out_words),
            np.uint64(0),
        ),
    )
    return out


def list_carriers(
    turned: SiteMajor, sites: cupy.ndarray, counts: cupy.ndarray, capability: int
) -> tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray]:
    """Carriers of the listed sites: entries, where each site's begin, how many it has.

    `counts` (n_samples, 3) uint32: += sites at which a sample has genotype 1, 2, missing.
    """
    most = turned.counts[0, sites].astype(np.int64)
    if len(turned.counts) > 2:
        most += turned.n_samples - turned.counts[2, sites]
    ends = cupy.cumsum(most)
    offsets = ends - most
    entries = cupy.empty(max(1, int(ends[-1])), np.uint32)
    lengths = cupy.empty(len(sites), np.int32)
    rare_sites_function("list_carriers", capability)(
        (divide_up(len(sites) * 32, SITE_THREADS),),
        (SITE_THREADS,),
        (
            turned.words,
            sites,
            np.int32(len(sites)),
            np.int32(turned.words.shape[1]),
            np.int64(turned.row_words),
            np.int32(turned.n_samples),
            offsets,
            entries,
            lengths,
            counts,
        ),
    )
    return entries, offsets, lengths


def add_pairs(
    a, b, acc: cupy.ndarray, table: cupy.ndarray, symmetric: bool, banded: bool, capability: int
) -> None:
    """Add the pairs of two sides' lists (entries, offsets, lengths) to the accumulators."""
    n_slots, rows, columns = acc.shape
    n_sites = len(a[2])
    band = max(1, BAND_BYTES // (4 * columns * n_slots)) if banded else rows
    rare_sites_function("add_pairs", capability)(
        (divide_up(n_sites * 32, SITE_THREADS), divide_up(rows, band)),
        (SITE_THREADS,),
        (
            *a,
            *b,
            np.int32(n_sites),
            acc,
            np.int64(columns),
            np.int64(rows * columns),
            table,
            np.int32(n_slots),
            np.int32(symmetric),
            np.int32(band),
        ),
    )


def add_carriers(
    planes: cupy.ndarray,
    sites: cupy.ndarray,
    turned: SiteMajor,
    sums: cupy.ndarray,
    capability: int,
) -> None:
    """sums[i][j] += listed sites at which i is homozygous (`planes`, gathered) and j a carrier."""
    n_samples, n_planes, n_words = planes.shape
    rare_sites_function("add_carriers", capability)(
        (n_samples, divide_up(turned.row_words, ADDERS * ADDER_WORDS)),
        (ADDERS,),
        (
            planes[:, 1:],
            np.int64(2 * n_planes * n_words),
            np.int64(divide_up(len(sites), 32)),
            turned.words,
            np.int64(turned.words.shape[1] * turned.row_words),
            np.int64(turned.row_words),
            sites,
            sums,
            np.int64(sums.shape[1]),
        ),
    )
