# Fermat geodesics: weights d**alpha, all-pairs shortest paths by R-Kleene.
#
# needs   results/distance/*.npy (space genotypes), results/embedding/pca.npy (space pcs),
#         results/ibd/graph.npz (space ibd);
#         results/embedding/axes.npz axes.json,
#         results/cohorts/{founder}/genotypes.bed (or imputed.bed)
# gives   results/geodesic/choice.json       graph, alpha and number of components of each space
#         results/geodesic/{space}/closure/alpha{alpha}.{cohorts}.npy  triangle of the closure
#         results/geodesic/{space}/closure/alpha{alpha}.{cohorts}.json its inputs: later runs may
#                                                                      extend the closure
#         results/geodesic/{space}/alpha{alpha}.json                   alpha, dtype, share of
#                                                                      indirect paths
#         results/geodesic/{space}/alpha{alpha}.run.json               computed anew or extended
#         results/geodesic/{space}/parents.alpha{alpha}.npy hops.alpha{alpha}.json
#         results/geodesic/bridges.tsv                                 with geodesic.explain

#: The edges that paths may use and their weights, see `popdesic.geodesic.graph.Graph`.
GEODESIC_GRAPH = dict(
    kind=CONFIG["geodesic"]["graph"],
    neighbors=CONFIG["neighbors"],
    density=CONFIG["geodesic"]["density"],
)
if (GEODESIC_GRAPH["kind"], GEODESIC_GRAPH["density"]) == ("complete", "keep"):
    GEODESIC_GRAPH["neighbors"] = 0  # plays no role, and reruns nothing
#: What `auto` stands for in each space.
GEODESIC_CHOICE = "results/geodesic/choice.json"
#: Whether anything in the study is `auto`.
GEODESICS_CHOSEN = "auto" in ALPHAS or ("pcs" in SPACES and CONFIG["geodesic"]["pcs"] == "auto")
#: What holds the paths of a space and alpha: a closure that later runs extend, or the nearest samples
#: by path and the lengths of landmarks to everyone.
PATH_FILES = (
    dict(neighbors=LISTS, landmarks=LENGTHS)
    if STUDY.store == "near"
    else dict(closure=LENGTHS, about=LENGTHS.replace(".npy", ".json"))
) | {
    "statistics": "results/geodesic/{space}/alpha{alpha}.json",
    "record": "results/geodesic/{space}/alpha{alpha}.run.json",
}
#: Spaces and alphas of the geodesics; one that is chosen may repeat a listed one, so it comes last.
PATHS = [(space, alpha) for space in SPACES for alpha in sorted(ALPHAS, key="auto".__eq__)]
#: The same as the table of bridges lists them.
EXPLAINED = [(space, alpha) for space in SPACES for alpha in ALPHAS]
#: Whether one job makes them all. Where shared segments are a space, others do not wait for it.
ONE_PATHS_JOB = n_samples(*COHORTS) <= MOST_JOINED and "ibd" not in SPACES
N_CLOSED = len(PATHS) if ONE_PATHS_JOB else 1
#: Input of whatever takes as many components as `geodesic.pcs: auto` says.
PCS_CHOICE = [GEODESIC_CHOICE] if CONFIG["geodesic"]["pcs"] == "auto" else []


TARGETS["geodesic"] = [
    expand(LENGTHS, space=SPACES, alpha=ALPHAS),
    "results/geodesic/bridges.tsv" if CONFIG["geodesic"]["explain"] else [],
]


rule choose_geodesics:
    input:
        genotypes=genotype_files("pca", STUDY.founders),
        axes="results/embedding/axes.npz",
        about="results/embedding/axes.json",
        panel="results/panel/sites.tsv",
    output:
        GEODESIC_CHOICE,
    log:
        "logs/choose_geodesics.log",
    benchmark:
        "benchmarks/choose_geodesics.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: MANY
    resources:
        # At most 1 000 samples take part; half of the sites are read at a time.
        mem_mb=memory(900, mb=1, samples=0.05),
        runtime=minutes(2, mb_samples=4e-6, mb=1 / 50),
    params:
        choice=dict(
            spaces=[space for space in SPACES if space != "ibd"],
            pcs=CONFIG["geodesic"]["pcs"],
            metric=CONFIG["distance"]["metric"],
        ),
        code=code_of("choose_geodesics"),
    message:
        "Choose geodesics by sites that are held out"
    script:
        "../scripts/geodesic/choose_geodesics.py"


# Reached only by a study without a matrix of all pairs.
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


rule close_paths:
    input:
        source=distance_sources if ONE_PATHS_JOB else distance_source,
        choice=alpha_choice,
        listed=listed_closures,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
        kinship=BRIDGE_ROWS,
    output:
        **{name: of_paths(path) for name, path in PATH_FILES.items()},
    log:
        "logs/close_paths.log" if ONE_PATHS_JOB else "logs/close_paths/{space}.alpha{alpha}.log",
    benchmark:
        (
            "benchmarks/close_paths.tsv"
            if ONE_PATHS_JOB
            else "benchmarks/close_paths/{space}.alpha{alpha}.tsv"
        )
    priority: FIRST
    conda:
        GPU_CONDA
    threads: BESIDE_GPU
    resources:
        # Of the near store edges from both ends, lists, and three arrays of rows of landmarks.
        mem_mb=memory(
            600 * (1 - PAIR),
            pairs=56e-6 * PAIR,
            samples=(1 - PAIR) * (3 * ROW_MB + 0.1 * N_NEIGHBORS / 50),
        ),
        # n**3 / 2 operations at 10e9 per second on a CPU; a GPU is a thousand times faster.
        # On eight threads nearest samples of 200 000 took 29 to 36 s.
        runtime=minutes(
            0.5 * (1 - PAIR),
            pairs=1e-8 * PAIR * N_CLOSED,
            triples=closing_minutes(GPUS) * PAIR * N_CLOSED,
            samples=1e-5 * (1 - PAIR) * N_CLOSED,
        ),
        gpu=closing_gpus() * PAIR,
        nodes=1,  # with all of its GPUs
    params:
        paths=paths_of_job,
        store=STUDY.store,
        distance=DISTANCE_RULE | {"pcs": CONFIG["geodesic"]["pcs"]},
        founders=STUDY.founders,
        graph=GEODESIC_GRAPH,
        device=CONFIG["device"],
        code=code_of("close_paths"),
        closure_code=closure_code,
    message:
        (
            "Geodesics in all spaces"
            if ONE_PATHS_JOB
            else "Geodesics in space {wildcards.space}, alpha = {wildcards.alpha}"
        )
    script:
        "../scripts/geodesic/close_paths.py"


rule explain_paths:
    input:
        source=distance_sources,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
        statistics=of_explained("alpha{alpha}.json"),
        kinship=BRIDGE_ROWS,
    output:
        "results/geodesic/bridges.tsv",
        parents=of_explained("parents.alpha{alpha}.npy"),
        hops=of_explained("hops.alpha{alpha}.json"),
        bridges=of_explained("bridges.alpha{alpha}.tsv"),
    log:
        "logs/explain_paths.log",
    benchmark:
        "benchmarks/explain_paths.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        mem_mb=memory(pairs=44e-6),
        # n**3 steps of Dijkstra's algorithm at 1e9 per second.
        runtime=minutes(triples=1.7e-11 * len(EXPLAINED)),
    params:
        distance=DISTANCE_RULE | {"pcs": CONFIG["geodesic"]["pcs"]},
        paths=[(space, alpha, source_of(space)) for space, alpha in EXPLAINED],
        founders=STUDY.founders,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(None, "population"),
        code=code_of("explain_paths"),
    message:
        "Paths of the geodesics, and samples that bridge others"
    script:
        "../scripts/geodesic/explain_paths.py"
