# Distances between samples: rows of tiles, then matrices.
#
# needs   results/cohorts/{cohort}/planes.npy .json
# gives   results/distance/*

from popdesic.distance.fill_rows import ROWS_TOGETHER, leader_of, together
from popdesic.study.sparse import is_compared
from popdesic.study.disk import MOST_EXPORTED
from popdesic.distance.tiles import study_matrices
from popdesic.study.disk import MOST_EXPORTED
from popdesic.distance.tiles import tile_outputs

# Functions for rules whose jobs compute rows of tiles, and for those that fill several rows.
#
# needs   COHORTS, CONFIG, STUDY; DISTANCE_ROWS, COMPARE_ROWS; RESOLUTION, MAX_KINSHIP when called
# gives   row_planes(), compared_first(), row_pairs(), row_memory(), row_minutes(), group_planes(),
#         group_leader(), group_pairs(), group_memory(), group_minutes(), TILES_MADE, ROW_GROUPS,
#         FILLED_ROWS, FILLS

#: Mark of a row whose tiles of both stages are there (`fill_rows`), and cohorts that fill together,
#: by the first one: of a study without a matrix of all pairs.
TILES_MADE = "results/distance/tiles/{row}/filled.json"
ROW_GROUPS, FILLED_ROWS = together(COHORTS), (DISTANCE_ROWS, COMPARE_ROWS)
#: Whether the tiles of this study are filled.
FILLS = STUDY.sparse and is_compared(CONFIG)


def row_planes(rows):
    """Input of a row: planes of the cohorts of its pairs, their own cohort's last."""

    def planes(wildcards):
        return expand(
            "results/cohorts/{cohort}/planes{end}",
            cohort=[other_of(wildcards.row, pair) for pair in rows.pairs(wildcards.row)],
            end=[".npy", ".json"],
        )

    return planes


def compared_first(wildcards):
    """Input of rows of distances on a GPU: what comparisons wait for, so that these come first.

    Relatives decide who defines the axes, for which most of a run waits; distances are needed later.
    """
    return [ancient(RESOLUTION)] if CONFIG["device"] == "gpu" and MAX_KINSHIP else []


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
    """Cohorts whose tiles a job of `fill_rows` computes."""
    return ROW_GROUPS.get(row, [row])


def group_planes(wildcards):
    """Input of a group of rows: planes of the cohorts of all pairs."""
    groups = [rows.pairs(row) for rows in FILLED_ROWS for row in _group(wildcards.row)]
    cohorts = dict.fromkeys(cohort for pairs in groups for pair in pairs for cohort in pair)
    return expand("results/cohorts/{cohort}/planes{end}", cohort=cohorts, end=[".npy", ".json"])


def group_leader(wildcards):
    """Input of the rows of a group that another one's job computes: its mark."""
    leader = leader_of(wildcards.row, COHORTS)
    return [] if leader == wildcards.row else [ancient(TILES_MADE.format(row=leader))]


def group_pairs(rows):
    """Parameter: the pairs of each row of a group."""

    def pairs(wildcards):
        return {row: rows.pairs(row) for row in _group(wildcards.row)}

    return pairs


def group_memory(fixed, **sizes):
    """`mem_mb` of a group: its own planes, those that are compared and those that are read next."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows in FILLED_ROWS for row in _group(wildcards.row)]
        own = sum(mb[-1] for _, _, mb in found) / len(FILLED_ROWS)
        most = max(sum(sorted(mb[:-1])[-2:]) for _, _, mb in found)
        n, others = max(n for n, _, _ in found), max(max(others) for _, others, _ in found)
        return limit_mb(cost.of(own + most, n, others), attempt)

    return mem_mb


def group_minutes(fixed=0, **sizes):
    """`runtime` of a group: the sum over its pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows in FILLED_ROWS for row in _group(wildcards.row)]
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
        "../scripts/distance/measure_distance_row.py"


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
            "../scripts/distance/sum_distance_parts.py"


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
        "../scripts/distance/assemble_distance.py"


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
        "../scripts/distance/export_distance.py"
