"""Time of maps on the CPU, and how good and how stable they are on real people.

    python tests/bench/bench_maps.py [--samples 30000] [--data ../shared/data] [--device gpu]
        [--threads 2] [--quick]

A simulated structured population of --samples (points in eight dimensions, like principal
components): nearest neighbours, then UMAP, densMAP, those of umap-learn and t-SNE from them, one
thread each; times are CPU seconds. Of the same people, the graph and the epochs of UMAP and densMAP
on --threads, in edges x epochs a second, and with --device gpu on a GPU beside them. PCA:
decomposition of the relationship matrix by LAPACK beside Lanczos. With --data, quality and
instability of every kind of map of HapMap3 and the 1000 Genomes (chromosome 22). --seeds compares
our UMAP and densMAP with umap-learn's over seeds, on these people, on digits, on a grid.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import commandline
import numpy as np
from oracles.components import principal_components
from scenes.landscapes import scene
from scenes.people import load_people
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist, squareform
from support.one_map import measure_map, umap_layout
from threadpoolctl import threadpool_limits
from timing import best_of, print_table

from popdesic.components import eigen
from popdesic.components.scaling import principal_coordinates
from popdesic.core.threads import usable_cpus
from popdesic.distance.find_nearest import nearest_points
from popdesic.engine.select import cpu_backend, select_backend
from popdesic.maps.densmap import density_of, densmap_layout, draw_densmap
from popdesic.maps.further_maps import PERPLEXITY, tsne_layout
from popdesic.maps.fuzzy_graph import fuzzy_graph
from popdesic.maps.knn import nearest_neighbors
from popdesic.maps.quality import choose_anchors, measure_silhouette
from popdesic.maps.umap_layout import NearestRows, draw_maps, epochs_of, optimize_layout
from popdesic.maps.umap_maps import ensemble_members, measure_instability, rows_of_points

UMAP = {"neighbors": 15, "min_dist": 0.3}
COMPONENTS = 10
LAYOUTS = ["UMAP", "umap-learn", "densMAP", "umap-learn densMAP", "t-SNE"]
AGREEMENT = ("trustworthiness", "continuity", "recall_15", "recall_50", "rank_correlation")
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


def has_peer() -> bool:
    """Whether umap-learn is installed; it is a package of the tests."""
    found = importlib.util.find_spec("umap") is not None
    if not found:
        print("umap-learn is left out: it is not installed (pip install umap-learn).", flush=True)
    return found


def peer_layout(
    known: NearestRows, start: np.ndarray, seed: int, dense: bool = False
) -> np.ndarray:
    """A map of the same neighbours by umap-learn, (n, 2); `dense`: a densMAP."""
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
        densmap=dense,
    )
    return model.fit_transform(first).astype(np.float64)


def own_layout(known: NearestRows, start: np.ndarray, seed: int, dense: bool = False) -> np.ndarray:
    """Our map of the same neighbours, (n, 2)."""
    if dense:
        options = {"min_dist": UMAP["min_dist"], "seed": seed}
        return draw_densmap(known.of(UMAP["neighbors"]), start, **options)
    return draw_maps(known, start, [(seed, UMAP["neighbors"])], min_dist=UMAP["min_dist"])[0]


def local_radii_on(points: np.ndarray) -> np.ndarray:
    """Logarithm of the mean squared distance of each point of a map to its 14 nearest, (n,)."""
    far = KDTree(points).query(points, UMAP["neighbors"])[0]
    return np.log(1e-8 + (far[:, 1:] ** 2).mean(axis=1))


def density_kept(known: NearestRows, points: np.ndarray) -> float:
    """Correlation of the logarithms of local radii among the samples and on a map."""
    far = known.far[:, : UMAP["neighbors"] - 1]
    among = np.log(1e-8 + ((far / np.median(far[far > 0])) ** 2).mean(axis=1))
    return float(np.corrcoef(among, local_radii_on(points))[0, 1])


def time_layouts(n: int, methods: list[str]) -> None:
    def prepare(n: int):
        points = structured(n)
        found = nearest_points(cpu_backend(usable_cpus()), points, 3 * PERPLEXITY + 1)
        known = NearestRows(found.index.astype(np.int64), found.distance)
        layouts = {
            "UMAP": lambda: own_layout(known, points, 1),
            "umap-learn": lambda: peer_layout(known, points, 1),
            "densMAP": lambda: own_layout(known, points, 1, True),
            "umap-learn densMAP": lambda: peer_layout(known, points, 1, True),
            "t-SNE": lambda: tsne_layout(Known(known), n, points, seed=1),
        }
        return known, points, layouts

    known, points, layouts = prepare(n)
    _, _, small = prepare(200)
    anchors = choose_anchors(n)[::10]
    rows = []
    for name in methods:
        if name.startswith("umap-learn") and not has_peer():
            continue
        seconds = []
        for draw in (small[name], layouts[name]):  # a small map first: compiles
            start = time.process_time()
            drawn = draw()
            seconds.append(f"{time.process_time() - start:.1f} s")
        found = measure_map(drawn, rows_of_points(points), anchors)
        kept = [f"{found[key]:.4f}" for key in ("trustworthiness", "recall_15")]
        rows.append((name, *seconds[::-1], *kept, f"{density_kept(known, drawn):.3f}"))
        print(*rows[-1], flush=True)
    columns = ("map", "CPU time", "first map of 200", "trust", "15 nearest kept", "density")
    print_table(f"{n} samples, one thread, {len(anchors)} anchors", columns, rows)


class Known:
    """Rows of a distance matrix of which only the nearest neighbours are stored."""

    def __init__(self, known: NearestRows) -> None:
        self.known = known

    def __call__(self, which: np.ndarray) -> np.ndarray:
        block = np.full((len(which), len(self.known.near)), np.inf, np.float32)
        far = self.known.far[which].astype(np.float32)
        np.put_along_axis(block, self.known.near[which], far, axis=1)
        return block


def time_epochs(n: int, device: str, threads: int) -> None:
    """Graph and epochs by device; a GPU's map has the CPU's bytes."""
    points, epochs = structured(n), epochs_of(n)
    backends = [cpu_backend(threads)]
    if device == "gpu":
        backends.append(select_backend(device, threads))
    found = nearest_points(backends[-1], points, UMAP["neighbors"] - 1)
    known = NearestRows(found.index.astype(np.int64), found.distance)
    fuzzy_graph(np.array([[1], [0]]), np.ones((2, 1)), 0.0)  # compiles
    wall, cpu = time.perf_counter(), time.process_time()
    graph = fuzzy_graph(known.near, known.far, 1 / epochs, threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    n_edges = len(graph.ends)
    rows = [("graph", "CPU", f"{wall:.2f} s", f"{cpu:.2f} s", f"{cpu / n_edges * 1e6:.2f} CPU-s/M")]
    options = {"start": points, "min_dist": UMAP["min_dist"], "seed": 1}
    densities = {"UMAP": None}
    densities["densMAP"] = density_of(known, graph, min_dist=UMAP["min_dist"], epochs=epochs)
    for name, density in densities.items():
        drawn = []
        for backend in backends:
            lay_out = partial(optimize_layout, graph, **options, backend=backend, density=density)
            if backend.name == "gpu":
                lay_out()  # compiles
            wall, cpu = time.perf_counter(), time.process_time()
            drawn.append(lay_out().tobytes())
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            rate = f"{n_edges * epochs / wall / 1e9:.3f} G/s"
            rows.append((name, backend.name.upper(), f"{wall:.2f} s", f"{cpu:.2f} s", rate))
        assert len(set(drawn)) == 1, "the bytes differ"
    columns = ("step", "device", "wall", "CPU time", "edges (x epochs)")
    print_table(f"{n} samples, {n_edges} edges, {epochs} epochs, {threads} threads", columns, rows)


def compare_seeds(title: str, distances: np.ndarray, start: np.ndarray, seeds: int) -> list[tuple]:
    """Mean and standard deviation over seeds of our maps and of umap-learn's."""
    n = len(start)
    known = NearestRows(*nearest_neighbors(distances.__getitem__, n, UMAP["neighbors"] - 1))
    rows = []
    for name, draw, dense in (
        ("UMAP", own_layout, False),
        ("umap-learn", peer_layout, False),
        ("densMAP", own_layout, True),
        ("umap-learn densMAP", peer_layout, True),
    ):
        scores, seconds = [], []
        for seed in range(seeds + 1):  # the first compiles
            clock = time.process_time()
            drawn = draw(known, start, seed, dense)
            seconds.append(time.process_time() - clock)
            scores.append(measure_map(drawn, distances.__getitem__, np.arange(n)))
            scores[-1]["density"] = density_kept(known, drawn)
        cells = []
        for key in (*AGREEMENT, "density"):
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
    genotypes = scene("grid", seed=1).genotypes.T.astype(np.float64)
    u, s, _ = np.linalg.svd(genotypes - genotypes.mean(axis=0), full_matrices=False)
    scores = u[:, :8] * s[:8]
    rows += compare_seeds("grid of demes", squareform(pdist(scores)), scores, seeds)
    for name in sets if data else ():
        with tempfile.TemporaryDirectory() as folder:
            people = load_people(data, name, Path(folder))
        everyone = np.ones(len(people.names), bool)
        scores, _ = principal_components(people.relationship, everyone, 8)
        for space in ("genotypes", "pcs"):
            distances = people.distances() if space == "genotypes" else squareform(pdist(scores))
            lengths = people.geodesics(distances)
            rows += compare_seeds(f"{name}, {space}", lengths, scores, seeds)
    scores = ("trust", "continuity", "15 kept", "50 kept", "rank", "density")
    columns = ("data", "map", *scores, "CPU time")
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
        cells.append(f"{measure_silhouette(points, labels)[0]:.3f}")
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
    parser.add_argument("--layouts", nargs="*", default=LAYOUTS)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="of the epochs")
    parser.add_argument("--threads", type=int, default=2, help="of the epochs")
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
        if not has_peer():
            raise SystemExit("Error: --seeds compares with umap-learn, which is not installed.")
        compare_with_peer(arguments.data, arguments.sets, arguments.seeds)
    if arguments.pca:
        time_pca(arguments.pca)
    time_epochs(arguments.samples, arguments.device, arguments.threads)
    if arguments.layouts:
        time_layouts(arguments.samples, arguments.layouts)


if __name__ == "__main__":
    main()
