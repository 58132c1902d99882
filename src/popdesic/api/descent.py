"""Segments of identity by descent."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.threads import usable_cpus
from ..engine.select import cpu_backend
from ..engine.terms import Planes
from ..ibd.cohorts import segments_table
from ..ibd.definition import SegmentLimits
from ..ibd.segments import SearchGenome, segments_between
from ..ibd.windows import FEWEST_SAMPLES, genetic_sites, require_density
from .arrays import (
    ArrayLike,
    frequency_array,
    host_array,
    require_limits,
    site_table,
    thread_count,
)
from .packing import PackedGenotypes, packed, site_bits


def ibd_segments(
    genotypes: ArrayLike | PackedGenotypes,
    positions: ArrayLike,
    contigs: ArrayLike | None = None,
    *,
    centimorgans: ArrayLike | None = None,
    af: ArrayLike | None = None,
    threads: int | None = None,
    **limits: float,
) -> pd.DataFrame:
    """Segments that people share by descent, from unphased genotypes.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    positions : array-like of int, (n_sites,)
        In base pairs, rising within a contig.
    contigs : array-like of str, (n_sites,), optional
        Contig of each site, those of one contig next to each other; by default all are on one.
    centimorgans : array-like of float, (n_sites,), optional
        Genetic positions, not falling within a contig; by default a megabase is a centimorgan.
    af : array-like of float, (n_sites,), optional
        ALT frequencies in the samples' population. By default those of the samples themselves,
        which takes at least 8 of them: with fewer, what two share looks common.
    threads : int, optional
        Number of CPU threads; all CPUs by default.
    **limits
        What a segment is: `min_cm` (7), `min_ibd2_cm` (2), `min_lod` (3), `error_rate` (0.001),
        `tolerance` (1), `window` (0: by density), `drop` (7), `most` (candidates, 100 000 000).

    Returns
    -------
    DataFrame
        One row a segment, by pair and place: `sample1`, `sample2` (rows in `genotypes`),
        `contig`, `start`, `end`, `cM`, `LOD`, `ibd` (1; 2 for a stretch of the segment above with
        both alleles shared), `sites` called in both, `errors` that contradict it.

    Raises
    ------
    ValueError
        An argument is not valid, the sites are too sparse for `min_cm`, or the samples too few.

    Examples
    --------
    Two people with the same genotypes at 2 000 sites along 20 cM share all of it:

    >>> import numpy as np
    >>> import popdesic
    >>> rng = np.random.default_rng(1)
    >>> genotypes = rng.integers(0, 2, (9, 2_000)) + rng.integers(0, 2, (9, 2_000))
    >>> genotypes[1] = genotypes[0]
    >>> found = popdesic.ibd_segments(genotypes, 10_000 * np.arange(1, 2_001))
    >>> found[["sample1", "sample2", "start", "end", "ibd"]].values.tolist()
    [[0, 1, 10000, 20000000, 1], [0, 1, 10000, 20000000, 2]]
    """
    planes, threads = packed(genotypes), thread_count(threads)
    sites = site_table(planes.n_sites, positions, contigs)
    require_limits(limits, SegmentLimits, "segments")
    wanted, threads = SegmentLimits(**limits), threads or usable_cpus()
    cm = None
    if centimorgans is not None:
        cm = host_array(centimorgans)
        numbers = cm.dtype.kind in "iuf" and cm.shape == (planes.n_sites,)
        if not numbers or not np.isfinite(cm).all():
            raise ValueError(
                f"centimorgans are {cm.dtype} of the shape {cm.shape}; give a finite number for "
                f"each of the {planes.n_sites} sites."
            )
        cm = cm.astype(np.float64)
        same = sites.chrom.to_numpy()[1:] == sites.chrom.to_numpy()[:-1]
        falls = np.flatnonzero((np.diff(cm) < 0) & same)
        if falls.size:
            site = int(falls[0]) + 1
            raise ValueError(f"centimorgans[{site}] is less than the one before; sort the sites.")
    if af is not None:
        frequency = frequency_array(af, planes.n_sites)
    elif planes.n_samples < FEWEST_SAMPLES:
        raise ValueError(
            f"genotypes are of {planes.n_samples} samples, but ALT frequencies need at least "
            f"{FEWEST_SAMPLES}; give af (frequencies in their population), or more samples."
        )
    else:
        frequency = _own_frequency(planes, threads)
    mapped = genetic_sites(sites, cm)
    try:
        require_density(mapped, frequency, wanted.error_rate, wanted.min_cm, study=False)
    except UserError as error:
        raise ValueError(str(error)) from None
    genome = SearchGenome.of(mapped, frequency, wanted)
    found = segments_between(
        Planes(planes.words, planes.n_sites), None, genome, wanted, cpu_backend(threads)
    )
    rows = list(range(planes.n_samples))
    return segments_table(found, rows, rows, mapped)


def _own_frequency(planes: PackedGenotypes, threads: int) -> np.ndarray:
    """ALT frequencies of called genotypes, float64 (n_sites,); NaN where none is called."""
    from ..population.plane_counts_cpu import count_by_site

    counts = np.zeros((3, 64 * planes.words.shape[2]), np.int32)
    everyone = np.arange(planes.n_samples)
    count_by_site(planes.words, site_bits(planes), everyone, counts, threads)
    counts = counts[:, : planes.n_sites]
    called = counts.sum(axis=0)
    found = (counts[1] + 2 * counts[2]) / np.maximum(2 * called, 1)
    found[called == 0] = np.nan
    return found
