"""Files beside the sheets: lists of sites, genetic maps, references, genomes."""

from __future__ import annotations

import gzip
import logging
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from popdesic.cohort.beagle import _cut_map, _cut_reference
from popdesic.cohort.genetic_maps import read_map
from popdesic.cohort.impute import check_files
from popdesic.cohort.reference_check import read_fasta
from popdesic.core.errors import UserError
from popdesic.core.text import FIRST_BYTES, read_text
from popdesic.epistasis.reorder import read_restriction

PANEL = pd.DataFrame(
    [
        ("1", 100, "rs1", "A", "C"),
        ("chr1", 200, "rs2", "A", "G"),
        ("2", 100, "rs3", "C", "T"),
        ("chr2", 300, "rs4", "G", "T"),
        ("X", 50, "rs5", "G", "T"),
    ],
    columns=["chrom", "pos", "id", "ref", "alt"],
)


# --- lists of sites -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rows", "unmatched"),
    [
        ("chr1\t0\t1000\n2\t0\t1000\n", [0, 1, 2, 3], 0),
        ("1\t99\t100\nCHR2\t299\t300\n", [0, 3], 0),
        ("1\t100\t199\nchr1\t199\t200\n", [1], 1),
        ("track name=x\nbrowser position\n# y\n7\t0\t9\n1 0 100\n", [0], 1),
        ("rs1\nrs9\nchr2:100:C:T\n2:300:G:T\n", [0, 2, 3], 1),
        ("chr2:100:T:C\nrs5\n", [4], 1),
        ("\ufeff1\t0\t100\textra\twords\r\n\r\n2\t0\t100\r\n", [0, 2], 0),
        ("tracker\nrs3\n", [2], 1),
    ],
)
def test_contigs_match_with_and_without_chr_and_unmatched_rows_are_named(
    tmp_path, caplog, text, rows, unmatched
):
    path = tmp_path / "list"
    path.write_bytes(text.encode())
    with caplog.at_level(logging.WARNING):
        assert np.flatnonzero(read_restriction(path, PANEL)).tolist() == rows
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == bool(unmatched)
    if unmatched:
        assert f"{unmatched} of " in said[0] and "match no panel site: row " in said[0]


def test_contigs_absent_from_the_panel_are_named(tmp_path, caplog):
    (tmp_path / "list").write_text("1\t0\t999\n" + "".join(f"chr{k}\t0\t9\n" for k in range(3, 12)))
    read_restriction(tmp_path / "list", PANEL)
    said = caplog.records[0].getMessage()
    assert "9 of 10 entries" in said and "row 2 (chr3:0-9)" in said and "and others" in said
    assert "contigs not on the panel: chr10" in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"7\t0\t9\n", "none of its 1 entries matches a panel site"),
        (b"1\t0\t9\n1\t5\n", "row 2: '1 5' is not chrom, start, end"),
        (b"1\t0\t-9\n", "row 1"),
        ("1\t0\t\u00b29\n".encode(), "row 1"),
        (b"1\t9\t0\n", "starts at 9"),
        (b"rs1\nrs2 rs3\n", "row 2: 'rs2 rs3' is not one site"),
        (b"rs1\n\xff\n", "row 2: not UTF-8 text"),
        (b"rs1\0\n", "U+0000"),
        (b"", "is empty"),
        (b"#\n", "lists no site"),
        (gzip.compress(b"1\t0\t999\n" * 999, mtime=0)[:30], "cut short or damaged"),
    ],
)
def test_unusable_lists_are_refused(tmp_path, content, words):
    (tmp_path / "list").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(words)):
        read_restriction(tmp_path / "list", PANEL)


def test_a_gzipped_list_is_read(tmp_path):
    (tmp_path / "list.gz").write_bytes(gzip.compress(b"1\t0\t100\n", mtime=0))
    assert read_restriction(tmp_path / "list.gz", PANEL).tolist() == [True] + [False] * 4


# --- maps ---------------------------------------------------------------------------------------


def test_genetic_map_of_either_naming(tmp_path):
    sites = pd.DataFrame({"chrom": ["1", "1", "2"], "pos": [100, 150, 70]})
    path = tmp_path / "map"
    for text in (
        "chrom pos cm\nchr1 100 0\nchr1 200 2\n2 0 0\n2 140 1\n",
        "rate\tcm\tpos\tchrom\n9\t0\t100\t1\n9\t2\t200\t1\n9\t0\t0\tchr2\n9\t1\t140\tchr2\n",
    ):
        path.write_text(text)
        np.testing.assert_allclose(read_map(path, sites), [0, 1, 0.5])
    path.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_allclose(read_map(path, sites), [0, 1, 0.5])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"chrom pos cm\n1 5 nan\n", "row 2: cm is 'nan', but must be a finite number"),
        (b"chrom pos cm\n1 5 inf\n", "row 2: cm is 'inf'"),
        (b"chrom pos cm\n1 nan 0\n", "row 2: pos is 'nan'"),
        (b"chrom pos cm\n1 5.5 0\n", "row 2: pos is '5.5', but must be a whole number"),
        (b"chrom pos cm\n1 -5 0\n", "row 2: pos is '-5'"),
        (b"chrom pos cm\n1 99999999999 0\n", "row 2: pos is '99999999999'"),
        (b"chrom pos cm\n1 5 zero\n", "row 2: cm is 'zero'"),
        (b"chrom pos cm\n1 5 0\n\n1 9 2\n1 8 3\n", "row 5: pos of contig '1' is 8 after 9"),
        (b"chrom pos cm\n1 5 2\n1 8 1\n", "row 3: cm of contig '1' is 1 after 2"),
        (b"chrom pos cm\n1 5 2\n1 5 3\n", "row 3: pos of contig '1' is 5 as in the row before"),
        (b"chrom pos cm\n1 5 -2\n1 9 3\n", "row 2: cm is '-2', but must be a finite number of 0"),
        (b"chrom pos cm\n7 9 2\n7 9 2\n1 9 3\n", "row 3: pos of contig '7' is 9 as in"),
        (
            b"chrom pos cm\n1 5 2\n",
            "sites of contig '1' (100 to 100) lie beyond the genetic map (one",
        ),
        (b"chrom pos cm\n1 5 2\n1 9 2\n", "lie beyond the genetic map (5 to 9), and no contig"),
        (b"chrom pos cm\n1 5\n", "row 2: 2 columns where the header has 3"),
        (b"chrom pos cm\n1 5 0 7\n", "row 2: 4 columns"),
        (b"chrom pos cm\n", "a header but no rows"),
        (
            b"contig pos cm rate\n1 1 0 5\n",
            "row 1: a genetic map needs the columns chrom, pos and cm",
        ),
        (b"chrom pos\n", "row 1: a genetic map needs the columns chrom, pos and cm; found: chrom"),
        (b"\n\n", "contig '1' of the panel is not in the genetic map"),
        (b"chrom pos cm\n7 5 0\n", "contig '1' of the panel is not in the genetic map"),
        (b"chrom pos cm\n1 5 0\n\xe9 5 0", "row 3: not UTF-8 text"),
        (b"", "is empty"),
    ],
)
def test_unusable_genetic_maps_are_refused(tmp_path, content, words):
    (tmp_path / "map").write_bytes(content)
    sites = pd.DataFrame({"chrom": ["1"], "pos": [100]})
    with pytest.raises(UserError, match=re.escape(words)) as error:
        read_map(tmp_path / "map", sites)
    assert "map (genetic_map)" in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1 . 0 5\n1 . nan 6\n", "row 2: centimorgans is 'nan'"),
        (b"1 . 0 5\n1 . 1 6.5\n", "row 2: position is '6.5'"),
        (b"1 . 0 x\n1 . 1 9\n", "row 1: position is 'x'"),
        (b"1 . 0 5\n1 . 1\n", "row 2: a genetic map without a header has PLINK's four columns"),
        (b"1 . 2 5\nchr1 . 1 6\n", "row 2: cm of contig '1' is 1 after 2"),
        (b"1 . 2 5\n1 . 2 5\n", "row 2: pos of contig '1' is 5 as in the row before"),
        (b"1 . -2 5\n1 . 2 9\n", "row 1: centimorgans is '-2', but must be a finite number of 0"),
        (b"1 . 2 5\n\xe9", "row 2: not UTF-8"),
        (b"", "is empty"),
    ],
)
def test_maps_unusable_for_beagle_are_refused(tmp_path, content, words):
    (tmp_path / "map").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(words)) as error:
        _cut_map(tmp_path / "map", "1", tmp_path / "out")
    assert "map (genetic_map)" in str(error.value)


def test_maps_keep_their_numbers(tmp_path):
    (tmp_path / "map").write_text("chr id cm pos\n#\n7 . x y z\nchr1 rs 0 1\n1 rs 0.125 2e3\n")
    assert _cut_map(tmp_path / "map", "1", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "1 . 0.0 1\n1 . 0.125 2000\n"


# --- references ---------------------------------------------------------------------------------

HEAD = b"##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tR1\tR2\n"
RECORD = b"1\t100\t.\tA\tC\t.\t.\t.\tGT\t0|1\t1|1\n"


def cut(tmp_path: Path, content: bytes):
    (tmp_path / "ref").write_bytes(content)
    sites = PANEL[:1].assign(mode=0)
    return _cut_reference(tmp_path / "ref", sites, "1", tmp_path / "out")


def test_a_reference_is_cut_to_the_panel(tmp_path):
    for content in (HEAD + RECORD, HEAD + RECORD.replace(b"\n", b"\r\n")):
        for packed in (content, gzip.compress(content, mtime=0)):
            within, swapped = cut(tmp_path, packed)
            assert within.tolist() == [True] and swapped.tolist() == [False]
            assert (tmp_path / "out").read_bytes().endswith(b"\tGT\t0|1\t1|1\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"sample\n", "is not a VCF file"),
        (b"", "is empty"),
        (gzip.compress(HEAD + RECORD * 999, mtime=0)[:-20], "cut short or damaged"),
        (HEAD + RECORD[:-5] + b"\n", "line 3: 10 columns where the #CHROM line has 11"),
        (HEAD + b"1\t100\n", "line 3: 2 columns"),
        (HEAD.split(b"#C")[0] + RECORD, "line 2: 11 columns"),
        (HEAD + RECORD.replace(b"100", b"1e2"), "line 3: '1e2', 'A', 'C' are not a position"),
        (HEAD + RECORD.replace(b"\tA", b"\t\xe9"), "line 3"),
        (HEAD + RECORD.replace(b"0|1", b"0/1"), "line 3: the record at 1:100 is not phased"),
        (HEAD + RECORD.replace(b"0|1", b".|1"), "line 3: the record at 1:100 has a missing"),
        (HEAD + RECORD.replace(b"0|1", b"0"), "line 3: the record at 1:100 has genotypes that"),
        (HEAD + RECORD.replace(b"0|1", b"0|2"), "line 3: the record at 1:100 has genotypes that"),
        (HEAD + RECORD.replace(b"GT", b"DS"), "line 3: the record at 1:100 has genotypes that"),
    ],
)
def test_unusable_references_are_refused(tmp_path, content, words):
    with pytest.raises(UserError, match=re.escape(words)):
        cut(tmp_path, content)


def test_a_contig_placeholder_has_one_value_in_a_file_name(tmp_path):
    for name in ("r.1.1.vcf", "r.1.2.vcf", "r.X.X.vcf"):
        (tmp_path / name).write_text("x")
    found = check_files({"reference": "r.{contig}.{contig}.vcf", "map": ""}, tmp_path, "c")
    assert [path.name for path in found["reference"]] == ["r.1.1.vcf", "r.X.X.vcf"]
    absolute = f"{tmp_path}/r.1.{{contig}}.vcf"
    found = check_files({"reference": absolute, "map": ""}, Path("elsewhere"), "c")
    assert len(found["reference"]) == 2
    for wrong in ("x" * 300, "x" * 300 + "{contig}", "a\0b"):
        with pytest.raises(UserError, match="there is no such file"):
            check_files({"reference": wrong, "map": ""}, tmp_path, "c")


# --- genomes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"ACGT\n", "line 1: a FASTA file starts with '>'"),
        (b"\n\n", "has no sequence"),
        (b">\nACGT\n", "line 1: '>' is not followed by a contig name"),
        (b">\xe9\nACGT\n", "line 1: '>' is not followed by a contig name"),
        (b">1\nACGT\n1\t5\n", "line 3: '1\\t5' is not a sequence"),
        (b">1\nAC\0GT\n", "line 2: '\\x00' is not a sequence"),
        (b">1 x\rACGT\r", "line 1: lines end in CR alone"),
        (gzip.compress(b">1\n" + b"ACGT\n" * 999, mtime=0)[:-12], "cut short or damaged"),
    ],
)
def test_unusable_genomes_are_refused(tmp_path, content, words):
    (tmp_path / "g.fa").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(words)) as error:
        list(read_fasta(tmp_path / "g.fa"))
    assert "g.fa (qc.fasta)" in str(error.value)


def test_a_genome_with_gaps_and_codes(tmp_path):
    (tmp_path / "g.fa").write_bytes(b"\n>chr1 words\r\nacgtnry-\r\n\r\nAC*\r\n>2\n")
    (one, bases), (two, none) = read_fasta(tmp_path / "g.fa")
    assert (one, bases.tobytes(), two, none.tobytes()) == ("chr1", b"ACGTNRY-AC*", "2", b"")


# --- first bytes of a file ----------------------------------------------------------------------


def test_the_first_bytes_are_cut_after_a_whole_line(tmp_path):
    path = tmp_path / "text"
    path.write_text("é\n" * FIRST_BYTES)
    text = read_text(path, "key", beginning=True)
    assert set(text.splitlines()) == {"é"} and text.endswith("\n") and len(text) < FIRST_BYTES
    path.write_text("é" * FIRST_BYTES)
    assert set(read_text(path, "key", beginning=True)) == {"é"}
