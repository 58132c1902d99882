# Exhaustive scans of pairs and triples (only where epistasis.order asks for them).
#
# needs   results/reorder/onehot.npy sites.tsv samples.tsv
# gives   results/epistasis/plan.json                    tests and scans, before any is run
#         results/epistasis/units/order{order}.{unit}.npz    best hits of a unit of work
#         results/epistasis/null.order{order}.tsv        best cost of each permuted scan
#         results/epistasis/pairs.tsv triples.tsv        ranked hits

from popdesic.epistasis import NAMES

PERMUTATIONS = {2: EPISTASIS["permutations"], 3: EPISTASIS["permutations_triples"]}
SCAN = {name: EPISTASIS[name] for name in ("score", "min_distance_bp", "max_r2")}
UNITS = range(EPISTASIS["units"])


wildcard_constraints:
    order="[23]",
    unit="[0-9]+",


rule epistasis:
    input:
        [f"results/epistasis/{NAMES[order]}.tsv" for order in ORDERS],


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
        mem_mb=lambda wildcards, input, attempt: memory(500 + 2 * input_mb(input), attempt),
        runtime=lambda wildcards, attempt: minutes(2, attempt),
        gpu=GPUS,
    params:
        orders=ORDERS,
        score=EPISTASIS["score"],
        permutations=PERMUTATIONS,
        max_device_hours=EPISTASIS["max_device_hours"],
        device=CONFIG["device"],
        code=code_of("epistasis"),
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
        runtime=lambda wildcards, attempt: minutes(
            60 * EPISTASIS["max_device_hours"] / len(UNITS), attempt
        ),
        gpu=GPUS,
    params:
        scan=SCAN,
        top=EPISTASIS["top"],
        n_units=len(UNITS),
        device=CONFIG["device"],
        code=code_of("epistasis"),
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
        runtime=lambda wildcards, attempt: minutes(60 * EPISTASIS["max_device_hours"], attempt),
        gpu=GPUS,
    params:
        scan=SCAN,
        permutations=lambda wildcards: PERMUTATIONS[int(wildcards.order)],
        seed=EPISTASIS["seed"],
        device=CONFIG["device"],
        code=code_of("significance"),
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
            code=code_of("significance"),
        message:
            "Ranked hits of the epistasis scan"
        script:
            "../scripts/rank_epistasis.py"
