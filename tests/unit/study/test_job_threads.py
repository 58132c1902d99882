"""Threads and GPUs of jobs (`workflow/rules/resources.smk`)."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from support.running import ROOT

from popdesic.engine import needs

RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
TEXT = (ROOT / "workflow/rules/resources.smk").read_text()
#: What the threads of a rule are: numbers, constants, and the configured number of Beagle.
CONSTANTS = {"MANY", "SOME", "WIDE", "PER_COHORT", "BESIDE_GPU", "BEAGLE_THREADS"}


def resources(cores: int | None, *, cohorts: int = 4, nodes=None, device="cpu"):
    """The names of the rule file in a run with `cores`, for a study of cohorts of 1 000."""
    names = {
        "workflow": SimpleNamespace(cores=cores, nodes=nodes, is_main_process=True),
        "WorkflowError": ValueError,
        "COHORTS": list(range(cohorts)),
        "CONFIG": {
            "device": device,
        },
        "closure_gpus": lambda: 2,
        "GPUS": int(device != "cpu"),
        "n_samples": lambda *cohorts: 1000 * len(cohorts),
    }
    exec(compile(TEXT, "resources.smk", "exec"), names)
    return SimpleNamespace(**names)


def test_no_threads_are_a_call():
    """A number or a constant, so that a profile can say another one and a reader sees it."""
    found = [
        line for path in RULES for line in re.findall(r"^ *threads: (.*)", path.read_text(), re.M)
    ]
    assert len(found) > 40
    for words in found:
        for choice in re.split(r" if \w+ else ", words.split("  #")[0]):
            assert choice.isdigit() or choice in CONSTANTS, words


@pytest.mark.parametrize(
    ("cores", "many", "some", "wide"),
    [(1, 1, 1, 1), (2, 1, 1, 1), (4, 2, 1, 3), (16, 8, 4, 12), (64, 8, 4, 16), (None, 8, 4, 8)],
)
def test_jobs_run_side_by_side_on_few_cores(cores, many, some, wide):
    run = resources(cores, nodes=None if cores else 100)
    assert (many, some, wide) == (run.MANY, run.SOME, run.WIDE)
    if cores and cores > 1:
        assert cores >= 2 * run.MANY and cores > run.WIDE


@pytest.mark.parametrize(("cohorts", "threads"), [(1, 4), (4, 4), (8, 2), (200, 1)])
def test_jobs_of_cohorts_run_side_by_side(cohorts, threads):
    assert threads == resources(16, cohorts=cohorts).PER_COHORT


def test_closures_of_many_samples_take_several_gpus(monkeypatch):
    """Four cohorts of 1 000 are too few; on a CPU there is no GPU to ask for."""
    run = resources(8, device="gpu")
    assert run.closing_gpus() == 1
    monkeypatch.setattr(needs, "SPREAD_LEAST", 4000)
    assert run.closing_gpus() == 2
    assert resources(8, device="cpu").closing_gpus() == 0
