"""The sites around those of a scan's best combination: their LD with it, and their interactions.

Each scanned site near one of the lead's takes its place in the combination while the others stay. p
is that of the test that gives `lr_p` of hits: what fades with LD around the lead is one locus, and
a site elsewhere with a p of its own is another. Sites of the panel that could not take part have r2
alone.
"""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd

from ..io.bed import iterate_bim, open_bed, read_fam
from ..io.genotypes import unpack_bed
from .interaction import interaction_test
from .null_model import NullModel, read_null_model
from .options import REACH
from .reorder import genotypes_of_planes, read_reordered, sites_of_hits
from .residual_scan import residual_tests
from .significance import hit_tables

#: Most tested sites of a region, and most of the others: those nearest to the lead's.
MOST_SITES = 400
COLUMNS = ("side", "chrom", "pos", "lead", "tested", "r2", "lr_p")


def zoom_on_leads(
    results: Path,
    hits: dict[int, pd.DataFrame],
    prefixes: list[Path],
    phenotype: str = "",
    *,
    min_distance_bp: int,
) -> dict[int, pd.DataFrame]:
    """`zoom_on_lead` of the finished scans, by order; `phenotype`: one of several, or empty."""
    return {
        order: zoom_on_lead(
            results / "reorder" / phenotype,
            table,
            order,
            results / "epistasis" / phenotype / "null_model.npz",
            prefixes,
            min_distance_bp=min_distance_bp,
        )
        for order, table in hits.items()
    }


def zoom_on_lead(
    folder: Path,
    hits: pd.DataFrame,
    order: int,
    null: Path,
    prefixes: list[Path],
    *,
    min_distance_bp: int,
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
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel (.bed .bim .fam), of which the scan was made.
    min_distance_bp : int
        Sites nearer to one of the others of the combination were not tested with it.

    Returns
    -------
    DataFrame
        `side` (1, 2, ...: the site of the hit), `chrom`, `pos`, `lead` (whether it is the hit's
        own site), `tested` (False for sites of the panel that the scan did not read, or that are
        too near to a partner), `r2` with the hit's site over jointly called people of the scan
        (NaN where undefined), `lr_p` (NaN where not tested); by side and position. Empty without
        a hit.
    """
    if not len(hits):
        return pd.DataFrame(columns=list(COLUMNS))
    words, sites, samples = read_reordered(folder)
    classes = samples["class"]
    n_cases = int((classes == "case").sum())
    sizes = len(samples) - n_cases, n_cases
    model = read_null_model(null) if (classes == "quantitative").all() else None
    lead = sites_of_hits(hits.head(1), sites, order)[0]
    of_lead = genotypes_of_planes(np.asarray(words[lead]), sites.iloc[lead], *sizes)
    chrom, pos = sites.chrom.to_numpy(), sites.pos.to_numpy()
    panel = _panel_near(prefixes[0], {(chrom[site], pos[site]) for site in lead})
    read = _panel_reader(prefixes, samples["sample"].tolist())
    rows = []
    for side, site in enumerate(lead):
        partners = np.delete(lead, side)
        near = (chrom == chrom[site]) & (np.abs(pos - pos[site]) <= REACH)
        for partner in partners:
            limit = max(min_distance_bp, 1)
            near &= (chrom != chrom[partner]) | (np.abs(pos - pos[partner]) >= limit)
        near[site] = True
        found = _nearest(np.flatnonzero(near), pos, pos[site])
        own = genotypes_of_planes(np.asarray(words[found]), sites.iloc[found], *sizes)
        part = []
        for place, genotypes in zip(found, own, strict=True):
            combination = of_lead.copy()
            combination[side] = genotypes
            r2 = r2_of_sites(of_lead[side], genotypes)
            p = _test(combination, sizes[0], model)
            part.append((pos[place], place == site, True, r2, p))
        other = panel[(panel.chrom == chrom[site]) & ((panel.pos - pos[site]).abs() <= REACH)]
        other = other[~other["rank"].isin(sites["rank"].to_numpy()[near])]
        found = other.iloc[_nearest(np.arange(len(other)), other.pos.to_numpy(), pos[site])]
        for place, genotypes in zip(found.pos, read(found["rank"].to_numpy()), strict=True):
            r2 = r2_of_sites(of_lead[side], genotypes)
            part.append((place, False, False, r2, np.nan))
        part.sort(key=itemgetter(0))
        rows += [(side + 1, chrom[site], *row) for row in part]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _nearest(found: np.ndarray, pos: np.ndarray, centre: int) -> np.ndarray:
    """At most MOST_SITES of some rows, those nearest to a position, by position."""
    found = found[np.argsort(np.abs(pos[found] - centre), kind="stable")][:MOST_SITES]
    return found[np.argsort(pos[found], kind="stable")]


def _panel_near(prefix: Path, leads: set[tuple[str, int]]) -> pd.DataFrame:
    """`chrom`, `pos` and `rank` (row of the panel) of the sites within REACH of a lead's."""
    parts, first = [], 0
    for part in iterate_bim(prefix):
        part = part[["chrom", "pos"]].assign(rank=np.arange(first, first + len(part)))
        first += len(part)
        near = np.zeros(len(part), bool)
        for chrom, pos in leads:
            near |= ((part.chrom == chrom) & ((part.pos - pos).abs() <= REACH)).to_numpy()
        parts.append(part[near])
    return pd.concat(parts, ignore_index=True)


def _panel_reader(prefixes: list[Path], people: list[str]):
    """A function that reads rows of the panel: int8 (n_rows, len(people)), -1 missing."""
    names = [read_fam(prefix)["sample"].tolist() for prefix in prefixes]
    place = pd.Index([name for group in names for name in group]).get_indexer(people)
    beds = [(open_bed(prefix), len(group)) for prefix, group in zip(prefixes, names, strict=True)]

    def read(rows: np.ndarray) -> np.ndarray:
        return np.concatenate([unpack_bed(bed[rows], n) for bed, n in beds], axis=1)[:, place]

    return read


def _test(genotypes: np.ndarray, n_controls: int, model: NullModel | None) -> float:
    """p of one combination's interaction, as in tables of hits."""
    if model is not None:
        return float(residual_tests(genotypes, model)["lr_p"])
    return interaction_test(hit_tables(genotypes, n_controls))[2]


def r2_of_sites(a: np.ndarray, b: np.ndarray) -> float:
    """r2 of two sites' ALT counts over jointly called people; NaN if one does not vary there."""
    both = (a >= 0) & (b >= 0)
    x, y = a[both].astype(np.int64), b[both].astype(np.int64)
    n = len(x)
    covariance = n * int(x @ y) - int(x.sum()) * int(y.sum())
    spread = (n * int(x @ x) - int(x.sum()) ** 2) * (n * int(y @ y) - int(y.sum()) ** 2)
    return covariance**2 / spread if spread else float("nan")
