"""BGEN files that tests write, by its specification (layout 2)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from numcodecs import Zstd

NONE, ZLIB, ZSTD = range(3)


def short(text: str, form: str = "<H") -> bytes:
    return struct.pack(form, len(text.encode())) + text.encode()


def packed(numbers: Sequence[int], bits: int) -> bytes:
    """Numbers of `bits` bits one after the other, the lowest bit first."""
    whole = sum(number << (bits * k) for k, number in enumerate(numbers))
    return whole.to_bytes(-(-bits * len(numbers) // 8), "little")


def site_bytes(
    where: tuple[str, int, str, list[str]],
    samples: Sequence[tuple[int, Sequence[int] | None]],
    *,
    bits: int = 8,
    phased: bool = False,
    compression: int = ZLIB,
    lengths: dict[int, int] | None = None,
) -> bytes:
    """One site.

    Parameters
    ----------
    where : tuple
        Contig, position, name, alleles.
    samples : sequence
        Ploidy of each sample, and the numbers that are stored; None: missing.
    lengths : dict, optional
        How many numbers a missing sample has, by ploidy.
    """
    chrom, pos, name, alleles = where
    text = short("id") + short(name) + short(chrom) + struct.pack("<IH", pos, len(alleles))
    text += b"".join(short(one, "<I") for one in alleles)
    ploidies = [ploidy for ploidy, _ in samples]
    data = struct.pack("<IH2B", len(samples), len(alleles), min(ploidies), max(ploidies))
    data += bytes(ploidy | 128 * (own is None) for ploidy, own in samples)
    stored: list[int] = []
    for ploidy, own in samples:
        stored += [0] * (lengths or {})[ploidy] if own is None else own
    data += bytes([phased, bits]) + packed(stored, bits)
    if compression == NONE:
        return text + struct.pack("<I", len(data)) + data
    small = zlib.compress(data) if compression == ZLIB else bytes(Zstd().encode(data))
    return text + struct.pack("<II", len(small) + 4, len(data)) + small


def bgen_bytes(
    names: Sequence[str],
    sites: Sequence[bytes],
    *,
    compression: int = ZLIB,
    named: bool = True,
    layout: int = 2,
) -> bytes:
    """A file; its samples have names in it if `named`."""
    free = b"made by a test"
    length = 20 + len(free)
    block = b"".join(map(short, names))
    listed = struct.pack("<II", len(block) + 8, len(names)) + block if named else b""
    flags = compression | layout << 2 | named << 31
    head = struct.pack("<I2I4s", length, len(sites), len(names), b"bgen") + free
    head += struct.pack("<I", flags) + listed
    return struct.pack("<I", len(head)) + head + b"".join(sites)


def write_bgen(path: Path, names: Sequence[str], sites: Sequence[bytes], **options: int) -> Path:
    """Write `bgen_bytes`."""
    path.write_bytes(bgen_bytes(names, sites, **options))
    return path
