"""Decode a cohort once, whatever its format, to .bed, .bim and .fam of biallelic SNPs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import (
    atomic_path,
    beside,
    content_key,
    write_json,
)
from ..io.batches import (
    DecodeCounts,
    LeftOut,
    SiteBatch,
    for_file,
    is_haploid,
    is_layered,
    not_vcf_text,
    only_haploid,
    ploidies_in,
)
from ..io.call_filters import CallFilters
from ..io.eigenstrat import stream_eigenstrat
from ..io.formats import (
    EIGENSTRAT,
    PGEN,
    PLINK,
    ZARR,
    find_format,
    read_contig_lengths,
    read_file_samples,
    remarks_on,
)
from ..io.genotypes import BED_MAGIC, bed_row_bytes, take_samples
from ..io.layers import columns_of, layers_each, most_layers
from ..io.listed_rows import LEAST_LISTED, RowsFile, write_again
from ..io.plink import stream_plink
from ..io.remote import Remote, located
from ..io.vcf import stream_sites
from .absent import GENOME, REFERENCE_ONLY
from .callable import BLOCKS, DROPPED, Callable
from .contigs import Spellings
from .raw_sites import RawRows, drop_late_duplicates, keep_sites, write_sites
from .reference_check import ReferenceVerdict, reference_only, turn_to_genome
from .sources import files_within, names_key, require_same_samples, source_files, stamp_of

logger = logging.getLogger("popdesic")

#: Contigs without sites of which the length is kept, the longest ones: chromosomes, not scaffolds.
MOST_LENGTHS = 200
FAM_SEX = {"M": "1", "F": "2", "NA": "0", "": "0", "1": "1", "2": "2", "0": "0"}


@dataclass
class IngestCounts:
    """Counts of a cohort's decoded files.

    `decode` counts the records read. Of its kept sites, `duplicates` repeated the
    chrom:pos:ref:alt of an earlier one and were dropped; `sites` remain. `remarks` are sentences
    for the log.
    """

    samples: int
    sites: int
    duplicates: int
    decode: DecodeCounts
    remarks: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, int]:
        """Return all counts by name."""
        return self.decode.as_dict() | {
            "duplicates": self.duplicates,
            "sites": self.sites,
            "samples": self.samples,
        }


@dataclass
class _Source:
    """One file (or PLINK prefix) of a cohort."""

    path: Path | Remote
    samples: list[str]
    sexes: list[str]
    batches: Iterator[SiteBatch]


def ingest_cohort(
    sources: Path | Remote | str | Sequence[Path | Remote | str],
    out_prefix: Path | str,
    *,
    haploid: str | Mapping[str, str] = "error",
    filters: CallFilters = CallFilters(),  # noqa: B008 (frozen)
    sexes: dict[str, str] | None = None,
    listed: str | None = None,
    excluded: Collection[str] = (),
    excluded_contigs: Collection[str] = (),
    fasta: Path | None = None,
    ploidy: Mapping[str, int] | None = None,
    threads: int = 1,
) -> IngestCounts:
    """Decode a cohort's files to {out_prefix}.bed, .bim, .fam and .json, all written atomically.

    Sites keep the order of the files. Of sites with the same chrom:pos:ref:alt the first is
    kept, even across files; sites that share only their position stay distinct.

    Parameters
    ----------
    sources : Path, or several in reading order
        VCF (plain, gzip, bgzip), BCF, VCF-Zarr, or a prefix of PLINK 1 or 2 or EIGENSTRAT files,
        with or without '.bed', '.pgen' or '.geno'. Several must have the same samples in the same
        order.
    haploid : {'error', 'diploidize', 'missing'}, or a mapping of contigs to them
        How to read a call of one allele; files of a prefix have none. Or the policy of a study of
        haploids or polyploids (`io.batches`); those have a column for each layer (`io.layers`).
    filters : CallFilters
        Records and calls that are not read for what the files say about them.
    sexes : dict, optional
        Sample name to M, F, NA (or 1, 2, 0). Other samples get the sex from the first .fam,
        .psam or .ind that states it, else 0.
    listed : str, optional
        `names_key` of the samples listed in the sheet; the files must have exactly these.
    excluded : names, optional
        Samples to leave out.
    excluded_contigs : names, optional
        Contigs that never enter the panel. A call of another ploidy is missing there, and stops
        nothing; so is one of the samples to leave out.
    fasta : Path, optional
        Genome to whose bases and strand REF is turned (`reference_check.turn_to_genome`).
    ploidy : dict, optional
        Of each sample, where the study has several.

    Raises
    ------
    UserError
        A source is invalid or changes while it is read, sources differ in their samples, the
        samples are not the listed ones, or no site is left.
    """
    one = isinstance(sources, str | Path | Remote)
    paths = [located(path) for path in ([sources] if one else sources)]
    files = files_within(f for path in paths for f in source_files(path))
    before = _sizes_and_dates(files)
    decode = DecodeCounts()
    left_out = LeftOut(frozenset(excluded), frozenset(excluded_contigs))
    opened = [_open(path, decode, haploid, filters, left_out, threads, ploidy) for path in paths]
    samples = opened[0].samples
    for other in opened[1:]:
        require_same_samples(paths[0], samples, other.path, other.samples)
    if listed not in (None, names_key(samples)):
        raise UserError(
            f"{paths[0]} does not have the samples that the sheet lists for its cohort: it was "
            "replaced after the run was planned; run again."
        )
    own_sexes = [
        next((code for code in codes if code in ("1", "2")), "0")
        for codes in zip(*(source.sexes for source in opened), strict=True)
    ]
    kept = np.array([k for k, name in enumerate(samples) if name not in excluded], np.int64)
    fam = _fam_text([samples[k] for k in kept], [own_sexes[k] for k in kept], sexes or {})
    kinds, _ = ploidies_in(haploid)
    layers = most_layers(kinds)
    if layers > 1:
        sizes = [layers] * len(kept)
        if len(kinds) > 1:
            sizes = layers_each([(ploidy or {}).get(samples[k], 2) for k in kept], kinds).tolist()
        rows_of = list(zip(fam.splitlines(keepends=True), sizes, strict=True))
        fam = "".join(
            f"{'-' * (k >= size)}{k + 1}{row[1:]}" for k in range(layers) for row, size in rows_of
        )
    n_columns = layers * len(kept)
    with ExitStack() as stack:
        bed_path, bim_path, fam_path = (
            stack.enter_context(atomic_path(beside(out_prefix, end)))
            for end in (".bed", ".bim", ".fam")
        )
        fam_path.write_text(fam, "utf-8")
        spellings = Spellings()
        batches = (
            spellings.of_batch(batch, source.path) for source in opened for batch in source.batches
        )
        only = ReferenceOnly()
        batches = map(only.count, batches)
        if len(kept) < len(samples):
            columns = columns_of(kept, len(samples), layers)
            batches = (replace(b, rows=take_samples(b.rows, columns)) for b in batches)
        reach: dict[str, int] = {}
        batches = _noting_reach(batches, reach)
        whole = len(paths) == 1 and len(kept) == len(samples) and fasta is None
        # Rows are turned to the genome in place, and listed afterwards.
        file = stack.enter_context(RowsFile(bed_path, n_columns, lists=fasta is None))
        rows = RawRows(file, bed_path, opened[0].path if whole else None, bed_row_bytes(n_columns))
        in_order, n_sites = write_sites(batches, rows, bim_path)
        rows.close(named=in_order)
        if not in_order:
            n_sites = drop_late_duplicates(bed_path, bim_path, n_columns)
        if n_sites == 0:
            raise _no_sites(paths, decode)
        repeated, turned = decode.sites - n_sites, None
        if fasta is not None:
            turned, n_sites = _turn(bed_path, bim_path, n_columns, fasta)
            repeated += len(turned.kept) - n_sites - turned.counts["neither"]
            decode.dropped_at += turned.dropped()
            only.sites += turned.reference_only
        after = _sizes_and_dates(files, anew=True)
        if changed := [f for f, a, b in zip(files, before, after, strict=True) if a != b]:
            raise UserError(f"{changed[0]} was changed while it was read; run again.")
    remarks = _remarks_on_counts(decode, filters.classes) + spellings.sentences()
    if is_haploid(haploid) and (pairs := decode.phased + decode.unphased):
        remarks.append(
            f"{pairs} calls of two equal alleles (such as 1/1) were read as one allele, because "
            "ploidy is 1 in the sample sheet."
        )
    if turned is not None:
        remarks += turned.remarks(fasta)
        if turned.warning:
            logger.warning(turned.warning)
    remarks += [remark for path in paths for remark in remarks_on(path)]
    removed = decode.removed[kept] if len(decode.removed) else np.zeros(len(kept), np.int64)
    known = {BLOCKS: _block_intervals(decode, kept), DROPPED: _dropped_intervals(decode)}
    for end, intervals in known.items():
        if intervals is not None:
            intervals.save(beside(out_prefix, end))
        else:
            beside(out_prefix, end).unlink(missing_ok=True)
    counts = IngestCounts(len(kept), n_sites, repeated, decode, remarks)
    write_about(
        out_prefix,
        {
            "source": ", ".join(path.name for path in paths),
            "source_bytes": sum(stamp[0] for stamp in after if stamp),
            "haploid": haploid,
            "contigs": _contigs(paths, reach, spellings.other),
            # A site whose ALT calls a limit removed was listed because it varies.
            REFERENCE_ONLY: max(0, only.sites - decode.made_reference),
            "removed_calls": {samples[k]: int(n) for k, n in zip(kept, removed, strict=True) if n},
            "counts": counts.as_dict(),
        }
        | _about(turned, fasta),
    )
    return counts


def _turn(
    bed_path: Path, bim_path: Path, n_samples: int, fasta: Path
) -> tuple[ReferenceVerdict, int]:
    """`turn_to_genome`, then drop sites without its base or repeated; sites that remain."""
    turned = turn_to_genome(bed_path, bim_path, n_samples, fasta)
    n_sites = keep_sites(bed_path, bim_path, n_samples, turned.kept)
    if n_sites == 0:
        raise UserError(
            f"no site has an allele of {fasta} (qc.fasta); give the genome of these data."
        )
    if turned.changed:
        n_sites = drop_late_duplicates(bed_path, bim_path, n_samples)
    if n_sites * bed_row_bytes(n_samples) >= LEAST_LISTED:
        rows = np.memmap(bed_path, np.uint8, "r", len(BED_MAGIC)).reshape(n_sites, -1)
        write_again(bed_path, rows, np.arange(n_sites), n_samples)
    return turned, n_sites


def _about(turned: ReferenceVerdict | None, fasta: Path | None) -> dict:
    """What raw.json says of the genome."""
    if turned is None or fasta is None:
        return {}
    about = {"fasta": fasta.name, "in_doubt": turned.in_doubt, "counts": turned.counts}
    return {GENOME: about}


def _open(
    path: Path | Remote,
    decode: DecodeCounts,
    haploid: str | Mapping[str, str],
    filters: CallFilters,
    left_out: LeftOut,
    threads: int,
    ploidy: Mapping[str, int] | None,
) -> _Source:
    """Open a source: its samples, and a lazy iterator over its sites, which adds to `decode`."""
    samples, sexes = read_file_samples(path)
    kind, place = find_format(path)
    if kind in (PLINK, PGEN, EIGENSTRAT) and is_layered(haploid):
        raise not_vcf_text(path, haploid)
    own = for_file(haploid, samples, ploidy)
    batches: Iterator[SiteBatch]
    if kind == PLINK:
        batches = stream_plink(place, decode, filters)
    elif kind == PGEN:
        from ..io.pgen import stream_pgen

        batches = stream_pgen(place, decode, filters)
    elif kind == EIGENSTRAT:
        batches = stream_eigenstrat(place, decode)
    elif kind == ZARR:
        from ..io.vcf_zarr import stream_zarr

        batches = stream_zarr(
            place, decode, haploid=own, filters=filters, left_out=left_out, threads=threads
        )
    else:
        batches = stream_sites(
            place,
            haploid=own,
            filters=filters,
            left_out=left_out,
            counts=decode,
            threads=threads,
        )
    if is_haploid(haploid):
        batches = only_haploid(batches, path, samples, left_out)
    return _Source(path, samples, sexes, batches)


def _noting_reach(batches: Iterator[SiteBatch], reach: dict[str, int]) -> Iterator[SiteBatch]:
    """Yield the batches, and note the largest position of each contig."""
    for batch in batches:
        pos, first = np.asarray(batch.pos, np.int64), 0
        for name, same in groupby(batch.chrom):
            last = first + sum(1 for _ in same)
            reach[name] = max(reach.get(name, 0), int(pos[first:last].max()))
            first = last
        yield batch


def _contigs(
    paths: Sequence[Path], reach: dict[str, int], used: Mapping[str, str]
) -> dict[str, tuple[int, int]]:
    """Largest position of a site (0: none) and length in a header (0: none) of each contig.

    Of contigs without sites the MOST_LENGTHS longest. `used`: `Spellings.other`.
    """
    lengths: dict[str, int] = {}
    for path in paths:
        for name, length in read_contig_lengths(path).items():
            lengths.setdefault(used.get(name, name), length)
    others = sorted((name for name in lengths if name not in reach), key=lambda n: -lengths[n])
    return {
        name: (reach.get(name, 0), lengths.get(name, 0))
        for name in [*reach, *others[:MOST_LENGTHS]]
    }


def _remarks_on_counts(decode: DecodeCounts, classes: Collection[str]) -> list[str]:
    """Sentences about records and calls that were not read for what the file says about them."""
    remarks = []
    if decode.filtered:
        remarks.append(decode.filter_sentence())
    if decode.no_depth:
        remarks.append(
            f"{decode.no_depth} calls 0/0 with a depth (DP) of 0 were set to missing: no read "
            "supports them, and they are not imputed (phased, or with GP or DS)."
        )
    if decode.no_length:
        remarks.append(
            f"{len(decode.no_length)} records have a structural variant with neither SVLEN nor END "
            f"in INFO, which is left out; the first is at {decode.no_length[0]}."
        )
    if "multiallelic" in classes and decode.multiallelic:
        remarks.append(
            f"{decode.multiallelic} records with several ALT give no site: none of them is of a "
            "class in sites.classes, or the file is PLINK's, which is not split; give its VCF."
        )
    if "sv" in classes and decode.symbolic > len(decode.no_length):
        remarks.append(
            f"{decode.symbolic - len(decode.no_length)} records with breakends or other ALT that "
            "are no bases are left out: sites.classes reads structural variants with a length."
        )
    if decode.odd_block_calls:
        remarks.append(
            f"{decode.odd_block_calls} calls in reference blocks of a gVCF have one allele or more "
            "than two, so sites within these blocks are missing in their samples; contigs.haploid "
            "= diploidize reads those of one allele."
        )
    return remarks


def _block_intervals(decode: DecodeCounts, kept: np.ndarray) -> Callable | None:
    """Where reference blocks of a gVCF say that the `kept` samples are homozygous REF."""
    if not decode.blocks:
        return None
    chrom, start, end, sample = (np.concatenate(part) for part in zip(*decode.blocks, strict=True))
    wanted = np.isin(sample, kept)
    number = np.searchsorted(kept, sample[wanted])
    return Callable(chrom[wanted], start[wanted], end[wanted], number)


def _dropped_intervals(decode: DecodeCounts) -> Callable | None:
    """Where dropped records lie: nothing is known of a biallelic SNP there."""
    if not decode.dropped_at:
        return None
    chrom = [name for name, starts, _ in decode.dropped_at for _ in range(len(starts))]
    starts, ends = (np.concatenate([one[k] for one in decode.dropped_at]) for k in (1, 2))
    return Callable(chrom, starts, ends)


def _sizes_and_dates(files: Iterable[Path | str], *, anew: bool = False) -> list[tuple | None]:
    """Return `stamp_of` files; None for a missing one."""
    found: list[tuple | None] = []
    for file in files:
        try:
            found.append(stamp_of(file, anew=anew))
        except OSError:  # the reader reports it
            found.append(None)
    return found


def _fam_text(samples: list[str], own_sexes: list[str], sexes: dict[str, str]) -> str:
    lines = []
    for sample, own in zip(samples, own_sexes, strict=True):
        sex = str(sexes.get(sample, own if own in ("1", "2") else "0"))
        if sex not in FAM_SEX:
            raise UserError(
                f"Sample {sample!r} has the sex {sex!r}; write M, F or NA in the sample sheet."
            )
        lines.append(f"0\t{sample}\t0\t0\t{FAM_SEX[sex]}\t-9\n")
    return "".join(lines)


class ReferenceOnly:
    """Counts sites at which all called genotypes are homozygous REF; of variant sites none is."""

    def __init__(self) -> None:
        self.sites = 0

    def count(self, batch: SiteBatch) -> SiteBatch:
        """Count those of a batch; returns the batch."""
        self.sites += int(reference_only(batch.rows, batch.n_samples).sum())
        return batch


def _no_sites(sources: Sequence[Path], decode: DecodeCounts) -> UserError:
    one = len(sources) == 1
    shown = str(sources[0]) if one else f"{sources[0]} and {len(sources) - 1} more"
    if decode.records == 0:
        verb = "has" if one else "have"
        return UserError(f"{shown} {verb} no records; give a file with genotypes.")
    dropped = ", ".join(f"{name} {number}" for name, number in decode.dropped().items())
    return UserError(
        f"{shown}: none of {'its' if one else 'their'} {decode.records} records is a biallelic SNP "
        f"(dropped: {dropped}); give a file with SNPs."
    )


def write_about(prefix: Path | str, about: dict) -> None:
    """Write `raw.json` of decoded files, with their checksums: if it exists, they are whole."""
    paths = {end: beside(prefix, end) for end in (".bed", ".bim", ".fam", BLOCKS, DROPPED)}
    files = {end: content_key(path) for end, path in paths.items() if path.is_file()}
    write_json(beside(prefix, ".json"), about | {"files": files})
