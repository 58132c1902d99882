"""Groups of a study's samples by painting: found among donors, everyone else is placed.

Donors are divided (`coancestry.find_groups`). A sample is placed in the group from whose donors it
copies most, above what donors copy from that group on average. How stable this is, stretches of the
map tell that are drawn again with replacement.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.files import write_json
from ..core.tables import write_table
from .coancestry import FLIPS, LEAST_EXCESS, LEAST_STRETCHES, StructureTest, find_groups

log = logging.getLogger("popdesic")

#: Draws of the stretches.
DRAWS = 100


def group_means(stretches: np.ndarray, group: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Mean length that samples copy from a donor of each group, by stretch.

    Parameters
    ----------
    stretches : float array, (n_samples, n_stretches, n_donors)
    group : int array, (n_donors,)
        From 0; each has two donors or more.
    own : int array, (n_samples,)
        Donor that each sample is, which is left out; -1: none.

    Returns
    -------
    float64 array, (n_samples, n_stretches, n_groups)
    """
    order = np.argsort(group, kind="stable")
    size = np.bincount(group)
    starts = np.cumsum(size) - size
    number = np.tile(size, (len(stretches), 1))
    known = np.flatnonzero(own >= 0)
    number[known, group[own[known]]] -= 1
    sums = np.empty((*stretches.shape[:2], len(size)))
    for row, one in zip(sums, stretches, strict=True):
        row[:] = np.add.reduceat(one[:, order].astype(np.float64), starts, axis=1)
    return sums / number[:, None]


def place_samples(means: np.ndarray, usual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group in which each sample is placed, and how often, if stretches are drawn again.

    Parameters
    ----------
    means : float64 array, (n_samples, n_stretches, n_groups)
        `group_means` of the samples.
    usual : float64 array, (n_stretches, n_groups)
        Mean of all donors.

    Returns
    -------
    placed : int64 array, (n_samples,)
    shares : float64 array, (n_samples, n_groups)
        Of DRAWS draws in which a sample is placed in each group.
    """
    n_samples, n_stretches, n_groups = means.shape
    excess = means - usual
    drawn = np.random.default_rng(n_stretches).integers(0, n_stretches, (DRAWS, n_stretches))
    times = np.zeros((n_samples, n_groups), np.int64)
    for stretches in drawn:
        best = _sums(excess, np.bincount(stretches, minlength=n_stretches)).argmax(axis=1)
        times[np.arange(n_samples), best] += 1
    placed = _sums(excess, np.ones(n_stretches, np.int64)).argmax(axis=1)
    return placed, times / DRAWS


def _sums(excess: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Sum of stretches, each so many times, in their order: float64 (n_samples, n_groups)."""
    total = np.zeros((excess.shape[0], excess.shape[2]))
    for stretch in np.flatnonzero(times):
        total += times[stretch] * excess[:, stretch]
    return total


def rows_of_donors(painted: Mapping[str, np.ndarray], donors: pd.DataFrame) -> np.ndarray:
    """Rows of the donors, in their order, from an array of each cohort.

    Parameters
    ----------
    painted : dict of arrays, (n_samples, ...)
        One row a sample of the cohort.
    donors : DataFrame
        `cohort` and `row`, as of `cohort.paint_cohorts.choose_donors`.

    Returns
    -------
    array, (n_donors, ...)
    """
    by_cohort = donors.groupby("cohort", sort=False).row
    return np.concatenate([painted[cohort][rows] for cohort, rows in by_cohort])


def group_study(
    stretches: Mapping[str, Path],
    names: Mapping[str, list[str]],
    donors: pd.DataFrame,
    table_out: Path,
    summary_out: Path,
) -> np.ndarray:
    """Find groups of donors, place all samples, and write both tables.

    Parameters
    ----------
    stretches : dict
        ``painting/coancestry/{cohort}__stretches.npy`` of each cohort (`cohort.paint_cohorts`).
    names : dict
        Samples of each cohort, in the order of its rows.
    donors : DataFrame
        `sample`, `cohort` and `row`, as of `cohort.paint_cohorts.choose_donors`.
    table_out : Path
        `painting/groups.tsv`: `sample`, `painted_group` (from 1), `painted_stability` (share of
        draws of the stretches in which the sample is placed in its group; NA of one group).
    summary_out : Path
        `painting/groups.json`: `samples`, `donors`, `stretches`, `tests`
        (`coancestry.StructureTest`), `groups` (of each its donors, samples and mean stability),
        `replaced` (share of donors that are placed in their group) and the limits.

    Returns
    -------
    int64 array, (n_donors,)
        Group of each donor, from 0.
    """
    opened = {cohort: np.load(path, mmap_mode="r") for cohort, path in stretches.items()}
    among = rows_of_donors(opened, donors)
    group, tests = find_groups(among.transpose(1, 0, 2))
    usual = group_means(among, group, np.arange(len(donors))).mean(axis=0)
    number = {name: k for k, name in enumerate(donors["sample"])}
    rows, replaced = [], 0
    for cohort, painted in opened.items():
        own = np.array([number.get(name, -1) for name in names[cohort]], np.int64)
        placed, shares = place_samples(group_means(painted, group, own), usual)
        given = np.where(own >= 0, group[own], placed)
        replaced += int((placed == given)[own >= 0].sum())
        stable = shares[np.arange(len(own)), given]
        rows.append(
            pd.DataFrame(
                {
                    "sample": names[cohort],
                    "painted_group": given + 1,
                    "painted_stability": stable if group.max() else np.nan,
                }
            )
        )
    table = pd.concat(rows, ignore_index=True)
    write_table(table_out, table)
    about = _summary(table, group, tests, among.shape[1]) | {"replaced": replaced / len(donors)}
    write_json(summary_out, about)
    log.info("%d groups of %d donors by their coancestry", group.max() + 1, len(donors))
    return group


def _summary(
    table: pd.DataFrame, group: np.ndarray, tests: list[StructureTest], n_stretches: int
) -> dict[str, Any]:
    groups = []
    for one, size in enumerate(np.bincount(group).tolist(), 1):
        members = table[table.painted_group == one]
        mean = members.painted_stability.mean()
        stability = None if np.isnan(mean) else round(float(mean), 6)
        groups.append({"donors": size, "samples": len(members), "stability": stability})
    return {
        "samples": len(table),
        "donors": len(group),
        "stretches": n_stretches,
        "groups": groups,
        "tests": [one._asdict() for one in tests],
        "limits": {"deviations": LEAST_EXCESS, "draws": FLIPS, "stretches": LEAST_STRETCHES},
    }
