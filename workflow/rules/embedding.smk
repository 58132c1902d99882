# Maps: PCA of the genotypes, PCoA and UMAP of each geodesic.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/geodesic/{space}/alpha{alpha}.npy
# gives   results/embedding/pca.tsv, pca.npy (full precision), pca.json (variance explained)
#         results/embedding/pcoa.{space}.alpha{alpha}.tsv, umap.{space}.alpha{alpha}.tsv


rule embedding:
    input:
        "results/embedding/pca.tsv",
        expand(
            "results/embedding/{method}.{space}.alpha{alpha}.tsv",
            method=["pcoa", "umap"],
            space=SPACES,
            alpha=ALPHAS,
        ),


rule compute_pca:
    input:
        genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=COHORTS),
        panel="results/panel/sites.tsv",
        samples="results/distance/samples.tsv",
        # Relatives are kept in the maps but kept out of defining them.
        unrelated=["results/panel/unrelated.tsv"] if CONFIG["embedding"]["max_kinship"] else [],
    output:
        table="results/embedding/pca.tsv",
        scores="results/embedding/pca.npy",
        statistics="results/embedding/pca.json",
    log:
        "logs/compute_pca.log",
    benchmark:
        "benchmarks/compute_pca.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        mem_mb=lambda wildcards, attempt: memory(
            300 + 0.05 * n_samples(*COHORTS) + 48e-6 * n_samples(*COHORTS) ** 2, attempt
        ),
        runtime=lambda wildcards, input, attempt: minutes(
            4e-6 * input_mb(input) * n_samples(*COHORTS), attempt
        ),
    params:
        founders=STUDY.founders,
        components=max(CONFIG["embedding"]["components"], CONFIG["geodesic"]["pcs"]),
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("embedding"),
    message:
        "PCA of the genotypes, axes from the founders"
    script:
        "../scripts/compute_pca.py"


# One job a space: the alphas share the start of the interpreter and the compilation of the method.
rule compute_pcoa:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        samples="results/distance/samples.tsv",
    output:
        tables=expand("results/embedding/pcoa.{{space}}.alpha{alpha}.tsv", alpha=ALPHAS),
        statistics=expand("results/embedding/pcoa.{{space}}.alpha{alpha}.json", alpha=ALPHAS),
    log:
        "logs/compute_pcoa/{space}.log",
    benchmark:
        "benchmarks/compute_pcoa/{space}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        mem_mb=lambda wildcards, attempt: memory(32e-6 * n_samples(*COHORTS) ** 2, attempt),
        runtime=lambda wildcards, attempt: minutes(
            len(ALPHAS) * 1e-11 * n_samples(*COHORTS) ** 3, attempt
        ),
    params:
        components=CONFIG["embedding"]["components"],
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("embedding"),
    message:
        "PCoA of the geodesics in the space of {wildcards.space}"
    script:
        "../scripts/compute_pcoa.py"


rule compute_umap:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        samples="results/distance/samples.tsv",
    output:
        expand("results/embedding/umap.{{space}}.alpha{alpha}.tsv", alpha=ALPHAS),
    log:
        "logs/compute_umap/{space}.log",
    benchmark:
        "benchmarks/compute_umap/{space}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: memory(500 + 24e-6 * n_samples(*COHORTS) ** 2, attempt),
        runtime=lambda wildcards, attempt: minutes(
            2 + len(ALPHAS) * 1e-3 * n_samples(*COHORTS), attempt
        ),
    params:
        neighbors=CONFIG["embedding"]["umap_neighbors"],
        min_dist=CONFIG["embedding"]["umap_min_dist"],
        seed=CONFIG["embedding"]["seed"],
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("embedding"),
    message:
        "UMAP of the geodesics in the space of {wildcards.space}"
    script:
        "../scripts/compute_umap.py"
