"""Files of sets are recognised by their content; sites are assigned by position."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from popdesic.core.errors import UserError
from popdesic.epistasis.set_list import read_set_pairs, read_sets, sites_of_ranges


def written(folder: Path, *lines: str) -> Path:
    path = folder / "sets"
    path.write_text("\n".join(lines) + "\n")
    return path


def content(path: Path) -> list[tuple]:
    return [(one.name, one.row, one.first, one.second) for one in read_sets(path)]


def test_rows_of_one_name_in_a_bed_are_one_set(tmp_path):
    path = written(
        tmp_path, "track name=x", "#c", "chr1\t9\t20\tA\t0\t+", "", "2 5 7", "chr1 30 40 A 0 -",
    )  # fmt: skip
    found = content(path)
    assert found == [("A", 3, [("chr1", 9, 20), ("chr1", 30, 40)], []),
                     ("2:5-7", 5, [("2", 5, 7)], [])]  # fmt: skip
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert content(path) == found


def test_names_may_have_spaces_between_tabs_and_a_dot_is_none(tmp_path):
    path = written(tmp_path, "1\t0\t9\tgene A", "1\t9\t20\tgene B", "1\t5\t6\tHLA 5 10")
    assert [one[0] for one in content(path)] == ["gene_A", "gene_B", "HLA_5_10"]
    path = written(tmp_path, "1\t0\t9\t.\t0\t+", "1\t20\t30\t.\t0\t+", "1\t40\t50\t")
    assert [one[0] for one in content(path)] == ["1:0-9", "1:20-30", "1:40-50"]
    path = written(tmp_path, "1\t0\t9\t2\t5\t8\t.", "1\t0\t9\t2\t5\t8\tA x B\t7")
    assert [one[0] for one in content(path)] == ["1:0-9 x 2:5-8", "A_x_B"]


def test_two_ranges_are_a_pair_of_sets(tmp_path):
    path = written(tmp_path, "1 0 10 2 5 9 AxB 7", "1 0 10 3 5 9 AxB", "1 2 3 X 4 5")
    assert content(path) == [
        ("AxB", 1, [("1", 0, 10)], [("2", 5, 9), ("3", 5, 9)]),
        ("1:2-3 x X:4-5", 3, [("1", 2, 3)], [("X", 4, 5)]),
    ]


def gtf(kind: str, start: int, end: int, about: str) -> str:
    return f"1\tsource\t{kind}\t{start}\t{end}\t.\t+\t.\t{about}"


def test_genes_of_a_gtf_are_sets(tmp_path):
    named = 'gene_id "G1"; gene_name "ABC";'
    rows = [gtf("gene", 10, 50, named), gtf("exon", 10, 20, named), gtf("exon", 5, 90, named)]
    assert content(written(tmp_path, *rows)) == [("ABC_G1", 1, [("1", 9, 50)], [])]
    # without rows of genes, all rows of a gene
    assert content(written(tmp_path, *rows[1:])) == [
        ("ABC_G1", 1, [("1", 9, 20), ("1", 4, 90)], [])
    ]
    other = 'gene_id "G"; ref_gene_id "R"; ref_gene_name "N"'
    assert content(written(tmp_path, gtf("gene", 1, 2, other)))[0][0] == "G"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["# nothing"], "names no set"),
        (["rs1"], "row 1: 'rs1' is no row of a BED"),
        (["1 5 9 A", "rs2"], "row 2: 'rs2' is no row of a BED file, as the rows before"),
        (["1 5 9 A", "1 5 9 2 6 8"], "row 2: '1 5 9 2 6 8' is no row of a BED file"),
        (["1 5 9 A", "1 9 5 B"], "row 2: the range starts at 9 but ends before that, at 5"),
        (["1 1 2 1 7 6 A"], "row 1: the range starts at 7"),
        ([gtf("gene", 1, 5, "ID=gene:x;Name=y")], "row 1: 'ID=gene:x;Name=y' has no gene_id"),
        ([gtf("gene", 0, 5, 'gene_id "x"')], "positions of a GTF file begin at 1"),
        ([gtf("gene", 7, 5, 'gene_id "x"')], "ends before that, at 5"),
    ],
)
def test_bad_files_are_refused_with_file_row_and_value(tmp_path, lines, said):
    path = written(tmp_path, *lines)
    with pytest.raises(UserError) as error:
        read_sets(path)
    assert said in str(error.value) and f"{path} (epistasis.sets)" in str(error.value)


def test_sites_are_assigned_by_position(tmp_path):
    chrom = np.array(["chr1", "2", "chr1", "chr1", "2"], object)
    within = sites_of_ranges(chrom, np.array([20, 5, 10, 30, 6]))
    assert within([("1", 9, 20)]).tolist() == [0, 2]  # 10 and 20: half-open, 0-based
    assert within([("1", 10, 30), ("chr2", 5, 6)]).tolist() == [0, 3, 4]
    assert within([("1", 9, 10), ("1", 0, 99)]).tolist() == [0, 2, 3]
    assert within([("7", 0, 99)]).tolist() == [] and within([]).tolist() == []


def pairs_of(folder: Path, genes: Path, *lines: str):
    path = folder / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n")
    found = read_set_pairs(path, read_sets(genes), genes)
    return [(one.name, one.row, one.first, one.second) for one in found.sets], found.unknown


def test_pairs_are_named_by_names_of_genes(tmp_path):
    a, b, c = ("1", 0, 10), ("1", 20, 30), ("2", 5, 9)
    genes = written(tmp_path, "1 0 10 A", "1 20 30 B", "2 5 9 B", "2 5 9 long_name")
    lines = ("#p q", "first second score", "A B 0.9", "B A 0.8", "A Z", "B B", "", "A long_name")
    found, unknown = pairs_of(tmp_path, genes, *lines)
    assert found == [
        ("A x B", 3, [a], [b, c]),  # named twice, in both orders
        ("B", 6, [b, c], []),
        ("A x long_name", 8, [a], [c]),
    ]
    assert unknown == ["first", "second", "Z"]
    assert pairs_of(tmp_path, genes, "A\tlong name\t1 2")[0][0][0] == "A x long_name"


def test_genes_of_a_gtf_have_several_names_in_pairs(tmp_path):
    rows = [gtf("gene", 1, 9, 'gene_id "G1.4"; gene_name "ABC";'),
            gtf("gene", 20, 30, 'gene_id "G2";'),
            gtf("gene", 40, 50, 'gene_id "G3"; gene_name "ABC";')]  # fmt: skip
    genes, one, two, same = written(tmp_path, *rows), ("1", 0, 9), ("1", 19, 30), ("1", 39, 50)
    for name in ("G1", "G1.4", "ABC_G1.4"):
        assert pairs_of(tmp_path, genes, f"{name} G2")[0][0][2:] == ([one], [two])
    assert pairs_of(tmp_path, genes, "G2 ABC")[0][0][2:] == ([two], [one, same])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["A"], r"row 1: 'A' has no two names"),
        (["A\t\tB"], "no two names"),
        (["X Y", "A Y"], "none of its 2 rows names two sets of .*, such as 'X'"),
        (["# nothing"], "none of its 0 rows"),
    ],
)
def test_pairs_that_say_nothing_are_refused(tmp_path, given, said):
    genes = written(tmp_path, "1 0 10 A", "1 20 30 B")
    with pytest.raises(UserError, match=said):
        pairs_of(tmp_path, genes, *given)


def test_names_of_pairs_of_ranges_are_refused(tmp_path):
    with pytest.raises(UserError, match="has pairs of ranges"):
        pairs_of(tmp_path, written(tmp_path, "1 0 10 2 5 9 AxB"), "AxB AxB")
