"""Tables of haplotype statistics of populations: of sites, of pairs of populations, of windows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..cohort.paint_batches import unpacked
from ..core.threads import run_tasks
from ..io.frozen_haplotypes import HaplotypePart
from .sweeps import (
    WINDOW,
    compare_populations,
    score_sites,
    standardised,
    window_haplotypes,
)

log = logging.getLogger("popdesic")

#: Fewest samples of a population.
FEWEST_SAMPLES = 5
#: Absolute standardised scores from which a site counts as extreme (Voight et al. 2006).
EXTREME = 2.0
#: Columns of the tables of sites, of pairs (before the pairs), and of windows.
PLACE = ["chrom", "pos", "ref", "alt"]
COLUMNS = (
    ["population", *PLACE, "frequency", "ihs", "nsl"],
    PLACE,
    [
        *("population", "chrom", "start", "end", "sites", "h1", "h12", "h123", "h2_h1"),
        *("extreme_ihs", "extreme_nsl"),
    ],
)


class SweepTables(NamedTuple):
    """What phased haplotypes say of sweeps: tables with COLUMNS.

    That of pairs has XP-EHH of each pair besides, if pairs are compared.
    """

    sites: pd.DataFrame
    pairs: pd.DataFrame
    windows: pd.DataFrame


def sweep_tables(
    parts: Sequence[HaplotypePart],
    names: list[str],
    label_of: np.ndarray,
    threads: int,
    *,
    compare: bool = True,
) -> SweepTables:
    """Standardised scores of populations at the sites of some parts.

    Parameters
    ----------
    names : list of str
        Populations.
    label_of : int array, (n_samples,)
        Number of the population of each sample; -1: none.
    compare : bool
        Whether pairs of populations are compared.
    """
    compare = compare and len(names) > 1
    found = [_score_part(part, names, label_of, threads, compare) for part in parts if names]
    if not found:
        return SweepTables(*(pd.DataFrame(columns=each) for each in COLUMNS))
    sites, pairs, windows = (
        pd.concat(tables, ignore_index=True) for tables in zip(*found, strict=True)
    )
    scores = _standardise(sites, names)
    _count_extremes(windows, scores)
    for name in pairs.columns[len(PLACE) :]:
        pairs[name] = standardised(pairs[name].to_numpy(np.float64))
    return SweepTables(scores, pairs, windows)


def _score_part(
    part: HaplotypePart, names: list[str], label_of: np.ndarray, threads: int, compare: bool
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Sites, pairs and windows of a part, not standardised."""
    log.info("%s: %d sites", part.contig, len(part.pos))
    pos, cm, of_row = np.array(part.pos), np.array(part.cm), label_of[part.owner]
    bits = np.asarray(part.haplotypes)
    alleles = [
        np.ascontiguousarray(unpacked(bits, np.flatnonzero(of_row == k)).T).view(np.uint8)
        for k in range(len(names))
    ]
    places = pd.DataFrame({"chrom": part.contig, "pos": pos})
    for name in ("ref", "alt"):
        places[name] = np.asarray(getattr(part, name)).view("S1").astype(str)
    tables, of_windows = [], []
    each = run_tasks(
        lambda one: (score_sites(one, cm, pos), window_haplotypes(one)),
        [(one,) for one in alleles],
        threads,
    )
    for name, (scores, windows) in zip(names, each, strict=True):
        table = places.iloc[scores.sites].reset_index(drop=True)
        table.insert(0, "population", name)
        tables.append(table.assign(frequency=scores.frequency, ihs=scores.ihs, nsl=scores.nsl))
        start, end = pos[windows.first], pos[windows.last]
        about = {"population": name, "chrom": part.contig, "start": start, "end": end}
        values = dict(zip(windows._fields[2:], windows[2:], strict=True))
        of_windows.append(pd.DataFrame(about | {"sites": WINDOW} | values))
    compared = places.iloc[:0]
    if compare:
        rows, scores = compare_populations(alleles, cm, pos, threads)
        titles = [f"{first}/{second}" for first, second in combinations(names, 2)]
        compared = places.iloc[rows].reset_index(drop=True)
        compared = pd.concat([compared, pd.DataFrame(scores, columns=titles)], axis=1)
    return (
        pd.concat(tables, ignore_index=True),
        compared,
        pd.concat(of_windows, ignore_index=True),
    )


def _standardise(scores: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The table of sites by population, its scores standardised by ALT frequency."""
    tables = []
    for name in names:
        table = scores[scores.population == name].reset_index(drop=True)
        for column in ("ihs", "nsl"):
            values = table[column].to_numpy(np.float64)
            table[column] = standardised(values, table.frequency.to_numpy())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _count_extremes(windows: pd.DataFrame, scores: pd.DataFrame) -> None:
    """Add the shares of sites with extreme scores to windows; NA where none has a score."""
    groups = dict(list(scores.groupby(["population", "chrom"], sort=False)))
    shares = np.full((len(windows), 2), np.nan)
    for row, window in enumerate(windows.itertuples()):
        if (table := groups.get((window.population, window.chrom))) is None:
            continue
        pos = table.pos.to_numpy()
        first, last = np.searchsorted(pos, [window.start, window.end + 1])
        for k, column in enumerate(("ihs", "nsl")):
            values = table[column].to_numpy()[first:last]
            known = values[np.isfinite(values)]
            if len(known):
                shares[row, k] = (np.abs(known) > EXTREME).mean()
    windows["extreme_ihs"], windows["extreme_nsl"] = shares.T
