"""957 HapMap3 individuals, compared with float64 products, PLINK 1.9, PLINK 2 and SciPy.

`pytest tests/golden/test_hapmap3.py -s` prints the measured figures.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.components import cohort_relationship, principal_components
from scenes.newcomers import newcomer_neighbors, plain_scores, population_slopes
from scenes.people import encode_alone, measure_alone
from scipy.sparse.csgraph import floyd_warshall
from sklearn.metrics import pairwise_distances

import popdesic
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.long_range_ld import in_regions, regions_of
from popdesic.cohort.panel import load_panel
from popdesic.cohort.planes import load_planes
from popdesic.components.pca import axes_of
from popdesic.components.relationship import alt_frequency, relationship_among, relationship_to
from popdesic.distance.matrix import metric_distances
from popdesic.engine.select import select_backend
from popdesic.geodesic.measure import close_weights
from popdesic.geodesic.weights import power_weights
from popdesic.io.bed import read_bim, read_fam, write_fam
from popdesic.io.genotypes import BED_MAGIC, MISSING, pack_bed

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.shared


def genotypes_of(prefix: Path) -> np.ndarray:
    """int8 (n_sites, n_samples), read from the .bed byte by byte without the package's kernels."""
    n = len(prefix.with_suffix(".fam").read_text().splitlines())
    raw = np.fromfile(prefix.with_suffix(".bed"), np.uint8)[len(BED_MAGIC) :].reshape(
        -1, -(-n // 4)
    )
    codes = np.stack([(raw >> shift) & 3 for shift in (0, 2, 4, 6)], axis=2).reshape(len(raw), -1)
    return np.array([2, MISSING, 1, 0], np.int8)[codes[:, :n]]


def write_plink(prefix: Path, like: Path, genotypes: np.ndarray) -> None:
    """Write PLINK files with the sites and samples of `like` but other genotypes."""
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    bim = read_bim(like)
    bim.to_csv(prefix.with_suffix(".bim"), sep="\t", header=False, index=False)
    write_fam(prefix, read_fam(like))


def plink_distance(prefix: Path, out: Path) -> np.ndarray:
    """`plink1.9 --distance` in allele counts, in double precision."""
    command = ["plink1.9", "--bfile", prefix, "--distance", "square", "bin", "flat-missing"]
    subprocess.run([*command, "--out", out], check=True, capture_output=True)
    flat = np.fromfile(f"{out}.dist.bin")
    return flat.reshape(int(len(flat) ** 0.5), -1)


@pytest.fixture(scope="module")
def hapmap3(shared_data, tmp_path_factory) -> Path:
    """Folder with raw.*, genotypes.*, planes.* and panel.tsv of the whole set."""
    folder = tmp_path_factory.mktemp("hapmap3")
    ingest_cohort(shared_data / "hapmap3_957" / "hapmap3_957.vcf.gz", folder / "raw", threads=2)
    encode_alone(folder / "raw", folder)
    return folder


@pytest.fixture(scope="module")
def labels(shared_data, hapmap3) -> pd.DataFrame:
    """Population and superpopulation of each sample, in matrix order."""
    sheet = pd.read_csv(shared_data / "hapmap3_957" / "samples.tsv", sep="\t", dtype=str)
    return sheet.set_index("sample_id").loc[read_fam(hapmap3 / "genotypes")["sample"]]


@pytest.fixture(scope="module")
def distances(hapmap3) -> np.ndarray:
    """Scaled Euclidean distances, float64 (957, 957)."""
    found = measure_alone(hapmap3, "euclidean")
    return metric_distances(
        found["squared"],
        found["called"],
        None,
        metric="euclidean",
        n_sites=int(found["n_sites"]),
        min_called=100,
    )


@pytest.fixture(scope="module")
def scores(hapmap3) -> np.ndarray:
    """Scores on the first ten principal components."""
    af = load_panel(hapmap3 / "panel.tsv")[0].af.to_numpy()
    related = cohort_relationship([hapmap3 / "genotypes"], af)
    return principal_components(related, np.ones(len(related), bool), 10)[0]


def test_squared_and_called_equal_float64_products(hapmap3):
    g = genotypes_of(hapmap3 / "raw").astype(np.float64).T
    called = (g != MISSING).astype(np.float64)
    g[g == MISSING] = 0.0
    expected = (g * g) @ called.T + called @ (g * g).T - 2 * g @ g.T
    found = measure_alone(hapmap3, "euclidean")
    assert found["squared"].shape == (957, 957)
    np.testing.assert_array_equal(found["squared"], expected.astype(np.int64))
    np.testing.assert_array_equal(found["called"], (called @ called.T).astype(np.int64))


@pytest.mark.peer
def test_manhattan_equals_plink_where_nothing_is_missing(hapmap3, tmp_path, require_command):
    require_command("plink1.9")
    genotypes = genotypes_of(hapmap3 / "raw")
    complete = (genotypes != MISSING).all(axis=1)
    bim = read_bim(hapmap3 / "raw")[complete]
    (tmp_path / "raw.bed").write_bytes(BED_MAGIC + pack_bed(genotypes[complete]).tobytes())
    bim.to_csv(tmp_path / "raw.bim", sep="\t", header=False, index=False)
    shutil.copy(hapmap3 / "raw.fam", tmp_path / "raw.fam")
    encode_alone(tmp_path / "raw", tmp_path)
    assert load_planes(tmp_path)[0].complete
    found = measure_alone(tmp_path, "manhattan")
    manhattan = found["squared"] - 2 * found["ibs0"]
    np.testing.assert_array_equal(manhattan, plink_distance(tmp_path / "raw", tmp_path / "p"))
    print(f"\nManhattan = PLINK --distance exactly on {complete.sum()} complete sites")


@pytest.mark.peer
def test_manhattan_equals_plink_flat_missing_with_2_percent_masked(
    hapmap3, tmp_path, require_command
):
    require_command("plink1.9")
    genotypes = genotypes_of(hapmap3 / "raw")
    genotypes[np.random.default_rng(2).random(genotypes.shape) < 0.02] = MISSING
    write_plink(tmp_path / "raw", hapmap3 / "raw", genotypes)
    encode_alone(tmp_path / "raw", tmp_path)
    found = measure_alone(tmp_path, "manhattan")
    ours = metric_distances(
        found["squared"],
        found["called"],
        found["ibs0"],
        metric="manhattan",
        n_sites=int(found["n_sites"]),
        min_called=100,
    )
    theirs = plink_distance(tmp_path / "raw", tmp_path / "p")
    off = ~np.eye(len(ours), dtype=bool)
    error = np.abs(ours[off] / theirs[off] - 1).max()
    print(f"\nManhattan against PLINK flat-missing, 2 % masked: largest relative error {error:.2e}")
    assert error <= 1e-6


@pytest.mark.peer
def test_pca_equals_plink2(hapmap3, scores, tmp_path, require_command):
    require_command("plink2")
    command = ["plink2", "--bfile", hapmap3 / "raw", "--pca", "6", "--out", tmp_path / "p"]
    subprocess.run(command, check=True, capture_output=True)
    theirs = pd.read_csv(tmp_path / "p.eigenvec", sep="\t").filter(like="PC").to_numpy()
    r = [abs(np.corrcoef(scores[:, i], theirs[:, i])[0, 1]) for i in range(6)]
    print(f"\n|r| with plink2 --pca, components 1 to 6: {np.round(r, 6)}")
    assert min(r) >= 0.9999


def without_relatives(genotypes: np.ndarray, least: float = 2**-4.5) -> np.ndarray:
    """Samples of whom no two are relatives of the third degree or closer, bool (n,)."""
    kinship = popdesic.kinship(genotypes.T, device="cpu")
    np.fill_diagonal(kinship, 0)
    related, kept = kinship > least, np.ones(len(kinship), bool)
    while (n := (related & kept & kept[:, None]).sum(axis=0)).any():
        kept[n.argmax()] = False
    return kept


@pytest.mark.parametrize("share", [2 / 3, 1 / 2, 1 / 5])
def test_newcomers_lie_among_founders_of_their_populations(hapmap3, labels, share):
    """Means of five random splits: axes of populations (PC1 to PC3), neighbours over eight axes.

    Without relatives: they lie beside each other, as they should (tests/bench/bench_relatives.py).
    """
    genotypes, label = genotypes_of(hapmap3 / "genotypes"), labels.population.to_numpy()
    kept = without_relatives(genotypes)
    genotypes, label = np.ascontiguousarray(genotypes[:, kept]), label[kept]
    n = len(label)
    slopes, shrunk, near, crowded = [], [], [], []
    for split in range(5):
        founders = np.random.default_rng(split).permutation(n) < round(share * n)
        af = alt_frequency(genotypes[:, founders])
        among = genotypes[:, founders]
        relationship = relationship_among(lambda a, b, g=among: g[a:b], [founders.sum()], af)
        axes, _ = axes_of(relationship, 8)
        rows, own = relationship_to(lambda a, b: genotypes[a:b], [n], founders, af)
        scores, plain = axes.place(founders, rows, own), plain_scores(axes, founders, rows)
        slopes.append(population_slopes(scores, founders, label))
        shrunk.append(population_slopes(plain, founders, label))
        near.append(newcomer_neighbors(scores, founders))
        crowded.append(newcomer_neighbors(plain, founders))
    slopes, shrunk = np.mean(slopes, axis=0), np.mean(shrunk, axis=0)
    print(f"\n{share:.2f} founders: slopes {slopes.round(2)}, plain projection {shrunk.round(2)}")
    print(f"newcomers among 15 nearest {np.mean(near):.3f}, plain {np.mean(crowded):.3f}")
    assert (np.abs(slopes[:3] - 1) <= 0.05).all() and (shrunk[2:] < 0.85).all()
    assert abs(np.mean(near) - (1 - share)) <= 0.02 < np.mean(crowded) - (1 - share)


@pytest.mark.parametrize("space", ["genotypes", "pcs"])
@pytest.mark.parametrize("alpha", [1, 2, 4, 8])
def test_geodesics_equal_scipy(distances, scores, alpha, space):
    if space == "pcs":
        distances = pairwise_distances(scores[:, :8])
        np.fill_diagonal(distances, 0.0)
        distances = np.maximum(distances, distances.T)
    n = len(distances)
    closed = close_weights(
        distances,
        np.ones(n, bool),
        [str(i) for i in range(n)],
        select_backend("cpu", 2),
        alpha=alpha,
        number="auto",
    )
    number, statistics = closed.number, closed.statistics
    weights = power_weights(distances, alpha)
    off = ~np.eye(n, dtype=bool)
    # SciPy treats weights within 1e-8 of zero as missing edges: scale the smallest to 1.
    smallest = weights[off].min()
    expected = floyd_warshall(weights / smallest, directed=False) * smallest
    # The float32 export is what users read, so its rounding is part of the error.
    found = number.value(closed.lengths).astype(np.float32).astype(np.float64)
    median = np.median(weights[off])
    absolute = np.abs(found - expected)[off].max() / median
    matters = off & (expected >= median / 1000)
    relative = np.abs(found / np.where(matters, expected, 1) - 1)[matters].max()
    print(
        f"\n{space}, alpha {alpha}, {number.dtype}: |error| {absolute:.1e} of the median weight, "
        f"{relative:.1e} relative; {100 * statistics.indirect_share:.2f} % of pairs indirect"
    )
    assert absolute <= 1e-6
    assert relative <= 1e-6


def _accuracy(distances: np.ndarray, labels: np.ndarray) -> float:
    """Leave-one-out accuracy of a 5-nearest-neighbour classifier."""
    alone = distances.copy()
    np.fill_diagonal(alone, np.inf)
    nearest = np.argsort(alone, axis=1, kind="stable")[:, :5]
    right = 0
    for i, label in enumerate(labels):
        values, counts = np.unique(labels[nearest[i]], return_counts=True)
        right += values[counts.argmax()] == label
    return right / len(labels)


def test_nearest_neighbours_share_labels(hapmap3, scores, labels):
    found = measure_alone(hapmap3, "manhattan")
    ibs = metric_distances(
        found["squared"],
        found["called"],
        found["ibs0"],
        metric="ibs",
        n_sites=int(found["n_sites"]),
        min_called=100,
    )
    pcs = pairwise_distances(scores)
    for name, matrix, population, group in (
        ("IBS", ibs, 0.855, 0.997),
        ("10 PCs", pcs, 0.903, 0.999),
    ):
        by_population = _accuracy(matrix, labels.population.to_numpy())
        by_group = _accuracy(matrix, labels.superpopulation.to_numpy())
        print(f"\n5-NN accuracy, {name}: population {by_population:.4f}, group {by_group:.4f}")
        # The documented values are rounded to three digits.
        assert by_population >= population - 5e-4
        assert by_group >= group - 5e-4


@pytest.mark.parametrize(
    ("build", "page", "words"),
    [
        ("hg18", "maps", "{} of {} sites (without regions of long-range LD of hg18)"),
        ("any", "geodesics", "{} of {} sites (without regions of long-range LD of any build)"),
    ],
)
def test_pages_count_the_sites_outside_regions_of_long_range_ld(hapmap3, build, page, words):
    sites = load_panel(hapmap3 / "panel.tsv")[0]
    outside = ~in_regions(sites, regions_of(build))
    counts = [f"{count:,}".replace(",", " ") for count in (outside.sum(), len(sites))]
    assert words.format(*counts) in (ROOT / f"docs/{page}.md").read_text()
