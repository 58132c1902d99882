"""Which sites are kept, and the packed rows of their genotypes: shared by readers of tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .batches import DecodeCounts, SiteBatch
from .genotypes import site_kind

#: The lower bit of each two-bit code in a word.
LOW_BITS = 0x5555_5555_5555_5555


def keep_snps(sites: dict[str, Any], counts: DecodeCounts, plink: bool = True) -> list[bool]:
    """Say which sites are placed biallelic SNPs, and add all sites to `counts`.

    Parameters
    ----------
    sites : dict
        Columns chrom, pos, ref and alt; the ALT alleles of one site are separated by commas.
    plink : bool
        Whether PLINK wrote them, which has codes for unknown contigs and alleles.
    """
    known: dict[tuple[str, str], str] = {}  # sites have few different pairs of alleles
    kinds = []
    for pair in zip(sites["ref"], sites["alt"], strict=True):
        if (kind := known.get(pair)) is None:
            kind = known[pair] = site_kind(pair[0], [pair[1]], plink)
        kinds.append(kind)
    nowhere = sites["pos"] < 1
    if plink:
        nowhere |= np.array([chrom == "0" for chrom in sites["chrom"]], bool)
    for k in np.flatnonzero(nowhere):
        kinds[k] = "unplaced"
    for kind, number in Counter(kinds).items():
        setattr(counts, kind, getattr(counts, kind) + number)
    counts.records += len(kinds)
    return [kind == "snps" for kind in kinds]


def clear_padding(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Set the bits of .bed rows beyond the last sample to zero, in place, and return them."""
    if n_samples % 4:
        rows[:, -1] &= (1 << 2 * (n_samples % 4)) - 1
    return rows


def count_missing(rows: np.ndarray) -> int:
    """Count the missing genotypes (code 01) of .bed rows without padding."""
    flat = rows.reshape(-1)
    whole = flat[: len(flat) // 8 * 8].view(np.uint64)
    n_missing = 0
    for codes, low in ((whole, LOW_BITS), (flat[8 * len(whole) :], LOW_BITS & 0xFF)):
        found = ~(codes >> 1)
        found &= codes
        found &= low
        n_missing += int(np.bitwise_count(found).sum(dtype=np.int64))
    return n_missing


def batch_of(
    sites: dict[str, Any], kept: np.ndarray, rows: np.ndarray, n_samples: int, first_line: int
) -> SiteBatch:
    """Return the `kept` ones of some sites, given by columns, with their .bed rows."""
    names = {name: sites[name] for name in ("chrom", "id", "ref", "alt")}
    if len(kept) < len(sites["pos"]):
        names = {name: [column[k] for k in kept.tolist()] for name, column in names.items()}
    return SiteBatch(
        pos=sites["pos"][kept], rows=rows, n_samples=n_samples, line=first_line + kept, **names
    )
