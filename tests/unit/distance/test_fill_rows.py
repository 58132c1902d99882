"""Tiles of several rows and stages that are computed together are those computed apart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scenes.random_cohorts import make_planes

from popdesic.distance.fill_rows import (
    RowWork,
    _visits,
    fill_rows,
    leader_of,
    together,
    update_rows,
)
from popdesic.distance.neighbors import row_work
from popdesic.distance.rows import Rows
from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import Planes

SIZES = {"d": 5, "b": 7, "a": 1, "c": 6, "e": 4}
OPTIONS = {"missing": "pairwise", "min_called": 1, "landmarks": {"b": np.array([0, 3])}}
#: Two stages.
STAGES = {"near": {"k": 3, "metric": "ibs"}, "far": {"k": 2, "metric": "euclidean"}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = tmp_path_factory.mktemp("planes")
    return {name: make_planes(made / name, n, 200, 0.1 * (n % 2)) for name, n in SIZES.items()}


def works_of(results: Path, folders, chosen=tuple(SIZES), code: str = "1") -> list[RowWork]:
    """The work of some rows, stage by stage; "c" and "e" are newcomers."""
    works = []
    for stage, about in STAGES.items():
        rows = Rows(results / stage, list(SIZES), "dba", ".npz")
        works += [
            row_work(
                results / stage / row / "row.json",
                rows.pairs(row),
                folders,
                **about,
                **OPTIONS,
                code=code,
            )
            for row in chosen
        ]
    return works


def tiles(results: Path) -> dict[str, bytes]:
    return {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.npz")}


class Small:
    """A device that keeps the planes of so many cohorts, and counts what it reads."""

    name = "small"

    def __init__(self, room: int) -> None:
        self.cpu, self.room, self.asked = cpu_backend(1), room, []

    def __getattr__(self, name: str):
        return getattr(self.cpu, name)

    def keep_planes(self, planes: Planes) -> Planes:
        self.asked.append(planes.n_samples)
        if isinstance(planes.words, np.memmap) and self.asked.count(planes.n_samples) <= self.room:
            return Planes(planes.words.copy(), planes.n_sites)
        return planes


@pytest.fixture
def apart(tmp_path, folders) -> dict[str, bytes]:
    """Tiles of all rows, one after the other."""
    results = tmp_path / "apart/results"
    for work in works_of(results, folders):
        update_rows([work], folders, lambda _: cpu_backend(1))
    return tiles(results)


def test_rows_together_give_the_tiles_of_rows_apart(tmp_path, folders, apart):
    results = tmp_path / "filled/results"
    for group in together(list(SIZES)).values():
        counts = fill_rows(works_of(results, folders, group), folders, lambda _: cpu_backend(1))
        assert counts["tiles kept"] == 0
    assert tiles(results) == apart
    assert len(apart) == 2 * 15
    for work in works_of(results, folders):
        assert update_rows([work], folders, pytest.fail)["tiles computed"] == 0
        assert work.out.is_file()
    assert fill_rows(works_of(results, folders), folders, pytest.fail)["tiles kept"] == 30


@pytest.mark.parametrize("room", [0, 1])
def test_a_device_without_room_takes_rows_one_by_one(tmp_path, folders, apart, room):
    results, device = tmp_path / "filled/results", Small(room)
    fill_rows(works_of(results, folders), folders, lambda _: device)
    assert tiles(results) == apart


def test_the_planes_of_others_are_asked_for_once(tmp_path, folders):
    """Of two rows and two stages."""
    device = Small(9)
    fill_rows(works_of(tmp_path, folders, ("c", "e")), folders, lambda _: device)
    read = [n for n, after in pairwise([*device.asked, None]) if n != after]
    assert read[:2] == [SIZES["c"], SIZES["e"]]
    assert sorted(read[2:]) == sorted(SIZES[name] for name in "dba")


def test_the_tile_of_a_row_with_itself_is_its_last(tmp_path, folders):
    works = works_of(tmp_path, folders, ("b", "c", "e"))
    tasks = [(work, pair) for work in works for pair in work.pairs]
    done = [task for _, some in _visits(tasks, ["b", "c", "e"], folders) for task in some]
    assert len(done) == len(tasks) == 2 * (2 + 4 + 5)
    for work in works:
        mine = [pair for one, pair in done if one is work]
        assert sorted(mine) == sorted(work.pairs)
        assert mine[-1] == (work.row.owner, work.row.owner)


def test_groups_of_rows():
    order = list("gfedc")
    groups = together(order)
    assert [name for group in groups.values() for name in group] == order
    assert {row: leader_of(row, order) for row in order} == {
        row: leader for leader, group in groups.items() for row in group
    }
