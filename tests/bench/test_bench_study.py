"""The judge is judged: the study that it draws, and what it reads from a run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from bench_study import run
from drawn_study import F_ST, LINKED, MISSING_SHARE, draw_people, pack, write_study
from study_costs import busy_share, read_rows, read_utilisation

from popdesic.io.batches import DecodeCounts
from popdesic.io.bed import read_plink_samples
from popdesic.io.genotypes import MISSING, pack_bed
from popdesic.io.plink import stream_plink


def genotypes_of(prefix: Path) -> np.ndarray:
    """Genotypes (n_sites, n_samples) of PLINK files, through our reader."""
    return np.concatenate([batch.genotypes for batch in stream_plink(prefix, DecodeCounts())])


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[Path, np.ndarray]:
    """A study of 400 people x 5 000 sites in three cohorts, and the genotypes of all."""
    folder = tmp_path_factory.mktemp("drawn") / "study"
    whole = write_study(folder, 400, 5_000, 3, device="cpu")
    return folder, genotypes_of(whole)


def test_cohorts_hold_the_same_genotypes_as_the_whole(study):
    folder, whole = study
    parts = [genotypes_of(folder / "data" / f"c{number:02d}") for number in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    names = [n for k in range(3) for n in read_plink_samples(folder / f"data/c{k:02d}")[0]]
    sheet = (folder / "config/samples.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[0] for line in sheet] == names


def test_the_structure_that_was_planted_is_there(study):
    """F_ST of the populations (Hudson's, of pairs of them), missing genotypes, linked pairs."""
    folder, genotypes = study
    rows = (folder / "config/samples.tsv").read_text().splitlines()[1:]
    population = np.array([int(row.split("\t")[2][1:]) for row in rows])
    called = np.where(genotypes == MISSING, np.nan, genotypes)
    assert np.isnan(called).mean() == pytest.approx(MISSING_SHARE, rel=0.05)
    p = [np.nanmean(called[:, population == k], axis=1) / 2 for k in range(len(F_ST))]
    n = [2 * (population == k).sum() for k in range(len(F_ST))]
    for a, b in ((0, 4), (2, 3)):
        within = sum(p[k] * (1 - p[k]) * n[k] / (n[k] - 1) for k in (a, b))
        between = p[a] * (1 - p[b]) + p[b] * (1 - p[a])
        found = 1 - within.sum() / between.sum()
        assert found == pytest.approx((F_ST[a] + F_ST[b]) / 2, rel=0.15)
    one = np.nan_to_num(called[:, population == 0], nan=1.0)
    r = [np.corrcoef(one[site], one[site + 1])[0, 1] for site in range(0, 1000, 2)]
    apart = [np.corrcoef(one[site], one[site + 1])[0, 1] for site in range(1, 1000, 2)]
    assert np.mean(r) == pytest.approx(LINKED, abs=0.06)
    assert abs(np.mean(apart)) < 0.05


def test_relatives_and_duplicates_are_there(study):
    _, genotypes = study
    people = draw_people(400, 3, np.random.default_rng([1]))
    ok = (genotypes >= 0).all(axis=1)
    for child, *parents in people.children:
        for parent in parents:  # no opposite homozygotes
            assert not (np.abs(genotypes[ok][:, child] - genotypes[ok][:, parent]) == 2).any()
    for copy, original in people.duplicates:
        np.testing.assert_array_equal(genotypes[ok][:, copy], genotypes[ok][:, original])


def test_the_number_of_threads_changes_no_byte(tmp_path, monkeypatch):
    monkeypatch.setattr("drawn_study.BLOCK", 1000)  # many blocks
    for threads in (1, 3):
        write_study(tmp_path / str(threads), 30, 500, 2, device="cpu", threads=threads)
    for path in (tmp_path / "1/data").iterdir():
        assert path.read_bytes() == (tmp_path / "3/data" / path.name).read_bytes()


@pytest.mark.parametrize("n_samples", [1, 3, 4, 5, 17])
def test_packing_is_that_of_plink(n_samples):
    genotypes = np.random.default_rng(1).integers(-1, 3, (6, n_samples)).astype(np.int8)
    codes = np.array([3, 2, 0, 1], np.uint8)[genotypes]
    np.testing.assert_array_equal(pack(codes), pack_bed(genotypes))


BENCHMARK = "s\th:m:s\tmax_rss\tio_in\tio_out\tcpu_time\n"
LOG = """\
2026-11-22 20:00:00,000 INFO device 0, leased among 1
2026-11-22 20:00:10,500 INFO done in 11.0 s, 7.25 CPU-s, 0.50 of them start-up
"""


def test_costs_are_summed_by_rule(tmp_path):
    for name, line in (
        ("tile/a__b", "12.0\t0:00:12\t200.0\t3.0\t1.5\t5.0"),
        ("tile/b__b", "1.0\t0:00:01\tNA\tNA\tNA\tNA"),
        ("report", "2.0\t0:00:02\t50.0\t1.0\t1.0\t2.0"),
    ):
        for folder, end, text in (("benchmarks", "tsv", BENCHMARK + line), ("logs", "log", LOG)):
            path = tmp_path / folder / f"{name}.{end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    rows = read_rows(tmp_path)
    assert rows.keys() == {"tile", "report"}
    tile = rows["tile"]
    assert (tile.jobs, tile.wall, tile.cpu, tile.start) == (2, 13.0, 14.5, 1.0)
    assert (tile.read, tile.wrote, tile.peak) == (3.0, 1.5, 200.0)
    first, last = tile.leases[0]
    assert last - first == 10.5
    (start, end), _ = tile.spans
    assert end == last and end - start == 11.0


def test_the_share_of_a_lease_in_which_the_gpu_worked():
    said = "2026/11/22 20:00:01.000, 10\n2026/11/22 20:00:02.000, 50\n2026/11/22 20:00:09.000, 90\n"
    samples = read_utilisation(said + "2026/11/22 20:00:02.001, 70\nno devices were found\n")
    assert [used for _, used in samples] == [10.0, 70.0, 90.0]  # the busier of two devices
    start = samples[0][0]
    assert busy_share([(start - 1, start + 2)], samples) == pytest.approx(0.4)
    assert busy_share([], samples) is None


def test_a_limit_ends_a_run_and_its_jobs(tmp_path):
    """The job, too, is interrupted: it would have written its file."""
    job = f"import time; time.sleep(20); open({str(tmp_path / 'late')!r}, 'w')"
    outer = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {job!r}]))"
    status, wall, _ = run([sys.executable, "-c", outer], tmp_path, tmp_path / "log", limit=1)
    assert status and wall < 15
    assert not (tmp_path / "late").exists()
    assert run([sys.executable, "-c", "pass"], tmp_path, tmp_path / "log", limit=60)[0] == 0


def test_files_of_all_people_are_left_out_on_request(tmp_path):
    assert write_study(tmp_path / "a", 30, 50, 2, device="cpu", together=False) is None
    whole = write_study(tmp_path / "b", 30, 50, 2, device="cpu")
    one, other = ({p.name for p in (tmp_path / k / "data").iterdir()} for k in "ab")
    assert other - one == {f"{whole.name}.{end}" for end in ("bed", "bim", "fam")}
