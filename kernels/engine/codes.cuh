// codes: sums of whole numbers over the two-bit genotypes of 128 rows, on tensor cores.
//
// `code_sums.cu` says what is summed and how. A thread block has SUM_WARPS warps; a warp sums 32 rows
// x 8 TILES columns x SUM_DIGITS digits, a column of shared memory for each column of a digit.

#pragma once

#include "../ptx.cuh"
#include "../types.cuh"
#include "digits.cuh"

#if !defined(SUM_STAGE) || !defined(SUM_STEP) || !defined(SUM_WARPS) || !defined(SUM_ROWS) || \
    !defined(SUM_DIGITS) || !defined(TILES)
#error "SUM_STAGE ... SUM_DIGITS come from engine/genotype_plan.py, TILES from the launch"
#endif

constexpr int COLUMNS = 8 * TILES;
constexpr int N_TILES = SUM_DIGITS * TILES;   // tiles of 8 columns, all digits
constexpr int PITCH = 16 * SUM_STAGE + 64;  // bytes
static_assert(SUM_ROWS == 32 * SUM_WARPS, "32 rows a warp");
static_assert(SUM_STEP == 16 && SUM_STAGE % SUM_STEP == 0, "a lane reads four words");

// The values of 16 codes: items 0 2 4 6, 1 3 5 7, 8 10 12 14, 9 11 13 15.
__device__ __forceinline__ void expand(u32 word, u32 table, u32 (&out)[4]) {
    u32 even = word & 0x33333333u, odd = (word >> 2) & 0x33333333u;
    out[0] = __byte_perm(table, 0, even);
    out[1] = __byte_perm(table, 0, odd);
    out[2] = __byte_perm(table, 0, even >> 16);
    out[3] = __byte_perm(table, 0, odd >> 16);
}

// Adds words `from` to `to` of this thread block's rows, from `row0` of each lane on, to `sums`.
// `words`: of the first row's first word; `digits`: of its first item, a column every `pitch` bytes.
__device__ __forceinline__ void add_codes(char* stage, const u32* __restrict__ words, i64 row0,
                                          i64 n_rows, i64 row_words,
                                          const signed char* __restrict__ digits, i64 pitch,
                                          i64 from, i64 to, u32 table, int (&sums)[2][N_TILES][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    for (i64 at = from; at < to; at += SUM_STAGE) {
        __syncthreads();
        // A piece is 16 digits of a word's items. Pieces 4 t + u of a step lie at 4 u + t.
        for (int k = threadIdx.x; k < 8 * N_TILES * SUM_STAGE; k += 32 * SUM_WARPS) {
            int column = k / SUM_STAGE, piece = k % SUM_STAGE, in = piece & 15;
            int place = (piece & ~15) | (in & 3) << 2 | in >> 2;
            uint4 value = make_uint4(0, 0, 0, 0);
            if (at + piece < to)
                value = *reinterpret_cast<const uint4*>(digits + column * pitch + 16 * (at + piece));
            *reinterpret_cast<uint4*>(stage + column * PITCH + 16 * place) = value;
        }
        __syncthreads();
#pragma unroll 1
        for (int step = 0; step < SUM_STAGE / SUM_STEP; step++) {
            i64 word = at + step * SUM_STEP + 4 * t;
            uint4 codes[4];  // rows g, g + 8, g + 16, g + 24
#pragma unroll
            for (int k = 0; k < 4; k++) {
                i64 row = row0 + 8 * k;
                codes[k] = make_uint4(~0u, ~0u, ~0u, ~0u);
                if (row < n_rows && word < to)
                    codes[k] = *reinterpret_cast<const uint4*>(words + row * row_words + word);
            }
#pragma unroll
            for (int u = 0; u < 4; u++) {
                u32 a[4][4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    u32 own = u == 0 ? codes[k].x : u == 1 ? codes[k].y : u == 2 ? codes[k].z
                                                                                  : codes[k].w;
                    expand(own, table, a[k]);
                }
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    uint4 b = *reinterpret_cast<const uint4*>(
                        stage + (8 * n + g) * PITCH + 16 * (16 * step + 4 * u + t));
                    multiply_bytes(sums[0][n], a[0][0], a[1][0], a[0][1], a[1][1], b.x, b.y);
                    multiply_bytes(sums[1][n], a[2][0], a[3][0], a[2][1], a[3][1], b.x, b.y);
                    multiply_bytes(sums[0][n], a[0][2], a[1][2], a[0][3], a[1][3], b.z, b.w);
                    multiply_bytes(sums[1][n], a[2][2], a[3][2], a[2][3], a[3][3], b.z, b.w);
                }
            }
        }
    }
}

// Calls `give(row, column, sum)` for the sums of this lane, of rows below `n_rows`.
template <class Give>
__device__ __forceinline__ void each_sum(const int (&sums)[2][N_TILES][4], i64 row0, i64 n_rows,
                                         Give give) {
    const int t = threadIdx.x & 3;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                i64 row = row0 + 16 * half + 8 * (k >> 1);
                i64 value = (i64)sums[half][n][k] + (i64)sums[half][TILES + n][k] * 256 +
                            (i64)sums[half][2 * TILES + n][k] * 65536;
                if (row < n_rows) give(row, 8 * n + 2 * t + (k & 1), value);
            }
}
