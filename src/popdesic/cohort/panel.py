"""The panel: the frozen list of sites, defined by the founder cohorts alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError

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
