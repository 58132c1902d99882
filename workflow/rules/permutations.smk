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
        plan=f"results/epistasis{OF_TRAIT}/plan.json",
    output:
        f"results/epistasis{OF_TRAIT}/units/null.order{{order}}.{{unit}}.npz",
    log:
        f"logs/permute_epistasis{OF_TRAIT}/order{{order}}.{{unit}}.log",
    benchmark:
        f"benchmarks/permute_epistasis{OF_TRAIT}/order{{order}}.{{unit}}.tsv"
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
        "../scripts/permute_epistasis.py"


rule merge_permutations:
    input:
        expand(
            f"results/epistasis{OF_TRAIT}/units/null.order{{order}}.{{unit}}.npz",
            unit=PERMUTATION_UNITS,
            allow_missing=True,
        ),
    output:
        f"results/epistasis{OF_TRAIT}/null.order{{order}}.tsv",
    log:
        f"logs/merge_permutations{OF_TRAIT}/order{{order}}.log",
    benchmark:
        f"benchmarks/merge_permutations{OF_TRAIT}/order{{order}}.tsv"
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
        "../scripts/merge_permutations.py"
