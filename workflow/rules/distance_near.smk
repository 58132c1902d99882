# Nearest samples of everyone without a matrix of all pairs: a job per row of tiles, then one list.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/tiles/{row}/row.json {other}.npz   nearest samples of two cohorts in each
#                                           other, distances of landmarks
#         results/distance/founder_tree.npz the founders' minimum spanning tree
#         results/distance/neighbors.npz    nearest samples of everyone, with samples.tsv
#         results/distance/landmarks.npy    distances of landmarks to everyone, float32 (L, n)

from popdesic.study.sparse import neighbors_kept

#: Rows of landmarks that take the place of matrices of all pairs.
ROW_MB = 4e-3  # of a sample: 1 000 landmarks
#: Neighbours of everyone.
N_NEIGHBORS = neighbors_kept(CONFIG)
#: What decides the distances between samples, besides planes.
NEAREST = dict(
    k=N_NEIGHBORS,
    metric=CONFIG["distance"]["metric"],
    missing=CONFIG["distance"]["missing"],
    min_called=CONFIG["distance"]["min_called"],
)


# The same files as of a study with matrices, made in another way.
ruleorder: find_neighbor_row > measure_distance_row
ruleorder: join_neighbors > assemble_distance


rule find_neighbor_row:
    input:
        planes=row_planes(DISTANCE_ROWS),
        # Landmarks are evenly spaced among all founders.
        founders=expand("results/cohorts/{cohort}/planes.json", cohort=STUDY.founders),
        # The tiles are there already.
        filled=ancient(TILES_MADE) if FILLS else [],
    output:
        ROW_LIST,
    log:
        "logs/find_neighbor_row/{row}.log",
    benchmark:
        "benchmarks/find_neighbor_row/{row}.tsv"
    priority: SECOND
    conda:
        GPU_CONDA
    threads: row_threads(DISTANCE_ROWS, beside=1)
    resources:
        # Lists of two cohorts, counts of a block, rows of landmarks; planes are memory-mapped.
        mem_mb=row_memory(DISTANCE_ROWS, 700 + FEED_MB, mb=0.4, samples=ROW_MB + 4e-5 * N_NEIGHBORS),
        runtime=row_minutes(DISTANCE_ROWS, mb_samples=1e-5),
        gpu=GPUS,
        host_memory_mb=CONFIG["distance"]["host_memory_mb"],
    params:
        **NEAREST,
        pairs=row_pairs(DISTANCE_ROWS),
        founders=STUDY.founders,
        device=CONFIG["device"],
        code=code_of("find_neighbor_row", always=True),
    message:
        "Nearest samples of {wildcards.row} and the cohorts of its row in each other"
    script:
        "../scripts/distance/find_neighbor_row.py"


rule span_founders:
    input:
        rows=expand(ROW_LIST, row=STUDY.founders),
        planes=[
            f"results/cohorts/{cohort}/planes{end}"
            for cohort in STUDY.founders
            for end in (".npy", ".json")
        ],
    output:
        "results/distance/founder_tree.npz",
    log:
        "logs/span_founders.log",
    benchmark:
        "benchmarks/span_founders.tsv"
    priority: SECOND
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # Lists of the founders, and planes that are gathered (`outside_parts.KEPT_BYTES`).
        mem_mb=memory(3_500 + FEED_MB, samples=6e-5 * N_NEIGHBORS, mb=0.2),
        runtime=minutes(1, samples=5e-6),
        gpu=GPUS,
        host_memory_mb=CONFIG["distance"]["host_memory_mb"],
    params:
        **NEAREST,
        founders=STUDY.founders,
        device=CONFIG["device"],
        code=code_of("span_founders", always=True),
    message:
        "Minimum spanning tree of the founders"
    script:
        "../scripts/distance/span_founders.py"


rule join_neighbors:
    input:
        rows=expand(ROW_LIST, row=COHORTS),
        tree="results/distance/founder_tree.npz",
    output:
        neighbors="results/distance/neighbors.npz",
        landmarks="results/distance/landmarks.npy",
        samples="results/distance/samples.tsv",
    log:
        "logs/join_neighbors.log",
    benchmark:
        "benchmarks/join_neighbors.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: 2
    resources:
        # Lists, and rows of landmarks.
        mem_mb=memory(400, samples=ROW_MB + 4e-5 * N_NEIGHBORS),
        # Lists of 50 are read at 2 GB/s, and two million a second merged, one per cohort and sample.
        runtime=minutes(0.5, samples=2e-8 * N_NEIGHBORS / 50 * len(COHORTS)),
    params:
        k=N_NEIGHBORS,
        min_called=CONFIG["distance"]["min_called"],
        on_uncomparable=CONFIG["distance"]["on_uncomparable"],
        cohorts=COHORTS,
        founders=STUDY.founders,
        code=code_of("join_neighbors"),
    message:
        "Nearest samples of everyone"
    script:
        "../scripts/distance/join_neighbors.py"
