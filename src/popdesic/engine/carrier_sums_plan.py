"""Which sites a CPU adds by pairs of carriers, and what a pair adds (`carrier_sums_cpu.py`).

Let f(x, y) be what a site adds to an output for the genotypes x and y of two samples, 3 if missing,
and o the homozygote that nearly all samples have there. Then

    f(x, y) = f(o, o) + [f(x, o) - f(o, o)] + [f(o, y) - f(o, o)] + g(x, y)

defines g, which is 0 unless both samples differ from o: both are carriers. So the sum over such
sites is a constant, a margin of each row, one of each column, and g of every two carriers of a
site. This holds for any terms and any missing genotypes, in integers.

FIELDS different g share one int64 of FIELD_BITS bits each, so that a pair of carriers is one
addition. A row is brought to the result before a field can overflow (`CarrierTables.limit`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .terms import Terms

#: Sums of one accumulator, and bits of each.
FIELDS, FIELD_BITS = 3, 21
#: The homozygotes that sites are listed against, by number.
COMMON = (0, 2)
#: Shorter products, in ns of one thread, are not looked at; nor lists that save a smaller share.
LEAST_NS, LEAST_GAIN = 1e8, 0.1
#: Words and samples of each block that tell whether it is worth to look at all sites.
PROBE_WORDS, PROBE_SAMPLES = 16, 256
#: Bytes of the planes of both blocks that are sorted at a time.
RANGE_BYTES = 128 << 20
#: Words of a task that counts or lists: its counters and the ends of its lists stay in the cache.
TASK_WORDS = 64
#: By form (`bitgemm_cpu`), ns of one vector of sites of a pair of samples. Measured with
#: tests/bench/bench_rare.py --products on 512-bit vectors with VPOPCNTDQ.
VECTOR_NS = {1: 1.3, 2: 2.0, 3: 3.5, 4: 3.7, 5: 4.2}
#: The same without a popcount of vectors: carry-save adders (`bitgemm_cpu.LEVELS`).
WITHOUT_POPCOUNT = 2.0
#: ns of one pair of carriers for each accumulator, of one carrier in a list, of one word of a plane
#: that is counted and gathered, and of one number of the result that a range is added to.
PAIR_NS, CARRIER_NS, WORD_NS, RESULT_NS = 1.4, 25.0, 8.0, 2.5


@dataclass(frozen=True)
class CarrierTables:
    """What carriers add to the outputs of some terms.

    Attributes
    ----------
    packed : int64 array, (n_accumulators, 8, 4)
        g(x, y) of all fields of an accumulator, at ``4 * k + x`` for sites listed against
        ``COMMON[k]``.
    upper, lower : int64 arrays, (n_outputs,)
        The field of each output and of its transpose, -1 where g is 0; field k is the one number
        ``k % FIELDS`` of accumulator ``k // FIELDS``. `lower` is -1 for products of two blocks.
    rows, columns : int64 arrays, (n_outputs, 8)
        What such a genotype of a row's, of a column's sample adds.
    constant : int64 array, (n_outputs, 2)
        What a site listed against each of COMMON adds.
    limit : int
        Most carriers of one sample until its row must be brought to the result.
    """

    packed: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    constant: np.ndarray
    limit: int


@functools.cache
def carrier_tables(terms: Terms, same: bool, complete: bool) -> CarrierTables:
    """The tables of one block with itself (`same`) or of two, `complete` if both are."""
    n_outputs, genotypes = len(terms.outputs), range(3 if complete else 4)
    f = np.zeros((n_outputs, 4, 4), np.int64)
    for x in genotypes:
        for y in genotypes:
            f[:, x, y] = [terms.value(o, x, y) for o in range(n_outputs)]
    g, rows, columns, constant = [], [], [], []
    for o in COMMON:
        constant.append(f[:, o, o])
        rows.append(f[:, :, o] - f[:, o, o, None])
        columns.append(f[:, o, :] - f[:, o, o, None])
        own = f - constant[-1][:, None, None] - rows[-1][:, :, None] - columns[-1][:, None, :]
        if complete:  # no table depends on what cannot occur
            own[:, 3], own[:, :, 3] = 0, 0
        g.append(own)
    tables = np.stack(g, axis=1)  # (n_outputs, 2, 4, 4)
    turned = tables.swapaxes(2, 3)
    fields: dict[bytes, int] = {}
    kept: list[np.ndarray] = []

    def number(table: np.ndarray) -> int:
        if not table.any():
            return -1
        key = table.tobytes()
        if key not in fields:
            fields[key] = len(kept)
            kept.append(table)
        return fields[key]

    upper = np.array([number(table) for table in tables], np.int64)
    lower = np.array([number(table) if same else -1 for table in turned], np.int64)
    packed = np.zeros((-(-len(kept) // FIELDS), 8, 4), np.int64)
    for k, table in enumerate(kept):
        packed[k // FIELDS] += table.reshape(8, 4) << (FIELD_BITS * (k % FIELDS))
    largest = max((int(np.abs(table).max()) for table in kept), default=1)
    return CarrierTables(
        packed,
        upper,
        lower,
        np.concatenate(rows, axis=1),
        np.concatenate(columns, axis=1),
        np.stack(constant, axis=1),
        (2 ** (FIELD_BITS - 1) - 1) // largest,
    )


def dense_ns(forms: tuple[int, ...], lanes: int, popcount: bool) -> float:
    """ns of one site of a pair of samples in the products of some forms on this CPU."""
    vectors = sum(VECTOR_NS[form] for form in forms) / (64 * lanes)
    return vectors if popcount else vectors * WITHOUT_POPCOUNT


def long_enough(m: int, n: int, same: bool, dense: float, n_sites: int) -> bool:
    """Whether dense products (see `CarrierCosts`) take long enough to look at the sites."""
    return dense * m * n * (0.5 if same else 1.0) * n_sites >= LEAST_NS


@dataclass(frozen=True)
class CarrierCosts:
    """The cost model: ns of one thread for products of two blocks.

    Parameters
    ----------
    m, n : int
        Samples of both blocks.
    same : bool
        They are one block, of which one triangle is computed.
    dense : float
        `dense_ns`.
    planes : (int, int)
        Of each block.
    n_accumulators, n_outputs : int
    """

    m: int
    n: int
    same: bool
    dense: float
    planes: tuple[int, int]
    n_accumulators: int
    n_outputs: int

    @property
    def pairs(self) -> float:
        return self.m * self.n * (0.5 if self.same else 1.0)

    @property
    def stored(self) -> int:
        """Words of all samples and planes at 64 sites."""
        m, n = self.m * self.planes[0], self.n * self.planes[1]
        return m if self.same else m + n

    @property
    def range_words(self) -> int:
        """Words that are sorted at a time."""
        return max(TASK_WORDS, RANGE_BYTES // (8 * self.stored))

    def choose(self, others_a: np.ndarray, others_b: np.ndarray) -> tuple[np.ndarray, float]:
        """How each site is added.

        Parameters
        ----------
        others_a, others_b : arrays, (2, n_sites)
            Samples of each block that differ from each of COMMON.

        Returns
        -------
        uint8 array, (n_sites,)
            0: in the dense products; k + 1: listed against ``COMMON[k]``.
        float
            ns that this saves.
        """
        a, b = others_a.astype(np.float64), others_b.astype(np.float64)
        pairs = a * b * (0.5 if self.same else 1.0)
        carriers = a if self.same else a + b
        listed = PAIR_NS * max(self.n_accumulators, 1) * pairs + CARRIER_NS * carriers
        common = listed.argmin(axis=0)
        saved = self.dense * self.pairs - listed.min(axis=0)
        way = np.where(saved > 0, common + 1, 0).astype(np.uint8)
        return way, float(np.maximum(saved, 0).sum())

    def gains(self, saved: float, n_sites: int) -> bool:
        """Whether lists that save so much are worth sorting all sites."""
        n_words = -(-n_sites // 64)
        sorting = WORD_NS * self.stored * n_words
        ranges = -(-n_words // self.range_words)
        sorting += RESULT_NS * self.m * self.n * self.n_outputs * ranges
        return saved - sorting > LEAST_GAIN * self.dense * self.pairs * n_sites


def probed(n_sites: int, n_samples: int) -> tuple[slice, slice]:
    """Words and samples that the probe looks at, spread evenly; whole words of sites alone."""
    n_words = n_sites // 64
    return (
        slice(0, n_words, max(1, n_words // PROBE_WORDS)),
        slice(0, n_samples, max(1, n_samples // PROBE_SAMPLES)),
    )
