"""Scores by groups have the same bytes as at once; scores from loadings come close to them."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.components import relationship
from popdesic.components.loading_scores import SIGNS, score_by_weights, site_weights
from popdesic.components.pca import WEIGHTS, axes_of, place_by_weights, place_everyone
from popdesic.components.relationship import (
    PAIR_BYTES,
    alt_frequency,
    calls_of,
    groups_of_others,
    relationship_among,
    relationship_to,
)
from popdesic.engine.genotype_products import Calls
from popdesic.engine.select import cpu_backend
from popdesic.io.bed import ChosenSamples, open_bed
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.maps.place_one import place_people

SIZES, N_SITES = [130, 60, 110], 1500


@pytest.fixture(scope="module")
def people():
    """Three populations, a third of the first cohort and all of the second define the axes."""
    rng = np.random.default_rng(4)
    n = sum(SIZES)
    label = rng.integers(0, 3, n)
    p = np.clip(rng.uniform(0.1, 0.5, N_SITES) + rng.normal(0, 0.12, (3, N_SITES)), 0.03, 0.97)
    genotypes = rng.binomial(2, p[label]).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < rng.uniform(0, 0.1, (n, 1))] = -1
    axes = np.zeros(n, bool)
    axes[:90] = axes[130:190] = True
    af = alt_frequency(genotypes[axes].T)
    return genotypes, axes, af


def reader(genotypes):
    return lambda first, last: genotypes[:, first:last].T


def products_of(genotypes, sizes, af, threads=1):
    """Products of the packed genotypes of cohorts of some sizes."""
    parts = np.split(genotypes, np.cumsum(sizes)[:-1])
    packed = tuple(pack_bed(np.ascontiguousarray(part.T)) for part in parts)
    calls = Calls(packed, None, tuple(np.ones(n, bool) for n in sizes), af)
    return cpu_backend(threads).genotype_products(calls)


@pytest.mark.parametrize("rows", [1, 30, 57, 10_000])
def test_groups_give_the_same_bytes(people, monkeypatch, rows):
    monkeypatch.setattr(relationship, "BLOCK_SAMPLES", 16)
    genotypes, axes, af = people
    given = reader(genotypes), SIZES, axes, af
    whole = relationship_to(*given)
    groups = groups_of_others(SIZES, axes, PAIR_BYTES * int(axes.sum()) * rows)
    assert (len(groups) > 1) == (rows < 150)
    parts = [relationship_to(*given, 2, blocks) for blocks in groups]
    for k in (0, 1):
        together = np.concatenate([part[k] for part in parts])
        assert together.tobytes() == whole[k].tobytes()


def by_weights(people, others, threads=1):
    """Scores by weights of the samples that `others` chooses, and by all pairs of everyone."""
    genotypes, axes, af = people
    own = genotypes[axes]
    found, _ = axes_of(relationship_among(reader(own), [len(own)], af), 4)
    products = products_of(own, [len(own)], af, threads)
    names = [f"p{i}" for i in range(len(own))]
    called = products.sample_sums().called
    weights = site_weights(products, called, names, found.vectors)
    assert weights.shape == (N_SITES, found.vectors.shape[1] + SIGNS)
    products = products_of(genotypes[others], [int(others.sum())], af, threads)
    about = {"values": found.values, "n": len(own), "trace": found.trace}
    scores = score_by_weights(products, weights, **about, n_components=found.k)
    exact = found.project(*relationship_to(reader(genotypes), SIZES, axes, af))
    return scores, exact


def test_weights_come_close_to_all_pairs(people):
    axes = people[1]
    scores, exact = by_weights(people, ~axes)
    spread = exact[:, :2].std(axis=0)
    assert (np.sqrt(((scores - exact)[:, :2] ** 2).mean(axis=0)) < 0.02 * spread).all()
    assert by_weights(people, ~axes, threads=2)[0].tobytes() == scores.tobytes()


def test_a_sample_does_not_depend_on_other_newcomers(people):
    fewer = ~people[1]
    fewer[150:] = False
    scores = by_weights(people, ~people[1])[0]
    assert scores[: fewer.sum()].tobytes() == by_weights(people, fewer)[0].tobytes()


@pytest.fixture
def study(people, tmp_path):
    """Files of the cohorts, and the definition of the axes."""
    genotypes, axes, af = people
    prefixes, first = [], 0
    for number, size in enumerate(SIZES):
        prefixes.append(tmp_path / f"c{number}")
        own = np.ascontiguousarray(genotypes[first : first + size].T)
        prefixes[-1].with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(own).tobytes())
        names = [f"p{i}" for i in range(first, first + size)]
        prefixes[-1].with_suffix(".fam").write_text("".join(f"0 {s} 0 0 0 -9\n" for s in names))
        lines = "".join(f"1\ts{i}\t0\t{i + 1}\tG\tA\n" for i in range(N_SITES))
        prefixes[-1].with_suffix(".bim").write_text(lines)
        first += size
    found, _ = axes_of(relationship_among(reader(genotypes[axes]), [int(axes.sum())], af), 2)
    definition = tmp_path / "axes.npz"
    np.savez(
        definition,
        values=found.values,
        vectors=found.vectors,
        trace=found.trace,
        k=2,
        samples=np.array([f"p{i}" for i in np.flatnonzero(axes)]),
        sites=np.arange(N_SITES),
        af=af,
    )
    return prefixes, definition


def add_weights(people, definition):
    """Add the weights of sites to `axes.npz`, as `define_axes` stores those of many samples."""
    genotypes, axes, af = people
    with np.load(definition) as found:
        stored = dict(found)
    products = products_of(genotypes[axes], [int(axes.sum())], af)
    called = products.sample_sums().called
    stored[WEIGHTS] = site_weights(products, called, list(stored["samples"]), stored["vectors"])
    np.savez(definition, **stored)


def test_a_study_above_the_limit_has_nearly_the_scores_of_one_below(people, study):
    """Through files, as `compute_pca` reads them; founders keep their bytes."""
    (_, axes, _), (prefixes, definition) = people, study
    _, founders, exact, *_ = place_everyone(prefixes, definition, cpu_backend())
    np.testing.assert_array_equal(founders, axes)
    add_weights(people, definition)
    scores = place_everyone(prefixes, definition, cpu_backend(2))[2]
    assert scores[axes].tobytes() == exact[axes].tobytes()
    assert scores[~axes].tobytes() != exact[~axes].tobytes()
    off = np.sqrt(((scores - exact)[~axes] ** 2).mean(axis=0))
    assert (off < 0.02 * exact.std(axis=0)).all()
    nobody = [np.zeros(n, bool) for n in SIZES]
    assert place_by_weights(prefixes, nobody, definition, cpu_backend()).shape == (0, 2)


@pytest.mark.parametrize("many", [False, True])
def test_people_have_the_scores_of_a_further_cohort(people, study, many):
    """To the last bit; among many, no file of the others is read."""
    (_, axes, _), (prefixes, definition) = people, study
    if many:
        add_weights(people, definition)
    scores = place_everyone(prefixes, definition, cpu_backend())[2]
    assert not axes[-SIZES[2] :].any()
    if many:
        for prefix in prefixes[:2]:
            prefix.with_suffix(".bed").unlink()
    found = place_people(prefixes[:2], prefixes[2], definition, cpu_backend(1))
    assert found.tobytes() == scores[-SIZES[2] :].tobytes()


def test_cohorts_of_which_few_count_give_the_same_bytes(people, study):
    (_, axes, af), (prefixes, _) = people, study
    keep = np.split(~axes, np.cumsum(SIZES)[:-1])
    keep[2][5] = False
    calls = calls_of(prefixes[::2], np.arange(0, N_SITES, 3), keep[::2], af[::3])
    assert [type(part) for part in calls.parts] == [ChosenSamples, np.memmap]
    beds = tuple(open_bed(prefix) for prefix in prefixes[::2])
    whole = Calls(beds, calls.rows, tuple(keep[::2]), calls.af)
    weights = np.random.default_rng(1).normal(size=(len(calls.rows), 20)).astype(np.float32)
    one, other = (cpu_backend(2).genotype_products(c) for c in (calls, whole))
    assert one.combine(weights).tobytes() == other.combine(weights).tobytes()
    for name, own in vars(other.sample_sums()).items():
        assert vars(one.sample_sums())[name].tobytes() == own.tobytes(), name


def test_relatives_are_told_through_files(people, study):
    """A newcomer who is a double of a sample that defines the axes lies on it, and is counted."""
    (genotypes, axes, _), (prefixes, definition) = people, study
    found, _ = axes_of(relationship_among(reader(genotypes[axes]), [150], people[2]), 2)
    with np.load(definition) as stored:
        np.savez(definition, **stored, own=found.own, significant=np.array(2))
    double = genotypes.copy()
    double[-1] = genotypes[0]
    packed = pack_bed(np.ascontiguousarray(double[-SIZES[2] :].T))
    prefixes[2].with_suffix(".bed").write_bytes(BED_MAGIC + packed.tobytes())
    _, _, scores, placed, related = place_everyone(prefixes, definition, cpu_backend())
    assert placed.significant == 2
    np.testing.assert_array_equal(np.flatnonzero(related), [len(genotypes) - 1])
    assert np.abs(scores[-1] - scores[0]).max() < 0.1 * scores[axes].std()
