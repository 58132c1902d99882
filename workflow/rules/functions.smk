# Functions that rules use for inputs, parameters and resources.
#
# needs   CONFIG, STUDY, COHORTS, ALPHAS; constants of the rule files when called
# gives   distance_source(), rows_of_cohort(), map_tables(), scan_minutes(), imputed_windows(), group_planes()
#         and the like

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


def of_paths(path):
    """Output of a job of geodesics: for each space and alpha where it makes all."""
    return [path.format(space=s, alpha=a) for s, a in PATHS] if ONE_PATHS_JOB else path


def of_explained(name):
    """Files of all spaces and alphas, in the order of `EXPLAINED`."""
    return [f"results/geodesic/{space}/{name}".format(alpha=alpha) for space, alpha in EXPLAINED]


def _paths_of(wildcards):
    """Spaces and alphas of a job of geodesics."""
    return PATHS if ONE_PATHS_JOB else [(wildcards.space, wildcards.alpha)]


def paths_of_job(wildcards):
    """Parameter: space and alpha of each closure of a job, and the files of the space."""
    return [(space, alpha, source_of(space)) for space, alpha in _paths_of(wildcards)]


def alpha_choice(wildcards):
    """Input of geodesics: the choice where an alpha is `auto`."""
    chosen = any(a == "auto" and space != "ibd" for space, a in _paths_of(wildcards))
    return [GEODESIC_CHOICE] if chosen else []


def listed_closures(wildcards):
    """Input of a closure at `auto`: those at listed alphas, one of which may be the same."""
    if ONE_PATHS_JOB or wildcards.alpha != "auto" or STUDY.store == "near":
        return []
    ends = [LENGTHS, "results/geodesic/{space}/alpha{alpha}.json"]
    alphas = [alpha for alpha in ALPHAS if alpha != "auto"]
    return expand(ends, space=wildcards.space, alpha=alphas)


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


def decoded_from(wildcards):
    """Parameter: all that decides decoded files but the samples that the sheet excludes.

    Sources and names of each cohort that is read together with others, or of one alone. A replaced
    file may have an older date, which Snakemake does not notice.
    """
    members = {cohort: cohort_sources(STUDY, cohort) for cohort in STUDY.units[wildcards.cohort]}
    batch = is_batch(STUDY, wildcards.cohort)
    return dict(
        cohorts={
            c: (files, names_key(STUDY.names_in_files(c)), *STUDY.ploidies_in_files(c))
            for c, files in members.items()
        },
        files=digest("".join(map(source_key, members.values()))) + file_key(GENOME_FILES),
        founders=wildcards.cohort in STUDY.founders,
        absent=cohort_absent(STUDY, wildcards.cohort) if batch else [],
        haploid=CONFIG["contigs"]["haploid"],
        excluded_contigs=CONFIG["contigs"]["exclude"],
        filters=CONFIG["ingest"] | CONFIG["sites"],
        fasta="".join(GENOME_FILES),
        code=digests.tile_code("decoded"),
    )


def rows_of_cohort(wildcards):
    return STUDY.digest_of(wildcards.cohort, "population", "sex", "father", "mother")


def rows_of_populations(wildcards):
    return STUDY.digest_of(wildcards.cohort, CONFIG["population"]["column"])


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
    """Tables of the job that makes maps: of all spaces if it makes all, otherwise of one."""
    return of_spaces(tables) if ONE_MAP_JOB else tables


def map_files(methods):
    """Files of a job of maps by what they are: coordinates by method, and what comes with them."""
    made = {
        method: of_maps(map_tables(method))
        for method in [*methods, *REFITS]
        if method.removesuffix("_refit") in methods
    }
    if "pcoa" in methods:
        about = expand("results/embedding/pcoa.{{space}}.alpha{alpha}.json", alpha=ALPHAS)
        made["statistics"] = of_maps(about)
    if "umap" in methods:
        made["plain"] = of_maps(["results/embedding/coordinates/umap.distance.{space}.tsv"])
        made["instability"] = of_maps(ENSEMBLE_TABLES)
    return made


def has_graph_tool(wildcards):
    return has_module(graph_tool_python(), "graph_tool")


def version_of_fastmixture(wildcards):
    return digests.version_of("fastmixture")


def phased_sources(wildcards):
    return [cohort_sources(STUDY, cohort) for cohort in PHASED]


def map_key(wildcards):
    return file_key(MAP_FILES)


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
    order = int(wildcards.order)
    hours = scan_hours(input.plan, order, 1 / len(UNITS), DEVICES[order], MOST_SCAN_HOURS)
    return limit_minutes(60 * hours, attempt)


def permutations_of(wildcards):
    return PERMUTATIONS[int(wildcards.order)]


def permutation_minutes(wildcards, input, attempt):
    order = int(wildcards.order)
    scans = PERMUTATIONS[order] / len(PERMUTATION_UNITS)
    hours = scan_hours(input.plan, order, scans, DEVICES[order], MOST_SCAN_HOURS)
    return limit_minutes(60 * hours, attempt)


def units_of(order):
    """Units of a scan."""
    unit = f"results/epistasis{OF_PHENOTYPE}/units/order{order}.{{unit}}.npz"
    return expand(unit, unit=UNITS, allow_missing=True)


# Windows, references and genetic maps of the imputation rules.


def imputation_windows(wildcards):
    """Rows of impute/windows.tsv, which depend on the panel."""
    return read_windows(Path(checkpoints.plan_imputation.get().output[0]))


def contig_files(wildcards):
    """Reference and map of a window's contig, if they exist."""
    contig = imputation_windows(wildcards)[int(wildcards.window) - 1].contig
    found = [find_contig_file(path, contig) for path in BEAGLE_FILES.values()]
    return [path for path in found if path]


def contig_key(wildcards):
    """Digest of those files, which also changes if a new one has an older date."""
    return file_key(contig_files(wildcards))


def evaluation_key(wildcards):
    """The same with the reference that is copied from."""
    return file_key([*contig_files(wildcards), *REFERENCE_FILES])


def contig_file(key):
    """Parameter: the file for `key` (reference or map) of a window's contig, '' if none."""

    def find(wildcards, input):
        contig = imputation_windows(wildcards)[int(wildcards.window) - 1].contig
        return find_contig_file(BEAGLE_FILES[key], contig) or ""

    return find


def imputed_windows(wildcards):
    """Imputed genotypes of a cohort: Beagle's, one per window, or all by copying; else none."""
    if IMPUTE["method"] == "copying":
        return [f"results/impute/{wildcards.cohort}/copied.npy"]
    if IMPUTE["method"] != "beagle":
        return []
    numbers = range(1, len(imputation_windows(wildcards)) + 1)
    return [f"results/impute/{wildcards.cohort}/{number}.npy" for number in numbers]


def imputation_qualities(wildcards):
    """r2 of the sites of those files."""
    return [
        path.replace("results/impute/", "results/impute/quality/")
        for path in imputed_windows(wildcards)
    ]


def all_imputed_windows(wildcards):
    return [path for c in COHORTS for path in imputed_windows(SimpleNamespace(cohort=c))]


def evaluated_windows(cohort):
    """Parts of a cohort's evaluation: one per window."""
    numbers = range(1, len(imputation_windows(SimpleNamespace())) + 1)
    return [f"results/impute/evaluation/{cohort}.{number}.npz" for number in numbers]


def evaluation_parts(wildcards):
    """The parts of all cohorts; none where only the mode is evaluated."""
    cohorts = COHORTS if EVALUATES_WINDOWS else []
    return [path for cohort in cohorts for path in evaluated_windows(cohort)]


def reference_key(wildcards):
    """Parameter: digest of sizes and dates of the reference that is copied from."""
    return file_key(REFERENCE_FILES)


def segment_code(wildcards):
    """Parameter: digest of the code that finds segments, part of the keys of their tiles."""
    return digests.tile_code("ibd")


# Rules whose jobs compute rows of tiles, and those that fill several rows.


def _rows_of_job(wildcards):
    """Cohorts whose rows of segments a job makes: one, or of few samples all."""
    return [wildcards.row] if "row" in wildcards.keys() else COHORTS


def row_planes(rows):
    """Input of rows: planes of the cohorts of their pairs."""

    def planes(wildcards):
        pairs = [(row, pair) for row in _rows_of_job(wildcards) for pair in rows.pairs(row)]
        cohorts = dict.fromkeys(other_of(row, pair) for row, pair in pairs)
        return expand("results/cohorts/{cohort}/planes{end}", cohort=cohorts, end=[".npy", ".json"])

    return planes


def row_pairs(rows):
    """Parameter: the pairs of each row."""

    def pairs(wildcards):
        return {row: rows.pairs(row) for row in _rows_of_job(wildcards)}

    return pairs


def _row_sizes(rows, row):
    """Samples of a row's cohort, and of those it is compared with; megabytes of their planes."""
    others = [other_of(row, pair) for pair in rows.pairs(row)]
    mb = [input_mb([f"results/cohorts/{cohort}/planes.npy"]) for cohort in others]
    return n_samples(row), [n_samples(cohort) for cohort in others], mb


def row_memory(rows, fixed=0, **sizes):
    """`mem_mb` of rows: the largest pair, and the planes that are read for the next pair."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        found = [_row_sizes(rows, row) for row in _rows_of_job(wildcards)]
        most = max(cost.of(mb[-1] + sum(sorted(mb[:-1])[-2:]), n, max(o)) for n, o, mb in found)
        return limit_mb(most, attempt)

    return mem_mb


def row_minutes(rows, fixed=0, **sizes):
    """`runtime` of rows: the sum over their pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        found = [_row_sizes(rows, row) for row in _rows_of_job(wildcards)]
        return limit_minutes(sum(cost.of(mb[-1], n, sum(o)) for n, o, mb in found), attempt)

    return runtime


def _group(row):
    """Cohorts whose tiles the job of a row computes."""
    return ROW_GROUPS.get(row, [row])


def _group_rows(row):
    """Rows of all stages whose tiles the job of a row computes."""
    return [(rows, one) for rows in PAIR_ROWS.values() for one in _group(row)]


def group_planes(wildcards):
    """Input of a group of rows: planes of the cohorts of all pairs."""
    pairs = [pair for rows, row in _group_rows(wildcards.row) for pair in rows.pairs(row)]
    cohorts = dict.fromkeys(cohort for pair in pairs for cohort in pair)
    return expand("results/cohorts/{cohort}/planes{end}", cohort=cohorts, end=[".npy", ".json"])


def group_leader(wildcards):
    """Input of the rows of a group that another one's job computes: the list of that one."""
    leader = leader_of(wildcards.row, COHORTS) if ROW_GROUPS else wildcards.row
    return [] if leader == wildcards.row else [ancient(ROW_LIST.format(row=leader))]


def group_pairs(wildcards):
    """Parameter: the pairs of each row of a group, by stage."""
    found = {stage: {} for stage in ("distance", "compare")}
    for stage, rows in PAIR_ROWS.items():
        found[stage] = {row: rows.pairs(row) for row in _group(wildcards.row)}
    return found


def group_memory(fixed, **sizes):
    """`mem_mb` of a group: its own planes, those that are compared and those that are read next."""
    cost = Cost(fixed, **sizes)

    def mem_mb(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows, row in _group_rows(wildcards.row)]
        own = sum(mb[-1] for _, _, mb in found) / len(PAIR_ROWS)
        most = max(sum(sorted(mb[:-1])[-2:]) for _, _, mb in found)
        n, others = max(n for n, _, _ in found), max(max(others) for _, others, _ in found)
        return limit_mb(cost.of(own + most, n, others), attempt)

    return mem_mb


def group_minutes(fixed=0, **sizes):
    """`runtime` of a group: the sum over its pairs."""
    cost = Cost(fixed, **sizes)

    def runtime(wildcards, attempt):
        found = [_row_sizes(rows, row) for rows, row in _group_rows(wildcards.row)]
        return limit_minutes(sum(cost.of(mb[-1], n, sum(o)) for n, o, mb in found), attempt)

    return runtime
