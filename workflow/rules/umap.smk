# UMAPs of each geodesic, and of the plain distances of each space.
#
# needs   results/geodesic/{space}/alpha{alpha}.npy, results/distance/*,
#         results/embedding/pca.npy; numbers and device of maps (maps.smk)
# gives   results/embedding/coordinates/umap.{space}.alpha{alpha}.tsv
#         results/embedding/coordinates/umap.distance.{space}.tsv  UMAP of the plain distances
#         results/embedding/ensemble/{space}.tsv       with embedding.ensemble
#         results/embedding/coordinates/umap_refit.*               with embedding.stable

#: Parameters of the job that draws UMAPs of geodesics.
UMAP_PARAMS = dict(
    alphas=ALPHAS,
    umap=UMAP_OPTIONS,
    device=MAPS_DEVICE,
    n_samples=n_samples(*COHORTS),
    pcs=CONFIG["geodesic"]["pcs"],
    founders=STUDY.founders,
    sheet=CONFIG["samples"],
    rows=MAP_ROWS,
)


if ONE_MAP_JOB:

    # One job for all spaces: its maps share the start of the interpreter and its threads.
    rule compute_umap:
        input:
            lengths=expand("results/geodesic/{space}/alpha{alpha}.npy", space=SPACES, alpha=ALPHAS),
            source=distance_sources,
            shared=[IBD_GRAPH] if "ibd" in SPACES else [],
            scores="results/embedding/pca.npy",
            panel="results/panel/counts.json",
            samples="results/distance/samples.tsv",
            frame=of_spaces(FRAME),
        output:
            instability=expand(ENSEMBLE_TABLES, space=SPACES),
            refits=of_spaces(refit_tables("umap_refit")),
            tables=of_spaces(map_tables("umap")),
            plain=expand("results/embedding/coordinates/umap.distance.{space}.tsv", space=SPACES),
        log:
            "logs/compute_umap.log",
        benchmark:
            "benchmarks/compute_umap.tsv"
        priority: SECOND
        conda:
            GPU_CONDA
        threads: spare_threads(8)
        resources:
            # Matrices are memory-mapped and read in blocks of rows.
            mem_mb=memory(300, samples=0.1),
            runtime=minutes(1, samples=2e-5 * N_UMAPS, pairs=1e-9 * N_UMAPS),
            gpu=GPUS if MAPS_DEVICE != "cpu" else 0,
        params:
            **UMAP_PARAMS,
            spaces=SPACES,
            distance=DISTANCE_RULE,
            code=code_of("compute_umap"),
        message:
            "UMAP of the geodesics"
        script:
            "../scripts/compute_umap.py"

else:

    # The first map waits for the axes alone, not for closures.
    rule draw_plain_umap:
        input:
            source=distance_source,
            scores="results/embedding/pca.npy",
            panel="results/panel/counts.json",
            samples="results/distance/samples.tsv",
        output:
            "results/embedding/coordinates/umap.distance.{space}.tsv",
        log:
            "logs/draw_plain_umap/{space}.log",
        benchmark:
            "benchmarks/draw_plain_umap/{space}.tsv"
        priority: FIRST + 1  # short, and the first map
        conda:
            "../../envs/popdesic.yaml"
        threads: shared_threads(8, 8)  # beside choose_geodesics and split_samples
        resources:
            mem_mb=memory(300, samples=0.1),
            runtime=minutes(1, samples=2e-5, pairs=1e-9),
        params:
            umap=UMAP_OPTIONS | {"ensemble": 0},
            pcs=CONFIG["geodesic"]["pcs"],
            distance=DISTANCE_RULE,
            sheet=CONFIG["samples"],
            rows=MAP_ROWS,
            code=code_of("draw_plain_umap"),
        message:
            "UMAP of the distances in space {wildcards.space}"
        script:
            "../scripts/draw_plain_umap.py"

    rule compute_umap:
        input:
            lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
            scores="results/embedding/pca.npy",
            samples="results/distance/samples.tsv",
            frame=FRAME,
        output:
            instability=ENSEMBLE_TABLES,
            refits=refit_tables("umap_refit"),
            tables=map_tables("umap"),
        log:
            "logs/compute_umap/{space}.log",
        benchmark:
            "benchmarks/compute_umap/{space}.tsv"
        priority: SECOND
        conda:
            GPU_CONDA
        threads: shared_threads(4, 4) if MAPS_DEVICE == "gpu" else spare_threads(8)
        resources:
            mem_mb=memory(300, samples=0.1),
            runtime=minutes(1, samples=2e-5 * N_UMAPS, pairs=1e-9 * N_UMAPS),
            gpu=GPUS if MAPS_DEVICE != "cpu" else 0,
        params:
            **UMAP_PARAMS,
            spaces=lambda wildcards: [wildcards.space],
            code=code_of("compute_umap"),
        message:
            "UMAP of the geodesics in space {wildcards.space}"
        script:
            "../scripts/compute_umap.py"
