# Segments of identity by descent, if compare.analyses has `ibd`.
#
# needs   results/cohorts/{cohort}/planes.npy .json, genotypes.fam, results/panel/sites.tsv, genetic_map
# gives   results/ibd/genome.npz .json            what of the panel is searched, by the founders
#         results/ibd/tiles/{row}/row.json        rows of segments between cohorts
#         results/ibd/tiles/{row}/{other}.segments.tsv.gz
#         results/ibd/segments.tsv.gz             all segments
#         results/ibd/pairs.tsv, summary.json     totals of pairs
#         results/ibd/export/*                    formats of other programs
#         results/ibd/graph.npz                   who shares with whom, for communities.space: ibd

from popdesic.core.limits import MOST_JOINED
from popdesic.ibd.options import EXPORTS as IBD_FILES

IBD = CONFIG["ibd"]
ROW_OF_SEGMENTS = "results/ibd/tiles/{row}/row.json"
SEGMENT_ROWS = expand(ROW_OF_SEGMENTS, row=COHORTS)
#: Whether the job that joins all rows makes them, of which it computes the tiles that are new.
IBD_TOGETHER = n_samples(*COHORTS) <= MOST_JOINED
IBD_TABLES = ["results/ibd/segments.tsv.gz", "results/ibd/pairs.tsv", "results/ibd/summary.json"]
IBD_EXPORTS = {
    name: f"results/ibd/export/{IBD_FILES[name]}"
    for name in CONFIG["export"]["formats"]
    if name in IBD_FILES
}
#: Whether geodesics or communities are of shared segments.
IBD_IS_SPACE = "ibd" in (*SPACES, CONFIG["communities"]["space"])
#: Haploids are fitted on the CPU.
IBD_DEVICE, IBD_GPUS = ("cpu", 0) if STUDY.ploidy == 1 else (CONFIG["device"], GPUS)
#: Minutes a megabyte of planes and sample of pairs of cohorts. Of haploids a model is fitted to each
#: pair, and all pairs are listed.
PAIR_MINUTES, PAIR_MB = (1e-3, 3e-4) if STUDY.ploidy == 1 else (2e-5, 2e-5)
#: The further limits are those of `definition.SegmentLimits`.
IBD_LIMITS = dict(min_cm=IBD["min_cm"], error_rate=CONFIG["error_rate"])


TARGETS["ibd"] = [
    [*IBD_TABLES, *IBD_EXPORTS.values()] if SEEKS_SEGMENTS else [],
]


if SEEKS_SEGMENTS:

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
            gpu=IBD_GPUS,
        params:
            limits=IBD_LIMITS,
            ploidy=STUDY.ploidy,
            genetic_map=CONFIG["genetic_map"],
            x_contigs=CONFIG["contigs"]["x"],
            long_range_ld=CONFIG["long_range_ld"],
            files=map_key,
            device=IBD_DEVICE,
            code=code_of("prepare_ibd"),
        message:
            "Prepare the panel for segments of identity by descent"
        script:
            "../scripts/ibd/prepare_ibd.py"

    if not IBD_TOGETHER:

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
                runtime=row_minutes(IBD_ROWS, 1, mb_samples=PAIR_MINUTES),
                gpu=IBD_GPUS,
            params:
                pairs=row_pairs(IBD_ROWS),
                device=IBD_DEVICE,
                tile_code=segment_code,
                code=code_of("find_ibd_row"),
            message:
                "Segments shared within and between {wildcards.row} and others"
            script:
                "../scripts/ibd/find_ibd_row.py"

    rule join_ibd:
        input:
            rows=[] if IBD_TOGETHER else SEGMENT_ROWS,
            planes=row_planes(IBD_ROWS) if IBD_TOGETHER else [],
            fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=COHORTS),
            genome=rules.prepare_ibd.output.genome,
            about=rules.prepare_ibd.output.summary,
            panel="results/panel/sites.tsv",
            # The graph has its samples in the order of distances.
            samples=["results/distance/samples.tsv"] if IBD_IS_SPACE else [],
        output:
            rows=SEGMENT_ROWS if IBD_TOGETHER else [],
            segments=IBD_TABLES[0],
            pairs=IBD_TABLES[1],
            summary=IBD_TABLES[2],
            graph=[IBD_GRAPH] if IBD_IS_SPACE else [],
            exports=list(IBD_EXPORTS.values()),
        log:
            "logs/join_ibd.log",
        benchmark:
            "benchmarks/join_ibd.tsv"
        priority: FIRST if IBD_IS_SPACE else 0
        conda:
            GPU_CONDA
        threads: MANY if IBD_TOGETHER else 1
        resources:
            # Totals of all pairs with segments; segments are read and written in parts. Rows as above.
            mem_mb=(
                row_memory(IBD_ROWS, 1500, mb=2, pairs=1e-5 + PAIR_MB)
                if IBD_TOGETHER
                else memory(800, samples=0.05, pairs=PAIR_MB)
            ),
            runtime=(
                row_minutes(IBD_ROWS, 4, mb_samples=PAIR_MINUTES)
                if IBD_TOGETHER
                else minutes(3, pairs=3e-7)
            ),
            gpu=IBD_GPUS if IBD_TOGETHER else 0,
        params:
            row_pairs=row_pairs(IBD_ROWS) if IBD_TOGETHER else {},
            device=IBD_DEVICE,
            tile_code=segment_code if IBD_TOGETHER else "",
            min_cm=IBD["min_cm"],
            formats=list(IBD_EXPORTS),
            order=COHORTS,
            code=code_of("join_ibd"),
        message:
            "Find and join segments"
        script:
            "../scripts/ibd/join_ibd.py"
