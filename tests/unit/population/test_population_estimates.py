"""Estimates between and within populations against slow versions, scikit-allel and PLINK."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from oracles import population as reference
from support.plink_files import write_plink

from popdesic.population.allele_counts import PopulationCounts
from popdesic.population.allele_sums_cpu import own_sums, pair_sums, private_sums
from popdesic.population.differentiation import (
    _splits,
    pair_table,
    population_tree,
    track_table,
)
from popdesic.population.diversity import population_table, spectrum
from popdesic.population.f_statistics import f2_blocks, f3_screen, f4_tests
from popdesic.population.jackknife import jackknife
from popdesic.population.r_files import write_rds_array
from popdesic.population.sum_names import OWN_SUMS, PAIR_SUMS

#: Floating-point sums in another order: a few units in the last place of sums of thousands.
ROUNDING = 1e-9


def scene(seed, n_sites=300, sizes=(9, 12, 7, 2), missing=0.05):
    """Genotypes of four populations with missing genotypes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(list("ABCD")[: len(sizes)], sizes)
    common = rng.uniform(0.02, 0.98, n_sites)
    columns = []
    for name in labels:
        p = np.clip(common + 0.1 * (ord(name) - 65) * np.cos(np.arange(n_sites)), 0, 1)
        columns.append(rng.binomial(2, p))
    genotypes = np.column_stack(columns).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    genotypes[: n_sites // 20] = 0
    return genotypes, labels


def sums_of(counts, starts, masked=None, threads=1):
    masked = np.zeros(len(counts.alleles), bool) if masked is None else masked
    return pair_sums(counts.alleles, counts.genotypes, masked, starts, threads)


def alleles_of(genotypes):
    """One column an allele, -1 missing."""
    first = np.where(genotypes < 0, -1, (genotypes == 2).astype(int))
    second = np.where(genotypes < 0, -1, (genotypes > 0).astype(int))
    return np.column_stack([first, second])


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65])
def test_pairs_are_those_of_the_slow_version(make_counts, n_sites):
    genotypes, labels = scene(n_sites, n_sites)
    counts = make_counts(genotypes, labels)
    starts = np.unique([0, n_sites // 3, n_sites])
    sums = sums_of(counts, starts)
    np.testing.assert_array_equal(sums, sums_of(counts, starts, threads=3))
    total = dict(zip(PAIR_SUMS, sums.sum(axis=0).T, strict=True))
    for k, (a, b) in enumerate(combinations("ABCD", 2)):
        x, y = genotypes[:, labels == a], genotypes[:, labels == b]
        top, bottom, sites = reference.hudson(alleles_of(x), alleles_of(y))
        assert total["sites"][k] == sites
        np.testing.assert_allclose([total["f2"][k], total["d"][k]], [top, bottom], atol=ROUNDING)
        differences, pairs = reference.sharing_distance(x, y)
        assert (total["differences"][k], total["pairs"][k]) == (differences, pairs)
        parts = np.zeros(3)
        for s in range(n_sites):
            groups = [g[s][g[s] >= 0].astype(float) for g in (x, y)]
            if all(map(len, groups)) and sum(map(len, groups)) > 2:
                parts += reference.weir_cockerham(groups)
        found = [total[name][k] for name in "abc"]
        np.testing.assert_allclose(found, parts, atol=ROUNDING)


def test_everyone_missing_and_monomorphic(make_counts):
    labels = np.repeat(["A", "B"], 3)
    for state in (-1, 0, 2):
        counts = make_counts(np.full((20, 6), state, np.int8), labels)
        table = pair_table(counts, sums_of(counts, np.array([0, 10, 20])))
        assert np.isnan(table.fst[0]) and np.isnan(table.weir_cockerham[0])
        assert table.sites[0] == (0 if state < 0 else 20)
        own = own_sums(counts.alleles, counts.genotypes, np.ones(20, bool), np.array([0, 20]))
        assert not own[..., [3, 4, 6, 7, 8]].any()


def test_own_sums(make_counts):
    genotypes, labels = scene(3)
    counts = make_counts(genotypes, labels)
    own = own_sums(counts.alleles, counts.genotypes, np.zeros(300, bool), np.array([0, 100, 300]))
    found = dict(zip(OWN_SUMS, own.sum(axis=0).T, strict=True))
    for k, name in enumerate("ABCD"):
        x = genotypes[:, labels == name]
        called = (x >= 0).sum(axis=1)
        het = np.array([(row == 1).sum() for row in x])
        assert found["sites"][k] == (called > 0).sum() and found["called"][k] == 2 * called.sum()
        np.testing.assert_allclose(found["ho"][k], (het[called > 0] / called[called > 0]).sum())
        pairs = [
            np.mean([i != j for i, j in combinations(row[row >= 0], 2)])
            for row in alleles_of(x)
            if (row >= 0).sum() > 1
        ]
        np.testing.assert_allclose([found["he"][k], found["he_diploid"][k]], [sum(pairs)] * 2)
    table = population_table(counts, own, np.array([0, 100, 300]))
    assert (table.population == list("ABCD")).all() and table.pi.isna().all()
    np.testing.assert_allclose(table.f, 1 - found["ho"] / found["he_diploid"])


@pytest.mark.parametrize("drawn", [1, 2, 4])
def test_private_alleles_are_those_of_all_draws(make_counts, drawn):
    """Every set of so many alleles of each population, one by one."""
    genotypes, labels = scene(17, 40, (4, 3, 2), missing=0.1)
    counts, starts = make_counts(genotypes, labels), np.array([0, 15, 40])
    found, sites = private_sums(counts.alleles, starts, drawn)
    wanted, compared = np.zeros((2, 3)), np.zeros(2)
    for s in range(40):
        own = [alleles_of(genotypes[s : s + 1, labels == name])[0] for name in "ABC"]
        own = [row[row >= 0] for row in own]
        if min(map(len, own)) < drawn:
            continue
        compared[int(s >= 15)] += 1
        draws = [[set(map(int, d)) for d in combinations(row, drawn)] for row in own]
        for k in range(3):
            for allele in (0, 1):
                without = [np.mean([allele not in d for d in each]) for each in draws]
                others = np.prod([without[j] for j in range(3) if j != k])
                wanted[int(s >= 15), k] += (1 - without[k]) * others
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_array_equal(sites, compared)
    assert (sites.sum() < 40) == (drawn == 4) and (found.sum(axis=0) > 0.05).all()


def test_private_alleles_do_not_count_samples(make_counts):
    """Alike populations of 5 and 80 samples have as many of them, with honest errors."""
    draws, z = 60, []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.3, 0.9, 2000)
        genotypes = [rng.binomial(2, np.repeat(p[:, None], n, axis=1)) for n in (5, 80, 20)]
        genotypes = np.concatenate(genotypes, axis=1)
        counts = make_counts(genotypes.astype(np.int8), np.repeat(list("ABC"), (5, 80, 20)))
        starts = np.arange(0, 2001, 50)
        own = own_sums(counts.alleles, counts.genotypes, np.zeros(2000, bool), starts)
        table = population_table(counts, own, starts)
        assert set(table.private_alleles) == {10}
        z.append((table.private[1] - table.private[0]) / np.hypot(*table.private_error[:2]))
    # Errors of both as if they were independent: the z of 60 draws lie within four of their own.
    assert abs(np.mean(z)) < 4 / np.sqrt(draws) and 0.5 < np.std(z) < 1.5
    alone = make_counts(genotypes[:, :5].astype(np.int8), np.repeat(["A"], 5))
    own = own_sums(alone.alleles, alone.genotypes, np.zeros(2000, bool), starts)
    assert population_table(alone, own, starts).private.isna().all()


def own_difference(counts: PopulationCounts) -> np.ndarray:
    """p (1 - p) / (n - 1), NaN below two alleles: float64 (n_sites, n_populations)."""
    n, alt = counts.alleles[..., 0].astype(np.float64), counts.alleles[..., 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 1, alt * (n - alt) / (n * n * (n - 1)), np.nan)


def test_f_statistics_are_those_of_the_slow_version(make_counts):
    genotypes, labels = scene(4)
    counts = make_counts(genotypes, labels)
    starts = np.array([0, 50, 120, 200, 300])
    table = f3_screen(counts, starts).set_index(["target", "source1", "source2"])
    assert len(table) == 4 * 3
    p = {n: counts.frequencies[:, k] for k, n in enumerate("ABCD")}
    own = {n: own_difference(counts)[:, k] for k, n in enumerate("ABCD")}
    for (c, a, b), row in table.iterrows():
        each = (p[c] - p[a]) * (p[c] - p[b]) - own[c]
        assert row.sites == np.isfinite(each).sum()
        np.testing.assert_allclose(row.f3, np.nanmean(each), rtol=ROUNDING)
    test = f4_tests(counts, starts, [list("ACBD"), ["A", "B", "C", "nobody"]])
    assert len(test) == 1
    each = (p["A"] - p["C"]) * (p["B"] - p["D"])
    np.testing.assert_allclose(test.f4[0], np.nanmean(each), rtol=ROUNDING)
    below = (p["A"] + p["C"] - 2 * p["A"] * p["C"]) * (p["B"] + p["D"] - 2 * p["B"] * p["D"])
    np.testing.assert_allclose(test.d_statistic[0], np.nansum(each) / np.nansum(below))
    blocks, sizes = f2_blocks(counts, starts)
    complete = np.isfinite(own_difference(counts)).all(axis=1)
    assert sizes.sum() == complete.sum()
    f2 = np.average(blocks, axis=-1, weights=sizes)
    each = (p["A"] - p["B"]) ** 2 - own["A"] - own["B"]
    np.testing.assert_allclose(f2[0, 1], each[complete].mean(), rtol=ROUNDING)
    assert not np.diagonal(f2).any() and (f2 == f2.T).all()


def test_the_jackknife_is_the_ordinary_one_with_equal_blocks():
    rng = np.random.default_rng(5)
    top, sites = rng.normal(1, 1, 30), np.full(30, 7.0)
    found = jackknife(top, sites, sites)
    without = (top.sum() - top) / (sites.sum() - sites)
    error = np.sqrt(29 / 30 * ((without - without.mean()) ** 2).sum())
    np.testing.assert_allclose([found.value, found.error], [top.sum() / 210, error])
    assert found.blocks == 30 and found.sites == 210
    # Busing et al. (1999), equations written out, with unequal blocks and one empty block.
    sites = np.concatenate([rng.integers(1, 30, 29).astype(float), [0]])
    top = np.where(sites > 0, sites * rng.normal(1, 0.3, 30), 0)
    found = jackknife(top, sites, sites)
    kept = [j for j in range(30) if sites[j]]
    value, n, g = top.sum() / sites.sum(), sites.sum(), len(kept)
    out = {j: (top.sum() - top[j]) / (n - sites[j]) for j in kept}
    mean = g * value - sum((1 - sites[j] / n) * out[j] for j in kept)
    pseudo = {j: n / sites[j] * value - (n / sites[j] - 1) * out[j] for j in kept}
    variance = sum((pseudo[j] - mean) ** 2 / (n / sites[j] - 1) for j in kept) / g
    np.testing.assert_allclose(found.error, np.sqrt(variance))
    assert found.blocks == 29


def test_the_error_of_one_block_is_unknown():
    found = jackknife(*[np.array([3.0])] * 3)
    assert found.value == 1 and np.isnan(found.error) and np.isnan(found.z)


def test_estimates_are_those_of_scikit_allel(make_counts):
    """Hudson, Weir-Cockerham, f2, f3, f4, D and their errors, at 1e-9."""
    allel = pytest.importorskip("allel")
    genotypes, labels = scene(6, 600, (9, 12, 7, 8), missing=0)
    genotypes = genotypes[30:]  # sites without an alternative allele have no F_ST there
    counts = make_counts(genotypes, labels)
    starts = np.arange(0, len(genotypes) + 1, 30)
    arrays = allel.GenotypeArray(
        np.stack([(genotypes == 2), (genotypes > 0)], axis=-1).astype(np.int8)
    )
    subpops = [np.flatnonzero(labels == name) for name in "ABCD"]
    ac = [arrays.count_alleles(subpop=s, max_allele=1) for s in subpops]
    table = pair_table(counts, sums_of(counts, starts))
    for k, (i, j) in enumerate(combinations(range(4), 2)):
        fst, error, *_ = allel.average_hudson_fst(ac[i], ac[j], 30)
        np.testing.assert_allclose([table.fst[k], table.error[k]], [fst, error], atol=ROUNDING)
        wc, error, *_ = allel.average_weir_cockerham_fst(arrays, [subpops[i], subpops[j]], 30)
        found = [table.weir_cockerham[k], table.weir_cockerham_error[k]]
        np.testing.assert_allclose(found, [wc, error], atol=ROUNDING)
        f2 = allel.patterson_f2(ac[i], ac[j]).mean()
        np.testing.assert_allclose(table.f2[k], f2, atol=ROUNDING)
    screen = f3_screen(counts, starts).set_index(["target", "source1", "source2"])
    for c, a, b in ((0, 1, 2), (3, 0, 1)):
        t, _ = allel.patterson_f3(ac[c], ac[a], ac[b])
        row = screen.loc[tuple("ABCD"[k] for k in (c, a, b))]
        np.testing.assert_allclose(row.f3, t.mean(), atol=ROUNDING)
    test = f4_tests(counts, starts, [list("ABCD")])
    d, error, z, *_ = allel.average_patterson_d(*ac, 30)
    found = [test.d_statistic[0], test.d_error[0], test.d_z[0]]
    np.testing.assert_allclose(found, [d, error, z], rtol=1e-8)
    own = own_sums(counts.alleles, counts.genotypes, np.ones(len(genotypes), bool), starts)
    pos = np.arange(1, len(genotypes) + 1)
    base_pairs = np.diff(starts).astype(float)
    diversity = population_table(counts, own, starts, base_pairs)
    for k in range(4):
        pi = allel.sequence_diversity(pos, ac[k], start=1, stop=len(genotypes))
        np.testing.assert_allclose(diversity.pi[k], pi, atol=ROUNDING)
        he = allel.heterozygosity_expected(ac[k].to_frequencies(), ploidy=2)
        n = 2 * (labels == "ABCD"[k]).sum()
        np.testing.assert_allclose(diversity.expected[k], he.mean() * n / (n - 1), atol=ROUNDING)
        ho = allel.heterozygosity_observed(arrays.take(subpops[k], axis=1)).mean()
        np.testing.assert_allclose(diversity.observed[k], ho, atol=ROUNDING)
    masked = sums_of(counts, starts, np.ones(len(genotypes), bool))
    d_xy = pair_table(counts, masked, base_pairs).d_xy[0]
    theirs = allel.sequence_divergence(pos, ac[0], ac[1], start=1, stop=len(genotypes))
    np.testing.assert_allclose(d_xy, theirs, atol=ROUNDING)


def test_spectra(make_counts):
    genotypes, labels = scene(7, 400, (5, 8), missing=0)
    counts = make_counts(genotypes, labels)
    table = spectrum(counts)
    assert set(table.alleles) == {10}
    np.testing.assert_allclose(table.groupby("population").sites.sum(), 400)
    a = table[table.population == "A"]
    np.testing.assert_allclose(a.sites, np.bincount(counts.alleles[:, 0, 1], minlength=11))
    folded = np.minimum(counts.alleles[:, 0, 1], 10 - counts.alleles[:, 0, 1])
    np.testing.assert_allclose(a.folded, np.bincount(folded, minlength=11))
    # Projection: drawing 10 of 16 alleles, by the hypergeometric distribution.
    from scipy.stats import hypergeom

    b = table[table.population == "B"]
    wanted = sum(hypergeom.pmf(np.arange(11), 16, k, 10) for k in counts.alleles[:, 1, 1])
    np.testing.assert_allclose(b.sites, wanted, atol=1e-9)
    np.testing.assert_allclose(b.folded.sum(), 400)


def test_spectra_with_missing_genotypes(make_counts):
    genotypes, labels = scene(8, 200, (9, 12), missing=0.1)
    table = spectrum(make_counts(genotypes, labels))
    m = table.alleles.iloc[0]
    assert m % 2 == 0 and 2 <= m < 18
    sums = table.groupby("population")[["sites", "folded", "sites_used"]].agg(
        {"sites": "sum", "folded": "sum", "sites_used": "first"}
    )
    np.testing.assert_allclose(sums.sites, sums.sites_used)
    np.testing.assert_allclose(sums.folded, sums.sites_used)
    nobody = make_counts(np.full((5, 4), -1, np.int8), np.repeat(["A", "B"], 2))
    assert spectrum(nobody).empty


def test_pseudo_haploid_samples_count_one_allele(make_counts):
    """One read a site: f2 and F_ST stay unbiased with them, and would not with two alleles."""
    rng = np.random.default_rng(9)
    n_sites = 40_000
    p = rng.uniform(0.1, 0.9, n_sites)
    q = np.clip(p + rng.normal(0, 0.08, n_sites), 0, 1)
    diploid = rng.binomial(2, np.repeat(p[:, None], 10, axis=1))
    single = 2 * rng.binomial(1, np.repeat(q[:, None], 5, axis=1))
    genotypes = np.column_stack([diploid, single]).astype(np.int8)
    labels = np.repeat(["A", "B"], [10, 5])
    starts = np.arange(0, n_sites + 1, 500)
    truth = ((p - q) ** 2).mean()
    haploid = np.arange(15) >= 10
    right = pair_table(*(c := make_counts(genotypes, labels, haploid),), sums_of(c, starts))
    wrong = pair_table(*(c := make_counts(genotypes, labels),), sums_of(c, starts))
    assert abs(right.f2[0] - truth) < 4 * right.f2_error[0]
    assert wrong.f2[0] - truth > 20 * wrong.f2_error[0]
    assert np.isnan(right.weir_cockerham[0])


def test_tree_and_its_support():
    """((A, B), (C, D)) with long inner branch; with no signal the support is low."""
    rng = np.random.default_rng(10)
    names, n_blocks = ["A b", "B", "C", "D", "E"], 60
    own, inner = 1.0, 2.0
    pairs = list(combinations(range(5), 2))
    sides = [0, 0, 1, 1, 1]
    truth = np.array([2 * own + inner * (sides[i] != sides[j]) for i, j in pairs])
    sums = np.zeros((n_blocks, len(pairs), len(PAIR_SUMS)))
    sums[..., 0] = 10
    sums[..., 1] = 10 * (truth + rng.normal(0, 0.3, (n_blocks, len(pairs))))
    tree = population_tree(names, sums, draws=100, seed=1)
    assert tree.endswith(";") and "'A b':" in tree and all(name in tree for name in "BCDE")
    assert ")100:" in tree
    assert tree.count(")") == 3  # two inner branches and the root
    sums[..., 1] = 10 * (2 + rng.normal(0, 0.3, (n_blocks, len(pairs))))
    star = population_tree(names, sums, draws=100, seed=1)
    marks = [int(word.split(":")[0]) for word in star.split(")")[1:] if word[0].isdigit()]
    assert len(marks) == 2 and max(marks) < 95
    assert population_tree(names[:2], sums[:, :1], draws=5, seed=1) == ""
    assert ")100:" not in population_tree(names, sums, draws=0, seed=1)


def test_branches_do_not_depend_on_the_root():
    trees = ("((0:1,1:1):1,2:1,(3:1,4:1):1);", "(0:1,1:1,(2:1,(3:1,4:-2e-05):1):1);")
    wanted = {frozenset({2, 3, 4}), frozenset({3, 4})}
    assert [_splits(tree, 5) for tree in trees] == [wanted, wanted]


def test_tracks_name_the_highest_pair(make_counts):
    genotypes, labels = scene(11)
    counts = make_counts(genotypes, labels)
    sites = pd.DataFrame({"chrom": ["1"] * 200 + ["2"] * 100, "pos": np.arange(300) + 5})
    starts = np.array([0, 100, 200, 300])
    sums = sums_of(counts, starts)
    table = track_table(counts.names, sums, sites, starts)
    assert table.chrom.tolist() == ["1", "1", "2"] and table.start.tolist() == [5, 105, 205]
    assert table.end.tolist() == [104, 204, 304] and table.sites.tolist() == [100] * 3
    each = sums[1, :, 1] / sums[1, :, 2]
    best = list(combinations("ABCD", 2))[int(np.nanargmax(each))]
    assert (table.population1[1], table.population2[1]) == best
    np.testing.assert_allclose(table.highest[1], np.nanmax(each))
    np.testing.assert_allclose(table.fst[1], sums[1, :, 1].sum() / sums[1, :, 2].sum())


def read_rds(path):
    """A numeric array with dimnames, read byte by byte after R Internals."""
    data = gzip.decompress(path.read_bytes())
    assert data[:14] == b"X\n" + struct.pack(">iii", 2, 0x030500, 0x020300)
    place = 14

    def word():
        nonlocal place
        place += 4
        return struct.unpack(">i", data[place - 4 : place])[0]

    def text():
        nonlocal place
        assert word() & 255 == 9
        n = word()
        place += n
        return data[place - n : place].decode()

    def tag():
        assert (word() & 255, word()) == (2, 1)
        return text()

    assert word() == 14 | 512
    n = word()
    values = np.frombuffer(data[place : place + 8 * n], ">f8")
    place += 8 * n
    assert tag() == "dim" and word() == 13
    shape = [word() for _ in range(word())]
    assert tag() == "dimnames" and word() == 19
    names = []
    for _ in range(word()):
        assert word() == 16
        names.append([text() for _ in range(word())])
    assert word() == 254 and place == len(data)
    return values.reshape(shape, order="F"), names


def test_arrays_for_r(tmp_path):
    values = np.random.default_rng(1).normal(size=(2, 2, 3))
    names = [["A", "é"], ["A", "é"], ["l3", "l4", "l5"]]
    write_rds_array(tmp_path / "a.rds", values, names)
    found, own = read_rds(tmp_path / "a.rds")
    assert own == names
    np.testing.assert_array_equal(found, values)
    if not shutil.which("Rscript"):
        return
    program = "x = readRDS('a.rds'); cat(dim(x), x[2, 1, 3], dimnames(x)[[3]])"
    done = subprocess.run(
        ["Rscript", "-e", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    words = done.stdout.split()
    assert words[:3] == ["2", "2", "3"] and words[4:] == names[2]
    np.testing.assert_allclose(float(words[3]), values[1, 0, 2], rtol=1e-6)


@pytest.mark.peer
def test_weir_cockerham_is_that_of_plink(tmp_path, make_counts):
    """`plink1.9 --fst --within` of two populations: each site, and the weighted mean."""
    if not shutil.which("plink1.9"):
        pytest.skip("plink1.9 is not installed")
    genotypes, labels = scene(12, 500, (20, 30))
    names = [f"s{k}" for k in range(50)]
    write_plink(tmp_path / "a", genotypes, names)
    rows = zip(names, labels, strict=True)
    (tmp_path / "w").write_text("".join(f"0 {s} {p}\n" for s, p in rows))
    done = subprocess.run(
        ["plink1.9", "--bfile", "a", "--fst", "--within", "w", "--out", "p"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    theirs = pd.read_csv(tmp_path / "p.fst", sep="\t").FST.to_numpy()
    counts = make_counts(genotypes, labels)
    sums = sums_of(counts, np.arange(501))[:, 0]
    a, b, c = (sums[:, PAIR_SUMS.index(name)] for name in "abc")
    with np.errstate(invalid="ignore"):
        ours = a / (a + b + c)
    known = np.isfinite(theirs)
    # PLINK prints six significant digits.
    np.testing.assert_allclose(ours[known], theirs[known], rtol=1e-5, atol=1e-9)
    weighted = float(done.stdout.split("Weighted Fst estimate:")[1].split()[0])
    np.testing.assert_allclose(a.sum() / (a + b + c).sum(), weighted, rtol=1e-5)


def empty_counts() -> PopulationCounts:
    nothing = np.zeros(0, np.int64)
    return PopulationCounts(
        [], nothing, nothing, np.zeros((9, 0, 2), np.int32), np.zeros((9, 0, 3), np.int32)
    )


def test_no_population_at_all():
    counts, starts = empty_counts(), np.array([0, 9])
    assert pair_table(counts, sums_of(counts, starts)).empty
    own = own_sums(counts.alleles, counts.genotypes, np.zeros(9, bool), starts)
    assert population_table(counts, own, starts).empty
    assert f3_screen(counts, starts).empty and f4_tests(counts, starts, []).empty
    assert spectrum(counts).empty
