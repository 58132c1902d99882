"""Sites of the axes: pruned, outside long-range LD, and an inversion that made a component."""

import json

import numpy as np
import pandas as pd
import pytest
from scenes.populations import populations
from scipy.spatial.distance import pdist, squareform
from support.study import Cohort, write_raw

from popdesic.cohort import site_planes as planes_of_sites
from popdesic.cohort.long_range_ld import in_regions, regions_of
from popdesic.cohort.prune import pruned
from popdesic.cohort.site_planes import site_planes
from popdesic.components import axis_sites, large_pca
from popdesic.components.axis_sites import CHANCE, choose_sites
from popdesic.components.define_axes import define_axes
from popdesic.components.loading_scores import SIGNS
from popdesic.components.pca import WEIGHTS
from popdesic.components.relationship import alt_frequency
from popdesic.core.errors import UserError
from popdesic.core.files import write_json
from popdesic.core.tables import read_table, write_npy
from popdesic.core.threads import run_tasks
from popdesic.distance.matrix import leading_scores, point_distances
from popdesic.engine import needs
from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import Planes
from popdesic.io.sites import canonical_contig

PRUNING = (500_000.0, "bp", 1, 0.2)
#: What `define_axes` is asked for where nothing else is said.
PLAIN = {"unrelated": None, "components": 4, "pcs": "auto", "ld_prune": [], "regions": []}


def choose(genotypes: np.ndarray, sites: pd.DataFrame, pruning=None, regions=()):
    def read(first: int, last: int) -> Planes:
        return site_planes(genotypes[first:last])

    return choose_sites(read, sites, cpu_backend(1), pruning=pruning, regions=list(regions))


def test_contigs_side_by_side_give_the_same_sites(monkeypatch):
    rng = np.random.default_rng(21)
    contigs = [sites_of(size, name) for name, size in (("2", 40), ("1", 1), ("X", 120), ("3", 65))]
    sites = pd.concat(contigs, ignore_index=True)
    base = rng.integers(0, 3, (len(sites) // 4 + 1, 50)).astype(np.int8)
    genotypes = np.repeat(base, 4, axis=0)[: len(sites)]
    genotypes[rng.random(genotypes.shape) < 0.1] = -1
    genotypes[7] = 0
    region = ("3", 1, 400_000, "here")

    def read(first: int, last: int) -> Planes:
        return site_planes(genotypes[first:last])

    named = {"pruning": PRUNING, "regions": [region]}
    expected = choose_sites(read, sites, cpu_backend(1), **named)
    assert expected.counts["monomorphic"] and expected.counts["long_range_ld"]
    assert 0 < expected.counts["ld_pruned"] < len(sites)
    at_once = []
    monkeypatch.setattr(
        axis_sites, "run_tasks", lambda *given: at_once.append(given[2]) or run_tasks(*given)
    )
    for threads, room in ((1, 1 << 28), (3, 1 << 28), (8, 1), (8, 2 * 120 * 3 * 64)):
        monkeypatch.setattr(planes_of_sites, "AHEAD_BYTES", room)
        backend = cpu_backend(1)
        backend.threads = threads  # as on a machine with so many
        found = choose_sites(read, sites, backend, n_samples=50, **named)
        assert backend.threads == threads
        assert (found.rows.tolist(), found.r2) == (expected.rows.tolist(), expected.r2)
        assert found.af.tobytes() == expected.af.tobytes() and found.counts == expected.counts
    assert at_once == [1, 3, 1, 2]


def sites_of(n: int, chrom: str = "1", step: int = 20_000) -> pd.DataFrame:
    return pd.DataFrame({"chrom": chrom, "pos": 1 + step * np.arange(n)})


def define(folder, genotypes: np.ndarray, sites: pd.DataFrame, **asked) -> dict:
    """`define_axes` of one founder cohort, genotypes (n, n_sites)."""
    n = len(genotypes)
    rows = [(c, p, f"rs{k}", "A", "C") for k, (c, p) in enumerate(zip(sites.chrom, sites.pos))]  # noqa: B905
    cohort = Cohort("north", [f"N{k}" for k in range(n)], rows, genotypes.T)
    prefix = write_raw(folder / "north/genotypes", cohort)
    table = sites.assign(id=[row[2] for row in rows], ref="A", alt="C", af=0.5, mode=0, n_called=n)
    (folder / "sites.tsv").write_text(
        f"# panel x, {len(table)} sites\n" + table.to_csv(sep="\t", index=False)
    )
    return define_axes(
        [prefix],
        folder / "sites.tsv",
        **PLAIN | asked,
        out={
            "axes": folder / "axes.npz",
            "about": folder / "axes.json",
            "loadings": folder / "loadings.tsv",
        },
    )


# --- long-range LD -------------------------------------------------------------------------------


@pytest.mark.parametrize("build", ["hg18", "hg19", "hg38"])
def test_known_regions_of_each_build(build):
    """Genes within the regions, by the positions of each build."""
    genes = {
        "HLA-A": ("6", {"hg18": 30_018_310, "hg19": 29_910_247, "hg38": 29_942_470}),
        "LCT": ("2", {"hg18": 136_261_885, "hg19": 136_545_415, "hg38": 135_787_845}),
        "BLK, 8p23": ("8", {"hg18": 11_388_930, "hg19": 11_351_521, "hg38": 11_494_012}),
        "MAPT, 17q21": ("17", {"hg18": 41_327_543, "hg19": 43_971_748, "hg38": 45_894_382}),
    }
    sites = pd.DataFrame([(chrom, pos[build]) for chrom, pos in genes.values()])
    sites.columns = ["chrom", "pos"]
    assert in_regions(sites, regions_of(build)).all()
    assert in_regions(sites.assign(chrom="chr" + sites.chrom), regions_of(build)).all()
    assert not in_regions(sites.assign(chrom="22"), regions_of(build)).any()
    assert not in_regions(sites, regions_of("none")).any()
    assert len(regions_of(build)) == 25


def test_regions_are_in_order_and_of_autosomes():
    everything = regions_of("any")
    assert len(everything) == 75 and regions_of("chm13") == []
    assert all(0 < start < end < 250_000_000 for _, start, end, _ in everything)
    assert {canonical_contig(chrom) for chrom, *_ in everything} <= set(map(str, range(1, 23)))
    # the same piece of the genome in each build: megabases, not tens of them
    for names in zip(*(regions_of(build) for build in ("hg18", "hg19", "hg38")), strict=True):
        chrom, start, end, name = zip(*names, strict=True)
        assert len(set(chrom)) == len(set(name)) == 1
        assert np.ptp(start) < 3e6 + 2e6 * (chrom[0] == "17") and np.ptp(end) < 5e6


# --- choice --------------------------------------------------------------------------------------


def test_sites_are_those_of_the_pruning_of_the_panel():
    rng = np.random.default_rng(1)
    genotypes = populations(rng, 1, 0.0, 200, 90)[0].T
    genotypes[1::3] = genotypes[::3]  # each third site is a copy of the one before
    genotypes[1::3][rng.random((30, 200)) < 0.02] = -1
    genotypes[50] = 2
    sites = sites_of(90, step=200_000)
    found = choose(genotypes, sites, PRUNING, [("1", 1, 1_000_001, "r")])
    inside = np.arange(90) <= 5
    expected = ~inside & (np.arange(90) != 50)
    here = sites[expected].reset_index(drop=True)
    expected[expected] = ~pruned(site_planes(genotypes[expected]), here, PRUNING, cpu_backend(1))
    assert found.rows.tolist() == np.flatnonzero(expected).tolist()
    assert found.counts == {
        "panel": 90,
        "monomorphic": 1,
        "long_range_ld": 6,
        "ld_pruned": 90 - 7 - len(found.rows),
        "used": len(found.rows),
    }
    assert 25 <= found.counts["ld_pruned"] <= 32
    called = np.where(genotypes < 0, np.nan, genotypes)
    np.testing.assert_allclose(found.af, np.nanmean(called, axis=1)[found.rows] / 2, rtol=1e-12)
    assert len(choose(genotypes, sites).rows) == 89, "no pruning, no regions"


def test_few_samples_prune_little_by_chance():
    genotypes = populations(np.random.default_rng(2), 1, 0.0, 20, 300)[0].T
    found = choose(genotypes, sites_of(300, step=1000), PRUNING)
    assert found.r2 == pytest.approx(CHANCE / 20)
    assert found.counts["ld_pruned"] < 60
    assert (
        choose(populations(np.random.default_rng(2), 1, 0, 80, 9)[0].T, sites_of(9), PRUNING).r2
        == 0.2
    )


def test_no_site_left_is_one_sentence():
    with pytest.raises(UserError, match=r"none of the 4 sites is left .*long_range_ld to keep"):
        choose(np.tile([0, 1], (4, 3)), sites_of(4), None, [("1", 1, 10**9, "all")])


def test_frequency_of_sites_without_calls_is_not_known():
    found = alt_frequency(np.array([[0, 1, 2, -1], [-1, -1, -1, -1]], np.int8))
    assert found[0] == 0.5 and np.isnan(found[1])


# --- an inversion --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inversion() -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """One population, 8 000 unlinked sites and 40 of an inversion on 4 Mb of chromosome 8."""
    rng = np.random.default_rng(8)
    n = 200
    plain = populations(rng, 1, 0.0, n, 8000)[0]
    karyotype = rng.binomial(2, 0.4, n).astype(np.int8)
    inside = np.repeat(karyotype[:, None], 40, axis=1)
    flipped = rng.random(40) < 0.5
    inside[:, flipped] = 2 - inside[:, flipped]
    wrong = rng.random(inside.shape) < 0.02
    inside[wrong] = rng.binomial(2, 0.4, wrong.sum())
    genotypes = np.concatenate([plain[:, :4000], inside, plain[:, 4000:]], axis=1)
    chrom = ["7"] * 4000 + ["8"] * 4040
    pos = [*range(1, 4000 * 30_000, 30_000), *range(8_000_000, 12_000_000, 100_000)]
    pos += [20_000_000 + 30_000 * k for k in range(4000)]
    return genotypes, pd.DataFrame({"chrom": chrom, "pos": pos}), karyotype


def first_axis(folder) -> np.ndarray:
    return np.load(folder / "axes.npz")["vectors"][:, 0]


def test_an_inversion_is_a_component_and_is_reported(tmp_path, inversion):
    genotypes, sites, karyotype = inversion
    about = define(tmp_path, genotypes, sites)
    assert np.corrcoef(first_axis(tmp_path), karyotype)[0, 1] ** 2 > 0.9
    (region,) = about["regions"]
    assert region["axis"] == 1 and region["chrom"] == "8" and region["sites"] >= 38
    assert 8_000_000 <= region["start"] < region["end"] < 12_000_000
    assert region["share"] > 0.2 > 0.01 > region["expected"]


@pytest.mark.parametrize(
    "asked",
    [{"ld_prune": ["500 kb", 1, 0.2]}, {"regions": regions_of("hg19")}],
    ids=["pruned", "excluded"],
)
def test_pruning_or_the_list_of_regions_removes_it(tmp_path, inversion, asked):
    genotypes, sites, karyotype = inversion
    about = define(tmp_path, genotypes, sites, **asked)
    assert np.corrcoef(first_axis(tmp_path), karyotype)[0, 1] ** 2 < 0.1
    assert about["regions"] == [] and about["significant"] == 0
    assert about["components"] == 4, "as many as were asked for"


def test_files_are_the_same_bytes_for_any_number_of_threads(tmp_path):
    genotypes, _ = populations(np.random.default_rng(3), 2, 0.1, 60, 900)
    genotypes[np.random.default_rng(4).random(genotypes.shape) < 0.02] = -1
    found = []
    for threads in (1, 3):
        folder = tmp_path / str(threads)
        define(folder, genotypes, sites_of(900), threads=threads, ld_prune=["500 kb", 1, 0.2])
        found.append([path.read_bytes() for path in sorted(folder.glob("*s.*"))])
    assert len(found[0]) == 4 and found[0] == found[1]
    about = json.loads((tmp_path / "1/axes.json").read_text())
    assert about["significant"] == 1 and len(about["scree"]) == 20
    assert about["scree"][0] > about["threshold"][0] and about["scree"][1] < about["threshold"][1]


@pytest.mark.parametrize("columns", [1, 3])
def test_the_space_of_components_takes_those_that_were_chosen(tmp_path, columns):
    """`geodesic.pcs: auto`, where the PCA has five columns."""
    scores = np.random.default_rng(1).normal(size=(7, 5))
    write_npy(tmp_path / "embedding/pca.npy", scores)
    write_json(tmp_path / "geodesic/choice.json", {"pcs": {"pcs": columns}})
    found = leading_scores(tmp_path / "embedding/pca.npy", "auto")
    np.testing.assert_array_equal(found, scores[:, :columns])
    found = leading_scores(tmp_path / "embedding/pca.npy", 4)
    np.testing.assert_array_equal(found, scores[:, :4])
    expected = squareform(pdist(scores[:, :columns]))
    found = point_distances(tmp_path / "embedding/pca.npy", "auto")
    np.testing.assert_array_equal(found, expected)


# --- many founders -------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.004])
def test_axes_by_passes_are_those_of_the_matrix(tmp_path, missing, monkeypatch):
    """The same definition: tables, numbers of components and loadings, with and without matrix."""
    monkeypatch.setattr(needs, "MOST_EXACT", 100)
    rng = np.random.default_rng(21)
    genotypes, _ = populations(rng, 4, 0.1, 150, 6000)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    sites = sites_of(genotypes.shape[1], step=10_000)
    found = {}
    for way, most in (("matrix", 1000), ("passes", 10)):
        folder = tmp_path / way
        (folder / "north").mkdir(parents=True)
        about = define(folder, genotypes, sites, components="auto", most_dense=most)
        with np.load(folder / "axes.npz") as stored:
            found[way] = about, {name: stored[name] for name in stored.files}
    (one, first), (other, second) = found["matrix"], found["passes"]
    for key in ("axis_samples", "sites", "significant", "components", "level"):
        assert one[key] == other[key], key
    assert one["significant"] == 3 and first["k"] == second["k"]
    np.testing.assert_allclose(second["values"][:3], first["values"][:3], rtol=1e-4)
    np.testing.assert_allclose(second["trace"], first["trace"], rtol=1e-9)
    r = (first["vectors"][:, :3] * second["vectors"][:, :3]).sum(axis=0)
    assert (r >= 0.99999).all(), r
    assert other["noise"]["limit"] == pytest.approx(one["noise"]["limit"], rel=0.02)
    assert one["noise"] != other["noise"], "other random numbers"
    axes = ["PC1", "PC2", "PC3"]
    dense, passes = (
        read_table(tmp_path / way / "loadings.tsv")[axes].to_numpy(np.float64) for way in found
    )
    r = [np.corrcoef(own, theirs)[0, 1] for own, theirs in zip(dense.T, passes.T, strict=True)]
    assert min(r) > 0.99999, r
    for stored, loadings in ((first, dense), (second, passes)):
        assert stored[WEIGHTS].dtype == np.float32
        n_sites = len(stored["sites"])
        assert stored[WEIGHTS].shape == (n_sites, len(stored["values"]) + SIGNS)
        own = stored[WEIGHTS][:, :3] / np.sqrt(n_sites * stored["values"][:3])
        np.testing.assert_allclose(own, loadings, rtol=2 * missing, atol=0.01 * missing + 1e-7)
    length = (passes**2).sum(axis=0)
    np.testing.assert_allclose(length, 1, atol=3 * missing + 1e-5)


def test_arrays_mixed_in_a_cohort_make_a_matrix_or_are_named(tmp_path, monkeypatch, caplog):
    rng = np.random.default_rng(22)
    genotypes, _ = populations(rng, 3, 0.1, 120, 3000)
    genotypes[:60, :1500] = -1
    sites = sites_of(genotypes.shape[1], step=20_000)
    (tmp_path / "north").mkdir()
    with caplog.at_level("INFO"):
        mixed = define(tmp_path, genotypes, sites, components="auto", most_dense=10)
    assert "The matrix of all 120 samples is made" in caplog.text
    assert mixed == define(tmp_path, genotypes, sites, components="auto", most_dense=1000)
    monkeypatch.setattr(large_pca, "MOST_MATRIX", 50)
    with pytest.raises(UserError, match="make a cohort of each array"):
        define(tmp_path, genotypes, sites, components="auto", most_dense=10)


def haplotypes(rng, n: int, n_sites: int, step: int, cross: bool) -> np.ndarray:
    """Haplotypes (n_sites, n): mosaics of two lines that change every 30 Mb, or free sites."""
    if not cross:
        return rng.random((n_sites, n)) < rng.uniform(0.3, 0.7, (n_sites, 1))
    lines = rng.permuted(np.tile([[0, 1]], (n_sites, 1)), axis=1)
    change = rng.random((n_sites, n)) < step / 30e6
    line = (rng.integers(0, 2, n) + np.cumsum(change, axis=0)) % 2
    return np.take_along_axis(lines, line, axis=1)


@pytest.mark.parametrize("cross", [True, False])
def test_ld_beyond_the_window_of_pruning_is_measured(cross):
    rng = np.random.default_rng(3)
    n, size, step = 120, 300, 100_000
    parts = [sum(haplotypes(rng, n, size, step, cross) for _ in range(2)) for _ in range(2)]
    genotypes = np.concatenate(parts).astype(np.int8)
    pos = np.tile(1 + step * np.arange(size), 2)
    sites = pd.DataFrame({"chrom": np.repeat(["1", "2"], size), "pos": pos})
    left = {}
    for window in (500_000.0, 20e6):
        found = choose(genotypes, sites, (window, "bp", 1, 0.9 if cross else 0.2))
        here, at = genotypes[found.rows], sites.iloc[found.rows].reset_index(drop=True)
        values = []
        for name in ("1", "2"):
            (rows,) = np.nonzero((at.chrom == name).to_numpy())
            for k, row in enumerate(rows):
                gap = at.pos.to_numpy()[rows[k:]] - at.pos[row]
                beyond = rows[k:][(gap > window) & (gap <= 2 * window)]
                if len(beyond):
                    values.append(np.corrcoef(here[row], here[beyond[0]])[0, 1] ** 2)
        left[window] = found.r2_beyond
        if len(values) < 20:
            assert found.r2_beyond is None
        else:  # at most 64 pairs a contig are measured
            assert found.r2_beyond == pytest.approx(np.mean(values) - 1 / (n - 1), abs=0.05)
    assert (left[500_000.0] > 0.3) == cross
    assert choose(genotypes, sites, (50, "sites", 1, 0.2)).r2_beyond is None
