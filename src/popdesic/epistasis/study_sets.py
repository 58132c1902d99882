"""The scan of sets of a study (`epistasis.sets`): from planes, null model and a file to a table."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import write_json
from ..core.tables import write_table
from ..core.threads import one_blas_thread, run_tasks
from ..io.bed import read_bim
from .kept_sets import ScoredCohort, cohorts_of, discovery_key, kept_tests, renew_scores
from .null_model import NullModel, read_null_model
from .relatedness import Relatives
from .reorder import genotypes_of_planes, read_reordered, read_restriction
from .set_list import KEY, Range, SiteSet, read_set_pairs, read_sets, sites_of_ranges
from .set_phantoms import LEVEL, explain_set, region_of
from .set_rows import MATRICES, MOST_TOGETHER, Sets, for_each_set, set_rows
from .set_scores import SetStatistics
from .set_tables import replicate_set, tables_of_rows
from .sets import SetTests
from .study_environments import rows_with_environment

logger = logging.getLogger("popdesic")

#: Most names of a list in the log.
MOST_NAMED = 5
#: Leading sets that are tested for untyped sites; sites of a region, at most and at least, and
#: genotypes of a region, at most.
MOST_LEADS, MOST_REGION, LEAST_REGION, CHUNK = 20, 500, 20, 1 << 24
P_VALUES = ["p_quadratic", "p_pair", "p_burden"]
#: Fewest people of a cohort for each site of a set whose tests add up scores of cohorts: two main
#: effects of a site then take a tenth of them at most.
PEOPLE_A_SITE = 20


class BetweenCohorts(NamedTuple):
    """What tests of sets read and write of several cohorts.

    Attributes
    ----------
    prefixes : list of Path
        Stems of their genotypes on the panel (.bed .bim .fam).
    restrict : Path, optional
        `epistasis.restrict`.
    founders : list of str
        They discover if there are other cohorts, otherwise the largest cohort does.
    transform : str
        Of a number, within each cohort: `none` or `normal`.
    scores : Path
        ``row.json`` in the folder of the scores that are kept (`kept_sets`).
    replication, by_cohort : Path
        Tables of `set_tables.replication_tables`, with names of sites.
    code, code_of_tests : str
        Digests of the code that scores, and of all code of the job.
    """

    prefixes: list[Path]
    restrict: Path | None
    founders: list[str]
    transform: str
    scores: Path
    replication: Path
    by_cohort: Path
    code: str
    code_of_tests: str


class Environments(NamedTuple):
    """Covariates with which the sites of each set are tested, and the table of these tests.

    A row per set and environment: as that of sets, but `environment` and one `site`, that of the
    best product; `p_adjusted` is corrected for all rows.
    """

    names: list[str]
    out: Path


def scan_study_sets(
    folder: Path,
    null: Path,
    given: Path,
    out: Path,
    relatives: Relatives,
    threads: int,
    between: BetweenCohorts | None = None,
    *,
    pairs: Path | None = None,
    environments: Environments | None = None,
) -> dict[str, object]:
    """Test each set of a file for interactions of any two of its sites, and write a table.

    Of relatives of third degree or closer, as few people as possible are left out (`unrelated`).
    With several cohorts, their scores are added up (`set_cohorts`): main effects are those of each
    cohort. All people are tested together where a cohort cannot be scored alone, or has fewer than
    PEOPLE_A_SITE people (of cases and controls, twice the fewer ones) for each site of a set.

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
        `p_burden` as of `sets.set_p_values`; `site1`, `site2` of the best product, in panel order;
        of leading sets `p_conditional`, `given`, `p_untyped` as of `_explain`.
    relatives : Relatives
        Among the people of `folder`.
    threads : int
    between : BetweenCohorts, optional
        Of a study with several cohorts.
    pairs : Path, optional
        Pairs of names of these sets (`set_list.read_set_pairs`), which are tested instead.
    environments : Environments, optional
        Further tests of the sets of `given`, of all people together.

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
    genes = listed = read_sets(given)
    if pairs is not None:
        listed = _listed_pairs(pairs, genes, given)
    within = sites_of_ranges(sites["chrom"].to_numpy(), sites["pos"].to_numpy())
    chosen = _sites_of_sets(listed, within)
    if not any(products_of(*parts) for parts in chosen.values()):
        raise UserError(
            f"{pairs or given} ({KEY}): none of its {len(listed)} sets has two scanned sites; "
            "check the names of chromosomes, and epistasis.restrict."
        )
    model, left_out = without_relatives(read_null_model(null), relatives)

    def read(rows: np.ndarray) -> np.ndarray:
        return genotypes_of_planes(words[rows], sites.iloc[rows], n_controls, n_cases).T

    found: dict[str, dict] = {}
    if between is not None:
        found, kept = _test_cohorts(model, samples, listed, sites, between, threads)
    rest = {name: parts for name, parts in chosen.items() if name not in found}
    rank = np.append(sites["rank"].to_numpy(), -1)
    for row in set_rows(SetTests(model), read, rest, threads):
        found[row["set"]] = row | {end: int(rank[row[end]]) for end in ("site1", "site2")}
    rows = [found[name] for name in chosen]
    table = _table(listed, chosen, rows, sites, int(model.used.sum()))
    table = _explain(table, chosen, sites, SetTests(model), read, threads)
    write_table(out, table)
    _log_untested(rows)
    if environments is not None:
        own = (genes, _sites_of_sets(genes, within))
        write_table(
            environments.out, _environments(environments.names, model, *own, sites, read, threads)
        )
    counts = {
        "people": int(model.used.sum()),
        "relatives_left_out": left_out,
        "sets": len(table),
        "tested": int(table["p"].notna().sum()),
        "products": int(table["products"].sum()),
        "smallest_p": float(table["p"].min()),
        "leading": int(table["given"].notna().sum()),
    }
    return counts if between is None else counts | {"sets_of_all_people": len(rest)} | kept


def _listed_pairs(path: Path, genes: list[SiteSet], given: Path) -> list[SiteSet]:
    """Sets of pairs of names; those that are no gene's are counted in the log."""
    found = read_set_pairs(path, genes, given)
    if found.unknown:
        logger.warning(
            "%s: %d names are not in %s (%s%s); rows with them are left out",
            path,
            len(found.unknown),
            given,
            ", ".join(found.unknown[:MOST_NAMED]),
            " and others" if len(found.unknown) > MOST_NAMED else "",
        )
    return found.sets


def _sites_of_sets(listed: list[SiteSet], within: Callable[[list[Range]], np.ndarray]) -> Sets:
    return {
        entry.name: (within(entry.first), within(entry.second) if entry.second else None)
        for entry in listed
    }


def _environments(
    names: list[str],
    model: NullModel,
    listed: list[SiteSet],
    chosen: Sets,
    sites: pd.DataFrame,
    read: Callable[[np.ndarray], np.ndarray],
    threads: int,
) -> pd.DataFrame:
    """The table of sets and environments (`Environments.out`)."""
    rank, parts = np.append(sites["rank"].to_numpy(), -1), []
    for name in names:
        rows = rows_with_environment(model, name, read, chosen, threads)
        _log_untested(rows)
        rows = [row | {"site1": -1, "site2": int(rank[row["site2"]])} for row in rows]
        part = _table(listed, chosen, rows, sites, int(model.used.sum()))
        part.insert(1, "environment", name)
        parts.append(part.drop(columns=["site1", "products"]).rename(columns={"site2": "site"}))
    table = pd.concat(parts, ignore_index=True)
    table["p_adjusted"] = np.minimum(table["p"] * table["p"].notna().sum(), 1.0)
    return table


def _test_cohorts(
    model: NullModel,
    samples: pd.DataFrame,
    listed: list[SiteSet],
    sites: pd.DataFrame,
    between: BetweenCohorts,
    threads: int,
) -> tuple[dict[str, dict], dict[str, object]]:
    """Write the tables of discovery and replication.

    Returns
    -------
    dict, dict
        Rows as of `set_rows.set_rows` of the sets whose tests add up the scores of cohorts, with
        rows of the panel as sites; cohorts whose scores were kept, and new ones, for the log.
    """
    cohorts = cohorts_of(between.prefixes, samples, model, between.transform)
    discovery = sorted(set(cohorts) & set(between.founders))
    if len(discovery) in (0, len(cohorts)):
        discovery = [max(cohorts, key=lambda name: (len(cohorts[name].columns), name))]
    scored = {name: one for name, one in cohorts.items() if one.size}
    chosen = _panel_sets(listed, between)
    scores, made = renew_scores(between.scores, scored, chosen, between.code, threads)
    path = between.scores.with_name("discovery.json")
    key = discovery_key(between.scores, discovery, between.code_of_tests)
    known = kept_tests(path, key)

    def replicate(name: str, *_) -> tuple[dict, list[dict]]:
        parts: dict[str, SetStatistics | None] = dict.fromkeys(cohorts)
        parts |= {cohort: one[name] for cohort, one in scores.items()}
        row, by_cohort = replicate_set(name, parts, discovery, known.get(name))
        if None in parts.values() or not _suffice(cohorts, *chosen[name]):
            row["all"] = {}
        return row, by_cohort

    tests, kept = SetTests(model), len(scored)
    found = for_each_set(replicate, tests, lambda rows: rows, chosen, threads, kept)
    rows, by_cohort = tables_of_rows(found)
    rows["site1"], rows["site2"] = _names_of_pairs(rows[["site1", "site2"]].to_numpy(), sites)
    write_json(path, {"key": key, "tests": {row["set"]: row["discovered"] for row, _ in found}})
    write_table(between.replication, rows)
    write_table(between.by_cohort, by_cohort)
    together = {row["set"]: {"set": row["set"]} | row["all"] for row, _ in found if row["all"]}
    return together, {
        "cohorts_kept": len(scored) - len(made),
        "scored": ", ".join(made) or "none",
        "tests_of_the_discovery_kept": len(known),
    }


def _panel_sets(listed: list[SiteSet], between: BetweenCohorts) -> Sets:
    """Rows of the panel in each set that scans may read, whatever varies in the cohorts."""
    bim = read_bim(between.prefixes[0]).reset_index(drop=True)
    rows = np.arange(len(bim))
    if between.restrict is not None:
        rows = np.flatnonzero(read_restriction(between.restrict, bim))
    within = sites_of_ranges(bim.chrom.to_numpy()[rows], bim.pos.to_numpy()[rows])
    found = _sites_of_sets(listed, within)
    return {name: (rows[a], None if b is None else rows[b]) for name, (a, b) in found.items()}


def _suffice(
    cohorts: dict[str, ScoredCohort], first: np.ndarray, second: np.ndarray | None
) -> bool:
    """Whether every cohort has enough people for main effects of its own."""
    n_sites = len(first if second is None else np.union1d(first, second))
    return min(one.size for one in cohorts.values()) >= PEOPLE_A_SITE * n_sites


def site_names(sites: pd.DataFrame) -> np.ndarray:
    """chrom:pos:ref:alt of each site."""
    pos = sites["pos"].astype(str)
    return (sites["chrom"] + ":" + pos + ":" + sites["ref"] + ":" + sites["alt"]).to_numpy()


def _names_of_pairs(pairs: np.ndarray, sites: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Names of two rows of the panel each, the first of the panel first; NA for none (-1)."""
    names = dict(zip(sites["rank"], site_names(sites), strict=True)) | {-1: "NA"}
    ordered = np.sort(np.asarray(pairs, np.int64).reshape(-1, 2), axis=1).T.tolist()
    return tuple([names[rank] for rank in column] for column in ordered)


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
    pairs = np.array([(row["site1"], row["site2"]) for row in rows])
    tested["site1"], tested["site2"] = _names_of_pairs(pairs, sites)
    return pd.concat([table, tested], axis=1)


@one_blas_thread
def _explain(
    table: pd.DataFrame,
    chosen: Sets,
    sites: pd.DataFrame,
    tests: SetTests,
    read: Callable[[np.ndarray], np.ndarray],
    threads: int,
) -> pd.DataFrame:
    """What an untyped site may have made of the leading sets (`set_phantoms.py`).

    They are those whose `p_adjusted` is at most LEVEL, and the best MOST_LEADS of them. All people
    are tested together. `p_conditional` is at least `p`; `given`: so many sites of the region;
    `p_untyped`. NA for other sets.
    """
    leads = table["p"][table["p_adjusted"] <= LEVEL].sort_values(kind="stable")
    names = table["set"][leads.index[:MOST_LEADS]].tolist()
    chrom, pos, n = sites["chrom"].to_numpy(), sites["pos"].to_numpy(np.int64), len(tests.used)

    def explain(name: str) -> tuple[float, float, float]:
        first, second = chosen[name]
        own = np.unique(first if second is None else np.concatenate([first, second]))
        places = [None if part is None else np.searchsorted(own, part) for part in chosen[name]]
        region = region_of(chrom, pos, own, max(LEAST_REGION, min(MOST_REGION, CHUNK // n)))
        try:
            found = explain_set(tests, read(own), tuple(places), read(region))
        except UserError:
            return (float("nan"),) * 3
        return found.conditional, len(found.given), found.untyped

    together = int(
        np.clip(MOST_TOGETHER // (8 * MATRICES * min(CHUNK, n * MOST_REGION)), 1, threads)
    )
    found = dict(zip(names, run_tasks(explain, [(name,) for name in names], together), strict=True))
    values = np.array([found.get(name, (np.nan,) * 3) for name in table["set"]]).reshape(-1, 3)
    return table.assign(
        p_conditional=np.fmax(values[:, 0], np.where(np.isnan(values[:, 0]), np.nan, table["p"])),
        given=pd.array(values[:, 1], "Int64"),
        p_untyped=values[:, 2],
    )


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
