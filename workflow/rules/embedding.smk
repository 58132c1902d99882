# PCA of the genotypes, and how well all maps preserve distances.
#
# needs   results/cohorts/{cohort}/genotypes.bed (or imputed.bed), results/panel/*,
#         results/distance/*,
#         results/geodesic/{space}/alpha{alpha}.npy; the maps of maps.smk
# gives   results/embedding/axes.npz, axes.json   axes of the PCA, from the unrelated founders alone
#         results/embedding/loadings.tsv     of the sites that define the axes
#         results/embedding/coordinates/pca.tsv, embedding/pca.npy (full precision), pca.json
#                                            (variance explained)
#         results/embedding/quality.tsv      how well each map preserves distances
#         results/embedding/instability.tsv  per sample, with embedding.ensemble

from popdesic.components.axes import MOST_DENSE, MOST_MATRIX
from popdesic.engine.needs import by_weights

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
#: The same with the columns of the sheet (labels.smk).
LABELLED_MAPS = expand("results/embedding/{map}.tsv", map=MAPS)

#: What maps read of the sheet: who is in which cohort.
MAP_ROWS = STUDY.digest_of(None, "cohort")
#: Labels that figures show.
LABELS_DRAWN = STUDY.digest_of(None, "cohort", CONFIG["report"]["color_by"], "population")
MANY_FOUNDERS = n_samples(*STUDY.founders) > MOST_DENSE
#: The matrix of few founders is made on the CPU.
AXES_DEVICE = CONFIG["device"] if MANY_FOUNDERS else "cpu"
FEW_FOUNDERS = n_samples(*STUDY.founders) <= MOST_MATRIX
#: Whether those who do not define the axes, relatives of founders too, are placed by weights of
#: sites.
SCORES_BY_WEIGHTS = by_weights(n_samples(*STUDY.founders))
SCORING_GPUS = GPUS if SCORES_BY_WEIGHTS else 0


rule embedding:
    input:
        LABELLED_MAPS,
        "results/embedding/quality.tsv",
        INSTABILITY,


rule define_axes:
    input:
        genotypes=genotype_files("embedding.genotypes", STUDY.founders),
        panel="results/panel/sites.tsv",
        counts="results/panel/counts.json",
        # Relatives are projected but do not define the axes.
        unrelated=["results/panel/unrelated.tsv"] if CONFIG["embedding"]["max_kinship"] else [],
    output:
        axes="results/embedding/axes.npz",
        about="results/embedding/axes.json",
        loadings="results/embedding/loadings.tsv",
    log:
        "logs/define_axes.log",
    benchmark:
        "benchmarks/define_axes.tsv"
    priority: FIRST
    conda:
        GPU_CONDA
    threads: axes_threads()  # beside measure_ld
    resources:
        # LD pruning reads the founders' genotypes contig by contig. Of MOST_MATRIX founders at most
        # a matrix of all pairs may be made; of more, passes over the genotypes, which keep 512 MiB.
        mem_mb=memory(
            400 + 512 * MANY_FOUNDERS, mb=2, samples=0.08, pairs=48e-6 if FEW_FOUNDERS else 0
        ),
        runtime=minutes(mb_samples=4e-6, mb=1 / 20, pairs=4e-8 if FEW_FOUNDERS else 0),
        gpu=GPUS if AXES_DEVICE != "cpu" else 0,
    params:
        device=AXES_DEVICE,
        axes=dict(
            components=CONFIG["embedding"]["components"],
            pcs=CONFIG["geodesic"]["pcs"],
            ld_prune=CONFIG["embedding"]["ld_prune"],
        ),
        long_range_ld=CONFIG["embedding"]["long_range_ld"],
        code=code_of("define_axes"),
    message:
        "Axes of the PCA from the founders"
    script:
        "../scripts/define_axes.py"


rule compute_pca:
    input:
        genotypes=genotype_files("embedding.genotypes", COHORTS),
        axes="results/embedding/axes.npz",
        about="results/embedding/axes.json",
        samples="results/distance/samples.tsv",
    output:
        table="results/embedding/coordinates/pca.tsv",
        scores="results/embedding/pca.npy",
        statistics="results/embedding/pca.json",
    log:
        "logs/compute_pca.log",
    benchmark:
        "benchmarks/compute_pca.tsv"
    priority: FIRST
    conda:
        GPU_CONDA
    threads: pair_threads(8)  # beside choose_geodesics
    resources:
        # Passes made ahead; 2 GB for a group of samples with those that define the axes, or what
        # small studies take of it: 24 bytes for a quarter of all pairs.
        mem_mb=pca_memory,
        runtime=pca_minutes,
        gpu=SCORING_GPUS,
    params:
        device=CONFIG["device"] if SCORING_GPUS else "cpu",
        sheet=CONFIG["samples"],
        rows=MAP_ROWS,
        code=code_of("compute_pca"),
    message:
        "PCA of the genotypes, axes from the founders"
    script:
        "../scripts/compute_pca.py"


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
    threads: wide_threads()
    resources:
        # At most 2 000 rows of the memory-mapped matrices are compared, a few at a time.
        mem_mb=memory(500, samples=0.05),
        runtime=minutes(1, samples=2e-4 * len(SPACES) * len(ALPHAS)),
    params:
        maps=[[space, alpha] for space in SPACES for alpha in ALPHAS],
        distance=DISTANCE_RULE,
        sparse=STUDY.sparse,
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
        "../scripts/measure_maps.py"
