// scoring: counts of combinations in memory, in the order of a warp's lanes, and the score of one
// triple: its table, the bounds, and a record if it passes. Two stored states of x.
//
// Compile with the parameters of scan.cuh.

#pragma once

#include "scan.cuh"

// Element `index` of lane `lane` in an array of Counts that a warp accesses without bank conflicts.
__device__ __forceinline__ Counts read_counts(const u32* from, int index, int lane) {
    Counts c;
    #pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        const int at = index * WORDS + w;
        u32* word = c.word + w * CELLS;
        if (CELLS == 4) {
            const uint4 four = reinterpret_cast<const uint4*>(from)[at * 32 + lane];
            word[0] = four.x;
            word[1] = four.y;
            word[2] = four.z;
            word[3] = four.w;
        } else {
            const u32* own = from + at * (CELLS * 32) + lane;  // one address, then offsets
            #pragma unroll
            for (int i = 0; i < CELLS; ++i) word[i] = own[i * 32];
        }
    }
    return c;
}
__device__ __forceinline__ void write_counts(u32* to, int index, int lane, const Counts& c) {
    #pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        const int at = index * WORDS + w;
        const u32* word = c.word + w * CELLS;
        if (CELLS == 4) {
            reinterpret_cast<uint4*>(to)[at * 32 + lane] =
                make_uint4(word[0], word[1], word[2], word[3]);
        } else {
            u32* own = to + at * (CELLS * 32) + lane;
            #pragma unroll
            for (int i = 0; i < CELLS; ++i) own[i * 32] = word[i];
        }
    }
}

#if ORDER == 3 && X_STATES == 2 && !SPLIT_ACCUMULATORS
// Calls visit(index, count) for all 27 cells of a triple. c: counts with x in states 0 and 1, and
// with x in neither.
template <class Visit>
__device__ __forceinline__ void visit_triple(const Counts (&c)[3], const MarginsY& my,
                                             const MarginsZ& mz, Visit visit) {
    #pragma unroll
    for (int g = 0; g < 3; ++g) visit_x(g, c[g], my, mz, visit);
}
// c[2], counts of (y, z) alone, becomes what is left of them with x in no stored state.
__device__ __forceinline__ void subtract_states(Counts (&c)[3]) {
    #pragma unroll
    for (int i = 0; i < CELLS; ++i) c[2].word[i] -= c[0].word[i] + c[1].word[i];
}
// Whether any lane's triple may reach `least`, by the first bound.
__device__ __forceinline__ bool any_may_pass(const Counts (&c)[3], const MarginsY& my,
                                             const MarginsZ& mz, const Lines& lines, float least) {
    Bound bound;
    visit_triple(c, my, mz, [&](int, Count n) { bound.add(n, lines); });
    return __any_sync(~0u, bound.value(lines) >= least);
}
// Writes a record of the triple (x, y, z) of each lane that the close bound does not rule out.
__device__ __forceinline__ void record_triple(const Counts (&c)[3], const MarginsY& my,
                                              const MarginsZ& mz, int x, int y, int z,
                                              const Lines& lines, float least, const Scan& scan) {
    CloseBound close;
    visit_triple(c, my, mz, [&](int, Count n) { close.add(n, lines); });
    if (close.value(lines) < least) return;
    u32* record = scan.found.take(x, y, z);
    if (!record) return;
    visit_triple(c, my, mz, [&](int cell, Count n) { write_count(record + cell * COUNT_WORDS, n); });
}
#endif
