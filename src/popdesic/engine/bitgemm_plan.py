"""What the bit-GEMM kernels are asked to do: the products that an analysis comes down to.

A :class:`Plan` turns the terms of an analysis into the few products that a kernel computes; it
is pure arithmetic and proves itself (`Plan.check`) on every pair of genotypes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .layout import INT32_MAX, Pass, Step
from .terms import PLANE_BITS, Terms


@dataclass(frozen=True)
class Plan:
    """How the outputs of some terms are formed from int32 accumulators.

    ``output[o] = scale[o] * slot[slots[o]] + rows[o] . counts(a) + columns[o] . counts(b)``,
    where counts are the numbers of set bits of u, v and c of a sample, and a slot is one matrix
    of accumulators (``slots[o]`` is -1 where the counts alone give the output).
    """

    terms: Terms
    complete: bool
    letters: tuple[str, ...]
    passes: tuple[Pass, ...]
    slots: tuple[int, ...]
    scale: tuple[int, ...]
    rows: tuple[tuple[int, int, int], ...]
    columns: tuple[tuple[int, int, int], ...]

    @property
    def n_slots(self) -> int:
        return max(self.slots, default=-1) + 1

    @property
    def n_products(self) -> int:
        """Bit-products a site pair costs (in XOR form: POPC instructions)."""
        return sum(
            len(p.steps) if p.xor is None else sum(w != 0 for w in p.xor) for p in self.passes
        )

    def slot_values(self, genotype_a: int, genotype_b: int) -> list[int]:
        """What one site adds to each slot for two genotypes (3 = missing)."""
        bits_a = [PLANE_BITS[letter][genotype_a] for letter in self.letters]
        bits_b = [PLANE_BITS[letter][genotype_b] for letter in self.letters]
        values = [0] * self.n_slots
        for one in self.passes:
            accumulator = 0
            for step in one.steps:
                accumulator *= step.multiplier
                if one.xor is None:
                    accumulator += bits_a[step.plane_a] & bits_b[step.plane_b]
                else:
                    xu, xv = bits_a[0] ^ bits_b[0], bits_a[1] ^ bits_b[1]
                    m = 1 if self.complete else bits_a[2] & bits_b[2]
                    w0, w1, w2 = one.xor
                    accumulator += w0 * m + w1 * ((xu ^ xv) & m) + w2 * (xu & xv & m)
                if step.slot >= 0:
                    values[step.slot] += step.weight * accumulator
        return values

    def genotype_pairs(self) -> itertools.product:
        genotypes = range(3 if self.complete else 4)
        return itertools.product(genotypes, genotypes)

    @property
    def site_limit(self) -> int:
        """Most sites whose sums fit the int32 accumulators, whatever the genotypes."""
        largest = max(
            (abs(v) for pair in self.genotype_pairs() for v in self.slot_values(*pair)), default=0
        )
        return INT32_MAX // max(largest, 1)

    def check(self) -> Plan:
        """Itself, after proving that it equals its terms on every pair of genotypes."""
        for a, b in self.genotype_pairs():
            slots = self.slot_values(a, b)
            for o, name in enumerate(self.terms.outputs):
                value = self.scale[o] * slots[self.slots[o]] if self.slots[o] >= 0 else 0
                for i, letter in enumerate("uvc"):
                    value += self.rows[o][i] * PLANE_BITS[letter][a]
                    value += self.columns[o][i] * PLANE_BITS[letter][b]
                if value != self.terms.value(o, a, b):
                    raise AssertionError(f"the plan for {name} is wrong at genotypes {a}, {b}")
        return self


Products = dict[tuple[str, str], int]
#: Letters of a complete block as integer combinations of 1, u and v.
_IN_ONE_U_V = {
    "c": (1, 0, 0),
    "u": (0, 1, 0),
    "v": (0, 0, 1),
    "z": (1, -1, 0),
    "e": (0, 1, -1),
    "h": (1, -1, 1),
}


def _horner(products: Products) -> list[tuple[int, str, str]]:
    """Products in the order in which Horner's rule takes them: heaviest first."""
    return sorted(((w, *key) for key, w in products.items()), key=lambda p: (-abs(p[0]), p))


def _divides(weights: Sequence[int]) -> bool:
    return all(heavy % light == 0 for heavy, light in itertools.pairwise(weights))


@functools.cache
def _fewest_products(core: tuple[int, int, int, int]) -> tuple[tuple[tuple[str, str], int], ...]:
    """Fewest products of u, v, e that sum to ``core . (uu', uv', vu', vv')``.

    For a.b = (1, 1, 1, 1) it finds 2uu' + 2vv' - ee': three products instead of four.
    """
    letters = "uve"
    keys = [(a, b) for a in letters for b in letters]
    columns = np.array(
        [np.outer(_IN_ONE_U_V[a][1:], _IN_ONE_U_V[b][1:]).ravel() for a, b in keys], float
    )
    target = np.array(core, float)
    for size in range(5):
        found = []
        for chosen in itertools.combinations(range(len(keys)), size):
            basis = columns[list(chosen)].T.reshape(4, size)
            weights = np.rint(np.linalg.lstsq(basis, target, rcond=None)[0])
            if size and not weights.all():
                continue
            if (basis @ weights == target).all():
                found.append({keys[k]: int(w) for k, w in zip(chosen, weights, strict=True)})
        if found:
            found.sort(
                key=lambda p: (
                    not _divides([w for w, *_ in _horner(p)]),
                    sum(map(abs, p.values())),
                    sum(a != b for a, b in p),
                )
            )
            return tuple(found[0].items())
    raise AssertionError("four products always suffice")


def plan_products(terms: Terms, complete: bool) -> Plan:
    """Plan of `terms` as weighted AND products, with as few products as it can find.

    Parameters
    ----------
    terms : Terms
    complete : bool
        Neither block has missing genotypes: every letter is then a combination of 1, u and v,
        so that sums over one sample alone leave the product (``|a|^2 + |b|^2 - 2 a.b``).
    """
    n_outputs = len(terms.outputs)
    rows, columns = np.zeros((n_outputs, 3), int), np.zeros((n_outputs, 3), int)
    cores: list[Products] = [{} for _ in range(n_outputs)]
    if complete:
        full = np.zeros((n_outputs, 3, 3), int)
        for p in terms.products:
            full[p.output] += p.weight * np.outer(_IN_ONE_U_V[p.plane_a], _IN_ONE_U_V[p.plane_b])
        rows[:, :2], columns[:, :2] = full[:, 1:, 0], full[:, 0, 1:]
        rows[:, 2] = full[:, 0, 0]
        for o in range(n_outputs):
            cores[o] = dict(
                zip(itertools.product("uv", "uv"), full[o, 1:, 1:].ravel().tolist(), strict=True)
            )
    else:
        for p in terms.products:
            key = p.plane_a, p.plane_b
            cores[p.output][key] = cores[p.output].get(key, 0) + p.weight

    def reduce(core: Products) -> Products:
        if complete:
            return dict(_fewest_products(tuple(core.values())))
        return {key: w for key, w in core.items() if w}

    reduced = [reduce(core) for core in cores]
    # An output whose products continue those of another goes on from its accumulators.
    follows: dict[int, tuple[int, int, Products]] = {}
    for o, p in itertools.permutations(range(n_outputs), 2):
        if not reduced[p] or p in follows or any(o == f[0] or p == f[0] for f in follows.values()):
            continue
        own = len(follows[o][2]) if o in follows else len(reduced[o])
        before = 0 if o in follows else len(reduced[p])
        for multiple in {cores[o].get(k, 0) // w for k, w in cores[p].items() if w} - {0}:
            keys = dict.fromkeys([*cores[o], *cores[p]])
            rest = reduce({k: cores[o].get(k, 0) - multiple * cores[p].get(k, 0) for k in keys})
            first = {k: w for k, w in cores[p].items() if w} if complete else reduced[p]
            weights = [w for w, *_ in _horner(first)]
            after = [w for w, *_ in _horner(rest)]
            cost = len(first) - before + len(rest)
            if cost < own and _divides(weights) and _divides([multiple * weights[-1], *after]):
                follows[o] = p, multiple, rest
                reduced[p] = first
                own, before = len(rest), len(first)

    letters: list[str] = []
    slots, scale = [-1] * n_outputs, [1] * n_outputs
    passes: list[Step] = []

    def plane(letter: str) -> int:
        if letter not in letters:
            letters.append(letter)
        return letters.index(letter)

    def append(o: int, products: Products, carried: int | None) -> None:
        """Steps of one output; `carried` is the weight of what the accumulators hold."""
        ordered = _horner(products)
        chained = _divides([w for w, *_ in ordered])
        if ordered or carried is not None:
            slots[o] = max(slots) + 1
            scale[o] = (ordered[-1][0] if ordered else carried) if chained else 1
        for i, (weight, a, b) in enumerate(ordered):
            multiplier = carried // weight if carried else 0
            last = i + 1 == len(ordered)
            close = last or (not chained and ordered[i + 1][0] != weight)
            passes.append(
                Step(
                    plane(a),
                    plane(b),
                    multiplier,
                    slots[o] if close else -1,
                    1 if chained else weight,
                )
            )
            carried = None if close and not chained else weight

    for p in range(n_outputs):
        if p in follows:
            continue
        append(p, reduced[p], None)
        for o, (leader, multiple, rest) in follows.items():
            if leader == p and rest:
                append(o, rest, multiple * scale[p])
            elif leader == p:
                slots[o], scale[o] = slots[p], multiple * scale[p]
    return Plan(
        terms,
        complete,
        tuple(letters),
        (Pass(tuple(passes)),) if passes else (),
        tuple(slots),
        tuple(scale),
        tuple(map(tuple, rows.tolist())),
        tuple(map(tuple, columns.tolist())),
    ).check()


def plan_xor(terms: Terms, complete: bool) -> Plan | None:
    """Plan of `terms` in the 2-bit XOR form, or None where they are no function of |a - b|.

    With xu = u ^ u', xv = v ^ v': xu ^ xv is set where |a - b| = 1, xu & xv where it is 2.
    """
    passes, slots, rows = [], [], []
    for o in range(len(terms.outputs)):
        at = [terms.value(o, 0, difference) for difference in range(3)]
        for a, b in itertools.product(range(4), range(4)):
            expected = 0 if 3 in (a, b) else at[abs(a - b)]
            if terms.value(o, a, b) != expected and not (complete and 3 in (a, b)):
                return None
        weights = (0 if complete else at[0], at[1] - at[0], at[2] - at[0])
        rows.append((0, 0, at[0] if complete else 0))
        slots.append(len(passes) if any(weights) else -1)
        if any(weights):
            passes.append(Pass((Step(0, 0, 0, len(passes)),), weights))
    n_outputs = len(terms.outputs)
    return Plan(
        terms,
        complete,
        ("u", "v") if complete else ("u", "v", "c"),
        tuple(passes),
        tuple(slots),
        (1,) * n_outputs,
        tuple(rows),
        ((0, 0, 0),) * n_outputs,
    ).check()
