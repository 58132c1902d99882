"""Run the workflow on a study by the installed Snakefile (`popdesic run`, `popdesic report`)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..io.errors import UserError
from ..io.places import HOME, SNAKEFILE

#: Options that say how many jobs run at once, or who decides it: without one it is all cores.
CORES = {"--cores", "-c", "--jobs", "-j", "--profile", "--workflow-profile", "--executor", "-e"}
#: Options that need no cores.
NO_CORES = {"--unlock", "--lint", "--help", "-h", "--version", "-v"}
#: What a profile's folder holds, one of them.
PROFILE_FILES = ("config*.yaml", "profile*.yaml")
REPORT = Path("results/report/report.html")


def run_study(study: Path, targets: Sequence[str] = (), arguments: Sequence[str] = ()) -> int:
    """Run Snakemake on a study; return its exit status.

    Parameters
    ----------
    study : Path
    targets : sequence of str
        Stages or files; by default everything.
    arguments : sequence of str
        For Snakemake. Without one that says how many cores it is ``--cores all``; ``--profile``
        may name a profile of Popdesic's, such as `slurm`.

    Raises
    ------
    UserError
        There is no such study.
    """
    with subprocess.Popen(snakemake_command(study, targets, arguments)) as process:
        before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            status = _wait(process)
        finally:
            signal.signal(signal.SIGTERM, before)
    return status if status >= 0 else 128 - status  # as a shell says it


def _wait(process: subprocess.Popen) -> int:
    while True:
        # Ctrl-C reaches Snakemake by itself, which then ends its jobs in good order.
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


def snakemake_command(
    study: Path, targets: Sequence[str] = (), arguments: Sequence[str] = ()
) -> list[str]:
    """The command line of `run_study`."""
    require_study(study)
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    words += ["--directory", str(study.resolve())]
    if not (CORES | NO_CORES) & {_option(word) for word in arguments}:
        words += ["--cores", "all"]
    # Targets first: some options of Snakemake take as many words as follow.
    return [*words[:3], *targets, *words[3:], *_with_profiles(arguments)]


def require_study(study: Path) -> None:
    """Raise a UserError where a folder holds no study."""
    if not study.is_dir():
        raise UserError(f"{study} is no folder; a study is a folder with config/cohorts.tsv.")
    if not (study / "config").is_dir():
        raise UserError(
            f"{study} has no folder config, so it holds no study; make one with `popdesic init "
            f"{study} FILE...`."
        )


def _option(word: str) -> str:
    """The option that a word of a command line is: `-c4` and `--cores=4` are `-c` and `--cores`."""
    if word[:1] == "-" and word[1:2] not in ("-", ""):
        return word[:2]
    return word.partition("=")[0]


def _with_profiles(arguments: Sequence[str]) -> list[str]:
    """The arguments with the path of each profile of ours that is named."""
    words = list(arguments)
    for k, word in enumerate(words):
        if word == "--profile" and k + 1 < len(words):
            words[k + 1] = find_profile(words[k + 1])
        elif word.startswith("--profile="):
            words[k] = f"--profile={find_profile(word.partition('=')[2])}"
    return words


def find_profile(name: str) -> str:
    """The path of a profile of ours, unless Snakemake finds one of this name by itself.

    It looks in the current folder, then in the configuration folders of the user and the site:
    there one can keep an adapted copy.
    """
    from platformdirs import AppDirs

    folders = AppDirs("snakemake", "snakemake")
    places = (Path(), Path(folders.user_config_dir), Path(folders.site_config_dir))
    if any((place / name).exists() for place in places):
        return name
    own = HOME / name
    if os.sep not in name and any(path for kind in PROFILE_FILES for path in own.glob(kind)):
        return str(own)
    return name


def make_report(study: Path, arguments: Sequence[str] = ()) -> int:
    """Compute what the report still lacks, and print its path; return Snakemake's exit status."""
    status = run_study(study, ["report"], arguments)
    if not status and (study / REPORT).is_file():
        print(study / REPORT)
    return status
