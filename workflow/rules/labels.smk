# The sheet's labels beside maps and communities, which are made without them.
#
# needs   results/embedding/coordinates/{map}.tsv, results/communities/partition.tsv, sample sheet
# gives   results/embedding/{map}.tsv           coordinates with the columns of the sheet
#         results/communities/agreement.tsv     ARI and AMI with every label column


rule label_maps:
    input:
        maps=COORDINATES,
        samples="results/distance/samples.tsv",
    output:
        LABELLED_MAPS,
    log:
        "logs/label_maps.log",
    benchmark:
        "benchmarks/label_maps.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(300, samples=0.005),
        runtime=minutes(0.2, samples=1e-7 * len(MAPS)),
    params:
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("label_maps"),
    message:
        "Join the columns of the sheet to the maps"
    script:
        "../scripts/label_maps.py"


rule measure_agreement:
    input:
        partition="results/communities/partition.tsv",
        samples="results/distance/samples.tsv",
    output:
        "results/communities/agreement.tsv",
    log:
        "logs/measure_agreement.log",
    benchmark:
        "benchmarks/measure_agreement.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(300, samples=0.005),
        runtime=minutes(0.5, samples=1e-5),
    params:
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("measure_agreement"),
    message:
        "Compare communities with labels"
    script:
        "../scripts/measure_agreement.py"
