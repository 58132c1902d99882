# Distances between samples: rows of tiles, then matrices.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/*

from popdesic.distance.fill_rows import ROWS_TOGETHER, leader_of, together
from popdesic.study.sparse import is_compared, neighbors_kept
from popdesic.distance.tiles import study_matrices
from popdesic.study.disk import MOST_EXPORTED
from popdesic.distance.tiles import tile_outputs

# Functions for rules whose jobs compute rows of tiles, and for those that fill several rows.
#
# needs   COHORTS, CONFIG, STUDY; DISTANCE_ROWS, COMPARE_ROWS; RESOLUTION, MAX_KINSHIP when called
# gives   row_planes(), row_pairs(), row_memory(), row_minutes(), group_planes(), group_leader(),
#         group_pairs(), group_memory(), group_minutes(), COMPARED, PAIR_ROWS, ROW_GROUPS

#: Whether samples are compared, and the stages whose tiles one job computes for a row.
COMPARED = is_compared(CONFIG)
PAIR_ROWS = {"distance": DISTANCE_ROWS} | ({"compare": COMPARE_ROWS} if COMPARED else {})
#: Cohorts whose rows are filled together, by the first one: of a study without a matrix of all pairs,
#: whose planes take longer to read than to compare.
ROW_GROUPS = together(COHORTS) if STUDY.store == "near" else {}


def row_planes(rows):
    """Input of a row: planes of the cohorts of its pairs, their own cohort's last."""

    def planes(wildcards):
        return expand(
            "results/cohorts/{cohort}/planes{end}",
            cohort=[other_of(wildcards.row, pair) for pair in rows.pairs(wildcards.row)],
            end=[".npy", ".json"],
        )

    return planes


def row_pairs(rows):
    """Parameter: the pairs of a row."""

    def pairs(wildcards):
        return rows.pairs(wildcards.row)

    return pairs


def _row_sizes(rows, row):
    """Samples of a row's cohort, and of those it is compared with; megabytes of their planes."""
    others = [other_of(row, pair) for pair in rows.pairs(row)]
    mb = [input_mb([f"results/cohorts/{cohort}/planes.npy"]) for cohort in others]
    return n_samples(row), [n_samples(cohort) for cohort in others], mb


def row_memory(rows, fixed=0, **sizes):
    """`mem_mb` of a row: its largest pair, and the planes that are read for the next pair."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        own, others, mb = _row_sizes(rows, wildcards.row)
        return limit_mb(cost.of(mb[-1] + sum(sorted(mb[:-1])[-2:]), own, max(others)), attempt)

    return mem_mb


def row_minutes(rows, fixed=0, **sizes):
    """`runtime` of a row: the sum over its pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        own, others, mb = _row_sizes(rows, wildcards.row)
        return limit_minutes(cost.of(mb[-1], own, sum(others)), attempt)

    return runtime


def _group(row):
    """Cohorts whose tiles the job of a row computes."""
    return ROW_GROUPS.get(row, [row])


def _group_rows(row):
    """Rows of all stages whose tiles the job of a row computes."""
    return [(rows, one) for rows in PAIR_ROWS.values() for one in _group(row)]


def group_planes(wildcards):
    """Input of a group of rows: planes of the cohorts of all pairs."""
    pairs = [pair for rows, row in _group_rows(wildcards.row) for pair in rows.pairs(row)]
    cohorts = dict.fromkeys(cohort for pair in pairs for cohort in pair)
    return expand("results/cohorts/{cohort}/planes{end}", cohort=cohorts, end=[".npy", ".json"])


def group_leader(wildcards):
    """Input of the rows of a group that another one's job computes: the list of that one."""
    leader = leader_of(wildcards.row, COHORTS) if ROW_GROUPS else wildcards.row
    return [] if leader == wildcards.row else [ancient(ROW_LIST.format(row=leader))]


def group_pairs(wildcards):
    """Parameter: the pairs of each row of a group, by stage."""
    found = {stage: {} for stage in ("distance", "compare")}
    for stage, rows in PAIR_ROWS.items():
        found[stage] = {row: rows.pairs(row) for row in _group(wildcards.row)}
    return found


def group_memory(fixed, **sizes):
    """`mem_mb` of a group: its own planes, those that are compared and those that are read next."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows, row in _group_rows(wildcards.row)]
        own = sum(mb[-1] for _, _, mb in found) / len(PAIR_ROWS)
        most = max(sum(sorted(mb[:-1])[-2:]) for _, _, mb in found)
        n, others = max(n for n, _, _ in found), max(max(others) for _, others, _ in found)
        return limit_mb(cost.of(own + most, n, others), attempt)

    return mem_mb


def group_minutes(fixed=0, **sizes):
    """`runtime` of a group: the sum over its pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows, row in _group_rows(wildcards.row)]
        return limit_minutes(sum(cost.of(mb[-1], n, sum(o)) for n, o, mb in found), attempt)

    return runtime


# Distances: a tile per pair of cohorts, a job per row of tiles, then the study's matrices.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/tiles/{row}/row.json {other}.npz  integer counts of one cohort with others
#         results/distance/squared.npy called.npy, ...      int32, triangles, with samples.tsv
#         results/distance/distance.mdist .mdist.id, distance.tsv.gz   for other tools

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
FEED_MB = CONFIG["distance"]["host_memory_mb"] if GPUS else 0
#: Lists of the tiles of a row.
ROW_LIST = "results/distance/tiles/{row}/row.json"
#: Rows of landmarks that take the place of matrices of all pairs.
ROW_MB = 4e-3  # of a sample: 1 000 landmarks
#: Neighbours of everyone in a study without such matrices.
N_NEIGHBORS = neighbors_kept(CONFIG)
#: What decides a tile of distances besides planes, and megabytes of lists, rows and counts.
TILE_OPTIONS = {name: CONFIG["distance"][name] for name in ("metric", "missing")}
if STUDY.store == "near":
    TILE_OPTIONS |= {"k": N_NEIGHBORS, "min_called": CONFIG["distance"]["min_called"]}
TILE_COST = (
    dict(samples=ROW_MB + 4e-5 * N_NEIGHBORS)
    if STUDY.store == "near"
    else dict(pairs=TILE_BYTES * 1e-6)
)
#: Settings that turn integer matrices into distances; rules that depend on them rerun.
DISTANCE_RULE = {name: CONFIG["distance"][name] for name in ("metric", "min_called")}
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
        host_memory_mb=CONFIG["distance"]["host_memory_mb"],
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
    threads: shared_threads(8, 4)
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


rule export_distance:
    input:
        matrices=rules.join_rows.output.distances,
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
        "../scripts/distance/export_distance.py"
