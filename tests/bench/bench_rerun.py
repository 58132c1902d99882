"""What a run does after a change of a finished study: jobs and CPU seconds.

python tests/bench/bench_rerun.py [CHANGE ...] [--dense-limit N] [--scratch] [--quick]

The study is the embedded example, whose newcomers `arctic` are without their last 58 samples, which
are the cohort `boreal` that arrives. Each change is made in a copy of the finished study:

founder    the label (`population`) of one founder is another one
newcomer   the same of one newcomer
column     the sheet has another column, with three values
cohort     the cohort `boreal` arrives
touch      a cohort's file has a new date and the same bytes
colour     `report.color_by` is another column

`left out` are jobs that were planned, but whose input came out with the bytes that it had; `all`
are the jobs of a run from scratch. With `--dense-limit` the study has nearest samples in place of
matrices, if it has more samples than that. `--scratch` also runs each changed study from scratch
and compares the bytes of all results, except those that hold run times.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import commandline
import yaml
from bench_newcomers import Cohort, files
from bench_study import children_cpu
from study_costs import read_rows
from support.running import finished
from support.study import FAST, make_cohorts
from support.study import write_study as write_test_study
from timing import print_table

from popdesic.study.snakemake_internals import planned_jobs

ROOT = Path(__file__).resolve().parents[2]
#: The cohort that arrives, its size, and the cohort that its samples are taken from.
ARRIVING, SIZE, TAKEN_FROM = "boreal", 58, "arctic"
LEFT_OUT = re.compile(r"^Input of jobid \d+ unchanged, not run", re.MULTILINE)
#: Rules that compute coordinates.
DRAWING = re.compile(r"compute_(pca|pcoa|umap|further_maps)")


def write_example(folder: Path) -> None:
    """Write the embedded example in four cohorts; the last is in no sheet still."""
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copytree(ROOT / "resources/example", folder / "resources/example")
    sheet = folder / "config/samples.tsv"
    lines = sheet.read_text().splitlines()
    names = [line.split("\t")[0] for line in lines[1:] if line.split("\t")[1] == TAKEN_FROM]
    source = ROOT / f"resources/example/{TAKEN_FROM}.vcf.gz"
    arriving = set(names[-SIZE:])
    for name, people in ((TAKEN_FROM, names[:-SIZE]), (ARRIVING, names[-SIZE:])):
        Cohort(name, source, people, False).write(folder)
    staying = [line for line in lines if line.split("\t")[0] not in arriving]
    rows = [line for line in lines if line.split("\t")[0] in arriving]
    sheet.write_text("\n".join(staying) + "\n")
    (folder / "arriving.tsv").write_text(
        "".join(line.replace(f"\t{TAKEN_FROM}\t", f"\t{ARRIVING}\t", 1) + "\n" for line in rows)
    )
    cohorts = folder / "config/cohorts.tsv"
    old = f"resources/example/{TAKEN_FROM}.vcf.gz"
    cohorts.write_text(cohorts.read_text().replace(old, f"data/{TAKEN_FROM}.vcf.gz"))


def write_quick(folder: Path) -> None:
    """Write a study of seconds, and the rows of the cohort that arrives."""
    cohorts = make_cohorts((8, 7, 6, 5), n_sites=220)
    write_test_study(folder, cohorts, FAST)
    sheet, last = folder / "config/samples.tsv", set(cohorts[-1].samples)
    lines = sheet.read_text().splitlines(keepends=True)
    sheet.write_text("".join(line for line in lines if line.split("\t")[0] not in last))
    rows = [line for line in lines if line.split("\t")[0] in last]
    (folder / "arriving.tsv").write_text("".join(rows))
    cohorts_sheet = folder / "config/cohorts.tsv"
    lines = cohorts_sheet.read_text().splitlines(keepends=True)
    (folder / "arriving.cohort").write_text(lines[-1])
    cohorts_sheet.write_text("".join(lines[:-1]))


def relabel(folder: Path, *, founder: bool) -> None:
    """Give the first labelled sample of a founder or newcomer the label of another."""
    cohorts = [
        line.split("\t") for line in (folder / "config/cohorts.tsv").read_text().splitlines()
    ]
    place = cohorts[0].index("founder")
    names = {words[0] for words in cohorts[1:] if (words[place] == "yes") == founder}
    sheet = folder / "config/samples.tsv"
    rows = [line.split("\t") for line in sheet.read_text().splitlines()]
    column = rows[0].index("population")
    labels = list(dict.fromkeys(row[column] for row in rows[1:] if row[1] in names))
    row = next(row for row in rows[1:] if row[1] in names and row[column] == labels[-1])
    row[column] = labels[0] if len(labels) > 1 else f"{labels[0]}2"
    sheet.write_text("".join("\t".join(row) + "\n" for row in rows))


def add_column(folder: Path) -> None:
    sheet = folder / "config/samples.tsv"
    head, *lines = sheet.read_text().splitlines()
    rows = [f"{head}\tnote", *(f"{line}\tn{k % 3}" for k, line in enumerate(lines))]
    sheet.write_text("\n".join(rows) + "\n")


def add_cohort(folder: Path) -> None:
    row = folder / "arriving.cohort"
    text = row.read_text() if row.exists() else f"{ARRIVING}\tdata/{ARRIVING}.vcf.gz\tno\n"
    for name, more in (("samples", (folder / "arriving.tsv").read_text()), ("cohorts", text)):
        with open(folder / f"config/{name}.tsv", "a") as file:
            file.write(more)


def touch_file(folder: Path) -> None:
    cohorts = (folder / "config/cohorts.tsv").read_text().splitlines()
    os.utime(folder / cohorts[1].split("\t")[1])


def colour(folder: Path) -> None:
    path = folder / "config/config.yaml"
    config = yaml.safe_load(path.read_text())
    now = config.setdefault("report", {}).get("color_by", "population")
    config["report"]["color_by"] = "phenotype" if now != "phenotype" else "population"
    path.write_text(yaml.safe_dump(config, sort_keys=False))


CHANGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "founder": ("relabelled founder", lambda folder: relabel(folder, founder=True)),
    "newcomer": ("relabelled newcomer", lambda folder: relabel(folder, founder=False)),
    "column": ("new column of the sheet", add_column),
    "cohort": ("new cohort", add_cohort),
    "touch": ("touched file, same bytes", touch_file),
    "colour": ("another report.color_by", colour),
}


def run(folder: Path) -> tuple[Counter[str], int, float, float]:
    """Run a study; jobs by rule, jobs left out, and CPU seconds of jobs and of all."""
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    words += ["--directory", str(folder), "--cores", str(os.cpu_count())]
    started, spent = time.time(), children_cpu()
    done = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stdout[-3000:])
    cpu = sum(row.cpu for row in read_rows(folder, since=started).values())
    return finished(done.stdout), len(LEFT_OUT.findall(done.stdout)), cpu, children_cpu() - spent


def same_as_scratch(folder: Path) -> str:
    """Whether a run from scratch of the study in `folder` gives the same bytes."""
    scratch = folder.with_name(f"{folder.name}.scratch")
    kept = shutil.ignore_patterns("results", "logs", "benchmarks", ".snakemake")
    shutil.copytree(folder, scratch, ignore=kept)
    run(scratch)
    one, other = files(folder), files(scratch)
    shutil.rmtree(scratch)
    differ = [name for name in {*one, *other} if one.get(name) != other.get(name)]
    return "equal" if not differ else f"{len(differ)} differ: {', '.join(sorted(differ)[:3])}"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("changes", nargs="*", metavar="CHANGE", default=list(CHANGES))
    parser.add_argument("--dense-limit", type=int, help="distance.dense_limit of the study")
    parser.add_argument("--scratch", action="store_true", help="compare with runs from scratch")
    options = commandline.parse(parser, changes=["column"])
    if unknown := set(options.changes) - set(CHANGES):
        parser.error(
            f"no such change: {', '.join(sorted(unknown))}; known are {', '.join(CHANGES)}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary) / "study"
        base.mkdir()
        (write_quick if options.quick else write_example)(base)
        if options.dense_limit is not None:
            path = base / "config/config.yaml"
            config = yaml.safe_load(path.read_text())
            config.setdefault("distance", {})["dense_limit"] = options.dense_limit
            path.write_text(yaml.safe_dump(config, sort_keys=False))
        jobs, _, cpu, all_cpu = run(base)
        table = [
            (
                "from scratch",
                jobs.total(),
                0,
                jobs.total(),
                *map("{:.1f}".format, (cpu, all_cpu - cpu)),
                "yes",
            )
        ]
        rules = {}
        for change in options.changes:
            words, act = CHANGES[change]
            folder = base.with_name(change)
            shutil.copytree(base, folder, symlinks=True)
            act(folder)
            jobs, left_out, cpu, all_cpu = run(folder)
            total = sum(bool(job.outputs) for job in planned_jobs(folder))
            drawn = "yes" if any(map(DRAWING.fullmatch, jobs)) else "no"
            times = f"{cpu:.1f}", f"{all_cpu - cpu:.1f}"
            table.append((words, jobs.total(), left_out, total, *times, drawn))
            rules[words] = jobs
            if options.scratch:
                print(f"{words}: results beside a run from scratch: {same_as_scratch(folder)}")
            shutil.rmtree(folder)
        header = (
            "change",
            "jobs run",
            "left out",
            "all",
            "CPU-s of jobs",
            "of Snakemake",
            "maps drawn",
        )
        print_table("runs after a change", header, table)
        for words, jobs in rules.items():
            print(f"{words}: {', '.join(f'{n} {rule}' for rule, n in sorted(jobs.items()))}")


if __name__ == "__main__":
    main()
