# PCA of the genotypes, with axes from the founders.
#
# needs   results/cohorts/{cohort}/genotypes.bed (or imputed.bed), results/panel/*
# gives   results/embedding/axes.npz, axes.json   axes of the PCA, from the unrelated founders alone
#         results/embedding/loadings.tsv     of the sites that define the axes
#         results/embedding/coordinates/pca.tsv, embedding/pca.npy (full precision), pca.json
#                                            (variance explained)

from popdesic.core.limits import MOST_DENSE, MOST_MATRIX
from popdesic.engine.needs import by_weights

#: What maps read of the sheet: who is in which cohort.
MAP_ROWS = STUDY.digest_of(None, "cohort")
MANY_FOUNDERS = n_samples(*STUDY.founders) > MOST_DENSE
#: The matrix of few founders is made on the CPU.
AXES_DEVICE = CONFIG["device"] if MANY_FOUNDERS else "cpu"
FEW_FOUNDERS = n_samples(*STUDY.founders) <= MOST_MATRIX
#: Whether those who do not define the axes, relatives of founders too, are placed by weights of
#: sites.
SCORES_BY_WEIGHTS = by_weights(n_samples(*STUDY.founders))
SCORING_GPUS = GPUS if SCORES_BY_WEIGHTS else 0
#: Components for other programs, if `export.formats` lists them.
EIGENVEC = "results/export/pca.eigenvec"


rule define_axes:
    input:
        genotypes=genotype_files("pca", STUDY.founders),
        panel="results/panel/sites.tsv",
        counts="results/panel/counts.json",
        # Relatives are projected but do not define the axes.
        unrelated=["results/panel/unrelated.tsv"] if CONFIG["close_kinship"] else [],
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
    threads: MANY if GPUS else WIDE  # beside measure_ld
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
        long_range_ld=CONFIG["long_range_ld"],
        code=code_of("define_axes"),
    message:
        "Axes of the PCA from the founders"
    script:
        "../scripts/components/define_axes.py"


rule compute_pca:
    input:
        genotypes=genotype_files("pca", COHORTS),
        axes="results/embedding/axes.npz",
        about="results/embedding/axes.json",
        samples="results/distance/samples.tsv",
    output:
        table="results/embedding/coordinates/pca.tsv",
        scores="results/embedding/pca.npy",
        statistics="results/embedding/pca.json",
        eigenvec=[EIGENVEC] if "eigenvec" in CONFIG["export"]["formats"] else [],
    log:
        "logs/compute_pca.log",
    benchmark:
        "benchmarks/compute_pca.tsv"
    priority: FIRST
    conda:
        GPU_CONDA
    threads: SOME
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
        "../scripts/components/compute_pca.py"
