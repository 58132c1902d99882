// pair_sizes: how many samples pairs of sites have in common, to choose how blocks of them are
// counted (epistasis/packing_gpu.py).
//
// Formula   largest[y / TILE_SITES][z / BLOCK_SITES] = most samples of one class, of all y < z of the
//           block: in a pair of stored states, and in any of the nine cells.
// Shapes    largest u32 (tiles of y, padded_sites / BLOCK_SITES, 2), zero before; tables as
//           `pair_counts` of the including core reads them.
// Threads   one per pair: x over z, a warp for each block of z, y over rows.
//
// Include after `pair_counts`, with -DORDER=2 -DTABLE=1 -DSPLIT_ACCUMULATORS=1.

#pragma once

#if !defined(BLOCK_SITES) || !defined(TILE_SITES)
#error "BLOCK_SITES and TILE_SITES come from epistasis/layout.py"
#endif
static_assert(BLOCK_SITES == 32, "a warp has a block of z");

extern "C" __global__ void pair_sizes(const u32* tables, int first_y, int stop_y, int n_sites,
                                      int padded_sites, const u32* margins, u32 controls, u32 cases,
                                      u32* largest) {
    const int z = blockIdx.x * blockDim.x + threadIdx.x;
    for (int y = first_y + blockIdx.y; y < stop_y; y += gridDim.y) {
        u32 most[2] = {0, 0};
        if (y < z && z < n_sites) {
            Count cell[STATES][STATES], of_y[STATES], of_z[STATES];
            Count other = count_of(controls, cases);
            const Counts counts = pair_counts(tables, y, z, padded_sites);
            unpack(counts, cell);
            #pragma unroll
            for (int i = 0; i < WORDS * CELLS; ++i) most[0] = max(most[0], counts.word[i]);
            #pragma unroll
            for (int s = 0; s < STATES; ++s) {
                of_y[s] = read_count(margins, (i64)y * PLANES + s);
                of_z[s] = read_count(margins, (i64)z * PLANES + s);
                other = other - of_y[s];
            }
            visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) {
                most[1] = max(most[1], max(n.controls, n.cases));
            });
        }
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            for (int s = 16; s; s /= 2) most[i] = max(most[i], __shfl_xor_sync(~0u, most[i], s));
            if (threadIdx.x % 32 == 0 && most[i])
                atomicMax(largest + 2 * ((i64)(y / TILE_SITES) * (padded_sites / BLOCK_SITES)
                                         + z / BLOCK_SITES) + i, most[i]);
        }
    }
}
