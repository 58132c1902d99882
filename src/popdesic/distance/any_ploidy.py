"""Distances between samples of any ploidy: thermometer planes, and the products of diploids.

A genotype of ploidy p is the number of ALT alleles, 0 to p. Its thermometer has p bits: bit k says
whether the genotype is at least k. Two neighbouring bits are u and v of a diploid: such a pair is a
layer, with 0, 1 or 2 alleles, and the genotype is the sum of its layers. So every sum below is one
of products of layers that `Backend.bitgemm` forms already:

- sum |a - b| is the sum over layers of |h - h'|, because thermometers of two genotypes never cross;
- sum (a - b)^2 is that of the layers, and twice what a has in each layer times what b lacks in each
  layer before it, or b and a: of the two, one is zero.

Squares of two ploidies are sum a^2 + sum b^2 - 2 sum a b, with a b = sum of h_j h'_l over pairs of
layers and a^2 = sum of (2 k - 1) over the bits k that are set.

Samples of ploidy p and q are compared by frequencies, a / p and b / q, in units of 1 / m, m the
least common multiple: |a - b| by thermometers of m bits, bit k of which is bit ceil(k p / m).
Sums are exact integers, at most (360 360)^2 a site for ploidies up to 15.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..engine.backend import Backend
from ..engine.terms import ALLELES, PRODUCT, SQUARED, SQUARES, Planes, Product, Terms
from ..io.layers import layers_each, n_layers


class PloidyCounts(NamedTuple):
    """Sums of pairs of samples over jointly called sites, int64 (n_samples, n_samples)."""

    #: Of |a / p - b / q| or of its square, in units of 1 / `unit` or of its square.
    sums: np.ndarray
    called: np.ndarray
    #: Least common multiple of all ploidies.
    unit: int


def thermometer(genotypes: np.ndarray, ploidy: int) -> np.ndarray:
    """Bits of genotypes of one ploidy: bit k of a site says that the genotype is at least k.

    Parameters
    ----------
    genotypes : int8 array, (n_samples, n_sites)
        0 to `ploidy`; -1 where missing.

    Returns
    -------
    uint64 array, (n_samples, ploidy + 1, n_words)
        Planes of bits 1 to `ploidy`, zero where missing, then plane c, called. Little-endian, zero
        beyond the last site. Of ploidy 2 they are planes u, v and c of `engine.terms.Planes`.
    """
    n_samples, n_sites = genotypes.shape
    words = np.zeros((n_samples, ploidy + 1, -(-n_sites // 64)), np.uint64)
    flat = words.view(np.uint8)
    for plane in range(ploidy + 1):
        bits = genotypes > plane if plane < ploidy else genotypes >= 0
        packed = np.packbits(bits, axis=1, bitorder="little")
        flat[:, plane, : packed.shape[1]] = packed
    return words


def ploidy_counts(
    genotypes: np.ndarray, ploidy: np.ndarray, backend: Backend, *, squared: bool
) -> PloidyCounts:
    """Compare all samples by their allele frequencies at jointly called sites.

    Parameters
    ----------
    genotypes : int8 array, (n_samples, n_sites)
        ALT alleles, 0 to the sample's ploidy; -1 where missing.
    ploidy : int array, (n_samples,)
        From 1 to 15 (`io.layers.MOST_PLOIDY`).
    squared : bool
        Sums of squared differences, or of differences.

    Returns
    -------
    PloidyCounts
    """
    n_samples, n_sites = genotypes.shape
    kinds = np.unique(ploidy).tolist()
    unit = math.lcm(*kinds)
    rows = {p: np.flatnonzero(ploidy == p) for p in kinds}
    words = {p: thermometer(genotypes[rows[p]], p) for p in kinds}
    side = {p: (rows[p], words[p]) for p in kinds}
    found = _sums_of_kinds(side, None, (n_samples, n_samples), n_sites, unit, backend, squared)
    return PloidyCounts(found[0], found[1], unit)


def _sums_of_kinds(
    a: dict[int, tuple[np.ndarray, np.ndarray]],
    b: dict[int, tuple[np.ndarray, np.ndarray]] | None,
    shape: tuple[int, int],
    n_sites: int,
    unit: int,
    backend: Backend,
    squared: bool,
) -> np.ndarray:
    """Sums in units of 1 / `unit`, or of its square, and called sites: int64 (2, *shape).

    `a`, `b`: by ploidy, numbers of the samples and their thermometers; None: a with itself.
    """
    found = np.zeros((2, *shape), np.int64)
    compare = sum_squares if squared else sum_differences
    for p, (rows, words) in a.items():
        for q, (columns, others) in (b or a).items():
            if b is None and q < p:
                continue
            same = b is None and p == q
            block = compare(words, None if same else others, n_sites, backend)
            block[0] *= (unit // math.lcm(p, q)) ** (2 if squared else 1)
            found[:, rows[:, None], columns] = block
            if b is None:
                found[:, columns[:, None], rows] = block.transpose(0, 2, 1)
    return found


def ploidy_distances(
    counts: PloidyCounts, *, metric: str, most: int, n_sites: int, min_called: int
) -> np.ndarray:
    """Distances of samples of any ploidy, scaled to all sites as `metric_distances` scales them.

    With f, g the frequencies of ALT in two samples, ``ibs`` is the mean of |f - g| over jointly
    called sites, ``manhattan`` the sum of P |f - g|, ``euclidean`` the root of that of P² (f - g)².
    For diploids alone they are those of `metric_distances`.

    Parameters
    ----------
    counts : PloidyCounts
        Squared for ``euclidean`` alone.
    metric : {'euclidean', 'manhattan', 'ibs'}
    most : int
        The largest ploidy, P.

    Returns
    -------
    float64 array, (n_samples, n_samples)
        Infinite where fewer than `min_called` sites are jointly called; zero on the diagonal.
    """
    sums, called = counts.sums.astype(np.float64), counts.called
    with np.errstate(divide="ignore", invalid="ignore"):
        if metric == "euclidean":
            distances = np.sqrt(sums * most**2 * n_sites / (counts.unit**2 * called))
        elif metric == "manhattan":
            distances = sums * most * n_sites / (counts.unit * called)
        else:
            distances = sums / (counts.unit * called)
    distances[called < min_called] = np.inf
    np.fill_diagonal(distances, 0.0)
    return distances


def _layers(words: np.ndarray, n_sites: int, bits: int) -> list[Planes]:
    """Thermometers of so many bits, a multiple of the ploidy, as layers of two bits."""
    ploidy = words.shape[1] - 1
    own = [-(-k * ploidy // bits) - 1 for k in range(1, bits + 1)]
    layers = []
    for first in range(0, bits, 2):
        planes = np.zeros((len(words), 3, words.shape[2]), np.uint64)
        for place, plane in enumerate(own[first : first + 2]):
            planes[:, place] = words[:, plane]
        planes[:, 2] = words[:, ploidy]
        layers.append(Planes(planes, n_sites))
    return layers


def planes_of_layers(layers: Planes, ploidy: int) -> np.ndarray:
    """`thermometer` of the samples of a study of polyploids, from the planes of their layers.

    Parameters
    ----------
    layers : Planes
        Of all samples, layer by layer (`io.layers`).

    Returns
    -------
    uint64 array, (n_samples, ploidy + 1, n_words)
    """
    words = np.asarray(layers.with_mask().words)
    return _planes_of_parts(words.reshape(n_layers(ploidy), -1, *words.shape[1:]), ploidy)


def _planes_of_parts(parts: np.ndarray, ploidy: int) -> np.ndarray:
    """`planes_of_layers` of words (n_layers, n_samples, 3, n_words)."""
    called = parts[0][:, 2:]
    # As many layers as alleles have each bit twice.
    bits = parts[:, :, :1] if len(parts) == ploidy else parts[:, :, :2]
    planes = bits.transpose(1, 0, 2, 3).reshape(parts.shape[1], ploidy, -1)
    return np.concatenate([planes & called, called], axis=1)


def polyploid_counts(
    a: Planes, b: Planes | None, ploidy: int, backend: Backend, *, differences: bool
) -> dict[str, np.ndarray]:
    """What a tile of polyploids has: as `tiles.pairwise_counts`, of jointly called sites.

    Parameters
    ----------
    a, b : Planes
        Layers of m and n samples. ``b=None`` compares a with itself.
    differences : bool
        Add `ibs0`, which is sum |d| (|d| - 1) / 2 of the differences d between genotypes: of
        diploids the number of opposite homozygotes. So sum |d| is squared - 2 ibs0.

    Returns
    -------
    dict of int64 arrays, (m, n)
    """
    words = [None if one is None else planes_of_layers(one, ploidy) for one in (a, b)]
    squared, called = sum_squares(*words, a.n_sites, backend)
    counts = {"squared": squared, "called": called}
    if differences:
        counts["ibs0"] = (squared - sum_differences(*words, a.n_sites, backend)[0]) // 2
    return counts


def mixed_counts(
    a: Planes,
    b: Planes | None,
    ploidy: tuple[np.ndarray, np.ndarray],
    kinds: Sequence[int],
    backend: Backend,
    *,
    differences: bool,
) -> dict[str, np.ndarray]:
    """`polyploid_counts` of samples of several ploidies, in units of 1 over their common multiple.

    Parameters
    ----------
    a, b : Planes
        Layers of m and n samples (`io.layers`). ``b=None`` compares a with itself.
    ploidy : int arrays, (m,) and (n,)
    kinds : sequence of int
        Ploidies of the study.
    differences : bool
        As in `polyploid_counts`.

    Returns
    -------
    dict of int64 arrays, (m, n)
    """

    def by_kind(planes: Planes, own: np.ndarray) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        words = np.asarray(planes.with_mask().words)
        parts, found = words.reshape(-1, len(own), *words.shape[1:]), {}
        for p in np.unique(own).tolist():
            rows = np.flatnonzero(own == p)
            layers = int(layers_each([p], kinds)[0])
            found[p] = rows, _planes_of_parts(parts[:layers, rows], p)
        return found

    unit, shape = math.lcm(*kinds), (len(ploidy[0]), len(ploidy[1]))
    sides = by_kind(a, ploidy[0]), None if b is None else by_kind(b, ploidy[1])
    given = *sides, shape, a.n_sites, unit, backend
    squared, called = _sums_of_kinds(*given, True)
    counts = {"squared": squared, "called": called}
    if differences:
        counts["ibs0"] = (squared - _sums_of_kinds(*given, False)[0]) // 2
    return counts


def sum_differences(
    a: np.ndarray, b: np.ndarray | None, n_sites: int, backend: Backend
) -> np.ndarray:
    """Sums of |a / p - b / q| in units of 1 / lcm(p, q), and called sites: int64 (2, m, n)."""
    bits = a.shape[1] - 1 if b is None else math.lcm(a.shape[1] - 1, b.shape[1] - 1)
    rows = _layers(a, n_sites, bits)
    columns = [None] * len(rows) if b is None else _layers(b, n_sites, bits)
    found = backend.bitgemm(rows[0], columns[0], ALLELES)
    for row, column in zip(rows[1:], columns[1:], strict=True):
        found[0] += backend.bitgemm(row, column, ALLELES)[0]
    return found


def sum_squares(a: np.ndarray, b: np.ndarray | None, n_sites: int, backend: Backend) -> np.ndarray:
    """Sums of (a / p - b / q)^2 in units of 1 / lcm(p, q)^2, and called sites: int64 (2, m, n)."""
    p = a.shape[1] - 1
    q = p if b is None else b.shape[1] - 1
    rows = _layers(a, n_sites, p)
    columns = None if b is None else _layers(b, n_sites, q)
    return (
        _squares(rows, columns, backend)
        if p == q
        else _squares_of_two(rows, columns, p, q, backend)
    )


def _squares(rows: list[Planes], columns: list[Planes] | None, backend: Backend) -> np.ndarray:
    """Of one ploidy: squares of layers, and twice the products of their differences.

    A layer has alleles only where all before it are full. So of the product of the differences in
    layers j < k is left what one sample has in k, times what the other one lacks in j.
    """
    found = backend.bitgemm(rows[0], columns and columns[0], SQUARED)
    for k in range(1, len(rows)):
        found[0] += backend.bitgemm(rows[k], columns and columns[k], SQUARES)[0]
        for j in range(k):
            beyond = backend.bitgemm(rows[k], _lacking((columns or rows)[j]), PRODUCT)[0]
            found[0] += 2 * beyond
            if columns:
                beyond = backend.bitgemm(_lacking(rows[j]), columns[k], PRODUCT)[0].T
            found[0] += 2 * beyond.T
    return found


def _lacking(layer: Planes) -> Planes:
    """Alleles that a layer of two has not, as a layer."""
    words = layer.words[:, [1, 0, 2]]
    words[:, :2] = ~words[:, :2] & words[:, 2:]
    return Planes(words, layer.n_sites)


def _squares_of_two(
    rows: list[Planes], columns: list[Planes], p: int, q: int, backend: Backend
) -> np.ndarray:
    """Of two ploidies: squares of each sample, less twice the products of all layers."""
    shape = len(rows[0].words), len(columns[0].words)
    product, squares_a, squares_b, called = np.zeros((4, *shape), np.int64)
    for j, row in enumerate(rows):
        for k, column in enumerate(columns):
            terms = layer_products(j, k)
            parts = backend.bitgemm(row, column, terms)
            of = dict(zip(terms.outputs, parts, strict=True))
            product += of["product"]
            squares_a += of.get("squares_a", 0)
            squares_b += of.get("squares_b", 0)
            called += of.get("called", 0)
    common = math.lcm(p, q)
    of_a, of_b = common // p, common // q
    return np.stack([of_a**2 * squares_a + of_b**2 * squares_b - 2 * of_a * of_b * product, called])


def layer_products(j: int, k: int) -> Terms:
    """Products of layers j and k: their alleles, and squares and called sites in the first ones.

    Bits 2 j + 1 and 2 j + 2 of a genotype add 4 j + 1 and 4 j + 3 to its square.
    """
    outputs = {"product": [(2, "u", "u"), (2, "v", "v"), (-1, "e", "e")]}
    if k == 0:
        outputs["squares_a"] = [(4 * j + 1, "u", "c"), (4 * j + 3, "v", "c")]
    if j == 0:
        outputs["squares_b"] = [(4 * k + 1, "c", "u"), (4 * k + 3, "c", "v")]
    if j == k == 0:
        outputs["called"] = [(1, "c", "c")]
    named = enumerate(outputs.values())
    return Terms(tuple(outputs), tuple(Product(o, *one) for o, some in named for one in some))
