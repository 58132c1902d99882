"""The stage: tables of places and edges, and a summary of isolation by distance."""

from __future__ import annotations

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
from .coordinates import LEAST_PLACES, PERMUTATIONS
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
    places_out: Path,
    edges_out: Path,
    pairs_out: Path,
    summary_out: Path,
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
    places_out, edges_out, pairs_out, summary_out : Path
        `geography/places.tsv`, `edges.tsv`, `pairs.tsv` and `isolation.json`.

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
    table = _places_table(places, samples, home, genetic, founders, partition)
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
        "communities": _number_of_communities(partition),
        "places_without_community": int((table.community == 0).sum()) if partition else None,
        "missing": "",
    }
    measured = np.flatnonzero(table.used.to_numpy() > 0)
    chosen = np.ix_(measured, measured)
    values, differences = genetic.values[chosen], genetic.differences[chosen]
    ground = ground[chosen]
    communities = table.community.to_numpy()[measured] if "community" in table else None
    edges = np.empty((0, 2), np.int64)
    deviations = None
    if len(measured) < LEAST_PLACES:
        about["missing"] = (
            f"Samples of {len(measured)} places are left after quality control, and isolation by "
            f"distance needs {LEAST_PLACES}."
        )
    else:
        about |= isolation(values, ground, communities, permutations=permutations, rng=rng)
        edges = gabriel_edges(places.vectors()[measured])
        sizes = table.used.to_numpy()[measured]
        if not genetic.linearised:
            about["missing"] = "No place has two people, so F_ST and barriers are not estimated."
        elif not np.isfinite(values).all():
            about["missing"] = (
                "Some places share no pair of people with enough jointly called sites "
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
    write_table(places_out, table)
    write_table(edges_out, _edges_table(edges, numbers, differences, ground, deviations))
    write_table(pairs_out, _pairs_table(numbers, values, ground, communities))
    write_json(summary_out, about)
    return about


def isolation(
    genetic: np.ndarray,
    ground: np.ndarray,
    communities: np.ndarray | None,
    *,
    permutations: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Rank correlations and slopes, over all pairs and by community.

    Within and between communities, places are exchanged within their community only: otherwise
    the difference between communities would pass for isolation by distance.

    Returns
    -------
    dict
        `all`, and `within`, `between` if there are at least two communities: each None or
        `rank_mantel` with `slope_log` and `slope_linear` (`isolation.slope` on the natural
        logarithm of distance and on distance).
    """
    n = len(genetic)
    chosen: dict[str, np.ndarray | None] = {"all": None}
    known = None
    if communities is not None and len(np.unique(communities[communities > 0])) > 1:
        # Places without a majority take part in neither; each is a group of its own.
        known = np.where(communities > 0, communities, -1 - np.arange(n))
        same = communities[:, None] == communities[None, :]
        both = (communities[:, None] > 0) & (communities[None, :] > 0)
        chosen |= {"within": same & both, "between": ~same & both}
    found: dict[str, Any] = {}
    with np.errstate(divide="ignore"):
        logarithm = np.log(ground)
    for name, among in chosen.items():
        tested = rank_mantel(
            genetic,
            ground,
            permutations=permutations,
            rng=rng,
            among=among,
            groups=None if among is None else known,
        )
        if tested is not None:
            valid = genetic if among is None else np.where(among, genetic, np.nan)
            tested = tested | {
                "slope_log": slope(valid, logarithm),
                "slope_linear": slope(valid, ground),
            }
        found[name] = tested
    return found


def _number_of_communities(partition: Path | None) -> int | None:
    """Communities of the study; None where they were not sought."""
    if partition is None:
        return None
    return read_table(partition).community.nunique()


def _places_table(
    places: Places,
    samples: pd.DataFrame,
    home: np.ndarray,
    genetic: GeneticDistances,
    founders: list[str],
    partition: Path | None,
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
    if partition is not None:
        # Read as text: other columns of the partition do not matter here.
        found = read_table(partition).set_index("sample").community
        communities = pd.to_numeric(samples["sample"].map(found), errors="coerce").fillna(0)
        counts = np.zeros((n, int(communities.max()) + 1), np.int64)
        there = home >= 0
        np.add.at(counts, (home[there], communities[there].astype(int)), 1)
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
