# Cohorts: decoded files, quality, the panel of sites, planes of genotypes.
#
# needs   the files of the cohort sheet, the sample sheet
# gives   results/cohorts/{cohort}/*, results/qc/*, results/panel/*

from popdesic.cohort.phenotype import case_control, of_phenotype
from popdesic.epistasis.options import phenotypes_of

# Decode each cohort's files once. Many small cohorts are read together, as a few batches, which all
# later rules treat as cohorts (`study/batches.py`).
#
# needs   the genotype files of a cohort: VCF, VCF.gz, BCF, VCF-Zarr,
#         PLINK .bed .bim .fam or .pgen .pvar .psam, EIGENSTRAT .geno .snp .ind; VCF-Zarr in an object
#         store is a parameter, known by a digest of its ETags;
#         the sample sheet, qc.assembly_report
# gives   results/cohorts/{cohort}/raw.json       counts of kept and dropped records, checksums of:
#         results/cohorts/{cohort}/raw.bed .bim .fam   biallelic SNPs, called genotypes; not decoded
#                                                 again where only labels or limits have changed
#         results/qc/{cohort}.samples.tsv         call rate, heterozygosity, kept or not
#         results/qc/{cohort}.sites.tsv           genotype counts, frequency, call rate, Hardy-Weinberg
#         results/qc/{cohort}.populations.tsv     groups tested for Hardy-Weinberg, and for what
#
# Samples that the sheet excludes when a cohort is decoded are left out. To exclude one later does not
# decode its cohort again; a sample that comes back does.

#: The genome that alleles are turned to, if the configuration names one.
GENOME_FILES = [CONFIG["qc"]["fasta"]] if CONFIG["qc"]["fasta"] else []
#: Keys of `qc` that decide which samples are kept.
SAMPLE_LIMITS = ["min_sample_call_rate", "max_heterozygosity_sd"]
SAMPLE_LIMITS += ["sex_mismatch", "max_mendel_rate"]
#: What `cohort.contigs.genome_of_cohorts` takes beside files.
GENOME = {"build": CONFIG["qc"]["build"], "report": CONFIG["qc"]["assembly_report"]}
#: What a cohort's decoded files are known by.
RAW = "results/cohorts/{cohort}/raw.json"


TARGETS["ingest"] = [
    expand(RAW, cohort=COHORTS),
]


rule ingest_cohort:
    input:
        lambda wildcards: cohort_files(STUDY, wildcards.cohort),
        GENOME_FILES,
    output:
        about=update(RAW),  # it stays until it is known whether to decode again
        sites="results/qc/{cohort}.sites.tsv",
        samples="results/qc/{cohort}.samples.tsv",
        populations="results/qc/{cohort}.populations.tsv",
    log:
        "logs/ingest_cohort/{cohort}.log",
    benchmark:
        "benchmarks/ingest_cohort/{cohort}.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: PER_COHORT
    resources:
        mem_mb=ingest_memory,
        runtime=ingest_minutes,
    params:
        source=lambda wildcards: described_sources(STUDY, wildcards.cohort),
        decoded=decoded_from,
        sheet=CONFIG["samples"],
        rows=rows_of_cohort,
        limits={name: CONFIG["qc"][name] for name in SAMPLE_LIMITS},
        x_contigs=CONFIG["contigs"]["x"],
        exclude_contigs=CONFIG["contigs"]["exclude"],
        genome=GENOME,
        key=assembly_key,
        code=code_of("ingest_cohort"),
    message:
        "Decode cohort {wildcards.cohort} from {params.source}, and control its quality"
    script:
        "../scripts/cohort/ingest_cohort.py"


# The table of counts at each filter; what cohorts differ in.
#
# needs   results/cohorts/{cohort}/*, results/qc/{cohort}.*, results/panel/*, the sample sheet
# gives   results/qc/summary.tsv            counts at each step, all cohorts and the panel
#         results/qc/drift.tsv              drift of each cohort from the panel
#         results/qc/artefacts.tsv .json    sites at which one cohort was genotyped otherwise
#         results/qc/differential_missing.tsv .json  sites where missing calls differ between founder
#                                           cohorts, or cases and controls; if the study has them
#         results/impute/evaluation.tsv     accuracy of the imputation at hidden genotypes

#: Identical samples, if the study requests the search.
IDENTITY = ["results/compare/identity.tsv"] if "identity" in CONFIG["compare"]["analyses"] else []

SCANS_SOME = CONFIG["epistasis"]["order"] or CONFIG["epistasis"]["sets"]
#: Phenotypes of cases and controls; "" stands for `phenotype` alone.
CASE_CONTROL = [
    phenotype
    for phenotype in (phenotypes_of(CONFIG["epistasis"]) if SCANS_SOME else [""])
    if case_control(of_phenotype(STUDY.samples, phenotype, CONFIG["samples"]), CONFIG["samples"])
    is not None
]
#: Cohorts whose missing calls are compared: newcomers only where they have cases and controls.
MISSING_COHORTS = COHORTS if CASE_CONTROL else STUDY.founders
#: Comparisons of missing calls, if there are groups to compare, and their cohorts.
MISSING_COMPARED = (
    multiext("results/qc/differential_missing", ".tsv", ".json")
    if STUDY.ploidy <= 2 and (CASE_CONTROL or len(STUDY.founders) > 1)
    else []
)
MISSING_OF = MISSING_COHORTS if MISSING_COMPARED else []


TARGETS["qc"] = [
    expand(
        "results/qc/{cohort}.{table}.tsv",
        cohort=COHORTS,
        table=["sites", "samples", "populations"],
    ),
    "results/qc/summary.tsv",
    "results/qc/drift.tsv",
    multiext("results/qc/artefacts", ".tsv", ".json"),
    MISSING_COMPARED,
]


rule summarize_quality:
    input:
        identity=IDENTITY,
        sites=expand("results/qc/{cohort}.sites.tsv", cohort=COHORTS),
        ingest=expand(RAW, cohort=COHORTS),
        samples=expand("results/qc/{cohort}.samples.tsv", cohort=COHORTS),
        populations=expand("results/qc/{cohort}.populations.tsv", cohort=COHORTS),
        encode=expand("results/cohorts/{cohort}/planes.json", cohort=COHORTS),
        counts="results/panel/counts.json",
        panel="results/panel/sites.tsv",
        beds=expand("results/cohorts/{cohort}/genotypes.bed", cohort=COHORTS),
        rest=expand("results/cohorts/{cohort}/genotypes.{end}", cohort=COHORTS, end=["bim", "fam"]),
        imputed=evaluation_parts,
    output:
        summary="results/qc/summary.tsv",
        drift="results/qc/drift.tsv",
        artefacts=multiext("results/qc/artefacts", ".tsv", ".json"),
        missing=MISSING_COMPARED,
        accuracy=EVALUATION,
        evaluated=["results/impute/evaluation/row.json"] if EVALUATES_MODE else [],
    log:
        "logs/summarize_quality.log",
    benchmark:
        "benchmarks/summarize_quality.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: SOME
    resources:
        # Counts of every site and cohort, genotypes of sites that tell ancestry; the panel is read
        # into memory. Where the mode is evaluated, genotypes of a contig too.
        mem_mb=memory(1000, mb=12 if EVALUATES_MODE else 8, decoded=EVALUATES_MODE),
        runtime=minutes(1, mb=1 / 30, decoded=EVALUATES_MODE),
    params:
        sheet=CONFIG["samples"],
        rows=(
            STUDY.digest_of(None, *(phenotype or "phenotype" for phenotype in CASE_CONTROL))
            if CASE_CONTROL
            else ""
        ),
        phenotypes=CASE_CONTROL,
        cohorts=COHORTS,
        compared=MISSING_OF,
        founders=STUDY.founders,
        absent=[cohort_absent(STUDY, cohort) for cohort in COHORTS],
        ploidy=STUDY.ploidy,
        evaluation=dict(methods=IMPUTE["evaluate"], seed=CONFIG["seed"]),
        tile_code=lambda wildcards: digests.tile_code("evaluation") if EVALUATES_MODE else "",
        code=code_of("summarize_quality"),
    message:
        (
            "Summarize filters, drift, artefacts, missing calls, and accuracy of the imputation"
            if EVALUATION
            else "Summarize filters, drift from the panel, artefacts and missing calls of cohorts"
        )
    script:
        "../scripts/cohort/summarize_quality.py"


# The panel: the frozen list of sites, defined by the founders only.
#
# needs   results/qc/{founder}.sites.tsv .samples.tsv, results/cohorts/{founder}/raw.json
# gives   results/panel/sites.tsv     the panel, with its content digest in the first line
#         results/panel/further.tsv   sites that vary among the founders and fail frequency or LD
#                                     alone, if populations are described
#         results/panel/counts.json   sites left after each filter; build and roles of contigs

LD_PRUNE = CONFIG["panel"]["ld_prune"]
#: Sites that only statistics of populations read; none where neither frequency nor LD decides.
FURTHER_SITES = (
    ["results/panel/further.tsv"]
    if CONFIG["population"]["analyses"] and (CONFIG["panel"]["min_maf"] > 0 or LD_PRUNE)
    else []
)
PANEL_REGIONS = [path for key in ("include", "exclude") if (path := CONFIG["panel"][key])]


TARGETS["panel"] = [
    "results/panel/sites.tsv",
]


rule build_panel:
    input:
        tables=expand("results/qc/{cohort}.sites.tsv", cohort=STUDY.founders),
        about=expand(RAW, cohort=STUDY.founders),
        samples=expand("results/qc/{cohort}.samples.tsv", cohort=STUDY.founders),
    output:
        sites="results/panel/sites.tsv",
        counts="results/panel/counts.json",
        further=FURTHER_SITES,
    log:
        "logs/build_panel.log",
    benchmark:
        "benchmarks/build_panel.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: 8  # nothing else can run
    resources:
        # LD pruning reads genotypes; the other filters need only counts.
        mem_mb=memory(mb=6, decoded=bool(LD_PRUNE)),
        runtime=minutes(mb=1 / 200, decoded=bool(LD_PRUNE)),
    params:
        founders=STUDY.founders,
        absent=[cohort_absent(STUDY, cohort) for cohort in STUDY.founders],
        filters=CONFIG["panel"]
        | {"exclude_contigs": CONFIG["contigs"]["exclude"]}
        | ({"one_per_position": True} if "multiallelic" in CONFIG["sites"]["classes"] else {}),
        genome=GENOME,
        key=assembly_key,
        regions=lambda wildcards: file_key(PANEL_REGIONS),
        code=code_of(
            "build_panel",
            without=None if LD_PRUNE else ("cohort/define_panel.py", "prune_founders"),
        ),
    message:
        "Define the panel from the founders: {params.founders}"
    script:
        "../scripts/cohort/build_panel.py"


# Encode each cohort on the panel: PLINK files of called genotypes, and bit-planes.
#
# needs   results/cohorts/{cohort}/raw.*, results/qc/{cohort}.samples.tsv, results/panel/sites.tsv,
#         results/impute/{cohort}/*.npy if Beagle imputes
# gives   results/cohorts/{cohort}/genotypes.bed .bim .fam   called genotypes, variant-major
#         results/cohorts/{cohort}/planes.npy .json          bit-planes, sample-major
#         results/cohorts/{cohort}/reference.npy             which sites that its file lacks were read
#                                                            as homozygous REF; if there are any


TARGETS["encode"] = [
    expand("results/cohorts/{cohort}/planes.npy", cohort=COHORTS),
]


rule encode_cohort:
    input:
        raw=RAW,
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
    threads: PER_COHORT
    resources:
        # Planes are written through a memory map; the panel and the .bim are read into memory.
        mem_mb=memory(300, mb=2, decoded=True),
        runtime=minutes(mb=1 / 200, decoded=True),
    params:
        impute=CONFIG["impute"]["method"],
        absent=absent_sites,
        code=code_of("encode_cohort"),
    message:
        "Encode cohort {wildcards.cohort} on the panel"
    script:
        "../scripts/cohort/encode_cohort.py"
