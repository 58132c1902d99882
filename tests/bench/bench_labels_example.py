"""The embedded example with its populations as labels and without: sites removed, F_ST.

    python tests/bench/bench_labels_example.py [--cores 2] [--quick]

Without labels the populations are in a column `label`, which only population statistics read.
"each cohort" is a study without labels from which those sites are left out at which an exact test
of Hardy-Weinberg proportions over all samples of a founder cohort is below `panel.min_hwe_p`: a
filter that takes structure for errors. --quick makes the panel without labels alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import commandline
import numpy as np
from timing import print_table

from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.cohort.panel import load_panel
from popdesic.core.tables import read_table

#: Populations whose F_ST is printed, founder cohorts, and the lines that name the labels' column.
PAIR, FOUNDERS = ("AFR", "JPT"), ("atlantic", "pacific")
LINES = ("column: population", "covariates: [population]", "color_by: population")
#: `panel.min_hwe_p` of the example.
LEAST = 1e-6


def make_study(study: Path, *, labels: bool) -> None:
    for name in ("config", "resources/example"):
        shutil.copytree(commandline.ROOT / name, study / name)
    if labels:
        return
    sheet, config = study / "config/samples.tsv", study / "config/config.yaml"
    sheet.write_text(sheet.read_text().replace("population", "label", 1))
    text = config.read_text()
    for line in LINES:
        if line not in text:
            raise SystemExit(f"Error: {config} has no line with '{line}'.")
        text = text.replace(line, line.replace("population", "label"))
    config.write_text(text)


def run_study(study: Path, target: str, cores: int) -> None:
    words = [sys.executable, "-m", "popdesic", "run", study, "--cores", str(cores), "--", target]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Error: the run of {study} failed:\n{done.stderr[-2000:]}")


def describe(study: Path) -> tuple:
    """Sites that the filter removed, those that it left, what is tested, F_ST of PAIR."""
    results = study / "results"
    steps = json.loads((results / "panel/counts.json").read_text())["steps"]
    left = {step["subject"]: step["sites"] for step in steps if step["what"] == "filter"}
    tested = {
        row.tested
        for name in FOUNDERS
        for row in read_table(results / f"qc/{name}.populations.tsv").itertuples()
    }
    fst, path = "-", results / "population/pairs.tsv"
    if path.exists():
        table = read_table(path).set_index(["population1", "population2"])
        fst = f"{float(table.fst[PAIR]):.4f}"
    kept = left["panel.min_hwe_p"]
    return left["panel.min_maf"] - kept, kept, ", ".join(sorted(tested)), fst


def departing(study: Path) -> list[tuple[str, int]]:
    """Panel sites at which a founder cohort departs: contig and position."""
    panel, _ = load_panel(study / "results/panel/sites.tsv", ["chrom", "pos"])
    keys = list(zip(panel.chrom, panel.pos.astype(int), strict=True))
    worst = dict.fromkeys(keys, 1.0)
    for name in FOUNDERS:
        sites = read_table(study / f"results/qc/{name}.sites.tsv")
        counts = sites[["n_ref", "n_het", "n_alt"]].to_numpy(np.int64)
        for key, p in zip(
            zip(sites.chrom, sites.pos.astype(int), strict=True), hwe_exact(*counts.T), strict=True
        ):
            if key in worst:
                worst[key] = min(worst[key], float(p))
    return [key for key in keys if worst[key] < LEAST]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--target", default="results/population/pairs.tsv", help="file to make")
    options = commandline.parse(parser, target="results/panel/sites.tsv")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plain, labelled, former = (Path(folder) / name for name in ("plain", "labelled", "former"))
        make_study(plain, labels=False)
        run_study(plain, options.target, options.cores)
        rows.append(("without labels", *describe(plain)))
        sites = departing(plain)
        if not options.quick:
            make_study(labelled, labels=True)
            run_study(labelled, options.target, options.cores)
            rows.append(("with labels", *describe(labelled)))
            make_study(former, labels=False)
            bed = "".join(f"{contig}\t{pos - 1}\t{pos}\n" for contig, pos in sites)
            (former / "config/departing.bed").write_text(bed)
            config = former / "config/config.yaml"
            text = config.read_text()
            if '  exclude: ""' not in text:
                raise SystemExit(f"Error: {config} has no empty panel.exclude.")
            config.write_text(text.replace('exclude: ""', "exclude: config/departing.bed", 1))
            run_study(former, options.target, options.cores)
            _, kept, _, fst = describe(former)
            rows.append(("each cohort", len(sites), kept, "both", fst))
    head = ("filter", "removed", "panel sites", "tested", "F_ST " + ", ".join(PAIR))
    print_table("Hardy-Weinberg filter of the example", head, rows)


if __name__ == "__main__":
    main()
