"""Seconds that the parts of a stage take, for its log."""

from __future__ import annotations

import logging
import time


class Laps:
    """A clock that is read at the end of each part of some work.

    Parts with the same name are added up. Work that a GPU has not done yet counts where its results
    are waited for.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def end(self, part: str) -> None:
        """`part` took the time since the clock was last read."""
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def log(self, logger: logging.Logger, what: str) -> None:
        """Write one line: ``what, seconds: part 1.2, part 0.3``."""
        parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in self.seconds.items())
        logger.info("%s, seconds: %s", what, parts)
