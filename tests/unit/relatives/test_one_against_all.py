"""Counts of one sample with everyone are those of the matrix product."""

from __future__ import annotations

import numpy as np
import pytest
from scenes.random_cohorts import make_planes

from popdesic.cohort.planes import load_planes
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.terms import KINSHIP, Planes
from popdesic.relatives import one_against_all_cpu
from popdesic.relatives.one_against_all_cpu import count_with_all


@pytest.mark.parametrize("n_sites", [1, 64, 65, 700])
@pytest.mark.parametrize("missing", [(0.0, 0.0), (0.1, 0.0), (0.0, 0.1), (0.2, 0.1)])
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_of_the_product(tmp_path, monkeypatch, n_sites, missing, threads):
    monkeypatch.setattr(one_against_all_cpu, "TASK_BYTES", 700)  # several tasks
    query = load_planes(make_planes(tmp_path / "one", 1, n_sites, missing[0]))[0]
    others = load_planes(make_planes(tmp_path / "all", 37, n_sites, missing[1]))[0]
    assert isinstance(others.words, np.memmap)
    expected = CpuBackend().bitgemm(query, others, KINSHIP)[:, 0]
    np.testing.assert_array_equal(count_with_all(query, others, threads), expected)
    inside = Planes(np.array(others.words), n_sites)
    np.testing.assert_array_equal(count_with_all(query, inside, threads), expected)
    some = Planes(others.words[5:], n_sites)  # a view of a map
    np.testing.assert_array_equal(count_with_all(query, some, threads), expected[:, 5:])


def test_a_file_that_is_cut_off(tmp_path):
    query = load_planes(make_planes(tmp_path / "one", 1, 100, 0.0))[0]
    folder = make_planes(tmp_path / "all", 20, 100, 0.0)
    others = load_planes(folder)[0]
    with open(folder / "planes.npy", "r+b") as file:
        file.truncate(others.words.offset + others.words.nbytes // 2)
    with pytest.raises(OSError, match="ends before its last row"):
        count_with_all(query, others)
