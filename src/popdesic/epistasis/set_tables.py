"""Tables of the replication of sets between cohorts (`set_cohorts.py`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..core.threads import one_blas_thread
from .set_cohorts import CohortEffect, combine_effects, effect_of, join_statistics
from .set_scores import SetStatistics

#: Largest `p_all` with which cohorts are left out one by one: of others it says nothing.
LEFT_OUT = 0.05
#: Columns of the table of sets, and of that of sets and cohorts.
DISCOVERED = ["p_discovery", "p_quadratic", "p_pair", "tested", "site1", "site2"]
COMBINED = ["cohorts", "effect", "se", "p_replication"]
FURTHER = ["effect_random", "se_random", "p_random", "q", "p_q", "i2"]
ALL = ["p_all", "p_without", "without"]
COLUMNS = ["set", *DISCOVERED, *COMBINED, *FURTHER, *ALL]
BY_COHORT = ["set", "cohort", "role", "n", "effect", "se", "p"]


@one_blas_thread
def replication_tables(
    cohorts: Mapping[str, Mapping[str, SetStatistics | None]], discovery: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables as of `api.set_cohorts.replicate_sets`; `cohorts`: statistics by cohort and set.

    Cohorts are added up by name, so that results do not depend on their order.
    """
    found = [
        replicate_set(
            name, {cohort: cohorts[cohort][name] for cohort in sorted(cohorts)}, discovery
        )
        for name in cohorts[next(iter(cohorts))]
    ]
    return tables_of_rows(found)


def tables_of_rows(found: list[tuple[dict, list[dict]]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables, of the rows of `replicate_set`; columns that they do not have are left out."""
    by_cohort = [row for _, rows in found for row in rows]
    rows = pd.DataFrame([row for row, _ in found], columns=COLUMNS)
    return rows, pd.DataFrame(by_cohort, columns=BY_COHORT)


def replicate_set(
    name: str,
    parts: dict[str, SetStatistics | None],
    discovery: list[str],
    known: dict[str, float | int] | None = None,
) -> tuple[dict, list[dict]]:
    """The row of a set, and its rows by cohort; `parts`: statistics by cohort, in a fixed order.

    The row also has `all`: of all cohorts together `sites`, `products`, and the results of
    `sets.set_p_values`, empty if none was tested; and `discovered`: these results of the discovery
    cohorts, which `known` may have from a former run.
    """
    row, effects = _replicate({c: part for c, part in parts.items() if part}, discovery, known)
    by_cohort = [
        {
            "set": name,
            "cohort": cohort,
            "role": "discovery" if cohort in discovery else "replication",
            "n": part.n_people if part else 0,
            **vars(effects.get(cohort, CohortEffect(*(float("nan"),) * 3))),
        }
        for cohort, part in parts.items()
    ]
    return {"set": name} | row, by_cohort


def _replicate(
    parts: dict[str, SetStatistics],
    discovery: list[str],
    known: dict[str, float | int] | None,
) -> tuple[dict[str, object], dict[str, CohortEffect]]:
    """The row of a set, and the effects of its direction by cohort; `parts` of tested cohorts."""
    nothing = dict.fromkeys(COLUMNS[1:], np.nan)
    row = nothing | {"tested": "NA", "without": "NA", "site1": -1, "site2": -1, "cohorts": 0}
    row["discovered"] = {}
    row |= _all(parts)
    found = [parts[cohort] for cohort in discovery if cohort in parts]
    if not found:
        return row, {}
    joined = join_statistics(found)
    tests = known or joined.tests()
    row |= {name: tests[name] for name in ("p_quadratic", "p_pair", "site1", "site2")}
    row["discovered"] = tests
    row["p_discovery"] = tests["p"]
    if np.isnan(tests["p"]):
        return row, {}
    row["tested"], direction = joined.direction(tests)
    effects = {cohort: effect_of(part, joined, direction) for cohort, part in parts.items()}
    combined = combine_effects([one for c, one in effects.items() if c not in discovery])
    combined["p_replication"] = combined.pop("p")
    return row | combined, effects


def _all(parts: dict[str, SetStatistics]) -> dict[str, object]:
    """Tests of all cohorts, and the largest p if one of several is left out."""
    if not parts:
        return {"all": {}}
    joined = join_statistics(list(parts.values()))
    tests = joined.tests()
    sizes = {"sites": joined.n_sites, "products": int((joined.covariance.diagonal() > 0).sum())}
    found: dict[str, object] = {"p_all": tests["p"], "all": sizes | tests}
    if len(parts) < 2 or not tests["p"] <= LEFT_OUT:
        return found
    left = {
        cohort: join_statistics([part for c, part in parts.items() if c != cohort]).tests()["p"]
        for cohort in parts
    }
    known = {cohort: p for cohort, p in left.items() if not np.isnan(p)}
    if known:
        worst = max(known, key=known.__getitem__)
        found |= {"p_without": known[worst], "without": worst}
    return found
