"""Rare sites, added carrier by carrier, give the integers of the dense products on every path."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("cupy")

from scenes.awkward_terms import TERMS
from test_bitgemm_gpu import MISSING, make_planes, oracle, read_genotypes

from popdesic.engine import devices, rare_sites_gpu, rare_sites_kernels_gpu, tune_gpu
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.rare_sites_plan import SiteCosts
from popdesic.engine.terms import SQUARED, SQUARED_IBS0, Planes

#: Costs that send every site along one path, and costs that use all three paths.
COSTS = {
    "pairs": SiteCosts(dense=1.0, pair=1e-12, row=1.0, rows=0.0, move=0.0),
    "half": SiteCosts(dense=1.0, pair=1e9, row=1e-12, rows=0.0, move=0.0),
    "dense": SiteCosts(dense=1e-12, pair=1.0, row=1.0, rows=0.0, move=0.0),
    "mixed": SiteCosts(dense=1e-4, pair=1e-3, row=1e-2, rows=0.0, move=0.0),
}


def draw_rare(rng, n_samples: int, n_sites: int, missing: float) -> np.ndarray:
    """Genotypes (n_samples, n_sites) uint8, most sites rare, in random mating."""
    frequency = np.exp(rng.uniform(np.log(1 / (4 * n_samples)), 0, n_sites))
    genotypes = rng.binomial(2, frequency, (n_samples, n_sites)).astype(np.uint8)
    genotypes[rng.random(genotypes.shape) < missing] = MISSING
    return genotypes


@pytest.fixture(autouse=True)
def first_candidate(monkeypatch):
    """Do not measure the other candidates."""
    candidates = tune_gpu.variants_to_measure
    monkeypatch.setattr(
        tune_gpu, "variants_to_measure", lambda device, kernel=None: candidates(device, kernel)[:1]
    )


@pytest.mark.gpu
@pytest.mark.parametrize("way", COSTS)
@pytest.mark.parametrize("missing", (0.0, 0.03))
def test_equals_oracle(gpu_device, way, missing):
    rng = np.random.default_rng(len(way))
    backend = GpuBackend(rare_sites=COSTS[way])
    dense = GpuBackend(rare_sites=False)
    for n_sites in (1, 63, 65, 511, 513, 2100):
        blocks = {n: draw_rare(rng, n, n_sites, missing) for n in (1, 2, 65, 300, 530)}
        planes = {n: make_planes(g, missing > 0, rng, n % 3) for n, g in blocks.items()}
        for terms in (SQUARED, SQUARED_IBS0, TERMS["ibs"]):
            for m, n in ((1, 300), (65, 2), (300, 530), (2, 2)):
                found = backend.bitgemm(planes[m], planes[n], terms)
                assert np.array_equal(found, oracle(blocks[m], blocks[n], terms)), (n_sites, m, n)
            for n in blocks:
                found = backend.bitgemm(planes[n], None, terms)
                assert np.array_equal(found, oracle(blocks[n], blocks[n], terms)), (n_sites, n)
                assert np.array_equal(found, dense.bitgemm(planes[n], None, terms))


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", devices.KERNELS)
def test_every_path_over_site_ranges(gpu_device, kernel, monkeypatch):
    """Site ranges and folds; every path is taken; blocks with and without a mask."""
    if kernel not in devices.supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {kernel}")
    monkeypatch.setattr(rare_sites_gpu.RareSites, "site_limit", property(lambda self: 4096))
    rng = np.random.default_rng(3)
    backend = GpuBackend(kernel=kernel, rare_sites=COSTS["mixed"], host_bytes=1 << 19)
    for masked in (False, True):
        a = draw_rare(rng, 600, 9000, 0.01 * masked)
        b = draw_rare(rng, 130, 9000, 0.0)
        pa, pb = make_planes(a, masked, rng), make_planes(b, False, rng)
        stream = backend.stream(600, None, 2 + masked, 2 + masked, SQUARED, 9000)
        stream.add(pa)
        assert np.array_equal(stream.result(), oracle(a, a, SQUARED))
        half = not masked and kernel != "popc"
        assert all(n > 0 for way, n in stream.rare_sites.used.items() if way != "half" or half)
        expected = oracle(a, b, SQUARED)
        assert np.array_equal(backend.bitgemm(pa, pb, SQUARED), expected)
        assert np.array_equal(backend.bitgemm(pb, pa, SQUARED), expected.transpose(0, 2, 1))
        # results may be read before further sites are added
        stream.add(pa)
        assert np.array_equal(stream.result(), 2 * oracle(a, a, SQUARED))


@pytest.mark.gpu
def test_many_homozygotes(gpu_device):
    """The counters of one row are emptied several times."""
    rng = np.random.default_rng(4)
    n_sites = 40_000
    a = rng.choice(np.array([1, 2, 2, 2], np.uint8), (70, n_sites))
    planes = make_planes(a, False, rng)
    found = GpuBackend(rare_sites=COSTS["half"]).bitgemm(planes, None, SQUARED)
    assert np.array_equal(found, oracle(a, a, SQUARED))


@pytest.mark.gpu
def test_paths_are_chosen_by_measured_cost(gpu_device, tmp_path, monkeypatch):
    """By default, the backend sorts the sites of rare data but not those of common data.

    Tests of other processes use the card while it is measured. So a choice that they disturbed is
    measured again, four times at most.
    """
    import cupy

    n, n_words = 4096, 4096
    common = cupy.random.randint(0, 2**32, (n, 2, 2 * n_words), np.uint32).view(np.uint64)
    common[:, 1] &= common[:, 0]
    rare = cupy.zeros_like(common)
    rare.ravel()[cupy.random.randint(0, rare.size, 1 << 20)] = 1 << 17
    rare[:, 0] |= rare[:, 1]
    dense = GpuBackend(rare_sites=False)
    for words, gains in ((common, False), (rare, True)):
        planes = Planes(words, n_words * 64)
        for attempt in range(5):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"{gains}{attempt}"))
            stream = GpuBackend().stream(n, None, 2, 2, SQUARED, planes.n_sites)
            stream.add(planes)
            if stream.rare_sites.gains is gains:
                break
        assert stream.rare_sites.gains is gains, stream.rare_sites.costs
        assert (stream.rare_sites.used["pairs"] > 0) is gains
        assert np.array_equal(stream.result(), dense.bitgemm(planes, None, SQUARED))


@pytest.mark.gpu
def test_bits_are_transposed_and_back(gpu_device):
    import cupy

    rng = np.random.default_rng(6)
    for n, n_words, planes in itertools.product((1, 33, 513), (1, 8, 17), (2, 3)):
        words = rng.integers(0, 2**64, (n, planes, n_words), np.uint64)
        n_sites = n_words * 64
        turned = rare_sites_kernels_gpu.to_site_major(
            cupy.asarray(words), 0, n_sites, gpu_device.capability
        )
        bits = np.unpackbits(words.view(np.uint8), axis=2, bitorder="little")
        by_site = np.unpackbits(turned.words.get().view(np.uint8), axis=2, bitorder="little")
        assert np.array_equal(by_site[:, :, :n], bits.transpose(2, 1, 0))
        assert not by_site[:, :, n:].any()
        assert np.array_equal(turned.counts.get(), bits.sum(0))
        sites = np.flatnonzero(rng.random(n_sites) < 0.4).astype(np.int32)
        if len(sites):
            back = rare_sites_kernels_gpu.gather(
                turned, cupy.asarray(sites), gpu_device.capability
            ).get()
            back = np.unpackbits(back.view(np.uint8), axis=2, bitorder="little")
            assert np.array_equal(back[:, :, : len(sites)], bits[:, :, sites])
            assert not back[:, :, len(sites) :].any()


@pytest.mark.gpu
@pytest.mark.shared
@pytest.mark.parametrize("name", ("hapmap3_957/hapmap3_957", "kg1_chr22_564/kg1_chr22_dev564"))
def test_real_genotypes(gpu_device, shared_data, name):
    """Real spectra, with and without missing genotypes, give the dense products."""
    genotypes = read_genotypes(shared_data / f"{name}.vcf.gz")
    planes = make_planes(genotypes, True, np.random.default_rng(7))
    for given in (planes, planes.without_mask()):
        for terms in (SQUARED, SQUARED_IBS0):
            expected = GpuBackend(rare_sites=False).bitgemm(given, None, terms)
            for costs in COSTS.values():
                assert np.array_equal(
                    GpuBackend(rare_sites=costs).bitgemm(given, None, terms), expected
                )
