"""One table of what every step kept and took, for `qc/summary.tsv` and the report."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from .results import read_table, write_table
from .sample_checks import FILTERS
from .store import read_json


def summarize_filters(
    cohorts: list[str],
    *,
    ingest: list[Path],
    samples: list[Path],
    panel: Path,
    encode: list[Path],
    out: Path,
    reference: list[Path] | None = None,
) -> None:
    """Gather the counts of all steps, in the order in which they happened.

    Parameters
    ----------
    ingest, samples, encode : lists of Path
        `raw.json`, `qc/{cohort}.samples.tsv` and `planes.json` of each of `cohorts`.
    reference : list of Path
        `qc/{cohort}.reference.json` of each, where alleles are compared with a genome.
    panel : Path
        `panel/counts.json`.
    out : Path
        Columns `stage`, `cohort`, `step`, `count`.
    """
    rows: list[tuple[str, str, str, int]] = []
    for cohort, path in zip(cohorts, ingest, strict=True):
        counts = read_json(path)["counts"]
        rows += [("ingest", cohort, step, count) for step, count in counts.items()]
    for cohort, path in zip(cohorts, samples, strict=True):
        left_out = read_table(path).left_out
        rows.append(("qc", cohort, "samples", len(left_out)))
        rows.append(
            (
                "qc",
                cohort,
                "samples below qc.min_sample_call_rate",
                (left_out == FILTERS[0]).sum(),
            )
        )
        rows += [
            ("qc", cohort, f"samples left out by {name}", count)
            for name in FILTERS[1:]
            if (count := (left_out == name).sum())
        ]
    for cohort, path in zip(cohorts, reference or [], strict=bool(reference)):
        counts = read_json(path)["counts"]
        rows += [("qc", cohort, step, count) for step, count in counts.items()]
    rows += [("panel", "founders", s, n) for s, n in read_json(panel)["steps"].items()]
    for cohort, path in zip(cohorts, encode, strict=True):
        counts = read_json(path)["counts"]
        rows += [("encode", cohort, step, count) for step, count in counts.items()]
    write_table(out, pd.DataFrame(rows, columns=["stage", "cohort", "step", "count"]))
