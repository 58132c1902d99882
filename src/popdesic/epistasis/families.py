"""Numbers of relatives: generalised least squares with the correlation within families.

Residuals of a heritable number are correlated among relatives: corr(r_i, r_j) = 2 h phi_ij, h and
phi as in `relatedness`. With V the matrix of these correlations, V = L L', the rows of L^-1 y =
L^-1 X b + error are independent, so that the tests of ordinary least squares hold for them (Aitken
1936; as the mixed model of a polygenic background, Kang et al. 2008, Genetics 178:1709). V has one
block for each family, and L one too, so a family of m people costs m^3.

The score of a combination of genotypes is the sum of V^-1 r over its people: this is what a scan
ranks by (as GRAMMAR-Gamma, Svishcheva et al. 2012, Nat Genet 44:1166).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from .null_model import NullModel
from .relatedness import Relatives, shared_risk

log = logging.getLogger(__name__)
#: Most people of a family; of a larger one, pairs below these kinships are not used.
MOST_PEOPLE = 3000
LIMITS = (0.0884, 0.177, 0.354)
#: Least eigenvalue of a block. Kinships that were estimated, or cut off at the third degree, need
#: not be a matrix of covariances.
LEAST_EIGENVALUE = 0.02
#: Kinship of duplicates and of identical twins.
TWICE = 0.354


@dataclass(frozen=True)
class FamilyModel:
    """Correlations of the residuals of people, and who counts.

    Attributes
    ----------
    shared : float
        h, the part of the variance that relatives share.
    counts : bool array, (n_people,)
        False for the second of two duplicates with the same number: one measurement, listed twice.
    members : list of int64 array, (n_families, size)
        Rows of the families of each size.
    correlation : list of float64 array, (n_families, size, size)
    """

    shared: float
    counts: np.ndarray
    members: list[np.ndarray]
    correlation: list[np.ndarray]

    def whiten(self, columns: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Rows of L^-1 columns of the people who are used: float64 (n_used, n_columns).

        Parameters
        ----------
        columns : float64 array, (n_used, n_columns)
        used : bool array, (n_people,)
            The others are left out of V.
        """
        rows = np.zeros((len(used), columns.shape[1]))
        rows[used] = columns
        for members, correlation in zip(self.members, self.correlation, strict=True):
            lower = np.linalg.cholesky(_among(correlation, used[members]))
            rows[members] = np.linalg.solve(lower, rows[members])
        return rows[used]

    def weigh(self, residual: np.ndarray, used: np.ndarray) -> np.ndarray:
        """V^-1 residual, float64 (n_people,); 0 where not used."""
        found = np.where(used, residual, 0.0)
        for members, correlation in zip(self.members, self.correlation, strict=True):
            found[members] = np.linalg.solve(
                _among(correlation, used[members]), found[members][..., None]
            )[..., 0]
        return found


def _among(correlation: np.ndarray, used: np.ndarray) -> np.ndarray:
    """V of those who are used; the others are as if unrelated. float64 (n_families, size, size)."""
    if used.all():
        return correlation
    both = used[:, :, None] & used[:, None, :]
    return np.where(both, correlation, np.eye(correlation.shape[1]))


def family_model(null: NullModel, relatives: Relatives) -> FamilyModel | None:
    """Families of the people of a linear model; None if nobody is related, or nothing is shared.

    Parameters
    ----------
    null : NullModel
        Linear.
    relatives : Relatives
        Among the people of the model.
    """
    n, residual = len(null.used), null.residuals
    known = null.used[relatives.first] & null.used[relatives.second]
    relatives = relatives.of(known)
    same = null.response[relatives.first] == null.response[relatives.second]
    counts = np.ones(n, bool)
    counts[relatives.second[(relatives.kinship >= TWICE) & same]] = False
    relatives = relatives.of(counts[relatives.first] & counts[relatives.second])
    if not counts.all():
        log.warning(
            "%d samples are duplicates of others with the same phenotype: each person counts once",
            int((~counts).sum()),
        )
    relatives = _of_manageable_families(relatives, n)
    shared = shared_risk(relatives, residual)
    if shared == 0 and counts.all():
        return None
    members, correlation = _blocks(relatives, n, shared)
    return FamilyModel(shared, counts, members, correlation)


def _of_manageable_families(relatives: Relatives, n: int) -> Relatives:
    """Without the weakest pairs, if a family is larger than `MOST_PEOPLE`."""
    for least in (0.0, *LIMITS):
        kept = relatives.of(relatives.kinship >= least)
        if not len(kept) or np.bincount(kept.blocks(n)).max() <= MOST_PEOPLE:
            break
    if len(kept) < len(relatives):
        log.warning(
            "a family has more than %d samples: pairs with a kinship below %g are taken for "
            "unrelated, so that p-values of interactions hold only roughly",
            *(MOST_PEOPLE, least),
        )
    return kept


def _blocks(
    relatives: Relatives, n: int, shared: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows of the families of each size, and their correlations."""
    family = relatives.blocks(n)
    size = np.bincount(family)
    order = np.lexsort((np.arange(n), family, size[family]))
    members = [
        order[size[family[order]] == one].reshape(-1, one) for one in np.unique(size[size > 1])
    ]
    place = np.empty(n, np.int64)  # within its family
    which = np.empty(n, np.int64)  # of its size
    correlation = []
    for rows in members:
        which[rows], place[rows] = np.arange(len(rows))[:, None], np.arange(rows.shape[1])
        of_size = size[family[relatives.first]] == rows.shape[1]
        i, j = relatives.first[of_size], relatives.second[of_size]
        block = np.tile(np.eye(rows.shape[1]), (len(rows), 1, 1))
        value = 2 * shared * relatives.kinship[of_size]
        block[which[i], place[i], place[j]] = block[which[i], place[j], place[i]] = value
        correlation.append(_positive(block))
    return members, correlation


def _positive(blocks: np.ndarray) -> np.ndarray:
    """The correlations nearest to these, about, with no eigenvalue below `LEAST_EIGENVALUE`."""
    low = np.flatnonzero(np.linalg.eigvalsh(blocks)[:, 0] < LEAST_EIGENVALUE)
    for k in low:
        sizes, ways = np.linalg.eigh(blocks[k])
        mended = (ways * np.maximum(sizes, LEAST_EIGENVALUE)) @ ways.T
        scale = np.sqrt(np.diag(mended))
        blocks[k] = mended / np.outer(scale, scale)
    return blocks
