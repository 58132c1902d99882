"""Estimate a run's jobs, hours, memory and disk space before it is submitted (`popdesic plan`).

Jobs, threads, memory and time limits are those that Snakemake plans for the study. Expected hours
come from measured rates for rules that compute on a GPU, and otherwise from the minutes that the
rule itself expects (`resources.py`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import yaml

from ..cohort.genotype_choice import describe_genotypes
from ..cohort.phenotype import is_quantitative, of_phenotype
from ..core.errors import UserError
from ..distance.fill_rows import together
from ..distance.rows import Pair, study_rows
from ..distance.tiles import study_matrices
from ..epistasis.options import MOST_HOURS, permutations_run, phenotypes_of, scan_score
from ..epistasis.site_list import read_site_list
from .batches import remark_on_batches
from .configuration import read_config
from .content import look_into_files
from .disk import (
    bytes_of_lists,
    describe_disk,
    forecast_disk,
    held_bytes,
    stages_of,
    study_sizes,
)
from .resources import (
    CORE_RATES,
    GPU_RATES,
    READ_RATE,
    START_SECONDS,
    expected_minutes,
    quad_work,
)
from .run import PROFILE, find_profile, profile_file
from .sheets import remark_on_departed
from .snakemake_internals import Job, planned_jobs
from .sparse import is_compared, neighbors_kept
from .validation import validate_study

#: Rules whose jobs make a row of tiles, and the stages whose rows they are.
ROW_RULES = {"measure_row": ("distance", "compare"), "find_ibd_row": ("ibd",)}
#: Most sites that LD pruning leaves for axes, and bytes of a page: reading a row of chosen sites
#: reads the pages it lies in.
AXES_SITES, PAGE_BYTES = 500_000, 4096
#: Hours of the jobs of a scan that are proposed, and first sites a unit that are needed for about
#: equal work: the first unit has a third of them, and a CPU prepares 32 together.
UNIT_HOURS, SITES_PER_UNIT = 1.0, 100
#: Numbers of GPUs, of one or of several nodes, for which the time of scans is stated.
SCAN_GPUS = (8, 64)


@dataclass(frozen=True)
class Sizes:
    """Sizes of a study that decide what its jobs cost.

    Attributes
    ----------
    samples : dict
        Cohort -> number of samples.
    n_sites : int
    matrices : int
        Matrices stored per distance tile.
    planes : int
        Bit-planes stored per sample.
    scanned, units, permutations
        Of the epistasis scans: sites, jobs per scan and per set of permuted scans, number of
        permuted scans of order 2, 3 and 4.
    quads : str
        Name of the work of quads by their score (`resources.quad_work`).
    rows : dict
        Pairs of cohorts of each row, by stage (`ROW_RULES`) and cohort.
    genotypes : str
        Sentence that says which stages read called and which imputed genotypes.
    neighbors : int
        Nearest samples that are kept of each, without a matrix of all pairs.
    left_out : tuple of str
        Sentences on what such a study does without, and on cohorts that are read together.
    sparse : bool
        Whether the study has no matrix of all pairs.
    compared : bool
        Whether samples are compared (`sparse.is_compared`).
    founders : tuple of str
        Founder cohorts.
    disk : dict
        Bytes of the whole study's results by stage (`disk.forecast_disk`).
    n_cohorts : int
        Cohorts of the sheet, some of which may be read together; 0: all of `samples`.
    """

    samples: dict[str, int]
    n_sites: int
    matrices: int = 2
    planes: int = 3
    scanned: int = 0
    units: int = 1
    permutations: tuple[int, int, int] = (0, 0, 0)
    quads: str = quad_work("interaction")
    rows: dict[str, dict[str, list[Pair]]] = field(default_factory=dict)
    genotypes: str = ""
    neighbors: int = 50
    left_out: tuple[str, ...] = ()
    sparse: bool = False
    compared: bool = False
    founders: tuple[str, ...] = ()
    disk: dict[str, float] = field(default_factory=dict)
    n_cohorts: int = 0

    @property
    def n_samples(self) -> int:
        return sum(self.samples.values())


def tiles_of(job: Job, sizes: Sizes) -> list[list[Pair]]:
    """Pairs of cohorts that a job on rows of tiles compares, row by row; none of other jobs.

    Without a matrix of all pairs, the first row of a group computes the tiles of all its rows
    (`distance.fill_rows`).
    """
    stages = ROW_RULES.get(job.rule, ())
    group = [job.wildcards.get("row", "")]
    if job.rule == "measure_row":
        stages = stages if sizes.compared else stages[:1]
        if sizes.sparse:
            group = together(list(sizes.rows["distance"])).get(group[0], [])
    return [sizes.rows[stage][row] for stage in stages for row in group]


def work_of(job: Job, sizes: Sizes) -> dict[str, float]:
    """Amount of work in a job, in the units of `GPU_RATES`."""
    n = sizes.samples
    if job.rule in ROW_RULES:
        pairs = sum(
            n[a] * (n[a] + 1) // 2 if a == b else n[a] * n[b]
            for row in tiles_of(job, sizes)
            for a, b in row
        )
        return {"site-pairs": pairs * sizes.n_sites}
    if job.rule == "close_paths" and not sizes.sparse:
        closures = sum(path.endswith(".run.json") for path in job.outputs)
        return {"min-plus operations": max(1, closures) * sizes.n_samples**3 / 2}
    if job.rule in ("scan_epistasis", "permute_epistasis"):
        order = int(job.wildcards["order"])
        tests = float(math.comb(sizes.scanned, order)) * sizes.n_samples
        share = 1 / sizes.units
        if "permute" in job.rule:
            share = sizes.permutations[order - 2] / sizes.units
        return {("pair tests", "triple tests", sizes.quads)[order - 2]: tests * share}
    return {}


def bytes_read(job: Job, sizes: Sizes) -> float:
    """Size of a job's large inputs in bytes."""
    row = sizes.n_sites / 8 * sizes.planes
    if job.rule in ROW_RULES:  # the planes of each cohort once
        rows = tiles_of(job, sizes)
        cohorts = {cohort for row in rows for pair in row for cohort in pair}
        return row * sum(sizes.samples[cohort] for cohort in cohorts)
    if job.rule == "define_axes":  # LD pruning looks at all sites of the founders
        return sizes.n_sites / 4 * sum(sizes.samples[cohort] for cohort in sizes.founders)
    if job.rule == "compute_pca":
        rows = min(sizes.n_sites, AXES_SITES) * (
            sizes.n_samples / 4 + PAGE_BYTES * len(sizes.samples)
        )
        return min(rows, sizes.n_sites / 4 * sizes.n_samples)
    if job.rule == "join_rows" and sizes.sparse:
        rows = sizes.rows["distance"].values()
        return sum(bytes_of_lists(pairs, sizes.samples, sizes.neighbors) for pairs in rows)
    if job.rule in ("close_paths", "join_rows") and not sizes.sparse:
        return 4.0 * sizes.matrices * sizes.n_samples**2
    return 0.0


def expected_seconds(job: Job, sizes: Sizes) -> float:
    """Seconds from a job's submission to its end, on an idle cluster."""
    if not job.outputs:
        return 0.0
    work = work_of(job, sizes)
    each, count = (GPU_RATES, job.gpu) if job.gpu else (CORE_RATES, job.threads)
    rates = {name: rate * count for name, rate in each.items()}
    if work and work.keys() <= rates.keys():
        computing = sum(units / rates[name] for name, units in work.items())
    else:
        computing = 60 * expected_minutes(job.runtime)
    return START_SECONDS + max(computing, bytes_read(job, sizes) / READ_RATE)


def propose_units(jobs: list[Job], sizes: Sizes) -> list[str]:
    """Lines of text: the number of units with which the longest job of scans takes UNIT_HOURS.

    A second line says how long all scans take on SCAN_GPUS, with a multiple of so many units.
    """
    scans = [job for job in jobs if job.rule in ("scan_epistasis", "permute_epistasis")]
    spent = [(expected_seconds(job, sizes) - START_SECONDS) / 3600 for job in scans]
    if not spent:
        return []
    hours = max(spent) * sizes.units
    most = max(1, sizes.scanned // SITES_PER_UNIT)
    units = min(most, max(1, math.ceil(hours / UNIT_HOURS)))
    lines = [
        f"epistasis.units: {units} proposed, {hours / units:.2g} hours a job (now {sizes.units})"
    ]
    if hours / units > MOST_HOURS:
        lines[0] += (
            f": more than {MOST_HOURS} even so; list fewer sites (epistasis.restrict), or take "
            "fewer orders or permutations"
        )
    wide = {gpus: -(-units // gpus) * gpus for gpus in SCAN_GPUS}
    times = [
        f"{sum(spent) / gpus + START_SECONDS / 3600:.2g} hours on {gpus} GPUs ({count} units)"
        for gpus, count in wide.items()
        if count <= most and any(job.gpu for job in scans)
    ]
    return lines + ([f"all scans: {', '.join(times)}"] if times and hours > UNIT_HOURS else [])


def read_sizes(study: Path, n_sites: int | None = None) -> tuple[Sizes, str]:
    """Sizes of a study from its sheets, and a phrase that says how the number of sites is known."""
    if not study.is_dir():
        raise UserError(f"{study} is not a folder; a study is a folder with config/config.yaml.")
    if n_sites is not None and n_sites < 1:
        raise UserError(f"--sites is {n_sites}; expected a number of sites from 1.")
    config, sheets, _ = validate_study(read_config(study), study)
    counts = sheets.counts
    genotypes = look_into_files(study, config, sheets, study_sizes(study, sheets, n_sites))
    n_sites = genotypes.n_sites
    scan = config["epistasis"]
    scanned = n_sites
    if scan["order"] and scan["restrict"]:
        scanned = len(read_site_list(study / scan["restrict"]).rows)
    known = False
    if scan["order"]:  # phenotypes are of one kind
        people = of_phenotype(sheets.samples, phenotypes_of(scan)[0], config["samples"])
        known = is_quantitative(people, scan["transform"])
    scores = {order: scan_score(scan["score"], known, order) for order in (2, 3, 4)}
    permutations = permutations_run(scan, scores)
    sizes = Sizes(
        counts,
        n_sites,
        len(study_matrices(config["distance"]["metric"])),
        scanned=scanned if scan["order"] else 0,
        units=scan["units"],
        rows={
            stage: rows.by_row
            for stage, rows in study_rows(study, sheets.order, sheets.founders).items()
        },
        permutations=(permutations[2], permutations[3], permutations[4]),
        quads=quad_work(scores[4]),
        genotypes=describe_genotypes(config),
        neighbors=neighbors_kept(config),
        left_out=(*sheets.left_out, *remark_on_batches(sheets.units, counts)),
        sparse=sheets.sparse,
        compared=is_compared(config),
        founders=tuple(sheets.founders),
        disk=forecast_disk(config, genotypes, sparse=sheets.sparse),
        n_cohorts=len(sheets.listed),
    )
    return sizes, genotypes.source


COLUMNS = [
    "rule",
    "jobs",
    "done",
    "threads",
    "gpu",
    "mem_mb",
    "limit_h",
    "expected_h",
]


def tabulate(jobs: list[Job], sizes: Sizes) -> pd.DataFrame:
    """One row per rule, in the order of the plan, and a last row for all rules.

    Returns
    -------
    DataFrame
        Numbers of `jobs` to run and of jobs already `done`; largest `threads`, `gpu` and `mem_mb`
        of a job; sums over jobs of time limits (`limit_h`) and of expected hours (`expected_h`).
    """
    rows: dict[str, dict] = {}
    for job in jobs:
        if not job.outputs:
            continue
        row = rows.setdefault(job.rule, dict.fromkeys(COLUMNS, 0) | {"rule": job.rule})
        if not job.needed:
            row["done"] += 1
            continue
        row["jobs"] += 1
        for name in ("threads", "gpu", "mem_mb"):
            row[name] = max(row[name], getattr(job, name))
        row["limit_h"] += job.runtime / 60
        row["expected_h"] += expected_seconds(job, sizes) / 3600
    table = pd.DataFrame(list(rows.values()), columns=COLUMNS)
    total = {"rule": "all"} | table.sum(numeric_only=True).to_dict()
    for name in ("threads", "gpu", "mem_mb"):
        total[name] = int(table[name].max()) if len(table) else 0
    return pd.concat([table, pd.DataFrame([total])[COLUMNS]], ignore_index=True)


def slurm_profile(study: Path, name: str | None = None) -> dict:
    """The profile of this name; by default that of the study, or what `slurm` stands for.

    Without a name, `SNAKEMAKE_PROFILE` is asked, then `profiles/slurm` of the study, then the
    user's own folder of Snakemake, and Popdesic's own at last.

    Raises
    ------
    UserError
        There is no profile of this name, or it is none that Snakemake reads.
    """
    own, usual = study / "profiles/slurm", os.environ.get(PROFILE, "")
    # `none` is Snakemake's word for no profile.
    if not (name := name or usual) or name == usual == "none":
        name = str(own.resolve()) if profile_file(str(own)) else "slurm"
    path = profile_file(find_profile(name))
    if path is None:
        raise UserError(
            f"there is no profile '{name}': name a folder with config.yaml, or slurm, which "
            "Popdesic provides."
        )
    try:
        profile = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        profile = None
    if not isinstance(profile, dict):
        raise UserError(f"{path} is not a profile of Snakemake: correct its YAML.")
    for key in ("groups", "group-components"):
        profile[key] = _pairs(profile.get(key))
    if not all(count.isdecimal() and int(count) for count in profile["group-components"].values()):
        raise UserError(f"{path}: group-components is not GROUP=N with a number from 1.")
    return profile


def _pairs(given: object) -> dict[str, str]:
    """Names and values of an option, which a profile has as a table, texts NAME=VALUE, or one."""
    if isinstance(given, dict):
        return {str(name): str(value) for name, value in given.items()}
    texts = given if isinstance(given, list) else str(given or "").split()
    return {name: value for name, _, value in (str(text).partition("=") for text in texts)}


def submissions(jobs: list[Job], profile: dict) -> int:
    """Number of Slurm jobs, given the job groups of a profile (`slurm_profile`)."""
    groups, shared = profile["groups"], profile["group-components"]
    grouped: dict[str, int] = {}
    alone = 0
    for job in jobs:
        if name := groups.get(job.rule):
            grouped[name] = grouped.get(name, 0) + 1
        else:
            alone += 1
    return alone + sum(-(-count // int(shared.get(name, 1))) for name, count in grouped.items())


def expect(study: Path, targets: Iterable[str] = ()) -> tuple[int, list[Job], list[float]]:
    """Number of people of a study, the jobs to run, and the expected seconds of each."""
    sizes, _ = read_sizes(study)
    jobs = [job for job in planned_jobs(study, targets) if job.needed and job.outputs]
    return sizes.n_samples, jobs, [expected_seconds(job, sizes) for job in jobs]


def describe_plan(
    study: Path,
    n_sites: int | None = None,
    targets: Iterable[str] = (),
    profile: str | None = None,
) -> str:
    """The table of `tabulate` and its totals, as text.

    `profile`: as `slurm_profile` takes it.
    """
    groups = slurm_profile(study, profile)
    sizes, source = read_sizes(study, n_sites)
    jobs = planned_jobs(study, targets)
    table = tabulate(jobs, sizes)
    needed = [job for job in jobs if job.needed and job.outputs]
    gpu_hours = sum(expected_seconds(job, sizes) * job.gpu for job in needed) / 3600
    core_hours = sum(expected_seconds(job, sizes) * job.threads for job in needed) / 3600
    largest = max(needed, key=lambda job: job.mem_mb, default=None)
    work: dict[str, float] = {}
    for job in needed:
        for name, units in work_of(job, sizes).items():
            work[name] = work.get(name, 0) + units
    shown = table[table.jobs > 0].copy()
    for name in ("limit_h", "expected_h"):
        shown[name] = shown[name].map("{:.3g}".format)
    for name in ("jobs", "done", "threads", "gpu", "mem_mb"):
        shown[name] = shown[name].astype(int)
    n_cohorts = sizes.n_cohorts or len(sizes.samples)
    lines = [
        f"{sizes.n_samples} samples in {n_cohorts} cohort{'s' * (n_cohorts > 1)}, "
        f"{sizes.n_sites} sites ({source})",
        sizes.genotypes,
        *sizes.left_out,
        *remark_on_departed(study, sizes.samples, "the sheet of cohorts"),
    ]
    wanted = stages_of(path for job in jobs for path in job.outputs)
    disk = {stage: size for stage, size in sizes.disk.items() if stage in wanted}
    room = describe_disk(study, disk, held_bytes(study, list(sizes.samples)))
    if not needed:
        return "\n".join([*lines, room, "Nothing to be done: all results are up to date."])
    lines += [
        shown.to_string(index=False),
        f"jobs: {len(needed)} to run, {int(table.done.iloc[-1])} already done; "
        f"{submissions(needed, groups)} Slurm jobs, because rows of tiles share jobs",
        f"expected hours: {gpu_hours:.3g} GPU hours, {core_hours:.3g} core hours",
        f"largest job: {largest.mem_mb} MB ({largest.rule})",
        room,
    ]
    lines += [f"{name}: {units:.3g}" for name, units in work.items()]
    lines += propose_units(needed, sizes)
    return "\n".join(lines)
