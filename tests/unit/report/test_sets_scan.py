"""Figures of sets: places, quantiles and the forest plot can be read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.readable import checked

from popdesic.core.tables import write_table
from popdesic.report.figures.sets_scan import draw_forest, draw_sets, forest, in_genome_order
from popdesic.report.figures.style import ACCENT, ALARM, styled


def tables(n: int = 30) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(1)
    names = [f"GENE{k}_ENSG000000{k:05d}" for k in range(n)]
    p = rng.random(n)
    sets = pd.DataFrame({"set": names, "end": np.nan, "n": 900})
    sets["chrom"] = [f"chr{2 - k % 2}" for k in range(n - 1)] + ["NA"]
    sets["start"] = [100.0 * k for k in range(n - 1)] + [np.nan]
    sets = sets.assign(chrom2="NA", p=p, p_quadratic=p, site1="1:2:A:C", site2="1:5:A:C")
    row = {"tested": "direction", "cohorts": 2, "effect": 0.2, "se": 0.1, "without": "north"}
    replication = pd.DataFrame({"set": names, "p_discovery": p}).assign(**row)
    effects = [
        {"set": name, "cohort": cohort, "role": role, "n": 300, "effect": 0.3, "se": 0.15, "p": 0.1}
        for name in names
        for cohort, role in (
            ("north", "discovery"),
            ("south", "replication"),
            ("west", "replication"),
        )
    ]
    return sets, replication, pd.DataFrame(effects)


def test_figures_can_be_read(tmp_path):
    sets, replication, effects = tables()
    paths = [tmp_path / f"{name}.tsv" for name in ("sets", "replication", "effects", "sites")]
    sites = pd.DataFrame({"chrom": ["2", "1"], "rank": [1, 0]})
    for path, table in zip(paths, (sets, replication, effects, sites), strict=True):
        write_table(path, table)
    with checked():
        names = draw_sets(paths[0], paths[3], tmp_path, "gout")
        names += draw_forest(paths[1], paths[2], tmp_path, "gout")
    assert names == [f"gout.{name}" for name in ("sets_manhattan", "sets_qq", "sets_forest")]
    assert all((tmp_path / f"{name}.svg").stat().st_size > 1000 for name in names)


def test_sets_stand_in_the_order_of_the_genome():
    sets = tables(6)[0]
    found = in_genome_order(sets, pd.Series(["1", "2"]))
    assert found.chrom.tolist() == ["1", "1", "2", "2", "2", "several"]
    assert found.set.str[4].tolist() == ["1", "3", "0", "2", "4", "5"]
    assert len(in_genome_order(sets, pd.Series(["1"]))) == 3


def test_the_forest_has_the_best_ten_sets_in_units_of_the_direction():
    _, replication, effects = tables()
    with styled():
        (axes,) = forest(replication, effects).axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(points) == 10 * 4
    unit = np.sqrt(3 * 0.15**-2 / 900)
    assert points[0].get_xdata()[0] == pytest.approx(0.3 * unit)
    assert points[3].get_xdata()[0] == pytest.approx(0.2 * unit)
    assert [points[k].get_color() for k in (1, 3)] == [ACCENT, ALARM]
    best = replication.sort_values("p_discovery").set.iloc[0]
    assert axes.get_yticklabels()[0].get_text()[:6] == best[:6]
