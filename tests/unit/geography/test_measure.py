"""The stage: a scene with known places through files, and awkward studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes import scene
from scenes.mixtures import draw_mixtures
from support.readable import checked

from popdesic.core.tables import read_table, write_table
from popdesic.geography.measure import measure_geography
from popdesic.report.figures.geography import draw_geography
from popdesic.report.isolation import isolation_words

RELATIVES = ["sample_a", "sample_b", "kinship", "relation"]


def write_squared(folder: Path, genotypes: np.ndarray) -> None:
    """`squared.npy` and `called.npy` of complete genotypes (n_sites, n)."""
    g = genotypes.astype(np.int64)
    own = (g**2).sum(axis=0)
    np.save(folder / "squared.npy", own[:, None] + own[None] - 2 * g.T @ g)
    np.save(folder / "called.npy", np.full((g.shape[1],) * 2, len(g), np.int64))


def run(
    folder: Path, genotypes, sheet: dict[str, list], *, cohorts=None, communities=None, relatives=()
) -> tuple[dict, pd.DataFrame, pd.DataFrame]:
    """Write a study's files, measure, draw; summary, places and edges."""
    folder.mkdir(exist_ok=True, parents=True)
    n = genotypes.shape[1]
    names = [f"s{k}" for k in range(n)]
    cohorts = ["founder"] * n if cohorts is None else cohorts
    write_squared(folder, genotypes)
    write_table(folder / "samples.tsv", pd.DataFrame({"sample": names, "cohort": cohorts}))
    # The sheet's order is not that of the matrices.
    table = pd.DataFrame({"sample": names, "cohort": cohorts} | sheet)
    write_table(folder / "sheet.tsv", table.iloc[::-1])
    partition = None
    if communities is not None:
        partition = folder / "partition.tsv"
        write_table(partition, pd.DataFrame({"sample": names, "community": communities}))
    tiles = []
    if relatives:
        tiles = [folder / "tile.tsv"]
        write_table(tiles[0], pd.DataFrame(relatives, columns=RELATIVES))
    out = {name: folder / f"{name}.tsv" for name in ("places", "edges", "pairs")}
    about = measure_geography(
        folder,
        folder / "sheet.tsv",
        partition,
        tiles,
        founders=["founder"],
        n_sites=1,
        min_called=1,
        permutations=99,
        seed=1,
        out=out | {"summary": folder / "isolation.json"},
    )
    with checked():
        drawn = draw_geography(
            folder, folder / "samples.tsv", folder / "sheet.tsv", folder, color_by="population"
        )
    assert drawn == ["geography_map", "isolation", "barriers"]
    assert all((folder / f"{name}.png").stat().st_size > 1000 for name in drawn)
    return about, read_table(folder / "places.tsv"), read_table(folder / "edges.tsv")


def plane(coordinates: np.ndarray) -> dict[str, list]:
    return {"x": coordinates[:, 0].tolist(), "y": coordinates[:, 1].tolist()}


def test_a_wall_through_a_grid(tmp_path):
    """msprime's landscape (tests/scenes/landscapes): the wall of the scene and nothing else."""
    drawn = scene("closed wall", seed=3)
    about, places, edges = run(
        tmp_path,
        drawn.genotypes,
        plane(drawn.coordinates) | {"population": drawn.populations.tolist()},
        communities=1 + (drawn.coordinates[:, 0] > 3.5),
    )
    assert (about["places"], about["samples"], about["edges"]) == (64, 320, 112)
    assert about["all"]["p"] == about["within"]["p"] == 0.01 and not about["missing"]
    assert about["within"]["pairs"] == 2 * 32 * 31 // 2 and about["within"]["strata"] == 2
    column = places.set_index("place").x.astype(float)
    crossing = (edges.place_a.map(column) < 3.5) != (edges.place_b.map(column) < 3.5)
    assert (edges.kind[crossing] == "barrier").sum() >= 7
    assert (edges.kind[~crossing] == "barrier").sum() <= 1
    assert (places.samples == "5").all() and (places.used == "5").all()


def test_a_grid_without_a_wall(tmp_path):
    drawn = scene("faint grid", seed=4)
    about, _, edges = run(tmp_path, drawn.genotypes, plane(drawn.coordinates))
    assert about["all"]["p"] == 0.01 and about["all"]["correlation"] > 0.3
    assert about["all"]["slope_log"]["slope"] > 5 * about["all"]["slope_log"]["standard_error"]
    assert about["barriers"] == 0 and set(edges.kind) == {"none"}


def test_panmictic_people_on_a_map(tmp_path):
    """No isolation by distance; a family of one place is no population; newcomers are named."""
    rng = np.random.default_rng(5)
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.9, (800, 1)), (800, 60)).astype(np.int8)
    genotypes[:, 41:44] = genotypes[:, 40:41]  # four copies of one person, of one place
    home = np.repeat(np.arange(10), 6)
    home[40:46] = 9
    sheet = {
        "latitude": [f"{v:g}" for v in rng.uniform(-20, 60, 10)[home]],
        "longitude": [f"{v:g}" for v in rng.uniform(-180, 180, 10)[home]],
    }
    sheet["latitude"][0] = sheet["longitude"][0] = "NA"
    cohorts = ["founder" if place < 8 else "later" for place in home]
    same = [
        (f"s{a}", f"s{b}", 0.5, "duplicate or identical twin")
        for a in range(40, 44)
        for b in range(a + 1, 44)
    ]
    about, places, _ = run(tmp_path, genotypes, sheet, cohorts=cohorts, relatives=same)
    assert about["all"]["p"] > 0.05 and about["barriers"] == 0
    assert (about["system"], about["unit"]) == ("sphere", "km")
    assert about["samples_without_place"] == 1 and about["relatives_left_out"] == 3
    assert about["places_of_newcomers_only"] == 2
    assert places.samples.astype(int).sum() == 59 and places.used.astype(int).sum() == 56
    # With the copies the place would seem to have hardly any diversity.
    known, _, _ = run(tmp_path / "all", genotypes, sheet, cohorts=cohorts)
    assert not known["relatives_known"] and known["relatives_left_out"] == 0


def test_majority_community(tmp_path):
    genotypes = np.random.default_rng(6).binomial(2, 0.4, (300, 12)).astype(np.int8)
    sheet = {"x": [0] * 3 + [1] * 4 + [2] * 5, "y": [0] * 12}
    communities = [1, 1, 2, 1, 1, 2, 2, 0, 0, 2, 2, 2]
    about, places, _ = run(tmp_path, genotypes, sheet, communities=communities)
    assert places.community.tolist() == ["1", "0", "2"]
    assert places.community_share.tolist() == ["0.666667", "NA", "0.6"]
    assert about["within"]["strata"] == 1 and about["barriers"] is None
    # Three places are described; only community 2 has samples in all of them.
    assert about["all"]["p"] is None and about["within"]["pairs"] == 3


@pytest.mark.parametrize("isolated", [False, True])
def test_mixtures_that_differ_by_place(tmp_path, isolated):
    """Two communities everywhere, in shares that grow along a line: no isolation by distance."""
    genotypes, home, community = draw_mixtures(12, isolation=0.03 * isolated)
    sheet = {"x": home.tolist(), "y": [0] * 120}
    about, _, _ = run(tmp_path, genotypes, sheet, communities=community.tolist())
    assert about["all"]["p"] == 0.01 and about["all"]["correlation"] > 0.5
    assert (about["within"]["p"] <= 0.05) == isolated and about["within"]["strata"] == 2
    words = isolation_words(about)
    assert words.endswith(": isolation by distance.") == isolated, words


@pytest.mark.parametrize("case", ["two places", "nobody", "one each", "on a line"])
def test_awkward_studies_say_what_is_missing(tmp_path, case):
    genotypes = np.random.default_rng(7).binomial(2, 0.4, (300, 12)).astype(np.int8)
    x = {
        "two places": [1] * 6 + [2] * 6,
        "nobody": ["NA"] * 12,
        "one each": list(range(12)),
        "on a line": [k // 2 for k in range(12)],
    }[case]
    about, _, edges = run(tmp_path, genotypes, {"x": x, "y": x})
    expected = {
        "two places": "2 places are left",
        "nobody": "0 places are left",
        "one each": "No place has two samples",
        "on a line": "",
    }[case]
    assert expected in about["missing"] and bool(about["missing"]) == bool(expected)
    assert len(edges) == {"one each": 11, "on a line": 5}.get(case, 0)
    assert (about["barriers"] is None) == bool(expected)


def test_the_same_study_gives_the_same_bytes(tmp_path):
    drawn = scene("chain", seed=8, demes=8, per_deme=4, sites=300)
    for name in "ab":
        run(tmp_path / name, drawn.genotypes, plane(drawn.coordinates))
    for path in sorted((tmp_path / "a").glob("*.*")):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
