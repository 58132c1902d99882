"""Run the workflow on a study with the installed Snakefile (`popdesic run`, `popdesic report`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import UserError
from ..core.log import INTERRUPTED
from ..core.places import HOME, PROFILES, SNAKEFILE
from .closing import REPORT
from .trust import settle_environment

#: Options that set the number of cores or jobs, or leave it to a profile or an executor. Without
#: any of them, `--cores all` is added.
CORES = {"--cores", "-c", "--jobs", "-j", "--profile", "--workflow-profile", "--executor", "-e"}
#: Options that need no cores.
NO_CORES = {"--unlock", "--lint", "--help", "-h", "--version", "-v"}
#: Environment variable: the profile without `--profile`.
PROFILE = "SNAKEMAKE_PROFILE"
#: A profile folder has at least one of these files.
PROFILE_FILES = ("config*.yaml", "profile*.yaml")


def run_study(study: Path, targets: Sequence[str] = (), arguments: Sequence[str] = ()) -> int:
    """Run Snakemake on a study; return its exit status.

    Parameters
    ----------
    study : Path
    targets : sequence of str
        Stages or files; everything by default.
    arguments : sequence of str
        Passed to Snakemake. ``--cores all`` is added unless an argument sets the number of cores or
        jobs. ``--profile`` may name one of Popdesic's own profiles, such as `slurm`. Relative paths
        are relative to the current folder.

    Raises
    ------
    UserError
        The folder is not a study.
    """
    command, variables = snakemake_command(study, targets, arguments), {**os.environ}
    settle_environment(variables)
    if name := variables.get(PROFILE):
        variables[PROFILE] = find_profile(name)
    with subprocess.Popen(command, env=variables) as process:
        before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        try:
            status = _wait(process)
        finally:
            signal.signal(signal.SIGTERM, before)
    return status if status >= 0 else 128 - status  # as a shell reports a signal


def _wait(process: subprocess.Popen) -> int:
    interrupted = False
    while True:
        try:
            status = process.wait()
            return INTERRUPTED if interrupted and status else status
        except KeyboardInterrupt:
            # The terminal sends Ctrl-C to Snakemake too, which then stops its jobs properly.
            interrupted = True


def snakemake_command(
    study: Path, targets: Sequence[str] = (), arguments: Sequence[str] = ()
) -> list[str]:
    """The command line that `run_study` runs."""
    require_study(study)
    # Snakemake would look for modules and for its default profile in the current folder.
    words = [sys.executable, "-P", "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    words += ["--directory", str(study.resolve())]
    if "--workflow-profile" not in map(option_of, arguments):
        words += ["--workflow-profile", str(PROFILES / "default")]
    if not (CORES | NO_CORES) & {option_of(word) for word in arguments}:
        words += ["--cores", "all"]
    # Targets come first: some of Snakemake's options take all words that follow.
    return [*words[:4], *targets, *words[4:], *_with_profiles(arguments)]


def require_study(study: Path) -> None:
    """Raise a UserError if a folder is not a study."""
    if not study.is_dir():
        raise UserError(f"{study} is not a folder; a study is a folder with config/cohorts.tsv.")
    if not (study / "config").is_dir():
        raise UserError(
            f"{study} has no folder config, so it is not a study; create one with `popdesic init "
            f"{study} FILE...`."
        )


def option_of(word: str) -> str:
    """The option in a word of a command line: `-c` for `-c4`, `--cores` for `--cores=4`."""
    if word[:1] == "-" and word[1:2] not in ("-", ""):
        return word[:2]
    return word.partition("=")[0]


def _with_profiles(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the names of Popdesic's own profiles replaced by their paths."""
    words = list(arguments)
    for k, word in enumerate(words):
        if word == "--profile" and k + 1 < len(words):
            words[k + 1] = find_profile(words[k + 1])
        elif word.startswith("--profile="):
            words[k] = f"--profile={find_profile(word.partition('=')[2])}"
    return words


def find_profile(name: str) -> str:
    """The path of the profile of this name, or the name if there is none.

    It is looked for in the user's and the site's configuration folders of Snakemake, where users
    can keep their own version, then among Popdesic's own. A profile can name programs, so one of
    the current folder, which may be a stranger's study, is used only if it is written as a path.

    Raises
    ------
    UserError
        Only the current folder has it.
    """
    from platformdirs import AppDirs

    if os.sep in name:
        return name
    folders = AppDirs("snakemake", "snakemake")
    for place in (folders.user_config_dir, folders.site_config_dir, HOME):
        path = Path(place, name)
        if path.is_file() or any(found for kind in PROFILE_FILES for found in path.glob(kind)):
            return str(path)
    if Path(name).exists():
        raise UserError(
            f"{name} is a profile of the current folder, which may be a study of someone else; "
            f"write ./{name} to use it."
        )
    return name


def profile_file(path: str) -> Path | None:
    """The file of a profile that `find_profile` found; None without one."""
    for kind in PROFILE_FILES:
        if found := sorted(Path(path).glob(kind)):
            return found[-1]
    return None


def make_report(study: Path, arguments: Sequence[str] = ()) -> int:
    """Bring the report up to date and print its path; return Snakemake's exit status."""
    status = run_study(study, ["report"], arguments)
    if not status and (study / REPORT).is_file():
        print(study / REPORT)
    return status
