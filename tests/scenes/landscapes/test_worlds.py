"""Worlds: continents differ as published, children are their parents', the same seed repeats."""

import numpy as np
import pytest

from scenes.landscapes.scores import hudson_f_st
from scenes.landscapes.worlds import MIN_MAF, component_scores, world


@pytest.fixture(scope="module")
def drawn():
    return world(1, sites=1_500)


def test_the_same_seed_draws_the_same_world(drawn):
    again, other = world(1, sites=1_500), world(2, sites=1_500)
    assert (again.genotypes == drawn.genotypes).all()
    assert (again.populations == drawn.populations).all()
    assert again.genotypes.shape != other.genotypes.shape


def test_sites_are_common_and_people_labelled(drawn):
    n_sites, n = drawn.genotypes.shape
    af = drawn.genotypes.mean(axis=1) / 2
    assert (np.minimum(af, 1 - af) >= MIN_MAF).all()
    assert len(drawn.chrom) == len(drawn.pos) == n_sites
    assert len(drawn.continents) == len(drawn.populations) == len(drawn.related) == n
    assert not drawn.related.any()
    assert all(p.startswith(c) for c, p in zip(drawn.continents, drawn.populations, strict=True))


def test_continents_differ_as_published():
    found = {}
    for seed in range(3, 9):
        drawn = world(seed, sites=2_000)
        of = {c: drawn.continents == c for c in np.unique(drawn.continents)}
        for one, other in (("AFR", "EUR"), ("AFR", "EAS"), ("EAS", "EUR"), ("EUR", "SAS")):
            if other in of:
                f_st = hudson_f_st(drawn.genotypes, of[one], of[other])
                found.setdefault((one, other), []).append(f_st)
        own = [p for p in np.unique(drawn.populations) if p.startswith("EUR")]
        for other in own[1:]:
            groups = drawn.populations == own[0], drawn.populations == other
            assert 0 < hudson_f_st(drawn.genotypes, *groups) < 0.015
    expected = {("AFR", "EUR"): 0.14, ("AFR", "EAS"): 0.16, ("EAS", "EUR"): 0.11}
    for pair, f_st in (expected | {("EUR", "SAS"): 0.035}).items():
        # Some populations of Africa have ancestors from Europe, which makes these less.
        value = max(found[pair]) if "AFR" in pair else np.mean(found[pair])
        assert value == pytest.approx(f_st, rel=0.15), pair


def test_children_have_one_allele_of_each_parent():
    drawn = world(6, families=4, sites=800)
    first = drawn.populations == "EUR0"
    people = drawn.genotypes[:, first]
    children = np.flatnonzero(drawn.related[first])
    assert len(children) == 12 and (children >= 8).all()
    for place, child in enumerate(children):
        mother, father = people[:, 2 * (place // 3)], people[:, 2 * (place // 3) + 1]
        least = (mother == 2).astype(int) + (father == 2)
        most = (mother > 0).astype(int) + (father > 0)
        assert (people[:, child] >= least).all() and (people[:, child] <= most).all()
    assert {p for p in drawn.populations[drawn.related] if p[-1] != "0"} == set()


def test_the_unrelated_define_the_components_and_children_are_projected():
    drawn = world(7, families=5, sites=1_500)
    everyone = np.ones(len(drawn.related), bool)
    without = component_scores(drawn, ~drawn.related)
    assert without.shape[1] < component_scores(drawn, everyone).shape[1]
    for continent in ("AFR", "EUR", "EAS"):
        own = drawn.continents == continent
        parents = without[own & ~drawn.related].mean(axis=0)
        children = without[own & drawn.related].mean(axis=0)
        others = without[~own].mean(axis=0)
        assert np.linalg.norm(children - parents) < 0.5 * np.linalg.norm(children - others)
