"""Cost of adding a cohort of about 10 %, beside a run from scratch.

python tests/bench/bench_newcomers.py [example] [hapmap3] [--targets geodesic compare]
                                      [--one-order] [--quick]

With `--targets all` the default target is made, report and maps included, with the default options.
`example` is the embedded example with 58 of the newcomer's samples; `hapmap3` the real set of
POPDESIC_SHARED in three: founders and two newcomers of 10 %, which are added in both orders. Each
row compares adding the last cohort with computing all cohorts from scratch: jobs, pairs of samples
times sites, min-plus operations, wall time, CPU time of Snakemake and its jobs; and whether all
result files have equal bytes. A second table has the CPU seconds of each rule. Compiled code comes
from the user's caches, which `popdesic tune` fills.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import commandline
import yaml
from bench_study import children_cpu
from study_costs import Row, read_rows
from timing import print_table

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {
    "device": "cpu",
    "geodesic": {"alpha": [2], "space": ["genotypes"]},
}
#: The configuration where all is made.
DEFAULTS = {"device": "cpu"}
#: Files that record how something was computed, which may differ.
HOW = re.compile(r"report/|\.run\.json$|/closure/|/row\.json$")


class Cohort:
    """Some samples of a VCF as a separate cohort."""

    def __init__(self, name: str, source: Path, samples: list[str], founder: bool):
        self.name, self.source, self.samples, self.founder = name, source, samples, founder

    def write(self, folder: Path) -> None:
        """Write `data/{name}.vcf.gz`, the source's records without the other samples."""
        path = folder / f"data/{self.name}.vcf.gz"
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        wanted = set(self.samples)
        with gzip.open(self.source, "rt") as source, gzip.open(path, "wt", 1) as out:
            kept: list[int] = []
            for line in source:
                if line.startswith("##"):
                    out.write(line)
                    continue
                words = line.rstrip("\n").split("\t")
                if line.startswith("#"):
                    kept = [*range(9), *(i for i, w in enumerate(words) if w in wanted)]
                out.write("\t".join([words[i] for i in kept]) + "\n")


@dataclass
class Run:
    """What a run of the workflow cost: its jobs by rule, and pairs whose tile was computed."""

    seconds: float = 0.0
    cpu: float = 0.0
    jobs: Counter | None = None
    tiles: list[tuple[str, str]] | None = None
    rows: dict[str, Row] | None = None


def write_study(folder: Path, cohorts: list[Cohort], config: dict) -> None:
    """Write sheets of these cohorts, and the files that do not exist yet."""
    for cohort in cohorts:
        cohort.write(folder)
    sheets = folder / "config"
    sheets.mkdir(exist_ok=True)
    lines = [f"{c.name}\tdata/{c.name}.vcf.gz\t{'yes' if c.founder else 'no'}" for c in cohorts]
    (sheets / "cohorts.tsv").write_text("\n".join(["cohort\tgenotypes\tfounder", *lines]) + "\n")
    lines = [f"{name}\t{c.name}" for c in cohorts for name in c.samples]
    (sheets / "samples.tsv").write_text("\n".join(["sample\tcohort", *lines]) + "\n")
    (sheets / "config.yaml").write_text(yaml.safe_dump(config))


def written(folder: Path) -> dict[Path, int]:
    """Tiles of distances, and when they were written."""
    tiles = (folder / "results/distance/tiles").glob("*/*.npz")
    return {path: path.stat().st_mtime_ns for path in tiles}


def run(folder: Path, targets: list[str]) -> Run:
    """Run the workflow."""
    before = written(folder)
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    # Jobs read compiled Python from files, as in an installed Popdesic.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started, start, spent = time.time(), time.perf_counter(), children_cpu()
    done = subprocess.run(
        [*words, "--directory", str(folder), "--cores", str(os.cpu_count()), *targets],
        cwd=folder,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds, cpu = time.perf_counter() - start, children_cpu() - spent
    if done.returncode:
        raise RuntimeError(done.stdout[-3000:])
    rules = re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)$", done.stdout, re.MULTILINE)
    tiles = [
        (path.parent.name, path.stem)
        for path, when in written(folder).items()
        if before.get(path) != when
    ]
    jobs = Counter(rule for rule in rules if "_" in rule)
    return Run(seconds, cpu, jobs, tiles, read_rows(folder, since=started))


def closure_operations(folder: Path, n: int) -> float:
    """Min-plus operations of the study's closure, from the record of how it was computed.

    From scratch n**3 / 2; for m inserted into N, products B A, B Bt, D, D B, Bt B of R-Kleene.
    """
    record_path = min((folder / "results/geodesic/genotypes").glob("alpha*.run.json"))
    record = json.loads(record_path.read_text())
    if not record["continued"]:
        return n**3 / 2
    before, m = record["closed_before"], record["inserted"]
    return m * before**2 + m**2 * before / 2 + m**3 / 2 + m**2 * before + before**2 * m / 2


def name_of(path: Path) -> str:
    """Path of a result; of a tile without its owner, which depends on the order of arrival."""
    if path.parent.parent.name != "tiles":
        return str(path)
    other, ending = path.name.split(".", 1)
    pair = "__".join(sorted((path.parent.name, other)))
    return f"{path.parent.parent}/{pair}.{ending}"


def files(folder: Path) -> dict[str, bytes]:
    found = sorted((folder / "results").rglob("*"))
    return {
        name_of(path.relative_to(folder)): path.read_bytes()
        for path in found
        if path.is_file() and not path.name.startswith(".") and not HOW.search(str(path))
    }


def arrive(folder: Path, arrivals: list[list[Cohort]], targets: list[str], config: dict) -> Run:
    """Run the study after adding each cohort; return the run of the last."""
    last, cohorts = Run(), []
    for arrived in arrivals:
        cohorts = [*cohorts, *arrived]
        write_study(folder, cohorts, config)
        last = run(folder, targets)
    return last


def print_rules(new: Run, full: Run) -> None:
    """CPU seconds of each rule, that of the new cohort beside from scratch."""
    lines = []
    for rule, row in sorted(full.rows.items(), key=lambda item: -item[1].cpu):
        added = new.rows.get(rule, Row())
        lines.append((rule, added.jobs, row.jobs, f"{added.cpu:.1f}", f"{row.cpu:.1f}"))
    own = [some.cpu - sum(row.cpu for row in some.rows.values()) for some in (new, full)]
    lines.append(("Snakemake", "", "", *(f"{cpu:.1f}" for cpu in own)))
    print_table(
        "CPU seconds by rule",
        ("rule", "jobs, new", "jobs, scratch", "CPU-s, new", "CPU-s, scratch"),
        lines,
    )


def compare(title: str, folder: Path, arrivals: list[list[Cohort]], targets: list[str]) -> dict:
    """Add cohorts in one order; compare adding the last with a run from scratch."""
    config = DEFAULTS if targets == ["all"] else CONFIG
    new_run = arrive(folder, arrivals, targets, config)
    cohorts = [cohort for arrived in arrivals for cohort in arrived]
    panel = json.loads((folder / "results/panel/counts.json").read_text())["n_sites"]
    size = {c.name: len(c.samples) for c in cohorts}
    n = sum(size.values())

    def pairs(a: str, b: str) -> float:
        return size[a] * (size[a] + 1) / 2 if a == b else size[a] * size[b]

    scratch = folder.with_name(f"{folder.name}.scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "data").mkdir(parents=True)
    for path in (folder / "data").iterdir():
        (scratch / "data" / path.name).hardlink_to(path)
    write_study(scratch, cohorts, config)
    full = run(scratch, targets)
    work = [sum(pairs(a, b) for a, b in some.tiles) * panel for some in (new_run, full)]
    operations = [closure_operations(folder, n), closure_operations(scratch, n)]
    new = sum(size[c.name] for c in arrivals[-1])
    ideal = 1 - ((n - new) / n) ** 2
    equal = files(folder) == files(scratch)
    rows = [
        ("jobs", new_run.jobs.total(), full.jobs.total()),
        ("site-pairs", f"{work[0]:.4g}", f"{work[1]:.4g}"),
        ("min-plus operations", f"{operations[0]:.4g}", f"{operations[1]:.4g}"),
        ("wall time, s", f"{new_run.seconds:.1f}", f"{full.seconds:.1f}"),
        ("CPU time, s", f"{new_run.cpu:.1f}", f"{full.cpu:.1f}"),
    ]
    print_table(
        f"{title}: {new} of {n} samples are new",
        ("", "new cohort", "from scratch", "share"),
        [(*row, f"{float(row[1]) / float(row[2]):.4f}") for row in rows],
    )
    print(
        f"ideal share of the distances {ideal:.4f}, differs by {work[0] / work[1] / ideal - 1:+.2%}"
    )
    print(f"panel {panel} sites; bytes of {len(files(scratch))} result files equal: {equal}")
    print_rules(new_run, full)
    return files(folder)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("studies", nargs="*", default=["example", "hapmap3"])
    parser.add_argument("--targets", nargs="*", default=["geodesic", "compare"])
    parser.add_argument("--one-order", action="store_true", help="hapmap3: one newcomer, once")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth sample")
    options = commandline.parse(parser, studies=["example"], targets=["geodesic"], every=10)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "example" in options.studies:
            sheet = [
                line.split("\t")[:2]
                for line in (ROOT / "config/samples.tsv").read_text().splitlines()[1:]
            ]
            cohorts = []
            for name, founder in (("atlantic", True), ("pacific", True), ("arctic", False)):
                names = [sample for sample, cohort in sheet if cohort == name]
                source = ROOT / f"resources/example/{name}.vcf.gz"
                names = (names if founder else names[:58])[:: options.every]
                cohorts.append(Cohort(name, source, names, founder))
            compare("example", folder / "example", [cohorts[:2], cohorts[2:]], options.targets)
        if "hapmap3" in options.studies:
            shared = Path(os.environ.get("POPDESIC_SHARED", ROOT.parent / "shared"))
            source = shared / "data/hapmap3_957/hapmap3_957.vcf.gz"
            if not source.is_file():
                print(f"hapmap3 is left out: {source} is not there (set POPDESIC_SHARED).")
                return
            with gzip.open(source, "rt") as file:
                head = next(line for line in file if line.startswith("#CHROM"))
            names = head.rstrip("\n").split("\t")[9 :: options.every]
            # Every tenth sample goes to each newcomer, so that all populations are in all cohorts.
            first, second = (Cohort(f"new{k}", source, names[k::10], False) for k in (1, 2))
            apart = (1,) if options.one_order else (1, 2)
            rest = [name for i, name in enumerate(names) if i % 10 not in apart]
            founders = Cohort("founders", source, rest, True)
            if options.one_order:
                order = [[founders], [first]]
                compare("HapMap3, a tenth", folder / "tenth", order, options.targets)
                return
            results = [
                compare(
                    f"HapMap3, {title}", folder / title.replace(" ", ""), order, options.targets
                )
                for title, order in (
                    ("new1 then new2", [[founders], [first], [second]]),
                    ("new2 then new1", [[founders], [second], [first]]),
                )
            ]
            print("both orders of arrival give equal bytes:", results[0] == results[1])


if __name__ == "__main__":
    main()
