"""A model of a GPU: what its units do, and the rate of each kernel that follows; no GPU is needed.

A kernel takes what the slowest unit takes for its work: it has no other term. So the model needs
one figure of the card for each kernel, and counts the work, with what padding adds.
"""

from __future__ import annotations

from dataclasses import dataclass

from popdesic.engine.layout import BLOCK_ROWS, STAGE_BITS, divide_up

#: Operations of the loops: results of one step of a warp (of `mma`, products of two bits), and from
#: which compute capability. `and_add` has two instructions, `shared` one more for its address, the
#: others one (`min_add` from 9.0 on).
OPERATIONS = {
    "popc": (32, 75),
    "and_add": (32, 75),
    "min_add": (32, 75),
    "fma": (32, 75),
    "mma": (16 * 8 * 256, 80),
    "shared": (32, 75),
}
#: Steps of a chain that are unrolled.
UNROLLED = 16
#: Each loop does one operation again and again. With CHAINS = 1 every step waits for the one before
#: it: its clocks are the latency. With several chains and all warps it shows the throughput.
SOURCE = r"""
typedef unsigned int u32;
#if OPERATION == 4
struct Value { int d[4]; };
__device__ __forceinline__ void step(Value& x, u32 a, u32 b, const u32*) {
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %4, %5}, {%5, %4}, {%0, %1, %2, %3};"
        : "+r"(x.d[0]), "+r"(x.d[1]), "+r"(x.d[2]), "+r"(x.d[3])
        : "r"(a), "r"(b));
}
__device__ __forceinline__ void begin(Value& x, u32 seed) {
    for (int i = 0; i < 4; ++i) x.d[i] = seed + i;
}
__device__ __forceinline__ u32 end(const Value& x) { return x.d[0] + x.d[1] + x.d[2] + x.d[3]; }
#else
typedef u32 Value;
__device__ __forceinline__ void step(Value& x, u32 a, u32 b, const u32* words) {
#if OPERATION == 0
    asm volatile("popc.b32 %0, %0;" : "+r"(x));
#elif OPERATION == 1
    x = (x & a) + b;
#elif OPERATION == 2
    x = __viaddmin_s32(x, a, b);
#elif OPERATION == 3
    x = __float_as_uint(__fmaf_rn(__uint_as_float(x), __uint_as_float(a), __uint_as_float(b)));
#else
    x = words[x];
#endif
}
__device__ __forceinline__ void begin(Value& x, u32 seed) { x = seed; }
__device__ __forceinline__ u32 end(const Value& x) { return x; }
#endif

// clocks of each block: (blocks), out: (blocks * threads)
extern "C" __global__ void __launch_bounds__(1024) chains(
    u32* out, long long* clocks, u32 a, u32 b, int rounds) {
    __shared__ u32 words[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = i;
    Value x[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) begin(x[i], threadIdx.x + 32 * i & 1023);
    __syncthreads();
    const long long start = clock64();
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int s = 0; s < UNROLLED; ++s)
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) step(x[i], a, b, words);
    u32 sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum += end(x[i]);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - start;
}

// One thread follows `next`; L1 is left out.
extern "C" __global__ void chase(const u32* next, u32* out, long long* clocks, int steps) {
    u32 at = 0;
    for (int s = 0; s < 64; ++s) at = __ldcg(next + at);
    const long long start = clock64();
    for (int s = 0; s < steps; ++s) at = __ldcg(next + at);
    out[0] = at;
    clocks[0] = clock64() - start;
}
"""


def defines_of(operation: str, chains: int) -> tuple[str, ...]:
    """Compiler definitions of SOURCE."""
    number = list(OPERATIONS).index(operation)
    return (f"-DOPERATION={number}", f"-DCHAINS={chains}", f"-DUNROLLED={UNROLLED}")


def rate_of_warps(warps: int, latency: float, most: float) -> float:
    """Instructions a clock of a multiprocessor whose warps have one chain each (Little's law)."""
    return min(warps / latency, most)


@dataclass(frozen=True)
class Work:
    """What a kernel asks of one unit: `amount`, and the site-pairs or operations a user counts."""

    amount: float
    counted: float

    def rate(self, throughput: float) -> float:
        """What a user counts, a second, where the unit does `throughput` a second."""
        return self.counted * throughput / self.amount


def work_of_products(n_samples: int, n_sites: int, products: int, bits: int) -> Work:
    """Of all pairs of samples, whose blocks and stages are padded; `bits` of one operation."""
    blocks = divide_up(n_samples, BLOCK_ROWS)
    padded = divide_up(n_sites, STAGE_BITS) * STAGE_BITS
    done = blocks * (blocks + 1) // 2 * BLOCK_ROWS**2 * padded * products
    return Work(done / bits, n_samples * (n_samples - 1) / 2 * n_sites)


def work_of_minplus(n: int) -> Work:
    """Of one product of two matrices (n, n), in additions with a minimum."""
    return Work(float(n) ** 3, float(n) ** 3)
