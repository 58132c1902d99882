"""Regions with long-range linkage disequilibrium: `resources/long_range_ld.tsv`.

An inversion or a centromere correlates hundreds of sites over megabases, which pruning thins but
does not remove: such a region can make a component of its own (Price et al. 2008). Nothing compiled
is imported here, because the regions are read while the workflow is parsed.
"""

from __future__ import annotations

import csv
from itertools import dropwhile

import numpy as np
import pandas as pd

from ..core.places import RESOURCES
from .contigs import plain_name

TABLE = RESOURCES / "long_range_ld.tsv"


def regions_of(build: str) -> list[tuple[str, int, int, str]]:
    """Contig (without `chr`), first and last position, and name of each region of a genome build.

    Parameters
    ----------
    build : str
        `contigs.Genome.regions_build`. ``any`` gives the regions of all builds, which overlap;
        ``none`` and builds without a list (``chm13``, other species) give none.
    """
    with open(TABLE, encoding="utf-8", newline="") as file:
        lines = dropwhile(lambda line: line.startswith("#"), file)
        return [
            (row["chrom"], int(row["start"]), int(row["end"]), row["name"])
            for row in csv.DictReader(lines, delimiter="\t")
            if build in (row["build"], "any")
        ]


def in_regions(sites: pd.DataFrame, regions: list[tuple[str, int, int, str]]) -> np.ndarray:
    """Sites (columns `chrom`, `pos`) within any of these regions, bool (n_sites,)."""
    contig, names = pd.factorize(sites.chrom)
    bare = np.array(list(map(plain_name, names)), object)
    pos = sites.pos.to_numpy(np.int64)
    found = np.zeros(len(sites), bool)
    for chrom, start, end, _ in regions:
        found |= (bare == chrom)[contig] & (pos >= start) & (pos <= end)
    return found
