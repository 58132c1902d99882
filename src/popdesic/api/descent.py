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
from ..ibd.haploid import haploid_pairs, morgan_steps
from ..ibd.segments import SearchGenome, segments_between
from ..ibd.windows import FEWEST_SAMPLES, genetic_sites, require_density
from .arrays import (
    ArrayLike,
    frequency_array,
    genotype_array,
    host_array,
    real_number,
    require_limits,
    site_table,
    thread_count,
    whole_number,
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
    cm = None if centimorgans is None else _map_positions(centimorgans, sites)
    if af is not None:
        frequency = frequency_array(af, planes.n_sites)
    else:
        _require_samples(planes.n_samples)
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


def haploid_ibd(
    genotypes: ArrayLike,
    positions: ArrayLike,
    contigs: ArrayLike | None = None,
    *,
    centimorgans: ArrayLike | None = None,
    af: ArrayLike | None = None,
    error_rate: float = 0.001,
    max_generations: float | None = None,
    iterations: int = 100,
    threads: int | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How much of its genome each pair of haploid samples shares by descent, and where.

    The hidden Markov model of hmmIBD (Schaffner et al. 2018, doi:10.1186/s12936-018-2349-7) is
    fitted to each pair of samples.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        The allele of each sample: 0 REF, 1 ALT; -1, NaN or a masked entry where missing.
    positions : array-like of int, (n_sites,)
        In base pairs, rising within a contig.
    contigs : array-like of str, (n_sites,), optional
        Contig of each site, those of one contig next to each other; by default all are on one.
    centimorgans : array-like of float, (n_sites,), optional
        Genetic positions, not falling within a contig; by default a megabase is a centimorgan.
    af : array-like of float, (n_sites,), optional
        ALT frequencies in the samples' population. By default those of the samples themselves,
        which takes at least 8 of them: with fewer, what two share looks common.
    error_rate : float
        Share of alleles that are read as the other one, from 1e-9 to 0.5.
    max_generations : float, optional
        Most generations of a fit, at least 1; no limit by default. A low one leaves out old
        segments, which sites in linkage disequilibrium look like.
    iterations : int
        Most iterations of a fit. Those of hmmIBD are 5 by default, with which a fit to distant
        relatives ends before it has settled.
    threads : int, optional
        Number of CPU threads; all CPUs by default. It does not change the tables.

    Returns
    -------
    pairs : DataFrame
        One row a pair: `sample1`, `sample2` (rows in `genotypes`); `sites` called in both, at which
        alleles `differ`; expected `fraction` of all sites that are identical by descent;
        `generations` of recombination; `LOD`, the log10 likelihood ratio of the fit and of no
        identity; `iterations` of the fit, the most where it did not settle. NaN where fewer than
        10 sites are called in both and have the minor allele in one at least; `iterations` are 0.
    segments : DataFrame
        Stretches of identity on the most likely path, by pair and place: `sample1`, `sample2`,
        `contig`, `start`, `end`, `cM`, `sites` called in both, and at which they `differ`. The
        first and last site of a stretch are its ends.

    Raises
    ------
    ValueError
        An argument is not valid, or the samples are too few.

    Examples
    --------
    Two clones among ten samples, and the cross of samples 2 and 3:

    >>> import numpy as np
    >>> import popdesic
    >>> alleles = np.random.default_rng(1).integers(0, 2, (10, 2_000))
    >>> alleles[1] = alleles[0]
    >>> alleles[4] = np.where(np.arange(2_000) < 1_500, alleles[2], alleles[3])
    >>> pairs, segments = popdesic.haploid_ibd(alleles, 50_000 * np.arange(1, 2_001))
    >>> close = pairs[pairs.fraction > 0.1]
    >>> close[["sample1", "sample2", "fraction"]].round(2).values.tolist()
    [[0.0, 1.0, 1.0], [2.0, 4.0, 0.75], [3.0, 4.0, 0.25]]
    """
    found = genotype_array(genotypes, 1)
    threads = thread_count(threads) or usable_cpus()
    sites = site_table(found.shape[1], positions, contigs)
    cm = sites.pos.to_numpy() / 1e6
    if centimorgans is not None:
        cm = _map_positions(centimorgans, sites)
    error_rate = real_number(error_rate, "error_rate", 1e-9, 0.5)
    most = np.inf
    if max_generations is not None:
        most = real_number(max_generations, "max_generations", 1)
    iterations = whole_number(iterations, "iterations")
    if af is not None:
        frequency = frequency_array(af, found.shape[1])
    else:
        _require_samples(len(found))
        called = (found >= 0).sum(axis=0)
        frequency = np.where(called, (found == 1).sum(axis=0) / np.maximum(called, 1), np.nan)
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy()
    result = haploid_pairs(
        np.require(found, requirements=["C", "W"]),
        *(frequency, morgan_steps(chrom, cm)),
        error_rate=error_rate,
        max_generations=most,
        iterations=iterations,
        threads=threads,
    )
    pairs = {"sample1": result.a, "sample2": result.b, "sites": result.called}
    pairs |= {"differ": result.differ, "fraction": result.fits[:, 0]}
    pairs |= {"generations": result.fits[:, 1], "LOD": result.fits[:, 2]}
    pairs |= {"iterations": np.nan_to_num(result.fits[:, 3]).astype(np.int64)}
    pair, first, last, called, differ = result.segments.T
    segments = {"sample1": result.a[pair], "sample2": result.b[pair], "contig": chrom[first]}
    segments |= {"start": pos[first], "end": pos[last], "cM": cm[last] - cm[first]}
    return pd.DataFrame(pairs), pd.DataFrame(segments | {"sites": called, "differ": differ})


def _map_positions(centimorgans: ArrayLike, sites: pd.DataFrame) -> np.ndarray:
    """Genetic positions that do not fall within a contig, float64 (n_sites,)."""
    cm = host_array(centimorgans)
    numbers = cm.dtype.kind in "iuf" and cm.shape == (len(sites),)
    if not numbers or not np.isfinite(cm).all():
        raise ValueError(
            f"centimorgans are {cm.dtype} of the shape {cm.shape}; give a finite number for "
            f"each of the {len(sites)} sites."
        )
    cm = cm.astype(np.float64)
    same = sites.chrom.to_numpy()[1:] == sites.chrom.to_numpy()[:-1]
    falls = np.flatnonzero((np.diff(cm) < 0) & same)
    if falls.size:
        site = int(falls[0]) + 1
        raise ValueError(f"centimorgans[{site}] is less than the one before; sort the sites.")
    return cm


def _require_samples(n_samples: int) -> None:
    """Raise a ValueError if ALT frequencies of so few samples are not those of a population."""
    if n_samples < FEWEST_SAMPLES:
        raise ValueError(
            f"genotypes are of {n_samples} samples, but ALT frequencies need at least "
            f"{FEWEST_SAMPLES}; give af (frequencies in their population), or more samples."
        )


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
