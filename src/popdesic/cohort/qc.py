"""Quality control of one cohort: call rates, frequencies, Hardy-Weinberg, sample filters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import atomic_path, read_json
from ..core.tables import open_lines, text_of_rows, write_table
from ..core.threads import forked_in_order
from ..io.bed import open_cohort, read_bim, read_fam
from ..io.genotypes import unpack_bed
from ..io.layers import columns_there, join_layers, layers_in, sizes_in
from ..io.sites import canonical_contig, canonical_contigs, chunks
from .call_rates import call_rate_bound
from .hwe_groups import REST, HweGroup, group_samples, judge_groups, untested_groups
from .sample_checks import Checks, check_samples
from .site_counts import add_calls, count_groups_at


def summarize_cohort(
    prefix: Path,
    populations: dict[str, str],
    sites_out: Path,
    samples_out: Path,
    *,
    min_sample_call_rate: float,
    populations_out: Path | None = None,
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
        Population of each sample; Hardy-Weinberg proportions are tested within each
        (`hwe_groups`).
    sites_out, samples_out : Path
        Tables to write, one row per site (over kept samples) and one row per sample.
    min_sample_call_rate : float
        Samples below it, and those without any call, get ``keep`` = no and are excluded from site
        statistics.
    populations_out : Path, optional
        Table to write, one row per group of samples that is tested together.
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
    fam = read_fam(prefix)
    layers = layers_in(fam)
    listed = fam["sample"][: len(fam) // layers]
    names = [name for name in listed if name not in excluded]
    rows, of_columns = open_cohort(prefix, names)
    sizes = sizes_in(of_columns)
    by_sample = np.zeros((len(names), 4), np.int64)
    for first, last in chunks(len(rows)):
        if layers == 1:
            add_calls(rows, first, last, by_sample)
        else:
            by_sample += _count_polyploids(rows[first:last], sizes, layers)
    if layers > 1:  # no sex, no Mendelian errors
        checks = Checks(sexes=checks.sexes if checks else {})
    samples = _sample_table(names, populations, by_sample, min_sample_call_rate)
    samples.insert(4, "n_removed", _removed_calls(prefix, names))
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
    labels, of_kept = group_samples(samples.population[kept])
    group = np.full(len(names), -1, np.int64)
    group[kept] = of_kept
    if layers == 1:
        groups = judge_groups(rows, _autosomal(bim, checks or Checks()), group, labels)
    else:
        groups = untested_groups(group, labels)
        group = np.where(columns_there(sizes, layers), np.tile(group, layers), -1)
    if populations_out is not None:
        write_table(populations_out, pd.DataFrame([asdict(one) for one in groups]))

    def lines(first: int, last: int) -> str:
        counts = count_groups_at(rows, first, last, group, len(labels))
        missing = counts
        if layers > 1:  # of samples, by their first layer
            once = np.where(np.arange(len(group)) < len(names), group, -1)
            missing = count_groups_at(rows, first, last, once, len(labels))
        table = _site_table(bim.iloc[first:last], counts, groups, missing)
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


def _removed_calls(prefix: Path, names: list[str]) -> list[int]:
    """Calls of each sample that limits on calls set to missing when its file was read."""
    about = prefix.with_suffix(".json")
    removed = read_json(about).get("removed_calls", {}) if about.exists() else {}
    return [removed.get(name, 0) for name in names]


def _autosomal(bim: pd.DataFrame, checks: Checks) -> np.ndarray:
    """Numbers of the sites of autosomes: int64."""
    others = [canonical_contig(name) for name in (*checks.x_contigs, *checks.other_contigs)]
    return np.flatnonzero(~np.isin(canonical_contigs(bim.chrom), others))


def _count_polyploids(rows: np.ndarray, sizes: np.ndarray, layers: int) -> np.ndarray:
    """Calls of each sample: REF alone, both alleles, ALT alone, missing; int64 (n_samples, 4)."""
    genotypes = join_layers(unpack_bed(np.ascontiguousarray(rows), len(sizes) * layers), layers)
    called, alone = genotypes >= 0, [genotypes == 0, genotypes == 2 * sizes]
    both = called & ~alone[0] & ~alone[1]
    return np.stack([part.sum(axis=0) for part in (alone[0], both, alone[1], ~called)], axis=1)


def _site_table(
    bim: pd.DataFrame, counts: np.ndarray, groups: list[HweGroup], of_samples: np.ndarray
) -> pd.DataFrame:
    """Site statistics from int64 counts (n_sites, n_groups, 4) of 0, 1, 2 and missing.

    Counts of polyploids are those of all layers, and `of_samples` those of the first layer.
    """
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
            "call_rate_bound": _least_call_rate(of_samples, groups),
        }
    )
    from .hardy_weinberg_cpu import hwe_exact

    p_values = {
        hwe_column(one.population): hwe_exact(*counts[:, k, :3].T, excess=one.tested == "excess")
        for k, one in enumerate(groups)
        if one.tested != "none"
    }
    table["hwe_p_min"] = np.min([np.ones(len(table)), *p_values.values()], axis=0)
    return table.assign(**p_values)


def _least_call_rate(counts: np.ndarray, groups: list[HweGroup]) -> np.ndarray:
    """Lowest `call_rate_bound` of the cohort and its labelled populations: float64 (n_sites,)."""
    labelled = [counts[:, k] for k, one in enumerate(groups) if one.population != REST]
    parts = [counts.sum(axis=1), *labelled]
    missing = [(part[:, 3], int(part[0].sum())) for part in parts]
    return np.min([call_rate_bound(*given) for given in missing], axis=0)


def hwe_column(population: str) -> str:
    """Return the column name of a group's Hardy-Weinberg p; `hwe_p_min` is the minimum.

    `min`, `min_` and so on get one more underscore, so that no population takes that name.
    """
    return f"hwe_p_{population}_" if population.rstrip("_") == "min" else f"hwe_p_{population}"


def _ratio(numerator, denominator) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.where(denominator > 0, numerator / np.maximum(denominator, 1), np.nan)
