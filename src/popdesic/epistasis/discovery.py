"""Who discovers and who confirms (`epistasis.replication`); cheap to import for planning."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from ..cohort.phenotype import UNKNOWN
from ..core.errors import UserError

#: Fewest people of a class in a half.
LEAST_PEOPLE = 10


def families(samples: pd.DataFrame) -> np.ndarray:
    """Number of each row's family: people joined by `father` and `mother` of the sheet."""
    place = {name: row for row, name in enumerate(samples["sample"])}
    above = np.arange(len(samples))

    def root(row: int) -> int:
        while above[row] != row:
            above[row] = above[above[row]]
            row = above[row]
        return row

    # Siblings whose parents have no genotypes are one family as well.
    absent: dict[str, int] = {}
    for column in ("father", "mother"):
        for row, name in enumerate(samples.get(column, pd.Series(dtype=str))):
            if name in UNKNOWN:
                continue
            other = place.get(name, absent.setdefault(name, row))
            above[root(row)] = root(other)
    return np.array([root(row) for row in range(len(samples))], np.int64)


def divide_people(
    samples: pd.DataFrame,
    classes: np.ndarray,
    how: str,
    *,
    founders: Collection[str],
    strata: str,
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Who discovers and who confirms, two bool arrays (n_rows,).

    Parameters
    ----------
    samples : DataFrame
        The sample sheet.
    classes : int array, (n_rows,)
        0 control, 1 case, -1 unknown.
    how : 'half' or 'newcomers'
        `epistasis.replication`. Of `newcomers`, the founders discover, and all others confirm but
        those of a family of which somebody discovers.
    founders : collection of str
        Cohorts of the sheet; of `newcomers` alone.
    strata, seed
        Of `half` alone.

    Raises
    ------
    UserError
        A class has fewer than LEAST_PEOPLE people who discover, or who confirm.
    """
    if how == "half":
        half = discovery_half(samples, classes, strata, seed)
        return half, (np.asarray(classes) >= 0) & ~half
    known = np.asarray(classes) >= 0
    first = known & samples["cohort"].isin(list(founders)).to_numpy()
    family = families(samples)
    rest = known & ~first & ~np.isin(family, family[first])
    for value, name in ((0, "controls"), (1, "cases")):
        for people, where in ((first, "founders"), (rest, "newcomers who can confirm")):
            number = int((people & (classes == value)).sum())
            if number < LEAST_PEOPLE:
                raise UserError(
                    f"config/config.yaml: epistasis.replication is 'newcomers', and there are "
                    f"{number} {name} among the {where}, fewer than {LEAST_PEOPLE}; set it to "
                    "'none' until more have arrived."
                )
    return first, rest


def discovery_half(
    samples: pd.DataFrame, classes: np.ndarray, strata: str, seed: int
) -> np.ndarray:
    """Which people discover: bool (n_rows,), False as well for people without a phenotype.

    Families stay together; they are drawn in random order, each into the half in which fewer
    people of its members' strata and classes are.

    Raises
    ------
    UserError
        A class has fewer than LEAST_PEOPLE people in a half.
    """
    classes = np.asarray(classes)
    stratum = samples[strata] if strata != "none" else pd.Series("all", samples.index)
    cell = pd.factorize(stratum.astype(str) + "\t" + pd.Series(classes, samples.index).astype(str))
    known, family = classes >= 0, families(samples)
    excess = np.zeros(len(cell[1]), np.int64)  # people of the discovery half less the others
    half = np.zeros(len(samples), bool)
    of_family = pd.Series(np.arange(len(samples))[known]).groupby(family[known]).agg(list)
    for k in np.random.default_rng([seed, 2]).permutation(len(of_family)):
        rows = np.array(of_family.iloc[k])
        ahead = int(excess[cell[0][rows]].sum())
        discovers = ahead < 0 if ahead else k % 2 == 0
        half[rows] = discovers
        np.add.at(excess, cell[0][rows], 1 if discovers else -1)
    for value, name in ((0, "controls"), (1, "cases")):
        people = [int((part & (classes == value)).sum()) for part in (half, known & ~half)]
        if (classes == 1).any() and min(people) < LEAST_PEOPLE:
            raise UserError(
                f"config/config.yaml: epistasis.replication is 'half', which leaves {min(people)} "
                f"{name} in one half, fewer than {LEAST_PEOPLE}; set it to 'none'."
            )
    return half
