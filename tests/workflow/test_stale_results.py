"""Results of other settings and of deleted cohorts are named, and deleted when told."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from support.running import contents, snakemake
from support.study import FAST, make_cohorts, write_study
from test_exclude import exclude

from popdesic.__main__ import main
from popdesic.cohort.paint_cohorts import ENDINGS
from popdesic.core.errors import UserError
from popdesic.study.command_line import parse
from popdesic.study.forget import files_with, forget_cohort, forget_sample
from popdesic.study.snakemake_internals import planned_jobs
from popdesic.study.stale import delete_results, stale_results

CONFIG = FAST | {
    "geodesic": {"alpha": [2, 3], "space": ["genotypes"]},
    "compare": {"analyses": ["kinship", "identity"], "query": "data/north.vcf"},
    "export": {"formats": ["zarr3", "king"]},
}
#: What the second configuration makes no more, by parts of paths.
GONE = (
    *("compare/identity", "geodesic/genotypes/alpha3"),
    *("export/panel.v3.vcz", "export/kinship.king"),
    *("embedding/pcoa.genotypes.alpha3.tsv", "figures/pcoa.genotypes.alpha3.svg"),
)


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory) -> Path:
    """Two founders and the newcomers `west`, run to the report."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, make_cohorts((9, 8, 7), n_sites=240), CONFIG)
    snakemake(folder)
    return folder


@pytest.fixture
def study(finished_study, tmp_path) -> Path:
    return Path(shutil.copytree(finished_study, tmp_path / "study", symlinks=True))


def delete_cohort(study: Path, name: str, letter: str) -> None:
    """Delete a cohort's row and those of its samples."""
    for sheet, start in (("cohorts", name), ("samples", letter)):
        path = study / f"config/{sheet}.tsv"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith(start)))


def holding(study: Path, names: list[str]) -> set[str]:
    """Results in which the text of a sample's name is found."""
    found = (path for name in names for path in files_with(study, name))
    return {str(path.relative_to(study)) for path in found if "results" in path.parts}


def warnings_of_page(study: Path) -> list[str]:
    """Topics of the warnings, as the page lists them."""
    page = (study / "results/report/report.html").read_text()
    section = page[page.index('<section id="warnings"') :].partition("</section>")[0]
    return re.findall(r"<li><strong>(.+?)\.</strong>", section.partition("<h2 ")[2])


def compare_log_and_page(study: Path, output: str) -> None:
    """The last line of a run counts the warnings of the page, and the job's log has them all."""
    topics = warnings_of_page(study)
    log = (study / "logs/write_report.log").read_text()
    assert re.findall(r" WARNING (.+?): ", log) == [topic.partition(": ")[0] for topic in topics]
    count = f"{len(topics)} warning{'s' * (len(topics) > 1)} on the page"
    assert len(topics) > 1 and count in output and "no warnings" not in output


def test_a_study_without_changes_has_no_stale_results(study):
    """Every file of a run is known: also tiles, and what the search of profiles leaves."""
    (study / "results/mine.txt").write_text("not Popdesic's: never listed")
    assert stale_results(study, planned_jobs(study)) == []


@pytest.mark.slow
def test_forget_deletes_results_of_other_settings(study, capsys):
    """Formats, an alpha and the search of profiles were taken out before a sample left."""
    about = CONFIG | {
        "geodesic": {"alpha": [2], "space": ["genotypes"]},
        "compare": {"analyses": ["kinship", "identity"]},
        "export": {"formats": []},
    }
    (study / "config/config.yaml").write_text(yaml.safe_dump(about))
    exclude(study, "N02")
    with pytest.raises(UserError, match="run the study first"):
        forget_sample(study, "N02", yes=True)
    snakemake(study)
    stale = stale_results(study, planned_jobs(study))
    assert [part for part in GONE if not any(part in path for path in stale)] == []
    before = contents(study)
    assert main(["audit", str(study)]) == 0
    told = capsys.readouterr().out
    assert all(f"{path}: of other settings" in told for path in stale)
    assert f"{len(stale)} results are not made by" in told and "--remove-stale" in told
    with pytest.raises(UserError, match="results listed above would be deleted; add --yes"):
        forget_sample(study, "N02", yes=False)
    assert contents(study) == before
    told = forget_sample(study, "N02", yes=True)
    assert f"{len(stale)} results of other settings, which may hold it, are deleted" in told
    assert holding(study, ["N02"]) == set()
    left = set(before) - set(contents(study))
    inside = {path for path in left if not any(path.startswith(s[8:]) for s in stale)}
    assert inside == set() and len(left) >= len(stale)
    capsys.readouterr()
    assert main(["audit", str(study)]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert "Nothing to be done" in snakemake(study, "--dry-run")


def test_a_deleted_cohort_is_named_and_forgotten(study, finished_study, tmp_path, capsys):
    names = [f"W{k:02}" for k in range(7)]
    assert len(holding(study, names)) > 20
    delete_cohort(study, "west", "W")
    assert main(["check", str(study)]) == 0
    assert "still hold genotypes and sample names of west" in capsys.readouterr().err
    assert main(["plan", str(study)]) == 0
    assert "still hold genotypes and sample names of west" in capsys.readouterr().out
    output = snakemake(study)
    assert "names of west" in output
    assert "Deleted cohorts" in warnings_of_page(study)
    compare_log_and_page(study, output)
    assert any("cohorts/west" in path for path in holding(study, names))
    with pytest.raises(UserError, match="would be deleted, because they may hold cohort 'west'"):
        forget_cohort(study, "west", yes=False)
    forget_cohort(study, "west", yes=True)
    assert holding(study, names) == set()
    assert not list((study / "results").rglob("*west*"))
    snakemake(study)
    assert "Deleted cohorts" not in (study / "results/report/report.html").read_text()


def test_a_cohort_can_be_forgotten_before_the_next_run(study):
    names = [f"W{k:02}" for k in range(7)]
    with pytest.raises(UserError, match="'west' is part of the study; delete its row"):
        forget_cohort(study, "west", yes=True)
    delete_cohort(study, "west", "W")
    with pytest.raises(UserError, match="no cohort 'wst'; did you mean 'west'"):
        forget_cohort(study, "wst", yes=True)
    forget_cohort(study, "west", yes=True)
    assert holding(study, names) == set()
    assert (study / "results/cohorts/north/raw.bed").is_file()
    assert stale_results(study, planned_jobs(study)) == []


def test_tiles_of_cohorts_with_points_in_their_names(tmp_path):
    """A tile of `a` is not one of `a.b`."""
    from popdesic.study.stale import _of_another

    for name in ("a", "a.b"):
        (tmp_path / f".{name}.key").write_text("")
    assert _of_another(tmp_path / "a.b.npz", {"a"})
    assert not _of_another(tmp_path / "a.b.npz", {"a.b"})
    assert not _of_another(tmp_path / "a.npz", {"a"})
    assert _of_another(tmp_path / "a.npz", {"a.b"})
    for ending in ENDINGS:  # of painting: one begins with two underscores
        assert not _of_another(tmp_path / f"a{ending}", {"a"})
        assert _of_another(tmp_path / f"a.b{ending}", {"a"})


def test_folders_and_hidden_files_go_with_a_result(tmp_path):
    tile = tmp_path / "results/distance/tiles/a/b.npz"
    tile.parent.mkdir(parents=True)
    for name in ("b.npz", ".b.npz.crc32", ".b.npz.record", ".b.key"):
        (tile.parent / name).write_text("")
    delete_results(tmp_path, [str(tile.relative_to(tmp_path))])
    assert [path.name for path in tmp_path.rglob("*")] == ["results"]


def test_words_of_forget():
    assert parse(["forget", "S1", "study"]).sample == "S1"
    told = parse(["forget", "--cohort", "west", "study", "--yes"])
    assert told.sample is None and told.study == Path("study") and told.cohort == "west"
    assert parse(["forget", "S1"]).study == Path()
    for words in ([], ["a", "b", "c"], ["--cohort", "west", "a", "b"]):
        with pytest.raises(SystemExit):
            parse(["forget", *words])
