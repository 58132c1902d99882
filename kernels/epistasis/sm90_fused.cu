// sm90_fused: tables and bounds of triples on Hopper's tensor cores where scoring dominates:
// thousands of samples. sm90_deep.cu is for more samples, and for pairs.
//
// Formula   counts of (g of x, s of y, t of z), g, s, t in {0, 1}, in both classes: popcounts of
//           ANDed planes, compacted to the samples with x in g (EPIClear, section 3.2), then a bound
//           of each table (scoring.cuh). Instruction wgmma.mma_async m64n64k256 .b1 .and.popc,
//           sm_90a. Two stored states only.
// Shapes    as in sm90_deep.cu, without scratch.
// Threads   7 warpgroups: two counters, 32 sites of y each; four that score; a producer. Counts pass
//           through shared memory, so that sixteen warps score while the next x is counted.
//           Persistent.
// Counts    of a subtile, 32 sites of y: [8 sites of y][8 sites of z][even or odd z][state of x][lane].
//           Counters hold those of the first part of the next x in registers until the subtile is free.
// Scoring   As few registers as possible, so that a warp can have many cells under way: the first
//           bounds of a subtile's triples come first, and counts are read again for the few that pass.
// Shared    slots of operands (sm90_mainloop.cuh); counts of both subtiles; two sets of margins of each
//           subtile, made by its counter: the barriers of its counts also say when they are there, and
//           when they are free.
// Overflow  as in sm90_deep.cu, with SPLIT_ACCUMULATORS = 0 alone.
//
// Compile with the parameters of sm90_mainloop.cuh.

#define NARROW 1  // instructions of 64 columns, as wider ones do not fit 72 registers a thread
#include "scoring.cuh"
#include "sm90_mainloop.cuh"

#if !defined(LAUNCH_Z_SITES) || !defined(LAUNCH_THREADS) || !defined(LAUNCH_SHARED)
#error "LAUNCH_Z_SITES ... LAUNCH_SHARED come from epistasis/scan_plan.py"
#endif

constexpr int SUBTILES = 2, COUNTER_WARPS = 4 * SUBTILES, SCORER_WARPS = 16;
constexpr int THREADS = 7 * WARPGROUP;
// Launched with 72 registers a thread, which suffice to score.
constexpr int PRODUCER_REGISTERS = 24, COUNTER_REGISTERS = 96;
constexpr int Z_SITES = LAUNCH_Z_SITES, Y_SITES = TILE_SITES / SUBTILES;
constexpr int N_ACC = Z_SITES;                     // 64 rows x 2 Z_SITES columns / 128 threads
constexpr int PAIRS = Z_SITES / 4;                 // of a thread that counts
constexpr int TABLE_Z = 64, TABLE_PAIRS = TABLE_Z / 4;
constexpr int TRIPLES = 4 * PAIRS / SCORER_WARPS;  // of a thread that scores, in a subtile
static_assert(TRIPLES % 2 == 0, "the first one of each scorer is of an even site of z");
constexpr int SUBTILE_WORDS = ORDER == 3 ? 4 * PAIRS * 2 * CELLS * 32 : 0;
constexpr int MARGIN_COUNTS = ORDER == 3 ? Y_SITES * MARGINS_Y + Z_SITES * MARGINS_Z : 0;
static_assert(!SPLIT_ACCUMULATORS && STATES == 2 && X_STATES == 2 && COLUMN_STATES == 2 && (ORDER == 3 || TABLE) && !QUADS,
              "choose_core in epistasis/scan_plan.py takes another core");
static_assert(THREADS == LAUNCH_THREADS && (Z_SITES == 64 || (Z_SITES == 32 && ORDER == 3)) &&
              1023 + STAGES * SLOT_BYTES<Z_SITES> + SUBTILES * SUBTILE_WORDS * 4 +
                      2 * SUBTILES * MARGIN_COUNTS * (int)sizeof(Count) + Slots::BARRIER_BYTES +
                      2 * SUBTILES * 8
                  <= LAUNCH_SHARED,
              "scan_shape in epistasis/scan_plan.py is for another kernel");

// Behind the margins of a site: what x and it say about the phenotype (OFFSETS).
constexpr int KNOWN_Y = STATES * STATES + 2 * STATES + 1, KNOWN_Z = STATES * STATES + STATES;
static_assert(KNOWN_Y < MARGINS_Y && KNOWN_Z < MARGINS_Z, "MARGINS in epistasis/scan_plan.py");
__device__ __forceinline__ float& known_in(const Count* at) {
    return *reinterpret_cast<float*>(const_cast<Count*>(at));
}
// Counts of combination `pair` (group of 8 sites of z, even or odd) of a thread that counted.
__device__ __forceinline__ Counts counts_of(const int (&acc)[N_ACC], int pair) {
    Counts c;
    #pragma unroll
    for (int cell = 0; cell < CELLS; ++cell)
        c.word[cell] = acc[(pair / 2 * 2 + cell % 2) * 4 + pair % 2 + cell / 2 * 2];
    return c;
}
// Index of sites (y, z) in the pair table of a tile and 64 sites of z.
__device__ __forceinline__ int table_index(int y, int z) {
    return y / 8 * TABLE_PAIRS + z / 8 * 2 + z % 2;
}

#if ORDER == 2
#include "pair_counts.cuh"
#include "information.cuh"
#endif

// Counts and margins of both subtiles in shared memory, and their mbarriers.
struct Subtiles {
    u32* counts;
    Count* margins;
    u32 counted, scored;

    __device__ __forceinline__ Subtiles(u8* from)
        : counts(reinterpret_cast<u32*>(from)),
          margins(reinterpret_cast<Count*>(counts + SUBTILES * SUBTILE_WORDS)) {
        counted = (u32)__cvta_generic_to_shared(margins + 2 * SUBTILES * MARGIN_COUNTS);
        scored = counted + SUBTILES * 8;
    }
    static constexpr int BARRIER_BYTES = 2 * SUBTILES * 8;
    // Called by one thread before cluster_sync.
    __device__ __forceinline__ void init() const {
        for (int subtile = 0; subtile < SUBTILES; ++subtile) {
            barrier_init(counted + 8 * subtile, COUNTER_WARPS / SUBTILES);
            barrier_init(scored + 8 * subtile, SCORER_WARPS);
        }
    }
    __device__ __forceinline__ u32* counts_of(int subtile) const { return counts + subtile * SUBTILE_WORDS; }
    __device__ __forceinline__ Count* margins_of(int subtile, int set) const {
        return margins + (subtile * 2 + set) * MARGIN_COUNTS;
    }
};

#if ORDER == 3
// A counter's warp: counts of one subtile of an item with all its x, and their margins.
__device__ __forceinline__ void count_item(Mainloop<Z_SITES>& mainloop, Ring<2>& turn, int& parity,
                                           const Subtiles& subtiles, int subtile, int warp, int lane,
                                           int rank, int2 range, int first_y, int first_z,
                                           int x_first, int padded_sites, const int* segments,
                                           const u32* xy, const Scan& scan) {
    int acc[N_ACC];
    MarginMaker<Z_SITES, Y_SITES> maker(threadIdx.x % WARPGROUP, first_y, first_z, scan);
    float known = 0.0f;  // of x and the site of this thread
    auto load = [&](int x) {
        maker.load(xy, x, padded_sites, scan);
        if (OFFSETS) known = known_of(scan, x_first + x, maker.site);
    };
    load(range.x);
    for (int x = range.x; x < range.y; ++x) {
        Count* margins_y = subtiles.margins_of(subtile, turn.slot);
        Count* margins_z = margins_y + Y_SITES * MARGINS_Y;
        turn.advance();
        maker.make(x_first + x, scan, margins_y, margins_z);
        if (OFFSETS)
            known_in(maker.of_y ? margins_y + maker.at * MARGINS_Y + KNOWN_Y
                                : margins_z + maker.at * MARGINS_Z + KNOWN_Z) = known;
        if (x + 1 < range.y) load(x + 1);
        const int* ends = segments + (i64)x * (SEGMENTS + 1) + 1;
        u32* own = subtiles.counts_of(subtile) + warp % 4 * (PAIRS * 2 * CELLS * 32);
        mainloop.start(ends[SEGMENTS - 1]);
        #pragma unroll 1
        for (int part = 0; part < 2; ++part) {
            mainloop.count<0, N_ACC>(acc, ends + 2 * part);
            if (part == 0) barrier_wait(subtiles.scored + 8 * subtile, parity);
            const int g = stored_state(part);
            #pragma unroll
            for (int pair = 0; pair < PAIRS; ++pair)
                write_counts(own + g * (CELLS * 32), 2 * pair, lane, counts_of(acc, pair));
        }
        parity ^= 1;
        __syncwarp();
        if (lane == 0) barrier_arrive(subtiles.counted + 8 * subtile, rank);
    }
}

// A scorer's warp: its triples of an item with all its x.
__device__ __forceinline__ void score_item(Ring<2>& turn, int& parity, const Subtiles& subtiles,
                                           int scorer, int lane, int rank, int2 range, int first_y,
                                           int first_z, int x_first, int padded_sites,
                                           const u32* yz, const Scan& scan) {
    constexpr int SUBTILE_TABLE = 4 * TABLE_PAIRS * CELLS * 32;  // words of the pair table of a subtile
    const Lines lines = scan.lines;
    const float need = scan.need;
    const int first = scorer * TRIPLES;  // of its triples in a subtile
    const int y_group = first / PAIRS, first_pair = first % PAIRS;
    // Sites of a thread within a subtile and an item: of y, and of z in its k-th triple.
    const int y = y_group * 8 + lane / 4;
    auto z_of = [&](int k) { return first_pair / 2 * 8 + lane % 4 * 2 + k / 2 * 8 + k % 2; };
    // Of its first triple in the first subtile.
    const u32* tables =
        yz + table_at(first_y / TILE_SITES, first_z / TABLE_Z * TABLE_Z, padded_sites) +
        (table_index(y_group * 8, first_z % TABLE_Z) + first_pair) * (CELLS * 32);
    Counts next = read_counts(tables, 0, lane);
    for (int x = range.x; x < range.y; ++x) {
        #pragma unroll 1
        for (int subtile = 0; subtile < SUBTILES; ++subtile) {
            const u32* own = subtiles.counts_of(subtile);
            const u32* table = tables + subtile * SUBTILE_TABLE;
            const u32* table_after = tables + (subtile ^ 1) * SUBTILE_TABLE;
            const Count* margins_y = subtiles.margins_of(subtile, turn.slot) + y * MARGINS_Y;
            const Count* margins_z = subtiles.margins_of(subtile, turn.slot) + Y_SITES * MARGINS_Y;
            const int site_y = first_y + subtile * Y_SITES + y;
            barrier_wait(subtiles.counted + 8 * subtile, parity);
            const MarginsY my = read_margins_y(margins_y);
            const float known_y = OFFSETS ? known_in(margins_y + KNOWN_Y) : 0.0f;
            const float* known_yz = scan.known;  // of y and z in the first triple
            if (OFFSETS) known_yz += (i64)site_y * scan.known_pitch + first_z + z_of(0);
            // Calls use(counts, margins of z, what the bound has to reach) for the k-th triple.
            auto with_triple = [&](int k, const Counts& of_yz, auto use) {
                const Count* of_z = margins_z + z_of(k) * MARGINS_Z;
                Counts c[3] = {read_counts(own, 2 * (first + k), lane),
                               read_counts(own, 2 * (first + k) + 1, lane), of_yz};
                subtract_states(c);
                float least = need;
                if (OFFSETS)
                    least += fmaxf(known_yz[k / 2 * 8 + k % 2],
                                   fmaxf(known_y, known_in(of_z + KNOWN_Z)));
                use(c, read_margins_z(of_z), least);
            };
            u32 passing = 0;  // a bit of each triple, the lowest of the last one
            #pragma unroll
            for (int k = 0; k < TRIPLES; ++k)
                with_triple(k, next, [&](const Counts(&c)[3], const MarginsZ& mz, float least) {
                    next = k + 1 < TRIPLES ? read_counts(table, k + 1, lane)
                                           : read_counts(table_after, 0, lane);
                    passing += passing + any_may_pass(c, my, mz, lines, least);
                });
            #pragma unroll 1
            for (; passing; passing &= passing - 1) {
                const int k = TRIPLES - __ffs(passing);
                with_triple(k, read_counts(table, k, lane),
                            [&](const Counts(&c)[3], const MarginsZ& mz, float least) {
                                record_triple(c, my, mz, x_first + x, site_y, first_z + z_of(k),
                                              lines, least, scan);
                            });
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(subtiles.scored + 8 * subtile, rank);
        }
        parity ^= 1;
        turn.advance();
    }
}
#endif

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int4* __restrict__ items, int n_items,
               int x_first, int first_site, int padded_sites, const u32* __restrict__ xy,
               u32* yz, u32*, u32* progress, const Scan* __restrict__ given) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    const Subtiles subtiles(aligned + STAGES * SLOT_BYTES<Z_SITES>);
    const Slots slots((u32)__cvta_generic_to_shared(aligned), subtiles.counted + Subtiles::BARRIER_BYTES);
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        subtiles.init();
        slots.init(COUNTER_WARPS);
    }
    cluster_sync();

    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const Scan& scan = *given;
    Ring<2> turn;  // the two sets of margins
    if (warp < COUNTER_WARPS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(COUNTER_REGISTERS));
        const int subtile = warp / 4;
        Mainloop<Z_SITES> mainloop(slots, subtile, lane);
        int parity = 1;
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const int tile_y = items[i].x * CLUSTER + rank, first_z = items[i].y * Z_SITES;
#if ORDER == 3
            const int2 range = operands_of(items[i], x_first);
            if (range.x < range.y)
                count_item(mainloop, turn, parity, subtiles, subtile, warp, lane, rank, range,
                           tile_y * TILE_SITES + subtile * Y_SITES, first_z, x_first, padded_sites,
                           segments, xy, scan);
#else
            int acc[N_ACC];
            u32* table = yz + table_at(tile_y, first_z, padded_sites) + warp * (PAIRS * CELLS * 32);
            mainloop.start(segments[2]);
            mainloop.count<0, N_ACC>(acc, segments + 1);
            #pragma unroll
            for (int pair = 0; pair < PAIRS; ++pair)
                write_counts(table, pair, lane, counts_of(acc, pair));
#endif
        }
    } else if (warp < COUNTER_WARPS + SCORER_WARPS) {
#if ORDER == 3
        int parity = 0;
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER)
            score_item(turn, parity, subtiles, warp - COUNTER_WARPS, lane, rank,
                       operands_of(items[i], x_first), (items[i].x * CLUSTER + rank) * TILE_SITES,
                       items[i].y * Z_SITES, x_first, padded_sites, yz, scan);
#endif
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(PRODUCER_REGISTERS));
        if (warp == COUNTER_WARPS + SCORER_WARPS && lane == 0)
            produce<Z_SITES>(slots, packed, stages, items, n_items, x_first, first_site,
                                padded_sites, progress, scan);
    }
    // no CTA may exit while another one of the cluster can still write to its shared memory
    cluster_sync();
}
