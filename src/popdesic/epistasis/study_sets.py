"""The scan of sets of a study (`epistasis.sets`): from planes, null model and a file to a table."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.tables import write_table
from .null_model import NullModel, read_null_model
from .relatedness import Relatives
from .reorder import genotypes_of_planes, read_reordered
from .set_list import KEY, Range, SiteSet, read_sets, sites_of_ranges
from .set_rows import Sets, for_each_set, set_rows
from .set_tables import replicate_set, tables_of_rows
from .sets import SetStatistics, SetTests

logger = logging.getLogger("popdesic")

#: Most names of a list in the log.
MOST_NAMED = 5
P_VALUES = ["p_quadratic", "p_pair", "p_burden"]


def scan_study_sets(
    folder: Path,
    null: Path,
    given: Path,
    out: Path,
    relatives: Relatives,
    threads: int,
    replication: tuple[Path, Path, list[str]] | None = None,
) -> dict[str, object]:
    """Test each set of a file for interactions of any two of its sites, and write a table.

    Of relatives of third degree or closer, as few people as possible are left out (`unrelated`).

    Parameters
    ----------
    folder : Path
        `results/reorder`.
    null : Path
        `results/epistasis/null_model.npz`.
    given : Path
        See `set_list.read_sets`.
    out : Path
        A row per set in the order of the file: `set`; `chrom`, `start`, `end` (1-based, the first
        and the last base of its ranges; NA if they are on several contigs), those of the second set
        of a pair; `n` people; `listed` sites; `sites` and `products` that were tested; `p`,
        `p_adjusted` (times the sets that were tested, at most 1), `p_quadratic`, `p_pair`,
        `p_burden` as of `sets.set_p_values`; `site1`, `site2` of the best product, in panel order.
    relatives : Relatives
        Among the people of `folder`.
    threads : int
    replication : (Path, Path, list of str), optional
        Where to write the tables of `set_tables.replication_tables` of these cohorts, with names of
        sites; and the founder cohorts. These discover if there are others, otherwise the largest
        cohort does.

    Returns
    -------
    dict
        Numbers of people, sets and tests for the log, and the smallest p.

    Raises
    ------
    UserError
        No set has two sites, or two sets a site each.
    """
    words, sites, samples = read_reordered(folder)
    n_cases = int((samples["class"] == "case").sum())
    n_controls = len(samples) - n_cases
    listed = read_sets(given)
    within = sites_of_ranges(sites["chrom"].to_numpy(), sites["pos"].to_numpy())
    chosen = {
        entry.name: (within(entry.first), within(entry.second) if entry.second else None)
        for entry in listed
    }
    if not any(products_of(*parts) for parts in chosen.values()):
        raise UserError(
            f"{given} ({KEY}): none of its {len(listed)} sets has two scanned sites; check the "
            "names of chromosomes, and epistasis.restrict."
        )
    model, left_out = without_relatives(read_null_model(null), relatives)

    def read(rows: np.ndarray) -> np.ndarray:
        return genotypes_of_planes(words[rows], sites.iloc[rows], n_controls, n_cases).T

    rows = set_rows(SetTests(model), read, chosen, threads)
    table = _table(listed, chosen, rows, sites, int(model.used.sum()))
    write_table(out, table)
    _log_untested(rows)
    if replication is not None:
        _replicate_cohorts(model, samples["cohort"], read, chosen, sites, replication, threads)
    return {
        "people": int(model.used.sum()),
        "relatives_left_out": left_out,
        "sets": len(table),
        "tested": int(table["p"].notna().sum()),
        "products": int(table["products"].sum()),
        "smallest_p": float(table["p"].min()),
    }


def _replicate_cohorts(
    model: NullModel,
    cohorts: pd.Series,
    read: Callable[[np.ndarray], np.ndarray],
    chosen: Sets,
    sites: pd.DataFrame,
    replication: tuple[Path, Path, list[str]],
    threads: int,
) -> None:
    """Write the tables of discovery and replication between the cohorts of a study."""
    table_out, cohorts_out, founders = replication
    people = cohorts[model.used].value_counts()
    names = sorted(people.index)
    discovery = sorted(set(names) & set(founders))
    if len(discovery) in (0, len(names)):
        discovery = [max(names, key=lambda name: (people[name], name))]
    tests = {}
    for name in names:
        used = model.used & (cohorts == name).to_numpy()
        if model.kind == "linear" or len(np.unique(model.response[used])) == 2:
            tests[name] = SetTests(replace(model, used=used))

    def replicate(name: str, genotypes: np.ndarray, own: np.ndarray, places: list):
        parts: dict[str, SetStatistics | None] = dict.fromkeys(names)
        for cohort, one in tests.items():
            try:
                found = one.statistics(genotypes, *places)
            except UserError:
                continue  # separated, or too many products
            parts[cohort] = replace(found, sites=own[found.sites])
        return replicate_set(name, parts, discovery)

    largest = SetTests(model)
    found = for_each_set(replicate, largest, read, chosen, threads, len(tests))
    rows, by_cohort = tables_of_rows(found)
    pairs = _in_panel_order(rows[["site1", "site2"]].to_numpy(), sites)
    rows["site1"], rows["site2"] = zip(*pairs, strict=True)
    write_table(table_out, rows)
    write_table(cohorts_out, by_cohort)


def site_names(sites: pd.DataFrame) -> np.ndarray:
    """chrom:pos:ref:alt of each site."""
    pos = sites["pos"].astype(str)
    return (sites["chrom"] + ":" + pos + ":" + sites["ref"] + ":" + sites["alt"]).to_numpy()


def _in_panel_order(pairs: Iterable, sites: pd.DataFrame) -> list[tuple[str, str]]:
    """Names of two sites each, the first of the panel first; NA where there are none (-1)."""
    names, rank = site_names(sites), sites["rank"].to_numpy()
    return [
        tuple(names[k] for k in sorted(pair, key=rank.__getitem__))
        if min(pair) >= 0
        else ("NA", "NA")
        for pair in pairs
    ]


def products_of(first: np.ndarray, second: np.ndarray | None) -> int:
    """Products of two different sites of a set, or of a site of each of two sets; at most."""
    if second is None:
        return len(first) * (len(first) - 1) // 2
    return len(first) * len(second) - len(np.intersect1d(first, second))


def without_relatives(null: NullModel, relatives: Relatives) -> tuple[NullModel, int]:
    """The null model of people who are not related, and how many are left out for this."""
    response = null.response[null.used]
    prior = response if null.kind == "logistic" else np.zeros(len(response))
    kept = unrelated(relatives.among(null.used), prior)
    used = null.used.copy()
    used[used] = kept
    return replace(null, used=used), int((~kept).sum())


def unrelated(relatives: Relatives, prior: np.ndarray) -> np.ndarray:
    """People of whom no two are related, bool (n,), leaving out those with most relatives first.

    Of equals, the one with the smaller `prior` (a control) is left out, or the later one.
    """
    near: dict[int, set[int]] = {}
    for a, b in zip(relatives.first.tolist(), relatives.second.tolist(), strict=True):
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    kept = np.ones(len(prior), bool)
    waiting = [(-len(near[k]), float(prior[k]), -k) for k in near]
    heapq.heapify(waiting)
    while waiting:
        degree, value, k = heapq.heappop(waiting)
        if -degree != len(near[-k]):  # a relative of this person was left out meanwhile
            heapq.heappush(waiting, (-len(near[-k]), value, k))
        elif degree:
            kept[-k] = False
            for other in near.pop(-k):
                near[other].discard(-k)
    return kept


def _table(
    listed: list[SiteSet],
    chosen: dict[str, tuple[np.ndarray, np.ndarray | None]],
    rows: list[dict],
    sites: pd.DataFrame,
    n: int,
) -> pd.DataFrame:
    """The columns of `scan_study_sets`."""
    table = pd.DataFrame(
        {
            "set": [entry.name for entry in listed],
            **_places([entry.first for entry in listed], ""),
            **_places([entry.second for entry in listed], "2"),
            "n": n,
            "listed": [len(np.union1d(a, a if b is None else b)) for a, b in chosen.values()],
        }
    )
    tested = pd.DataFrame(rows).reindex(columns=["sites", "products", "p", *P_VALUES])
    tested[["p", *P_VALUES]] = tested[["p", *P_VALUES]].astype(float)
    tested.insert(3, "p_adjusted", np.minimum(tested["p"] * tested["p"].notna().sum(), 1.0))
    pairs = _in_panel_order([(row["site1"], row["site2"]) for row in rows], sites)
    tested["site1"], tested["site2"] = zip(*pairs, strict=True)
    return pd.concat([table, tested], axis=1)


def _places(sides: list[list[Range]], suffix: str) -> dict[str, list]:
    """Contig, first and last base of the ranges of sets; NA if there are none or on several."""
    found: dict[str, list] = {f"{name}{suffix}": [] for name in ("chrom", "start", "end")}
    for ranges in sides:
        contigs = {chrom for chrom, _, _ in ranges}
        place = ("NA", "NA", "NA")
        if len(contigs) == 1:
            low, high = min(r[1] for r in ranges) + 1, max(r[2] for r in ranges)
            place = (ranges[0][0], low, high)
        for column, value in zip(found.values(), place, strict=True):
            column.append(value)
    return found


def _log_untested(rows: list[dict]) -> None:
    """Say how many sets could not be tested, and why the first of them."""
    failed = [row for row in rows if "problem" in row]
    if failed:
        logger.warning(
            "%d sets were not tested (%s%s): %s",
            len(failed),
            ", ".join(row["set"] for row in failed[:MOST_NAMED]),
            " and others" if len(failed) > MOST_NAMED else "",
            failed[0]["problem"],
        )
