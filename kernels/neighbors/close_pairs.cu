// close_pairs: pairs of people that are close, from a tile of counts, and their exact counts.
//
// select_close
// Formula   N_OUTPUTS 1: squared distance <= the smaller limit of both people; 5 (ibs0, both_het,
//           het_a, het_b, called): mismatches + 3 ibs0 <= slope * min(het_a, het_b), or mismatches
//           <= share * called (share negative: never), and called >= least_called
//           (`engine.relatives.Closeness`).
// Shapes    see sums.cuh; limits (n) int32; pairs (capacity) int2 of row and column within the
//           tile, in any order; more are counted and dropped.
// Threads   256; a thread holds 4 columns and walks over FILTER_ROWS rows. Memory bound.
// count_pairs
// Formula   counts of KINSHIP of some pairs, from their planes; one warp a pair.
// count_own
// Formula   heterozygous and called sites of each person; one warp a person.
// Shapes    words (people, n_planes, row_words) uint64; out int64 (5, n_pairs), (2, n_people).
// Overflow  counts of one lane < 2^31.
//
// Compile with -DN_OUTPUTS=1|5.

#include "sums.cuh"

#if !defined(FILTER_THREADS) || !defined(FILTER_ROWS)
#error "FILTER_THREADS, FILTER_ROWS come from engine/gpu/layout.py"
#endif

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
select_close(const int* acc, const i64* total, i64 slot_stride, i64 pitch, const int* plan,
             const int* row_terms, const int* column_terms, int n_rows, int n_columns,
             int first_row, int first_column, int own, const int* __restrict__ limits,
             double slope, double share, int least_called, int2* pairs, u64* count, u64 capacity) {
    const Sums sums{acc,       total,        slot_stride, pitch,    plan,
                    row_terms, column_terms, n_rows,      n_columns};
    const int j = (blockIdx.x * FILTER_THREADS + threadIdx.x) * 4;
    const int row0 = blockIdx.y * FILTER_ROWS, row1 = min(row0 + FILTER_ROWS, n_rows);
    if (j >= n_columns || (own && row0 >= j + 3)) return;
    int columns[N_OUTPUTS][4];
    read_columns(sums, j, columns);
    int column_limit[4];
    #pragma unroll
    for (int q = 0; q < 4; ++q)
        column_limit[q] = j + q < n_columns ? limits[first_column + j + q] : -1;
    #pragma unroll 2
    for (int i = row0; i < row1; ++i) {
        int x[N_OUTPUTS][4];
        read_sums(sums, i, j, columns, x);
        const int row_limit = limits[first_row + i];
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            if (j + q >= n_columns || (own && j + q <= i)) continue;
#if N_OUTPUTS == 1
            const bool close = x[0][q] <= min(row_limit, column_limit[q]);
#else
            const int mismatches = x[0][q] + x[2][q] + x[3][q] - 2 * x[1][q];
            const double least = min(x[2][q], x[3][q]);
            const bool close = ((double)(mismatches + 3 * x[0][q]) <= __dmul_rn(slope, least) ||
                                (share >= 0 && mismatches <= __dmul_rn(share, x[4][q]))) &&
                               x[4][q] >= least_called;
#endif
            if (!close) continue;
            const u64 place = atomicAdd(count, 1ull);
            if (place < capacity) pairs[place] = {i, j + q};
        }
    }
}

__device__ __forceinline__ int sum_of_warp(int value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

// Called, heterozygous, ALT and REF homozygous genotypes of one word.
struct Word {
    u64 called, het, alt, ref;
};

__device__ __forceinline__ Word read_word(const u64* person, int n_planes, i64 row_words, i64 word,
                                          i64 n_sites) {
    const i64 left = n_sites - word * 64;
    const u64 valid = left >= 64 ? ~0ull : (1ull << left) - 1;
    const u64 called = n_planes > 2 ? person[2 * row_words + word] & valid : valid;
    const u64 u = person[word], v = person[row_words + word];
    return {called, u & ~v & called, v & called, ~u & called};
}

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
count_pairs(const u64* __restrict__ words_a, const u64* __restrict__ words_b, int n_planes,
            i64 row_words, i64 n_sites, const int2* __restrict__ pairs, i64 n_pairs,
            i64* __restrict__ out) {
    const i64 pair = ((i64)blockIdx.x * FILTER_THREADS + threadIdx.x) / 32;
    if (pair >= n_pairs) return;
    const u64* a = words_a + (i64)pairs[pair].x * n_planes * row_words;
    const u64* b = words_b + (i64)pairs[pair].y * n_planes * row_words;
    const int lane = threadIdx.x % 32;
    int found[5] = {};
    for (i64 word = lane; word * 64 < n_sites; word += 32) {
        const Word x = read_word(a, n_planes, row_words, word, n_sites);
        const Word y = read_word(b, n_planes, row_words, word, n_sites);
        found[0] += __popcll((x.ref & y.alt) | (x.alt & y.ref));
        found[1] += __popcll(x.het & y.het);
        found[2] += __popcll(x.het & y.called);
        found[3] += __popcll(x.called & y.het);
        found[4] += __popcll(x.called & y.called);
    }
    #pragma unroll
    for (int o = 0; o < 5; ++o) {
        const int sum = sum_of_warp(found[o]);
        if (lane == o) out[o * n_pairs + pair] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
count_own(const u64* __restrict__ words, int n_planes, i64 row_words, i64 n_sites, i64 n_people,
          i64* __restrict__ out) {
    const i64 person = ((i64)blockIdx.x * FILTER_THREADS + threadIdx.x) / 32;
    if (person >= n_people) return;
    const int lane = threadIdx.x % 32;
    int het = 0, called = 0;
    for (i64 word = lane; word * 64 < n_sites; word += 32) {
        const Word x = read_word(words + person * n_planes * row_words, n_planes, row_words, word,
                                 n_sites);
        het += __popcll(x.het);
        called += __popcll(x.called);
    }
    het = sum_of_warp(het);
    called = sum_of_warp(called);
    if (!lane) out[person] = het;
    if (lane == 1) out[n_people + person] = called;
}
