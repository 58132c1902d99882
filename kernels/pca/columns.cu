// columns: inner products and combinations of long columns in float64, in the CPU's order of sums.
//
// Source    engine/columns.py; engine/host/column_sums.py has the same sums.
// Shapes    W = GRAM_WIDTH: blocks float64 (n, W); sums float64 (n_parts, W, W); shares (W, W).
// Threads   W x W. add_products: a thread block has one partial sum of GRAM_ROWS rows, a thread one
//           pair of columns. add_combination: a thread block has GRAM_ROWS rows, a thread one column
//           of W rows at a time.
// Rounding  products and sums one by one (__dmul_rn, __dadd_rn): nothing is fused.

#include "../types.cuh"

#if !defined(GRAM_WIDTH) || !defined(GRAM_ROWS)
#error "GRAM_WIDTH and GRAM_ROWS come from engine/gpu/layout.py"
#endif

constexpr int GRAM_STEP = 64;  // rows in shared memory
static_assert(GRAM_ROWS % GRAM_STEP == 0, "whole steps");

extern "C" __global__ void __launch_bounds__(GRAM_WIDTH* GRAM_WIDTH)
    add_products(const double* __restrict__ left, const double* __restrict__ right,
                 double* __restrict__ sums, i64 n) {
    __shared__ double a[GRAM_STEP * GRAM_WIDTH], b[GRAM_STEP * GRAM_WIDTH];
    const int thread = threadIdx.x, i = thread / GRAM_WIDTH, j = thread % GRAM_WIDTH;
    const i64 first = (i64)blockIdx.x * GRAM_ROWS;
    const i64 last = first + GRAM_ROWS < n ? first + GRAM_ROWS : n;
    double sum = 0;
    for (i64 row = first; row < last; row += GRAM_STEP) {
        const int rows = last - row < GRAM_STEP ? (int)(last - row) : GRAM_STEP;
        __syncthreads();
        for (int k = thread; k < rows * GRAM_WIDTH; k += GRAM_WIDTH * GRAM_WIDTH) {
            a[k] = left[row * GRAM_WIDTH + k];
            b[k] = right[row * GRAM_WIDTH + k];
        }
        __syncthreads();
        for (int r = 0; r < rows; r++)
            sum = __dadd_rn(sum, __dmul_rn(a[r * GRAM_WIDTH + i], b[r * GRAM_WIDTH + j]));
    }
    sums[((i64)blockIdx.x * GRAM_WIDTH + i) * GRAM_WIDTH + j] = sum;
}

extern "C" __global__ void __launch_bounds__(GRAM_WIDTH* GRAM_WIDTH)
    add_combination(double* __restrict__ out, const double* __restrict__ block,
                    const double* __restrict__ shares, i64 n) {
    __shared__ double a[GRAM_WIDTH * GRAM_WIDTH], s[GRAM_WIDTH * GRAM_WIDTH];
    const int thread = threadIdx.x, row = thread / GRAM_WIDTH, j = thread % GRAM_WIDTH;
    s[thread] = shares[thread];
    const i64 first = (i64)blockIdx.x * GRAM_ROWS;
    for (i64 start = first; start < first + GRAM_ROWS && start < n; start += GRAM_WIDTH) {
        const bool own = start + row < n;
        const i64 at = start * GRAM_WIDTH + thread;
        __syncthreads();
        if (own) a[thread] = block[at];
        __syncthreads();
        if (!own) continue;
        double value = out[at];
        for (int i = 0; i < GRAM_WIDTH; i++)
            value = __dadd_rn(value, __dmul_rn(a[row * GRAM_WIDTH + i], s[i * GRAM_WIDTH + j]));
        out[at] = value;
    }
}
