"""Study folders are data: nothing in a stranger's study is executed (`popdesic.study.trust`)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from support.running import ROOT
from support.study import FAST, make_cohorts, write_study

from popdesic.core.errors import UserError
from popdesic.study.configuration import fill_config
from popdesic.study.trust import REFUSED, refuse_programs, settle_caches, settle_environment

#: Modules of all kinds that a run imports or looks for.
MODULES = (
    *("numpy", "yaml", "pandas", "scipy", "numba", "matplotlib", "jinja2", "zarr", "sklearn"),
    *("snakemake", "jsonschema", "threadpoolctl", "popdesic", "graph_tool", "cupy", "pgenlib"),
    *("fastmixture", "sitecustomize", "usercustomize", "json", "contextlib", "types", "threading"),
    "snakemake_executor_plugin_evil",
)
#: Folders of a study in which Python or Snakemake might look for them.
PLACES = (".", "src", "config", "workflow/scripts", ".snakemake/scripts", "popdesic")


@pytest.fixture
def hostile(tmp_path) -> Path:
    """A study that would write to `executed` whatever of it is executed."""
    folder = write_study(tmp_path / "study", make_cohorts((16, 14)), FAST)
    canary = tmp_path / "executed"

    def write(name: str, text: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def code(what: str) -> str:
        return f"open({str(canary)!r}, 'a').write({what + chr(10)!r})"

    for place in PLACES:
        for module in MODULES:
            write(f"{place}/{module}.py", code(f"{place}/{module}"))
    for name in ("Snakefile", "workflow/Snakefile", "snakefile"):
        write(name, code(name))
    for name in ("profiles/default", "default", "slurm", "mine"):
        evaluated = [f"mem_mb={code(name)}"]
        write(f"{name}/config.yaml", yaml.safe_dump({"default-resources": evaluated}))
    write("matplotlibrc", "backend: module://numpy\nfigure.facecolor: red\n")
    return folder


def popdesic(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    """Run the installed command in a folder, as a user does."""
    script = "import sys; from popdesic.__main__ import main; sys.exit(main())"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(
        [sys.executable, "-P", "-c", script, *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT / "src")} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def executed(folder: Path) -> str:
    canary = folder.parent / "executed"
    return canary.read_text() if canary.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables, target",
    [
        ({"HOME": "/proc/none"}, "results/figures/pca.svg"),
        pytest.param({"POPDESIC_FRESH_JOBS": "1"}, "panel", marks=pytest.mark.slow),
    ],
)
def test_a_run_executes_nothing_of_the_study(hostile, tmp_path, variables, target):
    """Without a HOME too, as in containers. Fresh jobs are those of other systems and of Slurm."""
    variables |= {"TMPDIR": str(tmp_path / "temporary"), "XDG_CACHE_HOME": "", "MPLCONFIGDIR": ""}
    (tmp_path / "temporary").mkdir()
    for words in (["check"], ["plan"], ["run", "-n"], ["run", ".", target, "--cores", "2"]):
        done = popdesic(hostile, *words, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr and executed(hostile) == ""
        assert not list((tmp_path / "temporary").glob("*popdesic*"))
        assert not list((tmp_path / "temporary").glob("*matplotlib*"))


def plain_snakemake(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Run Snakemake in the repository, on a study named by --directory."""
    start = [sys.executable, "-P", "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    words = [*start, "--directory", str(folder), "--cores", "2", *words]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_plain_snakemake_executes_nothing_of_a_study_named_by_directory(hostile):
    done = plain_snakemake(hostile, "panel")
    assert done.returncode == 0, done.stdout + done.stderr
    assert executed(hostile) == ""


def test_profiles_of_the_study_are_used_only_by_their_path(hostile):
    by_name = popdesic(hostile, "run", "-n", "--profile", "mine")
    assert by_name.returncode == 1 and "write ./mine to use it" in by_name.stderr
    assert executed(hostile) == ""
    by_variable = popdesic(hostile, "run", "-n", SNAKEMAKE_PROFILE="mine")
    assert by_variable.returncode == 1 and "write ./mine to use it" in by_variable.stderr
    assert executed(hostile) == ""
    by_path = popdesic(hostile, "run", "-n", "--profile", "./mine")
    assert executed(hostile).startswith("mine"), by_path.stdout + by_path.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_what_programs_would_read_from_the_study_is_refused(hostile, name):
    (hostile / name).parent.mkdir(exist_ok=True)
    (hostile / name).write_text("cache_dir: cache\n")
    for words in (["check"], ["plan"], ["run", "-n"], ["report"], ["audit"]):
        done = popdesic(hostile, *words)
        assert done.returncode == 1 and executed(hostile) == ""
        assert done.stderr == f"Error: {name} exists, and {REFUSED[name]}; a study may " + (
            "hold data only: delete it.\n"
        )
    done = plain_snakemake(hostile, "--dry-run")
    assert done.returncode == 1 and REFUSED[name] in done.stdout + done.stderr
    with pytest.raises(UserError):
        refuse_programs(hostile)


def test_a_program_in_the_configuration_is_refused_in_one_sentence():
    with pytest.raises(UserError, match="a study must not name programs"):
        fill_config({"communities": {"graph_tool_python": "./python"}})


def test_relative_folders_of_modules_are_left_out():
    variables = {"PYTHONPATH": os.pathsep.join(["", "/opt/lib", "lib", "."])}
    settle_environment(variables)
    assert variables["PYTHONPATH"] == "/opt/lib" and variables["PYTHONSAFEPATH"] == "1"
    assert all(Path(folder).is_absolute() for folder in sys.path)


def test_caches_that_can_be_written_stay(tmp_path, monkeypatch):
    variables = {"XDG_CACHE_HOME": str(tmp_path / "caches"), "MPLCONFIGDIR": "/proc/given"}
    monkeypatch.setenv("HOME", str(tmp_path))
    settle_caches(variables)
    assert variables == {"XDG_CACHE_HOME": str(tmp_path / "caches"), "MPLCONFIGDIR": "/proc/given"}
    monkeypatch.setenv("HOME", "/proc/none")
    settle_caches(variables)
    assert variables.pop("CUPY_CACHE_DIR").startswith(tempfile.gettempdir())
    assert variables.pop("XDG_CACHE_HOME") == str(tmp_path / "caches")
    variables = {}
    settle_caches(variables)
    assert set(variables) == {"XDG_CACHE_HOME", "MPLCONFIGDIR", "CUPY_CACHE_DIR"}
    assert all(Path(folder).is_absolute() for folder in variables.values())
