"""One person against all: the integers and distances of the study's own products."""

from dataclasses import replace

import numpy as np
import pytest
from support.study import encode_cohorts, make_cohorts

from popdesic.cohort.drift import person_difference
from popdesic.cohort.planes import load_planes
from popdesic.distance.matrix import distances_of_counts
from popdesic.distance.tiles import pairwise_counts
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.relatives import against_all
from popdesic.relatives.against_all import compare_with_all, nearest_people
from popdesic.relatives.kinship import kinship_counts


def genotypes_by_sample(cohorts) -> np.ndarray:
    return np.concatenate([cohort.genotypes for cohort in cohorts], axis=1).T


@pytest.fixture(params=[(1, 0.1), (15, 0.0), (17, 0.1), (64, 0.0), (65, 0.2), (600, 0.1)])
def folders(request, tmp_path):
    n_sites, missing = request.param
    cohorts = make_cohorts((7, 5, 2, 1), n_sites=n_sites, missing=missing, seed=n_sites)
    if n_sites > 1:
        whole = np.maximum(cohorts[1].genotypes, 0)  # a cohort without a called plane
        cohorts[1] = replace(cohorts[1], genotypes=whole)
    for cohort in cohorts:  # encoding refuses a sample without any call
        cohort.genotypes[0] = np.maximum(cohort.genotypes[0], 0)
    return encode_cohorts(tmp_path, cohorts), genotypes_by_sample(cohorts)


@pytest.mark.parametrize(
    ("metric", "missing", "threads"),
    [
        ("euclidean", "pairwise", 1),
        ("euclidean", "imputed", 3),
        ("manhattan", "pairwise", 3),
        ("ibs", "imputed", 1),
        ("normalized", "pairwise", 3),
    ],
)
def test_counts_and_distances_are_those_of_the_study(
    folders, metric, missing, threads, monkeypatch
):
    *others, own = folders[0]
    backend, query = CpuBackend(threads), load_planes(own)[0]
    monkeypatch.setattr(against_all, "CHUNK_BYTES", 3 * query.words.nbytes)  # uneven blocks
    limits = {"metric": metric, "missing": missing, "min_called": 1}
    found = compare_with_all(query, others, backend, **limits)
    planes = [load_planes(folder)[0] for folder in others]
    assert found.people.cohorts == ["north"] * 7 + ["south"] * 5 + ["west"] * 2
    for name, values in found.counts.items():
        expected = [kinship_counts(query, part, backend)[name][0] for part in planes]
        assert (values == np.concatenate(expected)).all(), name
    options = {"metric": metric, "missing": missing}
    expected = []
    for part in planes:
        counts = pairwise_counts(part, query, backend, **options)  # the newcomer comes second
        zeros = {"metric": metric, "n_sites": query.n_sites, "min_called": 1}
        expected.append(distances_of_counts(counts, np.zeros(0, int), **zeros)[:, 0])
    assert found.distances.tobytes() == np.concatenate(expected).tobytes()


def test_counts_are_those_of_plain_loops(folders):
    folders, genotypes = folders
    query = load_planes(folders[-1])[0]
    limits = {"metric": "euclidean", "missing": "pairwise", "min_called": 1}
    found = compare_with_all(query, folders[:-1], CpuBackend(), **limits)
    own, n_sites = genotypes[-1].astype(int), genotypes.shape[1]
    for k, other in enumerate(genotypes[:-1].astype(int)):
        both = (own >= 0) & (other >= 0)
        a, b = own[both], other[both]
        counts = {
            "called": both.sum(),
            "ibs0": (np.abs(a - b) == 2).sum(),
            "both_het": ((a == 1) & (b == 1)).sum(),
            "het_a": (a == 1).sum(),
            "het_b": (b == 1).sum(),
        }
        assert {name: values[k] for name, values in found.counts.items()} == counts
        expected = np.sqrt(((a - b) ** 2).sum() * n_sites / both.sum())
        assert found.distances[k] == pytest.approx(expected, rel=1e-15)


def test_nearest_are_in_order_and_finite(folders):
    folders, _ = folders
    query = load_planes(folders[-1])[0]
    limits = {"metric": "euclidean", "missing": "pairwise", "min_called": 1}
    found = compare_with_all(query, folders[:-1], CpuBackend(), **limits)
    order = sorted(range(14), key=lambda i: (found.distances[i], i))
    assert nearest_people(found, 20).tolist() == order
    found.distances[order[0]] = np.inf
    assert nearest_people(found, 3).tolist() == order[1:4]


def test_expected_difference_of_a_person_is_the_mean_over_genotypes():
    rng = np.random.default_rng(2)
    af = rng.uniform(0.05, 0.95, 4000)
    people = rng.binomial(2, af, (300, len(af)))
    found = [person_difference(person, af) for person in people]
    expected = found[0][1]
    assert all(value == expected for _, value in found)
    assert np.mean([observed for observed, _ in found]) == pytest.approx(expected, rel=2e-3)
    haploids = [person_difference(2 * one, af, 1) for one in rng.binomial(1, af, people.shape)]
    observed, expected = np.mean(haploids, axis=0)
    assert observed == pytest.approx(expected, rel=2e-3)
