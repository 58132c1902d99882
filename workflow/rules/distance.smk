# Distances: a tile per pair of cohorts, a job per row of tiles, then the study's matrices.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/tiles/{row}/row.json {other}.npz  integer counts of one cohort with others
#         results/distance/squared.npy called.npy, ...      int64 (n, n), with samples.tsv
#         results/distance/distance.mdist .mdist.id, distance.tsv.gz   for other tools

from popdesic.distance.tiles import study_matrices
from popdesic.distance.tiles import tile_outputs

DISTANCE_MATRICES = list(study_matrices(CONFIG["distance"]["metric"]))
#: What holds the distances of the study.
DISTANCE_FILES = (
    ["results/distance/neighbors.npz", "results/distance/landmarks.npy"]
    if STUDY.sparse
    else expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES)
)
#: Number of jobs that split the sites of one row; partial results are numbered.
SITE_PARTS = CONFIG["distance"]["site_parts"]
#: Bytes per pair of samples in a tile: its matrices and one temporary.
TILE_BYTES = 8 * (len(tile_outputs(CONFIG["distance"]["metric"])) + 1)
#: Pinned host memory for transfers to the GPU.
FEED_MB = CONFIG["distance"]["host_memory_mb"] if GPUS else 0
PART = ".part{part}" if SITE_PARTS > 1 else ""
#: Lists of the tiles of a row, and of those of one of its parts.
ROW_LIST = "results/distance/tiles/{row}/row.json"
PART_LIST = "results/distance/parts/{part}/{row}/row.json"
#: What decides the bytes of a row's tiles, besides the planes.
ROW_OPTIONS = dict(
    pairs=row_pairs(DISTANCE_ROWS),
    metric=CONFIG["distance"]["metric"],
    missing=CONFIG["distance"]["missing"],
    code=code_of("measure_distance_row", always=True),
)
#: Settings that turn integer matrices into distances; rules that depend on them rerun.
DISTANCE_RULE = {name: CONFIG["distance"][name] for name in ("metric", "min_called")}
#: Samples up to which `distance.export: auto` writes distances as text: 25 million numbers.
MOST_EXPORTED = 5_000
EXPORT = CONFIG["distance"]["export"]
if EXPORT == "auto":
    EXPORT = n_samples(*COHORTS) <= MOST_EXPORTED
    if not EXPORT and workflow.is_main_process:
        logger.info(
            f"Distances are not written as text: {n_samples(*COHORTS)} samples are more than "
            f"{MOST_EXPORTED} (distance.export: true writes them)."
        )


rule distance:
    input:
        DISTANCE_FILES,
        "results/distance/samples.tsv",
        (["results/distance/distance.mdist", "results/distance/distance.tsv.gz"] if EXPORT else []),


wildcard_constraints:
    part="[0-9]+",


rule measure_distance_row:
    input:
        planes=row_planes(DISTANCE_ROWS),
        order=compared_first,
    output:
        temp(PART_LIST) if SITE_PARTS > 1 else ROW_LIST,
    log:
        f"logs/measure_distance_row/{{row}}{PART}.log",
    benchmark:
        f"benchmarks/measure_distance_row/{{row}}{PART}.tsv"
    priority: SECOND
    conda:
        GPU_CONDA
    threads: row_threads(DISTANCE_ROWS, TILE_BYTES, beside=1)
    resources:
        # The int64 matrices of the largest pair; the planes are memory-mapped.
        mem_mb=row_memory(DISTANCE_ROWS, 200 + FEED_MB, mb=1 / SITE_PARTS, pairs=TILE_BYTES * 1e-6),
        runtime=row_minutes(DISTANCE_ROWS, mb_samples=1e-5 / SITE_PARTS),
        gpu=GPUS,
        # A resource, not a parameter: it changes no result and must not trigger reruns.
        host_memory_mb=CONFIG["distance"]["host_memory_mb"],
    params:
        **ROW_OPTIONS,
        part=lambda wildcards: int(wildcards.get("part", 0)),
        parts=SITE_PARTS,
        device=CONFIG["device"],
    message:
        "Distances of {wildcards.row} with the cohorts of its row"
    script:
        "../scripts/measure_distance_row.py"


if SITE_PARTS > 1:

    rule sum_distance_parts:
        input:
            parts=[PART_LIST.replace("{part}", str(part)) for part in range(SITE_PARTS)],
            planes=row_planes(DISTANCE_ROWS),
        output:
            ROW_LIST,
        log:
            "logs/sum_distance_parts/{row}.log",
        benchmark:
            "benchmarks/sum_distance_parts/{row}.tsv"
        priority: SECOND
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=row_memory(DISTANCE_ROWS, 200, pairs=2 * TILE_BYTES * 1e-6),
            runtime=row_minutes(DISTANCE_ROWS, pairs=1e-9 * SITE_PARTS),
        params:
            **ROW_OPTIONS,
            sum_code=code_of("sum_distance_parts"),
        message:
            "Sum partial distances of {wildcards.row}"
        script:
            "../scripts/sum_distance_parts.py"


rule assemble_distance:
    input:
        expand(ROW_LIST, row=COHORTS),
    output:
        matrices=expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES),
        samples="results/distance/samples.tsv",
    log:
        "logs/assemble_distance.log",
    benchmark:
        "benchmarks/assemble_distance.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: shared_threads(8, 4)  # beside comparisons
    resources:
        mem_mb=memory(pairs=(16 + 8 * len(DISTANCE_MATRICES)) * 1e-6),
        runtime=minutes(pairs=1e-8),
    params:
        **DISTANCE_RULE,
        cohorts=COHORTS,
        on_uncomparable=CONFIG["distance"]["on_uncomparable"],
        code=code_of("assemble_distance"),
    message:
        "Assemble distance matrices from all tiles"
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
    threads: aside_threads(4)  # before define_axes
    resources:
        mem_mb=memory(pairs=24e-6),
        runtime=minutes(pairs=5e-8),
    params:
        **DISTANCE_RULE,
        code=code_of("export_distance"),
    message:
        "Export distances as text"
    script:
        "../scripts/export_distance.py"
