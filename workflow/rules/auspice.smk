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
        "../scripts/export_auspice.py"
