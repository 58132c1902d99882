"""Beagle compared with the mode on real phased genotypes, some of which are hidden.

`tests/bench/bench_imputation.py` does the same on the whole set, which takes minutes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.shared, pytest.mark.peer]


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_beagle_makes_at_most_half_the_errors_of_the_mode(
    shared_data, tmp_path, require_command, share, monkeypatch
):
    require_command("beagle")
    # Undo what a benchmark changes on import when this test ends.
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "bench")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    from bench_imputation import evaluate, prepare

    paths = prepare(shared_data, tmp_path, min_maf=0.05, n_sites=300)
    table = evaluate(paths, tmp_path, share, threads=2, methods=["mode", "beagle"])
    common = table[table.by == "common"].set_index("method")
    error = 1 - common.nonref_concordance
    print(f"\n{share:.0%} hidden of 300 sites, MAF >= 0.05:\n{common.iloc[:, 2:].to_string()}")
    assert common.hidden.min() > 2000
    assert error["beagle"] <= 0.5 * error["mode"]
    assert common.dosage_r2["beagle"] > common.dosage_r2["mode"]
