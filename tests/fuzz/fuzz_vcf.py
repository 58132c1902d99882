"""VCF text, plain and compressed: our decoder, the slow parser of the tests, and htslib."""

from __future__ import annotations

import ctypes
import gzip
import random
import struct
import zlib
from pathlib import Path

import cyvcf2
import numpy as np
from fuzz.mutate import damage, odd
from fuzz.runner import check_case
from oracles.reference import ParsedVcf, parse_vcf_text

from popdesic.core.errors import UserError
from popdesic.io.batches import DROPS, DecodeCounts
from popdesic.io.bgzf import BGZF_END
from popdesic.io.vcf import stream_sites
from popdesic.io.vcf_header import read_header

META = [
    "##fileformat=VCFv4.2",
    '##FILTER=<ID=q10,Description="low">',
    '##INFO=<ID=AC,Number=A,Type=Integer,Description="count, of ALT">',
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
    '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">',
    '##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Quality">',
    '##FORMAT=<ID=DS,Number=1,Type=Integer,Description="Dosage">',
]
CONTIGS = ["1", "chr2", "X", "Un_é"]
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
PLAIN_CALLS = ["0/0", "0/1", "1/0", "1/1", "0|1", "1|1", "0|0", "./.", ".|."]
OTHER_CALLS = [".", "./1", "0|.", "0", "1", "0/0/1", "1/2", "./././.", "2", "00/1", "1/."]
REFS = ["A", "C", "G", "T", "a", "g", "N", "AC"]
ALTS = ["A", "C", "G", "T", "t", "G", "C", "*", ".", "G,T", "<DEL>", "CT", "T]1:4]", "N", ".A"]
POLICIES: list[str | dict[str, str]] = [
    "error",
    "diploidize",
    "missing",
    {"X": "diploidize"},
    {"X": "missing", "default": "diploidize", "Un_é": "error"},
]


def quiet_htslib() -> None:
    """Stop htslib from writing about every odd record to standard error."""
    ctypes.CDLL(cyvcf2.cyvcf2.__file__).hts_set_log_level(0)


def random_records(rng: random.Random, n_samples: int, *, sound: bool) -> list[list[str]]:
    """Records as lists of columns; with `sound` htslib can read all of them."""
    records = []
    pos = rng.choice((0, 1, 5, 2**31 - 30))
    usual = rng.random() < 0.6  # a file with plain calls only
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 9))):
        pos = pos + rng.randrange(3) if rng.random() < 0.9 else rng.randrange(300)
        ref, alt = rng.choice(REFS if rng.random() < 0.5 else REFS[:4]), rng.choice(ALTS)
        keys = rng.choice(
            ("GT", "GT", "GT", "GT:DP", "GT:DP:GQ", "GT:DS:DP") + (() if sound else ("DP:GT",))
        )
        columns = []
        for _ in range(n_samples):
            few = usual or rng.random() < 0.9
            call = rng.choice(PLAIN_CALLS if few else OTHER_CALLS)
            values = {"GT": call, "DP": str(rng.choice((7, 130, 0, "."))), "GQ": "."}
            values["DS"] = str(rng.choice((0, 1, ".")))
            column = [values[key] for key in keys.split(":")]
            keep = len(column) if rng.random() < 0.8 else rng.randint(1, len(column))
            columns.append(":".join(column[:keep]))
        name = rng.choice((".", "rs1", "rs2;x", "é", '"q"', "a b"))
        if sound and name == "a b":
            name = "ab"
        chrom = rng.choice(CONTIGS[:2] if usual else CONTIGS)
        info = rng.choice((".", "AC=1", "AC=3"))
        marks = rng.choice(("PASS", "PASS", ".", "q10"))
        records.append([chrom, str(pos), name, ref, alt, ".", marks, info, keys, *columns])
    return records


def header_lines(samples: list[str]) -> list[str]:
    """A header that defines everything that `random_records` uses."""
    contigs = [f"##contig=<ID={contig}>" for contig in CONTIGS]
    return [*META, *contigs, "\t".join([COLUMNS, *samples])]


def random_samples(rng: random.Random, most: int = 9) -> list[str]:
    n_samples = rng.choice((1, 1, 2, 3, 4, 5, rng.randint(1, most)))
    names = [f"S{k}" for k in range(n_samples)]
    if rng.random() < 0.1:
        names[0] = rng.choice(("ä", '"s"', "a b", "0", "x" * 300))
    return names


def compress(rng: random.Random, data: bytes, *, sound: bool) -> bytes:
    """As plain text, gzip or BGZF with any block size; with `sound` a form that htslib reads."""
    kind = rng.choice(("plain", "plain", "gzip", "bgzf", "bgzf"))
    if kind == "plain":
        return data
    if kind == "gzip":
        return gzip.compress(data, 1, mtime=0)
    block = rng.choice((1000, 60_000) if sound else (1, 7, 50, 1000, 60_000))
    return bgzf(data, block, empty=not sound and rng.random() < 0.1)


def bgzf(data: bytes, block: int, *, empty: bool = False) -> bytes:
    """BGZF with `block` bytes per block, sometimes with an empty block at the front."""
    parts = [data[start : start + block] for start in range(0, min(len(data), 400 * block), block)]
    parts += [data[k : k + 60_000] for k in range(400 * block, len(data), 60_000)]
    out = [BGZF_END] if empty else []
    for part in parts:
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        body = packer.compress(part) + packer.flush()
        out.append(BGZF_END[:16] + struct.pack("<H", len(body) + 25) + body)
        out.append(struct.pack("<II", zlib.crc32(part), len(part)))
    return b"".join([*out, BGZF_END])


def read_ours(path: Path, haploid, chunk: int, threads: int):
    """Sites, lines, genotypes and counts of a whole file, in the form of `parse_vcf_text`."""
    counts = DecodeCounts()
    parsed = ParsedVcf([])
    for batch in stream_sites(
        path, haploid=haploid, counts=counts, threads=threads, _chunk_bytes=chunk
    ):
        assert batch.genotypes.dtype == np.int8
        columns = (batch.chrom, batch.pos.tolist(), batch.id, batch.ref, batch.alt)
        parsed.sites += zip(*columns, strict=True)
        parsed.lines += batch.line.tolist()
        parsed.genotypes += batch.genotypes.tolist()
    parsed.counts = counts.as_dict()
    return parsed


def assert_same(found: ParsedVcf, expected: ParsedVcf, *, lines: bool = True) -> None:
    """Check that sites, lines, genotypes and counts are equal."""
    assert found.sites == expected.sites, f"{found.sites}, not {expected.sites}"
    assert not lines or found.lines == expected.lines
    assert found.genotypes == expected.genotypes, f"{found.genotypes}, not {expected.genotypes}"
    assert found.counts == expected.counts, f"{found.counts}, not {expected.counts}"
    dropped = [found.counts.get(name, 0) for name in DROPS]
    assert found.counts["records"] == found.counts["snps"] + sum(dropped)


def assert_as_htslib(path: Path, found: ParsedVcf, haploid) -> None:
    """Check that htslib reads the same from the file, under our rules."""
    reader = cyvcf2.VCF(str(path))
    sites, rows = [], []
    for v in reader:
        bases = {"A", "C", "G", "T"}
        alt = v.ALT[0] if v.ALT else "."
        if len(v.ALT) > 1 or v.POS < 1 or v.REF.upper() == alt.upper():
            continue
        if v.REF.upper() not in bases or alt.upper() not in bases | {"."}:
            continue
        if v.FILTER is not None:
            continue
        if alt == "." and v.end - v.start > len(v.REF):  # a reference block
            continue
        policy = haploid
        if isinstance(haploid, dict):
            policy = haploid.get(v.CHROM, haploid.get("default", "error"))
        row = []
        for alleles in v.genotype.array()[:, :-1].tolist():
            alleles = [a for a in alleles if a != -2]
            if len(alleles) == 1 and alleles[0] >= 0:
                row.append({"diploidize": 2 * alleles[0], "missing": -1}[policy])
            else:
                row.append(-1 if -1 in alleles or not alleles else sum(alleles))
        if "DP" in v.FORMAT:
            depths = v.format("DP")[:, 0].tolist()
            calls = v.genotype.array().tolist()
            sure = [bool(call[-1]) and sum(a != -2 for a in call[:-1]) == 2 for call in calls]
            if "DS" in v.FORMAT:
                sure = [s or d >= 0 for s, d in zip(sure, v.format("DS")[:, 0], strict=True)]
            row = [
                -1 if g == d == 0 and not s else g
                for g, d, s in zip(row, depths, sure, strict=True)
            ]
        sites.append((v.CHROM, v.POS, v.ID or ".", v.REF, alt))
        rows.append(row)
    reader.close()
    assert found.sites == sites
    assert found.genotypes == rows


class VcfText:
    """Files of a few records, most of them damaged in some way."""

    name = "vcf"

    def prepare(self, folder: Path) -> None:
        quiet_htslib()
        for seed in range(40):
            check_case(self, self.generate(random.Random(seed)), folder)

    def generate(self, rng: random.Random) -> tuple:
        """(content of the file, haploid policy, bytes per chunk, threads, whether it is valid)."""
        how = rng.choice(("sound", "values", "values", "columns", "bytes", "bytes", "file"))
        samples = random_samples(rng)
        if rng.random() < 0.02:  # longer than a run of the decoder
            samples = [f"S{k}" for k in range(rng.choice((1023, 1024, 1026, 2050)))]
        header = header_lines(samples)
        records = random_records(rng, len(samples), sound=how == "sound")
        if how == "values":
            for _ in range(rng.randint(1, 2)):
                if records and rng.random() < 0.9:
                    row = rng.choice(records)
                    row[rng.randrange(len(row))] = odd(rng)
                else:
                    n = rng.randrange(len(header))
                    words = header[n].split("\t")
                    words[rng.randrange(len(words))] = odd(rng)
                    header[n] = "\t".join(words)
        elif how == "columns" and records:
            row = rng.choice(records)
            a, b = rng.randrange(len(row)), rng.randrange(len(row))
            kind = rng.randrange(4)
            if kind == 0:
                row[a], row[b] = row[b], row[a]
            elif kind == 1:
                del row[a]
            elif kind == 2:
                row.insert(a, row[b])
            else:
                records.insert(rng.randrange(len(records)), rng.choice(([""], header[-1:], row)))
        lines = [*header, *("\t".join(row) for row in records)]
        end = "\r\n" if rng.random() < 0.1 else "\n"
        text = end.join(lines) + (end if rng.random() < 0.9 else "")
        data = text.encode("utf-8", "surrogatepass")
        if how == "bytes":
            keep = rng.choice((0, 0, len(end.join(header))))  # often leave the header intact
            data = data[:keep] + damage(rng, data[keep:])
        file = compress(rng, data, sound=how == "sound")
        if how == "file":
            file = damage(rng, file)
        policy = rng.choice(POLICIES)
        chunk = rng.choice((1, 7, 50, 1 << 20, 1 << 20))
        threads = 2 if rng.random() < 0.02 else 1
        return file, policy, chunk, threads, how == "sound"

    def check(self, case: tuple, folder: Path) -> str:
        file, haploid, chunk, threads, sound = case
        path = folder / "in.vcf"
        path.write_bytes(file)
        try:
            data = gzip.decompress(file) if file[:2] == b"\x1f\x8b" else file
        except (OSError, EOFError, zlib.error, struct.error):
            data = None
        try:
            header = read_header(path)
        except UserError:
            assert not sound
            raise
        try:
            found = read_ours(path, haploid, chunk, threads)
        except UserError as error:
            refusal = str(error)
            assert str(path) in refusal
        else:
            refusal = ""
        if data is None:
            assert refusal, "a damaged compressed file was read"
            raise UserError(refusal)
        text = data.decode("utf-8", "surrogateescape")
        try:
            expected = parse_vcf_text(text, haploid)
        except ValueError as error:
            assert refusal, f"not refused: {error}"
            assert f"line {error.args[-1]}: " in refusal or "cut short" in refusal, refusal
            raise UserError(refusal) from None
        if refusal:
            assert "cut short" in refusal, refusal  # a file without its last block
            raise UserError(refusal)
        assert header.samples == expected.samples
        assert_same(found, expected)
        if sound:
            assert_as_htslib(path, found, haploid)
            return "as htslib"
        return "equal"


TARGETS = [VcfText()]
