"""Polyploids in BCF are read as the same calls in VCF text."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from dataclasses import asdict

import numpy as np
import pytest
from support.polyploid_calls import draw_calls, write_calls

from popdesic.cohort.first_ploidies import first_ploidies
from popdesic.core.errors import UserError
from popdesic.io.batches import OF_PLOIDY, DecodeCounts, for_file
from popdesic.io.call_filters import CallFilters
from popdesic.io.vcf import stream_sites

pytestmark = pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools makes the files")

HEAD = """##fileformat=VCFv4.2
##contig=<ID=1>
##FORMAT=<ID=GT,Number=1,Type=String,Description="">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="">
##FORMAT=<ID=GQ,Number=1,Type=Float,Description="">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="">
##FORMAT=<ID=FT,Number=1,Type=String,Description="">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"""
N_SAMPLES, N_SITES = 6, 60


def write_both(folder, calls, alt="C", keys="GT"):
    """The same records as text and as BCF."""
    write_calls(folder / "a.vcf", HEAD, calls, alt, keys)
    command = ["bcftools", "view", "--no-version", "-Ob", "-o", "a.bcf", "a.vcf"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "a.vcf", folder / "a.bcf"


def drawn(ploidy: np.ndarray, alleles: int, seed: int):
    """As `draw_calls`, with filters of calls of several lengths."""
    rows = draw_calls(ploidy, N_SITES, alleles, seed)
    return [[f"{c}:x{'yz' * p}" for c, p in zip(row, ploidy, strict=True)] for row in rows]


def read(path, policy, **options):
    counts = DecodeCounts()
    batches = list(stream_sites(path, haploid=policy, counts=counts, **options))
    return np.concatenate([one.genotypes for one in batches]), counts


@pytest.mark.parametrize("kinds", [(3,), (4,), (15,), (2, 4), (1, 2), (4, 6)])
@pytest.mark.parametrize("several", [False, True])
def test_bcf_is_read_as_text(tmp_path, kinds, several):
    """Genotypes of all layers and all counts, with limits on calls, and with several ALT."""
    ploidy = np.resize(kinds, N_SAMPLES)
    paths = write_both(
        tmp_path, drawn(ploidy, 2 + several, sum(kinds)), "C,G" if several else "C", "GT:DP:GQ:FT"
    )
    policy = f"{OF_PLOIDY}{','.join(map(str, kinds))}"
    names = [f"s{k}" for k in range(N_SAMPLES)]
    policy = for_file(policy, names, dict(zip(names, ploidy.tolist(), strict=True)))
    classes = {"classes": ("snp", "multiallelic")} if several else {}
    for limits in ({}, {"min_dp": 5, "min_gq": 10}):
        filters = CallFilters(**limits, **classes)
        (text, of_text), (found, of_found) = (read(p, policy, filters=filters) for p in paths)
        np.testing.assert_array_equal(found, text)
        assert len(text) > N_SITES / 2 and (text > 0).any()
        for name, value in asdict(of_text).items():
            np.testing.assert_equal(asdict(of_found)[name], value, name)


def test_a_file_of_diploids_has_the_layers_of_the_study(tmp_path):
    _, path = write_both(tmp_path, [["0/1", "1/1"], ["0/0", "./."]])
    found, _ = read(path, f"{OF_PLOIDY}2,4 of 2,2")
    assert found.tolist() == [[1, 2, -1, -1], [0, -1, -1, -1]]


@pytest.mark.parametrize(
    "call, words",
    [
        ("0/0/0/1/1", "'0/0/0/1/1' of sample 's1' is of ploidy 5, but 4 in the sample sheet"),
        ("0|1", "'0|1' of sample 's1' is of ploidy 2, but 4 in the sample sheet"),
        ("0/././.", "'0/././.' of sample 's1' has 1 of 4 alleles called; call all or none"),
    ],
)
def test_other_calls_are_one_sentence(tmp_path, call, words):
    rows = [["0/0/0/0"] * 3, ["0/1/1/1", call, "1/1/1/1"]]
    _, path = write_both(tmp_path, rows)
    for policy in (f"{OF_PLOIDY}4", f"{OF_PLOIDY}2,4 of 4,4,4"):
        with pytest.raises(UserError) as error:
            read(path, policy)
        assert f"a.bcf, record 2: genotype {words}" in str(error.value)


def test_numbers_of_alleles_of_the_first_calls(tmp_path):
    """As `popdesic init` asks for them; a point alone says nothing, nor do mitochondria."""
    rows = [["0/1", "0/0/0/1", "."], ["./.", "0/././.", "."], ["1|1", "1/1/1/1", "."]]
    for path in write_both(tmp_path, rows):
        found = first_ploidies(path, 1 << 16)
        assert found == {"s0": {2}, "s1": {4}, "s2": set()}
        assert list(found) == ["s0", "s1", "s2"]
    text = tmp_path / "a.vcf"
    text.write_text(text.read_text().replace("\n1\t", "\nMT\t").replace("ID=1>", "ID=MT>"))
    command = ["bcftools", "view", "--no-version", "-Ob", "-o", "a.bcf", "a.vcf"]
    subprocess.run(command, cwd=tmp_path, check=True)
    for path in (text, tmp_path / "a.bcf"):
        assert not any(first_ploidies(path, 1 << 16).values())


def test_long_fields_and_damage(tmp_path):
    """A descriptor of more than 14 values; a record cut within its calls is named as before."""
    rows = [[f"0/0/1/1:{'x' * 40}", f"0/1/1/1:{'y' * 3}"]] * 20
    text, path = write_both(tmp_path, rows, keys="GT:FT")
    np.testing.assert_array_equal(read(path, f"{OF_PLOIDY}4")[0], read(text, f"{OF_PLOIDY}4")[0])
    plain = tmp_path / "plain.bcf"
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[-90:] = b"\xff" * 90
    plain.write_bytes(content)
    with pytest.raises(UserError, match="record 20: the record is damaged"):
        read(plain, f"{OF_PLOIDY}4")
