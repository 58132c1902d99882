"""Sizes and host arithmetic of the search for best matches on a GPU."""

from __future__ import annotations

import numpy as np

from ..distance.nearest import SHARE_BITS
from ..engine.devices import Device, supported_kernels
from ..engine.layout import KernelSource, divide_up
from ..engine.terms import Planes
from .matches import INDEX_BITS

#: Queries of one launch, and candidates that are kept of each.
QUERIES, CANDIDATES = 32, 4096
#: Profiles that a warp compares at a time: pieces of a scan are whole steps.
PROFILES_A_STEP = 16
#: Warps of a thread block of `scan_profiles`, and threads of one of `keep_best`.
SCAN_WARPS, KEEP_THREADS = 8, 1024
#: Rows of query words are whole runs of so many sites.
QUERY_BITS = 512
SEARCH = KernelSource.of(
    "relatives/matches",
    QUERIES=QUERIES,
    CANDIDATES=CANDIDATES,
    PROFILES_A_STEP=PROFILES_A_STEP,
    SCAN_WARPS=SCAN_WARPS,
    KEEP_THREADS=KEEP_THREADS,
    INDEX_BITS=INDEX_BITS,
    QUERY_BITS=QUERY_BITS,
    SHARE_BITS=SHARE_BITS,
)
#: Most matches of a query that the fused search returns.
MOST_MATCHES = 256


def query_words(queries: Planes) -> np.ndarray:
    """Letters of up to 32 queries as the kernel reads them: uint32 (letters, 32, words)."""
    words = np.asarray(queries.words)
    n, n_planes, _ = words.shape
    full, rest = divmod(queries.n_sites, 64)
    n_words = divide_up(queries.n_sites, 64)
    words = words[:, :, :n_words]
    valid = np.full(n_words, ~np.uint64(0))
    if rest:
        valid[full] = np.uint64(2**rest - 1)
    called = words[:, 2] & valid if n_planes == 3 else np.broadcast_to(valid, words[:, 0].shape)
    carrier = words[:, 0] & called
    if n_planes == 1:
        letters = [carrier, called & ~carrier]
    else:
        hom = words[:, 1] & called
        letters = [called & ~carrier, carrier & ~hom, hom]
        if n_planes == 3:
            letters.append(called)
    out = np.zeros(
        (len(letters), QUERIES, divide_up(queries.n_sites, QUERY_BITS) * QUERY_BITS // 64),
        np.uint64,
    )
    for i, letter in enumerate(letters):
        out[i, :n, :n_words] = letter
    return out.view(np.uint32)


def with_planes(planes: Planes, n_planes: int) -> Planes:
    """Complete planes with a mask where the other side has one."""
    if planes.words.shape[1] == n_planes:
        return planes
    return planes.with_mask()


def piece_size(k: int, seen: int, cautious: bool) -> int:
    """Profiles of the next piece of a scan that keeps the `k` best and has `seen` some.

    Of profiles in no particular order a piece as long as all before it times g brings about k g
    candidates. A cautious piece cannot overflow in any order.
    """
    room = (CANDIDATES - k) // PROFILES_A_STEP * PROFILES_A_STEP
    return room if cautious or not seen else max(room, seen * (CANDIDATES // (4 * k)))


def part_rows(n_profiles: int, profile_bytes: int, part_bytes: int) -> int:
    """Profiles of one part of a database on its way to the device, whole steps where it can."""
    rows = max(PROFILES_A_STEP, part_bytes // profile_bytes)
    return min(rows // PROFILES_A_STEP * PROFILES_A_STEP, max(n_profiles, 1))


def can_find_matches(device: Device, kernel: str | None) -> bool:
    """Whether the fused search, by `mma.sync`, is made for this device and micro-kernel.

    Others select from the products, as a CPU does.
    """
    return kernel != "popc" and "mma" in supported_kernels(device)
