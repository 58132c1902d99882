# Query profiles and mixtures, searched in all cohorts.
#
# needs   the files that compare.identity.query and compare.mixture.profiles name,
#         results/cohorts/{cohort}/planes.npy .json, results/compare/kinship.json
# gives   results/compare/{kind}/planes.npy .json   the profiles on the panel
#         results/compare/identity.query.tsv, mixture.query.tsv

from popdesic.cohort.sources import source_files

#: Files of query profiles and of mixtures, if the study names any.
PROFILES = {"identity": COMPARE["identity"]["query"], "mixture": COMPARE["mixture"]["profiles"]}
PROFILES = {kind: path for kind, path in PROFILES.items() if path}


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
        mem_mb=memory(600, mb=4),
        runtime=minutes(mb=1 / 100),
    params:
        source=lambda wildcards: PROFILES[wildcards.kind],
        key=lambda wildcards: source_key([PROFILES[wildcards.kind]]),
        haploid=CONFIG["encode"]["haploid"],
        excluded_contigs=CONFIG["panel"]["exclude_contigs"],
        filters=CONFIG["ingest"],
        code=code_of("place_profiles"),
    message:
        "Encode the profiles of {params.source} on the panel"
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
        GPU_CONDA
    threads: 8
    resources:
        # The planes are memory-mapped and read in blocks.
        mem_mb=memory(1000, mb=1, files="profiles"),
        runtime=minutes(mb=1 / 500),
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
        "Search the profiles ({wildcards.kind}) in all cohorts"
    script:
        "../scripts/search_profiles.py"
