"""Sites: the keys that identify them, the order of contigs, and chunks that bound memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

_AMBIGUOUS = {("A", "T"), ("T", "A"), ("C", "G"), ("G", "C")}


def upper_alleles(ref: pd.Series, alt: pd.Series) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """The different pairs of REF and ALT in capitals, and which of them each site has.

    There are few pairs, and whatever is told of sites by their alleles is told of pairs faster.

    Returns
    -------
    pair : int64 array, (n_sites,)
    pairs : list of (str, str)
        May repeat where letters differ in case alone.
    """
    (first, refs), (second, alts) = (pd.factorize(np.asarray(one, object)) for one in (ref, alt))
    found, pair = np.unique(first * max(len(alts), 1) + second, return_inverse=True)
    pairs = [(refs[k // len(alts)].upper(), alts[k % len(alts)].upper()) for k in found.tolist()]
    return pair.astype(np.int64), pairs


def is_ambiguous(ref: pd.Series, alt: pd.Series) -> np.ndarray:
    """True at strand-ambiguous sites (A/T, C/G), where a REF/ALT swap looks like a strand flip."""
    pair, pairs = upper_alleles(ref, alt)
    return np.array([one in _AMBIGUOUS for one in pairs], bool)[pair]


def canonical_contig(name: str) -> str:
    """Return the name without a leading `chr`, MT for M: `chr1` and `1` are the same contig."""
    bare = name[3:] if name.lower().startswith("chr") else name
    return "MT" if bare == "M" else bare or name


def canonical_contigs(names: pd.Series) -> np.ndarray:
    """`canonical_contig` of each site, as an object array: a study has few different names."""
    number, different = pd.factorize(names)
    return np.array(list(map(canonical_contig, different)), object)[number]


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


def contig_runs(chrom: np.ndarray) -> list[tuple[int, int]]:
    """Return first and end row of each contig of the panel."""
    bounds = [0, *(np.flatnonzero(chrom[1:] != chrom[:-1]) + 1).tolist(), len(chrom)]
    return list(itertools.pairwise(bounds))
