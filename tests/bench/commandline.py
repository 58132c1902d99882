"""What the command lines of all benchmarks share; imported before anything of Popdesic.

`python tests/bench/X.py` runs from a clone as it stands: this module puts the clone's own package
and the tests' modules on the path, of the processes that a benchmark starts too. Every benchmark
has `--quick`: a size of seconds that goes the same way and prints the same table, so that a test
can run it (tests/docs). Figures of a quick run say nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
#: Where modules are: the package, and what the tests share.
FOLDERS = [str(ROOT / "src"), str(ROOT / "tests")]

sys.path[1:1] = FOLDERS  # behind the benchmarks' own folder
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*FOLDERS, *filter(None, [os.environ.get("PYTHONPATH")])]
)


def in_one_sentence(kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """What a user can cause ends a benchmark with a sentence; anything else with a traceback."""
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
    """A parser whose help is the benchmark's docstring."""
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def parse(
    parser: argparse.ArgumentParser, *, gpu: bool = False, **quick: object
) -> argparse.Namespace:
    """Options of a benchmark; `--quick` makes these the defaults of options not given.

    `gpu`: ends with one sentence where no GPU can be used.
    """
    parser.add_argument("--quick", action="store_true", help="a size of seconds, for no figure")
    options = parser.parse_args()
    assert quick.keys() <= vars(options).keys(), "a quick value of no option"
    if gpu:
        require_gpu()
    if options.quick:
        parser.set_defaults(**quick)
        options = parser.parse_args()
        print("--quick: small sizes, to see that this runs; quote no figure of it.")
    return options


def require_gpu() -> None:
    """End with one sentence where CuPy finds no GPU."""
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as reason:
        raise SystemExit(f"Error: no NVIDIA GPU can be used here ({reason}).") from None


def find_peer(program: str, package: str | None = None) -> str | None:
    """Path of a program to compare with; None, and one sentence, where it is not installed."""
    found = shutil.which(program)
    if not found:
        print(
            f"{program} is left out: it is not installed (apt-get install {package or program}).",
            flush=True,
        )
    return found
