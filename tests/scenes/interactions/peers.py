"""PLINK 1.9's tests of interaction, run on genotypes of the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
from support.plink_files import write_plink

#: Columns: names of the two sites, statistic, p.
TESTS = {"BOOST": ["--fast-epistasis", "boost"], "logistic": ["--epistasis"]}


def run_plink(
    test: str, genotypes: np.ndarray, n_controls: int, folder: Path, least_p: float = 1.0
) -> pd.DataFrame:
    """Statistics of all pairs with a p of at most `least_p`: columns site1, site2, statistic, p.

    Parameters
    ----------
    test : {'BOOST', 'logistic'}
        ``--fast-epistasis boost``: the likelihood-ratio test of Wan et al. (2010), with four
        degrees of freedom; ``--epistasis``: the product of allele counts in a logistic regression.
    genotypes : int8 array, (n_sites, n_people)
        Controls first; -1 missing.
    folder : Path
        Where files are written; may be used again.
    """
    prefix = folder / "study"
    n_people = genotypes.shape[1]
    write_plink(prefix, genotypes, [f"p{k}" for k in range(n_people)])
    with open(prefix.with_suffix(".fam"), "w") as file:
        for k in range(n_people):
            file.write(f"p{k} p{k} 0 0 1 {1 + (k >= n_controls)}\n")
    command = ["plink1.9", "--bfile", str(prefix), *TESTS[test], "--epi1", str(least_p)]
    command += ["--allow-no-sex", "--threads", "1", "--memory", "500", "--out", str(prefix)]
    subprocess.run(command, check=True, capture_output=True)
    table = pd.read_csv(folder / "study.epi.cc", sep=r"\s+", usecols=["SNP1", "SNP2", "STAT", "P"])
    table.columns = ["site1", "site2", "statistic", "p"]
    for column in ("site1", "site2"):
        table[column] = table[column].str.removeprefix("site").astype(int)
    return table
