"""Each map of a study is that of its own space and alpha, whichever job draws it."""

from __future__ import annotations

import numpy as np
import pytest
from support.running import finished, snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.cohort.samples import describe_samples
from popdesic.components.tables import write_embedding
from popdesic.core.files import read_json
from popdesic.distance.matrix import Distances, leading_scores, rows_of_points
from popdesic.maps.umap_maps import draw_lengths

SPACES, ALPHAS = ("genotypes", "pcs"), ("1.5", "3")
EMBEDDING = "results/embedding"
#: Jobs that make UMAPs and perhaps other maps.
NAMES = {"compute_maps", "compute_umap", "compute_pcoa"}


@pytest.mark.parametrize(
    ("sizes", "dense_limit", "jobs"),
    [
        ((40, 30), 1000, {"compute_maps": 1}),
        pytest.param((40, 30), 50, {"compute_maps": 1}, marks=pytest.mark.slow),
        pytest.param((1500, 501), 3000, {"compute_umap": 2}, marks=pytest.mark.slow),
    ],
)
def test_maps_are_those_of_their_files(tmp_path, sizes, dense_limit, jobs):
    config = FAST | {
        "distance": {"dense_limit": dense_limit},
        "geodesic": {
            "alpha": [float(alpha) for alpha in ALPHAS],
            "space": list(SPACES),
            "pcs": 5,
            "graph": "knn",
        },
    }
    folder = write_study(tmp_path / "study", make_cohorts(sizes, n_sites=200), config)
    plain = [f"{EMBEDDING}/coordinates/umap.distance.{space}.tsv" for space in SPACES]
    tables = {
        (s, a): f"{EMBEDDING}/coordinates/umap.{s}.alpha{a}.tsv" for s in SPACES for a in ALPHAS
    }
    ran = finished(snakemake(folder, *plain, *tables.values()))
    assert {rule: count for rule, count in ran.items() if rule in NAMES} == jobs
    plan = snakemake(folder, "-n", "results/communities/partition.tsv")
    assert ("split_samples" in plan) == (sum(sizes) > 2000)

    sparse = sum(sizes) > dense_limit
    order = folder / "results/distance/samples.tsv"
    samples = describe_samples(order, folder / "config/samples.tsv")
    scores = folder / EMBEDDING / "pca.npy"
    start, n = np.load(scores)[:, :2], len(samples)
    expected = tmp_path / "expected.tsv"

    def is_drawn_from(source, table: str) -> bool:
        points = draw_lengths(source, n, start, [(1, 15)], min_dist=0.3)[0]
        write_embedding(expected, samples, points, "UMAP")
        return expected.read_bytes() == (folder / table).read_bytes()

    for (space, alpha), table in tables.items():
        name = f"neighbors.alpha{alpha}.npz" if sparse else f"alpha{alpha}.json"
        assert is_drawn_from(folder / "results/geodesic" / space / name, table), table
    sites = read_json(folder / "results/panel/counts.json")["n_sites"]
    sources = [
        Distances(order.parent, "euclidean", sites, 100).rows,
        rows_of_points(leading_scores(scores, 5)),
    ]
    if sparse:
        sources = [order.parent / "neighbors.npz", folder / EMBEDDING / "neighbors.npz"]
    for source, table in zip(sources, plain, strict=True):
        assert is_drawn_from(source, table), table
    assert len({(folder / table).read_bytes() for table in tables.values()}) == len(tables)
