"""The last line of a run."""

import os
import time

import pytest

from popdesic.study.closing import REPORT, duration, last_line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_report_duration_and_warnings(tmp_path):
    (tmp_path / "logs/x").mkdir(parents=True)
    (tmp_path / REPORT).parent.mkdir(parents=True)
    started = time.time() - 65
    assert last_line(started, tmp_path) == "Done (1 min 5 s; no warnings)."
    (tmp_path / REPORT).write_text("")
    (tmp_path / "logs/a.log").write_text("now INFO fine\nnow WARNING one\n")
    (tmp_path / "logs/x/b.log").write_text("now WARNING two\nnow WARNING three\n")
    old = tmp_path / "logs/old.log"
    old.write_text("then WARNING of an earlier run\n")
    os.utime(old, (started - 10, started - 10))
    expected = f"The report is {REPORT} (1 min 5 s; 3 warnings in logs/a.log, logs/x/b.log)."
    assert last_line(started, tmp_path) == expected
    os.utime(tmp_path / REPORT, (started - 10, started - 10))
    assert last_line(started, tmp_path).startswith("Done (")
