"""Turn a cohort's alleles to a reference genome: REF is its base, on its strand.

A file says by itself neither which of two alleles is the genome's (PLINK files often have the rarer
one as A1) nor on which strand they are written. The genome tells both, except at A/T and C/G sites
of a file with sites on both strands. It depends on the cohort's own file alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import atomic_path
from ..core.text import opened
from ..io.columns import TABLE_ROWS
from ..io.genotypes import BED_MAGIC, SWAPPED, bed_row_bytes
from ..io.site_classes import SV_REF
from ..io.sites import canonical_contig, chunks
from ..io.vcf_errors import show
from .match import MAX_FLIPPED, MIN_POSITIONS

_COMPLEMENT = np.arange(256, dtype=np.uint8)
_COMPLEMENT[list(b"ACGT")] = list(b"TGCA")
#: Characters of a sequence: letters, gaps and stops.
_BASES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-*."
#: Largest share of sites with mismatched alleles that causes no warning.
MANY = 0.01
#: From so many A/T and C/G sites on, a larger share without the genome's base shows another build.
MIN_AMBIGUOUS, MAX_NEITHER = 50, 0.25
COUNTS = [
    "ref_is_reference",
    "alt_is_reference",
    "on_other_strand",
    "strand_unknown",
    "neither",
    "not_in_reference",
]
#: ALT of a site with longer alleles, where one letter stands for it.
_LONG = ord("+")
_SAME, _SWAP, _STRAND, _UNKNOWN, _NEITHER, _ABSENT = range(6)


def read_fasta(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name (up to the first blank) and upper-case bytes of each sequence.

    Raises
    ------
    UserError
        The file is missing, damaged or not FASTA.
    """
    shown = f"{path} (qc.fasta)"
    name, parts = None, []
    with opened(path, "qc.fasta") as lines:
        for n_line, line in enumerate(lines, 1):
            if line.startswith(b">"):
                if name is not None:
                    yield name, np.frombuffer(b"".join(parts).upper(), np.uint8)
                name, parts = _contig_of(line, f"{shown}, line {n_line}"), []
                continue
            text = line.strip()
            if name is None and text:
                raise UserError(
                    f"{shown}, line {n_line}: a FASTA file starts with '>' and a contig's name; "
                    "correct the path."
                )
            if text and not text.isalpha() and text.strip(_BASES):
                raise UserError(
                    f"{shown}, line {n_line}: {show(text.strip(_BASES))} is not a sequence "
                    "of bases; write the file again."
                )
            parts.append(text)
    if name is None:
        raise UserError(f"{shown} has no sequence; a FASTA file starts with '>' and a name.")
    yield name, np.frombuffer(b"".join(parts).upper(), np.uint8)


def _contig_of(line: bytes, where: str) -> str:
    """Return the contig name in a line '>name ...'."""
    words = line[1:].split(maxsplit=1)
    name = words[0] if words else b""
    if b"\r" in line.rstrip(b"\r\n"):
        raise UserError(f"{where}: lines end in CR alone; convert them (dos2unix -c mac).")
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or not text:
        raise UserError(f"{where}: '>' is not followed by a contig name; write the file again.")
    return text


@dataclass(frozen=True)
class ReferenceVerdict:
    """What the genome said of a cohort's sites, and what was done.

    Attributes
    ----------
    counts : dict
        Sites by the names of `COUNTS`. `alt_is_reference` were turned, as were those
        `on_other_strand`, whichever of their alleles is REF. `neither` are to be dropped.
    in_doubt : bool
        Whether sites lie on both strands, so that those of A/T and C/G are in doubt.
    kept : bool array, (n_sites,)
        All but `neither`.
    contigs : list of str
        Names of contigs.
    contig, pos : int arrays, (n_sites,)
        Number in `contigs`, and position of each site.
    reference_only : int
        By how much the number of sites that are homozygous REF in all samples changed.
    warning : str
        What speaks against the genome or the file; empty if nothing.
    """

    counts: dict[str, int]
    in_doubt: bool
    kept: np.ndarray
    contigs: list[str]
    contig: np.ndarray
    pos: np.ndarray
    reference_only: int
    warning: str

    @property
    def changed(self) -> bool:
        """Whether any site was turned."""
        return self.counts[COUNTS[_SWAP]] + self.counts[COUNTS[_STRAND]] > 0

    def remarks(self, fasta: Path) -> list[str]:
        """Sentences for the log, if anything was turned or dropped."""
        _, swapped, strand, unknown, neither, _ = self.counts.values()
        if not (swapped or strand or neither):
            return []
        text = (
            f"turned to {fasta}: REF and ALT of {swapped} of {len(self.kept)} sites were swapped, "
            f"{strand} were on the other strand"
        )
        if unknown:
            text += f", and the strand of {unknown} is unknown"
        if neither:
            text += f"; {neither} do not have its base and were dropped"
        return [text + "."]

    def dropped(self) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """Contig, start and end (from 0, half-open) of sites to be dropped, by contig."""
        found = []
        for number in np.unique(self.contig[~self.kept]):
            pos = self.pos[~self.kept & (self.contig == number)]
            found.append((self.contigs[number], pos - 1, pos))
        return found


def turn_to_genome(bed: Path, bim: Path, n_samples: int, fasta: Path) -> ReferenceVerdict:
    """Rewrite a cohort's .bed and .bim so that REF is the genome's base wherever it is known.

    At a site with two alleles that are not each other's complement, one of the alleles or of their
    complements is the genome's base. Where it is ALT, the alleles are swapped and genotypes turned;
    where it is a complement, the site is on the other strand. An A/T or C/G site whose alleles are
    not the genome's base is dropped. One whose ALT is, is turned where no more than `MAX_FLIPPED`
    of the other sites are on the other strand; where nearly all are, it is as well. Else it is left
    as it is, and in doubt. A site with one known allele that is not the genome's base is fixed for
    ALT, and turned, unless strands are in doubt. Sites that the genome lacks (N too) stay as they
    are. Indels are never turned: all of REF must be the genome's, or the site is dropped.
    Structural variants have no base to compare.

    Parameters
    ----------
    bed, bim : Path
        Both are rewritten in place where alleles are turned; sites to be dropped stay.
    n_samples : int
        Samples of the .bed.
    fasta : Path
        FASTA, plain or compressed.

    Raises
    ------
    UserError
        The genome is of another build, or no valid FASTA.
    """
    contigs, contig, pos, ref, alt, long = _read_alleles(bim)
    base, wrong = _bases_at(fasta, contigs, contig, pos, long)
    one = alt == ord("0")
    plain = (base > 0) & (alt != _LONG)
    known = base > 0
    plain &= ~one & (_COMPLEMENT[ref] != alt)
    strand = plain & (base != ref) & (base != alt)
    n_plain, n_strand = int(plain.sum()), int(strand.sum())
    in_doubt = n_strand > MAX_FLIPPED * n_plain
    if n_plain >= MIN_POSITIONS and n_strand >= (1 - MAX_FLIPPED) * n_plain:
        strand, in_doubt = known & (alt != _LONG) & ~(plain & ~strand), False  # the whole file is
    ref, alt = (np.where(strand, _COMPLEMENT[letter], letter) for letter in (ref, alt))
    ambiguous = known & (_COMPLEMENT[ref] == alt)
    same = (base == ref) | (known & (alt == _LONG))
    swap = known & ~same & ((base == alt) | one)
    kind = np.select([~known, strand, same, swap], [_ABSENT, _STRAND, _SAME, _SWAP], _NEITHER)
    neither = (ambiguous & ~same & ~swap) | wrong
    kind[neither] = _NEITHER
    if in_doubt:
        unclear = (ambiguous & ~neither) | (one & known & ~same)
        kind[unclear] = _UNKNOWN
        swap &= ~unclear
    counts = dict(zip(COUNTS, np.bincount(kind, minlength=len(COUNTS)).tolist(), strict=True))
    of_snps = counts | {COUNTS[_NEITHER]: counts[COUNTS[_NEITHER]] - int(wrong.sum())}
    warning = _warning(of_snps, int(ambiguous.sum()), n_strand / max(n_plain, 1), fasta)
    change = _swap_rows(bed, n_samples, swap, neither)
    if (strand | swap).any():
        ref, alt = np.where(swap, base, ref), np.where(swap, ref, alt)
        _write_alleles(bim, strand | swap, ref, alt)
    return ReferenceVerdict(counts, in_doubt, ~neither, contigs, contig, pos, change, warning)


def _warning(counts: dict[str, int], ambiguous: int, strand: float, fasta: Path) -> str:
    """What the counts of a cohort say against its genome; empty if nothing.

    On whatever strand and in whatever order, the genome's base is one of the alleles of an A/T or
    C/G site. On another build it is so by chance, at half of these sites.

    Parameters
    ----------
    ambiguous : int
        A/T and C/G sites at positions that the genome has.
    strand : float
        Share of other sites that are on the other strand.

    Raises
    ------
    UserError
        The genome is of another build.
    """
    n = sum(counts.values())
    neither, absent = counts[COUNTS[_NEITHER]], counts[COUNTS[_ABSENT]]
    if ambiguous >= MIN_AMBIGUOUS and neither >= MAX_NEITHER * ambiguous:
        raise UserError(
            f"the base of {fasta} (qc.fasta) is no allele of {neither} of {ambiguous} A/T and C/G "
            "sites, on either strand (by chance half), so it is of another genome build; give the "
            "genome of these data, or lift them over (bcftools +liftover, CrossMap)."
        )
    swapped = counts[COUNTS[_SWAP]]
    if absent > MANY * n:
        return (
            f"{fasta} lacks the contig or position of {absent} of {n} sites, whose alleles stay as "
            "the file has them; give the genome of these data, with all of their contigs."
        )
    if ambiguous < MIN_AMBIGUOUS and strand >= MAX_NEITHER and strand < 1 - MAX_NEITHER:
        return (
            f"{strand:.0%} of the sites are on the other strand than {fasta} and were turned; on "
            "another genome build half would seem so, and there are too few A/T and C/G sites to "
            f"tell ({ambiguous}); is it the genome build of these data?"
        )
    if neither > MANY * n and swapped:
        return f"{neither} of {n} sites do not have the base of {fasta} and were dropped."
    return ""


def _read_alleles(
    bim: Path,
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[int, bytes]]:
    """Names of contigs; of each site the contig's number, position, REF and ALT in capitals.

    Of longer alleles the first base of REF, and `_LONG`; the last part has all of REF by site.
    """
    numbers: dict[str, int] = {}
    long: dict[int, bytes] = {}
    parts, n_before = [], 0
    with open(bim, encoding="utf-8", newline="\n") as file:
        while lines := [line.rstrip("\n").split("\t") for line in islice(file, TABLE_ROWS)]:
            chrom, _, _, pos, alt, ref = map(list, zip(*lines, strict=True))
            contig = [numbers.setdefault(name, len(numbers)) for name in chrom]
            for k, one in enumerate(ref):
                if len(one) + len(alt[k]) > 2:
                    long[n_before + k] = one.upper().encode()
                    ref[k], alt[k] = one[0], chr(_LONG)
            letters = (np.frombuffer("".join(one).upper().encode(), np.uint8) for one in (ref, alt))
            parts.append((np.array(contig, np.int32), np.array(pos, np.int64), *letters))
            n_before += len(lines)
    contig, pos, ref, alt = (np.concatenate(part) for part in zip(*parts, strict=True))
    return list(numbers), contig, pos, ref, alt, long


def _bases_at(
    fasta: Path,
    contigs: list[str],
    contig: np.ndarray,
    pos: np.ndarray,
    long: dict[int, bytes],
) -> tuple[np.ndarray, np.ndarray]:
    """The genome's base at each site, uint8, 0 where it has none of A, C, G and T.

    And bool (n_sites,): whether some of the bases of a `long` REF are not the genome's.
    """
    base, wrong = np.zeros(len(pos), np.uint8), np.zeros(len(pos), bool)
    wanted: dict[str, list[int]] = {}
    for number, name in enumerate(contigs):
        wanted.setdefault(canonical_contig(name), []).append(number)
    rows = np.array(list(long), np.int64)
    for name, sequence in read_fasta(fasta):
        numbers = wanted.pop(canonical_contig(name), [])
        here = np.flatnonzero(np.isin(contig, numbers) & (pos > 0) & (pos <= len(sequence)))
        base[here] = sequence[pos[here] - 1]
        for row in rows[np.isin(contig[rows], numbers)].tolist():
            ref, first = long[row], pos[row] - 1
            wrong[row] = ref != SV_REF.encode() and (
                sequence[first : first + len(ref)].tobytes() != ref
            )
    base[~np.isin(base, np.frombuffer(b"ACGT", np.uint8))] = 0
    return base, wrong & (base > 0)


def _swap_rows(bed: Path, n_samples: int, swap: np.ndarray, neither: np.ndarray) -> int:
    """Turn genotypes of rows; return how many more rows, without `neither`, are REF alone."""
    which = np.flatnonzero(swap | neither)
    if not len(which):
        return 0
    shape = len(swap), bed_row_bytes(n_samples)
    rows = np.memmap(bed, np.uint8, "r+", offset=len(BED_MAGIC), shape=shape)
    change = 0
    for first, last in chunks(len(which)):
        part = which[first:last]
        before = rows[part]
        change -= int(reference_only(before, n_samples).sum())
        part, before = part[swap[part]], before[swap[part]]
        after = SWAPPED[before]
        if n_samples % 4:
            after[:, -1] &= (1 << (2 * (n_samples % 4))) - 1
        change += int(reference_only(after, n_samples).sum())
        rows[part] = after
    rows.flush()
    return change


def reference_only(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Whether all called genotypes of each .bed row are homozygous REF, and some are called."""
    # Homozygous REF is 11, missing 01; all other codes, and padding, have the low bit unset.
    low = np.bitwise_count(rows & 0x55).sum(axis=1, dtype=np.int64) == n_samples
    return low & (rows & 0xAA).any(axis=1)


def _write_alleles(bim: Path, changed: np.ndarray, ref: np.ndarray, alt: np.ndarray) -> None:
    """Write REF and ALT of the changed sites into the .bim."""
    letters = np.array([chr(k) for k in range(256)], object)
    first = 0
    with (
        atomic_path(bim) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as out,
        open(bim, encoding="utf-8", newline="\n") as file,
    ):
        while lines := list(islice(file, TABLE_ROWS)):
            for k in np.flatnonzero(changed[first : first + len(lines)]).tolist():
                words = lines[k].rstrip("\n").split("\t")[:4]
                words += [letters[alt[first + k]], letters[ref[first + k]]]
                lines[k] = "\t".join(words) + "\n"
            out.writelines(lines)
            first += len(lines)
