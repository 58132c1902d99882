"""Time of maps on the CPU, and how good and how stable they are on real people.

    python tests/bench/bench_maps.py [--samples 30000] [--data ../shared/data] [--quick]

A simulated structured population of --samples (points in eight dimensions, like principal
components): nearest neighbours, then UMAP, densMAP and t-SNE from them, one thread each. PCA:
decomposition of the relationship matrix by LAPACK beside Lanczos. With --data, quality and
instability of every kind of map of HapMap3 and the 1000 Genomes (chromosome 22).
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
from popdesic.embedding.further_maps import PERPLEXITY, tsne_layout
from popdesic.embedding.knn import nearest_neighbors
from popdesic.embedding.pcoa import principal_coordinates
from popdesic.embedding.quality import choose_anchors, measure_map, measure_silhouette
from popdesic.embedding.umap_maps import (
    draw_ensemble,
    measure_instability,
    rows_of_points,
    umap_layout,
)

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


def time_layouts(n: int, methods: list[str]) -> None:
    points = structured(n)
    start = time.perf_counter()
    known = Known(*nearest_neighbors(rows_of_points(points), n, 3 * PERPLEXITY + 1))
    rows = [("nearest 91 neighbours", f"{time.perf_counter() - start:.0f} s", "")]
    print(*rows[-1], flush=True)
    layouts = {
        "UMAP": lambda: umap_layout(known, n, points, seed=1, **UMAP),
        "densMAP": lambda: umap_layout(known, n, points, seed=1, densmap=True, **UMAP),
        "t-SNE": lambda: tsne_layout(known, n, points, seed=1),
    }
    small = structured(200)
    near = Known(*nearest_neighbors(rows_of_points(small), 200, 3 * PERPLEXITY + 1))
    umap_layout(near, 200, small, seed=1, **UMAP)  # compiles
    for name in methods:
        if name == "densMAP":
            umap_layout(near, 200, small, seed=1, densmap=True, **UMAP)
        start = time.perf_counter()
        drawn = layouts[name]()
        seconds = time.perf_counter() - start
        found = measure_map(drawn, known, choose_anchors(n)[::10])
        rows.append((name, f"{seconds:.0f} s", f"{found['recall_15']:.3f}"))
        print(*rows[-1], flush=True)
    print_table(f"{n} samples, one thread", ("step", "time", "15 nearest kept"), rows)


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
        start = time.perf_counter()
        points = draw(1, 15, lengths)
        seconds = time.perf_counter() - start

        def again(seed, neighbors, lengths=lengths):
            return draw(seed, neighbors, lengths)

        members = draw_ensemble(again, neighbors=15, seed=1, size=2)
        unstable = measure_instability(points, members)
        row(f"UMAP, {space}", points, plain, seconds, unstable)
        dense = umap_layout(lengths.__getitem__, n, scores, seed=1, densmap=True, **UMAP)
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
    parser.add_argument("--layouts", nargs="*", default=["UMAP", "densMAP", "t-SNE"])
    parser.add_argument("--pca", type=int, nargs="*", default=[1_000, 2_000, 4_000, 8_000])
    parser.add_argument("--data", type=Path, help="folder of the real data")
    parser.add_argument("--sets", nargs="*", default=SETS, help="of the real data")
    arguments = commandline.parse(parser, samples=300, pca=[200, 400], sets=["hapmap279"])
    if arguments.data and not arguments.data.is_dir():
        raise SystemExit(f"Error: {arguments.data} is not there; name the folder of real data.")
    warnings.simplefilter("ignore")  # umap-learn warns about something intended
    for name in arguments.sets if arguments.data else ():
        measure_people(arguments.data, name)
    if arguments.pca:
        time_pca(arguments.pca)
    if arguments.layouts:
        time_layouts(arguments.samples, arguments.layouts)


if __name__ == "__main__":
    main()
