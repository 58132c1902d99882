"""Which sites are kept, and the packed rows of their genotypes: shared by readers of tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .batches import UNKNOWN_ALLELE, DecodeCounts, SiteBatch
from .call_filters import CallFilters
from .genotypes import site_kind

#: Kinds of sites that are read.
KEPT = ("snps", "one_allele")
#: The lower bit of each two-bit code in a word.
LOW_BITS = 0x5555_5555_5555_5555


def keep_snps(
    sites: dict[str, Any],
    counts: DecodeCounts,
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    plink: bool = True,
) -> list[bool]:
    """Say which sites are placed SNPs with at most two alleles, and add all sites to `counts`.

    Parameters
    ----------
    sites : dict
        Columns chrom, pos, ref and alt; the ALT alleles of one site are separated by commas. Also
        filter, as in VCF, and qual, float (n_sites,), NaN where unknown, if the file has them; and
        block, bool (n_sites,), of reference blocks.
    plink : bool
        Whether PLINK wrote them, which has codes for unknown contigs and alleles.
    """
    known: dict[tuple[str, str], str] = {}  # sites have few different pairs of alleles
    kinds = []
    for pair in zip(sites["ref"], sites["alt"], strict=True):
        if (kind := known.get(pair)) is None:
            kind = known[pair] = site_kind(pair[0], [pair[1]], plink)
        kinds.append(kind)
    if "block" in sites:
        for k in np.flatnonzero(sites["block"]):
            kinds[k] = "reference_blocks"
    nowhere = sites["pos"] < 1
    if plink:
        nowhere |= np.array([chrom == "0" for chrom in sites["chrom"]], bool)
    for k in np.flatnonzero(nowhere):
        kinds[k] = "unplaced"
    snps = np.array([kind in KEPT for kind in kinds], bool)
    if "filter" in sites and not filters.any_filter:
        names = {name: filters.failed(name) for name in dict.fromkeys(sites["filter"])}
        if any(names.values()):
            for k in np.flatnonzero(snps).tolist():
                if failed := names[sites["filter"][k]]:
                    kinds[k] = "filtered"
                    snps[k] = False
                    counts.filters.update(failed)
    if "qual" in sites and filters.min_qual:
        for k in np.flatnonzero(snps & (sites["qual"] < filters.min_qual)).tolist():
            kinds[k] = "low_qual"
    for kind, number in Counter(kinds).items():
        setattr(counts, kind, getattr(counts, kind) + number)
        if kind == "one_allele":
            counts.snps += number
    counts.records += len(kinds)
    nothing = (*KEPT, "unplaced", "reference_blocks")
    gone = [k for k, kind in enumerate(kinds) if kind not in nothing]
    if gone:
        sizes = np.array([len(sites["ref"][k]) for k in gone], np.int64)
        counts.add_dropped([sites["chrom"][k] for k in gone], sites["pos"][gone], sizes)
    return [kind in KEPT for kind in kinds]


def settle_unknown(batch: SiteBatch, counts: DecodeCounts) -> SiteBatch:
    """Make the known allele REF, and ALT UNKNOWN_ALLELE, where a PLINK file knows one allele alone.

    The known one can be either of the two. A call with the unknown allele is missing; where one of
    its two alleles is known, it is a half-call.
    """
    unknown = ("0", UNKNOWN_ALLELE)
    alt = [k for k, allele in enumerate(batch.alt) if allele in unknown]
    ref = [k for k, allele in enumerate(batch.ref) if allele in unknown]
    if not alt and not ref:
        return batch
    low = LOW_BITS & 0xFF
    rows = batch.rows[alt + ref]
    counts.half_calls += int(np.bitwise_count(rows >> 1 & ~rows & low).sum(dtype=np.int64))
    for sites, codes in ((alt, batch.rows), (ref, ~batch.rows)):
        here = codes[sites]
        both = here & here >> 1 & low  # 11: two known alleles
        batch.rows[sites] = low | both << 1
    for k in ref:
        batch.ref[k] = batch.alt[k]
    for k in alt + ref:
        batch.alt[k] = UNKNOWN_ALLELE
    clear_padding(batch.rows, batch.n_samples)
    return batch


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
