// screen: pairs of people that are looked at again, with their counts, from a tile of counts.
//
// screen_counts
// Formula   of ibs0, both_het, het_a, het_b, called (KINSHIP), with mismatches = het_a + het_b -
//           2 both_het + ibs0 and absent = ibs0 + min(het_a, het_b) - both_het: mismatches + 3 ibs0
//           <= 4 min(het_a, het_b) * below (kinship), or mismatches <= same * called (one person),
//           or absent <= most_absent * called and mismatches > mismatch * called (a mixture), and
//           called >= least_related. The first two are widened by SCREEN_SLACK.
// Source    relatives/screen_cpu.py, operation by operation.
// Shapes    see sums.cuh; found (capacity) of Pair, in any order; more are counted and dropped. Pairs
//           of the rows first ... last - 1; `own`: of a block with itself, those i < j. `few`: pairs
//           with fewer than least_matched sites.
// Threads   256; a thread holds 4 columns and walks over FILTER_ROWS rows. Memory bound.
//
// Compile with -DN_OUTPUTS=5.

#include "../engine/sums.cuh"

#if !defined(FILTER_THREADS) || !defined(FILTER_ROWS) || !defined(PAIR_BYTES)
#error "FILTER_THREADS ... PAIR_BYTES come from relatives/screen.py"
#endif
static_assert(N_OUTPUTS == 5, "the counts of KINSHIP");

constexpr double SCREEN_SLACK = 1e-9;

struct Pair {
    int row, column, counts[N_OUTPUTS], unused;
};
static_assert(sizeof(Pair) == PAIR_BYTES, "PAIR of relatives/screen.py");

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
screen_counts(const int* acc, const i64* total, i64 slot_stride, i64 pitch, const int* plan,
              const int* row_terms, const int* column_terms, int n_rows, int n_columns, int first,
              int last, int own, double below, double same, double mismatch, double most_absent,
              int least_related, int least_matched, Pair* found, u64* count, u64 capacity,
              u64* few) {
    const Sums sums{acc,       total,        slot_stride, pitch,    plan,
                    row_terms, column_terms, n_rows,      n_columns};
    const int j = (blockIdx.x * FILTER_THREADS + threadIdx.x) * 4;
    const int row0 = first + blockIdx.y * FILTER_ROWS, row1 = min(row0 + FILTER_ROWS, last);
    if (j >= n_columns || (own && row0 >= j + 3)) return;
    int columns[N_OUTPUTS][4];
    read_columns(sums, j, columns);
    u32 n_few = 0;
    for (int i = row0; i < row1; ++i) {
        int x[N_OUTPUTS][4];
        read_sums(sums, i, j, columns, x);
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            if (j + q >= n_columns || (own && j + q <= i)) continue;
            const int ibs0 = x[0][q], both = x[1][q], called = x[4][q];
            const int least = min(x[2][q], x[3][q]), differ = x[2][q] + x[3][q] - 2 * both + ibs0;
            n_few += called < least_matched;
            if (called < least_related) continue;
            const double room = __dmul_rn(__dmul_rn(4.0, (double)least), below);
            const double wide = __dmul_rn(room, 1 + SCREEN_SLACK), sites = called;
            const double alike = __dmul_rn(__dmul_rn(same, sites), 1 + SCREEN_SLACK);
            const bool again = differ + 3 * ibs0 <= __dadd_rn(wide, SCREEN_SLACK) ||
                               differ <= alike ||
                               (ibs0 + least - both <= __dmul_rn(most_absent, sites) &&
                                differ > __dmul_rn(mismatch, sites));
            if (!again) continue;
            const u64 place = atomicAdd(count, 1ull);
            if (place < capacity)
                found[place] = {i, j + q, {ibs0, both, x[2][q], x[3][q], called}, 0};
        }
    }
    if (few && n_few) atomicAdd(few, (u64)n_few);
}
