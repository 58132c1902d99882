"""Programs that `bench_peers.py` compares with: are they here, and do results agree?"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from scipy.linalg.blas import ssyrk
from threadpoolctl import threadpool_info

#: Where the sources of programs lie that no package has.
SOURCES = {
    "BitEpi": "github.com/aehrc/BitEpi",
    "MPI3SNP": "github.com/UDC-GAC/mpi3snp",
    "fiuncho": "github.com/UDC-GAC/fiuncho",
}


def program_version(program: str, *flags: str) -> str:
    """The version that a program states (1.0, v2); a LookupError if it is not there."""
    if not shutil.which(program):
        source = SOURCES.get(program)
        where = f"not on the PATH; source: {source}" if source else f"apt-get install {program}"
        raise LookupError(where)
    if not flags:
        return "states none"
    done = subprocess.run([program, *flags], capture_output=True, text=True, check=True)
    words = (done.stdout or done.stderr).split()
    return next(word for word in words if word.lstrip("v")[:1].isdigit())


def blas_version() -> str:
    """Version of the OpenBLAS that SciPy calls."""
    ssyrk(1.0, np.eye(2, dtype=np.float32))
    found = [one for one in threadpool_info() if "scipy.libs" in one.get("filepath", "")]
    versions = {f"{one['version']} {one.get('architecture', '')}".strip() for one in found}
    if not versions:
        raise LookupError("SciPy's BLAS does not say what it is")
    return ", ".join(sorted(versions))


def graph_tool_version(python: str) -> str:
    """Version of graph-tool in another Python; a LookupError if it has none."""
    code = "import graph_tool; print(graph_tool.__version__.split()[0])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        raise LookupError(f"there is no {python} (--graph-tool)") from None
    if done.returncode:
        raise LookupError(f"not in {python} (--graph-tool): apt-get install python3-graph-tool")
    return done.stdout.strip()


def run(*command: object) -> None:
    """Run a program in the folder of its last argument, without its output."""
    folder = Path(str(command[-1])).parent
    subprocess.run([str(word) for word in command], check=True, capture_output=True, cwd=folder)


def equal(mine: np.ndarray, theirs: np.ndarray) -> str:
    """Whether two arrays hold the same numbers; the largest difference otherwise."""
    if np.array_equal(mine, theirs, equal_nan=True):
        return "equal"
    if mine.shape != theirs.shape or (np.isnan(mine) != np.isnan(theirs)).any():
        return "DIFFERENT"
    return f"differ by ≤ {np.nanmax(np.abs(mine - theirs)):.0e}"


def same_axes(mine: np.ndarray, theirs: np.ndarray) -> str:
    """The smallest correlation of components, one by one."""
    r = np.abs((mine * theirs).sum(axis=0)) / np.linalg.norm(mine, axis=0)
    r /= np.linalg.norm(theirs, axis=0)
    return f"smallest \\|r\\| 1 − {1 - r.min():.0e}"


def same_hits(mine: set[frozenset[int]], theirs: set[frozenset[int]]) -> str:
    """How many of the best combinations are the same."""
    shared = len(mine & theirs)
    return "equal" if shared == len(mine) == len(theirs) else f"{shared} of {len(mine)} the same"


# --------------------------------------------------------------------------- scans on a GPU

#: EPIClear and Tensor-Episdet read planes whose rows are whole numbers of so many samples.
PADDED_SAMPLES = 1024


def write_classes(folder: Path, classes: list[tuple[np.ndarray, int]]) -> Path:
    """Write planes as EPIClear and Tensor-Episdet read them; the file that names them.

    Of each site these are the two rarest genotypes, the rarest first, which K2 does not depend on.
    EPIClear brings planes to that order itself, but at commit 38c76b0 it loses genotypes of sites
    whose order, rarest first, is second, third, first or third, first, second.

    Parameters
    ----------
    folder : Path
        Where the files go.
    classes : list of (uint64 array (n_sites, 2, n_words), int)
        Planes of two genotypes of each site, and the number of samples: controls, then cases.
    """
    lines = [str(len(classes[0][0]))]
    counts = sum(np.bitwise_count(words).sum(axis=2, dtype=np.int64) for words, _ in classes)
    rest = sum(n_samples for _, n_samples in classes) - counts.sum(axis=1)
    orders = np.argsort(np.column_stack([counts, rest]), axis=1, kind="stable")[:, :2]
    for name, (words, n_samples) in zip(("controls", "cases"), classes, strict=True):
        n_words = -(-n_samples // PADDED_SAMPLES) * PADDED_SAMPLES // 64
        used = np.arange(64 * words.shape[2]) < n_samples
        samples = np.packbits(used, bitorder="little").view(np.uint64)
        with open(folder / f"{name}.bin", "wb") as file:
            for site, order in zip(words, orders, strict=True):
                planes = np.stack([*site, samples & ~(site[0] | site[1])])[order]
                np.pad(planes, ((0, 0), (0, n_words - site.shape[1]))).tofile(file)
        lines += [f"{name}.bin", str(n_samples)]
    described = folder / "planes.txt"
    described.write_text("\n".join(lines) + "\n")
    return described


def read_report(text: str) -> tuple[float, frozenset[int]] | None:
    """T combinations x samples a second, and the best combination, that both programs print."""
    rate = re.search(r"per sec\. \(scaled to sample size\): ([\d.]+) ", text)
    best = re.search(r"SCORE\s*->\s*\{([\d, ]+)\}", text)
    if not rate or not best:
        return None
    return float(rate[1]), frozenset(map(int, best[1].split(",")))


def place_among(best: list[frozenset[int]], theirs: frozenset[int]) -> str:
    """Where a peer's best combination stands among ours, best first."""
    if theirs == best[0]:
        return "the same"
    if theirs in best:
        return f"{sorted(theirs)}, our number {best.index(theirs) + 1}"
    return f"DIFFERENT: {sorted(theirs)}, not among our best {len(best)}"
