"""Read biallelic SNP genotypes from VCF-Zarr (Czech et al. 2025), as `popdesic.io.vcf` does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UserError
from .batches import (
    ANY_PLOIDY,
    UNKNOWN_ALLELE,
    DecodeCounts,
    HaploidPolicies,
    LeftOut,
    SiteBatch,
    as_samples,
    unusable_name,
)
from .bgzf import in_order
from .call_filters import CallFilters
from .genotypes import pack_bed
from .layer_zarr import widen_calls, widen_marks
from .layers import layers_each, most_layers
from .open_records import open_sites, settle_opened
from .remote import Remote
from .site_classes import ANY_OTHER, OpenedRecords
from .site_rows import batch_of, keep_snps
from .vcf_errors import record_error, show
from .zarr_store import (
    BLOCK_DEPTH,
    CALLS,
    FAULTS,
    FILL,
    IMPUTED,
    MARKS,
    PHASE,
    REACH,
    SITE_ARRAYS,
    Store,
    damaged,
    open_store,
    texts,
)

#: A number at the start of a text, as VCF is read.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
#: Lengths of structural variants, and what a value that is unknown, or beyond the last one, is.
SV_LENGTH = "variant_SVLEN"
UNKNOWN, BEYOND = -1, -2


def stream_zarr(
    path: Path | Remote | str,
    counts: DecodeCounts,
    *,
    haploid: str | Mapping[str, str] = "error",
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    left_out: LeftOut = LeftOut(),  # noqa: B008 (a tuple)
    threads: int = 1,
) -> Iterator[SiteBatch]:
    """Yield the biallelic SNPs of a store, in its order, a row of chunks at a time.

    `line` is the number of the site, from 1. For the parameters see `popdesic.io.vcf.stream_sites`;
    all rules are the same.

    Raises
    ------
    UserError
        As `open_store`; a chunk cannot be decoded; or a call is refused.
    """
    store = open_store(path)
    given = HaploidPolicies.parse(haploid, left_out)
    ignored = given.ignored(store.samples)
    policies = np.array([given.of(name) for name in store.contigs], np.int64)

    def read(start: int):
        return _read_block(store, start, ignored, policies, filters, given)

    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    try:
        starts = range(0, store.n_sites, store.n_rows)
        # At most one block more than there are threads is in memory.
        for batch, here, error in in_order(read, starts, pool, threads - 1):
            counts.merge(here)
            if error is not None:
                raise error
            if len(batch.line):
                yield batch
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _read_block(
    store: Store,
    start: int,
    ignored: np.ndarray,
    policies: np.ndarray,
    filters: CallFilters,
    haploid: HaploidPolicies,
) -> tuple[SiteBatch, DecodeCounts, UserError | None]:
    """Decode one row of chunks, up to the first call that is refused."""
    from . import vcf_text_cpu as codes
    from .zarr_calls_cpu import decode_calls

    part = slice(start, min(store.n_sites, start + store.n_rows))
    group = store.group
    try:
        contig, pos, site_id, alleles = (np.asarray(group[name][part]) for name in SITE_ARRAYS)
        calls = np.ascontiguousarray(group[CALLS][part])
        phased = np.zeros(calls.shape[:2], np.bool_)
        if PHASE in group:
            phased = np.ascontiguousarray(group[PHASE][part], np.bool_)
        # Decoding an array of calls takes as long as decoding genotypes: those needed alone.
        needed = [MARKS[k] for k, wanted in enumerate(_needed(filters)) if wanted]
        marks = {name: np.asarray(group[name][part]) for name in needed if name in group}
        names = texts(group["filter_id"][:]) if "filter_id" in group else []
        reach = {name: np.asarray(group[name][part], np.int64) for name in REACH if name in group}
        lengths = None
        if "sv" in filters.classes and SV_LENGTH in group:
            lengths = np.asarray(group[SV_LENGTH][part]).reshape(len(pos), -1)
            lengths = lengths if lengths.dtype.kind in "iu" else None
    except FAULTS as error:
        raise damaged(store.path, error) from None
    if calls.dtype.kind != "i":
        raise damaged(store.path, TypeError(f"{CALLS} does not hold integers"))
    origin = np.arange(len(pos))
    sites = _sites(store, start, contig, pos, site_id, alleles)
    any_other = _take_any_other(sites, reach)
    if (failed := marks.get("variant_filter")) is not None:
        if failed.shape[1:] != (len(names),):
            raise damaged(store.path, ValueError("variant_filter has other filters than filter_id"))
        sites["filter"] = [
            ";".join(name for name, is_set in zip(names, row, strict=True) if is_set)
            for row in failed.tolist()
        ]
    if "variant_quality" in marks:
        with np.errstate(invalid="ignore"):  # the float of a missing value is a signalling NaN
            sites["qual"] = marks["variant_quality"].astype(np.float64)
    counts, opened, written = DecodeCounts(), None, calls
    if filters.classes:
        infos = _infos(reach, lengths, len(pos))
        sites, opened = open_sites(sites, filters.classes, infos)
        calls = _choose_alleles(calls, opened, any_other)
        origin = np.array(opened.origin, np.int64)
        phased, contig, any_other = phased[origin], contig[origin], any_other[origin]
        marks = {name: values[origin] for name, values in marks.items()}
        if "call_AD" in marks and (split := opened.split()):  # reads of other alleles
            marks["call_AD"][split] = -1 if marks["call_AD"].dtype.kind in "if" else "."
    if calls.dtype != np.int8:  # all alleles beyond the first ALT, and below -2, are refused
        calls = calls.clip(-3, 2).astype(np.int8)
    layers, n_samples, layered = 1, len(store.samples), haploid.kinds != (2,)
    if layered:
        ploidy, layers = haploid.of_samples(n_samples), most_layers(haploid.kinds)
        sizes = layers_each(ploidy, haploid.kinds)
        calls, phased = widen_calls(calls, phased, ploidy, sizes, layers)
        marks, ignored = widen_marks(marks, layers), np.tile(ignored, layers)
    kept = np.flatnonzero(keep_snps(sites, counts, filters, plink=False))
    genotypes = np.empty((len(kept), layers * n_samples), np.int8)
    values, refused = np.zeros(codes.N_COUNTS, np.int64), np.zeros(3, np.int64)
    decode_calls(
        calls, phased, kept, ignored, policies[contig], any_other, genotypes, values, refused
    )
    counts.add(values)
    lone = np.array([sites["alt"][k] == UNKNOWN_ALLELE for k in kept.tolist()], bool)
    if not refused[0] and (genotypes[lone] > 0).any():
        row, sample = np.argwhere(genotypes[lone] > 0)[0]
        refused[:] = codes.HIGH_ALLELE, kept[lone][row], sample
    if "call_DP" in marks and _is_zero(marks["call_DP"]).any():
        try:
            imputed = {name: np.asarray(group[name][part]) for name in IMPUTED if name in group}
        except FAULTS as error:
            raise damaged(store.path, error) from None
        marks |= widen_marks(imputed, layers)
    _limit_calls(genotypes, kept, calls, phased, marks, filters, counts)
    if sites["block"].any():
        first = calls[:, :n_samples], phased[:, :n_samples]
        own = {k: v[:, :n_samples] if k.startswith("call_") else v for k, v in marks.items()}
        _note_blocks(store, part, origin, sites, *first, own, policies[contig], filters, counts)
    kind, row, sample = refused.tolist()
    sample %= n_samples
    error = None
    if kind:
        alleles_here = [a for a in written[origin[row], sample].tolist() if a > FILL]
        # Of polyploids with the ploidy of the sample, as `layer_text_cpu` marks a call.
        mark = f"!{ploidy[sample]}!" if layered and kind == codes.POLYPLOID else ""
        between = "|" if phased[row, sample] else "/"
        error = record_error(
            f"{store.path}, site {start + origin[row] + 1}",
            kind,
            value=mark + between.join("." if a < 0 else str(a) for a in alleles_here),
            samples=store.samples,
            sample=sample,
        )
    batch = batch_of(sites, kept, pack_bed(genotypes), layers * n_samples, 0)
    if layered and error is None:
        batch, counts = as_samples(batch, counts, haploid.kinds, ploidy)
    if opened is not None:
        settle_opened(opened, batch, counts, filters)
    batch.line += start + 1
    return batch, counts, error


def _infos(reach: dict[str, np.ndarray], lengths: np.ndarray | None, n_sites: int) -> list[str]:
    """SVLEN and END of each site, as in INFO."""
    svlen: list[list[int]] = [[]] * n_sites if lengths is None else lengths.tolist()
    end = reach.get(REACH[0])
    ends = [""] * n_sites if end is None else end.tolist()
    shown = (
        ",".join("." if one == UNKNOWN else str(one) for one in values if one != BEYOND)
        for values in svlen
    )
    return [f"SVLEN={values};END={last}" for values, last in zip(shown, ends, strict=True)]


def _choose_alleles(calls: np.ndarray, opened: OpenedRecords, any_other: np.ndarray) -> np.ndarray:
    """Calls of the records that the decoder reads: (n_records, n_samples, ploidy)."""
    chosen = calls[opened.origin]
    for first, record, found in opened.records:
        lone = any_other[opened.origin[first]]
        for k, site in enumerate(found.sites, first):
            here = chosen[k]
            n_alts = record.n_alts + len(record.others)
            other = np.isin(here, record.others) | (lone & (here == n_alts + 1))
            missing = other.any(axis=1, keepdims=True) & (here >= 0)
            known = (here >= 0) & (here <= n_alts)
            chosen[k] = np.where(missing, -1, np.where(known, here == site.allele, here))
    return chosen


def _take_any_other(sites: dict[str, Any], reach: dict[str, np.ndarray]) -> np.ndarray:
    """Take the allele of a gVCF that stands for any other from ALT, where it is the last one.

    Adds `block` to the columns, bool (n_sites,): records that say that there is no variant; and
    `end`, int64 (n_sites,), the last position of each record.

    Returns
    -------
    (n_sites) bool
        Which sites have such an allele.
    """
    found = np.array([alt.endswith(ANY_OTHER) for alt in sites["alt"]], bool)
    for k in np.flatnonzero(found).tolist():
        before, _, last = sites["alt"][k].rpartition(",")
        found[k] = last in ANY_OTHER
        if found[k]:
            sites["alt"][k] = before or "."
    pos = sites["pos"]
    end = pos + np.array([len(ref) for ref in sites["ref"]], np.int64) - 1
    own = end.copy()
    for name, values in reach.items():
        end = np.maximum(end, values if name == REACH[0] else pos + values - 1)
    alone = np.array([alt == UNKNOWN_ALLELE for alt in sites["alt"]], bool)
    sites["block"] = alone & (found | (end > own)) & (pos > 0)
    sites["end"] = np.minimum(end, 2**31)
    return found


def _note_blocks(
    store: Store,
    part: slice,
    origin: np.ndarray,
    sites: dict[str, Any],
    calls: np.ndarray,
    phased: np.ndarray,
    marks: dict[str, np.ndarray],
    policies: np.ndarray,
    filters: CallFilters,
    counts: DecodeCounts,
) -> None:
    """Note where reference blocks say that a sample is homozygous REF, within the limits."""
    from .batches import HAPLOID_POLICIES

    passed = [not filters.failed(name) for name in sites.get("filter", [])]
    block = sites["block"] & (np.array(passed, bool) if passed and not filters.any_filter else True)
    which = np.flatnonzero(block)
    here = calls[which]
    known, alleles = (here >= 0).sum(axis=2), (here > FILL).sum(axis=2)
    both = policies[which] & ~ANY_PLOIDY == HAPLOID_POLICIES.index("diploidize")
    single = (alleles == 1) & (known == 1)
    odd = (alleles > 2) | (here < FILL).any(axis=2) | (single & ~both[:, None])
    counts.odd_block_calls += int(odd.sum())
    is_ref = (known == alleles) & (alleles > 0) & ~odd & (here <= 0).all(axis=2)
    genotypes = np.where(is_ref, 0, -1).astype(np.int8)
    try:
        if BLOCK_DEPTH in store.group:  # the least depth of the block
            least, depth = np.asarray(store.group[BLOCK_DEPTH][part])[origin], marks.get("call_DP")
            if depth is not None and depth.shape == least.shape and least.dtype.kind in "iu":
                stated = (least >= 0).any(axis=1, keepdims=True)
                least = np.where(stated, least, depth)
            marks = marks | {"call_DP": least}
    except FAULTS as error:
        raise damaged(store.path, error) from None
    marks = {name: values for name, values in marks.items() if name not in IMPUTED}
    _limit_calls(genotypes, which, calls, phased, marks, filters, DecodeCounts())
    row, sample = np.nonzero(genotypes == 0)
    if len(row):
        row = which[row]
        chrom = np.array(sites["chrom"], object)[row]
        counts.blocks.append((chrom, sites["pos"][row] - 1, sites["end"][row], sample))


def _needed(filters: CallFilters) -> tuple[bool, ...]:
    """Which arrays of MARKS some limits read; the depth always is."""
    balance = bool(filters.min_allele_balance)
    return not filters.any_filter, bool(filters.min_qual), bool(filters.min_gq), True, balance


def _limit_calls(
    genotypes: np.ndarray,
    kept: np.ndarray,
    calls: np.ndarray,
    phased: np.ndarray,
    marks: dict[str, np.ndarray],
    filters: CallFilters,
    counts: DecodeCounts,
) -> None:
    """Make calls of `genotypes` (n_kept, n_samples) missing by depth, quality and reads."""

    def of(name: str, which: int = 0) -> np.ndarray:
        if name not in marks:
            return np.full(genotypes.shape, np.nan)
        return _numbers(marks[name][kept], which)

    none = np.zeros(genotypes.shape, bool)
    if "call_DP" in marks:
        none = (genotypes == 0) & _is_zero(marks["call_DP"][kept])
    if not filters.limits()[1:].any() and not none.any():
        return
    open_calls = genotypes >= 0
    faults = {"no_depth": none}
    if faults["no_depth"].any():  # not of those that are phased or state GP or DS
        faults["no_depth"] &= ~(phased[kept] & ((calls[kept] > FILL).sum(axis=2) == 2))
        for name in IMPUTED:
            faults["no_depth"] &= np.isnan(of(name))
    if filters.min_dp:
        faults["low_dp"] = of("call_DP") < filters.min_dp
    if filters.max_dp:
        faults["high_dp"] = of("call_DP") > filters.max_dp
    if filters.min_gq:
        faults["low_gq"] = of("call_GQ") < filters.min_gq
    if filters.min_allele_balance:
        ref, alt = of("call_AD"), of("call_AD", 1)
        least = filters.min_allele_balance * (ref + alt)
        faults["unbalanced"] = (genotypes == 1) & (ref + alt > 0) & (np.minimum(ref, alt) < least)
    for name, fault in faults.items():
        fault &= open_calls
        open_calls &= ~fault
        setattr(counts, name, getattr(counts, name) + int(fault.sum()))
    removed = (genotypes >= 0) & ~open_calls
    if not removed.any():
        return
    diploid = removed & ((calls[kept] > FILL).sum(axis=2) == 2)
    n_phased = int((diploid & phased[kept]).sum())
    counts.phased -= n_phased
    counts.unphased -= int(diploid.sum()) - n_phased
    counts.missing += int(removed.sum())
    counts.sites_with_removed_calls += int(removed.any(axis=1).sum())
    counts.add_removed(removed.sum(axis=0, dtype=np.int64))
    varied = (genotypes > 0).any(axis=1)
    genotypes[removed] = -1
    counts.made_reference += int((varied & _ref_alone(genotypes)).sum())


def _numbers(values: np.ndarray, which: int) -> np.ndarray:
    """Number `which` of each call's field, NaN if there is none: float64 (n_sites, n_samples).

    `values` : (n_sites, n_samples) or (n_sites, n_samples, n_numbers), of numbers or of text, by
    Number and Type of the field in the VCF's header.
    """
    values = values[:, :, None] if values.ndim == 2 else values
    if values.dtype.kind in "biuf":
        if which >= values.shape[2]:
            return np.full(values.shape[:2], np.nan)
        numbers = values[:, :, which].astype(np.float64)
        return np.where(numbers < 0, np.nan, numbers)
    texts = [",".join(filter(None, map(str, call))) for row in values.tolist() for call in row]
    known = {text: _number(text, which) for text in set(texts)}
    return np.array([known[text] for text in texts], np.float64).reshape(values.shape[:2])


def _is_zero(values: np.ndarray) -> np.ndarray:
    """Whether the first number of each call's field is 0: bool (n_sites, n_samples)."""
    if values.dtype.kind in "biuf":
        return values == 0 if values.ndim == 2 else (values[:, :, :1] == 0).any(axis=2)
    return _numbers(values, 0) == 0


def _number(text: str, which: int) -> float:
    """Number `which` of a text between commas, NaN if there is none."""
    part = (text.split(",") + [""] * which)[which]
    found = NUMBER.match(part)
    return float(found[0]) if found else np.nan


def _ref_alone(genotypes: np.ndarray) -> np.ndarray:
    return (genotypes == 0).any(axis=1) & (genotypes <= 0).all(axis=1)


def _sites(
    store: Store,
    start: int,
    contig: np.ndarray,
    pos: np.ndarray,
    site_id: np.ndarray,
    alleles: np.ndarray,
) -> dict[str, Any]:
    """Return the columns chrom, pos, id, ref and alt of some sites; several ALT have commas.

    Raises
    ------
    UserError
        A contig is not one of the store's, a position is out of range, or an ID cannot be written.
    """
    if wrong := np.flatnonzero((contig < 0) | (contig >= len(store.contigs))).tolist():
        raise _strange(store, start + wrong[0], f"the contig number {contig[wrong[0]]}")
    if not _agrees(store, start, contig):
        raise damaged(
            store.path,
            ValueError(f"variant_contig is not what region_index says from site {start + 1} on"),
        )
    pos = pos.astype(np.int64)
    if wrong := np.flatnonzero((pos < 0) | (pos >= 2**31)).tolist():
        raise _strange(store, start + wrong[0], f"the position {pos[wrong[0]]}")
    ids = [name or "." for name in texts(site_id)]
    if unusable_name("".join(ids)):
        row = next(k for k, name in enumerate(ids) if unusable_name(name))
        raise _strange(store, start + row, f"the identifier {show(ids[row])}")
    ref, *others = map(texts, alleles.T)
    if "" in ref:
        raise _strange(store, start + ref.index(""), "an empty REF")
    alt = others[0] if others else [""] * len(ref)
    for column in others[1:]:
        alt = [f"{a},{b}" if b not in ("", ".") else a for a, b in zip(alt, column, strict=True)]
    return {
        "chrom": [store.contigs[k] for k in contig.tolist()],
        "pos": pos,
        "id": ids,
        "ref": ref,
        "alt": [a or "." for a in alt],
    }


def _agrees(store: Store, start: int, contig: np.ndarray) -> bool:
    """Whether a read has as many sites of each contig as the store's index says, if it has one."""
    noted: Counter[int] = Counter()
    for number, n_sites in store.index[store.index[:, 0] == start // store.n_rows, 1:].tolist():
        noted[number] += n_sites
    return not noted or noted == Counter(contig.tolist())


def _strange(store: Store, index: int, what: str) -> UserError:
    return UserError(
        f"{store.path}, site {index + 1}: {what} is not valid; write the store again with bio2zarr "
        "(vcf2zarr convert)."
    )
