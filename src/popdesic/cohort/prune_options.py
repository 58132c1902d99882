"""Parse windows of LD and pruning in the configuration; nothing compiled, for fast planning."""

from __future__ import annotations

from ..io.errors import UserError, shorten

#: Largest window in base pairs or sites: more than any genome has.
MOST_AMOUNT = 1e12


def parse_window(window: str, key: str = "compare.ld.window") -> tuple[float, str]:
    """Return amount and unit (bp, sites or cM; kb becomes bp) of a window."""
    text = window.strip() if isinstance(window, str) else ""
    for unit, factor in (("kb", 1000), ("bp", 1), ("sites", 1), ("cM", 1)):
        if text.endswith(unit):
            try:
                amount = float(text.removesuffix(unit)) * factor
            except ValueError:
                break
            if 0 < amount <= MOST_AMOUNT:
                return amount, "bp" if unit == "kb" else unit
    raise UserError(
        f"config/config.yaml: {key}: '{shorten(str(window))}' is not a window; write a number and "
        "bp, kb, sites or cM, for example '250 kb'."
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
        raise UserError(f"{shown}; a pruning window is in sites, bp or kb.")
    if not _is_number(step) or step != int(step) or step < 1 or (unit == "bp" and step != 1):
        raise UserError(
            f"{shown}; the step is a whole number of sites, at least 1, and exactly 1 if the "
            "window is in bp or kb."
        )
    if not _is_number(r2) or not 0 <= r2 < 1:
        raise UserError(f"{shown}; r2 must be a number of at least 0 and below 1.")
    return amount, unit, int(step), float(r2)


def _is_number(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= MOST_AMOUNT
