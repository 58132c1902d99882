"""What the first records of a file show, before any job."""

import numpy as np
import pytest
from support.plink_files import write_plink

from popdesic.cohort.contigs import haploid_policies
from popdesic.cohort.first_records import first_records, remarks_on_records
from popdesic.core.errors import UserError
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import header_contigs

COLUMNS = "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT a b"
HEAD = "##fileformat=VCFv4.2\n##contig=<ID=1>\n" + COLUMNS.replace(" ", "\t") + "\n"


def vcf(tmp_path, *rows: str, repeat=1):
    path = tmp_path / "one.vcf"
    lines = [f"1\t{10 + k}\t.\t{row}\n" for k, row in enumerate(rows * repeat)]
    path.write_text(HEAD + "".join("\t".join(line.split(" ")) for line in lines))
    return path


SNP = "A C . PASS . GT 0/1 1/1"
INDEL = "AT A . PASS . GT 0/1 1/1"


def remarks(*paths, haploid="error", least=2, filters=CallFilters()):  # noqa: B008 (frozen)
    found = [first_records(path, haploid, filters) for path in paths]
    return remarks_on_records(paths, found, least)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("A C . PASS . GT 0 1/1", "line 4.*is haploid; set contigs.haploid"),
        ("A C . PASS . GT 0/1 0/0/1/1", "line 4.*more than two alleles"),
        ("A C . PASS . DP 3 4", "line 4: FORMAT 'DP' has no genotypes"),
    ],
)
def test_calls_that_stop_a_run(tmp_path, row, words):
    with pytest.raises(UserError, match=words):
        remarks(vcf(tmp_path, row, SNP))


def test_haploid_calls_pass_where_the_configuration_reads_them(tmp_path):
    path = vcf(tmp_path, "A C . PASS . GT 0 1", SNP)
    assert remarks(path, haploid="diploidize") == []
    assert first_records(path, "diploidize").counts.haploid_calls == 2


def test_files_of_indels_alone(tmp_path):
    with pytest.raises(UserError, match=r"none of its 3 records .*indel 3\); give a file"):
        remarks(vcf(tmp_path, INDEL, repeat=3))
    path = vcf(tmp_path, INDEL, repeat=3).rename(tmp_path / "other.vcf")
    (remark,) = remarks(vcf(tmp_path, SNP, SNP), path)
    assert remark.startswith(str(path))
    assert "none of its 3 records is a biallelic SNP (dropped: indel 3); only SNPs" in remark
    path = vcf(tmp_path, INDEL, repeat=200_000)
    (remark,) = remarks(path)
    found = first_records(path)
    assert not found.whole and 10_000 < found.counts.records < 150_000, "a bounded part is read"
    assert f"none of the first {found.counts.records} records is a biallelic SNP" in remark
    with pytest.raises(UserError, match="has no records"):
        remarks(vcf(tmp_path))
    indels = CallFilters(classes=("indel",))
    assert remarks(vcf(tmp_path, INDEL, repeat=3), filters=indels) == []


def test_too_few_sites(tmp_path):
    assert remarks(vcf(tmp_path, SNP, SNP)) == []
    (remark,) = remarks(vcf(tmp_path, SNP, INDEL))
    assert "has 1 biallelic SNPs, fewer than distance.min_called (2)" in remark
    other = vcf(tmp_path, SNP).rename(tmp_path / "other.vcf")
    assert remarks(other, vcf(tmp_path, SNP)) == []
    (remark,) = remarks(other, vcf(tmp_path, SNP), least=3)
    assert "1 more of the cohort's files have 2 biallelic SNPs" in remark
    genotypes = np.zeros((9, 4), np.int8)
    write_plink(tmp_path / "two", genotypes, list("abcd"))
    (remark,) = remarks(tmp_path / "two", least=10)
    assert "has 9 biallelic SNPs" in remark and first_records(tmp_path / "two").whole


def test_failed_filters_are_said_before_the_run(tmp_path):
    """With their names, and by the filters that the study accepts."""
    path = tmp_path / "a.vcf"
    head = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tS\n"
    marks = ["PASS", "LowQual", "LowQual", "q10;LowQual", "."] * 40
    rows = [f"1\t{k + 1}\t.\tA\tC\t.\t{mark}\t.\tGT\t0/1\n" for k, mark in enumerate(marks)]
    path.write_text(head + "".join(rows))
    (remark,) = remarks(path, least=10)
    assert "120 of its 200 records are dropped" in remark and "LowQual 120, q10 40" in remark
    (remark,) = remarks(path, least=10, filters=CallFilters(("LowQual",)))
    assert "40 of its 200" in remark
    rows[30:] = [row.replace("LowQual", "PASS").replace("q10;", "") for row in rows[30:]]
    path.write_text(head + "".join(rows))
    assert 0 < first_records(path).counts.filtered < 20
    assert remarks(path, least=10) == [], "few, as in most files"
    assert remarks(path, least=10, filters=CallFilters(("*",))) == []


@pytest.mark.parametrize("contig", ["X", "chrX", "Y", "chrM", "MT"])
def test_haploid_calls_outside_the_panel_stop_no_run(tmp_path, contig):
    path = vcf(tmp_path, "A C . PASS . GT 0 1/1", SNP)
    with pytest.raises(UserError, match="haploid"):
        remarks(path, haploid=haploid_policies("error", "auto", {}))
    path.write_text(path.read_text().replace("\n1\t", f"\n{contig}\t"))
    remarks(path, haploid=haploid_policies("error", "auto", {}))
    with pytest.raises(UserError, match="haploid"):  # this contig may enter the panel
        remarks(path, haploid=haploid_policies("error", [], {}))
    with pytest.raises(UserError, match="haploid"):  # and here the user decides
        remarks(path, haploid=haploid_policies({contig: "error"}, "auto", {}))


@pytest.mark.parametrize(
    ("contig", "length", "stops"),
    [("23", 0, False), ("NC_000023.11", 156_040_895, False), ("NC_000022.11", 50_818_468, True)],
)
def test_haploid_calls_by_the_role_of_a_contig(tmp_path, contig, length, stops):
    """What the header says of a contig decides, whatever it is called."""
    path = vcf(tmp_path, "A C . PASS . GT 0 1/1", SNP)
    size = f",length={length}" if length else ""
    text = path.read_text().replace("\n1\t", f"\n{contig}\t")
    path.write_text(text.replace("#CHROM", f"##contig=<ID={contig}{size}>\n#CHROM"))
    policies = haploid_policies("error", "auto", header_contigs([path]))
    if stops:
        with pytest.raises(UserError, match="haploid"):
            remarks(path, haploid=policies)
    else:
        assert remarks(path, haploid=policies, least=0) == []
    with pytest.raises(UserError, match="haploid"):
        remarks(path, haploid=haploid_policies("error", [], header_contigs([path])))


def test_a_list_of_excluded_contigs_holds_for_other_spellings():
    """As in the panel: chrM is MT, and Chr is chr."""
    found = haploid_policies("error", ["MT", "C"], {"chrM": 9, "ChrC": 9, "Chr1": 9})
    assert found["chrM"] == found["ChrC"] == "diploidize" and "Chr1" not in found


def test_haploid_policies_of_the_user_hold():
    assert haploid_policies("missing", "auto", {}) == {"default": "missing"}
    given = {"X": "missing", "default": "error"}
    found = haploid_policies(given, ["chrX", "chr7"], {})
    assert found == {"chrX": "diploidize", "7": "diploidize", "chr7": "diploidize"} | given
