// sm90_fused: tables and bounds of triples on Hopper's tensor cores where scoring dominates:
// thousands of samples. sm90_deep.cu is for more samples, and for pairs.
//
// Formula   counts of (g of x, s of y, t of z), g, s, t in {0, 1}, in both classes: popcounts of
//           ANDed planes, compacted to the samples with x in g (EPIClear, section 3.2), then the
//           epilogue of epilogue.cuh. Instruction wgmma.mma_async m64n128k256 .b1 .and.popc,
//           sm_90a. Two stored states only.
// Shapes    as in sm90_deep.cu, without scratch.
// Threads   3 warpgroups: a producer, and two consumers that also score, 32 sites of y each. They
//           share slots alone, so that one can count while the other one scores. Persistent.
// Shared    slots of operands (sm90_mainloop.cuh); counts of a chunk of combinations; triples: two
//           sets of margins of each consumer.
// Overflow  as in sm90_deep.cu, with APART = 0 alone.
//
// Compile with -DY_GROUPS=1 and the parameters of epilogue.cuh and sm90_mainloop.cuh.

#include "epilogue.cuh"
#include "sm90_mainloop.cuh"

constexpr int CONSUMERS = 2, THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;
constexpr int Y_SITES = TILE_SITES / CONSUMERS;
constexpr int MARGIN_COUNTS = ORDER == 3 ? Y_SITES * MARGINS_Y + Z_SITES * MARGINS_Z : 0;
static_assert(!APART && X_STATES == 2, "choose_core in engine/gpu/epistasis_plans.py takes another core");
static_assert(THREADS == LAUNCH_THREADS &&
              1023 + STAGES * SLOT_BYTES<Z_SITES> + WARPS * STASH_WORDS * 4 +
                      2 * CONSUMERS * MARGIN_COUNTS * (int)sizeof(Count) + Slots::BARRIER_BYTES
                  <= LAUNCH_SHARED,
              "scan_shape in engine/gpu/epistasis_plans.py is for another kernel");

// Waits for the threads of one consumer.
__device__ __forceinline__ void consumer_sync(int consumer) {
    asm volatile("bar.sync %0, %1;\n" ::"r"(1 + consumer), "n"(WARPGROUP) : "memory");
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int4* __restrict__ items, int n_items,
               int x_first, int first_site, int padded_sites, const u32* __restrict__ xy,
               u32* yz, u32*, u32* progress, const Scan* __restrict__ given) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    u32* stash = reinterpret_cast<u32*>(aligned + STAGES * SLOT_BYTES<Z_SITES>);
    Count* margins = reinterpret_cast<Count*>(stash + WARPS * STASH_WORDS);
    const Slots slots((u32)__cvta_generic_to_shared(aligned),
                      (u32)__cvta_generic_to_shared(margins + 2 * CONSUMERS * MARGIN_COUNTS));
    const int rank = cluster_rank();
    if (threadIdx.x == 0) slots.init(WARPS);
    cluster_sync();

    const int warpgroup = threadIdx.x / WARPGROUP;
    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(PRODUCER_REGISTERS));
        if (threadIdx.x == 0)
            produce<Z_SITES>(slots, packed, stages, items, n_items, x_first, first_site,
                                padded_sites, progress, *given);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(CONSUMER_REGISTERS));
        const int thread = threadIdx.x - WARPGROUP, consumer = warpgroup - 1;
        const Place place{__shfl_sync(~0u, thread / 32, 0), thread % 32};
        margins += consumer * 2 * MARGIN_COUNTS;
        const int own_y = consumer * Y_SITES;  // its first site of y
#ifdef SKEW
        if (consumer) __nanosleep(SKEW);
#endif
        const Scan& scan = *given;
        Mainloop<Z_SITES> mainloop(slots, consumer, place.lane);
        stash += place.warp * STASH_WORDS;
        int acc[N_ACC];
        int turn = 0;  // alternates between the two sets of margins, across items too
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const int tile_y = items[i].x * CLUSTER + rank, first_y = tile_y * TILE_SITES;
            const int first_z = items[i].y * Z_SITES;
#if ORDER == 3
            const int2 range = operands_of(items[i], x_first);
            if (range.y <= range.x) continue;
            const u32* table = yz + table_at(tile_y, first_z, padded_sites)
                             + place.warp * (PAIRS * CELLS * 32);
            MarginMaker<Z_SITES, Y_SITES> maker(thread % WARPGROUP, first_y + own_y, first_z, scan);
            maker.load(xy, range.x, padded_sites);
            for (int x = range.x; x < range.y; ++x) {
                Count* margins_y = margins + turn * MARGIN_COUNTS;
                turn ^= 1;
                Count* margins_z = margins_y + Y_SITES * MARGINS_Y;
                maker.make(x_first + x, scan, margins_y, margins_z);
                consumer_sync(consumer);
                if (x + 1 < range.y) maker.load(xy, x + 1, padded_sites);
                const int* ends = segments + (i64)x * (SEGMENTS + 1) + 1;
                mainloop.start(ends[SEGMENTS - 1]);
                mainloop.count<0, N_ACC / 2>(acc, ends);
                mainloop.count<N_ACC / 2, N_ACC / 2>(acc, ends + 2);
                score_triples(acc, stash, table, margins_y - own_y * MARGINS_Y, margins_z, place,
                              x_first + x, first_y, first_z, scan);
            }
#else
            mainloop.start(segments[2]);
            mainloop.count<0, N_ACC>(acc, segments + 1);
            score_pairs(acc, stash, yz, padded_sites, place, tile_y, first_z, scan);
#endif
        }
    }
    // no CTA may exit while another one of the cluster can still write to its shared memory
    cluster_sync();
}
