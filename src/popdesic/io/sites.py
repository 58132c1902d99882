"""Sites: the keys that identify them, the order of contigs, and chunks that bound memory."""

from __future__ import annotations

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


def site_keys(table: pd.DataFrame) -> pd.DataFrame:
    """Return keys of sites that ignore which allele is REF: contig, pos, low, high."""
    pair, pairs = upper_alleles(table.ref, table.alt)
    return pd.DataFrame(
        {
            "contig": canonical_contigs(table.chrom),
            "pos": table.pos.to_numpy(),
            "low": np.array([min(one) for one in pairs], object)[pair],
            "high": np.array([max(one) for one in pairs], object)[pair],
        },
        index=table.index,
    )


def site_codes(*tables: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sites of several tables as integers: equal ones have equal `site_keys`.

    Returns
    -------
    list of (int64 array, bool array), (n_sites,)
        The code of each site, and whether REF is the lower of its alleles.
    """
    contigs: dict[str, int] = {}
    alleles: dict[tuple[str, str], int] = {}
    found = []
    for table in tables:
        contig, names = pd.factorize(table.chrom)
        pair, pairs = upper_alleles(table.ref, table.alt)
        number = [contigs.setdefault(canonical_contig(name), len(contigs)) for name in names]
        kind = [alleles.setdefault((min(one), max(one)), len(alleles)) for one in pairs]
        lower = np.array([ref <= alt for ref, alt in pairs], bool)[pair]
        place = np.array(number, np.int64)[contig], np.array(kind, np.int64)[pair]
        found.append((*place, table.pos.to_numpy(np.int64), lower))
    reach = 1 + max((int(pos.max(initial=0)) for _, _, pos, _ in found), default=0)
    return [
        ((contig * len(alleles) + kind) * reach + pos, lower) for contig, kind, pos, lower in found
    ]


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
