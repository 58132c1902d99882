# Segments of identity by descent, if compare.analyses has `ibd`.
#
# needs   results/cohorts/{cohort}/planes.npy .json, genotypes.fam, results/panel/sites.tsv, genetic_map
# gives   results/ibd/genome.npz .json            what of the panel is searched, by the founders
#         results/ibd/tiles/{row}/row.json        rows of segments between cohorts
#         results/ibd/tiles/{row}/{other}.segments.tsv.gz
#         results/ibd/segments.tsv.gz             all segments
#         results/ibd/pairs.tsv, summary.json     totals and degrees of pairs
#         results/ibd/export/*                    formats of other programs
#         results/ibd/graph.npz                   who shares with whom, for communities.space: ibd
#         results/figures/ibd.*

from popdesic.ibd.options import EXPORTS as IBD_FILES

IBD = CONFIG["ibd"]
IBD_FIGURES = figures_by("draw_ibd")
ROW_OF_SEGMENTS = "results/ibd/tiles/{row}/row.json"
IBD_TABLES = ["results/ibd/segments.tsv.gz", "results/ibd/pairs.tsv", "results/ibd/summary.json"]
IBD_EXPORTS = {name: f"results/ibd/export/{IBD_FILES[name]}" for name in IBD["export"]}
IBD_LIMITS = dict(
    **{key: IBD[key] for key in ("min_cm", "min_ibd2_cm", "min_lod", "error_rate")},
    **{key: IBD[key] for key in ("tolerance", "window")},
    most=IBD["max_candidates"],
)


rule ibd:
    input:
        [*IBD_TABLES, *IBD_EXPORTS.values()] if IBD["enable"] else [],
        expand("results/figures/{name}.{end}", name=IBD_FIGURES, end=["svg", "png"]),


if IBD["enable"]:

    rule prepare_ibd:
        input:
            planes=expand("results/cohorts/{cohort}/planes.npy", cohort=STUDY.founders),
            about=expand("results/cohorts/{cohort}/planes.json", cohort=STUDY.founders),
            panel="results/panel/sites.tsv",
            counts="results/panel/counts.json",
        output:
            genome="results/ibd/genome.npz",
            summary="results/ibd/genome.json",
        log:
            "logs/prepare_ibd.log",
        benchmark:
            "benchmarks/prepare_ibd.tsv"
        conda:
            GPU_CONDA
        threads: 4
        resources:
            # Ratios of all sites, and planes of at most 1 000 founders.
            mem_mb=memory(1200, mb=4, files="panel"),
            runtime=minutes(2, mb=1 / 20, files="panel"),
            gpu=GPUS,
        params:
            limits=IBD_LIMITS,
            options=dict(
                genetic_map=CONFIG["compare"]["ld"]["map"],
                max_sharing=IBD["max_sharing"],
            ),
            x_contigs=CONFIG["qc"]["x_contigs"],
            long_range_ld=IBD["long_range_ld"],
            files=map_key,
            device=CONFIG["device"],
            code=code_of("prepare_ibd"),
        message:
            "Prepare the panel for segments of identity by descent"
        script:
            "../scripts/ibd/prepare_ibd.py"

    rule find_ibd_row:
        input:
            genome=rules.prepare_ibd.output.genome,
            about=rules.prepare_ibd.output.summary,
            planes=row_planes(IBD_ROWS),
            panel="results/panel/sites.tsv",
        output:
            ROW_OF_SEGMENTS,
        log:
            "logs/find_ibd_row/{row}.log",
        benchmark:
            "benchmarks/find_ibd_row/{row}.tsv"
        conda:
            GPU_CONDA
        threads: 8
        resources:
            # Ratios of all sites, candidates and segments of a block of pairs.
            mem_mb=row_memory(IBD_ROWS, 1500, mb=2, pairs=1e-5),
            runtime=row_minutes(IBD_ROWS, 1, mb_samples=2e-5),
            gpu=GPUS,
        params:
            limits=IBD_LIMITS,
            pairs=row_pairs(IBD_ROWS),
            device=CONFIG["device"],
            code=code_of("find_ibd_row", always=True),
        message:
            "Segments shared by {wildcards.row} and the cohorts of its row"
        script:
            "../scripts/ibd/find_ibd_row.py"

    rule join_ibd:
        input:
            rows=expand(ROW_OF_SEGMENTS, row=COHORTS),
            fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=COHORTS),
            genome=rules.prepare_ibd.output.genome,
            about=rules.prepare_ibd.output.summary,
            panel="results/panel/sites.tsv",
        output:
            segments=IBD_TABLES[0],
            pairs=IBD_TABLES[1],
            summary=IBD_TABLES[2],
        log:
            "logs/join_ibd.log",
        benchmark:
            "benchmarks/join_ibd.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            # Totals of all pairs with segments.
            mem_mb=memory(500, samples=0.05, pairs=1e-5),
            runtime=minutes(1, pairs=1e-7),
        params:
            min_cm=IBD["min_cm"],
            order=COHORTS,
            code=code_of("join_ibd"),
        message:
            "Join segments, and estimate degrees of pairs"
        script:
            "../scripts/ibd/join_ibd.py"

    rule build_ibd_graph:
        input:
            pairs=IBD_TABLES[1],
            samples="results/distance/samples.tsv",
        output:
            IBD_GRAPH,
        log:
            "logs/build_ibd_graph.log",
        benchmark:
            "benchmarks/build_ibd_graph.tsv"
        priority: FIRST
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=memory(300, samples=0.01, pairs=1e-5),
            runtime=minutes(1, pairs=1e-7),
        params:
            min_cm=IBD["min_cm"],
            code=code_of("build_ibd_graph"),
        message:
            "Graph of people who share segments"
        script:
            "../scripts/ibd/build_ibd_graph.py"

    rule draw_ibd:
        input:
            pairs=IBD_TABLES[1],
            summary=IBD_TABLES[2],
        output:
            svg=reported("draw_ibd"),
            png=expand("results/figures/{name}.png", name=IBD_FIGURES),
        log:
            "logs/draw_ibd.log",
        benchmark:
            "benchmarks/draw_ibd.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=memory(800, pairs=1e-5),
            runtime=minutes(2),
        params:
            code=code_of("draw_ibd"),
        message:
            "Draw pairs by shared length and number of segments"
        script:
            "../scripts/ibd/draw_ibd.py"


if IBD["enable"] and IBD_EXPORTS:

    rule export_ibd:
        input:
            segments=IBD_TABLES[0],
            genome=rules.prepare_ibd.output.genome,
            panel="results/panel/sites.tsv",
        output:
            list(IBD_EXPORTS.values()),
        log:
            "logs/export_ibd.log",
        benchmark:
            "benchmarks/export_ibd.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            # Segments are read and written in parts.
            mem_mb=memory(700, files="panel", mb=4),
            runtime=minutes(1, files="segments", mb=1 / 10),
        params:
            formats=list(IBD_EXPORTS),
            code=code_of("export_ibd"),
        message:
            "Write segments in formats of other programs"
        script:
            "../scripts/ibd/export_ibd.py"
