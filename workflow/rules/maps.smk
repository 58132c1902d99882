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


# Maps of each geodesic: UMAP, PCoA, and optionally densMAP and t-SNE; UMAPs of plain distances.
#
# needs   results/geodesic/{space}/closure/* alpha{alpha}.json, results/distance/*,
#         results/embedding/pca.npy
# gives   results/embedding/coordinates/umap.{space}.alpha{alpha}.tsv, umap.distance.{space}.tsv
#         results/embedding/ensemble/{space}.tsv   with embedding.ensemble
#         results/embedding/coordinates/pcoa.{space}.alpha{alpha}.tsv
#         results/embedding/pcoa.{space}.alpha{alpha}.json
#         results/embedding/coordinates/densmap.*, tsne.*  with embedding.further_maps
#         results/geodesic/{space}/founders.alpha{alpha}.npy, embedding/coordinates/*_refit.*
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
#: Whether one job makes the maps of all spaces.
ONE_MAP_JOB = STUDY.sparse or n_samples(*COHORTS) <= MOST_JOINED
#: Methods of each job by what it makes: of few samples one makes all maps.
MAP_JOBS = {method: [method] for method in ["umap", "pcoa", *FURTHER_MAPS]}
if n_samples(*COHORTS) <= MOST_JOINED:
    MAP_JOBS = {"maps": [*MAP_JOBS]}
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


# UMAPs of each geodesic and of the plain distances of each space, PCoA, and densMAP and t-SNE if
# embedding.further_maps lists them. Of few samples one job, which makes `maps`, shares the start of
# the interpreter, and its threads; of more each method has jobs: of one
# space, and without a matrix of all pairs of all spaces.
for made, methods in MAP_JOBS.items():

    rule:
        name:
            f"compute_{made}"
        input:
            lengths=of_maps(expand(LENGTHS, alpha=ALPHAS, allow_missing=True)),
            lists=(
                of_maps(expand(LISTS, alpha=ALPHAS, allow_missing=True))
                if STUDY.store == "near"
                else []
            ),
            source=(
                (distance_sources if ONE_MAP_JOB else distance_source) if "umap" in methods else []
            ),
            shared=[IBD_GRAPH] if "ibd" in SPACES and "umap" in methods else [],
            scores=["results/embedding/pca.npy"] if methods != ["pcoa"] else [],
            panel=["results/panel/counts.json"] if "umap" in methods else [],
            samples="results/distance/samples.tsv",
            frame=of_maps(FRAME),
        output:
            **map_files(methods),
        log:
            f"logs/compute_{made}.log" if ONE_MAP_JOB else f"logs/compute_{made}/{{space}}.log",
        benchmark:
            f"benchmarks/compute_{made}.tsv"
            if ONE_MAP_JOB
            else f"benchmarks/compute_{made}/{{space}}.tsv"
        priority: SECOND
        conda:
            GPU_CONDA
        threads: BESIDE_GPU
        resources:
            mem_mb=map_memory(methods),
            runtime=map_minutes(methods),
            gpu=GPUS if MAPS_DEVICE != "cpu" and {"umap", "densmap"} & {*methods} else 0,
        params:
            methods=methods,
            store=STUDY.store,
            spaces=SPACES if ONE_MAP_JOB else lambda wildcards: [wildcards.space],
            alphas=ALPHAS,
            components=PCOA_COMPONENTS,
            layout=dict(neighbors=CONFIG["neighbors"], seed=CONFIG["seed"]),
            ensemble=ENSEMBLE,
            device=MAPS_DEVICE,
            n_samples=n_samples(*COHORTS),
            pcs=CONFIG["geodesic"]["pcs"],
            distance=DISTANCE_RULE,
            founders=STUDY.founders,
            sheet=CONFIG["samples"],
            rows=MAP_ROWS,
            code=code_of("compute_maps"),
        message:
            f"Maps of the geodesics: {', '.join(methods)}"
        script:
            "../scripts/maps/compute_maps.py"
