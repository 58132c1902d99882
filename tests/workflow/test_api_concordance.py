"""The public functions for arrays give the numbers in the workflow's files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from support.running import snakemake
from support.study import make_cohorts, write_study

import popdesic
from popdesic.cohort.panel import load_panel
from popdesic.core.tables import read_table
from popdesic.core.triangle import open_symmetric
from popdesic.geodesic.lengths import open_lengths
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.genotypes import unpack_bed

CONFIG = {
    "device": "cpu",
    "distance": {"metric": "normalized"},
    "geodesic": {"alpha": [2], "space": ["genotypes"]},
    "close_kinship": 0,
    "embedding": {"components": 5, "ld_prune": []},
    "epistasis": {
        "order": [2],
        "permutations": 0,
        "top": 40,
        "max_r2": 0.5,
        "min_distance_bp": 0,
    },
}
TARGETS = (
    "distance",
    "geodesic",
    "results/embedding/coordinates/pca.tsv",
    "results/compare/kinship.tsv",
)
TARGETS = (*TARGETS, "results/compare/pc_relate.tsv")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    cohorts = make_cohorts((16, 14, 12), n_sites=300, missing=0.03)
    cohorts[1].genotypes[:, 3] = cohorts[0].genotypes[:, 2]  # one person in two cohorts
    folder = write_study(tmp_path_factory.mktemp("study"), cohorts, CONFIG)
    snakemake(folder, *TARGETS, "results/epistasis/pairs.tsv")
    return folder / "results"


@pytest.fixture(scope="module")
def samples(results) -> pd.DataFrame:
    return read_table(results / "distance/samples.tsv")


@pytest.fixture(scope="module")
def genotypes(results, samples) -> np.ndarray:
    """All cohorts on the panel, (n_samples, n_sites), in the order of the results."""
    parts = []
    for cohort in samples.cohort.unique():
        prefix = results / f"cohorts/{cohort}/genotypes"
        parts.append(unpack_bed(np.ascontiguousarray(open_bed(prefix)), len(read_fam(prefix))))
    return np.ascontiguousarray(np.concatenate(parts, axis=1).T)


@pytest.fixture(scope="module")
def distances(genotypes) -> np.ndarray:
    return popdesic.pairwise_distance(genotypes, metric="normalized", device="cpu")


def test_distances_and_closure(results, samples, genotypes, distances):
    called = open_symmetric(results / "distance/called.npy")[:]
    assert (called == (genotypes >= 0).astype(int) @ (genotypes >= 0).T).all()
    founders = len(samples) - 12
    first = popdesic.shortest_paths(distances[:founders, :founders], 2, device="cpu")
    closure = popdesic.insert(first, distances[founders:], device="cpu")
    assert closure.continued
    written = open_lengths(results / "geodesic/genotypes/alpha2.json")[:]
    assert written.dtype == np.float32
    assert (closure.distances.astype(np.float32) == written).all()
    about = json.loads((results / "geodesic/genotypes/alpha2.json").read_text())
    assert closure.number == about["number"]["dtype"]
    assert closure.indirect_share == about["indirect_share"]


@pytest.mark.parametrize("graph", ["complete", "knn"])
def test_closure_corrected_for_density(results, samples, distances, graph):
    path = results.parent / "config/config.yaml"
    before = path.read_text()
    options = {"graph": graph, "density": "correct"}
    block = CONFIG["geodesic"] | options | {"explain": True, "alpha": [3]}
    options["neighbors"] = 6
    try:
        path.write_text(
            yaml.safe_dump(yaml.safe_load(before) | {"geodesic": block, "neighbors": 6})
        )
        snakemake(results.parent, "geodesic")
    finally:
        path.write_text(before)
    founders = len(samples) - 12
    first = popdesic.shortest_paths(distances[:founders, :founders], 3, device="cpu", **options)
    closure = popdesic.insert(first, distances[founders:], device="cpu")
    written = open_lengths(results / "geodesic/genotypes/alpha3.json")[:]
    assert (closure.lengths.astype(np.float32) == written).all()
    about = json.loads((results / "geodesic/genotypes/alpha3.json").read_text())
    assert about["graph"] == {"kind": graph, "neighbors": 6, "density": "correct"}
    parents = np.load(results / "geodesic/genotypes/parents.alpha3.npy")
    direct = parents == np.arange(len(samples))[:, None]
    assert (~direct).sum() == 2 * about["indirect_pairs"]


def test_components(results, samples, genotypes):
    written = np.load(results / "embedding/pca.npy")
    found = popdesic.pca(
        genotypes,
        n_components=written.shape[1],
        founders=samples.cohort.ne("west").to_numpy(),
    )
    # the workflow sums cohort by cohort, so in another order
    np.testing.assert_allclose(found.scores, written, atol=1e-12)


def test_kinship(results, samples, genotypes):
    found = popdesic.kinship(genotypes, device="cpu")
    row = {name: k for k, name in enumerate(samples["sample"])}
    table = read_table(results / "compare/kinship.tsv")
    assert len(table)
    for a, b, written in zip(table.sample_a, table.sample_b, table.kinship, strict=True):
        assert found[row[a], row[b]] == pytest.approx(float(written), rel=1e-5, abs=1e-9)


def test_pc_relate(results, samples, genotypes):
    about = json.loads((results / "compare/pc_relate.json").read_text())
    found = popdesic.kinship(
        genotypes,
        method="pc-relate",
        scores=np.load(results / "embedding/pca.npy")[:, : about["components"]],
        founders=samples.cohort.ne("west").to_numpy(),
    )
    row = {name: k for k, name in enumerate(samples["sample"])}
    table = read_table(results / "compare/pc_relate.tsv")
    assert len(table)
    for a, b, written in zip(table.sample_a, table.sample_b, table.kinship, strict=True):
        # the workflow sums in blocks of one cohort, in single precision
        assert found[row[a], row[b]] == pytest.approx(float(written), rel=1e-5, abs=2e-6)


def test_scan(results, samples, genotypes):
    sheet = read_table(results.parent / "config/samples.tsv").set_index("sample")
    phenotype = sheet.phenotype.loc[samples["sample"]].astype(int).to_numpy()
    found = popdesic.scan(genotypes, phenotype, top=40, max_r2=0.5, device="cpu")
    written = pd.read_csv(results / "epistasis/pairs.tsv", sep="\t")
    sites = load_panel(results / "panel/sites.tsv")[0].id.to_numpy()
    # The workflow's p-values and main effects have strata and components in their model, and it
    # knows which sites are near each other: the tests, and so the order, are others.
    apart = ("site", "p_", "rank", "tests")
    shared = [name for name in found.columns if not name.startswith(apart)]
    assert set(shared) <= set(written.columns) and len(shared) == 11
    for k in (1, 2):
        found[f"id{k}"] = sites[found[f"site{k}"]]
    ids = ["id1", "id2"]
    both = found[ids].merge(written[ids])
    assert len(both) >= 30
    found, written = (both.merge(table, on=ids) for table in (found, written))
    for name in shared:
        if found[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], written[name].astype(float), rtol=1e-5)
        else:
            assert (found[name].astype(str) == written[name].astype(str)).all()
