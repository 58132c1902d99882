"""Calls of any ploidy in VCF text that tests write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np


def write_calls(
    path: Path,
    head: str,
    calls: Sequence[Sequence[str]],
    alt: str = "C",
    keys: str = "GT",
    contig: str = "1",
) -> None:
    """Write records of one contig from position 10 on; `head` ends before the samples' names."""
    names = "\t".join(f"s{k}" for k in range(len(calls[0])))
    rows = [
        "\t".join([contig, str(10 + k), ".", "A", alt, ".", ".", ".", keys, *row])
        for k, row in enumerate(calls)
    ]
    path.write_text("\n".join([head + names, *rows, ""]))


def draw_calls(ploidy: np.ndarray, n_sites: int, alleles: int, seed: int) -> list[list[str]]:
    """Calls of these ploidies, phased or not, some missing, with depth and quality."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n_sites):
        row = []
        for p in ploidy.tolist():
            own = ["."] * p if rng.random() < 0.1 else rng.integers(0, alleles, p).astype(str)
            call = "/|"[rng.integers(2)].join(own)
            row.append(f"{call}:{rng.integers(0, 20)}:{rng.integers(0, 99) / 2}")
        rows.append(row)
    return rows
