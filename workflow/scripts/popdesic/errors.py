"""The one exception whose text is meant for the person who runs the workflow."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """An error the user can cause.

    Its text is one sentence that names file, row (line) and value and says the way out.
    """


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or all of them."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are: {', '.join(known[:12])}{', …' if len(known) > 12 else ''}."
