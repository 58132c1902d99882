"""LD of each population by itself: its decay with distance, and between contigs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.dosage_r2 import dosage_pairs, dosage_r2
from ..cohort.samples import UNKNOWN
from ..cohort.site_alleles import read_cohorts
from ..cohort.site_planes import PlanesReader, read_site_planes
from ..engine.backend import Backend
from ..engine.site_pairs import BLOCK_SITES, band_pairs, called_samples, moments
from ..engine.terms import Planes
from ..io.layers import Reader
from ..io.sites import contig_runs
from .ld import UNIT, Decay, r2_matrix

#: Populations of fewer founders have no row: by chance alone r2 is above 0.1 in them.
LEAST_SAMPLES = 10
#: Lowest frequency of the rarer allele in the population: r2 with rare sites is low.
LEAST_FREQUENCY = 0.05
#: Sites that are compared between contigs, evenly spaced along the panel.
SPACED_SITES = 512
#: Most runs of BLOCK_SITES sites whose pairs are looked at.
MOST_RUNS = 12
COLUMNS = ("population", "samples", "from_bp", "to_bp", "pairs", "mean_r2", "adjusted_r2")


def samples_by_population(
    labels: dict[str, str], names: Sequence[pd.Series], keep: Sequence[np.ndarray]
) -> dict[str, list[np.ndarray]]:
    """Which samples of each cohort are in a population: bool arrays, by its name, sorted.

    Parameters
    ----------
    labels : dict
        Population of each sample; unknown ones are in none.
    names : sequence of Series
        Samples of each cohort.
    keep : sequence of bool arrays
        Those that count.

    Returns
    -------
    dict
        Populations of at least LEAST_SAMPLES samples.
    """
    of_cohorts = [own.map(labels).fillna("NA").to_numpy(object) for own in names]
    found = {}
    for name in sorted({*np.concatenate(of_cohorts).tolist()} - {*UNKNOWN}):
        chosen = [(of == name) & who for of, who in zip(of_cohorts, keep, strict=True)]
        if sum(int(who.sum()) for who in chosen) >= LEAST_SAMPLES:
            found[name] = chosen
    return found


def sampled_runs(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of rows, at most BLOCK_SITES each: all where there are few, else one of every n."""
    pieces = [
        (first, min(first + BLOCK_SITES, end))
        for start, end in runs
        for first in range(start, end, BLOCK_SITES)
    ]
    return pieces[:: max(1, -(-len(pieces) // MOST_RUNS))]


def frequent_sites(planes: Planes) -> np.ndarray:
    """Rows of variant-major planes whose rarer allele has at least LEAST_FREQUENCY."""
    alleles = 2 * called_samples(planes)
    alt = moments(planes)[0]
    return np.flatnonzero(
        np.minimum(alt, alleles - alt) >= np.maximum(LEAST_FREQUENCY * alleles, 1)
    )


def decay_within(
    read: PlanesReader,
    pos: np.ndarray,
    ends: np.ndarray,
    runs: Sequence[tuple[int, int]],
    backend: Backend,
    read_alleles: Reader | None = None,
) -> Decay:
    """Mean r2 by distance of sites that are common among the samples of a reader.

    Parameters
    ----------
    read : PlanesReader
        Of one population.
    pos : int64 array, (n_sites,)
        Positions of the panel's sites.
    ends : int64 array, (n_sites,)
        Ends of the windows of all sites (`ld.window_ends`).
    runs : sequence of (first, end)
        Rows of each contig.
    read_alleles : Reader, optional
        Of polyploids, whose alleles are correlated.
    """
    decay = Decay()
    for first, last in sampled_runs(runs):
        top = max(last, int(ends[first:last].max()))
        planes = read(first, top)
        rows = frequent_sites(planes)
        place = pos[first:top][rows]
        # Only sites of the run have partners; those after it are partners alone.
        mine = int(np.searchsorted(rows, last - first))
        own = np.arange(1, len(rows) + 1)
        own[:mine] = np.searchsorted(rows, ends[first:last][rows[:mine]] - first)
        chosen = Planes(np.ascontiguousarray(planes.words[rows]), planes.n_sites)
        found = (
            band_pairs(backend, chosen, own)
            if read_alleles is None
            else dosage_pairs(read_alleles(first, top)[rows], own, backend.threads)
        )
        for i, j, r2 in found:
            decay.add(place[j] - place[i], r2)
    return decay


def between_contigs(
    read: PlanesReader,
    chrom: np.ndarray,
    backend: Backend,
    alleles_at: Callable[[np.ndarray], np.ndarray] | None = None,
) -> tuple[int, float]:
    """Pairs of common sites of different contigs, and their mean r2 (NaN without pairs).

    `alleles_at`: of polyploids, their alleles at some rows of the panel.
    """
    spaced = np.unique(np.linspace(0, len(chrom) - 1, min(len(chrom), SPACED_SITES)).astype(int))
    planes = read(spaced)
    rows = frequent_sites(planes)
    if alleles_at is None:
        r2 = r2_matrix(Planes(np.ascontiguousarray(planes.words[rows]), planes.n_sites), backend)
    else:
        alleles = alleles_at(spaced)[rows]
        r2 = dosage_r2(alleles, alleles, backend.threads)
    apart = chrom[spaced[rows]]
    i, j = np.triu_indices(len(rows), 1)
    found = r2[i, j][(apart[i] != apart[j]) & np.isfinite(r2[i, j])]
    units = np.rint(found / UNIT).sum()  # exact: the order does not matter
    return len(found), units * UNIT / len(found) if len(found) else np.nan


def ld_by_population(
    prefixes: Sequence[Path],
    groups: dict[str, list[np.ndarray]],
    sites: pd.DataFrame,
    ends: np.ndarray,
    backend: Backend,
    layered: bool = False,
) -> pd.DataFrame:
    """LD of each population: the table `compare/ld_populations.tsv`.

    r2 is the squared correlation of genotypes at sites that are common in the population
    (LEAST_FREQUENCY), so that populations can be compared. Of long panels, runs of sites are taken.

    Parameters
    ----------
    prefixes : sequence of Path
        Stems of the founder cohorts' genotypes on the panel.
    groups : dict
        From `samples_by_population`.
    sites : DataFrame
        The panel: `chrom`, `pos`.
    ends : int64 array, (n_sites,)
        From `ld.window_ends`.
    layered : bool
        Samples are polyploids (`io.layers`).

    Returns
    -------
    DataFrame
        `population`, `samples`; `from_bp`, `to_bp`: bounds of a distance, NA in the last row,
        between contigs; `pairs` of sites, `mean_r2`, and `adjusted_r2` (Ezekiel 1930): r2 less what
        sites without LD have, 1 / (samples - 1) without missing calls.
    """
    chrom = sites.chrom.to_numpy()
    runs = contig_runs(chrom)
    tables = [pd.DataFrame(columns=list(COLUMNS))]
    for name, keep in groups.items():
        read = read_site_planes(list(prefixes), keep, backend.threads)
        alleles, alleles_at = None, None
        if layered:
            alleles = read_cohorts(list(prefixes), None, keep)[0]
            alleles_at = partial(_alleles_at, list(prefixes), keep)
        decay = decay_within(read, sites.pos.to_numpy(), ends, runs, backend, alleles)
        apart = between_contigs(read, chrom, backend, alleles_at)
        tables.append(_rows(name, sum(int(who.sum()) for who in keep), decay, apart))
    return pd.concat([table for table in tables if len(table)] or tables, ignore_index=True)


def _alleles_at(prefixes: list[Path], keep: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Alleles of the samples of `keep` at some rows of the panel."""
    return read_cohorts(prefixes, rows, keep)[0](0, len(rows))


def _rows(name: str, n_samples: int, decay: Decay, apart: tuple[int, float]) -> pd.DataFrame:
    """Rows of one population."""
    table = decay.table().astype({"from_bp": "Int64", "to_bp": "Int64"})
    if apart[0]:
        last = {"from_bp": [pd.NA], "to_bp": [pd.NA], "pairs": [apart[0]], "mean_r2": [apart[1]]}
        table = pd.concat([table, pd.DataFrame(last).astype(table.dtypes)], ignore_index=True)
    chance = 1 / (n_samples - 1)
    table["adjusted_r2"] = (table.mean_r2 - chance) / (1 - chance)
    return table.assign(population=name, samples=n_samples)[list(COLUMNS)]
