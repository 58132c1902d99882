"""Called, imputed and true genotypes under a null: no site has an effect, cases miss more calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import popdesic
from popdesic.cohort.beagle import Beagle, fill_window
from popdesic.cohort.imputation_quality import draw_folds, quality_of
from popdesic.epistasis.interaction import degrees_of_freedom, interaction_statistics
from popdesic.io.genotypes import MISSING


def hide(truth: np.ndarray, case: np.ndarray, shares: tuple[float, float], seed: int) -> np.ndarray:
    """The genotypes with these shares of the controls' and of the cases' missing: int8."""
    drawn = np.random.default_rng(seed).random(truth.shape)
    return np.where(drawn < np.where(case, shares[1], shares[0]), MISSING, truth).astype(np.int8)


def impute(
    shown: np.ndarray, sites: pd.DataFrame, settings: Beagle, folder: Path, min_r2: float
) -> tuple[np.ndarray, np.ndarray]:
    """The genotypes as `cohort.fill_calls` fills them, contig by contig, and r2 of each site."""
    filled, quality = shown.copy(), np.full(len(shown), np.nan)
    for contig, rows in sites.groupby("chrom", sort=False).indices.items():
        here, calls = sites.iloc[rows], shown[rows]
        measured = (calls == MISSING).any(axis=1)
        folds = draw_folds((settings.seed, "c", str(contig)), 0, measured, calls)
        r2, _ = quality_of(calls, folds, measured, here, str(contig), settings, folder)
        quality[rows[measured]] = r2
        found, _, _ = fill_window(calls, here, str(contig), settings, folder)
        good = (np.nan_to_num(quality[rows]) >= min_r2)[:, None]
        filled[rows] = np.where((calls == MISSING) & good, found, calls)
    return filled, quality


def pair_tables(genotypes: np.ndarray, case: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """int64 (n_pairs, 2, 3, 3): controls, cases; over people called at both sites."""
    tables = np.zeros((len(pairs), 2, 3, 3), np.int64)
    for table, (i, j) in zip(tables, pairs, strict=True):
        a, b = genotypes[i], genotypes[j]
        both = (a != MISSING) & (b != MISSING)
        np.add.at(table, (case[both].astype(int), a[both], b[both]), 1)
    return tables


def interaction_p(genotypes: np.ndarray, case: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """p of the interaction of each pair, by chi-square."""
    tables = pair_tables(genotypes, case, pairs)
    freedom = np.array([degrees_of_freedom(table) for table in tables])
    chi2 = interaction_statistics(tables)
    return np.where(freedom > 0, stats.chi2.sf(chi2, np.maximum(freedom, 1)), 1.0)


def r2_of(genotypes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Squared correlation of each pair of sites, over people called at both."""
    return popdesic.ld_r2(genotypes.T, device="cpu", threads=1)[pairs[:, 0], pairs[:, 1]]
