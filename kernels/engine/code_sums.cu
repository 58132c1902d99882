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

#include "codes.cuh"

#if !defined(TURNED_COLUMNS) || !defined(TURNED_WORDS)
#error "TURNED_COLUMNS and TURNED_WORDS come from engine/genotype_plan.py"
#endif

extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS)
    sum_codes(const u32* __restrict__ words, const signed char* __restrict__ digits,
              i64* __restrict__ out, i64 n_rows, i64 row_words, i64 first_word, i64 n_words,
              int stages_a_run, u32 table) {
    extern __shared__ uint4 shared[];
    const i64 row0 = (i64)blockIdx.x * SUM_ROWS + 32 * (threadIdx.x >> 5) + ((threadIdx.x & 31) >> 2);
    const i64 from = (i64)blockIdx.y * stages_a_run * SUM_STAGE;
    i64 to = from + (i64)stages_a_run * SUM_STAGE;
    to = to < n_words ? to : n_words;
    int sums[2][N_TILES][4] = {};
    add_codes(reinterpret_cast<char*>(shared), words + first_word, row0, n_rows, row_words,
              digits + 16 * first_word, 16 * row_words, from, to, table, sums);
    each_sum(sums, row0, n_rows, [&](i64 row, int column, i64 value) {
        if (value) atomicAdd(reinterpret_cast<u64*>(out + row * COLUMNS + column), (u64)value);
    });
}

extern "C" __global__ void split_digits(const double* __restrict__ numbers,
                                        signed char* __restrict__ digits, i64 n_items,
                                        int n_columns, i64 padded) {
    i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= padded) return;
    i64 place = place_of(item);
    for (int column = 0; column < COLUMNS; column++) {
        i64 value = 0;
        if (item < n_items && column < n_columns)
            value = (i64)numbers[item * n_columns + column];
        write_digits(digits, COLUMNS, column, padded, place, value);
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
