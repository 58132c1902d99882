"""Names and options of the epistasis scans; cheap to import for planning."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..cohort.phenotype import is_quantitative, of_phenotype
from ..core.errors import UserError, shorten
from ..core.files import is_file, read_json
from .scan_data import ASSOCIATION, MOST_QUAD_SITES, NAMES

#: Table of the loci of each order.
LOCI_NAMES = {2: "loci", 3: "loci_triples", 4: "loci_quads"}
#: Defaults of the limits for partners, chosen by tests/bench/bench_phantoms.py.
MIN_DISTANCE_BP, MAX_R2 = 500_000, 0.1
#: Combinations that a scan keeps for each one that is listed (`loci`), and how often a site is.
CANDIDATES, MAX_PER_SITE = 10, 10
#: Best pairs of cases and controls that are tried with each possible third site.
SCREENED = 20
#: Sites of one side of a locus: nearer than this to the lead's site, or more correlated with it.
LOCUS_BP, LOCUS_R2 = 500_000, 0.2
#: The sites around a hit are shown so far beyond its own: twice what makes one locus.
REACH = 2 * LOCUS_BP
#: Hours that a job of a scan may take.
MOST_HOURS = 24
_WHERE = "config/config.yaml: epistasis"
#: A stratum with one class is refused from this many people on; smaller ones say nothing.
LEAST_OF_ONE_CLASS = 10
#: Tests x samples per second that time limits assume: a slow core, and a small GPU. Quads take ten
#: times as long.
LEAST_RATES = {"cpu": 5e9, "gpu": 1e12}


class SetFiles(NamedTuple):
    """Files of `epistasis.sets`, as given: of sets, of pairs of their names ("" for none); and the
    covariates that are environments."""

    file: str
    pairs: str
    environments: list[str]


def set_files(given: str | dict) -> SetFiles | None:
    """What `epistasis.sets` says: a file, or a mapping; None if it names nothing."""
    if not given:
        return None
    block = {"file": given} if isinstance(given, str) else given
    return SetFiles(block["file"], block.get("pairs", ""), list(block.get("environments", [])))


def scan_score(score: str, quantitative: bool, order: int) -> str:
    """The score that ranks combinations: numbers by residuals, triples and quads never by them."""
    if order > 2:
        return "interaction" if score == "residuals" else score
    return "residuals" if quantitative else score


def scan_device(device: str, score: str, order: int) -> str:
    """The device that an order is scanned on: no GPU scans quads by interaction."""
    return "cpu" if order == 4 and score == "interaction" else device


def permutations_run(block: dict, scores: dict[int, str]) -> dict[int, int]:
    """Permuted scans of each order.

    None of an order whose score is of interaction: permutations test association.

    Parameters
    ----------
    block : dict
        `epistasis` of the configuration.
    scores : dict
        `scan_score` of each order.
    """
    given = block["permutations"]
    asked = dict(zip(NAMES, [*(given if isinstance(given, list) else [given]), 0, 0], strict=False))
    return {order: asked[order] if score in ASSOCIATION else 0 for order, score in scores.items()}


def scan_hours(plan: str | Path, order: int, scans: float, device: str, longest: float) -> float:
    """Time limit in hours of this many scans: at most `longest`, which is used if no plan exists.

    `plan` is results/epistasis/plan.json. `device` is the configured one; `auto` may mean a CPU.
    """
    if not Path(plan).exists():
        return longest
    counted = read_json(plan)
    work = scans * counted[NAMES[order]]["tests"] * counted["samples"] * (10 if order == 4 else 1)
    return min(longest, work / LEAST_RATES["gpu" if device == "gpu" else "cpu"] / 3600)


def kept_combinations(top: int) -> int:
    """Combinations that a scan keeps so that `top` of them are listed."""
    return CANDIDATES * top


def check_epistasis(
    block: dict,
    samples: pd.DataFrame,
    sheet: str,
    folder: Path,
    seed: int = 1,
    founders: Collection[str] = (),
) -> None:
    """Refuse scans that are impossible with a study's sheets and configuration, before any job.

    Parameters
    ----------
    block : dict
        `epistasis` of the configuration, defaults filled in; nothing is checked if its `order`
        and `sets` are empty.
    samples : DataFrame
        The sample sheet; `sheet` is its name.
    folder : Path
        The study's folder.
    founders : collection of str
        Names of founder cohorts.

    Raises
    ------
    UserError
        The first problem found.
    """
    if not block["order"] and not block["sets"]:
        return
    kinds = {}
    for phenotype in phenotypes_of(block):
        shown = f"{sheet}, column {phenotype}" if phenotype else sheet
        _check_phenotype_name(phenotype, block)
        of_one = of_phenotype(samples, phenotype, sheet)
        kinds[is_quantitative(of_one, block["transform"])] = phenotype
        if len(kinds) == 2:
            raise UserError(
                f"{_WHERE}.phenotypes: {sheet} has numbers in '{kinds[True]}' and cases and "
                f"controls in '{kinds[False]}'; scan them in two studies, or set "
                "epistasis.transform to 'median'."
            )
        _check_phenotype(block, of_one, shown, folder, seed, founders)


def folder_of_phenotype(phenotype: str) -> str:
    """The folder of a phenotype below `results/epistasis`; nothing for a study of one."""
    return f"/{phenotype}" if phenotype else ""


def phenotypes_of(block: dict) -> list[str]:
    """Columns of the phenotypes that are scanned; "" stands for `phenotype` alone."""
    return list(block["phenotypes"]) or [""]


def _check_phenotype_name(phenotype: str, block: dict) -> None:
    """Refuse a phenotype that is a covariate or a stratum of its own scan."""
    for key, names in (("covariates", block["covariates"]), ("strata", [block["strata"]])):
        if phenotype and phenotype in names:
            raise UserError(
                f"{_WHERE}.{key} has '{phenotype}', which is a phenotype of epistasis.phenotypes; "
                "take it out of one of them."
            )


def _check_phenotype(
    block: dict,
    samples: pd.DataFrame,
    sheet: str,
    folder: Path,
    seed: int,
    founders: Collection[str],
) -> None:
    """`check_epistasis` of one phenotype; `sheet` also names its column."""
    quantitative = is_quantitative(samples, block["transform"])
    from .phenotype import MAX_SAMPLES, scan_phenotype  # studies without scans do not need them

    classes, _ = scan_phenotype(samples, block["transform"], sheet, block["order"], block["score"])
    known = int((classes >= 0).sum())
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
        _check_listed(folder / block["restrict"], max(block["order"], default=2))
    if files := set_files(block["sets"]):
        _check_sets(files, block["covariates"], samples[classes >= 0], sheet, folder)
    if block["score"] == "residuals" and block["order"] and 2 not in block["order"]:
        raise UserError(
            f"{_WHERE}.score is 'residuals', which ranks pairs, but epistasis.order is "
            f"{block['order']}; add 2 to it or set epistasis.score to 'interaction'."
        )
    if block["replication"] == "half" and not block["order"]:
        raise UserError(
            f"{_WHERE}.replication is 'half', which tests hits of scans in the other half, but "
            "epistasis.order is empty, so that sets would lose half of the samples; set it to "
            "'none', or epistasis.order to [2]."
        )
    if block["replication"] == "newcomers" and block["sets"]:
        raise UserError(
            f"{_WHERE}.replication is 'newcomers', which keeps newcomers out of all scans, but "
            "epistasis.sets are tested in them by themselves; set it to 'none', or leave sets out."
        )
    if block["replication"] != "none":
        from .discovery import divide_people  # as above

        if quantitative:
            raise UserError(
                f"{_WHERE}.replication needs cases and controls, and the phenotype of {sheet} has "
                "more than two values; set it to 'none' or epistasis.transform to 'median'."
            )
        how = {"founders": founders, "strata": block["strata"], "seed": seed}
        first, _ = divide_people(samples, classes, block["replication"], **how)
        if block["replication"] == "newcomers":  # founders alone are scanned
            classes = np.where(first, classes, -1)
    if quantitative and block["power"]:
        raise UserError(
            f"{_WHERE}.power needs cases and controls, and the phenotype of {sheet} has more than "
            "two values; leave power out or set epistasis.transform to 'median'."
        )
    _check_design(block, samples, sheet, classes, quantitative)
    for number, model in enumerate(block["power"]):
        _check_model(model, number, block["order"])


def _check_sets(
    files: SetFiles, covariates: list[str], people: pd.DataFrame, sheet: str, folder: Path
) -> None:
    """Read files of sets, and refuse environments that are no column of the null model."""
    from .design import covariate_columns  # as in check_epistasis
    from .set_list import read_set_pairs, read_sets

    genes = read_sets(folder / files.file)
    if files.pairs:
        read_set_pairs(folder / files.pairs, genes, folder / files.file)
    for name in files.environments:
        if name not in covariates:
            raise UserError(
                f"{_WHERE}.sets has the environment '{name}', which is not one of "
                "epistasis.covariates; add it there too."
            )
        columns = covariate_columns(people, name, sheet).shape[1]
        if columns > 1:
            raise UserError(
                f"{_WHERE}.sets has the environment '{name}', which has {columns + 1} categories "
                f"in {sheet}; an environment is a number, or has two categories."
            )


def _check_design(
    block: dict, samples: pd.DataFrame, sheet: str, classes: np.ndarray, quantitative: bool
) -> None:
    """Refuse strata and covariates that leave nothing to compare, or too much to fit."""
    from .design import check_covariates, check_size, covariate_columns, of_one_class

    people, case = samples[classes >= 0], classes[classes >= 0]
    check_covariates(people, block["covariates"], sheet)
    columns, strata = 0, pd.Series("all", people.index)
    if block["strata"] != "none":
        strata = people[block["strata"]].replace("", "NA")
        columns = strata.nunique() - 1
    columns += sum(covariate_columns(people, name, sheet).shape[1] for name in block["covariates"])
    if quantitative:
        check_size(columns, len(people), "samples with a phenotype")
        return
    single = of_one_class(case, strata.to_numpy())
    sizes = strata[single].value_counts()
    if len(sizes) and (single.all() or sizes.iloc[0] >= LEAST_OF_ONE_CLASS):
        name = sorted(sizes.index[sizes == sizes.iloc[0]])[0]
        kind = "cases" if case[(strata == name).to_numpy()][0] else "controls"
        raise UserError(
            f"{sheet}: all {sizes[name]} samples of {block['strata']} '{name}' with a phenotype "
            f"are {kind}, so that nothing can be compared within it (epistasis.strata: "
            f"{block['strata']}); set their phenotype to NA, or epistasis.strata to 'none' or to "
            "another column."
        )
    counts = np.bincount(case[~single], minlength=2)
    kind = ("controls", "cases")[int(np.argmin(counts))]
    columns -= len(sizes)
    check_size(columns, int(counts.min()), kind)


def _check_listed(path: Path, least: int) -> None:
    """Check that a list has enough sites; ranges of a BED file are checked later."""
    from .site_list import read_site_list  # as in check_epistasis

    names = read_site_list(path).names
    if least == 4 and len(set(names)) > MOST_QUAD_SITES:
        raise UserError(
            f"{path} lists {len(set(names))} sites, more than the {MOST_QUAD_SITES} whose quads a "
            "scan can combine; list fewer (epistasis.restrict) or take 4 out of epistasis.order."
        )
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
