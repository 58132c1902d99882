"""The phenotype that a scan reads: cases and controls, or numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from ..cohort.phenotype import is_quantitative, known_numbers, recode_phenotype
from ..core.errors import UserError
from .scan_data import ASSOCIATION, NAMES

#: Most samples that the backends' accumulators and the score tables can hold.
MAX_SAMPLES = 1 << 24
_WHERE = "config/config.yaml: epistasis"


def phenotype_classes(samples: pd.DataFrame, transform: str, source: str) -> np.ndarray:
    """Class of each row of the sample sheet: int8, 0 control, 1 case, -1 unknown.

    PLINK's 1 and 2 are controls and cases; its codes for missing are refused (`phenotype`).

    Raises
    ------
    UserError
        No phenotype column, an invalid value, only one class, or a quantitative phenotype without
        ``median``.
    """
    if "phenotype" not in samples:
        raise UserError(
            f"{source} has no column 'phenotype', which epistasis.order needs; add it (1 case, 0 "
            "control, NA) or set epistasis.order to []."
        )
    values = known_numbers(recode_phenotype(samples, source))
    known = ~np.isnan(values)
    if not np.isin(values[known], (0, 1)).all():
        if transform != "median":
            raise UserError(
                f"{source}: the phenotype has values other than 0 and 1, and this scan needs cases "
                "and controls; set epistasis.transform to 'median' or give a binary column."
            )
        values = np.where(known, values > np.median(values[known]), values)
    classes = np.where(known, values, -1).astype(np.int8)
    for value, name in ((0, "control"), (1, "case")):
        if not (classes == value).any():
            raise UserError(
                f"{source}: no sample is a {name} by its phenotype, so there is nothing to scan "
                "for; give both classes or set epistasis.order to []."
            )
    return classes


class Phenotype(NamedTuple):
    """Phenotype of each row of the sample sheet.

    classes: int8, 0 control, 1 case, -1 unknown; numbers have 0 for everybody who has one.
    quantitative: whether they are numbers.
    """

    classes: np.ndarray
    quantitative: bool


def scan_phenotype(
    samples: pd.DataFrame, transform: str, source: str, orders: list[int], score: str
) -> Phenotype:
    """Read the phenotype for scans of these orders by this score.

    Raises
    ------
    UserError
        As `phenotype_classes`; or numbers are to be scanned for triples or quads, or by an
        association score.
    """
    if not is_quantitative(samples, transform):
        return Phenotype(phenotype_classes(samples, transform, source), False)
    if further := sorted(set(orders) - {2}):
        raise UserError(
            f"{_WHERE}.order has {further[0]}, but {NAMES[further[0]]} are scanned in cases and "
            f"controls alone, and the phenotype of {source} has more than two values; set "
            "epistasis.transform to 'median' or epistasis.order to [2]."
        )
    if score in ASSOCIATION:
        raise UserError(
            f"{_WHERE}.score is '{score}', which needs cases and controls, and the phenotype of "
            f"{source} has more than two values; set epistasis.score to 'interaction' or "
            "epistasis.transform to 'median'."
        )
    values = known_numbers(recode_phenotype(samples, source))
    return Phenotype(np.where(np.isnan(values), -1, 0).astype(np.int8), True)
