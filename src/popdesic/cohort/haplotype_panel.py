"""A phased reference, frozen: what haplotype copying copies from.

The file is an uncompressed .npz, read through a memory map. Its arrays are those of its parts. A
part is a run of sites of one contig at which each sample has the same number of alleles. A contig
is one part, X in a file with haploid males up to three: both pseudo-autosomal regions and the rest.
A part has one haplotype for each allele that a sample has there. The digest covers all of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..copying.copying import Haplotypes, pack_rows
from ..copying.copying_plan import MOST_HAPLOTYPES
from ..copying.fit import fit_model
from ..core.errors import UserError
from ..core.files import atomic_path, require_output
from ..core.text import read_text
from ..core.triangle import map_npz
from ..io.phased import ABSENT, PhasedSites, read_phased_samples, stream_phased
from .genetic_maps import UnmappedContigError, centimorgans, parse_map
from .impute import matching_files
from .sources import expand_sources

log = logging.getLogger("popdesic")

VERSION = 1
#: Arrays of a part but its haplotypes, in the order of the digest.
COLUMNS = ("pos", "ref", "alt", "ids", "cm", "owner")
#: Parts of one contig: two pseudo-autosomal regions and what lies between them.
MOST_PARTS = 3
#: Centimorgans a megabase where there is no map.
USUAL_RATE = 1.0
#: Centimorgans of a part on which the numbers of the model are fitted.
FITTED_CM = 30.0
#: What is read of a spooled part at a time.
COPY_BYTES = 1 << 22
#: First bytes of a .npz.
ZIP_MAGIC = b"PK"


@dataclass(frozen=True)
class HaplotypePart:
    """Sites of one contig, with the haplotypes of all samples.

    Attributes
    ----------
    contig : str
    pos : int64 array, (n_sites,)
        Ascending; sites at one position differ in their alleles.
    ref, alt : uint8 array, (n_sites,)
        Bases as ASCII.
    ids : uint8 array
        Identifiers, separated by newlines.
    cm : float64 array, (n_sites,)
        Genetic positions, in centimorgans.
    haplotypes : uint64 array, (n_sites, n_words)
        Bit k of a row, little-endian, says that haplotype k has ALT; padding is 0.
    owner : int32 array, (n_haplotypes,)
        Number of the sample that each haplotype belongs to, in rising order.
    ne, mismatch : float
        Numbers of the model, most likely for these haplotypes (`copying.fit.fit_model`).
    """

    contig: str
    ne: float
    mismatch: float
    pos: np.ndarray
    ref: np.ndarray
    alt: np.ndarray
    ids: np.ndarray
    cm: np.ndarray
    haplotypes: np.ndarray
    owner: np.ndarray


@dataclass(frozen=True)
class HaplotypePanel:
    """An open file of `freeze_haplotypes`: names of the samples, parts in file order, digest."""

    path: Path
    digest: str
    samples: list[str]
    parts: list[HaplotypePart]


def freeze_haplotypes(
    reference: Path, out: Path, genetic_map: str = "", *, threads: int = 1
) -> dict[str, int]:
    """Freeze a phased reference as one file.

    Kept are biallelic SNPs; other records are counted. Of records with the same position and
    alleles the first is kept.

    Parameters
    ----------
    reference : Path
        VCF or BCF (phased), or VCF-Zarr with `call_genotype_phased`, or a pattern of such files
        (`reference_files`), which are read one after the other. Homozygous calls need no phase.
    genetic_map : str
        A map as `genetic_maps.parse_map` reads it, or a pattern with `{contig}`; '' for
        `USUAL_RATE` centimorgans a megabase.
    threads : int
        Threads that decompress the reference and fit the model; the file's bytes do not depend on
        their number.

    Returns
    -------
    dict
        Counts of records by kind, and of samples, sites, parts, haplotypes (most of a part).

    Raises
    ------
    UserError
        The reference has a call that is unphased or missing, more than `MOST_HAPLOTYPES`
        haplotypes, no SNP, or sites that are not in order; files have different samples; or the map
        is invalid or lacks a contig.
    """
    files = reference_files(reference)
    for one in files:
        if is_frozen(one):
            raise UserError(f"{one} is frozen already; give the VCF, BCF or VCF-Zarr.")
    require_output(out, *files)
    samples = read_phased_samples(files[0])
    for one in files[1:]:
        if read_phased_samples(one) != samples:
            raise UserError(
                f"{one} has other samples than {files[0]}, or another order of them; all files of "
                "a reference must have the same (bcftools view -S)."
            )
    _require_few(reference, len(samples))
    scale = _Map(genetic_map, reference)
    counts: Counter = Counter()
    with atomic_path(out) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        panel = _Writer(archive, samples, scale, out.parent, threads)
        for panel.reference in files:
            for batch in stream_phased(panel.reference, counts, threads):
                panel.add(batch)
        panel.end_part()
        if not panel.parts:
            raise UserError(
                f"{reference} has no biallelic SNP; a reference for copying needs them."
            )
        panel.finish()
    counts["same_site"] = panel.repeated
    counts["snps"] -= panel.repeated
    most = max(part["haplotypes"] for part in panel.parts)
    return {
        "samples": len(samples),
        "haplotypes": most,
        "parts": len(panel.parts),
        **{kind: counts[kind] for kind in sorted(counts) if counts[kind]},
    }


def reference_files(reference: Path) -> list[Path]:
    """The files that a path or pattern of a reference names, in natural order.

    Patterns are those of the cohort sheet (`sources.expand_sources`): `{contig}` stands for the
    name of a chromosome.
    """
    return [Path(one) for one in expand_sources(str(reference))]


def is_frozen(path: Path) -> bool:
    """Whether a file is one of `freeze_haplotypes` (or another .npz), not a VCF."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(2) == ZIP_MAGIC


def open_haplotypes(path: Path) -> HaplotypePanel:
    """Open a file of `freeze_haplotypes`; its arrays are read when they are used.

    Raises
    ------
    UserError
        It is another file, of another version, or incomplete.
    """
    again = f"freeze the reference again (popdesic freeze), as {path}"
    try:
        about = json.loads(bytes(map_npz(path, "about")["about"]))
        version, samples = about["version"], about["samples"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise UserError(f"{path} is not a frozen reference, or is cut short; {again}.") from None
    if version != VERSION:
        raise UserError(
            f"{path} is a frozen reference of version {version}; this program reads version "
            f"{VERSION}: {again}."
        )
    parts = []
    for number, part in enumerate(about["parts"]):
        arrays = map_npz(path, f"{number}/")
        named = {name.split("/")[1]: array for name, array in arrays.items()}
        numbers = (part["contig"], part["ne"], part["mismatch"])
        parts.append(HaplotypePart(*numbers, **named))
    return HaplotypePanel(path, about["digest"], samples, parts)


def require_intact(panel: HaplotypePanel) -> None:
    """Raise a UserError unless a frozen reference holds what its digest says; reads all of it."""
    found = hashlib.blake2b("\n".join(panel.samples).encode(), digest_size=16)
    for part in panel.parts:
        found.update(part.contig.encode())
        for name in (*COLUMNS, "haplotypes"):
            found.update(getattr(part, name).data)
        found.update(repr({"ne": part.ne, "mismatch": part.mismatch}).encode())
    if found.hexdigest() != panel.digest:
        raise UserError(
            f"{panel.path} has other bytes than were frozen: it is damaged; copy it again, or "
            "freeze the reference again (popdesic freeze)."
        )


def site_ids(part: HaplotypePart, first: int, last: int) -> list[str]:
    """Identifiers of sites [first, last) of a part."""
    ends = np.flatnonzero(part.ids == ord("\n"))
    low = int(ends[first - 1]) + 1 if first else 0
    high = int(ends[last - 1]) if last <= len(ends) else len(part.ids)
    return bytes(part.ids[low:high]).decode("utf-8").split("\n")


class _Map:
    """A genetic map, parsed once."""

    def __init__(self, pattern: str, reference: Path) -> None:
        self.shown, self.reference = f"{pattern} (--map)", reference
        self.table = None
        if not pattern:
            return
        if not (files := matching_files(pattern)):
            raise UserError(
                f"there is no genetic map '{pattern}'; correct the path ('{{contig}}' in it stands "
                "for the name of a chromosome)."
            )
        parts = [parse_map(read_text(one, "genetic map"), f"{one} (--map)") for one in files]
        self.table = pd.concat(parts, ignore_index=True)

    def of(self, contig: str, pos: np.ndarray) -> np.ndarray:
        """Genetic positions, float64 (n_sites,)."""
        if self.table is None:
            return pos * (USUAL_RATE * 1e-6)
        try:
            sites = pd.DataFrame({"chrom": contig, "pos": pos})
            return centimorgans(self.table, sites, self.shown)
        except UnmappedContigError:
            raise UserError(
                f"{self.shown}: contig '{contig}' of {self.reference} is not in the genetic map; "
                "add it to the map, or give a reference without it."
            ) from None


class _Writer:
    """Writes parts one after the other; rows of bits wait in a temporary file until one ends."""

    def __init__(self, archive, samples: list[str], scale: _Map, folder, threads: int) -> None:
        self.threads = threads
        self.reference = Path()  # the file that is read
        self.archive, self.samples, self.scale = archive, samples, scale
        self.folder, self.parts, self.repeated = folder, [], 0
        self.hash = hashlib.blake2b(digest_size=16)
        self.hash.update("\n".join(samples).encode())
        self.contig, self.haploid, self.spool = "", np.zeros(0, bool), None
        self.sites: dict[str, list] = {}
        self.last, self.at_last = 0, set()

    def add(self, batch: PhasedSites) -> None:
        """Add sites, from the first to the last with the same numbers of alleles at a time."""
        require_calls(batch, self.reference, self.samples)
        haploid = batch.alleles[:, :, 1] == ABSENT
        changes = 1 + np.flatnonzero((haploid[1:] != haploid[:-1]).any(axis=1))
        for rows in np.split(np.arange(len(batch.pos)), changes):
            if batch.chrom != self.contig:
                self.last, self.at_last = 0, set()
            kept = self._in_order(batch, rows)
            if not len(kept):  # sites of the part before: no part of their own
                continue
            if batch.chrom != self.contig or (haploid[rows[0]] != self.haploid).any():
                self._begin(batch, rows[0], haploid[rows[0]])
            self._append(batch, kept)

    def _begin(self, batch: PhasedSites, row: int, haploid: np.ndarray) -> None:
        """Begin the part of a row."""
        self.end_part()
        before = [part["contig"] for part in self.parts]
        if batch.chrom != self.contig:
            if batch.chrom in before:
                raise self._unsorted(batch, row, "its contig has come before")
        elif before.count(batch.chrom) == MOST_PARTS:
            sample = self.samples[int(np.argmax(haploid != self.haploid))]
            raise UserError(
                f"{self.reference}, {batch.chrom}:{batch.pos[row]}: the number of alleles of "
                f"sample '{sample}' changes for the third time on this contig; write its calls "
                "as haploid or as diploid throughout (bcftools +fixploidy)."
            )
        self.scale.of(batch.chrom, batch.pos[row : row + 1])
        self.contig, self.haploid = batch.chrom, haploid
        _require_few(self.reference, 2 * len(haploid) - int(haploid.sum()))
        self.spool = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (until the part ends)
        self.sites = {"pos": [], "ref": [], "alt": [], "ids": []}

    def _in_order(self, batch: PhasedSites, rows: np.ndarray) -> np.ndarray:
        """Those rows that do not repeat a site; positions must rise."""
        kept = []
        for row in rows.tolist():
            pos, pair = batch.pos[row], frozenset((batch.ref[row], batch.alt[row]))
            if pos < self.last:
                raise self._unsorted(batch, row, f"the record before is at {self.last}")
            if pos > self.last:
                self.last, self.at_last = pos, set()
            if pair in self.at_last:
                self.repeated += 1
                continue
            self.at_last.add(pair)
            kept.append(row)
        return np.array(kept, np.int64)

    def _unsorted(self, batch: PhasedSites, row: int, why: str) -> UserError:
        return UserError(
            f"{self.reference}, {batch.chrom}:{batch.pos[row]}: the record is not in order, "
            f"{why}; sort the file (bcftools sort)."
        )

    def _append(self, batch: PhasedSites, rows: np.ndarray) -> None:
        there = np.stack([np.ones_like(self.haploid), ~self.haploid], axis=1).ravel()
        alleles = batch.alleles[rows].reshape(len(rows), len(there))[:, there]
        self.spool.write(pack_rows(alleles).tobytes())
        self.sites["pos"].append(batch.pos[rows])
        for name, column in (("ref", batch.ref), ("alt", batch.alt), ("ids", batch.id)):
            self.sites[name] += [column[row] for row in rows]

    def end_part(self) -> None:
        """Write the part that is open, if any."""
        if self.spool is None:
            return
        pos = np.concatenate(self.sites["pos"])
        n_haplotypes = 2 * len(self.haploid) - int(self.haploid.sum())
        cm = self.scale.of(self.contig, pos)
        arrays = {
            "pos": pos,
            "ref": np.frombuffer("".join(self.sites["ref"]).encode(), np.uint8),
            "alt": np.frombuffer("".join(self.sites["alt"]).encode(), np.uint8),
            "ids": np.frombuffer("\n".join(self.sites["ids"]).encode(), np.uint8),
            "cm": cm,
            "owner": np.repeat(np.arange(len(self.haploid)), 2 - self.haploid).astype(np.int32),
        }
        self.hash.update(self.contig.encode())
        for name, array in arrays.items():
            with self._member(name, array.shape, array.dtype) as file:
                self._put(file, array.tobytes())
        shape = (len(pos), -(-n_haplotypes // 64))
        self.spool.flush()
        bits = np.memmap(self.spool, "<u8", "r", shape=shape)
        ne, mismatch = _fit(bits, arrays["owner"], cm, self.threads)
        self.spool.seek(0)
        with self._member("haplotypes", shape, np.dtype("<u8")) as file, self.spool:
            while data := self.spool.read(COPY_BYTES):
                self._put(file, data)
        numbers = {"ne": ne, "mismatch": mismatch}
        self.hash.update(repr(numbers).encode())
        about = {"contig": self.contig, "sites": len(pos), "haplotypes": n_haplotypes}
        self.parts.append(about | numbers)
        self.spool = None

    def _put(self, file, data: bytes) -> None:
        self.hash.update(data)
        file.write(data)

    def _member(self, name: str, shape: tuple, dtype: np.dtype):
        """Open an array of the part as numpy writes it, dated 1980."""
        number = len(self.parts)
        file = self.archive.open(zipfile.ZipInfo(f"{number}/{name}.npy"), "w", force_zip64=True)
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        return file

    def finish(self) -> None:
        """Write what the file is."""
        about = {
            "version": VERSION,
            "digest": self.hash.hexdigest(),
            "samples": self.samples,
            "parts": self.parts,
        }
        text = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8)
        with self.archive.open(zipfile.ZipInfo("about.npy"), "w") as file:
            np.lib.format.write_array(file, text)


def _fit(bits: np.ndarray, owner: np.ndarray, cm: np.ndarray, threads: int) -> tuple[float, float]:
    """Numbers of the model, from the begin of a part."""
    n_sites = int(np.searchsorted(cm, cm[0] + FITTED_CM, side="right"))
    begin = Haplotypes(np.array(bits[:n_sites]), len(owner), cm[:n_sites])
    return fit_model(begin, owner, threads=threads)


def require_calls(batch: PhasedSites, shown: Path, samples: list[str]) -> None:
    """Refuse calls of a reference that are missing, or heterozygous without phase.

    Raises
    ------
    UserError
        With the record and the sample.
    """
    missing = (batch.alleles == -1).any(axis=2) | (batch.alleles[:, :, 0] == ABSENT)
    if missing.any():
        row, sample = np.argwhere(missing)[0]
        raise UserError(
            f"{shown}, {batch.chrom}:{batch.pos[row]}: the call of sample '{samples[sample]}' is "
            "missing; a reference has no missing calls, so phase it with a program that fills "
            "them (Beagle), or leave the record out."
        )
    require_phase(batch, shown, samples)


def require_phase(batch: PhasedSites, shown: Path, samples: list[str]) -> None:
    """Refuse heterozygous calls without phase.

    Raises
    ------
    UserError
        With the record and the sample.
    """
    alleles = batch.alleles
    unphased = ~batch.phased & (alleles[:, :, 0] != alleles[:, :, 1]) & (alleles >= 0).all(axis=2)
    if unphased.any():
        row, sample = np.argwhere(unphased)[0]
        call = "/".join(map(str, alleles[row, sample].tolist()))
        raise UserError(
            f"{shown}, {batch.chrom}:{batch.pos[row]}: the call {call} of sample "
            f"'{samples[sample]}' is not phased; phase the file first (Beagle, SHAPEIT)."
        )


def _require_few(reference: Path, n_haplotypes: int) -> None:
    if n_haplotypes > MOST_HAPLOTYPES:
        raise UserError(
            f"{reference} has {n_haplotypes} haplotypes or more, and at most {MOST_HAPLOTYPES} can "
            "be copied from; choose samples that are like the targets (bcftools view -S)."
        )
