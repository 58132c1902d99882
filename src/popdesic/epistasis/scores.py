"""Scores of contingency tables: sums of entries of integer lookup tables, or the interaction.

``k2``, ``k2_excess`` and ``mutual_information`` score association: what the genotypes say about the
class, by main effects as well as by interaction. ``k2`` is the formula of Cooper and Herskovits
(1992), by which published scans rank. ``k2_excess`` is K2 less its mean where the genotypes say
nothing, so that pairs of rare and of common sites can be compared (`k2_null`). ``gini`` is what the
genotypes take off the Gini impurity of the class. ``interaction`` scores what the sites say
together beyond all fewer sites (`epistasis.interaction_cpu`).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from .k2_null import excess_of_cells
from .options import ASSOCIATION
from .partners import partners_of
from .reorder import read_reordered, split_classes
from .scan_data import Partners, ScanData, cell_cost

#: The scores; the first is the default.
SCORES = ("interaction", *ASSOCIATION)
#: Fractional bits of a cost; fewer if costs of many samples would not fit int64.
SCALE_BITS = 40


def scale_bits(n_samples: int) -> int:
    """Fractional bits of the table entries for scans of `n_samples` samples."""
    from scipy.special import gammaln, xlogy

    largest = max(float(gammaln(n_samples + 2)), float(xlogy(n_samples, n_samples)), 1.0)
    return min(SCALE_BITS, math.floor(63 - math.log2(largest)))


def lr_bits(score: str, n_samples: int) -> int | None:
    """`scan_data.ScanData.lr_bits`: `scale_bits` for ``interaction``, else None."""
    return scale_bits(n_samples) if score == "interaction" else None


def score_tables(score: str, n_controls: int, n_cases: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables `total` and `part` of `scan_data.ScanData`, int64 (n_controls + n_cases + 1,).

    ``k2``: lnGamma(n + 2) and lnGamma(n + 1), so that a cell costs ln (n + 1)! - ln n0! - ln n1!;
    ``k2_excess``: lnGamma(n + 1) + excess(n) (`k2_null`) and lnGamma(n + 1);
    ``mutual_information``: n ln n for both, as for ``interaction``, which it bounds, and
    ``residuals`` (`residual_scan`); ``gini``: int64 (1,) and (0,), the unit and nothing.
    Every entry is rounded once, so sums are exact in any order and equal on every device.
    """
    from scipy.special import gammaln, xlogy

    n_samples = n_controls + n_cases
    if score == "gini":
        return np.array([1 << scale_bits(n_samples)]), np.zeros(0, np.int64)
    n = np.arange(n_samples + 1, dtype=np.float64)
    if score == "k2":
        tables = gammaln(n + 2), gammaln(n + 1)
    elif score == "k2_excess":
        part = gammaln(n + 1)
        tables = part + excess_of_cells(n_controls, n_cases), part
    elif score in (*SCORES, "residuals"):
        tables = xlogy(n, n), xlogy(n, n)
    else:
        raise ValueError(f"unknown score {score!r}")
    scale = 2.0 ** scale_bits(n_samples)
    return tuple(np.rint(table * scale).astype(np.int64) for table in tables)


def table_cost(
    table: np.ndarray, total: np.ndarray, part: np.ndarray, bits: int | None = None
) -> np.ndarray:
    """Cost of contingency tables, int64 (...); `table`: (2, ..., n_cells), controls and cases.

    bits: of the interaction (`lr_bits`); its tables have 9, 27 or 81 cells, the first site's state
    varying slowest. None: the sum of the entries.
    """
    if bits is not None:
        from .interaction_cpu import interaction_costs  # numba starts slowly

        table = np.asarray(table)
        tables = np.moveaxis(table, 0, -2).reshape(-1, 2, table.shape[-1])
        return interaction_costs(tables, bits).reshape(table.shape[1:-1])
    controls, cases = np.asarray(table)
    whole = cell_cost(controls.sum(axis=-1), cases.sum(axis=-1), total, part)
    return cell_cost(controls, cases, total, part).sum(axis=-1) - whole


def make_scan_data(
    words: np.ndarray,
    sites: pd.DataFrame,
    n_controls: int,
    n_cases: int,
    score: str,
    partners: Partners | None = None,
    *,
    mapped: bool = False,
) -> ScanData:
    """Scan data from the planes and sites of `reorder.reorder_sites`.

    `mapped`: its planes are parts of `words`, not copies.
    """
    n_samples = n_controls + n_cases
    total, part = score_tables(score, n_controls, n_cases)
    classes = split_classes(words, n_controls, n_cases, mapped=mapped)
    rank = sites["rank"].to_numpy(np.int32)
    incomplete = np.flatnonzero(sites["n_missing"].to_numpy())
    begin = int(incomplete[-1]) + 1 if len(incomplete) else 0
    return ScanData(classes, total, part, rank, partners, lr_bits(score, n_samples), begin)


def load_scan(
    folder: Path, score: str, min_distance_bp: int, max_r2: float, *, mapped: bool = False
) -> tuple[ScanData, pd.DataFrame, pd.DataFrame]:
    """Scan data, sites and samples of results/reorder, with the rules for partners.

    `mapped`: planes stay in their file.
    """
    words, sites, samples = read_reordered(folder)
    n_cases = int((samples["class"] == "case").sum())
    n_controls = len(samples) - n_cases
    partners = partners_of(sites, min_distance_bp, max_r2)
    sizes = n_controls, n_cases
    return make_scan_data(words, sites, *sizes, score, partners, mapped=mapped), sites, samples
