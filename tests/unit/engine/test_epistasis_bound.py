"""The bound of GPU scans never rules out a combination that could be among the best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

from popdesic.engine.base import ScanData
from popdesic.engine.gpu.epistasis_bound import (
    MAX_WEIGHT,
    MOST_OFF_NATS,
    Bound,
    is_k2,
    need_of,
    score_scale,
)
from popdesic.epistasis.scores import score_tables


def device_divergences(bound: Bound, n: np.ndarray, k: np.ndarray) -> tuple[float, float]:
    """Divergences as in kernels/epistasis/cells.cuh, from sizes and cases of cells, in float64.

    `Bound` takes the polynomial of each cell, `RangeBound` the ends of the range of u.
    """
    fields, least = bound.fields(), np.maximum(n, 1)
    excess = k - fields["r"] * n
    if bound.weights is not None:
        case, control = np.array([fields["weights"] & 0xFF, fields["weights"] >> 8]).astype(np.int8)
        excess = int(case) * k + int(control) * (n - k)
    u = excess / least

    def polynomial(u):
        return fields["q0"] + fields["q1"] * u + fields["q2"] * u**2

    low, high = min(0.0, u.min()), max(0.0, u.max())
    phi = max(
        min(polynomial(low), fields["q0"] + fields["low_slope"] * low),
        min(polynomial(high), fields["q0"] + fields["high_slope"] * high),
    )
    return (excess * u * polynomial(u)).sum(), (excess * u).sum() * phi


def device_sizes(n: np.ndarray) -> float:
    """The device's lower bound of half the sum of ln(max(n, 1))."""
    bits = np.maximum(n, 1).astype(np.float32).view(np.uint32).astype(np.int64) - 0x3F800000
    return 0.5 * math.log(2) / 2**23 * float(bits.sum())


def test_device_logarithms_are_lower_bounds():
    rng = np.random.default_rng()
    for _ in range(200):
        n = rng.integers(0, rng.choice([2, 9, 100, 60_000], 27))
        exact = 0.5 * np.log(np.maximum(n, 1)).sum()
        assert exact - 27 * 0.5 * math.log(2) * 0.0861 <= device_sizes(n) <= exact + 1e-9


@pytest.mark.parametrize("weighted", [False, True])
def test_bound_is_below_the_cost(weighted):
    """Random and extreme tables."""
    rng = np.random.default_rng(11)
    for score in ("k2", "mutual_information"):
        for share in (0.02, 0.3, 0.5, 0.8):
            n = rng.integers(0, rng.choice([2, 5, 40, 400], (3000, 27)))
            cases = rng.binomial(n, rng.choice([share, 0.0, 1.0, 0.5], (3000, 27)))
            for table, k in zip(n, cases, strict=True):
                total, all_cases = int(table.sum()), int(k.sum())
                if not 0 < all_cases < total:
                    continue
                f, g = score_tables(score, total)
                cost = (f[table] - g[k] - g[table - k]).sum() - (
                    f[total] - g[all_cases] - g[total - all_cases]
                )
                nats = cost / 2.0**40
                bound = Bound.of(all_cases / total)
                if weighted and (bound := Bound.weighted((total - all_cases, all_cases))) is None:
                    continue
                divergences, r = device_divergences(bound, table, k), bound.r
                need = need_of(nats, score == "k2", (total - all_cases, all_cases), r, 27)
                if score == "k2":
                    need += device_sizes(table)
                assert min(divergences) >= need
                if score == "k2":  # the same table, with an unknown part of it left out
                    classes = (total - all_cases + 3, all_cases + 2)
                    need = need_of(nats, True, classes, r, 27, (3, 2))
                    need += device_sizes(table)
                    assert min(divergences) >= need


@pytest.mark.parametrize("share", [0.0, 0.003, 0.2, 0.5, 0.71, 1.0])
@pytest.mark.parametrize("weights", [None, (1, 1), (5, 127), (127, 1)])
def test_polynomial_is_above_the_divergence(share, weights):
    bound = Bound.of(share, weights)
    r = bound.r
    p = np.concatenate([np.linspace(0, 1, 2001), r + np.geomspace(1e-6, 1e-3, 50)])
    p = p[p <= 1]
    kl, ours = rel_entr(p, r) + rel_entr(1 - p, 1 - r), bound.divergence(p)
    assert (ours >= kl - 1e-12).all()
    u = p - r
    chords = bound.q[0] + np.where(u < 0, *bound.slopes) * u
    assert (chords * u**2 >= kl - 1e-12).all()
    assert ours[0] == pytest.approx(kl[0], rel=2e-6) or ours[2000] == pytest.approx(
        kl[2000], rel=2e-6
    )


def test_weights_approximate_the_share_of_cases():
    for classes in ((3072, 2048), (131072, 131072), (9000, 1000), (40, 60), (300_000, 200_000)):
        bound, share = Bound.weighted(classes), classes[1] / sum(classes)
        assert bound.r == pytest.approx(share, abs=0.01)
        assert max(bound.weights) <= MAX_WEIGHT
        assert max(bound.weights) * 65535 < 2**24  # exact in float32
        kl = rel_entr(share, bound.r) + rel_entr(1 - share, 1 - bound.r)
        assert sum(classes) * (bound.divergence(share) - kl) <= MOST_OFF_NATS
    # small weights cannot express one case in a thousand, unless there are few samples
    assert Bound.weighted((500_000, 500)) is None
    assert Bound.weighted((100, 1)) is not None


@pytest.mark.parametrize("score", ["k2", "mutual_information"])
@pytest.mark.parametrize("n_samples", [1, 2, 7, 4000])
def test_scale_of_the_tables_is_found(score, n_samples):
    rank = np.arange(1, dtype=np.int32)
    data = ScanData((), *score_tables(score, n_samples), rank)
    assert is_k2(data) == (score == "k2")
    scale = score_scale(data)
    assert scale == 1.0 or math.log2(scale).is_integer()
    assert data.total[-1] / scale == pytest.approx(
        math.lgamma(n_samples + 2) if score == "k2" else n_samples * math.log(n_samples), abs=1e-9
    )


def test_other_tables_are_refused():
    rank = np.arange(1, dtype=np.int32)
    squares = np.arange(50, dtype=np.int64) ** 2
    with pytest.raises(ValueError, match="K2 and mutual information alone"):
        score_scale(ScanData((), squares, squares, rank))


def test_without_a_cutoff_everything_passes():
    assert need_of(math.inf, True, (10, 10), 0.5, 27) < -1e38
