"""PCA, PCoA and UMAP equal computations on dense matrices."""

import json

import numpy as np
import pandas as pd
import pytest
from oracles import reference
from oracles.components import cohort_relationship, principal_components
from support.one_map import umap_layout
from support.study import make_cohorts, write_raw
from threadpoolctl import threadpool_limits

from popdesic.cohort.site_alleles import read_cohorts
from popdesic.components import relationship as embedding
from popdesic.components.define_axes import define_axes
from popdesic.components.pca import axes_of, compute_pca
from popdesic.components.projection import FURTHER
from popdesic.components.relationship import relationship_among, relationship_to
from popdesic.components.scaling import principal_coordinates
from popdesic.components.tables import write_embedding
from popdesic.core.errors import UserError
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.maps.pcoa import compute_pcoa


@pytest.fixture
def study(tmp_path):
    """Three cohorts on disk: prefixes, genotypes (n, n_sites), mask and frequencies of founders."""

    def build(missing: float, n_sites: int = 300):
        cohorts = make_cohorts((14, 11, 9), n_sites=n_sites, missing=missing)
        prefixes = [write_raw(tmp_path / c.name / "genotypes", c) for c in cohorts]
        genotypes = np.concatenate([c.genotypes.T for c in cohorts])
        genotypes[:, 5] = 0  # monomorphic
        founders = np.repeat([c.founder for c in cohorts], [len(c.samples) for c in cohorts])
        for cohort, prefix in zip(cohorts, prefixes, strict=True):
            cohort.genotypes[5] = 0
            write_raw(prefix, cohort)
        called = np.maximum((genotypes[founders] >= 0).sum(axis=0), 1)
        af = np.where(genotypes[founders] >= 0, genotypes[founders], 0).sum(axis=0) / (2 * called)
        return cohorts, prefixes, genotypes, founders, af

    return build


def same_up_to_sign(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=tolerance)


# --- PCA ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [64, 2048])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_relationship(study, monkeypatch, missing, chunk):
    monkeypatch.setattr(embedding, "CHUNK_SITES", chunk)
    _, prefixes, genotypes, founders, af = study(missing)
    expected = reference.relationship(genotypes, af)
    # sums of 300 terms in another order
    close = {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(cohort_relationship(prefixes, af), expected, **close)
    rows, own = relationship_to(*read_cohorts(prefixes), founders, af)
    np.testing.assert_allclose(rows, expected[np.ix_(~founders, founders)], **close)
    np.testing.assert_allclose(own, np.diag(expected)[~founders], **close)
    keep = [np.arange(size) % 2 == 0 for size in (14, 11, 9)]
    sites = np.arange(0, 300, 3)
    read, sizes = read_cohorts(prefixes, sites, keep)
    assert sizes == [7, 6, 5]
    some = relationship_among(read, sizes, af[sites])
    expected = reference.relationship(genotypes[np.concatenate(keep)][:, sites], af[sites])
    np.testing.assert_allclose(some, expected, **close)


def test_pca_is_the_same_for_any_number_of_threads(study, monkeypatch):
    monkeypatch.setattr(embedding, "BLOCK_SAMPLES", 7)
    _, prefixes, _, founders, af = study(0.1)
    results = []
    for threads in (1, 2, 5):
        with threadpool_limits(threads, "blas"):
            related = cohort_relationship(prefixes, af, threads)
            rows, own = relationship_to(*read_cohorts(prefixes), founders, af, threads)
            axes, _ = axes_of(related[np.ix_(founders, founders)], 5)
            scores = axes.place(founders, rows, own)
        results.append([array.tobytes() for array in (related, rows, own, scores)])
    assert results[0] == results[1] == results[2]


def test_pca_of_complete_genotypes_is_the_svd(study):
    _, prefixes, genotypes, founders, af = study(0.0)
    scores, explained = principal_components(cohort_relationship(prefixes, af), founders, 6)
    expected, shares = reference.pca_scores(genotypes, af, founders, 6)
    expected[~founders] = reference.augmented_scores(genotypes, af, founders, 6)
    # eigenvectors of products instead of an SVD: half the digits in the worst case
    same_up_to_sign(scores, expected, 1e-9)
    np.testing.assert_allclose(explained, shares, rtol=1e-10)
    largest = np.abs(scores[founders]).argmax(axis=0)
    assert (scores[founders][largest, np.arange(6)] > 0).all(), "the sign is fixed"


def test_pca_with_missing_genotypes(study):
    _, prefixes, genotypes, founders, af = study(0.1)
    scores, explained = principal_components(cohort_relationship(prefixes, af), founders, 5)
    among = reference.relationship(genotypes, af)[np.ix_(founders, founders)]
    values, vectors = np.linalg.eigh(among)
    values, vectors = values[::-1][:5], vectors[:, ::-1][:, :5]
    same_up_to_sign(scores[founders], vectors * np.sqrt(values), 1e-10)
    np.testing.assert_allclose(explained, values / np.trace(among), rtol=1e-10)


def test_newcomers_do_not_move_the_axes(study):
    _, prefixes, _, founders, af = study(0.05)
    related = cohort_relationship(prefixes, af)
    scores, explained = principal_components(related, founders, 4)
    among = np.ix_(founders, founders)
    alone, shares = principal_components(related[among], np.ones(founders.sum(), bool), 4)
    np.testing.assert_array_equal(scores[founders], alone)
    np.testing.assert_array_equal(explained, shares)


def test_components_do_not_exceed_the_rank(study):
    _, prefixes, _, founders, af = study(0.0)
    related = cohort_relationship(prefixes, af)
    scores, explained = principal_components(related, founders, 100)
    assert scores.shape == (34, len(explained))
    assert len(explained) <= founders.sum() - 1
    assert explained.sum() <= 1 + 1e-12
    two = np.zeros(34, bool)
    two[:2] = True
    assert principal_components(related, two, 5)[0].shape == (34, 1)


def test_monomorphic_panel_has_no_components():
    with pytest.raises(UserError, match="no component"):
        axes_of(np.zeros((6, 6)), 3)


def test_the_largest_number_that_is_asked_for(study):
    _, prefixes, _, founders, af = study(0.0)
    among = cohort_relationship(prefixes, af)[np.ix_(founders, founders)]
    axes, tests = axes_of(among, "auto", 3)
    assert tests.count == 1, "two populations"
    assert [axes_of(among, *sizes)[0].k for sizes in (("auto",), (1,), (1, "auto"), (6, 3))] == [
        2, 1, 2, 6,
    ]  # fmt: skip
    assert axes.k == 3 and len(axes.values) == min(founders.sum() - 1, 50 + FURTHER)


@pytest.fixture
def pca(study, tmp_path):
    """Run `define_axes` and `compute_pca` with one sample dropped from the distances."""
    cohorts, prefixes, genotypes, founders, af = study(0.02)
    rows = "".join(f"1\t{k}\trs{k}\tA\tC\t{p:.17g}\t0\t10\n" for k, p in enumerate(af.tolist()))
    header = "# panel x, 300 sites\nchrom\tpos\tid\tref\talt\taf\tmode\tn_called\n"
    (tmp_path / "sites.tsv").write_text(header + rows)
    names = [(name, c.name) for c in cohorts for name in c.samples]
    kept = [k for k, (name, _) in enumerate(names) if name != "W03"]
    lines = [f"{names[k][0]}\t{names[k][1]}\n" for k in kept]
    (tmp_path / "order.tsv").write_text("sample\tcohort\n" + "".join(lines))
    sheet = [f"{name}\t{cohort}\tpop{name}\n" for name, cohort in reversed(names)]
    (tmp_path / "samples.tsv").write_text("sample\tcohort\tpopulation\n" + "".join(sheet))
    unrelated = [
        f"{name}\t{cohort}\t{'no' if name == 'N03' else 'yes'}\n" for name, cohort in names
    ]
    (tmp_path / "unrelated.tsv").write_text("sample\tcohort\tunrelated\n" + "".join(unrelated))
    define_axes(
        prefixes[:2],
        tmp_path / "sites.tsv",
        unrelated=tmp_path / "unrelated.tsv",
        components=4,
        pcs="auto",
        ld_prune=[],
        regions=[],
        out={
            "axes": tmp_path / "axes.npz",
            "about": tmp_path / "axes.json",
            "loadings": tmp_path / "loadings.tsv",
        },
    )
    statistics = compute_pca(
        prefixes,
        tmp_path / "axes.npz",
        tmp_path / "axes.json",
        tmp_path / "order.tsv",
        tmp_path / "samples.tsv",
        table_out=tmp_path / "pca.tsv",
        scores_out=tmp_path / "pca.npy",
        statistics_out=tmp_path / "pca.json",
        backend=CpuBackend(),
    )
    founders[3] = False  # has a relative
    return tmp_path, statistics, [names[k] for k in kept], (genotypes[kept], founders[kept])


def test_pca_files(pca):
    folder, statistics, names, (genotypes, axes) = pca
    scores = np.load(folder / "pca.npy")
    table = pd.read_csv(folder / "pca.tsv", sep="\t")
    assert list(table.columns) == ["sample", "PC1", "PC2", "PC3", "PC4", "cohort"]
    assert table["sample"].tolist() == [name for name, _ in names]
    assert table.cohort.tolist() == [cohort for _, cohort in names]
    assert scores.shape == (len(names), 8), "what the choice of geodesics compares"
    scores = scores[:, :4]
    # six digits are written
    np.testing.assert_allclose(table.filter(like="PC"), scores, rtol=1e-5)
    among = np.where(genotypes[axes] < 0, np.nan, genotypes[axes])
    af = np.nanmean(among, axis=0) / 2  # of the samples that define the axes, nobody else
    values, vectors = np.linalg.eigh(reference.relationship(genotypes[axes], af))
    same_up_to_sign(scores[axes], vectors[:, ::-1][:, :4] * np.sqrt(values[::-1][:4]), 1e-9)
    assert json.loads((folder / "pca.json").read_text()) == statistics
    assert statistics["samples"] == 33 and statistics["axis_samples"] == 24
    assert len(statistics["variance_explained"]) == 4
    assert statistics["sites"]["panel"] == 300
    assert statistics["sites"]["used"] + statistics["sites"]["monomorphic"] == 300
    assert statistics["shifts"] == [], "every label is in one cohort only"


def test_loadings_are_the_right_singular_vectors(pca):
    folder, _, _, (genotypes, axes) = pca
    among = genotypes[axes]
    called = np.where(among < 0, np.nan, among)
    af = np.nanmean(called, axis=0) / 2
    values, vectors = np.linalg.eigh(reference.relationship(among, af))
    z = reference.standardized(among, af)
    expected = z.T @ vectors[:, ::-1][:, :4] / np.sqrt(values[::-1][:4] * z.shape[1])
    table = pd.read_csv(folder / "loadings.tsv", sep="\t")
    assert table.id.tolist() == [f"rs{k}" for k in np.flatnonzero((af > 0) & (af < 1))]
    same_up_to_sign(table.filter(like="PC").to_numpy(), expected, 1e-8)


# --- PCoA ---------------------------------------------------------------------------------------


def euclidean(points: np.ndarray) -> np.ndarray:
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def test_pcoa_recovers_euclidean_distances():
    points = np.random.default_rng(1).normal(size=(20, 4)) * [8, 4, 2, 1]
    coordinates, explained = principal_coordinates(euclidean(points), 4)
    np.testing.assert_allclose(euclidean(coordinates), euclidean(points), atol=1e-9)
    variances = np.linalg.svd(points - points.mean(axis=0))[1] ** 2
    np.testing.assert_allclose(explained, variances / variances.sum(), rtol=1e-9)
    np.testing.assert_allclose(coordinates.mean(axis=0), 0, atol=1e-9)


def test_pcoa_of_distances_that_are_not_euclidean():
    rng = np.random.default_rng(2)
    distances = rng.uniform(1, 2, (12, 12))
    distances = np.tril(distances, -1) + np.tril(distances, -1).T
    before = distances.copy()
    coordinates, explained = principal_coordinates(distances, 11)
    np.testing.assert_array_equal(distances, before)
    assert np.isfinite(coordinates).all()
    centring = np.eye(12) - 1 / 12
    values = np.linalg.eigvalsh(-0.5 * centring @ distances**2 @ centring)[::-1]
    np.testing.assert_allclose((coordinates**2).sum(axis=0), np.maximum(values[:11], 0), atol=1e-10)
    shares = np.maximum(values[:11], 0) / values.sum()
    np.testing.assert_allclose(explained, shares, atol=1e-10)


def test_pcoa_needs_finite_distances():
    distances = np.ones((5, 5)) - np.eye(5)
    distances[0, 1] = distances[1, 0] = np.inf
    with pytest.raises(UserError, match="no finite geodesic"):
        principal_coordinates(distances, 2)


def test_pcoa_of_identical_samples():
    coordinates, explained = principal_coordinates(np.zeros((4, 4)), 2)
    assert (coordinates == 0).all()
    assert (explained == 0).all()


def test_pcoa_files(tmp_path):
    points = np.random.default_rng(3).normal(size=(8, 3))
    np.save(tmp_path / "lengths.npy", euclidean(points).astype(np.float32))
    rows = "".join(f"S{k}\ta\n" for k in range(8))
    (tmp_path / "order.tsv").write_text("sample\tcohort\n" + rows)
    statistics = compute_pcoa(
        tmp_path / "lengths.npy",
        tmp_path / "order.tsv",
        tmp_path / "order.tsv",
        components=3,
        table_out=tmp_path / "pcoa.tsv",
        statistics_out=tmp_path / "pcoa.json",
    )
    table = pd.read_csv(tmp_path / "pcoa.tsv", sep="\t")
    assert list(table.columns) == ["sample", "PCo1", "PCo2", "PCo3", "cohort"]
    found = euclidean(table.filter(like="PCo").to_numpy())
    np.testing.assert_allclose(found, euclidean(points), atol=1e-4)  # float32, six digits written
    assert (
        statistics["variance_explained"]
        == json.loads((tmp_path / "pcoa.json").read_text())["variance_explained"]
    )


# --- UMAP ---------------------------------------------------------------------------------------


def draw_umap(distances, start, neighbors=3, seed=1):
    return umap_layout(
        distances.__getitem__,
        len(distances),
        start,
        neighbors=neighbors,
        min_dist=0.3,
        seed=seed,
    )


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_umap_needs_finite_distances(value):
    distances = np.ones((8, 8)) - np.eye(8)
    distances[0, 1:] = distances[1:, 0] = value
    with pytest.raises(UserError, match="no finite geodesic"):
        draw_umap(distances, np.eye(8)[:, :2])


def test_umap_needs_five_samples():
    with pytest.raises(UserError, match="UMAP needs at least 5 samples, this study has 4"):
        draw_umap(np.ones((4, 4)), np.eye(4)[:, :2])


def test_umap_is_the_same_every_time():
    """Two distant clusters, most pairs of one at distance zero; the unit does not matter."""
    points = np.concatenate([np.zeros((22, 2)), np.random.default_rng(4).normal(40, 1, (8, 2))])
    distances = euclidean(points)
    assert np.median(distances[np.triu_indices(30, 1)]) == 0
    maps = [
        draw_umap(scale * distances, principal_coordinates(distances, 2)[0], 5, seed)
        for scale, seed in ((1, 1), (1, 1), (2.0**100, 1), (1, 2))
    ]
    assert maps[0].shape == (30, 2)
    assert np.isfinite(maps[0]).all()
    assert maps[0].tobytes() == maps[1].tobytes() == maps[2].tobytes()
    assert maps[0].tobytes() != maps[3].tobytes()


# --- tables -------------------------------------------------------------------------------------


def test_table_keeps_names_and_leaves_labels_to_the_sheet(tmp_path):
    samples = pd.DataFrame(
        {"sample": ["001", "NA", "x y"], "cohort": ["a", "a", "b"], "site": ["", "NA", "é"]}
    )
    write_embedding(tmp_path / "t.tsv", samples, np.array([[1.5, -2], [0, 1e-9], [3, 4]]), "PC")
    assert (tmp_path / "t.tsv").read_text() == (
        "sample\tPC1\tPC2\tcohort\n001\t1.5\t-2\ta\nNA\t0\t1e-09\ta\nx y\t3\t4\tb\n"
    )
