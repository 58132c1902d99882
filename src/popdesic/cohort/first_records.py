"""The first records of a file, decoded as `ingest` does, so that mistakes show before any job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..io.batches import DecodeCounts, SiteBatch
from ..io.call_filters import CallFilters
from ..io.errors import UserError
from ..io.formats import PGEN, PLINK, ZARR, find_format
from .absent import MAX_ABSENT, MAX_REFERENCE_ONLY, MIN_SITES, measure_lack, refuse_lack
from .callable import read_bed
from .match import Places

#: Larger masks are read by jobs alone: this takes about a second.
MAX_MASK_BYTES = 20_000_000


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
    """Counts of a file's first records, up to about 2 MB, and whether they are all it has.

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
) -> FirstRecords:
    """Decode the first records of a source, in any format.

    Parameters
    ----------
    haploid, filters
        As `ingest.ingest_cohort` takes them.

    Raises
    ------
    UserError
        One of them cannot be read: a haploid or polyploid call, no GT, and the like.
    """
    counts, batch = _FirstPiece(), None
    stream = _open(source, counts, haploid, filters)
    try:
        batch = next(stream, None)
        whole = next(stream, None) is None
    except _EnoughError:
        whole = False
    finally:
        stream.close()
    return FirstRecords(counts, whole, batch)


def _open(source, counts: DecodeCounts, haploid, filters: CallFilters) -> Iterator[SiteBatch]:
    kind, place = find_format(source)
    if kind == PLINK:
        from ..io.plink import stream_plink

        return stream_plink(place, counts)
    if kind == PGEN:
        from ..io.pgen import stream_pgen

        return stream_pgen(place, counts, filters)
    if kind == ZARR:
        from ..io.vcf_zarr import stream_zarr

        return stream_zarr(place, counts, haploid=haploid, filters=filters, threads=1)
    from ..io.vcf import stream_sites

    return stream_sites(place, haploid=haploid, filters=filters, counts=counts)


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
        places = Places()
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
    source: Path | str,
    haploid: str | Mapping[str, str],
    alone: bool,
    min_called: int,
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    found: FirstRecords | None = None,
) -> list[str]:
    """Possible mistakes that the first records of a file show.

    Parameters
    ----------
    alone : bool
        Whether the file is the only one of its cohort.
    min_called : int
        `distance.min_called`.
    found : FirstRecords, optional
        If they were read before.

    Raises
    ------
    UserError
        As `first_records`; or the file has no biallelic SNP, and its cohort no other file.
    """
    found = found or first_records(source, haploid, filters)
    counts = found.counts
    dropped = ", ".join(f"{name} {number}" for name, number in counts.dropped().items())
    remarks = []
    if counts.filtered:
        which = "its " if found.whole else "the first "
        remarks.append(f"{source}: {counts.filter_sentence(which)}")
    if not counts.snps:
        none = (
            "has no records"
            if not counts.records
            else (
                f"none of {'its' if found.whole else 'the first'} {counts.records} records is a "
                f"biallelic SNP (dropped: {dropped})"
            )
        )
        sentence = f"{source}: {none}" if counts.records else f"{source} {none}"
        if found.whole and alone:
            raise UserError(f"{sentence}; give a file with SNPs.")
        return [*remarks, f"{sentence}; only SNPs are read."]
    if found.whole and alone and counts.snps < min_called:
        return [
            *remarks,
            f"{source} has {counts.snps} biallelic SNPs, fewer than distance.min_called "
            f"({min_called}): on a panel of more sites none of its samples can be compared, and on "
            "a smaller one distances are coarse; give more sites, or lower distance.min_called.",
        ]
    return remarks
