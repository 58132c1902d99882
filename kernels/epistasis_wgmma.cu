// epistasis_wgmma: tables and bounds of all pairs or triples on Hopper's tensor cores.
//
// Formula   counts of (g of x, s of y, t of z), g, s, t in {0, 1}, in both classes: popcounts of
//           ANDed planes, compacted to the samples with x in g (EPIClear, section 3.2); then
//           the epilogue of epistasis_scan.cuh. Instruction wgmma.mma_async m64n128k256 (triples),
//           m64n256k256 (pairs) .b1 .and.popc, sm_90a.
// Shapes    packed[stage][row][chunk] as in common.cuh, rows of all sites from `first_site` on, the
//           stages of one x after those of another (`stages`: int (n_x + 1)); segments int (n_x,
//           SEGMENTS + 1); items int4 (n_items): CLUSTER tiles of y, Z_SITES of z, run of the batch's x; xy (n_x, padded
//           sites, CELLS) packed counts of x with every site; yz packed pair tables (table_at;
//           written if TABLE); scratch (thread blocks, WARPS, SCRATCH_WORDS).
// Threads   3 warpgroups. One copies; two multiply and score, 32 sites of y each. A cluster of
//           CLUSTER thread blocks takes that many tiles of y and shares the copies of z. Persistent.
// Shared    STAGES slots of the rows of y and z, 1 024 samples each; counts of a chunk of
//           combinations; triples: two sets of margins.
// Overflow  counts below 2^16 a class: stored states of at most 65 535 samples.
//
// Compile with -DSTAGES=.. -DCLUSTER=1|2 -DLOCKSTEP=.. -DY_GROUPS=1 and the parameters of epistasis_scan.cuh.

constexpr int CONSUMERS = 2, CONSUMER_THREADS = CONSUMERS * WARPGROUP;
constexpr int THREADS = CONSUMER_THREADS + WARPGROUP;
constexpr int A_BYTES = TILE_SITES * STATES * STAGE_BYTES, B_BYTES = Z_SITES * STATES * STAGE_BYTES;
constexpr int SLOT_BYTES = A_BYTES + B_BYTES;
constexpr int K_STEP_BYTES = 256 / 8, STEPS = STAGE_BYTES / K_STEP_BYTES;
constexpr int COPY_REGISTERS = 40, SCAN_REGISTERS = 232;

__device__ __forceinline__ void consumers_sync() {
    asm volatile("bar.sync 1, %0;\n" ::"n"(CONSUMER_THREADS) : "memory");
}

struct Ring {
    int slot = 0, parity = 0;
    __device__ __forceinline__ void advance() {
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
};

// As many rows of B as the accumulators of one state of x need.
template <int FIRST>
__device__ __forceinline__ void multiply_rows(int (&acc)[N_ACC], u64 a, u64 b) {
    if constexpr (N_ACC / PRODUCTS == 128) multiply_256<FIRST>(acc, a, b);
    if constexpr (N_ACC / PRODUCTS == 64) multiply_128<FIRST>(acc, a, b);
}

// The side of the ring that multiplies.
struct Feed {
    u32 slots, full, empty;
    u32 own_rows;  // of this warpgroup in a slot
    Ring ring;
    int lane, step, total, unread;

    __device__ __forceinline__ void release() {
        if (unread >= 0 && lane < CLUSTER) barrier_arrive(empty + 8 * unread, lane);
        unread = -1;
    }
    // acc += popcounts of the steps up to `end`; PART: the set of accumulators.
    template <int PART>
    __device__ __forceinline__ void advance(int (&acc)[N_ACC], int end) {
        while (step < end) {
            if (step % STEPS == 0) barrier_wait(full + 8 * ring.slot, ring.parity);
            const int stop = min(end, (step / STEPS + 1) * STEPS);
            const u32 a = slots + ring.slot * SLOT_BYTES + own_rows;
            const u32 b = slots + ring.slot * SLOT_BYTES + A_BYTES;
            asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
            for (; step < stop; ++step) {
                const u32 at = step % STEPS * K_STEP_BYTES;
                multiply_rows<PART * N_ACC / PRODUCTS>(acc, describe(a + at), describe(b + at));
            }
            asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
            // one group stays in flight: the slot before this one has been read
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
    // Controls, then cases: acc = controls << 16 | cases. ends: of the two segments.
    template <int PART>
    __device__ __forceinline__ void count(int (&acc)[N_ACC], const int* ends) {
        constexpr int FIRST = PART * (N_ACC / PRODUCTS), LAST = FIRST + N_ACC / PRODUCTS;
        #pragma unroll
        for (int j = FIRST; j < LAST; ++j) acc[j] = 0;
        advance<PART>(acc, ends[0]);
        #pragma unroll
        for (int j = FIRST; j < LAST; ++j) acc[j] <<= 16;
        advance<PART>(acc, ends[1]);
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int4* __restrict__ items, int n_items,
               int x_first, int first_site, int padded_sites, const u32* __restrict__ xy,
               u32* yz, u32* scratch, u32* progress, const Scan* __restrict__ given) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    const u32 slots = (u32)__cvta_generic_to_shared(aligned);
    u32* stash = reinterpret_cast<u32*>(aligned + STAGES * SLOT_BYTES);
    Count* margins = reinterpret_cast<Count*>(stash + WARPS * STASH_WORDS);
    constexpr int MARGIN_COUNTS = ORDER == 3 ? TILE_SITES * MARGINS_Y + Z_SITES * MARGINS_Z : 0;
    const u32 full = (u32)__cvta_generic_to_shared(margins + 2 * MARGIN_COUNTS);
    const u32 empty = full + STAGES * 8;
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, CLUSTER * WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    }
    cluster_sync();

    const int warpgroup = threadIdx.x / WARPGROUP;
    const i64 stage_bytes = (i64)(padded_sites - first_site) * STATES * STAGE_BYTES;
    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(COPY_REGISTERS));
        if (threadIdx.x == 0) {
            Ring ring;
            Lockstep<LOCKSTEP> lockstep{progress};
            for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
                const int first_y = (items[i].x * CLUSTER + rank) * TILE_SITES;
                const int first_z = items[i].y * Z_SITES;
                const int begin = items[i].z;  // of x, in the batch
                int end = items[i].w;
                if (ORDER == 3) end = min(end, (items[i].x + 1) * CLUSTER * TILE_SITES - 1 - x_first);
                if (end <= begin) continue;
                const i64 offset = stages[begin] * stage_bytes;
                const u8* from_a = packed + offset + (i64)(first_y - first_site) * STATES * STAGE_BYTES;
                const u8* from_b = packed + offset + (i64)(first_z - first_site) * STATES * STAGE_BYTES;
                for (int k = stages[begin]; k < stages[end]; ++k) {
                    const u32 slot = slots + ring.slot * SLOT_BYTES, ready = full + 8 * ring.slot;
                    barrier_wait(empty + 8 * ring.slot, ring.parity ^ 1);
                    barrier_expect(ready, SLOT_BYTES);
                    copy_tile(slot, from_a, ready, A_BYTES);
                    if (CLUSTER == 1)
                        copy_tile(slot + A_BYTES, from_b, ready, B_BYTES);
                    else
                        copy_tile_to_all(slot + A_BYTES + rank * (B_BYTES / CLUSTER),
                                         from_b + rank * (B_BYTES / CLUSTER), ready,
                                         B_BYTES / CLUSTER);
                    from_a += stage_bytes;
                    from_b += stage_bytes;
                    ring.advance();
                    lockstep.step();
                }
            }
            lockstep.finish();
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(SCAN_REGISTERS));
        const int thread = threadIdx.x - WARPGROUP;
        const Place place{__shfl_sync(~0u, thread / 32, 0), thread % 32};
        const Scan& scan = *given;
        Feed feed{slots, full, empty, (u32)((warpgroup - 1) * (A_BYTES / CONSUMERS)), Ring(),
                  place.lane, 0, 0, -1};
        stash += place.warp * STASH_WORDS;
#if ORDER == 3 && PHASED
        scratch += ((i64)blockIdx.x * WARPS + place.warp) * SCRATCH_WORDS;
#endif
        int acc[N_ACC];
        int turn = 0;  // of the two sets of margins, also from one item to the next
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const int tile_y = items[i].x * CLUSTER + rank, first_y = tile_y * TILE_SITES;
            const int first_z = items[i].y * Z_SITES;
#if ORDER == 3
            const int begin = x_first + items[i].z;
            const int last =
                min(x_first + items[i].w, (items[i].x + 1) * CLUSTER * TILE_SITES - 1);
            if (last <= begin) continue;
            const u32* table = yz + table_at(tile_y, first_z, padded_sites)
                             + place.warp * (PAIRS * CELLS * 32);
            MarginMaker maker(thread, first_y, first_z, scan);
            maker.load(xy + (i64)(begin - x_first) * padded_sites * CELLS);
            for (int x = begin; x < last; ++x) {
                Count* margins_y = margins + turn * MARGIN_COUNTS;
                turn ^= 1;
                Count* margins_z = margins_y + TILE_SITES * MARGINS_Y;
                maker.make(x, scan, margins_y, margins_z);
                consumers_sync();
                if (x + 1 < last) maker.load(xy + (i64)(x + 1 - x_first) * padded_sites * CELLS);
                const int* ends = segments + (i64)(x - x_first) * (SEGMENTS + 1) + 1;
                feed.step = 0;
                feed.total = ends[SEGMENTS - 1];
#if PHASED
                feed.count<0>(acc, ends);
                score_phase(0, false, false, acc, stash, scratch, table, margins_y, margins_z,
                            place, x, first_y, first_z, scan);
                feed.count<0>(acc, ends + 2);
                score_phase(1, true, true, acc, stash, scratch, table, margins_y, margins_z, place,
                            x, first_y, first_z, scan);
#else
                feed.count<0>(acc, ends);
                feed.count<1>(acc, ends + 2);
                score_triples(acc, stash, table, margins_y, margins_z, place, x, first_y, first_z,
                              scan);
#endif
            }
#else
            feed.step = 0;
            feed.total = segments[2];
            feed.count<0>(acc, segments + 1);
            score_pairs(acc, stash, yz, padded_sites, place, tile_y, first_z, scan);
#endif
        }
    }
    // nobody leaves while another thread block may still write here
    cluster_sync();
}
