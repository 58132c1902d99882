"""Run both commands of the README on a machine with nothing installed: a minimal Debian root.

    python3 tests/bare_root.py                   both, as CI does first (needs root, git and apt)
    python3 tests/bare_root.py run               `make run` alone, as an ordinary user and as root
    python3 tests/bare_root.py wheel             a wheel, as an ordinary user, in an empty folder
    python3 tests/bare_root.py test --whole      all of `make test`
    python3 tests/bare_root.py --suite trixie    another Debian, which has another Python
    python3 tests/bare_root.py --python 3.12     a Python of this machine, copied into the root

The root holds only Debian's essential packages, python3, python3-venv, make and ca-certificates. A
clean clone of HEAD is put into a copy of it, and the commands run there in a chroot with /proc,
/dev and a home folder: once as a user who cannot install packages, once as root, who can. The
report must exist with all its sections and must say what was missing.

This file uses the standard library alone. The root is built by mmdebstrap from this machine's list
of package sources and kept in the user's cache folder (XDG_CACHE_HOME, popdesic-bare).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = "python3,python3-venv,make,ca-certificates"
#: Days after which the root is rebuilt.
KEPT_DAYS = 14
USER, HOME, CLONE = 1000, "home/user", "home/user/popdesic"
#: The tests that `make test` runs here in CI; --whole runs all of them.
SUBSET = (
    "tests/docs/test_docs.py tests/unit/communities tests/unit/cohort/test_impute.py "
    "tests/unit/export tests/workflow/test_workflow_errors.py "
    "tests/workflow/test_report_page.py tests/slurm/test_sandbox.py --require-slurm"
)
#: Words by which the report and the log say that graph-tool is missing.
NO_GRAPH_TOOL = "graph-tool was not found"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "what", nargs="?", choices=["run", "test", "wheel"], help="one of the commands, or pip"
    )
    parser.add_argument("--user", choices=["user", "root"], help="`make run` as one of them alone")
    parser.add_argument("--whole", action="store_true", help="all tests, not CI's subset")
    parser.add_argument("--suite", default=this_suite(), help="Debian's release (%(default)s)")
    parser.add_argument("--python", help="3.12, say: this Python of the machine, not Debian's")
    options = parser.parse_args()
    if os.getuid() != 0:
        print("bare root: left out, because only root may build one and enter it.")
        return 0
    base = cached_root(options.suite)
    rows = []
    if options.what == "wheel":
        with bare_root(base, options.python) as root:
            rows += install_wheel(root)
    elif options.what != "test" and options.user != "root":
        with bare_root(base, options.python) as root:
            rows += run_workflow(root, as_root=False)
    if options.user != "user" and options.what != "wheel":
        with bare_root(base, options.python) as root:
            if options.what != "test":
                rows += run_workflow(root, as_root=True)
            if options.what != "run":
                rows += run_tests(root, whole=options.whole)
    print(f"\nbare root: {options.suite}, Python {options.python or 'of Debian'}")
    for what, seconds in rows:
        print(f"{what:45} {seconds:6.0f} s")
    return 0


def run_workflow(root: Path, *, as_root: bool) -> list[tuple[str, float]]:
    """`make run`: set-up, then the run; the report is complete and says what was missing."""
    who = "root" if as_root else "a user who may install nothing"
    times = [timed(f"set-up as {who}", root, "make .venv/ready-run", as_root)]
    times.append(timed(f"make run as {who}", root, "make run", as_root))
    output = times[-1][2]
    report = (root / CLONE / "results/report/report.html").read_text("utf-8")
    templates = (REPOSITORY / "workflow/report").glob("*.j2")
    expected = {name for path in templates for name in sections(path.read_text("utf-8"))}
    expected -= {"changes"}  # since the last report, which a first run has not
    require(sections(report) == expected, f"sections {sections(report)}, expected {expected}")
    require("Traceback" not in output, "a traceback in the output")
    for place, text in (("the report", report), ("the output", output)):
        words = "tells of" if NO_GRAPH_TOOL in text else "does not tell of"
        require((words == "tells of") != as_root, f"{place} {words} a missing graph-tool")
    require("stochastic block model" in report or not as_root, "no block model in the report")
    communities = root / CLONE / "results/communities"
    table = (communities / "partition.tsv").read_text("utf-8").splitlines()
    shown = [line.split("\t")[1] for line in table]
    said = json.loads((communities / "communities.json").read_text("utf-8"))["communities"]
    require(max(map(int, shown[1:])) == said, f"{communities} does not agree with itself")
    return [(what, seconds) for what, seconds, _ in times]


def run_tests(root: Path, *, whole: bool) -> list[tuple[str, float]]:
    """`make test` as root, who may install what the tests need."""
    times = [timed("set-up of the tests as root", root, "make .venv/ready-test", True)]
    flags = "" if whole else f' PYTEST_FLAGS="{SUBSET}"'
    times.append(timed(f"make test{flags}", root, f"make test{flags}", True))
    require(re.search(r"\d+ passed", times[-1][2]) is not None, "no test has passed")
    return [(what, seconds) for what, seconds, _ in times]


def install_wheel(root: Path) -> list[tuple[str, float]]:
    """A wheel from the sdist, then a study in an empty folder, by a user who has no compiler."""
    require(not [*root.glob("usr/bin/*cc")], "the root has a compiler")
    data = f"/{CLONE}/resources/example/atlantic.vcf.gz /{CLONE}/resources/example/pacific.vcf.gz"
    steps = {
        "sdist, and the wheel from it": "python3 -m venv ~/made && ~/made/bin/pip install -q build "
        "&& ~/made/bin/python -m build --outdir ~/dist && rm -rf ~/made src",
        "pip install of the wheel": "python3 -m venv ~/popdesic-env "
        "&& ~/popdesic-env/bin/pip install -q ~/dist/*.whl",
        "popdesic tune": "~/popdesic-env/bin/popdesic tune",
        "popdesic init and run": "mkdir ~/empty && cd ~/empty "
        f"&& ~/popdesic-env/bin/popdesic init study {data} "
        "&& ~/popdesic-env/bin/popdesic run study",
    }
    times = [timed(what, root, command, False) for what, command in steps.items()]
    page = root / HOME / "empty/study/results/report/report.html"
    require(page.is_file(), f"{page} is not there")
    folder = root / HOME / "popdesic-env"
    size = subprocess.run(["du", "-sm", str(folder)], check=True, capture_output=True, text=True)
    print(f"\nbare root: {size.stdout.split()[0]} MB of packages")
    return [(what, seconds) for what, seconds, _ in times]


def sections(page: str) -> set[str]:
    # a template has a variable where there is a section for each phenotype: {{ epistasis.id }}
    return set(re.findall(r'<section id="(?:\{\{ )?([\w-]+)', page))


def require(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"bare root: {message}")


# --- the root -------------------------------------------------------------------------------------


def this_suite() -> str:
    """Name of this machine's Debian release."""
    release = Path("/etc/os-release").read_text("utf-8")
    found = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    return found.group(1) if found else "stable"


def cached_root(suite: str) -> Path:
    """Folder of a minimal root of this release, built if it is missing or too old."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "popdesic-bare"
    base = cache / suite
    if base.is_dir() and time.time() - base.stat().st_mtime < KEPT_DAYS * 86_400:
        return base
    if not shutil.which("mmdebstrap"):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "mmdebstrap"]
        subprocess.run(words, check=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    cache.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(base, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        sources = Path(folder) / "bare.sources"
        sources.write_text(package_sources(suite), "utf-8")
        started = time.monotonic()
        words = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}"]
        subprocess.run([*words, suite, f"{folder}/root", str(sources)], check=True)
        os.utime(f"{folder}/root")
        Path(folder, "root").rename(base)
        print(f"bare root: built {suite} in {time.monotonic() - started:.0f} s")
    return base


def package_sources(suite: str) -> str:
    """This machine's list of package sources in deb822 format, for a release."""
    for path in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        text = path.read_text("utf-8")
        if "debian" in path.name and re.search(r"^Suites:", text, re.MULTILINE):
            return text.replace(this_suite(), suite)
    sys.exit("bare root: /etc/apt/sources.list.d has no Debian sources in deb822 form (*.sources)")


@contextmanager
def bare_root(base: Path, python: str | None) -> Iterator[Path]:
    """A copy of the root with a user, a clean clone and this machine's network settings."""
    with tempfile.TemporaryDirectory(prefix="popdesic-bare-") as folder:
        root = Path(folder) / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
        with open(root / "etc/passwd", "a", encoding="utf-8") as file:
            file.write(f"user:x:{USER}:{USER}::/{HOME}:/bin/sh\n")
        with open(root / "etc/group", "a", encoding="utf-8") as file:
            file.write(f"user:x:{USER}:\n")
        for name in ("etc/resolv.conf", "etc/pip.conf"):
            if Path("/", name).is_file():
                shutil.copy(Path("/", name), root / name)
        shutil.rmtree(root / "etc/ssl/certs")  # the links in it lead to this machine's
        subprocess.run(["cp", "-rL", "/etc/ssl/certs", str(root / "etc/ssl/certs")], check=True)
        (root / HOME).mkdir(parents=True)
        clone = ["git", "clone", "--quiet", "--no-hardlinks", str(REPOSITORY), str(root / CLONE)]
        subprocess.run(clone, check=True)
        subprocess.run(["chown", "-R", f"{USER}:{USER}", str(root / HOME)], check=True)
        if python:
            copy_python(python, root)
        yield root


def copy_python(version: str, root: Path) -> None:
    """Copy a Python of this machine into the root, to the same path, first on PATH."""
    words = [f"python{version}", "-c", "import os, sys; print(os.path.realpath(sys.base_prefix))"]
    prefix = Path(subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip())
    require(prefix != Path("/usr"), f"python{version} is this system's own; choose a --suite")
    target = root / prefix.relative_to("/")
    target.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(prefix), str(target)], check=True)
    for folder in [*target.relative_to(root).parents][:-1]:
        (root / folder).chmod(0o755)
    (root / "usr/local/bin" / f"python{version}").symlink_to(prefix / "bin" / f"python{version}")


def timed(what: str, root: Path, command: str, as_root: bool) -> tuple[str, float, str]:
    """Run a command in the clone, showing its output; a failure ends the program."""
    print(f"\nbare root: {what}: {command}", flush=True)
    identity = ["0", "/root"] if as_root else [str(USER), f"/{HOME}"]
    inside = (
        'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" '
        'setpriv --reuid="$2" --regid="$2" --clear-groups env -i HOME="$3" '
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "
        f'sh -c "cd /{CLONE} && $4"'
    )
    private = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    started = time.monotonic()
    process = subprocess.Popen(
        [*private, "sh", "-c", inside, "sh", str(root), *identity, command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        print(line, end="", flush=True)
    seconds = time.monotonic() - started
    require(process.wait() == 0, f"{what} failed: {command}")
    return what, seconds, "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
