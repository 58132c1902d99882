"""Read the tables of one person's genotypes that 23andMe, AncestryDNA and MyHeritage hand out.

A row has a site's name, chromosome, position and genotype: two letters (23andMe, MyHeritage) or
two columns (AncestryDNA). The tables name no REF: `cohort.person_calls` compares letters with a
panel. They may be compressed by gzip, or alone in a zip file.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import open_regular
from .vcf_errors import show

#: Names of the columns in these tables, in lower case.
SITE, CHROMOSOME, POSITION = "rsid", "chromosome", "position"
GENOTYPE = (("genotype",), ("result",), ("allele1", "allele2"))
#: AncestryDNA's numbers of contigs; 25 is the part of X that Y has too.
NUMBERED = {"23": "X", "24": "Y", "25": "X", "26": "MT", "XY": "X", "M": "MT"}
#: Bits of the letters; two letters of a genotype are a set of alleles.
LETTERS = {"A": 1, "C": 2, "G": 4, "T": 8}
#: Letters of genotypes that name no bases: not called, deletion, insertion.
NO_BASES = set("-0DI")
#: UCSC's name of the build that a table's remarks state by number.
BUILDS = {"36": "hg18", "37": "hg19", "38": "hg38"}
#: The largest table and the longest list of remarks in front of it, in bytes.
LARGEST, LONGEST_REMARKS = 1 << 30, 1 << 16
#: Names of tables in a zip file; macOS adds a folder of what is no table.
_ZIPPED = re.compile(r"^(?!__MACOSX/).*\.(txt|csv)$", re.IGNORECASE)
_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


class PersonTable(NamedTuple):
    """Genotypes of one person.

    `sites` has `chrom` (text, as 1, X or MT) and `pos` (int64). `first` and `second` are the bits
    of LETTERS of each genotype, uint8 (n_rows,), both 0 where it names no bases; `single` says
    where it is one letter, bool (n_rows,). `build` is UCSC's name, or empty if none is stated.
    """

    sites: pd.DataFrame
    first: np.ndarray
    second: np.ndarray
    single: np.ndarray
    build: str


def is_person_table(path: Path) -> bool:
    """Whether a file is such a table, by its remarks and the names of its columns.

    Raises
    ------
    UserError
        It is a zip file that cannot be read, or that does not hold one table.
    """
    if not path.is_file():
        return False
    try:
        head = _text(path, LONGEST_REMARKS)
    except UserError:
        if zipfile.is_zipfile(path):
            raise
        return False  # it is compressed and damaged, which the reader of its format says
    return starts_person_table(head)


def starts_person_table(head: bytes) -> bool:
    """Whether the first bytes of a text are those of such a table."""
    return _header(head) is not None


def person_of(path: Path) -> str:
    """Name of the person: that of the file, without endings."""
    bare = re.sub(r"(\.(txt|csv|tsv|gz|zip))+$", "", path.name, flags=re.IGNORECASE)
    return re.sub(r"\s+", "_", bare) or "person"


def read_person_table(path: Path) -> PersonTable:
    """Read a whole table.

    Raises
    ------
    UserError
        It is damaged, lacks columns, or a row has no whole-number position or another genotype than
        one or two of A, C, G, T, I, D, - and 0.
    """
    data = _text(path, LARGEST + 1)
    if len(data) > LARGEST:
        raise UserError(f"{path} has more than {LARGEST >> 30} GB; give the table of one person.")
    header = _header(data)
    if header is None:
        raise UserError(
            f"{path} has no line that names the columns rsid, chromosome, position and genotype; "
            "download it again."
        )
    start, names, separator = header
    n_lines = data.count(b"\n", 0, start)
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            rows = pd.read_csv(
                io.BytesIO(data[start:]),
                sep=separator,
                header=None,
                names=names,
                index_col=False,
                dtype=str,
                keep_default_na=False,
                encoding="latin-1",
                skip_blank_lines=False,
                quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE,
            )
    except (ValueError, pd.errors.ParserWarning) as error:
        raise UserError(f"{path} is no table of genotypes ({error}); download it again.") from None
    rows = rows.fillna("")
    empty = (rows == "").all(axis=1)
    if not len(rows) or empty.all():
        raise UserError(f"{path} has no genotypes below line {n_lines}; download it again.")
    rows = rows[~empty]
    line = rows.index.to_numpy() + n_lines + 1
    genotype = _joined(rows, names)
    place = pd.to_numeric(rows[POSITION], errors="coerce")
    whole = rows[POSITION].str.fullmatch(r"[0-9]{1,9}").to_numpy(bool)
    if not whole.all():
        k = int(np.argmin(whole))
        raise UserError(
            f"{path}, line {line[k]}: the position is {show(rows[POSITION].iloc[k].encode())}, "
            "not a whole number; download the file again."
        )
    number, different = pd.factorize(genotype)
    coded = [_code(text) for text in different]
    if None in coded:
        k = int(np.argmax(np.isin(number, [k for k, one in enumerate(coded) if one is None])))
        raise UserError(
            f"{path}, line {line[k]}: the genotype is {show(genotype.iloc[k].encode())}; it must "
            "be one or two of A, C, G, T, I, D, - and 0."
        )
    codes = np.array(coded, np.uint8).reshape(-1, 3)[number]
    contig, contigs = pd.factorize(rows[CHROMOSOME])
    plain = np.array([table_contig(name) for name in contigs], object)
    sites = pd.DataFrame({"chrom": plain[contig], "pos": place.to_numpy(np.int64)})
    return PersonTable(
        sites, codes[:, 0], codes[:, 1], codes[:, 2].astype(bool), _build(data[:start])
    )


def table_contig(name: str) -> str:
    """Name of a contig as 23andMe writes it: without `chr`, and X, Y and MT for numbers."""
    bare = name.strip().upper().removeprefix("CHR")
    return NUMBERED.get(bare, bare)


def _text(path: Path, n_bytes: int) -> bytes:
    """The first bytes of a table, decompressed."""
    try:
        with open_regular(path) as file:
            magic = file.read(4)
            file.seek(0)
            if magic[:2] == b"\x1f\x8b":
                with gzip.open(file) as inner:
                    return inner.read(n_bytes)
            if magic == b"PK\x03\x04":
                with zipfile.ZipFile(file) as folder:
                    names = [one for one in folder.namelist() if _ZIPPED.search(one)]
                    if len(names) != 1:
                        raise UserError(f"{path} holds {len(names)} tables; unpack it, choose one.")
                    with folder.open(names[0]) as inner:
                        return inner.read(n_bytes)
            return file.read(n_bytes)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; correct its path.") from None
    except _DAMAGED as error:
        raise UserError(f"{path} is damaged ({error}); download it again.") from None


def _header(data: bytes) -> tuple[int, list[str], str] | None:
    """Where rows begin, names of columns in lower case and what separates them; None: no table.

    23andMe writes the names of columns as the last remark.
    """
    begin, found = 0, None
    while begin < min(len(data), LONGEST_REMARKS):
        newline = data.find(b"\n", begin)
        end = len(data) if newline < 0 else newline + 1
        line = data[begin:end].decode("latin-1").removeprefix("\xef\xbb\xbf").strip()
        separator = "\t" if "\t" in line else ","
        words = [word.strip('" ').lower() for word in line.lstrip("# ").split(separator)]
        if words[0] == SITE and _names_columns(set(words)):
            found = words, separator
            if not line.startswith("#"):
                begin = end
                break
        elif line and not line.startswith("#"):
            break
        begin = end
    return found and (begin, *found)


def _names_columns(names: set[str]) -> bool:
    genotype = any(names.issuperset(pair) for pair in GENOTYPE)
    return genotype and POSITION in names and CHROMOSOME in names


def _joined(rows: pd.DataFrame, names: list[str]) -> pd.Series:
    """Genotypes as one text each, in capitals."""
    columns = next(pair for pair in GENOTYPE if set(pair) <= set(names))
    parts = [rows[name].str.strip().str.upper() for name in columns]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _code(genotype: str) -> tuple[int, int, bool] | None:
    """Bits of both letters, and whether there is one alone; None for anything else."""
    if not 0 < len(genotype) <= 2 or set(genotype) - NO_BASES - set(LETTERS):
        return None
    bits = [LETTERS.get(letter, 0) for letter in genotype]
    if 0 in bits:
        return 0, 0, len(genotype) == 1
    return bits[0], bits[-1], len(genotype) == 1


def _build(remarks: bytes) -> str:
    """The build that the remarks name, as `build 37` or `GRCh37`; empty if none or several."""
    text = remarks.decode("latin-1")
    found = set(re.findall(r"(?:\bbuild\s*|GRCh|NCBI)(3[678])(?![0-9])", text, re.IGNORECASE))
    return BUILDS[found.pop()] if len(found) == 1 else ""
