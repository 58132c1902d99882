"""Segments in the column formats that hap-IBD and IBIS write, for programs that read those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import open_text, write_rows
from ..io.sites import canonical_contig
from .cohorts import cut_parts, read_segments
from .genome import load_sites
from .windows import GeneticSites


def export_segments(segments: Path, genome: Path, panel: Path, out: dict[str, Path]) -> int:
    """Write `ibd/segments.tsv.gz` in other formats; return the number of rows read.

    Parameters
    ----------
    out : dict
        File of each format (`options.EXPORTS`) that is wanted.
    """
    sites, _ = load_sites(genome, panel)
    make = {"hap-ibd": hap_ibd_rows, "ibis": ibis_rows}
    read = 0
    with ExitStack() as stack:
        files = {name: stack.enter_context(open_text(path)) for name, path in out.items()}
        for part in whole_segments(read_segments(segments)):
            read += len(part)
            for name, file in files.items():
                write_rows(file, make[name](part, sites), "%.4f")
    return read


def whole_segments(parts: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The same rows in parts that do not separate a segment from its stretches of two alleles."""
    return cut_parts(parts, lambda table: (table.ibd == 1).to_numpy())


def hap_ibd_rows(table: pd.DataFrame, sites: GeneticSites) -> pd.DataFrame:
    """The eight columns of a hap-IBD `.ibd` file.

    Without phase the haplotype numbers have no meaning: 1 and 1 for a segment, 2 and 2 for a
    stretch of it at which the other two alleles are shared as well.
    """
    return pd.DataFrame(
        {
            "sample1": table.sample1,
            "haplotype1": table.ibd,
            "sample2": table.sample2,
            "haplotype2": table.ibd,
            "contig": table.contig,
            "start": table.start,
            "end": table.end,
            "cM": table.cM,
        }
    )


def ibis_rows(table: pd.DataFrame, sites: GeneticSites) -> pd.DataFrame:
    """The twelve columns of an IBIS `.seg` file.

    There a segment stops where a stretch with both alleles (IBD2) begins and goes on behind it;
    like IBIS, errors of such pieces are not known: -1.
    """
    pieces = []
    place = _site_finder(sites)
    one = (table.ibd == 1).to_numpy()
    first, last = place(table.contig, table.start), place(table.contig, table.end)
    for rows in np.split(np.arange(len(table)), np.flatnonzero(one)[1:]):
        if not len(rows):
            continue
        begin, end = int(first[rows[0]]), int(last[rows[0]])
        whole = len(rows) == 1
        for row in rows[1:]:
            if first[row] > begin:
                pieces.append((rows[0], "IBD1", begin, int(first[row]) - 1, -1, -1.0))
            errors, called = int(table.errors.iloc[row]), int(table.sites.iloc[row])
            size = int(first[row]), int(last[row])
            pieces.append((row, "IBD2", *size, errors, errors / max(called, 1)))
            begin = int(last[row]) + 1
        if begin <= end:
            errors, called = int(table.errors.iloc[rows[0]]), int(table.sites.iloc[rows[0]])
            known = (errors, errors / max(called, 1)) if whole else (-1, -1.0)
            pieces.append((rows[0], "IBD1", begin, end, *known))
    columns = list(zip(*pieces, strict=True)) or [()] * 6
    row, kind, begin, end, errors, density = (np.array(column) for column in columns)
    row, begin, end = (column.astype(np.int64) for column in (row, begin, end))
    return pd.DataFrame(
        {
            "sample1": table.sample1.to_numpy()[row],
            "sample2": table.sample2.to_numpy()[row],
            "contig": table.contig.to_numpy()[row],
            "start": sites.pos[begin],
            "end": sites.pos[end],
            "kind": kind,
            "start_cM": sites.cm[begin],
            "end_cM": sites.cm[end],
            "cM": sites.cm[end] - sites.cm[begin],
            "sites": end - begin + 1,
            "errors": errors,
            "density": density.astype(np.float64),
        }
    )


def _site_finder(sites: GeneticSites):
    """Function of contigs and positions that gives their sites."""
    names = [canonical_contig(str(sites.chrom[first])) for first, _ in sites.contigs]
    number = {name: k for k, name in enumerate(names)}
    reach = int(sites.pos.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(names)), [last - first for first, last in sites.contigs])
    keys = owner * reach + sites.pos

    def find(contigs: pd.Series, pos: pd.Series) -> np.ndarray:
        own = contigs.map(lambda name: number[canonical_contig(name)]).to_numpy(np.int64)
        return np.searchsorted(keys, own * reach + pos.to_numpy(np.int64))

    return find
