"""Ranks of values against SciPy's."""

import numpy as np
import pytest
from scipy.stats import rankdata

from popdesic.engine.ranks import average_ranks


@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_ranks_equal_those_of_scipy(n):
    rng = np.random.default_rng(n)
    for values in (rng.random(n), rng.integers(0, 7, n), np.zeros(n)):
        np.testing.assert_array_equal(average_ranks(values), rankdata(values))
