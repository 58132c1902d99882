"""The one exception whose text is written for the user."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

#: Control characters and Unicode line separators, which would garble a line or a terminal.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: Longest sentence shown, in characters: values from files can be of any length.
LONGEST_SENTENCE = 1500


class UserError(Exception):
    """An error the user can cause.

    Its text is one sentence that names file, row (line) and value and says what to do. Values come
    from files, so control characters are escaped and the middle of a very long text is left out.
    """

    def __init__(self, sentence: str) -> None:
        text = CONTROL.sub(lambda found: repr(found[0])[1:-1], str(sentence))
        super().__init__(shorten(text, LONGEST_SENTENCE))


def shorten(text: str, longest: int = 80) -> str:
    """Return `text` without its middle if it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    head = (longest - 3) * 2 // 3
    return f"{text[:head]} … {text[len(text) - (longest - 3 - head) :]}"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the closest known word, or a list."""
    known = list(known)
    word = word[:LONGEST_SENTENCE]  # the search takes quadratic time
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known are: {', '.join(known[:12])}{', …' if len(known) > 12 else ''}."
