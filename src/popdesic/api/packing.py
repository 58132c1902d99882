"""Genotypes as bit-planes: packed once, compared often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cohort.encode import planes_in_memory
from ..engine.terms import Planes
from ..engine.threads import usable_cpus
from ..io.genotypes import bed_row_bytes, pack_bed
from ..io.sites import chunks
from .arrays import ArrayLike, genotype_array, host_array


@dataclass(frozen=True, repr=False)
class PackedGenotypes(Planes):
    """Genotypes of samples, two or three bits each: what `pack` gives.

    Attributes
    ----------
    words : uint64 array, (n_samples, n_planes, n_words)
        Planes: carrier (genotype at least 1), hom (genotype 2) and, if any genotype is missing,
        called; little-endian bits, a bit a site, zero beyond `n_sites`.
    n_sites : int
    filled : bool
        Whether missing genotypes hold imputed ones, which ``missing="imputed"`` counts.
    """

    filled: bool = False

    def __repr__(self) -> str:
        kind = "none missing" if self.complete else "some missing"
        if self.filled and not self.complete:
            kind = "missing ones filled"
        return f"<PackedGenotypes: {self.n_samples} samples x {self.n_sites} sites, {kind}>"


def pack(
    genotypes: ArrayLike, *, fill: str | ArrayLike | None = None, threads: int | None = None
) -> PackedGenotypes:
    """Pack genotypes into bit-planes.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing. Whole numbers or
        floats of any width, in numpy or CuPy arrays; int8 is taken as it is. Dosages are refused.
    fill : {None, 'mode'} or array-like (n_sites,)
        What stands in for a missing genotype where imputed ones are asked for
        (``missing="imputed"``): nothing, the site's most frequent genotype among these samples (of
        equally frequent ones the smallest), or the genotypes given, 0, 1 or 2 a site. Which
        genotypes were called is kept in every case.
    threads : int, optional
        All CPUs by default.

    Returns
    -------
    PackedGenotypes
        In host memory, a sixty-fourth of the bytes of float64. It can stand for the genotypes in
        `pairwise_distance` and `kinship`.

    Raises
    ------
    ValueError
        A shape, type or value that cannot be genotypes.

    Examples
    --------
    >>> import popdesic
    >>> popdesic.pack([[0, 1, 2, -1], [2, 1, 0, 0]])
    <PackedGenotypes: 2 samples x 4 sites, some missing>
    """
    found = genotype_array(genotypes)
    n_samples, n_sites = found.shape
    rows = np.empty((n_sites, bed_row_bytes(n_samples)), np.uint8)
    for first, last in chunks(n_sites):
        rows[first:last] = pack_bed(np.ascontiguousarray(found[:, first:last].T))
    mode = None if fill is None else _fills(fill, found)
    planes = planes_in_memory(rows, n_samples, threads or usable_cpus(), mode)
    return PackedGenotypes(planes.words, n_sites, filled=fill is not None)


def packed(genotypes: ArrayLike | PackedGenotypes, *, fill: str | None = None) -> PackedGenotypes:
    """What is packed already, or `pack` of an array."""
    return genotypes if isinstance(genotypes, PackedGenotypes) else pack(genotypes, fill=fill)


def _fills(fill: str | ArrayLike, genotypes: np.ndarray) -> np.ndarray:
    """The genotype that fills each site, int64 (n_sites,)."""
    if isinstance(fill, str):
        if fill != "mode":
            raise ValueError(f"fill is {fill!r}; give None, 'mode' or a genotype a site.")
        counts = [(genotypes == g).sum(axis=0) for g in range(3)]
        return np.argmax(counts, axis=0)
    array = host_array(fill)
    if array.shape != genotypes.shape[1:]:
        raise ValueError(
            f"fill has the shape {array.shape}; give one genotype for each of the "
            f"{genotypes.shape[1]} sites."
        )
    if not np.isin(array, (0, 1, 2)).all():
        site = int(np.argmin(np.isin(array, (0, 1, 2))))
        raise ValueError(f"fill[{site}] is {array[site]}; give 0, 1 or 2.")
    return array.astype(np.int64)
