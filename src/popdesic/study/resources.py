"""What jobs take: the one model behind the limits that rules ask for and `popdesic plan`.

A rule states what it expects as a `Cost`, in megabytes and in minutes, by the sizes of its data.
What it asks for is more: `limit_mb` and `limit_minutes`. The forecast goes back from a limit to
what was expected, and takes rates of devices where a rule computes on one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Megabytes of Python and Snakemake. A Slurm job holds two Snakemakes of 150 MB beside the script;
#: with 400 MB, jobs that compile were killed.
START_MB = 700
#: More memory with every retry, as a share.
RETRY_SHARE = 0.5
#: Minutes to start, and how many times the expected minutes a job may take.
START_MINUTES, MARGIN = 5, 3
#: Units a second on one NVIDIA H200 (docs/scaling.md); tests of epistasis count once a sample.
GPU_RATES = {
    "site-pairs": 2.0e15,
    "min-plus operations": 13e12,
    "pair tests": 30e12,
    "triple tests": 200e12,
}
#: The same on one core of a CPU, where a rule's time limit is no guide.
CORE_RATES = {"pair tests": 2e9, "triple tests": 2e9}
#: Min-plus operations a second of a job on a CPU, with room for a slow one.
CPU_MIN_PLUS = 8e9
#: Bytes a second that a job reads from the cluster's file system.
READ_RATE = 2e9
#: Seconds of a job before its first instruction: two Snakemakes and the imports.
START_SECONDS = 10.0


@dataclass(frozen=True)
class Cost:
    """Megabytes or minutes as a sum over the sizes of a job's data.

    Attributes
    ----------
    fixed : float
    mb : float
        For a megabyte of input.
    samples, pairs, triples : float
        For a sample, a pair of samples, three samples.
    mb_samples : float
        For a megabyte of input times a sample.
    most_samples : float
        More samples than this cost no more.
    """

    fixed: float = 0.0
    mb: float = 0.0
    samples: float = 0.0
    pairs: float = 0.0
    triples: float = 0.0
    mb_samples: float = 0.0
    most_samples: float = math.inf

    def of(self, mb: float, first: int, second: int | None = None) -> float:
        """The cost for so many megabytes and samples, or samples of two blocks."""
        n = min(first if second is None else second, self.most_samples)
        return (
            self.fixed
            + self.mb * mb
            + self.samples * n
            + self.pairs * min(first, self.most_samples) * n
            + self.triples * n**3
            + self.mb_samples * mb * n
        )


def limit_mb(megabytes: float, attempt: int = 1) -> int:
    """Memory to ask for: what the data take and the start, half more with every retry."""
    return int((START_MB + megabytes) * (1 + RETRY_SHARE * (attempt - 1)))


def limit_minutes(expected: float, attempt: int = 1) -> int:
    """Time to ask for: the expected minutes with room to spare, doubled with every retry."""
    return int((START_MINUTES + MARGIN * expected) * 2 ** (attempt - 1))


def expected_minutes(limit: float) -> float:
    """What a rule expected that asks for so many minutes at its first attempt."""
    return max(0.0, (limit - START_MINUTES) / MARGIN)


def closing_minutes(gpu: bool) -> float:
    """Minutes of a closure for three samples: it takes n**3 / 2 operations."""
    return 0.5 / (GPU_RATES["min-plus operations"] if gpu else CPU_MIN_PLUS) / 60
