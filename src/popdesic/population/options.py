"""Options of the statistics of populations, checked before any job; cheap to import."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.contigs import genome_of
from ..cohort.map_rates import map_file
from ..cohort.samples import UNKNOWN
from ..core.errors import UserError, shorten, suggestion
from ..core.files import is_file

#: Smaller populations are left out: one person has no diversity between people.
LEAST_PEOPLE = 2

#: Base pairs of a unit of `population.block`.
UNITS = {"bp": 1, "kb": 1e3, "mb": 1e6}
#: `population.block: auto` without and with a genetic map.
AUTO = ("2 Mb", "5 cM")
_WHERE = "config/config.yaml: population"


def parse_block(text: str) -> tuple[float, str]:
    """Size and unit (``bp`` or ``cM``) of a block of sites.

    Raises
    ------
    UserError
        Not a positive number and a unit.
    """
    words = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(bp|kb|mb|cm)\s*", text, re.IGNORECASE)
    if words is None or float(words[1]) <= 0:
        raise UserError(
            f"{_WHERE}.block is '{shorten(text)}'; give auto, or a positive number and bp, kb, Mb "
            "or cM, such as '2 Mb'."
        )
    size = float(words[1])
    unit = words[2].lower()
    return (size, "cM") if unit == "cm" else (size * UNITS[unit], "bp")


def block_of(config: Mapping) -> str:
    """The size of blocks that a study asks for: `population.block`, `auto` filled in.

    LD reaches over genetic, not physical distances, so blocks are 5 cM where a map is given, as
    ADMIXTOOLS has them.
    """
    block = config["population"]["block"]
    return AUTO[bool(map_file(config["genetic_map"]))] if block == "auto" else block


def sizes_of(samples: pd.DataFrame, column: str) -> dict[str, int]:
    """People of each population in the sheet, by name; rows without a label do not count."""
    if column not in samples:
        return {}
    known = samples[column][~samples[column].isin(UNKNOWN)]
    return {name: int(n) for name, n in sorted(known.value_counts().items())}


def check_population(
    config: dict, samples: pd.DataFrame, contigs: Mapping[str, int], folder: Path = Path()
) -> list[str]:
    """Refuse statistics that are impossible with a study's sheets and configuration.

    Parameters
    ----------
    config : dict
        The study's configuration, defaults filled in.
    samples : DataFrame
        The sample sheet.
    contigs : dict
        Contigs named in the headers of the cohorts' files, and their lengths (0: not known).
    folder : Path
        The study's folder.

    Returns
    -------
    list of str
        A sentence for each population that is too small.

    Raises
    ------
    UserError
        The first problem found.
    """
    block = config["population"]
    if not block["analyses"]:
        return []
    _, unit = parse_block(block_of(config))
    if unit == "cM" and not config["genetic_map"]:
        raise UserError(
            f"{_WHERE}.block is '{block['block']}', which needs a genetic map; give one in "
            "genetic_map, or a block in Mb."
        )
    _check_mask(config, folder)
    sheet, column = config["samples"], block["column"]
    if column not in samples:
        if column != "population" or block["f4"]:
            raise UserError(
                f"{_WHERE}.column is '{shorten(column)}', which is not a column of {sheet}"
                f"{suggestion(column, [name for name in samples.columns if name != 'row'])}"
            )
        return []
    on_x = x_on_panel(config, contigs)
    remarks = [
        f"config/config.yaml: contigs.exclude may leave sites of '{shorten(contig)}' on the panel, "
        "of which males have one copy; statistics of populations do without them. Set contigs.x to "
        "[] if it is no sex chromosome here."
        for contig in contigs
        if contig in on_x
    ]
    sizes = sizes_of(samples, column)
    enough = [name for name, n in sizes.items() if n >= LEAST_PEOPLE]
    for row, names in enumerate(block["f4"], start=1):
        _check_test(names, row, sizes, enough, LEAST_PEOPLE, sheet)
    return remarks + [
        f"{sheet}: population '{shorten(name)}' has {n} "
        f"{'sample' if n == 1 else 'samples'}, fewer than "
        f"{LEAST_PEOPLE}, so it is left out of all statistics of populations; give these "
        "samples another label."
        for name, n in sizes.items()
        if n < LEAST_PEOPLE
    ]


def x_on_panel(config: dict, contigs: Mapping[str, int]) -> set[str]:
    """Those of the contigs that are X and may have sites on the panel; often none."""
    genome = genome_of(dict.fromkeys(contigs, 0), contigs)
    on_x = set(genome.x_contigs(config["contigs"]["x"]))
    return on_x.difference(genome.excluded(config["contigs"]["exclude"]))


def x_names(contigs: Iterable[str]) -> set[str]:
    """Names of X chromosomes: those given, and with `chr` in front unless they are a number."""
    given = set(contigs)
    return given | {f"chr{name}" for name in given if not name.isdigit()}


def used_sites(sites: pd.DataFrame, x_contigs: list[str]) -> np.ndarray:
    """Sites that count: bool (n_sites,); not those on X, of which males have one copy."""
    return ~sites.chrom.isin(x_names(x_contigs)).to_numpy()


def _check_mask(config: dict, folder: Path) -> None:
    path = config["population"]["mask"]
    if not path:
        return
    if not is_file(folder / path):
        raise UserError(
            f"{_WHERE}.mask is '{shorten(path)}', which does not exist; give a BED file of the "
            "positions that could be called, relative to the study folder, or ''."
        )


def _check_test(
    names: list[str], row: int, sizes: dict[str, int], enough: list[str], least: int, sheet: str
) -> None:
    if len(set(names)) != 4:
        raise UserError(
            f"{_WHERE}.f4, test {row} is {', '.join(map(shorten, names))}; name four different "
            "populations."
        )
    for name in names:
        if name not in sizes:
            raise UserError(
                f"{_WHERE}.f4, test {row} names '{shorten(name)}', which is not a population of "
                f"{sheet}{suggestion(name, sizes)}"
            )
        if name not in enough:
            raise UserError(
                f"{_WHERE}.f4, test {row} names '{shorten(name)}', which has {sizes[name]} of the "
                f"samples in {sheet}, fewer than {least}; leave the test out."
            )
