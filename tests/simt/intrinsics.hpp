// intrinsics: the types and functions of CUDA that the kernels use, in C++.

#pragma once

#include <cmath>
#include <cstdlib>

#include "execution.hpp"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(N) alignas(N)
#define __shared__ alignas(16) static __attribute__((section("simt_shared")))
#define __syncthreads() simt::sync_block(__LINE__)

struct int2 { int x, y; } __attribute__((aligned(8)));
struct int4 { int x, y, z, w; } __attribute__((aligned(16)));
struct float4 { float x, y, z, w; } __attribute__((aligned(16)));
struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct ulonglong2 { unsigned long long x, y; } __attribute__((aligned(16)));
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

using std::abs;
using std::fmax;
using std::fmin;
using std::log;
using std::sqrt;
inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __vimin3_s32(int a, int b, int c) { return min(min(a, b), c); }
// The highest bit of a selector, which repeats a sign, is not used here.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i)
        out |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
    return out;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __dp2a_lo(unsigned halves, unsigned bytes, unsigned sum) {
    return sum + (halves & 0xFFFF) * (bytes & 0xFF) + (halves >> 16) * (bytes >> 8 & 0xFF);
}

template <class To, class From>
inline To simt_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline float __int_as_float(int x) { return simt_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
inline int __float_as_int(float x) { return simt_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return simt_bits<double>(x); }
inline long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __ll2double_rn(long long x) { return (double)x; }
inline int __double2int_rn(double x) { return (int)std::nearbyint(x); }
inline float __double2float_rn(double x) { return (float)x; }
inline float __double2float_ru(double x) {
    const float near = (float)x;
    return near < x ? std::nextafter(near, INFINITY) : near;
}

template <class T> inline T __ldg(const T* from) { return *from; }
template <class T> inline T __ldcg(const T* from) { return *from; }
template <class T> inline void __stcs(T* to, T value) { *to = value; }
template <class T, class V>
inline T atomicAdd(T* at, V value) {
    const T before = *at;
    *at = (T)(before + (T)value);
    return before;
}
template <class T, class V>
inline T atomicMax(T* at, V value) {
    const T before = *at;
    *at = before < (T)value ? (T)value : before;
    return before;
}
inline std::size_t __cvta_generic_to_shared(const void* at) { return simt::address_of(at); }

// Exchanges between the lanes of a warp: of 32-bit values, and votes.
struct SimtShuffle {
    unsigned value;
    int source;
    unsigned found;
};
inline void simt_shuffle(void* const* operands, unsigned mask) {
    for (int i = 0; i < 32; ++i) {
        if (!(mask >> i & 1)) continue;
        SimtShuffle& own = *static_cast<SimtShuffle*>(operands[i]);
        const int from = own.source < 0 || own.source > 31 ? i : own.source;
        if (!(mask >> from & 1)) simt::fail("a shuffle reads lane %d, not in its mask", from);
        own.found = static_cast<SimtShuffle*>(operands[from])->value;
    }
}
template <class T>
inline T simt_exchange(const char* name, unsigned mask, T value, int source) {
    SimtShuffle one{simt_bits<unsigned>(value), source, 0};
    simt::meet(name, mask, &one, simt_shuffle);
    return simt_bits<T>(one.found);
}
inline int simt_lane() { return simt::block.current % 32; }
template <class T> inline T __shfl_sync(unsigned mask, T value, int source) {
    return simt_exchange("__shfl_sync", mask, value, source & 31);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int apart) {
    return simt_exchange("__shfl_xor_sync", mask, value, simt_lane() ^ apart);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T value, int apart) {
    return simt_exchange("__shfl_up_sync", mask, value, simt_lane() - apart);
}
struct SimtVote {
    bool own;
    unsigned all;
};
inline void simt_vote(void* const* operands, unsigned mask) {
    unsigned all = 0;
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1) all |= (unsigned)static_cast<SimtVote*>(operands[i])->own << i;
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1) static_cast<SimtVote*>(operands[i])->all = all;
}
inline unsigned __ballot_sync(unsigned mask, bool own) {
    SimtVote vote{own, 0};
    simt::meet("__ballot_sync", mask, &vote, simt_vote);
    return vote.all;
}
inline int __any_sync(unsigned mask, bool own) { return __ballot_sync(mask, own) != 0; }
inline void simt_nothing(void* const*, unsigned) {}
inline void __syncwarp(unsigned mask = ~0u) {
    simt::meet("__syncwarp", mask, nullptr, simt_nothing);
}
// Sums and maxima over the lanes of a warp, which all receive them.
struct SimtReduce {
    int own, all;
};
template <bool MOST>
inline void simt_reduce(void* const* operands, unsigned mask) {
    unsigned sum = 0;
    int most = -1 - 0x7fffffff;
    for (int i = 0; i < 32; ++i) {
        if (!(mask >> i & 1)) continue;
        const int own = static_cast<SimtReduce*>(operands[i])->own;
        sum += (unsigned)own;
        most = max(most, own);
    }
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1) static_cast<SimtReduce*>(operands[i])->all = MOST ? most : (int)sum;
}
inline int __reduce_add_sync(unsigned mask, int own) {
    SimtReduce one{own, 0};
    simt::meet("__reduce_add_sync", mask, &one, simt_reduce<false>);
    return one.all;
}
inline int __reduce_max_sync(unsigned mask, int own) {
    SimtReduce one{own, 0};
    simt::meet("__reduce_max_sync", mask, &one, simt_reduce<true>);
    return one.all;
}
