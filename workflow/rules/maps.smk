# Maps of the samples: PCoA, UMAP, densMAP, t-SNE, and their quality.
#
# needs   results/distance/*, results/embedding/pca.npy, results/geodesic/*, the sample sheet
# gives   results/embedding/*

from popdesic.core.limits import MOST_JOINED, MANY_POINTS

# Maps of the samples, and how well they preserve distances.
#
# needs   results/distance/*, results/embedding/pca.npy, results/geodesic/{space}/closure/*
# gives   results/embedding/quality.tsv      how well each map preserves distances
#         results/embedding/instability.tsv  per sample, with embedding.ensemble

STABLE = CONFIG["embedding"]["stable"]
#: Maps refitted to all samples, in addition to the frame of the founders.
REFITS = ["pcoa_refit", "umap_refit"] if STABLE else []
ENSEMBLE = CONFIG["embedding"]["ensemble"]
#: Stability of each sample's position in repeated UMAPs: per space, and joined.
ENSEMBLE_TABLES = ["results/embedding/ensemble/{space}.tsv"] if ENSEMBLE else []
INSTABILITY = ["results/embedding/instability.tsv"] if ENSEMBLE else []
#: densMAP and t-SNE, if requested.
FURTHER_MAPS = CONFIG["embedding"]["further_maps"]
MAP_METHODS = ["pcoa", "umap", *FURTHER_MAPS, *REFITS]
MAPS = [
    "pca",
    *expand("{m}.{s}.alpha{a}", m=MAP_METHODS, s=SPACES, a=ALPHAS),
    *expand("umap.distance.{s}", s=SPACES),
]
#: What jobs read of maps: a label that changes changes none of it.
COORDINATES = expand("results/embedding/coordinates/{map}.tsv", map=MAPS)
#: The same with the columns of the sheet, which the report's job joins to them.
LABELLED_MAPS = expand("results/embedding/{map}.tsv", map=MAPS)

#: Labels that figures show.
LABELS_DRAWN = STUDY.digest_of(None, "cohort", CONFIG["report"]["color_by"], "population")


TARGETS["embedding"] = [
    COORDINATES,
    "results/embedding/quality.tsv",
    INSTABILITY,
]


rule measure_maps:
    input:
        lengths=expand(LENGTHS, space=SPACES, alpha=ALPHAS),
        maps=COORDINATES,
        instability=expand(ENSEMBLE_TABLES, space=SPACES),
        matrices=DISTANCE_FILES,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
    output:
        instability=INSTABILITY,
        quality="results/embedding/quality.tsv",
    log:
        "logs/measure_maps.log",
    benchmark:
        "benchmarks/measure_maps.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: WIDE
    resources:
        # At most 2 000 rows of the memory-mapped matrices are compared, a few at a time.
        mem_mb=memory(500, samples=0.05),
        runtime=minutes(1, samples=2e-4 * len(SPACES) * len(ALPHAS)),
    params:
        maps=[[space, alpha] for space in SPACES for alpha in ALPHAS],
        distance=DISTANCE_RULE,
        store=STUDY.store,
        label=CONFIG["report"]["color_by"],
        refits=STABLE,
        further=FURTHER_MAPS,
        spaces=SPACES,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(None, CONFIG["report"]["color_by"]),
        code=code_of("measure_maps"),
    message:
        "Measure the quality of the maps"
    script:
        "../scripts/maps/measure_maps.py"


# Maps of each geodesic: PCoA, and optionally densMAP and t-SNE; numbers of UMAPs.
#
# needs   results/geodesic/{space}/closure/* alpha{alpha}.json, results/distance/*,
#         results/embedding/pca.npy
# gives   results/embedding/coordinates/pcoa.{space}.alpha{alpha}.tsv
#         results/embedding/pcoa.{space}.alpha{alpha}.json
#         results/embedding/coordinates/densmap.*, tsne.*  with embedding.further_maps
#         results/geodesic/{space}/founders.alpha{alpha}.npy, embedding/coordinates/pcoa_refit.*
#                                         with embedding.stable: maps are then defined by the
#                                         founders, and later samples are projected

#: Geodesic lengths to the founders in one space.
FRAME = (
    expand("results/geodesic/{{space}}/founders.alpha{alpha}.npy", alpha=ALPHAS) if STABLE else []
)
COMPONENTS = CONFIG["embedding"]["components"]
PCOA_COMPONENTS = 10 if COMPONENTS == "auto" else COMPONENTS
#: UMAPs: in each space of plain distances, and of geodesics for each alpha.
N_UMAPS = len(SPACES) * (1 + len(ALPHAS) * (1 + ENSEMBLE + STABLE))
UMAP_OPTIONS = dict(
    neighbors=CONFIG["neighbors"],
    seed=CONFIG["seed"],
    ensemble=ENSEMBLE,
)

#: Whether one job makes the maps of all spaces.
ONE_MAP_JOB = STUDY.sparse or n_samples(*COHORTS) <= MOST_JOINED
#: Few points move on the CPU before a GPU has started.
MAP_POINTS = n_samples(*COHORTS) * (N_UMAPS if ONE_MAP_JOB else N_UMAPS // len(SPACES))
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
        pcs=CONFIG["geodesic"]["pcs"],
        device=CONFIG["device"],
        code=code_of("close_founders"),
    message:
        "Geodesics to the founders in space {wildcards.space}, alpha = {wildcards.alpha}"
    script:
        "../scripts/maps/close_founders.py"


# One job for all alphas, and of few samples for all spaces, shares the start of the interpreter.
rule compute_pcoa:
    input:
        lengths=of_maps(expand(LENGTHS, alpha=ALPHAS, allow_missing=True)),
        lists=(
            of_maps(expand(LISTS, alpha=ALPHAS, allow_missing=True))
            if STUDY.store == "near"
            else []
        ),
        samples="results/distance/samples.tsv",
        frame=of_maps(FRAME),
    output:
        refits=of_maps(refit_tables("pcoa_refit")),
        tables=of_maps(map_tables("pcoa")),
        statistics=of_maps(
            expand("results/embedding/pcoa.{{space}}.alpha{alpha}.json", alpha=ALPHAS)
        ),
    log:
        "logs/compute_pcoa.log" if ONE_MAP_JOB else "logs/compute_pcoa/{space}.log",
    benchmark:
        "benchmarks/compute_pcoa.tsv" if ONE_MAP_JOB else "benchmarks/compute_pcoa/{space}.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: SOME
    resources:
        mem_mb=memory(500 * (1 - PAIR), pairs=32e-6 * PAIR, samples=0.01 * (1 - PAIR)),
        runtime=pcoa_minutes,
    params:
        store=STUDY.store,
        founders=STUDY.founders,
        components=PCOA_COMPONENTS,
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("compute_pcoa"),
    message:
        "PCoA of the geodesics"
    script:
        "../scripts/maps/compute_pcoa.py"


# Runs only if embedding.further_maps lists these maps.
rule compute_further_maps:
    input:
        lengths=expand(LENGTHS, alpha=ALPHAS, allow_missing=True),
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
    threads: MANY
    resources:
        # t-SNE keeps 91 neighbours per sample; matrices are memory-mapped and read in blocks.
        mem_mb=memory(900, samples=0.05),
        runtime=minutes(2, samples=5e-4 * len(ALPHAS), pairs=1e-9 * len(ALPHAS)),
        gpu=further_gpus,
    params:
        device=MAPS_DEVICE,
        n_samples=n_samples(*COHORTS),
        layout=dict(
            neighbors=CONFIG["neighbors"],
            seed=CONFIG["seed"],
        ),
        founders=STUDY.founders,
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("compute_further_maps"),
    message:
        "{wildcards.method} of the geodesics in space {wildcards.space}"
    script:
        "../scripts/maps/compute_further_maps.py"


# UMAPs of each geodesic, and of the plain distances of each space.
#
# needs   results/geodesic/{space}/closure/*, results/distance/*,
#         results/embedding/pca.npy; numbers and device of maps
# gives   results/embedding/coordinates/umap.{space}.alpha{alpha}.tsv
#         results/embedding/coordinates/umap.distance.{space}.tsv  UMAP of the plain distances
#         results/embedding/ensemble/{space}.tsv       with embedding.ensemble
#         results/embedding/coordinates/umap_refit.*               with embedding.stable

#: Geodesics as UMAP reads them: all lengths, or lists of the nearest.
NEAR_LENGTHS = LISTS if STUDY.store == "near" else LENGTHS


# One job for all spaces shares the start of the interpreter and its threads.
rule compute_umap:
    input:
        lengths=of_maps(expand(NEAR_LENGTHS, alpha=ALPHAS, allow_missing=True)),
        source=distance_sources if ONE_MAP_JOB else distance_source,
        shared=[IBD_GRAPH] if "ibd" in SPACES else [],
        scores="results/embedding/pca.npy",
        panel="results/panel/counts.json",
        samples="results/distance/samples.tsv",
        frame=of_maps(FRAME),
    output:
        instability=of_maps(ENSEMBLE_TABLES),
        refits=of_maps(refit_tables("umap_refit")),
        tables=of_maps(map_tables("umap")),
        plain=of_maps(["results/embedding/coordinates/umap.distance.{space}.tsv"]),
    log:
        "logs/compute_umap.log" if ONE_MAP_JOB else "logs/compute_umap/{space}.log",
    benchmark:
        "benchmarks/compute_umap.tsv" if ONE_MAP_JOB else "benchmarks/compute_umap/{space}.tsv"
    priority: SECOND
    conda:
        GPU_CONDA
    threads: BESIDE_GPU
    resources:
        # Matrices are memory-mapped and read in blocks of rows.
        mem_mb=memory(300, samples=0.1),
        runtime=minutes(1, samples=2e-5 * N_UMAPS, pairs=1e-9 * N_UMAPS * PAIR),
        gpu=GPUS if MAPS_DEVICE != "cpu" else 0,
    params:
        store=STUDY.store,
        spaces=SPACES if ONE_MAP_JOB else lambda wildcards: [wildcards.space],
        alphas=ALPHAS,
        umap=UMAP_OPTIONS,
        device=MAPS_DEVICE,
        n_samples=n_samples(*COHORTS),
        pcs=CONFIG["geodesic"]["pcs"],
        distance=DISTANCE_RULE,
        founders=STUDY.founders,
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("compute_umap"),
    message:
        "UMAP of the geodesics"
    script:
        "../scripts/maps/compute_umap.py"
