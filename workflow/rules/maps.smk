# Maps of each geodesic: PCoA, and optionally densMAP and t-SNE; numbers of UMAPs (umap.smk).
#
# needs   results/geodesic/{space}/alpha{alpha}.npy .json, results/distance/*,
#         results/embedding/pca.npy
# gives   results/embedding/coordinates/pcoa.{space}.alpha{alpha}.tsv
#         results/embedding/pcoa.{space}.alpha{alpha}.json
#         results/embedding/coordinates/densmap.*, tsne.*  with embedding.further_maps
#         results/geodesic/{space}/founders.alpha{alpha}.npy, embedding/coordinates/pcoa_refit.*
#                                         with embedding.stable: maps are then defined by the
#                                         founders, and later samples are projected

from popdesic.components.axes import MANY_POINTS

#: Geodesic lengths to the founders in one space.
FRAME = (
    expand("results/geodesic/{{space}}/founders.alpha{alpha}.npy", alpha=ALPHAS) if STABLE else []
)
COMPONENTS = CONFIG["embedding"]["components"]
PCOA_COMPONENTS = 10 if COMPONENTS == "auto" else COMPONENTS
#: UMAPs: in each space of plain distances, and of geodesics for each alpha.
N_UMAPS = len(SPACES) * (1 + len(ALPHAS) * (1 + ENSEMBLE + STABLE))
UMAP_OPTIONS = dict(
    neighbors=CONFIG["embedding"]["umap_neighbors"],
    min_dist=CONFIG["embedding"]["umap_min_dist"],
    seed=CONFIG["embedding"]["seed"],
    ensemble=ENSEMBLE,
)

#: Samples up to which one job draws all UMAPs. In larger studies each job draws what it has the input
#: of, so that some maps do not wait for the last closure.
JOINED_MAPS = 2_000
ONE_MAP_JOB = STUDY.sparse or n_samples(*COHORTS) <= JOINED_MAPS
#: Few points move on the CPU before a GPU has started.
MAP_POINTS = n_samples(*COHORTS) * (N_UMAPS if ONE_MAP_JOB else N_UMAPS // len(SPACES) - 1)
MAPS_DEVICE = CONFIG["device"] if MAP_POINTS > MANY_POINTS else "cpu"


rule close_founders:
    input:
        source=distance_source,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
        statistics="results/geodesic/{space}/alpha{alpha}.json",
        kinship=BRIDGE_ROWS,
    output:
        "results/geodesic/{space}/founders.alpha{alpha}.npy",
    log:
        "logs/close_founders/{space}.alpha{alpha}.log",
    benchmark:
        "benchmarks/close_founders/{space}.alpha{alpha}.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        mem_mb=memory(pairs=64e-6),
        runtime=minutes(pairs=1e-8, triples=2 * closing_minutes(GPUS)),
        gpu=GPUS,
    params:
        **DISTANCE_RULE,
        founders=STUDY.founders,
        number=CONFIG["geodesic"]["number"],
        pcs=CONFIG["geodesic"]["pcs"],
        dense_limit=CONFIG["geodesic"]["dense_limit"],
        device=CONFIG["device"],
        code=code_of("close_founders"),
    message:
        "Geodesics to the founders in space {wildcards.space}, alpha = {wildcards.alpha}"
    script:
        "../scripts/close_founders.py"


# One job per space: all alphas share the start of the interpreter and the numba compilation.
rule compute_pcoa:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        samples="results/distance/samples.tsv",
        frame=FRAME,
    output:
        refits=refit_tables("pcoa_refit"),
        tables=map_tables("pcoa"),
        statistics=expand("results/embedding/pcoa.{{space}}.alpha{alpha}.json", alpha=ALPHAS),
    log:
        "logs/compute_pcoa/{space}.log",
    benchmark:
        "benchmarks/compute_pcoa/{space}.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: shared_threads(5, 6)
    resources:
        mem_mb=memory(pairs=32e-6),
        runtime=pcoa_minutes,
    params:
        founders=STUDY.founders,
        components=PCOA_COMPONENTS,
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("compute_pcoa"),
    message:
        "PCoA of the geodesics in space {wildcards.space}"
    script:
        "../scripts/compute_pcoa.py"


# Runs only if embedding.further_maps lists these maps.
rule compute_further_maps:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        scores="results/embedding/pca.npy",
        samples="results/distance/samples.tsv",
        frame=FRAME,
    output:
        tables=map_tables("{{method}}"),
    log:
        "logs/compute_further_maps/{method}.{space}.log",
    benchmark:
        "benchmarks/compute_further_maps/{method}.{space}.tsv"
    wildcard_constraints:
        method="densmap|tsne",
    conda:
        GPU_CONDA
    # t-SNE takes one.
    threads: further_threads
    resources:
        # t-SNE keeps 91 neighbours per sample; matrices are memory-mapped and read in blocks.
        mem_mb=memory(900, samples=0.05),
        runtime=minutes(2, samples=5e-4 * len(ALPHAS), pairs=1e-9 * len(ALPHAS)),
        gpu=further_gpus,
    params:
        device=MAPS_DEVICE,
        n_samples=n_samples(*COHORTS),
        layout=dict(
            neighbors=CONFIG["embedding"]["umap_neighbors"],
            min_dist=CONFIG["embedding"]["umap_min_dist"],
            seed=CONFIG["embedding"]["seed"],
        ),
        founders=STUDY.founders,
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("compute_further_maps"),
    message:
        "{wildcards.method} of the geodesics in space {wildcards.space}"
    script:
        "../scripts/compute_further_maps.py"
