# Windows, references and genetic maps of the imputation rules.
#
# needs   CONFIG, COHORTS; results/impute/windows.tsv once the panel exists
# gives   IMPUTE, BEAGLE, EVALUATION, GENOTYPE_STEMS, FILLED, and input functions

from types import SimpleNamespace

from popdesic.cohort.genotype_choice import genotype_stems, haploid_contigs, imputed_cohorts
from popdesic.cohort.impute import find_beagle, find_contig_file, read_windows

IMPUTE = CONFIG["impute"]
#: Whether any job runs Beagle.
BEAGLE = uses_beagle(IMPUTE)
#: Beagle's genotypes can depend on its number of threads: it gets the configured one, even where a
#: job has fewer cores.
BEAGLE_SETTINGS = {name: IMPUTE[name] for name in ("memory_mb", "seed", "threads")}
if BEAGLE:
    # Without the command, jobs continue with the mode; they rerun once it is installed.
    BEAGLE_SETTINGS["found"] = find_beagle() is not None
EVALUATION = (
    ["results/impute/evaluation.tsv", *multiext("results/figures/imputation", ".svg", ".png")]
    if IMPUTE["evaluate"]
    else []
)
#: Called or imputed PLINK files of a cohort, by the configuration key of what reads them.
GENOTYPE_STEMS = genotype_stems(CONFIG)
#: What became of missing genotypes in cohorts that some stage reads as imputed.
FILLED = expand(
    "results/cohorts/{cohort}/imputed.json",
    cohort=imputed_cohorts(CONFIG, COHORTS, STUDY.founders),
)
#: Minutes of an evaluation with Beagle, or with the mode only.
EVALUATION_MINUTES = dict(fixed=5, mb=3) if BEAGLE else dict(mb=1 / 50)


wildcard_constraints:
    window=r"all|\d+",


def imputation_windows(wildcards):
    """Rows of impute/windows.tsv, which depend on the panel."""
    return read_windows(Path(checkpoints.plan_imputation.get().output[0]))


def contig_files(wildcards):
    """Reference and map of a window's contig, if they exist."""
    if wildcards.window == "all":
        return []
    contig = imputation_windows(wildcards)[int(wildcards.window) - 1].contig
    found = [find_contig_file(IMPUTE[key], contig) for key in ("reference", "map")]
    return [path for path in found if path]


def contig_key(wildcards):
    """Digest of those files, which also changes if a new one has an older date."""
    return file_key(contig_files(wildcards))


def window_table(wildcards):
    return [] if wildcards.window == "all" else ["results/impute/windows.tsv"]


def contig_file(key):
    """Parameter: the file for `key` (reference or map) of a window's contig, '' if none."""

    def find(wildcards, input):
        if wildcards.window == "all":
            return ""
        contig = imputation_windows(wildcards)[int(wildcards.window) - 1].contig
        return find_contig_file(IMPUTE[key], contig) or ""

    return find


def imputed_windows(wildcards):
    """Beagle's results of a cohort, one per window; none for other methods."""
    if IMPUTE["method"] != "beagle":
        return []
    numbers = range(1, len(imputation_windows(wildcards)) + 1)
    return [f"results/impute/{wildcards.cohort}/{number}.npy" for number in numbers]


def imputation_qualities(wildcards):
    """r2 of the sites of those windows."""
    return [
        path.replace("results/impute/", "results/impute/quality/")
        for path in imputed_windows(wildcards)
    ]


def all_imputed_windows(wildcards):
    return [path for c in COHORTS for path in imputed_windows(SimpleNamespace(cohort=c))]


def evaluated_windows(cohort):
    """Parts of a cohort's evaluation: one per window for Beagle, a single one for the mode."""
    if "beagle" not in IMPUTE["evaluate_methods"]:
        return [f"results/impute/evaluation/{cohort}.all.npz"]
    numbers = range(1, len(imputation_windows(SimpleNamespace())) + 1)
    return [f"results/impute/evaluation/{cohort}.{number}.npz" for number in numbers]


def evaluation_parts(wildcards):
    return [path for cohort in COHORTS for path in evaluated_windows(cohort)]


def evaluation_parts_by_cohort(wildcards):
    return {cohort: evaluated_windows(cohort) for cohort in COHORTS}
