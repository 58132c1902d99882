"""PLINK 2 files (.pgen, .pvar, .psam): written by plink2 itself, equal to the VCF path."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.study import FAST, make_cohorts, write_sheets

from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.sources import expand_sources, source_files, source_key
from popdesic.core.errors import UserError
from popdesic.io import pgen, pgen_tables
from popdesic.io.batches import DecodeCounts
from popdesic.io.formats import find_format, read_contig_lengths, read_sample_names
from popdesic.io.genotypes import pack_bed
from popdesic.io.pgen_header import DOSAGES, MULTIALLELIC, PHASED, read_pgen_header
from popdesic.study.configuration import read_config
from popdesic.study.init import init_study
from popdesic.study.validation import validate_study

pytest.importorskip("pgenlib", reason="pip install Pgenlib")
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed"),
]
FIXED = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
CALLS = np.array(["0/0", "0/1", "1/1", "./."])


def make_pgen(vcf: Path, prefix: Path, *options: str) -> Path:
    """Convert a VCF with plink2."""
    command = ["plink2", "--vcf", vcf, *options, "--make-pgen", "--out", prefix]
    command += ["--output-chr", "chrM", "--allow-extra-chr"]
    subprocess.run(command, check=True, capture_output=True)
    return prefix


def write_vcf(
    path: Path, n_samples: int, n_sites: int, *, phased: bool = False, seed: int = 1
) -> np.ndarray:
    """Write sites of many frequencies, with missing calls, among them no biallelic SNPs; return
    the genotypes (n_sites, n_samples) of the SNPs."""
    rng = np.random.default_rng(seed)
    frequencies = rng.choice([0.0, 0.001, 0.02, 0.3, 0.7, 1.0], n_sites)
    genotypes = rng.binomial(2, frequencies[:, None], (n_sites, n_samples)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.05] = -1
    for k in range(0, n_sites, 11):  # two genotypes only, which plink2 stores in one bit
        genotypes[k] = rng.integers(0, 2, n_samples)
    near = rng.random(n_sites) < 0.3  # like the site before: plink2 stores the differences
    for k in np.flatnonzero(near[1:]) + 1:
        genotypes[k] = genotypes[k - 1]
    lines = ["##fileformat=VCFv4.2", "##contig=<ID=chr1,length=249250621>", "##contig=<ID=chr2>"]
    lines.append("\t".join([FIXED, *(f"S {k}".replace(" ", "-") for k in range(n_samples))]))
    for k, row in enumerate(genotypes):
        calls = CALLS[row]
        if phased and k % 2:
            calls = np.char.replace(calls, "/", "|")
            calls[row == 1] = rng.choice(["0|1", "1|0", "0/1"], int((row == 1).sum()))
        chrom, pos = ("chr1", 10 * k + 1) if k < n_sites // 2 else ("chr2", k + 1)
        start = f"{chrom}\t{pos}\t{'.' if k % 3 else f'rs{k}'}"
        lines.append(
            "\t".join([start, "A", "g" if k % 5 == 0 else "C", ".", ".", ".", "GT", *calls])
        )
        if k % 7 == 0:
            for ref, alt in (("A", "C,G"), ("AC", "A"), ("A", "<DEL>"), ("A", "."), ("A", "N")):
                other = [call if alt != "." else "0/0" for call in calls]
                if alt == "C,G":
                    other[0] = "1/2"
                lines.append("\t".join([start, ref, alt, ".", ".", ".", "GT", *other]))
    path.write_text("\n".join(lines) + "\n")
    return genotypes


def results(prefix: Path) -> tuple[list[bytes], dict]:
    """The bytes of raw.bed, .bim and .fam, and the counts, without those of phase."""
    counts = json.loads(Path(f"{prefix}.json").read_text())["counts"]
    counts["called"] = counts.pop("phased") + counts.pop("unphased")
    return [Path(f"{prefix}{end}").read_bytes() for end in (".bed", ".bim", ".fam")], counts


@pytest.mark.parametrize("n_samples", [1, 3, 4, 5, 64, 65, 333])
def test_same_bytes_and_counts_as_from_vcf(tmp_path, n_samples):
    """Of all ways in which plink2 stores a site: two bits, one bit, exceptions, differences."""
    write_vcf(tmp_path / "in.vcf", n_samples, 150)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    ingest_cohort(tmp_path / "in.vcf", tmp_path / "text/raw")
    expected = results(tmp_path / "text/raw")
    assert expected[1]["multiallelic"] > 0
    for source in ("in", "in.pgen"):
        ingest_cohort(tmp_path / source, tmp_path / "pgen/raw")
        assert results(tmp_path / "pgen/raw") == expected
    if n_samples > 64:
        header = read_pgen_header(tmp_path / "in.pgen")
        assert set((header.types & 7).tolist()) >= {0, 1, 2, 4, 6}
        assert header.count(MULTIALLELIC) > 0


def test_batches_of_any_size(tmp_path):
    genotypes = write_vcf(tmp_path / "in.vcf", 9, 60)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    for chunk in (1, 100, 1 << 20):
        counts = DecodeCounts()
        batches = list(pgen.stream_pgen(tmp_path / "in", counts, _chunk_bytes=chunk))
        found = np.concatenate([batch.rows for batch in batches])
        varies = np.array([alt != "." for batch in batches for alt in batch.alt])
        assert 0 < (~varies).sum() == counts.one_allele
        assert found[varies].tobytes() == pack_bed(genotypes).tobytes()
        lines = (tmp_path / "in.pvar").read_text().split("\n")
        for batch in batches:
            for line, pos in zip(batch.line.tolist(), batch.pos.tolist(), strict=True):
                assert lines[line - 1].split("\t")[1] == str(pos)
        assert counts.missing == int((genotypes < 0).sum())


def test_phased_calls_are_counted(tmp_path):
    """plink2 keeps the phase of heterozygous calls; a homozygous call counts with its site."""
    write_vcf(tmp_path / "in.vcf", 40, 60, phased=True)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    counts = ingest_cohort(tmp_path / "in", tmp_path / "raw").decode
    n_phased = n_sites = 0
    for line in (tmp_path / "in.vcf").read_text().splitlines():
        columns = line.split("\t")
        if line[0] != "#" and columns[3] == "A" and columns[4] in ("C", "g", "."):
            calls = columns[9:]
            n_sites += (with_phase := bool({"0|1", "1|0"} & set(calls)))
            n_phased += with_phase * sum("." not in call and call != "0/1" for call in calls)
    assert read_pgen_header(tmp_path / "in.pgen").count(PHASED) >= n_sites > 5
    assert counts.phased == n_phased
    assert counts.phased + counts.unphased + counts.missing == 40 * counts.snps


def test_dosages_are_ignored_and_said(tmp_path):
    write_vcf(tmp_path / "plain.vcf", 6, 8)
    lines = (tmp_path / "plain.vcf").read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if "C,G" not in line)  # plink2 has no dosages for these
    (tmp_path / "plain.vcf").write_text(text)
    text = text.replace("\tGT\t", "\tGT:DS\t")
    start = '##FORMAT=<ID=DS,Number=1,Type=Float,Description="dosage">\n#CHROM'
    text = text.replace("#CHROM", start).replace("0/1", "0/1:0.9")
    (tmp_path / "in.vcf").write_text(text)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in", "dosage=DS")
    n_sites = read_pgen_header(tmp_path / "in.pgen").count(DOSAGES)
    assert n_sites > 0
    counts = ingest_cohort(tmp_path / "in", tmp_path / "raw")
    ingest_cohort(tmp_path / "plain.vcf", tmp_path / "plain")
    assert results(tmp_path / "raw") == results(tmp_path / "plain")
    (said,) = counts.remarks
    assert f"in.pgen has dosages at {n_sites} of " in said
    assert "hard calls" in said
    remarks = init_and_check(tmp_path, "in.pgen")
    assert sum("has dosages at" in remark for remark in remarks) == 1


def init_and_check(folder: Path, *sources: str) -> list[str]:
    """Make a study of sources in `folder` with `popdesic init`; return the remarks of the check."""
    init_study([str(folder / "study"), *(str(folder / source) for source in sources)])
    return validate_study(read_config(folder / "study"), folder / "study")[2]


def test_init_recognises_pgen_and_reads_its_psam(tmp_path):
    write_vcf(tmp_path / "in.vcf", 4, 8)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    (tmp_path / "in.psam").write_text(
        "##made by hand\n#FID\tIID\tPAT\tMAT\tSEX\tCASE\n"
        "f\tS-0\t0\t0\tM\t2\nf\tS-1\t0\t0\t2\t1\nf\tS-2\tS-0\tS-1\tNA\t-9\nf\tS-3\t0\t0\t0\t1\n"
    )
    for given in ("in.pgen", "in.psam", "in"):
        init_and_check(tmp_path, given)
        sheet = (tmp_path / "study/config/samples.tsv").read_text().splitlines()
        rows = [dict(zip(sheet[0].split("\t"), row.split("\t"), strict=True)) for row in sheet[1:]]
        assert [row["sex"] for row in rows] == ["M", "F", "NA", "NA"]
        assert [row["phenotype"] for row in rows] == ["1", "0", "NA", "0"]
        assert rows[2]["father"], rows[2]["mother"] == ("S-0", "S-1")
        shutil.rmtree(tmp_path / "study")
    ingest_cohort(tmp_path / "in", tmp_path / "raw")
    assert [line.split("\t")[4] for line in (tmp_path / "raw.fam").read_text().splitlines()] == [
        *("1", "2", "0", "0")
    ]


def test_patterns_match_the_pgen_once(tmp_path):
    for name in ("chr1", "chr2", "chr10"):
        write_vcf(tmp_path / f"{name}.vcf", 4, 8)
        make_pgen(tmp_path / f"{name}.vcf", tmp_path / name)
        (tmp_path / f"{name}.vcf").unlink()
        (tmp_path / f"{name}.log").unlink()
    expected = [f"chr{k}.pgen" for k in (1, 2, 10)]
    for text in ("chr{contig}", "chr*", "chr{contig}.pgen", "chr1.pgen,chr2.pgen,chr10.pgen"):
        assert expand_sources(text, tmp_path) == expected
    assert expand_sources("chr1", tmp_path) == ["chr1"]
    assert source_files(tmp_path / "chr1") == [
        f"{tmp_path}/chr1{end}" for end in (".pgen", ".pvar", ".psam")
    ]
    before = source_key([str(tmp_path / "chr1")])
    (tmp_path / "chr1.pvar").write_text((tmp_path / "chr1.pvar").read_text() + "\n")
    with pytest.raises(UserError, match=r"has \d+ sites where"):
        source_key([str(tmp_path / "chr1")])
    assert source_key([str(tmp_path / "chr2")]) != before


def test_plink_1_files_of_the_same_prefix_come_first(tmp_path):
    write_vcf(tmp_path / "in.vcf", 4, 8)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    assert find_format(tmp_path / "in").kind == "pgen"
    (tmp_path / "in.bed").write_bytes(b"")
    assert find_format(tmp_path / "in").kind == "plink"
    assert find_format(tmp_path / "in.pgen").kind == "pgen"


def test_contig_lengths_tell_the_build(tmp_path):
    write_vcf(tmp_path / "in.vcf", 4, 8)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    assert read_contig_lengths(tmp_path / "in") == {"chr1": 249250621}


def test_without_pgenlib_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    write_vcf(tmp_path / "in.vcf", 4, 8)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    util = pgen_tables.importlib.util
    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "pgenlib" else find(name))
    with pytest.raises(UserError, match="pip install Pgenlib") as error:
        read_sample_names(tmp_path / "in")
    assert f"plink2 --pfile {tmp_path}/in --make-bed" in str(error.value)


# --- wrong files ----------------------------------------------------------------------------------


def test_every_cut_of_the_pgen_is_refused_before_a_job(tmp_path):
    write_vcf(tmp_path / "in.vcf", 37, 40)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    whole = (tmp_path / "in.pgen").read_bytes()
    for size in [*range(60), *range(60, len(whole), 97), len(whole) - 1]:
        (tmp_path / "in.pgen").write_bytes(whole[:size])
        with pytest.raises(UserError, match=r"in\.pgen is (cut short|not a PLINK 2)|storage mode"):
            read_sample_names(tmp_path / "in")


def test_damaged_bytes_never_end_in_a_traceback(tmp_path):
    """Whatever a byte is changed to: genotypes or one sentence."""
    write_vcf(tmp_path / "in.vcf", 37, 40, phased=True)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    whole = (tmp_path / "in.pgen").read_bytes()
    rng = np.random.default_rng(2)
    refused = 0
    for place in [*range(150), *rng.integers(150, len(whole), 150).tolist()]:
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        (tmp_path / "in.pgen").write_bytes(damaged)
        try:
            ingest_cohort(tmp_path / "in", tmp_path / "raw")
        except UserError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("pgen", lambda b: b"BC" + b[2:], "is not a PLINK 2 .pgen file: it starts with 42 43"),
        ("pgen", lambda b: b[:2] + b"\x01" + b[3:], "is a PLINK 1 .bed file under the name"),
        ("pgen", lambda b: b[:2] + b"\x20" + b[3:], "has the storage mode 0x20"),
        ("psam", lambda b: b.rsplit(b"\n", 2)[0] + b"\n", "has 5 samples where .*psam lists 4"),
        ("psam", lambda b: b.replace(b"S-1", b"S-0"), "line 3: the sample name 'S-0' occurs 2"),
        ("psam", lambda b: b.replace(b"IID", b"NAME"), "line 1: the columns must include IID"),
        ("psam", lambda b: b[1:], "line 1: the line of column names"),
        ("psam", lambda b: b.replace(b"S-1\t", b""), "line 3: 2 columns are expected"),
        ("pvar", lambda b: b.rsplit(b"\n", 2)[0] + b"\n", r"has \d+ sites where .*pvar lists"),
        ("pvar", lambda b: b + b, "columns are expected|sites where"),
        ("pvar", lambda b: b.replace(b"#CHROM", b"#CHR"), "the columns must be #CHROM POS ID"),
        ("pvar", lambda b: b"##x\n" * 3, "line 3: the line of column names"),
        ("pvar", lambda b: b.replace(b"\t11\t", b"\tx\t"), "position 'x' is not a whole number"),
        ("pvar", lambda b: b.replace(b"\t11\t", b"\t\xff\t"), "line 10: the file is not UTF-8"),
        ("pvar", None, "pvar does not exist; .pgen, .pvar and .psam must be in the same folder"),
        ("psam", None, "psam does not exist"),
    ],
)
def test_wrong_files(tmp_path, name, change, sentence):
    write_vcf(tmp_path / "in.vcf", 5, 8, seed=3)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    path = tmp_path / f"in.{name}"
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=sentence) as error:
        ingest_cohort(tmp_path / "in", tmp_path / "raw")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("raw*"))


def test_a_compressed_pvar_is_refused_with_the_command_that_unpacks_it(tmp_path):
    write_vcf(tmp_path / "in.vcf", 5, 8)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    command = ["plink2", "--pfile", tmp_path / "in", "--make-just-pvar", "zs", "--out"]
    command += [tmp_path / "packed", "--output-chr", "chrM"]
    subprocess.run(command, check=True, capture_output=True)
    plain = (tmp_path / "in.pvar").read_bytes()
    (tmp_path / "in.pvar").unlink()
    (tmp_path / "packed.pvar.zst").rename(tmp_path / "in.pvar.zst")
    with pytest.raises(UserError, match="--zst-decompress") as error:
        read_sample_names(tmp_path / "in")
    subprocess.run(str(error.value).split("`")[1].split(), check=True, capture_output=True)
    assert (tmp_path / "in.pvar").read_bytes() == plain


def test_a_large_pvar_is_counted_by_the_job(tmp_path, monkeypatch):
    monkeypatch.setattr(pgen_tables, "QUICK_BYTES", 10)
    write_vcf(tmp_path / "in.vcf", 5, 8)
    make_pgen(tmp_path / "in.vcf", tmp_path / "in")
    whole = (tmp_path / "in.pvar").read_text()
    for text in (whole + whole.split("\n")[-2] + "\n", whole[: whole[:-1].rindex("\n") + 1]):
        (tmp_path / "in.pvar").write_text(text)
        assert len(read_sample_names(tmp_path / "in")) == 5
        with pytest.raises(UserError, match=r"has \d+ sites where"):
            ingest_cohort(tmp_path / "in", tmp_path / "raw")


def test_a_study_of_pgen_passes_the_check(tmp_path):
    cohorts = make_cohorts((5, 4), n_sites=20)
    (tmp_path / "data").mkdir()
    for cohort in cohorts:
        (tmp_path / "in.vcf").write_text(cohort.vcf())
        make_pgen(tmp_path / "in.vcf", tmp_path / "data" / cohort.name)
    write_sheets(tmp_path, cohorts, FAST)
    sheet = tmp_path / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace(".vcf.gz", "").replace(".vcf", ".pgen"))
    _, study, _ = validate_study(read_config(tmp_path), tmp_path)
    assert sum(study.counts.values()) == 9
