# Functions that rules use for inputs, parameters and resources.
#
# needs   CONFIG, STUDY, COHORTS, ALPHAS; constants of the rule files when called
# gives   distance_source(), rows_of_cohort(), map_tables(), scan_minutes() and the like

import subprocess

from popdesic.study.trust import graph_tool_python


def has_module(python, name):
    """Whether a Python interpreter can import a module."""
    probe = f"import importlib.util as u; raise SystemExit(not u.find_spec('{name}'))"
    try:
        # Isolated: -c alone would import what lies in the study's folder.
        words = [python, "-I", "-c", probe]
        return subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def source_of(space):
    """What the plain distances of a space are computed from."""
    if space == "ibd":
        return [IBD_GRAPH]
    if STUDY.sparse:
        folder = "embedding" if space == "pcs" else "distance"
        return [f"results/{folder}/neighbors.npz", f"results/{folder}/landmarks.npy"]
    if space == "pcs":
        return ["results/embedding/pca.npy", *PCS_CHOICE]
    return expand("results/distance/{matrix}.npy", matrix=DISTANCE_MATRICES)


def distance_source(wildcards):
    """Input of the geodesics of a space."""
    return source_of(wildcards.space)


def distance_sources(wildcards):
    """Input of maps of all spaces."""
    return [path for space in SPACES for path in source_of(space)]


def alpha_choice(wildcards):
    """Input of a geodesic: the choice where its alpha is `auto`."""
    return [GEODESIC_CHOICE] if wildcards.alpha == "auto" and wildcards.space != "ibd" else []


def genotype_files(key, cohorts, *ends):
    """PLINK files (.bed by default) of the genotypes that a configuration key asks for."""
    stem = GENOTYPE_STEMS[key]
    return [
        f"results/cohorts/{cohort}/{stem}.{end}" for cohort in cohorts for end in ends or ["bed"]
    ]


def filled_words(key):
    """What a result says of imputed genotypes; '' where genotypes are called."""
    if GENOTYPE_STEMS[key] == "genotypes":
        return ""
    return f"missing calls imputed where r2 is at least {CONFIG['impute']['min_r2']:g}"


def assembly_key(wildcards):
    """Parameter: digest of the assembly report's size and date."""
    return file_key([GENOME["report"]] if GENOME["report"] else [])


def rows_of_cohort(wildcards):
    return STUDY.digest_of(wildcards.cohort, "population", "sex", "father", "mother")


def rows_of_populations(wildcards):
    return STUDY.digest_of(wildcards.cohort, CONFIG["population"]["column"])


def relatives_tables(wildcards):
    """Who is left out of populations: unrelated founders, and the row of a newcomer cohort."""
    if not MAX_KINSHIP or CONFIG["population"]["relatives"] == "keep":
        return []
    newcomer = wildcards.cohort not in STUDY.founders
    row = [ROW_COMPARED.format(row=wildcards.cohort)] if newcomer else []
    return ["results/panel/unrelated.tsv", *row]


def population_key(wildcards):
    return file_key(POPULATION_FILES)


def map_tables(method):
    """Coordinates of the maps of one space: one table per alpha."""
    return expand(
        f"results/embedding/coordinates/{method}.{{{{space}}}}.alpha{{alpha}}.tsv", alpha=ALPHAS
    )


def of_spaces(tables):
    """Tables of all spaces, those of one after those of another, as `umap_maps.of_space` reads them.

    `expand` alone would put all spaces of an alpha together.
    """
    return [path for space in SPACES for path in expand(tables, space=space)]


def of_maps(tables):
    """Tables of the job that draws UMAPs: of all spaces if it draws all, otherwise of one."""
    return of_spaces(tables) if ONE_MAP_JOB else tables


def refit_tables(method):
    """Maps refitted to all samples, if the maps are defined by the founders."""
    return map_tables(method) if method in REFITS else []


def pcoa_minutes(wildcards, attempt):
    """Cost of a dense decomposition per map, or of Lanczos above eigen.DENSE_ROWS."""
    n = n_samples(*COHORTS)
    if STUDY.store == "near":  # by landmarks
        return limit_minutes(1 + 1e-6 * n * len(ALPHAS), attempt)
    once = min(1e-11 * n**3, 4e-8 * n**2)
    return limit_minutes(len(ALPHAS) * (1 + STABLE) * once, attempt)


def has_graph_tool(wildcards):
    return has_module(graph_tool_python(), "graph_tool")


def version_of_fastmixture(wildcards):
    return digests.version_of("fastmixture")


def phased_sources(wildcards):
    return [cohort_sources(STUDY, cohort) for cohort in PHASED]


def map_key(wildcards):
    return file_key(filter(None, [COMPARE["ld"]["map"]]))


def null_of(order):
    """Permuted scans of an order, if any."""
    return [f"results/epistasis{OF_PHENOTYPE}/null.order{order}.tsv"] if PERMUTATIONS[order] else []


def scan_rows(wildcards):
    """Digest of what scans of one phenotype read of the sheet: that phenotype, strata, covariates,
    labels and pedigree."""
    block = CONFIG["epistasis"]
    return STUDY.digest_of(
        None,
        *("cohort", "population", "group", "sex", "father", "mother"),
        wildcards.get("phenotype", "phenotype"),
        *(block["strata"], *block["covariates"]),
    )


def null_model_of(*orders):
    """The null model, where one of these orders is ranked by its residuals."""
    return [NULL_MODEL] if any(SCORES[order] == "residuals" for order in orders) else []


def scan_minutes(wildcards, input, attempt):
    hours = scan_hours(input.plan, int(wildcards.order), 1 / len(UNITS), *SCAN_LIMITS)
    return limit_minutes(60 * hours, attempt)


def permutations_of(wildcards):
    return PERMUTATIONS[int(wildcards.order)]


def permutation_minutes(wildcards, input, attempt):
    order = int(wildcards.order)
    scans = PERMUTATIONS[order] / len(PERMUTATION_UNITS)
    hours = scan_hours(input.plan, order, scans, *SCAN_LIMITS)
    return limit_minutes(60 * hours, attempt)


def units_of(order):
    """Units of a scan."""
    unit = f"results/epistasis{OF_PHENOTYPE}/units/order{order}.{{unit}}.npz"
    return expand(unit, unit=UNITS, allow_missing=True)
