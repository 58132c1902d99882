"""Decoding a cohort to PLINK files, with its byte codecs and file helpers."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles.reference import parse_vcf_text

from popdesic.cohort import raw_sites
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.core.files import atomic_path, beside, bytes_meant, read_json, write_json
from popdesic.io import plink
from popdesic.io.batches import DecodeCounts
from popdesic.io.bed import iterate_bim, open_bed, read_bim, read_fam, write_fam
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import PLINK, VCF, find_format, read_sample_names, require_readable
from popdesic.io.genotypes import (
    BED_MAGIC,
    bed_row_bytes,
    pack_bed,
    site_kind,
    take_samples,
    unpack_bed,
)
from popdesic.io.plink import stream_plink
from popdesic.study.audit import damaged_files

COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"


def write_vcf(path: Path, records: list[str], samples: list[str]) -> str:
    """Write a VCF whose records are 'CHROM POS ID REF ALT FORMAT call call ...'."""
    lines = ["##fileformat=VCFv4.2", "\t".join([COLUMNS, *samples])]
    for record in records:
        fields = record.split(" ")
        lines.append("\t".join([*fields[:5], ".", "PASS", ".", *fields[5:]]))
    text = "\n".join(lines) + "\n"
    path.write_text(text, "utf-8")
    return text


def read_back(prefix: Path) -> tuple[list[tuple], np.ndarray]:
    """Return the sites (chrom, pos, id, ref, alt) and genotypes of written files."""
    bim = read_bim(prefix)
    sites = list(bim[["chrom", "pos", "id", "ref", "alt"]].itertuples(index=False, name=None))
    return sites, unpack_bed(np.asarray(open_bed(prefix)), len(read_fam(prefix)))


# --- codecs -----------------------------------------------------------------------------------


def test_bed_codes_are_those_of_plink():
    packed = pack_bed(np.array([[2, -1, 1, 0, 0]], np.int8))
    assert packed.tolist() == [[0b11_10_01_00, 0b00_00_00_11]]
    assert unpack_bed(packed, 5).tolist() == [[2, -1, 1, 0, 0]]
    assert BED_MAGIC == b"\x6c\x1b\x01"


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(
        np.int8,
        st.tuples(st.integers(0, 4), st.integers(1, 70)),
        elements=st.integers(-1, 2),
    )
)
def test_pack_and_unpack(genotypes):
    n_samples = genotypes.shape[1]
    packed = pack_bed(genotypes)
    assert packed.shape == (len(genotypes), bed_row_bytes(n_samples))
    assert packed.dtype == np.uint8
    codes = {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}
    for row, bytes_of_row in zip(genotypes.tolist(), packed.tolist(), strict=True):
        value = sum(codes[g] << (2 * k) for k, g in enumerate(row))
        assert int.from_bytes(bytes(bytes_of_row), "little") == value
    np.testing.assert_array_equal(unpack_bed(packed, n_samples), genotypes)


def test_strided_genotypes_can_be_packed():
    genotypes = np.random.default_rng(1).integers(-1, 3, (6, 40)).astype(np.int8)
    np.testing.assert_array_equal(
        pack_bed(genotypes[::2, ::3]), pack_bed(genotypes[::2, ::3].copy())
    )


@pytest.mark.parametrize(
    ("ref", "alts", "kind"),
    [
        ("A", ["C"], "snps"),
        ("a", ["t"], "snps"),
        ("A", [], "one_allele"),
        ("A", ["0"], "one_allele"),
        ("0", ["g"], "one_allele"),
        ("A", ["."], "one_allele"),
        ("0", ["0"], "no_alt"),
        ("AC", ["0"], "no_alt"),
        ("N", ["."], "no_alt"),
        ("A", ["a"], "no_alt"),
        ("A", ["C", "G"], "multiallelic"),
        ("A", ["<DEL>"], "symbolic"),
        ("A", ["A[1:2["], "symbolic"),
        ("A", ["*"], "star"),
        ("AC", ["A"], "indel"),
        ("D", ["I"], "indel"),
        ("N", ["A"], "non_acgt"),
    ],
)
def test_site_kind(ref, alts, kind):
    assert site_kind(ref, alts) == kind


# --- VCF to PLINK -----------------------------------------------------------------------------


def test_files_and_counts(tmp_path):
    samples = ["Zoe", "a b", "007"]
    source = tmp_path / "in.vcf"
    text = write_vcf(
        source,
        [
            "7 5 rs1;x A c GT 0/0 0/1 1/1",
            "7 5 rs1;x A C GT 1/1 1/1 1/1",
            "7 5 . A G GT ./. 0/1 1|1",
            "7 6 . A G,T GT ./. 0/1 1|1",
            "chrUn_é 1 . T G GT ./1 . 1|0",
        ],
        samples,
    )
    counts = ingest_cohort(source, tmp_path / "out" / "raw.x", sexes={"Zoe": "F", "007": "M"})
    prefix = tmp_path / "out" / "raw.x"
    assert beside(prefix, ".bim").read_text("utf-8") == (
        "7\trs1;x\t0\t5\tc\tA\n7\t.\t0\t5\tG\tA\nchrUn_é\t.\t0\t1\tG\tT\n"
    )
    assert beside(prefix, ".fam").read_text("utf-8") == (
        "0\tZoe\t0\t0\t2\t-9\n0\ta b\t0\t0\t0\t-9\n0\t007\t0\t0\t1\t-9\n"
    )
    genotypes = read_back(prefix)[1]
    assert genotypes.tolist() == [[0, 1, 2], [-1, 1, 2], [-1, -1, 1]]
    assert (counts.samples, counts.sites, counts.duplicates) == (3, 3, 1)
    assert counts.decode.as_dict() == parse_vcf_text(text).counts
    about = read_json(beside(prefix, ".json"))
    assert about["source"] == "in.vcf"
    assert about["source_bytes"] == source.stat().st_size
    assert about["counts"] == counts.as_dict()
    assert about["counts"]["multiallelic"] == 1
    assert str(tmp_path) not in json.dumps(about)
    assert sorted(p.name for p in prefix.parent.iterdir()) == [
        "raw.x.bed",
        "raw.x.bim",
        "raw.x.dropped.npz",
        "raw.x.fam",
        "raw.x.json",
    ]


def test_checksums_follow_the_content(tmp_path):
    digests = []
    for name, call in (("a", "0/1"), ("b", "0|1"), ("c", "1/1")):
        write_vcf(tmp_path / f"{name}.vcf", [f"1 5 . A C GT {call} 0/0"], ["x", "y"])
        ingest_cohort(tmp_path / f"{name}.vcf", tmp_path / name)
        digests.append(read_json(tmp_path / f"{name}.json")["files"])
    assert digests[0] == digests[1] != digests[2]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    order=st.lists(
        st.tuples(
            st.sampled_from(["1", "2"]),
            st.integers(1, 6),
            st.sampled_from("Aa"),
            st.sampled_from("CGt"),
        ),
        min_size=1,
        max_size=30,
    ),
    in_order=st.booleans(),
    n_samples=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_first_of_repeated_sites_is_kept(tmp_path, order, in_order, n_samples, seed):
    order = sorted(order, key=lambda site: site[:2]) if in_order else order
    rng = np.random.default_rng(seed)
    calls = rng.choice(["0/0", "0/1", "1/1", "./."], (len(order), n_samples))
    records = [
        f"{chrom} {pos} r{k} {ref} {alt} GT " + " ".join(calls[k])
        for k, (chrom, pos, ref, alt) in enumerate(order)
    ]
    text = write_vcf(tmp_path / "in.vcf", records, [f"S{k}" for k in range(n_samples)])
    counts = ingest_cohort(tmp_path / "in.vcf", tmp_path / "raw")
    parsed = parse_vcf_text(text)
    first: dict[tuple, int] = {}
    for k, (chrom, pos, _, ref, alt) in enumerate(parsed.sites):
        first.setdefault((chrom, pos, ref.upper(), alt.upper()), k)
    kept = list(first.values())
    sites, genotypes = read_back(tmp_path / "raw")
    assert sites == [parsed.sites[k] for k in kept]
    np.testing.assert_array_equal(genotypes, parsed.array()[kept])
    assert counts.duplicates == len(order) - len(kept)


def test_many_batches_and_threads(tmp_path):
    # 9 000 sites of 300 samples are several batches; every 50th site is repeated far away.
    rng = np.random.default_rng(5)
    genotypes = rng.integers(-1, 3, (100, 300)).astype(np.int8)
    rows = [" ".join(row) for row in np.array(["0/0", "0/1", "1/1", "./."])[genotypes]]
    records = [f"1 {k + 1} . A C GT {rows[k % 100]}" for k in range(9000)]
    records += [f"1 {k + 1} . A C GT {rows[0]}" for k in range(0, 9000, 50)]
    write_vcf(tmp_path / "in.vcf", records, [f"S{k}" for k in range(300)])
    expected = np.tile(genotypes, (90, 1))
    contents = []
    for threads in (1, 2, 3):
        prefix = tmp_path / f"raw{threads}"
        counts = ingest_cohort(tmp_path / "in.vcf", prefix, threads=threads)
        assert (counts.sites, counts.duplicates) == (9000, 180)
        np.testing.assert_array_equal(read_back(prefix)[1], expected)
        contents.append([beside(prefix, end).read_bytes() for end in (".bed", ".bim", ".json")])
    assert contents[0] == contents[1] == contents[2]


def test_an_error_leaves_nothing_behind(tmp_path):
    write_vcf(tmp_path / "in.vcf", ["1 5 . A C GT 0/1", "1 6 . A C GT zz"], ["x"])
    out = tmp_path / "out"
    out.mkdir()
    (out / "raw.bed").write_text("older")
    with pytest.raises(UserError, match="line 4"):
        ingest_cohort(tmp_path / "in.vcf", out / "raw")
    assert [p.name for p in out.iterdir()] == ["raw.bed"]
    assert (out / "raw.bed").read_text() == "older"


def test_no_sites_left(tmp_path):
    write_vcf(
        tmp_path / "in.vcf", ["1 5 . A C,G GT 0/1", "1 6 . A AC GT 0/1", "1 7 . A AC GT 1/1"], ["x"]
    )
    with pytest.raises(UserError) as error:
        ingest_cohort(tmp_path / "in.vcf", tmp_path / "raw")
    assert "none of its 3 records" in str(error.value)
    assert "multiallelic 1, indel 2" in str(error.value)
    write_vcf(tmp_path / "in.vcf", [], ["x"])
    with pytest.raises(UserError, match="has no records"):
        ingest_cohort(tmp_path / "in.vcf", tmp_path / "raw")
    assert [p.name for p in tmp_path.iterdir()] == ["in.vcf"]


def test_unknown_sex(tmp_path):
    write_vcf(tmp_path / "in.vcf", ["1 5 . A C GT 0/1"], ["x"])
    with pytest.raises(UserError, match="'x' has the sex 'male'"):
        ingest_cohort(tmp_path / "in.vcf", tmp_path / "raw", sexes={"x": "male"})


# --- PLINK to PLINK ---------------------------------------------------------------------------

BIM = [
    "1 rs1 0 5 C A",
    "1 . 0.5 6 G T",
    "1 . 0.5 6 G T",
    "1 indel 0 7 AC A",
    "1 coded 0 8 D I",
    "1 mono 0 9 0 A",
    "0 lost 0 0 C A",
    "2 out 0 -3 C A",
    "X rs2 0 9 c g",
]


def write_plink(prefix: Path, separator: str = "\t", n_samples: int = 5) -> np.ndarray:
    genotypes = np.random.default_rng(3).integers(-1, 3, (len(BIM), n_samples)).astype(np.int8)
    bim = "".join(line.replace(" ", separator) + "\n" for line in BIM)
    fam = [f"F{k % 2} S{k} 0 0 {k % 3} 1" for k in range(n_samples)]
    beside(prefix, ".bim").write_text(bim)
    beside(prefix, ".fam").write_text("".join(s.replace(" ", separator) + "\n" for s in fam))
    beside(prefix, ".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    return genotypes


@pytest.mark.parametrize("separator", ["\t", " ", "  "])
@pytest.mark.parametrize("suffix", ["", ".bed"])
def test_plink_source(tmp_path, separator, suffix):
    genotypes = write_plink(tmp_path / "in.x", separator)
    source = tmp_path / f"in.x{suffix}"
    assert read_sample_names(source) == ["S0", "S1", "S2", "S3", "S4"]
    counts = ingest_cohort(source, tmp_path / "raw", sexes={"S0": "M"})
    sites, found = read_back(tmp_path / "raw")
    assert [site[2] for site in sites] == ["rs1", ".", "mono", "rs2"]
    assert [site[3:] for site in sites] == [("A", "C"), ("T", "G"), ("A", "0"), ("g", "c")]
    np.testing.assert_array_equal(found[[0, 1, 3]], genotypes[[0, 1, 8]])
    np.testing.assert_array_equal(found[2], np.where(genotypes[5] == 0, 0, -1))
    assert read_fam(tmp_path / "raw").sex.tolist() == ["1", "1", "2", "0", "1"]
    assert counts.as_dict() | {"missing": 0, "unphased": 0} == DecodeCounts(
        records=9,
        indel=2,
        unplaced=2,
        snps=5,
        one_allele=1,
        half_calls=int((genotypes[5] == 1).sum()),
    ).as_dict() | {"duplicates": 1, "sites": 4, "samples": 5}


def test_plink_batches(tmp_path):
    genotypes = write_plink(tmp_path / "in")
    for chunk in (1, 10, 1000):
        batches = list(stream_plink(tmp_path / "in", DecodeCounts(), _chunk_bytes=chunk))
        rows = np.concatenate([batch.line for batch in batches]) - 1
        assert rows.tolist() == [0, 1, 2, 5, 8]
        found = np.concatenate([batch.genotypes for batch in batches])
        expected = genotypes[rows]
        expected[3] = np.where(expected[3] == 0, 0, -1)
        np.testing.assert_array_equal(found, expected)


def write_coded(prefix: Path, alleles: list[str], genotypes: np.ndarray) -> None:
    """PLINK files whose .bim has these columns of alleles, "A1 A2" for each site."""
    bim = [f"1 s{k} 0 {k + 1} {pair}\n" for k, pair in enumerate(alleles)]
    beside(prefix, ".bim").write_text("".join(bim))
    fam = [f"0 S{k} 0 0 0 -9\n" for k in range(genotypes.shape[1])]
    beside(prefix, ".fam").write_text("".join(fam))
    beside(prefix, ".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())


def test_one_known_allele_is_read_in_either_column(tmp_path):
    """A1 or A2 unknown: the known one is REF; a call with the unknown one is missing."""
    genotypes = np.array([[0, -1, 1, 2, 0], [2, -1, 1, 0, 2], [0, 0, 0, 1, 2]], np.int8)
    write_coded(tmp_path / "in", ["0 G", "G 0", "A G"], genotypes)
    counts = ingest_cohort(tmp_path / "in", tmp_path / "raw").decode
    sites, found = read_back(tmp_path / "raw")
    assert [site[3:] for site in sites] == [("G", "0"), ("G", "0"), ("G", "A")]
    expected = [0, -1, -1, -1, 0]
    np.testing.assert_array_equal(found, [expected, expected, genotypes[2]])
    assert (counts.one_allele, counts.half_calls, counts.missing) == (2, 2, 6)


def test_one_allele_is_no_duplicate_of_two(tmp_path):
    text = ["1 5 . A . GT 0/0", "1 5 . A C GT 0/1", "1 5 . A . GT 0/0", "1 6 . A . GT 0/0"]
    for end in ("1 9 . C . GT 0/0", "1 1 . C . GT 0/0"):  # then far duplicates are sought too
        write_vcf(tmp_path / "a.vcf", [*text, end], ["S"])
        counts = ingest_cohort(tmp_path / "a.vcf", tmp_path / "raw")
        alleles = [site[3:] for site in read_back(tmp_path / "raw")[0]]
        assert alleles == [("A", "0"), ("A", "C"), ("A", "0"), ("C", "0")]
        assert counts.duplicates == 1


def test_numbered_alleles(tmp_path):
    """1 to 4 are A, C, G, T where a 3 or 4 occurs; 1 and 2 alone name no bases."""
    genotypes = np.array([[0, 1], [1, 2], [0, 0]], np.int8)
    write_coded(tmp_path / "in", ["1 2", "4 3", "0 1"], genotypes)
    ingest_cohort(tmp_path / "in", tmp_path / "raw")
    sites, found = read_back(tmp_path / "raw")
    assert [site[3:] for site in sites] == [("C", "A"), ("G", "T"), ("A", "0")]
    np.testing.assert_array_equal(found, genotypes)
    write_coded(tmp_path / "in", ["1 2", "2 1", "0 1"], genotypes)
    with pytest.raises(UserError, match=r"in\.bim: the alleles are coded 1 and 2"):
        require_readable(tmp_path / "in", CallFilters())
    with pytest.raises(UserError, match=r"in\.bim: the alleles are coded 1 and 2"):
        ingest_cohort(tmp_path / "in", tmp_path / "raw")
    write_coded(tmp_path / "in", ["A C", "4 3", "0 G"], genotypes)
    counts = ingest_cohort(tmp_path / "in", tmp_path / "raw").decode
    assert (counts.non_acgt, counts.snps) == (1, 2)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 31, 33, 67])
def test_plink_rows_are_copied_without_their_padding(tmp_path, n_samples):
    """Rows pass from file to file as they are; bits beyond the last sample may hold anything."""
    genotypes = write_plink(tmp_path / "in", n_samples=n_samples)
    packed = pack_bed(genotypes)
    dirty = packed.copy()
    if n_samples % 4:
        dirty[:, -1] |= 0x55 & ~((1 << 2 * (n_samples % 4)) - 1) & 0xFF
    (tmp_path / "in.bed").write_bytes(BED_MAGIC + dirty.tobytes())
    counts = ingest_cohort(tmp_path / "in", tmp_path / "raw")
    kept = [0, 1, 5, 8]
    packed[5] = pack_bed(np.where(genotypes[5:6] == 0, 0, -1).astype(np.int8))
    assert (tmp_path / "raw.bed").read_bytes() == BED_MAGIC + packed[kept].tobytes()
    n_missing = int((genotypes[[0, 1, 2, 8]] == -1).sum())  # one of them is a duplicate
    n_missing += int((genotypes[5] != 0).sum())  # of one allele alone
    assert (counts.decode.missing, counts.decode.unphased) == (n_missing, 5 * n_samples - n_missing)


def test_plink_prefix(tmp_path):
    write_plink(tmp_path / "a.b")
    assert find_format(tmp_path / "a.b.bed") == (PLINK, tmp_path / "a.b")
    assert find_format(tmp_path / "a.b") == (PLINK, tmp_path / "a.b")
    assert find_format(tmp_path / "a").kind == VCF
    assert find_format(tmp_path / "a.vcf.gz").kind == VCF


def change(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize(
    ("end", "old", "new", "words"),
    [
        (".bed", b"\x6c\x1b\x01", b"\x6c\x1b\x00", "sample-major"),
        (".bed", b"\x6c\x1b\x01", b"\x00\x1b\x01", "not a PLINK 1 .bed"),
        (".bed", b"\x6c\x1b\x01", b"\x6c\x1b\x01\x00", "22 bytes where 9 sites of 5 samples"),
        (".bim", b"1\trs1\t0\t5", b"1\trs1\t0\tx5", "line 1: position 'x5'"),
        (".bim", b"1\trs1\t0\t5", b"1\trs1\t0\t5000000000", "line 1: position 5000000000"),
        (".bim", b"\t9\t0\tA", b"\t9\tA", "line 6: 6 columns"),
        (".bim", b"\t9\t0\tA", b"\t9\t0\tA\tC", "6 columns"),
        (".fam", b"S1", b"S0", "line 2: the sample name 'S0' occurs 2 times"),
        (".fam", b"S1", b"\xe9", "UTF-8"),
    ],
)
def test_plink_errors(tmp_path, end, old, new, words):
    write_plink(tmp_path / "in")
    change(beside(tmp_path / "in", end), old, new)
    with pytest.raises(UserError) as error:
        ingest_cohort(tmp_path / "in", tmp_path / "raw")
    assert words in str(error.value)
    assert f"in{end}" in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("*raw*"))


@pytest.mark.parametrize("end", [".bed", ".bim", ".fam"])
def test_plink_file_missing(tmp_path, end):
    write_plink(tmp_path / "in")
    beside(tmp_path / "in", end).unlink()
    with pytest.raises(UserError, match=f"in{end} does not exist"):
        ingest_cohort(tmp_path / "in.bed", tmp_path / "raw")


def test_plink_without_samples(tmp_path):
    write_plink(tmp_path / "in")
    beside(tmp_path / "in", ".fam").write_text("")
    with pytest.raises(UserError, match="has no samples"):
        ingest_cohort(tmp_path / "in", tmp_path / "raw")


# --- store ------------------------------------------------------------------------------------


def test_atomic_path(tmp_path):
    target = tmp_path / "new" / "a.txt"
    with atomic_path(target) as path:
        assert path.parent == target.parent
        path.write_text("one")
        assert not target.exists()
    assert target.read_text() == "one"
    with pytest.raises(KeyboardInterrupt), atomic_path(target) as path:
        path.write_text("two")
        raise KeyboardInterrupt
    assert target.read_text() == "one"
    assert list(target.parent.iterdir()) == [target]


def test_tables_keep_strings_exactly(tmp_path):
    beside(tmp_path / "a", ".fam").write_text('NA\t"x\t0\tnan\t1\t-9\n00\t1e5 y\t0\t0\t\u00e9\t#\n')
    fam = read_fam(tmp_path / "a")
    assert fam.iloc[0].tolist() == ["NA", '"x', "0", "nan", "1", "-9"]
    assert fam.iloc[1].tolist() == ["00", "1e5 y", "0", "0", "\u00e9", "#"]
    write_fam(tmp_path / "b", fam)
    assert (
        beside(tmp_path / "b", ".fam").read_bytes() == beside(tmp_path / "a", ".fam").read_bytes()
    )
    beside(tmp_path / "a", ".bim").write_text("")
    assert len(read_bim(tmp_path / "a")) == 0
    beside(tmp_path / "a", ".bim").write_text("1\tNA\t0\t7\tA\tC\n" * 5)
    bim = read_bim(tmp_path / "a")
    assert bim.pos.dtype == np.int64
    assert bim.id.tolist() == ["NA"] * 5
    assert [len(part) for part in iterate_bim(tmp_path / "a", 2)] == [2, 2, 1]


def test_json(tmp_path):
    write_json(tmp_path / "a.json", {"name": "é", "n": 3})
    assert read_json(tmp_path / "a.json") == {"name": "é", "n": 3}


# --- real data --------------------------------------------------------------------------------


@pytest.mark.shared
def test_plink_reads_what_was_written(shared_data, tmp_path):
    plink = shutil.which("plink2") or shutil.which("plink1.9") or shutil.which("plink")
    if plink is None:
        pytest.skip("No plink on the path; install it to compare with it.")
    source = shared_data / "hapmap279" / "hapmap279.vcf.gz"
    counts = ingest_cohort(source, tmp_path / "raw", threads=2)
    assert (counts.decode.snps, counts.sites, counts.samples) == (9088, 9087, 279)
    subprocess.run(
        [plink, "--bfile", tmp_path / "raw", "--allow-extra-chr", "--make-bed", "--out",
         tmp_path / "again"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    first, second = read_bim(tmp_path / "raw"), read_bim(tmp_path / "again")
    assert set(zip(first.pos, first.id, strict=True)) == set(
        zip(second.pos, second.id, strict=True)
    )


@pytest.mark.shared
def test_same_cohort_as_vcf_and_plink(shared_data, tmp_path):
    folder = shared_data / "gametes"
    ingest_cohort(folder / "bitepi_example123.vcf.gz", tmp_path / "vcf")
    ingest_cohort(folder / "bitepi_example123_DS", tmp_path / "plink")
    from_vcf, from_plink = read_back(tmp_path / "vcf"), read_back(tmp_path / "plink")
    assert [site[2] for site in from_vcf[0]] == [site[2] for site in from_plink[0]]
    for site, row, other_site, other_row in zip(*from_vcf, *from_plink, strict=True):
        turned = site[3:] == other_site[3:][::-1]
        np.testing.assert_array_equal(np.where(row < 0, -1, 2 - row) if turned else row, other_row)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 8, 33, 64, 65, 130])
def test_taking_samples_equals_unpacking(n_samples):
    rng = np.random.default_rng(n_samples)
    packed = rng.integers(0, 256, (7, bed_row_bytes(n_samples)), np.uint8)
    genotypes = unpack_bed(packed, n_samples)
    every = np.arange(n_samples)
    for kept in (
        *(np.delete(every, k) for k in range(n_samples)),  # one left out: neighbours move
        *(np.flatnonzero(rng.random(n_samples) < share) for share in (0, 0.5, 0.9, 1)),
        rng.permutation(n_samples),
    ):
        expected = pack_bed(np.ascontiguousarray(genotypes[:, kept]))
        np.testing.assert_array_equal(take_samples(packed, kept), expected)


def compare_with_copy(folder: Path, monkeypatch, bim: list[str]) -> Path:
    """Decode files of nine samples and these sites by naming their rows, too; return the prefix."""
    genotypes = np.random.default_rng(len(bim)).integers(-1, 3, (len(bim), 9)).astype(np.int8)
    monkeypatch.chdir(folder)  # as jobs do
    source = Path("data/in")
    source.parent.mkdir(exist_ok=True)
    write_coded(source, ["C A"] * len(bim), genotypes)
    beside(source, ".bim").write_text("".join(f"{line}\n" for line in bim))
    ingest_cohort(source, folder / "copied")
    monkeypatch.setattr(raw_sites, "LEAST_NAMED", 0)
    ingest_cohort(source, folder / "results/raw")
    for end in (".bim", ".fam"):
        one, other = (beside(folder / name, end).read_bytes() for name in ("copied", "results/raw"))
        assert one == other
    copied, named = open_bed(folder / "copied"), open_bed(folder / "results/raw")
    assert (len(named), named.shape) == (len(copied), copied.shape)
    n = len(copied)
    for which in (slice(None), slice(1, n - 1), np.arange(n)[::-1], np.array([0, 0, n - 1])):
        np.testing.assert_array_equal(named[which], copied[which])
    assert bytes_meant(folder / "results/raw.bed") == (folder / "copied.bed").stat().st_size
    return folder / "results/raw"


SITES = [f"1 s{k} 0 {k + 1} C A" for k in range(40)]


@pytest.mark.parametrize(
    ("bim", "named"),
    [
        (SITES, True),
        (["0 x 0 0 C A", *SITES], True),  # the first is unplaced: consecutive rows
        ([*SITES[:9], "1 indel 0 9 CA A", SITES[8], *SITES[9:]], True),
        ([*SITES, "1 later 0 3 C A"], False),  # a repeated site far away
    ],
)
def test_rows_of_a_large_bed_are_named_not_copied(tmp_path, monkeypatch, bim, named):
    raw = compare_with_copy(tmp_path, monkeypatch, bim)
    assert (beside(raw, ".bed").read_bytes()[:8] == b"popdesic") == named
    shutil.copytree(tmp_path, tmp_path / "moved")  # a study is moved as a whole
    if named:
        shutil.rmtree(tmp_path / "data")
        with pytest.raises(
            UserError, match=r"raw.bed names rows of .*in.bed, which does not exist"
        ):
            open_bed(raw)
    assert len(open_bed(tmp_path / "moved/results/raw")) == 40


def test_a_bed_whose_rows_are_not_kept_as_they_are_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_sites, "LEAST_NAMED", 0)
    monkeypatch.setattr(plink, "CHUNK_BYTES", 1)
    genotypes = np.array([[0, 1, 2], [0, -1, 1], [2, 1, 0]], np.int8)
    write_coded(tmp_path / "in", ["C A", "0 G", "C A"], genotypes)  # a call of an unknown allele
    ingest_cohort(tmp_path / "in", tmp_path / "raw")
    np.testing.assert_array_equal(
        read_back(tmp_path / "raw")[1], [*genotypes[:1], [0, -1, -1], genotypes[2]]
    )
    ingest_cohort(tmp_path / "in", tmp_path / "few", excluded=["S1"])
    assert len(read_fam(tmp_path / "few")) == 2 and open_bed(tmp_path / "few").shape == (3, 1)


def edit_in_place(bed: Path) -> None:
    """Another genotype, at the size and date that the file had."""
    dates, content = (bed.stat().st_atime_ns, bed.stat().st_mtime_ns), bytearray(bed.read_bytes())
    content[-1] ^= 1
    bed.write_bytes(content)
    os.utime(bed, ns=dates)


def test_a_bed_that_changed_after_its_rows_were_named_is_refused(tmp_path, monkeypatch):
    raw = compare_with_copy(tmp_path, monkeypatch, SITES)
    bed, changed = tmp_path / "data/in.bed", "raw.bed names rows of .*in.bed, which was changed"
    before = bed.read_bytes()
    edit_in_place(bed)
    os.utime(beside(raw, ".bed"))  # as --touch does
    with pytest.raises(UserError, match=changed):
        open_bed(raw)
    bed.write_bytes(before)  # put back, with a date of its own
    open_bed(raw)
    assert damaged_files(tmp_path)[0] == []
    bed.unlink()
    bed.write_bytes(before)
    edit_in_place(bed)
    os.utime(bed, ns=(0, 0))  # an older file of the same size
    ((name, wrong),) = damaged_files(tmp_path)[0]
    assert name == "results/raw.bed" and "it names rows of" in wrong
    with pytest.raises(UserError, match=changed):
        open_bed(raw)
    bed.write_bytes(before + b"\0")
    with pytest.raises(UserError, match="was changed since; put it back, or delete"):
        open_bed(raw)


def test_a_bed_outside_of_a_study_that_is_moved_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(raw_sites, "LEAST_NAMED", 0)
    (tmp_path / "data").mkdir()
    genotypes = np.array([[0, 1, 2], [2, 1, 0]], np.int8)
    write_coded(tmp_path / "data/in", ["C A", "C A"], genotypes)
    ingest_cohort(tmp_path / "data/in", Path("study/results/raw"))
    assert (tmp_path / "study/results/raw.bed").read_bytes()[:8] == b"popdesic"
    shutil.copytree(tmp_path / "study", tmp_path / "else/where/study")
    found, expected = (
        open_bed(prefix)[:] for prefix in (Path("else/where/study/results/raw"), Path("data/in"))
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [14, 60, -1])
def test_names_of_rows_that_were_cut_are_one_sentence(tmp_path, monkeypatch, size):
    bed = beside(compare_with_copy(tmp_path, monkeypatch, SITES), ".bed")
    os.truncate(bed, size if size > 0 else bed.stat().st_size + size)
    with pytest.raises(UserError, match=r"raw.bed does not name the 40 rows of its .bim; delete"):
        open_bed(tmp_path / "results/raw")
    assert bytes_meant(bed) in (bed.stat().st_size, 3 + 40 * 3)
