"""Scenes hold what they promise: differentiation, distances, inversion, walls, and nothing else."""

import numpy as np
import pytest
from scipy.linalg import eigvalsh

import popdesic
from scenes.landscapes import SCENES, Scene, scene
from scenes.landscapes.scores import hudson_f_st, rank_correlation


def distances(of: Scene) -> np.ndarray:
    return popdesic.pairwise_distance(of.genotypes.T, device="cpu")


def correlations(genotypes: np.ndarray) -> np.ndarray:
    """Squared correlations of sites."""
    return np.corrcoef(genotypes.astype(float)) ** 2


def largest_eigenvalue(genotypes: np.ndarray) -> float:
    """First eigenvalue of the relationship matrix, as a share of its mean."""
    p = genotypes.mean(axis=1, keepdims=True) / 2
    standard = (genotypes - 2 * p) / np.sqrt(2 * p * (1 - p))
    values = eigvalsh(standard.T @ standard)
    return values[-1] / values[1:].mean()


def noise_edge(genotypes: np.ndarray) -> float:
    """Where the eigenvalues of one population without LD end (Marchenko and Pastur 1967)."""
    n_sites, n = genotypes.shape
    return (1 + np.sqrt(n / n_sites)) ** 2


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("name", SCENES)
def test_form(name, size):
    drawn = scene(name, 1, size, sites=60)
    n_sites, n = drawn.genotypes.shape
    assert drawn.genotypes.dtype == np.int8
    assert set(np.unique(drawn.genotypes)) <= {-1, 0, 1, 2}
    called = np.ma.masked_equal(drawn.genotypes, -1)
    frequency = called.mean(axis=1) / 2
    if name != "batches":  # misread
        assert np.minimum(frequency, 1 - frequency).min() >= 0.05
    places = [*zip(map(int, drawn.chrom), map(int, drawn.pos), strict=True)]
    assert places == sorted(set(places)) and len(places) == n_sites
    assert max(drawn.pos) < 150_000_000
    for per_person in (drawn.samples, drawn.populations, drawn.cohorts, drawn.true_distance):
        assert len(per_person) == n
    assert len(set(drawn.samples)) == n
    assert drawn.structure in ("one", "discrete", "continuous")
    truth = drawn.true_distance
    assert np.isfinite(truth).all() and (truth == truth.T).all() and not truth.diagonal().any()
    assert truth.min() >= 0 and truth.any() == (drawn.structure != "one")
    if drawn.coordinates is not None:
        assert drawn.coordinates.shape == (n, 2)
    assert drawn.parameters["seed"] == 1 and drawn.parameters["sites"] == 60


@pytest.mark.parametrize("name", SCENES)
def test_same_seed_same_bytes(name):
    one, again, other = (scene(name, seed, sites=60) for seed in (1, 1, 2))
    for what in ("genotypes", "pos", "samples", "populations", "true_distance"):
        assert getattr(one, what).tobytes() == getattr(again, what).tobytes()
    assert one.genotypes.tobytes() != other.genotypes.tobytes()


def test_a_parameter_that_is_none_is_refused():
    with pytest.raises(ValueError, match="chain has no parameter colour"):
        scene("chain", 1, colour=1)


@pytest.mark.parametrize("f_st", [0.01, 0.05])
def test_islands_differ_as_asked(f_st):
    drawn = scene("islands", 1, f_st=f_st)
    of = [drawn.populations == name for name in np.unique(drawn.populations)]
    pairs = [(a, b) for a in range(4) for b in range(a)]
    found = np.mean([hudson_f_st(drawn.genotypes, of[a], of[b]) for a, b in pairs])
    assert found == pytest.approx(f_st, rel=0.15)


def test_a_pulse_lies_between_its_sources():
    drawn = scene("pulse", 1, f_st=0.05, share=0.25, generations=1)
    source = [drawn.populations == name for name in ("source0", "source1")]
    assert hudson_f_st(drawn.genotypes, *source) == pytest.approx(0.05, rel=0.15)
    mixed = drawn.genotypes[:, drawn.populations == "mixed"].mean(axis=1)
    # Halves of the sources, so that no error of a mean is multiplied with itself.
    halves = [[drawn.genotypes[:, of][:, k::2].mean(axis=1) for of in source] for k in (0, 1)]
    (first, second), (also_first, also_second) = halves
    apart = also_second - also_first
    share = (mixed - first) @ apart / ((second - first) @ apart)
    assert share == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize(
    ("name", "least"), [("chain", 0.9), ("grid", 0.6), ("wall", 0.8), ("closed wall", 0.6)]
)
def test_isolation_by_distance(name, least):
    drawn = scene(name, 1)
    assert rank_correlation(distances(drawn), drawn.true_distance) > least


def test_panmixia_has_no_structure_and_islands_have():
    apart, together = scene("islands", 1), scene("panmixia", 1)
    # The largest noise eigenvalue is within some n^(-2/3) of the edge.
    assert largest_eigenvalue(together.genotypes) < 1.03 * noise_edge(together.genotypes)
    assert largest_eigenvalue(apart.genotypes) > 1.2 * noise_edge(apart.genotypes)


def test_four_labels_of_one_population_mean_nothing():
    drawn = scene("four labels", 1)
    assert np.unique(drawn.populations, return_counts=True)[1].tolist() == [100] * 4
    found, rng = distances(drawn), np.random.default_rng(1)

    def excess(labels: np.ndarray) -> float:
        same = labels[:, None] == labels
        return found[~same].mean() - found[same & ~np.eye(len(same), dtype=bool)].mean()

    null = [excess(rng.permutation(drawn.populations)) for _ in range(200)]
    assert abs(excess(drawn.populations) - np.mean(null)) < 4 * np.std(null)


def test_sites_are_unlinked():
    drawn = scene("panmixia", 1)
    together = correlations(drawn.genotypes[:400])
    expected = 1 / (drawn.genotypes.shape[1] - 1)
    apart = together[np.triu_indices(400, 1)]
    assert apart.mean() == pytest.approx(expected, rel=0.05)
    assert np.diagonal(together, 1).mean() == pytest.approx(expected, rel=0.3)
    assert apart.max() < 0.2


def test_an_inversion_is_one_segment_in_perfect_ld():
    drawn = scene("inversion", 1)
    near = (drawn.chrom == "3") & (drawn.pos >= 20_000_000) & (drawn.pos < 24_000_000)
    assert drawn.genotypes.shape[0] == 8_040 and near.sum() == 40
    inside, outside = drawn.genotypes[near], drawn.genotypes[~near]
    assert (inside == inside[0]).all()
    assert correlations(np.vstack([inside[:1], outside[:500]]))[0, 1:].max() < 0.1
    frequency = inside[0].mean() / 2
    assert min(frequency, 1 - frequency) >= 0.3
    # It makes the first axis of a population that has none.
    assert largest_eigenvalue(drawn.genotypes) > 1.2 * noise_edge(drawn.genotypes)
    assert largest_eigenvalue(outside) < 1.03 * noise_edge(outside)


@pytest.mark.parametrize("name", ["wall", "closed wall"])
def test_a_wall_raises_distances_across_it(name):
    drawn = scene(name, 1)
    x, y = drawn.coordinates.T
    middle, found = x.max() / 2, distances(drawn) ** 2
    beside = (np.abs(x[:, None] - x) == 1) & (y[:, None] == y) & (y >= y.max() - 2)
    across = beside & ((x[:, None] < middle) != (x < middle))
    assert found[across].mean() > 1.15 * found[beside & ~across].mean()
    assert drawn.true_distance[across].min() > drawn.true_distance[beside & ~across].max()


def test_a_grid_has_no_wall():
    drawn = scene("grid", 1)
    x, y = drawn.coordinates.T
    found = distances(drawn) ** 2
    beside = (np.abs(x[:, None] - x) == 1) & (y[:, None] == y) & (y >= y.max() - 2)
    across = beside & ((x[:, None] < 4.5) != (x < 4.5))
    assert found[across].mean() < 1.1 * found[beside & ~across].mean()


def test_refuges_are_apart_and_each_is_nearly_one():
    drawn = scene("refuges", 1)
    x = drawn.coordinates[:, 0]
    assert set(drawn.populations[x < 10]) == {"west"} and set(drawn.populations[x >= 10]) == {
        "east"
    }
    between = hudson_f_st(drawn.genotypes, x < 10, x >= 10)
    within = hudson_f_st(drawn.genotypes, x < 5, (x >= 5) & (x < 10))
    assert between > 0.1 and within < between / 4


def test_one_half_of_an_uneven_chain_is_sampled_more_densely():
    drawn = scene("uneven", 1)
    demes, people = np.unique(drawn.coordinates[:, 0], return_counts=True)
    assert demes.tolist() == [*range(12), 14, 18, 22]
    assert set(people) == {20}
    assert (drawn.true_distance[0, [20, -1]] == [1, 22]).all()


def test_the_gradient_is_in_the_genotypes():
    drawn = scene("gradient", 1, f_st=0.3)
    scores = popdesic.pca(drawn.genotypes.T, n_components=1).scores[:, 0]
    share = drawn.coordinates[:, 0]
    assert np.corrcoef(scores, share)[0, 1] ** 2 > 0.98
    assert drawn.true_distance[0, -1] == 1


def test_one_batch_is_misread_at_some_sites():
    drawn = scene("batches", 1)
    clean = scene("batches", 1, error=0.0, missing=0.0)
    second = drawn.cohorts == "second"
    assert second.sum() == 150
    assert (drawn.genotypes[:, ~second] == clean.genotypes[:, ~second]).all()
    missing = drawn.genotypes == -1
    assert missing[:, second].mean() == pytest.approx(0.01, rel=0.1)
    wrong = (drawn.genotypes != clean.genotypes) & ~missing
    assert (drawn.genotypes[wrong] == 0).all() and (clean.genotypes[wrong] == 1).all()
    assert wrong.any(axis=1).mean() == pytest.approx(0.05, rel=0.2)
    bad = wrong.any(axis=1)
    assert wrong[bad][:, second].sum() / (clean.genotypes[bad][:, second] == 1).sum() == (
        pytest.approx(0.3, rel=0.1)
    )
