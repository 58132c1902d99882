"""Structure within communities: continua, finer groups and nothing are told apart."""

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes import scene
from scenes.landscapes.splitting import genotypes_of

from popdesic.communities import within
from popdesic.communities.founders import Founders
from popdesic.communities.within import structure_within
from popdesic.report.sections.communities import describe_structure, shown_agreement, split_rows


def place(*scenes):
    """Scenes side by side, each as one community, at sites of their own that others lack."""
    parts, community = [], []
    for number, one in enumerate(scenes, 1):
        sizes = [other.genotypes.shape[1] for other in scenes]
        block = np.zeros((len(one.genotypes), sum(sizes)), np.int8)
        start = sum(sizes[: number - 1])
        block[:, start : start + sizes[number - 1]] = one.genotypes
        parts.append(block)
        community += [number] * sizes[number - 1]
    genotypes = np.concatenate(parts)
    chrom = np.concatenate([one.chrom for one in scenes])
    pos = np.concatenate([one.pos for one in scenes])
    return genotypes_of(genotypes, chrom, pos), np.array(community)


@pytest.fixture(scope="module")
def islands():
    return scene("islands", 61, islands=3, per_island=40, f_st=0.03, sites=2_000)


@pytest.fixture(scope="module")
def scenes(islands):
    return place(
        scene("gradient", 61, people=120, sites=2_000),
        scene("panmixia", 61, people=100, sites=2_000),
        islands,
        scene("panmixia", 62, people=12, sites=500),
    )


@pytest.fixture(scope="module")
def both(scenes):
    return structure_within(*scenes)


@pytest.fixture(scope="module")
def fine(both):
    return both[0]


@pytest.fixture(scope="module")
def found(both):
    return both[1]


def test_each_community_is_called_what_it_is(found):
    kinds = [one["structure"] for one in found]
    assert kinds == ["continuous", "one", "discrete", "unknown"]
    assert [one["significant"] for one in found] == [1, 0, 2, None]
    assert [one["samples"] for one in found] == [120, 100, 120, 12]
    assert [one["fine"] for one in found] == [1, 1, 3, 1]


def test_islands_of_a_community_are_its_finer_groups(fine, islands):
    own = islands.populations
    assert len(np.unique(fine[220:340])) == 3
    assert len(set(zip(fine[220:340], own, strict=True))) == 3
    assert not fine[:220].any() and not fine[340:].any()


def test_others_are_placed_among_those_who_define_the_axes(islands):
    """Relatives and newcomers of an island go with it, and change nothing of the founders'."""
    genotypes, n = islands.genotypes, 120
    rng = np.random.default_rng(1)
    founders = np.arange(n) % 3 > 0
    children = rng.binomial(1, genotypes[:, founders] / 2) + rng.binomial(
        1, genotypes[:, founders] / 2
    )
    everyone = np.hstack([genotypes[:, founders], genotypes[:, ~founders], children[:, ::8]])
    own = np.concatenate([islands.populations[founders], islands.populations[~founders]])
    own = np.concatenate([own, islands.populations[founders][::8]])
    unrelated = np.arange(len(own)) < n
    opened = genotypes_of(everyone.astype(np.int8), islands.chrom, islands.pos, unrelated)
    known = Founders(np.arange(len(own)) < founders.sum())
    fine, (about,) = structure_within(opened, np.ones(len(own), int), known=known)
    assert about["fine"] == 3 and about["splits"][0]["samples"] == founders.sum()
    assert len(set(zip(fine, own, strict=True))) == 3
    alone = genotypes_of(genotypes[:, founders], islands.chrom, islands.pos)
    assert (structure_within(alone, np.ones(80, int))[0] == fine[:80]).all()


def test_threads_and_batches_change_nothing(both, scenes, monkeypatch):
    def is_same(again):
        return (again[0] == both[0]).all() and again[1] == both[1]

    assert is_same(structure_within(*scenes, threads=3))
    monkeypatch.setattr(within, "READ_SAMPLES", 150)
    assert list(within._batches([120, 100, 120, 0])) == [(0, 1), (1, 2), (2, 4)]
    assert is_same(structure_within(*scenes, threads=2))


def test_the_page_says_so(found):
    split = {
        "samples": 352,
        "halves": [120, 232],
        "f_st": 0.1,
        "dip": 0.2,
        "p": 0.0,
        "valley": 0.0,
    }
    about = {"samples": 352, "significant": 4, "components": 4, "structure": "discrete"}
    about |= {"splits": [split], "communities": 4, "fine": 6, "within": found}
    about |= {"coarse_f_st": 0.02, "between": []}
    text = describe_structure(about)
    assert "Within community 1, components computed there are significant, but leave no gap" in text
    assert "Within community 2, no component computed there is significant." in text
    assert "alone divide these into 6 finer communities" in text
    assert "Within community 3, components computed there separate finer groups." in text
    assert "Within community 4, there are too few" in text
    rows = split_rows(about)
    shown = sorted(found[2]["splits"], key=lambda split: -split["f_st"])
    assert {split["samples"] for split in shown} == {120, 80} and shown[1]["f_st"] > 0.01
    assert [row["components"] for row in rows] == ["all samples", *["community 3"] * 2]
    assert [row["samples"] for row in rows] == ["352", *(str(split["samples"]) for split in shown)]
    assert "between communities" not in text
    bridges = [{"communities": [1, 3], "samples": 4}, {"communities": [1, 2, 4], "samples": 1}]
    text = describe_structure(about | {"between": bridges})
    assert (
        "5 samples lie between communities, as mixed ancestry would "
        "(4 between 1 and 3, 1 between 1, 2 and 4)" in text
    )
    about["within"] = [one | {"structure": "one"} for one in found]
    assert "Within communities 1, 2, 3 and 4, no component" in describe_structure(about)


def test_relatives_make_no_structure():
    """Twenty children of one couple among unrelated people."""
    rng = np.random.default_rng(1)
    drawn = scene("panmixia", 64, people=100, sites=2_000)
    children = np.sum(
        [rng.binomial(1, drawn.genotypes[:, [i]] / 2, (2_000, 20)) for i in (0, 1)], 0
    )
    genotypes = np.hstack([drawn.genotypes, children.astype(np.int8)])
    unrelated = np.arange(120) < 100
    for known, expected in ((unrelated, False), (np.ones(120, bool), True)):
        opened = genotypes_of(genotypes, drawn.chrom, drawn.pos, known)
        _, (one,) = structure_within(opened, np.ones(120, int))
        assert (one["significant"] > 0) == expected


def test_sites_that_do_not_vary_are_no_structure():
    opened = genotypes_of(np.ones((50, 30), np.int8), np.repeat("1", 50), np.arange(50))
    _, (one,) = structure_within(opened, np.ones(30, int))
    assert (one["significant"], one["structure"]) == (0, "one")


def test_labels_that_agree_best_come_first():
    """Without levels of blocks, labels of many values, and a minus before zero."""
    rows = [
        ("sex", "community", 2, "-0.0001", "0.0"),
        ("group", "community", 4, "0.99123", "0.98"),
        ("group", "hdbscan", 4, "0.9", "0.9"),
        ("group", "level0", 4, "1.0", "1.0"),
        ("age", "community", 69, "0.999", "0.9"),
        ("group", "fine", 4, "0.5", "0.5"),
    ]
    table = pd.DataFrame(rows, columns=["label", "partition", "labels", "ari", "ami"])
    shown = shown_agreement(table, {"fine": 4, "communities": 4})
    assert [(row["label"], row["partition"], row["ari"]) for row in shown] == [
        ("group", "community", "0.991"),
        ("group", "hdbscan", "0.900"),
        ("sex", "community", "0.000"),
    ]
