// compact_score: what surrounds the epistasis scans: planes packed, samples compacted, exact costs
// of the combinations that the bounds do not rule out.
//
// words     (n_sites, PLANES, n_words) u32 of one phenotype class: one bit per sample (OneHot of
//           engine/backend.py, viewed as 32-bit words).
// Rows      Packed planes are [stage][row][chunk], 8 STATES rows for 8 sites (site_of, state_of;
//           scan.cuh). Segments of the depth as in parts.cuh.
// Compact   without atomics: planes are also stored sample-major, (n_samples, row_words) u32, so that
//           compacting to the carriers of a genotype of x is a gather of whole rows and a transpose
//           of 32 x 32 bits in registers. Its cost is proportional to what is kept, not to what is
//           read (EPIClear, section 4.2, compacts word by word with atomics).
//
// Compile with the parameters of cells.cuh and parts.cuh.

#include "../common.cuh"
#include "cells.cuh"
#include "parts.cuh"

#if !defined(STEP_BITS) || !defined(COMPACT_ROWS) || !defined(TRANSPOSED_WORDS)
#error "STEP_BITS, COMPACT_ROWS and TRANSPOSED_WORDS come from epistasis/layout.py"
#endif

constexpr int STAGE_STEPS = STAGE_BITS / STEP_BITS;
constexpr int COMPACT_PITCH = STAGE_BITS / 2 / 32 + 1;  // words of half a stage of a row, padded

__device__ __forceinline__ int site_of(int row, int states = STATES) {
    return row / (8 * states) * 8 + row % 8;
}
__device__ __forceinline__ int state_of(int row, int states = STATES) { return row / 8 % states; }
__device__ __forceinline__ int segment_of(const int* ends, int step) {
    int segment = 0;
    while (segment < SEGMENTS && step >= ends[segment + 1]) ++segment;
    return segment;
}

// Steps of a 32 x 32 bit transpose: words of rows 16 and 8 apart swap bytes, those of rows 4, 2 and
// 1 apart swap bits STEP apart. The caller decides which register or lane holds which row.
__device__ __forceinline__ void exchange_halves(u32& a, u32& b) {
    const u32 low = __byte_perm(a, b, 0x5410);
    b = __byte_perm(a, b, 0x7632);
    a = low;
}
__device__ __forceinline__ void exchange_bytes(u32& a, u32& b) {
    const u32 low = __byte_perm(a, b, 0x6240);
    b = __byte_perm(a, b, 0x7351);
    a = low;
}
// Swaps bits between the lanes `lane` and `lane ^ apart`, which hold rows STEP apart.
template <int STEP>
__device__ __forceinline__ u32 exchange_bits(u32 own, int lane, int apart) {
    constexpr u32 LOW = STEP == 4 ? 0x0F0F0F0Fu : STEP == 2 ? 0x33333333u : 0x55555555u;
    const u32 other = __shfl_xor_sync(~0u, own, apart), keep = lane & apart ? ~LOW : LOW;
    const u32 turned = __funnelshift_l(other, other, lane & apart ? 32 - STEP : STEP);
    return (own & keep) | (turned & ~keep);
}

__device__ __forceinline__ int sum_of_warp(int sum) {
    for (int s = 16; s; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
    return sum;
}

// count_states: sizes[site][class][plane], the samples in each stored state of the sites in
// [first, stop). One warp per site and plane.
extern "C" __global__ void count_states(const u32* words, int* sizes, int first, int stop,
                                        int n_words, int phenotype) {
    const int row = first * PLANES + (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (row >= stop * PLANES) return;
    int sum = 0;
    for (int w = lane; w < n_words; w += 32) sum += __popc(words[(i64)row * n_words + w]);
    sum = sum_of_warp(sum);
    if (lane == 0) sizes[row / PLANES * 2 * PLANES + phenotype * PLANES + row % PLANES] = sum;
}

// transpose_planes: site-major to sample-major planes. Grid (row_words / 8, words / 32); 8 warps,
// 32 rows each; a tile of 32 x 8 words in shared memory.
extern "C" __global__ void transpose_planes(const u32* words, u32* samples, int n_sites,
                                            int n_words, int n_samples, int row_words) {
    __shared__ u32 tile[32][TRANSPOSED_WORDS + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = (blockIdx.x * TRANSPOSED_WORDS + warp) * 32 + lane;
    const int site = site_of(row), state = state_of(row);
    const u32* from = words + ((i64)site * PLANES + state) * n_words;
    for (int w = blockIdx.y * 32; w < min(n_words, (int)blockIdx.y * 32 + 32); ++w) {
        u32 bits = site < n_sites ? from[w] : 0;
        bits = __byte_perm(bits, __shfl_xor_sync(~0u, bits, 16), lane & 16 ? 0x3276 : 0x5410);
        bits = __byte_perm(bits, __shfl_xor_sync(~0u, bits, 8), lane & 8 ? 0x3715 : 0x6240);
        bits = exchange_bits<4>(bits, lane, 4);
        bits = exchange_bits<2>(bits, lane, 2);
        tile[lane][warp] = exchange_bits<1>(bits, lane, 1);
        __syncthreads();
        const int sample = w * 32 + threadIdx.x / TRANSPOSED_WORDS;
        const int word = threadIdx.x % TRANSPOSED_WORDS;
        if (sample < n_samples)
            samples[(i64)sample * row_words + blockIdx.x * TRANSPOSED_WORDS + word] =
                tile[threadIdx.x / TRANSPOSED_WORDS][word];
        __syncthreads();
    }
}

// Word w of the samples of a class that belong to one part of the operand whose first site is x.
__device__ __forceinline__ u32 read_part(const u32* words, int n_words, int x, int part, int w) {
    u32 bits = ~0u;
    #pragma unroll
    for (int which = 0; which < OPERAND_SITES; ++which) {
        const u32* site = words + (i64)(x + which) * PLANES * n_words + w;
        const int state = state_of_part(part, which);
        if (state < X_STATES) bits &= site[state * n_words];
        if (state == NEITHER) bits &= ~(site[0] | site[n_words]);
    }
    return bits;
}

// count_neighbours: sizes[x][class][state of x][state of x + 1], samples in states 0 and 1 of
// adjacent sites, for x below n. One warp per count.
extern "C" __global__ void count_neighbours(const u32* words, int* sizes, int n, int n_words,
                                            int phenotype) {
    const int index = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (index >= n * 4) return;
    const int x = index / 4, cell = index % 4;
    const u32* first = words + ((i64)x * PLANES + cell / 2) * n_words;
    const u32* second = words + ((i64)(x + 1) * PLANES + cell % 2) * n_words;
    int sum = 0;
    for (int w = lane; w < n_words; w += 32) sum += __popc(first[w] & second[w]);
    sum = sum_of_warp(sum);
    if (lane == 0) sizes[(x * 2 + phenotype) * 4 + cell] = sum;
}

// QUADS: which samples of an operand list_carriers takes. `every` >= 0: all of them with w in that genotype;
// else, of each class's n_samples, those with x as the operand says.
struct OfW {
    int w, every;
    int n_samples[2];

    // Word i of the samples of a class with w in a genotype.
    __device__ u32 read(const u32* words, int n_words, int genotype, int phenotype, int i) const {
        const u32* site = words + (i64)w * PLANES * n_words + i;
        if (genotype < 2) return site[genotype * n_words];
        u32 others = 0;
        #pragma unroll
        for (int s = 0; s < PLANES; ++s) others |= site[s * n_words];
        const int left = n_samples[phenotype] - 32 * i;
        return ~others & (left >= 32 ? ~0u : left > 0 ? (1u << left) - 1 : 0u);
    }
};

// list_carriers: carriers[stages[operand] * 1024 + position], the samples of each segment in order,
// then -1 up to its end. Grid (operands, SEGMENTS); prefix sums over a thread block.
extern "C" __global__ void list_carriers(const u32* controls, const u32* cases, int control_words,
                                         int case_words, int x_first, const int* stages,
                                         const int* segments, int* carriers, OfW of_w) {
    __shared__ int sums[9];
    const int operand = blockIdx.x, segment = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int n_words = segment % 2 ? case_words : control_words;
    const u32* words = segment % 2 ? cases : controls;
    const int* ends = segments + operand * (SEGMENTS + 1) + segment;
    int* to = carriers + (i64)stages[operand] * STAGE_BYTES * 8;
    int at = ends[0] * STEP_BITS;
    for (int first = 0; first < n_words; first += blockDim.x) {
        const int w = first + threadIdx.x;
        u32 bits = 0;
        if (w < n_words) {
            const int x = QUADS ? x_of(x_first, operand) : x_first + operand * OPERAND_SITES;
            if (!QUADS || of_w.every < 0) bits = read_part(words, n_words, x, segment / 2, w);
            if (QUADS && of_w.every < 0)
                bits &= of_w.read(words, n_words, given_of(operand), segment % 2, w);
            if (QUADS && of_w.every >= 0 && segment < 2)
                bits = of_w.read(words, n_words, of_w.every, segment, w);
        }
        const int own = __popc(bits);
        int before = own;
        #pragma unroll
        for (int s = 1; s < 32; s *= 2) {
            const int left = __shfl_up_sync(~0u, before, s);
            if (lane >= s) before += left;
        }
        if (lane == 31) sums[warp] = before;
        __syncthreads();
        int offset = at + before - own;
        for (int v = 0; v < warp; ++v) offset += sums[v];
        int all = 0;
        for (int v = 0; v < (int)blockDim.x / 32; ++v) all += sums[v];
        for (; bits; bits &= bits - 1) to[offset++] = w * 32 + __ffs(bits) - 1;
        at += all;
        __syncthreads();
    }
    const int end = ends[1] * STEP_BITS;
    for (at += threadIdx.x; at < end; at += blockDim.x) to[at] = -1;
}

// compact_rows: packed planes of one batch of operands, and xy[x][site][g * STATES + s], the counts
// of x in g and the site in s (as in read_count; zero before).
// Threads   256; grid (blocks of 512 rows, twice; stages; groups of such blocks). A thread block
//           handles 512 carriers of one operand: half a stage. Four lanes read 64 bytes of a
//           sample; samples 8 and 16 apart are in one lane.
// Order     Thread blocks that run together read adjacent memory and write both halves of it.
//           `visits` (stage, its operand) makes them read the same samples, of few enough rows to
//           stay in L2.
// Shared    a tile of 512 rows x 16 words, padded against bank conflicts.
extern "C" __global__ void __launch_bounds__(256)
compact_rows(const u32* controls, const u32* cases, const int* carriers, const int2* visits,
             const int* stages, const int* segments, u8* packed, u32* xy, int row_words,
             int first_site, int padded_sites) {
    __shared__ u32 tile[COMPACT_ROWS * COMPACT_PITCH + 32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int stage = visits[blockIdx.y].x, operand = visits[blockIdx.y].y;
    const int width = gridDim.x / 2, half = blockIdx.x / width;
    const int row_block = blockIdx.z * width + blockIdx.x % width;
    const int n_rows = (padded_sites - first_site) * STATES;
    if (row_block * COMPACT_ROWS >= n_rows) return;
    const int first_step = (stage - stages[operand]) * STAGE_STEPS + half * (STAGE_STEPS / 2);
    const int* ends = segments + operand * (SEGMENTS + 1);
    const int first_row = first_site * STATES;
    const int row_word = first_row / 32 + row_block * (COMPACT_ROWS / 32);
    // index in the tile of the word of a row and a group of 32 samples
    auto at = [](int row, int group) { return row * COMPACT_PITCH + row / 128 * 8 + group; };
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int group = warp * 2 + i, segment = segment_of(ends, first_step + group / 8);
        const u32* planes = (segment % 2 ? cases : controls) + row_word + lane % 4 * 4;
        uint4 rows[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int place = half * 512 + group * 32 + j * 8 + lane / 4;
            const int sample = segment < SEGMENTS
                             ? carriers[(i64)stage * STAGE_BYTES * 8 + place] : -1;
            rows[j] = make_uint4(0, 0, 0, 0);
            if (sample >= 0)
                rows[j] = __ldcg(reinterpret_cast<const uint4*>(planes + (i64)sample * row_words));
        }
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            u32 bits[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j)
                bits[j] = k == 0 ? rows[j].x : k == 1 ? rows[j].y : k == 2 ? rows[j].z : rows[j].w;
            exchange_halves(bits[0], bits[2]);
            exchange_halves(bits[1], bits[3]);
            exchange_bytes(bits[0], bits[1]);
            exchange_bytes(bits[2], bits[3]);
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                u32 word = exchange_bits<4>(bits[j], lane, 16);
                word = exchange_bits<2>(word, lane, 8);
                word = exchange_bits<1>(word, lane, 4);
                tile[at((lane % 4 * 4 + k) * 32 + j * 8 + lane / 4, group)] = word;
            }
        }
    }
    __syncthreads();
    u8* to = packed + ((i64)stage * n_rows + row_block * COMPACT_ROWS) * STAGE_BYTES;
    #pragma unroll
    for (int i = 0; i < COMPACT_ROWS * 4 / 256; ++i) {
        // 64 bytes of a row; the swizzle swaps the halves of every second group of four rows
        const int slot = i * 256 + threadIdx.x, row = slot / 4;
        const u32* from = tile + at(row, (slot % 4 ^ (row & 3)) * 4);
        const int chunk = (half ^ (row / 4 & 1)) * 4 + slot % 4;
        __stcs(reinterpret_cast<uint4*>(to + row * STAGE_BYTES + chunk * CHUNK_BYTES),
               make_uint4(from[0], from[1], from[2], from[3]));
    }
#if !RESIDUALS
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int own = i * 256 + threadIdx.x, row = row_word * 32 + own;
        u32* counts = xy + (((i64)operand * OPERAND_SITES * padded_sites + site_of(row))
                                * (X_STATES * STATES) + state_of(row)) * COUNT_WORDS;
        #pragma unroll
        for (int q = 0; q < STAGE_STEPS / 2; ++q) {
            const int segment = segment_of(ends, first_step + q);
            u32 sum = 0;
            #pragma unroll
            for (int w = 0; w < STEP_BITS / 32; ++w) sum += __popc(tile[at(own, q * 8 + w)]);
            if (segment == SEGMENTS || !sum) continue;
            #pragma unroll
            for (int which = 0; which < OPERAND_SITES; ++which) {
                const int state = state_of_part(segment / 2, which);
                if (state < X_STATES)
                    add_count(counts + ((i64)which * padded_sites * X_STATES + state) * STATES
                                           * COUNT_WORDS, segment % 2, sum);
            }
        }
    }
#endif
}

// pack_rows: packed planes of all samples at the sites in [first, stop), whole groups of 8, with
// their first `states`: controls, then cases from step `segments[1]`. Grid-stride loop.
extern "C" __global__ void pack_rows(const u32* controls, const u32* cases, int control_words,
                                     int case_words, const int* segments, u8* packed, int n_sites,
                                     int first_site, int padded_sites, int first, int stop,
                                     int n_stages, int states) {
    const int n_rows = (padded_sites - first_site) * states;
    const int before = (first - first_site) * states, own_rows = (stop - first) * states;
    const i64 n_slots = (i64)n_stages * own_rows * CHUNKS;
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n_slots;
         i += (i64)gridDim.x * blockDim.x) {
        const i64 line = i / CHUNKS;
        const int stage = (int)(line / own_rows), own = (int)(line % own_rows);
        const int row = first * states + own, site = site_of(row, states);
        int word = stage * (STAGE_BYTES / 4) + (int)(i % CHUNKS ^ (row & 7)) * 4;
        const bool is_case = word >= segments[1] * STEP_BITS / 32;
        if (is_case) word -= segments[1] * STEP_BITS / 32;
        const int n_words = is_case ? case_words : control_words;
        uint2 part[2] = {{0, 0}, {0, 0}};
        if (site < n_sites) {
            const u32* from = (is_case ? cases : controls)
                            + ((i64)site * PLANES + state_of(row, states)) * n_words;
            #pragma unroll
            for (int h = 0; h < 2; ++h)  // rows start on 8 bytes
                if (word + 2 * h < n_words)
                    part[h] = *reinterpret_cast<const uint2*>(from + word + 2 * h);
        }
        const i64 to = ((i64)stage * n_rows + before + own) * CHUNKS + i % CHUNKS;
        *reinterpret_cast<uint4*>(packed + to * CHUNK_BYTES) =
            make_uint4(part[0].x, part[0].y, part[1].x, part[1].y);
    }
}

// count_records: the cells of records that hold only their three sites (QUADS: those of w with them),
// counted from the planes. One thread block of 256 per record.
extern "C" __global__ void __launch_bounds__(256)
count_records(u32* records, const u32* controls, const u32* cases, int control_words,
              int case_words, int n_controls, int n_cases, int site_w) {
    __shared__ u32 cells[2][27 * GIVEN];
    u32* record = records + (i64)blockIdx.x * RECORD_WORDS;
    for (int i = threadIdx.x; i < 54 * GIVEN; i += blockDim.x) (&cells[0][0])[i] = 0;
    __syncthreads();
    for (int turn = 0; turn < 2 * GIVEN; ++turn) {
        const int c = turn % 2, given = turn / 2;
        const u32* words = c ? cases : controls;
        const int n_words = c ? case_words : control_words, n_samples = c ? n_cases : n_controls;
        u32 sums[27];
        #pragma unroll
        for (int i = 0; i < 27; ++i) sums[i] = 0;
        for (int w = threadIdx.x; w * 32 < n_samples; w += blockDim.x) {
            const u32 all = n_samples - w * 32 >= 32 ? ~0u : (1u << (n_samples - w * 32)) - 1;
            u32 in[3][3], chosen = ~0u;  // QUADS: samples with w in `given`
            #pragma unroll
            for (int site = QUADS ? -1 : 0; site < 3; ++site) {
                u32 rest = all;
                const i64 of = site < 0 ? site_w : record[site];
                #pragma unroll
                for (int s = 0; s < PLANES; ++s) {
                    const u32 bits = words[(of * PLANES + s) * n_words + w];
                    if (site < 0 && s == given) chosen = bits;
                    if (site >= 0 && s < 2) in[site][s] = bits;
                    rest &= ~bits;
                }
                if (site < 0 && given == 2) chosen = rest;
                if (site >= 0) in[site][2] = rest;
            }
            #pragma unroll
            for (int s = 0; s < 3; ++s) in[0][s] &= chosen;
            #pragma unroll
            for (int i = 0; i < 27; ++i)
                sums[i] += __popc(in[0][i / 9] & in[1][i / 3 % 3] & in[2][i % 3]);
        }
        #pragma unroll
        for (int i = 0; i < 27; ++i) {
            const u32 sum = sum_of_warp(sums[i]);
            if (threadIdx.x % 32 == 0 && sum) atomicAdd(&cells[c][27 * given + i], sum);
        }
    }
    __syncthreads();
    if (threadIdx.x < 27 * GIVEN) {
        const u32 n0 = cells[0][threadIdx.x], n1 = cells[1][threadIdx.x];
#if SPLIT_CELLS
        record[RECORD_SITES + 2 * threadIdx.x] = n0;
        record[RECORD_SITES + 1 + 2 * threadIdx.x] = n1;
#else
        record[RECORD_SITES + threadIdx.x] = n0 << 16 | n1;
#endif
    }
}

// Cells of a table, and of its margins: controls and cases (RESIDUALS: people and their levels).
struct Cells {
    u32 n[2];
};
__device__ __forceinline__ Cells read_cell(const u32* cells, int i) {
#if SPLIT_CELLS
    return {{cells[2 * i], cells[2 * i + 1]}};
#else
    return {{cells[i] >> 16, cells[i] & 0xFFFF}};
#endif
}

// Rules for partners that need the table (engine/backend.py, Partners): the squared correlation of two
// sites whose states vary in steps of step_i and step_j; middle: their heterozygotes.
struct Correlation {
    const signed char* middle;  // of all sites, or null: no limit
    double max_r2;
    int w;  // of quads

    __device__ bool too_large(const u32* cells, int n_cells, int step_i, int step_j, int middle_i,
                              int middle_j) const {
        i64 n = 0, s_i = 0, s_j = 0, s_ii = 0, s_jj = 0, s_ij = 0;
        for (int k = 0; k < n_cells; ++k) {
            const Cells c = read_cell(cells, k);
            const i64 people = RESIDUALS ? (i64)c.n[0] : (i64)c.n[0] + c.n[1];
            int i = (k / step_i + 3 - middle_i) % 3, j = (k / step_j + 3 - middle_j) % 3;
            i -= i == 2 ? 3 : 0;
            j -= j == 2 ? 3 : 0;
            n += people;
            s_i += people * i;
            s_j += people * j;
            s_ii += people * i * i;
            s_jj += people * j * j;
            s_ij += people * i * j;
        }
        const double covariance = (double)(n * s_ij - s_i * s_j);
        const double variances =
            __dmul_rn((double)(n * s_ii - s_i * s_i), (double)(n * s_jj - s_j * s_j));
        return __dmul_rn(covariance, covariance) > __dmul_rn(max_r2, variances);
    }
    __device__ bool forbids(const u32* record, int n_cells) const {
        if (!middle) return false;
        const u32* cells = record + RECORD_SITES;
        const int y = middle[record[1]], z = middle[record[2]];
        if (too_large(cells, n_cells, 3, 1, y, z)) return true;
        if (n_cells == 9) return false;
        const int x = middle[record[0]];
        if (too_large(cells, n_cells, 9, 3, x, y) || too_large(cells, n_cells, 9, 1, x, z)) return true;
        if (n_cells == 27) return false;
        const int of_w = middle[w];
        return too_large(cells, n_cells, 27, 9, of_w, x) || too_large(cells, n_cells, 27, 3, of_w, y) ||
               too_large(cells, n_cells, 27, 1, of_w, z);
    }
};

#if !INTERACTION
// score_records: costs[i], the exact cost of record i: sum over its cells of total[n] - part[n0] -
// part[n1], minus the same of one cell with all its samples (epistasis/scan_data.py, ScanData); of Gini,
// where `unit` is above 0, n0 n1 / n in units instead, by the operations of `scan_data.cell_cost`. The largest
// int64 if its sites may not be combined. One thread per record; int64, so that sums are exact in
// any order.
extern "C" __global__ void score_records(const u32* records, i64 n_records, Correlation limit,
                                         int n_cells, const i64* total, const i64* part,
                                         double unit, i64* costs) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i >= n_records) return;
    const u32* record = records + i * RECORD_WORDS;
    i64 cost = 0;
    Cells all = {{0, 0}};
    auto cost_of = [&](const Cells& c) {
        const u32 n = c.n[0] + c.n[1];
        if (unit <= 0.0) return total[n] - part[c.n[0]] - part[c.n[1]];
        const double share = __ddiv_rn(__dmul_rn(c.n[0], c.n[1]), max(n, 1u));
        return (i64)rint(__dmul_rn(share, unit));
    };
    for (int k = 0; k < n_cells; ++k) {
        const Cells c = read_cell(record + RECORD_SITES, k);
        cost += cost_of(c);
        for (int p = 0; p < 2; ++p) all.n[p] += c.n[p];
    }
    cost -= cost_of(all);
    costs[i] = limit.forbids(record, n_cells) ? 0x7FFFFFFFFFFFFFFF : cost;
}
#elif !RESIDUALS
// The bounds of LR / 2 of one record of SITES sites, in nats (bounds 1 and 2 of
// epistasis/interaction_cpu.py; the latter in BOOST's form, with one normaliser); -1 if it is below
// `need`. Margins: pairs of sites (3; of two sites none), then single ones.
template <int SITES>
__device__ double bound_of(const u32* record, const i64* total, const i64* part, double unit,
                           double need) {
    constexpr int N = SITES == 3 ? 27 : 9, PAIRS_OF = SITES == 3 ? 3 : 0;
    Cells pair[PAIRS_OF + 1][9], site[SITES][3], all = {{0, 0}};
    for (int i = 0; i < PAIRS_OF; ++i)
        for (int k = 0; k < 9; ++k) pair[i][k] = {{0, 0}};
    for (int i = 0; i < SITES; ++i)
        for (int k = 0; k < 3; ++k) site[i][k] = {{0, 0}};
    auto information = [&](Cells c) { return total[c.n[0] + c.n[1]] - part[c.n[0]] - part[c.n[1]]; };
    i64 cost = 0;
    for (int i = 0; i < N; ++i) {
        const Cells c = read_cell(record, i);
        cost += information(c);
        const int g[3] = {SITES == 3 ? i / 9 : i / 3, SITES == 3 ? i / 3 % 3 : i % 3, i % 3};
        for (int p = 0; p < 2; ++p) {
            all.n[p] += c.n[p];
            for (int k = 0; k < SITES; ++k) site[k][g[k]].n[p] += c.n[p];
            if constexpr (SITES == 3) {
                pair[0][3 * g[0] + g[1]].n[p] += c.n[p];
                pair[1][3 * g[0] + g[2]].n[p] += c.n[p];
                pair[2][3 * g[1] + g[2]].n[p] += c.n[p];
            }
        }
    }
    if (!all.n[0] || !all.n[1]) return 0.0 >= need ? 0.0 : -1.0;
    const i64 whole = information(all);
    i64 best = 0, alternating = whole - cost;
    for (int i = 0; i < SITES; ++i) {
        i64 of_site = whole;
        for (int k = 0; k < 3; ++k) of_site -= information(site[i][k]);
        alternating += SITES == 3 ? of_site : -of_site;
        if (SITES == 2) best = max(best, of_site);
    }
    for (int i = 0; i < PAIRS_OF; ++i) {
        i64 of_pair = whole;
        for (int k = 0; k < 9; ++k) of_pair -= information(pair[i][k]);
        alternating -= of_pair;
        best = max(best, of_pair);
    }
    const double first = (whole - cost - best) * unit;
    if (first < need) return -1.0;
    // N ln(sum q / N), q Kirkwood's product of the margins
    const double n = (double)all.n[0] + all.n[1];
    auto share = [&](Cells c, int p) {
        return c.n[p] ? c.n[p] / ((double)c.n[0] + c.n[1]) : 0.0;
    };
    auto inverse = [&](Cells c, int p) {
        return c.n[p] ? ((double)c.n[0] + c.n[1]) / c.n[p] : 0.0;
    };
    double sum = 0.0;
    for (int i = 0; i < N; ++i) {
        const Cells c = read_cell(record, i);
        const int g[3] = {SITES == 3 ? i / 9 : i / 3, SITES == 3 ? i / 3 % 3 : i % 3, i % 3};
        double q = 0.0;
        for (int p = 0; p < 2; ++p) {
            double one = SITES == 3 ? all.n[p] / n : n / all.n[p];
            if constexpr (SITES == 3) {
                one *= share(pair[0][3 * g[0] + g[1]], p) * share(pair[1][3 * g[0] + g[2]], p);
                one *= share(pair[2][3 * g[1] + g[2]], p) * inverse(site[0][g[0]], p);
                one *= inverse(site[1][g[1]], p) * inverse(site[2][g[2]], p);
            } else {
                one *= share(site[0][g[0]], p) * share(site[1][g[1]], p);
            }
            q += one;
        }
        sum += ((double)c.n[0] + c.n[1]) * q;
    }
    const double second = alternating * unit + n * log(sum / n) + n / ((i64)1 << 46);
    const double bound = fmin(first, second);
    return bound < need ? -1.0 : fmax(bound, 0.0);
}

// bound_records: bounds[i], what LR / 2 of record i is at most, in nats; -1 if that is below `need` or
// its sites may not be combined. One thread per record. The host fits those that are left, the best
// first.
extern "C" __global__ void bound_records(const u32* records, i64 n_records, Correlation limit,
                                         int n_cells, const i64* total, const i64* part,
                                         double unit, double need, double* bounds) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i >= n_records) return;
    const u32* record = records + i * RECORD_WORDS;
    const u32* cells = record + RECORD_SITES;
    double bound = n_cells == 9 ? bound_of<2>(cells, total, part, unit, need)
                                : bound_of<3>(cells, total, part, unit, need);
    if (bound >= 0.0 && limit.forbids(record, n_cells)) bound = -1.0;
    bounds[i] = bound;
}
#else
// sum_levels: sums[site][state], the levels of the samples in each stored state, from bit slices of
// the levels (LEVEL_BITS, n_words). One warp per site and state.
extern "C" __global__ void sum_levels(const u32* words, const u32* slices, u32* sums, int n_rows,
                                      int n_words) {
    const int row = (int)((blockIdx.x * (i64)blockDim.x + threadIdx.x) / 32), lane = threadIdx.x % 32;
    if (row >= n_rows) return;
    int sum = 0;
    for (int w = lane; w < n_words; w += 32) {
        const u32 own = words[(i64)row * n_words + w];
        for (int b = 0; b < LEVEL_BITS; ++b) sum += __popc(own & slices[b * n_words + w]) << b;
    }
    sum = sum_of_warp(sum);
    if (lane == 0) sums[row] = sum;
}

// bound_records: bounds[i], T / 2 of record i (epistasis/residual_cpu.py) and a rounding error; -1 if that
// is below `need` or its sites may not be combined. One thread per record.
extern "C" __global__ void bound_records(const u32* records, i64 n_records, Correlation limit,
                                         int n_cells, double variance, double need, double* bounds) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i >= n_records) return;
    const u32* record = records + i * RECORD_WORDS;
    double whole = 0.0, rest = 0.0, q[3] = {0, 0, 0}, w01 = 0.0, w02 = 0.0, w12 = 0.0;
    for (int a = 0; a < 3; ++a) {
        double n[3], d[3], people = 0.0, sum = 0.0;
        for (int b = 0; b < 3; ++b) {
            const Cells c = read_cell(record + RECORD_SITES, 3 * a + b);
            n[b] = c.n[0];
            d[b] = (double)c.n[1] - (double)ZERO_LEVEL * c.n[0];
            people += n[b];
            sum += d[b];
        }
        if (people == 0.0) continue;
        for (int b = 0; b < 3; ++b) {
            if (n[b] > 0.0) whole += d[b] * d[b] / n[b];
            d[b] -= n[b] * sum / people;
            if (n[b] > 0.0) rest += d[b] * d[b] / n[b];
            q[b] += d[b];
        }
        w01 += n[0] * n[1] / people;
        w02 += n[0] * n[2] / people;
        w12 += n[1] * n[2] / people;
    }
    const double trees = w01 * w02 + w01 * w12 + w02 * w12;
    if (trees > 0.0)
        rest -= (w12 * q[0] * q[0] + w02 * q[1] * q[1] + w01 * q[2] * q[2]) / trees;
    else if (w01 > 0.0)
        rest -= q[0] * q[0] / w01;
    else if (w02 > 0.0)
        rest -= q[2] * q[2] / w02;
    else if (w12 > 0.0)
        rest -= q[1] * q[1] / w12;
    const double bound = 0.5 * (fmax(rest, 0.0) + whole / (1 << 26)) / variance;
    bounds[i] = bound < need || limit.forbids(record, n_cells) ? -1.0 : bound;
}
#endif
