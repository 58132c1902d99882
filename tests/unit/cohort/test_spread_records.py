"""What a file will take, from some of its records, beside what it takes."""

import gzip

import numpy as np
import pytest
from support.bcf_files import bcf_of, format_of, header_of, record_of
from support.plink_files import write_plink

from popdesic.cohort import spread_records
from popdesic.cohort.first_records import first_records
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.spread_records import Content, expected_content
from popdesic.io import listed_rows
from popdesic.io.bgzf import read_near
from popdesic.io.bgzf_writer import BgzfWriter

N, SITES = 200, 6000
NAMES = [f"s{k}" for k in range(N)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same sites in all formats: one in 23 is common, others have one carrier."""
    rng = np.random.default_rng(1)
    genotypes = np.zeros((SITES, N), np.int8)
    genotypes[np.arange(SITES), rng.integers(0, N, SITES)] = 1
    genotypes[22::23] = rng.binomial(2, 0.3, (SITES // 23, N))
    folder = tmp_path_factory.mktemp("spread")
    head = header_of(NAMES, "##fileformat=VCFv4.2\n##contig=<ID=1>\n")
    calls = np.frombuffer(b"\t0/0\t0/1\t1/1", np.uint8).reshape(3, 4)[genotypes]
    lines = [
        f"1\t{10 + k}\t.\tA\tC\t.\tPASS\t.\tGT".encode() + row.tobytes() + b"\n"
        for k, row in enumerate(calls)
    ]
    text = head + b"".join(lines)
    (folder / "a.vcf").write_bytes(text)
    with gzip.open(folder / "plain.vcf.gz", "wb") as file:
        file.write(text)
    with open(folder / "a.vcf.gz", "wb") as file:
        packer = BgzfWriter(file)
        packer.write(text)
        packer.close()
    codes = np.array([(2, 2), (2, 4), (4, 4)], np.int8)[genotypes]
    records = (
        record_of([format_of(1, bytes([0x21]) + row.tobytes())], n_samples=N, pos=10 + k)
        for k, row in enumerate(codes)
    )
    with open(folder / "a.bcf", "wb") as file:
        packer = BgzfWriter(file)
        packer.write(bcf_of(header_of(NAMES), records))
        packer.close()
    write_plink(folder / "a", genotypes, NAMES)
    return folder


def look(path, names=NAMES, n_files=1) -> Content | None:
    return expected_content(
        path, names, 0.05, (0, n_files), lambda *of: first_records(of[0], n_bytes=of[1])
    )


@pytest.mark.parametrize("name", ["a.vcf", "a.vcf.gz", "plain.vcf.gz", "a.bcf", "a.bed"])
@pytest.mark.parametrize("n_kept", [N, 50])
def test_a_file_takes_what_was_expected(files, tmp_path, monkeypatch, name, n_kept):
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 1)
    monkeypatch.setattr(spread_records, "LEAST_LISTED", 1)
    ingest_cohort(files / name, tmp_path / "raw", excluded=NAMES[n_kept:])
    found = look(files / name, NAMES[:n_kept])
    assert 0 < found.looked <= round(found.sites) and found.has_lists
    assert found.sites == pytest.approx(SITES, rel=0.1)
    assert found.common == pytest.approx(SITES / 23, rel=0.2)
    assert found.rows == pytest.approx(-(-n_kept // 4) * SITES, rel=0.1)
    assert found.listed == pytest.approx((tmp_path / "raw.bed").stat().st_size, rel=0.15)


def test_few_sites_of_many_files_are_looked_at(files):
    found = look(files / "a.vcf.gz", n_files=50)
    assert found.looked < 300 and found.sites == pytest.approx(SITES, rel=0.1)
    bed = look(files / "a.bed", n_files=50)
    assert bed.looked < SITES and bed.sites == SITES
    both = Content.of_files([found, found])
    assert both.sites == 2 * found.sites and not both.has_lists  # rows are shorter than 16 MB


def test_what_cannot_be_read_is_not_expected(files, tmp_path):
    (tmp_path / "a.vcf").write_bytes((files / "a.vcf").read_bytes().replace(b"0/1", b"0/7"))
    assert look(tmp_path / "a.vcf") is None
    (tmp_path / "b.vcf.gz").write_bytes((files / "a.vcf.gz").read_bytes()[:-100])
    assert look(tmp_path / "b.vcf.gz") is None


@pytest.mark.parametrize("n_bytes", [1, 70_000, 10**8])
def test_text_from_a_place_of_a_file(files, n_bytes):
    text = (files / "a.vcf").read_bytes()
    size = (files / "a.vcf.gz").stat().st_size
    for start in (0, 1, size // 2):
        part, taken = read_near(files / "a.vcf.gz", "bgzf", start, n_bytes)
        assert part in text and 0 < taken <= size - start
        assert len(part) >= min(n_bytes, 60_000)
    whole, taken = read_near(files / "a.vcf.gz", "bgzf", 0, 10**8)
    assert (whole, taken) == (text, size)
