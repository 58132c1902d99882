"""The public functions for arrays equal slow oracles and refuse invalid input."""

from __future__ import annotations

import doctest
import itertools
import math
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from oracles import epistasis as oracle
from oracles.compare import king_robust, r2
from oracles.reference import (
    augmented_scores,
    draw_genotypes,
    fermat_geodesics,
    make_planes,
    pair_counts,
    pca_scores,
    relationship,
)
from scipy import stats
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

import popdesic

SIZES = (1, 15, 16, 17, 33, 63, 64, 65)
MODULES = sorted(set(popdesic._PUBLIC.values()))


def draw(n_samples: int, n_sites: int, missing: float = 0.1, seed: int = 1) -> np.ndarray:
    return draw_genotypes(np.random.default_rng([seed, n_sites]), n_samples, n_sites, missing)


# --- input ---------------------------------------------------------------------------------------

GENOTYPES = draw(5, 40)
AS_FLOATS = np.where(GENOTYPES < 0, np.nan, GENOTYPES)
FORMS = {
    "int64": GENOTYPES.astype(np.int64),
    "float32 with NaN": AS_FLOATS.astype(np.float32),
    "column-major": np.asfortranarray(GENOTYPES),
    "every other row of a larger one": np.repeat(GENOTYPES, 2, axis=0)[::2],
    "masked uint8": np.ma.masked_array(np.maximum(GENOTYPES, 0).astype(np.uint8), GENOTYPES < 0),
    "masked floats": np.ma.masked_array(np.maximum(GENOTYPES, 0).astype(float), GENOTYPES < 0),
    "lists": GENOTYPES.tolist(),
    "DataFrame": pd.DataFrame(AS_FLOATS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_input_format_packs_to_the_same_planes(form):
    expected = popdesic.pack(GENOTYPES)
    found = popdesic.pack(FORMS[form])
    assert (found.words == expected.words).all()
    assert (found.n_samples, found.n_sites, found.complete) == (5, 40, False)


@pytest.mark.parametrize("n_sites", SIZES)
@pytest.mark.parametrize("missing", [0.0, 0.2, 1.0])
def test_pack_equals_the_oracle(n_sites, missing):
    genotypes = draw(3, n_sites, missing)
    found = popdesic.pack(genotypes, threads=2)
    words = make_planes(genotypes)
    assert (found.words[:, :, : words.shape[2]] == words).all()
    assert not found.words[:, :, words.shape[2] :].any()


def test_pack_fills_with_the_mode_or_what_is_given():
    genotypes = np.array([[0, 2, -1, 1], [0, -1, -1, 2], [-1, 2, -1, -1]], np.int8)
    for fill, values in (("mode", [0, 2, 0, 1]), ([2, 1, 0, 2], [2, 1, 0, 2])):
        found = popdesic.pack(genotypes, fill=fill)
        assert (found.words[:, :, :1] == make_planes(genotypes, np.array(values))).all()
        assert found.filled


BAD_GENOTYPES = [
    ([0, 1, 2], "genotypes have the shape (3,); give two dimensions, samples x sites"),
    (np.zeros((2, 3, 2)), "genotypes have the shape (2, 3, 2); give two dimensions"),
    (np.zeros((0, 4)), "give at least one sample and one site"),
    ([["A", "C"]], "genotypes are of type <U1; a genotype is the number of ALT alleles"),
    (np.array([[0, None]]), "genotypes are of type object"),
    ([[0, 1], [2, 3]], "genotypes[1, 1] is 3; a genotype is"),
    (np.array([[0, -9]], np.int8), "genotypes[0, 1] is -9; a genotype is"),
    (np.array([[0, 255]], np.uint8), "genotypes[0, 1] is 255; a genotype is"),
    ([[0.0, 1.5]], "genotypes[0, 1] is 1.5; a genotype is"),
    ([[np.inf, 0]], "genotypes[0, 0] is inf; a genotype is"),
]


@pytest.mark.parametrize("given, sentence", BAD_GENOTYPES)
@pytest.mark.parametrize("call", ["pack", "pairwise_distance", "kinship", "ld_r2", "pca", "scan"])
def test_invalid_genotypes_are_refused(call, given, sentence):
    arguments = ([0, 1],) if call == "scan" else ()
    with pytest.raises(ValueError, match=re.escape(sentence)):
        getattr(popdesic, call)(given, *arguments)


def one_sentence(error) -> str:
    text = str(error.value)
    assert text.endswith(".") and "\n" not in text and "config" not in text
    return text


D = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
BAD_CALLS = {
    "metric is 'cosine'": lambda: popdesic.pairwise_distance(GENOTYPES, metric="cosine"),
    "missing is 'drop'": lambda: popdesic.pairwise_distance(GENOTYPES, missing="drop"),
    "missing ones are not filled in; pack them with fill='mode'": lambda: (
        popdesic.pairwise_distance(popdesic.pack(GENOTYPES), missing="imputed")
    ),
    "packed genotypes are those of diploids": lambda: popdesic.pairwise_distance(
        popdesic.pack(GENOTYPES), ploidy=2
    ),
    "with ploidy, metric is 'euclidean'": lambda: popdesic.pairwise_distance(
        GENOTYPES, ploidy=2, metric="normalized"
    ),
    "ploidy is int64 of the shape (2,)": lambda: popdesic.pairwise_distance(
        GENOTYPES, ploidy=[2, 4]
    ),
    "ploidy is float64 of the shape ()": lambda: popdesic.pairwise_distance(GENOTYPES, ploidy=2.0),
    "ploidy is 16": lambda: popdesic.pairwise_distance(GENOTYPES, ploidy=[2, 2, 16, 2, 2]),
    "genotypes[1, 0] is 2; the sample's ploidy is 1; a genotype": lambda: (
        popdesic.pairwise_distance([[1, 0], [2, 4]], ploidy=1)
    ),
    "genotypes[0, 1] is 5; the sample's ploidy is 4": lambda: popdesic.pairwise_distance(
        [[1, 5], [1, 1]], ploidy=[4, 1]
    ),
    "device is 'cuda'": lambda: popdesic.kinship(GENOTYPES, device="cuda"),
    "method is 'plink'": lambda: popdesic.kinship(GENOTYPES, method="plink"),
    "scores and founders are for PC-Relate": lambda: popdesic.kinship(GENOTYPES, scores=[[1]]),
    "needs an array of genotypes and the scores": lambda: popdesic.kinship(
        GENOTYPES, method="pc-relate"
    ),
    "scores are float64 of the shape (1, 1)": lambda: popdesic.kinship(
        GENOTYPES, method="pc-relate", scores=[[1.0]]
    ),
    "threads is 0": lambda: popdesic.ld_r2(GENOTYPES, threads=0),
    "other has 4 samples, but": lambda: popdesic.ld_r2(GENOTYPES, GENOTYPES[:4]),
    "fill is 'mean'": lambda: popdesic.pack(GENOTYPES, fill="mean"),
    "fill has the shape (3,)": lambda: popdesic.pack(GENOTYPES, fill=[0, 1, 2]),
    "fill[1] is 5": lambda: popdesic.pack([[0, -1]], fill=[0, 5]),
    "n_components is 0": lambda: popdesic.pca(GENOTYPES, n_components=0),
    "founders are int64 of the shape (2,)": lambda: popdesic.pca(GENOTYPES, founders=[0, 1]),
    "1 founders cannot define axes": lambda: popdesic.pca(GENOTYPES, founders=np.arange(5) == 1),
    "af is float64 of the shape (1,)": lambda: popdesic.pca(GENOTYPES, af=[0.5]),
    "af[1] is 1.5": lambda: popdesic.pca([[0, 1], [1, 2]], af=[0.5, 1.5]),
    "founders do not differ": lambda: popdesic.pca(np.ones((4, 6), int)),
    "order is 5": lambda: popdesic.scan(GENOTYPES, [0, 1, 0, 1, 0], order=5),
    "score is 'chi2'": lambda: popdesic.scan(GENOTYPES, [0, 1, 0, 1, 0], score="chi2"),
    "top is 0": lambda: popdesic.scan(GENOTYPES, [0, 1, 0, 1, 0], top=0),
    "max_r2 is nan": lambda: popdesic.scan(GENOTYPES, [0, 1, 0, 1, 0], max_r2=np.nan),
    "phenotype has the shape (2,)": lambda: popdesic.scan(GENOTYPES, [0, 1]),
    "phenotype[4] is 2": lambda: popdesic.scan(GENOTYPES, [1, 1, 1, 1, 2]),
    "phenotype has no control": lambda: popdesic.scan(GENOTYPES, [1, 1, 1, 1, -1]),
    "phenotype has -1 beside 0 and 1": lambda: popdesic.scan_sites(GENOTYPES, [0, 1, 0, 1, -1]),
    "phenotype has 1 different values": lambda: popdesic.scan_sites(GENOTYPES, [3] * 5),
    "phenotype has the two values 1 and 2": lambda: popdesic.scan_sites(GENOTYPES, [1, 2, 1, 2, 1]),
    "covariates has the shape (3, 1)": lambda: popdesic.scan_sites(
        GENOTYPES, [0, 1, 0, 1, 1], np.zeros((3, 1))
    ),
    "explain the phenotype completely": lambda: popdesic.scan_sites(
        GENOTYPES, np.arange(5), np.arange(5)[:, None]
    ),
    "transform is 'log'": lambda: popdesic.scan_sites(GENOTYPES, np.arange(5), transform="log"),
    "phenotype is of type <U1": lambda: popdesic.scan(GENOTYPES, list("abcde")),
    "have 0 sites that vary among the 2": lambda: popdesic.scan([[1, 1], [1, 1]], [0, 1]),
    "distances have the shape (3,)": lambda: popdesic.fermat_weights([1, 2, 3], 2),
    "distances[0, 1] is nan": lambda: popdesic.fermat_weights([[0, np.nan]], 2),
    "distances[0, 1] is -1.0": lambda: popdesic.shortest_paths([[0, -1], [-1, 0]]),
    "distances have the shape (2, 3)": lambda: popdesic.shortest_paths(D[:2]),
    "distances[0, 0] is 1.0": lambda: popdesic.shortest_paths(np.ones((2, 2))),
    "distances are not symmetric": lambda: popdesic.shortest_paths([[0, 1], [2, 0]]),
    "distances are of type <U1": lambda: popdesic.shortest_paths([["a"]]),
    "alpha is 0.5": lambda: popdesic.shortest_paths(D, 0.5),
    "to the power alpha = 300 is too large for float64": lambda: popdesic.fermat_weights(
        D * 100, 300
    ),
    "number is 'int8'": lambda: popdesic.shortest_paths(D, number="int8"),
    "number is 'float32', which cannot hold": lambda: popdesic.shortest_paths(
        D * 1e6, 8, number="float32"
    ),
    "sample 2 cannot be compared with any other": lambda: popdesic.shortest_paths(
        [[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]]
    ),
    "closure is not a result of shortest_paths": lambda: popdesic.insert(D, D),
    "2 new samples and a closure of 3 samples need (2, 5)": lambda: popdesic.insert(
        popdesic.shortest_paths(D, device="cpu"), D[:2]
    ),
    "distances among new samples[0, 0] is 1.0": lambda: popdesic.insert(
        popdesic.shortest_paths(D, device="cpu"), [[1, 1, 1, 1]]
    ),
}


@pytest.mark.parametrize("sentence", BAD_CALLS)
def test_unusable_arguments_give_a_one_sentence_error(sentence):
    with pytest.raises(ValueError) as error:
        BAD_CALLS[sentence]()
    assert sentence in one_sentence(error)


def test_device_gpu_without_a_gpu_is_an_error():
    try:
        import cupy

        if cupy.cuda.is_available():
            pytest.skip("there is a GPU here")
    except ImportError:
        pass
    with pytest.raises(
        RuntimeError, match="no GPU can be used here; give 'cpu' or 'auto'"
    ) as error:
        popdesic.kinship(GENOTYPES, device="gpu")
    assert str(error.value.__cause__)  # names what is missing


# --- results -------------------------------------------------------------------------------------


def oracle_distance(genotypes: np.ndarray, metric: str, n_sites: int) -> np.ndarray:
    """Distances from the counts of `reference.pair_counts`, pair by pair."""
    counts = pair_counts(genotypes, genotypes)
    found = np.full(counts["called"].shape, np.inf)
    for i, j in itertools.product(range(len(genotypes)), repeat=2):
        squared, called, ibs0 = (int(counts[k][i, j]) for k in ("squared", "called", "ibs0"))
        manhattan = squared - 2 * ibs0
        sums = int(counts["sums"][i, j]), int(counts["sums"][j, i])
        if i == j:
            found[i, j] = 0
        elif called == 0 or (metric == "normalized" and 0 in sums):
            continue
        elif metric == "euclidean":
            found[i, j] = math.sqrt(squared * n_sites / called)
        elif metric == "manhattan":
            found[i, j] = manhattan * n_sites / called
        elif metric == "ibs":
            found[i, j] = manhattan / (2 * called)
        else:
            both = (genotypes[i] >= 0) & (genotypes[j] >= 0)
            a, b = genotypes[i, both] / sums[0], genotypes[j, both] / sums[1]
            found[i, j] = math.sqrt(((a - b) ** 2).sum())
    return found


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "ibs", "normalized"])
@pytest.mark.parametrize("n_sites", SIZES)
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_distances_equal_the_oracle(metric, n_sites, missing):
    genotypes = draw(7, n_sites, missing)
    found = popdesic.pairwise_distance(genotypes, metric=metric, device="cpu", threads=2)
    # one division or root of exact integers; normalised distances are sums of rounded squares
    expected = oracle_distance(genotypes, metric, n_sites)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-8)
    assert (popdesic.pairwise_distance(popdesic.pack(genotypes), metric=metric) == found).all()


@pytest.mark.parametrize("metric", ["euclidean", "normalized"])
def test_imputed_distances_equal_those_of_filled_genotypes(metric):
    genotypes = draw(9, 65, 0.3)
    counts = np.stack([(genotypes == g).sum(axis=0) for g in range(3)])
    filled = np.where(genotypes < 0, counts.argmax(axis=0), genotypes)
    expected = popdesic.pairwise_distance(filled, metric=metric, device="cpu")
    for given in (genotypes, popdesic.pack(genotypes, fill="mode")):
        found = popdesic.pairwise_distance(given, metric=metric, missing="imputed", device="cpu")
        assert (found == expected).all()
    assert (popdesic.pairwise_distance(genotypes, metric=metric) != expected).any()


def test_pairs_with_few_called_sites_are_infinite_or_nan():
    genotypes = np.array([[0, 1, 1, -1], [1, 1, -1, -1], [1, 1, 2, 0]], np.int8)
    found = popdesic.pairwise_distance(genotypes, min_called=3, device="cpu")
    assert np.isinf(found).tolist() == [
        [False, True, False],
        [True, False, True],
        [False, True, False],
    ]
    found = popdesic.kinship(genotypes, min_called=3, device="cpu")
    assert np.isnan(found).tolist() == [
        [False, True, False],
        [True, True, True],
        [False, True, False],
    ]


@pytest.mark.parametrize("n_sites", SIZES)
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_kinship_equals_the_oracle(n_sites, missing):
    genotypes = draw(7, n_sites, missing)
    expected = [[king_robust(a, b) for b in genotypes] for a in genotypes]
    found = popdesic.kinship(genotypes, device="cpu")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    filled = popdesic.kinship(popdesic.pack(genotypes, fill="mode"), device="cpu")
    np.testing.assert_array_equal(filled, found)  # filled-in genotypes do not count


def best_by_loops(queries, profiles, counts, top: int, least: int) -> list[list]:
    """Rows of the tables of `identity` and `mixture`, site by site."""
    rows = []
    for q, asked in enumerate(queries.tolist()):
        ranked = []
        for number, known in enumerate(profiles.tolist()):
            pairs = [(a, b) for a, b in zip(asked, known, strict=True) if a >= 0 and b >= 0]
            counted = sum(counts(a, b) for a, b in pairs)
            if len(pairs) >= max(least, 1):
                key = counted * 2**20 // len(pairs)
                ranked.append((key, number, len(pairs), counted, counted / len(pairs)))
        for rank, (_, *row) in enumerate(sorted(ranked)[:top]):
            rows.append([q, rank + 1, *row])
    return rows


def lacks(seen: int, genotype: int) -> bool:
    """Whether a genotype has an allele that is not seen: r & ~m for either allele."""
    return any(
        allele in alleles and allele not in shown
        for shown, alleles in [(("R", "RA", "A")[seen], ("R", "RA", "A")[genotype])]
        for allele in "RA"
    )


@pytest.mark.parametrize("n_sites", [1, 15, 16, 17, 33, 63, 64, 65, 200])
@pytest.mark.parametrize("missing", [(0, 0), (0.3, 0.3), (0.3, 0), (0, 0.3)])
@pytest.mark.parametrize("what", ["identity", "mixture"])
def test_searches_equal_counting_site_by_site(what, n_sites, missing):
    """Few sites make ties; some pairs share too few called sites to be listed."""
    queries = draw(6, n_sites, missing[0], seed=n_sites)
    profiles = draw(90, n_sites, missing[1], seed=n_sites + 1)
    counts = {"identity": lambda a, b: a != b, "mixture": lacks}[what]
    least = n_sites * 3 // 5
    slow = best_by_loops(queries, profiles, counts, 4, least)
    for threads, given in ((1, profiles), (3, popdesic.pack(profiles, fill="mode"))):
        found = getattr(popdesic, what)(
            queries, given, top=4, min_called=least, device="cpu", threads=threads
        )
        assert found.to_numpy().tolist() == slow
    every = getattr(popdesic, what)(queries, profiles[:2], top=10, device="cpu")
    assert every.to_numpy().tolist() == best_by_loops(queries, profiles[:2], counts, 10, 1)


@pytest.mark.parametrize("n_samples", (2, *SIZES[1:]))
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_ld_equals_the_oracle(n_samples, missing):
    genotypes = draw(n_samples, 9, missing)
    genotypes[:, 3] = 1  # monomorphic
    expected = [[r2(a, b) for b in genotypes.T] for a in genotypes.T]
    np.testing.assert_allclose(popdesic.ld_r2(genotypes, device="cpu"), expected, rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_ld_with_other_sites_equals_the_oracle(missing, monkeypatch):
    genotypes, other = draw(41, 9, missing), draw(41, 13, missing, seed=6)
    other[:, 3] = 2  # monomorphic
    expected = [[r2(a, b) for b in other.T] for a in genotypes.T]
    for block in (1024, 4):
        monkeypatch.setattr("popdesic.relatives.ld.BLOCK_SITES", block)
        found = popdesic.ld_r2(genotypes, other, device="cpu")
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_ld_does_not_depend_on_the_block_size(monkeypatch):
    genotypes = draw(40, 50)
    expected = popdesic.ld_r2(genotypes, device="cpu")
    monkeypatch.setattr("popdesic.relatives.ld.BLOCK_SITES", 16)
    np.testing.assert_array_equal(popdesic.ld_r2(genotypes, device="cpu"), expected)


def test_pca_equals_the_oracle():
    rng = np.random.default_rng(3)
    af = rng.uniform(0.1, 0.9, 300)
    genotypes = rng.binomial(2, af, (20, 300)).astype(np.int8)
    founders = np.arange(20) < 14
    scores, explained = pca_scores(genotypes, af, founders, 4)
    scores[~founders] = augmented_scores(genotypes, af, founders, 4)
    found = popdesic.pca(genotypes, n_components=4, founders=founders, af=af, threads=2)
    signs = np.sign((found.scores * scores).sum(axis=0))
    np.testing.assert_allclose(found.scores, scores * signs, atol=1e-9)
    np.testing.assert_allclose(found.explained, explained, atol=1e-12)
    largest = np.abs(found.scores[founders]).argmax(axis=0)
    assert (found.scores[founders][largest, range(4)] > 0).all()


def test_pca_uses_frequencies_of_founders_and_called_sites_alone():
    genotypes = draw(18, 200, 0.2)
    founders = np.arange(18) % 3 > 0
    among = genotypes[founders].astype(float)
    among[among < 0] = np.nan
    af = np.nanmean(among, axis=0) / 2
    found = popdesic.pca(genotypes, n_components=17, founders=founders)
    g = relationship(genotypes, af)
    u = found.scores[founders]
    np.testing.assert_allclose(u.T @ u, np.diag(np.diagonal(u.T @ u)), atol=1e-9)
    values = np.linalg.eigvalsh(g[np.ix_(founders, founders)])[::-1]
    np.testing.assert_allclose(np.diagonal(u.T @ u), values[: u.shape[1]], rtol=1e-9, atol=1e-12)


def k2(
    genotypes: np.ndarray,
    case: np.ndarray,
    sites: tuple[int, ...],
    used: np.ndarray | bool = True,
    score: str = "k2_excess",
) -> float:
    """K2 of the used samples called at the sites, or less its mean over draws of cases from all.

    Minus that of a single cell, cell by cell from the definition.
    """
    classes = int((~case).sum()), int(case.sum())
    called = used & (genotypes[:, sites] >= 0).all(axis=1)

    def cell(here: np.ndarray) -> float:
        n, n1 = int(here.sum()), int((here & case).sum())
        less = oracle.mean_log_ways(n, *classes) if score == "k2_excess" else -math.log(n + 1)
        return math.log(math.comb(n, n1)) - less

    states = itertools.product(range(3), repeat=len(sites))
    cells = (called & (genotypes[:, sites] == one).all(axis=1) for one in states)
    return sum(map(cell, cells)) - cell(called)


@pytest.mark.parametrize("order, n_sites", [(2, 17), (3, 9)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("score", ["k2", "k2_excess"])
def test_scan_finds_what_the_definition_ranks_first(order, n_sites, missing, score):
    rng = np.random.default_rng([order, n_sites])
    genotypes = rng.binomial(2, 0.4, (130, n_sites)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    genotypes[:, 2] = 1  # monomorphic, so not scanned
    phenotype = rng.integers(0, 2, 130).astype(float)
    phenotype[::10] = np.nan
    known = ~np.isnan(phenotype)
    case = phenotype[known] == 1
    ranked = sorted(
        (k2(genotypes[known], case, sites, score=score), sites)
        for sites in itertools.combinations(range(n_sites), order)
        if 2 not in sites
    )[:12]
    found = popdesic.scan(
        genotypes, phenotype, order=order, score=score, top=12, max_r2=1, device="cpu"
    )
    names = [f"site{k}" for k in range(1, order + 1)]
    assert found[names].to_numpy().tolist() == [list(sites) for _, sites in ranked]
    assert found["rank"].tolist() == list(range(1, 13))
    # scores are sums of table entries rounded to 2**-20
    np.testing.assert_allclose(found["score"], [cost for cost, _ in ranked], atol=28 * 2.0**-21)
    counts = found[["controls", "cases"]].map(lambda text: sum(map(int, text.split(","))))
    used = [(genotypes[known][:, list(sites)] >= 0).all(axis=1) for _, sites in ranked]
    assert counts["cases"].tolist() == [int((u & case).sum()) for u in used]
    assert counts["controls"].tolist() == [int((u & ~case).sum()) for u in used]
    main = [
        k2(genotypes[known], case, (s[1],), u, score)
        for u, (_, s) in zip(used, ranked, strict=True)
    ]
    np.testing.assert_allclose(found["main2"], main, atol=4 * 2.0**-21)


@pytest.mark.parametrize("order", [2, 3])
def test_scan_ranks_by_interaction_unless_told_otherwise(order):
    rng = np.random.default_rng(order)
    genotypes = rng.binomial(2, 0.45, (700, 12))
    odds = 2 * genotypes[:, 1] + 2 * ((genotypes[:, -order:] > 0).sum(axis=1) % 2) - 3
    case = rng.random(700) < 1 / (1 + np.exp(-odds))
    found = popdesic.scan(genotypes, case, order=order, top=10**4, max_r2=1)
    names = [f"site{k}" for k in range(1, order + 1)]
    assert found[names].iloc[0].tolist() == list(range(12 - order, 12))
    assert len(found) == math.comb(12, order)
    np.testing.assert_allclose(found["score"], -found["lr_chi2"] / 2, atol=1e-5)
    p = stats.chi2.sf(found["lr_chi2"], found["lr_df"])
    assert (np.diff(p * found["tests"]) > -1e-5 * p[1:] * found["tests"][1:]).all()
    first = found[found[names].eq(list(range(order))).all(axis=1)].iloc[0]
    table = np.array([first.controls.split(","), first.cases.split(",")], int)
    assert first.lr_chi2 == pytest.approx(
        2 * oracle.interaction(table.reshape(2, *(3,) * order)), abs=1e-4
    )


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_scan_of_sites_is_the_regression_of_each_site(kind):
    """Of people with a phenotype and covariates; a column that follows does not count."""
    rng = np.random.default_rng(15)
    genotypes = draw(300, 9, 0.0)
    x = rng.normal(0, 1, (300, 2))
    y = x[:, 0] + 0.5 * genotypes[:, 4] + rng.normal(0, 1, 300)
    y = y if kind == "linear" else (y > np.median(y)).astype(float)
    unknown = np.arange(300) % 10 == 3
    masked = np.ma.masked_array(y, unknown)
    twice = np.column_stack([x, x[:, 0] + 7])
    with pytest.warns(UserWarning, match=r"covariates\[:, 2\] is a linear combination"):
        found = popdesic.scan_sites(genotypes, masked, twice)
    for site, row in found.iterrows():
        base = sm.add_constant(x[~unknown])
        both = np.column_stack([base, genotypes[~unknown, site]])
        if kind == "linear":
            fitted = sm.OLS(y[~unknown], both).fit()
            expected = fitted.pvalues[-1]
        else:
            family = sm.families.Binomial()
            fitted = sm.GLM(y[~unknown], base, family=family).fit(tol=1e-12)
            expected = fitted.score_test(both[:, -1:])[1]
        assert row.n == 270 and row.p == pytest.approx(float(np.squeeze(expected)), rel=1e-5)
    ranked = popdesic.scan_sites(genotypes, masked, x, transform="normal")
    assert ((ranked.p == found.p).all()) == (kind == "logistic")


def test_scan_leaves_out_partners_in_ld():
    rng = np.random.default_rng(2)
    genotypes = rng.binomial(2, 0.4, (200, 12)).astype(np.int8)
    genotypes[:, 5] = genotypes[:, 4]  # the same site twice
    case = rng.random(200) < np.where(genotypes[:, 4] > 0, 0.9, 0.1)
    pairs = [
        tuple(row)
        for row in popdesic.scan(genotypes, case, max_r2=1)[["site1", "site2"]].to_numpy()
    ]
    apart = popdesic.scan(genotypes, case, max_r2=0.8)[["site1", "site2"]].to_numpy()
    assert (4, 5) in pairs
    assert (4, 5) not in {tuple(row) for row in apart}
    assert len(apart) == 12 * 11 // 2 - 1


# --- geodesics -----------------------------------------------------------------------------------


def draw_distances(n: int, seed: int = 1) -> np.ndarray:
    points = np.random.default_rng(seed).normal(size=(n, 3))
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("n", [1, 2, 17, 65])
@pytest.mark.parametrize("alpha", [1, 2, 4.5])
@pytest.mark.parametrize("number", ["auto", "float64"])
def test_shortest_paths_equal_the_oracle(n, alpha, number):
    distances = draw_distances(n)
    found = popdesic.shortest_paths(distances, alpha, number=number, device="cpu")
    # fixed point is accurate to a millionth of the weights that matter
    np.testing.assert_allclose(found.lengths, fermat_geodesics(distances, alpha), rtol=2e-6)
    assert np.asarray(found) is found.lengths or (np.asarray(found) == found.lengths).all()
    assert len(found) == n and not found.continued
    assert n < 3 or (found.number == "float64") == (number == "float64")


def test_uncomparable_pairs_are_connected_through_others():
    distances = draw_distances(30)
    distances[:4, 4:8] = distances[4:8, :4] = np.inf
    found = popdesic.shortest_paths(distances, 2, device="cpu")
    np.testing.assert_allclose(found.lengths, fermat_geodesics(distances, 2), rtol=2e-6)
    assert np.isfinite(found.lengths).all() and 0 < found.indirect_share <= 1
    assert repr(found).startswith("<Closure: 30 samples, alpha 2, int")


@pytest.mark.parametrize("k", [2, 17, 64, 69])
def test_insertion_equals_the_closure_of_all(k):
    distances = np.rint(1000 * draw_distances(70))  # the scale does not depend on who is there
    first = popdesic.shortest_paths(distances[:k, :k], 2, device="cpu")
    later = popdesic.insert(first, distances[k:], device="cpu")
    whole = popdesic.shortest_paths(distances, 2, device="cpu")
    assert later.continued and later.number == whole.number == "int32"
    assert (later.lengths == whole.lengths).all()
    assert later.indirect_share == whole.indirect_share
    split = popdesic.insert(first, distances[k : k + 1, : k + 1], device="cpu")
    if k < 69:
        split = popdesic.insert(split, distances[k + 1 :], device="cpu")
    assert (split.lengths == whole.lengths).all()


def test_the_first_samples_decide_the_scale():
    distances = draw_distances(40)
    distances[39, :39] = distances[:39, 39] = 1.2 * distances.max()  # within the headroom
    first = popdesic.shortest_paths(distances[:39, :39], 2, device="cpu")
    later = popdesic.insert(first, distances[39:], device="cpu")
    whole = popdesic.shortest_paths(distances, 2, device="cpu")
    assert later.continued and later.error_bound != whole.error_bound
    np.testing.assert_allclose(later.lengths, whole.lengths, rtol=2e-6)


def test_newcomers_that_need_another_scale_recompute_the_closure():
    distances = draw_distances(40)
    far = distances.copy()
    far[39, :39] = far[:39, 39] = 1e4
    first = popdesic.shortest_paths(far[:39, :39], 2, device="cpu")
    later = popdesic.insert(first, far[39:], device="cpu")
    assert not later.continued
    np.testing.assert_allclose(later.lengths, fermat_geodesics(far, 2), rtol=2e-6)
    for number in ("float32", "float64"):  # floats depend on the order of arrival
        first = popdesic.shortest_paths(distances[:30, :30], 2, number=number, device="cpu")
        later = popdesic.insert(first, distances[30:], device="cpu")
        assert not later.continued
        np.testing.assert_allclose(later.lengths, fermat_geodesics(distances, 2), rtol=1e-5)


def test_a_closure_of_other_weights_is_not_continued():
    from popdesic.geodesic.insertion import leading_closure
    from popdesic.geodesic.weights import Number

    w = np.array([[0, 4], [4, 0]], np.int32)
    number, other = Number("int32", 1.0, 0.0), Number("int32", 2.0, 0.0)
    assert leading_closure(w, w, number, w, number) is not None
    assert leading_closure(w, w, number, w + 1, number) is None
    assert leading_closure(w, w, number, w, other) is None


def test_weights_are_powers_of_distances():
    distances = draw_distances(5)
    distances[0, 1] = distances[1, 0] = np.inf
    found = popdesic.fermat_weights(distances, 3)
    np.testing.assert_array_equal(found, distances**3)


# --- the package ---------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_print_what_they_show(module):
    found = doctest.testmod(import_module(f"popdesic.{module}"))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", [name for name in popdesic._PUBLIC if name[0].islower()])
def test_docstrings_have_all_sections_and_shapes(name):
    text = getattr(popdesic, name).__doc__
    headings = re.findall(r"^    (\w+)\n    -+$", text, re.MULTILINE)
    assert headings == ["Parameters", "Returns", "Raises", "Examples"]
    if name == "replicate_sets":  # it takes no arrays
        return
    assert re.search(r"\(n_(samples|haplotypes|sites)\b|\(n, n\)|\(m, k \+ m\)", text), "no shape"


def test_names_are_public_and_imported_when_used():
    assert set(popdesic._PUBLIC) <= set(dir(popdesic)) and set(popdesic._PUBLIC) < set(
        popdesic.__all__
    )
    with pytest.raises(AttributeError, match="no attribute 'distance_of'"):
        _ = popdesic.distance_of
    code = (
        "import sys, popdesic; print(popdesic.__version__); "
        "heavy = {'numpy', 'pandas', 'numba', 'scipy', 'snakemake'}; "
        "print(sorted(heavy & set(sys.modules))); popdesic.pairwise_distance; "
        "print('snakemake' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [popdesic.__version__, "[]", "False True"]


def test_nearest_neighbour_geodesics():
    rng = np.random.default_rng(41)
    points = rng.uniform(size=(80, 2))
    distances = squareform(pdist(points))
    closure = popdesic.shortest_paths(distances, graph="knn", neighbors=12, device="cpu")
    peer = Isomap(n_neighbors=12, n_components=2).fit(points).dist_matrix_
    np.testing.assert_allclose(closure.lengths, peer, rtol=1e-6)
    assert closure.graph.neighbors == 12
    later = popdesic.insert(
        popdesic.shortest_paths(distances[:60, :60], graph="knn", neighbors=12, device="cpu"),
        distances[60:],
        device="cpu",
    )
    assert later.continued
    with pytest.raises(ValueError, match="neighbors is 0"):
        popdesic.shortest_paths(distances, graph="knn", neighbors=0)
    with pytest.raises(ValueError, match="graph"):
        popdesic.shortest_paths(distances, graph="ring")


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0])
def test_fermat_distances_are_in_the_unit_of_the_distances(alpha):
    rng = np.random.default_rng(42)
    distances = squareform(pdist(rng.normal(size=(30, 4000))))  # no path is shorter at alpha <= 3
    closure = popdesic.shortest_paths(distances, alpha, device="cpu")
    np.testing.assert_allclose(closure.distances, distances, rtol=1e-5)


def test_a_triangle_of_kinships_is_enough():
    """Whichever order the cases are in: the scan sorts controls before cases."""
    rng = np.random.default_rng(12)
    parents = rng.binomial(1, 0.4, (150, 8))
    genotypes = np.repeat(parents, 2, axis=0) + rng.binomial(1, 0.4, (300, 8))
    case = np.repeat(rng.random(150) < 0.5, 2) ^ (rng.random(300) < 0.2)
    kinship = np.zeros((300, 300))
    kinship[np.arange(0, 300, 2), np.arange(1, 300, 2)] = 0.25
    given = [kinship, kinship.T, kinship + kinship.T, np.where(kinship > 0, kinship, np.nan)]
    found = [
        popdesic.scan(genotypes, case, top=28, kinship=one, max_r2=1.0, device="cpu")
        for one in given
    ]
    for other in found[1:]:
        assert other.equals(found[0])
    alone = popdesic.scan(genotypes, case, top=28, max_r2=1.0, device="cpu")
    assert not alone.p_association.equals(found[0].p_association)
