# Encode each cohort on the panel: PLINK files of called genotypes, and bit-planes.
#
# needs   results/cohorts/{cohort}/raw.*, results/qc/{cohort}.samples.tsv, results/panel/sites.tsv,
#         results/impute/{cohort}/*.npy if Beagle imputes
# gives   results/cohorts/{cohort}/genotypes.bed .bim .fam   called genotypes, variant-major
#         results/cohorts/{cohort}/planes.npy .json          bit-planes, sample-major
#         results/cohorts/{cohort}/reference.npy             which sites that its file lacks were read
#                                                            as homozygous REF; if there are any


rule encode:
    input:
        expand("results/cohorts/{cohort}/planes.npy", cohort=COHORTS),


rule encode_cohort:
    input:
        raw=multiext("results/cohorts/{cohort}/raw", ".bed", ".bim", ".fam"),
        samples="results/qc/{cohort}.samples.tsv",
        panel="results/panel/sites.tsv",
        imputed=imputed_windows,
    output:
        genotypes=multiext("results/cohorts/{cohort}/genotypes", ".bed", ".bim", ".fam"),
        planes=multiext("results/cohorts/{cohort}/planes", ".npy", ".json"),
    log:
        "logs/encode_cohort/{cohort}.log",
    benchmark:
        "benchmarks/encode_cohort/{cohort}.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: shared_threads(len(COHORTS), 4)
    resources:
        # Planes are written through a memory map; the panel and the .bim are read into memory.
        mem_mb=memory(300, mb=2),
        runtime=minutes(mb=1 / 200),
    params:
        impute=CONFIG["impute"]["method"],
        absent=absent_sites,
        code=code_of("encode_cohort"),
    message:
        "Encode cohort {wildcards.cohort} on the panel"
    script:
        "../scripts/encode_cohort.py"
