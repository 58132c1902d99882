"""Counts of one cohort: alleles by population and site, heterozygosity by sample.

They are all that statistics of populations read of a cohort, and they never change when another
cohort arrives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..cohort.samples import UNKNOWN, read_samples
from ..io.bed import open_bed, read_fam
from ..io.sites import chunks
from ..io.tables import write_npz, write_table
from .options import require_no_x, x_names
from .runs import RunLimits, cohort_runs

#: A sample without heterozygotes is pseudo-haploid if at least this many were expected: in a
#: diploid sample the chance of that is below exp(-20).
LEAST_EXPECTED_HETS = 20.0


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
    threads: int = 1,
) -> dict[str, Any]:
    """Count the genotypes of a cohort by population and site.

    Parameters
    ----------
    folder : Path
        `results/cohorts/{cohort}`: `genotypes.*`, and `planes.*` for runs of homozygosity.
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
        By sample: `population`, `ploidy`, called and heterozygous sites, the heterozygosity that
        Hardy-Weinberg proportions with the panel's allele frequencies give (`expected`, at the
        sample's called sites, Nei's correction), F = 1 - observed / expected; runs of homozygosity.
    runs_out : Path, optional
        Runs of homozygosity, if sought.

    Returns
    -------
    dict
        Counts for the log.
    """
    from ..engine.host.genotypes import add_by_sample, count_by_group
    from ..engine.host.missing_sums import sum_at_missing

    sites, _ = load_panel(panel)
    if x == "error":
        # Headers do not always name contigs, so that this is not known before any job.
        require_no_x(sites.chrom.unique(), x_names(x_contigs))
    fam = read_fam(folder / "genotypes")
    names = list(fam["sample"])
    rows = open_bed(folder / "genotypes", n_samples=len(names), n_sites=len(sites))
    labels = _labels(read_samples(sheet), names, column)
    used = used_sites(sites, x, x_contigs)
    expected = expected_heterozygosity(sites.af.to_numpy(), sites.n_called.to_numpy())
    expected = np.where(used, expected, 0.0)
    states = np.zeros((len(names), 4), np.int64)
    absent = np.zeros(len(names))
    for first, last in chunks(len(sites)):
        part = rows[first:last]
        kept = used[first:last]
        add_by_sample(part if kept.all() else np.ascontiguousarray(part[kept]), states)
        absent += sum_at_missing(part, expected[first:last], len(names))
    called = states[:, :3].sum(axis=1)
    hets = states[:, 1]
    of_sample = np.maximum(expected.sum() - absent, 0.0)
    haploid = (hets == 0) & (of_sample >= LEAST_EXPECTED_HETS)
    groups = sorted({(p, 2 - int(h)) for p, h in zip(labels, haploid, strict=True) if p})
    index = {group: k for k, group in enumerate(groups)}
    keys = zip(labels, (2 - haploid).tolist(), strict=True)
    group = np.array([index.get(key, -1) for key in keys], np.int64)
    sizes = np.bincount(group[group >= 0], minlength=len(groups)).astype(np.int64)
    dtype = np.uint16 if len(names) < 2**16 else np.uint32
    counts = np.zeros((len(sites), len(groups), 3), dtype)
    for first, last in chunks(len(sites)) if groups else ():
        found = count_by_group(rows[first:last], group, len(groups), threads)[..., :3]
        counts[first:last] = found * used[first:last, None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        inbreeding = np.where((of_sample > 0) & ~haploid, 1 - hets / of_sample, np.nan)
        observed = np.where((called > 0) & ~haploid, hets / called, np.nan)
    table = pd.DataFrame(
        {
            "sample": names,
            "cohort": cohort,
            "population": [label or "NA" for label in labels],
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
        "pseudo-haploid samples": int(haploid.sum()),
    }
    in_runs = np.zeros((0, len(groups)), dtype)
    if runs is not None and runs_out is not None:
        found_runs, table, in_runs = cohort_runs(
            folder, sites, used, table, group, len(groups), runs, threads
        )
        about["runs of homozygosity"] = len(found_runs)
        write_table(runs_out, found_runs)
    write_npz(
        counts_out,
        populations=np.array([name for name, _ in groups], dtype=np.str_),
        ploidy=np.array([ploidy for _, ploidy in groups], np.int64),
        sizes=sizes,
        counts=counts,
        in_runs=in_runs.astype(dtype),
    )
    write_table(samples_out, table)
    return about


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


def _labels(table: pd.DataFrame, names: list[str], column: str) -> list[str]:
    """Population of each sample of a file; empty where unknown."""
    if column not in table:
        return [""] * len(names)
    known = dict(zip(table["sample"], table[column], strict=True))
    return ["" if known.get(name, "") in UNKNOWN else known[name] for name in names]
