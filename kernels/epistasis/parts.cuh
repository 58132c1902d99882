// epistasis_parts: the order of the depth of an operand, that of one x or (JOINT = 2) of two: x and the
// site after it.
//
// Parts     All samples of a part have x in the same state. JOINT = 1: the stored states, missing
//           first. JOINT = 2: pairs of states of the two sites, 0, 1 or neither (-), but for (-, -).
//           So a sample is multiplied once for both sites, not once for each that it has in one of
//           the two: at equal frequencies 8/9 of all samples instead of 4/3. Before them, where
//           three states are stored, the samples that miss x, and those that miss the next site.
//           Controls, then cases of each part are its two segments.
// Sums      JOINT = 2: eight parts make four tables, x in 0 or 1 and the next site in 0 or 1. In the
//           order 01 0- 00 -0 | 10 1- 11 -1 (x, next) the parts of each table are neighbours. Four in
//           a row are added up, and the sum after each part is kept:
//             x in 0: sum 2        next in 0: sum 3 - sum 1 + sum 4
//             x in 1: sum 6        next in 1: sum 7 - sum 5 + sum 0
//           The two halves of a word do not mix while a row holds fewer than 2^16 samples of a class;
//           the host sees to that.
//
// Compile with -DSTATES=2|3 -DJOINT=1|2.

#pragma once

#include "../types.cuh"

#if !defined(SEGMENTS) || !defined(PARTS_IN_A_ROW) || !defined(PARTS_OF_FIRST) || \
    !defined(PARTS_OF_SECOND)
#error "SEGMENTS, PARTS_IN_A_ROW, PARTS_OF_FIRST and PARTS_OF_SECOND come from engine/gpu/layout.py"
#endif

constexpr int ALONE = STATES == 3 ? 2 : 0;      // parts of missing genotypes
constexpr int PARTS_OF_X = SEGMENTS / 2;
static_assert(PARTS_OF_X == (JOINT == 2 ? ALONE + 2 * PARTS_IN_A_ROW : STATES),
              "segments_of in engine/gpu/epistasis_plans.py counts other parts");

// The stored states of one x in the order of the depth.
__device__ __forceinline__ int stored_state(int index) {
    return STATES == 2 ? index : (index + 2) % 3;
}
// State of site `which` of an operand in one part, or NEITHER 0 nor 1, or ANY.
constexpr int NEITHER = 3, ANY = 4;
__device__ __forceinline__ int state_of_part(int part, int which) {
    if (JOINT == 1) return stored_state(part);
    if (part < ALONE) return part == which ? 2 : ANY;
    return (which == 0 ? (u32)PARTS_OF_FIRST : (u32)PARTS_OF_SECOND) >> (2 * (part - ALONE)) & 3;  // two bits a part
}
