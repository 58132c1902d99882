"""People whose segments of identity by descent are known: coalescent scenes and planted pedigrees.

Positions are in cM, one centimorgan a megabase.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import msprime
import numpy as np
import pandas as pd

from popdesic.cohort.encode import planes_in_memory
from popdesic.engine.terms import Planes
from popdesic.io.genotypes import MISSING, pack_bed

#: True segments shorter than this are not listed, in cM.
SHORTEST_CM = 0.5
#: Pieces of true segments are followed from this length on, in cM.
PIECE_CM = 0.01
#: Common ancestors are sought so many generations back; older ones left nothing of 2 cM.
OLDEST = 200
#: People whose misread and missing genotypes are drawn at once.
PEOPLE_AT_ONCE = 500
#: Parts into which `true_of` divides pairs.
CUT = 8
#: Lengths of the human autosomes in cM (Kong et al. 2010, both sexes, rounded).
HUMAN_CM = (
    *(286, 269, 223, 215, 204, 192, 187, 168, 166, 181, 158),
    *(175, 126, 119, 141, 134, 128, 118, 108, 108, 63, 74),
)

#: (contig, left, right) of intervals in cM, by pair (i, j), i < j.
Intervals = dict[tuple[int, int], list[tuple[int, float, float]]]


@dataclass
class People:
    """Genotypes int8 (n, n_sites) as seen, sites, and true segments of each pair, by haplotypes.

    `alt`: true frequency of ALT; `lengths`: of the contigs in cM; `haplotypes`: true, int8 (2 n,
    n_sites); `trees`: of each contig.
    """

    genotypes: np.ndarray
    sites: pd.DataFrame
    alt: np.ndarray
    lengths: tuple[float, ...]
    haplotypes: np.ndarray
    true: Intervals = field(default_factory=dict)
    trees: list = field(default_factory=list)

    @property
    def planes(self) -> Planes:
        return planes_in_memory(
            pack_bed(np.ascontiguousarray(self.genotypes.T)), len(self.genotypes)
        )


def grown() -> msprime.Demography:
    """Ten thousand people until 60 generations ago, a million since: little recent sharing."""
    history = msprime.Demography()
    history.add_population(name="A", initial_size=1_000_000)
    history.add_population_parameters_change(time=60, initial_size=10_000, population="A")
    return history


def isolated(size: int = 1500) -> msprime.Demography:
    """`size` people for the last 30 generations, 8 000 before: much recent sharing."""
    history = msprime.Demography()
    history.add_population(name="A", initial_size=size)
    history.add_population_parameters_change(time=30, initial_size=8_000, population="A")
    return history


def draw_people(
    n: int | dict[str, int],
    lengths: tuple[float, ...],
    *,
    seed: int,
    history: msprime.Demography | None = None,
    sites_per_cm: float = 150,
    min_maf: float = 0.05,
    error_rate: float = 0.001,
    missing: float = 0.01,
    generations: int = 50,
    rate: float = 2e-8,
    truth: bool = True,
) -> People:
    """People of the population A; the last `generations` by the discrete Wright-Fisher model.

    n: people, or people by population. rate: of mutations; 2e-9 is enough where only common sites
    are kept. truth: list the true segments of all pairs; without, `true_of` has those of some.
    """
    rng = np.random.default_rng(seed)
    history = isolated() if history is None else history
    n = n if isinstance(n, dict) else {"A": n}
    alleles, chrom, pos, true, drawn = [], [], [], defaultdict(list), []
    for contig, length in enumerate(lengths):
        trees, haplotypes, cm = _contig(
            *(history, n, length, 1000 * seed + contig + 1, generations, rate, min_maf)
        )
        drawn.append(trees)
        common = np.arange(len(cm))
        kept = np.sort(
            rng.choice(common, min(len(common), int(sites_per_cm * length)), replace=False)
        )
        alleles.append(haplotypes[kept])
        chrom += [str(contig + 1)] * len(kept)
        pos.append(cm[kept])
        for pair, found in _true_segments(trees).items() if truth else ():
            true[pair] += [(contig, left, right) for left, right in found]
    haplotypes = np.concatenate(alleles)
    genotypes = (haplotypes[:, ::2] + haplotypes[:, 1::2]).T.astype(np.int8)
    return People(
        read_with_errors(genotypes, rng, error_rate, missing),
        pd.DataFrame({"chrom": chrom, "pos": np.round(1e6 * np.concatenate(pos)).astype(int) + 1}),
        haplotypes.mean(axis=1),
        lengths,
        np.ascontiguousarray(haplotypes.T),
        dict(true),
        drawn,
    )


def _contig(history, n, length, seed, generations, rate, min_maf):
    """Trees, haplotypes int8 (n_sites, 2 n) of the common sites, and their positions in cM."""
    trees = msprime.sim_ancestry(
        n,
        demography=history,
        sequence_length=length * 1e6,
        recombination_rate=1e-8,
        random_seed=seed,
        model=[
            msprime.DiscreteTimeWrightFisher(duration=generations),
            msprime.StandardCoalescent(),
        ]
        if generations
        else None,
    )
    mutated = msprime.sim_mutations(
        trees, rate=rate, random_seed=seed, model=msprime.BinaryMutationModel()
    )
    kept, positions = [], []
    for variant in mutated.variants(copy=False):
        alleles = (variant.genotypes > 0).astype(np.int8)
        if min_maf <= alleles.mean() <= 1 - min_maf:
            kept.append(alleles)
            positions.append(variant.position / 1e6)
    return trees, np.array(kept).reshape(len(kept), trees.num_samples), np.array(positions)


def true_of(people: People, pairs: Sequence[tuple[int, int]]) -> Intervals:
    """True segments of some pairs, as in `People.true`.

    The trees are cut down to fewer and fewer pairs: to go from all people to one pair takes long.
    """
    found: Intervals = {pair: [] for pair in pairs}

    def cut(trees, contig: int, some: list[tuple[tuple[int, int], list[int]]]) -> None:
        if len(some) == 1:
            own = _true_segments(trees.simplify(some[0][1])).get((0, 1), [])
            found[some[0][0]] += [(contig, left, right) for left, right in own]
            return
        for part in range(0, len(some), size := -(-len(some) // CUT)):
            chosen = some[part : part + size]
            samples = sorted({k for _, four in chosen for k in four})
            place = {k: new for new, k in enumerate(samples)}
            moved = [(pair, [place[k] for k in four]) for pair, four in chosen]
            cut(trees.simplify(samples), contig, moved)

    for contig, trees in enumerate(people.trees):
        fours = [(pair, [2 * k + c for k in pair for c in (0, 1)]) for pair in pairs]
        if fours:
            cut(trees.decapitate(OLDEST), contig, fours)
    return found


def true_among(people: People, some: Sequence[int]) -> Intervals:
    """True segments of all pairs of some people, as in `People.true`."""
    found: Intervals = defaultdict(list)
    some = sorted(some)
    for contig, trees in enumerate(people.trees):
        own = trees.simplify([2 * k + c for k in some for c in (0, 1)])
        for (a, b), parts in _true_segments(own).items():
            found[some[a], some[b]] += [(contig, left, right) for left, right in parts]
    return dict(found)


def _true_segments(trees) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """Stretches of at least SHORTEST_CM along which two haplotypes have one common ancestor.

    `ibd_segments` also ends a segment where a node of other samples enters the path to the
    ancestor; such pieces, which touch and have the same ancestor, are put together here.
    """
    found = defaultdict(list)
    pieces = trees.ibd_segments(
        min_span=PIECE_CM * 1e6, max_time=OLDEST, store_pairs=True, store_segments=True
    )
    for (a, b), segments in pieces.items():
        pair = tuple(sorted((a // 2, b // 2)))
        if pair[0] == pair[1]:
            continue
        parts = sorted((s.left / 1e6, s.right / 1e6, s.node) for s in segments)
        whole = [list(parts[0])]
        for left, right, node in parts[1:]:
            if node == whole[-1][2] and left - whole[-1][1] <= 2 * PIECE_CM:
                whole[-1][1] = right
            else:
                whole.append([left, right, node])
        long = [(left, right) for left, right, _ in whole if right - left >= SHORTEST_CM]
        if long:
            found[pair] += long
    return found


def read_with_errors(
    genotypes: np.ndarray, rng: np.random.Generator, error_rate: float, missing: float
) -> np.ndarray:
    """Genotypes of which a share has one allele misread and a share is missing."""
    seen = genotypes.copy()
    # Numbers are drawn for some people at a time: they take eight times as much as genotypes.
    blocks = [slice(k, k + PEOPLE_AT_ONCE) for k in range(0, len(seen), PEOPLE_AT_ONCE)]
    wrong = [rng.random(seen[block].shape) < error_rate for block in blocks]
    for block, changed in zip(blocks, wrong, strict=True):
        step = rng.choice(np.array([-1, 1], np.int8), changed.shape)
        one = seen[block]
        moved = np.where(one == 1, one + step, 1)
        one[changed] = moved[changed]
    for block in blocks:
        one = seen[block]
        one[rng.random(one.shape) < missing] = MISSING
    return seen


def joined(intervals: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """Intervals of one pair where at least one haplotype is shared: overlapping ones as one."""
    out: list[tuple[int, float, float]] = []
    for contig, left, right in sorted(intervals):
        if out and out[-1][0] == contig and left <= out[-1][2]:
            out[-1] = (contig, out[-1][1], max(out[-1][2], right))
        else:
            out.append((contig, left, right))
    return out


def overlap(one: tuple[int, float, float], others: list[tuple[int, float, float]]) -> float:
    """Length of an interval that lies in others, which do not overlap each other."""
    contig, left, right = one
    return sum(max(0.0, min(right, r) - max(left, le)) for c, le, r in others if c == contig)
