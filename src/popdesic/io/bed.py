"""PLINK 1 files: .bed memory-mapped, .bim and .fam as tables.

A .bed of results need not have the rows of a user's .bed again: it can name them (`name_rows`). It
can also have lists of carriers (`listed_rows`).
"""

import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import (
    LISTED_ROWS,
    NAMED_ROWS,
    atomic_path,
    beside,
    checksum_of,
    checksum_path,
    named_rows,
    open_regular,
    read_json,
)
from .alleles import FIRST_ROWS, are_numbered
from .columns import (
    FAM_COLUMNS,
    TABLE_ROWS,
    count_lines,
    iterate_columns,
    missing_file,
    read_positions,
    require_unique_names,
)
from .genotypes import BED_MAGIC, bed_row_bytes, take_samples
from .layers import columns_of, layers_in
from .listed_rows import ListedRows

#: Bytes of a user's .bed from which on results name its rows: a copy of a smaller one is cheap.
LEAST_NAMED = 1 << 20
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
    for columns in iterate_columns(path, BIM_COLUMNS, n_rows):
        columns["pos"] = read_positions(path, columns["pos"], n_before)
        n_before += len(columns["pos"])
        yield columns


def numbered_bim(prefix: Path | str) -> bool:
    """`are_numbered` of {prefix}.bim."""
    return are_numbered(iterate_bim_columns(prefix, FIRST_ROWS), beside(prefix, ".bim"))


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
    parts = iterate_columns(beside(prefix, ".fam"), FAM_COLUMNS)
    return pd.concat([pd.DataFrame(part, dtype=str) for part in parts], ignore_index=True)


def write_fam(prefix: Path | str, fam: pd.DataFrame) -> None:
    """Write the table of `read_fam` to {prefix}.fam, atomically."""
    with atomic_path(beside(prefix, ".fam")) as temporary:
        lines = map("\t".join, fam[FAM_COLUMNS].itertuples(index=False))
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")


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
) -> "np.ndarray | ChosenRows | ListedRows":
    """Memory-map the genotypes of {prefix}.bed, or of the one whose rows it names, read-only.

    Rows of a .bed of lists are made when they are read.

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
        A file is missing, the .bed has a wrong magic number or size, or the one whose rows it names
        is another one now.
    """
    path = beside(prefix, ".bed")
    n_samples = _count(beside(prefix, ".fam")) if n_samples is None else n_samples
    n_sites = _count(beside(prefix, ".bim")) if n_sites is None else n_sites
    try:
        with open_regular(path) as file:
            first = file.read(len(LISTED_ROWS))
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise missing_file(path) from None
    magic = first[: len(BED_MAGIC)]
    if first == LISTED_ROWS:
        return ListedRows(path, n_samples, n_sites)
    if magic == NAMED_ROWS[: len(BED_MAGIC)]:
        return _open_named(path, n_sites, bed_row_bytes(n_samples))
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


def forget_pages(bed: "np.ndarray | ChosenRows | ListedRows | ChosenSamples") -> None:
    """Give back the memory of what was read of the memory-mapped rows of a .bed."""
    while isinstance(bed, ChosenRows | ListedRows | ChosenSamples):
        bed = bed.source
    while isinstance(bed, np.ndarray):
        bed = bed.base
    if isinstance(bed, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        bed.madvise(mmap.MADV_DONTNEED)


def name_rows(path: Path, bed: Path, rows: np.ndarray, row_bytes: int) -> None:
    """Write a .bed that names rows of another one, which has to stay as it is.

    Two lines, NAMED_ROWS and JSON, then the numbers of the rows.

    Parameters
    ----------
    rows : int64 array, (n_sites,)
        Rising row numbers in `bed`, from 0.
    """
    found = bed.resolve()
    if not bed.is_absolute():  # it moves with the study
        found = os.path.relpath(found, path.parent.resolve())
    content, size = checksum_of(bed).split()
    n_bytes = len(BED_MAGIC) + len(rows) * row_bytes
    about = {"bed": str(found), "size": int(size), "content": content, "bytes": n_bytes}
    path.write_bytes(NAMED_ROWS + f"{json.dumps(about)}\n".encode() + rows.tobytes())


def _open_named(path: Path, n_sites: int, row_bytes: int) -> "np.ndarray | ChosenRows":
    about = named_rows(path) or {}
    with open(path, "rb") as file:
        file.seek(len(NAMED_ROWS))
        file.readline()
        numbers = file.read()
    meant = len(BED_MAGIC) + n_sites * row_bytes
    if about.get("bytes") != meant or len(numbers) != 8 * n_sites:
        raise UserError(
            f"{path} does not name the {n_sites} rows of its .bim; delete it and run again."
        )
    if wrong := changed_source(path):
        raise UserError(f"{path} {wrong}; put it back, or delete {path} and run again.")
    bed, chosen = _source_of(path, about), np.frombuffer(numbers, np.int64)
    n_rows = (about["size"] - len(BED_MAGIC)) // row_bytes
    rows = np.memmap(bed, np.uint8, "r", offset=len(BED_MAGIC), shape=(n_rows, row_bytes))
    if chosen[-1] - chosen[0] == n_sites - 1:
        return rows[chosen[0] : chosen[-1] + 1]
    return ChosenRows(rows, chosen)


def _source_of(path: Path, about: Mapping[str, Any]) -> Path:
    return Path(os.path.normpath(path.parent.resolve() / about["bed"]))


def changed_source(path: Path, *, read: bool = False) -> str:
    """What is wrong with the .bed whose rows a .bed names; "" if nothing is, or it names none.

    Its content is read if it or its inode is younger than the names, or if `read`: an edit can
    leave size and date as they were.
    """
    about = named_rows(path)
    if not about:
        return ""
    bed = _source_of(path, about)
    if not bed.is_file():
        return f"names rows of {bed}, which does not exist"
    now, kept = bed.stat(), checksum_path(path)
    made = (kept if kept.is_file() else path).stat().st_mtime_ns  # later runs may touch `path`
    if now.st_size == about["size"] and not read and made > max(now.st_mtime_ns, now.st_ctime_ns):
        return ""
    if now.st_size == about["size"] and checksum_of(bed) == f"{about['content']} {now.st_size}":
        return ""
    return f"names rows of {bed}, which was changed since"


class ChosenRows:
    """Some rows of a .bed; made when they are read.

    Attributes
    ----------
    shape : (n_sites, row_bytes)
        As an array of these rows would have it.
    source : array
        All rows.
    """

    def __init__(self, rows: np.ndarray, chosen: np.ndarray):
        """`rows`: uint8 (n, row_bytes); `chosen`: int64 (n_sites,), numbers of rows."""
        self.source, self._chosen = rows, chosen
        self.shape = (len(chosen), rows.shape[1])

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, which) -> np.ndarray:
        """Rows `which`, a slice or an array: uint8 (n, row_bytes)."""
        return self.source[self._chosen[which]]


class ChosenSamples:
    """Rows of a .bed that hold only some of its samples; made when they are read.

    `raw.bed` holds every sample that its cohort was decoded with. A sample that the sheet excludes
    later stays in it, and everything after it reads the cohort as if it were not there.

    Attributes
    ----------
    shape : (n_sites, row_bytes)
        As an array of the chosen samples would have it.
    source : array, ChosenRows or ListedRows
        The rows of all samples.
    """

    def __init__(self, rows: np.ndarray | ChosenRows | ListedRows, chosen: np.ndarray):
        """`rows`: uint8 (n_sites, row_bytes); `chosen`: int64 sample numbers, rising."""
        self.source, self._chosen = rows, chosen
        self.shape = (len(rows), bed_row_bytes(len(chosen)))

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, which) -> np.ndarray:
        """Rows `which`, a slice or an array: uint8 (n, row_bytes), padding bits zero."""
        return take_samples(np.ascontiguousarray(self.source[which]), self._chosen)


def open_cohort(
    prefix: Path, names: Sequence[str]
) -> tuple[np.ndarray | ChosenRows | ListedRows | ChosenSamples, pd.DataFrame]:
    """Open the genotypes of these samples of a cohort.

    Parameters
    ----------
    prefix : Path
        Stem of the cohort's raw .bed, .bim and .fam.
    names : sequence of str
        Samples, in the order of the .fam.

    Returns
    -------
    rows : array, ChosenRows, ListedRows or ChosenSamples, (n_sites, row_bytes) uint8
        PLINK 1 codes of these samples: memory-mapped if they are all of the file. Of polyploids
        all layers (`layers`).
    fam : DataFrame
        Their lines of the .fam.

    Raises
    ------
    UserError
        The .fam has not all of these samples in this order.
    """
    fam, wanted = read_fam(prefix), list(names)
    layers = layers_in(fam)
    n_samples = len(fam) // layers
    everyone = fam["sample"].tolist()[:n_samples]
    if everyone == wanted:
        return open_bed(prefix), fam
    chosen = np.flatnonzero(fam["sample"].iloc[:n_samples].isin(wanted))
    if fam["sample"].iloc[chosen].tolist() != wanted:
        lacking = next((name for name in wanted if name not in set(everyone)), wanted[0])
        raise UserError(
            f"{prefix}.fam does not have sample '{lacking}' in the order of the cohort's sample "
            f"table; delete {prefix}.bed, so that the cohort is decoded again, and run again."
        )
    bed = open_bed(prefix, n_samples=len(fam))
    chosen = columns_of(chosen, n_samples, layers)
    return ChosenSamples(bed, chosen), fam.iloc[chosen].reset_index(drop=True)


def lost_files(prefix: Path) -> bool:
    """Whether a decoded file that {prefix}.json lists was deleted."""
    about = beside(prefix, ".json")
    if not about.is_file():
        return False
    try:
        ends = list(read_json(about)["files"])
    except (ValueError, KeyError, TypeError):  # damaged, or of an earlier version
        ends = [".bed", ".bim", ".fam"]
    return not all(beside(prefix, end).is_file() for end in ends)


def lacking_samples(prefix: Path, names: Sequence[str]) -> bool:
    """Whether decoded genotypes exist that lack one of these samples: it was excluded before."""
    if not prefix.with_suffix(".fam").is_file():
        return False
    return not set(names) <= set(read_fam(prefix)["sample"])


def _count(path: Path) -> int:
    try:
        return count_lines(path)
    except FileNotFoundError:
        raise missing_file(path) from None
