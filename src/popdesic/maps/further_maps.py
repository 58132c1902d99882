"""Optional maps of the same geodesic neighbours: densMAP, which preserves density, and t-SNE."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ..cohort.samples import describe_samples
from ..components.axes import AXES
from ..components.scaling import require_finite
from ..components.tables import is_too_small, no_map, write_embedding
from ..engine.backend import Backend
from ..geodesic.lengths import open_lengths
from .densmap import densmap_layout, require_samples
from .frame import place_among
from .knn import Rows, nearest_neighbors
from .umap_layout import MIN_DIST

#: t-SNE's perplexity, roughly its number of neighbours; lower in a small study.
PERPLEXITY = 30
#: Standard deviation of the first axis at the start (Kobak and Berens 2019).
START_SPREAD = 1e-4


def scaled_neighbors(rows: Rows, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Each sample itself, then its k `nearest_neighbors`; distances over their positive median.

    The division changes no neighbourhood, but prevents underflow of float32 at large alpha.

    Returns
    -------
    near, scaled : int64 and float64 arrays, (n, k + 1)

    Raises
    ------
    UserError
        A neighbour is infinitely far.
    """
    near, far = nearest_neighbors(rows, n, k)
    require_finite(far)
    positive = far[far > 0]
    scaled = far / (np.median(positive) if positive.size else 1.0)
    near = np.concatenate([np.arange(n)[:, None], near], axis=1)
    return near, np.concatenate([np.zeros((n, 1)), scaled], axis=1)


def tsne_layout(rows: Rows, n: int, start: np.ndarray, *, seed: int) -> np.ndarray:
    """A t-SNE map (van der Maaten 2014) by scikit-learn; one thread, so reruns are identical.

    Parameters
    ----------
    rows : callable
        Distances (len(which), n) of the samples `which` to all; only the 3 * PERPLEXITY + 1 nearest
        of every sample are kept.
    n : int
    start : float64 array, (n, at least 1)
        The first two columns are the initial layout.

    Returns
    -------
    float64 array, (n, 2)

    Raises
    ------
    UserError
        A neighbour is infinitely far, or there are fewer than five samples.
    """
    from scipy.sparse import csr_array

    require_samples(n, "t-SNE", "tsne")
    from sklearn.manifold import TSNE  # slow to import: import only when needed

    perplexity = min(float(PERPLEXITY), (n - 1) / 3)
    k = min(n - 1, int(3 * perplexity + 1))
    near, scaled = scaled_neighbors(rows, n, k)
    # each sample comes first in its own row; scikit-learn removes it
    graph = csr_array(
        (scaled.ravel(), near.ravel(), np.arange(n + 1) * (k + 1)), (n, n), dtype=np.float64
    )
    first = np.zeros((n, 2))
    first[:, : start.shape[1]] = start[:, :2]
    first *= START_SPREAD / (first[:, 0].std() or 1.0)
    model = TSNE(
        metric="precomputed",
        perplexity=perplexity,
        init=first.astype(np.float32),
        random_state=seed,
        n_jobs=1,
    )
    # the gradient is summed over threads: the result would depend on their number
    with threadpool_limits(1):
        return model.fit_transform(graph).astype(np.float64)


def compute_further_map(
    method: str,
    lengths: Path,
    scores: Path,
    order: Path,
    sheet: Path,
    *,
    neighbors: int,
    seed: int,
    out: Path,
    frame: Path | None = None,
    founders: set[str] | None = None,
    threads: int = 1,
    backend: Backend | None = None,
) -> None:
    """densMAP or t-SNE of one geodesic distance; a table like those of UMAP.

    Parameters
    ----------
    method : {'densmap', 'tsne'}
    lengths : Path
        Geodesics (n, n).
    scores : Path
        `embedding/pca.npy`, the initial layout.
    neighbors, seed
        As for UMAP; t-SNE uses only the seed, and `neighbors` to place newcomers.
    frame, founders : optional
        In stable mode: lengths to the founders (n, n_founders), and the founder cohorts.
    threads, backend : int and Backend, optional
        Of densMAP; they change no byte.

    A map that too few samples define has missing coordinates, and the log says so.
    """
    samples = describe_samples(order, sheet)
    among = samples.cohort.isin(founders or ()).to_numpy()
    if is_too_small(AXES[method], among.sum() if frame else len(samples)):
        return write_embedding(out, samples, no_map(len(samples)), AXES[method])
    start = np.load(scores)[:, :2]
    if method == "tsne":
        layout = partial(tsne_layout, seed=seed)
    else:
        layout = partial(
            densmap_layout,
            neighbors=neighbors,
            min_dist=MIN_DIST,
            seed=seed,
            threads=threads,
            backend=backend,
        )
    if frame:
        points = _draw_in_frame(layout, np.load(frame, mmap_mode="r"), among, start, neighbors)
    else:
        matrix = open_lengths(lengths)
        points = layout(matrix.__getitem__, len(samples), start)
    write_embedding(out, samples, points, AXES[method])


def _draw_in_frame(
    layout: Callable[[Rows, int, np.ndarray], np.ndarray],
    near: np.ndarray,
    among: np.ndarray,
    start: np.ndarray,
    neighbors: int,
) -> np.ndarray:
    """A map of the founders in which all others are placed one by one, float64 (n, 2)."""
    inner = near[among]
    fixed = layout(inner.__getitem__, len(inner), start[among])
    placed = np.empty((len(near), 2))
    placed[among], placed[~among] = fixed, place_among(near[~among], fixed, neighbors)
    return placed
