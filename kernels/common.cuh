// common: packed planes, work items and programs of products, which the bit-GEMM and the epistasis
// scans share.
//
// Packed planes. A block of samples lies on the device as bit-planes that are already tiled and
// swizzled, so kernels need no tail handling and each pipeline stage is one contiguous copy:
//
//   packed[plane][stage][tile][row][chunk]       bytes, contiguous
//     stage  1 024 sites = 128 bytes a row; sites are padded with zero bits. The stage is the
//            slower index than the tile, because CTAs that run together read the same stage
//     tile   128 samples (rows); samples are padded with zero rows to whole blocks of 256
//     chunk  16 bytes; chunk c of row r lies at position c ^ (r & 7): the 128-byte swizzle that
//            wgmma expects and that keeps ldmatrix free of bank conflicts
//
// Work. A problem is a list of 256 x 256 blocks of the result (only the upper triangle when a block
// of samples meets itself). The site axis is split into `n_splits` runs of stages (split-K) to fill
// the device. Work item (split, block) adds its part of every output to int32 accumulators in
// global memory. Items are numbered split-major: items that run at the same time read the same
// stages, which then hit L2.
//
// Program. The products of one output share one set of accumulators. They are computed in order of
// falling weight, and the accumulators are multiplied between two steps (Horner's rule):
//   4 (z v' + v z') + h e' + e h'  =  ((z v' + v z') * 4) + h e' + e h'
//
// Overflow. Accumulators are int32 and all arithmetic is modulo 2^32, so only the final value has
// to fit: 2^31 / 4 = 2^29 sites for a squared distance. The host folds the accumulators into int64
// totals before that.

#pragma once

#include "types.cuh"

#if !defined(TILE_ROWS) || !defined(BLOCK_ROWS) || !defined(STAGE_BITS) || \
    !defined(CHUNK_BYTES) || !defined(STEP_BYTES)
#error "TILE_ROWS ... STEP_BYTES come from engine/layout.py"
#endif

constexpr int STAGE_BYTES = STAGE_BITS / 8;
constexpr int STAGE_WORDS = STAGE_BYTES / 8;
constexpr int TILE_BYTES = TILE_ROWS * STAGE_BYTES;
constexpr int CHUNKS = STAGE_BYTES / CHUNK_BYTES;
constexpr int BLOCK_TILES = BLOCK_ROWS / TILE_ROWS;

// One product of a program: accumulators = accumulators * multiplier + popcount(a & b), then,
// where output >= 0, outputs[output] += weight * accumulators. Multiplier 0 clears them first.
struct Step {
    int plane_a, plane_b, multiplier, output, weight;
};
static_assert(sizeof(Step) == STEP_BYTES, "STEP in engine/layout.py is laid out like Step");

// A work item: its block of the result and its run of stages.
struct Item {
    int block_row, block_column, first_stage, end_stage;
};

__device__ __forceinline__ Item locate_item(int item, const int2* blocks, int n_blocks,
                                            int n_splits, int n_stages) {
    const int split = item / n_blocks;
    const int2 block = blocks[item - split * n_blocks];
    return {block.x, block.y, (int)((i64)n_stages * split / n_splits),
            (int)((i64)n_stages * (split + 1) / n_splits)};
}

// Address of one stage of one tile of one plane; the next stage follows n_tiles * TILE_BYTES later.
__device__ __forceinline__ const u8* packed_tile(const u8* packed, int plane, int stage, int tile,
                                                 int n_tiles, int n_stages) {
    return packed + (((i64)plane * n_stages + stage) * n_tiles + tile) * TILE_BYTES;
}

// Throttle for persistent CTAs. CTAs that run together read the same tiles: while they advance at
// the same pace, each tile is read once from HBM and then from L2. Unthrottled CTAs drift apart and
// L2 evicts tiles that slower CTAs still need (H200, 16 384 x 2^20, wgmma: 159 GB read and 72 to 80
// ms without; 74 GB with a limit of 16 stages, 64 to 67 ms with 2 to 8). Every EVERY stages one
// thread of a CTA increments `progress` and spins until all CTAs are at most EVERY stages behind.
// It gives up after PATIENCE polls: if not all CTAs are resident this costs time, but cannot
// deadlock. EVERY = 0: no throttle.
template <int EVERY>
struct Lockstep {
    static constexpr u32 PATIENCE = 1u << 14;
    u32* progress;
    u32 reports = 0, stages = 0;

    __device__ __forceinline__ void step() {
        if (EVERY == 0 || ++stages < EVERY) return;
        stages = 0;
        atomicAdd(progress, 1u);
        const u32 awaited = reports++ * gridDim.x;
        for (u32 poll = 0; *(volatile u32*)progress < awaited && poll < PATIENCE; ++poll) {
        }
    }
    // A finished CTA counts as far ahead, so that the others do not wait for it.
    __device__ __forceinline__ void finish() {
        if (EVERY) atomicAdd(progress, 1u << 22);
    }
};
