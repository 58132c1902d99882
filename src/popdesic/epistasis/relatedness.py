"""Relatives: what they share by descent, and how much it widens the distribution of a statistic.

Relatives resemble each other in genotypes and, where the phenotype is heritable, in phenotype. A
table counts them as independent people, so its statistic is too large. Under the model without
interaction the scores of the interaction, U = sum_i b_i r_i, have the variance

    V = sum_i w_i b_i b_i' + sum over related pairs (i, j) of 2 h phi_ij sqrt(w_i w_j) (b_i b_j' +
        b_j b_i'),

r_i the residual of person i, w_i its variance, b_i what its genotypes count in the scores, phi_ij
the kinship. h, the share of the phenotype's variance that relatives share, is the slope of products
of standardised residuals on 2 phi (Haseman & Elston 1972, Behav Genet 2:3). With scores scaled so
that the first sum is 1, LR is distributed as a sum of chi-squares weighted with the eigenvalues of
V instead of with ones. It is divided by their mean, the first-order correction of Rao & Scott
(1984, Ann Stat 12:46) for tables of clustered surveys. Their spread counts far out in the tail,
above all in triples: among nuclear families the mean is 1.01 and the largest of eight 1.09, so that
p at 1e-6 is a fifth too small by the mean alone. A weighted sum of chi-squares is no way out. It
lets combinations of few people have any statistic, so that p of pairs among siblings was three
times too large. So `importance_sampling` gives its draws of tables the weights of V.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..cohort.parents import NOBODY
from ..cohort.samples import read_samples
from ..core.tables import read_table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Least kinship of relatives: third degree.
LEAST_KINSHIP = 0.0442
#: Share of all people in one family from which on families cannot be told apart.
MOST_OF_ALL = 0.2
#: Kinships below this are not passed on in a pedigree.
FORGOTTEN = LEAST_KINSHIP / 8
#: Smallest eigenvalue of V that is used.
LEAST_EIGENVALUE = 0.1


@dataclass(frozen=True)
class Relatives:
    """Related pairs among the people of a scan.

    Attributes
    ----------
    first, second : int64 array, (n_pairs,)
        Rows, first < second; each pair once.
    kinship : float64 array, (n_pairs,)
        1/4 for parents and children or full siblings, 1/2 for one person twice.
    """

    first: np.ndarray
    second: np.ndarray
    kinship: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def among(self, used: np.ndarray) -> Relatives:
        """Pairs of which both are in `used`, bool (n,), renumbered."""
        row = np.cumsum(used) - 1
        kept = used[self.first] & used[self.second]
        return Relatives(row[self.first[kept]], row[self.second[kept]], self.kinship[kept])

    def of(self, kept: np.ndarray) -> Relatives:
        """Some of the pairs, by a bool array (n_pairs,)."""
        return Relatives(self.first[kept], self.second[kept], self.kinship[kept])

    @functools.cached_property
    def twice_kinship(self) -> csr_array:
        """2 phi of each pair, one triangle of the matrix, up to the last row of a pair."""
        from scipy.sparse import csr_array

        n = int(self.second.max(initial=-1)) + 1
        return csr_array((2 * self.kinship, (self.first, self.second)), shape=(n, n))

    def blocks(self, n: int) -> np.ndarray:
        """Number of each person's block of relatives, int64 (n,): connected by related pairs."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        edges = coo_array((np.ones(len(self)), (self.first, self.second)), shape=(n, n))
        return connected_components(edges, directed=False)[1].astype(np.int64)


def no_relatives() -> Relatives:
    return Relatives(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def related_pairs(samples: list[str], pairs: pd.DataFrame) -> Relatives:
    """Relatives from a table of pairs with columns sample_a, sample_b, kinship.

    Pairs below third degree, and of people who are not among `samples`, are left out. Of a pair
    that is listed twice the first row counts.
    """
    row = {name: k for k, name in enumerate(samples)}
    a = pairs["sample_a"].map(row)
    b = pairs["sample_b"].map(row)
    kinship = pairs["kinship"].astype(float).to_numpy()
    kept = (a.notna() & b.notna()).to_numpy() & (kinship >= LEAST_KINSHIP)
    a, b = a[kept].to_numpy(np.int64), b[kept].to_numpy(np.int64)
    first, second = np.minimum(a, b), np.maximum(a, b)
    _, once = np.unique(first * len(samples) + second, return_index=True)
    return Relatives(first[once], second[once], np.minimum(kinship[kept][once], 0.5))


def read_relatives(folder: Path, tables: Iterable[Path], sheet: Path) -> Relatives:
    """Relatives among the people of results/reorder.

    Parameters
    ----------
    folder : Path
        `results/reorder`.
    tables : iterable of Path
        `results/compare/kinship.tsv` if kinship was computed.
    sheet : Path
        Sample sheet; its pedigree adds pairs that the tables do not list.
    """
    samples = read_table(folder / "samples.tsv")["sample"].tolist()
    parts = [read_table(path) for path in tables]
    parts.append(pedigree_pairs(read_samples(sheet)))
    columns = ["sample_a", "sample_b", "kinship"]
    return related_pairs(samples, pd.concat([part[columns] for part in parts]))


def permutation_groups(strata: pd.Series, relatives: Relatives) -> np.ndarray:
    """Names of the groups within which phenotypes are exchangeable: str (n,).

    The relatives of a family that are in one stratum are a group; the other people of a stratum
    are another.
    """
    groups = strata.astype(str).to_numpy(object).copy()
    family = relatives.blocks(len(groups))
    sizes = pd.Series(groups).groupby([groups, family]).transform("size").to_numpy()
    related = sizes > 1
    groups[related] += "\tfamily " + family[related].astype(str).astype(object)
    return groups


def kin_warnings(relatives: Relatives, n: int, permutations: bool) -> list[str]:
    """What relatives mean for the p-values of a scan of `n` people; empty without any."""
    if not len(relatives):
        return []
    sizes = np.bincount(relatives.blocks(n))
    largest, in_families = int(sizes.max()), int(sizes[sizes > 1].sum())
    among = f"{len(relatives)} pairs of relatives among {n} samples"
    said = []
    if largest > MOST_OF_ALL * n:
        said.append(
            f"{among}: {largest} samples form one family, as in a cross, so that hardly any is "
            "independent of the others; "
            + ("permutation p-values do not hold, and " if permutations else "")
            + "p-values of interactions and associations are corrected for relatives only roughly: "
            "confirm a hit in samples that are not related to these"
        )
    elif permutations:
        said.append(
            f"{among} ({in_families} samples in families): phenotypes were permuted within families"
        )
    return said


def pedigree_pairs(sheet: pd.DataFrame) -> pd.DataFrame:
    """Pairs related to third degree or closer by the pedigree: sample_a, sample_b, kinship.

    Kinships are passed down from parents to children (Emik & Terrill 1949, J Hered 40:51); those
    below `FORGOTTEN` are dropped on the way.

    Parameters
    ----------
    sheet : DataFrame
        The sample sheet, checked by `cohort.parents`: columns sample and father, mother or both.
    """
    names, parents = sheet["sample"].tolist(), {}
    known = set(names)  # parents who are not in the sheet only relate those who are
    for column in {"father", "mother"} & set(sheet):
        for child, parent in zip(names, sheet[column].tolist(), strict=True):
            if parent not in NOBODY:
                parents.setdefault(child, []).append(parent)
    kinship: dict[str, dict[str, float]] = {}

    def enter(name: str) -> None:
        """Kinships of a person with all who were entered before; parents come first."""
        row: dict[str, float] = {}
        for parent in parents.get(name, []):
            for other, value in kinship[parent].items():
                row[other] = row.get(other, 0.0) + value / 2
        both = parents.get(name, [])
        inbred = kinship[both[0]].get(both[1], 0.0) if len(both) == 2 else 0.0
        row = {other: value for other, value in row.items() if value >= FORGOTTEN}
        for other, value in row.items():
            kinship[other][name] = value
        kinship[name] = row | {name: (1 + inbred) / 2}

    for start in names:
        waiting = [start]  # a stack instead of recursion: pedigrees may be deep
        while waiting:
            missing = [p for p in parents.get(waiting[-1], []) if p not in kinship]
            if missing:
                waiting.append(missing[0])
            elif (name := waiting.pop()) not in kinship:
                enter(name)
    rows = [
        (a, b, value)
        for a, row in kinship.items()
        for b, value in row.items()
        if a < b and value >= LEAST_KINSHIP and known.issuperset((a, b))
    ]
    return pd.DataFrame(rows, columns=["sample_a", "sample_b", "kinship"])


def shared_risk(relatives: Relatives, residual: np.ndarray) -> float:
    """h, from 0 to 1: the part of the phenotype's variance that relatives share.

    Parameters
    ----------
    residual : float64 array, (n,)
        Residuals of the null model, divided by their standard deviations.
    """
    twice = 2 * relatives.kinship
    if not len(twice):
        return 0.0
    products = residual[relatives.first] * residual[relatives.second]
    return float(np.clip((twice @ products) / (twice @ twice), 0.0, 1.0))


def score_variance(
    relatives: Relatives, scores: np.ndarray, deviation: np.ndarray, risk: float
) -> np.ndarray:
    """V of the scores among these people, float64 (d, d); ones if nobody is related.

    Parameters
    ----------
    scores : float64 array, (n, d)
        b_i, scaled so that the variance of unrelated people is 1.
    deviation : float64 array, (n,)
        Standard deviation of each person's residual.
    risk : float
        h of `shared_risk`.
    """
    related = relatives.twice_kinship
    weighted = (scores * deviation[:, None])[: related.shape[0]]
    between = risk * (weighted.T @ (related @ weighted))
    values, ways = np.linalg.eigh(np.eye(scores.shape[1]) + between + between.T)
    return (ways * np.maximum(values, LEAST_EIGENVALUE)) @ ways.T
