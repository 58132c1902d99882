"""VCF-Zarr stores: written by bio2zarr from VCF files, equal to the VCF path."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr
from bio2zarr import vcf as vcf2zarr

from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.sources import expand_sources, source_key
from popdesic.core.errors import UserError
from popdesic.io.formats import find_format, read_contig_lengths, read_sample_names
from popdesic.study.configuration import read_config
from popdesic.study.init import init_study
from popdesic.study.validation import validate_study

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("bgzip") is None, reason="bgzip is not installed"),
]
HEADER = """\
##fileformat=VCFv4.2
##contig=<ID=chr1,length=249250621>
##contig=<ID=X>
##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"""
NAMES = ["one", "two words", "drei", "4", "fünf"]
ALLELES = ["A C", "g t", "A C,G", "A .", "AC A", "A <DEL>", "A *", "A N", "C A", "T G"]
CALLS = ["0/0", "0/1", "1|0", "1/1", "./.", ".|.", "./1", "0|.", "1|1", "0|0"]


def make_store(folder: Path, records: list[str], chunks: tuple[int, int] = (7, 2)) -> Path:
    """Write records ('CHROM POS ID REF ALT call …') as VCF and convert it with bio2zarr."""
    rows = []
    for record in records:
        fixed, calls = record.split(" ")[:5], record.split(" ")[5:]
        rows.append("\t".join([*fixed, ".", ".", ".", "GT", *calls]) + "\n")
    folder.mkdir(exist_ok=True)
    (folder / "in.vcf").write_text(HEADER + "\t".join(NAMES) + "\n" + "".join(rows), "utf-8")
    for command in ("bgzip -kf in.vcf", "tabix -f in.vcf.gz"):
        subprocess.run(command.split(), cwd=folder, check=True)
    store = folder / "in.vcz"
    shutil.rmtree(store, ignore_errors=True)
    vcf2zarr.convert(
        [folder / "in.vcf.gz"],
        store,
        variants_chunk_size=chunks[0],
        samples_chunk_size=chunks[1],
        worker_processes=0,
    )
    return store


def random_records(n_sites: int, seed: int = 1) -> list[str]:
    rng = np.random.default_rng(seed)
    records = []
    for k in range(n_sites):
        chrom, pos = ("chr1", 5 * k + 1) if k < n_sites // 2 else ("X", k)
        alleles = ALLELES[rng.integers(0, len(ALLELES))]
        calls = rng.choice(CALLS, len(NAMES))
        if alleles == "A .":
            calls = ["0/0"] * len(NAMES)
        if chrom == "X" and k % 3 == 0:
            calls[:3] = ["0", "1", "."]
        records.append(f"{chrom} {pos} {f'rs{k}' if k % 2 else '.'} {alleles} {' '.join(calls)}")
    return records


def results(prefix: Path) -> tuple[list[bytes], dict]:
    """The bytes of raw.bed, .bim and .fam, and all counts."""
    about = json.loads(Path(f"{prefix}.json").read_text())
    return [Path(f"{prefix}{end}").read_bytes() for end in (".bed", ".bim", ".fam")], about[
        "counts"
    ]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("haploid", ["diploidize", "missing", {"X": "diploidize"}])
def test_same_bytes_and_counts_as_from_vcf(tmp_path, haploid, threads):
    store = make_store(tmp_path, random_records(60))
    ingest_cohort(tmp_path / "in.vcf", tmp_path / "text/raw", haploid=haploid)
    ingest_cohort(store, tmp_path / "zarr/raw", haploid=haploid, threads=threads)
    expected = results(tmp_path / "text/raw")
    assert results(tmp_path / "zarr/raw") == expected
    for name in ("half_calls", "haploid_calls", "phased", "unphased", "multiallelic", "star"):
        assert expected[1][name] > 0


@pytest.mark.parametrize("chunks", [(1, 1), (3, 5), (100, 100)])
def test_chunks_of_any_size(tmp_path, chunks):
    store = make_store(tmp_path, random_records(20), chunks)
    ingest_cohort(tmp_path / "in.vcf", tmp_path / "text/raw", haploid="missing")
    ingest_cohort(store, tmp_path / "zarr/raw", haploid="missing")
    assert results(tmp_path / "zarr/raw") == results(tmp_path / "text/raw")


def test_zarr_format_3(tmp_path):
    store = make_store(tmp_path, random_records(20))
    ingest_cohort(store, tmp_path / "two/raw", haploid="missing")
    old, new = zarr.open_group(str(store), mode="r"), tmp_path / "new.vcz"
    group = zarr.open_group(str(new), mode="w", zarr_format=3)
    for name in old.array_keys():
        data = old[name][:]
        if data.dtype.kind not in "biuf":
            data = data.astype(np.dtypes.StringDType())
        array = group.create_array(
            name, shape=data.shape, dtype=data.dtype, chunks=old[name].chunks,
            config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = data
    assert (new / "zarr.json").exists()
    ingest_cohort(new, tmp_path / "three/raw", haploid="missing")
    assert results(tmp_path / "three/raw") == results(tmp_path / "two/raw")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("1", "genotype '1' of sample 'drei' is haploid; set contigs.haploid"),
        ("0|1|1", r"genotype '0\|1\|1' of sample 'drei' has more than two alleles"),
        ("0/2", "genotype '0/2' of sample 'drei' names an allele that the record does not have"),
    ],
)
def test_refused_calls_name_site_and_sample(tmp_path, call, sentence):
    records = [f"chr1 {k} . A C 0/0 0/0 0/1 1/1 ./." for k in range(1, 20)]
    records[16] = f"chr1 17 . A C 0/0 0/0 {call} 1/1 ./."
    store = make_store(tmp_path, records)
    for source, place in ((store, "site 17"), (tmp_path / "in.vcf", "line 22")):
        with pytest.raises(UserError, match=f"{place}: {sentence}"):
            ingest_cohort(source, tmp_path / "raw")


def test_dosages_are_ignored_and_said(tmp_path):
    store = make_store(tmp_path, [f"chr1 {k} . A C 0/0 0/0 0/1 1/1 ./." for k in range(1, 20)])
    group = zarr.open_group(str(store), mode="r+")
    array = group.create_array("call_DS", shape=(19, 5), dtype=np.float32)
    array[...] = 0.7
    counts = ingest_cohort(store, tmp_path / "raw")
    said = f"{store} has dosages (call_DS): they are ignored, and call_genotype is read."
    assert said in counts.remarks


def test_init_and_check_take_a_store(tmp_path):
    store = make_store(tmp_path, random_records(20))
    assert find_format(store).kind == "zarr"
    assert expand_sources("*.vcz", tmp_path) == ["in.vcz"]
    assert read_sample_names(store) == NAMES
    assert read_contig_lengths(store) == {"chr1": 249250621}
    said = init_study([str(tmp_path / "study"), str(store)])
    assert "5 samples" in said
    config = read_config(tmp_path / "study")
    validate_study(config, tmp_path / "study")
    config["qc"] = {"build": "hg38"}
    with pytest.raises(UserError, match="gives contig chr1 the length 249250621"):
        validate_study(config, tmp_path / "study")


# --- wrong stores ---------------------------------------------------------------------------------


def chunk_files(store: Path, *names: str) -> list[Path]:
    return [
        path
        for name in names
        for path in sorted((store / name).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    ]


def test_a_lost_chunk_of_sites_is_refused(tmp_path):
    """Zarr reads a lost chunk as zeros: sites would silently move to the first contig."""
    store = make_store(tmp_path, random_records(20))
    for name in ("sample_id", "contig_id", "variant_position", "variant_allele", "variant_contig"):
        for path in chunk_files(store, name):
            path.rename(tmp_path / "lost")
            with pytest.raises(UserError) as error:
                ingest_cohort(store, tmp_path / "raw", haploid="missing")
            said = {
                "variant_allele": "an empty REF",
                "variant_contig": "variant_contig is not what region_index says",
            }
            assert said.get(name, f"is incomplete: the array {name} has ") in str(error.value)
            if name not in said:
                with pytest.raises(UserError, match="is incomplete"):  # before any job
                    read_sample_names(store)
            (tmp_path / "lost").rename(path)
    ingest_cohort(store, tmp_path / "raw", haploid="missing")


def test_absent_chunks_of_genotypes_are_said(tmp_path):
    """bio2zarr writes no chunk in which all calls are 0/0; a lost one cannot be told from it."""
    records = [f"chr1 {k} . A C 0/0 0/0 0/1 1/1 ./." for k in range(1, 20)]
    store = make_store(tmp_path, records)  # chunks of two samples, of which the first has only 0/0
    ingest_cohort(tmp_path / "in.vcf", tmp_path / "text/raw")
    counts = ingest_cohort(store, tmp_path / "zarr/raw")
    assert results(tmp_path / "zarr/raw") == results(tmp_path / "text/raw")
    (said,) = counts.remarks
    assert "no file for 3 of the 9 chunks of call_genotype: " in said
    assert "all calls there are read as 0/0" in said
    init_study([str(tmp_path / "study"), str(store)])
    study = tmp_path / "study"
    assert sum("3 of the 9 chunks" in r for r in validate_study(read_config(study), study)[2]) == 1


def test_a_chunk_that_was_cut_short_is_refused_before_a_job(tmp_path):
    """Blosc decodes such a chunk to wrong genotypes, without an error."""
    store = make_store(tmp_path, random_records(20))
    key = source_key([str(store)])
    names = ("call_genotype", "call_genotype_phased", "variant_id", "variant_allele", "sample_id")
    for path in chunk_files(store, *names, "variant_position", "variant_contig", "contig_id"):
        kept = path.read_bytes()
        for cut in (1, 2, len(kept) // 2, len(kept) - 1, len(kept)):
            path.write_bytes(kept[:-cut])
            with pytest.raises(UserError, match=f"{path} is cut short or damaged"):
                read_sample_names(store)
        path.write_bytes(kept)
    assert source_key([str(store)]) != key  # the dates have changed


def test_damaged_bytes_never_end_in_a_traceback(tmp_path):
    store = make_store(tmp_path, random_records(20))
    rng = np.random.default_rng(1)
    refused = 0
    for path in chunk_files(store, "call_genotype", "variant_id", "variant_allele", "region_index"):
        kept = path.read_bytes()
        for _ in range(3):
            damaged = bytearray(kept)
            damaged[rng.integers(len(kept))] ^= int(rng.integers(1, 256))
            path.write_bytes(damaged)
            try:
                ingest_cohort(store, tmp_path / "raw", haploid="missing")
            except UserError as error:
                assert "\n" not in str(error)
                refused += 1
        path.write_bytes(kept)
    assert refused > 10


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("call_genotype", "lacks the array call_genotype"),
        ("variant_allele", "lacks the array variant_allele"),
        ("sample_id", "lacks the array sample_id"),
    ],
)
def test_stores_without_an_array(tmp_path, name, sentence):
    store = make_store(tmp_path, random_records(20))
    shutil.rmtree(store / name)
    with pytest.raises(UserError, match=sentence):
        read_sample_names(store)


@pytest.mark.parametrize(
    ("name", "index", "value", "sentence"),
    [
        ("sample_id", 1, "one", "the sample name 'one' occurs 2 times"),
        ("sample_id", 1, "", "sample 2 has an empty name"),
        ("sample_id", 1, "a\tb", "contains a tab"),
        ("variant_contig", 3, 7, "site 4: the contig number 7 is not valid"),
        ("variant_contig", 3, -1, "site 4: the contig number -1 is not valid"),
        ("variant_position", 3, -5, "site 4: the position -5 is not valid"),
        ("variant_id", 3, "a\nb", r"site 4: the identifier 'a.*' is not valid"),
    ],
)
def test_wrong_values(tmp_path, name, index, value, sentence):
    store = make_store(tmp_path, [f"chr1 {k} r{k} A C 0/0 0/0 0/1 1/1 ./." for k in range(1, 20)])
    group = zarr.open_group(str(store), mode="r+")
    group[name][index] = value
    with pytest.raises(UserError, match=sentence) as error:
        ingest_cohort(store, tmp_path / "raw")
    assert "\n" not in str(error.value)


def test_wrong_folders(tmp_path):
    (tmp_path / "x.vcz").mkdir()
    (tmp_path / "x.vcz/.zgroup").write_text("nonsense")
    with pytest.raises(UserError, match="is not VCF-Zarr or is damaged"):
        read_sample_names(tmp_path / "x.vcz")
    (tmp_path / "x.vcz/.zgroup").write_text('{"zarr_format": 2}')
    with pytest.raises(UserError, match="lacks the array call_genotype"):
        read_sample_names(tmp_path / "x.vcz")
