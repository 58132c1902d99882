"""The stage: tables of places and edges, and a summary of isolation by distance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.samples import describe_samples
from ..core.files import write_json
from ..core.tables import read_table, write_table
from ..distance.tiles import within_panel
from ..relatives.kinship import relatives_but_one
from .barriers import Deviations, find_barriers
from .coordinates import LEAST_PLACES, LEAST_TESTED, PERMUTATIONS
from .genetic import GeneticDistances, genetic_distances, place_sums
from .isolation import rank_mantel, slope
from .places import Places, find_places, gabriel_edges

#: Chance of any false barrier or corridor in a study without barriers.
ERROR_RATE = 0.05


def measure_geography(
    distances: Path,
    sheet: Path,
    partition: Path | None,
    tiles: list[Path],
    *,
    founders: list[str],
    n_sites: int,
    min_called: int,
    permutations: int = PERMUTATIONS,
    seed: int,
    out: Mapping[str, Path],
) -> dict[str, Any]:
    """Measure isolation by distance and barriers between the places of a study.

    Parameters
    ----------
    distances : Path
        `results/distance`: `squared.npy`, `called.npy`, `samples.tsv`.
    sheet : Path
        The sample sheet, with coordinates.
    partition : Path, optional
        `communities/partition.tsv`.
    tiles : list of Path
        Close pairs by kinship. Duplicates and first-degree relatives but one are left out, because
        a family of one place would pass for a population. Without tiles nobody is left out.
    founders : list of str
        Cohorts that define the panel.
    n_sites : int
        Sites of the panel.
    min_called : int
        Pairs of people with fewer jointly called sites (`tiles.within_panel`) are left out.
    permutations : int
        Arrangements of the places, and landscapes drawn without barriers.
    out : dict
        Paths of ``places``, ``edges``, ``pairs`` (tables) and ``summary`` (JSON).

    Returns
    -------
    dict
        The summary. `missing` tells in one sentence why something was not measured.
    """
    samples = describe_samples(distances / "samples.tsv", sheet)
    left_out = relatives_but_one(tiles)
    used = ~samples["sample"].isin(left_out)
    # Places are those of all samples; people who are left out do not count in genetic distances.
    places = find_places(samples)
    if places is None:
        places = Places("plane", np.empty((0, 2)), np.full(len(samples), -1, np.int64))
    home = np.where(used, places.home, -1)
    n = len(places)
    sums, pairs = place_sums(distances, home, n, within_panel(min_called, n_sites))
    genetic = genetic_distances(sums, pairs)
    ground = places.distances()
    communities = _communities(partition, samples)
    table = _places_table(places, samples, home, genetic, founders, communities)
    rng = np.random.default_rng(seed)
    about: dict[str, Any] = {
        "system": places.system,
        "unit": places.unit,
        "places": n,
        "samples": int((places.home >= 0).sum()),
        "samples_without_place": int((places.home < 0).sum()),
        "relatives_left_out": int((~used & (places.home >= 0)).sum()),
        "relatives_known": bool(tiles),
        "places_of_newcomers_only": int(((table.founders == 0) & (table.samples > 0)).sum()),
        "cell": places.cell,
        "measure": "F_ST / (1 - F_ST)" if genetic.linearised else "mean squared difference a site",
        "seed": seed,
        "communities": _number_of(communities),
        "missing": "",
    }
    measured = np.flatnonzero(table.used.to_numpy() > 0)
    chosen = np.ix_(measured, measured)
    values, differences = genetic.values[chosen], genetic.differences[chosen]
    ground = ground[chosen]
    major = table.community.to_numpy()[measured] if "community" in table else None
    edges = np.empty((0, 2), np.int64)
    deviations = None
    if len(measured) < LEAST_PLACES:
        about["missing"] = (
            f"Samples of {len(measured)} places are left after quality control, and isolation by "
            f"distance needs {LEAST_PLACES}."
        )
    else:
        about |= measure_isolation(
            *(distances, home, places, communities),
            min_called=within_panel(min_called, n_sites),
            permutations=permutations,
            seed=seed,
        )
        edges = gabriel_edges(places.vectors()[measured])
        sizes = table.used.to_numpy()[measured]
        if not genetic.linearised:
            about["missing"] = "No place has two samples, so F_ST and barriers are not estimated."
        elif not np.isfinite(values).all():
            about["missing"] = (
                "Some places share no pair of samples with enough jointly called sites "
                "(distance.min_called), so barriers are not estimated."
            )
        else:
            deviations = find_barriers(
                differences,
                ground,
                sizes,
                edges,
                draws=permutations,
                error_rate=ERROR_RATE,
                rng=rng,
            )
            if deviations is None:
                about["missing"] = (
                    "There are too few edges between places, or they do not vary, so barriers are "
                    "not estimated."
                )
    about |= _barrier_counts(deviations, len(edges))
    numbers = table.place.to_numpy()[measured]
    write_table(out["places"], table)
    write_table(out["edges"], _edges_table(edges, numbers, differences, ground, deviations))
    write_table(out["pairs"], _pairs_table(numbers, values, ground, major))
    write_json(out["summary"], about)
    return about


def measure_isolation(
    distances: Path,
    home: np.ndarray,
    places: Places,
    communities: np.ndarray | None,
    *,
    min_called: int,
    permutations: int,
    seed: int,
) -> dict[str, Any]:
    """Isolation by distance over all pairs of places, and within communities.

    Within communities the distance of two places is that between samples of one community, so a
    place counts in every community of which samples live there: neither groups that live apart
    nor shares of groups that differ by place make a difference.

    Parameters
    ----------
    distances : Path
        `results/distance`.
    home : int64 array, (n_samples,)
        Place; -1: left out.
    communities : int64 array (n_samples,), optional
        0: none.

    Returns
    -------
    dict
        `all` and, if there are at least two communities, `within`: `isolation`, with `places` and
        `samples`, the number of samples of each place (of `all`).
    """
    ground = places.distances()

    def stratum(own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = np.unique(own[own >= 0])
        compact = np.where(own >= 0, np.searchsorted(there, own), -1)
        values = genetic_distances(*place_sums(distances, compact, len(there), min_called)).values
        return values, ground[np.ix_(there, there)]

    equal = equally_many(home)
    whole = stratum(equal)
    tested = permutations if len(whole[0]) >= LEAST_TESTED else 0
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {"all": isolation([whole], permutations=tested, rng=rng)}
    if found["all"]:
        samples = int(np.bincount(equal[equal >= 0]).max())
        found["all"] |= {"places": len(whole[0]), "samples": samples}
    if (_number_of(communities) or 0) > 1:
        numbers = np.unique(communities[communities > 0])
        members = [np.where(communities == number, home, -1) for number in numbers]
        strata = [stratum(equally_many(own)) for own in members]
        found["within"] = isolation(strata, permutations=tested, rng=rng)
    return found


def equally_many(home: np.ndarray) -> np.ndarray:
    """The first samples of each place, equally many; places that have fewer are left out.

    Distances between few samples scatter more. Where numbers of samples grow along a line, places
    cannot be exchanged: of 800 draws without isolation, 0.09 had a p of at most 0.05 (0.05 with
    equal numbers). The number is that with the most pairs of places times samples, of those that
    leave enough places for a test.
    """
    places, own, sizes = np.unique(home[home >= 0], return_inverse=True, return_counts=True)
    if not len(places):
        return home

    def worth(number: int) -> int:
        left = int((sizes >= number).sum())
        return left * (left - 1) * number

    limit = np.sort(sizes)[-min(len(sizes), LEAST_TESTED)]
    number = max(np.unique(sizes[sizes <= limit]).tolist(), key=lambda size: (worth(size), size))
    order = np.argsort(own, kind="stable")
    rank = np.empty(len(own), np.int64)
    rank[order] = np.arange(len(own)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    equal = home.copy()
    equal[np.flatnonzero(home >= 0)[(rank >= number) | (sizes[own] < number)]] = -1
    return equal


def isolation(
    strata: list[tuple[np.ndarray, np.ndarray]], *, permutations: int, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Rank correlation and slopes of genetic distances and distances on the ground.

    Parameters
    ----------
    strata : list of pairs of float64 arrays (n, n)
        As in `rank_mantel`.

    Returns
    -------
    dict or None
        `rank_mantel` with `slope_log` and `slope_linear` (`isolation.slope` on the natural
        logarithm of distance and on distance, of all strata together).
    """
    from scipy.linalg import block_diag

    found = rank_mantel(strata, permutations=permutations, rng=rng) if strata else None
    if found is None:
        return None
    genetic, ground = (block_diag(*(stratum[k] for stratum in strata)) for k in range(2))
    stratum = np.repeat(np.arange(len(strata)), [len(values) for values, _ in strata])
    genetic[stratum[:, None] != stratum] = np.nan
    with np.errstate(divide="ignore"):
        logarithm = np.log(ground)
    return found | {"slope_log": slope(genetic, logarithm), "slope_linear": slope(genetic, ground)}


def _communities(partition: Path | None, samples: pd.DataFrame) -> np.ndarray | None:
    """Community of each sample, 0 where it has none; None where communities were not sought."""
    if partition is None:
        return None
    # Read as text: other columns of the partition do not matter here.
    found = read_table(partition).set_index("sample").community
    numbers = pd.to_numeric(samples["sample"].map(found), errors="coerce").fillna(0)
    return numbers.to_numpy(np.int64)


def _number_of(communities: np.ndarray | None) -> int | None:
    return None if communities is None else len(np.unique(communities[communities > 0]))


def _places_table(
    places: Places,
    samples: pd.DataFrame,
    home: np.ndarray,
    genetic: GeneticDistances,
    founders: list[str],
    communities: np.ndarray | None,
) -> pd.DataFrame:
    """`geography/places.tsv`: one row per place, numbered from 1."""
    n = len(places)

    def count(where: np.ndarray) -> np.ndarray:
        return np.bincount(where[where >= 0], minlength=n)

    names = ("latitude", "longitude") if places.system == "sphere" else ("x", "y")
    is_founder = samples.cohort.isin(founders).to_numpy()
    table = pd.DataFrame(
        {
            "place": np.arange(1, n + 1),
            names[0]: places.points[:, 0],
            names[1]: places.points[:, 1],
            "samples": count(places.home),
            "used": count(home),
            "founders": count(np.where(is_founder, places.home, -1)),
            "diversity": genetic.within,
        }
    )
    if communities is not None:
        counts = np.zeros((n, int(communities.max(initial=0)) + 1), np.int64)
        there = home >= 0
        np.add.at(counts, (home[there], communities[there]), 1)
        counts[:, 0] = 0
        best = counts.argmax(axis=1)
        most = counts.max(axis=1)
        # The community of more than half of the place's people; 0 if there is none.
        major = 2 * most > count(home)
        table["community"] = np.where(major, best, 0)
        table["community_share"] = np.where(major, most / np.maximum(count(home), 1), np.nan)
    return table


def _edges_table(
    edges: np.ndarray,
    numbers: np.ndarray,
    values: np.ndarray,
    ground: np.ndarray,
    deviations: Deviations | None,
) -> pd.DataFrame:
    """`geography/edges.tsv`: neighbouring places; p is adjusted for the number of edges."""
    a, b = edges.T
    empty = np.full(len(edges), np.nan)
    return pd.DataFrame(
        {
            "place_a": numbers[a],
            "place_b": numbers[b],
            "distance": ground[a, b],
            "genetic": values[a, b],
            "expected": empty if deviations is None else deviations.expected,
            "score": empty if deviations is None else deviations.scores,
            "p": empty if deviations is None else deviations.p,
            "kind": "NA" if deviations is None else [kind or "none" for kind in deviations.kinds],
        }
    )


def _pairs_table(
    numbers: np.ndarray, values: np.ndarray, ground: np.ndarray, communities: np.ndarray | None
) -> pd.DataFrame:
    """`geography/pairs.tsv`: both distances of every two places."""
    a, b = np.triu_indices(len(numbers), 1)
    table = pd.DataFrame(
        {
            "place_a": numbers[a],
            "place_b": numbers[b],
            "distance": ground[a, b],
            "genetic": values[a, b],
        }
    )
    if communities is not None:
        both = (communities[a] > 0) & (communities[b] > 0)
        same = communities[a] == communities[b]
        table["communities"] = np.where(both, np.where(same, "same", "different"), "NA")
    return table


def _barrier_counts(deviations: Deviations | None, n_edges: int) -> dict[str, Any]:
    if deviations is None:
        return {"edges": n_edges, "barriers": None, "corridors": None, "threshold": None}
    return {
        "edges": n_edges,
        "barriers": deviations.kinds.count("barrier"),
        "corridors": deviations.kinds.count("corridor"),
        "threshold": [round(value, 3) for value in deviations.threshold],
        "error_rate": ERROR_RATE,
    }
