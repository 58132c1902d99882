"""Threads of jobs that run side by side (`workflow/rules/resources.smk`)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.running import ROOT

from popdesic.engine import needs

TEXT = (ROOT / "workflow/rules/resources.smk").read_text()


def resources(
    cores: int | None,
    *,
    unmade: int = 4,
    memory_mb: float = 1e6,
    nodes=None,
    device="cpu",
    sparse=False,
):
    """The functions of the rule file in a run with `cores`, for a study of four cohorts of 1 000.

    Of the rows of its cohorts, `unmade` were not made yet.
    """
    names = {
        "workflow": SimpleNamespace(cores=cores, nodes=nodes, is_main_process=True),
        "WorkflowError": ValueError,
        "COHORTS": list("abcd"),
        "CONFIG": {"device": device, "geodesic": {"gpus": 2}},
        "GPUS": int(device != "cpu"),
        "STUDY": SimpleNamespace(sparse=sparse),
        "n_samples": lambda *cohorts: 1000 * len(cohorts),
    }
    exec(compile(TEXT, "resources.smk", "exec"), names)
    names["MACHINE_MB"] = memory_mb
    names["rows"] = SimpleNamespace(
        unmade=lambda: list("abcd")[:unmade], pairs=lambda row: "abcd"[: "abcd".index(row) + 1]
    )
    return SimpleNamespace(**names)


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 1), (16, 4), (64, 8)])
def test_rows_that_are_not_made_yet_run_side_by_side(cores, threads):
    run = resources(cores)
    assert run.row_threads(run.rows) == threads


def test_a_row_that_is_alone_gets_more_threads():
    run = resources(16, unmade=1)
    assert run.row_threads(run.rows) == 8
    assert run.row_threads(run.rows, beside=3) == 4


def test_rows_run_side_by_side_when_all_are_made_again():
    run = resources(16, unmade=0)
    assert run.row_threads(run.rows) == 4


@pytest.mark.parametrize(
    ("cores", "threads"), [(5, [1, 1, 1, 2]), (16, [1, 3, 4, 6]), (64, [6, 8, 8, 8])]
)
def test_rows_of_many_pairs_get_more_threads(cores, threads):
    run = resources(cores)
    chosen = run.balanced_threads(run.rows)
    assert [chosen(SimpleNamespace(row=row)) for row in "abcd"] == threads
    assert sum(threads) <= cores


@pytest.mark.parametrize("cores", [None, 1, 4])
def test_rows_have_equal_threads_where_cores_are_few_or_their_own(cores):
    run = resources(cores, nodes=None if cores else 100)
    assert run.balanced_threads(run.rows) == run.row_threads(run.rows)


def test_no_more_jobs_run_side_by_side_than_memory_holds():
    """Tiles of 1 000 by 1 000 samples with 24 bytes a pair take 24 MB."""
    run = resources(16, memory_mb=50)
    assert run.row_threads(run.rows, 24) == 8
    assert run.shared_threads(4, 16, mb=24) == 8
    assert run.shared_threads(4, 16, mb=12) == 4
    assert run.shared_threads(4, 16, mb=400) == 16


def test_jobs_of_a_cluster_have_cores_of_their_own():
    run = resources(None, nodes=100)
    assert run.row_threads(run.rows, beside=1) == run.shared_threads(4, 8) == 8
    assert run.aside_threads(4) == 4 and run.closing_threads(4, 0) == run.pair_threads(8) == 8


@pytest.mark.parametrize("cores", [8, 12, 16, 24, 64])
def test_the_axes_do_not_wait_for_an_export_and_a_closure(cores):
    run = resources(cores, device="gpu")
    beside = run.aside_threads(4), run.closing_threads(4, 0)
    assert run.wide_threads() + sum(beside) <= cores
    assert min(beside) >= 1
    tables = 1  # the jobs of one thread that begin with the choice of founders
    assert run.axes_threads() + sum(beside) + tables <= cores


def test_the_axes_take_most_cores_where_they_need_them():
    assert resources(16).axes_threads() == resources(16).wide_threads() == 12
    assert resources(16, device="gpu").axes_threads() == 8
    assert resources(4, device="gpu").axes_threads() == 3
    assert [resources(cores).axes_threads() for cores in (1, 2, 3, 4)] == [1, 1, 2, 3]
    few = [resources(cores, sparse=True).axes_threads() for cores in (1, 2, 3, 4)]
    assert few == [1, 2, 3, 3]


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_few_cores_are_not_kept_free(cores):
    run = resources(cores, device="gpu")
    assert run.aside_threads(4) == 4
    assert run.closing_threads(4, 0) == 1
    assert resources(16).closing_threads(4, 0) == 4, "on a CPU a closure is long work"


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("cores", [8, 12, 16, 24, 64])
def test_geodesics_and_components_run_beside_ld(cores, device):
    run = resources(cores, device=device)
    assert run.ld_threads() + 2 * run.pair_threads(8) <= cores
    assert run.pair_threads(8) >= 3


@pytest.mark.parametrize("cores", [16, 24, 64])
def test_umap_communities_and_pc_relate_run_side_by_side(cores):
    run = resources(cores)
    assert run.spare_threads(8) + run.rest_threads(8) + run.shared_threads(4, 8) <= cores + 4 * (
        cores > 16
    )


def test_closures_after_the_axes_get_more_threads():
    run = resources(16, device="gpu")
    threads = run.closure_threads(4, 0)
    plain, chosen, pcs = (
        threads(SimpleNamespace(space=space, alpha=alpha))
        for space, alpha in (("genotypes", "2"), ("genotypes", "auto"), ("pcs", "2"))
    )
    assert plain == run.closing_threads(4, 0) == 2
    assert chosen == pcs == 3
    assert 3 * chosen + run.shared_threads(4, 8) <= 16, "PC-Relate begins beside three of them"


@pytest.mark.parametrize("cores", [13, 16, 17, 24, 64])
def test_umap_communities_and_pcoa_run_side_by_side(cores):
    run = resources(cores)
    assert run.spare_threads(8) + run.rest_threads(8) + 1 <= cores
    assert 4 <= run.rest_threads(8) <= 8


@pytest.mark.parametrize("cores", [None, 1, 2, 8, 12])
def test_communities_take_all_threads_where_few_are_left(cores):
    assert resources(cores, nodes=None if cores else 100).rest_threads(8) == 8


def test_closures_of_many_samples_take_several_gpus(monkeypatch):
    """Four cohorts of 1 000 are too few; on a CPU there is no GPU to ask for."""
    run = resources(8, device="gpu")
    assert run.closing_gpus() == 1
    monkeypatch.setattr(needs, "SPREAD_LEAST", 4000)
    assert run.closing_gpus() == 2
    assert resources(8, device="cpu").closing_gpus() == 0
