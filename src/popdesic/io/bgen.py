"""Read BGEN files (layout 2, version 1.2 and 1.3) as the text of a VCF with hard calls.

A call is the most probable genotype if its probability is at least `LEAST`, else it is missing.
The text goes through the reader of VCF, so its rules of ploidy, alleles and classes of sites hold.
Nothing compiled is imported here before a file is opened.

Format: https://www.chg.ox.ac.uk/~gav/bgen_format/spec/latest.html
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ..core.errors import UserError

#: What stands at byte 16, and the end of a file's name.
MAGIC, MAGIC_AT, BGEN_END = b"bgen", 16, ".bgen"
#: A genotype, or a phased pair of alleles, of this probability is called.
LEAST = 0.9
#: Sites at the begin of a file by which its calls are judged, and the most genotypes of them.
JUDGED, JUDGED_GENOTYPES = 1000, 5_000_000
#: Most bytes of one site's probabilities, so that damaged files do not fill the memory.
MOST_BYTES = 1 << 30
#: Genotypes of one site: ploidy 15 with 6 alleles has 15 504.
MOST_GENOTYPES = 1 << 16
_NO_COMPRESSION, _ZLIB, _ZSTD = range(3)
_HEAD = "\n".join(
    [
        "##fileformat=VCFv4.2",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT",
    ]
)


class BgenHeader(NamedTuple):
    """Where the first site is, how many sites there are, their compression, and the samples."""

    first: int
    n_sites: int
    compression: int
    samples: list[str]


class Site(NamedTuple):
    """A site: what a VCF says of it, and the probabilities of each sample's genotypes.

    `ploidy` is int (n_samples), `missing` bool (n_samples). `chances` holds, by ploidy, the samples
    (n) and their probabilities: (n, n_genotypes), or (n, ploidy, n_alleles) if `phased`.
    """

    chrom: str
    pos: int
    name: str
    alleles: list[str]
    ploidy: np.ndarray
    missing: np.ndarray
    phased: bool
    chances: dict[int, tuple[np.ndarray, np.ndarray]]

    @property
    def place(self) -> str:
        return f"site {self.chrom}:{self.pos} ({self.name})"


def bgen_text(path: Path) -> tuple[bytes, Iterator[bytes]]:
    """Header of the VCF of a BGEN file, and its records one by one.

    Raises
    ------
    UserError
        The file is of another layout, cut short or damaged, or its samples have no names.
    """
    header = read_bgen_header(path)
    return ("\t".join([_HEAD, *header.samples]) + "\n").encode(), _records(path)


def read_bgen_header(path: Path) -> BgenHeader:
    """Read the header and the names of samples, which may be in a .sample file beside it."""
    with open(path, "rb") as file:
        offset, length, n_sites, n_samples, magic = struct.unpack("<4I4s", _take(file, 20, path))
        if magic != MAGIC or length < 20:
            raise _damaged(path, "the header has another form")
        _take(file, length - 20, path)
        flags = _number(file, "<I", path)
        layout, compression = flags >> 2 & 15, flags & 3
        if layout != 2:
            raise UserError(
                f"{path} is BGEN of layout {layout}, but only 2 can be read; write it again, for "
                "example with plink2 --export bgen-1.2."
            )
        if compression > _ZSTD:
            raise _damaged(path, f"compression {compression} is not known")
        names = None
        if flags >> 31:
            _take(file, 4, path)
            if (found := _number(file, "<I", path)) != n_samples:
                raise _damaged(path, f"{found} samples have names, of {n_samples}")
            names = [_text(file, "<H", path) for _ in range(n_samples)]
    if names is None:
        names = _sample_file(path, n_samples)
    if wrong := next((one for one in names if re.search(r"[\t\r\n\0]", one)), None):
        raise UserError(f"{path}: the sample name {wrong!r} has a tab or line end; rename it.")
    return BgenHeader(offset + 4, n_sites, compression, names)


def _sample_file(path: Path, n_samples: int) -> list[str]:
    """Names in the second column of a .sample file, below two lines of titles."""
    table = path.with_suffix(".sample")
    if not table.is_file():
        raise UserError(
            f"{path} has no names of samples, and there is no {table.name} beside it; add that "
            "file, or write the BGEN again with names."
        )
    lines = table.read_text(encoding="utf-8", errors="replace").split("\n")[2:]
    rows = [line.split() for line in lines if line.strip()]
    if len(rows) != n_samples or any(len(row) < 2 for row in rows):
        raise UserError(
            f"{table} names {len(rows)} samples below its two lines of titles, but {path.name} has "
            f"{n_samples}; give the .sample file that belongs to it."
        )
    return [row[1] for row in rows]


def bgen_sites(path: Path) -> Iterator[Site]:
    """Yield the sites of a file in order.

    Raises
    ------
    UserError
        A site is cut short or damaged, or the probabilities of a sample add up to more than 1; the
        sentence names the site and the sample.
    """
    header = read_bgen_header(path)
    with open(path, "rb") as file:
        file.seek(header.first)
        for number in range(header.n_sites):
            try:
                yield _site(file, header, path)
            except (struct.error, zlib.error, ValueError, RuntimeError, IndexError) as error:
                raise _damaged(path, f"site {number + 1}: {error}") from None


def _site(file: BinaryIO, header: BgenHeader, path: Path) -> Site:
    name, rsid, chrom = (_text(file, "<H", path) for _ in range(3))
    pos, n_alleles = _number(file, "<I", path), _number(file, "<H", path)
    alleles = [_text(file, "<I", path) for _ in range(n_alleles)]
    name = re.sub(r"\s", "_", rsid or name) or "."
    if not (chrom and alleles and all(alleles)) or re.search(r"\s|,", "".join([chrom, *alleles])):
        raise ValueError(f"its contig {chrom!r} or its alleles {alleles} are no names")
    size = _number(file, "<I", path)
    data, length = _take(file, size, path), size
    if header.compression != _NO_COMPRESSION:
        (length,), data = struct.unpack_from("<I", data), data[4:]
        if length > MOST_BYTES:
            raise ValueError(f"{length} bytes of genotypes")
        inflate = zlib.decompressobj().decompress if header.compression == _ZLIB else _zstd
        data = inflate(data, length + 1)
    if len(data) != length:
        raise ValueError(f"{len(data)} bytes of genotypes, of {length}")
    n_samples, told, *_ = struct.unpack_from("<IH2B", data)
    if n_samples != len(header.samples) or told != n_alleles:
        raise ValueError(f"{n_samples} samples and {told} alleles in its genotypes")
    flags = np.frombuffer(data, np.uint8, n_samples, 8)
    phased, bits = data[8 + n_samples], data[9 + n_samples]
    if phased > 1 or not 1 <= bits <= 32:
        raise ValueError(f"phase {phased} and {bits} bits are not known")
    ploidy, missing = (flags & 63).astype(np.int64), flags >= 128
    widths = {z: _width(z, n_alleles, bool(phased)) for z in np.unique(ploidy).tolist()}
    stored = np.zeros(64, np.int64)
    stored[[*widths]] = [*widths.values()]
    starts = np.concatenate([[0], np.cumsum(stored[ploidy])])
    values = _unpacked(data[10 + n_samples :], bits, int(starts[-1]))
    found = Site(chrom, pos, name, alleles, ploidy, missing, bool(phased), {})
    for z, width in widths.items():
        who = np.flatnonzero((ploidy == z) & ~missing)
        own = values[starts[who][:, None] + np.arange(width)]
        if phased:
            own = own.reshape(len(who), z, n_alleles - 1)
        rest = (1 << bits) - 1 - own.sum(axis=-1, keepdims=True)
        if (rest < 0).any():
            sample = header.samples[who[np.nonzero(rest < 0)[0][0]]]
            raise UserError(
                f"{path}, {found.place}: the probabilities of sample {sample!r} add up to more "
                "than 1, so its dosage has no meaning; write the file again."
            )
        found.chances[z] = who, np.concatenate([own, rest], axis=-1) / ((1 << bits) - 1)
    return found


def _width(ploidy: int, n_alleles: int, phased: bool) -> int:
    """Stored probabilities of a sample."""
    if phased:
        return ploidy * (n_alleles - 1)
    return len(genotypes_by_pl(ploidy, n_alleles)) - 1


@lru_cache(maxsize=64)
def genotypes_by_pl(ploidy: int, n_alleles: int) -> tuple[tuple[int, ...], ...]:
    """Alleles of each genotype, in the order of BGEN, which is that of PL in VCF."""
    if math.comb(ploidy + n_alleles - 1, ploidy) > MOST_GENOTYPES:
        raise ValueError(f"ploidy {ploidy} with {n_alleles} alleles is more than can be read")
    every = combinations_with_replacement(range(n_alleles), ploidy)
    return tuple(sorted(every, key=lambda one: one[::-1]))


def _unpacked(data: bytes, bits: int, n: int) -> np.ndarray:
    """`n` numbers of `bits` bits each, lowest bit first: int64."""
    if len(data) * 8 < n * bits:
        raise ValueError(f"{len(data)} bytes of probabilities are too few")
    if bits in (8, 16, 32):
        return np.frombuffer(data, f"<u{bits // 8}", n).astype(np.int64)
    one = np.unpackbits(np.frombuffer(data, np.uint8), count=n * bits, bitorder="little")
    return one.reshape(n, bits) @ (1 << np.arange(bits, dtype=np.int64))


def hard_calls(site: Site) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Which samples are called: bool (n_samples); and the calls of all, by ploidy.

    The calls are (n, ploidy) alleles of the samples in `site.chances`.
    """
    called = np.zeros(len(site.ploidy), bool)
    calls = {}
    for z, (who, chances) in site.chances.items():
        best = chances.argmax(axis=-1)
        if site.phased:
            calls[z] = best
            called[who] = (z > 0) & (chances.max(axis=-1).prod(axis=-1) >= LEAST)
        else:
            table = genotypes_by_pl(z, len(site.alleles))
            calls[z] = np.array(table, np.int64).reshape(len(table), z)[best]
            called[who] = (z > 0) & (chances.max(axis=-1) >= LEAST)
    return called, calls


def _records(path: Path) -> Iterator[bytes]:
    """The records as text."""
    for site in bgen_sites(path):
        alt = ",".join(site.alleles[1:]) or "."
        fixed = [site.chrom, str(site.pos), site.name, site.alleles[0], alt, ".", ".", ".", "GT"]
        yield b"".join(["\t".join(fixed).encode(), _calls(site), b"\n"])


def _calls(site: Site) -> bytes:
    """The calls of a site as text, each after a tab."""
    called, calls = hard_calls(site)
    between = ord("|" if site.phased else "/")
    if len(site.chances) == 1 and len(site.alleles) <= 10 and (z := next(iter(site.chances))):
        text = np.full((len(called), z, 2), between, np.uint8)
        text[:, 0, 0] = ord("\t")
        text[:, :, 1] = ord(".")
        who, _ = site.chances[z]
        good = called[who]
        text[who[good], :, 1] = calls[z][good] + ord("0")
        return text.tobytes()
    texts = [chr(between).join(["."] * max(1, z)) for z in site.ploidy.tolist()]
    for z, (who, _) in site.chances.items():
        for sample, alleles in zip(who.tolist(), calls[z].tolist(), strict=True):
            if called[sample]:
                texts[sample] = chr(between).join(map(str, alleles))
    return "".join("\t" + one for one in texts).encode()


def remarks_on_bgen(path: Path) -> list[str]:
    """What the rule of calls costs at the first sites: calls, and the expected r²."""
    n, n_called, scores = 0, 0, []
    n_samples = len(read_bgen_header(path).samples)
    n_judged = min(JUDGED, 1 + JUDGED_GENOTYPES // (1 + n_samples))
    for site in islice(bgen_sites(path), n_judged):
        n += len(site.missing)
        n_called += int(hard_calls(site)[0].sum())
        scores.append(expected_r2(site))
    known = [one for one in scores if not np.isnan(one)]
    words = f", whose expected r² with the genotypes is {np.mean(known):.3f}" if known else ""
    return [
        f"{path} holds probabilities: the most probable genotype is the call if it has at least "
        f"{LEAST:g}, else the call is missing. At the first {len(scores)} sites "
        f"{n_called / max(n, 1):.1%} of the genotypes are called{words}."
    ]


def expected_r2(site: Site) -> float:
    """Expected r² of hard calls with genotypes, among called samples; NaN if none vary.

    Numbers of REF alleles are correlated. The genotypes have the mean and the variance of their
    probabilities: r² = cov(call, mean)² / (var(call) · (var(mean) + mean(variance))).
    """
    called, calls = hard_calls(site)
    given, means, variances = [], [], []
    for z, (who, chances) in site.chances.items():
        good = called[who]
        given.append((calls[z][good] == 0).sum(axis=1))
        if site.phased:
            each = chances[good][:, :, 0]
            means.append(each.sum(axis=1))
            variances.append((each * (1 - each)).sum(axis=1))
        else:
            counts = np.array([one.count(0) for one in genotypes_by_pl(z, len(site.alleles))])
            means.append(chances[good] @ counts)
            variances.append(chances[good] @ counts**2 - means[-1] ** 2)
    call, mean, variance = map(np.concatenate, (given, means, variances))
    if len(call) == 0 or not (below := call.var() * (mean.var() + variance.mean())) > 0:
        return float("nan")
    return float(np.mean((call - call.mean()) * (mean - mean.mean())) ** 2 / below)


def _zstd(data: bytes, room: int) -> bytes:
    from numcodecs import Zstd  # comes with zarr

    try:  # a buffer that is too large would be filled with zeros, so one byte less must not do
        Zstd().decode(data, bytearray(max(room - 2, 0)))
    except (RuntimeError, ValueError):
        return bytes(Zstd().decode(data, bytearray(room - 1)))
    raise ValueError(f"fewer than {room - 1} bytes of genotypes")


def _number(file: BinaryIO, form: str, path: Path) -> int:
    return struct.unpack(form, _take(file, struct.calcsize(form), path))[0]


def _text(file: BinaryIO, form: str, path: Path) -> str:
    """A text after its length."""
    try:
        return _take(file, _number(file, form, path), path).decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged(path, "a name is not UTF-8") from None


def _take(file: BinaryIO, n: int, path: Path) -> bytes:
    data = file.read(n)
    if len(data) < n:
        raise _damaged(path, "it ends early")
    return data


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"{path} is damaged or no BGEN file ({why}); copy or write it again.")
