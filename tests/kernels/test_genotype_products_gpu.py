"""Products of standardised genotypes on a GPU: the bytes of the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes.random_cohorts import random_calls

from popdesic.components.krylov import Krylov
from popdesic.components.large_pca import draw_largest
from popdesic.components.relationship_products import RelationshipProducts
from popdesic.core.random_numbers import lots_of
from popdesic.engine import genotype_products
from popdesic.engine.columns_cpu import CpuColumns
from popdesic.engine.genotype_plan import Room
from popdesic.engine.genotype_products import Flips
from popdesic.engine.genotype_products_cpu import CpuProducts

pytestmark = pytest.mark.gpu


def products(calls, device, free_bytes=1 << 32):
    from popdesic.engine.genotype_products_gpu import GpuProducts

    return GpuProducts(calls, device, free_bytes)


SHAPES = [([1], 1), ([2], 15), ([15, 3], 16), ([16], 17), ([33, 1, 5], 64), ([64, 65], 65)]


@pytest.mark.parametrize(("sizes", "n_sites"), [*SHAPES, ([700, 300], 5000), ([9000], 4097)])
@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("k", [0, 1, 8, 20, 40, 158])
def test_bytes_are_those_of_the_cpu(gpu_device, sizes, n_sites, missing, k):
    rng = np.random.default_rng(n_sites)
    calls = random_calls(rng, sizes, n_sites, missing)
    n = len(calls.places)
    vectors = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, k)
    cpu, gpu = CpuProducts(calls, 4), products(calls, gpu_device)
    assert gpu.held is not None
    weights = cpu.project(vectors)
    assert gpu.project(vectors).tobytes() == weights.tobytes()
    weights = weights.astype(np.float32)
    assert gpu.combine(weights).tobytes() == cpu.combine(weights).tobytes()
    assert gpu.normal(vectors).tobytes() == cpu.normal(vectors).tobytes()
    assert gpu.joint(vectors).tobytes() == cpu.joint(vectors).tobytes()
    for name, own in vars(cpu.sample_sums()).items():
        assert vars(gpu.sample_sums())[name].tobytes() == own.tobytes(), name
    factors = rng.uniform(0.5, 1.5, (len(sizes), len(sizes)))
    assert gpu.normal(vectors, factors).tobytes() == cpu.normal(vectors, factors).tobytes()


@pytest.mark.parametrize("n", [1, 15, 2048, 2049, 70001])
def test_columns_have_the_bytes_of_the_cpu(gpu_device, n):
    from popdesic.engine.columns_gpu import GpuColumns

    rng, found = np.random.default_rng(n), []
    parts = [rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, k) for k in (16, 1, 7)]
    shares = rng.normal(size=(2, 16, 16))
    for columns in (CpuColumns(4), GpuColumns(gpu_device)):
        left, middle, right = map(columns.put, parts)
        sums = columns.gram([left, middle], right)
        columns.add(right, [left, middle], shares)
        found.append(sums.tobytes() + columns.get(right).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (2049, 5), (70_000, 30)])
def test_narrow_columns_have_the_bytes_of_the_cpu(gpu_device, n, blocks):
    from popdesic.engine.columns_gpu import GpuColumns

    rng, found = np.random.default_rng(n), []
    numbers = rng.normal(size=(blocks + 1, n, 8)) * 10.0 ** rng.integers(-9, 9, 8)
    shares = rng.normal(size=(blocks, 8))
    for columns in (CpuColumns(4), GpuColumns(gpu_device)):
        rows = columns.rows(blocks, n)
        rows[:] = columns.xp.asarray(numbers[1:])
        out = columns.xp.asarray(numbers[0].copy())
        sums = columns.own_products(rows, out)
        columns.add_own(out, rows, shares)
        found.append(sums.tobytes() + columns.get(out).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_components_have_the_bytes_of_the_cpu(gpu_device, missing):
    """The whole search, with vectors on the device; also where a part lies there already."""
    import cupy

    rng = np.random.default_rng(7)
    calls = random_calls(rng, [3000], 6000, missing)
    start, found = rng.normal(size=(len(calls.places), 16)), []
    padded = cupy.asarray(calls.block(0, 6000))
    who = np.isin(np.arange(4 * padded.shape[1]), calls.places)
    held = replace(calls, parts=(padded,), keep=(who,))
    for own in (CpuProducts(calls, 4), products(calls, gpu_device), products(held, gpu_device)):
        relationship = RelationshipProducts(own)
        space = Krylov(relationship, start, own.columns)
        space.search(3, most_passes=4)
        found.append(b"".join(part.tobytes() for part in space.pairs(20)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("known", [0, 3])
def test_flipped_genotypes_give_the_bytes_of_the_cpu(gpu_device, known):
    rng = np.random.default_rng(5)
    calls = random_calls(rng, [300, 40], 3000, 0.02)
    n = len(calls.places)
    cpu, gpu = CpuProducts(calls, 4), products(calls, gpu_device)
    axes = np.linalg.qr(rng.normal(size=(n, known)))[0]
    signs = rng.choice(np.array([1, -1], np.int8), (5, n, 8))
    flips = Flips(signs, np.sort(rng.integers(0, 5, 3000)), axes, cpu.project(axes))
    vectors = rng.normal(size=(n, 8))
    for own in (gpu, products(calls, gpu_device, 0)):
        assert own.flipped(vectors, flips).tobytes() == cpu.flipped(vectors, flips).tobytes()
        there = own.flipped(own.xp.asarray(vectors), flips)
        assert there.get().tobytes() == cpu.flipped(vectors, flips).tobytes()
        assert own.spread_by_person(flips).tobytes() == cpu.spread_by_person(flips).tobytes()


@pytest.mark.parametrize(
    "room",
    [
        {"twice": True},
        {"twice": True, "group_bytes": 1},
        {"twice": False, "code_bytes": 1 << 20},
        {"twice": False, "code_bytes": 1 << 20, "sent": True},
    ],
)
def test_many_stretches_in_groups_give_the_bytes_of_the_cpu(gpu_device, room):
    """Cohorts with missing genotypes, more people than a thread block has rows, 300 stretches."""
    rng = np.random.default_rng(7)
    calls = random_calls(rng, [900, 300, 1], 40_000, 0.005)
    n = len(calls.places)
    room = dict(room)
    free_bytes = 0 if room.pop("sent", False) else 1 << 32
    cpu, gpu = CpuProducts(calls, 8), products(calls, gpu_device, free_bytes)
    assert gpu.room.twice == (free_bytes > 0)
    gpu.room = Room(**room)
    axes = np.linalg.qr(rng.normal(size=(n, 12)))[0]
    signs = rng.choice(np.array([1, -1], np.int8), (300, n, 8))
    # Stretches need not ascend: contigs are in the order of the genome, not of their names.
    stretch = rng.permutation(300)[np.sort(rng.integers(0, 300, 40_000))]
    flips = Flips(signs, stretch, axes, cpu.project(axes))
    factors = rng.uniform(0.5, 1.5, (3, 3))
    for k in (8, 16, 40):
        vectors = rng.normal(size=(n, k))
        assert gpu.normal(vectors, factors).tobytes() == cpu.normal(vectors, factors).tobytes()
        if k == 8:
            assert gpu.flipped(vectors, flips).tobytes() == cpu.flipped(vectors, flips).tobytes()
    assert gpu.spread_by_person(flips).tobytes() == cpu.spread_by_person(flips).tobytes()


def test_genotypes_that_do_not_fit_are_sent_block_by_block(gpu_device, monkeypatch):
    monkeypatch.setattr(genotype_products, "BLOCK_SITES", 512)
    rng = np.random.default_rng(6)
    calls = random_calls(rng, [500, 100], 6000, 0.05)
    vectors = rng.normal(size=(len(calls.places), 8))
    sent, held = products(calls, gpu_device, 0), products(calls, gpu_device)
    assert sent.held is None and held.held is not None
    for _ in range(2):
        assert sent.normal(vectors).tobytes() == held.normal(vectors).tobytes()


@pytest.mark.parametrize("kept_free", [0, 1 << 62])
def test_noise_has_the_bytes_of_the_cpu(gpu_device, monkeypatch, kept_free):
    """Draws whose bases lie on the device, and on the host where there is no room."""
    from popdesic.engine import genotype_products_gpu as gpu_products

    monkeypatch.setattr(gpu_products, "KEPT_FREE", kept_free)
    rng = np.random.default_rng(11)
    calls, found = random_calls(rng, [3000, 500], 4000, 0.0), []
    n = len(calls.places)
    start, lots = rng.normal(size=(n, 16)), lots_of(range(n))
    stretch = np.sort(rng.integers(0, 30, 4000))
    for own in (CpuProducts(calls, 4), products(calls, gpu_device)):
        relationship = RelationshipProducts(own)
        space = Krylov(relationship, start, own.columns)
        space.search(2, most_passes=3)
        draws = draw_largest(space, relationship, stretch, 2, lots, 30)
        found.append((draws.largest.tobytes(), draws.squares, draws.left))
    assert isinstance(own.columns_for(1), CpuColumns) == (kept_free > 0)
    assert found[0] == found[1]
