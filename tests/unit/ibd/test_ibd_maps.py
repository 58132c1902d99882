"""Maps of who shares segments with whom: lengths, unconnected people, and what a map tells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scenes.ibd_populations import draw_populations, separated
from scenes.ibd_scores import call_people
from scipy.sparse.csgraph import shortest_path

import popdesic
from popdesic.core.tables import write_table
from popdesic.distance.matrix import shared_distances
from popdesic.engine.select import cpu_backend
from popdesic.geodesic.graph import SHARED, chosen_graph
from popdesic.geodesic.lengths import APART, set_apart
from popdesic.geodesic.measure import close_weights
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.degrees import DegreeScale
from popdesic.ibd.graph import build_graph
from popdesic.maps.umap_maps import draw_matrix

LEAST_CM, LENGTHS = 5.0, (130.0,) * 5


def write_graph(folder, pairs: dict[tuple[int, int], float], n: int, genome_cm: float):
    """Graph of pairs with these total lengths of one shared allele."""
    ends = np.array(list(pairs), np.int64).reshape(-1, 2)
    total = np.array(list(pairs.values()), np.float64)
    kinship = DegreeScale(np.array([genome_cm]), LEAST_CM).kinship(total, 0.0)
    names = np.array([f"p{k}" for k in range(n)])
    columns = {"sample1": names[ends[:, 0]], "sample2": names[ends[:, 1]]}
    write_table(folder / "pairs.tsv", pd.DataFrame(columns).assign(total_cM=total, kinship=kinship))
    write_table(folder / "samples.tsv", pd.DataFrame({"sample": names}))
    build_graph(folder / "pairs.tsv", folder / "samples.tsv", LEAST_CM, folder / "graph.npz")
    return folder / "graph.npz"


def close(distances: np.ndarray, alpha: float) -> np.ndarray:
    """Lengths of paths under edges d**alpha; infinite where there is none."""
    n = len(distances)
    found = close_weights(
        *(distances, np.ones(n, bool), [f"p{k}" for k in range(n)], cpu_backend(1)),
        **{"alpha": alpha, "number": "auto", "graph": SHARED},
    )
    return found.number.value(found.lengths)


def test_lengths_of_edges_are_degrees(tmp_path):
    graph = write_graph(tmp_path, {(0, 1): 1000, (3, 1): 500, (0, 3): 31.25}, 5, 1000)
    distances = shared_distances(graph)
    expected = np.full((5, 5), np.inf)
    np.fill_diagonal(expected, 0)
    for i, j, degree in ((0, 1, 1), (1, 3, 2), (0, 3, 6)):
        expected[i, j] = expected[j, i] = degree
    np.testing.assert_allclose(distances, expected, rtol=1e-5)
    # Who is nearer through a relative than by what the two share.
    assert close(distances, 1.0)[0, 3] == pytest.approx(3, rel=1e-5)


def test_paths_are_those_of_dijkstra_and_nobody_has_to_be_connected():
    rng = np.random.default_rng(3)
    n = 70
    distances = rng.uniform(1, 9, (n, n))
    distances[rng.random((n, n)) < 0.97] = np.inf
    distances = np.minimum(distances, distances.T)
    distances[5], distances[:, 5] = np.inf, np.inf
    np.fill_diagonal(distances, 0)
    for alpha in (1.0, 2.0):
        weights = np.where(np.isfinite(distances), distances**alpha, 0)
        expected = shortest_path(weights, directed=False)
        assert np.isinf(expected[5, 6]) and np.isinf(expected).sum() > 2 * n
        np.testing.assert_allclose(close(distances, alpha), expected, rtol=1e-6)
    nobody = np.where(np.eye(4) > 0, 0.0, np.inf)
    assert np.array_equal(close(nobody, 2.0), nobody)


def test_unconnected_pairs_are_far_and_not_equally_far():
    distances = np.full((40, 40), np.inf)
    np.fill_diagonal(distances, 0)
    distances[0, 1] = distances[1, 0] = 4
    filled, apart = set_apart(distances)
    assert apart == APART * 4 and np.array_equal(filled, filled.T) and filled[0, 1] == 4
    far = filled[np.triu(np.isinf(distances), 1)]
    assert far.min() >= apart and far.max() < (APART + 1) * 4 and len(np.unique(far)) == len(far)
    # The same pairs of a study with more samples are as far apart.
    assert np.array_equal(set_apart(distances[:20, :20])[0], filled[:20, :20])
    # No sample is a neighbour of many: with ties the first ones would be.
    nearest = np.argsort(filled + 99 * np.eye(40), axis=1)[:, :5]
    assert np.bincount(nearest.ravel(), minlength=40).max() < 15
    assert set_apart(filled)[0] is filled


@pytest.mark.parametrize("alpha, value", [("auto", 1.0), ("2", 2.0)])
def test_the_graph_is_that_of_segments_whatever_is_asked(alpha, value):
    wanted = {"kind": "knn", "neighbors": 15, "density": "correct"}
    assert chosen_graph(wanted, alpha, None, "ibd") == (value, SHARED)


def same_side(distances: np.ndarray, truth: np.ndarray, k: int = 10) -> float:
    """Share of the k nearest others who are of one's own population."""
    far = distances + np.where(np.eye(len(distances)) > 0, np.inf, 0)
    return float((truth[np.argsort(far, axis=1)[:, :k]] == truth[:, None]).mean())


@pytest.mark.parametrize("populations", [2, 1])
def test_a_map_shows_recent_populations_and_nothing_where_there_is_one(populations, tmp_path):
    n = 120
    people, truth = draw_populations(
        separated(populations, 30, 20_000, 20_000),
        *(n // populations,),
        **{"seed": 11, "lengths": LENGTHS, "sites_per_cm": 30, "pool_cm": 5.0},
    )
    truth = truth if populations > 1 else np.arange(n) % 2
    calls = call_people(people, SegmentLimits(min_cm=LEAST_CM), 1)
    totals = {pair: sum(c[2] - c[1] for c in own) for pair, own in calls.items()}
    distances = shared_distances(write_graph(tmp_path, totals, n, sum(LENGTHS)))
    lengths, _ = set_apart(close(distances, 1.0))
    scores = popdesic.pca(people.genotypes, n_components=2).scores
    start = np.ascontiguousarray(scores[:, :2])
    points = draw_matrix(lengths.__getitem__, n, start, [(1, 15)], min_dist=0.3)[0]
    found = same_side(np.linalg.norm(points[:, None] - points, axis=2), truth)
    by_scores = same_side(np.linalg.norm(scores[:, None] - scores, axis=2), truth)
    print(f"\nof one's own population: map {found:.2f}, components {by_scores:.2f}")
    assert by_scores < 0.6
    assert found > 0.85 if populations > 1 else found < 0.6
