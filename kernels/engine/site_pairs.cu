// site_pairs: correlated pairs of sites.
//
// select_pairs: pairs of a tile of squared correlations that reach a limit, in any order.
// Shapes    r2 (rows, columns) float32 with `stride`; sites first_row + i and first_column + j,
//           ends (n_sites): pairs i < j < ends[i] count; pairs (capacity) int2, count.
// Threads   32 x 8: a thread block covers 32 columns x 8 rows at a time.
// Shared    none.
// Overflow  pairs beyond `capacity` are counted, not written: the host makes room and runs again.

#include "../types.cuh"

#if !defined(SELECT_COLUMNS) || !defined(SELECT_ROWS)
#error "SELECT_COLUMNS and SELECT_ROWS come from engine/site_pairs_plan.py"
#endif

extern "C" __global__ void __launch_bounds__(SELECT_COLUMNS * SELECT_ROWS)
select_pairs(const float* __restrict__ r2, i64 stride, int n_rows, int n_columns, int first_row,
             int first_column, const int* __restrict__ ends, float least, int2* __restrict__ pairs,
             u64* __restrict__ count, u64 capacity) {
    const int j = blockIdx.x * SELECT_COLUMNS + threadIdx.x % SELECT_COLUMNS;
    for (int i = blockIdx.y * SELECT_ROWS + threadIdx.x / SELECT_COLUMNS; i < n_rows;
         i += gridDim.y * SELECT_ROWS) {
        const int row = first_row + i, column = first_column + j;
        if (j >= n_columns || column <= row || column >= ends[row]) continue;
        if (r2[(i64)i * stride + j] >= least) {
            const u64 place = atomicAdd(count, 1ull);
            if (place < capacity) pairs[place] = {row, column};
        }
    }
}
