# Which windows, references and maps the rules of `impute` work on.
#
# needs   CONFIG, COHORTS; results/impute/windows.tsv once the panel is there
# gives   IMPUTE, BEAGLE, EVALUATION, and input functions

from types import SimpleNamespace

from popdesic.cohort.impute import find_beagle, find_contig_file, read_windows

IMPUTE = CONFIG["impute"]
#: Whether a job runs Beagle.
BEAGLE = uses_beagle(IMPUTE)
BEAGLE_SETTINGS = {name: IMPUTE[name] for name in ("memory_mb", "seed")}
if BEAGLE:
    # Where the command is missing its jobs go on without it; installing it runs them again.
    BEAGLE_SETTINGS["found"] = find_beagle() is not None
EVALUATION = (
    ["results/impute/evaluation.tsv", *multiext("results/figures/imputation", ".svg", ".png")]
    if IMPUTE["evaluate"]
    else []
)
#: Minutes of an evaluation: Beagle's, or those of the modes alone.
EVALUATION_MINUTES = dict(fixed=5, mb=3) if BEAGLE else dict(mb=1 / 50)


wildcard_constraints:
    window=r"all|\d+",


def imputation_windows(wildcards):
    """Rows of impute/windows.tsv; the panel decides them."""
    return read_windows(Path(checkpoints.plan_imputation.get().output[0]))


def contig_files(wildcards):
    """The reference and the map of a window's contig, as far as there are any."""
    if wildcards.window == "all":
        return []
    contig = imputation_windows(wildcards)[int(wildcards.window) - 1].contig
    found = [find_contig_file(IMPUTE[key], contig) for key in ("reference", "map")]
    return [path for path in found if path]


def contig_key(wildcards):
    """Changes with those files, also where a new one has an older date."""
    return file_key(contig_files(wildcards))


def window_table(wildcards):
    return [] if wildcards.window == "all" else ["results/impute/windows.tsv"]


def contig_file(key):
    """The same as a parameter: which of them is the reference, and which the map."""

    def find(wildcards, input):
        if wildcards.window == "all":
            return ""
        contig = imputation_windows(wildcards)[int(wildcards.window) - 1].contig
        return find_contig_file(IMPUTE[key], contig) or ""

    return find


def imputed_windows(wildcards):
    """What Beagle made of a cohort, window by window; nothing for the other methods."""
    if IMPUTE["method"] != "beagle":
        return []
    numbers = range(1, len(imputation_windows(wildcards)) + 1)
    return [f"results/impute/{wildcards.cohort}/{number}.npy" for number in numbers]


def all_imputed_windows(wildcards):
    return [path for c in COHORTS for path in imputed_windows(SimpleNamespace(cohort=c))]


def evaluated_windows(cohort):
    """Parts of a cohort's evaluation: the mode alone is quick enough to be done at once."""
    if "beagle" not in IMPUTE["evaluate_methods"]:
        return [f"results/impute/evaluation/{cohort}.all.npz"]
    numbers = range(1, len(imputation_windows(SimpleNamespace())) + 1)
    return [f"results/impute/evaluation/{cohort}.{number}.npz" for number in numbers]


def evaluation_parts(wildcards):
    return [path for cohort in COHORTS for path in evaluated_windows(cohort)]


def evaluation_parts_by_cohort(wildcards):
    return {cohort: evaluated_windows(cohort) for cohort in COHORTS}
