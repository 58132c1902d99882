# Maps: PCA of the genotypes, PCoA and UMAP of each geodesic.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/geodesic/{space}/alpha{alpha}.npy
# gives   results/embedding/pca.tsv, pca.npy (full precision), pca.json (variance explained)
#         results/embedding/pcoa.{space}.alpha{alpha}.tsv, umap.{space}.alpha{alpha}.tsv
#         results/embedding/umap.distance.{space}.tsv  the twin without geodesic
#         results/embedding/densmap.*, tsne.*          with embedding.further_maps
#         results/embedding/quality.tsv   how well each map keeps its distances
#         results/embedding/instability.tsv  per sample, with embedding.ensemble
#         results/geodesic/{space}/founders.alpha{alpha}.npy, embedding/pcoa_refit.*, umap_refit.*
#                                         with embedding.stable: pcoa.* and umap.* are then frames
#                                         of the founders, into which later samples are placed

STABLE = CONFIG["embedding"]["stable"]
#: Maps of everyone beside a frame of the founders.
REFITS = ["pcoa_refit", "umap_refit"] if STABLE else []
ENSEMBLE = CONFIG["embedding"]["ensemble"]
#: Lengths to the founders of one space.
FRAME = (
    expand("results/geodesic/{{space}}/founders.alpha{alpha}.npy", alpha=ALPHAS) if STABLE else []
)
INSTABILITY = ["results/embedding/instability.tsv"] if ENSEMBLE else []
#: densMAP and t-SNE, on request.
FURTHER_MAPS = CONFIG["embedding"]["further_maps"]
MAP_METHODS = ["pcoa", "umap", *FURTHER_MAPS, *REFITS]


rule embedding:
    input:
        "results/embedding/pca.tsv",
        "results/embedding/quality.tsv",
        INSTABILITY,
        expand(
            "results/embedding/{method}.{space}.alpha{alpha}.tsv",
            method=MAP_METHODS,
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
        code=code_of("compute_pca"),
    message:
        "PCA of the genotypes, axes from the founders"
    script:
        "../scripts/compute_pca.py"


if STABLE:

    rule close_founders:
        input:
            source=distance_source,
            samples="results/distance/samples.tsv",
            panel="results/panel/counts.json",
            statistics="results/geodesic/{space}/alpha{alpha}.json",
            kinship=(
                [f"results/compare/tiles/{a}__{b}.kinship.tsv" for a, b in STUDY.pairs()]
                if CONFIG["geodesic"]["bridges"] == "unrelated"
                else []
            ),
        output:
            "results/geodesic/{space}/founders.alpha{alpha}.npy",
        log:
            "logs/close_founders/{space}.alpha{alpha}.log",
        benchmark:
            "benchmarks/close_founders/{space}.alpha{alpha}.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 8
        resources:
            mem_mb=lambda wildcards, attempt: memory(64e-6 * n_samples(*COHORTS) ** 2, attempt),
            runtime=lambda wildcards, attempt: minutes(
                (1e-15 if GPUS else 2e-12) * n_samples(*COHORTS) ** 3
                + 1e-8 * n_samples(*COHORTS) ** 2,
                attempt,
            ),
            gpu=GPUS,
        params:
            **DISTANCE_RULE,
            founders=STUDY.founders,
            number=CONFIG["geodesic"]["number"],
            pcs=CONFIG["geodesic"]["pcs"],
            dense_limit=CONFIG["geodesic"]["dense_limit"],
            neighbors=CONFIG["geodesic"]["neighbors"],
            device=CONFIG["device"],
            code=code_of("close_founders"),
        message:
            "Geodesics to the founders in the space of {wildcards.space}, alpha = {wildcards.alpha}"
        script:
            "../scripts/close_founders.py"


# One job a space: the alphas share the start of the interpreter and the compilation of the method.
rule compute_pcoa:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        samples="results/distance/samples.tsv",
        frame=FRAME,
    output:
        **(
            {
                "refits": expand(
                    "results/embedding/pcoa_refit.{{space}}.alpha{alpha}.tsv", alpha=ALPHAS
                )
            }
            if STABLE
            else {}
        ),
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
        # A dense decomposition, or Lanczos above eigen.DENSE_ROWS.
        runtime=lambda wildcards, attempt: minutes(
            len(ALPHAS)
            * (1 + STABLE)
            * min(1e-11 * n_samples(*COHORTS) ** 3, 4e-8 * n_samples(*COHORTS) ** 2),
            attempt,
        ),
    params:
        founders=STUDY.founders,
        components=CONFIG["embedding"]["components"],
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("compute_pcoa"),
    message:
        "PCoA of the geodesics in the space of {wildcards.space}"
    script:
        "../scripts/compute_pcoa.py"


rule compute_umap:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        source=distance_source,
        scores="results/embedding/pca.npy",
        panel="results/panel/counts.json",
        samples="results/distance/samples.tsv",
        frame=FRAME,
    output:
        **({"instability": ["results/embedding/ensemble/{space}.tsv"]} if ENSEMBLE else {}),
        **(
            {
                "refits": expand(
                    "results/embedding/umap_refit.{{space}}.alpha{alpha}.tsv", alpha=ALPHAS
                )
            }
            if STABLE
            else {}
        ),
        tables=expand("results/embedding/umap.{{space}}.alpha{alpha}.tsv", alpha=ALPHAS),
        plain="results/embedding/umap.distance.{space}.tsv",
    log:
        "logs/compute_umap/{space}.log",
    benchmark:
        "benchmarks/compute_umap/{space}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # Matrices are mapped and read in blocks of rows.
        mem_mb=lambda wildcards, attempt: memory(900 + 0.02 * n_samples(*COHORTS), attempt),
        runtime=lambda wildcards, attempt: minutes(
            2
            + (1 + len(ALPHAS) * (1 + ENSEMBLE + STABLE))
            * (1e-4 * n_samples(*COHORTS) + 1e-9 * n_samples(*COHORTS) ** 2),
            attempt,
        ),
    params:
        alphas=ALPHAS,
        umap=dict(
            neighbors=CONFIG["embedding"]["umap_neighbors"],
            min_dist=CONFIG["embedding"]["umap_min_dist"],
            seed=CONFIG["embedding"]["seed"],
            ensemble=ENSEMBLE,
        ),
        pcs=CONFIG["geodesic"]["pcs"],
        distance=DISTANCE_RULE,
        founders=STUDY.founders,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("compute_umap"),
    message:
        "UMAP of the geodesics in the space of {wildcards.space}"
    script:
        "../scripts/compute_umap.py"


# Only a study that names them in embedding.further_maps asks for these.
rule compute_further_maps:
    input:
        lengths=expand("results/geodesic/{{space}}/alpha{alpha}.npy", alpha=ALPHAS),
        scores="results/embedding/pca.npy",
        samples="results/distance/samples.tsv",
        frame=FRAME,
    output:
        tables=expand("results/embedding/{{method}}.{{space}}.alpha{alpha}.tsv", alpha=ALPHAS),
    log:
        "logs/compute_further_maps/{method}.{space}.log",
    benchmark:
        "benchmarks/compute_further_maps/{method}.{space}.tsv"
    wildcard_constraints:
        method="densmap|tsne",
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # t-SNE holds 91 neighbours of every sample; matrices are mapped and read in blocks.
        mem_mb=lambda wildcards, attempt: memory(900 + 0.05 * n_samples(*COHORTS), attempt),
        runtime=lambda wildcards, attempt: minutes(
            2 + len(ALPHAS) * (5e-4 * n_samples(*COHORTS) + 1e-9 * n_samples(*COHORTS) ** 2),
            attempt,
        ),
    params:
        layout=dict(
            neighbors=CONFIG["embedding"]["umap_neighbors"],
            min_dist=CONFIG["embedding"]["umap_min_dist"],
            seed=CONFIG["embedding"]["seed"],
        ),
        founders=STUDY.founders,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("compute_further_maps"),
    message:
        "{wildcards.method} of the geodesics in the space of {wildcards.space}"
    script:
        "../scripts/compute_further_maps.py"


rule measure_maps:
    input:
        lengths=expand("results/geodesic/{space}/alpha{alpha}.npy", space=SPACES, alpha=ALPHAS),
        maps=[
            "results/embedding/pca.tsv",
            *expand(
                "results/embedding/{method}.{space}.alpha{alpha}.tsv",
                method=MAP_METHODS,
                space=SPACES,
                alpha=ALPHAS,
            ),
            *expand("results/embedding/umap.distance.{space}.tsv", space=SPACES),
        ],
        instability=(
            expand("results/embedding/ensemble/{space}.tsv", space=SPACES) if ENSEMBLE else []
        ),
        matrices=expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES),
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
    output:
        **({"instability": INSTABILITY} if ENSEMBLE else {}),
        quality="results/embedding/quality.tsv",
    log:
        "logs/measure_maps.log",
    benchmark:
        "benchmarks/measure_maps.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # At most 2 000 rows of the mapped matrices are compared, one at a time.
        mem_mb=lambda wildcards, attempt: memory(700 + 0.05 * n_samples(*COHORTS), attempt),
        runtime=lambda wildcards, attempt: minutes(
            1 + len(SPACES) * len(ALPHAS) * 1e-3 * n_samples(*COHORTS), attempt
        ),
    params:
        maps=[[space, alpha] for space in SPACES for alpha in ALPHAS],
        distance=DISTANCE_RULE,
        label=CONFIG["report"]["color_by"],
        refits=STABLE,
        further=FURTHER_MAPS,
        spaces=SPACES,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("measure_maps"),
    message:
        "Quality of the maps"
    script:
        "../scripts/measure_maps.py"
