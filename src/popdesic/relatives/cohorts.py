"""Compare two cohorts: kinship, identity and contamination from one product.

The counts of `engine.terms.KINSHIP` show how closely two people are related, whether they are the
same person, and whether one has nearly no allele that the other lacks, as if the other's sample
contained both people's DNA. The backend goes through all pairs (`screen_pairs`); the few
that may be of interest are judged here.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..core.files import content_key
from ..core.tables import read_table, write_table
from ..distance.fill_rows import RowWork
from ..distance.rows import Pair, tile_key
from ..distance.tiles import load_of_one_panel
from ..engine.backend import Backend
from ..engine.terms import KINSHIP, Planes
from . import identity, kinship, mixture
from .independence import judge_cohort
from .matches import TopMatches
from .mixture import DROP_IN, DROPOUT, MOST_ABSENT
from .resolution import Resolution
from .screen import Screen
from .screen_pairs import screen_pairs

#: Tables of a tile, and the endings of their files.
TABLES = ("kinship", "identity", "mixture")
ENDINGS = tuple(f".{table}.tsv" for table in TABLES)

#: Rows of tables of best matches that are in memory at a time, of a few hundred bytes each.
MOST_ROWS = 4_000_000

IDENTITY = ["query", "query_cohort", "match", "match_cohort", "rank", "called", "mismatches"]
IDENTITY += ["mismatch_share", "log10_rmp", "log10_lr", "verdict"]
MIXTURE = ["mixture", "mixture_cohort", "reference", "reference_cohort", "contributors", "called"]
MIXTURE += ["absent", "absent_share", "log10_lr", "log10_rmne", "random_inclusions", "verdict"]


@dataclass(frozen=True)
class Limits:
    """Which pairs are written.

    Attributes
    ----------
    min_kinship : float
    top : int
        Best matches per query.
    error_rate : float
        Genotyping error rate, for the likelihood ratio of a match.
    max_absent : float
        Largest share of common sites at which a contributor has an allele that the mixture lacks.
    dropout, drop_in : float
    min_called : int
        Pairs with fewer jointly called sites are not judged.
    ploidy : int
        2 or 1: copies that a genotype has of a site.
    resolution : Resolution
        What the panel can distinguish, and how far samples of one person may differ.
    """

    min_kinship: float
    error_rate: float
    min_called: int
    resolution: Resolution
    top: int = 1
    ploidy: int = 2
    max_absent: float = MOST_ABSENT
    dropout: float = DROPOUT
    drop_in: float = DROP_IN

    @property
    def least_called(self) -> int:
        """Fewest jointly called sites at which two samples are compared.

        If the panel can establish identity at all, pairs with too few sites for it are left out:
        they would displace true matches.
        """
        return max(self.min_called, self.resolution.least_called or 0)


def row_work(
    out: Path,
    pairs: Sequence[Pair],
    folders: Mapping[str, Path],
    panel: Path,
    limits: Limits,
    code: str,
) -> RowWork:
    """Comparisons of a cohort with others: a row of tiles.

    Parameters
    ----------
    out : Path
        ``compare/tiles/{owner}/row.json``; the tables of a pair lie beside it (`ENDINGS`).
    pairs : list of pairs
        The row's pairs, each in sample order.
    folders : dict
        Folder of `planes.npy` of each cohort of the row.
    panel : Path
        `panel/sites.tsv`.
    limits : Limits
    code : str
        Digest of the code that compares cohorts.
    """
    about = content_key(panel), repr(limits), code
    frequencies = functools.cache(lambda: load_panel(panel)[0].af.to_numpy())
    faults: dict[Path, str | None] = {}
    keys = {pair: tile_key(pair, folders, *about) for pair in pairs}

    def compute(a, b, files, chosen, held) -> dict[str, int]:
        tables = dict(zip(TABLES, files, strict=True))
        return compare_cohorts(a, b, frequencies(), tables, chosen, limits, held, faults)

    return RowWork(out, pairs, ENDINGS, keys, compute)


def compare_cohorts(
    folder_a: Path,
    folder_b: Path,
    af: np.ndarray,
    out: dict[str, Path],
    backend: Backend,
    limits: Limits,
    held: Mapping[Path, Planes] | None = None,
    faults: dict[Path, str | None] | None = None,
) -> dict[str, int]:
    """Compare all samples of two cohorts, or of one cohort with itself.

    Parameters
    ----------
    folder_a, folder_b : Path
        Folders of `planes.npy`; the same folder twice for one cohort. The samples of b are the
        queries: b is the later cohort in sample order.
    af : float64 array, (n_sites,)
        ALT frequencies of the panel.
    out : dict
        Paths of the tables ``kinship``, ``identity`` and ``mixture``.
    limits : Limits
    held : dict
        Planes of a folder that the backend has at hand (`Backend.keep_planes`).
    faults : dict, optional
        What is known of kinship in the cohort of a folder (`independence.judge_cohort`). Cohorts
        with close pairs are judged and entered.

    Returns
    -------
    dict
        Pairs compared, pairs with too few jointly called sites, rows of each table.
    """
    (a, about_a), (b, about_b) = load_of_one_panel([folder_a, folder_b])
    same = folder_a == folder_b
    counted_a, counted_b = (held or {}).get(folder_a, a), (held or {}).get(folder_b, b)
    found = screen_pairs(
        backend, counted_a, None if same else counted_b, _screen_of(limits, af), limits.top
    )
    counted = found.counts, found.rows, found.columns
    pairs = _related_pairs(*counted, limits)
    compared = _Compared(a, b, about_a, about_b, af, limits)
    folders = folder_a, folder_b
    tables = {
        "kinship": _told(_kinship_table(pairs, compared), compared, folders, faults, backend),
        "identity": _identity_table(found.best, compared),
        "mixture": _mixture_table(*counted, compared),
    }
    for name, table in tables.items():
        write_table(out[name], table)
    n_pairs = a.n_samples * (a.n_samples - 1) // 2 if same else a.n_samples * b.n_samples
    return {
        "pairs": n_pairs,
        "pairs with too few jointly called sites": found.few,
        **{f"{name} rows": len(table) for name, table in tables.items()},
    }


_KINSHIP_COUNTS = ("called", "ibs0", "het_a", "het_b", "both_het")


@dataclass(frozen=True)
class _Compared:
    """The two cohorts of a comparison, ALT frequencies and limits."""

    a: Planes
    b: Planes
    about_a: dict
    about_b: dict
    af: np.ndarray
    limits: Limits


def _screen_of(limits: Limits, af: np.ndarray) -> Screen:
    """What the tables of pairs and the best matches can need."""
    resolution = limits.resolution
    related = resolution.smallest_kinship is not None
    return Screen(
        min_kinship=limits.min_kinship if related else np.inf,
        max_same=-1.0 if resolution.least_called is None else resolution.max_mismatch,
        least_related=limits.min_called,
        least_matched=limits.least_called,
        max_mismatch=resolution.max_mismatch,
        max_absent=_most_absent(limits, af),
    )


def _most_absent(limits: Limits, af: np.ndarray) -> float:
    """Largest share of absent alleles over all sites; negative where they would tell nothing."""
    told = limits.resolution.least_common is not None
    return mixture.screening_limit(af, limits.max_absent) if told else -1.0


def _related_pairs(
    counts: np.ndarray, rows: np.ndarray, columns: np.ndarray, limits: Limits
) -> list:
    """Relatives: rows of the samples, counts and kinship.

    counts: int64 (5, n_pairs); rows, columns: the samples of either cohort.
    """
    named = dict(zip(KINSHIP.outputs, counts, strict=True))
    mismatches = kinship.mismatching(named)
    least = limits.resolution.least_kinship(named["called"])
    _, chosen, phi = kinship.close_pairs(
        {name: values[None] for name, values in named.items()},
        min_kinship=np.maximum(least, limits.min_kinship),
        min_called=limits.min_called,
        upper=False,
        same=limits.resolution.same(mismatches, named["called"]),
    )
    found = np.stack([named[name][chosen] for name in _KINSHIP_COUNTS], axis=1)
    return list(zip(rows[chosen], columns[chosen], found, phi, strict=True))


def _mixture_candidates(
    counts: np.ndarray, rows: np.ndarray, columns: np.ndarray, compared: _Compared
) -> list[tuple[bool, int, np.ndarray]]:
    """Samples that may be contaminated: whether one is of cohort a, its number, its references.

    By the counts over all sites. References are at most MOST_REFERENCES, those with the fewest
    absent alleles.
    """
    limits = compared.limits
    named = dict(zip(KINSHIP.outputs, counts, strict=True))
    called = named["called"]
    other = (called >= max(limits.min_called, 1)) & (
        kinship.mismatching(named) > limits.resolution.max_mismatch * called
    )
    # a lacks alleles of b where b is heterozygous and a is not, and the other way round
    shared = named["ibs0"] - named["both_het"]
    ways = [(rows, columns, shared + named["het_b"]), (columns, rows, shared + named["het_a"])]
    if compared.a is compared.b:  # a sample is in rows and in columns
        ways = [tuple(map(np.concatenate, zip(*ways, strict=True)))]
        called, other = np.tile(called, 2), np.tile(other, 2)
    limit = _most_absent(limits, compared.af)
    found = []
    for a_is_mixture, (ours, theirs, lacks) in zip((True, False), ways, strict=False):
        k = np.flatnonzero(other & (lacks <= limit * called))
        k = k[np.lexsort((theirs[k], lacks[k] / called[k], ours[k]))]
        starts = np.flatnonzero(np.diff(ours[k], prepend=-1))
        found += [
            (a_is_mixture, int(ours[own[0]]), theirs[own[: mixture.MOST_REFERENCES]])
            for own in np.split(k, starts[1:])
            if len(own)
        ]
    return found


def _kinship_table(pairs, compared: _Compared) -> pd.DataFrame:
    a, b = compared.about_a, compared.about_b
    rows, columns, found, phi = zip(*pairs, strict=True) if pairs else ((), (), (), ())
    return kinship.pairs_table(
        [(a["samples"][i], a["cohort"]) for i in rows],
        [(b["samples"][j], b["cohort"]) for j in columns],
        dict(zip(_KINSHIP_COUNTS, np.array(found, np.int64).reshape(-1, 5).T, strict=True)),
        np.array(phi, np.float64),
        resolution=compared.limits.resolution,
    )


def _told(
    table: pd.DataFrame,
    compared: _Compared,
    folders: tuple[Path, Path],
    faults: dict[Path, str | None] | None,
    backend: Backend,
) -> pd.DataFrame:
    """The table with pairs of cohorts in which kinship fails marked."""
    if (table.relation == kinship.SAME).all():
        return table
    faults = {} if faults is None else faults
    for folder, planes in zip(folders, (compared.a, compared.b), strict=True):
        if folder not in faults:
            faults[folder] = judge_cohort(planes, compared.af, backend)[0]
    names = compared.about_a["cohort"], compared.about_b["cohort"]
    return kinship.without_faults(
        table, {name: faults[folder] for name, folder in zip(names, folders, strict=True)}
    )


def _identity_table(best: TopMatches, compared: _Compared) -> pd.DataFrame:
    query, rank = np.nonzero(best.index >= 0)
    match, called = best.index[query, rank], best.called[query, rank]
    mismatches = best.mismatches[query, rank]
    resolution = compared.limits.resolution
    shares = mismatches / called
    same = resolution.same(mismatches, called)
    verdict = np.where(same, "same", "too few sites").astype(object)
    verdict[shares > resolution.max_mismatch] = "different"
    rmp, lr = (np.full(len(query), np.nan) for _ in range(2))
    for row in np.flatnonzero(verdict != "different"):  # of different people only counts matter
        found = identity.match_statistics(
            identity.genotypes_of(compared.b, query[row : row + 1]),
            identity.genotypes_of(compared.a, match[row : row + 1]),
            compared.af,
            compared.limits.error_rate,
            compared.limits.ploidy,
        )
        rmp[row], lr[row] = found[0][0], found[1][0]
    a, b = compared.about_a, compared.about_b
    columns = [np.array(b["samples"], object)[query], b["cohort"]]
    columns += [np.array(a["samples"], object)[match], a["cohort"], rank + 1]
    columns += [called, mismatches, shares, rmp, lr, verdict]
    return pd.DataFrame(dict(zip(IDENTITY, columns, strict=True)), index=range(len(query)))


def _mixture_table(
    counts: np.ndarray, rows: np.ndarray, columns: np.ndarray, compared: _Compared
) -> pd.DataFrame:
    """Contamination: a mixture of two people, one of whom is the reference, at common sites."""
    limits = compared.limits
    least = limits.resolution.least_common
    if least is None:  # nothing can be told
        return pd.DataFrame(columns=MIXTURE)
    errors = {"dropout": limits.dropout, "drop_in": limits.drop_in}
    common = mixture.common_sites(compared.af)
    af = compared.af[common]
    one, two = (compared.a, compared.about_a), (compared.b, compared.about_b)
    n_references = compared.a.n_samples - (compared.a is compared.b)
    found = []
    for a_is_mixture, number, references in _mixture_candidates(counts, rows, columns, compared):
        (planes, about), (others, of) = (one, two) if a_is_mixture else (two, one)
        shows = identity.genotypes_of(planes, np.array([number]))[0, common]
        people = identity.genotypes_of(others, references)[:, common]
        jointly = (people >= 0) & (shows >= 0)
        lacks = jointly & (((shows == 0) & (people > 0)) | ((shows == 2) & (people < 2)))
        called, absent = jointly.sum(axis=1), lacks.sum(axis=1)
        kept = (called >= least) & (absent <= limits.max_absent * called)
        if not kept.any():
            continue
        ratios = mixture.likelihood_ratios(shows, people[kept], af, 2, **errors)
        for k, ratio in zip(np.flatnonzero(kept), ratios, strict=True):
            rmne = mixture.log10_rmne(np.where(jointly[k], shows, -1), af, int(absent[k]))
            names = (about["samples"][number], about["cohort"])
            names += (of["samples"][references[k]], of["cohort"])
            shares = (int(called[k]), int(absent[k]), absent[k] / called[k], ratio, rmne)
            found.append((*names, 2, *shares, n_references * 10.0**rmne, mixture.verdict(ratio)))
    return pd.DataFrame(found, columns=MIXTURE)


def _best_of(parts: list[pd.DataFrame], order: Mapping[str, int], top: int) -> pd.DataFrame:
    """The best matches of each query among some tables. order: numbers of the samples."""
    table = pd.concat(parts, ignore_index=True)
    keys = {
        "_query": table["query"].map(order),
        "_share": table.mismatch_share.astype(np.float64),
        "_match": table["match"].map(order),
    }
    table = table.assign(**keys).sort_values(list(keys), kind="stable")
    table["rank"] = table.groupby("_query", sort=False).cumcount() + 1
    return table[table["rank"] <= top][IDENTITY].reset_index(drop=True)


def join_identity(
    tiles: list[Path], sheet: pd.DataFrame, out: Path, *, top: int = 1
) -> pd.DataFrame:
    """The best matches of each sample among its own and all earlier cohorts.

    Parameters
    ----------
    sheet : DataFrame
        `sample` and, if the study has them, `sex` and `population`. If genotypes say the same
        person but these columns differ, a sample swap is likely; `conflict` names the columns.
    """
    order = {name: i for i, name in enumerate(sheet["sample"])}
    parts: list[pd.DataFrame] = []
    for tile in tiles:
        parts.append(read_table(tile))
        if sum(map(len, parts)) > MOST_ROWS:
            parts = [_best_of(parts, order, top)]
    table = _best_of(parts, order, top)
    described = sheet.set_index("sample")
    conflicts = pd.Series([""] * len(table), dtype=str)
    for column in ("sex", "population"):
        if column in described:
            one = table["query"].map(described[column]).to_numpy()
            two = table["match"].map(described[column]).to_numpy()
            known = ~(np.isin(one, ["", "NA"]) | np.isin(two, ["", "NA"]))
            differ = known & (one != two) & (table.verdict == "same").to_numpy()
            conflicts[differ] = [f"{text} {column}".strip() for text in conflicts[differ]]
    table["conflict"] = conflicts.replace("", "none").to_numpy()
    table = table[[*IDENTITY, "conflict"]]
    write_table(out, table)
    return table


def join_mixture(tiles: list[Path], out: Path) -> pd.DataFrame:
    """Contamination hits of all tiles, strongest first."""
    table = pd.concat([read_table(tile) for tile in tiles], ignore_index=True)
    strength = -table.log10_lr.astype(np.float64)
    table = table.assign(_strength=strength).sort_values(
        ["_strength", "mixture", "reference"], kind="stable"
    )[MIXTURE]
    write_table(out, table)
    return table
