"""A study above `distance.dense_limit`: no matrix of all pairs, but the same neighbours."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.running import finished, jobs_of_plan, snakemake
from support.study import FAST, make_cohorts, write_sheets, write_study

from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.distance.matrix import load_distances, point_distances
from popdesic.geodesic.lengths import open_lengths
from popdesic.maps.knn import nearest_neighbors

SIZES = (60, 50, 20, 14)
CONFIG = FAST | {
    "geodesic": {"alpha": [2], "space": ["genotypes", "pcs"], "pcs": 3, "graph": "knn"},
    "communities": {"methods": ["tree"]},
    "compare": {"analyses": ["kinship", "identity"]},
    "close_kinship": 0.02,
}


def with_limit(limit: int) -> dict:
    return CONFIG | {"distance": {"dense_limit": limit}}


@pytest.fixture(scope="module")
def studies(tmp_path_factory) -> tuple[Path, Path, tuple[str, str]]:
    """A sparse study whose newcomer `east` arrived later, the dense one, and later outputs."""
    cohorts = make_cohorts(SIZES, n_sites=500)
    sparse = write_study(tmp_path_factory.mktemp("sparse"), cohorts, with_limit(100))
    write_sheets(sparse, cohorts[:3], with_limit(100))
    snakemake(sparse, "distance", "geodesic")
    write_sheets(sparse, cohorts, with_limit(100))
    later = snakemake(sparse), snakemake(sparse, "-n")
    dense = write_study(tmp_path_factory.mktemp("dense"), cohorts, with_limit(1000))
    snakemake(dense, "distance", "geodesic", "results/compare/kinship.tsv")
    return sparse, dense, later


def test_no_file_has_all_pairs(studies):
    sparse, _, _ = studies
    results = sparse / "results"
    n = len(read_table(results / "distance/samples.tsv"))
    assert n > 130
    matrices = [path for path in results.rglob("*.npy") if np.load(path).shape == (n, n)]
    assert not matrices
    for tile in results.glob("distance/tiles/*/*.npz"):
        with np.load(tile) as found:
            assert "squared" not in found


def test_neighbors_are_those_of_the_matrix(studies):
    sparse, dense, _ = studies
    about = {"metric": "euclidean", "min_called": 100}
    n_sites = read_json(dense / "results/panel/counts.json")["n_sites"]
    distances = load_distances(dense / "results/distance", n_sites=n_sites, **about)
    points = point_distances(dense / "results/embedding/pca.npy", 3)
    for folder, matrix in (("distance", distances), ("embedding", points)):
        with np.load(sparse / f"results/{folder}/neighbors.npz") as found:
            index, far = nearest_neighbors(matrix.__getitem__, len(matrix), 50)
            np.testing.assert_allclose(found["distance"], far, rtol=1e-12)
            if folder == "distance":
                np.testing.assert_array_equal(found["index"], index)
            rows = np.load(sparse / f"results/{folder}/landmarks.npy")
            np.testing.assert_allclose(rows, matrix[found["landmarks"]], rtol=1e-6, atol=1e-12)


def test_relatives_are_the_same(studies):
    one, other = ((study / "results/compare/kinship.tsv").read_bytes() for study in studies[:2])
    assert one == other


@pytest.mark.parametrize("space", ["genotypes", "pcs"])
def test_geodesics_are_those_of_all_pairs(studies, space):
    sparse, dense, _ = studies
    folder = sparse / "results/geodesic" / space
    matrix = open_lengths(dense / "results/geodesic" / space / "alpha2.json")
    with np.load(folder / "neighbors.alpha2.npz") as found:
        rows = np.load(folder / "landmarks.alpha2.npy")
        np.testing.assert_array_equal(rows, matrix[found["landmarks"]])
        _, far = nearest_neighbors(matrix.__getitem__, len(matrix), 50)
        np.testing.assert_array_equal(found["distance"].astype(np.float32), far.astype(np.float32))
    one, other = (
        read_json(study / "results/geodesic" / space / "alpha2.json") for study in (sparse, dense)
    )
    assert one["number"] == other["number"]
    assert one["short_lists"] == 0
    assert one["founder_indirect_share"] == pytest.approx(other["founder_indirect_share"], abs=1e-2)


def test_the_page_says_what_is_left_out(studies):
    sparse, _, _ = studies
    page = (sparse / "results/report/report.html").read_text("utf-8")
    assert "144 samples are more than distance.dense_limit = 100" in page
    assert "Geodesics among nearest neighbours" in page
    quality = read_table(sparse / "results/embedding/quality.tsv")
    assert set(quality["samples"]) == {str(sum(SIZES[:2]))}
    assert not quality.rank_correlation.isin(["NA"]).any()
    assert (quality.trustworthiness_se.astype(float) > 0).all()
    assert "± is the standard error of the mean" in page
    tree = (sparse / "results/communities/tree.nwk").read_text()
    assert tree.count(",") > 50


def test_an_unchanged_study_plans_nothing(studies):
    assert "Nothing to be done" in studies[2][1]


def test_a_newcomer_paid_its_row_and_bytes_are_those_of_scratch(studies, tmp_path):
    sparse, _, (grown, _) = studies
    ran = finished(grown)
    assert (ran["measure_row"], ran["join_rows"]) == (3, 1)  # east, and both groups that it changes
    assert "span_founders" not in ran
    # of neighbours and of comparisons; east fills with north and south, and west has its own group
    logs = {path.stem: path.read_text() for path in sparse.glob("logs/measure_row/*.log")}
    assert f"tiles computed: {2 * len(SIZES)}" in logs["north"]
    assert "tiles computed: 0" in logs["east"] and "tiles computed: 0" in logs["west"]
    tiles = sorted(path.parent.name for path in sparse.glob("results/distance/tiles/*/*.npz"))
    assert tiles == [*["east"] * 4, "north", *["south"] * 2, *["west"] * 3]
    names = ["distance/neighbors.npz", "distance/landmarks.npy", "distance/founder_tree.npz"]
    before = [(sparse / "results" / name).read_bytes() for name in names]
    copy = tmp_path / "study"
    shutil.copytree(sparse, copy)
    shutil.rmtree(copy / "results/distance")
    snakemake(copy, "distance")
    assert [(copy / "results" / name).read_bytes() for name in names] == before


def test_no_job_of_a_million_samples_asks_for_what_only_matrices_need(tmp_path):
    """Neither memory nor time of any but the rows of tiles grows with the number of pairs."""
    (tmp_path / "config").mkdir()
    text = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
    site = "\n1\t100\trs1\tA\tC\t.\tPASS\t.\tGT" + "\t0/1" * 250_000 + "\n"
    listed, sheet = ["cohort\tgenotypes\tfounder"], ["sample\tcohort"]
    for cohort in ("a", "b", "c", "d"):
        names = [f"{cohort}{k}" for k in range(250_000)]
        listed.append(f"{cohort}\t{cohort}.vcf\tyes")
        sheet += [f"{name}\t{cohort}" for name in names]
        (tmp_path / f"{cohort}.vcf").write_text(text + "\t".join(names) + site)
    (tmp_path / "config/cohorts.tsv").write_text("\n".join(listed) + "\n")
    (tmp_path / "config/samples.tsv").write_text("\n".join(sheet) + "\n")
    (tmp_path / "config/config.yaml").write_text("device: cpu\n")
    jobs = jobs_of_plan(tmp_path)
    assert {"measure_row", "relate_samples", "compute_umap"} <= {job["rule"] for job in jobs}
    assert {job["rule"]: job["mem_mb"] for job in jobs if job["mem_mb"] > 200_000} == {}
    long = {job["rule"]: job["runtime"] for job in jobs if job["runtime"] > 48 * 60}
    assert long.keys() <= {"measure_row"}  # which computes all pairs
