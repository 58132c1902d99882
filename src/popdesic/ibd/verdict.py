"""One verdict on each pair of relatives, from shared segments, PC-Relate and KING-robust kinship.

A pair that any of them lists is judged once. Its kinship rests on the first of these that knows it:

- shared segments, where enough of the genome was searched for them (`degrees.LEAST_SEARCHED`) and
  neither sample is inbred: what two inbred samples share is more than segments can say;
- PC-Relate, where the components describe the ancestry of both cohorts;
- KING-robust kinship, in cohorts in which its model holds.

Duplicates are decided by their genotypes alone. All others have a degree only where the genome is
long enough and the interval of kinship spans at most MOST_SPAN degrees. The other analyses agree
where their interval meets the verdict's, or where they do not list the pair and need not.
"""

from __future__ import annotations

import csv
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..cohort.contigs import AUTO, genome_of_panel
from ..cohort.panel import load_panel
from ..core.files import read_json, write_json
from ..core.tables import read_table, write_table
from ..io.sites import contig_runs
from ..relatives.kinship import SAME, panel_parent_limit
from ..relatives.resolution import DUPLICATE, FIRST, SECOND, THIRD, Resolution, load_resolution
from .degrees import ERRORS, LEAST_SEARCHED, SIBLINGS, DegreeScale

log = logging.getLogger(__name__)

COLUMNS = ["sample_a", "sample_b", "cohort_a", "cohort_b", "relation", "why", "kinship"]
COLUMNS += ["low", "high", "basis", "agree", "differ", "segments", "pc_relate", "king"]
#: Analyses in the order in which a verdict rests on them; also columns of the table.
SOURCES = ("segments", "pc_relate", "king")
#: Relations of pairs that are told, closest first.
CLOSER, PARENTS, SIBLINGS_OF = "first degree or closer", "parent and child", "full siblings"
SECOND_DEGREE, THIRD_DEGREE = "second degree", "third degree"
DISTANT, UNRELATED = "distant", "unrelated"
#: Relation of pairs whose degree cannot be told.
UNTOLD = "sharing only"
#: Relations of close relatives, closest first; SAME is none.
CLOSE = (CLOSER, PARENTS, SIBLINGS_OF, SECOND_DEGREE, THIRD_DEGREE)
#: All of them, in the order of pages.
RELATIONS = (SAME, *CLOSE, DISTANT, UNRELATED, UNTOLD)
#: Why a degree is not told (`why`); "none" where it is.
SHORT, WIDE = "genome too short", "interval too wide"
#: Widest interval of a degree, in halvings of kinship. All below the fourth degree counts as that.
MOST_SPAN = 2.0
_FOURTH = THIRD / 2
#: Inbreeding coefficient by PC-Relate from which segments do not say all that two samples share.
INBRED = 0.04
#: Median kinship of a cohort by PC-Relate from which its components do not describe it: the limit
#: of fourth degree.
STRANGERS = 2**-5.5
#: Kinship by segments below which no interval reaches the third degree.
_LEAST_SHARED = THIRD / 4
#: Rows of `ibd/pairs.tsv` that are read at once.
_ROWS = 1 << 16


@dataclass(frozen=True)
class SearchedGenome:
    """What of a genome is searched.

    Attributes
    ----------
    panel : DegreeScale
        Autosomes of the panel from their first to their last site.
    segments : DegreeScale or None
        What was searched for segments; None if nothing was.
    """

    panel: DegreeScale
    segments: DegreeScale | None = None

    @property
    def tells(self) -> bool:
        """Whether any degree is told."""
        return self.panel.tells or (self.segments is not None and self.segments.tells)


@dataclass
class KinEvidence:
    """Pairs of each analysis; None if it was not made.

    Attributes
    ----------
    segments : DataFrame
        `ibd/pairs.tsv`: sample1, sample2, cohort1, cohort2, total_cM, ibd2_cM, segments, longest
        first. Pairs without a row share nothing.
    pc_relate : DataFrame
        `compare/pc_relate.tsv`: sample_a, sample_b, cohort_a, cohort_b, sites, kinship, k0.
    king : DataFrame
        `compare/kinship.tsv`: the same names, called, ibs0, kinship, relation.
    inbreeding : dict
        Inbreeding coefficient of each sample by PC-Relate.
    resolution : Resolution or None
        Standard errors of kinship; without, only segments tell degrees.
    listed : float
        Kinship from which PC-Relate and KING-robust list pairs.
    parents : float
        Share of opposite homozygotes, of those that strangers have, below which first-degree
        relatives are parent and child.
    opposite : float
        Share of sites with opposite homozygotes that strangers have.
    missed, failing : set
        Cohorts that PC-Relate's components do not describe, and in which KING-robust kinship fails.
    """

    segments: pd.DataFrame | None = None
    pc_relate: pd.DataFrame | None = None
    king: pd.DataFrame | None = None
    inbreeding: Mapping[str, float] = field(default_factory=dict)
    resolution: Resolution | None = None
    listed: float = SECOND
    parents: float = SIBLINGS
    opposite: float = 0.0
    missed: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()


def panel_genome(
    panel: Path, counts: Path, genetic_map: str, x_contigs: str | Sequence[str]
) -> DegreeScale:
    """Autosomes of `panel/sites.tsv`, by `genetic_map`; one centimorgan a megabase without.

    Also where the map lacks one of them, which the log says. `counts`: `panel/counts.json`, which
    knows the other contigs; `x_contigs`: `contigs.x`.
    """
    sites, _ = load_panel(panel, ["chrom", "pos"])
    genome = genome_of_panel(counts)
    others = {*genome.excluded(AUTO), *genome.x_contigs(x_contigs)}
    sites = sites[~sites.chrom.isin(others)].reset_index(drop=True)
    cm = sites.pos.to_numpy(np.float64) / 1e6
    if genetic_map:
        from ..cohort.genetic_maps import UnmappedContigError, read_map

        try:
            cm = read_map(Path(genetic_map), sites)
        except UnmappedContigError as error:
            log.warning("%s Until then 1 Mb counts as 1 cM where relatives are judged.", error)
    return DegreeScale(_lengths(sites, cm), 0.0)


def _lengths(sites: pd.DataFrame, cm: np.ndarray) -> np.ndarray:
    """Genetic length of each contig: float64 (n_contigs,)."""
    runs = contig_runs(sites.chrom.to_numpy())
    return np.array([cm[last - 1] - cm[first] for first, last in runs])


def panel_evidence(panel: Path, error_rate: float, listed: float) -> KinEvidence:
    """KinEvidence without pairs, on `panel/sites.tsv`; parameters as in `judge_study`."""
    af = load_panel(panel, ["af"])[0].af.to_numpy()
    opposite = float(np.mean(2 * (af * (1 - af)) ** 2)) if len(af) else 0.0
    if not opposite:
        return KinEvidence(listed=listed)
    parents = panel_parent_limit(af, error_rate) / opposite
    return KinEvidence(listed=listed, opposite=opposite, parents=parents)


def judge_study(
    files: Mapping[str, Path],
    out: Path,
    summary: Path,
    *,
    genetic_map: str,
    x_contigs: str | Sequence[str],
    min_cm: float,
    listed: float,
    error_rate: float,
) -> dict[str, Any]:
    """Write the verdict on every pair of a study, and what they rest on.

    Parameters
    ----------
    files : dict
        ``panel``, ``counts`` (`panel/counts.json`) and, of analyses that were made, ``resolution``
        (`compare/kinship.json`), ``king`` (`compare/kinship.tsv`), ``untold``
        (`compare/kinship_untold.tsv`), ``pc_relate``, ``samples`` and ``about`` (its three files),
        ``segments`` (`ibd/pairs.tsv`) and ``genome`` (`ibd/genome.npz`).
    out, summary : Path
        `compare/relatives.tsv` and `compare/relatives.json`.
    genetic_map, error_rate, x_contigs
        As in the configuration (`contigs.x`).
    min_cm : float
        Shortest segment.
    listed : float
        Kinship from which kinships are listed.

    Returns
    -------
    dict
        Content of `summary`: ``searched_cm``, ``tells`` (whether degrees are told at all),
        ``sources`` (analyses that were made), ``relations`` and ``why`` (numbers of pairs), and
        ``differ``: pairs of which an analysis differs from the verdict.
    """
    scale = panel_genome(files["panel"], files["counts"], genetic_map, x_contigs)
    segments = None
    if "genome" in files:
        with np.load(files["genome"]) as arrays:
            cm = arrays["cm"]
        segments = DegreeScale(_lengths(load_panel(files["panel"], ["chrom"])[0], cm), min_cm)
    genome = SearchedGenome(scale, segments if segments and segments.searched_cm else None)
    found = panel_evidence(files["panel"], error_rate, listed)
    if "resolution" in files:
        found.resolution = load_resolution(files["resolution"])
    if "king" in files:
        found.king = read_table(files["king"])
        found.failing = frozenset(read_table(files["untold"]).cohort)
    if "pc_relate" in files:
        found.pc_relate = read_table(files["pc_relate"])
        people, about = read_table(files["samples"]), read_json(files["about"])
        found.inbreeding = dict(zip(people["sample"], people.inbreeding.astype(float), strict=True))
        medians = about["median_kinship"].items()
        found.missed = frozenset(cohort for cohort, value in medians if value > STRANGERS)
    if genome.segments is not None:
        found.segments = _close_segments(files["segments"], genome.segments)
    table = judge_pairs(found, genome)
    write_table(out, table.round(dict.fromkeys(("kinship", "low", "high", *SOURCES), 6)))
    made = {"segments": found.segments, "pc_relate": found.pc_relate, "king": found.king}
    relations, reasons = Counter(table.relation), Counter(table.why)
    about = {
        "searched_cm": round(segments.searched_cm if found.segments is not None
                             and segments.tells else scale.searched_cm, 3),
        "least_cm": LEAST_SEARCHED,
        "tells": genome.tells,
        "sources": [name for name in SOURCES if made[name] is not None],
        "relations": {name: relations[name] for name in RELATIONS if relations[name]},
        "why": {name: reasons[name] for name in (SHORT, WIDE) if reasons[name]},
        "differ": int((table.differ != "none").sum()),
    }  # fmt: skip
    write_json(summary, about)
    return about


def _close_segments(path: Path, scale: DegreeScale) -> pd.DataFrame:
    """Rows of `ibd/pairs.tsv` whose interval may reach the third degree."""
    kept = []
    with open(path, encoding="utf-8", newline="") as file:
        names = {"sample1": str, "sample2": str, "cohort1": str, "cohort2": str}
        for part in pd.read_csv(
            file, sep="\t", dtype=names, keep_default_na=False, quoting=csv.QUOTE_NONE,
            chunksize=_ROWS,
        ):  # fmt: skip
            close = scale.kinship(part.total_cM, part.ibd2_cM) >= _LEAST_SHARED
            kept.append(part[close])
            if not close.all():  # longest first
                break
    return pd.concat(kept, ignore_index=True)


def surely_close(table: pd.DataFrame) -> pd.DataFrame:
    """Verdicts of relatives whose whole interval lies within the third degree; no duplicates."""
    low = pd.to_numeric(table.low, errors="coerce")
    return table[table.relation.isin(CLOSE) & (low >= THIRD)]


def relation_by_pair(table: pd.DataFrame | None) -> dict[frozenset[str], str]:
    """Relation of each pair of `compare/relatives.tsv`."""
    if table is None:
        return {}
    names = zip(table.sample_a, table.sample_b, strict=True)
    return dict(zip(map(frozenset, names), table.relation, strict=True))


def relation_of(kinship: float, k0: float, parents: float = SIBLINGS) -> str:
    """Relation by a kinship, and by the share `k0` of the genome without a shared allele."""
    if kinship > DUPLICATE:
        return CLOSER
    if kinship > FIRST:
        return PARENTS if k0 < parents else SIBLINGS_OF
    if kinship > SECOND:
        return SECOND_DEGREE
    return THIRD_DEGREE if kinship > THIRD else DISTANT


def why_untold(tells: bool, low: float, high: float) -> str:
    """Why the degree of a pair is not told, by the interval of its kinship; empty if it is."""
    if not tells:
        return SHORT
    span = np.log2(max(high, _FOURTH) / max(low, _FOURTH))
    return "" if span <= MOST_SPAN else WIDE  # also where there is no interval


def standard_errors(resolution: Resolution | None, sites, share: float) -> np.ndarray:
    """Standard error of kinship with so many sites: infinite where it was not measured.

    `share`: of the variance of KING-robust kinship: a third for PC-Relate.
    """
    if resolution is None or resolution.standard_error is None:
        return np.full(np.shape(sites), np.inf)
    every = np.maximum(np.asarray(sites, np.float64), 1)
    return resolution.standard_error * np.sqrt(share * resolution.sites / every)


def judge_pairs(found: KinEvidence, genome: SearchedGenome) -> pd.DataFrame:
    """The verdict on every pair that an analysis lists, columns COLUMNS; closest first.

    Pairs that segments alone know are listed if enough of the genome was searched and their
    interval reaches the third degree.
    """
    table = _all_pairs(found, genome)
    values = {name: _intervals(name, table, found, genome) for name in SOURCES}
    same = table.same.to_numpy(bool)
    inbred = table.inbred.to_numpy()
    known = {
        "segments": np.full(len(table), genome.segments is not None),
        "pc_relate": np.isfinite(table.pc_relate.to_numpy()),
        "king": np.isfinite(table.king.to_numpy()),
    }
    # Segments of a short genome, or of inbred samples, come last.
    searched = genome.segments is not None and genome.segments.tells
    first = searched & ~((inbred > INBRED) & known["pc_relate"])
    order = [first, known["pc_relate"], known["king"], known["segments"]]
    basis = np.select(order, ["segments", "pc_relate", "king", "segments"], "king")
    rows = np.arange(len(table))
    chosen = np.array([SOURCES.index(name) for name in basis], np.int64)
    kinship, low, high = (
        np.stack([values[name][k] for name in SOURCES])[chosen, rows] for k in range(3)
    )
    tells = np.where(basis == "segments", searched, genome.panel.tells)
    relations, reasons = [], []
    # Segments say how inbred samples are related, too, if not how much they share.
    shown = np.where(searched, "segments", basis)
    for k in range(len(table)):
        why = "" if same[k] else why_untold(bool(tells[k]), low[k], high[k])
        label = SAME if same[k] else values[shown[k]][3][k]
        relations.append(UNTOLD if why else label)
        reasons.append(why or "none")
    agree, differ = _agreement(table, values, basis, low, high, found, genome)
    judged = pd.DataFrame(
        {
            **{name: table[name] for name in COLUMNS[:4]},
            **{"relation": relations, "why": reasons, "kinship": kinship},
            **{"low": np.maximum(low, 0.0), "high": np.minimum(high, 1.0), "basis": basis},
            **{"agree": agree, "differ": differ},
            **{name: values[name][0] for name in SOURCES},
        }
    )
    listed = np.isfinite(table.pc_relate) | np.isfinite(table.king) | table.same
    judged = judged[listed.to_numpy() | (searched & (judged.high >= THIRD).to_numpy())]
    judged = judged.assign(_same=judged.relation != SAME, _order=-judged.kinship)
    judged = judged.sort_values(["_same", "_order", "sample_a", "sample_b"], kind="stable")
    return judged[COLUMNS].reset_index(drop=True)


def _all_pairs(found: KinEvidence, genome: SearchedGenome) -> pd.DataFrame:
    """Pairs of all analyses with what each says: lengths of segments 0, others NaN without it."""
    names = ["sample_a", "sample_b", "cohort_a", "cohort_b"]
    parts = []
    if found.king is not None:
        king = found.king
        failing = king.cohort_a.isin(found.failing) | king.cohort_b.isin(found.failing)
        value = pd.to_numeric(king.kinship, errors="coerce")
        called = king.called.astype(np.float64)
        share = king.ibs0.astype(np.float64) / np.maximum(called, 1)
        parts.append(
            king[names].assign(
                king=value.mask(failing),
                called=called,
                king_k0=share / max(found.opposite, 1e-9),
                same=king.relation == SAME,
            )
        )
    if found.pc_relate is not None:
        table = found.pc_relate
        missed = table.cohort_a.isin(found.missed) | table.cohort_b.isin(found.missed)
        parts.append(
            table[names].assign(
                pc_relate=pd.to_numeric(table.kinship, errors="coerce").mask(missed),
                pc_k0=pd.to_numeric(table.k0, errors="coerce"),
                sites=table.sites.astype(np.float64),
            )
        )
    if found.segments is not None and genome.segments is not None:
        table = found.segments
        columns = {f"{name}{k}": f"{name}_{x}" for name in ("sample", "cohort") for k, x in
                   ((1, "a"), (2, "b"))}  # fmt: skip
        lengths = {name: table[name].astype(np.float64) for name in ("total_cM", "ibd2_cM")}
        number = {"number": table.segments.astype(np.float64)}
        parts.append(table.rename(columns=columns)[names].assign(**lengths, **number))
    empty = pd.DataFrame(columns=names)
    every = pd.concat(parts, ignore_index=True) if parts else empty
    swapped = (every.sample_a > every.sample_b).to_numpy()
    one = every.sample_a.where(~swapped, every.sample_b)
    other = every.sample_b.where(~swapped, every.sample_a)
    numbers = ["king", "called", "king_k0", "pc_relate", "pc_k0", "sites"]
    numbers += ["total_cM", "ibd2_cM", "number"]
    for name in numbers:
        every[name] = every[name].astype(np.float64) if name in every else np.nan
    every["same"] = every["same"].eq(True) if "same" in every else False
    how = dict.fromkeys(names, "first") | dict.fromkeys(numbers, "max") | {"same": "max"}
    table = every.groupby([one, other], sort=False).agg(how).reset_index(drop=True)
    lengths = ["total_cM", "ibd2_cM", "number"]
    table[lengths] = table[lengths].fillna(0.0)
    own = [table[name].map(dict(found.inbreeding)).astype(np.float64) for name in names[:2]]
    table["inbred"] = np.maximum(*(values.fillna(0.0).to_numpy() for values in own))
    return table


def _intervals(name: str, table: pd.DataFrame, found: KinEvidence, genome: SearchedGenome) -> tuple:
    """Kinship of all pairs by one analysis, its interval, and the relation that it speaks for."""
    if name == "segments":
        return _by_segments(table, genome.segments)
    value = table[name].to_numpy(np.float64)
    sites, share, k0 = (
        ("sites", 1 / 3, "pc_k0") if name == "pc_relate" else ("called", 1, "king_k0")
    )
    error = standard_errors(found.resolution, table[sites].fillna(1), share)
    k0, inbred = table[k0].to_numpy(np.float64), np.clip(table.inbred.to_numpy(), 0, 0.5)
    # What inbred samples share with themselves scatters too, and doubles in a duplicate.
    own = 2 * genome.panel.scatter(inbred / 4) * np.where(table.same, 2, 1)
    spread = np.sqrt(error**2 + _passed_on(value, k0, table.same, genome.panel) ** 2)
    spread = np.hypot(spread, np.where(inbred > INBRED, own, 0.0))
    labels = [
        relation_of(one, other, found.parents)
        for one, other in zip(value.tolist(), k0.tolist(), strict=True)
    ]
    return value, value - ERRORS * spread, value + ERRORS * spread, labels


def _passed_on(
    value: np.ndarray, k0: np.ndarray, same: pd.Series, scale: DegreeScale
) -> np.ndarray:
    """Standard deviation of kinship by which part of the genome was passed on."""
    fixed = same.to_numpy(bool) | ((value > FIRST) & (k0 < SIBLINGS))
    siblings = (value > FIRST) & ~fixed
    near = np.nan_to_num(value)
    return np.where(
        fixed, 0.0, np.where(siblings, scale.scatter(near, parents=1), scale.scatter(near))
    )


def _by_segments(table: pd.DataFrame, scale: DegreeScale | None) -> tuple:
    """As `_intervals`, of shared segments."""
    if scale is None:
        nothing = np.full(len(table), np.nan)
        return nothing, nothing, nothing, [DISTANT] * len(table)
    total, two, number = (table[name].to_numpy() for name in ("total_cM", "ibd2_cM", "number"))
    value = scale.kinship(total, two)
    degree, low, high = scale.interval(total, two, number)
    parents, siblings = scale.parents(total, two), scale.siblings(total, two)
    labels = np.select(
        [total == 0, scale.identical(two), parents, siblings, degree == 2, degree == 3],
        [UNRELATED, CLOSER, PARENTS, SIBLINGS_OF, SECOND_DEGREE, THIRD_DEGREE],
        DISTANT,
    )
    return value, low, high, labels.tolist()


def _agreement(table, values, basis, low, high, found, genome) -> tuple[list[str], list[str]]:
    """Analyses that agree with the verdict on each pair, and that differ; "none" without any."""
    agree, differ = ([[] for _ in basis] for _ in range(2))
    made = {
        "segments": genome.segments is not None and genome.segments.tells,
        "pc_relate": found.pc_relate is not None,
        "king": found.king is not None,
    }
    away = {"pc_relate": found.missed, "king": found.failing}
    for name in SOURCES:
        value, least, most, _ = values[name]
        said = np.isfinite(value)
        meets = np.where(said, (least <= high) & (most >= low), low < found.listed)
        out = table.cohort_a.isin(away.get(name, ())) | table.cohort_b.isin(away.get(name, ()))
        counts = made[name] & (basis != name) & ~out.to_numpy()
        for k in np.flatnonzero(counts).tolist():
            (agree if meets[k] else differ)[k].append(name)
    return tuple([",".join(names) or "none" for names in one] for one in (agree, differ))
