"""The assembled distances of a study: integer matrices on disk, read block by block and scaled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.files import atomic_path, read_json
from ..core.tables import read_table
from ..core.threads import run_tasks
from ..core.triangle import Tiled, Triangle, open_symmetric
from ..io.bgzf import in_order
from ..io.sites import chunks
from .tiles import study_matrices, within_panel

#: Distances in memory at a time: 1 MB, and as much for each integer matrix they come from. Larger
#: blocks leave the cache.
DISTANCE_BLOCK = 1 << 17
#: Rows that are read together: of a triangle, lines of the cache are then read whole.
ROWS_READ = 32
#: Numbers of a block of text, and their significant digits.
TEXT_BLOCK, DIGITS = 1 << 18, 9
#: Rows sampled to estimate a typical distance.
PROBE_ROWS = 500
#: Rows of one task.
ROWS_A_TASK = 64


def metric_distances(
    squared: np.ndarray,
    called: np.ndarray,
    ibs0: np.ndarray | None,
    *,
    metric: str,
    n_sites: int,
    min_called: int,
    sums: tuple[np.ndarray, np.ndarray] | None = None,
    squares: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Distances of the chosen metric, scaled to all sites.

    ``euclidean``: sqrt(squared * n_sites / called); ``manhattan``: (squared - 2 ibs0) * n_sites /
    called, in allele counts (PLINK 1.9's ``--distance flat-missing``); ``ibs``: (squared - 2 ibs0)
    / (2 called), one minus the share of alleles identical by state; ``normalized``: the Euclidean
    distance of the two samples' genotypes, each divided by its own sum over jointly called
    sites only. Both then sum to one regardless of missing genotypes, so nothing is scaled.

    Parameters
    ----------
    squared, called, ibs0 : integer arrays, (m, n)
        Over jointly called sites. With missing genotypes the scaled distance is not a metric: the
        triangle inequality can fail.
    sums, squares : two integer arrays, (m, n), each
        ``normalized``: sums of genotypes and of squared genotypes over jointly called sites, for
        the row's sample and for the column's sample.

    Returns
    -------
    float64 array, (m, n)
        Infinite where fewer than `min_called` sites are jointly called; with ``normalized`` also
        where one of the two samples has no ALT allele at these sites.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if metric == "euclidean":
            # Multiply before dividing: exact while the product stays below 2**53.
            distances = np.sqrt(squared * np.float64(n_sites) / called)
        elif metric == "manhattan":
            distances = (squared - 2 * ibs0) * np.float64(n_sites) / called
        elif metric == "ibs":
            distances = (squared - 2 * ibs0) / (2.0 * called)
        else:
            distances = _normalized(squared, *sums, *squares)
    distances[called < min_called] = np.inf
    return distances


def _normalized(squared, sum_a, sum_b, square_a, square_b) -> np.ndarray:
    """Distances between a / sum_a and b / sum_b; infinite where a sum is 0.

    square_a / sum_a^2 + square_b / sum_b^2 - 2 a.b / (sum_a sum_b), with a common denominator and
    terms that are 0 for equal samples: (sum_a sum_b squared + (sum_b - sum_a)(square_a sum_b -
    square_b sum_a)) / (sum_a sum_b)^2. The inner products fit int64 up to 2^30 sites.
    """
    sum_a, sum_b, square_a, square_b = (
        part.astype(np.int64) for part in (sum_a, sum_b, square_a, square_b)
    )
    scale = sum_a * np.float64(1) * sum_b
    uneven = (sum_b - sum_a) * (square_a * sum_b - square_b * sum_a).astype(np.float64)
    # rounding can give slightly negative values
    distances = np.sqrt(np.maximum(scale * squared + uneven, 0)) / scale
    distances[scale == 0] = np.inf
    return distances


def distances_of_counts(
    counts: dict[str, np.ndarray],
    which: np.ndarray | None = None,
    *,
    metric: str,
    n_sites: int,
    min_called: int,
) -> np.ndarray:
    """Distances of some samples to all or others: `metric_distances`, zero to themselves.

    Parameters
    ----------
    counts : dict of integer arrays, (m, n)
        From `tiles.pairwise_counts`.
    which : int array, (m,), optional
        Column of each row's sample; none if the columns are others.

    Returns
    -------
    float64 array, (m, n)
    """
    both = {
        name: (counts[f"{name}_a"], counts[f"{name}_b"])
        for name in ("sums", "squares")
        if f"{name}_a" in counts
    }
    block = metric_distances(
        counts["squared"],
        counts["called"],
        counts.get("ibs0"),
        metric=metric,
        n_sites=n_sites,
        min_called=min_called,
        **both,
    )
    if which is not None:
        block[np.arange(len(which)), which] = 0.0
    return block


@dataclass(frozen=True)
class Distances:
    """The distance matrix of a study, computed in blocks of rows to limit memory.

    Attributes
    ----------
    folder : Path
        `results/distance`.
    metric : {'euclidean', 'manhattan', 'ibs', 'normalized'}
    n_sites : int
        Sites of the panel.
    min_called : int
        Pairs with fewer jointly called sites (`tiles.within_panel`) have an infinite distance.
    threads : int
        That read `blocks` ahead.
    """

    folder: Path
    metric: str
    n_sites: int
    min_called: int
    threads: int = 1

    @functools.cached_property
    def _matrices(self) -> dict[str, Triangle | Tiled | np.ndarray]:
        names = study_matrices(self.metric)
        return {name: open_symmetric(self.folder / f"{name}.npy") for name in names}

    def __len__(self) -> int:
        return len(self._matrices["called"])

    def rows(self, which: np.ndarray) -> np.ndarray:
        """float64 (len(which), n): distances of these samples to all, zero to themselves."""
        counts = {}
        for name, matrix in self._matrices.items():
            counts[name] = matrix[which]
            if name in ("sums", "squares"):
                counts[f"{name}_a"], counts[f"{name}_b"] = counts[name], matrix[:, which].T
        out = np.empty((len(which), len(self)))
        for first, last in chunks(len(which), rows_at_once(len(self))):
            out[first:last] = distances_of_counts(
                {name: rows[first:last] for name, rows in counts.items()},
                which[first:last],
                metric=self.metric,
                n_sites=self.n_sites,
                min_called=within_panel(self.min_called, self.n_sites),
            )
        return out

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers and distances of consecutive runs of rows."""
        n = len(self)

        def read(bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            which = np.arange(*bounds)
            return which, self.rows(which)

        together = chunks(n, max(ROWS_READ, rows_at_once(n)))
        with ThreadPoolExecutor(self.threads) as pool:
            ahead = pool if self.threads > 1 else None
            for which, rows in in_order(read, together, ahead, 2 * self.threads):
                for first, last in chunks(len(which), rows_at_once(n)):
                    yield which[first:last], rows[first:last]

    def probe(self) -> np.ndarray:
        """Finite distances of different samples, from at most PROBE_ROWS rows spread evenly."""
        n = len(self)
        which = np.unique(np.linspace(0, n - 1, min(n, PROBE_ROWS)).astype(np.int64))
        block = self.rows(which)
        other = np.arange(n)[None, :] != which[:, None]
        return block[other & np.isfinite(block)]


def load_distances(
    folder: Path, *, metric: str, n_sites: int, min_called: int, threads: int = 1
) -> np.ndarray:
    """float64 (n, n) distances of an assembled study, with a zero diagonal."""
    source = Distances(folder, metric, n_sites, min_called)
    n = len(source)
    distances = np.empty((n, n))

    def work(first: int, last: int) -> None:
        distances[first:last] = source.rows(np.arange(first, last))

    run_tasks(work, chunks(n, ROWS_A_TASK), threads)
    return distances


def export_distances(
    folder: Path, *, metric: str, n_sites: int, min_called: int, threads: int = 1
) -> None:
    """Write `distance.mdist` with `.mdist.id` (PLINK's square matrix) and `distance.tsv.gz`.

    The long table has one row per pair: both samples, distance, jointly called sites.
    """
    from ..core.number_text_cpu import (
        integer_fields,
        join_fields,
        number_fields,
        string_fields,
        write_blocks,
        write_matrix,
    )

    distances = load_distances(folder, metric=metric, n_sites=n_sites, min_called=min_called)
    called = open_symmetric(folder / "called.npy")[:]
    names = read_table(folder / "samples.tsv")["sample"].tolist()
    write_matrix(folder / "distance.mdist", distances, threads)
    with atomic_path(folder / "distance.mdist.id") as temporary:
        temporary.write_text("".join(f"0\t{name}\n" for name in names))
    named, n = string_fields(names), len(names)

    def pairs_of(rows: tuple[int, int]) -> bytes:
        """Lines of the pairs whose first sample is one of these rows."""
        first = np.repeat(np.arange(*rows), n - 1 - np.arange(*rows))
        second = np.concatenate([np.arange(i + 1, n) for i in range(*rows)])
        return join_fields(
            [
                named.at(first),
                named.at(second),
                number_fields(distances[first, second], DIGITS),
                integer_fields(called[first, second]),
            ]
        )

    header = [b"sample_a\tsample_b\tdistance\tcalled\n"]
    rows = chunks(n, max(1, TEXT_BLOCK // n))
    write_blocks(folder / "distance.tsv.gz", pairs_of, rows, threads, header)


def leading_scores(scores: Path, pcs: int | str) -> np.ndarray:
    """Scores of all samples on the components that `geodesic.pcs` asks for, float64 (n, k).

    `scores` is `embedding/pca.npy`; for ``auto`` it is `geodesic/choice.json` that says how many.
    """
    if pcs == "auto":
        pcs = read_json(scores.parents[1] / "geodesic/choice.json")["pcs"]["pcs"]
    return np.load(scores)[:, :pcs]


def rows_at_once(n: int) -> int:
    """Rows of n numbers whose values are made together, of a dozen matrices as large.

    Of larger ones, which leave the cache, pages are asked of the system anew, by one thread at a
    time.
    """
    return max(1, DISTANCE_BLOCK // max(n, 1))


def rows_of_points(points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Euclidean distances between points, (n, k), as a function of rows."""

    def rows(which: np.ndarray) -> np.ndarray:
        found = np.zeros((len(which), len(points)))
        for first, last in chunks(len(which), rows_at_once(len(points))):
            part, own = found[first:last], which[first:last]
            for axis in range(points.shape[1]):
                part += (points[own, axis][:, None] - points[None, :, axis]) ** 2
            np.sqrt(part, out=part)
        return found

    return rows


def rows_between(points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The rows that `point_distances` has of some points, (n, k), to the last bit."""
    from scipy.spatial.distance import cdist

    return lambda which: cdist(points[which], points)


def point_distances(scores: Path, pcs: int | str, threads: int = 1) -> np.ndarray:
    """Euclidean distances between all samples over their leading components, float64 (n, n)."""
    points = leading_scores(scores, pcs)
    distances, rows = np.empty((len(points), len(points))), rows_between(points)

    def work(first: int, last: int) -> None:
        distances[first:last] = rows(np.arange(first, last))

    run_tasks(work, chunks(len(points), ROWS_A_TASK), threads)
    return distances


def shared_distances(graph: Path) -> np.ndarray:
    """Lengths of the edges of `ibd/graph.npz`, float64 (n, n); infinite without an edge."""
    with np.load(graph) as found:
        edges, lengths, n = found["edges"], found["lengths"], int(found["n"])
    distances = np.full((n, n), np.inf)
    np.fill_diagonal(distances, 0.0)
    for one, two in (edges.T, edges[:, ::-1].T):
        distances[one, two] = lengths
    return distances


def study_distances(
    source: Path,
    space: str,
    *,
    pcs: int | str,
    metric: str,
    n_sites: int,
    min_called: int,
    threads: int = 1,
) -> np.ndarray:
    """float64 (n, n) distances of a study in one space: ``genotypes``, ``pcs`` or ``ibd``.

    `source` is `embedding/pca.npy` for ``pcs``, `ibd/graph.npz` for ``ibd``, otherwise any matrix
    of `distance/`. Pairs that share no segment are infinitely far in the space ``ibd``.
    """
    if space == "ibd":
        return shared_distances(source)
    if space == "pcs":
        return point_distances(source, pcs, threads)
    options = {"metric": metric, "n_sites": n_sites, "min_called": min_called}
    return load_distances(source.parent, **options, threads=threads)
