"""BGEN files are read as the VCF of their hard calls."""

from __future__ import annotations

import shutil
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.bgen_files import NONE, ZLIB, ZSTD, site_bytes, write_bgen

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.bgen import (
    bgen_sites,
    bgen_text,
    expected_r2,
    genotypes_by_pl,
    read_bgen_header,
    remarks_on_bgen,
)
from popdesic.io.bgzf import join_pieces
from popdesic.io.formats import count_sites, read_sample_names
from popdesic.io.genotypes import unpack_bed
from popdesic.study.init import init_study
from popdesic.study.validation import validate_study

NAMES = ["anna", "bo", "cem"]
SITE = ("1", 100, "rs1", ["A", "C"])


def records(path: Path) -> list[list[str]]:
    """Columns of the records, and their calls last."""
    _, texts = bgen_text(path)
    lines = b"".join(texts).decode().splitlines()
    return [line.split("\t") for line in lines]


@pytest.mark.parametrize(
    ("bits", "compression"), [*product((8, 1, 5, 12, 16, 32), (NONE, ZLIB, ZSTD))]
)
def test_calls_of_diploids(tmp_path, bits, compression):
    """Certain genotypes are called with any number of bits."""
    one = (1 << bits) - 1
    samples = [(2, [one, 0]), (2, [0, one]), (2, [0, 0])]
    options = {"bits": bits, "compression": compression}
    path = write_bgen(
        tmp_path / "a.bgen",
        NAMES,
        [site_bytes(SITE, samples, **options), site_bytes(SITE, samples[::-1], **options)],
        compression=compression,
    )
    fixed = ["1", "100", "rs1", "A", "C", ".", ".", ".", "GT"]
    calls = ["0/0", "0/1", "1/1"]
    assert records(path) == [[*fixed, *calls], [*fixed, *calls[::-1]]]
    assert read_sample_names(path) == NAMES and count_sites(path) == 2


def test_a_call_has_a_probability_of_nine_tenths(tmp_path):
    """250 of 255 are 0.98; 229 are less than 0.9, and 230 more; a missing sample is missing."""
    samples = [(2, [230, 25]), (2, [20, 229]), (2, None)]
    path = write_bgen(tmp_path / "a.bgen", NAMES, [site_bytes(SITE, samples, lengths={2: 2})])
    assert records(path)[0][9:] == ["0/0", "./.", "./."]
    # 0.95 × 0.95 of two phased alleles is more than 0.9, and 0.94 × 0.95 is less.
    samples = [(2, [9500, 500]), (2, [9400, 500]), (2, [0, 10_000])]
    samples = [(2, [round(x / 1e4 * 65535) for x in own]) for _, own in samples]
    site = site_bytes(SITE, samples, bits=16, phased=True)
    assert records(write_bgen(tmp_path / "p.bgen", NAMES, [site]))[0][9:] == ["0|1", ".|.", "1|0"]


def test_any_ploidy_and_several_alleles(tmp_path):
    """Genotypes are in the order of PL; of three alleles, a diploid stores five."""
    where = ("7", 5, "x", ["A", "C", "G"])
    samples = [(2, [0, 0, 0, 0, 255]), (1, [0, 255]), (4, [0] * 14), (2, None)]
    site = site_bytes(where, samples, lengths={2: 5})
    path = write_bgen(tmp_path / "a.bgen", [*NAMES, "dora"], [site])
    (row,) = records(path)
    assert row[:5] == ["7", "5", "x", "A", "C,G"]
    assert row[9:] == ["1/2", "1", "2/2/2/2", "./."]
    assert genotypes_by_pl(2, 3) == ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def test_the_file_of_samples(tmp_path):
    samples = [(1, [255]), (1, [0]), (1, [255])]
    path = write_bgen(tmp_path / "a.bgen", NAMES, [site_bytes(SITE, samples)], named=False)
    with pytest.raises(UserError, match=r"there is no a\.sample beside it"):
        read_sample_names(path)
    table = tmp_path / "a.sample"
    table.write_text("ID_1 ID_2 missing\n0 0 0\n" + "".join(f"f {name} 0\n" for name in NAMES))
    assert read_bgen_header(path).samples == NAMES
    assert records(path)[0][9:] == ["0", "1", "0"]
    table.write_text("ID_1 ID_2 missing\n0 0 0\nf anna 0\n")
    with pytest.raises(UserError, match=r"names 1 samples .* has 3"):
        read_sample_names(path)


def test_probabilities_above_one_name_site_and_sample(tmp_path):
    samples = [(2, [255, 0]), (2, [200, 100]), (2, [0, 0])]
    path = write_bgen(tmp_path / "a.bgen", NAMES, [site_bytes(SITE, samples)])
    with pytest.raises(UserError, match=r"site 1:100 \(rs1\): the .* sample 'bo' add up to more"):
        records(path)
    path = write_bgen(tmp_path / "b.bgen", NAMES, [], layout=1)
    with pytest.raises(UserError, match="layout 1, but only 2"):
        read_sample_names(path)


@pytest.mark.parametrize("compression", [NONE, ZLIB, ZSTD])
def test_damage_is_a_sentence(tmp_path, compression, rng):
    """A file that is cut anywhere is refused; a changed byte is refused or read."""
    samples = [(2, [255, 0]), (2, [0, 255]), (2, [0, 0])]
    site = site_bytes(SITE, samples, compression=compression)
    path = write_bgen(tmp_path / "a.bgen", NAMES, [site, site], compression=compression)
    whole = path.read_bytes()
    for end in range(24, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(UserError, match="damaged"):
            records(path)
    refused = 0
    for at in range(24, len(whole)):
        changed = bytearray(whole)
        changed[at] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            records(path)
        except UserError:
            refused += 1
    assert refused > len(whole) // 4


def drawn_site(rng: np.random.Generator, n: int, ploidy: int, phased: bool, sharp: float) -> bytes:
    """Probabilities of 16 bits; the higher `sharp`, the more certain."""
    samples = []
    n_own = 2 if phased else ploidy + 1
    for _ in range(n):
        own: list[int] = []
        for _ in range(ploidy if phased else 1):
            chances = rng.dirichlet(np.full(n_own, 1 / sharp))
            own += [int(x * 65535) for x in chances[:-1]]
        samples.append((ploidy, own))
    return site_bytes(SITE, samples, bits=16, phased=phased)


@pytest.mark.parametrize(("ploidy", "phased"), [(1, False), (2, False), (2, True), (4, False)])
def test_expected_r2_is_that_of_drawn_genotypes(tmp_path, ploidy, phased):
    """Genotypes drawn from the probabilities have that r² with the calls, on average."""
    rng = np.random.default_rng(7)
    n = 4000
    site = drawn_site(rng, n, ploidy, phased, sharp=20)
    path = write_bgen(tmp_path / "a.bgen", [f"s{k}" for k in range(n)], [site])
    calls = [one.replace("|", "/").split("/") for one in records(path)[0][9:]]
    good = np.array([one[0] != "." for one in calls])
    called = np.array([one.count("0") for one in calls])[good]
    (read,) = bgen_sites(path)
    _, chances = read.chances[ploidy]
    found = []
    for _ in range(40):
        if phased:
            truth = (rng.random(chances.shape[:2]) < chances[:, :, 0]).sum(axis=1)
        else:
            below = rng.random((n, 1)) > np.cumsum(chances, axis=1)
            truth = ploidy - below.sum(axis=1)
        found.append(np.corrcoef(called, truth[good])[0, 1] ** 2)
    expected = expected_r2(read)
    assert 0.5 < expected < 0.9999 and good.mean() > 0.3
    assert abs(np.mean(found) - expected) < 5 * np.std(found) / np.sqrt(len(found))


def test_the_remark_has_both_figures(tmp_path):
    rng = np.random.default_rng(8)
    sites = [drawn_site(rng, 50, 2, phased=False, sharp=20) for _ in range(30)]
    path = write_bgen(tmp_path / "a.bgen", [f"s{k}" for k in range(50)], sites)
    (remark,) = remarks_on_bgen(path)
    score = np.mean([expected_r2(site) for site in bgen_sites(path)])
    calls = np.array([row[9:] for row in records(path)])
    assert f"At the first 30 sites {(calls != './.').mean():.1%} of the genotypes" in remark
    assert f"is {score:.3f}." in remark


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("plink2") is None, reason="PLINK 2 is not installed")
@pytest.mark.parametrize("bits", [8, 16])
def test_calls_are_those_of_plink(tmp_path, bits):
    """PLINK 2 writes dosages between two genotypes, and calls the nearer from 0.9 on, too."""
    rng = np.random.default_rng(9)
    n, n_sites = 40, 60
    # No dosage near 0.1 from a whole number, where rounding to 8 bits decides.
    rest = np.where(rng.random((n_sites, n)) < 0.7, rng.uniform(0, 0.09, (n_sites, n)), 0.3)
    whole = rng.integers(0, 3, (n_sites, n))
    dosage = whole + np.where(whole == 2, -rest, rest)
    lines = [
        "##fileformat=VCFv4.2",
        "##contig=<ID=1>",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="x">',
        '##FORMAT=<ID=DS,Number=1,Type=Float,Description="x">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
        + "\t".join(f"s{k}" for k in range(n)),
    ]
    for k, row in enumerate(dosage):
        calls = [f"{('0/0', '0/1', '1/1')[round(x)]}:{x:.4f}" for x in row]
        lines.append(
            "\t".join(["1", str(100 + k), f"v{k}", "A", "C", ".", ".", ".", "GT:DS", *calls])
        )
    (tmp_path / "a.vcf").write_text("\n".join(lines) + "\n")

    def plink(*words: str) -> None:
        done = subprocess.run(["plink2", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    export = ["--export", "bgen-1.2", f"bits={bits}", "ref-first", "id-paste=iid", "--out", "b"]
    plink("--vcf", "a.vcf", "dosage=DS", *export)
    plink("--bgen", "b.bgen", "ref-first", "--sample", "b.sample", "--make-bed", "--out", "c")
    counts = ingest_cohort(tmp_path / "b.bgen", tmp_path / "raw")
    own, theirs = read_bim(tmp_path / "raw"), read_bim(tmp_path / "c")
    assert own.pos.tolist() == theirs.pos.tolist() and len(own) == n_sites
    found = unpack_bed(open_bed(tmp_path / "raw"), n)
    expected = unpack_bed(open_bed(tmp_path / "c"), n)
    # PLINK's .bed counts its first allele; both files are turned to that of the VCF.
    if own.ref.tolist() != theirs.ref.tolist():
        expected = np.where(expected >= 0, 2 - expected, expected)
    np.testing.assert_array_equal(found, expected)
    assert 0.2 < (found < 0).mean() < 0.4
    assert read_sample_names(tmp_path / "b.bgen") == [f"s{k}" for k in range(n)]
    assert any("holds probabilities" in one for one in counts.remarks)


def test_init_takes_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sites = [site_bytes(("1", 100 + k, f"v{k}", ["A", "C"]), [(2, [0, 255])] * 3) for k in range(9)]
    write_bgen(tmp_path / "north.bgen", NAMES, sites)
    init_study(["study", "north.bgen"])
    _, _, remarks = validate_study({}, Path("study"))
    assert any("north.bgen holds probabilities" in one for one in remarks)
    assert "\nnorth\t../north.bgen\t" in Path("study/config/cohorts.tsv").read_text()


@pytest.mark.parametrize("size", [1, 7, 8, 10**6])
def test_records_are_joined_to_pieces(size):
    records = [b"a" * k for k in (3, 0, 5, 8, 1, 1)]
    pieces = [b"".join(piece.read()) for piece in join_pieces(iter(records), size)]
    assert b"".join(pieces) == b"".join(records)
    assert all(size <= len(piece) < size + 8 for piece in pieces[:-1]) and all(pieces)
