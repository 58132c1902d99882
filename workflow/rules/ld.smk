# LD between sites, and the figures of all comparisons.
#
# needs   results/cohorts/{cohort}/genotypes.bed (or imputed.bed) of the founders,
#         results/panel/*; for haplotypes
#         the founders' own files
# gives   results/compare/ld.tsv.gz              pairs of sites in LD: r2, D, D'
#         results/compare/decay.tsv, region.npz  mean r2 by distance, r2 of one region
#         results/compare/prune.in, prune.out    sites that LD pruning keeps and removes
#         results/figures/kinship.*, ld_decay.*, ld_region.*

LD_FILES = dict(
    pairs="results/compare/ld.tsv.gz",
    decay="results/compare/decay.tsv",
    region="results/compare/region.npz",
    kept="results/compare/prune.in",
    removed="results/compare/prune.out",
)
#: Founders whose phased input files are needed, for LD between haplotypes.
PHASED = STUDY.founders if COMPARE["ld"]["phase"] == "phased" else []
COMPARE_FIGURES = figures_by("draw_comparisons")
#: Inputs of each figure, by its `source`.
COMPARE_TABLES = {
    "kinship": "results/compare/kinship.tsv",
    "decay": LD_FILES["decay"],
    "region": LD_FILES["region"],
}


rule compare:
    input:
        expand("results/compare/{kind}.tsv", kind=COMPARISONS),
        RESOLUTION if COMPARISONS or MAX_KINSHIP else [],
        LD_FILES.values() if "ld" in COMPARE["analyses"] else [],
        [f"results/compare/{kind}.query.tsv" for kind in PROFILES],
        [f"results/figures/{name}.{end}" for name in COMPARE_FIGURES for end in ["svg", "png"]],


rule measure_ld:
    input:
        genotypes=genotype_files("compare.ld.genotypes", STUDY.founders),
        panel="results/panel/sites.tsv",
        unrelated=["results/panel/unrelated.tsv"] if MAX_KINSHIP else [],
        # Only haplotype LD needs the cohorts' input files and a map.
        phase=[cohort_files(STUDY, cohort) for cohort in PHASED],
        map=COMPARE["ld"]["map"] or [],
    output:
        **LD_FILES,
    log:
        "logs/measure_ld.log",
    benchmark:
        "benchmarks/measure_ld.tsv"
    conda:
        GPU_CONDA
    threads: ld_threads()
    resources:
        # Genotypes of one contig as bytes (four times the .bed) and as planes.
        mem_mb=memory(700, mb=8),
        runtime=minutes(mb=1 / 5),
        gpu=GPUS,
    params:
        sources=phased_sources,
        options=COMPARE["ld"],
        key=map_key,
        device=CONFIG["device"],
        code=code_of("measure_ld"),
    message:
        "Measure LD between panel sites"
    script:
        "../scripts/measure_ld.py"


rule draw_comparisons:
    input:
        **{figure.source: COMPARE_TABLES[figure.source] for figure in COMPARE_FIGURES.values()},
    output:
        svg=reported("draw_comparisons"),
        png=expand("results/figures/{name}.png", name=COMPARE_FIGURES),
    log:
        "logs/draw_comparisons.log",
    benchmark:
        "benchmarks/draw_comparisons.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(500, mb=20),
        runtime=minutes(1),
    params:
        code=code_of("draw_comparisons"),
    message:
        "Draw figures of kinship and LD"
    script:
        "../scripts/draw_comparisons.py"
