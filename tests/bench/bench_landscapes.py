"""How true distances, maps and communities are, on scenes of people whose landscape is known.

    python tests/bench/bench_landscapes.py [--seeds 20] [--first-seed 1] [--scenes grid wall]
                                           [--jobs 16] [--quick]

The scenes are those of tests/landscapes. Every figure is a mean over --seeds draws of a scene,
--jobs of them at a time on one CPU each, which changes no figure. The peers are plain distances of
8 principal components and Isomap (scikit-learn, 15 neighbours).

- Rank correlation of distances with the true ones, over all pairs. The order of distances is all
  that counts, so Σd^α and its root are one column. Then what is gained over the two peers, and the
  least gain of any draw; the same with other numbers of components; and what is gained by the way
  that is chosen without the truth, by sites that were held out (`popdesic.geodesic.metrics`), also
  over the best geodesics of the same number of components: what is lost where plain distances are
  taken instead. Agreement is the rank correlation of these geodesics with plain distances.
- Share of the 15 nearest that are among the true 15 nearest.
- Share of the variance of true coordinates that principal coordinates explain (Procrustes), from
  lengths Σd^α and from sample Fermat distances (Σd^α)^(1/α).
- How much longer equal true distances are in the half of a chain where fewer were sampled; and
  what weights corrected for density change there, and in the rank correlation of any scene.
- Communities: how many are found on the significant components, coarse (`community`, shown first)
  and `fine`, and by HDBSCAN on Fermat distances (α = 2; its noise is one group); their adjusted
  Rand index with the true populations where there are any; and how many communities too many a
  population or a continuum is cut into.

--out FILE writes every number of every draw (TSV: scene, seed, score, way, value).
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import commandline
import numpy as np
from scenes.landscapes import SCENES, Scene, scene, scores
from scenes.landscapes.blind import evidence_of, named
from scenes.landscapes.density import (
    CORRECTION_HEAD,
    correction_rows,
    measure_correction,
    ratio_of_halves,
)
from scenes.landscapes.methods import (
    FEWER,
    NEAREST,
    PEER,
    PLAIN,
    WAYS,
    People,
    Way,
    significant_scores,
)
from scenes.landscapes.splitting import community_tree, genotypes_of
from threadpoolctl import threadpool_limits
from timing import print_table

from popdesic.communities.geodesics import density_clusters
from popdesic.communities.splits import cut_coarse, cut_tree
from popdesic.communities.study_splits import number_by_size
from popdesic.components.scaling import principal_coordinates
from popdesic.geodesic.metrics import Choice, choose_way

#: Smallest cluster of HDBSCAN, the workflow's default.
MIN_CLUSTER = 10
#: What --quick draws.
QUICK = ("chain", "wall", "islands", "panmixia")
#: The chosen way, among the others, and the geodesics that it was compared with.
CHOSEN, BENT = "chosen", "best geodesics"

#: Values by score and way.
Values = dict[tuple[str, str], float]


def measure_distances(drawn: Scene, people: People, choice: Choice) -> Values:
    """Rank correlation and neighbour recall of every way to measure distances."""
    found: Values = {}
    picked = {CHOSEN: named(choice.way), BENT: named(choice.best)}
    for way in dict.fromkeys([*WAYS, *FEWER, *picked.values()]):
        lengths = way.lengths(people)
        rank = scores.rank_correlation(lengths, drawn.true_distance)
        found |= {("rank", name): rank for name, one in picked.items() if way == one}
        if way in FEWER:
            found["components", str(way)] = rank
        if way in WAYS:
            found["rank", str(way)] = rank
            found["recall", str(way)] = scores.neighbour_recall(lengths, drawn.true_distance)
    return found


def measure_coordinates(drawn: Scene, people: People) -> Values:
    """How much of the true coordinates is in principal coordinates."""
    truth = drawn.coordinates[:, np.ptp(drawn.coordinates, axis=0) > 0]

    def explained(distances: np.ndarray) -> float:
        return scores.procrustes_r2(principal_coordinates(distances, truth.shape[1])[0], truth)

    found = {("map", str(way)): explained(way.lengths(people)) for way in (PLAIN, PEER, NEAREST)}
    for way in WAYS:
        if way.kind == "Fermat":
            lengths = way.lengths(people)
            found["map", f"{way.alpha:g} sum"] = explained(lengths)
            found["map", f"{way.alpha:g} root"] = explained(lengths ** (1 / way.alpha))
    return found


def measure_density(drawn: Scene, people: People) -> Values:
    """How much longer equal true distances are where fewer people were sampled."""
    found: Values = {}
    for way in WAYS:
        lengths = way.lengths(people)
        if way.alpha == 1:
            found["density", str(way)] = ratio_of_halves(drawn, lengths)
        elif way.kind == "Fermat":
            found["density", f"{way.alpha:g} sum"] = ratio_of_halves(drawn, lengths)
            root = lengths ** (1 / way.alpha)
            found["density", f"{way.alpha:g} root"] = ratio_of_halves(drawn, root)
    return found


def measure_communities(drawn: Scene, people: People) -> Values:
    """Number, adjusted Rand index and false splits of communities as the workflow finds them."""
    genotypes = genotypes_of(drawn.genotypes, drawn.chrom, drawn.pos)
    root = community_tree(significant_scores(drawn), genotypes)
    lengths = Way("Fermat", 2.0).lengths(people) ** 0.5
    partitions = {
        "community": cut_coarse(root),
        "fine": cut_tree(root),
        "HDBSCAN": number_by_size(density_clusters(lengths, MIN_CLUSTER)),
    }
    discrete = drawn.structure == "discrete"
    truth = drawn.populations if discrete else np.zeros(len(lengths), int)
    found: Values = {}
    for name, partition in partitions.items():
        found["communities", name] = len(np.unique(partition))
        found["false splits", name] = scores.false_splits(partition, truth)
        if discrete:
            found["ARI", name] = scores.community_ari(partition, truth)
    return found


def measure(drawn: Scene) -> tuple[Values, str]:
    """All scores of a scene, and the way that is chosen without the truth, with the reason."""
    people = People(drawn.genotypes)
    evidence = evidence_of(drawn)
    choice = choose_way(evidence)
    words = f"{named(choice.way)}" + (f", {choice.reason}" if choice.way.is_plain else "")
    held_out = {str(named(way)): value for way, value in evidence.held_out.items()}
    if drawn.structure == "one":
        null = {("null", str(PLAIN)): held_out[str(PLAIN)]}
        return null | measure_communities(drawn, people), words
    found: Values = {("held out", name): value for name, value in held_out.items()}
    found["agreement", BENT] = evidence.agreement[choice.best]
    found |= measure_distances(drawn, people, choice)
    found |= measure_correction(drawn, people)
    if "denser" in drawn.parameters:
        found |= measure_density(drawn, people)
    if drawn.coordinates is not None:
        found |= measure_coordinates(drawn, people)
    return found | measure_communities(drawn, people), words


def show(title: str, score: str, draws: dict[str, list[Values]], digits: int = 3) -> None:
    """One table: a row a scene, a column a way."""
    rows, head = [], None
    for name, values in draws.items():
        names = [w for kind, w in values[0] if kind == score and w not in (CHOSEN, BENT)]
        if names:
            head = head or names
            means = [np.mean([one[score, way] for one in values]) for way in names]
            rows.append((name, *(f"{value:.{digits}f}" for value in means)))
    if head:
        print_table(title, ("scene", *head), rows)


def gain(values: list[Values], way: str, peer: Way | str) -> str:
    """Mean gain of rank correlation, and the least of any draw."""
    gains = [one["rank", way] - one["rank", str(peer)] for one in values]
    return f"{np.mean(gains):+.3f} ({min(gains):+.3f})"


def show_gains(draws: dict[str, list[Values]], chosen: dict[str, list[str]]) -> None:
    with_truth = {
        name: values for name, values in draws.items() if ("rank", str(PLAIN)) in values[0]
    }
    ours = [str(way) for way in WAYS if way.kind in ("Fermat", "knn")]
    for peer in (PLAIN, PEER):
        rows = [(name, *(gain(v, way, peer) for way in ours)) for name, v in with_truth.items()]
        title = f"gain of rank correlation over {peer}, mean and (least of any draw)"
        print_table(title, ("scene", *ours), rows)
    rows = []
    for name, values in draws.items():
        picks = "; ".join(f"{way}: {k}" for way, k in Counter(chosen[name]).most_common())
        cells = 5 * ("",)
        if name in with_truth:
            same = np.mean([one["agreement", BENT] for one in values])
            mean = np.mean([one["rank", CHOSEN] for one in values])
            gains = [gain(values, CHOSEN, peer) for peer in (PLAIN, PEER, BENT)]
            cells = (f"{same:.3f}", f"{mean:.3f}", *gains)
        rows.append((name, *cells, picks))
    peers = (f"over {PLAIN}", f"over {PEER}", f"over {BENT}")
    head = ("scene", "agreement", "rank correlation", *peers, "chosen")
    print_table("chosen without the truth, by held-out sites", head, rows)


#: Scene, seed, size, and parameters that differ from those of the size.
Task = tuple[str, int, str, dict]


def measure_task(task: Task) -> tuple[Values, str]:
    name, seed, size, changes = task
    with threadpool_limits(1):  # sums of floats depend on the number of threads
        return measure(scene(name, seed, size, **changes))


def measure_all(tasks: list[Task], jobs: int) -> Iterator[tuple[Values, str]]:
    """Results of `measure_task` in the order of the tasks, `jobs` processes at a time."""
    if jobs == 1:
        yield from map(measure_task, tasks)
        return
    context = multiprocessing.get_context("spawn")
    cpus = context.SimpleQueue()
    for cpu in islice(cycle(sorted(os.sched_getaffinity(0))), jobs):
        cpus.put(cpu)
    with context.Pool(jobs, take_cpu, (cpus,)) as pool:
        yield from pool.imap(measure_task, tasks)


def take_cpu(cpus: multiprocessing.SimpleQueue) -> None:
    """Stay on one CPU, so that processes do not start a thread on every other one."""
    os.sched_setaffinity(0, {cpus.get()})


def write_draws(path: Path, draws: dict[str, list[Values]], first: int) -> None:
    lines = ["scene\tseed\tscore\tway\tvalue"]
    for name, values in draws.items():
        for seed, one in enumerate(values, first):
            lines += [f"{name}\t{seed}\t{kind}\t{way}\t{v:.6f}" for (kind, way), v in one.items()]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="draws of every scene")
    parser.add_argument("--first-seed", type=int, default=1, help="seed of the first draw")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
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
    chosen: dict[str, list[str]] = defaultdict(list)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [(name, seed, options.size, changes) for name in options.scenes for seed in seeds]
    start = time.perf_counter()
    for (name, seed, *_), (values, way) in zip(
        tasks, measure_all(tasks, options.jobs), strict=True
    ):
        draws[name].append(values)
        chosen[name].append(way)
        if seed == seeds[-1]:
            print(f"{name}: after {time.perf_counter() - start:.0f} s", flush=True)
            if options.out:
                write_draws(options.out, draws, options.first_seed)
    of = f"{options.size} scenes, {options.seeds} draws"
    show(f"rank correlation with the true distance, {of}", "rank", draws)
    show_gains(draws, chosen)
    show("rank correlation by number of components", "components", draws)
    show("rank correlation with genetic distances at held-out sites", "held out", draws)
    show("the same where there is one population", "null", draws)
    show("share of the 15 nearest that are the true ones", "recall", draws)
    show("R² of true coordinates, principal coordinates of", "map", draws)
    show("length of equal true distances, sparse half over dense half", "density", draws, 2)
    rows = [row for name, values in draws.items() for row in correction_rows(name, values)]
    if rows:
        title = "weights corrected for density: sparse half over dense half, rank correlation"
        print_table(title, CORRECTION_HEAD, rows)
    show("communities found", "communities", draws, 1)
    show("adjusted Rand index with the true populations", "ARI", draws)
    show("communities too many", "false splits", draws, 1)


if __name__ == "__main__":
    main()
