// ptx: instructions that C++ has no name for, one small function each; NVIDIA only.
//
// Copies    16 bytes from global to shared memory, in groups that a thread waits for (cp.async,
//           compute capability 8.0 and later). Shared memory by its 32-bit address.
// Products  mma.sync (8.0 and later): d (16 x 8) += a (16 x k) b (k x 8), one warp. With g = lane / 4
//           and t = lane % 4, d[0], d[1] are row g, columns 2 t and 2 t + 1; d[2], d[3] the same of
//           row g + 8; a0, a2 belong to row g, a1, a3 to row g + 8, b0, b1 to column g.
// Tests     tests/simt replaces this file by functions in C++ and runs kernels on a CPU: no other
//           file that it compiles holds inline assembly.

#pragma once

#include "types.cuh"

__device__ __forceinline__ void copy_chunk(u32 target, const void* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source));
}
__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Waits until at most N groups of this thread's copies are under way.
template <int N> __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

// ldmatrix x4: lanes 0-7 hold the row addresses of the first 8 x 16-byte matrix, 8-15 of the
// second, ...
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

// k = 256 bits, AND + POPC. Words a0, a1, b0 hold bits 32 t ... 32 t + 31; a2, a3, b1 those 128 on.
__device__ __forceinline__ void multiply_bits(int* d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                              u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// k = 32 signed bytes. Words a0, a1, b0 hold bytes 4 t ... 4 t + 3; a2, a3, b1 those 16 on.
__device__ __forceinline__ void multiply_bytes(int* d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                               u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Both 16-bit halves of `counts`, unsigned, times the two low bytes of `weights`, signed.
__device__ __forceinline__ int weigh_halves(u32 counts, u32 weights) {
    int sum;
    asm("dp2a.lo.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(counts), "r"(weights), "r"(0));
    return sum;
}

// 1 / x with an error of one unit in the last place.
__device__ __forceinline__ float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// A value of which the compiler forgets what it was made of: what follows from it is computed again
// instead of being kept in registers.
__device__ __forceinline__ void forget(u32& value) { asm volatile("" : "+r"(value)); }
