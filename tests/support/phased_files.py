"""Phased VCF files that tests write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def write_vcf(path: Path, samples: Sequence[str], records: Sequence[str]) -> Path:
    """Write records, 'CHROM POS ID REF ALT call call …', as a VCF."""
    contigs = dict.fromkeys(record.split()[0] for record in records)
    lines = ["##fileformat=VCFv4.2", *(f"##contig=<ID={name}>" for name in contigs)]
    lines.append('##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">')
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join([*columns, *samples]))
    for record in records:
        *site, calls = record.split(maxsplit=5)
        lines.append("\t".join([*site, ".", "PASS", ".", "GT", *calls.split()]))
    path.write_text("\n".join([*lines, ""]))
    return path


def phased_records(
    haplotypes: np.ndarray, pos: np.ndarray, chrom: str = "1", bases: str = "AC"
) -> list[str]:
    """Records of diploid samples: haplotypes (n_sites, 2 n_samples) of 0, 1 and -1, missing."""
    shown = np.array(["0", "1", "."])
    calls = shown[np.asarray(haplotypes)]
    return [
        f"{chrom} {at} s{at} {bases[0]} {bases[1]} "
        + " ".join(f"{a}|{b}" for a, b in zip(row[::2], row[1::2], strict=True))
        for at, row in zip(pos, calls, strict=True)
    ]
