"""A recombination rate in place of a genetic map (`genetic_map`); nothing else is imported here."""

from __future__ import annotations

import re

#: A recombination rate in place of a genetic map, such as ``1.1 cM/Mb``.
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?cM/Mb")


def rate_of(genetic_map: str | None) -> float | None:
    """Centimorgans a megabase if `genetic_map` is a rate above 0; else None."""
    found = _RATE.fullmatch(genetic_map or "")
    return float(found[1]) or None if found else None


def map_file(genetic_map: str) -> str:
    """The path of `genetic_map`; empty if it states a rate."""
    return "" if rate_of(genetic_map) is not None else genetic_map


def rate_words(genetic_map: str | None) -> str:
    """What a result says that has no map; empty where there is a file of one."""
    if not genetic_map:
        return "There is no genetic map (genetic_map), so 1 Mb counts as 1 cM."
    rate = rate_of(genetic_map)
    if rate is None:
        return ""
    return f"There is no genetic map, but a rate (genetic_map): 1 Mb counts as {rate:g} cM."
