"""Fixtures and markers shared by all tests."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.register_assert_rewrite("oracles.epistasis")
ROOT = Path(__file__).resolve().parents[1]
#: Folders with the longest files. They are run first, so that no worker waits for another's last.
LONGEST_FIRST = ("docs", "slurm", "fuzz", "workflow", "golden", "scenes", "simt")


def _test_seed() -> str:
    """POPDESIC_TEST_SEED, or the commit: every commit draws anew, and a failure repeats.

    Without git each run draws anew. Workers get the seed of the process that starts them.
    """
    if given := os.environ.get("POPDESIC_TEST_SEED"):
        return given
    command = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    try:
        drawn = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        drawn = os.environ["POPDESIC_TEST_SEED"] = os.urandom(8).hex()
    return drawn


TEST_SEED = _test_seed()


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{TEST_SEED} {name}".encode()).digest()[:8], "big")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "hypothesis_seed", "") is None:
        config.option.hypothesis_seed = str(_number("hypothesis"))


def pytest_report_header() -> str:
    return f"POPDESIC_TEST_SEED={TEST_SEED} draws these inputs again"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu", action="store_true", help="fail instead of skip where no GPU is usable"
    )
    parser.addoption(
        "--require-slurm", action="store_true", help="start a real Slurm and run its tests"
    )
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes as well")
    parser.addoption(
        "--fuzz-seconds",
        type=float,
        default=float(os.environ.get("POPDESIC_FUZZ_SECONDS", 10)),
        help="seconds of fuzzing a reader (tests/fuzz); default: POPDESIC_FUZZ_SECONDS or 10",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: --slow"))
    folders = [ROOT / "tests" / name for name in LONGEST_FIRST]
    items.sort(key=lambda item: [not item.path.is_relative_to(folder) for folder in folders])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """No test changes where Python looks for modules, in this process or in those it starts.

    The Snakefile sets both for its own process and its jobs; some tests run it in theirs.
    """
    names, folders = ("PYTHONSAFEPATH", "PYTHONPATH"), list(sys.path)
    before = {name: os.environ.get(name) for name in names}
    done = yield
    sys.path[:] = folders
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return done


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Inputs of this test at this commit: the same in any order and on any machine."""
    return np.random.default_rng(_number(request.node.nodeid))


@pytest.fixture(scope="module")
def browser():
    from support.browser import Browser

    with Browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real genotype data; the test is skipped where it is absent."""
    data = Path(os.environ.get("POPDESIC_SHARED", ROOT.parent / "shared")) / "data"
    if not data.is_dir():
        pytest.skip(f"The real data are not at {data}; set POPDESIC_SHARED to their folder.")
    return data
