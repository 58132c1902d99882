// epistasis_wgmma: tables and bounds of all pairs or triples on Hopper's tensor cores.
//
// Formula   counts of (g of x, s of y, t of z), g, s, t in {0, 1}, in both classes: popcounts of
//           ANDed planes, compacted to the samples with x in g (EPIClear, section 3.2); then
//           the epilogue of epistasis_scan.cuh. Instruction wgmma.mma_async m64n128k256 (triples),
//           m64n256k256 (pairs) .b1 .and.popc, sm_90a.
// Shapes    packed[stage][tile][row][chunk] as in common.cuh, one plane, tiles from `first_tile`
//           on, the stages of one x after those of another (`stages`: int (n_x + 1)); segments
//           int (n_x, 5); items int2 (n_items): rows of CLUSTER tiles of y, (pairs of) tiles of z;
//           xy (n_x, padded sites, 4) packed counts of x with every site; yz [y tile][z tile]
//           packed pair tables of YZ_BYTES, yz_columns tiles a row (written if TABLE).
// Threads   One warpgroup copies; 2 x Z_PARTS multiply and score, 32 sites of y each. A cluster of
//           CLUSTER thread blocks takes that many tiles of y and shares the copies of z. Persistent.
// Shared    STAGES slots of a tile of A and one (pairs: two) of B; counts of a chunk of
//           combinations; triples: the item's pair table and two sets of margins.
// Overflow  counts below 2^16 a class: stored states of at most 65 535 samples.
//
// Compile with -DSTAGES=.. -DCLUSTER=1|2, -DY_GROUPS=1 and the parameters of epistasis_scan.cuh.

constexpr int CONSUMERS = 2 * Z_PARTS, CONSUMER_THREADS = CONSUMERS * WARPGROUP;
constexpr int THREADS = CONSUMER_THREADS + WARPGROUP;
constexpr int A_BYTES = TILE_BYTES, B_BYTES = Z_TILES * TILE_BYTES;
constexpr int SLOT_BYTES = A_BYTES + B_BYTES;
constexpr int K_STEP_BYTES = 256 / 8, STEPS = STAGE_BYTES / K_STEP_BYTES;
constexpr int COPY_REGISTERS = Z_PARTS == 1 ? 40 : 32, SCAN_REGISTERS = Z_PARTS == 1 ? 232 : 112;

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
    if constexpr (N_ACC / PRODUCTS == 32) multiply_64<FIRST>(acc, a, b);
}

// The side of the ring that multiplies.
struct Feed {
    u32 slots, full, empty;
    u32 own_a, own_b;  // rows of this warpgroup in a slot
    Ring ring;
    int lane, step, total, unread;

    __device__ __forceinline__ void release() {
        if (unread >= 0 && lane < CLUSTER) barrier_arrive(empty + 8 * unread, lane);
        unread = -1;
    }
    // acc += popcounts of the steps up to `end`; PART: the set of accumulators (pairs: all).
    template <int PART>
    __device__ __forceinline__ void multiply(int (&acc)[N_ACC], int end) {
        while (step < end) {
            if (step % STEPS == 0) barrier_wait(full + 8 * ring.slot, ring.parity);
            const int stop = min(end, (step / STEPS + 1) * STEPS);
            const u32 a = slots + ring.slot * SLOT_BYTES + own_a;
            const u32 b = slots + ring.slot * SLOT_BYTES + own_b;
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
};

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int2* __restrict__ items, int n_items,
               int x_first, int n_x, int first_tile, int n_tiles, const uint4* __restrict__ xy,
               int padded_sites, uint4* yz_tables, int yz_columns, const Scan* __restrict__ given) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    const u32 slots = (u32)__cvta_generic_to_shared(aligned);
    uint4* stash = reinterpret_cast<uint4*>(aligned + STAGES * SLOT_BYTES);
    const u32 full = slots + STAGES * SLOT_BYTES + STASH_BYTES;
    const u32 empty = full + STAGES * 8;
    u8* tables = aligned + STAGES * SLOT_BYTES + STASH_BYTES + 256;
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
    const int x_end = x_first + n_x;
    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(COPY_REGISTERS));
        if (threadIdx.x == 0) {
            Ring ring;
            for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
                const int tile_y = items[i].x * CLUSTER + rank, tile_z = items[i].y * Z_TILES;
                const int last = ORDER == 2 ? x_end
                                            : min(x_end, (items[i].x + 1) * CLUSTER * TILE_SITES - 1);
                const int n_stages = last > x_first ? stages[last - x_first] : 0;
                const u8* from_a = packed + (i64)(tile_y - first_tile) * TILE_BYTES;
                const u8* from_b = packed + (i64)(tile_z - first_tile) * TILE_BYTES;
                for (int k = 0; k < n_stages; ++k) {
                    const u32 slot = slots + ring.slot * SLOT_BYTES, ready = full + 8 * ring.slot;
                    barrier_wait(empty + 8 * ring.slot, ring.parity ^ 1);
                    barrier_expect(ready, SLOT_BYTES);
                    copy_tile(slot, from_a, ready);
                    if (CLUSTER == 1)
                        copy_tile(slot + A_BYTES, from_b, ready, B_BYTES);
                    else
                        copy_tile_to_all(slot + A_BYTES + rank * (B_BYTES / CLUSTER),
                                         from_b + rank * (B_BYTES / CLUSTER), ready,
                                         B_BYTES / CLUSTER);
                    from_a += (i64)n_tiles * TILE_BYTES;
                    from_b += (i64)n_tiles * TILE_BYTES;
                    ring.advance();
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(SCAN_REGISTERS));
        const int thread = threadIdx.x - WARPGROUP, lane = thread % 32;
        const int warp = __shfl_sync(~0u, thread / 32, 0);
        const Scan& scan = *given;
        const u32 own_a = (warpgroup - 1) / Z_PARTS * (A_BYTES / 2);
        const u32 own_b = A_BYTES + (warpgroup - 1) % Z_PARTS * (B_BYTES / Z_PARTS);
        Feed feed{slots, full, empty, own_a, own_b, Ring(), lane, 0, 0, -1};
        stash += warp * (STASH_BYTES / 16 / WARPS);
        int acc[N_ACC];
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const int tile_y = items[i].x * CLUSTER + rank, tile_z = items[i].y * Z_TILES;
            uint4* table = yz_tables + ((i64)tile_y * yz_columns + tile_z) * (YZ_BYTES / 16);
#if ORDER == 3
            const int last = min(x_end, (items[i].x + 1) * CLUSTER * TILE_SITES - 1);
            if (last <= x_first) continue;
            uint4* yz = reinterpret_cast<uint4*>(tables);
            Count* margins = reinterpret_cast<Count*>(tables + YZ_BYTES);
            consumers_sync();  // nobody reads the item before any more
            for (int c = thread; c < YZ_BYTES / 16; c += CONSUMER_THREADS) yz[c] = table[c];
            const int site = (thread < TILE_SITES ? tile_y : tile_z) * TILE_SITES
                           + thread % TILE_SITES;
            const bool maker = thread < 2 * TILE_SITES;
            uint4 own;
            u32 size[2];
            if (maker) {
                own = xy[site];
                size[0] = scan.margins[(i64)site * STATES];
                size[1] = scan.margins[(i64)site * STATES + 1];
            }
            for (int x = x_first; x < last; ++x) {
                Count* margins_y = margins + x % 2 * TILE_SITES * (MARGINS_Y + MARGINS_Z);
                Count* margins_z = margins_y + TILE_SITES * MARGINS_Y;
                if (maker)
                    make_margins(thread, own, size[0], size[1], scan.margins[x * STATES],
                                 scan.margins[x * STATES + 1], scan, margins_y, margins_z);
                consumers_sync();
                if (maker && x + 1 < last) own = xy[(i64)(x + 1 - x_first) * padded_sites + site];
                const int* ends = segments + (i64)(x - x_first) * 5;
                #pragma unroll
                for (int j = 0; j < N_ACC; ++j) acc[j] = 0;
                feed.step = 0;
                feed.total = ends[4];
                feed.multiply<0>(acc, ends[1]);
                feed.multiply<1>(acc, ends[2]);
                #pragma unroll
                for (int j = 0; j < N_ACC; ++j) acc[j] <<= 16;
                feed.multiply<0>(acc, ends[3]);
                feed.multiply<1>(acc, ends[4]);
                score_triples(acc, stash, yz + warp * (YZ_BYTES / 16 / WARPS), margins_y, margins_z,
                              warp, lane, x, tile_y * TILE_SITES, tile_z * TILE_SITES, scan);
            }
#else
            #pragma unroll
            for (int j = 0; j < N_ACC; ++j) acc[j] = 0;
            feed.step = 0;
            feed.total = segments[4];
            feed.multiply<0>(acc, segments[2]);
            #pragma unroll
            for (int j = 0; j < N_ACC; ++j) acc[j] <<= 16;
            feed.multiply<0>(acc, segments[4]);
            score_pairs(acc, stash, table, warp, lane, tile_y * TILE_SITES, tile_z * TILE_SITES,
                        scan);
#endif
        }
    }
    // nobody leaves while another thread block may still write here
    cluster_sync();
}
