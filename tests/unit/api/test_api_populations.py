"""Functions on populations equal their definitions and the oracle of runs."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.population import hudson, runs_of, weir_cockerham
from oracles.reference import draw_genotypes

import popdesic

SIZES = (1, 15, 17, 63, 64, 65, 130)


def draw(n: int, n_sites: int, missing: float = 0.1, seed: int = 1) -> np.ndarray:
    return draw_genotypes(np.random.default_rng([seed, n_sites]), n, n_sites, missing)


def alleles_of(genotypes: np.ndarray, single: np.ndarray) -> np.ndarray:
    """Alleles (n_sites, 2 n), -1 where missing; one of a pseudo-haploid person."""
    first = np.where(genotypes < 0, -1, genotypes > 0)
    second = np.where(genotypes < 0, -1, genotypes == 2)
    second[single] = -1
    first[single] = np.where(genotypes[single] < 0, -1, genotypes[single] // 2)
    return np.concatenate([first, second]).T


LABELS = np.array(["b", "a", "NA", "c", "b", "a", "d", "b", "c", "d", "c", "a", "d", ""])
SINGLE = np.arange(14) % 7 == 4


def case(n_sites: int, missing: float):
    """Genotypes, in which people of `SINGLE` have no heterozygous one, and alleles by label."""
    genotypes = draw(14, n_sites, missing)
    genotypes[SINGLE] = np.where(genotypes[SINGLE] == 1, 2, genotypes[SINGLE])
    alleles = {
        name: alleles_of(genotypes[name == LABELS], SINGLE[name == LABELS]) for name in "abcd"
    }
    return genotypes, alleles


def frequencies(alleles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Alleles called, and frequency of ALT: (n_sites,)."""
    called = (alleles >= 0).sum(axis=1)
    return called, np.where(alleles > 0, 1, 0).sum(axis=1) / np.maximum(called, 1)


@pytest.mark.parametrize("n_sites", SIZES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_f_st_is_hudsons(n_sites, missing):
    genotypes, alleles = case(n_sites, missing)
    found = popdesic.f_st(genotypes, LABELS, pseudo_haploid=SINGLE)
    assert len(found) == 6
    for row in found.itertuples():
        top, bottom, sites = hudson(alleles[row.population1], alleles[row.population2])
        assert row.sites == sites
        expected = top / bottom if bottom else np.nan
        np.testing.assert_allclose(row.fst, expected, rtol=1e-9, atol=1e-12, equal_nan=True)


def test_weir_cockerham_counts_diploid_people():
    genotypes, _ = case(65, 0.2)
    found = popdesic.f_st(genotypes, LABELS, pseudo_haploid=SINGLE)
    for row in found.itertuples():
        own = [genotypes[(name == LABELS) & ~SINGLE] for name in row[1:3]]
        sums = np.zeros(3)
        for site in range(65):
            groups = [rows[:, site][rows[:, site] >= 0] for rows in own]
            if min(map(len, groups)) and sum(map(len, groups)) > 2:
                sums += np.nan_to_num(weir_cockerham(groups))
        assert row.weir_cockerham == pytest.approx(sums[0] / sums.sum(), rel=1e-9)


def test_f_statistics_and_errors_are_those_of_the_definitions():
    """Patterson et al. 2012; the error of D by leaving out one of 20 equal blocks."""
    genotypes, alleles = case(400, 0.0)
    n, p = {}, {}
    for name, own in alleles.items():
        n[name], p[name] = frequencies(own)
    v = {name: p[name] * (1 - p[name]) / (n[name] - 1) for name in p}
    options = {"blocks": 20, "pseudo_haploid": SINGLE}
    for row in popdesic.f2(genotypes, LABELS, **options).itertuples():
        a, b = row.population1, row.population2
        expected = ((p[a] - p[b]) ** 2 - v[a] - v[b]).mean()
        assert row.f2 == pytest.approx(expected, rel=1e-9) and row.blocks == 20
        assert row.z == pytest.approx(row.f2 / row.error)
    for row in popdesic.f3(genotypes, LABELS, **options).itertuples():
        c, a, b = row.target, row.source1, row.source2
        expected = ((p[c] - p[a]) * (p[c] - p[b]) - v[c]).mean()
        assert row.f3 == pytest.approx(expected, rel=1e-9, abs=1e-12)
    (row,) = popdesic.f4(genotypes, LABELS, ["abcd"], **options).itertuples()
    a, b, c, d = (p[name] for name in "abcd")
    top = ((a - b) * (c - d)).reshape(20, 20).sum(axis=1)
    bottom = ((a + b - 2 * a * b) * (c + d - 2 * c * d)).reshape(20, 20).sum(axis=1)
    without = (top.sum() - top) / (bottom.sum() - bottom)
    error = np.sqrt(19 / 20 * ((without - without.mean()) ** 2).sum())
    assert row.f4 == pytest.approx(top.sum() / 400, rel=1e-9)
    assert row.d_statistic == pytest.approx(top.sum() / bottom.sum(), rel=1e-9)
    assert row.d_error == pytest.approx(error, rel=1e-9)


def test_diversity_is_that_of_the_definition():
    genotypes, alleles = case(130, 0.3)
    found = popdesic.diversity(genotypes, LABELS, pseudo_haploid=SINGLE).set_index("population")
    for name, own in alleles.items():
        here = name == LABELS
        assert found.people[name] == here.sum()
        assert found.pseudo_haploid[name] == (here & SINGLE).sum()
        n, p = frequencies(own)
        known = n > 1
        expected = (2 * p * (1 - p) * n / np.maximum(n - 1, 1))[known].mean()
        assert found.expected[name] == pytest.approx(expected, rel=1e-9)
        people = genotypes[here & ~SINGLE].T
        called = (people >= 0).sum(axis=1)
        shares = (people == 1).sum(axis=1)[called > 0] / called[called > 0]
        assert found.observed[name] == pytest.approx(shares.mean(), rel=1e-9)


def test_blocks_are_numbers_or_labels():
    genotypes, _ = case(60, 0.1)
    labels = np.repeat(np.arange(6), 10)
    first = popdesic.f2(genotypes, LABELS, blocks=6)
    assert first.equals(popdesic.f2(genotypes, LABELS, blocks=labels))
    other = popdesic.f2(genotypes, LABELS, blocks=4)
    np.testing.assert_allclose(first.f2, other.f2, rtol=1e-12)  # sums in another order
    assert (first.error != other.error).all()
    packed = popdesic.pack(genotypes)
    assert first.equals(popdesic.f2(packed, LABELS, blocks=6, threads=2))
    assert (popdesic.f2(genotypes, LABELS, blocks=1000).blocks <= 60).all()


@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_runs_equal_the_oracle(missing):
    rng = np.random.default_rng(3)
    genotypes = draw(5, 700, missing)
    genotypes[1, 100:420] = np.where(genotypes[1, 100:420] == 1, 0, genotypes[1, 100:420])
    genotypes[3, 300:700] = np.where(genotypes[3, 300:700] == 1, 2, genotypes[3, 300:700])
    positions = np.cumsum(rng.integers(1000, 20_000, 700))
    limits = {"min_sites": 60, "window_sites": 30}
    found = popdesic.homozygous_runs(genotypes, positions, **limits)
    expected = [
        (sample, positions[first], positions[last])
        for sample in range(5)
        for first, last, *_ in runs_of(genotypes[sample], positions, **limits)
    ]
    assert len(expected) >= 2
    assert list(found[["sample", "start", "end"]].itertuples(index=False, name=None)) == expected
    # Two contigs: no run reaches from one to the next.
    contigs = np.repeat(["1", "2"], 350)
    halves = popdesic.homozygous_runs(genotypes, positions, contigs, **limits)
    assert {tuple(row) for row in halves[["sample", "contig"]].itertuples(index=False)} >= {
        *((1, "1"), (3, "2"))
    }


GENOTYPES = draw(4, 6)
BAD_CALLS = {
    "populations have the shape (2,)": lambda: popdesic.f_st(GENOTYPES, ["a", "b"]),
    "no sample has a population": lambda: popdesic.f2(GENOTYPES, [None, "", "NA", np.nan]),
    "pseudo_haploid is int64": lambda: popdesic.f3(
        GENOTYPES, list("aabb"), pseudo_haploid=[0, 1, 0, 1]
    ),
    "blocks is 0": lambda: popdesic.diversity(GENOTYPES, list("aabb"), blocks=0),
    "blocks have the shape (2,)": lambda: popdesic.diversity(
        GENOTYPES, list("aabb"), blocks=[1, 2]
    ),
    "tests[0] is ['a', 'b', 'a', 'b']": lambda: popdesic.f4(GENOTYPES, list("abcd"), ["abab"]),
    "tests[1] names 'e'": lambda: popdesic.f4(GENOTYPES, list("abcd"), ["abcd", "abce"]),
    "positions are int64 of the shape (2,)": lambda: popdesic.homozygous_runs(GENOTYPES, [1, 2]),
    "positions[2] is 1, less than": lambda: popdesic.homozygous_runs(GENOTYPES, [1, 2, 1, 4, 5, 6]),
    "contigs have the shape (1,)": lambda: popdesic.homozygous_runs(GENOTYPES, np.arange(6), ["1"]),
    "contig '1' are not next to each other": lambda: popdesic.homozygous_runs(
        GENOTYPES, np.arange(6), list("112211")
    ),
    "min_snps is not a limit of runs": lambda: popdesic.homozygous_runs(
        GENOTYPES, np.arange(6), min_snps=3
    ),
    "genotypes[0, 0] is 3": lambda: popdesic.f_st([[3]], ["a"]),
}


@pytest.mark.parametrize("sentence", BAD_CALLS)
def test_unusable_arguments_give_one_sentence(sentence):
    with pytest.raises(ValueError) as error:
        BAD_CALLS[sentence]()
    text = str(error.value)
    assert sentence in text and text.endswith(".") and "\n" not in text
