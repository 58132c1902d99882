# Comparisons of samples: relatives, identity, mixtures, queries; LD of sites.
#
# needs   results/cohorts/{cohort}/*, results/panel/sites.tsv
# gives   results/compare/*, results/panel/unrelated.tsv

from popdesic.relatives.kinship import FIRST as FIRST_DEGREE
from popdesic.core.limits import FEW_RELATED
from popdesic.relatives.options import (
    MOST_SITES,
    identity_error,
    ld_options,
    least_kinship,
    most_mismatch,
    most_related,
)
from popdesic.cohort.sources import source_files

# Comparisons of samples: kinship, identity, contamination. LD, queries and PC-Relate below.
#
# needs   results/cohorts/{cohort}/planes.npy .json, genotypes.fam, results/panel/sites.tsv
# gives   results/compare/kinship.json           resolution of kinship and identity on the panel
#         results/compare/tiles/{row}/row.json   rows of related pairs, best matches, contamination
#         results/compare/tiles/{row}/{other}.*.tsv
#         results/compare/kinship.tsv            related pairs of the study
#         results/compare/kinship_untold.tsv     cohorts in which kinship fails
#         results/compare/identity.tsv           best match of a sample, own or earlier cohorts
#         results/compare/mixture.tsv            samples contaminated by another sample
#         results/panel/unrelated.tsv            founders that define the axes of the PCA
#         results/figures/ld_decay.*, ld_region.*

COMPARE = CONFIG["compare"]
MAX_KINSHIP, MIN_KINSHIP = CONFIG["close_kinship"], least_kinship(CONFIG)
IDENTITY_ERROR = identity_error(CONFIG["error_rate"])
COMPARISONS = [name for name in COMPARE["analyses"] if name not in ("ld", "ibd")]
MOST_RELATED = most_related(CONFIG)
if "pc_relate" in COMPARISONS and n_samples(*COHORTS) > MOST_RELATED:
    COMPARISONS.remove("pc_relate")
    if workflow.is_main_process:
        logger.warning(
            f"PC-Relate is left out: {n_samples(*COHORTS)} samples are more than "
            f"{MOST_RELATED} (distance.dense_limit)."
        )
#: Lists of the tiles of each row: close pairs, best matches, contamination.
ROW_COMPARED = "results/compare/tiles/{row}/row.json"
#: Resolution of the panel, measured on founders; thresholds for every kinship verdict.
RESOLUTION = "results/compare/kinship.json"
#: Rows of founders, which hold pairs of founders only: new cohorts do not change them.
FOUNDER_ROWS = expand(ROW_COMPARED, row=STUDY.founders)
#: Which pairs of samples are written. Tiles feed the study's tables, the choice of unrelated
#: founders, and geodesics that must not pass through relatives.
COMPARE_LIMITS = dict(
    min_kinship=min(MIN_KINSHIP, FIRST_DEGREE),
    error_rate=IDENTITY_ERROR,
    min_called=CONFIG["distance"]["min_called"],
    ploidy=STUDY.ploidy,
)


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
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: MANY
    resources:
        # At most 300 founders: their planes, and counts of all pairs in 64 blocks of sites.
        mem_mb=memory(700, mb=1, files="panel"),
        runtime=minutes(0.2),
    params:
        max_mismatch=most_mismatch(IDENTITY_ERROR),
        code=code_of("measure_resolution"),
    message:
        "Measure the resolution of kinship and identity on the panel"
    script:
        "../scripts/relatives/measure_resolution.py"


# Distances too, so that the planes of two cohorts are read once for all tiles of the pair.
rule measure_row:
    input:
        planes=group_planes,
        # Landmarks are evenly spaced among all founders.
        founders=expand("results/cohorts/{cohort}/planes.json", cohort=STUDY.founders),
        panel="results/panel/sites.tsv",
        resolution=[RESOLUTION] if COMPARED else [],
        leader=group_leader,
    output:
        **({"compared": ROW_COMPARED} if COMPARED else {}),
        distance=ROW_LIST,
    log:
        "logs/measure_row/{row}.log",
    benchmark:
        "benchmarks/measure_row/{row}.tsv"
    priority: FIRST
    conda:
        GPU_CONDA
    threads: BESIDE_GPU
    resources:
        # Counts and kinships of a block of samples, or a tile; the planes are memory-mapped.
        mem_mb=group_memory(700 + FEED_MB, mb=1, **TILE_COST),
        runtime=group_minutes(mb_samples=2e-5),
        gpu=GPUS,
        # A resource, not a parameter: it changes no result and must not trigger reruns.
        host_memory_mb=HOST_MB,
    params:
        store=STUDY.store,
        distance=TILE_OPTIONS,
        limits=COMPARE_LIMITS if COMPARED else None,
        pairs=group_pairs,
        founders=STUDY.founders,
        device=CONFIG["device"],
        code=code_of("measure_row"),
        tile_code=lambda wildcards: digests.tile_code(STUDY.store),
        compare_code=lambda wildcards: digests.tile_code("compare") if COMPARED else "",
    message:
        "Distances and comparisons of {wildcards.row} with the cohorts of its row"
    script:
        "../scripts/relatives/measure_row.py"


rule join_comparisons:
    input:
        expand(ROW_COMPARED, row=COHORTS),
    output:
        kinship="results/compare/kinship.tsv",
        untold="results/compare/kinship_untold.tsv",
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
        mem_mb=memory(500, mb=20),
        runtime=minutes(1, mb=1 / 50),
    params:
        min_kinship=MIN_KINSHIP,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(None, "sex", "population"),
        order=STUDY.listed,
        code=code_of("join_comparisons"),
    message:
        "Join tables of relatives, identical samples and contamination"
    script:
        "../scripts/relatives/join_comparisons.py"


rule choose_unrelated:
    input:
        resolution=RESOLUTION,
        rows=FOUNDER_ROWS,
        fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=STUDY.founders),
    output:
        "results/panel/unrelated.tsv",
    log:
        "logs/choose_unrelated.log",
    benchmark:
        "benchmarks/choose_unrelated.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(200, mb=10),
        runtime=minutes(mb=1 / 50),
    params:
        founders=STUDY.founders,
        max_kinship=MAX_KINSHIP,
        code=code_of("choose_unrelated"),
    message:
        "Choose unrelated founders to define the PCA axes"
    script:
        "../scripts/relatives/choose_unrelated.py"


# PC-Relate: kinship of people of any ancestry, from genotypes and principal components; and one
# verdict on each pair of relatives, from all that was asked for of KING-robust kinship, PC-Relate and
# shared segments.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/panel/*, results/distance/samples.tsv,
#         results/embedding/pca.npy axes.json, results/compare/kinship.tsv .json,
#         results/ibd/pairs.tsv genome.npz
# gives   results/compare/pc_relate.tsv           close pairs by PC-Relate or KING-robust
#         results/compare/pc_relate.samples.tsv   inbreeding of every sample
#         results/compare/pc_relate.json          what was fitted, smallest kinship told
#         results/compare/relatives.tsv           the verdict on each pair
#         results/compare/relatives.json          what the verdicts rest on
#         results/figures/kinship.*, ibd.*, families.*

RELATE_DEVICE = CONFIG["device"] if n_samples(*COHORTS) > FEW_RELATED else "cpu"
BY_ANCESTRY = "pc_relate" in COMPARISONS
BY_KING = BY_ANCESTRY or "kinship" in COMPARISONS
SEEKS_SEGMENTS = "ibd" in COMPARE["analyses"]
#: Degrees of relationship are those of diploids.
BY_SEGMENTS = SEEKS_SEGMENTS and STUDY.ploidy != 1


if BY_KING or BY_SEGMENTS:

    rule relate_samples:
        input:
            genotypes=(
                expand("results/cohorts/{cohort}/genotypes.bed", cohort=COHORTS)
                if BY_ANCESTRY
                else []
            ),
            panel="results/panel/sites.tsv",
            counts="results/panel/counts.json",
            samples=["results/distance/samples.tsv"] if BY_ANCESTRY else [],
            scores=["results/embedding/pca.npy"] if BY_ANCESTRY else [],
            axes=["results/embedding/axes.json"] if BY_ANCESTRY else [],
            king=["results/compare/kinship.tsv"] if BY_KING else [],
            untold=["results/compare/kinship_untold.tsv"] if BY_KING else [],
            resolution=[RESOLUTION] if BY_KING else [],
            unrelated=["results/panel/unrelated.tsv"] if MAX_KINSHIP and BY_ANCESTRY else [],
            segments=["results/ibd/pairs.tsv"] if BY_SEGMENTS else [],
            genome=["results/ibd/genome.npz"] if BY_SEGMENTS else [],
            map=MAP_FILES,
        output:
            pairs=["results/compare/pc_relate.tsv"] if BY_ANCESTRY else [],
            samples=["results/compare/pc_relate.samples.tsv"] if BY_ANCESTRY else [],
            about=["results/compare/pc_relate.json"] if BY_ANCESTRY else [],
            verdict="results/compare/relatives.tsv",
            summary="results/compare/relatives.json",
            svg=reported("relate_samples"),
            png=expand("results/figures/{name}.png", name=figures_by("relate_samples")),
        log:
            "logs/relate_samples.log",
        benchmark:
            "benchmarks/relate_samples.tsv"
        conda:
            GPU_CONDA
        threads: SOME  # a long job beside the chain that the report waits for
        resources:
            # Two sums of each pair; genotypes of passes that are made ahead.
            mem_mb=memory(650, samples=0.05, pairs=10e-6 * BY_ANCESTRY),
            # 2 n**2 m operations at 20 Gflop/s on a CPU.
            runtime=minutes(1, samples=1e-5, pairs=2 * MOST_SITES / 20e9 / 60 * BY_ANCESTRY),
            gpu=GPUS if RELATE_DEVICE != "cpu" and BY_ANCESTRY else 0,
        params:
            device=RELATE_DEVICE,
            founders=STUDY.founders,
            min_kinship=MIN_KINSHIP,
            error_rate=IDENTITY_ERROR,
            genetic_map=CONFIG["genetic_map"],
            x_contigs=CONFIG["contigs"]["x"],
            min_cm=CONFIG["ibd"]["min_cm"],
            key=map_key,
            code=code_of("relate_samples"),
        message:
            "PC-Relate, and one verdict on each pair of relatives"
        script:
            "../scripts/relatives/relate_samples.py"


# Query profiles and mixtures, searched in all cohorts.
#
# needs   the file that compare.query names,
#         results/cohorts/{cohort}/planes.npy .json, results/compare/kinship.json
# gives   results/compare/{kind}/planes.npy .json   the profiles on the panel
#         results/compare/identity.query.tsv, mixture.query.tsv

#: What the profiles of the study's file are searched as, if it names any.
SEARCHED = [kind for kind in ("identity", "mixture") if kind in COMPARISONS and COMPARE["query"]]


rule search_profiles:
    input:
        source=lambda wildcards: source_files(COMPARE["query"]),
        resolution=RESOLUTION,
        planes=expand("results/cohorts/{cohort}/planes.npy", cohort=COHORTS),
        about=expand("results/cohorts/{cohort}/planes.json", cohort=COHORTS),
        panel="results/panel/sites.tsv",
    output:
        table="results/compare/{kind}.query.tsv",
        profiles=multiext("results/compare/{kind}/planes", ".npy", ".json"),
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
        mem_mb=memory(1000, mb=4, files="source"),
        runtime=minutes(1, mb=1 / 100),
        gpu=GPUS,
    params:
        placed=dict(
            haploid=CONFIG["contigs"]["haploid"],
            excluded_contigs=CONFIG["contigs"]["exclude"],
            filters=CONFIG["ingest"] | CONFIG["sites"],
        ),
        source=COMPARE["query"],
        key=lambda wildcards: source_key([COMPARE["query"]]),
        error_rate=IDENTITY_ERROR,
        ploidy=STUDY.ploidy,
        min_called=CONFIG["distance"]["min_called"],
        device=CONFIG["device"],
        code=code_of("search_profiles"),
    message:
        "Search the profiles of {params.source} in all cohorts"
    script:
        "../scripts/relatives/search_profiles.py"


# LD between sites.
#
# needs   results/cohorts/{cohort}/genotypes.bed (or imputed.bed) of the founders,
#         results/panel/*; for haplotypes
#         the founders' own files
# gives   results/compare/ld.tsv.gz              pairs of sites in LD: r2, D, D'
#         results/compare/decay.tsv, region.npz  mean r2 by distance, r2 of one region
#         results/compare/ld_populations.tsv     mean r2 by distance, and between contigs, by population
#         results/compare/prune.in, prune.out    sites that LD pruning keeps and removes
#         results/figures/ld_decay.*, ld_region.*

LD_FILES = dict(
    pairs="results/compare/ld.tsv.gz",
    decay="results/compare/decay.tsv",
    populations="results/compare/ld_populations.tsv",
    region="results/compare/region.npz",
    kept="results/compare/prune.in",
    removed="results/compare/prune.out",
)
#: Founders whose phased input files are needed, for LD between haplotypes.
PHASED = STUDY.founders if COMPARE["ld"]["phase"] == "phased" else []
COMPARE_FIGURES = figures_by("relate_samples") | figures_by("measure_ld")


TARGETS["compare"] = [
    expand("results/compare/{kind}.tsv", kind=COMPARISONS),
    RESOLUTION if COMPARISONS or MAX_KINSHIP else [],
    LD_FILES.values() if "ld" in COMPARE["analyses"] else [],
    [f"results/compare/{kind}.query.tsv" for kind in SEARCHED],
    [f"results/compare/relatives.{end}" for end in ["tsv", "json"] if BY_KING or BY_SEGMENTS],
    [f"results/figures/{name}.{end}" for name in COMPARE_FIGURES for end in ["svg", "png"]],
]


rule measure_ld:
    input:
        genotypes=genotype_files("ld", STUDY.founders),
        panel="results/panel/sites.tsv",
        unrelated=["results/panel/unrelated.tsv"] if MAX_KINSHIP else [],
        # Only haplotype LD needs the cohorts' input files and a map.
        phase=[cohort_files(STUDY, cohort) for cohort in PHASED],
        map=MAP_FILES,
    output:
        **LD_FILES,
        svg=reported("measure_ld"),
        png=expand("results/figures/{name}.png", name=figures_by("measure_ld")),
    log:
        "logs/measure_ld.log",
    benchmark:
        "benchmarks/measure_ld.tsv"
    conda:
        GPU_CONDA
    threads: SOME
    resources:
        # Genotypes of one contig as bytes (four times the .bed) and as planes.
        mem_mb=memory(700, mb=8),
        runtime=minutes(mb=1 / 5),
        gpu=GPUS,
    params:
        sources=phased_sources,
        options=ld_options(CONFIG),
        sheet=CONFIG["samples"],
        labels={c: STUDY.digest_of(c, CONFIG["population"]["column"]) for c in STUDY.founders},
        key=map_key,
        device=CONFIG["device"],
        code=code_of("measure_ld"),
    message:
        "Measure LD between panel sites"
    script:
        "../scripts/relatives/measure_ld.py"
