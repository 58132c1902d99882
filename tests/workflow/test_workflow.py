"""The workflow: plans, reruns, new cohorts and kills, on a tiny study run by Snakemake.

Founders `north` and `south` are run once; `west` and `east` are added to copies of that study in
either order. All tests of this module read these few runs.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from oracles.reference import fermat_geodesics, pair_counts
from support.running import (
    ROOT,
    command,
    contents,
    environment,
    finished,
    kill_and_resume,
    planned,
    snakemake,
    snapshot,
)
from support.study import FAST, Cohort, make_cohorts, swap_alleles, write_sheets, write_study

from popdesic.core.triangle import open_symmetric
from popdesic.geodesic.lengths import open_lengths
from popdesic.report.findings import missing_calls
from popdesic.study.snakemake_internals import planned_jobs
from popdesic.study.work import count_work

#: Jobs of each cohort.
OWN = ("ingest_cohort", "encode_cohort")


def all_cohorts() -> list[Cohort]:
    north, south, west, east = make_cohorts((16, 14, 12, 13), n_sites=400)
    return [north, south, swap_alleles(west, range(0, 40)), east]


def add_cohort(folder: Path, cohorts: list[Cohort]) -> None:
    """Write the last cohort's file and the sheets, and no other file."""
    data = folder / cohorts[-1].path
    write_study(folder / "new", cohorts[-1:])
    shutil.move(folder / "new" / cohorts[-1].path, data)
    shutil.rmtree(folder / "new")
    write_sheets(folder, cohorts)


def copy_study(source: Path, target: Path) -> Path:
    """A copy of a study with all modification times and Snakemake's records."""
    return Path(shutil.copytree(source, target, copy_function=shutil.copy2))


@pytest.fixture(scope="module")
def founders(tmp_path_factory) -> Path:
    """The study of the founders, run up to the distances."""
    folder = write_study(tmp_path_factory.mktemp("founders"), all_cohorts()[:2])
    ran = finished(snakemake(folder, "distance"))
    assert ran == dict.fromkeys(OWN, 2) | {
        "build_panel": 1,
        "measure_resolution": 1,
        "measure_row": 2,
        "join_rows": 1,
        "export_distance": 1,
    }
    return folder


@pytest.fixture(scope="module")
def west_then_east(founders, tmp_path_factory) -> dict:
    """`west` is added, then `east`: the study, outputs and snapshots of both runs."""
    folder = copy_study(founders, tmp_path_factory.mktemp("west") / "study")
    north, south, west, east = all_cohorts()
    states, outputs = [snapshot(folder)], []
    for cohorts in ([north, south, west], [north, south, west, east]):
        add_cohort(folder, cohorts)
        outputs.append(snakemake(folder, "geodesic"))
        states.append(snapshot(folder))
    return {"folder": folder, "outputs": outputs, "states": states}


@pytest.fixture(scope="module")
def east_then_west(founders, tmp_path_factory) -> Path:
    folder = copy_study(founders, tmp_path_factory.mktemp("east") / "study")
    north, south, west, east = all_cohorts()
    for cohorts, stage in (
        ([north, south, east], "distance"),
        ([north, south, east, west], "geodesic"),
    ):
        add_cohort(folder, cohorts)
        snakemake(folder, stage)
    return folder


@pytest.fixture(scope="module")
def killed_and_resumed(tmp_path_factory) -> dict:
    """All four cohorts from scratch, killed in the middle, then resumed."""
    folder = write_study(tmp_path_factory.mktemp("killed"), all_cohorts()[::-1])
    tiles = folder / "results/distance/tiles"
    state, output = kill_and_resume(
        folder, "geodesic", lambda _: len(list(tiles.glob("*/*.npz"))) >= 4, seconds=300
    )
    return {"folder": folder, "state": state, "output": output}


@pytest.fixture(scope="module")
def complete(west_then_east, killed_and_resumed, tmp_path_factory) -> Path:
    """A copy of the study of all cohorts, run to completion."""
    folder = copy_study(west_then_east["folder"], tmp_path_factory.mktemp("complete") / "study")
    write_sheets(folder, all_cohorts(), FAST | {"distance": {"metric": "euclidean"}})
    snakemake(folder)
    return folder


# --- plans --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "jobs"),
    [
        ({}, {"choose_geodesics": 1, "close_paths": 1, "export_distance": 1, "compute_maps": 1}),
        (
            {"device": "gpu", "geodesic": {"alpha": [2], "pcs": 2}},
            {"choose_geodesics": 0, "close_paths": 1},
        ),
        (
            {
                "distance": {"metric": "manhattan"},
                "geodesic": {"alpha": [1, 2.5, "auto"], "space": ["pcs"]},
            },
            {"choose_geodesics": 1, "close_paths": 1, "export_distance": 1, "compute_maps": 1},
        ),
        (
            {
                "device": "cpu",
                "distance": {"metric": "ibs"},
                "impute": {"stages": ["distance"]},
                "geodesic": {"alpha": [1.5], "space": ["genotypes"]},
            },
            {"close_paths": 1, "compute_pca": 1},
        ),
    ],
    ids=["defaults", "gpu", "manhattan", "ibs"],
)
def test_plan(tmp_path, config, jobs):
    write_study(tmp_path, all_cohorts()[:3], config)
    plan = planned(snakemake(tmp_path, "-n"))
    expected = dict.fromkeys(OWN, 3) | {"measure_row": 3, "build_panel": 1} | jobs
    assert {rule: plan[rule] for rule in expected} == expected
    assert not (tmp_path / "results").exists()


def compares_missing(folder: Path) -> bool:
    """Whether a run up to `qc` writes the table of missing calls."""
    made = [path for job in planned_jobs(folder, ["qc"]) for path in job.outputs]
    assert "results/qc/summary.tsv" in made
    return "results/qc/differential_missing.tsv" in made


def test_missing_calls_are_compared_where_there_are_groups(tmp_path):
    """Two founder cohorts, or cases and controls, of newcomers too."""
    north, _, west, _ = all_cohorts()
    write_study(tmp_path, [north, west])
    sheet = tmp_path / "config/samples.tsv"
    with_classes = sheet.read_text()
    assert planned(snakemake(tmp_path, "-n", "qc"))["encode_cohort"] == 2
    assert compares_missing(tmp_path)
    sheet.write_text(re.sub(r"\t[01]$", "\tNA", with_classes, flags=re.MULTILINE))
    assert not compares_missing(tmp_path)
    write_sheets(tmp_path, [north, replace(west, founder=True)])
    sheet.write_text(re.sub(r"\t[01]$", "\tNA", sheet.read_text(), flags=re.MULTILINE))
    assert compares_missing(tmp_path)


def test_lint():
    done = subprocess.run(
        [*command(ROOT)[:5], "--lint"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- stages -------------------------------------------------------------------------------------


def test_a_stage_target_runs_only_what_it_needs(founders):
    written = set(contents(founders))
    assert {"distance/squared.npy", "distance/called.npy", "distance/samples.tsv"} <= written
    assert not [name for name in written if name.startswith(("geodesic", "embedding", "report"))]


def test_results_equal_the_oracle(west_then_east):
    """Distances and geodesics of the whole study equal those of the drawn genotypes."""
    folder = west_then_east["folder"] / "results"
    rows = (folder / "panel/sites.tsv").read_text().split("\n")[2:-1]
    north, south, west, east = all_cohorts()
    index = {site[2]: k for k, site in enumerate(north.sites)}
    on_panel = [index[row.split("\t")[2]] for row in rows]
    assert 200 < len(on_panel) < 400
    genotypes = []
    for cohort in (north, south, east, west):
        drawn = cohort.genotypes[on_panel].T.copy()
        if cohort is west:  # the alleles of the first 40 sites are swapped in its file
            swapped = np.array(on_panel) < 40
            drawn[:, swapped] = np.where(drawn[:, swapped] < 0, -1, 2 - drawn[:, swapped])
            lost = [k for k, site in enumerate(on_panel) if site < 40 and site % 10 == 9]
            drawn[:, lost] = -1  # A/T
        genotypes.append(drawn)
    names = (folder / "distance/samples.tsv").read_text().split("\n")[1:-1]
    order = [f"{s}\t{c.name}" for c in (north, south, east, west) for s in c.samples]
    assert names == order
    everyone = np.concatenate(genotypes)
    expected = pair_counts(everyone, everyone)
    for name in ("squared", "called"):
        np.testing.assert_array_equal(
            open_symmetric(folder / f"distance/{name}.npy")[:], expected[name]
        )
    lengths = open_lengths(folder / "geodesic/genotypes/alpha2.json")[:]
    distances = np.sqrt(expected["squared"] * len(on_panel) / expected["called"])
    # float32 and fixed point: docs/geodesics.md, "Number types"
    np.testing.assert_allclose(lengths, np.sqrt(fermat_geodesics(distances, 2)), rtol=1e-6)


# --- new cohorts --------------------------------------------------------------------------------


def test_a_new_cohort_runs_only_its_own_jobs(west_then_east):
    first, second = (finished(output) for output in west_then_east["outputs"])
    rest = {"join_rows": 1, "close_paths": 1}
    assert first == dict.fromkeys(OWN, 1) | {"measure_row": 1} | rest
    assert second == dict.fromkeys(OWN, 1) | {"measure_row": 1} | rest


def test_a_new_cohort_keeps_every_old_file(west_then_east):
    """Files of cohorts, panel and tiles keep their bytes and modification times."""
    for before, after in zip(west_then_east["states"], west_then_east["states"][1:], strict=False):
        old = [
            name
            for name in before
            if name.startswith(("cohorts/", "panel/", "distance/tiles/"))
            or (name.startswith("qc/") and name.endswith(("samples.tsv", "sites.tsv")))
        ]
        assert len(old) > 20
        for name in old:
            assert after[name] == before[name], name
        closures = [name for name in before if "/closure/" in name]
        for name in closures:
            assert after[name] == before[name], f"{name}: an earlier closure is a later start"


def tiles_said(folder: Path, row: str) -> tuple[int, int, int]:
    """Tiles computed and kept and files removed, of both stages, from the log of a row's job."""
    log = (folder / f"logs/measure_row/{row}.log").read_text()
    words = ("tiles computed", "tiles kept", "files removed")
    return tuple(int(re.search(rf"{word}: (\d+)", log)[1]) for word in words)


def test_replacing_an_earlier_newcomer_computes_its_pairs_alone(west_then_east, tmp_path):
    """The later newcomer's row holds one pair with it: that tile is new, the others stay."""
    folder = copy_study(west_then_east["folder"], tmp_path / "study")
    before = snapshot(folder)
    west = all_cohorts()[2]
    (folder / west.path).write_text(replace(west, genotypes=west.genotypes[:, ::-1]).vcf())
    assert finished(snakemake(folder, "distance"))["measure_row"] == 2
    assert (tiles_said(folder, "west"), tiles_said(folder, "east")) == ((6, 0, 0), (2, 6, 0))
    after = snapshot(folder)
    tiles = {name for name in after if name.startswith("distance/tiles/")}
    changed = {name for name in tiles if after[name] != before[name]}
    assert changed == {
        *(f"distance/tiles/west/{other}.npz" for other in ("north", "south", "west")),
        "distance/tiles/east/west.npz",
        *(f"distance/tiles/{row}/row.json" for row in ("east", "west")),
    }
    old = open_symmetric(west_then_east["folder"] / "results/distance/squared.npy")[:]
    new = open_symmetric(folder / "results/distance/squared.npy")[:]
    east, turned = slice(30, 43), slice(43, 55)
    np.testing.assert_array_equal(new[east, turned], old[east, turned][:, ::-1])


def test_removing_an_earlier_newcomer_removes_its_tiles(west_then_east, tmp_path):
    folder = copy_study(west_then_east["folder"], tmp_path / "study")
    before = snapshot(folder)
    north, south, _, east = all_cohorts()
    write_sheets(folder, [north, south, east])
    ran = finished(snakemake(folder, "distance"))
    assert ran == {"measure_row": 1, "join_rows": 1, "export_distance": 1}
    assert tiles_said(folder, "east") == (0, 6, 4)
    after = snapshot(folder)
    assert "distance/tiles/east/west.npz" not in after
    for other in ("north", "south", "east"):
        name = f"distance/tiles/east/{other}.npz"
        assert after[name] == before[name]
    old = open_symmetric(west_then_east["folder"] / "results/distance/squared.npy")[:]
    new = open_symmetric(folder / "results/distance/squared.npy")[:]
    np.testing.assert_array_equal(new, old[:43, :43])
    # It comes back: its own row is as it was, and its pair with the other is computed again.
    write_sheets(folder, all_cohorts())
    snakemake(folder, "distance")
    np.testing.assert_array_equal(open_symmetric(folder / "results/distance/squared.npy")[:], old)


def test_a_deleted_tile_is_made_again(west_then_east, tmp_path):
    folder = copy_study(west_then_east["folder"], tmp_path / "study")
    tile = folder / "results/distance/tiles/east/south.npz"
    before = tile.read_bytes()
    tile.unlink()
    assert planned(snakemake(folder, "distance", "-n"))["measure_row"] == 1
    snakemake(folder, "distance")
    assert tiles_said(folder, "east") == (1, 7, 0)
    assert tile.read_bytes() == before
    assert "Nothing to be done" in snakemake(folder, "distance")


def test_a_new_cohort_does_not_choose_geodesics_again(founders, tmp_path):
    """The choice needs the founders' files alone; these are too few, so distances stay plain."""
    config = FAST | {"geodesic": {"alpha": [2, "auto"]}}
    folder = copy_study(founders, tmp_path / "study")
    north, south, west, _ = all_cohorts()
    write_sheets(folder, [north, south], config)
    choice = folder / "results/geodesic/choice.json"
    assert finished(snakemake(folder, str(choice.relative_to(folder))))["choose_geodesics"] == 1
    before = choice.stat().st_mtime_ns, choice.read_bytes()
    add_cohort(folder, [north, south, west])
    write_sheets(folder, [north, south, west], config)
    ran = finished(snakemake(folder, "geodesic"))
    assert ran["close_paths"] == 1 and "choose_geodesics" not in ran
    assert before == (choice.stat().st_mtime_ns, choice.read_bytes())
    chosen = json.loads(choice.read_text())["pcs"]
    about = json.loads((folder / "results/geodesic/pcs/alphaauto.json").read_text())
    assert chosen["reason"] == "too few" and about["plain"] and about["value"] == 1
    scores = np.load(folder / "results/embedding/pca.npy")[:, : chosen["pcs"]]
    expected = np.sqrt(((scores[:, None] - scores) ** 2).sum(axis=-1))
    lengths = open_lengths(folder / "results/geodesic/pcs/alphaauto.json")[:]
    np.testing.assert_allclose(lengths, expected, rtol=1e-5, atol=1e-7)


def test_geodesics_of_newcomers_are_inserted(west_then_east):
    record = json.loads(
        (west_then_east["folder"] / "results/geodesic/genotypes/alpha2.run.json").read_text()
    )
    assert record["continued"]
    assert record["closed_before"] + record["inserted"] == len(
        (west_then_east["folder"] / "results/distance/samples.tsv").read_text().splitlines()[1:]
    )


def by_pair(found: dict[str, str], folder: Path) -> dict[str, str]:
    """Contents of results, with tiles under the names of their pairs: owners may differ."""
    named = {}
    for name, digest in found.items():
        if name.endswith("/row.json"):
            continue
        if match := re.fullmatch(r"(\w+/tiles)/(\w+)/(\w+)\.(.+)", name):
            stage, *pair, ending = match.groups()
            joint = "__" if stage.startswith("distance") else "--"
            name = f"{stage}/{joint.join(sorted(pair))}" + (ending if joint == "--" else "")
        named[name] = digest
    rows = [json.loads(path.read_text()) for path in folder.glob("results/distance/tiles/*/*.json")]
    listed = sorted("__".join(sorted(pair[:2])) for row in rows for pair in row["tiles"])
    assert listed == sorted(name.split("/")[-1] for name in named if "__" in name)
    return named


def test_order_of_arrival_does_not_matter(west_then_east, east_then_west, killed_and_resumed):
    """The results are byte for byte those of a run from scratch."""
    scratch = by_pair(contents(killed_and_resumed["folder"]), killed_and_resumed["folder"])
    assert len([name for name in scratch if "__" in name]) == 10
    for folder in (west_then_east["folder"], east_then_west):
        found = by_pair(contents(folder), folder)
        assert set(scratch) <= set(found)
        for name, digest in scratch.items():
            if not name.endswith(".run.json"):  # records how the closure was computed
                assert found[name] == digest, name
        # closures, and text of the founders' distances, which `geodesic` does not ask for
        extra = set(found) - set(scratch)
        assert all("/closure/" in n or n.startswith("distance/distance.") for n in extra), extra


# --- kills --------------------------------------------------------------------------------------


def test_a_killed_run_resumes(killed_and_resumed):
    """Complete files from before the kill are kept; finished jobs are not run again."""
    state, after = killed_and_resumed["state"], snapshot(killed_and_resumed["folder"])
    assert "geodesic/genotypes/alpha2.json" not in state
    assert "geodesic/genotypes/alpha2.json" in after
    ran = finished(killed_and_resumed["output"])
    assert ran["build_panel"] == 0
    assert ran["ingest_cohort"] <= 1  # one job may have been finishing
    assert 0 < ran["measure_row"] <= 4
    assert after["panel/sites.tsv"] == state["panel/sites.tsv"]


# --- complete runs ------------------------------------------------------------------------------

CONTRACT = [
    *(f"cohorts/{{cohort}}/raw.{end}" for end in ("bed", "bim", "fam", "json")),
    *(f"cohorts/{{cohort}}/genotypes.{end}" for end in ("bed", "bim", "fam")),
    "cohorts/{cohort}/planes.npy",
    "cohorts/{cohort}/planes.json",
    "qc/{cohort}.sites.tsv",
    "qc/{cohort}.samples.tsv",
    "qc/{cohort}.populations.tsv",
    "qc/summary.tsv",
    "panel/sites.tsv",
    "distance/tiles/{cohort}/{cohort}.npz",
    "distance/tiles/{cohort}/row.json",
    "distance/squared.npy",
    "distance/called.npy",
    "qc/artefacts.tsv",
    "qc/artefacts.json",
    "qc/differential_missing.tsv",
    "qc/differential_missing.json",
    "distance/samples.tsv",
    "distance/distance.mdist",
    "distance/distance.mdist.id",
    "distance/distance.tsv.gz",
    "geodesic/{space}/alpha{alpha}.json",
    "embedding/quality.tsv",
    "embedding/pca.tsv",
    "embedding/pcoa.{space}.alpha{alpha}.tsv",
    "embedding/umap.{space}.alpha{alpha}.tsv",
    "report/report.html",
    "report/summary.json",
    "report/methods.md",
]


def test_every_documented_file_exists(complete):
    cohorts = [c.name for c in all_cohorts()]
    written = set(contents(complete))
    for pattern in CONTRACT:
        for cohort in cohorts:
            name = pattern.format(cohort=cohort, space="genotypes", alpha="2")
            assert name in written, name
    for ending in ("svg", "png"):
        assert [name for name in written if name.startswith("figures/") and name.endswith(ending)]
    assert len([name for name in written if "/closure/alpha2." in name]) >= 1
    statistics = json.loads((complete / "results/geodesic/genotypes/alpha2.json").read_text())
    assert statistics["pairs"] == 55 * 54 // 2
    for kind in ("logs", "benchmarks"):
        assert len(list((complete / kind).rglob("*.*"))) > 20
    assert not list((complete / "results").rglob(".*.tmp"))


def test_snakemake_s_own_report_has_captions_categories_and_labels(complete, tmp_path):
    out = tmp_path / "report.html"
    snakemake(complete, "--report", str(out))
    text = out.read_text("utf-8")
    categories = json.loads(re.search(r"var categories = (\{.*\});", text)[1])
    listed = {path for parts in categories.values() for names in parts.values() for path in names}
    drawn = {f"results/{name}" for name in contents(complete) if name.startswith("figures/")}
    assert listed == {path for path in drawn if path.endswith(".svg")}
    assert {"Quality", "Distances", "Maps"} <= set(categories)
    results = json.loads(re.search(r"var results = (\{\"results/.*\});", text)[1])
    for path in listed:
        assert len(results[path]["caption"]) > 150, path
        assert results[path]["labels"]["figure"], path


def test_the_page_says_whether_missing_calls_differ(complete):
    """Cohorts, and cases and controls, that miss calls alike."""
    about = json.loads((complete / "results/qc/differential_missing.json").read_text())
    assert [one["kind"] for one in about["comparisons"]] == ["cohort", "phenotype"]
    page = html.unescape((complete / "results/report/report.html").read_text("utf-8"))
    for finding in missing_calls(about):
        assert finding.level == "note" and finding.text in page


def test_a_second_run_has_nothing_to_do(complete):
    before = snapshot(complete)
    assert "Nothing to be done" in snakemake(complete)
    assert snapshot(complete) == before


#: What a changed parameter reruns, and what it must not rerun.
COHORT, PANEL, TILES = (
    {"ingest_cohort"},
    {"build_panel", "encode_cohort"},
    {"measure_row", "join_rows", "export_distance"},
)
GEODESIC, PCA, MAPS = {"close_paths"}, {"compute_pca"}, {"compute_maps"}
CHANGES = {
    "seed": ({"seed": 2}, MAPS, GEODESIC | PCA | TILES),
    "geodesic.density": (
        {"geodesic": FAST["geodesic"] | {"density": "correct"}},
        GEODESIC | MAPS,
        PCA | TILES | PANEL,
    ),
    "distance.metric": (
        {"distance": {"metric": "ibs"}},
        TILES | GEODESIC | PCA | MAPS,
        PANEL | COHORT,
    ),
    "panel.min_maf": (
        {"panel": {"min_maf": 0.1}},
        PANEL | TILES | GEODESIC | PCA | MAPS,
        COHORT,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_parameter_reruns_its_rule_and_what_depends_on_it(complete, change):
    blocks, reruns, stays = CHANGES[change]
    path = complete / "config/config.yaml"
    before = path.read_text()
    try:
        path.write_text(yaml.safe_dump(yaml.safe_load(before) | blocks))
        plan = planned(snakemake(complete, "-n"))
    finally:
        path.write_text(before)
    assert reruns <= set(plan)
    assert not (stays - reruns) & set(plan)


def test_a_changed_row_of_a_newcomer_keeps_the_panel(complete):
    """Its population affects only its own Hardy-Weinberg tests and the labels of maps."""
    path = complete / "config/samples.tsv"
    before = path.read_text()
    try:
        path.write_text(before.replace("W00\twest\tP", "W00\twest\tQ"))
        plan = planned(snakemake(complete, "-n"))
    finally:
        path.write_text(before)
    assert plan["ingest_cohort"] == 1 and "build_panel" not in plan


def test_the_root_of_the_repository_is_a_study():
    """The embedded example can be planned from the repository's root."""
    output = snakemake(ROOT, "-n", "--quiet", "all")
    assert "Error" not in output


#: Rules that work on one cohort or one row of tiles.
HEAVY = {"ingest_cohort", "encode_cohort", "build_panel"} | {
    "measure_row",
}


def test_removing_a_newcomer_recomputes_no_tile(complete):
    """Matrices, maps and tables are made without it; no job of a cohort runs again.

    Pairs of `east`, which arrived last, are in its own row.
    """
    try:
        write_sheets(complete, all_cohorts()[:3], FAST | {"distance": {"metric": "euclidean"}})
        plan = planned(snakemake(complete, "-n"))
    finally:
        write_sheets(complete, all_cohorts(), FAST | {"distance": {"metric": "euclidean"}})
    assert {rule: plan[rule] for rule in HEAVY if plan[rule]} == {}
    assert {"join_rows", "close_paths", "compute_pca", "write_report"} <= set(plan)


def test_replacing_a_newcomer_computes_its_own_row(complete, tmp_path):
    """Its file is decoded, checked, encoded, and compared in the row that holds its pairs."""
    east = all_cohorts()[3]
    write_study(tmp_path, [replace(east, genotypes=east.genotypes[:, ::-1])])
    path = complete / east.path
    before, times = path.read_bytes(), path.stat()
    try:
        path.write_bytes((tmp_path / east.path).read_bytes())
        plan = planned(snakemake(complete, "-n"))
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    found = {rule: plan[rule] for rule in HEAVY if plan[rule]}
    assert found == dict.fromkeys(OWN, 1) | {"measure_row": 1}


def test_the_work_of_a_report_is_counted(complete, tmp_path):
    """Every job is counted under its rule; a later report that needs none counts them as reused."""
    table = complete / "results/report/work.tsv"
    first = pd.read_csv(table, sep="\t").set_index("rule")
    assert list(first.columns) == ["jobs_run", "jobs_reused", "seconds"]
    assert first.jobs_run["measure_row"] == 4
    assert (first.loc[list(OWN), "jobs_run"] == 4).all()
    assert (first.jobs_reused == 0).all()
    assert (first.seconds > 0).all()
    page = (complete / "results/report/report.html").read_text()
    assert f"{first.jobs_run.sum()} ran, 0 were reused" in page
    study = copy_study(complete, tmp_path / "study")
    rows = [f"results/distance/tiles/{a}/row.json" for a in ("north", "south")]
    count_work(study, rows, study / "results/report/work.tsv")
    later = pd.read_csv(study / "results/report/work.tsv", sep="\t").set_index("rule")
    assert (later.jobs_run == 0).all()
    assert later.jobs_reused["measure_row"] == 2
    assert later.jobs_reused["encode_cohort"] == 2
    # The panel depends on all founders.
    assert later.jobs_reused["ingest_cohort"] == 2
