"""Sets of sites from a file (`epistasis.sets`): genes of a BED or GTF, or pairs of ranges (BEDPE).

A table may list pairs of these genes by their names, as lists of protein interactions do. Of other
files the content decides: rows of a GTF have nine columns between tabs, with whole numbers in the
fourth and fifth; those of a BEDPE have whole numbers in the columns 2, 3, 5 and 6; those of a BED
have them in the columns 2 and 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.errors import UserError, shorten
from ..core.text import read_text
from ..io.sites import canonical_contig

KEY = "epistasis.sets"
#: First words of lines for genome browsers.
BROWSER_WORDS = ("track", "browser")
#: Columns of a GTF and of a BEDPE without its name.
GTF_COLUMNS, BEDPE_COLUMNS = 9, 6
#: A range: contig, start and end as in a BED file (0-based, half-open).
Range = tuple[str, int, int]


@dataclass
class SiteSet:
    """Ranges of a set, or of two (`second`), and the first row of the file that names it."""

    name: str
    row: int
    first: list[Range] = field(default_factory=list)
    second: list[Range] = field(default_factory=list)
    #: Further names: of a GTF the name and the ID of the gene.
    also: tuple[str, ...] = ()


def read_sets(path: Path) -> list[SiteSet]:
    """Read the sets of a BED, BEDPE or GTF file, in the order in which they are first named.

    Rows of one name are one set. The name is column 4 of a BED and column 7 of a BEDPE; without it,
    or where it is a dot, each row is a set with the name of its ranges. Of a GTF the rows of genes
    count, or all rows of a gene if there are none; the name is the gene's ID, with the gene's name
    before it.

    Raises
    ------
    UserError
        The file is not text, names no set, or a row has another form than the first.
    """
    shown, text = f"{path} ({KEY})", read_text(path, KEY)
    rows = [
        (number, line)
        for number, line in enumerate(re.split("\r\n|\r|\n", text), 1)
        if (words := line.split())
        and not words[0].startswith("#")
        and not (words[0] in BROWSER_WORDS and len(words) > 1)
    ]
    if not rows:
        raise UserError(f"{shown} names no set; list genes in it, or set {KEY} to ''.")
    kind = _kind(rows[0][1])
    if kind is None:
        raise UserError(
            f"{shown}, row {rows[0][0]}: '{shorten(rows[0][1].strip())}' is no row of a BED (chrom "
            "start end name), a BEDPE (two ranges and a name) or a GTF file of genes; correct it."
        )
    parse = {"GTF": _gtf_row, "BEDPE": _bedpe_row, "BED": _bed_row}[kind]
    found: dict[str, SiteSet] = {}
    genes = kind == "GTF" and any(line.split("\t")[2:3] == ["gene"] for _, line in rows)
    for number, line in rows:
        where = f"{shown}, row {number}"
        if kind != _kind(line):
            raise UserError(
                f"{where}: '{shorten(line.strip())}' is no row of a {kind} file, as the "
                "rows before are; correct it."
            )
        if genes and line.split("\t")[2] != "gene":
            continue
        (name, *also), *ranges = parse(line, where)
        entry = found.setdefault(name, SiteSet(name, number, also=tuple(also)))
        for side, one in zip((entry.first, entry.second), ranges, strict=False):
            if one not in side:
                side.append(one)
    return list(found.values())


class Pairs(NamedTuple):
    """Sets of the genes of each pair, how many rows were read, and names that are no gene's."""

    sets: list[SiteSet]
    rows: int
    unknown: list[str]


def read_set_pairs(path: Path, genes: list[SiteSet], source: Path) -> Pairs:
    """Read pairs of genes: their names in the first two columns, between tabs or else spaces.

    Rows with an unknown name, such as a heading, are left out, and so is a pair that was named
    before, in either order. A gene with itself is the gene. Genes of one name are one set.

    Parameters
    ----------
    path : Path
        Lines that begin with `#` are left out.
    genes : list of SiteSet
        As of `read_sets`, from the file `source`.

    Raises
    ------
    UserError
        `genes` are pairs, a row has one name, or no row names two genes.
    """
    shown, text = f"{path} ({KEY})", read_text(path, KEY)
    if any(entry.second for entry in genes):
        raise UserError(
            f"{shown} lists pairs of names, but {source} has pairs of ranges (BEDPE); give genes "
            "as a BED or GTF file."
        )
    named: dict[str, list[SiteSet]] = {}
    for entry in genes:
        for name in dict.fromkeys((entry.name, *entry.also)):
            named.setdefault(name, []).append(entry)
    found: dict[frozenset[str], SiteSet] = {}
    unknown: dict[str, None] = {}
    rows = 0
    for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
        cells = line.split("\t") if "\t" in line.strip() else line.split()
        if not cells or not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = [cell.strip().replace(" ", "_") for cell in cells[:2]]
        if len(pair) < 2 or not all(pair):
            raise UserError(
                f"{shown}, row {number}: '{shorten(line.strip())}' has no two names of genes; "
                "correct it."
            )
        rows += 1
        unknown |= dict.fromkeys(name for name in pair if name not in named)
        if all(name in named for name in pair):
            found.setdefault(frozenset(pair), _pair(pair, number, named))
    if not found:
        first = f", such as '{shorten(next(iter(unknown)))}'" if unknown else ""
        raise UserError(
            f"{shown}: none of its {rows} rows names two sets of {source}{first}; give the names "
            "of that file."
        )
    return Pairs(list(found.values()), rows, list(unknown))


def _pair(names: list[str], row: int, named: dict[str, list[SiteSet]]) -> SiteSet:
    """The set of two genes, or of one that is named twice."""
    sides = [
        list(dict.fromkeys(one for entry in named[name] for one in entry.first))
        for name in dict.fromkeys(names)
    ]
    return SiteSet(" x ".join(dict.fromkeys(names)), row, *sides)


def _kind(line: str) -> str | None:
    cells, words = line.split("\t"), _cells(line)
    if len(cells) == GTF_COLUMNS and _whole(cells[3]) and _whole(cells[4]):
        return "GTF"
    if len(words) >= BEDPE_COLUMNS and all(_whole(words[k]) for k in (1, 2, 4, 5)):
        return "BEDPE"
    return "BED" if len(words) >= 3 and _whole(words[1]) and _whole(words[2]) else None


def _cells(line: str) -> list[str]:
    """Columns of a BED or BEDPE: between tabs, as names may have spaces, or else between spaces."""
    cells, words = [cell.strip() for cell in line.split("\t")], line.split()
    return cells if len(cells) >= 3 and cells[:3] == words[:3] else words


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _range(chrom: str, start: int, end: str, where: str) -> Range:
    if start > int(end):
        raise UserError(
            f"{where}: the range starts at {start} but ends before that, at {end}; swap or correct "
            "them."
        )
    return chrom, start, int(end)


def _named(ranges: list[Range]) -> str:
    return " x ".join(f"{chrom}:{start}-{end}" for chrom, start, end in ranges)


def _name(cells: list[str], column: int, ranges: list[Range]) -> str:
    """The name in a column, or that of the ranges where it is missing, empty or a dot."""
    name = cells[column] if len(cells) > column else ""
    return _named(ranges) if name in ("", ".") else name.replace(" ", "_")


def _bed_row(line: str, where: str) -> tuple[list[str], Range]:
    cells = _cells(line)
    one = _range(cells[0], int(cells[1]), cells[2], where)
    return [_name(cells, 3, [one])], one


def _bedpe_row(line: str, where: str) -> tuple[list[str], Range, Range]:
    cells = _cells(line)
    both = [_range(cells[k], int(cells[k + 1]), cells[k + 2], where) for k in (0, 3)]
    return [_name(cells, BEDPE_COLUMNS, both)], *both


def _gtf_row(line: str, where: str) -> tuple[list[str], Range]:
    """Names of a gene: name and ID together, each of them, and the ID without its version."""
    cells = line.split("\t")
    found = dict(re.findall(r'\b(gene_id|gene_name) "([^"]+)"', cells[8]))
    if "gene_id" not in found:
        raise UserError(
            f"{where}: '{shorten(cells[8])}' has no gene_id \"…\", as a GTF file has; convert a "
            "GFF3 file to GTF, or give a BED file."
        )
    if cells[3].strip("0") == "":
        raise UserError(f"{where}: the range starts at 0, but positions of a GTF file begin at 1.")
    identity, name = found["gene_id"], found.get("gene_name", "")
    named = f"{name}_{identity}" if name and name != identity else identity
    names = [named, name or identity, identity, identity.partition(".")[0]]
    names = [one.replace(" ", "_") for one in names]
    return names, _range(cells[0], int(cells[3]) - 1, cells[4], where)


def sites_of_ranges(chrom: np.ndarray, pos: np.ndarray) -> Callable[[list[Range]], np.ndarray]:
    """A function that gives the sites within ranges, int64, ascending.

    Parameters
    ----------
    chrom, pos : array of str, int array, (n_sites,)
        Of each site, in any order; `chr1` and `1` are the same contig.
    """
    names = np.array([canonical_contig(name) for name in chrom.tolist()], object)
    rows, places = {}, {}
    for name in dict.fromkeys(names.tolist()):
        own = np.flatnonzero(names == name)
        rows[name] = own[np.argsort(pos[own], kind="stable")]
        places[name] = pos[rows[name]]

    def within(ranges: list[Range]) -> np.ndarray:
        found = [np.zeros(0, np.int64)]
        for contig, start, end in ranges:
            name = canonical_contig(contig)
            if name in rows:
                low, high = np.searchsorted(places[name], [start, end], side="right")
                found.append(rows[name][low:high])
        return np.unique(np.concatenate(found))

    return within
