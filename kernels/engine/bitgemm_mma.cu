// sm80_mma: bit-GEMM by mma.sync, sm_80 and later.
//
// Formula   outputs[o][i][j] += sum over the steps of o of weight * popcount(A[i] & B[j])
//           (Program in common.cuh), for the listed 256 x 256 blocks of the result.
// Source    kernels/README.md, "From terms to products".
//           Instruction mma.sync m16n8k256 .b1 .and.popc (never .xor.popc, which
//           Hopper emulates at a sixth of the rate).
// Shapes    as in bitgemm_wgmma.cu.
// Threads   2 x 2 B_TILES warps, 64 x 64 results each: 128 accumulators per thread. A thread block
//           computes 128 x 128 B_TILES results: a half or a quarter of a block of the result.
//           Persistent.
// Shared    cp.async pipeline of STAGES slots: one tile of A, B_TILES of B, 1 024 sites.
// Overflow  int32, see common.cuh.
//
// Compile with -DSTAGES=.. (slots that fit), -DLOCKSTEP=.. and -DB_TILES=1|2: one wide thread block
// per multiprocessor, or two narrow ones, of which one computes while the other waits.

#include "../common.cuh"
#include "../ptx.cuh"

#if !defined(BLOCKS_PER_SM) || !defined(LAUNCH_THREADS) || !defined(LAUNCH_PARTS) || \
    !defined(LAUNCH_SHARED)
#error "BLOCKS_PER_SM ... LAUNCH_SHARED come from engine/variants.py"
#endif

constexpr int WARPS_M = 2, WARPS_N = 2 * B_TILES;
constexpr int THREADS = WARPS_M * WARPS_N * 32;
constexpr int WARP_ROWS = TILE_ROWS / WARPS_M;             // 64
constexpr int WARP_COLUMNS = B_TILES * TILE_ROWS / WARPS_N;  // 64
constexpr int MMA_M = 16, MMA_N = 8;
constexpr int M_TILES = WARP_ROWS / MMA_M;                 // 4
constexpr int N_TILES = WARP_COLUMNS / MMA_N;              // 8
constexpr int K_STEPS = STAGE_BYTES * 8 / 256;
constexpr int A_BYTES = TILE_BYTES;
constexpr int SLOT_BYTES = (1 + B_TILES) * TILE_BYTES;
constexpr int WIDTH = BLOCK_TILES / B_TILES, PARTS = BLOCK_TILES * WIDTH;
static_assert(THREADS == LAUNCH_THREADS && PARTS == LAUNCH_PARTS &&
              1023 + STAGES * SLOT_BYTES <= LAUNCH_SHARED,
              "launch_shape in engine/variants.py is for another kernel");

__device__ __forceinline__ void multiply(int (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    multiply_bits(d, a[0], a[1], a[2], a[3], b0, b1);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
bitgemm_mma(const u8* __restrict__ a, const u8* __restrict__ b, int* __restrict__ acc,
            const Step* __restrict__ steps, const int2* __restrict__ blocks, int n_steps,
            int n_blocks, int n_splits, int n_stages, int a_tiles, int b_tiles,
            i64 acc_columns, i64 acc_stride, int symmetric, u32* progress) {
    extern __shared__ u8 shared[];
    const u32 slots = ((u32)__cvta_generic_to_shared(shared) + 1023) & ~1023u;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / WARPS_N * WARP_ROWS;
    const int warp_column = warp % WARPS_N * WARP_COLUMNS;
    // A: matrices (rows 0-7, 8-15) x (first, second 128 sites); B: (first, second) x (rows 0-7,
    // 8-15). The row within a group of 8 is lane % 8 in both, and with it the swizzle.
    const u32 row_a = (warp_row + lane % 16) * STAGE_BYTES;
    const u32 row_b = A_BYTES + (warp_column + lane / 16 * 8 + lane % 8) * STAGE_BYTES;
    const int chunk_a = lane / 16, chunk_b = lane / 8 % 2, swizzle = lane % 8;

    const int n_items = n_blocks * n_splits * PARTS;
    Lockstep<LOCKSTEP> lockstep{progress};
    for (int i = blockIdx.x; i < n_items; i += gridDim.x) {
        const Item item = locate_item(i / PARTS, blocks, n_blocks, n_splits, n_stages);
        const int tile_a = item.block_row * BLOCK_TILES + i % PARTS / WIDTH;
        const int tile_b = item.block_column * BLOCK_TILES + i % WIDTH * B_TILES;
        if (symmetric && tile_a >= tile_b + B_TILES) continue;
        const int run = item.end_stage - item.first_stage;
        const int n_copies = run * n_steps;

        int next_step = 0, next_stage = 0, next_slot = 0;
        const u8 *from_a = nullptr, *from_b = nullptr;
        auto prefetch = [&](bool more) {
            if (more) {
                if (next_stage == 0) {
                    from_a = packed_tile(a, steps[next_step].plane_a, item.first_stage, tile_a,
                                         a_tiles, n_stages) + threadIdx.x * 16;
                    from_b = packed_tile(b, steps[next_step].plane_b, item.first_stage, tile_b,
                                         b_tiles, n_stages) + threadIdx.x * 16;
                }
                const u32 slot = slots + next_slot * SLOT_BYTES + threadIdx.x * 16;
                #pragma unroll
                for (int c = 0; c < TILE_BYTES; c += THREADS * 16) {
                    copy_chunk(slot + c, from_a + c);
                    #pragma unroll
                    for (int t = 0; t < B_TILES; ++t)
                        copy_chunk(slot + A_BYTES + t * TILE_BYTES + c,
                                   from_b + t * TILE_BYTES + c);
                }
                from_a += (i64)a_tiles * TILE_BYTES;
                from_b += (i64)b_tiles * TILE_BYTES;
                if (++next_stage == run) {
                    next_stage = 0;
                    ++next_step;
                }
                if (++next_slot == STAGES) next_slot = 0;
            }
            commit_copies();
        };
        for (int ahead = 0; ahead < STAGES - 1; ++ahead) prefetch(ahead < n_copies);
        wait_copies<STAGES - 2>();
        __syncthreads();

        // Register double buffering: fragments are loaded one 256-site step ahead, across stages
        // too, so that no warp stalls on shared memory after a barrier.
        u32 fa[2][M_TILES][4], fb[2][N_TILES / 2][4];
        auto load = [&](int buffer, u32 slot, int q) {
            #pragma unroll
            for (int m = 0; m < M_TILES; ++m)
                load_matrices(fa[buffer][m], slot + row_a + m * MMA_M * STAGE_BYTES
                                             + ((2 * q + chunk_a) ^ swizzle) * CHUNK_BYTES);
            #pragma unroll
            for (int n = 0; n < N_TILES / 2; ++n)
                load_matrices(fb[buffer][n], slot + row_b + n * 2 * MMA_N * STAGE_BYTES
                                             + ((2 * q + chunk_b) ^ swizzle) * CHUNK_BYTES);
        };
        int slot_index = 0, done = 0;
        load(0, slots, 0);

        int d[M_TILES][N_TILES][4];
        #pragma unroll
        for (int x = 0; x < M_TILES * N_TILES * 4; ++x) (&d[0][0][0])[x] = 0;
        for (int s = 0; s < n_steps; ++s) {
            const Step step = steps[s];
            #pragma unroll
            for (int x = 0; x < M_TILES * N_TILES * 4; ++x) (&d[0][0][0])[x] *= step.multiplier;
            for (int k = 0; k < run; ++k, ++done) {
                prefetch(done + STAGES - 1 < n_copies);
                if (threadIdx.x == 0) lockstep.step();
                const u32 slot = slots + slot_index * SLOT_BYTES;
                if (++slot_index == STAGES) slot_index = 0;
                #pragma unroll
                for (int q = 0; q < K_STEPS; ++q) {
                    if (q + 1 < K_STEPS) {
                        load((q + 1) % 2, slot, q + 1);
                    } else {
                        wait_copies<STAGES - 2>();
                        __syncthreads();
                        load((q + 1) % 2, slots + slot_index * SLOT_BYTES, 0);
                    }
                    #pragma unroll
                    for (int m = 0; m < M_TILES; ++m)
                        #pragma unroll
                        for (int n = 0; n < N_TILES; ++n)
                            multiply(d[m][n], fa[q % 2][m], fb[q % 2][n / 2][n % 2 * 2],
                                     fb[q % 2][n / 2][n % 2 * 2 + 1]);
                }
            }
            if (step.output >= 0) {
                int* target = acc + step.output * acc_stride
                            + ((i64)tile_a * TILE_ROWS + warp_row + lane / 4) * acc_columns
                            + (i64)tile_b * TILE_ROWS + warp_column + lane % 4 * 2;
                #pragma unroll
                for (int m = 0; m < M_TILES; ++m)
                    #pragma unroll
                    for (int n = 0; n < N_TILES; ++n)
                        #pragma unroll
                        for (int x = 0; x < 4; ++x)
                            atomicAdd(target + (m * MMA_M + x / 2 * 8) * acc_columns
                                          + n * MMA_N + x % 2,
                                      step.weight * d[m][n][x]);
            }
        }
        wait_copies<0>();
        __syncthreads();
    }
    if (threadIdx.x == 0) lockstep.finish();
}
