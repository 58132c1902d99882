"""The stage: all estimates between and within populations, from the counts of the cohorts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.panel import SiteLists
from ..core.files import atomic_path, write_json
from ..core.tables import read_table, write_table
from ..core.threads import one_blas_thread
from .allele_counts import PopulationCounts, load_counts, population_sizes
from .blocks import choose_blocks, in_mask
from .differentiation import pair_table, population_tree, track_table
from .diversity import LEFT_OUT, alleles_reached, population_table, spectrum, without_alleles
from .f_statistics import f2_blocks, f3_screen, f4_tests
from .options import LEAST_PEOPLE
from .r_files import write_rds_array
from .runs import LEAST_SEARCHED, SiteDensity, class_names, consensus_regions

log = logging.getLogger(__name__)

#: Draws of blocks for the support of the tree, and the share of the people who must have a run of
#: homozygosity in a consensus region.
BOOTSTRAP, CONSENSUS = 100, 0.2

#: Chance of any false sign of admixture in the screen of all f3.
FAMILY_WISE = 0.05
#: Most populations of the screen of all f3: triples grow with the cube of their number.
MOST_SCREENED = 60
#: Fewest blocks that a standard error rests on.
FEW_BLOCKS = 20


@one_blas_thread
def measure_population(
    counts: Sequence[Path],
    samples: Sequence[Path],
    runs: Sequence[Path],
    lists: SiteLists,
    out: Path,
    *,
    analyses: Sequence[str],
    block: str,
    genetic_map: str | None = None,
    mask: str = "",
    f4: Sequence[Sequence[str]] = (),
    seed: int = 1,
    threads: int = 1,
) -> dict[str, Any]:
    """Write all tables of `results/population`.

    Parameters
    ----------
    counts, samples, runs : sequences of Path
        What `counts.count_cohort` wrote for each cohort, in sample order; `runs` may be empty.
    lists : SiteLists
        Diversity within populations, spectra and d_xy rest on the sites of both lists, all else on
        the panel. All rests on the panel where a population lacks genotypes at more than LEFT_OUT
        of all sites, but not of the panel's: what it has would be the sites that vary in it. Not
        with a mask, by which these sites count as invariant there; then a sentence says so.
    out : Path
        Folder of `samples.tsv`, `populations.tsv`, `spectrum.tsv`, `summary.json`; with
        ``differentiation`` `pairs.tsv`, `blocks.tsv`, `tree.nwk`; with ``f_statistics`` `f3.tsv`,
        `f4.tsv`, `f2_blocks.rds`; with ``runs`` `runs.tsv`, `consensus.tsv`.
    analyses : sequence of str
    block : str
        Size of the blocks of the jackknife, or ``auto`` (`blocks.choose_blocks`).
    genetic_map : str, optional
        For blocks in cM.
    mask : str
        BED of the positions that could be called, for d_xy and nucleotide diversity.
    f4 : sequence of four names each
        Tests of f4 and D.

    Returns
    -------
    dict
        The summary, also written to `summary.json`.
    """
    from .allele_sums_cpu import own_sums, pair_sums

    sites, every, order = lists.load()
    wide = load_counts(counts, LEAST_PEOPLE, order)
    known = wide if order is None else wide.at(order < len(sites))
    lacking = alleles_reached(wide) < 2 <= alleles_reached(known)
    without = without_alleles(wide) if lacking and mask else []
    lacking = lacking and not mask
    if without:
        log.warning(
            "There are no spectra, since population %s has no genotypes at more than %.0f %% of "
            "the sites that vary among the founders, as where its file lists the sites that vary "
            "in its own samples; its heterozygosity is that of the sites it has, too much. Say "
            "what its absent sites are (absent, callable).",
            " and population ".join(without),
            100 * LEFT_OUT,
        )
    if lacking:
        log.warning(
            "Diversity rests on the panel alone: a population has no genotypes at more than "
            "%.0f %% of the sites that vary among the founders, as where its file lists the sites "
            "that vary in its own samples. Say what its absent sites are (absent, callable).",
            100 * LEFT_OUT,
        )
        every, wide = sites, known
    block, wide_starts = choose_blocks(every, block, genetic_map)
    in_cm = block.lower().endswith("cm")
    _, starts = choose_blocks(sites, block, genetic_map if in_cm else None)
    masked, base_pairs = np.zeros(len(every), bool), None
    if mask:
        masked, base_pairs = in_mask(every, wide_starts, Path(mask))
    people = pd.concat([read_table(path) for path in samples], ignore_index=True)
    about: dict[str, Any] = {
        "sites": len(sites),
        "diversity_sites": len(every),
        "further_left_out": lacking,
        "without_further": without,
        "blocks": len(starts) - 1,
        "block": block,
        "few_blocks": len(starts) - 1 < FEW_BLOCKS,
        "populations": len(known.names),
        "people": int(known.people.sum()),
        "people_without_population": int((people.population == "NA").sum()),
        "relatives_left_out": int((people.relative == "yes").sum()),
        "pseudo_haploid": int((people.ploidy == "1").sum()),
        "too_small": _too_small(counts),
        "analyses": list(analyses),
        "pi": bool(mask),
        "callable_bp": None if base_pairs is None else float(base_pairs.sum()),
        "seed": seed,
    }
    every_sums = wide.alleles, wide.genotypes, masked, wide_starts
    table = population_table(wide, own_sums(*every_sums), wide_starts, base_pairs)
    inbred = inbred_populations(table)
    if inbred.any():
        table = population_table(wide, own_sums(*every_sums, inbred), wide_starts, base_pairs)
    known = replace(known, inbred=inbred)
    table.insert(table.columns.get_loc("polymorphic"), "inbred", np.where(inbred, "yes", "no"))
    about["inbred"] = table.population[inbred].tolist()
    left_out = people.population[people.relative == "yes"].value_counts()
    table.insert(2, "relatives", left_out.reindex(table.population, fill_value=0).to_numpy())
    if "runs" in analyses:
        table = _with_runs(table, people)
        about |= _write_runs(counts, runs, sites, people, out)
    write_table(out / "samples.tsv", people)
    write_table(out / "populations.tsv", table)
    write_table(out / "spectrum.tsv", spectrum(wide))
    if "differentiation" in analyses:
        nowhere = np.zeros(len(sites), bool)
        sums = pair_sums(known.alleles, known.genotypes, nowhere, starts, threads, inbred)
        within = pair_sums(*every_sums, threads) if mask else None
        pairs = pair_table(known, sums, base_pairs, within)
        tracks = track_table(known.names, sums, sites, starts)
        tree = population_tree(known.names, sums, draws=BOOTSTRAP, seed=seed)
        write_table(out / "pairs.tsv", pairs)
        write_table(out / "blocks.tsv", tracks)
        with atomic_path(out / "tree.nwk") as temporary:
            temporary.write_text(f"{tree}\n" if tree else "", "utf-8")
        about |= {"pairs": len(pairs), "bootstrap": BOOTSTRAP}
    if "f_statistics" in analyses:
        about |= _write_f_statistics(known, starts, f4, out)
    write_json(out / "summary.json", about)
    return about


def inbred_populations(table: pd.DataFrame) -> np.ndarray:
    """Populations whose F is significantly above zero: bool (n_populations,).

    Among random samples, any population passes with the chance FAMILY_WISE (`f3_limit`).

    Parameters
    ----------
    table : DataFrame
        `diversity.population_table`.
    """
    tested = (table.f_error > 0).to_numpy()
    limits = np.array([-f3_limit(int(tested.sum()), blocks) for blocks in table.blocks])
    return tested & (table.f > limits * table.f_error).to_numpy(bool)


def _too_small(paths: Sequence[Path]) -> dict[str, int]:
    """Populations with fewer people than LEAST_PEOPLE, and their people."""
    sizes = sorted(population_sizes(paths).items())
    return {name: n for name, n in sizes if n < LEAST_PEOPLE}


def _with_runs(table: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """`table` with mean and median F_ROH of each population, in all and by length class."""
    names = ["f_roh", *class_names()]
    values = people[names].apply(pd.to_numeric, errors="coerce")
    grouped = values.groupby(people.population)
    means, median = grouped.mean(), grouped.f_roh.median()
    for name in names:
        table[f"mean_{name}"] = means[name].reindex(table.population).to_numpy()
    table["median_f_roh"] = median.reindex(table.population).to_numpy()
    return table


def _write_runs(
    counts: Sequence[Path],
    runs: Sequence[Path],
    sites: pd.DataFrame,
    people: pd.DataFrame,
    out: Path,
) -> dict[str, Any]:
    """Join the runs of the cohorts, and find the regions that many people share."""
    joined = pd.concat([read_table(path) for path in runs], ignore_index=True)
    write_table(out / "runs.tsv", joined)
    within, diploid, densities = np.zeros(len(sites), np.int64), 0, []
    for path in counts:
        with np.load(path) as arrays:
            within += arrays["in_runs"].sum(axis=1, dtype=np.int64)
            diploid += int(arrays["sizes"][arrays["ploidy"] == 2].sum())
            densities.append(SiteDensity(*arrays["density"].tolist()))
    # By the samples' own limits, so that cohorts may differ; the least is what is sure.
    density = min(densities, key=lambda one: one.searched)
    least = [int(n) for n in people.get("roh_min_sites", []) if n != "NA"]
    regions = consensus_regions(within, max(diploid, 1), sites, CONSENSUS)
    write_table(out / "consensus.tsv", regions)
    return {
        "runs": len(joined),
        "runs_density": {k: None if np.isnan(v) else v for k, v in asdict(density).items()},
        "runs_too_sparse": all(one.searched < LEAST_SEARCHED for one in densities),
        "runs_min_sites": [min(least), max(least)] if least else None,
        "consensus_regions": len(regions),
        "consensus_share": CONSENSUS,
    }


def f3_limit(tests: int, blocks: int) -> float:
    """z_corrected below which an f3 is negative: any false one of `tests` has FAMILY_WISE chance.

    A quantile of Student's t with one degree of freedom less than blocks, because the error comes
    from as many blocks.
    """
    if not tests or blocks < 2:
        return float("-inf")
    from scipy.special import stdtrit

    return float(stdtrit(blocks - 1, FAMILY_WISE / tests))


def _write_f_statistics(
    known: PopulationCounts, starts: np.ndarray, f4: Sequence[Sequence[str]], out: Path
) -> dict[str, Any]:
    """f3 of all triples, chosen f4, and blocks of f2 for ADMIXTOOLS 2."""
    n = len(known.names)
    screened = n <= MOST_SCREENED
    empty = PopulationCounts([], *[np.zeros(0, np.int64)] * 2, known.alleles, known.genotypes)
    f3 = f3_screen(known if screened else empty, starts)
    tests = int(f3.z.notna().sum())
    limit = f3_limit(tests, len(starts) - 1)
    f3["admixed"] = np.where(f3.z_corrected < limit, "yes", "no")
    chosen = f4_tests(known, starts, f4)
    blocks, sizes = f2_blocks(known, starts)
    write_table(out / "f3.tsv", f3)
    write_table(out / "f4.tsv", chosen)
    lengths = [f"l{size}" for size in sizes]
    write_rds_array(out / "f2_blocks.rds", blocks, [known.names, known.names, lengths])
    return {
        "f3_tests": tests,
        "f3_limit": round(limit, 3) if np.isfinite(limit) else None,
        "f3_left_out": not screened,
        "admixed": sorted(set(f3.target[f3.admixed == "yes"])),
        "f4_tests": len(chosen),
        "f2_sites": int(sizes.sum()),
        "f2_blocks": len(sizes),
    }
