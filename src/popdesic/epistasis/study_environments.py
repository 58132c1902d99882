"""Interactions of the sets of a study with environments, which are covariates of its null model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..core.errors import UserError
from .null_model import NullModel
from .set_environment import environment_design
from .set_rows import Sets, set_rows
from .sets import SetTests

logger = logging.getLogger("popdesic")


def rows_with_environment(
    null: NullModel,
    name: str,
    read: Callable[[np.ndarray], np.ndarray],
    sets: Sets,
    threads: int,
) -> list[dict]:
    """Rows as of `set_rows.set_rows` of the products of each site with a covariate, `name`.

    Raises
    ------
    UserError
        As of `tests_with_environment`.
    """
    tests, left_out = tests_with_environment(null, name)
    if left_out:
        logger.warning(
            "%s: the last %d columns of strata, covariates and components have no product with it "
            "in the null model, as there are fewer than three samples (of the smaller class) for "
            "each column",
            name,
            left_out,
        )
    return set_rows(tests, read, sets, threads)


def tests_with_environment(null: NullModel, name: str) -> tuple[SetTests, int]:
    """Tests of products with a covariate of a null model, and how many covariates have no product
    with it, for want of people.

    Raises
    ------
    UserError
        The covariate is not in the model, as it follows from strata or other covariates.
    """
    starts = (f"{name} / 1e", f"{name}=")
    columns = [one for one in null.names if one == name or one.startswith(starts)]
    if len(columns) != 1:
        raise UserError(
            f"config/config.yaml: epistasis.sets has the environment '{name}', which follows from "
            "strata or covariates before it for all samples that are tested; leave it out, or set "
            "epistasis.strata to 'none'."
        )
    environment = null.design[:, null.names.index(columns[0])]
    people = int(null.used.sum())
    if null.kind == "logistic":
        cases = int(null.response[null.used].sum())
        people = min(cases, people - cases)
    design, left_out = environment_design(null.design, environment, people)
    return SetTests(replace(null, design=design), environment=environment), left_out
