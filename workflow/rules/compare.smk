# SNP comparisons: kinship, identity, contamination; LD and pruning; queries.
#
# needs   results/cohorts/{cohort}/planes.npy .json, genotypes.*, results/panel/sites.tsv
# gives   results/compare/tiles/{a}__{b}.*.tsv   close pairs, best matches, contamination of a pair
#         results/compare/kinship.tsv            close pairs of the study, with degrees
#         results/compare/identity.tsv           best match of each sample in its own and all earlier
#         results/compare/mixture.tsv            samples that hold another's alleles too
#         results/panel/unrelated.tsv            founders that define the axes of the PCA

COMPARE = CONFIG["compare"]
MAX_KINSHIP = CONFIG["panel"]["max_kinship"]
COMPARISONS = ["kinship", "identity", "mixture"]


def tiles_of(kind, pairs):
    return [f"results/compare/tiles/{a}__{b}.{kind}.tsv" for a, b in pairs]


rule compare:
    input:
        expand("results/compare/{kind}.tsv", kind=COMPARISONS),


rule compare_cohorts:
    input:
        a=multiext("results/cohorts/{a}/planes", ".npy", ".json"),
        b=multiext("results/cohorts/{b}/planes", ".npy", ".json"),
        panel="results/panel/sites.tsv",
    output:
        kinship="results/compare/tiles/{a}__{b}.kinship.tsv",
        identity="results/compare/tiles/{a}__{b}.identity.tsv",
        mixture="results/compare/tiles/{a}__{b}.mixture.tsv",
    log:
        "logs/compare_cohorts/{a}__{b}.log",
    benchmark:
        "benchmarks/compare_cohorts/{a}__{b}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # Counts of a block of samples and their kinships; the planes are mapped, not read whole.
        mem_mb=lambda wildcards, input, attempt: memory(700 + input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(
            input_mb(input.a[:1]) * n_samples(wildcards.b) / 5e4, attempt
        ),
        gpu=GPUS,
    params:
        limits=dict(
            # A tile serves the study's table and the choice of the unrelated founders.
            min_kinship=min(COMPARE["kinship"]["min_kinship"], MAX_KINSHIP or 1.0),
            top=COMPARE["identity"]["top"],
            max_mismatch=COMPARE["identity"]["max_mismatch"],
            error_rate=COMPARE["identity"]["error_rate"],
            max_absent=COMPARE["mixture"]["max_absent"],
            dropout=COMPARE["mixture"]["dropout"],
            drop_in=COMPARE["mixture"]["drop_in"],
            min_called=CONFIG["distance"]["min_called"],
        ),
        device=CONFIG["device"],
        code=code_of("compare/cohorts"),
    message:
        "Kinship and identity {wildcards.a} x {wildcards.b}"
    script:
        "../scripts/compare_cohorts.py"


rule join_comparisons:
    input:
        kinship=tiles_of("kinship", STUDY.pairs()),
        identity=tiles_of("identity", STUDY.pairs()),
        mixture=tiles_of("mixture", STUDY.pairs()),
    output:
        kinship="results/compare/kinship.tsv",
        identity="results/compare/identity.tsv",
        mixture="results/compare/mixture.tsv",
    log:
        "logs/join_comparisons.log",
    benchmark:
        "benchmarks/join_comparisons.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(200 + 10 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(input_mb(input) / 50, attempt),
    params:
        min_kinship=COMPARE["kinship"]["min_kinship"],
        top=COMPARE["identity"]["top"],
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(None, "sex", "population"),
        order=COHORTS,
        code=code_of("compare/cohorts", "compare/kinship"),
    message:
        "Tables of relatives, identical samples and contamination"
    script:
        "../scripts/join_comparisons.py"


rule choose_unrelated:
    input:
        tiles=tiles_of(
            "kinship", [(a, b) for a, b in STUDY.pairs() if {a, b} <= set(STUDY.founders)]
        ),
        fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=STUDY.founders),
    output:
        "results/panel/unrelated.tsv",
    log:
        "logs/choose_unrelated.log",
    benchmark:
        "benchmarks/choose_unrelated.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(200 + 10 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(input_mb(input) / 50, attempt),
    params:
        founders=STUDY.founders,
        max_kinship=MAX_KINSHIP,
        code=code_of("compare/kinship"),
    message:
        "Unrelated founders, which define the axes"
    script:
        "../scripts/choose_unrelated.py"
