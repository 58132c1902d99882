"""Kinship, degrees and intervals from shared lengths: chains of known rates, and a slow oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scenes.ibd_people import HUMAN_CM

from popdesic.ibd import degrees
from popdesic.ibd.degrees import FALL, LEAST_SEARCHED, DegreeScale

HUMAN = np.array(HUMAN_CM, float)
SCALE = DegreeScale(HUMAN, 7.0)


def chain(share: float, rate: float, rng: np.random.Generator) -> tuple[float, int]:
    """Total length and number of stretches of at least 7 cM of a chain along all contigs."""
    total, number = 0.0, 0
    leave = {True: rate, False: rate * share / (1 - share)}
    for length in HUMAN / 100:
        at, inside = 0.0, bool(rng.random() < share)
        while at < length:
            end = min(at + rng.exponential(1 / leave[inside]), length)
            if inside and end - at >= 0.07:
                total, number = total + 100 * (end - at), number + 1
            at, inside = end, not inside
    return total, number


#: Degree, share and rate of relatives: a grandparent, half siblings, a great-grandparent, cousins.
RELATIVES = {
    "grandparent": (2, 0.5, 1.0),
    "half siblings": (2, 0.5, 2.0),
    "great-grandparent": (3, 0.25, 2.0),
    "first cousins": (3, 0.25, 4.0),
    "half cousins": (4, 0.125, 4.0),
}


@pytest.mark.parametrize("name", RELATIVES)
def test_intervals_hold_the_truth_of_chains(name):
    """Their share is not just that of one kind of relatives: rates differ by four times."""
    degree, share, rate = RELATIVES[name]
    rng = np.random.default_rng(list(name.encode()))
    total, number = np.array([chain(share, rate, rng) for _ in range(600)]).T
    found, low, high = SCALE.interval(total, np.zeros(600), number)
    held = np.mean((low <= share / 4) & (share / 4 <= high))
    assert 0.92 <= held <= 0.985
    assert np.mean(np.minimum(found, 4) == degree) >= (0.97 if degree == 2 else 0.8)


def slow(total: float, number: float) -> np.ndarray:
    """Log likelihood of each share at its best rate, term by term."""
    length, contigs = HUMAN.sum() / 100, len(HUMAN)
    shared = total / 100
    part = shared / length
    inside = max(number - contigs * part, 0)
    best = []
    for k in range(1, round(7.0 / 0.02) + 1):
        p, values = 2 ** (-0.02 * k), []
        for off in np.linspace(-1, 1, 11):
            rate = max(1 - math.log2(p) + off, 0.3)
            kept = math.exp(-0.07 * rate)
            begin = rate * p / (1 - p) * kept
            values.append(
                contigs * (part * math.log(p * kept) + (1 - part) * math.log(1 - p * kept))
                + inside * math.log(rate * begin)
                - rate * max(shared - 0.07 * number, 0)
                - begin * (length - shared)
            )
        best.append(max(values))
    return np.array(best)


@pytest.mark.parametrize(("total", "number"), [(1_700.0, 28), (900.0, 31), (400.0, 16), (8.0, 1)])
def test_the_interval_is_that_of_the_likelihood(total, number):
    values = slow(total, number)
    within = 2.0 ** (-0.02 * (1 + np.flatnonzero(values >= values.max() - FALL))) / 4
    _, low, high = SCALE.interval([total], [0.0], [number])
    assert high[0] == pytest.approx(max(within.max(), SCALE.kinship(total, 0.0)))
    least = 0.0 if within.min() < 2**-6.99 / 4 else within.min()
    assert low[0] == pytest.approx(min(least, SCALE.kinship(total, 0.0)))


def test_parents_twins_and_siblings():
    whole = SCALE.searched_cm
    total = np.array([whole, 0.995 * whole, 0.87 * whole, 0.75 * whole, 0.85 * whole, whole / 2])
    two = np.array([whole, 0.0, 0.0, 0.25 * whole, 0.25 * whole, 0.0])
    number = np.array([22, 22, 30, 45, 45, 40])
    assert SCALE.parents(total, two).tolist() == [True, True, True, False, False, False]
    assert SCALE.siblings(total, two).tolist() == [True, False, False, True, True, False]
    assert SCALE.identical(two).tolist() == [True] + [False] * 5
    _, low, high = SCALE.interval(total, two, number)
    truth = np.array([0.5, 0.25, 0.25, 0.25, 0.25, 0.125])
    assert ((low <= truth) & (truth <= high)).all()
    assert high[1] - low[1] < 0.01  # chance leaves nothing open
    assert [len(values) for values in SCALE.interval([], [], [])] == [0, 0, 0]


def test_the_scatter_of_siblings_is_theirs():
    """0.039 of the genome's sharing, and 0.036 of a grandparent's (Hill and Weir 2011)."""
    assert 2 * SCALE.scatter(0.25, parents=1) == pytest.approx(0.039, abs=0.003)
    assert 2 * SCALE.scatter(0.125) == pytest.approx(0.031, abs=0.006)


@pytest.mark.parametrize("least", [7.0, 100.0, 150.0, 170.0])
def test_contigs_that_hold_no_segment_do_not_count(least):
    scale = DegreeScale(HUMAN, least)
    whole = HUMAN[least <= HUMAN].sum()
    assert scale.kinship(whole, whole) == pytest.approx(0.5)
    assert scale.tells == (whole >= LEAST_SEARCHED)
    _, low, high = DegreeScale(HUMAN, 1e9).interval([0.0], [0.0], [0])
    assert (low[0], high[0]) == (0.0, 0.5)


def test_parts_of_pairs_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    total, number = rng.uniform(7, 3_000, 50), rng.integers(1, 60, 50)
    whole = SCALE.interval(total, np.zeros(50), number)
    monkeypatch.setattr(degrees, "_PAIRS", 7)
    for one, other in zip(whole, SCALE.interval(total, np.zeros(50), number), strict=True):
        assert one.tobytes() == other.tobytes()
