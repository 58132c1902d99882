"""Encode a cohort on the panel: PLINK files of its called genotypes, and its bit-planes."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import atomic_path, beside, read_json, write_json
from ..core.tables import open_lines, read_table, write_npy, write_rows
from ..core.threads import run_tasks
from ..engine.terms import Planes, aligned_zeros
from ..io.batches import ploidies_in
from ..io.bed import open_cohort, read_bim, write_fam
from ..io.genotypes import BED_MAGIC, SWAPPED, bed_row_bytes, pack_bed, take_samples, unpack_bed
from ..io.layers import columns_of, join_layers, layers_in, sizes_in, split_layers
from ..io.listed_rows import ListedRows
from ..io.sites import chunks
from .absent import (
    MIN_SITES,
    UNSTATED,
    Absent,
    Coverage,
    coverage_of,
    frequency_of,
    has_rare,
    lists_variants_only,
    measure_lack,
    refuse_lack,
    refuse_outside,
    strands_in_doubt,
)
from .fixed_sites import HIGH, count_genotypes, count_lost, refuse_lost
from .impute import fill_words
from .match import Matched, count_matched, match, no_overlap, orient, require_one_build
from .panel import load_panel
from .site_counts import count_placed

logger = logging.getLogger("popdesic")

#: Sites per chunk; a multiple of 64, so that chunks end on whole words.
CHUNK_SITES = 16_384
#: Words of a sample's plane are padded to whole 512-bit vectors.
WORDS_MULTIPLE = 8
_MISSING_BYTE = 0x55


def encode_cohort(
    raw: Path,
    qc_samples: Path,
    panel_path: Path,
    out: Path,
    *,
    impute: str,
    cohort: str,
    threads: int = 1,
    imputed: Sequence[Path] = (),
    absent: Absent = UNSTATED,
    keep_all: bool = False,
) -> dict[str, int]:
    """Match a cohort to the panel and write `{out}/genotypes.*` and `{out}/planes.*`.

    Parameters
    ----------
    raw : Path
        Stem of the cohort's decoded .bed, .bim and .fam.
    qc_samples : Path
        Sample table; samples with ``keep`` = no, or without a row, are left out.
    out : Path
        Folder of `genotypes.bed .bim .fam` (called genotypes only, REF and ALT as in the panel)
        and `planes.npy` with `planes.json` (`engine.terms.Planes`).
    impute : str
        ``mode``, ``none`` or ``beagle``.
    imputed : paths
        With ``beagle`` the imputed rows of all windows, in panel order (`popdesic.cohort.beagle`).
    absent : Absent
        What the cohort sheet says of panel sites that the cohort's file does not list. Where they
        are read as homozygous reference, `{out}/reference.npy` says so: uint8
        (1 or n_samples, ceil(n_sites / 8)), a bit for each site, the first in the lowest bit of the
        first byte; one row if all samples are alike. Without such sites there is no such file.
    keep_all : bool
        Refuse samples without a called genotype on the panel; else they are left out and counted.

    Returns
    -------
    dict
        Counts: panel sites found, absent, found with REF and ALT swapped, dropped as swapped and
        strand-ambiguous; cohort sites not on the panel; missing genotypes. Further ones only where
        there are any: `match.count_matched`, absent sites read as reference, and samples left out.

    Raises
    ------
    UserError
        No site of the cohort is on the panel, or no sample has a called genotype there; the
        cohort is of another genome build; its file lists variant sites alone and lacks many of the
        panel's; or its absent sites cannot be read as reference, because REF is not the genome's.
    """
    panel, digest = load_panel(panel_path)
    placed = OnPanel.open(raw, qc_samples, panel, absent)
    found = placed.found
    if not (found.row >= 0).any() and not found.other_build:
        raise UserError(no_overlap(cohort, raw, read_bim(raw), panel))
    placed.require_comparable(cohort, raw, absent)
    for line in placed.remarks(cohort):
        logger.info(line)
    n_kept = len(placed.names)
    filled = np.concatenate([np.load(path) for path in imputed]) if imputed else None
    if filled is not None:
        placed.leave_out(placed.uncalled(), cohort, keep_all)
    mode = panel["mode"].to_numpy()
    while True:
        bed = _write_genotypes(placed, out)
        if filled is not None and filled.shape != bed.shape:
            raise UserError(
                f"{Path(imputed[0]).parent} holds imputed genotypes of another panel or other "
                f"samples ({filled.shape}, not {bed.shape}); delete the folder and rerun."
            )
        shape = len(placed.names), mode, impute, out / "planes.npy", threads, filled
        # Packing does not hold the lock of Python, as writing the sites as text does.
        tasks = [(write_planes, bed, *shape), (_write_sites, panel, out / "genotypes.bim")]
        missing = run_tasks(lambda work, *rest: work(*rest), tasks, threads)[0]
        once = missing[: len(missing) // placed.layers]
        uncalled = np.tile(once == len(panel), placed.layers)
        if not uncalled.any():
            break
        del bed
        placed.leave_out(uncalled, cohort, keep_all)
    write_fam(out / "genotypes", placed.fam)
    layers = placed.layers
    names = placed.names[: len(placed.names) // layers]
    counts = count_matched(found, placed.n_rows) | _write_reference(placed, out, found)
    counts["panel_sites_absent"] -= counts.get("absent_as_reference", 0)
    counts |= {"samples": len(names), "missing_genotypes": int(once.sum())}
    if len(names) < n_kept // layers:
        counts["samples_without_calls"] = n_kept // layers - len(names)
    write_json(
        out / "planes.json",
        {
            "cohort": cohort,
            "panel": digest,
            "n_sites": len(panel),
            "impute": impute,
            "samples": names,
            "counts": counts,
        }
        | (_ploidy_of(placed, raw) if layers > 1 else {}),
    )
    return counts


def _ploidy_of(placed: OnPanel, raw: Path) -> dict:
    """What planes.json says of ploidy: `planes.load_planes`."""
    kinds, _ = ploidies_in(read_json(beside(raw, ".json"))["haploid"])
    if len(kinds) == 1:
        return {"ploidy": kinds[0]}
    alleles = placed.sizes * (1 if any(kind % 2 for kind in kinds) else 2)
    return {"ploidy": list(kinds), "each": alleles.tolist()}


class OnPanel:
    """A cohort's called genotypes at the panel's sites, made when they are read.

    Attributes
    ----------
    names : list of str
        Samples that are kept; of polyploids again for each layer (`io.layers`).
    layers : int
    fam : DataFrame
        Their lines of the .fam.
    found : Matched
        Rows of the cohort at the panel's sites.
    n_rows : int
        Sites of the cohort.
    """

    def __init__(self, bed, fam: pd.DataFrame, kept: np.ndarray, panel: pd.DataFrame):
        self._bed, self._n_samples, self._kept = bed, len(fam), kept
        self.fam = fam.iloc[kept]
        self.names = self.fam["sample"].tolist()
        self.layers = layers_in(fam)
        self._chrom, self._pos = panel.chrom.to_numpy(object), panel.pos.to_numpy()
        self.n_rows = len(bed)
        self.found: Matched
        self._coverage: Coverage | None = None
        self._bim: pd.DataFrame
        self._panel = panel

    @classmethod
    def open(cls, raw: Path, qc_samples: Path, panel: pd.DataFrame, absent: Absent) -> OnPanel:
        """Open a cohort by the stem of its decoded files and its sample table."""
        table = read_table(qc_samples)
        bed, fam = open_cohort(raw, table["sample"])
        kept = np.flatnonzero(table.keep.to_numpy() == "yes")
        placed = cls(bed, fam, columns_of(kept, len(table), layers_in(fam)), panel)
        placed._bim = read_bim(raw)
        found = match(placed._bim, panel, in_doubt=strands_in_doubt(raw))
        placed.found = placed._oriented(found)
        placed._coverage = coverage_of(raw, placed.names, absent)
        return placed

    @property
    def sizes(self) -> np.ndarray:
        """Layers that each of the samples has: int64."""
        return sizes_in(self.fam)

    def _oriented(self, found: Matched) -> Matched:
        """With A/T and C/G sites oriented by frequency, if the cohort has sites on both strands."""
        if not found.has_flips or "af" not in self._panel:
            return found
        row = np.maximum(found.row, found.candidate)
        counts = np.zeros((len(row), 3), np.int64)
        for first, last in chunks(len(row), CHUNK_SITES):
            as_listed = np.zeros(last - first, bool)
            rows = place_rows(self._bed, self._n_samples, self._kept, row[first:last], as_listed)
            counts[first:last] = count_genotypes(unpack_bed(rows, len(self._kept)))
        return orient(found, *frequency_of(counts), self._panel.af.to_numpy())

    def require_comparable(self, cohort: str, raw: Path, absent: Absent) -> None:
        """Raise a UserError for another build, variant sites alone, and REF that is not REF."""
        require_one_build(self.found, f"cohort '{cohort}'", "the panel")
        if self._coverage is not None and self.found.reference_differs:
            raise UserError(
                f"cohort '{cohort}' has REF and ALT swapped at {int(self.found.swapped.sum())} of "
                f"{int((self.found.row >= 0).sum())} panel sites, so its absent sites "
                "cannot be read as homozygous reference; set REF to the genome's base (plink2 "
                "--ref-from-fa, bcftools +fixref), or write absent = missing in the cohort sheet."
            )
        refuse_lost(f"cohort '{cohort}'", self._lost_fixed())
        if absent.rule == "auto" and self._coverage is None and self.n_rows >= MIN_SITES:
            lack = measure_lack(
                self._bim, self._panel, self.found.listed, self._panel.af.to_numpy()
            )
            only = lists_variants_only(raw, self.n_rows)
            only = only and lack.matters and has_rare(self._counts())
            refuse_lack(cohort, lack, "the panel", self.n_rows, variants_only=only)
        if absent.mask and lists_variants_only(raw, self.n_rows):
            own, lacking = self._panel[self.found.listed], self._panel[~self.found.listed]
            refuse_outside(cohort, absent, self._coverage.regions, own, lacking)

    def _counts(self) -> np.ndarray:
        """Genotypes 0, 1 and 2 of the kept samples at all sites of the file: (n_rows, 3)."""
        parts = []
        for first, last in chunks(self.n_rows, CHUNK_SITES):
            rows = np.arange(first, last)
            part = place_rows(
                self._bed, self._n_samples, self._kept, rows, np.zeros(len(rows), bool)
            )
            parts.append(count_genotypes(unpack_bed(part, len(self._kept))).astype(np.int32))
        return np.concatenate(parts)

    def _lost_fixed(self) -> int:
        """Panel sites read as REF that the file lacks because they are fixed for ALT."""
        coverage = self._coverage
        if coverage is None or (coverage.regions is not None and coverage.regions.by_sample):
            return 0
        high = np.flatnonzero(self._panel.af.to_numpy() >= HIGH)
        chrom, pos = self._chrom[high], self._pos[high]
        filled = coverage.reference(chrom, pos)[:, 0] & ~self.found.listed[high]
        row, swapped = self.found.row[high], self.found.swapped[high]
        rows = place_rows(self._bed, self._n_samples, self._kept, row, swapped)
        own = count_genotypes(unpack_bed(rows, len(self._kept)))
        lost = count_lost(own, filled, self._panel.af.to_numpy()[high])
        for first, last in chunks(self.n_rows if lost else 0, CHUNK_SITES):
            counts = count_genotypes(unpack_bed(self._bed[first:last], self._n_samples))
            if ((counts[:, :2].sum(axis=1) == 0) & (counts[:, 2] > 0)).any():
                return 0
        return lost

    def uncalled(self) -> np.ndarray:
        """Samples without a called genotype on the panel, by a pass over it: bool (n_samples,)."""
        from .genotypes_cpu import add_by_sample

        counts = np.zeros((len(self.names), 4), np.int64)
        for first, last in chunks(len(self.found.row)):
            add_by_sample(self.rows(first, last), counts)
        return counts[:, :3].sum(axis=1) == 0

    def leave_out(self, uncalled: np.ndarray, cohort: str, keep_all: bool = False) -> None:
        """Leave out samples without a called genotype on the panel.

        Raises
        ------
        UserError
            None is left, or there are some and all are to be kept.
        """
        if not uncalled.any():
            return
        n_samples = len(self.names) // self.layers
        lost = [self.names[k] for k in np.flatnonzero(uncalled[:n_samples])]
        n_sites = len(self.found.row)
        if keep_all or len(lost) == n_samples:
            raise UserError(
                f"sample '{lost[0]}' of cohort '{cohort}' has no called genotype at any of the "
                f"panel's {n_sites} sites; remove it from the file, and from the "
                "sample sheet if there is one."
            )
        logger.warning(
            "%d of %d samples of cohort %s have no called genotype at any of the panel's %d sites "
            "and are left out: %s",
            len(lost),
            n_samples,
            cohort,
            n_sites,
            ", ".join(lost[:5]) + " …" * (len(lost) > 5),
        )
        self._kept, self.fam = self._kept[~uncalled], self.fam[~uncalled]
        self.names = self.fam["sample"].tolist()
        if self._coverage is not None:
            self._coverage = replace(self._coverage, kept=self._coverage.kept[~uncalled])

    def remarks(self, cohort: str) -> list[str]:
        """Sentences for the log."""
        turned = int((self.found.flipped & (self.found.row >= 0)).sum())
        if not turned and not self.found.in_doubt:
            return []
        doubtful = int(self.found.doubtful.sum())
        oriented = int(self.found.oriented.sum())
        text = (
            f"{turned} of {turned + self.found.plain} sites of cohort {cohort} are on the opposite "
            "strand and were flipped"
        )
        if oriented:
            text += f"; {oriented} A/T and C/G sites were oriented by allele frequency"
        if doubtful:
            text += f"; {doubtful} A/T and C/G sites, where strands look alike, are missing"
        return [text]

    def reference(self, first: int, last: int) -> np.ndarray:
        """Absent sites `first` to `last` read as REF: bool (n, 1), or (n, n_samples)."""
        if self._coverage is None:
            return np.zeros((last - first, 1), bool)
        part = slice(first, last)
        found = self._coverage.reference(self._chrom[part], self._pos[part])
        return found & ~self.found.listed[part, None]

    def rows(self, first: int, last: int) -> np.ndarray:
        """Rows of .bed of sites `first` to `last`: uint8 (n, ceil(n_samples / 4))."""
        part = slice(first, last)
        found = self.found
        chunk = place_rows(
            self._bed, self._n_samples, self._kept, found.row[part], found.swapped[part]
        )
        if self._coverage is not None:
            _fill_reference(chunk, self.reference(first, last), len(self.names))
        if self.layers > 1:  # where REF and ALT were swapped, the first bits are in the last layer
            genotypes = join_layers(unpack_bed(chunk, len(self.names)), self.layers)
            chunk = pack_bed(split_layers(genotypes, self.layers, self.sizes))
        return chunk

    def count(
        self, first: int, last: int, group: np.ndarray, n_groups: int, threads: int = 1
    ) -> np.ndarray:
        """`genotypes_cpu.count_by_group` of `rows`; lists of carriers are counted as they are."""
        from .genotypes_cpu import count_by_group

        reference = self.reference(first, last)
        if not isinstance(self._bed, ListedRows) or self.layers > 1 or reference.shape[1] > 1:
            return count_by_group(self.rows(first, last), group, n_groups, threads)
        everyone = np.full(self._n_samples, -1, np.int64)
        everyone[self._kept] = group
        placed = self.found.row[first:last], self.found.swapped[first:last]
        out = count_placed(self._bed, *placed, everyone, n_groups, threads)
        out[reference[:, 0]] += out[reference[:, 0]][:, :, 3:] * np.array([1, 0, 0, -1])
        return out


def _fill_reference(chunk: np.ndarray, reference: np.ndarray, n_samples: int) -> None:
    """Set genotypes of .bed rows (n_sites, row_bytes) to homozygous REF, in place."""
    which = np.flatnonzero(reference.any(axis=1))
    if not len(which):
        return
    codes = np.zeros((len(which), 4 * chunk.shape[1]), np.uint8)
    codes[:, :n_samples] = reference[which]
    # Missing is 01 and homozygous REF is 11.
    high = (codes.reshape(len(which), -1, 4) << np.array([1, 3, 5, 7], np.uint8)).sum(
        axis=2, dtype=np.uint8
    )
    chunk[which] |= high


def _write_reference(placed: OnPanel, out: Path, found: Matched) -> dict[str, int]:
    """Write `{out}/reference.npy` and count sites and genotypes; nothing if there are none."""
    path, parts = out / "reference.npy", []
    sites = genotypes = 0
    n_samples = len(placed.names) // placed.layers
    for first, last in chunks(len(found.row), CHUNK_SITES):
        bits = placed.reference(first, last)[:, :n_samples]
        sites += int(bits.any(axis=1).sum())
        genotypes += int(bits.sum()) * (n_samples if bits.shape[1] == 1 else 1)
        parts.append(np.packbits(bits.T, axis=1, bitorder="little"))
    if not sites:
        path.unlink(missing_ok=True)
        return {}
    write_npy(path, np.concatenate(parts, axis=1))
    return {"absent_as_reference": sites, "absent_as_reference_genotypes": genotypes}


def _write_sites(panel: pd.DataFrame, path: Path) -> None:
    with atomic_path(path) as temporary, open_lines(temporary) as file:
        write_rows(file, panel.assign(cm="0")[["chrom", "id", "cm", "pos", "alt", "ref"]])


def _write_genotypes(placed: OnPanel, out: Path) -> np.ndarray:
    """Write `genotypes.bed` in panel order and return its rows, memory-mapped."""
    path = out / "genotypes.bed"
    n_sites = len(placed.found.row)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(BED_MAGIC)
        for first, last in chunks(n_sites, CHUNK_SITES):
            file.write(placed.rows(first, last).tobytes())
    return np.memmap(
        path, np.uint8, "r", offset=3, shape=(n_sites, bed_row_bytes(len(placed.names)))
    )


def place_rows(
    rows: np.ndarray, n_samples: int, kept: np.ndarray, source: np.ndarray, turned: np.ndarray
) -> np.ndarray:
    """Rearrange rows of a cohort's .bed to panel sites and alleles.

    Parameters
    ----------
    rows : uint8 array, (n_rows, row_bytes)
        The cohort's .bed, with `n_samples` samples.
    kept : int array
        Samples to keep.
    source : int array, (n_sites,)
        Row of each site, or -1 for an absent site (all missing).
    turned : bool array, (n_sites,)
        Whether REF and ALT are swapped.

    Returns
    -------
    uint8 array, (n_sites, ceil(len(kept) / 4)); padding bits are zero
    """
    here = source >= 0
    chunk = np.full((len(source), rows.shape[1]), _MISSING_BYTE, np.uint8)
    chunk[here] = rows[source[here]]
    chunk[turned] = SWAPPED[chunk[turned]]
    if len(kept) != n_samples:
        return take_samples(chunk, np.asarray(kept, np.int64))
    if n_samples % 4:
        chunk[:, -1] &= (1 << (2 * (n_samples % 4))) - 1
    return chunk


def write_planes(
    bed: np.ndarray,
    n_samples: int,
    mode: np.ndarray,
    impute: str,
    out: Path,
    threads: int = 1,
    filled: np.ndarray | None = None,
) -> np.ndarray:
    """Write `planes.npy` from .bed rows in panel order; the called plane only if calls are missing.

    If a program has imputed, `filled` has its .bed rows of the same sites.

    Returns
    -------
    int64 array, (n_samples,)
        Missing genotypes of each sample.
    """
    with atomic_path(out) as temporary:
        shape = _planes_shape(bed, n_samples)
        words = np.lib.format.open_memmap(temporary, "w+", np.dtype("<u8"), shape)
        # Allocate first: a full disk then raises OSError, not a bus error in the memory map.
        with open(temporary, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, temporary.stat().st_size)
        missing = _fill_planes(bed, *fill_words(mode, impute), words, threads, filled)
        words.flush()
        del words
    return missing


def planes_in_memory(
    bed: np.ndarray, n_samples: int, threads: int = 1, mode: np.ndarray | None = None
) -> Planes:
    """Pack .bed rows (n_sites, row_bytes) into planes in memory.

    `mode`, int (n_sites,), fills missing genotypes; None fills nothing.
    """
    words = aligned_zeros(_planes_shape(bed, n_samples))
    fills = fill_words(np.zeros(len(bed), np.int64), "none")
    if mode is not None:
        fills = fill_words(mode, "mode")
    _fill_planes(bed, *fills, words, threads)
    return Planes(words, len(bed))


def _planes_shape(bed: np.ndarray, n_samples: int) -> tuple[int, int, int]:
    n_words = -(-len(bed) // (64 * WORDS_MULTIPLE)) * WORDS_MULTIPLE
    return n_samples, 3 if _any_missing(bed) else 2, n_words


def _fill_planes(
    bed, fill_carrier, fill_hom, words: np.ndarray, threads: int, filled=None
) -> np.ndarray:
    """Pack .bed rows into zeroed `words`; return int64 (n_samples,) missing genotypes."""
    from .genotypes_cpu import pack_planes

    n_samples, n_planes, _ = words.shape
    missing = np.zeros(n_samples, np.int64)
    for first in range(0, len(bed), CHUNK_SITES):
        chunk = np.ascontiguousarray(bed[first : first + CHUNK_SITES])
        word0, word1 = first // 64, -(-(first + len(chunk)) // 64)
        run = words[:, :, word0:word1]
        fills = fill_carrier[word0:word1], fill_hom[word0:word1]
        pack_planes(chunk, *fills, run, threads)
        if filled is not None:
            imputed = np.ascontiguousarray(filled[first : first + CHUNK_SITES])
            pack_planes(imputed, *fills, run[:, :2], threads)
        if n_planes == 3:
            missing += len(chunk) - np.bitwise_count(run[:, 2]).sum(axis=1, dtype=np.int64)
    return missing


def _any_missing(bed: np.ndarray) -> bool:
    """Whether any two-bit code is 01, missing (padding is 00)."""
    for first in range(0, len(bed), CHUNK_SITES):
        chunk = bed[first : first + CHUNK_SITES]
        if (chunk & ~(chunk >> 1) & 0x55).any():
            return True
    return False
