"""Sites: the keys that identify them, the order of contigs, and chunks that bound memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

_AMBIGUOUS = {("A", "T"), ("T", "A"), ("C", "G"), ("G", "C")}


def is_ambiguous(ref, alt) -> np.ndarray:
    """True at strand-ambiguous sites (A/T, C/G), where a REF/ALT swap looks like a strand flip."""
    return np.array([(r, a) in _AMBIGUOUS for r, a in zip(ref, alt, strict=True)], bool)


def canonical_contig(name: str) -> str:
    """Return the name without a leading `chr`: `chr1` and `1` are the same contig."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return bare or name


def site_keys(table: pd.DataFrame) -> pd.DataFrame:
    """Return keys of sites that ignore which allele is REF: contig, pos, low, high."""
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
    """Return a sort key of a contig: numbers by value (with or without `chr`), then names."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return (0, int(bare), name) if bare.isdigit() else (1, 0, name)


#: Sites of one chunk: counts are held for one chunk at a time, which bounds memory.
CHUNK_SITES = 16_384


def chunks(n: int, size: int = CHUNK_SITES) -> Iterator[tuple[int, int]]:
    """Yield (first, end) of consecutive chunks of `size` out of `n` items."""
    for first in range(0, n, size):
        yield first, min(n, first + size)


def contig_lengths(text: str) -> dict[str, int]:
    """Return the lengths of the contigs whose ##contig lines give one."""
    return {
        name[1]: int(length[1])
        for line in re.findall(r"^##contig=<(.*)>", text, re.MULTILINE)
        if (name := re.search(r"(?:^|,)ID=([^,>]+)", line))
        and (length := re.search(r"(?:^|,)length=([0-9]{1,12})(?:,|$)", line))
    }
