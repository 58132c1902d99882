"""How far two demes of a landscape are from each other: routes, and times of common ancestry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import block_array, coo_array, csc_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import expm_multiply, spsolve

from .coalescent import Epoch


def route_lengths(n_demes: int, edges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Fewest steps between demes along edges that migrants take, float64 (n_demes, n_demes)."""
    return dijkstra(_graph(n_demes, edges), directed=False)


def _graph(n_demes: int, edges: Sequence[tuple[int, int]]) -> csc_array:
    ends = np.array(edges, np.int64).reshape(-1, 2)
    return csc_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n_demes, n_demes))


def expected_times(epochs: Sequence[Epoch]) -> np.ndarray:
    """Expected generations to the common ancestor of one gene copy each of two demes.

    The pair of demes where two lineages are is a Markov chain: within an epoch its rates Q are
    constant, and the time spent before they meet is the integral of exp(Qt) 1.

    Returns
    -------
    float64 array, (n_demes, n_demes)
        On the diagonal: two gene copies of one deme.
    """
    demes = len(epochs[0].sizes)
    pairs = np.stack(np.triu_indices(demes), axis=1)
    number = np.empty((demes, demes), np.int64)
    number[tuple(pairs.T)] = number[tuple(pairs.T[::-1])] = np.arange(len(pairs))
    found = None
    for epoch, before in reversed([*pairwise([*epochs, None])]):
        rates = _pair_rates(epoch, pairs, number)
        if before is None:
            apart = connected_components(_graph(demes, epoch.edges), directed=False)[1][pairs]
            used = apart[:, 0] == apart[:, 1]  # of demes merged away, nothing is asked
            found = np.zeros(len(pairs))
            found[used] = spsolve(rates[used][:, used], -np.ones(used.sum()))
            continue
        # The exponential of [[Q, 1], [0, 0]] t holds exp(Qt) and its integral.
        ones = csc_array(np.ones((len(pairs), 1)))
        both = block_array(
            [[rates, ones], [csc_array(ones.T.shape), csc_array((1, 1))]], format="csc"
        )
        later = _moved(found[number], before.moves)[tuple(pairs.T)]
        found = expm_multiply(both * (before.start - epoch.start), np.append(later, 1.0))[:-1]
    return found[number]


def _pair_rates(epoch: Epoch, pairs: np.ndarray, number: np.ndarray) -> csc_array:
    """Rates from each pair of demes to each other; rows sum to minus the rate of meeting."""
    near: list[list[int]] = [[] for _ in epoch.sizes]
    for a, b in epoch.edges:
        near[a].append(b)
        near[b].append(a)
    entries = []
    for k, (a, b) in enumerate(pairs):
        ways = [number[to, b] for to in near[a]] + [number[a, to] for to in near[b]]
        entries += [(k, to, epoch.rate) for to in ways] + [(k, k, -epoch.rate * len(ways))]
        if a == b:
            entries.append((k, k, -1 / (2 * epoch.sizes[a])))
    rows, columns, rates = zip(*entries, strict=True)
    return coo_array((rates, (rows, columns)), (len(pairs),) * 2).tocsc()


def _moved(times: np.ndarray, moves: Sequence[tuple[int, int, float]]) -> np.ndarray:
    """Expected times just before moves, from those just after: the last move is undone first."""
    for a, b, share in reversed(moves):
        step = np.eye(len(times))
        step[a, a], step[a, b] = 1 - share, share
        # Two lineages of one deme move independently.
        times = step @ times @ step.T
    return times


def distances_of_times(times: np.ndarray) -> np.ndarray:
    """Time between demes beyond that within them, T_ab - (T_aa + T_bb) / 2; zero diagonal."""
    within = np.diagonal(times)
    return times - (within[:, None] + within) / 2
