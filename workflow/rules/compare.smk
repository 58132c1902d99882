# SNP comparisons: kinship, identity, contamination; LD and pruning; queries.
#
# needs   results/cohorts/{cohort}/planes.npy .json, genotypes.*, results/panel/sites.tsv
# gives   results/compare/kinship.json           what kinship and identity tell apart on the panel
#         results/compare/tiles/{a}__{b}.*.tsv   close pairs, best matches, contamination of a pair
#         results/compare/kinship.tsv            close pairs of the study, with degrees
#         results/compare/identity.tsv           best match of each sample in its own and all earlier
#         results/compare/mixture.tsv            samples that hold another's alleles too
#         results/panel/unrelated.tsv            founders that define the axes of the PCA
#         results/compare/identity.query.tsv, mixture.query.tsv   where queries are named
#         results/compare/ld.tsv.gz              pairs of sites in LD: r2, D, D'
#         results/compare/decay.tsv, region.npz  mean r2 by distance, r2 of one region
#         results/figures/kinship.*, ld_decay.*, ld_region.*
#         results/compare/prune.in, prune.out    sites that LD pruning keeps and removes

from popdesic.compare.kinship import FIRST
from popdesic.cohort.sources import source_files

COMPARE = CONFIG["compare"]
MAX_KINSHIP = CONFIG["embedding"]["max_kinship"]
COMPARISONS = [name for name in COMPARE["analyses"] if name != "ld"]
#: Files of query profiles and of mixtures, where the study names them.
PROFILES = {
    kind: path
    for kind, path in [
        ("identity", COMPARE["identity"]["query"]),
        ("mixture", COMPARE["mixture"]["profiles"]),
    ]
    if path
}
LD_FILES = dict(
    pairs="results/compare/ld.tsv.gz",
    decay="results/compare/decay.tsv",
    region="results/compare/region.npz",
    kept="results/compare/prune.in",
    removed="results/compare/prune.out",
)


TILES = {
    kind: [f"results/compare/tiles/{a}__{b}.{kind}.tsv" for a, b in STUDY.pairs()]
    for kind in ["kinship", "identity", "mixture"]
}
#: What the founders say that the panel's sites can tell, for every verdict on relatives.
RESOLUTION = "results/compare/kinship.json"
#: Pairs of founders alone: what a newcomer must not change.
FOUNDER_TILES = [
    f"results/compare/tiles/{a}__{b}.kinship.tsv"
    for a, b in STUDY.pairs()
    if {a, b} <= set(STUDY.founders)
]
#: Figures that the chosen analyses allow: their tables and titles.
COMPARE_FIGURES = figures_by("draw_comparisons")
#: What each of them is drawn from, by its `source`.
COMPARE_TABLES = {
    "kinship": "results/compare/kinship.tsv",
    "decay": LD_FILES["decay"],
    "region": LD_FILES["region"],
}


rule compare:
    input:
        expand("results/compare/{kind}.tsv", kind=COMPARISONS),
        RESOLUTION if COMPARISONS or MAX_KINSHIP else [],
        LD_FILES.values() if "ld" in COMPARE["analyses"] else [],
        [f"results/compare/{kind}.query.tsv" for kind in PROFILES],
        [f"results/figures/{name}.{end}" for name in COMPARE_FIGURES for end in ["svg", "png"]],


rule measure_resolution:
    input:
        planes=expand("results/cohorts/{cohort}/planes.npy", cohort=STUDY.founders),
        about=expand("results/cohorts/{cohort}/planes.json", cohort=STUDY.founders),
        panel="results/panel/sites.tsv",
    output:
        RESOLUTION,
    log:
        "logs/measure_resolution.log",
    benchmark:
        "benchmarks/measure_resolution.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 2
    resources:
        # 300 founders at most: their planes, and counts of all their pairs, which take a CPU half
        # a second.
        mem_mb=lambda wildcards, input, attempt: memory(500 + input_mb([input.panel]), attempt),
        runtime=lambda wildcards, attempt: minutes(0.2, attempt),
    params:
        max_mismatch=COMPARE["identity"]["max_mismatch"],
        code=code_of("measure_resolution"),
    message:
        "What kinship and identity can tell apart on the panel"
    script:
        "../scripts/measure_resolution.py"


rule compare_cohorts:
    input:
        resolution=RESOLUTION,
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
            # A tile serves the study's table, the choice of the unrelated founders, and geodesics
            # that no path of relatives may shorten.
            min_kinship=min(COMPARE["kinship"]["min_kinship"], MAX_KINSHIP or 1.0, FIRST),
            top=COMPARE["identity"]["top"],
            error_rate=COMPARE["identity"]["error_rate"],
            max_absent=COMPARE["mixture"]["max_absent"],
            dropout=COMPARE["mixture"]["dropout"],
            drop_in=COMPARE["mixture"]["drop_in"],
            min_called=CONFIG["distance"]["min_called"],
        ),
        device=CONFIG["device"],
        code=code_of("compare_cohorts"),
    message:
        "Kinship and identity {wildcards.a} x {wildcards.b}"
    script:
        "../scripts/compare_cohorts.py"


rule join_comparisons:
    input:
        **TILES,
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
        code=code_of("join_comparisons"),
    message:
        "Tables of relatives, identical samples and contamination"
    script:
        "../scripts/join_comparisons.py"


rule choose_unrelated:
    input:
        resolution=RESOLUTION,
        tiles=FOUNDER_TILES,
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
        code=code_of("choose_unrelated"),
    message:
        "Unrelated founders, which define the axes"
    script:
        "../scripts/choose_unrelated.py"


rule measure_ld:
    input:
        genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=STUDY.founders),
        panel="results/panel/sites.tsv",
        unrelated=["results/panel/unrelated.tsv"] if MAX_KINSHIP else [],
        # Only haplotypes need the cohorts' own files and a map.
        phase=(
            [cohort_files(STUDY, c) for c in STUDY.founders]
            if COMPARE["ld"]["phase"] == "phased"
            else []
        ),
        map=COMPARE["ld"]["map"] or [],
    output:
        **LD_FILES,
    log:
        "logs/measure_ld.log",
    benchmark:
        "benchmarks/measure_ld.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # One contig's genotypes as bytes (four times the .bed) and as planes.
        mem_mb=lambda wildcards, input, attempt: memory(700 + 8 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(input_mb(input) / 5, attempt),
        gpu=GPUS,
    params:
        sources=lambda wildcards: [
            cohort_sources(STUDY, cohort)
            for cohort in STUDY.founders
            if COMPARE["ld"]["phase"] == "phased"
        ],
        options=COMPARE["ld"],
        key=lambda wildcards: file_key(filter(None, [COMPARE["ld"]["map"]])),
        device=CONFIG["device"],
        code=code_of("measure_ld"),
    message:
        "LD between the panel's sites"
    script:
        "../scripts/measure_ld.py"


rule place_profiles:
    input:
        source=lambda wildcards: source_files(PROFILES[wildcards.kind]),
        panel="results/panel/sites.tsv",
    output:
        multiext("results/compare/{kind}/planes", ".npy", ".json"),
    log:
        "logs/place_profiles/{kind}.log",
    benchmark:
        "benchmarks/place_profiles/{kind}.tsv"
    wildcard_constraints:
        kind="identity|mixture",
    conda:
        "../../envs/popdesic.yaml"
    threads: 2
    resources:
        mem_mb=lambda wildcards, input, attempt: memory(600 + 4 * input_mb(input), attempt),
        runtime=lambda wildcards, input, attempt: minutes(input_mb(input) / 100, attempt),
    params:
        source=lambda wildcards: PROFILES[wildcards.kind],
        key=lambda wildcards: source_key([PROFILES[wildcards.kind]]),
        haploid=CONFIG["encode"]["haploid"],
        code=code_of("place_profiles"),
    message:
        "Profiles of {params.source} on the panel"
    script:
        "../scripts/place_profiles.py"


rule search_profiles:
    input:
        profiles=multiext("results/compare/{kind}/planes", ".npy", ".json"),
        resolution=RESOLUTION,
        planes=expand("results/cohorts/{cohort}/planes.npy", cohort=COHORTS),
        about=expand("results/cohorts/{cohort}/planes.json", cohort=COHORTS),
        panel="results/panel/sites.tsv",
    output:
        "results/compare/{kind}.query.tsv",
    log:
        "logs/search_profiles/{kind}.log",
    benchmark:
        "benchmarks/search_profiles/{kind}.tsv"
    wildcard_constraints:
        kind="identity|mixture",
    conda:
        "../../envs/popdesic.yaml"
    threads: 8
    resources:
        # The planes are mapped and read in blocks.
        mem_mb=lambda wildcards, input, attempt: memory(1000 + input_mb(input.profiles), attempt),
        runtime=lambda wildcards, input, attempt: minutes(input_mb(input) / 500, attempt),
        gpu=GPUS,
    params:
        identity=dict(
            top=COMPARE["identity"]["query_top"],
            error_rate=COMPARE["identity"]["error_rate"],
        ),
        mixture=dict(
            top=COMPARE["mixture"]["top"],
            contributors=COMPARE["mixture"]["contributors"],
            dropout=COMPARE["mixture"]["dropout"],
            drop_in=COMPARE["mixture"]["drop_in"],
        ),
        min_called=CONFIG["distance"]["min_called"],
        device=CONFIG["device"],
        code=code_of("search_profiles"),
    message:
        "Search of the profiles ({wildcards.kind}) in all cohorts"
    script:
        "../scripts/search_profiles.py"


if COMPARE_FIGURES:

    rule draw_comparisons:
        input:
            **{figure.source: COMPARE_TABLES[figure.source] for figure in COMPARE_FIGURES.values()},
        output:
            svg=reported("draw_comparisons"),
            png=expand("results/figures/{name}.png", name=COMPARE_FIGURES),
        log:
            "logs/draw_comparisons.log",
        benchmark:
            "benchmarks/draw_comparisons.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards, input, attempt: memory(500 + 20 * input_mb(input), attempt),
            runtime=lambda wildcards, attempt: minutes(1, attempt),
        params:
            code=code_of("draw_comparisons"),
        message:
            "Figures of kinship and LD"
        script:
            "../scripts/draw_comparisons.py"
