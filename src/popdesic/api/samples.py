"""Comparisons between samples: distances, kinship, principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..components.pca import axes_of
from ..components.relationship import alt_frequency, relationship_among, relationship_to
from ..core.errors import UserError
from ..core.threads import usable_cpus
from ..distance.any_ploidy import ploidy_counts, ploidy_distances
from ..distance.matrix import distances_of_counts
from ..distance.tiles import pairwise_counts
from ..engine.select import backend_for
from ..relatives.kinship import king_robust, kinship_counts
from ..relatives.pc_relate import ancestry_of, pc_relate
from .arrays import (
    ArrayLike,
    frequency_array,
    genotype_array,
    host_array,
    ploidy_array,
    require_choice,
    thread_count,
    to_device_of,
    whole_number,
)
from .packing import PackedGenotypes, packed

METRICS = ("euclidean", "manhattan", "ibs", "normalized")


def pairwise_distance(
    genotypes: ArrayLike | PackedGenotypes,
    *,
    metric: str = "euclidean",
    missing: str = "pairwise",
    ploidy: ArrayLike | None = None,
    min_called: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> ArrayLike:
    """Genetic distances between all samples.

    For two samples with genotypes a and b, let `called` be the number of sites that count (see
    `missing`), S the sum of (a - b)² over these sites and I their number of opposite homozygotes:

    - ``euclidean``: sqrt(S · n_sites / called);
    - ``manhattan``: (S - 2 I) · n_sites / called, in alleles, as printed by PLINK 1.9 with
      ``--distance flat-missing``;
    - ``ibs``: (S - 2 I) / (2 · called), one minus the proportion of alleles identical by state;
    - ``normalized``: the Euclidean distance after dividing each sample by the sum of its own
      genotypes over the sites that count; infinite if that sum is 0.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    missing : {'pairwise', 'imputed'}
        ``pairwise``: a site counts if both samples are called there, and sums are scaled to all
        sites; such distances can violate the triangle inequality. ``imputed``: all sites count, and
        missing genotypes are those that `pack` filled in, or in an array, each site's most frequent
        genotype.
    ploidy : int or int array-like (n_samples,), optional
        From 1 to 15, of all samples or of each; then genotypes, an array, are 0 to the ploidy.
        Samples are compared by the frequencies of ALT, f = a / p and g = b / q: with P the largest
        ploidy, ``manhattan`` sums P |f - g|, ``euclidean`` P² (f - g)², and ``ibs`` is the mean of
        |f - g|. With 2, distances are those of diploids. Not with ``normalized`` or ``imputed``.
    min_called : int
        Pairs of samples with fewer sites that count get an infinite distance.
    device : {'auto', 'cpu', 'gpu'}
        ``auto`` uses a GPU if there is a usable one. Results do not depend on the device, because
        all sums are exact integers.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    float64 array, (n_samples, n_samples)
        Symmetric, zero diagonal. A CuPy array if a GPU computed it from a CuPy array (which is
        packed in host memory first), else a numpy array.

    Raises
    ------
    ValueError
        An argument is not valid.
    RuntimeError
        `device` is ``gpu`` and there is no usable GPU.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 1, 2, 0], [0, 1, 0, 0], [2, 1, 0, -1]]
    >>> popdesic.pairwise_distance(genotypes, metric="manhattan", device="cpu")
    array([[0.        , 2.        , 5.33333333],
           [2.        , 0.        , 2.66666667],
           [5.33333333, 2.66666667, 0.        ]])
    >>> popdesic.pairwise_distance([[0, 1], [3, 4]], ploidy=[1, 4], metric="ibs", device="cpu")
    array([[0.   , 0.375],
           [0.375, 0.   ]])
    """
    require_choice(metric, METRICS, "metric")
    require_choice(missing, ("pairwise", "imputed"), "missing")
    min_called, threads = whole_number(min_called, "min_called", 0), thread_count(threads)
    if ploidy is not None:
        return _of_any_ploidy(genotypes, ploidy, metric, missing, min_called, device, threads)
    planes = packed(genotypes, fill="mode" if missing == "imputed" else None)
    if missing == "imputed" and not (planes.filled or planes.complete):
        raise ValueError(
            "missing is 'imputed', but in the packed genotypes missing ones are not filled in; "
            "pack them with fill='mode'."
        )
    backend = backend_for(device, threads)
    counts = pairwise_counts(planes, None, backend, metric=metric, missing=missing)
    distances = distances_of_counts(
        counts,
        np.arange(planes.n_samples),
        metric=metric,
        n_sites=planes.n_sites,
        min_called=max(min_called, 1),
    )
    return to_device_of(genotypes, distances, backend)


def _of_any_ploidy(genotypes, ploidy, metric, missing, min_called, device, threads) -> ArrayLike:
    if isinstance(genotypes, PackedGenotypes):
        raise ValueError("packed genotypes are those of diploids; give an array with ploidy.")
    if metric == "normalized" or missing == "imputed":
        raise ValueError(
            "with ploidy, metric is 'euclidean', 'manhattan' or 'ibs' and missing is 'pairwise'; "
            "leave ploidy out for diploids."
        )
    array = genotype_array(genotypes, ploidy)
    of_samples = ploidy_array(ploidy, len(array))
    backend = backend_for(device, threads)
    counts = ploidy_counts(array, of_samples, backend, squared=metric == "euclidean")
    distances = ploidy_distances(
        counts,
        metric=metric,
        most=int(of_samples.max()),
        n_sites=array.shape[1],
        min_called=max(min_called, 1),
    )
    return to_device_of(genotypes, distances, backend)


KINSHIPS = ("king", "pc-relate")


def kinship(
    genotypes: ArrayLike | PackedGenotypes,
    *,
    method: str = "king",
    scores: ArrayLike | None = None,
    founders: ArrayLike | None = None,
    min_called: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> ArrayLike:
    """Kinship of all pairs of samples: KING-robust, or PC-Relate for people of any ancestry.

    About 0.5 for the same person or identical twins, 0.25 for first-degree and 0.125 for
    second-degree relatives, 0 for unrelated people. KING-robust (Manichaikul et al. 2010, equation
    11) is for people of one population: it is negative between populations, and people whose
    parents are of two populations look related. PC-Relate (Conomos et al. 2016) compares each
    person with the genotypes expected for its principal components.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`). A
        site counts for two samples if both are called there; genotypes filled in are not called.
        PC-Relate takes an array only.
    method : {'king', 'pc-relate'}
    scores : array-like, (n_samples, k)
        For PC-Relate: the principal components that describe ancestry (see `pca`), and no more.
    founders : bool array-like (n_samples,), optional
        For PC-Relate: unrelated people, whose genotypes give the expected ones; all by default.
    min_called : int
        Pairs of samples with fewer sites that count get NaN.
    device, threads
        As in `pairwise_distance`. PC-Relate is computed on the CPU.

    Returns
    -------
    float64 array, (n_samples, n_samples)
        Symmetric. KING-robust is NaN if one of the two samples has no heterozygous site among those
        that count, and a CuPy array as in `pairwise_distance`. PC-Relate is NaN if no site counts,
        and on its diagonal are (1 + inbreeding) / 2, and 1/2 for people who are heterozygous beyond
        expectation, whose kinships are scaled (see `popdesic.relatives.pc_relate`).

    Raises
    ------
    ValueError, RuntimeError
        As `pairwise_distance`.

    Examples
    --------
    >>> import popdesic
    >>> popdesic.kinship([[0, 1, 2, 1], [0, 1, 1, 1], [2, 1, 0, 0]], device="cpu")
    array([[ 0.5  ,  0.375, -1.75 ],
           [ 0.375,  0.5  , -1.   ],
           [-1.75 , -1.   ,  0.5  ]])
    """
    require_choice(method, KINSHIPS, "method")
    min_called, threads = whole_number(min_called, "min_called", 0), thread_count(threads)
    if method == "pc-relate":
        return _pc_relate(genotypes, scores, founders, min_called, threads)
    if scores is not None or founders is not None:
        raise ValueError("scores and founders are for PC-Relate; give method='pc-relate'.")
    planes = packed(genotypes)
    backend = backend_for(device, threads)
    counts = kinship_counts(planes, None, backend)
    found = king_robust(counts)
    found[counts["called"] < min_called] = np.nan
    return to_device_of(genotypes, found, backend)


def _pc_relate(genotypes, scores, founders, min_called: int, threads: int | None) -> np.ndarray:
    if isinstance(genotypes, PackedGenotypes) or scores is None:
        raise ValueError(
            "PC-Relate needs an array of genotypes and the scores of its samples; give "
            "scores=popdesic.pca(genotypes).scores."
        )
    array = genotype_array(genotypes)
    axes = host_array(scores)
    numbers = axes.dtype.kind in "iuf" and axes.ndim == 2 and axes.shape[1] > 0
    if not numbers or len(axes) != len(array) or not np.isfinite(axes).all():
        raise ValueError(
            f"scores are {axes.dtype} of the shape {axes.shape}; give finite components, "
            f"(n_samples, k), of the {len(array)} samples."
        )
    fitted = _mask_of(founders, len(array))
    ancestry = ancestry_of(axes.astype(np.float64), fitted, axes.shape[1])

    def read(first: int, last: int) -> np.ndarray:
        return array[:, first:last].T

    found = pc_relate(read, array.shape[1], ancestry, backend_for("cpu", threads))
    result = found.matrix()
    if min_called > 1:
        called = (array >= 0).astype(np.float32)
        result[called @ called.T < min_called] = np.nan
    return result


def _mask_of(founders: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Founders as a bool array; all samples if none are given."""
    found = np.ones(n_samples, bool) if founders is None else host_array(founders)
    if found.shape != (n_samples,) or found.dtype != bool:
        raise ValueError(
            f"founders are {found.dtype} of the shape {found.shape}; give one True or False for "
            f"each of the {n_samples} samples."
        )
    if found.sum() < 2:
        raise ValueError(f"{int(found.sum())} founders cannot define axes; give at least two.")
    return found


class Components(NamedTuple):
    """The result of `pca`.

    Attributes
    ----------
    scores : float64 array, (n_samples, k)
    explained : float64 array, (k,)
        Share of variance explained, among the samples that define the axes.
    """

    scores: np.ndarray
    explained: np.ndarray


def pca(
    genotypes: ArrayLike,
    *,
    n_components: int | str = 10,
    founders: ArrayLike | None = None,
    af: ArrayLike | None = None,
    threads: int | None = None,
) -> Components:
    """Principal components of genotypes, with axes defined by all samples or by some of them.

    A genotype g at a site with ALT frequency p is standardised to (g - 2p) / sqrt(2p (1 - p))
    (Patterson, Price and Reich 2006). The axes are the eigenvectors of the founders' relationship
    matrix. All other samples are projected onto them by OADP (Zhang, Dey and Lee 2020), which does
    not shrink, and change neither the axes nor the scores of other samples; what they have from
    relatives among the founders lies where these lie. All sites count: leave out those in LD first.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing. The relationship of
        two samples is the mean product over sites at which both are called.
    n_components : int or 'auto'
        Largest number of components; fewer are returned if the founders have fewer. ``auto`` gives
        as many as are significant by the test of Tracy and Widom at 1 % (Patterson, Price and Reich
        2006; the founders must be unrelated), and at least two.
    founders : bool array-like (n_samples,), optional
        Samples that define the axes; all by default.
    af : array-like (n_sites,), optional
        ALT frequencies; by default those of the founders' called genotypes. Sites with frequency 0
        or 1 are left out.
    threads : int, optional
        Number of CPU threads; all CPUs by default. Results do not depend on it, to the last bit.

    Returns
    -------
    Components
        ``scores`` and ``explained``, numpy arrays computed on the CPU. The sign of each component
        makes the founders' score of largest absolute value positive. With the relationship matrix
        U L U', the founders' scores are U sqrt(L); `plink2 --pca` prints U.

    Raises
    ------
    ValueError
        An argument is not valid, or the founders do not differ.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 0, 2, 2], [0, 1, 2, 2], [2, 2, 0, 0], [2, 2, 1, 0]]
    >>> found = popdesic.pca(genotypes, n_components=1)
    >>> found.scores[:, 0].round(3)
    array([ 1.427,  1.102, -1.427, -1.102])
    >>> found.explained.round(3)
    array([0.938])
    """
    array = genotype_array(genotypes)
    n_samples, n_sites = array.shape
    whole = isinstance(n_components, (int, np.integer)) and not isinstance(n_components, bool)
    auto = isinstance(n_components, str) and n_components == "auto"
    if not auto and not (whole and n_components >= 1):
        raise ValueError(f"n_components is {n_components!r}; give at least 1, or 'auto'.")
    axes = _mask_of(founders, n_samples)
    frequency = alt_frequency(array[axes].T) if af is None else frequency_array(af, n_sites)
    threads = thread_count(threads) or usable_cpus()

    def read_axes(first: int, last: int) -> np.ndarray:
        return array[axes, first:last].T

    def read(first: int, last: int) -> np.ndarray:
        return array[:, first:last].T

    among = relationship_among(read_axes, [int(axes.sum())], frequency, threads)
    try:
        found, _ = axes_of(among, n_components)
    except UserError:  # its only cause: there is no variance
        raise ValueError(
            f"genotypes of the {int(axes.sum())} founders do not differ, so there are no "
            "components; give samples or sites that vary."
        ) from None
    rows, own = relationship_to(read, [n_samples], axes, frequency, threads)
    return Components(found.place(axes, rows, own), found.explained[: found.k])
