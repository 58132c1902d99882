"""The screen of a block of pairs misses nothing, and keeps the best matches that sorting gives."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.neighbor_checks import SCREENS, check_screen, draw_people, wanted

from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import KINSHIP
from popdesic.relatives import screen_cpu
from popdesic.relatives.kinship import mismatching
from popdesic.relatives.matches import NEVER, TopMatches, rank_key
from popdesic.relatives.screen_cpu import STRIPE, screen_pairs


def drawn(m: int, n: int, seed: int) -> np.ndarray:
    """Counts of pairs, as of 60 sites; some pairs share few sites, some are alike."""
    rng = np.random.default_rng(seed)
    called = rng.integers(0, 61, (m, n))
    het_a, het_b = rng.integers(0, called // 2 + 1), rng.integers(0, called // 2 + 1)
    both = rng.integers(0, np.minimum(het_a, het_b) + 1)
    ibs0 = rng.integers(0, np.maximum(called - het_a - het_b, 0) // 3 + 1)
    alike = rng.random((m, n)) < 0.1
    het_b[alike] = het_a[alike]
    both[alike], ibs0[alike] = het_a[alike], 0
    return np.stack([ibs0, both, het_a, het_b, called]).astype(np.int64)


def of_symmetric(counts: np.ndarray) -> np.ndarray:
    """The counts of samples with themselves."""
    upper = np.triu(counts, 1)
    turned = upper[[0, 1, 3, 2, 4]].transpose(0, 2, 1)
    return np.ascontiguousarray(upper + turned)


SCREEN = SCREENS["usual"]


@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (33, 65), (5, 2 * STRIPE + 1)])
def test_no_pair_is_missed_and_few_are_looked_at_again(m, n, screen):
    counts = drawn(m, n, m + n)
    rows, columns, few = screen_pairs(
        counts, screen, TopMatches(n, 2), 0, 0, own=False, both_ways=False, threads=2
    )
    assert few == int((counts[4] < screen.least_matched).sum())
    expected = wanted(counts, screen)
    found = np.zeros((m, n), bool)
    found[rows, columns] = True
    order = np.lexsort((columns, rows))
    np.testing.assert_array_equal(order, np.arange(len(rows)))
    assert len(rows) == found.sum()
    assert not (expected & ~found).any()
    # the limits are widened by rounding alone; pairs without a heterozygous site have no kinship
    no_kinship = np.minimum(counts[2], counts[3]) == 0
    np.testing.assert_array_equal(found[~no_kinship], expected[~no_kinship])


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_best_matches_are_those_of_sorting(k, own, threads):
    """Ties of many pairs go to the sample of the lowest number, over several blocks."""
    m, n, blocks = 40, STRIPE + 7, 2
    whole = of_symmetric(drawn(n, n, k)) if own else drawn(blocks * m, n, k)
    best = TopMatches(n, k)
    if own:
        pairs = screen_pairs(whole, SCREEN, best, 0, 0, own=True, both_ways=True, threads=threads)
        assert (pairs[0] < pairs[1]).all()
    for first in [] if own else range(0, blocks * m, m):
        part = np.ascontiguousarray(whole[:, first : first + m])
        screen_pairs(part, SCREEN, best, first, 0, own=False, both_ways=False, threads=threads)
    key = rank_key(
        mismatching(dict(zip(KINSHIP.outputs, whole, strict=True))), whole[4], SCREEN.least_matched
    )
    if own:
        np.fill_diagonal(key, NEVER)
    order = np.argsort(key, axis=0, kind="stable")[:k].T
    ranked = np.take_along_axis(key.T, order, axis=1)
    np.testing.assert_array_equal(best.index, np.where(ranked < NEVER, order, -1))
    np.testing.assert_array_equal(best.key, ranked)
    known = ranked < NEVER
    np.testing.assert_array_equal(
        best.called[known], np.take_along_axis(whole[4].T, order, axis=1)[known]
    )


def test_rows_meet_columns_of_their_own_cohort():
    """Two blocks of one cohort: the lists of all are those of the whole."""
    n, cut = STRIPE + 30, 70
    whole = of_symmetric(drawn(n, n, 9))
    one, other = TopMatches(n, 2), TopMatches(n, 2)
    screen_pairs(whole, SCREEN, one, 0, 0, own=True, both_ways=True, threads=1)
    for rows, columns in ((slice(0, cut), slice(0, cut)), (slice(0, cut), slice(cut, n)),
                          (slice(cut, n), slice(cut, n))):  # fmt: skip
        screen_pairs(
            np.ascontiguousarray(whole[:, rows, columns]),
            SCREEN,
            other,
            rows.start,
            columns.start,
            own=rows == columns,
            both_ways=True,
            threads=2,
        )
    for name in ("key", "index", "mismatches", "called"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("cut", [None, 1, 40])
@pytest.mark.parametrize("side", [33, 2048])
def test_blocks_of_two_cohorts_or_of_one(monkeypatch, name, cut, side):
    monkeypatch.setattr(screen_cpu, "BLOCK_SAMPLES", side)
    genotypes = draw_people(3, 90, 65, 0.2, copies=20)
    genotypes[2] = -1
    for top in (0, 1, 3):
        check_screen(cpu_backend(2), genotypes, cut, SCREENS[name], top)
