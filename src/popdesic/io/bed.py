"""PLINK 1 files: .bed memory-mapped, .bim and .fam as tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from .columns import (
    FAM_COLUMNS,
    TABLE_ROWS,
    count_lines,
    iterate_columns,
    read_positions,
    require_unique_names,
)
from .errors import UserError
from .files import atomic_path, beside, open_regular
from .genotypes import BED_MAGIC, bed_row_bytes

BIM_COLUMNS = ["chrom", "id", "cm", "pos", "alt", "ref"]


def read_bim(prefix: Path | str) -> pd.DataFrame:
    """Read {prefix}.bim.

    Returns
    -------
    DataFrame with columns chrom, id, cm, pos, alt, ref
        (n_sites) rows; pos is int64, all others are strings exactly as in the file.

    Raises
    ------
    UserError
        The file is missing, or a line does not have six columns or an integer position below 2**31.
    """
    return pd.concat(iterate_bim(prefix))


def iterate_bim(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of `read_bim` in parts of at most `n_rows` rows, at least one part."""
    n_before = 0
    for columns in iterate_bim_columns(prefix, n_rows):
        rows = pd.RangeIndex(n_before, n_before + len(columns["pos"]))
        n_before = rows.stop
        positions = columns.pop("pos")
        table = pd.DataFrame(columns, rows, dtype=str)
        table.insert(BIM_COLUMNS.index("pos"), "pos", positions)
        yield table


def iterate_bim_columns(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[dict]:
    """Yield the parts of `iterate_bim` as columns by name: lists of str, and int64 `pos`."""
    path = beside(prefix, ".bim")
    n_before = 0
    for columns in _iterate(path, BIM_COLUMNS, n_rows):
        columns["pos"] = read_positions(path, columns["pos"], n_before)
        n_before += len(columns["pos"])
        yield columns


def read_fam(prefix: Path | str) -> pd.DataFrame:
    """Read {prefix}.fam.

    Returns
    -------
    DataFrame with columns family, sample, father, mother, sex, phenotype
        (n_samples) rows of strings exactly as in the file.

    Raises
    ------
    UserError
        The file is missing, or a line does not have six columns.
    """
    parts = _iterate(beside(prefix, ".fam"), FAM_COLUMNS, TABLE_ROWS)
    return pd.concat([pd.DataFrame(part, dtype=str) for part in parts], ignore_index=True)


def write_fam(prefix: Path | str, fam: pd.DataFrame) -> None:
    """Write the table of `read_fam` to {prefix}.fam, atomically."""
    with atomic_path(beside(prefix, ".fam")) as temporary:
        lines = map("\t".join, fam[FAM_COLUMNS].itertuples(index=False))
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _iterate(path: Path, names: list[str], n_rows: int) -> Iterator[dict[str, list[str]]]:
    try:
        yield from iterate_columns(path, names, n_rows)
    except FileNotFoundError:
        raise _missing_file(path) from None


def _missing_file(path: Path) -> UserError:
    return UserError(f"{path} does not exist; .bed, .bim and .fam must be in the same folder.")


def read_plink_samples(prefix: Path | str) -> tuple[list[str], list[str]]:
    """Return the sample names (second column) and sex codes of {prefix}.fam.

    Raises
    ------
    UserError
        The .fam is missing or malformed, has no samples, or repeats a name.
    """
    fam = read_fam(prefix)
    path = beside(prefix, ".fam")
    names = fam["sample"].tolist()
    require_unique_names(path, names)
    return names, fam["sex"].tolist()


def open_bed(
    prefix: Path | str, *, n_samples: int | None = None, n_sites: int | None = None
) -> np.ndarray:
    """Memory-map the genotypes of {prefix}.bed, read-only.

    Parameters
    ----------
    n_samples, n_sites : int, optional
        By default the number of lines of .fam and .bim.

    Returns
    -------
    (n_sites, ceil(n_samples / 4)) uint8
        PLINK 1 two-bit codes; see `popdesic.io.genotypes`.

    Raises
    ------
    UserError
        A file is missing, or the .bed has a wrong magic number or size.
    """
    path = beside(prefix, ".bed")
    n_samples = _count(beside(prefix, ".fam")) if n_samples is None else n_samples
    n_sites = _count(beside(prefix, ".bim")) if n_sites is None else n_sites
    try:
        with open_regular(path) as file:
            magic = file.read(len(BED_MAGIC))
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise _missing_file(path) from None
    if magic == BED_MAGIC[:2] + b"\x00":
        raise UserError(f"{path} is in sample-major order; write it again with plink --make-bed.")
    if magic != BED_MAGIC:
        raise UserError(
            f"{path} is not a PLINK 1 .bed file: it starts with {magic.hex(' ') or 'nothing'}, "
            f"not with {BED_MAGIC.hex(' ')}; write it again with plink --make-bed."
        )
    shape = (n_sites, bed_row_bytes(n_samples))
    expected = len(BED_MAGIC) + shape[0] * shape[1]
    if size != expected:
        raise UserError(
            f"{path} has {size} bytes where {n_sites} sites of {n_samples} samples take "
            f"{expected}; make sure that .bed, .bim and .fam belong together and are complete."
        )
    if 0 in shape:
        return np.empty(shape, np.uint8)
    return np.memmap(path, np.uint8, "r", offset=len(BED_MAGIC), shape=shape)


def _count(path: Path) -> int:
    try:
        return count_lines(path)
    except FileNotFoundError:
        raise _missing_file(path) from None
