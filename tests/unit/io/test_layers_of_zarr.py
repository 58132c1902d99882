"""Polyploids in VCF-Zarr are read as the same calls in VCF text."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict

import numpy as np
import pytest
from bio2zarr import vcf as vcf2zarr
from support.polyploid_calls import draw_calls, write_calls

from popdesic.cohort.first_ploidies import first_ploidies
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.batches import OF_PLOIDY, DecodeCounts, LeftOut, for_file
from popdesic.io.call_filters import CallFilters
from popdesic.io.vcf import stream_sites
from popdesic.io.vcf_zarr import stream_zarr

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("bgzip") is None, reason="bgzip is not installed"),
]
HEAD = """##fileformat=VCFv4.2
##contig=<ID=1>
##contig=<ID=MT>
##FORMAT=<ID=GT,Number=1,Type=String,Description="">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="">
##FORMAT=<ID=GQ,Number=1,Type=Float,Description="">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"""
N_SAMPLES, N_SITES = 6, 60


def write_both(folder, calls, alt="C", keys="GT", contig="1"):
    """The same records as text and as VCF-Zarr of small chunks."""
    write_calls(folder / "a.vcf", HEAD, calls, alt, keys, contig)
    for command in ("bgzip -kf a.vcf", "tabix -f a.vcf.gz"):
        subprocess.run(command.split(), cwd=folder, check=True)
    sizes = {"variants_chunk_size": 13, "samples_chunk_size": 4}
    store = folder / "a.vcz"
    shutil.rmtree(store, ignore_errors=True)
    vcf2zarr.convert([folder / "a.vcf.gz"], store, worker_processes=0, **sizes)
    return folder / "a.vcf.gz", store


def read(path, policy, **options):
    counts = DecodeCounts()
    stream = stream_zarr if path.suffix == ".vcz" else stream_sites
    batches = list(stream(path, haploid=policy, counts=counts, **options))
    return np.concatenate([one.genotypes for one in batches]), counts


@pytest.mark.parametrize("kinds", [(3,), (4,), (2, 4), (1, 2)])
@pytest.mark.parametrize("several", [False, True])
def test_a_store_is_read_as_text(tmp_path, kinds, several):
    """Genotypes of all layers and all counts, with limits on calls, and with several ALT."""
    ploidy = np.resize(kinds, N_SAMPLES)
    calls = draw_calls(ploidy, N_SITES, 2 + several, sum(kinds))
    paths = write_both(tmp_path, calls, "C,G" if several else "C", "GT:DP:GQ")
    names = [f"s{k}" for k in range(N_SAMPLES)]
    each = dict(zip(names, ploidy.tolist(), strict=True))
    policy = for_file(f"{OF_PLOIDY}{','.join(map(str, kinds))}", names, each)
    classes = {"classes": ("snp", "multiallelic")} if several else {}
    for limits in ({}, {"min_dp": 5, "min_gq": 10}):
        filters = CallFilters(**limits, **classes)
        (text, of_text), (found, of_found) = (read(p, policy, filters=filters) for p in paths)
        np.testing.assert_array_equal(found, text)
        assert len(text) > N_SITES / 2 and (text > 0).any()
        for name, value in asdict(of_text).items():
            np.testing.assert_equal(asdict(of_found)[name], value, name)


def test_a_cohort_has_the_bytes_of_its_vcf(tmp_path):
    ploidy = np.resize((2, 4), N_SAMPLES)
    paths = write_both(tmp_path, draw_calls(ploidy, N_SITES, 2, 5), "C", "GT:DP:GQ")
    files = []
    for path, out in zip(paths, ("text", "zarr"), strict=True):
        (tmp_path / out).mkdir()
        prefix, each = tmp_path / out / "raw", {f"s{k}": int(p) for k, p in enumerate(ploidy)}
        ingest_cohort([path], prefix, haploid=f"{OF_PLOIDY}2,4", ploidy=each)
        files.append([prefix.with_suffix(end).read_bytes() for end in (".bed", ".bim", ".fam")])
    assert files[0] == files[1] and len(files[0][0]) > N_SITES


@pytest.mark.parametrize(
    "call, words",
    [
        ("0/0/0/1/1", "'0/0/0/1/1' of sample 's1' is of ploidy 5, but 4 in the sample sheet"),
        ("0|1", "of sample 's1' is of ploidy 2, but 4 in the sample sheet"),
        ("0/././.", "'0/././.' of sample 's1' has 1 of 4 alleles called; call all or none"),
    ],
)
def test_other_calls_are_one_sentence(tmp_path, call, words):
    rows = [["0/0/0/0"] * 3, ["0/1/1/1", call, "1/1/1/1"]]
    _, store = write_both(tmp_path, rows)
    for policy in (f"{OF_PLOIDY}4", f"{OF_PLOIDY}2,4 of 4,4,4"):
        with pytest.raises(UserError) as error:
            read(store, policy)
        assert f"{store}, site 2: genotype " in str(error.value) and words in str(error.value)


def test_calls_that_are_left_out_are_missing(tmp_path):
    """Of an excluded sample, and on an excluded contig."""
    rows = [["0/0/0/1", "0/1", "1/1/1/1"]]
    for contig, left_out in (("1", LeftOut(samples=frozenset({"s1"}))), ("MT", None)):
        left_out = left_out or LeftOut(contigs=frozenset({"MT"}))
        paths = write_both(tmp_path, rows, contig=contig)
        text, found = (read(p, f"{OF_PLOIDY}4", left_out=left_out)[0] for p in paths)
        assert found.tolist() == text.tolist() and -1 in found


def test_numbers_of_alleles_of_the_first_calls(tmp_path):
    """As `popdesic init` asks for them; a point alone says nothing, nor do mitochondria."""
    rows = [["0/1", "0/0/0/1", "."], ["./.", "0/././.", "."], ["1|1", "1/1/1/1", "."]]
    _, store = write_both(tmp_path, rows)
    found = first_ploidies(store, 1 << 16)
    assert found == {"s0": {2}, "s1": {4}, "s2": set()}
    _, store = write_both(tmp_path, rows, contig="MT")
    assert not any(first_ploidies(store, 1 << 16).values())
