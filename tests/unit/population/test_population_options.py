"""What the configuration and the sheet may ask for: one sentence each, before any job."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.cohort.contigs import genome_of
from popdesic.core.errors import UserError
from popdesic.population import options
from popdesic.population.blocks import block_starts, choose_blocks, in_mask, spans
from popdesic.population.differentiation import track_table
from popdesic.population.options import block_of, check_population, parse_block, x_on_panel
from popdesic.population.sum_names import PAIR_SUMS
from popdesic.study.configuration import fill_config

SAMPLES = pd.DataFrame(
    {
        "sample": [f"s{k}" for k in range(8)],
        "population": ["A", "A", "B", "B", "C", "C", "D", "lonely"],
        "village": ["x"] * 8,
    }
)


def config(block=None, **others):
    return fill_config({"population": block or {}, **others})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"block": "2"}, ["population.block is '2'", "'2 Mb'"]),
        ({"block": "0 Mb"}, ["population.block is '0 Mb'"]),
        ({"block": "5 cM"}, ["needs a genetic map", "genetic_map"]),
        ({"column": "villages"}, ["'villages'", "did you mean 'village'"]),
        ({"f4": [["A", "B", "C", "A"]]}, ["f4, test 1", "four different"]),
        ({"f4": [["A", "B", "C", "Z"]]}, ["f4, test 1", "'Z'", "not a population"]),
        ({"f4": [["A", "B", "C", "D"]]}, ["'D', which has 1 of the samples", "fewer than 2"]),
        ({"mask": "m.bed"}, ["'m.bed', which does not exist", "or ''"]),
    ],
)
def test_mistakes(given, words):
    with pytest.raises(UserError) as caught:
        check_population(config(given), SAMPLES, {})
    for word in words:
        assert word in str(caught.value)


def test_a_mask_and_x(tmp_path):
    (tmp_path / "m.bed").write_text("1\t0\t9\n")  # with any filter of the panel
    check_population(config({"mask": "m.bed"}), SAMPLES, {}, tmp_path)
    open_panel = {"contigs": {"exclude": ["MT"]}}
    x = {"chr1": 0, "chrX": 0}
    assert x_on_panel(config(), x) == set() and x_on_panel(config(**open_panel), x) == {"chrX"}
    remark, *_ = check_population(config(**open_panel), SAMPLES, x)
    assert "'chrX' on the panel, of which males" in remark and "do without them" in remark
    assert not any("chrX" in one for one in check_population(config(), SAMPLES, x))


def test_small_populations_are_named_and_left_out():
    remarks = check_population(config(), SAMPLES, {})
    assert len(remarks) == 2 and "population 'D' has 1 sample, fewer than" in remarks[0]
    assert "'lonely'" in remarks[1]
    assert check_population(config({"analyses": []}), SAMPLES, {}) == []
    assert check_population(config(), SAMPLES.drop(columns="population"), {}) == []


def test_blocks():
    assert parse_block("2 Mb") == (2e6, "bp") and parse_block("0.5cM") == (0.5, "cM")
    assert block_of(config()) == "2 Mb" and block_of(config(genetic_map="m.tsv")) == "5 cM"
    assert block_of(config({"block": "1 Mb"}, genetic_map="m.tsv")) == "1 Mb"
    sites = pd.DataFrame({"chrom": ["1"] * 6 + ["2"] * 2, "pos": [5, 9, 14, 15, 100, 104, 3, 4]})
    assert block_starts(sites, "10 bp").tolist() == [0, 3, 4, 6, 8]
    assert block_starts(sites, "1 kb").tolist() == [0, 6, 8]
    cm = np.array([0, 0, 1, 1, 1, 2.5, 0, 0])
    assert block_starts(sites, "1 cM", cm).tolist() == [0, 2, 5, 6, 8]
    assert spans(sites, 10) == (10 + 1 + 4) + (1 + 1)


def test_short_scaffolds_share_blocks(tmp_path):
    """Of more than 100 contigs, in the panel's order, until their lengths add up to a block."""
    lengths = [30, 50, 40, 500, 10, *[60] * 100]
    names = [f"scaffold_{k:03d}" for k in range(len(lengths))]
    rows = [(n, p) for n, length in zip(names, lengths, strict=True) for p in (3, length)]
    sites = pd.DataFrame(rows, columns=["chrom", "pos"])
    starts = block_starts(sites, "100 bp")
    # 30 + 50 + 40 are one block; 500 alone has two; 10 + 60 + 60 are one, then 60 + 60 each.
    assert starts[:6].tolist() == [0, 6, 7, 8, 14, 18]
    assert len(starts) - 1 == 1 + 2 + 1 + 49
    assert len(block_starts(sites[:200], "100 bp")) - 1 == 101  # 100 contigs: each by itself
    # A map that does not rise on a contig: 1 cM/Mb, so that not all of them are one block.
    flat = block_starts(sites.assign(pos=sites.pos * 10_000), "5 cM", np.zeros(len(sites)))
    assert flat[:4].tolist() == [0, 6, 8, 28] and len(flat) - 1 == 14
    mask = tmp_path / "m.bed"
    mask.write_text("".join(f"{n}\t2\t{k + 5}\n" for k, n in enumerate(names)))
    inside, base_pairs = in_mask(sites, starts, mask)
    assert base_pairs.sum() == sum(k + 3 for k in range(len(names)))
    assert base_pairs[0] == 3 + 4 + 5 and base_pairs[3] == 7 + 8 + 9
    assert inside.tolist() == [p <= names.index(n) + 5 for n, p in rows]
    sums = np.ones((len(starts) - 1, 1, len(PAIR_SUMS)))
    table = track_table(["A", "B"], sums, sites, starts)
    assert table.chrom[:4].tolist() == [
        "scaffold_000..scaffold_002", names[3], names[3], "scaffold_004..scaffold_006",
    ]  # fmt: skip
    assert table.end[:4].tolist() == [120, 3, 500, 130]


def test_many_contigs_take_no_longer_for_each(monkeypatch):
    """The roles of contigs are told once, not once a contig."""
    told = []
    monkeypatch.setattr(options, "genome_of", lambda *a: told.append(1) or genome_of(*a))
    contigs = {f"scaffold_{k}": 5000 for k in range(50)}
    assert check_population(config(), SAMPLES, contigs)
    assert len(told) == 1


def test_auto_blocks_with_a_map_that_lacks_a_contig(tmp_path, caplog):
    sites = pd.DataFrame({"chrom": ["1"] * 3 + ["2"], "pos": [1, 3_000_000, 9_000_000, 5]})
    genetic_map = tmp_path / "map.tsv"
    genetic_map.write_text("chrom\tpos\tcm\n1\t1\t0\n1\t10000000\t10\n")
    block, starts = choose_blocks(sites, "auto", str(genetic_map))
    assert block == "2 Mb" and starts.tolist() == [0, 1, 2, 3, 4]
    assert "contig '2' of the panel is not in the genetic map; add it" in caplog.text
    assert "blocks of populations are 2 Mb" in caplog.text
    with pytest.raises(UserError, match="contig '2' of the panel is not in the genetic map"):
        choose_blocks(sites, "5 cM", str(genetic_map))
    genetic_map.write_text(genetic_map.read_text() + "2\t1\t0\n2\t9\t1\n")
    block, starts = choose_blocks(sites, "auto", str(genetic_map))
    assert block == "5 cM" and starts.tolist() == [0, 2, 3, 4]


def test_masks(tmp_path):
    sites = pd.DataFrame({"chrom": ["1"] * 4 + ["2"], "pos": [1, 10, 20, 30, 7]})
    starts = np.array([0, 2, 4, 5])
    path = tmp_path / "m.bed"
    path.write_text("chr1\t0\t10\n1\t5\t15\n1\t24\t40\tname\n2\t7\t9\n3\t0\t99\n")
    inside, base_pairs = in_mask(sites, starts, path)
    assert inside.tolist() == [True, True, False, True, False]
    assert base_pairs.tolist() == [15, 16, 2]
    callable_ = {p for a, b in ((0, 10), (5, 15), (24, 40)) for p in range(a, b)}
    assert base_pairs[0] == len([p for p in callable_ if p < 19])
    for text, words in (
        ("1\tx\t9\n", "give chrom, start and end"),
        ("1\t9\t3\n", "ends before"),
        ("1\n", "BED"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=words):
            in_mask(sites, starts, path)
