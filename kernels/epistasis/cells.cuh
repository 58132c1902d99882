// cells: contingency tables from few counts, and a lower bound of their cost that rules most of
// them out.
//
// Tables    A site's two rarest genotypes are stored (states 0 and 1), the third follows from
//           margins (state 2). Counts are packed as controls << 16 | cases: one subtraction derives
//           a cell in both classes, and because the true cells are non-negative and fit, arithmetic
//           modulo 2^32 is exact whatever the intermediate values. SPLIT_CELLS = 1 stores the two in words
//           of their own: for cells of more than 65 535 samples of a class, and for shares of cases
//           that no ratio of small weights comes close to. SPLIT_ACCUMULATORS = 1 also counts the products of
//           the two in words of their own: for pairs of sites with more than 65 535 samples of a
//           class in one pair of stored states. Then a class has at most 2^23 - 1 samples, whose
//           number a float holds exactly (`exact_float`).
// Bound     With r near the share of cases, m controls and k cases in a cell, n = m + k, u = k/n - r:
//             n KL(k/n || r) = n u^2 phi(u),
//             phi(u) = integral_0^1 (1-s) [1/(r+su) + 1/(1-r-su)] ds
//           1/phi is a weighted harmonic mean of functions that are linear in u and positive, so it
//           is concave: above the chord between its ends, u = -r and u = 1 - r, and above those
//           between each end and u = 0, extended: the smaller of these two. Below, a line is linear
//           in u, so n times it is a weighted sum of m and k:
//             n KL(k/n || r) <= (k - r n)^2 / line(m, k).
//           `Bound` takes one line, `CloseBound` the smaller of two.
//           Mutual information: cost = -N I >= -sum n KL(k/n || r), for any r. Gini: the line is n, and
//           cost >= -sum (k - r n)^2 / n (`need_of` of epistasis/bound.py). K2: a cell costs at
//           least its share of that and a line in n, occupied + person n where n >= 1 (K2Terms of
//           epistasis/bound.py): the sum over cells counts `occupied` for each empty cell,
//           and `need` contains it for all cells, and the rest. A table whose bound is above the K-th
//           best cost cannot be among the best.
//           LOGS = 1, K2 as published: a cell costs about ln(1 + 2 n / 3) / 2 more (`HalfLogs`), which
//           the value is less by.
//           Where both classes share a word, r = w0 / (w0 + w1) with small integers: the excess
//           w1 k - w0 m = (w0 + w1) (k - r n) is an integer dot product, and so is
//             line(m, k) + 1, bytes that are rounded down:
//           the 1 avoids a division by 0; it is what an empty cell is counted by, and `steep`
//           contains what it makes of other cells at most.
//           float32: all terms of a sum are positive, so the error is relative, below 70 of 2^-24:
//           SLACK of epistasis/bound.py, which `steep` contains, is 128 of them.
//
// Interaction  INTERACTION = 1: the value is that of the mutual information I of all sites and the
//           phenotype, and a table passes if value >= need + offset, offset the largest I of one
//           site fewer: LR / 2 <= I - offset (bound 1 of epistasis/interaction_cpu.py, which has the
//           proof). Where genotypes are missing offset is 0 here; `bound_records` computes it from
//           the table's own cells.
//
// Residuals RESIDUALS = 1 (epistasis/residual_cpu.py): a cell holds people and the sum of their levels in the
//           places of controls and cases (so SPLIT_CELLS = 1), s = sum - ZERO_LEVEL n, and a pair passes if
//           sum s^2 / n >= need + offset, offset that of the better site alone.
//
// Missing   STATES = 3: the third stored state is 'missing'. Its products are counted like those of
//           the other two, so that the derived cells hold only samples called at every
//           site. X_STATES = 3, STATES = 2: x alone has missing genotypes.
//           Its part 'missing' is counted in order to be subtracted: with the people that x lacks
//           left out, tables of three sites follow from margins as those without missing genotypes.
//           COLUMN_STATES = 3, STATES = 2: pairs whose first site alone has missing genotypes. Each
//           stored state of the first site is counted with states 0 and 1 of the complete one: six
//           products. A row of the complete site then lacks its cell with the genotype of the first
//           site that is not stored, and a column of the first site its cell with the genotype of the
//           complete one: both follow from margins; the column 'missing' is left out of the table.
//
// Compile with -DINTERACTION=0|1 -DRESIDUALS=0|1 (then INTERACTION = SPLIT_ACCUMULATORS = 1)
// -DLOGS=0|1 (INTERACTION = 0)
// -DSPLIT_CELLS=0|1 -DSPLIT_ACCUMULATORS=0|1
// (then SPLIT_CELLS = 1) -DSTATES=2|3, -DCOLUMN_STATES=2|3 (of z; others than STATES in pairs alone),
// -DMARGINS_Y=.. -DMARGINS_Z=.. (words in shared memory of the margins of one site) and
// -DRECORD_WORDS=...

#pragma once

#include "../ptx.cuh"
#include "../types.cuh"

#if !defined(RECORD_SITES) || !defined(LEVEL_BITS) || !defined(ZERO_LEVEL)
#error "RECORD_SITES, LEVEL_BITS and ZERO_LEVEL come from epistasis/layout.py"
#endif
#if !defined(INTERACTION) || !defined(RESIDUALS) || (RESIDUALS && !(SPLIT_ACCUMULATORS && INTERACTION))
#error "INTERACTION and RESIDUALS come from epistasis/scan_plan.py"
#endif
#if !defined(LOGS) || !defined(LOG_SHIFT) || (LOGS && INTERACTION)
#error "LOGS comes from epistasis/scan_plan.py, LOG_SHIFT from epistasis/layout.py"
#endif
#if !defined(SPLIT_CELLS) || !defined(SPLIT_ACCUMULATORS) || (SPLIT_ACCUMULATORS && !SPLIT_CELLS)
#error "SPLIT_CELLS and SPLIT_ACCUMULATORS come from epistasis/scan_plan.py"
#endif
#if !defined(COLUMN_STATES) || COLUMN_STATES < STATES
#error "COLUMN_STATES comes from epistasis/scan_plan.py"
#endif
#if !defined(MARGINS_Y) || !defined(MARGINS_Z) || !defined(RECORD_WORDS)
#error "MARGINS_Y, MARGINS_Z and RECORD_WORDS come from epistasis/scan_plan.py"
#endif

// A weighted sum of the samples of a cell: bytes of cases, then of controls; SPLIT_CELLS: floats.
struct Line {
    u32 bytes;
    float cases, controls;
};
// What the sum over cells is multiplied by, and what an empty cell adds to it.
struct Slope {
    float steep, empty;
};
struct Lines {
    u32 weights;  // signed bytes w1, -w0; unused with SPLIT_CELLS
    float r;
    Line whole, low, high;  // of all u; of u <= 0 and u >= 0, each above the other one elsewhere
    Slope of_whole, of_parts;
};

#if SPLIT_CELLS
struct Count {
    u32 controls, cases;
};
__device__ __forceinline__ Count operator-(Count a, Count b) {
    return {a.controls - b.controls, a.cases - b.cases};
}
__device__ __forceinline__ Count unpack(u32 packed) { return {packed >> 16, packed & 0xFFFF}; }
__device__ __forceinline__ Count count_of(u32 controls, u32 cases) { return {controls, cases}; }
__device__ __forceinline__ float exact_float(u32 value) {
    return __uint_as_float(value | 0x4B000000u) - 8388608.0f;
}
__device__ __forceinline__ float excess_of(Count c, const Lines& q) {
    const float cases = exact_float(c.cases);
    return fmaf(-q.r, exact_float(c.controls) + cases, cases);
}
__device__ __forceinline__ float on_line(Count c, const Line& line) {
    return fmaf(line.controls, exact_float(c.controls), fmaf(line.cases, exact_float(c.cases), 1.0f));
}
__device__ __forceinline__ float on_lower(Count c, const Line& a, const Line& b) {
    return fminf(on_line(c, a), on_line(c, b));
}
__device__ __forceinline__ float twice_and_three(Count c) {
    return fmaf(2.0f, exact_float(c.controls) + exact_float(c.cases), 3.0f);
}
constexpr int COUNT_WORDS = 2;
__device__ __forceinline__ void write_count(u32* to, Count c) { to[0] = c.controls; to[1] = c.cases; }
#else
struct Count {
    u32 packed;
};
__device__ __forceinline__ Count operator-(Count a, Count b) { return {a.packed - b.packed}; }
__device__ __forceinline__ Count unpack(u32 packed) { return {packed}; }
__device__ __forceinline__ Count count_of(u32 controls, u32 cases) {
    return {(controls << 16) + cases};
}
// One integer dot product for both halves, then a conversion: unlike float additions, these do not
// slow the tensor cores down.
__device__ __forceinline__ float excess_of(Count c, const Lines& q) {
    return (float)weigh_halves(c.packed, q.weights);
}
__device__ __forceinline__ float on_line(Count c, const Line& line) {
    return (float)(int)__dp2a_lo(c.packed, line.bytes, 1u);
}
__device__ __forceinline__ float on_lower(Count c, const Line& a, const Line& b) {
    const u32 on_a = __dp2a_lo(c.packed, a.bytes, 1u), on_b = __dp2a_lo(c.packed, b.bytes, 1u);
    return (float)(int)min(on_a, on_b);
}
__device__ __forceinline__ float twice_and_three(Count c) {
    return (float)(int)__dp2a_lo(c.packed, 0x0202u, 3u);
}
constexpr int COUNT_WORDS = 1;
__device__ __forceinline__ void write_count(u32* to, Count c) { to[0] = c.packed; }
#endif
// Adds so many controls (phenotype 0) or cases to a count in memory.
__device__ __forceinline__ void add_count(u32* to, int phenotype, u32 n) {
    if (SPLIT_CELLS)
        atomicAdd(to + phenotype, n);
    else
        atomicAdd(to, phenotype ? n : n << 16);
}
// Element `index` of an array of counts, in words: whatever their size, SPLIT_CELLS or not.
__device__ __forceinline__ Count read_count(const u32* from, i64 index) {
#if SPLIT_CELLS
    return {from[2 * index], from[2 * index + 1]};
#else
    return {from[index]};
#endif
}

// Half the sum over cells of logarithms of 1 + 2 n / 3 in nats, roughly: `growth` of
// epistasis/bound.py, which the line below a cell's cost is computed from; 0 without LOGS. The bits of
// a float, read as an integer, are close to its logarithm to base 2.
struct HalfLogs {
#if LOGS
    u32 sum = 0;

    __device__ __forceinline__ void add(Count c) {
        constexpr u32 BITS_OF_THREE = 0x40400000u;
        sum += (__float_as_uint(twice_and_three(c)) - BITS_OF_THREE) >> LOG_SHIFT;
    }
    __device__ __forceinline__ float value() const {
        constexpr float HALF_NATS = 0.34657359f / (1 << (23 - LOG_SHIFT));
        return (float)sum * HALF_NATS;
    }
#else
    __device__ __forceinline__ void add(Count) {}
    __device__ __forceinline__ float value() const { return 0.0f; }
#endif
};

// Bounds: add all cells; a table can only cost less than the cutoff if value >= `need`.
struct Bound {
    float sum = 0.0f;
    HalfLogs logs;

    __device__ __forceinline__ void add(Count c, const Lines& q) {
        const float excess = excess_of(c, q);
        sum = fmaf(fmaf(excess, excess, q.of_whole.empty), reciprocal(on_line(c, q.whole)), sum);
        logs.add(c);
    }
    __device__ __forceinline__ float value(const Lines& q) const {
        return sum * q.of_whole.steep - logs.value();
    }
};
// The same, closer: two more instructions a cell.
struct CloseBound {
    float sum = 0.0f;
    HalfLogs logs;

    __device__ __forceinline__ void add(Count c, const Lines& q) {
        const float excess = excess_of(c, q), line = on_lower(c, q.low, q.high);
        sum = fmaf(fmaf(excess, excess, q.of_parts.empty), reciprocal(line), sum);
        logs.add(c);
    }
    __device__ __forceinline__ float value(const Lines& q) const {
        return sum * q.of_parts.steep - logs.value();
    }
};

// The same of levels: the sum of squares between the cells.
struct Squares {
    float sum = 0.0f;

    __device__ __forceinline__ void add(Count c) {
#if RESIDUALS
        const float s = (float)(int)(c.cases - ZERO_LEVEL * c.controls);
        sum = fmaf(s * s, reciprocal(fmaxf((float)c.controls, 1.0f)), sum);
#endif
    }
    __device__ __forceinline__ float value() const { return sum * (1.0f + 1.0f / (1 << 17)); }
};

// Counts of a pair of sites: STATES x COLUMN_STATES words, y's state first; SPLIT_ACCUMULATORS: of
// the controls, then of the cases (RESIDUALS: of people, then of levels). Else both classes share a word.
constexpr int CELLS = STATES * COLUMN_STATES, WORDS = 1 + SPLIT_ACCUMULATORS;
struct Counts {
    u32 word[WORDS * CELLS];
};

// Margins of a triple: xy[g][s] counts x in state g, y in s; xo[g], yo[s], oo count one or both of
// them in the genotype that is not stored. The same for z, as far as needed.
struct MarginsY {
    Count xy[STATES][STATES], xo[STATES], yo[STATES], oo;
};
struct MarginsZ {
    Count xz[STATES][STATES], zo[STATES];
};
// Counts of them in shared memory, padded so that 8 sites lie in different banks.
static_assert(MARGINS_Y >= STATES * STATES + 2 * STATES + 1 && MARGINS_Z >= STATES * STATES + STATES,
              "MARGINS in epistasis/scan_plan.py are too small");

// Calls visit(index, count) for the 9 cells of y and z, index = first + 3 y + z. cell[s][t]:
// counted; y[s], z[t]: all samples with y in s, z in t; other: all with y in no stored state.
template <class Visit>
__device__ __forceinline__ void visit_plane(int first,
                                            const Count (&cell)[STATES][COLUMN_STATES],
                                            const Count (&y)[STATES], Count other,
                                            const Count (&z)[COLUMN_STATES], Visit visit) {
    #pragma unroll
    for (int s = 0; s < COLUMN_STATES; ++s) {
        Count column = z[s];
        #pragma unroll
        for (int t = 0; t < STATES; ++t) column = column - cell[t][s];
        other = other - column;
        if (s < 2) {
            Count row = y[s];
            #pragma unroll
            for (int t = 0; t < COLUMN_STATES; ++t) row = row - cell[s][t];
            visit(first + 3 * s, cell[s][0]);
            visit(first + 3 * s + 1, cell[s][1]);
            visit(first + 3 * s + 2, row);
            visit(first + 6 + s, column);
        }
    }
    visit(first + 8, other);
}

__device__ __forceinline__ void unpack(const Counts& from, Count (&cell)[STATES][COLUMN_STATES]) {
    #pragma unroll
    for (int i = 0; i < CELLS; ++i)
#if SPLIT_ACCUMULATORS
        cell[i / COLUMN_STATES][i % COLUMN_STATES] = {from.word[i], from.word[CELLS + i]};
#else
        cell[i / COLUMN_STATES][i % COLUMN_STATES] = unpack(from.word[i]);
#endif
}

#if COLUMN_STATES == STATES
// Visits the cells of a triple with x in state g. g = 2, the genotype that is not stored: `counts`
// are then those of (y, z) minus those with x in a stored state.
template <class Visit>
__device__ __forceinline__ void visit_x(int g, const Counts& counts, const MarginsY& y,
                                        const MarginsZ& z, Visit visit) {
    Count cell[STATES][STATES];
    unpack(counts, cell);
    if (g < 2)
        visit_plane(9 * g, cell, y.xy[g], y.xo[g], z.xz[g], visit);
    else
        visit_plane(9 * g, cell, y.yo, y.oo, z.zo, visit);
}
#endif

// Output of combinations that the bound does not rule out: records of sites, then all cells.
static_assert(RECORD_SITES + (QUADS ? 81 : 27) * COUNT_WORDS <= RECORD_WORDS, "a record holds all cells");
struct Found {
    u32* records;
    u64* number;
    u64 capacity;
    const int2* places;  // chromosome and position of each site, or null: all are far enough apart
    int min_distance;
    int n_sites;
    int first, stop;  // range of the smallest site; QUADS: w, which no record has, and the end of x

    __device__ __forceinline__ bool permitted(int i, int j) const {
        if (!places) return true;
        const int2 a = places[i], b = places[j];
        return a.x != b.x || abs(a.y - b.y) >= min_distance;
    }
    // Reserves a record and writes its sites; null if there is no room or two sites are too close.
    __device__ __forceinline__ u32* take(int x, int y, int z) const {
        if (y >= z || z >= n_sites || !permitted(y, z)) return nullptr;
        if (x < 0 ? y < first || y >= stop
                  : x >= y || x >= stop || !permitted(x, y) || !permitted(x, z))
            return nullptr;
        if (QUADS && !(permitted(first, x) && permitted(first, y) && permitted(first, z))) return nullptr;
        const u64 index = atomicAdd(number, 1ull);
        if (index >= capacity) return nullptr;
        u32* record = records + index * RECORD_WORDS;
        record[0] = (u32)x;
        record[1] = (u32)y;
        record[2] = (u32)z;
        return record + RECORD_SITES;
    }
};
