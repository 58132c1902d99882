# Exhaustive scans of pairs and triples of sites, as requested by epistasis.order.
#
# needs   results/reorder/onehot.npy sites.tsv samples.tsv
# gives   results/epistasis/plan.json                    forecast of tests and time, before any scan
#         results/epistasis/units/order{order}.{unit}.npz    best hits of a unit of work
#         results/epistasis/null.order{order}.tsv        best cost of each permuted scan, which
#                                                        tests association: not with the score
#                                                        `interaction`
#         results/epistasis/pairs.tsv triples.tsv        ranked hits
# Analyses of the hits: hits.smk

from popdesic.epistasis.options import NAMES, ON_CPU, permutations_run, scan_hours

PERMUTATIONS = permutations_run(EPISTASIS)
SCAN = {name: EPISTASIS[name] for name in ("score", "min_distance_bp", "max_r2")}
RANKING = {name: EPISTASIS[name] for name in ("score", "top")}
RANKING["code"] = code_of("rank_epistasis")
# No GPU is reserved for a score that none ranks by.
SCAN_GPUS = 0 if EPISTASIS["score"] in ON_CPU else GPUS
SCAN_LIMITS = CONFIG["device"], EPISTASIS["max_device_hours"]
UNITS = range(EPISTASIS["units"])
HITS = [f"results/epistasis/{NAMES[order]}.tsv" for order in ORDERS]
EXTRAS = {
    name: f"results/epistasis/{name}.tsv"
    for name, key in (("screen", "screen"), ("refit", "covariates"), ("power", "power"))
    if ORDERS and EPISTASIS[key]
}
#: What is known of relatives: pairs by KING-robust, if computed, and the sheet's pedigree.
RELATIVES = ["results/compare/kinship.tsv"] if "kinship" in COMPARISONS else []
PEDIGREE = {
    "sheet": CONFIG["samples"],
    "pedigree": STUDY.digest_of(None, "father", "mother"),
}
EPISTASIS_FIGURES = figures_by("draw_epistasis")


NULLS = [path for order in ORDERS for path in null_of(order)]


wildcard_constraints:
    order="[23]",
    unit="[0-9]+",


rule epistasis:
    input:
        HITS,
        list(EXTRAS.values()),
        expand(
            "results/figures/{figure}.{end}",
            figure=EPISTASIS_FIGURES if ORDERS else [],
            end=["svg", "png"],
        ),


rule plan_epistasis:
    input:
        REORDERED,
    output:
        "results/epistasis/plan.json",
    log:
        "logs/plan_epistasis.log",
    benchmark:
        "benchmarks/plan_epistasis.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # The planes, and random genotypes on which the forecast of a large study is measured.
        mem_mb=memory(1500, mb=2),
        runtime=minutes(2),
        gpu=SCAN_GPUS,
    params:
        orders=ORDERS,
        score=EPISTASIS["score"],
        permutations=PERMUTATIONS,
        restricted_partners=SCAN["min_distance_bp"] > 0 or SCAN["max_r2"] < 1,
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
        plan="results/epistasis/plan.json",
    output:
        "results/epistasis/units/order{order}.{unit}.npz",
    log:
        "logs/scan_epistasis/order{order}.{unit}.log",
    benchmark:
        "benchmarks/scan_epistasis/order{order}.{unit}.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # The planes twice, compacted planes of a chunk of sites, and the bit matrix of partners.
        mem_mb=memory(1000, mb=4),
        runtime=scan_minutes,
        gpu=SCAN_GPUS,
    params:
        scan=SCAN,
        top=EPISTASIS["top"],
        n_units=len(UNITS),
        device=CONFIG["device"],
        code=code_of("scan_epistasis"),
    message:
        "Epistasis scan of order {wildcards.order}, unit {wildcards.unit}"
    script:
        "../scripts/scan_epistasis.py"


rule permute_epistasis:
    input:
        planes=REORDERED,
        kinship=RELATIVES,
        plan="results/epistasis/plan.json",
    output:
        "results/epistasis/null.order{order}.tsv",
    log:
        "logs/permute_epistasis/order{order}.log",
    benchmark:
        "benchmarks/permute_epistasis/order{order}.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        mem_mb=memory(1000, mb=20),
        runtime=permutation_minutes,
        gpu=SCAN_GPUS,
    params:
        **PEDIGREE,
        scan=SCAN,
        permutations=permutations_of,
        seed=EPISTASIS["seed"],
        device=CONFIG["device"],
        code=code_of("permute_epistasis"),
    message:
        "Epistasis scans of {params.permutations} permutations, order {wildcards.order}"
    script:
        "../scripts/permute_epistasis.py"


rule rank_pairs:
    input:
        null=null_of(2),
        kinship=RELATIVES,
        planes=REORDERED,
        plan="results/epistasis/plan.json",
        units=expand("results/epistasis/units/order2.{unit}.npz", unit=UNITS),
    output:
        "results/epistasis/pairs.tsv",
    log:
        "logs/rank_pairs.log",
    benchmark:
        "benchmarks/rank_pairs.tsv"
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
    message:
        "Rank the hits of the epistasis scan"
    script:
        "../scripts/rank_epistasis.py"


use rule rank_pairs as rank_triples with:
    input:
        null=null_of(3),
        kinship=RELATIVES,
        planes=REORDERED,
        plan="results/epistasis/plan.json",
        units=expand("results/epistasis/units/order3.{unit}.npz", unit=UNITS),
    output:
        "results/epistasis/triples.tsv",
    log:
        "logs/rank_triples.log",
    benchmark:
        "benchmarks/rank_triples.tsv"
    params:
        **RANKING,
        **PEDIGREE,
        order=3,
