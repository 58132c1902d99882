"""Scans rank as the papers' formulas do, and which formulas rank alike."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.published_scores import LOW_IS_GOOD, all_scores

import popdesic

#: Shares of genotypes 2, 1 and 0 of EPIClear's example data.
MIX = (0.1, 0.2, 0.7)
CONTROLS, CASES = 260, 180


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Genotypes (samples, sites) in that mix and of rarer alleles, and cases; three sites act."""
    rng = np.random.default_rng(248)
    genotypes = rng.choice([2, 1, 0], size=(CONTROLS + CASES, 20), p=MIX)
    for site in range(8):
        genotypes[:, site] = rng.binomial(2, rng.uniform(0.03, 0.5), len(genotypes))
    acts = (genotypes[:, [3, 9, 14]] > 0).sum(axis=1) % 2 + rng.normal(0, 0.7, len(genotypes))
    case = np.zeros(len(genotypes), int)
    case[np.argsort(-acts)[:CASES]] = 1
    return genotypes, case


def as_published(score: str, ours: np.ndarray) -> np.ndarray:
    """Scores of a scan as the papers have them (docs/interactions.md)."""
    n = CONTROLS + CASES
    if score == "k2":
        table = [np.log(np.arange(1, size + 1)).sum() for size in (n + 1, CONTROLS, CASES)]
        return ours + table[0] - table[1] - table[2]
    return -ours / n if score == "mutual_information" else 2 * (ours + CONTROLS * CASES / n) / n


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("score", ["k2", "mutual_information", "gini"])
def test_scans_rank_as_the_formula(drawn, order, score):
    genotypes, case = drawn
    members, published = all_scores(genotypes.T, case, order)
    values = published[score]
    hits = popdesic.scan(genotypes, case, order=order, score=score, top=40, max_r2=1, device="cpu")
    best = np.argsort(values if LOW_IS_GOOD[score] else -values, kind="stable")[:40]
    ours = as_published(score, hits["score"].to_numpy())
    assert ours == pytest.approx(values[best], rel=1e-9)
    sites = hits[[f"site{k}" for k in range(1, order + 1)]].to_numpy()
    tied = np.isclose(values[best], values[best[-1]], rtol=1e-12)
    assert {tuple(sorted(row)) for row in sites[~tied]} == {
        tuple(row) for row in members[best[~tied]].tolist()
    }


def test_which_formulas_rank_alike(drawn):
    """G is 2 N mutual information; chi-squared, Gini and BitEpi's beta are lines of each other."""
    genotypes, case = drawn
    n = CONTROLS + CASES
    found = all_scores(genotypes.T, case, 3)[1]
    assert found["g"] == pytest.approx(2 * n * found["mutual_information"], rel=1e-9)
    taken = 2 * CONTROLS * CASES / n**2 - found["gini"]
    assert found["chi_squared"] == pytest.approx(
        taken * n**3 / (2 * CONTROLS * CASES), rel=1e-9, abs=1e-9
    )
    assert found["beta"] == pytest.approx(1 - found["gini"], rel=1e-12)


def test_the_best_by_k2_are_rare_where_nothing_acts():
    """K2 grows with the cells that occur; K2 excess does not prefer any frequency."""
    rng, n_sites = np.random.default_rng(5), 16
    genotypes = rng.binomial(2, np.linspace(0.02, 0.5, n_sites), (400, n_sites))
    case, mean = np.arange(400) % 2, {}
    for score in ("k2", "k2_excess"):
        hits = popdesic.scan(genotypes, case, order=3, score=score, top=40, max_r2=1, device="cpu")
        mean[score] = hits[["site1", "site2", "site3"]].to_numpy().mean()
    assert mean["k2"] < 4 and 5.5 < mean["k2_excess"] < 9.5
