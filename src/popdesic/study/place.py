"""Place one genome in a finished study without changing it (`popdesic place`)."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.contigs import excluded_names, genome_of_panel, haploid_policies
from ..cohort.drift import MIN_PRESENT, person_difference
from ..cohort.genotype_choice import missing_rule
from ..cohort.match import match_sites
from ..cohort.panel import load_panel
from ..cohort.person_calls import person_remark, write_person_calls
from ..cohort.planes import load_planes
from ..core.errors import UserError, shorten, suggestion
from ..core.files import read_json, write_json
from ..core.tables import read_columns, write_table
from ..distance.tiles import limit_in_words, require_one_panel, within_panel
from ..engine.backend import Backend
from ..ibd.verdict import (
    SearchedGenome,
    judge_pairs,
    panel_evidence,
    panel_genome,
    relation_by_pair,
)
from ..io.bed import read_bim
from ..io.call_filters import CallFilters
from ..io.formats import header_contigs, read_sample_names
from ..io.person_table import is_person_table, person_of
from ..relatives.against_all import (
    AgainstAll,
    compare_with_all,
    describe_pairs,
    nearest_people,
    relatives_of_one,
)
from ..relatives.identity import genotypes_of
from ..relatives.independence import judge_cohort
from ..relatives.kinship import SAME, UNTOLD
from ..relatives.options import identity_error, least_kinship
from ..relatives.queries import place_profiles
from ..relatives.resolution import Resolution, load_resolution
from .configuration import read_config
from .place_text import UNDETERMINED, describe_place
from .sheets import Study
from .validation import require_build, validate_study

#: Nearest people that are listed.
NEAREST = 20
#: A file lists variants only if so many homozygous REF genotypes are expected in it and it has less
#: than this share of them.
EXPECTED_REF, LEAST_REF = 20.0, 0.02
PANEL, PANEL_COUNTS = Path("results/panel/sites.tsv"), Path("results/panel/counts.json")
RESOLUTION = Path("results/compare/kinship.json")
PARTITION = Path("results/communities/partition.tsv")


@dataclass(frozen=True)
class Person:
    """A genome on a study's panel: its name, the folder of its planes, and its sites."""

    name: str
    folder: Path
    sites: dict
    remarks: list[str]


#: ``on_maps(folder, against, config, sheets, backend)``: see `place_maps.place_on_maps`.
OnMaps = Callable[[Path, AgainstAll, dict, Study, Backend], tuple[dict, list[str]]]


def place_sample(
    source: Path,
    study: Path,
    backend: Backend,
    on_maps: OnMaps,
    *,
    sample: str | None = None,
    out: Path,
) -> str:
    """Place one person of a genotype file in a study and describe the place as text.

    Nothing of the study changes. `place.tsv` (the nearest people and all relatives) and
    `place.json` (everything) are written to `out`.

    Parameters
    ----------
    source : Path
        VCF, BCF, VCF-Zarr, a prefix of PLINK or EIGENSTRAT files, or a person's table
        (`io.person_table`).
    study : Path
        The folder of a study that has run.
    backend : Backend
        Its threads change no byte.
    on_maps : function
        `place_maps.place_on_maps`, which the command hands in.
    sample : str, optional
        Which sample of the file; needed if it has several.

    Raises
    ------
    UserError
        The study has no results, or not those of its sheets, or is of polyploids; the file has
        several samples and `sample` names none, is of another genome build, lists variants only, or
        has fewer called panel sites than the study's own limits allow.
    """
    source, out = source.absolute(), out.absolute()
    name = _choose_sample(source, sample)
    if not (study / PANEL).is_file():
        raise UserError(
            f"{study} has no results yet (no {PANEL}), so there is nothing to place a sample in; "
            f"run `popdesic run {study}` first."
        )
    if out.is_relative_to((study / "results").absolute()):
        raise UserError(f"--out is {out}, inside the study's results; give another folder.")
    with contextlib.chdir(study), tempfile.TemporaryDirectory(prefix="popdesic.") as scratch:
        config, sheets, _ = validate_study(read_config(), files=False)
        if sheets.ploidy > 2:
            kinds = ", ".join(map(str, sheets.kinds))
            raise UserError(
                f"{study} is of samples of ploidy {kinds}, and only haploids and diploids "
                "are placed; add the sample as a cohort with founder = no, and run the study again."
            )
        folders = _finished_cohorts(sheets, study)
        person = _encode(source, name, Path(scratch), folders[0], config, sheets, backend.threads)
        place, table = _measure(person, config, sheets, folders, backend, on_maps)
    about = {"sample": name, "file": str(source), "study": str(study.absolute()), **place}
    write_table(out / "place.tsv", table)
    write_json(out / "place.json", about)
    return describe_place(about, table, out)


def _choose_sample(source: Path, sample: str | None) -> str:
    names = [person_of(source)] if is_person_table(source) else read_sample_names(source)
    if sample is None and len(names) > 1:
        shown = ", ".join(shorten(name, 30) for name in names[:5])
        raise UserError(
            f"{source} has {len(names)} samples ({shown}{', …' if len(names) > 5 else ''}); choose "
            "one with --sample NAME."
        )
    if sample is not None and sample not in names:
        raise UserError(f"{source} has no sample '{sample}'{suggestion(sample, names)}")
    return sample or names[0]


def _finished_cohorts(sheets: Study, study: Path) -> list[Path]:
    """Folders of the planes of all cohorts, in sample order."""
    folders = [Path(f"results/cohorts/{cohort}") for cohort in sheets.order]
    away = set(sheets.excluded["sample"])
    for folder in folders:
        if not (folder / "planes.json").is_file() or not (folder / "planes.npy").is_file():
            raise UserError(
                f"{folder}/planes.npy does not exist: the study has not run to its end; run "
                f"`popdesic run {study}` first."
            )
        if away and away.intersection(read_json(folder / "planes.json")["samples"]):
            raise UserError(
                f"{folder}/planes.npy still holds a sample that the sheet excludes; run `popdesic "
                f"run {study}` first."
            )
    return folders


def _encode(
    source: Path,
    name: str,
    scratch: Path,
    some_cohort: Path,
    config: dict,
    sheets: Study,
    threads: int,
) -> Person:
    """Decode the person and match the sites to the panel, as those of a new cohort."""
    folder, read, remarks = scratch / "person", source, []
    filters, letters = CallFilters.parse(config["ingest"] | config["sites"]), {}
    if is_person_table(source):
        read, filters = scratch / f"{source.name}.vcf", CallFilters()  # it states no quality
        letters = write_person_calls(
            source, load_panel(PANEL)[0], genome_of_panel(PANEL_COUNTS), read
        )
        remarks = [person_remark(source, letters)]
    else:
        require_build(source, sheets, config["qc"]["build"])
    contigs, exclude = header_contigs([read]), config["contigs"]["exclude"]
    method = config["impute"]["method"]
    try:
        counts = place_profiles(
            read,
            PANEL,
            folder,
            haploid=haploid_policies(config["contigs"]["haploid"], exclude, contigs),
            excluded_contigs=excluded_names(exclude, contigs),
            filters=filters,
            threads=threads,
            impute="none" if method == "none" else "mode",
            excluded=set(read_sample_names(read)) - {name},
        )
    except UserError as error:  # which names the decoded files
        named = re.escape(str(folder / "raw")) + r"(\.bed|\.bim|\.fam)?|" + re.escape(str(read))
        raise UserError(re.sub(named, lambda _: str(source), str(error))) from None
    planes, about = load_planes(folder)
    require_one_panel(some_cohort, read_json(some_cohort / "planes.json"), folder, about)
    panel, digest = load_panel(PANEL)
    genotypes = genotypes_of(planes, np.array([0]))[0]
    _, swapped, _ = match_sites(read_bim(folder / "raw"), panel)
    sites = _describe_sites(genotypes, swapped, panel, counts, digest, sheets.ploidy)
    _require_sites(source, sites, config)
    if letters:
        sites["letters"] = letters
    return Person(name, folder, sites, remarks + _remarks(sites, name, sheets, method, config))


def _describe_sites(
    genotypes: np.ndarray,
    swapped: np.ndarray,
    panel: pd.DataFrame,
    counts: dict,
    digest: str,
    ploidy: int,
) -> dict:
    """Counts and rates of a person at the panel's sites.

    `genotypes` int8 (n_sites,), -1 missing; `swapped` bool: REF and ALT are exchanged in the file.
    Homozygous REF genotypes are those of the file. A haploid has no heterozygosity.
    """
    called = genotypes >= 0
    af, found = panel.af.to_numpy(), counts["panel_sites_found"]
    observed, expected = person_difference(genotypes[called], af[called], ploidy)
    diploid = ploidy == 2 and bool(called.any())
    p = af[called]
    ref = np.where(swapped[called], p, 1 - p)
    return {
        "panel": digest,
        "panel_sites": len(panel),
        "found": found,
        "swapped": counts["swapped_turned"],
        "ambiguous": counts["swapped_ambiguous_dropped"],
        "not_on_panel": counts["sites_not_on_panel"],
        "called": int(called.sum()),
        "share_present": found / len(panel),
        "call_rate": int(called.sum()) / max(found, 1),
        "heterozygosity": float((genotypes[called] == 1).mean()) if diploid else None,
        "expected_heterozygosity": float((2 * p * (1 - p)).mean()) if diploid else None,
        "af_difference": observed,
        "expected_af_difference": expected,
        "homozygous_ref": int((genotypes == np.where(swapped, 2, 0)).sum()),
        "expected_homozygous_ref": float((ref**ploidy).sum()),
    }


def _require_sites(source: Path, sites: dict, config: dict) -> None:
    limits = config["distance"]["min_called"], sites["panel_sites"]
    if sites["called"] < within_panel(*limits):
        raise UserError(
            f"{source} has a called genotype at {sites['called']} of the panel's "
            f"{sites['panel_sites']} sites, fewer than {limit_in_words(*limits)}: too few "
            "to place it; check that it is of the panel's genome build, or genotype more sites."
        )
    rate = config["qc"]["min_sample_call_rate"]
    if sites["call_rate"] < rate:
        raise UserError(
            f"{source} has a call rate of {sites['call_rate']:.4f} at the panel's sites, below "
            f"qc.min_sample_call_rate = {rate}: the study would leave such a sample out."
        )
    expected = sites["expected_homozygous_ref"]
    if expected >= EXPECTED_REF and sites["homozygous_ref"] < LEAST_REF * expected:
        raise UserError(
            f"{source} has {sites['homozygous_ref']} homozygous REF genotypes at {sites['called']} "
            f"called panel sites, where about {expected:.0f} are expected: it lists variants "
            "only; write all sites of the panel (bcftools mpileup and call with --regions-file)."
        )


def _remarks(sites: dict, name: str, sheets: Study, method: str, config: dict) -> list[str]:
    remarks = []
    if sites["share_present"] < MIN_PRESENT:
        remarks.append(
            f"Only {sites['share_present']:.1%} of the panel's sites are in the file; distances "
            "rest on fewer sites than those of the study."
        )
    if (sheets.samples["sample"] == name).any():
        remarks.append(f"The study has a sample named '{name}' too; names do not show who is who.")
    if method in ("beagle", "copying") and missing_rule(config) == "imputed":
        how = "with Beagle" if method == "beagle" else "by copying from a reference"
        remarks.append(
            f"The study imputes {how}; missing genotypes of this sample are filled with the "
            "panel's most frequent genotype instead, so distances differ a little."
        )
    return remarks


def _measure(
    person: Person,
    config: dict,
    sheets: Study,
    folders: Sequence[Path],
    backend: Backend,
    on_maps: OnMaps,
) -> tuple[dict, pd.DataFrame]:
    """Everything that is told of a person, and the table of the nearest and of relatives."""
    distance = config["distance"]
    query, _ = load_planes(person.folder)
    against = compare_with_all(
        query,
        folders,
        backend,
        metric=distance["metric"],
        missing=missing_rule(config),
        min_called=distance["min_called"],
    )
    kin = sheets.ploidy == 2 and RESOLUTION.is_file()
    resolution = load_resolution(RESOLUTION) if kin else None
    near = nearest_people(against, NEAREST)
    limit = least_kinship(config)
    close = np.zeros(0, np.int64)
    if resolution is not None:
        close = relatives_of_one(
            against, min_kinship=limit, min_called=distance["min_called"], resolution=resolution
        )
    table = _table(person.name, near, close, against, resolution, config, sheets)
    table, untold = _tell(table, folders, backend)
    maps, remarks = on_maps(person.folder, against, config, sheets, backend)
    finite = against.distances[np.isfinite(against.distances)]
    return {
        "people": len(against.people.samples),
        "sites": person.sites,
        "metric": distance["metric"],
        "median_distance": float(np.median(finite)) if len(finite) else None,
        "kinship_limit": _limit_in_use(resolution, limit),
        "relatives": len(close) - sum(untold.values()) if resolution is not None else None,
        "untold": untold,
        "communities": _communities(against, config["neighbors"]),
        **maps,
        "remarks": [*person.remarks, *remarks],
    }, table


def _limit_in_use(resolution: Resolution | None, limit: float) -> float | None:
    """Smallest kinship that is told; None where none can be, or where nothing was measured."""
    if resolution is None or resolution.smallest_kinship is None:
        return None
    return max(limit, resolution.smallest_kinship)


def _table(
    name: str,
    near: np.ndarray,
    close: np.ndarray,
    against: AgainstAll,
    resolution: Resolution | None,
    config: dict,
    sheets: Study,
) -> pd.DataFrame:
    """The nearest people and all relatives, nearest first."""
    which = np.union1d(near, close)
    which = which[np.argsort(against.distances[which], kind="stable")]
    table = describe_pairs(name, against, which, resolution=resolution)
    if resolution is not None:  # below the limit, a degree could be chance
        told = np.isin(which, close)
        found = panel_evidence(PANEL, identity_error(config["error_rate"]), least_kinship(config))
        found.king = table[told].rename(columns={"sample": "sample_b", "cohort": "cohort_b"})
        found.king = found.king.assign(sample_a=name, cohort_a="")
        found.resolution = resolution
        asked = config["genetic_map"], config["contigs"]["x"]
        judged = judge_pairs(found, SearchedGenome(panel_genome(PANEL, PANEL_COUNTS, *asked)))
        relations = relation_by_pair(judged)
        table["relation"] = [
            relations.get(frozenset((name, other)), UNDETERMINED) for other in table["sample"]
        ]
    table.insert(0, "rank", np.arange(1, len(table) + 1))
    if "population" in sheets.samples:
        own = sheets.samples[sheets.samples["sample"].isin(table["sample"])]
        label = dict(zip(own["sample"], own.population, strict=True))
        table.insert(3, "population", [label.get(s) or "NA" for s in table["sample"]])
    return table


def _tell(
    table: pd.DataFrame, folders: Sequence[Path], backend: Backend
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The table without relatives in cohorts where kinship fails, and their number by cohort."""
    if "relation" not in table:
        return table, {}
    close = table[~table.relation.isin([UNDETERMINED, SAME])]
    if not len(close):
        return table, {}
    af, faults = load_panel(PANEL)[0].af.to_numpy(), {}
    for folder in folders:
        if (close.cohort == folder.name).any():
            faults[folder.name] = judge_cohort(load_planes(folder)[0], af, backend)[0]
    failing = close[close.cohort.map(faults).notna()]
    table.loc[failing.index, "relation"] = [
        f"{UNTOLD}{faults[cohort]} of {cohort}" for cohort in failing.cohort
    ]
    return table, {
        cohort: int((failing.cohort == cohort).sum()) for cohort in sorted({*failing.cohort})
    }


def _communities(against: AgainstAll, k: int) -> dict | None:
    """How many of the k nearest people fall into each community; None without communities."""
    if not PARTITION.is_file():
        return None
    near = [against.people.samples[i] for i in nearest_people(against, k)]
    table, own = read_columns(PARTITION), set(near)
    pairs = zip(table["sample"], table["community"], strict=True)
    of = {name: community for name, community in pairs if name in own}
    known = [of[name] for name in near if name in of]
    counts = pd.Series(known, dtype=str).value_counts()
    return {"nearest": len(known), "counts": {name: int(n) for name, n in counts.items()}}
