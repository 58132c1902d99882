// passes: products of standardised genotypes with vectors, all blocks of sites in few launches.
//
// Formula   of each block of sites, X X' V as in engine/genotype_products.py, with signs of the
//           people and without known components where there are any: `split_signed`, `share_numbers`
//           and `sum_tiles` give the sums of sites, `standardise_sites` turns them into the numbers
//           of the way back, `sum_tiles` gives the sums of people, and `add_people` adds the blocks
//           in their order. `add_spreads` adds variances over columns instead.
// Source    engine/genotype_products.py, to the last bit: sums are of whole numbers; other operations
//           are single roundings (`__dmul_rn` and so on, never fused).
// Shapes    COLUMNS = 8 TILES columns, of which `n_columns` are in use; the others are 0. A set is a
//           set of signs: one a stretch of sites, or a single one. `tiles`, int64 (n_tiles, 8): words
//           before the first row, words a row, rows (128 at most), first word, words, digits before
//           the first, digits a column, first row of the sums. `blocks`, int64 (n_blocks, 4): first
//           site, sites, set, and padded sites of the blocks before. `spans`, int64 (n_spans, 2):
//           first and end place of parts of the people; a single one, or those that `weights`,
//           float64 (n_spans, n_spans), weighs. `absent`: sums over missing genotypes, or null.
// Threads   PASS_THREADS; `sum_tiles` as in `codes.cuh`. `standardise_sites`: a thread block a block
//           of sites and span.
//
// Compile with -DTILES=1|2|3|4.

#include "codes.cuh"

#if !defined(PASS_THREADS) || !defined(VECTOR_BITS) || !defined(SITE_BITS)
#error "PASS_THREADS, VECTOR_BITS and SITE_BITS come from engine/genotype_plan.py"
#endif

constexpr int TILE_NUMBERS = 8, BLOCK_NUMBERS = 4;

// Numbers (n_items, n_columns) times signs (n_sets, n_items, n_columns), as digits of each set.
extern "C" __global__ void __launch_bounds__(PASS_THREADS)
    split_signed(const double* __restrict__ numbers, const signed char* __restrict__ signs,
                 signed char* __restrict__ digits, i64 n_items, int n_columns) {
    const i64 item = (i64)blockIdx.x * PASS_THREADS + threadIdx.x, set = blockIdx.y;
    if (item >= n_items) return;
    digits += set * SUM_DIGITS * COLUMNS * n_items;
    for (int column = 0; column < COLUMNS; column++) {
        i64 value = 0;
        if (column < n_columns) {
            value = (i64)numbers[item * n_columns + column];
            if (signs) value *= signs[(set * n_items + item) * n_columns + column];
        }
        write_digits(digits, COLUMNS, column, n_items, place_of(item), value);
    }
}

// Products of whole numbers `known` (n_items, few) with the signed numbers of each set, and their sum
// in the last row: shares (n_sets, n_spans, few + 1, COLUMNS), zero before.
extern "C" __global__ void __launch_bounds__(PASS_THREADS)
    share_numbers(const double* __restrict__ numbers, const signed char* __restrict__ signs,
                  const i64* __restrict__ known, const i64* __restrict__ spans,
                  u64* __restrict__ shares, i64 n_items, int n_columns, int few, int n_spans) {
    __shared__ u64 total[COLUMNS];
    const int row = blockIdx.x, span = blockIdx.y % n_spans, part = blockIdx.y / n_spans;
    const i64 parts = gridDim.y / n_spans, set = blockIdx.z;
    i64 own[COLUMNS] = {};
    for (i64 item = spans[2 * span] + part * PASS_THREADS + threadIdx.x; item < spans[2 * span + 1];
         item += parts * PASS_THREADS) {
        i64 weight = row < few ? known[item * few + row] : 1;
#pragma unroll
        for (int column = 0; column < COLUMNS; column++)
            if (column < n_columns) {
                i64 value = (i64)numbers[item * n_columns + column];
                if (signs) value *= signs[(set * n_items + item) * n_columns + column];
                own[column] += weight * value;
            }
    }
    if (threadIdx.x < COLUMNS) total[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int column = 0; column < COLUMNS; column++)
        if (own[column]) atomicAdd(&total[column], (u64)own[column]);
    __syncthreads();
    if (threadIdx.x < COLUMNS)
        atomicAdd(&shares[((set * n_spans + span) * (few + 1) + row) * COLUMNS + threadIdx.x],
                  total[threadIdx.x]);
}

// Adds sums over the codes of many blocks to out (n_rows, COLUMNS), zero before.
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS)
    sum_tiles(const u32* __restrict__ words, const signed char* __restrict__ digits,
              const i64* __restrict__ tiles, u64* __restrict__ out, u32 table) {
    extern __shared__ uint4 shared[];
    const i64* tile = tiles + (i64)blockIdx.x * TILE_NUMBERS;
    const i64 row0 = 32 * (threadIdx.x >> 5) + ((threadIdx.x & 31) >> 2), n_rows = tile[2];
    int sums[2][N_TILES][4] = {};
    add_codes(reinterpret_cast<char*>(shared), words + tile[0] + tile[3], row0, n_rows, tile[1],
              digits + tile[5] + 16 * tile[3], tile[6], 0, tile[4], table, sums);
    out += tile[7] * COLUMNS;
    each_sum(sums, row0, n_rows, [&](i64 row, int column, i64 value) {
        if (value) atomicAdd(out + row * COLUMNS + column, (u64)value);
    });
}

// The power of two that a column is rounded to, from the bits of its largest entry.
__device__ __forceinline__ int power_of(u64 largest, int bits) {
    int power;
    frexp(__longlong_as_double((i64)largest), &power);
    return power - bits;
}

// From sums of sites (n_spans, n_sites, COLUMNS) to what they are multiplied by on the way back to the
// people of one span: digits of `times` and `less` (of the latter if any genotype is missing),
// back (n_blocks, n_spans, COLUMNS) powers, lesses alike sums of `less`, and
// parts (n_blocks, few, COLUMNS), what the known components take.
extern "C" __global__ void __launch_bounds__(PASS_THREADS)
    standardise_sites(const i64* __restrict__ sums, const i64* __restrict__ absent,
                      const i64* __restrict__ shares, const double* __restrict__ mean,
                      const double* __restrict__ inverse, const double* __restrict__ along,
                      const i64* __restrict__ left, const int* __restrict__ left_powers,
                      const int* __restrict__ known_powers, const int* __restrict__ powers,
                      const double* __restrict__ weights, const i64* __restrict__ blocks,
                      double* __restrict__ found, signed char* __restrict__ times_digits,
                      signed char* __restrict__ less_digits, int* __restrict__ back,
                      i64* __restrict__ lesses, double* __restrict__ parts, i64 n_sites,
                      int n_columns, int few, int n_spans) {
    __shared__ u64 largest[2][COLUMNS], total[COLUMNS];
    const int column = threadIdx.x % COLUMNS, lane = threadIdx.x / COLUMNS;
    constexpr int LANES = PASS_THREADS / COLUMNS;
    const i64 block = blockIdx.x, span = blockIdx.y;
    const i64 *here = blocks + block * BLOCK_NUMBERS, n = here[1], set = here[2];
    const i64 padded = (n + 255) / 256 * 256;
    const int power = column < n_columns ? powers[column] : 0;
    sums += here[0] * COLUMNS, absent += absent ? here[0] * COLUMNS : 0;
    found += (span * n_sites + here[0]) * COLUMNS;
    mean += here[0], inverse += here[0], along += here[0] * few, left += here[0] * few;
    shares += set * n_spans * (few + 1) * COLUMNS + column;
    if (threadIdx.x < COLUMNS) largest[0][column] = largest[1][column] = total[column] = 0;
    __syncthreads();
    double most = 0, most_back = 0;
    for (i64 site = lane; lane < LANES && site < n; site += LANES) {
        double value = 0;
        for (int s = 0; s < n_spans; s++) {
            const i64 at = (s * n_sites + site) * COLUMNS + column;
            double people = (double)shares[(s * (few + 1) + few) * COLUMNS];
            if (absent) people = __dsub_rn(people, (double)absent[at]);
            double one = __dsub_rn((double)sums[at], __dmul_rn(mean[site], people));
            one = __dmul_rn(ldexp(__dmul_rn(one, inverse[site]), power), weights[span * n_spans + s]);
            value = s ? __dadd_rn(value, one) : one;
        }
        for (int j = 0; j < few; j++) {
            double share = ldexp((double)shares[j * COLUMNS], known_powers[j] + power);
            value = __dsub_rn(value, __dmul_rn(along[site * few + j], share));
        }
        found[site * COLUMNS + column] = value;
        most = fmax(most, fabs(value));
        most_back = fmax(most_back, fabs(__dmul_rn(value, inverse[site])));
    }
    atomicMax(&largest[0][column], (u64)__double_as_longlong(most));
    atomicMax(&largest[1][column], (u64)__double_as_longlong(most_back));
    __syncthreads();
    const int power_back = power_of(largest[1][column], SITE_BITS);
    const int power_right = power_of(largest[0][column], VECTOR_BITS);
    const i64 digits = (here[3] * n_spans + span * padded) * SUM_DIGITS * COLUMNS;
    i64 sum = 0;
    for (i64 site = lane; lane < LANES && site < padded; site += LANES) {
        double times = 0, less = 0;
        if (site < n) {
            double value = found[site * COLUMNS + column];
            times = rint(ldexp(__dmul_rn(value, inverse[site]), -power_back));
            less = rint(__dmul_rn(mean[site], times));
        }
        sum += (i64)less;
        const i64 place = place_of(site);
        write_digits(times_digits + digits, COLUMNS, column, padded, place, (i64)times);
        if (less_digits)
            write_digits(less_digits + digits, COLUMNS, column, padded, place, (i64)less);
    }
    if (sum) atomicAdd(&total[column], (u64)sum);
    __syncthreads();
    if (threadIdx.x < COLUMNS) {
        lesses[(block * n_spans + span) * COLUMNS + column] = (i64)total[column];
        back[(block * n_spans + span) * COLUMNS + column] = power_back;
    }
    for (int j = 0; j < few; j++) {
        __syncthreads();
        if (threadIdx.x < COLUMNS) total[column] = 0;
        __syncthreads();
        sum = 0;
        for (i64 site = lane; lane < LANES && site < n; site += LANES) {
            double right = rint(ldexp(found[site * COLUMNS + column], -power_right));
            sum += left[site * few + j] * (i64)right;
        }
        if (sum) atomicAdd(&total[column], (u64)sum);
        __syncthreads();
        if (threadIdx.x < COLUMNS)
            parts[(block * few + j) * COLUMNS + column] =
                ldexp((double)(i64)total[column], left_powers[block * few + j] + power_right);
    }
}

// What one block adds to a person's column.
struct People {
    const i64 *sums, *absent, *lesses;
    const int* back;
    const double *parts, *known;
    const signed char* signs;
    i64 n_places;
    int n_columns, few, n_spans;

    __device__ __forceinline__ double of(i64 block, i64 set, i64 place, int span, int column) const {
        const i64 at = (block * n_places + place) * COLUMNS + column;
        const i64 own = (block * n_spans + span) * COLUMNS + column;
        double value = __dsub_rn((double)sums[at], (double)lesses[own]);
        if (absent) value = __dadd_rn(value, (double)absent[at]);
        value = ldexp(value, back[own]);
        for (int j = 0; j < few; j++)
            value = __dsub_rn(value, __dmul_rn(known[place * few + j],
                                               parts[(block * few + j) * COLUMNS + column]));
        if (signs)
            value = __dmul_rn(value, (double)signs[(set * n_places + place) * n_columns + column]);
        return value;
    }
};

// Adds the blocks in their order to total (n_places, n_columns).
extern "C" __global__ void __launch_bounds__(PASS_THREADS)
    add_people(const i64* __restrict__ sums, const i64* __restrict__ absent,
               const i64* __restrict__ lesses, const int* __restrict__ back,
               const double* __restrict__ parts, const double* __restrict__ known,
               const signed char* __restrict__ signs, const i64* __restrict__ blocks,
               const i64* __restrict__ spans, double* __restrict__ total, i64 n_places, i64 n_blocks,
               int n_columns, int few, int n_spans) {
    const i64 at = (i64)blockIdx.x * PASS_THREADS + threadIdx.x;
    const i64 place = at / n_columns;
    if (place >= n_places) return;
    int span = 0;
    while (place >= spans[2 * span + 1]) span++;
    const People people = {sums,  absent,   lesses,    back, parts,  known,
                           signs, n_places, n_columns, few,  n_spans};
    double sum = total[at];
    for (i64 block = 0; block < n_blocks; block++)
        sum = __dadd_rn(sum, people.of(block, blocks[block * BLOCK_NUMBERS + 2], place, span,
                                       (int)(at % n_columns)));
    total[at] = sum;
}

// Adds the variance over columns of the sum of each set's blocks to total (n_places,).
extern "C" __global__ void __launch_bounds__(PASS_THREADS)
    add_spreads(const i64* __restrict__ sums, const i64* __restrict__ absent,
                const i64* __restrict__ lesses, const int* __restrict__ back,
                const double* __restrict__ parts, const double* __restrict__ known,
                const signed char* __restrict__ signs, const i64* __restrict__ blocks,
                double* __restrict__ total, i64 n_places, i64 n_blocks, int n_columns, int few) {
    const i64 place = (i64)blockIdx.x * PASS_THREADS + threadIdx.x;
    if (place >= n_places) return;
    const People people = {sums, absent, lesses, back, parts, known, signs, n_places, n_columns, few, 1};
    double own[COLUMNS] = {};
    for (i64 block = 0; block < n_blocks; block++) {
        const i64* here = blocks + block * BLOCK_NUMBERS;
        const i64 set = here[2];
        const bool first = block == 0 || here[2 - BLOCK_NUMBERS] != set;
#pragma unroll
        for (int column = 0; column < COLUMNS; column++)
            if (column < n_columns) {
                double value = people.of(block, set, place, 0, column);
                own[column] = first ? value : __dadd_rn(own[column], value);
            }
        if (block + 1 < n_blocks && here[2 + BLOCK_NUMBERS] == set) continue;
        double mean = own[0], spread = 0;
#pragma unroll
        for (int column = 1; column < COLUMNS; column++)
            if (column < n_columns) mean = __dadd_rn(mean, own[column]);
        mean = __ddiv_rn(mean, (double)n_columns);
#pragma unroll
        for (int column = 0; column < COLUMNS; column++)
            if (column < n_columns) {
                double apart = __dsub_rn(own[column], mean);
                apart = __dmul_rn(apart, apart);
                spread = column ? __dadd_rn(spread, apart) : apart;
            }
        total[place] = __dadd_rn(total[place], __ddiv_rn(spread, (double)(n_columns - 1)));
    }
}
