"""Heterozygosity, sex and pedigree checks equal counts by hand and PLINK."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.reference import bed_bytes
from support.study import COLUMNS, Cohort, make_cohorts, write_raw

from popdesic.cohort import sample_checks
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.par import pseudoautosomal
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.sample_checks import FILTERS, Checks, mendel_errors
from popdesic.core.tables import read_table


def could_be_born(child: int, father: int, mother: int) -> bool:
    """Whether gametes of the parents can give the child's genotype; -1 is missing."""
    gametes = {0: {0}, 1: {0, 1}, 2: {1}, -1: {0, 1}}
    return any(a + b == child for a, b in itertools.product(gametes[father], gametes[mother]))


@pytest.mark.parametrize("parents", [(1, 2), (-1, 2), (1, -1)])
def test_mendelian_errors_of_every_trio(parents):
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
    """20 samples, 200 autosomal and 60 X sites, with a trio, a wrong sex and an outlier."""
    rng = np.random.default_rng(6)
    p = rng.uniform(0.2, 0.8, 260)
    g = np.stack([rng.binomial(2, p) for _ in range(20)], axis=1).astype(np.int8)
    g[200:, ::2] = 2 * (rng.random((60, 10)) < p[200:, None])  # even samples are males
    g[:200, 19] = 1  # heterozygous at nearly every site
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


def test_checks_report_but_drop_nobody_by_default(tmp_path):
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


def test_each_filter_drops_its_sample_and_the_first_is_the_reason(tmp_path):
    raw, checks = prepare(tmp_path)
    limits = {"max_heterozygosity_sd": 8, "sex_mismatch": "drop", "max_mendel_rate": 0.05}
    table = run(tmp_path, raw, Checks(**(vars(checks) | limits)))
    lost = table.left_out[table.left_out != "NA"]
    assert lost.to_dict() == {"N19": FILTERS[1], "N5": FILTERS[2], "N4": FILTERS[3]}
    assert (table.keep == "no").equals(table.left_out != "NA")
    wrong = Checks(**(vars(checks) | limits | {"sexes": {"N19": "M"}}))
    assert run(tmp_path, raw, wrong).left_out["N19"] == FILTERS[1]
    # Sites are counted over the samples that are kept.
    counts = read_table(tmp_path / "sites")[["n_ref", "n_het", "n_alt", "n_missing"]].astype(int)
    assert set(counts.sum(axis=1)) == {18}


def test_too_few_samples_or_x_sites_give_no_verdict(tmp_path):
    cohort = make_cohorts((4,), n_sites=50)[0]
    cohort.sites[:10] = [("X", k + 1, "x", "A", "C") for k in range(10)]
    raw = write_raw(tmp_path / "raw", cohort)
    table = run(tmp_path, raw, Checks(x_contigs=("X",), max_heterozygosity_sd=0.001))
    assert (table.het_sd == "NA").all() and (table.sex_from_x == "NA").all()
    assert (table.keep == "yes").all()


# --- pseudo-autosomal regions -------------------------------------------------------------------

#: Positions of X in and outside the pseudo-autosomal regions of every build.
PAR_POSITIONS = [100_000 + 50_000 * k for k in range(40)]
X_POSITIONS = [20_000_000 + 400_000 * k for k in range(300)]


def half_called_x(path: Path) -> dict[str, str]:
    """A VCF whose males are `./1` or `./0` on X and heterozygous in PAR1; returns the sexes."""
    rng = np.random.default_rng(3)
    names = [f"N{k}" for k in range(60)]
    male = np.arange(60) % 2 == 0
    lines = ["##fileformat=VCFv4.2"]
    lines.append("\t".join([COLUMNS, *names]))
    for pos in PAR_POSITIONS + X_POSITIONS:
        one, two = rng.random((2, 60)) < rng.uniform(0.2, 0.8)
        half = male & (pos in X_POSITIONS)
        calls = [f"{'.' if h else int(a)}/{int(b)}" for a, b, h in zip(one, two, half, strict=True)]
        lines.append("\t".join(["X", str(pos), ".", "A", "C", ".", "PASS", ".", "GT", *calls]))
    lines.append("\t".join(["1", "5", ".", "A", "C", ".", ".", ".", "GT", *["0/1"] * 60]))
    path.write_text("\n".join(lines) + "\n")
    return {name: "FM"[k % 2 == 0] for k, name in enumerate(names)}


@pytest.mark.parametrize("build", ["any", "hg18", "hg19", "hg38", "chm13", "none"])
def test_males_with_half_calls_on_x_get_no_verdict(tmp_path, build):
    sexes = half_called_x(tmp_path / "x.vcf")
    ingest_cohort(tmp_path / "x.vcf", tmp_path / "raw")
    regions = tuple(pseudoautosomal(build))
    checks = Checks(sexes=sexes, x_contigs=("X",), par=regions, sex_mismatch="drop")
    table = run(tmp_path, tmp_path / "raw", checks)
    assert (table.keep == "yes").all()
    assert [{"M": "NA"}.get(sex, sex) for sex in table.sex] == list(table.sex_from_x)
    assert (table.x_f[table.sex == "M"] == "NA").all()
    found = table.x_sites.astype(int)
    in_par = 40 if build == "none" else 0
    assert (
        found[table.sex == "M"].eq(in_par).all() and found[table.sex == "F"].eq(300 + in_par).all()
    )


def test_without_both_rules_these_males_are_called_females(tmp_path, monkeypatch):
    """Shows that the rules are needed: without both, correct sexes are reported as mismatches."""
    monkeypatch.setattr(sample_checks, "LEAST_X_CALLED", 0.0)
    sexes = half_called_x(tmp_path / "x.vcf")
    ingest_cohort(tmp_path / "x.vcf", tmp_path / "raw")
    table = run(tmp_path, tmp_path / "raw", Checks(sexes=sexes, x_contigs=("X",)))
    from_x = table.sex_from_x[table.sex == "M"]
    assert set(from_x) == {"F", "NA"} and (from_x == "F").sum() >= 20


def test_pseudoautosomal_heterozygotes_do_not_hide_a_male(tmp_path):
    """Males with one X, called homozygous outside the regions, are still recognised."""
    rng = np.random.default_rng(8)
    n_par, n_x = 450, 300
    p = rng.uniform(0.2, 0.8, (n_par + n_x, 1))
    g = rng.binomial(2, p, (n_par + n_x, 20)).astype(np.int8)
    g[n_par:, ::2] = 2 * (rng.random((n_x, 10)) < p[n_par:])
    positions = [*range(200_000, 200_000 + n_par), *range(90_000_000, 90_000_000 + n_x)]
    sites = [("chrX", pos, ".", "A", "C") for pos in positions]
    raw = write_raw(tmp_path / "raw", Cohort("c", [f"N{k}" for k in range(20)], sites, g))
    regions = tuple(pseudoautosomal("any"))
    assert list(run(tmp_path, raw, Checks(x_contigs=("23", "X"), par=regions)).sex_from_x) == [
        *["M", "F"] * 10
    ]
    assert (run(tmp_path, raw, Checks(x_contigs=("X",))).sex_from_x != "M").all()


def test_regions_are_those_of_plink():
    """Bounds of PLINK 1.9's --split-x: the last base of PAR1 and the first of PAR2."""
    bounds = {"hg19": (2_699_520, 154_931_044), "hg38": (2_781_479, 155_701_383)}
    for build, (last, first) in bounds.items():
        one, two = pseudoautosomal(build)
        assert (one[1], two[0]) == (last, first)
    # hg18: PLINK's pair is the open interval of X without both regions.
    assert [r for pair in pseudoautosomal("hg18") for r in pair][1:3] == [2_709_520, 154_584_238]
    assert len(pseudoautosomal("any")) == 8
    assert pseudoautosomal("none") == []
    assert sample_checks.inside(np.array([1, 2, 3, 4]), [(2, 3)]).tolist() == [0, 1, 1, 0]
