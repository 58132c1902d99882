// columns: inner products and combinations of long columns in float64, in the CPU's order of sums.
//
// Source    engine/columns.py; engine/host/column_sums.py has the same sums.
// Shapes    blocks float64 (n, WIDTH); sums float64 (n_parts, WIDTH, WIDTH); shares (WIDTH, WIDTH).
// Threads   WIDTH x WIDTH. add_products: a thread block has one partial sum of GRAM_ROWS rows, a
//           thread one pair of columns. add_combination: a thread block has GRAM_ROWS rows, a thread
//           one column of WIDTH rows at a time.
// Rounding  products and sums one by one (__dmul_rn, __dadd_rn): nothing is fused.

#include "../types.cuh"

#if !defined(WIDTH) || !defined(GRAM_ROWS)
#error "WIDTH and GRAM_ROWS come from engine/gpu/layout.py"
#endif

constexpr int GRAM_STEP = 64;  // rows in shared memory
static_assert(GRAM_ROWS % GRAM_STEP == 0, "whole steps");

extern "C" __global__ void __launch_bounds__(WIDTH* WIDTH)
    add_products(const double* __restrict__ left, const double* __restrict__ right,
                 double* __restrict__ sums, i64 n) {
    __shared__ double a[GRAM_STEP * WIDTH], b[GRAM_STEP * WIDTH];
    const int thread = threadIdx.x, i = thread / WIDTH, j = thread % WIDTH;
    const i64 first = (i64)blockIdx.x * GRAM_ROWS;
    const i64 last = first + GRAM_ROWS < n ? first + GRAM_ROWS : n;
    double sum = 0;
    for (i64 row = first; row < last; row += GRAM_STEP) {
        const int rows = last - row < GRAM_STEP ? (int)(last - row) : GRAM_STEP;
        __syncthreads();
        for (int k = thread; k < rows * WIDTH; k += WIDTH * WIDTH) {
            a[k] = left[row * WIDTH + k];
            b[k] = right[row * WIDTH + k];
        }
        __syncthreads();
        for (int r = 0; r < rows; r++)
            sum = __dadd_rn(sum, __dmul_rn(a[r * WIDTH + i], b[r * WIDTH + j]));
    }
    sums[((i64)blockIdx.x * WIDTH + i) * WIDTH + j] = sum;
}

extern "C" __global__ void __launch_bounds__(WIDTH* WIDTH)
    add_combination(double* __restrict__ out, const double* __restrict__ block,
                    const double* __restrict__ shares, i64 n) {
    __shared__ double a[WIDTH * WIDTH], s[WIDTH * WIDTH];
    const int thread = threadIdx.x, row = thread / WIDTH, j = thread % WIDTH;
    s[thread] = shares[thread];
    const i64 first = (i64)blockIdx.x * GRAM_ROWS;
    for (i64 start = first; start < first + GRAM_ROWS && start < n; start += WIDTH) {
        const bool own = start + row < n;
        const i64 at = start * WIDTH + thread;
        __syncthreads();
        if (own) a[thread] = block[at];
        __syncthreads();
        if (!own) continue;
        double value = out[at];
        for (int i = 0; i < WIDTH; i++)
            value = __dadd_rn(value, __dmul_rn(a[row * WIDTH + i], s[i * WIDTH + j]));
        out[at] = value;
    }
}
