"""Random numbers drawn by names, so that the order of samples plays no role."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

SEED = 1


def lots_of(names: Sequence) -> np.ndarray:
    """A random number of each name, uint64 (n,)."""
    texts = (f"{SEED} {name}".encode() for name in names)
    return np.array(
        [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") for text in texts],
        np.uint64,
    )


def mix(numbers: np.ndarray) -> np.ndarray:
    """Random numbers of random numbers, uint64: the step of SplitMix64 (Steele et al. 2014)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def signs_of(lots: np.ndarray, number: int) -> np.ndarray:
    """1 or -1 for each lot, int8: others for every number."""
    drawn = mix(lots + np.uint64(number)) & np.uint64(1)
    return np.where(drawn, np.int8(1), np.int8(-1))
