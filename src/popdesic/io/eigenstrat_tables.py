"""Samples, sites and checks of EIGENSTRAT files (.geno, .snp, .ind), without their genotypes.

A genotype is the number of copies of the first allele of the .snp, which becomes REF. The .geno is
text, a line per site; packed by sites (GENO); or packed by samples (TGENO). Packed files begin with
the number of samples and sites, and hashes of their names. Genetic positions are not used.
Nothing compiled is imported here, because each job of the workflow reads the sheets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UserError
from ..core.files import beside, open_regular
from .alleles import FIRST_ROWS, are_numbered
from .columns import (
    TABLE_ROWS,
    count_lines,
    iterate_columns,
    missing_file,
    read_positions,
    require_unique_names,
)

SNP_COLUMNS = ["id", "chrom", "morgans", "pos", "ref", "alt"]
IND_COLUMNS = ["sample", "sex", "population"]
#: Chromosomes that EIGENSOFT numbers in its own way; 23 and 24 are X and Y as in PLINK files.
CHROMOSOMES = {"90": "MT", "91": "XY"}
#: The unknown allele of EIGENSOFT, and that of PLINK.
UNKNOWN, PLINK_UNKNOWN = "X", "0"
SEXES = {"M": "1", "F": "2", "m": "1", "f": "2"}
TEXT, BY_SITE, BY_SAMPLE = "text", "GENO", "TGENO"
#: Bytes of a packed file's header; records are no shorter, except those of samples.
LEAST_RECORD = 48
#: Most bytes of a line that are read to count its genotypes.
LONGEST_LINE = 1 << 24
#: A .snp up to this size is counted before any job runs; the job counts the lines of a larger one.
QUICK_BYTES = 64 << 20
#: Genotypes of a text file: copies of ALT by its byte; -2 for other bytes.
DIGITS = np.full(256, -2, np.int8)
DIGITS[list(b"0129")] = (2, 1, 0, -1)


class Geno(NamedTuple):
    """Layout of a .geno: its kind, numbers, bytes of a record and before the first one, hashes."""

    path: Path
    kind: str
    n_samples: int
    n_sites: int
    record: int
    before: int = 0
    hashes: tuple[int, int] = (0, 0)


def read_ind(prefix: Path | str) -> dict[str, list[str]]:
    """Read {prefix}.ind: lists of sample, sex (1, 2, else 0) and population.

    Raises
    ------
    UserError
        The file is missing, or a line does not have three columns.
    """
    path = beside(prefix, ".ind")
    columns: dict[str, list[str]] = {name: [] for name in IND_COLUMNS}
    for part in iterate_columns(path, IND_COLUMNS):
        for name, values in part.items():
            columns[name] += values
    columns["sex"] = [SEXES.get(code, "0") for code in columns["sex"]]
    return columns


def read_eigenstrat_samples(prefix: Path | str) -> tuple[list[str], list[str]]:
    """Return the sample names and sex codes of {prefix}.ind.

    Raises
    ------
    UserError
        As `check_geno`; or there are no samples, or a name is repeated.
    """
    ind = read_ind(prefix)
    require_unique_names(beside(prefix, ".ind"), ind["sample"])
    _check(prefix, ind["sample"])
    return ind["sample"], ind["sex"]


def check_geno(prefix: Path | str) -> Geno:
    """Read the header of {prefix}.geno and compare the three files with each other.

    Raises
    ------
    UserError
        A file is missing, cut short or malformed; the files have different numbers of samples or
        sites; or the names of samples are not those with which a packed file was written.
    """
    return _check(prefix, read_ind(prefix)["sample"])


def _check(prefix: Path | str, names: Sequence[str]) -> Geno:
    path, snp, ind = (beside(prefix, end) for end in (".geno", ".snp", ".ind"))
    try:
        with open_regular(path) as file:
            head = file.read(LEAST_RECORD)
            size = file.seek(0, 2)
        lines = count_lines(snp) if snp.stat().st_size <= QUICK_BYTES else None
    except FileNotFoundError as error:
        raise missing_file(Path(error.filename)) from None
    if head.startswith((b"GENO", b"TGENO")):
        geno = _read_header(path, head, size)
        if geno.n_samples != len(names):
            raise UserError(
                f"{path} has {geno.n_samples} samples where {ind} lists {len(names)}; make sure "
                "that .geno, .snp and .ind belong together."
            )
        require_hash(geno, hash_names(names), 0, ind)
    else:
        geno = _measure_text(path, len(names), size)
    if lines is not None:
        require_same_geno_sites(geno, snp, lines)
    return geno


def _read_header(path: Path, head: bytes, size: int) -> Geno:
    found = re.match(rb"(T?GENO)\s+(\d{1,9})\s+(\d{1,9})\s+([0-9a-f]{1,8})\s+([0-9a-f]{1,8})", head)
    if not found:
        raise UserError(
            f"{path} begins with {head[:5].decode()}, but no numbers of samples and sites and two "
            "hashes follow; write it again with convertf."
        )
    kind = found[1].decode()
    n_samples, n_sites = int(found[2]), int(found[3])
    hashes = int(found[4], 16), int(found[5], 16)
    if kind == BY_SITE:
        record = before = max(LEAST_RECORD, -(-n_samples // 4))
        expected = before + n_sites * record
    else:
        before, record = LEAST_RECORD, -(-n_sites // 4)
        if size == before + n_samples * LEAST_RECORD:  # records as short as those of sites
            record = max(record, LEAST_RECORD)
        expected = before + n_samples * record
    if size != expected:
        raise UserError(
            f"{path} has {size} bytes where {n_sites} sites of {n_samples} samples take "
            f"{expected}; the file is cut short or damaged, so copy it again."
        )
    return Geno(path, kind, n_samples, n_sites, record, before, hashes)


def _measure_text(path: Path, n_samples: int, size: int) -> Geno:
    """The layout of a text file, of which all lines have as many digits as there are samples."""
    with open_regular(path) as file:
        first = file.readline(n_samples + 2)
    start = first.rstrip(b"\r\n")
    if (DIGITS[np.frombuffer(start, np.uint8)] == -2).any():
        raise UserError(
            f"{path}, line 1: neither digits 0, 1, 2 and 9 nor the word GENO or TGENO; give "
            "EIGENSTRAT or PACKEDANCESTRYMAP files that are not compressed."
        )
    record = max(n_samples + 1, len(first))
    geno = Geno(path, TEXT, n_samples, -(-size // record), record)
    if not size or len(start) != n_samples or size % record not in (0, n_samples):
        raise uneven_lines(geno)
    return geno


def _other_length(path: Path, number: int, found: int, n_samples: int) -> UserError:
    return UserError(
        f"{path}, line {number}: {found} genotypes where {beside(path.with_suffix(''), '.ind')} "
        f"lists {n_samples} samples; make sure that .geno, .snp and .ind belong together and are "
        "complete."
    )


def require_same_geno_sites(geno: Geno, snp: Path, n_sites: int) -> None:
    """Refuse a .geno that has not as many sites as its .snp."""
    if n_sites != geno.n_sites:
        raise UserError(
            f"{geno.path} has {geno.n_sites} sites where {snp} lists {n_sites}; make sure that "
            ".geno, .snp and .ind belong together and are complete."
        )


def require_hash(geno: Geno, found: int, which: int, table: Path) -> None:
    """Refuse a packed .geno that was written with other names of samples (0) or sites (1)."""
    if geno.kind != TEXT and found != geno.hashes[which]:
        raise UserError(
            f"{geno.path} was written with other names, or in another order, than {table} has "
            f"(hash {geno.hashes[which]:x}, that of the names is {found:x}); restore the table, or "
            "write the files again with convertf and hashcheck: NO if only names were changed."
        )


def hash_names(names: Sequence[str], before: int = 0) -> int:
    """Hash of names in their order, as EIGENSOFT's packed files state it: below 2**32.

    Parameters
    ----------
    before : int
        Hash of the names before these.
    """
    if not names:
        return before
    coded = [name.encode() for name in names]
    sizes = np.array([len(one) for one in coded], np.int64)
    letters = np.frombuffer(b"".join(coded), np.int8).astype(np.uint32)
    ends = np.cumsum(sizes)
    powers = np.ones(int(sizes.max()), np.uint32)
    np.multiply.accumulate(np.full(len(powers) - 1, 23, np.uint32), out=powers[1:])
    letters *= powers[np.repeat(ends, sizes) - 1 - np.arange(len(letters))]
    value = before
    for one in np.add.reduceat(letters, ends - sizes, dtype=np.uint32).tolist():
        value = (17 * value & 0xFFFF_FFFF) ^ one
    return value


def iterate_snp(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[dict[str, Any]]:
    """Yield the sites of {prefix}.snp in parts: lists of str by name, and int64 `pos`.

    Raises
    ------
    UserError
        The file is missing, names no alleles, or a line does not have six columns or a
        whole-number position.
    """
    path = beside(prefix, ".snp")
    n_before = 0
    for sites in iterate_columns(path, SNP_COLUMNS, n_rows):
        sites["pos"] = read_positions(path, sites["pos"], n_before)
        sites["chrom"] = [CHROMOSOMES.get(name, name) for name in sites["chrom"]]
        for name in ("ref", "alt"):
            sites[name] = [PLINK_UNKNOWN if base == UNKNOWN else base for base in sites[name]]
        n_before += len(sites["pos"])
        yield sites


def numbered_snp(prefix: Path | str) -> bool:
    """`are_numbered` of {prefix}.snp."""
    return are_numbered(iterate_snp(prefix, FIRST_ROWS), beside(prefix, ".snp"))


def uneven_lines(geno: Geno) -> UserError:
    """Return a sentence on the first line of a text file that has another length."""
    with open_regular(geno.path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
            if (size := len(line.rstrip(b"\r\n"))) != geno.n_samples:
                return _other_length(geno.path, number, size, geno.n_samples)
    return UserError(
        f"{geno.path} has no lines, or they end in different ways; write it again with convertf."
    )
