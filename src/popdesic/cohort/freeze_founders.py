"""Phase a study's founders from each other, and freeze them as the reference that is copied from.

Sites are those of the panel. A founder does not copy from its duplicates. Whoever joins the study
later is phased and imputed from this file as from any reference (`copy_cohort`), and never changes
it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..copying.copying_plan import MOST_FOUNDERS
from ..copying.founders import phase_together
from ..core.errors import UserError
from ..core.random_numbers import lots_of
from ..io.genotypes import MISSING, unpack_bed
from ..io.phased import PhasedSites
from .absent import Absent
from .check_reference import require_founders, require_snps
from .copy_haplotypes import CopyOptions
from .encode import OnPanel
from .haplotype_panel import MapScale, write_haplotypes
from .impute import plan_windows
from .panel import load_panel

log = logging.getLogger("popdesic")

#: Sites, with both alleles in this share or more, at which samples are compared; two that have the
#: same genotypes at this share of them are duplicates.
COMPARED_SITES, COMPARED_MAF, DUPLICATE_SHARE = 2_000, 0.05, 0.97
#: Fewer sites than these tell no duplicates.
LEAST_COMPARED = 100


def freeze_founders(
    raws: Sequence[Path],
    tables: Sequence[Path],
    panel_path: Path,
    out: Path,
    genetic_map: str,
    options: CopyOptions,
    absent: Sequence[Absent],
) -> dict[str, int]:
    """Phase the founders at the panel's SNPs, and freeze their haplotypes.

    Parameters
    ----------
    raws, tables, absent
        Of each founder cohort, as in `encode.encode_cohort`.
    panel_path : Path
    out : Path
        A file as of `haplotype_panel.freeze_haplotypes`.
    genetic_map : str
        As in `haplotype_panel.freeze_haplotypes`.

    Returns
    -------
    dict
        Numbers of founders, of those in the reference (MOST_FOUNDERS at most, evenly spaced), of
        duplicates among these, and of sites.

    Raises
    ------
    UserError
        There are fewer than `copying_plan.LEAST_FOUNDERS` founders with a called genotype, or fewer
        than `match.MIN_SHARED_SITES` SNPs on the panel; or the map is invalid or lacks a
        contig; or a founder is a duplicate of all others.
    """
    panel, _ = load_panel(panel_path)
    cohorts = []
    for raw, table, own in zip(raws, tables, absent, strict=True):
        placed = OnPanel.open(raw, table, panel, own)
        placed.leave_out(placed.uncalled(), raw.parent.name)
        cohorts.append(placed)
    names = [name for placed in cohorts for name in placed.names]
    require_founders(len(names))
    snps = ((panel.ref.str.len() == 1) & (panel.alt.str.len() == 1)).to_numpy()
    require_snps(int(snps.sum()), "the panel has")
    chosen = np.unique(np.linspace(0, len(names) - 1, min(len(names), MOST_FOUNDERS)).astype(int))
    if len(chosen) < len(names):
        log.info("%d of %d founders are phased as the reference", len(chosen), len(names))
    samples = [names[k] for k in chosen]
    scale = MapScale(genetic_map, panel_path)
    kin = _duplicates(cohorts, panel, chosen)
    for name, own in zip(samples, kin, strict=True):
        if len(own) == len(samples) - 1:
            raise UserError(
                f"founder '{name}' has the same genotypes as all others, so that it can copy from "
                "nobody; leave out duplicates (column exclude), or set impute.method to 'mode'."
            )

    def phased() -> Iterator[tuple[Path, PhasedSites]]:
        for window in plan_windows(panel)[0]:
            part = np.flatnonzero(snps[window.start : window.stop])
            if not len(part):
                continue
            sites = panel.iloc[window.start + part]
            genotypes = _genotypes(cohorts, window.start, window.stop, chosen)[part]
            alleles = phase_together(
                np.ascontiguousarray(np.where(genotypes == MISSING, -1, genotypes).T, np.int8),
                scale.of(window.contig, sites.pos.to_numpy(np.int64)),
                lots_of([f"{options.seed} {window.contig} {name}" for name in samples]),
                kin=kin,
                threads=options.threads,
            )
            log.info("%s: %d founders phased", window.contig, len(samples))
            yield panel_path, _as_phased(window.contig, sites, alleles)

    write_haplotypes(out, samples, phased(), scale, options.threads)
    alike = sum(len(one) > 0 for one in kin)
    return {
        "founders": len(names),
        "in_reference": len(samples),
        "duplicates": alike,
        "sites": int(snps.sum()),
    }


def _genotypes(cohorts: list[OnPanel], first: int, last: int, chosen: np.ndarray) -> np.ndarray:
    """Genotypes of chosen founders at some sites: int8 (n_sites, n_chosen)."""
    rows = [unpack_bed(one.rows(first, last), len(one.names)) for one in cohorts]
    return np.concatenate(rows, axis=1)[:, chosen]


def _duplicates(
    cohorts: list[OnPanel], panel: pd.DataFrame, chosen: np.ndarray
) -> list[np.ndarray]:
    """Of each chosen founder the numbers of others with the same genotypes."""
    af = panel.af.to_numpy()
    common = np.flatnonzero(np.minimum(af, 1 - af) >= COMPARED_MAF)
    places = np.linspace(0, len(common) - 1, min(len(common), COMPARED_SITES)).astype(int)
    sites = common[np.unique(places)]
    found = [_genotypes(cohorts, int(site), int(site) + 1, chosen)[0] for site in sites]
    if len(found) < LEAST_COMPARED:
        return [np.empty(0, np.int64) for _ in chosen]
    rows = np.array(found).T
    called = (rows != MISSING).astype(np.float32)
    both = called @ called.T
    same = sum((one := (rows == g).astype(np.float32)) @ one.T for g in range(3))
    alike = (both >= LEAST_COMPARED) & (same >= DUPLICATE_SHARE * both)
    np.fill_diagonal(alike, False)
    return [np.flatnonzero(row) for row in alike]


def _as_phased(contig: str, sites: pd.DataFrame, alleles: np.ndarray) -> PhasedSites:
    """Sites of the panel with alleles (n_samples, 2, n_sites)."""
    lists = (sites[name].tolist() for name in ("id", "ref", "alt"))
    calls = np.ascontiguousarray(alleles.transpose(2, 0, 1))
    phased = np.ones(calls.shape[:2], bool)
    return PhasedSites(contig, sites.pos.to_numpy(np.int64), *lists, calls, phased)
