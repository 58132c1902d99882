"""Manhattan and quantile figures of the scan of single sites."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from popdesic.report.figures.sites_scan import draw_manhattan, draw_quantiles, draw_sites
from popdesic.report.figures.style import ALARM, styled


def table_of(n: int, inflation: float = 1.0, seed: int = 1) -> pd.DataFrame:
    chi2 = inflation * stats.chi2.rvs(1, size=n, random_state=np.random.default_rng(seed))
    chrom = np.sort(np.arange(n) % 3 + 1).astype(str)
    return pd.DataFrame(
        {"chrom": chrom, "pos": np.arange(n), "chi2": chi2, "p": stats.chi2.sf(chi2, 1)}
    )


def test_sites_above_the_line_have_the_second_colour():
    table = table_of(300)
    table.loc[[10, 20], "p"] = [1e-9, np.nan]
    with styled():
        (axes,) = draw_manhattan(table).axes
    points = axes.collections[0]
    heights = points.get_offsets()[:, 1]
    assert heights[10] == pytest.approx(9)
    marked = [tuple(c) for c in points.get_facecolors()]
    assert sum(c == tuple(np.array(_rgba(ALARM))) for c in marked) == 1
    assert axes.lines[0].get_ydata()[0] == pytest.approx(-np.log10(0.05 / 299))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "3"]


def _rgba(colour: str):
    from matplotlib.colors import to_rgba

    return to_rgba(colour)


@pytest.mark.parametrize("inflation", [1.0, 1.5])
def test_quantiles_of_the_null_lie_in_the_band_and_state_lambda(inflation):
    table = table_of(5000, inflation)
    with styled():
        figure = draw_quantiles(table)
    (axes,) = figure.axes
    said = figure.legends[0].get_texts()[0].get_text()
    assert float(said.removeprefix("λ = ")) == pytest.approx(inflation, rel=0.07)
    x, y = axes.collections[1].get_offsets().T
    # the smallest p is at the right, and the middle lies on or above the diagonal
    assert x.max() == pytest.approx(-np.log10(0.5 / 5000))
    middle = (x > 1) & (x < 2)
    assert np.median(y[middle] / x[middle]) == pytest.approx(inflation, rel=0.1)


def test_figures_are_drawn_where_no_site_was_tested(tmp_path):
    empty = table_of(4).assign(p=np.nan, chi2=np.nan)
    empty.to_csv(tmp_path / "sites.tsv", sep="\t", index=False, na_rep="NA")
    assert draw_sites(tmp_path / "sites.tsv", tmp_path) == ["manhattan", "qq_sites"]
    assert (tmp_path / "qq_sites.svg").exists() and (tmp_path / "manhattan.png").exists()
