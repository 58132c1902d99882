"""Read a frozen reference: what haplotype copying copies from.

The file is an uncompressed .npz, read through a memory map. Its arrays are those of its parts. A
part is a run of sites of one contig at which each sample has the same number of alleles. A contig
is one part, X in a file with haploid males up to three: both pseudo-autosomal regions and the rest.
A part has one haplotype for each allele that a sample has there. The digest covers all of it.
`cohort.haplotype_panel` writes it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.triangle import map_npz

VERSION = 1
#: Arrays of a part but its haplotypes, in the order of the digest.
COLUMNS = ("pos", "ref", "alt", "ids", "cm", "owner")
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


def count_haplotypes(path: Path, usual: int = 4_000) -> int:
    """Haplotypes of a frozen reference, two for each sample; `usual` if it is not there yet."""
    try:
        return 2 * len(open_haplotypes(path).samples)
    except UserError:
        return usual


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
