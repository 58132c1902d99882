"""Compare a cohort's REF alleles with a reference genome, to find wrong builds and strands."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..io.bed import read_bim
from ..io.errors import UserError
from ..io.files import write_json
from ..io.sites import canonical_contig
from ..io.text import opened
from ..io.vcf_errors import show

logger = logging.getLogger("popdesic")

_COMPLEMENT = np.arange(256, dtype=np.uint8)
_COMPLEMENT[list(b"ACGT")] = list(b"TGCA")
#: Characters of a sequence: letters, gaps and stops.
_BASES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-*."
#: Largest share of sites with mismatched alleles that causes no warning.
MANY = 0.01
#: From so many A/T and C/G sites on, a larger share without the genome's base shows another build.
MIN_AMBIGUOUS, MAX_NEITHER = 50, 0.25
COUNTS = ["ref_is_reference", "alt_is_reference", "on_other_strand", "neither", "not_in_reference"]


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


def remark_on_alleles(counts: dict[str, int], ambiguous: int, fasta: Path) -> str:
    """What the counts of a cohort say against its build or strand; empty if nothing.

    On whatever strand and in whatever order, the genome's base is one of the alleles of an A/T or
    C/G site. On another build it is so by chance, at half of these sites.

    Parameters
    ----------
    counts : dict
        Of `check_reference`.
    ambiguous : int
        A/T and C/G sites at positions that the genome has.
    """
    n = sum(counts.values())
    strand, neither, absent = (counts[name] for name in COUNTS[2:])
    if strand + neither + absent <= MANY * n:
        return ""
    wrong = f"{strand + neither + absent} of {n} sites do not match the alleles of {fasta}: "
    if ambiguous >= MIN_AMBIGUOUS and neither >= MAX_NEITHER * ambiguous:
        return wrong + (
            f"its base is no allele of {neither} of {ambiguous} A/T and C/G sites, on either "
            "strand (by chance half), so it is of another genome build; give the genome of these "
            "data, or lift them over (bcftools +liftover, CrossMap)."
        )
    if strand > max(neither, absent):
        return wrong + (
            f"{strand} are on the other strand; write them on the genome's strand (bcftools "
            "+fixref)."
        )
    if absent > neither:
        return wrong + (
            f"it lacks the contig or position of {absent}; give the genome of these data, with all "
            "of their contigs."
        )
    return wrong + "is it the genome build of these data?"


def check_reference(prefix: Path, fasta: Path, out: Path) -> dict[str, int]:
    """Compare the alleles of a cohort's raw sites with a genome and write the counts as JSON.

    Every site is counted once: REF is the genome's base; ALT is (swapped alleles, which the panel
    corrects); one of them is its complement (other strand); neither is; or the genome lacks this
    position. The strand of A/T and C/G sites is ambiguous.

    Returns
    -------
    dict
        The counts, by the names of `COUNTS`.
    """
    bim = read_bim(prefix)
    ref, alt = (
        np.frombuffer("".join(bim[column].str.upper()).encode(), np.uint8)
        for column in ("ref", "alt")
    )
    contigs = bim.chrom.map(canonical_contig).to_numpy()
    pos = bim.pos.to_numpy()
    counts = dict.fromkeys(COUNTS, 0)
    found = np.zeros(len(bim), bool)
    for name, sequence in read_fasta(fasta):
        here = np.flatnonzero((contigs == canonical_contig(name)) & ~found & (pos <= len(sequence)))
        if not len(here):
            continue
        found[here] = True
        base, a, b = sequence[pos[here] - 1], ref[here], alt[here]
        same = base == a
        # An allele that the file does not know is taken for the genome's.
        swapped = (base == b) | ((b == ord("0")) & ~same)
        strand = (_COMPLEMENT[base] == a) | (_COMPLEMENT[base] == b)
        kinds = np.select([same, swapped, strand], [0, 1, 2], 3)
        for k, count in enumerate(np.bincount(kinds, minlength=4)):
            counts[COUNTS[k]] += int(count)
    counts["not_in_reference"] = int((~found).sum())
    ambiguous = int((found & (_COMPLEMENT[ref] == alt)).sum())
    if sentence := remark_on_alleles(counts, ambiguous, fasta):
        logger.warning(sentence)
    write_json(out, {"fasta": fasta.name, "counts": counts})
    return counts
