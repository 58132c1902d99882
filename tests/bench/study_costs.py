"""What the jobs of a run cost: Snakemake's benchmark files, the jobs' logs, nvidia-smi."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

#: The last line of a job's log (`core/log.py`).
DONE = re.compile(r"^(\S+ \S+) INFO done in (\S+) s, (\S+) CPU-s, (\S+) of them start-up", re.M)
#: The line of a job that holds a GPU from then on (`engine/lease.py`).
LEASED = re.compile(r"^(\S+ \S+) INFO device \S+, (?:leased|granted)", re.M)
#: Seconds between two readings of the GPU's utilisation.
POLL = 0.2


@dataclass
class Row:
    """Sums over the jobs of a rule; times in seconds, bytes in MB."""

    jobs: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    start: float = 0.0
    read: float | None = None
    wrote: float | None = None
    peak: float | None = None
    #: Periods in which a job held a GPU, as seconds since 1970.
    leases: list[tuple[float, float]] = field(default_factory=list)
    #: Start and end of each job, as seconds since 1970.
    spans: list[tuple[float, float]] = field(default_factory=list)


def number(text: str) -> float | None:
    """A number of a benchmark file; None where Snakemake has none."""
    return None if text in ("NA", "-") else float(text)


def add(total: float | None, value: float | None) -> float | None:
    return total if value is None else (total or 0.0) + value


def read_rows(study: Path, since: float = 0.0) -> dict[str, Row]:
    """What the jobs of each rule cost, from benchmark files and logs.

    Jobs that ended before `since`, in seconds since 1970, are those of an earlier run.
    """
    rows: dict[str, Row] = {}
    for path in sorted((study / "benchmarks").rglob("*.tsv")):
        if path.stat().st_mtime < since:
            continue
        place = path.relative_to(study / "benchmarks")
        head, *lines = (line.split("\t") for line in path.read_text().splitlines())
        log = (study / "logs" / place).with_suffix(".log").read_text("utf-8", "replace")
        row = rows.setdefault(place.parts[0].removesuffix(".tsv"), Row())
        for line in lines:
            value = {
                name: number(cell) for name, cell in zip(head, line, strict=True) if name != "h:m:s"
            }
            row.jobs += 1
            row.wall += value["s"]
            row.read, row.wrote = add(row.read, value["io_in"]), add(row.wrote, value["io_out"])
            row.peak = max(filter(None, (row.peak, value["max_rss"])), default=None)
        if done := DONE.search(log):
            row.cpu += float(done[3])
            row.start += float(done[4])
            end = seconds_of(done[1])
            row.spans.append((end - float(done[2]), end))
            if leased := LEASED.search(log):
                row.leases.append((seconds_of(leased[1]), seconds_of(done[1])))
    return rows


def seconds_of(stamp: str) -> float:
    """Seconds since 1970 of the time at the start of a log line."""
    return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp()


def busy_share(
    leases: Iterable[tuple[float, float]], samples: list[tuple[float, float]]
) -> float | None:
    """Mean utilisation, 0 to 1, of the samples (time, percent) within the leases; None if none."""
    leases = list(leases)
    within = [used for at, used in samples if any(a <= at <= b for a, b in leases)]
    return sum(within) / len(within) / 100 if within else None


@contextmanager
def utilisation() -> Iterator[list[tuple[float, float]]]:
    """A list that is filled with (time, percent of it in which the GPU worked), where it can be."""
    samples: list[tuple[float, float]] = []
    program = shutil.which("nvidia-smi")
    if not program:
        yield samples
        return
    words = [program, "--query-gpu=timestamp,utilization.gpu", "--format=csv,noheader,nounits"]
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        words.append(f"--id={visible}")
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*words, f"--loop-ms={POLL * 1000:.0f}"], stdout=said, stderr=subprocess.DEVNULL
        )
        try:
            yield samples
        finally:
            process.terminate()
            process.wait()
            said.seek(0)
            samples += read_utilisation(said.read())


def read_utilisation(text: str) -> list[tuple[float, float]]:
    """What `nvidia-smi` printed; the busiest device counts where there are several."""
    found: dict[float, float] = {}
    for stamp, used in re.findall(r"^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+), (\d+)$", text, re.M):
        at = round(datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").timestamp(), 1)
        found[at] = max(found.get(at, 0.0), float(used))
    return sorted(found.items())
