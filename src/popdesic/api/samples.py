"""Samples against samples: distances, kinship, principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compare.kinship import king_robust, kinship_counts
from ..distance.matrix import distances_of_counts
from ..distance.tiles import pairwise_counts
from ..embedding.axis_sites import alt_frequency
from ..embedding.pca import axes_of
from ..embedding.relationship import relationship_among, relationship_to
from ..engine.select import backend_for
from ..engine.threads import usable_cpus
from ..io.errors import UserError
from .arrays import ArrayLike, genotype_array, given_back, host_array, require_choice
from .packing import PackedGenotypes, packed

METRICS = ("euclidean", "manhattan", "ibs", "normalized")


def pairwise_distance(
    genotypes: ArrayLike | PackedGenotypes,
    *,
    metric: str = "euclidean",
    missing: str = "pairwise",
    min_called: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> ArrayLike:
    """Genetic distances between all samples.

    With S the sum of (a - b)² over the sites that count and I the number of opposite homozygotes
    among them:

    - ``euclidean``: sqrt(S · n_sites / called);
    - ``manhattan``: (S - 2 I) · n_sites / called, in alleles, what PLINK 1.9 prints for
      ``--distance flat-missing``;
    - ``ibs``: (S - 2 I) / (2 · called), one minus the share of alleles identical by state;
    - ``normalized``: the Euclidean distance after each sample is divided by the sum of its own
      genotypes over the sites that count; infinite where that sum is 0.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    missing : {'pairwise', 'imputed'}
        ``pairwise``: a site counts for two samples where both are called, and the sum is scaled
        to all sites; such distances can break the triangle inequality. ``imputed``: all sites
        count, and a missing genotype is the site's most frequent one (of an array), or what
        `pack` filled in.
    min_called : int
        Pairs of samples with fewer sites that count are infinitely far.
    device : {'auto', 'cpu', 'gpu'}
        ``auto`` takes a GPU where one can be used. The numbers are the same: sums are exact
        integers.
    threads : int, optional
        Of the CPU; all by default.

    Returns
    -------
    float64 array, (n_samples, n_samples)
        Symmetric, zero diagonal. A CuPy array where a GPU computed it from a CuPy array (which
        is packed in host memory first), else a numpy array.

    Raises
    ------
    ValueError
        An argument that cannot be used.
    RuntimeError
        `device` is ``gpu`` and none can be used.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 1, 2, 0], [0, 1, 0, 0], [2, 1, 0, -1]]
    >>> popdesic.pairwise_distance(genotypes, metric="manhattan", device="cpu")
    array([[0.        , 2.        , 5.33333333],
           [2.        , 0.        , 2.66666667],
           [5.33333333, 2.66666667, 0.        ]])
    """
    require_choice(metric, METRICS, "metric")
    require_choice(missing, ("pairwise", "imputed"), "missing")
    planes = packed(genotypes, fill="mode" if missing == "imputed" else None)
    if missing == "imputed" and not (planes.filled or planes.complete):
        raise ValueError(
            "missing is 'imputed', but the packed genotypes have missing ones with nothing filled "
            "in; pack them with fill='mode'."
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
    return given_back(distances, genotypes, backend)


def kinship(
    genotypes: ArrayLike | PackedGenotypes,
    *,
    min_called: int = 1,
    device: str = "auto",
    threads: int | None = None,
) -> ArrayLike:
    """KING-robust kinship of all samples (Manichaikul et al. 2010, equation 11).

    About 0.5 for the same person or identical twins, 0.25 for first-degree relatives, 0.125 for
    the second degree, 0 for unrelated people of one population, negative across populations.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`). A
        site counts for two samples where both are called; what was filled in does not count.
    min_called : int
        Pairs of samples with fewer such sites get NaN.
    device, threads
        As in `pairwise_distance`.

    Returns
    -------
    float64 array, (n_samples, n_samples)
        Symmetric; NaN where one of the two has no heterozygous site among those that count. A
        CuPy array as in `pairwise_distance`.

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
    planes = packed(genotypes)
    backend = backend_for(device, threads)
    counts = kinship_counts(planes, None, backend)
    found = king_robust(counts)
    found[counts["called"] < min_called] = np.nan
    return given_back(found, genotypes, backend)


class Components(NamedTuple):
    """What `pca` gives.

    Attributes
    ----------
    scores : float64 array, (n_samples, k)
    explained : float64 array, (k,)
        Share of the variance of the samples that define the axes.
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
    """Principal components of genotypes, with axes from all samples or from some.

    A genotype g at a site of ALT frequency p counts (g - 2p) / sqrt(2p (1 - p)) (Patterson, Price
    and Reich 2006). The axes are the eigenvectors of the founders' relationship matrix; whoever is
    no founder is projected onto them by OADP (Zhang, Dey and Lee 2020), which does not shrink, and
    changes neither them nor anybody's scores. All sites count: leave out those in LD first.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing: a product of two
        samples sums over sites at which both are called, and is divided by their number.
    n_components : int or 'auto'
        At most; fewer where the founders have fewer. ``auto`` gives as many as are significant by
        the test of Tracy and Widom at 1 % (Patterson, Price and Reich 2006; wants unrelated
        founders), and at least two.
    founders : bool array-like (n_samples,), optional
        Who defines the axes: all by default.
    af : array-like (n_sites,), optional
        ALT frequencies; by default those of the founders' called genotypes. Sites of frequency 0
        or 1 are left out.
    threads : int, optional
        All CPUs by default; the numbers are the same to the last bit for any number.

    Returns
    -------
    Components
        ``scores``, ``explained``: numpy arrays; computed on the CPU. Of each component the sign
        makes the largest absolute score of a founder positive. A founder's scores are U sqrt(L) of
        the decomposition U L U'; `plink2 --pca` prints U.

    Raises
    ------
    ValueError
        An argument that cannot be used, or founders that do not differ.

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
    if n_components != "auto" and (isinstance(n_components, str) or n_components < 1):
        raise ValueError(f"n_components is {n_components}; give at least 1, or 'auto'.")
    axes = np.ones(n_samples, bool) if founders is None else host_array(founders)
    if axes.shape != (n_samples,) or axes.dtype != bool:
        raise ValueError(
            f"founders are {axes.dtype} of the shape {axes.shape}; give True or False for each of "
            f"the {n_samples} samples."
        )
    if axes.sum() < 2:
        raise ValueError(f"{int(axes.sum())} founders define no axes; give at least two.")
    frequency = alt_frequency(array[axes].T) if af is None else _given_frequency(af, n_sites)
    threads = threads or usable_cpus()

    def read_axes(first: int, last: int) -> np.ndarray:
        return array[axes, first:last].T

    def read(first: int, last: int) -> np.ndarray:
        return array[:, first:last].T

    among = relationship_among(read_axes, [int(axes.sum())], frequency, threads)
    try:
        found, _ = axes_of(among, n_components)
    except UserError:  # the only one: there is no variance
        raise ValueError(
            f"genotypes of the {int(axes.sum())} founders do not differ, so they have no "
            "components; give samples or sites that vary."
        ) from None
    rows, own = relationship_to(read, [n_samples], axes, frequency, threads)
    return Components(found.place(axes, rows, own), found.explained[: found.k])


def _given_frequency(af: ArrayLike, n_sites: int) -> np.ndarray:
    found = host_array(af)
    if found.shape != (n_sites,) or found.dtype.kind not in "iuf":
        raise ValueError(
            f"af is {found.dtype} of the shape {found.shape}; give an ALT frequency for each of "
            f"the {n_sites} sites."
        )
    wrong = ~((found >= 0) & (found <= 1))
    if wrong.any():
        site = int(np.argmax(wrong))
        raise ValueError(f"af[{site}] is {found[site]}; a frequency is from 0 to 1.")
    return found.astype(np.float64)
