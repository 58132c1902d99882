# Distances: one tile a pair of cohorts, then the study's matrices.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/tiles/{a}__{b}.npz                integer counts, a before b
#         results/distance/squared.npy called.npy (ibs0.npy) int64 (n, n), with samples.tsv
#         results/distance/distance.mdist .mdist.id, distance.tsv.gz   for other tools

DISTANCE_MATRICES = ["squared", "called"] + (
    [] if CONFIG["distance"]["metric"] == "euclidean" else ["ibs0"]
)
#: What turns the integer matrices into distances; every rule that does so reruns with it.
DISTANCE_RULE = {name: CONFIG["distance"][name] for name in ("metric", "min_called")}


rule distance:
    input:
        expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES),
        "results/distance/samples.tsv",
        (
            ["results/distance/distance.mdist", "results/distance/distance.tsv.gz"]
            if CONFIG["distance"]["export"]
            else []
        ),


rule measure_distance_tile:
    input:
        a=multiext("results/cohorts/{a}/planes", ".npy", ".json"),
        b=multiext("results/cohorts/{b}/planes", ".npy", ".json"),
    output:
        "results/distance/tiles/{a}__{b}.npz",
    log:
        "logs/measure_distance_tile/{a}__{b}.log",
    benchmark:
        "benchmarks/measure_distance_tile/{a}__{b}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # Three int64 matrices of the pair; the planes are mapped, not read whole.
        mem_mb=lambda wildcards, input, attempt: memory(
            200 + input_mb(input) + 24e-6 * n_samples(wildcards.a) * n_samples(wildcards.b),
            attempt,
        ),
        runtime=lambda wildcards, input, attempt: minutes(
            input_mb(input.a[:1]) * n_samples(wildcards.b) / 1e5, attempt
        ),
        gpu=GPUS,
    params:
        # Tiles differ only by whether they hold ibs0: euclidean needs no more than the squares.
        metric=CONFIG["distance"]["metric"],
        missing=CONFIG["distance"]["missing"],
        device=CONFIG["device"],
        code=code_of("distance"),
    message:
        "Distances {wildcards.a} x {wildcards.b}"
    script:
        "../scripts/measure_distance_tile.py"


rule assemble_distance:
    input:
        ["results/distance/tiles/{}__{}.npz".format(a, b) for a, b in STUDY.pairs()],
    output:
        matrices=expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES),
        samples="results/distance/samples.tsv",
    log:
        "logs/assemble_distance.log",
    benchmark:
        "benchmarks/assemble_distance.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: memory(40e-6 * n_samples(*COHORTS) ** 2, attempt),
        runtime=lambda wildcards, attempt: minutes(1e-8 * n_samples(*COHORTS) ** 2, attempt),
    params:
        **DISTANCE_RULE,
        pairs=STUDY.pairs(),
        cohorts=COHORTS,
        on_uncomparable=CONFIG["distance"]["on_uncomparable"],
        code=code_of("distance"),
    message:
        "Distance matrices from all tiles"
    script:
        "../scripts/assemble_distance.py"


rule export_distance:
    input:
        matrices=rules.assemble_distance.output.matrices,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
    output:
        "results/distance/distance.mdist",
        "results/distance/distance.mdist.id",
        "results/distance/distance.tsv.gz",
    log:
        "logs/export_distance.log",
    benchmark:
        "benchmarks/export_distance.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: memory(24e-6 * n_samples(*COHORTS) ** 2, attempt),
        runtime=lambda wildcards, attempt: minutes(5e-8 * n_samples(*COHORTS) ** 2, attempt),
    params:
        **DISTANCE_RULE,
        code=code_of("distance"),
    message:
        "Distances as text for other tools"
    script:
        "../scripts/export_distance.py"
