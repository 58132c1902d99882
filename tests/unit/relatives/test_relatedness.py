"""PC-Relate against known pedigrees over diverged ancestries; parents and siblings on any panel."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from oracles.compare import pc_relate as slow_pc_relate
from scenes.ancestry import TRUTH, Scene, draw_scene, label_of
from support.study import Cohort, make_sites, write_raw

import popdesic
from popdesic.core.errors import UserError
from popdesic.core.files import read_json, write_json
from popdesic.core.tables import read_table, write_table
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.ibd.verdict import relation_of
from popdesic.relatives import kinship
from popdesic.relatives.pc_relate import ancestry_of, count_pairs, fit_frequencies, pc_relate
from popdesic.relatives.relatedness import PAIRS, relate_samples
from popdesic.relatives.resolution import DUPLICATE, SECOND, resolve

ERROR_RATE = 0.005


def reader(genotypes: np.ndarray):
    return lambda first, last, people=slice(None): genotypes[people, first:last].T


class Related:
    """A scene, KING-robust kinship and PC-Relate in the published order."""

    def __init__(self, scene: Scene, components: int | str = 1) -> None:
        self.scene = scene
        self.king = popdesic.kinship(scene.genotypes, device="cpu")
        edges = [tuple(edge) for edge in np.argwhere(np.triu(self.king >= SECOND, 1)).tolist()]
        self.training = np.zeros(len(self.king), bool)
        self.training[kinship.unrelated_set(len(self.king), edges)] = True
        found = popdesic.pca(scene.genotypes, n_components=components, founders=self.training)
        self.ancestry = ancestry_of(found.scores, self.training, found.scores.shape[1])
        self.read = reader(scene.genotypes)
        self.found = pc_relate(self.read, scene.genotypes.shape[1], self.ancestry, CpuBackend(2))
        self.values = self.found.matrix()

    def of(self, name: str, most: int = 1_000):
        """Rows, columns and realised kinship of the pairs of a class."""
        pairs = self.scene.pairs[name]
        pairs = pairs[:: max(1, len(pairs) // most)]
        i, j = np.array(pairs).T
        truth = [self.scene.kinship(*pair) if TRUTH[name] else 0.0 for pair in pairs]
        return i, j, np.array(truth)

    def right(self, name: str, *, king: bool) -> float:
        """Share of the pairs of a class with the right label."""
        i, j, _ = self.of(name)
        counts = count_pairs(self.read, self.ancestry, self.found.coefficients, i, j)
        same = self.king[i, j] > DUPLICATE
        if king:
            af = np.ma.masked_less(self.scene.genotypes, 0).mean(axis=0).filled(0) / 2
            limit = kinship.panel_parent_limit(af, ERROR_RATE)
            share = counts.counts["ibs0"] / counts.counts["called"]
            labels = [
                kinship.SAME if twin else relation_of(value, one, limit)
                for value, one, twin in zip(self.king[i, j], share, same, strict=True)
            ]
        else:
            labels = [
                kinship.SAME if twin else relation_of(value, k0)
                for value, k0, twin in zip(self.values[i, j], counts.k0, same, strict=True)
            ]
        return float(np.isin(labels, label_of(name)).mean())


@pytest.fixture(scope="module", params=[0.1, 0.15])
def related(request) -> Related:
    return Related(draw_scene(fst=request.param, families=24, seed=3))


@pytest.mark.parametrize("name", TRUTH)
def test_pc_relate_is_unbiased_whatever_the_ancestry(related, name):
    """Within 0.005, or 3 % of the kinship where that is more."""
    i, j, truth = related.of(name)
    bias = float(np.mean(related.values[i, j] - truth))
    assert abs(bias) < max(0.005, 0.03 * TRUTH[name])


@pytest.mark.parametrize("name", TRUTH)
def test_degrees_are_right_whatever_the_ancestry(related, name):
    """Realised kinship of cousins scatters by 0.012, so that some are nearer to the next degree."""
    assert related.right(name, king=False) >= (0.75 if "cousins" in name else 0.95)


def test_king_robust_takes_ancestry_for_relatedness():
    """What PC-Relate is for: F_ST 0.15, the same pairs by both methods."""
    both = Related(draw_scene(fst=0.15, families=12, seed=4))
    strangers, half = "unrelated F1 x F1", "half siblings over two ancestries"
    i, j, _ = both.of(strangers)
    assert both.king[i, j].mean() > 0.06
    assert abs(both.values[i, j].mean()) < 0.001
    assert both.right(strangers, king=True) < 0.05
    assert both.right(strangers, king=False) == 1
    i, j, truth = both.of(half)
    assert np.mean(both.king[i, j] - truth) < -0.03
    assert abs(np.mean(both.values[i, j] - truth)) < 0.005
    assert both.right(half, king=True) < 0.6
    assert both.right(half, king=False) > 0.9


@pytest.mark.parametrize("components", [2, 8])
def test_axes_that_fit_noise_bias_little(components):
    """More components than the one that is real: relatives of fitted people are not lost.

    Fails where a person and a relative among the fitted become an axis of their own, in place of
    one of noise: scores on it are thirteen times too large (`projection.project`).
    """
    both = Related(draw_scene(fst=0.15, families=16, seed=5), components=components)
    for name in TRUTH:
        i, j, truth = both.of(name)
        assert abs(np.mean(both.values[i, j] - truth)) < max(0.008, 0.03 * TRUTH[name]), name


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_sites", [150, 6_000])
def test_pc_relate_equals_the_slow_formula(missing, n_sites):
    rng = np.random.default_rng(7)
    frequency = rng.uniform(0.02, 0.98, n_sites)
    genotypes = rng.binomial(2, frequency, (40, n_sites)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    scores = rng.normal(size=(40, 2))
    training = np.arange(40) < 30
    found = pc_relate(reader(genotypes), n_sites, ancestry_of(scores, training, 2), CpuBackend())
    raw, own = slow_pc_relate(genotypes, scores, training)
    # Five times the errors of rounding that `kinship.expected` states: the largest of 1 600 pairs.
    limits = {"atol": 4e-3 / n_sites**0.5, "rtol": 2e-3 / n_sites**0.5}
    np.testing.assert_allclose(found.own, own, **limits)
    np.testing.assert_allclose(found.matrix(), raw, **limits)
    assert (found.matrix() == found.matrix().T).all()


def test_bytes_do_not_depend_on_threads_or_on_later_cohorts():
    rng = np.random.default_rng(1)
    genotypes = rng.integers(0, 3, (900, 1_500)).astype(np.int8)
    scores, training = rng.normal(size=(900, 3)), np.arange(900) < 60
    ancestry = ancestry_of(scores, training, 3)
    one, five = (
        pc_relate(reader(genotypes), 1_500, ancestry, CpuBackend(threads)).matrix()
        for threads in (1, 5)
    )
    assert one.tobytes() == five.tobytes()
    old = slice(333)
    alone = pc_relate(
        reader(genotypes[old]), 1_500, ancestry_of(scores[old], training[old], 3), CpuBackend()
    )
    assert alone.matrix().tobytes() == np.ascontiguousarray(one[old, old]).tobytes()


def test_chance_is_a_third_of_the_variance_of_king_robust(related):
    """The limit for PC-Relate follows from the resolution that is measured for KING-robust."""
    i, j, _ = related.of("unrelated, one population", most=10_000)
    about = {"panel": "x", "sites": 8_000, "founders": 200, "max_mismatch": 0.02}
    found = resolve(float(np.var(related.king[i, j])), 0.5, 1e-4, **about)
    errors = float(found.least_pc_relate(np.array(8_000))) / related.values[i, j].std()
    assert errors == pytest.approx(np.sqrt(2 * np.log(1_000 * 999 / 2 / 0.05)), rel=0.1)
    assert related.values[i, j].max() < found.least_pc_relate(np.array(8_000))
    assert found.least_pc_relate(np.array(2_000)) == pytest.approx(
        2 * found.least_pc_relate(np.array(8_000))
    )


def test_missing_genotypes_leave_the_regression_of_their_site():
    """Coefficients of incomplete sites are least squares over the called training samples."""
    rng = np.random.default_rng(9)
    scores, training = rng.normal(size=(50, 2)), np.arange(50) >= 10
    genotypes = rng.integers(0, 3, (20, 50)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.3] = -1
    genotypes[3, 13:] = -1  # three called training samples cannot tell three coefficients
    ancestry = ancestry_of(scores, training, 2)
    found = fit_frequencies(genotypes, ancestry) @ ancestry.basis.T
    axes = np.column_stack([np.ones(50), scores])
    for site, row in enumerate(genotypes):
        use = training & (row >= 0)
        expected = axes @ np.linalg.lstsq(axes[use], row[use] / 2, rcond=None)[0]
        if site == 3:
            assert np.isnan(found[site]).all()
        else:
            np.testing.assert_allclose(found[site], expected, atol=1e-9)


def test_the_public_function_gives_the_same():
    rng = np.random.default_rng(12)
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.9, 300), (40, 300)).astype(np.int8)
    genotypes[3, :299] = -1
    fitted = np.arange(40) < 30
    scores = popdesic.pca(genotypes, n_components=2, founders=fitted).scores
    found = popdesic.kinship(
        genotypes, method="pc-relate", scores=scores, founders=fitted, min_called=2
    )
    ancestry = ancestry_of(scores, fitted, 2)
    expected = pc_relate(reader(genotypes), 300, ancestry, CpuBackend()).matrix()
    assert np.isnan(found[3]).all() and np.isnan(found[:, 3]).all()
    rest = np.arange(40) != 3
    np.testing.assert_array_equal(found[np.ix_(rest, rest)], expected[np.ix_(rest, rest)])


def test_inbreeding_is_on_the_diagonal():
    """Children of full siblings: one quarter; F1 people: negative."""
    rng = np.random.default_rng(10)
    frequency = rng.uniform(0.1, 0.9, 20_000)
    strangers = rng.random((150, 2, 20_000)) < frequency
    inbred = rng.random((20, 2, 20_000)) < frequency
    share = rng.random((20, 20_000)) < 0.25
    inbred[:, 1] = np.where(share, inbred[:, 0], inbred[:, 1])
    genotypes = np.concatenate([strangers, inbred]).sum(axis=1).astype(np.int8)
    training = np.arange(170) < 150
    found = pc_relate(
        reader(genotypes), 20_000, ancestry_of(np.zeros((170, 0)), training, 0), CpuBackend()
    )
    inbreeding = 2 * found.own - 1
    assert abs(inbreeding[150:].mean() - 0.25) < 0.01
    assert abs(inbreeding[:150].mean()) < 0.005


def test_too_few_unrelated_samples_are_refused():
    with pytest.raises(ValueError, match="1 unrelated samples cannot define"):
        ancestry_of(np.zeros((5, 2)), np.arange(5) == 2, 1)
    # components are fewer where the training set is small
    assert ancestry_of(
        np.random.default_rng(1).normal(size=(30, 9)), np.arange(30) < 20, 9
    ).basis.shape == (30, 4)


# --- a study ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Founders (both populations and F1) and a cohort of newcomers, with families."""
    folder = tmp_path_factory.mktemp("relate")
    both = Related(draw_scene(fst=0.15, families=8, sites=4_000, seed=13))
    n = len(both.scene.genotypes)
    names = [f"p{i}" for i in range(n)]
    cut = 220
    sites = make_sites(4_000)
    parts = {"old": slice(0, cut), "new": slice(cut, n)}
    for cohort, part in parts.items():
        rows = both.scene.genotypes[part].T
        write_raw(folder / cohort / "genotypes", Cohort(cohort, names[part], sites, rows))
    table = pd.DataFrame({"sample": names, "cohort": ["old"] * cut + ["new"] * (n - cut)})
    write_table(folder / "samples.tsv", table)
    fitted = both.training & (np.arange(n) < cut)
    unrelated = np.where(fitted, "yes", "no")
    write_table(folder / "unrelated.tsv", table.assign(unrelated=unrelated)[:cut])
    scores = popdesic.pca(both.scene.genotypes, n_components=1, founders=fitted).scores
    np.save(folder / "pca.npy", scores)
    write_json(folder / "axes.json", {"significant": 1})
    panel = pd.DataFrame(sites, columns=["chrom", "pos", "id", "ref", "alt"])
    with open(folder / "panel.tsv", "w") as file:
        file.write("# panel x\n")
        panel.assign(af=0.5, mode=0, n_called=n).to_csv(file, sep="\t", index=False)
    i, j = np.nonzero(np.triu(both.king >= SECOND, 1))
    value = both.king[i, j]
    king = pd.DataFrame(
        {
            "sample_a": [names[k] for k in i],
            "sample_b": [names[k] for k in j],
            "kinship": value,
            "relation": np.where(value > DUPLICATE, kinship.SAME, "related"),
        }
    )
    write_table(folder / "kinship.tsv", king)
    return folder, both, names


def relate(folder, **options) -> dict:
    out = {
        name: folder / f"pc_relate.{end}"
        for name, end in (("pairs", "tsv"), ("samples", "samples.tsv"), ("about", "json"))
    }
    about = {"panel": "x", "sites": 4_000, "founders": 220, "max_mismatch": 0.02}
    chosen = {
        "founders": {"old"},
        "unrelated": folder / "unrelated.tsv",
        "resolution": resolve(0.75 / 3_500, 0.5, 1e-4, **about),
        "components": None,
        "max_sites": 4_000,
        "min_kinship": SECOND,
        "backend": CpuBackend(2),
    }
    names = ("panel.tsv", "samples.tsv", "pca.npy", "axes.json", "kinship.tsv")
    files = ("panel", "samples", "scores", "axes", "king")
    return relate_samples(
        [folder / name / "genotypes" for name in ("old", "new")],
        {file: folder / name for file, name in zip(files, names, strict=True)},
        out,
        **chosen | options,
    )


def test_a_study_gets_tables_by_both_methods(study):
    folder, both, names = study
    relate(folder)
    table = read_table(folder / "pc_relate.tsv")
    known = {name: i for i, name in enumerate(names)}
    rows = [(known[a], known[b]) for a, b in zip(table.sample_a, table.sample_b, strict=True)]
    assert all(i < j for i, j in rows)
    assert len(set(rows)) == len(rows)
    i, j = np.array(rows).T
    # every pair that either method finds, and no other
    by_king = {tuple(pair) for pair in np.argwhere(np.triu(both.king >= SECOND, 1)).tolist()}
    assert by_king <= set(rows)
    value = table.kinship.astype(float).to_numpy()
    assert all(k >= SECOND - 1e-6 for k, row in zip(value, rows, strict=True) if row not in by_king)
    assert (np.diff(value) <= 1e-6).all()
    np.testing.assert_allclose(table.king.astype(float), both.king[i, j], atol=1e-5)
    label = dict(zip(rows, table.relation, strict=True))
    for pair in both.scene.pairs["duplicate"]:
        assert label[pair] == kinship.SAME
    for name in ("parent and F1 child", "full siblings, F1"):
        assert {label[tuple(sorted(pair))] for pair in both.scene.pairs[name]} == {"related"}
    half = "half siblings over two ancestries"
    found = [tuple(sorted(pair)) in label for pair in both.scene.pairs[half]]
    assert np.mean(found) > 0.8
    # inbreeding: F1 people are heterozygous beyond expectation
    samples = read_table(folder / "pc_relate.samples.tsv")
    assert list(samples["sample"]) == names
    inbreeding = samples.inbreeding.astype(float).to_numpy()
    assert inbreeding[both.scene.ancestry == 0.5].mean() < -0.05
    assert abs(inbreeding[both.scene.ancestry != 0.5].mean()) < 0.02
    assert list(samples.fitted == "yes") == [
        bool(one) and k < 220 for k, one in enumerate(both.training)
    ]
    about = read_json(folder / "pc_relate.json")
    assert about["components"] == 1
    assert abs(about["median_kinship"]["new"]) < 0.01


@pytest.mark.parametrize("significant", [0, 1, 2, 9])
def test_auto_takes_the_significant_components(study, tmp_path, significant):
    """The PCA has four: what is written is what these columns alone would give."""
    folder = shutil.copytree(study[0], tmp_path / "study")
    noise = np.random.default_rng(6).normal(size=(len(study[2]), 3))
    scores = np.column_stack([np.load(folder / "pca.npy"), noise])
    np.save(folder / "pca.npy", scores)
    write_json(folder / "axes.json", {"significant": significant})
    relate(folder)
    about = read_json(folder / "pc_relate.json")
    assert about["components"] == min(significant, 4) and about["significant"] == significant
    found = (folder / "pc_relate.tsv").read_bytes()
    relate(folder, components=significant)
    assert (folder / "pc_relate.tsv").read_bytes() == found
    relate(folder, components=3)
    assert read_json(folder / "pc_relate.json")["components"] == 3
    assert (folder / "pc_relate.tsv").read_bytes() != found


def test_pairs_that_chance_explains_are_distant(study):
    """With few sites, unrelated people reach the kinship of relatives: none is called one."""
    folder = study[0]
    about = {"panel": "x", "sites": 4_000, "founders": 220, "max_mismatch": 0.02}
    few = resolve(0.75 / 40, 0.5, 1e-2, **about)
    limit = float(few.least_pc_relate(np.array(4_000)))
    assert 0.25 < limit < 0.5
    relate(folder, resolution=few)
    table = read_table(folder / "pc_relate.tsv")
    close = table.kinship.astype(float) >= limit
    assert (table.relation[~close & (table.relation != kinship.SAME)] == "distant").all()
    relate(folder, resolution=resolve(None, None, None, **about))
    table = read_table(folder / "pc_relate.tsv")
    assert set(table.relation) == {kinship.SAME, "distant"}


def test_fewer_sites_are_spread_over_the_panel(study):
    folder = study[0]
    counts = relate(folder, max_sites=1_000)
    assert counts["sites"] == 1_000
    table = read_table(folder / "pc_relate.tsv")
    assert (table.sites.astype(int) <= 1_000).all()
    twins = table[table.relation == kinship.SAME]
    assert (twins.kinship.astype(float) > 0.45).all()
    relate(folder)


def test_without_close_pairs_the_table_is_empty(study, tmp_path):
    folder = shutil.copytree(study[0], tmp_path / "study")
    write_table(folder / "kinship.tsv", read_table(folder / "kinship.tsv")[:0])
    assert relate(folder, min_kinship=0.9)["pairs"] == 0
    table = read_table(folder / "pc_relate.tsv")
    assert not len(table)
    assert list(table) == PAIRS


def test_no_unrelated_founders_is_one_sentence(study):
    folder = study[0]
    table = read_table(folder / "unrelated.tsv")
    write_table(folder / "nobody.tsv", table.assign(unrelated="no"))
    with pytest.raises(UserError, match=r"pc_relate\.tsv: 0 unrelated samples cannot define"):
        relate(folder, unrelated=folder / "nobody.tsv")


def test_newcomers_that_the_axes_do_not_describe_are_told(study, tmp_path):
    """A cohort of a third population looks related throughout: its median kinship says so."""
    folder, _, names = study
    rng = np.random.default_rng(3)
    n = len(names) - 220
    rows = rng.binomial(2, rng.uniform(0.1, 0.9, 4_000), (n, 4_000)).astype(np.int8).T
    whole = shutil.copytree(folder, tmp_path / "study")
    new = Cohort("new", names[220:], make_sites(4_000), rows)
    write_raw(whole / "new" / "genotypes", new)
    relate(whole)
    assert read_json(whole / "pc_relate.json")["median_kinship"]["new"] > 0.05


# --- parents and siblings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frequencies", "old_is_right"), [((0.04, 0.12), False), ((0.1, 0.9), True)]
)
def test_parents_and_siblings_are_told_apart_at_any_frequency(frequencies, old_is_right):
    """A panel of rare variants: full siblings had fewer opposite homozygotes than 0.005."""
    scene = draw_scene(
        fst=0.01, families=20, singles=60, sites=20_000, frequencies=frequencies, seed=11
    )
    counts = {}
    for name in ("full siblings, one population", "parent and child, one population"):
        i, j = np.array(scene.pairs[name]).T
        a, b = scene.genotypes[i], scene.genotypes[j]
        called = (a >= 0) & (b >= 0)
        counts[name] = ((np.abs(a - b) == 2) & called).sum(axis=1) / called.sum(axis=1)
    siblings, parents = counts.values()
    af = np.ma.masked_less(scene.genotypes, 0).mean(axis=0).filled(0) / 2
    limit = kinship.panel_parent_limit(af, ERROR_RATE)
    assert parents.max() < limit < siblings.min()
    assert (siblings.min() > 0.005) == old_is_right  # the fixed limit of earlier versions


def test_limit_of_parents_is_between_errors_and_siblings():
    assert kinship.parent_limit(0.08, 0.4, 0.0) == pytest.approx(0.02 / 3)
    assert kinship.parent_limit(0.08, 0.4, 0.01) == pytest.approx(0.002 + 0.018 / 3)
    # so many errors that siblings cannot be told: nobody is called a sibling for errors alone
    assert kinship.parent_limit(0.004, 0.4, 0.05) == pytest.approx(0.01)
