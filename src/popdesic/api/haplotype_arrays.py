"""Arguments of functions of haplotypes, checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..copying.copying import Haplotypes, haplotypes_of
from ..copying.copying_plan import MISMATCHES, MOST_HAPLOTYPES
from ..copying.fit import fit_model
from ..core.phreds import phreds_of
from ..core.random_numbers import lots_of
from .arrays import ArrayLike, host_array, real_number, whole_number


def site_numbers(typed: ArrayLike, n_sites: int) -> np.ndarray:
    """Rising numbers of sites below `n_sites`, as int64."""
    sites = host_array(typed)
    if sites.ndim != 1 or (sites.size and sites.dtype.kind not in "iu"):
        raise ValueError(
            f"typed is {sites.dtype} of the shape {sites.shape}; give numbers of the sites, from 0."
        )
    sites = sites.astype(np.int64)
    wrong = (sites < 0) | (sites >= n_sites)
    wrong[1:] |= np.diff(sites) <= 0
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"typed[{place}] is {sites[place]}; give rising numbers of sites from 0 to "
            f"{n_sites - 1}."
        )
    return sites


def copying_model(
    panel: Haplotypes,
    ne: float | None,
    mismatch: float | None,
    threads: int | None,
    ploidy: int = 2,
) -> tuple[float, float]:
    """Effective size and mismatch: those that are given, or else the most likely ones."""
    ne = None if ne is None else real_number(ne, "ne", 1)
    mismatch = None if mismatch is None else real_number(mismatch, "mismatch", *MISMATCHES)
    if ne is None or mismatch is None:
        fitted = fit_model(panel, np.arange(panel.n_haplotypes) // ploidy, threads=threads)
        ne = fitted[0] if ne is None else ne
        mismatch = fitted[1] if mismatch is None else mismatch
    return ne, mismatch


def reference_panel(reference: ArrayLike, centimorgans: ArrayLike) -> Haplotypes:
    """A reference of one chromosome, checked and packed."""
    alleles = allele_rows(reference, "reference", missing=False)
    n, n_sites = alleles.shape
    if not n or n > MOST_HAPLOTYPES or not n_sites:
        raise ValueError(
            f"reference has {n} haplotypes and {n_sites} sites; give 1 to {MOST_HAPLOTYPES} "
            "haplotypes with a site or more."
        )
    return haplotypes_of(alleles, map_of_sites(centimorgans, n_sites))


def map_of_sites(centimorgans: ArrayLike, n_sites: int) -> np.ndarray:
    """Genetic positions of the sites of one chromosome, not falling."""
    cm = host_array(centimorgans)
    if cm.dtype.kind not in "iuf" or cm.shape != (n_sites,) or not np.isfinite(cm).all():
        raise ValueError(
            f"centimorgans are {cm.dtype} of the shape {cm.shape}; give a finite number for each "
            f"of the {n_sites} sites."
        )
    falls = np.flatnonzero(np.diff(cm.astype(np.float64)) < 0)
    if falls.size:
        raise ValueError(
            f"centimorgans[{int(falls[0]) + 1}] is less than the one before; sort the sites."
        )
    return cm


def require_columns(array: np.ndarray, name: str, n_typed: int) -> None:
    """Refuse an array that has not one column for each site of `typed`."""
    if array.shape[1] != n_typed:
        raise ValueError(
            f"{name} have {array.shape[1]} sites, but typed has {n_typed}; give one column for "
            "each."
        )


def allele_rows(given: ArrayLike, name: str, *, missing: bool) -> np.ndarray:
    """Alleles as int8 in two dimensions, -1 where missing."""
    what = "0 or 1, and -1 or NaN where it is missing" if missing else "0 or 1, none missing"
    array = host_array(given)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} is an array of {array.dtype} of the shape {array.shape}; give a row for each "
            f"haplotype and a column for each site, with alleles {what}."
        )
    if array.dtype.kind == "f" and missing:
        array = np.where(np.isnan(array), -1, array)
    wrong = ~np.isin(array, (-1, 0, 1) if missing else (0, 1))
    if wrong.any():
        row, column = map(int, np.unravel_index(np.argmax(wrong), array.shape))
        raise ValueError(f"{name}[{row}, {column}] is {array[row, column]}; an allele is {what}.")
    return array.astype(np.int8)


def phred_rows(given: ArrayLike, n_typed: int) -> np.ndarray:
    """Phreds of genotypes as uint8 (n_samples, n_typed, 3), zeros where there are none."""
    array = host_array(given)
    if array.ndim != 3 or array.shape[1:] != (n_typed, 3) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"phreds are {array.dtype} of the shape {array.shape}; give three numbers for each "
            f"sample and each of the {n_typed} sites of typed."
        )
    values = array.astype(np.float64)
    nothing = np.isnan(values).all(axis=2)
    wrong = ~nothing & ~((values >= 0) & np.isfinite(values)).all(axis=2)
    if wrong.any():
        row, column = map(int, np.unravel_index(np.argmax(wrong), wrong.shape))
        shown = ", ".join(f"{value:g}" for value in values[row, column].tolist())
        raise ValueError(
            f"phreds[{row}, {column}] are {shown}; give three finite numbers from 0, or NaN for "
            "all of them."
        )
    return phreds_of(np.where(nothing[..., None], 0.0, values))


def sample_lots(names: Sequence[str] | None, seed: int, n_samples: int) -> np.ndarray:
    """Keys of random numbers of samples, by default named by their numbers: uint64."""
    names = [str(k) for k in range(n_samples)] if names is None else list(names)
    if len(names) != n_samples:
        raise ValueError(f"{len(names)} names for {n_samples} samples; give one for each.")
    return lots_of([f"{whole_number(seed, 'seed')} {name}" for name in names])
