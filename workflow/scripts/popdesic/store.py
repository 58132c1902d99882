"""Files on disk: atomic writing, and the PLINK 1 files that hold genotypes."""

import csv
import hashlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import UserError
from .genotypes import BED_MAGIC, bed_row_bytes

BIM_COLUMNS = ["chrom", "id", "cm", "pos", "alt", "ref"]
FAM_COLUMNS = ["family", "sample", "father", "mother", "sex", "phenotype"]

# Bytes of a file taken at a time for its checksum.
CHECKSUM_BYTES = 1 << 22
# Results that are folders, by the ends of their names.
RESULT_FOLDERS = (".vcz",)
# What Snakemake puts into a folder that is a result.
FOLDER_STAMP = ".snakemake_timestamp"
# Rows of a .bim file taken at a time.
TABLE_ROWS = 1 << 16


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` if the block succeeds.

    On success the file is flushed to disk and renamed, so that readers see all of it or none, and
    the checksum of a result is kept beside it for `popdesic audit`; on any exception it is removed
    and an older `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_orphans(path)
    unique = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{unique}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        with checksum_kept(path, temporary):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def checksum_kept(path: Path, temporary: Path) -> Iterator[None]:
    """Keep the checksum of `temporary`, which becomes `path` in the block, beside `path`."""
    kept = "results" in path.absolute().parts  # of a study; nothing else is audited
    checksum = checksum_of(temporary) if kept else ""
    for about in (checksum_path(path), record_path(path)):
        about.unlink(missing_ok=True)  # never that of another content
    yield
    if kept:
        checksum_path(path).write_text(f"{checksum}\n")


def checksum_path(path: Path) -> Path:
    """Where the checksum of a result lies: a hidden file beside it."""
    return path.with_name(f".{path.name}.crc32")


def record_path(path: Path) -> Path:
    """Where the record of what a result was made of lies (`popdesic.records`)."""
    return path.with_name(f".{path.name}.record")


def result_files(results: Path) -> Iterator[Path]:
    """All results below a folder; a folder that is one result (`RESULT_FOLDERS`) counts as one."""
    for folder, names, _ in walk_results(results):
        yield from (Path(folder, name) for name in names)


def walk_results(results: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """Give each folder of results, its results in order of their names, and its hidden files."""
    for folder, folders, names in os.walk(results):
        whole = [name for name in folders if name.endswith(RESULT_FOLDERS)]
        folders[:] = sorted(n for n in folders if n not in whole and not n.startswith("."))
        hidden = {name for name in names if name.startswith(".")}
        yield folder, sorted({*whole, *names} - hidden), hidden


def checksum_of(path: Path) -> str:
    """CRC-32 and size in text, of a file or of all files of a folder with their names.

    It finds accidents, not forgeries, at 10 GB/s.
    """
    from isal import isal_zlib  # what only plans does without

    value, size = 0, 0
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.name != FOLDER_STAMP:
                about = checksum_of(file)
                line = f"{file.relative_to(path).as_posix()} {about}\n"
                value = isal_zlib.crc32(line.encode(), value)
                size += int(about.split()[1])
        return f"{value:08x} {size}"
    with open(path, "rb") as file:
        while block := file.read(CHECKSUM_BYTES):
            value = isal_zlib.crc32(block, value)
            size += len(block)
    return f"{value:08x} {size}"


def _remove_orphans(path: Path) -> None:
    """Remove temporaries of `path` that a killed process of this machine has left."""
    prefix = f".{path.name}.{socket.gethostname()}."
    for left in path.parent.iterdir():
        if left.name.startswith(prefix) and left.name.endswith(".tmp"):
            pid = left.name.removeprefix(prefix).split(".")[0]
            if pid.isdigit() and not _is_alive(int(pid)):
                left.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def digest(text: str) -> str:
    """A short content key for file names and metadata."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def write_json(path: Path | str, content: Any) -> None:
    """Write `content` as indented JSON, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text("utf-8"))


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
        The file is missing, or a line has not six columns or no whole position.
    """
    return pd.concat(iterate_bim(prefix))


def iterate_bim(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[pd.DataFrame]:
    """Yield the table of `read_bim` in parts of at most `n_rows` rows, at least one part."""
    path = beside(prefix, ".bim")
    for table in _iterate_columns(path, BIM_COLUMNS, n_rows):
        pos = pd.to_numeric(table["pos"], errors="coerce")
        bad = np.flatnonzero(pos.isna() | (pos % 1 != 0))
        if len(bad):
            raise UserError(
                f"{path}, line {table.index[bad[0]] + 1}: position "
                f"{table['pos'].iloc[bad[0]]!r} is not a whole number; correct it."
            )
        table["pos"] = pos.astype(np.int64)
        yield table


def read_fam(prefix: Path | str) -> pd.DataFrame:
    """Read {prefix}.fam.

    Returns
    -------
    DataFrame with columns family, sample, father, mother, sex, phenotype
        (n_samples) rows of strings exactly as in the file.

    Raises
    ------
    UserError
        The file is missing, or a line has not six columns.
    """
    return pd.concat(_iterate_columns(beside(prefix, ".fam"), FAM_COLUMNS, TABLE_ROWS))


def write_fam(prefix: Path | str, fam: pd.DataFrame) -> None:
    """Write the table of `read_fam` to {prefix}.fam, atomically."""
    with atomic_path(beside(prefix, ".fam")) as temporary:
        lines = map("\t".join, fam[FAM_COLUMNS].itertuples(index=False))
        temporary.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _iterate_columns(path: Path, names: list[str], n_rows: int) -> Iterator[pd.DataFrame]:
    """Yield parts of a table without a header, separated by tabs or else by any white space."""
    try:
        with open(path, encoding="utf-8") as file:
            first = file.readline()
        if not first:
            yield pd.DataFrame({name: pd.Series(dtype=str) for name in names})
            return
        tables = pd.read_csv(
            path,
            sep="\t" if first.count("\t") == len(names) - 1 else r"\s+",
            header=None,
            dtype=str,
            keep_default_na=False,
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            skip_blank_lines=False,
            encoding="utf-8",
            chunksize=n_rows,
        )
        with tables:
            for table in tables:
                short = np.flatnonzero(table.isna().any(axis=1) | (table == "").any(axis=1))
                if table.shape[1] != len(names) or len(short):
                    line = 1 if table.shape[1] != len(names) else table.index[short[0]] + 1
                    raise UserError(
                        f"{path}, line {line}: {len(names)} columns are expected "
                        f"({' '.join(names)}), all of them filled; correct the line."
                    )
                yield table.set_axis(names, axis=1)
    except FileNotFoundError:
        raise _not_beside(path) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; convert it, for example with iconv.") from None
    except pd.errors.ParserError as error:
        reason = " ".join(str(error).split())  # pandas names the line
        raise UserError(
            f"{path} must have {len(names)} columns in every line ({reason}); correct it."
        ) from None


def _not_beside(path: Path) -> UserError:
    return UserError(f"{path} does not exist; .bed, .bim and .fam must lie beside each other.")


def open_bed(
    prefix: Path | str, *, n_samples: int | None = None, n_sites: int | None = None
) -> np.ndarray:
    """Map the genotypes of {prefix}.bed into memory, read-only.

    Parameters
    ----------
    n_samples, n_sites : int, optional
        Counted from the lines of .fam and .bim where not given.

    Returns
    -------
    (n_sites, ceil(n_samples / 4)) uint8
        PLINK 1 two-bit codes; see `popdesic.genotypes`.

    Raises
    ------
    UserError
        A file is missing, or the .bed has not the magic number or the size it must have.
    """
    path = beside(prefix, ".bed")
    n_samples = _count_lines(beside(prefix, ".fam")) if n_samples is None else n_samples
    n_sites = _count_lines(beside(prefix, ".bim")) if n_sites is None else n_sites
    try:
        with open(path, "rb") as file:
            magic = file.read(len(BED_MAGIC))
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise _not_beside(path) from None
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
            f"{expected}; make sure that .bed, .bim and .fam belong together and are whole."
        )
    if 0 in shape:
        return np.empty(shape, np.uint8)
    return np.memmap(path, np.uint8, "r", offset=len(BED_MAGIC), shape=shape)


def _count_lines(path: Path) -> int:
    try:
        with open(path, "rb") as file:
            n_lines = 0
            last = b"\n"
            while block := file.read(1 << 20):
                n_lines += block.count(b"\n")
                last = block[-1:]
            return n_lines + (last != b"\n")
    except FileNotFoundError:
        raise _not_beside(path) from None
