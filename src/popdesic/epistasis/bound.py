"""Coefficients of the bound by which GPU scans rule combinations out.

kernels/epistasis/cells.cuh computes it and has the proof.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, rel_entr, xlogy

from .layout import LOG_SHIFT
from .scan_data import ScanData

#: The bound may miss its exact value by this much, in nats, in addition to its relative slack.
MARGIN_NATS = 2.0**-6
#: Largest weight of a count: a signed byte; and in a line: an unsigned one.
MAX_WEIGHT, MAX_BYTE = 127, 255
#: Least byte of a line that is worth to be rounded to bytes.
LEAST_BYTE = 8
#: How much the bound may lose because r is not the share of cases of all samples, in nats.
MOST_OFF_NATS = 0.25
#: What a float32 sum of the device may be too small by, as a factor.
SLACK = 1 + 2.0**-17
#: Half a logarithm in nats, of one unit of what `growth` adds up.
NATS_OF_LOG = math.log(2) / 2 / 2 ** (23 - LOG_SHIFT)


def share_of_cases(classes: tuple[int, int]) -> float:
    """Share of cases among controls and cases; 0 without samples."""
    return classes[1] / max(1, sum(classes))


@dataclass(frozen=True)
class Line:
    """A weighted sum of the controls m and the cases k of a cell, below n / phi(k/n - r)."""

    controls: float
    cases: float

    @classmethod
    def through(cls, r: float, a: tuple[float, float], b: tuple[float, float]) -> Line:
        """n times the line through two points (u, 1 / phi); u = k/n - r."""
        slope = (b[1] - a[1]) / (b[0] - a[0])
        return cls(*(a[1] + slope * (u - a[0]) for u in (-r, 1 - r)))

    def scaled(self, scale: float, whole: bool) -> Line:
        """A line that is not above `scale` times this one: of whole numbers, or of float32."""
        least = math.floor if whole else lambda x: float(np.nextafter(np.float32(x), np.float32(0)))
        return Line(least(scale * self.controls), least(scale * self.cases))

    @property
    def bytes(self) -> int:
        """As the kernels read it."""
        return int(self.cases) | int(self.controls) << 8


@dataclass(frozen=True)
class Lines:
    """Some lines, scaled, of which the lowest counts in each cell.

    With D the lowest of them, plus 1, n KL(k/n || r) is at most `steep` times excess^2 / D, where
    n >= 1. Excess is k - r n, or (w0 + w1) times that (`Bound`).
    """

    lines: tuple[Line, ...]
    steep: float

    @classmethod
    def of(cls, lines: tuple[Line, ...], weights: tuple[int, int] | None) -> Lines:
        """Bytes if there are weights, of which the smallest is exact; else floats of any size."""
        ends = [end for line in lines for end in (line.controls, line.cases)]
        scale = 2.0**10 / min(ends)
        if weights is not None:
            scale = max(1, math.floor(min(ends) * MAX_BYTE / max(ends))) * (1 + 1e-12) / min(ends)
        made = tuple(line.scaled(scale, weights is not None) for line in lines)
        least = min(end for line in made for end in (line.controls, line.cases))
        return cls(made, scale * (1 + 1 / least) * SLACK / sum(weights or (1,)) ** 2)

    @property
    def least(self) -> float:
        """The smallest coefficient."""
        return min(end for line in self.lines for end in (line.controls, line.cases))


@dataclass(frozen=True)
class Bound:
    """KL(k/n || r) <= (k - r n)^2 / line, one line or the lower one of two (`Lines`).

    r is in float32. Where the cells of both classes share a word (`weights`), it is
    w0 / (w0 + w1), and the device works with (w0 + w1) (k - r n).
    """

    r: float
    whole: Lines
    parts: Lines
    weights: tuple[int, int] | None

    @classmethod
    def of(cls, share: float, weights: tuple[int, int] | None = None, gini: bool = False) -> Bound:
        """For a share of cases (kernels/epistasis/cells.cuh has the proof).

        gini: with n as the line, so that the value is sum (k - r n)^2 / n.
        """
        r = float(np.float32(min(max(share, 1e-4), 1 - 1e-4)))
        if weights is not None:
            r = weights[0] / sum(weights)
        middle = 0.0, 2 * r * (1 - r) * (1 - 1e-6)
        ends = (-r, -(r**2) / math.log1p(-r)), (1 - r, -((1 - r) ** 2) / math.log(r))
        low, high = ((u, inverse * (1 - 2e-6)) for u, inverse in ends)
        whole = (Line.through(r, low, high),)
        parts = Line.through(r, low, middle), Line.through(r, middle, high)
        if gini:
            whole, parts = (Line(1.0, 1.0),), (Line(1.0, 1.0),) * 2
        return cls(r, Lines.of(whole, weights), Lines.of(parts, weights), weights)

    @classmethod
    @functools.cache
    def weighted(cls, classes: tuple[int, int], gini: bool = False) -> Bound | None:
        """That of the best weights; None where they, or bytes, are too far off."""
        share = share_of_cases(classes)
        # the smaller weight, and the nearest larger one
        small = np.arange(1, MAX_WEIGHT + 1)
        rarer = max(min(share, 1 - share), 1e-9)
        large = np.clip(np.rint(small * (1 - rarer) / rarer), 1, MAX_WEIGHT)
        best = np.argmin(abs(small / (small + large) - rarer))
        weights = int(small[best]), int(large[best])
        bound = cls.of(share, weights if share <= 0.5 else weights[::-1], gini)
        if min(bound.whole.least, bound.parts.least) < LEAST_BYTE:
            return None
        off = float(rel_entr(share, bound.r) + rel_entr(1 - share, 1 - bound.r))
        return bound if sum(classes) * off <= MOST_OFF_NATS else None

    def fields(self, occupied: float) -> dict[str, float | int]:
        """Those of `Lines` in the kernels; `occupied`: see `K2Terms`."""
        w0, w1 = self.weights or (0, 1)
        fields = {"r": self.r, "weights": w1 | (-w0 & 0xFF) << 8}
        lines = zip(("whole", "low", "high"), (*self.whole.lines, *self.parts.lines), strict=True)
        for name, line in lines:
            fields[f"{name}_cases"], fields[f"{name}_controls"] = line.cases, line.controls
            fields[f"{name}_bytes"] = line.bytes if self.weights else 0
        for name, made in (("of_whole", self.whole), ("of_parts", self.parts)):
            fields[f"{name}_steep"] = made.steep
            fields[f"{name}_empty"] = max(0.0, occupied) / made.steep * SLACK
        return fields


@dataclass(frozen=True)
class K2Terms:
    """What K2 adds to the divergences: a lower bound of b(n), in nats.

    With total[n] = lnGamma(n + 1) + excess(n) and part[n] = lnGamma(n + 1), a cell of n samples, k
    of them cases, costs ln C(n, k) + excess(n); of plain K2 the excess is ln(n + 1). For 0 < k < n,

        ln C(n, k) >= n H(k/n) - min(ln(2 n) / 2, ln(pi n / 2) / 2 + 1 / (3 n)):

    the first by lemma 7 of MacWilliams and Sloane (ch. 10) and k (n - k) <= n^2 / 4, the second by
    Robbins' bounds of n! (ln k / 2 + 1 / (12 k) is concave for k >= 1, so that its sum over k and
    n - k is largest at n / 2). For k = 0 and k = n, and so for n = 1, both sides are without the
    subtrahend, which is positive. With n H(k/n) = linear(k, n) - n KL(k/n || r), linear(k, n) =
    -k ln r - (n - k) ln(1 - r), the cost is at least

        linear(k, n) - n KL(k/n || r) + b(n),    b(n) = excess(n) less the subtrahend,

    and b(0) = 0. The excess of `k2_null` is about (ln(2 pi n r (1 - r)) + 1 - n / N) / 2, but its b
    does not grow: it is about (ln(4 r (1 - r)) + 1 - n / N) / 2, a line. So b(n) >= occupied +
    person n where n >= 1, the best line of a few slopes. The b of plain K2, about ln(2 n / pi) / 2,
    grows: there b(n) >= g(n) + occupied + person n, with the device's own `growth` g(n).

    Attributes
    ----------
    excess : float64 array, (n_samples + 1,)
    occupied, person : float
        The line, in nats per cell that holds samples and per sample.
    logs : bool
        Whether the line is added to g(n), which the device sums over the cells.
    """

    excess: np.ndarray
    occupied: float
    person: float
    logs: bool = False

    @classmethod
    def of(cls, total: np.ndarray, part: np.ndarray, scale: float, n_cells: int) -> K2Terms:
        """For score tables scaled by `scale` and tables of `n_cells` cells."""
        excess = (total - part) / scale
        size = len(total) - 1
        n = np.arange(1, size + 1, dtype=np.float64)
        less = np.minimum(np.log(2 * n), np.log(np.pi / 2 * n) + 2 / (3 * n)) / 2
        less[:1] = 0.0
        slopes = np.array([0.0, -0.25, -0.5, -0.75, -1.0]) / max(1, size)
        found = []
        for logs in (False, True):
            b = excess[1:] - less - (growth(n) if logs else 0.0)
            lines = [(float((b - v * n).min(initial=1.0)), float(v)) for v in slopes]
            # what a table of cells of one size costs at least
            usual = float(growth(np.array([size / n_cells]))[0]) if logs else 0.0
            found += [
                (n_cells * (line[0] + usual) + size * line[1], cls(excess, *line, logs))
                for line in lines
            ]
        return max(found, key=lambda one: one[0])[1]


def growth(n: np.ndarray) -> np.ndarray:
    """g(n) in nats as cells.cuh computes it: within 0.03 of ln(1 + 2 n / 3) / 2, and 0 for n = 0.

    The bits of a float, read as an integer, are close to its logarithm. `K2Terms` takes the line
    below b(n) - g(n) from these very numbers, so it holds whatever they are.
    """
    bits = (2 * n + 3).astype(np.float32).view(np.int32) - np.float32(3).view(np.int32)
    return NATS_OF_LOG * (bits >> LOG_SHIFT)


def need_of(
    cutoff: float,
    k2: K2Terms | None,
    classes: tuple[int, int],
    r: float,
    n_cells: int,
    missing: tuple[int, int] = (0, 0),
) -> float:
    """The least divergence of a table whose cost can be at most `cutoff` nats.

    `r`: of the bound. `k2`: None for the mutual information, and for Gini, whose cost is minus the
    sum of (k - r' n)^2 / n, r' the table's own share of cases: not above the sum with r.
    `missing`: at most so many samples of each class are left out of a table. Then the one cell of
    all n' = n0' + n1' samples costs ln C(n', n1') + excess(n'), and ln C(n', n1') is at most 0 if a
    class is empty, else n' H(n1'/n') + ln(n' / (2 pi n0' n1')) / 2 (lemma 7 of MacWilliams and
    Sloane); n' H(n1'/n') is at most what the linear terms of its samples sum to.
    To the divergence the device adds `k2.occupied`, if it is above 0, for each empty cell.
    """
    n0, n1 = classes
    if cutoff == math.inf:
        return -3e38
    need = -cutoff - MARGIN_NATS
    if k2 is None:
        return need
    n = n0 + n1
    need += n_cells * k2.occupied
    if any(missing):
        left = [size - out for size, out in zip(classes, missing, strict=True)]
        ways = math.log(n / (2 * math.pi * max(1, left[0]) * max(1, left[1]))) / 2
        if min(left) < 1:
            ways = max(ways, 0.0)
        need += n * k2.person - float(k2.excess[max(0, sum(left)) :].max()) - ways
    else:
        whole = gammaln(n + 1) - gammaln(n0 + 1) - gammaln(n1 + 1) + float(k2.excess[n])
        linear = -n1 * math.log(r) - n0 * math.log1p(-r)
        need += n * k2.person + linear - whole
    return need


def is_gini(data: ScanData) -> bool:
    """Gini has no table."""
    return not len(data.part)


def is_k2(data: ScanData) -> bool:
    """K2 has two different tables, the mutual information one."""
    return not is_gini(data) and not np.array_equal(data.total, data.part)


def score_scale(data: ScanData) -> float:
    """The power of two that the score tables are scaled by.

    Raises
    ------
    ValueError
        `part` is neither lnGamma(n + 1) nor n ln n.
    """
    if is_gini(data):
        return float(data.total[0])
    # the smallest entries and some of all sizes
    n = np.unique(np.geomspace(1, len(data.part), 1000).astype(int)) - 1
    if n[-1] == 0:
        return 1.0
    exact = gammaln(n + 1) if is_k2(data) else xlogy(n, n)
    entry = min(2, n[-1])  # where both scores are above 0, or the only entry
    known = exact[n == entry][0]
    if not known:  # one sample: the `total` of plain K2 is ln 2
        return 2.0 ** round(math.log2(data.total[-1] / math.log(2))) if data.total[-1] else 1.0
    scale = 2.0 ** round(math.log2(data.part[entry] / known))
    if not np.allclose(data.part[n] / scale, exact, rtol=1e-9, atol=2 / scale):
        raise ValueError("the bound of a GPU scan is for K2 and mutual information alone")
    return scale
