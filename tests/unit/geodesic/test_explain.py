"""Paths behind geodesics equal the triple loop, and bridges equal graph-tool."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles import reference

from popdesic import __version__
from popdesic.__main__ import main
from popdesic.core.errors import UserError
from popdesic.engine.minplus import infinity
from popdesic.geodesic.explain import explain_geodesics, rank_bridges, read_path
from popdesic.geodesic.trees_cpu import shortest_trees

GRAPH_TOOL_PYTHON = "/usr/bin/python3"
BETWEENNESS = """
import sys
import numpy as np
from graph_tool import Graph
from graph_tool.centrality import betweenness
w = np.load(sys.argv[1])
i, j = np.triu_indices(len(w), 1)
graph = Graph(directed=False)
weight = graph.new_edge_property("double")
graph.add_edge_list(np.column_stack([i, j, w[i, j]]), eprops=[weight])
np.save(sys.argv[2], betweenness(graph, weight=weight, norm=False)[0].a)
"""


def draw(rng, n: int, dtype="int32", holes: float = 0.0) -> np.ndarray:
    weights = np.exp(rng.uniform(0, 12, (n, n)))
    weights = np.rint(weights).astype(dtype) if dtype != "float64" else weights
    weights[rng.random((n, n)) < holes] = infinity(dtype)
    weights = np.minimum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    return weights


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
@pytest.mark.parametrize("holes", [0.0, 0.9])
def test_paths_have_the_shortest_length(n, dtype, holes):
    direct = draw(np.random.default_rng(n), n, dtype, holes)
    parents, hops, _ = shortest_trees(direct, np.zeros(n, np.int64), threads=2)
    top = infinity(dtype)
    exact = reference.floyd_warshall(np.where(direct >= top, np.inf, direct.astype(float)))
    counted = {}
    for i in range(n):
        for j in range(n):
            if np.isinf(exact[i, j]):
                assert parents[i, j] == -1
                continue
            length, edges, at = 0.0, 0, j
            while at != i:
                before = parents[i, at]
                length, edges, at = length + float(direct[before, at]), edges + 1, before
            assert length == pytest.approx(exact[i, j], rel=1e-14)
            counted[edges] = counted.get(edges, 0) + 1
    assert {k: int(c) for k, c in enumerate(hops) if c} == counted


def test_duplicates_at_distance_zero_make_no_cycle():
    direct = np.array([[0, 5, 9], [5, 0, 0], [9, 0, 0]], np.int32)
    parents, _, _ = shortest_trees(direct, np.zeros(3, np.int64), threads=1)
    assert parents[0].tolist() == [0, 0, 1]


def test_excluded_bridges_are_only_endpoints():
    direct = np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0]], np.int32)
    labels = np.arange(3)
    parents, _, between = shortest_trees(direct, labels, threads=1)
    assert (parents[0].tolist(), between.tolist()) == ([0, 0, 1], [0, 1, 0])
    parents, _, between = shortest_trees(direct, labels, 1, np.array([False, True, False]))
    assert (parents[0].tolist(), between.tolist()) == ([0, 0, 0], [0, 0, 0])


def test_bridges_against_graph_tool(tmp_path):
    if subprocess.run(
        [GRAPH_TOOL_PYTHON, "-c", "import graph_tool"], capture_output=True, check=False
    ).returncode:
        pytest.skip("graph-tool is not installed (apt-get install python3-graph-tool)")
    direct = draw(np.random.default_rng(3), 60, "float64")
    np.save(tmp_path / "w.npy", direct)
    subprocess.run(
        [GRAPH_TOOL_PYTHON, "-c", BETWEENNESS, tmp_path / "w.npy", tmp_path / "b.npy"],
        check=True,
        env={**os.environ, "PYTHONNOUSERSITE": "1"},
    )
    # each individual is its own population, so all pairs count, as in betweenness
    _, _, between = shortest_trees(direct, np.arange(60), threads=2)
    np.testing.assert_allclose(between, np.load(tmp_path / "b.npy"), atol=1e-9)
    assert between.max() > 50


def explained(folder: Path, labels) -> tuple[pd.DataFrame, dict]:
    """Four points on a line, so that paths between the ends run through the two in the middle."""
    points = np.array([0.0, 1.0, 2.0, 3.0])
    distances = np.abs(points[:, None] - points[None])
    samples = pd.DataFrame({"sample": list("abcd"), "cohort": "x", "population": labels})
    space = folder / "results" / "geodesic" / "genotypes"
    explain_geodesics(
        distances,
        samples,
        founders=np.ones(4, bool),
        statistics={
            "value": 2.0,
            "plain": False,
            "graph": {"kind": "complete", "neighbors": 0},
            "number": {"dtype": "int32", "scale": 1.0, "error_bound": 0.0, "rescaled": False},
        },
        ends=set(),
        threads=1,
        parents_out=space / "parents.alpha2.npy",
        hops_out=space / "hops.alpha2.json",
        bridges_out=space / "bridges.tsv",
    )
    (folder / "results" / "distance").mkdir(parents=True)
    samples[["sample", "cohort"]].to_csv(
        folder / "results" / "distance" / "samples.tsv", sep="\t", index=False
    )
    rank_bridges({("genotypes", "2"): space / "bridges.tsv"}, folder / "all.tsv")
    hops = json.loads((space / "hops.alpha2.json").read_text())
    return pd.read_csv(folder / "all.tsv", sep="\t"), hops


def test_files_and_path(tmp_path):
    table, hops = explained(tmp_path, ["P", "P", "Q", "Q"])
    assert hops == {"pairs_by_edges": {"1": 3, "2": 2, "3": 1}}
    # between populations: a-c and a-d run through b, a-d and b-d through c
    assert table["sample"].tolist() == ["b", "c"]
    assert table.paths.tolist() == [2, 2]
    assert table.share_of_paths.tolist() == [0.5, 0.5]
    assert table["rank"].tolist() == [1, 2]
    assert read_path(tmp_path, "genotypes", "2", "d", "a") == list("dcba")
    with pytest.raises(UserError, match="no sample 'z'"):
        read_path(tmp_path, "genotypes", "2", "z", "a")
    with pytest.raises(UserError, match=r"set geodesic\.explain to true"):
        read_path(tmp_path, "pcs", "2", "d", "a")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda m: m.__setitem__((3, slice(None)), [1, 2, 1, 3]), "the path from .* never ends"),
        (lambda m: m.__setitem__((3, 0), 99), "the path from .* never ends"),
        (lambda m: m.__setitem__((3, 0), -1), "there is no path"),
    ],
)
def test_a_damaged_matrix_is_refused(tmp_path, damage, words):
    explained(tmp_path, ["P", "P", "Q", "Q"])
    path = tmp_path / "results/geodesic/genotypes/parents.alpha2.npy"
    parents = np.load(path)
    damage(parents)
    np.save(path, parents)
    with pytest.raises(UserError, match=words):
        read_path(tmp_path, "genotypes", "2", "d", "a")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\0", b"no array at all" * 99])
def test_a_file_that_is_not_a_matrix_is_refused(tmp_path, content):
    explained(tmp_path, ["P", "P", "Q", "Q"])
    path = tmp_path / "results/geodesic/genotypes/parents.alpha2.npy"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged; run"):
        read_path(tmp_path, "genotypes", "2", "d", "a")
    np.save(path, np.zeros((3, 3), np.int32))
    with pytest.raises(UserError, match="does not fit"):
        read_path(tmp_path, "genotypes", "2", "d", "a")
    (tmp_path / "results/distance/samples.tsv").unlink()
    with pytest.raises(UserError, match=r"samples\.tsv does not exist"):
        read_path(tmp_path, "genotypes", "2", "d", "a")


def test_without_populations_there_are_no_bridges_between_two(tmp_path):
    samples = pd.DataFrame({"sample": list("abcd"), "cohort": "x"})
    points = np.arange(4.0)
    about = explain_geodesics(
        np.abs(points[:, None] - points),
        samples,
        founders=np.ones(4, bool),
        statistics={
            "value": 2.0,
            "plain": False,
            "graph": {"kind": "complete", "neighbors": 0},
            "number": {"dtype": "int32", "scale": 1.0, "error_bound": 0.0, "rescaled": False},
        },
        ends=set(),
        threads=1,
        parents_out=tmp_path / "p.npy",
        hops_out=tmp_path / "h.json",
        bridges_out=tmp_path / "b.tsv",
    )
    assert about == {"pairs": 6, "bridges": 0}


def test_plain_distances_have_direct_paths(tmp_path):
    """Rounded sums of distances on a line are at times smaller than the distance of the ends."""
    x = np.sort(np.exp(np.random.default_rng(5).uniform(-8, 8, 40)))
    about = explain_geodesics(
        np.abs(x[:, None] - x),
        pd.DataFrame({"sample": [str(k) for k in range(40)], "cohort": "x", "population": "P"}),
        founders=np.ones(40, bool),
        statistics={
            "value": 1.0,
            "plain": True,
            "graph": {"kind": "complete", "neighbors": 0},
            "number": {"dtype": "float64", "scale": 1.0, "error_bound": 0.0, "rescaled": False},
        },
        ends=set(),
        threads=1,
        parents_out=tmp_path / "p.npy",
        hops_out=tmp_path / "h.json",
        bridges_out=tmp_path / "b.tsv",
    )
    assert about == {"pairs": 780, "bridges": 0}
    assert json.loads((tmp_path / "h.json").read_text()) == {"pairs_by_edges": {"1": 780}}
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), np.arange(40)[:, None] + [0] * 40)


def test_the_command_takes_the_study_last_or_by_name(tmp_path, monkeypatch, capsys):
    explained(tmp_path / "x", ["P", "P", "Q", "Q"])
    folder = str(tmp_path / "x")
    for words in ([folder], ["--study", folder], [folder, "--study", folder]):
        assert main(["path", "d", "a", "--space", "genotypes", *words]) == 0
        assert capsys.readouterr().out.split() == list("dcba")
    monkeypatch.chdir(folder)
    assert main(["path", "d", "a"]) == 0
    assert capsys.readouterr().out.split() == list("dcba")
    assert main(["path", "d", "a", folder, "--study", "other"]) == 1
    assert "remove one of them." in capsys.readouterr().err


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"popdesic {__version__}\n"
