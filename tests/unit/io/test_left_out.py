"""Calls of another ploidy on contigs and of samples that a study leaves out: missing, no error."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from popdesic.cohort.contigs import excluded_names, haploid_policies
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.batches import OF_PLOIDY, ONLY_HAPLOID, DecodeCounts, LeftOut, only_haploid
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.genotypes import unpack_bed
from popdesic.io.layers import join_layers, n_layers
from popdesic.io.vcf import stream_sites

NAMES = ["s0", "wrong", "s2"]
#: Policy, calls of two sites, and calls of other ploidies, by ploidy.
STUDIES = {
    1: (ONLY_HAPLOID, [["0", "1"], ["1", "0"]], ["0/1", "0/0/1", "0|1"]),
    2: ("error", [["0/1", "1/1"], ["0|0", "0/1"]], ["1", "0/0/1", "0/1/1/1"]),
    4: (f"{OF_PLOIDY}4", [["0/0/1/1", "0/0/0/0"], ["0/1/1/1", "1/1/1/1"]], ["0/1", "1", "0/1/."]),
}


def write_vcf(path, rows: list[tuple[str, list[str]]]):
    """A VCF of rows of contig and calls."""
    contigs = dict.fromkeys(contig for contig, _ in rows)
    head = ["##fileformat=VCFv4.2", *(f"##contig=<ID={contig}>" for contig in contigs)]
    head += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">']
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    head += ["\t".join([*columns, *NAMES])]
    lines = [
        "\t".join([contig, str(10 + k), ".", "A", "C", ".", ".", ".", "GT", *calls])
        for k, (contig, calls) in enumerate(rows)
    ]
    path.write_text("\n".join([*head, *lines, ""]))
    return path


def rows_of(ploidy: int, wrong: str, contig: str) -> list[tuple[str, list[str]]]:
    """Two sites of a chromosome, with a wrong call of one sample, and one of another contig."""
    _, sites, _ = STUDIES[ploidy]
    rows = [("1", [first, wrong, second]) for first, second in sites]
    return [*rows, (contig, [sites[0][0], wrong, wrong])]


CASES = [(ploidy, wrong) for ploidy, (_, _, calls) in STUDIES.items() for wrong in calls]


@pytest.mark.parametrize(("ploidy", "wrong"), CASES)
def test_what_is_left_out_stops_nothing(tmp_path, ploidy, wrong):
    """The files are those of a VCF without these calls; each alone is refused where it is read."""
    policy = STUDIES[ploidy][0]
    path = write_vcf(tmp_path / "a.vcf", rows_of(ploidy, wrong, "chrM"))
    contigs = excluded_names("auto", {"1": 0, "chrM": 0})
    options = {"haploid": haploid_policies(policy, "auto", {"1": 0, "chrM": 0})}
    options |= {"excluded": ["wrong"], "excluded_contigs": contigs}
    found = ingest_cohort(path, tmp_path / "raw", **options)
    clean = [
        (contig, [a, ".", b if contig == "1" else "."])
        for contig, (a, _, b) in rows_of(ploidy, wrong, "chrM")
    ]
    ingest_cohort(write_vcf(tmp_path / "b.vcf", clean), tmp_path / "clean", **options)
    layers = n_layers(ploidy) if ploidy > 2 else 1
    one, other = (
        join_layers(unpack_bed(np.asarray(open_bed(tmp_path / name)), 2 * layers), layers)
        for name in ("raw", "clean")
    )
    haploid_of_diploids = ploidy == 2 and wrong == "1"  # read as two alleles on such contigs
    np.testing.assert_array_equal(one[:2], other[:2])
    assert one[2].tolist() == [other[2, 0], 2 if haploid_of_diploids else -1]
    assert len(read_bim(tmp_path / "raw")) == 3 and found.samples == 2
    told = found.decode.missing + found.decode.phased + found.decode.unphased
    if ploidy == 4:
        assert (told, found.decode.missing) == (9, 4)
    for lacking in ("excluded", "excluded_contigs"):
        if haploid_of_diploids and lacking == "excluded_contigs":
            continue
        with pytest.raises(UserError, match="wrong" if lacking == "excluded" else "s2"):
            ingest_cohort(path, tmp_path / "no", **(options | {lacking: []}))


def test_other_faults_of_what_is_left_out_are_still_faults(tmp_path):
    """A damaged call is one of a damaged file."""
    path = write_vcf(tmp_path / "a.vcf", [("1", ["0/1", "x/1", "1/1"])])
    with pytest.raises(UserError, match="'x/1' of sample 'wrong' is not a genotype"):
        ingest_cohort(path, tmp_path / "raw", excluded=["wrong"], excluded_contigs=["1"])


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools is not installed")
@pytest.mark.parametrize(("ploidy", "wrong"), [case for case in CASES if case[0] < 3])
def test_bcf_and_zarr_are_the_text(tmp_path, ploidy, wrong):
    """Genotypes and counts."""
    path = write_vcf(tmp_path / "a.vcf", rows_of(ploidy, wrong, "MT") * 3)
    left_out = LeftOut(frozenset(["wrong"]), frozenset(["MT"]))
    policy = haploid_policies(STUDIES[ploidy][0], "auto", {})

    def all_of(stream) -> list[list[int]]:
        if ploidy == 1:
            stream = only_haploid(stream, path, NAMES, left_out)
        return [row for batch in stream for row in batch.genotypes.tolist()]

    options = {"haploid": policy, "left_out": left_out}
    counts, others = DecodeCounts(), DecodeCounts()
    expected = all_of(stream_sites(path, counts=counts, **options))
    subprocess.run(["bcftools", "view", "-Ob", "-o", tmp_path / "in.bcf", path], check=True)
    assert all_of(stream_sites(tmp_path / "in.bcf", counts=others, **options)) == expected
    assert others.as_dict() == counts.as_dict()
    vcf2zarr = pytest.importorskip("bio2zarr.vcf")
    from popdesic.io.vcf_zarr import stream_zarr

    packed = tmp_path / "in.vcf.gz"
    subprocess.run(["bcftools", "sort", "-Oz", "-o", packed, path], check=True)
    subprocess.run(["bcftools", "index", "-t", packed], check=True)
    vcf2zarr.convert([packed], tmp_path / "in.vcz", worker_processes=0)
    expected = all_of(stream_sites(packed, **options))
    others = DecodeCounts()
    assert all_of(stream_zarr(tmp_path / "in.vcz", others, **options)) == expected
    assert others.as_dict() == counts.as_dict()
