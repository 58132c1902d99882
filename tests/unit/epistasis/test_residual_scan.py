"""Scans of pairs by residuals: from the sheet to the ranked table, and what they conclude."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scenes.interactions.numbers import draw_study, family_wise, scan_numbers
from scipy import stats
from support.study import Cohort, make_sites, write_raw

from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis import evidence
from popdesic.epistasis.design import ComponentScores
from popdesic.epistasis.evidence import MainEffects
from popdesic.epistasis.finished import FinishedScan
from popdesic.epistasis.fit_null import fit_null_model
from popdesic.epistasis.null_model import fit_null, read_levels, read_null_model
from popdesic.epistasis.phenotype import scan_phenotype
from popdesic.epistasis.relatedness import Relatives
from popdesic.epistasis.reorder import build_onehot, join_classes, pack_states, read_reordered
from popdesic.epistasis.residual_scan import rank_residual_hits, residual_tests, scan_residual_unit
from popdesic.epistasis.scan import plan_scan
from popdesic.epistasis.significance import rank_hits
from popdesic.epistasis.single_sites import scan_single_sites
from popdesic.epistasis.structure import structure_warnings

BACKEND = CpuBackend(2)
LIMITS = {"min_distance_bp": 0, "max_r2": 1.0}
MODEL = {"covariates": [], "pcs": 0, "transform": "normal", "seed": 1}


def build(folder, genotypes, phenotype, **columns):
    """results/ of a study of one cohort; genotypes (n_sites, n_samples)."""
    names = [f"s{k}" for k in range(genotypes.shape[1])]
    sites = make_sites(len(genotypes))
    cohort = Cohort("one", names, sites, genotypes.astype(np.int8))
    prefix = write_raw(folder / "cohorts/one/genotypes", cohort)
    sheet = pd.DataFrame({"sample": names, "cohort": "one", "stratum": "all"}).assign(**columns)
    sheet["phenotype"] = [f"{value:.10g}" if np.isfinite(value) else "NA" for value in phenotype]
    sheet.to_csv(folder / "samples.tsv", sep="\t", index=False)
    read = scan_phenotype(sheet, "none", "samples.tsv", [2], "interaction")
    out = folder / "reorder"
    counts = build_onehot(
        [prefix],
        sheet,
        read.classes,
        quantitative=read.quantitative,
        strata="stratum",
        restrict=None,
        least=2,
        onehot_out=out / "onehot.npy",
        sites_out=out / "sites.tsv",
        samples_out=out / "samples.tsv",
    )
    return counts


def fit(folder, axes=None, **changes):
    """The null model of `build`, in epistasis/."""
    out = folder / "epistasis"
    paths = folder / "samples.tsv", axes, out / "null_model.npz", out / "structure.tsv"
    return fit_null_model(folder / "reorder", *paths, **MODEL | changes)


def scan(folder, top=50, by_main_effects=False, **ranking):
    """Ranked table of the pairs."""
    reordered, out = folder / "reorder", folder / "epistasis"
    null, unit = out / "null_model.npz", out / "unit.npz"
    scan_residual_unit(reordered, null, BACKEND, unit, unit=0, n_units=1, top=top, **LIMITS)
    n = len(read_reordered(reordered)[1])
    tests = n * (n - 1) // 2
    if by_main_effects:
        scan_single_sites(reordered, null, out / "sites.tsv")
        effects = MainEffects(out / "sites.tsv", BACKEND, **LIMITS, levels=read_levels(null))
        ranking |= {"main_effects": effects}
    finished = FinishedScan([unit], 2, "residuals", tests)
    rank_residual_hits(reordered, null, finished, out / "pairs.tsv", top=top, **ranking)
    return read_table(out / "pairs.tsv")


def genotypes_at(rng, n_sites, n, low=0.1, high=0.5):
    return rng.binomial(2, rng.uniform(low, high, n_sites)[:, None], (n_sites, n))


@pytest.mark.parametrize("n_controls, n_cases", [(1, 1), (64, 3), (63, 65), (70, 130), (130, 0)])
@pytest.mark.parametrize("missing", [False, True])
def test_classes_are_joined_without_a_gap(n_controls, n_cases, missing):
    n = n_controls + n_cases
    rng = np.random.default_rng([n, missing])
    states = rng.choice([0, 1, 2, 3] if missing else [0, 1, 3], (5, n)).astype(np.int8)
    joined = join_classes(pack_states(states, n_controls), n_controls, n_cases)
    np.testing.assert_array_equal(joined, pack_states(states, n))


def test_numbers_are_scanned_and_the_planted_pair_leads(tmp_path):
    """Main effects of other sites, a covariate and an interaction without main effect."""
    rng = np.random.default_rng(3)
    n, g = 700, genotypes_at(rng, 40, 700, 0.3)
    age = rng.normal(50, 10, n)
    crossing = (g[4] == 1) ^ (g[17] == 1)
    y = 170 + 0.4 * age + 3 * g[30] + 3 * g[31] + 3.5 * crossing + rng.normal(0, 4, n)
    y[5] = np.nan
    g[:, 11] = -1
    counts = build(tmp_path, g, y, age=[f"{a:.3f}" for a in age])
    assert counts["people"] == n - 1
    samples = read_table(tmp_path / "reorder/samples.tsv")
    assert set(samples["class"]) == {"quantitative"} and "s5" not in set(samples["sample"])
    counts, warnings = fit(tmp_path, covariates=["age"])
    assert counts["kind"] == "linear" and counts["columns"] == "age" and not warnings
    hits = scan(tmp_path)
    assert {hits.id1[0], hits.id2[0]} == {"rs4", "rs17"}
    assert float(hits.p_interaction[0]) < 1e-6
    # main effects are associated and not interactions
    effects = hits[hits.id1.isin(["rs30", "rs31"]) | hits.id2.isin(["rs30", "rs31"])]
    assert len(effects) and (effects.p_interaction.astype(float) > 0.05).all()
    assert (effects.p_association.astype(float) < 1e-3).any()
    found = scan_single_sites(
        tmp_path / "reorder", tmp_path / "epistasis/null_model.npz", tmp_path / "sites.tsv"
    )
    sites = read_table(tmp_path / "sites.tsv")
    assert found["sites"] == 40 and sites.id.tolist() == [f"rs{k}" for k in range(40)]
    assert set(sites.id[sites.p_adjusted.astype(float) < 0.05]) == {"rs30", "rs31"}


def test_tests_of_a_hit_are_those_of_statsmodels():
    rng = np.random.default_rng(4)
    n = 500
    g = rng.binomial(2, [[0.3], [0.4]], (2, n)).astype(np.int8)
    g[0, :7] = -1
    x = rng.normal(0, 1, (n, 2))
    x[9:12, 0] = np.nan
    y = np.nan_to_num(x[:, 0]) + 0.3 * g[0] * g[1] + rng.normal(0, 1, n)
    null = fit_null(y, x, "linear")
    found = residual_tests(g, null)
    used = null.used & (g >= 0).all(axis=0)
    a, b, y, base = g[0, used], g[1, used], y[used], sm.add_constant(x[used])
    sites = np.column_stack([a == 1, a == 2, b == 1, b == 2]).astype(float)
    main = np.column_stack([base, sites])
    crosses = np.column_stack([(a == s) & (b == t) for s in (1, 2) for t in (1, 2)]).astype(float)
    whole = sm.OLS(y, np.column_stack([main, crosses])).fit()
    f, p, df = whole.compare_f_test(sm.OLS(y, main).fit())
    np.testing.assert_allclose((found["lr_chi2"], found["lr_p"]), (f * df, p), rtol=1e-8)
    assert found["lr_df"] == df == 4
    assert found["association_p"] == pytest.approx(
        whole.compare_f_test(sm.OLS(y, base).fit())[1], rel=1e-6
    )
    product = sm.OLS(y, np.column_stack([main, a * b])).fit()
    np.testing.assert_allclose(
        [found["product_beta"], found["product_se"], found["product_p"]],
        [product.params[-1], product.bse[-1], product.pvalues[-1]],
        rtol=1e-8,
    )
    people = [int(((a == s) & (b == t)).sum()) for s in range(3) for t in range(3)]
    assert found["people"] == ",".join(map(str, people))
    one = sm.OLS(y, np.column_stack([base, a == 1, a == 2])).fit()
    f, _, df = one.compare_f_test(sm.OLS(y, base).fit())
    assert found["main1"] == pytest.approx(-f * df / 2)


def test_pairs_without_four_degrees_of_freedom():
    rng = np.random.default_rng(5)
    y = rng.normal(0, 1, 60)
    null = fit_null(y, np.empty((60, 0)), "linear")
    g = np.stack([np.arange(60) % 2, np.arange(60) % 2]).astype(np.int8)
    found = residual_tests(g, null)
    assert (found["lr_df"], found["lr_p"]) == (0, 1.0) and np.isnan(found["product_p"])
    found = residual_tests(np.stack([g[0], np.arange(60) // 2 % 2]).astype(np.int8), null)
    assert found["lr_df"] == 1 and 0 < found["lr_p"] <= 1


@pytest.mark.parametrize("scene", ["two additive", "heavy tails", "structure"])
def test_family_wise_error_under_nulls_that_keep_main_effects(scene):
    """5 % of 200 studies, within what chance allows: P(X > 20) < 0.001 at 5 %."""
    assert sum(family_wise(scene, seed, 4) for seed in range(200)) <= 20


def test_relatives_are_in_the_files_of_a_scan(tmp_path, caplog):
    """The files of a study of siblings say what `scan_numbers` says of its arrays."""
    study = draw_study("siblings", 3)
    first, second = study.pairs[:, :2].astype(int).T
    relatives = Relatives(first, second, study.pairs[:, 2])
    build(tmp_path, study.genotypes.T, study.response)
    counts, _ = fit(tmp_path, relatives=relatives)
    assert 0.3 < counts["shared_by_relatives"] < 0.7
    found, want = scan(tmp_path, 20, relatives=relatives), scan_numbers(study, 20)
    names = [f"rs{site}" for site in want.site1]
    assert found.id1.tolist() == names
    np.testing.assert_allclose(found.lr_p.astype(float), want.lr_p, rtol=1e-5)
    pairs = np.triu_indices(len(study.response), 1)
    everyone = Relatives(*pairs, np.full(len(pairs[0]), 0.2))
    with caplog.at_level(logging.WARNING):
        scan(tmp_path, 1, relatives=everyone)
    assert "1000 samples form one family" in caplog.text


def test_one_extreme_person_makes_no_interaction(tmp_path):
    """Rare genotypes meet in one person, who is extreme: normal scores keep the test right."""
    rng = np.random.default_rng(9)
    g = genotypes_at(rng, 15, 500, 0.04, 0.1)
    g[3, 0] = g[8, 0] = 2
    y = rng.normal(0, 1, 500)
    y[0] = 40.0
    build(tmp_path, g, y)
    fit(tmp_path)
    ranked = scan(tmp_path, 1)
    fit(tmp_path, transform="none")
    raw = scan(tmp_path, 1)
    assert float(ranked.p_interaction[0]) > 0.01 > 1e-6 > float(raw.p_interaction[0])


def test_main_effects_decide_how_many_tests_a_pair_of_numbers_is_corrected_for(tmp_path):
    """The pair of the two strongest sites joins those that the scan kept, and has fewer tests."""
    rng = np.random.default_rng(5)
    g = genotypes_at(rng, 40, 500, 0.2)
    build(tmp_path, g, g[3] + g[30] + rng.normal(size=500))
    fit(tmp_path)
    equal, table = scan(tmp_path, 3), scan(tmp_path, 3, by_main_effects=True)
    assert set(equal.tests) == {"780"}
    want = 780 / (0.9 + 0.1 * 780 / 5)  # five groups: 2, 4, 8, 16 and 40 sites
    everything = scan(tmp_path, 780, by_main_effects=True)
    tests, p = everything.tests.astype(float), everything.lr_p.astype(float)
    pair = everything[(everything.id1 == "rs3") & (everything.id2 == "rs30")].index[0]
    assert tests[pair] == pytest.approx(want, rel=1e-5) and tests.max() < 780 / 0.899
    p_interaction = everything.p_interaction.astype(float)
    np.testing.assert_allclose(p_interaction, np.minimum(1, p * tests), rtol=1e-4)
    chi2 = -2 * everything.score.astype(float)
    key = stats.chi2.sf(chi2, everything.lr_df.astype(int)) * tests
    assert (np.diff(key) > -1e-4 * key[1:]).all()
    # every site counts at most 10 times in a list of 30 candidates, so compare the first
    assert (
        table[["id1", "id2", "tests"]].iloc[0].equals(everything[["id1", "id2", "tests"]].iloc[0])
    )


def two_populations(seed: int, n: int = 1200):
    """Cases and controls of two populations with risks of 0.75 and 0.25; one cohort."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    p = np.clip(rng.uniform(0.15, 0.5, 60) + rng.normal(0, 0.2, (2, 60)), 0.03, 0.95)
    case = rng.random(n) < np.where(group, 0.75, 0.25)
    return rng.binomial(2, p[group].T), case, np.where(group, "north", "south")


def test_covariates_are_in_the_model_of_a_scan_of_cases(tmp_path):
    """The best of all pairs by residuals, with the population in the model and without."""
    best = []
    for covariates in ([], ["population"]):
        scores = []
        for seed in range(6):
            folder = tmp_path / f"{seed}{len(covariates)}"
            g, case, population = two_populations(seed)
            build(folder, g, case.astype(float), population=population)
            counts, _ = fit(folder, covariates=covariates)
            assert counts["kind"] == "logistic"
            null, unit = folder / "epistasis/null_model.npz", folder / "unit.npz"
            scan_residual_unit(
                folder / "reorder", null, BACKEND, unit, unit=0, n_units=1, top=3, **LIMITS
            )
            with np.load(unit) as file:
                scores.append(-2 * file["cost"][0] / 2.0**40)
        best.append(np.mean(scores))
    # the largest of 1 770 chi-squares of 4 df has the mean 20.5
    assert best[0] > 24 and 17 < best[1] < 23.5


def test_cases_that_were_scanned_by_residuals_are_ranked_as_others(tmp_path, caplog, monkeypatch):
    g, case, population = two_populations(3, 400)
    g = g[:24]  # 276 pairs
    build(tmp_path, g, case.astype(float), population=population)
    fit(tmp_path, covariates=["population"])
    null, unit, out = (tmp_path / name for name in ("epistasis/null_model.npz", "u.npz", "p.tsv"))
    scan_residual_unit(
        tmp_path / "reorder", null, BACKEND, unit, unit=0, n_units=1, top=9, **LIMITS
    )
    pairs = np.triu_indices(300, 1)
    family = Relatives(*pairs, np.full(len(pairs[0]), 0.2))
    scan = FinishedScan([unit], 2, "residuals", 276)
    with caplog.at_level(logging.WARNING):
        rank_hits(tmp_path / "reorder", scan, out, top=9, relatives=family)
    assert "300 samples form one family" in caplog.text
    table = read_table(out)
    assert len(table) == 9 and (table["score"].astype(float) < 0).all()
    assert len(table.controls[0].split(",")) == 9
    # By main effects: the strongest sites are scanned by residuals as well.
    monkeypatch.setattr(evidence, "LEAST_KEPT", 276)
    effects, all_pairs = tmp_path / "epistasis/sites.tsv", tmp_path / "all.tsv"
    scan_single_sites(tmp_path / "reorder", null, effects)
    effects = MainEffects(effects, BACKEND, levels=read_levels(null))
    rank_hits(tmp_path / "reorder", scan, all_pairs, top=276, max_per_site=60, main_effects=effects)
    found = read_table(all_pairs).set_index(["id1", "id2"])
    assert len(found) == 276 and found.tests.nunique() > 3
    both = found.loc[list(table[["id1", "id2"]].itertuples(index=False, name=None))]
    assert both.score.tolist() == table.score.tolist(), "each pair once, by residuals"


def test_warnings_speak_when_the_remedy_is_missing_and_are_silent_when_it_is_right(tmp_path):
    g, case, population = two_populations(5)
    build(tmp_path, g, case.astype(float), population=population)
    _, without = fit(tmp_path)
    assert len(without) == 1 and "phenotype and population are associated given" in without[0]
    assert structure_warnings(tmp_path / "epistasis/structure.tsv") == without
    _, remedied = fit(tmp_path, covariates=["population"])
    assert len(remedied) == 1 and "tests with covariates account for it" in remedied[0]
    build(tmp_path, g, case.astype(float), population=population, stratum=population)
    assert fit(tmp_path)[1] == []  # strata are the remedy of everything
    rng = np.random.default_rng(6)
    build(tmp_path, g, rng.permutation(case).astype(float), population=population)
    assert fit(tmp_path)[1] == []


def axes_of(scores: np.ndarray, significant: int) -> ComponentScores:
    return ComponentScores([f"s{k}" for k in range(len(scores))], scores, significant)


def test_significant_components_are_in_the_model(tmp_path):
    g, case, population = two_populations(7)
    build(tmp_path, g, case.astype(float), population=population)
    rng = np.random.default_rng(7)
    scores = rng.normal(0, 1, (1200, 6))
    scores[:, 0] += 60 * (population == "north")
    axes = axes_of(scores, 2)
    counts, warnings = fit(tmp_path, axes, pcs="auto")
    assert counts["columns"] == "PC1, PC2"
    # the components follow the population but for noise, so that little is left to warn of
    assert all("tests with covariates account for it" in sentence for sentence in warnings)
    assert fit(tmp_path, axes, pcs=5)[0]["columns"].endswith("PC5")
    counts, warnings = fit(tmp_path, axes, pcs=0)
    assert counts["columns"] == "none" and any("components are ass" in w for w in warnings)
    null = read_null_model(tmp_path / "epistasis/null_model.npz")
    levels, variance = read_levels(tmp_path / "epistasis/null_model.npz")
    assert null.design.shape == (1200, 0) and len(levels) == 1200 and variance > 0


def test_auto_takes_fewer_components_where_people_are_few(tmp_path, caplog):
    g, case, _ = two_populations(8, 60)
    case[:] = np.arange(60) < 12
    build(tmp_path, g, case.astype(float))
    rng = np.random.default_rng(8)
    axes = axes_of(rng.normal(0, 1, (60, 9)), 9)
    with caplog.at_level(logging.WARNING):
        assert fit(tmp_path, axes, pcs="auto")[0]["columns"] == "PC1, PC2, PC3, PC4"
    assert "4 of 9 significant components are taken" in caplog.text
    separating = axes_of((case + rng.normal(0, 0.01, 60))[:, None], 1)
    with caplog.at_level(logging.WARNING):
        assert fit(tmp_path, separating, pcs="auto")[0]["columns"] == "none"
    assert "null model without principal components" in caplog.text


def test_forecast_of_a_scan_of_numbers(tmp_path):
    rng = np.random.default_rng(10)
    build(tmp_path, genotypes_at(rng, 12, 100), rng.normal(0, 1, 100))
    lines = plan_scan(
        tmp_path / "reorder",
        BACKEND,
        tmp_path / "plan.json",
        orders=[2],
        score="interaction",
        residuals=True,
        permutations={2: 3},
        screen=0,
        top=10,
        max_device_hours=1.0,
    )
    assert read_json(tmp_path / "plan.json")["pairs"] == {"tests": 66, "scans": 4}
    assert lines["pairs"].startswith("66 tests, 4 scans")


def test_structure_that_few_people_do_not_tell_is_no_warning():
    columns = ["structure", "p_given_strata", "p_given_model"]
    table = pd.DataFrame(
        [["population", "NA", "NA"], ["components", "1e-9", "NA"]], columns=columns
    )
    assert structure_warnings(table.head(1)) == []
    assert len(structure_warnings(table)) == 1
