# Decode each cohort's files once.
#
# needs   the genotype files of a cohort: VCF, VCF.gz, BCF, VCF-Zarr,
#         PLINK .bed .bim .fam or .pgen .pvar .psam
# gives   results/cohorts/{cohort}/raw.bed .bim .fam   biallelic SNPs, called genotypes
#         results/cohorts/{cohort}/raw.json            counts of kept and dropped records
#
# Samples that the sheet excludes when a cohort is decoded are left out. To exclude one later does not
# decode its cohort again; a sample that comes back does.


#: The genome that alleles are turned to, if the configuration names one.
GENOME_FILES = [CONFIG["qc"]["fasta"]] if CONFIG["qc"]["fasta"] else []


rule ingest:
    input:
        expand("results/cohorts/{cohort}/raw.bed", cohort=COHORTS),


rule ingest_cohort:
    input:
        lambda wildcards: cohort_files(STUDY, wildcards.cohort),
        fasta=GENOME_FILES,
    output:
        multiext("results/cohorts/{cohort}/raw", ".bed", ".bim", ".fam", ".json"),
    log:
        "logs/ingest_cohort/{cohort}.log",
    benchmark:
        "benchmarks/ingest_cohort/{cohort}.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: shared_threads(len(COHORTS), 2)
    resources:
        # Decoding streams: memory does not grow with the number of sites.
        # With a genome, one contig of it and the alleles of all sites besides.
        mem_mb=memory(1500 if GENOME_FILES else 600, samples=0.05),
        runtime=minutes(mb=1 / 500),
    params:
        source=lambda wildcards: STUDY.cohorts.genotypes[wildcards.cohort],
        sources=lambda wildcards: cohort_sources(STUDY, wildcards.cohort),
        # A replaced file may have an older date, which Snakemake does not notice.
        key=lambda wildcards: source_key(cohort_sources(STUDY, wildcards.cohort)),
        genome=lambda wildcards: file_key(GENOME_FILES),
        names=lambda wildcards: names_key(STUDY.names_in_files(wildcards.cohort)),
        sheet=CONFIG["samples"],
        haploid=CONFIG["encode"]["haploid"],
        excluded_contigs=CONFIG["panel"]["exclude_contigs"],
        filters=CONFIG["ingest"],
        code=code_of("ingest_cohort"),
    message:
        "Decode cohort {wildcards.cohort} from {params.source}"
    script:
        "../scripts/ingest_cohort.py"
