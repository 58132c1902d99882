"""Samples, sites and checks of PLINK 2 files (.pgen, .pvar, .psam), without their genotypes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import beside, is_file, open_regular
from .alleles import FIRST_ROWS, are_numbered
from .columns import (
    FAM_COLUMNS,
    LINE_BYTES,
    LONGEST_HEADER,
    TABLE_ROWS,
    count_lines,
    decode_lines,
    iterate_columns,
    missing_file,
    read_positions,
    require_unique_names,
)
from .pgen_header import DOSAGES, PGEN_ENDS, PgenHeader, read_pgen_header
from .sites import contig_lengths

PVAR_COLUMNS = ["CHROM", "POS", "ID", "REF", "ALT"]
#: Columns of a .psam that are not phenotypes, and the columns of a .fam that they become.
PSAM_COLUMNS = {
    "FID": "family",
    "IID": "sample",
    "SID": "",
    "PAT": "father",
    "MAT": "mother",
    "SEX": "sex",
}
#: Sexes as a .fam writes them.
FAM_SEXES = {"1": "1", "2": "2", "M": "1", "F": "2", "m": "1", "f": "2"}
#: A .pvar up to this size is counted before any job runs; the job counts the lines of a larger one.
QUICK_BYTES = 64 << 20


def check_pgen(prefix: Path | str) -> PgenHeader:
    """Read the header of {prefix}.pgen and compare the three files with each other.

    Raises
    ------
    UserError
        Pgenlib is not installed; a file is missing, cut short or malformed; or the files have
        different numbers of samples or sites.
    """
    path = beside(prefix, ".pgen")
    if importlib.util.find_spec("pgenlib") is None:
        raise UserError(
            f"{path}: PGEN files are read with the package Pgenlib, which is not installed; "
            f"install it with `pip install Pgenlib`, or convert the files with `plink2 --pfile "
            f"{prefix} --make-bed`."
        )
    header = _open_all(prefix)
    n_samples = len(read_psam(prefix))
    if n_samples != header.n_samples:
        raise UserError(
            f"{path} has {header.n_samples} samples where {beside(prefix, '.psam')} lists "
            f"{n_samples}; make sure that .pgen, .pvar and .psam belong together."
        )
    pvar = beside(prefix, ".pvar")
    n_before = read_pvar_header(prefix)[1]
    if pvar.stat().st_size <= QUICK_BYTES:
        require_same_sites(prefix, header, count_lines(pvar) - n_before)
    return header


def _open_all(prefix: Path | str) -> PgenHeader:
    for end in PGEN_ENDS[1:]:
        if not is_file(beside(prefix, end)):
            packed = beside(prefix, f"{end}.zst")
            if is_file(packed):
                raise UserError(
                    f"{packed} is compressed; unpack it with `plink2 --zst-decompress {packed} "
                    f"{beside(prefix, end)}`."
                )
            raise missing_file(beside(prefix, end))
    try:
        return read_pgen_header(beside(prefix, ".pgen"))
    except FileNotFoundError:
        raise missing_file(beside(prefix, ".pgen")) from None


def require_same_sites(prefix: Path | str, header: PgenHeader, n_sites: int) -> None:
    if n_sites != header.n_sites:
        raise UserError(
            f"{header.path} has {header.n_sites} sites where {beside(prefix, '.pvar')} lists "
            f"{n_sites}; make sure that .pgen, .pvar and .psam belong together and are complete."
        )


def _header_lines(path: Path) -> list[str]:
    """Return the lines of a .pvar or .psam up to its line of column names (the first with one '#').

    Raises
    ------
    UserError
        There is no such line, or the header is not text.
    """
    lines: list[bytes] = []
    size = 0
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise missing_file(path) from None
    with file:
        for line in iter(partial(file.readline, LINE_BYTES), b""):
            lines.append(line)
            size += len(line)
            if not line.startswith(b"##"):
                break
            if size > LONGEST_HEADER:
                raise UserError(
                    f"{path}: the header does not end within {LONGEST_HEADER >> 20} MB; the file "
                    "is damaged, so write it again with plink2 --make-pgen."
                )
    if not lines or not lines[-1].startswith(b"#") or lines[-1].startswith(b"##"):
        raise UserError(
            f"{path}, line {max(1, len(lines))}: the line of column names, which starts with '#', "
            "is missing; write the file again with plink2 --make-pgen."
        )
    return decode_lines(path, lines, 0).replace("\r\n", "\n").rstrip("\n").split("\n")


def read_pvar_header(prefix: Path | str) -> tuple[list[str], int, dict[str, int]]:
    """Return the column names of {prefix}.pvar, the lines before its sites, and contig lengths.

    Raises
    ------
    UserError
        The file is missing, or its columns are not those of a .pvar.
    """
    path = beside(prefix, ".pvar")
    lines = _header_lines(path)
    names = lines[-1][1:].split()
    if names[:5] != PVAR_COLUMNS or len(set(names)) < len(names):
        raise UserError(
            f"{path}, line {len(lines)}: the columns must be #{' '.join(PVAR_COLUMNS)} and then "
            "others, each once; write the file again with plink2 --make-pgen."
        )
    return names, len(lines), contig_lengths("\n".join(lines))


def iterate_pvar(prefix: Path | str, n_rows: int = TABLE_ROWS) -> Iterator[dict[str, Any]]:
    """Yield the sites of {prefix}.pvar in parts: lists of str by name, and int64 `pos`.

    With `filter` and `qual`, float64 (n_sites,), if the file has these columns.

    Raises
    ------
    UserError
        As `read_pvar_header`, or a line does not have all columns or a whole-number position.
    """
    path = beside(prefix, ".pvar")
    names, n_before, _ = read_pvar_header(prefix)
    for columns in iterate_columns(path, names, n_rows, n_before):
        sites: dict[str, Any] = {name.lower(): columns[name] for name in ("ID", "REF", "ALT")}
        sites["chrom"] = columns["CHROM"]
        sites["pos"] = read_positions(path, columns["POS"], n_before)
        if "FILTER" in columns:
            sites["filter"] = columns["FILTER"]
        if "QUAL" in columns:
            numbers = pd.to_numeric(pd.Series(columns["QUAL"], dtype=object), errors="coerce")
            sites["qual"] = numbers.to_numpy(np.float64)
        n_before += len(sites["pos"])
        yield sites


def numbered_pvar(prefix: Path | str) -> bool:
    """`are_numbered` of {prefix}.pvar."""
    return are_numbered(iterate_pvar(prefix, FIRST_ROWS), beside(prefix, ".pvar"))


def read_psam(prefix: Path | str) -> pd.DataFrame:
    """Read {prefix}.psam as the table of a .fam.

    Returns
    -------
    DataFrame with columns family, sample, father, mother, sex, phenotype
        (n_samples) rows of strings. Absent columns are 0, phenotypes -9; the first phenotype
        counts. Sexes are 1, 2 or 0.

    Raises
    ------
    UserError
        The file is missing, names no column IID, or a line does not have all columns.
    """
    path = beside(prefix, ".psam")
    lines = _header_lines(path)
    names = lines[-1][1:].split()
    if "IID" not in names or len(set(names)) < len(names):
        raise UserError(
            f"{path}, line {len(lines)}: the columns must include IID, each once; write the file "
            "again with plink2 --make-pgen."
        )
    parts = list(iterate_columns(path, names, n_skip=len(lines)))
    columns = {name: [value for part in parts for value in part[name]] for name in names}
    n_samples = len(columns["IID"])
    fam = {name: ["0"] * n_samples for name in FAM_COLUMNS} | {"phenotype": ["-9"] * n_samples}
    phenotypes = [name for name in names if name not in PSAM_COLUMNS]
    for name, column in columns.items():
        if target := PSAM_COLUMNS.get(name):
            fam[target] = column
    for name in phenotypes[:1]:
        fam["phenotype"] = columns[name]
    fam["sex"] = [FAM_SEXES.get(code, "0") for code in fam["sex"]]
    return pd.DataFrame(fam, dtype=str)


def read_pgen_samples(prefix: Path | str) -> tuple[list[str], list[str]]:
    """Return the sample names (column IID) and sex codes of {prefix}.psam.

    Raises
    ------
    UserError
        As `check_pgen`; or there are no samples, or a name is repeated.
    """
    check_pgen(prefix)
    psam = read_psam(prefix)
    names = psam["sample"].tolist()
    n_before = len(_header_lines(beside(prefix, ".psam")))
    require_unique_names(beside(prefix, ".psam"), names, n_before)
    return names, psam["sex"].tolist()


def remarks_on_pgen(prefix: Path | str) -> list[str]:
    """Return a sentence that says how many sites have dosages, which are ignored, if any have."""
    header = _open_all(prefix)
    if n_dosages := header.count(DOSAGES):
        return [
            f"{header.path} has dosages at {n_dosages} of {header.n_sites} sites: they are "
            "ignored, and the hard calls beside them are read."
        ]
    return []
