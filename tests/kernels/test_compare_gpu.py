"""SNP comparisons on a GPU give the matches and pairs of the CPU, for all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from support.operands import planes_of

pytest.importorskip("cupy")

import cupy
from oracles.reference import draw_genotypes, evaluate_terms

from popdesic.cohort.site_planes import site_planes
from popdesic.engine import site_pairs_gpu as compare_gpu
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.devices import supported_kernels
from popdesic.engine.site_pairs import r2_pairs
from popdesic.engine.terms import KINSHIP, LD, PRODUCT, Planes
from popdesic.relatives import matches_gpu
from popdesic.relatives.find_matches import top_matches

pytestmark = pytest.mark.gpu
CPU = CpuBackend(4)


@pytest.fixture(scope="module", params=[None, "popc"])
def backend(request, gpu_device) -> GpuBackend:
    """The fused kernels, and the path over the products of devices that lack them."""
    return GpuBackend(kernel=request.param)


@pytest.mark.parametrize("terms", [KINSHIP, LD, PRODUCT])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_terms_of_the_comparisons(backend, terms, missing):
    rng = np.random.default_rng(1)
    a, b = draw_genotypes(rng, 33, 700, missing), draw_genotypes(rng, 20, 700, missing)
    fill = rng.integers(0, 3, a.shape)
    planes = planes_of(a, fill=fill, masked=missing > 0), planes_of(b, masked=missing > 0)
    expected = evaluate_terms(a, b, terms)
    np.testing.assert_array_equal(backend.bitgemm(*planes, terms), expected)
    np.testing.assert_array_equal(
        backend.bitgemm(planes[0], None, terms), evaluate_terms(a, a, terms)
    )


def assert_same_matches(backend, queries, database, k, min_called=1):
    ours = top_matches(backend, queries, database, k, min_called)
    slow = top_matches(CPU, queries, database, k, min_called)
    for name in ("key", "index", "mismatches", "called"):
        there = slow.index >= 0
        np.testing.assert_array_equal(
            np.where(there, getattr(ours, name), 0), np.where(there, getattr(slow, name), 0), name
        )
    np.testing.assert_array_equal(ours.index, slow.index)


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 511, 512, 513, 1500])
@pytest.mark.parametrize("missing", [(0, 0), (0.2, 0.2), (0, 0.2), (0.2, 0)])
def test_matches_of_every_number_of_sites(backend, n_sites, missing):
    """Few sites make ties, which the earlier profile wins; masks on either side or none."""
    rng = np.random.default_rng(n_sites)
    a, b = draw_genotypes(rng, 5, n_sites, missing[0]), draw_genotypes(rng, 700, n_sites)
    b[rng.random(b.shape) < missing[1]] = -1
    fill = rng.integers(0, 3, b.shape)
    queries = planes_of(a, masked=missing[0] > 0)
    database = planes_of(b, fill=fill, masked=missing[1] > 0)
    assert_same_matches(backend, queries, database, 7, min_called=max(1, n_sites // 2))


@pytest.mark.parametrize("n_queries", [1, 8, 31, 32, 33, 70])
@pytest.mark.parametrize("n_profiles", [1, 15, 16, 17, 4100, 30_000])
def test_matches_of_every_number_of_profiles(backend, n_queries, n_profiles):
    rng = np.random.default_rng(n_profiles)
    words = rng.integers(0, 2**63, (n_profiles, 2, 2), dtype=np.uint64)
    words[:, 1] &= words[:, 0]
    database = Planes(words, 128)
    queries = Planes(words[rng.integers(0, n_profiles, n_queries)], 128)
    assert_same_matches(backend, queries, database, 10)


def test_worst_order_of_the_database(backend):
    """Every profile beats all before it, so candidates overflow, but the result is the same."""
    n = 300_000
    words = np.zeros((n, 2, 16), np.uint64)
    filled = np.linspace(1000, 0, n).astype(int)
    bits = np.arange(1024)[None, :] < filled[:, None]
    words[:, 0] = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    queries = Planes(np.zeros((2, 2, 16), np.uint64), 1024)
    assert_same_matches(backend, queries, Planes(words, 1024), 5)


def test_parts_of_a_database(backend, monkeypatch):
    monkeypatch.setattr(matches_gpu, "PART_BYTES", 64 * 1024)
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2**63, (20_000, 2, 3), dtype=np.uint64)
    words[:, 1] &= words[:, 0]
    database = Planes(words, 192)
    assert_same_matches(backend, Planes(words[:9], 192), database, 4)


def test_one_bit_profiles(gpu_device):
    rng = np.random.default_rng(4)
    words = rng.integers(0, 2**63, (50_000, 1, 2), dtype=np.uint64)
    queries = Planes(words[[7, 49_999]] ^ np.uint64(5), 128)
    parts = [(0, cupy.asarray(words))]
    found = matches_gpu.matches_of_parts(queries, lambda: iter(parts), gpu_device, 6)
    for row, query in zip(found, queries.words, strict=True):
        distance = np.bitwise_count(words ^ query).sum(axis=(1, 2), dtype=np.int64)
        expected = np.lexsort((np.arange(len(words)), distance * 2**20 // 128))[:6]
        np.testing.assert_array_equal(row, expected)


def pooled(blocks: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Rows, columns and r2 of all blocks, ordered by row and column."""
    assert blocks
    rows, columns, r2 = (np.concatenate(part) for part in zip(*blocks, strict=True))
    order = np.lexsort((columns, rows))
    return [rows[order], columns[order], r2[order]]


@pytest.mark.parametrize(("n_sites", "n_samples"), [(5, 70), (300, 1030), (1100, 129)])
def test_pairs_of_sites_equal_those_of_the_cpu(backend, n_sites, n_samples, monkeypatch):
    monkeypatch.setattr(compare_gpu, "SQUARE_SITES", 512)
    rng = np.random.default_rng(n_sites)
    genotypes = rng.binomial(2, 0.3, (n_sites, n_samples)).astype(np.int8)
    genotypes[1::3] = np.where(
        rng.random(genotypes[1::3].shape) < 0.8,
        genotypes[::3][: len(genotypes[1::3])],
        genotypes[1::3],
    )
    genotypes[n_sites // 2] = 1
    planes = site_planes(genotypes)
    ends = np.minimum(np.arange(n_sites) + 400, n_sites)
    candidates = compare_gpu.r2_candidates(planes, ends, 0.3, backend.device)
    assert (candidates is not None) == ("wgmma" in supported_kernels(backend.device))
    seen: dict[str, list] = {"gpu": [], "cpu": []}
    ours = r2_pairs(backend, planes, ends, 0.3, lambda *block: seen["gpu"].append(block))
    slow = r2_pairs(CPU, planes, ends, 0.3, lambda *block: seen["cpu"].append(block))
    assert len(slow[0]) > 0
    for a, b in zip(ours, slow, strict=True):
        np.testing.assert_array_equal(a, b)
    # Blocks may differ in size; the pairs in them may not.
    for a, b in zip(*(pooled(blocks) for blocks in seen.values()), strict=True):
        np.testing.assert_array_equal(a, b)
