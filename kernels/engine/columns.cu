// columns: inner products and combinations of long columns in float64, in the CPU's order of sums.
//
// Source    engine/columns.py; engine/column_sums_cpu.py has the same sums.
// Shapes    W = GRAM_WIDTH: blocks float64 (n, W); sums float64 (n_parts, W, W); shares (W, W).
//           Narrow blocks (b, n, NARROW) of add_own_products and add_own, which take columns with
//           those of the same number: sums (b, n_parts, NARROW); shares (b, NARROW).
// Threads   W x W. add_products: a thread block has one partial sum of GRAM_ROWS rows, a thread one
//           pair of columns. add_combination: a thread block has GRAM_ROWS rows, a thread one column
//           of W rows at a time. Of narrow blocks a thread has one partial sum of one column, or
//           one number.
// Rounding  products and sums one by one (__dmul_rn, __dadd_rn): nothing is fused.

#include "../types.cuh"

#if !defined(GRAM_WIDTH) || !defined(GRAM_ROWS) || !defined(NARROW)
#error "GRAM_WIDTH, GRAM_ROWS and NARROW come from engine/genotype_plan.py"
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

extern "C" __global__ void __launch_bounds__(256)
    add_own_products(const double* __restrict__ blocks, const double* __restrict__ right,
                     double* __restrict__ sums, i64 n, i64 n_parts, i64 n_threads) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n_threads) return;
    const i64 part = thread / NARROW % n_parts, block = thread / NARROW / n_parts;
    const i64 first = part * GRAM_ROWS;
    const i64 last = first + GRAM_ROWS < n ? first + GRAM_ROWS : n;
    const int j = thread % NARROW;
    const double *a = blocks + block * n * NARROW + j, *b = right + j;
    double sum = 0;
#pragma unroll 8
    for (i64 row = first; row < last; row++)
        sum = __dadd_rn(sum, __dmul_rn(a[row * NARROW], b[row * NARROW]));
    sums[thread] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
    add_own(double* __restrict__ out, const double* __restrict__ blocks,
            const double* __restrict__ shares, i64 n, i64 n_blocks, i64 n_threads) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= n_threads) return;
    const int j = thread % NARROW;
    double value = out[thread];
#pragma unroll 8
    for (i64 block = 0; block < n_blocks; block++)
        value = __dadd_rn(value, __dmul_rn(blocks[block * n * NARROW + thread],
                                           shares[block * NARROW + j]));
    out[thread] = value;
}
