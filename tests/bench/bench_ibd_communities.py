"""Communities that a block model finds by shared segments, beside those by principal components.

    python tests/bench/bench_ibd_communities.py [--seeds 2] [--first-seed 201] [--populations 4]
                                                [--each 60] [--generations 20 30 50]
                                                [--size 40000] [--before 20000] [--neighbors 15]
                                                [--genome 3543] [--python /usr/bin/python3]
                                                [--quick]

Populations of --size people come from one of --before people, so many generations ago; the last row
of each seed is one population of --size people, of whom as many are drawn. Genotypes have 0.1 %
errors and 1 % missing calls at 50 common sites a cM. `shared segments` is what the workflow does
with `communities.space: ibd`: the graph of all pairs with segments of 7 cM, weighted by total
length. `neighbour graph` is the block model of the --neighbors nearest on the significant
components; where there are none, on the first two. Both are the finest level of the best of two
fits by graph-tool. ARI: adjusted Rand index with the true populations.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import commandline
import numpy as np
import pandas as pd
from scenes.ibd_people import HUMAN_CM
from scenes.ibd_populations import draw_populations, separated
from scenes.ibd_scores import call_people
from scenes.landscapes.methods import significant_scores
from sklearn.metrics import adjusted_rand_score
from timing import print_table

import popdesic
from popdesic.communities.block_model import fit_blocks
from popdesic.communities.geodesics import build_neighbor_graph
from popdesic.core.tables import write_table
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.graph import build_graph as shared_graph

LEAST_CM = 7.0
#: Components of which neighbours are taken where none is significant.
FEWEST_COMPONENTS = 2


def blocks_of(graph: Path, python: str, seed: int) -> np.ndarray:
    """Finest blocks of a graph."""
    out = graph.with_suffix(".blocks.npz")
    if missing := fit_blocks(graph, out, python=python, seed=seed, restarts=2, draws=0):
        raise SystemExit(missing)
    with np.load(out) as found:
        return found["levels"][0]


def compare(options, populations: int, generations: float, seed: int, folder: Path) -> tuple:
    """One row of the table."""
    each = options.each * options.populations // populations
    lengths = list(HUMAN_CM)
    while sum(lengths) > options.genome and len(lengths) > 1:
        lengths.pop(0)
    people, truth = draw_populations(
        separated(populations, generations, options.size, options.before),
        *(each,),
        seed=seed,
        lengths=lengths,
        pool_cm=options.pool,
    )
    calls = call_people(people, SegmentLimits(min_cm=LEAST_CM), options.threads)
    names = np.array([f"p{k}" for k in range(len(truth))])
    write_table(folder / "samples.tsv", pd.DataFrame({"sample": names}))
    pairs = np.array(sorted(calls)).reshape(-1, 2)
    total = [sum(right - left for _, left, right in calls[a, b]) for a, b in pairs.tolist()]
    table = {"sample1": names[pairs[:, 0]], "sample2": names[pairs[:, 1]], "total_cM": total}
    table["kinship"] = np.array(total) / (4 * sum(lengths))
    write_table(folder / "pairs.tsv", pd.DataFrame(table))
    shared = folder / "shared.npz"
    shared_graph(folder / "pairs.tsv", folder / "samples.tsv", LEAST_CM, shared)
    own = blocks_of(shared, options.python, seed)

    genotypes = np.ascontiguousarray(people.genotypes.T)
    chrom, pos = people.sites.chrom.to_numpy(), people.sites.pos.to_numpy()
    scores = significant_scores(SimpleNamespace(genotypes=genotypes, chrom=chrom, pos=pos), 1)
    significant = scores.shape[1]
    if not significant:
        scores = popdesic.pca(people.genotypes, n_components=FEWEST_COMPONENTS).scores
    far = np.linalg.norm(scores[:, None] - scores[None], axis=2)
    nearest = folder / "nearest.npz"
    build_neighbor_graph(far.__getitem__, options.neighbors, nearest, np.ones(len(far), bool))
    other = blocks_of(nearest, options.python, seed)
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    return (
        *(seed, populations, f"{generations:g}" if populations > 1 else "", len(truth)),
        *(f"{2 * len(pairs) / len(truth):.1f}", f"{same.mean():.2f}"),
        *(len(np.unique(own)), f"{adjusted_rand_score(truth, own):.3f}"),
        *(significant, len(np.unique(other)), f"{adjusted_rand_score(truth, other):.3f}"),
    )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=201)
    parser.add_argument("--populations", type=int, default=4)
    parser.add_argument("--each", type=int, default=60, help="people of a population")
    parser.add_argument("--generations", type=float, nargs="+", default=[20, 30, 50])
    parser.add_argument("--size", type=int, default=40_000)
    parser.add_argument("--before", type=int, default=20_000)
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--genome", type=float, default=sum(HUMAN_CM), help="cM, at most")
    parser.add_argument("--pool", type=float, default=40, help="cM of founders that are drawn")
    parser.add_argument("--python", default="/usr/bin/python3", help="has graph-tool")
    parser.add_argument("--threads", type=int, default=2)
    options = commandline.parse(
        parser,
        **{"seeds": 1, "each": 15, "generations": [30.0], "genome": 200.0, "pool": 5.0},
        **{"size": 300, "before": 5_000},
    )
    scenes = [(options.populations, generations) for generations in options.generations] + [(1, 0)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for scene in scenes:
                rows.append(compare(options, *scene, seed, Path(folder)))
                print(*rows[-1], file=sys.stderr)
    header = ["seed", "populations", "generations", "people", "pairs a person", "within"]
    header += ["by segments: blocks", "ARI", "by components: significant", "blocks", "ARI"]
    print_table("Communities by shared segments and by components", header, rows)


if __name__ == "__main__":
    main()
