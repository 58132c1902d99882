"""The clock of a stage's parts."""

import logging
import time

import pytest

from popdesic.core.laps import Laps


def test_parts_add_up_and_are_logged_once_in_order(caplog):
    laps = Laps()
    begun = time.perf_counter()
    for part, seconds in (("one", 0.02), ("two", 0.01), ("one", 0.03)):
        time.sleep(seconds)
        laps.end(part)
    spent = time.perf_counter() - begun
    assert list(laps.seconds) == ["one", "two"]
    assert laps.seconds["one"] >= 0.05 and laps.seconds["two"] >= 0.01
    assert sum(laps.seconds.values()) == pytest.approx(spent, abs=5e-3)
    with caplog.at_level(logging.INFO):
        laps.log(logging.getLogger("popdesic.test"), "all")
    (line,) = caplog.messages
    assert line == f"all, seconds: one {laps.seconds['one']:.2f}, two {laps.seconds['two']:.2f}"
