// correlated: pairs of sites whose squared correlation reaches a limit, from a tile of sums.
//
// select_correlated
// Formula   of n samples called in both, carriers and homozygotes of either site among them, and
//           the product p of ALT counts (LD of engine/terms.py), with x = carriers + homozygotes
//           and q = carriers + 3 homozygotes: (n p - x_a x_b)^2 / ((n q_a - x_a^2) (n q_b - x_b^2)).
// Source    engine/site_pairs_cpu.py, to the last bit: sums are integers, then one rounding each.
// Shapes    see sums.cuh; ends (n_rows) int32: one past the last column of a row, within the tile;
//           found (capacity) of Correlated, in any order; more are counted and dropped. Pairs of
//           the rows first ... last - 1; `own`: of sites with themselves, those i < j.
// Threads   SUM_THREADS; a thread holds 4 columns and walks over SUM_ROWS rows. Memory bound.
//
// Compile with -DN_OUTPUTS=6.

#include "sums.cuh"

#if !defined(SUM_THREADS) || !defined(SUM_ROWS) || !defined(CORRELATED_BYTES)
#error "SUM_THREADS ... CORRELATED_BYTES come from engine/site_pairs_plan.py"
#endif
static_assert(N_OUTPUTS == 6, "the counts of LD");

struct Correlated {
    int row, column;
    double r2;
};
static_assert(sizeof(Correlated) == CORRELATED_BYTES, "CORRELATED of engine/site_pairs_plan.py");

extern "C" __global__ void __launch_bounds__(SUM_THREADS)
select_correlated(const int* acc, const i64* total, i64 slot_stride, i64 pitch, const int* plan,
                  const int* row_terms, const int* column_terms, int n_rows, int n_columns,
                  int first, int last, int own, const int* __restrict__ ends, double least,
                  Correlated* found, u64* count, u64 capacity) {
    const Sums sums{acc,       total,        slot_stride, pitch,    plan,
                    row_terms, column_terms, n_rows,      n_columns};
    const int j = (blockIdx.x * SUM_THREADS + threadIdx.x) * 4;
    const int row0 = first + blockIdx.y * SUM_ROWS, row1 = min(row0 + SUM_ROWS, last);
    if (j >= n_columns || (own && row0 >= j + 3)) return;
    int columns[N_OUTPUTS][4];
    read_columns(sums, j, columns);
    for (int i = row0; i < row1; ++i) {
        const int end = min(ends[i], n_columns);
        if (j >= end || (own && j + 3 <= i)) continue;
        int x[N_OUTPUTS][4];
        read_sums(sums, i, j, columns, x);
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            if (j + q >= end || (own && j + q <= i)) continue;
            const i64 n = x[0][q], one_a = x[1][q], two_a = x[2][q], one_b = x[3][q];
            const i64 two_b = x[4][q], product = x[5][q];
            const i64 sum_a = one_a + two_a, sum_b = one_b + two_b;
            const i64 spread_a = n * (one_a + 3 * two_a) - sum_a * sum_a;
            const i64 spread_b = n * (one_b + 3 * two_b) - sum_b * sum_b;
            if (spread_a <= 0 || spread_b <= 0) continue;
            const double covariance = (double)(n * product - sum_a * sum_b);
            const double r2 = __ddiv_rn(__dmul_rn(covariance, covariance),
                                        __dmul_rn((double)spread_a, (double)spread_b));
            if (!(r2 >= least)) continue;
            const u64 place = atomicAdd(count, 1ull);
            if (place < capacity) found[place] = {i, j + q, r2};
        }
    }
}
