# Figures and the report page.
#
# needs   results/qc/*, results/panel/*, results/distance/*.npy samples.tsv,
#         results/geodesic/{space}/alpha{alpha}.json, results/embedding/*
# gives   results/figures/*.svg *.png
#         results/embedding/{map}.tsv  coordinates with the columns of the sheet
#         results/report/report.html   one self-contained page
#         results/report/summary.json  what it found, for other tools
#         results/report/methods.md    text for a paper, with references
#         results/report/multiqc/      custom content for MultiQC
#         results/report/work.tsv      number of jobs run, and of results reused

MAIN_FIGURES = figures_by("draw_figures")
#: Tables that figures and page are made from.
OUTCOME = [
    *expand("results/qc/{cohort}.samples.tsv", cohort=COHORTS),
    *expand("results/qc/{cohort}.populations.tsv", cohort=COHORTS),
    "results/qc/summary.tsv",
    "results/qc/drift.tsv",
    "results/qc/artefacts.json",
    "results/panel/sites.tsv",
    "results/panel/counts.json",
    *DISTANCE_FILES,
    "results/distance/samples.tsv",
    *expand(
        "results/geodesic/{space}/alpha{alpha}.{end}",
        space=SPACES,
        alpha=ALPHAS,
        end=["json", "run.json"],
    ),
    "results/embedding/quality.tsv",
    *COORDINATES,
    "results/embedding/pca.json",
    "results/embedding/loadings.tsv",
    *expand("results/embedding/pcoa.{s}.alpha{a}.json", s=SPACES, a=ALPHAS),
    *INSTABILITY,
    *([GEODESIC_CHOICE] if GEODESICS_CHOSEN else []),
]
#: Coordinates of the interactive maps: tables with `sample` and axes X1, X2, …
INTERACTIVE_MAPS = [
    f"results/embedding/coordinates/{name}.tsv"
    for name in [
        "pca",
        *expand("umap.{s}.alpha{a}", s=SPACES, a=ALPHAS),
        *expand("pcoa.{s}.alpha{a}", s=SPACES, a=ALPHAS),
        *expand("umap.distance.{s}", s=SPACES),
        *expand("{m}.{s}.alpha{a}", m=[*FURTHER_MAPS, *REFITS], s=SPACES, a=ALPHAS),
    ]
]
#: Further tables with a column `sample`, whose columns can colour the maps.
SAMPLE_TABLES = [
    *(["results/communities/partition.tsv"] if COMMUNITY_METHODS else []),
    *PAINTED,
    *INSTABILITY,
]
#: What MultiQC shows (`report.multiqc.FILES`).
MULTIQC = expand("results/report/multiqc/popdesic_{w}_mqc.json", w=["samples", "cohorts", "pca"])
#: Settings that decide which of these files exist.
OUTCOME_OF = dict(
    cohorts=COHORTS,
    founders=STUDY.founders,
    spaces=SPACES,
    alphas=ALPHAS,
    further=FURTHER_MAPS,
    ensemble=ENSEMBLE,
    chosen=GEODESICS_CHOSEN,
    **({"left_out": list(STUDY.left_out)} if STUDY.sparse else {}),
    **({"haploid": list(STUDY.haploid)} if STUDY.haploid else {}),
)
#: The page reads captions, templates and the glossary at run time, so they count as its code.
PAGE = digest(
    "".join(
        path.read_text("utf-8")
        for path in [*sorted((WORKFLOW / "workflow" / "report").iterdir()), GLOSSARY]
    )
)


TARGETS["report"] = [
    LABELLED_MAPS,
    "results/report/report.html",
    "results/report/summary.json",
    "results/report/methods.md",
    MULTIQC,
    "results/report/work.tsv",
    expand("results/figures/{figure}.{end}", figure=MAIN_FIGURES, end=["svg", "png"]),
]


rule draw_figures:
    input:
        OUTCOME,
        accuracy=EVALUATION,
    output:
        svg=reported("draw_figures"),
        png=expand("results/figures/{figure}.png", figure=MAIN_FIGURES),
    log:
        "logs/draw_figures.log",
    benchmark:
        "benchmarks/draw_figures.tsv"
    priority: SECOND
    conda:
        "../../envs/popdesic.yaml"
    threads: WIDE
    resources:
        # The matrices are memory-mapped and read in blocks; the panel is read into memory.
        mem_mb=memory(1200, mb=3, samples=0.03, pairs=PAIR * 16e-6, files="results/panel/sites.tsv"),
        runtime=minutes(0.05 * len(MAIN_FIGURES), pairs=PAIR * 2e-8),
    params:
        study=OUTCOME_OF,
        distance=DISTANCE_RULE,
        store=STUDY.store,
        drawn=dict(
            color_by=CONFIG["report"]["color_by"],
            min_sample_call_rate=CONFIG["qc"]["min_sample_call_rate"],
            min_maf=CONFIG["panel"]["min_maf"],
        ),
        sheet=CONFIG["samples"],
        rows=LABELS_DRAWN,
        code=code_of("draw_figures", always=True),  # of what is kept
    message:
        "Draw figures"
    script:
        "../scripts/report/draw_figures.py"


rule write_report:
    input:
        OUTCOME,
        figures=rules.draw_figures.output,
        comparisons=TARGETS["compare"],
        ibd=TARGETS["ibd"],
        communities=TARGETS["communities"],
        geography=TARGETS["geography"],
        population=TARGETS["population"],
        epistasis=TARGETS["epistasis"],
        imputation=[*EVALUATION, *FILLED],
        maps=INTERACTIVE_MAPS,
        coordinates=COORDINATES,
        tables=SAMPLE_TABLES,
        missing=MISSING_COMPARED,
        export=TARGETS["export"],  # their jobs are counted
    output:
        "results/report/report.html",
        "results/report/summary.json",
        "results/report/methods.md",
        MULTIQC,
        work="results/report/work.tsv",
        labelled=LABELLED_MAPS,  # the page lists them
    log:
        "logs/write_report.log",
    benchmark:
        "benchmarks/write_report.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: SOME
    resources:
        # Closest pairs are sought in blocks of the memory-mapped matrices; records of all jobs.
        mem_mb=memory(700 + 0.02 * len(COHORTS) ** 2, samples=0.03, pairs=PAIR * 16e-6),
        runtime=minutes(0.2 + 1e-4 * len(COHORTS) ** 2, pairs=PAIR * 1e-8),
    params:
        study=OUTCOME_OF,
        distance=DISTANCE_RULE,
        store=STUDY.store,
        configuration=CONFIG,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        page=PAGE,
        code=code_of("write_report"),
    message:
        "Write the report"
    script:
        "../scripts/report/write_report.py"
