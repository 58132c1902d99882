"""Runs of fastmixture (Santander, Refoyo-Martinez and Meisner 2024), an optional program.

It fits the model of ADMIXTURE by mini-batch EM: the chance of an ALT allele of person i at site s
is sum over k of q_ik p_sk. It always runs with one thread: its sums of floats, and so its last
digits, depend on the number of threads. Several runs at a time share the CPUs instead.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.processes import end_with_parent
from ..io.genotypes import BED_MAGIC, pack_bed

#: Sites of a mini-batch, and the program's own number of batches.
BATCH, MOST_BATCHES = 2500, 32
#: Where fits of the cross-validation stop: gain of the log-likelihood a genotype, iterations. Too
#: many components converge slowly, to what predicts hidden genotypes worse and worse.
QUICK = ["--tole", "1e-6", "--iter", "200"]


class Fit(NamedTuple):
    """A fitted model.

    Attributes
    ----------
    proportions : float64 array, (n, k)
        Rows sum to 1, but for rounding to six digits.
    frequencies : float64 array, (n_sites, k)
        ALT frequency of each component.
    log_likelihood : float
    converged : bool
    """

    proportions: np.ndarray
    frequencies: np.ndarray
    log_likelihood: float
    converged: bool


def why_missing() -> str:
    """Empty if fastmixture is installed, otherwise a sentence."""
    if importlib.util.find_spec("fastmixture") is not None:
        return ""
    return (
        "fastmixture is not installed, so there are no ancestry proportions; install it with "
        "`pip install fastmixture` (which needs a C compiler)"
    )


def fit(genotypes: np.ndarray, k: int, seed: int, *, quick: bool = False) -> Fit:
    """Fit a model of `k` components.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n)
        0, 1, 2; -1 where missing. Every site must vary, and everyone have a genotype.
    k : int
        At least 2.
    quick : bool
        Stop early (`QUICK`).

    Raises
    ------
    RuntimeError
        fastmixture failed.
    """
    with tempfile.TemporaryDirectory(prefix="fastmixture-") as folder:
        stem, log = _run(Path(folder), genotypes, k, seed, *(QUICK if quick else ()))
        words = re.search(r"Final log-likelihood: (\S+)", log)
        if words is None:
            raise RuntimeError("fastmixture wrote no log-likelihood; its version is unknown to us.")
        proportions, frequencies = (
            np.loadtxt(f"{stem}.{end}", ndmin=2, dtype=np.float64) for end in "QP"
        )
    return Fit(proportions, frequencies, float(words[1]), "Converged in" in log)


def _run(folder: Path, genotypes: np.ndarray, k: int, seed: int, *options: str) -> tuple[str, str]:
    """Run the program; stem of what it wrote, and its log."""
    n_sites, n = genotypes.shape
    prefix = folder / "genotypes"
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    # It only counts the lines of .fam, and of .bim that there is one.
    prefix.with_suffix(".fam").write_text("".join(f"0 {i} 0 0 0 -9\n" for i in range(n)))
    prefix.with_suffix(".bim").write_text("".join(f"1 {s} 0 {s} A C\n" for s in range(n_sites)))
    batches = int(np.clip(n_sites // BATCH, 2, MOST_BATCHES))
    command = [sys.executable, "-P", "-m", "fastmixture.main"]
    command += ["--bfile", str(prefix), "--K", str(k)]
    command += ["--seed", str(seed), "--threads", "1", "--batches", str(batches)]
    command += ["--out", str(folder / "out"), *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, preexec_fn=end_with_parent
    )
    stem = f"{folder / 'out'}.K{k}.s{seed}"
    if done.returncode != 0 or not Path(f"{stem}.Q").is_file():
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(
            f"fastmixture stopped with {done.returncode}: {lines[-1] if lines else 'no message'}"
        )
    return stem, Path(f"{stem}.log").read_text("utf-8")
