"""Fit the null model of a study's scans and compare the phenotype with its structure."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from ..cohort.phenotype import known_numbers
from ..cohort.samples import read_samples
from ..components.pca import place_everyone
from ..core.errors import UserError
from ..core.files import read_json
from ..core.tables import read_table, write_table
from ..engine.backend import Backend
from .design import MOST_PCS, PEOPLE_A_COLUMN, ComponentScores, Design, check_size, design_matrix
from .families import family_model
from .null_model import NullModel, fit_null, residual_levels, write_null_model
from .relatedness import Relatives
from .structure import structure_table, structure_warnings

log = logging.getLogger(__name__)


def place_cohorts(
    genotypes: list[Path], definition: Path, about: Path, backend: Backend
) -> ComponentScores:
    """Components of all people of some cohorts.

    They are placed here, and not read from the study's PCA, which holds the people of the distance
    matrix: scans need no distances.

    Parameters
    ----------
    genotypes : list of Path
        Stems of the cohorts' genotypes on the panel.
    definition, about : Path
        embedding/axes.npz and axes.json.
    backend : Backend
    """
    names, _, scores, *_ = place_everyone(genotypes, definition, backend)
    return ComponentScores(names, scores, int(read_json(about)["significant"]))


def fit_null_model(
    folder: Path,
    sheet: Path,
    axes: ComponentScores | None,
    model_out: Path,
    structure_out: Path,
    *,
    covariates: list[str],
    pcs: int | str,
    transform: str,
    seed: int,
    relatives: Relatives | None = None,
) -> tuple[dict[str, object], list[str]]:
    """Write the null model of a scan, and what structure says about its phenotype.

    Parameters
    ----------
    folder : Path
        `results/reorder`.
    sheet : Path
        The sample sheet.
    axes : Axes, optional
        `place_cohorts`.
    model_out, structure_out : Path
        See `null_model.write_null_model` and `structure.structure_table`.
    covariates, pcs
        As in `design.design_matrix`. With ``auto``, components are left out from the last one on
        while there are too few people for them, and all of them if they separate cases from
        controls; the log says so.
    transform : str
        Of a number (`null_model.fit_null`).
    seed : int
        Of the rounding of residuals.
    relatives : Relatives, optional
        Among the people of `folder`; with them, residuals of a number are scanned as
        `families.FamilyModel.weigh` has them.

    Returns
    -------
    dict, list of str
        Counts for the log, and warnings.
    """
    scanned, described = read_table(folder / "samples.tsv"), read_samples(sheet)
    kind = "linear" if (scanned["class"] == "quantitative").all() else "logistic"
    response = known_numbers(scanned["phenotype"])

    def design_of(count: int | str) -> Design:
        return design_matrix(scanned, described, str(sheet), covariates, axes, count)

    design = design_of(0)
    room = _smallest(design, response, kind) // PEOPLE_A_COLUMN - len(design.names)
    if axes is not None and pcs != 0:
        count = min(axes.significant, axes.scores.shape[1], MOST_PCS) if pcs == "auto" else int(pcs)
        if pcs == "auto" and count > max(room, 0):
            log.warning(
                "null model: %d of %d significant components are taken; there are too few samples "
                "for more",
                *(max(room, 0), count),
            )
        design = design_of(min(count, max(room, 0)) if pcs == "auto" else count)
    smallest = _smallest(design, response, kind)
    of = "cases or controls" if kind == "logistic" else "samples"
    check_size(len(design.names), smallest, of)
    null = _fit(response, design, design_of, kind, transform, pcs)
    families, residuals = None, null.residuals
    if kind == "linear" and relatives is not None:
        families = family_model(null, relatives)
    if families is not None:
        residuals = families.weigh(residuals, null.used & families.counts)
    levels, variance = residual_levels(null, seed, residuals)
    write_null_model(model_out, null, levels, variance)
    people = described.set_index("sample").loc[scanned["sample"]].reset_index()
    table = structure_table(null.response, Design(null.design, null.names), people, axes)
    write_table(structure_out, table)
    counts = {
        "kind": null.kind,
        "people": len(response),
        "not_used": int((~null.used).sum()),
        "columns": ", ".join(null.names) or "none",
    }
    if families is not None:
        counts["shared_by_relatives"] = round(families.shared, 3)
    return counts, structure_warnings(table)


def _smallest(design: Design, response: np.ndarray, kind: str) -> int:
    """People who are used, of the smaller class."""
    used = response[np.isfinite(design.values).all(axis=1)]
    return len(used) if kind == "linear" else int(min((used == 0).sum(), (used == 1).sum()))


def _fit(
    response: np.ndarray, design: Design, design_of, kind: str, transform: str, pcs: int | str
) -> NullModel:
    try:
        return fit_null(response, design.values, kind, names=design.names, transform=transform)
    except UserError as error:
        if pcs != "auto" or not any(name.startswith("PC") for name in design.names):
            raise
        log.warning("null model without principal components: %s", error)
    design = design_of(0)
    return fit_null(response, design.values, kind, names=design.names, transform=transform)
