// epistasis_scan: what the three cores of the epistasis scans share: which thread holds which
// combination, and what becomes of its counts (DESIGN section 8, steps 2 and 4).
//
// Rows      Sites come in tiles of 64, 128 rows: 8 sites' state 0, then their state 1, 16 rows at a
//           time. In the accumulators of an m16n8 product a thread then has both states of both
//           sites: row r and r + 8 of A, columns of two neighbouring blocks of 8 of B. All four
//           counts of a pair, for both states of x, lie in one thread.
// Items     (tile of y, tile of z); a triple core walks over all x of the batch with one item, so
//           the pair table of the item (yz) is read once. Pairs take two tiles of z.
// Depth     Operands of one x: the samples with x in (controls, 0), (controls, 1), (cases, 0),
//           (cases, 1), each padded to 256 bits: `segments` holds their ends in steps of 256.
//           Between controls and cases the accumulators are shifted by 16 bits.
// Epilogue  A warp puts the counts of CHUNK pairs a thread into shared memory and scores them in a
//           rolled loop: unrolled over all 16 the code would not fit the instruction cache.
//
// Compile with -DORDER=2|3 -DZ_PARTS=1|2 (warpgroups beside each other along z) -DUNROLL=.. -DTABLE=0|1 (ORDER 2: write the packed counts, no scores).

constexpr int TILE_SITES = 64, STATES = 2;
constexpr int WARPS = 8 * Z_PARTS;             // that multiply and score
constexpr int N_ACC = 128 / Z_PARTS;
constexpr int Z_TILES = ORDER == 2 ? 2 : 1;    // of one item
constexpr int PRODUCTS = ORDER == 2 ? 1 : 2;   // sets of accumulators: states of x
constexpr int PAIRS = N_ACC / 4 / PRODUCTS;    // combinations of one thread
constexpr int Z_GROUPS = PAIRS / 2 / Y_GROUPS; // groups of 8 sites of z of one warp
constexpr int AT_ONCE = UNROLL;               // combinations scored together, for their latencies
constexpr int CHUNK = 4, CHUNKS_OF_WARP = PAIRS / CHUNK;
constexpr int STASH_BYTES = WARPS * CHUNK * PRODUCTS * 32 * 16;
constexpr int YZ_BYTES = TILE_SITES * TILE_SITES * 16;  // packed pair table of an item

// Sites that lie in one warp, and where thread `lane` finds its own.
__device__ __forceinline__ int warp_y(int warp) {
    return Y_GROUPS == 1 ? warp / 4 / Z_PARTS * 32 + warp % 4 * 8 : warp / 2 * 16;
}
__device__ __forceinline__ int warp_z(int warp) {
    return (Y_GROUPS == 1 ? warp / 4 % Z_PARTS : warp % 2) * Z_GROUPS * 8;
}
// Index into the yz table of an item, in the order in which a triple core reads it.
__device__ __forceinline__ int table_slot(int y, int z) {
    constexpr int Z_WARPS = Y_GROUPS == 1 ? Z_PARTS : 2, SITES = TILE_SITES / Z_WARPS;
    const int lane = y % 8 * 4 + z % 8 / 2, group = z % SITES / 8;
    const int warp = Y_GROUPS == 1 ? (y / 32 * Z_PARTS + z / SITES) * 4 + y % 32 / 8
                                   : y / 16 * 2 + z / SITES;
    const int pair = Y_GROUPS == 1 ? group : y % 16 / 8 * (SITES / 8) + group;
    return (warp * (TILE_SITES * TILE_SITES / WARPS / 32) + pair * 2 + z % 2) * 32 + lane;
}

struct Scan {
    Found found;
    Polynomial polynomial;
    float need;        // what the divergence has to reach
    u32 controls, cases;
    const u32* margins;  // (sites of all tiles, 2): packed sizes of states 0 and 1
};

__device__ __forceinline__ Count size_of(const u32* margins, int site, int state) {
    return unpack(margins[(i64)site * STATES + state]);
}
__device__ __forceinline__ Count all_samples(const Scan& scan) {
#if WIDE
    return {scan.controls, scan.cases};
#else
    return {scan.controls << 16 | scan.cases};
#endif
}

// acc[g][group of y][8 columns][4] of one thread: pair p = group of y * Z_GROUPS + group of z, e
// its odd or even site.
template <int K>
__device__ __forceinline__ void stash_chunk(const int (&acc)[N_ACC], uint4* stash, int lane) {
    if constexpr (K < CHUNKS_OF_WARP) {
        #pragma unroll
        for (int h = 0; h < 2; ++h)
            #pragma unroll
            for (int e = 0; e < 2; ++e)
                #pragma unroll
                for (int g = 0; g < PRODUCTS; ++g) {
                    const int at = (g * PAIRS / 2 + K * 2 + h) * 8 + e;
                    stash[((h * 2 + e) * PRODUCTS + g) * 32 + lane] =
                        make_uint4(acc[at], acc[at + 4], acc[at + 2], acc[at + 6]);
                }
    }
}
__device__ __forceinline__ void stash_chunk(int k, const int (&acc)[N_ACC], uint4* stash, int lane) {
    switch (k) {
        case 0: stash_chunk<0>(acc, stash, lane); break;
        case 1: stash_chunk<1>(acc, stash, lane); break;
        case 2: stash_chunk<2>(acc, stash, lane); break;
        case 3: stash_chunk<3>(acc, stash, lane); break;
        case 4: stash_chunk<4>(acc, stash, lane); break;
        case 5: stash_chunk<5>(acc, stash, lane); break;
        case 6: stash_chunk<6>(acc, stash, lane); break;
        case 7: stash_chunk<7>(acc, stash, lane); break;
    }
}

#if ORDER == 3
// Margins of one x with the sites of an item, made by 128 threads: one site of y or z each.
// own: packed counts (g, s) of x in state g with the site in state s.
__device__ __forceinline__ void make_margins(int thread, uint4 own, u32 size0, u32 size1,
                                             u32 x_size0, u32 x_size1, const Scan& scan,
                                             Count* margins_y, Count* margins_z) {
    const Count with[2][2] = {{unpack(own.x), unpack(own.y)}, {unpack(own.z), unpack(own.w)}};
    const Count size[2] = {unpack(size0), unpack(size1)};
    const Count x[2] = {unpack(x_size0), unpack(x_size1)};
    Count* to = thread < TILE_SITES ? margins_y + thread * MARGINS_Y
                                    : margins_z + (thread - TILE_SITES) * MARGINS_Z;
    #pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = with[i / 2][i % 2];
    const Count outside[2] = {size[0] - with[0][0] - with[1][0], size[1] - with[0][1] - with[1][1]};
    if (thread < TILE_SITES) {
        to[4] = x[0] - with[0][0] - with[0][1];
        to[5] = x[1] - with[1][0] - with[1][1];
        to[6] = outside[0];
        to[7] = outside[1];
        to[8] = all_samples(scan) - x[0] - x[1] - outside[0] - outside[1];
    } else {
        to[4] = outside[0];
        to[5] = outside[1];
    }
}

// Scores all triples of one warp: x with the sites first_y + .., first_z + ...
__device__ __forceinline__ void score_triples(const int (&acc)[N_ACC], uint4* stash,
                                              const uint4* yz, const Count* margins_y,
                                              const Count* margins_z, int warp, int lane, int x,
                                              int first_y, int first_z, const Scan& scan) {
    const int y0 = warp_y(warp) + lane / 4, z0 = warp_z(warp) + lane % 4 * 2;
    const Polynomial polynomial = scan.polynomial;
    const float need = scan.need;
    #pragma unroll 1
    for (int k = 0; k < CHUNKS_OF_WARP; ++k) {
        stash_chunk(k, acc, stash, lane);
        const int y = y0 + k * 2 / Z_GROUPS * 8;
        #pragma unroll AT_ONCE
        for (int slot = 0; slot < CHUNK; ++slot) {
            MarginsY my;
            const Count* from = margins_y + y * MARGINS_Y;
            #pragma unroll
            for (int i = 0; i < 4; ++i) my.xy[i / 2][i % 2] = from[i];
            my.xo[0] = from[4];
            my.xo[1] = from[5];
            my.yo[0] = from[6];
            my.yo[1] = from[7];
            my.oo = from[8];
            const int z = z0 + (k * 2 + slot / 2) % Z_GROUPS * 8 + slot % 2;
            const uint4 c[2] = {stash[(slot * 2) * 32 + lane], stash[(slot * 2 + 1) * 32 + lane]};
            const uint4 both = yz[(k * CHUNK + slot) * 32 + lane];
            MarginsZ mz;
            const Count* of = margins_z + z * MARGINS_Z;
            #pragma unroll
            for (int i = 0; i < 4; ++i) mz.xz[i / 2][i % 2] = of[i];
            mz.zo[0] = of[4];
            mz.zo[1] = of[5];
            Bound bound;
            visit_triple(c, both, my, mz, [&](int cell, Count n) {
                bound.add(cell, n, polynomial);
            });
            if (bound.may_enter(need)) {
                u32* record = scan.found.take(x, first_y + y, first_z + z);
                if (record)
                    visit_triple(c, both, my, mz, [&](int cell, Count n) {
                        write_count(record + cell * COUNT_WORDS, n);
                    });
            }
        }
    }
}
#else
// Scores all pairs of one warp, or writes their counts as the yz tables of two items.
__device__ __forceinline__ void score_pairs(const int (&acc)[N_ACC], uint4* stash, uint4* table,
                                            int warp, int lane, int first_y, int first_z,
                                            const Scan& scan) {
    const int y0 = warp_y(warp) + lane / 4, z0 = warp_z(warp) + lane % 4 * 2;
    const Polynomial polynomial = scan.polynomial;
    const float need = scan.need;
    #pragma unroll 1
    for (int k = 0; k < CHUNKS_OF_WARP; ++k) {
        stash_chunk(k, acc, stash, lane);
        const int y = y0 + k * 2 / Z_GROUPS * 8;
#if !TABLE
        const Count sizes_y[2] = {size_of(scan.margins, first_y + y, 0),
                                  size_of(scan.margins, first_y + y, 1)};
        const Count other = all_samples(scan) - sizes_y[0] - sizes_y[1];
#endif
        #pragma unroll AT_ONCE
        for (int slot = 0; slot < CHUNK; ++slot) {
            const int z = z0 + (k * 2 + slot / 2) % Z_GROUPS * 8 + slot % 2;
            const uint4 c = stash[slot * 32 + lane];
#if TABLE
            table[z / TILE_SITES * (YZ_BYTES / 16) + table_slot(y, z % TILE_SITES)] = c;
#else
            const Count sizes_z[2] = {size_of(scan.margins, first_z + z, 0),
                                      size_of(scan.margins, first_z + z, 1)};
            Bound bound;
            visit_pair(c, sizes_y, other, sizes_z, [&](int cell, Count n) {
                bound.add(cell, n, polynomial);
            });
            if (bound.may_enter(need)) {
                u32* record = scan.found.take(-1, first_y + y, first_z + z);
                if (record)
                    visit_pair(c, sizes_y, other, sizes_z, [&](int cell, Count n) {
                        write_count(record + cell * COUNT_WORDS, n);
                    });
            }
#endif
        }
    }
}
#endif
