"""What of the panel the search for segments reads: made once, from the founders alone.

Left out are contigs that may be haploid, regions of long-range linkage disequilibrium, and windows
in which founders share far more often than elsewhere: there common haplotypes look like recent
ancestors. A newcomer changes none of it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.long_range_ld import in_regions
from ..cohort.panel import load_panel
from ..cohort.planes import load_planes
from ..core.errors import UserError
from ..core.files import read_json, write_json
from ..core.tables import write_npz
from ..engine.backend import Backend
from ..engine.terms import Planes
from ..io.sites import canonical_contig
from .definition import SegmentLimits
from .genotype_errors import ErrorRate, limits_before, measure_errors, tolerance_of
from .segments import SearchGenome, segments_between
from .windows import FEWEST_SAMPLES, GeneticSites, genetic_sites, require_density

#: Windows in which founders share more than so many times the median are left out.
MOST_SHARING = 10.0

log = logging.getLogger(__name__)

#: Contigs without recombination or haploid in some people, beside the X of `contigs.x`.
HAPLOID = frozenset({"Y", "M", "MT", "W", "Z"})
#: Founders among whom an excess of sharing is sought, spread evenly.
MOST_FOUNDERS = 1000
#: Segments over a window below which nothing is an excess.
FEWEST_SEGMENTS = 10


def prepare_genome(
    folders: Sequence[Path],
    panel: Path,
    out: Path,
    summary: Path,
    backend: Backend,
    *,
    limits: SegmentLimits,
    genetic_map: str,
    x_contigs: Sequence[str],
    regions: list[tuple[str, int, int, str]],
    max_sharing: float = MOST_SHARING,
    measure: bool = False,
) -> dict[str, Any]:
    """Write genetic positions and used sites of a panel, what was left out, and the limits.

    Parameters
    ----------
    folders : list of Path
        Folders of the founders' `planes.npy`.
    panel : Path
        `panel/sites.tsv`.
    out, summary : Path
        `ibd/genome.npz` (`cm`, `used`) and `ibd/genome.json`.
    genetic_map : str
        `genetic_map`; without, one centimorgan a megabase.
    x_contigs : list of str
        `contigs.x`.
    regions : list
        Regions that are left out (`long_range_ld.regions_of`).
    max_sharing : float
        Windows in which founders share more than so many times the median are left out; 0: none.
    measure : bool
        Measure the error rate inside the founders' long segments (`genotype_errors`); that of
        `limits` is taken where they have too few.

    Returns
    -------
    dict
        Content of `summary`.

    Where every contig is left out, or the panel is too sparse (`windows.require_density`), no site
    is used, so that no segment is found; `not_searched` of `summary` says why.
    """
    table, _ = load_panel(panel)
    cm = map_positions(genetic_map, table)
    af = table.af.to_numpy(np.float64)
    haploid = apart_contigs(table.chrom, x_contigs)
    in_region = in_regions(table, regions) & ~haploid
    left_out = haploid | in_region
    sites = genetic_sites(table, cm, left_out)
    founders = functools.cache(partial(spread_founders, folders))  # read if they are needed
    errors = ErrorRate(None, 0, 0, 0)
    lod, reason = _lod_or_reason(sites, af, haploid, limits)
    if measure and not reason:
        errors = founders_errors(founders(), sites, af, limits, backend)
    if errors.rate:
        tolerance = tolerance_of(sites, af, limits, errors.rate)
        limits = replace(limits, error_rate=errors.rate, tolerance=tolerance)
        lod, reason = _lod_or_reason(sites, af, haploid, limits)
    if reason:
        log.warning("no segments are sought; %s", reason)
        left_out[:] = True
        sites = genetic_sites(table, cm, left_out)
    genome = SearchGenome.of(sites, af, limits)
    excess = np.zeros(len(genome.windows), bool)
    if max_sharing and not reason:
        excess = _excess(founders(), genome, limits, max_sharing, backend)
        windows = genome.windows
        for k in np.flatnonzero(excess):
            left_out[windows.first[k] : windows.first[k] + windows.sites[k]] = True
        sites = genetic_sites(table, cm, left_out)
    n_founders = sum(load_planes(folder)[0].n_samples for folder in folders)
    if n_founders < FEWEST_SAMPLES and not reason:
        log.warning(
            "ibd: ALT frequencies come from %d founders; with fewer than %d, segments may be "
            "missed, so make more samples of their population founders",
            *(n_founders, FEWEST_SAMPLES),
        )
    about = {
        "map": genetic_map or None,
        "not_searched": reason,
        "founders": n_founders,
        "sites": len(table),
        "used": int(sites.used.sum()),
        "genome_cm": float(sites.lengths().sum()),
        "window_sites": int(genome.windows.sites.max()),
        "lod_of_shortest": lod,
        "haploid_contigs": sorted(set(table.chrom[haploid])),
        "sites_in_regions": int(in_region.sum()),
        "shared_too_often": _stretches(table, genome, excess),
        "errors": errors._asdict() if measure else None,
        "limits": asdict(limits),
    }
    write_npz(out, cm=sites.cm, used=sites.used)
    write_json(summary, about)
    return about


def map_positions(genetic_map: str, sites: pd.DataFrame) -> np.ndarray | None:
    """Genetic positions of sites by `genetic_map`, float64 (n_sites,); None without one."""
    if not genetic_map:
        return None
    from ..cohort.genetic_maps import read_map

    return read_map(Path(genetic_map), sites)


def apart_contigs(chrom: pd.Series, x_contigs: Sequence[str]) -> np.ndarray:
    """Sites on contigs that do not recombine, or are haploid in some people: bool (n_sites,)."""
    apart = HAPLOID | {canonical_contig(name) for name in x_contigs}
    return chrom.map(canonical_contig).isin(apart).to_numpy()


def _lod_or_reason(
    sites: GeneticSites, af: np.ndarray, haploid: np.ndarray, limits: SegmentLimits
) -> tuple[float | None, str]:
    """LOD of the shortest segment, and an empty reason; or why no segments can be sought."""
    try:
        if haploid.all():
            raise UserError(
                "ibd: all contigs of the panel are sex chromosomes or mitochondrial, which are "
                "left out; remove ibd from compare.analyses."
            )
        return require_density(sites, af, limits.error_rate, limits.min_cm), ""
    except UserError as error:
        return None, str(error)


def founders_errors(
    founders: Planes, sites: GeneticSites, af: np.ndarray, limits: SegmentLimits, backend: Backend
) -> ErrorRate:
    """The error rate inside the segments of founders, the same from every backend."""
    before = limits_before(limits)
    found = segments_between(founders, None, SearchGenome.of(sites, af, before), before, backend)
    return measure_errors(founders, found, sites, af)


def load_limits(path: Path) -> SegmentLimits:
    """The limits with which `prepare_genome` wrote this genome."""
    about = read_json(path.with_suffix(".json"))
    return replace(SegmentLimits(**about["limits"]), window=about["window_sites"])


def load_genome(path: Path, panel: Path) -> SearchGenome:
    """The genome that `prepare_genome` wrote for a panel."""
    sites, table = load_sites(path, panel)
    return SearchGenome.of(sites, table.af.to_numpy(np.float64), load_limits(path))


def load_sites(path: Path, panel: Path) -> tuple[GeneticSites, pd.DataFrame]:
    """Genetic positions of a panel's sites (`genome.npz`), and the panel."""
    table, _ = load_panel(panel)
    with np.load(path) as arrays:
        cm, used = arrays["cm"], arrays["used"]
    if len(cm) != len(table):
        raise UserError(f"{path} was made for another panel; delete it and run again.")
    return GeneticSites(table.chrom.to_numpy(), table.pos.to_numpy(np.int64), cm, used), table


def spread_founders(folders: Sequence[Path]) -> Planes:
    """Planes of at most MOST_FOUNDERS founders, spread evenly over all cohorts."""
    planes = [load_planes(folder)[0] for folder in folders]
    places = [(k, row) for k, one in enumerate(planes) for row in range(one.n_samples)]
    chosen = np.linspace(0, len(places) - 1, min(len(places), MOST_FOUNDERS)).round().astype(int)
    parts = []
    for k, one in enumerate(planes):
        rows = [places[place][1] for place in chosen if places[place][0] == k]
        parts.append(Planes(np.asarray(one.words[rows]), one.n_sites))
    if not all(part.complete for part in parts):
        parts = [part.with_mask() for part in parts]
    return Planes(np.concatenate([part.words for part in parts]), planes[0].n_sites)


def _excess(
    founders: Planes, genome: SearchGenome, limits: SegmentLimits, most: float, backend: Backend
) -> np.ndarray:
    """Windows over which more segments lie than `most` times the median: bool (n_windows,)."""
    found = segments_between(founders, None, genome, limits, backend)
    one = found.shared == 1
    windows = genome.windows
    ends = np.zeros(len(windows) + 1, np.int64)
    np.add.at(ends, np.searchsorted(windows.first, found.first[one], "right") - 1, 1)
    np.add.at(ends, np.searchsorted(windows.first, found.last[one], "right"), -1)
    over = np.cumsum(ends)[:-1]
    usual = float(np.median(over[~windows.masked])) if (~windows.masked).any() else 0.0
    return over > max(most * usual, FEWEST_SEGMENTS)


def _stretches(table: pd.DataFrame, genome: SearchGenome, excess: np.ndarray) -> list[list]:
    """Neighbouring windows as [contig, first and last position]."""
    windows, pos = genome.windows, table.pos.to_numpy(np.int64)
    out: list[list] = []
    before = -2
    for k in np.flatnonzero(excess).tolist():
        first = int(windows.first[k])
        last = int(pos[first + windows.sites[k] - 1])
        if k == before + 1 and windows.contig[k] == windows.contig[before]:
            out[-1][2] = last
        else:
            out.append([str(table.chrom.iloc[first]), int(pos[first]), last])
        before = k
    return out
