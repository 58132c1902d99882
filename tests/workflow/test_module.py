"""The workflow as a module of another one, and how jobs find the package without installation.

Snakemake appends the folders of its own search path to that of each script that it starts.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
from support.clone import package_folders, stranger_environment
from support.running import PATIENCE, ROOT, contents, planned
from support.running import snakemake as run_snakemake
from support.study import FAST, make_cohorts, write_study

import popdesic

MODULE = f"""
module popdesic:
    snakefile: {str(ROOT / "Snakefile")!r}
    config: {{config}}

use rule * from popdesic{{uses}}
"""
OWN_RULE = """
rule mine:
    input: "results/distance/samples.tsv"
    output: "mine.txt"
    shell: "wc -l < {input} > {output}"
"""
FIRST_STAGES = "results/distance/samples.tsv"


def make_python(folder: Path) -> Path:
    """An interpreter with the libraries of this one, but without Popdesic."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    libraries = [path for path in package_folders() if not (Path(path) / "popdesic").exists()]
    site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    # .pth files of those folders are not read, for example of an editable installation
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    return folder / "bin/python"


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    made = make_python(tmp_path_factory.mktemp("python"))
    assert "No module" in call(made, "-c", "import popdesic", fails=True)
    return made


def call(python: Path, *arguments: str, cwd: Path | None = None, fails: bool = False, **variables):
    done = subprocess.run(
        [str(python), *arguments],
        env=stranger_environment() | variables,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode != 0) == fails, done.stdout[-3000:]
    return done.stdout


def snakemake(python: Path, folder: Path, *arguments: str, **options) -> str:
    words = ["-m", "snakemake", "--cores", "2", "--max-threads", "1", *arguments]
    return call(python, *words, cwd=folder, **options)


@pytest.fixture
def study(tmp_path) -> Path:
    return write_study(tmp_path / "study", make_cohorts((8, 7), n_sites=220))


@pytest.fixture(scope="module")
def plain(python, tmp_path_factory) -> dict[str, str]:
    """The first stages, run by the workflow itself."""
    folder = write_study(tmp_path_factory.mktemp("plain"), make_cohorts((8, 7), n_sites=220))
    snakemake(python, folder, "--snakefile", str(ROOT / "Snakefile"), FIRST_STAGES)
    return contents(folder)


def write_snakefile(folder: Path, config: str, uses: str, *, configfile: bool = True) -> None:
    text = 'configfile: "config/config.yaml"\n' if configfile else ""
    (folder / "Snakefile").write_text(text + MODULE.format(config=config, uses=uses) + OWN_RULE)


@pytest.mark.parametrize(
    ("uses", "prefix"), [("", ""), (" as popdesic_*", "popdesic_")], ids=["all", "renamed"]
)
def test_first_stages_run_as_a_module(python, study, plain, uses, prefix):
    write_snakefile(study, "config", uses)
    output = snakemake(python, study, "mine.txt")
    assert "(Rule: mine)" in output
    assert f"(Rule: {prefix}measure_row)" in output
    assert (study / "mine.txt").read_text().strip() == "16"
    assert contents(study) == plain
    assert "Nothing to be done" in snakemake(python, study, "mine.txt")


@pytest.mark.parametrize("uses", ["", " as popdesic_*"])
def test_the_whole_workflow_is_planned_as_a_module(python, study, uses):
    write_snakefile(study, "config", uses)
    config = FAST | {"epistasis": {"order": [2, 3]}, "communities": {"methods": ["hdbscan"]}}
    write_study(study, make_cohorts((8, 7), n_sites=220), config)
    output = snakemake(python, study, "--dry-run", "popdesic_all" if uses else "all")
    assert "rank_epistasis" in output and "write_report" in output
    assert "localrules" not in output


def test_a_module_with_a_configuration_of_its_own(python, study, plain):
    """It is part of the other workflow's configuration; the study's own file is not read."""
    own = "popdesic: {device: cpu, seed: 2, population: {analyses: []}}\n"
    (study / "config/config.yaml").write_text(own)
    write_snakefile(study, 'config["popdesic"]', " as popdesic_*")
    snakemake(python, study, "mine.txt")
    assert contents(study) == plain


def test_a_wrong_key_in_a_module_gives_a_one_sentence_error(python, study):
    write_snakefile(study, '{"devise": "cpu"}', "")
    output = snakemake(python, study, "--dry-run", fails=True)
    assert "'devise'" in output and "device" in output


@pytest.mark.parametrize("place", ["site-packages", "PYTHONPATH"])
def test_another_popdesic_on_the_path_is_refused(tmp_path, study, place):
    """Jobs would silently run it, because an interpreter's folders come before the workflow's."""
    python = make_python(tmp_path / "python")
    folder = tmp_path / "old"
    if place == "site-packages":
        folder = next((tmp_path / "python").glob("lib/python*/site-packages"))
    (folder / "popdesic").mkdir(parents=True)
    (folder / "popdesic/__init__.py").write_text("__version__ = '0.1'\n")
    path = str(folder) if place == "PYTHONPATH" else ""
    words = ["--snakefile", str(ROOT / "Snakefile"), "--dry-run"]
    output = snakemake(python, study, *words, fails=True, PYTHONPATH=path)
    assert str(folder / "popdesic") in output
    assert str(ROOT / "src/popdesic") in output
    assert "pip uninstall popdesic" in output


def test_a_folder_named_popdesic_is_not_taken_for_the_package(python, study):
    """For example, a clone in the folder in which Snakemake starts."""
    (study / "popdesic/docs").mkdir(parents=True)
    snakemake(python, study, "--snakefile", str(ROOT / "Snakefile"), "--dry-run", "ingest")


def test_jobs_of_another_interpreter_find_the_package(python, study, tmp_path):
    """As with `--sdm conda`, the script that Snakemake wrote is started by another interpreter.

    The test needs no conda channel: it keeps the script, removes its result, and starts it with an
    interpreter that has neither the package nor a PYTHONPATH.
    """
    target = "results/cohorts/north/raw.json"
    words = ["--snakefile", str(ROOT / "Snakefile"), "--skip-script-cleanup", target]
    snakemake(python, study, *words)
    (script,) = (study / ".snakemake/scripts").glob("*ingest_cohort.py")
    before = (study / target).read_bytes()
    (study / target).unlink()
    other = make_python(tmp_path / "other")
    call(other, str(script), cwd=study)
    assert (study / target).read_bytes() == before


def test_missing_libraries_are_named_in_one_sentence(study, tmp_path):
    """As the Snakemake catalogue's collector starts it, and who has Snakemake from elsewhere."""
    python = make_python(tmp_path / "python")
    (site,) = (tmp_path / "python").glob("lib/python*/site-packages")
    (site / "libraries.pth").unlink()
    left_out = {"numba", "popdesic", "__pycache__"}
    for folder in package_folders():
        for found in Path(folder).glob("*") if folder.endswith("-packages") else ():
            link = site / found.name
            if found.suffix != ".pth" and found.name not in left_out and not link.exists():
                link.symlink_to(found)
    words = ["--snakefile", str(ROOT / "Snakefile"), "--dry-run"]
    output = snakemake(python, study, *words, fails=True)
    assert "cannot find numba: Snakemake must run where Popdesic is installed" in output
    assert "Traceback" not in output


@pytest.mark.skipif(shutil.which("git") is None, reason="a tag needs git")
def test_by_tag_a_missing_package_is_named(python, study, tmp_path):
    """Rules of a tag run the installed package; one sentence if there is none."""
    repository = tmp_path / "repository"
    for name in ("workflow/Snakefile", "src/popdesic/core/version.py"):
        (repository / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, repository / name)
    words = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(repository)]
    for step in ("init -q", "add -A", "commit -q -m all", "tag v1"):
        subprocess.run([*words, *step.split()], check=True)
    source = f"git+file://{repository}/workflow/Snakefile@v1"
    module = MODULE.format(config="config", uses="").replace(str(ROOT / "Snakefile"), source)
    (study / "Snakefile").write_text('configfile: "config/config.yaml"\n' + module)
    said = snakemake(python, study, "--dry-run", fails=True)
    assert f"`pip install popdesic=={popdesic.__version__}`" in said
    assert "Traceback" not in said


def test_the_catalogue_s_snakefile_is_the_one_above_it(tmp_path):
    """In the folder `.test`, as the catalogue's action runs it: links to files of the example.

    Linked folders would be packed in an sdist in place of those that they lead to.
    """
    for folder in ("config", "resources"):
        for path in (ROOT / ".test" / folder).rglob("*.*"):
            assert path.resolve() == ROOT / path.relative_to(ROOT / ".test")
        shutil.copytree(ROOT / ".test" / folder, tmp_path / folder)
    jobs = planned(run_snakemake(tmp_path, "--snakefile", str(ROOT / "workflow/Snakefile"), "-n"))
    assert jobs["write_report"] == 1 and sum(jobs.values()) > 20
