"""Optional maps of the same geodesic neighbours: densMAP, which preserves density, and t-SNE."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ..cohort.samples import describe_samples
from ..io.errors import UserError
from .axes import AXES
from .knn import Rows
from .tables import write_embedding
from .umap_maps import draw_in_frame, scaled_neighbors, umap_layout

#: t-SNE's perplexity, roughly its number of neighbours; lower in a small study.
PERPLEXITY = 30
#: Standard deviation of the first axis at the start (Kobak and Berens 2019).
START_SPREAD = 1e-4


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

    if n < 5:
        raise UserError(
            f"embedding.further_maps: t-SNE needs at least 5 samples, this study has {n}; "
            "remove tsne or add samples."
        )
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
    min_dist: float,
    seed: int,
    out: Path,
    frame: Path | None = None,
    founders: set[str] | None = None,
) -> None:
    """densMAP or t-SNE of one geodesic distance; a table like those of UMAP.

    Parameters
    ----------
    method : {'densmap', 'tsne'}
    lengths : Path
        Geodesics (n, n).
    scores : Path
        `embedding/pca.npy`, the initial layout.
    neighbors, min_dist, seed
        As for UMAP; t-SNE uses only the seed, and `neighbors` to place newcomers.
    frame, founders : optional
        In stable mode: lengths to the founders (n, n_founders), and the founder cohorts.
    """
    samples = describe_samples(order, sheet)
    start = np.load(scores)[:, :2]
    if method == "tsne":
        layout = partial(tsne_layout, seed=seed)
    else:
        layout = partial(
            umap_layout, neighbors=neighbors, min_dist=min_dist, seed=seed, densmap=True
        )
    if frame:
        among = samples.cohort.isin(founders).to_numpy()
        points = draw_in_frame(layout, np.load(frame, mmap_mode="r"), among, start, neighbors)
    else:
        matrix = np.load(lengths, mmap_mode="r")
        points = layout(matrix.__getitem__, len(samples), start)
    write_embedding(out, samples, points, AXES[method])
