"""The documentation's commands for a cluster, typed as they stand on a real Slurm."""

from __future__ import annotations

import pytest
from clone import make_clone, run
from commands import shown_commands
from running import contents
from study import FAST, make_cohorts, write_study

RUN = ".venv/bin/snakemake --profile slurm --directory STUDY"
RESUME = ".venv/bin/popdesic resume STUDY"


@pytest.mark.slurm
@pytest.mark.slow
def test_commands_for_a_cluster(slurm, tmp_path):
    shown = {command.text for command in shown_commands()}
    assert {RUN, RESUME} <= shown
    clone = make_clone(tmp_path.resolve())
    study = write_study(tmp_path.resolve() / "study", make_cohorts((16, 14)), FAST)
    for command in (RUN, RESUME):  # the second finds all done
        run(clone, command.replace("STUDY", str(study)), **slurm_variables(slurm))
    assert (study / "results/report/report.html").is_file()
    jobs = [job for job in slurm.jobs() if job["WorkDir"] == str(study)]
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert len(contents(study)) > 20


def slurm_variables(slurm) -> dict[str, str]:
    """What Slurm's commands need to find this Slurm."""
    return {key: slurm.environment[key] for key in ("SLURM_CONF", "PATH")}
