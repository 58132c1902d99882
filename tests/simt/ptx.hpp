// ptx: the functions of kernels/ptx.cuh in C++, after the PTX ISA ("Matrix Fragments for mma",
// "ldmatrix", "cp.async").

#pragma once

#include "intrinsics.hpp"

inline void copy_chunk(unsigned target, const void* source) {
    simt::Thread& own = simt::block.threads[simt::block.current];
    if (reinterpret_cast<std::size_t>(source) % 16) simt::fail("cp.async from an odd address");
    own.copies.push_back({simt::shared_at(target, 16), source, own.groups});
    if (!simt::block.late) simt::make_copies(own, own.groups + 1);
}
inline void commit_copies() { ++simt::block.threads[simt::block.current].groups; }
template <int N>
inline void wait_copies() {
    simt::Thread& own = simt::block.threads[simt::block.current];
    simt::make_copies(own, own.groups - N);
}

struct SimtLoad {
    unsigned address;
    unsigned* to;
};
// Lanes 8 j ... 8 j + 7 hold the addresses of the rows of matrix j; lane l receives two elements of
// 16 bits, 2 (l % 4) and the next, of row l / 4 of each.
inline void simt_load(void* const* operands, unsigned) {
    for (int j = 0; j < 4; ++j)
        for (int row = 0; row < 8; ++row) {
            const char* from =
                simt::shared_at(static_cast<SimtLoad*>(operands[8 * j + row])->address, 16);
            for (int t = 0; t < 4; ++t)
                std::memcpy(static_cast<SimtLoad*>(operands[4 * row + t])->to + j, from + 4 * t, 4);
        }
}
inline void load_matrices(unsigned (&r)[4], unsigned address) {
    SimtLoad one{address, r};
    simt::meet("ldmatrix", ~0u, &one, simt_load);
}

struct SimtProduct {
    int* d;
    unsigned a[4], b[2];
};
// Products of two rows of eight words.
inline int simt_dot_bits(const unsigned* a, const unsigned* b) {
    unsigned long long x[4], y[4];
    std::memcpy(x, a, 32);
    std::memcpy(y, b, 32);
    return __builtin_popcountll(x[0] & y[0]) + __builtin_popcountll(x[1] & y[1])
         + __builtin_popcountll(x[2] & y[2]) + __builtin_popcountll(x[3] & y[3]);
}
inline int simt_dot_bytes(const unsigned* a, const unsigned* b) {
    signed char x[32], y[32];
    std::memcpy(x, a, 32);
    std::memcpy(y, b, 32);
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += x[i] * y[i];
    return sum;
}
// Row g of a is in lanes 4 g ... 4 g + 3 (words 0, 2; of row g + 8: 1, 3), column g of b in the same
// lanes; lane 4 g + t receives columns 2 t and 2 t + 1 of rows g and g + 8.
template <int DOT(const unsigned*, const unsigned*)>
inline void simt_multiply(void* const* operands, unsigned) {
    unsigned a[16][8], b[8][8];
    for (int lane = 0; lane < 32; ++lane) {
        const SimtProduct& one = *static_cast<SimtProduct*>(operands[lane]);
        const int g = lane / 4, t = lane % 4;
        for (int half = 0; half < 2; ++half) {
            a[g][4 * half + t] = one.a[2 * half];
            a[g + 8][4 * half + t] = one.a[2 * half + 1];
            b[g][4 * half + t] = one.b[half];
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        int* d = static_cast<SimtProduct*>(operands[lane])->d;
        for (int i = 0; i < 4; ++i)
            d[i] += DOT(a[lane / 4 + i / 2 * 8], b[lane % 4 * 2 + i % 2]);
    }
}
inline void multiply_bits(int* d, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                          unsigned b1) {
    SimtProduct one{d, {a0, a1, a2, a3}, {b0, b1}};
    simt::meet("mma b1", ~0u, &one, simt_multiply<simt_dot_bits>);
}
inline void multiply_bytes(int* d, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                           unsigned b1) {
    SimtProduct one{d, {a0, a1, a2, a3}, {b0, b1}};
    simt::meet("mma s8", ~0u, &one, simt_multiply<simt_dot_bytes>);
}

inline int weigh_halves(unsigned counts, unsigned weights) {
    return (int)(counts & 0xFFFF) * (signed char)weights
         + (int)(counts >> 16) * (signed char)(weights >> 8);
}
inline float reciprocal(float x) { return 1.0f / x; }
inline void forget(unsigned&) {}
