# Statistics of populations, and structure within the founders.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/panel/*, the sample sheet
# gives   results/population/*

from popdesic.population.options import block_of, sizes_of

# Statistics of populations: diversity, differentiation, f-statistics, runs of homozygosity.
#
# needs   results/cohorts/{cohort}/planes.npy .json, results/panel/sites.tsv, unrelated.tsv,
#         results/panel/further.tsv, and for its sites results/cohorts/{cohort}/raw.* and
#         results/qc/{cohort}.samples.tsv,
#         results/compare/tiles/{cohort}/row.json of newcomers, the sample sheet
# gives   results/population/cohorts/row.json   list of the counts of each cohort, which lie beside
#                                               it and stay when others arrive
#         results/population/samples.tsv        heterozygosity, F and F_ROH of every sample
#         results/population/populations.tsv, spectrum.tsv, summary.json
#         results/population/pairs.tsv, blocks.tsv, tree.nwk         between populations
#         results/population/f3.tsv, f4.tsv, f2_blocks.rds           f-statistics
#         results/population/runs.tsv, consensus.tsv                 runs of homozygosity
#         results/population/local_pca.tsv .json                     windows of the genome, by
#                                               their principal components (founders alone);
#                                               ancestry proportions: below
#         results/figures/population_*

POPULATION = CONFIG["population"]
POPULATION_ANALYSES = POPULATION["analyses"]
POPULATION_FIGURES = figures_by("measure_population")
#: Tables of each analysis; those of diversity are part of every other.
POPULATION_TABLES = [
    f"results/population/{name}"
    for analysis, names in {
        "diversity": ["summary.json", "samples.tsv", "populations.tsv", "spectrum.tsv"],
        "differentiation": ["pairs.tsv", "blocks.tsv", "tree.nwk"],
        "f_statistics": ["f3.tsv", "f4.tsv", "f2_blocks.rds"],
        "runs": ["runs.tsv", "consensus.tsv"],
    }.items()
    if analysis in POPULATION_ANALYSES or (analysis == "diversity" and POPULATION_ANALYSES)
    for name in names
]
#: A site of the panel's table takes about 40 bytes.
N_POPULATIONS = len(sizes_of(STUDY.samples, POPULATION["column"]))
#: Windows of the genome; newcomers do not change them.
LOCAL_TABLES = (
    ["results/population/local_pca.tsv", "results/population/local_pca.json"]
    if "local" in POPULATION_ANALYSES
    else []
)
#: Haplotype statistics of the founders' populations; newcomers do not change them.
SWEEP_TABLES = (
    multiext(
        "results/population/sweep_",
        *("sites.tsv.gz", "pairs.tsv.gz", "windows.tsv", "summary.json"),
    )
    if "sweeps" in POPULATION_ANALYSES
    else []
)
#: Cohorts whose haplotypes are read for them.
SWEPT = STUDY.founders if SWEEP_TABLES else []
#: Ancestry proportions of all samples, and how they were fitted; newcomers change only the first.
ANCESTRY_TABLES = (
    [
        "results/population/ancestry.tsv",
        "results/population/ancestry_validation.tsv",
        "results/population/ancestry.json",
        "results/population/ancestry_over_k.tsv",
    ]
    if "ancestry" in POPULATION_ANALYSES
    else []
)
SEEKS_RUNS = "runs" in POPULATION_ANALYSES
#: Megabytes of planes from which a GPU counts: 11 G genotypes, which take the job's two
#: threads 1.5 s (docs/population.md), as long as a job's first use of a GPU.
GPU_COUNTED_MB = 4000
#: A genetic map is only read for blocks in cM.
BLOCK = block_of(CONFIG)
BLOCK_MAP = CONFIG["genetic_map"] if BLOCK.lower().endswith("cm") else None
POPULATION_FILES = [*(MAP_FILES if BLOCK_MAP else []), *filter(None, [POPULATION["mask"]])]


TARGETS["population"] = [
    POPULATION_TABLES,
    LOCAL_TABLES,
    SWEEP_TABLES,
    ANCESTRY_TABLES,
    expand("results/figures/{name}.{end}", name=POPULATION_FIGURES, end=["svg", "png"]),
]


if POPULATION_ANALYSES:

    rule measure_population:
        input:
            planes=expand("results/cohorts/{cohort}/planes.npy", cohort=COHORTS),
            about=expand("results/cohorts/{cohort}/planes.json", cohort=COHORTS),
            panel="results/panel/sites.tsv",
            panel_counts="results/panel/counts.json",
            # Decoded genotypes of sites that are not on the panel.
            further=FURTHER_SITES,
            qc=expand("results/qc/{cohort}.samples.tsv", cohort=COHORTS if FURTHER_SITES else []),
            raw=expand(RAW, cohort=COHORTS if FURTHER_SITES else []),
            # Relatives of others are left out of populations.
            unrelated=["results/panel/unrelated.tsv"] if MAX_KINSHIP else [],
            rows=expand(ROW_COMPARED, row=STUDY.newcomers if MAX_KINSHIP else []),
            # What figures show besides.
            windows=[*LOCAL_TABLES, *SWEEP_TABLES[2:]],
            fitted=ANCESTRY_TABLES[1:],
            ancestry=(
                expand("results/population/ancestry/cohorts/{cohort}.tsv", cohort=COHORTS)
                if ANCESTRY_TABLES
                else []
            ),
            # Bars stand beside the PCA.
            pca=["results/embedding/coordinates/pca.tsv"] if ANCESTRY_TABLES else [],
        output:
            "results/population/cohorts/row.json",
            **{Path(path).stem: path for path in POPULATION_TABLES},
            ancestry=ANCESTRY_TABLES[:1],
            svg=reported("measure_population"),
            png=expand("results/figures/{name}.png", name=POPULATION_FIGURES),
        log:
            "logs/measure_population.log",
        benchmark:
            "benchmarks/measure_population.tsv"
        conda:
            GPU_CONDA
        threads: SOME
        resources:
            # Counts of all cohorts at once, as int32; a part of the memory-mapped planes.
            mem_mb=memory(900, samples=0.02, mb=4 + 2 * N_POPULATIONS, files="panel"),
            runtime=minutes(3, mb=1 / 100),
            gpu=counting_gpus,
        params:
            counted=dict(
                column=POPULATION["column"],
                x_contigs=CONFIG["contigs"]["x"],
            ),
            max_kinship=MAX_KINSHIP,
            runs=POPULATION["roh"] if SEEKS_RUNS else None,
            sheet=CONFIG["samples"],
            absent={cohort: cohort_absent(STUDY, cohort) for cohort in COHORTS},
            labels={c: STUDY.digest_of(c, POPULATION["column"], "ploidy") for c in COHORTS},
            device=CONFIG["device"],
            tile_code=lambda wildcards: digests.tile_code("population"),
            figures=list(POPULATION_FIGURES),
            options=dict(
                analyses=[
                    name
                    for name in POPULATION_ANALYSES
                    if name not in ("local", "sweeps", "ancestry")
                ],
                block=POPULATION["block"],
                **{k: POPULATION[k] for k in ("mask", "f4")},
                seed=CONFIG["seed"],
                genetic_map=BLOCK_MAP,
            ),
            files=population_key,
            code=code_of("measure_population"),
        message:
            "Count genotypes by population, estimate diversity and differentiation, and draw them"
        script:
            "../scripts/population/measure_population.py"


# What rests on the founders alone: windows of the genome, haplotypes, ancestry proportions.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/panel/sites.tsv, unrelated.tsv,
#         results/embedding/axes.npz, the sample sheet; for haplotype statistics
#         results/impute/{cohort}/haplotypes.npz
# gives   results/population/local_pca.tsv .json         windows by their principal components
#         results/population/sweep_sites.tsv.gz, sweep_pairs.tsv.gz, sweep_windows.tsv,
#         sweep_summary.json                             haplotype statistics of populations
#         results/population/ancestry.tsv                proportions of every sample
#         results/population/ancestry_validation.tsv     error of each number of components
#         results/population/ancestry_over_k.tsv         proportions of founders for each K
#         results/population/ancestry.json               what was fitted, from which seeds
#         results/population/ancestry/model.npz          frequencies of the components
#         results/population/ancestry/cohorts/{cohort}.tsv

if LOCAL_TABLES or SWEEP_TABLES:

    rule measure_local_structure:
        input:
            genotypes=expand(
                "results/cohorts/{cohort}/genotypes.bed",
                cohort=STUDY.founders if LOCAL_TABLES else [],
            ),
            haplotypes=expand("results/impute/{cohort}/haplotypes.npz", cohort=SWEPT),
            fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=SWEPT),
            reference=FROZEN if SWEPT else [],
            panel="results/panel/sites.tsv",
            counts="results/panel/counts.json",
            # Relatives share long haplotypes, which would be what windows show.
            unrelated=(["results/panel/unrelated.tsv"] if CONFIG["close_kinship"] else []),
        output:
            table=LOCAL_TABLES,
            sweeps=SWEEP_TABLES,
        log:
            "logs/measure_local_structure.log",
        benchmark:
            "benchmarks/measure_local_structure.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: SOME if SWEPT else 1
        resources:
            # Components of at most 2 000 windows and 1 000 people.
            mem_mb=sweeping_memory if SWEPT else memory(600, files="panel"),
            runtime=sweeping_minutes if SWEPT else minutes(2, mb=1 / 20),
        params:
            seed=CONFIG["seed"],
            founders=SWEPT,
            sheet=CONFIG["samples"],
            column=POPULATION["column"],
            labels={c: STUDY.digest_of(c, POPULATION["column"]) for c in SWEPT},
            key=reference_key if SWEPT else None,
            x_contigs=CONFIG["contigs"]["x"],
            code=code_of("measure_local_structure"),
        message:
            "Compare windows along the genome"
        script:
            "../scripts/population/measure_local_structure.py"


if ANCESTRY_TABLES:

    rule fit_ancestry:
        input:
            genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=STUDY.founders),
            panel="results/panel/sites.tsv",
            counts="results/panel/counts.json",
            axes="results/embedding/axes.npz",
        output:
            model="results/population/ancestry/model.npz",
            validation=ANCESTRY_TABLES[1],
            summary=ANCESTRY_TABLES[2],
            over_k=ANCESTRY_TABLES[3],
        log:
            "logs/fit_ancestry.log",
        benchmark:
            "benchmarks/fit_ancestry.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 8
        resources:
            # Genotypes of the founders take four times their file, masks of them as much again, in
            # this process and in eight of fastmixture.
            mem_mb=memory(800, mb=60, files="genotypes"),
            runtime=minutes(5, mb=10, files="genotypes"),
        params:
            options=dict(components=POPULATION["ancestry"]["components"], seed=CONFIG["seed"]),
            # Reruns if fastmixture is installed later, or another version of it.
            version=version_of_fastmixture,
            x_contigs=CONFIG["contigs"]["x"],
            code=code_of("fit_ancestry"),
        message:
            "Fit ancestry components to the unrelated founders"
        script:
            "../scripts/population/fit_ancestry.py"

    rule project_ancestry:
        input:
            genotypes=multiext("results/cohorts/{cohort}/genotypes", ".bed", ".fam"),
            model="results/population/ancestry/model.npz",
        output:
            "results/population/ancestry/cohorts/{cohort}.tsv",
        log:
            "logs/project_ancestry/{cohort}.log",
        benchmark:
            "benchmarks/project_ancestry/{cohort}.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=memory(500, mb=12),
            runtime=minutes(2, mb=1),
        params:
            column=POPULATION["column"],
            sheet=CONFIG["samples"],
            rows=rows_of_populations,
            code=code_of("project_ancestry"),
        message:
            "Ancestry proportions of {wildcards.cohort}"
        script:
            "../scripts/population/project_ancestry.py"
