"""The test for a gradient: chains and gradients pass, families and mixed groups do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes import scene
from sklearn.metrics import adjusted_rand_score

from popdesic.communities.cline import LEAST_SPREAD, is_cline, measure_spread
from popdesic.communities.splits import cut_tree, split_samples
from popdesic.communities.within import own_axes


def scores_of(genotypes, chrom, pos):
    """Scores on the significant components, as a study's."""
    axes, _ = own_axes(genotypes, pd.DataFrame({"chrom": chrom, "pos": pos}))
    return axes.with_scores(np.ones(genotypes.shape[1], bool), np.empty((0, axes.k)))


def inbred_families(seed, children=4):
    """A population without structure, and families of children of full siblings."""
    drawn, rng = scene("panmixia", seed, people=200, sites=2_000), np.random.default_rng(seed)

    def offspring(one, other, n):
        return np.sum(
            [rng.binomial(1, parent[:, None] / 2, (2_000, n)) for parent in (one, other)], 0
        )

    families = []
    for k in range(12):
        siblings = offspring(drawn.genotypes[:, 2 * k], drawn.genotypes[:, 2 * k + 1], 2)
        families.append(offspring(*siblings.T, children))
    genotypes = np.hstack([drawn.genotypes, *families]).astype(np.int8)
    return scores_of(genotypes, drawn.chrom, drawn.pos)


def mixed_continents(seed, mixed, f_st=0.2, sites=2_000):
    """Three continents of populations, and mixed samples that fill the gaps between them."""
    rng = np.random.default_rng(seed)

    def drift(p, f):
        return rng.beta(p * (1 - f) / f, (1 - p) * (1 - f) / f)

    continents = [drift(rng.uniform(0.1, 0.9, sites), f_st) for _ in range(3)]
    frequency = [drift(own, 0.01) for own in continents for _ in range(5) for _ in range(14)]
    for _ in range(mixed):
        one, other = rng.choice(3, 2, replace=False)
        share = rng.random()
        frequency.append(share * continents[one] + (1 - share) * continents[other])
    genotypes = rng.binomial(2, np.array(frequency).T).astype(np.int8)
    return scores_of(genotypes, np.repeat(np.arange(20), sites // 20), np.arange(sites) * 500_000)


@pytest.mark.parametrize("name", ["chain", "gradient", "faint grid"])
def test_gradients_pass(name):
    drawn = scene(name, 71)
    scores = scores_of(drawn.genotypes, drawn.chrom, drawn.pos)
    root = split_samples(scores)
    assert not root.halves and is_cline(measure_spread(scores), root.gap)


def test_families_are_no_gradient():
    scores = inbred_families(72)
    root, spread = split_samples(scores), measure_spread(scores)
    assert scores.shape[1] and not root.halves
    assert spread < LEAST_SPREAD and not is_cline(spread, root.gap)


def test_populations_that_mixed_samples_join_are_no_gradient():
    """Twice as many mixed samples as others; their continents are found all the same."""
    scores = mixed_continents(73, 420)
    root, spread = split_samples(scores), measure_spread(scores)
    assert adjusted_rand_score(np.repeat(range(3), 70), cut_tree(root)[:210]) == 1
    assert spread >= LEAST_SPREAD and not is_cline(spread, root.gap)


def test_too_few_samples_say_nothing():
    assert measure_spread(np.zeros((5, 1))) is None
    assert measure_spread(np.zeros((50, 0))) is None
