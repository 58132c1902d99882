"""Which sites of a panel are read for identity by descent of a study's haploid samples.

The model is that of `ibd.haploid`. Its sites must not predict each other: neighbours in linkage
disequilibrium look like old common ancestors. So the founders' genotypes choose sites with little
of it, once; a newcomer changes none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..cohort.planes import load_planes
from ..cohort.prune import pruned
from ..cohort.site_planes import site_planes
from ..core.files import write_json
from ..core.tables import write_npz
from ..engine.backend import Backend
from ..engine.terms import Planes
from ..io.sites import contig_runs
from ..relatives.identity import genotypes_of
from .definition import LD_CM, MOST_R2, SegmentLimits
from .genome import apart_contigs, map_positions, spread_founders
from .haploid import allele_ratios
from .windows import FEWEST_SAMPLES, GeneticSites

log = logging.getLogger(__name__)

#: LOD that the shortest wanted segment must reach on average. A chance LOD of L has at most the
#: probability 10**-L, and a genome has some hundred places.
LEAST_LOD = 5.0


def prepare_haploids(
    folders: Sequence[Path],
    panel: Path,
    out: Path,
    summary: Path,
    backend: Backend,
    *,
    limits: SegmentLimits,
    genetic_map: str,
) -> dict[str, Any]:
    """Write genetic positions of a panel and the sites that the model reads.

    Parameters
    ----------
    folders, panel, out, summary, genetic_map
        As in `genome.prepare_genome`.
    limits : SegmentLimits
        `min_cm`, `min_lod` and `error_rate` are used.

    Returns
    -------
    dict
        Content of `summary`. If segments of `min_cm` cannot be told on these sites, no site is
        used, so that no segment is found, and `not_searched` says why.
    """
    table, _ = load_panel(panel)
    cm = map_positions(genetic_map, table)
    if cm is None:
        cm = table.pos.to_numpy(np.float64) / 1e6
    af = table.af.to_numpy(np.float64)
    chrom, pos = table.chrom.to_numpy(), table.pos.to_numpy(np.int64)
    left_out = apart_contigs(table.chrom, [])
    used = unlinked_sites(spread_founders(folders), chrom, cm, backend) & ~left_out
    sites = GeneticSites(chrom, pos, cm, used)
    lod, reason = _lod_or_reason(sites, af, limits)
    if reason:
        log.warning("no segments are sought; %s", reason)
        used[:] = False
    n_founders = sum(load_planes(folder)[0].n_samples for folder in folders)
    about = {
        "ploidy": 1,
        "map": genetic_map or None,
        "not_searched": reason,
        "founders": n_founders,
        "sites": len(table),
        "used": int(used.sum()),
        "genome_cm": float(sites.lengths()[~left_out[[one for one, _ in sites.contigs]]].sum()),
        "lod_of_shortest": lod,
        "haploid_contigs": sorted(set(table.chrom[left_out])),
        "limits": asdict(limits),
        "window_sites": 0,
    }
    if n_founders < FEWEST_SAMPLES and not reason:
        log.warning(
            "ibd: ALT frequencies come from %d founders; with fewer than %d, what two share looks "
            "common, so make more samples of their population founders",
            *(n_founders, FEWEST_SAMPLES),
        )
    write_npz(out, cm=cm, used=used)
    write_json(summary, about)
    return about


def unlinked_sites(
    founders: Planes, chrom: np.ndarray, cm: np.ndarray, backend: Backend
) -> np.ndarray:
    """Choose sites of which no two within LD_CM have an r2 above MOST_R2: bool (n_sites,).

    Parameters
    ----------
    founders : Planes
        Of samples, two equal alleles each.
    chrom, cm : arrays, (n_sites,)
        Contig and genetic position; those of a contig are consecutive and do not fall.
    """
    kept = np.zeros(len(cm), bool)
    for first, last in contig_runs(chrom):
        kept[first:last] = ~_in_ld(founders, cm, first, last, backend)
    return kept


def _in_ld(founders: Planes, cm: np.ndarray, first: int, last: int, backend: Backend) -> np.ndarray:
    """Sites of a contig that are left out."""
    word = first // 64
    words = np.ascontiguousarray(founders.words[:, :, word : -(-last // 64)])
    here = genotypes_of(Planes(words, last - 64 * word), np.arange(len(words)))
    here = here[:, first - 64 * word :]
    # Pruning measures windows in whole numbers: here millionths of a cM.
    places = pd.DataFrame({"chrom": 0, "pos": np.round(cm[first:last] * 1e6).astype(np.int64)})
    window = (LD_CM * 1e6, "bp", 1, MOST_R2)
    return pruned(site_planes(np.ascontiguousarray(here.T)), places, window, backend)


def haploid_lod(af: np.ndarray, error_rate: float) -> np.ndarray:
    """Mean log10 ratio that a site adds between two samples that share it: float64 (n_sites,)."""
    alt, right, wrong = np.nan_to_num(af, nan=0.0), 1 - error_rate, error_rate
    seen = [
        right**2 * (1 - alt) + wrong**2 * alt,
        2 * right * wrong * np.ones(len(alt)),
        right**2 * alt + wrong**2 * (1 - alt),
    ]
    return np.sum(np.stack(seen, axis=1) * np.log10(allele_ratios(af, error_rate)), axis=1)


def _lod_or_reason(
    sites: GeneticSites, af: np.ndarray, limits: SegmentLimits
) -> tuple[float | None, str]:
    """LOD of the shortest segment, and an empty reason; or why no segments can be sought."""
    used, way = int(sites.used.sum()), "or remove ibd from compare.analyses."
    if not used:
        return None, f"ibd: no contig of the panel can be searched; add sites, {way}"
    lengths = sites.lengths()
    longest = float(lengths.max())
    if longest < limits.min_cm:
        return None, (
            f"ibd: the panel's sites lie on contigs of at most {longest:.3g} cM, less than "
            f"ibd.min_cm = {limits.min_cm:g}, so no segment can be found; lower ibd.min_cm, or "
            f"give a genetic_map or species, {way}"
        )
    whole = float(haploid_lod(af[sites.used], limits.error_rate).sum())
    lod = whole / float(lengths.sum()) * limits.min_cm
    if lod < LEAST_LOD:
        return None, (
            f"ibd: {used / lengths.sum():.3g} sites a centimorgan are without linkage "
            f"disequilibrium, on which a segment of ibd.min_cm = {limits.min_cm:g} cM reaches a "
            f"LOD of {lod:.2g}; {LEAST_LOD:g} are needed, at which chance makes no segments: raise "
            f"ibd.min_cm to {limits.min_cm * LEAST_LOD / max(lod, 1e-9):.3g}, loosen "
            f"panel.min_maf, {way}"
        )
    return lod, ""
