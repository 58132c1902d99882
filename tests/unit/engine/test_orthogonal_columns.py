"""Columns without what they share with other columns."""

import numpy as np
import pytest

from popdesic.engine.host.orthogonal_columns import remove_columns


@pytest.mark.parametrize("n", [1, 17, 4001])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_numbers_are_those_of_numpy(n, k):
    rng = np.random.default_rng(n + k)
    one, image = rng.normal(size=(2, n, k))
    one /= np.linalg.norm(one, axis=0)
    # The sum in the order of the rows, which numpy keeps for several columns.
    shares = np.zeros(k)
    for left, right in zip(one, image, strict=True):
        shares += left * right
    expected = image - one * shares
    remove_columns(one, image)
    np.testing.assert_array_equal(image, expected)
