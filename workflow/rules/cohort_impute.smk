# Imputation of missing calls, by Beagle or by copying from a reference.
#
# needs   results/cohorts/{cohort}/raw.*, results/panel/sites.tsv
# gives   results/impute/*, results/cohorts/{cohort}/imputed.*; IMPUTE, BEAGLE, GENOTYPE_STEMS

from types import SimpleNamespace
from popdesic.cohort.genotype_choice import genotype_stems, haploid_contigs, imputed_cohorts
from popdesic.cohort.impute import (
    BEAGLE_MB,
    BEAGLE_THREADS,
    find_beagle,
    find_contig_file,
    read_windows,
)
from popdesic.cohort.map_rates import map_file

# Windows, references and genetic maps of the imputation rules.
#
# needs   CONFIG, COHORTS; results/impute/windows.tsv once the panel exists
# gives   IMPUTE, BEAGLE, EVALUATION, GENOTYPE_STEMS, FILLED, REFERENCE_FILES, FROZEN, and input
#         functions

IMPUTE = CONFIG["impute"]
#: Whether any job runs Beagle.
BEAGLE = uses_method(IMPUTE, "beagle")
BEAGLE_SETTINGS = {"seed": CONFIG["seed"]}
BEAGLE_FILES = {"reference": IMPUTE["reference"], "map": map_file(CONFIG["genetic_map"])}
if BEAGLE:
    # Without the command, jobs continue with the mode; they rerun once it is installed.
    BEAGLE_SETTINGS["found"] = find_beagle() is not None
#: Files of the reference that is copied from; a frozen one is read as it is. Without one it is the
#: founders.
COPIES = uses_method(IMPUTE, "copying")
REFERENCE_FILES = copied_files(IMPUTE)
COPIED_FOUNDERS = STUDY.founders if COPIES and not REFERENCE_FILES else []
FREEZES = COPIES and not (REFERENCE_FILES and REFERENCE_FILES[0].endswith(FROZEN_END))
FROZEN = ["results/impute/reference.npz"] if FREEZES else REFERENCE_FILES
#: Accuracy of the imputation, which summarize_quality writes; of the mode alone it measures it, too.
EVALUATION = ["results/impute/evaluation.tsv"] if IMPUTE["evaluate"] else []
EVALUATES_MODE = IMPUTE["evaluate"] == ["mode"]
#: Whether a job of its own measures each window of a cohort.
EVALUATES_WINDOWS = not {"beagle", "copying"}.isdisjoint(IMPUTE["evaluate"])
#: Called or imputed PLINK files of a cohort, by the configuration key of what reads them.
GENOTYPE_STEMS = genotype_stems(CONFIG)
#: What became of missing genotypes in cohorts that some stage reads as imputed.
FILLED = expand(
    "results/cohorts/{cohort}/imputed.json",
    cohort=imputed_cohorts(CONFIG, COHORTS, STUDY.founders),
)


#: What Beagle runs for: files, megabytes of memory for one of genotypes, minutes, words. 19 000 sites
#: of 564 samples take 4 minutes on 2 cores.
BEAGLE_TASKS = {
    "impute_window": (
        multiext("results/impute/{cohort}/{window}", ".npy", ".json"),
        12,
        dict(fixed=5, mb=3),
        "Impute missing genotypes",
    ),
    "rate_imputation": (
        "results/impute/quality/{cohort}/{window}.npy",
        30,
        dict(fixed=25, mb=15),  # five runs
        "Measure imputation quality",
    ),
    "evaluate_imputation": (
        "results/impute/evaluation/{cohort}.{window}.npz",
        16,
        dict(fixed=5, mb=3),
        "Measure imputation accuracy",
    ),
}


wildcard_constraints:
    window=r"\d+",


# Imputation by Beagle or by copying, and the accuracy of any method. `mode` and `none` need no rule
# of their own: encode_cohort applies them. These rules run only if the configuration requests them.
#
# needs   results/cohorts/{cohort}/raw.*, results/qc/{cohort}.samples.tsv, results/panel/sites.tsv,
#         results/cohorts/{cohort}/genotypes.*; optionally a phased reference panel and a map
# gives   results/impute/windows.tsv                    windows of the imputation
#         results/impute/{cohort}/{window}.npy .json    .bed rows of a window, none missing
#         results/impute/quality/{cohort}/{window}.npy  r2 of each site, at hidden called genotypes
#         results/impute/reference.npz                  the reference that is copied from, frozen
#         results/impute/{cohort}/copied.npy .json      .bed rows of the panel, none missing
#         results/impute/{cohort}/haplotypes.npz        the same, phased, at the reference's sites
#         results/impute/quality/{cohort}/copied.npy    r2 of each site, at called genotypes left out
#         results/cohorts/{cohort}/imputed.bed .bim .fam .json
#                                                       called genotypes, missing ones imputed where
#                                                       r2 allows; for the keys `genotypes`
#         results/impute/evaluation.tsv                 accuracy at hidden genotypes; of the mode
#                                                       measured by summarize_quality


TARGETS["impute"] = [
    all_imputed_windows,
    FILLED,
    EVALUATION,
]


checkpoint plan_imputation:
    input:
        panel="results/panel/sites.tsv",
    output:
        "results/impute/windows.tsv",
    log:
        "logs/plan_imputation.log",
    benchmark:
        "benchmarks/plan_imputation.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(mb=6),
        runtime=minutes(1),
    params:
        window_mb=IMPUTE["window_mb"],
        code=code_of("plan_imputation"),
    message:
        "Plan the windows of the imputation"
    script:
        "../scripts/cohort/plan_imputation.py"


for task, (files, mb, cost, message) in BEAGLE_TASKS.items():

    rule:
        name:
            task
        input:
            raw="results/cohorts/{cohort}/raw.json",
            samples="results/qc/{cohort}.samples.tsv",
            panel="results/panel/sites.tsv",
            windows="results/impute/windows.tsv",
            files=contig_files,
            frozen=FROZEN if task == "evaluate_imputation" else [],
        output:
            files,
        log:
            f"logs/{task}/{{cohort}}.{{window}}.log",
        benchmark:
            f"benchmarks/{task}/{{cohort}}.{{window}}.tsv"
        conda:
            "../../envs/beagle.yaml"
        threads: BEAGLE_THREADS
        resources:
            # Java's heap, and the genotypes of the window as bytes, as often as Beagle gives them.
            mem_mb=memory(300 + BEAGLE_MB, mb=mb, files="raw", decoded=True),
            runtime=minutes(files="raw", decoded=True, **cost),
        params:
            **BEAGLE_SETTINGS,
            task=task,
            absent=absent_sites,
            reference=contig_file("reference"),
            map=contig_file("map"),
            key=evaluation_key if task == "evaluate_imputation" else contig_key,
            methods=IMPUTE["evaluate"] if task == "evaluate_imputation" else [],
            code=code_of(task),
        message:
            f"{message} in window {{wildcards.window}} of cohort {{wildcards.cohort}}"
        script:
            "../scripts/cohort/{params.task}.py"


rule freeze_reference:
    input:
        files_within(REFERENCE_FILES),
        raws=expand("results/cohorts/{cohort}/raw.json", cohort=COPIED_FOUNDERS),
        tables=expand("results/qc/{cohort}.samples.tsv", cohort=COPIED_FOUNDERS),
        panel=["results/panel/sites.tsv"] if COPIED_FOUNDERS else [],
        map=MAP_FILES,
    output:
        "results/impute/reference.npz",
    log:
        "logs/freeze_reference.log",
    benchmark:
        "benchmarks/freeze_reference.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: 8 if COPIED_FOUNDERS else 4
    resources:
        mem_mb=freezing_memory,
        runtime=freezing_minutes,
    params:
        reference=IMPUTE["reference"],
        seed=CONFIG["seed"] if COPIED_FOUNDERS else None,
        absent=[cohort_absent(STUDY, cohort) for cohort in COPIED_FOUNDERS],
        map=CONFIG["genetic_map"],
        map_files=map_key,
        key=reference_key,
        code=code_of("freeze_reference"),
    message:
        "Freeze the phased reference {params.reference}"
        if REFERENCE_FILES
        else "Phase the founders as the reference that is copied from"
    script:
        "../scripts/cohort/freeze_reference.py"


rule impute_by_copying:
    input:
        raw="results/cohorts/{cohort}/raw.json",
        samples="results/qc/{cohort}.samples.tsv",
        panel="results/panel/sites.tsv",
        reference=FROZEN,
    output:
        genotypes="results/impute/{cohort}/copied.npy",
        about="results/impute/{cohort}/copied.json",
        haplotypes="results/impute/{cohort}/haplotypes.npz",
        quality="results/impute/quality/{cohort}/copied.npy",
    log:
        "logs/impute_by_copying/{cohort}.log",
    benchmark:
        "benchmarks/impute_by_copying/{cohort}.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        mem_mb=copying_memory,
        runtime=copying_minutes,
    params:
        seed=CONFIG["seed"],
        absent=absent_sites,
        key=reference_key,
        code=code_of("impute_by_copying"),
    message:
        "Impute cohort {wildcards.cohort} by copying from the reference's haplotypes"
    script:
        "../scripts/cohort/impute_by_copying.py"


rule fill_calls:
    input:
        genotypes=multiext("results/cohorts/{cohort}/genotypes", ".bed", ".bim", ".fam"),
        imputed=imputed_windows,
        quality=imputation_qualities,
        counts="results/panel/counts.json",
    output:
        multiext("results/cohorts/{cohort}/imputed", ".bed", ".bim", ".fam", ".json"),
    log:
        "logs/fill_calls/{cohort}.log",
    benchmark:
        "benchmarks/fill_calls/{cohort}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(300, mb=3),
        runtime=minutes(mb=1 / 200),
    params:
        min_r2=IMPUTE["min_r2"],
        haploid=haploid_contigs(CONFIG),
        x_contigs=CONFIG["contigs"]["x"],
        code=code_of("fill_calls"),
    message:
        "Fill missing genotypes of cohort {wildcards.cohort} with imputed ones of sufficient r2"
    script:
        "../scripts/cohort/fill_calls.py"
