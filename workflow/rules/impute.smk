# Imputation by a program, and a measurement of any method. `mode` and `none` need no rule of
# their own: `encode` fills them in. Nothing here runs unless the configuration asks for it.
#
# needs   results/cohorts/{cohort}/raw.*, results/qc/{cohort}.samples.tsv, results/panel/sites.tsv,
#         optionally a phased reference panel and a genetic map
# gives   results/impute/windows.tsv                    what is imputed at a time
#         results/impute/{cohort}/{window}.npy .json    .bed rows of a window, nothing missing
#         results/impute/evaluation.tsv                 accuracy at genotypes that were hidden
#         results/figures/imputation.svg .png


rule impute:
    input:
        lambda wildcards: [
            path for cohort in COHORTS for path in imputed_windows(SimpleNamespace(cohort=cohort))
        ],
        EVALUATION,


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
        mem_mb=lambda wildcards, input, attempt: memory(6 * input_mb(input), attempt),
        runtime=lambda wildcards, attempt: minutes(1, attempt),
    params:
        window_mb=IMPUTE["window_mb"],
        overlap_mb=IMPUTE["overlap_mb"],
        code=code_of("plan_imputation"),
    message:
        "Windows of the imputation"
    script:
        "../scripts/plan_imputation.py"


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
    threads: IMPUTE["threads"]
    resources:
        # Java's heap, and the window's genotypes as bytes beside it.
        mem_mb=lambda wildcards, input, attempt: memory(
            IMPUTE["memory_mb"] + 300 + 12 * input_mb(input.raw), attempt
        ),
        # 19 000 sites of 564 people take 4 minutes on 2 cores.
        runtime=lambda wildcards, input, attempt: minutes(5 + 3 * input_mb(input.raw), attempt),
    params:
        **BEAGLE_SETTINGS,
        reference=contig_file("reference"),
        map=contig_file("map"),
        key=lambda wildcards: file_key(contig_files(wildcards)),
        code=code_of("impute_window"),
    message:
        "Beagle: window {wildcards.window} of cohort {wildcards.cohort}"
    script:
        "../scripts/impute_window.py"


rule evaluate_imputation:
    input:
        raw=multiext("results/cohorts/{cohort}/raw", ".bed", ".bim", ".fam"),
        samples="results/qc/{cohort}.samples.tsv",
        panel="results/panel/sites.tsv",
        windows=lambda wildcards: (
            [] if wildcards.window == "all" else ["results/impute/windows.tsv"]
        ),
        files=contig_files,
    output:
        "results/impute/evaluation/{cohort}.{window}.npz",
    log:
        "logs/evaluate_imputation/{cohort}.{window}.log",
    benchmark:
        "benchmarks/evaluate_imputation/{cohort}.{window}.tsv"
    conda:
        "../../envs/{}.yaml".format("beagle" if BEAGLE else "popdesic")
    threads: IMPUTE["threads"] if BEAGLE else 1
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(
            (IMPUTE["memory_mb"] if BEAGLE else 0) + 300 + 16 * input_mb(input.raw), attempt
        ),
        runtime=lambda wildcards, input, attempt: minutes(
            (5 + 3 * input_mb(input.raw)) if BEAGLE else input_mb(input.raw) / 50, attempt
        ),
    params:
        **BEAGLE_SETTINGS,
        methods=IMPUTE["evaluate_methods"],
        share=IMPUTE["evaluate"],
        reference=contig_file("reference"),
        map=contig_file("map"),
        key=lambda wildcards: file_key(contig_files(wildcards)),
        code=code_of("evaluate_imputation"),
    message:
        "Accuracy of imputation: window {wildcards.window} of cohort {wildcards.cohort}"
    script:
        "../scripts/evaluate_imputation.py"


rule summarize_imputation:
    input:
        parts=lambda wildcards: [path for c in COHORTS for path in evaluated_windows(c)],
        samples=expand("results/qc/{cohort}.samples.tsv", cohort=COHORTS),
    output:
        table="results/impute/evaluation.tsv",
        svg=reported("summarize_imputation"),
        png="results/figures/imputation.png",
    log:
        "logs/summarize_imputation.log",
    benchmark:
        "benchmarks/summarize_imputation.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(300 + 3 * input_mb(input), attempt),
        runtime=lambda wildcards, attempt: minutes(1, attempt),
    params:
        cohorts=COHORTS,
        parts=lambda wildcards: {cohort: evaluated_windows(cohort) for cohort in COHORTS},
        methods=IMPUTE["evaluate_methods"],
        code=code_of("summarize_imputation"),
    message:
        "Table and figure of the accuracy of imputation"
    script:
        "../scripts/summarize_imputation.py"
