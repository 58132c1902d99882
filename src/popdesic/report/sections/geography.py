"""Section on places: isolation by distance, barriers, map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.files import read_json
from ...geography.coordinates import has_places
from ..inline import describe_drawn
from ..isolation import isolation_words
from ..outcome import Outcome
from ..registry import geography_figures
from ..words import join, number, percent, plural

KINDS = {
    "all": "all pairs",
    "within": "within communities",
}


def geography_section(
    outcome: Outcome, figures: Path, structure: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Text, table and figures; None if the sample sheet has no coordinates of several places.

    `structure`: `communities/communities.json`, if there are communities.

    Returns
    -------
    dict
        ``words`` and ``notes`` (lists of sentences), ``rows`` and ``unit`` of the table of
        isolation by distance, ``linearised``, ``figures``: list of FigureText.
    """
    path = outcome.folder / "geography/isolation.json"
    if not has_places(outcome.qc) or not path.exists():
        return None
    about = read_json(path)
    sizes = {
        "n_placed": number(about["samples"]),
        "n_places": number(about["places"]),
        "n_place_pairs": number(about["places"] * (about["places"] - 1) // 2),
        "n_edges": number(about["edges"]),
    }
    return {
        "words": [isolation_words(about, structure), *_barrier_words(about)],
        "notes": _notes(about),
        "rows": [_row(name, about[kind]) for kind, name in KINDS.items() if about.get(kind)],
        "linearised": about["measure"].startswith("F_ST"),
        "unit": "km" if about["unit"] == "km" else "unit",
        "figures": describe_drawn(geography_figures(True), figures, sizes),
    }


def _barrier_words(about: dict[str, Any]) -> list[str]:
    if about["barriers"] is None:
        return []
    found = [
        plural(about[kind], *words)
        for kind, words in (
            ("barriers", ("is a barrier", "are barriers")),
            ("corridors", ("is a corridor", "are corridors")),
        )
        if about[kind]
    ]
    return [
        f"Of {plural(about['edges'], 'pair')} of neighbouring places, "
        f"{join(found) or 'none is a barrier or a corridor'} (chance of any false one: "
        f"{percent(about['error_rate'], 0)})."
    ]


def _notes(about: dict[str, Any]) -> list[str]:
    notes = [about["missing"]]
    if count := about["samples_without_place"]:
        notes.append(f"{plural(count, 'sample has', 'samples have')} no coordinates.")
    if count := about["relatives_left_out"]:
        notes.append(
            f"{plural(count, 'sample is', 'samples are')} left out of genetic distances, as "
            "duplicates or first-degree relatives of others."
        )
    if not about["relatives_known"]:
        notes.append(
            "Relatives were not sought (compare.analyses), so families of one place count in full."
        )
    if found := about.get("all"):
        notes.append(
            f"The test takes {plural(found['samples'], 'sample')} of each of "
            f"{plural(found['places'], 'place')}: with unequal numbers its error rate would grow."
        )
    if count := about["places_of_newcomers_only"]:
        notes.append(
            f"{plural(count, 'place has', 'places have')} no founder samples. Sites were chosen "
            "in the founders, and other batches may have other errors: deviations of these places "
            "need not come from geography."
        )
    if about["cell"]:
        unit = "degrees" if about["system"] == "sphere" else "units"
        notes.append(
            f"There are too many different coordinates; those in one cell of {about['cell']:g} "
            f"{unit} count as one place."
        )
    return [note for note in notes if note]


def _row(name: str, found: dict[str, Any]) -> dict[str, str]:
    """A row of the table, as text."""
    line, linear = found["slope_log"], found["slope_linear"]
    return {
        "name": name,
        "pairs": number(found["pairs"]),
        "correlation": f"{found['correlation']:.3f}",
        "p": "NA" if found["p"] is None else f"{found['p']:.2g}",
        "arrangements": number(found["permutations"]) + (" (all)" if found["exact"] else ""),
        "slope": "NA" if line is None else f"{line['slope']:.3g}",
        "error": "NA" if line is None else f"{line['standard_error']:.2g}",
        "linear": "NA" if linear is None else f"{linear['slope']:.3g}",
    }
