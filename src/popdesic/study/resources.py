"""The cost model of jobs: memory and time limits of rules, and the forecast of `popdesic plan`.

A rule states its expected memory (megabytes) and time (minutes) as a `Cost`, a function of data
sizes. `limit_mb` and `limit_minutes` add a margin to get the limits that it requests. The forecast
converts a limit back into the expected time; for rules that compute on a GPU it uses measured rates
instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Megabytes for Python and Snakemake. A Slurm job runs two Snakemake processes of 150 MB beside the
#: script; with 400 MB, jobs that compile were killed.
START_MB = 700
#: Share of the memory that every retry adds.
RETRY_SHARE = 0.5
#: Minutes to start, and the time limit as a multiple of the expected minutes.
START_MINUTES, MARGIN = 5, 3
#: Work per second on one NVIDIA H200 (docs/scaling.md); an epistasis test counts once per sample.
GPU_RATES = {
    "site-pairs": 2.0e15,
    "min-plus operations": 13e12,
    "pair tests": 30e12,
    "triple tests": 200e12,
    "quad tests": 20e12,  # not measured: half of what scoring three operands a quad lets through
}
#: The same on one CPU core, for rules whose time limit says little about the expected time. No GPU
#: fits quads.
CORE_RATES = {"pair tests": 2e9, "triple tests": 2e9, "quad tests": 1e9, "quad fits": 5e8}
#: Min-plus operations per second of a job on a CPU, low enough for a slow one.
CPU_MIN_PLUS = 8e9
#: Bytes per second that a job reads from the cluster's file system.
READ_RATE = 2e9
#: Seconds before a job's first instruction: two Snakemake start-ups and the imports.
START_SECONDS = 10.0
#: Expected core hours (an hour of 16 cores) up to which a study is small; also `ONE_JOB_SAMPLES`.
ONE_JOB_CORE_HOURS = 16.0


@dataclass(frozen=True)
class Cost:
    """Megabytes or minutes as a linear function of data sizes.

    Attributes
    ----------
    fixed : float
        Cost whatever the sizes.
    mb : float
        Cost per megabyte of input.
    samples, pairs, triples : float
        Cost per sample, per ordered pair and per ordered triple of samples (n, n², n³).
    mb_samples : float
        Cost per megabyte of input and sample.
    max_samples : float
        Samples beyond this number add nothing to the cost.
    """

    fixed: float = 0.0
    mb: float = 0.0
    samples: float = 0.0
    pairs: float = 0.0
    triples: float = 0.0
    mb_samples: float = 0.0
    max_samples: float = math.inf

    def of(self, mb: float, first: int, second: int | None = None) -> float:
        """The cost for this much input and this many samples.

        For a job on two blocks of samples, `pairs` counts first x second and all other costs per
        sample count those of the second block.
        """
        n = min(first if second is None else second, self.max_samples)
        return (
            self.fixed
            + self.mb * mb
            + self.samples * n
            + self.pairs * min(first, self.max_samples) * n
            + self.triples * n**3
            + self.mb_samples * mb * n
        )


def limit_mb(megabytes: float, attempt: int = 1) -> int:
    """Memory limit: start-up plus data; every retry adds half of this."""
    return int((START_MB + megabytes) * (1 + RETRY_SHARE * (attempt - 1)))


def limit_minutes(expected: float, attempt: int = 1) -> int:
    """Time limit: start-up plus a multiple of the expected minutes; doubled by every retry."""
    return int((START_MINUTES + MARGIN * expected) * 2 ** (attempt - 1))


def expected_minutes(limit: float) -> float:
    """Expected minutes of a rule with this time limit at its first attempt."""
    return max(0.0, (limit - START_MINUTES) / MARGIN)


def quad_work(score: str) -> str:
    """The unit of `GPU_RATES` and `CORE_RATES` for quads by this score."""
    return "quad fits" if score == "interaction" else "quad tests"


def closing_minutes(gpu: bool) -> float:
    """Minutes per sample cubed to compute a closure, which takes n**3 / 2 operations."""
    return 0.5 / (GPU_RATES["min-plus operations"] if gpu else CPU_MIN_PLUS) / 60
