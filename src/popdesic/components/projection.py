"""Scores of samples that do not define the axes: online augmentation, decomposition, Procrustes.

A plain projection shrinks: axes fit the noise of those who define them, so that anybody else comes
to lie nearer to the origin, and newcomers lie nearer to each other than to founders of their own
population. OADP (Zhang, Dey and Lee 2020, Bioinformatics 36: 3439) instead decomposes the founders
with the one new sample added, and turns the result back onto the founders' axes. It needs the
sample's own row and the founders' decomposition alone, so no other newcomer takes part.
"""

from __future__ import annotations

import numpy as np

from ..core.threads import one_blas_thread

#: Leading components of the founders beyond those asked for that are kept apart; the others enter
#: as one (tests/bench/bench_projection.py).
FURTHER = 10


@one_blas_thread
def project(
    rows: np.ndarray,
    own: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    trace: float,
    n_components: int,
) -> np.ndarray:
    """Scores of samples on the axes of others, by OADP.

    In the basis of the founders' axes the founders' data are diag(sqrt(values)) and the new sample
    is l, the coordinates of its row, and a remainder of its own, h. The eigenvectors of the small
    matrix of both that lie most along the founders' axes are these with the sample added. All
    components of the founders beyond `values` are taken as one of their mean size: left out, they
    would count as part of h, which shrinks weak axes.

    Parameters
    ----------
    rows : float64 array, (m, n_founders)
        Relationship of each sample to those who define the axes.
    own : float64 array, (m,)
        Relationship of each sample to itself.
    values, vectors : float64 arrays, (q,), (n_founders, q)
        Leading positive eigenvalues and eigenvectors of the founders' relationship.
    trace : float
        Sum of all its eigenvalues.
    n_components : int
        At most q.

    Returns
    -------
    float64 array, (m, n_components)
        Each row is bit-identical whichever other samples are projected.
    """
    scores = np.empty((len(rows), n_components))
    for i, row in enumerate(rows):
        along = row @ vectors
        scores[i] = project_along(
            along[None], row @ row, own[i : i + 1], values, len(vectors), trace, n_components
        )[0]
    return scores


def project_along(
    along: np.ndarray,
    squares: np.ndarray,
    own: np.ndarray,
    values: np.ndarray,
    n: int,
    trace: float,
    n_components: int,
) -> np.ndarray:
    """`project` where the products of the rows with the vectors are known.

    Parameters
    ----------
    along : float64 array, (m, q)
        Rows times vectors.
    squares : float64 array, (m,)
        Sum of the squares of each row.
    n : int
        Samples that define the axes.
    """
    k, q = n_components, len(values)
    left = n - q  # components of the founders that are not in `values`
    rest = (trace - values.sum()) / left if left > 0 else 0.0
    rest = rest if rest > 1e-9 * values[0] else 0.0
    sizes = np.sqrt(np.append(values, rest))
    scores = np.empty((len(along), k))
    squares = np.broadcast_to(squares, len(along))
    for i, one in enumerate(along):
        beyond = max(squares[i] - one @ one, 0.0) if rest else 0.0
        place = np.append(one, np.sqrt(beyond))
        place = np.divide(place, sizes, out=np.zeros_like(place), where=sizes > 0)
        scores[i] = _augmented(sizes, place, max(own[i] - place @ place, 0.0), k)
    return scores


def _augmented(sizes: np.ndarray, place: np.ndarray, alone: float, k: int) -> np.ndarray:
    """Scores of one sample: decomposition with it, turned onto the axes without it, (k,)."""
    q = len(sizes)
    product = np.zeros((q + 1, q + 1))
    product[np.arange(q), np.arange(q)] = sizes**2
    product[q, :q] = product[:q, q] = sizes * place
    product[q, q] = place @ place + alone
    values, vectors = np.linalg.eigh(product)
    # Not the k largest: with a relative of a founder, the two of them are an axis of their own,
    # larger than that of a weak component, which it would replace.
    share = (vectors[:k] ** 2).sum(axis=0)
    kept = np.sort(np.argsort(-share, kind="stable")[:k])[::-1]
    scores = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    # Procrustes without scaling: the founders' scores were diag(sizes) and are now scores[:q].
    u, _, v = np.linalg.svd(scores[:k].T * sizes[:k])
    return scores[q] @ (u @ v)
