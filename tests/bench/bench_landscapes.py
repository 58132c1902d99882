"""How true distances, maps and communities are, on scenes of people whose landscape is known.

    python tests/bench/bench_landscapes.py [--seeds 20] [--scenes grid wall] [--quick]

The scenes are those of tests/landscapes. Every figure is a mean over --seeds draws of a scene. The
peers are plain distances of 8 principal components and Isomap (scikit-learn, 15 neighbours):

- rank correlation of distances with the true ones, over all pairs. The order of distances is all
  that counts, so Σd^α and its root are one column. Below, what is gained over the plain components
  and over Isomap, and the least gain of any draw;
- share of the 15 nearest that are among the true 15 nearest;
- share of the variance of true coordinates that principal coordinates explain (Procrustes), from
  lengths Σd^α and from sample Fermat distances (Σd^α)^(1/α);
- communities: how many HDBSCAN finds (Fermat 2), and the two cuts of the tree of its clusters,
  their adjusted Rand index with the true populations where there are any, and how many communities
  too many a population or a continuum is cut into.

--out FILE writes every number of every draw (TSV: scene, seed, score, way, value).
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import commandline
import numpy as np
from landscapes import SCENES, Scene, scene, scores
from landscapes.methods import COMPONENTS, NEIGHBORS, People, knn_lengths, ways
from timing import print_table

from popdesic.communities.partition import density_clusters, join_groups, number_by_size
from popdesic.embedding.knn import nearest_neighbors
from popdesic.embedding.pcoa import principal_coordinates

ALPHAS, GRAPHS = (1.5, 2.0, 4.0, 8.0), (10, 15)
PLAIN, PEER = "PCs", f"Isomap {NEIGHBORS}"
#: Smallest cluster of HDBSCAN, the workflow's default.
MIN_CLUSTER = 10

#: What --quick draws.
QUICK = ("chain", "wall", "islands", "panmixia")

#: Values by (score, way).
Values = dict[tuple[str, str], float]


def measure_distances(drawn: Scene, people: People) -> Values:
    """Rank correlation and neighbour recall of every way to measure distances."""
    found: Values = {}
    for way, distances in ways(GRAPHS, ALPHAS).items():
        lengths = distances(people)
        found["rank", way] = scores.rank_correlation(lengths, drawn.true_distance)
        found["recall", way] = scores.neighbour_recall(lengths, drawn.true_distance)
    return found


def measure_coordinates(drawn: Scene, people: People) -> Values:
    """How much of the true coordinates is in principal coordinates."""
    truth = drawn.coordinates
    truth = truth[:, np.ptp(truth, axis=0) > 0]
    axes = truth.shape[1]

    def explained(distances: np.ndarray) -> float:
        return scores.procrustes_r2(principal_coordinates(distances, axes)[0], truth)

    found = {
        ("map", PLAIN): scores.procrustes_r2(people.scores[:, :axes], truth),
        ("map", PEER): explained(people.isomap()),
        ("map", "knn 15 1"): explained(knn_lengths(people.plain, 15, 1.0)),
    }
    for alpha in ALPHAS:
        lengths = people.fermat(alpha)
        found["map", f"{alpha:g} sum"] = explained(lengths)
        found["map", f"{alpha:g} root"] = explained(lengths ** (1 / alpha))
    return found


def measure_communities(drawn: Scene, people: People) -> Values:
    """Number, adjusted Rand index and false splits of communities as the workflow finds them."""
    lengths = people.fermat(2.0) ** 0.5
    clusters = density_clusters(lengths, MIN_CLUSTER)
    near, _ = nearest_neighbors(lengths.__getitem__, len(lengths), NEIGHBORS)
    edges = np.stack([np.repeat(np.arange(len(near)), NEIGHBORS), near.ravel()], axis=1)
    joined = join_groups(lengths, np.unique(clusters, return_inverse=True)[1], edges)
    discrete = drawn.structure == "discrete"
    truth = drawn.populations if discrete else np.zeros(len(lengths), int)
    partitions = {"HDBSCAN": number_by_size(clusters), "coarse": joined.coarse, "fine": joined.fine}
    found: Values = {}
    for name, partition in partitions.items():
        found["communities", name] = len(np.unique(partition))
        found["false splits", name] = scores.false_splits(partition, truth)
        if discrete:
            found["ARI", name] = scores.community_ari(partition, truth)
    return found


def measure(name: str, seed: int, size: str, **changes: float) -> Values:
    """All scores of one draw of a scene."""
    drawn = scene(name, seed, size, **changes)
    people = People(drawn.genotypes)
    found = measure_communities(drawn, people)
    if drawn.structure != "one":
        found |= measure_distances(drawn, people)
    if drawn.coordinates is not None:
        found |= measure_coordinates(drawn, people)
    return found


def show(title: str, score: str, draws: dict[str, list[Values]], digits: int = 3) -> None:
    """One table: a row a scene, a column a way."""
    rows, head = [], None
    for name, values in draws.items():
        names = [way for kind, way in values[0] if kind == score]
        if names:
            head = head or names
            means = [np.mean([one[score, way] for one in values]) for way in names]
            rows.append((name, *(f"{value:.{digits}f}" for value in means)))
    if head:
        print_table(title, ("scene", *head), rows)


def show_gains(draws: dict[str, list[Values]]) -> None:
    """Mean gain over the plain components, over Isomap, and the least of any draw."""
    rows, ours = [], [way for way in ways(GRAPHS, ALPHAS) if way not in (PLAIN, PEER, "genotypes")]
    for name, values in draws.items():
        if ("rank", PLAIN) not in values[0]:
            continue
        for peer in (PLAIN, PEER):
            gains = np.array([[one["rank", w] - one["rank", peer] for w in ours] for one in values])
            cells = zip(gains.mean(axis=0), gains.min(axis=0), strict=True)
            rows.append((name, peer, *(f"{mean:+.3f} ({least:+.3f})" for mean, least in cells)))
    if rows:
        title = "gain of rank correlation, mean and (least of any draw)"
        print_table(title, ("scene", "over", *ours), rows)


def write_draws(path: Path, draws: dict[str, list[Values]]) -> None:
    lines = ["scene\tseed\tscore\tway\tvalue"]
    for name, values in draws.items():
        for seed, one in enumerate(values, 1):
            lines += [f"{name}\t{seed}\t{kind}\t{way}\t{v:.6f}" for (kind, way), v in one.items()]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="draws of every scene")
    parser.add_argument("--size", choices=("small", "large"), default="large")
    parser.add_argument("--scenes", nargs="*", default=[*SCENES], help="names, default all")
    parser.add_argument("--sites", type=int, help="sites of each scene, instead of its own number")
    parser.add_argument("--out", type=Path, help="file for the numbers of every draw")
    options = commandline.parse(parser, seeds=1, size="small", sites=200, scenes=QUICK)
    unknown = [name for name in options.scenes if name not in SCENES]
    if unknown:
        raise SystemExit(f"Error: no scene {unknown[0]!r}; there are {', '.join(SCENES)}.")
    changes = {"sites": options.sites} if options.sites else {}
    draws: dict[str, list[Values]] = defaultdict(list)
    for name in options.scenes:
        start = time.perf_counter()
        for seed in range(1, options.seeds + 1):
            draws[name].append(measure(name, seed, options.size, **changes))
        seconds = (time.perf_counter() - start) / options.seeds
        print(f"{name}: {seconds:.1f} s a draw", flush=True)
    of = f"{options.size} scenes, {options.seeds} draws, {COMPONENTS} components"
    show(f"rank correlation with the true distance, {of}", "rank", draws)
    show_gains(draws)
    show("share of the 15 nearest that are the true ones", "recall", draws)
    show("R² of true coordinates, principal coordinates of", "map", draws)
    show("communities found", "communities", draws, 1)
    show("adjusted Rand index with the true populations", "ARI", draws)
    show("communities too many", "false splits", draws, 1)
    if options.out:
        write_draws(options.out, draws)


if __name__ == "__main__":
    main()
