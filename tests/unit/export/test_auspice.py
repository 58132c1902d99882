"""Trees for Auspice: the keys that its public schema requires, distances, hostile names, depth."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform

from popdesic.distance.neighbor_joining import neighbor_joining
from popdesic.export.auspice import (
    NO_DATE,
    population_rows,
    write_auspice,
    write_population_tree,
    write_sample_tree,
)

#: Awkward names: spaces, quotes, brackets, markup, and one that an inner node would have.
NAMES = ["A 1", "A_1", "it's", "(b,c):1", "<b>x</b>", 'say "no"', "NODE_0000000", "Å"]
SHOWN = {"panel": "0123456789ab", "color_by": "population", "place_by": "population"}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def sheet(**columns: list[str]) -> pd.DataFrame:
    rows = {"sample": NAMES, "cohort": ["c"] * 8, "population": ["P", "Q"] * 4}
    return pd.DataFrame(rows | columns)


def nodes_of(tree: dict) -> list[dict]:
    found, waiting = [], [tree]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].get("children", [])
    return found


def check(path: Path) -> tuple[dict, list[dict]]:
    """What the schema asks of a dataset, version 2; its nodes."""
    content = json.loads(path.read_text("utf-8"))
    assert set(content) == {"version", "meta", "tree"} and content["version"] == "v2"
    meta, nodes = content["meta"], nodes_of(content["tree"])
    assert re.fullmatch(r"[0-9X]{4}-[0-9X]{2}-[0-9X]{2}", meta["updated"])
    keys = {coloring["key"] for coloring in meta["colorings"]}
    shown = meta["display_defaults"]
    assert shown.get("color_by", next(iter(keys))) in keys
    assert set(meta["filters"]) <= keys and not keys & {"none", "div", "url", "author"}
    for node in nodes:
        assert set(node) <= {"name", "node_attrs", "branch_attrs", "children"}
        assert not re.search(r"\s", node["name"])
        assert node.get("children", [1]), "a leaf has no list of children"
        values = {k: v["value"] for k, v in node["node_attrs"].items() if k != "div"}
        assert set(values) <= keys
    names = [node["name"] for node in nodes]
    assert len(set(names)) == len(names)
    for resolution in meta.get("geo_resolutions", []):
        used = {n["node_attrs"].get(resolution["key"], {}).get("value") for n in nodes}
        assert "map" in meta["panels"] and set(resolution["demes"]) <= used
    return meta, nodes


def test_names_distances_and_columns(tmp_path, rng):
    distances = squareform(pdist(rng.normal(size=(8, 30))))
    ages = ["31", "NA", "40.5", *["20"] * 5]
    table = sheet(age=ages, url=["x"] * 8, nothing=["NA"] * 8)
    write_sample_tree(tmp_path / "t.json", distances, table, **SHOWN)
    meta, nodes = check(tmp_path / "t.json")
    leaves = {n["node_attrs"]["sample"]["value"]: n for n in nodes if "children" not in n}
    assert set(leaves) == set(NAMES)
    kinds = {c["key"]: c["type"] for c in meta["colorings"]}
    assert kinds["age"] == "continuous" and kinds["population"] == "categorical"
    assert "sheet_url" in kinds and "nothing" not in kinds
    assert "age" not in leaves["A_1"]["node_attrs"]
    assert leaves["A 1"]["node_attrs"]["age"]["value"] == 31.0
    assert leaves["A 1"]["name"] == "A_1" and leaves["A_1"]["name"] == "A_1_"
    assert meta["updated"] == NO_DATE and meta["display_defaults"]["color_by"] == "population"


def test_div_adds_up_to_the_distances_of_a_tree(tmp_path):
    """Distances that fit a tree exactly are found again from `div` along its branches."""
    tips = np.array([1.0, 2.0, 3.0, 4.0])
    distances = tips[:, None] + tips[None, :] + 5.0 * np.not_equal.outer([0, 0, 1, 1], [0, 0, 1, 1])
    np.fill_diagonal(distances, 0.0)
    table = sheet().iloc[:4]
    write_sample_tree(tmp_path / "t.json", distances, table, **SHOWN)
    content = json.loads((tmp_path / "t.json").read_text())
    above: dict[str, list[tuple[str, float]]] = {}
    waiting = [(content["tree"], [])]
    while waiting:
        node, path = waiting.pop()
        path = [*path, (node["name"], node["node_attrs"]["div"])]
        if "children" not in node:
            above[node["node_attrs"]["sample"]["value"]] = path
        waiting += [(child, path) for child in node.get("children", [])]
    for i, a in enumerate(NAMES[:4]):
        for j, b in enumerate(NAMES[:4]):
            common = max(depth for name, depth in above[a] if (name, depth) in above[b])
            assert above[a][-1][1] + above[b][-1][1] - 2 * common == pytest.approx(distances[i, j])


def test_places_are_means_of_known_coordinates(tmp_path, rng):
    distances = squareform(pdist(rng.normal(size=(8, 30))))
    latitude = ["10", "50", "20", "NA", *["15", "50"] * 2]
    table = sheet(latitude=latitude, longitude=["5"] * 8)
    write_sample_tree(tmp_path / "t.json", distances, table, **SHOWN)
    meta, _ = check(tmp_path / "t.json")
    assert meta["geo_resolutions"][0]["demes"] == {
        "P": {"latitude": 15.0, "longitude": 5.0},
        "Q": {"latitude": 50.0, "longitude": 5.0},
    }


def test_populations_with_support_and_without_a_tree(tmp_path):
    described = pd.DataFrame({"population": ["P", "Q", "R r", "small"], "people": ["9"] * 4})
    samples = pd.DataFrame(
        {"population": ["P", "Q"], "latitude": ["1", "2"], "longitude": ["3"] * 2}
    )
    rows = population_rows(described, samples, "population")
    newick = "((P:1,Q:1)97:0.5,'R r':2,S:-1);"
    rows = pd.concat([rows, rows[:1].assign(population="S")])
    shown = SHOWN | {"place_by": "population"}
    assert write_population_tree(tmp_path / "p.json", newick, rows, **shown) == 4
    meta, nodes = check(tmp_path / "p.json")
    assert [n["branch_attrs"] for n in nodes if "branch_attrs" in n] == [
        {"labels": {"support": "97"}}
    ]
    assert {n["name"] for n in nodes if "children" not in n} == {"P", "Q", "R_r", "S"}
    assert min(n["node_attrs"]["div"] for n in nodes) == 0.0, "no negative branch"
    assert "warning" not in meta and set(meta["geo_resolutions"][0]["demes"]) == {"P", "Q", "S"}
    assert write_population_tree(tmp_path / "p.json", "", rows, **shown) == 5
    assert "Fewer than three" in check(tmp_path / "p.json")[0]["warning"]
    # Populations that are all too small: a root alone.
    assert write_population_tree(tmp_path / "p.json", "", rows.head(0), **shown) == 0


def test_a_tree_deeper_than_the_stack(tmp_path):
    n = 3 * sys.getrecursionlimit()
    newick = "(" * (n - 1) + "s0:1"
    newick += "".join(f",s{k}:1){'' if k == n - 1 else ':1'}" for k in range(1, n)) + ";"
    table = pd.DataFrame({"sample": [f"s{k}" for k in range(n)]})
    out = tmp_path / "t.json"
    assert write_auspice(out, newick, table, title="t", about="", color_by="cohort") == n
    text = out.read_text()
    assert text.count('"children"') == n - 1 and text.count("{") == text.count("}")


def test_the_same_bytes(tmp_path, rng):
    distances = squareform(pdist(rng.normal(size=(8, 30))))
    for name in ("a", "b"):
        write_sample_tree(tmp_path / name, distances, sheet(), **SHOWN)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert neighbor_joining(distances, NAMES).count("(") > 2
