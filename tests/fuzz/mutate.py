"""Random damage to bytes and texts."""

from __future__ import annotations

import random

#: Bytes that readers may mishandle.
ODD_BYTES = [0, 9, 10, 13, 32, 34, 35, 44, 46, 47, 48, 58, 124, 0x7F, 0x80, 0x81, 0xE9, 0xFF]
#: Values inserted where they are not allowed.
ODD_VALUES = [
    "", " ", ".", "-1", "0", "1", "2147483647", "2147483648", "4294967296", "9223372036854775808",
    "1e30", "1e5", "1.5", "nan", "inf", "NA", '"', '"x"', "'", "\\", "\0", "a\0b", "\r", "a\rb",
    "\x0b", "\x85", "\u2028", "é", "\ufeff", "#", "#CHROM", "<X>", "*", "A,C", "GT", "0/1", "0|2",
    "1/1/1", "./.", "x" * 300, "0" * 11, "+5", "5 ", "\u0665", "0x10", "1_000", ":", "0/0:1:2:3",
]  # fmt: skip


def damage(rng: random.Random, data: bytes, most: int = 4) -> bytes:
    """Flip, set, remove, insert, repeat or truncate some of the bytes."""
    content = bytearray(data)
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(8)
        if kind <= 1 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif kind <= 3 and at < len(content):
            content[at] = rng.choice(ODD_BYTES)
        elif kind == 4:
            del content[at : at + rng.choice((1, 1, 2, 4, 40))]
        elif kind == 5:
            content[at:at] = bytes(rng.choice(ODD_BYTES) for _ in range(rng.randint(1, 4)))
        elif kind == 6:
            content[at:at] = content[max(0, at - rng.randint(1, 60)) : at]
        elif rng.randrange(4) == 0:
            del content[at:]
    return bytes(content)


def odd(rng: random.Random) -> str:
    """An odd value."""
    return rng.choice(ODD_VALUES)
