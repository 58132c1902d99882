"""The table of samples and sites that every step kept and removed."""

from __future__ import annotations

import pandas as pd

from popdesic.cohort.summary import summarize_filters
from popdesic.core.files import write_json
from popdesic.core.tables import read_table, write_table
from popdesic.report.words import COUNTS


def write_samples(path, left_out, told, stated, errors) -> None:
    sites = ["NA" if e == "NA" else "100" for e in errors]
    columns = {"left_out": left_out, "sex_from_x": told, "sex": stated, "mendel_errors": errors}
    columns["x_sites"] = "NA" if set(told) == {"NA"} else "70"
    write_table(path, pd.DataFrame(columns | {"mendel_sites": sites}))


def run(tmp_path, identity=None) -> dict[tuple[str, str], list[tuple[str, int]]]:
    na = ["NA"] * 3
    left_out = ["NA", "qc.min_sample_call_rate", "qc.sex_mismatch"]
    write_samples(tmp_path / "a", left_out, ["M", "F", "NA"], ["M", "M", "F"], ["3", "NA", "4"])
    write_samples(tmp_path / "b", na, na, ["M"] * 3, na)
    for name in ("raw", "planes", "panel"):
        steps = [{"what": "filter", "subject": "panel.min_maf", "sites": 7}]
        write_json(tmp_path / name, {"counts": {"samples": 3}, "steps": steps})
    groups = {"population": ["P"], "samples": ["3"], "tested": ["both"]}
    write_table(tmp_path / "groups", pd.DataFrame(groups))
    twice = {name: [tmp_path / name] * 2 for name in ("raw", "planes")}
    summarize_filters(
        ["a", "b"],
        ingest=twice["raw"],
        samples=[tmp_path / "a", tmp_path / "b"],
        populations=[tmp_path / "groups"] * 2,
        panel=tmp_path / "panel",
        encode=twice["planes"],
        identity=identity,
        out=tmp_path / "summary",
    )
    table = read_table(tmp_path / "summary")
    assert table.stage.drop_duplicates().tolist() == ["ingest", "qc", "panel", "encode"]
    known = {(stage, step) for stage, step in zip(table.stage, table.step, strict=True)}
    assert {key for key in known if key[0] == "qc"} <= set(COUNTS), "a step without words"
    return {
        key: [(step, int(n)) for step, n in zip(rows.step, rows["count"], strict=True)]
        for key, rows in table.groupby(["stage", "cohort"])
    }


def test_checks_are_counted_where_there_is_something_to_check(tmp_path):
    found = run(tmp_path)
    assert found["qc", "a"] == [
        ("samples", 3),
        ("samples below qc.min_sample_call_rate", 1),
        ("samples left out by qc.sex_mismatch", 1),
        ("samples with a sex from X", 2),
        ("samples whose X tells no sex", 1),
        ("samples whose X contradicts their sex", 1),
        ("children compared with their parents", 2),
        ("Mendelian errors of children", 7),
        ("samples tested for Hardy-Weinberg within their population", 3),
    ]
    assert found["qc", "b"] == [
        ("samples", 3),
        ("samples below qc.min_sample_call_rate", 0),
        ("samples tested for Hardy-Weinberg within their population", 3),
    ]


def test_duplicates_within_and_between_cohorts_are_counted_once_a_sample(tmp_path):
    rows = [
        ("a", "x", "a", "y", "same"),
        ("a", "y", "a", "x", "same"),
        ("a", "z", "a", "x", "different"),
        ("b", "x2", "a", "x", "same"),
        ("b", "z2", "a", "z", "same"),
        ("b", "w", "b", "z2", "different"),
    ]
    columns = ["query_cohort", "query", "match_cohort", "match", "verdict"]
    write_table(tmp_path / "identity", pd.DataFrame(rows, columns=columns))
    found = run(tmp_path, tmp_path / "identity")
    step = "samples with the genotypes of another sample"
    assert dict(found["qc", "a"])[step] == 3  # x, y, and z for z2
    assert dict(found["qc", "b"])[step] == 2
