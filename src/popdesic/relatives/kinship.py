"""KING-robust kinship from integer counts, degrees of relationship, unrelated sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.tables import read_table, write_table
from ..distance.rows import read_tiles
from ..engine.backend import Backend
from ..engine.terms import KINSHIP, Planes
from .resolution import FIRST, Resolution

Node = TypeVar("Node", int, str)

#: Where the limit between parent and child and full siblings lies, as a share of the way from the
#: opposite homozygotes of parents (genotyping errors) to those of siblings (`parent_limit`). Nearer
#: to parents, because siblings scatter: 0.25 +- 0.04 of the genome without a shared allele over 22
#: chromosomes, and less than expected where the panel's frequencies mix several populations.
PARENT_SHARE = 1 / 3
#: Label of two profiles of the same person. Genotype mismatches alone decide this
#: (`Resolution.verdict`), as in `identity.tsv`, never kinship.
SAME = "duplicate or identical twin"
#: Label of all other close pairs: their degree is in the verdict of all analyses (`ibd.verdict`).
RELATED = "related"
#: Start of the relation of a pair that is not told, because kinship fails in a cohort.
UNTOLD = "not told: "
#: Largest group of relatives whose maximum unrelated set is found exactly.
EXACT_GROUP = 40

COLUMNS = ["sample_a", "sample_b", "cohort_a", "cohort_b", "called", "ibs0", "het_a", "het_b"]
COLUMNS += ["both_het", "kinship", "relation"]


def kinship_counts(a: Planes, b: Planes | None, backend: Backend) -> dict[str, np.ndarray]:
    """Counts of all pairs of samples: int64 (m, n) by output name of `engine.terms.KINSHIP`.

    ``b=None`` compares a with itself.
    """
    return dict(zip(KINSHIP.outputs, backend.bitgemm(a, b, KINSHIP), strict=True))


def king_robust(counts: dict[str, np.ndarray]) -> np.ndarray:
    """KING-robust kinship of pairs of samples (Manichaikul et al. 2010, equation 11).

    ``phi = 1/2 - S / (4 min(het_a, het_b))`` with S the squared genotype distance
    ``4 ibs0 + het_a + het_b - 2 both_het``, all over jointly called sites. Robust to population
    structure between pairs of one population; across populations it is negative.

    Parameters
    ----------
    counts : dict of int64 arrays of one shape
        Outputs of the terms `engine.terms.KINSHIP`.

    Returns
    -------
    float64 array
        NaN if one of the two samples has no heterozygous site among the jointly called sites.
    """
    squared = squared_distance(counts)
    least = np.minimum(counts["het_a"], counts["het_b"])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(least > 0, 0.5 - squared / (4.0 * least), np.nan)


def squared_distance(counts: dict[str, np.ndarray]) -> np.ndarray:
    """Sum of squared differences over jointly called sites, of the outputs of `KINSHIP`."""
    return 4 * counts["ibs0"] + counts["het_a"] + counts["het_b"] - 2 * counts["both_het"]


def parent_limit(opposite: float, het: float, error_rate: float) -> float:
    """Share of opposite homozygotes below which first-degree relatives are parent and child.

    Full siblings share no allele by descent at a quarter of the genome and have opposite
    homozygotes at ``opposite / 4`` of the sites. A parent and a child have them where one is
    heterozygous, the other homozygous, and an allele is misread: at ``error_rate * het / 2``. Both
    scale with the frequencies of the panel, and so does the limit (PARENT_SHARE).

    Parameters
    ----------
    opposite, het : float
        Expected shares of opposite homozygotes between unrelated people and of heterozygotes: means
        over sites of 2p²q² and 2pq.
    error_rate : float
        Share of genotypes with one allele misread.
    """
    parents, siblings = error_rate * het / 2, opposite / 4
    return parents + PARENT_SHARE * max(siblings - parents, 0.0)


def panel_parent_limit(af: np.ndarray, error_rate: float) -> float:
    """`parent_limit` of a panel: float64 (n_sites,) ALT frequencies."""
    het = 2 * af * (1 - af)
    return parent_limit(float(np.mean(het**2)) / 2, float(np.mean(het)), error_rate)


def close_pairs(
    counts: dict[str, np.ndarray],
    *,
    min_kinship: float | np.ndarray,
    min_called: int,
    upper: bool,
    same: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and kinship of the pairs of a block with at least `min_kinship`.

    Pairs with fewer than `min_called` jointly called sites are left out. `min_kinship` may be
    a matrix with one limit per pair. `upper`: the block compares samples with themselves, so only
    pairs above the diagonal count. `same`: bool, pairs included whatever their kinship.
    """
    kinship = king_robust(counts)
    with np.errstate(invalid="ignore"):
        close = kinship >= min_kinship
    if same is not None:
        close |= same
    close &= counts["called"] >= min_called
    if upper:
        close = np.triu(close, 1)
    rows, columns = np.nonzero(close)
    return rows, columns, kinship[rows, columns]


def as_close(
    counts: np.ndarray, min_kinship: float, min_called: int, resolution: Resolution
) -> np.ndarray:
    """Which pairs `compare_cohorts` writes: bool (n_pairs,), from counts (5, n_pairs)."""
    named = {name: values[None] for name, values in zip(KINSHIP.outputs, counts, strict=True)}
    _, chosen, _ = close_pairs(
        named,
        min_kinship=np.maximum(resolution.least_kinship(named["called"]), min_kinship),
        min_called=min_called,
        upper=False,
        same=resolution.same(mismatching(named), named["called"]),
    )
    return np.isin(np.arange(counts.shape[1]), chosen)


def pairs_table(
    people_a: Sequence[tuple[str, str]],
    people_b: Sequence[tuple[str, str]],
    counts: dict[str, np.ndarray],
    phi: np.ndarray,
    *,
    resolution: Resolution,
) -> pd.DataFrame:
    """The table of close pairs, columns COLUMNS.

    Parameters
    ----------
    people_a, people_b : list of (sample, cohort)
        Of each pair.
    counts : dict of int64 arrays, (n_pairs,)
        Outputs of the terms `engine.terms.KINSHIP`.
    phi : float64 array, (n_pairs,)
        KING-robust kinship.
    """
    mismatches = mismatching(counts)
    same = resolution.same(mismatches, counts["called"])
    names = [*zip(*people_a, strict=True)] or [(), ()]
    others = [*zip(*people_b, strict=True)] or [(), ()]
    relations = np.where(same, SAME, RELATED)
    columns = [names[0], others[0], names[1], others[1]]
    columns += [counts[name] for name in ("called", "ibs0", "het_a", "het_b", "both_het")]
    return pd.DataFrame(dict(zip(COLUMNS, [*columns, phi, relations], strict=True)))


def mismatching(counts: dict[str, np.ndarray]) -> np.ndarray:
    """Jointly called sites at which two samples differ, of the outputs of `KINSHIP`."""
    return counts["het_a"] + counts["het_b"] - 2 * counts["both_het"] + counts["ibs0"]


def kinship_tiles(rows: Iterable[Path | str], *, closed: bool = True) -> list[Path]:
    """The tables of close pairs of some rows (`row.json`), in order of their names."""
    return list(read_tiles(rows, ".kinship.tsv", closed=closed).values())


def read_pairs(tiles: list[Path], min_kinship: float) -> pd.DataFrame:
    """Pairs of all tiles that are the same person or have at least `min_kinship`.

    Pairs of cohorts in which kinship fails are left out (`untold_pairs`).
    Kinship is numeric, NaN if two profiles of the same person have no heterozygous site.
    """
    table = pd.concat([read_table(tile) for tile in tiles], ignore_index=True)
    table["kinship"] = pd.to_numeric(table.kinship, errors="coerce")
    close = (table.kinship >= min_kinship) | (table.relation == SAME)
    close &= ~table.relation.str.startswith(UNTOLD)
    return table[close].reset_index(drop=True)


def without_faults(table: pd.DataFrame, faults: dict[str, str | None]) -> pd.DataFrame:
    """Mark close pairs of cohorts in which kinship fails as not told, except the same person.

    faults: key of `independence.FAULTS`, or None, by cohort.
    """
    relation = table.relation.copy()
    for cohort, fault in faults.items():
        if fault is not None:
            own = (table.cohort_a == cohort) | (table.cohort_b == cohort)
            own &= (table.relation != SAME) & ~relation.str.startswith(UNTOLD)
            relation[own] = f"{UNTOLD}{fault} of {cohort}"
    return table.assign(relation=relation)


def untold_pairs(tiles: list[Path], out: Path) -> pd.DataFrame:
    """Write the cohorts in which kinship fails: `cohort`, `fault`, `pairs` that are not told.

    Only cohorts with pairs that would be told otherwise are known, and listed.
    """
    parts = [read_table(tile).relation for tile in tiles]
    found = pd.concat(parts) if parts else pd.Series(dtype=str)
    counts = found[found.str.startswith(UNTOLD)].str.removeprefix(UNTOLD).value_counts()
    rows = [(*reversed(key.split(" of ", 1)), int(counts[key])) for key in sorted(counts.index)]
    table = pd.DataFrame(rows, columns=["cohort", "fault", "pairs"])
    write_table(out, table)
    return table


def untold_cohorts(results: Path) -> pd.DataFrame:
    """Cohorts in which kinship fails: `cohort`, `fault`, `pairs` (`compare/kinship_untold.tsv`)."""
    path = results / "compare/kinship_untold.tsv"
    if not path.exists():
        return pd.DataFrame(columns=["cohort", "fault", "pairs"])
    return read_table(path)


def join_pairs(tiles: list[Path], out: Path, *, min_kinship: float = -np.inf) -> pd.DataFrame:
    """Write the close pairs of all tiles to one table, closest first, ties by name."""
    table = closest_first(read_pairs(tiles, min_kinship))
    write_table(out, table)
    return table


def closest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Close pairs by kinship as it is written, ties by name."""
    table = table.assign(_value=-table.kinship)
    return table.sort_values(["_value", "sample_a", "sample_b"], kind="stable")[COLUMNS]


def choose_unrelated(
    tiles: list[Path],
    fams: dict[str, Path],
    out: Path,
    *,
    max_kinship: float,
    resolution: Resolution,
) -> dict[str, int | float | str]:
    """Write which founder samples define the PCA axes: a maximum set without close relatives.

    Parameters
    ----------
    tiles : list of Path
        Close pairs of all pairs of founder cohorts, above what the panel can resolve.
    fams : dict
        ``cohorts/{cohort}/genotypes.fam`` by cohort: sample names, in the order of the planes.
    out : Path
        `panel/unrelated.tsv`: `sample`, `cohort`, `unrelated` (yes or no), `relatives` (number of
        founders related at or above the limit).
    max_kinship : float
        Pairs at or above it are relatives, and so are duplicates.
    resolution : Resolution
        What the panel can distinguish: with few independent sites, pairs whose kinship unrelated
        people could reach by chance do not count, and the larger limit is used.

    Returns
    -------
    dict
        Founders, unrelated founders, pairs of relatives, the configured limit and the limit in
        use.

    Raises
    ------
    UserError
        Fewer than two samples are left.
    """
    from ..io.bed import read_fam

    rows = [(name, c) for c, fam in fams.items() for name in read_fam(fam)["sample"]]
    samples = pd.DataFrame(rows, columns=["sample", "cohort"])
    pairs = read_pairs(tiles, max_kinship)
    index = {name: i for i, name in enumerate(samples["sample"])}
    edges = [(index[a], index[b]) for a, b in zip(pairs.sample_a, pairs.sample_b, strict=True)]
    kept = unrelated_set(len(samples), edges)
    if len(kept) < 2:
        raise UserError(
            f"results/panel/unrelated.tsv: at most {len(kept)} of the {len(samples)} founder "
            f"samples is unrelated (kinship below close_kinship = {max_kinship}), but PCA "
            "axes need two; raise it, or set it to 0 for axes from all founders."
        )
    degree = np.bincount(np.array(edges, np.int64).ravel(), minlength=len(samples))
    write_table(
        out,
        samples.assign(
            unrelated=np.where(np.isin(np.arange(len(samples)), kept), "yes", "no"),
            relatives=degree,
        ),
    )
    smallest = resolution.smallest_kinship
    return {
        "founders": len(samples),
        "unrelated": len(kept),
        "pairs of relatives": len(edges),
        "kinship limit asked for (close_kinship)": max_kinship,
        "kinship limit in use (what the panel's sites tell)": (
            "none, only duplicates" if smallest is None else max(max_kinship, smallest)
        ),
    }


def relatives_but_one(tiles: list[Path]) -> set[str]:
    """Samples to leave out so that no duplicates or first-degree relatives remain.

    A maximum unrelated set of every family is kept; ties go to the first name. Without tiles,
    nobody is left out.
    """
    if not tiles:
        return set()
    pairs = read_pairs(tiles, FIRST)
    names = sorted({*pairs.sample_a, *pairs.sample_b})
    index = {name: i for i, name in enumerate(names)}
    edges = [(index[a], index[b]) for a, b in zip(pairs.sample_a, pairs.sample_b, strict=True)]
    kept = {names[i] for i in unrelated_set(len(names), edges)}
    return set(names) - kept


def related_newcomers(
    tiles: list[Path], names: list[str], unrelated: pd.DataFrame, max_kinship: float
) -> set[str]:
    """Samples of a newcomer cohort to leave out so that no relatives are left in the study.

    Those go who are related to an unrelated founder or to anyone of another newcomer cohort that
    its row holds, since cohorts that came before must not change; of the others a maximum unrelated
    set is kept.

    Parameters
    ----------
    tiles : list of Path
        Close pairs of the cohort's row.
    names : list of str
        Its samples.
    unrelated : DataFrame
        `panel/unrelated.tsv`.
    max_kinship : float
        As in `choose_unrelated`.
    """
    pairs, own = read_pairs(tiles, max_kinship), set(names)
    passed_over = own | set(unrelated["sample"][unrelated.unrelated != "yes"])
    edges: list[tuple[str, str]] = []
    gone: set[str] = set()
    for a, b in zip(pairs.sample_a, pairs.sample_b, strict=True):
        if a in own and b in own:
            edges.append((a, b))
        else:
            gone |= {x for x, y in ((a, b), (b, a)) if x in own and y not in passed_over}
    left = [name for name in names if name not in gone]
    index = {name: i for i, name in enumerate(left)}
    inner = [(index[a], index[b]) for a, b in edges if a in index and b in index]
    return own - {left[i] for i in unrelated_set(len(left), inner)}


def neighbours_of(edges: Iterable[tuple[Node, Node]]) -> dict[Node, set[Node]]:
    """Those that each node of any edge is joined to."""
    neighbours: dict[Node, set[Node]] = {}
    for a, b in edges:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    return neighbours


def connected_groups(neighbours: Mapping[Node, set[Node]]) -> Iterator[set[Node]]:
    """Yield connected groups of nodes, that of the first node first."""
    waiting = set(neighbours)
    while waiting:
        group, frontier = set(), [min(waiting)]
        while frontier:
            node = frontier.pop()
            if node not in group:
                group.add(node)
                frontier += neighbours[node] - group
        waiting -= group
        yield group


def unrelated_set(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """A maximum independent set: samples without an edge between any two.

    Exact for connected groups of up to EXACT_GROUP samples. In larger groups, the sample with the
    fewest remaining relatives is taken repeatedly. Ties go to the first sample.
    """
    neighbours = neighbours_of(edges)
    kept = [i for i in range(n) if i not in neighbours]
    for group in connected_groups(neighbours):
        kept += (
            _largest(frozenset(group), neighbours)
            if len(group) <= EXACT_GROUP
            else _greedy(group, neighbours)
        )
    return sorted(kept)


def _greedy(group: set[int], neighbours: dict[int, set[int]]) -> list[int]:
    left, kept = set(group), []
    while left:
        node = min(left, key=lambda i: (len(neighbours[i] & left), i))
        kept.append(node)
        left -= neighbours[node] | {node}
    return kept


def _largest(group: frozenset[int], neighbours: dict[int, set[int]]) -> list[int]:
    """Branch on the node with most neighbours; nodes with at most one are always taken."""
    taken: list[int] = []
    while group:
        degree = {i: len(neighbours[i] & group) for i in group}
        easy = min((i for i in group if degree[i] <= 1), default=None)
        if easy is not None:
            taken.append(easy)
            group = group - neighbours[easy] - {easy}
            continue
        node = min(group, key=lambda i: (-degree[i], i))
        with_node = [node, *_largest(group - neighbours[node] - {node}, neighbours)]
        without = _largest(group - {node}, neighbours)
        return taken + (with_node if len(with_node) >= len(without) else without)
    return taken
