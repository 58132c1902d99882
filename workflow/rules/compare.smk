# Comparisons of samples: kinship, identity, contamination. LD: ld.smk; queries: profiles.smk;
# PC-Relate: relatedness.smk.
#
# needs   results/cohorts/{cohort}/planes.npy .json, genotypes.fam, results/panel/sites.tsv
# gives   results/compare/kinship.json           resolution of kinship and identity on the panel
#         results/compare/tiles/{row}/row.json   rows of related pairs, best matches, contamination
#         results/compare/tiles/{row}/{other}.*.tsv
#         results/compare/kinship.tsv            related pairs of the study, with degrees
#         results/compare/kinship_untold.tsv     cohorts in which kinship fails
#         results/compare/identity.tsv           best match of a sample, own or earlier cohorts
#         results/compare/mixture.tsv            samples contaminated by another sample
#         results/panel/unrelated.tsv            founders that define the axes of the PCA
#         results/figures/kinship.*, ld_decay.*, ld_region.*

from popdesic.relatives.kinship import FIRST as FIRST_DEGREE

COMPARE = CONFIG["compare"]
MAX_KINSHIP = CONFIG["embedding"]["max_kinship"]
COMPARISONS = [name for name in COMPARE["analyses"] if name != "ld"]
if "pc_relate" in COMPARISONS and n_samples(*COHORTS) > COMPARE["pc_relate"]["max_samples"]:
    COMPARISONS.remove("pc_relate")
    if workflow.is_main_process:
        logger.warning(
            f"PC-Relate is left out: {n_samples(*COHORTS)} samples are more than "
            "compare.pc_relate.max_samples."
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
    min_kinship=min(COMPARE["kinship"]["min_kinship"], MAX_KINSHIP or 1.0, FIRST_DEGREE),
    top=COMPARE["identity"]["top"],
    error_rate=COMPARE["identity"]["error_rate"],
    max_absent=COMPARE["mixture"]["max_absent"],
    dropout=COMPARE["mixture"]["dropout"],
    drop_in=COMPARE["mixture"]["drop_in"],
    min_called=CONFIG["distance"]["min_called"],
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
    threads: shared_threads(2, 4)
    resources:
        # At most 300 founders: their planes, and counts of all pairs in 64 blocks of sites.
        mem_mb=memory(700, mb=1, files="panel"),
        runtime=minutes(0.2),
    params:
        max_mismatch=COMPARE["identity"]["max_mismatch"],
        max_absent=COMPARE["mixture"]["max_absent"],
        code=code_of("measure_resolution"),
    message:
        "Measure the resolution of kinship and identity on the panel"
    script:
        "../scripts/measure_resolution.py"


rule compare_cohorts:
    input:
        resolution=RESOLUTION,
        planes=row_planes(COMPARE_ROWS),
        panel="results/panel/sites.tsv",
        # Without a matrix of all pairs the tiles are there already.
        filled=ancient(TILES_MADE) if FILLS else [],
    output:
        ROW_COMPARED,
    log:
        "logs/compare_cohorts/{row}.log",
    benchmark:
        "benchmarks/compare_cohorts/{row}.tsv"
    priority: FIRST
    conda:
        GPU_CONDA
    threads: balanced_threads(COMPARE_ROWS)
    resources:
        # Counts and kinships of a block of samples; the planes are memory-mapped.
        mem_mb=row_memory(COMPARE_ROWS, 700, mb=1),
        runtime=row_minutes(COMPARE_ROWS, mb_samples=2e-5),
        gpu=GPUS,
    params:
        limits=COMPARE_LIMITS,
        pairs=row_pairs(COMPARE_ROWS),
        device=CONFIG["device"],
        code=code_of("compare_cohorts", always=True),
    message:
        "Kinship, identity and contamination of {wildcards.row} with the cohorts of its row"
    script:
        "../scripts/compare_cohorts.py"


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
        mem_mb=memory(200, mb=10),
        runtime=minutes(mb=1 / 50),
    params:
        min_kinship=COMPARE["kinship"]["min_kinship"],
        top=COMPARE["identity"]["top"],
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(None, "sex", "population"),
        order=COHORTS,
        code=code_of("join_comparisons"),
    message:
        "Join tables of relatives, identical samples and contamination"
    script:
        "../scripts/join_comparisons.py"


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
        "../scripts/choose_unrelated.py"
