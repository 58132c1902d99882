"""The circle of sites of the best hits: contigs are told apart by colour."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from popdesic.report.figures.epistasis import draw_network
from popdesic.report.figures.style import ALARM, styled


def circle(contigs: list[str]) -> list[str]:
    """Colours of one site on each contig, in order; the best hit joins the first two."""
    n = len(contigs)
    sites = pd.DataFrame(
        {
            "rank": np.arange(n),
            "chrom": contigs,
            "pos": 100,
            "id": [f"rs{k}" for k in range(n)],
            "ref": "A",
            "alt": "G",
        }
    )
    pairs = [(k, k + 1) for k in range(n - 1)]
    columns = {
        f"{key}{side + 1}": [sites[key][pair[side]] for pair in pairs]
        for side in (0, 1)
        for key in ("chrom", "pos", "id", "ref", "alt")
    }
    with styled():
        figure = draw_network(pd.DataFrame(columns), sites, 2)
    return [to_hex(colour) for colour in figure.axes[0].collections[0].get_facecolor()]


@pytest.mark.parametrize("n", [6, 22])
def test_neighbouring_contigs_and_two_and_four_differ(n):
    colours = circle([str(k + 1) for k in range(n)])
    assert colours[1] != colours[3]
    assert ALARM not in colours  # the best hit alone has it
    near = [
        (a, b) for k, a in enumerate(colours) for b in colours[k + 1 : k + 6]
    ]  # five contigs on
    apart = [np.abs(np.subtract(to_rgb(a), to_rgb(b))).max() for a, b in near]
    assert min(apart) > 0.15
