"""What is said of imputed haplotypes: estimated and measured r2, by site and by frequency."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..copying.copying_plan import DOSE_UNITS
from ..io.imputed_vcf import STEPS
from .accuracy_sums import measures

#: Bounds of classes of minor allele frequency in the reference.
COPIED_MAF = [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
N_CLASSES = len(COPIED_MAF) - 1
#: Sums of a class: imputed sites, their estimated r2, typed sites, then `accuracy_sums.SUMS` of the
#: genotypes, each left out.
N_SUMS = 12


class Called(NamedTuple):
    """Calls at some sites.

    Attributes
    ----------
    rows : int64 array, (n_typed,)
    alleles : int8 array, (n_haplotypes, n_typed)
        -1 is missing.
    owner : int32 array, (n_haplotypes,)
        Sample of each haplotype, in rising order.
    """

    rows: np.ndarray
    alleles: np.ndarray
    owner: np.ndarray


@dataclass(frozen=True)
class Imputed:
    """Sites: doses in 1 / DOSE_UNITS, uint16 (n_haplotypes, n_sites), INFO, and sums."""

    units: np.ndarray
    owner: np.ndarray
    info: list[str]
    sums: np.ndarray

    def thousandths(self) -> np.ndarray:
        """Probabilities by sample, as `ImputedVcf.write` takes them."""
        steps = np.rint(self.units * (STEPS / DOSE_UNITS)).astype(np.int16)
        first = np.flatnonzero(np.diff(self.owner, prepend=-1))
        found = np.full((self.units.shape[1], len(first), 2), -1, np.int16)
        found[:, :, 0] = steps[first].T
        second = np.setdiff1d(np.arange(len(self.owner)), first)
        found[:, self.owner[second], 1] = steps[second].T
        return found


def sum_up_sites(
    units: np.ndarray,
    hidden: np.ndarray,
    called: Called,
    frequency: np.ndarray,
    listed: np.ndarray | None = None,
) -> Imputed:
    """Sum up how good imputed sites are.

    R2, the estimated r2, is the variance of the probabilities over p (1 - p), as in minimac (Das
    et al. 2016). ER2 is the squared correlation of hidden alleles and their probabilities.

    Parameters
    ----------
    units : uint16 array, (n_haplotypes, n_sites)
        Probabilities of ALT, in 1 / DOSE_UNITS; those of calls are the calls.
    hidden : float32 array, (n_haplotypes, n_typed)
        Those of the typed sites, hidden; NaN where they were not.
    frequency : float64 array, (n_sites,)
        Of ALT, in the reference.
    listed : int64 array, optional
        Sites that are in the file of the targets; by default the called ones.
    """
    mean, estimated = estimated_r2(units)
    measured = np.full(len(frequency), np.nan)
    measured[called.rows] = _squared_correlation(hidden, called.alleles)
    typed = np.zeros(len(frequency), bool)
    typed[called.rows] = True
    imputed = np.ones(len(frequency), bool)
    imputed[called.rows if listed is None else listed] = False
    info = [
        _info(*about)
        for about in zip(mean.tolist(), estimated.tolist(), measured, typed, imputed, strict=True)
    ]
    return Imputed(units, called.owner, info, _sums(hidden, called, frequency, typed, estimated))


def accuracy_table(sums: np.ndarray) -> pd.DataFrame:
    """The accuracy by class of minor allele frequency in the reference.

    Returns
    -------
    DataFrame
        `maf`; `imputed` (sites) and `estimated_r2`, their mean R2; `typed` (sites), `hidden` (their
        genotypes, each imputed from the other sites), `concordance`, `nonref_concordance` and
        `dosage_r2` of these
        (`accuracy_sums.measures`). NA where there is none.
    """
    rows = []
    for (low, high), line in zip(pairwise(COPIED_MAF), sums, strict=True):
        n, r2, typed = line[:3]
        mean = r2 / n if n else np.nan
        rows.append((f"{low:g}-{high:g}", int(n), mean, int(typed), *measures(line[3:])))
    names = ["maf", "imputed", "estimated_r2", "typed", "hidden", "concordance"]
    return pd.DataFrame(rows, columns=[*names, "nonref_concordance", "dosage_r2"])


def estimated_r2(units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and estimated r2 of each site, float64 (n_sites,); r2 is 0 where nothing varies."""
    n = len(units)
    once = units.sum(axis=0, dtype=np.int64).astype(np.float64)
    twice = np.einsum("hs,hs->s", units, units, dtype=np.int64, casting="safe").astype(np.float64)
    most = once * (n * DOSE_UNITS - once)
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = np.where(most > 0, (n * twice - once * once) / most, 0.0)
    return once / (n * DOSE_UNITS), r2


def _squared_correlation(probability: np.ndarray, alleles: np.ndarray) -> np.ndarray:
    """Squared correlation over haplotypes at each site, NaN where there is none."""
    known = (alleles >= 0) & ~np.isnan(probability)
    d, t = np.where(known, probability, 0.0).astype(np.float64), np.where(known, alleles, 0)
    n, sum_d, sum_t = known.sum(axis=0), d.sum(axis=0), t.sum(axis=0)
    both = n * (d * t).sum(axis=0) - sum_d * sum_t
    variance = (n * (d * d).sum(axis=0) - sum_d**2) * (n * sum_t - sum_t**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0, both**2 / variance, np.nan)


def _info(frequency: float, estimated: float, measured: float, typed: bool, imputed: bool) -> str:
    text = f"AF={frequency:.4f}"
    if not typed:
        return f"{text};R2={estimated:.4f}{';IMP' if imputed else ''}"
    return text if np.isnan(measured) else f"{text};ER2={measured:.4f}"


def _sums(hidden, called: Called, frequency, typed, estimated) -> np.ndarray:
    """Sums by class, float64 (N_CLASSES, N_SUMS)."""
    maf = np.minimum(frequency, 1 - frequency)
    group = np.clip(np.searchsorted(COPIED_MAF, maf, side="right") - 1, 0, N_CLASSES - 1)
    found = np.zeros((N_CLASSES, N_SUMS))
    for k, (sites, value) in enumerate(((~typed, 1), (~typed, estimated), (typed, 1))):
        found[:, k] = np.bincount(group, np.where(sites, value, 0), N_CLASSES)
    if not hidden.size:
        return found
    first = np.flatnonzero(np.diff(called.owner, prepend=-1))
    known = np.where(called.alleles >= 0, 0.0, np.nan)  # a genotype counts if all of it is known
    t = np.add.reduceat(called.alleles + known, first, axis=0)
    d = np.add.reduceat(hidden.astype(np.float64) + known, first, axis=0)
    g = np.add.reduceat((hidden >= 0.5) + known, first, axis=0)
    counted = ~np.isnan(d)
    where = np.broadcast_to(group[called.rows], d.shape)[counted]
    t, d, g = t[counted], d[counted], g[counted]
    right, carrier = t == g, (t > 0) | (g > 0)
    values = (np.ones(len(t)), right, carrier, carrier & right, t, d, t * t, d * d, t * d)
    for k, value in enumerate(values, 3):
        found[:, k] = np.bincount(where, value, N_CLASSES)
    return found
