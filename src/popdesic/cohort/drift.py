"""Drift of each cohort from the panel: sites present, call rate, allele frequencies."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import write_table
from .absent import (
    COUNTS,
    UNSTATED,
    Absent,
    Coverage,
    counts_at,
    kept_coverage,
    strands_in_doubt,
)
from .match import SitePositions
from .panel import load_panel

#: A newcomer with a smaller share of the panel's sites is reported.
MIN_PRESENT = 0.95


def measure_drift(
    site_tables: dict[str, Path],
    panel: Path,
    founders: set[str],
    out: Path,
    *,
    genotypes: dict[str, tuple[Path, Path]] | None = None,
    absent: dict[str, Absent] | None = None,
    ploidy: int = 2,
) -> pd.DataFrame:
    """Compare every cohort with the panel, over the samples that passed quality control.

    Founders are included: they defined the panel, so their values are the baseline for newcomers.

    Parameters
    ----------
    site_tables : dict
        ``qc/{cohort}.sites.tsv`` of each cohort, in sample order.
    panel : Path
        `panel/sites.tsv`.
    founders : set of str
        Names of the founder cohorts.
    out : Path
        Table to write.
    genotypes, absent : dict, optional
        As in `define_panel.build_panel`, of all cohorts.
    ploidy : int
        Of all samples. Tables of polyploids count layers (`io.layers`), each of which is two
        alleles, or one of an odd ploidy.

    Returns
    -------
    DataFrame, one row per cohort
        `cohort`, `founder` (yes or no), `panel_sites_present` (in its file, or absent from it and
        read as homozygous REF), `share_present`, `call_rate` (at the sites present), then over the
        sites where the cohort has a called genotype `mean_af_difference` (mean of
        |AF of the cohort - AF of the panel|, range 0 to 1),
        `expected_af_difference` (expected from sampling alone if the cohort came from a population
        with the panel's frequencies, see `expected_difference`) and `af_correlation` (Pearson). NA
        where nothing can be compared.
    """
    sites, _ = load_panel(panel)
    rows = []
    for cohort, path in site_tables.items():
        table = pd.read_csv(
            path,
            sep="\t",
            dtype={"chrom": str, "ref": str, "alt": str},
            keep_default_na=False,
            quoting=csv.QUOTE_NONE,
            usecols=["chrom", "pos", "ref", "alt", *COUNTS],
        )
        coverage, in_doubt = None, False
        if genotypes:
            raw, samples = genotypes[cohort]
            coverage = kept_coverage(raw, samples, (absent or {}).get(cohort, UNSTATED))
            in_doubt = strands_in_doubt(raw)
        founder = cohort in founders
        rows.append(
            {
                "cohort": cohort,
                "founder": "yes" if founder else "no",
                **_compare(table, sites, founder, coverage, in_doubt, 2 - ploidy % 2),
            }
        )
    drift = pd.DataFrame(rows)
    write_table(out, drift)
    return drift


def expected_difference(
    af: np.ndarray,
    n_cohort: np.ndarray,
    n_panel: np.ndarray,
    *,
    founder: bool,
    ploidy: int = 2,
) -> np.ndarray:
    """Return the mean absolute allele frequency difference expected from sampling alone.

    With alleles drawn independently the difference is nearly normal with variance
    ``p (1 - p) / ploidy * (1/n_cohort + 1/n_panel)``; a founder's samples are part of the panel's,
    so the sum becomes a difference. The mean absolute value of a centred normal variable is
    ``sqrt(2 / pi)`` of its standard deviation.

    Parameters
    ----------
    af : float64 array, (n_sites,)
        ALT frequency in the panel.
    n_cohort, n_panel : arrays, (n_sites,)
        Called samples, at least 1.

    Returns
    -------
    float64 array, (n_sites,)
    """
    sign = -1.0 if founder else 1.0
    per_sample = np.maximum(1.0 / n_cohort + sign / n_panel, 0.0)
    return np.sqrt(2 / np.pi * af * (1 - af) / ploidy * per_sample)


def person_difference(
    genotypes: np.ndarray, af: np.ndarray, ploidy: int = 2
) -> tuple[float, float]:
    """Mean difference of one person's allele frequencies, 0, 1/2 or 1, from the panel's.

    Parameters
    ----------
    genotypes : int array, (n_sites,)
        Called genotypes.
    af : float64 array, (n_sites,)
        ALT frequency in the panel.
    ploidy : int
        1 for a haploid, whose genotypes are 0 and 2.

    Returns
    -------
    observed, expected : float
        NaN without sites. Expected of a person whose two alleles are drawn with these frequencies:
        the mean over sites of ``(1 - p)^2 p + 2 p (1 - p) |1/2 - p| + p^2 (1 - p)``; of a haploid
        that of ``2 p (1 - p)``.
    """
    if not len(genotypes):
        return np.nan, np.nan
    q = 1 - af
    expected = q**2 * af + 2 * af * q * np.abs(0.5 - af) + af**2 * q
    if ploidy == 1:
        expected = 2 * af * q
    return float(np.abs(genotypes / 2 - af).mean()), float(expected.mean())


def _compare(
    table: pd.DataFrame,
    sites: pd.DataFrame,
    founder: bool,
    coverage: Coverage | None,
    in_doubt: bool,
    ploidy: int,
) -> dict[str, float]:
    found, counts, filled = counts_at(table, sites, coverage, SitePositions(), in_doubt=in_doubt)
    present = (found.row >= 0) | filled
    counts = counts[present]
    called = counts[:, :3].sum(axis=1)
    has_calls = called > 0
    found = {
        "panel_sites_present": int(present.sum()),
        "share_present": float(present.mean()) if len(sites) else np.nan,
        "call_rate": float(called.sum() / counts.sum()) if counts.sum() else np.nan,
        "mean_af_difference": np.nan,
        "expected_af_difference": np.nan,
        "af_correlation": np.nan,
    }
    if has_calls.any():
        af = (counts[has_calls, 1] + 2 * counts[has_calls, 2]) / (2 * called[has_calls])
        expected = sites.af.to_numpy()[present][has_calls]
        n_panel = sites.n_called.to_numpy()[present][has_calls]
        found["mean_af_difference"] = float(np.abs(af - expected).mean())
        alone = expected_difference(
            expected, called[has_calls], n_panel, founder=founder, ploidy=ploidy
        )
        found["expected_af_difference"] = float(alone.mean())
        if af.std() > 0 and expected.std() > 0:
            found["af_correlation"] = float(np.corrcoef(af, expected)[0, 1])
    return found
