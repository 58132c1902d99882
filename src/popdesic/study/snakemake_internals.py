"""What Popdesic reads of Snakemake that Snakemake does not promise to keep: all of it is here.

`tests/unit/study/test_snakemake_internals.py` says whether the installed version still has it.
"""

from __future__ import annotations

from pathlib import Path


def is_module(workflow) -> bool:
    """Whether another workflow uses the Snakefile that is being read."""
    return not workflow.modifier.is_main_snakefile()


def has_given_config(workflow) -> bool:
    """Whether that workflow hands a configuration over, in place of `config/config.yaml`."""
    return workflow.modifier.skip_configfile


def records_jobs(workflow) -> bool:
    """Whether this process writes the records of what results were made of."""
    if workflow.is_main_process:
        return True
    remote = workflow.remote_execution_settings
    return bool(remote and remote.immediate_submit)


def ignore_script_dates(folder: Path) -> None:
    """Let no date of a script in `folder` be a reason to run its rule again.

    Snakemake compares it with the dates of results: a fresh copy of this repository would make
    everything again. What a script runs is a parameter of its rule instead (`code.code_of`).
    """
    from snakemake import jobs

    of_file = getattr(jobs, "get_script_mtime", None)
    if of_file is None or getattr(of_file, "ignored", None) == folder:
        return

    def of_others(path: str) -> float:
        return 0.0 if Path(path).parent.resolve() == folder else of_file(path)

    of_others.ignored = folder
    jobs.get_script_mtime = of_others
