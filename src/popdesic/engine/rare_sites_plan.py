"""Which way each site of a range is processed, by a model of costs; see `rare_sites_gpu.py`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bitgemm_plan import Plan
from .layout import INT32_MAX, PACKED, STAGE_BITS, TURN_LINES, TURN_SIDE, KernelSource, Pass, Step
from .variants import ShapeClass

#: Square of bits that a thread block of `transpose_bits` turns.
SQUARE_SIDE = 512
#: Where the genotype of an entry of a list of carriers stands, and how many genotypes there are: 1,
#: 2 and missing.
STATE_SHIFT, CARRIED_GENOTYPES = 30, 3
#: Threads of a thread block of which each warp takes one site.
SITE_THREADS = 256
#: Threads of one thread block of `add_carriers`, and words of each: one 16-byte load.
ADDERS, ADDER_WORDS = 128, 4
RARE_SITES = KernelSource.of(
    "engine/rare_sites",
    **PACKED,
    TURN_SIDE=TURN_SIDE,
    TURN_LINES=TURN_LINES,
    SQUARE_SIDE=SQUARE_SIDE,
    STATE_SHIFT=STATE_SHIFT,
    CARRIED_GENOTYPES=CARRIED_GENOTYPES,
    SITE_THREADS=SITE_THREADS,
    ADDERS=ADDERS,
    ADDER_WORDS=ADDER_WORDS,
)
#: Most of the free device memory that the carriers of homozygotes may take.
CARRIED_SHARE = 0.25
#: Words in the middle of a range that tell whether it is worth sorting its sites.
PROBE_WORDS = 256
#: Shorter ranges, smaller results and smaller gains than this are left to the dense products.
LEAST_WORDS, LEAST_PAIRS, LEAST_GAIN = 2048, 1 << 22, 0.9
#: The ways, by number.
PAIRS, HALF, DENSE = 0, 1, 2


@dataclass(frozen=True)
class SiteCosts:
    """Seconds that one site costs on a device, by the way it is processed.

    Attributes
    ----------
    dense : one site in the dense products, per pair of (padded) samples of the result
    pair : two carriers added to the accumulators
    row : one homozygote's carriers, per 32 samples
    rows : adding the carriers of all homozygotes to the result, per pair of (padded) samples
    move : transposing one word (64 sites) of one plane of one sample, and gathering it again
    """

    dense: float
    pair: float
    row: float
    rows: float
    move: float


@dataclass(frozen=True)
class SiteTable:
    """A plan's slots as sums over carriers and margins (see `kernels/engine/rare_sites.cu`).

    Attributes
    ----------
    pairs : int32 array, (n_slots, 3, 3)
        g(x, y) for the genotypes 1, 2, 3 of a carrier of each side.
    rows, columns : int64 arrays, (n_slots, 3)
        What one such genotype of one side adds to all entries of its row or column.
    constant : int64 array, (n_slots,)
        What every site adds to every entry.
    half : (int, int), optional
        Weights of e.e' and of v.u' + u.v' where that form holds.
    """

    pairs: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    constant: np.ndarray
    half: tuple[int, int] | None

    @classmethod
    def of(cls, plan: Plan) -> SiteTable:
        n = 3 if plan.complete else 4
        f = np.zeros((plan.n_slots, 4, 4), np.int64)
        for x, y in itertools.product(range(n), range(n)):
            f[:, x, y] = plan.slot_values(x, y)
        zero = f[:, :1, :1]
        rows, columns = f[:, :, :1] - zero, f[:, :1, :] - zero
        g = f - zero - rows - columns
        g[:, n:], g[:, :, n:], rows[:, n:], columns[:, :, n:] = 0, 0, 0, 0
        half = None
        if plan.complete and plan.n_slots == 1 and not f[:, 0].any() and not f[:, :, 0].any():
            one, het_hom, hom_het, hom = map(int, g[0, 1:3, 1:3].ravel())
            if het_hom == hom_het and hom == 2 * het_hom and one:
                half = one, het_hom
        return cls(
            g[:, 1:, 1:].astype(np.int32),
            rows[:, 1:, 0],
            columns[:, 0, 1:],
            zero[:, 0, 0],
            half,
        )


@dataclass(frozen=True)
class SideCounts:
    """Carriers and homozygotes of each site on one side, float32 arrays (NumPy's or CuPy's)."""

    carriers: Any
    homozygotes: Any
    row_words: int
    padded: int


@dataclass(frozen=True)
class CostModel:
    """Seconds of each site by each way, for products of two blocks of samples.

    Parameters
    ----------
    costs : SiteCosts
    half : bool
        Whether the way `half` exists.
    n_products : int
        Of the dense plan.
    symmetric : bool
        One block against itself.
    """

    costs: SiteCosts
    half: bool
    n_products: int
    symmetric: bool

    def weigh(self, a: SideCounts, b: SideCounts, xp=np) -> tuple[Any, Any, Any]:
        """Seconds of each site by pairs, half and dense. `xp`: the module of the arrays."""
        triangle = 0.5 if self.symmetric else 1
        dense = xp.full(len(a.carriers), self.costs.dense * a.padded * b.padded * triangle, "f4")
        pairs = a.carriers * b.carriers * triangle
        pairs = self.costs.pair * (pairs + a.carriers + b.carriers)
        if not self.half:
            return pairs, xp.full_like(dense, np.inf), dense
        rows = a.homozygotes * b.row_words
        rows = rows + (0 if self.symmetric else b.homozygotes * a.row_words)
        return pairs, dense / self.n_products + self.costs.row * rows, dense

    def bringing(self, a_padded: int, b_padded: int) -> float:
        """Seconds that the carriers of homozygotes cost, however few they are."""
        return self.costs.rows * a_padded * b_padded * (1 if self.symmetric else 2)

    def ways(self, seconds: tuple[Any, Any, Any], bringing: float, *, forced: bool, xp=np) -> Any:
        """The way of each site: the cheapest, `half` only if all that go it gain `bringing`.

        `forced`: that is not looked at.
        """
        pairs, half, dense = seconds
        way = xp.where(pairs <= xp.minimum(half, dense), PAIRS, xp.where(half < dense, HALF, DENSE))
        if not forced and self.half:
            saved = xp.where(way == HALF, xp.minimum(pairs, dense) - half, 0).sum()
            if float(saved) < bringing:
                way = xp.where(pairs <= dense, PAIRS, DENSE)
        return way

    def gains(
        self, seconds: tuple[Any, Any, Any], bringing: float, share: float, moved: int, xp=np
    ) -> bool:
        """Whether sorting the sites pays, judged by some of them.

        Parameters
        ----------
        seconds : from `weigh`, of the sites looked at.
        bringing : float
            Of the whole range.
        share : float
            Of the range that was looked at.
        moved : int
            Words of planes that were turned for it.
        """
        pairs, half, dense = seconds
        without = float(xp.minimum(pairs, dense).sum())
        best = float(xp.minimum(xp.minimum(pairs, half), dense).sum())
        best = min(without, best + bringing * share)
        return best + moved * self.costs.move < LEAST_GAIN * float(dense.sum())


def pays(shape: ShapeClass) -> bool:
    """Whether problems of a class are large enough to look at the frequency of sites."""
    return (
        shape.stages * STAGE_BITS >= LEAST_WORDS * 64
        and shape.samples_a * shape.samples_b >= LEAST_PAIRS
    )


def half_plan(plan: Plan, weight: int) -> Plan:
    """The one product e.e' of the way `half`, with the weight of a carrier of each side."""
    step = Step(0, 0, 0, 0, weight)
    none = ((0, 0, 0),)
    return Plan(plan.terms, True, ("e",), (Pass((step,)),), (0,), (1,), none, none)


def site_limit(plan: Plan, table: SiteTable) -> int:
    """Most sites whose sums fit the int32 accumulators, whatever way they go."""
    largest = int(np.abs(table.pairs).max(initial=0))
    return min(plan.site_limit, INT32_MAX // max(largest, 1))
