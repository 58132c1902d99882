"""The table of work, from records written by Snakemake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd

from popdesic.report.page import _environment
from popdesic.study.work import work_section

PACKAGE = Path(__file__).parents[3] / "src"
SNAKEFILE = """
rule all:
    input:
        "results/report/work.tsv",

rule make_part:
    input:
        "{part}.in",
    output:
        "{part}.out",
    log:
        "logs/make_part/{part}.log",
    benchmark:
        "benchmarks/make_part/{part}.tsv"
    shell:
        "sleep 0.1; cp {input} {output}"

rule join_parts:
    input:
        "a.out",
        "b.out",
    output:
        "joined",
    log:
        "logs/join_parts.log",
    benchmark:
        "benchmarks/join_parts.tsv"
    shell:
        "cat {input} > {output}"

rule count_work:
    input:
        "joined",
    output:
        "results/report/work.tsv",
    shell:
        "PYTHONPATH=PACKAGE PYTHON count.py {input} {output}"
"""
COUNT = """
import sys
from pathlib import Path
from popdesic.study.work import count_work
count_work(Path(), sys.argv[1:2], Path(sys.argv[2]))
"""


def run(folder: Path) -> pd.DataFrame:
    words = ["-m", "snakemake", "--cores", "1", "--quiet", "all"]
    subprocess.run([sys.executable, *words], cwd=folder, check=True, timeout=300)
    return pd.read_csv(folder / "results/report/work.tsv", sep="\t").set_index("rule")


def test_jobs_run_and_reused_are_counted(tmp_path):
    text = SNAKEFILE.replace("PACKAGE", str(PACKAGE)).replace("PYTHON ", f"{sys.executable} ")
    (tmp_path / "Snakefile").write_text(text)
    (tmp_path / "count.py").write_text(COUNT)
    for part in "ab":
        (tmp_path / f"{part}.in").write_text(part)
    first = run(tmp_path)
    assert list(first.index) == ["make_part", "join_parts"]
    assert list(first.jobs_run) == [2, 1]
    assert list(first.jobs_reused) == [0, 0]
    assert first.seconds["make_part"] >= 0.2
    (tmp_path / "b.in").write_text("c")
    later = run(tmp_path)
    assert list(later.jobs_run) == [1, 1]
    assert list(later.jobs_reused) == [1, 0]
    section = work_section(tmp_path / "results")
    assert (section["run"], section["reused"]) == (2, 1)
    page = _environment().get_template("work.html.j2").render(work=section)
    assert "2 ran, 1 were reused" in page
    assert work_section(tmp_path) is None
