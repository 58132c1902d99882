"""Call rates of small groups of samples, with what chance allows."""

from __future__ import annotations

import numpy as np

#: Probability that a cohort or population with the lowest allowed call rate fails at a site. By
#: tests/bench/bench_call_rates.py, populations then remove at most 4 sites of 100 000 if 5 % of
#: calls are missing at random (52 at level 0.001, 1 030 at 0.01), and none at 1 %. They find all
#: sites that a population lacks whole, and 94 % of those at which half of 20 samples have no call
#: (75 % at level 1e-6).
BY_CHANCE = 0.0001


def call_rate_bound(missing: np.ndarray, n: int) -> np.ndarray:
    """Largest call rate that agrees with these missing calls of n samples: float64.

    The upper limit of a one-sided confidence interval at level 1 - BY_CHANCE (Clopper and Pearson
    1934), because among few samples a good site often misses some. 0 without any call.

    Parameters
    ----------
    missing : int array
    """
    from scipy.special import betaincinv

    values, place = np.unique(missing, return_inverse=True)
    some = (values > 0) & (values < n)
    rates = np.where(values < max(n, 1), 1.0, 0.0)
    rates[some] = betaincinv(n - values[some] + 1, values[some], 1 - BY_CHANCE)
    return rates[place]
