"""What the tests of isolation by distance say together, in words."""

from __future__ import annotations

from typing import Any

from ..geography.coordinates import LEAST_TESTED

#: Largest p that the page calls isolation by distance.
LIMIT = 0.05


def isolation_words(about: dict[str, Any], structure: dict[str, Any] | None = None) -> str:
    """What the tests say; isolation by distance only where groups cannot explain it.

    Over all pairs, groups that live apart, or are mixed in shares that differ by place, give the
    same correlation. So where there are several communities, the test within these must agree.
    Where no gap separates some, the test for a cline must.

    Parameters
    ----------
    about : dict
        `geography/isolation.json`.
    structure : dict, optional
        `communities/communities.json`.
    """
    found = about.get("all")
    if not found:
        return "Isolation by distance was not measured: too few pairs of places can be compared."
    correlation = f"rank correlation {found['correlation']:.2f}"
    if found["p"] is None:
        return (
            f"{_places(found)} ({correlation}). Fewer than {LEAST_TESTED} places are described, "
            "not tested: this is no evidence of isolation by distance."
        )
    shown = f"{correlation}, p = {found['p']:.2g}"
    if found["p"] > LIMIT or found["correlation"] <= 0:
        return f"There is no evidence of isolation by distance ({shown})."
    text = f"{_places(found)} ({shown})"
    within, communities = about.get("within"), about["communities"]
    if within and within["p"] <= LIMIT:
        return f"{text}, within communities too: isolation by distance."
    if within:
        return (
            f"{text}, but within communities there is no evidence of it (p = {within['p']:.2g}): "
            "it may only reflect where communities live, and in which shares."
        )
    if communities is None:
        return (
            f"{text}. Communities were not inferred, so groups that live apart may explain this: "
            "it is no evidence of isolation by distance."
        )
    cline = (structure or {}).get("cline")
    if communities == 1 and cline and not cline["passed"]:
        return (
            f"{text}. This is no evidence of isolation by distance: samples do not spread as along "
            "a gradient, and families or admixture that differ by place give the same pattern."
        )
    if communities == 1:
        return f"{text}: isolation by distance."
    return (
        f"{text}. This is no evidence of isolation by distance: no community has samples in three "
        "places that can be compared, and groups that live apart give the same pattern."
    )


def _places(found: dict[str, Any]) -> str:
    """What the correlation over all pairs says."""
    more = "differ more" if found["correlation"] > 0 else "do not differ more"
    return f"Places that are farther apart {more}"
