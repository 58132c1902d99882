# Null model of the scans: phenotype given strata, covariates and principal components; main effects.
#
# needs   results/reorder/*, the sample sheet, results/embedding/axes.npz axes.json,
#         results/cohorts/{cohort}/genotypes.bed or imputed.bed (unless epistasis.pcs is 0),
#         results/compare/kinship.tsv (if kinship is computed)
# gives   results/epistasis/null_model.npz   design matrix, fitted values, residuals
#         results/epistasis/structure.tsv    what populations and components say about the phenotype
#         results/epistasis/sites.tsv        score tests of every site
#         results/figures/manhattan.*, qq_sites.*

# The scanned people are placed on the axes here: scans need no distances.

#: Axes of the PCA, and how many are significant.
NULL_AXES = multiext("results/embedding/axes", ".npz", ".json") if EPISTASIS["pcs"] else []
#: What is known of relatives: pairs by KING-robust, if computed, and the sheet's pedigree.
RELATIVES = ["results/compare/kinship.tsv"] if "kinship" in COMPARISONS else []
#: The sheet's pedigree: relatives beside those of `RELATIVES`.
PEDIGREE = {
    "sheet": CONFIG["samples"],
    "pedigree": STUDY.digest_of(None, "father", "mother"),
}
NULL_MODEL = f"results/epistasis{OF_TRAIT}/null_model.npz"
SITE_RESULTS = multiext(f"results/epistasis{OF_TRAIT}/", "sites.tsv", "structure.tsv")


rule fit_null_model:
    input:
        planes=REORDERED,
        axes=NULL_AXES,
        genotypes=genotype_files("embedding.genotypes", COHORTS if NULL_AXES else []),
        kinship=RELATIVES if QUANTITATIVE else [],
    output:
        model=NULL_MODEL,
        structure=f"results/epistasis{OF_TRAIT}/structure.tsv",
    log:
        f"logs/fit_null_model{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/fit_null_model{OF_TRAIT}.tsv"
    priority: THIRD
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # As compute_pca, a few copies of the design matrix, and the largest families.
        mem_mb=memory(500, samples=0.05, pairs=32e-6),
        runtime=minutes(1, mb_samples=4e-6, samples=1e-4),
    params:
        model={name: EPISTASIS[name] for name in ("covariates", "pcs", "transform", "seed")},
        sheet=CONFIG["samples"],
        rows=scan_rows,
        code=code_of("fit_null_model"),
    message:
        "Fit the null model of the epistasis scans"
    script:
        "../scripts/fit_null_model.py"


rule scan_sites:
    input:
        planes=REORDERED,
        null=NULL_MODEL,
        kinship=RELATIVES,
    output:
        f"results/epistasis{OF_TRAIT}/sites.tsv",
    log:
        f"logs/scan_sites{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/scan_sites{OF_TRAIT}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # The planes, and chunks of genotypes as float64.
        mem_mb=memory(1200, mb=1),
        runtime=minutes(1, mb=1 / 20),
    params:
        **PEDIGREE,
        code=code_of("scan_sites"),
    message:
        "Test the main effect of every site"
    script:
        "../scripts/scan_sites.py"


rule draw_sites:
    input:
        f"results/epistasis{OF_TRAIT}/sites.tsv",
    output:
        svg=reported("draw_sites"),
        png=expand("results/figures/{name}.png", name=figures_by("draw_sites")),
    log:
        f"logs/draw_sites{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/draw_sites{OF_TRAIT}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(500, mb=10),
        runtime=minutes(1),
    params:
        code=code_of("draw_sites"),
    message:
        "Draw figures of the main effects"
    script:
        "../scripts/draw_sites.py"
