// sums: outputs of the bit-GEMM read from its accumulators, where they are selected on the device.
//
// Formula   out[o][i][j] = scale[o] * (acc[slot][i][j] + total[slot][i][j]) + row_term[o][i] +
//           column_term[o][j], as `finish_rows` (engine/pack_finish.cu).
// Shapes    acc (slots, rows, pitch) int32; total the same, int64, or null; plan (2, N_OUTPUTS)
//           int32: slots (-1: none) and scales; terms (N_OUTPUTS, rows or columns) int32.
// Overflow  arithmetic is modulo 2^32; results are below 2^31 for up to 2^29 sites (weight 4).

#pragma once

#include "../types.cuh"

#if !defined(N_OUTPUTS)
#error "N_OUTPUTS comes with the launch"
#endif

struct Sums {
    const int* acc;
    const i64* total;
    i64 slot_stride, pitch;
    const int* plan;
    const int* row_terms;
    const int* column_terms;
    int n_rows, n_columns;
};

// Outputs of row i and columns j ... j + 3 (j a multiple of 4, within the pitch).
__device__ __forceinline__ void read_sums(const Sums& s, int i, int j,
                                          const int (&columns)[N_OUTPUTS][4],
                                          int (&out)[N_OUTPUTS][4]) {
    #pragma unroll
    for (int o = 0; o < N_OUTPUTS; ++o) {
        const int slot = s.plan[o], row = s.row_terms[o * s.n_rows + i];
        u32 sum[4] = {0, 0, 0, 0};
        if (slot >= 0) {
            const i64 at = slot * s.slot_stride + (i64)i * s.pitch + j;
            const int4 found = *reinterpret_cast<const int4*>(s.acc + at);
            sum[0] = found.x, sum[1] = found.y, sum[2] = found.z, sum[3] = found.w;
            if (s.total)
                for (int q = 0; q < 4; ++q) sum[q] += (u32)s.total[at + q];
        }
        const u32 scale = s.plan[N_OUTPUTS + o];
        #pragma unroll
        for (int q = 0; q < 4; ++q) out[o][q] = (int)(scale * sum[q] + row + columns[o][q]);
    }
}

// Terms of columns j ... j + 3.
__device__ __forceinline__ void read_columns(const Sums& s, int j, int (&columns)[N_OUTPUTS][4]) {
    #pragma unroll
    for (int o = 0; o < N_OUTPUTS; ++o)
        #pragma unroll
        for (int q = 0; q < 4; ++q)
            columns[o][q] = j + q < s.n_columns ? s.column_terms[o * s.n_columns + j + q] : 0;
}
