"""What stands for the GPU is right, and refuses what a GPU would get wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from oracles.epistasis import random_scan, scan

from popdesic.core.places import KERNEL_FOLDER
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.terms import SQUARED, Planes
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import score_tables
from simt import memory
from simt.machine import Kernel, LaunchError

HEAD = "".join(
    (KERNEL_FOLDER / name).read_text().replace("#pragma once\n", "").replace("#include", "//")
    for name in ("types.cuh", "ptx.cuh")
)
BARRIER = "__syncthreads();"
TURN = """
extern "C" __global__ void __launch_bounds__(64) turn(const int* from, int* to) {
    __shared__ int kept[64];
    kept[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = kept[63 - threadIdx.x];
}
"""
STAGED = """
extern "C" __global__ void staged(const int* from, int* to) {
    extern __shared__ __align__(16) int slot[];
    if (threadIdx.x < 16)
        copy_chunk((u32)__cvta_generic_to_shared(slot + 4 * threadIdx.x), from + 4 * threadIdx.x);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    to[threadIdx.x] = slot[63 - threadIdx.x];
}
"""
PRODUCT = """
extern "C" __global__ void product(const u8* a, const u32* b, int* out) {
    extern __shared__ __align__(128) u8 rows[];
    const int lane = threadIdx.x;
    for (int i = 0; i < 16; ++i) rows[16 * lane + i] = a[16 * lane + i];
    __syncwarp();
    u32 r[4];
    // (rows 0-7, 8-15) x (bytes 0-15, 16-31)
    load_matrices(r, (u32)__cvta_generic_to_shared(rows) + lane % 16 * 32 + lane / 16 * 16);
    int bits[4] = {}, bytes[4] = {};
    const u32 b0 = b[lane / 4 * 8 + lane % 4], b1 = b[lane / 4 * 8 + 4 + lane % 4];
    multiply_bits(bits, r[0], r[1], r[2], r[3], b0, b1);
    multiply_bytes(bytes, r[0], r[1], r[2], r[3], b0, b1);
    for (int i = 0; i < 4; ++i) {
        const int at = (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
        out[at] = bits[i];
        out[128 + at] = bytes[i];
    }
}
"""


@pytest.fixture
def there(rng):
    """Numbers on the device, and room for as many."""
    import cupy

    return cupy.asarray(rng.integers(0, 99, 64, np.int32)), cupy.zeros(64, np.int32)


def kernel(machine, text: str, name: str) -> Kernel:
    return Kernel(machine, machine.load(HEAD + text, ()), name)


@pytest.mark.parametrize(("text", "name"), [(TURN, "turn"), (STAGED, "staged")])
def test_threads_meet_at_barriers(machine, schedule, there, text, name):
    kernel(machine, text, name)((1,), (64,), there, shared_mem=256)
    assert there[1].get().tolist() == there[0].get()[::-1].tolist()


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        (TURN, "turn", "    __syncthreads();\n"),
        (STAGED, "staged", "    __syncthreads();\n"),
        (STAGED, "staged", "    wait_copies<0>();\n"),
    ],
)
def test_a_missing_barrier_or_wait_shows(machine, there, text, name, line):
    wrong = 0
    for machine.backward in (False, True):
        kernel(machine, text.replace(line, ""), name)((1,), (64,), there, shared_mem=256)
        wrong += there[1].get().tolist() != there[0].get()[::-1].tolist()
    assert wrong


def test_products_of_fragments(machine, schedule, rng):
    import cupy

    a, b = rng.integers(0, 256, (16, 32), np.uint8), rng.integers(0, 256, (8, 32), np.uint8)
    out = cupy.zeros((2, 16, 8), np.int32)
    given = cupy.asarray(a), cupy.asarray(b.view(np.uint32)), out
    kernel(machine, PRODUCT, "product")((1,), (32,), given, shared_mem=512)
    shared = np.unpackbits(a, axis=1).astype(int) @ np.unpackbits(b, axis=1).T.astype(int)
    assert (out.get()[0] == shared).all()
    assert (out.get()[1] == a.view(np.int8).astype(int) @ b.view(np.int8).T.astype(int)).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (BARRIER, f"if (threadIdx.x > 9) {BARRIER} else\n{BARRIER}", "different barriers"),
        (BARRIER, "if (threadIdx.x > 9) __syncwarp();", "its mask has ended|it ends"),
        ("from[threadIdx.x]", "__shfl_up_sync(0xFFFF, from[threadIdx.x], 1)", "lacks the lane"),
        ("to[threadIdx.x] =", "to[0] = __cvta_generic_to_shared(to) +", "not to dynamic shared"),
    ],
)
def test_broken_rules_are_named(machine, schedule, there, old, new, message):
    with pytest.raises(LaunchError, match=message):
        kernel(machine, TURN.replace(old, new), "turn")((1,), (64,), there)
    kernel(machine, TURN, "turn")((1,), (64,), there)  # the next launch is in order


def test_writes_beside_memory_are_noticed(machine, there):
    long = STAGED.replace("__syncthreads();", "__syncthreads(); slot[64] = 1;")
    with pytest.raises(LaunchError, match="behind its shared memory"):
        kernel(machine, long, "staged")((1,), (64,), there, shared_mem=256)
    beside = TURN.replace("to[threadIdx.x] =", "to[threadIdx.x + 1] =")
    with pytest.raises(MemoryError, match="beside an array of 256 bytes"):
        kernel(machine, beside, "turn")((1,), (64,), there)
    memory.forget()


def test_launches_that_cuda_refuses(machine, there):
    turn = kernel(machine, TURN, "turn")
    with pytest.raises(LaunchError, match="compiled for 64 threads"):
        turn((1,), (128,), there)
    with pytest.raises(LaunchError, match="shared memory"):
        turn((1,), (64,), there, shared_mem=49153)
    with pytest.raises(LaunchError, match="a launch of"):
        turn((1, 65536), (64,), there)
    with pytest.raises(LaunchError, match="2 parameters, not 1"):
        turn((1,), (64,), there[:1])
    with pytest.raises(LaunchError, match="argument 1 is i of 4 bytes, its parameter p of 8"):
        turn((1,), (64,), (there[0], np.int32(0)))
    with pytest.raises(LaunchError, match="argument 0 is a ndarray"):
        turn((1,), (64,), (there[0].get(), there[1]))
    with pytest.raises(LaunchError, match="inline assembly"):
        kernel(machine, TURN + 'void f() { asm("exit;"); }', "turn")


def test_the_fake_knows_what_it_does_not_know(there):
    import cupy

    with pytest.raises(AttributeError):
        cupy.linalg  # noqa: B018
    with pytest.raises(TypeError, match="mixed"):
        there[0] + np.zeros(64, np.int32)
    with pytest.raises(TypeError, match="mixed"):
        cupy.maximum(there[0], np.zeros(64, np.int32))
    with pytest.raises(TypeError, match="numpy's sort"):
        np.sort(there[0])


def closes(rng) -> bool:
    from popdesic.engine.backend_gpu import GpuBackend

    a, b = rng.integers(0, 99, (2, 40, 40), np.int32)
    found, expected = np.full((2, 40, 40), 10**6, np.int32)
    GpuBackend().minplus().multiply(found, a, b)
    CpuBackend(1).minplus().multiply(expected, a, b)
    return np.array_equal(found, expected)


def multiplies(kernel: str):
    def action(rng) -> bool:
        from popdesic.engine.backend_gpu import GpuBackend

        words = rng.integers(0, 2**63, (9, 3, 2), dtype=np.uint64)
        words[:, 1] &= words[:, 0]
        planes = Planes(words, 128)
        found = GpuBackend(kernel=kernel, rare_sites=False).bitgemm(planes, None, SQUARED)
        return np.array_equal(found, CpuBackend(1).bitgemm(planes, None, SQUARED))

    return action


def scans(order: int):
    def action(rng) -> bool:
        from popdesic.engine.backend_gpu import GpuBackend

        tables = score_tables("k2", 40, 31)
        data, states, cases = random_scan(rng, 12, (40, 31), tables=tables)
        backend = GpuBackend(kernel="mma")
        found = partial(scan_pairs if order == 2 else scan_triples, backend)(data, range(12), 9)
        expected = scan(data, states, cases, order, range(12), 9)
        return found.cost.tolist() == expected.cost.tolist()

    return action


@pytest.mark.parametrize(
    ("old", "new", "works"),
    [
        ("T plus(T a, T b) { return a + b; }", "T plus(T a, T b) { return a - b; }", closes),
        ("step.weight * d[m][n][x]", "-step.weight * d[m][n][x]", multiplies("mma")),
        ("W2 * __popc(xu & xv & m)", "-W2 * __popc(xu & xv & m)", multiplies("popc")),
        ("other = other - column;", "other = column - other;", scans(2)),
        ("acc[j] <<= 16;", "acc[j] <<= 15;", scans(3)),
    ],
)
def test_a_flipped_sign_in_a_source_fails(machine, rng, monkeypatch, old, new, works):
    from popdesic.engine import compile_gpu

    assert works(rng)
    read, changed = compile_gpu.read_source, []

    def flipped(name: str) -> str:
        text = read(name)
        changed.append(old in text)
        return text.replace(old, new)

    monkeypatch.setattr(compile_gpu, "read_source", flipped)
    compile_gpu.load_function.cache_clear()
    try:
        assert not works(rng)
    finally:
        assert any(changed)
        compile_gpu.load_function.cache_clear()
