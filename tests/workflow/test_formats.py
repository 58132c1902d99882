"""The same people as VCF, PGEN and VCF-Zarr: the workflow makes the same bytes of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from bio2zarr import vcf as vcf2zarr
from support.running import contents, planned, snakemake
from support.study import make_cohorts, write_study

pytest.importorskip("pgenlib", reason="pip install Pgenlib")
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not shutil.which("plink2"), reason="plink2 is not installed"),
    pytest.mark.skipif(not shutil.which("tabix"), reason="tabix is not installed"),
]


def test_pgen_and_zarr_give_the_bytes_of_vcf(tmp_path):
    cohorts = make_cohorts((9, 8), n_sites=60)
    plain = write_study(tmp_path / "plain", cohorts)
    other = Path(shutil.copytree(plain, tmp_path / "other"))
    data = other / "data"
    command = ["plink2", "--vcf", data / "north.vcf", "--make-pgen", "--out", data / "north"]
    subprocess.run(command, check=True, capture_output=True)
    lines = ["##contig=<ID=1>", "##contig=<ID=2>"]
    lines.append('##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">')
    text = cohorts[1].vcf().replace("#CHROM", "\n".join([*lines, "#CHROM"]))
    (data / "south.vcf").write_text(text)
    for words in ("bgzip -f south.vcf", "tabix -f south.vcf.gz"):
        subprocess.run(words.split(), cwd=data, check=True)
    options = {"variants_chunk_size": 16, "samples_chunk_size": 3, "worker_processes": 0}
    vcf2zarr.convert([data / "south.vcf.gz"], data / "south.vcz", **options)
    sheet = other / "config/cohorts.tsv"
    text = sheet.read_text().replace("north.vcf", "north.pgen")
    sheet.write_text(text.replace("south.vcf.gz", "south.vcz"))
    for study in (plain, other):
        snakemake(study, "--cores", "2", "encode", "qc")
    expected, found = contents(plain), contents(other)
    assert expected.keys() == found.keys()
    assert any(name.endswith("planes.npy") for name in found)
    differ = {name for name in found if found[name] != expected[name]}
    # What the decoded files record about their source: its name, its size, phase, remarks.
    assert {Path(name).name for name in differ} <= {"raw.json"}
    assert not planned(snakemake(other, "--dry-run", "encode", "qc"))
    # A chunk that is replaced is noticed although the store's own date stays.
    chunk = next(path for path in sorted((data / "south.vcz/call_genotype").iterdir())
                 if not path.name.startswith("."))  # fmt: skip
    chunk.write_bytes(chunk.read_bytes())
    assert planned(snakemake(other, "--dry-run", "encode"))["ingest_cohort"] == 1
