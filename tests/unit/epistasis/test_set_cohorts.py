"""Sets between cohorts: scores add up as defined, and replication holds its level."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from oracles import sets as oracle
from scenes.interactions.sets import genotypes_in_ld, null_study
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects as expected_combination

import popdesic
from popdesic.core.files import write_json
from popdesic.epistasis.kept_sets import kept_tests
from popdesic.epistasis.set_cohorts import CohortEffect, combine_effects, join_statistics
from popdesic.epistasis.set_tables import replicate_set

PAIRS = oracle.all_pairs(5)


def cohort(seed: int, *, n: int = 500, strength: float = 0.5, binary: bool = False, m: int = 5):
    """Genotypes in LD, around a frequency of a half, a phenotype and covariates."""
    rng = np.random.default_rng(seed)
    g = genotypes_in_ld(rng, n, m, np.random.default_rng(3).uniform(0.35, 0.6, m))
    covariates = rng.normal(size=(n, 1))
    signal = 0.3 * g[:, 0] + 0.4 * covariates[:, 0] + strength * g[:, 1] * g[:, 3]
    if binary:
        response = (rng.random(n) < 1 / (1 + np.exp(signal.mean() - signal))).astype(float)
    else:
        response = (1 + seed % 3) * (signal + rng.normal(size=n))
    g[rng.random(g.shape) < 0.02] = -1
    return g, response, covariates


def scored(*parts, **options):
    return popdesic.score_sets(parts[0], parts[1], {"all": range(5)}, parts[2], **options)


@pytest.mark.parametrize("binary", [False, True])
def test_cohorts_together_equal_the_oracle(binary):
    parts = [cohort(seed, n=400 + 90 * seed, binary=binary) for seed in (1, 2)]
    joined = join_statistics([scored(*part, threads=1).sets["all"] for part in parts])
    found, expected = joined.tests(), oracle.joined_tests(parts, PAIRS, binary=binary)
    for name in ("p_quadratic", "p_burden", "p_pair"):
        assert found[name] == pytest.approx(expected[name], rel=1e-6), name
    # one cohort has the tests of `scan_sets`
    alone = join_statistics([scored(*parts[0]).sets["all"]]).tests()
    table = popdesic.scan_sets(*parts[0][:2], {"all": range(5)}, parts[0][2])
    for name in ("p", "p_quadratic", "p_burden", "p_pair", "site1", "site2"):
        assert alone[name] == pytest.approx(table[name][0], rel=1e-8), name


def test_the_effect_of_a_direction_is_that_of_a_regression():
    """b times the residual deviation is the coefficient of w'z; p is its one-sided t test."""
    parts = {name: cohort(seed, n=700, strength=0.3) for seed, name in enumerate(("a", "b", "c"))}
    given = {name: scored(*part) for name, part in parts.items()}
    sets, by_cohort = popdesic.replicate_sets(given, ["a"])
    assert by_cohort.role.tolist() == ["discovery", "replication", "replication"]
    found = join_statistics([given["a"].sets["all"]])
    kind, w = found.direction(found.tests())
    assert kind == sets.tested[0]
    for name in ("b", "c"):
        genotypes, response, covariates = parts[name]
        g = oracle.alt_counts(genotypes)
        design = np.column_stack([np.ones(len(g)), covariates, g, g == 2])
        z = np.column_stack([g[:, i] * g[:, j] for i, j in PAIRS]) @ w
        fit = sm.OLS(response, np.column_stack([design, z])).fit()
        deviation = np.sqrt(sm.OLS(response, design).fit().mse_resid)
        row = by_cohort[by_cohort.cohort == name].iloc[0]
        assert row.effect == pytest.approx(fit.params[-1] / deviation, rel=1e-8)
        assert row.p == pytest.approx(stats.t.sf(fit.tvalues[-1], fit.df_resid), rel=1e-8)


def test_effects_are_combined_as_by_statsmodels():
    rng = np.random.default_rng(1)
    effect, se = rng.normal(0.3, 0.3, 6), rng.uniform(0.1, 0.2, 6)
    found = combine_effects(
        [CohortEffect(float(b), float(s), 0.5) for b, s in zip(effect, se, strict=True)]
        + [CohortEffect(np.nan, np.nan, np.nan)]
    )
    expected = expected_combination(effect, se**2, method_re="chi2")
    table = expected.summary_frame()
    assert found["cohorts"] == 6 and found["q"] == pytest.approx(expected.q)
    assert found["i2"] == pytest.approx(expected.i2) and found["i2"] > 0.3
    for end, row in (("", "fixed effect"), ("_random", "random effect")):
        assert found[f"effect{end}"] == pytest.approx(table.eff[row])
        assert found[f"se{end}"] == pytest.approx(table.sd_eff[row])
        z = table.eff[row] / table.sd_eff[row]
        assert found[f"p{end}"] == pytest.approx(stats.norm.sf(z))
    assert found["p_q"] == pytest.approx(stats.chi2.sf(expected.q, 5))
    one = combine_effects([CohortEffect(0.2, 0.1, 0.03)])
    assert one["p"] == 0.03 and np.isnan(one["q"]) and one["cohorts"] == 1
    assert combine_effects([])["cohorts"] == 0


def test_alleles_and_order_of_cohorts_say_nothing_and_files_keep_everything(tmp_path):
    parts = {name: cohort(seed) for seed, name in enumerate(("a", "b", "c"))}
    given = {name: scored(*part, threads=1) for name, part in parts.items()}
    sets, by_cohort = popdesic.replicate_sets(given, ["c", "a"])
    for name, one in given.items():
        one.save(tmp_path / f"{name}.npz")
    read = {name: popdesic.CohortSets.load(tmp_path / f"{name}.npz") for name in ("c", "b", "a")}
    again = popdesic.replicate_sets(read, ["a", "c"])
    assert sets.equals(again[0]) and by_cohort.equals(again[1])
    whole = (tmp_path / "a.npz").read_bytes()
    np.savez(tmp_path / "other.npz", x=1)
    for wrong in (b"", b"text", whole[:-300], (tmp_path / "other.npz").read_bytes()):
        (tmp_path / "b.npz").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"b\.npz is no file of CohortSets\.save"):
            popdesic.CohortSets.load(tmp_path / "b.npz")
    turned = {}
    for name, (genotypes, response, covariates) in parts.items():
        genotypes = genotypes.copy()
        genotypes[:, 3] = np.where(genotypes[:, 3] < 0, -1, 2 - genotypes[:, 3])
        turned[name] = scored(genotypes, response, covariates)
    other, _ = popdesic.replicate_sets(turned, ["a", "c"])
    for name in ("p_discovery", "p_replication", "effect", "se", "p_all", "p_without"):
        assert other[name][0] == pytest.approx(sets[name][0], rel=1e-3), name  # ties of missing


def test_scores_and_third_cumulants_are_of_alt_counts():
    """So they add up where the minor allele of a site is another one in another cohort."""
    genotypes, number, covariates = cohort(4, n=900)
    case = (number > np.quantile(number, 0.7)).astype(float)
    genotypes[:, 0] = np.where(genotypes[:, 0] < 0, -1, 2 - genotypes[:, 0])
    means = np.where(genotypes < 0, np.nan, genotypes)
    assert (np.nanmean(means, axis=0) > 1).tolist() == [True, False, True, False, False]
    part = scored(genotypes, case, covariates).sets["all"]
    g = oracle.alt_counts(genotypes)
    u, _, third, *_ = oracle.score_parts(g, case, covariates, PAIRS, binary=True)
    assert np.abs(third).min() > 1e-3
    np.testing.assert_allclose(part.scores, u, rtol=1e-6, atol=1e-6 * np.abs(u).max())
    np.testing.assert_allclose(part.thirds, third, rtol=1e-5, atol=1e-6 * np.abs(third).max())


def test_a_set_that_a_cohort_cannot_test_is_left_out_of_it():
    parts = {name: cohort(seed) for seed, name in enumerate(("a", "b"))}
    rare = parts["b"][0].copy()
    rare[:, 1:] = 0
    given = {"a": scored(*parts["a"]), "b": scored(rare, *parts["b"][1:])}
    sets, _ = popdesic.replicate_sets(given, ["a"])
    assert sets.cohorts[0] == 0 and np.isnan(sets.p_replication[0]) and sets.p_discovery[0] < 0.05
    sets, _ = popdesic.replicate_sets(given, ["b"])
    assert np.isnan(sets.p_discovery[0]) and sets.tested[0] == "NA" and sets.p_all[0] < 0.05
    with pytest.warns(UserWarning, match="2211 products"):
        many = popdesic.score_sets(cohort(1, m=67)[0], np.arange(500), {"x": range(67)})
    assert many.sets == {"x": None}
    for bad, said in (
        (["x"], "'x', which is not one of the cohorts"),
        ([], "0 of 2 cohorts"),
        (["a", "b"], "2 of 2 cohorts"),
        ("a", "give a list"),
    ):
        with pytest.raises(ValueError, match=said):
            popdesic.replicate_sets(given, bad)
    with pytest.raises(ValueError, match="different sets, such as 'all'"):
        popdesic.replicate_sets(given | {"b": popdesic.CohortSets({"other": None})}, ["a"])
    with pytest.raises(ValueError, match="cases and controls in cohort 'b', but numbers in 'a'"):
        popdesic.replicate_sets(given | {"b": scored(*cohort(1, binary=True))}, ["a"])


def test_a_planted_interaction_replicates_and_a_reversed_one_is_heterogeneous():
    strengths = {"a": 0.6, "b": 0.6, "c": 0.6, "d": -0.6}
    given = {
        name: scored(*cohort(seed, n=900, strength=strength))
        for seed, (name, strength) in enumerate(strengths.items())
    }
    same, _ = popdesic.replicate_sets({name: given[name] for name in "abc"}, ["a"])
    assert same.p_discovery[0] < 1e-6 and same.p_replication[0] < 1e-6
    assert same.p_q[0] > 0.01 and same[["site1", "site2"]].values.tolist() == [[1, 3]]
    mixed, by_cohort = popdesic.replicate_sets(given, ["a"])
    assert mixed.p_q[0] < 1e-6 and mixed.i2[0] > 0.9 and mixed.p_random[0] > 0.01
    assert by_cohort[by_cohort.cohort == "d"].p.iloc[0] > 0.999


@pytest.mark.parametrize("name", ["number", "cases 1:1"])
def test_replication_of_null_sets_is_uniform_also_after_selection(name):
    sets, sites = 400, 5
    given = {}
    for seed, one in enumerate("abc", 40):
        study = null_study(name, seed, 500, sets, sites)
        given[one] = popdesic.score_sets(
            study.genotypes, study.phenotype, study.sets, study.covariates
        )
    found, by_cohort = popdesic.replicate_sets(given, ["a"])
    assert stats.kstest(found.p_replication, "uniform").pvalue > 1e-3
    assert stats.kstest(found.p_q, "uniform").pvalue > 1e-3
    chosen = found[found.p_discovery < np.median(found.p_discovery)]
    assert stats.kstest(chosen.p_replication, "uniform").pvalue > 1e-3
    # in the discovery cohort itself the effect is chosen: p there is far too small
    own = by_cohort[by_cohort.role == "discovery"].p
    assert (own < 0.05).mean() > 0.3


def test_kept_tests_of_the_discovery_are_of_their_key_and_file(tmp_path):
    path, tests = (
        tmp_path / "results/discovery.json",
        {"all": {"p": 0.1 + 0.2, "site1": 3}, "none": {}},
    )
    assert kept_tests(path, "k") == {}
    write_json(path, {"key": "k", "tests": tests})
    assert kept_tests(path, "k") == tests and kept_tests(path, "other") == {}
    path.write_text(path.read_text().replace("0.3", "0.2"))
    assert kept_tests(path, "k") == {}
    one, other = (scored(*cohort(seed)).sets["all"] for seed in (1, 2))
    parts = {"a": one, "b": other}
    row, effects = replicate_set("all", parts, ["a"])
    assert str(replicate_set("all", parts, ["a"], row["discovered"])) == str((row, effects))
    for wrong in ("p_quadratic", "p_pair"):  # they are taken as they are
        known = row["discovered"] | {wrong: 0.5}
        assert replicate_set("all", parts, ["a"], known)[0][wrong] == 0.5
