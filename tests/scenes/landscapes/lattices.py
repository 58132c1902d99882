"""Scenes on lattices of demes: stepping stones, walls, refuges. See scenes.py."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from .coalescent import Epoch, draw_sites
from .truth import distances_of_times, expected_times, route_lengths

#: Diploid individuals of a deme, and of a refuge.
DEME, REFUGE = 100, 1_000


def _lattice(rows: int, columns: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Places (n_demes, 2) as x, y, and pairs of neighbours, of a rectangle of demes."""
    place = np.array([(x, y) for y in range(rows) for x in range(columns)], np.float64)
    near = np.argwhere(np.triu(cdist(place, place) == 1))
    return place, [(int(a), int(b)) for a, b in near]


def _on_lattice(rng, place, epochs, per_deme, sites, truth, structure="continuous") -> dict:
    """People of the demes of a lattice; `per_deme` is a number or one for each deme."""
    home = np.repeat(np.arange(len(place)), per_deme)
    return {
        "structure": structure,
        "genotypes": draw_sites(epochs, home, sites, rng),
        "populations": np.array([f"deme{d:03d}" for d in home]),
        "coordinates": place[home],
        "true_distance": truth[np.ix_(home, home)],
    }


def _sizes(demes: int) -> np.ndarray:
    return np.full(demes, float(DEME))


def chain(rng, demes, per_deme, migrants, sites) -> dict:
    """Stepping stones in a row. Truth: steps. PCA bends it into a horseshoe."""
    place, edges = _lattice(1, demes)
    epochs = [Epoch(0, _sizes(demes), edges, migrants / DEME)]
    return _on_lattice(rng, place, epochs, per_deme, sites, route_lengths(demes, edges))


def uneven(rng, demes, per_deme, denser, migrants, sites) -> dict:
    """A chain: every deme of its first half is sampled, every `denser`-th of the second.

    Truth: steps.
    """
    place, edges = _lattice(1, demes)
    epochs = [Epoch(0, _sizes(demes), edges, migrants / DEME)]
    deme = np.arange(demes)
    sampled = (deme < demes // 2) | ((deme - demes // 2) % denser == denser // 2)
    people = per_deme * sampled
    return _on_lattice(rng, place, epochs, people, sites, route_lengths(demes, edges))


def grid(rng, side, per_deme, migrants, sites) -> dict:
    """Stepping stones on a square. Truth: steps along edges."""
    place, edges = _lattice(side, side)
    epochs = [Epoch(0, _sizes(side**2), edges, migrants / DEME)]
    return _on_lattice(rng, place, epochs, per_deme, sites, route_lengths(side**2, edges))


def _cut(place: np.ndarray, edges: list, gap: int) -> list[tuple[int, int]]:
    """Edges that are left by a wall across the middle, but for its first `gap` rows."""
    middle = (place[:, 0].max()) / 2

    def crosses(a: int, b: int) -> bool:
        return (place[a, 0] < middle) != (place[b, 0] < middle) and place[a, 1] >= gap

    return [edge for edge in edges if not crosses(*edge)]


def wall(rng, side, per_deme, gap, migrants, sites) -> dict:
    """A grid cut in two by a wall that nobody crosses, but for `gap` rows. Truth: steps around."""
    place, edges = _lattice(side, side)
    edges = _cut(place, edges, gap)
    epochs = [Epoch(0, _sizes(side**2), edges, migrants / DEME)]
    return _on_lattice(rng, place, epochs, per_deme, sites, route_lengths(side**2, edges))


def closed_wall(rng, side, per_deme, generations, migrants, sites) -> dict:
    """A grid cut in two halves, `generations` ago. Truth: expected time to the common ancestor."""
    place, edges = _lattice(side, side)
    sizes, rate = _sizes(side**2), migrants / DEME
    epochs = [Epoch(0, sizes, _cut(place, edges, 0), rate), Epoch(generations, sizes, edges, rate)]
    truth = distances_of_times(expected_times(epochs))
    return _on_lattice(rng, place, epochs, per_deme, sites, truth)


def refuges(rng, demes, per_deme, contact, spread, apart, migrants, sites) -> dict:
    """Two refuges, and what spread from them over a chain of demes, in contact again.

    They were one population `apart` generations ago, spread `spread` generations ago, each over
    half of the demes, and met `contact` generations ago. Truth: expected time to the common
    ancestor. `populations` are the refuges (F_ST 0.27). Within each the demes differ too (0.07
    between its halves), so that two groups are the coarse truth and a finer level may find more.
    """
    place, edges = _lattice(1, demes)
    sizes, half, rate = _sizes(demes), demes // 2, migrants / DEME
    closed = [edge for edge in edges if edge != (half - 1, half)]
    home = [(d, 0 if d < half else half, 1.0) for d in range(demes) if d not in (0, half)]
    refuge = np.full(demes, float(REFUGE))
    epochs = [
        Epoch(0, sizes, edges, rate),
        Epoch(contact, sizes, closed, rate),
        Epoch(spread, refuge, moves=home),
        Epoch(apart, refuge, moves=[(half, 0, 1.0)]),
    ]
    truth = distances_of_times(expected_times(epochs))
    made = _on_lattice(rng, place, epochs, per_deme, sites, truth, "discrete")
    west = made["coordinates"][:, 0] < half
    return made | {"populations": np.where(west, "west", "east")}
