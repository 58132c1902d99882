// matches: best matches of a few query profiles in a large database.
//
// scan_profiles
// Formula   matches[q][i] = sum over genotype classes of popcount(Q[q] & D[i]), called likewise;
//           key = floor((called - matches) * 2^20 / called) << 40 | i. Keys below `limit[q]` are
//           appended to the candidates of the query, of which `keep_best` keeps the k smallest.
// Source    FastID identity search (Ricke 2017, IEEE HPEC). Instruction mma.sync m16n8k256 .b1
//           .and.popc.
// Shapes    words (n_profiles, N_PLANES, row_words) uint64, row_words even; N_PLANES 1: one bit per
//           site (has the allele or not), 2: u, v, 3: u, v, c. queries (letters, 32, query_words)
//           32-bit words, rows of whole 64 bytes, zero beyond the last site; letters u, z / z, e,
//           v / z, e, v, c, all masked by called.
// Threads   8 warps; a warp computes 16 profiles x 32 queries at a time. The order of bits along k
//           is free as long as both operands agree: the 16-byte load of a lane is two k steps, so
//           nothing is permuted and nothing passes through shared memory. Memory bound: the
//           database is read once.
// Shared    none; keep_best: the keys of one query.
// Overflow  called < 2^31; more candidates of a query than fit raise `overflow`, and the host scans
//           again in pieces that cannot overflow.
//
// Compile with -DN_PLANES=1|2|3.

#include "../ptx.cuh"
#include "../types.cuh"

#if !defined(QUERIES) || !defined(CANDIDATES) || !defined(PROFILES_A_STEP) || \
    !defined(SCAN_WARPS) || !defined(KEEP_THREADS) || !defined(INDEX_BITS) || \
    !defined(SHARE_BITS) || !defined(QUERY_BITS)
#error "QUERIES ... QUERY_BITS come from relatives/matches_plan.py"
#endif

constexpr int QUERY_TILES = QUERIES / 8;
constexpr int N_LETTERS = N_PLANES == 1 ? 2 : N_PLANES == 2 ? 3 : 4;
constexpr float SHARE_UNIT = 1 << SHARE_BITS;

// Letters of four words of a profile; z is 1 in the padding, where the letters of queries are 0.
__device__ __forceinline__ void derive(const uint4 (&p)[N_PLANES], uint4 (&letter)[N_LETTERS]) {
    const u32* from[N_PLANES];
    u32* to[N_LETTERS];
    #pragma unroll
    for (int i = 0; i < N_PLANES; ++i) from[i] = reinterpret_cast<const u32*>(&p[i]);
    #pragma unroll
    for (int i = 0; i < N_LETTERS; ++i) to[i] = reinterpret_cast<u32*>(&letter[i]);
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
#if N_PLANES == 1
        to[0][w] = from[0][w];
        to[1][w] = ~from[0][w];
#elif N_PLANES == 2
        to[0][w] = ~from[0][w];
        to[1][w] = from[0][w] & ~from[1][w];
        to[2][w] = from[1][w];
#else
        const u32 c = from[2][w];
        to[0][w] = c & ~from[0][w];
        to[1][w] = c & from[0][w] & ~from[1][w];
        to[2][w] = c & from[1][w];
        to[3][w] = c;
#endif
    }
}

__device__ __forceinline__ void append(int matches, int called, int min_called, float limit_share,
                                       u64 limit, i64 index, u64* candidates, u32* count) {
    const int mismatches = called - matches;
    if (called < min_called || (float)mismatches > (float)called * limit_share) return;
    const u64 share = ((u64)mismatches << SHARE_BITS) / (u64)called;
    const u64 key = share << INDEX_BITS | (u64)index;
    if (key >= limit) return;
    const u32 place = atomicAdd(count, 1u);
    if (place < CANDIDATES) candidates[place] = key;
}

extern "C" __global__ void __launch_bounds__(SCAN_WARPS * 32, 2)
scan_profiles(const u64* __restrict__ words, const u32* __restrict__ queries,
              const u64* __restrict__ limits, u64* __restrict__ candidates,
              u32* __restrict__ counts, i64 first_row, i64 n_rows, i64 first_index, int row_words,
              int query_words, int n_sites, int min_called) {
    const int lane = threadIdx.x % 32, group = lane / 4, part = lane % 4;
    const i64 warp = (i64)blockIdx.x * SCAN_WARPS + threadIdx.x / 32;
    const i64 n_warps = (i64)gridDim.x * SCAN_WARPS;
    const int chunks = query_words / (QUERY_BITS / 32);
    const int row_quads = row_words / 2;          // 16-byte loads of a plane
    u64 limit[QUERY_TILES][2];
    float share[QUERY_TILES][2];
    #pragma unroll
    for (int t = 0; t < QUERY_TILES; ++t)
        #pragma unroll
        for (int s = 0; s < 2; ++s) {
            limit[t][s] = limits[t * 8 + part * 2 + s];
            // rounded up: a fast filter before the exact key
            share[t][s] = ((float)(limit[t][s] >> INDEX_BITS) + 1.0f) * (1.00001f / SHARE_UNIT);
        }
    for (i64 tile = warp; tile * PROFILES_A_STEP < n_rows; tile += n_warps) {
        const i64 upper = tile * PROFILES_A_STEP + group, lower = upper + 8;
        const uint4* row_a = reinterpret_cast<const uint4*>(words + (first_row + upper) * N_PLANES
                                                            * row_words);
        const uint4* row_b = reinterpret_cast<const uint4*>(words + (first_row + lower) * N_PLANES
                                                            * row_words);
        const bool there_a = upper < n_rows, there_b = lower < n_rows;
        int matches[QUERY_TILES][4] = {}, called[QUERY_TILES][4] = {};
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const int quad = chunk * 4 + part;
            uint4 plane_a[N_PLANES], plane_b[N_PLANES], a[N_LETTERS], b[N_LETTERS];
            #pragma unroll
            for (int p = 0; p < N_PLANES; ++p) {
                const bool inside = quad < row_quads;
                plane_a[p] = there_a && inside ? row_a[p * row_quads + quad] : uint4{0, 0, 0, 0};
                plane_b[p] = there_b && inside ? row_b[p * row_quads + quad] : uint4{0, 0, 0, 0};
            }
            derive(plane_a, a);
            derive(plane_b, b);
            #pragma unroll
            for (int l = 0; l < N_LETTERS; ++l)
                #pragma unroll
                for (int t = 0; t < QUERY_TILES; ++t) {
                    const uint4 q = __ldg(reinterpret_cast<const uint4*>(
                        queries + ((i64)l * QUERIES + t * 8 + group) * query_words + quad * 4));
                    int(&d)[4] = N_PLANES == 3 && l == 3 ? called[t] : matches[t];
                    multiply_bits(d, a[l].x, b[l].x, a[l].y, b[l].y, q.x, q.y);
                    multiply_bits(d, a[l].z, b[l].z, a[l].w, b[l].w, q.z, q.w);
                }
        }
        #pragma unroll
        for (int t = 0; t < QUERY_TILES; ++t)
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
                const int q = t * 8 + part * 2 + s % 2;
                const i64 row = s < 2 ? upper : lower;
                if (row < n_rows)
                    append(matches[t][s], N_PLANES == 3 ? called[t][s] : n_sites, min_called,
                           share[t][s % 2], limit[t][s % 2], first_index + row,
                           candidates + (i64)q * CANDIDATES, counts + q);
            }
    }
}

// keep_best: the k smallest candidates of each query, sorted, and the new limit.
// Threads   one thread block of 1 024 per query; bitonic sort of CANDIDATES keys in shared memory.
extern "C" __global__ void __launch_bounds__(KEEP_THREADS)
keep_best(u64* __restrict__ candidates, u32* __restrict__ counts, u64* __restrict__ limits,
          int* __restrict__ overflow, int k) {
    __shared__ u64 keys[CANDIDATES];
    u64* own = candidates + (i64)blockIdx.x * CANDIDATES;
    const u32 count = counts[blockIdx.x];
    if (count > CANDIDATES && threadIdx.x == 0) *overflow = 1;
    u32 size = 2;
    while (size < count && size < CANDIDATES) size *= 2;
    for (u32 i = threadIdx.x; i < size; i += KEEP_THREADS) keys[i] = i < count ? own[i] : ~0ull;
    __syncthreads();
    for (u32 run = 2; run <= size; run *= 2)
        for (u32 step = run / 2; step > 0; step /= 2) {
            for (u32 i = threadIdx.x; i < size; i += KEEP_THREADS) {
                const u32 j = i ^ step;
                if (j > i) {
                    const u64 x = keys[i], y = keys[j];
                    if ((x > y) == ((i & run) == 0)) {
                        keys[i] = y;
                        keys[j] = x;
                    }
                }
            }
            __syncthreads();
        }
    for (u32 i = threadIdx.x; i < (u32)k; i += KEEP_THREADS) own[i] = i < size ? keys[i] : ~0ull;
    if (threadIdx.x == 0) {
        counts[blockIdx.x] = min(count, (u32)k);
        if (count >= (u32)k) limits[blockIdx.x] = keys[k - 1];
    }
}
