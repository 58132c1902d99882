"""Layers: the genotypes of polyploids as several columns of a .bed, each that of a diploid.

A genotype of ploidy p is the number of ALT alleles, 0 to p. Its thermometer has p bits, bit k of
which says that it is at least k. Two neighbouring bits are a layer, with 0, 1 or 2 alleles, and the
genotype is the sum of its layers. An odd ploidy has each bit twice, as haploids have their allele,
so its layers are 0 or 2, and their sum is twice the genotype.

A .bed of polyploids has the first layer of all samples, then the second, and so on; the first
column of its .fam is the number of the layer. That of diploids and haploids has one layer.

Samples of several ploidies have as many layers as they have pairs of alleles, or, if one of the
ploidies is odd, alleles. So counts of layers are those of alleles. Layers that a sample lacks are
there, but missing, with a minus before their number in the .fam.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

#: ``read(first, last)`` gives the genotypes of these sites: int8 (last - first, n), -1 if missing.
#: Of polyploids they are sums of layers, from 0 to `most`; of several ploidies in its units.
Reader = Callable[[int, int], np.ndarray]
#: Largest ploidy of a study.
MOST_PLOIDY = 15


def n_layers(ploidy: int) -> int:
    """Layers of a genotype."""
    return ploidy // 2 if ploidy % 2 == 0 else ploidy


def layers_each(ploidy: Sequence[int] | np.ndarray, kinds: Sequence[int]) -> np.ndarray:
    """Layers of samples in a study of some ploidies, `kinds`: int64 (n_samples,)."""
    every = np.asarray(ploidy, np.int64)
    return every if any(kind % 2 for kind in kinds) else every // 2


def most_layers(kinds: Sequence[int]) -> int:
    """Layers of a file in a study of some ploidies; 1 of diploids or haploids alone."""
    return n_layers(kinds[0]) if len(kinds) == 1 else int(layers_each(kinds, kinds).max())


def layers_in(fam: pd.DataFrame) -> int:
    """Layers of a .fam: samples are its rows divided by it; 1 where samples are not repeated."""
    last = str(fam["family"].iloc[-1]).removeprefix("-") if len(fam) else ""
    layers = int(last) if last.isdecimal() and last.isascii() else 1
    n_samples, rest = divmod(len(fam), max(layers, 1))
    if layers < 2 or rest:
        return 1
    repeated = np.resize(fam["sample"].to_numpy()[:n_samples], len(fam))
    return layers if (repeated == fam["sample"].to_numpy()).all() else 1


def sizes_in(fam: pd.DataFrame) -> np.ndarray:
    """Layers that each sample of a .fam has: int64 (n_samples,)."""
    if layers_in(fam) == 1:
        return np.ones(len(fam), np.int64)
    there = ~fam["family"].astype(str).str.startswith("-").to_numpy()
    return there.reshape(layers_in(fam), -1).sum(axis=0)


def common_most(sizes: list[np.ndarray]) -> int:
    """The least common multiple of the alleles in so many layers."""
    return math.lcm(*(2 * np.unique(np.concatenate(sizes))).tolist())


def columns_there(sizes: np.ndarray, layers: int) -> np.ndarray:
    """Which columns are layers that their samples have, layer by layer: bool (layers * n,)."""
    return (sizes > np.arange(layers)[:, None]).ravel()


def columns_of(samples: np.ndarray, n_samples: int, layers: int) -> np.ndarray:
    """Columns of all layers of some samples, layer by layer: int64 (layers * n,)."""
    return (np.arange(layers)[:, None] * n_samples + samples).ravel()


def join_layers(genotypes: np.ndarray, layers: int) -> np.ndarray:
    """Sums of layers, int8 (n_sites, n_samples), of (n_sites, layers * n_samples).

    -1 where the first layer is missing.
    """
    if layers == 1:
        return genotypes
    parts = genotypes.reshape(len(genotypes), layers, genotypes.shape[1] // layers)
    sums = np.maximum(parts, 0).sum(axis=1)
    return np.where(parts[:, 0] < 0, -1, sums).astype(np.int8)


def split_layers(genotypes: np.ndarray, layers: int, sizes: np.ndarray | None = None) -> np.ndarray:
    """The inverse of `join_layers`, in the order of thermometers: layer 1 has the first bits.

    `sizes`: layers that each sample has, int (n_samples,); all by default.
    """
    below = 2 * np.arange(layers, dtype=np.int8)[None, :, None]
    parts = np.clip(genotypes[:, None, :] - below, 0, 2)
    parts = np.where(genotypes[:, None, :] < 0, -1, parts)
    if sizes is not None:
        parts = np.where(np.arange(layers)[:, None] < sizes, parts, -1)
    return parts.astype(np.int8).reshape(len(genotypes), layers * genotypes.shape[1])
