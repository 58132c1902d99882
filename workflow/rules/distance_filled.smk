# Tiles of neighbours and of comparisons, while planes are at hand: of a study without a matrix of
# all pairs, whose planes take longer to read than to compare.
#
# needs   results/cohorts/{cohort}/planes.npy .json, results/panel/sites.tsv,
#         results/compare/kinship.json
# gives   results/distance/tiles/{row}/filled.json   the tiles of a row are there; its jobs
#         (find_neighbor_row, compare_cohorts) find them and list them


rule fill_rows:
    input:
        planes=group_planes,
        founders=expand("results/cohorts/{cohort}/planes.json", cohort=STUDY.founders),
        panel="results/panel/sites.tsv",
        resolution=RESOLUTION,
        leader=group_leader,
    output:
        TILES_MADE,
    log:
        "logs/fill_rows/{row}.log",
    benchmark:
        "benchmarks/fill_rows/{row}.tsv"
    priority: FIRST
    conda:
        GPU_CONDA
    # Jobs of groups that are not made yet run side by side.
    threads: shared_threads(-(-len(DISTANCE_ROWS.unmade() or COHORTS) // ROWS_TOGETHER), 8)
    resources:
        mem_mb=group_memory(700 + FEED_MB, mb=1, samples=ROW_MB + 4e-5 * N_NEIGHBORS),
        runtime=group_minutes(mb_samples=2e-5),
        gpu=GPUS,
        host_memory_mb=CONFIG["distance"]["host_memory_mb"],
    params:
        **NEAREST,
        limits=COMPARE_LIMITS,
        near=group_pairs(DISTANCE_ROWS),
        compared=group_pairs(COMPARE_ROWS),
        founders=STUDY.founders,
        device=CONFIG["device"],
        code=code_of("fill_rows"),
        code_near=code_of("find_neighbor_row", always=True),
        code_compared=code_of("compare_cohorts", always=True),
    message:
        "Nearest samples and comparisons of {wildcards.row} and of the cohorts that fill with it"
    script:
        "../scripts/distance/fill_rows.py"
