"""Define the panel: filter the sites shared by all founder cohorts, and freeze them."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.threads import run_forked, run_ordered
from ..io.bed import open_cohort, read_bim
from ..io.errors import UserError
from ..io.files import atomic_path, carrying_panel, digest, write_json
from ..io.genotypes import MISSING, unpack_bed
from ..io.sites import chunks, contig_order, is_ambiguous, site_keys, upper_alleles
from ..io.tables import read_table, text_of_rows
from .match import match_sites
from .panel import COLUMNS
from .panel_steps import PanelStep
from .prune_options import parse_pruning

_COUNTS = ["n_ref", "n_het", "n_alt", "n_missing"]
_SITE = ["chrom", "pos", "ref", "alt"]
#: Tables that are read side by side; twice as many and one more may be in memory.
AHEAD = 8


def build_panel(
    site_tables: dict[str, Path],
    out: Path,
    counts_out: Path,
    *,
    exclude_contigs: list[str],
    min_call_rate: float,
    min_maf: float,
    min_hwe_p: float,
    ld_prune: list | None = None,
    genotypes: dict[str, tuple[Path, Path]] | None = None,
    genome: dict | None = None,
    threads: int = 1,
) -> dict[str, int]:
    """Filter the sites shared by all founders and write the panel.

    Parameters
    ----------
    site_tables : dict
        ``qc/{cohort}.sites.tsv`` of each founder. The first in name order sets REF and ALT.
    out, counts_out : Path
        `panel/sites.tsv`, with the content digest in its first line, and the counts per filter.
    ld_prune : list, optional
        Window, step and r2 of LD pruning, the last filter (`prune`).
    exclude_contigs : list of str
        Contigs that never enter the panel, as the founders' files write them.
    genome : dict, optional
        `contigs.Genome` of the founders, which is written to `counts_out`.
    genotypes : dict, optional
        Input of pruning: stem of the raw genotypes and sample table of each founder.

    Returns
    -------
    dict
        Sites remaining after each step, in order.

    Raises
    ------
    UserError
        No site is left; the sentence names the filter that removed the last ones.
    """
    steps: list[PanelStep] = []
    merged = first = None
    cohorts = sorted(site_tables)
    tables = run_ordered(
        lambda cohort: _read_sites(site_tables[cohort], named=cohort == cohorts[0]),
        cohorts,
        min(threads, AHEAD),
    )
    for cohort, table in zip(cohorts, tables, strict=True):
        if merged is None:
            merged, first = _first(table, cohort, steps), table[_SITE]
        elif all(table[name].equals(first[name]) for name in _SITE):
            merged = _add_same(merged, table, cohort, steps)
        else:
            merged = _join(merged, table, cohort, steps)
    merged = merged[~merged.chrom.isin(exclude_contigs)]
    steps.append(PanelStep("filter", "panel.exclude_contigs", len(merged)))
    called = merged.n_ref + merged.n_het + merged.n_alt
    merged = merged[(called > 0) & (called / (called + merged.n_missing) >= min_call_rate)]
    steps.append(PanelStep("filter", "panel.min_call_rate", len(merged), str(min_call_rate)))
    called = merged.n_ref + merged.n_het + merged.n_alt
    merged = merged.assign(
        n_called=called,
        af=(merged.n_het + 2 * merged.n_alt) / (2 * called),
        # From counts: 1 - af is rounded, so a threshold would treat REF and ALT differently.
        maf=(merged.n_het + 2 * np.minimum(merged.n_ref, merged.n_alt)) / (2 * called),
        mode=merged[["n_ref", "n_het", "n_alt"]].to_numpy().argmax(axis=1),
    )
    merged = merged[merged.maf >= min_maf]
    steps.append(PanelStep("filter", "panel.min_maf", len(merged), str(min_maf)))
    merged = merged[merged.hwe_p_min >= min_hwe_p]
    steps.append(PanelStep("filter", "panel.min_hwe_p", len(merged), str(min_hwe_p)))
    if ld_prune and not merged.empty:
        merged = _in_genome_order(merged)
        merged = merged[~prune_founders(merged, genotypes, ld_prune)]
        limit = ", ".join(map(str, ld_prune))
        steps.append(PanelStep("filter", "panel.ld_prune", len(merged), limit))
    if merged.empty:
        raise UserError(_no_site_left(steps, site_tables))
    panel = _in_genome_order(merged)[COLUMNS]

    def lines(first: int, last: int) -> str:
        return text_of_rows(panel.iloc[first:last], "%.17g", header=first == 0)

    text = "".join(run_forked(lines, chunks(len(panel)), threads))
    about = {"digest": digest(text), "n_sites": len(panel), "steps": list(map(asdict, steps))}
    about |= {"genome": genome} if genome else {}
    with carrying_panel(about["digest"]):
        with atomic_path(out) as temporary:
            temporary.write_text(f"# panel {about['digest']}, {len(panel)} sites\n{text}")
        write_json(counts_out, about)
    return {step.text: step.sites for step in steps}


def _read_sites(path: Path, named: bool) -> pd.DataFrame:
    """Counts of a cohort's sites, with their identifiers if `named`."""
    return pd.read_csv(
        path,
        sep="\t",
        dtype={"chrom": str, "id": str, "ref": str, "alt": str},
        keep_default_na=False,
        na_values={"hwe_p_min": ["NA"]},
        quoting=csv.QUOTE_NONE,
        usecols=[*_SITE, *["id"] * named, "hwe_p_min", *_COUNTS],
    )


def _first(table: pd.DataFrame, cohort: str, steps: list[PanelStep]) -> pd.DataFrame:
    steps.append(PanelStep("founder", cohort, len(table)))
    keys = site_keys(table)
    repeated = keys.duplicated().to_numpy()
    _count_repeated(repeated, cohort, steps)
    named = table.assign(_row=np.arange(len(table)))
    return pd.concat([keys[["contig", "low", "high"]], named], axis=1)[~repeated]


def _add_same(
    merged: pd.DataFrame, table: pd.DataFrame, cohort: str, steps: list[PanelStep]
) -> pd.DataFrame:
    """`_join` of a cohort whose sites are those of the first, row by row: nothing to look up."""
    found = {one.what: one.sites for one in steps if one.subject == steps[0].subject}
    found |= {"shared": len(merged), "turned": 0, "ambiguous": 0}
    steps += [PanelStep(what, cohort, count) for what, count in found.items()]
    other = table.iloc[merged["_row"].to_numpy()].reset_index(drop=True)
    both = merged.reset_index(drop=True)
    for name in _COUNTS:
        both[name] += other[name]
    both["hwe_p_min"] = np.minimum(both.hwe_p_min, other.hwe_p_min)
    return both


def _count_repeated(repeated: np.ndarray, cohort: str, steps: list[PanelStep]) -> None:
    """Count duplicate sites with REF and ALT swapped; ingest dropped exact duplicates."""
    if repeated.any():
        steps.append(PanelStep("repeated", cohort, int(repeated.sum())))


def _join(
    merged: pd.DataFrame, table: pd.DataFrame, cohort: str, steps: list[PanelStep]
) -> pd.DataFrame:
    """Keep the sites shared with `table` and add its counts, swapping REF and ALT where needed."""
    steps.append(PanelStep("founder", cohort, len(table)))
    other = pd.concat([site_keys(table)[["contig", "low", "high"]], table], axis=1)
    key = ["contig", "pos", "low", "high"]
    repeated = other.duplicated(key).to_numpy()
    _count_repeated(repeated, cohort, steps)
    other = other[~repeated]
    both = merged.merge(other, on=key, how="inner", suffixes=("", "_other"), sort=False)
    steps.append(PanelStep("shared", cohort, len(both)))
    pair, pairs = upper_alleles(both.ref, both.ref_other)
    differ = np.array([ref != other for ref, other in pairs], bool)[pair]
    swapped = pd.Series(differ, both.index)
    lost = swapped & is_ambiguous(both.low, both.high)
    steps.append(PanelStep("turned", cohort, int((swapped & ~lost).sum())))
    steps.append(PanelStep("ambiguous", cohort, int(lost.sum())))
    both, swapped = both[~lost], swapped[~lost]
    both["n_ref"] += np.where(swapped, both.n_alt_other, both.n_ref_other)
    both["n_alt"] += np.where(swapped, both.n_ref_other, both.n_alt_other)
    both["n_het"] += both.n_het_other
    both["n_missing"] += both.n_missing_other
    both["hwe_p_min"] = np.minimum(both.hwe_p_min, both.hwe_p_min_other)
    return both[merged.columns]


def _in_genome_order(table: pd.DataFrame) -> pd.DataFrame:
    rank = {name: i for i, name in enumerate(sorted(table.chrom.unique(), key=contig_order))}
    return (
        table.assign(_rank=table.chrom.map(rank))
        .sort_values(["_rank", "pos", "ref", "alt"], kind="stable")
        .drop(columns="_rank")
    )


def _no_site_left(steps: list[PanelStep], founders: dict[str, Path]) -> str:
    left, before, last_filter = 0, 0, ""
    for step in steps:
        if step.what in ("turned", "repeated") or (left and step.what == "founder"):
            continue
        now = left - step.sites if step.what == "ambiguous" else step.sites
        if now == 0:
            before, last_filter = left, step.text.removeprefix("after ")
            break
        left = now
    return (
        f"results/panel/sites.tsv: no site of the founders {', '.join(sorted(founders))} is left "
        f"({before} before the step '{last_filter}', 0 after it); relax that filter or check that "
        "the founders' contigs, positions and alleles agree."
    )


def prune_founders(
    sites: pd.DataFrame, genotypes: dict[str, tuple[Path, Path]], values: list, threads: int = 1
) -> np.ndarray:
    """Select candidate panel sites that LD pruning removes: bool (n_sites,).

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos`, `ref`, `alt` in genome order.
    genotypes : dict
        Stem of the raw genotypes and sample table (column ``keep``) of each founder cohort.
    values : list
        `panel.ld_prune`.
    """
    # Imported here because these compile kernels, which only pruning needs.
    from ..engine.select import cpu_backend
    from .prune import contig_runs, pruned
    from .site_planes import site_planes

    pruning = parse_pruning(values, "panel.ld_prune")
    removed = np.zeros(len(sites), bool)
    found = []
    for cohort in sorted(genotypes):
        raw, samples = genotypes[cohort]
        table = read_table(samples)
        row, swapped, _ = match_sites(read_bim(raw), sites)
        keep = np.flatnonzero(table.keep.to_numpy() == "yes")
        found.append((open_cohort(raw, table["sample"])[0], len(table), keep, row, swapped))
    backend = cpu_backend(threads)
    for first, last in contig_runs(sites.chrom.to_numpy()):
        parts = []
        for bed, n, keep, row, swapped in found:
            rows, turned = row[first:last], swapped[first:last]
            part = unpack_bed(np.ascontiguousarray(bed[np.maximum(rows, 0)]), n)[:, keep]
            part[rows < 0] = MISSING
            part[turned] = np.where(part[turned] == MISSING, MISSING, 2 - part[turned])
            parts.append(part)
        here = sites.iloc[first:last].reset_index(drop=True)
        planes = site_planes(np.concatenate(parts, axis=1))
        removed[first:last] = pruned(planes, here, pruning, backend)
    return removed
