// candidates: runs of windows in which a pair of people has few opposite homozygotes.
//
// find_runs
// Formula   x[w] = popcount(z_i & v_j) + popcount(v_i & z_j) over window w, z genotype 0 and v
//           genotype 2, called sites only. A window is good if x[w] <= tolerance; a maximal run of
//           good windows of one contig with right[last] - left[first] >= least is written out.
// Source    `ibd.candidates`: every such run holds `depth` probes in a row, so x is computed at the
//           probes alone, and a run is walked by the thread that finds so many good.
// Shapes    packed windows (n_windows, PARTS, pitch, 8) u32, pitch a multiple of IBD_SIDE: 4 words
//           of z, 4 of v of PART_SITES sites; probes (n_probes): window, reach, stop, fresh of
//           `Probes`; left, right (n_windows); bounds (n_windows): begin, end; out (capacity):
//           i, j, first, last in any order; more are counted and dropped.
// Threads   16 warps; a thread block has IBD_SIDE x IBD_SIDE pairs, a warp 64 x 64. One mma.sync
//           m16n8k256 gives x of 16 x 8 pairs in PART_SITES sites: along k a row is its window as
//           it is stored, a column begins with v. The accumulators start at -(tolerance + 1), so
//           their sign is the answer, one bit a pair; a lane keeps those of its 128 pairs at the
//           probe before. Pairs that pass go to a queue of the warp; as soon as it holds 32, each
//           lane walks one of them, by POPC from the packed windows (L2).
// Shared    IBD_STAGES slots of the windows of IBD_SIDE rows and columns at one probe; queues.
// Overflow  x <= 256; probe numbers of 16 bits.
//
// pack_windows
// Formula   packed windows from stored planes u, v and, if N_PLANES is 3, c.
// Shapes    words (n_people, n_planes, row_words) u64; first, n_sites (n_windows).
// Threads   256; one (person, window, part) each, windows along threads: reads are coalesced.
//
// Compile with -DPARTS=1|2 -DIBD_STAGES=n -DIBD_SHARED=bytes.

#include "../ptx.cuh"
#include "../types.cuh"

#if !defined(IBD_SIDE) || !defined(IBD_WARP_SIDE) || !defined(IBD_QUEUE) || \
    !defined(PART_SITES) || !defined(PACK_THREADS)
#error "IBD_SIDE ... PACK_THREADS come from ibd/candidates_plan.py"
#endif

constexpr int WARPS_A_SIDE = IBD_SIDE / IBD_WARP_SIDE, WARPS = WARPS_A_SIDE * WARPS_A_SIDE;
constexpr int ROW_TILES = IBD_WARP_SIDE / 16, COLUMN_TILES = IBD_WARP_SIDE / 8;
constexpr int PERSON_CHUNKS = 2;  // of 16 bytes, in each part of a window
constexpr int OPERAND_CHUNKS = PARTS * IBD_SIDE * PERSON_CHUNKS;
constexpr int SLOT_CHUNKS = 2 * OPERAND_CHUNKS;
constexpr u32 EVERYONE = 0xffffffffu;

static_assert(COLUMN_TILES * 4 == 32, "the answers of a row tile are one word");
static_assert(PART_SITES == 128, "a part of a window is one step of mma");
static_assert(IBD_SHARED == (IBD_STAGES * SLOT_CHUNKS * 16 + WARPS * IBD_QUEUE * 4), "shared");

// Packed windows of a block of people; `first` is the first of this thread block.
struct Block {
    const uint4* packed;
    i64 pitch;
    int first;

    __device__ __forceinline__ const uint4* at(int window, int part, int person) const {
        return packed + (((i64)window * PARTS + part) * pitch + person) * PERSON_CHUNKS;
    }
};

struct Tables {
    const int4* probes;
    const i64* left;
    const i64* right;
    const int2* bounds;
    int depth, tolerance;
    i64 least;
    int4* out;
    u64* count;
    u64 capacity;
};

// Starts copying the windows of a block's people at one probe.
__device__ __forceinline__ void load_operand(uint4* slot, const Block& block, int window) {
    #pragma unroll
    for (int at = threadIdx.x; at < OPERAND_CHUNKS; at += WARPS * 32) {
        const int part = at / (IBD_SIDE * PERSON_CHUNKS), chunk = at % (IBD_SIDE * PERSON_CHUNKS);
        copy_chunk((u32)__cvta_generic_to_shared(slot + at),
                   block.at(window, part, block.first) + chunk);
    }
}

__device__ __forceinline__ int opposite(const uint4* a, const uint4* b) {
    const uint4 z = a[0], v = a[1], other_z = b[0], other_v = b[1];
    return __popc(z.x & other_v.x) + __popc(z.y & other_v.y) + __popc(z.z & other_v.z)
         + __popc(z.w & other_v.w) + __popc(v.x & other_z.x) + __popc(v.y & other_z.y)
         + __popc(v.z & other_z.z) + __popc(v.w & other_z.w);
}

__device__ __forceinline__ bool is_good(const Block& rows, const Block& columns, int i, int j,
                                        int window, int tolerance) {
    int x = 0;
    #pragma unroll
    for (int part = 0; part < PARTS; ++part)
        x += opposite(rows.at(window, part, i), columns.at(window, part, j));
    return x <= tolerance;
}

// Writes the run around a probe, unless another probe of it does.
__device__ __forceinline__ void walk(const Block& rows, const Block& columns, const Tables& tables,
                                     u32 entry) {
    const int4 probe = tables.probes[entry >> 16];
    const int i = rows.first + (int)(entry >> 8 & 0xff), j = columns.first + (int)(entry & 0xff);
    const int2 bounds = tables.bounds[probe.x];
    int first = probe.x, last = probe.x;
    while (first > bounds.x && is_good(rows, columns, i, j, first - 1, tables.tolerance)) {
        --first;
        if (first == probe.z) return;
    }
    if (first > probe.y) return;
    while (last + 1 < bounds.y && is_good(rows, columns, i, j, last + 1, tables.tolerance)) ++last;
    if (tables.right[last] - tables.left[first] < tables.least) return;
    const u64 place = atomicAdd(tables.count, 1ull);
    if (place < tables.capacity) tables.out[place] = {i, j, first, last};
}

// Answers of a warp's pairs at one probe: bit 31 - (4 n + e) of word m is entry e of the mma of row
// tile m and column tile n.
__device__ __forceinline__ void answer(const uint4* slot, int warp_row, int warp_column, int lane,
                                       int tolerance, u32 (&good)[ROW_TILES]) {
    const u64* rows = reinterpret_cast<const u64*>(slot);
    const u64* columns = reinterpret_cast<const u64*>(slot + OPERAND_CHUNKS);
    const int group = lane / 4, part_of_k = lane % 4;
    #pragma unroll
    for (int m = 0; m < ROW_TILES; ++m) {
        u64 upper[PARTS], lower[PARTS];
        #pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const int at = (part * IBD_SIDE + warp_row + 16 * m + group) * 4 + part_of_k;
            upper[part] = rows[at];
            lower[part] = rows[at + 8 * 4];
        }
        u32 bits = 0;
        #pragma unroll
        for (int n = 0; n < COLUMN_TILES; ++n) {
            const int start = -1 - tolerance;
            int d[4] = {start, start, start, start};
            #pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                const int at = part * IBD_SIDE + warp_column + 8 * n + group;
                const u64 b = columns[at * 4 + (part_of_k ^ 2)];  // v first
                multiply_bits(d, (u32)upper[part], (u32)lower[part], (u32)(upper[part] >> 32),
                              (u32)(lower[part] >> 32), (u32)b, (u32)(b >> 32));
            }
            #pragma unroll
            for (int e = 0; e < 4; ++e) bits = __funnelshift_l((u32)d[e], bits, 1);
        }
        good[m] = bits;
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
find_runs(const uint4* __restrict__ packed_rows, const uint4* __restrict__ packed_columns,
          i64 row_pitch, i64 column_pitch, int n_rows, int n_columns, i64 offset,
          const int4* __restrict__ probes, int n_probes, const i64* __restrict__ left,
          const i64* __restrict__ right, const int2* __restrict__ bounds, int depth,
          int tolerance, i64 least, int4* out, u64* count, u64 capacity) {
    extern __shared__ __align__(16) uint4 slots[];
    const Block rows{packed_rows, row_pitch, (int)blockIdx.y * IBD_SIDE};
    const Block columns{packed_columns, column_pitch, (int)blockIdx.x * IBD_SIDE};
    if (rows.first >= columns.first + IBD_SIDE - 1 + offset) return;
    const Tables tables{probes, left,  right, bounds, depth,
                        tolerance, least, out,   count,  capacity};
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / WARPS_A_SIDE * IBD_WARP_SIDE;
    const int warp_column = warp % WARPS_A_SIDE * IBD_WARP_SIDE;
    const int own_row = warp_row + lane / 4, own_column = warp_column + lane % 4 * 2;
    u32* queue = reinterpret_cast<u32*>(slots + IBD_STAGES * SLOT_CHUNKS) + warp * IBD_QUEUE;
    int queued = 0;
    u32 wanted[ROW_TILES], before[ROW_TILES] = {};
    #pragma unroll
    for (int m = 0; m < ROW_TILES; ++m) {
        wanted[m] = 0;
        for (int v = 0; v < 32; ++v) {
            const int i = rows.first + own_row + 16 * m + v % 4 / 2 * 8;
            const int j = columns.first + own_column + v / 4 * 8 + v % 2;
            if (i < n_rows && j < n_columns && i < j + offset) wanted[m] |= 0x80000000u >> v;
        }
    }
    auto load = [&](int p) {
        if (p < n_probes) {
            uint4* slot = slots + p % IBD_STAGES * SLOT_CHUNKS;
            const int window = probes[p].x;
            load_operand(slot, rows, window);
            load_operand(slot + OPERAND_CHUNKS, columns, window);
        }
        commit_copies();
    };
    for (int p = 0; p < IBD_STAGES - 1; ++p) load(p);
    for (int p = 0; p < n_probes; ++p) {
        wait_copies<IBD_STAGES - 2>();
        __syncthreads();
        load(p + IBD_STAGES - 1);
        u32 good[ROW_TILES];
        answer(slots + p % IBD_STAGES * SLOT_CHUNKS, warp_row, warp_column, lane, tolerance, good);
        const u32 always = depth == 1 ? EVERYONE : 0, carried = probes[p].w ? 0 : EVERYONE;
        #pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            u32 hits = good[m] & wanted[m] & ((before[m] & carried) | always);
            before[m] = good[m];
            while (true) {
                const u32 voters = __ballot_sync(EVERYONE, hits != 0);
                if (!voters) break;
                if (hits) {
                    const int v = __clz((int)hits);
                    const int i = own_row + 16 * m + v % 4 / 2 * 8;
                    const int j = own_column + v / 4 * 8 + v % 2;
                    hits &= ~(0x80000000u >> v);
                    queue[queued + __popc(voters & ((1u << lane) - 1))] = (u32)p << 16 | i << 8 | j;
                }
                queued += __popc(voters);
                __syncwarp();
                if (queued >= 32) {
                    queued -= 32;
                    walk(rows, columns, tables, queue[queued + lane]);
                    __syncwarp();
                }
            }
        }
    }
    if (lane < queued) walk(rows, columns, tables, queue[lane]);
}

// 64 bits of a plane from a site on; zeros behind its last word.
__device__ __forceinline__ u64 bits_at(const u64* plane, i64 row_words, i64 site) {
    const i64 word = site / 64;
    const int shift = (int)(site % 64);
    u64 bits = word < row_words ? plane[word] >> shift : 0;
    if (shift && word + 1 < row_words) bits |= plane[word + 1] << (64 - shift);
    return bits;
}

extern "C" __global__ void __launch_bounds__(PACK_THREADS)
pack_windows(const u64* __restrict__ words, int n_planes, i64 row_words, i64 n_people,
             const i64* __restrict__ first, const i64* __restrict__ n_sites, int n_windows,
             u64* __restrict__ packed, i64 pitch, i64 first_person) {
    const i64 at = (i64)blockIdx.x * PACK_THREADS + threadIdx.x;
    const i64 person = at / (n_windows * PARTS);
    if (person >= n_people) return;
    const int window = (int)(at % (n_windows * PARTS)) / PARTS, part = (int)(at % PARTS);
    const u64* own = words + person * n_planes * row_words;
    u64* to = packed + (((i64)window * PARTS + part) * pitch + first_person + person) * 4;
    #pragma unroll
    for (int word = 0; word < 2; ++word) {
        const i64 done = part * PART_SITES + word * 64, left = n_sites[window] - done;
        const i64 site = first[window] + done;
        u64 z = 0, v = 0;
        if (left > 0) {
            u64 valid = left >= 64 ? ~0ull : (1ull << left) - 1;
            if (n_planes > 2) valid &= bits_at(own + 2 * row_words, row_words, site);
            z = valid & ~bits_at(own, row_words, site);
            v = valid & bits_at(own + row_words, row_words, site);
        }
        to[word] = z;
        to[2 + word] = v;
    }
}
