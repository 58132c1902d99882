"""`embedding.stable`: a new cohort moves no existing point, in real runs of Snakemake."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.running import snakemake
from support.study import FAST, make_cohorts, write_study

from popdesic.core.files import read_json
from popdesic.core.tables import read_table

CONFIG = FAST | {
    "embedding": {
        "stable": True,
        "ensemble": 1,
        "components": 4,
        "further_maps": ["tsne"],
    },
    "geodesic": {"alpha": [2], "space": ["genotypes", "pcs"], "pcs": 5},
    "compare": {"analyses": []},
    "close_kinship": 0,
}
SPACES = ("genotypes", "pcs")
FIXED = ["pca", *(f"{m}.{s}.alpha2" for m in ("pcoa", "umap", "tsne") for s in SPACES)]


def rows(folder: Path, name: str) -> dict[str, str]:
    """Line of every sample in a map's table, as written."""
    lines = (folder / f"results/embedding/coordinates/{name}.tsv").read_text().splitlines()
    return {line.split("\t")[0]: line for line in lines[1:]}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> tuple[Path, dict, dict]:
    """Rows of two runs: founders and `west`, then also `east`, which sorts before `west`."""
    cohorts = make_cohorts((16, 14, 9, 12))
    folder = write_study(tmp_path_factory.mktemp("stable"), cohorts[:3], CONFIG)
    names = [*FIXED, "umap_refit.genotypes.alpha2"]
    states = []
    for there in (cohorts[:3], cohorts):
        write_study(folder, there, CONFIG)
        snakemake(folder, "embedding")
        states.append({name: rows(folder, name) for name in names})
    return folder, *states


@pytest.mark.parametrize("name", FIXED)
def test_no_existing_point_moves(grown, name):
    _, before, after = grown
    assert len(before[name]) == 39 and len(after[name]) == 51
    assert {sample: after[name][sample] for sample in before[name]} == before[name]


def test_a_refit_moves_points_and_reports_how_far(grown):
    folder, before, after = grown
    name = "umap_refit.genotypes.alpha2"
    assert any(after[name][sample] != line for sample, line in before[name].items())
    about = read_json(folder / f"results/embedding/coordinates/{name}.json")
    assert 0 < about["founder_median"] < about["largest_displacement"]
    table = read_table(folder / "results/embedding/quality.tsv")
    refit = table[table["map"] == "umap_refit"]
    assert len(table[table["map"] == "tsne"]) == 4
    assert len(refit) == 4 and (refit.displacement != "NA").all()
    assert (table[table["map"] == "umap"].instability != "NA").all()
    unstable = read_table(folder / "results/embedding/instability.tsv")
    assert list(unstable.columns) == ["sample", *(f"instability.umap.{s}.alpha2" for s in SPACES)]
    assert len(unstable) == 51 and unstable.iloc[:, 1:].astype(float).to_numpy().max() <= 1
