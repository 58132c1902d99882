"""The section on shared segments: words, table and figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.readable import checked
from support.verdicts import write_relatives

from popdesic.ibd.cohorts import segment_pairs
from popdesic.ibd.degrees import DegreeScale
from popdesic.relatives.kinship import SAME
from popdesic.report.advice import advice_on
from popdesic.report.figures.relatives import draw_relatives
from popdesic.report.kin_verdict import judges_relatives, kin_verdict
from popdesic.report.sections.ibd import ibd_findings, ibd_section

ABOUT = {
    "errors": None,
    "map": None,
    "sites": 19000,
    "used": 19000,
    "genome_cm": 3500.0,
    "searched_cm": 3400.0,
    "window_sites": 128,
    "lod_of_shortest": 99.8,
    "founders": 90,
    "haploid_contigs": [],
    "sites_in_regions": 0,
    "shared_too_often": [],
    "limits": {"min_cm": 7},
    "samples": 600,
}


def study(folder: Path, relations: list[str], total: list[float], **changes: float) -> Path:
    """results/ of pairs with these relations and total lengths."""
    results = folder / "results"
    (results / "ibd").mkdir(parents=True)
    (results / "figures").mkdir()
    n = len(relations)
    pairs = pd.DataFrame(
        {
            "sample1": [f"a{k}" for k in range(n)],
            "cohort1": "one",
            "sample2": [f"b{k}" for k in range(n)],
            "cohort2": "two",
            "segments": np.arange(n) % 5 + 1,
            "total_cM": [f"{value:.6g}" for value in total],
            "longest_cM": [f"{value:.6g}" for value in total],
            "ibd2_cM": "0",
            "kinship": [f"{value / 240:.6g}" for value in total],
        }
    )
    pairs.to_csv(results / "ibd/pairs.tsv", sep="\t", index=False)
    about = (
        ABOUT
        | changes
        | {
            "pairs_with_segments": n,
            "segments": int(pairs.segments.sum()),
        }
    )
    rows = [(f"a{k}", f"b{k}", relation) for k, relation in enumerate(relations)]
    write_relatives(results, rows, searched=about["searched_cm"], sources=("segments",))
    verdict = results / "compare/relatives.tsv"
    (results / "ibd/summary.json").write_text(json.dumps(about))
    with checked():
        files = {"segments": results / "ibd/pairs.tsv"}
        draw_relatives(["ibd", "families"], verdict, files, results / "figures")
    return results


@pytest.mark.parametrize("longest", [8.0, 60.0, 3500.0])
def test_the_figure_has_plain_numbers_on_its_axes(tmp_path, longest):
    total = np.geomspace(7, longest, 60).tolist()
    results = study(tmp_path, ["third degree"] * 40 + ["second degree"] * 20, total)
    text = (results / "figures/ibd.svg").read_text("utf-8")
    assert "mathdefault" not in text
    assert ">10<" in text or ">8<" in text


def test_words_and_rounded_numbers(tmp_path):
    relations = [SAME, "parent and child", "third degree", "distant"]
    results = study(tmp_path, relations, [52.961912, 52.8, 13.995712, 9.0])
    section = ibd_section(results, results / "figures", True)
    assert section["words"][0] == (
        "Of 179\u202f700 pairs of samples, 4 share 10 IBD segments of at least 7 cM."
    )
    assert [row["relation"] for row in section["rows"]] == relations
    assert [row["total_cM"] for row in section["rows"]] == ["53.0", "52.8", "14.0", "9.0"]
    assert section["rows"][2]["kinship"] == "0.058"
    assert section["figures"][1].sizes == "2 pairs with the whole interval within the third degree."
    assert section["n"] == 4 and [figure.name for figure in section["figures"]] == [
        "ibd",
        "families",
    ]


def test_degrees_are_withheld_on_a_short_genome(tmp_path):
    """What is said follows from the table and the summary that the stage writes."""
    scale = DegreeScale(np.array([40.0, 30.0, 5.0]), 7.0)
    total = np.array([70.0, 35.0, 8.0])
    table = segment_pairs(
        [
            pd.DataFrame({"sample1": ["a", "b", "c"], "sample2": ["x", "y", "z"]}).assign(
                segments=1, total_cM=total, longest_cM=total, ibd2_cM=[70.0, 0.0, 0.0]
            )
        ],
        {},
        scale,
    )
    # A copy shares all that is searched: contigs that can hold no segment do not count.
    assert table.kinship.tolist() == pytest.approx([0.5, 0.125, 8 / 280])
    results = study(tmp_path, ["sharing only"] * 3, total.tolist(), searched_cm=scale.searched_cm)
    section = ibd_section(results, results / "figures", True)
    families = section["figures"][1]
    assert "withheld" in families.sizes
    svg = (results / "figures/families.svg").read_text("utf-8")
    assert "no degree is named" in svg and "no relatives within" not in svg


def test_without_segments(tmp_path):
    section = ibd_section(study(tmp_path, [], []), tmp_path / "results/figures", True)
    assert section["words"] == [
        "Of 179\u202f700 pairs of samples, 0 share 0 IBD segments of at least 7 cM."
    ]
    assert section["rows"] == []
    assert ibd_section(tmp_path / "nothing", tmp_path, True) is None


@pytest.mark.parametrize(("founders", "said"), [(3, True), (7, True), (8, False)])
def test_few_founders_are_said(tmp_path, founders, said):
    results = study(tmp_path, ["full siblings"], [1800.0], founders=founders)
    notes = ibd_section(results, results / "figures", True)["notes"]
    found = [note for note in notes if note.startswith("Segments may have been missed")]
    assert len(found) == said and all(f"from {founders} founders" in note for note in found)


def test_a_panel_that_allows_no_segment_is_said(tmp_path):
    results = study(tmp_path, [], [], not_searched="ibd: the panel's sites are 2 a centimorgan.")
    said = "No segments of IBD were sought: the panel's sites are 2 a centimorgan."
    section = ibd_section(results, results / "figures", True)
    assert section["words"] == [said] and not section["rows"] and not section["figures"]
    (finding,) = ibd_findings(results, True)
    assert (finding.level, finding.text) == ("warning", said) and advice_on(finding)
    assert not ibd_findings(results, False)


def test_no_number_of_haploids_is_minus_zero(tmp_path):
    """A LOD a little below 0 is shown as 0."""
    results = study(tmp_path, ["third degree"], [30.0])
    about = ABOUT | {"ploidy": 1, "limits": {"min_cm": 7, "error_rate": 0.001}, "called": 0}
    about |= {"pairs_with_segments": 0, "segments": 0, "pairs_fitted": 1, "mean_fraction": 0.0}
    (results / "ibd/summary.json").write_text(json.dumps(about))
    pairs = pd.read_csv(results / "ibd/pairs.tsv", sep="\t", dtype=str)
    pairs = pairs.assign(fraction="1e-05", generations="0.04", LOD="-0.0321")
    pairs.to_csv(results / "ibd/pairs.tsv", sep="\t", index=False)
    (row,) = ibd_section(results, results / "figures", True)["rows"]
    assert [row[key] for key in ("fraction", "generations", "LOD")] == ["0.000", "0.0", "0"]


def test_relatives_of_a_run_as_diploids_are_not_those_of_haploids(tmp_path):
    """The sheet had no ploidy at first: `compare/relatives.tsv` is still there."""
    results = study(tmp_path, ["second degree"], [1700.0])
    path, asked = results / "ibd/summary.json", {"ibd", "ld"}
    about = json.loads(path.read_text())
    assert judges_relatives(results, asked) and kin_verdict(results, 0.0884, asked)
    path.write_text(json.dumps(about | {"ploidy": 1}))
    assert not judges_relatives(results, asked) and kin_verdict(results, 0.0884, asked) is None
    # A study of diploids without `ibd` says nothing of a file of segments.
    assert judges_relatives(results, {"kinship"}) and not judges_relatives(results, {"ld"})
