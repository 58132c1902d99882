"""Lists of sites to scan (`epistasis.restrict`): BED ranges, or one site per line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UserError, shorten
from ..core.text import read_text, rows_of

KEY = "epistasis.restrict"
#: First words of lines for genome browsers.
BROWSER_WORDS = ("track", "browser")


@dataclass(frozen=True)
class SiteList:
    """Content of a list: `names` of sites, or `ranges` (contig, start, end), with their rows."""

    rows: list[int]
    names: list[str]
    ranges: list[tuple[str, int, int]]


def read_site_list(path: Path) -> SiteList:
    """Read a BED file (chrom, start, end, 0-based half-open) or a list with one site per line.

    A site is its ID or chrom:pos:ref:alt. Further columns of a BED file are ignored, and so are
    lines that begin with '#', 'track' or 'browser'.

    Raises
    ------
    UserError
        The file is not text, lists nothing, or a row has another form than the first.
    """
    shown = f"{path} ({KEY})"
    entries = [
        (row, words)
        for row, words in rows_of(read_text(path, KEY))
        if not (words[0].startswith("#") or (words[0] in BROWSER_WORDS and len(words) > 1))
    ]
    if not entries:
        raise UserError(f"{shown} lists no site; list some or set {KEY} to ''.")
    rows = [row for row, _ in entries]
    if len(entries[0][1]) == 1:
        for row, words in entries:
            if len(words) > 1:
                raise UserError(
                    f"{shown}, row {row}: '{shorten(' '.join(words))}' is not one site, as in the "
                    "rows before; give one ID or chrom:pos:ref:alt per line, or a BED file."
                )
        return SiteList(rows, [words[0] for _, words in entries], [])
    ranges = []
    for row, words in entries:
        if len(words) < 3 or not (_is_whole(words[1]) and _is_whole(words[2])):
            raise UserError(
                f"{shown}, row {row}: '{shorten(' '.join(words))}' is not chrom, start, end of a "
                "BED file; correct it, or list one site per line."
            )
        start, end = int(words[1]), int(words[2])
        if start > end:
            raise UserError(
                f"{shown}, row {row}: the range starts at {start} but ends before that, at {end}; "
                "swap or correct them."
            )
        ranges.append((words[0], start, end))
    return SiteList(rows, [], ranges)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
