// simt_popc: bit-GEMM by POPC on CUDA cores, for any GPU.
//
// Formula   FORM_XOR, for outputs that depend on |a - b| and on both being called:
//               xu = u ^ u', xv = v ^ v', m = c & c'
//               out[i][j] += W0 popc(m) + W1 popc((xu ^ xv) & m) + W2 popc(xu & xv & m)
//           two POPC per word of 32 sites for a squared distance (W1 = 1, W2 = 4).
//           FORM_AND, for everything else: the program of common.cuh, one POPC per product.
// Source    tile parameters after Binder, Low, Popovici, "A Portable GPU
//           Framework for SNP Comparisons", section V (see engine/tune_plan.py).
// Shapes    as in bitgemm_wgmma.cu; in FORM_XOR the planes are u, v and, if MASKED, c, and there is
//           one output and no program.
// Threads   16 x 16, 8 x 8 results each (two groups of four rows and of four columns). A thread
//           block computes 128 x 128 results, a quarter of a block of the result.
// Shared    KC words of 32 sites of each plane of both tiles, word-major, so that the threads of
//           a warp read consecutive samples: (planes of A + planes of B) * KC * 512 bytes.
// Overflow  int32, see common.cuh.
// Portable  no inline assembly, no warp shuffles, no asynchronous copies: it should compile under
//           HIP; it was not run on AMD.
//
// Compile with -DFORM_XOR=0|1, -DMASKED=0|1, -DW0=.. -DW1=.. -DW2=.., -DKC=4|8 and
// -DBLOCKS_PER_SM=1|2 (target occupancy, thread blocks per multiprocessor).

#include "../common.cuh"

#if !defined(BLOCKS_PER_SM) || !defined(LAUNCH_THREADS) || !defined(LAUNCH_PARTS)
#error "BLOCKS_PER_SM, LAUNCH_THREADS and LAUNCH_PARTS come from engine/variants.py"
#endif

constexpr int SIDE = 16;                        // threads per row and column
constexpr int THREADS = SIDE * SIDE;
constexpr int RUN = 4;                          // consecutive samples of one vector load
constexpr int MICRO = TILE_ROWS / SIDE;         // 8 x 8 results per thread
constexpr int N_PLANES = FORM_XOR ? 2 + MASKED : 1;
constexpr int STAGE_STEPS = STAGE_BYTES / 4 / KC;
constexpr int N_LOADS = N_PLANES * 2 * TILE_ROWS * KC / 4 / THREADS;   // 16-byte loads per thread
constexpr int QUARTERS = BLOCK_TILES * BLOCK_TILES;
static_assert(THREADS == LAUNCH_THREADS && QUARTERS == LAUNCH_PARTS,
              "launch_shape in engine/variants.py is for another kernel");
static_assert(N_PLANES * 2 * TILE_ROWS * KC / 4 % THREADS == 0, "KC is too small");

// Row of the tile held in micro row `r` of thread `t`.
__device__ __forceinline__ int micro_row(int t, int r) {
    return r / RUN * (TILE_ROWS / (MICRO / RUN)) + t * RUN + r % RUN;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
bitgemm_popc(const u8* __restrict__ a, const u8* __restrict__ b, int* __restrict__ acc,
             const Step* __restrict__ steps, const int2* __restrict__ blocks, int n_steps,
             int n_blocks, int n_splits, int n_stages, int a_tiles, int b_tiles,
             i64 acc_columns, i64 acc_stride, int symmetric) {
    __shared__ u32 words[2][N_PLANES][KC][TILE_ROWS];
    const Item item = locate_item(blockIdx.x / QUARTERS, blocks, n_blocks, n_splits, n_stages);
    const int tile_a = item.block_row * BLOCK_TILES + blockIdx.x % QUARTERS / BLOCK_TILES;
    const int tile_b = item.block_column * BLOCK_TILES + blockIdx.x % BLOCK_TILES;
    if (symmetric && tile_a > tile_b) return;
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;

    int d[MICRO][MICRO];
    #pragma unroll
    for (int x = 0; x < MICRO * MICRO; ++x) (&d[0][0])[x] = 0;

    for (int s = 0; s < n_steps; ++s) {
        const Step step = steps[s];
        #pragma unroll
        for (int x = 0; x < MICRO * MICRO; ++x) (&d[0][0])[x] *= step.multiplier;
        // Each thread loads the same chunks of the two tiles in every round: load `l` is one
        // 16-byte chunk of one row of one plane of one operand.
        uint4 next[N_LOADS];
        auto fetch = [&](int stage, int part) {
            #pragma unroll
            for (int l = 0; l < N_LOADS; ++l) {
                const int index = l * THREADS + threadIdx.x;
                const int row = index % TILE_ROWS;
                const int chunk = index / TILE_ROWS % (KC / 4);
                const int plane = index / TILE_ROWS / (KC / 4) % N_PLANES;
                const int side = index / TILE_ROWS / (KC / 4) / N_PLANES;
                const u8* tile = side == 0
                    ? packed_tile(a, FORM_XOR ? plane : step.plane_a, stage, tile_a, a_tiles,
                                  n_stages)
                    : packed_tile(b, FORM_XOR ? plane : step.plane_b, stage, tile_b, b_tiles,
                                  n_stages);
                const int position = (part * (KC / 4) + chunk) ^ (row & 7);
                next[l] = *reinterpret_cast<const uint4*>(
                    tile + row * STAGE_BYTES + position * CHUNK_BYTES);
            }
        };
        auto put = [&]() {
            #pragma unroll
            for (int l = 0; l < N_LOADS; ++l) {
                const int index = l * THREADS + threadIdx.x;
                const int row = index % TILE_ROWS;
                const int chunk = index / TILE_ROWS % (KC / 4);
                const int plane = index / TILE_ROWS / (KC / 4) % N_PLANES;
                const int side = index / TILE_ROWS / (KC / 4) / N_PLANES;
                u32(*target)[TILE_ROWS] = words[side][plane];
                target[chunk * 4 + 0][row] = next[l].x;
                target[chunk * 4 + 1][row] = next[l].y;
                target[chunk * 4 + 2][row] = next[l].z;
                target[chunk * 4 + 3][row] = next[l].w;
            }
        };
        const int first = item.first_stage * STAGE_STEPS, end = item.end_stage * STAGE_STEPS;
        if (first < end) fetch(first / STAGE_STEPS, first % STAGE_STEPS);
        for (int k = first; k < end; ++k) {
            __syncthreads();
            put();
            __syncthreads();
            if (k + 1 < end) fetch((k + 1) / STAGE_STEPS, (k + 1) % STAGE_STEPS);
            #pragma unroll 1
            for (int w = 0; w < KC; ++w) {
                u32 ra[N_PLANES][MICRO], rb[N_PLANES][MICRO];
                #pragma unroll
                for (int p = 0; p < N_PLANES; ++p)
                    #pragma unroll
                    for (int r = 0; r < MICRO; r += RUN) {
                        const uint4 x = *reinterpret_cast<const uint4*>(
                            &words[0][p][w][micro_row(ty, r)]);
                        const uint4 y = *reinterpret_cast<const uint4*>(
                            &words[1][p][w][micro_row(tx, r)]);
                        ra[p][r] = x.x, ra[p][r + 1] = x.y, ra[p][r + 2] = x.z, ra[p][r + 3] = x.w;
                        rb[p][r] = y.x, rb[p][r + 1] = y.y, rb[p][r + 2] = y.z, rb[p][r + 3] = y.w;
                    }
                #pragma unroll
                for (int i = 0; i < MICRO; ++i)
                    #pragma unroll
                    for (int j = 0; j < MICRO; ++j) {
#if FORM_XOR
                        const u32 xu = ra[0][i] ^ rb[0][j];
                        const u32 xv = ra[1][i] ^ rb[1][j];
#if MASKED
                        const u32 m = ra[2][i] & rb[2][j];
#else
                        const u32 m = ~0u;
#endif
                        if (W0) d[i][j] += W0 * __popc(m);
                        if (W1) d[i][j] += W1 * __popc((xu ^ xv) & m);
                        if (W2) d[i][j] += W2 * __popc(xu & xv & m);
#else
                        d[i][j] += __popc(ra[0][i] & rb[0][j]);
#endif
                    }
            }
        }
        if (step.output >= 0) {
            int* target = acc + step.output * acc_stride + (i64)tile_a * TILE_ROWS * acc_columns
                        + (i64)tile_b * TILE_ROWS;
            #pragma unroll
            for (int i = 0; i < MICRO; ++i)
                #pragma unroll
                for (int j = 0; j < MICRO; ++j)
                    atomicAdd(target + micro_row(ty, i) * acc_columns + micro_row(tx, j),
                              step.weight * d[i][j]);
        }
        __syncthreads();
    }
}
