"""The installed Snakemake has the private parts that Popdesic reads."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from popdesic.core.files import atomic_path, carrying_panel
from popdesic.core.places import HOME
from popdesic.study import snakemake_internals as internals

PACKAGE = HOME / "src" / "popdesic"
SNAKEFILE = """
module other:
    snakefile: "other.smk"
    config: {}

use rule * from other as other_*

print("main", is_module(workflow), has_given_config(workflow), records_jobs(workflow))
"""
OTHER = """
import sys
sys.path.insert(0, {src!r})
from popdesic.study.snakemake_internals import *

with open("said.txt", "a") as file:
    print(is_module(workflow), has_given_config(workflow), records_jobs(workflow), file=file)
ignore_script_dates(__import__("pathlib").Path({folder!r}) / "scripts")

rule first:
    output: "results/a.txt"
    log: "logs/first.log"
    params: sign="x"
    script: "scripts/write.py"

rule second:
    input: "results/a.txt"
    output: "results/b.txt"
    script: "scripts/write.py"

# The job of such a rule is a process that reads this file again, as all jobs on a cluster are.
rule third:
    input: "results/b.txt"
    output: "results/c.txt"
    run: open(output[0], "w").close()
"""

CHAIN = """
import sys
sys.path.insert(0, {src!r})
from popdesic.study.snakemake_internals import skip_unchanged

skip_unchanged()

rule first:
    output: "results/a.txt"
    params: sign=config["sign"]
    script: "scripts/keep.py"

rule second:
    input: "results/a.txt"
    output: "results/b.txt"
    params: word=config["word"]
    script: "scripts/copy.py"

rule third:
    input: "results/b.txt"
    output: "results/c.txt"
    script: "scripts/copy.py"
"""
#: Writes the first letter of the parameter; the second one stands for the panel.
KEEP = """
from popdesic.core.files import atomic_path, carrying_panel
with carrying_panel(snakemake.params.sign[1]), atomic_path(snakemake.output[0]) as path:
    path.write_text(snakemake.params.sign[0])
"""
COPY = """
from pathlib import Path
from popdesic.core.files import atomic_path
with atomic_path(snakemake.output[0]) as path:
    path.write_text(Path(snakemake.input[0]).read_text())
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> tuple[Path, str]:
    """A workflow that uses another one as a module, run to its end; and its output."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "scripts").mkdir()
    (folder / "scripts/write.py").write_text("open(snakemake.output[0], 'w').write('1')\n")
    text = OTHER.format(src=str(HOME / "src"), folder=str(folder))
    (folder / "other.smk").write_text(text)
    start = "from popdesic.study.snakemake_internals import *\n"
    (folder / "Snakefile").write_text(SNAKEFILE.replace("print", f"{start}print"))
    return folder, run(folder)


def run(folder: Path, *arguments: str) -> str:
    words = [sys.executable, "-m", "snakemake", "--cores", "1", "results/c.txt", *arguments]
    done = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_use_as_a_module_is_detected(ran):
    assert "main False False True" in ran[1]
    said = (ran[0] / "said.txt").read_text().splitlines()
    assert said[0] == "True True True"
    # a job's process leaves records to the process that planned it
    assert "True True False" in said


def test_records_are_where_snakemake_writes_them(ran):
    folder, _ = ran
    record = internals.read_record(folder, "results/b.txt")
    assert record["rule"] == "other_second"
    assert record["input"] == ["results/a.txt"]
    assert record["endtime"] >= record["starttime"] > 0
    first = internals.read_record(folder, "results/a.txt")
    assert first["log"] == ["logs/first.log"]
    assert first["params"] == ["'x'"]
    assert "results/a.txt" in internals.RecordNames(folder, internals.METADATA)
    assert "results/a.txt" not in internals.RecordNames(folder, internals.INCOMPLETE)
    assert internals.read_record(folder, "results/d.txt") is None


def test_a_record_with_other_parameters_runs_the_rule_again(ran):
    folder, _ = ran
    kept = internals.snakemake_path(folder, internals.METADATA, "results/a.txt").read_text()
    internals.write_record(folder, "results/a.txt", internals.record_of("other_first", ["y"]))
    assert "Params have changed" in run(folder, "--dry-run")
    internals.write_record(folder, "results/a.txt", kept)
    assert "Nothing to be done" in run(folder, "--dry-run")


def test_dates_of_scripts_rerun_nothing(ran):
    folder, _ = ran
    script = folder / "scripts/write.py"
    script.touch()
    assert "Nothing to be done" in run(folder, "--dry-run")
    other = folder / "other.smk"
    text = other.read_text()
    try:
        other.write_text(text.replace("ignore_script_dates(", "print("))
        assert "Code has changed" in run(folder, "--dry-run")
    finally:
        other.write_text(text)


@pytest.mark.parametrize("length", [5, 150, 180, 181, 190, 191, 192, 400, 1000])
def test_paths_of_records_are_those_of_snakemake(tmp_path, length):
    from snakemake.persistence.file import FilePersistence

    result = "results/" + "/".join(["n" * 100] * (length // 100) + ["n" * (length % 100)])
    persistence = FilePersistence.__new__(FilePersistence)
    persistence._max_len = os.pathconf(tmp_path, "PC_NAME_MAX")
    subject = str(tmp_path / ".snakemake" / "metadata")
    expected = persistence._record_path(subject, result)
    assert str(internals.snakemake_path(tmp_path, "metadata", result)) == expected


@pytest.fixture
def chain(tmp_path) -> Callable[..., list[str]]:
    """Runs a chain of three rules with a sign and a word; returns the rules that ran."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/keep.py").write_text(KEEP)
    (tmp_path / "scripts/copy.py").write_text(COPY)
    (tmp_path / "Snakefile").write_text(CHAIN.format(src=str(HOME / "src")))

    def run_chain(sign: str, *arguments: str, word: str = "x") -> list[str]:
        said = run(tmp_path, *arguments, "--config", f"sign={sign}", f"word={word}")
        assert (tmp_path / "results/c.txt").read_text() == sign[0]
        return re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", said, re.MULTILINE)

    assert run_chain("1p") == ["first", "second", "third"]
    return run_chain


def test_jobs_run_only_behind_those_that_change_something(chain, tmp_path):
    assert chain("1pq") == ["first"]
    assert "Nothing to be done" in run(tmp_path, "--dry-run", "--config", "sign=1pq", "word=x")
    assert chain("2p") == ["first", "second", "third"]
    assert chain("2q") == ["first", "second"]  # another panel; b.txt has none
    assert chain("1q", "--rerun-triggers", "params") == ["first", "second", "third"]


def test_jobs_with_a_reason_of_their_own_run(chain, tmp_path):
    assert chain("1pq", word="y") == ["first", "second"]
    assert chain("1pr", "-R", "third", word="y") == ["first", "third"]
    # A bit may have flipped in a.txt, whose kept checksum is that of what is written now.
    assert chain("1pr", "-R", "first", word="y") == ["first", "second"]
    (tmp_path / "results/b.txt").write_text("cut short")
    assert chain("1ps", word="y") == ["first", "second", "third"]
    # A run that was killed behind its first job: b.txt is of another a.txt.
    with carrying_panel("p"), atomic_path(tmp_path / "results/a.txt") as path:
        path.write_text("2")
    assert chain("2p", word="y") == ["first", "second", "third"]


def test_the_plugin_logs_the_name_of_its_jobs():
    import snakemake_executor_plugin_slurm as plugin

    assert internals.RUN_ID.pattern.split("(")[0] in inspect.getsource(plugin)


def test_plans_and_records_go_through_this_file_alone():
    """No other file imports Snakemake or reads its private members."""
    for path in PACKAGE.rglob("*.py"):
        if path.name == "snakemake_internals.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            names.append(getattr(node, "module", None) or "")
            assert not any(name.split(".")[0] == "snakemake" for name in names), path
