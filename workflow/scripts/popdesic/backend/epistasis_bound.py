"""The bound that GPU scans rule combinations out by, and what the device needs to know of it.

kernels/epistasis_cells.cuh computes it and has the proof.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, xlogy

from .base import ScanData

#: The bound may miss its exact value by this much, in nats, beside its relative slack.
MARGIN_NATS = 2.0**-6


def bound_polynomial(share: float) -> tuple[float, float, float, float]:
    """r, q0, q1, q2 with KL(p || r) <= u^2 (q0 + q1 u + q2 u^2), u = p - r, for all p in [0, 1].

    r is `share` in float32 (kernels/epistasis_cells.cuh has the proof).
    """
    r = float(np.float32(min(max(share, 1e-4), 1 - 1e-4)))
    q0 = 0.5 / r + 0.5 / (1 - r)
    q1 = (1 / (1 - r) ** 2 - 1 / r**2) / 6
    ends = ((-r, -math.log1p(-r)), (1 - r, -math.log(r)))
    q2 = max((kl / u**2 - q0 - q1 * u) / u**2 for u, kl in ends)
    return r, q0 * (1 + 1e-6), q1, q2 * (1 + 1e-6)


def need_of(
    cutoff: float,
    k2: bool,
    classes: tuple[int, int],
    share: float,
    n_cells: int,
    missing: tuple[int, int] = (0, 0),
) -> float:
    """What the divergence of a table must reach for its cost to be at most `cutoff` nats.

    Half the sum of ln(max(n, 1)) over the cells, which the K2 score needs, is added on the device.
    `missing`: at most so many samples of each class are left out of a table. Then the one cell of
    all n' = n0' + n1' samples costs ln((n' + 1) C(n', n1')), at most ln(n + 1) if a class is
    empty, else n' H(n1'/n') + ln((n' + 1)^2 n' / (2 pi n0' n1')) / 2 (lemma 7 of MacWilliams and
    Sloane), and n' H(n1'/n') is at most what the linear terms of its samples sum to.
    """
    n0, n1 = classes
    if cutoff == math.inf:
        return -3e38
    need = -cutoff - MARGIN_NATS
    if k2 and any(missing):
        n = n0 + n1
        left = [size - out for size, out in zip(classes, missing, strict=True)]
        ways = math.log(n / (2 * math.pi * max(1, left[0]) * max(1, left[1]))) / 2
        if min(left) < 1:
            ways = max(ways, 0.0)
        need -= math.log(n + 1) + ways + n_cells / 2 * math.log(2)
    elif k2:
        whole = gammaln(n0 + n1 + 2) - gammaln(n0 + 1) - gammaln(n1 + 1)
        linear = -n1 * math.log(share) - n0 * math.log1p(-share)
        need += linear - whole - n_cells / 2 * math.log(2)
    return need


def is_k2(data: ScanData) -> bool:
    """K2 has two different tables, the mutual information one."""
    return not np.array_equal(data.total, data.part)


def score_scale(data: ScanData) -> float:
    """The power of two that the score tables are scaled by.

    Raises
    ------
    ValueError
        The tables are neither lnGamma(n + 2), lnGamma(n + 1) nor n ln n twice.
    """
    # the smallest entries and some of all sizes
    n = np.unique(np.geomspace(1, len(data.total), 1000).astype(int)) - 1
    if n[-1] == 0:
        return 1.0
    exact = (gammaln(n + 2), gammaln(n + 1)) if is_k2(data) else (xlogy(n, n), xlogy(n, n))
    entry = min(2, n[-1])  # where both scores are above 0, or the only entry
    entry = n[-1] if not exact[0][n == entry].any() else entry
    known = exact[0][n == entry][0]
    if not known:
        return 1.0
    scale = 2.0 ** round(math.log2(data.total[entry] / known))
    for table, right in zip((data.total, data.part), exact, strict=True):
        if not np.allclose(table[n] / scale, right, rtol=1e-9, atol=2 / scale):
            raise ValueError("the bound of a GPU scan is for K2 and mutual information alone")
    return scale
