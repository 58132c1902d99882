"""Names and options of the epistasis scans: light, since every plan reads them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..cohort.phenotype import UNKNOWN
from ..io.errors import UserError, shorten
from ..io.files import is_file, read_json

NAMES = {2: "pairs", 3: "triples"}
#: A covariate of words becomes one column a word: more are an identifier, not a covariate.
MAX_LEVELS = 30
_WHERE = "config/config.yaml: epistasis"


#: Tests times samples a second that jobs are given time for: a slow core, and a small GPU.
LEAST_RATES = {"cpu": 5e9, "gpu": 1e12}


def scan_hours(plan: str | Path, order: int, scans: float, device: str, longest: float) -> float:
    """Hours that so many scans are given: at most `longest`, and this where there is no plan yet.

    `plan` is results/epistasis/plan.json; `device` the configured one, where `auto` may turn out
    to be a CPU.
    """
    if not Path(plan).exists():
        return longest
    counted = read_json(plan)
    work = scans * counted[NAMES[order]]["tests"] * counted["samples"]
    return min(longest, work / LEAST_RATES["gpu" if device == "gpu" else "cpu"] / 3600)


def check_epistasis(block: dict, samples: pd.DataFrame, sheet: str, folder: Path) -> None:
    """Refuse what a study's sheets and configuration show to be impossible, before any job.

    Parameters
    ----------
    block : dict
        `epistasis` of the configuration, defaults filled in; nothing is checked where its `order`
        is empty.
    samples : DataFrame
        The sample sheet, `sheet` its name.
    folder : Path
        Of the study.

    Raises
    ------
    UserError
        The first problem found.
    """
    if not block["order"]:
        return
    from .reorder import MAX_SAMPLES, phenotype_classes  # studies without scans do not need them

    known = int((phenotype_classes(samples, block["binarize"], sheet) >= 0).sum())
    if known > MAX_SAMPLES:
        raise UserError(
            f"{sheet}: {known} samples have a phenotype, more than the {MAX_SAMPLES} that a scan "
            "can count; set some to NA."
        )
    if block["strata"] in ("sample", "phenotype", "row"):
        raise UserError(
            f"{_WHERE}.strata is '{block['strata']}', within which no phenotype can be exchanged "
            "for another; name a column of groups, or 'none'."
        )
    if block["strata"] != "none" and block["strata"] not in samples:
        raise UserError(
            f"{_WHERE}.strata is '{block['strata']}', which is no column of {sheet}; name one, or "
            "'none'."
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
    """A column of the sheet as columns of a regression, NaN where not known.

    Numbers stay as they are; of words each but the first (in alphabetical order) is a column of 0
    and 1.

    Raises
    ------
    UserError
        No such column, or too many different words.
    """
    if column not in samples or column in ("sample", "phenotype", "row"):
        raise UserError(
            f"{_WHERE}.covariates names '{column}', which is no further column of {sheet}; correct "
            "the name or leave it out."
        )
    known = ~samples[column].isin(UNKNOWN)
    numbers = pd.to_numeric(samples[column].where(known), errors="coerce")
    if numbers[known].notna().all():
        return pd.DataFrame({column: numbers.astype(float)})
    levels = sorted(samples[column][known].unique())
    if len(levels) > MAX_LEVELS:
        raise UserError(
            f"{_WHERE}.covariates names '{column}', which has {len(levels)} different words in "
            f"{sheet}; a covariate has at most {MAX_LEVELS}, or is a number."
        )
    return pd.DataFrame(
        {
            f"{column}={level}": (samples[column] == level).astype(float).where(known)
            for level in levels[1:]
        },
        index=samples.index,
    )


def _check_listed(path: Path, least: int) -> None:
    """A list of sites is long enough; how many sites the ranges of a BED file hold comes later."""
    from .site_list import read_site_list  # as in check_epistasis

    names = read_site_list(path).names
    if names and len(set(names)) < least:
        raise UserError(
            f"{path}: it lists {len(set(names))} sites, fewer than the {least} that a scan of "
            f"order {least} combines; list more (epistasis.restrict) or set it to ''."
        )


def _check_model(model: dict, number: int, orders: list[int]) -> None:
    name = model["name"]
    n_cells, n_sites = len(model["penetrance"]), len(model["maf"])
    start = f"{_WHERE}.power[{number}] ('{name}')"
    if n_cells != 3**n_sites:
        raise UserError(
            f"{start} has {n_cells} penetrances for {n_sites} sites; give {3**n_sites}, the last "
            "site's genotype changing fastest."
        )
    if n_sites not in orders:
        raise UserError(
            f"{start} is of {n_sites} sites, but epistasis.order is {orders}; add {n_sites} to it "
            "or leave the model out."
        )
    if not min(model["penetrance"]) < max(model["penetrance"]):
        raise UserError(
            f"{start} has the same penetrance everywhere, so there is nothing to find; give "
            "different ones."
        )
