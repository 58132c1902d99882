# One scan for all phenotypes, in place of `scan_epistasis`: people whom they share are counted once.
#
# needs   results/reorder/PHENOTYPE/*, results/epistasis/PHENOTYPE/plan.json
# gives   results/epistasis/PHENOTYPE/units/order{order}.{unit}.npz   of each phenotype


ruleorder: scan_phenotypes > scan_epistasis


rule scan_phenotypes:
    input:
        planes=of_traits(REORDERED),
        plans=of_traits([f"results/epistasis{OF_TRAIT}/plan.json"]),
    output:
        of_traits([f"results/epistasis{OF_TRAIT}/units/order{{{{order}}}}.{{{{unit}}}}.npz"]),
    log:
        "logs/scan_phenotypes/order{order}.{unit}.log",
    benchmark:
        "benchmarks/scan_phenotypes/order{order}.{unit}.tsv"
    priority: THIRD
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # The planes of all phenotypes twice, and compacted planes and tables of a chunk of sites.
        mem_mb=memory(1500, mb=4),
        runtime=shared_minutes,
    params:
        limits=LIMITS,
        score=lambda wildcards: SCORES[int(wildcards.order)],
        top=candidates(EPISTASIS["top"]),
        n_units=len(UNITS),
        code=code_of("scan_phenotypes"),
    message:
        "Epistasis scan of all phenotypes, order {wildcards.order}, unit {wildcards.unit}"
    script:
        "../scripts/scan_phenotypes.py"
