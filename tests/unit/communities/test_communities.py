"""Communities: neighbours, joining and agreement equal slow counts and scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from support.plink_files import write_plink
from support.readable import checked

from popdesic.communities import block_model
from popdesic.communities.agreement import agreement, compare_labels, load_partition
from popdesic.communities.block_model import fit_blocks
from popdesic.communities.geodesics import build_neighbor_graph, density_clusters, place_in_blocks
from popdesic.communities.partition import PartitionFiles, find_communities
from popdesic.communities.study_splits import SplitSource, number_by_size, split_study, write_splits
from popdesic.core.files import write_json
from popdesic.core.tables import read_table, write_npy, write_npz
from popdesic.distance.neighbor_joining import neighbor_joining, read_newick
from popdesic.maps.knn import nearest_neighbors
from popdesic.report.figures.communities import draw_communities, lay_out_tree
from popdesic.report.sections.communities import community_section, describe_structure

ROOT = Path(__file__).resolve().parents[3]
SYSTEM_PYTHON = "/usr/bin/python3"


def clouds(rng, sizes, spread=0.05):
    """Points of groups in 30 dimensions, and which group each sample is in."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.array([[0, 0], [2, 0], [0, 60], [90, 90]], float)[: len(sizes)]
    points = rng.normal(0, spread, (len(group), 30))
    points[:, :2] += centres[group]
    return points, group


@pytest.fixture(scope="module")
def graph_tool():
    probe = [SYSTEM_PYTHON, "-c", "import graph_tool"]
    if not Path(SYSTEM_PYTHON).exists() or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("graph-tool is not installed; apt-get install python3-graph-tool to test it.")


def fit_model(graph, out, *, python=SYSTEM_PYTHON):
    return fit_blocks(graph, out, python=str(python), seed=1, restarts=1, draws=5)


@pytest.mark.parametrize(("n", "k"), [(1, 3), (2, 1), (17, 5), (40, 60)])
def test_neighbors_equal_a_slow_sort(rng, n, k, monkeypatch):
    monkeypatch.setattr("popdesic.maps.knn.ROWS_READ", 3)
    monkeypatch.setattr("popdesic.distance.matrix.DISTANCE_BLOCK", 2 * n)
    far = rng.integers(0, 6, (n, n)).astype(np.float32)  # many ties
    far = far + far.T
    near, distances = nearest_neighbors(far.__getitem__, n, k)
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: (far[i, j], j))[:k]
        assert near[i].tolist() == others
        assert distances[i].tolist() == [far[i, j] for j in others]


def test_undefined_distances_are_infinite():
    far = np.array([[0, 1, np.nan], [1, 0, np.nan], [np.nan, np.nan, 0]])
    near, distances = nearest_neighbors(far.__getitem__, 3, 2)
    assert near.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert distances.tolist() == [[1, np.inf], [1, np.inf], [np.inf, np.inf]]


def test_graph_has_each_edge_once_and_none_to_the_unreachable(tmp_path, rng):
    far = squareform(pdist(clouds(rng, [6, 5])[0]))
    far[:6, 6:] = far[6:, :6] = np.inf
    build_neighbor_graph(far.__getitem__, 8, tmp_path / "g.npz", np.ones(11, bool))
    with np.load(tmp_path / "g.npz") as graph:
        edges, n = graph["edges"].tolist(), int(graph["n"])
    expected = [[i, j] for i in range(11) for j in range(i + 1, 11) if (i < 6) == (j < 6)]
    assert n == 11 and edges == expected


def test_the_graph_of_founders_has_no_newcomer(tmp_path, rng):
    """Newcomers between founders change no byte of it."""
    points = rng.normal(size=(30, 2))
    far = squareform(pdist(points))
    written = []
    for n in (20, 30):
        path = tmp_path / f"{n}.npz"
        build_neighbor_graph(far[:n, :n].__getitem__, 5, path, np.arange(n) < 20)
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_newcomers_are_in_the_blocks_of_most_of_their_neighbours():
    levels = np.array([[1, 1, 2, 2, 3], [1, 1, 1, 1, 2]])
    lengths = np.array(
        [
            [9, 9, 2, 3, 1],  # two of three nearest
            [1, 9, 2, 9, 3],  # each another block: the nearest
            [np.inf, np.inf, np.inf, 1, np.inf],
        ]
    )
    assert place_in_blocks(levels, lengths, 3).tolist() == [[2, 1, 2], [1, 1, 1]]


def test_communities_are_numbered_by_size_and_noise_is_zero():
    labels = np.array([5, 5, -1, 2, 2, 2, 9, 9, -1])
    assert number_by_size(labels).tolist() == [2, 2, 0, 1, 1, 1, 3, 3, 0]


def test_agreement_ignores_missing_labels():
    n = 12
    samples = pd.DataFrame(
        {
            "sample": [f"s{i}" for i in range(n)],
            "cohort": "one",
            "population": ["p"] * 5 + ["q"] * 5 + ["NA"] * 2,
            "height": [str(i) for i in range(n)],
        }
    )
    partition = samples[["sample"]].assign(
        community=[1] * 5 + [2] * 7,
        stability=1.0,
        f_st=0.1,
        between="NA",
        hdbscan=[1] * 4 + [0] + [2] * 7,
    )
    table = agreement(partition, samples).set_index("partition")
    assert set(table.label) == {"population"}
    assert table.ari["community"] == table.ami["community"] == 1
    assert table.samples["community"] == 10 and table.noise["hdbscan"] == 1
    assert table.ari["hdbscan"] < 1


def test_newick_is_laid_out_with_its_branch_lengths(rng):
    points = rng.normal(size=(9, 3))
    names = [f"s{i}" for i in range(8)] + ["it's (9); x"]
    newick = neighbor_joining(squareform(pdist(points)), names)
    children, lengths, leaf = read_newick(newick)
    assert sorted(leaf.values()) == sorted(names)
    found, segments, ends = lay_out_tree(newick)
    assert sorted(found) == sorted(names) and ends.shape == (9, 2)
    drawn = np.sqrt(((segments[:, 1] - segments[:, 0]) ** 2).sum(axis=1))
    assert np.sort(drawn) == pytest.approx(np.sort(np.maximum(lengths[1:], 0)))
    assert len(children) == 2 * 9 - 2


def drift(rng, af, f_st):
    """Frequencies in a population that has drifted from one with frequencies `af`."""
    scale = (1 - f_st) / f_st
    return np.clip(rng.beta(af * scale, (1 - af) * scale), 0.001, 0.999)


def draw_genotypes(rng, group, n_sites=2_500):
    """Groups 0 and 1 at F_ST 0.015, 2 and 3 at 0.2 from them: as far apart as their points are."""
    near = rng.uniform(0.1, 0.9, n_sites)
    af = [drift(rng, near, 0.015), drift(rng, near, 0.015), drift(rng, near, 0.3)]
    af.append(drift(rng, near, 0.3))
    return rng.binomial(2, np.array(af)[group].T).astype(np.int8)


def make_study(folder, rng, sizes=(45, 40, 50), significant=2, components=30):
    """A study of three groups; its points are the same in each run, its genotypes are new.

    One of 735 draws of these points was split into four: by chance two halves of a group had a gap
    of p = 0.0004, and a split needs p < 0.001.
    """
    points, group = clouds(np.random.default_rng(1), sizes)
    names = [f"s{i}" for i in range(len(points))]
    genotypes = draw_genotypes(rng, group)
    pos = [500_000 * (i + 1) for i in range(len(genotypes))]
    write_plink(folder / "genotypes", genotypes, names, pos=pos)
    write_npz(folder / "axes.npz", sites=np.arange(len(genotypes)))
    write_npy(folder / "l.npy", squareform(pdist(points)).astype(np.float32))
    write_npy(folder / "pca.npy", points[:, :components])
    write_json(folder / "axes.json", {"significant": significant})
    cohort = "\n".join(f"{name}\tone" for name in names)
    (folder / "order.tsv").write_text(f"sample\tcohort\n{cohort}\n")
    rows = "\n".join(f"{s}\tone\tp{g}" for s, g in zip(names, group, strict=True))
    (folder / "sheet.tsv").write_text(f"sample\tcohort\tpopulation\n{rows}\n")
    far = squareform(pdist(points))
    build_neighbor_graph(far.__getitem__, 12, folder / "g.npz", np.ones(len(points), bool))
    return group


def run_study(folder, blocks, threads=1, apart=False):
    """Find communities; `apart`: splits in a job of their own."""
    out = PartitionFiles(*(folder / name for name in PartitionFiles._fields))
    files = folder / "pca.npy", folder / "axes.json", [folder / "genotypes"]
    source = SplitSource(*files, folder / "axes.npz", None)
    options = {"draws": 4, "seed": 1}
    common = folder / "l.npy", blocks, folder / "order.tsv"
    views = {"methods": ["blockmodel", "hdbscan", "tree"], "min_cluster_size": 5}
    if apart:
        names = read_table(folder / "order.tsv")["sample"]
        splits, _ = split_study(source, names, **options, threads=threads)
        write_splits(splits, folder / "splits.npz")
        source = folder / "splits.npz"
    about = find_communities(source, *common, **options, **views, out=out, threads=threads)
    compare_labels(
        *(folder / name for name in ("partition", "order.tsv", "sheet.tsv", "agreement"))
    )
    return about, [path.read_bytes() for path in out]


def test_block_model_of_a_study_is_found_and_the_same_twice(tmp_path, rng, graph_tool):
    group = make_study(tmp_path, rng)
    written = []
    for name in ("a.npz", "b.npz"):
        assert fit_model(tmp_path / "g.npz", tmp_path / name) == ""
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1], "the block model drifts between equal runs"
    about, first = run_study(tmp_path, tmp_path / "a.npz")
    assert run_study(tmp_path, tmp_path / "b.npz")[1] == first
    table = load_partition(tmp_path / "partition")
    assert (table.fine == number_by_size(group)).all()
    assert about["communities"] == 2 and about["structure"] == "discrete"
    assert (table.stability == 1).all()
    (coarse,), (split,), finer = set(table.f_st), about["splits"], about["within"][0]["splits"]
    assert split["f_st"] == coarse == pytest.approx(0.16, abs=0.05)
    assert [split["f_st"] for split in finer] == [pytest.approx(0.015, abs=0.005)]
    model = about["block_model"]
    assert model["blocks"][-1] == 1 and model["draws"] == 5
    assert sum(model["description_length_by_level"]) == pytest.approx(
        model["description_length"], rel=1e-5
    )
    scores = read_table(tmp_path / "agreement").set_index(["label", "partition"])
    assert float(scores.ari["population", "fine"]) == 1


def test_the_same_graph_is_not_fitted_again(tmp_path, rng, graph_tool, monkeypatch):
    """Nor one whose kept blocks are damaged trusted."""
    folder = tmp_path / "results"
    folder.mkdir()
    make_study(folder, rng)
    options = {"python": SYSTEM_PYTHON, "seed": 1, "draws": 2, "code": "1"}
    fits = []
    fit = block_model._fit
    monkeypatch.setattr(block_model, "_fit", lambda *a: fits.append(a) or fit(*a))

    def run(**changed):
        (folder / "b.npz").unlink(missing_ok=True)
        fits.clear()
        assert fit_blocks(folder / "g.npz", folder / "b.npz", **options | changed) == ""
        return len(fits), (folder / "b.npz").read_bytes()

    first = run()
    assert first[0] == 1 and run() == (0, first[1])
    assert run(code="2")[0] == 1 and run(seed=2)[0] == 1 and run(seed=2)[0] == 0
    kept = folder / block_model.KEPT
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert run(seed=2)[0] == 1
    kept.with_suffix(".key").write_bytes(b"\xff damaged")
    assert run(seed=2)[0] == 1
    make_study(folder, rng, sizes=(40, 40, 50))
    assert run(seed=2)[0] == 1


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """An interpreter without packages, like `/usr/bin/python3` of a bare machine."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.mark.parametrize("hidden", ["graph-tool", "numpy", "interpreter", "a Python at all"])
def test_without_graph_tool_the_log_says_so(tmp_path, rng, hidden, bare_python):
    python = {
        "graph-tool": sys.executable,
        "numpy": bare_python,
        "interpreter": tmp_path / "none",
        "a Python at all": "/bin/true",
    }[hidden]
    group = make_study(tmp_path, rng)
    said = fit_model(tmp_path / "g.npz", tmp_path / "b.npz", python=python)
    assert "\n" not in said and "python3-graph-tool" in said and str(python) in said
    about, _ = run_study(tmp_path, tmp_path / "b.npz")
    assert about["missing"] == said
    table = load_partition(tmp_path / "partition")
    assert (table.hdbscan == number_by_size(group)).all() and "level0" not in table
    figures = tmp_path / "figures"
    figures.mkdir()
    with checked():
        names = draw_communities(
            tmp_path / "l.npy",
            tmp_path / "partition",
            tmp_path / "order.tsv",
            tmp_path / "sheet.tsv",
            figures,
            color_by="population",
            tree=tmp_path / "tree",
            title="test",
        )
    assert names == ["communities", "communities_heatmap", "communities_tree"]
    (tmp_path / "communities").mkdir()
    (tmp_path / "about").rename(tmp_path / "communities/communities.json")
    (tmp_path / "agreement").rename(tmp_path / "communities/agreement.tsv")
    section = community_section(tmp_path, figures, ["blockmodel", "tree"])
    assert section["missing"] == about["missing"] and len(section["figures"]) == 3
    assert "2 communities" in section["words"] and "3 finer communities" in section["words"]
    assert [row["f_st"] for row in section["splits"]] == sorted(
        (f"{one['f_st']:.4f}" for one in [*about["splits"], *about["within"][0]["splits"]]),
        reverse=True,
    )
    assert section["splits"][0]["halves"] in ("85 + 50", "50 + 85")
    assert community_section(tmp_path, figures, []) is None


def test_the_sentence_on_bridges_counts_the_table(tmp_path, rng):
    """Six samples half way between two groups, and three that lie elsewhere."""
    make_study(tmp_path, rng)
    scores = np.load(tmp_path / "pca.npy")
    scores[:6, 1], scores[6:9, 0] = 30, 45
    write_npy(tmp_path / "pca.npy", scores)
    about, _ = run_study(tmp_path, None)
    table = load_partition(tmp_path / "partition")
    assert (table.between[:6] == "1-2").all() and (table.between[6:] == "NA").all()
    counts = table.between[table.between != "NA"].value_counts()
    words = ", ".join(f"{n} between {k.replace('-', ' and ')}" for k, n in counts.items())
    assert (
        f" {counts.sum()} samples lie between communities, as mixed ancestry would ({words})"
        in describe_structure(about)
    )


@pytest.mark.parametrize(("forked", "alone"), [(0, 10**6), (0, 0), (10**6, 10**6)])
def test_processes_and_jobs_change_no_byte(tmp_path, rng, monkeypatch, forked, alone):
    monkeypatch.setattr("popdesic.communities.study_splits.FORKED", forked)
    monkeypatch.setattr("popdesic.communities.study_splits.ALONE", alone)
    make_study(tmp_path, rng)
    about, written = run_study(tmp_path, None)
    assert about["communities"] > 1 and about["within"] and about["hdbscan"]
    assert all(written)
    for threads, apart in ((3, False), (1, True), (4, True)):
        assert run_study(tmp_path, None, threads, apart) == (about, written)


def test_hdbscan_is_left_out_of_large_studies(tmp_path, monkeypatch, rng):
    monkeypatch.setattr("popdesic.communities.geodesics.HDBSCAN_SAMPLES", 10)
    assert density_clusters(np.zeros((11, 11)), 3) is None
    make_study(tmp_path, rng)
    about, _ = run_study(tmp_path, None)
    table = load_partition(tmp_path / "partition")
    assert "hdbscan" not in table and about["hdbscan"] is None
    assert "HDBSCAN is left out: it needs the matrix of all pairs" in describe_structure(about)
    assert about["communities"] == 2


def test_without_significant_components_there_is_one_community(tmp_path, rng):
    make_study(tmp_path, rng, significant=0)
    about, _ = run_study(tmp_path, None)
    table = load_partition(tmp_path / "partition")
    assert about["structure"] == "one"
    assert (table.community == 1).all() and (table.stability == 1).all()
    assert table.f_st.isna().all()


@pytest.mark.parametrize(
    ("significant", "components", "words"),
    [(1, 30, "the 1 significant principal component."), (2, 1, "the first 1 of 2 significant")],
)
def test_the_significant_components_that_there_are_define_communities(
    tmp_path, rng, significant, components, words
):
    """On the first axis two of the three groups lie together."""
    group = make_study(tmp_path, rng, significant=significant, components=components)
    about, _ = run_study(tmp_path, None)
    assert (load_partition(tmp_path / "partition").community == number_by_size(group == 1)).all()
    assert (about["significant"], about["components"]) == (significant, 1)
    assert words in describe_structure(about)


def test_at_most_twenty_components_define_communities(tmp_path, rng):
    group = make_study(tmp_path, rng, significant=25)
    scores = np.load(tmp_path / "pca.npy")
    scores[:, 22] += 100 * (group == 0)  # what families do to late components
    write_npy(tmp_path / "pca.npy", scores[:, [*range(2, 30), 0, 1]])
    about, _ = run_study(tmp_path, None)
    assert about["communities"] == 1  # the groups differ on components 21, 29 and 30
    assert (about["significant"], about["components"]) == (25, 20)
    assert "no gap between groups on the first 20" in describe_structure(about)


def test_a_continuum_is_called_one(tmp_path, rng):
    make_study(tmp_path, rng, significant=2, components=1)
    line = np.linspace(0, 1, 135)[:, None]
    write_npy(tmp_path / "pca.npy", line)
    about, _ = run_study(tmp_path, None)
    assert about["structure"] == "continuous" and about["communities"] == 1
    text = describe_structure(about)
    assert "no gap between groups on the first 1, and all are shown as one community" in text
    assert about["cline"]["passed"] and "They spread as along a gradient" in text
    line = np.where(np.arange(135)[:, None] % 20, rng.normal(0, 0.01, (135, 1)), line)
    write_npy(tmp_path / "pca.npy", line)  # a few samples far from the others
    about, _ = run_study(tmp_path, None)
    assert about["structure"] == "continuous" and not about["cline"]["passed"]
    assert "They do not spread as along a gradient" in describe_structure(about)


def test_a_crash_of_graph_tool_is_not_reported_as_missing(tmp_path, graph_tool):
    (tmp_path / "g.npz").write_bytes(b"no graph")
    with pytest.raises(RuntimeError, match="stopped with 1"):
        fit_model(tmp_path / "g.npz", tmp_path / "b.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["g.npz"]
