"""Gather the counts of all steps into `qc/summary.tsv`, which the report shows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..core.files import read_json
from ..core.tables import read_table, write_table
from .absent import GENOME
from .panel_steps import steps_of
from .sample_checks import FILTERS

#: Steps that count findings of a check, whether or not a filter acts on them.
X_SEX, WRONG_SEX = "samples with a sex from X", "samples whose X contradicts their sex"
NO_SEX = "samples whose X tells no sex"
CHILDREN, MENDEL = "children compared with their parents", "Mendelian errors of children"
#: By what counts for a group of samples, the column `tested` of `qc/{cohort}.populations.tsv`.
HWE_STEPS = {
    "both": "samples tested for Hardy-Weinberg within their population",
    "excess": "samples tested for an excess of heterozygotes alone",
    "none": "samples not tested for Hardy-Weinberg",
}
DUPLICATED = "samples with the genotypes of another sample"


def _findings(table: pd.DataFrame) -> list[tuple[str, int]]:
    """Count the findings on sex and pedigree in a cohort's sample table, if it has any."""
    inferred, stated = table.sex_from_x != "NA", table.sex != "NA"
    found = []
    if (table.x_sites != "NA").any():  # the cohort's file has sites of X
        wrong = inferred & stated & (table.sex_from_x != table.sex)
        found += [(X_SEX, inferred), (NO_SEX, ~inferred), (WRONG_SEX, wrong)]
        found = [(step, int(samples.sum())) for step, samples in found]
    children = table.mendel_sites != "NA"
    if children.any():
        errors = table.mendel_errors[children].astype(float).astype(int).sum()
        found += [(CHILDREN, int(children.sum())), (MENDEL, int(errors))]
    return found


def _hwe_tests(groups: pd.DataFrame) -> list[tuple[str, int]]:
    """Count a cohort's samples by what Hardy-Weinberg proportions are tested for."""
    sizes = groups.samples.astype(int)
    found = {step: int(sizes[groups.tested == tested].sum()) for tested, step in HWE_STEPS.items()}
    return [(step, count) for step, count in found.items() if count]


def _identical(table: pd.DataFrame) -> set[tuple[str, str]]:
    """Return (cohort, sample) of all samples whose best match is the same person."""
    same = table[table.verdict == "same"]
    pairs = [("query_cohort", "query"), ("match_cohort", "match")]
    return {row for columns in pairs for row in same[[*columns]].itertuples(index=False, name=None)}


def summarize_filters(
    cohorts: list[str],
    *,
    ingest: list[Path],
    samples: list[Path],
    populations: list[Path],
    panel: Path,
    encode: list[Path],
    out: Path,
    identity: Path | None = None,
) -> None:
    """Write the counts of all steps, in the order of the workflow.

    Parameters
    ----------
    ingest, samples, populations, encode : lists of Path
        `raw.json`, `qc/{cohort}.samples.tsv`, `qc/{cohort}.populations.tsv` and `planes.json` of
        each of `cohorts`.
    identity : Path
        `compare/identity.tsv`, if duplicate samples are sought.
    panel : Path
        `panel/counts.json`.
    out : Path
        Columns `stage`, `cohort`, `step`, `count`. Of a batch of cohorts, counts of `ingest` are
        also given by cohort.
    """
    rows: list[tuple[str, str, str, int]] = []
    for cohort, path in zip(cohorts, ingest, strict=True):
        about = read_json(path)
        for name, counts in {cohort: about["counts"], **about.get("members", {})}.items():
            rows += [("ingest", name, step, count) for step, count in counts.items()]
    for cohort, path, groups in zip(cohorts, samples, populations, strict=True):
        table = read_table(path)
        left_out = table.left_out
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
        rows += [("qc", cohort, step, count) for step, count in _findings(table)]
        rows += [("qc", cohort, step, count) for step, count in _hwe_tests(read_table(groups))]
    if identity is not None:
        same = _identical(read_table(identity))
        rows += [
            ("qc", cohort, DUPLICATED, sum(owner == cohort for owner, _ in same))
            for cohort in cohorts
        ]
    for cohort, path in zip(cohorts, ingest, strict=True):
        counts = read_json(path).get(GENOME, {}).get("counts", {})
        rows += [("qc", cohort, step, count) for step, count in counts.items()]
    rows += [("panel", "founders", step.text, step.sites) for step in steps_of(read_json(panel))]
    for cohort, path in zip(cohorts, encode, strict=True):
        counts = read_json(path)["counts"]
        rows += [("encode", cohort, step, count) for step, count in counts.items()]
    write_table(out, pd.DataFrame(rows, columns=["stage", "cohort", "step", "count"]))
