# The panel: the frozen list of sites, defined by the founders only.
#
# needs   results/qc/{founder}.sites.tsv .samples.tsv, results/cohorts/{founder}/raw.json
# gives   results/panel/sites.tsv     the panel, with its content digest in the first line
#         results/panel/counts.json   sites left after each filter; build and roles of contigs


LD_PRUNE = CONFIG["panel"]["ld_prune"]
PANEL_REGIONS = [path for key in ("include", "exclude") if (path := CONFIG["panel"][key])]


rule panel:
    input:
        "results/panel/sites.tsv",


rule build_panel:
    input:
        tables=expand("results/qc/{cohort}.sites.tsv", cohort=STUDY.founders),
        about=expand("results/cohorts/{cohort}/raw.json", cohort=STUDY.founders),
        samples=expand("results/qc/{cohort}.samples.tsv", cohort=STUDY.founders),
        # LD pruning reads genotypes; the other filters need only counts.
        raw=expand("results/cohorts/{cohort}/raw.bed", cohort=STUDY.founders if LD_PRUNE else []),
    output:
        sites="results/panel/sites.tsv",
        counts="results/panel/counts.json",
    log:
        "logs/build_panel.log",
    benchmark:
        "benchmarks/build_panel.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: shared_threads(1, 8)  # nothing else can run
    resources:
        mem_mb=memory(mb=6),
        runtime=minutes(mb=1 / 200),
    params:
        founders=STUDY.founders,
        absent=[cohort_absent(STUDY, cohort) for cohort in STUDY.founders],
        filters=CONFIG["panel"],
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
        "../scripts/build_panel.py"
