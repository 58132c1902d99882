"""Decode a cohort once, whatever its format, to .bed, .bim and .fam of biallelic SNPs."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import compress, groupby, islice
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import (
    atomic_path,
    beside,
    content_key,
    has_lists,
    is_file,
    named_rows,
    write_json,
)
from ..io.batches import (
    CHUNK_BYTES,
    UNKNOWN_ALLELE,
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
from ..io.bed import LEAST_NAMED, name_rows, open_bed
from ..io.call_filters import CallFilters
from ..io.columns import TABLE_ROWS
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
from ..io.listed_rows import LEAST_LISTED, ListedRows, RowsFile, write_again
from ..io.plink import stream_plink
from ..io.sites import canonical_contig
from ..io.vcf import stream_sites
from .absent import GENOME, REFERENCE_ONLY
from .callable import BLOCKS, DROPPED, Callable
from .contigs import Spellings
from .reference_check import ReferenceVerdict, reference_only, turn_to_genome
from .sources import files_within, names_key, require_same_samples, source_files

logger = logging.getLogger("popdesic")

#: Contigs without sites of which the length is kept, the longest ones: chromosomes, not scaffolds.
MOST_LENGTHS = 200
FAM_SEX = {"M": "1", "F": "2", "NA": "0", "": "0", "1": "1", "2": "2", "0": "0"}

#: The unknown allele in a .bim.
PLINK_UNKNOWN = "0"


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

    path: Path
    samples: list[str]
    sexes: list[str]
    batches: Iterator[SiteBatch]


def ingest_cohort(
    sources: Path | str | Sequence[Path | str],
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
    paths = [Path(p) for p in ([sources] if isinstance(sources, str | Path) else sources)]
    files = [Path(file) for file in files_within(f for path in paths for f in source_files(path))]
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
        rows = _Rows(file, bed_path, opened[0].path if whole else None, bed_row_bytes(n_columns))
        in_order, n_sites = _write_sites(batches, rows, bim_path)
        rows.close(named=in_order)
        if not in_order:
            n_sites = _drop_late_duplicates(bed_path, bim_path, n_columns)
        if n_sites == 0:
            raise _no_sites(paths, decode)
        repeated, turned = decode.sites - n_sites, None
        if fasta is not None:
            turned, n_sites = _turn(bed_path, bim_path, n_columns, fasta)
            repeated += len(turned.kept) - n_sites - turned.counts["neither"]
            decode.dropped_at += turned.dropped()
            only.sites += turned.reference_only
        if changed := [
            f for f, a, b in zip(files, before, _sizes_and_dates(files), strict=True) if a != b
        ]:
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
            "source_bytes": sum(file.stat().st_size for file in files),
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
    n_sites = _keep_sites(bed_path, bim_path, n_samples, turned.kept)
    if n_sites == 0:
        raise UserError(
            f"no site has an allele of {fasta} (qc.fasta); give the genome of these data."
        )
    if turned.changed:
        n_sites = _drop_late_duplicates(bed_path, bim_path, n_samples)
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
    path: Path,
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
    if kind in (PLINK, PGEN, EIGENSTRAT, ZARR) and is_layered(haploid):
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


def _sizes_and_dates(files: Iterable[Path]) -> list[tuple[int, int] | None]:
    """Return sizes and dates, which change when a file is replaced; None for a missing file."""
    return [(s.st_size, s.st_mtime_ns) if (s := _stat(file)) else None for file in files]


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except OSError:  # the reader reports it
        return None


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


class _Rows:
    """Rows of a .bed in writing; or their numbers, while a large source has the same bytes."""

    def __init__(self, file: RowsFile, path: Path, source: Path | None, row_bytes: int) -> None:
        kind, prefix = find_format(source) if source else ("", "")
        self._path, self._row_bytes, self._bed = path, row_bytes, beside(prefix, ".bed")
        large = kind == PLINK and is_file(self._bed) and self._bed.stat().st_size >= LEAST_NAMED
        if large:  # its rows lie in it, as in no raw.bed that names others' rows or has lists
            large = not has_lists(self._bed) and named_rows(self._bed) is None
        self._same = open_bed(prefix) if large else None
        self._numbers: list[np.ndarray] = []
        self.file = file

    def add(self, rows: np.ndarray, lines: np.ndarray) -> None:
        """Add rows, uint8 (n, row_bytes), of these lines of the source, from 1."""
        if self._same is not None:
            numbers = lines.astype(np.int64) - 1
            if np.array_equal(self._same[numbers], rows):
                self._numbers.append(numbers)
                return
            self._write_same()
        self.file.add(rows)

    def _write_same(self) -> None:
        for numbers in self._numbers:
            self.file.add(self._same[numbers])
        self._same = None

    def close(self, named: bool) -> None:
        """Write what is left; `named`: the file may name the source's rows."""
        if self._same is not None and not (named and self._numbers):
            self._write_same()
        self.file.close()
        if self._same is not None:
            name_rows(self._path, self._bed, np.concatenate(self._numbers), self._row_bytes)


def _write_sites(batches: Iterator[SiteBatch], bed: _Rows, bim_path: Path) -> tuple[bool, int]:
    """Write the batches without duplicate sites.

    Returns
    -------
    in_order : bool
        Whether positions never decreased and no contig reappeared; if not, duplicates that are
        far apart remain.
    n_sites : int
    """
    repeats = RepeatFinder()
    n_sites = 0
    with open(bim_path, "w", encoding="utf-8", newline="\n") as bim:
        for batch in batches:
            alt = batch.alt
            if UNKNOWN_ALLELE in alt:
                alt = [PLINK_UNKNOWN if one == UNKNOWN_ALLELE else one for one in alt]
            columns = (batch.chrom, batch.id, batch.pos.tolist(), alt, batch.ref)
            lines = map("{}\t{}\t0\t{}\t{}\t{}\n".format, *columns)
            new = repeats.find_new(batch.chrom, batch.pos, batch.ref, alt)
            rows, numbers = batch.rows, batch.line
            if not new.all():
                lines = compress(lines, new)
                rows, numbers = rows[new], numbers[new]
            bim.write("".join(lines))
            bed.add(rows, numbers)
            n_sites += int(new.sum())
    return repeats.in_order, n_sites


class ReferenceOnly:
    """Counts sites at which all called genotypes are homozygous REF; of variant sites none is."""

    def __init__(self) -> None:
        self.sites = 0

    def count(self, batch: SiteBatch) -> SiteBatch:
        """Count those of a batch; returns the batch."""
        self.sites += int(reference_only(batch.rows, batch.n_samples).sum())
        return batch


class RepeatFinder:
    """Finds duplicates by chrom:pos:ref:alt in a stream of sites.

    In a sorted stream duplicates share the previous position, so memory does not grow; `in_order`
    says whether the stream was sorted so far.
    """

    def __init__(self) -> None:
        self.in_order = True
        self._contigs: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        self._last = np.empty((0, 2), np.int64)  # keys at the last position

    def find_new(
        self, chrom: list[str], pos: np.ndarray, ref: list[str], alt: list[str]
    ) -> np.ndarray:
        """Return (n_sites) bool, False where a site duplicates a recent one."""
        keys = self.keys(chrom, pos, ref, alt)
        n_before = len(self._last)
        keys = np.concatenate([self._last, keys])
        places = keys[:, 0] >> 4
        self.in_order &= bool((np.diff(places) >= 0).all())
        new = _first_of_each(keys)
        self._last = keys[new & (places == places[-1])]
        return new[n_before:]

    def keys(self, chrom: list[str], pos: np.ndarray, ref: list[str], alt: list[str]) -> np.ndarray:
        """Return int64 (n_sites, 2): contig by first appearance, position (31 bits), bases (4).

        An unknown ALT has the code of REF, which no known one has. The second column numbers pairs
        of longer alleles, from 1.
        """
        for name in dict.fromkeys(chrom):
            if name not in self._contigs:  # `chr1` and `1` are the same
                same = self._contigs.get(canonical_contig(name), len(self._contigs))
                self._contigs[name] = self._contigs[canonical_contig(name)] = same
        contig = np.array([self._contigs[name] for name in chrom], np.int64)
        if PLINK_UNKNOWN in alt:
            alt = [one if two == PLINK_UNKNOWN else two for one, two in zip(ref, alt, strict=True)]
        pairs = np.zeros(len(pos), np.int64)
        if len("".join(ref)) + len("".join(alt)) > 2 * len(pos):
            ref, alt = list(ref), list(alt)
            for k, pair in enumerate(zip(ref, alt, strict=True)):
                if len(pair[0]) + len(pair[1]) > 2:
                    pairs[k] = self._pairs.setdefault(pair, len(self._pairs) + 1)
                    ref[k] = alt[k] = "A"
        places = contig << 35 | pos << 4 | _base_codes(ref) << 2 | _base_codes(alt)
        return np.stack([places, pairs], axis=1)


def _base_codes(bases: list[str]) -> np.ndarray:
    """Return 0, 1, 3, 2 for A, C, G, T in either case: two bits of their ASCII codes."""
    return (np.frombuffer("".join(bases).encode("ascii"), np.uint8) >> 1 & 3).astype(np.int64)


def _first_of_each(keys: np.ndarray) -> np.ndarray:
    """Return (n) bool, True at the first of each row of int64 (n, 2)."""
    places, pairs = keys.T
    if (places[1:] > places[:-1]).all():  # almost always
        return np.ones(len(keys), bool)
    order = np.lexsort((pairs, places))  # stable: of equal rows the first comes first
    first = np.ones(len(keys), bool)
    first[order[1:]] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return first


def _drop_late_duplicates(bed_path: Path, bim_path: Path, n_samples: int) -> int:
    """Remove duplicates that are far apart; return how many sites remain.

    Takes 8 bytes per site, for unsorted files only.
    """
    finder = RepeatFinder()
    with open(bim_path, encoding="utf-8", newline="\n") as bim:
        parts = []
        while lines := [line.rstrip("\n").split("\t") for line in islice(bim, TABLE_ROWS)]:
            chrom, _, _, pos, alt, ref = zip(*lines, strict=True)
            parts.append(finder.keys(chrom, np.array(pos, np.int64), ref, alt))
    return _keep_sites(bed_path, bim_path, n_samples, _first_of_each(np.concatenate(parts)))


def _keep_sites(bed_path: Path, bim_path: Path, n_samples: int, new: np.ndarray) -> int:
    """Keep these sites of both files, rows in place; return how many there are."""
    if new.all():
        return len(new)
    with (
        atomic_path(bim_path) as rest,
        open(rest, "w", encoding="utf-8", newline="\n") as out,
        open(bim_path, encoding="utf-8", newline="\n") as bim,
    ):
        out.writelines(compress(bim, new))
    kept, row_bytes = np.flatnonzero(new), bed_row_bytes(n_samples)
    n_block = max(1, CHUNK_BYTES // row_bytes)
    if has_lists(bed_path):
        write_again(bed_path, ListedRows(bed_path, n_samples, len(new)), kept, n_samples)
        return len(kept)
    rows = np.memmap(bed_path, np.uint8, "r+", offset=len(BED_MAGIC), shape=(len(new), row_bytes))
    for start in range(0, len(kept), n_block):
        # Rows only move towards the front, so each is read before it is overwritten.
        block = rows[kept[start : start + n_block]]
        rows[start : start + len(block)] = block
    rows.flush()
    del rows
    os.truncate(bed_path, len(BED_MAGIC) + len(kept) * row_bytes)
    return len(kept)


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
