"""The first records of a file, decoded as `ingest` does, so that mistakes show before any job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..io.batches import DecodeCounts, SiteBatch
from ..io.call_filters import CallFilters
from ..io.errors import UserError
from ..io.formats import PGEN, PLINK, ZARR, find_format


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
    """Counts of a file's first records, up to about 2 MB, and whether they are all it has."""

    counts: DecodeCounts
    whole: bool


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
    counts = _FirstPiece()
    stream = _open(source, counts, haploid, filters)
    try:
        next(stream, None)
        whole = next(stream, None) is None
    except _EnoughError:
        whole = False
    finally:
        stream.close()
    return FirstRecords(counts, whole)


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


def remarks_on_records(
    source: Path | str,
    haploid: str | Mapping[str, str],
    alone: bool,
    min_called: int,
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
) -> list[str]:
    """Possible mistakes that the first records of a file show.

    Parameters
    ----------
    alone : bool
        Whether the file is the only one of its cohort.
    min_called : int
        `distance.min_called`.

    Raises
    ------
    UserError
        As `first_records`; or the file has no biallelic SNP, and its cohort no other file.
    """
    found = first_records(source, haploid, filters)
    counts = found.counts
    dropped = ", ".join(f"{name} {number}" for name, number in counts.dropped().items())
    remarks = []
    if counts.filtered:
        names = ", ".join(f"{name} {number}" for name, number in sorted(counts.filters.items()))
        remarks.append(
            f"{source}: {counts.filtered} of {'its' if found.whole else 'the first'} "
            f"{counts.records} records are dropped, because their FILTER is not PASS ({names}); "
            "ingest.filter names those to accept."
        )
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
            f"({min_called}), so none of its samples can be compared; give more sites, or lower "
            "distance.min_called.",
        ]
    return remarks
