"""Sites: what identifies them, the order of contigs, and chunks in which they are worked on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

_AMBIGUOUS = {("A", "T"), ("T", "A"), ("C", "G"), ("G", "C")}


def is_ambiguous(ref, alt) -> np.ndarray:
    """True where REF and ALT are each other's complement, so that a swap hides a strand flip."""
    return np.array([(r, a) in _AMBIGUOUS for r, a in zip(ref, alt, strict=True)], bool)


def canonical_contig(name: str) -> str:
    """`chr1` and `1` are one contig; every other name stands for itself."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return bare or name


def site_keys(table: pd.DataFrame) -> pd.DataFrame:
    """What identifies a site whichever of its alleles is called REF: contig, pos, low, high."""
    ref, alt = table.ref.str.upper(), table.alt.str.upper()
    return pd.DataFrame(
        {
            "contig": table.chrom.map(canonical_contig).to_numpy(),
            "pos": table.pos.to_numpy(),
            "low": np.where(ref < alt, ref, alt),
            "high": np.where(ref < alt, alt, ref),
        },
        index=table.index,
    )


def contig_order(name: str) -> tuple:
    """Sort key of contig names: numbers by value (with or without `chr`), then names."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return (0, int(bare), name) if bare.isdigit() else (1, 0, name)


#: Sites of one pass, bounding memory: the counts of a chunk, not of the file, are in memory.
CHUNK_SITES = 16_384


def chunks(n: int, size: int = CHUNK_SITES) -> Iterator[tuple[int, int]]:
    """Bounds of consecutive runs of `size` of `n` items."""
    for first in range(0, n, size):
        yield first, min(n, first + size)
