"""Simulate the dips of uniform samples and print the table in src/popdesic/communities/dip.py.

    python resources/dip/make_table.py [--draws 1000000] [--seed 1]

Prints SIZES, PROBABILITIES and QUANTILES as Python. A size n is
drawn --draws times, but at most 10^9 / n times. The whole table takes a few minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "src"))

from popdesic.communities.dip_cpu import twice_dip

SIZES = (4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1_000, 2_000, 5_000)
PROBABILITIES = (1.0, 0.9, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 1e-4)
MOST_NUMBERS = 10**9


def simulate(size: int, draws: int, seed: int) -> np.ndarray:
    """sqrt(n) times the dips of `draws` uniform samples of n = `size`, ascending."""
    rng = np.random.default_rng([seed, size])
    upto = np.arange(1.0, size + 1)
    found = [twice_dip(np.sort(rng.random(size)), upto) for _ in range(draws)]
    return np.sort(found) / (2 * np.sqrt(size))


def quantiles(dips: np.ndarray) -> np.ndarray:
    """What each of PROBABILITIES of the ascending `dips` reach or exceed, in 10^-5, rounded up."""
    n = len(dips)
    place = np.clip(n - np.round(np.array(PROBABILITIES) * n).astype(int), 0, n - 1)
    return np.ceil(dips[place] * 1e5 - 1e-6).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"SIZES = {SIZES}\nPROBABILITIES = {PROBABILITIES}\nQUANTILES = (")
    for size in SIZES:
        draws = min(options.draws, MOST_NUMBERS // size)
        row = quantiles(simulate(size, draws, options.seed))
        print(f"    ({', '.join(map(str, row))}),", flush=True)
    print(")")


if __name__ == "__main__":
    main()
