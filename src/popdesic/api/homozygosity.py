"""Runs of homozygosity."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..engine.threads import usable_cpus
from ..population.runs import RunLimits, runs_of_words, runs_table
from .arrays import ArrayLike, host_array
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
    planes = packed(genotypes)
    n_sites = planes.n_sites
    pos = host_array(positions)
    if pos.shape != (n_sites,) or pos.dtype.kind not in "iu":
        raise ValueError(
            f"positions are {pos.dtype} of the shape {pos.shape}; give an integer for each of the "
            f"{n_sites} sites."
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
    unknown = limits.keys() - RunLimits.__dataclass_fields__.keys()
    if unknown:
        raise ValueError(
            f"{sorted(unknown)[0]} is no limit of runs; give some of "
            f"{', '.join(RunLimits.__dataclass_fields__)}."
        )
    sites = pd.DataFrame({"chrom": chrom, "pos": pos.astype(np.int64)})
    ploidy = np.full(planes.n_samples, 2)
    found = runs_of_words(
        *(planes.words, site_bits(planes), ploidy, sites),
        *(RunLimits(**limits), threads or usable_cpus()),
    )
    people = pd.DataFrame({"sample": np.arange(planes.n_samples), "population": "NA"})
    table = runs_table(found, people, sites).drop(columns="population")
    return table.rename(columns={"chrom": "contig"})
