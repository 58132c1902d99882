"""PLINK files of given genotypes, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from popdesic.io.genotypes import BED_MAGIC, pack_bed


def write_plink(
    prefix: Path,
    genotypes: np.ndarray,
    names: Sequence[str],
    chrom: Sequence[str] | None = None,
    pos: Sequence[int] | None = None,
) -> None:
    """Write .bed, .bim and .fam of genotypes (n_sites, n), by default 100 kb apart."""
    n_sites = len(genotypes)
    chrom = ["1"] * n_sites if chrom is None else chrom
    pos = [100_000 * (i + 1) for i in range(n_sites)] if pos is None else pos
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    places = enumerate(zip(chrom, pos, strict=True))
    prefix.with_suffix(".bim").write_text(
        "".join(f"{c}\tsite{i}\t0\t{p}\tA\tG\n" for i, (c, p) in places)
    )
    prefix.with_suffix(".fam").write_text("".join(f"0\t{s}\t0\t0\t0\t-9\n" for s in names))
