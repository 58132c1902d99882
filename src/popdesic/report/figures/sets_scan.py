"""Figures of the scan of sets: p along the genome, and quantiles of p."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ...core.tables import read_table
from ...epistasis.set_results import quantiles_of_sets, read_set_table
from ...io.sites import canonical_contig
from ..registry import set_figures
from .sites_scan import draw_manhattan, draw_quantiles
from .style import save_figure, styled

#: Where sets stand that are on several contigs.
SEVERAL = "several"


def draw_sets(path: Path, sites: Path, out: Path, phenotype: str = "") -> list[str]:
    """Draw epistasis/sets.tsv as {out}/sets_manhattan and {out}/sets_qq (.svg, .png).

    Parameters
    ----------
    sites : Path
        reorder/sites.tsv, which has the order of the contigs.
    phenotype : str
        In the names of files, if there are several phenotypes.
    """
    table = read_set_table(path)
    order = read_table(sites).astype({"rank": np.int64}).sort_values("rank")["chrom"]
    with styled():
        figures = (
            draw_manhattan(in_genome_order(table, order), "p of the set", "sets"),
            draw_quantiles(quantiles_of_sets(table), "sets, p_quadratic"),
        )
        drawn = [figure.name for figure in set_figures(str(path), phenotype)]
        for name, figure in zip(drawn, figures, strict=True):
            save_figure(figure, out / name)
    return drawn


def in_genome_order(table: pd.DataFrame, contigs: pd.Series) -> pd.DataFrame:
    """The sets by place: in the order of `contigs` and by the start of the first set.

    Those on several contigs come last, and those on contigs without sites are left out.
    """
    names = dict.fromkeys(canonical_contig(name) for name in contigs.tolist())
    number = {name: k for k, name in enumerate([*names, SEVERAL])}
    chrom = table.chrom.map(lambda name: SEVERAL if name == "NA" else canonical_contig(name))
    place = chrom.map(number)
    found = table.assign(chrom=chrom, place=place)[place.notna()]
    return found.sort_values(["place", "start", "end"], kind="stable").reset_index(drop=True)
