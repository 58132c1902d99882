"""Heterozygosity, sex and pedigree checks against counting by hand and PLINK."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from popdesic.qc import summarize_cohort
from popdesic.results import read_table
from popdesic.sample_checks import FILTERS, Checks, mendel_errors
from reference import bed_bytes
from study import Cohort, make_cohorts, write_raw


def could_be_born(child: int, father: int, mother: int) -> bool:
    """Whether some gamete of each parent makes the child; -1 is not known."""
    gametes = {0: {0}, 1: {0, 1}, 2: {1}, -1: {0, 1}}
    return any(a + b == child for a, b in itertools.product(gametes[father], gametes[mother]))


@pytest.mark.parametrize("parents", [(1, 2), (-1, 2), (1, -1)])
def test_every_combination_of_a_trio(parents):
    table = np.array(list(itertools.product((-1, 0, 1, 2), repeat=3)), np.int8)
    rows = np.frombuffer(bed_bytes(table), np.uint8)[3:].reshape(len(table), 1)
    sites, errors = mendel_errors(rows, np.arange(len(table)), 3, [(0, *parents)])
    n_sites = n_errors = 0
    for line in table.tolist():
        father, mother = (line[k] if k >= 0 else -1 for k in parents)
        if line[0] >= 0 and (father >= 0 or mother >= 0):
            n_sites += 1
            n_errors += not could_be_born(line[0], father, mother)
    assert (sites.tolist(), errors.tolist()) == ([n_sites, 0, 0], [n_errors, 0, 0])
    assert n_errors > 0


def prepare(tmp_path: Path) -> tuple[Path, Checks]:
    """20 samples: 200 autosomal sites and 60 of X; one trio, one wrong sex, one odd sample."""
    rng = np.random.default_rng(6)
    p = rng.uniform(0.2, 0.8, 260)
    g = np.stack([rng.binomial(2, p) for _ in range(20)], axis=1).astype(np.int8)
    g[200:, ::2] = 2 * (rng.random((60, 10)) < p[200:, None])  # even samples are males
    g[:200, 19] = 1  # heterozygous nearly everywhere
    g[:200, 2] = [
        rng.binomial(1, f / 2) + rng.binomial(1, m / 2)
        for f, m in zip(g[:200, 0], g[:200, 1], strict=True)
    ]
    sites = [("1" if k < 200 else "chrX", 10 + k, f"s{k}", "A", "C") for k in range(260)]
    raw = write_raw(tmp_path / "raw", Cohort("c", [f"N{k}" for k in range(20)], sites, g))
    sexes = {f"N{k}": "FM"[k % 2 == 0] for k in range(18)} | {"N5": "M"}
    parents = {"N2": ("N0", "N1"), "N4": ("N0", "N1"), "N6": ("elsewhere", "")}
    return raw, Checks(sexes=sexes, parents=parents, x_contigs=("X",))


def run(tmp_path: Path, raw: Path, checks: Checks) -> pd.DataFrame:
    summarize_cohort(
        raw, {}, tmp_path / "sites", tmp_path / "samples", min_sample_call_rate=0, checks=checks
    )
    return read_table(tmp_path / "samples").set_index("sample")


def test_checks_report_and_leave_nobody_out_by_default(tmp_path):
    raw, checks = prepare(tmp_path)
    table = run(tmp_path, raw, checks)
    assert (table.keep == "yes").all() and (table.left_out == "NA").all()
    assert list(table.sex_from_x) == ["M", "F"] * 10
    assert list(table.sex) == ["M", "F", "M", "F", "M", "M", *["M", "F"] * 6, "NA", "NA"]
    assert (table.mendel_sites[["N2", "N4"]] == "200").all()
    assert table.mendel_errors["N2"] == "0"
    assert int(table.mendel_errors["N4"]) > 20
    assert (table.mendel_errors.drop(["N2", "N4"]) == "NA").all()
    assert table.het_sd.astype(float).abs().idxmax() == "N19"


def test_each_filter_takes_its_sample_and_the_first_one_counts(tmp_path):
    raw, checks = prepare(tmp_path)
    limits = {"max_heterozygosity_sd": 8, "sex_mismatch": "drop", "max_mendel_rate": 0.05}
    table = run(tmp_path, raw, Checks(**(vars(checks) | limits)))
    lost = table.left_out[table.left_out != "NA"]
    assert lost.to_dict() == {"N19": FILTERS[1], "N5": FILTERS[2], "N4": FILTERS[3]}
    assert (table.keep == "no").equals(table.left_out != "NA")
    wrong = Checks(**(vars(checks) | limits | {"sexes": {"N19": "M"}}))
    assert run(tmp_path, raw, wrong).left_out["N19"] == FILTERS[1]
    # Sites are counted over the samples that stay.
    counts = read_table(tmp_path / "sites")[["n_ref", "n_het", "n_alt", "n_missing"]].astype(int)
    assert set(counts.sum(axis=1)) == {18}


def test_few_samples_and_few_sites_of_x_tell_nothing(tmp_path):
    cohort = make_cohorts((4,), n_sites=50)[0]
    cohort.sites[:10] = [("X", k + 1, "x", "A", "C") for k in range(10)]
    raw = write_raw(tmp_path / "raw", cohort)
    table = run(tmp_path, raw, Checks(x_contigs=("X",), max_heterozygosity_sd=0.001))
    assert (table.het_sd == "NA").all() and (table.sex_from_x == "NA").all()
    assert (table.keep == "yes").all()
