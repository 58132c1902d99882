# Tests of sets of sites for interactions (epistasis.sets).
#
# needs   results/reorder/onehot.npy sites.tsv samples.tsv, results/epistasis/null_model.npz
#         (epistasis.smk), results/cohorts/{cohort}/genotypes.bed .bim .fam (or imputed)
# gives   results/epistasis/sets.tsv             tests of sets of sites
#         results/epistasis/sets_environment.tsv their tests with environments
#         results/epistasis/sets_replication.tsv sets_by_cohort.tsv
#         results/epistasis/set_scores/row.json  list of the scores of each cohort, which lie beside
#         results/figures/sets_manhattan.* sets_qq.* sets_forest.*

#: Discovery and replication between cohorts, where there are several.
SETS_BY_COHORT = (
    {
        "replication": f"{SCANS}/sets_replication.tsv",
        "by_cohort": f"{SCANS}/sets_by_cohort.tsv",
        "scores": f"{SCANS}/set_scores/row.json",
    }
    if SETS and len(COHORTS) > 1
    else {}
)
#: Files of the user that say which sets and sites are tested.
SET_FILES = (
    [name for name in (SETS.file, SETS.pairs, EPISTASIS["restrict"]) if name] if SETS else []
)
#: Tests with environments.
SETS_OUTSIDE = {"outside": f"{SCANS}/sets_environment.tsv"} if SETS and SETS.environments else {}
SET_FIGURES = [
    name
    for name, figure in figures_by("scan_sets").items()
    if figure.caption != "sets_forest" or SETS_BY_COHORT
]

TARGETS["epistasis"] += [
    of_phenotypes(
        [f"{SCANS}/sets.tsv", *SETS_BY_COHORT.values(), *SETS_OUTSIDE.values()] if SETS else []
    ),
    of_phenotypes(expand("results/figures/{f}.{end}", f=SET_FIGURES, end=["svg", "png"])),
]


if SETS:

    rule scan_sets:
        input:
            **({"restrict": EPISTASIS["restrict"]} if EPISTASIS["restrict"] else {}),
            **({"pairs": SETS.pairs} if SETS.pairs else {}),
            sets=SETS.file,
            planes=REORDERED,
            model=NULL_MODEL,
            kinship=RELATIVES,
            beds=genotype_files("epistasis", COHORTS if SETS_BY_COHORT else []),
            rest=genotype_files("epistasis", COHORTS if SETS_BY_COHORT else [], "bim", "fam"),
        output:
            **SETS_BY_COHORT,
            **SETS_OUTSIDE,
            table=f"{SCANS}/sets.tsv",
            svg=[
                figure
                for name, figure in zip(figures_by("scan_sets"), reported("scan_sets"))
                if name in SET_FIGURES
            ],
            png=expand("results/figures/{name}.png", name=SET_FIGURES),
        log:
            f"logs/scan_sets{OF_PHENOTYPE}.log",
        benchmark:
            f"benchmarks/scan_sets{OF_PHENOTYPE}.tsv"
        priority: THIRD
        conda:
            "../../envs/popdesic.yaml"
        threads: 8
        resources:
            # Matrices of the sets that are tested at a time, of all threads together (set_rows.py),
            # and genotypes and main effects of these sets.
            mem_mb=memory(4000, samples=0.05, mb=1),
            runtime=set_minutes,
        params:
            **PEDIGREE,
            key=lambda wildcards: file_key(SET_FILES),
            environments=SETS.environments,
            founders=list(STUDY.founders),
            transform=EPISTASIS["transform"],
            tile_code=lambda wildcards: digests.tile_code("sets"),
            rows=scan_rows,
            code=code_of("scan_sets"),
        message:
            "Test sets of sites for interactions"
        script:
            "../scripts/epistasis/scan_sets.py"
