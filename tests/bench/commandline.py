"""Command line shared by all benchmarks; imported before anything of Popdesic.

`python tests/bench/X.py` runs from a clone without installation: this module puts the clone's
package and the tests' modules on the path, also for processes that a benchmark starts. Every
benchmark has `--quick`: a small size that takes seconds, runs the same code and prints the same
table, so that a test can run it (tests/docs). Figures of a quick run mean nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
#: Folders of modules: the package, and helpers of the tests.
FOLDERS = [str(ROOT / "src"), str(ROOT / "tests")]

sys.path[1:1] = FOLDERS  # after the folder of the benchmarks
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*FOLDERS, *filter(None, [os.environ.get("PYTHONPATH")])]
)


def in_one_sentence(kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """A user's error ends a benchmark with one sentence; any other error with a traceback."""
    if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
        print(
            "Error: this benchmark needs CuPy and an NVIDIA GPU: "
            "pip install --require-hashes -r requirements-gpu.txt.",
            file=sys.stderr,
        )
    elif kind.__name__ == "UserError":
        print(f"Error: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = in_one_sentence


def new_parser(text: str | None) -> argparse.ArgumentParser:
    """A parser with the benchmark's docstring as its help."""
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def parse(
    parser: argparse.ArgumentParser, *, gpu: bool = False, **quick: object
) -> argparse.Namespace:
    """Parse the options of a benchmark; `--quick` makes these the defaults of options not given.

    `gpu`: end with one sentence if no GPU can be used.
    """
    parser.add_argument("--quick", action="store_true", help="a size of seconds, for no figure")
    options = parser.parse_args()
    assert quick.keys() <= vars(options).keys(), "a quick value of no option"
    if gpu:
        require_gpu()
    if options.quick:
        parser.set_defaults(**quick)
        options = parser.parse_args()
        print("--quick: small sizes, to see that this runs; quote no figure of it.", flush=True)
    return options


def require_gpu() -> None:
    """End with one sentence if CuPy finds no GPU."""
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as reason:
        raise SystemExit(f"Error: no NVIDIA GPU can be used here ({reason}).") from None


def find_peer(program: str, package: str | None = None) -> str | None:
    """Path of a program to compare with; if it is not installed, print so and return None."""
    found = shutil.which(program)
    if not found:
        print(
            f"{program} is left out: it is not installed (apt-get install {package or program}).",
            flush=True,
        )
    return found
