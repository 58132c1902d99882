# Studies without a matrix of all pairs: what is made of nearest neighbours and landmarks.
#
# needs   results/distance/neighbors.npz landmarks.npy, results/embedding/pca.npy,
#         results/compare/tiles/{row}/row.json if relatives must not act as bridges
# gives   results/embedding/neighbors.npz landmarks.npy   the same on principal components
#         results/geodesic/{space}/neighbors.alpha{alpha}.npz landmarks.alpha{alpha}.npy
#         results/geodesic/{space}/alpha{alpha}.json alpha{alpha}.run.json
#         results/embedding/coordinates/pcoa.{space}.alpha{alpha}.tsv, umap.*.tsv
#         results/embedding/pcoa.{space}.alpha{alpha}.json


# The same files as of a study with matrices, made in another way.
ruleorder: find_paths > close_paths
ruleorder: place_by_landmarks > compute_pcoa
ruleorder: draw_near_umap > compute_umap


rule find_component_neighbors:
    input:
        scores="results/embedding/pca.npy",
        choice=PCS_CHOICE,
        samples="results/distance/samples.tsv",
    output:
        neighbors="results/embedding/neighbors.npz",
        landmarks="results/embedding/landmarks.npy",
    log:
        "logs/find_component_neighbors.log",
    benchmark:
        "benchmarks/find_component_neighbors.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        mem_mb=memory(600, samples=2 * ROW_MB + 0.02 * N_NEIGHBORS / 50),
        # 1e9 pairs a second on eight cores.
        runtime=minutes(0.2, pairs=2e-11),
        gpu=GPUS,
    params:
        founders=STUDY.founders,
        k=N_NEIGHBORS,
        pcs=CONFIG["geodesic"]["pcs"],
        device=CONFIG["device"],
        code=code_of("find_component_neighbors"),
    message:
        "Nearest samples of everyone on principal components"
    script:
        "../scripts/geodesic/find_component_neighbors.py"


rule find_paths:
    input:
        source=distance_source,
        choice=alpha_choice,
        samples="results/distance/samples.tsv",
        kinship=BRIDGE_ROWS,
    output:
        neighbors="results/geodesic/{space}/neighbors.alpha{alpha}.npz",
        landmarks="results/geodesic/{space}/landmarks.alpha{alpha}.npy",
        statistics="results/geodesic/{space}/alpha{alpha}.json",
        record="results/geodesic/{space}/alpha{alpha}.run.json",
    log:
        "logs/find_paths/{space}.alpha{alpha}.log",
    benchmark:
        "benchmarks/find_paths/{space}.alpha{alpha}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: spare_threads(8)
    resources:
        # Edges from both ends, lists, and three arrays of rows of landmarks.
        mem_mb=memory(600, samples=3 * ROW_MB + 0.1 * N_NEIGHBORS / 50),
        # On eight threads 200 000 samples took 29 to 36 s.
        runtime=minutes(0.5, samples=1e-5),
    params:
        founders=STUDY.founders,
        number=CONFIG["geodesic"]["number"],
        graph=GEODESIC_GRAPH,
        code=code_of("find_paths"),
    message:
        "Geodesics among nearest neighbours in space {wildcards.space}, alpha = {wildcards.alpha}"
    script:
        "../scripts/geodesic/find_paths.py"


rule place_by_landmarks:
    input:
        lengths=expand("results/geodesic/{{space}}/landmarks.alpha{alpha}.npy", alpha=ALPHAS),
        lists=expand("results/geodesic/{{space}}/neighbors.alpha{alpha}.npz", alpha=ALPHAS),
        samples="results/distance/samples.tsv",
    output:
        tables=map_tables("pcoa"),
        statistics=expand("results/embedding/pcoa.{{space}}.alpha{alpha}.json", alpha=ALPHAS),
    log:
        "logs/place_by_landmarks/{space}.log",
    benchmark:
        "benchmarks/place_by_landmarks/{space}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: spare_threads(8)
    resources:
        mem_mb=memory(500, samples=0.01),
        runtime=minutes(1, samples=1e-6 * len(ALPHAS)),
    params:
        components=PCOA_COMPONENTS,
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("place_by_landmarks"),
    message:
        "PCoA of the geodesics in space {wildcards.space}, by landmarks"
    script:
        "../scripts/geodesic/place_by_landmarks.py"


rule draw_near_umap:
    input:
        lists=expand(LISTS, space=SPACES, alpha=ALPHAS),
        plain=[source_of(space)[0] for space in SPACES],
        scores="results/embedding/pca.npy",
        samples="results/distance/samples.tsv",
    output:
        instability=expand(ENSEMBLE_TABLES, space=SPACES),
        tables=of_spaces(map_tables("umap")),
        plain=expand("results/embedding/coordinates/umap.distance.{space}.tsv", space=SPACES),
    log:
        "logs/draw_near_umap.log",
    benchmark:
        "benchmarks/draw_near_umap.tsv"
    conda:
        GPU_CONDA
    threads: spare_threads(8)
    resources:
        mem_mb=memory(300, samples=0.1),
        # 0.2 ms of CPU a sample and map; on a GPU a map of a million takes 1.3 s.
        runtime=minutes(1, samples=1e-6 * N_UMAPS),
        gpu=GPUS if MAPS_DEVICE != "cpu" else 0,
    params:
        spaces=SPACES,
        alphas=ALPHAS,
        umap=UMAP_OPTIONS,
        device=MAPS_DEVICE,
        n_samples=n_samples(*COHORTS),
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("draw_near_umap"),
    message:
        "UMAP of nearest neighbours"
    script:
        "../scripts/geodesic/draw_near_umap.py"
