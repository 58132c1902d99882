# Exhaustive scans of pairs and triples (only where epistasis.order asks for them).
#
# needs   results/reorder/onehot.npy sites.tsv samples.tsv
# gives   results/epistasis/plan.json                    tests and scans, before any is run
#         results/epistasis/units/order{order}.{unit}.npz    best hits of a unit of work
#         results/epistasis/null.order{order}.tsv        best cost of each permuted scan
#         results/epistasis/pairs.tsv triples.tsv        ranked hits
#         results/epistasis/screen.tsv                   best pairs with every third site
#         results/epistasis/refit.tsv power.tsv          with covariates; power, where asked for
#         results/figures/hits.*, network.*, penetrance.*

from popdesic.epistasis.options import NAMES, scan_hours

PERMUTATIONS = {2: EPISTASIS["permutations"], 3: EPISTASIS["permutations_triples"]}
SCAN = {name: EPISTASIS[name] for name in ("score", "min_distance_bp", "max_r2")}
SCAN_LIMITS = CONFIG["device"], EPISTASIS["max_device_hours"]
UNITS = range(EPISTASIS["units"])
HITS = [f"results/epistasis/{NAMES[order]}.tsv" for order in ORDERS]
NULLS = [f"results/epistasis/null.order{order}.tsv" for order in ORDERS if PERMUTATIONS[order]]
EXTRAS = {
    name: f"results/epistasis/{name}.tsv"
    for name, key in (("screen", "screen"), ("refit", "covariates"), ("power", "power"))
    if ORDERS and EPISTASIS[key]
}
EPISTASIS_FIGURES = figures_by("draw_epistasis")


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
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # The planes, and the random genotypes that the forecast of a large study is measured on.
        mem_mb=lambda wildcards, input, attempt: memory(1500 + 2 * input_mb(input), attempt),
        runtime=lambda wildcards, attempt: minutes(2, attempt),
        gpu=GPUS,
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
        "Forecast of the epistasis scans"
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
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # The planes twice, the compacted planes of a chunk of sites, the partners' bit matrix.
        mem_mb=lambda wildcards, input, attempt: memory(1000 + 4 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(
            60 * scan_hours(input.plan, int(wildcards.order), 1 / len(UNITS), *SCAN_LIMITS),
            attempt,
        ),
        gpu=GPUS,
    params:
        scan=SCAN,
        top=EPISTASIS["top"],
        n_units=len(UNITS),
        device=CONFIG["device"],
        code=code_of("scan_epistasis"),
    message:
        "Scan of order {wildcards.order}, unit {wildcards.unit}"
    script:
        "../scripts/scan_epistasis.py"


rule permute_epistasis:
    input:
        planes=REORDERED,
        plan="results/epistasis/plan.json",
    output:
        "results/epistasis/null.order{order}.tsv",
    log:
        "logs/permute_epistasis/order{order}.log",
    benchmark:
        "benchmarks/permute_epistasis/order{order}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(1000 + 20 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(
            60
            * scan_hours(
                input.plan, int(wildcards.order), PERMUTATIONS[int(wildcards.order)], *SCAN_LIMITS
            ),
            attempt,
        ),
        gpu=GPUS,
    params:
        scan=SCAN,
        permutations=lambda wildcards: PERMUTATIONS[int(wildcards.order)],
        seed=EPISTASIS["seed"],
        device=CONFIG["device"],
        code=code_of("permute_epistasis"),
    message:
        "{params.permutations} permutations of order {wildcards.order}"
    script:
        "../scripts/permute_epistasis.py"


for scanned in ORDERS:

    rule:
        name:
            f"rank_{NAMES[scanned]}"
        input:
            **(
                {"null": f"results/epistasis/null.order{scanned}.tsv"}
                if PERMUTATIONS[scanned]
                else {}
            ),
            planes=REORDERED,
            plan="results/epistasis/plan.json",
            units=expand(f"results/epistasis/units/order{scanned}.{{unit}}.npz", unit=UNITS),
        output:
            f"results/epistasis/{NAMES[scanned]}.tsv",
        log:
            f"logs/rank_{NAMES[scanned]}.log",
        benchmark:
            f"benchmarks/rank_{NAMES[scanned]}.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards, input, attempt: memory(500 + input_mb(input), attempt),
            runtime=lambda wildcards, attempt: minutes(1, attempt),
        params:
            order=scanned,
            score=EPISTASIS["score"],
            top=EPISTASIS["top"],
            code=code_of("rank_epistasis"),
        message:
            "Ranked hits of the epistasis scan"
        script:
            "../scripts/rank_epistasis.py"


rule screen_pairs:
    input:
        planes=REORDERED,
        plan="results/epistasis/plan.json",
        units=expand("results/epistasis/units/order2.{unit}.npz", unit=UNITS),
    output:
        hits="results/epistasis/units/screen.npz",
        table="results/epistasis/screen.tsv",
    log:
        "logs/screen_pairs.log",
    benchmark:
        "benchmarks/screen_pairs.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # The tables of a block of pairs and sites, and the planes.
        mem_mb=lambda wildcards, input, attempt: memory(1500 + 4 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(
            1 + 1e-4 * EPISTASIS["screen"] * input_mb(input), attempt
        ),
        gpu=GPUS,
    params:
        scan=SCAN,
        pairs=EPISTASIS["screen"],
        top=EPISTASIS["top"],
        device=CONFIG["device"],
        code=code_of("screen_pairs"),
    message:
        "Screen of the best {params.pairs} pairs with every third site"
    script:
        "../scripts/screen_pairs.py"


rule refit_hits:
    input:
        planes=REORDERED,
        hits=HITS,
    output:
        "results/epistasis/refit.tsv",
    log:
        "logs/refit_hits.log",
    benchmark:
        "benchmarks/refit_hits.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(800 + input_mb(input), attempt),
        runtime=lambda wildcards, attempt: minutes(1 + 1e-3 * n_samples(*COHORTS), attempt),
    params:
        orders=ORDERS,
        covariates=EPISTASIS["covariates"],
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("refit_hits"),
    message:
        "Logistic regressions of the best hits"
    script:
        "../scripts/refit_hits.py"


rule estimate_power:
    input:
        samples="results/reorder/samples.tsv",
        plan="results/epistasis/plan.json",
        nulls=NULLS,
    output:
        "results/epistasis/power.tsv",
    log:
        "logs/estimate_power.log",
    benchmark:
        "benchmarks/estimate_power.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: memory(800, attempt),
        runtime=lambda wildcards, attempt: minutes(1, attempt),
    params:
        orders=[order for order in ORDERS if PERMUTATIONS[order]],
        models=EPISTASIS["power"],
        score=EPISTASIS["score"],
        seed=EPISTASIS["seed"],
        code=code_of("estimate_power"),
    message:
        "Power of the epistasis scans"
    script:
        "../scripts/estimate_power.py"


if ORDERS:

    rule draw_epistasis:
        input:
            planes=REORDERED,
            hits=HITS,
            nulls=NULLS,
        output:
            svg=reported("draw_epistasis"),
            png=expand("results/figures/{name}.png", name=EPISTASIS_FIGURES),
        log:
            "logs/draw_epistasis.log",
        benchmark:
            "benchmarks/draw_epistasis.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards, input, attempt: memory(
                500 + 20 * input_mb(input.hits), attempt
            ),
            runtime=lambda wildcards, attempt: minutes(1, attempt),
        params:
            orders=ORDERS,
            code=code_of("draw_epistasis"),
        message:
            "Figures of the epistasis scans"
        script:
            "../scripts/draw_epistasis.py"
