"""What a reader must know before trusting the figures, as plain sentences."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..cohort.samples import UNKNOWN
from ..geodesic.measure import AUTO_SHARE
from .axis_warnings import axis_warnings
from .outcome import Outcome
from .words import SPACES, join, number, percent, plural

#: A newcomer with a smaller share of the panel's sites is reported.
MIN_PRESENT = 0.95
#: So is one whose frequencies differ this many times more than sampling explains, and more than
#: those of any founder.
DRIFT_FACTOR = 2.0
#: Pairs closer than this share of the median distance are pointed out where nobody looked for
#: duplicates (compare.analyses without identity): parent and child differ by about 0.7 of it, and
#: genotyping errors leave duplicates below a fifth.
ALIKE_SHARE = 0.3
#: Pairs of the same person that a sentence names.
MOST_PAIRS = 10
#: One duplicate can be a bridge between its twin and every other sample: fewer indirect pairs than
#: this many times the samples, and a smaller share than this, can come from a handful of them.
FEW_BRIDGES = 5
FEW_SHARE = 0.05
#: A map whose first coordinate has more of the variance is decided by few distant samples.
DOMINANT = 0.9
#: What else takes a sample, as `left_out` of `qc/{cohort}.samples.tsv` says it.
REASONS = {
    "qc.max_heterozygosity_sd": "heterozygosity far from the population's",
    "qc.sex_mismatch": "an X of another sex than the sheet's",
    "qc.max_mendel_rate": "genotypes that the parents cannot have passed on",
}
#: A sample is unstable where chance and parameters replace more than this share of its nearest on
#: a UMAP; a map is reported where more than UNSTABLE_SHARE of its samples are. On 957 people of
#: HapMap3 12 % of the samples are in the space of PCs and 90 % in that of genotypes, on 564 of the
#: 1000 Genomes 7 % and 86 % (tests/bench/bench_maps.py): the rule parts these two kinds.
UNSTABLE, UNSTABLE_SHARE = 0.5, 0.5
#: Fewer founders than this give unsteady axes.
FEW_FOUNDERS = 20


@dataclass(frozen=True)
class Finding:
    """One sentence or two.

    Attributes
    ----------
    level : {'warning', 'note'}
        Whether it changes how results should be read, or merely explains them.
    topic : str
        What it is about, in a word or two.
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
    number_type: str,
    min_sample_call_rate: float,
    min_call_rate: float,
) -> list[Finding]:
    """Everything that the report says before its figures, warnings first.

    Parameters
    ----------
    close : DataFrame
        `outcome.closest_pairs`.
    same : DataFrame, optional
        `compare.section.same_people`, where the study looks for them: what it says is said here.
    color_by : str
        `report.color_by`.
    number_type : str
        `geodesic.number` as it was asked for.
    min_sample_call_rate, min_call_rate : float
        Limits on samples and on the panel's sites.
    """
    found = [
        *_samples(outcome, color_by, min_sample_call_rate),
        *(_alike(close) if same is None else _duplicates(same)),
        *_cohorts(outcome, min_call_rate),
        *_swaps(outcome),
        *(Finding("warning", *words) for words in axis_warnings(outcome.axes)),
        *_geodesics(outcome, number_type),
        *_maps(outcome),
        *_instability(outcome),
    ]
    return sorted(found, key=lambda finding: finding.level != "warning")


def _samples(outcome: Outcome, color_by: str, least: float) -> list[Finding]:
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
                f"left out of everything after quality control: {join(names)}.",
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
                f"{plural(len(dropped), 'sample')} {were} dropped from the distances because too "
                "few sites are called in both samples of a pair (distance.on_uncomparable = drop): "
                f"{join(list(dropped['sample']))}.",
            )
        )
    if color_by in outcome.qc:
        unknown = int(outcome.samples[color_by].isin(UNKNOWN).sum())
        if unknown:
            found.append(
                Finding(
                    "note",
                    "Labels",
                    f"{plural(unknown, 'sample')} of {number(len(outcome.samples))} without a "
                    f"value in column '{color_by}': grey in the figures.",
                )
            )
    else:
        found.append(
            Finding(
                "note",
                "Labels",
                f"The sample sheet has no column '{color_by}', so cohorts colour the figures.",
            )
        )
    founders = int(outcome.samples.cohort.isin(outcome.founders).sum())
    if founders < FEW_FOUNDERS:
        found.append(
            Finding(
                "warning",
                "Few founders",
                f"The panel and the axes of the PCA come from {plural(founders, 'sample')} only: "
                "allele frequencies and maps are unsteady.",
            )
        )
    return found


def _duplicates(same: pd.DataFrame) -> list[Finding]:
    """People who are there twice, as identity by genotypes has it."""
    if not len(same):
        return []
    pairs = [f"{row.sample_a} and {row.sample_b}" for row in same.itertuples()]
    n = len({*same.sample_a, *same.sample_b})
    return [
        Finding(
            "warning",
            "Duplicates",
            f"{number(n)} samples have the genotypes of another one, as duplicates and identical "
            f"twins do: {_listed(pairs)}. Keep one of each unless twins are expected; duplicates "
            "count twice in frequencies and serve as bridges in the geodesics.",
        )
    ]


def _alike(close: pd.DataFrame) -> list[Finding]:
    """Pairs far closer than all others, where nobody asked whether they are one person."""
    alike = close[close.of_median < ALIKE_SHARE]
    if not len(alike):
        return []
    pairs = [f"{row.sample_a} and {row.sample_b}" for row in alike.itertuples()]
    return [
        Finding(
            "warning",
            "Very similar samples",
            f"{'A pair of samples lies' if len(alike) == 1 else 'Pairs of samples lie'} within "
            f"{percent(ALIKE_SHARE, 0)} of the median distance: {_listed(pairs)}. Whether they are "
            "one person is not told, because compare.analyses leaves out identity.",
        )
    ]


def _listed(pairs: list[str]) -> str:
    return "; ".join(pairs[:MOST_PAIRS]) + (" and more" if len(pairs) > MOST_PAIRS else "")


def _cohorts(outcome: Outcome, min_call_rate: float) -> list[Finding]:
    found = []
    drift = outcome.drift
    usual = drift.mean_af_difference[drift.founder == "yes"].max()
    for cohort in outcome.newcomers:
        row = drift.loc[cohort]
        if row.share_present < MIN_PRESENT:
            found.append(
                Finding(
                    "warning",
                    "Sites absent",
                    f"Cohort {cohort} has only {percent(row.share_present)} of the panel's sites; "
                    "the rest is missing there, and its distances rest on fewer sites.",
                )
            )
        if row.call_rate < min_call_rate:
            found.append(
                Finding(
                    "warning",
                    "Call rate",
                    f"Cohort {cohort} has a call rate of {percent(row.call_rate)} at the panel's "
                    f"sites, below the {percent(min_call_rate)} that the panel asks of the "
                    "founders.",
                )
            )
        if (
            row.mean_af_difference > DRIFT_FACTOR * row.expected_af_difference
            and row.mean_af_difference > usual
        ):
            found.append(
                Finding(
                    "warning",
                    "Allele frequencies",
                    f"Allele frequencies of cohort {cohort} differ from the panel's by "
                    f"{row.mean_af_difference:.3f} on average, where its size alone would give "
                    f"{row.expected_af_difference:.3f} and the founders differ by at most "
                    f"{usual:.3f}. Its ancestry may differ from theirs, or its genotyping.",
                )
            )
    return found


def _swaps(outcome: Outcome) -> list[Finding]:
    steps = outcome.summary[outcome.summary.stage == "encode"].set_index(["cohort", "step"])
    counts = steps["count"]
    found = []
    for cohort in outcome.cohorts:
        turned = int(counts.get((cohort, "swapped_turned"), 0))
        lost = int(counts.get((cohort, "swapped_ambiguous_dropped"), 0))
        if not turned and not lost:
            continue
        text = f"Cohort {cohort} has REF and ALT swapped at {plural(turned + lost, 'panel site')}: "
        text += f"{number(turned)} turned"
        if lost:
            text += (
                f", {number(lost)} set to missing because the alleles (A/T or C/G) cannot tell a "
                "swap from the other strand"
            )
        found.append(Finding("note", "Swapped alleles", text + "."))
    return found


def _geodesics(outcome: Outcome, number_type: str) -> list[Finding]:
    found = []
    n = len(outcome.samples)
    floats: list[str] = []
    for space, alpha in outcome.maps():
        about = outcome.geodesics[space, alpha]
        name = f"{SPACES[space]}, α = {about['value']:g}"
        if about["unreachable_pairs"]:
            found.append(
                Finding(
                    "warning",
                    "Unreachable pairs",
                    f"{plural(about['unreachable_pairs'], 'pair')} of samples have no finite "
                    f"geodesic ({name}).",
                )
            )
        if about["approximate"]:
            error = about["approximate"]
            found.append(
                Finding(
                    "warning",
                    "Approximate geodesics",
                    f"Paths ran among the {error['neighbors']} nearest neighbours of each sample "
                    f"alone ({name}). On {error['checked_rows']} rows that were computed exactly, "
                    f"lengths are too long by {percent(error['median_excess'], 2)} in the median "
                    f"and {percent(error['largest_excess'], 2)} at most.",
                )
            )
        record = about["record"]
        if record.get("old_pairs_shortened"):
            found.append(
                Finding(
                    "note",
                    "Shorter paths through newcomers",
                    f"{plural(record['inserted'], 'sample')} joined {record['closed_before']} that "
                    f"were there before: {plural(record['old_pairs_shortened'], 'old pair')} of "
                    f"{number(record['old_pairs'])} became closer, by "
                    f"{percent(record['median_shortening'], 2)} in the median and "
                    f"{percent(record['largest_shortening'], 2)} at most ({name}).",
                )
            )
        if about["number"]["rescaled"]:
            found.append(
                Finding(
                    "note",
                    "Scale",
                    "A later sample lies farther out than the founders' weights allow for, so the "
                    f"fixed-point scale was set from all samples ({name}).",
                )
            )
        if number_type == "auto" and about["number"]["dtype"] == "float64":
            floats.append(name)
        if alpha == "auto":
            best = max(about["tried"].values(), default=0.0)
            if best < AUTO_SHARE:
                found.append(
                    Finding(
                        "warning",
                        "Choice of α",
                        f"At no α that auto tried are {percent(AUTO_SHARE, 0)} of the founder "
                        f"pairs indirect ({SPACES[space]}; at most {percent(best)}): it took the "
                        f"largest, {about['value']:g}.",
                    )
                )
            if f"{about['value']:g}" in outcome.alphas:
                continue  # the same geodesics are listed under their number
        if about["indirect_pairs"] == 0:
            found.append(
                Finding(
                    "note",
                    "Plain distances",
                    f"No pair is indirect ({name}): the geodesics are the plain distances to the "
                    "power of α.",
                )
            )
        elif about["indirect_pairs"] < FEW_BRIDGES * n and about["indirect_share"] < FEW_SHARE:
            found.append(
                Finding(
                    "note",
                    "Few bridges",
                    f"Only {plural(about['indirect_pairs'], 'pair')} "
                    f"({percent(about['indirect_share'], 2)}) are indirect ({name}), about as many "
                    "as a few duplicates or close relatives make by themselves: each joins its "
                    f"twin to up to {number(max(n - 2, 0))} others. Read these geodesics as plain "
                    "distances.",
                )
            )
    if floats:
        found.append(
            Finding(
                "note",
                "Number type",
                "Fixed-point numbers would have been too coarse, so 64-bit floating point was "
                f"used: {'; '.join(dict.fromkeys(floats))}.",
            )
        )
    return found


def _maps(outcome: Outcome) -> list[Finding]:
    found = []
    for space, alpha in outcome.maps():
        variance = outcome.variance[f"pcoa.{space}.alpha{alpha}"]
        value = f"{outcome.geodesics[space, alpha]['value']:g}"
        if alpha == "auto" and value in outcome.alphas:
            continue
        if variance and variance[0] > DOMINANT:
            found.append(
                Finding(
                    "warning",
                    "One-sided map",
                    f"One coordinate carries {percent(variance[0])} of the PCoA of the "
                    f"{SPACES[space]} at α = {value}: few distant samples decide that map, and all "
                    "others fall together on it.",
                )
            )
    return found


def _instability(outcome: Outcome) -> list[Finding]:
    if outcome.instability is None:
        return []
    unsteady = []
    for space, alpha in outcome.maps():
        share = float((outcome.instability[f"umap.{space}.alpha{alpha}"] > UNSTABLE).mean())
        if share > UNSTABLE_SHARE and not outcome.is_repeated(space, alpha):
            value = f"{outcome.geodesics[space, alpha]['value']:g}"
            unsteady.append(f"{SPACES[space]} at α = {value} ({percent(share, 0)})")
    if not unsteady:
        return []
    return [
        Finding(
            "warning",
            "Unstable maps",
            "On the UMAP of "
            f"{join(unsteady)} another seed or number of neighbours replaces more than half of a "
            "sample's nearest, for the share of samples in brackets. Groups on such a map can be "
            "real, but which samples lie side by side within them is chance.",
        )
    ]
