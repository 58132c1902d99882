"""BCF: our decoder compared with a slow one, with the original VCF text, and with htslib."""

from __future__ import annotations

import gzip
import math
import random
import re
import struct
import subprocess
import zlib
from pathlib import Path

from fuzz.fuzz_vcf import (
    COLUMNS,
    CONTIGS,
    META,
    POLICIES,
    assert_as_htslib,
    assert_same,
    bgzf,
    quiet_htslib,
    random_records,
    random_samples,
    read_ours,
)
from fuzz.mutate import damage
from fuzz.runner import check_case
from oracles.reference import (
    ParsedVcf,
    _kind_of_site,
    count_filtered,
    count_one_allele,
    failed_filters,
    parse_vcf_text,
    remove_without_depth,
)
from support.bcf_files import (
    CHAR,
    FLOAT,
    INT8,
    INT16,
    INT32,
    UNKNOWN,
    bcf_of,
    calls_of,
    descriptor,
    format_of,
    record_of,
    typed,
)

from popdesic.core.errors import UserError
from popdesic.io.vcf_header import read_header

KEYS = ["PASS", "q10", "AC", "GT", "DP", "GQ", "DS"]
SIZES = {INT8: 1, INT16: 2, INT32: 4, FLOAT: 4, CHAR: 1}


# --- writing files --------------------------------------------------------------------------------


#: The filter q10, alone and after PASS.
FAILED = (b"\x11\x01", b"\x21\x00\x01")


def bcf_record(
    rng: random.Random, columns: list[str], n_samples: int, *, lie: bool
) -> tuple[bytes, list[str]]:
    """One record of a BCF from the columns of a VCF; with `lie` one of its fields is wrong.

    Returns
    -------
    bytes, list of str
        The record, and the columns that htslib would write for it.
    """
    chrom, pos, name, ref, alt, _, marks, _, keys, *calls = columns
    keys = keys.split(":")
    rows = [call.split(":") for call in calls]
    kinds = (INT8, INT8, INT8, INT16, INT32)
    formats = []
    for k, key in enumerate(keys):
        values = [row[k] if k < len(row) else "." for row in rows]
        if key == "GT":
            width = max(call.count("/") + call.count("|") for call in values) + 1
            if rng.random() < 0.1:
                width += 1
            kind = rng.choice(kinds)
            formats.append(format_of(KEYS.index("GT"), calls_of(values, kind, width)))
        else:
            kind = rng.choice((INT16, INT32))
            numbers = [UNKNOWN[kind] if value == "." else int(value) for value in values]
            letter = {INT16: "h", INT32: "i"}[kind]
            vector = descriptor(kind, 1) + struct.pack(f"<{len(numbers)}{letter}", *numbers)
            formats.append(format_of(KEYS.index(key), vector))
    alleles: list[bytes | str] = [ref, *([] if alt == "." else alt.split(","))]
    options = {
        "contig": CONTIGS.index(chrom),
        "pos": int(pos),
        "name": "" if name == "." and rng.random() < 0.3 else name,
        "filters": {".": b"\x00", "PASS": b"\x11\x00", "q10": rng.choice(FAILED)}[marks],
        "info": rng.choice(([], [typed([2]) + typed([1] * rng.choice((1, 20, 300)))])),
        "alleles": alleles,
        "n_samples": n_samples,
    }
    if lie:
        _lie(rng, options, formats)
    return record_of(formats, **options), columns


def _lie(rng: random.Random, options: dict, formats: list[bytes]) -> None:
    """Make one field of a record wrong, in place."""
    what = rng.randrange(13)
    values = bytes(rng.choice((0, 1, 2, 3, 4, 5, 6, 0x80, 0x81, 0xFF)) for _ in range(64))
    if what == 0:
        options["contig"] = rng.choice((-1, 4, 5, 2**31 - 1, -(2**31)))
    elif what == 1:
        options["pos"] = rng.choice((0, -1, -5, 2**31 - 1, -(2**31) + 1, 1))
    elif what == 2:
        options["name"] = rng.choice((b"\xe9", b"a\0", b"a\tb", b"\n", b"\r", b"", b"x" * 20))
    elif what == 3:
        odd = (b"", b"\0", b"A\0", b"\xe9", b" ", b"A\n", b"<X>", b"*", b".", b"AA", b"A,C")
        options["alleles"][rng.randrange(len(options["alleles"]))] = rng.choice(odd)
    elif what == 4:
        options["n_alleles"] = rng.choice((0, 1, 2, 3, 65_535))
    elif what == 5:
        options["n_samples"] = max(0, options["n_samples"] + rng.choice((-1, 1, 255, 65_536)))
    elif what == 6:
        options["n_formats"] = rng.choice((0, 1, 2, 255))
    elif what == 7:
        options["longer"] = rng.choice(
            ((1, 0), (0, 1), (-1, 1), (1, -1), (-1, 0), (0, -1), (0, 2**31), (2**31, 0), (4, -4))
        )
    elif what == 8:
        options["filters"] = rng.choice((b"\x07", b"\x21\x00", b"\xf1", b"\xf1\x12\xff\x7f", b""))
    elif what == 9:
        options["info"] = [rng.choice((b"\x11", b"\x11\x02", b"\x00\x00", b"\x11\x02\xf7\x11\xff"))]
    else:  # GT itself
        at = rng.randrange(len(formats))
        width = rng.choice((0, 1, 1, 2, 2, 2, 3, 15))
        kind = rng.choice((0, INT8, INT8, INT8, INT16, INT16, INT32, 4, FLOAT, 6, CHAR, 8, 15))
        size = SIZES.get(kind, 1) * width * options["n_samples"]
        size = max(0, size + rng.choice((0, 0, 0, 0, 1, -1)))
        vector = descriptor(kind, width) + (values * (size // 64 + 1))[:size]
        formats[at] = format_of(rng.choice((3, 3, 3, 4, 77, -1, 2**20)), vector)
        if rng.random() < 0.1:
            formats.append(formats[at])


def bcf_header(rng: random.Random, samples: list[str]) -> str:
    """A header with or without indices; with indices, contigs are in any order."""
    meta = list(META)
    contigs = [f"##contig=<ID={name}>" for name in CONTIGS]
    if rng.random() < 0.7:
        keyed = [line for line in meta[1:] if "<ID=" in line]
        names = [line.split("<ID=")[1].split(",")[0] for line in keyed]
        meta[1:] = [
            f"{line[:-1]},IDX={KEYS.index(name)}>" for line, name in zip(keyed, names, strict=True)
        ]
        contigs = [f"##contig=<ID={name},IDX={k}>" for k, name in enumerate(CONTIGS)]
        rng.shuffle(contigs)
        rng.shuffle(keyed)
    if rng.random() < 0.3:
        meta.insert(1, '##FILTER=<ID=PASS,Description="all, ID=x">')
    lines = [*meta, *contigs] if rng.random() < 0.8 else [meta[0], *contigs, *meta[1:]]
    return "\n".join([*lines, "\t".join([COLUMNS, *samples])]) + "\n"


# --- a slow decoder -------------------------------------------------------------------------------


class Cursor:
    """Reads values from bytes; ValueError if they end too soon or are invalid."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("ends too soon")
        self.at += size
        return self.data[self.at - size : self.at]

    def descriptor(self) -> tuple[int, int]:
        (byte,) = self.take(1)
        kind, length = byte & 15, byte >> 4
        if length == 15:
            (byte,) = self.take(1)
            if byte not in (0x11, 0x12, 0x13):
                raise ValueError("length of no integer")
            length = int.from_bytes(self.take(SIZES[byte & 15]), "little", signed=True)
        if length < 0 or (length and kind not in SIZES):
            raise ValueError("type")
        return kind, length

    def value(self, count: int = 1) -> tuple[int, int, bytes]:
        kind, length = self.descriptor()
        return kind, length, self.take(SIZES[kind] * length * count if length else 0)

    def integer(self) -> int:
        kind, length, raw = self.value()
        if length != 1 or kind not in (INT8, INT16, INT32):
            raise ValueError("no integer")
        return int.from_bytes(raw, "little", signed=True)


def parse_bcf(data: bytes, haploid) -> ParsedVcf:
    """Decode a BCF by the rules of the design, one record and one call at a time.

    Raises
    ------
    ValueError
        With the number of the record, from 1, as the last argument; the header must be valid.
    """
    (size,) = struct.unpack_from("<I", data, 5)
    text = data[9 : 9 + size].rstrip(b"\0").decode().replace("\r\n", "\n")
    samples = text.rstrip("\n").split("\n")[-1].split("\t")[9:]
    contigs, keys = _dictionaries(text)
    names = list(ParsedVcf([]).counts) or [
        *["records", "multiallelic", "indel", "symbolic", "star", "no_alt", "non_acgt", "unplaced"],
        *["snps", "missing", "half_calls", "haploid_calls", "phased", "unphased"],
    ]
    parsed = ParsedVcf(samples, counts=dict.fromkeys(names, 0))
    at, number = 9 + size, 0
    while at < len(data):
        number += 1
        try:
            if at + 8 > len(data):
                raise ValueError("half of its lengths")
            shared, own = struct.unpack_from("<II", data, at)
            if at + 8 + shared + own > len(data):
                raise ValueError("longer than the file")
            middle = at + 8 + shared
            record = (data[at + 8 : middle], data[middle : middle + own])
            _parse_record(*record, number, parsed, contigs, keys, haploid)
        except ValueError as error:
            raise ValueError(*error.args, number) from None
        at = middle + own
    return parsed


def _dictionaries(text: str) -> tuple[dict[int, str], dict[int, str]]:
    """Names of contigs and keys by index, for headers written by `bcf_header`, even if damaged."""
    tables: dict[str, dict[int, str]] = {"contig": {}, "key": {0: "PASS"}}
    for line in text.split("\n"):
        found = re.match(r"##(contig|FILTER|INFO|FORMAT)=<", line)
        if not found:
            continue
        fields: dict[str, str] = {}
        rest = line[found.end() :]
        pattern = r'([^=,<>"]+)=("(?:[^"\\]|\\.)*"|[^,>]*)(?:,|>|$)'
        for match in re.finditer(pattern, rest):
            fields[match[1]] = match[2]
        table = tables["contig" if found[1] == "contig" else "key"]
        if "ID" not in fields or fields["ID"] in table.values():
            continue
        table[int(fields.get("IDX", max(table, default=-1) + 1))] = fields["ID"]
    return tables["contig"], tables["key"]


def _parse_record(shared, own, number, parsed, contigs, keys, haploid) -> None:
    counts = parsed.counts
    counts["records"] += 1
    cursor = Cursor(shared)
    contig, pos, reach, _, first, second = struct.unpack("<iiifII", cursor.take(24))
    n_samples = len(parsed.samples)
    if contig not in contigs:
        raise ValueError("contig")
    if second & 0xFFFFFF != n_samples:
        raise ValueError("samples")
    texts = []
    for k in range(1 + (first >> 16)):
        kind, length, raw = cursor.value()
        if (length and kind != CHAR) or (k > 0 and not re.fullmatch(rb"[!-~]+", raw)):
            raise ValueError("text")
        texts.append(raw)
    name, *alleles = texts
    if not alleles:
        raise ValueError("alleles")
    filters = cursor.value()
    for _ in range(first & 0xFFFF):
        if cursor.integer() < 0:
            raise ValueError("key")
        cursor.value()
    cursor = Cursor(own)
    gt = dp = ds = None
    for _ in range(second >> 24):
        key = cursor.integer()
        if key < 0:
            raise ValueError("key")
        value = cursor.value(n_samples)
        if keys.get(key) == "GT" and gt is None:
            gt = value
        if keys.get(key) == "DP" and dp is None and value[0] != CHAR and value[1] > 0:
            dp = value
        if keys.get(key) == "DS" and ds is None and value[0] != CHAR and value[1] > 0:
            ds = value
    pos += 1
    if not 0 <= pos < 2**31:
        raise ValueError("pos")
    ref, *alts = (allele.decode() for allele in alleles)
    kind = _kind_of_site(ref, ",".join(alts) or ".")
    if kind == "no_alt" and alts in ([], ["."]) and gt is not None and reach > len(ref):
        kind = "reference_blocks"
    if pos == 0:
        kind = "unplaced"
    if kind == "reference_blocks" and not _failed(filters, keys):
        _count_odd(gt, n_samples, haploid, contigs[contig], counts)
    one_allele = kind == "no_alt" and ref in [*"ACGTacgt"] and gt is not None
    one_allele = one_allele and alts in ([], ["."])
    if (kind == "snps" or one_allele) and (failed := _failed(filters, keys)):
        count_filtered(failed, counts)
        return
    if kind != "snps" and not one_allele:
        counts[kind] = counts.get(kind, 0) + 1
        return
    if gt is None or gt[1] == 0 or gt[0] not in (INT8, INT16, INT32):
        raise ValueError("gt")
    chrom = contigs[contig]
    if isinstance(haploid, dict):
        haploid = haploid.get(chrom, haploid.get("default", "error"))
    size = SIZES[gt[0]]
    step = size * gt[1]
    row, phases = [], []
    for k in range(n_samples):
        raw = gt[2][k * step : (k + 1) * step]
        values = [
            int.from_bytes(raw[i : i + size], "little", signed=True) for i in range(0, step, size)
        ]
        row.append(_parse_call(values, UNKNOWN[gt[0]], haploid, counts))
        single = len(values) < 2 or values[1] == UNKNOWN[gt[0]] + 1
        phases.append(-1 if single else values[1] & 1)
    count_one_allele(one_allele, row, counts)
    if dp is not None:
        size = SIZES[dp[0]]
        raws = [dp[2][k * size * dp[1] :][:size] for k in range(n_samples)]
        zero = [not any(raw) or (dp[0] == FLOAT and raw == b"\0\0\0\x80") for raw in raws]
        stated = [False] * n_samples
        if ds is not None:
            size = SIZES[ds[0]]
            stated = [_is_number(ds[0], ds[2][k * size * ds[1] :][:size]) for k in range(n_samples)]
        remove_without_depth(row, ["0" if one else "." for one in zero], phases, counts, stated)
    text = name.decode()  # UnicodeDecodeError is a ValueError
    if re.search("[\0\t\r\n]", text):
        raise ValueError("name")
    counts["snps"] += 1
    parsed.sites.append((chrom, pos, text or ".", ref, (alts or ["."])[0]))
    parsed.lines.append(number)
    parsed.genotypes.append(row)


def _count_odd(gt, n_samples: int, haploid, chrom: str, counts: dict) -> None:
    """Count the calls in a reference block that have other than two alleles, or are malformed."""
    if gt is None or gt[1] == 0 or gt[0] not in (INT8, INT16, INT32):
        return
    if isinstance(haploid, dict):
        haploid = haploid.get(chrom, haploid.get("default", "error"))
    size, unknown = SIZES[gt[0]], UNKNOWN[gt[0]]
    step, odd = size * gt[1], 0
    for k in range(n_samples):
        raw = gt[2][k * step : (k + 1) * step]
        values = [
            int.from_bytes(raw[i : i + size], "little", signed=True) for i in range(0, step, size)
        ]
        if unknown + 1 in values:
            values = values[: values.index(unknown + 1)]
        broken = any(value < 0 and value != unknown for value in values)
        single = len(values) == 1 and values[0] in range(2, 6) and haploid != "diploidize"
        odd += broken or len(values) > 2 or single
    if odd:
        counts["odd_block_calls"] = counts.get("odd_block_calls", 0) + odd


def _is_number(kind: int, raw: bytes) -> bool:
    """Whether a value is none of the codes for one that is not there."""
    if kind == FLOAT:
        return not math.isnan(struct.unpack("<f", raw)[0])
    return int.from_bytes(raw, "little", signed=True) >= UNKNOWN[kind] + 8


def _failed(filters: tuple, keys: dict[int, str]) -> list[str]:
    """Names of the filters of a record that are not PASS."""
    kind, _, raw = filters
    if kind not in (INT8, INT16, INT32):
        return []
    size = SIZES[kind]
    numbers = [
        int.from_bytes(raw[i : i + size], "little", signed=True) for i in range(0, len(raw), size)
    ]
    return failed_filters(";".join(keys.get(n, str(n)) for n in numbers))


def _parse_call(values: list[int], unknown: int, haploid: str, counts: dict) -> int:
    if unknown + 1 in values:
        values = values[: values.index(unknown + 1)]
    if any(value < 0 and value != unknown for value in values):
        raise ValueError("call")
    alleles = [-1 if value == unknown else (value >> 1) - 1 for value in values]
    if len(alleles) > 2 or any(allele > 1 for allele in alleles):
        raise ValueError("alleles of a call")
    if not alleles or -1 in alleles:
        counts["missing"] += 1
        counts["half_calls"] += sorted(alleles) in ([-1, 0], [-1, 1])
        return -1
    if len(alleles) == 1:
        if haploid == "error":
            raise ValueError("haploid")
        counts["haploid_calls"] += 1
        counts["missing"] += haploid == "missing"
        return 2 * alleles[0] if haploid == "diploidize" else -1
    counts["phased" if values[1] & 1 else "unphased"] += 1
    return sum(alleles)


# --- the target -----------------------------------------------------------------------------------


class Bcf:
    """Files of a few records: valid, with a wrong field in a record, or damaged anywhere."""

    name = "bcf"

    def prepare(self, folder: Path) -> None:
        quiet_htslib()
        for seed in range(40):
            check_case(self, self.generate(random.Random(seed)), folder)

    def generate(self, rng: random.Random) -> tuple:
        """(file, haploid policy, bytes per chunk, threads, VCF text or None, header is valid)."""
        how = rng.choice(("sound", "lie", "lie", "lie", "records", "records", "header", "file"))
        samples = random_samples(rng)
        if rng.random() < 0.01:  # longer than a run of the decoder
            samples = [f"S{k}" for k in range(rng.choice((1023, 1024, 1026, 2050)))]
        rows = random_records(rng, len(samples), sound=True)
        header = bcf_header(rng, samples)
        chosen = rng.randrange(len(rows)) if rows and how == "lie" else -1
        records = [
            bcf_record(rng, row, len(samples), lie=k == chosen)[0] for k, row in enumerate(rows)
        ]
        body = b"".join(records)
        raw = header.encode()
        if how == "header":
            raw = damage(rng, raw, 2)
        if how == "records":
            body = damage(rng, body)
        data = bcf_of(raw, [body])
        file = bgzf(data, rng.choice((7, 50, 1000, 60_000))) if rng.random() < 0.5 else data
        if rng.random() < 0.1:
            file = gzip.compress(data, 1, mtime=0)
        if how == "file":
            file = damage(rng, file)
        text = None
        if how == "sound" or (how == "lie" and not rows):
            text = header + "".join("\t".join(row) + "\n" for row in rows)
        chunk = rng.choice((1, 7, 50, 1 << 20, 1 << 20))
        threads = 2 if rng.random() < 0.02 else 1
        return file, rng.choice(POLICIES), chunk, threads, text, how in ("sound", "lie", "records")

    def check(self, case: tuple, folder: Path) -> str:
        file, haploid, chunk, threads, text, sound_header = case
        path = folder / "in.bcf"
        path.write_bytes(file)
        try:
            data = gzip.decompress(file) if file[:2] == b"\x1f\x8b" else file
        except (OSError, EOFError, zlib.error, struct.error):
            data = None
        try:
            header = read_header(path)
        except UserError:
            assert text is None
            raise
        refusal = ""
        try:
            found = read_ours(path, haploid, chunk, threads)
        except UserError as error:
            refusal = str(error)
            assert str(path) in refusal
        if data is None:
            assert refusal, "a damaged compressed file was read"
            raise UserError(refusal)
        if header.kind != "bcf":
            return "not BCF"
        if (" of " in refusal and "the index IDX=" in refusal) or "the contig name" in refusal:
            raise UserError(refusal)
        try:
            expected = parse_bcf(data, haploid)
        except ValueError as error:
            assert refusal, f"not refused: {error!r}"
            assert f"record {error.args[-1]}: " in refusal or "cut short" in refusal, refusal
            raise UserError(refusal) from None
        if refusal:
            assert "cut short" in refusal, refusal  # a file without its last block
            raise UserError(refusal)
        assert header.samples == expected.samples
        assert_same(found, expected)
        if text is None and not sound_header:
            return "equal"
        if text is not None:
            assert_same(found, parse_vcf_text(text, haploid), lines=False)
        try:
            assert_as_htslib(path, found, haploid)
        except AssertionError:
            raise
        except Exception:  # htslib raises a plain Exception for what it refuses
            assert text is None
            return "equal"
        if text is not None and random.Random(file).random() < 0.01:
            self._check_bcftools(path, found, haploid)
            return "as bcftools"
        return "as htslib"

    @staticmethod
    def _check_bcftools(path: Path, found: ParsedVcf, haploid) -> None:
        """The file converted to text by bcftools, and that text converted to BCF, read the same."""
        back, again = path.with_name("back.vcf"), path.with_name("again.bcf")
        for source, out, kind in ((path, back, "v"), (back, again, "b")):
            done = subprocess.run(
                ["bcftools", "view", f"-O{kind}", "-o", str(out), str(source)], capture_output=True
            )
            assert done.returncode == 0, done.stderr
            assert_same(read_ours(out, haploid, 1 << 20, 1), found, lines=False)


TARGETS = [Bcf()]
