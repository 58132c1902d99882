# Files for other tools, as `export.formats` lists them.
#
# needs   results/cohorts/{cohort}/*, results/distance/*, results/embedding/*
# gives   results/export/*


# Files for other tools, as listed in `export.formats`.
#
# needs   results/cohorts/{cohort}/genotypes.* (or imputed.*), results/distance/*,
#         results/embedding/coordinates/pca.tsv
# gives   results/export/panel.bed .bim .fam, panel.vcf.gz, panel.vcz (VCF-Zarr)
#             genotypes of all cohorts, called or imputed
#         results/export/distance.mibs .mibs.id, distance.phylip, distance.nwk, pca.eigenvec,
#         kinship.king .king.id

FORMATS = CONFIG["export"]["formats"]
EXPORTS = {
    "plink": [f"results/export/panel{end}" for end in (".bed", ".bim", ".fam")],
    "vcf": ["results/export/panel.vcf.gz"],
    "zarr": ["results/export/panel.vcz"],
    "mibs": ["results/export/distance.mibs", "results/export/distance.mibs.id"],
    "king": ["results/export/kinship.king", "results/export/kinship.king.id"],
    "phylip": ["results/export/distance.phylip"],
    "newick": ["results/export/distance.nwk"],
    "eigenvec": ["results/export/pca.eigenvec"],
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
#: Exports of the distance matrix, written by one job.
OF_DISTANCES = [name for name in ("mibs", "phylip", "newick") if name in FORMATS]


rule export:
    input:
        [path for name in FORMATS if name in EXPORTS for path in EXPORTS[name]],


rule export_panel:
    input:
        genotypes=genotype_files("export", COHORTS, "bed", "bim", "fam"),
        panel="results/panel/sites.tsv",
    output:
        "results/export/panel.vcf.gz",
    log:
        "logs/export_panel.log",
    benchmark:
        "benchmarks/export_panel.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(300, mb=6, samples=0.01, files="panel"),
        runtime=minutes(mb=1 / 20),
    params:
        cohorts=COHORTS,
        missing=EXPORTED,
        code=code_of("export_panel"),
    message:
        "Export the panel as VCF"
    script:
        "../scripts/export/export_panel.py"


rule export_panel_plink:
    input:
        rules.export_panel.input.genotypes,
    output:
        EXPORTS["plink"],
    log:
        "logs/export_panel_plink.log",
    benchmark:
        "benchmarks/export_panel_plink.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # One thousand sites of all samples at a time.
        mem_mb=memory(200, samples=0.005),
        runtime=minutes(mb=1 / 100),
    params:
        cohorts=COHORTS,
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(None, "sex", "father", "mother", "phenotype"),
        code=code_of("export_panel_plink"),
    message:
        "Export the panel as PLINK files"
    script:
        "../scripts/export/export_panel_plink.py"


rule export_panel_zarr:
    input:
        genotypes=rules.export_panel.input.genotypes,
        panel="results/panel/sites.tsv",
    output:
        directory("results/export/panel.vcz"),
    log:
        "logs/export_panel_zarr.log",
    benchmark:
        "benchmarks/export_panel_zarr.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(300, mb=6, samples=0.02, files="panel"),
        runtime=minutes(mb=1 / 20),
    params:
        cohorts=COHORTS,
        missing=EXPORTED,
        code=code_of("export_panel_zarr"),
    message:
        "Export the panel as VCF-Zarr"
    script:
        "../scripts/export/export_panel_zarr.py"


rule export_matrices:
    input:
        matrices=rules.join_rows.output.distances,
        samples="results/distance/samples.tsv",
        panel="results/panel/counts.json",
    output:
        [path for name in OF_DISTANCES for path in EXPORTS[name]],
    log:
        "logs/export_matrices.log",
    benchmark:
        "benchmarks/export_matrices.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(pairs=40e-6),
        # Neighbour joining takes n**3 / 3 steps, at 0.3e9 per second.
        runtime=minutes(triples=2e-11),
    params:
        **DISTANCE_RULE,
        formats=OF_DISTANCES,
        code=code_of("export_matrices"),
    message:
        "Export distances: {params.formats}"
    script:
        "../scripts/export/export_matrices.py"


rule export_components:
    input:
        "results/embedding/coordinates/pca.tsv",
    output:
        "results/export/pca.eigenvec",
    log:
        "logs/export_components.log",
    benchmark:
        "benchmarks/export_components.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        mem_mb=memory(mb=5),
        runtime=minutes(1),
    params:
        code=code_of("export_components"),
    message:
        "Export principal components as .eigenvec"
    script:
        "../scripts/export/export_components.py"


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
        matrices=rules.export_matrices.input.matrices,
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
