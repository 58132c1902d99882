"""Damage text files as editors, spreadsheets, copying and other programs do."""

from __future__ import annotations

import gzip
import random

#: What people and programs put into tables.
ODD = (
    *("NA", "", "0", "1", "2", "-9", "-9.0", "1.0", "nan", "inf", "-inf", "1e999", "1e-6", "0x1"),
    *("constructor", "__proto__", "min", "row", "sample", "PC1", "UMAP2", "community", "keep"),
    *("chr1", "CHR1", "1", "X", "chrX", "23", "*", ".", "-", "#", '"', "'", '"x"', "a b", " x "),
    *("é", "\u00a0x", "x\u200b", "x\u2028y", "\x85", "\x00", "\ufeff", "日本", "😀", "x" * 300),
    *("=1+1", "1,5", "1_000", "２", "²", "\\N", "True", "yes", "no", "none", "{}", "[]", "../x"),
)


def damaged(rng: random.Random, raw: bytes) -> bytes:
    """Return `raw` with one to three changes."""
    for _ in range(rng.randint(1, 3)):
        raw = _changed(rng, raw)
    return raw


def _changed(rng: random.Random, raw: bytes) -> bytes:
    at = rng.randint(0, len(raw))
    kind = rng.randrange(16)
    if kind == 0:
        return raw[:at]
    if kind == 1:
        return raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
    if kind == 2:
        return raw[:at] + rng.choice(ODD).encode() + raw[at:]
    if kind == 3:
        return raw[:at] + raw[at + rng.randint(1, 9) :]
    if kind == 4:
        ends = [b"\r\n", b"\r", b"\n\n", b"\n\t\n", b" \n", b"\t\n"]
        return raw.replace(b"\n", rng.choice(ends))
    if kind == 5:
        return raw.replace(
            b"\t", rng.choice([b" ", b",", b"\t\t", b"  ", b"\t "]), rng.randint(1, 9)
        )
    if kind == 6:
        return rng.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"PK\x03\x04", b"\n\n", b" "]) + raw
    if kind == 7:
        return raw.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-16-le", "utf-32"]))
    if kind == 8:
        return raw.decode("utf-8", "replace").encode("latin-1", "replace")
    lines = raw.split(b"\n")
    line = rng.randrange(len(lines))
    if kind == 9:
        return b"\n".join([*lines[:line], lines[line], *lines[line:]])
    if kind == 10:
        return b"\n".join(lines[:line] + lines[line + 1 :])
    if kind == 11:
        other = rng.randrange(len(lines))
        lines[line], lines[other] = lines[other], lines[line]
        return b"\n".join(lines)
    if kind in (12, 13):
        words = lines[line].split(b"\t")
        words[rng.randrange(len(words))] = rng.choice(ODD).encode()
        lines[line] = b"\t".join(words)
        return b"\n".join(lines)
    if kind == 14:
        return b"\n".join(one + b"\t" * rng.randint(1, 2) for one in lines)
    packed = gzip.compress(raw, mtime=0)
    return packed if rng.random() < 0.5 else packed[: rng.randint(1, len(packed))]
