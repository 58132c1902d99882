# Functions that rules use for inputs, parameters and resources.
#
# needs   CONFIG, STUDY, COHORTS, ALPHAS; constants of the rule files when called
# gives   distance_source(), rows_of_cohort(), map_tables(), scan_minutes() and the like

import subprocess


def has_module(python, name):
    """Whether a Python interpreter can import a module."""
    probe = f"import importlib.util as u; raise SystemExit(not u.find_spec('{name}'))"
    try:
        return subprocess.run([python, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def row_planes(rows):
    """Input of a row: planes of the cohorts of its pairs, their own cohort's last."""

    def planes(wildcards):
        return expand(
            "results/cohorts/{cohort}/planes{end}",
            cohort=[other_of(wildcards.row, pair) for pair in rows.pairs(wildcards.row)],
            end=[".npy", ".json"],
        )

    return planes


def row_pairs(rows):
    """Parameter: the pairs of a row."""

    def pairs(wildcards):
        return rows.pairs(wildcards.row)

    return pairs


def _row_sizes(rows, row):
    """Samples of a row's cohort, and of those it is compared with; megabytes of their planes."""
    others = [other_of(row, pair) for pair in rows.pairs(row)]
    mb = [input_mb([f"results/cohorts/{cohort}/planes.npy"]) for cohort in others]
    return n_samples(row), [n_samples(cohort) for cohort in others], mb


def row_memory(rows, fixed=0, **sizes):
    """`mem_mb` of a row: its largest pair, and the planes that are read for the next pair."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        own, others, mb = _row_sizes(rows, wildcards.row)
        return limit_mb(cost.of(mb[-1] + sum(sorted(mb[:-1])[-2:]), own, max(others)), attempt)

    return mem_mb


def row_minutes(rows, fixed=0, **sizes):
    """`runtime` of a row: the sum over its pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        own, others, mb = _row_sizes(rows, wildcards.row)
        return limit_minutes(cost.of(mb[-1], own, sum(others)), attempt)

    return runtime


def _group(row):
    """Cohorts whose tiles a job of `fill_rows` computes."""
    return ROW_GROUPS.get(row, [row])


def group_planes(wildcards):
    """Input of a group of rows: planes of the cohorts of all pairs."""
    groups = [rows.pairs(row) for rows in FILLED_ROWS for row in _group(wildcards.row)]
    cohorts = dict.fromkeys(cohort for pairs in groups for pair in pairs for cohort in pair)
    return expand("results/cohorts/{cohort}/planes{end}", cohort=cohorts, end=[".npy", ".json"])


def group_leader(wildcards):
    """Input of the rows of a group that another one's job computes: its mark."""
    leader = leader_of(wildcards.row, COHORTS)
    return [] if leader == wildcards.row else [ancient(TILES_MADE.format(row=leader))]


def group_pairs(rows):
    """Parameter: the pairs of each row of a group."""

    def pairs(wildcards):
        return {row: rows.pairs(row) for row in _group(wildcards.row)}

    return pairs


def group_memory(fixed, **sizes):
    """`mem_mb` of a group: its own planes, those that are compared and those that are read next."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows in FILLED_ROWS for row in _group(wildcards.row)]
        own = sum(mb[-1] for _, _, mb in found) / len(FILLED_ROWS)
        most = max(sum(sorted(mb[:-1])[-2:]) for _, _, mb in found)
        n, others = max(n for n, _, _ in found), max(max(others) for _, others, _ in found)
        return limit_mb(cost.of(own + most, n, others), attempt)

    return mem_mb


def group_minutes(fixed=0, **sizes):
    """`runtime` of a group: the sum over its pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows in FILLED_ROWS for row in _group(wildcards.row)]
        return limit_minutes(sum(cost.of(mb[-1], n, sum(o)) for n, o, mb in found), attempt)

    return runtime


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
    """Maps of one space: one table per alpha."""
    return expand(f"results/embedding/{method}.{{{{space}}}}.alpha{{alpha}}.tsv", alpha=ALPHAS)


def refit_tables(method):
    """Maps refitted to all samples, if the maps are defined by the founders."""
    return map_tables(method) if method in REFITS else []


def pcoa_minutes(wildcards, attempt):
    """Cost of a dense decomposition per map, or of Lanczos above eigen.DENSE_ROWS."""
    n = n_samples(*COHORTS)
    once = min(1e-11 * n**3, 4e-8 * n**2)
    return limit_minutes(len(ALPHAS) * (1 + STABLE) * once, attempt)


def has_graph_tool(wildcards):
    return has_module(CONFIG["communities"]["graph_tool_python"], "graph_tool")


def version_of_fastmixture(wildcards):
    return digests.version_of("fastmixture")


def phased_sources(wildcards):
    return [cohort_sources(STUDY, cohort) for cohort in PHASED]


def map_key(wildcards):
    return file_key(filter(None, [COMPARE["ld"]["map"]]))


def null_of(order):
    """Permuted scans of an order, if any."""
    return [f"results/epistasis{OF_TRAIT}/null.order{order}.tsv"] if PERMUTATIONS[order] else []


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
    unit = f"results/epistasis{OF_TRAIT}/units/order{order}.{{unit}}.npz"
    return expand(unit, unit=UNITS, allow_missing=True)
