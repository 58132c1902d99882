// pack_finish: packs stored planes for the bit-GEMM, and finishes its sums.
//
// Formula   out[i][j] = sum_k weight_k * popcount(A[i][plane_a(k)] & B[j][plane_b(k)])
//           The products themselves: bitgemm_wgmma.cu, bitgemm_mma.cu, bitgemm_popc.cu.
// Source    kernels/README.md, "From terms to products";
//           the planes are those of planes.npy (u = genotype >= 1, v = genotype = 2, c = called).
// Portable  no inline assembly and no warp shuffles: nothing here is NVIDIA-specific.

#include "../common.cuh"

#if !defined(LETTER_U) || !defined(LETTER_V) || !defined(LETTER_C) || !defined(LETTER_Z) || \
    !defined(LETTER_E) || !defined(PACK_ROWS) || !defined(PACK_STAGES) || \
    !defined(COUNTED_LETTERS) || !defined(TURN_SIDE) || !defined(TURN_LINES)
#error "LETTER_U ... TURN_LINES come from engine/variants.py"
#endif

__device__ __forceinline__ u64 derive_letter(int letter, u64 u, u64 v, u64 c) {
    switch (letter) {
        case LETTER_U: return u;
        case LETTER_V: return v;
        case LETTER_C: return c;
        case LETTER_Z: return c & ~u;
        case LETTER_E: return u & ~v;
        default: return (c & ~u) | v;
    }
}

// pack_planes: stored planes of one site range to packed planes of the requested letters.
// Shapes    words (n_samples, n_planes, row_words) uint64; the range is n_words words from
//           first_word, with n_sites valid sites; n_planes 2 (complete: c = all valid sites) or 3
//           (u and v are masked by c); packed as in common.cuh, `n_letters` planes; counts
//           (n_samples, 3) int64: += number of u, v, c bits of each sample.
// Threads   8 lanes a sample (one 16-byte chunk each) x 32 samples; grid (samples / 32,
//           stages / 16).
// Shared    32 x 3 counters.
// Overflow  counters of one thread block: 16 stages * 1 024 bits < 2^31.
extern "C" __global__ void __launch_bounds__(PACK_ROWS * CHUNKS)
pack_planes(const u64* __restrict__ words, u8* __restrict__ packed, u64* __restrict__ counts,
            const int* __restrict__ letters, int n_letters, int n_samples, int n_planes,
            i64 row_words, i64 first_word, i64 n_words, i64 n_sites, int n_tiles, int n_stages) {
    __shared__ u32 counted[PACK_ROWS][COUNTED_LETTERS];
    const int chunk = threadIdx.x % CHUNKS;
    const int local_row = threadIdx.x / CHUNKS;
    const int sample = blockIdx.x * PACK_ROWS + local_row;
    const int tile = sample / TILE_ROWS;
    const int row = sample % TILE_ROWS;
    if (chunk < COUNTED_LETTERS) counted[local_row][chunk] = 0;
    __syncthreads();

    const u64* source = words + (i64)sample * n_planes * row_words + first_word;
    const int position = row * STAGE_BYTES + ((chunk ^ (row & 7)) * CHUNK_BYTES);
    const int first_stage = blockIdx.y * PACK_STAGES;
    const int end_stage = min(first_stage + PACK_STAGES, n_stages);
    u32 n_u = 0, n_v = 0, n_c = 0;
    for (int stage = first_stage; stage < end_stage; ++stage) {
        u64 u[2] = {0, 0}, v[2] = {0, 0}, c[2] = {0, 0};
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            const i64 word = (i64)stage * STAGE_WORDS + chunk * 2 + half;
            if (sample < n_samples && word < n_words) {
                const i64 left = n_sites - word * 64;
                const u64 valid = left >= 64 ? ~0ull : left > 0 ? (1ull << left) - 1 : 0ull;
                c[half] = n_planes > 2 ? source[2 * row_words + word] & valid : valid;
                u[half] = source[word] & c[half];
                v[half] = source[row_words + word] & c[half];
            }
            n_u += __popcll(u[half]);
            n_v += __popcll(v[half]);
            n_c += __popcll(c[half]);
        }
        for (int i = 0; i < n_letters; ++i) {
            const int letter = letters[i];
            ulonglong2 bits;
            bits.x = derive_letter(letter, u[0], v[0], c[0]);
            bits.y = derive_letter(letter, u[1], v[1], c[1]);
            u8* target = packed + (((i64)i * n_stages + stage) * n_tiles + tile) * TILE_BYTES;
            *reinterpret_cast<ulonglong2*>(target + position) = bits;
        }
    }
    atomicAdd(&counted[local_row][0], n_u);
    atomicAdd(&counted[local_row][1], n_v);
    atomicAdd(&counted[local_row][2], n_c);
    __syncthreads();
    if (sample < n_samples && chunk < COUNTED_LETTERS)
        atomicAdd(counts + (i64)sample * COUNTED_LETTERS + chunk, (u64)counted[local_row][chunk]);
}

// finish_rows: accumulators of some rows to the int64 result.
// Formula   out[i][j] = scale * (acc[i][j] + total[i][j]) + row_term[i] + column_term[j]; where
//           only the upper triangle of tiles was computed, a tile below the diagonal is the
//           transposed tile above it, with the two terms exchanged.
// Shapes    acc (padded rows, acc_columns) int32 or null; total the same, int64, or null;
//           row_term (m), column_term (n) int64; out (n_rows, n) int64: rows from first_row.
// Threads   32 x 8, one 32 x 32 square a thread block; grid (columns / 32, rows / 32).
// Shared    a 32 x 33 square of int64 for the transpose, padded against bank conflicts.
extern "C" __global__ void __launch_bounds__(TURN_SIDE * TURN_LINES)
finish_rows(const int* __restrict__ acc, const i64* __restrict__ total,
            const i64* __restrict__ row_term, const i64* __restrict__ column_term,
            i64* __restrict__ out, i64 scale, int first_row, int n_rows, int n_columns,
            i64 acc_columns, int symmetric) {
    __shared__ i64 square[TURN_SIDE][TURN_SIDE + 1];
    const int row0 = first_row + blockIdx.y * TURN_SIDE;
    const int column0 = blockIdx.x * TURN_SIDE;
    const int x = threadIdx.x % TURN_SIDE;
    // first_row is a multiple of TURN_SIDE, so that a square lies in one tile
    const bool mirrored = symmetric && row0 / TILE_ROWS > column0 / TILE_ROWS;
    for (int y = threadIdx.x / TURN_SIDE; y < TURN_SIDE; y += TURN_LINES) {
        const i64 at = mirrored ? (i64)(column0 + y) * acc_columns + row0 + x
                                : (i64)(row0 + y) * acc_columns + column0 + x;
        square[y][x] = (acc ? (i64)acc[at] : 0) + (total ? total[at] : 0);
    }
    __syncthreads();
    for (int y = threadIdx.x / TURN_SIDE; y < TURN_SIDE; y += TURN_LINES) {
        const int i = row0 + y, j = column0 + x;
        if (i >= first_row + n_rows || j >= n_columns) continue;
        const i64 sum = mirrored ? square[x][y] : square[y][x];
        const i64 terms = mirrored ? row_term[j] + column_term[i] : row_term[i] + column_term[j];
        out[(i64)(i - first_row) * n_columns + j] = scale * sum + terms;
    }
}
