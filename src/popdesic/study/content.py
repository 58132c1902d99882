"""What files that are not decoded hold: sites, rare ones, scores of sets, for the forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..cohort.contigs import excluded_names, haploid_policies
from ..cohort.first_records import FirstRecords, first_records
from ..cohort.panel import load_panel
from ..cohort.sources import expand_sources
from ..cohort.spread_records import Content, expected_content
from ..io.batches import LeftOut
from ..io.call_filters import CallFilters
from ..io.formats import header_contigs
from ..io.remote import located
from .sheets import Study

#: `disk.StudySizes`, which this module does not import: chains of imports are short.
Sizes = TypeVar("Sizes")


def look_into_files(
    folder: Path, config: Mapping[str, Any], study: Study, genotypes: Sizes
) -> Sizes:
    """Sizes of a study with what some records of its files show, and what its sets will take.

    Units whose `raw.bed` is there, batches of small cohorts and polyploids are left as they are.
    Numbers of sites that are estimated do not make `known` true. Without `--sites` and a panel, the
    panel's sites are those of the founder that has fewest, times the share of sites of all files
    whose minor allele is frequent enough.
    """
    cohorts = {
        unit: cohort
        for unit, (cohort, *more) in study.units.items()
        if not more and study.layers == 1 and unit not in genotypes.named
        if not (folder / f"results/cohorts/{unit}/raw.bed").is_file()
    }
    sources = {
        cohort: [
            located(one, folder) for one in expand_sources(study.cohorts.genotypes[cohort], folder)
        ]
        for cohort in cohorts.values()
    }
    every = [one for own in sources.values() for one in own]
    found = {
        unit: content
        for unit, cohort in cohorts.items()
        if (content := _content_of(sources[cohort], every, config, study, unit)) is not None
    }
    sites = genotypes.sites | {unit: content.sites for unit, content in found.items()}
    listed = {unit: int(one.listed) for unit, one in found.items() if one.has_lists}
    n_sites, source = genotypes.n_sites, genotypes.source
    if genotypes.guessed and found:
        common = sum(one.common for one in found.values()) / sum(
            one.sites for one in found.values()
        )
        n_sites = max(1, round(common * min(sites[unit] for unit in study.founders)))
        looked = sum(content.looked for content in found.values())
        source = f"estimated from {looked} sites of the files; set the number with --sites N"
    return replace(
        genotypes,
        sites=sites,
        listed={**genotypes.listed, **listed},
        n_sites=n_sites,
        source=source,
        set_bytes=_set_bytes(folder, config, study, n_sites),
    )


def _content_of(
    sources: list[Path], every: list[Path], config: Mapping[str, Any], study: Study, unit: str
) -> Content | None:
    """What the files of a unit hold, which are some of `every` one that is looked at."""
    contigs, exclude = header_contigs(sources), config["contigs"]["exclude"]
    haploid = haploid_policies(config["contigs"]["haploid"], exclude, contigs)
    filters = CallFilters.parse(config["ingest"] | config["sites"])
    excluded = frozenset(study.excluded["sample"])
    left_out = LeftOut(excluded, frozenset(excluded_names(exclude, contigs)))
    names = study.samples_of(unit)["sample"]

    def decode(path: Path | str, n_bytes: int) -> FirstRecords:
        return first_records(path, haploid, filters, n_bytes, left_out, study.ploidies or None)

    least = config["panel"]["min_maf"]
    parts = [
        expected_content(one, names, least, (every.index(one), len(every)), decode)
        for one in sources
    ]
    return None if None in parts else Content.of_files(parts)


def _set_bytes(folder: Path, config: Mapping[str, Any], study: Study, n_sites: int) -> float:
    """Bytes of the scores of all sets that are kept of a cohort (`epistasis.kept_sets`)."""
    from ..epistasis.options import set_files

    files = set_files(config["epistasis"]["sets"])
    if files is None or len(study.units) == 1:
        return 0.0
    from ..epistasis.set_list import read_set_pairs, read_sets, sites_of_ranges
    from ..epistasis.sets import MOST_KEPT

    sets = read_sets(folder / files.file)
    if files.pairs:
        sets = read_set_pairs(folder / files.pairs, sets, folder / files.file).sets
    table = folder / "results/panel/sites.tsv"
    if table.is_file():
        panel, _ = load_panel(table, ["chrom", "pos"])
        within = sites_of_ranges(panel["chrom"].to_numpy(), panel["pos"].to_numpy())

        def count(ranges: list) -> float:
            return len(within(ranges))
    else:
        ends: dict[str, int] = {}
        for contig, _, end in (one for entry in sets for one in entry.first + entry.second):
            ends[contig] = max(ends.get(contig, 0), end)
        density = n_sites / max(1, sum(ends.values()))

        def count(ranges: list) -> float:
            return density * sum(end - start for _, start, end in ranges)

    total = 0.0
    for entry in sets:
        first, second = count(entry.first), count(entry.second)
        products = first * second if entry.second else first * max(first - 1, 0) / 2
        if products <= MOST_KEPT:
            total += 4 * products * (products + 1) + 32 * products + 24 * (first + second)
    return total
