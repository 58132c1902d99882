// lists: what the kernels of neighbours share: lists of the k nearest, and candidates for them.
//
// A list holds the k nearest others that a person has met, by distance, then by number; entries of
// nobody are (infinity, NOBODY), which comes after everybody. A kernel that looks at pairs appends
// those that improve a list to the person's candidates; `keep_nearest` (near_lists.cu) sorts them in.
// More candidates than have room are dropped and counted, and the host looks at the pairs again:
// the list is better by then, so that fewer improve it.

#pragma once

#include "../types.cuh"

#if !defined(LIST_LENGTH) || !defined(LIST_ROOM) || !defined(NOBODY) || !defined(FORM_MATCHES)
#error "LIST_LENGTH ... NOBODY come from distance/nearest_plan.py"
#endif

// What a list keeps of a pair beside its distance: jointly called sites; of best matches mismatches,
// too, in the upper half.
#if defined(FORM) && FORM == FORM_MATCHES
typedef i64 Used;
#else
typedef int Used;
#endif

constexpr float UNLIMITED = 3.0e38f;

__device__ __forceinline__ double infinite() { return __longlong_as_double(0x7ff0000000000000LL); }

// Lists (n, k): distance, index and called; candidates (people of a tile, LIST_ROOM), their count.
struct Lists {
    double* distance;
    int* index;
    Used* called;
    float* limits;
    double* new_distance;
    int* new_index;
    Used* new_called;
    u32* count;
    int k;
};

__device__ __forceinline__ bool precedes(double d, int i, double e, int j) {
    return d < e || (d == e && i < j);
}

// Append `other` to the candidates in row `place` if it improves the list of `person`.
__device__ __forceinline__ void offer(const Lists& lists, int place, int person, int other,
                                      double distance, Used called) {
    volatile u32* count = lists.count + place;
    if (*count > LIST_ROOM) return;
    const i64 last = (i64)person * lists.k + lists.k - 1;
    if (!precedes(distance, other, lists.distance[last], lists.index[last])) return;
    const u32 at = atomicAdd(lists.count + place, 1u);
    if (at >= LIST_ROOM) return;
    const i64 to = (i64)place * LIST_ROOM + at;
    lists.new_distance[to] = distance;
    lists.new_index[to] = other;
    lists.new_called[to] = called;
}

// Pairs that are looked at together: of one group of 2^high people on either side, but not of one of
// 2^low; low 0: all of the group.
__device__ __forceinline__ bool in_band(int i, int j, int low, int high) {
    return ((i ^ j) >> high) == 0 && (!low || ((i ^ j) >> low) != 0);
}

// Whether runs of rows and columns hold any pair of one group.
__device__ __forceinline__ bool meets_group(int row0, int row1, int column0, int column1,
                                            int high) {
    return (row0 >> high) <= ((column1 - 1) >> high) && ((row1 - 1) >> high) >= (column0 >> high);
}
