"""Rows of tiles: who owns a pair, what is computed again, and what stays as it is."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from popdesic.cohort.encode import write_planes
from popdesic.core.errors import UserError
from popdesic.core.files import content_key, write_json
from popdesic.distance import rows as rows_module
from popdesic.distance.fill_rows import read_ahead, update_rows
from popdesic.distance.measure_row import row_work
from popdesic.distance.rows import Rows, other_of, read_tiles
from popdesic.engine.needs import product_bytes
from popdesic.engine.select import select_backend
from popdesic.io.genotypes import pack_bed

FOUNDERS = ["b", "d"]
OPTIONS = {"metric": "euclidean", "missing": "pairwise", "code": "1"}


def order_of(cohorts: str) -> list[str]:
    """Sample order: founders by name, then newcomers by name."""
    return sorted(cohorts, key=lambda cohort: (cohort not in FOUNDERS, cohort))


def rows_of(folder: Path, cohorts: str) -> Rows:
    return Rows(folder, order_of(cohorts), FOUNDERS, ".npz")


def write_rows(rows: Rows) -> dict[str, list[tuple[str, str]]]:
    """Write empty tiles of all rows as jobs do; return the rows that lacked some."""
    made = {}
    for row in rows.order:
        lacking = []
        for pair in rows.pairs(row):
            path = rows.folder / row / f"{other_of(row, pair)}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                lacking.append(pair)
                path.touch()
        if lacking:
            made[row] = lacking
    return made


# --- owners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arriving", list(permutations("aceg")), ids="".join)
def test_a_newcomer_at_any_place_of_the_sheet_makes_one_row(tmp_path, arriving):
    """All pairs with the cohorts before it, in its own row; no other row lacks a tile."""
    here = "bd"
    assert set(write_rows(rows_of(tmp_path, here))) == {"b", "d"}
    for cohort in arriving:
        here += cohort
        order = order_of(here)
        rows = rows_of(tmp_path, here)
        made = write_rows(rows)
        assert list(made) == [cohort]
        assert len(made[cohort]) == len(here)
        assert made[cohort][-1] == (cohort, cohort)
        assert all(order.index(a) <= order.index(b) for a, b in made[cohort])
    pairs = [pair for row in order for pair in rows_of(tmp_path, here).pairs(row)]
    assert len(pairs) == len(set(pairs)) == 6 * 7 // 2


def test_founders_rows_hold_founders_only(tmp_path):
    """Also if a founder's folder holds a tile of a newcomer."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/a.npz").touch()
    rows = rows_of(tmp_path, "abde")
    assert {cohort for row in FOUNDERS for pair in rows.pairs(row) for cohort in pair} == {"b", "d"}


def test_rows_stay_the_same_while_they_are_made(tmp_path):
    """Every process of a run, at whatever moment it starts, finds the rows that were planned."""
    write_rows(rows_of(tmp_path, "bdag"))
    plan = {row: rows_of(tmp_path, "bdacfg").pairs(row) for row in "bdacfg"}
    for row in "gcafdb":
        for pair in plan[row]:
            (tmp_path / row).mkdir(exist_ok=True)
            (tmp_path / row / f"{other_of(row, pair)}.npz").touch()
            now = rows_of(tmp_path, "bdacfg")
            assert {row: now.pairs(row) for row in "bdacfg"} == plan


def test_a_removed_cohort_leaves_the_other_pairs_where_they_are(tmp_path):
    write_rows(rows_of(tmp_path, "bdg"))
    write_rows(rows_of(tmp_path, "bdgae"))
    before = {row: rows_of(tmp_path, "bdgae").pairs(row) for row in "bdgae"}
    after = {row: rows_of(tmp_path, "bdge").pairs(row) for row in "bdge"}
    for row, pairs in after.items():
        assert pairs == [pair for pair in before[row] if "a" not in pair]


def test_a_deleted_tile_makes_its_row_lost(tmp_path):
    write_rows(rows_of(tmp_path, "bdag"))
    for row in "bdag":
        (tmp_path / row / "row.json").touch()
    assert rows_of(tmp_path, "bdag").lost() == []
    (tmp_path / "g/a.npz").unlink()
    assert rows_of(tmp_path, "bdag").lost() == ["g"]


# --- what is computed ---------------------------------------------------------------------------


def make_cohort(folder: Path, n_samples: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    genotypes = rng.integers(-1, 3, (200, n_samples)).astype(np.int8)
    folder.mkdir(parents=True, exist_ok=True)
    write_planes(pack_bed(genotypes), n_samples, np.zeros(200, int), "mode", folder / "planes.npy")
    names = [f"{folder.name}{i}" for i in range(n_samples)]
    about = {"panel": "P", "n_sites": 200, "samples": names, "cohort": folder.name}
    write_json(folder / "planes.json", about)
    return folder


class Study:
    """Cohorts b, d, e and the rows of their distances, below `results` as in a study."""

    def __init__(self, folder: Path):
        self.results = folder / "results"
        self.folders = {
            name: make_cohort(self.results / f"cohorts/{name}", 3 + place, place)
            for place, name in enumerate("bde")
        }
        self.asked = []

    def backend(self, need: int):
        self.asked.append(need)
        return select_backend("cpu", 1)

    @property
    def rows(self) -> Rows:
        return Rows(self.results / "distance/tiles", order_of("bde"), FOUNDERS, ".npz")

    def run(self, row: str, pairs=None, **options) -> dict[str, int]:
        out = self.results / f"distance/tiles/{row}/row.json"
        out.unlink(missing_ok=True)  # as Snakemake does before a job
        pairs = self.rows.pairs(row) if pairs is None else pairs
        work = row_work(out, pairs, self.folders, **OPTIONS | options)
        return update_rows([work], self.folders, self.backend)

    def files(self, row: str) -> dict[str, tuple[int, bytes]]:
        folder = self.results / f"distance/tiles/{row}"
        return {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.glob("*.npz")}


@pytest.fixture
def study(tmp_path) -> Study:
    made = Study(tmp_path)
    for row in "bde":
        made.run(row)
    return made


def test_a_row_computes_what_is_missing(study):
    assert set(study.files("e")) == {"b.npz", "d.npz", "e.npz"}
    assert set(study.files("b")) == {"b.npz"}
    listed = read_tiles([study.results / f"distance/tiles/{row}/row.json" for row in "bde"], ".npz")
    assert list(listed) == [("b", "b"), ("b", "d"), ("b", "e"), ("d", "d"), ("d", "e"), ("e", "e")]
    with np.load(listed["b", "e"]) as tile:
        assert tile["squared"].shape == (3, 5)
        assert tile["samples_a"].tolist() == ["b0", "b1", "b2"]


def test_tiles_are_on_disk_before_their_list(tmp_path, monkeypatch):
    """They are flushed together; the list, which says that they are whole, comes last."""
    study, flushed, real = Study(tmp_path), [], os.fsync

    def fsync(handle: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    study.run("e")
    *tiles, last = flushed
    assert sorted(tiles) == ["b.npz", "d.npz", "e.npz"]
    assert last.startswith(".row.json.")


def test_the_second_run_computes_nothing_and_asks_for_no_device(study):
    before, study.asked = study.files("e"), []
    assert study.run("e") == {"tiles computed": 0, "tiles kept": 3, "files removed": 0}
    assert study.asked == []
    assert study.files("e") == before


def test_a_changed_cohort_changes_only_its_pairs(study):
    before = study.files("e")
    make_cohort(study.folders["d"], 4, seed=77)
    counts = study.run("e")
    after = study.files("e")
    assert (counts["tiles computed"], counts["tiles kept"]) == (1, 2)
    assert {name for name in after if after[name] != before[name]} == {"d.npz"}


def test_equal_planes_that_were_written_again_change_nothing(study):
    before = study.files("e")
    make_cohort(study.folders["d"], 4, seed=1)
    assert study.run("e")["tiles computed"] == 0
    assert study.files("e") == before


@pytest.mark.parametrize("change", [{"metric": "ibs"}, {"missing": "imputed"}, {"code": "2"}])
def test_a_changed_option_or_code_changes_all_pairs(study, change):
    assert study.run("e", **change)["tiles computed"] == 3


@pytest.mark.parametrize("how", ["damaged", "deleted", "without checksum", "without key"])
def test_a_tile_that_is_not_as_it_was_written_is_computed_again(study, how):
    folder, before = study.results / "distance/tiles/e", study.files("e")
    tile = folder / "d.npz"
    if how == "damaged":
        content = bytearray(tile.read_bytes())
        content[-400] ^= 1
        tile.write_bytes(content)
    else:
        hidden = {"deleted": "d.npz", "without checksum": ".d.npz.crc32", "without key": ".d.key"}
        (folder / hidden[how]).unlink()
    assert study.run("e")["tiles computed"] == 1
    after = study.files("e")
    assert {name: content for name, (_, content) in after.items()} == {
        name: content for name, (_, content) in before.items()
    }
    assert after["b.npz"] == before["b.npz"]


def test_tiles_of_a_removed_cohort_are_removed(study):
    before = study.files("e")
    assert study.run("e", [("b", "e"), ("e", "e")])["files removed"] == 1
    assert study.files("e") == {name: before[name] for name in ("b.npz", "e.npz")}
    assert not list((study.results / "distance/tiles/e").glob(".d.*"))


def test_a_job_that_dies_between_tiles_continues(study, monkeypatch):
    study.run("e", code="2")
    before = study.files("e")
    real, calls = rows_module.Row.finish, []

    def finish(self, pair, key):
        calls.append(pair)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(self, pair, key)

    monkeypatch.setattr(rows_module.Row, "finish", finish)
    with pytest.raises(KeyboardInterrupt):
        study.run("e")
    monkeypatch.undo()
    assert study.run("e")["tiles computed"] == 2
    contents = {name: content for name, (_, content) in study.files("e").items()}
    assert contents == {name: content for name, (_, content) in before.items()}


def test_a_tile_whose_job_died_is_not_taken_for_the_one_before(study, monkeypatch):
    """Another metric dies after it has written a tile; then the first metric is asked for again."""
    before = {name: content for name, (_, content) in study.files("e").items()}
    monkeypatch.setattr(rows_module.Row, "finish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.run("e", metric="ibs")
    monkeypatch.undo()
    assert study.files("e")["b.npz"][1] != before["b.npz"]
    assert study.run("e")["tiles computed"] == 1
    assert {name: content for name, (_, content) in study.files("e").items()} == before


@pytest.mark.parametrize("wrong", ["missing", "other key"])
def test_readers_refuse_a_tile_that_its_row_does_not_list(study, wrong):
    folder = study.results / "distance/tiles/e"
    if wrong == "missing":
        (folder / "d.npz").unlink()
    else:
        (folder / ".d.key").write_text("0")
    with pytest.raises(UserError, match=r"e/d\.npz is .*; delete .*e/row\.json and run again"):
        read_tiles([folder.parent / row / "row.json" for row in "bde"], ".npz")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"tiles": [["b", "e"]]}'])
def test_readers_refuse_a_damaged_list(study, content):
    path = study.results / "distance/tiles/e/row.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"e/row\.json is damaged; delete it and run again"):
        read_tiles([path], ".npz")


def test_readers_refuse_rows_that_lack_a_pair(study):
    """Founders' rows are complete by themselves; without a newcomer's pair nothing is assembled."""
    lists = [study.results / f"distance/tiles/{row}/row.json" for row in "bde"]
    assert len(read_tiles(lists[:2], ".npz")) == 3
    with pytest.raises(UserError, match=r"e/row\.json lists the pair of d and e"):
        read_tiles([lists[0], lists[2]], ".npz")
    study.run("e", [("b", "e"), ("e", "e")])
    with pytest.raises(UserError, match=r"d/row\.json nor .*e/row\.json lists the pair of d and e"):
        read_tiles(lists, ".npz")


# --- parts of it --------------------------------------------------------------------------------


def test_an_older_checksum_is_not_trusted(tmp_path):
    """A file that was replaced by hand has the checksum of the one before."""
    path = tmp_path / "results/x.json"
    write_json(path, [1])
    kept = content_key(path)
    path.write_text(path.read_text().replace("1", "2"))
    os.utime(path, ns=(2**61, 2**61))  # in 2043
    assert content_key(path) != kept


def test_planes_are_read_ahead_in_order(study):
    cohorts = list(study.folders)
    assert list(read_ahead(cohorts, study.folders)) == cohorts
    walk = read_ahead(cohorts, study.folders)
    assert next(walk) == cohorts[0]
    walk.close()  # ends its thread


def test_planes_are_kept_at_hand_once(study, monkeypatch):
    """A row asks the backend once to keep its own cohort's planes, and products use them."""
    backend = select_backend("cpu", 1)
    kept, used = [], []

    def keep(planes):
        kept.append(planes.words.shape)
        held = type(planes)(planes.words.copy(), planes.n_sites)
        used.append(held)
        return held

    def bitgemm(a, b, terms):
        assert any(np.shares_memory(one.words, used[0].words) for one in (a, b) if one is not None)
        return type(backend).bitgemm(backend, a, b, terms)

    monkeypatch.setattr(backend, "keep_planes", keep)
    monkeypatch.setattr(backend, "bitgemm", bitgemm)
    study.backend = lambda need: backend
    assert study.run("e", code="3")["tiles computed"] == 3
    assert kept == [(5, 3, np.load(study.folders["e"] / "planes.npy").shape[2])]


def test_the_memory_asked_for_grows_with_the_largest_pair():
    own = (1000, 3, 10_000)
    small, large = product_bytes(own, [own]), product_bytes(own, [own, (8000, 3, 10_000)])
    assert small == product_bytes(own) < large
    # planes of 1 000 people at 640 000 sites: 240 MB a block; and sums of 1 024 x 1 024 pairs
    assert 3 * 240e6 < small - (2 << 30) < 11 * 240e6 + 110e6
    # 10 000 people at 10 million sites: 37.5 GB that stay on the device, and room to stream others
    huge = (10_000, 3, 156_250)
    assert 37.5e9 + 24 * 2**30 < product_bytes(huge, [huge]) < 80e9
