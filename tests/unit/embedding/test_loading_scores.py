"""Scores by groups have the same bytes as at once; scores from loadings come close to them."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.embedding import relationship
from popdesic.embedding.loading_scores import score_by_loadings
from popdesic.embedding.pca import axes_of, place_everyone
from popdesic.embedding.place_one import place_people
from popdesic.embedding.relationship import (
    PAIR_BYTES,
    alt_frequency,
    groups_of_others,
    relationship_among,
    relationship_to,
)
from popdesic.engine import needs
from popdesic.engine.genotype_products import Calls
from popdesic.engine.select import cpu_backend
from popdesic.io.genotypes import BED_MAGIC, pack_bed

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


def test_loadings_come_close_to_all_pairs(people):
    genotypes, axes, af = people
    own = genotypes[axes]
    found, _ = axes_of(relationship_among(reader(own), [len(own)], af), 4)
    exact = found.project(*relationship_to(reader(genotypes), SIZES, axes, af))
    names = [f"p{i}" for i in range(len(own))]
    about = {"values": found.values, "vectors": found.vectors, "trace": found.trace}
    products = products_of(genotypes, SIZES, af)
    scores = score_by_loadings(products, axes, names, **about, n_components=found.k)
    spread = exact[:, :2].std(axis=0)
    assert (np.sqrt(((scores - exact)[:, :2] ** 2).mean(axis=0)) < 0.02 * spread).all()
    again = products_of(genotypes, SIZES, af, threads=2)
    again = score_by_loadings(again, axes, names, **about, n_components=found.k)
    assert again.tobytes() == scores.tobytes()


def test_a_sample_does_not_depend_on_other_newcomers(people):
    genotypes, axes, af = people
    own = genotypes[axes]
    found, _ = axes_of(relationship_among(reader(own), [len(own)], af), 3)
    names = [f"p{i}" for i in range(len(own))]
    about = {"values": found.values, "vectors": found.vectors, "trace": found.trace}
    products = products_of(genotypes, SIZES, af)
    both = score_by_loadings(products, axes, names, **about, n_components=3)
    products = products_of(genotypes[:190], SIZES[:2], af)
    fewer = score_by_loadings(products, axes[:190], names, **about, n_components=3)
    assert both[:40].tobytes() == fewer.tobytes()


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


def test_a_study_above_the_limit_has_nearly_the_scores_of_one_below(people, study, monkeypatch):
    """Through files, as `compute_pca` reads them; founders keep their bytes."""
    (_, axes, _), (prefixes, definition) = people, study
    _, founders, exact, _ = place_everyone(prefixes, definition, cpu_backend())
    np.testing.assert_array_equal(founders, axes)
    monkeypatch.setattr(needs, "MOST_EXACT", 1)
    scores = place_everyone(prefixes, definition, cpu_backend(2))[2]
    assert scores[axes].tobytes() == exact[axes].tobytes()
    assert scores[~axes].tobytes() != exact[~axes].tobytes()
    off = np.sqrt(((scores - exact)[~axes] ** 2).mean(axis=0))
    assert (off < 0.02 * exact.std(axis=0)).all()


def test_people_have_the_scores_of_a_further_cohort(people, study, monkeypatch):
    """To the last bit among few; by sums of whole numbers among many, nearly."""
    (_, axes, _), (prefixes, definition) = people, study
    scores = place_everyone(prefixes, definition, cpu_backend())[2]
    found = place_people(prefixes[:2], prefixes[2], definition, cpu_backend(1))
    assert not axes[-SIZES[2] :].any()
    assert found.tobytes() == scores[-SIZES[2] :].tobytes()
    monkeypatch.setattr(needs, "MOST_EXACT", 1)
    near = place_people(prefixes[:2], prefixes[2], definition, cpu_backend(2))
    assert near.tobytes() != found.tobytes()
    np.testing.assert_allclose(near, found, atol=1e-5 * np.abs(found).max())
