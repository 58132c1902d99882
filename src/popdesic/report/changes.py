"""What changed since the last report: counts, findings and samples.

A file beside the page keeps what this compares (`report_facts`): of the last report, and of the
last one before it that differed. So writing the same report again shows the same changes. Of
samples that are no longer in the study it keeps nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.files import read_json
from ..core.tables import read_table
from ..core.version import __version__
from .outcome import Outcome, found_communities, read_if_there
from .words import join, number, plural

#: Facts beside the page. No result, so without a checksum; a broken file counts as none.
LAST = ".last_summary.json"
#: Changes whenever facts are kept in another form.
FORM = 2
#: Most rows of the table of samples on the page; the table of all samples marks the others.
MOST_ROWS = 1_000
#: Column of the table of all samples.
MARK = "changed since the last report"
#: Counts that are shown whether or not they changed.
ALWAYS = ("Cohorts", "Samples", "Sites of the panel")
#: Before the name of a kind of close pairs.
PAIRS = "Pairs: "
STRUCTURE = {"one": "none", "continuous": "without a gap", "discrete": "groups"}
STALE = (
    f"report/{LAST}, which holds what the last report found, is damaged or of another version. "
    "Changes are not listed; the next report compares itself with this one."
)
FOREIGN = (
    f"report/{LAST}, which holds what the last report found, has no sample of this study. "
    "Changes are not listed; the next report compares itself with this one."
)


def report_facts(
    outcome: Outcome,
    about: dict[str, Any],
    scans: dict[str, Any],
    configuration: dict,
    relatives: dict[str, str],
) -> dict[str, Any]:
    """What the next report compares itself with.

    Parameters
    ----------
    about : dict
        `story.facts` without findings.
    scans : dict
        Sections on the scans for interactions by name.
    configuration : dict
        Of the study, complete. Files of what it does not ask for are of a former run.
    relatives : dict of str
        Closest relative by sample (`pagedata.closest_relatives`); empty if none are sought.

    Returns
    -------
    dict
        ``about``: as given; ``findings``: value by its name on the page; ``samples``, and for each
        of them ``community``, or None; ``relatives``: as given.
    """
    results = outcome.folder
    groups = found_communities(results, configuration)
    described = configuration["population"]["analyses"]
    populations = read_if_there(results / "population/summary.json") if described else {}
    by_segments = "ibd" in configuration["compare"]["analyses"]
    segments = read_if_there(results / "ibd/summary.json") if by_segments else {}
    findings: dict[str, Any] = {
        "Cohorts": len(about["cohorts"]),
        "Founder cohorts": len(about["founders"]),
        "Samples": about["samples"],
        "Samples left out": about["samples_left_out"],
        "Sites of the panel": about["sites"],
        "Significant principal components": about["significant_components"],
        "Structure": STRUCTURE.get(groups.get("structure")),
        "Communities": groups.get("communities"),
        "Finer communities": groups.get("fine"),
        "Populations admixed by f3": ", ".join(populations.get("admixed") or []) or None,
        **{f"{PAIRS}{what}": count for what, count in (about["close_pairs"] or {}).items()},
        "Pairs that share IBD segments": segments.get("pairs_with_segments"),
    }
    for part in scans.values():
        for scan in part["scans"]:
            name = f"{part['heading']}, {scan['name']}"
            findings[f"{name}: significant loci"] = scan["significant_loci"]
            sites = scan["lead"]["sites"] if scan["lead"] else []
            findings[f"{name}: best"] = ", ".join(site for site, _ in sites) or None
        if sets := part.get("sets"):
            findings[f"{part['heading']}: significant sets"] = sets["significant"]
            findings[f"{part['heading']}: best set"] = sets["lead"] and sets["lead"]["set"]
            if outside := sets["environments"]:
                name = f"{part['heading']}: significant sets with environments"
                findings[name] = outside["significant"]
    findings |= {"Warnings": about["warnings"], "Version of Popdesic": __version__}
    path = results / "communities/partition.tsv"
    names = list(outcome.samples["sample"])
    member = {}
    if configuration["communities"]["methods"] and path.exists():
        table = read_table(path)
        member = dict(zip(table["sample"], table["community"], strict=True))
    return {
        "about": about,
        "findings": {name: value for name, value in findings.items() if value is not None},
        "samples": names,
        "community": [member.get(name) for name in names],
        "relatives": relatives,
    }


def recall(folder: Path, now: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Facts of the last report that differed from this one; a sentence if they cannot be read.

    Keeps `now` and these in the file, for the next report.

    Parameters
    ----------
    folder : Path
        Of the page.
    now : dict
        `report_facts` of this report.

    Returns
    -------
    before : dict or None
        None on the first report, and where the file is damaged, of another version, or of another
        study; of its samples only those that are still in the study.
    remark : str
        Empty unless the file is there and cannot be used.
    """
    path, before, remark = folder / LAST, None, ""
    if path.exists():
        last = _kept(path)
        if last is None:
            remark = STALE
        else:
            same = last["now"] == json.loads(json.dumps(now))
            before = last["before"] if same else last["now"]
            if before and not set(before["samples"]) & set(now["samples"]):
                before, remark = None, FOREIGN
    before = before and _still_there(before, set(now["samples"]))
    kept = {"form": FORM, "now": now, "before": before}
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
    return before, remark


def _kept(path: Path) -> dict[str, Any] | None:
    """The file's content if it has the form that this version writes."""
    try:
        found = read_json(path)
        parts = [facts for facts in (found["now"], found["before"]) if facts is not None]
        whole = found["form"] == FORM and all(map(_well_formed, parts))
        return found if whole and found["now"] else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _well_formed(facts: dict[str, Any]) -> bool:
    """Whether facts have all parts, each of its kind; what is no dict at all may raise."""
    about, names, groups = facts["about"], facts["samples"], facts["community"]
    texts = [*names, *about["cohorts"], *facts["relatives"].values()]
    texts += [group for group in groups if group is not None]
    return (
        {"about", "findings", "samples", "community", "relatives"} == set(facts)
        and {"panel", "communities", "close_pairs"} <= set(about)
        and isinstance(about["samples"], int)
        and len(names) == len(groups)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(one, str | int | float) for one in facts["findings"].values())
    )


def _still_there(facts: dict[str, Any], present: set[str]) -> dict[str, Any]:
    """Facts without samples that have left: a sample that is excluded leaves no name behind."""
    rows = [
        (name, group)
        for name, group in zip(facts["samples"], facts["community"], strict=True)
        if name in present
    ]
    relatives = {
        name: text if text.rpartition(" (")[0] in present else "a sample that left"
        for name, text in facts["relatives"].items()
        if name in present
    }
    return facts | {
        "samples": [name for name, _ in rows],
        "community": [group for _, group in rows],
        "relatives": relatives,
    }


def changes_section(
    before: dict[str, Any] | None, now: dict[str, Any], outcome: Outcome
) -> dict[str, Any] | None:
    """What the page lists; None without an earlier report.

    Returns
    -------
    dict
        ``counts``: rows (name, before, now) of what always stands there and of findings that
        changed; ``words``: sentences; ``rows``: DataFrame of the samples that changed, with
        `sample`, `cohort`, `what`, `before`, `now`, each sample once for each thing that changed;
        ``shown``: the first MOST_ROWS of them.
    """
    if before is None:
        return None
    counts = [
        (name, *map(_cell, values))
        for name in dict.fromkeys([*now["findings"], *before["findings"]])
        if len(set(values := [_value(one, name) for one in (before, now)])) > 1 or name in ALWAYS
    ]
    moved, words = _moved(before, now)
    sought = all(facts["about"]["close_pairs"] is not None for facts in (before, now))
    related = [
        (name, "closest relative", before["relatives"].get(name), now["relatives"].get(name))
        for name in before["samples"]
        if sought and before["relatives"].get(name) != now["relatives"].get(name)
    ]
    cohort = dict(zip(outcome.samples["sample"], outcome.samples["cohort"], strict=True))
    rows = pd.DataFrame(
        [
            (name, cohort[name], what, old_value or "none", new_value or "none")
            for name, what, old_value, new_value in [*moved, *related]
        ],
        columns=["sample", "cohort", "what", "before", "now"],
    )
    words += _counted(before, now, len(moved), len(related))
    return {
        "counts": counts,
        "words": words,
        "rows": rows,
        "shown": rows.head(MOST_ROWS).to_dict("records"),
    }


def _value(facts: dict[str, Any], name: str) -> Any:
    """A finding; kinds of pairs that were sought and not found count 0."""
    sought = name.startswith(PAIRS) and facts["about"]["close_pairs"] is not None
    return facts["findings"].get(name, 0 if sought else None)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return number(value) if isinstance(value, int) else str(value)


def _moved(before: dict, now: dict) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """Samples that are not where most of their former community is now, and what merged.

    Communities are numbered anew in each run, so their numbers alone say nothing.
    """
    after = dict(zip(now["samples"], now["community"], strict=True))
    pairs = [
        (name, group, after[name])
        for name, group in zip(before["samples"], before["community"], strict=True)
        if group is not None and after[name] is not None
    ]
    together = Counter((old, new) for _, old, new in pairs)
    went: dict[str, str] = {}
    for (old, new), _ in sorted(together.items(), key=lambda item: (-item[1], item[0])):
        went.setdefault(old, new)
    moved = []
    for name, old, new in pairs:
        if went[old] != new:
            whose = "" if went[old] == old else f", most of which is now {went[old]}"
            moved.append((name, "community", f"{old}{whose}", new))
    merged = {new: [old for old in sorted(went) if went[old] == new] for new in went.values()}
    words = [
        f"Most samples of the former communities {join(olds)} are now in community {new}."
        for new, olds in sorted(merged.items())
        if len(olds) > 1
    ]
    return moved, words


def _counted(before: dict, now: dict, moved: int, related: int) -> list[str]:
    """How many samples are new, left, moved, or have another closest relative."""
    stayed = len(before["samples"])
    new, left = len(now["samples"]) - stayed, before["about"]["samples"] - stayed
    words = [f"{plural(stayed, 'sample is', 'samples are')} in both reports"]
    words += [f"{plural(new, 'is', 'are')} new"] * bool(new)
    words += [f"{plural(left, 'is', 'are')} no longer there"] * bool(left)
    text = [f"{join(words)}."]
    if not moved and not related:
        return [*text, "None of those in both has another community or closest relative."]
    if moved:
        text.append(
            f"{plural(moved, 'sample has', 'samples have')} left its community."
            if moved == 1
            else f"{number(moved)} samples have left their communities."
        )
    if related:
        text.append(f"{plural(related, 'sample has', 'samples have')} another closest relative.")
    return text


def marked_samples(changes: dict[str, Any] | None) -> pd.DataFrame | None:
    """`sample` and MARK, what changed of it; None where nothing did."""
    if changes is None or not len(changes["rows"]):
        return None
    marks = changes["rows"].groupby("sample", sort=False)["what"].agg(" and ".join)
    return pd.DataFrame({"sample": marks.index, MARK: marks.to_numpy()})
