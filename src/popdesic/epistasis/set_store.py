"""Files of statistics of sets: what a cohort contributes, without any genotype."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.tables import write_npz
from .set_scores import SetStatistics

#: Arrays of a set, each written as one array of all sets.
PARTS = ("sites", "alt", "spread", "i", "j", "scores", "thirds", "covariance")


def store_sets(path: Path, sets: dict[str, SetStatistics | None]) -> None:
    """Write the statistics of sets; those that could not be tested have None."""
    known = [one for one in sets.values() if one is not None]
    arrays = {
        part: np.concatenate([np.zeros(0), *(getattr(one, part) for one in known)]).astype(
            np.float64 if part in ("spread", "scores", "thirds", "covariance") else np.int64
        )
        for part in PARTS
    }
    freedom = {id(one): -1 if one.freedom is None else one.freedom for one in known}
    about = [
        (len(one.sites), len(one.scores), one.n_people, freedom[id(one)]) if one else (0, 0, 0, 0)
        for one in sets.values()
    ]
    write_npz(
        path,
        names=np.array(list(sets), "U"),
        tested=np.array([one is not None for one in sets.values()]),
        about=np.array(about, np.int64).reshape(len(sets), 4),
        **arrays,
    )


def stored_sets(path: Path) -> dict[str, SetStatistics | None]:
    """What `store_sets` wrote, in the order of its sets."""
    with np.load(path) as file:
        arrays = {part: file[part] for part in PARTS}
        names, tested, about = file["names"].tolist(), file["tested"], file["about"].tolist()
    found: dict[str, SetStatistics | None] = {}
    ends = dict.fromkeys(PARTS, 0)
    for name, known, (n_sites, n_products, n_people, freedom) in zip(
        names, tested, about, strict=True
    ):
        if not known:
            found[name] = None
            continue
        sizes = dict.fromkeys(("sites", "alt", "spread"), n_sites)
        sizes |= dict.fromkeys(("i", "j", "scores", "thirds"), n_products)
        sizes["covariance"] = n_products * (n_products + 1) // 2
        parts = []
        for part in PARTS:
            parts.append(arrays[part][ends[part] : ends[part] + sizes[part]])
            ends[part] += sizes[part]
        found[name] = SetStatistics(*parts, n_people, None if freedom < 0 else freedom)
    return found
