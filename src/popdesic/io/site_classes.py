"""Sites that are no biallelic SNPs: which ALT of a record become sites, and how they are written.

Every format follows the same rules. Each ALT of a record is a site of its own: it against all other
alleles of the record. Alleles are trimmed, so that files that write one variant in several ways
match: first the bases that both end with, then those that both start with, but one base of each
stays. Nothing is shifted to the left, which needs the genome. A variant in a repeat that two
files place differently stays two sites.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Classes of `sites.classes`, of which the first is always read.
CLASSES = ("snp", "indel", "sv", "multiallelic")
#: Alleles of a gVCF that stand for any other.
ANY_OTHER = ("<NON_REF>", "<*>")
#: REF of every structural variant: files write N, or the base before it.
SV_REF = "N"
#: REF and ALT of a record that stands for another one.
STAND_IN = "A", "C"
_BASES = frozenset("ACGT")
#: A symbolic ALT; the length behind its name is how a site of this project is written.
_SYMBOLIC = re.compile(r"<([A-Za-z][A-Za-z0-9:_.+-]*?)(?::([1-9][0-9]*))?>")


class OpenedSite(NamedTuple):
    """A site that one ALT of a record is.

    Attributes
    ----------
    allele : int
        Number of the ALT in the record, from 1.
    kind : {'snp', 'indel', 'sv'}
        By the trimmed alleles.
    pos : int
    ref, alt : str
        In capitals.
    """

    allele: int
    kind: str
    pos: int
    ref: str
    alt: str


class Opened(NamedTuple):
    """Sites of one record: none, if it stays as it is.

    Attributes
    ----------
    sites : list of OpenedSite
    left_out : int
        ALT that are no sites: spanning deletions, breakends, classes that are not read.
    no_length : bool
        Whether a symbolic ALT was left out because the record states no length.
    """

    sites: list[OpenedSite]
    left_out: int
    no_length: bool


class Record(NamedTuple):
    """A record of the file that others stand for.

    `others` has the numbers of alleles that stand for any other (`stand_ins`), and `n_alts` counts
    all ALT but these.
    """

    chrom: str
    pos: int
    ref_size: int
    n_alts: int
    filter: str
    others: tuple[int, ...] = ()


@dataclass
class OpenedRecords:
    """Which records of a piece stand for others, and for which.

    Attributes
    ----------
    origin : list of int
        Of each record that the decoder reads, the number of the file's record in the piece.
    sites : dict
        Site by the number of the record that stands for it.
    records : list of (int, Record, Opened)
        With the number of the first one that stands for it.
    no_length : list of str
        Places of records with a structural variant without a length.
    """

    origin: list[int] = field(default_factory=list)
    sites: dict[int, OpenedSite] = field(default_factory=dict)
    records: list[tuple[int, Record, Opened]] = field(default_factory=list)
    no_length: list[str] = field(default_factory=list)

    @property
    def n_records(self) -> int:
        """Records of the piece as the file has them."""
        return self.origin[-1] + 1 if self.origin else 0

    def split(self) -> list[int]:
        """Numbers of records that stand for one of several ALT."""
        return [
            first + k
            for first, record, opened in self.records
            if record.n_alts > 1
            for k in range(len(opened.sites))
        ]

    def add(self, number: int, record: Record, opened: Opened) -> bool:
        """Note the next record; whether others stand for it, or it stays as it is."""
        if opened.no_length:
            self.no_length.append(f"{record.chrom}:{record.pos}")
        if not opened.sites:
            return False
        self.records.append((len(self.origin), record, opened))
        self.sites.update(enumerate(opened.sites, len(self.origin)))
        self.origin += [number] * len(opened.sites)
        return True


def open_record(
    pos: int, ref: str, alts: Sequence[str], info: str, classes: Sequence[str]
) -> Opened:
    """Return the sites of a record that is no biallelic SNP.

    Parameters
    ----------
    pos : int
        From 1.
    ref, alts : str, list of str
        As in the file. Those of `ANY_OTHER` are no sites, and are not counted.
    info : str
        SVLEN and END as in INFO of a VCF; other keys are ignored.
    classes : names of `CLASSES`
        Those that are read beside SNPs. With any of them a SNP that is written with longer alleles
        is read, too.
    """
    sites, no_length = [], False
    n_alts = len(alts) - len(stand_ins(alts))
    if n_alts > 1 and "multiallelic" not in classes:
        return Opened([], 0, False)
    for number, alt in enumerate(alts, 1):
        found = None
        if alt in ANY_OTHER:
            continue
        if symbolic := _SYMBOLIC.fullmatch(alt):
            if "sv" in classes:
                length = symbolic[2] or _length(pos, info, number, len(alts))
                no_length |= length is None
                if length is not None:
                    name = f"<{symbolic[1].upper()}:{length}>"
                    found = OpenedSite(number, "sv", pos, SV_REF, name)
        else:
            found = _trimmed(number, pos, ref.upper(), alt.upper())
        if found is not None and (found.kind == "snp" or found.kind in classes):
            sites.append(found)
    return Opened(sites, n_alts - len(sites), no_length)


def stand_ins(alts: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the alleles of `ANY_OTHER` among the ALT of a record, from 1."""
    return tuple(number for number, alt in enumerate(alts, 1) if alt in ANY_OTHER)


def is_plain(ref: str, alts: Sequence[str], others: tuple[int, ...]) -> bool:
    """Whether a record is as decoders take it: one base each, and `others` at most behind."""
    n_alts = len(alts) - len(others)
    return len(ref) == n_alts == len(alts[0]) == 1 and len(others) < 2


def _trimmed(number: int, pos: int, ref: str, alt: str) -> OpenedSite | None:
    """The site of an ALT of bases; None for `*`, breakends, other letters, and REF itself."""
    if not (_BASES.issuperset(ref) and _BASES.issuperset(alt)) or ref == alt or not ref or not alt:
        return None
    same = _shared(ref[::-1], alt[::-1])
    ref, alt = ref[: len(ref) - same], alt[: len(alt) - same]
    same = _shared(ref, alt)
    ref, alt = ref[same:], alt[same:]
    kind = "snp" if len(ref) == len(alt) == 1 else "indel"
    return OpenedSite(number, kind, pos + same, ref, alt)


def _shared(one: str, other: str) -> int:
    """Bases at the start that both have, but for the last one of either."""
    most = min(len(one), len(other)) - 1
    return next((k for k in range(most) if one[k] != other[k]), most)


def _length(pos: int, info: str, number: int, n_alts: int) -> int | None:
    """Bases of a structural variant by SVLEN, or else by END; None if neither tells."""
    known = dict(part.partition("=")[::2] for part in info.split(";"))
    values = known.get("SVLEN", "").split(",")
    text = values[number - 1 if len(values) == n_alts else 0].lstrip("-")
    if text.isdecimal() and int(text) > 0:
        return int(text)
    end = known.get("END", "")
    return int(end) - pos if end.isdecimal() and int(end) > pos else None
