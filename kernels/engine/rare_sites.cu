// rare_sites: sites with few carriers, whose products are added carrier by carrier.
//
// Formula   Let f(x, y) be what one site adds to an accumulator for genotypes x, y (0 to 3,
//           3 = missing). Then sum over sites of f = sum of g(x, y) over pairs of carriers of each
//           site + margins, with g(x, y) = f(x, y) - f(x, 0) - f(0, y) + f(0, 0), which is 0 where
//           x or y is 0. For a product of genotypes without missing ones also
//           a.b = e.e' + 2 (v.u' + u.v'): one product on tensor cores, and for every homozygote the
//           carriers of its site.
// Source    kernels/README.md, "Rare sites".
// Shapes    site-major planes: bit `sample` of words[site][plane][row_words] (uint32); sites, rows
//           and columns are padded with zeros to whole squares of 512.
// Overflow  as in common.cuh: int32 modulo 2^32, the host limits the number of sites.

#include "../common.cuh"

#if !defined(SQUARE_SIDE) || !defined(STATE_SHIFT) || !defined(CARRIED_GENOTYPES) || \
    !defined(SITE_THREADS) || !defined(ADDERS) || !defined(ADDER_WORDS) || !defined(TURN_SIDE) || \
    !defined(TURN_LINES)
#error "SQUARE_SIDE ... TURN_LINES come from engine/rare_sites_plan.py"
#endif

constexpr int SIDE_WORDS = SQUARE_SIDE / 32;
constexpr int PITCH = SIDE_WORDS + 1;
constexpr int TRANSPOSERS = SIDE_WORDS * SIDE_WORDS;

__device__ __forceinline__ int square_at(int row, int word) {
    return row * PITCH + word + (row >> 5);
}

// One step of a 32 x 32 bit transpose: swaps bits J apart between words J apart; J = 16 and 8 by
// byte permutation.
template <int J>
__device__ __forceinline__ void exchange(u32 (&t)[32], u32 mask) {
    #pragma unroll
    for (int k = 0; k < 32; ++k) {
        if (k & J) continue;
        const u32 low = t[k], high = t[k + J];
        if (J == 16 || J == 8) {
            t[k] = __byte_perm(low, high, J == 16 ? 0x5410 : 0x6240);
            t[k + J] = __byte_perm(low, high, J == 16 ? 0x7632 : 0x7351);
        } else {
            const u32 x = ((low >> J) ^ high) & mask;
            t[k] = low ^ (x << J);
            t[k + J] = high ^ x;
        }
    }
}

// transpose_bits: bit (r, c) of `source` to bit (c, r) of `out`, for each plane.
// Shapes    source rows of row_stride words (row `rows[r]` where a list is given), planes
//           plane_stride words apart, n_columns bits in whole 8-byte words; out rows of out_stride
//           words, planes out_plane apart; counts (planes, n_columns) or null: += bits a column.
// Threads   256, one 32 x 32 bit square each; grid (columns / 512, rows / 512, planes).
// Shared    512 x 17 words, skewed against bank conflicts.
extern "C" __global__ void __launch_bounds__(TRANSPOSERS)
transpose_bits(const u32* __restrict__ source, const int* __restrict__ rows, int n_rows,
               i64 row_stride, i64 plane_stride, i64 n_columns, u32* __restrict__ out,
               i64 out_stride, i64 out_plane, u32* __restrict__ counts) {
    __shared__ u32 square[SQUARE_SIDE * PITCH + SIDE_WORDS];
    const i64 column0 = (i64)blockIdx.x * SQUARE_SIDE;
    const int row0 = blockIdx.y * SQUARE_SIDE;
    source += blockIdx.z * plane_stride + column0 / 32;
    const i64 pairs = (n_columns - column0 + 63) / 64;
    {
        // a thread loads the same two words of every 32nd row, with constant strides
        constexpr int STEP = TRANSPOSERS / (SIDE_WORDS / 2);
        const int r0 = threadIdx.x / (SIDE_WORDS / 2), w = threadIdx.x % (SIDE_WORDS / 2);
        const u32* from = source + (row0 + r0) * row_stride + 2 * w;
        u32* to = square + square_at(r0, 2 * w);
        #pragma unroll
        for (int i = 0; i < SQUARE_SIDE / STEP; ++i) {
            uint2 bits = make_uint2(0, 0);
            if (row0 + r0 + i * STEP < n_rows && w < pairs)
                bits = *reinterpret_cast<const uint2*>(
                    rows ? source + rows[row0 + r0 + i * STEP] * row_stride + 2 * w : from);
            to[i * (STEP * PITCH + STEP / 32)] = bits.x;
            to[i * (STEP * PITCH + STEP / 32) + 1] = bits.y;
            from += STEP * row_stride;
        }
    }
    __syncthreads();
    const int across = threadIdx.x % SIDE_WORDS, down = threadIdx.x / SIDE_WORDS;
    u32 t[32];
    #pragma unroll
    for (int i = 0; i < 32; ++i) t[i] = square[square_at(down * 32 + i, across)];
    exchange<16>(t, 0x0000FFFFu);
    exchange<8>(t, 0x00FF00FFu);
    exchange<4>(t, 0x0F0F0F0Fu);
    exchange<2>(t, 0x33333333u);
    exchange<1>(t, 0x55555555u);
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 32; ++i) square[square_at(across * 32 + i, down)] = t[i];
    __syncthreads();
    out += blockIdx.z * out_plane + row0 / 32;
    {
        constexpr int STEP = TRANSPOSERS / (SIDE_WORDS / 4);
        const int r0 = threadIdx.x / (SIDE_WORDS / 4), w = threadIdx.x % (SIDE_WORDS / 4) * 4;
        const u32* from = square + square_at(r0, w);
        u32* to = out + (column0 + r0) * out_stride + w;
        #pragma unroll
        for (int i = 0; i < SQUARE_SIDE / STEP; ++i) {
            const u32* x = from + i * (STEP * PITCH + STEP / 32);
            if (column0 + r0 + i * STEP < n_columns)
                *reinterpret_cast<uint4*>(to) = make_uint4(x[0], x[1], x[2], x[3]);
            to += STEP * out_stride;
        }
    }
    if (!counts) return;
    for (int c = threadIdx.x; c < SQUARE_SIDE; c += TRANSPOSERS) {
        u32 sum = 0;
        for (int w = 0; w < SIDE_WORDS; ++w) sum += __popc(square[square_at(c, w)]);
        if (sum && column0 + c < n_columns)
            atomicAdd(counts + blockIdx.z * n_columns + column0 + c, sum);
    }
}

// An entry of a carrier list: the sample, and its genotype (3 = missing) in the two upper bits.
constexpr u32 SAMPLE_MASK = (1u << STATE_SHIFT) - 1;

// list_carriers: for each listed site the samples whose genotype is not 0, in order.
// Shapes    words site-major; sites (n_sites); offsets (n_sites): where each list begins in
//           `entries`; lengths (n_sites); counts (n_samples, 3): += sites of genotypes 1, 2, 3.
// Threads   one warp per site.
extern "C" __global__ void __launch_bounds__(SITE_THREADS)
list_carriers(const u32* __restrict__ words, const int* __restrict__ sites, int n_sites,
              int n_planes, i64 row_words, int n_samples, const i64* __restrict__ offsets,
              u32* __restrict__ entries, int* __restrict__ lengths, u32* __restrict__ counts) {
    const int site = (blockIdx.x * SITE_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (site >= n_sites) return;
    const u32* row = words + (i64)sites[site] * n_planes * row_words;
    u32* list = entries + offsets[site];
    int n = 0;
    for (i64 first = 0; first < row_words; first += 32) {
        const i64 word = first + lane;
        u32 u = 0, v = 0, missing = 0;
        if (word < row_words) {
            u = row[word];
            v = row[row_words + word];
            if (n_planes > 2) {
                const i64 left = n_samples - word * 32;
                const u32 valid = left >= 32 ? ~0u : left > 0 ? (1u << left) - 1 : 0u;
                const u32 c = row[2 * row_words + word];
                missing = ~c & valid;
                u &= c;
                v &= c;
            }
        }
        u32 any = u | missing;
        if (!__any_sync(~0u, any)) continue;
        int upto = __popc(any);
        for (int step = 1; step < 32; step *= 2) {
            const int below = __shfl_up_sync(~0u, upto, step);
            if (lane >= step) upto += below;
        }
        int at = n + upto - __popc(any);
        n += __shfl_sync(~0u, upto, 31);
        while (any) {
            const int bit = __ffs(any) - 1;
            any &= any - 1;
            const u32 state = (missing >> bit & 1) ? 3 : 1 + (v >> bit & 1);
            const u32 sample = (u32)word * 32 + bit;
            list[at++] = sample | state << STATE_SHIFT;
            atomicAdd(counts + sample * CARRIED_GENOTYPES + state - 1, 1u);
        }
    }
    if (lane == 0) lengths[site] = n;
}

// add_pairs: adds g of every pair of carriers of each listed site to the accumulators.
// Shapes    lists of two blocks of samples (the same one where symmetric); acc (slots, ., columns)
//           int32, slots acc_stride apart; table (slots, 3, 3) int32: g by genotype - 1.
// Threads   one warp per site and band of rows; bands are the slow grid axis, so that the
//           accumulators of the active bands stay in L2.
extern "C" __global__ void __launch_bounds__(SITE_THREADS)
add_pairs(const u32* __restrict__ entries_a, const i64* __restrict__ offsets_a,
          const int* __restrict__ lengths_a, const u32* __restrict__ entries_b,
          const i64* __restrict__ offsets_b, const int* __restrict__ lengths_b, int n_sites,
          int* __restrict__ acc, i64 columns, i64 acc_stride, const int* __restrict__ table,
          int n_slots, int symmetric, int band_rows) {
    const int site = (blockIdx.x * SITE_THREADS + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (site >= n_sites) return;
    const u32* a = entries_a + offsets_a[site];
    const u32* b = entries_b + offsets_b[site];
    const int n_a = lengths_a[site], n_b = lengths_b[site];
    const u32 begin = blockIdx.y * band_rows, end = begin + band_rows;
    int first = 0, beyond = n_a;
    while (begin && first < beyond) {
        const int middle = (first + beyond) / 2;
        if ((a[middle] & SAMPLE_MASK) < begin) first = middle + 1;
        else beyond = middle;
    }
    for (int r = first; r < n_a; ++r) {
        const u32 x = a[r];
        const u32 i = x & SAMPLE_MASK;
        if (i >= end) break;
        const int state = (x >> STATE_SHIFT) - 1;
        for (int s = (symmetric ? r : 0) + lane; s < n_b; s += 32) {
            const u32 y = b[s];
            const u32 j = y & SAMPLE_MASK;
            const int other = (y >> STATE_SHIFT) - 1;
            const bool both = symmetric && i != j && i / TILE_ROWS == j / TILE_ROWS;
            for (int slot = 0; slot < n_slots; ++slot) {
                const int* g = table + slot * CARRIED_GENOTYPES * CARRIED_GENOTYPES;
                int* target = acc + slot * acc_stride;
                const int value = g[state * CARRIED_GENOTYPES + other];
                if (value) atomicAdd(target + i * columns + j, value);
                if (both) atomicAdd(target + j * columns + i, g[other * CARRIED_GENOTYPES + state]);
            }
        }
    }
}

// add_carriers: w[i][j] += number of listed sites where i is homozygous and j a carrier.
// Shapes    homs: bits of the listed sites of each sample i, hom_stride words apart, hom_words of
//           them; words site-major (of the samples j), rows of site_stride words, of which
//           row_words are plane u; sites: the listed sites; w (., columns) int32.
// Threads   128, 4 words (128 samples j) each; grid (samples i, row_words / 512). The carrier bits
//           of the sites of i are summed in bit-sliced carry-save counters: two instructions per 32
//           samples.
// Shared    a list of sites, later a staging buffer for the sums.
// Overflow  counters have LEVELS bits and are flushed before they are full.
static_assert(ADDER_WORDS * 4 == sizeof(uint4), "a thread adds one 16-byte load");
constexpr int LEVELS = 14, LIST = 8192, LOADS = 8;

__device__ __forceinline__ u32 full_add(u32& sum, u32 a, u32 b) {
    const u32 carry = (sum & a) | (sum & b) | (a & b);
    sum ^= a ^ b;
    return carry;
}

extern "C" __global__ void __launch_bounds__(ADDERS)
add_carriers(const u32* __restrict__ homs, i64 hom_stride, i64 hom_words,
             const u32* __restrict__ words, i64 site_stride, i64 row_words,
             const int* __restrict__ sites, int* __restrict__ w, i64 columns) {
    __shared__ u32 list[LIST];
    __shared__ int n_listed;
    const u32* row = homs + blockIdx.x * hom_stride;
    const i64 mine = (i64)blockIdx.y * ADDERS * ADDER_WORDS + threadIdx.x * ADDER_WORDS;
    const bool active = mine < row_words;
    words += mine;
    w += blockIdx.x * columns;
    u32 c[LEVELS][ADDER_WORDS];
    #pragma unroll
    for (int l = 0; l < LEVELS; ++l)
        #pragma unroll
        for (int q = 0; q < ADDER_WORDS; ++q) c[l][q] = 0;
    int held = 0;
    i64 next = 0;
    while (true) {
        if (threadIdx.x == 0) n_listed = 0;
        __syncthreads();
        int n = 0;
        while (next < hom_words && n <= LIST - ADDERS * 32) {
            const i64 word = next + threadIdx.x;
            u32 bits = word < hom_words ? row[word] : 0;
            if (bits) {
                int at = atomicAdd(&n_listed, __popc(bits));
                for (; bits; bits &= bits - 1) list[at++] = sites[word * 32 + __ffs(bits) - 1];
            }
            next += ADDERS;
            __syncthreads();
            n = n_listed;
            __syncthreads();
        }
        const bool last = next >= hom_words;
        const int levels = 32 - __clz(held + n);
        if (active) {
            for (int l = 0; l < n; l += LOADS) {
                uint4 x[LOADS];
                #pragma unroll
                for (int b = 0; b < LOADS; ++b)
                    x[b] = l + b < n ? *reinterpret_cast<const uint4*>(
                                           words + (i64)list[l + b] * site_stride)
                                     : make_uint4(0, 0, 0, 0);
                #pragma unroll
                for (int q = 0; q < ADDER_WORDS; ++q) {
                    auto part = [&](int b) {
                        return q == 0 ? x[b].x : q == 1 ? x[b].y : q == 2 ? x[b].z : x[b].w;
                    };
                    const u32 two0 = full_add(c[0][q], part(0), part(1));
                    const u32 two1 = full_add(c[0][q], part(2), part(3));
                    const u32 four0 = full_add(c[1][q], two0, two1);
                    const u32 two2 = full_add(c[0][q], part(4), part(5));
                    const u32 two3 = full_add(c[0][q], part(6), part(7));
                    const u32 four1 = full_add(c[1][q], two2, two3);
                    u32 carry = full_add(c[2][q], four0, four1);
                    #pragma unroll
                    for (int k = 3; k < LEVELS; ++k) {
                        if (k >= levels) break;
                        const u32 up = c[k][q] & carry;
                        c[k][q] ^= carry;
                        carry = up;
                    }
                }
            }
        }
        held += n;
        __syncthreads();
        if (held && (last || held + LIST >= 1 << LEVELS)) {
            // stage the sums of 32 samples per thread, so that global accesses are coalesced
            int* sums = reinterpret_cast<int*>(list);
            #pragma unroll
            for (int q = 0; q < ADDER_WORDS; ++q) {
                #pragma unroll
                for (int bit = 0; bit < 32; ++bit) {
                    int value = 0;
                    #pragma unroll
                    for (int l = 0; l < LEVELS; ++l) {
                        if (l >= levels) break;
                        value |= (c[l][q] >> bit & 1) << l;
                    }
                    sums[threadIdx.x * 33 + bit] = value;
                }
                __syncthreads();
                for (int e = threadIdx.x; e < ADDERS * 32; e += ADDERS) {
                    const i64 word = (i64)blockIdx.y * ADDERS * ADDER_WORDS
                                   + (e / 32) * ADDER_WORDS + q;
                    const i64 j = word * 32 + e % 32;
                    const int value = sums[e / 32 * 33 + e % 32];
                    // no other thread adds here: the atomic is used as a store that does not stall
                    if (value && j < columns) atomicAdd(w + j, value);
                }
                __syncthreads();
            }
            #pragma unroll
            for (int l = 0; l < LEVELS; ++l)
                #pragma unroll
                for (int q = 0; q < ADDER_WORDS; ++q) c[l][q] = 0;
            held = 0;
        }
        if (last) return;
    }
}

// add_mirrored: acc[i][j] += weight * (w[i][j] + other[j][i]).
// Shapes    acc (rows, columns), w the same, other (columns, rows), int32, multiples of 32.
// Threads   32 x 8, one 32 x 32 square a thread block; grid (columns / 32, rows / 32).
// Shared    a 32 x 33 square, padded against bank conflicts.
extern "C" __global__ void __launch_bounds__(TURN_SIDE * TURN_LINES)
add_mirrored(int* __restrict__ acc, const int* __restrict__ w, const int* __restrict__ other,
             i64 rows, i64 columns, int weight, int symmetric) {
    __shared__ int square[TURN_SIDE][TURN_SIDE + 1];
    const i64 i0 = (i64)blockIdx.y * TURN_SIDE, j0 = (i64)blockIdx.x * TURN_SIDE;
    if (symmetric && i0 / TILE_ROWS > j0 / TILE_ROWS) return;
    const int x = threadIdx.x % TURN_SIDE;
    for (int y = threadIdx.x / TURN_SIDE; y < TURN_SIDE; y += TURN_LINES)
        square[y][x] = other[(j0 + y) * rows + i0 + x];
    __syncthreads();
    for (int y = threadIdx.x / TURN_SIDE; y < TURN_SIDE; y += TURN_LINES) {
        const i64 at = (i0 + y) * columns + j0 + x;
        acc[at] += weight * (w[at] + square[x][y]);
    }
}
