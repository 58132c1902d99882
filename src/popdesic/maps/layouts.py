"""What an optimiser of UMAP reads, in integers: `lay_out.lay_out`.

All coordinates, forces, shares of edges and steps are whole numbers of the units below, so that the
sums of an epoch do not depend on their order (`maps.umap_epoch_cpu` has the formulas).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Fractional bits of coordinates, of the tables' forces, of shares of edges and of steps.
POINT_BITS, FORCE_BITS, SHARE_BITS, STEP_BITS = 20, 24, 20, 16
#: Intervals of a table between two powers of two (their bits), and bits of a place in one.
INTERVAL_BITS, PLACE_BITS = 5, 16
#: Largest force in one coordinate, as in umap-learn, and largest coordinate.
FARTHEST, BOUND = 4 << POINT_BITS, 1 << 29
#: Highest bit of a squared distance.
TOP_BIT = 62
#: Fractional bits of sums of densMAP's spreads, and of logarithms of local radii.
SPREAD_BITS, RADIUS_BITS = 32, 16
#: What is added to a local radius before its logarithm is taken (umap-learn's 1e-8), in units of
#: squared distances.
LEAST_RADIUS = round(1e-8 * 2 ** (2 * POINT_BITS))
#: What is added to the variance of the logarithms of local radii, as in umap-learn.
VARIANCE_SHIFT = 0.1


@dataclass(frozen=True)
class Density:
    """What densMAP adds to a map (Narayan, Berger and Cho 2021): `maps.umap_epoch_cpu`.

    Attributes
    ----------
    radii : int64 array, (n,)
        Logarithms of the local radii among the samples, standardised, units 2**-RADIUS_BITS.
    nearness, spread : int64 arrays
        phi = 1 / (1 + a d2^b) and phi d2 at `force_positions`, in units of 2**-FORCE_BITS and
        2**-SPREAD_BITS.
    logarithms : int64 array
        Natural logarithms of `force_positions`, in units of 2**-RADIUS_BITS.
    by_radius, by_nearness : int64 arrays
        What an edge's length changes in the radius of an end: phi (1 - b (1 - phi)) over the radius
        and phi a b d2^(b - 1) / (1 + a d2^b), in units of 2**-FORCE_BITS.
    strength : float
        lambda times the mean weight of a sample's edges, over the largest weight.
    first : int
        The first epoch that it takes part in.
    """

    radii: np.ndarray
    nearness: np.ndarray
    spread: np.ndarray
    logarithms: np.ndarray
    by_radius: np.ndarray
    by_nearness: np.ndarray
    strength: float
    first: int

    def weights(self, sums: tuple[int, int, int]) -> tuple[float, float, float]:
        """What an epoch needs of all points together.

        Parameters
        ----------
        sums : tuple of int
            Of the logarithms of the radii on the map, of their squares, and of their products with
            `radii`; exact.

        Returns
        -------
        mean, slope, factor : float
            Mean of the logarithms, cov(re, R) / s2, and 2 strength / s in units of the tables.
        """
        (total, squares, products), n = sums, len(self.radii)
        unit = 2.0**-RADIUS_BITS
        variance = (n * squares - total * total) / (n * n) * unit**2 + VARIANCE_SHIFT
        slope = products / (n - 1) * unit**2 / variance
        return total / n * unit, slope, 2 * self.strength / math.sqrt(variance) * 2.0**-FORCE_BITS


@dataclass(frozen=True)
class Layout:
    """A map before its first epoch.

    Attributes
    ----------
    points : int64 array, (n, 2)
        Where points start, in units of 2**-POINT_BITS, within BOUND.
    starts, ends : int64 arrays, (n + 1,) and (n_edges,)
        The graph in rows; each edge is in the rows of both its ends.
    shares : int64 array, (n_edges,)
        Weight of each edge over the largest one, in units of 2**-SHARE_BITS.
    attraction, repulsion : int64 arrays
        Forces over squared distance at `force_positions`, in units of 2**-FORCE_BITS.
    steps : int64 array, (n_epochs,)
        Length of the steps of each epoch, in units of 2**-STEP_BITS.
    draws : int
        Points drawn to repel an end of each active edge.
    seed : int
    density : Density, optional
        Of a densMAP.
    """

    points: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    shares: np.ndarray
    attraction: np.ndarray
    repulsion: np.ndarray
    steps: np.ndarray
    draws: int
    seed: int
    density: Density | None = None


def force_positions() -> np.ndarray:
    """Squared distances at which the tables of forces hold values, in units of the map.

    float64 (TOP_BIT * 2**INTERVAL_BITS + 1,); between them the kernels interpolate.
    """
    steps = 1 + np.arange(1 << INTERVAL_BITS) / (1 << INTERVAL_BITS)
    found = steps * 2.0 ** np.arange(TOP_BIT)[:, None]
    return np.append(found.ravel(), 2.0**TOP_BIT) * 2.0 ** (-2 * POINT_BITS)
