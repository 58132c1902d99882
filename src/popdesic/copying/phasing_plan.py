"""Sizes of phasing: sweeps, and how many sites of a sample are held at a time."""

from __future__ import annotations

#: Sweeps after the start that are not counted, and those that vote: an odd number, so that a vote
#: is never a draw.
BURN_IN, VOTING = 3, 9
#: Iterations of samples with likelihoods that are not counted, and those that are
#: (tests/bench/bench_copying.py --coverage).
BURNT_LIKELY, KEPT_LIKELY = 4, 5
#: Samples that are phased from each other: iterations, of which the first ones start afresh and
#: the first ones do not vote; chains of iterations.
TOGETHER, AFRESH, BURNT_TOGETHER, CHAINS = 18, 11, 7, 2
#: Effective size and mismatch until they are fitted.
FIRST_MODEL = (1e5, 1e-3)
#: Bytes of backward states that a sample may have in memory; beyond, a window is cut in blocks
#: of sites, and those of a block are computed twice. No result depends on it.
STATE_BYTES = 64 << 20


def block_length(n_called: int, n_padded: int) -> int:
    """Sites of a block: all, or so many that a block and one state of each block fit.

    Parameters
    ----------
    n_called : int
        Sites of the window at which the sample is called.
    n_padded : int
        States of a haplotype, padding included.
    """
    fitting = max(1, STATE_BYTES // (2 * 4 * n_padded))
    if n_called <= fitting:
        return max(1, n_called)
    return min(n_called, max(1, fitting // 2, int(n_called**0.5)))
