// scan: what all cores of the epistasis scans share: their parameters, and the margins from which
// uncounted cells follow (cells.cuh).
//
// Rows      8 rows of state 0 of 8 sites, then 8 of their state 1 (and of 2, missing); packed tiles
//           hold 64 sites. A thread that holds the count of one state in some row and column holds,
//           8 rows or columns further, the count of the next state of the same sites.
// Items     (tiles of 64 sites of y, Z_SITES of z, range of operands of the batch). A core for
//           triples processes all operands of the range with one item.
// Columns   COLUMN_STATES = 3, STATES = 2: z are sites before all y, with missing genotypes; their
//           packed planes lie in `columns`. Of such a pair z is the first site.
// Depth     An operand is one x, or OPERAND_SITES of them (parts.cuh): samples sorted by the states of x,
//           the controls, then the cases of each part, each padded to 256 bits; `segments` holds
//           their ends in steps of 256. Between controls and cases the accumulators are shifted by
//           16 bits.
//
// Compile with -DORDER=2|3 -DTABLE=0|1 (ORDER 2: write the packed counts, no scores) and the
// parameters of parts.cuh.

#pragma once

#include "cells.cuh"
#include "parts.cuh"

#if !defined(TILE_SITES) || !defined(STEP_BITS) || !defined(STAGE_BITS) || !defined(SCAN_BYTES)
#error "TILE_SITES, STEP_BITS, STAGE_BITS and SCAN_BYTES come from epistasis/layout.py"
#endif

struct Scan {
    Found found;
    Lines lines;
    float need;
    u32 controls, cases;
    const u32* margins;  // (sites of all tiles, PLANES): sizes of the states, as in read_count
    // INTERACTION, no missing genotypes: what each site (ORDER = 2) or pair of sites i < j (3, rows
    // of known_pitch) says about the phenotype, N times the mutual information in nats, rounded down
    // QUADS: known_pitch, sites of all tiles
    const float* known;
    int known_pitch;
    // MIXED: packed planes of z, whole tiles of the sites in [first_column, end_of_columns)
    int first_column, end_of_columns;
    const u8* columns;
    // QUADS: samples with w in each genotype; `margins` and the pair tables are those of state 0 of w, of
    // state 1 and of none, the tables of the next one so many words further
    u32 of_w[3][2];
    i64 table_words;
};
static_assert(sizeof(Scan) == SCAN_BYTES, "SCAN in epistasis/layout.py is laid out like Scan");

// `given`: the genotype of w.
__device__ __forceinline__ Count all_samples(const Scan& scan, int given = 0) {
    return QUADS ? count_of(scan.of_w[given][0], scan.of_w[given][1])
                 : count_of(scan.controls, scan.cases);
}

constexpr bool OFFSETS = INTERACTION && X_STATES == 2;
// Pairs of a complete site, y, and one before it with missing genotypes, z.
constexpr bool MIXED = COLUMN_STATES != STATES;
static_assert(!MIXED || (ORDER == 2 && !TABLE && !RESIDUALS && !OFFSETS), "only pairs that are scored");
constexpr int XY_CELLS = X_STATES * STATES;  // counts of x with another site
__device__ __forceinline__ float known_of(const Scan& scan, int i, int j) {
    return scan.known[(i64)i * scan.known_pitch + j];
}
__device__ __forceinline__ float known_of_triple(const Scan& scan, int i, int j, int k) {
    return fmaxf(known_of(scan, j, k), fmaxf(known_of(scan, i, j), known_of(scan, i, k)));
}

// All samples with a site in state s.
__device__ __forceinline__ Count margin_of(const Scan& scan, int site, int s, int given = 0) {
    return read_count(scan.margins, ((QUADS ? (i64)given * scan.known_pitch : 0) + site) * PLANES + s);
}

// Whether a combination reaches `least`. QUADS: what the samples with w in state 0 contribute waits in `sum`,
// then also what those in state 1 do; the last ones decide.
__device__ __forceinline__ bool reaches(float value, float least, int given, float& sum) {
    if (QUADS && given > 0) value += sum;
    if (QUADS && given < GIVEN - 1) sum = value;
    return given == GIVEN - 1 && value >= least;
}

// Rows of z of one stage of an operand: where those of site `first_z` begin, and bytes of a stage.
struct Columns {
    const u8* from;
    i64 stride;
    __device__ __forceinline__ Columns(const u8* packed, int first_z, int first_site,
                                       int padded_sites, const Scan& scan) {
        if (MIXED) {
            packed = scan.columns;
            first_site = scan.first_column;
            padded_sites = scan.end_of_columns;
        }
        constexpr int SITE_BYTES = COLUMN_STATES * (STAGE_BITS / 8);
        from = packed + (i64)(first_z - first_site) * SITE_BYTES;
        stride = (i64)(padded_sites - first_site) * SITE_BYTES;
    }
};

// Reserves a record for the pair (y, z), or null.
__device__ __forceinline__ u32* take_pair(const Found& found, int y, int z) {
    return MIXED ? found.take(-1, z, y) : found.take(-1, y, z);
}
// Writes a cell of it, index 3 y + z; the first site's state first.
__device__ __forceinline__ void write_cell(u32* record, int index, Count n) {
    if (MIXED) index = index % 3 * 3 + index / 3;
    write_count(record + index * COUNT_WORDS, n);
}

// First word of the pair table of (tile y, sites of z from first_z, the first one of an item).
__device__ __forceinline__ i64 table_at(int tile_y, int first_z, int padded_sites) {
    return ((i64)tile_y * padded_sites + first_z) * TILE_SITES * CELLS * WORDS;
}
#if ORDER == 3
// Margins of one x with some sites of an item: one thread per site, first Y_SITES of y, then those of
// z.
template <int Z_SITES, int Y_SITES = TILE_SITES>
struct MarginMaker {
    int site;
    bool of_y;
    Count own[XY_CELLS];  // x with this site
    Count size[STATES];
    int at;

    __device__ __forceinline__ MarginMaker(int thread, int first_y, int first_z, const Scan& scan) {
        of_y = thread < Y_SITES;
        at = of_y ? thread : min(thread - Y_SITES, Z_SITES - 1);
        site = (of_y ? first_y : first_z) + at;
        #pragma unroll
        for (int s = 0; s < STATES; ++s) size[s] = margin_of(scan, site, s);
    }
    // xy: counts of all operands of a batch with every site, XY_CELLS each
    __device__ __forceinline__ void load(const u32* xy, int operand, int padded_sites,
                                         const Scan& scan) {
        if (QUADS) {
            #pragma unroll
            for (int s = 0; s < STATES; ++s) size[s] = margin_of(scan, site, s, given_of(operand));
        }
        const i64 first = ((i64)operand * padded_sites + site) * XY_CELLS;
        #pragma unroll
        for (int i = 0; i < XY_CELLS; ++i) own[i] = read_count(xy, first + i);
    }
    __device__ __forceinline__ void make(int x, const Scan& scan, Count* margins_y,
                                         Count* margins_z, int given = 0) const {
        Count* to = of_y ? margins_y + at * MARGINS_Y : margins_z + at * MARGINS_Z;
        Count outside[STATES], rest = all_samples(scan, given), whole[X_STATES];
        #pragma unroll
        for (int s = 0; s < STATES; ++s) outside[s] = size[s];
        #pragma unroll
        for (int g = 0; g < X_STATES; ++g) {
            whole[g] = margin_of(scan, x, g, given);
            rest = rest - whole[g];
        }
        #pragma unroll
        for (int i = 0; i < XY_CELLS; ++i) {
            const Count with = own[i];
            if (i < CELLS) to[i] = with;  // else x is missing, and y and z are not
            outside[i % STATES] = outside[i % STATES] - with;
            whole[i / STATES] = whole[i / STATES] - with;
        }
        #pragma unroll
        for (int s = 0; s < STATES; ++s) {
            rest = rest - outside[s];
            if (of_y) to[CELLS + s] = whole[s];
            to[CELLS + (of_y ? STATES : 0) + s] = outside[s];
        }
        if (of_y) to[CELLS + 2 * STATES] = rest;
    }
};
// The first N of some counts in shared memory, which begin at a multiple of 16 bytes.
template <int N>
__device__ __forceinline__ void read_aligned(const Count* from, Count (&to)[N]) {
    constexpr int WORDS_OF_ALL = N * COUNT_WORDS;
    u32 word[(WORDS_OF_ALL + 3) / 4 * 4];
    #pragma unroll
    for (int i = 0; i < WORDS_OF_ALL; i += 4) {
        const uint4 four = reinterpret_cast<const uint4*>(from)[i / 4];
        word[i] = four.x;
        word[i + 1] = four.y;
        word[i + 2] = four.z;
        word[i + 3] = four.w;
    }
    #pragma unroll
    for (int i = 0; i < N; ++i) to[i] = read_count(word, i);
}
static_assert(MARGINS_Y % 4 == 0 && MARGINS_Z % 4 == 0, "read_aligned reads whole runs of 16 bytes");
__device__ __forceinline__ MarginsY read_margins_y(const Count* from) {
    MarginsY y;
    Count all[CELLS + 2 * STATES + 1];
    read_aligned(from, all);
    #pragma unroll
    for (int i = 0; i < CELLS; ++i) y.xy[i / STATES][i % STATES] = all[i];
    #pragma unroll
    for (int s = 0; s < STATES; ++s) {
        y.xo[s] = all[CELLS + s];
        y.yo[s] = all[CELLS + STATES + s];
    }
    y.oo = all[CELLS + 2 * STATES];
    return y;
}
__device__ __forceinline__ MarginsZ read_margins_z(const Count* from) {
    MarginsZ z;
    Count all[CELLS + STATES];
    read_aligned(from, all);
    #pragma unroll
    for (int i = 0; i < CELLS; ++i) z.xz[i / STATES][i % STATES] = all[i];
    #pragma unroll
    for (int s = 0; s < STATES; ++s) z.zo[s] = all[CELLS + s];
    return z;
}
#endif
