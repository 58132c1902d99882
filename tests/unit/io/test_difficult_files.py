"""Difficult genotype files give the documented counts or a one-sentence error.

The table of `config/README.md`, 'What becomes of awkward genotypes', row by row, through `ingest`.
A line of 100 MB is in test_vcf.py; the difficult files of other projects in tests/golden.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from unit.io.test_vcf import HEADER, bgzf, vcf_text_of

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.genotypes import unpack_bed

PLAIN = "1 10 rs1 A G GT 0/0 0/1"
#: Counts of PLAIN alone.
ALONE = {"records": 1, "snps": 1, "unphased": 2, "sites": 1, "samples": 2}


@dataclass
class Case:
    """A file, with either its non-zero counts and genotypes or words of the error message."""

    content: str | bytes
    counts: dict[str, int] = field(default_factory=dict)
    genotypes: list[list[int]] = field(default_factory=list)
    words: tuple[str, ...] = ()
    haploid: str | dict[str, str] = "error"


def plus(*records: str) -> str:
    """PLAIN with further records of two samples."""
    return vcf_text_of(PLAIN, *records)


def dropped(record: str, reason: str) -> Case:
    """A record that is dropped and counted, so that only PLAIN remains."""
    return Case(plus(record), ALONE | {"records": 2, reason: 1}, [[0, 1]])


TEXT = plus("1 11 . C T GT 1/1 ./.")
BOTH = ALONE | {"records": 2, "snps": 2, "unphased": 3, "missing": 1, "sites": 2}
BOTH_GENOTYPES = [[0, 1], [2, -1]]
ON_X = "X 11 . C T GT 1 0/1"
HALF = ALONE | {"records": 2, "snps": 2, "missing": 2, "half_calls": 2, "sites": 2}
HAPLOID = ALONE | {"records": 2, "snps": 2, "haploid_calls": 1, "unphased": 3, "sites": 2}
LATIN1 = TEXT.encode().replace(b"rs1", b"r\xe9")

CASES = {
    "multiallelic": dropped("1 11 . C T,G GT 0/1 1/2", "multiallelic"),
    "multiallelic with *": dropped("1 11 . C T,* GT 0/1 1/2", "multiallelic"),
    "indel": dropped("1 11 . C CT GT 0/1 1/1", "indel"),
    "two bases for two": dropped("1 11 . CA TG GT 0/1 1/1", "indel"),
    "symbolic": dropped("1 11 . C <DEL> GT 0/1 1/1", "symbolic"),
    "<NON_REF> of a gVCF": dropped("1 11 . C <NON_REF> GT 0/0 0/0", "reference_blocks"),
    "<NON_REF> beside an ALT": Case(
        plus("1 11 . C T,<NON_REF> GT 0/1 0/2"),
        ALONE | {"records": 2, "snps": 2, "missing": 1, "unphased": 3, "sites": 2},
        [[0, 1], [1, -1]],
    ),
    "breakend": dropped("1 11 . C C[2:5[ GT 0/1 1/1", "symbolic"),
    "*": dropped("1 11 . C * GT 0/1 1/1", "star"),
    "no ALT": Case(
        plus("1 11 . C . GT 0/0 ./."),
        ALONE | {"records": 2, "snps": 2, "one_allele": 1, "missing": 1, "unphased": 3, "sites": 2},
        [[0, 1], [0, -1]],
    ),
    "no ALT, but a call of one": Case(
        plus("1 11 . C . GT:DP 0/0:1 0/1:3"), words=("line 8", "'0/1'", "'S1'", "or none")
    ),
    "no ALT, no base": dropped("1 11 . N . GT 0/0 0/0", "no_alt"),
    "no ALT, no genotypes": dropped("1 11 . C . DP 3 4", "no_alt"),
    "ALT is REF": dropped("1 11 . C C GT 0/0 0/1", "no_alt"),
    "N": dropped("1 11 . N C GT 0/0 0/1", "non_acgt"),
    "half calls": Case(plus("1 11 . C T GT ./1 0|."), HALF, [[0, 1], [-1, -1]]),
    "single dots": Case(
        plus("1 11 . C T GT . ."), HALF | {"half_calls": 0}, [[0, 1], [-1, -1]]
    ),
    "haploid, default": Case(plus(ON_X), words=("line 8", "'1'", "'S0'", "contigs.haploid")),
    "haploid, diploidize": Case(plus(ON_X), HAPLOID, [[0, 1], [2, 1]], haploid="diploidize"),
    "haploid, missing": Case(
        plus(ON_X), HAPLOID | {"missing": 1}, [[0, 1], [-1, 1]], haploid="missing"
    ),
    "haploid, on X alone": Case(
        plus(ON_X), HAPLOID, [[0, 1], [2, 1]], haploid={"X": "diploidize"}
    ),
    "haploid, elsewhere": Case(
        plus("2 11 . C T GT 1 0/1"), words=("line 8", "haploid"), haploid={"X": "diploidize"}
    ),
    "triploid": Case(plus("1 11 . C T GT 0/0/1 0/1"), words=("line 8", "more than two alleles")),
    "dosages": Case(vcf_text_of("1 10 . A G DS 0.1 1.9"), words=("dosages", "hard calls")),
    "allele that is not there": Case(plus("1 11 . C T GT 0/2 0/1"), words=("line 8", "one ALT")),
    "the same site again": Case(
        plus(PLAIN.replace("0/0 0/1", "1/1 1/1")),
        ALONE | {"records": 2, "snps": 2, "unphased": 4, "duplicates": 1},
        [[0, 1]],
    ),
    "the same site again, far away": Case(
        plus("2 5 . A G GT 0/0 0/0", PLAIN),
        ALONE | {"records": 3, "snps": 3, "unphased": 6, "duplicates": 1, "sites": 2},
        [[0, 1], [0, 0]],
    ),
    "the same position, other alleles": Case(
        plus("1 10 . A T GT 0/1 0/1"),
        ALONE | {"records": 2, "snps": 2, "unphased": 4, "sites": 2},
        [[0, 1], [1, 1]],
    ),
    "chr1 and 1": Case(
        plus("chr1 10 . A G GT 1/1 1/1", "chr1 12 . A G GT 0/1 1/1"),
        ALONE | {"records": 3, "snps": 3, "unphased": 6, "duplicates": 1, "sites": 2},
        [[0, 1], [1, 2]],
    ),
    "not in order": Case(
        plus("1 5 . A G GT 1/1 1/1"),
        ALONE | {"records": 2, "snps": 2, "unphased": 4, "sites": 2},
        [[0, 1], [2, 2]],
    ),
    "a contig without a header line": Case(
        plus("Un_7|b 5 . A G GT 1/1 1/1"),
        ALONE | {"records": 2, "snps": 2, "unphased": 4, "sites": 2},
        [[0, 1], [2, 2]],
    ),
    "gzip": Case(gzip.compress(TEXT.encode()), BOTH, BOTH_GENOTYPES),
    "bgzip without an index": Case(bgzf(TEXT.encode()), BOTH, BOTH_GENOTYPES),
    "line ends of Windows": Case(TEXT.replace("\n", "\r\n"), BOTH, BOTH_GENOTYPES),
    "no newline at the end": Case(TEXT[:-1], BOTH, BOTH_GENOTYPES),
    "no samples": Case(
        TEXT.split("\tFORMAT")[0] + "\n", words=("has no samples", "give a file with genotypes")
    ),
    "no records": Case(vcf_text_of(), words=("has no records",)),
    "no SNP": Case(
        vcf_text_of("1 11 . C CT GT 0/1 1/1"), words=("none of its 1 records", "indel 1")
    ),
    "a sample twice": Case(
        vcf_text_of(PLAIN, samples=["a", "a"]), words=("line 6", "'a' occurs 2 times")
    ),
    "truncated bgzip": Case(bgzf(TEXT.encode())[:-28], words=("cut short", "copy or compress")),
    "truncated gzip": Case(gzip.compress(TEXT.encode())[:-20], words=("cut short",)),
    "truncated text": Case(TEXT[:-9], words=("line 8", "columns")),
    "not UTF-8": Case(LATIN1, words=("line 7", "UTF-8", "iconv")),
    "header not UTF-8": Case(
        TEXT.encode().replace(b"Depth", b"D\xe9pth"), words=("line 3", "UTF-8", "iconv")
    ),
    "UTF-16": Case(TEXT.encode("utf-16"), words=("is not a VCF",)),
    "joined files": Case(TEXT + TEXT, words=("header line", "bcftools concat")),
    "no header": Case(TEXT.removeprefix(HEADER), words=("is not a VCF",)),
    "empty": Case("", words=("is empty",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_documented_counts_or_a_one_sentence_error(tmp_path, monkeypatch, name, threads):
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    content = case.content.encode() if isinstance(case.content, str) else case.content
    Path("hard.vcf").write_bytes(content)
    if case.words:
        with pytest.raises(UserError) as error:
            ingest_cohort("hard.vcf", "raw", haploid=case.haploid, threads=threads)
        sentence = str(error.value)
        for word in ("hard.vcf", *case.words):
            assert word in sentence
        assert "\n" not in sentence and sentence.endswith(".")
        assert [p.name for p in tmp_path.iterdir()] == ["hard.vcf"], "nothing half-written"
        return
    counts = ingest_cohort("hard.vcf", "raw", haploid=case.haploid, threads=threads).as_dict()
    expected = {name: number for name, number in case.counts.items() if number}
    assert {name: number for name, number in counts.items() if number} == expected
    found = unpack_bed(np.array(open_bed("raw")), 2)
    assert found.tolist() == case.genotypes
    assert len(read_bim("raw")) == len(found)
