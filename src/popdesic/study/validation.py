"""Validate a study before any job runs: one function for the Snakefile and `popdesic check`.

Both report a problem in the same way: one sentence that names the file, the row and the value
(`UserError`).
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from dataclasses import replace
from pathlib import Path

from ..cohort.callable import read_bed
from ..cohort.contigs import (
    HUMAN,
    build_of,
    excluded_names,
    genome_of,
    haploid_policies,
    read_assembly_report,
    species_of,
)
from ..cohort.first_records import (
    FirstRecords,
    bytes_each,
    first_records,
    join_records,
    refuse_variants_only,
    remark_on_mask,
    remarks_on_records,
)
from ..cohort.genetic_maps import parse_map, require_rising
from ..cohort.impute import FROZEN_END, check_files, uses_method
from ..cohort.parents import remark_on_absent
from ..cohort.sheet_text import unrecognised_columns
from ..cohort.sources import copied_files, expand_sources, source_files
from ..cohort.species import remark_on_ploidy, species_words
from ..core.errors import UserError, shorten
from ..core.files import is_file, path_exists, resized_results
from ..core.text import FIRST_BYTES, opened, read_text
from ..engine.needs import closing_devices
from ..engine.scan_device import require_gpus, scan_remarks
from ..epistasis.options import MOST_HOURS, check_epistasis, scan_score
from ..epistasis.site_list import read_site_list
from ..geography.coordinates import has_places, remark_on_origin
from ..io.batches import LeftOut
from ..io.bgzf import find_compression
from ..io.call_filters import ANY, PASSED, CallFilters
from ..io.formats import (
    header_contigs,
    is_zarr,
    read_contig_lengths,
    read_filters,
    read_sample_names,
    remarks_on,
    require_readable,
)
from ..io.remote import located
from ..population.options import check_population
from .batches import remark_on_batches
from .configuration import CONFIG_PATH, fill_config
from .environment import closure_gpus, conda_cuda
from .ploidy import for_ploidy
from .resources import CORE_RATES, GPU_RATES, quad_work
from .sheets import Study, load_study, remark_on_departed, remark_on_excluded, said_of_absent
from .sparse import is_sparse, without_pairs

#: Threads of a job of `scan_epistasis`.
SCAN_THREADS = 8


def validate_study(
    given: dict, folder: Path = Path(), *, files: bool = True
) -> tuple[dict, Study, list[str]]:
    """Check a study's configuration, sheets and the files that they name.

    Parameters
    ----------
    given : dict
        The configuration as read by `configuration.read_config` or by Snakemake.
    folder : Path
        The study folder; all paths are relative to it.
    files : bool
        Also open the files named in sheets and configuration; jobs, which parse the workflow
        again, skip this.

    Returns
    -------
    config : dict
        With all defaults filled in.
    study : Study
    remarks : list of str
        Possible mistakes that are not errors, one sentence each.

    Raises
    ------
    UserError
        The first problem found.
    """
    config = fill_config(given, str(CONFIG_PATH))
    gpus, _ = closure_gpus(), conda_cuda()
    study = load_study(config, folder, check_files=files)
    n_samples = sum(study.counts.values())
    if study.kinds != (2,):
        config, haploid = for_ploidy(config, *study.kinds)
        study = replace(study, haploid=tuple(haploid))
    if study.ploidy > 2 and is_sparse(config, n_samples):
        kinds = ", ".join(map(str, study.kinds))
        raise UserError(
            f"{config['samples']}: {n_samples} samples of ploidy {kinds} are more than "
            "distance.dense_limit, the most that a study of polyploids can have; raise the limit "
            "if memory allows, or divide the study."
        )
    left_out: list[str] = []
    if is_sparse(config, n_samples):
        placed = has_places(study.samples)
        config, left_out = without_pairs(config, n_samples, placed=placed)
        study = replace(study, sparse=True, left_out=tuple(left_out))
    if files:
        check_epistasis(
            config["epistasis"],
            study.samples,
            config["samples"],
            folder,
            config["seed"],
            study.cohorts.index[study.cohorts.founder],
        )
        check_side_files(config, folder)
    columns = [name for name in study.samples if name not in config["epistasis"]["phenotypes"]]
    remarks = [*study.haploid, *left_out, *unrecognised_columns(columns, config["samples"])]
    remarks += [*species_words(config), *remark_on_ploidy(config, *study.kinds)]
    remarks += remark_on_excluded(study, config["samples"])
    if study.batches:
        remarks += remark_on_batches(study.batches, study.counts)
    if files:
        remarks += remark_on_absent(study.samples, config["samples"])
        remarks += remark_on_departed(folder, study.order, config["cohorts"])
        remarks += _remark_on_resized(folder)
    if files and config["epistasis"]["order"]:
        remarks += scan_remarks(config["device"])
        remarks += _remark_on_quads(config, len(study.samples), folder)
    if files and not study.sparse:
        require_gpus(config["device"], closing_devices(n_samples, gpus))
    if files:
        filters = CallFilters.parse(config["ingest"] | config["sites"])
        for source in _sources(study, folder):
            require_readable(source, filters)
        remarks += [remark for source in _sources(study, folder) for remark in remarks_on(source)]
        remarks += _remark_on_filter_names(filters, _sources(study, folder))
        remarks += _look_at_records(config, study, folder)
        check_builds(study, config["qc"]["build"], folder)
        remarks += remark_on_origin(study.samples, config["samples"])
        contigs = contigs_of(study, folder)
        remarks += genome_of(dict.fromkeys(contigs, 0), contigs).notes
        remarks += check_population(config, study.samples, contigs, folder)
    return config, study, remarks


def _sources(study: Study, folder: Path) -> list[Path]:
    return [
        located(source, folder)
        for cohort in study.listed
        for source in expand_sources(study.cohorts.genotypes[cohort], folder)
    ]


def _remark_on_quads(config: dict, n_samples: int, folder: Path) -> list[str]:
    """Say that quads of all sites, or of a long list, take too long.

    Lists of ranges may hold any number of sites.
    """
    block = config["epistasis"]
    if 4 not in block["order"]:
        return []
    start = f"{CONFIG_PATH}: epistasis.order has 4"
    if not block["restrict"]:
        return [
            f"{start}, but epistasis.restrict names no list of sites: 100 sites have 3.9 million "
            "quads, 1 000 have 41 billion. popdesic plan forecasts the hours."
        ]
    work = quad_work(scan_score(block["score"], False, 4))
    n = len(set(read_site_list(folder / block["restrict"]).names))
    gpu = config["device"] != "cpu" and work in GPU_RATES
    rate = GPU_RATES[work] if gpu else CORE_RATES[work] * SCAN_THREADS
    hours, most = math.comb(n, 4) * n_samples / rate / 3600, MOST_HOURS * block["units"]
    if hours <= most:
        return []
    return [
        f"{start}, and {block['restrict']} lists {n} sites. Their quads would take about "
        f"{hours:.0f} hours on {'a GPU' if gpu else f'{SCAN_THREADS} cores'}; plan_epistasis "
        f"refuses more than {most} ({MOST_HOURS} for each of epistasis.units). List fewer sites "
        "or raise epistasis.units."
    ]


def _remark_on_filter_names(filters: CallFilters, sources: list[Path]) -> list[str]:
    """Say which names of `ingest.filter` no header declares."""
    asked = set(filters.accepted) - {ANY, *PASSED}
    found = [read_filters(source) for source in sources] if asked else []
    if None in found:
        return []
    declared = sorted(set().union(*found) - {*PASSED})
    if not (unknown := sorted(asked - set(declared))):
        return []
    known = f"they declare {shorten(', '.join(declared))}" if declared else "they declare none"
    return [
        f"{CONFIG_PATH}: ingest.filter names {shorten(', '.join(unknown))}, which no genotype file "
        f"declares in a FILTER line of its header ({known}); correct the name, or remove it."
    ]


def _look_at_records(config: dict, study: Study, folder: Path) -> list[str]:
    """Look at the first records of all files of each cohort that was not decoded yet."""
    least = config["distance"]["min_called"]
    sources = {
        c: [located(one, folder) for one in expand_sources(study.cohorts.genotypes[c], folder)]
        for c in study.listed
    }
    decoded = {u for u in study.order if is_file(folder / f"results/cohorts/{u}/raw.json")}
    new = [c for c in study.listed if study.unit_of[c] not in decoded]
    filters = CallFilters.parse(config["ingest"] | config["sites"])
    excluded = frozenset(study.excluded["sample"])
    n_bytes = bytes_each(sum(len(sources[cohort]) for cohort in new))

    def of_cohort(cohort: str) -> list[FirstRecords]:
        contigs, exclude = header_contigs(sources[cohort]), config["contigs"]["exclude"]
        haploid = haploid_policies(config["contigs"]["haploid"], exclude, contigs)
        left_out = LeftOut(excluded, frozenset(excluded_names(exclude, contigs)))
        own = left_out, study.ploidies or None
        return [first_records(path, haploid, filters, n_bytes, *own) for path in sources[cohort]]

    remarks, first = [], {}
    for cohort in new:
        found = of_cohort(cohort)
        first[cohort] = join_records(sources[cohort], found)
        remarks += remarks_on_records(sources[cohort], found, least)
        if mask := study.cohorts["callable"][cohort]:
            path = sources[cohort][0]
            remarks += remark_on_mask(path, first[cohort], folder / mask, mask)
    silent = [cohort for cohort in new if not said_of_absent(study, cohort)]
    founders = [c for unit in study.founders for c in study.units[unit]]

    def first_of(cohort: str) -> FirstRecords:
        if cohort not in first:
            first[cohort] = join_records(sources[cohort], of_cohort(cohort))
        return first[cohort]

    if any(first[cohort].variants_only for cohort in silent):
        refuse_variants_only(first | {one: first_of(one) for one in founders}, silent, founders)
    if files := copied_files(config["impute"], folder):
        _check_copied(config, study, folder, files, founders[0], first_of(founders[0]))
    elif uses_method(config["impute"], "copying"):
        from ..cohort.check_reference import require_distinct_snps, require_founders

        require_founders(sum(study.counts[unit] for unit in study.founders))
        found = [first_of(one) for one in founders]
        if all(one.whole for one in found):
            require_distinct_snps([one.batch for one in found])
    return remarks


def _check_copied(
    config: dict, study: Study, folder: Path, files: list[str], cohort: str, found: FirstRecords
) -> None:
    """Look at the reference that is copied from, beside the first records of a founder cohort."""
    from ..cohort.check_reference import compare_reference, first_sites  # jobs do not need it

    sites = first_sites(files, folder)
    for one in files:
        if not one.endswith(FROZEN_END):
            require_build(folder / one, study, config["qc"]["build"], folder)
    if found.batch is not None:
        compare_reference(sites, files[0], found.batch, cohort)


def _remark_on_resized(folder: Path) -> list[str]:
    """Name results that were cut or edited since they were written: dates alone do not show it."""
    found = [str(path.relative_to(folder)) for path in resized_results(folder / "results")]
    if not found:
        return []
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [
        f"{found[0]}{more} changed in size since written, and later results may rest on that; "
        "popdesic audit lists such files, and audit --repair makes them again."
    ]


def require_writable_results(folder: Path = Path()) -> None:
    """Refuse a study folder, or results of it, in which no file can be made.

    Raises
    ------
    UserError
        Names the folder and the reason.
    """
    for place in (folder, folder / "results"):
        if place == folder or path_exists(place):
            try:
                with tempfile.TemporaryFile(dir=place):
                    pass
            except OSError as error:
                shown = "The study folder" if place == folder else f"'{place}'"
                raise UserError(
                    f"{shown} cannot be written ({error.strerror}), but a run writes results, logs "
                    "and benchmarks there; change its permissions, or copy config to a folder of "
                    "your own."
                ) from None


def check_side_files(config: dict, folder: Path) -> None:
    """Check the beginning of every file that the configuration names; jobs check the rest.

    Raises
    ------
    UserError
        A file is missing, or its beginning is not valid.
    """
    if path := config["qc"]["fasta"]:
        _check_fasta(folder, path)
    for key in ("include", "exclude"):
        if path := config["panel"][key]:
            read_bed(folder / path, f"panel.{key}", beginning=True)
    if path := config["qc"]["assembly_report"]:
        read_assembly_report(folder / path, f"{path} (qc.assembly_report)")
    if path := config["compare"]["query"]:
        _check_profiles(folder, path, "compare.query")
        if not {"identity", "mixture"}.intersection(config["compare"]["analyses"]):
            raise UserError(
                f"{CONFIG_PATH}: compare.query is '{shorten(path)}', but compare.analyses has "
                "neither identity nor mixture, which search it; add one, or set it to null."
            )
    by_beagle = uses_method(config["impute"], "beagle")
    beagle = config["impute"] if by_beagle else {"reference": ""}
    found = check_files(beagle | {"map": config["genetic_map"]}, folder, str(CONFIG_PATH))
    for path in found["reference"]:
        _check_reference(path)
    for path in found["map"]:
        shown = f"{path} (genetic_map)"
        table = parse_map(read_text(path, "genetic_map", beginning=True), shown)
        if table.empty:
            raise UserError(f"{shown} has no rows; give a genetic map or set it to ''.")
        for contig, part in table.groupby("chrom", sort=False):
            require_rising(part, str(contig), shown)


def _check_fasta(folder: Path, path: str) -> None:
    with opened(folder / path, "qc.fasta") as file:
        start = file.read(FIRST_BYTES)
    if not start.lstrip().startswith(b">"):
        raise UserError(
            f"{path} (qc.fasta), line 1: a FASTA file starts with '>' and a contig's name; correct "
            "the path."
        )
    find_compression(folder / path)  # refuses a bgzip file that is truncated at its end


def _check_profiles(folder: Path, path: str, key: str) -> None:
    try:
        exists = all(is_file(file) or is_zarr(file) for file in source_files(folder / path))
    except (OSError, ValueError):  # ValueError: an invalid file name
        exists = False
    if not exists:
        raise UserError(
            f"{CONFIG_PATH}: {key} is '{shorten(path)}', which does not exist; correct the path "
            "(relative to the study folder) or set it to null."
        )
    read_sample_names(folder / path, f"{CONFIG_PATH}: {key}")


def _check_reference(path: Path) -> None:
    from ..io.vcf_header import read_header  # imported here: jobs do not need it

    if path.suffix == FROZEN_END:
        raise UserError(
            f"{path} (impute.reference) is frozen for imputation by copying, and Beagle cannot "
            "read it; give a phased VCF or VCF.gz, or set impute.method to copying and leave "
            "beagle out of impute.evaluate."
        )
    header = read_header(path)
    if header.kind != "vcf":
        raise UserError(
            f"{path} (impute.reference) is {header.kind.upper()}, which Beagle cannot read; give a "
            "phased VCF or VCF.gz."
        )


def check_builds(study: Study, build: str, folder: Path = Path()) -> None:
    """Compare the builds of the cohorts' files with each other and with `qc.build`.

    Raises
    ------
    UserError
        `qc.build` names one build and a header another, or two headers are of different builds.
        Nothing is compared if `qc.build` is ``none``.
    """
    if build == "none":
        return
    found: dict[str, tuple[Path, str]] = {}
    for source, cohort in _files(study, folder):
        lengths = read_contig_lengths(source)
        if (told := build_of(lengths)) is None:
            continue
        own, contig = told
        if build in HUMAN and own != build:
            raise UserError(
                f"{CONFIG_PATH}: qc.build is '{build}', but {source} gives contig {contig} the "
                f"length {lengths[contig]}, which it has in {named(own)}; set qc.build to "
                f"{own if own in HUMAN else 'any'}, or to none if the header is out of date, which "
                "compares no lengths."
            )
        found.setdefault(own, (source, cohort))
    if len(found) > 1:
        alone = len({cohort for _, cohort in found.values()}) == len(found)
        places = " and ".join(
            f"{named(own)} ({f'cohort {cohort}' if alone else source})"
            for own, (source, cohort) in found.items()
        )
        raise UserError(
            f"Headers give contigs the lengths of different genome builds, {places}, and sites are "
            "matched by position; lift one over to the build of the other, or correct its "
            "header (bcftools reheader --fai) if that was done, or set qc.build to none, which "
            "compares no lengths."
        )


def named(build: str) -> str:
    """A build with its species, unless that is human."""
    return build if build in HUMAN else f"{build} ({species_of(build)})"


def require_build(source: Path, study: Study, build: str, folder: Path = Path()) -> None:
    """Refuse a further file whose header is of another build than `qc.build` or the cohorts'.

    Raises
    ------
    UserError
        The builds differ.
    """
    if build == "none":
        return
    told = build_of(read_contig_lengths(source))
    known = {build} if build in HUMAN else set()
    if told and not known:
        for cohort in study.listed:
            with contextlib.suppress(UserError, OSError):  # a cohort's own files may be gone
                for path in _files_of(study, cohort, folder):
                    found = build_of(read_contig_lengths(path))
                    known |= {found[0]} if found else set()
    if told and known and told[0] not in known:
        raise UserError(
            f"{source} gives contig {told[1]} the length that it has in "
            f"{named(told[0])}, but the study is of {' and '.join(map(named, sorted(known)))}; "
            "lift the file over, or give one of that build."
        )


def contigs_of(study: Study, folder: Path = Path()) -> dict[str, int]:
    """Contigs in the headers of the cohorts' files, with their lengths; 0: not given.

    PLINK 1 files have no header.
    """
    return header_contigs(source for source, _ in _files(study, folder))


def _files(study: Study, folder: Path) -> list[tuple[Path, str]]:
    """Files of all cohorts, each with its cohort."""
    return [(path, cohort) for cohort in study.listed for path in _files_of(study, cohort, folder)]


def _files_of(study: Study, cohort: str, folder: Path) -> list[Path]:
    found = expand_sources(study.cohorts.genotypes[cohort], folder)
    return [located(source, folder) for source in found]
