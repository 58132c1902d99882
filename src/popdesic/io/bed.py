"""PLINK 1 files: .bed memory-mapped, .bim and .fam as tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from .columns import TABLE_ROWS, iterate_columns, read_positions
from .errors import UserError
from .files import atomic_path, open_regular
from .genotypes import BED_MAGIC, bed_row_bytes

BIM_COLUMNS = ["chrom", "id", "cm", "pos", "alt", "ref"]
FAM_COLUMNS = ["family", "sample", "father", "mother", "sex", "phenotype"]


def beside(prefix: Path | str, suffix: str) -> Path:
    """Return prefix + suffix; unlike `Path.with_suffix` this keeps dots in the prefix."""
    return Path(f"{prefix}{suffix}")


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
    n_samples = count_lines(beside(prefix, ".fam")) if n_samples is None else n_samples
    n_sites = count_lines(beside(prefix, ".bim")) if n_sites is None else n_sites
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


def count_lines(path: Path) -> int:
    """Return the number of lines of a file, of which the last may lack its newline."""
    try:
        with open_regular(path) as file:
            n_lines = 0
            last = b"\n"
            while block := file.read(1 << 20):
                n_lines += block.count(b"\n")
                last = block[-1:]
            return n_lines + (last != b"\n")
    except FileNotFoundError:
        raise _missing_file(path) from None
