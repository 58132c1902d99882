// sm90_wgmma: warp-specialised bit-GEMM on Hopper's tensor cores.
//
// Formula   outputs[o][i][j] += sum over the steps of o of weight * popcount(A[i] & B[j])
//           (Program in common.cuh), for the listed 256 x 256 blocks of the result.
// Source    kernels/README.md, "From terms to products".
//           Instruction wgmma.mma_async m64n256k256 .b1 .and.popc, sm_90a.
// Shapes    a, b packed planes (common.cuh) of a_tiles and b_tiles tiles; acc (outputs, padded
//           rows of a, acc_columns) int32, acc_stride elements between two outputs; blocks
//           (n_blocks, 2) int32.
// Threads   3 warpgroups: a producer and two consumers of 64 x 256 results each, 128 accumulators
//           per thread. A CTA computes 128 x 256 results; the CTAs of a cluster of 2 share the 256
//           columns of one block of the result, and each multicasts half of B. Persistent.
// Shared    pipeline of STAGES slots of 48 KiB: one tile of A, two tiles of B, 1 024 sites each; a
//           full and an empty mbarrier per slot.
// Overflow  int32, see common.cuh.
//
// With -DR2 the epilogue turns the one output, a product of sites without missing genotypes, into
// squared correlations (n P - sum a sum b)^2 / (var a var b) and stores float32 in place of acc, so
// that no int32 sums pass through memory; n_splits must be 1.
//
// Compile with -DSTAGES=.. (slots that fit), -DCLUSTER=1|2, -DLOCKSTEP=.. (0: off), -DR2=0|1.

#include "../sm90.cuh"

#if !defined(MOMENTS_BYTES)
#error "MOMENTS_BYTES comes from engine/variants.py"
#endif

#if !defined(LAUNCH_THREADS) || !defined(LAUNCH_PARTS) || !defined(LAUNCH_SHARED)
#error "LAUNCH_THREADS, LAUNCH_PARTS and LAUNCH_SHARED come from engine/variants.py"
#endif

constexpr int CONSUMERS = 2;
constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
constexpr int CONSUMER_WARPS = CONSUMERS * WARPGROUP / 32;
constexpr int CONSUMER_ROWS = TILE_ROWS / CONSUMERS;
constexpr int N_ACC = 128;                          // 64 x 256 results / 128 threads
constexpr int A_BYTES = TILE_BYTES;
constexpr int B_BYTES = BLOCK_TILES * TILE_BYTES;
constexpr int SLOT_BYTES = A_BYTES + B_BYTES;
constexpr int K_STEP_BYTES = 256 / 8;               // depth of one wgmma
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

static_assert(THREADS == LAUNCH_THREADS && BLOCK_TILES == LAUNCH_PARTS &&
              1023 + STAGES * (SLOT_BYTES + 16) <= LAUNCH_SHARED,
              "launch_shape in engine/variants.py is for another kernel");

#ifndef R2
#define R2 0
#endif

// A site: sum of its ALT counts, and 1 / sqrt(n sum a^2 - (sum a)^2), NaN where it does not vary.
struct Moments {
    int sum;
    float scale;
};
static_assert(sizeof(Moments) == MOMENTS_BYTES, "engine/site_pairs_gpu.py writes Moments");

__device__ __forceinline__ float squared_correlation(int product, Moments a, Moments b, int n) {
    const i64 covariance = (i64)n * product - (i64)a.sum * b.sum;
    const float r = (float)covariance * a.scale * b.scale;
    return r * r;
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
bitgemm_wgmma(const u8* __restrict__ a, const u8* __restrict__ b, int* __restrict__ acc,
              const Step* __restrict__ steps, const int2* __restrict__ blocks, int n_steps,
              int n_blocks, int n_splits, int n_stages, int a_tiles, int b_tiles,
              i64 acc_columns, i64 acc_stride, int symmetric, u32* progress
#if R2
              , const Moments* __restrict__ moments_a, const Moments* __restrict__ moments_b, int n,
              int scale
#endif
) {
    extern __shared__ u8 shared[];
    const u32 slots = ((u32)__cvta_generic_to_shared(shared) + 1023) & ~1023u;
    const u32 full = slots + STAGES * SLOT_BYTES;
    const u32 empty = full + STAGES * 8;
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, CLUSTER * CONSUMER_WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    }
    cluster_sync();

    // A cluster computes whole blocks of the result; a single CTA computes halves of them.
    constexpr int HALVES = BLOCK_TILES / CLUSTER;
    const int n_items = n_blocks * n_splits * HALVES;
    const int warpgroup = threadIdx.x / WARPGROUP;
    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(PRODUCER_REGISTERS));
        if (threadIdx.x == 0) {
            Ring<STAGES> ring;  // producer and consumers visit the slots in the same order
            Lockstep<LOCKSTEP> lockstep{progress};
            for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
                const Item item = locate_item(i / HALVES, blocks, n_blocks, n_splits, n_stages);
                const int half = CLUSTER == 1 ? i % HALVES : rank;
                for (int s = 0; s < n_steps; ++s) {
                    const u8* from_a = packed_tile(a, steps[s].plane_a, item.first_stage,
                                                   item.block_row * BLOCK_TILES + half, a_tiles,
                                                   n_stages);
                    const u8* from_b = packed_tile(b, steps[s].plane_b, item.first_stage,
                                                   item.block_column * BLOCK_TILES, b_tiles,
                                                   n_stages);
                    for (int k = item.first_stage; k < item.end_stage; ++k) {
                        const u32 slot = slots + ring.slot * SLOT_BYTES;
                        const u32 ready = full + 8 * ring.slot;
                        barrier_wait(empty + 8 * ring.slot, ring.parity ^ 1);
                        barrier_expect(ready, SLOT_BYTES);
                        copy_tile(slot, from_a, ready);
                        if (CLUSTER == 1) {
                            copy_tile(slot + A_BYTES, from_b, ready);
                            copy_tile(slot + A_BYTES + TILE_BYTES, from_b + TILE_BYTES, ready);
                        } else {
                            copy_tile_to_all(slot + A_BYTES + rank * TILE_BYTES,
                                             from_b + rank * TILE_BYTES, ready);
                        }
                        from_a += (i64)a_tiles * TILE_BYTES;
                        from_b += (i64)b_tiles * TILE_BYTES;
                        ring.advance();
                        lockstep.step();
                    }
                }
            }
            lockstep.finish();
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(CONSUMER_REGISTERS));
        const int consumer = warpgroup - 1;
        const int warp = threadIdx.x % WARPGROUP / 32;
        const int lane = threadIdx.x % 32;
        Ring<STAGES> ring;
        int d[N_ACC];
        #pragma unroll
        for (int j = 0; j < N_ACC; ++j) d[j] = 0;
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const Item item = locate_item(i / HALVES, blocks, n_blocks, n_splits, n_stages);
            const int half = CLUSTER == 1 ? i % HALVES : rank;
            for (int s = 0; s < n_steps; ++s) {
                const Step step = steps[s];
                #pragma unroll
                for (int j = 0; j < N_ACC; ++j) d[j] *= step.multiplier;
                int previous = -1;
                for (int k = item.first_stage; k < item.end_stage; ++k) {
                    const u32 slot_a = slots + ring.slot * SLOT_BYTES
                                     + consumer * CONSUMER_ROWS * STAGE_BYTES;
                    const u32 slot_b = slots + ring.slot * SLOT_BYTES + A_BYTES;
                    barrier_wait(full + 8 * ring.slot, ring.parity);
                    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
                    #pragma unroll
                    for (int q = 0; q < STAGE_BYTES / K_STEP_BYTES; ++q)
                        multiply_256<0>(d, describe(slot_a + q * K_STEP_BYTES),
                                        describe(slot_b + q * K_STEP_BYTES));
                    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
                    // one group stays in flight; the slot of the previous one can be refilled
                    asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
                    if (previous >= 0 && lane < CLUSTER)
                        barrier_arrive(empty + 8 * previous, lane);
                    previous = ring.slot;
                    ring.advance();
                }
                asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
                if (previous >= 0 && lane < CLUSTER)
                    barrier_arrive(empty + 8 * previous, lane);

                if (step.output >= 0) {
                    const i64 row = (i64)(item.block_row * BLOCK_TILES + half) * TILE_ROWS
                                  + consumer * CONSUMER_ROWS + warp * 16 + lane / 4;
                    const i64 column = (i64)item.block_column * BLOCK_ROWS + lane % 4 * 2;
                    int* upper = acc + step.output * acc_stride + row * acc_columns + column;
                    int* lower = upper + 8 * acc_columns;
#if R2
                    const Moments high = moments_a[row], low = moments_a[row + 8];
                    #pragma unroll
                    for (int j = 0; j < N_ACC / 4; ++j) {
                        const Moments left = moments_b[column + 8 * j];
                        const Moments right = moments_b[column + 8 * j + 1];
                        *reinterpret_cast<float2*>(upper + 8 * j) = {
                            squared_correlation(scale * d[4 * j], high, left, n),
                            squared_correlation(scale * d[4 * j + 1], high, right, n)};
                        *reinterpret_cast<float2*>(lower + 8 * j) = {
                            squared_correlation(scale * d[4 * j + 2], low, left, n),
                            squared_correlation(scale * d[4 * j + 3], low, right, n)};
                    }
#else
                    #pragma unroll
                    for (int j = 0; j < N_ACC / 4; ++j) {
                        atomicAdd(upper + 8 * j, step.weight * d[4 * j]);
                        atomicAdd(upper + 8 * j + 1, step.weight * d[4 * j + 1]);
                        atomicAdd(lower + 8 * j, step.weight * d[4 * j + 2]);
                        atomicAdd(lower + 8 * j + 1, step.weight * d[4 * j + 3]);
                    }
#endif
                }
            }
        }
    }
    // no CTA may exit while another one of the cluster can still write to its shared memory
    cluster_sync();
}
