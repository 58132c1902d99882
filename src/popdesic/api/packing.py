"""Pack genotypes into bit-planes once, to compare them many times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cohort.encode import planes_in_memory
from ..core.threads import usable_cpus
from ..engine.terms import Planes
from ..io.genotypes import bed_row_bytes, pack_bed
from ..io.sites import chunks
from .arrays import ArrayLike, genotype_array, host_array, thread_count


@dataclass(frozen=True, repr=False)
class PackedGenotypes(Planes):
    """Genotypes with two or three bits each, as returned by `pack`.

    Attributes
    ----------
    words : uint64 array, (n_samples, n_planes, n_words)
        Planes: carrier (genotype at least 1), hom (genotype 2) and, if any genotype is missing,
        called. One bit per site, in little-endian order; bits beyond `n_sites` are zero.
    n_sites : int
    filled : bool
        Whether missing genotypes were filled in, for use with ``missing="imputed"``.
    """

    filled: bool = False

    def __repr__(self) -> str:
        kind = "none missing" if self.complete else "some missing"
        if self.filled and not self.complete:
            kind = "missing ones filled in"
        return f"<PackedGenotypes: {self.n_samples} samples x {self.n_sites} sites, {kind}>"


def pack(
    genotypes: ArrayLike, *, fill: str | ArrayLike | None = None, threads: int | None = None
) -> PackedGenotypes:
    """Pack genotypes into bit-planes.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing. Integers or floats
        of any width, in numpy or CuPy arrays; int8 arrays are not copied. Dosages are refused.
    fill : {None, 'mode'} or array-like (n_sites,)
        Genotypes to use for missing ones with ``missing="imputed"``: none, each site's most
        frequent genotype among these samples (the smallest if several are equally frequent), or
        one given genotype per site, 0, 1 or 2. The called plane stays the same in every case.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    PackedGenotypes
        In host memory: about 1/32 of the size of a float64 array, or 3/64 if genotypes are missing.
        `pairwise_distance` and `kinship` accept it in place of the array.

    Raises
    ------
    ValueError
        The shape, type or a value is not allowed for genotypes.

    Examples
    --------
    >>> import popdesic
    >>> popdesic.pack([[0, 1, 2, -1], [2, 1, 0, 0]])
    <PackedGenotypes: 2 samples x 4 sites, some missing>
    """
    threads = thread_count(threads)
    found = genotype_array(genotypes)
    n_samples, n_sites = found.shape
    rows = np.empty((n_sites, bed_row_bytes(n_samples)), np.uint8)
    for first, last in chunks(n_sites):
        rows[first:last] = pack_bed(np.ascontiguousarray(found[:, first:last].T))
    mode = None if fill is None else _fills(fill, found)
    planes = planes_in_memory(rows, n_samples, threads or usable_cpus(), mode)
    return PackedGenotypes(planes.words, n_sites, filled=fill is not None)


def packed(genotypes: ArrayLike | PackedGenotypes, *, fill: str | None = None) -> PackedGenotypes:
    """Return packed genotypes as they are, if they are what `pack` returns; pack an array."""
    if not isinstance(genotypes, PackedGenotypes):
        return pack(genotypes, fill=fill)
    _require_planes(genotypes)
    return genotypes


def _require_planes(found: PackedGenotypes) -> None:
    """Raise a ValueError unless the planes are those of genotypes."""
    words, sites = found.words, found.n_sites
    wrong = ""
    if isinstance(sites, (bool, np.bool_)) or not isinstance(sites, (int, np.integer)) or sites < 1:
        wrong = f"n_sites is {sites!r}"
    elif not isinstance(words, np.ndarray) or words.dtype != np.uint64:
        wrong = f"words are {getattr(words, 'dtype', type(words).__name__)}, not uint64"
    elif words.ndim != 3 or not len(words) or words.shape[1] not in (2, 3):
        wrong = f"words have the shape {words.shape}, not (n_samples, 2 or 3, n_words)"
    elif 64 * words.shape[2] < sites:
        wrong = f"words have the shape {words.shape}, which is too short for {sites} sites"
    elif not isinstance(found.filled, (bool, np.bool_)):
        wrong = f"filled is {found.filled!r}"
    else:
        beyond = ~site_bits(found)
        for row in words:
            hom_alone = row[1] & ~row[0]
            if (row & beyond).any() or hom_alone.any():
                wrong = "words have bits that no genotype has"
                break
    if wrong:
        raise ValueError(
            f"genotypes are PackedGenotypes whose {wrong}; give what popdesic.pack returns."
        )


def site_bits(planes: PackedGenotypes) -> np.ndarray:
    """One bit for each site, uint64 (n_words,)."""
    bits = np.arange(64 * planes.words.shape[2]) < planes.n_sites
    return np.packbits(bits, bitorder="little").view(np.uint64)


def _fills(fill: str | ArrayLike, genotypes: np.ndarray) -> np.ndarray:
    """The genotype to fill in at each site, int64 (n_sites,)."""
    if isinstance(fill, str):
        if fill != "mode":
            raise ValueError(f"fill is {fill!r}; give None, 'mode' or one genotype per site.")
        counts = [(genotypes == g).sum(axis=0) for g in range(3)]
        return np.argmax(counts, axis=0)
    array = host_array(fill)
    if array.shape != genotypes.shape[1:]:
        raise ValueError(
            f"fill has the shape {array.shape}; give one genotype for each of the "
            f"{genotypes.shape[1]} sites."
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(f"fill is of type {array.dtype}; give 0, 1 or 2 for each site.")
    if not np.isin(array, (0, 1, 2)).all():
        site = int(np.argmin(np.isin(array, (0, 1, 2))))
        raise ValueError(f"fill[{site}] is {array[site]}; give 0, 1 or 2.")
    return array.astype(np.int64)
