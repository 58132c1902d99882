"""Open records: each ALT that is a site (`site_classes`) becomes a record of its own.

Decoders know biallelic SNPs alone. Records of other classes reach it as such,
with the bases of `STAND_IN` as alleles, and get their own alleles back afterwards. So all rules of
calls, filters and errors are the same for every class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .batches import DecodeCounts, SiteBatch
from .call_filters import CallFilters
from .site_classes import STAND_IN, OpenedRecords, Record, is_plain, open_record, stand_ins

#: A key of FORMAT that no decoder reads: AD of a split record has other alleles.
UNREAD = b"X"


def settle_opened(
    known: OpenedRecords, batch: SiteBatch, counts: DecodeCounts, filters: CallFilters
) -> None:
    """Give sites their alleles and numbers, and records their counts, in place."""
    numbers = batch.line.tolist()
    for row, number in enumerate(numbers):
        if (site := known.sites.get(number)) is not None:
            batch.ref[row], batch.alt[row] = site.ref, site.alt
    batch.line = np.array(known.origin, np.int64)[batch.line]
    counts.no_length += known.no_length
    read = set(numbers)
    for first, record, opened in known.records:
        more = len(opened.sites) - 1
        counts.records -= more
        if record.ref_size > 1:  # nothing is known of a SNP under a deletion, read or not
            place = np.array([record.pos]), np.array([record.ref_size])
            counts.add_dropped([record.chrom], *place)
        if first in read:
            counts.snps -= more + 1
            counts.note_opened(opened, record.n_alts)
        elif not filters.any_filter and (names := filters.failed(record.filter)):
            counts.filtered -= more
            counts.filters.subtract(dict.fromkeys(names, more))
        else:
            counts.low_qual -= more


def open_vcf_lines(
    text: np.ndarray, size: int, classes: Sequence[str], pad: int
) -> tuple[np.ndarray, int, OpenedRecords]:
    """Open the records of whole lines.

    Parameters
    ----------
    text : uint8 array, (at least size,)
        Lines, each with its end.
    classes : names of `site_classes.CLASSES`
    pad : int
        Readable bytes that the decoder needs after the last line.

    Returns
    -------
    text : uint8 array, (size + pad,)
    size : int
    opened : OpenedRecords
    """
    raw, known = text[:size].tobytes(), OpenedRecords()
    parts: list[bytes] = []
    copied = start = 0
    for number, end in enumerate(np.flatnonzero(text[:size] == ord("\n")).tolist()):
        lines = _open_line(raw, start, end, number, classes, known)
        if lines is None:
            known.origin.append(number)
        else:
            parts += [raw[copied:start], *lines]
            copied = end + 1
        start = end + 1
    whole = bytearray(b"".join([*parts, raw[copied:], bytes(pad)]))
    return np.frombuffer(whole, np.uint8), len(whole) - pad, known


def _open_line(
    raw: bytes, start: int, end: int, number: int, classes: Sequence[str], known: OpenedRecords
) -> list[bytes] | None:
    """The lines that stand for one line; None if it stays as it is."""
    place = start
    tabs = []
    for _ in range(5):
        place = raw.find(b"\t", place, end) + 1
        if not place:
            return None
        tabs.append(place)
    if tabs[3] - tabs[2] == 2 and tabs[4] - tabs[3] == 2:  # one base each
        return None
    columns = raw[start:end].split(b"\t", 9)
    if len(columns) < 10 or not columns[1].isdigit() or len(columns[1]) > 10:
        return None
    ref, alts = columns[3].decode("latin-1"), columns[4].decode("latin-1").split(",")
    pos, others = int(columns[1]), stand_ins(alts)
    n_alts = len(alts) - len(others)
    if not n_alts or not pos or is_plain(ref, alts, others):
        return None
    keys = columns[8].split(b":")
    if b"GT" not in keys:
        return None
    opened = open_record(pos, ref, alts, columns[7].decode("latin-1"), classes)
    chrom, failed = (columns[k].decode("utf-8", "replace") for k in (0, 6))
    if not known.add(number, Record(chrom, pos, len(ref), n_alts, failed, others), opened):
        return None
    choose = _chooser(columns[9], keys.index(b"GT"), len(alts), others)
    if n_alts > 1:
        columns[8] = b":".join(UNREAD if key == b"AD" else key for key in keys)
    before, middle = columns[:1], [*(one.encode() for one in STAND_IN), *columns[5:7], b"."]
    return [
        b"\t".join(
            [*before, b"%d" % site.pos, columns[2], *middle, columns[8], choose(site.allele)]
        )
        + b"\n"
        for site in opened.sites
    ]


def _chooser(
    calls: bytes, gt_index: int, n_alts: int, others: tuple[int, ...]
) -> Callable[[int], bytes]:
    """A function that returns the calls of one ALT; `others` as in `Record`."""
    if n_alts == 1:
        return lambda allele: calls
    from .open_records_cpu import choose_allele

    codes, is_other = np.frombuffer(calls, np.uint8), np.zeros(n_alts + 1, np.bool_)
    is_other[list(others)] = True
    return lambda allele: choose_allele(codes, gt_index, allele, is_other).tobytes()


def open_sites(
    sites: dict[str, Any], classes: Sequence[str], infos: Sequence[str] | None = None
) -> tuple[dict[str, Any], OpenedRecords]:
    """Open the records of a table.

    Parameters
    ----------
    sites : dict
        Columns as `site_rows.keep_snps` takes them, by name.
    classes : names of `site_classes.CLASSES`
    infos : list of str, optional
        SVLEN and END of each record, as in INFO.

    Returns
    -------
    sites : dict
        Rows of `origin`.
    opened : OpenedRecords
    """
    known = OpenedRecords()
    pos = sites["pos"].tolist()
    for k, (ref, alt) in enumerate(zip(sites["ref"], sites["alt"], strict=True)):
        if len(ref) + len(alt) > 2 and pos[k] > 0:
            alts = alt.split(",")
            failed, others = sites["filter"][k] if "filter" in sites else "", stand_ins(alts)
            n_alts = len(alts) - len(others)
            record = Record(sites["chrom"][k], pos[k], len(ref), n_alts, failed, others)
            opened = open_record(pos[k], ref, alts, infos[k] if infos else "", classes)
            if known.add(k, record, opened):
                continue
        known.origin.append(k)
    rows = np.array(known.origin, np.int64)
    table = {
        name: column[rows] if isinstance(column, np.ndarray) else [column[k] for k in known.origin]
        for name, column in sites.items()
    }
    for number, site in known.sites.items():
        table["pos"][number] = site.pos
        table["ref"][number], table["alt"][number] = STAND_IN
    return table, known
