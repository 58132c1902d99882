"""Groups that live in all places, in shares that differ by place, with and without isolation."""

from __future__ import annotations

import numpy as np


def draw_mixtures(
    seed: int,
    *,
    groups: int = 2,
    places: int = 12,
    per_place: int | list[int] = 10,
    sites: int = 3_000,
    drift: float = 0.1,
    isolation: float = 0.0,
    gradient: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Genotypes of samples in places along a line.

    Parameters
    ----------
    per_place : int or list
        Samples of each place.
    drift : float
        Standard deviation of a group's allele frequencies about the common ones.
    isolation : float
        Standard deviation of the step of allele frequencies from each place to the next.
    gradient : bool
        Whether the share of the last group grows along the line; it is drawn by place if not.

    Returns
    -------
    genotypes : int8 array, (sites, n)
    home, group : int64 arrays, (n,)
        Place from 0 on, group from 1 on.
    """
    rng = np.random.default_rng([seed, groups, places])
    base = rng.uniform(0.2, 0.8, (sites, 1))
    home = np.repeat(np.arange(places), per_place)
    if groups == 1:
        shares = np.ones((places, 1))
    elif gradient:
        last = np.linspace(0, 1, places)
        shares = np.full((places, groups), 1 / (groups - 1)) * (1 - last[:, None])
        shares[:, -1] = last
    else:
        shares = rng.dirichlet(np.ones(groups), places)
    group = np.array([1 + rng.choice(groups, p=shares[place]) for place in home])
    shift = rng.normal(0, drift, (sites, groups))[:, group - 1]
    shift = shift + np.cumsum(rng.normal(0, isolation, (sites, places)), axis=1)[:, home]
    genotypes = rng.binomial(2, np.clip(base + shift, 0.02, 0.98)).astype(np.int8)
    return genotypes, home, group
