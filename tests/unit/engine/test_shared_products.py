"""Products by several processes of MPI: the bytes of one process."""

from __future__ import annotations

import pickle

import numpy as np
from scenes.random_cohorts import random_calls
from support.mpi import run_teams
from support.team_products import BLOCK, all_products, take_part

from popdesic.engine import genotype_products
from popdesic.engine.genotype_products import Calls, Flips
from popdesic.engine.genotype_products_cpu import CpuProducts


def drawn(rng, sizes: list[int], n_sites: int, missing: float) -> tuple[Calls, tuple]:
    """Cohorts of these sizes, of which some samples are left out, and what is multiplied."""
    calls = random_calls(rng, sizes, n_sites, missing, rare=0.5)  # rare sites are listed
    n = len(calls.places)
    known = np.linalg.qr(rng.normal(size=(n, 2)))[0]
    stretch = np.sort(rng.integers(0, 5, n_sites))
    signs = rng.choice(np.array([1, -1], np.int8), (int(stretch[-1]) + 1, n, 8))
    flips = Flips(signs, stretch, known, CpuProducts(calls).project(known))
    return calls, (rng.normal(size=(n, 9)), rng.uniform(0.5, 1.5, (len(sizes),) * 2), flips)


def test_teams_of_1_2_and_4_give_the_bytes_of_one_process(tmp_path, monkeypatch):
    """Odd numbers of samples, sites and blocks; fewer blocks than processes; missing genotypes."""
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", BLOCK)
    rng = np.random.default_rng(53)
    tasks, expected = [], {}
    for sizes, n_sites, missing in (([33, 1, 25], 5 * BLOCK + 1, 0.1), ([90, 17], 3 * BLOCK, 0.0)):
        calls, given = drawn(rng, sizes, n_sites, missing)
        for processes in (4, 2, 1):
            path = tmp_path / f"{n_sites} {processes}"
            tasks.append((processes, (path, calls, given)))
            expected[path] = all_products(CpuProducts(calls), *given)
    run_teams(tmp_path, take_part, tasks)
    for path, own in expected.items():
        found = pickle.loads(path.read_bytes())
        assert found == own, (path.name, [name for name in own if found[name] != own[name]])
