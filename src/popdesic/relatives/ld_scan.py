"""The LD stage: pairs in LD, decay with distance, the full matrix of one region, pruned lists."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.dosage_r2 import dosage_pairs, dosage_r2, jointly_called
from ..cohort.genetic_maps import read_map
from ..cohort.panel import load_panel
from ..cohort.prune import pruned, widest_window, write_lists
from ..cohort.prune_options import parse_pruning
from ..cohort.samples import column_of, unrelated_founders
from ..cohort.site_alleles import names_once, read_cohorts
from ..cohort.site_planes import contigs_at_once, read_site_planes, site_planes
from ..core.errors import UserError
from ..core.laps import Laps
from ..core.tables import open_text, write_npz, write_table
from ..core.threads import run_ordered
from ..engine.backend import Backend
from ..engine.site_pairs import NARROW, OnBlock, r2_pairs, tables_of
from ..engine.terms import Planes
from ..io.bed import read_fam
from ..io.layers import layers_in
from ..io.sites import contig_runs
from .disequilibrium import (
    disequilibrium,
    haplotype_frequencies,
    haplotype_pair_frequencies,
    read_haplotypes,
)
from .ld import Decay, r2_matrix, window_ends
from .ld_populations import ld_by_population, samples_by_population
from .options import parse_region

log = logging.getLogger(__name__)
COLUMNS = ("chrom", "pos_a", "id_a", "pos_b", "id_b", "distance", "called", "r2", "d", "d_prime")
#: Sites of the drawn region if none is named, and most sites of a named region.
REGION_SITES, MOST_REGION_SITES = 150, 2000

HOW = {
    "em": "r2 is the squared correlation of genotypes; D and D' from haplotype frequencies by EM",
    "phased": "r2, D and D' from phased haplotypes",
    "alleles": "r2 is the squared correlation of shares of ALT alleles; D and D' are of diploids",
}


@dataclass(frozen=True)
class LdOptions:
    """Keys `compare.ld.*`; `prune` is `embedding.ld_prune`, `column` `population.column`."""

    window: str
    min_r2: float
    phase: str
    map: str | None
    region: str
    prune: list
    genotypes: str = "called"
    column: str = "population"


def measure_ld(
    prefixes: list[Path],
    sources: list[list[Path | str]],
    panel: Path,
    unrelated: Path | None,
    sheet: Path,
    out: dict[str, Path],
    backend: Backend,
    options: LdOptions,
) -> dict[str, int]:
    """LD between the panel's sites, over the founders (only the unrelated ones, given a table).

    Contigs are looked at side by side where their planes take little memory
    (`site_planes.AHEAD_BYTES`), otherwise one by one.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the founder cohorts' genotypes on the panel, called or imputed.
    sources : list of lists of Path
        The founder cohorts' genotype files, read only for phase (``compare.ld.phase: phased``).
    sheet : Path
        The sample sheet, for populations.
    out : dict
        ``pairs`` (.tsv.gz), ``decay`` and ``populations`` (.tsv), ``region`` (.npz: chrom, pos,
        r2), ``kept`` and ``removed`` (site lists of pruning).

    Returns
    -------
    dict
        Counts.

    Raises
    ------
    UserError
        An invalid window, region or map; genotypes without phase.
    """
    laps = Laps()
    sites, digest = load_panel(panel)
    pruning = parse_pruning(options.prune, "embedding.ld_prune")
    cm = read_map(Path(options.map), sites) if options.map else None
    names = [names_once(prefix) for prefix in prefixes]
    layered = any(layers_in(read_fam(prefix)) > 1 for prefix in prefixes)
    how = "alleles" if layered else options.phase
    keep = unrelated_founders(names, unrelated)
    read = read_site_planes(prefixes, keep, backend.threads)
    read_alleles = read_cohorts(prefixes, None, keep)[0] if layered else None
    phased = None
    if how == "phased":
        phased = np.concatenate(
            [
                read_haplotypes(files, sites, own[who].tolist())
                for files, own, who in zip(sources, names, keep, strict=True)
            ],
            axis=1,
        )
    laps.end("panel")
    runs = contig_runs(sites.chrom.to_numpy())
    narrow = max(_widest(sites, options, cm), widest_window(sites, *pruning[:2])) <= NARROW
    n_samples = sum(int(who.sum()) for who in keep)
    at_once, shared = contigs_at_once(runs, n_samples, narrow, backend)
    if at_once > 1:
        read = read_site_planes(prefixes, keep, shared.threads)

    def on_contig(bounds: tuple[int, int]) -> _Contig:
        first, last = bounds
        here = sites.iloc[first:last].reset_index(drop=True)
        planes = read(first, last)
        alleles = None if read_alleles is None else read_alleles(first, last)
        removed = pruned(planes, here, pruning, shared, alleles)
        if phased is not None:
            planes = site_planes(phased[first:last])
        ends = window_ends(here, options.window, None if cm is None else cm[first:last])
        pos, decay = here.pos.to_numpy(), Decay()

        def count(i: np.ndarray, j: np.ndarray, r2: np.ndarray) -> None:
            decay.add(pos[j] - pos[i], r2)

        if alleles is not None:
            i, j, r2 = _pairs_of_alleles(alleles, ends, options.min_r2, count, shared.threads)
            lines = _lines(here, i, j, jointly_called(alleles, i, j), [r2], ["NA", "NA"])
        else:
            i, j, r2 = r2_pairs(shared, planes, ends, options.min_r2, count)
            lines = _lines_of_pairs(here, planes, i, j, r2, phased is not None, shared)
        return _Contig(removed, decay, first + i, first + j, lines)

    decay, removed, pairs = Decay(), np.zeros(len(sites), bool), []
    with open_text(out["pairs"]) as file:
        filled = "; missing calls imputed" if options.genotypes == "imputed" else ""
        file.write(f"# panel {digest}; {HOW[how]}; founders{filled}\n")
        file.write("\t".join(COLUMNS) + "\n")
        for (first, last), one in zip(runs, run_ordered(on_contig, runs, at_once), strict=True):
            laps.end("contigs")
            removed[first:last] = one.removed
            decay.merge(one.decay)
            pairs.append((one.first, one.second))
            file.write(one.lines)
            laps.end("writing")
    write_table(out["decay"], decay.table())
    write_lists(sites, removed, out["kept"], out["removed"])
    i, j = (np.concatenate(part) for part in zip(*pairs, strict=True))
    region = choose_region(sites, options.region, i, j)
    if layered:
        drawn = read_cohorts(prefixes, region, keep)[0](0, len(region))
        whole = dosage_r2(drawn, drawn, backend.threads)
    else:
        planes = read(region) if phased is None else site_planes(phased[region])
        whole = r2_matrix(planes, backend)
    write_npz(
        out["region"],
        chrom=np.array(sites.chrom.iloc[region[0]]),
        pos=sites.pos.to_numpy(np.int64)[region],
        r2=whole.astype(np.float32),
    )
    laps.end("region")
    groups = samples_by_population(column_of(sheet, options.column), names, keep)
    all_ends = window_ends(sites, options.window, cm)
    table = ld_by_population(prefixes, groups, sites, all_ends, backend, layered)
    write_table(out["populations"], table)
    laps.end("populations")
    laps.log(log, "LD")
    return {
        "sites": len(sites),
        "samples": n_samples,
        f"pairs with r2 of at least {options.min_r2}": len(i),
        "pairs within the window": int(decay.pairs.sum()),
        "sites left by pruning": int((~removed).sum()),
        "populations": len(groups),
    }


@dataclass(frozen=True)
class _Contig:
    """Of one contig: what pruning removes, the rows of pairs of sites, and their lines."""

    removed: np.ndarray
    decay: Decay
    first: np.ndarray
    second: np.ndarray
    lines: str


def _widest(sites: pd.DataFrame, options: LdOptions, cm: np.ndarray | None) -> int:
    """Sites of the widest window."""
    ends = window_ends(sites, options.window, cm)
    return int((ends - np.arange(len(ends))).max(initial=1))


def _lines_of_pairs(sites, planes: Planes, i, j, r2, phased: bool, backend) -> str:
    tables = tables_of(planes, i, j, backend.threads)
    frequency = haplotype_pair_frequencies(tables) if phased else haplotype_frequencies(tables)
    d, d_prime = disequilibrium(frequency)
    return _lines(sites, i, j, tables.sum(axis=(1, 2)), [r2, d, d_prime], [])


def _pairs_of_alleles(
    alleles: np.ndarray, ends: np.ndarray, least: float, on_block: OnBlock, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`r2_pairs` of numbers of alleles, int8 (n_sites, n_samples); `on_block` sees every block."""
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for i, j, r2 in dosage_pairs(alleles, ends, threads):
        on_block(i, j, r2)
        there = r2 >= least  # False for NaN
        parts.append((i[there], j[there], r2[there]))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _lines(
    sites: pd.DataFrame,
    i: np.ndarray,
    j: np.ndarray,
    called: np.ndarray,
    numbers: list[np.ndarray],
    words: list[str],
) -> str:
    """Lines of the table of pairs, columns COLUMNS; the last ones are `words` in every line."""
    from ..core.number_text_cpu import integer_fields, join_fields, number_fields, string_fields

    pos = sites.pos.to_numpy()
    chroms, names = string_fields(sites.chrom.tolist()), string_fields(sites.id.tolist())
    columns = [chroms.at(i), integer_fields(pos[i]), names.at(i)]
    columns += [integer_fields(pos[j]), names.at(j)]
    columns += [integer_fields(pos[j] - pos[i]), integer_fields(called)]
    columns += [number_fields(values, 6) for values in numbers]
    columns += [string_fields([word]).at(np.zeros(len(i), np.int64)) for word in words]
    return join_fields(columns).decode()


def choose_region(sites: pd.DataFrame, region: str, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Rows of the sites of a region.

    `region` is ``chrom:from-to``, or ``auto``: the REGION_SITES consecutive sites of one contig
    with the most pairs in LD; ties go to the first.

    Raises
    ------
    UserError
        It is invalid, or has fewer than 2 or more than MOST_REGION_SITES sites.
    """
    bounds = parse_region(region)
    if bounds is not None:
        chrom, low, high = bounds
        pos = sites.pos.to_numpy()
        rows = np.flatnonzero((sites.chrom == chrom).to_numpy() & (pos >= low) & (pos <= high))
        if not 2 <= len(rows) <= MOST_REGION_SITES:
            raise UserError(
                f"config/config.yaml: compare.ld.region {region} has {len(rows)} panel sites; "
                f"choose one with 2 to {MOST_REGION_SITES}."
            )
        return rows
    near = j - i < REGION_SITES
    starts = np.zeros(len(sites) + 1, np.int64)
    np.add.at(starts, np.maximum(j[near] - REGION_SITES + 1, 0), 1)
    np.add.at(starts, i[near] + 1, -1)
    held = np.cumsum(starts)[:-1]
    best, most = (0, min(REGION_SITES, len(sites))), -1
    for first, last in contig_runs(sites.chrom.to_numpy()):
        room = max(1, last - first - REGION_SITES + 1)
        at = first + int(np.argmax(held[first : first + room]))
        if held[at] > most:
            best, most = (at, min(at + REGION_SITES, last)), held[at]
    return np.arange(*best)
