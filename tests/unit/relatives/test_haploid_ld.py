"""r2 of haploids, whose alleles are stored as 0 and 2, is the squared correlation of alleles."""

from __future__ import annotations

import numpy as np
from oracles.ploidy import draw_of_ploidy

import popdesic


def test_r2_is_the_squared_correlation_of_alleles():
    alleles = draw_of_ploidy(np.random.default_rng(4), [1] * 40, 25, 0.1)
    alleles[:, 1] = np.where(alleles[:, 0] < 0, -1, alleles[:, 0])
    found = popdesic.ld_r2(np.where(alleles > 0, 2, alleles), device="cpu")
    for a in range(25):
        for b in range(25):
            both = (alleles[:, a] >= 0) & (alleles[:, b] >= 0)
            x, y = alleles[both][:, [a, b]].T.astype(float)
            if x.std() and y.std():
                expected = np.corrcoef(x, y)[0, 1] ** 2
                np.testing.assert_allclose(found[a, b], expected, atol=1e-12)
    assert found[0, 1] == 1
