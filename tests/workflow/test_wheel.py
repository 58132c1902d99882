"""A wheel in its own environment: every command works in an empty folder.

The environment has the third-party packages of the tests' interpreter but nothing of this
repository, so a file missing from the wheel makes a test fail.
"""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from support.clone import (
    ROOT,
    copy_compiled,
    copy_repository,
    package_folders,
    stranger_environment,
)
from support.running import PATIENCE, path_without
from support.study import FAST, make_cohorts, write_study

#: Folders and files of the repository that the wheel contains as popdesic/share.
SHARED = ("Snakefile", "workflow", "kernels", "envs", "slurm", "profiles")
SHARED += ("config/README.md", "docs/glossary.md")
SHARED += (
    "resources/par.tsv",
    "resources/long_range_ld.tsv",
    "resources/assemblies.tsv",
    "resources/species.tsv",
)
#: The smallest study with every kind of result that the commands need.
CONFIG = FAST | {
    "geodesic": {"alpha": [2], "space": ["genotypes"], "explain": True},
    "embedding": {"ensemble": 0},
    "close_kinship": 0,
    "compare": {"analyses": []},
}


def build(clone: Path, out: Path, kind: str = "wheel") -> Path:
    """The wheel (or the sdist) of a clone, built without a package index."""
    code = f"import hatchling.build as build; print(build.build_{kind}({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


def install(wheel: Path, folder: Path) -> None:
    """An environment with the wheel, and links to the tests' packages instead of dependencies."""
    has_pip = importlib.util.find_spec("ensurepip") is not None
    if not has_pip and shutil.which("uv") is None:
        pytest.skip("neither pip nor uv can be had here; apt-get install python3-venv")
    venv.EnvBuilder(symlinks=True, with_pip=has_pip).create(folder)
    python = folder / "bin/python"
    words = [str(python), "-m", "pip"] if has_pip else ["uv", "pip"]
    words += ["install", "--no-deps", "--no-index", "--quiet", str(wheel)]
    words += [] if has_pip else ["--python", str(python)]
    subprocess.run(words, check=True, env=stranger_environment())
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # A folder's own .pth files, such as that of an editable Popdesic, are not read.
    others = package_folders()
    packages = folder / "lib" / version / "site-packages"
    (packages / "others.pth").write_text("\n".join(others) + "\n")
    copy_compiled(packages / "popdesic")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with `wheel/`, `env/` and `work/`, which is empty apart from genotype files."""
    place = tmp_path_factory.mktemp("wheel").resolve()
    clone = copy_repository(place / "clone")
    (place / "wheel").mkdir()
    install(build(clone, place / "wheel"), place / "env")
    build(clone, place, "sdist")
    shutil.rmtree(clone)
    work = write_study(place / "work", make_cohorts((13, 11), n_sites=200, missing=0.02))
    shutil.rmtree(work / "config")
    return place


def popdesic(place: Path, command: str, *, status: int = 0, **variables: str) -> str:
    """Run a command of the wheel in the empty folder; return its output."""
    done = subprocess.run(
        [str(place / "env/bin/popdesic"), *command.split()],
        cwd=place / "work",
        env=stranger_environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    print(f"$ popdesic {command}\n{done.stdout}")
    assert done.returncode == status, done.stdout[-3000:]
    assert "Traceback" not in done.stdout
    return done.stdout


def python(place: Path, code: str) -> str:
    """Run code with the wheel's Python in the empty folder; return its output."""
    done = subprocess.run(
        [str(place / "env/bin/python"), "-c", code],
        cwd=place / "work",
        env=stranger_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def study(place) -> Path:
    """A study made by `popdesic init`, with the configuration of a small run."""
    said = popdesic(place, "init my-study data/north.vcf data/south.vcf.gz")
    assert "Next: popdesic check my-study, then popdesic run my-study" in said
    keys = Path(re.search(r"all keys: (.*)", said)[1])
    assert keys.is_file() and keys.is_relative_to(place / "env")
    folder = place / "work/my-study"
    assert "24 samples in 2 cohorts: no problem found." in popdesic(place, "check my-study")
    # what a user does next: make a founder a newcomer, fill in populations
    sheet = folder / "config/cohorts.tsv"
    sheet.write_text(sheet.read_text().replace("south.vcf.gz\tyes", "south.vcf.gz\tno"))
    sheet = folder / "config/samples.tsv"
    sheet.write_text(re.sub(r"^(\w)(\w+\t\w+)\tNA", r"\1\2\t\1", sheet.read_text(), flags=re.M))
    (folder / "config/config.yaml").write_text(yaml.safe_dump(CONFIG))
    return folder


@pytest.fixture(scope="module")
def ran(place, study) -> str:
    """The output of a complete run."""
    return popdesic(place, "run my-study --cores 2")


def listed(*names: str) -> set[str]:
    """Files of the repository below these names that git tracks or does not ignore."""
    words = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run([*words, *names], capture_output=True, text=True, check=True).stdout
    return {name for name in found.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_holds_the_whole_workflow_and_nothing_else(place):
    if not (ROOT / ".git").exists():
        pytest.skip("the list of files needs git")
    (wheel,) = (place / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if ".dist-info/" not in name}
        metadata = next(name for name in file.namelist() if name.endswith("/METADATA"))
        about = file.read(metadata).decode()
    share = {f"popdesic/share/{name}" for name in listed(*SHARED)}
    package = {name.removeprefix("src/") for name in listed("src/popdesic")}
    assert inside == share | package
    for kind in ("kernels/*.cu", "schemas/*.yaml", "report/*.j2", "rules/*.smk", "scripts/*.py"):
        folder, end = kind.split("/*")
        assert any(f"/{folder}/" in name and name.endswith(end) for name in share), kind
    for extra in ("cuda12", "cuda13"):
        assert re.search(rf"cupy-{extra}x.*extra == .{extra}.", about)


def test_the_wheel_of_the_sdist_is_the_same(place):
    """A package index and a conda recipe build from the sdist, without git."""
    (sdist,) = place.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        file.extractall(place / "sdist", filter="data")
    (unpacked,) = (place / "sdist").iterdir()
    again = build(unpacked, place / "sdist")
    assert again.read_bytes() == (place / "wheel" / again.name).read_bytes()


def test_it_prints_its_version_and_starts_fast(place):
    import popdesic as here

    assert popdesic(place, "--version") == f"popdesic {here.__version__}\n"
    times = []  # in CPU seconds: other programs may keep it waiting
    for _ in range(5):
        started = cpu_seconds_of_children()
        popdesic(place, "--version")
        times.append(cpu_seconds_of_children() - started)
    assert min(times) < 0.3


def cpu_seconds_of_children() -> float:
    """CPU seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_python_imports_the_wheel_s_package(place):
    code = (
        "import popdesic, popdesic.core.places as places; print(popdesic.__file__, places.HOME, "
        "places.KERNEL_FOLDER.is_dir(), popdesic.kinship([[0, 1], [1, 1]], device='cpu')[0, 1])"
    )
    file, home, kernels, value = python(place, code).split()
    assert Path(file).is_relative_to(place / "env") and Path(home).is_relative_to(place / "env")
    assert (kernels, float(value)) == ("True", 0.25)


def test_plan(place, study):
    said = popdesic(place, "plan my-study")
    assert "24 samples in 2 cohorts" in said
    assert re.search(r"jobs: \d+ to run", said)


def test_a_dry_run_finds_the_profile_of_the_wheel(place, study):
    said = popdesic(place, "run my-study distance --profile slurm --dry-run")
    assert re.search(r"measure_row +2", said)
    assert str(place / "env") in said  # the profile that was used


def test_run_to_the_report(place, study, ran):
    page = study / "results/report/report.html"
    assert page.stat().st_size > 1e5
    assert not (place / "work/results").exists()
    assert (study / "results/distance/squared.npy").is_file()


def test_report_prints_its_path(place, study, ran):
    page = study / "results/report/report.html"
    page.unlink()
    said = popdesic(place, "report my-study -- --cores 2")
    assert said.splitlines()[-1] == "my-study/results/report/report.html"
    assert page.is_file()
    assert not re.search(r"measure_row +\d", said)  # only what was missing


def test_path(place, ran):
    said = popdesic(place, "path N00 S03 my-study").split()
    assert (said[0], said[-1]) == ("N00", "S03")


def test_audit(place, study, ran):
    assert re.search(
        r"^\d+ results match their checksums\.$", popdesic(place, "audit my-study"), re.M
    )
    damaged = study / "results/distance/called.npy"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    said = popdesic(place, "audit my-study", status=1)
    assert "results/distance/called.npy: its content does not match its checksum" in said
    content[-1] ^= 1
    damaged.write_bytes(content)


def test_resume_refuses_where_there_is_no_slurm(place, study, ran):
    log = study / ".snakemake/log/0.snakemake.log"
    log.write_text("SLURM run ID: 1b9d6bcd\n")
    path = path_without(place / "bin", "squeue", "scancel")
    said = popdesic(place, "resume my-study", status=1, PATH=path)
    log.unlink()
    assert said == (
        "Error: my-study was run on Slurm, but squeue is not on PATH; resume on a login node.\n"
    )


@pytest.mark.slow
def test_tune_compiles_the_kernels_of_the_cpu_and_says_why_no_gpu_is_used(place):
    """What is not compiled yet is, beside the wheel's modules; the rest is known not to be."""

    def compiled() -> set[str]:
        return {path.name for path in (place / "env").rglob("number_text_cpu.*.nbc")}

    for path in (place / "env").rglob("number_text_cpu.*.nb?"):
        path.unlink()
    assert not compiled()
    own = {"XDG_CACHE_HOME": str(place / "cache")}  # studies of the repository read the user's
    said = popdesic(place, "tune", CUDA_VISIBLE_DEVICES="", **own)
    assert compiled()
    assert re.search(r"^CPU, scans of cases: \d+\.\d CPU-s$", said, re.M)
    assert re.search(r"^No GPU can be used here", said, re.M)


@pytest.fixture(scope="module")
def hosted(place) -> dict[str, str]:
    """Variables with which git takes github.com/OWNER/popdesic, with a tag, from this disk."""
    import popdesic as here

    if shutil.which("git") is None:
        pytest.skip("a tag needs git")
    clone = copy_repository(place / "hub/OWNER/popdesic")
    words = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(clone)]
    for step in ("init -q", "add -A", "commit -q -m all", f"tag v{here.__version__}"):
        subprocess.run([*words, *step.split()], check=True)
    (clone / "src/popdesic/core/version.py").write_text('__version__ = "9.9.9"\n')
    for step in ("commit -q -a -m later", "tag v9.9.9"):
        subprocess.run([*words, *step.split()], check=True)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{place}/hub/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        "XDG_CACHE_HOME": str(place / "cache"),
    }


def snakemake(place: Path, folder: Path, words: str, variables: dict[str, str]) -> str:
    """Run the Snakemake of the wheel's environment in a folder; return its output."""
    return subprocess.run(
        [str(place / "env/bin/python"), "-m", "snakemake", "--cores", "2", *words.split()],
        cwd=folder,
        env=stranger_environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    ).stdout


def shown_module() -> str:
    """The Snakefile that docs/installation.md shows, with this version's tag."""
    import popdesic as here

    page = (ROOT / "docs/installation.md").read_text("utf-8")
    (block,) = re.findall(r"^```snakemake\n(.*?)^```", page, re.M | re.S)
    return block.replace("VERSION", here.__version__)


def test_a_module_by_tag_runs_the_installed_package(place, hosted):
    """With GitHub's address led to this disk; the rest is as in a user's study."""
    folder = write_study(place / "work/by-tag", make_cohorts((7, 6), n_sites=150), FAST)
    (folder / "workflow").mkdir()
    (folder / "workflow/Snakefile").write_text(shown_module())
    decoded = "results/cohorts/north/raw.json"
    said = snakemake(place, folder, decoded, hosted)
    assert (folder / decoded).is_file(), said
    said = snakemake(place, folder, "--dry-run", hosted)
    assert re.search(r"^write_report +1$", said, re.M), said  # `all` without naming it
    assert re.search(r"^ingest_cohort +1$", said, re.M)


def test_a_tag_of_another_version_is_refused(place, hosted):
    import popdesic as here

    folder = write_study(place / "work/other-tag", make_cohorts((7, 6), n_sites=150), FAST)
    other = shown_module().replace(f"v{here.__version__}", "v9.9.9")
    (folder / "Snakefile").write_text(other)
    said = snakemake(place, folder, "--dry-run", hosted)
    assert f"The tag is of Popdesic 9.9.9, but {here.__version__} is installed" in said


@pytest.mark.skipif(shutil.which("snakedeploy") is None, reason="snakedeploy is not installed")
def test_snakedeploy_writes_such_a_module(place, hosted):
    import popdesic as here

    source = "https://github.com/OWNER/popdesic"
    tag = f"v{here.__version__}"
    words = ["snakedeploy", "deploy-workflow", source, str(place / "deployed"), "--tag", tag]
    subprocess.run(words, check=True, env=stranger_environment() | hosted)
    written = (place / "deployed/workflow/Snakefile").read_text()
    assert "".join(shown_module().split()) in re.sub(r"#.*|\s", "", written)
    assert (place / "deployed/config/cohorts.tsv").is_file()


def test_the_environment_sees_nothing_of_this_repository(place):
    code = "import sys; print(*sys.path, sep='\\n')"
    said = python(place, code)
    paths = [Path(line) for line in said.split("\n") if line]
    assert not [path for path in paths if path.is_relative_to(ROOT / "src") or path == ROOT]
    assert os.fspath(ROOT / "tests") not in said
