// epistasis_warps: tables and bounds of all pairs or triples, by mma.sync (sm_80 and later) or by
// AND + POPC on CUDA cores (any GPU).
//
// Formula   as in epistasis_wgmma.cu, with the same arguments and the same epilogue. POPC = 0:
//           mma.sync m16n8k256 .b1 .and.popc; POPC = 1: one POPC a word of 32 samples and count.
// Shapes    as in epistasis_wgmma.cu.
// Threads   8 warps, 16 sites of y and 32 (pairs: 64) of z each. Persistent.
// Shared    STAGES slots of a tile of A and one (pairs: two) of B, filled by cp.async (POPC: one
//           slot, filled between two barriers: a stage keeps the cores busy for 32 000 cycles);
//           counts of a chunk of combinations; triples: two sets of margins. Pair tables are read
//           from global memory.
// Overflow  counts below 2^16 a class: stored states of at most 65 535 samples.
//
// Nothing in the POPC form exists on NVIDIA alone, so that it can be compiled under HIP with warps
// of 32; that was not tried. Compile with -DPOPC=0|1 -DSTAGES=.. -DY_GROUPS=2 -DZ_PARTS=1 and the parameters of
// epistasis_scan.cuh.

constexpr int THREADS = WARPS * 32;
constexpr int A_BYTES = TILE_BYTES, B_BYTES = Z_TILES * TILE_BYTES;
constexpr int SLOT_BYTES = A_BYTES + B_BYTES;
constexpr int K_STEP_BYTES = 256 / 8, STEPS = STAGE_BYTES / K_STEP_BYTES;
constexpr int N_TILES = 2 * Z_GROUPS;  // blocks of 8 columns of one warp

__device__ __forceinline__ int popcount(uint4 a, uint4 b) {
    return __popc(a.x & b.x) + __popc(a.y & b.y) + __popc(a.z & b.z) + __popc(a.w & b.w);
}

#if !POPC
__device__ __forceinline__ void copy_chunk(u32 target, const u8* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source));
}
// Four 8 x 16-byte matrices; lanes 0-7 name the rows of the first, 8-15 of the second, ...
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}
__device__ __forceinline__ void multiply(int* d, const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// Stages of one x (or of all samples): fetched in order, multiplied step by step.
struct Feed {
    u8* slots;
    const u8 *from_a, *from_b;
    i64 stage_stride;
    int n_stages, fetched, reached, step;
    int warp, lane;

    __device__ __forceinline__ void fetch() {
        if (fetched < n_stages) {
            u8* slot = slots + fetched % STAGES * SLOT_BYTES;
            const i64 at = fetched * stage_stride;
            #pragma unroll
            for (int c = 0; c < SLOT_BYTES; c += THREADS * 16) {
                const u8* from = c < A_BYTES ? from_a + at + c : from_b + at + (c - A_BYTES);
#if POPC
                *reinterpret_cast<uint4*>(slot + c + threadIdx.x * 16) =
                    *reinterpret_cast<const uint4*>(from + threadIdx.x * 16);
#else
                copy_chunk((u32)__cvta_generic_to_shared(slot + c + threadIdx.x * 16),
                           from + threadIdx.x * 16);
#endif
            }
        }
        ++fetched;
#if !POPC
        asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
    }
    __device__ __forceinline__ void start(const u8* a, const u8* b, i64 stride, int stages) {
        from_a = a;
        from_b = b;
        stage_stride = stride;
        n_stages = stages;
        fetched = step = 0;
        reached = -1;
        __syncthreads();
        if (!POPC)
            for (int s = 0; s < STAGES - 1; ++s) fetch();
    }
    // The next stage lies in its slot, and everybody has left the one that is filled now.
    __device__ __forceinline__ void next_stage() {
        ++reached;
#if POPC
        __syncthreads();
        fetch();
        __syncthreads();
#else
        asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch();
#endif
    }

    // acc += popcounts of the steps up to `end`; PART: the set of accumulators.
    template <int PART>
    __device__ __forceinline__ void advance(int (&acc)[N_ACC], int end) {
        constexpr int FIRST = ORDER == 2 ? 0 : PART * N_ACC / 2;
        #pragma unroll 1
        for (; step < end; ++step) {
            if (step % STEPS == 0) next_stage();
            const u8* slot = slots + reached % STAGES * SLOT_BYTES;
            const u8* a = slot + warp_y(warp) * STATES * STAGE_BYTES;
            const u8* b = slot + A_BYTES + warp_z(warp) * STATES * STAGE_BYTES;
            const int chunk = step % STEPS * 2;
#if POPC
            #pragma unroll 1
            for (int half = 0; half < 2; ++half) {
                uint4 fa[Y_GROUPS][STATES];
                #pragma unroll
                for (int r = 0; r < Y_GROUPS * STATES; ++r)
                    fa[r / STATES][r % STATES] = *reinterpret_cast<const uint4*>(
                        a + (r * 8 + lane / 4) * STAGE_BYTES
                        + ((chunk + half) ^ (lane / 4)) * CHUNK_BYTES);
                #pragma unroll
                for (int n = 0; n < N_TILES; ++n)
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int row = lane % 4 * 2 + e;
                        const uint4 fb = *reinterpret_cast<const uint4*>(
                            b + (n * 8 + row) * STAGE_BYTES + ((chunk + half) ^ row) * CHUNK_BYTES);
                        #pragma unroll
                        for (int m = 0; m < Y_GROUPS; ++m)
                            #pragma unroll
                            for (int s = 0; s < STATES; ++s)
                                acc[FIRST + (m * N_TILES + n) * 4 + e + 2 * s] +=
                                    popcount(fa[m][s], fb);
                    }
            }
#else
            u32 fa[Y_GROUPS][4], fb[N_TILES / 2][4];
            const u32 row_a = (u32)__cvta_generic_to_shared(a) + lane % 16 * STAGE_BYTES
                            + ((chunk + lane / 16) ^ (lane % 8)) * CHUNK_BYTES;
            const u32 row_b = (u32)__cvta_generic_to_shared(b)
                            + (lane / 16 * 8 + lane % 8) * STAGE_BYTES
                            + ((chunk + lane / 8 % 2) ^ (lane % 8)) * CHUNK_BYTES;
            #pragma unroll
            for (int m = 0; m < Y_GROUPS; ++m) load_matrices(fa[m], row_a + m * 16 * STAGE_BYTES);
            #pragma unroll
            for (int n = 0; n < N_TILES / 2; ++n)
                load_matrices(fb[n], row_b + n * 16 * STAGE_BYTES);
            #pragma unroll
            for (int m = 0; m < Y_GROUPS; ++m)
                #pragma unroll
                for (int n = 0; n < N_TILES; ++n)
                    multiply(acc + FIRST + (m * N_TILES + n) * 4, fa[m], fb[n / 2][n % 2 * 2],
                             fb[n / 2][n % 2 * 2 + 1]);
#endif
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int2* __restrict__ items, int n_items,
               int x_first, int n_x, int first_tile, int n_tiles, const uint4* __restrict__ xy,
               int padded_sites, uint4* yz_tables, int yz_columns, const Scan* __restrict__ given) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    uint4* stash = reinterpret_cast<uint4*>(aligned + STAGES * SLOT_BYTES);
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int x_end = x_first + n_x;
    const Scan& scan = *given;
    const i64 stride = (i64)n_tiles * TILE_BYTES;
    Feed feed;
    feed.slots = aligned;
    feed.warp = warp;
    feed.lane = lane;
    int acc[N_ACC];
    for (int i = blockIdx.x; i < n_items; i += gridDim.x) {
        const int tile_y = items[i].x, tile_z = items[i].y * Z_TILES;
        const u8* from_a = packed + (i64)(tile_y - first_tile) * TILE_BYTES;
        const u8* from_b = packed + (i64)(tile_z - first_tile) * TILE_BYTES;
        uint4* table = yz_tables + ((i64)tile_y * yz_columns + tile_z) * (YZ_BYTES / 16);
#if ORDER == 3
        const int last = min(x_end, (tile_y + 1) * TILE_SITES - 1);
        Count* margins = reinterpret_cast<Count*>(aligned + STAGES * SLOT_BYTES + STASH_BYTES);
        const int site = (thread < TILE_SITES ? tile_y : tile_z) * TILE_SITES + thread % TILE_SITES;
        const bool maker = thread < 2 * TILE_SITES;
        for (int x = x_first; x < last; ++x) {
            // the barriers of `start` and of the first stage lie between two uses of a set
            Count* margins_y = margins + x % 2 * TILE_SITES * (MARGINS_Y + MARGINS_Z);
            Count* margins_z = margins_y + TILE_SITES * MARGINS_Y;
            const i64 stage = stages[x - x_first];
            feed.start(from_a + stage * stride, from_b + stage * stride, stride,
                       stages[x - x_first + 1] - (int)stage);
            if (maker)
                make_margins(thread, xy[(i64)(x - x_first) * padded_sites + site],
                             scan.margins[(i64)site * STATES], scan.margins[(i64)site * STATES + 1],
                             scan.margins[x * STATES], scan.margins[x * STATES + 1], scan,
                             margins_y, margins_z);
            const int* ends = segments + (i64)(x - x_first) * 5;
            #pragma unroll
            for (int j = 0; j < N_ACC; ++j) acc[j] = 0;
            feed.advance<0>(acc, ends[1]);
            feed.advance<1>(acc, ends[2]);
            #pragma unroll
            for (int j = 0; j < N_ACC; ++j) acc[j] <<= 16;
            feed.advance<0>(acc, ends[3]);
            feed.advance<1>(acc, ends[4]);
            __syncthreads();  // margins, where no stage brought a barrier
            score_triples(acc, stash + warp * (STASH_BYTES / 16 / WARPS),
                          table + warp * (YZ_BYTES / 16 / WARPS), margins_y, margins_z, warp, lane,
                          x, tile_y * TILE_SITES, tile_z * TILE_SITES, scan);
        }
#else
        feed.start(from_a, from_b, stride, stages[1]);
        #pragma unroll
        for (int j = 0; j < N_ACC; ++j) acc[j] = 0;
        feed.advance<0>(acc, segments[2]);
        #pragma unroll
        for (int j = 0; j < N_ACC; ++j) acc[j] <<= 16;
        feed.advance<0>(acc, segments[4]);
        score_pairs(acc, stash + warp * (STASH_BYTES / 16 / WARPS), table, warp, lane,
                    tile_y * TILE_SITES, tile_z * TILE_SITES, scan);
#endif
#if !POPC
        asm volatile("cp.async.wait_group 0;\n" ::: "memory");
#endif
    }
}
