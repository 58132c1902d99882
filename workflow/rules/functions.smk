# What rules name as inputs, parameters and limits, where it depends on more than a path.
#
# needs   CONFIG, STUDY, COHORTS, ALPHAS; constants of the rule files, when a function is called
# gives   distance_source(), rows_of_cohort(), map_tables(), scan_minutes() and the like

import subprocess


def has_module(python, name):
    """Whether an interpreter finds a module."""
    probe = f"import importlib.util as u; raise SystemExit(not u.find_spec('{name}'))"
    try:
        return subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def distance_source(wildcards):
    """What the distances of a space are computed from."""
    if wildcards.space == "pcs":
        return ["results/embedding/pca.npy"]
    return expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES)


def rows_of_cohort(wildcards):
    return STUDY.digest_of(wildcards.cohort, "population", "sex", "father", "mother")


def map_tables(method):
    """The maps of one space, a table for each alpha."""
    return expand(f"results/embedding/{method}.{{{{space}}}}.alpha{{alpha}}.tsv", alpha=ALPHAS)


def refit_tables(method):
    """Maps of everyone, where the maps themselves are frames of the founders."""
    return map_tables(method) if method in REFITS else []


def pcoa_minutes(wildcards, attempt):
    """A dense decomposition for each map, or Lanczos above eigen.DENSE_ROWS."""
    n = n_samples(*COHORTS)
    once = min(1e-11 * n**3, 4e-8 * n**2)
    return limit_minutes(len(ALPHAS) * (1 + STABLE) * once, attempt)


def has_graph_tool(wildcards):
    return has_module(CONFIG["communities"]["graph_tool_python"], "graph_tool")


def phased_sources(wildcards):
    return [cohort_sources(STUDY, cohort) for cohort in PHASED]


def map_key(wildcards):
    return file_key(filter(None, [COMPARE["ld"]["map"]]))


def null_of(order):
    """The permuted scans of an order, where there are any."""
    return [f"results/epistasis/null.order{order}.tsv"] if PERMUTATIONS[order] else []


def scan_minutes(wildcards, input, attempt):
    hours = scan_hours(input.plan, int(wildcards.order), 1 / len(UNITS), *SCAN_LIMITS)
    return limit_minutes(60 * hours, attempt)


def permutations_of(wildcards):
    return PERMUTATIONS[int(wildcards.order)]


def permutation_minutes(wildcards, input, attempt):
    order = int(wildcards.order)
    hours = scan_hours(input.plan, order, PERMUTATIONS[order], *SCAN_LIMITS)
    return limit_minutes(60 * hours, attempt)
