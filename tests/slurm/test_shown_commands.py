"""Run the documentation's commands for a cluster, as written, on a real Slurm."""

from __future__ import annotations

import pytest
from support.clone import make_clone, run
from support.commands import shown_commands
from support.study import FAST, make_cohorts, write_study

RUN = ".venv/bin/snakemake --profile slurm --directory STUDY"
ONE_JOB = ".venv/bin/popdesic run STUDY --profile slurm"
RESUME = ".venv/bin/popdesic resume STUDY"
#: Runs up to one stage, and polls more often than is polite on a shared cluster.
SHORT = " distance --slurm-init-seconds-before-status-checks 14 --latency-wait 5"


@pytest.mark.slurm
@pytest.mark.slow
def test_commands_for_a_cluster(slurm, tmp_path):
    assert {RUN, ONE_JOB, RESUME} <= {command.text for command in shown_commands()}
    clone = make_clone(tmp_path.resolve())
    study = write_study(tmp_path.resolve() / "study", make_cohorts((8,), n_sites=200), FAST)
    variables = {key: slurm.environment[key] for key in ("SLURM_CONF", "PATH")}
    run(clone, RUN.replace("STUDY", str(study)) + SHORT, seconds=900, **variables)
    assert (study / "results/distance/squared.npy").is_file()
    jobs = [job for job in slurm.jobs() if job["WorkDir"] == str(study)]
    assert len(jobs) >= 5
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    alone = write_study(tmp_path.resolve() / "alone", make_cohorts((8,), n_sites=200), FAST)
    run(clone, ONE_JOB.replace("STUDY", f"{alone} qc"), seconds=900, **variables)
    assert (alone / "results/qc/summary.tsv").is_file()
    assert len([job for job in slurm.jobs() if job["WorkDir"] == str(clone)]) == 1
    said = run(clone, f"{RESUME.replace('STUDY', str(study))} -- {SHORT}", **variables)
    assert "Nothing to be done" in said
