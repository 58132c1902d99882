"""Random numbers drawn by names, so that the order of samples plays no role."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from .threads import run_tasks

SEED = 1


def lots_of(names: Sequence) -> np.ndarray:
    """A random number of each name, uint64 (n,)."""
    begun, found = hashlib.blake2b(f"{SEED} ".encode(), digest_size=8), []
    for name in names:
        text = begun.copy()  # twice as fast as a new one
        text.update(str(name).encode())
        found.append(text.digest())
    return np.frombuffer(b"".join(found), "<u8").astype(np.uint64)


def mix(numbers: np.ndarray) -> np.ndarray:
    """Random numbers of random numbers, uint64: the step of SplitMix64 (Steele et al. 2014)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def columns_of_signs(lots: np.ndarray, numbers: Sequence[int], threads: int = 1) -> np.ndarray:
    """`signs_of` for several numbers, int8 (n, len(numbers))."""
    found = np.empty((len(lots), len(numbers)), np.int8)

    def fill(column: int) -> None:
        found[:, column] = signs_of(lots, numbers[column])

    run_tasks(fill, [(column,) for column in range(len(numbers))], threads)
    return found


def signs_of(lots: np.ndarray, number: int) -> np.ndarray:
    """1 or -1 for each lot, int8: others for every number."""
    drawn = mix(lots + np.uint64(number)) & np.uint64(1)
    return np.where(drawn, np.int8(1), np.int8(-1))
