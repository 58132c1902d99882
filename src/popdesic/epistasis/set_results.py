"""Tables of tests of sets as the report reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import read_table

#: Columns that are no numbers.
TEXTS = [
    *("set", "chrom", "chrom2", "site1", "site2"),
    *("tested", "without", "cohort", "role", "environment", "site"),
]


def read_set_table(path: Path) -> pd.DataFrame:
    """epistasis/sets.tsv, or another table of sets, with numbers as such; names are strings."""
    table = read_table(path)
    for name in table.columns.difference(TEXTS):
        table[name] = pd.to_numeric(table[name].replace("NA", np.nan))
    return table


def quantiles_of_sets(table: pd.DataFrame) -> pd.DataFrame:
    """`p` and `chi2` (one degree of freedom) of `p_quadratic`, which is uniform under the null."""
    from scipy.special import chdtri

    return pd.DataFrame({"p": table.p_quadratic, "chi2": chdtri(1, table.p_quadratic)})
