"""Verdicts on pairs of relatives, where the pedigree is known.

    python tests/bench/bench_degrees.py [--seeds 10] [--first-seed 1] [--families 12]
                                        [--worlds panmictic admixed inbred] [--threads 2]
                                        [--sources segments pc_relate king] [--quick]

Families of 18 samples (a couple, children, grandchildren and great-grandchildren, a half sibling's
line, an identical twin) over the human autosomes: 3 543 cM, 45 sites a cM, 0.1 % errors and 1 %
missing calls (`tests/scenes/whole_genome.py`). They are of one population; everyone of two that
mixed; of one population with inbred couples: first cousins, couples whose parents are, and
siblings.

Of each class of pairs: how many there are; the share with the right relation, with none, and as
KING-robust kinship alone would have it by its limits; and the share of the intervals that hold the
kinship by pedigree. "unrelated" counts pairs that are called third degree or closer. The interval
behind a share is that of Wilson (1927), 95 %, as if pairs were independent. `--sources`: with these
analyses alone.
"""

from __future__ import annotations

from collections import defaultdict

import commandline
import numpy as np
from scenes.whole_genome import (
    FARTHER,
    POOL_CM,
    RIGHT,
    UNRELATED,
    WORLDS,
    Scene,
    draw_scene,
    evidence_of,
)
from timing import print_table

from popdesic.ibd.verdict import CLOSE, SOURCES, UNTOLD, judge_pairs, relation_of
from popdesic.relatives.kinship import SAME


def wilson(count: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share."""
    share, more = count / n, z * z / n
    middle, half = share + more / 2, z * np.sqrt(share * (1 - share) / n + more / (4 * n))
    return (middle - half) / (1 + more), (middle + half) / (1 + more)


def by_king(scene: Scene, king: np.ndarray, k0: np.ndarray, limit: float) -> dict:
    """What limits of KING-robust kinship alone say of each related pair."""
    return {
        (i, j): SAME
        if scene.kind[i, j] == "identical"
        else relation_of(king[i, j], k0[i, j], limit)
        for i, j in scene.kinship
    }


def measure(world: str, seed: int, options) -> tuple[dict, int, int]:
    """Counts by class: pairs, right, untold, right by KING alone, intervals, those with the truth.

    Also unrelated pairs, and how many of them are called third degree or closer.
    """
    size = {"families": options.families, "per_cm": options.per_cm, "pool_cm": options.pool}
    scene = draw_scene(world, seed, **size)
    found, genome, king, k0 = evidence_of(scene, int(world == "admixed"), options.threads)
    for name in set(SOURCES) - set(options.sources):
        setattr(found, name, None)
    if "pc_relate" not in options.sources:
        found.inbreeding = {}
    table = judge_pairs(found, genome)
    place = {name: k for k, name in enumerate(scene.names)}
    judged = {}
    for row in table.itertuples():
        judged[tuple(sorted((place[row.sample_a], place[row.sample_b])))] = row
    alone = by_king(scene, king, k0, found.parents)
    counts: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(6, int))
    for pair, phi in scene.kinship.items():
        kind, row = scene.kind[pair], judged.get(pair)
        # Pairs that are not listed are called distant; they have no interval.
        said = "distant" if row is None else row.relation
        said = "distant" if said == "unrelated" else said
        right = RIGHT.get(kind)
        counts[kind] += (
            *(1, said == right, said == UNTOLD, alone[pair] == right),
            *(row is not None, row is not None and row.low <= phi <= row.high),
        )
    strangers = set(judged) - set(scene.kinship)
    wrong = sum(judged[pair].relation in (SAME, *CLOSE) for pair in strangers)
    n = len(scene.names)
    return counts, n * (n - 1) // 2 - len(scene.kinship), wrong


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--families", type=int, default=12)
    parser.add_argument("--per-cm", type=int, default=45, help="sites a cM")
    parser.add_argument("--pool", type=int, default=POOL_CM, help="cM of founders that are drawn")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--threads", type=int, default=2)
    options = commandline.parse(parser, seeds=1, families=3, per_cm=40, pool=5, worlds=["inbred"])
    rows, sums = [], defaultdict(lambda: np.zeros(6, int))
    for world in options.worlds:
        totals, pairs, wrong = defaultdict(lambda: np.zeros(6, int)), 0, 0
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            counts, strangers, false = measure(world, seed, options)
            pairs, wrong = pairs + strangers, wrong + false
            for kind, own in counts.items():
                totals[kind] += own
        for kind in (*RIGHT, FARTHER):
            if kind in totals:
                rows.append((world, kind, *words(totals[kind], kind != FARTHER)))
                sums[RIGHT.get(kind, FARTHER)] += totals[kind]
        rows.append((world, UNRELATED, pairs, f"{wrong} close", *[""] * 5))
    head = ("samples", "class", "pairs", "right", "95 %", "not told", "by KING alone")
    head = (*head, "intervals", "hold the truth")
    print_table("Verdicts on pairs", head, rows)
    pooled = [(relation, *words(own, relation != FARTHER)) for relation, own in sums.items()]
    print_table("All samples together", head[1:], pooled)


def words(own: np.ndarray, scored: bool) -> tuple:
    n, right, untold, alone, intervals, held = own.tolist()
    low, high = wilson(right, n)
    share = f"{held / intervals:.3f}" if intervals else ""
    scores = (f"{right / n:.4f}", f"{low:.3f} to {high:.3f}", f"{untold / n:.3f}")
    scores = (*scores, f"{alone / n:.3f}") if scored else ("", "", "", "")
    return (n, *scores, intervals, share)


if __name__ == "__main__":
    main()
