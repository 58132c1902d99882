"""Difficult files of other projects (shared/data/hard_vcf): known counts or a one-sentence error.

`manifest.tsv` beside the files has features counted by another program: records, samples and
multiallelic records must agree. The other expected counts are listed below; that genotypes equal
those of htslib is tested in tests/unit/io/test_vcf.py.
"""

from __future__ import annotations

import pandas as pd
import pytest

from popdesic.core.errors import UserError
from popdesic.io.batches import DecodeCounts
from popdesic.io.vcf import stream_sites

pytestmark = pytest.mark.shared

HAPLOID = "is haploid; set contigs.haploid"
#: File: non-zero counts, or words of the error, under the default policy and under
#: `contigs.haploid: diploidize`; one entry if they agree.
FILES: dict[str, list[dict[str, int] | str]] = {
    "bcftools__test__view.vcf": [
        f"line 41: genotype '0' of sample 'NA00001' {HAPLOID}",
        {"records": 15, "multiallelic": 1, "indel": 2, "snps": 11, "one_allele": 1,
         "missing": 4, "haploid_calls": 10, "phased": 4, "unphased": 15, "filtered": 1,
         "filter MinAB": 1},
    ],
    "bio2zarr__tests__data__vcf__chr_m_indels.vcf.gz": [
        {"records": 155, "multiallelic": 53, "indel": 8, "filtered": 94,
         "filter VQSRTrancheSNP99.80to100.00": 94}
    ],
    "bio2zarr__tests__data__vcf__empty.vcf.gz": [{}],
    "bio2zarr__tests__data__vcf__mixed_ploidy.vcf.gz": [
        f"line 7: genotype '0' of sample 'S1' {HAPLOID}",
        {"records": 6, "multiallelic": 2, "snps": 4, "missing": 5, "haploid_calls": 6,
         "unphased": 1},
    ],
    "bio2zarr__tests__data__vcf__sample_missing_contig.bcf": [
        {"records": 9, "multiallelic": 3, "snps": 5, "one_allele": 2, "missing": 1, "phased": 9,
         "unphased": 5, "filtered": 1, "filter q10": 1}
    ],
    "bio2zarr__tests__data__vcf__sample_no_genotypes.vcf.gz": ["has no samples (line 24"],
    "cyvcf2__cyvcf2__tests__test-haploidX.vcf": [
        f"line 52: genotype '1' of sample '37150' {HAPLOID}",
        {"records": 777, "indel": 77, "snps": 689, "missing": 510, "haploid_calls": 1557,
         "filtered": 11, "filter my_snp_filter": 11},
    ],
    "cyvcf2__cyvcf2__tests__test-hemi.vcf": [
        {"records": 2, "snps": 1, "missing": 8, "half_calls": 2, "unphased": 19, "filtered": 1,
         "filter FAIL": 1}
    ],
    "cyvcf2__cyvcf2__tests__test.vcf.gz": [
        {"records": 115, "indel": 16, "snps": 99, "missing": 622, "half_calls": 369,
         "unphased": 18089}
    ],
    "hail__duplicate_ids.vcf": ["line 17: the sample name '5' occurs 4 times"],
    "hail__gvcfs__1kg_chr22__NA20317.hg38.g.vcf.gz": [
        {"records": 1000, "multiallelic": 1, "indel": 2, "snps": 30, "phased": 3, "unphased": 27,
         "reference_blocks": 967}
    ],
    "hail__malformed.vcf": ["line 54: the record has 164 columns where 109 are expected"],
    "hail__sample.vcf.gz": [
        {"records": 346, "indel": 45, "snps": 280, "missing": 635, "unphased": 27365,
         "filtered": 21, "filter VQSRTrancheINDEL97.00to99.00": 2,
         "filter VQSRTrancheSNP99.60to99.80": 3, "filter VQSRTrancheSNP99.80to99.90": 2,
         "filter VQSRTrancheSNP99.90to99.95": 3, "filter VQSRTrancheSNP99.95to100.00": 11}
    ],
    "hail__sample2.vcf": [
        {"records": 735, "multiallelic": 356, "indel": 26, "snps": 353, "missing": 6864,
         "unphased": 28436}
    ],
    "hail__small-gt.vcf": [{"records": 100, "snps": 100, "missing": 1600, "unphased": 8400}],
    "hail__tdt.vcf": [
        {"records": 98, "indel": 18, "snps": 80, "missing": 23, "unphased": 1257}
    ],
    "htsjdk__htsjdk__tribble__vcfexample.vcf.truncated.gz": ["is cut short"],
    "seqarray__inst__extdata__CEU_Exon.vcf.gz": [
        {"records": 1348, "multiallelic": 2, "snps": 1346, "missing": 8603, "unphased": 112537}
    ],
    "tidypopgen__inst__extdata__ploidy__arenosa_ploidy_example.vcf.gz": [
        "line 756: genotype '0/0/0/0' of sample 'BAL_01ta' has more than two alleles"
    ],
    "variantspark__data__chr22_1000.vcf.gz": [
        {"records": 1988, "indel": 88, "snps": 1900, "phased": 2074800}
    ],
    "vcfpy__tests__vcfs_from_the_wild__1kg.vcf.gz": [
        {"records": 381, "snps": 381, "missing": 106257, "phased": 133392}
    ],
}  # fmt: skip


def test_the_table_lists_every_file(shared_data):
    names = pd.read_csv(shared_data / "hard_vcf/manifest.tsv", sep="\t").file
    assert set(names) == set(FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("haploid", ["error", "diploidize"])
def test_documented_counts_or_a_one_sentence_error(shared_data, name, haploid):
    expected = FILES[name][0 if haploid == "error" else -1]
    path, counts = shared_data / "hard_vcf" / name, DecodeCounts()
    if isinstance(expected, str):
        with pytest.raises(UserError) as error:
            list(stream_sites(path, haploid=haploid, counts=counts))
        sentence = str(error.value)
        assert str(path) in sentence and expected in sentence
        assert "\n" not in sentence and sentence.endswith(".")
        return
    n_genotypes = sum(b.genotypes.size for b in stream_sites(path, haploid=haploid, counts=counts))
    assert {key: n for key, n in counts.as_dict().items() if n} == expected
    manifest = pd.read_csv(path.with_name("manifest.tsv"), sep="\t").set_index("file").loc[name]
    assert counts.records == manifest.records
    if not counts.reference_blocks:  # the manifest counts <NON_REF> as an allele
        assert counts.multiallelic == manifest.multiallelic
    assert n_genotypes == counts.snps * manifest.samples
    assert counts.half_calls <= manifest.half
