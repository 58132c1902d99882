"""How many components are significant: errors without structure, the true number with it."""

import numpy as np
import pandas as pd
import pytest
from scenes.populations import linked_genotypes, populations, relationship_of

from popdesic.components import noise_null
from popdesic.components.noise_null import measure_noise
from popdesic.components.pca import axes_of
from popdesic.components.relationship import alt_frequency
from popdesic.components.significance import EVEN_NOISE, LEVEL, assess_components

REPLICATES = 100


def noise_of(genotypes: np.ndarray, sites: pd.DataFrame | None = None, threads: int = 1):
    """Noise of genotypes (n, n_sites), by default of sites on one chromosome 30 kb apart."""
    if sites is None:
        sites = pd.DataFrame({"chrom": "1", "pos": np.arange(genotypes.shape[1]) * 30_000})

    def read(first: int, last: int) -> np.ndarray:
        return genotypes[:, first:last].T

    af = alt_frequency(genotypes.T)
    return measure_noise(relationship_of(genotypes), read, [len(genotypes)], af, sites, threads)


def test_the_order_of_samples_plays_no_role():
    """Names draw the signs: cohorts can stand in the sheet in any order."""
    rng = np.random.default_rng(8)
    genotypes = variable(populations(rng, 2, 0.05, 40, 800)[0])
    names = np.array([f"S{k}" for k in range(40)])
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(genotypes.shape[1]) * 100_000})
    found = []
    for order in (np.arange(40), rng.permutation(40)):
        own = genotypes[order]

        def read(first: int, last: int, own=own) -> np.ndarray:
            return own[:, first:last].T

        noise = measure_noise(
            relationship_of(own), read, [40], alt_frequency(own.T), sites, names=names[order]
        )
        found.append([noise.shift, noise.spread, noise.limit])
    np.testing.assert_allclose(*found, rtol=1e-9)
    assert found[0][2] > 0


def count(genotypes: np.ndarray, *, measured: bool = False) -> int:
    noise = noise_of(genotypes) if measured else EVEN_NOISE
    return axes_of(relationship_of(genotypes), "auto", noise=noise)[1].count


def variable(genotypes: np.ndarray) -> np.ndarray:
    return genotypes[:, np.ptp(genotypes, axis=0) > 0]


# Five or more of a hundred at a level of 1 % come about once in 300 such tests, at 5 % in two of
# three: seeds are fixed, so a test that passes keeps passing.
@pytest.mark.parametrize(("n", "sites"), [(30, 1000), (60, 3000), (120, 1500)])
def test_one_population_has_no_component(n, sites):
    rng = np.random.default_rng(n)
    found = [count(populations(rng, 1, 0.0, n, sites)[0]) for _ in range(REPLICATES)]
    share = np.mean(np.array(found) > 0)
    print(f"\n{n} samples, {sites} sites: {share:.2f} of {REPLICATES} have a component")
    assert share < 0.05


@pytest.mark.parametrize(
    ("k", "fst", "n", "sites"),
    [
        (2, 0.01, 100, 4000),
        (4, 0.02, 120, 4000),
        (6, 0.1, 120, 3000),
        # equal eigenvalues hide the first of them, which a test that stops there would miss
        (10, 0.4, 120, 4000),
        (20, 0.2, 200, 5000),
    ],
)
def test_k_populations_have_one_component_less(k, fst, n, sites):
    rng = np.random.default_rng(k)
    scenes = [variable(populations(rng, k, fst, n, sites)[0]) for _ in range(6)]
    found = [count(genotypes, measured=True) for genotypes in scenes]
    assert np.median(found) == k - 1
    assert sum(number != k - 1 for number in found) <= 1, found


def test_the_first_of_equal_components_is_not_seen_alone():
    """Ten distant populations widen the scale of the first test: the limit of noise decides."""
    genotypes = variable(populations(np.random.default_rng(10), 10, 0.4, 120, 4000)[0])
    relationship, noise = relationship_of(genotypes), noise_of(genotypes)
    tests = axes_of(relationship, "auto", noise=noise)[1]
    assert tests.p[0] > LEVEL and tests.p[8] < LEVEL < tests.p[9:].min()
    assert tests.count == 9 and axes_of(relationship, "auto")[1].count == 0


@pytest.mark.slow
def test_linked_sites_of_one_population_have_no_component():
    """A short coalescent genome without structure: what pruning leaves of LD makes no component."""
    plain, found = [], []
    for seed in range(24):
        genotypes, sites = linked_genotypes(seed, 60)
        relationship, noise = relationship_of(genotypes), noise_of(genotypes, sites)
        plain.append(axes_of(relationship, "auto")[1].count)
        found.append(axes_of(relationship, "auto", noise=noise)[1].count)
    shares = [np.mean(np.array(counts) > 0) for counts in (plain, found)]
    print(f"\n20 Mb: {shares[0]:.2f} of 24 with even, {shares[1]:.2f} with measured noise")
    assert shares[1] <= 0.05 < shares[0]


def test_samples_of_unequal_diversity_have_no_more_components():
    """Sixty samples of a diverse population vary more than 140 others, which is no component."""
    rng = np.random.default_rng(1)
    diverse, own = np.arange(200) < 60, rng.random(3000) < 0.5
    af = np.where(own, 0.0, rng.uniform(0.1, 0.9, 3000))
    theirs = np.where(own, rng.uniform(0.05, 0.3, 3000), af)
    genotypes = variable(rng.binomial(2, np.where(diverse[:, None], theirs, af)).astype(np.int8))
    assert count(genotypes, measured=True) == 1


def test_noise_is_the_same_for_any_number_of_threads_and_known_from_one_draw(monkeypatch):
    genotypes = variable(populations(np.random.default_rng(7), 3, 0.05, 90, 3000)[0])
    relationship, noise = relationship_of(genotypes), noise_of(genotypes)
    assert noise_of(genotypes, threads=3) == noise
    monkeypatch.setattr(noise_null, "MOST_BYTES", 0)
    one = noise_of(genotypes)
    assert one != noise and one.spread == 1.0
    for known in (noise, one):
        assert axes_of(relationship, "auto", noise=known)[1].count == 2


def test_threshold_is_the_eigenvalue_at_which_p_is_the_level():
    rng = np.random.default_rng(4)
    relationship = relationship_of(populations(rng, 3, 0.05, 60, 2000)[0])
    values = np.linalg.eigvalsh(relationship)[::-1]
    sums = values.sum(), (values**2).sum()
    tests = assess_components(values[:20], *sums, 60)
    for k in (0, 1, 2, 7):
        changed = values[:20].copy()
        changed[k] = tests.threshold[k]  # the sums, and so the scale, are those of before
        assert assess_components(changed, *sums, 60).p[k] == pytest.approx(LEVEL, rel=1e-6)


def test_equal_eigenvalues_and_few_samples_have_none():
    for n in (2, 3, 4, 9):
        values = np.r_[np.ones(n - 1), 0.0]
        tests = assess_components(values, values.sum(), (values**2).sum(), n)
        assert tests.count == 0
        assert len(tests.p) == (n - 1) // 2
