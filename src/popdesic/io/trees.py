"""Read tree sequences (.trees of tskit) as the text of the VCF that tskit would write of them.

`tskit`, an optional dependency, finds the genotypes. The text goes through the reader of VCF, so
its rules of ploidy, alleles and classes of sites hold. Calls are phased, and the ancestral allele
is REF. Nothing of tskit is imported here before a file is opened.

Format: https://tskit.dev/tskit/docs/stable/file-formats.html, a kastore with its magic number.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UserError

MAGIC = b"\x89KAS\r\n\x1a\n"
TREES_END = ".trees"
#: Contig of a file whose name names none, as tskit's writer of VCF calls it, and its samples.
CONTIG, SAMPLE = "1", "tsk"
#: Key of the metadata with a sample's name.
NAME = "name"
#: The end, or the whole, of the name of a file that names its contig.
_CHROMOSOME = re.compile(r"(?:^|[._-])(chr[0-9A-Za-z]+)$|^([0-9]+|X|Y|MT)$")
_COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
_FORMAT = '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">'


class _Opened(NamedTuple):
    """A tree sequence; its nodes that are read, and what stands before the call of each."""

    sequence: Any
    nodes: np.ndarray
    before: np.ndarray
    header: str
    contig: str


def trees_text(path: Path) -> tuple[bytes, Iterator[bytes]]:
    """Header of the VCF of a tree sequence, and its records one by one.

    Raises
    ------
    UserError
        tskit is not installed, the file is damaged, has no samples, or its alleles are no bases.
    """
    opened = _open(path)
    return opened.header.encode(), _records(opened)


def count_tree_sites(path: Path) -> int:
    """Number of sites of a tree sequence."""
    return _open(path).sequence.num_sites


def _open(path: Path) -> _Opened:
    if importlib.util.find_spec("tskit") is None:
        raise UserError(
            f"{path} is a tree sequence, which is read with the package tskit, which is not "
            "installed; install it with `pip install tskit`, or write a VCF with `tskit vcf`."
        )
    about = path.stat()
    return _open_once(path, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@functools.lru_cache(maxsize=2)
def _open_once(path: Path, *state: int) -> _Opened:
    """Planning and a job open each file several times."""
    import tskit

    try:
        sequence = tskit.load(path)
    except (tskit.FileFormatError, tskit.LibraryError, OSError, EOFError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}); copy or write it again.") from None
    states = sequence.tables.sites.ancestral_state
    if sequence.num_sites and not np.isin(states, list(b"ACGTacgt")).any():
        shown = bytes(states[:1].view(np.uint8)).decode("ascii", "replace")
        raise UserError(
            f"{path}: no ancestral allele is a base (the first begins with {shown!r}); simulate "
            "mutations of nucleotides (msprime.JC69), or give the bases to its sites."
        )
    contig, base = names_in(path)
    groups, names = _samples(path, sequence, base)
    nodes = np.array([node for group in groups for node in group], np.int32)
    starts = np.cumsum([0, *map(len, groups[:-1])])
    before = np.full(len(nodes), ord("|"), np.uint8)
    before[starts] = ord("\t")
    length = f"##contig=<ID={contig},length={max(1, int(sequence.sequence_length))}>"
    lines = ["##fileformat=VCFv4.2", length, _FORMAT, "\t".join([_COLUMNS, *names])]
    return _Opened(sequence, nodes, before, "\n".join(lines) + "\n", contig)


def names_in(path: Path) -> tuple[str, str]:
    """Contig, and begin of the names of samples, by the name of a file: `north_chr2.trees`."""
    stem = path.name.removesuffix(TREES_END)
    if found := _CHROMOSOME.search(stem):
        return found[1] or found[2], re.sub(r"\s", "_", stem[: found.start()]) or SAMPLE
    return CONTIG, re.sub(r"\s", "_", stem) or SAMPLE


def names_contig(path: Path) -> bool:
    """Whether the name of a file names its contig, which the file itself does not."""
    return bool(_CHROMOSOME.search(path.name.removesuffix(TREES_END)))


def _samples(path: Path, sequence: Any, base: str) -> tuple[list[list[int]], list[str]]:
    """Nodes of each sample, and its name: of the metadata, else by its number."""
    chosen = set(sequence.samples().tolist())
    owners = [
        (own, found)
        for own in sequence.individuals()
        if (found := [node for node in own.nodes.tolist() if node in chosen])
    ]
    if not owners:
        if not chosen:
            raise UserError(f"{path} has no samples; give a file with sample nodes.")
        return [[node] for node in sequence.samples().tolist()], _numbered(base, len(chosen))
    groups = [found for _, found in owners]
    if (lone := len(chosen) - sum(map(len, groups))) > 0:
        raise UserError(
            f"{path}: {lone} of {len(chosen)} sample nodes belong to nobody, and the others to "
            f"{len(groups)} samples; simplify the file to one kind of nodes."
        )
    told = [own.metadata for own, _ in owners]
    given = [one.get(NAME) if isinstance(one, dict) else None for one in told]
    if all(isinstance(one, str) and re.fullmatch(r"[^\t\r\n\0]+", one) for one in given):
        return groups, given
    return groups, _numbered(base, len(groups))


def _numbered(base: str, n: int) -> list[str]:
    return [f"{base}_{k}" for k in range(n)]


def _records(opened: _Opened) -> Iterator[bytes]:
    """The records as text."""
    row = np.empty((len(opened.nodes), 2), np.uint8)
    row[:, 0] = opened.before
    for variant in opened.sequence.variants(samples=opened.nodes):
        alleles = [_written(allele) for allele in variant.alleles if allele is not None]
        pos = int(np.round(variant.site.position))
        alt = ",".join(alleles[1:]) or "."
        head = f"{opened.contig}\t{pos}\t{variant.site.id}\t{alleles[0]}\t{alt}\t.\t.\t.\tGT"
        if len(alleles) <= 10:
            row[:, 1] = np.where(variant.genotypes < 0, ord("."), variant.genotypes + ord("0"))
            calls = row.tobytes()
        else:
            calls = b"".join(
                b"%c%s" % (before, b"." if allele < 0 else b"%d" % allele)
                for before, allele in zip(opened.before, variant.genotypes, strict=True)
            )
        yield head.encode() + calls + b"\n"


def _written(allele: str) -> str:
    """An allele as VCF can have it: one that is no letters (a deletion, a number) is N."""
    return allele if re.fullmatch("[A-Za-z]+", allele) else "N"
