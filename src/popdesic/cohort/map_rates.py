"""A recombination rate in place of a genetic map (`genetic_map`): little else is imported here."""

from __future__ import annotations

import re

from ..core.errors import UserError

#: A recombination rate in place of a genetic map, such as ``1.1 cM/Mb``.
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?cM/Mb")


def rate_of(genetic_map: str | None) -> float | None:
    """Centimorgans a megabase if `genetic_map` is a rate; None if it is empty or names a file.

    Raises
    ------
    UserError
        It has the unit of a rate, but no number above 0.
    """
    text = (genetic_map or "").strip()
    if not re.fullmatch(r"[-+.,0-9 ]*cM/Mb", text, re.IGNORECASE):
        return None
    found = _RATE.fullmatch(text)
    if not found or not float(found[1]):
        raise UserError(
            f"genetic_map: '{text}' is no recombination rate; write a number above 0 and its unit, "
            "such as '1.1 cM/Mb', or the path of a genetic map."
        )
    return float(found[1])


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
