"""Haplotype copying beside Beagle on chromosome 22 of 20 people of the 1000 Genomes.

Their array is every third common site. Both impute the same file from the other 544 people.
"""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import cyvcf2
import numpy as np
import pandas as pd
import pytest
from support.phased_files import phased_records, write_vcf

from popdesic.__main__ import main
from popdesic.cohort.copy_haplotypes import accuracy_path

pytestmark = [pytest.mark.shared, pytest.mark.peer]

N_TARGETS, COMMON, EACH = 20, 0.05, 3
MAF = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
#: By how much r2 may be lower than Beagle's in a class.
LEAST = 0.001


def dosages(vcf: Path) -> np.ndarray:
    return np.array([record.format("DS")[:, 0] for record in cyvcf2.VCF(str(vcf))])


def squared_correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1] ** 2)


@pytest.mark.slow
def test_copying_is_as_accurate_as_beagle_at_all_frequencies(
    shared_data, tmp_path, require_command
):
    require_command("beagle")
    records = [
        record
        for record in cyvcf2.VCF(str(shared_data / "kg1_chr22_564/kg1_chr22_dev564.vcf.gz"))
        if record.is_snp and len(record.ALT) == 1
    ]
    alleles = np.array([record.genotype.array()[:, :2].ravel() for record in records])
    pos = np.array([record.POS for record in records])
    chosen = np.random.default_rng(1).permutation(alleles.shape[1] // 2)[:N_TARGETS]
    there = np.isin(np.arange(alleles.shape[1]) // 2, chosen)
    targets, reference = alleles[:, there], alleles[:, ~there]
    frequency = reference.mean(axis=1)
    maf = np.minimum(frequency, 1 - frequency)
    typed = np.flatnonzero(maf >= COMMON)[::EACH]
    files = {}
    for name, calls, rows in (
        ("reference", reference, np.arange(len(pos))),
        ("array", targets, typed),
    ):
        names = [f"{name}{k}" for k in range(calls.shape[1] // 2)]
        lines = phased_records(calls[rows], pos[rows], "22")
        files[name] = write_vcf(tmp_path / f"{name}.vcf", names, lines)
    command = ["beagle", f"ref={files['reference']}", f"gt={files['array']}", "nthreads=2"]
    subprocess.run(
        [*command, f"out={tmp_path / 'beagle'}"], check=True, capture_output=True, text=True
    )
    out = tmp_path / "ours.vcf.gz"
    how = ["--reference", str(files["reference"]), "-o", str(out), "--threads", "2"]
    assert main(["impute", str(files["array"]), *how]) == 0
    truth = targets.reshape(len(pos), N_TARGETS, 2).sum(axis=2)
    ours, beagle = np.round(dosages(out), 2), dosages(tmp_path / "beagle.vcf.gz")
    untyped = np.ones(len(pos), bool)
    untyped[typed] = False
    print("\nMAF, typed sites, r2 of their calls and what the other sites say of them (ER2)")
    for line in pd.read_csv(accuracy_path(out), sep="\t").itertuples():
        if line.typed:
            print(f"{line.maf}\t{line.typed}\t{line.dosage_r2:.4f}")
    print("MAF, untyped sites, r2 of copying and of Beagle")
    for low, high in pairwise(MAF):
        rows = untyped & (maf >= low) & ((maf < high) | (high == MAF[-1]))
        found = [squared_correlation(one[rows], truth[rows]) for one in (ours, beagle)]
        print(f"{low:g}-{high:g}\t{rows.sum()}\t{found[0]:.4f}\t{found[1]:.4f}")
        assert found[0] >= found[1] - LEAST
