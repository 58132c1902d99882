"""Which p of a hit counts; cheap to import for the page."""

from __future__ import annotations

import numpy as np
import pandas as pd


def p_of_hits(table: pd.DataFrame, tests: int) -> np.ndarray:
    """The p of each hit's interaction that counts: float64 (n_hits,), corrected for all tests.

    `p_conditional` of hits in cis where it was computed, else `p_interaction`. A table without
    `p_interaction` has that of Bonferroni's correction of `lr_p`.
    """

    def column(name: str) -> np.ndarray:
        return pd.to_numeric(table[name], errors="coerce").to_numpy(float)

    p = column("p_interaction") if "p_interaction" in table else np.full(len(table), np.nan)
    if "lr_p" in table:
        p = np.where(np.isnan(p), np.minimum(column("lr_p") * tests, 1.0), p)
    if "p_conditional" not in table:
        return p
    conditional = column("p_conditional")
    return np.where(np.isnan(conditional), p, conditional)
