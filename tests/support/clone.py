"""A copy of the repository as a new user has it after set-up, to run the documented commands in.

It has its own `.venv` with the packages of the tests' interpreter, the copy's package as
`pip install --editable .` would install it, and all console scripts. Commands therefore run as
written, without activating anything and without PYTHONPATH.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What a copy without git leaves out.
LEFT_OUT = (".git", ".venv", "results", "logs", "benchmarks", ".snakemake", "shared", ".*_cache")
#: Variables set by the test run, which a user's shell does not have.
DROPPED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "POPDESIC_SHARED", "MFLAGS")
DROPPED_STARTS = ("PYTEST_", "MAKE", "POPDESIC_")
SCRIPT = """\
#!{python}
import sys
from {module} import {name}
sys.exit({attribute}())
"""


def copy_repository(target: Path) -> Path:
    """Copy the working tree (what git knows, or does not ignore), dates kept; return `target`.

    The kernels that Numba keeps beside the modules are copied too: their key is the module's date.
    """
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, text=True, check=False)
    if listed.returncode or not listed.stdout:
        ignore = shutil.ignore_patterns(*LEFT_OUT)
        return Path(shutil.copytree(ROOT, target, symlinks=True, ignore=ignore))
    names = {Path(name) for name in listed.stdout.split("\0") if name}
    names |= {path.relative_to(ROOT) for path in (ROOT / "src").rglob("__pycache__/*")}
    for name in sorted(names):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target


def copy_compiled(package: Path) -> None:
    """Give an installed package the kernels that Numba keeps here, where its modules are the same.

    Their key is the module's date and size, so equal modules get the dates of these.
    """
    for folder in (ROOT / "src/popdesic").rglob("__pycache__"):
        there = package / folder.parent.relative_to(ROOT / "src/popdesic")
        for kept in [*folder.glob("*.nbi"), *folder.glob("*.nbc")]:
            module = f"{kept.name.split('.')[0]}.py"
            own, other = folder.parent / module, there / module
            if other.is_file() and other.read_bytes() == own.read_bytes():
                os.utime(other, ns=(own.stat().st_atime_ns, own.stat().st_mtime_ns))
                (there / "__pycache__").mkdir(exist_ok=True)
                shutil.copy2(kept, there / "__pycache__" / kept.name)


def package_folders() -> list[str]:
    """Where this interpreter finds packages, without the standard library and this repository."""
    paths = sysconfig.get_paths()
    standard = {Path(paths[key]).resolve() for key in ("stdlib", "platstdlib")}
    standard |= {folder / "lib-dynload" for folder in standard}
    own = [ROOT / name for name in ("src", "tests", "workflow", "docs")]
    folders = []
    for entry in sys.path:
        folder = Path(entry or ".").resolve()
        ours = folder == ROOT or any(folder.is_relative_to(part) for part in own)
        if folder.is_dir() and folder not in standard and not ours:
            folders.append(str(folder))
    return list(dict.fromkeys(folders))


def make_environment(clone: Path) -> None:
    """Make the copy's `.venv`."""
    folder = clone / ".venv"
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    python, scripts = folder / "bin/python", folder / "bin"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lines = [str(clone / "src"), *package_folders()]
    # addsitedir also reads the .pth files of a folder, for example of an editable install
    lines += [f"import site; site.addsitedir({path!r})" for path in lines[1:]]
    (folder / "lib" / version / "site-packages/clone.pth").write_text("\n".join(lines) + "\n")
    entries = {e.name: e.value for e in importlib.metadata.entry_points(group="console_scripts")}
    entries |= tomllib.loads((clone / "pyproject.toml").read_text())["project"]["scripts"]
    for name, value in entries.items():
        module, _, attribute = value.partition(":")
        text = SCRIPT.format(
            python=python, module=module, name=attribute.split(".")[0], attribute=attribute
        )
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o755)
    # programs not written in Python, such as ruff
    if sys.prefix != sys.base_prefix:
        for program in Path(sys.prefix, "bin").iterdir():
            if not (scripts / program.name).exists() and program.is_file():
                with open(program, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        (scripts / program.name).symlink_to(program)
    for goal in ("run", "test"):  # what envs/setup.sh leaves behind
        (folder / f"ready-{goal}").touch()


def make_clone(folder: Path) -> Path:
    """Make a set-up copy in `folder`/popdesic, with a link to the real data if they exist."""
    clone = copy_repository(folder / "popdesic")
    make_environment(clone)
    shared = Path(os.environ.get("POPDESIC_SHARED", ROOT.parent / "shared")).resolve()
    if (shared / "data").is_dir():
        (folder / "shared").symlink_to(shared)
    planned = run(clone, "make -n run test")
    assert "setup.sh" not in planned, "make would set the copy up again; touch what it waits for"
    return clone


def stranger_environment() -> dict[str, str]:
    """This process's environment without the variables of the test run."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in DROPPED and not key.startswith(DROPPED_STARTS)
    }
    own = {str(Path(sys.prefix, "bin")), str(ROOT / ".venv/bin")}
    if sys.prefix != sys.base_prefix:
        parts = [part for part in kept.get("PATH", "").split(os.pathsep) if part not in own]
        kept["PATH"] = os.pathsep.join(parts)
    return kept


def run(clone: Path, command: str, *, seconds: int = 600, status: int = 0, **variables: str) -> str:
    """Run a line of shell in the copy's folder; return its output, fail on another exit status."""
    done = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=clone,
        env=stranger_environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    print(f"$ {command}\n{done.stdout}")
    assert done.returncode == status, f"{command}\n{done.stdout[-3000:]}"
    assert "Traceback (most recent call last)" not in done.stdout, command
    return done.stdout
