"""What was found: sentences with numbers at the top of the report, made from results by rules.

Each rule looks at one kind of result and says one thing, or nothing where that analysis did not
run. A sentence leads to the section that has the evidence. `tests/unit/report/test_story.py` states
for each rule what it says of which results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.tables import read_table
from ..geography.coordinates import has_places
from ..relatives.options import least_kinship
from .findings import artefact_words
from .isolation import isolation_words
from .kin_verdict import judges_relatives, kin_verdict
from .newcomers import describe_newcomer
from .outcome import Outcome, found_communities, read_if_there
from .words import join, number, percent, plural

#: Most newcomers that have a sentence each; of more, one sentence counts them.
MOST_NEWCOMERS = 3
#: Most samples that were left out whose names are in the sentence.
MOST_LOST = 3
#: Why a sample was left out, by `left_out`; "NA" passed, and shares too few sites with others.
LOST = {
    "qc.min_sample_call_rate": "call rate",
    "qc.max_heterozygosity_sd": "heterozygosity",
    "qc.sex_mismatch": "sex",
    "qc.max_mendel_rate": "Mendelian errors",
    "NA": "too few sites in common with others",
}
#: Agreement (ARI) from which communities are said to follow a label, and below which they do not.
FOLLOWS, DIFFERS = 0.8, 0.2
#: Share of the subsamples in which a stable sample falls into the same community.
STABLE = 0.9
#: Share of the samples that must be stable for the number of communities to count as a finding.
MOSTLY = 0.5
#: Labels with more values than this share of the samples (age, a name) divide nobody into groups.
MOST_VALUES = 0.2


@dataclass(frozen=True)
class Sentence:
    """One thing that was found.

    Attributes
    ----------
    topic : str
        One or two words.
    text : str
        Plain text.
    link : str
        Identifier of the section or figure with the evidence.
    """

    topic: str
    text: str
    link: str


def tell(
    outcome: Outcome, configuration: dict, sections: dict[str, Any], before: dict | None = None
) -> list[Sentence]:
    """The sentences of this study, in the order in which they are read.

    Parameters
    ----------
    configuration : dict
        Of the study, complete.
    sections : dict
        Contents of the page's further sections by name (`page.further_sections`).
    before : dict, optional
        `facts` of the report that this one is compared with.
    """
    color_by = configuration["report"]["color_by"]
    found = [
        _input(outcome),
        *_changes(outcome, configuration, before),
        *_artefacts(outcome.folder),
        *_axes(outcome),
        *_communities(outcome, configuration),
        *(_populations(outcome.folder) if configuration["population"]["analyses"] else []),
        *_relatives(outcome.folder, configuration),
        *(_segments(outcome.folder) if "ibd" in configuration["compare"]["analyses"] else []),
        *_newcomers(outcome, color_by),
        *_geography(outcome, configuration),
        *_interactions(sections),
    ]
    names = {"data", "changes", "distances", "maps", "quality", *sections}
    return [s if s.link in names else Sentence(s.topic, s.text, "maps") for s in found]


def facts(outcome: Outcome, configuration: dict, warnings: int) -> dict[str, Any]:
    """`report/summary.json` without the findings, which are the sentences."""
    axes = outcome.axes
    about = found_communities(outcome.folder, configuration)
    related = judges_relatives(outcome.folder, configuration["compare"]["analyses"])
    return {
        "samples": len(outcome.samples),
        "samples_left_out": int(len(outcome.qc) - len(outcome.samples)),
        "sites": int(outcome.panel["n_sites"]),
        "panel": outcome.panel["digest"],
        "cohorts": outcome.cohorts,
        "founders": outcome.founders,
        "significant_components": int(axes["significant"]),
        "structure": about.get("structure"),
        "communities": about.get("communities"),
        "close_pairs": _counts_of_relatives(outcome.folder) if related else None,
        "warnings": warnings,
    }


def _input(outcome: Outcome) -> Sentence:
    read, kept = len(outcome.qc), len(outcome.samples)
    text = (
        f"{plural(kept, 'sample')} of {plural(len(outcome.cohorts), 'cohort')} were compared at "
        f"{plural(int(outcome.panel['n_sites']), 'site')}."
    )
    if read > kept:
        text += f" {plural(read - kept, 'sample')} did not pass quality control{_lost(outcome)}."
    return Sentence("Data", text, "data")


def _lost(outcome: Outcome) -> str:
    """Names of few samples that were left out, with the reason; nothing for many."""
    lost = outcome.qc[~outcome.qc["sample"].isin(outcome.samples["sample"])]
    if len(lost) > MOST_LOST:
        return ""
    of: dict[str, list[str]] = {}
    for name, filtered in zip(lost["sample"], lost["left_out"], strict=True):
        of.setdefault(LOST.get(filtered, filtered), []).append(name)
    return f": {'; '.join(f'{join(names)} ({why})' for why, names in of.items())}"


def _changes(outcome: Outcome, configuration: dict, before: dict | None) -> list[Sentence]:
    """What differs from the last report of this study."""
    if not before:
        return []
    said = []
    added = [cohort for cohort in outcome.cohorts if cohort not in before["cohorts"]]
    gone = [cohort for cohort in before["cohorts"] if cohort not in outcome.cohorts]
    more = len(outcome.samples) - before["samples"]
    if added:
        said.append(f"{'cohort' if len(added) == 1 else 'cohorts'} {join(added)} arrived")
    if gone:
        said.append(f"{'cohort' if len(gone) == 1 else 'cohorts'} {join(gone)} left")
    if more and not (added or gone):
        there = "there is" if abs(more) == 1 else "there are"
        size = "more" if more > 0 else "fewer"
        said.append(f"{there} {plural(abs(more), 'sample')} {size}")
    if outcome.panel["digest"] != before["panel"]:
        said.append("the panel of sites changed, so all results were computed anew")
    then, now = before["communities"], found_communities(outcome.folder, configuration)
    if then and now and then != now["communities"]:
        count = now["communities"]
        verb = "there is" if count == 1 else "there are"
        said.append(f"{verb} {plural(count, 'community', 'communities')} instead of {then}")
    if not said:
        return []
    return [Sentence("Since the last report", f"{_sentence(join(said))}.", "changes")]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _axes(outcome: Outcome) -> list[Sentence]:
    axes = outcome.axes
    count, level = axes["significant"], percent(axes["level"], 0)
    test = f"Tracy-Widom test at {level}"
    if not count:
        text = f"No principal component exceeds chance ({test}): "
        text += "the PCA shows no structure among the founders."
        return [Sentence("Structure", text, "maps")]
    shares = [percent(share) for share in outcome.variance["pca"][:2]]
    explained = f"PC1 explains {shares[0]} of the variance"
    if len(shares) > 1:
        explained += f", PC2 {shares[1]}"
    verb = "exceeds" if count == 1 else "exceed"
    text = f"{plural(count, 'principal component')} {verb} chance ({test}). {explained}."
    return [Sentence("Structure", text, "maps")]


def _communities(outcome: Outcome, configuration: dict) -> list[Sentence]:
    about = found_communities(outcome.folder, configuration)
    if not about:
        return []
    if about["structure"] == "one":
        return []  # said by the axes
    if about["structure"] == "continuous":
        text = continuity_words(about)
        return [Sentence("Groups", text, "communities")]
    text = f"Gaps separate {about['communities']} communities."
    if about["fine"] > about["communities"]:
        text += f" Components of each community alone divide these into {about['fine']}."
    if between := sum(one["samples"] for one in about["between"]):
        lie = "sample lies" if between == 1 else "samples lie"
        text += f" {number(between)} {lie} between communities, as mixed ancestry would."
    text += _agreement(outcome, configuration["report"]["color_by"])
    text += stability_words(outcome.folder)
    return [Sentence("Groups", text, "communities")]


def continuity_words(about: dict[str, Any]) -> str:
    """What structure without a gap is; a gradient only where its test was passed."""
    if about["cline"] and about["cline"]["passed"]:
        return "The structure is a gradient: samples spread along it, and no gap separates groups."
    return (
        "No gap separates groups of samples. This does not show a gradient: families, or groups "
        "that admixed samples connect, look the same."
    )


def stability_words(results: Path) -> str:
    """How many samples fall into the same community when others are left out.

    Where fewer than half do, the number of communities is no finding, and the sentence says so.
    """
    path = results / "communities/partition.tsv"
    if not path.exists():
        return ""
    values = pd.to_numeric(read_table(path).stability, errors="coerce").dropna()
    if values.empty:
        return ""
    stable = float((values >= STABLE).mean())
    share = percent(stable, 0).replace("> ", "More than ").replace("< ", "Less than ")
    text = (
        f" {share} of the samples keep their community in at least "
        f"{percent(STABLE, 0)} of the subsamples"
    )
    if stable >= MOSTLY:
        return f"{text}."
    return f"{text}: the number of communities depends on who was sampled, so do not rely on it."


def _agreement(outcome: Outcome, color_by: str) -> str:
    """How far the communities, as they are shown, follow the labels of the sheet.

    The score of the finer communities stands beside it where there are some. Other partitions
    (levels of the block model, HDBSCAN) are not what the sentence is about.
    """
    path = outcome.folder / "communities/agreement.tsv"
    if not path.exists():
        return ""
    table = read_table(path)
    table = table[table.label == color_by].set_index("partition")
    if "community" not in table.index:
        return ""
    labels = int(table.labels["community"])
    if labels > MOST_VALUES * len(outcome.samples):
        return ""
    scores = pd.to_numeric(table.ari)
    shown = scores["community"]
    if shown >= FOLLOWS:
        how = "follow"
    elif shown >= DIFFERS:
        how = "partly follow"
    else:
        how = "do not follow"
    text = f" The communities {how} the {number(labels)} values of column “{color_by}” "
    if "fine" not in table.index or table.groups["fine"] == table.groups["community"]:
        return f"{text}(ARI {shown:.2f})."
    return f"{text}(ARI {shown:.2f}; the {table.groups['fine']} finer ones {scores['fine']:.2f})."


def _populations(results: Path) -> list[Sentence]:
    about = read_if_there(results / "population/summary.json")
    path = results / "population/pairs.tsv"
    if not about.get("pairs") or not path.exists():
        return []
    pairs = read_table(path)
    values = pd.to_numeric(pairs.fst, errors="coerce")
    if values.isna().all():
        return []
    most, least = pairs.loc[values.idxmax()], pairs.loc[values.idxmin()]
    if len(pairs) == 1:
        text = f"F_ST between {most.population1} and {most.population2} is {_with_error(most)}"
    else:
        text = f"{most.population1} and {most.population2} differ most (F_ST {_with_error(most)})"
        text += f", {least.population1} and {least.population2} least ({_with_error(least)})"
    found = about.get("admixed") or []
    if found:
        text += f". f3 indicates admixture in {join(found, 5)}"
    return [Sentence("Populations", f"{text}.", "population")]


def _with_error(pair: pd.Series) -> str:
    """F_ST and its standard error, with as many decimals as show the error."""
    error = pd.to_numeric(pair.error, errors="coerce")
    if pd.isna(error):
        return f"{float(pair.fst):.3f}, error not estimable"
    digits = 3 if error >= 0.0005 else 4
    return f"{float(pair.fst):.{digits}f} ± {error:.{digits}f}"


def _counts_of_relatives(results: Path) -> dict[str, int] | None:
    """Number of pairs by the verdict on them; None where no analysis looks for relatives."""
    return read_if_there(results / "compare/relatives.json").get("relations")


def _relatives(results: Path, configuration: dict) -> list[Sentence]:
    asked = configuration["compare"]["analyses"], configuration["close_kinship"]
    text = kin_verdict(results, least_kinship(configuration), *asked)
    return [] if text is None else [Sentence("Relatives", text, "comparisons")]


def _artefacts(results: Path) -> list[Sentence]:
    """Cohorts that were genotyped otherwise than others at some sites, if there are any."""
    about = read_if_there(results / "qc/artefacts.json")
    some = [one for one in about.get("cohorts", []) if one["departs"]]
    if not some:
        return []
    words = join(
        [
            f"cohort {one['cohort']} has {artefact_words(one, about['sites'])}"
            for one in some[:MOST_NEWCOMERS]
        ]
    )
    more = len(some) - MOST_NEWCOMERS
    text = words[0].upper() + words[1:] + "."
    if more > 0:
        text += f" So {'has' if more == 1 else 'have'} {plural(more, 'other cohort')}."
    return [Sentence("Artefacts", text, "quality")]


def _segments(results: Path) -> list[Sentence]:
    """Pairs that share segments by descent, where they were sought."""
    about = read_if_there(results / "ibd/summary.json")
    if not about or about.get("not_searched"):
        return []
    least = about["limits"]["min_cm"]
    text = (
        f"{plural(about['pairs_with_segments'], 'pair')} of samples share an IBD segment of at "
        f"least {least:g} cM."
    )
    return [Sentence("Descent", text, "ibd")]


def _newcomers(outcome: Outcome, color_by: str) -> list[Sentence]:
    if not outcome.newcomers:
        return []
    if len(outcome.newcomers) > MOST_NEWCOMERS:
        people = int(outcome.samples.cohort.isin(outcome.newcomers).sum())
        text = f"{plural(len(outcome.newcomers), 'cohort')} with {plural(people, 'sample')} "
        return [Sentence("Newcomers", f"{text}were placed on the founders’ axes.", "newcomers")]
    return [
        Sentence("Newcomers", describe_newcomer(outcome, cohort, color_by), "newcomers")
        for cohort in outcome.newcomers
    ]


def _geography(outcome: Outcome, configuration: dict) -> list[Sentence]:
    about = (
        read_if_there(outcome.folder / "geography/isolation.json") if has_places(outcome.qc) else {}
    )
    if not about.get("all"):
        return []
    structure = found_communities(outcome.folder, configuration)
    return [Sentence("Geography", isolation_words(about, structure), "geography")]


def _interactions(sections: dict[str, Any]) -> list[Sentence]:
    found = []
    for name, part in sections.items():
        if name.split("-")[0] != "epistasis":
            continue
        found += [Sentence(part["heading"], _scan(scan), name) for scan in part["scans"]]
        if part.get("sets"):
            found.append(Sentence(part["heading"], _sets(part["sets"]), name))
            if outside := part["sets"]["environments"]:
                found.append(Sentence(part["heading"], _environments(outside), name))
    return found


def _sets(sets: dict[str, Any]) -> str:
    """The best set, if it is significant, with the number its p is multiplied by."""
    tested = f"{plural(sets['tested'], 'set')} of sites tested"
    best = sets["lead"]
    if best is None:
        return f"No set of sites has a significant interaction ({tested})."
    p = best["p_adjusted"]
    text = f"Sites of the set {best['set']} interact (p = {p} for all sets; {tested})."
    more = sets["significant"] - 1
    return f"{text} {plural(more, 'other set is', 'other sets are')} significant." if more else text


def _environments(outside: dict[str, Any]) -> str:
    """The best set with an environment, if it is significant, likewise."""
    tested = f"{plural(outside['tested'], 'test')} of a set of sites with an environment"
    best = outside["lead"]
    if best is None:
        return f"No set of sites has a significant interaction with an environment ({tested})."
    return (
        f"Sites of the set {best['set']} interact with {best['environment']} "
        f"(p = {best['p_adjusted']} for all; {tested})."
    )


def _scan(scan: dict[str, Any]) -> str:
    """The first significant hit, or that there is none, with the number its p is multiplied by."""
    if not scan["hits"]:
        return f"No {scan['name']} of sites were eligible for a test."
    scanned = f"{number(scan['tests'])} {scan['name']} scanned"
    best = scan["lead"]
    if best is None:
        return f"No interaction of sites is significant ({scanned})."
    sites = join([f"{name} ({place})" for name, place in best["sites"]])
    text = (
        f"The sites {sites} interact (p = {best['p']} after multiplication by {best['tests']} "
        f"tests; {scanned})."
    )
    more = scan["significant_loci"] - 1
    return (
        f"{text} {plural(more, 'other locus is', 'other loci are')} significant."
        if more > 0
        else text
    )
