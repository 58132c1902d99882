"""The first records of a file, decoded as `ingest` does, so that mistakes show before any job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.batches import (
    CHUNK_BYTES,
    DecodeCounts,
    LeftOut,
    SiteBatch,
    for_file,
    is_haploid,
    is_layered,
    many_failed,
    not_vcf_text,
    only_haploid,
)
from ..io.call_filters import CallFilters
from ..io.formats import (
    BGEN,
    EIGENSTRAT,
    PGEN,
    PLINK,
    ZARR,
    find_format,
    read_sample_names,
    remarks_on,
)
from .absent import MAX_ABSENT, MAX_REFERENCE_ONLY, MIN_SITES, measure_lack, refuse_lack
from .callable import read_bed
from .contigs import Spellings
from .match import SitePositions

#: Larger masks are read by jobs alone: this takes about a second.
MAX_MASK_BYTES = 20_000_000
#: Bytes decoded of all files of a study together, and the least of each, however many there are.
ALL_BYTES, LEAST_BYTES = 64 << 20, 64 << 10


class _EnoughError(Exception):
    """A first piece of the file was decoded."""


class _FirstPiece(DecodeCounts):
    """Counts that end the decoding when a second piece with records is counted."""

    def add(self, values) -> None:
        values = list(values)
        if self.records and values[0]:
            raise _EnoughError
        super().add(values)


@dataclass(frozen=True)
class FirstRecords:
    """Counts of the first records of a file, or of several, and whether they are all there is.

    `batch` holds those that are read: SNPs; None if there are none.
    """

    counts: DecodeCounts
    whole: bool
    batch: SiteBatch | None = None

    @property
    def variants_only(self) -> bool:
        """Whether they show a file of variant sites alone: no gVCF, hardly any site without ALT."""
        batch = self.batch
        if (
            batch is None
            or len(batch.pos) < MIN_SITES
            or self.counts.symbolic > len(batch.pos) / 10
        ):
            return False
        varied = (batch.genotypes > 0).any(axis=1)
        return int((~varied).sum()) - self.counts.made_reference <= MAX_REFERENCE_ONLY * len(varied)


def first_records(
    source: Path | str,
    haploid: str | Mapping[str, str] = "error",
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    n_bytes: int = CHUNK_BYTES,
    left_out: LeftOut = LeftOut(),  # noqa: B008 (a tuple)
    ploidy: Mapping[str, int] | None = None,
) -> FirstRecords:
    """Decode the first records of a source, in any format.

    Parameters
    ----------
    haploid, filters, ploidy
        As `ingest.ingest_cohort` takes them.
    n_bytes : int
        About as much text, or rows of PLINK 1 or EIGENSTRAT files, is decoded; of others a chunk.
    left_out : LeftOut
        Samples and contigs of which a call of another ploidy is no error.

    Raises
    ------
    UserError
        One of them cannot be read: a haploid or polyploid call, no GT, and the like.
    """
    counts, batch = _FirstPiece(), None
    if ploidy is not None:
        haploid = for_file(haploid, read_sample_names(source), ploidy)
    stream = _open(source, counts, haploid, filters, n_bytes, left_out)
    if is_haploid(haploid):
        stream = only_haploid(stream, source, read_sample_names(source), left_out)
    try:
        batch = next(stream, None)
        whole = next(stream, None) is None
    except _EnoughError:
        whole = False
    finally:
        stream.close()
    return FirstRecords(counts, whole, batch)


def bytes_each(n_files: int) -> int:
    """Bytes of each file's first records, so that many files take no longer than a few."""
    return max(LEAST_BYTES, min(CHUNK_BYTES, ALL_BYTES // max(n_files, 1)))


def join_records(sources: Sequence[Path | str], found: Sequence[FirstRecords]) -> FirstRecords:
    """The first records of a cohort's files as those of one file, in their order.

    Raises
    ------
    UserError
        The files spell a chromosome in different ways (`contigs.Spellings`).
    """
    counts, batches, spellings = DecodeCounts(), [], Spellings()
    for source, one in zip(sources, found, strict=True):
        counts.merge(one.counts)
        if one.batch is not None:
            batches.append(spellings.of_batch(one.batch, source))
    batch = None
    if batches:
        names = {
            name: [value for one in batches for value in getattr(one, name)]
            for name in ("chrom", "id", "ref", "alt")
        }
        arrays = {
            name: np.concatenate([getattr(one, name) for one in batches])
            for name in ("pos", "rows", "line")
        }
        batch = SiteBatch(**names, **arrays, n_samples=batches[0].n_samples)
    return FirstRecords(counts, all(one.whole for one in found), batch)


def _open(
    source, counts: DecodeCounts, haploid, filters: CallFilters, n_bytes: int, left_out: LeftOut
) -> Iterator[SiteBatch]:
    kind, place = find_format(source)
    if kind in (PLINK, PGEN, EIGENSTRAT) and is_layered(haploid):
        raise not_vcf_text(source, haploid)
    if kind == PLINK:
        from ..io.plink import stream_plink

        return stream_plink(place, counts, filters, _chunk_bytes=n_bytes)
    if kind == PGEN:
        from ..io.pgen import stream_pgen

        return stream_pgen(place, counts, filters)
    if kind == EIGENSTRAT:
        from ..io.eigenstrat import stream_eigenstrat

        return stream_eigenstrat(place, counts, _chunk_bytes=n_bytes)
    if kind == ZARR:
        from ..io.vcf_zarr import stream_zarr

        return stream_zarr(place, counts, haploid=haploid, filters=filters, left_out=left_out)
    from ..io.vcf import stream_sites

    return stream_sites(
        place,
        haploid=haploid,
        filters=filters,
        left_out=left_out,
        counts=counts,
        _chunk_bytes=n_bytes,
    )


def refuse_variants_only(
    first: Mapping[str, FirstRecords], silent: Collection[str], founders: Sequence[str]
) -> None:
    """Stop before any job where first records already show what `absent.refuse_lack` refuses.

    Parameters
    ----------
    first : mapping
        First records of cohorts.
    silent : names
        Cohorts of which the sheet says nothing about absent sites.
    founders : names

    Raises
    ------
    UserError
        A file lists variant sites alone and lacks sites of a founder between its own.
    """
    for cohort in silent:
        found = first[cohort]
        others = [name for name in founders if name != cohort]
        if not others or not found.variants_only or not _in_order(found.batch):
            continue
        table = _sites_of(found.batch)
        places = SitePositions()
        known = places.of(table)
        for other in others:
            batch = first[other].batch
            if batch is None:
                continue
            sites = _sites_of(batch)
            genotypes = batch.genotypes
            called = (genotypes >= 0).sum(axis=1)
            alleles = np.where(genotypes > 0, genotypes, 0).sum(axis=1)
            rate = np.where(called > 0, alleles / np.maximum(2 * called, 1), np.nan)
            lack = measure_lack(table, sites, np.isin(places.of(sites), known), rate)
            if lack.wanted >= MIN_SITES / 2 and lack.matters:
                shown = f"founder {other} among the first records"
                refuse_lack(cohort, lack, shown, len(known), variants_only=True)


def remark_on_mask(source: Path | str, found: FirstRecords, mask: Path, shown: str) -> list[str]:
    """Whether the first records of a file of variant sites alone lie outside the cohort's mask.

    The panel's job decides (`absent.refuse_outside`): the beginning of a genome may be special.

    Parameters
    ----------
    mask : Path
        BED file. One of more than `MAX_MASK_BYTES` is not read.
    shown : str
        How the sheet writes it.
    """
    if not found.variants_only or mask.stat().st_size > MAX_MASK_BYTES:
        return []
    sites = _sites_of(found.batch)
    covered = read_bed(mask, "callable").covers(sites.chrom.to_numpy(object), sites.pos.to_numpy())
    outside = int((~covered).sum())
    if outside <= MAX_ABSENT * len(sites):
        return []
    one = sites[~covered].iloc[0]
    return [
        f"{source} lists variant sites only, and {outside} of the first {len(sites)} lie outside "
        f"the cohort's mask {shown} (such as {one.chrom}:{one.pos}), where sites that it does not "
        "list are unknown; name the mask of all that was called, or cut the file to the mask "
        f"(bcftools view -T {shown})."
    ]


def _in_order(batch: SiteBatch) -> bool:
    """Whether positions never decrease within a contig, so that none is listed later."""
    contig = np.array(batch.chrom, object)
    return bool(((np.diff(batch.pos) >= 0) | (contig[1:] != contig[:-1])).all())


def _sites_of(batch: SiteBatch) -> pd.DataFrame:
    return pd.DataFrame({"chrom": batch.chrom, "pos": batch.pos})


def remarks_on_records(
    sources: Sequence[Path | str], found: Sequence[FirstRecords], min_called: int
) -> list[str]:
    """Possible mistakes that the first records of a cohort's files show.

    Parameters
    ----------
    found : sequence of FirstRecords
        Of each source.
    min_called : int
        `distance.min_called`.

    Raises
    ------
    UserError
        No file has a biallelic SNP.
    """
    remarks = next((remarks_on(one) for one in sources if find_format(one).kind == BGEN), [])
    failed = [k for k, one in enumerate(found) if one.counts.filtered]
    counts, whole = _counts_of(found, failed)
    every, _ = _counts_of(found, range(len(found)))
    if many_failed(every.filtered, every.sites):  # as the page warns of the whole files
        sentence = counts.filter_sentence(_which(failed, whole))
        remarks.append(f"{_named(sources, failed)}: {sentence}")
    empty = [k for k, one in enumerate(found) if not one.counts.sites]
    _, whole = _counts_of(found, range(len(found)))
    for none in (
        [k for k in empty if found[k].counts.records],
        [k for k in empty if not found[k].counts.records],
    ):
        if not none:
            continue
        counts, all_of_them = _counts_of(found, none)
        dropped = ", ".join(f"{name} {number}" for name, number in counts.dropped().items())
        sentence = f"{_named(sources, none)} {'has' if len(none) == 1 else 'have'} no records"
        if counts.records:
            sentence = (
                f"{_named(sources, none)}: none of {_which(none, all_of_them)}{counts.records} "
                f"records is a biallelic SNP (dropped: {dropped})"
            )
        if whole and len(empty) == len(found):
            raise UserError(f"{sentence}; give a file with SNPs.")
        remarks.append(f"{sentence}; only SNPs are read.")
    n_snps = sum(one.counts.sites for one in found)
    if whole and 0 < n_snps < min_called:
        every = range(len(found))
        remarks.append(
            f"{_named(sources, every)} {'has' if len(found) == 1 else 'have'} {n_snps} biallelic "
            f"SNPs, fewer than distance.min_called ({min_called}): on a panel of more sites none "
            "of its samples can be compared, and on a smaller one distances are coarse; give more "
            "sites, or lower distance.min_called."
        )
    return remarks


def _counts_of(found: Sequence[FirstRecords], chosen: Collection[int]) -> tuple[DecodeCounts, bool]:
    """Counts of some files together, and whether all their records were read."""
    counts = DecodeCounts()
    for k in chosen:
        counts.merge(found[k].counts)
    return counts, all(found[k].whole for k in chosen)


def _which(chosen: Collection[int], whole: bool) -> str:
    """Which records of some files were counted: the begin of their number."""
    return ("its " if len(chosen) == 1 else "their ") if whole else "the first "


def _named(sources: Sequence[Path | str], chosen: Sequence[int]) -> str:
    more = f" and {len(chosen) - 1} more of the cohort's files" if len(chosen) > 1 else ""
    return f"{sources[chosen[0]]}{more}"
