"""Reading VCF and BCF: rules, chunk boundaries, errors; compared with a slow parser and htslib."""

import gzip
import os
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zlib
from pathlib import Path

import cyvcf2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.reference import parse_vcf_text

from popdesic.core.errors import UserError
from popdesic.io import vcf_text_cpu
from popdesic.io.batches import DecodeCounts, count_fields
from popdesic.io.bgzf import BGZF_END
from popdesic.io.formats import read_sample_names
from popdesic.io.vcf import stream_sites
from popdesic.io.vcf_header import read_header

HEADER = (
    "##fileformat=VCFv4.2\n"
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">\n'
    "##contig=<ID=1>\n##contig=<length=9,ID=2>\n"
)
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"


def vcf_text_of(*records: str, samples: int | list[str] = 2) -> str:
    """Return a VCF; a record is 'CHROM POS ID REF ALT FORMAT call call ...'."""
    names = [f"S{k}" for k in range(samples)] if isinstance(samples, int) else samples
    lines = ["\t".join([COLUMNS, *names])]
    for record in records:
        fields = record.split(" ")
        lines.append("\t".join([*fields[:5], ".", "PASS", ".", *fields[5:]]))
    return HEADER + "\n".join(lines) + "\n"


def bgzf(data: bytes, block: int = 1000) -> bytes:
    """Compress to BGZF with `block` bytes per block."""
    out = []
    for start in range(0, len(data), block):
        part = data[start : start + block]
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        deflated = packer.compress(part) + packer.flush()
        head = BGZF_END[:16] + struct.pack("<H", len(deflated) + 25)
        out.append(head + deflated + struct.pack("<II", zlib.crc32(part), len(part)))
    return b"".join(out) + BGZF_END


def write(path: Path, text: str | bytes, kind: str = "plain", block: int = 1000) -> Path:
    data = text.encode() if isinstance(text, str) else text
    packers = {"plain": lambda d: d, "gzip": gzip.compress, "bgzf": lambda d: bgzf(d, block)}
    path.write_bytes(packers[kind](data))
    return path


def collect(path: Path, **options):
    """Read a whole stream; return (sites, lines, genotypes, counts)."""
    counts = DecodeCounts()
    sites, lines, rows = [], [], []
    for batch in stream_sites(path, counts=counts, **options):
        assert batch.genotypes.dtype == np.int8
        sites += zip(batch.chrom, batch.pos.tolist(), batch.id, batch.ref, batch.alt, strict=True)
        lines += batch.line.tolist()
        rows.append(batch.genotypes.copy())
    genotypes = np.concatenate(rows) if rows else np.empty((0, 0), np.int8)
    return sites, lines, genotypes, counts


def assert_as_parsed(path: Path, text: str, haploid: str = "error", **options) -> None:
    parsed = parse_vcf_text(text, haploid)
    sites, lines, genotypes, counts = collect(path, haploid=haploid, **options)
    assert sites == parsed.sites
    assert lines == parsed.lines
    assert counts.as_dict() == parsed.counts
    if sites:
        np.testing.assert_array_equal(genotypes, parsed.array())


def test_counts_have_the_order_of_the_kernel():
    names = count_fields()
    slots = [
        "RECORDS MULTIALLELIC INDEL SYMBOLIC STAR NO_ALT NON_ACGT UNPLACED SNPS",
        "MISSING_CALLS HALF_CALLS HAPLOID_CALLS PHASED UNPHASED ONE_ALLELE FILTERED LOW_QUAL",
        "NO_DEPTH LOW_DP HIGH_DP LOW_GQ UNBALANCED THINNED_SITES REFERENCE_BLOCK MADE_REFERENCE",
        "ODD_BLOCK_CALLS",
    ]
    assert len(names) == vcf_text_cpu.N_COUNTS
    for name, slot in zip(names, " ".join(slots).split(), strict=True):
        assert (
            slot.startswith(name.upper())
            or name.upper().startswith(slot)
            or slot == "THINNED_SITES"
        )
        assert names.index(name) == getattr(vcf_text_cpu, slot)


MIXED = [
    "1 10 rs1 A G GT 0/0 0/1 1/1 ./. 1|0",
    "1 10 rs1 A G,T GT 0/0 0/1 1/1 ./. 1|2",
    "1 11 . A AT GT 0/0 0/1 1/1 ./. 1|0",
    "1 12 . AT GC GT 0/0 0/1 1/1 ./. 1|0",
    "1 13 . A <DEL> GT 0/0 0/1 1/1 ./. 1|0",
    "1 13 . A <NON_REF> GT 0/0 0/0 0/0 0/0 0/0",
    "1 13 . A A[2:7[ GT 0/0 0/0 0/0 0/0 0/0",
    "1 13 . A .A GT 0/0 0/0 0/0 0/0 0/0",
    "1 14 . A * GT 0/0 0/1 1/1 ./. 1|0",
    "1 15 . A . GT 0/0 0/0 0/0 0/0 0/0",
    "1 16 . N A GT 0/0 0/0 0/0 0/0 0/0",
    "1 17 x;y a c DP:GT 3:0/1 4:1|1 .:. 5 ::",
    "2 1 . T C GT:DP ./1 1|. . ./.:3 .|.",
    "0 2147483647 . G T GT:DP:PL 0|0:1:1,2,3 1|1 1/0:. 0/1:7 .",
]


@pytest.mark.parametrize("kind", ["plain", "gzip", "bgzf"])
@pytest.mark.parametrize("threads", [1, 2])
def test_mixed_records(tmp_path, kind, threads):
    records = [r.replace("::", ".:.") for r in MIXED]
    text = vcf_text_of(*records, samples=5)
    path = write(tmp_path / "a.vcf", text, kind)
    assert_as_parsed(path, text, threads=threads)
    sites, _, genotypes, counts = collect(path)
    assert [site[2] for site in sites] == ["rs1", ".", "x;y", ".", "."]
    assert sites[1][3:] == ("A", ".")
    assert genotypes.tolist()[:2] == [[0, 1, 2, -1, 1], [0] * 5]
    assert genotypes.tolist()[3] == [-1] * 5
    assert counts.one_allele == 1
    assert counts.half_calls == 2
    assert counts.dropped() == {
        "multiallelic": 1,
        "indel": 2,
        "symbolic": 3,
        "reference_blocks": 1,
        "star": 1,
        "non_acgt": 1,
    }


@pytest.mark.parametrize("haploid", ["diploidize", "missing"])
def test_haploid_policies(tmp_path, haploid):
    text = vcf_text_of("X 5 . A C GT 0 1 0/1", "X 6 . A C GT:DP 1:3 .:2 1|1", samples=3)
    path = write(tmp_path / "a.vcf", text)
    assert_as_parsed(path, text, haploid)
    genotypes, counts = collect(path, haploid=haploid)[2:]
    expected = [[0, 2, 1], [2, -1, 2]] if haploid == "diploidize" else [[-1, -1, 1], [-1, -1, 2]]
    assert genotypes.tolist() == expected
    assert counts.haploid_calls == 3


@pytest.mark.parametrize("kind", ["text", "bcf"])
@pytest.mark.parametrize("n_samples", [2, 1500])
def test_haploid_policy_by_contig(tmp_path, kind, n_samples):
    """Males are haploid on X and everybody on MT; on chromosome 2 a haploid call is an error."""
    rest = " 0/0" * (n_samples - 2)
    rows = [f"{c} 5 . A C GT 1 0/1{rest}" for c in ("X", "MT", "chrX", "M")]
    text = vcf_text_of(*rows, samples=n_samples)
    path = write(tmp_path / "a.vcf", text)
    if kind == "bcf":
        header = "".join(f"##contig=<ID={c}>\n" for c in ("X", "MT", "chrX", "M"))
        path.write_text(text.replace("##contig=<ID=1>\n", header))
        writer = cyvcf2.Writer(str(tmp_path / "a.bcf"), cyvcf2.VCF(str(path)), "wb")
        for record in cyvcf2.VCF(str(path)):
            writer.write_record(record)
        writer.close()
        path = tmp_path / "a.bcf"
    policy = {"X": "diploidize", "MT": "missing", "M": "missing", "default": "diploidize"}
    genotypes, counts = collect(path, haploid=policy, threads=2)[2:]
    assert genotypes[:, :2].tolist() == [[2, 1], [-1, 1], [2, 1], [-1, 1]]
    assert (counts.haploid_calls, counts.missing) == (4, 2)
    with pytest.raises(UserError, match=r"haploid; set contigs\.haploid"):
        collect(path, haploid=policy | {"default": "error"})
    del policy["default"]
    with pytest.raises(UserError, match=r"haploid"):
        collect(path, haploid=policy)


@pytest.mark.parametrize("n_samples", [1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 1026, 2100])
def test_long_runs_with_unusual_calls(tmp_path, n_samples):
    rng = np.random.default_rng(n_samples)
    plain = np.array(["0/0", "0/1", "1/0", "1/1", "./.", "0|1", "1|1", ".|."], "U4")
    odd = np.array([".", "./1", "0", "1|.", "00/1"])
    records = []
    for site in range(30):
        calls = rng.choice(plain, n_samples)
        for k in rng.integers(0, n_samples, site % 3):
            calls[k] = rng.choice(odd)
        records.append(f"1 {site + 1} . A C GT " + " ".join(calls))
    text = vcf_text_of(*records, samples=n_samples)
    assert_as_parsed(write(tmp_path / "a.vcf", text), text, "diploidize")


@pytest.mark.parametrize("n_samples", [1, 2, 3, 17, 64, 65, 1024, 1025, 1026, 2100])
def test_long_runs_with_further_fields(tmp_path, n_samples):
    """Columns of 3 to 40 bytes, so their ends lie anywhere in the blocks that are compared."""
    rng = np.random.default_rng(n_samples)
    plain = np.array(["0/0", "0/1", "1/0", "1/1", "./.", "0|1", "1|1", ".|."], "U4")
    odd = np.array([".", "./1", "0", "1|.", "00/1"])
    rests = np.array(["", ":", ":3", ":30:99", ":.:.", ":12,0:12:36:0,36,400", ":" + "7" * 36])
    records = []
    for site in range(12):
        calls = rng.choice(plain, n_samples)
        for k in rng.integers(0, n_samples, site % 3):
            calls[k] = rng.choice(odd)
        columns = np.strings.add(calls, rng.choice(rests, n_samples))
        records.append(f"1 {site + 1} . A C GT:AD:DP:PL " + " ".join(columns))
    text = vcf_text_of(*records, samples=n_samples)
    assert_as_parsed(write(tmp_path / "a.vcf", text), text, "diploidize")


@pytest.mark.parametrize("n_columns", [1498, 1499, 1501])
@pytest.mark.parametrize("keys", ["GT", "GT:DP"])
def test_wrong_number_of_columns_in_long_lines(tmp_path, n_columns, keys):
    call = "0/1" if keys == "GT" else "0/1:30"
    rows = [f"1 {k} . A C {keys}" + f" {call}" * n for k, n in ((1, 1500), (2, n_columns))]
    path = write(tmp_path / "a.vcf", vcf_text_of(*rows, rows[0], samples=1500))
    with pytest.raises(UserError) as error:
        collect(path)
    one_sentence(error, f"{path}, line 8: ", f"{n_columns + 9} columns")


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 129, 1000])
@pytest.mark.parametrize("kind", ["plain", "gzip", "bgzf"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_chunk_boundaries(tmp_path, chunk, kind, end):
    records = [r.replace("::", ".:.") for r in MIXED] * 3
    text = vcf_text_of(*records, samples=5)
    text = text.removesuffix("\n") if end == "" else text.replace("\n", end)
    path = write(tmp_path / "a.vcf", text, kind, block=max(3, chunk))
    assert_as_parsed(path, text, _chunk_bytes=chunk)
    assert_as_parsed(path, text, _chunk_bytes=chunk, threads=2)


def test_blank_lines_are_skipped(tmp_path):
    text = vcf_text_of("1 5 . A C GT 0/1 0/0", "1 6 . A C GT 0/1 0/0").replace("1\t6", "\n\n1\t6")
    assert_as_parsed(write(tmp_path / "a.vcf", text + "\n"), text)


def test_windows_line_endings_after_further_format_fields(tmp_path):
    text = vcf_text_of("1 5 . A C GT:DP 0/1:3 0/0:4", "1 6 . A T GT 0/1 0/0").replace("\n", "\r\n")
    assert_as_parsed(write(tmp_path / "a.vcf", text), text)


def test_no_records(tmp_path):
    path = write(tmp_path / "a.vcf", vcf_text_of(), "bgzf")
    assert collect(path)[0] == []
    assert collect(write(tmp_path / "b.vcf", vcf_text_of().rstrip("\n")))[3] == DecodeCounts()


def test_one_very_long_line(tmp_path):
    info = "X=" + "A" * 100_000_000
    text = vcf_text_of("1 5 . A C GT 0/1 1/1", "1 6 . A C GT 0/0 ./.").replace(
        "\t.\tGT", f"\t{info}\tGT", 1
    )
    path = write(tmp_path / "a.vcf", text, "gzip")
    assert collect(path)[2].tolist() == [[1, 2], [0, -1]]


@pytest.mark.parametrize("threads", [1, 2])
def test_lines_over_many_pieces(tmp_path, threads, rng):
    lines = [
        f"1 {pos} . A C GT " + " ".join(rng.choice(["0/0", "0/1", "1|1", "./."], 40_000))
        for pos in range(5, 25)
    ]
    text = vcf_text_of(*lines, samples=40_000)
    path = write(tmp_path / "a.vcf.gz", text, "bgzf", 60_000)
    for chunk in (1, 100_000, 1 << 20):  # of a third of a line, of two, and of seven lines
        assert_as_parsed(path, text, threads=threads, _chunk_bytes=chunk)


def stored_block(part: bytes, size: int, after: bytes = b"") -> bytes:
    """A BGZF block that states `size` bytes of text, with bytes after the end of its member."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    deflated = packer.compress(part) + packer.flush()
    head = BGZF_END[:16] + struct.pack("<H", len(deflated) + 25 + len(after))
    return head + deflated + struct.pack("<II", zlib.crc32(part), size) + after


@pytest.mark.parametrize("threads", [1, 2])
def test_unusual_blocks(tmp_path, threads):
    text = vcf_text_of(*(f"1 {pos} . A C GT 0/1 1/1" for pos in range(5, 25_000)))
    data = text.encode()
    path = tmp_path / "a.vcf.gz"
    end = BGZF_END
    whole = stored_block(data, len(data))  # more text than bgzip puts into a block
    after = stored_block(data[:9000], 9000, b"\0\0\0\0\0") + stored_block(
        data[9000:], len(data) - 9000
    )
    more = stored_block(data[:9000], 9000, bgzf(b"1")[:20]) + whole[:0]
    more += stored_block(data[9000:], len(data) - 9000)
    for content in (whole + end, after + end, more + end):
        path.write_bytes(content)
        for chunk in (1, 1 << 20):
            assert_as_parsed(path, text, threads=threads, _chunk_bytes=chunk)
    damaged = bytearray(bgzf(data, 60_000))
    damaged[len(damaged) // 2] ^= 0xFF
    short, long = stored_block(data, len(data) - 1), stored_block(data, len(data) + 1)
    for content in (bytes(damaged), short + end, long + end, stored_block(data, 1 << 31) + end):
        path.write_bytes(content)
        with pytest.raises(UserError) as error:
            collect(path, threads=threads)
        one_sentence(error, f"{path} is cut short or damaged", "copy or compress it again")


def test_header(tmp_path):
    names = ["a b", "ä", "0", "x:y"]
    path = write(tmp_path / "a.vcf", vcf_text_of(samples=names), "bgzf")
    header = read_header(path)
    assert (header.samples, header.contigs) == (names, ["1", "2"])
    assert (header.kind, header.compression, header.n_lines) == ("vcf", "bgzf", 6)
    assert read_header(str(path)) == header
    assert read_sample_names(path) == names
    for kind in ("plain", "gzip"):
        header = read_header(write(tmp_path / "a.vcf", vcf_text_of(samples=names), kind))
        assert header.compression == {"plain": "none"}.get(kind, kind)


def test_names_are_read_without_numba(tmp_path):
    path = write(tmp_path / "a.vcf.gz", vcf_text_of(), "bgzf")
    code = (
        "import sys; from popdesic.io.formats import read_sample_names; "
        f"print(read_sample_names({str(path)!r}), 'numba' in sys.modules)"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['S0', 'S1'] False\n"


def one_sentence(error: pytest.ExceptionInfo, *words: str) -> None:
    """Check that the error is a single sentence on one line and contains the words."""
    text = str(error.value)
    for word in words:
        assert word in text, text
    assert "\n" not in text
    assert text.endswith(".")


GOOD = vcf_text_of("1 5 . A C GT 0/1 0/0").encode()
HEADERS = {
    "empty": (b"", ["is empty"]),
    "text": (b"sample\tsex\nS0\tM\n", ["not a VCF", "'sample"]),
    "binary": (bytes(range(256)), ["not a VCF"]),
    "short": (b"ab", ["not a VCF"]),
    "bcf1": (b"BCF\x04" + bytes(40), ["not a VCF"]),
    "bcf_cut": (b"BCF\x02\x02\xff\x00\x00\x00##fileformat", ["cut short"]),
    "no_chrom_line": (HEADER.encode() + b"1\t5\t.\tA\tC\n", ["line 6", "#CHROM"]),
    "only_meta": (HEADER.encode(), ["#CHROM"]),
    "spaces": (GOOD.replace(b"\t", b" "), ["line 6", "separated by tabs"]),
    "no_samples": (GOOD.split(b"\tFORMAT")[0] + b"\n", ["no samples"]),
    "format_alone": (GOOD.split(b"\tS0")[0] + b"\n", ["no samples"]),
    "same_name": (GOOD.replace(b"\tS1", b"\tS0"), ["line 6", "'S0'", "2 times"]),
    "empty_name": (GOOD.replace(b"\tS1", b"\t"), ["line 6", "sample 2", "empty name"]),
    "latin1": (GOOD.replace(b"Genotype", b"G\xe9notype"), ["line 2", "UTF-8", "0xe9"]),
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("kind", ["plain", "gzip", "bgzf"])
def test_header_errors(tmp_path, name, kind):
    data, words = HEADERS[name]
    if name == "empty":
        kind = "plain"
    path = write(tmp_path / "bad.vcf", data, kind)
    with pytest.raises(UserError) as error:
        read_header(path)
    one_sentence(error, str(path), *words)
    with pytest.raises(UserError):
        list(stream_sites(path))
    with pytest.raises(UserError) as error:
        read_sample_names(path, "cohorts.tsv, row 3")
    one_sentence(error, "cohorts.tsv, row 3: ", str(path), *words)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UserError) as error:
        read_header(tmp_path / "none.vcf")
    one_sentence(error, "none.vcf does not exist")
    with pytest.raises(UserError) as error:
        read_header(tmp_path)
    one_sentence(error, "cannot be read")


def test_truncated_files(tmp_path):
    text = vcf_text_of(*(f"1 {k + 1} . A C GT 0/1 0/0" for k in range(2000)))
    whole = bgzf(text.encode())
    for size in (len(whole) - 1, len(whole) - 28, len(whole) // 2):
        path = tmp_path / "cut.vcf.gz"
        path.write_bytes(whole[:size])
        with pytest.raises(UserError) as error:
            read_header(path)
        one_sentence(error, "is cut short", "copy or compress it again")
    # A gap in the middle is found only while reading.
    path.write_bytes(whole[: len(whole) // 2] + whole[len(whole) // 2 + 100 :])
    for threads in (1, 2):
        with pytest.raises(UserError) as error:
            list(stream_sites(path, threads=threads))
        one_sentence(error, "damaged")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    path.write_bytes(damaged)
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    path.write_bytes(whole[: len(whole) // 2] + BGZF_END)
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    one_sentence(error, "damaged")
    zipped = gzip.compress(text.encode())
    path.write_bytes(zipped[: len(zipped) // 2])
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    one_sentence(error, "cut short")
    path = write(tmp_path / "cut.vcf", text[:-3])
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    one_sentence(error, "line 2006", "'0'", "haploid")
    path = write(tmp_path / "cut.vcf", text[:-5])
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    one_sentence(error, "line 2006", "10 columns where 11")


RECORD_ERRORS = {
    "haploid": ("X 5 . A C GT 0/1 1", ["line 8", "'1'", "'S1'", "contigs.haploid", "diploidize"]),
    "triploid": ("1 5 . A C GT:DP 0/1:3 0/1/1:4", ["'0/1/1'", "'S1'", "more than two alleles"]),
    "unknown_tetraploid": ("1 5 . A C GT ./././. 0/1", ["'./././.'", "more than two"]),
    "allele": ("1 5 . A C GT 0/1 1/2", ["'1/2'", "'S1'", "one ALT"]),
    "allele_of_two_digits": ("1 5 . A C GT 10/0 1/1", ["'10/0'", "'S0'", "one ALT"]),
    "malformed": ("1 5 . A C GT 0/1 0-1", ["'0-1'", "'S1'", "not a genotype"]),
    "letters": ("1 5 . A C GT 0/1 A/C", ["'A/C'", "not a genotype"]),
    "minus": ("1 5 . A C GT -1/0 0/1", ["'-1/0'", "not a genotype"]),
    "one_side": ("1 5 . A C GT 0/ 0/1", ["'0/'", "not a genotype"]),
    "no_call": ("1 5 . A C GT  0/1", ["''", "'S0'", "not a genotype"]),
    "no_call_later": ("1 5 . A C DP:GT  3:0/1", ["''", "'S0'", "not a genotype"]),
    "no_call_at_the_end": ("1 5 . A C DP:GT 3:0/1 ", ["''", "'S1'", "not a genotype"]),
    "dosage_as_gt": ("1 5 . A C GT 0/1 0.98", ["'0.98'", "dosage", "hard calls"]),
    "no_gt": ("1 5 . A C DP 1 2", ["line 8", "'DP'", "(GT)"]),
    "few_columns": ("1 5 . A C GT 0/1", ["10 columns where 11"]),
    "many_columns": ("1 5 . A C GT 0/1 0/1 0/1", ["12 columns where 11"]),
    "few_in_dropped": ("1 5 . A C,T GT 0/1", ["10 columns where 11"]),
    "bad_call_and_columns": ("1 5 . A C GT zz 0/1 0/1 0/1", ["13 columns where 11"]),
    "pos_word": ("1 x5 . A C GT 0/1 0/1", ["POS 'x5'"]),
    "pos_negative": ("1 -5 . A C GT 0/1 0/1", ["POS '-5'"]),
    "pos_huge": ("1 2147483648 . A C GT 0/1 0/1", ["POS '2147483648'"]),
    "pos_float": ("1 1e5 . A C GT 0/1 0/1", ["POS '1e5'"]),
    "no_chrom": (" 5 . A C GT 0/1 0/1", ["CHROM is empty"]),
    "no_id": ("1 5  A C GT 0/1 0/1", ["ID is empty"]),
    "header_line": ("#1 5 . A C GT 0/1 0/1", ["header line"]),
}


@pytest.mark.parametrize("name", RECORD_ERRORS)
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_record_errors(tmp_path, name, chunk):
    record, words = RECORD_ERRORS[name]
    text = vcf_text_of("1 4 . A C GT 0/1 1/1", record, "1 9 . A C GT 0/1 1/1")
    if name not in ("few_columns", "many_columns", "few_in_dropped", "bad_call_and_columns"):
        with pytest.raises(ValueError):
            parse_vcf_text(text)
    for ending in ("\n", "\r\n"):
        path = write(tmp_path / "bad.vcf", text.replace("\n", ending))
        for threads in (1, 2):
            with pytest.raises(UserError) as error:
                list(stream_sites(path, threads=threads, _chunk_bytes=chunk))
            one_sentence(error, f"{path}, line 8: ", *words)


def test_dosages_without_genotypes(tmp_path):
    path = write(tmp_path / "a.vcf", vcf_text_of("1 5 . A C DS:GP 0.1:1,0,0 1.9:0,0,1"))
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    one_sentence(error, "line 7", "'DS:GP'", "dosages", "hard calls are needed")


def test_names_that_are_not_utf8(tmp_path):
    data = vcf_text_of("1 5 r1 A C GT 0/1 0/0", "1 6 r2 A C GT 0/1 0/0").encode()
    path = write(tmp_path / "a.vcf", data.replace(b"r2", b"r\xe9"))
    with pytest.raises(UserError) as error:
        list(stream_sites(path))
    one_sentence(error, "line 8", "UTF-8")


def test_unknown_policy(tmp_path):
    with pytest.raises(ValueError, match="haploid"):
        list(stream_sites(tmp_path / "a.vcf", haploid="drop"))


# --- random texts -----------------------------------------------------------------------------

CALLS = ["0/0", "0/1", "1|0", "1/1", "./.", ".|.", ".", "./1", "0|."]
ODD_CALLS = ["0", "1", "0/0/1", "1/2", "", "0/", "x", "0.5", "01/1", "./././.", "2"]


@st.composite
def random_vcf(draw) -> str:
    n_samples = draw(st.integers(1, 9))
    odd = draw(st.booleans())
    records = []
    for _ in range(draw(st.integers(0, 12))):
        chrom = draw(st.sampled_from(["1", "1", "chrUn_é", "X"]))
        pos = draw(st.integers(0 if odd else 1, 300))
        ref = draw(st.sampled_from(["A", "A", "C", "g", "N", "AC"]))
        alt = draw(st.sampled_from(["T", "T", "G", "t", ".", "*", "T,G", "<DEL>", "TT", "T]1:4]"]))
        keys = draw(st.sampled_from(["GT", "GT", "GT:DP", "DP:GT", "GT:DP:GQ", "DP:GQ:GT"]))
        if odd and draw(st.integers(0, 15)) == 0:
            keys = "DP"
        columns = []
        for _ in range(n_samples):
            choice = ODD_CALLS if odd and draw(st.integers(0, 30)) == 0 else CALLS
            call = draw(st.sampled_from(choice))
            values = {"GT": call, "DP": "7", "GQ": "."}
            column = ":".join(values[key] for key in keys.split(":"))
            if draw(st.integers(0, 9)) == 0:
                n_kept = draw(st.integers(1, 3))  # trailing fields dropped
                column = ":".join(column.split(":")[:n_kept]) + draw(st.sampled_from(["", ":"]))
            columns.append(column)
        extra = ["0/0"] if odd and draw(st.integers(0, 20)) == 0 else []
        records.append(" ".join([chrom, str(pos), draw(st.sampled_from([".", "rs1"])), ref, alt]))
        records[-1] += " " + " ".join([keys, *columns, *extra])
    text = vcf_text_of(*records, samples=n_samples)
    text = text if draw(st.booleans()) else text.removesuffix("\n")
    return text.replace("\n", "\r\n") if draw(st.integers(0, 3)) == 0 else text


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=random_vcf(),
    haploid=st.sampled_from(["error", "diploidize", "missing"]),
    chunk=st.sampled_from([1, 5, 50, 1 << 20]),
    kind=st.sampled_from(["plain", "gzip", "bgzf"]),
)
def test_random_texts(tmp_path, text, haploid, chunk, kind):
    path = write(tmp_path / "a.vcf", text, kind, block=40)
    try:
        parse_vcf_text(text, haploid)
    except ValueError:
        with pytest.raises(UserError):
            collect(path, haploid=haploid, _chunk_bytes=chunk)
    else:
        assert_as_parsed(path, text, haploid, _chunk_bytes=chunk)


# --- BCF --------------------------------------------------------------------------------------


def to_bcf(vcf: Path, bcf: Path) -> Path:
    reader = cyvcf2.VCF(str(vcf))
    writer = cyvcf2.Writer(str(bcf), reader, mode="wb")
    for variant in reader:
        writer.write_record(variant)
    writer.close()
    reader.close()
    return bcf


BCF_HEADER = HEADER.replace("##contig=<ID=1>", "##contig=<ID=1>\n##contig=<ID=X>")


@pytest.mark.parametrize("haploid", ["diploidize", "missing"])
def test_bcf_is_read_as_text_is(tmp_path, haploid):
    records = [r for r in MIXED if r.startswith(("1 ", "2 ")) and "::" not in r and ":PL" not in r]
    records += ["X 7 . A C GT:DP 0:3 1:4 0/1:. .:. 1|1:3"]
    text = vcf_text_of(*records, samples=5).replace(HEADER, BCF_HEADER)
    vcf = write(tmp_path / "a.vcf", text)
    bcf = to_bcf(vcf, tmp_path / "a.bcf")
    header = read_header(bcf)
    assert (header.kind, header.samples) == ("bcf", [f"S{k}" for k in range(5)])
    assert set(header.contigs) >= {"1", "2", "X"}
    expected = collect(vcf, haploid=haploid)
    for options in ({}, {"threads": 2}, {"_chunk_bytes": 5}):
        found = collect(bcf, haploid=haploid, **options)
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[2], expected[2])
        assert found[3] == expected[3]


@pytest.mark.parametrize("name", ["haploid", "triploid", "allele", "no_gt", "unknown_tetraploid"])
def test_bcf_errors(tmp_path, name):
    record, words = RECORD_ERRORS[name]
    text = vcf_text_of("1 4 . A C GT 0/1 1/1", record).replace(HEADER, BCF_HEADER)
    bcf = to_bcf(write(tmp_path / "a.vcf", text), tmp_path / "a.bcf")
    with pytest.raises(UserError) as error:
        list(stream_sites(bcf))
    one_sentence(error, f"{bcf}, record 2: ", *[word for word in words if word != "line 8"])


def test_truncated_bcf(tmp_path):
    text = vcf_text_of(*(f"1 {k + 1} . A C GT 0/1 0/0" for k in range(5000)))
    bcf = to_bcf(write(tmp_path / "a.vcf", text), tmp_path / "a.bcf")
    whole = bcf.read_bytes()
    bcf.write_bytes(whole[:-40])
    with pytest.raises(UserError, match="cut short"):
        read_header(bcf)


# --- memory -----------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_file(tmp_path):
    record = "1\t5\t.\tA\tC\t.\t.\t.\tGT" + "\t0/1" * 1000 + "\n"
    header = vcf_text_of(samples=1000)
    peaks = []
    for n_records in (500, 8000):
        path = write(tmp_path / "a.vcf.gz", header + record * n_records, "bgzf", 60_000)
        next(stream_sites(path))  # compile before measuring
        tracemalloc.start()
        n_sites = sum(len(b.chrom) for b in stream_sites(path, threads=2, _chunk_bytes=1 << 18))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n_sites == n_records
    # 32 MB of text are read, but only a few pieces of 256 KiB and the compressed bytes are held.
    assert peaks[1] < 12 << 20
    assert peaks[1] < peaks[0] + (4 << 20)


# --- real data --------------------------------------------------------------------------------

REFUSED = {
    "bio2zarr__tests__data__vcf__sample_no_genotypes.vcf.gz": "no samples",
    "hail__duplicate_ids.vcf": "'5' occurs 4 times",
    "hail__malformed.vcf": "line 54: the record has 164 columns where 109",
    "htsjdk__htsjdk__tribble__vcfexample.vcf.truncated.gz": "is cut short",
    "tidypopgen__inst__extdata__ploidy__arenosa_ploidy_example.vcf.gz": "more than two alleles",
}


def real_files(shared_data: Path) -> list[Path]:
    folders = [p for p in shared_data.iterdir() if p.is_dir()]
    return sorted(
        path
        for folder in folders
        for path in folder.iterdir()
        if path.name.endswith((".vcf", ".vcf.gz", ".bcf", "truncated.gz"))
    )


def read_with_htslib(path: Path) -> tuple[list, np.ndarray]:
    """Return the biallelic SNPs and genotypes; haploid calls count twice."""
    reader = cyvcf2.VCF(str(path))
    sites, rows = [], []
    for v in reader:
        acgt = {"A", "C", "G", "T"}
        if v.FILTER is not None:
            continue
        alts = [alt for alt in v.ALT if alt not in ("<NON_REF>", "<*>")] or ["."]
        alt = alts[0]
        if (
            (v.ALT and alt == ".")
            or len(alts) > 1
            or v.REF.upper() not in acgt
            or alt.upper() not in acgt | {"."}
        ):
            continue
        alleles = v.genotype.array()[:, :-1]
        assert alleles.shape[1] <= 2 or (alleles[:, 2:] == -2).all()
        first = alleles[:, 0]
        second = alleles[:, 1] if alleles.shape[1] > 1 else np.full_like(first, -2)
        second = np.where(second == -2, first, second)
        row = np.where((first < 0) | (second < 0), -1, first + second)
        row[np.maximum(first, second) > 1] = -1  # the allele that stands for any other
        if "DP" in v.FORMAT:
            imputed = v.genotype.array()[:, -1] == 1
            for name in {"GP", "DS"} & set(v.FORMAT):
                value = v.format(name)[:, 0]
                imputed |= ~np.isnan(value) if value.dtype.kind == "f" else value >= 0
            row[(row == 0) & (v.format("DP")[:, 0] == 0) & ~imputed] = -1
        rows.append(row)
        sites.append((v.CHROM, v.POS, v.ID or ".", v.REF, alt))
    return sites, np.array(rows, np.int8).reshape(len(sites), len(reader.samples))


@pytest.mark.shared
def test_real_files_against_htslib(shared_data):
    files = real_files(shared_data)
    assert len(files) >= 25
    for path in files:
        if path.name in REFUSED:
            with pytest.raises(UserError) as error:
                list(stream_sites(path, haploid="diploidize"))
            one_sentence(error, str(path), REFUSED[path.name])
            continue
        sites, _, genotypes, counts = collect(path, haploid="diploidize", threads=2)
        expected_sites, expected = read_with_htslib(path)
        assert sites == expected_sites, path
        if sites:
            np.testing.assert_array_equal(genotypes, expected, err_msg=str(path))
        known = counts.phased + counts.unphased + counts.haploid_calls
        assert known + counts.missing == genotypes.size, path
        assert counts.records == counts.snps + sum(counts.dropped().values()), path


@pytest.mark.shared
def test_specification_files_never_crash(shared_data, tmp_path):
    archive = next(shared_data.glob("hard_vcf/hts-specs*.tar.gz"))
    with tarfile.open(archive) as tar:
        # early releases of Python 3.11 lack the filter
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(tmp_path, **safe)
    files = sorted(tmp_path.rglob("*.vcf"))
    assert len(files) > 200
    n_read = 0
    for path in files:
        try:
            counts = collect(path, haploid="diploidize")[3]
            n_read += counts.records > 0
        except UserError as error:
            assert str(path) in str(error)
    assert n_read > 50
