// tables: functions of squared distance by interpolation, and sums over the edges of a point, for the
// kernels of maps. `maps/umap_epoch_cpu.py` has the formulas, units and limits.

#pragma once

#include "../types.cuh"

#if !defined(UMAP_THREADS) || !defined(POINT_BITS) || !defined(FORCE_BITS) || \
    !defined(SHARE_BITS) || !defined(STEP_BITS) || !defined(SPREAD_BITS) || \
    !defined(RADIUS_BITS) || !defined(INTERVAL_BITS) || !defined(PLACE_BITS) || \
    !defined(TOP_BIT) || !defined(FARTHEST) || !defined(BOUND) || !defined(LEAST_RADIUS)
#error "UMAP_THREADS ... LEAST_RADIUS come from maps/layouts_plan.py"
#endif

constexpr int TABLE_LENGTH = (TOP_BIT << INTERVAL_BITS) + 1;
constexpr u32 ALL = ~0u;

__device__ __forceinline__ u64 squared_length(int dx, int dy) {
    return (u64)((i64)dx * dx) + (u64)((i64)dy * dy);
}

// Value of a table at a squared distance of at least 1, interpolated.
__device__ __forceinline__ i64 value_at(const i64* __restrict__ table, u64 squared) {
    const int top = 63 - __clzll((i64)squared);
    const u64 digits = squared << (TOP_BIT - top);
    const int place = (top << INTERVAL_BITS)
                    + (int)(digits >> (TOP_BIT - INTERVAL_BITS) & ((1 << INTERVAL_BITS) - 1));
    const i64 beyond =
        (i64)(digits >> (TOP_BIT - INTERVAL_BITS - PLACE_BITS) & ((1 << PLACE_BITS) - 1));
    const i64 low = table[place];
    return low + (((table[place + 1] - low) * beyond) >> PLACE_BITS);
}

__device__ __forceinline__ int shift_up(int value, int apart) {
    return __shfl_up_sync(ALL, value, apart);
}
__device__ __forceinline__ i64 shift_up(i64 value, int apart) {
    const u32 low = __shfl_up_sync(ALL, (u32)value, apart);
    const u32 high = __shfl_up_sync(ALL, (u32)((u64)value >> 32), apart);
    return (i64)((u64)high << 32 | low);
}

// Add x and y of each lane's edge to sums[head]: lanes of one head, which are next to each other, add
// up first. Lanes without an edge have head -1 and are the last ones.
template <class X, class Y>
__device__ __forceinline__ void add_to_heads(u64* sums, int head, X x, Y y) {
    const int lane = threadIdx.x & 31;
    #pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const int other = shift_up(head, apart);
        const X more_x = shift_up(x, apart);
        const Y more_y = shift_up(y, apart);
        if (lane >= apart && other == head) {
            x += more_x;
            y += more_y;
        }
    }
    const int next = __shfl_sync(ALL, head, lane + 1);
    if (head >= 0 && (lane == 31 || next != head)) {
        atomicAdd(sums + 2 * (i64)head, (u64)(i64)x);
        atomicAdd(sums + 2 * (i64)head + 1, (u64)(i64)y);
    }
}
