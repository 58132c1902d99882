"""Genetic positions within a map, beyond its ends, and on contigs with one position."""

import numpy as np
import pandas as pd
import pytest

from popdesic.cohort.beagle import _cut_map
from popdesic.cohort.genetic_maps import read_map
from popdesic.ibd.windows import genetic_sites

HEAD = "chrom\tpos\tcm\n"


def panel(*contigs: str) -> pd.DataFrame:
    """3 000 sites at every 10 000 bp of each contig."""
    pos = np.arange(1, 3001) * 10_000
    return pd.concat(
        [pd.DataFrame({"chrom": name, "pos": pos}) for name in contigs], ignore_index=True
    )


@pytest.mark.parametrize("second", ["2 15000000 15", "2 3000001 3\n2 9000001 9", "2 1 0\n2 3e7 30"])
def test_a_short_map_goes_on_at_its_mean_rate(tmp_path, caplog, second):
    """One position on a contig, or a map shorter than it, gave 0 cM beyond."""
    text = HEAD + "1 1 0\n1 30000001 30\n" + second + "\n"
    (tmp_path / "map").write_text(text.replace(" ", "\t"))
    sites = panel("1", "2")
    cm = read_map(tmp_path / "map", sites)
    np.testing.assert_allclose(cm, sites.pos / 1e6, atol=2e-6)
    assert genetic_sites(sites, cm).lengths() == pytest.approx([29.99, 29.99], abs=1e-5)
    said = [line.getMessage() for line in caplog.records]
    if "3e7" in second:
        assert not said
        return
    extent = {"2 1": "one position, 15000000", "2 3": "3000001 to 9000001"}[second[:3]]
    assert len(said) == 1 and said[0].endswith(
        "get its mean rate, 1 cM/Mb: "
        f"{2999 if 'one' in extent else 2400} of 3000 of contig '2' (sites 10000 to 30000000, "
        f"map {extent})"
    )


def test_the_rate_is_that_of_all_contigs(tmp_path):
    """Contigs of different rates: the mean over base pairs."""
    (tmp_path / "map").write_text(HEAD + "1 1 0\n1 10000001 20\n2 1 0\n2 30000001 20\n3 5 0\n")
    sites = panel("3")
    cm = read_map(tmp_path / "map", sites)
    np.testing.assert_allclose(np.diff(cm), 0.01, rtol=1e-9)
    assert cm[0] == pytest.approx((10_000 - 5) / 1e6)


def test_a_map_of_many_short_contigs_is_one_sentence(tmp_path, caplog):
    names = [str(k) for k in range(1, 9)]
    rows = "".join(f"{name} 20000 1\n{name} 40000 2\n" for name in names)
    (tmp_path / "map").write_text(HEAD + rows)
    read_map(tmp_path / "map", panel(*names))
    (said,) = [line.getMessage() for line in caplog.records]
    assert said.count("contig '") == 5 and said.endswith("; and 3 more contigs")


def test_beagle_is_told_why_a_contig_has_no_map(tmp_path, caplog):
    (tmp_path / "map").write_text("1 . 0 1\n1 . 1 9\n2 . 5 700\n")
    assert _cut_map(tmp_path / "map", "1", tmp_path / "out")
    assert not caplog.records
    for contig, words in (("2", "'2' has one position (700) in"), ("3", "'3' is not in")):
        assert not _cut_map(tmp_path / "map", contig, tmp_path / "out")
        assert words in caplog.records[-1].getMessage()
