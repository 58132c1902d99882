// parts: the order of samples along the depth of an operand, which is one x or (OPERAND_SITES = 2) two: x
// and the site after it.
//
// Parts     All samples of a part have x in the same state. OPERAND_SITES = 1: the stored states, missing
//           first (X_STATES = 3; STATES = 2: x alone has missing genotypes); without missing ones
//           state 1, which more samples have, before state 0: sm90_fused.cu counts the first part
//           before it waits, and the slots of its steps are free meanwhile. OPERAND_SITES = 2: pairs of
//           states of the two sites, 0, 1 or neither (-), except (-, -).
//           A sample is then multiplied once for both sites, not once for each site in which it has
//           a stored genotype: at equal frequencies 8/9 of all samples instead of 4/3. They are
//           preceded, where three states are stored, by the samples that miss x, and those that
//           miss the next site. The two segments of a part are its controls and its cases.
// Sums      OPERAND_SITES = 2: eight parts give four tables, x in 0 or 1 and the next site in 0 or 1. In
//           the order 01 0- 00 -0 | 10 1- 11 -1 (x, next) the parts of each table are consecutive.
//           Four parts are summed up, and the running sum after each part is stored:
//             x in 0: sum 2        next in 0: sum 3 - sum 1 + sum 4
//             x in 1: sum 6        next in 1: sum 7 - sum 5 + sum 0
//           The two halves of a word do not overflow into each other: four parts hold different
//           samples, and of these at most 2^16 - 1 of a class are in one pair of stored states of y
//           and z (SPLIT_ACCUMULATORS = 0).
//
// Levels    RESIDUALS = 1: one operand of all samples. Segment 0 holds all of them, the next ones those
//           with bit 7, 6 ... 0 of their level: sums of levels are products of these shorter
//           depths, added from the highest bit, each sum twice the one before (Horner's rule).
//
// Quads     QUADS = 1: the scan of one more site before x, w, is three scans of triples, of the samples
//           with w in each of its genotypes (GIVEN). An x has three operands, one after the other: its
//           samples with w in state 0, 1 and in none. Operand i of a batch is that of x_of(i) and given_of(i).
//
// Compile with -DQUADS=0|1 (1: OPERAND_SITES = 1, STATES = X_STATES = PLANES, INTERACTION = 0)
// -DSTATES=2|3 (stored states of y and z) -DX_STATES=2|3 (of x, at least STATES)
// -DPLANES=2|3 (of the samples' planes, at least X_STATES) -DOPERAND_SITES=1|2 -DRESIDUALS=0|1 -DSEGMENTS=.. (of
// one operand).

#pragma once

#include "../types.cuh"

#if !defined(PARTS_IN_A_ROW) || !defined(PARTS_OF_FIRST) || !defined(PARTS_OF_SECOND)
#error "PARTS_IN_A_ROW, PARTS_OF_FIRST and PARTS_OF_SECOND come from epistasis/layout.py"
#endif
#if !defined(SEGMENTS)
#error "SEGMENTS comes from epistasis/scan_plan.py"
#endif

#if !defined(X_STATES) || !defined(PLANES) || X_STATES < STATES || PLANES < X_STATES
#error "X_STATES and PLANES come from epistasis/scan_plan.py"
#endif

#if !defined(QUADS) || (QUADS && (OPERAND_SITES != 1 || STATES != X_STATES || PLANES != STATES))
#error "QUADS comes from epistasis/scan_plan.py"
#endif
constexpr int GIVEN = QUADS ? 3 : 1;  // operands of an x
__device__ __forceinline__ int x_of(int x_first, int operand) { return x_first + operand / GIVEN; }
__device__ __forceinline__ int given_of(int operand) { return operand % GIVEN; }

constexpr int ALONE = X_STATES == 3 ? 2 : 0;    // parts of missing genotypes
constexpr int PARTS_OF_X = SEGMENTS / 2;
static_assert(RESIDUALS || PARTS_OF_X == (OPERAND_SITES == 2 ? ALONE + 2 * PARTS_IN_A_ROW : X_STATES),
              "segments_of in epistasis/scan_plan.py counts other parts");

// The stored states of one x in the order in which the depth holds them.
__device__ __forceinline__ int stored_state(int index) {
    return X_STATES == 2 ? 1 - index : (index + 2) % 3;
}
// State of site `which` of an operand in one part; NEITHER: not 0 and not 1.
constexpr int NEITHER = 3, ANY = 4;
__device__ __forceinline__ int state_of_part(int part, int which) {
    if (OPERAND_SITES == 1) return stored_state(part);
    if (part < ALONE) return part == which ? 2 : ANY;
    const u32 states = which == 0 ? PARTS_OF_FIRST : PARTS_OF_SECOND;  // two bits per part
    return states >> (2 * (part - ALONE)) & 3;
}
