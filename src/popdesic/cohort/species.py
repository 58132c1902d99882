"""Species: values for keys that a configuration does not set (`resources/species.tsv`).

Nothing compiled is imported here, because the workflow is parsed by every job.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import dropwhile

from ..core.places import RESOURCES
from .contigs import AUTO, AUTOSOME, build_of, genome_of, species_of
from .map_rates import rate_words

TABLE = RESOURCES / "species.tsv"


@dataclass(frozen=True)
class Species:
    """A row of the table.

    Attributes
    ----------
    name : str
        As `species` of the configuration.
    latin : str
    assembly : str
        Name of the species in `resources/assemblies.tsv`; empty if it is not there.
    ploidy : int
        Of most samples.
    count : int
        Number of autosomes.
    chromosomes : str
        Pattern of their names; empty if other species use these names, too.
    defaults : dict
        Values by the dotted name of a key.
    """

    name: str
    latin: str
    assembly: str
    ploidy: int
    count: int
    chromosomes: str
    defaults: dict[str, object]


@functools.cache
def known_species() -> dict[str, Species]:
    """All species of the table, by name."""
    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(dropwhile(lambda line: line.startswith("#"), file), delimiter="\t")
        return {row["species"]: _species_in(row) for row in rows}


def _species_in(row: Mapping[str, str]) -> Species:
    defaults: dict[str, object] = {
        f"contigs.{key}": [name for name in row[key].split(";") if name]
        for key in ("x", "exclude")
        if row[key] != AUTO
    }
    if row["cm_per_mb"] != "none":
        defaults["genetic_map"] = f"{row['cm_per_mb']} cM/Mb"
    if row["build"] != "any":  # no region of another genome is left out
        defaults["qc.build"] = row["build"]
    return Species(
        row["species"],
        row["latin"],
        row["assembly"],
        int(row["ploidy"]),
        int(row["count"]),
        row["chromosomes"],
        defaults,
    )


def with_species(config: dict) -> dict:
    """The configuration as written, with what its `species` says of keys that it does not set.

    Without the key, or with a value that is none of the table, it stays as it is.
    """
    name = config.get("species")
    found = known_species().get(name) if isinstance(name, str) else None
    filled = dict(config)
    for dotted, value in (found.defaults if found else {}).items():
        block, _, key = dotted.rpartition(".")
        inner = filled.get(block) if block else filled
        if not isinstance(inner, dict) and inner is not None:
            continue  # the check names it
        if (inner or {}).get(key) is None:
            filled |= {block: {**(inner or {}), key: value}} if block else {key: value}
    return filled


def propose_species(contigs: Mapping[str, int]) -> tuple[str, str] | None:
    """Species that the contigs of some files fit, and why; None for humans and where it is open.

    Told by the length of a chromosome, or by the names of all autosomes where no other species of
    the table has such names.

    Parameters
    ----------
    contigs : mapping
        Lengths in headers, by name; 0: not given.
    """
    if told := build_of(contigs):
        fitting = [one for one in known_species().values() if one.assembly == species_of(told[0])]
        if not fitting or fitting[0].name == "human":
            return None
        return fitting[0].name, f"contig {told[1]} has the length that it has in {told[0]}"
    roles = genome_of(dict.fromkeys(contigs, 1), contigs).roles
    for one in known_species().values():
        if not one.chromosomes:
            continue
        names = [name for name in contigs if re.fullmatch(one.chromosomes, name, re.IGNORECASE)]
        excluded = one.defaults.get("contigs.exclude", [])
        others = set(contigs).difference(names, excluded)
        if len(names) >= one.count and not any(roles[name] == AUTOSOME for name in others):
            return one.name, f"contigs are named {names[0]} to {names[-1]}"
    return None


def species_words(config: dict) -> list[str]:
    """Sentences on what `species` fills in, and on a rate without a map; none by the defaults."""
    found, words = known_species().get(config["species"]), []
    values = found.defaults if found else {}
    used = [name for name, value in values.items() if _value_of(config, name) == value]
    if used:
        shown = ", ".join(f"{name} ({_shown(values[name])})" for name in used)
        words.append(f"Values of {found.latin} (species) are used for {shown}.")
    if config["genetic_map"] and (rate := rate_words(config["genetic_map"])):
        words.append(rate)
    return words


def _value_of(config: dict, dotted: str) -> object:
    block, _, key = dotted.rpartition(".")
    return (config[block] if block else config)[key]


def _shown(value: object) -> str:
    return (", ".join(value) or "none") if isinstance(value, list) else str(value)


def remark_on_ploidy(config: dict, *ploidy: int) -> list[str]:
    """A sentence if samples are of another ploidy than most of the species."""
    found = known_species().get(config["species"])
    if found is None or found.ploidy in ploidy:
        return []
    return [
        f"config/config.yaml: species is {found.name}, whose samples mostly have ploidy "
        f"{found.ploidy}, but these have ploidy {', '.join(map(str, ploidy))}; write the column "
        f"ploidy of {config['samples']} if that is wrong."
    ]
