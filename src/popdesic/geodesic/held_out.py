"""Which geodesics order people best, judged without the truth: by sites that were held out.

The sites are cut in two halves. Lengths from one half are compared with squared genetic distances
at the other half, and the other way round. The held-out distances are noisy, but their noise knows
nothing of the lengths, so the way that orders pairs best at held-out sites orders them best in
truth, on average. Sites in LD would share their error: a half consists of whole contigs or of long
segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..cohort.encode import planes_in_memory
from ..components.pca import axes_of
from ..components.relationship import CHUNK_SITES, alt_frequency, relationship_among
from ..core.threads import one_blas_thread, run_forked, run_ordered, run_tasks
from ..distance.matrix import distances_of_counts
from ..distance.tiles import pairwise_counts
from ..engine.backend import Backend
from ..engine.ranks import average_ranks
from ..io.genotypes import pack_bed, unpack_bed
from ..io.layers import Reader
from ..io.sites import chunks
from .metrics import Evidence, Way, ways_of

#: Genotypes of these sites, ascending row numbers: a `Reader` of them.
ReadSites = Callable[[np.ndarray], Reader]

#: Divisions in halves; each is used in both directions.
SPLITS = 2
SEED = 1
#: Times that people change places in each half, to see what rank correlation is chance.
SHUFFLES = 49
#: With fewer contigs, these are cut into segments of equal length, about SEGMENTS in all.
FEWEST_CONTIGS, SEGMENTS = 10, 20


@one_blas_thread
def weigh_ways(
    read: ReadSites,
    n: int,
    parts: np.ndarray,
    backend: Backend,
    *,
    components: Sequence[int] = (),
    metric: str | None = None,
    splits: int = SPLITS,
    threads: int = 1,
) -> Evidence:
    """Compare lengths from one half of the sites with genetic distances at the other half.

    Parameters
    ----------
    read : callable
        Genotypes of n people; those who define axes.
    parts : int array, (n_sites,)
        Which sites stay together (`genome_parts`); at least two parts.
    backend : Backend
        Of one thread: `threads` ways are judged side by side.
    components : sequence of int
        Numbers of components to compare; those that there are not count as the most there are.
    metric : str, optional
        If given, these distances of genotypes are compared too.
    splits : int
        Random halves.
    """
    rng = np.random.default_rng(SEED)
    held_out: dict[Way, list[float]] = {}
    agreement: dict[Way, list[float]] = {}
    chance: dict[Way, float] = {}
    # Drawn in this order, whatever is computed side by side.
    drawn = [
        (random_half(parts, rng), np.stack([rng.permutation(n) for _ in range(SHUFFLES)]))
        for _ in range(splits)
    ]
    cells = sum(half.astype(np.int64) << bit for bit, (half, _) in enumerate(drawn))
    numbers = np.unique(cells)
    share = -(-threads // len(numbers))

    def measure(number: int) -> _Cell:
        rows = np.flatnonzero(cells == number)
        return _Cell.of(read(rows), len(rows), n, backend, share, metric or "euclidean")

    def side(bit: int, inside: int) -> tuple[_Half, dict[int | None, np.ndarray]]:
        chosen = (numbers >> bit & 1) == inside
        half = _Half([one for one, own in zip(measured, chosen, strict=True) if own])
        return half, half.spaces(components, metric)

    measured = run_tasks(measure, zip(numbers), threads)
    halves = run_tasks(side, [(bit, i) for bit in range(splits) for i in (1, 0)], threads)
    tasks = []
    for split, (_, orders) in enumerate(drawn):
        (one, one_spaces), (two, two_spaces) = halves[2 * split : 2 * split + 2]
        both = [(one_spaces, two, orders), (two_spaces, one, np.argsort(orders, axis=1))]
        tasks += [(*one_way, backend, -(-threads // (2 * splits))) for one_way in both]
    judges = run_tasks(_judge_of, tasks, threads)
    ways = ways_of(list(halves[0][1]))
    # By copies of the process: closures of so few people are mostly steps of Python.
    every = [(judge, way) for judge in range(len(judges)) for way in ways]
    found = run_forked(lambda judge, way: judges[judge](way), every, threads)
    for split in range(splits):
        shuffled: dict[Way, np.ndarray] = {}
        for side in (2 * split, 2 * split + 1):
            compared = found[side * len(ways) : (side + 1) * len(ways)]
            for way, there, plain, by_chance in compared:
                held_out.setdefault(way, []).append(there)
                agreement.setdefault(way, []).append(plain)
                shuffled[way] = shuffled.get(way, 0.0) + by_chance / 2
        for way, values in shuffled.items():
            chance[way] = max(float(values.max()), chance.get(way, -1.0))
    means = [
        {way: float(np.mean(values)) for way, values in table.items()}
        for table in (held_out, agreement)
    ]
    return Evidence(*means, chance)


@dataclass(frozen=True)
class _Cell:
    """Sums over the sites that lie in the same half of every division; halves add them up.

    Attributes
    ----------
    n_sites : int
    counts : dict of int64 arrays, (n, n)
        Of `tiles.pairwise_counts`.
    het : float64 array, (n,)
        Heterozygous genotypes of each person.
    products : float64 array, (n, n)
        Of standardised genotypes, and `called`, the sites that count for each pair.
    """

    n_sites: int
    counts: dict[str, np.ndarray]
    het: np.ndarray
    products: np.ndarray
    called: np.ndarray

    @classmethod
    def of(
        cls, read: Reader, n_sites: int, n: int, backend: Backend, threads: int, metric: str
    ) -> _Cell:

        def look(bounds: tuple[int, int]) -> tuple[np.ndarray, ...]:
            """Packed genotypes, frequencies, heterozygotes, and who is called where all agree."""
            genotypes = np.ascontiguousarray(read(*bounds))
            own = alt_frequency(genotypes)
            alike = genotypes[~((own > 0) & (own < 1))] >= 0
            return pack_bed(genotypes), own, (genotypes == 1).sum(axis=0), alike

        bed, af, het = [], [], np.zeros(n)
        alike = np.zeros((n, n))  # sites where all are equal: in no product
        for *parts, hets, same in run_ordered(look, chunks(n_sites, CHUNK_SITES), threads):
            bed.append(parts[0])
            af.append(parts[1])
            het += hets
            if len(same):
                called = same.astype(np.float32)
                alike += called.T @ called  # exact below 2**24
        packed = np.concatenate(bed)
        counts = pairwise_counts(
            planes_in_memory(packed, n, threads), None, backend, metric=metric, missing="pairwise"
        )
        relationship = relationship_among(
            lambda first, last: unpack_bed(packed[first:last], n), [n], np.concatenate(af), threads
        )
        called = counts["called"] - alike
        return cls(n_sites, counts, het, relationship * called, called)


class _Half:
    """What half of the sites says of people: the sum of some cells."""

    def __init__(self, cells: Sequence[_Cell]) -> None:
        self.n, self.n_sites = len(cells[0].het), sum(one.n_sites for one in cells)
        self.counts = {name: sum(one.counts[name] for one in cells) for name in cells[0].counts}
        self.squares = unbiased_squares(self.counts, sum(one.het for one in cells), self.n_sites)
        called = sum(one.called for one in cells)
        self.relationship = sum(one.products for one in cells) / np.maximum(called, 1)

    def spaces(self, components: Sequence[int], metric: str | None) -> dict[int | None, np.ndarray]:
        """Plain distances by number of components; None for those of genotypes."""
        from scipy.spatial.distance import pdist, squareform

        found: dict[int | None, np.ndarray] = {}
        if components:
            axes, _ = axes_of(self.relationship, max(components))
            scores = axes.vectors[:, : axes.k] * np.sqrt(axes.values[: axes.k])
            found |= {k: squareform(pdist(scores[:, :k])) for k in components}
        if metric is not None:
            distances = distances_of_counts(
                self.counts, np.arange(self.n), metric=metric, n_sites=self.n_sites, min_called=1
            )
            # Who cannot be compared at these sites is far away.
            farthest = distances[np.isfinite(distances)].max()
            found[None] = np.minimum(distances, farthest)
        return found


def unbiased_squares(counts: dict[str, np.ndarray], het: np.ndarray, n_sites: int) -> np.ndarray:
    """Squared differences of the allele frequencies where two people come from, summed over sites.

    The f₂ statistic (Patterson et al. 2012) of two samples taken as samples of two gene copies:
    (a - b)² less one for each heterozygote. The plain sum of (a - b)² also counts each person's own
    heterozygosity, which differs between the middle and the edge of a landscape.

    Parameters
    ----------
    counts : dict of int64 arrays, (n, n)
        `squared` and `called`, of `tiles.pairwise_counts`.
    het : array, (n,)
        Heterozygous genotypes of each person.
    n_sites : int
        Sums are scaled to these.

    Returns
    -------
    float64 array, (n, n)
        Four times the sum; may be negative; infinite where no site is jointly called. The diagonal
        means nothing.
    """
    called, own = counts["called"], np.diagonal(counts["called"])
    het = het * n_sites / np.maximum(own, 1)
    squares = counts["squared"] * (n_sites / np.maximum(called, 1)) - het[:, None] - het
    return np.where(called > 0, squares, np.inf)


def genome_parts(sites: pd.DataFrame) -> np.ndarray:
    """Which sites stay together in one half: contigs, or segments of few contigs.

    Parameters
    ----------
    sites : DataFrame
        `chrom`, `pos`.

    Returns
    -------
    int64 array, (n_sites,)
        Numbers from 0 without gaps.
    """
    names, contig = np.unique(sites.chrom.to_numpy(str), return_inverse=True)
    if len(names) >= FEWEST_CONTIGS:
        return contig
    pos = sites.pos.to_numpy(np.float64)
    first, last = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    np.minimum.at(first, contig, pos)
    np.maximum.at(last, contig, pos)
    span = last - first + 1
    pieces = np.maximum(1, np.rint(SEGMENTS * span / span.sum()))
    piece = np.floor((pos - first[contig]) / span[contig] * pieces[contig]).astype(np.int64)
    _, found = np.unique(np.stack([contig, piece]), axis=1, return_inverse=True)
    return found.ravel()


def random_half(parts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sites of a random half: bool (n_sites,). Whole parts, with about half of the sites."""
    sizes = np.bincount(parts)
    order = rng.permutation(len(sizes))
    middle = np.cumsum(sizes[order]) - sizes[order] / 2
    return np.isin(parts, order[middle < len(parts) / 2])


def _judge_of(
    spaces: dict[int | None, np.ndarray],
    other: _Half,
    orders: np.ndarray,
    backend: Backend,
    threads: int,
) -> Callable[[Way], tuple[Way, float, float, np.ndarray]]:
    """A function of a way: gives it, and rank correlations of its lengths.

    With the other half, with plain distances, and with the other half's people in other `orders`,
    (k, n), to (k,).
    """
    rows, columns = np.triu_indices(other.n, 1)
    upper = rows * other.n + columns
    squares = other.squares.ravel()[upper]
    known = np.isfinite(squares)
    there = _unit_ranks(squares[known])
    whole = np.zeros((other.n, other.n), np.float32)  # unknown pairs count as average ones
    whole[rows[known], columns[known]] = there
    whole += whole.T
    shuffled = np.empty((len(orders), len(squares)), np.float32)

    def shuffle(row: np.ndarray, order: np.ndarray) -> None:
        row[:] = whole.take(order, axis=0).take(order, axis=1).ravel()[upper]

    run_tasks(shuffle, zip(shuffled, orders, strict=True), threads)
    ranked = run_tasks(lambda one: _unit_ranks(one.ravel()[upper]), zip(spaces.values()), threads)
    plain = dict(zip(spaces, ranked, strict=True))

    def judge(way: Way) -> tuple[Way, float, float, np.ndarray]:
        lengths = way.lengths(spaces[way.pcs], backend).ravel()[upper]
        ranks = plain[way.pcs] if way.is_plain else _unit_ranks(lengths)
        shared = ranks if known.all() else _unit_ranks(lengths[known])
        by_chance = shuffled @ ranks.astype(np.float32)
        return way, float(there @ shared), float(plain[way.pcs] @ ranks), by_chance

    return judge


def _unit_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks with mean 0 and a sum of squares of 1, or all 0 where the values are equal."""
    ranks = average_ranks(values)
    ranks -= ranks.mean() if len(ranks) else 0
    return ranks / (np.sqrt(ranks @ ranks) or 1.0)
