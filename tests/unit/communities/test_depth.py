"""Depths of splits are Hudson's F_ST, from counts that equal slow ones."""

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes.scores import hudson_f_st as slow_f_st
from scenes.landscapes.splitting import split_trees
from support.plink_files import write_plink

from popdesic.communities import depth
from popdesic.communities.depth import (
    Counts,
    Genotypes,
    count_partitions,
    evenly,
    hudson_f_st,
    leaves_to_count,
    open_genotypes,
    with_depths,
)
from popdesic.communities.splits import (
    Split,
    cut_coarse,
    cut_tree,
    join_depths,
    least_coarse_depth,
    split_samples,
)
from popdesic.core.tables import write_npz


def random_genotypes(rng, n_sites, n):
    af = rng.uniform(0.05, 0.95, (n_sites, 1))
    genotypes = rng.binomial(2, af, (n_sites, n)).astype(np.int8)
    genotypes[rng.random((n_sites, n)) < 0.1] = -1
    return genotypes


def reader(genotypes):
    return lambda first, last: genotypes[first:last]


def genotypes_of(genotypes, unrelated=None):
    n_sites, n = genotypes.shape
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(n_sites) * 1_000_000})
    everyone = np.ones(n, bool) if unrelated is None else unrelated
    return Genotypes(reader(genotypes), sites, everyone)


@pytest.mark.parametrize("n_sites", [1, 6, 7, 8, 40])
def test_counts_equal_slow_ones(n_sites, monkeypatch, rng):
    monkeypatch.setattr(depth, "CHUNK_SITES", 7)
    genotypes = random_genotypes(rng, n_sites, 23)
    partitions = [rng.integers(-1, 4, 23), np.zeros(23, int), np.arange(23)]
    for partition, counts in zip(
        partitions, count_partitions(reader(genotypes), n_sites, partitions), strict=True
    ):
        assert counts.alt.shape == (partition.max() + 1, n_sites)
        for group in range(partition.max() + 1):
            for site in range(n_sites):
                own = [g for g in genotypes[site, partition == group].tolist() if g >= 0]
                assert counts.alt[group, site] == sum(own)
                assert counts.called[group, site] == 2 * len(own)


def test_f_st_is_hudsons_ratio_of_averages():
    rng = np.random.default_rng(1)
    genotypes = random_genotypes(rng, 300, 60)
    genotypes[:, 30:][rng.random((300, 30)) < 0.2] = 0
    group = np.arange(60) // 15
    (counts,) = count_partitions(reader(genotypes), 300, [group])
    for one, other in (([0], [2]), ([0, 1], [2, 3]), ([3], [0, 1, 2])):
        expected = slow_f_st(genotypes, np.isin(group, one), np.isin(group, other))
        assert hudson_f_st(counts, one, other) == pytest.approx(expected, rel=1e-9)
        assert expected > 0.005


def test_sites_that_one_half_lacks_do_not_count():
    counts = Counts(
        np.array([[3.0, 1.0, 4.0], [1.0, 0.0, 0.0]]), np.array([[4.0, 4.0, 4.0], [4.0, 0.0, 1.0]])
    )
    p, q = 3 / 4, 1 / 4
    within = p * (1 - p) / 3 + q * (1 - q) / 3
    expected = ((p - q) ** 2 - within) / (p * (1 - q) + q * (1 - p))
    assert hudson_f_st(counts, [0], [1]) == pytest.approx(expected)


def test_f_st_without_a_difference_is_zero():
    same = Counts(np.array([[2.0], [2.0]]), np.array([[4.0], [4.0]]))
    assert hudson_f_st(same, [0], [1]) == 0
    nothing = Counts(np.zeros((2, 3)), np.zeros((2, 3)))
    assert hudson_f_st(nothing, [0], [1]) == 0


def four_groups(rng, sizes=(40, 50, 45, 60)):
    """Two pairs of groups, F_ST 0.15 between the pairs and 0.01 within; points a little noisy."""

    def drift(af, f_st):
        scale = (1 - f_st) / f_st
        return np.clip(rng.beta(af * scale, (1 - af) * scale), 0.001, 0.999)

    root = rng.uniform(0.1, 0.9, 2_000)
    pairs = [drift(root, 0.15), drift(root, 0.15)]
    af = np.array([drift(pair, 0.01) for pair in pairs for _ in range(2)])
    group = np.repeat(np.arange(4), sizes)
    points = 0.3 * rng.normal(size=(len(group), 3))
    points[:, 0] += 40 * (group // 2)
    points[:, 1] += 8 * (group % 2)
    return points, group, rng.binomial(2, af[group].T).astype(np.int8)


def test_depths_are_f_st_between_halves_and_only_deep_splits_are_coarse():
    points, group, genotypes = four_groups(np.random.default_rng(2))
    (root,) = split_trees(points, genotypes_of(genotypes), [np.arange(len(group))])
    assert len(set(zip(group, cut_tree(root), strict=True))) == 4
    assert len(set(zip(group // 2, cut_coarse(root), strict=True))) == 2
    for node in root.walk():
        if node.halves:
            one, other = (np.isin(np.arange(len(group)), half.members) for half in node.halves)
            assert node.depth == pytest.approx(slow_f_st(genotypes, one, other), rel=1e-9)
        else:
            assert node.depth == 0
    assert root.deepest == root.depth > 0.1
    assert (join_depths(root) == root.depth).all()


def tree_of(*depths):
    """A tree of splits of these depths, each below the last, that parts one sample at a time."""
    node = Split(np.array([len(depths)]), None)
    for i, f_st in reversed(list(enumerate(depths))):
        node = Split(np.arange(i, len(depths) + 1), None, (Split(np.array([i]), None), node), f_st)
    return node


@pytest.mark.parametrize(
    ("depths", "least", "coarse"),
    [
        ((0.15, 0.035, 0.021, 0.019, 0.002), 0.02, 3),  # continents
        ((0.04, 0.025, 0.0135, 0.006), 0.016, 2),  # the same after a filter: two fifths
        ((0.01, 0.009, 0.0041, 0.0039), 0.004, 3),
        ((0.5, 0.06, 0.04), 0.05, 2),  # a tenth
        ((0.03,), 0.012, 1),
        ((0.0, 0.0), 0.0, 2),
    ],
)
def test_coarse_splits_have_an_f_st_of_continents(depths, least, coarse):
    root = tree_of(*depths)
    assert least_coarse_depth(root) == pytest.approx(least)
    assert cut_coarse(root).max() == coarse


def test_a_node_with_a_deep_split_below_it_is_split():
    """A shallow split above deep ones cannot be left out."""
    leaves = [Split(np.arange(i, i + 1), None) for i in range(4)]
    deep = [Split(np.arange(0, 2), None, tuple(leaves[:2]), 0.2)]
    deep.append(Split(np.arange(2, 4), None, tuple(leaves[2:]), 0.01))
    root = Split(np.arange(4), None, tuple(deep), 0.001)
    assert cut_coarse(root).tolist() == [0, 1, 2, 2]
    assert join_depths(root).tolist() == [0.2, 0.2, 0.001, 0.001]


def test_without_splits_there_is_one_group():
    root = Split(np.arange(5), None)
    assert least_coarse_depth(root) == 0 and not cut_coarse(root).any()


def test_relatives_do_not_count():
    rng = np.random.default_rng(3)
    points, group, genotypes = four_groups(rng)
    everyone = np.ones(len(group), bool)
    clones = genotypes.copy()
    clones[:, 5:20] = clones[:, :1]  # fifteen copies of one person
    unrelated = everyone.copy()
    unrelated[5:20] = False
    (whole,) = split_trees(points, genotypes_of(clones), [np.arange(len(group))])
    (root,) = split_trees(points, genotypes_of(clones, unrelated), [np.arange(len(group))])
    one, other = (np.isin(np.arange(len(group)), half.members) for half in root.halves)
    expected = slow_f_st(clones, one & unrelated, other & unrelated)
    assert root.depth == pytest.approx(expected, rel=1e-9)
    assert whole.depth != pytest.approx(expected, rel=1e-3)


def test_a_leaf_of_relatives_alone_counts_whole():
    points, group, _ = four_groups(np.random.default_rng(4))
    root = split_samples(points)
    counted = leaves_to_count(root, group != 1)
    assert (counted == cut_tree(root)).all()
    some = np.arange(len(group)) % 3 > 0
    assert (counted[some] == leaves_to_count(root, some)[some]).all()
    assert (leaves_to_count(root, some)[~some] == -1).all()


def test_trees_of_subsamples_are_those_of_each_alone(monkeypatch):
    monkeypatch.setattr(depth, "TREES", 2)
    rng = np.random.default_rng(5)
    points, group, genotypes = four_groups(rng)
    drawn = [np.sort(rng.permutation(len(group))[:150]) for _ in range(5)]
    found = split_trees(points, genotypes_of(genotypes), drawn)
    assert len({tree.depth for tree in found}) == 5
    for tree, own in zip(found, drawn, strict=True):
        (alone,) = split_trees(points[own], genotypes_of(genotypes[:, own]), [np.arange(150)])
        assert alone.depth == tree.depth
        assert (cut_coarse(alone) == cut_coarse(tree)).all()


def test_genotypes_come_in_the_order_of_the_matrices(tmp_path):
    rng = np.random.default_rng(6)
    genotypes = random_genotypes(rng, 9, 11)
    names = [f"s{i}" for i in range(11)]
    pos = (np.arange(9) * 10 + 10).tolist()
    write_plink(tmp_path / "a", genotypes[:, :6], names[:6], pos=pos)
    write_plink(tmp_path / "b", genotypes[:, 6:], names[6:], pos=pos)
    write_npz(tmp_path / "axes.npz", sites=np.array([1, 4, 8]))
    (tmp_path / "u.tsv").write_text("sample\tunrelated\ns0\tyes\ns5\tno\n")
    order = [7, 5, 0, 10]  # without most, and turned round
    found = open_genotypes(
        [tmp_path / "a", tmp_path / "b"],
        tmp_path / "axes.npz",
        tmp_path / "u.tsv",
        pd.Series(names)[order].reset_index(drop=True),
    )
    assert (found.read(0, 3) == genotypes[[1, 4, 8]][:, order]).all()
    assert (found.read(1, 2) == genotypes[[4]][:, order]).all()
    assert found.unrelated.tolist() == [True, False, True, True]
    assert found.sites.pos.tolist() == [20, 50, 90] and set(found.sites.chrom) == {"1"}


def test_haploids_count_one_copy():
    """Hudson's F_ST of two halves of alleles, site by site, and about 0 within one population."""
    rng = np.random.default_rng(8)
    alleles = rng.binomial(1, rng.uniform(0.2, 0.8, 4000)[:, None], (4000, 12))
    leaves = [Split(np.arange(6), None), Split(np.arange(6, 12), None)]
    root = Split(np.arange(12), None, tuple(leaves))
    genotypes = (2 * alleles).astype(np.int8)
    sites = pd.DataFrame({"chrom": "1", "pos": np.arange(4000)})
    found = {}
    for ploidy in (1, 2):
        opened = Genotypes(lambda a, b: genotypes[a:b], sites, np.ones(12, bool), ploidy)
        (tree,) = depth.measure_depths([root], opened, [np.arange(12)])
        found[ploidy] = tree.depth
    p, q = alleles[:, :6].mean(axis=1), alleles[:, 6:].mean(axis=1)
    within = p * (1 - p) / 5 + q * (1 - q) / 5
    between = (p * (1 - q) + q * (1 - p)).sum()
    assert found[1] == pytest.approx(max(0, ((p - q) ** 2 - within).sum() / between))
    assert found[1] < 0.02 < 0.07 < found[2]


def test_at_most_so_many_sites_are_counted(monkeypatch):
    monkeypatch.setattr(depth, "MOST_SITES", 4)
    assert evenly(np.array([3, 5, 9])).tolist() == [3, 5, 9]
    assert evenly(np.arange(100, 200)).tolist() == [100, 133, 166, 199]
    assert evenly(np.array([], np.int64)).tolist() == []


def test_a_tree_keeps_its_samples():
    points, _, genotypes = four_groups(np.random.default_rng(7))
    bare = split_samples(points)
    (counts,) = count_partitions(reader(genotypes), len(genotypes), [cut_tree(bare)])
    measured = with_depths(bare, counts)
    for one, other in zip(bare.walk(), measured.walk(), strict=True):
        assert (one.members == other.members).all() and one.gap == other.gap
