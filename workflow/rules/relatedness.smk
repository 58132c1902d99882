# PC-Relate: kinship of people of any ancestry, from genotypes and principal components.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/panel/*, results/distance/samples.tsv,
#         results/embedding/pca.npy axes.json, results/compare/kinship.tsv .json
# gives   results/compare/pc_relate.tsv           close pairs by PC-Relate or KING-robust
#         results/compare/pc_relate.samples.tsv   inbreeding of every sample
#         results/compare/pc_relate.json          what was fitted, smallest kinship told

from popdesic.engine.needs import FEW_RELATED

RELATE_DEVICE = CONFIG["device"] if n_samples(*COHORTS) > FEW_RELATED else "cpu"


rule relate_samples:
    input:
        genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=COHORTS),
        panel="results/panel/sites.tsv",
        samples="results/distance/samples.tsv",
        scores="results/embedding/pca.npy",
        axes="results/embedding/axes.json",
        king="results/compare/kinship.tsv",
        resolution=RESOLUTION,
        unrelated=["results/panel/unrelated.tsv"] if MAX_KINSHIP else [],
    output:
        pairs="results/compare/pc_relate.tsv",
        samples="results/compare/pc_relate.samples.tsv",
        about="results/compare/pc_relate.json",
    log:
        "logs/relate_samples.log",
    benchmark:
        "benchmarks/relate_samples.tsv"
    conda:
        GPU_CONDA
    threads: shared_threads(4, 8)  # a long job beside the chain that the report waits for
    resources:
        # Two sums of each pair; genotypes of passes that are made ahead.
        mem_mb=memory(650, samples=0.05, pairs=10e-6),
        # 2 n**2 m operations at 20 Gflop/s on a CPU.
        runtime=minutes(1, pairs=2 * COMPARE["pc_relate"]["max_sites"] / 20e9 / 60),
        gpu=GPUS if RELATE_DEVICE != "cpu" else 0,
    params:
        device=RELATE_DEVICE,
        founders=STUDY.founders,
        components=COMPARE["pc_relate"]["components"],
        max_sites=COMPARE["pc_relate"]["max_sites"],
        min_kinship=COMPARE["kinship"]["min_kinship"],
        error_rate=COMPARE["identity"]["error_rate"],
        code=code_of("relate_samples"),
    message:
        "PC-Relate: kinship of people of any ancestry"
    script:
        "../scripts/relate_samples.py"
