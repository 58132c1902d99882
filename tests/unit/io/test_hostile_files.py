"""Invalid and malicious files are refused in one sentence and never crash, hang or mislead a run.

Each file is made here. Difficult but valid files are in test_difficult_files.py, random ones in
tests/fuzz.
"""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import cyvcf2
import numpy as np
import pytest
from support.bcf_files import (
    AC,
    CHAR,
    DP,
    FLOAT,
    GT,
    INT8,
    INT16,
    INT32,
    META,
    bcf_of,
    calls_of,
    descriptor,
    format_of,
    header_of,
    record_of,
    typed,
)
from support.running import snakemake
from support.study import make_cohorts, write_study
from unit.io.test_vcf import bgzf, vcf_text_of

from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table, write_table
from popdesic.export.panel import export_vcf
from popdesic.io import bcf_records_cpu, vcf_header, vcf_text_cpu
from popdesic.io.batches import DecodeCounts
from popdesic.io.bcf import read_dictionaries
from popdesic.io.bed import open_bed, read_bim, read_fam
from popdesic.io.formats import read_sample_names
from popdesic.io.genotypes import BED_MAGIC, pack_bed, unpack_bed
from popdesic.io.vcf import stream_sites
from popdesic.io.vcf_header import read_header

SAMPLES = ["a", "b"]
GENOTYPES = format_of(GT, calls_of(["0/1", "1|1"]))
SOUND = record_of([GENOTYPES], n_samples=2)
#: FILTER of a record without filters.
NO_FILTER = b"\x00"


def refused(path: Path | str, out: Path, *words: str, **options) -> str:
    """Ingest a file; return the one-sentence error, which must hold its name and these words."""
    before = sorted(p.name for p in out.parent.iterdir())
    with pytest.raises(UserError) as error:
        ingest_cohort(path, out, **options)
    sentence = str(error.value)
    for word in (str(path), *words):
        assert word in sentence, sentence
    assert "\n" not in sentence and "\0" not in sentence
    assert sentence.endswith(".")
    assert sorted(p.name for p in out.parent.iterdir()) == before, "nothing half-written"
    return sentence


def write_bcf(path: Path, *records: bytes, header: bytes | None = None, **options) -> Path:
    content = bcf_of(header_of(SAMPLES) if header is None else header, records, **options)
    path.write_bytes(bgzf(content))
    return path


# --- BCF ------------------------------------------------------------------------------------------


def test_codes_equal_those_of_the_text_decoder():
    names = "RECORDS MULTIALLELIC INDEL SYMBOLIC STAR NO_ALT NON_ACGT UNPLACED SNPS MISSING_CALLS "
    names += "HALF_CALLS HAPLOID_CALLS PHASED UNPHASED HAPLOID_ERROR HAPLOID_DIPLOIDIZE RUN "
    names += "HAPLOID_MISSING HAPLOID_REF POLYPLOID HIGH_ALLELE BROKEN BAD_POS NO_GT"
    for name in names.split():
        assert getattr(bcf_records_cpu, name) == getattr(vcf_text_cpu, name), name


def test_htslib_reads_the_bcf_written_here(tmp_path):
    """The files of this module are valid apart from the error that each test adds."""
    records = [
        record_of(
            [format_of(DP, descriptor(INT16, 1) + b"\x07\x00\x2c\x01"), GENOTYPES],
            n_samples=2, name="rs1", pos=5, info=[typed([AC]) + typed([3])],
        ),
        record_of(
            [format_of(GT, calls_of(["0", "."], INT32))], n_samples=2, contig=1, pos=2**31 - 1
        ),
    ]  # fmt: skip
    path = write_bcf(tmp_path / "in.bcf", *records)
    found = [(v.CHROM, v.POS, v.ID, v.genotypes) for v in cyvcf2.VCF(str(path))]
    assert found == [
        ("1", 5, "rs1", [[0, 1, False], [1, 1, True]]),
        ("X", 2**31 - 1, None, [[0, False], [-1, False]]),
    ]
    counts = DecodeCounts()
    batches = list(stream_sites(path, haploid="diploidize", counts=counts))
    assert [b.genotypes.tolist() for b in batches] == [[[1, 2], [0, -1]]]
    assert (counts.haploid_calls, counts.missing, counts.phased, counts.unphased) == (1, 1, 1, 1)


HOSTILE_RECORDS = {
    "GT of size 0": (record_of([format_of(GT, b"\x01")], n_samples=2), "holds no alleles"),
    "GT missing": (record_of([format_of(GT, b"\x00")], n_samples=2), "holds no alleles"),
    "GT of floats": (
        record_of([format_of(GT, descriptor(FLOAT, 1) + bytes(8))], n_samples=2),
        "does not hold integers",
    ),
    "GT of letters": (
        record_of([format_of(GT, descriptor(CHAR, 3) + b"0/10/1")], n_samples=2),
        "does not hold integers",
    ),
    "GT of an unknown type": (
        record_of([format_of(GT, descriptor(9, 1) + bytes(8))], n_samples=2),
        "type or length",
    ),
    "GT below every allele": (
        record_of([format_of(GT, descriptor(INT8, 2) + b"\x02\x02\xa0\x04")], n_samples=2),
        "is not a genotype",
    ),
    "GT longer than the record": (
        record_of([format_of(GT, descriptor(INT8, 14) + b"\x02\x02\x02\x04")], n_samples=2),
        "type or length",
    ),
    "GT of 2**31 - 1 alleles": (
        record_of([format_of(GT, b"\xf1" + typed([2**31 - 1]) + bytes(4))], n_samples=2),
        "type or length",
    ),
    "GT of -1 alleles": (
        record_of([format_of(GT, b"\xf1\x11\xff" + bytes(4))], n_samples=2),
        "type or length",
    ),
    "more samples": (record_of([GENOTYPES], n_samples=3), "3 samples where the header has 2"),
    "no samples": (record_of([], n_samples=0), "0 samples"),
    "an unknown contig": (record_of([GENOTYPES], n_samples=2, contig=2), "contig"),
    "a negative contig": (record_of([GENOTYPES], n_samples=2, contig=-1), "contig"),
    "POS below 0": (record_of([GENOTYPES], n_samples=2, pos=-5), "POS '-5'"),
    "NUL in REF": (record_of([GENOTYPES], n_samples=2, alleles=[b"A\0", "C"]), "not text"),
    "NUL in ALT": (record_of([GENOTYPES], n_samples=2, alleles=["A", b"\0"]), "not text"),
    "latin-1 in REF": (record_of([GENOTYPES], n_samples=2, alleles=[b"\xe9", "C"]), "not text"),
    "latin-1 in ID": (record_of([GENOTYPES], n_samples=2, name=b"r\xe9"), "UTF-8"),
    "NUL in ID": (record_of([GENOTYPES], n_samples=2, name=b"r\0s"), "zero byte"),
    "a tab in ID": (record_of([GENOTYPES], n_samples=2, name="r\ts"), "tab"),
    "a line end in ID": (record_of([GENOTYPES], n_samples=2, name="r\ns"), "line end"),
    "an empty REF": (record_of([GENOTYPES], n_samples=2, alleles=["", "C"]), "not text"),
    "no alleles": (record_of([GENOTYPES], n_samples=2, alleles=[]), "no alleles"),
    "more alleles than there are": (
        record_of([GENOTYPES], n_samples=2, n_alleles=9),
        "not text",
    ),
    "more fields than there are": (record_of([GENOTYPES], n_samples=2, n_formats=2), "type"),
    "FILTER past the end": (record_of([GENOTYPES], n_samples=2, filters=b"\xe1"), "type"),
    "INFO past the end": (
        record_of([GENOTYPES], n_samples=2, info=[typed([AC]) + b"\xf3\x13"]),
        "type",
    ),
    "a shared part of 3 bytes": (b"\x03\0\0\0\0\0\0\0abc", "lengths"),
    "longer than the file": (record_of([GENOTYPES], n_samples=2, longer=(0, 999)), "cut short"),
    "longer than any record": (
        record_of([GENOTYPES], n_samples=2, longer=(2**31, 2**31)),
        "above the limit",
    ),
    "half of its lengths": (b"\x20\0\0", "cut short"),
    "no GT": (record_of([format_of(DP, typed([3, 4])[:0] + b"\x11\x03\x04")], n_samples=2), "'DP'"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_RECORDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_bcf_record_is_refused(tmp_path, name, threads):
    record, words = HOSTILE_RECORDS[name]
    path = write_bcf(tmp_path / "in.bcf", SOUND, record)
    refused(path, tmp_path / "raw", "record 2", words, threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_of_two_errors_is_reported(tmp_path, threads):
    """With a thread pool, the second error was once found first."""
    wrong = record_of([GENOTYPES], n_samples=3)
    path = write_bcf(tmp_path / "in.bcf", wrong, record_of([], n_samples=2, longer=(2**31, 2**31)))
    refused(path, tmp_path / "raw", "record 1", "3 samples", threads=threads)


def test_a_bcf_call_without_alleles_is_missing(tmp_path):
    """htslib writes '.' for such a call; it was once read as 0/0."""
    calls = descriptor(INT8, 2) + b"\x81\x81\x02\x04"
    path = write_bcf(tmp_path / "in.bcf", record_of([format_of(GT, calls)], n_samples=2))
    counts = ingest_cohort(path, tmp_path / "raw")
    assert unpack_bed(np.array(open_bed(tmp_path / "raw")), 2).tolist() == [[-1, 1]]
    assert (counts.decode.missing, counts.decode.half_calls) == (1, 0)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (header_of(["a", "b\0c"]), "zero byte"),
        (header_of(["a", "b"]).replace(b"\tb\n", b"\t\xe9\n"), "UTF-8"),
        (header_of(["a", "b"], META.replace("Depth", "D\0pth")), "line 4"),
        (header_of(["a", "b\rc"]), "carriage return"),
        (header_of(["a", "a"]), "occurs 2 times"),
        (header_of(["a", "b"], META.replace("ID=X", "ID=X\tY")), "tab"),
        (header_of(["a", "b"], META.replace("IDX=3", "IDX=1")), "given twice"),
        (header_of(["a", "b"], META.replace("IDX=3", "IDX=2000000000")), "usable number"),
        (header_of(["a", "b"], META.replace("IDX=3", "IDX=-3")), "usable number"),
    ],
)
def test_bcf_header_is_refused(tmp_path, header, words):
    path = write_bcf(tmp_path / "in.bcf", SOUND, header=header)
    refused(path, tmp_path / "raw", words)


def test_bcf_sample_line_with_nul(tmp_path):
    """htslib ends the header at NUL; all samples once got the first one's genotypes."""
    header = header_of(SAMPLES).replace(b"\tb", b"\0b")
    refused(write_bcf(tmp_path / "in.bcf", SOUND, header=header), tmp_path / "raw", "zero byte")


def test_bcf_of_another_version_or_with_a_wrong_header_length(tmp_path):
    path = write_bcf(tmp_path / "in.bcf", SOUND, magic=b"BCF\x02\x01")
    refused(path, tmp_path / "raw", "version 2.1", "bcftools view")
    path.write_bytes(b"BCF\x02\x02\xff\xff\xff\xff" + bytes(100))
    refused(path, tmp_path / "raw", "header does not end")
    whole = bcf_of(header_of(SAMPLES), [SOUND])
    for size in range(5, len(whole)):
        path.write_bytes(whole[:size])
        if size != len(whole) - len(SOUND):
            refused(path, tmp_path / "raw", "cut short")


def test_dictionary_with_and_without_indices(tmp_path):
    lines = [
        '##INFO=<ID=AN,Number=1,Type=Integer,Description="a, ID=wrong, \\"b\\">">',
        '##FILTER=<ID=PASS,Description="x">',
        '##FORMAT=<Description="ID=no,IDX=9",ID=GT,Number=1,Type=String>',
        '##INFO=<ID=GT,Number=1,Type=String,Description="the same key">',
        '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="x",IDX=7>',
        '##FILTER=<ID=q10,Description="x">',
        "##contig=<ID=1>",
        "##contig=<length=9,ID=b>",
    ]
    meta = "##fileformat=VCFv4.2\n" + "".join(f"{line}\n" for line in lines)
    path = write_bcf(tmp_path / "in.bcf", header=header_of(SAMPLES, meta))
    contigs, keys = read_dictionaries(read_header(path))
    assert contigs == {0: "1", 1: "b"}
    assert keys == {0: "PASS", 1: "AN", 2: "GT", 7: "DP", 8: "q10"}


# --- PLINK ----------------------------------------------------------------------------------------


def write_plink(folder: Path, bim: str | bytes, fam: str | bytes = "0 a 0 0 0 -9\n") -> Path:
    """PLINK files of one sample, heterozygous everywhere."""
    bim, fam = (text.encode() if isinstance(text, str) else text for text in (bim, fam))
    (folder / "in.bim").write_bytes(bim)
    (folder / "in.fam").write_bytes(fam)
    n_sites = bim.count(b"\n") + (not bim.endswith(b"\n"))
    genotypes = np.ones((n_sites, 1), np.int8)
    (folder / "in.bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    return folder / "in"


@pytest.mark.parametrize(
    ("pos", "words"),
    [
        ("2147483648", "beyond 2**31"),
        ("9223372036854775808", "beyond 2**31"),
        ("18446744073709551617", "beyond 2**31"),
        ("-9223372036854775809", "beyond 2**31"),
        ("1" * 40, "beyond 2**31"),
        ("1" * 5000, "not a whole number"),
        ("1e30", "beyond 2**31"),
        ("9e9999", "beyond 2**31"),
        ("inf", "not a whole number"),
        ("-inf", "not a whole number"),
        ("nan", "not a whole number"),
        ("", "6 columns"),
        ("1.5", "not a whole number"),
        ("1_0", "not a whole number"),
        ("0x10", "not a whole number"),
        ("\u0665", "not a whole number"),
        (" 5", "not a whole number"),
        ("True", "not a whole number"),
    ],
)
def test_bim_position_is_refused(tmp_path, pos, words):
    prefix = write_plink(tmp_path, f"1\trs1\t0\t5\tC\tA\n1\trs2\t0\t{pos}\tC\tA\n")
    refused(prefix, tmp_path / "raw", "in.bim, line 2", words)


def test_bim_positions_as_other_programs_write_them(tmp_path):
    texts = ["1e+05", "100000", "1E5", "+7", "12.0", "0", "-4", "2147483647"]
    bim = "".join(f"1\t.\t0\t{text}\tC\tA\n" for text in texts)
    bim_table = read_bim(write_plink(tmp_path, bim))
    assert bim_table.pos.tolist() == [100000, 100000, 100000, 7, 12, 0, -4, 2**31 - 1]
    assert bim_table.pos.dtype == np.int64


PLAIN_BIM = "1\trs1\t0\t5\tC\tA\n"
HOSTILE_TABLES = {
    "lone CR in .bim": (PLAIN_BIM + PLAIN_BIM.replace("rs1", "r\rs"), None, "in.bim, line 2"),
    "old Mac line ends": (PLAIN_BIM.replace("\n", "\r") * 2, None, "in.bim, line 1"),
    "lone CR in .fam": (PLAIN_BIM, "0 a\r 0 0 0 -9\n", "in.fam, line 1"),
    ".fam of blanks": (PLAIN_BIM, "   \n  \n", "in.fam, line 1"),
    ".fam of one newline": (PLAIN_BIM, "\n", "in.fam, line 1"),
    ".fam without samples": (PLAIN_BIM, "", "no samples"),
    ".bim of blanks": ("  \n", None, "in.bim, line 1"),
    ".bim of tabs": ("\t\t\t\t\t\n", None, "in.bim, line 1"),
    "latin-1 in .bim": (PLAIN_BIM.encode() + b"1\tr\xe9\t0\t5\tC\tA\n", None, "in.bim, line 2"),
    "latin-1 in .fam": (PLAIN_BIM, b"0 \xe9 0 0 0 -9\n", "in.fam, line 1"),
    "NUL in .bim": (PLAIN_BIM.replace("rs1", "r\0s"), None, "in.bim, line 1"),
    "NUL in .fam": (PLAIN_BIM, "0 a\0b 0 0 0 -9\n", "zero byte"),
    "byte order mark": ("\ufeff" + PLAIN_BIM, None, "byte order mark"),
    "UTF-16": (PLAIN_BIM.encode("utf-16"), None, "in.bim, line 1"),
    "a line without end": ("1\t" + "r" * (1 << 21), None, "longer than"),
    "five columns later": (PLAIN_BIM * 70_000 + "1\trs1\t0\t5\tC\n", None, "line 70001"),
}


@pytest.mark.parametrize("name", HOSTILE_TABLES)
def test_plink_table_is_refused(tmp_path, name):
    bim, fam, words = HOSTILE_TABLES[name]
    prefix = write_plink(tmp_path, bim, "0 a 0 0 0 -9\n" if fam is None else fam)
    refused(prefix, tmp_path / "raw", words)


def test_windows_line_endings_and_surrounding_blanks(tmp_path):
    bim = "  1  rs1 0\t5   C A \r\n1\trs2 0 6 C A\r\n"
    prefix = write_plink(tmp_path, bim, "0 a 0 0 0 -9\r\n")
    assert ingest_cohort(prefix, tmp_path / "raw").sites == 2
    assert (tmp_path / "raw.bim").read_text() == "1\trs1\t0\t5\tC\tA\n1\trs2\t0\t6\tC\tA\n"
    assert read_fam(prefix)["phenotype"].tolist() == ["-9"]


# --- identifiers are kept unchanged ---------------------------------------------------------------

ODD_IDS = [
    '"rs1"',
    'rs"2',
    "'rs3'",
    "rs,4;x",
    '""',
    "\\5",
    "é\u2028\x0b\x85\x1c",
    "NA",
    "nan",
    "#9",
]


def test_identifiers_stay_as_they_are(tmp_path):
    """From raw.bim through qc, panel and encoded .bim to an exported VCF, without added quotes."""
    bim = "".join(f"1\t{name}\t0\t{k + 1}\tC\tA\n" for k, name in enumerate(ODD_IDS))
    rng = np.random.default_rng(1)
    genotypes = rng.integers(0, 3, (len(ODD_IDS), 40)).astype(np.int8)
    samples = ['"s0"', 's"1', "NA", "'s3'", *(f"s{k}" for k in range(4, 40))]
    (tmp_path / "in.bim").write_text(bim, "utf-8", newline="\n")
    fam = "".join(f"0\t{name}\t0\t0\t0\t-9\n" for name in samples)
    (tmp_path / "in.fam").write_text(fam, "utf-8")
    (tmp_path / "in.bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    raw = tmp_path / "raw"
    ingest_cohort(tmp_path / "in", raw)
    assert (tmp_path / "raw.bim").read_bytes() == bim.encode()
    assert (tmp_path / "raw.fam").read_bytes() == fam.encode()
    sites, qc = tmp_path / "sites.tsv", tmp_path / "samples.tsv"
    summarize_cohort(raw, {}, sites, qc, min_sample_call_rate=0)
    ids = [line.split("\t")[2] for line in sites.read_bytes().decode().split("\n")[1:-1]]
    assert ids == ODD_IDS
    assert read_table(qc)["sample"].tolist() == samples
    assert [line.split("\t")[0] for line in qc.read_text("utf-8").split("\n")[1:-1]] == samples
    panel = tmp_path / "panel.tsv"
    build_panel({"c": sites}, panel, tmp_path / "counts.json", PanelFilters([], 0, 0, 0))
    assert load_panel(panel)[0].id.tolist() == ODD_IDS
    ids = [line.split("\t")[2] for line in panel.read_bytes().decode().split("\n")[2:-1]]
    assert ids == ODD_IDS
    encode_cohort(raw, qc, panel, tmp_path / "out", cohort="c", impute="mode")
    assert (tmp_path / "out" / "genotypes.bim").read_bytes() == bim.encode()
    export_vcf([tmp_path / "out" / "genotypes"], panel, tmp_path / "out.vcf.gz")
    lines = gzip.decompress((tmp_path / "out.vcf.gz").read_bytes()).decode().split("\n")
    records = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert [record[2] for record in records] == ODD_IDS


def test_tables_are_read_as_they_were_written(tmp_path):
    import pandas as pd

    table = pd.DataFrame({"sample": ['"a"', 'b"c', "d", "NA"], "x": ["", "'", "\\", '"']})
    write_table(tmp_path / "t.tsv", table)
    assert (tmp_path / "t.tsv").read_text() == 'sample\tx\n"a"\t\nb"c\t\'\nd\t\\\nNA\t"\n'
    assert read_table(tmp_path / "t.tsv").equals(table)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rs1", "r\0s", "zero byte"),
        ("rs1", "r\rs", "line end"),
        ("\n1\t", "\n1\r\t", "line end"),
        ("\tS1", "\tS\r1", "carriage return"),
        ("\tS1", "\tS\x001", "zero byte"),
        ("Depth", "De\0pth", "line 3"),
    ],
)
def test_names_that_no_table_can_hold_are_refused(tmp_path, old, new, words):
    text = vcf_text_of("1 5 rs1 A C GT 0/1 0/0", "1 6 rs1 A C GT 0/1 0/0")
    assert old in text
    path = tmp_path / "in.vcf"
    path.write_bytes(text.replace(old, new, 1).encode())
    refused(path, tmp_path / "raw", words)


# --- folders and special files --------------------------------------------------------------------


def special_file(kind: str, folder: Path) -> Path:
    path = folder / f"in.{kind}"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    return path


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_folders_and_special_files_are_refused(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    path = special_file(kind, Path())
    word = {"fifo": "FIFO", "socket": "socket", "device": "device", "folder": "directory"}[kind]
    refused(path, Path("raw"), word)
    with pytest.raises(UserError, match=word):
        read_sample_names(path, "cohorts.tsv, row 2")


@pytest.mark.parametrize("end", [".bed", ".bim", ".fam"])
def test_fifo_beside_plink_files(tmp_path, end):
    prefix = write_plink(tmp_path, PLAIN_BIM)
    (tmp_path / f"in{end}").unlink()
    os.mkfifo(tmp_path / f"in{end}")
    with pytest.raises(UserError, match="FIFO"):
        ingest_cohort(f"{prefix}.bed", tmp_path / "raw")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 253, "x" * 252 + ".bed", "d/" * 3000 + "x"])
def test_long_file_names(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(UserError) as error:
        ingest_cohort(path, tmp_path / "raw")
    assert "does not exist" in str(error.value) or "name too long" in str(error.value)
    with pytest.raises(UserError, match="null"):
        read_sample_names("in\0.vcf")


@pytest.mark.parametrize("kind", ["fifo", "long", "folder"])
def test_check_refuses_them_before_any_job(tmp_path, kind):
    """`popdesic check` reads sheets and headers in the same way as planning does."""
    study = write_study(tmp_path / "study", make_cohorts())
    sheet = study / "config" / "cohorts.tsv"
    rows = sheet.read_text().splitlines()
    columns = rows[1].split("\t")
    at = rows[0].split("\t").index("genotypes")
    columns[at] = "x" * 300 + ".vcf" if kind == "long" else special_file(kind, study).name
    sheet.write_text("\n".join([rows[0], "\t".join(columns), *rows[2:]]) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "popdesic", "check", str(study)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "cohorts.tsv, row 2" in said
    assert "Traceback" not in said
    words = {"fifo": "FIFO", "long": "does not exist", "folder": "directory"}[kind]
    assert words in said


def test_planning_of_a_run_does_not_wait_for_a_fifo(tmp_path):
    study = write_study(tmp_path / "study", make_cohorts())
    sheet = study / "config" / "cohorts.tsv"
    path = special_file("fifo", study)
    first = sheet.read_text().splitlines()[1].split("\t")[1]
    sheet.write_text(sheet.read_text().replace(first, path.name, 1))
    said = snakemake(study, "--dry-run", fails=True)
    assert "cohorts.tsv, row 2" in said
    assert "FIFO" in said


def test_long_sample_names(tmp_path):
    names = ["a" * 300, "b" * 70_000]
    path = tmp_path / "in.vcf"
    path.write_text(vcf_text_of("1 5 rs1 A C GT 0/1 0/0", samples=names))
    ingest_cohort(path, tmp_path / "raw")
    assert read_fam(tmp_path / "raw")["sample"].tolist() == names
    ingest_cohort(tmp_path / "raw", tmp_path / "again")
    assert read_sample_names(tmp_path / "again") == names


# --- endless lines --------------------------------------------------------------------------------


def test_header_line_without_end(tmp_path):
    """400 MB of one letter are refused at the limit, in time proportional to their size."""
    path = tmp_path / "in.vcf.gz"
    block = b"x" * (1 << 20)
    with gzip.open(path, "wb", 1) as file:
        file.write(b"##fileformat=VCFv4.2\n##x=")
        for _ in range(400):
            file.write(block)
    started = time.process_time()
    with pytest.raises(UserError, match="header does not end"):
        read_header(path)
    # 256 MB in pieces of 64 KiB, each searched once. Searching everything again after each piece
    # took quadratic time.
    assert time.process_time() - started < 20
    refused(path, tmp_path / "raw", "header does not end")


def test_long_header_lines_are_read(tmp_path):
    text = vcf_text_of("1 5 rs1 A C GT 0/1 0/0").replace(
        "##contig", "##x=" + "y" * 30_000_000 + "\n##contig", 1
    )
    (tmp_path / "in.vcf").write_text(text)
    started = time.process_time()
    assert read_header(tmp_path / "in.vcf").samples == ["S0", "S1"]
    assert time.process_time() - started < 5


def test_record_without_end(tmp_path, monkeypatch):
    from popdesic.io import vcf

    assert vcf.LONGEST_RECORD == vcf_header.LONGEST_RECORD == 1 << 30
    monkeypatch.setattr(vcf, "LONGEST_RECORD", 1 << 24)  # a gigabyte would take too long
    path = tmp_path / "in.vcf"
    path.write_text(vcf_text_of("1 5 rs1 A C GT 0/1 0/0") + "1\t" + "x" * (1 << 25))
    refused(path, tmp_path / "raw", "a line longer than the limit")


# --- POS 0 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vcf", "bcf", "plink"])
def test_pos_0_is_dropped_and_counted(tmp_path, kind):
    """POS 0, a telomere, is valid in VCF; it is not a position of a SNP and is no error."""
    path = tmp_path / "in.vcf"
    sites = [(0, "A", "C"), (7, "A", "C"), (0, "A", "AC"), (9, "A", "C")]
    if kind == "vcf":
        rows = [f"1 {pos} . {ref} {alt} GT 0/1 1|1" for pos, ref, alt in sites]
        path.write_text(vcf_text_of(*rows))
    elif kind == "bcf":
        rows = [
            record_of([GENOTYPES], n_samples=2, pos=pos, alleles=alleles) for pos, *alleles in sites
        ]
        write_bcf(path, *rows)
    else:
        rows = [f"1 . 0 {pos} {alt} {ref}\n" for pos, ref, alt in sites]
        path = write_plink(tmp_path, "".join(rows))
    counts = ingest_cohort(path, tmp_path / "raw").decode
    assert (counts.records, counts.unplaced, counts.snps) == (4, 2, 2)
    assert counts.dropped() == {"unplaced": 2}
    assert counts.records == counts.snps + sum(counts.dropped().values())
    assert read_bim(tmp_path / "raw").pos.tolist() == [7, 9]
