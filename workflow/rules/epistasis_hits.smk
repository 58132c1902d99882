# Analyses of the hits of scans: permutations, screens, replication, power.
#
# needs   results/reorder/*, results/epistasis/* of epistasis.smk, the sample sheet
# gives   results/epistasis/* of the hits


# Scans of permuted phenotypes, for scores of association.
#
# needs   results/reorder/*, results/epistasis/plan.json, results/compare/kinship.tsv (if computed)
# gives   results/epistasis/units/null.order{order}.{unit}.npz   best costs of a unit of all scans
#         results/epistasis/null.order{order}.tsv                best cost of each permuted scan

PERMUTATION_UNITS = range(EPISTASIS["permutation_units"])


rule permute_epistasis:
    input:
        planes=REORDERED,
        kinship=RELATIVES,
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
    output:
        f"results/epistasis{OF_PHENOTYPE}/units/null.order{{order}}.{{unit}}.npz",
    log:
        f"logs/permute_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.log",
    benchmark:
        f"benchmarks/permute_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        mem_mb=memory(1000, mb=20),
        runtime=permutation_minutes,
        gpu=GPUS,
    params:
        **PEDIGREE,
        limits=LIMITS,
        score=lambda wildcards: SCORES[int(wildcards.order)],
        permutations=permutations_of,
        n_units=len(PERMUTATION_UNITS),
        seed=EPISTASIS["seed"],
        device=CONFIG["device"],
        code=code_of("permute_epistasis"),
    message:
        "Scans of {params.permutations} permutations, order {wildcards.order}, unit {wildcards.unit}"
    script:
        "../scripts/epistasis/permute_epistasis.py"


rule merge_permutations:
    input:
        expand(
            f"results/epistasis{OF_PHENOTYPE}/units/null.order{{order}}.{{unit}}.npz",
            unit=PERMUTATION_UNITS,
            allow_missing=True,
        ),
    output:
        f"results/epistasis{OF_PHENOTYPE}/null.order{{order}}.tsv",
    log:
        f"logs/merge_permutations{OF_PHENOTYPE}/order{{order}}.log",
    benchmark:
        f"benchmarks/merge_permutations{OF_PHENOTYPE}/order{{order}}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(200),
        runtime=minutes(1),
    params:
        permutations=permutations_of,
        code=code_of("merge_permutations"),
    message:
        "Merge the permuted scans of order {wildcards.order}"
    script:
        "../scripts/epistasis/merge_permutations.py"


# Analyses of the hits of epistasis scans.
#
# needs   results/epistasis/* of epistasis.smk, results/reorder/*, the sample sheet
# gives   results/epistasis/screen.tsv           best pairs with every third site
#         results/epistasis/replication.tsv      best loci in the other half, if requested
#         results/epistasis/refit.tsv power.tsv  refits with covariates; power, if requested
#         results/figures/hits.*, network.*, penetrance.*, zoom.*, power.*


rule screen_pairs:
    input:
        planes=REORDERED,
        kinship=RELATIVES,
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
        units=units_of(2),
    output:
        hits=f"results/epistasis{OF_PHENOTYPE}/units/screen.npz",
        table=f"results/epistasis{OF_PHENOTYPE}/screen.tsv",
    log:
        f"logs/screen_pairs{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/screen_pairs{OF_PHENOTYPE}.tsv"
    priority: THIRD
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # The planes, and tables of a block of pairs and sites.
        mem_mb=memory(1500, mb=4),
        runtime=minutes(1, mb=1e-4 * EPISTASIS["screen"]),
        gpu=GPUS,
    params:
        **PEDIGREE,
        scan=SCAN,
        pairs=EPISTASIS["screen"],
        top=EPISTASIS["top"],
        max_per_site=EPISTASIS["max_per_site"],
        device=CONFIG["device"],
        code=code_of("screen_pairs"),
    message:
        "Screen the best {params.pairs} pairs with every third site"
    script:
        "../scripts/epistasis/screen_pairs.py"


rule replicate_hits:
    input:
        hits=HITS,
        loci=LOCI,
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
        beds=genotype_files("epistasis", COHORTS),
        rest=genotype_files("epistasis", COHORTS, "bim", "fam"),
    output:
        f"results/epistasis{OF_PHENOTYPE}/replication.tsv",
    log:
        f"logs/replicate_hits{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/replicate_hits{OF_PHENOTYPE}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(800),
        runtime=minutes(1, samples=1e-3),
    params:
        orders=ORDERS,
        strata=EPISTASIS["strata"],
        phenotype={name: EPISTASIS[name] for name in ("binarize", "score")},
        seed=EPISTASIS["seed"],
        sheet=CONFIG["samples"],
        rows=scan_rows,
        code=code_of("replicate_hits"),
    message:
        "Test the best loci in the half of the people that the scan did not see"
    script:
        "../scripts/epistasis/replicate_hits.py"


rule refit_hits:
    input:
        planes=REORDERED,
        null=NULL_MODEL,
        hits=HITS,
    output:
        f"results/epistasis{OF_PHENOTYPE}/refit.tsv",
    log:
        f"logs/refit_hits{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/refit_hits{OF_PHENOTYPE}.tsv"
    priority: THIRD
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(800, mb=1),
        runtime=minutes(1, samples=1e-3),
    params:
        orders=ORDERS,
        code=code_of("refit_hits"),
    message:
        "Fit logistic regressions of the best hits"
    script:
        "../scripts/epistasis/refit_hits.py"


rule estimate_power:
    input:
        samples=f"results/reorder{OF_PHENOTYPE}/samples.tsv",
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
        nulls=NULLS,
    output:
        f"results/epistasis{OF_PHENOTYPE}/power.tsv",
    log:
        f"logs/estimate_power{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/estimate_power{OF_PHENOTYPE}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(800),
        runtime=minutes(1),
    params:
        orders=[order for order in ORDERS if null_of(order)],
        models=EPISTASIS["power"],
        score=SCAN["score"],
        seed=EPISTASIS["seed"],
        code=code_of("estimate_power"),
    message:
        "Estimate the power of the epistasis scans"
    script:
        "../scripts/epistasis/estimate_power.py"


rule draw_epistasis:
    input:
        planes=REORDERED,
        hits=HITS,
        nulls=NULLS,
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
        null=NULL_MODEL if QUANTITATIVE else [],
        beds=genotype_files("epistasis", COHORTS),
        rest=genotype_files("epistasis", COHORTS, "bim", "fam"),
    output:
        svg=reported("draw_epistasis"),
        png=expand("results/figures/{name}.png", name=EPISTASIS_FIGURES),
    log:
        f"logs/draw_epistasis{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/draw_epistasis{OF_PHENOTYPE}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(500, mb=20, files="hits"),
        runtime=minutes(1),
    params:
        orders=ORDERS,
        min_distance_bp=EPISTASIS["min_distance_bp"],
        code=code_of("draw_epistasis"),
    message:
        "Draw figures of the epistasis scans"
    script:
        "../scripts/epistasis/draw_epistasis.py"


if "power" in EXTRAS:

    rule draw_power:
        input:
            EXTRAS["power"],
        output:
            svg=reported("draw_power"),
            png=expand("results/figures/{name}.png", name=figures_by("draw_power")),
        log:
            f"logs/draw_power{OF_PHENOTYPE}.log",
        benchmark:
            f"benchmarks/draw_power{OF_PHENOTYPE}.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=memory(500),
            runtime=minutes(1),
        params:
            models=EPISTASIS["power"],
            code=code_of("draw_power"),
        message:
            "Draw the power of the epistasis scans"
        script:
            "../scripts/epistasis/draw_power.py"
