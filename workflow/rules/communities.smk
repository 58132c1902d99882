# Communities: block model of the nearest-neighbour graph, HDBSCAN, tree.
#
# needs   results/geodesic/{space}/closure/* of one space and alpha;
#         results/embedding/pca.npy, axes.npz, results/cohorts/{cohort}/genotypes.bed
#         results/ibd/graph.npz in place of graph.npz with communities.space: ibd
# gives   results/communities/graph.npz       k nearest neighbours, blocks.npz  nested block model
#                                             (of founders, but for the near store)
#         results/communities/splits.npz      splits of the samples, in larger studies
#         results/communities/partition.tsv   sample, community, stability, f_st, between, fine,
#                                             level0 ..., hdbscan
#         results/communities/communities.json, tree.nwk
#         results/communities/agreement.tsv   ARI and AMI with every label column
#         results/painting/coancestry/row.json   list of the coancestry of each cohort, which lies
#                                             beside it and stays when others arrive
#         results/painting/groups.tsv .json   groups by coancestry; with `painting`, which needs
#                                             results/impute/{cohort}/haplotypes.npz
#
# fit_blocks fits with the Python interpreter that has graph-tool; if none has, it warns in one sentence,
# and the columns level0 ... are left out.

from popdesic.communities.block_model import DRAWS, RESTARTS

COMMUNITY_METHODS = CONFIG["communities"]["methods"]
PAINTS = "painting" in COMMUNITY_METHODS
COMMUNITY_SPACE = CONFIG["communities"]["space"]
#: With `ibd` the block model has the graph of segments; the rest is then as with `auto`.
OF_SEGMENTS = COMMUNITY_SPACE == "ibd"
if COMMUNITY_SPACE in ("auto", "ibd"):
    COMMUNITY_SPACE = "pcs" if "pcs" in SPACES else "genotypes"
#: Geodesics that define the nearest neighbours: the first alpha of the study.
COMMUNITY_LENGTHS = (LISTS if STUDY.sparse else LENGTHS).format(
    space=COMMUNITY_SPACE, alpha=ALPHAS[0]
)
#: What the block model's graph is, or is made of.
BLOCKS_OF = [COMMUNITY_LENGTHS] if STUDY.sparse else source_of(COMMUNITY_SPACE)
#: Rows of landmarks, of a study without matrices of all pairs.
COMMUNITY_ROWS = [LENGTHS.format(space=COMMUNITY_SPACE, alpha=ALPHAS[0])] if STUDY.sparse else []
COMMUNITY_TREE = ["results/communities/tree.nwk"] if "tree" in COMMUNITY_METHODS else []
COMMUNITY_FIGURES = figures_by("draw_communities")
#: Groups by coancestry: a table with `sample`, and what it rests on.
PAINTED = ["results/painting/groups.tsv"] if PAINTS else []


#: What splits of the samples are found from; F_ST between their halves, without relatives.
SPLIT_INPUT = dict(
    scores="results/embedding/pca.npy",
    axes="results/embedding/axes.json",
    genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=COHORTS),
    definition="results/embedding/axes.npz",
    unrelated=["results/panel/unrelated.tsv"] if CONFIG["close_kinship"] else [],
)
SPLIT_PARAMS = dict(seed=CONFIG["seed"], founders=STUDY.founders, ploidy=STUDY.ploidy)
#: The file of splits, in studies where one job does not find all of the communities.
SPLITS = "results/communities/splits.npz" if n_samples(*COHORTS) > MOST_JOINED else ""


#: Results of this stage; empty if the study selects no method.
COMMUNITY_TARGETS = [
    "results/communities/partition.tsv",
    "results/communities/agreement.tsv",
    *expand("results/figures/{name}.{end}", name=COMMUNITY_FIGURES, end=["svg", "png"]),
]
#: Minutes per sample: a fit took 5 ms of 10 000 and 20 ms of 100 000, an MCMC draw 0.02 ms.
FIT_MINUTES = 3e-4 * RESTARTS + 1e-6 * DRAWS


TARGETS["communities"] = [
    COMMUNITY_TARGETS if COMMUNITY_METHODS else [],
    PAINTED,
]


rule fit_blocks:
    input:
        source=[IBD_GRAPH] if OF_SEGMENTS else BLOCKS_OF,
        panel="results/panel/counts.json",
        samples="results/distance/samples.tsv",
    output:
        blocks="results/communities/blocks.npz",
        graph=[] if OF_SEGMENTS else ["results/communities/graph.npz"],
    log:
        "logs/fit_blocks.log",
    benchmark:
        "benchmarks/fit_blocks.tsv"
    priority: FIRST
    conda:
        "../../envs/graph-tool.yaml"
    threads: 1
    resources:
        mem_mb=memory(1200, samples=0.04),
        runtime=minutes(1, samples=FIT_MINUTES, pairs=PAIR * 1e-9),
    params:
        store=STUDY.store,
        space=COMMUNITY_SPACE,
        founders=STUDY.founders,
        neighbors=CONFIG["neighbors"],
        pcs=CONFIG["geodesic"]["pcs"],
        distance=DISTANCE_RULE,
        python=graph_tool_python(),
        seed=CONFIG["seed"],
        # Reruns if graph-tool is installed later.
        found=has_graph_tool,
        code=code_of("fit_blocks", always=True),  # of what is kept
    message:
        "Fit the nested stochastic block model"
    script:
        "../scripts/communities/fit_blocks.py"


# In larger studies a job of its own, which waits for the axes alone and not for closures.
if SPLITS:

    rule split_samples:
        input:
            **SPLIT_INPUT,
            samples="results/distance/samples.tsv",
        output:
            SPLITS,
        log:
            "logs/split_samples.log",
        benchmark:
            "benchmarks/split_samples.tsv"
        priority: FIRST
        conda:
            "../../envs/popdesic.yaml"
        threads: SOME  # beside the closures that maps wait for
        resources:
            mem_mb=memory(1500, samples=0.05),
            runtime=minutes(1, samples=1e-4),
        params:
            **SPLIT_PARAMS,
            code=code_of("split_samples", always=True),  # of what is kept
        message:
            "Find splits of the samples"
        script:
            "../scripts/communities/split_samples.py"


rule find_communities:
    input:
        **({"splits": SPLITS} if SPLITS else SPLIT_INPUT),
        lengths=COMMUNITY_LENGTHS,
        landmarks=COMMUNITY_ROWS,
        blocks=(["results/communities/blocks.npz"] if "blockmodel" in COMMUNITY_METHODS else []),
        samples="results/distance/samples.tsv",
    output:
        partition="results/communities/partition.tsv",
        about="results/communities/communities.json",
        tree=COMMUNITY_TREE,
    log:
        "logs/find_communities.log",
    benchmark:
        "benchmarks/find_communities.tsv"
    priority: FIRST
    conda:
        "../../envs/popdesic.yaml"
    threads: 2 if SPLITS else 8  # HDBSCAN, and the tree
    resources:
        mem_mb=memory(
            500,
            samples=0.05,
            pairs=PAIR * 28e-6,
            max_samples=20_000 if PAIR else n_samples(*COHORTS),
        ),
        runtime=minutes(1, samples=1e-5 if SPLITS else 1e-4, pairs=PAIR * 4e-8),
    params:
        **({} if SPLITS else SPLIT_PARAMS),
        methods=[method for method in COMMUNITY_METHODS if method != "painting"],
        code=code_of("find_communities", always=not SPLITS),  # of what is kept
    message:
        "Find communities"
    script:
        "../scripts/communities/find_communities.py"


# What reads the sheet's labels, without which communities are found.
rule draw_communities:
    input:
        lengths=COMMUNITY_LENGTHS,
        landmarks=COMMUNITY_ROWS,
        partition="results/communities/partition.tsv",
        samples="results/distance/samples.tsv",
        tree=COMMUNITY_TREE,
    output:
        agreement="results/communities/agreement.tsv",
        svg=reported("draw_communities"),
        png=expand("results/figures/{name}.png", name=COMMUNITY_FIGURES),
    log:
        "logs/draw_communities.log",
    benchmark:
        "benchmarks/draw_communities.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: SOME  # a figure each
    resources:
        mem_mb=memory(600, samples=0.025),
        runtime=minutes(1.5, samples=1e-5, pairs=PAIR * 2e-9),
    params:
        color_by=CONFIG["report"]["color_by"],
        title=f"space {COMMUNITY_SPACE}, α = {ALPHAS[0]}",
        sheet=CONFIG["samples"],
        rows=STUDY.digest_of(),
        code=code_of("draw_communities"),
    message:
        "Compare communities with labels, and draw them"
    script:
        "../scripts/communities/draw_communities.py"


# Groups are wanted for themselves, and painting waits for haplotypes and a reference that no other
# rule of communities reads. Cohorts whose haplotypes, donors and code are as they were are not
# painted again.
if PAINTS:

    rule paint_samples:
        input:
            haplotypes=expand("results/impute/{cohort}/haplotypes.npz", cohort=COHORTS),
            fams=expand("results/cohorts/{cohort}/genotypes.fam", cohort=COHORTS),
            panel="results/panel/sites.tsv",
            reference=FROZEN,
            unrelated=SPLIT_INPUT["unrelated"],
        output:
            row="results/painting/coancestry/row.json",
            donors="results/painting/donors.tsv",
            groups=PAINTED[0],
            about="results/painting/groups.json",
            svg=reported("paint_samples"),
            png=expand("results/figures/{name}.png", name=figures_by("paint_samples")),
        log:
            "logs/paint_samples.log",
        benchmark:
            "benchmarks/paint_samples.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: MANY
        resources:
            mem_mb=painting_memory,
            runtime=painting_minutes,
        params:
            cohorts=COHORTS,
            founders=STUDY.founders,
            key=reference_key,
            tile_code=lambda wildcards: digests.tile_code("painting"),
            code=code_of("paint_samples"),
        message:
            "Paint samples by the founders' haplotypes, and find groups by coancestry"
        script:
            "../scripts/communities/paint_samples.py"
