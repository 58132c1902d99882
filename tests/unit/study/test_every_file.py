"""What `check` finds in any file of a cohort of several, and one name for each contig."""

import gzip

import pytest
from support.study import make_cohorts, read_config, write_study

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.study.validation import validate_study

HEAD = "##fileformat=VCFv4.2\n"


def split(tmp_path, monkeypatch, change=lambda text: text):
    """A study whose first cohort has three files, the last of them changed."""
    cohorts = make_cohorts((6, 5), n_sites=300, missing=0)
    cohorts[1].compressed = False
    folder = write_study(tmp_path, cohorts)
    head, *rows = (folder / "data/north.vcf").read_text().split("\n1\t", 1)
    rows = ("1\t" + rows[0]).splitlines(keepends=True)
    for k in range(3):
        part = "".join(rows[100 * k : 100 * k + 100])
        if k == 2:
            head, part = change(head + "\n", part)
        (folder / f"data/north.{k + 1}.vcf").write_text(head.rstrip("\n") + "\n" + part)
    sheet = folder / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("data/north.vcf", "data/north.{contig}.vcf"))
    monkeypatch.chdir(folder)
    return folder


def in_rows(old: str, new: str):
    return lambda head, rows: (head, rows.replace(old, new))


def longer(head, rows):
    """All records are deletions."""
    lines = [line.split("\t") for line in rows.splitlines()]
    return head, "".join("\t".join([*x[:3], x[3] + "G", *x[4:]]) + "\n" for x in lines)


def lengths(head, rows):
    """The header of hg19 for one contig, that of hg38 for another: mixed by hand."""
    return head.replace(HEAD, HEAD + "##contig=<ID=7,length=159138663>\n"), rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (in_rows("\t0/1", "\t1"), r"north\.3\.vcf, line 3.*is haploid"),
        (in_rows("\t0/1", "\t0/0/1/1"), r"north\.3\.vcf, line 3.*more than two alleles"),
        (in_rows("\tGT\t", "\tDP\t"), r"north\.3\.vcf, line 3: FORMAT 'DP' has no genotypes"),
        (
            in_rows("2\t", "NC_000002.12\t"),
            r"north\.3\.vcf: contig NC_000002.12 looks like .* 2 ",
        ),
    ],
)
def test_faults_of_the_last_file_stop_the_check(tmp_path, monkeypatch, change, words):
    folder = split(tmp_path, monkeypatch, change)
    with pytest.raises(UserError, match=words):
        validate_study(read_config(folder))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (longer, "data/north.3.vcf: none of its 100 records is a biallelic SNP"),
        (in_rows("PASS", "weak"), "data/north.3.vcf: 100 of its 100 records are dropped"),
    ],
)
def test_doubts_about_the_last_file_are_said(tmp_path, monkeypatch, change, words):
    _, _, remarks = validate_study(read_config(split(tmp_path, monkeypatch, change)))
    assert any(remark.startswith(words) for remark in remarks), remarks


def test_three_good_files_are_not_remarked_on(tmp_path, monkeypatch):
    _, _, remarks = validate_study(read_config(split(tmp_path, monkeypatch, lambda *x: x)))
    assert not any("north" in remark for remark in remarks), remarks


def test_the_builds_of_all_headers_are_compared(tmp_path, monkeypatch):
    folder = split(tmp_path, monkeypatch, lengths)
    south = folder / "data/south.vcf"
    text = south.read_text()
    south.write_text(text.replace(HEAD, HEAD + "##contig=<ID=7,length=159345973>\n"))
    with pytest.raises(UserError, match=r"hg19 \(cohort north\) and hg38 \(cohort south\)"):
        validate_study(read_config(folder))
    south.write_text(text)
    first = folder / "data/north.1.vcf"
    first.write_text(first.read_text().replace(HEAD, HEAD + "##contig=<ID=7,length=159345973>\n"))
    with pytest.raises(UserError, match=r"hg38 \(data/north.1.vcf\) and hg19 \(data/north.3.vcf\)"):
        validate_study(read_config(folder))


CALLS = "\t.\tPASS\t.\tGT\t0/1\t1/1\n"
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts1\ts2\n"


def vcf(path, *sites):
    rows = [f"{chrom}\t{pos}\t.\tA\tC{CALLS}" for chrom, pos in sites]
    with gzip.open(path, "wt") if path.suffix == ".gz" else open(path, "w") as file:
        file.write(HEAD + COLUMNS + "".join(rows))
    return path


@pytest.mark.parametrize("one", ["1", "X", "MT"])
@pytest.mark.parametrize("first", [True, False])
def test_one_name_for_a_contig_of_several_files(tmp_path, one, first):
    """Sites that two files of a cohort list are duplicates whatever they call the contig."""
    other = {"1": "chr1", "X": "chrX", "MT": "chrM"}[one]
    names = (one, other) if first else (other, one)
    paths = [
        vcf(tmp_path / "a.vcf", (names[0], 10), (names[0], 20)),
        vcf(tmp_path / "b.vcf.gz", (names[1], 20), (names[1], 30)),
    ]
    counts = ingest_cohort(paths, tmp_path / "raw")
    rows = [line.split("\t") for line in (tmp_path / "raw.bim").read_text().splitlines()]
    assert [(row[0], int(row[3])) for row in rows] == [(names[0], pos) for pos in (10, 20, 30)]
    assert counts.duplicates == 1
    said = f"Contigs with two names .* {names[1]} as {names[0]}"
    assert any(remark.startswith(said.split(" .* ")[0]) for remark in counts.remarks)
    # Within one file too.
    counts = ingest_cohort(
        vcf(tmp_path / "c.vcf", (names[0], 10), (names[1], 20), (names[1], 10)), tmp_path / "one"
    )
    assert counts.duplicates == 1
    assert {line.split("\t")[0] for line in (tmp_path / "one.bim").read_text().splitlines()} == {
        names[0]
    }


@pytest.mark.parametrize(("one", "other"), [("1", "NC_000001.11"), ("chr1", "01"), ("X", "0X")])
def test_names_that_may_be_of_other_assemblies_are_refused(tmp_path, one, other):
    paths = [vcf(tmp_path / "a.vcf", (one, 10)), vcf(tmp_path / "b.vcf", (other, 20))]
    with pytest.raises(UserError, match=rf"b\.vcf: contig {other} looks like .* named {one} in"):
        ingest_cohort(paths, tmp_path / "raw")
    assert not (tmp_path / "raw.bim").exists()
