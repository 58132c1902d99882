"""The last line of a run."""

import os
import time

import pytest

from popdesic.study.closing import PAGE_LOG, REPORT, duration, failure, last_line


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
    (tmp_path / PAGE_LOG).write_text("now WARNING Few founders: only 3.\n")
    assert "; 1 warning on the page and 3 warnings in logs/a.log" in last_line(started, tmp_path)
    os.utime(tmp_path / REPORT, (started - 10, started - 10))
    assert last_line(started, tmp_path).startswith("Done (")


def test_a_failed_run_ends_with_the_sentence_the_log_and_the_command(tmp_path):
    (tmp_path / "logs/x").mkdir(parents=True)
    started, command = time.time() - 65, "popdesic run study"
    stamp = "2026-01-02 03:04:05,678"
    old = tmp_path / "logs/old.log"
    old.write_text(f"{stamp} ERROR of an earlier run\n")
    os.utime(old, (started - 10, started - 10))
    (tmp_path / "logs/fine.log").write_text(f"{stamp} INFO fine\n")
    again = "Finished results are kept; go on with: popdesic run study"
    killed = failure(started, tmp_path, command)
    assert killed.startswith("Error: a job ended without a reason in its log")
    assert killed.endswith(again)
    log = tmp_path / "logs/x/b.log"
    log.write_text(f"{stamp} INFO begun\n{stamp} ERROR a sentence.\n")
    os.utime(log, (started + 1, started + 1))
    assert failure(started, tmp_path, command) == (
        f"Error: a sentence.\nThe log is logs/x/b.log. {again}"
    )
    fault = (
        f"{stamp} ERROR stopped after 0.1 s\nTraceback (most recent call last):\nKeyError: 'x'\n"
    )
    (tmp_path / "logs/c.log").write_text(fault)
    os.utime(log, (started + 99, started + 99))
    assert failure(started, tmp_path, command) == (
        f"Error: KeyError: 'x'\nThe log is logs/c.log (and 1 more jobs failed). {again}"
    )
