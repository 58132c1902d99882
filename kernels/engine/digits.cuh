// digits: whole numbers in signed digits of 8 bits, as code_sums.cu reads them.

#pragma once

#include "../types.cuh"

#if !defined(SUM_DIGITS)
#error "SUM_DIGITS comes from engine/genotype_plan.py"
#endif

__device__ __forceinline__ int place_in_word(int item) {
    return (item & 8) | (item & 1) << 2 | (item & 7) >> 1;
}

__device__ __forceinline__ i64 place_of(i64 item) {
    return (item & ~(i64)15) + place_in_word((int)(item & 15));
}

// digits int8 (SUM_DIGITS, n_columns, padded)
__device__ __forceinline__ void write_digits(signed char* digits, int n_columns, int column,
                                             i64 padded, i64 place, i64 value) {
#pragma unroll
    for (int digit = 0; digit < SUM_DIGITS; digit++) {
        const i64 low = ((value + 128) & 255) - 128;
        digits[(i64)(n_columns * digit + column) * padded + place] = (signed char)low;
        value = (value - low) >> 8;
    }
}
