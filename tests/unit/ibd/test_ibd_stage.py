"""Windows, lengths, degrees, formats and messages of the segments of identity by descent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import popdesic
from popdesic.core.errors import UserError
from popdesic.core.tables import write_table
from popdesic.ibd.cohorts import COLUMNS, PAIRS, segment_pairs, segment_sums
from popdesic.ibd.degrees import DegreeScale
from popdesic.ibd.formats import hap_ibd_rows, ibis_rows, whole_segments
from popdesic.ibd.graph import build_graph
from popdesic.ibd.windows import genetic_sites, require_density, sites_per_window, windows_of


def sites_at(*contigs: np.ndarray) -> pd.DataFrame:
    """Sites at these positions in Mb, a contig each."""
    return pd.concat(
        [
            pd.DataFrame({"chrom": str(k + 1), "pos": np.rint(1e6 * pos).astype(np.int64)})
            for k, pos in enumerate(contigs)
        ],
        ignore_index=True,
    )


def test_windows_cover_each_contig():
    sites = genetic_sites(sites_at(np.arange(100) / 10, np.arange(37) / 10), None)
    windows = windows_of(sites, 16)
    assert windows.contig.tolist() == [0] * 7 + [1] * 3
    assert windows.sites.tolist() == [16] * 6 + [4, 16, 16, 5]
    assert windows.first.tolist() == [*range(0, 100, 16), 100, 116, 132]
    assert windows.masked.tolist() == [False] * 6 + [True] + [False] * 2 + [True]
    assert windows.left[1] == pytest.approx(1.6) and windows.right[0] == pytest.approx(1.6)
    assert windows.right[6] == pytest.approx(9.9) and windows.left[7] == 0
    assert sites.lengths() == pytest.approx([9.9, 3.6])


def test_regions_and_gaps_have_no_length():
    positions = np.concatenate([np.arange(50) / 10, 30 + np.arange(50) / 10])
    left_out = np.zeros(100, bool)
    left_out[60:80] = True
    sites = genetic_sites(sites_at(positions), None, left_out)
    assert sites.lengths()[0] == pytest.approx(4.9 + 4.9 - 2.1)
    windows = windows_of(sites, 16)
    assert windows.masked.tolist() == [False, False, False, False, True, False, True]
    mapped = genetic_sites(sites_at(np.arange(5) / 10), np.array([0, 0.2, 0.4, 0.4, 1.0]))
    assert mapped.cm.tolist() == pytest.approx([0, 0.2, 0.4, 0.4, 1.0])


@pytest.mark.parametrize(("per_cm", "sites"), [(500, 128), (60, 48), (5, 16)])
def test_windows_fit_the_density(per_cm, sites):
    mapped = genetic_sites(sites_at(np.arange(20 * per_cm) / per_cm), None)
    assert sites_per_window(mapped) == sites and sites_per_window(mapped, 33) == 33


def test_sparse_sites_are_refused_with_the_density_needed():
    def lod(per_cm: int) -> float:
        sites = genetic_sites(sites_at(np.arange(20 * per_cm) / per_cm), None)
        return require_density(sites, np.full(20 * per_cm, 0.3), 0.001, 7.0)

    with pytest.raises(UserError, match=r"are 10\.1 a .* 31\.8 sites a centimorgan, or ibd"):
        lod(10)
    assert lod(100) == pytest.approx(2 * lod(50), rel=0.02) and lod(50) > 15
    short = genetic_sites(sites_at(np.arange(300) / 100), None)
    with pytest.raises(UserError, match=r"of at most 2\.99 cM, less than ibd\.min_cm"):
        require_density(short, np.full(300, 0.3), 0.001, 7.0)
    with pytest.raises(UserError, match="span no genetic length"):
        require_density(genetic_sites(sites_at(np.zeros(3)), None), np.full(3, 0.3), 0.001, 7.0)


def segments() -> pd.DataFrame:
    rows = [
        ("a", "b", "1", 1_000_001, 9_000_001, 8.0, 20.0, 1, 80, 1),
        ("a", "b", "1", 2_000_001, 4_000_001, 2.0, 5.0, 2, 20, 0),
        ("a", "b", "1", 6_000_001, 9_000_001, 3.0, 6.0, 2, 30, 0),
        ("a", "b", "2", 1, 10_000_001, 10.0, 30.0, 1, 100, 0),
        ("a", "c", "2", 1, 7_000_001, 7.0, 15.0, 1, 70, 2),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_pairs_are_sums_of_segments():
    scale = DegreeScale(np.array([10.0, 10.0]), 7.0)
    table = segment_pairs([segment_sums(segments())], {"a": "x", "b": "x", "c": "y"}, scale)
    assert list(table.columns) == PAIRS
    assert table.iloc[0, :8].tolist() == ["a", "b", "x", "x", 2, 18.0, 10.0, 5.0]
    assert table.kinship.tolist() == pytest.approx([23 / 80, 7 / 80])
    padded = DegreeScale(np.array([10.0, 10.0, *[6.0] * 9]), 7.0)  # 6 cM can hold no segment
    assert padded.kinship(18.0, 5.0) == scale.kinship(18.0, 5.0)
    assert table.iloc[1, :8].tolist() == ["a", "c", "x", "y", 1, 7.0, 7.0, 0.0]
    assert segment_pairs([], {}, scale).empty


def test_other_formats():
    sites = genetic_sites(
        sites_at(*[np.round(np.arange(101) / 10 + 1e-6, 6) for _ in range(2)]), None
    )
    found = hap_ibd_rows(segments(), sites)
    assert found.shape == (5, 8) and found.iloc[1, :4].tolist() == ["a", 2, "b", 2]
    found = ibis_rows(segments(), sites)
    assert found[["start", "end", "kind", "errors"]].to_numpy().tolist() == [
        [1_000_001, 1_900_001, "IBD1", -1],
        [2_000_001, 4_000_001, "IBD2", 0],
        [4_100_001, 5_900_001, "IBD1", -1],
        [6_000_001, 9_000_001, "IBD2", 0],
        [1, 10_000_001, "IBD1", 0],
        [1, 7_000_001, "IBD1", 2],
    ]
    assert found.cM.tolist() == pytest.approx([0.9, 2.0, 1.8, 3.0, 10.0, 7.0])
    assert ibis_rows(segments().iloc[:0], sites).empty


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 9])
def test_exports_are_the_same_from_parts_of_any_size(rows):
    table = segments()
    parts = [table.iloc[k : k + rows] for k in range(0, len(table), rows)]
    found = list(whole_segments(parts))
    assert all(part.ibd.iloc[0] == 1 for part in found)
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), table)
    sites = genetic_sites(
        sites_at(*[np.round(np.arange(101) / 10 + 1e-6, 6) for _ in range(2)]), None
    )
    pieces = pd.concat([ibis_rows(part, sites) for part in found], ignore_index=True)
    pd.testing.assert_frame_equal(pieces, ibis_rows(table, sites))
    assert list(whole_segments([])) == []


def test_the_graph_of_shared_segments(tmp_path):
    write_table(tmp_path / "samples.tsv", pd.DataFrame({"sample": list("cabd")}))
    pairs = pd.DataFrame(
        {"sample1": ["a", "a", "b"], "sample2": ["b", "c", "c"], "total_cM": [70.0, 7.0, 6.99]}
    )
    pairs["kinship"] = [0.25, 0.5001, 0.1]  # a length is never negative
    write_table(tmp_path / "pairs.tsv", pairs)
    paths = tmp_path / "pairs.tsv", tmp_path / "samples.tsv"
    assert build_graph(*paths, 7.0, tmp_path / "graph.npz") == 2
    with np.load(tmp_path / "graph.npz") as graph:
        assert graph["edges"].tolist() == [[0, 1], [1, 2]] and graph["n"] == 4
        assert graph["lengths"].tolist() == [0, 1]
        assert graph["weights"].tolist() == pytest.approx([1e-3, np.log(10)])
    write_table(tmp_path / "pairs.tsv", pairs.iloc[:0])
    assert build_graph(*paths, 7.0, tmp_path / "graph.npz") == 0


def test_the_function_for_arrays():
    rng = np.random.default_rng(2)
    drawn = rng.integers(0, 2, (8, 2, 1000), dtype=np.int8)
    drawn[3, 0, 250:750] = drawn[2, 0, 250:750]
    drawn[5] = drawn[4]
    genotypes, pos = drawn.sum(axis=1), 16_000 * np.arange(1, 1001)
    found = popdesic.ibd_segments(genotypes, pos)
    pairs = found[["sample1", "sample2", "ibd"]].to_numpy().tolist()
    assert pairs == [[2, 3, 1], [4, 5, 1], [4, 5, 2]]
    assert found.cM.tolist() == pytest.approx([8, 16, 16], abs=0.5)
    longer = popdesic.ibd_segments(genotypes, pos, centimorgans=pos / 5e5)
    assert longer.cM[0] == pytest.approx(2 * found.cM[0])


def few_samples(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies of 8 000 sites along 40 cM, haplotypes of four samples, positions.

    The first two share one haplotype over 20 cM, and all of the other two is the same.
    """
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 0.8, 8000) * 0.96 + 0.02
    drawn = (rng.random((4, 2, 8000)) < p).astype(np.int8)
    drawn[1, 0, 2000:6000] = drawn[0, 0, 2000:6000]
    drawn[3] = drawn[2]
    return p, drawn, np.arange(1, 8001) * 5000


@pytest.mark.parametrize("seed", range(3))
def test_two_samples_share_what_they_share_where_frequencies_are_given(seed):
    """Their own frequencies made it look common: the table was empty, even for twins."""
    p, drawn, pos = few_samples(seed)
    pair, twins = drawn[:2].sum(axis=1), drawn[2:].sum(axis=1)
    found = popdesic.ibd_segments(pair, pos, af=p)
    assert found.ibd.tolist() == [1] and found.cM[0] == pytest.approx(20, abs=0.5)
    found = popdesic.ibd_segments(twins, pos, af=p)
    assert found.ibd.tolist() == [1, 2] and (found.cM > 39.5).all()
    family = np.stack([drawn[0].sum(axis=0), drawn[0, 0] + drawn[2, 0]])  # parent and child
    found = popdesic.ibd_segments(family, pos, af=p)
    assert found.ibd.tolist() == [1] and found.cM[0] > 39.5
    all_four = popdesic.ibd_segments(drawn.sum(axis=1), pos, af=p)
    assert all_four[["sample1", "sample2", "ibd"]].to_numpy().tolist() == [
        *([0, 1, 1], [2, 3, 1], [2, 3, 2])
    ]


@pytest.mark.parametrize("n", [2, 4, 7])
def test_few_samples_without_frequencies_are_refused(n):
    _, drawn, pos = few_samples(1)
    drawn = np.concatenate([drawn, drawn])[:n]
    with pytest.raises(ValueError, match=f"are of {n} samples, but .* least 8; give af \\(freq"):
        popdesic.ibd_segments(drawn.sum(axis=1), pos)


@pytest.mark.parametrize("seed", range(3))
def test_the_fewest_samples_suffice(seed):
    p, drawn, pos = few_samples(seed)
    others = np.random.default_rng(seed + 9).random((4, 2, 8000)) < p
    everyone = np.concatenate([drawn, others.astype(np.int8)]).sum(axis=1)
    found = popdesic.ibd_segments(everyone, pos)
    assert found[["sample1", "sample2", "ibd"]].to_numpy().tolist() == [
        *([0, 1, 1], [2, 3, 1], [2, 3, 2])
    ]
    assert found.cM.tolist() == pytest.approx([20, 40, 40], abs=0.6)


GENOTYPES = np.random.default_rng(1).integers(0, 3, (9, 400)).astype(np.int8)
BAD_CALLS = {
    "the sites lie on contigs of at most": lambda pos: popdesic.ibd_segments(GENOTYPES, pos),
    "sites a centimorgan, or min_cm of .*: give more sites": lambda pos: popdesic.ibd_segments(
        GENOTYPES, 100 * pos
    ),
    "min_length is not a limit of segments": lambda pos: popdesic.ibd_segments(
        GENOTYPES, pos, min_length=3
    ),
    r"af is int64 of the shape \(2,\)": lambda pos: popdesic.ibd_segments(
        GENOTYPES, pos, af=[0, 1]
    ),
    r"af\[0\] is 1.5": lambda pos: popdesic.ibd_segments(GENOTYPES, pos, af=pos * 0 + 1.5),
    "centimorgans are int64 of the shape": lambda pos: popdesic.ibd_segments(
        GENOTYPES, pos, centimorgans=[1, 2]
    ),
    "is less than the one before": lambda pos: popdesic.ibd_segments(
        GENOTYPES, pos, centimorgans=-pos
    ),
}


@pytest.mark.parametrize("sentence", BAD_CALLS)
def test_unusable_arguments_of_the_function(sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        BAD_CALLS[sentence](10_000 * np.arange(1, 401))
    assert "ibd." not in str(error.value) and "panel" not in str(error.value)
