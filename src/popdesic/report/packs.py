"""How arrays and names reach the page: as they are, or compressed and within a budget.

Up to LARGE samples every array is base64 in the page's JSON. Above, each lies in an element of its
own, deflated with its bytes split by significance, and the page inflates what it shows.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

#: Samples above which arrays are compressed and the maps are drawn by WebGL.
LARGE = 50_000
#: Characters of all arrays of a large study; figures and tables have the rest of 40 MB.
BUDGET = 33_000_000


class Inline:
    """Arrays as base64 of little-endian integers; names as a list."""

    packed = False

    def array(self, values: np.ndarray) -> str:
        return base64.b64encode(values.tobytes()).decode()

    def names(self, names: list[str]) -> list[str]:
        return names


class Packs:
    """Compressed arrays of a large study, within a budget of characters.

    Attributes
    ----------
    texts : list of str
        Base64 of zlib streams, by number of the pack.
    left_out : list of str
        What did not fit, in words.
    """

    packed = True

    def __init__(self, budget: int = BUDGET) -> None:
        self.left = budget
        self.texts: list[str] = []
        self.left_out: list[str] = []

    def array(self, values: np.ndarray) -> dict[str, int]:
        """Number of the pack, and the bytes of a number; all first bytes come first."""
        width = values.dtype.itemsize
        split = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width).T
        return self._add(split.tobytes()) | {"bytes": width}

    def names(self, names: list[str]) -> dict[str, int]:
        """Texts in order; none of them contains a line break, because they come from tables."""
        return self._add("\n".join(names).encode())

    def fits(self, size: int) -> bool:
        """Whether that many bytes fit even if compression gains nothing."""
        return size * 4 / 3 <= self.left

    def mark(self) -> tuple[int, int]:
        """A place to go back to, for what turns out not to fit."""
        return self.left, len(self.texts)

    def go_back(self, mark: tuple[int, int], what: str) -> None:
        """Remove what was added since `mark`, and say so."""
        self.left = mark[0]
        del self.texts[mark[1] :]
        self.left_out.append(what)

    def _add(self, raw: bytes) -> dict[str, int]:
        text = base64.b64encode(zlib.compress(raw, 6)).decode()
        self.texts.append(text)
        self.left -= len(text)
        return {"pack": len(self.texts) - 1}


Store = Inline | Packs


def store_for(n_samples: int) -> Store:
    """What holds the arrays of a page of that many samples."""
    return Packs() if n_samples > LARGE else Inline()


def elements(store: Store) -> list[dict[str, Any]]:
    """Number and text of each pack, for the page's template."""
    texts = store.texts if isinstance(store, Packs) else []
    return [{"number": number, "text": text} for number, text in enumerate(texts)]
