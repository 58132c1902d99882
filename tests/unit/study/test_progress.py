"""Lines of progress: counts, the arithmetic of the time left, and what a run prints."""

from __future__ import annotations

import logging
import re
import subprocess
import sys

import pytest

from popdesic.core.places import HOME
from popdesic.study.progress import (
    Progress,
    ProgressLines,
    about,
    benchmark_seconds,
    rule_seconds,
)
from popdesic.study.snakemake_internals import RunStep

ROWS = [RunStep(n, "measure_row", "distance", runtime=8) for n in range(8)]
SNAKEFILE = """
import sys
sys.path.insert(0, {src!r})
from snakemake.logging import logger

rule all:
    input: expand("results/{{k}}.joined", k=range(4))

include: "pieces.smk"

onstart:
    from popdesic.study.progress import show_progress
    show_progress(workflow, logger)
"""
PIECES = """
rule make_piece:
    output: "results/{k}.piece"
    resources: runtime=lambda wildcards, input, attempt: 5
    shell: "touch {output}"

rule join_piece:
    input: "results/{k}.piece"
    output: "results/{k}.joined"
    shell: "touch {output}"
"""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "a few seconds"),
        (2.4, "a few seconds"),
        (2.6, "about 5 s"),
        (59, "about 1 min"),
        (98.7, "about 1 min 40 s"),
        (301, "about 5 min"),
        (350, "about 6 min"),
        (3_599, "about 1 h"),
        (4_000, "about 1 h 5 min"),
        (100_000, "about 28 h"),
    ],
)
def test_times_are_rounded(seconds, text):
    assert about(seconds) == text


def run_one_by_one(progress: Progress, numbers, seconds: float, now: float = 0.0) -> float:
    for n in numbers:
        progress.start(n, now)
        now += seconds
        progress.finish(n, now)
    return now


def test_nothing_before_enough_jobs_and_after_the_last():
    progress = Progress(ROWS)
    now = run_one_by_one(progress, [0, 1], 10)
    assert progress.line(1, now) == "distance 2/8 · study 2/8"
    now = run_one_by_one(progress, range(2, 7), 10, now)
    assert progress.line(6, now) == "distance 7/8 · study 7/8 · about 10 s left"
    now = run_one_by_one(progress, [7], 10, now)
    assert progress.line(7, now) == "distance 8/8 · study 8/8"


def test_short_jobs_of_a_long_run_say_nothing_about_it():
    steps = [RunStep(n, "read", "ingest") for n in range(5)]
    steps.append(RunStep(9, "scan", "epistasis", runtime=305))  # 100 minutes, in part a margin
    progress = Progress(steps)
    now = run_one_by_one(progress, range(5), 1)
    assert progress.left(now) is None


@pytest.mark.parametrize("factor", [0.1, 1, 7])
def test_the_forecast_is_corrected_by_what_jobs_took(factor):
    """Jobs of two rules, one expected to take longer: so it does, at any speed."""
    short = [RunStep(n, "measure_row", "distance", runtime=8) for n in range(4)]
    long = [RunStep(n, "close", "geodesic", runtime=35) for n in range(4, 6)]
    progress = Progress([*short, *long])
    now = run_one_by_one(progress, range(4), rule_seconds(8) * factor)
    assert progress.left(now) == pytest.approx(2 * rule_seconds(35) * factor)


def test_few_minutes_that_a_rule_expects_say_little():
    """The embedded example's jobs take 2 to 100 s, with limits of 5 to 43 minutes."""
    assert rule_seconds(5) == 10
    assert 10 < rule_seconds(8) < 15
    assert rule_seconds(27) < 120
    assert rule_seconds(5 + 3 * 600) == pytest.approx(36_000, rel=0.05)


def test_a_rule_is_corrected_by_its_own_jobs():
    steps = [*ROWS, *[RunStep(n, "draw", "report", runtime=8) for n in range(8, 12)]]
    progress = Progress(steps)
    now = run_one_by_one(progress, range(6), 10)
    now = run_one_by_one(progress, [8, 9], 200, now)
    assert progress.left(now) == pytest.approx(2 * 10 + 2 * 200)


def test_jobs_side_by_side_and_jobs_that_run():
    progress = Progress(ROWS)
    for n in (0, 2, 4):  # two at a time, 10 s each
        progress.start(n, 5.0 * n)
        progress.start(n + 1, 5.0 * n)
        progress.finish(n, 5.0 * n + 10)
        progress.finish(n + 1, 5.0 * n + 10)
    progress.start(6, 30)
    progress.start(7, 30)
    assert progress.left(34) == pytest.approx(6)


def test_a_chain_is_not_divided_among_cores():
    chain = [RunStep(n, "close", "geodesic", runtime=8, after=(n - 1,)) for n in range(11, 14)]
    progress = Progress([*ROWS, RunStep(10, "close", "geodesic", runtime=8, after=(0,)), *chain])
    for n in range(8):
        progress.start(n, 0)
    for n in range(8):
        progress.finish(n, 10)
    assert progress.left(10) == pytest.approx(4 * 10)


def test_an_overdue_job_is_not_about_to_end_forever():
    progress = Progress(ROWS)
    now = run_one_by_one(progress, range(7), 10)
    progress.start(7, now)
    assert progress.left(now + 100) == pytest.approx(20, rel=0.2)


def test_benchmarks_of_earlier_runs(tmp_path):
    """They are the forecast; a cohort without one takes the mean of the others."""
    (tmp_path / "rows").mkdir()
    steps = [RunStep(n, "measure_row", "distance", 8, f"rows/{n}.tsv") for n in range(3)]
    others = [RunStep(n, f"rule{n}", "report", 8, f"{n}.tsv") for n in range(3, 7)]
    for n, seconds in ((0, 20), (1, 40)):
        (tmp_path / f"rows/{n}.tsv").write_text(f"s\th:m:s\n{seconds}\t0:00:00\n")
    for n in range(3, 7):
        (tmp_path / f"{n}.tsv").write_text("s\th:m:s\n5.0\t0:00:05\n")
    progress = Progress([*steps, *others], tmp_path)
    assert [progress.forecast[n] for n in (0, 1, 2, 3)] == [20, 40, 30, 5]
    now = run_one_by_one(progress, range(3, 7), 10)  # twice as slow as then
    assert progress.left(now) == pytest.approx(2 * 90)


def test_damaged_benchmarks_are_left_aside(tmp_path):
    path = tmp_path / "a.tsv"
    assert benchmark_seconds(path) is None
    for text in ("", "s\n-\n", "time\n1\n"):
        path.write_text(text)
        assert benchmark_seconds(path) is None


def test_jobs_that_fail_start_again():
    progress = Progress(ROWS)
    progress.start(0, 0)
    progress.fail(0)
    progress.start(0, 100)
    progress.finish(0, 110)
    assert progress.took == {0: 10}
    progress.start(99, 0)  # unknown jobs are no jobs of the plan
    progress.finish(99, 1)
    assert len(progress.took) == 1


def event(logger: logging.Logger, name: str, **words) -> None:
    logger.info(None, extra={"event": name} | words)


@pytest.fixture
def logger():
    logger = logging.Logger("snakemake")
    logger.said = []
    stream = logging.StreamHandler()
    stream.emit = lambda record: logger.said.append(record.msg or record.event)
    logger.addHandler(stream)
    return logger


def test_lines_replace_those_of_snakemake(logger):
    ProgressLines(logger, lambda: ROWS[:2]).attach()
    event(logger, "job_info", jobid=0)
    event(logger, "job_finished", job_id=0)
    event(logger, "progress", done=1, total=2)
    assert logger.said == ["job_info", "job_finished", "distance 1/2 · study 1/2"]


def test_jobs_of_a_group_end_together(logger):
    """On Slurm rows of tiles share a job: one line for all that have ended."""
    ProgressLines(logger, lambda: ROWS[:4]).attach()
    for number in (0, 1, 2):
        event(logger, "job_info", jobid=number)
    for number in (0, 1, 2):
        event(logger, "job_finished", job_id=number)
    event(logger, "progress", done=3, total=4)
    assert logger.said[-1].startswith("distance 3/4 · study 3/4 · ")
    assert sum("study" in said for said in logger.said) == 1


def test_jobs_found_by_a_checkpoint_are_added(logger):
    plan = ROWS[:2]
    ProgressLines(logger, lambda: plan).attach()
    plan = ROWS
    event(logger, "job_info", jobid=5)
    event(logger, "job_finished", job_id=5)
    event(logger, "progress", done=1, total=8)
    assert logger.said[-1] == "distance 1/8 · study 1/8"


def test_a_run_goes_on_without_them(logger):
    """An event without its number ends the lines; Snakemake's own are back."""
    ProgressLines(logger, lambda: ROWS).attach()
    event(logger, "job_info")
    event(logger, "progress", done=1, total=2)
    assert logger.said == ["job_info", "progress"]


@pytest.mark.parametrize("quiet", [False, True])
def test_what_a_run_prints(tmp_path, quiet):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(src=str(HOME / "src")))
    (tmp_path / "pieces.smk").write_text(PIECES)
    words = [sys.executable, "-m", "snakemake", "--cores", "2", *["--quiet", "progress"] * quiet]
    done = subprocess.run(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    lines = re.findall("^pieces .*$", done.stdout, re.MULTILINE)
    assert "steps (" not in done.stdout
    assert "\r" not in done.stdout
    assert "\033" not in done.stdout
    if quiet:
        assert not lines
        return
    counts = [re.match(r"pieces (\d)/8 · study (\d)/8", line).groups() for line in lines]
    assert counts[-1] == ("8", "8")
    assert [int(a) for a, _ in counts] == sorted(int(b) for _, b in counts)
    assert not lines[-1].endswith("left")
    assert all(line.endswith("left") for line in lines if 3 <= int(line[7]) < 8)
