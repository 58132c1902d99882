"""Slow, obvious versions of what the package computes: the oracles of the tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np


@dataclass
class ParsedVcf:
    """Biallelic SNPs of a VCF text: (chrom, pos, id, ref, alt), line and genotypes of each."""

    samples: list[str]
    sites: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    genotypes: list[list[int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def array(self) -> np.ndarray:
        """Return the genotypes as (n_sites, n_samples) int8, -1 for missing."""
        return np.array(self.genotypes, np.int8).reshape(len(self.sites), len(self.samples))


def parse_vcf_text(text: str, haploid: str = "error") -> ParsedVcf:
    """Parse a VCF by the rules of the design, one line and one call at a time.

    Raises
    ------
    ValueError
        With a word for what is wrong: columns, empty, pos, gt, haploid, ploidy, allele, malformed,
        or header.
    """
    names = ["records", "multiallelic", "indel", "symbolic", "star", "no_alt", "non_acgt", "snps"]
    names += ["unplaced", "missing", "half_calls", "haploid_calls", "phased", "unphased"]
    parsed = ParsedVcf([], counts=dict.fromkeys(names, 0))
    counts = parsed.counts
    in_header = True
    for n_line, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if in_header:
            if line.startswith("#CHROM"):
                parsed.samples = line.split("\t")[9:]
                in_header = False
            continue
        if line == "":
            continue
        if line.startswith("#"):
            raise ValueError("header")
        counts["records"] += 1
        columns = line.split("\t")
        if len(columns) != 9 + len(parsed.samples):
            raise ValueError("columns")
        chrom, pos, site_id, ref, alt = columns[:5]
        if "" in (chrom, pos, site_id, ref, alt):
            raise ValueError("empty")
        kind = _kind_of_site(ref, alt)
        if not re.fullmatch("[0-9]{1,10}", pos) or int(pos) >= 2**31:
            raise ValueError("pos")
        if kind == "snps" and int(pos) == 0:
            raise ValueError("pos")
        if kind != "snps":
            counts[kind] += 1
            continue
        keys = columns[8].split(":")
        if "GT" not in keys:
            raise ValueError("gt")
        row = [_read_call(c, keys.index("GT"), haploid, counts) for c in columns[9:]]
        counts["snps"] += 1
        parsed.sites.append((chrom, int(pos), site_id, ref, alt))
        parsed.lines.append(n_line)
        parsed.genotypes.append(row)
    return parsed


def _kind_of_site(ref: str, alt: str) -> str:
    if alt == ".":
        return "no_alt"
    if "," in alt:
        return "multiallelic"
    if re.search(r"[<\[\]]", alt) or (len(alt) > 1 and (alt[0] == "." or alt[-1] == ".")):
        return "symbolic"
    if alt == "*":
        return "star"
    if len(ref) > 1 or len(alt) > 1:
        return "indel"
    if ref not in "ACGTacgt" or alt not in "ACGTacgt":
        return "non_acgt"
    return "no_alt" if ref.upper() == alt.upper() else "snps"


def _read_call(column: str, index: int, haploid: str, counts: dict[str, int]) -> int:
    if column == "":
        raise ValueError("malformed")
    values = column.split(":")
    if len(values) <= index:
        counts["missing"] += 1
        return -1
    call = values[index]
    if not re.fullmatch(r"(\.|[0-9]+)([/|](\.|[0-9]+))*", call):
        raise ValueError("malformed")
    alleles = re.split(r"[/|]", call)
    if len(alleles) > 2:
        raise ValueError("ploidy")
    if any(allele != "." and int(allele) > 1 for allele in alleles):
        raise ValueError("allele")
    if "." in alleles:
        counts["missing"] += 1
        counts["half_calls"] += len(set(alleles)) == 2
        return -1
    if len(alleles) == 1:
        counts["haploid_calls"] += 1
        if haploid == "error":
            raise ValueError("haploid")
        if haploid == "missing":
            counts["missing"] += 1
            return -1
        return 2 * int(alleles[0])
    counts["phased" if "|" in call else "unphased"] += 1
    return int(alleles[0]) + int(alleles[1])
