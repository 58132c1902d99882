"""Independent sites of people from a landscape: the structured coalescent, one tree a site.

msprime takes 50 to 500 ms for the tree of 800 gene copies on a grid of 100 demes, so that a scene
of 4 000 unlinked sites would take minutes. This is the same process (Hudson 1990; Kelleher and
Lohse 2020) without recombination, compiled, a few hundred microseconds a tree.
tests/scenes/landscapes/test_coalescent.py compares it with msprime.

Each site has a tree of its own, and one mutation on it: of the branches whose mutation would be
common enough one is drawn, with a chance proportional to its length (`ms -s 1`, Hudson 2002). So
sites are unlinked exactly, and no site is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Epoch:
    """What holds from `start` generations ago backwards in time.

    Parameters
    ----------
    start : float
        Generations ago; 0 for the first epoch.
    sizes : float array, (n_demes,)
        Diploid individuals of each deme.
    edges : sequence of (int, int)
        Pairs of demes that exchange migrants.
    rate : float
        Share of a deme's gene copies that come from a given neighbour in each generation.
    moves : sequence of (int, int, float)
        ``(a, b, share)``: at `start`, each gene copy in deme a goes to deme b with this chance
        (1 where a population splits off its ancestor; less for a pulse of admixture). In order.
    """

    start: float
    sizes: np.ndarray
    edges: Sequence[tuple[int, int]] = ()
    rate: float = 0.0
    moves: Sequence[tuple[int, int, float]] = ()


def draw_sites(
    epochs: Sequence[Epoch],
    start: np.ndarray,
    n_sites: int,
    rng: np.random.Generator,
    *,
    min_maf: float = 0.05,
    share: np.ndarray | None = None,
) -> np.ndarray:
    """Genotypes of diploid people at unlinked sites.

    Parameters
    ----------
    start : int array, (n,)
        Deme in which each person lives.
    share : float array (n,), optional
        Admixture: each gene copy of a person starts, at each site, in deme 1 with this chance, in
        deme 0 otherwise; `start` does not count then.
    min_maf : float
        Of all gene copies that are drawn, the rarer allele has at least this share.

    Returns
    -------
    int8 array, (n_sites, n)
        Number of derived alleles: 0, 1, 2.
    """
    if not _all_meet(epochs, {0, 1} if share is not None else set(map(int, start))):
        raise ValueError("some demes never meet; connect them, or merge them in the past")
    tables = _tables(epochs)
    pair = np.array([1 / (2 * np.asarray(epoch.sizes, np.float64)) for epoch in epochs])
    moves = np.array(
        [(k, *move) for k, epoch in enumerate(epochs) for move in epoch.moves], np.float64
    ).reshape(-1, 4)
    times = np.array([epoch.start for epoch in epochs] + [np.inf], np.float64)
    rates = np.array([epoch.rate for epoch in epochs], np.float64)
    copies = np.repeat(np.asarray(start, np.int64), 2)
    chance = np.full(len(copies), -1.0) if share is None else np.repeat(share, 2).astype(np.float64)
    sites = np.zeros((n_sites, len(start)), np.int8)
    _draw(times, tables, rates, pair, moves, copies, chance, min_maf, sites, rng)
    return sites


def _all_meet(epochs: Sequence[Epoch], where: set[int]) -> bool:
    """Whether lineages that start in the demes `where` end in demes that are connected."""
    for epoch in epochs:
        for a, b, share in epoch.moves:
            if a in where:
                where = (where | {b}) - ({a} if share >= 1 else set())
        where = _reached(where, epoch.edges)
    return where <= _reached({min(where)}, epochs[-1].edges)


def _reached(where: set[int], edges: Sequence[tuple[int, int]]) -> set[int]:
    """Demes to which migrants from the demes `where` come in the end."""
    while (grown := where | {d for edge in edges for d in edge if where & {*edge}}) != where:
        where = grown
    return where


def _tables(epochs: Sequence[Epoch]) -> np.ndarray:
    """Neighbours of each deme, (n_epochs, n_demes, slots), filled up with the deme itself.

    A lineage chooses a slot at random; where it finds its own deme it stays. So all lineages
    leave at one rate, and none has to be weighed.
    """
    demes = len(epochs[0].sizes)
    lists = [[[] for _ in range(demes)] for _ in epochs]
    for near, epoch in zip(lists, epochs, strict=True):
        for a, b in epoch.edges:
            near[a].append(b)
            near[b].append(a)
    slots = max([len(one) for near in lists for one in near] + [1])
    return np.array([[one + [d] * (slots - len(one)) for d, one in enumerate(n)] for n in lists])


@njit(cache=True)
def _draw(times, tables, rates, pair, moves, copies, chance, min_maf, sites, rng):
    n, demes, slots = len(copies), pair.shape[1], tables.shape[2]
    parent, age, below = np.empty(2 * n, np.int64), np.empty(2 * n), np.empty(2 * n, np.int64)
    child = np.empty((2 * n, 2), np.int64)
    member, count = np.empty((demes, n), np.int64), np.empty(demes, np.int64)
    node, home, place = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    stack = np.empty(2 * n, np.int64)
    site = 0
    while site < len(sites):
        count[:] = 0
        for i in range(n):
            d = copies[i]
            if chance[i] >= 0:
                d = 1 if rng.random() < chance[i] else 0
            node[i], home[i], place[i] = i, d, count[d]
            member[d, count[d]] = i
            count[d] += 1
            age[i], below[i] = 0.0, 1
        k, now, epoch, made = n, 0.0, 0, n
        leave, meet = slots * rates[0], _meeting(count, pair[0])
        while k > 1:
            total = meet + k * leave
            wait = rng.standard_exponential() / total if total > 0 else np.inf
            if now + wait >= times[epoch + 1]:
                epoch += 1
                now = times[epoch]
                for move in range(len(moves)):
                    if moves[move, 0] == epoch:
                        for i in range(k):
                            if home[i] == moves[move, 1] and rng.random() < moves[move, 3]:
                                _move(i, int(moves[move, 2]), home, place, member, count)
                leave, meet = slots * rates[epoch], _meeting(count, pair[epoch])
                continue
            now += wait
            point = rng.random() * total
            if point >= meet:  # one lineage migrates
                point = (point - meet) / leave
                i = min(int(point), k - 1)
                a = home[i]
                b = tables[epoch, a, min(int((point - i) * slots), slots - 1)]
                if a != b:
                    # Pairs lost in a and won in b.
                    meet += count[b] * pair[epoch, b] - (count[a] - 1) * pair[epoch, a]
                    _move(i, b, home, place, member, count)
                continue
            d = _deme_of_meeting(point, count, pair[epoch])
            if d < 0:  # `meet` is 0 but for rounding
                meet = 0.0
                continue
            first = int(rng.random() * count[d])
            second = int(rng.random() * (count[d] - 1))
            second += second >= first
            i, j = member[d, first], member[d, second]
            child[made, 0], child[made, 1] = node[i], node[j]
            parent[node[i]] = parent[node[j]] = made
            age[made], below[made] = now, below[node[i]] + below[node[j]]
            node[i] = made
            made += 1
            _leave(j, home, place, member, count)
            k -= 1
            if j != k:  # the last lineage takes the number that became free
                node[j], home[j], place[j] = node[k], home[k], place[k]
                member[home[j], place[j]] = j
            meet = _meeting(count, pair[epoch])
        length = 0.0
        for b in range(made - 1):
            if min(below[b], n - below[b]) >= min_maf * n:
                length += age[parent[b]] - age[b]
        if length == 0:
            continue
        point, found = rng.random() * length, -1
        for b in range(made - 1):
            if min(below[b], n - below[b]) >= min_maf * n:
                found = b
                point -= age[parent[b]] - age[b]
                if point < 0:
                    break
        stack[0], left = found, 1
        while left:
            left -= 1
            b = stack[left]
            if b < n:
                sites[site, b // 2] += 1
            else:
                stack[left], stack[left + 1] = child[b, 0], child[b, 1]
                left += 2
        site += 1


@njit(cache=True)
def _meeting(count, pair):
    """Rate at which any two lineages of one deme meet."""
    total = 0.0
    for d in range(len(count)):
        total += count[d] * (count[d] - 1) / 2 * pair[d]
    return total


@njit(cache=True)
def _deme_of_meeting(point, count, pair):
    """The deme in which the sum of the rates of meeting reaches `point`; -1 if there is none."""
    found = -1
    for d in range(len(count)):
        if count[d] > 1:
            found = d
            point -= count[d] * (count[d] - 1) / 2 * pair[d]
            if point < 0:
                break
    return found


@njit(cache=True)
def _leave(i, home, place, member, count):
    d = home[i]
    count[d] -= 1
    last = member[d, count[d]]
    member[d, place[i]] = last
    place[last] = place[i]


@njit(cache=True)
def _move(i, to, home, place, member, count):
    _leave(i, home, place, member, count)
    home[i], place[i] = to, count[to]
    member[to, count[to]] = i
    count[to] += 1
