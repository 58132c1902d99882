"""The study's sheets, checked before any job runs.

Every problem is one sentence that names the file, the row and the value (`UserError`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.callable import read_bed
from ..cohort.parents import check_parents
from ..cohort.phenotype import known_numbers, recode_phenotype
from ..cohort.samples import SEX_CODES, YES, departed_cohorts, split_excluded
from ..cohort.sheet_text import read_sheet
from ..cohort.sources import expand_sources, file_key, read_names, source_files, stamp_of
from ..core.errors import UserError, shorten, suggestion
from ..core.files import digest
from ..core.schemas import load_schema
from ..geography.coordinates import check_coordinates
from ..io.layers import most_layers
from ..io.remote import is_remote
from .batches import batches_of, is_batched
from .ploidy import ploidies_of, ploidy_of_kinds
from .sheet_rules import (
    check_columns,
    check_exported_names,
    refuse_empty_cohorts,
    require_distinct_names,
)

#: Optional columns of the cohort sheet on absent sites, and their defaults.
ABSENT_COLUMNS = {"absent": "auto", "callable": ""}


@dataclass(frozen=True)
class Study:
    """Checked sheets of one study, in sample order (founders by name, then newcomers).

    Attributes
    ----------
    cohorts : DataFrame, index `cohort`: `genotypes` (as written), `founder` (bool), `absent`,
        `callable`
    samples : DataFrame: `sample`, `cohort`, then the other columns of the sheet, all strings
    excluded : DataFrame: `sample`, `cohort` of samples that the sheet excludes; not in `samples`
    sparse : bool: no matrix of all pairs is made (`study.sparse`)
    left_out : tuple of str: sentences on what such a study does without
    kinds : tuple of int: ploidies of its samples, ascending (`ploidy.ploidies_of`)
    ploidies : dict: of each sample, excluded ones too, if there are several
    haploid : tuple of str: sentences on what a study of haploids or polyploids does without
    batches : dict: cohorts of each unit (`batches.batches_of`); None: each cohort is one
    """

    cohorts: pd.DataFrame
    samples: pd.DataFrame
    excluded: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=["sample", "cohort"], dtype=str)
    )
    kinds: tuple[int, ...] = (2,)
    ploidies: dict[str, int] = field(default_factory=dict)
    sparse: bool = False
    left_out: tuple[str, ...] = ()
    haploid: tuple[str, ...] = ()
    batches: dict[str, list[str]] | None = None

    @property
    def store(self) -> str:
        """What holds distances: ``dense``, matrices of all pairs, or ``near``, the nearest."""
        return "near" if self.sparse else "dense"

    @property
    def ploidy(self) -> int:
        """Of all samples; `ploidy.ploidy_of_kinds` where they differ in it."""
        return ploidy_of_kinds(self.kinds)

    @property
    def layers(self) -> int:
        """Columns of a sample in files of genotypes (`io.layers`)."""
        return most_layers(self.kinds)

    @functools.cached_property
    def units(self) -> dict[str, list[str]]:
        """Cohorts that are read together, by unit, in sample order.

        A unit is a cohort, or a batch of small ones. Results, rules and all else of this class but
        `cohorts` and the column `cohort` of `samples` and `excluded` speak of units.
        """
        return self.batches or {cohort: [cohort] for cohort in self.cohorts.index}

    @functools.cached_property
    def unit_of(self) -> dict[str, str]:
        """Unit of each cohort."""
        return {cohort: unit for unit, members in self.units.items() for cohort in members}

    @property
    def order(self) -> list[str]:
        """Names of units in sample order."""
        return list(self.units)

    @property
    def listed(self) -> list[str]:
        """Cohorts of the sheet in sample order."""
        return list(self.unit_of)

    @functools.cached_property
    def _roles(self) -> dict[str, bool]:
        """Whether each unit is a founder."""
        founder = self.cohorts.founder
        return {unit: bool(founder[members[0]]) for unit, members in self.units.items()}

    @property
    def founders(self) -> list[str]:
        return [unit for unit, founder in self._roles.items() if founder]

    @property
    def newcomers(self) -> list[str]:
        return [unit for unit, founder in self._roles.items() if not founder]

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Number of samples of each unit."""
        counted = self._unit_column.value_counts()
        return {unit: int(counted.get(unit, 0)) for unit in self.order}

    @property
    def _unit_column(self) -> pd.Series:
        """Unit of each sample."""
        cohort = self.samples.cohort
        return cohort if self.batches is None else cohort.map(self.unit_of)

    @functools.cached_property
    def _rows(self) -> dict[str, np.ndarray]:
        return dict(self.samples.groupby(self._unit_column).indices)

    @functools.cached_property
    def _digests(self) -> dict[tuple, str]:
        return {}

    @functools.cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {}

    @functools.cached_property
    def _sources(self) -> dict[str, list[str]]:
        return {}

    def samples_of(self, cohort: str) -> pd.DataFrame:
        """Rows of a unit's samples."""
        return self.samples.iloc[self._rows.get(cohort, [])]

    def names_in_files(self, cohort: str) -> list[str]:
        """Names that a cohort's files must have: its samples and those that are excluded.

        `cohort` is one of the sheet.
        """
        rows = self.samples_of(self.unit_of[cohort])
        left = self.excluded["sample"][self.excluded.cohort == cohort]
        return rows["sample"][rows.cohort == cohort].tolist() + left.tolist()

    def ploidies_in_files(self, cohort: str) -> list[dict[str, int]]:
        """Ploidy of each of `names_in_files`, if the study has several; else an empty list."""
        names = sorted(self.names_in_files(cohort)) if self.ploidies else []
        return [{name: self.ploidies[name] for name in names}] if names else []

    def _csv(self, cohort: str | None, columns: list[str]) -> str:
        """These columns as `DataFrame.to_csv` writes them, in a tenth of the time."""
        for name in columns:
            if name not in self._texts:
                self._texts[name] = self.samples[name].tolist()
        rows = range(len(self.samples)) if cohort is None else self._rows.get(cohort, [])
        if len(rows) and len(rows) == rows[-1] - rows[0] + 1:  # in sample order cohorts are blocks
            part = slice(rows[0], rows[-1] + 1)
            lists = [self._texts[name][part] for name in columns]
            try:
                text = "\n".join([",".join(columns), *map(",".join, zip(*lists, strict=True)), ""])
            except TypeError:  # a missing value
                text = '"'
            # With a comma in a value, quotes, or a column alone, the format has rules of its own.
            commas = (len(columns) - 1) * (len(rows) + 1)
            if text.count(",") == commas > 0 and '"' not in text and "\r" not in text:
                return text
        chosen = self.samples if cohort is None else self.samples_of(cohort)
        return chosen[columns].to_csv(index=False)

    def digest_of(self, cohort: str | None = None, *columns: str) -> str:
        """Digest of these columns (default all) of a cohort's rows (default all rows)."""
        if (cohort, *columns) not in self._digests:
            chosen = [c for c in self.samples.columns if not columns or c in ("sample", *columns)]
            self._digests[cohort, *columns] = digest(self._csv(cohort, chosen))
        return self._digests[cohort, *columns]


def load_study(config: dict, folder: Path = Path(), *, check_files: bool = True) -> Study:
    """Read both sheets, check them, and compare them with the samples in the genotype files.

    Parameters
    ----------
    config : dict
        From `fill_config`.
    folder : Path
        The study folder; all paths are relative to it.
    check_files : bool
        Also check the pedigree, open every genotype file and compare its samples with the sheet.
    """
    cohorts = _load_cohorts(folder, config["cohorts"])
    samples, excluded = _load_samples(folder, config["samples"], cohorts, config["cohorts"])
    if check_files:  # jobs read the sheets again, but need no second check
        check_parents(samples, config["samples"])
        check_coordinates(samples, config["samples"])
    # Within a cohort, the genotype file sets the order; the order in the sheet means nothing.
    study = Study(
        cohorts,
        samples.drop(columns="row"),
        excluded[["sample", "cohort"]],
        *ploidies_of(samples, excluded, config["samples"]),
    )
    color_by = config["report"]["color_by"]
    columns = [c for c in samples.columns if c != "row"]
    if color_by not in columns and color_by != "population":
        raise UserError(
            f"config/config.yaml: report.color_by is '{shorten(color_by)}', which is not a column "
            f"of {config['samples']}{suggestion(color_by, columns)}"
        )
    check_exported_names(samples, config)
    if check_files:
        everyone = pd.concat([samples, excluded], ignore_index=True)
        rows = everyone.groupby("cohort").indices
        for cohort in cohorts.index:
            listed = everyone.iloc[rows.get(cohort, [])]
            _check_sample_names(folder, cohort, cohorts, listed, config)
            _check_mask(folder, cohort, cohorts, config)
    n_founders = int(samples.cohort.isin(study.founders).sum())
    if n_founders < 2:
        raise UserError(
            f"{config['samples']}: the founders ({', '.join(study.founders)}) have {n_founders} "
            "sample in total, but the panel and the PCA axes need at least two; add samples or set "
            f"founder = yes for more cohorts in {config['cohorts']}."
        )
    batches = batches_of(folder, cohorts, study.counts)
    if not is_batched(batches) or study.ploidy > 2:
        return study
    study = replace(study, batches=batches)
    # A batch's samples lie together, as those of a cohort do.
    rank = {cohort: rank for rank, cohort in enumerate(study.listed)}
    order = np.argsort(study.samples.cohort.map(rank).to_numpy(), kind="stable")
    return replace(study, samples=study.samples.iloc[order].reset_index(drop=True))


def _load_cohorts(folder: Path, shown: str) -> pd.DataFrame:
    sheet = read_sheet(folder / shown, shown)
    check_columns(sheet, load_schema("cohorts"), shown)
    for name, rows in sheet.groupby("cohort").row:
        if len(rows) > 1:
            raise UserError(
                f"{shown}, row {rows.iloc[1]}: cohort '{name}' already appears in row "
                f"{rows.iloc[0]}; names must be unique."
            )
    sheet["founder"] = sheet.founder.str.lower().isin(YES)
    if not sheet.founder.any():
        raise UserError(
            f"{shown}: no cohort has founder = yes, but the panel needs at least one founder; "
            "set it for the cohorts that define the sites."
        )
    require_distinct_names(sheet, shown)
    for column, default in ABSENT_COLUMNS.items():
        sheet[column] = sheet[column].replace("", default) if column in sheet else default
    for row in sheet[(sheet.callable != "") & (sheet.absent != "auto")].itertuples():
        raise UserError(
            f"{shown}, row {row.row}: absent is '{row.absent}', but callable names "
            f"'{shorten(row.callable)}'; clear one of them (a mask needs absent = auto)."
        )
    return sheet.sort_values(["founder", "cohort"], ascending=[False, True]).set_index("cohort")


def _load_samples(
    folder: Path, shown: str, cohorts: pd.DataFrame, cohorts_shown: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of samples that stay, in sample order and recoded, and of those excluded."""
    sheet = read_sheet(folder / shown, shown)
    check_columns(sheet, load_schema("samples"), shown)
    # Sex and phenotype are recoded last, so that errors show values as written in the sheet.
    if len(unknown := sheet[~sheet.cohort.isin(cohorts.index)]):
        row, cohort = unknown.row.iloc[0], unknown.cohort.iloc[0]
        raise UserError(
            f"{shown}, row {row}: cohort '{shorten(cohort)}' is not in {cohorts_shown}"
            f"{suggestion(cohort, cohorts.index)}"
        )
    for name, rows in sheet[sheet.duplicated("sample", keep=False)].groupby("sample"):
        first, second = rows.iloc[0], rows.iloc[1]
        where = (
            f"of cohort '{first.cohort}'"
            if first.cohort == second.cohort
            else f"in cohort '{first.cohort}', now in '{second.cohort}'"
        )
        raise UserError(
            f"{shown}, row {second.row}: sample '{name}' already appears in row {first.row} "
            f"{where}; sample names must be unique across cohorts."
        )
    sheet, excluded = split_excluded(sheet)
    refuse_empty_cohorts(sheet, excluded, shown, cohorts_shown)
    if "sex" in sheet:
        sheet["sex"] = sheet.sex.replace(SEX_CODES)
    if "phenotype" in sheet:
        written = sheet.phenotype
        sheet["phenotype"] = recode_phenotype(sheet, shown)
        numbers = known_numbers(sheet.phenotype)
        known = np.flatnonzero(~np.isnan(numbers))
        if len(known) and (numbers[known] == numbers[known[0]]).all():
            raise UserError(
                f"{shown}, column phenotype: all {len(known)} known values are "
                f"'{written.iloc[known[0]]}'; give cases (1) and controls (0), numbers, or "
                "NA for all."
            )
    rank = {cohort: rank for rank, cohort in enumerate(cohorts.index)}
    keys = list(zip(map(rank.get, sheet.cohort.tolist()), sheet["sample"].tolist(), strict=True))
    order = sorted(range(len(sheet)), key=keys.__getitem__)
    in_order = sheet.iloc[order].reset_index(drop=True)
    return in_order, excluded


def remark_on_excluded(study: Study, shown: str) -> list[str]:
    """Return one sentence that says whose samples are excluded and what follows; no names."""
    counts = study.excluded.cohort.value_counts()
    if counts.empty:
        return []
    of = [f"{counts[cohort]} of {cohort}" for cohort in study.cohorts.index if cohort in counts]
    roles = study.cohorts.founder
    founders = [cohort for cohort in roles.index[roles] if cohort in counts]
    total = int(counts.sum())
    sentence = f"{shown} excludes {total} sample{'s' * (total > 1)} ({', '.join(of)})"
    if founders:
        sentence += (
            f"; {', '.join(founders)} {'are founders' if len(founders) > 1 else 'is a founder'}, "
            "so the panel and everything that follows from it is defined without them"
        )
    return [f"{sentence}."]


def remark_on_departed(folder: Path, order: Iterable[str], shown: str) -> list[str]:
    """Return one sentence on cohorts that were deleted from the sheet but not from the results."""
    gone = departed_cohorts(folder, order)
    if not gone:
        return []
    return [
        f"results still hold genotypes and sample names of {', '.join(gone)}, which "
        f"{'are' if len(gone) > 1 else 'is'} not in {shown}; `popdesic forget --cohort {gone[0]}` "
        "deletes them."
    ]


def _check_sample_names(folder, cohort, cohorts, listed, config) -> None:
    row = cohorts.loc[cohort]
    shown = f"{config['cohorts']}, row {row.row}"
    try:
        names = read_names(expand_sources(row.genotypes, folder), folder)
    except UserError as error:
        raise UserError(f"{shown}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"{shown}: {shorten(row.genotypes)} cannot be read ({reason}); correct the path."
        ) from None
    known, present = set(listed["sample"].tolist()), set(names)
    if known == present:
        return
    for sample_row, name in zip(listed.row, listed["sample"], strict=True):
        if name not in present:
            raise UserError(
                f"{config['samples']}, row {sample_row}: sample '{name}' is not in "
                f"{row.genotypes}{suggestion(name, names[:2000])}"
            )
    missing = [name for name in names if name not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UserError(
            f"{row.genotypes}: sample '{missing[0]}'{more} of cohort '{cohort}' "
            f"{'are' if more else 'is'} not listed in {config['samples']}; add a row for each."
        )


def _check_mask(folder: Path, cohort: str, cohorts: pd.DataFrame, config: dict) -> None:
    """Read the beginning of a cohort's mask; jobs read the rest."""
    row = cohorts.loc[cohort]
    if row.callable:
        shown = f"{config['cohorts']}, row {row.row}, callable"
        read_bed(folder / row.callable, shown, beginning=True)


def cohort_sources(study: Study, cohort: str) -> list[str]:
    """Return the sources of a cohort's genotypes: VCF or BCF files, or prefixes."""
    if cohort not in study._sources:
        study._sources[cohort] = expand_sources(study.cohorts.genotypes[cohort])
    return study._sources[cohort]


def cohort_absent(study: Study, unit: str) -> list[str]:
    """What the sheet says of a unit's absent sites: the fields of `cohort.absent.Absent`."""
    cohort = study.units[unit][0]
    rule, mask = study.cohorts.absent[cohort], study.cohorts["callable"][cohort]
    return [rule, mask, file_key([mask]) if mask else ""]


def said_of_absent(study: Study, cohort: str) -> str:
    """What the sheet says of a cohort's absent sites, in words; empty if it says nothing."""
    rule, mask = study.cohorts.absent[cohort], study.cohorts["callable"][cohort]
    if rule == "auto":
        return f"absent sites: homozygous reference within {mask}" if mask else ""
    return "absent sites: " + {"reference": "homozygous reference"}.get(rule, rule)


def is_batch(study: Study, unit: str) -> bool:
    """Whether a unit is a batch of cohorts."""
    return study.units[unit] != [unit]


def described_sources(study: Study, unit: str) -> str:
    """A unit's genotypes as the sheet writes them; of a batch the number of its cohorts."""
    members = study.units[unit]
    if is_batch(study, unit):
        return f"{len(members)} cohorts, {members[0]} to {members[-1]}"
    return study.cohorts.genotypes[unit]


def cohort_files(study: Study, unit: str) -> list[str]:
    """Return the files of the genotypes of a unit's cohorts; objects of a store are none."""
    return [
        path
        for cohort in study.units[unit]
        for source in cohort_sources(study, cohort)
        if not is_remote(source)
        for path in source_files(source)
    ]


def remote_bytes(study: Study, unit: str) -> int:
    """Return the bytes of a unit's cohorts that are in object stores."""
    sources = (source for cohort in study.units[unit] for source in cohort_sources(study, cohort))
    return sum(stamp_of(source)[0] for source in sources if is_remote(source))
