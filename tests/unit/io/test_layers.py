"""Polyploids in VCF text: layers, counts of samples, limits, and calls that are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.core.errors import UserError
from popdesic.io.batches import OF_PLOIDY, DecodeCounts, LeftOut, for_file
from popdesic.io.call_filters import CallFilters
from popdesic.io.layers import (
    columns_there,
    join_layers,
    layers_each,
    layers_in,
    most_layers,
    n_layers,
    sizes_in,
    split_layers,
)
from popdesic.io.vcf import stream_sites

N_SAMPLES, N_SITES = 7, 90
HEAD = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"


def write_vcf(path, calls, keys: str = "GT", end: str = "\n", alt: str = "C"):
    """A VCF file of rows of calls, one a sample."""
    names = "\t".join(f"s{k}" for k in range(len(calls[0])))
    rows = [
        "\t".join(["1", str(10 + k), ".", "A", alt, ".", ".", ".", keys, *row])
        for k, row in enumerate(calls)
    ]
    path.write_bytes(end.join([*(HEAD + names).split("\n"), *rows, ""]).encode())
    return path


def read(path, ploidy: int, counts: DecodeCounts | None = None, **options) -> np.ndarray:
    """Sums of layers of all sites; twice the genotypes of an odd ploidy."""
    batches = stream_sites(path, haploid=f"{OF_PLOIDY}{ploidy}", counts=counts, **options)
    parts = [join_layers(batch.genotypes, n_layers(ploidy)) for batch in batches]
    return np.concatenate(parts)


def drawn(ploidy: int, separator: str = "/"):
    """Genotypes (n_sites, n_samples), and calls of them, alleles in any order."""
    rng = np.random.default_rng(ploidy)
    genotypes = rng.integers(-1, ploidy + 1, (N_SITES, N_SAMPLES))
    none = [".", separator.join(["."] * ploidy), "./."]
    calls = [
        [
            separator.join(rng.permutation(["1"] * g + ["0"] * (ploidy - g)))
            if g >= 0
            else none[rng.integers(3)]
            for g in site
        ]
        for site in genotypes.tolist()
    ]
    return genotypes, calls


@pytest.mark.parametrize("ploidy", [3, 4, 6, 15])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_genotypes_are_those_of_the_file(tmp_path, ploidy, end):
    """Whatever the ends of lines, the size of pieces and the threads."""
    genotypes, calls = drawn(ploidy)
    path = write_vcf(tmp_path / "a.vcf", calls, end=end)
    expected = np.where(genotypes < 0, -1, genotypes * (1 + ploidy % 2))
    for options in ({}, {"_chunk_bytes": 300}, {"threads": 2, "_chunk_bytes": 999}):
        counts = DecodeCounts()
        np.testing.assert_array_equal(read(path, ploidy, counts, **options), expected)
        assert counts.missing == (genotypes < 0).sum() and counts.phased == 0
        assert counts.unphased == (genotypes >= 0).sum() and counts.records == N_SITES


@pytest.mark.parametrize("ploidy", [3, 4, 7, 14])
def test_layers_are_thermometers(ploidy):
    layers = n_layers(ploidy)
    genotypes = np.random.default_rng(1).integers(-1, 2 * layers + 1, (50, 9)).astype(np.int8)
    parts = split_layers(genotypes, layers)
    np.testing.assert_array_equal(join_layers(parts, layers), genotypes)
    steps = np.diff(parts.reshape(50, layers, 9), axis=1)
    assert (steps <= 0).all() and set(np.unique(parts)) <= {-1, 0, 1, 2}


@pytest.mark.parametrize("keys", ["GT:DP", "DP:GT"])
def test_limits_count_a_call_once(tmp_path, keys):
    """Depth and phase are those of a sample, not of its layers."""
    genotypes, calls = drawn(4, "|")
    depth = np.random.default_rng(9).integers(0, 20, genotypes.shape)
    calls = [
        [f"{c}:{d}" for c, d in zip(*both, strict=True)]
        for both in zip(calls, depth.tolist(), strict=True)
    ]
    if keys == "DP:GT":
        calls = [[":".join(one.split(":")[::-1]) for one in site] for site in calls]
    path, counts = write_vcf(tmp_path / "a.vcf", calls, keys), DecodeCounts()
    found = read(path, 4, counts, filters=CallFilters(min_dp=10))
    kept = (genotypes >= 0) & (depth >= 10)
    np.testing.assert_array_equal(found, np.where(kept, genotypes, -1))
    few = (genotypes >= 0) & (depth < 10)
    assert counts.no_depth + counts.low_dp == few.sum()
    np.testing.assert_array_equal(counts.removed, few.sum(axis=0))
    assert counts.missing == (~kept).sum()
    assert counts.phased + counts.unphased == kept.sum()


def test_columns_without_gt_are_missing(tmp_path):
    """Fields at the end of a column may be left out, GT too where it is not the first."""
    calls = [["."] * 40 + ["9:.:.:.:.:0/1/1/1", "9", "9:.:.:.:.:."]] * 30
    path, counts = write_vcf(tmp_path / "a.vcf", calls, "DP:AD:GQ:PL:MQ:GT"), DecodeCounts()
    np.testing.assert_array_equal(read(path, 4, counts), [[-1] * 40 + [3, -1, -1]] * 30)
    assert (counts.missing, counts.unphased) == (30 * 42, 30)


@pytest.mark.parametrize(
    "call, words",
    [
        ("0/0/0/1/1", "'0/0/0/1/1' of sample 's1' is of ploidy 5, but 4 in the sample sheet"),
        ("0/1", "'0/1' of sample 's1' is of ploidy 2, but 4 in the sample sheet"),
        ("1", "'1' of sample 's1' is of ploidy 1, but 4"),
        ("0/././.", "'0/././.' of sample 's1' has 1 of 4 alleles called; call all or none"),
        ("1.25", "genotype '1.25' of sample 's1' is a dosage"),
        ("0/0/0/2", "'0/0/0/2' of sample 's1' names an allele that the record does not have"),
        ("0/0/x/1", "'0/0/x/1' of sample 's1' is not a genotype"),
    ],
)
def test_other_calls_are_one_sentence(tmp_path, call, words):
    """With the line and the sample."""
    path = write_vcf(tmp_path / "a.vcf", [["0/0/0/0"] * 3, ["0/1/1/1", call, "1/1/1/1"]])
    with pytest.raises(
        UserError, match="line 4: genotype " + words.replace("genotype ", "").replace(".", r"\.")
    ):
        read(path, 4)


def test_wrong_columns_are_counted_as_they_are(tmp_path):
    """Also if there are as many as the layers have."""
    path = write_vcf(tmp_path / "a.vcf", [["0/0/0/0"] * 2, ["0/0"] * 4])
    with pytest.raises(UserError, match="line 4: the record has 13 columns where 11 are expected"):
        read(path, 4)


def test_several_alt(tmp_path):
    """Each of them against all others, where they are read; else the record is dropped."""
    path = write_vcf(tmp_path / "a.vcf", [["0/1/2/2", "0/0/0/1", "."]], alt="C,G")
    found = read(path, 4, filters=CallFilters(classes=("snp", "multiallelic")))
    np.testing.assert_array_equal(found, [[1, 1, -1], [2, 0, -1]])
    counts = DecodeCounts()
    batches = list(stream_sites(path, haploid=f"{OF_PLOIDY}4", counts=counts))
    assert not batches and counts.multiallelic == 1


def test_a_call_of_any_other_allele_is_missing_in_all_parts(tmp_path):
    """Wherever a gVCF lists that allele, which is no site; and it is no half of a call."""
    classes = CallFilters(classes=("indel", "multiallelic"))
    for alt, calls in (
        ("C,G,<NON_REF>", ["0/1/2/2", "0/0/1/3", "0/0/0/1", "3/3/3/3"]),
        ("C,<*>,G", ["0/1/3/3", "0/0/1/2", "0/0/0/1", "2/2/2/2"]),
    ):
        path = write_vcf(tmp_path / "a.vcf", [calls], alt=alt)
        found = read(path, 4, filters=classes)
        np.testing.assert_array_equal(found, [[1, -1, 1, -1], [2, -1, 0, -1]])


@pytest.mark.parametrize(
    ("call", "said"), [("0/0/2", "'0/0/2' of sample 's1' is of ploidy 3"), ("0/2/2/9", "'0/2/2/9'")]
)
def test_a_refused_call_of_a_split_record_is_as_in_the_file(tmp_path, call, said):
    path = write_vcf(tmp_path / "a.vcf", [["0/1/2/2"] * 2, ["0/1/2/2", call]], alt="CT,G")
    with pytest.raises(UserError, match=f"line 4: genotype {said}"):
        read(path, 4, filters=CallFilters(classes=("indel", "multiallelic")))


def test_the_arenosa_file_as_far_as_it_is_tetraploid(shared_data, tmp_path):
    """Its tetraploids alone; with its diploids it is refused, with record and sample."""
    import gzip

    name = "tidypopgen__inst__extdata__ploidy__arenosa_ploidy_example.vcf.gz"
    text = gzip.decompress((shared_data / "hard_vcf" / name).read_bytes()).decode()
    (tmp_path / "all.vcf").write_text(text)
    with pytest.raises(UserError, match=r"line \d+: genotype '.*' of sample '.*' is of ploidy 2"):
        read(tmp_path / "all.vcf", 4)
    lines = [line for line in text.splitlines() if not line.startswith("##")]
    rows = [line.split("\t") for line in lines]
    first = next(row for row in rows[1:] if all(c[0] != "." for c in row[9:]))
    four = [k for k in range(9, len(first)) if first[k].split(":")[0].count("/") == 3]
    kept = ["\t".join(row[k] for k in [*range(9), *four]) for row in rows]
    (tmp_path / "four.vcf").write_text("\n".join(["##fileformat=VCFv4.2", *kept]) + "\n")
    counts = DecodeCounts()
    found = read(tmp_path / "four.vcf", 4, counts)
    expected = [
        [-1 if "." in (call := row[k].split(":")[0]) else call.count("1") for k in four]
        for row in rows[1:]
        if len(row[3]) == len(row[4]) == 1 and row[4] in "ACGT"
    ]
    assert len(four) == 16 and counts.snps == len(expected) > 100
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("families", ["0000", "1234", "abca", "2222", "1112", "", "0002", "١٢١٢"])
def test_a_fam_of_diploids_has_one_layer_whatever_its_families(families):
    fam = pd.DataFrame({"family": list(families), "sample": list("stuv")[: len(families)]})
    assert layers_in(fam) == 1


def test_layers_of_a_fam():
    fam = pd.DataFrame({"family": list("112233"), "sample": list("ststst")})
    assert layers_in(fam) == 3


def mixed(kinds: tuple[int, ...]):
    """Samples of these ploidies in turn: ploidies, genotypes (n_sites, n_samples) and calls."""
    rng = np.random.default_rng(sum(kinds))
    ploidy = np.resize(kinds, N_SAMPLES)
    genotypes = rng.integers(-1, ploidy + 1, (N_SITES, N_SAMPLES))
    calls = [
        [
            "/".join(rng.permutation(["1"] * g + ["0"] * (p - g)) if g >= 0 else ["."] * p)
            for g, p in zip(site, ploidy.tolist(), strict=True)
        ]
        for site in genotypes.tolist()
    ]
    return ploidy, genotypes, calls


@pytest.mark.parametrize("kinds", [(2, 4), (1, 2), (4, 6), (2, 3, 4), (1, 2, 15)])
def test_samples_of_several_ploidies(tmp_path, kinds):
    """Each by its own layers: sums are genotypes, further layers missing, counts of alleles."""
    ploidy, genotypes, calls = mixed(kinds)
    path = write_vcf(tmp_path / "a.vcf", calls)
    names = [f"s{k}" for k in range(N_SAMPLES)]
    policy = f"{OF_PLOIDY}{','.join(map(str, kinds))}"
    policy = for_file(policy, names, dict(zip(names, ploidy.tolist(), strict=True)))
    twice = 1 + any(kind % 2 for kind in kinds)
    layers, sizes = most_layers(kinds), layers_each(ploidy, kinds)
    assert (2 * sizes == twice * ploidy).all()
    for options in ({}, {"_chunk_bytes": 300}, {"threads": 2, "_chunk_bytes": 999}):
        counts = DecodeCounts()
        batches = list(stream_sites(path, haploid=policy, counts=counts, **options))
        wide = np.concatenate([batch.genotypes for batch in batches])
        expected = np.where(genotypes < 0, -1, genotypes * twice)
        np.testing.assert_array_equal(join_layers(wide, layers), expected)
        there = columns_there(sizes, layers)
        assert (wide[:, ~there] == -1).all() and there.sum() == sizes.sum()
        assert ((wide >= 0).sum(axis=1) == ((genotypes >= 0) * sizes).sum(axis=1)).all()
        np.testing.assert_array_equal(split_layers(expected.astype(np.int8), layers, sizes), wide)
        assert counts.missing == (genotypes < 0).sum()
        assert counts.unphased == (genotypes >= 0).sum()


def test_a_file_has_the_layers_of_the_study(tmp_path):
    """Also one of diploids alone, and one with an excluded sample of a larger ploidy."""
    path = write_vcf(tmp_path / "a.vcf", [["0/1", "1/1"], ["0/0", "./."]])
    policy = for_file(f"{OF_PLOIDY}2,4", ["s0", "s1"], {})
    found = next(stream_sites(path, haploid=policy)).genotypes.tolist()
    assert found == [[1, 2, -1, -1], [0, -1, -1, -1]]
    path = write_vcf(tmp_path / "b.vcf", [["0/1", "0/1/1/1", "0/1/1/1/1/1/1/1"]])
    policy = for_file(f"{OF_PLOIDY}2,4", ["s0", "s1", "s2"], {"s1": 4, "s2": 8})
    left_out = LeftOut(frozenset(["s2"]))
    found = next(stream_sites(path, haploid=policy, left_out=left_out)).genotypes
    assert found[:, [0, 1, 3, 4]].tolist() == [[1, 2, -1, 1]]


@pytest.mark.parametrize(
    "call, words",
    [
        ("0/0/1/1", "is of ploidy 4, but 2 in the sample sheet"),
        ("0/.", "has 1 of 2 alleles called"),
    ],
)
def test_a_call_of_another_ploidy_than_that_of_its_sample(tmp_path, call, words):
    path = write_vcf(tmp_path / "a.vcf", [["0/1", "0/0/0/1"], [call, "0/0/1/1"]])
    policy = for_file(f"{OF_PLOIDY}2,4", ["s0", "s1"], {"s1": 4})
    with pytest.raises(UserError, match=rf"line 4: genotype '{call}' of sample 's0' {words}"):
        list(stream_sites(path, haploid=policy))


def test_layers_of_a_fam_of_several_ploidies():
    """The last column of both layers is one that its sample lacks."""
    fam = pd.DataFrame({"family": ["1", "1", "2", "-2"], "sample": list("stst")})
    assert layers_in(fam) == 2 and sizes_in(fam).tolist() == [2, 1]
    assert sizes_in(fam.iloc[[1, 3]]).tolist() == [1]
