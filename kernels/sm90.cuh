// sm90: PTX of sm_90a that the wgmma kernels share: matrix descriptors, mbarriers, bulk copies (TMA
// without tensor maps), clusters.
//
// Compile with -DCLUSTER=1|2: CTAs of a cluster, which share copies by multicast.

#pragma once

#include "common.cuh"

constexpr int WARPGROUP = 128;

// Shared memory descriptor of a K-major operand with 128-byte rows and the 128-byte swizzle: start
// address, 1 024 bytes between groups of 8 rows. The next 256 sites start 32 bytes later.
__device__ __forceinline__ u64 describe(u32 address) {
    return (u64)((address & 0x3FFFF) >> 4) | (1ull << 16) | ((u64)(1024 >> 4) << 32) | (1ull << 62);
}

__device__ __forceinline__ void barrier_init(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void barrier_expect(u32 barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
// Arrive at this barrier in CTA `rank` of the cluster. The barriers order only bulk copies and
// wgmma, which have their own waits, so the default scope suffices: a wider one would put a
// device-wide fence into every stage (it halved the speed).
__device__ __forceinline__ void barrier_arrive(u32 barrier, int rank) {
    asm volatile(
        "{.reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];}\n" ::"r"(barrier),
        "r"(rank)
        : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 barrier, int parity) {
    u32 done = 0;
    while (!done)
        asm volatile(
            "{.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;}\n"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
}
// Asynchronous bulk copy of a tile (or `bytes` of it) to shared memory; `barrier` counts its bytes.
__device__ __forceinline__ void copy_tile(u32 target, const u8* source, u32 barrier,
                                          int bytes = TILE_BYTES) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(target), "l"(source), "r"(bytes), "r"(barrier)
        : "memory");
}
__device__ __forceinline__ void copy_tile_to_all(u32 target, const u8* source, u32 barrier,
                                                 int bytes = TILE_BYTES) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(target),
        "l"(source), "r"(bytes), "r"(barrier), "h"((short)((1 << CLUSTER) - 1))
        : "memory");
}
// Position in a ring of pipeline stages: the slot, and the phase parity of its mbarriers.
template <int SLOTS>
struct Ring {
    int slot = 0, parity = 0;
    __device__ __forceinline__ void advance() {
        if (++slot == SLOTS) {
            slot = 0;
            parity ^= 1;
        }
    }
};

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" ::: "memory");
}
__device__ __forceinline__ int cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return CLUSTER == 1 ? 0 : (int)rank;
}

// Operands d[FIRST ...] of an instruction, and their names in its text.
#define ACC8(i) "+r"(d[FIRST + i]), "+r"(d[FIRST + i + 1]), "+r"(d[FIRST + i + 2]), \
                "+r"(d[FIRST + i + 3]), "+r"(d[FIRST + i + 4]), "+r"(d[FIRST + i + 5]), \
                "+r"(d[FIRST + i + 6]), "+r"(d[FIRST + i + 7])
#define ACC32(i) ACC8(i), ACC8(i + 8), ACC8(i + 16), ACC8(i + 24)
#define NAMES32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES64 NAMES32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES96 NAMES64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES128 NAMES96 ", " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define MULTIPLY(columns, names, a, b, more) \
    "wgmma.mma_async.sync.aligned.m64n" columns "k256.s32.b1.b1.and.popc " \
    "{" names "}, " a ", " b ", " more ";\n"

// d[FIRST ...] += popcount(A & B) over 256 bits of depth, both operands in shared memory: A 64
// rows, B 256 (192, 128) rows, half as many accumulators a thread.
template <int FIRST, int N>
__device__ __forceinline__ void multiply_256(int (&d)[N], u64 a, u64 b) {
    asm volatile(MULTIPLY("256", NAMES128, "%128", "%129", "1")
                 : ACC32(0), ACC32(32), ACC32(64), ACC32(96) : "l"(a), "l"(b));
}
template <int FIRST, int N>
__device__ __forceinline__ void multiply_192(int (&d)[N], u64 a, u64 b) {
    asm volatile(MULTIPLY("192", NAMES96, "%96", "%97", "1")
                 : ACC32(0), ACC32(32), ACC32(64) : "l"(a), "l"(b));
}
template <int FIRST, int N>
__device__ __forceinline__ void multiply_128(int (&d)[N], u64 a, u64 b) {
    asm volatile(MULTIPLY("128", NAMES64, "%64", "%65", "1") : ACC32(0), ACC32(32) : "l"(a), "l"(b));
}
// The same with 64 rows of B; d = popcount(A & B) if not `more`.
template <int FIRST, int N>
__device__ __forceinline__ void multiply_64(int (&d)[N], u64 a, u64 b, int more) {
    asm volatile(
        "{.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"
        MULTIPLY("64", NAMES32, "%32", "%33", "more") "}"
        : ACC32(0) : "l"(a), "l"(b), "r"(more));
}
