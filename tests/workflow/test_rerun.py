"""An edit of the code reruns its own rules and what follows from them, nothing else.

The edits are made in a copy of the repository, with which Snakemake then plans a finished study.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.clone import copy_repository, make_environment, stranger_environment
from support.running import contents, finished, planned
from support.study import FAST, make_cohorts, write_sheets, write_study

CONFIG = FAST | {"epistasis": {"order": []}}
#: Rules that follow from the geodesics.
AFTER_GEODESICS = {
    *("compute_maps", "measure_maps"),
    *("draw_figures", "write_report"),
}
#: Start of a kernel's definition, outside of comments.
KERNEL = 'extern "C" '
BEFORE_DISTANCES = {"ingest_cohort", "build_panel", "encode_cohort"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A copy of the repository with an interpreter that finds only its package."""
    clone = copy_repository(tmp_path_factory.mktemp("clone") / "popdesic")
    make_environment(clone)
    return clone


def run(clone: Path, study: Path, *arguments: str) -> str:
    """Run the copy's workflow on a study; return its output."""
    words = [clone / ".venv/bin/python", "-m", "snakemake", "--snakefile", clone / "Snakefile"]
    words += ["--directory", study, "--cores", "2", "--max-threads", "1", *arguments]
    done = subprocess.run(
        list(map(str, words)),
        env=stranger_environment(),
        cwd=study,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def study(clone, tmp_path_factory) -> Path:
    """A small study, run to the report."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, make_cohorts((8, 7), n_sites=220), CONFIG)
    run(clone, folder)
    return folder


@contextlib.contextmanager
def edited(path: Path, old: str, new: str):
    """Replace a piece of a file's text within the context."""
    text = path.read_text()
    assert old in text, f"{path} has changed; name another line of it"
    path.write_text(text.replace(old, new, 1))
    try:
        yield
    finally:
        path.write_text(text)


def plan(clone: Path, study: Path) -> set[str]:
    return set(planned(run(clone, study, "--dry-run")))


def test_nothing_is_planned_for_a_finished_study(clone, study):
    assert plan(clone, study) == set()


def test_new_dates_of_files_rerun_nothing(clone, study):
    """For example, those of a fresh copy of the repository."""
    for path in [*clone.rglob("workflow/**/*.py"), *clone.rglob("src/**/*.py")]:
        path.touch()
    assert plan(clone, study) == set()


def test_comments_and_docstrings_rerun_nothing(clone, study):
    with contextlib.ExitStack() as edits:
        for name, old, new in (
            ("src/popdesic/core/errors.py", "class UserError", "# a remark\nclass UserError"),
            ("src/popdesic/core/errors.py", '"""', '"""Another docstring. '),
            ("workflow/scripts/cohort/ingest_cohort.py", '"""', '"""Another docstring. '),
            ("workflow/scripts/cohort/ingest_cohort.py", "with logged", "# a remark\nwith logged"),
            ("kernels/engine/minplus.cu", "//", "// A remark.\n//"),
            ("kernels/common.cuh", "//", "/* a remark\n over lines */ //"),
        ):
            edits.enter_context(edited(clone / name, old, new))
        assert plan(clone, study) == set()


def test_a_new_column_of_the_sheet_reruns_only_what_reads_it(clone, study):
    sheet = study / "config/samples.tsv"
    text = sheet.read_text()
    lines = text.splitlines()
    rows = [f"{lines[0]}\tnote", *(f"{line}\tn{k % 3}" for k, line in enumerate(lines[1:]))]
    sheet.write_text("\n".join(rows) + "\n")
    try:
        jobs = plan(clone, study)
    finally:
        sheet.write_text(text)
    # The tables of maps for users have all columns, and the page lists them. No map and no figure
    # is made again. Where there are communities, they are compared with every column.
    assert jobs == {"write_report"}


def test_a_new_label_of_a_founder_reruns_only_what_reads_it(clone, study, tmp_path):
    """Labels decide who is tested for Hardy-Weinberg, so the panel is made again: here the same."""
    folder = Path(shutil.copytree(study, tmp_path / "study", copy_function=shutil.copy2))
    sheet = folder / "config/samples.tsv"
    text = sheet.read_text()
    sheet.write_text(text.replace("\tP\t", "\tQ\t", 1))
    assert sheet.read_text() != text
    before = contents(folder)
    ran = finished(run(clone, folder))
    assert ran["ingest_cohort"] == ran["build_panel"] == ran["write_report"] == 1
    assert not set(ran) & {
        *("measure_row", "define_axes", "close_paths"),
        *("compute_pca", "compute_maps", "find_communities"),
    }
    after = contents(folder)
    changed = {name for name in after if after[name] != before[name]}
    assert {"qc/north.samples.tsv", "report/report.html", "embedding/pca.tsv"} <= changed
    same = ("panel", "distance", "geodesic", "embedding/coordinates", "communities/partition")
    assert not [name for name in changed if name.startswith(same)]
    assert plan(clone, folder) == set()


def test_an_edit_of_shared_code_reruns_everything(clone, study):
    """The counterpart: a statement in the same file."""
    with edited(
        clone / "src/popdesic/core/log.py", "@contextmanager", "UNUSED = 1\n\n\n@contextmanager"
    ):
        assert plan(clone, study) == set()
    with edited(clone / "src/popdesic/core/log.py", "    root =", "    assert True\n    root ="):
        assert plan(clone, study) >= {*BEFORE_DISTANCES, "close_paths", "write_report"}


def test_an_edit_of_the_min_plus_kernel_reruns_geodesics_and_what_follows(clone, study):
    with edited(clone / "kernels/engine/minplus.cu", KERNEL, f"{KERNEL}static "):
        jobs = plan(clone, study)
    assert jobs == {"close_paths", *AFTER_GEODESICS}


def test_an_edit_of_the_bitgemm_kernel_reruns_products_and_what_follows(clone, study):
    with edited(clone / "kernels/engine/bitgemm_wgmma.cu", KERNEL, f"{KERNEL}static "):
        jobs = plan(clone, study)
    assert jobs >= {"measure_row", "close_paths", "write_report"}
    assert not jobs & BEFORE_DISTANCES


def test_an_edit_of_a_figure_reruns_its_drawing_and_the_report(clone, study):
    with edited(clone / "src/popdesic/report/figures/quality.py", "height=0.7", "height=0.8"):
        jobs = plan(clone, study)
    assert jobs == {"draw_figures", "write_report"}


def test_an_edit_of_a_template_reruns_the_report(clone, study):
    with edited(clone / "workflow/report/page.css", "{", "{ "):
        assert plan(clone, study) == {"write_report"}


def test_a_fix_of_min_plus_invalidates_old_closures(clone, study, tmp_path):
    """An insertion continues a closure only if the current code would have made it."""
    folder = Path(shutil.copytree(study, tmp_path / "study", copy_function=shutil.copy2))
    cohorts = make_cohorts((8, 7, 5), n_sites=220)
    write_study(folder, cohorts[2:], CONFIG)
    write_sheets(folder, cohorts, CONFIG)
    record = "results/geodesic/genotypes/alpha2.run.json"
    run(clone, folder, record)
    assert json.loads((folder / record).read_text())["continued"].startswith("alpha2.")
    kernel = clone / "src/popdesic/engine/minplus_cpu.py"
    with edited(kernel, "def mirror_upper(c):\n", "def mirror_upper(c):\n    c = c\n"):
        run(clone, folder, record)
    assert json.loads((folder / record).read_text())["continued"] is None
