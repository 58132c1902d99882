"""Findings: what a reader must know before trusting the figures, as plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..cohort.drift import MIN_PRESENT
from ..cohort.hwe_groups import REST
from ..cohort.samples import UNKNOWN
from ..core.files import read_json
from ..core.tables import read_table
from ..distance.tiles import within_panel
from ..io.batches import ONE_ALT, many_failed
from .axis_warnings import axis_warnings
from .newcomers import founder_drift, has_drifted
from .outcome import Outcome
from .words import join, number, percent, plural

#: If the study does not search for duplicates (compare.analyses without identity), pairs closer
#: than this share of the median distance are reported: parent and child are at about 0.7 of it, and
#: duplicates below 0.2 despite genotyping errors.
ALIKE_SHARE = 0.3
#: Most pairs that a sentence lists.
MOST_PAIRS = 10
#: Most comparisons of missing calls that a sentence describes.
MOST_COMPARISONS = 3
#: Share of the panel's sites from which different missing calls of cohorts are a warning. Distances
#: and axes are means over all sites, which fewer cannot move; in a scan a single site can mislead.
MANY_SITES = 0.01
#: Further reasons to leave out a sample, by their value of `left_out` in `qc/{cohort}.samples.tsv`.
REASONS = {
    "qc.max_heterozygosity_sd": "a heterozygosity that is an outlier in the population",
    "qc.sex_mismatch": "an X-inferred sex that disagrees with the sheet",
    "qc.max_mendel_rate": "too many Mendelian errors",
}
#: Steps of encode: sites set to missing because their strand is unknown; sites that a file lacks.
DOUBTFUL = ("strand_ambiguous_dropped", "swapped_ambiguous_dropped")
ABSENT = "panel_sites_absent"
#: Fewer founder samples than this give unreliable axes.
FEW_FOUNDERS = 20


@dataclass(frozen=True)
class Finding:
    """One or two sentences on one topic.

    Attributes
    ----------
    level : {'warning', 'note'}
        A warning changes how results should be read; a note only explains them.
    topic : str
        Topic in a few words.
    text : str
        Plain text, not HTML.
    """

    level: str
    topic: str
    text: str


def find_problems(
    outcome: Outcome,
    close: pd.DataFrame,
    *,
    same: pd.DataFrame | None = None,
    color_by: str,
    min_sample_call_rate: float,
    min_call_rate: float,
    min_called: int,
) -> list[Finding]:
    """Findings about samples, cohorts and sites, warnings first.

    Parameters
    ----------
    close : DataFrame
        `outcome.closest_pairs`.
    same : DataFrame, optional
        `sections.comparisons.same_people`; None if the study does not search for duplicates.
    color_by : str
        `report.color_by`.
    min_sample_call_rate, min_call_rate : float
        Lowest call rates of samples and of the panel's sites.
    min_called : int
        `distance.min_called`.
    """
    groups = [outcome.folder / "qc" / f"{cohort}.populations.tsv" for cohort in outcome.founders]
    found = [
        *_failed_filters(outcome),
        *_left_out(outcome, min_sample_call_rate),
        *_labels(outcome, color_by),
        *_founders(outcome),
        *_few_sites(outcome.panel["n_sites"], min_called),
        *(
            []
            if outcome.haploid
            else hardy_weinberg(pd.concat(map(read_table, groups), ignore_index=True))
        ),
        *(_alike(close) if same is None else _duplicates(same)),
        *_cohorts(outcome, min_call_rate),
        *artefacts(outcome.folder),
        *_one_founder_population(outcome, color_by),
        *_swaps(outcome),
        *_strands(outcome),
        *_absent(outcome),
        *(Finding("warning", *words) for words in axis_warnings(outcome.axes)),
    ]
    return sorted(found, key=lambda finding: finding.level != "warning")


def hardy_weinberg(groups: pd.DataFrame) -> list[Finding]:
    """Founder samples whose sites do not have to be in Hardy-Weinberg proportions.

    groups: `qc/{cohort}.populations.tsv` of all founders.
    """
    groups = groups[groups.tested != "both"].astype({"samples": int})
    found = []
    for (tested, reason), rows in groups.groupby(["tested", "reason"], sort=False):
        named = sorted(set(rows.population) - {REST})
        whose = f" of {join(named)}" if named and len(named) == rows.population.nunique() else ""
        count = int(rows.samples.sum())
        who = f"{plural(count, 'founder sample')}{whose} {'has' if count == 1 else 'have'} {reason}"
        what = (
            "Only an excess of heterozygotes counts against a site there (panel.min_hwe_p)"
            if tested == "excess"
            else "No site was removed by panel.min_hwe_p because of these samples"
        )
        text = f"{who}. {what}."
        found.append(Finding("note", "Hardy–Weinberg", text))
    return found


def _failed_filters(outcome: Outcome) -> list[Finding]:
    """Cohorts of whose SNPs many failed a filter; `popdesic check` says it of the first records."""
    found = []
    rows = outcome.summary[outcome.summary.stage == "ingest"]
    for cohort in outcome.cohorts:
        counts = rows[rows.cohort == cohort].set_index("step")["count"]
        failed = int(counts.get("filtered", 0))
        others = sum(int(counts.get(name, 0)) for name in (*ONE_ALT.values(), "split_records"))
        read = int(counts.get("snps", 0)) + others
        if not many_failed(failed, read):
            continue
        names = [
            f"{step.removeprefix('filter ')} {number(int(count))}"
            for step, count in counts.items()
            if step.startswith("filter ")
        ]
        share = percent(failed / (failed + read))
        text = (
            f"{number(failed)} of {plural(failed + read, 'record' if others else 'SNP')} "
            f"({share}) of cohort {cohort} were "
            f"not read, because their FILTER is not PASS: {join(names)}."
        )
        found.append(Finding("warning", "Failed filters", text))
    return found


def _left_out(outcome: Outcome, least: float) -> list[Finding]:
    found = []
    lost = outcome.qc[outcome.qc.keep == "no"].sort_values("call_rate")
    for reason in pd.unique(lost.left_out.sort_values()):
        rows = lost[lost.left_out == reason]
        names = [
            f"{row.sample} ({row.cohort}, {percent(row.call_rate)})" for row in rows.itertuples()
        ]
        few = reason == "qc.min_sample_call_rate"
        why = f"a call rate below {percent(least)}" if few else REASONS.get(reason, reason)
        were = "was" if len(rows) == 1 else "were"
        found.append(
            Finding(
                "warning",
                "Samples left out",
                f"{plural(len(rows), 'sample')} with {why} {were} "
                f"left out of all analyses after quality control: {join(names)}.",
            )
        )
    kept = outcome.qc[outcome.qc.keep == "yes"]
    dropped = kept[~kept["sample"].isin(outcome.samples["sample"])]
    if len(dropped):
        were = "was" if len(dropped) == 1 else "were"
        found.append(
            Finding(
                "warning",
                "Samples left out",
                f"{plural(len(dropped), 'sample')} {were} dropped from the distances because of "
                "pairs with too few jointly called sites (distance.on_uncomparable = drop): "
                f"{join(list(dropped['sample']))}.",
            )
        )
    return found


def _labels(outcome: Outcome, color_by: str) -> list[Finding]:
    if color_by not in outcome.qc:
        text = (
            f"The sample sheet has no column '{color_by}', so the figures are coloured by cohort."
        )
        return [Finding("note", "Labels", text)]
    unknown = int(outcome.samples[color_by].isin(UNKNOWN).sum())
    if not unknown:
        return []
    return [
        Finding(
            "note",
            "Labels",
            f"{number(unknown)} of {plural(len(outcome.samples), 'sample')} "
            f"{'has' if unknown == 1 else 'have'} no value in column '{color_by}' and "
            f"{'is' if unknown == 1 else 'are'} grey in the figures.",
        )
    ]


def _founders(outcome: Outcome) -> list[Finding]:
    founders = int(outcome.samples.cohort.isin(outcome.founders).sum())
    if founders >= FEW_FOUNDERS:
        return []
    return [
        Finding(
            "warning",
            "Few founders",
            f"Only {plural(founders, 'sample')} {'defines' if founders == 1 else 'define'} the "
            "panel and the axes of the PCA: allele frequencies and maps are unreliable.",
        )
    ]


def _few_sites(n_sites: int, min_called: int) -> list[Finding]:
    least = within_panel(min_called, n_sites)
    if least == min_called:
        return []
    sites = "1 site" if n_sites == 1 else f"{number(n_sites)} sites"
    return [
        Finding(
            "warning",
            "Few sites",
            f"The panel has {sites}, fewer than the {number(min_called)} that two samples should "
            f"have in common (distance.min_called). Samples with {number(least)} of them in common "
            "are compared all the same: distances, geodesics and maps are coarse.",
        )
    ]


def _duplicates(same: pd.DataFrame) -> list[Finding]:
    """Samples with the genotypes of another."""
    if not len(same):
        return []
    pairs = [f"{row.sample_a} and {row.sample_b}" for row in same.itertuples()]
    n = len({*same.sample_a, *same.sample_b})
    return [
        Finding(
            "warning",
            "Duplicates",
            f"{number(n)} samples are genotypically identical to another: {_listed(pairs)}. "
            "Duplicates count twice in allele frequencies and serve as bridges in the geodesics.",
        )
    ]


def _alike(close: pd.DataFrame) -> list[Finding]:
    """Pairs far closer than all others, in studies that do not search for duplicates."""
    alike = close[close.of_median < ALIKE_SHARE]
    if not len(alike):
        return []
    pairs = [f"{row.sample_a} and {row.sample_b}" for row in alike.itertuples()]
    return [
        Finding(
            "warning",
            "Very similar samples",
            f"{'A pair' if len(alike) == 1 else 'Pairs'} of samples with a distance below "
            f"{percent(ALIKE_SHARE, 0)} of the median distance: {_listed(pairs)}. They were not "
            "tested for identity, because compare.analyses does not include identity.",
        )
    ]


def _listed(pairs: list[str]) -> str:
    return "; ".join(pairs[:MOST_PAIRS]) + (" and more" if len(pairs) > MOST_PAIRS else "")


def _cohorts(outcome: Outcome, min_call_rate: float) -> list[Finding]:
    found = []
    usual, encoded = founder_drift(outcome), dict(_encoded(outcome))
    for cohort in outcome.newcomers:
        row = outcome.drift.loc[cohort]
        doubtful = sum(int(encoded[cohort].get(step, 0)) for step in DOUBTFUL)
        if row.share_present < MIN_PRESENT and doubtful > encoded[cohort].get(ABSENT, 0):
            found.append(
                Finding(
                    "warning",
                    "Strand unknown",
                    f"Cohort {cohort} has only {percent(row.share_present)} of the panel's sites: "
                    f"{plural(doubtful, 'A/T or C/G site')} were set to missing, because their "
                    "strand is unknown. Its distances are based on fewer sites.",
                )
            )
        elif row.share_present < MIN_PRESENT:
            found.append(
                Finding(
                    "warning",
                    "Sites absent",
                    f"Cohort {cohort} has only {percent(row.share_present)} of the panel's sites; "
                    "the others are missing there, and its distances are based on fewer sites.",
                )
            )
        if row.call_rate < min_call_rate:
            found.append(
                Finding(
                    "warning",
                    "Call rate",
                    f"Cohort {cohort} has a call rate of {percent(row.call_rate)} at the panel's "
                    f"sites, below the {percent(min_call_rate)} required in the founders.",
                )
            )
        if has_drifted(outcome, cohort):
            others = f", and the founders differ by at most {usual:.3f}" if usual > 0 else ""
            found.append(
                Finding(
                    "warning",
                    "Allele frequencies",
                    f"Allele frequencies of cohort {cohort} differ from the panel's by "
                    f"{row.mean_af_difference:.3f} on average; sampling alone would give "
                    f"{row.expected_af_difference:.3f}{others}. Its ancestry or its genotyping may "
                    "differ from that of the founders.",
                )
            )
    return found


def artefacts(results: Path) -> list[Finding]:
    """Sites at which cohorts were genotyped otherwise than others (`qc/artefacts.json`)."""
    path = results / "qc/artefacts.json"
    about = read_json(path) if path.exists() else {"cohorts": []}
    cohorts, sites = about["cohorts"], about.get("sites", 0)
    found = [
        Finding(
            "warning" if one["departs"] else "note",
            "Artefacts",
            f"Cohort {one['cohort']} has {artefact_words(one, sites)}. The file qc/artefacts.tsv "
            "lists them.",
        )
        for one in cohorts
        if one["sites"]
    ]
    alone = [one["cohort"] for one in cohorts if one["own_population"]]
    if cohorts and not found:
        text = (
            f"None of {plural(len(cohorts), 'cohort')} departs from its ancestry at single sites "
            "as artefacts of genotyping do: by frequencies, too few heterozygotes, or missing "
            f"calls. Chance alone finds artefacts among founders in at most "
            f"{percent(about['level'], 0)} of studies, and in as many newcomers."
        )
        found.append(Finding("note", "Artefacts", text))
    if alone:
        text = (
            f"No other cohort has the ancestry of {join(alone)}: errors of frequencies there look "
            "like drift, and of these only swapped alleles were sought."
        )
        found.append(Finding("note", "Artefacts", text))
    return found


def artefact_words(one: dict, sites: int) -> str:
    """What was found in one of the cohorts of `qc/artefacts.json`, of so many sites."""
    kinds = join([f"{what} ({number(count)})" for what, count in one["named"].items()])
    beside = f" beside {one['other']}" if one["other"] else ""
    return (
        f"{plural(one['sites'], 'site')} ({percent(one['sites'] / sites)} of those tested) that "
        f"look{'s' if one['sites'] == 1 else ''} like artefacts of genotyping{beside}: {kinds}"
    )


def _one_founder_population(outcome: Outcome, color_by: str) -> list[Finding]:
    """Newcomers of other ancestry beside founders of one: the choice of sites favours these."""
    other = [cohort for cohort in outcome.newcomers if has_drifted(outcome, cohort)]
    founders = outcome.samples[outcome.samples.cohort.isin(outcome.founders)]
    labels = set(founders.get(color_by, pd.Series(dtype=str))) - set(UNKNOWN)
    if not other or len(labels) > 1 or not (labels or len(outcome.founders) == 1):
        return []
    one = f"have the label {labels.pop()}" if labels else f"are of cohort {outcome.founders[0]}"
    text = (
        f"All founders {one}. The panel holds sites that vary among them, so heterozygosity, "
        "nucleotide diversity and F_ROH cannot be compared with those of "
        f"{'cohort' if len(other) == 1 else 'cohorts'} {join(other)}: founders look more diverse, "
        "and the order can be reversed."
    )
    return [Finding("warning", "One founder population", text)]


def _encoded(outcome: Outcome) -> Iterator[tuple[str, pd.Series]]:
    """Each cohort and its counts of the stage encode, by step."""
    rows = outcome.summary[outcome.summary.stage == "encode"]
    for cohort in outcome.cohorts:
        yield cohort, rows[rows.cohort == cohort].set_index("step")["count"]


def _swaps(outcome: Outcome) -> list[Finding]:
    found = []
    for cohort, counts in _encoded(outcome):
        swapped = int(counts.get("swapped_turned", 0))
        lost = int(counts.get("swapped_ambiguous_dropped", 0))
        if not swapped and not lost:
            continue
        sites = plural(swapped + lost, "panel site")
        text = f"Cohort {cohort} has REF and ALT swapped at {sites}: {number(swapped)} corrected"
        if lost:
            text += (
                f", {number(lost)} set to missing. At A/T and C/G sites a swap cannot be "
                "distinguished from a strand flip"
            )
        found.append(Finding("note", "Swapped alleles", text + "."))
    return found


def _strands(outcome: Outcome) -> list[Finding]:
    found = []
    for cohort, counts in _encoded(outcome):
        turned = int(counts.get("strand_turned", 0))
        if not turned:
            continue
        lost = int(counts.get("strand_ambiguous_dropped", 0))
        present = int(counts["panel_sites_found"])
        text = (
            f"{number(turned)} of {plural(present, 'panel site')} of cohort {cohort} are on the "
            "opposite strand and were flipped"
        )
        if told := int(counts.get("strand_by_frequency", 0)):
            text += f"; {plural(told, 'A/T or C/G site')} oriented by allele frequency"
        if lost:
            are = "is" if lost == 1 else "are"
            text += f"; {plural(lost, 'A/T or C/G site')}, where strands look alike, {are} missing"
        found.append(Finding("note", "Strand", text + "."))
    return found


def _absent(outcome: Outcome) -> list[Finding]:
    found = []
    for cohort, counts in _encoded(outcome):
        sites = int(counts.get("absent_as_reference", 0))
        if sites:
            text = (
                f"Cohort {cohort} does not list {plural(sites, 'panel site')} at which it could be "
                "called: its samples were taken as homozygous reference there."
            )
            found.append(Finding("note", "Absent sites", text))
    return found


def missing_calls(about: dict) -> list[Finding]:
    """Whether missing calls differ between cohorts, and between cases and controls.

    about: `qc/differential_missing.json`.
    """
    found = []
    mistaken = {"cohort": "structure between the cohorts", "phenotype": "association in a scan"}
    for kind, what in mistaken.items():
        compared = [one for one in about["comparisons"] if one["kind"] == kind]
        if compared:
            found.append(_compared_missing(compared, what, about))
    return found


def _compared_missing(comparisons: list[dict], mistaken: str, about: dict) -> Finding:
    """The finding of comparisons of one kind."""
    sites, limit = about["sites"], about["limit"]
    test = f"p < {limit:g} by Fisher's exact test, corrected for {plural(about['tests'], 'test')}"
    different = sorted(
        (one for one in comparisons if one["different"]), key=lambda one: -one["different"]
    )
    if not different:
        one = comparisons[0]
        groups = (
            f"between {one['group']} and {one['other']}"
            if len(comparisons) == 1
            else f"between one of {number(len(comparisons))} founder cohorts and the others"
        )
        text = (
            f"At none of {plural(sites, 'panel site')} does the share of missing calls differ "
            f"{groups}. Calls are missing at {number(one['compared'])} of them. "
            f"A difference means {test}."
        )
        return Finding("note", "Missing calls", text)
    parts = [
        f"At {number(one['different'])} of {plural(sites, 'panel site')} the share of missing "
        f"calls differs between {one['group']} and {one['other']}, most at {one['site']} "
        f"({percent(one['missing'])} missing against {percent(one['missing_other'])})."
        for one in different[:MOST_COMPARISONS]
    ]
    further = len(different) - len(parts)
    if further:
        were = "differs" if further == 1 else "differ"
        parts.append(f"{plural(further, 'further cohort')} {were} from the others too.")
    parts.append(f"Chance alone gives such a site in at most {percent(limit, 0)} of studies.")
    parts.append(f"A difference means {test}.")
    few = different[0]["kind"] == "cohort" and different[0]["different"] < MANY_SITES * sites
    if few:
        parts.append(
            f"They are fewer than {percent(MANY_SITES, 0)} of the sites, too few to look like "
            f"{mistaken} on maps."
        )
    else:
        parts.append(f"Such sites can look like {mistaken}.")
    parts.append("The file qc/differential_missing.tsv lists them; no filter removes them.")
    return Finding("note" if few else "warning", "Missing calls", " ".join(parts))
