"""Define the panel: filter the sites that all founder cohorts speak about, and freeze them."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import atomic_path, carrying_panel, digest, write_json
from ..core.tables import text_of_rows
from ..core.threads import run_forked, run_ordered
from ..io.genotypes import unpack_bed
from ..io.sites import chunks
from .absent import COUNTS, UNSTATED, Absent, strands_in_doubt
from .callable import read_bed
from .merge_founders import LEAST, SITE, Union
from .panel import COLUMNS, genome_order
from .panel_steps import PanelStep
from .prune_options import parse_pruning

#: Tables that are read side by side; twice as many and one more may be in memory.
AHEAD = 8


@dataclass(frozen=True)
class PanelFilters:
    """What a site of the panel must have (`panel` of the configuration).

    Attributes
    ----------
    exclude_contigs : list of str
        Contigs that never enter the panel, as the founders' files write them.
    min_call_rate, min_maf, min_hwe_p : float
    include, exclude : str
        BED files of the regions that the panel is from, and of those that it is not from; empty
        for none.
    ld_prune : list, optional
        Window, step and r2 of LD pruning, the last filter (`prune`).
    one_per_position : bool
        Of sites at one position, such as those of a split record, keep the one of the highest
        minor allele frequency, so that the record counts once (``multiallelic`` in
        `sites.classes`).
    """

    exclude_contigs: list[str]
    min_call_rate: float
    min_maf: float
    min_hwe_p: float
    include: str = ""
    exclude: str = ""
    ld_prune: list | None = None
    one_per_position: bool = False


def build_panel(
    site_tables: dict[str, Path],
    out: Path,
    counts_out: Path,
    filters: PanelFilters,
    *,
    genotypes: dict[str, tuple[Path, Path]] | None = None,
    genome: dict | None = None,
    absent: dict[str, Absent] | None = None,
    further_out: Path | None = None,
    threads: int = 1,
) -> dict[str, int]:
    """Filter the sites that all founders speak about (`merge_founders`) and write the panel.

    Parameters
    ----------
    site_tables : dict
        ``qc/{cohort}.sites.tsv`` of each founder. The first in name order sets REF and ALT.
    out, counts_out : Path
        `panel/sites.tsv`, with the content digest in its first line, and the counts per filter.
    genome : dict, optional
        `contigs.Genome` of the founders, which is written to `counts_out`.
    genotypes : dict, optional
        Stem of the raw genotypes and sample table of each founder, for pruning and for absent
        sites: without them absent sites are missing.
    absent : dict, optional
        What the cohort sheet says of each founder's absent sites.
    further_out : Path, optional
        `panel/further.tsv`: sites that pass all filters but `panel.min_maf`, `panel.ld_prune` and
        one site for each position, and at which both alleles were seen. Columns and first line
        are those of the panel, whose digest it names; none of its sites is on the panel.

    Returns
    -------
    dict
        Sites remaining after each step, in order.

    Raises
    ------
    UserError
        No site is left; the sentence names the filter that removed the last ones. Or a founder is
        of another build, or lists variant sites alone.
    """
    union = _merge(site_tables, genotypes or {}, absent or {}, threads)
    merged, steps = union.finished(filters.exclude_contigs), union.steps
    merged = merged[~merged.chrom.isin(filters.exclude_contigs)]
    steps.append(PanelStep("filter", "contigs.exclude", len(merged)))
    for key, path in (("include", filters.include), ("exclude", filters.exclude)):
        if path:
            regions = read_bed(Path(path), f"panel.{key}")
            covered = regions.covers(merged.chrom.to_numpy(), merged.pos.to_numpy())
            merged = merged[covered if key == "include" else ~covered]
            steps.append(PanelStep("filter", f"panel.{key}", len(merged), path))
    called = merged.n_ref + merged.n_het + merged.n_alt
    rate = np.minimum(called / (called + merged.n_missing), merged.call_rate_bound)
    merged = merged[(called > 0) & (rate >= filters.min_call_rate)]
    steps.append(
        PanelStep("filter", "panel.min_call_rate", len(merged), str(filters.min_call_rate))
    )
    called = merged.n_ref + merged.n_het + merged.n_alt
    merged = merged.assign(
        n_called=called,
        af=(merged.n_het + 2 * merged.n_alt) / (2 * called),
        # From counts: 1 - af is rounded, so a threshold would treat REF and ALT differently.
        maf=(merged.n_het + 2 * np.minimum(merged.n_ref, merged.n_alt)) / (2 * called),
        mode=merged[["n_ref", "n_het", "n_alt"]].to_numpy().argmax(axis=1),
    )
    variable = merged[(merged.maf > 0) & (merged.hwe_p_min >= filters.min_hwe_p)]
    merged = merged[merged.maf >= filters.min_maf]
    steps.append(PanelStep("filter", "panel.min_maf", len(merged), str(filters.min_maf)))
    merged = merged[merged.hwe_p_min >= filters.min_hwe_p]
    steps.append(PanelStep("filter", "panel.min_hwe_p", len(merged), str(filters.min_hwe_p)))
    if filters.one_per_position:
        merged = one_per_position(merged)
        steps.append(PanelStep("position", "", len(merged)))
    if filters.ld_prune and not merged.empty:
        merged = genome_order(merged)
        merged = merged[~prune_founders(merged, genotypes, filters.ld_prune, absent=absent)]
        limit = ", ".join(map(str, filters.ld_prune))
        steps.append(PanelStep("filter", "panel.ld_prune", len(merged), limit))
    if merged.empty:
        raise UserError(_no_site_left(steps, site_tables))
    panel = genome_order(merged)
    text = _text(panel, threads)
    about = {"digest": digest(text), "n_sites": len(panel), "steps": list(map(asdict, steps))}
    about |= {"genome": genome} if genome else {}
    texts = {out: (len(panel), text)}
    if further_out:
        further = genome_order(variable[~variable.index.isin(merged.index)])
        texts[further_out] = len(further), _text(further, threads)
        about["n_further"] = len(further)
    with carrying_panel(about["digest"]):
        for path, (n_sites, text) in texts.items():
            with atomic_path(path) as temporary:
                temporary.write_text(f"# panel {about['digest']}, {n_sites} sites\n{text}")
        write_json(counts_out, about)
    return {step.text: step.sites for step in steps}


def one_per_position(sites: pd.DataFrame) -> pd.DataFrame:
    """Of sites with the same `chrom` and `pos`, the one with the highest `maf`; the first by
    `ref` and `alt` of several, so that the order of files does not matter.
    """
    by = {"chrom": True, "pos": True, "maf": False, "ref": True, "alt": True}
    ordered = sites.sort_values([*by], ascending=[*by.values()])
    return sites[sites.index.isin(ordered.drop_duplicates(["chrom", "pos"]).index)]


def _text(sites: pd.DataFrame, threads: int) -> str:
    """Sites as lines, below the names of their columns."""

    def lines(first: int, last: int) -> str:
        return text_of_rows(sites[COLUMNS].iloc[first:last], "%.17g", header=first == 0)

    return "".join(run_forked(lines, list(chunks(len(sites))) or [(0, 0)], threads))


def _merge(
    site_tables: dict[str, Path],
    genotypes: dict[str, tuple[Path, Path]],
    absent: dict[str, Absent],
    threads: int,
) -> Union:
    """The union of the founders, added in name order, but those on another strand last.

    A founder is on the strand of another where no more than `match.MAX_FLIPPED` of their sites
    differ. The most samples on one strand come first.
    """

    def joined(cohorts: list[str]) -> Union:
        union = Union(site_tables, genotypes, absent)
        tables = run_ordered(
            lambda cohort: _read_sites(site_tables[cohort], named=cohort == cohorts[0]),
            cohorts,
            min(threads, AHEAD),
        )
        for cohort, table in zip(cohorts, tables, strict=True):
            union.add(cohort, table)
        return union

    def in_doubt(cohort: str) -> bool:
        return cohort in genotypes and strands_in_doubt(genotypes[cohort][0])

    cohorts = sorted(site_tables, key=lambda cohort: (in_doubt(cohort), cohort))
    union = joined(cohorts)
    groups = [[one for one in cohorts if one not in union.flipped]]
    others = [one for one in union.flipped if not in_doubt(one)]
    if len(cohorts) == 2:
        return union
    while others:
        flipped = joined(others).flipped
        groups.append([one for one in others if one not in flipped])
        others = flipped

    def weight(group: list[str]) -> tuple[bool, int, str]:
        with open(site_tables[group[0]], "rb") as file:  # no name decides
            content = hashlib.file_digest(file, "blake2b").hexdigest()
        return not in_doubt(group[0]), union.samples_of(group), content

    first = max(groups, key=weight) if len(groups) > 1 else groups[0]
    order = first + [one for one in cohorts if one not in first]
    return union if order == cohorts else joined(order)


def _read_sites(path: Path, named: bool) -> pd.DataFrame:
    """Counts of a cohort's sites, with their identifiers if `named`."""
    return pd.read_csv(
        path,
        sep="\t",
        dtype={"chrom": str, "id": str, "ref": str, "alt": str},
        keep_default_na=False,
        na_values={name: ["NA"] for name in LEAST},
        quoting=csv.QUOTE_NONE,
        usecols=[*SITE, *["id"] * named, *LEAST, *COUNTS],
    )


def _no_site_left(steps: list[PanelStep], founders: dict[str, Path]) -> str:
    left, before, last_filter = 0, 0, ""
    for step in steps:
        if not step.leaves and not step.loses and (left or step.what != "founder"):
            continue
        now = left - step.sites if step.loses else step.sites
        if now == 0:
            before, last_filter = left, step.text.removeprefix("after ")
            break
        left = now
    way = (
        "check that the founders are of one genome build, and that contigs and alleles agree"
        if step.what == "shared"
        else "relax that filter or check that the founders' contigs, positions and alleles agree"
    )
    return (
        f"results/panel/sites.tsv: no site of the founders {', '.join(sorted(founders))} is left "
        f"({before} before the step '{last_filter}', 0 after it); {way}."
    )


def prune_founders(
    sites: pd.DataFrame,
    genotypes: dict[str, tuple[Path, Path]],
    values: list,
    threads: int = 1,
    absent: dict[str, Absent] | None = None,
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
    absent : dict, optional
        As in `build_panel`.
    """
    # Imported here because these compile kernels, which only pruning needs.
    from ..engine.select import cpu_backend
    from ..io.sites import contig_runs
    from .encode import OnPanel
    from .prune import pruned
    from .site_planes import site_planes

    pruning = parse_pruning(values, "panel.ld_prune")
    removed = np.zeros(len(sites), bool)
    founders = [
        OnPanel.open(*genotypes[cohort], sites, (absent or {}).get(cohort, UNSTATED))
        for cohort in sorted(genotypes)
    ]
    backend = cpu_backend(threads)
    for first, last in contig_runs(sites.chrom.to_numpy()):
        parts = [unpack_bed(one.rows(first, last), len(one.names)) for one in founders]
        here = sites.iloc[first:last].reset_index(drop=True)
        planes = site_planes(np.concatenate(parts, axis=1))
        removed[first:last] = pruned(planes, here, pruning, backend)
    return removed
