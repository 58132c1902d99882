"""Measure the accuracy of the imputation, by the mode or from windows of Beagle, and draw it."""

import tempfile
from pathlib import Path

from popdesic.cohort.absent import Absent
from popdesic.cohort.accuracy import evaluate_window, summarize_evaluation
from popdesic.cohort.beagle import Beagle
from popdesic.core.log import logged
from popdesic.core.threads import run_forked
from popdesic.report.figures.imputation import save_accuracy

with logged(snakemake.log[0], snakemake.input), tempfile.TemporaryDirectory() as folder:
    params, given = snakemake.params, snakemake.input
    samples = dict(zip(params.cohorts, map(Path, given.samples), strict=True))
    absent = dict(zip(params.cohorts, params.absent, strict=True))
    parts = {name: [] for name in params.cohorts}
    for path in map(Path, given.get("parts", [])):
        parts[path.name.rsplit(".", 2)[0]].append(path)

    def evaluate(cohort: str) -> None:
        evaluate_window(
            Path(given.panel).parents[1] / "cohorts" / cohort / "raw",
            samples[cohort],
            Path(given.panel),
            None,
            None,
            parts[cohort][0],
            cohort=cohort,
            seed=params.seed,
            methods=params.methods,
            settings=Beagle(),
            absent=Absent(*absent[cohort]),
        )

    if not given.get("parts"):
        parts = {name: [Path(folder, f"{name}.npz")] for name in parts}
        run_forked(evaluate, [(name,) for name in parts], snakemake.threads)
    table = summarize_evaluation(parts, samples, params.methods, Path(snakemake.output.table))
    save_accuracy(table, Path(snakemake.output.svg[0]).with_suffix(""))
