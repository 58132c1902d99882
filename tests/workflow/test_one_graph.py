"""The same jobs and edges whatever the device, large or small."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.study import make_cohorts, write_study

from popdesic.study.snakemake_internals import planned_jobs

RULES = Path(__file__).parents[2] / "workflow/rules"


def graph_of(folder: Path, device: str) -> set[tuple]:
    """Rule and outputs of every job of a study, with those of the jobs that it waits for."""
    path = folder / "config/config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"device": device}))
    jobs = planned_jobs(folder)
    names = [(job.rule, *job.outputs) for job in jobs]
    return {
        (name, tuple(names[k] for k in job.after)) for name, job in zip(names, jobs, strict=True)
    }


@pytest.mark.parametrize("limit", [1000, 20])
def test_a_study_has_the_same_graph_on_every_device(tmp_path, limit):
    config = {"distance": {"dense_limit": limit}}
    folder = write_study(tmp_path / "study", make_cohorts((14, 12, 6), n_sites=60), config)
    cpu, gpu = (graph_of(folder, device) for device in ("cpu", "gpu"))
    assert len(cpu) > 30
    assert cpu == gpu


def test_no_rule_is_chosen_among_others():
    words = [path.name for path in RULES.glob("*.smk") if "ruleorder" in path.read_text("utf-8")]
    assert not words
