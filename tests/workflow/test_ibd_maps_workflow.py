"""A whole run to the report with segments: maps and communities of recent populations.

Two populations of 20 000 separated 30 generations ago, 60 people each, in two cohorts of both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes.ibd_populations import draw_populations, separated
from sklearn.metrics import adjusted_rand_score
from support.running import finished, planned, snakemake
from support.study import FAST, Cohort, write_study

from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.geodesic.lengths import open_lengths

CONFIG = {
    **FAST,
    "panel": {"ld_prune": []},
    "contigs": {"exclude": []},
    "geodesic": {"alpha": [1], "space": ["pcs", "ibd"], "pcs": 5},
    "communities": {"methods": ["blockmodel"], "space": "ibd"},
    "compare": {"analyses": ["kinship", "ibd"]},
    "ibd": {"min_cm": 5},
}
EACH, LENGTHS, PER_CM = 60, (130.0,) * 5, 55


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    people, truth = draw_populations(
        separated(2, 30, 20_000, 20_000),
        *(EACH,),
        **{"seed": 11, "lengths": LENGTHS, "sites_per_cm": PER_CM, "pool_cm": 5.0},
    )
    alleles = ("A", "C"), ("G", "T")
    sites = [
        (chrom, pos, f"s{k}", *alleles[k % 2])
        for k, (chrom, pos) in enumerate(people.sites[["chrom", "pos"]].values.tolist())
    ]
    cohorts = [
        Cohort(
            name,
            [f"p{k:03}" for k in range(start, 2 * EACH, 2)],
            sites,
            people.genotypes[start::2].T,
            populations=[f"P{k}" for k in truth[start::2]],
        )
        for start, name in enumerate(("north", "south"))
    ]
    folder = write_study(tmp_path_factory.mktemp("maps"), cohorts, CONFIG)
    return folder, finished(snakemake(folder))


def own_population(table, names: list[str], k: int = 10) -> float:
    """Share of the k nearest on a map who are of one's own population."""
    points = table[names].to_numpy(np.float64)
    far = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(far, np.inf)
    labels = table.population.to_numpy()
    return float((labels[np.argsort(far, axis=1)[:, :k]] == labels[:, None]).mean())


def read_maps(folder: Path, space: str):
    """The map with the sheet's labels, and the names of its axes."""
    table = read_table(folder / f"results/embedding/umap.{space}.alpha1.tsv")
    return table, [name for name in table if name.startswith("UMAP")]


def test_a_map_of_segments_shows_what_components_do_not(study):
    folder, ran = study
    assert {"join_ibd", "close_paths", "compute_maps", "write_report"} <= set(ran)
    shared, components = (own_population(*read_maps(folder, space)) for space in ("ibd", "pcs"))
    print(f"\nof one's own population: segments {shared:.2f}, components {components:.2f}")
    assert shared > 0.85 and components < 0.75


def test_the_run_says_how_paths_ran_and_who_is_unconnected(study):
    folder, _ = study
    about = read_json(folder / "results/geodesic/ibd/alpha1.json")
    assert about["graph"]["kind"] == "shared" and about["indirect_pairs"] > 0
    page = (folder / "results/report/report.html").read_text()
    assert "shared-segment distances" in page and 'id="ibd"' in page
    # Captions and titles say what is near on these maps, and how short a segment counts.
    assert "UMAP of shared segments of at least 5 cM: α = 1" in page
    assert "Principal coordinates of shared segments" in page and "-log2(2 × kinship)" in page
    assert "Segments are at least 5 cM long." in page and "UMAP, shared segments, α = 1" in page
    no_blocks = read_json(folder / "results/communities/communities.json").get("missing")
    assert no_blocks or "segments of identity by descent of at least 5 cM with the same" in page
    assert ("No chain of shared segments connects" in page) == (about["unreachable_pairs"] > 0)
    lengths = open_lengths(folder / "results/geodesic/ibd/alpha1.json")[:]
    assert np.isfinite(lengths).all()


def test_blocks_are_those_of_the_graph_of_segments(study):
    folder, ran = study
    assert {"fit_blocks", "draw_communities"} <= set(ran) and "build_graph" not in ran
    table = read_table(folder / "results/communities/partition.tsv")
    if "level0" not in table:
        pytest.skip("graph-tool is not installed: the run says so and goes on")
    truth = read_maps(folder, "ibd")[0].set_index("sample").population
    found = adjusted_rand_score(truth[table["sample"]], table.level0)
    print(f"\nblocks {table.level0.nunique()}, adjusted Rand index {found:.2f}")
    # With so few people the block model may rather say one block than guess.
    assert found > 0.8 or table.level0.nunique() == 1


def test_a_second_run_has_nothing_to_do(study):
    folder, _ = study
    assert not planned(snakemake(folder, "-n"))
