# Files for other tools, as `export.formats` lists them.
#
# needs   results/cohorts/{cohort}/*, results/distance/*, results/embedding/*
# gives   results/export/*


# Files for other tools, as listed in `export.formats`.
#
# needs   results/cohorts/{cohort}/genotypes.* (or imputed.*), results/distance/*,
#         results/embedding/coordinates/pca.tsv
# gives   results/export/panel.bed .bim .fam, panel.vcf.gz, panel.vcz, panel.v3.vcz (VCF-Zarr)
#             genotypes of all cohorts, called or imputed
#         results/export/distance.mibs .mibs.id, distance.phylip, distance.nwk, pca.eigenvec,
#         kinship.king .king.id

FORMATS = CONFIG["export"]["formats"]
EXPORTS = {
    **DISTANCE_EXPORTS,
    "eigenvec": [EIGENVEC],
    "plink": [f"results/export/panel{end}" for end in (".bed", ".bim", ".fam")],
    "vcf": ["results/export/panel.vcf.gz"],
    "zarr": ["results/export/panel.vcz"],
    "zarr3": ["results/export/panel.v3.vcz"],
    "king": ["results/export/kinship.king", "results/export/kinship.king.id"],
    "auspice": ["results/export/auspice/samples.json"],
}
#: The tree of the populations, where the study has one.
POPULATION_TREE = [
    path for path in POPULATION_TABLES if Path(path).name in ("tree.nwk", "populations.tsv")
][::-1]
if len(POPULATION_TREE) == 2:
    EXPORTS["auspice"] += ["results/export/auspice/populations.json"]
else:
    POPULATION_TREE = []
#: What the files of the panel say of missing genotypes.
EXPORTED = filled_words("export")
#: Formats of genotypes, written by one job. Those of distances and components are written where
#: these are made.
OF_PANEL = [name for name in ("plink", "vcf", "zarr", "zarr3") if name in FORMATS]


TARGETS["export"] = [
    [path for name in FORMATS if name in EXPORTS for path in EXPORTS[name]],
]


if OF_PANEL:

    rule export_panel:
        input:
            genotypes=genotype_files("export", COHORTS, "bed", "bim", "fam"),
            panel="results/panel/sites.tsv",
        output:
            **{
                name: directory(EXPORTS[name][0]) if "zarr" in name else EXPORTS[name]
                for name in OF_PANEL
            },
        log:
            "logs/export_panel.log",
        benchmark:
            "benchmarks/export_panel.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 3  # a format each
        resources:
            # One thousand sites of all samples at a time, or a shard.
            mem_mb=memory(1300 if "zarr3" in OF_PANEL else 800, mb=18, samples=0.035, files="panel"),
            runtime=minutes(mb=1 / 10),
        params:
            formats=OF_PANEL,
            cohorts=STUDY.listed,
            missing=EXPORTED,
            sheet=CONFIG["samples"],
            rows=STUDY.digest_of(None, "sex", "father", "mother", "phenotype"),
            code=code_of("export_panel"),
        message:
            "Export the panel: {params.formats}"
        script:
            "../scripts/export/export_panel.py"


rule export_kinship:
    input:
        planes=[
            f"results/cohorts/{cohort}/planes{end}"
            for cohort in COHORTS
            for end in (".npy", ".json")
        ],
        fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=COHORTS),
    output:
        EXPORTS["king"],
    log:
        "logs/export_kinship.log",
    benchmark:
        "benchmarks/export_kinship.tsv"
    conda:
        GPU_CONDA
    threads: 8
    resources:
        # The matrix, and five int64 count matrices of the largest pair of cohorts.
        mem_mb=memory(mb=1, pairs=56e-6),
        runtime=minutes(mb_samples=2e-5, files="planes"),
        gpu=GPUS,
    params:
        device=CONFIG["device"],
        code=code_of("export_kinship"),
    message:
        "Export kinship as .king"
    script:
        "../scripts/export/export_kinship.py"


# Trees with metadata for Nextstrain's viewer, where `export.formats` lists `auspice`.
#
# needs   results/distance/*, results/population/tree.nwk populations.tsv, the sample sheet
# gives   results/export/auspice/samples.json        neighbour-joining tree of the samples
#         results/export/auspice/populations.json    tree of the populations, where there is one


rule export_auspice:
    input:
        matrices=rules.join_rows.output.distances,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
        populations=POPULATION_TREE,
    output:
        EXPORTS["auspice"],
    log:
        "logs/export_auspice.log",
    benchmark:
        "benchmarks/export_auspice.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(pairs=40e-6),
        # Neighbour joining takes n**3 / 3 steps, at 0.3e9 per second.
        runtime=minutes(triples=2e-11),
    params:
        **DISTANCE_RULE,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        column=POPULATION["column"],
        color_by=CONFIG["report"]["color_by"],
        code=code_of("export_auspice"),
    message:
        "Export trees for Auspice"
    script:
        "../scripts/export/export_auspice.py"
