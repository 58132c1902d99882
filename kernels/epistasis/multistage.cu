// multistage: tables and bounds of all pairs or triples, by mma.sync (sm_80 and later) or by AND +
// POPC on CUDA cores (any GPU).
//
// Formula   as in sm90_deep.cu, with the same arguments; epilogue of epilogue.cuh. POPC = 0:
//           mma.sync m16n8k256 .b1 .and.popc; POPC = 1: one POPC per word of 32 samples and count.
// Shapes    as in sm90_deep.cu.
// Threads   8 warps, 16 sites of y and 32 of z each (pairs: 64; with missing genotypes: 16, of one
//           site of the two alone: 32).
//           Persistent.
// Shared    cp.async pipeline of STAGES slots with the rows of y and z (POPC: one slot, filled
//           between two barriers, because a stage takes 32 000 cycles to compute); counts of a
//           chunk of combinations; triples: MARGIN_SETS sets of margins. On devices with little
//           shared memory (epistasis/shared_layout_plan.py) there is one set, behind another barrier,
//           and with STASH_IN_SLOTS the counts lie in slots that are free while a warp scores: all
//           of them for pairs; for triples the last one, which `start` leaves empty.
// Overflow  as in sm90_deep.cu.
//
// The POPC form has no NVIDIA-specific code, so it should compile under HIP with warps of 32; that
// was not tried. Compile with -DPOPC=0|1 -DSTAGES=.. -DSCRATCH_SHARED=0|1 -DMARGIN_SETS=1|2
// -DSTASH_IN_SLOTS=0|1 (with 0: three phases of triples score while stages are on their way)
// and the parameters of epilogue.cuh.

#include "../common.cuh"
#include "../ptx.cuh"
#include "epilogue.cuh"

constexpr int THREADS = WARPS * 32;
constexpr int A_BYTES = TILE_SITES * STATES * STAGE_BYTES, B_BYTES = Z_SITES * COLUMN_STATES * STAGE_BYTES;
constexpr int SLOT_BYTES = A_BYTES + B_BYTES;
constexpr int K_STEP_BYTES = STEP_BITS / 8, STEPS = STAGE_BYTES / K_STEP_BYTES;
constexpr int MARGIN_COUNTS = ORDER == 3 ? TILE_SITES * MARGINS_Y + Z_SITES * MARGINS_Z : 0;
constexpr int SLOTS_BYTES = STAGES * SLOT_BYTES, STASH_BYTES = WARPS * STASH_WORDS * 4;
// Where the counts that are being scored begin, and where they and the slots end.
constexpr int STASH_AT = !STASH_IN_SLOTS ? SLOTS_BYTES : ORDER == 3 ? SLOTS_BYTES - SLOT_BYTES : 0;
constexpr int MARGINS_AT =
    STASH_AT + STASH_BYTES > SLOTS_BYTES ? STASH_AT + STASH_BYTES : SLOTS_BYTES;
static_assert(THREADS == LAUNCH_THREADS &&
              1023 + MARGINS_AT + MARGIN_SETS * MARGIN_COUNTS * (int)sizeof(Count) +
                      SCRATCH_SHARED * LAUNCH_SCRATCH * 4 <= LAUNCH_SHARED,
              "scan_shape in epistasis/scan_plan.py is for another kernel");
static_assert(!STASH_IN_SLOTS || ORDER == 2 || !BY_STATE,
              "stages are on their way while the first phases score");
constexpr int FRAGMENTS = Y_GROUPS * STATES / 2;  // of 16 rows, of one warp

__device__ __forceinline__ int popcount(uint4 a, uint4 b) {
    return __popc(a.x & b.x) + __popc(a.y & b.y) + __popc(a.z & b.z) + __popc(a.w & b.w);
}

#if !POPC
__device__ __forceinline__ void multiply(int* d, const u32 (&a)[4], u32 b0, u32 b1) {
    multiply_bits(d, a[0], a[1], a[2], a[3], b0, b1);
}
#endif

// Mainloop over the stages of one x (or of all samples): fetched in order, multiplied in steps.
struct Mainloop {
    u8* slots;
    const u8 *from_a, *from_b;
    i64 stride_a, stride_b;
    int n_stages, fetched, reached, step;
    int warp, lane;

    __device__ __forceinline__ void fetch() {
        if (fetched < n_stages) {
            u8* slot = slots + fetched % STAGES * SLOT_BYTES;
            const i64 at = fetched * stride_a, at_b = MIXED ? fetched * stride_b : at;
            #pragma unroll
            for (int c = 0; c < SLOT_BYTES; c += THREADS * 16) {
                const u8* from = c < A_BYTES ? from_a + at + c : from_b + at_b + (c - A_BYTES);
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
        commit_copies();
#endif
    }
    // The stages from `stage` on; strides of the rows of y and z.
    __device__ __forceinline__ void start(const u8* a, i64 a_stride, const u8* b, i64 b_stride,
                                          i64 stage, int stages) {
        from_a = a + stage * a_stride;
        from_b = b + stage * (MIXED ? b_stride : a_stride);
        stride_a = a_stride;
        stride_b = b_stride;
        n_stages = stages;
        fetched = step = 0;
        reached = -1;
        __syncthreads();
        if (!POPC)
            for (int s = 0; s < STAGES - 1; ++s) fetch();
    }
    // Waits for the next stage, then refills the slot that all warps have finished reading.
    __device__ __forceinline__ void next_stage() {
        ++reached;
#if POPC
        __syncthreads();
        fetch();
        __syncthreads();
#else
        wait_copies<STAGES - 2>();
        __syncthreads();
        fetch();
#endif
    }

    // acc += popcounts of one step of the current stage.
    template <int PART>
    __device__ __forceinline__ void multiply_step(int (&acc)[N_ACC], const u8* slot, int chunk) {
        constexpr int FIRST = PART * (N_ACC / PRODUCTS);
        const u8* a = slot + warp_y(warp) * STATES * STAGE_BYTES;
        const u8* b = slot + A_BYTES + warp_z(warp) * COLUMN_STATES * STAGE_BYTES;
#if POPC
        #pragma unroll 1
        for (int half = 0; half < 2; ++half) {
            uint4 fa[2 * FRAGMENTS];
            #pragma unroll
            for (int r = 0; r < 2 * FRAGMENTS; ++r)
                fa[r] = *reinterpret_cast<const uint4*>(
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
                    for (int r = 0; r < 2 * FRAGMENTS; ++r)
                        acc[FIRST + (r / 2 * N_TILES + n) * 4 + e + r % 2 * 2] +=
                            popcount(fa[r], fb);
                }
        }
#else
        u32 fa[FRAGMENTS][4], fb[N_TILES / 2][4];
        const u32 row_a = (u32)__cvta_generic_to_shared(a) + lane % 16 * STAGE_BYTES
                        + ((chunk + lane / 16) ^ (lane % 8)) * CHUNK_BYTES;
        const u32 row_b = (u32)__cvta_generic_to_shared(b)
                        + (lane / 16 * 8 + lane % 8) * STAGE_BYTES
                        + ((chunk + lane / 8 % 2) ^ (lane % 8)) * CHUNK_BYTES;
        #pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m) load_matrices(fa[m], row_a + m * 16 * STAGE_BYTES);
        #pragma unroll
        for (int n = 0; n < N_TILES / 2; ++n)
            load_matrices(fb[n], row_b + n * 16 * STAGE_BYTES);
        #pragma unroll
        for (int m = 0; m < FRAGMENTS; ++m)
            #pragma unroll
            for (int n = 0; n < N_TILES; ++n)
                multiply(acc + FIRST + (m * N_TILES + n) * 4, fa[m], fb[n / 2][n % 2 * 2],
                         fb[n / 2][n % 2 * 2 + 1]);
#endif
    }
    // acc += popcounts of the steps up to `end`; PART: the set of accumulators.
    template <int PART>
    __device__ __forceinline__ void advance(int (&acc)[N_ACC], int end) {
        #pragma unroll 1
        while (step < end) {
            if (step % STEPS == 0) next_stage();
            const u8* slot = slots + reached % STAGES * SLOT_BYTES;
            const int stop = min(end, (step / STEPS + 1) * STEPS);
            if (!POPC && stop - step == STEPS) {
                #pragma unroll
                for (int q = 0; q < STEPS; ++q) multiply_step<PART>(acc, slot, 2 * q);
            } else {
                #pragma unroll 1
                for (int q = step % STEPS; q < step % STEPS + stop - step; ++q)
                    multiply_step<PART>(acc, slot, 2 * q);
            }
            step = stop;
        }
    }
    // Controls, then cases: acc = controls << 16 | cases, or a set of each. ends: of the two segments.
    template <int PART>
    __device__ __forceinline__ void count(int (&acc)[N_ACC], const int* ends) {
#if SPLIT_ACCUMULATORS
        #pragma unroll
        for (int j = 0; j < N_ACC; ++j) acc[j] = 0;
        advance<0>(acc, ends[0]);
        advance<1>(acc, ends[1]);
#else
        constexpr int FIRST = PART * (N_ACC / PRODUCTS), LAST = FIRST + N_ACC / PRODUCTS;
        #pragma unroll
        for (int j = FIRST; j < LAST; ++j) acc[j] = 0;
        advance<PART>(acc, ends[0]);
        #pragma unroll
        for (int j = FIRST; j < LAST; ++j) acc[j] <<= 16;
        advance<PART>(acc, ends[1]);
#endif
    }
};

#if RESIDUALS
// People, then their levels by Horner's rule (parts.cuh).
__device__ __forceinline__ void count_levels(Mainloop& mainloop, int (&acc)[N_ACC],
                                             const int* ends) {
    #pragma unroll
    for (int j = 0; j < N_ACC; ++j) acc[j] = 0;
    mainloop.advance<0>(acc, ends[0]);
    #pragma unroll 1
    for (int s = 1; s < SEGMENTS; ++s) {
        #pragma unroll
        for (int j = N_ACC / PRODUCTS; j < N_ACC; ++j) acc[j] *= 2;
        mainloop.advance<1>(acc, ends[s]);
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int4* __restrict__ items, int n_items,
               int x_first, int first_site, int padded_sites, const u32* __restrict__ xy,
               u32* yz, u32* scratch, u32*, const Scan* __restrict__ given) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    const Place place{(int)threadIdx.x / 32, (int)threadIdx.x % 32};
    u32* stash = reinterpret_cast<u32*>(aligned + STASH_AT) + place.warp * STASH_WORDS;
    const Scan& scan = *given;
    const i64 stride = (i64)(padded_sites - first_site) * STATES * STAGE_BYTES;
    Mainloop mainloop;
    mainloop.slots = aligned;
    mainloop.warp = place.warp;
    mainloop.lane = place.lane;
    int acc[N_ACC];
#if ORDER == 3
    Count* margins = reinterpret_cast<Count*>(aligned + MARGINS_AT);
#if BY_STATE || QUADS
    if (SCRATCH_SHARED)
        scratch = reinterpret_cast<u32*>(margins + MARGIN_SETS * MARGIN_COUNTS);
    else
        scratch += (i64)blockIdx.x * WARPS * SCRATCH_WORDS;
    scratch += place.warp * SCRATCH_WORDS;
#endif
#endif
    for (int i = blockIdx.x; i < n_items; i += gridDim.x) {
        const int tile_y = items[i].x, first_y = tile_y * TILE_SITES;
        const int first_z = items[i].y * Z_SITES;
        const u8* from_a = packed + (i64)(first_y - first_site) * STATES * STAGE_BYTES;
        const Columns columns(packed, first_z, first_site, padded_sites, scan);
#if ORDER == 3
        const int begin = items[i].z * GIVEN;
        const int last = (min(x_first + items[i].w, (tile_y + 1) * TILE_SITES - 1) - x_first) * GIVEN;
        const u32* tables = yz + table_at(tile_y, first_z, padded_sites)
                          + place.warp * (PAIRS * WORDS * CELLS * 32);
        MarginMaker<Z_SITES> maker(threadIdx.x, first_y, first_z, scan);
        auto start = [&](int operand) {
            if (operand >= last) {
                if (STASH_IN_SLOTS) __syncthreads();  // the last stage has been read
                return;
            }
            const i64 stage = stages[operand];
            maker.load(xy, operand, padded_sites, scan);
            mainloop.start(from_a, stride, columns.from, columns.stride, stage,
                       stages[operand + 1] - (int)stage);
        };
        start(begin);
        for (int operand = begin; operand < last; ++operand) {
            const int x = x_of(x_first, operand), given = given_of(operand);
            const u32* table = QUADS ? tables + given * scan.table_words : tables;
            if (MARGIN_SETS == 1) __syncthreads();  // the margins of the operand before have been read
            Count* margins_y = margins + operand % MARGIN_SETS * MARGIN_COUNTS;
            Count* margins_z = margins_y + TILE_SITES * MARGINS_Y;
            maker.make(x, scan, margins_y, margins_z, given);
            __syncthreads();
            const int* ends = segments + (i64)operand * (SEGMENTS + 1) + 1;
#if RESIDENT_SUMS
            float* values = reinterpret_cast<float*>(scratch);
            mainloop.count<0>(acc, ends);
            mainloop.count<1>(acc, ends + 2);
            score_first_state(acc, stash, values, margins_y, margins_z, place, scan);
            #pragma unroll
            for (int j = 0; j < N_ACC / 2; ++j) acc[j] += acc[N_ACC / 2 + j];
            mainloop.count<1>(acc, ends + 4);
            start(operand + 1);
            score_other_states(acc, stash, values, table, margins_y, margins_z, place, x, first_y,
                               first_z, scan);
#elif BY_STATE
            #pragma unroll 1
            for (int phase = 0; phase < X_STATES; ++phase) {
                const int g = stored_state(phase);
                mainloop.count<0>(acc, ends + 2 * phase);
                if (phase == X_STATES - 1) start(operand + 1);
                score_phase(g, phase > 0, phase == X_STATES - 1, acc, stash, scratch, table, margins_y,
                            margins_z, place, x, first_y, first_z, scan, given);
            }
#else
            mainloop.count<1>(acc, ends);  // state 1 is the first part
            mainloop.count<0>(acc, ends + 2);
            start(operand + 1);
            score_triples(acc, stash, table, margins_y, margins_z, place, x, first_y, first_z, scan,
                          given, reinterpret_cast<float*>(scratch));
#endif
        }
#else
        mainloop.start(from_a, stride, columns.from, columns.stride, 0, stages[1]);
#if RESIDUALS
        count_levels(mainloop, acc, segments + 1);
#else
        mainloop.count<0>(acc, segments + 1);
#endif
        if (STASH_IN_SLOTS) __syncthreads();
        score_pairs(acc, stash, yz, padded_sites, place, tile_y, first_z, scan);
#endif
#if !POPC
        wait_copies<0>();
#endif
    }
}
