"""Each file reader: all cases that ever failed, then random ones for a limited time.

`--fuzz-seconds` is the time per reader; longer runs: python tests/fuzz/run.py --seconds 3600.
"""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz.runner import (
    FAILURES,
    Outcome,
    corpus_of,
    find_targets,
    run_corpus,
    run_target,
)

TARGETS = find_targets()
#: Targets of each module; those of the side files share the time of one reader.
SHARING = Counter(type(target).__module__ for target in TARGETS.values())
#: All behind the text that is made of BGEN is the reader of VCF: it takes an eighth of the time.
SHARING["fuzz.fuzz_bgen"] = 8
#: Random cases of each target, however slow the machine.
FEWEST = 20


def report(outcome: Outcome) -> str:
    again = f"python tests/fuzz/run.py {outcome.name} --seed"
    return "\n".join(
        f"{kind} ({again} {seed})\n{detail}" for seed, kind, detail in outcome.failures
    )


@pytest.mark.parametrize("name", TARGETS)
def test_every_case_that_ever_failed(name):
    outcome = run_corpus(TARGETS[name])
    assert outcome.cases == len(corpus_of(TARGETS[name]))
    assert not outcome.failures, report(outcome)


@pytest.mark.parametrize("name", TARGETS)
def test_random_cases(name, request):
    seconds = request.config.getoption("--fuzz-seconds")
    target = TARGETS[name]
    outcome = run_target(target, seconds / SHARING[type(target).__module__])
    if outcome.cases < FEWEST and not outcome.failures:  # on a busy machine
        missing = FEWEST - outcome.cases
        more = run_target(target, 10 * seconds, first=outcome.cases, n_cases=missing)
        outcome.counts += more.counts
        outcome.failures += more.failures
    print(f"{outcome.cases} cases, the first in {outcome.seconds:.1f} s: {dict(outcome.counts)}")
    assert not outcome.failures, report(outcome)
    assert outcome.cases >= FEWEST, "too slow to find anything"
    assert set(outcome.counts) - {"refused", *FAILURES}, "every case was refused"
