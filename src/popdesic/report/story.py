"""What was found: sentences with numbers at the top of the report, made from results by rules.

Each rule looks at one kind of result and says one thing, or nothing where that analysis did not
run. A sentence leads to the section that has the evidence. `tests/unit/report/test_story.py` states
for each rule what it says of which results.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..compare.kinship import SAME
from ..ibd.degrees import surely_close
from ..io.files import read_json
from ..io.tables import read_table
from .newcomers import describe_newcomer
from .outcome import Outcome
from .words import count_relations, join, number, percent, plural

#: Most newcomers that have a sentence each; of more, one sentence counts them.
MOST_NEWCOMERS = 3
#: Agreement (ARI) from which communities are said to follow a label, and below which they do not.
FOLLOWS, DIFFERS = 0.8, 0.2
#: Share of the subsamples in which a stable sample falls into the same community.
STABLE = 0.9
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
        `report/summary.json` of the report before this one.
    """
    color_by = configuration["report"]["color_by"]
    found = [
        _input(outcome),
        *_changes(outcome, before),
        *_axes(outcome),
        *_communities(outcome, color_by),
        *_populations(outcome.folder),
        *_relatives(outcome.folder),
        *_segments(outcome.folder),
        *_newcomers(outcome, color_by),
        *_geography(outcome.folder),
        *_interactions(sections),
    ]
    names = {"data", "distances", "maps", "quality", *sections}
    return [s if s.link in names else Sentence(s.topic, s.text, "maps") for s in found]


def last_facts(path: Path) -> dict[str, Any] | None:
    """Facts of the last report; None if there was none, or one that another version wrote."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return None
    known = {"samples", "panel", "cohorts", "communities"}
    return found if isinstance(found, dict) and known <= set(found) else None


def facts(outcome: Outcome, story: list[Sentence], warnings: int) -> dict[str, Any]:
    """`report/summary.json`: what the next report compares itself with, and other tools read."""
    axes = outcome.axes
    about = _read(outcome.folder / "communities/communities.json")
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
        "close_pairs": _counts_of_relatives(outcome.folder),
        "warnings": warnings,
        "findings": [asdict(sentence) for sentence in story],
    }


def _read(path: Path) -> dict[str, Any]:
    """A JSON file, or nothing where the analysis did not run."""
    return read_json(path) if path.exists() else {}


def _input(outcome: Outcome) -> Sentence:
    read, kept = len(outcome.qc), len(outcome.samples)
    text = (
        f"{plural(kept, 'sample')} of {plural(len(outcome.cohorts), 'cohort')} were compared at "
        f"{plural(int(outcome.panel['n_sites']), 'site')}."
    )
    if read > kept:
        text += f" {plural(read - kept, 'sample')} did not pass quality control."
    return Sentence("Data", text, "data")


def _changes(outcome: Outcome, before: dict | None) -> list[Sentence]:
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
    then, now = before["communities"], _read(outcome.folder / "communities/communities.json")
    if then and now and then != now["communities"]:
        count = now["communities"]
        verb = "there is" if count == 1 else "there are"
        said.append(f"{verb} {plural(count, 'community', 'communities')} in place of {then}")
    if not said:
        return []
    return [Sentence("Since the last report", f"{_sentence(join(said))}.", "data")]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _axes(outcome: Outcome) -> list[Sentence]:
    axes = outcome.axes
    count, level = axes["significant"], percent(axes["level"], 0)
    test = f"Tracy-Widom test at {level}"
    if not count:
        text = f"No principal component exceeds chance ({test}): the PCA shows no structure."
        return [Sentence("Structure", text, "maps")]
    shares = [percent(share) for share in outcome.variance["pca"][:2]]
    explained = f"PC1 explains {shares[0]} of the variance"
    if len(shares) > 1:
        explained += f", PC2 {shares[1]}"
    verb = "exceeds" if count == 1 else "exceed"
    text = f"{plural(count, 'principal component')} {verb} chance ({test}). {explained}."
    return [Sentence("Structure", text, "maps")]


def _communities(outcome: Outcome, color_by: str) -> list[Sentence]:
    about = _read(outcome.folder / "communities/communities.json")
    if not about:
        return []
    if about["structure"] == "one":
        return []  # said by the axes
    if about["structure"] == "continuous":
        text = "The structure is a gradient: no gap separates groups of samples."
        return [Sentence("Groups", text, "communities")]
    deepest = max(split["f_st"] for split in about["splits"])
    text = (
        f"Gaps separate {about['communities']} communities; the deepest split has an F_ST of "
        f"{deepest:.3f}."
    )
    if about["fine"] > about["communities"]:
        text += f" Shallower gaps divide these into {about['fine']}."
    text += _agreement(outcome, color_by) + _stability(outcome.folder)
    return [Sentence("Groups", text, "communities")]


def _stability(results: Path) -> str:
    """How many samples fall into the same community when others are left out."""
    path = results / "communities/partition.tsv"
    if not path.exists():
        return ""
    values = pd.to_numeric(read_table(path).stability, errors="coerce").dropna()
    if values.empty:
        return ""
    share = percent(float((values >= STABLE).mean()), 0)
    least = percent(STABLE, 0)
    return f" {share} of the samples keep their community in at least {least} of the subsamples."


def _agreement(outcome: Outcome, color_by: str) -> str:
    """How far the communities follow the labels of the sheet."""
    path = outcome.folder / "communities/agreement.tsv"
    table = read_table(path) if path.exists() else pd.DataFrame(columns=["label"])
    table = table[table.label == color_by]
    if not len(table) or int(table.labels.iloc[0]) > MOST_VALUES * len(outcome.samples):
        return ""
    scores = pd.to_numeric(table.ari)
    best = table.loc[scores.idxmax()]
    if scores.max() >= FOLLOWS:
        how = "follow"
    elif scores.max() >= DIFFERS:
        how = "partly follow"
    else:
        how = "do not follow"
    return f" They {how} column “{color_by}” (ARI {float(best.ari):.2f})."


def _populations(results: Path) -> list[Sentence]:
    about = _read(results / "population/summary.json")
    path = results / "population/pairs.tsv"
    if not about.get("pairs") or not path.exists():
        return []
    pairs = read_table(path)
    values = pd.to_numeric(pairs.fst, errors="coerce")
    if values.isna().all():
        return []
    most, least = pairs.loc[values.idxmax()], pairs.loc[values.idxmin()]
    text = (
        f"{most.population1} and {most.population2} differ most (F_ST {float(most.fst):.3f} ± "
        f"{float(most.error):.3f})"
    )
    if len(pairs) > 1:
        text += f", {least.population1} and {least.population2} least ({float(least.fst):.3f})"
    found = about.get("admixed") or []
    if found:
        text += f". f3 indicates admixture in {join(found, 5)}"
    return [Sentence("Populations", f"{text}.", "population")]


def _counts_of_relatives(results: Path) -> dict[str, int] | None:
    """Number of close pairs by their relation; None where kinship was not computed."""
    path = results / "compare/kinship.tsv"
    if not path.exists():
        return None
    return {k: int(v) for k, v in sorted(Counter(read_table(path).relation).items())}


def _relatives(results: Path) -> list[Sentence]:
    counts = _counts_of_relatives(results)
    if counts is None:
        return []
    same = counts.pop(SAME, 0)
    total = sum(counts.values())
    if not same and not total:
        return [Sentence("Relatives", "No relatives and no duplicates were found.", "comparisons")]
    said = []
    if same:
        said.append(f"{plural(same, 'pair')} of duplicates or identical twins")
    if total:
        said.append(f"{plural(total, 'pair')} of relatives ({count_relations(counts)})")
    return [Sentence("Relatives", f"{_sentence(' and '.join(said))}.", "comparisons")]


def _segments(results: Path) -> list[Sentence]:
    """Pairs that share segments by descent, where they were sought."""
    about = _read(results / "ibd/summary.json")
    if not about:
        return []
    least = about["limits"]["min_cm"]
    text = (
        f"{plural(about['pairs_with_segments'], 'pair')} of samples share an IBD segment of at "
        f"least {least:g} cM; {number(surely_close(about))} are related to the third degree or "
        "closer (95 % interval)."
    )
    return [Sentence("Descent", text, "ibd")]


def _newcomers(outcome: Outcome, color_by: str) -> list[Sentence]:
    if not outcome.newcomers:
        return []
    if len(outcome.newcomers) > MOST_NEWCOMERS:
        people = int(outcome.samples.cohort.isin(outcome.newcomers).sum())
        text = f"{plural(len(outcome.newcomers), 'cohort')} with {plural(people, 'sample')} "
        return [Sentence("Newcomers", f"{text}were placed on the founders’ axes.", "maps")]
    return [
        Sentence("Newcomers", describe_newcomer(outcome, cohort, color_by), "maps")
        for cohort in outcome.newcomers
    ]


def _geography(results: Path) -> list[Sentence]:
    found = _read(results / "geography/isolation.json").get("all")
    if not found:
        return []
    p, shown = found["p"], f"rank correlation {found['correlation']:.2f}, p = {found['p']:.2g}"
    if p <= 0.05 and found["correlation"] > 0:
        text = f"Genetic distance grows with distance on the ground ({shown})."
    else:
        text = f"Genetic distance does not grow with distance on the ground ({shown})."
    return [Sentence("Geography", text, "geography")]


def _interactions(sections: dict[str, Any]) -> list[Sentence]:
    found = []
    for name, part in sections.items():
        if name.split("-")[0] != "epistasis":
            continue
        found += [Sentence(part["heading"], _scan(scan), name) for scan in part["scans"]]
    return found


def _scan(scan: dict[str, Any]) -> str:
    tests = f"{number(scan['tests'])} {scan['name']} tested"
    if not scan["significant"]:
        return f"No interaction of sites is significant ({tests})."
    best = scan["rows"][0]
    sites = join([f"{name} ({place})" for name, place in best["sites"]])
    text = f"The sites {sites} interact (p = {best['p']}, corrected for {tests})."
    more = scan["significant_loci"] - 1
    return (
        f"{text} {plural(more, 'other locus is', 'other loci are')} significant."
        if more > 0
        else text
    )
