"""Ancestry proportions where they are known, where there is one population, and by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes import scene

from popdesic.core.files import read_json
from popdesic.core.tables import read_table, write_npz
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.population import ancestry, fastmixture
from popdesic.population.ancestry import (
    best_fit,
    cross_validate,
    deviance,
    fit_ancestry,
    held_out_error,
    join_cohorts,
    number_components,
    project_cohort,
    project_proportions,
    similarity,
    table_over_k,
)

needs_fastmixture = pytest.mark.skipif(
    bool(fastmixture.why_missing()), reason="fastmixture is not installed"
)


def em(genotypes: np.ndarray, frequencies: np.ndarray, rounds: int = 1000) -> np.ndarray:
    """Proportions of one person in known components: plain EM (Tang et al. 2005), one by one."""
    p = np.clip(frequencies, 1e-5, 1 - 1e-5)[genotypes >= 0]
    g = genotypes[genotypes >= 0].astype(float)
    q = np.full(p.shape[1], 1 / p.shape[1])
    for _ in range(rounds):
        h = p @ q
        q = q * ((g / h) @ p + ((2 - g) / (1 - h)) @ (1 - p))
        q /= q.sum()
    return q


def test_deviance_by_hand():
    found = deviance(np.array([0, 1, 2, 1]), np.array([0.5, 0.5, 0.5, 0.25]))
    two = 2 * np.log(2)
    np.testing.assert_allclose(found, [two, 0, two, np.log(2) + np.log(1 / 1.5)])
    assert (deviance(np.array([0, 2]), np.array([0.0, 1.0])) < 1e-4).all()


def test_one_component_by_hand():
    """Hidden genotypes against the frequency of the others; sites without both are left out."""
    genotypes = np.array([[0, 1, 2, -1], [1, 1, 0, 2], [2, 0, 0, 0]], np.int8)
    hidden = np.array([[1, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]], bool)
    expected = [deviance(np.array(0), 0.75), deviance(np.array(2), 2 / 6)]
    np.testing.assert_allclose(held_out_error(genotypes, hidden, 1, 1), np.mean(expected))


def test_similarity_matches_components():
    q = np.random.default_rng(1).dirichlet([1, 1, 1], 50)
    assert similarity(q, q[:, [2, 0, 1]]) == pytest.approx(1)
    assert similarity(q, np.random.default_rng(2).dirichlet([1, 1, 1], 50)) < 0.6


def test_components_keep_their_numbers_over_k():
    """Two components of K = 3 are one at K = 2; one of them is split at K = 4; columns shuffled."""
    q = np.random.default_rng(3).dirichlet([1, 1, 1], 60)
    two = np.column_stack([q[:, 2] + q[:, 1] / 8, q[:, 0] + q[:, 1] * 7 / 8])
    four = np.column_stack([q[:, 1], q[:, 0] / 5, q[:, 2], q[:, 0] * 4 / 5])
    one, solutions = np.ones((60, 1)), {2: two, 3: q, 4: four}
    numbers = number_components({1: one, **solutions}, 3)
    assert numbers == {1: [1], 2: [3, 1], 3: [1, 2, 3], 4: [2, 4, 3, 1]}
    table = table_over_k(np.array([f"s{i}" for i in range(60)]), solutions, 3, 4)
    assert table.k.tolist() == [2] * 60 + [3] * 60 + [4] * 60
    assert table[table.k == 2][["K2", "K4"]].isna().all(axis=None)
    np.testing.assert_array_equal(table[table.k == 2][["K3", "K1"]], two)
    np.testing.assert_array_equal(table[table.k == 4][["K2", "K4", "K3", "K1"]], four)
    assert table_over_k(np.array([]), {}, 0, 0).columns.tolist() == ["sample", "k"]


@pytest.mark.parametrize("chosen", [2, 5])
def test_neighbouring_k_are_matched_as_well_as_any_order_can(chosen):
    rng = np.random.default_rng(chosen)
    solutions = {k: rng.dirichlet([0.4] * k, 40) for k in range(2, 6)}
    numbers = number_components(solutions, chosen)
    assert numbers[chosen] == list(range(1, chosen + 1))
    assert all(len(set(own)) == k for k, own in numbers.items())
    for k in range(2, 5):
        few, many = solutions[k], solutions[k + 1]
        cost = lambda order, a=few, b=many: ((a - b[:, order]) ** 2).sum()  # noqa: E731
        best = min(cost(list(order)) for order in permutations(range(k + 1), k))
        alike = [numbers[k + 1].index(number) for number in numbers[k]]
        assert cost(alike) == pytest.approx(best, rel=1e-12)


@needs_fastmixture
def test_known_proportions():
    """A gradient between two sources: r >= 0.99 with the truth; newcomers as by plain EM."""
    drawn = scene("gradient", seed=1, people=200)
    truth, genotypes = drawn.coordinates[:, 0], drawn.genotypes.copy()
    rng = np.random.default_rng(1)
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    founders = np.arange(200) % 4 > 0
    varied = ancestry.varies(genotypes[:, founders])
    genotypes = genotypes[varied]
    found, runs = best_fit(genotypes[:, founders], 2, [1, 2], threads=2)
    assert np.abs(found.proportions.sum(axis=1) - 1).max() < 1e-5
    assert found.proportions[:, 0].mean() >= found.proportions[:, 1].mean()
    side = int(np.corrcoef(found.proportions[:, 1], truth[founders])[0, 1] > 0)
    r = np.corrcoef(found.proportions[:, side], truth[founders])[0, 1]
    assert r >= 0.99
    assert [run["seed"] for run in runs] == [1, 2] and min(x["similarity"] for x in runs) > 0.99
    # The same bytes again, with another number of threads.
    again, _ = best_fit(genotypes[:, founders], 2, [1, 2], threads=1)
    np.testing.assert_array_equal(again.proportions, found.proportions)
    np.testing.assert_array_equal(again.frequencies, found.frequencies)
    new = project_proportions(genotypes[:, ~founders], found.frequencies)
    assert np.corrcoef(new[:, side], truth[~founders])[0, 1] >= 0.99
    for i in (0, 7, 30):
        by_hand = em(genotypes[:, ~founders][:, i], found.frequencies)
        np.testing.assert_allclose(new[i], by_hand, atol=2e-3)
    alone = project_proportions(genotypes[:, ~founders][:, 3:4], found.frequencies)
    np.testing.assert_allclose(alone[0], new[3], atol=2e-3)
    side_wrong = np.corrcoef(1 - new[:, side], truth[~founders])[0, 1]
    assert side_wrong < -0.99


@needs_fastmixture
@pytest.mark.parametrize(("name", "best"), [("panmixia", 1), ("islands", 3)])
def test_cross_validation_finds_the_number(name, best):
    """One population has one component; three islands have three."""
    changes = {"islands": 3, "per_island": 30, "f_st": 0.15} if name == "islands" else {}
    drawn = scene(name, seed=2, sites=1500, **({"people": 90} if best == 1 else {}), **changes)
    table = cross_validate(drawn.genotypes, range(1, 5 if best > 1 else 4), 3, 1, threads=2)
    assert table.k[table.error.argmin()] == best
    assert (table.standard_deviation > 0).all()


def write_cohort(folder, name, samples, genotypes):
    prefix = folder / name
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    prefix.with_suffix(".fam").write_text("".join(f"0 {s} 0 0 0 -9\n" for s in samples))
    prefix.with_suffix(".bim").write_text(
        "".join(f"1 s{k} 0 {k + 1} A C\n" for k in range(len(genotypes)))
    )
    return prefix


@pytest.fixture
def study(tmp_path):
    """Two founder cohorts and one newcomer cohort of a gradient, with a panel and axes."""
    drawn = scene("gradient", seed=3, people=90, sites=700)
    genotypes = drawn.genotypes[ancestry.varies(drawn.genotypes)]
    names = [f"i{k}" for k in range(90)]
    parts = {"a": np.arange(0, 30), "b": np.arange(30, 70), "new": np.arange(70, 90)}
    order = np.random.default_rng(1).permutation(90)
    genotypes[:, order[75]] = -1  # a newcomer without genotypes
    prefixes = {
        cohort: write_cohort(
            tmp_path, cohort, [names[i] for i in order[rows]], genotypes[:, order[rows]]
        )
        for cohort, rows in parts.items()
    }
    n = len(genotypes)
    panel = pd.DataFrame({"chrom": "1", "pos": np.arange(n) + 1, "id": ".", "ref": "A", "alt": "C"})
    panel["af"], panel["n_called"] = 0.5, 90
    body = panel.assign(mode=1).to_csv(sep="\t", index=False)
    (tmp_path / "sites.tsv").write_text("# panel abc\n" + body)
    founders = [names[i] for i in order[:70]]
    write_npz(
        tmp_path / "axes.npz",
        samples=np.array([s for s in founders if s != founders[5]]),  # a relative of the others
        sites=np.arange(0, n, 1),
    )
    sheet = pd.DataFrame({"sample": names, "cohort": "a", "population": "P"})
    sheet.to_csv(tmp_path / "samples.tsv", sep="\t", index=False)
    return tmp_path, prefixes, names, order, drawn


def run_fit(folder, prefixes, **changes):
    options = {"components": 2, "folds": 3, "seed": 1}
    return fit_ancestry(
        [prefixes["a"], prefixes["b"]],
        folder / "sites.tsv",
        folder / "axes.npz",
        **{**options, **changes},
        x_contigs=["X"],
        model_out=folder / "model.npz",
        validation_out=folder / "validation.tsv",
        over_k_out=folder / "over_k.tsv",
        summary_out=folder / "about.json",
    )


def run_projection(folder, prefixes):
    for cohort, prefix in prefixes.items():
        project_cohort(
            *(prefix, folder / "model.npz", folder / "samples.tsv"),
            cohort=cohort,
            column="population",
            out=folder / f"{cohort}.tsv",
        )
    join_cohorts([folder / f"{cohort}.tsv" for cohort in prefixes], folder / "ancestry.tsv")
    return read_table(folder / "ancestry.tsv")


@needs_fastmixture
def test_files_of_a_study(study):
    folder, prefixes, names, order, drawn = study
    about = run_fit(folder, prefixes)
    assert about["k"] == 2 and about["people"] == 69 and len(about["runs"]) == 3
    assert about == read_json(folder / "about.json")
    assert read_table(folder / "validation.tsv").empty and read_table(folder / "over_k.tsv").empty
    table = run_projection(folder, prefixes)
    assert table["sample"].tolist() == [names[i] for i in order]
    estimate = table.estimate.tolist()
    assert estimate[5] == "projected" and estimate[75] == "NA" and table.K1[75] == "NA"
    assert estimate[:5] == ["fitted"] * 5 and set(estimate[70:]) == {"projected", "NA"}
    known = table.K1 != "NA"
    truth = drawn.coordinates[order, 0][known]
    r = np.corrcoef(table.K1[known].astype(float), truth)[0, 1]
    assert abs(r) > 0.9  # only 700 sites
    # A new cohort changes nobody: the same again without it.
    before = table[:70]
    again = run_projection(folder, {k: prefixes[k] for k in ("a", "b")})
    pd.testing.assert_frame_equal(before, again)
    # From a range, founders have proportions for each K; those of the chosen one are the model's.
    about = run_fit(folder, prefixes, components=[1, 3], folds=2)
    over_k = read_table(folder / "over_k.tsv")
    assert over_k.k.value_counts(sort=False).to_dict() == {"1": 69, "2": 69, "3": 69}
    shares = over_k[["K1", "K2", "K3"]].apply(pd.to_numeric, errors="coerce")
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    assert shares.notna().sum(axis=1).tolist() == over_k.k.astype(int).tolist()
    with np.load(folder / "model.npz") as model:
        assert over_k["sample"][:69].tolist() == model["samples"].tolist()
        own = shares[over_k.k == str(about["k"])].iloc[:, : about["k"]]
        np.testing.assert_allclose(own, model["proportions"], rtol=1e-5, atol=1e-6)


def test_without_fastmixture_one_sentence(study, monkeypatch):
    folder, prefixes, *_ = study
    monkeypatch.setattr(ancestry, "why_missing", lambda: "fastmixture is not installed")
    about = run_fit(folder, prefixes, components=[1, 3])
    assert about["reason"] == "fastmixture is not installed" and about["k"] == 0
    table = run_projection(folder, prefixes)
    assert len(table) == 90 and "K1" not in table and set(table.estimate) == {"NA"}


def test_too_few_founders(study, monkeypatch):
    folder, prefixes, names, order, _ = study
    monkeypatch.setattr(ancestry, "why_missing", lambda: "")
    write_npz(folder / "axes.npz", samples=np.array([names[order[0]]]), sites=np.arange(600))
    assert "1 unrelated founders at 600 sites are too few" in run_fit(folder, prefixes)["reason"]
