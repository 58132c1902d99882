"""Rare sites on a GPU: sites with few carriers are added carrier by carrier, exactly.

The planes of a range are transposed to site-major order and counted. Each site is then processed in
the way that is cheapest by a model whose costs are measured on the device (`site_costs`):

- pairs: every two carriers of the site are added to the accumulators (missing genotypes count as
  a third kind of carrier, so this holds for any terms);
- half: without missing genotypes ``a.b = e.e' + 2 (v.u' + u.v')``: one product on the tensor cores,
  and for each homozygote the carriers of its site, as vectors of bits (symmetric terms alone);
- dense: the products of the plan, over the gathered planes of these sites.

The integers are those of the dense products (kernels/engine/rare_sites.cu has the formulas).
"""

from __future__ import annotations

import functools
import logging
from dataclasses import asdict, dataclass, field, replace

import cupy
import numpy as np

from . import tune_gpu
from .bitgemm_gpu import Launch, launch, pack_range
from .devices import Device
from .layout import STAGE_BITS, TURN_LINES, TURN_SIDE
from .rare_sites_kernels_gpu import (
    FEW_PAIRS,
    SiteMajor,
    add_carriers,
    add_pairs,
    gather,
    list_carriers,
    rare_sites_function,
    to_site_major,
)
from .rare_sites_plan import (
    CARRIED_SHARE,
    LEAST_WORDS,
    PROBE_WORDS,
    STATE_SHIFT,
    CostModel,
    SideCounts,
    SiteCosts,
    SiteTable,
    half_plan,
    site_limit,
)
from .stream_gpu import BitgemmStream
from .terms import Terms
from .tune_plan import read_cache, write_cache
from .variants import ShapeClass, Variant

log = logging.getLogger(__name__)


def site_costs(device: Device, variant: Variant, terms: Terms, shape: ShapeClass) -> SiteCosts:
    """The costs of a shape class on a device: from the user's cache, else measured now and kept."""
    shape = shape.measured
    key, name = tune_gpu.device_key(device), f"sites {variant.label} {shape}"
    known = read_cache().get(key, {}).get(name)
    if known:
        return SiteCosts(**known)
    m, n, capability = shape.samples_a, shape.samples_b, device.capability
    half = 0.5 if shape.symmetric else 1
    (seconds, _), *_ = tune_gpu.measure_variants(device, [variant], terms, shape)
    n_sites, carriers = 65536, min(64, m, n)
    acc = cupy.zeros((1, m, n), np.int32)
    lists = []
    for samples in (m, n):
        spread = samples // carriers
        entries = cupy.random.randint(0, spread, (n_sites, carriers), np.uint32)
        entries += cupy.arange(carriers, dtype=np.uint32) * np.uint32(spread)
        entries |= np.uint32(1 << STATE_SHIFT)
        offsets = cupy.arange(n_sites, dtype=np.int64) * carriers
        lists.append((entries, offsets, cupy.full(n_sites, carriers, np.int32)))
    a, b = lists[0], lists[0] if shape.symmetric else lists[1]
    table = cupy.ones((1, 3, 3), np.int32)
    pair = tune_gpu.time_action(
        lambda: add_pairs(a, b, acc, table, shape.symmetric, True, capability)
    )
    pair /= n_sites * carriers**2 * half
    words = cupy.random.randint(0, 2**32, (m, 2, 2 * 512), np.uint32).view(np.uint64)
    n_sites = 64 * words.shape[2]
    sites = cupy.arange(n_sites, dtype=np.int32)
    turned = to_site_major(words, 0, n_sites, capability)
    move = (
        tune_gpu.time_action(
            lambda: gather(to_site_major(words, 0, n_sites, capability), sites, capability)
        )
        / words.size
    )
    timed, sums = [], cupy.zeros((m, m), np.int32)
    for shift in (1, 2):  # a few of the genotypes homozygous, then fewer
        words &= cupy.roll(words, shift, 2)
        words &= cupy.roll(words, 3, 2)
        rows = int(cupy.unpackbits(words[:, 1].ravel().view(np.uint8)).sum(dtype=np.int64))
        action = functools.partial(add_carriers, words, sites, turned, sums, capability)
        timed.append((tune_gpu.time_action(action), rows * turned.row_words))
    (longer, most), (shorter, fewer) = timed
    row = max(longer - shorter, 0) / (most - fewer)
    rest = max(shorter - row * fewer, 0) / (m * m)
    costs = SiteCosts(seconds / STAGE_BITS / (m * n * half), pair, row, rest, move)
    log.info("%s, %s: measured %s", device.name, name, costs)
    write_cache(key, name, asdict(costs))
    return costs


@dataclass
class RareSites:
    """Sorts the sites of the ranges of one stream by their way, and adds those that are rare.

    Everything runs asynchronously on the current stream, except that the host waits for the number
    of sites of each way.
    """

    stream: BitgemmStream
    costs: SiteCosts
    forced: bool = False
    table: SiteTable = field(init=False)
    model: CostModel = field(init=False)
    n_listed: int = 0
    gains: bool | None = None
    used: dict[str, int] = field(default_factory=lambda: {"pairs": 0, "half": 0, "dense": 0})

    def __post_init__(self) -> None:
        s = self.stream
        self.table = SiteTable.of(s.plan)
        self._pairs = cupy.asarray(self.table.pairs)
        self.listed = [cupy.zeros((side.n_samples, 3), np.uint32) for side in s._sides]
        self._carried: list[cupy.ndarray] = []
        self._capability = s.backend.device.capability
        if self.table.half and self.reserved > CARRIED_SHARE * s.backend.free_bytes():
            self.table = replace(self.table, half=None)
        half = self.table.half
        self.model = CostModel(self.costs, half is not None, s.plan.n_products, s.symmetric)
        if half is not None:
            self._half_plan = half_plan(s.plan, half[0])

    def _weigh(self, turned: list[SiteMajor]) -> tuple[cupy.ndarray, cupy.ndarray, cupy.ndarray]:
        """Seconds of each site by pairs, half and dense."""
        sides = []
        for side, one in zip(turned, self.stream._sides, strict=True):
            counts = side.counts.astype(np.float32)
            missing = side.n_samples - counts[2] if len(counts) > 2 else 0
            sides.append(SideCounts(counts[0] + missing, counts[1], side.row_words, one.padded))
        return self.model.weigh(sides[0], sides[-1], cupy)

    @property
    def reserved(self) -> int:
        """Bytes of device memory that the carriers of homozygotes will still take."""
        if not self.table.half or self._carried:
            return 0
        return 4 * self.stream._acc[0].size * (1 if self.stream.symmetric else 2)

    def _bringing(self) -> float:
        """Seconds that the carriers of homozygotes cost, however few they are."""
        return self.model.bringing(self.stream._a.padded, self.stream._b.padded)

    def worth(self, sources: list, n_words: int) -> bool:
        """Whether the ranges gain, judged by the words in the middle of the first long one."""
        if self.forced or n_words < LEAST_WORDS:
            return self.forced
        if self.gains is None:
            self.gains = self._judge(sources, n_words)
        return self.gains

    def _judge(self, sources: list, n_words: int) -> bool:
        start = (n_words - PROBE_WORDS) // 2
        turned = [
            to_site_major(words, first + start, PROBE_WORDS * 64, self._capability)
            for words, first in sources
        ]
        moved = sum(words.shape[0] * words.shape[1] for words, _ in sources) * PROBE_WORDS
        return self.model.gains(
            self._weigh(turned), self._bringing(), PROBE_WORDS / n_words, moved, cupy
        )

    def turn(self, sources: list, n_sites: int) -> list[SiteMajor]:
        """The planes of a range of every side, by site."""
        return [to_site_major(words, first, n_sites, self._capability) for words, first in sources]

    def add(self, turned: list[SiteMajor]) -> None:
        """Add the products of one range, already turned, each site by the way of least cost."""
        seconds = self._weigh(turned)
        way = self.model.ways(seconds, self._bringing(), forced=self.forced, xp=cupy)
        lists = {}
        for number, name in enumerate(self.used):
            lists[name] = cupy.flatnonzero(way == number).astype(np.int32)
            self.used[name] += len(lists[name])
        few = turned[0].counts[0] * turned[-1].counts[0] < 2 * FEW_PAIRS
        for banded, chosen in ((False, few), (True, ~few)):
            sites = lists["pairs"][chosen[lists["pairs"]]]
            if len(sites):
                self._add_pairs(turned, sites, banded)
        if len(lists["half"]):
            self._add_half(turned, lists["half"])
        if len(lists["dense"]):
            self._multiply(
                [gather(t, lists["dense"], self._capability) for t in turned], lists["dense"]
            )

    def _multiply(self, words: list[cupy.ndarray], sites: cupy.ndarray, plan=None) -> None:
        """Dense products over gathered planes."""
        s = self.stream
        plan = plan or s.plan
        n_stages = 0
        for side, gathered in zip(s._sides, words, strict=True):
            n_stages = pack_range(
                gathered,
                0,
                gathered.shape[2],
                len(sites),
                plan.letters,
                side.packed,
                side.counts,
                self._capability,
            )
        work = Launch(s._a.packed, s._b.packed, s._acc, s._blocks, n_stages, s.symmetric)
        launch(s.variant, s.backend.device, plan, work)

    def _add_half(self, turned: list[SiteMajor], sites: cupy.ndarray) -> None:
        s = self.stream
        gathered = [gather(t, sites, self._capability) for t in turned]
        self._multiply(gathered, sites, self._half_plan)
        if not self._carried:
            a, b = s._a.padded, s._b.padded
            shapes = [(a, b)] if s.symmetric else [(a, b), (b, a)]
            self._carried = [cupy.zeros(shape, np.int32) for shape in shapes]
        others = turned if s.symmetric else turned[::-1]
        for mine, other, target in zip(gathered, others, self._carried, strict=True):
            add_carriers(mine, sites, other, target, self._capability)

    def _add_pairs(self, turned: list[SiteMajor], sites: cupy.ndarray, banded: bool) -> None:
        s = self.stream
        lists = [
            list_carriers(side, sites, counts, self._capability)
            for side, counts in zip(turned, self.listed, strict=True)
        ]
        self.n_listed += len(sites)
        add_pairs(lists[0], lists[-1], s._acc, self._pairs, s.symmetric, banded, self._capability)

    @property
    def site_limit(self) -> int:
        """Most sites whose sums fit the int32 accumulators."""
        return site_limit(self.stream.plan, self.table)

    def settle(self) -> None:
        """Bring what homozygotes added to the accumulators."""
        s = self.stream
        if not self._carried:
            return
        rows, columns = s._a.padded, s._b.padded
        rare_sites_function("add_mirrored", self._capability)(
            (columns // TURN_SIDE, rows // TURN_SIDE),
            (TURN_SIDE * TURN_LINES,),
            (
                s._acc,
                self._carried[0],
                self._carried[-1],
                np.int64(rows),
                np.int64(columns),
                np.int32(self.table.half[1]),
                np.int32(s.symmetric),
            ),
        )
        for carried in self._carried:
            carried.fill(0)

    def clear(self) -> None:
        """Forget what was listed; what homozygotes carried was settled before."""
        self.n_listed = 0
        for listed in self.listed:
            listed.fill(0)
        for carried in self._carried:
            carried.fill(0)

    def margins(self, output: int) -> tuple[cupy.ndarray, cupy.ndarray]:
        """What the listed sites add to each row and each column of an output (int64)."""
        plan = self.stream.plan
        slot, scale = plan.slots[output], plan.scale[output]
        terms = []
        for side, slots, stored in (
            (self.listed[0], self.table.rows, plan.rows[output]),
            (self.listed[-1], self.table.columns, plan.columns[output]),
        ):
            n1, n2, n3 = side.astype(np.int64).T
            u, v, c = stored
            term = u * (n1 + n2) + v * n2 + c * (self.n_listed - n3)
            if slot >= 0:
                w1, w2, w3 = (scale * int(w) for w in slots[slot])
                term = term + w1 * n1 + w2 * n2 + w3 * n3
            terms.append(term)
        if slot >= 0:
            terms[0] = terms[0] + scale * int(self.table.constant[slot]) * self.n_listed
        return terms[0], terms[1]
