"""Metadata of a new study's samples, from .fam or .ind files and from a table of samples."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from ..cohort.parents import NOBODY
from ..cohort.sheet_text import OTHER_NAMES, RESERVED, read_sheet_text
from ..core.errors import UserError, shorten
from ..core.files import is_file
from ..io.bed import read_fam
from ..io.eigenstrat_tables import read_ind
from ..io.formats import EIGENSTRAT, PGEN, PLINK, find_format
from ..io.pgen_tables import read_psam

#: Columns of every new sheet, and the explanation shown to the user who fills them in.
MEANINGS = {
    "population": "label that colours figures and defines the populations that are compared",
    "sex": "M or F; checked against the X chromosome",
    "phenotype": "1 case, 0 control, or a number; only epistasis scans need it",
}
#: Accepted names of the column of sample names, the likeliest first.
SAMPLE_NAMES = ("sample", "sample_id", "sampleid", "sample_name", "iid", "individual", "id", "name")
SEXES = {"1": "M", "2": "F", "0": "NA", "male": "M", "female": "F", "m": "M", "f": "F", "u": "NA"}
CLASSES = {"case": "1", "control": "0", "affected": "1", "unaffected": "0"}
UNKNOWN = ("", "NA", "na", "N/A", "n/a", "nan", "NaN", ".", "-", "unknown")
#: PLINK's codes of a case-control phenotype; -9 and 0 are missing.
PLINK_CODES = {"-9": "NA", "0": "NA", "1": "0", "2": "1"}
#: Values by sample and column.
Facts = dict[str, dict[str, str]]


class NewSamples:
    """Samples of a new study in file order, with their metadata."""

    def __init__(self, cohorts: dict[str, str]) -> None:
        self.cohorts = cohorts
        self.facts: Facts = {name: {} for name in cohorts}
        self.columns = list(MEANINGS)
        self.remarks: list[str] = []

    def __len__(self) -> int:
        return len(self.cohorts)

    def add(self, facts: Facts, source: str) -> None:
        """Add a file's values; a known value replaces that of an earlier file."""
        counts: dict[str, int] = {}
        for name, values in facts.items():
            for column, value in values.items():
                if value in UNKNOWN or name not in self.facts:
                    continue
                self.facts[name][column] = value
                counts[column] = counts.get(column, 0) + 1
        self.columns += [column for column in counts if column not in self.columns]
        if counts:
            filled = ", ".join(f"{column} of {count}" for column, count in counts.items())
            self.remarks.append(f"from {source}: {filled}")

    def drop_unusable(self) -> None:
        """Remove values that the checks refuse: parents outside the study, a constant phenotype."""
        absent = 0
        for column in ("father", "mother"):
            for values in self.facts.values():
                if values.get(column, "NA") not in self.facts:
                    absent += values.pop(column, "NA") not in NOBODY
            if column in self.columns and not any(column in v for v in self.facts.values()):
                self.columns.remove(column)
        if absent:
            self.remarks.append(f"parents who are not samples of the study: {absent}, left out")
        known = {values["phenotype"] for values in self.facts.values() if "phenotype" in values}
        if len(known) == 1:
            for values in self.facts.values():
                values.pop("phenotype", None)
            self.remarks.append(f"phenotype: left out, because every known value is {known.pop()}")

    def unknown(self) -> list[tuple[str, str]]:
        """Columns with missing values, and their explanations."""
        return [
            (column, meaning)
            for column, meaning in MEANINGS.items()
            if any(column not in values for values in self.facts.values())
        ]

    def sheet(self) -> str:
        """Text of samples.tsv."""
        lines = ["\t".join(["sample", "cohort", *self.columns])]
        for name, cohort in self.cohorts.items():
            values = [self.facts[name].get(column, "NA") for column in self.columns]
            lines.append("\t".join([name, cohort, *values]))
        return "\n".join(lines) + "\n"


def fam_people(source: str, samples: list[str]) -> Facts:
    """What files of PLINK or EIGENSTRAT say of a cohort's samples; empty for other sources.

    PLINK's have sex, parents and phenotype; an .ind has sex and population, or Case and Control.
    """
    kind, prefix = find_format(source)
    if kind == EIGENSTRAT:
        ind = read_ind(prefix)
        labels = [label.casefold() for label in ind["population"]]
        column, words = "population", ind["population"]
        if set(labels) <= {"case", "control"}:
            column, words = "phenotype", [CLASSES[label] for label in labels]
        rows = zip(samples, ind["sex"], words, strict=True)
        return {name: {"sex": SEXES[sex], column: word} for name, sex, word in rows}
    if kind not in (PLINK, PGEN):
        return {}
    fam = read_fam(prefix) if kind == PLINK else read_psam(prefix)
    values = {
        "sex": [SEXES.get(code, "NA") for code in fam.sex],
        "father": ["NA" if name in NOBODY else name for name in fam.father],
        "mother": ["NA" if name in NOBODY else name for name in fam.mother],
        "phenotype": phenotypes(fam.phenotype.tolist()),
    }
    rows = zip(samples, zip(*values.values(), strict=True), strict=True)
    return {name: dict(zip(values, row, strict=True)) for name, row in rows}


def phenotypes(codes: list[str]) -> list[str]:
    """Recode a column of phenotypes for the sheet: 1 case, 0 control, a number, or NA.

    A column whose numbers are all -9, 0, 1 or 2, with at least one -9 or 2, has PLINK's codes: 1
    control, 2 case, 0 and -9 missing; but if it has a 0 and no 2, then 0 control, 1 case, -9
    missing. In any column, -9 and everything that is not a finite number are missing.
    """
    numbers = [_number(code) for code in codes]
    known = set(numbers) - {None}
    if known <= {-9.0, 0.0, 1.0, 2.0} and known & {-9.0, 2.0}:
        coded = PLINK_CODES if 2.0 in known or 0.0 not in known else {"0": "0", "1": "1"}
        return ["NA" if n is None else coded.get(f"{n:g}", "NA") for n in numbers]
    pairs = zip(codes, numbers, strict=True)
    return ["NA" if number in (None, -9.0) else code for code, number in pairs]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None  # false for NaN too


def read_people(path: Path, people: NewSamples) -> Facts:
    """Read the metadata of the study's samples from a table.

    The table is text with a header, separated by tabs, commas or semicolons. Columns keep their
    names, except that synonyms of the sheet's own columns are replaced (`pop`, `gender`).

    Raises
    ------
    UserError
        The file does not exist, is not a table, has no column of sample names or none of the
        study's samples, or has a value that is not valid.
    """
    header, rows = _read_table(path)
    sample_column = next((header.index(name) for name in SAMPLE_NAMES if name in header), None)
    if sample_column is None:
        raise UserError(
            f"{path}, row 1: no column of sample names; call it 'sample' (found: "
            f"{', '.join(map(shorten, header))})."
        )
    facts: Facts = {}
    for number, row in rows:
        name = row[sample_column]
        if name in facts:
            raise UserError(f"{path}, row {number}: sample '{shorten(name)}' appears twice.")
        values = dict(zip(header, row, strict=True))
        del values[header[sample_column]]
        _check_cohort(path, number, name, values.pop("cohort", ""), people)
        facts[name] = values
    shared = facts.keys() & people.facts.keys()
    if not shared:
        raise UserError(
            f"{path}: none of its {len(facts)} samples is in the genotype files; its first sample "
            f"is '{shorten(rows[0][1][sample_column])}', that of the genotype files is "
            f"'{shorten(next(iter(people.facts)))}'; use the same names."
        )
    if extra := len(facts) - len(shared):
        people.remarks.append(f"samples of {path} that are in no genotype file: {extra}, left out")
    if without := len(people) - len(shared):
        people.remarks.append(f"samples that are not in {path}: {without}")
    return _recoded({name: facts[name] for name in facts if name in shared}, path)


def _check_cohort(path: Path, number: int, name: str, given: str, people: NewSamples) -> None:
    own = people.cohorts.get(name)
    if own is not None and given not in (own, *UNKNOWN):
        raise UserError(
            f"{path}, row {number}: the cohort of sample '{shorten(name)}' is '{shorten(given)}', "
            f"but its genotypes are in the file of cohort '{own}'; rename this column, or give "
            f"that cohort this name: {re.sub(r'[^A-Za-z0-9.-]+', '-', given)}=FILE."
        )


def _recoded(facts: Facts, path: Path) -> Facts:
    """Recode sex and phenotype to the sheet's values, in place.

    Raises
    ------
    UserError
        A value that is not a sex or a phenotype.
    """
    with_phenotype = {name: values for name, values in facts.items() if "phenotype" in values}
    words = []
    for name, values in with_phenotype.items():
        word = CLASSES.get(values["phenotype"].casefold(), values["phenotype"])
        if word not in UNKNOWN and _number(word) is None:
            raise UserError(
                f"{path}: phenotype of sample '{shorten(name)}' is '{shorten(word)}'; give 1 "
                "(case), 0 (control), a number or NA."
            )
        words.append(word)
    for values, word in zip(with_phenotype.values(), phenotypes(words), strict=True):
        values["phenotype"] = word
    for name, values in facts.items():
        sex = SEXES.get(values.get("sex", "").casefold(), values.get("sex", ""))
        if sex not in ("M", "F", *UNKNOWN):
            raise UserError(
                f"{path}: sex of sample '{shorten(name)}' is '{shorten(sex)}'; give M, F or NA."
            )
        if "sex" in values:
            values["sex"] = sex
    return facts


def _read_table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header, and the rows with their line numbers."""
    if not is_file(path):
        raise UserError(f"{path} is not a file; give a table of samples.")
    text = read_sheet_text(path, str(path))
    first = text.split("\n", 1)[0]
    mark = max("\t,;", key=first.count)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    numbered = [
        (n, [" ".join(re.split(r"[\t\r\n]+", cell)).strip() for cell in row])
        for n, row in enumerate(rows, 1)
        if any(row)
    ]
    if len(numbered) < 2:
        raise UserError(f"{path} has no rows below its header; add one row per sample.")
    header = [_column(name, numbered[0][1]) for name in numbered[0][1]]
    for number, row in numbered[1:]:
        if len(row) != len(header):
            raise UserError(
                f"{path}, row {number}: this row has {len(row)} columns, but the header has "
                f"{len(header)}; correct the row."
            )
    for name in header:
        if header.count(name) > 1 or not name or name in RESERVED:
            raise UserError(
                f"{path}, row 1: the column name '{name}' is empty, reserved or used twice; "
                "rename the column."
            )
    return header, numbered[1:]


def _column(name: str, header: list[str]) -> str:
    """The sheet's name for a column of the table."""
    word = re.sub(r"[\s.-]+", "_", name.lstrip("#").casefold())
    if word in SAMPLE_NAMES and "sample" not in header:
        return "sample" if word == next(_samples(header)) else name
    for own, synonyms in OTHER_NAMES.items():
        if word == own or (word in synonyms and own not in header):
            return own
    return word if word == "cohort" else name


def _samples(header: list[str]):
    """Accepted names of the sample column that the header has, the likeliest first."""
    words = [re.sub(r"[\s.-]+", "_", name.lstrip("#").casefold()) for name in header]
    return (name for name in SAMPLE_NAMES if name in words)
