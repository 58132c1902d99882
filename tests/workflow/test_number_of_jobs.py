"""The number of rules and of jobs, which each have a start of their own and a name to be learnt."""

from __future__ import annotations

import re

from support.running import planned, snakemake

from popdesic.core.places import HOME

FILES = [HOME / "Snakefile", *sorted((HOME / "workflow/rules").glob("*.smk"))]
#: Statements that define a rule, and jobs of the example.
MOST_RULES, MOST_JOBS = 54, 40


def test_rules_are_few():
    text = "\n".join(path.read_text("utf-8") for path in FILES)
    rules = re.findall(
        r"^ *(?:use rule \w+ as \w+ with|rule(?: \w+)?|checkpoint \w+):$", text, re.M
    )
    assert len(rules) <= MOST_RULES


def test_the_example_has_few_jobs(tmp_path):
    (tmp_path / "config").symlink_to(HOME / "config")
    (tmp_path / "resources").symlink_to(HOME / "resources")
    jobs = planned(snakemake(tmp_path, "-n"))
    assert 20 < sum(jobs.values()) <= MOST_JOBS
