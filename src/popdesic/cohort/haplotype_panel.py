"""Freeze a phased reference as the file that haplotype copying copies from.

`io.frozen_haplotypes` describes and reads it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..copying.copying import Haplotypes, pack_rows
from ..copying.copying_plan import MOST_HAPLOTYPES
from ..copying.fit import fit_model
from ..core.errors import UserError
from ..core.files import atomic_path, require_output
from ..core.text import read_text
from ..io.frozen_haplotypes import (
    VERSION,
    HaplotypePanel,
    is_frozen,
    open_haplotypes,
    require_intact,
)
from ..io.phased import (
    ABSENT,
    PhasedSites,
    read_phased_samples,
    require_calls,
    require_few,
    require_same,
    stream_phased,
)
from .genetic_maps import UnmappedContigError, centimorgans, parse_map
from .impute import matching_files
from .map_rates import map_file, rate_of
from .sources import expand_sources

log = logging.getLogger("popdesic")

#: Parts of one contig: two pseudo-autosomal regions and what lies between them.
MOST_PARTS = 3
#: Centimorgans a megabase where there is no map.
USUAL_RATE = 1.0
#: Centimorgans of a part on which the numbers of the model are fitted.
FITTED_CM = 30.0
#: What is read of a spooled part at a time.
COPY_BYTES = 1 << 22


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
        `USUAL_RATE` centimorgans a megabase; or a rate (`map_rates.rate_of`).
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
        require_same(one, files[0], samples)
    require_few(reference, len(samples), MOST_HAPLOTYPES)
    counts: Counter = Counter()
    batches = ((one, sites) for one in files for sites in stream_phased(one, counts, threads))
    scale = MapScale(genetic_map, reference)
    found = write_haplotypes(out, samples, batches, scale, threads)
    counts["same_site"] = found.pop("same_site")
    counts["snps"] -= counts["same_site"]
    return found | {kind: counts[kind] for kind in sorted(counts) if counts[kind]}


def write_haplotypes(
    out: Path,
    samples: list[str],
    batches: Iterable[tuple[Path, PhasedSites]],
    scale: MapScale,
    threads: int,
) -> dict[str, int]:
    """Write sites in order, each with the file that messages name, as a frozen reference.

    Returns
    -------
    dict
        Numbers of samples, haplotypes (most of a part), parts, and of repeated sites.

    Raises
    ------
    UserError
        As `freeze_haplotypes`, of the sites.
    """
    with atomic_path(out) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        panel = _Writer(archive, samples, scale, out.parent, threads)
        for panel.reference, sites in batches:
            panel.add(sites)
        panel.end_part()
        if not panel.parts:
            raise UserError(
                f"{scale.reference} has no biallelic SNP; a reference for copying needs them."
            )
        panel.finish()
    most = max(part["haplotypes"] for part in panel.parts)
    sizes = {"samples": len(samples), "haplotypes": most, "parts": len(panel.parts)}
    return sizes | {"same_site": panel.repeated}


@contextmanager
def frozen_for(
    reference: Path, genetic_map: str, folder: Path, threads: int
) -> Iterator[HaplotypePanel]:
    """A frozen reference, opened; a VCF is frozen in a folder for as long as it is needed.

    Raises
    ------
    UserError
        As `freeze_haplotypes`; or a map is given with a frozen reference.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if is_frozen(reference):
        if genetic_map:
            raise UserError(
                f"{reference} is frozen with its own map; leave --map out, or freeze the reference "
                "again with this map."
            )
        panel = open_haplotypes(reference)
        require_intact(panel)
        yield panel
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".frozen") as place:
        frozen = Path(place) / "reference.npz"
        freeze_haplotypes(reference, frozen, genetic_map, threads=threads)
        yield replace(open_haplotypes(frozen), path=reference)  # as sentences name it


def reference_files(reference: Path) -> list[Path]:
    """The files that a path or pattern of a reference names, in natural order.

    Patterns are those of the cohort sheet (`sources.expand_sources`): `{contig}` stands for the
    name of a chromosome.
    """
    return [Path(one) for one in expand_sources(str(reference))]


class MapScale:
    """A genetic map, parsed once, or a rate of recombination."""

    def __init__(self, pattern: str, reference: Path) -> None:
        self.shown, self.reference = f"{pattern} (genetic map)", reference
        self.table, self.rate = None, rate_of(pattern) or USUAL_RATE
        if not map_file(pattern):
            return
        if not (files := matching_files(pattern)):
            raise UserError(
                f"there is no genetic map '{pattern}'; correct the path ('{{contig}}' in it stands "
                "for the name of a chromosome)."
            )
        parts = [parse_map(read_text(one, "genetic map"), f"{one} (genetic map)") for one in files]
        self.table = pd.concat(parts, ignore_index=True)

    def of(self, contig: str, pos: np.ndarray) -> np.ndarray:
        """Genetic positions, float64 (n_sites,)."""
        if self.table is None:
            return pos * (self.rate * 1e-6)
        try:
            sites = pd.DataFrame({"chrom": contig, "pos": pos})
            return centimorgans(self.table, sites, self.shown)
        except UnmappedContigError:
            raise UserError(
                f"{self.shown}: contig '{contig}' of {self.reference} is not in the genetic map; "
                "add it to the map, or leave the contig out."
            ) from None


class _Writer:
    """Writes parts one after the other; rows of bits wait in a temporary file until one ends."""

    def __init__(self, archive, samples: list[str], scale: MapScale, folder, threads: int) -> None:
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
        require_few(self.reference, 2 * len(haploid) - int(haploid.sum()), MOST_HAPLOTYPES)
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
