"""Which small cohorts are read together, and that a batch keeps its members."""

from __future__ import annotations

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from popdesic.core.limits import BATCH_SAMPLES, MANY_COHORTS, SMALL_COHORT
from popdesic.study.batches import (
    batches_of,
    group_cohorts,
    held_batches,
    hold_batches,
    remark_on_batches,
)

Row = tuple[str, int, bool, str, str]


def sheet(rows: list[Row]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Cohorts and numbers of samples, of rows with name, samples, founder, absent and callable."""
    table = pd.DataFrame(rows, columns=["cohort", "n", "founder", "absent", "callable"])
    table = table.sort_values(["founder", "cohort"], ascending=[False, True]).set_index("cohort")
    return table, table.n.to_dict()


def small(names, n: int = 5, founder: bool = True) -> list[Row]:
    return [(name, n, founder, "auto", "") for name in names]


def names(n: int, letter: str = "c") -> list[str]:
    return [f"{letter}{k:03d}" for k in range(n)]


ROWS = st.lists(
    st.tuples(
        st.integers(0, 400).map("c{}".format),
        st.integers(1, 80),
        st.booleans(),
        st.sampled_from(["auto", "auto", "missing", "reference"]),
        st.sampled_from(["", "", "", "mask.bed"]),
    ),
    min_size=1,
    max_size=80,
    unique_by=lambda row: row[0],
)


@settings(deadline=None)  # a busy machine takes longer
@given(rows=ROWS, held_share=st.floats(0, 1), shuffled=st.randoms())
def test_every_cohort_is_in_one_unit_of_its_kind(rows, held_share, shuffled):
    table, counts = sheet(rows)
    first, _ = sheet(rows[: max(1, int(len(rows) * held_share))])
    held = group_cohorts(first, counts, {})
    units = group_cohorts(table, counts, held)
    assert sorted(c for members in units.values() for c in members) == sorted(table.index)
    for unit, members in units.items():
        if members == [unit]:
            continue
        assert unit not in table.index
        kinds = {(table.founder[c], table.absent[c], table["callable"][c]) for c in members}
        assert len(kinds) == 1
        _, absent, mask = kinds.pop()
        assert absent in ("auto", "missing") and not mask
        assert members == sorted(members)
        assert sum(counts[c] for c in members) <= BATCH_SAMPLES
        assert all(counts[c] < SMALL_COHORT for c in members)
    # Units come founders first, then by name, and whoever was placed stays.
    order = [(not table.founder[members[0]], unit) for unit, members in units.items()]
    assert order == sorted(order)
    assert {unit: units[unit] for unit in held} == held
    # The order of the sheet's rows means nothing; asked again, a study says the same.
    again = list(rows)
    shuffled.shuffle(again)
    assert group_cohorts(sheet(again)[0], counts, held) == units
    assert group_cohorts(table, counts, units) == units
    # Nor does it matter which units are there already, as jobs of a run find them.
    some = {unit: members for unit, members in units.items() if members == [unit]}
    assert group_cohorts(table, counts, units | some) == units


def test_few_cohorts_are_read_one_by_one():
    table, counts = sheet(small(names(MANY_COHORTS)))
    assert group_cohorts(table, counts, {}) == {name: [name] for name in table.index}
    table, counts = sheet(small(names(MANY_COHORTS + 1)))
    assert group_cohorts(table, counts, {}) == {"batch001": names(MANY_COHORTS + 1)}


def test_large_cohorts_and_masks_are_read_alone():
    rows = small(names(20)) + small(["big"], SMALL_COHORT)
    rows += [("masked", 5, True, "auto", "mask.bed"), ("known", 5, True, "reference", "")]
    table, counts = sheet(rows)
    units = group_cohorts(table, counts, {})
    assert units == {
        "batch001": names(20),
        **{name: [name] for name in ("big", "known", "masked")},
    }


def test_founders_and_newcomers_share_no_batch():
    rows = small(names(200)) + small(names(30, "n"), founder=False)
    table, counts = sheet(rows)
    units = group_cohorts(table, counts, {})
    each = BATCH_SAMPLES // 5
    assert list(units) == ["batch001", "batch002", "batch003"]
    assert [len(members) for members in units.values()] == [each, 200 - each, 30]
    assert units["batch003"] == names(30, "n")


def test_who_arrives_later_enters_no_batch_that_there_is():
    table, counts = sheet(small(names(40)))
    held = group_cohorts(table, counts, {})
    table, counts = sheet(small([*names(40), "a_first"]))
    assert group_cohorts(table, counts, held) == held | {"a_first": ["a_first"]}
    table, counts = sheet(small(names(40) + names(20, "a")))
    assert group_cohorts(table, counts, held) == held | {"batch002": names(20, "a")}


def test_who_leaves_or_changes_leaves_its_batch():
    table, counts = sheet(small(names(40)))
    held = group_cohorts(table, counts, {})
    stay = names(40)
    stay.remove("c007")
    table, counts = sheet(small(stay))
    assert group_cohorts(table, counts, held) == {"batch001": stay}
    table, counts = sheet(small(stay) + small(["c007"], founder=False))
    assert group_cohorts(table, counts, held) == {"batch001": stay, "c007": ["c007"]}
    table, counts = sheet(small(["c003", "other"]))
    assert group_cohorts(table, counts, held) == {"batch001": ["c003"], "other": ["other"]}


def test_a_cohort_of_the_sheet_keeps_its_name():
    table, counts = sheet(small([*names(40), "Batch001"]))
    units = group_cohorts(table, counts, {})
    assert list(units) == ["batch002"]
    held = {"batch001": names(40)}
    table, counts = sheet([*small(names(40)), *small(["batch001"], 100)])
    assert group_cohorts(table, counts, held) == {"batch001": ["batch001"], "batch002": names(40)}


def test_results_say_who_was_read_with_whom(tmp_path):
    table, counts = sheet(small(names(40)))
    for name in ("c001", "c030"):  # decoded by a version that read each alone
        folder = tmp_path / "results/cohorts" / name
        folder.mkdir(parents=True)
        (folder / "raw.json").write_text("{}")
    units = batches_of(tmp_path, table, counts)
    assert [unit for unit, members in units.items() if len(members) == 1] == ["c001", "c030"]
    assert held_batches(tmp_path) == {}
    hold_batches(tmp_path, units)
    assert held_batches(tmp_path) == units
    few, counts = sheet(small(names(10)))
    assert len(batches_of(tmp_path, few, counts)["batch001"]) == 9
    hold_batches(tmp_path, {"c001": ["c001"]})
    hold_batches(tmp_path, {"c001": ["c001"]})
    assert batches_of(tmp_path, few, counts) == {name: [name] for name in names(10)}


def test_a_study_without_batches_has_no_list(tmp_path):
    hold_batches(tmp_path, {"a": ["a"]})
    assert not list(tmp_path.iterdir())


def test_a_remark_says_it():
    units = {f"batch{k:03d}": names(50, "abcd"[k]) for k in range(4)} | {"big": ["big"]}
    counts = dict.fromkeys(units, 250)
    assert remark_on_batches(units, counts) == [
        "200 small cohorts with 1000 samples are read as 4 batches (batch000, batch001, batch002, "
        "…), which results treat as cohorts."
    ]
    assert remark_on_batches({"big": ["big"]}, counts) == []
