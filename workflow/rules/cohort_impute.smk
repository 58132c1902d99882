# Imputation of missing calls with Beagle.
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

# Windows, references and genetic maps of the imputation rules.
#
# needs   CONFIG, COHORTS; results/impute/windows.tsv once the panel exists
# gives   IMPUTE, BEAGLE, EVALUATION, GENOTYPE_STEMS, FILLED, and input functions

IMPUTE = CONFIG["impute"]
#: Whether any job runs Beagle.
BEAGLE = uses_beagle(IMPUTE)
BEAGLE_SETTINGS = {"seed": CONFIG["seed"]}
BEAGLE_FILES = {"reference": IMPUTE["reference"], "map": CONFIG["genetic_map"]}
if BEAGLE:
    # Without the command, jobs continue with the mode; they rerun once it is installed.
    BEAGLE_SETTINGS["found"] = find_beagle() is not None
#: Accuracy of the imputation, which summarize_quality writes; of the mode alone it measures it, too.
EVALUATION = ["results/impute/evaluation.tsv"] if IMPUTE["evaluate"] else []
EVALUATES_MODE = IMPUTE["evaluate"] == ["mode"]
#: Called or imputed PLINK files of a cohort, by the configuration key of what reads them.
GENOTYPE_STEMS = genotype_stems(CONFIG)
#: What became of missing genotypes in cohorts that some stage reads as imputed.
FILLED = expand(
    "results/cohorts/{cohort}/imputed.json",
    cohort=imputed_cohorts(CONFIG, COHORTS, STUDY.founders),
)


wildcard_constraints:
    window=r"\d+",


# Imputation by Beagle, and the accuracy of any method. `mode` and `none` need no rule of their own:
# encode_cohort applies them. These rules run only if the configuration requests them.
#
# needs   results/cohorts/{cohort}/raw.*, results/qc/{cohort}.samples.tsv, results/panel/sites.tsv,
#         results/cohorts/{cohort}/genotypes.*; optionally a phased reference panel and a map
# gives   results/impute/windows.tsv                    windows of the imputation
#         results/impute/{cohort}/{window}.npy .json    .bed rows of a window, none missing
#         results/impute/quality/{cohort}/{window}.npy  r2 of each site, at hidden called genotypes
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


rule impute_window:
    input:
        raw=multiext("results/cohorts/{cohort}/raw", ".bed", ".bim", ".fam"),
        samples="results/qc/{cohort}.samples.tsv",
        panel="results/panel/sites.tsv",
        windows="results/impute/windows.tsv",
        files=contig_files,
    output:
        multiext("results/impute/{cohort}/{window}", ".npy", ".json"),
    log:
        "logs/impute_window/{cohort}.{window}.log",
    benchmark:
        "benchmarks/impute_window/{cohort}.{window}.tsv"
    conda:
        "../../envs/beagle.yaml"
    threads: BEAGLE_THREADS
    resources:
        # Java's heap, plus the window's genotypes as bytes.
        mem_mb=memory(300 + BEAGLE_MB, mb=12, files="raw"),
        # 19 000 sites of 564 samples take 4 minutes on 2 cores.
        runtime=minutes(5, mb=3, files="raw"),
    params:
        **BEAGLE_SETTINGS,
        absent=absent_sites,
        reference=contig_file("reference"),
        map=contig_file("map"),
        key=contig_key,
        code=code_of("impute_window"),
    message:
        "Impute window {wildcards.window} of cohort {wildcards.cohort} with Beagle"
    script:
        "../scripts/cohort/impute_window.py"


rule rate_imputation:
    input:
        raw=multiext("results/cohorts/{cohort}/raw", ".bed", ".bim", ".fam"),
        samples="results/qc/{cohort}.samples.tsv",
        panel="results/panel/sites.tsv",
        windows="results/impute/windows.tsv",
        files=contig_files,
    output:
        "results/impute/quality/{cohort}/{window}.npy",
    log:
        "logs/rate_imputation/{cohort}.{window}.log",
    benchmark:
        "benchmarks/rate_imputation/{cohort}.{window}.tsv"
    conda:
        "../../envs/beagle.yaml"
    threads: BEAGLE_THREADS
    resources:
        # As impute_window, with what five runs of Beagle give.
        mem_mb=memory(300 + BEAGLE_MB, mb=30, files="raw"),
        runtime=minutes(25, mb=15, files="raw"),
    params:
        **BEAGLE_SETTINGS,
        absent=absent_sites,
        reference=contig_file("reference"),
        map=contig_file("map"),
        key=contig_key,
        code=code_of("rate_imputation"),
    message:
        "Measure imputation quality in window {wildcards.window} of cohort {wildcards.cohort}"
    script:
        "../scripts/cohort/rate_imputation.py"


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


rule evaluate_imputation:
    input:
        raw=multiext("results/cohorts/{cohort}/raw", ".bed", ".bim", ".fam"),
        samples="results/qc/{cohort}.samples.tsv",
        panel="results/panel/sites.tsv",
        windows="results/impute/windows.tsv",
        files=contig_files,
    output:
        "results/impute/evaluation/{cohort}.{window}.npz",
    log:
        "logs/evaluate_imputation/{cohort}.{window}.log",
    benchmark:
        "benchmarks/evaluate_imputation/{cohort}.{window}.tsv"
    conda:
        "../../envs/beagle.yaml"
    threads: BEAGLE_THREADS
    resources:
        mem_mb=memory(300 + BEAGLE_MB, mb=16, files="raw"),
        runtime=minutes(5, mb=3, files="raw"),
    params:
        **BEAGLE_SETTINGS,
        absent=absent_sites,
        methods=IMPUTE["evaluate"],
        reference=contig_file("reference"),
        map=contig_file("map"),
        key=contig_key,
        code=code_of("evaluate_imputation"),
    message:
        "Measure imputation accuracy in window {wildcards.window} of cohort {wildcards.cohort}"
    script:
        "../scripts/cohort/evaluate_imputation.py"
