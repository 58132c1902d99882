# Distances: a tile per pair of cohorts, a job per row of tiles (`measure_row`, relatives.smk), then
# the study's matrices or lists of nearest samples.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/tiles/{row}/row.json {other}.npz  integer counts of one cohort with others,
#                                           or nearest samples of both in each other
#         results/distance/squared.npy called.npy, ...       int32, triangles, with samples.tsv
#         results/distance/neighbors.npz landmarks.npy       without a matrix of all pairs
#         results/distance/distance.mdist .mdist.id, distance.tsv.gz   for other tools
#         COMPARED, PAIR_ROWS, ROW_GROUPS

from popdesic.cohort.genotype_choice import missing_rule
from popdesic.core.limits import MOST_EXPORTED
from popdesic.study.disk import writes_text
from popdesic.distance.fill_rows import leader_of, together
from popdesic.study.sparse import is_compared, neighbors_kept
from popdesic.distance.tiles import study_matrices
from popdesic.distance.tiles import tile_outputs

#: Whether samples are compared, and the stages whose tiles one job computes for a row.
COMPARED = is_compared(CONFIG)
PAIR_ROWS = {"distance": DISTANCE_ROWS} | ({"compare": COMPARE_ROWS} if COMPARED else {})
#: Cohorts whose rows are filled together, by the first one: of a study without a matrix of all pairs,
#: whose planes take longer to read than to compare.
ROW_GROUPS = together(COHORTS) if STUDY.store == "near" else {}


DISTANCE_MATRICES = list(study_matrices(CONFIG["distance"]["metric"]))
#: What holds the distances of the study.
DISTANCE_FILES = (
    ["results/distance/neighbors.npz", "results/distance/landmarks.npy"]
    if STUDY.sparse
    else expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES)
)
#: Bytes per pair of samples in a tile: its matrices and one temporary.
TILE_BYTES = 8 * (len(tile_outputs(CONFIG["distance"]["metric"])) + 1)
#: Pinned host memory for transfers to the GPU.
#: Memory of the host from which a GPU is fed.
HOST_MB = 1024
FEED_MB = HOST_MB if GPUS else 0
#: Lists of the tiles of a row.
ROW_LIST = "results/distance/tiles/{row}/row.json"
#: Rows of landmarks that take the place of matrices of all pairs.
ROW_MB = 4e-3  # of a sample: 1 000 landmarks
#: Neighbours of everyone in a study without such matrices.
N_NEIGHBORS = neighbors_kept(CONFIG)
#: What decides a tile of distances besides planes, and megabytes of lists, rows and counts.
TILE_OPTIONS = {"metric": CONFIG["distance"]["metric"], "missing": missing_rule(CONFIG)}
if STUDY.store == "near":
    TILE_OPTIONS |= {"k": N_NEIGHBORS, "min_called": CONFIG["distance"]["min_called"]}
TILE_COST = (
    dict(samples=ROW_MB + 4e-5 * N_NEIGHBORS)
    if STUDY.store == "near"
    else dict(pairs=TILE_BYTES * 1e-6)
)
#: Settings that turn integer matrices into distances; rules that depend on them rerun.
DISTANCE_RULE = {name: CONFIG["distance"][name] for name in ("metric", "min_called")}
EXPORT = not STUDY.sparse and writes_text(CONFIG, n_samples(*COHORTS))
if not EXPORT and workflow.is_main_process:
    logger.info(
        f"Distances are not written as text: {n_samples(*COHORTS)} samples are more than "
        f"{MOST_EXPORTED} (mdist in export.formats writes them)."
    )


#: Exports of distances for other programs, as `export.formats` lists them.
DISTANCE_EXPORTS = {
    "mibs": ["results/export/distance.mibs", "results/export/distance.mibs.id"],
    "phylip": ["results/export/distance.phylip"],
    "newick": ["results/export/distance.nwk"],
}
OF_DISTANCES = [name for name in DISTANCE_EXPORTS if name in CONFIG["export"]["formats"]]


TARGETS["distance"] = [
    DISTANCE_FILES,
    "results/distance/samples.tsv",
    (["results/distance/distance.mdist", "results/distance/distance.tsv.gz"] if EXPORT else []),
]


# Reached only by a study without a matrix of all pairs.
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
        host_memory_mb=HOST_MB,
    params:
        **TILE_OPTIONS,
        founders=STUDY.founders,
        device=CONFIG["device"],
        code=code_of("span_founders", always=True),
    message:
        "Minimum spanning tree of the founders"
    script:
        "../scripts/distance/span_founders.py"


rule join_rows:
    input:
        rows=expand(ROW_LIST, row=COHORTS),
        tree=rules.span_founders.output if STUDY.store == "near" else [],
    output:
        distances=DISTANCE_FILES,
        samples="results/distance/samples.tsv",
    log:
        "logs/join_rows.log",
    benchmark:
        "benchmarks/join_rows.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: SOME
    resources:
        mem_mb=memory(
            400,
            pairs=PAIR * (16 + 8 * len(DISTANCE_MATRICES)) * 1e-6,
            samples=(1 - PAIR) * (ROW_MB + 4e-5 * N_NEIGHBORS),
        ),
        # Lists of 50 are read at 2 GB/s, and two million a second merged, one per cohort and sample.
        runtime=minutes(
            0.5, pairs=PAIR * 1e-8, samples=(1 - PAIR) * 2e-8 * N_NEIGHBORS / 50 * len(COHORTS)
        ),
    params:
        store=STUDY.store,
        distance=dict(
            **DISTANCE_RULE, k=N_NEIGHBORS, on_uncomparable=CONFIG["distance"]["on_uncomparable"]
        ),
        cohorts=COHORTS,
        founders=STUDY.founders,
        code=code_of("join_rows"),
    message:
        "Join the distances of all rows"
    script:
        "../scripts/distance/join_rows.py"


if EXPORT or OF_DISTANCES:

    rule export_distance:
        input:
            matrices=rules.join_rows.output.distances,
            samples="results/distance/samples.tsv",
            panel="results/panel/counts.json",
        output:
            text=(
                multiext("results/distance/distance", ".mdist", ".mdist.id", ".tsv.gz")
                if EXPORT
                else []
            ),
            exports=[path for name in OF_DISTANCES for path in DISTANCE_EXPORTS[name]],
        log:
            "logs/export_distance.log",
        benchmark:
            "benchmarks/export_distance.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: SOME
        resources:
            mem_mb=memory(pairs=40e-6),
            # Neighbour joining takes n**3 / 3 steps, at 0.3e9 per second.
            runtime=minutes(pairs=5e-8, triples=2e-11 if OF_DISTANCES else 0),
        params:
            **DISTANCE_RULE,
            formats=OF_DISTANCES,
            code=code_of("export_distance"),
        message:
            "Export distances: text and {params.formats}"
        script:
            "../scripts/distance/export_distance.py"
