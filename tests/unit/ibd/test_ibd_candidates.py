"""Candidates of identity by descent on a CPU, against the slow search window by window."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import ibd_runs as slow
from scenes.ibd import draw_pair_of_cohorts, draw_windows
from support.operands import planes_of

from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.terms import Planes
from popdesic.ibd import candidates_cpu
from popdesic.ibd.candidates import Probes, Windows
from popdesic.ibd.find_candidates import find_candidates

MANY = 1 << 20


def rows_of(found) -> list[tuple]:
    arrays = tuple(found)
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}
    return list(zip(*(array.tolist() for array in arrays), strict=True))


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 63, 64, 65, 700])
@pytest.mark.parametrize("width", [7, 32, 33, 128, 200])
def test_candidates_are_those_of_the_slow_search(rng, n_sites, width):
    a, b = draw_pair_of_cohorts(rng, 6, 5, n_sites)
    windows = draw_windows(rng, n_sites, width)
    tolerance, least = int(rng.integers(0, 4)), float(rng.choice([0, 0.5, 3]))
    for other in (None, b):
        want = slow.candidates(a, other, windows, tolerance, least)
        planes = None if other is None else planes_of(other)
        for depth, threads in ((1, 2), (2, 1)):
            limits = tolerance, least, MANY, threads, depth
            found = candidates_cpu.candidates(planes_of(a), planes, windows, *limits)
            assert rows_of(found) == want


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 200])
def test_tiles_blocks_and_threads_change_nothing(rng, n, monkeypatch):
    a, b = draw_pair_of_cohorts(rng, n, 70, 90)
    windows = draw_windows(rng, 90, 10)
    found = []
    for rows, columns, size in ((128, 512, 1 << 28), (5, 64, 1), (64, 128, 1)):
        monkeypatch.setattr(candidates_cpu, "ROWS", rows)
        monkeypatch.setattr(candidates_cpu, "COLUMNS", columns)
        monkeypatch.setattr(candidates_cpu, "BLOCK_BYTES", size)
        monkeypatch.setattr(candidates_cpu, "LEAST_ROOM", 1 + size % 7)
        for threads in (1, 3):
            limits = {"tolerance": 1, "min_length": 1.5, "most": MANY}
            backend = CpuBackend(threads)
            backend.threads = threads
            found += [
                [rows_of(find_candidates(backend, planes_of(a), other, windows, **limits))]
                for other in (None, planes_of(b))
            ]
    assert all(one == found[k % 2] for k, one in enumerate(found))
    assert found[0][0] == slow.candidates(a, None, windows, 1, 1.5)


def test_imputed_and_missing_genotypes_do_not_count():
    g = np.zeros((2, 64), np.int8)
    g[1] = 2
    windows = Windows(*(np.array(x) for x in ([0], [0], [64], [0.0], [5.0], [False])))
    ones = planes_of(g)
    assert rows_of(candidates_cpu.candidates(ones, None, windows, 1, 5, 9, 1)) == []
    words = np.concatenate([ones.words, np.zeros_like(ones.words[:, :1])], axis=1)
    for called in (0, 1, 3):  # so many sites are called in both
        words[:, 2] = called
        found = rows_of(candidates_cpu.candidates(Planes(words, 64), None, windows, 1, 5, 9, 1))
        assert found == ([(0, 1, 0, 0)] if bin(called).count("1") <= 1 else [])


def test_every_long_run_holds_enough_probes(rng):
    for _ in range(50):
        windows = draw_windows(rng, int(rng.integers(1, 2000)), 16)
        least = float(rng.choice([0, 1, 5, 20]))
        for depth in (1, 2):
            p = Probes.of(windows, least, depth)
            for first in range(len(p.number)):
                for last in range(first, int(p.end[first])):
                    if p.right[last] - p.left[first] >= p.min_length:
                        assert ((p.probe >= first) & (p.probe <= last)).sum() >= depth
                        break


def test_lengths_are_whole_numbers_of_a_millionth_of_a_centimorgan():
    """0.1 + 0.2 is not 0.3 in float64; a run of just the asked length counts."""
    ends = np.array([0.0, 0.1, 0.1 + 0.2]), np.array([0.1, 0.1 + 0.2, 0.7])
    windows = Windows(
        np.zeros(3, int), np.arange(3) * 4, np.full(3, 4), *ends, np.array([0, 1, 0], bool)
    )
    planes = planes_of(np.ones((2, 12), np.int8))
    assert rows_of(candidates_cpu.candidates(planes, None, windows, 0, 0.5, 9, 1)) == [(0, 1, 0, 2)]
    assert rows_of(candidates_cpu.candidates(planes, None, windows, 0, 0.500001, 9, 1)) == []


def test_too_many_candidates_are_refused_in_one_sentence():
    planes = planes_of(np.ones((40, 30), np.int8))
    windows = draw_windows(np.random.default_rng(1), 30, 10, masked=0, contigs=1)
    words = r"780 or more runs .* the 779 that can be judged; raise ibd\.min_cm"
    with pytest.raises(UserError, match=words):
        find_candidates(CpuBackend(1), planes, None, windows, tolerance=1, min_length=0.1, most=779)
    found = find_candidates(
        CpuBackend(1), planes, None, windows, tolerance=1, min_length=0.1, most=780
    )
    assert len(found.i) == 780


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sites": np.array([5, 300])}, "more than 256"),
        ({"left": np.array([0.0, 0.5])}, "genetic map"),
        ({"first": np.array([0])}, "different lengths"),
    ],
)
def test_windows_that_are_not_windows_are_refused(change, reason):
    values = {
        **{"contig": np.array([0, 0]), "first": np.array([0, 5]), "sites": np.array([5, 5])},
        **{"left": np.array([0.0, 1.0]), "right": np.array([1.0, 2.0])},
        "masked": np.zeros(2, bool),
    }
    with pytest.raises(ValueError, match=reason):
        Windows(**values | change)


def test_operands_that_do_not_fit_are_refused(rng):
    windows = draw_windows(rng, 30, 10)
    planes, fewer = planes_of(np.ones((2, 30), np.int8)), planes_of(np.ones((2, 20), np.int8))
    for operands in (
        (planes, fewer, windows, 1),
        (fewer, None, windows, 1),
        (planes, None, windows, -1),
    ):
        with pytest.raises(ValueError, match=r"sites|tolerance"):
            candidates_cpu.candidates(*operands, 1.0, 9, 1)


def test_nothing_is_found_in_nothing(rng):
    planes = planes_of(np.ones((3, 20), np.int8))
    none = Windows(*(np.zeros(0, kind) for kind in ("i4", "i8", "i8", "f8", "f8", bool)))
    hidden = draw_windows(rng, 20, 5, masked=1.0)
    short = draw_windows(rng, 20, 5)
    for windows, least in ((none, 0.0), (hidden, 0.0), (short, 1e6)):
        assert rows_of(candidates_cpu.candidates(planes, None, windows, 1, least, 9, 1)) == []
    nobody = planes_of(np.ones((0, 20), np.int8))
    for a, b in ((nobody, None), (nobody, planes), (planes, nobody)):
        assert rows_of(candidates_cpu.candidates(a, b, short, 1, 0.0, 9, 1)) == []
