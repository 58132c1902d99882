# Functions for rules whose jobs compute rows of tiles, and for those that fill several rows.
#
# needs   COHORTS, CONFIG, STUDY; DISTANCE_ROWS, COMPARE_ROWS; RESOLUTION, MAX_KINSHIP when called
# gives   row_planes(), compared_first(), row_pairs(), row_memory(), row_minutes(), group_planes(),
#         group_leader(), group_pairs(), group_memory(), group_minutes(), TILES_MADE, ROW_GROUPS,
#         FILLED_ROWS, FILLS

from popdesic.distance.fill_rows import ROWS_TOGETHER, leader_of, together
from popdesic.study.sparse import is_compared

#: Mark of a row whose tiles of both stages are there (`fill_rows`), and cohorts that fill together,
#: by the first one: of a study without a matrix of all pairs.
TILES_MADE = "results/distance/tiles/{row}/filled.json"
ROW_GROUPS, FILLED_ROWS = together(COHORTS), (DISTANCE_ROWS, COMPARE_ROWS)
#: Whether the tiles of this study are filled.
FILLS = STUDY.sparse and is_compared(CONFIG)


def row_planes(rows):
    """Input of a row: planes of the cohorts of its pairs, their own cohort's last."""

    def planes(wildcards):
        return expand(
            "results/cohorts/{cohort}/planes{end}",
            cohort=[other_of(wildcards.row, pair) for pair in rows.pairs(wildcards.row)],
            end=[".npy", ".json"],
        )

    return planes


def compared_first(wildcards):
    """Input of rows of distances on a GPU: what comparisons wait for, so that these come first.

    Relatives decide who defines the axes, for which most of a run waits; distances are needed later.
    """
    return [ancient(RESOLUTION)] if CONFIG["device"] == "gpu" and MAX_KINSHIP else []


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
