"""Quality of maps equals scikit-learn and a slow count."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_score
from support.one_map import measure_map
from support.outcomes import make_results

from popdesic.core.tables import read_table, write_npy
from popdesic.maps import agreement
from popdesic.maps.agreement import (
    ERROR,
    RECALL_AT,
    TRUST_AT,
    compare_each,
    measure_agreement,
    standard_error,
)
from popdesic.maps.quality import choose_anchors, measure_maps, measure_silhouette

KEYS = (
    "trustworthiness",
    "continuity",
    *(f"recall_{k}" for k in RECALL_AT),
    "rank_correlation",
)


def distances_of(points):
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("n", [52, 97])
def test_measures_equal_scikit_learn_and_a_slow_count(rng, n):
    high, drawn = rng.normal(size=(n, 6)), rng.normal(size=(n, 2))
    drawn[:, 0] += 2 * high[:, 0]
    far, near = distances_of(high), distances_of(drawn)
    found = measure_map(drawn, far.__getitem__, np.arange(n))
    expected = trustworthiness(far, drawn, n_neighbors=TRUST_AT, metric="precomputed")
    assert found["trustworthiness"] == pytest.approx(expected, abs=1e-12)
    expected = trustworthiness(near, high, n_neighbors=TRUST_AT, metric="precomputed")
    assert found["continuity"] == pytest.approx(expected, abs=1e-12)
    for k in RECALL_AT:
        shared = 0
        for i in range(n):
            others = [j for j in range(n) if j != i]
            a = sorted(others, key=lambda j: far[i, j])[:k]
            b = sorted(others, key=lambda j: near[i, j])[:k]
            shared += len(set(a) & set(b))
        assert found[f"recall_{k}"] == pytest.approx(shared / (n * k))
    rows = [spearmanr(np.delete(far[i], i), np.delete(near[i], i)).statistic for i in range(n)]
    assert found["rank_correlation"] == pytest.approx(np.mean(rows))


def slow_measures(points, distances, anchors):
    """Ranks of one anchor after the other, ties in sample order or sharing their mean rank."""
    n = len(points)
    recalled, intruders, lost, correlations = dict.fromkeys(RECALL_AT, 0), 0, 0, []
    for anchor in anchors:
        others = np.delete(np.arange(n), anchor)
        far = distances[anchor][others]
        drawn = np.sqrt(((points[others] - points[anchor]) ** 2).sum(axis=1))
        far_order, drawn_order = (np.argsort(v, kind="stable") for v in (far, drawn))
        far_rank, drawn_rank = (np.argsort(o, kind="stable") + 1 for o in (far_order, drawn_order))
        for k in RECALL_AT:
            recalled[k] += len(set(far_order[:k]) & set(drawn_order[:k]))
        intruders += np.maximum(far_rank[drawn_order[:TRUST_AT]] - TRUST_AT, 0).sum()
        lost += np.maximum(drawn_rank[far_order[:TRUST_AT]] - TRUST_AT, 0).sum()
        correlations.append(np.corrcoef(rankdata(far), rankdata(drawn))[0, 1])
    scale = len(anchors) * TRUST_AT * (2 * n - 3 * TRUST_AT - 1) / 2
    found = [1 - intruders / scale, 1 - lost / scale]
    found += [recalled[k] / (k * len(anchors)) for k in RECALL_AT]
    return [*found, np.mean(correlations)]


@pytest.mark.parametrize("tied", ["none", "few", "many", "twins", "infinite"])
def test_ties_and_several_maps_equal_a_slow_count(rng, monkeypatch, tied):
    high, points = rng.normal(size=(80, 4)), rng.normal(size=(80, 2))
    if tied == "few":
        points[40:44] = points[3]
    elif tied == "many":
        high, points = np.round(high), np.round(2 * points)
    elif tied == "twins":
        high[:30], points[20:60] = high[0], points[20]
    distances = distances_of(high)
    if tied == "infinite":
        distances[:, 70:] = distances[70:] = np.inf
        np.fill_diagonal(distances, 0)
    maps = {"a": points, "b": high[:, :2], "c": points[:, :1] * [1, 0]}
    references = {"plain": distances.__getitem__, "square": (distances**2).__getitem__}
    compared = {"a": ["plain", "square"], "b": ["square"], "c": ["plain"]}
    anchors = np.arange(1, 70, 3)
    found = []
    for numbers, threads in ((1, 1), (400, 3), (100_000, 1)):
        monkeypatch.setattr(agreement, "BLOCK_NUMBERS", numbers)
        found.append(measure_agreement(maps, references, compared, anchors, threads))
    assert found[0] == found[1] == found[2]
    # samples that are too many to sort, all others drawn
    monkeypatch.setattr(agreement, "MOST_RANKED", 70)
    for numbers, threads in ((1, 1), (400, 3)):
        monkeypatch.setattr(agreement, "BLOCK_NUMBERS", numbers)
        assert measure_agreement(maps, references, compared, anchors, threads) == found[0]
    assert set(found[0]) == {("a", "plain"), ("a", "square"), ("b", "square"), ("c", "plain")}
    for (name, _), measured in found[0].items():
        expected = slow_measures(maps[name], distances, anchors)
        means = [value for key, value in measured.items() if not key.endswith(ERROR)]
        np.testing.assert_allclose(means, expected, rtol=1e-12)


def test_correlations_with_some_others_are_near_those_with_all(rng, monkeypatch):
    high = rng.normal(size=(500, 4))
    maps = {0: high[:, :2] + 0.1 * rng.normal(size=(500, 2))}
    references = {0: distances_of(high).__getitem__}
    anchors = np.arange(0, 500, 2)
    exact = compare_each(maps, references, {0: [0]}, anchors)[0, 0]
    monkeypatch.setattr(agreement, "MOST_RANKED", 499)
    monkeypatch.setattr(agreement, "DRAWN_OTHERS", 60)
    some = compare_each(maps, references, {0: [0]}, anchors)[0, 0]
    for name in ("intruders", "lost", "recalled"):
        np.testing.assert_array_equal(getattr(some, name), getattr(exact, name))
    off = some.correlations - exact.correlations
    assert off.any() and abs(off.mean()) < 4.5 * off.std() / np.sqrt(len(off)) + 0.01
    found, wide = exact.summary(500), some.summary(500)
    assert wide[f"rank_correlation{ERROR}"] > found[f"rank_correlation{ERROR}"]
    assert len(set(agreement._others_of(7, 500).tolist())) == 61


def test_a_perfect_map_scores_one(rng):
    points = rng.normal(size=(60, 2))
    found = measure_map(points, distances_of(points).__getitem__, np.arange(60))
    assert {value for key, value in found.items() if key.endswith(ERROR)} == {0}
    means = [value for key, value in found.items() if not key.endswith(ERROR)]
    assert means == pytest.approx([1.0] * len(means))


def test_small_and_constant_maps_give_no_number():
    found = measure_map(np.zeros((6, 2)), np.zeros((6, 6)).__getitem__, np.arange(6))
    assert np.isnan([found[k] for k in ("trustworthiness", "continuity", "recall_5")]).all()
    assert np.isnan(found["rank_correlation"])


def test_silhouette_leaves_unknown_labels_out(rng):
    points = rng.normal(size=(30, 2))
    labels = pd.Series(["a", "b", "NA"] * 10)
    known = (labels != "NA").to_numpy()
    expected = silhouette_score(points[known], labels[known])
    assert measure_silhouette(points, labels) == (pytest.approx(expected), 0)
    assert np.isnan(measure_silhouette(points, pd.Series(["a"] * 30))).all()
    assert np.isnan(measure_silhouette(points, pd.Series(["NA"] * 30))).all()


def test_silhouette_of_singletons_and_of_one_place(rng, monkeypatch):
    points = np.concatenate([rng.normal(size=(60, 2)), np.zeros((6, 2)), np.ones((1, 2))])
    labels = pd.Series([f"group{k % 4}" for k in range(60)] + ["zero"] * 6 + ["single"])
    expected = silhouette_score(points, labels)
    for numbers, threads in ((1, 1), (700, 3), (100_000, 1)):
        monkeypatch.setattr("popdesic.maps.quality.SILHOUETTE_NUMBERS", numbers)
        found, error = measure_silhouette(points, labels, threads)
        assert found == pytest.approx(expected, abs=1e-12) and error == 0
    assert measure_silhouette(np.zeros((4, 2)), pd.Series(["a", "b"] * 2)) == (0, 0)


def test_anchors_are_all_or_a_random_sample():
    assert choose_anchors(7).tolist() == list(range(7))
    assert len(choose_anchors(2_000)) == 2_000
    many = choose_anchors(30_000)
    assert len(np.unique(many)) == 1_000 and (np.diff(many) > 0).all() and many.max() < 30_000
    np.testing.assert_array_equal(many, choose_anchors(30_000))
    assert (many != choose_anchors(30_000, seed=2)).any()
    # no stretch of the order is left out
    assert np.histogram(many, 10, (0, 30_000))[0].min() > 60


def test_standard_error_is_that_of_all_samples_that_can_be_drawn(rng):
    values = rng.gamma(0.5, size=6)
    for m in (2, 3, 5):
        drawn = [values[list(which)] for which in combinations(range(6), m)]
        means = [some.mean() for some in drawn]
        squares = [standard_error(some, 6) ** 2 for some in drawn]
        assert np.mean(squares) == pytest.approx(np.var(means))
    assert standard_error(values, 6) == 0
    assert np.isnan(standard_error(values[:1], 6))
    assert np.isnan(standard_error(np.array([1, np.nan, 2]), 6))
    assert np.isnan(standard_error(np.array([1, np.nan, 2]), 3))


def test_intervals_of_samples_cover_the_value_of_everyone(rng):
    """95 % intervals, of 400 samples of 150 of 900."""
    n, m, draws = 900, 150, 400
    centres = rng.normal(size=(6, 8)) * 3
    high = centres[rng.integers(0, 6, n)] + rng.normal(size=(n, 8))
    points = high[:, :2] + rng.normal(size=(n, 2)) * 0.3
    each = compare_each({0: points}, {0: distances_of(high).__getitem__}, {0: [0]}, np.arange(n))
    everyone = each[0, 0].summary(n)
    samples = [each[0, 0].of(rng.choice(n, m, replace=False)).summary(n) for _ in range(draws)]
    for key in KEYS:
        assert everyone[key + ERROR] == 0
        off = np.array([some[key] - everyone[key] for some in samples])
        errors = np.array([some[key + ERROR] for some in samples])
        # means of few skewed values cover less; seen over 25 seeds: 0.888 to 0.968
        assert 0.85 < (np.abs(off) < 1.96 * errors).mean() < 0.99, key
        assert np.abs(off.mean()) < 4 * off.std() / np.sqrt(draws), key


def test_sampled_agreement_and_silhouette_are_near_those_of_everyone(rng, monkeypatch):
    n = 700
    codes = rng.integers(0, 3, n)
    points = rng.normal(size=(n, 2)) + codes[:, None]
    labels = pd.Series([f"group{code}" for code in codes])
    exact, none = measure_silhouette(points, labels)
    monkeypatch.setattr("popdesic.maps.quality.MAX_ANCHORS", 300)
    monkeypatch.setattr("popdesic.maps.quality.DRAWN", 300)
    found, error = measure_silhouette(points, labels)
    assert none == 0 and 0 < error < 0.03 and abs(found - exact) < 4.5 * error
    assert found != exact


def test_table_of_a_study(tmp_path, rng):
    names = [f"s{i}" for i in range(40)]
    outcome, distances = make_results(
        tmp_path, {"one": names}, ["one"], {"population": ["p", "q"] * 20}
    )
    lengths = {}
    for space, alpha in outcome.maps():
        lengths[space, alpha] = tmp_path / f"{space}{alpha}.npy"
        write_npy(lengths[space, alpha], distances_of(rng.normal(size=(40, 3))))
    written = []
    for out in (tmp_path / "a.tsv", tmp_path / "b.tsv"):
        measure_maps(
            outcome.folder / "embedding/coordinates",
            distances,
            lengths,
            outcome.folder / "distance/samples.tsv",
            tmp_path / "samples.tsv",
            label="population",
            out=out,
        )
        written.append(out.read_bytes())
    assert written[0] == written[1]
    table = read_table(tmp_path / "a.tsv")
    assert len(table) == 1 + len(outcome.spaces) + 2 * 2 * len(lengths)
    assert list(table["map"][:2]) == ["pca", "umap.distance"]
    assert set(table.against) == {"distance", "geodesic"}
    assert not (table.trustworthiness == "NA").any()
