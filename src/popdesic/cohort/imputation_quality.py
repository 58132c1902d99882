"""How well Beagle imputes each site of a cohort, measured at called genotypes that are hidden.

Beagle estimates a dosage r2 (DR2) only for sites that it imputes whole from a reference. Where some
samples are called, it writes a genotype for the others and no word on its quality. So the called
genotypes of such a site are hidden in turn, a fifth at a time, and imputed; the squared correlation
of what comes back with what was called is the quality of the site in this cohort. It is that of
genotypes missing at random: of those that are missing for a reason, such as a poor call of
heterozygotes, nothing can be known from the calls.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from ..core.tables import write_npy
from ..io.genotypes import MISSING
from ..io.sites import chunks
from .absent import UNSTATED, Absent
from .accuracy import uniform_draws
from .accuracy_sums import squared_correlation
from .beagle import Beagle, fill_window, window_genotypes
from .impute import NO_BEAGLE, contig_start, find_beagle, read_windows
from .panel import load_panel

logger = logging.getLogger("popdesic")

#: Runs of Beagle; every called genotype of a measured site is hidden in one of them.
FOLDS = 5
#: Sites at a time, for numbers of eight bytes.
CHUNK_SITES = 1024


def measure_quality(
    raw: Path,
    qc_samples: Path,
    panel_path: Path,
    windows: Path,
    number: int,
    out: Path,
    *,
    cohort: str,
    settings: Beagle,
    absent: Absent = UNSTATED,
) -> dict[str, int]:
    """Write the r2 of a window's imputed genotypes, by site, for one cohort.

    Parameters
    ----------
    raw, qc_samples, panel_path, windows, number, settings, absent
        As in `beagle.impute_window`.
    out : Path
        .npy, float64 (n_sites,), the window's own sites in panel order: NaN where nothing is
        missing; Beagle's DR2 where nothing is called; otherwise the squared correlation of imputed
        and called genotypes, 0 where it is negative or undefined, or where Beagle could not impute.

    Returns
    -------
    dict
        Sites with missing genotypes, and hidden genotypes.
    """
    panel, _ = load_panel(panel_path)
    window = read_windows(windows)[number - 1]
    genotypes = window_genotypes(raw, qc_samples, panel, window, absent)
    before = window.start - contig_start(panel, window.contig)
    inside = slice(window.first - window.start, window.last - window.start)
    measured = np.zeros(len(genotypes), bool)
    measured[inside] = (genotypes[inside] == MISSING).any(axis=1)
    sites = panel.iloc[window.start : window.stop]
    out.parent.mkdir(parents=True, exist_ok=True)
    r2 = np.where(measured, 0.0, np.nan)
    hidden = 0
    if measured.any() and not find_beagle():
        logger.warning("%s Missing genotypes stay missing.", NO_BEAGLE)
    elif measured.any():
        folds = draw_folds((settings.seed, cohort, window.contig), before, measured, genotypes)
        r2[measured], hidden = quality_of(
            genotypes, folds, measured, sites, window.contig, settings, out.parent
        )
    write_npy(out, r2[inside])
    return {"sites with missing genotypes": int(measured.sum()), "hidden genotypes": hidden}


def draw_folds(
    key: tuple[int, str, str], first: int, measured: np.ndarray, genotypes: np.ndarray
) -> np.ndarray:
    """Run in which each genotype of the `measured` sites is hidden, -1 at the others: int8.

    `key` and `first` are seed, cohort, contig and number of sites before, as in `uniform_draws`.
    """
    folds = np.full(genotypes.shape, -1, np.int8)
    for start, end in chunks(len(folds), CHUNK_SITES):
        draws = uniform_draws(*key, first + start, end - start, folds.shape[1])
        folds[start:end] = np.where(measured[start:end, None], (draws * FOLDS).astype(np.int8), -1)
    return folds


def quality_of(
    genotypes: np.ndarray, folds: np.ndarray, measured: np.ndarray, sites, contig, settings, folder
) -> tuple[np.ndarray, int]:
    """r2 of the `measured` sites, float64, and the number of genotypes that were hidden.

    Parameters
    ----------
    genotypes, sites, contig, settings, folder
        As in `beagle.fill_window`.
    folds : int8 array, (n_sites, n_samples)
        Run in which a called genotype is hidden; -1 for never.
    measured : bool array, (n_sites,)
    """
    called = genotypes != MISSING
    imputed = genotypes.copy()
    by_beagle = np.ones(len(genotypes), bool)
    dr2 = np.full(len(genotypes), np.inf)
    runs = 0
    for fold in range(FOLDS):
        mask = called & (folds == fold)
        if not mask.any() and runs:
            continue
        runs += 1
        shown = np.where(mask, MISSING, genotypes).astype(np.int8)
        found = np.full(len(genotypes), np.nan)
        filled, _, done = fill_window(shown, sites, contig, settings, folder, dr2=found)
        imputed[mask] = filled[mask]
        by_beagle &= done[:, 0] | ~measured
        # Of several runs the worst, so that no draw lets a poor site pass.
        dr2 = np.fmin(dr2, np.nan_to_num(found, nan=0.0))
    r2 = np.empty(len(genotypes))
    for start, end in chunks(len(r2), CHUNK_SITES):
        part = slice(start, end)
        r2[part] = squared_correlation(genotypes[part], imputed[part], called[part])
    r2 = np.where(called.any(axis=1), r2, dr2)
    return np.where(by_beagle, r2, 0.0)[measured], int((called & (folds >= 0)).sum())
