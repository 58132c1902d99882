"""Check and convert the arrays that users pass in, and return results to the same device."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.genetic_maps import MOST_POSITION
from ..engine.backend import Backend
from ..io.genotypes import MISSING
from ..io.layers import MOST_PLOIDY

#: A numpy or CuPy array, or anything that `numpy.asarray` accepts.
ArrayLike = Any
#: End of error messages about invalid genotypes.
GENOTYPES = "a genotype is the number of ALT alleles, 0, 1 or 2, and -1 or NaN where it is missing"
GENOTYPES_OF_PLOIDY = (
    "a genotype is the number of ALT alleles, 0 to the ploidy, and -1 or NaN where it is missing"
)
#: Entries of an array that are checked at once.
CHECKED_ENTRIES = 1 << 24


def on_gpu(array: ArrayLike) -> bool:
    """Whether `array` is a CuPy array."""
    return type(array).__module__.partition(".")[0] == "cupy"


def to_device_of(given: ArrayLike, result: np.ndarray, backend: Backend) -> ArrayLike:
    """The result as a CuPy array if a GPU computed it from a CuPy array, else unchanged."""
    if on_gpu(given) and backend.name == "gpu":
        return sys.modules["cupy"].asarray(result)  # imported already, since `given` is CuPy's
    return result


def host_array(array: ArrayLike) -> np.ndarray:
    """A numpy array of numbers in host memory; masked entries become -1, or NaN in floats."""
    if on_gpu(array):
        return array.get()
    if isinstance(array, np.ma.MaskedArray):
        fill = np.nan if array.dtype.kind == "f" else np.int16(MISSING)
        return np.where(np.ma.getmaskarray(array), fill, array.data)
    try:
        return np.asarray(array)
    except ValueError:
        raise ValueError(
            f"an argument is {type(array).__name__} whose rows differ in length; give an array."
        ) from None


def ploidy_array(given: ArrayLike, n_samples: int) -> np.ndarray:
    """The ploidy of each sample, int64 (n_samples,): one number for all, or one for each.

    Raises
    ------
    ValueError
        Not whole numbers from 1 to `MOST_PLOIDY`, or not as many as samples.
    """
    found = host_array(given)
    whole = f"give a whole number from 1 to {MOST_PLOIDY}"
    if found.shape not in ((), (n_samples,)) or found.dtype.kind not in "iu":
        raise ValueError(
            f"ploidy is {found.dtype} of the shape {found.shape}; {whole}, or one for each of the "
            f"{n_samples} samples."
        )
    wrong = np.atleast_1d((found < 1) | (found > MOST_PLOIDY))
    if wrong.any():
        raise ValueError(f"ploidy is {np.atleast_1d(found)[int(np.argmax(wrong))]}; {whole}.")
    return np.broadcast_to(found.astype(np.int64), (n_samples,))


def genotype_array(given: ArrayLike, ploidy: ArrayLike | None = None) -> np.ndarray:
    """Genotypes as int8 (n_samples, n_sites), -1 where missing.

    Parameters
    ----------
    given : array-like, (n_samples, n_sites)
        Integers or floats: 0, 1, 2; -1, NaN or a masked entry where missing.
    ploidy : int or int array-like (n_samples,), optional
        Genotypes are then 0 to this number.

    Raises
    ------
    ValueError
        The shape, type or a value is not allowed, or the array is empty.
    """
    array = host_array(given)
    if array.ndim != 2:
        raise ValueError(
            f"genotypes have the shape {array.shape}; give two dimensions, samples x sites, with "
            "the number of ALT alleles in each entry."
        )
    if not array.size:
        raise ValueError(
            f"genotypes have the shape {array.shape}; give at least one sample and one site."
        )
    if array.dtype.kind not in "iubf":
        raise ValueError(f"genotypes are of type {array.dtype}; {GENOTYPES}.")
    most = np.full(len(array), 2) if ploidy is None else ploidy_array(ploidy, len(array))
    if array.dtype == np.int8 and array.min() >= MISSING and array.max() <= most.min():
        return array
    found = np.empty(array.shape, np.int8)
    rows = max(1, CHECKED_ENTRIES // array.shape[1])
    for first in range(0, len(array), rows):
        part = array[first : first + rows]
        missing = np.isnan(part) if part.dtype.kind == "f" else np.zeros(1, bool)
        of_row = most[first : first + rows, None]
        wrong = ~((np.isin(part, np.arange(MISSING, most.max() + 1)) & (part <= of_row)) | missing)
        if wrong.any():
            row, site = np.argwhere(wrong)[0]
            what = GENOTYPES
            if ploidy is not None:
                what = f"the sample's ploidy is {of_row[row, 0]}; {GENOTYPES_OF_PLOIDY}"
            raise ValueError(f"genotypes[{first + row}, {site}] is {part[row, site]}; {what}.")
        found[first : first + rows] = np.where(missing, np.int8(MISSING), part)
    return found


def site_table(n_sites: int, positions: ArrayLike, contigs: ArrayLike | None) -> pd.DataFrame:
    """Sites as the stages read them: `chrom`, `pos`.

    Raises
    ------
    ValueError
        Positions or contigs are not valid, or not in the order of the genome.
    """
    pos = host_array(positions)
    if pos.shape != (n_sites,) or pos.dtype.kind not in "iu":
        raise ValueError(
            f"positions are {pos.dtype} of the shape {pos.shape}; give an integer for each of the "
            f"{n_sites} sites."
        )
    wrong = (pos < 0) | (pos > MOST_POSITION)
    if wrong.any():
        site = int(np.argmax(wrong))
        raise ValueError(
            f"positions[{site}] is {pos[site]}; give base pairs from 0 to {MOST_POSITION}."
        )
    if contigs is not None:
        contigs = np.asarray(contigs, object)
        missing = np.ravel(pd.isna(contigs) | (contigs == ""))
        if missing.any():
            raise ValueError(
                f"contigs[{int(np.argmax(missing))}] is "
                f"{np.ravel(contigs)[int(np.argmax(missing))]!r}; give the name of a contig."
            )
    chrom = np.full(n_sites, "1") if contigs is None else np.asarray(contigs).astype(str)
    if chrom.shape != (n_sites,):
        raise ValueError(
            f"contigs have the shape {chrom.shape}; give one for each of the {n_sites} sites."
        )
    new = np.concatenate([[True], chrom[1:] != chrom[:-1]])
    names = chrom[new].tolist()
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"sites of contig {twice!r} are not next to each other; sort the sites.")
    falls = np.flatnonzero((np.diff(pos.astype(np.int64)) < 0) & ~new[1:])
    if falls.size:
        site = int(falls[0]) + 1
        raise ValueError(
            f"positions[{site}] is {pos[site]}, less than the one before; sort the sites."
        )
    return pd.DataFrame({"chrom": chrom, "pos": pos.astype(np.int64)})


def frequency_array(af: ArrayLike, n_sites: int) -> np.ndarray:
    """ALT frequencies as float64 (n_sites,)."""
    found = host_array(af)
    if found.shape != (n_sites,) or found.dtype.kind not in "iuf":
        raise ValueError(
            f"af is {found.dtype} of the shape {found.shape}; give one ALT frequency for each of "
            f"the {n_sites} sites."
        )
    wrong = ~((found >= 0) & (found <= 1))
    if wrong.any():
        site = int(np.argmax(wrong))
        raise ValueError(f"af[{site}] is {found[site]}; give frequencies from 0 to 1.")
    return found.astype(np.float64)


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """An argument that is an integer of at least `least`.

    Raises
    ------
    ValueError
        It is no integer (True, 1.5, NaN and text are none), or smaller.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} is {value!r}; give an integer of at least {least}.")
    if value < least:
        raise ValueError(f"{name} is {value}; give a number of at least {least}.")
    return int(value)


def real_number(value: Any, name: str, least: float, most: float = np.inf) -> float:
    """An argument that is a finite number from `least` to `most`.

    Raises
    ------
    ValueError
        It is no number, not finite, or beyond these limits.
    """
    kinds = (int, float, np.integer, np.floating)
    range_ = f"of at least {least:g}" if most == np.inf else f"from {least:g} to {most:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds):
        raise ValueError(f"{name} is {value!r}; give a number {range_}.")
    if not (np.isfinite(value) and least <= value <= most):
        raise ValueError(f"{name} is {value}; give a number {range_}.")
    return float(value)


def thread_count(threads: Any) -> int | None:
    """The argument `threads`: an integer of at least 1, or None."""
    return None if threads is None else whole_number(threads, "threads")


def require_limits(given: dict, limits: type, what: str) -> None:
    """Raise a ValueError if a keyword is no field of a class of limits, or no number of its kind.

    Limits are 0 or more, or -1 where that is the default; whole numbers where the default is one.
    """
    fields = limits.__dataclass_fields__
    unknown = given.keys() - fields.keys()
    if unknown:
        raise ValueError(
            f"{sorted(unknown)[0]} is not a limit of {what}; give some of {', '.join(fields)}."
        )
    for name, value in given.items():
        default = fields[name].default
        check = whole_number if isinstance(default, int) else real_number
        check(value, name, min(0, default))


def distance_array(given: ArrayLike, name: str = "distances") -> np.ndarray:
    """Distances as float64 (m, n).

    Raises
    ------
    ValueError
        Not a matrix of numbers, or a number is NaN or negative.
    """
    array = host_array(given)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            f"{name} have the shape {array.shape}; give a matrix with one row per sample."
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} are of type {array.dtype}; give numbers.")
    array = array.astype(np.float64)
    wrong = ~(array >= 0)  # true for NaN too
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(
            f"{name}[{i}, {j}] is {array[i, j]}; give 0 or more, and infinity for two samples that "
            "cannot be compared."
        )
    return array


def require_square(distances: np.ndarray, name: str = "distances") -> None:
    """Raise a ValueError unless a matrix is square and symmetric with a zero diagonal."""
    if distances.shape[0] != distances.shape[1]:
        raise ValueError(
            f"{name} have the shape {distances.shape}; give a square matrix, with a distance for "
            "each pair of samples."
        )
    if np.diagonal(distances).any():
        i = int(np.flatnonzero(np.diagonal(distances))[0])
        raise ValueError(
            f"{name}[{i}, {i}] is {distances[i, i]}; the distance of a sample to itself must be 0."
        )
    unequal = distances != distances.T
    if unequal.any():
        i, j = np.argwhere(unequal)[0]
        raise ValueError(
            f"{name} are not symmetric: [{i}, {j}] is {distances[i, j]} and [{j}, {i}] is "
            f"{distances[j, i]}; if this is a rounding error, give (d + d.T) / 2."
        )


def require_choice(value: Any, choices: tuple, name: str) -> None:
    """Raise a ValueError unless an argument is one of its choices."""
    kinds = (str,) if isinstance(choices[0], str) else (int, np.integer)
    if not isinstance(value, kinds) or isinstance(value, bool) or value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} is {value!r}; give one of {listed}.")
