"""Pseudo-autosomal regions of X, where males are diploid: `resources/par.tsv`.

Nothing compiled is imported here, because the regions are read while the workflow is parsed.
"""

from __future__ import annotations

import csv

from ..core.places import RESOURCES

TABLE = RESOURCES / "par.tsv"


def pseudoautosomal(build: str) -> list[tuple[int, int]]:
    """Return the regions of X with autosomal inheritance: first and last position, from 1.

    Parameters
    ----------
    build : str
        `contigs.Genome.par_build`. ``any`` gives the union of all builds, which overlap: it covers
        the pseudo-autosomal regions of each build, and at most 1.2 % of the rest of X.
        ``none`` and builds of other species give no regions.
    """
    with open(TABLE, encoding="utf-8", newline="") as lines:
        return [
            (int(row["start"]), int(row["end"]))
            for row in csv.DictReader(lines, delimiter="\t")
            if build in (row["build"], "any")
        ]
