"""Facts that pages state, computed from the repository's files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import jobs_of_plan

from popdesic.study.resources import closing_minutes, expected_minutes, limit_mb, limit_minutes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/slurm.md"])
def test_a_clone_is_of_something(page):
    """Who reads of a clone must be able to make one."""
    text = (ROOT / page).read_text("utf-8")
    assert "git clone" in text or not re.search(r"\b(fresh|a) clone\b", text)


def test_the_first_command_is_given_where_it_works():
    text = (ROOT / "README.md").read_text("utf-8")
    before, command = re.search(r"([^\n]*)\n+```\n(make \w+)\n```", text).groups()
    assert before.endswith("in the root folder of this repository:")
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M)


def test_the_first_page_is_read_in_minutes():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700


#: Pages that a user needs not read: they say so first, and need no command.
FOR_DEVELOPERS = {"architecture", "design", "faults", "measurements", "seeds"}
COMMAND = re.compile(r"(`|^)(make|pip install|(\.venv/bin/)?popdesic) [\w.-]+", re.M)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_opens_with_what_it_is_for_and_a_command(page):
    title, empty, *lines = page.read_text("utf-8").splitlines()[:20]
    assert title.startswith("# ") and not empty
    first = " ".join(lines).split("  ")[0]  # up to an empty line
    assert re.match(r"[A-Z]|`\w", first), "a page begins with a sentence"
    assert ("for developers" in first) == (page.stem in FOR_DEVELOPERS)
    assert page.stem in FOR_DEVELOPERS or COMMAND.search("\n".join(lines))


def test_every_goal_has_its_figure_command_machine_and_date():
    text = (ROOT / "docs/measurements.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| (?!what|--)", line)]
    rows = [line.strip("| ").split(" | ") for line in lines if not line.startswith("|--")]
    assert len(rows) >= 18
    for row in rows:
        what, measured, goal, command, machine, date, page = row
        file, stem = re.match(
            r"`(tests/bench/(bench_\w+)\.py|make run)`( with `--[^`]*`)?$", command
        ).group(1, 2)
        assert (file == "make run" or (ROOT / file).is_file()) and machine and goal, what
        assert re.fullmatch(r"\d{1,2} Nov 2026", date), what
        link = re.search(r"\]\(([^)#]+)", page)[1]
        said = (ROOT / "docs" / link).read_text("utf-8")
        figure = re.search(r"\d{1,3}(?: \d{3})+|[\d.]+", measured)[0]
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d])", said), what
        assert (stem or file) in said, what


def test_the_table_of_slurm_is_what_rules_request(tmp_path):
    """Jobs and threads of the plan; memory and minutes grow by at most a sixth with files made."""
    for name in ("config", "resources"):
        (tmp_path / name).symlink_to(ROOT / name)
    planned: dict[str, list] = {}
    for job in jobs_of_plan(tmp_path):
        planned.setdefault(job["rule"], []).append(job)
    del planned["all"]
    del planned["measure_row"]  # grouped; the table says so
    text = (ROOT / "docs/slurm.md").read_text("utf-8")
    table = text[text.index("| rule | jobs |") :].split("\n\n")[0]
    row = r"^\| (\w+) \| (\d+) \| \w+ \| \d \| (\d+) \| ([\d ]+) \| (\d+) \|$"
    rows = re.findall(row, table, re.M)
    assert {row[0] for row in rows} == set(planned)
    for rule, *cells in rows:
        n_jobs, threads, memory, minutes = (int(cell.replace(" ", "")) for cell in cells)
        jobs = planned[rule]
        # A cluster gives 8 threads, whatever this machine has.
        assert (n_jobs, threads) == (len(jobs), min(8, max(job["threads"] for job in jobs))), rule
        least = max(job["mem_mb"] for job in jobs)
        assert least <= memory <= 7 / 6 * least, rule
        if rule != "scan_epistasis":  # its time follows from a forecast, which is a job
            least = max(job["runtime"] for job in jobs)
            assert least <= minutes <= least + 2, rule


def test_the_closure_of_a_hundred_thousand_is_what_its_rule_asks_for():
    """docs/scaling.md has what `popdesic plan` prints: memory and expected hours on a CPU."""
    rule = (ROOT / "workflow/rules/geodesic.smk").read_text("utf-8")
    rule = rule[rule.index("rule close_paths:") : rule.index("rule explain_paths:")]
    memory, time = (float(cost) for cost in re.findall(r"pairs=(\S+) \* PAIR", rule))
    text = (ROOT / "docs/scaling.md").read_text("utf-8")
    for n, said in ((30_000, 51), (100_000, 561)):
        assert round(limit_mb(memory * n**2) / 1000) == said
        assert f"{said} GB for {n // 1000} 000" in text
    minutes = time * n**2 + closing_minutes(gpu=False) * n**3
    hours = expected_minutes(limit_minutes(minutes)) / 60
    (row,) = re.findall(r"`close_paths`: expected time .* (\d+) h \|", text)
    assert int(row) == round(hours)


def test_bounds_of_shared_controls_are_those_of_their_program():
    """The table of docs/interactions.md is what its command prints."""
    command = [sys.executable, "tests/bench/bench_phenotypes.py", "--bound"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    printed = re.findall(r"^ *(\d+ \+ \d+) +([\d.]+) +([\d.]+)$", done.stdout, re.M)
    text = (ROOT / "docs/interactions.md").read_text("utf-8")
    assert printed == re.findall(r"^\| (\d+ \+ \d+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    assert printed[0][1] == "3.40"  # (3 000 + 7 x 2 000) / (3 000 + 2 000)
