"""Runs of homozygosity."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..core.threads import usable_cpus
from ..population.runs import RunLimits, runs_of_words, runs_table
from .arrays import ArrayLike, require_limits, site_table, thread_count
from .packing import PackedGenotypes, packed, site_bits


def homozygous_runs(
    genotypes: ArrayLike | PackedGenotypes,
    positions: ArrayLike,
    contigs: ArrayLike | None = None,
    *,
    threads: int | None = None,
    **limits: float,
) -> pd.DataFrame:
    """Runs of homozygosity, as `plink1.9 --homozyg` finds them.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites), or PackedGenotypes
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing (see `pack`).
    positions : array-like of int, (n_sites,)
        In base pairs, rising within a contig.
    contigs : array-like of str, (n_sites,), optional
        Contig of each site, those of one contig next to each other; by default all are on one.
    threads : int, optional
        Number of CPU threads; all CPUs by default.
    **limits
        What a run is: `window_sites` (50), `window_hets` (1), `window_missing` (5), `threshold`
        (0.05), `min_sites` (100), `min_kb` (1000), `kb_per_site` (50), `max_gap_kb` (1000),
        `max_hets` (-1: no limit), as in PLINK, whose defaults these are.

    Returns
    -------
    DataFrame
        One row a run, by sample and place: `sample` (its row in `genotypes`), `contig`, `start`,
        `end`, `kb`, `sites`, `heterozygous`, `missing`.

    Raises
    ------
    ValueError
        An argument is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> genotypes = np.zeros((1, 200), int)
    >>> genotypes[0, ::4] = 1
    >>> genotypes[0, 40:160] = 2
    >>> runs = popdesic.homozygous_runs(genotypes, 10_000 * np.arange(1, 201))
    >>> runs[["sample", "start", "end", "kb", "sites"]]
       sample   start      end        kb  sites
    0       0  350000  1630000  1280.001    129
    """
    planes, threads = packed(genotypes), thread_count(threads)
    sites = site_table(planes.n_sites, positions, contigs)
    require_limits(limits, RunLimits, "runs")
    ploidy = np.full(planes.n_samples, 2)
    found = runs_of_words(
        *(planes.words, site_bits(planes), ploidy, sites),
        *(RunLimits(**limits), threads or usable_cpus()),
    )
    people = pd.DataFrame({"sample": np.arange(planes.n_samples), "population": "NA"})
    table = runs_table(found, people, sites).drop(columns="population")
    return table.rename(columns={"chrom": "contig"})
