"""Phenotypes of a sheet: the meaning of codes, and agreement of everything that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.study import Cohort, make_sites, write_raw

from popdesic.cohort.phenotype import known_numbers, recode_phenotype
from popdesic.cohort.samples import describe_samples, read_samples, samples_in_order
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.epistasis.phenotype import phenotype_classes
from popdesic.epistasis.reorder import build_onehot
from popdesic.export.panel import export_plink
from popdesic.io.bed import read_fam


def table(*phenotypes: str) -> pd.DataFrame:
    names = [f"s{k}" for k in range(len(phenotypes))]
    return pd.DataFrame({"sample": names, "cohort": "one", "phenotype": phenotypes})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["1", "2", "NA", ""], ["0", "1", "NA", ""]),
        (["1.0", "2", "2.00", "1e0"], ["0", "1", "1", "0"]),
        (["0", "1", "NA"], ["0", "1", "NA"]),
        (["1", "2", "3"], ["1", "2", "3"]),
        (["1", "2.5"], ["1", "2.5"]),
        (["0", "2", "7"], ["0", "2", "7"]),
        (["-8.9", "-9.1"], ["-8.9", "-9.1"]),
        (["NA", ""], ["NA", ""]),
        (["1", "NA"], ["1", "NA"]),
    ],
)
def test_codes(given, meant):
    assert recode_phenotype(table(*given), "s.tsv").tolist() == meant


@pytest.mark.parametrize(
    ("given", "value", "way_out"),
    [
        (["0", "1", "-9"], "-9", "write NA"),
        (["1", "2", "-9"], "-9", "write NA"),
        (["3.2", "4.1", "-9.0"], "-9.0", "write NA"),
        (["-8", "-10", "-9"], "-9", "write NA"),
        (["1", "2", "0"], "0", "write NA"),
        (["2", "0"], "0", "write NA"),
        (["1", "1e999"], "1e999", "a number or NA"),
        (["1", "case"], "case", "a number or NA"),
        (["1", "nan"], "nan", "a number or NA"),
    ],
)
@pytest.mark.parametrize("transform", ["none", "median"])
def test_codes_for_missing_are_refused(given, value, way_out, transform):
    for read in (
        lambda: recode_phenotype(table(*given), "s.tsv"),
        lambda: phenotype_classes(table(*given), transform, "s.tsv"),
    ):
        with pytest.raises(UserError) as error:
            read()
        assert f"phenotype of sample 's{given.index(value)}' is '{value}'" in str(error.value)
        assert way_out in str(error.value) and "median" not in str(error.value)


def test_a_constant_is_never_made_binary():
    with pytest.raises(UserError, match="no sample is a case"):
        phenotype_classes(table("5", "5", "5"), "median", "s.tsv")


def test_cases_and_controls_of_both_codings_are_the_same():
    ours, plinks = table("0", "1", "NA", "1"), table("1", "2", "NA", "2")
    for transform in ("none", "median"):
        found = [phenotype_classes(sheet, transform, "s.tsv").tolist() for sheet in (ours, plinks)]
        assert found == [[0, 1, -1, 1]] * 2


def test_every_reader_of_the_sheet_sees_the_same(tmp_path):
    path = tmp_path / "samples.tsv"
    path.write_text(
        "sample\tcohort\tsex\tphenotype\nc\tone\t1\t1\na\tone\t2\t2\nb\tone\t0\tNA\nd\ttwo\tM\t2\n"
    )
    (tmp_path / "order.tsv").write_text("sample\tcohort\na\tone\nb\tone\nc\tone\nd\ttwo\n")
    expected = {"a": ("F", "1"), "b": ("NA", "NA"), "c": ("M", "0"), "d": ("M", "1")}
    for read in (
        read_samples(path),
        samples_in_order(path, ["one", "two"]),
        describe_samples(tmp_path / "order.tsv", path),
    ):
        rows = zip(read["sample"], read.sex, read.phenotype, strict=True)
        assert {name: rest for name, *rest in rows} == {k: list(v) for k, v in expected.items()}


@pytest.mark.parametrize(
    ("phenotypes", "kept", "codes"),
    [
        (["0", "1", "NA", "1"], [0, 1, 2, 3], ["1", "2", "-9", "2"]),
        (["0.0", "1", "NA", "1"], [0, 1, 2, 3], ["1", "2", "-9", "2"]),
        # A quantitative trait stays one even if only values 0 and 1 pass the filters.
        (["0", "1", "NA", "7.5"], [0, 1, 2], ["0", "1", "-9"]),
    ],
)
def test_plink_export(tmp_path, phenotypes, kept, codes):
    sheet = table(*phenotypes)
    names = [f"s{k}" for k in kept]
    cohort = Cohort("one", names, make_sites(5), np.zeros((5, len(names)), np.int8))
    prefix = write_raw(tmp_path / "one/genotypes", cohort)
    export_plink([prefix], sheet, tmp_path / "out")
    assert read_fam(tmp_path / "out").phenotype.tolist() == codes


def test_a_column_called_case_stays_a_stratum(tmp_path):
    """The classes used to overwrite this column, so that no phenotype was permuted."""
    sheet = table(*"0101").assign(case=["x", "x", "y", "y"], stratum=["q", "r", "s", "t"])
    genotypes = np.array([[0, 1, 2, 1], [2, 1, 0, 0], [1, 1, 0, 2]], np.int8)
    names = sheet["sample"].tolist()
    prefix = write_raw(tmp_path / "one/genotypes", Cohort("one", names, make_sites(3), genotypes))
    build_onehot(
        [prefix],
        sheet,
        phenotype_classes(sheet, "none", "s.tsv"),
        strata="case",
        restrict=None,
        least=2,
        onehot_out=tmp_path / "onehot.npy",
        sites_out=tmp_path / "sites.tsv",
        samples_out=tmp_path / "samples.tsv",
    )
    found = read_table(Path(tmp_path / "samples.tsv")).set_index("sample")
    assert found.stratum.to_dict() == dict(zip(names, "xxyy", strict=True))
    assert found["class"].to_dict() == dict(zip(names, ["control", "case"] * 2, strict=True))


def test_numbers_of_a_column():
    found = known_numbers(pd.Series(["1", "NA", "", "2.5"]))
    np.testing.assert_array_equal(found, [1, np.nan, np.nan, 2.5])
