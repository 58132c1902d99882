"""p-values of the best scores, from permutations and from a fit."""

import numpy as np

from popdesic.epistasis.significance import LEAST_FOR_FIT, extreme_value_p, permutation_p


def test_fitted_p_follows_the_permutations_and_never_claims_more_than_they_can():
    rng = np.random.default_rng(1)
    null = -np.round(1e12 * (30 + rng.gumbel(size=200))).astype(np.int64)
    inside = np.sort(null)[[20, 60, 120]]
    assert np.allclose(extreme_value_p(inside, null), permutation_p(inside, null), atol=0.08)
    # A bounded fit (uniform null) has its end point just beyond the best draw.
    bounded = -np.round(1e12 * rng.random(200)).astype(np.int64)
    for costs in (null, bounded):
        far = np.array([100 * costs.min()])
        p = extreme_value_p(far, costs)[0]
        assert p >= 0.1 / 201 and p <= permutation_p(far, costs)[0]
    assert extreme_value_p(far, bounded)[0] == 0.1 / 201


def test_no_fit_to_too_few_or_equal_permutations():
    cost = np.array([-5])
    assert np.isnan(extreme_value_p(cost, np.arange(LEAST_FOR_FIT - 1))).all()
    assert np.isnan(extreme_value_p(cost, np.full(50, -3))).all()
