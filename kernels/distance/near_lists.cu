// nearest: candidates for the lists of nearest people from a tile of counts; keeping the nearest.
//
// filter_counts
// Formula   distance of a pair by FORM: sqrt(difference * times / (share * called)), the same
//           without the root, or of genotypes divided by their sums
//           (`distance.matrix.metric_distances`); infinite below `least_called`. IEEE float64,
//           each operation rounded once, no contraction: the bytes of the CPU. A pair is judged
//           first by difference <= limit * called in float32, with limits rounded up. The distance
//           of matches is a whole number, floor(mismatches * 2^SHARE_BITS / called), from counts of
//           KINSHIP; pairs below `least_called` are none.
// Source    kernels/README.md, "Nearest people and close relatives".
// Shapes    see sums.cuh and lists.cuh; people of rows first_row + i, of columns first_column + j;
//           pairs of one band count (lists.cuh), where the tile is a block's `own` those i < j.
//           sides: whose lists the pairs are offered to, 1 those of the rows, 2 of the columns.
// Threads   256; a thread holds 4 columns and walks over FILTER_ROWS rows. Memory bound: one read
//           of the accumulators.
// keep_nearest
// Threads   one warp a person: bitonic sort of list and candidates in shared memory.
// Shared    LIST_LENGTH entries of 16 bytes, of matches 20.
//
// Compile with -DFORM=..., -DN_OUTPUTS=...

#include "lists.cuh"
#include "../engine/sums.cuh"

#if !defined(FORM) || !defined(FORM_ROOT) || !defined(FORM_RATIO) || !defined(FORM_SHARES) || \
    !defined(FORM_POINTS) || !defined(FORM_MATCHES) || !defined(SHARE_BITS) ||                  \
    !defined(FILTER_THREADS) || !defined(FILTER_ROWS)
#error "FORM comes with the launch, FORM_ROOT ... FILTER_ROWS from distance/nearest_plan.py"
#endif

struct Form {
    double times, share;
    int least_called;
};

#if FORM != FORM_POINTS
// Sites called in both; by what a pair is judged first, as a share of them.
#if FORM == FORM_MATCHES
__device__ __forceinline__ int called_of(const int (&x)[N_OUTPUTS][4], int q) { return x[4][q]; }
__device__ __forceinline__ int difference_of(const int (&x)[N_OUTPUTS][4], int q) {
    return x[2][q] + x[3][q] - 2 * x[1][q] + x[0][q];
}
#else
__device__ __forceinline__ int called_of(const int (&x)[N_OUTPUTS][4], int q) { return x[1][q]; }
__device__ __forceinline__ int difference_of(const int (&x)[N_OUTPUTS][4], int q) {
    return x[0][q];
}
#endif

__device__ __forceinline__ double distance_of(const int (&x)[N_OUTPUTS][4], int q,
                                              const Form& form) {
    const int called = called_of(x, q);
    if (called < form.least_called) return infinite();
#if FORM == FORM_MATCHES
    return (double)(((i64)difference_of(x, q) << SHARE_BITS) / called);
#elif FORM == FORM_SHARES
    const i64 sum_a = x[2][q], square_a = x[3][q], sum_b = x[4][q], square_b = x[5][q];
    const double scale = __dmul_rn((double)sum_a, (double)sum_b);
    if (scale == 0) return infinite();
    const double cross = (double)(square_a * sum_b - square_b * sum_a);
    const double uneven = __dmul_rn((double)(sum_b - sum_a), cross);
    const double squared = __dadd_rn(__dmul_rn(scale, (double)x[0][q]), uneven);
    return __ddiv_rn(__dsqrt_rn(fmax(squared, 0.0)), scale);
#else
    const double ratio = __ddiv_rn(__dmul_rn((double)x[0][q], form.times),
                                   __dmul_rn(form.share, (double)called));
    return FORM == FORM_ROOT ? __dsqrt_rn(ratio) : ratio;
#endif
}

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
filter_counts(const int* acc, const i64* total, i64 slot_stride, i64 pitch, const int* plan,
              const int* row_terms, const int* column_terms, int n_rows, int n_columns,
              int first_row, int first_column, int own, int sides, int low, int high,
              double times, double share, int least_called, double* distance, int* index,
              Used* called, float* limits, double* new_distance, int* new_index, Used* new_called,
              u32* count, int k, int column_places, u64* few) {
    const Sums sums{acc,       total,        slot_stride, pitch,    plan,
                    row_terms, column_terms, n_rows,      n_columns};
    const Lists lists{distance,     index,     called,     limits,
                      new_distance, new_index, new_called, count, k};
    const Form form{times, share, least_called};
    const int j = (blockIdx.x * FILTER_THREADS + threadIdx.x) * 4;
    const int row0 = blockIdx.y * FILTER_ROWS, row1 = min(row0 + FILTER_ROWS, n_rows);
    if (j >= n_columns || (own && row0 >= j + 4)) return;
    if (!meets_group(row0, row1, j, min(j + 4, n_columns), high)) return;
    int columns[N_OUTPUTS][4];
    read_columns(sums, j, columns);
    float column_limit[4];
    #pragma unroll
    for (int q = 0; q < 4; ++q)
        column_limit[q] = sides & 2 && j + q < n_columns ? limits[first_column + j + q] : -1.0f;
    u32 n_few = 0;
    #pragma unroll 2
    for (int i = row0; i < row1; ++i) {
        int x[N_OUTPUTS][4];
        read_sums(sums, i, j, columns, x);
        const float row_limit = sides & 1 ? limits[first_row + i] : -1.0f;
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            if (j + q >= n_columns || (own && i >= j + q)) continue;
            if (!in_band(i, j + q, low, high)) continue;
            const int both = called_of(x, q), differ = difference_of(x, q);
            n_few += both < least_called;
#if FORM != FORM_SHARES
            if ((float)differ > fmaxf(row_limit, column_limit[q]) * (float)both) continue;
#endif
            const double d = distance_of(x, q, form);
#if FORM == FORM_MATCHES
            if (d == infinite()) continue;
            const Used used = (i64)differ << 32 | both;
#else
            const Used used = both;
#endif
            const int row = first_row + i, column = first_column + j + q;
            if (sides & 1) offer(lists, i, row, column, d, used);
            if (sides & 2) offer(lists, column_places + j + q, column, row, d, used);
        }
    }
    if (few && n_few) atomicAdd(few, (u64)n_few);
}
#endif

// What the float32 value that pairs are judged by cannot exceed at a distance of at most `last`.
// For points `last` is a squared distance, `times` the scale of the points in float32, `share` the
// largest error of a distance and `slack` the relative error of a square. For matches `times` is
// 2^SHARE_BITS.
__device__ __forceinline__ float limit_of(double last, double times, double share, double slack) {
#if FORM == FORM_POINTS
    const double wide = sqrt(last) * times + share;
    const double limit = wide * wide * (1 + slack);
#elif FORM == FORM_ROOT
    const double limit = last * last * share / times * (1 + slack);
#elif FORM == FORM_MATCHES
    const double limit = (last + 1) / times * (1 + slack);
#else
    const double limit = last * share / times * (1 + slack);
#endif
    return fminf(__double2float_ru(limit), UNLIMITED);
}

// keep_nearest: sort the candidates of people first ... first + n_people - 1 into their lists.
// Places are those of the candidates from `first_place` on; `overflow` is raised if any were
// dropped.
extern "C" __global__ void __launch_bounds__(32)
keep_nearest(double* distance, int* index, Used* called, float* limits, double* new_distance,
             int* new_index, Used* new_called, u32* count, int k, int first, int first_place,
             double times, double share, double slack, int* overflow) {
    __shared__ double d[LIST_LENGTH];
    __shared__ int who[LIST_LENGTH];
    __shared__ Used sites[LIST_LENGTH];
    const int lane = threadIdx.x, person = first + blockIdx.x, place = first_place + blockIdx.x;
    const u32 given = count[place];
    if (!given) return;
    if (given > LIST_ROOM && !lane) *overflow = 1;
    const int n_new = min(given, (u32)LIST_ROOM), n = k + n_new;
    const i64 list = (i64)person * k, from = (i64)place * LIST_ROOM - k;
    int size = 2;
    while (size < n) size *= 2;
    for (int i = lane; i < size; i += 32) {
        d[i] = i < k ? distance[list + i] : i < n ? new_distance[from + i] : infinite();
        who[i] = i < k ? index[list + i] : i < n ? new_index[from + i] : NOBODY;
        sites[i] = i < k ? called[list + i] : i < n ? new_called[from + i] : 0;
    }
    __syncwarp();
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            for (int t = lane; t < size / 2; t += 32) {
                const int i = 2 * t - (t & (step - 1)), j = i + step;
                if (precedes(d[j], who[j], d[i], who[i]) == ((i & run) == 0)) {
                    const double x = d[i];
                    const int y = who[i];
                    const Used z = sites[i];
                    d[i] = d[j], who[i] = who[j], sites[i] = sites[j];
                    d[j] = x, who[j] = y, sites[j] = z;
                }
            }
            __syncwarp();
        }
    // a pair that was looked at twice stands twice, side by side
    int kept = 0;
    for (int i0 = 0; i0 < n && kept < k; i0 += 32) {
        const int i = i0 + lane;
        const bool keep = i < n && (!i || who[i] != who[i - 1] || who[i] == NOBODY);
        const u32 chosen = __ballot_sync(0xffffffffu, keep);
        const int rank = kept + __popc(chosen & ((1u << lane) - 1));
        if (keep && rank < k) {
            distance[list + rank] = d[i];
            index[list + rank] = who[i];
            called[list + rank] = sites[i];
            if (rank == k - 1) limits[person] = limit_of(d[i], times, share, slack);
        }
        kept += __popc(chosen);
    }
    if (!lane) count[place] = 0;
}
