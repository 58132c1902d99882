# Exhaustive scans of pairs and triples of sites, as requested by epistasis.order.
#
# needs   results/reorder/*, results/epistasis/null_model.npz sites.tsv null.order{order}.tsv
# gives   results/epistasis/plan.json                    forecast of tests and time, before any scan
#         results/epistasis/units/order{order}.{unit}.npz    best hits of a unit of work
#         results/epistasis/pairs.tsv triples.tsv        ranked hits
#         results/epistasis/loci.tsv loci_triples.tsv    their loci
# Permuted scans: permutations.smk; analyses of the hits: hits.smk

from popdesic.epistasis.options import (
    ASSOCIATION,
    LOCI_NAMES,
    NAMES,
    candidates,
    permutations_run,
    scan_hours,
    scan_score,
)

SCORES = {order: scan_score(EPISTASIS["score"], QUANTITATIVE, order) for order in (2, 3)}
PERMUTATIONS = permutations_run(EPISTASIS, SCORES)
LIMITS = {name: EPISTASIS[name] for name in ("min_distance_bp", "max_r2")}
#: Of triples.
SCAN = LIMITS | {"score": SCORES[3]}
RANKING = {name: EPISTASIS[name] for name in ("top", "max_per_site")}
#: Main effects, which decide how many tests a hit's interaction is corrected for.
SITE_TESTS = [f"results/epistasis{OF_TRAIT}/sites.tsv"]
MAIN_EFFECTS = {k: SITE_TESTS if s not in ASSOCIATION else [] for k, s in SCORES.items()}
RANKING |= dict(limits=LIMITS, quantitative=QUANTITATIVE, code=code_of("rank_epistasis"))
SCAN_LIMITS = CONFIG["device"], EPISTASIS["max_device_hours"]
UNITS = range(EPISTASIS["units"])


HITS = [f"results/epistasis{OF_TRAIT}/{NAMES[order]}.tsv" for order in ORDERS]
LOCI = [f"results/epistasis{OF_TRAIT}/{LOCI_NAMES[order]}.tsv" for order in ORDERS]
EXTRAS = {
    name: f"results/epistasis{OF_TRAIT}/{name}.tsv"
    for name, key in (("screen", "screen"), ("refit", "covariates"), ("power", "power"))
    if ORDERS and EPISTASIS[key] and not QUANTITATIVE
}
if ORDERS and EPISTASIS["replication"] == "half":
    EXTRAS["replication"] = f"results/epistasis{OF_TRAIT}/replication.tsv"
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
        of_traits(HITS),
        of_traits(SITE_RESULTS if ORDERS else []),
        of_traits(list(EXTRAS.values())),
        of_traits(SCAN_FIGURES),


rule plan_epistasis:
    input:
        REORDERED,
    output:
        f"results/epistasis{OF_TRAIT}/plan.json",
    log:
        f"logs/plan_epistasis{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/plan_epistasis{OF_TRAIT}.tsv"
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
        "../scripts/plan_epistasis.py"


rule scan_epistasis:
    input:
        planes=REORDERED,
        null=lambda wildcards: null_model_of(int(wildcards.order)),
        plan=f"results/epistasis{OF_TRAIT}/plan.json",
    output:
        f"results/epistasis{OF_TRAIT}/units/order{{order}}.{{unit}}.npz",
    log:
        f"logs/scan_epistasis{OF_TRAIT}/order{{order}}.{{unit}}.log",
    benchmark:
        f"benchmarks/scan_epistasis{OF_TRAIT}/order{{order}}.{{unit}}.tsv"
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
        top=candidates(EPISTASIS["top"]),
        n_units=len(UNITS),
        device=CONFIG["device"],
        code=code_of("scan_epistasis"),
    message:
        "Epistasis scan of order {wildcards.order}, unit {wildcards.unit}"
    script:
        "../scripts/scan_epistasis.py"


rule rank_pairs:
    input:
        null=null_of(2),
        model=NULL_MODEL,
        main_effects=MAIN_EFFECTS[2],
        kinship=RELATIVES,
        planes=REORDERED,
        plan=f"results/epistasis{OF_TRAIT}/plan.json",
        units=units_of(2),
    output:
        table=f"results/epistasis{OF_TRAIT}/pairs.tsv",
        loci=f"results/epistasis{OF_TRAIT}/loci.tsv",
    log:
        f"logs/rank_pairs{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/rank_pairs{OF_TRAIT}.tsv"
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
        "../scripts/rank_epistasis.py"


use rule rank_pairs as rank_triples with:
    input:
        null=null_of(3),
        model=NULL_MODEL,
        main_effects=MAIN_EFFECTS[3],
        kinship=RELATIVES,
        planes=REORDERED,
        plan=f"results/epistasis{OF_TRAIT}/plan.json",
        units=units_of(3),
    output:
        table=f"results/epistasis{OF_TRAIT}/triples.tsv",
        loci=f"results/epistasis{OF_TRAIT}/loci_triples.tsv",
    log:
        f"logs/rank_triples{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/rank_triples{OF_TRAIT}.tsv"
    params:
        **RANKING,
        **PEDIGREE,
        order=3,
        score=SCORES[3],
