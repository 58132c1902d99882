"""Time of maps on the CPU, and how good and how stable they are on real people.

    python tests/bench/bench_maps.py [--samples 30000] [--data ../shared/data] [--quick]

A simulated structured population of --samples (points in eight dimensions, like principal
components): nearest neighbours, then UMAP, umap-learn, densMAP and t-SNE from them, one thread
each; all times are CPU seconds. PCA: decomposition of the relationship matrix by LAPACK beside
Lanczos. With --data, quality and instability of every kind of map of HapMap3 and the 1000 Genomes
(chromosome 22). --seeds compares our UMAP with umap-learn's over seeds, on these people and on
scikit-learn's digits.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import commandline
import numpy as np
from components import principal_components
from people import load_people
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits
from timing import best_of, print_table

from popdesic.embedding import eigen
from popdesic.embedding.agreement import measure_map
from popdesic.embedding.further_maps import PERPLEXITY, densmap_layout, tsne_layout
from popdesic.embedding.knn import nearest_neighbors
from popdesic.embedding.pcoa import principal_coordinates
from popdesic.embedding.quality import choose_anchors, measure_silhouette
from popdesic.embedding.umap_layout import Nearest, draw_maps, umap_layout
from popdesic.embedding.umap_maps import ensemble_members, measure_instability, rows_of_points

UMAP = {"neighbors": 15, "min_dist": 0.3}
COMPONENTS = 10
SETS = ("hapmap3_957", "hapmap279", "kg1_chr22_564")


def structured(n: int, groups: int = 26, axes: int = 8) -> np.ndarray:
    """Points (n, axes) of populations of unequal size and spread, some of them admixed."""
    rng = np.random.default_rng(1)
    share = rng.dirichlet(np.full(groups, 2.0))
    centre = rng.normal(0, 1, (groups, axes)) * np.geomspace(10, 2, axes)
    home = rng.choice(groups, n, p=share)
    points = centre[home] + rng.normal(size=(n, axes)) * rng.uniform(0.3, 1.0, (groups, 1))[home]
    mixed = rng.random(n) < 0.1
    other = centre[rng.choice(groups, n, p=share)]
    points[mixed] += rng.uniform(0, 0.7, (n, 1))[mixed] * (other - centre[home])[mixed]
    return points


class Known:
    """Rows of a distance matrix of which only the nearest neighbours are stored."""

    def __init__(self, near: np.ndarray, far: np.ndarray) -> None:
        self.near, self.far = near, far

    def __call__(self, which: np.ndarray) -> np.ndarray:
        block = np.full((len(which), len(self.near)), np.inf, np.float32)
        np.put_along_axis(block, self.near[which], self.far[which].astype(np.float32), axis=1)
        return block


def peer_layout(known: Nearest, start: np.ndarray, seed: int) -> np.ndarray:
    """A map of the same neighbours by umap-learn, (n, 2)."""
    import umap

    n, k = len(known.near), UMAP["neighbors"]
    own = np.arange(n)[:, None]
    near = np.concatenate([own, known.near[:, : k - 1]], axis=1).astype(np.int32)
    far = np.concatenate([0.0 * own, known.far[:, : k - 1]], axis=1)
    far /= np.median(far[far > 0])
    first = (start[:, :2] / np.abs(start[:, :2]).max()).astype(np.float32)
    model = umap.UMAP(
        n_neighbors=k,
        min_dist=UMAP["min_dist"],
        random_state=seed,
        n_jobs=1,
        init=first,
        precomputed_knn=(near, far.astype(np.float32)),
        force_approximation_algorithm=True,
    )
    return model.fit_transform(first).astype(np.float64)


def time_layouts(n: int, methods: list[str]) -> None:
    def prepare(n: int):
        points = structured(n)
        found = Nearest(*nearest_neighbors(rows_of_points(points), n, 3 * PERPLEXITY + 1))
        known = Known(found.near, found.far)
        layouts = {
            "UMAP": lambda: draw_maps(found, points, [(1, 15)], min_dist=UMAP["min_dist"])[0],
            "umap-learn": lambda: peer_layout(found, points, 1),
            "densMAP": lambda: densmap_layout(known, n, points, seed=1, **UMAP),
            "t-SNE": lambda: tsne_layout(known, n, points, seed=1),
        }
        return known, layouts

    start = time.process_time()
    known, layouts = prepare(n)
    rows = [("nearest 91 neighbours", f"{time.process_time() - start:.1f} s", "", "")]
    print(*rows[-1], flush=True)
    for name in methods:
        seconds = []
        for draw in (prepare(200)[1][name], layouts[name]):  # a small map first: compiles
            start = time.process_time()
            drawn = draw()
            seconds.append(f"{time.process_time() - start:.1f} s")
        found = measure_map(drawn, known, choose_anchors(n)[::10])
        rows.append((name, *seconds[::-1], f"{found['recall_15']:.3f}"))
        print(*rows[-1], flush=True)
    columns = ("step", "CPU time", "first map of 200", "15 nearest kept")
    print_table(f"{n} samples, one thread", columns, rows)


def compare_seeds(title: str, distances: np.ndarray, start: np.ndarray, seeds: int) -> list[tuple]:
    """Mean and standard deviation over seeds of our UMAP and of umap-learn's."""
    n = len(start)
    known = Nearest(*nearest_neighbors(distances.__getitem__, n, UMAP["neighbors"] - 1))
    rows = []
    for name in ("UMAP", "umap-learn"):
        scores, seconds = [], []
        for seed in range(seeds + 1):  # the first compiles
            clock = time.process_time()
            if name == "UMAP":
                drawn = draw_maps(known, start, [(seed, 15)], min_dist=UMAP["min_dist"])[0]
            else:
                drawn = peer_layout(known, start, seed)
            seconds.append(time.process_time() - clock)
            scores.append(measure_map(drawn, distances.__getitem__, np.arange(n)))
        cells = []
        for key in ("trustworthiness", "continuity", "recall_15", "recall_50", "rank_correlation"):
            values = [one[key] for one in scores[1:]]
            cells.append(f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}")
        rows.append((title, name, *cells, f"{np.mean(seconds[1:]):.2f} s"))
        print(*rows[-1], flush=True)
    return rows


def compare_with_peer(data: Path | None, sets: list[str], seeds: int) -> None:
    from sklearn.datasets import load_digits

    images = load_digits().data.astype(np.float64)
    images -= images.mean(axis=0)
    u, s, _ = np.linalg.svd(images, full_matrices=False)
    rows = compare_seeds("1 797 digits", squareform(pdist(images)), u[:, :2] * s[:2], seeds)
    for name in sets if data else ():
        with tempfile.TemporaryDirectory() as folder:
            people = load_people(data, name, Path(folder))
        everyone = np.ones(len(people.names), bool)
        scores, _ = principal_components(people.relationship, everyone, 8)
        for space in ("genotypes", "pcs"):
            distances = people.distances() if space == "genotypes" else squareform(pdist(scores))
            lengths = people.geodesics(distances)
            rows += compare_seeds(f"{name}, {space}", lengths, scores, seeds)
    columns = ("data", "map", "trust", "continuity", "15 kept", "50 kept", "rank", "CPU time")
    print_table(f"{seeds} seeds, mean and standard deviation", columns, rows)


def time_pca(sizes: list[int]) -> None:
    rows = []
    for n in sizes:
        rng = np.random.default_rng(1)
        noise = rng.normal(size=(n, 4_000)).astype(np.float32)
        points = structured(n)
        among = (noise @ noise.T).astype(np.float64) / 4_000
        among += points @ points.T / 100
        seconds = {}
        with threadpool_limits(1, "blas"):
            for limit in (n, 0):
                eigen.ROWS_A_PAIR = limit
                seconds[limit] = best_of(1, partial(eigen.leading_eigenpairs, among, COMPONENTS))
        dense, iterated = seconds[n], seconds[0]
        rows.append((n, f"{dense:.1f} s", f"{iterated:.1f} s"))
        print(*rows[-1], flush=True)
    print_table(f"{COMPONENTS} components, one thread", ("samples", "LAPACK", "Lanczos"), rows)


def measure_people(data: Path, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        people = load_people(data, name, Path(folder))
    n = len(people.names)
    scores, _ = principal_components(people.relationship, np.ones(n, bool), 8)
    anchors, labels = np.arange(n), people.labels.superpopulation.reset_index(drop=True)
    rows = []

    def row(title, points, distances, seconds=None, unstable=None):
        found = measure_map(points, distances.__getitem__, anchors)
        cells = [f"{found[k]:.3f}" for k in ("trustworthiness", "continuity", "recall_15")]
        cells.append(f"{measure_silhouette(points, labels):.3f}")
        shares = ["", ""]
        if unstable is not None:
            shares = [f"{unstable.mean():.2f}", f"{(unstable > 0.5).mean():.2f}"]
        rows.append((title, *cells, *shares, "" if seconds is None else f"{seconds:.1f} s"))

    plain = people.distances()
    row("PCA", scores[:, :2], plain)
    for space, distances in (("genotypes", plain), ("pcs", squareform(pdist(scores)))):
        lengths = people.geodesics(distances)

        def draw(seed, neighbors, matrix):
            options = UMAP | {"neighbors": neighbors}
            return umap_layout(matrix.__getitem__, n, scores, seed=seed, **options)

        row(f"UMAP, {space}, no geodesic", draw(1, 15, distances), plain)
        row(f"PCoA, {space}", principal_coordinates(lengths, 2)[0], plain)
        start = time.process_time()
        points = draw(1, 15, lengths)
        seconds = time.process_time() - start

        def again(seed, neighbors, lengths=lengths):
            return draw(seed, neighbors, lengths)

        members = ensemble_members(neighbors=15, seed=1, size=2)
        unstable = measure_instability(points, [again(*member) for member in members])
        row(f"UMAP, {space}", points, plain, seconds, unstable)
        dense = densmap_layout(lengths.__getitem__, n, scores, seed=1, **UMAP)
        row(f"densMAP, {space}", dense, plain)
        row(f"t-SNE, {space}", tsne_layout(lengths.__getitem__, n, scores, seed=1), plain)
        row(f"UMAP, {space}, against its geodesics", points, lengths)
    print_table(
        f"{name}: {n} people, {people.n_sites} sites, alpha 2, against plain distances",
        ("map", "trust", "continuity", "15 kept", "silhouette", "unstable", "> 0.5", "time"),
        rows,
    )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=30_000)
    parser.add_argument("--layouts", nargs="*", default=["UMAP", "umap-learn", "densMAP", "t-SNE"])
    parser.add_argument("--seeds", type=int, default=0, help="seeds beside umap-learn; at least 2")
    parser.add_argument("--pca", type=int, nargs="*", default=[1_000, 2_000, 4_000, 8_000])
    parser.add_argument("--data", type=Path, help="folder of the real data")
    parser.add_argument("--sets", nargs="*", default=SETS, help="of the real data")
    arguments = commandline.parse(parser, samples=300, pca=[200, 400], sets=["hapmap279"])
    if arguments.data and not arguments.data.is_dir():
        raise SystemExit(f"Error: {arguments.data} is not there; name the folder of real data.")
    warnings.simplefilter("ignore")  # umap-learn warns about something intended
    for name in arguments.sets if arguments.data and not arguments.seeds else ():
        measure_people(arguments.data, name)
    if arguments.seeds:
        compare_with_peer(arguments.data, arguments.sets, arguments.seeds)
    if arguments.pca:
        time_pca(arguments.pca)
    if arguments.layouts:
        time_layouts(arguments.samples, arguments.layouts)


if __name__ == "__main__":
    main()
