"""Part of the section on communities: groups by coancestry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.files import read_json
from ..inline import describe_drawn
from ..registry import painting_figures
from ..words import number, percent, plural


def painting_part(results: Path, figures: Path, asked: bool) -> dict[str, Any] | None:
    """Text, tables and figure of `painting` in `communities.methods`; None without it.

    Returns
    -------
    dict
        ``words``; ``tests`` and ``groups``: rows of the tables; ``figures``: list of FigureText.
    """
    path = results / "painting/groups.json"
    if not asked or not path.exists():
        return None
    about = read_json(path)
    groups = about["groups"]
    sizes = {
        "n_donors": number(about["donors"]),
        "n_painted_groups": plural(len(groups), "group"),
    }
    return {
        "words": painting_words(about),
        "tests": [
            {
                "samples": number(test["samples"]),
                "deviations": f"{test['deviations']:.1f}",
                "halves": " + ".join(map(number, test["halves"])) or "not divided",
            }
            for test in about["tests"]
        ],
        "groups": [
            {
                "group": one,
                "donors": number(group["donors"]),
                "samples": number(group["samples"]),
                "stability": f"{group['stability']:.2f}",
            }
            for one, group in enumerate(groups, 1)
            if group["stability"] is not None
        ],
        "figures": describe_drawn(painting_figures(), figures, sizes),
    }


def painting_words(about: dict[str, Any]) -> str:
    """How many groups there are, and on what evidence."""
    limits, groups, tests = about["limits"], about["groups"], about["tests"]
    donors = plural(about["donors"], "founder")
    if not tests:
        few = about["stretches"] < limits["stretches"]
        why = f"the map has {plural(about['stretches'], 'stretch', 'stretches')} of 5 cM"
        least = f"groups need {limits['stretches']}"
        if not few:
            why, least = f"there are {donors}", "a division needs 10"
        return f"Groups by coancestry were not sought: {why}, and {least}."
    if len(groups) == 1:
        least = f"and a division needs {limits['deviations']:g}"
        if tests[0]["deviations"] >= limits["deviations"]:
            least = "but one part would have fewer than five founders"
        return (
            f"By what {donors} copy from each other along the genome, they are one group. The "
            f"largest eigenvalue of their coancestry lies {tests[0]['deviations']:.1f} standard "
            f"deviations above chance, {least}."
        )
    return (
        f"By what {donors} copy from each other along the genome, they are {len(groups)} groups. "
        f"Each division lies at least {limits['deviations']:g} standard deviations above chance. "
        f"Chance is measured on {limits['draws']} sums, in each of which half of the stretches of "
        "the genome are subtracted. All other samples are in the group from whose founders they "
        "copy most, beyond what founders copy from that group on average. By this rule "
        f"{percent(about['replaced'], 0)} of the founders are placed in their own group. "
        "Groups have numbers and are not ancestries. "
        "Column “painted_group” of results/painting/groups.tsv can colour the maps."
    )
