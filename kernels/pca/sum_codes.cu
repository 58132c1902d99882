// sum_codes: sums of whole numbers over genotypes in PLINK's two-bit codes, on tensor cores.
//
// sum_codes
// Formula   out[r][c] += sum over items i of value(code(r, i)) * number(i, c), where a number is
//           d0 + 2^8 d1 + 2^16 d2 in digits of 8 bits, and `table` holds the values of the four codes
//           in its bytes: genotypes 0x00010002 (00 is two ALT alleles, 10 is one), missing 0x100.
// Source    GEMM with mma.sync m16n8k32 s8 (PTX ISA, 9.7.14); PLINK 1 binary format for the codes.
// Shapes    words (n_rows, row_words) uint32, 16 items a word, row_words a multiple of SUM_STEP;
//           digits int8 (3, 8 * TILES, 16 row_words), the items of a word in the order of
//           `place_in_word`; out int64 (n_rows, 8 * TILES).
// Threads   4 warps; a warp computes 32 rows x 8 TILES columns x 3 digits. blockIdx.x: 128 rows,
//           blockIdx.y: a run of stages. A lane expands 16 codes with two masks and four byte
//           permutations: a mask leaves the selectors of every second item, hence the order of
//           digits. The order along k is free as long as both operands agree.
// Shared    one stage of digits: SUM_STAGE words of items of all columns, rows of
//           16 * SUM_STAGE + 64 bytes, so that 8 lanes read 128 different bytes.
// Overflow  int32 accumulators hold 2^24 items of a run; out is int64 and grows by atomic additions,
//           which are exact in any order.
//
// split_digits   numbers float64 (n_items, n_columns), whole, below 2^23 - 2^15, to digits.
// transpose_codes   codes of sites (n_sites, row_words) to codes of people (16 row_words,
//           site_words); sites beyond the last read as code 11. 32 x 8 threads turn 16 x 16 codes each
//           in registers (four swap steps); results pass through shared memory so that 32 bytes are
//           written at a time.
//
// Compile with -DTILES=1|2|3|4.

#include "../ptx.cuh"
#include "digits.cuh"

#if !defined(SUM_STAGE) || !defined(SUM_STEP) || !defined(SUM_WARPS) || !defined(SUM_ROWS) || \
    !defined(SUM_DIGITS) || !defined(TILES) || !defined(TURNED_COLUMNS) || !defined(TURNED_WORDS)
#error "SUM_STAGE ... TURNED_WORDS come from engine/gpu/layout.py and the launch"
#endif

constexpr int N_TILES = SUM_DIGITS * TILES;   // tiles of 8 columns, all digits
constexpr int PITCH = 16 * SUM_STAGE + 64;  // bytes
static_assert(SUM_ROWS == 32 * SUM_WARPS, "32 rows a warp");
static_assert(SUM_STEP == 16 && SUM_STAGE % SUM_STEP == 0, "a lane reads four words");

// The values of 16 codes: items 0 2 4 6, 1 3 5 7, 8 10 12 14, 9 11 13 15.
__device__ __forceinline__ void expand(u32 word, u32 table, u32 (&out)[4]) {
    u32 even = word & 0x33333333u, odd = (word >> 2) & 0x33333333u;
    out[0] = __byte_perm(table, 0, even);
    out[1] = __byte_perm(table, 0, odd);
    out[2] = __byte_perm(table, 0, even >> 16);
    out[3] = __byte_perm(table, 0, odd >> 16);
}

extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS)
    sum_codes(const u32* __restrict__ words, const signed char* __restrict__ digits,
              i64* __restrict__ out, i64 n_rows, i64 row_words, i64 first_word, i64 n_words,
              int stages_a_run, u32 table) {
    extern __shared__ uint4 shared[];
    char* stage = reinterpret_cast<char*>(shared);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    const i64 row0 = (i64)blockIdx.x * SUM_ROWS + 32 * warp + g;
    const i64 from = (i64)blockIdx.y * stages_a_run * SUM_STAGE;
    i64 to = from + (i64)stages_a_run * SUM_STAGE;
    to = to < n_words ? to : n_words;
    int sums[2][N_TILES][4] = {};
    for (i64 at = from; at < to; at += SUM_STAGE) {
        __syncthreads();
        // A piece is 16 digits of a word's items. Pieces 4 t + u of a step lie at 4 u + t.
        for (int k = threadIdx.x; k < 8 * N_TILES * SUM_STAGE; k += 32 * SUM_WARPS) {
            int column = k / SUM_STAGE, piece = k % SUM_STAGE, in = piece & 15;
            int place = (piece & ~15) | (in & 3) << 2 | in >> 2;
            uint4 value = make_uint4(0, 0, 0, 0);
            if (at + piece < to)
                value = *reinterpret_cast<const uint4*>(
                    digits + 16 * (column * row_words + first_word + at + piece));
            *reinterpret_cast<uint4*>(stage + column * PITCH + 16 * place) = value;
        }
        __syncthreads();
#pragma unroll 1
        for (int step = 0; step < SUM_STAGE / SUM_STEP; step++) {
            i64 word = at + step * SUM_STEP + 4 * t;
            uint4 codes[4];  // rows g, g + 8, g + 16, g + 24
#pragma unroll
            for (int k = 0; k < 4; k++) {
                i64 row = row0 + 8 * k;
                codes[k] = make_uint4(~0u, ~0u, ~0u, ~0u);
                if (row < n_rows && word < to)
                    codes[k] = *reinterpret_cast<const uint4*>(words + row * row_words +
                                                               first_word + word);
            }
#pragma unroll
            for (int u = 0; u < 4; u++) {
                u32 a[4][4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    u32 own = u == 0 ? codes[k].x : u == 1 ? codes[k].y : u == 2 ? codes[k].z
                                                                                  : codes[k].w;
                    expand(own, table, a[k]);
                }
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    uint4 b = *reinterpret_cast<const uint4*>(
                        stage + (8 * n + g) * PITCH + 16 * (16 * step + 4 * u + t));
                    multiply_bytes(sums[0][n], a[0][0], a[1][0], a[0][1], a[1][1], b.x, b.y);
                    multiply_bytes(sums[1][n], a[2][0], a[3][0], a[2][1], a[3][1], b.x, b.y);
                    multiply_bytes(sums[0][n], a[0][2], a[1][2], a[0][3], a[1][3], b.z, b.w);
                    multiply_bytes(sums[1][n], a[2][2], a[3][2], a[2][3], a[3][3], b.z, b.w);
                }
            }
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                i64 row = row0 + 16 * half + 8 * (k >> 1);
                i64 value = (i64)sums[half][n][k] + (i64)sums[half][TILES + n][k] * 256 +
                            (i64)sums[half][2 * TILES + n][k] * 65536;
                if (row < n_rows && value)
                    atomicAdd(reinterpret_cast<u64*>(out + row * (8 * TILES) + 8 * n + 2 * t +
                                                     (k & 1)),
                              (u64)value);
            }
}

extern "C" __global__ void split_digits(const double* __restrict__ numbers,
                                        signed char* __restrict__ digits, i64 n_items,
                                        int n_columns, i64 padded) {
    i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= padded) return;
    i64 place = place_of(item);
    for (int column = 0; column < 8 * TILES; column++) {
        i64 value = 0;
        if (item < n_items && column < n_columns)
            value = (i64)numbers[item * n_columns + column];
        write_digits(digits, 8 * TILES, column, padded, place, value);
    }
}

template <int STEP>
__device__ __forceinline__ void swap_codes(u32 (&x)[16], u32 mask) {
#pragma unroll
    for (int i = 0; i < 16; i++)
        if (!(i & STEP)) {
            u32 t = ((x[i] >> (2 * STEP)) ^ x[i + STEP]) & mask;
            x[i + STEP] ^= t;
            x[i] ^= t << (2 * STEP);
        }
}

extern "C" __global__ void __launch_bounds__(TURNED_COLUMNS* TURNED_WORDS)
    transpose_codes(const u32* __restrict__ words, u32* __restrict__ out, i64 n_sites,
                    i64 row_words, i64 site_words) {
    __shared__ u32 turned[16 * TURNED_COLUMNS][TURNED_WORDS + 1];
    const int column = threadIdx.x, word = threadIdx.y;
    const i64 from = (i64)blockIdx.x * TURNED_COLUMNS + column;
    const i64 to = (i64)blockIdx.y * TURNED_WORDS + word;
    u32 x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        i64 site = 16 * to + i;
        x[i] = site < n_sites && from < row_words ? words[site * row_words + from] : ~0u;
    }
    swap_codes<8>(x, 0x0000FFFFu);
    swap_codes<4>(x, 0x00FF00FFu);
    swap_codes<2>(x, 0x0F0F0F0Fu);
    swap_codes<1>(x, 0x33333333u);
#pragma unroll
    for (int i = 0; i < 16; i++) turned[16 * column + i][word] = x[i];
    __syncthreads();
    for (int k = word * TURNED_COLUMNS + column; k < 16 * TURNED_COLUMNS * TURNED_WORDS;
         k += TURNED_COLUMNS * TURNED_WORDS) {
        i64 person = 16 * (i64)blockIdx.x * TURNED_COLUMNS + k / TURNED_WORDS;
        i64 own = (i64)blockIdx.y * TURNED_WORDS + k % TURNED_WORDS;
        if (person < 16 * row_words && own < site_words)
            out[person * site_words + own] = turned[k / TURNED_WORDS][k % TURNED_WORDS];
    }
}
