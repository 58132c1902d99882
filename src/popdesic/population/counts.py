"""Counts of one cohort: alleles by population and site, heterozygosity by sample.

They are all that statistics of populations read of a cohort, and they never change when another
cohort arrives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.encode import load_planes
from ..cohort.panel import load_panel
from ..cohort.samples import UNKNOWN, read_samples
from ..compare.kinship import kinship_tiles, related_newcomers
from ..io.sites import chunks
from ..io.tables import read_table, write_npz, write_table
from .options import require_no_x, x_names
from .runs import (
    RunLimits,
    count_in_runs,
    runs_of_words,
    runs_table,
    with_runs,
)

#: A sample without heterozygotes is pseudo-haploid if at least this many were expected: in a
#: diploid sample the chance of that is below exp(-20).
LEAST_EXPECTED_HETS = 20.0
#: Bytes of planes that are in memory at a time, beside the sums of all sites.
BYTES_AT_ONCE = 1 << 27


def count_cohort(
    folder: Path,
    panel: Path,
    sheet: Path,
    *,
    cohort: str,
    column: str,
    x: str,
    x_contigs: list[str],
    runs: RunLimits | None,
    counts_out: Path,
    samples_out: Path,
    runs_out: Path | None = None,
    unrelated: Path | None = None,
    row: Path | None = None,
    max_kinship: float = 0.0,
    threads: int = 1,
) -> dict[str, Any]:
    """Count the genotypes of a cohort by population and site.

    Parameters
    ----------
    folder : Path
        `results/cohorts/{cohort}` with `planes.npy` and `planes.json`. Imputed genotypes do not
        count: they are masked.
    panel, sheet : Path
        `panel/sites.tsv`; the sample sheet.
    column : str
        Column of the populations; samples without a label count for themselves alone.
    x : str
        ``exclude`` leaves sites on `x_contigs` out, ``diploid`` counts them as autosomes, ``error``
        refuses them.
    runs : RunLimits, optional
        Without it no runs of homozygosity are sought.
    counts_out : Path
        .npz: `populations` and `ploidy` of the groups of samples, their `sizes`, and `counts`,
        uint16 or uint32 (n_sites, n_groups, 3): samples of 0, 1, 2 ALT alleles; the rest of a group
        is missing. `in_runs` (n_sites, n_groups): samples in a run.
    samples_out : Path
        By sample: `population`, `relative` (yes: does not count), `ploidy`, called and heterozygous
        sites, the heterozygosity that Hardy-Weinberg proportions with the panel's allele
        frequencies give (`expected`, at the sample's called sites, Nei's correction), F = 1 -
        observed / expected; runs of homozygosity.
    runs_out : Path, optional
        Runs of homozygosity, if sought.
    unrelated, row, max_kinship : Path, Path, float, optional
        `panel/unrelated.tsv`; of a newcomer cohort also `compare/tiles/{cohort}/row.json` and
        `embedding.max_kinship`. Relatives (`relatives_of`) count for themselves alone. Without
        `unrelated` everybody counts.

    Returns
    -------
    dict
        Counts for the log.
    """
    from ..engine.host.plane_counts import count_by_sample, count_by_site

    sites, _ = load_panel(panel)
    if x == "error":
        # Headers do not always name contigs, so that this is not known before any job.
        require_no_x(sites.chrom.unique(), x_names(x_contigs))
    planes, described = load_planes(folder)
    names = list(described["samples"])
    labels = labels_of(read_samples(sheet), names, column)
    relatives = relatives_of(names, unrelated, row, max_kinship)
    counted_as = ["" if n in relatives else x for n, x in zip(names, labels, strict=True)]
    n_bits = 64 * planes.words.shape[2]
    used = used_sites(sites, x, x_contigs)
    mask = np.packbits(np.pad(used, (0, n_bits - len(used))), bitorder="little").view(np.uint64)
    expected = expected_heterozygosity(sites.af.to_numpy(), sites.n_called.to_numpy())
    expected = np.where(used, expected, 0.0)
    values = np.pad(expected, (0, n_bits - len(expected)))
    sums = np.empty((len(names), 3))
    counted: dict[tuple[str, int], np.ndarray] = {}
    sizes: dict[tuple[str, int], int] = {}
    group: list[tuple[str, int] | None] = []
    found = np.empty((0, 5), np.int64)
    # A genotype is read once: everything is counted of one part of the samples, then of the next.
    for begin, end in chunks(len(names), samples_at_once(planes.words)):
        words = np.array(planes.words[begin:end])
        count_by_sample(words, mask, values, sums[begin:end])
        of_part = expected.sum() - sums[begin:end, 2]
        haploid = (sums[begin:end, 1] == 0) & (of_part >= LEAST_EXPECTED_HETS)
        ploidy = np.where(haploid, 1, 2)
        own = [
            (label, int(k)) if label else None
            for label, k in zip(counted_as[begin:end], ploidy, strict=True)
        ]
        group += own
        for key in sorted({key for key in own if key}):
            rows = np.flatnonzero([other == key for other in own])
            total = counted.setdefault(key, np.zeros((3, n_bits), np.int32))
            count_by_site(words, mask, rows, total, threads)
            sizes[key] = sizes.get(key, 0) + len(rows)
        if runs is not None:
            part = runs_of_words(words, mask, ploidy, sites, runs, threads)
            part[:, 0] += begin
            found = np.concatenate([found, part])
    called, hets = sums[:, 0].astype(np.int64), sums[:, 1].astype(np.int64)
    of_sample = np.maximum(expected.sum() - sums[:, 2], 0.0)
    haploid = (hets == 0) & (of_sample >= LEAST_EXPECTED_HETS)
    groups = sorted(counted)
    dtype = np.uint16 if len(names) < 2**16 else np.uint32
    counts = np.zeros((len(sites), len(groups), 3), dtype)
    for k, key in enumerate(groups):
        counts[:, k] = counted[key][:, : len(sites)].T
    with np.errstate(divide="ignore", invalid="ignore"):
        inbreeding = np.where((of_sample > 0) & ~haploid, 1 - hets / of_sample, np.nan)
        observed = np.where((called > 0) & ~haploid, hets / called, np.nan)
    table = pd.DataFrame(
        {
            "sample": names,
            "cohort": cohort,
            "population": [label or "NA" for label in labels],
            "relative": ["yes" if name in relatives else "no" for name in names],
            "ploidy": 2 - haploid.astype(np.int64),
            "called": called,
            "heterozygous": hets,
            "heterozygosity": observed,
            "expected": of_sample,
            "f": inbreeding,
        }
    )
    about: dict[str, Any] = {
        "samples": len(names),
        "sites": int(used.sum()),
        "groups": len(groups),
        "relatives left out of populations": len(relatives),
        "pseudo-haploid samples": int(haploid.sum()),
    }
    in_runs = np.zeros((0, len(groups)), dtype)
    if runs is not None and runs_out is not None:
        index = {key: k for k, key in enumerate(groups)}
        of_samples = np.array([index.get(key, -1) if key else -1 for key in group], np.int64)
        table = with_runs(table, found, sites, used, runs)
        in_runs = count_in_runs(found, of_samples, len(groups), len(sites))
        about["runs of homozygosity"] = len(found)
        write_table(runs_out, runs_table(found, table, sites))
    write_npz(
        counts_out,
        populations=np.array([name for name, _ in groups], dtype=np.str_),
        ploidy=np.array([ploidy for _, ploidy in groups], np.int64),
        sizes=np.array([sizes[key] for key in groups], np.int64),
        counts=counts,
        in_runs=in_runs.astype(dtype),
    )
    write_table(samples_out, table)
    return about


def relatives_of(
    names: list[str], unrelated: Path | None, row: Path | None, max_kinship: float
) -> set[str]:
    """Samples of a cohort that are left out of their populations as relatives of others.

    Of founders those who do not define the axes of the PCA; of newcomers `related_newcomers`.
    """
    if unrelated is None:
        return set()
    table = read_table(unrelated)
    if row is None:
        return set(names) & set(table["sample"][table.unrelated != "yes"])
    return related_newcomers(kinship_tiles([row], closed=False), names, table, max_kinship)


def samples_at_once(words: np.ndarray) -> int:
    """Samples of planes (n_samples, n_planes, n_words) that are read at a time."""
    return max(1, BYTES_AT_ONCE // (words.shape[1] * words.shape[2] * words.itemsize))


def used_sites(sites: pd.DataFrame, x: str, x_contigs: list[str]) -> np.ndarray:
    """Sites that count: bool (n_sites,); all, unless X is to be excluded."""
    if x != "exclude":
        return np.ones(len(sites), bool)
    return ~sites.chrom.isin(x_names(x_contigs)).to_numpy()


def expected_heterozygosity(af: np.ndarray, n_called: np.ndarray) -> np.ndarray:
    """Heterozygosity in Hardy-Weinberg proportions, unbiased (Nei 1978): float64 (n_sites,).

    2 p (1 - p) · 2 n / (2 n - 1), n the founders called, as `plink1.9 --het small-sample` has it.
    The panel's table has six digits of p; the count of ALT alleles behind it is an integer.
    """
    alleles = 2.0 * n_called
    alt = np.rint(af * alleles)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(alleles > 1, 2 * alt * (alleles - alt) / (alleles * (alleles - 1)), 0.0)


def labels_of(table: pd.DataFrame, names: list[str], column: str) -> list[str]:
    """Population of each sample of a file; empty where unknown."""
    if column not in table:
        return [""] * len(names)
    known = dict(zip(table["sample"], table[column], strict=True))
    return ["" if known.get(name, "") in UNKNOWN else known[name] for name in names]
