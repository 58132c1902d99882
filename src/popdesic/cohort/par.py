"""Pseudo-autosomal regions of X, which males have twice: `resources/par.tsv`.

Nothing compiled is imported here, because the regions are read while the workflow is parsed.
"""

from __future__ import annotations

import csv

from ..io.places import RESOURCES

TABLE = RESOURCES / "par.tsv"


def pseudoautosomal(build: str) -> list[tuple[int, int]]:
    """Regions of X, first and last position (from 1), that follow autosomal inheritance.

    Parameters
    ----------
    build : {'any', 'none', 'hg18', 'hg19', 'hg38', 'chm13'}
        ``any`` gives the regions of all builds, which overlap: whichever it is, no
        pseudo-autosomal site is left, and at most 1.2 % of the rest of X is lost. ``none`` gives
        none.
    """
    with open(TABLE, encoding="utf-8", newline="") as lines:
        return [
            (int(row["start"]), int(row["end"]))
            for row in csv.DictReader(lines, delimiter="\t")
            if build in (row["build"], "any")
        ]
