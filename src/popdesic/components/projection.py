"""Scores of samples that do not define the axes: online augmentation, decomposition, Procrustes.

A plain projection shrinks: axes fit the noise of those who define them, so that anybody else comes
to lie nearer to the origin, and newcomers lie nearer to each other than to founders of their own
population. OADP (Zhang, Dey and Lee 2020, Bioinformatics 36: 3439) instead decomposes the founders
with the one new sample added, and turns the result back onto the founders' axes. It needs the
sample's own row and the founders' decomposition alone, so no other newcomer takes part.

Of a relative of those who define the axes this is wrong: it shares the noise that the axes fit, so
that a plain projection does not shrink this part, and with its relative it makes an axis of its
own, which mixes with weak ones. Its row tells who its relatives are and its share w of each: what
it has in common with them beyond ancestry, over what they have with themselves. What it does not
have from them, the row less w times theirs, is that of a stranger, and its shrinkage alone is
corrected (`_place_relative`).

Of a sample with more noise of its own, such as one allele a site counted twice, OADP makes too much
too: the axes would turn towards it. But shrinkage is a matter of those who define the axes, so the
sample counts as if it had their noise (`_usual_noise`).
"""

from __future__ import annotations

import numpy as np

from ..core.threads import one_blas_thread

#: Leading components of the founders beyond those asked for that are kept apart; the others enter
#: as one (tests/bench/bench_projection.py).
FURTHER = 10
#: A relative's share of a sample that defines axes (twice the kinship) is at least that of third
#: degree, and this many standard deviations of what the row has in common with all of them.
LEAST_SHARE, DEVIATIONS = 2 * 2**-4.5, 4.5
#: No relatives are told of fewer samples that define axes, beyond the components.
FEWEST_TOLD = 20
#: Up to this many times the mean noise of those who define the axes, a sample counts with its own;
#: then with less, and from twice as far above 1 on (F of 0.5) with theirs.
NOISY = 1.25
#: Least share of what a sample has in common with itself that is not its place on the axes.
LEAST_NOISE = 0.1


@one_blas_thread
def project(
    rows: np.ndarray,
    own: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    trace: float,
    n_components: int,
    themselves: np.ndarray | None = None,
    significant: int | None = None,
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
    themselves : float64 array, (n_founders,), optional
        Relationship of each founder to itself. Without it, no relatives are told.
    significant : int, optional
        Components that show structure; all by default.

    Returns
    -------
    float64 array, (m, n_components)
        Each row is bit-identical whichever other samples are projected.
    """
    scores = np.empty((len(rows), n_components))
    axes = values, vectors, trace, n_components
    structured = n_components if significant is None else significant
    for i, row in enumerate(rows):
        who, shares = relatives_in(row, values, vectors, n_components, themselves)
        if len(who):
            scores[i] = _place_relative(row, float(own[i]), *axes, who, shares, structured)
            continue
        along = row @ vectors
        scores[i] = project_along(
            along[None], row @ row, own[i : i + 1], values, len(vectors), trace, n_components
        )[0]
    return scores


def relatives_in(
    row: np.ndarray,
    values: np.ndarray,
    vectors: np.ndarray,
    n_components: int,
    themselves: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Who of those that define the axes are relatives of a sample, and its shares of them.

    What it has in common with each is compared with what their places on the axes give; a plain
    projection places it well enough for this.

    Parameters
    ----------
    row : float64 array, (n_founders,)
        Its relationship to them. The others are as in `project`.

    Returns
    -------
    who : int64 array
        Numbers of founders.
    shares : float64 array
        Twice the kinship beyond that of their ancestries, over that of the founder with itself.
    """
    k = n_components
    if themselves is None or len(row) - k < FEWEST_TOLD:
        return np.zeros(0, np.int64), np.zeros(0)
    scores = vectors[:, :k] * np.sqrt(values[:k])
    beyond = row - scores @ (row @ vectors[:, :k] / np.sqrt(values[:k]))
    noise = np.maximum(themselves - (scores**2).sum(axis=1), LEAST_NOISE * themselves)
    deviation = 1.4826 * np.median(np.abs(beyond - np.median(beyond)))
    who = np.flatnonzero(beyond > np.maximum(LEAST_SHARE * noise, DEVIATIONS * deviation))
    return who, beyond[who] / noise[who]


def _place_relative(
    row: np.ndarray,
    own: float,
    values: np.ndarray,
    vectors: np.ndarray,
    trace: float,
    k: int,
    who: np.ndarray,
    shares: np.ndarray,
    significant: int,
) -> np.ndarray:
    """Scores of a relative of those who define the axes, float64 (k,).

    The plain projection places what it has from its relatives where they lie. The rest is placed
    by OADP, as far as an axis is more than noise: with c² the share of the scores' variance that is
    structure, the best guess of a share 1 - sum(w) of a genome is that of its structure
    (1 - sum(w))² c² in all that is found there, this and noise (1 - sum(w²)) (1 - c²), which is
    more of samples that vary more than others. Axes that are not significant show no structure.

    Parameters
    ----------
    who, shares
        Of `relatives_in`; the others are as in `project`.
    """
    n, q = vectors.shape
    everyone = vectors * np.sqrt(values)
    plain = row @ vectors / np.sqrt(values)
    # The row as it would be if they were strangers of the same ancestry.
    strange = row.copy()
    strange[who] = everyone[who, :k] @ plain[:k]
    along = strange @ vectors
    rest = max(trace - values.sum(), 0.0) / max(n - q, 1)
    sizes = np.sqrt(np.append(values, rest))
    left = np.append(plain - shares @ everyone[who], 0.0)
    if rest > 1e-9 * values[0]:
        left[q] = np.sqrt(max(strange @ strange - along @ along, 0.0) / rest)
    whole = _augmented(sizes, left, max(own - left @ left, 0.0), k)
    noise = max(own - plain[:k] @ plain[:k], LEAST_NOISE * own)
    beyond = max(strange @ strange - along[:k] @ along[:k], 0.0)
    # Samples for each independent site, from what strangers have in common by chance.
    mean = (trace - values[:k].sum()) / n
    ratio = beyond / (mean * noise) * n / (n - k) + np.finfo(float).tiny
    told = _structure_shares(values[:k] / mean, ratio)
    told[significant:] = 0.0
    # What OADP multiplies the plain projection by, and the noise of this.
    below = values[:k] - noise - beyond / np.maximum(values[:k] - mean, np.finfo(float).tiny)
    gain = values[:k] / np.maximum(below, 1e-6 * values[:k])
    by_chance = np.maximum(1 - told, gain**2 * ratio * noise / values[:k])
    structure = max(1 - shares.sum(), 0.0) ** 2 * told
    by_chance *= max(1 - (shares**2).sum(), 0.0)
    weight = structure / np.maximum(structure + by_chance, np.finfo(float).tiny)
    return plain[:k] + weight * (whole - left[:k])


def _structure_shares(values: np.ndarray, ratio: float) -> np.ndarray:
    """Share of the variance of scores that is structure, float64 (k,) (Paul 2007, theorem 4).

    In units of the noise, n samples at m independent sites whose structure has eigenvalue t show
    the eigenvalue (1 + t) (1 + n / (m t)), and this share is (1 - n / (m t²)) / (1 + n / (m t)).

    Parameters
    ----------
    values : float64 array, (k,)
        Eigenvalues, in units of the noise.
    ratio : float
        n / m.
    """
    gap = values - 1 - ratio
    root = np.maximum(gap + np.sqrt(np.maximum(gap**2 - 4 * ratio, 0.0)), 0.0) / 2
    true = np.maximum(root, np.sqrt(ratio))
    return (1 - ratio / true**2) / (1 + ratio / true)


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
    own = _usual_noise(along[:, :k], own, values[:k], n, trace)
    for i, one in enumerate(along):
        beyond = max(squares[i] - one @ one, 0.0) if rest else 0.0
        place = np.append(one, np.sqrt(beyond))
        place = np.divide(place, sizes, out=np.zeros_like(place), where=sizes > 0)
        scores[i] = _augmented(sizes, place, max(own[i] - place @ place, 0.0), k)
    return scores


def _usual_noise(
    along: np.ndarray, own: np.ndarray, values: np.ndarray, n: int, trace: float
) -> np.ndarray:
    """`own` with the noise of those who define the axes where it has much more; of `project_along`.

    With pure noise n samples have n - 1 eigenvalues, whose mean is what each has with itself.
    """
    left = n - 1 - len(values)
    mean = (trace - values.sum()) / max(left, 1)
    if left < FEWEST_TOLD or mean <= 1e-9 * values[0]:
        return own
    placed = (along**2 / values).sum(axis=1)
    noise = (own - placed) / mean
    usual = np.maximum(2 * NOISY - noise, 1.0)
    return np.where(noise > NOISY, placed + usual * mean, own)


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
