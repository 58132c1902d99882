"""Parse windows of LD and pruning in the configuration; nothing compiled, for fast planning."""

from __future__ import annotations

import re

from ..core.errors import UserError, shorten

#: Largest window in base pairs or sites: more than any genome has.
MOST_AMOUNT = 1e12


def parse_window(window: str, key: str = "compare.ld.window") -> tuple[float, str]:
    """Return amount and unit (bp, sites or cM; kb and Mb become bp) of a window."""
    text = window if isinstance(window, str) else ""
    words = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(bp|kb|mb|sites|cm)\s*", text, re.IGNORECASE)
    if words:
        unit = words[2].lower()
        amount = float(words[1]) * {"kb": 1000, "mb": 1_000_000}.get(unit, 1)
        if 0 < amount <= MOST_AMOUNT:
            return amount, {"sites": "sites", "cm": "cM"}.get(unit, "bp")
    raise UserError(
        f"config/config.yaml: {key}: '{shorten(str(window))}' is not a window; write a number and "
        "bp, kb, Mb, sites or cM, for example '250 kb'."
    )


def parse_pruning(values: list, key: str) -> tuple[float, str, int, float]:
    """Return window (amount, unit bp or sites), step in sites and r2 of a configured list.

    Raises
    ------
    UserError
        The values are not valid for `plink2 --indep-pairwise`.
    """
    shown = f"config/config.yaml: {key} is {shorten(repr(values))}"
    if len(values) != 3:
        raise UserError(f"{shown}; give a window, a step in sites and an r2: [50 sites, 5, 0.2].")
    amount, unit = parse_window(values[0], key)
    step, r2 = values[1:]
    if unit == "cM":
        raise UserError(f"{shown}; a pruning window is in sites, bp, kb or Mb.")
    if not _is_number(step) or step != int(step) or step < 1 or (unit == "bp" and step != 1):
        raise UserError(
            f"{shown}; the step is a whole number of sites, at least 1, and exactly 1 if the "
            "window is in bp, kb or Mb."
        )
    if not _is_number(r2) or not 0 <= r2 < 1:
        raise UserError(f"{shown}; r2 must be a number of at least 0 and below 1.")
    return amount, unit, int(step), float(r2)


def _is_number(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= MOST_AMOUNT
