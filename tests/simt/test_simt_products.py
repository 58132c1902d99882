"""Products of bit-planes and of two-bit genotypes by the kernels' sources, on a CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.reference import draw_genotypes, evaluate_terms
from scenes.awkward_terms import TERMS
from scenes.random_cohorts import random_calls
from support.operands import planes_of

from popdesic.components.krylov import Krylov
from popdesic.components.large_pca import draw_largest
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.core.random_numbers import lots_of
from popdesic.engine import genotype_products
from popdesic.engine.columns_cpu import CpuColumns
from popdesic.engine.genotype_products import Flips
from popdesic.engine.genotype_products_cpu import CpuProducts
from popdesic.engine.select import cpu_backend
from popdesic.engine.terms import SQUARED, SQUARED_IBS0, Planes

from . import memory

SITES = (1, 15, 16, 17, 63, 64, 65, 1025)
#: Costs (dense, pair, row, rows, move) that send all sites along one way.
COSTS = {"pairs": (1.0, 1e-12, 1.0, 0.0, 0.0), "half": (1.0, 1e9, 1e-12, 0.0, 0.0)}


def drawn(rng, n: int, n_sites: int, missing: float):
    """Genotypes and their planes; bits at missing genotypes are those of imputed ones."""
    genotypes = draw_genotypes(rng, n, n_sites, missing)
    filled = np.where(genotypes < 0, rng.integers(0, 3, genotypes.shape), genotypes)
    planes = [filled >= 1, filled == 2, *([genotypes >= 0] if missing else [])]
    bits = np.zeros((n, len(planes), -(-n_sites // 64) * 64), np.uint8)
    bits[:, :, :n_sites] = np.stack(planes, axis=1)
    return genotypes, Planes(np.packbits(bits, axis=2, bitorder="little").view("<u8"), n_sites)


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("missing", [0.0, 0.15, 1.0])
def test_distances_equal_the_oracle(machine, rng, kernel, missing):
    from popdesic.engine.backend_gpu import GpuBackend

    backend = GpuBackend(kernel=kernel, rare_sites=False)
    for n_sites in SITES:
        machine.backward = not machine.backward
        (a, planes_a), (b, planes_b) = drawn(rng, 2, n_sites, missing), drawn(rng, 65, n_sites, 0)
        found = backend.bitgemm(planes_a, planes_b, SQUARED)
        np.testing.assert_array_equal(found, evaluate_terms(a, b, SQUARED))
        found = backend.bitgemm(planes_a, None, SQUARED_IBS0)
        np.testing.assert_array_equal(found, evaluate_terms(a, a, SQUARED_IBS0))
    assert f"bitgemm_{kernel}" in machine.launched


@pytest.mark.parametrize("index", range(6))
def test_every_variant_gives_the_same_integers(machine, rng, index, monkeypatch):
    """More samples than a block, more stages than slots, several terms of an analysis."""
    from popdesic.engine import tune_plan
    from popdesic.engine.backend_gpu import GpuBackend

    variants = tune_plan.variants_to_measure(machine.device)
    assert len(variants) == 6
    monkeypatch.setattr(GpuBackend, "choose", lambda *_: variants[index])
    machine.backward = index % 2 == 1
    (a, planes_a), (b, planes_b) = drawn(rng, 5, 5200, 0.1), drawn(rng, 260, 5200, 0.0)
    for terms in (SQUARED, TERMS["ld"])[: 1 + (index in (0, 4))]:
        found = GpuBackend(rare_sites=False).bitgemm(planes_a, planes_b, terms)
        np.testing.assert_array_equal(found, evaluate_terms(a, b, terms))


@pytest.mark.parametrize("way", COSTS)
@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_rare_sites_equal_the_oracle(machine, rng, way, missing):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.rare_sites_plan import SiteCosts

    backend = GpuBackend(kernel="mma", rare_sites=SiteCosts(*COSTS[way]))
    for n_sites in (1, 65, 700):
        machine.backward = not machine.backward
        frequency = np.exp(rng.uniform(np.log(1 / 300), 0, n_sites))
        a = rng.binomial(2, frequency, (70, n_sites)).astype(np.int8)
        a[rng.random(a.shape) < missing] = -1
        planes = planes_of(a, masked=missing > 0)
        np.testing.assert_array_equal(
            backend.bitgemm(planes, None, SQUARED), evaluate_terms(a, a, SQUARED)
        )
    assert "transpose_bits" in machine.launched


@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(
    ("sizes", "n_sites"), [([1], 1), ([15, 3], 16), ([33, 1, 5], 65), ([200, 65], 1100)]
)
def test_genotype_products_have_the_bytes_of_the_cpu(machine, rng, sizes, n_sites, missing):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.engine.genotype_products_gpu import GpuProducts

    calls = random_calls(rng, sizes, n_sites, missing)
    cpu, gpu = CpuProducts(calls, 2), GpuBackend().genotype_products(calls)
    sent = GpuProducts(calls, machine.device, 0, 2)
    assert gpu.held is not None and sent.held is None
    for k in (1, 9):
        machine.backward = not machine.backward
        vectors = rng.normal(size=(len(calls.places), k)) * 10.0 ** rng.integers(-9, 9, k)
        assert gpu.project(vectors).tobytes() == cpu.project(vectors).tobytes()
        assert gpu.normal(vectors).tobytes() == cpu.normal(vectors).tobytes()
        assert sent.normal(vectors).tobytes() == cpu.normal(vectors).tobytes()
    for name, own in vars(cpu.sample_sums()).items():
        assert vars(gpu.sample_sums())[name].tobytes() == own.tobytes(), name


@pytest.mark.parametrize(("known", "k"), [(0, 8), (3, 8), (5, 3), (2, 17)])
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_flipped_genotypes_have_the_bytes_of_the_cpu(machine, rng, known, k, missing):
    """Blocks within stretches, one of them longer than a step of the kernel."""
    from popdesic.engine.backend_gpu import GpuBackend

    calls = random_calls(rng, [300, 40], 700, missing)
    n = len(calls.places)
    cpu, gpu = CpuProducts(calls, 2), GpuBackend().genotype_products(calls)
    axes = np.linalg.qr(rng.normal(size=(n, known)))[0]
    signs = rng.choice(np.array([1, -1], np.int8), (3, n, k))
    stretch = np.repeat([0, 1, 2], [400, 1, 299])
    flips = Flips(signs, stretch, axes, cpu.project(axes))
    for _ in range(2):
        machine.backward = not machine.backward
        vectors = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, k)
        assert gpu.flipped(vectors, flips).tobytes() == cpu.flipped(vectors, flips).tobytes()
    assert gpu.spread_by_person(flips).tobytes() == cpu.spread_by_person(flips).tobytes()


@pytest.mark.parametrize("n", [1, 15, 2048, 2049, 4100])
def test_columns_have_the_bytes_of_the_cpu(machine, rng, n):
    from popdesic.engine.columns_gpu import GpuColumns

    found = []
    parts = [rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, k) for k in (16, 1, 7)]
    shares = rng.normal(size=(2, 16, 16))
    for columns in (CpuColumns(2), GpuColumns(machine.device)):
        machine.backward = not machine.backward
        left, middle, right = map(columns.put, parts)
        sums = columns.gram([left, middle], right)
        columns.add(right, [left, middle], shares)
        found.append(sums.tobytes() + columns.get(right).tobytes())
    assert found[0] == found[1]
    np.testing.assert_allclose(sums[0, :, :7], parts[0].T @ parts[2], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (15, 2), (2048, 5), (4100, 3)])
def test_narrow_columns_have_the_bytes_of_the_cpu(machine, rng, n, blocks):
    from popdesic.engine.columns_gpu import GpuColumns

    found = []
    numbers = rng.normal(size=(blocks + 1, n, 8)) * 10.0 ** rng.integers(-9, 9, 8)
    shares = rng.normal(size=(blocks, 8))
    for columns in (CpuColumns(2), GpuColumns(machine.device)):
        machine.backward = not machine.backward
        rows = columns.rows(blocks, n)
        rows[:] = columns.xp.asarray(numbers[1:])
        out = columns.xp.asarray(numbers[0].copy())
        sums = columns.own_products(rows, out)
        columns.add_own(out, rows, shares)
        found.append(sums.tobytes() + columns.get(out).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_components_have_the_bytes_of_the_cpu(machine, rng, missing):
    """The whole search, with vectors on the device; also where a part lies there already."""
    from popdesic.engine.backend_gpu import GpuBackend

    calls = random_calls(rng, [100], 400, missing)
    start, found = rng.normal(size=(len(calls.places), 16)), []
    padded = memory.lift(calls.block(0, 400))
    held = replace(calls, parts=(padded,), keep=(np.isin(np.arange(256), calls.places),))
    for backend, own in ((cpu_backend(2), calls), (GpuBackend(), calls), (GpuBackend(), held)):
        machine.backward = not machine.backward
        relationship = RelationshipProducts(backend.genotype_products(own))
        space = Krylov(relationship, start, relationship.products.columns)
        space.search(3, most_passes=4)
        found.append(b"".join(part.tobytes() for part in space.pairs(20)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kept_free", [0, 1 << 62])
def test_noise_has_the_bytes_of_the_cpu(machine, rng, monkeypatch, kept_free):
    """Draws whose bases lie on the device, and on the host where there is no room."""
    from popdesic.engine import genotype_products_gpu as gpu_products
    from popdesic.engine.backend_gpu import GpuBackend

    monkeypatch.setattr(gpu_products, "KEPT_FREE", kept_free)
    calls, found = random_calls(rng, [90], 300, 0.0), []
    start, lots = rng.normal(size=(len(calls.places), 16)), lots_of(range(len(calls.places)))
    stretch = np.sort(rng.integers(0, 3, 300))
    for backend in (cpu_backend(2), GpuBackend()):
        machine.backward = not machine.backward
        relationship = RelationshipProducts(backend.genotype_products(calls))
        space = Krylov(relationship, start, relationship.products.columns)
        space.search(1, most_passes=2)
        draws = draw_largest(space, relationship, stretch, 1, lots, 4)
        found.append((draws.largest.tobytes(), draws.squares, draws.left))
    on_host = isinstance(relationship.products.columns_for(1), CpuColumns)
    assert on_host == (kept_free > 0)
    assert found[0] == found[1]


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("few", "room"),
    [
        (0, {"twice": True}),
        (3, {"twice": True}),
        (2, {"twice": True, "group_bytes": 1}),  # each block on its own
        (3, {"twice": False, "code_bytes": 20_000}),
        (2, {"twice": False, "code_bytes": 20_000, "sent": True}),
    ],
)
def test_passes_over_parts_and_stretches_have_the_bytes_of_the_cpu(
    machine, rng, missing, few, room, monkeypatch
):
    """Parts that weigh differently; flips of stretches of one and of several blocks, in groups."""
    from popdesic.engine.genotype_plan import Room
    from popdesic.engine.genotype_products_gpu import GpuProducts

    monkeypatch.setattr(genotype_products, "BLOCK_SITES", 128)
    room = dict(room)
    free_bytes = 0 if room.pop("sent", False) else 1 << 32

    calls = random_calls(rng, [150, 65, 1], 700, missing)
    n = len(calls.places)
    cpu, gpu = CpuProducts(calls, 2), GpuProducts(calls, machine.device, free_bytes, 2)
    assert (gpu.held is None) == (free_bytes == 0) and gpu.room.twice == (free_bytes > 0)
    gpu.room = Room(**room)
    axes = np.linalg.qr(rng.normal(size=(n, few)))[0]
    # Not in the order of their numbers, as contigs are not in that of their names.
    stretch = np.array([2, 0, 3, 1])[np.sort(rng.integers(0, 4, 700))]
    for k in (1, 8, 17):
        machine.backward = not machine.backward
        machine.launched.clear()
        vectors = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, k)
        factors = rng.uniform(0.5, 1.5, (3, 3))
        assert gpu.normal(vectors, factors).tobytes() == cpu.normal(vectors, factors).tobytes()
        signs = rng.choice(np.array([1, -1], np.int8), (4, n, k))
        flips = Flips(signs, stretch, axes, cpu.project(axes))
        assert gpu.flipped(vectors, flips).tobytes() == cpu.flipped(vectors, flips).tobytes()
        if k > 1:
            assert gpu.spread_by_person(flips).tobytes() == cpu.spread_by_person(flips).tobytes()
        # Other signs with the same components, then other components with the same signs.
        flips = replace(flips, signs=-flips.signs[::-1])
        assert gpu.flipped(vectors, flips).tobytes() == cpu.flipped(vectors, flips).tobytes()
        fewer = np.ascontiguousarray(axes[:, :1])
        flips = replace(flips, known=fewer, projections=cpu.project(fewer))
        assert gpu.flipped(vectors, flips).tobytes() == cpu.flipped(vectors, flips).tobytes()
        assert "sum_codes" not in machine.launched and "sum_tiles" in machine.launched
