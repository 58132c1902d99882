"""Barriers and corridors: neighbours that differ more, or less, than their distance explains.

What is expected at a distance is the study's own isolation by distance, fitted as a curve that
never falls. How far neighbours deviate from it by chance is not known from a permutation: moving
places about destroys isolation by distance itself, and a real barrier, which separates half of all
pairs, would raise its own threshold. Instead, landscapes without barriers are drawn: allele
frequencies that vary over the study's places as a Gaussian field with the fitted curve as its
variogram, sampled with the study's numbers of people. Each is analysed like the study, and the
largest deviation of any edge sets the threshold, so the chance of any false edge is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

#: Independent sites of a drawn landscape: fewest, and most, to bound the cost.
FEWEST_SITES, MOST_SITES = 30, 1_000
#: Median absolute deviation of a normal distribution with standard deviation 1.
MAD = 0.6744897501960817
#: Fewest edges whose usual deviation can be estimated.
LEAST_EDGES = 5


@dataclass(frozen=True)
class Deviations:
    """How far the edges between neighbours deviate from isolation by distance.

    Attributes
    ----------
    expected : float64 array, (n_edges,)
        Genetic distance expected at each edge's length.
    scores : float64 array, (n_edges,)
        Deviation from it, in robust standard deviations of all edges.
    p : float64 array, (n_edges,)
        Chance that any edge of a landscape without barriers deviates as far in this direction.
    kinds : list of str
        ``barrier``, ``corridor`` or empty, by edge.
    threshold : (float, float)
        Scores below the first are corridors, above the second barriers.
    """

    expected: np.ndarray
    scores: np.ndarray
    p: np.ndarray
    kinds: list[str]
    threshold: tuple[float, float]


def find_barriers(
    genetic: np.ndarray,
    ground: np.ndarray,
    sizes: np.ndarray,
    edges: np.ndarray,
    *,
    draws: int,
    error_rate: float,
    rng: np.random.Generator,
) -> Deviations | None:
    """Edges of a neighbour graph that deviate from isolation by distance.

    Parameters
    ----------
    genetic : float64 array, (n_places, n_places)
        `GeneticDistances.differences`, finite.
    ground : float64 array, (n_places, n_places)
    sizes : int array, (n_places,)
        People of each place.
    edges : int array, (n_edges, 2)
    draws : int
        Landscapes without barriers.
    error_rate : float
        Chance of any false edge, half of it in each direction.

    Returns
    -------
    Deviations or None
        None with fewer than LEAST_EDGES edges, or where they do not vary.
    """
    # As many landscapes may reach the threshold as leave p at most at half the error rate.
    allowed = int((draws + 1) * error_rate / 2 + 1e-9)
    if not allowed:
        raise ValueError(f"{draws} landscapes cannot show a chance of {error_rate / 2}")
    if len(edges) < LEAST_EDGES:
        return None
    curve = _Curve(ground)
    noise = 1 / (4 * sizes)
    fitted = curve.fit(genetic)
    deviations, expected = _deviations(genetic, fitted, noise, edges)
    spread = np.median(np.abs(deviations - np.median(deviations))) / MAD
    if not spread > 0:
        return None
    sites = int(np.clip(2 / spread**2, FEWEST_SITES, MOST_SITES))
    scores = _standardised(deviations)
    least, most = np.empty(draws), np.empty(draws)
    for k, drawn in enumerate(_landscapes(fitted, sizes, sites, draws, rng)):
        found = _standardised(_deviations(drawn, curve.fit(drawn), noise, edges)[0])
        least[k], most[k] = found.min(), found.max()
    above = 1 + (most[:, None] >= scores).sum(axis=0)
    below = 1 + (least[:, None] <= scores).sum(axis=0)
    high, low = above / (draws + 1), below / (draws + 1)
    threshold = (float(np.sort(least)[allowed - 1]), float(np.sort(most)[-allowed]))
    kinds = [
        "barrier" if score > threshold[1] else "corridor" if score < threshold[0] else ""
        for score in scores
    ]
    return Deviations(expected, scores, np.minimum(high, low), kinds, threshold)


class _Curve:
    """Isolation by distance as a curve that never falls (isotonic regression on all pairs)."""

    def __init__(self, ground: np.ndarray) -> None:
        self.n = len(ground)
        self.upper = np.triu_indices(self.n, 1)
        # Pairs at the same distance, despite rounding, share one value.
        rounded = np.round(ground[self.upper] / ground.max(), 9)
        _, self.level, self.count = np.unique(rounded, return_inverse=True, return_counts=True)

    def fit(self, genetic: np.ndarray) -> np.ndarray:
        """Expected genetic distances, float64 (n, n), never negative, zero diagonal."""
        from scipy.optimize import isotonic_regression

        means = np.bincount(self.level, genetic[self.upper]) / self.count
        curve = isotonic_regression(means, weights=self.count.astype(float)).x
        fitted = np.zeros((self.n, self.n))
        fitted[self.upper] = np.maximum(curve, 0.0)[self.level]
        return fitted + fitted.T


def _deviations(
    genetic: np.ndarray, fitted: np.ndarray, noise: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Deviations of the edges, relative to what scatters, and what is expected.

    A distance over n independent sites scatters by sqrt(2 / n) times itself and the noise of
    finite samples, 1 / (4 people) for each place.
    """
    a, b = edges.T
    expected = fitted[a, b]
    return (genetic[a, b] - expected) / (expected + noise[a] + noise[b]), expected


def _standardised(deviations: np.ndarray) -> np.ndarray:
    middle = np.median(deviations)
    spread = np.median(np.abs(deviations - middle)) / MAD
    return (deviations - middle) / (spread if spread > 0 else np.inf)


def _landscapes(
    fitted: np.ndarray, sizes: np.ndarray, sites: int, draws: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Genetic distances of landscapes whose expected distances are `fitted`.

    Positions x of the places, one coordinate a site, have the covariance whose squared distances
    are `fitted` (double centring; negative eigenvalues are cut off). Each is measured with the
    error of a mean over the place's people, of variance 1/4 each, and the bias that this adds is
    subtracted as in `genetic.genetic_distances`, with the variance estimated from these people.
    """
    n = len(fitted)
    centred = fitted - fitted.mean(axis=0) - fitted.mean(axis=1)[:, None] + fitted.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    root = vectors * np.sqrt(np.maximum(values, 0))
    freedom = np.maximum(sizes - 1, 1) * sites
    for _ in range(draws):
        x = root @ rng.standard_normal((n, sites))
        x += rng.standard_normal((n, sites)) / np.sqrt(4 * sizes)[:, None]
        estimated = np.where(sizes > 1, rng.chisquare(freedom) / freedom, 1.0) / (4 * sizes)
        norms = (x**2).sum(axis=1)
        squared = (norms[:, None] + norms - 2 * x @ x.T) / sites
        yield squared - estimated[:, None] - estimated
