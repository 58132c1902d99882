// epilogue: tables and bounds where the warps that count also score: the accumulators of m16n8
// products (or values in the same order) are in the registers of eight warps.
//
// Accumulators  a thread holds all states of its sites: rows r and r + 8 of a fragment, columns of
//           consecutive fragments.
// Phases    Two stored states: the counts of both states of x are held and scored together. Three
//           of x: those with x missing and with x in state 0 are added up in one set of accumulators
//           (RESIDENT_SUMS = 1), so that state 0 is scored from another set, then state 1 and the rest
//           together. Where shared memory is short, or SPLIT_ACCUMULATORS: one state after the other, and partial
//           sums of earlier phases wait in `scratch` (shared memory where it fits, else global).
// Epilogue  A warp stores the counts of CHUNK combinations per thread in shared memory and scores
//           them in a loop that is not unrolled over all of them: such code would not fit the
//           instruction cache.
//
// Compile with -DUNROLL=.. -DCHUNK=1|2|4 -DRESIDENT_SUMS=0|1 (1: triples, X_STATES = 3, SPLIT_ACCUMULATORS = 0) and the
// parameters of scan.cuh.

#pragma once

#include "scoring.cuh"

#if !defined(LAUNCH_Z_SITES) || !defined(LAUNCH_THREADS) || !defined(LAUNCH_SHARED) || \
    !defined(LAUNCH_SCRATCH) || !defined(CHUNK) || !defined(RESIDENT_SUMS)
#error "LAUNCH_Z_SITES ... CHUNK come from epistasis/scan_plan.py"
#endif

constexpr int WARPS = 8, Z_WARPS = 2, Y_GROUPS = 2;  // groups of 8 sites of y of one warp
// Triples: one state of x after the other.
#define BY_STATE (X_STATES == 3 || SPLIT_ACCUMULATORS)
// Sets of accumulators: states of x, or both words of a count.
constexpr int PRODUCTS = (ORDER == 3 && (!BY_STATE || RESIDENT_SUMS)) || SPLIT_ACCUMULATORS ? 2 : 1;
constexpr int N_ACC = MIXED ? 96 : STATES == 3 ? 72 * PRODUCTS : ORDER == 3 ? 64 * PRODUCTS : 128;
static_assert(!RESIDENT_SUMS || (ORDER == 3 && X_STATES == 3 && !SPLIT_ACCUMULATORS), "nothing to hold");
constexpr int PAIRS = N_ACC / CELLS / PRODUCTS;         // combinations of one thread
constexpr int Z_GROUPS = PAIRS / 2 / Y_GROUPS;          // groups of 8 sites of z of one warp
constexpr int Z_SITES = Z_GROUPS * 8 * Z_WARPS;         // of one item
static_assert(Z_SITES == LAUNCH_Z_SITES, "z_sites in epistasis/scan_plan.py differs");
constexpr int TABLE_Z = STATES == 2 ? 64 : 32;          // of one item of triples
constexpr int N_TILES = COLUMN_STATES * Z_GROUPS;              // blocks of 8 columns of one warp
constexpr int AT_ONCE = UNROLL;                         // scored together, to hide latency
constexpr int CHUNKS_OF_WARP = PAIRS / CHUNK;
static_assert(CHUNKS_OF_WARP <= 8, "stash_chunk has eight cases");
constexpr int STASH_WORDS = CHUNK * PRODUCTS * CELLS * 32;  // of one warp

// Slot `slot` of chunk k: its pair of groups of 8 sites, and the even or odd site of z in it.
__device__ __forceinline__ constexpr int pair_of(int k, int slot) {
    return CHUNK == 1 ? k / 2 : k * (CHUNK / 2) + slot / 2;
}
__device__ __forceinline__ constexpr int odd_of(int k, int slot) {
    return CHUNK == 1 ? k % 2 : slot % 2;
}

// First sites of a warp within an item.
__device__ __forceinline__ int warp_y(int warp) { return warp / Z_WARPS * Y_GROUPS * 8; }
__device__ __forceinline__ int warp_z(int warp) { return warp % Z_WARPS * Z_GROUPS * 8; }

// Index of sites (y, z) in the pair table, in the order in which a core for triples reads it.
__device__ __forceinline__ int table_index(int y, int z) {
    constexpr int SITES = TABLE_Z / Z_WARPS;
    const int warp = y / (8 * Y_GROUPS) * Z_WARPS + z / SITES;
    const int pair = y / 8 % Y_GROUPS * (SITES / 8) + z % SITES / 8;
    return warp * (TABLE_Z / 4) + pair * 2 + z % 2;
}

// Counts of pair number `pair` (group of y * Z_GROUPS + group of z), even or odd site e, from set g
// (SPLIT_ACCUMULATORS: both sets) of the accumulators acc[g][fragment of 16 rows][fragment of 8 columns][4].
__device__ __forceinline__ Counts counts_of(const int (&acc)[N_ACC], int g, int pair, int e) {
    Counts c;
    #pragma unroll
    for (int i = 0; i < WORDS * CELLS; ++i) {
        const int set = g + i / CELLS, cell = i % CELLS;
        const int rows = STATES * (pair / Z_GROUPS) + cell / COLUMN_STATES;
        const int column = COLUMN_STATES * (pair % Z_GROUPS) + cell % COLUMN_STATES;
        c.word[i] =
            acc[set * (N_ACC / PRODUCTS) + (rows / 2 * N_TILES + column) * 4 + e + rows % 2 * 2];
    }
    return c;
}
// Of the sets of accumulators from FIRST on.
template <int K, int FIRST>
__device__ __forceinline__ void stash_chunk(const int (&acc)[N_ACC], u32* stash, int lane) {
    if constexpr (K < CHUNKS_OF_WARP) {
        #pragma unroll
        for (int slot = 0; slot < CHUNK; ++slot)
            #pragma unroll
            for (int g = FIRST; g < PRODUCTS / WORDS; ++g)
                write_counts(stash, slot * (PRODUCTS / WORDS) + g, lane,
                             counts_of(acc, g, pair_of(K, slot), odd_of(K, slot)));
    }
}
template <int FIRST = 0>
__device__ __forceinline__ void stash_chunk(int k, const int (&acc)[N_ACC], u32* stash, int lane) {
    switch (k) {
        case 0: stash_chunk<0, FIRST>(acc, stash, lane); break;
        case 1: stash_chunk<1, FIRST>(acc, stash, lane); break;
        case 2: stash_chunk<2, FIRST>(acc, stash, lane); break;
        case 3: stash_chunk<3, FIRST>(acc, stash, lane); break;
        case 4: stash_chunk<4, FIRST>(acc, stash, lane); break;
        case 5: stash_chunk<5, FIRST>(acc, stash, lane); break;
        case 6: stash_chunk<6, FIRST>(acc, stash, lane); break;
        case 7: stash_chunk<7, FIRST>(acc, stash, lane); break;
    }
}

// The sites, within the item, of a thread's combination number `slot` of chunk k.
struct Place {
    int warp, lane;
    __device__ __forceinline__ int y(int k) const {
        return warp_y(warp) + lane / 4 + pair_of(k, 0) / Z_GROUPS * 8;
    }
    __device__ __forceinline__ int z(int k, int slot) const {
        return warp_z(warp) + lane % 4 * 2 + pair_of(k, slot) % Z_GROUPS * 8 + odd_of(k, slot);
    }
};

// Calls visit(index, slot, y, z) for all combinations of one warp, with their counts in slot `slot`
// of the stash.
template <class Visit>
__device__ __forceinline__ void each_combination(const int (&acc)[N_ACC], u32* stash, Place place,
                                                 Visit visit) {
    #pragma unroll 1
    for (int k = 0; k < CHUNKS_OF_WARP; ++k) {
        stash_chunk(k, acc, stash, place.lane);
        const int y = place.y(k);
        #pragma unroll AT_ONCE
        for (int slot = 0; slot < CHUNK; ++slot)
            visit(k * CHUNK + slot, slot, y, place.z(k, slot));
    }
}

#if ORDER == 3 && !BY_STATE
// Scores all triples of one warp: x with the sites from first_y and first_z.
__device__ __forceinline__ void score_triples(const int (&acc)[N_ACC], u32* stash, const u32* yz,
                                              const Count* margins_y, const Count* margins_z,
                                              Place place, int x, int first_y, int first_z,
                                              const Scan& scan, int given, float* values) {
    const Lines lines = scan.lines;
    const float need = scan.need;
    const int lane = place.lane;
    Counts next = read_counts(yz, 0, lane);
    #pragma unroll 1
    for (int k = 0; k < CHUNKS_OF_WARP; ++k) {
        stash_chunk(k, acc, stash, lane);
        const int y = place.y(k);
        const MarginsY my = read_margins_y(margins_y + y * MARGINS_Y);
        #pragma unroll 1
        for (int slot = 0; slot < CHUNK; ++slot) {
            const int z = place.z(k, slot);
            Counts c[3] = {read_counts(stash, slot * 2, lane),
                           read_counts(stash, slot * 2 + 1, lane), next};
            next = read_counts(yz, min(k * CHUNK + slot + 1, PAIRS - 1), lane);
            const MarginsZ mz = read_margins_z(margins_z + z * MARGINS_Z);
            float least = need;
            if (OFFSETS) least += known_of_triple(scan, x, first_y + y, first_z + z);
            subtract_states(c);
#if QUADS
            CloseBound bound;
            visit_triple(c, my, mz, [&](int, Count n) { bound.add(n, lines); });
            if (reaches(bound.value(lines), least, given, values[(k * CHUNK + slot) * 32 + lane]))
                scan.found.take(x, first_y + y, first_z + z);
#else
            if (!any_may_pass(c, my, mz, lines, least)) continue;
            #pragma unroll
            for (int i = 0; i < 3 * CELLS; ++i) forget(c[i / CELLS].word[i % CELLS]);
            record_triple(c, my, mz, x, first_y + y, first_z + z, lines, least, scan);
#endif
        }
    }
}
#endif

#if ORDER == 3 && (BY_STATE || QUADS)
constexpr int SCRATCH_WORDS =
    PAIRS * (RESIDENT_SUMS || !BY_STATE ? 1 : WORDS * CELLS + 1) * 32;  // of one warp
static_assert(WARPS * SCRATCH_WORDS == LAUNCH_SCRATCH, "epistasis/scan_plan.py differs");
#endif

#if ORDER == 3 && RESIDENT_SUMS
// Scores x in state 0 of all triples of one warp, from the second set of accumulators.
__device__ __forceinline__ void score_first_state(const int (&acc)[N_ACC], u32* stash,
                                                  float* values, const Count* margins_y,
                                                  const Count* margins_z, Place place,
                                                  const Scan& scan) {
    const Lines lines = scan.lines;
    const int lane = place.lane;
    #pragma unroll 1
    for (int k = 0; k < CHUNKS_OF_WARP; ++k) {
        stash_chunk<1>(k, acc, stash, lane);
        const MarginsY my = read_margins_y(margins_y + place.y(k) * MARGINS_Y);
        #pragma unroll AT_ONCE
        for (int slot = 0; slot < CHUNK; ++slot) {
            const Counts own = read_counts(stash, 2 * slot + 1, lane);
            const MarginsZ mz = read_margins_z(margins_z + place.z(k, slot) * MARGINS_Z);
            CloseBound bound;
            visit_x(0, own, my, mz, [&](int, Count n) { bound.add(n, lines); });
            values[(k * CHUNK + slot) * 32 + lane] = bound.value(lines);
        }
    }
}

// The rest of them: x in state 1 (second set) and in none (first set: x missing or in state 0).
__device__ __forceinline__ void score_other_states(const int (&acc)[N_ACC], u32* stash,
                                                   const float* values, const u32* yz,
                                                   const Count* margins_y, const Count* margins_z,
                                                   Place place, int x, int first_y, int first_z,
                                                   const Scan& scan) {
    const Lines lines = scan.lines;
    const float need = scan.need;
    const int lane = place.lane;
    Counts next = read_counts(yz, 0, lane);
    #pragma unroll 1
    for (int k = 0; k < CHUNKS_OF_WARP; ++k) {
        stash_chunk(k, acc, stash, lane);
        const int y = place.y(k);
        const MarginsY my = read_margins_y(margins_y + y * MARGINS_Y);
        #pragma unroll 1
        for (int slot = 0; slot < CHUNK; ++slot) {
            const int index = k * CHUNK + slot, z = place.z(k, slot);
            Counts own = read_counts(stash, 2 * slot + 1, lane), rest = next;
            const Counts others = read_counts(stash, 2 * slot, lane);
            next = read_counts(yz, min(index + 1, PAIRS - 1), lane);
            #pragma unroll
            for (int i = 0; i < CELLS; ++i) rest.word[i] -= others.word[i] + own.word[i];
            const MarginsZ mz = read_margins_z(margins_z + z * MARGINS_Z);
            float least = need - values[index * 32 + lane];
            if (OFFSETS) least += known_of_triple(scan, x, first_y + y, first_z + z);
            Bound bound;
            visit_x(1, own, my, mz, [&](int, Count n) { bound.add(n, lines); });
            visit_x(2, rest, my, mz, [&](int, Count n) { bound.add(n, lines); });
            if (!__any_sync(~0u, bound.value(lines) >= least)) continue;
            #pragma unroll
            for (int i = 0; i < CELLS; ++i) {
                forget(own.word[i]);
                forget(rest.word[i]);
            }
            CloseBound close;
            visit_x(1, own, my, mz, [&](int, Count n) { close.add(n, lines); });
            visit_x(2, rest, my, mz, [&](int, Count n) { close.add(n, lines); });
            // the cells of state 0 are not stored: count_records counts them again
            if (close.value(lines) >= least) scan.found.take(x, first_y + y, first_z + z);
        }
    }
}
#endif

#if ORDER == 3 && BY_STATE && !RESIDENT_SUMS
// What the 9 cells with x in one state add to the bound; y, z: STATES margins each.
__device__ __forceinline__ float bound_plane(const Counts& counts, const Count* y, Count other,
                                             const Count* z, const Lines& lines) {
    Count cell[STATES][STATES], of_y[STATES], of_z[STATES];
    unpack(counts, cell);
    #pragma unroll
    for (int s = 0; s < STATES; ++s) {
        of_y[s] = y[s];
        of_z[s] = z[s];
    }
    CloseBound bound;
    visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) { bound.add(n, lines); });
    return bound.value(lines);
}

// One phase: x in state `g`. `before`: not the first phase (partial sums are in scratch); `last`:
// the last phase.
__device__ __forceinline__ void score_phase(int g, bool before, bool last, const int (&acc)[N_ACC],
                                            u32* stash, u32* scratch, const u32* yz,
                                            const Count* margins_y, const Count* margins_z,
                                            Place place, int x, int first_y, int first_z,
                                            const Scan& scan, int given) {
    const Lines lines = scan.lines;
    const float need = scan.need;
    const int lane = place.lane;
    float* values = reinterpret_cast<float*>(scratch + PAIRS * WORDS * CELLS * 32);
    Counts next;
    if (last) next = read_counts(yz, 0, lane);
    each_combination(acc, stash, place, [&](int index, int slot, int y, int z) {
        const Counts own = read_counts(stash, slot, lane);
        Counts sum = own, rest = next;
        float value = 0.0f;
        if (last) next = read_counts(yz, min(index + 1, PAIRS - 1), lane);
        if (before) {
            const Counts earlier = read_counts(scratch, index, lane);
            #pragma unroll
            for (int i = 0; i < WORDS * CELLS; ++i) sum.word[i] += earlier.word[i];
        }
        if (before || given > 0) value = values[index * 32 + lane];
        const Count* my = margins_y + y * MARGINS_Y;
        const Count* mz = margins_z + z * MARGINS_Z;
        if (g < 2)
            value += bound_plane(own, my + g * STATES, my[CELLS + g], mz + g * STATES, lines);
        if (!last) {
            write_counts(scratch, index, lane, sum);
            values[index * 32 + lane] = value;
            return;
        }
        #pragma unroll
        for (int i = 0; i < WORDS * CELLS; ++i) rest.word[i] -= sum.word[i];
        value += bound_plane(rest, my + CELLS + STATES, my[CELLS + 2 * STATES], mz + CELLS,
                             lines);
        float least = need;
        if (OFFSETS) least += known_of_triple(scan, x, first_y + y, first_z + z);
        // the cells of earlier phases are not stored: count_records counts them again
        if (given < GIVEN - 1)
            values[index * 32 + lane] = value;
        else if (value >= least)
            scan.found.take(x, first_y + y, first_z + z);
    });
}
#endif

#if ORDER == 2
// Scores all pairs of one warp, or writes their counts as a pair table.
__device__ __forceinline__ void score_pairs(const int (&acc)[N_ACC], u32* stash, u32* tables,
                                            int padded_sites, Place place, int tile_y, int first_z,
                                            const Scan& scan) {
    const Lines lines = scan.lines;
    const float need = scan.need;
    const int lane = place.lane, first_y = tile_y * TILE_SITES;
    each_combination(acc, stash, place, [&](int, int slot, int y, int z) {
        const Counts c = read_counts(stash, slot, lane);
#if TABLE
        u32* table = tables + table_at(tile_y, first_z + z / TABLE_Z * TABLE_Z, padded_sites);
        write_counts(table, table_index(y, z % TABLE_Z), lane, c);
#else
        Count cell[STATES][COLUMN_STATES], of_y[STATES], of_z[COLUMN_STATES];
        Count other = all_samples(scan);
        unpack(c, cell);
        #pragma unroll
        for (int s = 0; s < STATES; ++s) {
            of_y[s] = margin_of(scan, first_y + y, s);
            other = other - of_y[s];
        }
        #pragma unroll
        for (int s = 0; s < COLUMN_STATES; ++s) of_z[s] = margin_of(scan, first_z + z, s);
        float least = need;
        if (OFFSETS) least += fmaxf(scan.known[first_y + y], scan.known[first_z + z]);
#if RESIDUALS
        Squares squares;
        visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) { squares.add(n); });
        const float value = squares.value();
#else
        CloseBound bound;
        visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) { bound.add(n, lines); });
        const float value = bound.value(lines);
#endif
        if (value >= least) {
            u32* record = take_pair(scan.found, first_y + y, first_z + z);
            if (record)
                visit_plane(0, cell, of_y, other, of_z,
                            [&](int index, Count n) { write_cell(record, index, n); });
        }
#endif
    });
}
#endif

#if ORDER == 2 && TABLE
#include "pair_counts.cuh"
#include "information.cuh"
#if SPLIT_ACCUMULATORS && !RESIDUALS
#include "pair_sizes.cuh"
#endif
#endif
