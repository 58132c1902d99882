"""Section on populations: diversity, differentiation, f-statistics, runs of homozygosity."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.files import read_json
from ...core.tables import read_table
from ...population.diversity import LEFT_OUT
from ...population.runs import LEAST_SEARCHED
from ..inline import describe_drawn
from ..registry import population_figures
from ..words import join, number, percent, plural
from .sweeps import sweeps_part

#: Rows of the tables on the page.
ROWS = 30
#: Most regions named in the text.
NAMED = 3
#: Share of the genome that suits runs of homozygosity above which nothing is said.
MOST_SEARCHED = 0.9


def population_section(
    folder: Path, figures: Path, analyses: Sequence[str], founders: Collection[str] = ()
) -> dict[str, Any] | None:
    """Text, tables and figures; None if the study has no analysis of populations.

    `founders`: samples of founder cohorts.

    Returns
    -------
    dict
        ``words`` and ``notes`` (lists of sentences), ``populations`` and ``pairs`` (rows of
        text), ``private_alleles`` (how many are drawn), ``more_populations``, ``more_pairs``:
        rows that are left out, ``sweeps`` (rows of text), ``runs``, ``pi``, ``figures``: list of
        FigureText.
    """
    path = folder / "population/summary.json"
    if not analyses or not path.exists():
        return None
    about = read_json(path)
    table = read_table(path.parent / "populations.tsv")
    pairs = pd.DataFrame()
    if "differentiation" in about["analyses"]:
        pairs = read_table(path.parent / "pairs.tsv")
        order = pd.to_numeric(pairs.fst, errors="coerce").sort_values(ascending=False).index
        pairs = pairs.loc[order]
    sizes = {
        "n_people": number(about["people"]),
        "n_populations": number(about["populations"]),
        "n_population_sites": number(about["sites"]),
        "n_diversity_sites": number(about["diversity_sites"]),
        "n_blocks": number(about["blocks"]),
        "n_f3": number(about.get("f3_tests", 0)),
    }
    shown = population_figures(analyses)
    if not about["populations"]:
        # These do not need populations.
        own = ("population_local", "population_sweeps", "population_ancestry")
        shown = [figure for figure in shown if figure.name in own]
    local_words, local_notes = [], []
    if "local" in analyses:
        local = read_json(path.parent / "local_pca.json")
        local_words, local_notes = local_structure(local, path.parent)
        sizes |= {
            "n_local_people": number(local["people"]),
            "n_windows": number(local["windows"]),
            "n_window_sites": number(local["window_sites"]),
        }
        if "reason" in local:
            shown = [figure for figure in shown if figure.name != "population_local"]
    swept = sweeps_part(path.parent, "sweeps" in analyses)
    sizes |= swept.sizes
    if not swept.rows:
        shown = [figure for figure in shown if figure.name != "population_sweeps"]
    ancestry_words, ancestry_notes = [], []
    if "ancestry" in analyses:
        fitted = read_json(path.parent / "ancestry.json")
        ancestry_words, ancestry_notes = ancestry_components(fitted)
        sizes |= {
            "n_components": number(fitted["k"]),
            "n_fitted": number(fitted["people"]),
            "n_ancestry_sites": number(fitted["sites"]),
        }
        if "reason" in fitted:
            shown = [figure for figure in shown if figure.name != "population_ancestry"]
    return {
        "words": [
            *_words(about, table, pairs, path.parent),
            *local_words,
            *swept.words,
            *ancestry_words,
        ],
        "notes": [
            *_notes(about, _without_founders(table, path.parent, founders)),
            *local_notes,
            *swept.notes,
            *ancestry_notes,
        ],
        "private_alleles": table.private_alleles[0] if len(table) > 1 else "",
        "populations": [_population_row(row) for row in table.head(ROWS).itertuples()],
        "more_populations": max(len(table) - ROWS, 0),
        "pairs": [_pair_row(row) for row in pairs.head(ROWS).itertuples()],
        "more_pairs": max(len(pairs) - ROWS, 0),
        "sweeps": swept.rows,
        "runs": "runs" in about["analyses"],
        "pi": about["pi"],
        "figures": describe_drawn(shown, figures, sizes),
    }


def _words(
    about: dict[str, Any], table: pd.DataFrame, pairs: pd.DataFrame, folder: Path
) -> list[str]:
    """What was found."""
    if not about["populations"]:
        return ["No population of the sample sheet has enough samples, so nothing was estimated."]
    errors = (
        f"standard errors come from leaving out one of {plural(about['blocks'], 'block')} of "
        f"{about['block']} at a time"
        if about["blocks"] > 1
        else f"no standard error can be estimated, because all sites lie in one block of "
        f"{about['block']}"
    )
    words = [
        f"{plural(about['people'], 'sample')} of {plural(about['populations'], 'population')}; "
        f"{errors}."
    ]
    wide, panel = about["diversity_sites"], about["sites"]
    if wide > panel:
        words.append(
            f"Heterozygosity and F of populations, Hardy-Weinberg tests, private alleles"
            f"{', nucleotide diversity, d_xy' * about['pi']} and spectra rest on {number(wide)} "
            "sites. These are all that vary among the founders and pass the panel's other filters. "
            f"All other statistics rest on the panel's {number(panel)} sites."
        )
    else:
        words.append(f"All statistics rest on the panel's {number(panel)} sites.")
    if about.get("further_left_out"):
        words.append(
            "Sites that the panel leaves out do not count here: a population has no genotypes at "
            f"more than {100 * LEFT_OUT:.0f} % of all. Its file may list the sites that vary in "
            "its own samples alone; say what its absent sites are (absent, callable)."
        )
    if without := about.get("without_further"):
        words.append(
            f"There are no spectra: {join(without)} {'has' if len(without) == 1 else 'have'} no "
            f"genotypes at more than {100 * LEFT_OUT:.0f} % of all sites, so that heterozygosity "
            "there is too high. Say what absent sites are (absent, callable)."
        )
    if len(pairs):
        first = pairs.iloc[0]
        names, shown = (first.population1, first.population2), _with_error(first.fst, first.error)
        words.append(
            f"F_ST between {names[0]} and {names[1]} is {shown}."
            if len(pairs) == 1
            else f"{names[0]} and {names[1]} differ most (F_ST {shown})."
        )
    if inbred := about.get("inbred"):
        words.append(
            f"F is above zero in {join(inbred)}, so f2, F_ST (Hudson) and f3 take heterozygosity "
            "there between samples, not within."
        )
    if about.get("f3_tests"):
        found = about["admixed"]
        chance = (
            f"of {number(about['f3_tests'])} f3 tested, chance of any false one in a study "
            "without admixture: 5 %"
        )
        if found:
            words.append(
                f"f3 indicates admixture in {join(found)}: it is negative with two other "
                f"populations ({chance})."
            )
        else:
            words.append(f"No f3 indicates admixture ({chance}).")
    if about.get("runs_min_sites") and not about["runs_too_sparse"]:
        low, high = map(number, about["runs_min_sites"])
        sites = low if low == high else f"{low} to {high}"
        words.append(
            "Runs of homozygosity, sought in "
            f"{percent(about['runs_density']['searched'], 0)} of the genome, have at least {sites} "
            "sites, by the heterozygosity of the sample. By chance at most 5 % of cohorts would "
            "have any."
        )
    if about.get("consensus_regions"):
        regions = read_table(folder / "consensus.tsv").head(NAMED)
        named = join([f"{r.chrom}:{r.start}-{r.end}" for r in regions.itertuples()])
        words.append(
            f"{plural(about['consensus_regions'], 'region lies', 'regions lie')} in runs of "
            f"homozygosity of at least {percent(about['consensus_share'], 0)} of the samples: "
            f"{named}{', …' * (about['consensus_regions'] > NAMED)}."
        )
    return words


def runs_density(density: dict[str, float | None], too_sparse: bool) -> list[str]:
    """What the panel's density leaves of the search for runs; `population.runs.SiteDensity`."""
    apart = f"(usually {density['kb_per_site'] or 0:.3g} kb apart)"
    if too_sparse:
        return [
            "Runs of homozygosity as plink1.9 --homozyg defines them could be found in only "
            f"{percent(density['searched'], 0)} of the genome, so F_ROH is not given. Sites "
            f"{apart} are too sparse, or their stretches too short. Half of the genome should lie "
            "in stretches of at least population.roh.min_kb and population.roh.min_sites sites. "
            "There, sites are at most 50 kb apart on average, with no gap above 1 Mb. Loosen these "
            "limits, or give more sites."
        ]
    if density["searched"] < MOST_SEARCHED:
        return [
            f"Runs of homozygosity could be found in {percent(density['searched'], 0)} of the "
            f"genome only, where sites {apart} are dense enough; F_ROH is the share of the "
            "whole genome that lies in them, so it can be too low, and it is not given below "
            f"{percent(LEAST_SEARCHED, 0)}."
        ]
    return []


def local_structure(local: dict[str, Any], folder: Path) -> tuple[list[str], list[str]]:
    """Sentences and notes on the windows of the genome; `local` is `local_pca.json`."""
    if "reason" in local:
        return [], [f"Local structure along the genome is not tested: {local['reason']}."]
    if not local["regions"]:
        found = "order samples in the same way: no region differs."
        return [f"{plural(local['windows'], 'window')} along the genome {found}"], []
    table = read_table(folder / "local_pca.tsv")
    parts = [part for _, part in table[table.outlier == "yes"].groupby("region", sort=False)]
    named = [f"{p.chrom.iloc[0]}:{p.start.iloc[0]}-{p.end.iloc[-1]}" for p in parts[:NAMED]]
    among = "among them " if len(parts) > NAMED else ""
    verb = "orders" if len(parts) == 1 else "order"
    words = (
        f"{plural(len(parts), 'region')} ({among}{join(named)}) {verb} samples differently from "
        f"the rest of the genome ({plural(local['windows'], 'window')} compared, at most 5 % of "
        "genomes without such a region show one by chance)."
    )
    note = (
        "Such a region may be an inversion. Introgression, selection, low recombination and poorly "
        "genotyped sites look the same on the map of windows."
    )
    return [words], [note]


def ancestry_components(about: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Sentences and notes on ancestry components; `about` is `ancestry.json`."""
    if "reason" in about:
        return [], [f"There are no ancestry proportions: {about['reason']}."]
    low, high = about["range"]
    people = f"{plural(about['people'], 'unrelated founder')} at {number(about['sites'])} sites"
    if about["k"] == 1 and high > low:
        return [
            f"One component describes {people} best (cross-validation of {low} to {high}): "
            "more components do not predict hidden genotypes better."
        ], []
    how = f"cross-validation of {low} to {high}" if high > low else "population.ancestry.components"
    words = f"{plural(about['k'], 'ancestry component')} ({how}) are fitted to {people}"
    notes = []
    if runs := about["runs"]:
        words += f"; {about['same']} of {plural(len(runs), 'start')} give the same ones"
        if about["same"] < len(runs):
            notes.append(
                f"Only {about['same']} of {plural(len(runs), 'fit')} from different seeds give the "
                "same ancestry components. Proportions depend on the seed; try a smaller K."
            )
        if not all(run["converged"] for run in runs):
            notes.append("A fit of the ancestry components did not converge.")
    if high > low and about["k"] == high:
        notes.append(
            f"The largest K of the range, {high}, has the smallest error: more components may "
            "describe the founders even better."
        )
    notes.append(
        "Ancestry components are not ancestries or peoples: they are sets of allele frequencies "
        "that depend on who was sampled, on the sites and on K."
    )
    return [f"{words}."], notes


def _without_founders(table: pd.DataFrame, folder: Path, founders: Collection[str]) -> list[str]:
    """Populations that have no sample among the founders."""
    if not founders:
        return []
    people = read_table(folder / "samples.tsv")
    own = set(people.population[people["sample"].isin(founders)])
    return [name for name in table.population if name not in own]


def _notes(about: dict[str, Any], apart: list[str]) -> list[str]:
    notes = []
    if about["few_blocks"] and about["blocks"] > 1 and about["populations"]:
        notes.append(
            f"There are only {plural(about['blocks'], 'block')} of sites, so standard errors are "
            "themselves uncertain; a smaller population.block gives more, if LD allows it."
        )
    if small := about["too_small"]:
        named = join([f"{name} ({n})" for name, n in list(small.items())[:NAMED]])
        notes.append(f"Populations too small for an estimate are left out: {named}.")
    if count := about["people_without_population"]:
        notes.append(f"{plural(count, 'sample has', 'samples have')} no population.")
    if count := about["relatives_left_out"]:
        notes.append(
            f"{plural(count, 'sample is', 'samples are')} left out of the estimates of "
            "populations, because others are closely related to them (close_kinship)."
        )
    if count := about["pseudo_haploid"]:
        notes.append(
            f"{plural(count, 'sample is', 'samples are')} pseudo-haploid (no heterozygous genotype "
            "where many were expected) and count one allele per site."
        )
    if density := about.get("runs_density"):
        notes += runs_density(density, about["runs_too_sparse"])
    if not about["pi"]:
        notes.append(
            "Nucleotide diversity and d_xy are not given, because they need the positions that "
            "could be called (population.mask). A position without a site may be invariant or may "
            "not have been seen."
        )
    if about.get("f3_left_out"):
        notes.append("There are too many populations to compute f3 of all triples.")
    notes.append(
        "All sites vary among the founders, so variants that only newcomers carry are left out. "
        "Arrays have fewer rare variants than sequences. Heterozygosity, private alleles and "
        "spectra describe these sites, not whole genomes."
    )
    if apart:
        more = f" and {len(apart) - NAMED} more" if len(apart) > NAMED else ""
        verb = "has" if len(apart) == 1 else "have"
        notes.append(
            f"{join(apart[:NAMED]) if not more else ', '.join(apart[:NAMED])}{more} {verb} no "
            "sample among the founders, so heterozygosity, private alleles and nucleotide "
            "diversity there are too low."
        )
    return notes


def _number(text: str, digits: int = 4) -> str:
    if text == "NA":
        return "NA"
    return f"{round(float(text), digits) + 0.0:.{digits}f}"  # + 0.0: no minus before a zero


def _shares(found: str, chance: str) -> str:
    if found == "NA":
        return "NA"
    return f"{percent(float(found))} ({percent(float(chance))})"


def _per_thousand(text: str) -> str:
    return text if text == "NA" else str(1000 * float(text))


def _with_error(text: str, error: str, digits: int = 4) -> str:
    """A number with its standard error, or the words that its blocks allow none."""
    shown = _number(text, digits)
    if error == "NA":
        return shown if text == "NA" else f"{shown}, error not estimable"
    return f"{shown} ± {_number(error, digits)}"


def _population_row(row: Any) -> dict[str, str]:
    return {
        "name": row.population,
        "people": number(int(row.people)),
        "sites": number(int(row.sites)),
        "call_rate": percent(float(row.call_rate)),
        "observed": _with_error(row.observed, row.observed_error),
        "expected": _with_error(row.expected, row.expected_error),
        "f": _with_error(row.f, row.f_error, 3),
        "hwe": _shares(row.hwe_low, row.hwe_expected),
        "private": _with_error(*map(_per_thousand, (row.private, row.private_error)), 2),
        "f_roh": _number(getattr(row, "mean_f_roh", "NA")),
        "pi": _number(row.pi, 6),
    }


def _pair_row(row: Any) -> dict[str, str]:
    return {
        "first": row.population1,
        "second": row.population2,
        "fst": _with_error(row.fst, row.error),
        "weir_cockerham": _number(row.weir_cockerham),
        "f2": _number(row.f2, 5),
        "sharing": _number(row.sharing_distance),
        "d_xy": _number(row.d_xy, 6),
        "sites": number(int(row.sites)),
    }
