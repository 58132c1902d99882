"""Groups by coancestry in the section on communities, and their figure."""

from __future__ import annotations

import jinja2
import numpy as np
import pandas as pd
import pytest
from support.readable import checked

from popdesic.core.files import write_json
from popdesic.core.places import TEMPLATES
from popdesic.report.figures.communities import draw_painting
from popdesic.report.sections.painting import painting_part

LIMITS = {"deviations": 6.0, "draws": 50, "stretches": 8}
TESTS = [
    {"samples": 61, "deviations": 17.25, "halves": [40, 21]},
    {"samples": 21, "deviations": 1.5, "halves": []},
]
GROUPS = [
    {"donors": 40, "samples": 44, "stability": 0.987},
    {"donors": 21, "samples": 23, "stability": 0.9},
]
FOUND = {"samples": 67, "donors": 61, "stretches": 30, "limits": LIMITS, "replaced": 0.95}
ONE = [{"donors": 61, "samples": 67, "stability": None}]


def rendered(part: dict) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined
    )
    communities = {"words": "", "missing": "", "splits": [], "rows": [], "figures": []}
    template = environment.get_template("communities.html.j2")
    picture = lambda figure, level: f"[{figure.name} {figure.sizes}]"  # noqa: E731
    return template.render(communities=communities | {"painting": part}, picture=picture)


@pytest.fixture
def results(tmp_path):
    (tmp_path / "figures").mkdir()
    return tmp_path


def test_groups_are_shown_with_their_evidence(results):
    rng = np.random.default_rng(1)
    donors = pd.DataFrame({"sample": [f"s{k}" for k in range(61)], "cohort": "a", "row": range(61)})
    group = np.repeat([0, 1], [40, 21])
    lengths = rng.random((61, 61)) + (group[:, None] == group)
    np.save(results / "a.npy", lengths)
    with checked():
        draw_painting({"a": results / "a.npy"}, donors, group, results / "figures")
    write_json(results / "painting/groups.json", FOUND | {"groups": GROUPS, "tests": TESTS})
    part = painting_part(results, results / "figures", True)
    assert "they are 2 groups" in part["words"] and "95 % of the founders" in part["words"]
    page = rendered(part)
    assert "40 + 21" in page and "17.2" in page and "not divided" in page
    assert '<td class="n">0.99</td>' in page and "[painting 61 founders, 2 groups.]" in page
    assert painting_part(results, results / "figures", False) is None


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"tests": TESTS[1:]}, "one group. The largest eigenvalue of their coancestry lies 1.5 st"),
        ({"tests": [TESTS[0] | {"halves": []}]}, "17.2 standard deviations above chance, but one"),
        ({"tests": [], "stretches": 1}, "not sought: the map has 1 stretch of 5 cM, and groups"),
        ({"tests": [], "donors": 9}, "not sought: there are 9 founders, and a division needs 10"),
    ],
)
def test_one_group_is_told_with_the_reason(results, about, said):
    write_json(results / "painting/groups.json", FOUND | {"groups": ONE} | about)
    part = painting_part(results, results / "figures", True)
    assert said in part["words"] and part["groups"] == []
    assert "Stability" not in rendered(part)
