# One-hot planes of the scanned sites, split by phenotype, as requested by epistasis.order.
#
# needs   results/cohorts/{cohort}/genotypes.bed .bim .fam (or imputed), the sample sheet
# gives   results/reorder/onehot.npy    stored genotypes of each site, controls then cases
#         results/reorder/sites.tsv     sites in scan order, labels of the stored genotypes
#         results/reorder/samples.tsv   samples in plane order, class, stratum

from popdesic.cohort.phenotype import is_quantitative, of_trait
from popdesic.epistasis.options import traits_of

EPISTASIS = CONFIG["epistasis"]
#: Whether scans read the phenotypes, which are of one kind, as numbers.
QUANTITATIVE = bool(EPISTASIS["order"]) and is_quantitative(
    of_trait(STUDY.samples, traits_of(EPISTASIS)[0], CONFIG["samples"]),
    EPISTASIS["binarize"],
)
ORDERS = sorted(EPISTASIS["order"])
REORDERED = multiext(f"results/reorder{OF_TRAIT}/", "onehot.npy", "sites.tsv", "samples.tsv")


rule reorder:
    input:
        of_traits(REORDERED) if ORDERS else [],


rule build_onehot:
    input:
        **({"restrict": EPISTASIS["restrict"]} if EPISTASIS["restrict"] else {}),
        beds=genotype_files("epistasis.genotypes", COHORTS),
        rest=genotype_files("epistasis.genotypes", COHORTS, "bim", "fam"),
    output:
        onehot=f"results/reorder{OF_TRAIT}/onehot.npy",
        sites=f"results/reorder{OF_TRAIT}/sites.tsv",
        samples=f"results/reorder{OF_TRAIT}/samples.tsv",
    log:
        f"logs/build_onehot{OF_TRAIT}.log",
    benchmark:
        f"benchmarks/build_onehot{OF_TRAIT}.tsv"
    conda:
        "../../envs/popdesic.yaml"
    threads: 1
    resources:
        # One byte per genotype of the chosen sites, twice while they are sorted.
        mem_mb=memory(500, mb=10),
        runtime=minutes(mb=1 / 20),
    params:
        sheet=CONFIG["samples"],
        rows=scan_rows,
        strata=EPISTASIS["strata"],
        phenotype={name: EPISTASIS[name] for name in ("binarize", "score")},
        replication=EPISTASIS["replication"],
        seed=EPISTASIS["seed"],
        orders=ORDERS,
        key=lambda wildcards: file_key(filter(None, [EPISTASIS["restrict"]])),
        code=code_of("build_onehot"),
    message:
        "Build one-hot planes of the scanned sites"
    script:
        "../scripts/build_onehot.py"
