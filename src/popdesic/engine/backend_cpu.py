"""The numba CPU backend: arranges tiles for the micro-kernels and keeps the arithmetic exact."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
from llvmlite import binding

from ..core.threads import run_tasks, usable_cpus
from . import bitgemm_cpu, minplus_cpu
from .carrier_sums_plan import CarrierCosts, carrier_tables, dense_ns, long_enough, probed
from .genotype_products import Calls, GenotypeProducts
from .genotype_products_cpu import CpuProducts
from .terms import PLANE_BITS, Planes, Terms, aligned_zeros


class CpuBackend:
    """Backend on `threads` CPU threads (see `engine.backend.Backend` for the contracts)."""

    name = "cpu"

    def __init__(self, threads: int = 1):
        self.threads = max(1, min(threads, usable_cpus()))

    def describe(self) -> str:
        return (
            f"cpu: {binding.get_host_cpu_name()}, {self.threads} of {usable_cpus()} threads, "
            f"{bitgemm_cpu.LANES * 64}-bit vectors, {bitgemm_cpu.LEVELS} carry-save levels"
        )

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        same = b is None
        b = a if same else b
        if a.n_sites != b.n_sites:
            raise ValueError(f"planes over {a.n_sites} and {b.n_sites} sites cannot be multiplied")
        out = np.zeros((len(terms.outputs), a.n_samples, b.n_samples), np.int64)
        coefficients = margin_coefficients(terms)
        doubled = coefficients is not None
        for rest in self._without_rare(a, b, same, terms, out, 2 if doubled else 1):
            self._add_dense(*rest, terms, same, out)
        if doubled:
            # exact: the coefficients are doubled so that they are whole numbers
            out >>= 1
        return out

    def _without_rare(
        self, a: Planes, b: Planes, same: bool, terms: Terms, out: np.ndarray, scale: int
    ) -> Iterable[tuple[Planes, Planes]]:
        """The planes for the dense products. Rare sites are added to `out` where that pays."""
        complete = a.complete and b.complete
        forms = _forms(margin_coefficients(terms), complete, len(terms.products))
        dense = dense_ns(forms, bitgemm_cpu.LANES, not bitgemm_cpu.LEVELS)
        work = a.n_samples, b.n_samples, same, dense
        if not long_enough(*work, a.n_sites):
            return [(a, b)]
        tables = carrier_tables(terms, same, complete)
        planes = a.words.shape[1], b.words.shape[1]
        costs = CarrierCosts(*work, planes, len(tables.packed), len(terms.outputs))
        if not tables.limit or not _worth(a, b, same, costs):
            return [(a, b)]
        from .carrier_sums_cpu import split_sites  # numba loads its loops where they are used

        return split_sites(a, None if same else b, tables, costs, out, scale, self.threads)

    def _add_dense(self, a: Planes, b: Planes, terms: Terms, same: bool, out: np.ndarray) -> None:
        """Add all sites; twice if the terms have `margin_coefficients`."""
        coefficients = margin_coefficients(terms)
        if coefficients is None:
            for product in terms.products:
                # A single product need not be symmetric, so no half of it may be mirrored.
                self._accumulate(
                    _letter(a, product.plane_a),
                    _letter(b, product.plane_b),
                    np.array([[product.weight]]),
                    False,
                    out[product.output : product.output + 1],
                )
        elif a.complete and b.complete:
            self._accumulate(a.words, b.words, coefficients[:, :2], same, out)
            out += coefficients[:, 2, None, None] * a.n_sites
            if coefficients[:, 3:].any():
                rows, columns = _margins(a), _margins(b)
                out += (coefficients[:, 3:5] @ rows)[:, :, None]
                out += (coefficients[:, 5:7] @ columns)[:, None, :]
        else:
            # Seven counts at once would not fit the registers: passes of 3 and 4 take half as long.
            for part in _masked_forms(coefficients):
                self._accumulate(_with_called(a), _with_called(b), part, same, out)

    def _accumulate(self, a, b, coefficients, same: bool, out: np.ndarray) -> None:
        """Share the tiles of one pass in the form with as many counts as `coefficients` has."""
        a, b = _vector_ready(a), _vector_ready(b)
        form = coefficients.shape[1]
        planes = tuple(range(min(form, 3))) + (0,) * max(0, form - 3)
        coefficients = np.ascontiguousarray(coefficients)
        mirrored = np.ascontiguousarray(coefficients[:, _MIRROR[form]])
        kernel = bitgemm_cpu.tile_kernel(form)

        def work(row: int, column: int) -> None:
            kernel(a, b, planes, coefficients, mirrored, same, out, row, column)

        tiles = _tile_pairs(len(a), len(b), bitgemm_cpu.TILE, same)
        run_tasks(work, tiles, self.threads)

    def keep_planes(self, planes: Planes) -> Planes:
        return planes

    def minplus(self) -> minplus_cpu.CpuMinPlus:
        return minplus_cpu.CpuMinPlus(self.threads)

    def genotype_products(self, calls: Calls) -> GenotypeProducts:
        return CpuProducts(calls, self.threads)


#: By form, where each count of (a, b) stands among those of (b, a).
_MIRROR = {
    1: [0],
    2: [0, 1],
    3: [0, 1, 2],
    4: [2, 3, 0, 1],
    5: [0, 1, 2, 4, 3],
}


@functools.cache
def margin_coefficients(terms: Terms) -> np.ndarray | None:
    """Twice `terms` as a sum over the counts of forms 3 and 4, or None if they are none.

    Returns
    -------
    int64 array, (n_outputs, 7)
        Coefficients of |a-b| = 1, |a-b| = 2, jointly called, a >= 1, a = 2, b >= 1, b = 2, found
        from the value of each output at every two genotypes: any way of writing a distance, a
        kinship or a correlation with AND products comes down to these counts. Doubled, because
        a * b = (a^2 + b^2 - (a - b)^2) / 2. Entries 3 to 6 are zero for functions of |a-b|.
    """
    pairs = [(x, y) for x in range(3) for y in range(3)]
    basis = np.array(
        [(abs(x - y) == 1, abs(x - y) == 2, 1, x >= 1, x == 2, y >= 1, y == 2) for x, y in pairs],
        np.float64,
    )
    found = np.zeros((len(terms.outputs), 7), np.int64)
    for output in range(len(terms.outputs)):
        doubled = np.array([2 * terms.value(output, x, y) for x, y in pairs], np.float64)
        # Without margins where possible: they cost counts.
        for width in (3, 7):
            solution = np.rint(np.linalg.lstsq(basis[:, :width], doubled, rcond=None)[0])
            if (basis[:, :width] @ solution == doubled).all():
                found[output, :width] = solution
                break
        else:
            return None
    return found


def _forms(coefficients: np.ndarray | None, complete: bool, n_products: int) -> tuple[int, ...]:
    """The passes of `CpuBackend._add_dense`, each by its number of counts."""
    if coefficients is None:
        return (1,) * n_products
    return (2,) if complete else tuple(part.shape[1] for part in _masked_forms(coefficients))


def _worth(a: Planes, b: Planes, same: bool, costs: CarrierCosts) -> bool:
    """Whether rare sites are worth sorting, judged by a few words of a few samples."""
    others, share = [], 1.0
    for side in [a] if same else [a, b]:
        words, rows = probed(a.n_sites, side.n_samples)
        few = side.words[rows, :, words]
        u, v = few[:, 0], few[:, 1]
        c = ~np.uint64(0) if side.complete else few[:, 2]
        bits = np.ascontiguousarray(np.stack([~(c & ~u), ~(c & v)])).view(np.uint8)
        ones = np.unpackbits(bits, axis=2, bitorder="little").sum(axis=1, dtype=np.int32)
        others.append(ones * (side.n_samples / len(few)))
        share = ones.shape[1] / a.n_sites
    _, saved = costs.choose(others[0], others[-1])
    return costs.gains(saved / share if share else 0.0, a.n_sites)


def _masked_forms(coefficients: np.ndarray) -> list[np.ndarray]:
    """The coefficients by the forms of counts that hold them with least work."""
    if not coefficients[:, 3:].any():
        return [coefficients[:, :3]]
    if (coefficients[:, 3:6:2] == -coefficients[:, 4:7:2]).all():  # u - v: heterozygous
        return [coefficients[:, [0, 1, 2, 3, 5]]]
    return [coefficients[:, :3], coefficients[:, 3:]]


def _margins(planes: Planes) -> np.ndarray:
    """Carriers and ALT homozygotes of each sample of complete planes: int64 (2, n_samples)."""
    return np.bitwise_count(planes.words).sum(axis=2, dtype=np.int64).T


def _tile_pairs(m: int, n: int, tile: int, same: bool) -> list[tuple[int, int]]:
    """Indices of the tiles to compute, the upper triangle when `same`."""
    return [(i, j) for i in range(-(-m // tile)) for j in range(i if same else 0, -(-n // tile))]


def _called_words(planes: Planes) -> np.ndarray:
    """The called plane of complete planes: ones up to `n_sites`. uint64 (n_words,)."""
    words = np.zeros(planes.words.shape[2], np.uint64)
    full, rest = divmod(planes.n_sites, 64)
    words[:full] = ~np.uint64(0)
    if rest:
        words[full] = np.uint64(2**rest - 1)
    return words


def _with_called(planes: Planes) -> np.ndarray:
    """Words with planes u, v and c, the last one made where it is not stored."""
    if not planes.complete:
        return planes.words
    called = np.broadcast_to(_called_words(planes), planes.words[:, :1].shape)
    return np.concatenate([planes.words, called], axis=1)


def _letter(planes: Planes, letter: str) -> np.ndarray:
    """The plane of one letter, over called genotypes only: uint64 (n_samples, 1, n_words)."""
    u, v, c = np.moveaxis(_with_called(planes), 1, 0)
    words = np.zeros_like(u)
    for state, plane in enumerate((c & ~u, c & u & ~v, c & v)):
        if PLANE_BITS[letter][state]:
            words |= plane
    return words[:, None, :]


def _vector_ready(words: np.ndarray) -> np.ndarray:
    """`words` itself when its rows are whole aligned vectors, else a zero-padded aligned copy."""
    bytes_a_vector = bitgemm_cpu.LANES * 8
    if (
        words.shape[2] % bitgemm_cpu.LANES == 0
        and words.ctypes.data % bytes_a_vector == 0
        and words.strides[2] == 8
        and all(stride % bytes_a_vector == 0 for stride in words.strides[:2])
    ):
        return words
    padded = -(-words.shape[2] // bitgemm_cpu.LANES) * bitgemm_cpu.LANES
    ready = aligned_zeros((*words.shape[:2], padded))
    ready[:, :, : words.shape[2]] = words
    return ready
