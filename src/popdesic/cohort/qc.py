"""Quality control of one cohort: call rates, frequencies, Hardy-Weinberg, sample filters."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.threads import forked_in_order
from ..io.bed import open_cohort, read_bim, read_fam
from ..io.errors import UserError
from ..io.files import atomic_path
from ..io.sites import chunks
from ..io.tables import open_lines, text_of_rows, write_table
from .sample_checks import Checks, check_samples


def summarize_cohort(
    prefix: Path,
    populations: dict[str, str],
    sites_out: Path,
    samples_out: Path,
    *,
    min_sample_call_rate: float,
    threads: int = 1,
    checks: Checks | None = None,
    excluded: Collection[str] = (),
) -> dict[str, int]:
    """Write sample statistics, then site statistics over the samples that pass.

    Parameters
    ----------
    prefix : Path
        Stem of the cohort's raw .bed, .bim and .fam.
    populations : dict
        Population of each sample; Hardy-Weinberg proportions are tested within each.
    sites_out, samples_out : Path
        Tables to write, one row per site (over kept samples) and one row per sample.
    min_sample_call_rate : float
        Samples below it, and those without any call, get ``keep`` = no and are excluded from site
        statistics.
    checks : Checks, optional
        Further sample checks and their limits.
    excluded : names, optional
        Samples that the sheet excludes: they are in neither table.

    Returns
    -------
    dict
        Numbers of samples, of samples left out, of sites.

    Raises
    ------
    UserError
        No sample passes.
    """
    from ..engine.host.genotypes import add_by_sample, count_by_group

    names = [name for name in read_fam(prefix)["sample"] if name not in excluded]
    rows, _ = open_cohort(prefix, names)
    by_sample = np.zeros((len(names), 4), np.int64)
    for first, last in chunks(len(rows)):
        add_by_sample(rows[first:last], by_sample)
    samples = _sample_table(names, populations, by_sample, min_sample_call_rate)
    best = samples.keep == "yes"
    bim = read_bim(prefix)
    samples = check_samples(prefix, bim, samples, checks or Checks())
    kept = samples.keep == "yes"
    if best.any() and not kept.any():
        raise UserError(
            f"{prefix}.bed: the filters {', '.join(sorted(set(samples.left_out)))} remove every "
            "sample of the cohort; relax them or drop the cohort."
        )
    if not kept.any():
        raise UserError(
            f"{prefix}.bed: no sample has a call rate of at least {min_sample_call_rate} "
            f"(qc.min_sample_call_rate; best: {samples.call_rate.max():.4f}); lower it or drop "
            "the cohort."
        )
    labels = sorted(samples.population[kept].unique())
    group = np.where(kept, samples.population.map({p: i for i, p in enumerate(labels)}), -1)

    def lines(first: int, last: int) -> str:
        counts = count_by_group(rows[first:last], group.astype(np.int64), len(labels))
        table = _site_table(bim.iloc[first:last], counts, labels)
        return text_of_rows(table, header=first == 0)

    with atomic_path(sites_out) as temporary, open_lines(temporary) as file:
        # Most of the time goes into numbers as text, which threads cannot share.
        for part in forked_in_order(lines, chunks(len(rows)), threads):
            file.write(part)
    write_table(samples_out, samples)
    return {
        "samples": len(names),
        "samples_left_out": int((~kept).sum()),
        "sites": len(rows),
    }


def _sample_table(names, populations, counts, min_call_rate) -> pd.DataFrame:
    called = counts[:, :3].sum(axis=1)
    call_rate = called / counts.sum(axis=1)
    return pd.DataFrame(
        {
            "sample": names,
            "population": [populations.get(name, "NA") for name in names],
            "n_called": called,
            "n_missing": counts[:, 3],
            "call_rate": call_rate,
            "heterozygosity": counts[:, 1] / np.maximum(called, 1),
            "keep": np.where((call_rate >= min_call_rate) & (called > 0), "yes", "no"),
        }
    )


def _site_table(bim: pd.DataFrame, counts: np.ndarray, labels: list[str]) -> pd.DataFrame:
    """Site statistics from int64 counts (n_sites, n_populations, 4) of 0, 1, 2 and missing."""
    total = counts.sum(axis=1)
    called = total[:, :3].sum(axis=1)
    table = pd.DataFrame(
        {
            "chrom": bim.chrom.to_numpy(),
            "pos": bim.pos.to_numpy(),
            "id": bim.id.to_numpy(),
            "ref": bim.ref.to_numpy(),
            "alt": bim.alt.to_numpy(),
            "n_ref": total[:, 0],
            "n_het": total[:, 1],
            "n_alt": total[:, 2],
            "n_missing": total[:, 3],
            "af": _ratio(total[:, 1] + 2 * total[:, 2], 2 * called),
        }
    )
    from ..engine.host.hardy_weinberg import hwe_exact

    p_values = np.stack(
        [hwe_exact(*counts[:, i, :3].T) for i in range(len(labels))],
        axis=1,
    )
    table["hwe_p_min"] = p_values.min(axis=1)
    for index, label in enumerate(labels):
        table[hwe_column(label)] = p_values[:, index]
    return table


def hwe_column(population: str) -> str:
    """Return the column name of a population's Hardy-Weinberg p; `hwe_p_min` is the minimum.

    `min`, `min_` and so on get one more underscore, so that no population takes that name.
    """
    return f"hwe_p_{population}_" if population.rstrip("_") == "min" else f"hwe_p_{population}"


def _ratio(numerator, denominator) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(denominator > 0, numerator / np.maximum(denominator, 1), np.nan)
