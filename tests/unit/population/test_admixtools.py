"""ADMIXTOOLS 2 reads our blocks of f2, and finds our f3 and f4 in them.

Needs R with the package admixtools. Where that is not installed, its functions are run from its
source tree, named by POPDESIC_ADMIXTOOLS, with the packages that it imports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from popdesic.population.f_statistics import f2_blocks, f3_screen, f4_tests
from popdesic.population.r_files import write_rds_array

SCRIPT = Path(__file__).parents[2] / "oracles/admixtools.R"
#: Exit status without the package or its source.
NO_PACKAGE = 3


def run_admixtools(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """f3 and f4 that ADMIXTOOLS 2 finds in {folder}/f2.rds."""
    if not shutil.which("Rscript"):
        pytest.skip("R is not installed")
    source = [os.environ["POPDESIC_ADMIXTOOLS"]] if "POPDESIC_ADMIXTOOLS" in os.environ else []
    files = [str(folder / name) for name in ("f2.rds", "f3.tsv", "f4.tsv")]
    done = subprocess.run(["Rscript", str(SCRIPT), *files, *source], capture_output=True, text=True)
    if done.returncode == NO_PACKAGE:
        pytest.skip("the R package admixtools is not installed")
    assert done.returncode == 0, done.stderr
    return pd.read_csv(files[1], sep="\t"), pd.read_csv(files[2], sep="\t")


def test_f3_and_f4_of_our_blocks(tmp_path, make_counts):
    rng = np.random.default_rng(3)
    root = rng.uniform(0.1, 0.9, 600)
    tips = [np.clip(root + rng.normal(0, 0.1, 600), 0, 1) for _ in range(5)]
    genotypes = np.concatenate([rng.binomial(2, np.tile(p[:, None], 6)) for p in tips], axis=1)
    names = list("abcde")
    counts = make_counts(genotypes.astype(np.int8), np.repeat(names, 6))
    starts = np.array([0, 40, 100, 133, 200, 280, 300, 350, 420, 500, 560, 600])
    blocks, sizes = f2_blocks(counts, starts)
    write_rds_array(tmp_path / "f2.rds", blocks, [names, names, [f"l{k}" for k in sizes]])
    their_f3, their_f4 = run_admixtools(tmp_path)
    ours = f3_screen(counts, starts).set_index(["target", "source1", "source2"])
    assert len(their_f3) == len(ours) == 30
    for row in their_f3.itertuples():
        own = ours.loc[(row.pop1, *sorted([row.pop2, row.pop3]))]
        assert row.est == pytest.approx(own.f3, abs=1e-12)
        assert row.se == pytest.approx(own.error, rel=1e-9)
    tests = [[row.pop1, row.pop2, row.pop3, row.pop4] for row in their_f4.itertuples()]
    own_f4 = f4_tests(counts, starts, tests)
    assert len(tests) >= 15
    np.testing.assert_allclose(their_f4.est, own_f4.f4, atol=1e-12)
    np.testing.assert_allclose(their_f4.se, own_f4.error, rtol=1e-9)
