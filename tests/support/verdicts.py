"""Tables of verdicts on pairs, as `ibd.verdict.judge_study` writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from popdesic.core.files import write_json
from popdesic.core.tables import write_table
from popdesic.ibd.verdict import COLUMNS, SHORT, UNTOLD, WIDE


def write_relatives(
    results: Path,
    rows: Sequence[tuple[str, str, str]] = (),
    *,
    searched: float = 3_400.0,
    sources: Sequence[str] = ("king",),
    low: float = 0.05,
    differ: int = 0,
) -> pd.DataFrame:
    """Write `compare/relatives.tsv` and `.json`, and return the table.

    rows: two samples and their relation; `low` is the near end of all intervals.
    """
    tells = searched >= 1_000
    why = WIDE if tells else SHORT
    table = pd.DataFrame(
        [
            (a, b, "one", "one", relation, why if relation == UNTOLD else "none", 0.2, low, 0.3)
            for a, b, relation in rows
        ],
        columns=COLUMNS[:9],
    )
    table = table.assign(basis=sources[0], agree="none", differ="none")
    table = table.assign(segments=0.2, pc_relate=0.2, king=0.2)[COLUMNS]
    write_table(results / "compare/relatives.tsv", table)
    untold = int((table.relation == UNTOLD).sum())
    about = {
        "searched_cm": searched,
        "least_cm": 1_000.0,
        "tells": tells,
        "sources": list(sources),
        "relations": dict(Counter(table.relation)),
        "why": {why: untold} if untold else {},
        "differ": differ,
    }
    write_json(results / "compare/relatives.json", about)
    return table
