"""Genetic maps: a table with a header, or PLINK's four columns; one file, or one a contig."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError, shorten
from ..core.text import read_text, rows_of
from ..io.sites import canonical_contig, contig_runs
from .impute import CONTIG_HOLE, find_contig_file
from .map_rates import rate_of

log = logging.getLogger(__name__)

#: Required columns of a map that is a table, in any order.
LD_COLUMNS = ("chrom", "pos", "cm")
#: Contigs that a sentence names.
SHOWN = 5
#: Largest position in VCF and BCF.
MOST_POSITION = 2**31 - 1


class UnmappedContigError(UserError):
    """A genetic map lacks a contig of the panel."""


def parse_map(
    text: str, shown: str, wanted: Callable[[str], bool] = lambda contig: True
) -> pd.DataFrame:
    """Parse a genetic map of either form, told by its first line.

    A table has a header with the columns `chrom`, `pos` and `cm` (`parse_ld_map`); else the map has
    PLINK's columns (`parse_plink_map`).

    Parameters
    ----------
    wanted : callable
        Whether to return a contig.

    Returns
    -------
    DataFrame
        `chrom`, `pos`, `cm`, `row` in the file.
    """
    first = next((words for _, words in rows_of(text)), [])
    named = not set(LD_COLUMNS).isdisjoint(first)
    if "chrom" in first or (named and first[2:] != ["cm", "pos"]):  # PLINK's map may have a header
        table = parse_ld_map(text, shown)
        return table[table.chrom.map(wanted)].reset_index(drop=True)
    return parse_plink_map(text, shown, wanted)


def parse_ld_map(text: str, shown: str) -> pd.DataFrame:
    """Parse a map that is a table: whitespace-separated columns with a header.

    Returns
    -------
    DataFrame
        `chrom` (str), `pos` (int64), `cm` (float64, finite), `row` in the file.

    Raises
    ------
    UserError
        A column is missing, a row has more or fewer columns than the header, a position is not
        an integer, or a centimorgan value is negative or not finite.
    """
    rows = list(rows_of(text))
    header = rows[0][1] if rows else []
    if not set(LD_COLUMNS) <= set(header):
        raise UserError(
            f"{shown}, row {rows[0][0] if rows else 1}: a genetic map needs the columns chrom, pos "
            f"and cm; found: {shorten(', '.join(header)) or 'none'}."
        )
    for number, words in rows[1:]:
        if len(words) != len(header):
            raise UserError(
                f"{shown}, row {number}: {len(words)} columns where the header has {len(header)}; "
                "correct the row."
            )
    if len(rows) < 2:
        raise UserError(f"{shown} has a header but no rows; give the map or set it to ''.")
    numbers = [number for number, _ in rows[1:]]
    columns = dict(zip(header, zip(*(words for _, words in rows[1:]), strict=True), strict=True))
    return pd.DataFrame(
        {
            "chrom": columns["chrom"],
            "pos": _numbers(columns["pos"], numbers, "pos", shown).astype(np.int64),
            "cm": _numbers(columns["cm"], numbers, "cm", shown),
            "row": numbers,
        }
    )


def require_rising(table: pd.DataFrame, contig: str, shown: str) -> None:
    """Refuse a contig's rows (`pos`, `cm`, `row`) that are not a map.

    Positions must rise from row to row, and centimorgans must not fall.
    """
    for column, least in (("pos", 1), ("cm", 0)):
        values = table[column].to_numpy(np.float64)
        step = np.diff(values)
        falls = np.flatnonzero((step < 0) | ((step == 0) & (least > 0)))
        if len(falls):
            k = falls[0] + 1
            wrong = f"after {values[k - 1]:g}, but must not decrease"
            if values[k] == values[k - 1]:
                wrong = "as in the row before, but each position needs one row"
            raise UserError(
                f"{shown}, row {table.row.iloc[k]}: {column} of contig '{contig}' is {values[k]:g} "
                f"{wrong}; sort or correct the map."
            )


def centimorgans(table: pd.DataFrame, sites: pd.DataFrame, shown: str) -> np.ndarray:
    """Genetic positions of sites, interpolated in a map, in cM: float64 (n_sites,).

    Beyond the ends of a contig's map, and on a contig with one position, they go on at the mean
    rate of the whole map, which the log says.

    Parameters
    ----------
    table : DataFrame
        A map, as from `parse_map`. ``chr1`` and ``1`` are the same contig.
    sites : DataFrame
        `chrom`, `pos`, contig by contig.
    shown : str
        Name of the map for messages.

    Raises
    ------
    UnmappedContigError
        A contig is not in the map.
    UserError
        Its values decrease, or a position is given twice; or sites lie
        beyond the map's ends and no contig of the map has a length.
    """
    own = dict(list(table.groupby(table.chrom.map(canonical_contig), sort=False)))
    cm, beyond = np.empty(len(sites)), []
    runs = contig_runs(sites.chrom.to_numpy())
    names = [sites.chrom.iloc[first] for first, _ in runs]
    for name in names:
        if canonical_contig(name) not in own:
            raise UnmappedContigError(
                f"{shown}: contig '{name}' of the panel is not in the genetic map; add it, or name "
                "the contig in contigs.exclude."
            )
    rate = _mean_rate(own, shown)
    for name, (first, last) in zip(names, runs, strict=True):
        part = own[canonical_contig(name)]
        known, values = part.pos.to_numpy(np.float64), part.cm.to_numpy()
        pos = sites.pos.iloc[first:last].to_numpy(np.float64)
        over = np.minimum(pos - known[0], 0) + np.maximum(pos - known[-1], 0)
        cm[first:last] = np.interp(pos, known, values)
        if not over.any():
            continue
        if not rate:
            raise UserError(
                f"{shown}: sites of contig '{name}' ({pos[0]:.0f} to {pos[-1]:.0f}) lie beyond the "
                f"genetic map ({_extent(known)}), and no contig of it has two positions with "
                "different centimorgans that give a rate; complete the map."
            )
        cm[first:last] += rate * over
        beyond.append(
            f"{int((over != 0).sum())} of {len(pos)} of contig '{name}' (sites {pos[0]:.0f} to "
            f"{pos[-1]:.0f}, map {_extent(known)})"
        )
    if beyond:
        if len(beyond) > SHOWN:
            beyond[SHOWN:] = [f"and {len(beyond) - SHOWN} more contigs"]
        log.warning(
            "%s: sites beyond the ends of the genetic map get its mean rate, %.3g cM/Mb: %s",
            shown,
            1e6 * rate,
            "; ".join(beyond),
        )
    return cm


def _mean_rate(contigs: dict[str, pd.DataFrame], shown: str) -> float:
    """Centimorgans a base pair over all contigs of a map; 0 if it does not tell."""
    length = cm = 0.0
    for name, part in contigs.items():
        require_rising(part, name, shown)
        length += float(part.pos.iloc[-1] - part.pos.iloc[0])
        cm += float(part.cm.iloc[-1] - part.cm.iloc[0])
    return cm / length if length else 0.0


def _extent(known: np.ndarray) -> str:
    if len(known) == 1:
        return f"one position, {known[0]:.0f}"
    return f"{known[0]:.0f} to {known[-1]:.0f}"


def parse_plink_map(
    text: str, shown: str, wanted: Callable[[str], bool] = lambda contig: True
) -> pd.DataFrame:
    """Parse a PLINK map: chromosome, identifier, centimorgans, position, no header.

    Lines that begin with '#' and a header as first line are skipped.

    Parameters
    ----------
    wanted : callable
        Whether to read a contig; rows of others are not checked.

    Returns
    -------
    DataFrame
        `chrom`, `cm`, `pos`, `row`.

    Raises
    ------
    UserError
        A row does not have four columns, or a number is not valid.
    """
    kept = []
    for number, words in rows_of(text):
        if words[0].startswith("#") or not wanted(words[0]):
            continue
        if len(words) != 4:
            raise UserError(
                f"{shown}, row {number}: a genetic map without a header has PLINK's four columns "
                f"(chromosome, identifier, centimorgans, position), this row has {len(words)}; "
                "correct it, or write a header with chrom, pos and cm."
            )
        if number == 1 and _is_word(words[2]) and _is_word(words[3]):
            continue  # the header
        kept.append((number, words))
    numbers = [number for number, _ in kept]
    chrom, _, cm, pos = zip(*(words for _, words in kept), strict=True) if kept else ([],) * 4
    return pd.DataFrame(
        {
            "chrom": list(chrom),
            "cm": _numbers(cm, numbers, "centimorgans", shown),
            "pos": _numbers(pos, numbers, "position", shown).astype(np.int64),
            "row": numbers,
        }
    )


def _numbers(texts: Iterable[str], rows: list[int], name: str, shown: str) -> np.ndarray:
    """Parse numbers of 0 or more as float64; positions must be integers up to MOST_POSITION."""
    texts = list(texts)
    whole = name.startswith("pos")
    try:
        values = np.array(texts, dtype=np.float64) if texts else np.empty(0)
    except ValueError:
        values = np.array([float(text) if _is_number(text) else np.nan for text in texts])
    good = np.isfinite(values) & (values >= 0)
    if whole:
        good &= (values <= MOST_POSITION) & (values == np.floor(values))
    if not good.all():
        k = int(np.argmin(good))
        what = "a whole number below 2**31" if whole else "a finite number of 0 or more"
        raise UserError(
            f"{shown}, row {rows[k]}: {name} is '{shorten(texts[k])}', but must be {what}; correct "
            "the row."
        )
    return values


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_word(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return True
    return False


def read_map(path: Path, sites: pd.DataFrame) -> np.ndarray:
    """Genetic positions of the sites, in cM, interpolated in a map: float64 (n_sites,).

    The map has either form of `genetic_maps.parse_map`, optionally gzipped; `{contig}` in the path
    stands for the contig if each has its own file. `chr1` and `1` are the same contig. Beyond its
    ends its mean rate goes on (`genetic_maps.centimorgans`). Or the path is a rate
    (`map_rates.rate_of`), which holds everywhere.

    Raises
    ------
    UserError
        The file is invalid (`genetic_maps.parse_map`), lacks a contig, its values decrease, or
        it gives no rate beyond its ends.
    """
    if (rate := rate_of(str(path))) is not None:
        return sites.pos.to_numpy(np.float64) * (rate / 1e6)
    shown = f"{path} (genetic_map)"
    files = [path]
    if CONTIG_HOLE in str(path):
        found = (find_contig_file(str(path), contig) for contig in sites.chrom.unique())
        files = [Path(name) for name in found if name]
    parts = [parse_map(read_text(one, "genetic_map"), f"{one} (genetic_map)") for one in files]
    table = pd.concat(parts, ignore_index=True) if parts else parse_map("", shown)
    return centimorgans(table, sites, shown)
