"""Limits of calls whatever Number and Type the header gives GQ, DP, AD, GP and DS."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import zarr
from bio2zarr import vcf as vcf2zarr

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import open_bed
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import read_sample_names
from popdesic.io.genotypes import unpack_bed

N_SAMPLES, N_SITES = 5, 30
NUMBERS = ("1", "R", "G")
TYPES = ("Integer", "Float", "String")
#: Values of a call: small ones, and those that BCF stores in 8, 16 and 32 bits.
VALUES = ("0", "4", "5", "19", "20", "21", "127", "128", "32767", "32768", "2000000000", ".")
LIMITS = CallFilters(min_gq=20, min_dp=5, max_dp=30_000, min_allele_balance=0.2)


def draw(rng: random.Random, fields: dict[str, tuple[str, str]]) -> list[list[str]]:
    """Sites as FORMAT and calls; the order of the fields changes, and trailing ones are left off.

    `fields`: Number and Type by field.
    """

    def value(number: str, kind: str) -> str:
        count = {"1": 1, "A": 1, "G": 3}.get(number, 2)
        if rng.random() < 0.1:
            return "."
        one = [rng.choice(VALUES) for _ in range(count)]
        if kind == "Float" and rng.random() < 0.3:
            one[0] = rng.choice(("19.5", "4.99", "2e1", "1e-3", "0.0"))
        return ",".join(one)

    rows = []
    for _ in range(N_SITES):
        keys = rng.sample(sorted(fields), rng.randint(0, len(fields)))
        calls = []
        for _ in range(N_SAMPLES):
            gt = rng.choice(("0/0", "0/0", "0|0", "0/1", "1|0", "1/1", "./."))
            words = [gt, *(value(*fields[key]) for key in keys)]
            calls.append(":".join(words[: rng.choice((len(words), rng.randint(1, len(words))))]))
        rows.append([":".join(["GT", *keys]), *calls])
    return rows


def number_of(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9.]*[0-9][0-9.]*(e-?[0-9]+)?", text) else None


def expected(rows: list[list[str]], limits: CallFilters) -> list[list[int]]:
    """Genotypes by the rules, one call at a time."""
    genotypes = []
    for keys, *calls in rows:
        genotypes.append([])
        for call in calls:
            told = dict(zip(keys.split(":"), call.split(":"), strict=False))
            first = {k: number_of(told.get(k, ".").split(",")[0]) for k in ("GQ", "DP", "GP", "DS")}
            dp, gq = first["DP"], first["GQ"]
            gt = told["GT"]
            genotype = -1 if "." in gt else gt.count("1")
            imputed = "|" in gt or first["GP"] is not None or first["DS"] is not None
            reads = [number_of(one) for one in told.get("AD", ".").split(",")][:2]
            known = len(reads) == 2 and None not in reads and sum(reads) > 0
            if (
                (genotype == 0 and dp == 0 and not imputed)
                or (limits.min_dp and dp is not None and dp < limits.min_dp)
                or (limits.max_dp and dp is not None and dp > limits.max_dp)
                or (limits.min_gq and gq is not None and gq < limits.min_gq)
                or (genotype == 1 and known and min(reads) < limits.min_allele_balance * sum(reads))
            ):
                genotype = -1
            genotypes[-1].append(genotype)
    return genotypes


def write(folder: Path, fields: dict[str, tuple[str, str]], rows: list[list[str]]) -> list[Path]:
    """The same calls as VCF, BCF and VCF-Zarr."""
    lines = ["##fileformat=VCFv4.2", "##contig=<ID=1,length=100000>"]
    for key, (number, kind) in {"GT": ("1", "String"), **fields}.items():
        lines.append(f'##FORMAT=<ID={key},Number={number},Type={kind},Description="x">')
    names = [f"S{k}" for k in range(N_SAMPLES)]
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join([*columns, *names]))
    for k, row in enumerate(rows):
        lines.append("\t".join(["1", str(10 * k + 10), ".", "A", "C", ".", ".", ".", *row]))
    (folder / "in.vcf").write_text("\n".join(lines) + "\n")
    for command in ("bcftools view -Ob -o in.bcf in.vcf", "bgzip -kf in.vcf", "tabix -f in.vcf.gz"):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    shutil.rmtree(folder / "in.vcz", ignore_errors=True)
    vcf2zarr.convert([folder / "in.vcf.gz"], folder / "in.vcz", worker_processes=0)
    return [folder / f"in.{end}" for end in ("vcf", "bcf", "vcz")]


@pytest.mark.parametrize("kind", TYPES)
def test_limits_whatever_the_header_declares(tmp_path, kind):
    rng = random.Random(kind)
    for number in NUMBERS:
        fields = {"GQ": (number, kind), "DP": ("1", kind), "AD": (number, kind)}
        fields |= {"GP": ("G", "Float"), "DS": (rng.choice("1A"), "Float")}
        rows = draw(rng, fields)
        sources = write(tmp_path, fields, rows)
        for limits in (CallFilters(), LIMITS):
            right = expected(rows, limits)
            for source in sources:
                ingest_cohort(source, tmp_path / "raw", filters=limits)
                found = unpack_bed(open_bed(tmp_path / "raw"), N_SAMPLES).tolist()
                wrong = [
                    (row, f, r) for row, f, r in zip(rows, found, right, strict=True) if f != r
                ]
                assert not wrong, f"{source.name} {number} {kind}: {wrong[:3]}"


def test_a_store_whose_marks_are_damaged_is_refused_before_a_job(tmp_path):
    """Blosc decodes a chunk that was cut short to wrong depths, without an error."""
    fields = dict.fromkeys(("GQ", "DP"), ("1", "Integer"))
    store = write(tmp_path, fields, draw(random.Random(1), fields))[2]
    chunk = next(p for p in sorted((store / "call_DP").rglob("*")) if p.name[0] not in ".z")
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-3])
    with pytest.raises(UserError, match=r"call_DP.* is cut short or damaged"):
        read_sample_names(store)
    chunk.write_bytes(whole)
    ingest_cohort(store, tmp_path / "raw")
    zarr.open_group(str(store), mode="r+")["call_GQ"].resize((N_SITES - 1, N_SAMPLES))
    with pytest.raises(UserError, match="the array call_GQ does not have the size of the others"):
        read_sample_names(store)


def test_a_chunk_of_which_no_site_is_read(tmp_path):
    fields = {"DP": ("1", "Integer"), "AD": ("R", "Integer")}
    store = write(tmp_path, fields, draw(random.Random(2), fields))[2]
    group = zarr.open_group(str(store), mode="r+")
    alleles = group["variant_allele"][:]
    alleles[:, 1] = "AC"
    group["variant_allele"][:] = alleles
    with pytest.raises(UserError, match="none of its 30 records is a biallelic SNP"):
        ingest_cohort(store, tmp_path / "raw", filters=LIMITS)
