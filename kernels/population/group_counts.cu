// group_counts: counts of genotypes by site over groups of samples, and sums by sample.
//
// With u, v, c the planes carrier, hom and called, c only at used sites (without a third plane, all of
// these): ref = c & ~u, het = c & u & ~v, hom = c & v.
//
// sum_samples
// Formula   sums[i] += popcount(c), popcount(het), sum of values[site] over used sites without c
// Shapes    words (n_samples, n_planes, n_words) u64, 64 sites a word; used (n_words); values
//           (64 n_words); sums (n_samples, 3).
// Threads   COUNT_THREADS; blockIdx.x: a sample, blockIdx.y: a run of its words.
// Overflow  values are not negative and their sum is below 2^63; sums grow by atomic additions, which
//           are exact in any order.
//
// add_sites
// Formula   totals[state][site] += samples order[begin] ... order[end - 1] with that state, 0: ref
// Source    bit-sliced counters, as in population/plane_counts_cpu.py: bit b of counter k is bit k of the
//           count of site b
// Shapes    words (n_samples, n_planes, n_words) u32, 32 sites a word; order (n); pieces (n_pieces, 3):
//           begin, end and the address of totals, int (3, 32 n_words), of the piece's group.
// Threads   COUNT_THREADS; blockIdx.x: a word a thread, blockIdx.y: a piece. Counters stay in
//           registers. In the end lane b takes bit b of each word of its warp, so that the lanes of
//           one atomic addition have addresses in a row.
// Overflow  a piece has fewer than 2^COUNT_LEVELS samples; fewer than 2^31 samples in all.
//
// interleave_counts
// Formula   out[site][group][state] = totals of the group [state][first + site], for n_sites sites
// Threads   COUNT_THREADS; blockIdx.x: a site a thread, blockIdx.y: a group.
//
// Compile with -DCOUNT_BYTES=2|4, of a count in `out`.

#include "../types.cuh"

#if !defined(COUNT_THREADS) || !defined(COUNT_LEVELS) || !defined(COUNT_BYTES)
#error "COUNT_THREADS ... COUNT_BYTES come from population/group_counts_plan.py and the launch"
#endif

constexpr u32 ALL = ~0u;
constexpr int KINDS = 3;
static_assert(COUNT_THREADS % 32 == 0, "whole warps");

template <int BYTES>
struct CountOf {
    typedef u32 Type;
};
template <>
struct CountOf<2> {
    typedef unsigned short Type;
};
typedef CountOf<COUNT_BYTES>::Type Count;
static_assert(sizeof(Count) == COUNT_BYTES, "counts have 2 or 4 bytes");

__device__ __forceinline__ void add_of_warp(u64* total, u64 value) {
#pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        const u32 low = __shfl_xor_sync(ALL, (u32)value, apart);
        const u32 high = __shfl_xor_sync(ALL, (u32)(value >> 32), apart);
        value += (u64)high << 32 | low;
    }
    if ((threadIdx.x & 31) == 0 && value) atomicAdd(total, value);
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    sum_samples(const u64* __restrict__ words, const u64* __restrict__ used,
                const u64* __restrict__ values, u64* sums, int n_planes, i64 n_words,
                i64 words_a_run) {
    const u64* own = words + (i64)blockIdx.x * n_planes * n_words;
    const i64 first = (i64)blockIdx.y * words_a_run;
    const i64 last = first + words_a_run < n_words ? first + words_a_run : n_words;
    u64 called = 0, hets = 0, absent = 0;
    for (i64 w = first + threadIdx.x; w < last; w += COUNT_THREADS) {
        u64 c = used[w];
        if (n_planes == KINDS) {
            u64 left = c;
            c &= own[2 * n_words + w];
            for (left &= ~c; left; left &= left - 1)
                absent += values[64 * w + __popcll((left & (~left + 1)) - 1)];
        }
        called += __popcll(c);
        hets += __popcll(c & own[w] & ~own[n_words + w]);
    }
    u64* of_sample = sums + KINDS * (i64)blockIdx.x;
    add_of_warp(of_sample, called);
    add_of_warp(of_sample + 1, hets);
    add_of_warp(of_sample + 2, absent);
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    add_sites(const u32* __restrict__ words, const u32* __restrict__ used,
              const i64* __restrict__ order, const i64* __restrict__ pieces, int n_planes,
              i64 n_words) {
    const i64 word = (i64)blockIdx.x * COUNT_THREADS + threadIdx.x;
    const i64 begin = pieces[3 * blockIdx.y], end = pieces[3 * blockIdx.y + 1];
    int* totals = reinterpret_cast<int*>(pieces[3 * blockIdx.y + 2]);
    const u32 within = word < n_words ? used[word] : 0;
    u32 counters[KINDS][COUNT_LEVELS] = {};
    if (within) {
#pragma unroll 4
        for (i64 k = begin; k < end; k++) {
            const u32* own = words + order[k] * n_planes * n_words + word;
            const u32 u = own[0], v = own[n_words];
            const u32 c = n_planes == KINDS ? within & own[2 * n_words] : within;
            const u32 bits[KINDS] = {c & ~u, c & u & ~v, c & v};
#pragma unroll
            for (int state = 0; state < KINDS; state++) {
                u32 carry = bits[state];
#pragma unroll
                for (int level = 0; level < COUNT_LEVELS; level++) {
                    const u32 next = counters[state][level] & carry;
                    counters[state][level] ^= carry;
                    carry = next;
                }
            }
        }
    }
    const int lane = threadIdx.x & 31;
    const i64 of_warp = word - lane;
#pragma unroll 1
    for (int from = 0; from < 32; from++) {
        if (of_warp + from >= n_words) break;
        int* own = totals + 32 * (of_warp + from) + lane;
#pragma unroll
        for (int state = 0; state < KINDS; state++) {
            int value = 0;
#pragma unroll
            for (int level = 0; level < COUNT_LEVELS; level++)
                if ((end - begin) >> level)
                    value |= (int)(__shfl_sync(ALL, counters[state][level], from) >> lane & 1)
                             << level;
            if (value) atomicAdd(own + state * 32 * n_words, value);
        }
    }
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS)
    interleave_counts(const i64* __restrict__ totals, Count* __restrict__ out, i64 first,
                      i64 n_sites, i64 n_bits) {
    const i64 site = (i64)blockIdx.x * COUNT_THREADS + threadIdx.x;
    if (site >= n_sites) return;
    const int* own = reinterpret_cast<const int*>(totals[blockIdx.y]) + first + site;
    Count* to = out + KINDS * (site * gridDim.y + blockIdx.y);
#pragma unroll
    for (int state = 0; state < KINDS; state++) to[state] = (Count)own[state * n_bits];
}
