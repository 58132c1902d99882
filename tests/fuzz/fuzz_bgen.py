"""BGEN files: their calls, compared with a slow reader in Python and with the same calls as VCF."""

from __future__ import annotations

import math
import random
import re
import zlib
from pathlib import Path

from fuzz.mutate import damage, odd
from fuzz.runner import check_case
from numcodecs import Zstd
from support.bgen_files import NONE, ZLIB, ZSTD, bgen_bytes, site_bytes

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.bgen import bgen_text

#: The product of phased alleles is rounded; a case so near the limit of calls is not judged.
LEAST, NEAR = 0.9, 1e-12
HEAD = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"


class Reader:
    """Bytes from the front on; ValueError where there are too few."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, n: int) -> bytes:
        if len(self.raw) < self.at + n:
            raise ValueError("too short")
        self.at += n
        return self.raw[self.at - n : self.at]

    def number(self, n: int) -> int:
        return int.from_bytes(self.take(n), "little")

    def text(self, n: int) -> str:
        return self.take(self.number(n)).decode("utf-8")


def genotypes(ploidy: int, n_alleles: int) -> list[tuple[int, ...]]:
    """Alleles of the genotypes, in the order of the specification."""
    if math.comb(ploidy + n_alleles - 1, ploidy) > 1 << 16:
        raise ValueError("too many genotypes")
    if ploidy == 0:
        return [()]
    return [(*rest, last) for last in range(n_alleles) for rest in genotypes(ploidy - 1, last + 1)]


def parse_bgen(raw: bytes, table: str | None) -> tuple[list[str], list[tuple]]:
    """Names, and of each site the fixed columns and the calls.

    Raises
    ------
    ValueError
        The file cannot be read.
    """
    file = Reader(raw)
    offset, length, n_sites, n_samples = (file.number(4) for _ in range(4))
    if file.take(4) != b"bgen" or length < 20:
        raise ValueError("header")
    file.take(length - 20)
    flags = file.number(4)
    compression = flags & 3
    if flags >> 2 & 15 != 2 or compression == 3:
        raise ValueError("layout or compression")
    if flags >> 31:
        file.take(4)
        if file.number(4) != n_samples:
            raise ValueError("samples")
        names = [file.text(2) for _ in range(n_samples)]
    elif table is None:
        raise ValueError("no names")
    else:
        lines = table.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rows = [row.split() for row in lines[2:] if row.strip()]
        names = [row[1] if len(row) > 1 else "" for row in rows]
        if len(names) != n_samples or "" in names:
            raise ValueError("sample file")
    if any(re.search("[\t\r\n\0]", name) for name in names):
        raise ValueError("name")
    file.at = offset + 4
    return names, [parse_site(file, compression, n_samples) for _ in range(n_sites)]


def parse_site(file: Reader, compression: int, n_samples: int) -> tuple:
    """Columns and calls of the next site; a call is None where it lies at the limit."""
    own, name, chrom = (file.text(2) for _ in range(3))
    position, n_alleles = file.number(4), file.number(2)
    alleles = [file.text(4) for _ in range(n_alleles)]
    if not chrom or not alleles or re.search(r"[\s,]", chrom):
        raise ValueError("contig or alleles")
    if any(not allele or re.search(r"[\s,]", allele) for allele in alleles):
        raise ValueError("allele")
    data = file.take(file.number(4))
    if compression != NONE:
        length = int.from_bytes(Reader(data).take(4), "little")
        try:
            data = (
                zlib.decompress(data[4:]) if compression == ZLIB else bytes(Zstd().decode(data[4:]))
            )
        except (zlib.error, RuntimeError) as error:
            raise ValueError(str(error)) from None
        if len(data) != length:
            raise ValueError("length")
    block = Reader(data)
    if block.number(4) != n_samples or block.number(2) != n_alleles:
        raise ValueError("numbers")
    block.take(2)
    ploidies = list(block.take(n_samples))
    phased, bits = block.take(2)
    if phased > 1 or not 1 <= bits <= 32:
        raise ValueError("phase or bits")
    rest = int.from_bytes(block.raw[block.at :], "little")
    left, one, calls = 8 * (len(data) - block.at), (1 << bits) - 1, []
    for told in ploidies:
        ploidy = told & 63
        own_genotypes = genotypes(ploidy, n_alleles) if not phased else []
        groups = [n_alleles] * ploidy if phased else [len(own_genotypes)]
        chances = []
        for width in groups:
            numbers = [rest >> bits * k & one for k in range(width - 1)]
            rest, left = rest >> bits * (width - 1), left - bits * (width - 1)
            chances.append([*numbers, one - sum(numbers)])
        if left < 0:
            raise ValueError("too few bytes")
        missing = "/|"[phased].join("." * max(1, ploidy))
        if told & 128 or ploidy == 0:
            calls.append(missing)
            continue
        if any(group[-1] < 0 for group in chances):
            raise ValueError("more than 1")
        best = [group.index(max(group)) for group in chances]
        chance = math.prod(max(group) / one for group in chances)
        call = best if phased else own_genotypes[best[0]]
        words = "/|"[phased].join(map(str, call)) if chance >= LEAST else missing
        calls.append(None if abs(chance - LEAST) < NEAR else words)
    name = re.sub(r"\s", "_", name or own) or "."
    fixed = (chrom, str(position), name, alleles[0], ",".join(alleles[1:]) or ".")
    return (*fixed, calls)


class Bgen:
    """A small file: valid, with odd values, or damaged."""

    name = "bgen"

    def prepare(self, folder: Path) -> None:
        for seed in range(40):
            check_case(self, self.generate(random.Random(seed)), folder)

    def generate(self, rng: random.Random) -> tuple:
        """(.bgen, .sample or None, whether the decoded files are compared)."""
        how = rng.choice(("sound", "sound", "values", "bytes", "bytes"))
        compression = rng.choice((NONE, NONE, ZLIB, ZSTD))
        n = rng.choice((1, 2, 3, 4, 5, 9))
        names = [f"s{k}" for k in range(n)]
        ploidies = rng.choice(([2] * n, [2] * n, [1] * n, [4] * n, rng.choices((1, 2, 3), k=n)))
        sites, position = [], 0
        for _ in range(rng.choice((0, 1, 2, 3, 5))):
            position += rng.randrange(3)
            sites.append(self._site(rng, position, list(ploidies), how, compression))
        if how == "values" and rng.random() < 0.3:
            names[rng.randrange(n)] = odd(rng)
        named = rng.random() < 0.7
        table = None
        if not named and rng.random() < 0.9:
            ending = rng.choice(("\n", "\n", "\r\n"))
            rows = ["ID_1 ID_2 missing", "0 0 0", *(f"f {name} 0" for name in names)]
            if rng.random() < 0.1:
                del rows[rng.randrange(len(rows))]
            table = ending.join(rows) + ending * (rng.random() < 0.8)
        layout = 2 if rng.random() < 0.98 else rng.randrange(4)
        raw = bgen_bytes(names, sites, compression=compression, named=named, layout=layout)
        if how == "bytes":
            raw = damage(rng, raw)
        return raw, table, rng.random() < 0.15

    @staticmethod
    def _site(rng: random.Random, position: int, ploidies: list[int], how: str, compression: int):
        alleles = rng.sample(["A", "C", "G", "T", "AT", "<DEL>"], rng.choice((2, 2, 2, 2, 1, 3, 4)))
        chrom, name = rng.choice(("1", "1", "chr1", "X", "é")), rng.choice(("rs1", "", ".", "a b"))
        odd_place = rng.randrange(8) if how == "values" else None
        if odd_place == 0:
            alleles[rng.randrange(len(alleles))] = odd(rng)
        elif odd_place == 1:
            chrom = odd(rng)
        elif odd_place == 2:
            name = odd(rng)
        elif odd_place == 3:
            position = rng.choice((0, (1 << 31) - 1, 1 << 31, (1 << 32) - 1))
        elif odd_place == 4:
            ploidies[rng.randrange(len(ploidies))] = rng.choice((0, 1, 5, 15, 16, 63))
        elif odd_place == 5:
            alleles = [f"A{'C' * k}" for k in range(rng.choice((10, 11, 12)))]
        bits = rng.choice((8, 8, 16, 32, 1, 3, 12))
        phased = rng.random() < 0.4
        one, samples, lengths = (1 << bits) - 1, [], {}
        for ploidy in ploidies:
            groups = ploidy if phased else 1
            try:
                width = len(alleles) if phased else len(genotypes(ploidy, len(alleles)))
            except ValueError:  # more than are read
                width = 2
            lengths[ploidy] = groups * (width - 1)
            numbers: list[int] = []
            for _ in range(groups):
                shares = [0] * width
                best, least = rng.randrange(width), rng.randrange(width)
                shares[best] = rng.choice((one, one, one, round(0.9 * one), rng.randint(0, one)))
                shares[least] += one - sum(shares)
                numbers += shares[:-1]
            if odd_place == 6 and numbers:
                numbers = [rng.randint(0, one) for _ in numbers]
            samples.append((ploidy, None if rng.random() < 0.1 else numbers))
        options = {"bits": bits, "phased": phased, "compression": compression, "lengths": lengths}
        return site_bytes((chrom, position, name, alleles), samples, **options)

    def check(self, case: tuple, folder: Path) -> str:
        raw, table, whole = case
        path = folder / "in.bgen"
        path.write_bytes(raw)
        path.with_suffix(".sample").unlink(missing_ok=True)
        if table is not None:
            path.with_suffix(".sample").write_bytes(table.encode())
        try:
            names, rows = parse_bgen(raw, table)
        except ValueError as error:
            try:
                for _ in bgen_text(path)[1]:
                    pass
            except UserError as refusal:
                assert str(folder / "in.") in str(refusal)
                raise
            raise AssertionError(f"not refused: {error}") from None
        if any(None in calls for *_, calls in rows):
            return "at the limit"
        lines = ["\t".join([*fixed, ".", ".", ".", "GT", *calls]) for *fixed, calls in rows]
        head, records = bgen_text(path)
        found = b"".join(records).decode().split("\n")
        assert found == [*lines, ""], f"{found}, not {lines}"
        assert head.decode().split("\n")[-2] == "\t".join([HEAD, *names])
        return self._check_written(folder, names, lines) if whole else "equal"

    @staticmethod
    def _check_written(folder: Path, names: list[str], lines: list[str]) -> str:
        """The decoded cohort has the bytes of the same calls in a VCF."""
        text = ["##fileformat=VCFv4.2", "\t".join([HEAD, *names]), *lines, ""]
        (folder / "same.vcf").write_bytes("\n".join(text).encode())
        try:
            expected = ingest_cohort(folder / "same.vcf", folder / "theirs").as_dict()
        except UserError:
            ingest_cohort(folder / "in.bgen", folder / "ours")  # a UserError reports this
            raise AssertionError("the same VCF is refused") from None
        assert ingest_cohort(folder / "in.bgen", folder / "ours").as_dict() == expected
        for end in (".bed", ".bim", ".fam"):
            both = [(folder / f"{kind}{end}").read_bytes() for kind in ("ours", "theirs")]
            assert both[0] == both[1], end
        return "written"


TARGETS = [Bgen()]
