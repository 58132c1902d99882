"""The sites around those of a scan's best combination: their LD with it, and their interactions.

Each site near one of the lead's takes its place in the combination while the others stay. p is that
of the test that gives `lr_p` of hits: what fades with LD around the lead is one locus, and a site
elsewhere with a p of its own is another.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..io.tables import read_table
from .interaction import interaction_test
from .null_model import NullModel, read_null_model
from .options import NAMES, REACH
from .reorder import read_reordered
from .scan import genotypes_of, sites_of_hits
from .significance import hit_tables
from .trait_scan import trait_tests

#: Most sites of a region, those nearest to the lead's.
MOST_SITES = 400


def zoom_on_leads(
    results: Path, orders: list[int], trait: str = "", *, min_distance_bp: int
) -> dict[int, pd.DataFrame]:
    """`zoom_on_lead` of the finished scans, by order; `trait`: of several, names their folders."""
    folder = results / "epistasis" / trait
    return {
        order: zoom_on_lead(
            results / "reorder" / trait,
            read_table(folder / f"{NAMES[order]}.tsv"),
            order,
            folder / "null_model.npz",
            min_distance_bp=min_distance_bp,
        )
        for order in orders
    }


def zoom_on_lead(
    folder: Path, hits: pd.DataFrame, order: int, null: Path, *, min_distance_bp: int
) -> pd.DataFrame:
    """Sites around each site of the first hit.

    Parameters
    ----------
    folder : Path
        `results/reorder/`.
    hits : DataFrame
        A ranked table of hits, of which the first row is read.
    null : Path
        `null_model.npz`; read if the phenotype is a number.
    min_distance_bp : int
        Sites nearer to one of the others of the combination were not tested with it, and are left
        out.

    Returns
    -------
    DataFrame
        `side` (1, 2, ...: the site of the hit), `chrom`, `pos`, `lead` (whether it is the hit's
        own site), `r2` with that site over jointly called people (NaN where undefined), `lr_p`;
        by side and position. Empty without a hit.
    """
    columns = ["side", "chrom", "pos", "lead", "r2", "lr_p"]
    if not len(hits):
        return pd.DataFrame(columns=columns)
    words, sites, samples = read_reordered(folder)
    classes = samples["class"]
    n_cases = int((classes == "case").sum())
    sizes = len(samples) - n_cases, n_cases
    model = read_null_model(null) if (classes == "quantitative").all() else None
    lead = sites_of_hits(hits.head(1), sites, order)[0]
    of_lead = genotypes_of(np.asarray(words[lead]), sites.iloc[lead], *sizes)
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy()
    rows = []
    for side, site in enumerate(lead):
        partners = np.delete(lead, side)
        near = (chrom == chrom[site]) & (np.abs(pos - pos[site]) <= REACH)
        for partner in partners:
            limit = max(min_distance_bp, 1)
            near &= (chrom != chrom[partner]) | (np.abs(pos - pos[partner]) >= limit)
        near[site] = True
        found = np.flatnonzero(near)
        found = found[np.argsort(np.abs(pos[found] - pos[site]), kind="stable")][:MOST_SITES]
        found = found[np.argsort(pos[found], kind="stable")]
        genotypes = genotypes_of(np.asarray(words[found]), sites.iloc[found], *sizes)
        for place, own in zip(found, genotypes, strict=True):
            combination = of_lead.copy()
            combination[side] = own
            rows.append(
                {
                    "side": side + 1,
                    "chrom": chrom[place],
                    "pos": int(pos[place]),
                    "lead": bool(place == site),
                    "r2": squared_correlation(of_lead[side], own),
                    "lr_p": _test(combination, sizes[0], model),
                }
            )
    return pd.DataFrame(rows, columns=columns)


def _test(genotypes: np.ndarray, n_controls: int, model: NullModel | None) -> float:
    """p of one combination's interaction, as in tables of hits."""
    if model is not None:
        return float(trait_tests(genotypes, model)["lr_p"])
    return interaction_test(hit_tables(genotypes, n_controls))[2]


def squared_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """r2 of two sites' ALT counts over jointly called people; NaN if one does not vary there."""
    both = (a >= 0) & (b >= 0)
    x, y = a[both].astype(np.int64), b[both].astype(np.int64)
    n = len(x)
    covariance = n * int(x @ y) - int(x.sum()) * int(y.sum())
    spread = (n * int(x @ x) - int(x.sum()) ** 2) * (n * int(y @ y) - int(y.sum()) ** 2)
    return covariance**2 / spread if spread else float("nan")
