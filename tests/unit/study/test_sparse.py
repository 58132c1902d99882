"""What studies without a matrix of all pairs do without, and the sentences that say so."""

from __future__ import annotations

import pytest

from popdesic.core.errors import UserError
from popdesic.core.limits import DENSE_LIMIT
from popdesic.distance.nearest import MOST_NEIGHBORS
from popdesic.study.configuration import fill_config
from popdesic.study.disk import StudySizes, forecast_disk
from popdesic.study.forecast import Sizes, bytes_read, work_of
from popdesic.study.snakemake_internals import Job
from popdesic.study.sparse import LISTED, MOST_KEPT, is_sparse, neighbors_kept, without_pairs


def test_the_limit_is_that_of_the_configuration():
    auto, own = fill_config({}), fill_config({"distance": {"dense_limit": 100}})
    assert [is_sparse(auto, n) for n in (DENSE_LIMIT, DENSE_LIMIT + 1)] == [False, True]
    assert [is_sparse(own, n) for n in (100, 101)] == [False, True]


def test_neighbours_are_kept_for_the_stage_that_needs_most():
    config = fill_config({})
    assert neighbors_kept(config) >= LISTED
    config["neighbors"], config["embedding"]["ensemble"] = 70, 0
    assert neighbors_kept(config) == 70
    config["embedding"]["ensemble"] = 3
    assert neighbors_kept(config) == 140
    config["neighbors"] = 900
    assert neighbors_kept(config) == MOST_KEPT == MOST_NEIGHBORS


def test_defaults_lose_a_second_opinion_alone():
    config = fill_config({})
    _, left_out = without_pairs(config, 40_000, placed=False)
    assert left_out[0].startswith("40000 samples are more than distance.dense_limit = 30000")
    assert [sentence.split(" ")[0] for sentence in left_out[1:]] == ["HDBSCAN"]
    assert config == fill_config({}), "the given configuration is not changed"


def test_everything_that_is_left_out_is_said():
    config = fill_config(
        {
            "distance": {"metric": "ibs"},
            "geodesic": {"explain": True, "space": ["pcs", "ibd"]},
            "compare": {"analyses": ["ibd"]},
            "embedding": {"further_maps": ["tsne"]},
            "export": {"formats": ["plink", "mdist", "mibs", "king"]},
        }
    )
    config["embedding"]["stable"] = True  # not together with `ibd`, which is refused before
    sparse, left_out = without_pairs(config, 200_000, placed=True)
    text = " ".join(left_out)
    for words in (
        *("mdist", "geodesic.explain", "embedding.stable"),
        *(
            "further_maps",
            "block model",
            "mibs, king",
            "Geography",
            "space: ibd",
        ),
    ):
        assert words in text
    assert sparse["export"]["formats"] == ["plink"]
    assert "blockmodel" not in sparse["communities"]["methods"]
    assert sparse["embedding"]["further_maps"] == []
    assert sparse["geodesic"]["space"] == ["pcs"]


def test_dropping_uncomparable_samples_needs_all_pairs():
    config = fill_config({"distance": {"on_uncomparable": "drop", "dense_limit": 9}})
    with pytest.raises(UserError, match=r"raise distance\.dense_limit"):
        without_pairs(config, 10, placed=False)


def assert_filled_together(rows: dict) -> None:
    """The first row of a group has the work of all of its rows, and reads each cohort once."""
    sizes = Sizes({"a": 100, "b": 30}, 800, planes=2, rows=rows, sparse=True, compared=True)
    first, second = (Job("measure_row", {"row": row}, 8, 0, 0, 1, ("",), True) for row in "ab")
    assert work_of(first, sizes) == {"site-pairs": 2 * (5050 + 3000 + 465) * 800}
    assert bytes_read(first, sizes) == 130 * 2 * 100
    assert work_of(second, sizes) == {"site-pairs": 0}
    assert bytes_read(second, sizes) == 0


def test_the_forecast_knows_lists_and_landmarks():
    rows = {"distance": {"a": [("a", "a")], "b": [("a", "b"), ("b", "b")]}}
    sizes = Sizes({"a": 100, "b": 30}, 800, planes=2, rows=rows, sparse=True)
    first = Job("measure_row", {"row": "a"}, 8, 0, 0, 1, ("",), True)
    assert work_of(first, sizes) == {"site-pairs": (5050 + 3000 + 465) * 800}
    assert bytes_read(first, sizes) == 130 * 2 * 100
    lists = {"a": 16 * 100 * 50, "b": 16 * (100 * 30 + 30 * 50 + 30 * 30)}
    join = Job("join_rows", {}, 2, 0, 0, 0, ("results/distance/neighbors.npz",), True)
    assert bytes_read(join, sizes) == sum(lists.values())
    assert_filled_together(rows | {"compare": rows["distance"]})
    found = forecast_disk(
        fill_config({}), StudySizes({"a": 100, "b": 30}, {"a": 800, "b": 800}, 800), sparse=True
    )
    whole = 16 * 130 * 50 + 4 * 130 * 130
    assert found["geodesic"] == 4 * whole  # two spaces, two alphas
    assert found["distance"] == sum(lists.values()) + 2 * whole
    many = StudySizes({"a": 2_000_000_000}, {"a": 800}, 800)
    assert forecast_disk(fill_config({}), many, sparse=True)["geodesic"] == (
        4 * 2_000_000_000 * (16 * 50 + 4 * 1000)
    )
