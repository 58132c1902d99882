// expected: kinship of all pairs beside the genotypes that their ancestries let expect (PC-Relate).
//
// Formula   kinship(i, j) = sum r_i r_j / (4 sum s_i s_j) over sites, with r = g - 2 mu and
//           s = sqrt(mu (1 - mu)); both are 0 where mu is outside a range, and where g is missing.
// Source    Conomos et al. 2016, AJHG 98:127-148; the whole numbers of relatives/expected.py, so the same
//           bytes as on the CPU.
// Shapes    genotypes int8 (n_sites, n), coefficients float64 (n_sites, n_axes), basis float64
//           (n_axes, n); digits int8 (2, 2, n_padded, row_bytes), sites of a person side by side: r
//           times 2^RESIDUAL_BITS and s times SPREAD as 256 high + low; kinship float64 (n, n), its
//           upper triangle in tiles of PAIR_SIDE people.
// Rounding  every operation on its own (__dmul_rn, ...).
// Overflow  whole numbers are at most 2047: high digits are at most 8, low ones 128. int32 holds
//           low x low over 2^17 sites (MOST_SITES) and high x low over more.
//
// expect_genotypes   digits of a chunk of sites; one thread block takes 64 sites of 32 people.
// multiply_digits    a sum of a tile of pairs: of residuals times `unit`, then, with 0 for unit, of
//                    spreads, by which the kinship is divided. 4 warps, 32 x 32 pairs each, four
//                    products of digits by mma.sync m16n8k32 s8, 64 sites a stage, PAIR_STAGES stages
//                    of copies. Rows of a stage have 80 bytes, so that 8 lanes read different banks.
// subtract_products  kinship -= sum over axes of left_i right_j + sum over axes of shares_i basis_j.
// divide_roots       kinship /= root_i root_j.
// sum_squares        sums of squares of kinships of two marked people, as whole numbers, per tile.
// list_close         pairs of at least `least`, in any order, and how many there are.

#include "../ptx.cuh"

#if !defined(PAIR_SIDE) || !defined(PAIR_STAGES) || !defined(PAIR_DEPTH) || !defined(RESIDUAL_BITS) || \
    !defined(SPREAD) || !defined(SQUARE_BITS) || !defined(MOST_KINSHIP)
#error "PAIR_SIDE ... MOST_KINSHIP come from relatives/expected_plan.py and the launch"
#endif

constexpr int PITCH = PAIR_DEPTH + 16;              // bytes of a row of a stage
constexpr int SIDE_BYTES = 2 * PAIR_SIDE * PITCH;   // all digits of the people of one side
constexpr int STAGE_BYTES = 2 * SIDE_BYTES;
constexpr int ALL_THREADS = PAIR_SIDE * PAIR_SIDE / 32;  // a warp for 32 x 32 pairs
constexpr int CHUNKS = PAIR_DEPTH / 16;
static_assert(PAIR_SIDE == 64 && PAIR_DEPTH == 64, "4 warps of 32 x 32 pairs; two steps a stage");

extern "C" __global__ void __launch_bounds__(256)
    expect_genotypes(const signed char* __restrict__ genotypes,
                     const double* __restrict__ coefficients, const double* __restrict__ basis,
                     signed char* __restrict__ digits, i64 n_sites, i64 n, int n_axes, i64 n_padded,
                     i64 row_bytes, i64 first, double least, double most) {
    __shared__ signed char turned[4][32][68];
    const i64 site0 = 64 * (i64)blockIdx.y, person0 = 32 * (i64)blockIdx.x;
    const i64 person = person0 + threadIdx.x;
    for (int row = threadIdx.y; row < 64; row += 8) {
        const i64 site = site0 + row;
        int residual = 0, spread = 0;
        if (site < n_sites && person < n) {
            const int genotype = genotypes[site * n + person];
            double mu = __dmul_rn(coefficients[site * n_axes], basis[person]);
            for (int axis = 1; axis < n_axes; axis++)
                mu = __dadd_rn(mu, __dmul_rn(coefficients[site * n_axes + axis],
                                             basis[axis * n + person]));
            if (mu >= least && mu <= most && genotype >= 0) {
                const double apart = __dsub_rn((double)genotype, __dmul_rn(2.0, mu));
                residual = (int)rint(__dmul_rn(apart, (double)(1 << RESIDUAL_BITS)));
                const double variance = __dmul_rn(mu, __dsub_rn(1.0, mu));
                spread = (int)rint(__dmul_rn(__dsqrt_rn(variance), (double)SPREAD));
            }
        }
        const int of_residual = (residual + 128) >> 8, of_spread = (spread + 128) >> 8;
        turned[0][threadIdx.x][row] = (signed char)of_residual;
        turned[1][threadIdx.x][row] = (signed char)(residual - 256 * of_residual);
        turned[2][threadIdx.x][row] = (signed char)of_spread;
        turned[3][threadIdx.x][row] = (signed char)(spread - 256 * of_spread);
    }
    __syncthreads();
    for (int k = threadIdx.y * 32 + threadIdx.x; k < 4 * 32 * 64; k += 256) {
        const int digit = k / (32 * 64), own = k / 64 % 32, row = k % 64;
        const i64 site = first + site0 + row;
        if (site < row_bytes && person0 + own < n_padded)
            digits[(digit * n_padded + person0 + own) * row_bytes + site] = turned[digit][own][row];
    }
}

// The sites of one stage of the people of both sides: both digits.
__device__ __forceinline__ void copy_stage(u32 stage, const signed char* __restrict__ digits,
                                           i64 rows, i64 columns, i64 site, i64 n_padded,
                                           i64 row_bytes) {
    for (int k = threadIdx.x; k < 2 * 2 * PAIR_SIDE * CHUNKS; k += ALL_THREADS) {
        const int chunk = k % CHUNKS, person = k / CHUNKS % PAIR_SIDE;
        const int digit = k / (CHUNKS * PAIR_SIDE) % 2, side = k / (CHUNKS * PAIR_SIDE * 2);
        const i64 from = (digit * n_padded + (side ? columns : rows) + person) * row_bytes + site;
        copy_chunk(stage + side * SIDE_BYTES + (digit * PAIR_SIDE + person) * PITCH + 16 * chunk,
                   digits + from + 16 * chunk);
    }
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS)
    multiply_digits(const signed char* __restrict__ digits, double* __restrict__ kinship, i64 n,
                    i64 n_padded, i64 row_bytes, double unit) {
    extern __shared__ uint4 shared[];
    if (blockIdx.x < blockIdx.y) return;  // of the lower triangle
    const u32 base = (u32)__cvta_generic_to_shared(shared);
    const i64 rows = (i64)blockIdx.y * PAIR_SIDE, columns = (i64)blockIdx.x * PAIR_SIDE;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int row0 = 32 * (warp >> 1), column0 = 32 * (warp & 1);
    // Where a lane's row of ldmatrix begins: people of 16 rows, of 16 columns.
    const u32 of_rows = (row0 + (lane & 15)) * PITCH + 16 * (lane >> 4);
    const u32 of_columns =
        SIDE_BYTES + (column0 + (lane & 7) + 8 * (lane >> 4)) * PITCH + 16 * (lane >> 3 & 1);
    int high[2][4][4] = {}, mixed[2][4][4] = {}, low[2][4][4] = {};
    const int stages = (int)(row_bytes / PAIR_DEPTH);
#pragma unroll
    for (int k = 0; k < PAIR_STAGES - 1; k++) {
        if (k < stages)
            copy_stage(base + k * STAGE_BYTES, digits, rows, columns, (i64)k * PAIR_DEPTH, n_padded,
                       row_bytes);
        commit_copies();
    }
    for (int at = 0; at < stages; at++) {
        wait_copies<PAIR_STAGES - 2>();
        __syncthreads();
        const int next = at + PAIR_STAGES - 1;
        if (next < stages)
            copy_stage(base + next % PAIR_STAGES * STAGE_BYTES, digits, rows, columns,
                       (i64)next * PAIR_DEPTH, n_padded, row_bytes);
        commit_copies();
        const u32 stage = base + at % PAIR_STAGES * STAGE_BYTES;
#pragma unroll
        for (int step = 0; step < PAIR_DEPTH / 32; step++) {
            u32 a[2][2][4], b[2][2][4];  // of two digits: 16 rows, 16 columns
            auto load = [&](int place, int digit) {
                const u32 from = stage + digit * PAIR_SIDE * PITCH + 32 * step;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    load_matrices(a[place][half], from + of_rows + 16 * half * PITCH);
                    load_matrices(b[place][half], from + of_columns + 16 * half * PITCH);
                }
            };
            auto multiply = [&](int (&out)[2][4][4], int left, int right) {
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        multiply_bytes(out[i][j], a[left][i][0], a[left][i][1], a[left][i][2],
                                       a[left][i][3], b[right][j >> 1][2 * (j & 1)],
                                       b[right][j >> 1][2 * (j & 1) + 1]);
            };
            load(0, 0);
            load(1, 1);
            multiply(high, 0, 0);
            multiply(mixed, 0, 1);
            multiply(mixed, 1, 0);
            multiply(low, 1, 1);
        }
    }
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const i64 row = rows + row0 + 16 * i + g + 8 * (k >> 1);
                const i64 column = columns + column0 + 8 * j + 2 * t + (k & 1);
                const i64 sum = (i64)high[i][j][k] * 65536 + (i64)mixed[i][j][k] * 256 +
                                (i64)low[i][j][k];
                if (row < n && column < n) {
                    double* own = kinship + row * n + column;
                    *own = unit ? __dmul_rn((double)sum, unit) : __ddiv_rn(*own, (double)sum);
                }
            }
}

// The pairs of a tile of the upper triangle, one after the other, for 256 threads.
template <class Work>
__device__ __forceinline__ void each_pair(i64 n, Work work) {
    if (blockIdx.x < blockIdx.y) return;
    for (int k = threadIdx.x; k < PAIR_SIDE * PAIR_SIDE; k += 256) {
        const i64 row = (i64)blockIdx.y * PAIR_SIDE + k / PAIR_SIDE;
        const i64 column = (i64)blockIdx.x * PAIR_SIDE + k % PAIR_SIDE;
        if (row < n && column < n) work(row, column);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    subtract_products(double* __restrict__ kinship, const double* __restrict__ basis,
                      const double* __restrict__ right, const double* __restrict__ shares, i64 n,
                      int n_axes) {
    each_pair(n, [&](i64 row, i64 column) {
        double less = 0;
        for (int axis = 0; axis < n_axes; axis++) {
            const i64 i = axis * n + row, j = axis * n + column;
            less = __dadd_rn(less, __dmul_rn(basis[i], right[j]));
            less = __dsub_rn(less, __dmul_rn(shares[i], basis[j]));
        }
        double* own = kinship + row * n + column;
        *own = __dsub_rn(*own, less);
    });
}

extern "C" __global__ void __launch_bounds__(256)
    divide_roots(double* __restrict__ kinship, const double* __restrict__ root, i64 n) {
    each_pair(n, [&](i64 row, i64 column) {
        double* own = kinship + row * n + column;
        *own = __ddiv_rn(*own, __dmul_rn(root[row], root[column]));
    });
}

// sums int64 (2, tiles, tiles): squares times 2^(2 SQUARE_BITS), and pairs.
extern "C" __global__ void __launch_bounds__(256)
    sum_squares(const double* __restrict__ kinship, const u8* __restrict__ marked,
                i64* __restrict__ sums, i64 n) {
    i64 total = 0, pairs = 0;
    each_pair(n, [&](i64 row, i64 column) {
        const double own = kinship[row * n + column];
        if (row >= column || !marked[row] || !marked[column] || own != own) return;
        const double most = (double)MOST_KINSHIP;
        const i64 whole = (i64)rint(__dmul_rn(fmin(fmax(own, -most), most),
                                              (double)(1 << SQUARE_BITS)));
        total += whole * whole;
        pairs++;
    });
    if (!pairs) return;
    const i64 tile = (i64)blockIdx.y * gridDim.x + blockIdx.x;
    atomicAdd(reinterpret_cast<u64*>(sums + tile), (u64)total);
    atomicAdd(reinterpret_cast<u64*>(sums + (i64)gridDim.x * gridDim.y + tile), (u64)pairs);
}

extern "C" __global__ void __launch_bounds__(256)
    list_close(const double* __restrict__ kinship, double least, i64 n, i64 room,
               i64* __restrict__ pairs, u64* __restrict__ found) {
    each_pair(n, [&](i64 row, i64 column) {
        if (row >= column || !(kinship[row * n + column] >= least)) return;
        const i64 at = (i64)atomicAdd(found, (u64)1);
        if (at < room) pairs[at] = row * n + column;
    });
}
