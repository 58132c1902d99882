"""Reference blocks of gVCFs of several callers, from text, BCF and VCF-Zarr, beside an oracle."""

import json
import re
import shutil
import subprocess

import numcodecs
import numpy as np
import pytest
import zarr
from bio2zarr import vcf as vcf2zarr

from popdesic.cohort.callable import BLOCKS, DROPPED, load_beside
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.call_filters import CallFilters
from popdesic.io.genotypes import unpack_bed

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools is not installed"),
]
LENGTH, NAMES = 400, ["a", "b", "c"]
HEADER = """##fileformat=VCFv4.2
##contig=<ID=1,length=1000>
##contig=<ID=X,length=1000>
##FILTER=<ID=LowGQX,Description="x">
##INFO=<ID=END,Number=1,Type=Integer,Description="x">
##INFO=<ID=MinDP,Number=1,Type=Integer,Description="x">
##INFO=<ID=BLOCKAVG_min30p3a,Number=0,Type=Flag,Description="x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="x">
##FORMAT=<ID=MIN_DP,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="x">
"""
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
#: How callers write the ALT of a block, and that of a variant.
CALLERS = {
    "GATK, DRAGEN": ("<NON_REF>", "{},<NON_REF>"),
    "DeepVariant": ("<*>", "{},<*>"),
    "Illumina, bcftools call -g": (".", "{}"),
}
#: Calls of blocks with their chances; the last ones are of other ploidies.
CALLS = ["0/0", "0|0", "./.", "0/.", "0", "1", ".", "0/0/0", "./././.", "0/0/0/0"]
CHANCES = [0.6, 0.1, 0.1, 0.02, 0.05, 0.02, 0.03, 0.03, 0.02, 0.03]


def draw(caller: str, seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    block, variant = CALLERS[caller]
    rows = []
    for chrom in ("1", "X"):
        pos = 1
        while pos < LENGTH:
            depths = [str(d) for d in rng.choice([0, 3, 30], len(NAMES), p=[0.1, 0.3, 0.6])]
            ref, mark = (
                rng.choice([*"ACGT"]),
                rng.choice(["PASS", ".", "LowGQX"], p=[0.5, 0.3, 0.2]),
            )
            if rng.random() < 0.2:
                alt = variant.format({"A": "C", "C": "G", "G": "T", "T": "A"}[ref])
                calls = rng.choice(["0/0", "0/1", "1/1"], len(NAMES))
                info, end, key = ".", pos, "GT:DP"
            else:
                end = pos + int(rng.choice([1, 5, 30]))
                alt, key = block, rng.choice(["GT:DP:MIN_DP", "GT:DP", "DP:GT:MIN_DP"])
                calls = rng.choice(CALLS, len(NAMES), p=CHANCES)
                info = rng.choice([f"END={end};BLOCKAVG_min30p3a", f"MinDP=3;END={end}"])
            texts = []
            for call, depth in zip(calls, depths, strict=True):
                value = {"GT": call, "DP": "30", "MIN_DP": depth}
                texts.append(":".join(value[one] for one in key.split(":")))
            rows.append([chrom, str(pos), ".", ref, alt, "50", mark, info, key, *texts])
            pos = end + int(rng.choice([1, 1, 4]))
    return rows


def write(folder, rows):
    lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    (folder / "in.vcf").write_text(HEADER + COLUMNS + "\t".join(NAMES) + "\n" + lines)
    for command in ("bcftools view -Ob -o in.bcf in.vcf", "bcftools view -Oz -o in.vcf.gz in.vcf"):
        subprocess.run(command.split(), cwd=folder, check=True)
    subprocess.run(["bcftools", "index", "in.vcf.gz"], cwd=folder, check=True)
    store = folder / "in.vcz"
    vcf2zarr.convert([folder / "in.vcf.gz"], store, variants_chunk_size=17, worker_processes=0)
    return {"vcf": folder / "in.vcf", "bcf": folder / "in.bcf", "vcz": store}


def oracle(rows, least: int, diploidize: set[str]) -> tuple[set, int]:
    """(contig, position, sample) that are homozygous REF by a block; calls of other ploidies."""
    found, odd = set(), 0
    for chrom, pos, _, _, _, _, mark, info, key, *texts in rows:
        end = re.search(r"END=(\d+)", info)
        if not end or mark == "LowGQX":
            continue
        for sample, text in enumerate(texts):
            told = dict(zip(key.split(":"), text.split(":"), strict=True))
            alleles = re.split(r"[/|]", told["GT"])
            single = len(alleles) == 1 and alleles != ["."] and chrom not in diploidize
            if len(alleles) > 2 or single:
                odd += 1
            elif set(alleles) == {"0"}:
                depth = int(told.get("MIN_DP", told["DP"]))
                if depth >= least and (depth or "|" in told["GT"]):
                    found |= {(chrom, p, sample) for p in range(int(pos), int(end[1]) + 1)}
    return found, odd


@pytest.mark.parametrize("caller", CALLERS)
def test_blocks_of_all_callers_and_formats(tmp_path, caller):
    rows = draw(caller, seed=1)
    listed = [(r[0], int(r[1])) for r in rows if "END" not in r[7] and r[6] != "LowGQX"]
    n_blocks = sum("END" in row[7] for row in rows)
    at = np.arange(1, LENGTH + 50)
    seen = set()
    for kind, path in write(tmp_path, rows).items():
        for least, haploid in ((0, "error"), (5, {"X": "diploidize"})):
            prefix = tmp_path / f"{kind}{least}"
            filters = CallFilters(min_dp=least)
            counts = ingest_cohort(path, prefix, haploid=haploid, filters=filters)
            expected, odd = oracle(rows, least, set(haploid) if least else set())
            assert (counts.decode.reference_blocks, counts.decode.odd_block_calls) == (
                n_blocks,
                odd,
            )
            assert odd and any(f"{odd} calls in reference blocks" in one for one in counts.remarks)
            bim = read_bim(prefix)
            assert list(zip(bim.chrom, bim.pos, strict=True)) == listed
            blocks = load_beside(prefix, BLOCKS)
            found = set()
            for chrom in ("1", "X"):
                covered = blocks.covers_samples([chrom] * len(at), at, np.arange(len(NAMES)))
                found |= {(chrom, int(at[p]), int(s)) for p, s in np.argwhere(covered)}
            assert found == expected
            dropped = load_beside(prefix, DROPPED)
            failed = {(r[0], int(r[1])) for r in rows if "END" not in r[7]} - set(listed)
            where = {
                (chrom, int(p))
                for chrom in ("1", "X")
                if dropped is not None
                for p in at[dropped.covers([chrom] * len(at), at)]
            }
            assert where == failed
            seen.add((least, (prefix.with_suffix(".bed")).read_bytes(), frozenset(found)))
    assert len(seen) == 2, "the same from all formats"


def test_blocks_of_text_with_crlf(tmp_path):
    """The last sample's call ends with the line."""
    rows = [["1", "8", ".", "A", "<*>", ".", ".", "END=20", "GT", "0/0", "./.", "0/0"]]
    path = write(tmp_path, [*rows, ["1", "90", ".", "A", "C", ".", ".", ".", *rows[0][8:]]])
    text = path["vcf"].read_bytes().splitlines(keepends=True)
    path["vcf"].write_bytes(b"".join(text[:-1]).replace(b"\n", b"\r\n"))
    other = tmp_path / "rest.vcf"
    other.write_bytes(b"".join([*text[:-2], text[-1]]))
    counts = ingest_cohort([path["vcf"], other], tmp_path / "raw")
    assert counts.decode.odd_block_calls == 0
    covered = load_beside(tmp_path / "raw", BLOCKS).covers_samples(["1"], [20], np.arange(3))
    assert covered.tolist() == [[True, False, True]]


def test_alleles_beside_any_other_in_a_store(tmp_path):
    rows = [
        ["1", "5", ".", "A", "G,<NON_REF>", "50", ".", ".", "GT", "0/1", "1/2", "0/2"],
        ["1", "6", ".", "A", "G,T,<NON_REF>", "50", ".", ".", "GT", "0/1", "1/2", "0/3"],
        ["1", "7", ".", "AC", "A,<*>", "50", ".", ".", "GT", "0/1", "1/1", "0/0"],
        ["1", "8", ".", "A", "<NON_REF>", "50", ".", ".", "GT", "0/0", "1/1", "0/0"],
    ]
    for kind, path in write(tmp_path, rows).items():
        counts = ingest_cohort(path, tmp_path / kind).as_dict()
        assert unpack_bed(open_bed(tmp_path / kind), 3).tolist() == [[1, -1, -1]]
        assert (counts["multiallelic"], counts["indel"], counts["reference_blocks"]) == (1, 1, 1)
        blocks = load_beside(tmp_path / kind, BLOCKS)
        covered = blocks.covers_samples(["1", "1"], np.array([8, 9]), np.arange(3))
        assert covered.tolist() == [[True, False, True], [False] * 3]


def test_a_store_of_objects_and_of_bytes(tmp_path):
    """As writers before bio2zarr have them: names, IDs and alleles as objects or as bytes."""
    rows = [
        ["1", str(5 + k), f"rs{k}" if k % 2 else ".", "A", alt, "50", mark, ".", "GT", *calls]
        for k, (alt, mark, calls) in enumerate(
            [
                ("C", "PASS", ["0/0", "0/1", "1/1"]),
                ("G", "LowGQX", ["0/0", "0/1", "1/1"]),
                ("T,C", "PASS", ["0/0", "0/1", "1/1"]),
                ("ACC", "PASS", ["0/0", "0/1", "1/1"]),
                ("T", "PASS", ["./.", "0/1", "1/1"]),
            ]
        )
    ]
    paths = write(tmp_path, rows)
    expected = ingest_cohort(paths["vcf"], tmp_path / "text")
    old = zarr.open_group(str(paths["vcz"]), mode="r")
    for kind in ("object", "bytes"):
        new = tmp_path / f"{kind}.vcz"
        group = zarr.open_group(str(new), mode="w", zarr_format=2)
        for name in old.array_keys():
            data = old[name][:]
            if data.dtype.kind in "biuf":
                group.create_array(name, data=data, chunks=old[name].chunks)
                continue
            texts = np.array([str(x) for x in data.ravel()], object).reshape(data.shape)
            if kind == "bytes":
                group.create_array(name, data=texts.astype("S"))
                continue
            _write_objects(new / name, texts)
        counts = ingest_cohort(new, tmp_path / kind)
        assert counts.as_dict() == expected.as_dict()
        for end in (".bed", ".bim", ".fam"):
            written = [(tmp_path / f"{stem}{end}").read_bytes() for stem in ("text", kind)]
            assert written[0] == written[1]


def _write_objects(folder, texts: np.ndarray, filters="vlen-utf8") -> None:
    """One chunk of dtype |O, as zarr 2 wrote it."""
    folder.mkdir()
    codec = numcodecs.get_codec({"id": filters})
    about = {
        "zarr_format": 2,
        "shape": list(texts.shape),
        "chunks": list(texts.shape),
        "dtype": "|O",
        "compressor": None,
        "fill_value": None,
        "order": "C",
        "filters": [codec.get_config()],
    }
    (folder / ".zarray").write_text(json.dumps(about))
    name = ".".join(["0"] * texts.ndim)
    (folder / name).write_bytes(bytes(codec.encode(texts.ravel())))


def test_a_store_of_pickled_objects_is_refused(tmp_path):
    """Reading them would execute what they say."""
    rows = [["1", "5", ".", "A", "C", "50", ".", ".", "GT", "0/0", "0/1", "1/1"]]
    store = write(tmp_path, rows)["vcz"]
    shutil.rmtree(store / "sample_id")
    _write_objects(store / "sample_id", np.array(NAMES, object), "pickle")
    for name in (".zmetadata",):
        (store / name).unlink(missing_ok=True)
    with pytest.raises(UserError, match=r"in\.vcz is not VCF-Zarr or is damaged"):
        ingest_cohort(store, tmp_path / "raw")
