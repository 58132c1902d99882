# Fermat geodesics: weights d**alpha, all-pairs shortest paths by R-Kleene.
#
# needs   results/distance/*.npy (space genotypes), results/embedding/pca.npy (space pcs)
# gives   results/geodesic/{space}/closure/alpha{alpha}.{cohorts}.npy   native number type, and what
#         results/geodesic/{space}/closure/alpha{alpha}.{cohorts}.json  it was made from: a later
#                                                                       run may continue it
#         results/geodesic/{space}/alpha{alpha}.npy                     float32 (n, n), float64
#                                                                       where float32 overflows
#         results/geodesic/{space}/alpha{alpha}.json                    alpha, type, share indirect
#         results/geodesic/{space}/alpha{alpha}.run.json                from scratch or continued


rule geodesic:
    input:
        expand("results/geodesic/{space}/alpha{alpha}.npy", space=SPACES, alpha=ALPHAS),


rule close_paths:
    input:
        source=lambda wildcards: (
            ["results/embedding/pca.npy"]
            if wildcards.space == "pcs"
            else rules.assemble_distance.output.matrices
        ),
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
    output:
        lengths="results/geodesic/{space}/alpha{alpha}.npy",
        statistics="results/geodesic/{space}/alpha{alpha}.json",
        record="results/geodesic/{space}/alpha{alpha}.run.json",
        closure=f"results/geodesic/{{space}}/closure/alpha{{alpha}}.{COHORT_SET}.npy",
        about=f"results/geodesic/{{space}}/closure/alpha{{alpha}}.{COHORT_SET}.json",
    log:
        "logs/close_paths/{space}.alpha{alpha}.log",
    benchmark:
        "benchmarks/close_paths/{space}.alpha{alpha}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        mem_mb=lambda wildcards, attempt: memory(56e-6 * n_samples(*COHORTS) ** 2, attempt),
        # n**3 / 2 operations at 10 G/s on a CPU; a GPU is a thousand times faster.
        runtime=lambda wildcards, attempt: minutes(
            (1e-15 if GPUS else 1e-12) * n_samples(*COHORTS) ** 3 + 1e-8 * n_samples(*COHORTS) ** 2,
            attempt,
        ),
        gpu=GPUS,
    params:
        **DISTANCE_RULE,
        founders=STUDY.founders,
        number=CONFIG["geodesic"]["number"],
        pcs=CONFIG["geodesic"]["pcs"],
        audit=CONFIG["geodesic"]["audit"],
        device=CONFIG["device"],
        code=code_of("geodesic", "distance"),
        closure_code=code_of("closure", "weights"),
    message:
        "Geodesics in the space of {wildcards.space}, alpha = {wildcards.alpha}"
    script:
        "../scripts/close_paths.py"
