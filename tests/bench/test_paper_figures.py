"""Figures of the papers: each has our rows and theirs, and every row says where it is from."""

from __future__ import annotations

import re
import subprocess
import sys

import pandas as pd
import paper_figures
import pytest
from support.bench_options import options_of

ROWS = paper_figures.read_rows()
PAPERS = {
    "EPIClear (ICS 2025)",
    "Tensor-Episdet (TPDS 2021)",
    "CPU+GPU on CUDA cores (JSSPP 2020)",
    "Portable SNP comparison",
    "Genome distances and R-Kleene (thesis)",
}


def test_every_figure_has_both_series_and_every_paper_a_figure():
    assert set(ROWS.figure) == set(paper_figures.FIGURES)
    assert (ROWS.groupby("figure").ours.nunique() == 2).all()
    assert set(ROWS.paper.dropna()) == PAPERS


def test_every_row_is_complete():
    assert (ROWS.value > 0).all()
    for name in ("ours", "published"):
        table = pd.read_csv(paper_figures.ROWS / f"{name}.tsv", sep="\t", dtype=str)
        assert table.notna().all(axis=None) and (table != "").all(axis=None)
        assert not table.duplicated(["figure", "series", "x"]).any()
    places = ROWS.place.dropna()
    assert places.str.match(r"(section|table) [\dVI]").all()


@pytest.mark.parametrize(
    "row", list(ROWS[ROWS.ours].itertuples()), ids=lambda r: f"{r.figure} {r.x}"
)
def test_our_row_names_a_command_and_its_page_has_the_figure(row):
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.date) and re.fullmatch(r"[0-9a-f]{8}", row.commit)
    bench, *options = row.command.split()
    assert {word for word in options if word.startswith("--")} <= options_of(bench)
    page = (paper_figures.ROOT / row.page).read_text("utf-8")
    value = row.value * 1000 if row.figure == "thesis_paths" else row.value
    shown = f"{value:,.1f}".removesuffix(".0").replace(",", " ")
    assert re.search(rf"(?<![\d.]){re.escape(shown)}(?![\d.]*\d)", page), shown
    assert bench.split("/")[-1] in page


def test_figures_are_drawn(tmp_path):
    command = [sys.executable, paper_figures.__file__, "--out", tmp_path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len(done.stdout.splitlines()) == len(paper_figures.FIGURES)
    for name in paper_figures.FIGURES:
        for kind in ("svg", "png"):
            assert (tmp_path / f"{name}.{kind}").stat().st_size > 5000
