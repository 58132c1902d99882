"""The choice of geodesics on real people; its rule was made on simulated landscapes alone."""

import pytest
from scenes.people import load_people
from test_maps import write_unrelated

from popdesic.cohort.long_range_ld import regions_of
from popdesic.components.define_axes import define_axes
from popdesic.geodesic.choose_geodesics import choose_geodesics
from popdesic.study.configuration import fill_config


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            *("hapmap3_957", {"genotypes": ("plain", None), "pcs": ("plain", 8)}),
            marks=pytest.mark.slow,
        ),
        ("kg1_chr22_564", {"genotypes": ("nearest", None), "pcs": ("nearest", 2)}),
    ],
)
def test_what_is_chosen_for_real_people(shared_data, tmp_path, name, expected):
    """As docs/geodesics.md says."""
    people, config = load_people(shared_data, name, tmp_path), fill_config({})
    write_unrelated(tmp_path, people.n_sites, tmp_path / "unrelated.tsv")
    axes, about = tmp_path / "axes.npz", tmp_path / "axes.json"
    define_axes(
        [tmp_path / "genotypes"],
        tmp_path / "panel.tsv",
        unrelated=tmp_path / "unrelated.tsv",
        components="auto",
        pcs="auto",
        ld_prune=config["embedding"]["ld_prune"],
        regions=regions_of(config["qc"]["build"]),
        out={"axes": axes, "about": about, "loadings": tmp_path / "loadings.tsv"},
        threads=2,
    )
    found = choose_geodesics(
        [tmp_path / "genotypes"],
        axes,
        about,
        tmp_path / "panel.tsv",
        spaces=["genotypes", "pcs"],
        pcs="auto",
        metric="euclidean",
        out=tmp_path / "choice.json",
        threads=2,
    )
    assert {space: (one["reason"], one["pcs"]) for space, one in found.items()} == expected
    for choice in found.values():
        print(name, choice["why"])
        geodesics, plain = choice["best"], choice["plain"]
        assert plain > geodesics if choice["reason"] == "plain" else geodesics > plain
        assert choice["plain"] > 5 * choice["chance"]
