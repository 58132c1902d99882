"""The union of neighbourhoods equals that of a dictionary of pairs, on any threads."""

from __future__ import annotations

import numpy as np
import pytest

from popdesic.maps import neighbor_union_cpu
from popdesic.maps.neighbor_union_cpu import unite_neighbors


def expected(near: np.ndarray, weights: np.ndarray, least: float) -> list[tuple[int, int, float]]:
    """Edges in the order of both ends, pair by pair."""
    own = {}
    for i, row in enumerate(near.tolist()):
        own |= {(i, j): float(w) for j, w in zip(row, weights[i], strict=True)}
    both = {}
    for i, j in own:
        p, q = own.get((i, j), 0.0), own.get((j, i), 0.0)
        both[i, j] = both[j, i] = p + q - p * q
    limit = least * max(both.values(), default=0.0)
    return [(*pair, both[pair]) for pair in sorted(both) if both[pair] >= limit]


@pytest.mark.parametrize("n", [2, 3, 15, 16, 17, 64, 65])
@pytest.mark.parametrize("k", [1, 5, 14])
@pytest.mark.parametrize("least", [0.0, 0.3, 1.0])
def test_union_equals_that_of_pairs(monkeypatch, n, k, least, rng):
    """The first sample is near to everyone; some weights are 0."""
    monkeypatch.setattr(neighbor_union_cpu, "ROWS_OF_TASK", 4)
    k = min(k, n - 1)
    near = np.stack([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    for row in near[1:]:
        row[0] *= 0 in row
    weights = rng.random((n, k)) * (rng.random((n, k)) < 0.9)
    found = [unite_neighbors(near, weights, least, threads) for threads in (1, 2, 7)]
    starts, ends, united = found[0]
    edges = zip(np.repeat(np.arange(n), np.diff(starts)), ends, united, strict=True)
    assert list(edges) == expected(near, weights, least)
    assert len({tuple(array.tobytes() for array in one) for one in found}) == 1


def test_nobody_has_neighbors():
    starts, ends, united = unite_neighbors(np.zeros((3, 0), np.int64), np.zeros((3, 0)), 0.1)
    assert starts.tolist() == [0] * 4 and not len(ends) and not len(united)
