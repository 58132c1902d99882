"""The GPU's bit-GEMM equals a slow integer oracle exactly, for every micro-kernel.

The oracle turns genotypes (0, 1, 2, 3 = missing) into matrices and multiplies them exactly with
numpy; it is checked against the definition pair by pair. It uses neither planes nor their packing
nor plans.
"""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest

pytest.importorskip("cupy")

from scenes.awkward_terms import IBS, TERMS

from popdesic.core.errors import UserError
from popdesic.engine import (
    bitgemm_gpu,
    bitgemm_plan,
    devices,
    layout,
    precompile_gpu,
    tune_gpu,
    tune_plan,
    variants,
)
from popdesic.engine.backend_gpu import GpuBackend
from popdesic.engine.stream_gpu import BitgemmStream
from popdesic.engine.terms import PLANE_BITS, SQUARED, SQUARED_IBS0, Planes, Terms
from popdesic.study import rehearsal

MISSING = 3
SITES = (1, 15, 16, 17, 33, 63, 64, 65, 257, 1023, 1024, 1025, 4100)
SAMPLES = (1, 2, 65, 129, 300)


@pytest.fixture(autouse=True)
def first_candidate(request, monkeypatch):
    """Do not compile and measure the other candidates, unless a test is about that."""
    if "measured" not in request.fixturenames:
        candidates = tune_gpu.variants_to_measure
        monkeypatch.setattr(
            tune_gpu,
            "variants_to_measure",
            lambda device, kernel=None: candidates(device, kernel)[:1],
        )


@pytest.fixture
def measured():
    """Requested by tests that need every candidate."""


def draw_genotypes(rng, n_samples: int, n_sites: int, missing: float) -> np.ndarray:
    """Genotypes (n_samples, n_sites) uint8 in Hardy-Weinberg proportions, some missing."""
    frequency = rng.uniform(0, 1, n_sites)
    genotypes = rng.binomial(2, frequency, (n_samples, n_sites)).astype(np.uint8)
    genotypes[rng.random((n_samples, n_sites)) < missing] = MISSING
    return genotypes


def make_planes(genotypes: np.ndarray, masked: bool, rng, spare_words: int = 0) -> Planes:
    """Planes as in planes.npy; bits of u and v at missing genotypes are random (imputed)."""
    n_samples, n_sites = genotypes.shape
    called = genotypes != MISSING
    filled = np.where(called, genotypes, rng.integers(0, 3, genotypes.shape))
    planes = [filled >= 1, filled == 2, *([called] if masked else [])]
    assert masked or called.all()
    bits = np.zeros((n_samples, len(planes), (-(-n_sites // 64) + spare_words) * 64), np.uint8)
    for index, plane in enumerate(planes):
        bits[:, index, :n_sites] = plane
    return Planes(np.packbits(bits, axis=2, bitorder="little").view("<u8"), n_sites)


def oracle(a: np.ndarray, b: np.ndarray, terms: Terms) -> np.ndarray:
    """int64 (n_outputs, m, n): each product as a matrix product of 0/1 matrices.

    In float64, because numpy multiplies int64 matrices a hundred times more slowly; sums of ones
    are exact up to 2**53.
    """
    out = np.zeros((len(terms.outputs), len(a), len(b)), np.int64)
    for p in terms.products:
        left = np.array(PLANE_BITS[p.plane_a], np.float64)[a]
        right = np.array(PLANE_BITS[p.plane_b], np.float64)[b]
        out[p.output] += p.weight * (left @ right.T).astype(np.int64)
    return out


def squared_by_definition(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """int64 (2, m, n): sum of (a - b)^2 and count of jointly called sites, pair by pair."""
    out = np.zeros((2, len(a), len(b)), np.int64)
    for i, j in itertools.product(range(len(a)), range(len(b))):
        both = (a[i] != MISSING) & (b[j] != MISSING)
        difference = a[i].astype(np.int64) - b[j].astype(np.int64)
        out[:, i, j] = (difference[both] ** 2).sum(), both.sum()
    return out


def test_oracle_is_the_definition():
    rng = np.random.default_rng(1)
    a, b = draw_genotypes(rng, 5, 130, 0.2), draw_genotypes(rng, 7, 130, 0.2)
    assert np.array_equal(oracle(a, b, SQUARED), squared_by_definition(a, b))


@pytest.fixture(scope="module", params=devices.KERNELS)
def backend(request, gpu_device):
    if request.param not in devices.supported_kernels(gpu_device):
        pytest.skip(f"{gpu_device.name} does not run {request.param}")
    return GpuBackend(kernel=request.param)


@pytest.mark.gpu
@pytest.mark.parametrize("n_sites", SITES)
@pytest.mark.parametrize("missing", (0.0, 0.15))
def test_equals_oracle(backend, n_sites, missing):
    """Blocks of every size with every other and with themselves, with and without a mask."""
    rng = np.random.default_rng(n_sites)
    names = TERMS if n_sites in (65, 4100) else ("squared", "squared_ibs0")
    blocks = {
        n: (g := draw_genotypes(rng, n, n_sites, missing), make_planes(g, missing > 0, rng, n % 3))
        for n in SAMPLES
    }
    for name in names:
        terms = TERMS[name]
        for m, n in ((1, 1), (1, 300), (2, 65), (129, 2), (300, 129), (65, 65)):
            found = backend.bitgemm(blocks[m][1], blocks[n][1], terms)
            assert found.dtype == np.int64
            assert np.array_equal(found, oracle(blocks[m][0], blocks[n][0], terms)), (name, m, n)
        if name in ("ld", "layers"):
            continue  # not symmetric under swapping a and b
        for n in SAMPLES:
            found = backend.bitgemm(blocks[n][1], None, terms)
            assert np.array_equal(found, oracle(blocks[n][0], blocks[n][0], terms)), (name, n)


@pytest.mark.gpu
def test_complete_against_masked(backend):
    """A complete block's c is all ones, and ends with the last site."""
    rng = np.random.default_rng(2)
    for n_sites in (1, 65, 1000, 1030):
        a, b = draw_genotypes(rng, 130, n_sites, 0), draw_genotypes(rng, 70, n_sites, 0.3)
        pa, pb = make_planes(a, False, rng, 1), make_planes(b, True, rng)
        for terms in TERMS.values():
            assert np.array_equal(backend.bitgemm(pa, pb, terms), oracle(a, b, terms))
            assert np.array_equal(backend.bitgemm(pb, pa, terms), oracle(b, a, terms))
        # imputed values count as genotypes
        words = pb.without_mask()
        as_complete = np.unpackbits(words.words.view(np.uint8), axis=2, bitorder="little").sum(1)
        filled = as_complete[:, :n_sites]
        found = backend.bitgemm(words, None, SQUARED)
        assert np.array_equal(found, oracle(filled, filled, SQUARED))


@pytest.mark.gpu
@pytest.mark.parametrize("value", (0, 1, 2, MISSING))
def test_monomorphic_and_all_missing(backend, value):
    rng = np.random.default_rng(3)
    same = np.full((66, 130), value, np.uint8)
    mixed = draw_genotypes(rng, 30, 130, 0.1)
    a, b = make_planes(same, value == MISSING, rng), make_planes(mixed, True, rng)
    for terms in (SQUARED, SQUARED_IBS0):
        assert np.array_equal(backend.bitgemm(a, None, terms), oracle(same, same, terms))
        assert np.array_equal(backend.bitgemm(a, b, terms), oracle(same, mixed, terms))


@pytest.mark.gpu
def test_stream_of_ranges(gpu_device, tmp_path):
    """Sums over site ranges, through small pinned buffers, from a memory map and in parts."""
    rng = np.random.default_rng(4)
    a, b = draw_genotypes(rng, 140, 20_011, 0.05), draw_genotypes(rng, 90, 20_011, 0.05)
    pa, pb = make_planes(a, True, rng), make_planes(b, True, rng)
    expected = oracle(a, b, SQUARED_IBS0)
    np.save(tmp_path / "planes.npy", pa.words)
    mapped = Planes(np.load(tmp_path / "planes.npy", mmap_mode="r"), pa.n_sites)
    small = GpuBackend(host_bytes=1 << 20)
    assert np.array_equal(small.bitgemm(mapped, pb, SQUARED_IBS0), expected)
    stream = small.stream(140, 90, 3, 3, SQUARED_IBS0, 20_011)
    for first, last in ((0, 10), (10, 11), (11, 200), (200, pa.words.shape[2])):
        n_sites = min(last * 64, pa.n_sites) - first * 64
        stream.add(
            Planes(pa.words[:, :, first:last], n_sites), Planes(pb.words[:, :, first:last], n_sites)
        )
    assert np.array_equal(stream.result(), expected)
    for first, rows in stream.result_rows(64):
        assert np.array_equal(rows, expected[:, first : first + rows.shape[1]])


@pytest.mark.gpu
def test_planes_on_the_device_and_in_pinned_memory(gpu_device):
    import cupy
    import cupyx

    rng = np.random.default_rng(5)
    a, b = draw_genotypes(rng, 300, 30_000, 0), draw_genotypes(rng, 33, 30_000, 0)
    pa, pb = make_planes(a, False, rng), make_planes(b, False, rng)
    there = Planes(cupy.asarray(pa.words), pa.n_sites)
    pinned = cupyx.empty_pinned(pb.words.shape, np.uint64)
    pinned[...] = pb.words
    small = GpuBackend(host_bytes=1 << 19)
    assert np.array_equal(small.bitgemm(there, None, SQUARED), oracle(a, a, SQUARED))
    expected = oracle(b, a, SQUARED)
    assert np.array_equal(small.bitgemm(Planes(pinned, pb.n_sites), there, SQUARED), expected)
    assert np.array_equal(small.bitgemm(Planes(pinned, pb.n_sites), pa, SQUARED), expected)


@pytest.mark.gpu
def test_totals_beyond_int32(gpu_device, monkeypatch):
    """Accumulators are folded into int64 totals before their limit, here set very low."""
    monkeypatch.setattr(bitgemm_plan.Plan, "site_limit", property(lambda self: 2048))
    rng = np.random.default_rng(6)
    a = draw_genotypes(rng, 150, 9000, 0.1)
    planes = make_planes(a, True, rng)
    folds = []
    fold = BitgemmStream._fold
    monkeypatch.setattr(BitgemmStream, "_fold", lambda self: (folds.append(1), fold(self)))
    found = GpuBackend().bitgemm(planes, None, SQUARED_IBS0)
    assert np.array_equal(found, oracle(a, a, SQUARED_IBS0))
    assert len(folds) >= 3


@pytest.mark.gpu
def test_blocks_of_samples(gpu_device, monkeypatch):
    """Samples that do not fit the device are processed in blocks."""
    monkeypatch.setattr(GpuBackend, "largest_block", lambda self, terms, planes: 256)
    rng = np.random.default_rng(7)
    a, b = draw_genotypes(rng, 600, 500, 0.1), draw_genotypes(rng, 300, 500, 0)
    pa, pb = make_planes(a, True, rng), make_planes(b, False, rng)
    assert np.array_equal(GpuBackend().bitgemm(pa, None, SQUARED), oracle(a, a, SQUARED))
    assert np.array_equal(GpuBackend().bitgemm(pa, pb, SQUARED), oracle(a, b, SQUARED))


@pytest.mark.gpu
def test_every_variant_and_split_gives_the_same_integers(gpu_device, measured):
    """Tile parameters and splits of the site axis change the time, never the result."""
    import cupy

    rng = np.random.default_rng(8)
    a = draw_genotypes(rng, 700, 30_000, 0.05)
    planes = make_planes(a, True, rng)
    expected = oracle(a, a, SQUARED_IBS0)
    for variant in tune_gpu.variants_to_measure(gpu_device):
        for masked in (True, False):
            words = cupy.asarray(planes.words if masked else planes.without_mask().words)
            plan = tune_plan.plan_for(variant, SQUARED_IBS0, not masked)
            n_stages = layout.divide_up(words.shape[2], layout.STAGE_WORDS)
            packed = cupy.empty(layout.packed_bytes(700, len(plan.letters), n_stages), np.uint8)
            counts = cupy.zeros((700, 3), np.uint64)
            bitgemm_gpu.pack_range(
                words,
                0,
                words.shape[2],
                a.shape[1],
                plan.letters,
                packed,
                counts,
                gpu_device.capability,
            )
            blocks = cupy.asarray(variants.block_order(3, 3, True))
            sums = []
            for splits in (None, 1, 2, 7, n_stages):
                acc = cupy.zeros((plan.n_slots, 768, 768), np.int32)
                work = bitgemm_gpu.Launch(packed, packed, acc, blocks, n_stages, True)
                bitgemm_gpu.launch(variant, gpu_device, plan, work, splits)
                sums.append(np.stack([np.triu(x) for x in acc.get()]))
            assert all(np.array_equal(sums[0], other) for other in sums[1:]), variant
            if masked:
                for o, slot in enumerate(plan.slots):
                    upper = plan.scale[o] * sums[0][slot, :700, :700].astype(np.int64)
                    assert np.array_equal(upper, np.triu(expected[o])), variant


@pytest.mark.gpu
def test_micro_kernels_agree_on_larger_data(gpu_device):
    rng = np.random.default_rng(9)
    words = rng.integers(0, 2**64, (1111, 3, 1700), np.uint64)
    words[:, 1] &= words[:, 0]
    planes = Planes(words, 1700 * 64)
    for terms in (SQUARED, SQUARED_IBS0):
        for given in (planes, planes.without_mask()):
            found = [
                GpuBackend(kernel=kernel).bitgemm(given, None, terms)
                for kernel in devices.supported_kernels(gpu_device)
            ]
            assert all(np.array_equal(found[0], other) for other in found[1:])
            assert (found[0][0].diagonal() == 0).all()


@pytest.mark.gpu
def test_equals_the_cpu_backend(gpu_device):
    """Both backends give the same integers for every list of terms."""
    pytest.importorskip("numba")
    from popdesic.engine.backend_cpu import CpuBackend

    rng = np.random.default_rng(11)
    a, b = draw_genotypes(rng, 260, 5003, 0.1), draw_genotypes(rng, 131, 5003, 0)
    pa, pb = make_planes(a, True, rng), make_planes(b, False, rng)
    cpu, gpu = CpuBackend(2), GpuBackend()
    for terms in TERMS.values():
        for left, right in ((pa, pb), (pb, pa), (pa, pa), (pb, pb)):
            assert np.array_equal(gpu.bitgemm(left, right, terms), cpu.bitgemm(left, right, terms))
    for planes in (pa, pb):
        for terms in (SQUARED, SQUARED_IBS0, IBS):
            assert np.array_equal(
                gpu.bitgemm(planes, None, terms), cpu.bitgemm(planes, None, terms)
            )


def read_genotypes(path) -> np.ndarray:
    """Genotypes (n_samples, n_sites) of a biallelic VCF, read without using the package."""
    codes = {"0/0": 0, "0/1": 1, "1/0": 1, "1/1": 2}
    with gzip.open(path, "rt") as lines:
        columns = [
            [codes.get(cell[:3].replace("|", "/"), MISSING) for cell in line.split("\t")[9:]]
            for line in lines
            if not line.startswith("#")
        ]
    return np.array(columns, np.uint8).T


@pytest.mark.gpu
@pytest.mark.shared
@pytest.mark.parametrize("name", ("hapmap3_957/hapmap3_957", "kg1_chr22_564/kg1_chr22_dev564"))
def test_real_genotypes(gpu_device, shared_data, name):
    """Real genotypes: all micro-kernels and the CPU equal float64 matrix products.

    Sums of products of small integers stay below 2**53, where float64 is exact.
    """
    pytest.importorskip("numba")
    from popdesic.engine.backend_cpu import CpuBackend

    genotypes = read_genotypes(shared_data / f"{name}.vcf.gz")
    rng = np.random.default_rng(12)
    called = (genotypes != MISSING).astype(np.float64)
    dosage = np.where(genotypes == MISSING, 0, genotypes).astype(np.float64)
    squared = (dosage**2) @ called.T
    squared = squared + squared.T - 2 * dosage @ dosage.T
    expected = np.stack([squared, called @ called.T]).astype(np.int64)
    planes = make_planes(genotypes, True, rng)
    kernel_names = devices.supported_kernels(gpu_device)
    for backend in (CpuBackend(2), *(GpuBackend(kernel=kernel) for kernel in kernel_names)):
        assert np.array_equal(backend.bitgemm(planes, None, SQUARED), expected)
    filled = planes.without_mask()
    found = [
        backend.bitgemm(filled, None, SQUARED_IBS0)
        for backend in (CpuBackend(2), *(GpuBackend(kernel=kernel) for kernel in kernel_names))
    ]
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.gpu
def test_errors_are_one_sentence(gpu_device):
    with pytest.raises(UserError, match="does not run the micro-kernel"):
        GpuBackend(kernel="abacus")
    backend = GpuBackend()
    with pytest.raises(UserError, match="too little free memory"):
        backend.stream(1_000_000, None, 2, 2, SQUARED, 1000)
    rng = np.random.default_rng(10)
    planes = make_planes(draw_genotypes(rng, 3, 70, 0), False, rng)
    with pytest.raises(ValueError, match="70 and 60 sites"):
        backend.bitgemm(planes, Planes(planes.words, 60), SQUARED)


@pytest.mark.gpu
def test_the_choice_of_kernel_is_cached(gpu_device, measured, monkeypatch, tmp_path):
    """The first use measures; the second reads the user's cache instead."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shape = variants.ShapeClass.of(500, 500, 50_000, True, True)
    first = tune_gpu.choose_variant(gpu_device, SQUARED, shape)
    assert tune_plan.cache_file().is_file()
    monkeypatch.setattr(tune_gpu, "measure_variants", None)
    assert tune_gpu.choose_variant(gpu_device, SQUARED, shape) == first


@pytest.mark.gpu
def test_usual_problem_classes_are_measured(gpu_device, measured):
    *lines, scans = precompile_gpu.tune_usual(gpu_device, (1024,))
    assert len(lines) == 6
    assert all(", 1024 x 1024: " in line for line in lines)
    assert "comparisons, with missing" in lines[3]
    assert scans.startswith("epistasis scans: ")


@pytest.mark.gpu
@pytest.mark.parametrize("name", rehearsal.rehearsals())
def test_every_rehearsal_of_a_study_runs(gpu_device, name):
    """`popdesic tune` only logs one that fails."""
    rehearsal.rehearsals()[name](GpuBackend.unmeasured(gpu_device.index))


@pytest.mark.gpu
def test_rehearsals_run_beside_the_process_with_the_lease(gpu_device):
    variant = tune_plan.variants_to_measure(gpu_device)[0].label
    found = rehearsal.rehearse_all(gpu_device.index, [variant])
    assert set(found) == {variant, *rehearsal.rehearsals()}


@pytest.mark.gpu
def test_a_lost_device_gives_a_one_sentence_error(gpu_device, monkeypatch):
    import cupy

    from popdesic.engine import stream_gpu as stream

    def fail(*_):
        raise cupy.cuda.runtime.CUDARuntimeError(719)

    rng = np.random.default_rng(13)
    planes = make_planes(draw_genotypes(rng, 3, 70, 0), False, rng)
    monkeypatch.setattr(stream, "launch", fail)
    with pytest.raises(UserError, match="the GPU failed during the products of 3 and 3 samples"):
        GpuBackend(kernel="popc").bitgemm(planes, None, SQUARED)
