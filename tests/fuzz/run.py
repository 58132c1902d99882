"""Fuzz the readers for any length of time and print the outcome.

    python tests/fuzz/run.py --seconds 3600
    python tests/fuzz/run.py bcf --seed 4711          # repeat one case and show its content
    python tests/fuzz/run.py bcf --seconds 60 --save  # add failing cases to the corpus

The time is divided among the named targets (by default all), of which two run at a time.
"""

from __future__ import annotations

import argparse
import json
import pprint
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner import FAILURES, Outcome, case_of, find_targets, run_target, save_case


def merge(outcomes: list[Outcome]) -> Outcome:
    """Merge the outcomes of several workers of a target; seconds are those of the slowest."""
    whole = Outcome(outcomes[0].name)
    for part in outcomes:
        whole.counts += part.counts
        whole.failures += part.failures
        whole.seconds = max(whole.seconds, part.seconds)
    return whole


def table_of(outcomes: list[Outcome]) -> str:
    """A table with one row per target, and one for all."""
    rows = [("reader", "cases", *FAILURES, "refused %", "cases/s", "other outcomes")]
    total = Outcome("all")
    for outcome in outcomes:
        total.counts += outcome.counts
        total.seconds += outcome.seconds
    for outcome in [*outcomes, total]:
        n = max(1, outcome.cases)
        refused = sum(count for word, count in outcome.counts.items() if "refused" in word)
        words = Counter(outcome.counts)
        for word in FAILURES:
            words.pop(word, None)
        rows.append(
            (
                outcome.name,
                str(outcome.cases),
                *(str(outcome.counts[word]) for word in FAILURES),
                f"{100 * refused / n:.0f}",
                f"{outcome.cases / max(outcome.seconds, 1e-9):.0f}",
                ", ".join(f"{word} {count}" for word, count in sorted(words.items())),
            )
        )
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main() -> int:
    targets = find_targets()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="reader", help=f"of {', '.join(targets)}")
    parser.add_argument("--seconds", type=float, default=60, help="for all readers together")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--cases", type=int, help="end after so many cases a reader")
    parser.add_argument("--seed", type=int, help="show one case of one reader and check it")
    parser.add_argument("--save", action="store_true", help="add failing cases to the corpus")
    parser.add_argument("--json", type=Path, help="also write the outcomes here")
    options = parser.parse_args()
    if unknown := set(options.names) - set(targets):
        parser.error(
            f"no such reader: {', '.join(sorted(unknown))}; there are {', '.join(targets)}"
        )
    chosen = [targets[name] for name in options.names or targets]
    if options.seed is not None:
        for target in chosen:
            pprint.pp(case_of(target, options.seed), width=120)
        options.first, options.cases, options.workers = options.seed, 1, 1
    outcomes = []
    for target in chosen:
        with ThreadPoolExecutor(options.workers) as pool:
            runs = [
                pool.submit(
                    run_target,
                    target,
                    options.seconds / len(chosen),
                    first=options.first + k,
                    step=options.workers,
                    n_cases=options.cases and max(1, options.cases // options.workers),
                )
                for k in range(options.workers)
            ]
            outcomes.append(merge([run.result() for run in runs]))
        for seed, word, detail in outcomes[-1].failures:
            print(f"{target.name}, seed {seed}: {word}\n{detail}")
            if options.save:
                print(f"saved as {save_case(target, case_of(target, seed)).name}")
    print(table_of(outcomes))
    if options.json:
        rows = [{"reader": o.name, "seconds": o.seconds, **o.counts} for o in outcomes]
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
