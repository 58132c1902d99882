"""The panel: the frozen list of sites, defined by the founder cohorts alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.sites import contig_order

COLUMNS = ["chrom", "pos", "id", "ref", "alt", "af", "mode", "n_called"]


def load_panel(path: Path, columns: Sequence[str] | None = None) -> tuple[pd.DataFrame, str]:
    """Read the panel table and its digest, which is recorded in every file made from it.

    `columns`: only these, which takes a fifth of the time where no names are read.
    """
    with open(path) as lines:
        words = lines.readline().split()
    if words[:2] != ["#", "panel"]:
        raise UserError(f"{path}, row 1: no panel digest; the file was not written by build_panel.")
    table = pd.read_csv(
        path,
        sep="\t",
        skiprows=1,
        dtype={"chrom": str, "id": str, "ref": str, "alt": str, "mode": np.int64},
        keep_default_na=False,
        quoting=csv.QUOTE_NONE,
        usecols=columns,
    )
    return table, words[2].rstrip(",")


def genome_order(table: pd.DataFrame) -> pd.DataFrame:
    """The rows by contig, position and alleles."""
    rank = {name: i for i, name in enumerate(sorted(table.chrom.unique(), key=contig_order))}
    return (
        table.assign(_rank=table.chrom.map(rank))
        .sort_values(["_rank", "pos", "ref", "alt"], kind="stable")
        .drop(columns="_rank")
    )


class SiteLists(NamedTuple):
    """Tables of sites: the panel, and `panel/further.tsv` if there is one."""

    panel: Path
    further: Path | None = None

    def load(self) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray | None]:
        """The panel's sites, those of both lists in genome order, and where these are from.

        The last is int64 (n_sites,): the row of the panel, or the panel's length and the row of
        the further sites; None without these.
        """
        panel, _ = load_panel(self.panel)
        if self.further is None:
            return panel, panel, None
        both = genome_order(pd.concat([panel, load_panel(self.further)[0]], ignore_index=True))
        return panel, both.reset_index(drop=True), both.index.to_numpy(np.int64)
