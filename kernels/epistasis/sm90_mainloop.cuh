// sm90_mainloop: producer and mainloop of the epistasis scans for sm_90a: one thread issues bulk
// copies into a ring of slots in shared memory, consumer warpgroups multiply them.
//
// Shared    STAGES slots of 1 024 samples: the rows of a tile of y, then of Z_SITES of z; a full
//           and an empty mbarrier per slot. A cluster of CLUSTER CTAs takes as many tiles of y and
//           multicasts the copies of z.
//
// Compile with -DSTAGES=.. -DCLUSTER=1|2 -DLOCKSTEP=.. and the parameters of scan.cuh.

#pragma once

#include "../sm90.cuh"
#include "scan.cuh"

constexpr int K_STEP_BYTES = STEP_BITS / 8, STEPS = STAGE_BYTES / K_STEP_BYTES;
constexpr int A_BYTES = TILE_SITES * STATES * STAGE_BYTES;
template <int Z_SITES>
constexpr int B_BYTES = Z_SITES * COLUMN_STATES * STAGE_BYTES;
template <int Z_SITES>
constexpr int SLOT_BYTES = A_BYTES + B_BYTES<Z_SITES>;

// Shared memory addresses of the slots and of their mbarriers.
struct Slots {
    u32 data, full, empty;
    __device__ __forceinline__ Slots(u32 data, u32 barriers)
        : data(data), full(barriers), empty(barriers + 8 * STAGES) {}
    static constexpr int BARRIER_BYTES = 16 * STAGES;
    // Called by one thread before cluster_sync. warps: consumer warps of a CTA.
    __device__ __forceinline__ void init(int warps) const {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, CLUSTER * warps);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    }
};

// The operands of an item within the batch: those with x below its sites of y; ORDER = 2: the only
// one.
__device__ __forceinline__ int2 operands_of(int4 item, int x_first) {
    if (ORDER == 2) return make_int2(0, 1);
    const int below = (item.x + 1) * CLUSTER * TILE_SITES - 1 - x_first;
    const int stop = min(item.w, (below + OPERAND_SITES - 1) / OPERAND_SITES);
    return make_int2(item.z * GIVEN, stop * GIVEN);
}

// Producer, one thread: copies all stages of all items of this CTA.
template <int Z_SITES>
__device__ __forceinline__ void produce(Slots slots, const u8* packed, const int* stages,
                                           const int4* items, int n_items, int x_first,
                                           int first_site, int padded_sites, u32* progress,
                                           const Scan& scan) {
    constexpr int SHARE = B_BYTES<Z_SITES> / CLUSTER;  // of z, that this CTA copies
    const int rank = cluster_rank();
    const i64 stage_bytes = (i64)(padded_sites - first_site) * STATES * STAGE_BYTES;
    Ring<STAGES> ring;
    Lockstep<LOCKSTEP> lockstep{progress};
    for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
        const int2 range = operands_of(items[i], x_first);
        if (range.y <= range.x) continue;
        const int first_y = (items[i].x * CLUSTER + rank) * TILE_SITES;
        const int first_z = items[i].y * Z_SITES;
        const u8* from = packed + stages[range.x] * stage_bytes;
        const u8* from_a = from + (i64)(first_y - first_site) * STATES * STAGE_BYTES;
        const Columns columns(packed, first_z, first_site, padded_sites, scan);
        const u8* from_b = columns.from + stages[range.x] * columns.stride;
        for (int k = stages[range.x]; k < stages[range.y]; ++k) {
            const u32 slot = slots.data + ring.slot * SLOT_BYTES<Z_SITES>;
            const u32 ready = slots.full + 8 * ring.slot;
            barrier_wait(slots.empty + 8 * ring.slot, ring.parity ^ 1);
            barrier_expect(ready, SLOT_BYTES<Z_SITES>);
            copy_tile(slot, from_a, ready, A_BYTES);
            if (CLUSTER == 1)
                copy_tile(slot + A_BYTES, from_b, ready, SHARE);
            else
                copy_tile_to_all(slot + A_BYTES + rank * SHARE, from_b + rank * SHARE, ready, SHARE);
            from_a += stage_bytes;
            from_b += columns.stride;
            ring.advance();
            lockstep.step();
        }
    }
    lockstep.finish();
}

#ifndef NARROW
#define NARROW 0
#endif
// acc[FIRST ...] += products of 64 rows and 2 SIZE columns; with `fresh`, NARROW alone: = instead of
// +=. Two instructions of 128 columns are as fast as one of 256, and fit a kernel that is launched with
// 128 registers per thread; those of 64 columns fit one of 72.
template <int FIRST, int SIZE, int N>
__device__ __forceinline__ void multiply_step(int (&acc)[N], u64 a, u64 b, bool fresh) {
#if NARROW
    multiply_64<FIRST>(acc, a, b, !fresh);
    if constexpr (SIZE == 64)
        multiply_64<FIRST + 32>(acc, a, b + (64 * STAGE_BYTES >> 4), !fresh);
#else
    if constexpr (SIZE == 96)
        multiply_192<FIRST>(acc, a, b);
    else
        multiply_128<FIRST>(acc, a, b);
    if constexpr (SIZE == 128) multiply_128<FIRST + 64>(acc, a, b + (128 * STAGE_BYTES >> 4));
#endif
}

// Consumer mainloop of one warpgroup: 64 rows of y.
template <int Z_SITES>
struct Mainloop {
    Slots slots;
    u32 own_rows;  // offset of this warpgroup's rows in a slot
    int lane, step = 0, total = 0, unread = -1;
    Ring<STAGES> ring;

    __device__ __forceinline__ Mainloop(Slots slots, int warpgroup, int lane)
        : slots(slots), own_rows(warpgroup * 64 * STAGE_BYTES), lane(lane) {}
    // Begins the next operand, of so many steps.
    __device__ __forceinline__ void start(int steps) {
        step = 0;
        total = steps;
    }
    __device__ __forceinline__ void release() {
        if (unread >= 0 && lane < CLUSTER) barrier_arrive(slots.empty + 8 * unread, lane);
        unread = -1;
    }
    // acc[FIRST ...] += popcounts of the steps up to `end`; `fresh`: see `multiply_step`.
    template <int FIRST, int SIZE, int N>
    __device__ __forceinline__ void advance(int (&acc)[N], int end, bool fresh = false) {
        while (step < end) {
            if (step % STEPS == 0) barrier_wait(slots.full + 8 * ring.slot, ring.parity);
            const int stop = min(end, (step / STEPS + 1) * STEPS);
            const u32 a = slots.data + ring.slot * SLOT_BYTES<Z_SITES> + own_rows;
            const u32 b = slots.data + ring.slot * SLOT_BYTES<Z_SITES> + A_BYTES;
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
            for (; step < stop; ++step) {
                const u32 at = step % STEPS * K_STEP_BYTES;
                multiply_step<FIRST, SIZE>(acc, describe(a + at), describe(b + at), fresh);
                fresh = false;
            }
            asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
            // one group stays in flight; the slot of the previous one can be refilled
            asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
            release();
            if (step % STEPS == 0 || step == total) {
                unread = ring.slot;
                ring.advance();
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
        release();
    }
    // acc[FIRST ...] += controls << 16 | cases: the halves are swapped before each of the two
    // segments, so that each is added to the low half. ends: of the two segments.
    template <int FIRST, int SIZE, int N>
    __device__ __forceinline__ void add(int (&acc)[N], const int* ends) {
        #pragma unroll
        for (int segment = 0; segment < 2; ++segment) {
            #pragma unroll
            for (int j = FIRST; j < FIRST + SIZE; ++j) acc[j] = __byte_perm(acc[j], 0, 0x1032);
            advance<FIRST, SIZE>(acc, ends[segment]);
        }
    }
    template <int FIRST, int SIZE, int N>
    __device__ __forceinline__ void clear(int (&acc)[N]) {
        #pragma unroll
        for (int j = FIRST; j < FIRST + SIZE; ++j) acc[j] = 0;
    }
    // acc[FIRST ...] = controls << 16 | cases. NARROW: the first step overwrites what there was, if the
    // segment of the controls has one.
    template <int FIRST, int SIZE, int N>
    __device__ __forceinline__ void count(int (&acc)[N], const int* ends) {
        if (!NARROW || step == ends[0]) clear<FIRST, SIZE>(acc);
        advance<FIRST, SIZE>(acc, ends[0], NARROW);
        #pragma unroll
        for (int j = FIRST; j < FIRST + SIZE; ++j) acc[j] <<= 16;
        advance<FIRST, SIZE>(acc, ends[1]);
    }
};
