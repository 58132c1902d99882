# Scans of sites, pairs and triples for association with a phenotype.
#
# needs   results/cohorts/{cohort}/genotypes.bed (or imputed.bed), the sample sheet
# gives   results/reorder/*, results/epistasis/*

from popdesic.cohort.phenotype import is_quantitative, of_phenotype
from popdesic.epistasis.options import phenotypes_of
from popdesic.epistasis.options import (
    ASSOCIATION,
    LOCI_NAMES,
    NAMES,
    kept_combinations,
    permutations_run,
    scan_hours,
    scan_score,
)

# One-hot planes of the scanned sites, split by phenotype, as requested by epistasis.order.
#
# needs   results/cohorts/{cohort}/genotypes.bed .bim .fam (or imputed), the sample sheet
# gives   results/reorder/onehot.npy    stored genotypes of each site, controls then cases
#         results/reorder/sites.tsv     sites in scan order, labels of the stored genotypes
#         results/reorder/samples.tsv   samples in plane order, class, stratum

EPISTASIS = CONFIG["epistasis"]
#: Whether scans read the phenotypes, which are of one kind, as numbers.
QUANTITATIVE = bool(EPISTASIS["order"]) and is_quantitative(
    of_phenotype(STUDY.samples, phenotypes_of(EPISTASIS)[0], CONFIG["samples"]),
    EPISTASIS["binarize"],
)
ORDERS = sorted(EPISTASIS["order"])
REORDERED = multiext(f"results/reorder{OF_PHENOTYPE}/", "onehot.npy", "sites.tsv", "samples.tsv")


rule reorder:
    input:
        of_phenotypes(REORDERED) if ORDERS else [],


rule build_onehot:
    input:
        **({"restrict": EPISTASIS["restrict"]} if EPISTASIS["restrict"] else {}),
        beds=genotype_files("epistasis", COHORTS),
        rest=genotype_files("epistasis", COHORTS, "bim", "fam"),
    output:
        onehot=f"results/reorder{OF_PHENOTYPE}/onehot.npy",
        sites=f"results/reorder{OF_PHENOTYPE}/sites.tsv",
        samples=f"results/reorder{OF_PHENOTYPE}/samples.tsv",
    log:
        f"logs/build_onehot{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/build_onehot{OF_PHENOTYPE}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # One byte per genotype of the chosen sites, twice while they are sorted.
        mem_mb=memory(500, mb=10),
        runtime=minutes(mb=1 / 20),
    params:
        sheet=CONFIG["samples"],
        rows=scan_rows,
        strata=EPISTASIS["strata"],
        phenotype={name: EPISTASIS[name] for name in ("binarize", "score")},
        replication=EPISTASIS["replication"],
        seed=EPISTASIS["seed"],
        orders=ORDERS,
        key=lambda wildcards: file_key(filter(None, [EPISTASIS["restrict"]])),
        code=code_of("build_onehot"),
    message:
        "Build one-hot planes of the scanned sites"
    script:
        "../scripts/epistasis/build_onehot.py"


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
NULL_MODEL = f"results/epistasis{OF_PHENOTYPE}/null_model.npz"
SITE_RESULTS = multiext(f"results/epistasis{OF_PHENOTYPE}/", "sites.tsv", "structure.tsv")


rule fit_null_model:
    input:
        planes=REORDERED,
        axes=NULL_AXES,
        genotypes=genotype_files("pca", COHORTS if NULL_AXES else []),
        kinship=RELATIVES if QUANTITATIVE else [],
    output:
        model=NULL_MODEL,
        structure=f"results/epistasis{OF_PHENOTYPE}/structure.tsv",
    log:
        f"logs/fit_null_model{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/fit_null_model{OF_PHENOTYPE}.tsv"
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
        "../scripts/epistasis/fit_null_model.py"


rule scan_sites:
    input:
        planes=REORDERED,
        null=NULL_MODEL,
        kinship=RELATIVES,
    output:
        f"results/epistasis{OF_PHENOTYPE}/sites.tsv",
    log:
        f"logs/scan_sites{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/scan_sites{OF_PHENOTYPE}.tsv"
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
        "../scripts/epistasis/scan_sites.py"


rule draw_sites:
    input:
        f"results/epistasis{OF_PHENOTYPE}/sites.tsv",
    output:
        svg=reported("draw_sites"),
        png=expand("results/figures/{name}.png", name=figures_by("draw_sites")),
    log:
        f"logs/draw_sites{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/draw_sites{OF_PHENOTYPE}.tsv"
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
        "../scripts/epistasis/draw_sites.py"


# Exhaustive scans of pairs and triples of sites, as requested by epistasis.order.
#
# needs   results/reorder/*, results/epistasis/null_model.npz sites.tsv null.order{order}.tsv
# gives   results/epistasis/plan.json                    forecast of tests and time, before any scan
#         results/epistasis/units/order{order}.{unit}.npz    best hits of a unit of work
#         results/epistasis/pairs.tsv triples.tsv        ranked hits
#         results/epistasis/loci.tsv loci_triples.tsv    their loci
# Permuted scans: epistasis_hits.smk, with analyses of the hits

SCORES = {order: scan_score(EPISTASIS["score"], QUANTITATIVE, order) for order in (2, 3)}
PERMUTATIONS = permutations_run(EPISTASIS, SCORES)
LIMITS = {name: EPISTASIS[name] for name in ("min_distance_bp", "max_r2")}
#: Of triples.
SCAN = LIMITS | {"score": SCORES[3]}
RANKING = {name: EPISTASIS[name] for name in ("top", "max_per_site")}
#: Main effects, which decide how many tests a hit's interaction is corrected for.
SITE_TESTS = [f"results/epistasis{OF_PHENOTYPE}/sites.tsv"]
MAIN_EFFECTS = {k: SITE_TESTS if s not in ASSOCIATION else [] for k, s in SCORES.items()}
RANKING |= dict(limits=LIMITS, quantitative=QUANTITATIVE, code=code_of("rank_epistasis"))
SCAN_LIMITS = CONFIG["device"], EPISTASIS["max_device_hours"]
UNITS = range(EPISTASIS["units"])


HITS = [f"results/epistasis{OF_PHENOTYPE}/{NAMES[order]}.tsv" for order in ORDERS]
LOCI = [f"results/epistasis{OF_PHENOTYPE}/{LOCI_NAMES[order]}.tsv" for order in ORDERS]
EXTRAS = {
    name: f"results/epistasis{OF_PHENOTYPE}/{name}.tsv"
    for name, key in (("screen", "screen"), ("refit", "covariates"), ("power", "power"))
    if ORDERS and EPISTASIS[key] and not QUANTITATIVE
}
if ORDERS and EPISTASIS["replication"] == "half":
    EXTRAS["replication"] = f"results/epistasis{OF_PHENOTYPE}/replication.tsv"
EPISTASIS_FIGURES = figures_by("draw_epistasis")
FURTHER_FIGURES = [
    *figures_by("draw_sites"),
    *(figures_by("draw_power") if "power" in EXTRAS else []),
]
SCAN_FIGURES = expand(
    "results/figures/{figure}.{end}",
    figure=[*EPISTASIS_FIGURES, *FURTHER_FIGURES] if ORDERS else [],
    end=["svg", "png"],
)


NULLS = [path for order in ORDERS for path in null_of(order)]


wildcard_constraints:
    order="[23]",
    unit="[0-9]+",


rule epistasis:
    input:
        of_phenotypes(HITS),
        of_phenotypes(SITE_RESULTS if ORDERS else []),
        of_phenotypes(list(EXTRAS.values())),
        of_phenotypes(SCAN_FIGURES),


rule plan_epistasis:
    input:
        REORDERED,
    output:
        f"results/epistasis{OF_PHENOTYPE}/plan.json",
    log:
        f"logs/plan_epistasis{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/plan_epistasis{OF_PHENOTYPE}.tsv"
    priority: THIRD
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # The planes, and random genotypes on which the forecast of a large study is measured.
        mem_mb=memory(1500, mb=2),
        runtime=minutes(2),
        gpu=GPUS,
    params:
        orders=ORDERS,
        scores=SCORES,
        permutations=PERMUTATIONS,
        screen=EPISTASIS["screen"],
        top=EPISTASIS["top"],
        max_device_hours=EPISTASIS["max_device_hours"],
        device=CONFIG["device"],
        code=code_of("plan_epistasis"),
    message:
        "Forecast the time of the epistasis scans"
    script:
        "../scripts/epistasis/plan_epistasis.py"


rule scan_epistasis:
    input:
        planes=REORDERED,
        null=lambda wildcards: null_model_of(int(wildcards.order)),
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
    output:
        f"results/epistasis{OF_PHENOTYPE}/units/order{{order}}.{{unit}}.npz",
    log:
        f"logs/scan_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.log",
    benchmark:
        f"benchmarks/scan_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.tsv"
    priority: THIRD
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # The planes twice, and compacted planes of a chunk of sites.
        mem_mb=memory(1000, mb=4),
        runtime=scan_minutes,
        gpu=GPUS,
    params:
        limits=LIMITS,
        score=lambda wildcards: SCORES[int(wildcards.order)],
        top=kept_combinations(EPISTASIS["top"]),
        n_units=len(UNITS),
        device=CONFIG["device"],
        code=code_of("scan_epistasis"),
    message:
        "Epistasis scan of order {wildcards.order}, unit {wildcards.unit}"
    script:
        "../scripts/epistasis/scan_epistasis.py"


rule rank_pairs:
    input:
        null=null_of(2),
        model=NULL_MODEL,
        main_effects=MAIN_EFFECTS[2],
        kinship=RELATIVES,
        planes=REORDERED,
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
        units=units_of(2),
    output:
        table=f"results/epistasis{OF_PHENOTYPE}/pairs.tsv",
        loci=f"results/epistasis{OF_PHENOTYPE}/loci.tsv",
    log:
        f"logs/rank_pairs{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/rank_pairs{OF_PHENOTYPE}.tsv"
    priority: THIRD
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # Genotypes of the hits' sites; draws of a hit's table take 0.1 seconds, twice.
        mem_mb=memory(700, mb=1),
        runtime=minutes(2 + EPISTASIS["top"] / 200, samples=1e-3),
    params:
        **RANKING,
        **PEDIGREE,
        order=2,
        score=SCORES[2],
    message:
        "Rank the hits of the epistasis scan"
    script:
        "../scripts/epistasis/rank_epistasis.py"


use rule rank_pairs as rank_triples with:
    input:
        null=null_of(3),
        model=NULL_MODEL,
        main_effects=MAIN_EFFECTS[3],
        kinship=RELATIVES,
        planes=REORDERED,
        plan=f"results/epistasis{OF_PHENOTYPE}/plan.json",
        units=units_of(3),
    output:
        table=f"results/epistasis{OF_PHENOTYPE}/triples.tsv",
        loci=f"results/epistasis{OF_PHENOTYPE}/loci_triples.tsv",
    log:
        f"logs/rank_triples{OF_PHENOTYPE}.log",
    benchmark:
        f"benchmarks/rank_triples{OF_PHENOTYPE}.tsv"
    params:
        **RANKING,
        **PEDIGREE,
        order=3,
        score=SCORES[3],
