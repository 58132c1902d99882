# Shared by all rules: the validated study, wildcard patterns, code digests, sizes for resources.
#
# needs   config (config/config.yaml), config/cohorts.tsv, config/samples.tsv, the VCF headers
# gives   CONFIG, STUDY, PLACED, TARGETS, wildcard constraints, code_of(), n_samples(), memory(), minutes(),
#         FIRST, SECOND, THIRD

from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from popdesic.epistasis.options import folder_of_phenotype
from popdesic.core.errors import UserError
from popdesic.distance.rows import other_of, study_rows
from popdesic.geography.coordinates import has_places
from popdesic.study import code as digests
from popdesic.study import resources as limits
from popdesic.report.registry import study_figures
from popdesic.study.resources import Cost, closing_minutes
from popdesic.study.content import look_into_files
from popdesic.study.disk import cohort_set, study_sizes, require_disk_space, stages_of
from popdesic.study.environment import closure_gpus, conda_cuda
from popdesic.study.records import exchange_records, forget_record
from popdesic.study.batches import hold_batches
from popdesic.study.sheets import (
    cohort_absent,
    cohort_files,
    cohort_sources,
    described_sources,
    is_batch,
    remote_bytes,
)
from popdesic.cohort.impute import FROZEN_END, matching_files, uses_method
from popdesic.cohort.sources import copied_files, file_key, files_within, names_key, source_key
from popdesic.io.bed import lacking_samples, lost_files
from popdesic.core.files import bytes_meant, digest
from popdesic.core.places import GLOSSARY
from popdesic.study.validation import validate_study
from popdesic.study.snakemake_internals import adapt_snakemake, records_jobs

try:
    # Every job parses this file again; only the main process opens the files that the study names.
    CONFIG, STUDY, REMARKS = validate_study(config, files=workflow.is_main_process)
except UserError as error:
    raise WorkflowError(str(error)) from None

adapt_snakemake(WORKFLOW / "workflow" / "scripts")
if workflow.is_main_process:
    for remark in REMARKS:
        logger.warning(remark)

COHORTS = STUDY.order
#: Files of the genetic map: one, or one a contig.
MAP_FILES = [str(path) for path in matching_files(CONFIG["genetic_map"])]
SPACES = CONFIG["geodesic"]["space"]
ALPHAS = [f"{a:g}" if isinstance(a, (int, float)) else a for a in CONFIG["geodesic"]["alpha"]]
#: Digest of the set of cohorts; part of the names of closures that later runs extend.
COHORT_SET = cohort_set(COHORTS)


def _either(names):
    return "|".join(re.escape(name) for name in names)


wildcard_constraints:
    cohort=_either(COHORTS),
    row=_either(COHORTS),
    space=_either(SPACES),
    alpha=_either(ALPHAS),
    phenotype=_either(CONFIG["epistasis"]["phenotypes"]) or "(?!)",


def code_of(script, without=None, always=False):
    """Parameter: digest of the code that a script runs; Snakemake only sees the script's own date.

    Only the process that records the inputs of results needs it; jobs skip the computation, unless
    `always`.
    """

    def code(wildcards):
        return digests.code_of(script, without) if always or records_jobs(workflow) else ""

    return code


def closure_code(wildcards):
    """Parameter: digest of the code that must have made a closure for it to be extended."""
    return digests.closure_code()


def n_samples(*cohorts):
    """Number of samples that the sheet lists for these cohorts or batches."""
    return sum(STUDY.counts[cohort] for cohort in set(cohorts))


def absent_sites(wildcards):
    """Parameter: what the cohort sheet says of a cohort's absent sites, and the key of its mask."""
    return cohort_absent(STUDY, wildcards.cohort)


def limit_mb(megabytes, attempt=1):
    """`mem_mb` of a job, of a polyploid study as often as a genotype has layers."""
    return limits.limit_mb(megabytes * STUDY.layers, attempt)


def limit_minutes(expected, attempt=1):
    """`runtime` of a job, likewise."""
    return limits.limit_minutes(expected * STUDY.layers, attempt)


def input_mb(input):
    """Megabytes of the input files that exist (when planning, some may not exist yet)."""
    found = files_within(path for path in input if Path(path).exists())
    return sum(map(bytes_meant, found)) / 1e6


#: Whether samples come from several places; without coordinates geography has no job.
PLACED = has_places(STUDY.samples) and not STUDY.sparse
#: Factor of costs that grow with all pairs of samples: none without their matrix.
PAIR = 0 if STUDY.sparse else 1
#: Nearest samples by geodesic, of a study without matrices of all pairs.
LISTS = "results/geodesic/{space}/neighbors.alpha{alpha}.npz"
#: Lengths of geodesics between all pairs, or of such a study's landmarks to everyone.
LENGTHS = (
    "results/geodesic/{space}/landmarks.alpha{alpha}.npy"
    if STUDY.sparse
    else f"results/geodesic/{{space}}/closure/alpha{{alpha}}.{COHORT_SET}.npy"
)
#: Who shares segments with whom, for `geodesic.space: ibd` and `communities.space: ibd`.
IBD_GRAPH = "results/ibd/graph.npz"
#: Columns of several phenotypes, and the wildcard of one of them in names of figures and in folders.
PHENOTYPES = CONFIG["epistasis"]["phenotypes"]
PHENOTYPE = "{phenotype}" if PHENOTYPES else ""
OF_PHENOTYPE = folder_of_phenotype(PHENOTYPE)
FIGURES = study_figures(CONFIG, ALPHAS, PLACED, PHENOTYPE)


def of_phenotypes(paths):
    """Results of all phenotypes."""
    return expand(list(map(str, paths)), phenotype=PHENOTYPES) if PHENOTYPES else paths


def figures_by(rule):
    """Figures that a rule draws, by name."""
    return {figure.name: figure for figure in FIGURES if figure.rule == rule}


def reported(rule):
    """SVG files that a rule draws, flagged for Snakemake's report."""

    def flag(figure):
        caption = f"../report/{figure.caption}.rst"
        about = dict(caption=caption, category=figure.part, labels=figure.labels)
        return report(f"results/figures/{figure.name}.svg", **about)

    return [flag(figure) for figure in figures_by(rule).values()]


#: Files of each stage, by the name under which a run can be told to stop after it.
TARGETS = {}
#: Which cohort's row each pair of cohorts belongs to (`popdesic.distance.rows`).
DISTANCE_ROWS, COMPARE_ROWS, IBD_ROWS = study_rows(Path(), COHORTS, STUDY.founders).values()
#: Rows of kinship are inputs if relatives must not act as bridges of geodesics.
BRIDGE_ROWS = (
    expand("results/compare/tiles/{row}/row.json", row=COHORTS)
    if CONFIG["geodesic"]["bridges"] == "unrelated"
    else []
)


def keep_records():
    """Synchronise Snakemake's records with those beside the results; report those without."""

    def rule_of(result):
        return next((rule.name for rule in workflow.rules if rule.is_producer(result)), None)

    try:
        unknown = exchange_records(Path(), rule_of)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    if unknown:
        logger.info(
            f"{len(unknown)} results (the first is {unknown[0]}) have no record of their inputs, "
            "neither beside them nor in .snakemake: they are computed again."
        )


def require_disk():
    """Stop a run whose results do not fit into their file system."""
    wanted = stages_of(str(path) for job in workflow.dag.jobs for path in job.output)
    try:
        genotypes = study_sizes(Path(), STUDY)
        require_disk_space(
            Path(),
            CONFIG,
            genotypes,
            sparse=STUDY.sparse,
            stages=wanted,
            look=lambda sizes: look_into_files(Path(), CONFIG, STUDY, sizes),
        )
    except UserError as error:
        raise WorkflowError(str(error)) from None


def make_lost_tiles():
    """Let the jobs of rows run again of which a tile was deleted."""
    makers = [("measure_row", rows) for rows in PAIR_ROWS.values()]
    if "ibd" in CONFIG["compare"]["analyses"]:
        makers.append(("join_ibd" if IBD_TOGETHER else "find_ibd_row", IBD_ROWS))
    for name, rows in makers:
        for row in rows.lost():
            forget_record(Path(), f"{rows.folder}/{row}/row.json", name)


#: Ends of the decoded files that lie beside each `raw.json`.
DECODED_ENDS = (".bed", ".bim", ".fam")


def decode_again():
    """Let cohorts be decoded again whose decoded files were deleted, or lack a sample that is no
    longer excluded."""
    for cohort in COHORTS:
        raw = Path(f"results/cohorts/{cohort}/raw")
        if lost_files(raw) or lacking_samples(raw, STUDY.samples_of(cohort)["sample"]):
            forget_record(Path(), f"{raw}.json", "ingest_cohort")


def _amount(cost, wildcards, input, files, decoded):
    """Size of a job: megabytes of its input (all, a named one, or a path) and its samples.

    `decoded`: with the files that lie beside each `raw.json`.
    """
    chosen = input if files is None else input.get(files, files)
    chosen = [chosen] if isinstance(chosen, str) else list(chosen)
    if decoded:
        raws = [path for path in map(Path, chosen) if path.name == "raw.json"]
        chosen += [str(raw.with_suffix(end)) for raw in raws for end in DECODED_ENDS]
    mb = input_mb(chosen)
    cohort = wildcards.get("cohort")
    return cost.of(mb, n_samples(*([cohort] if cohort else COHORTS)))


def memory(fixed=0, *, files=None, decoded=False, **sizes):
    """`mem_mb` of a rule: the megabytes of a `Cost` plus headroom, more at each retry."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, input, attempt):
        return limit_mb(_amount(cost, wildcards, input, files, decoded), attempt)

    return mem_mb


def minutes(fixed=0, *, files=None, decoded=False, **sizes):
    """`runtime` of a rule: the minutes of a `Cost` plus headroom, more at each retry."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, input, attempt):
        return limit_minutes(_amount(cost, wildcards, input, files, decoded), attempt)

    return runtime


#: Jobs that can use a GPU request one unless the study sets device: cpu.
GPUS = 0 if CONFIG["device"] == "cpu" else 1
#: Conda environment of these jobs: with CuPy where the study says for which CUDA.
CUDA = conda_cuda()
GPU_CONDA = "../../envs/popdesic{}.yaml".format("" if CUDA == "none" else f"-cuda{CUDA}")
#: Priority of the jobs that the last ones of a run wait for (kinship, axes, geodesics, communities);
#: of those that they or maps need; and of the jobs of epistasis, which wait for each other and leave
#: cores to the rest. Exports, LD and drawing have none.
FIRST, SECOND, THIRD = 20, 10, 5
