"""The bound of GPU scans never rules out a combination that could be among the best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

from popdesic.epistasis.bound import (
    MAX_WEIGHT,
    MOST_OFF_NATS,
    Bound,
    K2Terms,
    Lines,
    growth,
    is_k2,
    need_of,
    score_scale,
)
from popdesic.epistasis.layout import LOG_SHIFT
from popdesic.epistasis.scan_data import ScanData
from popdesic.epistasis.scores import scale_bits, score_tables, table_cost


def device_values(bound: Bound, terms: K2Terms | None, n: np.ndarray, k: np.ndarray) -> list[float]:
    """Values of `Bound` and `CloseBound` as in kernels/epistasis/cells.cuh, in float64.

    From sizes and cases of cells.
    """
    fields, m = bound.fields(terms.occupied if terms else 0.0), n - k
    logs = growth(n).sum() if terms and terms.logs else 0.0
    excess = k - fields["r"] * n
    if bound.weights is not None:
        case, control = np.array([fields["weights"] & 0xFF, fields["weights"] >> 8]).astype(np.int8)
        excess = int(case) * k + int(control) * m

    def on_line(name):
        cases, controls = fields[f"{name}_cases"], fields[f"{name}_controls"]
        if bound.weights is not None:
            assert fields[f"{name}_bytes"] == cases + 256 * controls < 1 << 16
        return cases * k + controls * m + 1

    def value(name, line):
        held = ((excess**2 + fields[f"{name}_empty"]) / line).sum()
        return fields[f"{name}_steep"] * held - logs

    both = np.minimum(on_line("low"), on_line("high"))
    return [value("of_whole", on_line("whole")), value("of_parts", both)]


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information", "gini"])
def test_bound_is_below_the_cost(score):
    """Random and extreme tables."""
    rng = np.random.default_rng(11)
    for share in (0.02, 0.3, 0.5, 0.8):
        n = rng.integers(0, rng.choice([2, 5, 40, 400], (40, 27)))
        n[:4, 2:], n[:2, 1], n[:4, 0] = 0, 0, (400, 3000, 900, 2000)  # few cells, near the bound
        cases = rng.binomial(n, rng.choice([share, 0.0, 1.0, 0.5], (40, 27)))
        cases[:4] = np.rint(share * n[:4])
        for table, k in zip(n, cases, strict=True):
            total, all_cases = int(table.sum()), int(k.sum())
            if not 0 < all_cases < total:
                continue
            for left_out in ((0, 0), (3, 2)):  # of controls and cases: they lack a genotype
                classes = total - all_cases + left_out[0], all_cases + left_out[1]
                tables = score_tables(score, *classes)
                nats = int(table_cost(np.stack([table - k, k]), *tables)) / 2.0**40
                terms = K2Terms.of(*tables, 2.0**40, 27) if "k2" in score else None
                gini, share_of_cases = score == "gini", classes[1] / sum(classes)
                for bound in (
                    Bound.of(share_of_cases, gini=gini),
                    Bound.weighted(classes, gini),
                ):
                    if bound is None:
                        continue
                    need = need_of(nats, terms, classes, bound.r, 27, left_out)
                    assert min(device_values(bound, terms, table, k)) >= need


@pytest.mark.parametrize("score", ["k2", "k2_excess"])
@pytest.mark.parametrize("classes", [(1, 1), (1, 9), (40, 60), (3000, 2000), (90_000, 10_000)])
def test_line_below_what_k2_adds(classes, score):
    """Of all cells: cost and divergence of n samples, k of them cases; equal for the best k."""
    total, part = score_tables(score, *classes)
    bits = scale_bits(sum(classes))
    terms = K2Terms.of(total, part, 2.0**bits, 9)
    rng, r = np.random.default_rng(1), classes[1] / sum(classes)
    sizes = np.unique([*range(1, min(30, sum(classes))), *rng.integers(1, sum(classes) + 1, 20)])
    for n in sizes:
        k = np.arange(n + 1)
        cost = (total[n] - part[k] - part[n - k]) / 2.0**bits
        divergence = n * (rel_entr(k / n, r) + rel_entr(1 - k / n, 1 - r))
        linear = -k * math.log(r) - (n - k) * math.log1p(-r)
        b = cost - linear + divergence
        line = terms.occupied + terms.person * n
        line += float(growth(np.array([n]))[0]) * terms.logs
        assert b.min() >= line - 1e-6
    if classes == (3000, 2000):  # near the line for large cells, and it helps
        assert b.min() < line + 0.2 and terms.logs == (score == "k2")
        assert terms.occupied > (-0.1 if score == "k2" else 0.3)


def test_growth_is_near_the_logarithm():
    n = np.concatenate([np.arange(5000), np.geomspace(5000, 2**24, 999).astype(int)])
    assert growth(np.zeros(1))[0] == 0
    assert abs(np.log(1 + 2 * n / 3) / 2 - growth(n)).max() < 0.03
    assert 27 * int((np.float32(2**25 + 3).view(np.int32) - (64 << 24)) >> LOG_SHIFT) < 2**32


@pytest.mark.parametrize(("score", "most"), [("k2", 0.04), ("k2_excess", 0.065)])
def test_counted_cells_make_the_bound_of_triples_useful(score, most):
    """Null tables of 27 cells: how many reach the divergence that a cost of 1 in 500 needs."""
    rng, classes = np.random.default_rng(2), (2048, 2048)
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.5, (2000, 3, 1)), (2000, 3, sum(classes)))
    cells = genotypes.transpose(0, 2, 1) @ [9, 3, 1]
    n, k = (
        np.stack([np.bincount(c, minlength=27) for c in part]) for part in (cells, cells[:, 2048:])
    )
    tables = score_tables(score, *classes)
    terms, bound = K2Terms.of(*tables, 2.0**40, 27), Bound.weighted(classes)
    cost = table_cost(np.stack([n - k, k]), *tables) / 2.0**40
    need = need_of(float(np.quantile(cost, 0.002)), terms, classes, bound.r, 27)
    values = [device_values(bound, terms, *one) for one in zip(n, k, strict=True)]
    first, close = (np.array(values) >= need).mean(axis=0)
    assert 0.002 <= close < most < first < 0.3


def divergence(lines: Lines, controls: np.ndarray, cases: np.ndarray, r: float) -> np.ndarray:
    """What cells are bounded by, without the slack of float32."""
    line = np.min([one.controls * controls + one.cases * cases for one in lines.lines], axis=0)
    return lines.steep * (cases - r * (controls + cases)) ** 2 / (line + 1)


@pytest.mark.parametrize("share", [0.0, 0.003, 0.2, 0.5, 0.71, 1.0])
@pytest.mark.parametrize("weights", [None, (1, 1), (5, 127), (127, 1), (64, 63)])
def test_lines_are_below(share, weights):
    """Cells of any size; two lines are close to the divergence, and exact at its ends."""
    bound = Bound.of(share, weights)
    r, n = bound.r, 1000.0
    p = np.concatenate([np.linspace(0, 1, 2001), r + np.geomspace(1e-6, 1e-3, 50)])
    p = p[p <= 1]
    kl = n * (rel_entr(p, r) + rel_entr(1 - p, 1 - r))
    unit = sum(weights or (1,)) ** 2
    for made in (bound.whole, bound.parts):
        for size in (1.0, 3.0, n):
            ours = unit * divergence(made, size * (1 - p), size * p, r)
            assert (ours >= size / n * kl * (1 + 1e-9) - 1e-12).all()
    if weights is None:
        one, close = (
            divergence(made, n * (1 - p), n * p, r) for made in (bound.whole, bound.parts)
        )
        assert (one <= 2.9 * kl + 1e-9).all()
        assert (close <= (1.2 if 0.2 <= share <= 0.8 else 2.3) * kl + 1e-9).all()
        assert close[0] == pytest.approx(kl[0], rel=2e-3)
        assert close[2000] == pytest.approx(kl[2000], rel=2e-3)


def test_weights_approximate_the_share_of_cases():
    for classes in ((3072, 2048), (131072, 131072), (9000, 1000), (40, 60), (300_000, 200_000)):
        bound, share = Bound.weighted(classes), classes[1] / sum(classes)
        assert bound.r == pytest.approx(share, abs=0.01)
        assert max(bound.weights) <= MAX_WEIGHT
        assert max(bound.weights) * 65535 < 2**24  # exact in float32
        kl = rel_entr(share, bound.r) + rel_entr(1 - share, 1 - bound.r)
        assert sum(classes) * kl <= MOST_OFF_NATS
    # small weights cannot express one case in a thousand, unless there are few samples
    assert Bound.weighted((500_000, 500)) is None
    # nor do bytes, of the lines of one in a hundred
    assert Bound.weighted((100, 1)) is None
    assert Bound.weighted((90, 10)) is not None


@pytest.mark.parametrize("score", ["k2", "k2_excess", "mutual_information"])
@pytest.mark.parametrize("n_samples", [1, 2, 7, 4000])
def test_scale_of_the_tables_is_found(score, n_samples):
    rank = np.arange(1, dtype=np.int32)
    data = ScanData((), *score_tables(score, n_samples - n_samples // 2, n_samples // 2), rank)
    assert is_k2(data) == (score == "k2" or (score == "k2_excess" and n_samples > 1))
    scale = score_scale(data)
    assert scale == 1.0 or math.log2(scale).is_integer()
    assert data.part[-1] / scale == pytest.approx(
        math.lgamma(n_samples + 1) if "k2" in score else n_samples * math.log(n_samples), abs=1e-9
    )


def test_other_tables_are_refused():
    rank = np.arange(1, dtype=np.int32)
    squares = np.arange(50, dtype=np.int64) ** 2
    with pytest.raises(ValueError, match="K2 and mutual information alone"):
        score_scale(ScanData((), squares, squares, rank))


def test_without_a_cutoff_everything_passes():
    assert need_of(math.inf, None, (10, 10), 0.5, 27) < -1e38
