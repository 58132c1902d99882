"""Axes by several processes of MPI: the bytes of one, whatever their number."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.populations import populations
from support import team_axes
from support.mpi import launcher, run_teams
from support.study import Cohort, write_raw

from popdesic.components import axes_together
from popdesic.components.axes_together import Task, define_together
from popdesic.components.define_axes import define_axes
from popdesic.core.errors import UserError


@pytest.fixture
def arguments(tmp_path) -> dict:
    """Two founder cohorts of odd sizes, with missing genotypes, rare sites and three contigs."""
    rng = np.random.default_rng(53)
    genotypes, _ = populations(rng, 3, 0.1, 75, 1301)
    genotypes[:, ::7] = rng.binomial(2, 0.01, genotypes[:, ::7].shape)
    genotypes[rng.random(genotypes.shape) < 0.003] = -1
    chrom, pos = np.repeat(["1", "2", "3"], [800, 500, 1]), 1 + 40_000 * np.arange(1301)
    rows = [(c, int(p), f"rs{p}", "A", "C") for c, p in zip(chrom, pos, strict=True)]
    prefixes = []
    for name, some in (("north", genotypes[:46]), ("south", genotypes[46:])):
        cohort = Cohort(name, [f"{name}{k}" for k in range(len(some))], rows, some.T)
        prefixes.append(write_raw(tmp_path / name / "genotypes", cohort))
    table = pd.DataFrame(rows, columns=["chrom", "pos", "id", "ref", "alt"])
    table = table.assign(af=0.5, mode=0, n_called=75).to_csv(sep="\t", index=False)
    (tmp_path / "sites.tsv").write_text(f"# panel x, 1301 sites\n{table}")
    asked = {"components": 4, "pcs": "auto", "ld_prune": ["500 kb", 1, 0.2], "regions": []}
    return {"prefixes": prefixes, "panel": tmp_path / "sites.tsv", "unrelated": None, **asked}


def into(folder: Path, arguments: dict, most_dense: int = 10) -> dict:
    """The arguments with results in a new folder."""
    folder.mkdir()
    names = {"axes": "axes.npz", "about": "axes.json", "loadings": "loadings.tsv"}
    out = {name: folder / file for name, file in names.items()}
    return {**arguments, "most_dense": most_dense, "out": out}


def results(folder: Path) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes() for name in ("axes.npz", "axes.json", "loadings.tsv")
    }


def test_the_job_starts_the_launcher_and_logs_what_its_processes_say(tmp_path, arguments, caplog):
    """A team of one. Larger ones take seconds more (`test_1_2_and_4_processes…`, and products)."""
    mpiexec, arguments["ld_prune"] = launcher(), []
    about = define_axes(**into(tmp_path / "alone", arguments))
    assert about["significant"] == 2
    with caplog.at_level(logging.INFO):
        found = define_together(mpiexec, 1, into(tmp_path / "team", arguments))
    assert found == about and results(tmp_path / "team") == results(tmp_path / "alone")
    assert "1 processes; most memory of each, MB: " in caplog.text
    assert {path.name for path in (tmp_path / "team").iterdir() if path.is_dir()} == set()


@pytest.mark.slow
@pytest.mark.parametrize("most_dense", [10, 1000], ids=["passes", "matrix"])
def test_1_2_and_4_processes_write_the_bytes_of_one(tmp_path, arguments, most_dense, monkeypatch):
    """Passes in three blocks of sites, fewer than processes; and few samples, whose leader alone
    makes the matrix. There are weights of sites, as of very many samples."""
    team_axes.fewer(monkeypatch.setattr)
    about = define_axes(**into(tmp_path / "alone", arguments, most_dense))
    assert about["sites"]["ld_pruned"] > 0
    tasks = [(k, Task(k, into(tmp_path / str(k), arguments, most_dense), [])) for k in (4, 2, 1)]
    run_teams(tmp_path, team_axes.take_part, tasks)
    expected = results(tmp_path / "alone")
    assert b"weights" in expected["axes.npz"]
    for k, _ in tasks:
        assert results(tmp_path / str(k)) == expected, k


def test_processes_that_do_not_find_each_other_say_so(tmp_path, arguments):
    """A launcher that belongs to another MPI starts processes of which each is alone."""
    pytest.importorskip("mpi4py")
    other = tmp_path / "launcher"
    other.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    other.chmod(0o755)
    with pytest.raises(UserError, match=r"2 processes .* MPI joined 1: .* another MPI than mpi4py"):
        define_together(str(other), 2, into(tmp_path / "two", arguments))


def test_without_mpi_a_sentence_says_what_to_install(tmp_path, arguments, monkeypatch):
    given = into(tmp_path / "two", arguments)
    monkeypatch.setattr(axes_together.importlib.util, "find_spec", lambda name: object())
    with pytest.raises(UserError, match="mpi='no-such-launcher', but there is no such command"):
        define_together("no-such-launcher", 2, given)
    monkeypatch.setattr(axes_together.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="mpi4py is missing here; install it"):
        define_together("true", 2, given)
