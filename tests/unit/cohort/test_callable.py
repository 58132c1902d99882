"""Callable intervals: BED files and their faults, joining, storing, and looking up sites."""

import gzip

import numpy as np
import pytest

from popdesic.cohort.callable import EVERYONE, Callable, read_bed
from popdesic.core.errors import UserError

CONTIGS = np.array(["1", "2", "X"])


def draw(seed: int, n: int, n_samples: int):
    """Random intervals, and their coverage of each position (from 0) as a plain table."""
    rng = np.random.default_rng(seed)
    contig = rng.integers(0, 3, n)
    start = rng.integers(0, 180, n)
    end = start + rng.integers(1, 20, n)
    sample = rng.integers(EVERYONE, n_samples, n)
    table = np.zeros((3, 200, n_samples + 1), bool)
    for c, s, e, k in zip(contig, start, end, sample, strict=True):
        table[c, s:e, k + 1] = True
    return Callable(CONTIGS[contig], start, end, sample), table


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [0, 1, 40, 300])
def test_lookup_agrees_with_a_table_of_positions(seed, n):
    found, table = draw(seed, n, 4)
    rng = np.random.default_rng(seed + 100)
    contig, pos = rng.integers(0, 3, 500), rng.integers(1, 201, 500)
    for order in (np.arange(500), np.lexsort((pos, contig))):
        c, p = contig[order], pos[order]
        names = np.char.add("chr", CONTIGS[c]).astype(object)
        truth = table[c, p - 1]
        assert np.array_equal(found.covers(names, p), truth[:, 0])
        samples = np.array([3, 1])
        got = found.covers_samples(names, p, samples)
        assert np.array_equal(got, truth[:, 1 + samples] | truth[:, :1])


def test_sites_of_other_contigs_are_not_covered():
    found = Callable(["chr1"], [0], [100])
    assert found.covers(["2", "1", "1", "1"], np.array([50, 1, 100, 101])).tolist() == [
        False,
        True,
        True,
        False,
    ]


def test_equal_coverage_gives_equal_bytes(tmp_path):
    parts = Callable(["1", "chr1", "1"], [5, 0, 10], [10, 6, 12], [1, 1, 1])
    whole = Callable(["1"], [0], [12], [1])
    parts.save(tmp_path / "a.npz")
    whole.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = Callable.load(tmp_path / "a.npz")
    assert again.by_sample
    assert (again.contigs, again.start.tolist(), again.end.tolist()) == (("1",), [0], [12])
    assert not Callable(["1"], [0], [12]).by_sample


def test_reads_bed_plain_and_gzipped(tmp_path):
    text = "#comment\ntrack name=mask\nchr2\t10\t20\tname\t5\n1 0 5\nchr2\t15\t30\n\n"
    (tmp_path / "a.bed").write_text(text)
    (tmp_path / "a.bed.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.bed", "a.bed.gz"):
        found = read_bed(tmp_path / name, "config/cohorts.tsv, row 2")
        assert found.contigs == ("1", "2")
        assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [
            (0, 5),
            (10, 30),
        ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1\t0\t5\n1\t9\t9\n", "row 2: '1 9 9'"),
        ("1\t0\n", "row 1: '1 0'"),
        ("1\t-1\t5\n", "row 1"),
        ("1\ta\t5\n", "row 1"),
        ("1\t1_0\t2_0\n", "row 1: '1 1_0 2_0'"),
        ("1\t0\t5\r1\t7\t9\r", "row 1: lines end with a carriage return alone"),
        ("chrom\tstart\tend\n1\t0\t5\n", "row 1"),
        ("#nothing\n", "has no interval"),
    ],
)
def test_faults_of_a_bed_file_are_one_sentence(tmp_path, text, says):
    path = tmp_path / "mask.bed"
    path.write_bytes(text.encode())
    with pytest.raises(UserError) as caught:
        read_bed(path, "config/cohorts.tsv, row 3")
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path} (config/cohorts.tsv, row 3)")


def test_chunks_give_what_the_whole_gives():
    found, _ = draw(7, 2_000, 6)
    names = np.repeat(CONTIGS, 200).astype(object)
    pos = np.tile(np.arange(1, 201), 3)
    samples = np.arange(6)
    whole = found.covers_samples(names, pos, samples)
    parts = [
        found.covers_samples(names[k : k + 37], pos[k : k + 37], samples) for k in range(0, 600, 37)
    ]
    assert np.array_equal(whole, np.concatenate(parts))


def test_a_bed_file_with_a_byte_order_mark_and_odd_names_is_read_whole(tmp_path):
    path = tmp_path / "mask.bed"
    path.write_text("\ufeffchr1\t0\t10\ntrack1\t5\t9\ntrack name=x\n", "utf-8")
    found = read_bed(path, "config/cohorts.tsv, row 2")
    assert found.covers(["1", "1", "track1"], np.array([10, 11, 6])).tolist() == [True, False, True]
