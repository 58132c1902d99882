"""EIGENSTRAT files of given genotypes, for tests, written from the definition of the format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

#: Text, packed by sites, packed by samples.
KINDS = ("text", "GENO", "TGENO")


def _hash(names: Sequence[str]) -> int:
    value = 0
    for name in names:
        one = 0
        for letter in name:
            one = one * 23 + ord(letter)
        value = ((value * 17) ^ one) % 2**32
    return value


def _pack(values: np.ndarray, least: int) -> bytes:
    """Rows of values 0 to 3, the first in the highest bits of a byte."""
    n = max(least, -(-values.shape[1] // 4))
    padded = np.zeros((len(values), 4 * n), np.uint8)
    padded[:, : values.shape[1]] = values
    quads = padded.reshape(len(values), n, 4)
    return (quads << np.array([6, 4, 2, 0], np.uint8)).sum(axis=2).astype(np.uint8).tobytes()


def write_eigenstrat(
    prefix: Path,
    genotypes: np.ndarray,
    names: Sequence[str],
    chrom: Sequence[str] | None = None,
    pos: Sequence[int] | None = None,
    alleles: Sequence[tuple[str, str]] | None = None,
    populations: Sequence[str] | None = None,
    kind: str = "text",
) -> None:
    """Write .geno, .snp and .ind of ALT counts (n_sites, n), by default 100 kb apart, G and A.

    Sexes are M, F and U in turn.
    """
    n_sites, n = genotypes.shape
    ids = [f"site{k}" for k in range(n_sites)]
    chrom = ["1"] * n_sites if chrom is None else chrom
    pos = [100_000 * (k + 1) for k in range(n_sites)] if pos is None else pos
    alleles = [("G", "A")] * n_sites if alleles is None else alleles
    populations = [f"P{k + 1}" for k in range(n)] if populations is None else populations
    Path(f"{prefix}.snp").write_text(
        "".join(
            f"{name:>20} {c:>3} {p / 1e8:.6f} {p} {first} {second}\n"
            for name, c, p, (first, second) in zip(ids, chrom, pos, alleles, strict=True)
        )
    )
    rows = zip(names, populations, strict=True)
    Path(f"{prefix}.ind").write_text(
        "".join(f"{name:>20} {'MFU'[k % 3]} {label}\n" for k, (name, label) in enumerate(rows))
    )
    copies = np.where(genotypes < 0, 3, 2 - genotypes).astype(np.uint8)
    if kind == "text":
        text = "".join("".join("0129"[g] for g in row) + "\n" for row in copies.tolist())
        Path(f"{prefix}.geno").write_text(text)
        return
    head = f"{kind} {n:7d} {n_sites:7d} {_hash(names):x} {_hash(ids):x}".encode()
    size = 48 if kind == "TGENO" else max(48, -(-n // 4))
    body = _pack(copies.T, 0) if kind == "TGENO" else _pack(copies, 48)
    Path(f"{prefix}.geno").write_bytes(head.ljust(size, b"\0") + body)
