"""A cohort imputed by copying beside Beagle, from the same reference: hidden calls of real people.

Of 564 people of the 1000 Genomes, 60 are the cohort, without phase, and the others the reference.
`evaluate_window` hides the same genotypes of chromosome 22 for both, as `impute.evaluate` does.
"""

from __future__ import annotations

from pathlib import Path

import cyvcf2
import numpy as np
import pytest
from support.phased_files import phased_records, write_vcf

from popdesic.cohort.accuracy import by_beagle, by_mode, evaluate_window, summarize_evaluation
from popdesic.cohort.beagle import Beagle
from popdesic.cohort.copy_cohort import by_copying
from popdesic.cohort.copy_haplotypes import CopyOptions
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.qc import summarize_cohort

pytestmark = [pytest.mark.shared, pytest.mark.peer]

N_COHORT = 60
#: By how much r2 of dosages, and of genotypes, may be lower than that of Beagle's genotypes in a
#: class of frequency with this many that are hidden. Beagle has no dosages there.
LEAST, LEAST_OF_CALLS, IN_CLASS = 0.001, 0.03, 300
#: Errors of carriers, as a multiple of Beagle's.
MOST_ERRORS = 1.06


def prepare(vcf: Path, folder: Path, common: float) -> tuple[dict[str, Path], Path]:
    """The cohort with its panel, and the reference as VCF; sites of this MAF or more are typed."""
    records = [r for r in cyvcf2.VCF(str(vcf)) if r.is_snp and len(r.ALT) == 1]
    alleles = np.array([record.genotype.array()[:, :2].ravel() for record in records])
    pos = np.array([record.POS for record in records])
    chosen = np.random.default_rng(2).permutation(alleles.shape[1] // 2)[:N_COHORT]
    there = np.isin(np.arange(alleles.shape[1]) // 2, chosen)
    own, others = alleles[:, there], alleles[:, ~there]
    names = [f"r{k}" for k in range(others.shape[1] // 2)]
    reference = write_vcf(folder / "r.vcf", names, phased_records(others, pos, "22"))
    frequency = own.mean(axis=1)
    typed = np.minimum(frequency, 1 - frequency) >= common
    lines = [line.replace("|", "/") for line in phased_records(own[typed], pos[typed], "22")]
    names = [f"c{k}" for k in range(N_COHORT)]
    ingest_cohort(write_vcf(folder / "c.vcf", names, lines), folder / "raw")
    summarize_cohort(
        folder / "raw", {}, folder / "sites", folder / "samples", min_sample_call_rate=0
    )
    filters = {"exclude_contigs": [], "min_call_rate": 0, "min_maf": 0, "min_hwe_p": 0}
    build_panel(
        {"c": folder / "sites"}, folder / "panel", folder / "counts", PanelFilters(**filters)
    )
    paths = {"raw": folder / "raw", "qc_samples": folder / "samples"}
    return paths | {"panel_path": folder / "panel"}, reference


@pytest.mark.slow
@pytest.mark.parametrize(("common", "share"), [(0.0, 0.02), (0.05, 0.1)])
def test_hidden_calls_are_copied_as_well_as_beagle_imputes_them(
    shared_data, tmp_path, require_command, common, share
):
    require_command("beagle")
    data = shared_data / "kg1_chr22_564/kg1_chr22_dev564.vcf.gz"
    paths, reference = prepare(data, tmp_path, common)
    frozen = tmp_path / "r.npz"
    freeze_haplotypes(reference, frozen, threads=2)
    options = CopyOptions(seed=1, threads=2)
    imputers = {
        "mode": by_mode,
        "beagle": by_beagle(Beagle(threads=2, reference=reference)),
        "copying": by_copying(frozen, paths["panel_path"], options),
    }
    found = {}

    def copied(shown, sites, window, *rest):
        found[window] = imputers["copying"](shown, sites, window, *rest)
        return found[window]

    def calls(shown, sites, window, *rest):
        return found[window][0], found[window][0].astype(np.float32)

    measured = imputers | {"copying": copied, "calls": calls}
    part = tmp_path / "part.npz"
    given = {"cohort": "c", "share": share, "seed": 1, "imputers": measured}
    evaluate_window(*paths.values(), None, None, part, **given)
    samples = {"c": paths["qc_samples"]}
    table = summarize_evaluation({"c": [part]}, samples, list(measured), tmp_path / "t.tsv")
    rows = table[table.by.isin(["all", "maf"])].set_index(["by", "value"])
    print(f"\n{share:.0%} hidden, MAF >= {common:g}: dosage r2, errors of carriers")
    for key in rows.index.unique():
        line = rows.loc[[key]].set_index("method")
        r2, wrong = line.dosage_r2, 1 - line.nonref_concordance
        n = int(line.hidden["copying"])
        print(key[1], n, *(f"{m} {r2[m]:.3f} {wrong[m]:.3f}" for m in measured))
        if n >= IN_CLASS:
            assert r2["copying"] >= r2["beagle"] - LEAST
            assert r2["calls"] >= r2["beagle"] - LEAST_OF_CALLS
        if key[0] == "all":
            assert wrong["copying"] <= MOST_ERRORS * wrong["beagle"] < wrong["mode"]
