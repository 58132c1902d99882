"""A .bed of lists, read slowly by the definition in io/listed_rows.py and listed_rows_cpu.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def read_lists(path: Path) -> tuple[np.ndarray, list[int]]:
    """Genotypes (n_sites, n_samples) of a file, and the bytes of each record."""
    raw = path.read_bytes()
    assert raw.startswith(b"popdesic lists\n")
    numbers = [int.from_bytes(raw[15 + 8 * k : 23 + 8 * k], "little") for k in range(4)]
    bytes_of_rows, n_sites, n_samples, n_bytes = numbers
    width = -(-n_samples // 4)
    assert bytes_of_rows == 3 + n_sites * width
    records, blocks = raw[47 : 47 + n_bytes], raw[47 + n_bytes :]
    assert len(blocks) == 8 * (-(-n_sites // 64) + 1)
    at, starts, sizes = 0, [], []
    found = np.empty((n_sites, n_samples), np.int8)

    def take() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = records[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    for site in range(n_sites):
        begun = at
        starts += [begun] * (site % 64 == 0)
        n_hets, kind = divmod(take(), 4)
        if kind == 3:
            row = records[at : at + width]
            at += width
            codes = [row[k // 4] >> 2 * (k % 4) & 3 for k in range(n_samples)]
            found[site] = [{0: 2, 1: -1, 2: 1, 3: 0}[code] for code in codes]
        else:
            counts = [n_hets, take(), take()] if kind else [n_hets]
            found[site] = 2 if kind == 2 else 0
            for n, value in zip(counts, (1, 0 if kind == 2 else 2, -1), strict=False):
                sample = -1
                for _ in range(n):
                    sample += take() + 1
                    found[site, sample] = value
        sizes.append(at - begun)
    assert at == n_bytes
    wanted = np.array([*starts, at], "<i8").tobytes()
    assert blocks == wanted
    return found, sizes
