"""Tests of single sites beside PLINK 1.9: linear and logistic regression, trend and genotypic."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from support.plink_files import write_plink

import popdesic

N, N_SITES = 900, 120

pytestmark = pytest.mark.skipif(shutil.which("plink1.9") is None, reason="no plink1.9")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Genotypes with missing ones, two covariates, a number and cases; PLINK's files of them."""
    folder = tmp_path_factory.mktemp("plink")
    rng = np.random.default_rng(31)
    genotypes = rng.binomial(2, rng.uniform(0.05, 0.5, N_SITES)[:, None], (N_SITES, N))
    age, sex = rng.normal(50, 10, N).round(3), rng.integers(0, 2, N)
    number = 0.05 * age + 0.4 * genotypes[5] + sex + rng.normal(0, 1, N)
    number = number.round(4)
    case = (number > np.median(number)).astype(int)
    names = [f"s{k}" for k in range(N)]
    write_plink(folder / "data", genotypes.astype(np.int8), names)
    ids = pd.DataFrame({"FID": 0, "IID": names})
    for name, columns in (
        ("number", {"y": number}),
        ("case", {"y": case + 1}),
        ("covariates", {"age": age, "sex": sex}),
    ):
        ids.assign(**columns).to_csv(folder / f"{name}.txt", sep="\t", index=False)
    return folder, genotypes.T.astype(np.int8), np.column_stack([age, sex]), number, case


def plink(folder, phenotype: str, *options: str) -> pd.DataFrame:
    subprocess.run(
        [
            *("plink1.9", "--bfile", "data", "--allow-no-sex", "--pheno", f"{phenotype}.txt"),
            *("--keep-allele-order", "--out", "out", *options),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (result,) = [path for path in folder.glob("out.*") if path.suffix not in (".log", ".nosex")]
    table = pd.read_csv(result, sep=r"\s+")
    result.unlink()
    return table


def test_numbers_with_covariates_are_plinks_linear_regression(study):
    folder, genotypes, covariates, number, _ = study
    theirs = plink(folder, "number", "--linear", "hide-covar", "--covar", "covariates.txt")
    ours = popdesic.scan_sites(genotypes, number, covariates)
    sign = sign_of(folder, theirs)
    np.testing.assert_allclose(ours.beta, sign * theirs.BETA, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(ours.p, theirs.P, rtol=2e-3)
    assert ours.p.idxmin() == 5


def sign_of(folder, theirs: pd.DataFrame) -> int:
    """1 where PLINK counts the allele that we count: ALT, A1 of the .bim."""
    first = pd.read_csv(folder / "data.bim", sep="\t", header=None)[4]
    assert theirs.A1.nunique() == 1
    return 1 if theirs.A1[0] == first[0] else -1


def test_cases_without_covariates_are_plinks_trend_and_genotypic_tests(study):
    folder, genotypes, _, _, case = study
    theirs = plink(folder, "case", "--model", "--cell", "0")
    ours = popdesic.scan_sites(genotypes, case)
    for test, column, df in (("TREND", "chi2", 1), ("GENO", "genotypic_chi2", 2)):
        rows = theirs[test == theirs.TEST].reset_index(drop=True)
        same = (ours.genotypic_df == 2) | (df == 1)
        np.testing.assert_allclose(ours[column][same], rows.CHISQ[same], rtol=1e-3)


def test_cases_with_covariates_agree_with_plinks_wald_test(study):
    """A score test and a Wald test: equal up to terms that vanish with the effect."""
    folder, genotypes, covariates, _, case = study
    theirs = plink(folder, "case", "--logistic", "hide-covar", "--covar", "covariates.txt")
    ours = popdesic.scan_sites(genotypes, case, covariates)
    wald = theirs.STAT**2
    np.testing.assert_allclose(ours.chi2, wald, rtol=0.03, atol=0.01)
    np.testing.assert_allclose(np.sign(ours.beta), sign_of(folder, theirs) * np.sign(theirs.STAT))
