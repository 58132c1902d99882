# Scans of sites, pairs, triples and quads for association with a phenotype.
#
# needs   results/cohorts/{cohort}/genotypes.bed .bim .fam (or imputed), the sample sheet,
#         results/embedding/axes.npz axes.json (unless epistasis.pcs is 0),
#         results/compare/kinship.tsv (if kinship is computed)
# gives   results/reorder/onehot.npy    stored genotypes of each site, controls then cases
#         results/reorder/sites.tsv     sites in scan order, labels of the stored genotypes
#         results/reorder/samples.tsv   samples in plane order, class, stratum
#         results/epistasis/plan.json                    forecast of tests and time, before any scan
#         results/epistasis/null_model.npz   design matrix, fitted values, residuals
#         results/epistasis/structure.tsv    what populations and components say about the phenotype
#         results/epistasis/sites.tsv        score tests of every site
#         results/epistasis/units/order{order}.{unit}.npz    best hits of a unit of work
#         results/epistasis/units/null.order{order}.{unit}.npz   best costs of a unit of permuted scans
#         results/epistasis/null.order{order}.tsv        best cost of each permuted scan
#         results/epistasis/pairs.tsv triples.tsv quads.tsv    ranked hits
#         results/epistasis/loci.tsv loci_triples.tsv loci_quads.tsv   their loci
#         results/epistasis/screen.tsv           best pairs with every third site
#         results/epistasis/replication.tsv      best loci in other samples, if requested
#         results/epistasis/replication_by_cohort.tsv  their effects in its cohorts
#         results/epistasis/refit.tsv power.tsv  refits with covariates; power, if requested
#         results/figures/manhattan.*, qq_sites.*, hits.*, network.*, penetrance.*, zoom.*, power.*

from popdesic.cohort.phenotype import is_quantitative, of_phenotype
from popdesic.epistasis.options import phenotypes_of
from popdesic.epistasis.options import (
    ASSOCIATION,
    LOCI_NAMES,
    NAMES,
    kept_combinations,
    MOST_HOURS,
    SCREENED,
    permutations_run,
    scan_device,
    scan_hours,
    scan_score,
    set_files,
)

EPISTASIS = CONFIG["epistasis"]
#: Files of sets; scans of sets need planes and the null model too.
SETS = set_files(EPISTASIS["sets"])
SCANNED = bool(EPISTASIS["order"] or SETS)
#: Whether scans read the phenotypes, which are of one kind, as numbers.
QUANTITATIVE = SCANNED and is_quantitative(
    of_phenotype(STUDY.samples, phenotypes_of(EPISTASIS)[0], CONFIG["samples"]),
    EPISTASIS["transform"],
)
ORDERS = sorted(EPISTASIS["order"])
SCANS = f"results/epistasis{OF_PHENOTYPE}"
REORDERED = multiext(f"results/reorder{OF_PHENOTYPE}/", "onehot.npy", "sites.tsv", "samples.tsv")
SCAN_PLAN = f"{SCANS}/plan.json"
#: Axes of the PCA, and how many are significant. The scanned samples are placed on them here: scans
#: need no distances.
NULL_AXES = multiext("results/embedding/axes", ".npz", ".json") if EPISTASIS["pcs"] else []
#: What is known of relatives: pairs by KING-robust, if computed, and the sheet's pedigree.
RELATIVES = ["results/compare/kinship.tsv"] if "kinship" in COMPARISONS else []
#: The sheet's pedigree: relatives beside those of `RELATIVES`.
PEDIGREE = {
    "sheet": CONFIG["samples"],
    "pedigree": STUDY.digest_of(None, "father", "mother"),
}
NULL_MODEL = f"{SCANS}/null_model.npz"
SITE_RESULTS = multiext(f"{SCANS}/", "sites.tsv", "structure.tsv")

SCORES = {order: scan_score(EPISTASIS["score"], QUANTITATIVE, order) for order in (2, 3, 4)}
DEVICES = {order: scan_device(CONFIG["device"], score, order) for order, score in SCORES.items()}
PERMUTATIONS = permutations_run(EPISTASIS, SCORES)
LIMITS = {name: EPISTASIS[name] for name in ("min_distance_bp", "max_r2")}
#: Of triples.
SCAN = LIMITS | {"score": SCORES[3]}
MOST_SCAN_HOURS = MOST_HOURS * EPISTASIS["units"]
UNITS = PERMUTATION_UNITS = range(EPISTASIS["units"])

HITS = [f"{SCANS}/{NAMES[order]}.tsv" for order in ORDERS]
LOCI = [f"{SCANS}/{LOCI_NAMES[order]}.tsv" for order in ORDERS]
#: Permuted scans, of the orders that have any.
PERMUTED = [order for order in ORDERS if PERMUTATIONS[order]]
NULLS = [f"{SCANS}/null.order{order}.tsv" for order in PERMUTED]
#: Further analyses of the hits.
EXTRAS = {
    name: f"{SCANS}/{name}.tsv"
    for name, key in (("refit", "covariates"), ("power", "power"))
    if ORDERS and EPISTASIS[key] and not QUANTITATIVE
}
#: Who discovers and who confirms; empty if all people discover.
DIVIDED = (
    {
        "how": EPISTASIS["replication"],
        "founders": [str(name) for name in STUDY.cohorts.index[STUDY.cohorts.founder]],
        "strata": EPISTASIS["strata"],
        "seed": CONFIG["seed"],
    }
    if EPISTASIS["replication"] != "none"
    else {}
)
if ORDERS and DIVIDED:
    EXTRAS["replication"] = f"{SCANS}/replication.tsv"
    EXTRAS["leads_by_cohort"] = f"{SCANS}/replication_by_cohort.tsv"
SCREEN = [f"{SCANS}/screen.tsv"] if 2 in ORDERS and not QUANTITATIVE else []
#: No power of phenotypes that are numbers.
SCAN_FIGURES = [
    name
    for name, figure in figures_by("rank_epistasis").items()
    if figure.caption != "power" or "power" in EXTRAS
]


wildcard_constraints:
    order="[234]",
    unit="[0-9]+",


TARGETS["reorder"] = of_phenotypes(REORDERED) if SCANNED else []
TARGETS["epistasis"] = [
    of_phenotypes(HITS),
    of_phenotypes(SITE_RESULTS if SCANNED else []),
    of_phenotypes([*EXTRAS.values(), *SCREEN]),
    of_phenotypes(expand("results/figures/{f}.{end}", f=SCAN_FIGURES, end=["svg", "png"])),
]


if SCANNED:

    rule plan_epistasis:
        input:
            **({"restrict": EPISTASIS["restrict"]} if EPISTASIS["restrict"] else {}),
            beds=genotype_files("epistasis", COHORTS),
            rest=genotype_files("epistasis", COHORTS, "bim", "fam"),
        output:
            onehot=REORDERED[0],
            sites=REORDERED[1],
            samples=REORDERED[2],
            plan=SCAN_PLAN,
        log:
            f"logs/plan_epistasis{OF_PHENOTYPE}.log",
        benchmark:
            f"benchmarks/plan_epistasis{OF_PHENOTYPE}.tsv"
        priority: THIRD
        conda:
            GPU_CONDA
        threads: 8
        resources:
            mem_mb=planes_memory,
            # Genotypes are read twice, at 100 MB a second of two threads.
            runtime=minutes(2, mb=1 / 1000),
            gpu=GPUS,
        params:
            sheet=CONFIG["samples"],
            rows=scan_rows,
            strata=EPISTASIS["strata"],
            phenotype={name: EPISTASIS[name] for name in ("transform", "score")},
            replication=DIVIDED,
            orders=ORDERS,
            scan=dict(
                score=SCORES[3],
                residuals=SCORES[2] == "residuals" and 2 in ORDERS,
                permutations=PERMUTATIONS,
                max_device_hours=MOST_SCAN_HOURS,
                screen=SCREENED if SCREEN else 0,
                top=EPISTASIS["top"],
            ),
            device=CONFIG["device"],
            key=lambda wildcards: file_key(filter(None, [EPISTASIS["restrict"]])),
            code=code_of("plan_epistasis"),
        message:
            "Build one-hot planes of the scanned sites, and forecast the time of their scans"
        script:
            "../scripts/epistasis/plan_epistasis.py"

    rule scan_sites:
        input:
            planes=REORDERED,
            axes=NULL_AXES,
            genotypes=genotype_files("pca", COHORTS if NULL_AXES else []),
            kinship=RELATIVES,
        output:
            model=NULL_MODEL,
            structure=f"{SCANS}/structure.tsv",
            sites=f"{SCANS}/sites.tsv",
        log:
            f"logs/scan_sites{OF_PHENOTYPE}.log",
        benchmark:
            f"benchmarks/scan_sites{OF_PHENOTYPE}.tsv"
        priority: THIRD
        conda:
            "../../envs/popdesic.yaml"
        threads: 8
        resources:
            mem_mb=null_memory,
            runtime=null_minutes,
        params:
            **PEDIGREE,
            model={name: EPISTASIS[name] for name in ("covariates", "pcs", "transform")}
            | {"seed": CONFIG["seed"]},
            rows=scan_rows,
            code=code_of("scan_sites"),
        message:
            "Fit the null model of the epistasis scans, and test the main effect of every site"
        script:
            "../scripts/epistasis/scan_sites.py"


if ORDERS:

    rule scan_epistasis:
        input:
            planes=REORDERED,
            null=lambda wildcards: null_model_of(int(wildcards.order)),
            plan=SCAN_PLAN,
        output:
            f"{SCANS}/units/order{{order}}.{{unit}}.npz",
        log:
            f"logs/scan_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.log",
        benchmark:
            f"benchmarks/scan_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.tsv"
        priority: THIRD
        conda:
            GPU_CONDA
        threads: 8
        resources:
            # The planes twice, and compacted planes of a chunk of sites; tables of sites, four times
            # the planes of few samples.
            mem_mb=memory(1000, mb=2.5),
            runtime=scan_minutes,
            gpu=scan_gpus,
        params:
            limits=LIMITS,
            score=lambda wildcards: SCORES[int(wildcards.order)],
            top=kept_combinations(EPISTASIS["top"]),
            n_units=len(UNITS),
            device=lambda wildcards: DEVICES[int(wildcards.order)],
            code=code_of("scan_epistasis"),
        message:
            "Epistasis scan of order {wildcards.order}, unit {wildcards.unit}"
        script:
            "../scripts/epistasis/scan_epistasis.py"

    # Scans of permuted phenotypes, for scores of association.
    rule permute_epistasis:
        input:
            planes=REORDERED,
            kinship=RELATIVES,
            plan=SCAN_PLAN,
        output:
            f"{SCANS}/units/null.order{{order}}.{{unit}}.npz",
        log:
            f"logs/permute_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.log",
        benchmark:
            f"benchmarks/permute_epistasis{OF_PHENOTYPE}/order{{order}}.{{unit}}.tsv"
        conda:
            GPU_CONDA
        threads: 8
        resources:
            # The planes, mapped, in memory, permuted twice and turned for the scan; genotypes of some
            # sites.
            mem_mb=memory(1400, mb=6),
            runtime=permutation_minutes,
            gpu=GPUS,
        params:
            **PEDIGREE,
            limits=LIMITS,
            score=lambda wildcards: SCORES[int(wildcards.order)],
            permutations=permutations_of,
            n_units=len(PERMUTATION_UNITS),
            seed=CONFIG["seed"],
            device=CONFIG["device"],
            code=code_of("permute_epistasis"),
        message:
            "Scans of {params.permutations} permutations, order {wildcards.order}, unit {wildcards.unit}"
        script:
            "../scripts/epistasis/permute_epistasis.py"

    rule rank_epistasis:
        input:
            planes=REORDERED,
            plan=SCAN_PLAN,
            model=NULL_MODEL,
            sites=f"{SCANS}/sites.tsv",
            kinship=RELATIVES,
            units=[unit for order in ORDERS for unit in units_of(order)],
            permuted=[
                f"{SCANS}/units/null.order{order}.{unit}.npz"
                for order in PERMUTED
                for unit in PERMUTATION_UNITS
            ],
            beds=genotype_files("epistasis", COHORTS),
            rest=genotype_files("epistasis", COHORTS, "bim", "fam"),
        output:
            **EXTRAS,
            hits=HITS,
            loci=LOCI,
            nulls=NULLS,
            svg=[
                figure
                for name, figure in zip(figures_by("rank_epistasis"), reported("rank_epistasis"))
                if name in SCAN_FIGURES
            ],
            png=expand("results/figures/{name}.png", name=SCAN_FIGURES),
        log:
            f"logs/rank_epistasis{OF_PHENOTYPE}.log",
        benchmark:
            f"benchmarks/rank_epistasis{OF_PHENOTYPE}.tsv"
        priority: THIRD
        conda:
            "../../envs/popdesic.yaml"
        threads: 2  # an order each
        resources:
            # Genotypes of the hits' sites; draws of a hit's table take 0.1 seconds, twice.
            mem_mb=memory(1400, mb=2),
            runtime=minutes(5 + EPISTASIS["top"] / 200, samples=4e-3),
        params:
            **PEDIGREE,
            rows=scan_rows,
            orders={order: (SCORES[order], SCORES[order] not in ASSOCIATION) for order in ORDERS},
            units=(len(UNITS), len(PERMUTATION_UNITS)),
            permutations={order: PERMUTATIONS[order] for order in PERMUTED},
            ranking=dict(limits=LIMITS, quantitative=QUANTITATIVE, top=EPISTASIS["top"]),
            models=EPISTASIS["power"],
            power=dict(score=SCORES[3], seed=CONFIG["seed"]),
            replication=dict(
                phenotype={name: EPISTASIS[name] for name in ("transform", "score")},
                source=CONFIG["samples"],
                how=DIVIDED,
            ),
            code=code_of("rank_epistasis"),
        message:
            "Rank the hits of the epistasis scans, and draw them"
        script:
            "../scripts/epistasis/rank_epistasis.py"

    rule screen_pairs:
        input:
            planes=REORDERED,
            kinship=RELATIVES,
            plan=SCAN_PLAN,
            units=units_of(2),
        output:
            hits=f"{SCANS}/units/screen.npz",
            table=f"{SCANS}/screen.tsv",
        log:
            f"logs/screen_pairs{OF_PHENOTYPE}.log",
        benchmark:
            f"benchmarks/screen_pairs{OF_PHENOTYPE}.tsv"
        priority: THIRD
        conda:
            GPU_CONDA
        threads: 8
        resources:
            # The planes, and tables of a block of pairs and sites.
            mem_mb=memory(1500, mb=4),
            runtime=minutes(1, mb=1e-4 * SCREENED),
            gpu=GPUS,
        params:
            **PEDIGREE,
            scan=SCAN,
            pairs=SCREENED,
            top=EPISTASIS["top"],
            device=CONFIG["device"],
            code=code_of("screen_pairs"),
        message:
            "Screen the best {params.pairs} pairs with every third site"
        script:
            "../scripts/epistasis/screen_pairs.py"
