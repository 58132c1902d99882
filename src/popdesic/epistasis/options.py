"""Names and options of the epistasis scans; cheap to import for planning."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..cohort.phenotype import UNKNOWN
from ..io.errors import UserError, shorten
from ..io.files import is_file, read_json

NAMES = {2: "pairs", 3: "triples"}
#: A categorical covariate becomes one column per level; with more levels it is an identifier.
MAX_LEVELS = 30
_WHERE = "config/config.yaml: epistasis"
#: Ranked on a CPU, whatever the device: no GPU kernel filters by interaction yet.
ON_CPU = ("interaction",)
#: Tests x samples per second that time limits assume: a slow core, and a small GPU.
LEAST_RATES = {"cpu": 5e9, "gpu": 1e12}


def permutations_run(block: dict) -> dict[int, int]:
    """Permuted scans of each order; `block` is `epistasis` of the configuration.

    None if the score is the interaction: permutations test association.
    """
    if block["score"] == "interaction":
        return {2: 0, 3: 0}
    return {2: block["permutations"], 3: block["permutations_triples"]}


def scan_hours(plan: str | Path, order: int, scans: float, device: str, longest: float) -> float:
    """Time limit in hours of this many scans: at most `longest`, which is used if no plan exists.

    `plan` is results/epistasis/plan.json. `device` is the configured one; `auto` may mean a CPU.
    """
    if not Path(plan).exists():
        return longest
    counted = read_json(plan)
    work = scans * counted[NAMES[order]]["tests"] * counted["samples"]
    return min(longest, work / LEAST_RATES["gpu" if device == "gpu" else "cpu"] / 3600)


def refuse_device(score: str, device: str) -> None:
    """Refuse ``device: gpu`` for a score that only a CPU ranks by.

    Raises
    ------
    UserError
        It was asked for.
    """
    if score in ON_CPU and device == "gpu":
        raise UserError(
            f"{_WHERE}.score is '{score}', which no GPU kernel ranks by yet, but device is 'gpu'; "
            "set device to 'auto' or 'cpu', or epistasis.score to 'k2' or 'mutual_information'."
        )


def check_epistasis(
    block: dict, samples: pd.DataFrame, sheet: str, folder: Path, device: str = "auto"
) -> None:
    """Refuse scans that are impossible with a study's sheets and configuration, before any job.

    Parameters
    ----------
    block : dict
        `epistasis` of the configuration, defaults filled in; nothing is checked if its `order`
        is empty.
    samples : DataFrame
        The sample sheet; `sheet` is its name.
    folder : Path
        The study's folder.
    device : str
        `device` of the configuration.

    Raises
    ------
    UserError
        The first problem found.
    """
    if not block["order"]:
        return
    refuse_device(block["score"], device)
    from .reorder import MAX_SAMPLES, phenotype_classes  # studies without scans do not need them

    known = int((phenotype_classes(samples, block["binarize"], sheet) >= 0).sum())
    if known > MAX_SAMPLES:
        raise UserError(
            f"{sheet}: {known} samples have a phenotype, more than the {MAX_SAMPLES} that a scan "
            "can count; set some to NA."
        )
    if block["strata"] in ("sample", "phenotype", "row"):
        raise UserError(
            f"{_WHERE}.strata is '{block['strata']}', within which phenotypes cannot be permuted; "
            "name a column of groups, or 'none'."
        )
    if block["strata"] != "none" and block["strata"] not in samples:
        raise UserError(
            f"{_WHERE}.strata is '{block['strata']}', which is not a column of {sheet}; name one, "
            "or 'none'."
        )
    if block["restrict"] and not is_file(folder / block["restrict"]):
        raise UserError(
            f"{_WHERE}.restrict is '{shorten(block['restrict'])}', which does not exist; correct "
            "the path, relative to the study folder."
        )
    if block["restrict"]:
        _check_listed(folder / block["restrict"], max(block["order"]))
    if block["screen"] and 2 not in block["order"]:
        raise UserError(
            f"{_WHERE}.screen extends the best pairs, but epistasis.order is {block['order']}; add "
            "2 to it or set epistasis.screen to 0."
        )
    if block["screen"] > block["top"]:
        raise UserError(
            f"{_WHERE}.screen is {block['screen']}, more than the {block['top']} pairs that "
            "epistasis.top keeps; raise top or lower screen."
        )
    for column in block["covariates"]:
        covariate_columns(samples, column, sheet)
    for number, model in enumerate(block["power"]):
        _check_model(model, number, block["order"])


def covariate_columns(samples: pd.DataFrame, column: str, sheet: str) -> pd.DataFrame:
    """Regression columns of a column of the sheet, NaN where unknown.

    Numbers stay as they are. Categories become one column of 0 and 1 per level, except for the
    first level in alphabetical order.

    Raises
    ------
    UserError
        No such column, or too many levels.
    """
    if column not in samples or column in ("sample", "phenotype", "row"):
        raise UserError(
            f"{_WHERE}.covariates names '{column}', which is not a further column of {sheet}; "
            "correct the name or leave it out."
        )
    known = ~samples[column].isin(UNKNOWN)
    numbers = pd.to_numeric(samples[column].where(known), errors="coerce")
    if numbers[known].notna().all():
        return pd.DataFrame({column: numbers.astype(float)})
    levels = sorted(samples[column][known].unique())
    if len(levels) > MAX_LEVELS:
        raise UserError(
            f"{_WHERE}.covariates names '{column}', which has {len(levels)} different values in "
            f"{sheet}; a covariate has at most {MAX_LEVELS} categories, or is numeric."
        )
    return pd.DataFrame(
        {
            f"{column}={level}": (samples[column] == level).astype(float).where(known)
            for level in levels[1:]
        },
        index=samples.index,
    )


def _check_listed(path: Path, least: int) -> None:
    """Check that a list has enough sites; ranges of a BED file are checked later."""
    from .site_list import read_site_list  # as in check_epistasis

    names = read_site_list(path).names
    if names and len(set(names)) < least:
        raise UserError(
            f"{path} lists {len(set(names))} sites, fewer than the {least} that a scan of order "
            f"{least} combines; list more (epistasis.restrict) or set it to ''."
        )


def _check_model(model: dict, number: int, orders: list[int]) -> None:
    name = model["name"]
    n_cells, n_sites = len(model["penetrance"]), len(model["maf"])
    start = f"{_WHERE}.power[{number}] ('{name}')"
    if n_cells != 3**n_sites:
        raise UserError(
            f"{start} has {n_cells} penetrances for {n_sites} sites; give {3**n_sites}, with the "
            "last site's genotype varying fastest."
        )
    if n_sites not in orders:
        raise UserError(
            f"{start} has {n_sites} sites, but epistasis.order is {orders}; add {n_sites} to it "
            "or remove the model."
        )
    if not min(model["penetrance"]) < max(model["penetrance"]):
        raise UserError(
            f"{start} has the same penetrance for all genotypes, so there is no effect to find; "
            "give different values."
        )
