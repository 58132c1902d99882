// sm90_deep: tables and bounds of pairs, and of triples where counting dominates (tens of thousands
// of samples), on Hopper's tensor cores.
//
// Formula   counts of (g of x, s of y, t of z), stored states, in both classes: popcounts of ANDed
//           planes, compacted to the samples with x in g (EPIClear, section 3.2), then a bound of
//           each table (cells.cuh). Instruction wgmma.mma_async m64n128k256 (three states
//           of z: m64n192k256) .b1 .and.popc, sm_90a.
// Shapes    packed[stage][row][chunk] as in common.cuh, rows of all sites from `first_site`, the
//           stages of one operand after those of another (`stages`: int (operands + 1)); an operand
//           is one x, or two (parts.cuh); segments int (operands, SEGMENTS + 1); items int4
//           (n_items): CLUSTER tiles of y, Z_SITES of z, range of operands of the batch; xy (n_x,
//           padded sites, XY_CELLS) counts of x with every site; yz pair tables (table_at;
//           written if TABLE); scratch (thread blocks, BUFFERS, TILES, TILE_WORDS).
// Threads   4 warpgroups, warp-specialised. The first STATES are consumers, 64 rows of y each; of
//           the other warps the last one is the producer, and the rest run the epilogue of the
//           previous operand. Counts pass from consumers to epilogue through `scratch`, in L2 and
//           global memory: the tensor cores keep running during the epilogue, and no thread holds
//           both accumulators and cells. Persistent.
// Counts    One tile, of one part of an operand: [8 rows][8 sites of z][lane][state of z][2], in
//           the order of the accumulators in the lanes; a pair table likewise. SPLIT_ACCUMULATORS: a tile of the
//           controls, then one of the cases; two first sites: without running sums.
// Shared    slots of operands (sm90_mainloop.cuh); triples: two sets of margins.
// Overflow  counts below 2^16 per class: at most 65 535 samples in a pair of stored states of two
//           sites. SPLIT_ACCUMULATORS: below 2^23, the classes (cells.cuh). RESIDUALS: sums of levels below 2^31: at
//           most 8 421 504 samples.
//
// Compile with the parameters of sm90_mainloop.cuh.

#include "sm90_mainloop.cuh"

#if !defined(LAUNCH_Z_SITES) || !defined(LAUNCH_THREADS) || !defined(LAUNCH_SHARED) || \
    !defined(LAUNCH_SCRATCH)
#error "LAUNCH_Z_SITES ... LAUNCH_SCRATCH come from epistasis/scan_plan.py"
#endif

constexpr int BUFFERS = 2;
constexpr int Z_SITES = LAUNCH_Z_SITES, COLUMNS = Z_SITES * COLUMN_STATES;
constexpr int ROWS = TILE_SITES * STATES, TILE_WORDS = ROWS * COLUMNS, COLUMN_BLOCKS = COLUMNS / 8;
constexpr int N_ACC = COLUMNS / 2;                  // 64 x COLUMNS / 128 threads
constexpr int PARTS = ORDER == 3 ? PARTS_OF_X : 1;  // of one operand
constexpr int TILES = PARTS * WORDS;                // of one operand
constexpr int ENDS = RESIDUALS ? SEGMENTS : 2 * PARTS;  // of its segments
constexpr int CONSUMER_WARPS = 4 * STATES, EPILOGUE_WARPS = 15 - CONSUMER_WARPS;
constexpr int THREADS = 4 * WARPGROUP;
// Launched with 128 registers per thread, which suffice for 96 accumulators (three states).
constexpr int CONSUMER_REGISTERS = 160, EPILOGUE_REGISTERS = 96;
constexpr int MARGIN_COUNTS = ORDER == 3 ? TILE_SITES * MARGINS_Y + Z_SITES * MARGINS_Z : 0;
static_assert(COLUMNS == 256 || COLUMNS == 192, "the widths of multiply_step");
// Words of scratch of a thread block: counts; QUADS: also a value of each pair of sites (`reaches`), two
// of a lane and a group of 8 by 8 sites.
constexpr int COUNT_TILES = BUFFERS * TILES * TILE_WORDS;
constexpr int SCRATCH_WORDS = COUNT_TILES + (QUADS && ORDER == 3 ? TILE_SITES * Z_SITES : 0);
static_assert(THREADS == LAUNCH_THREADS && SCRATCH_WORDS == LAUNCH_SCRATCH &&
              1023 + STAGES * SLOT_BYTES<Z_SITES> + 2 * MARGIN_COUNTS * (int)sizeof(Count) +
                      Slots::BARRIER_BYTES + 2 * BUFFERS * 8
                  <= LAUNCH_SHARED,
              "scan_shape in epistasis/scan_plan.py is for another kernel");

// A lane's part of 8 sites of y in state s and 8 sites of z: LANE_WORDS of a tile, the states
// of z one after the other, two sites of z each.
constexpr int LANE_WORDS = 2 * COLUMN_STATES;
__device__ __forceinline__ int tile_at(int y_group, int s, int z_group, int lane) {
    return (((y_group * STATES + s) * (Z_SITES / 8) + z_group) * 32 + lane) * LANE_WORDS;
}
// Written and read within one CTA: cached in L2 only, because L1 is small.
__device__ __forceinline__ void write_tile(const int (&acc)[N_ACC], u32* tile, int warp, int lane) {
    u32* to = tile + warp * 2 * COLUMNS * 8 + lane * LANE_WORDS;
    #pragma unroll
    for (int half = 0; half < 2; ++half)
        #pragma unroll
        for (int n = 0; n < COLUMN_BLOCKS; ++n) {
            u32* at = to + (half * COLUMN_BLOCKS + n / COLUMN_STATES * COLUMN_STATES) * 64
                    + n % COLUMN_STATES * 2;
            const int *a = acc + 4 * n + 2 * half, *b = a + 4;
            if (COLUMN_STATES == 3)
                __stcg(reinterpret_cast<uint2*>(at), make_uint2(a[0], a[1]));
            else if (n % 2 == 0)
                __stcg(reinterpret_cast<uint4*>(at), make_uint4(a[0], a[1], b[0], b[1]));
        }
}
// One word of the counts, at c[..].word[first].
__device__ __forceinline__ void read_words(const u32* tile, int y_group, int z_group, int lane,
                                           int first, Counts (&c)[2]) {
    #pragma unroll
    for (int s = 0; s < STATES; ++s) {
        const u32* from = tile + tile_at(y_group, s, z_group, lane);
        u32 word[LANE_WORDS];
        if (COLUMN_STATES == 2) {
            const uint4 four = __ldcg(reinterpret_cast<const uint4*>(from));
            word[0] = four.x;
            word[1] = four.y;
            word[2] = four.z;
            word[3] = four.w;
        } else {
            #pragma unroll
            for (int t = 0; t < COLUMN_STATES; ++t) {
                const uint2 two = __ldcg(reinterpret_cast<const uint2*>(from) + t);
                word[2 * t] = two.x;
                word[2 * t + 1] = two.y;
            }
        }
        #pragma unroll
        for (int t = 0; t < COLUMN_STATES; ++t) {
            c[0].word[first + s * COLUMN_STATES + t] = word[2 * t];
            c[1].word[first + s * COLUMN_STATES + t] = word[2 * t + 1];
        }
    }
}
__device__ __forceinline__ void read_tile(const u32* tile, int y_group, int z_group, int lane,
                                          Counts (&c)[2]) {
    #pragma unroll
    for (int w = 0; w < WORDS; ++w)
        read_words(tile + w * TILE_WORDS, y_group, z_group, lane, w * CELLS, c);
}

#if ORDER == 3
// A compile-time constant as an argument.
template <int N>
struct Number {
    static constexpr int VALUE = N;
};
// Counts with site WHICH of an operand in its `index`-th state: SPLIT_ACCUMULATORS the sum over the parts with
// this state, else from the sums of parts.cuh.
template <int WHICH>
__device__ __forceinline__ void read_state(const u32* tile, int index, int y_group, int z_group,
                                           int lane, Counts (&c)[2]) {
    auto read = [&](int part, Counts (&to)[2]) {
        read_tile(tile + part * WORDS * TILE_WORDS, y_group, z_group, lane, to);
    };
    const int state = stored_state(index);
    if (OPERAND_SITES == 1) return read(index, c);
    if (SPLIT_ACCUMULATORS) {
        bool first = true;
        #pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            if (state_of_part(part, WHICH) != state) continue;
            Counts more[2];
            read(part, more);
            #pragma unroll
            for (int i = 0; i < WORDS * CELLS; ++i)
                #pragma unroll
                for (int e = 0; e < 2; ++e)
                    c[e].word[i] = (first ? 0 : c[e].word[i]) + more[e].word[i];
            first = false;
        }
        return;
    }
    if (state == 2) return read(WHICH, c);
    if (WHICH == 0) return read(ALONE + PARTS_IN_A_ROW * state + 2, c);
    Counts less[2], more[2];
    read(ALONE + PARTS_IN_A_ROW * state + 3, c);
    read(ALONE + PARTS_IN_A_ROW * state + 1, less);
    read(ALONE + PARTS_IN_A_ROW - PARTS_IN_A_ROW * state, more);
    #pragma unroll
    for (int i = 0; i < CELLS; ++i)
        #pragma unroll
        for (int e = 0; e < 2; ++e) c[e].word[i] += more[e].word[i] - less[e].word[i];
}

// Scores the triples of x and 8 sites of y with some groups of z; tile: TILES of them.
template <int WHICH>
__device__ __forceinline__ void score_triples(const u32* tile, const u32* yz, int y_group,
                                              int z_group, int z_stop, int lane,
                                              const Count* margins_y, const Count* margins_z, int x,
                                              int first_y, int first_z, const Scan& scan, int given,
                                              float2* values) {
    const Lines lines = scan.lines;
    const float need = scan.need;
    const int y = y_group * 8 + lane / 4;
    const MarginsY my = read_margins_y(margins_y + y * MARGINS_Y);
    const float* of_x = OFFSETS ? scan.known + (i64)x * scan.known_pitch : nullptr;
    const float* of_y = OFFSETS ? scan.known + (i64)(first_y + y) * scan.known_pitch : nullptr;
    const float xy = OFFSETS ? of_x[first_y + y] : 0.0f;
    // Where registers allow, the counts of the next sites are loaded while these are scored.
    constexpr bool AHEAD = X_STATES == 2 && !SPLIT_ACCUMULATORS && (OPERAND_SITES == 1 || WHICH == 0);
    Counts next[X_STATES + 1][2];
    auto read = [&](int group) {
        read_tile(yz, y_group, group, lane, next[X_STATES]);
        #pragma unroll
        for (int index = 0; index < X_STATES; ++index)
            read_state<WHICH>(tile, index, y_group, group, lane, next[index]);
    };
    if (AHEAD) read(z_group);
    #pragma unroll 1
    for (; z_group < z_stop; ++z_group) {
        const int z = z_group * 8 + lane % 4 * 2;
        const MarginsZ mz[2] = {read_margins_z(margins_z + z * MARGINS_Z),
                                read_margins_z(margins_z + (z + 1) * MARGINS_Z)};
        Counts counts[X_STATES + 1][2];
        if (!AHEAD) read(z_group);
        #pragma unroll
        for (int index = 0; index <= X_STATES; ++index)
            #pragma unroll
            for (int e = 0; e < 2; ++e) counts[index][e] = next[index][e];
        if (AHEAD) read(min(z_group + 1, z_stop - 1));
        CloseBound bound[2];
        auto add = [&](int g, const Counts (&c)[2]) {
            #pragma unroll
            for (int e = 0; e < 2; ++e)
                visit_x(g, c[e], my, mz[e],
                        [&](int, Count n) { bound[e].add(n, lines); });
        };
        Counts(&rest)[2] = counts[X_STATES];
        #pragma unroll
        for (int index = 0; index < X_STATES; ++index) {
            #pragma unroll
            for (int i = 0; i < WORDS * CELLS; ++i) {
                rest[0].word[i] -= counts[index][0].word[i];
                rest[1].word[i] -= counts[index][1].word[i];
            }
            if (stored_state(index) < 2) add(stored_state(index), counts[index]);
        }
        add(2, rest);
        float least[2] = {need, need};
        if (OFFSETS) {
            const int k = first_z + z;
            const float2 xz = *reinterpret_cast<const float2*>(of_x + k);
            const float2 yz = *reinterpret_cast<const float2*>(of_y + k);
            least[0] += fmaxf(xy, fmaxf(xz.x, yz.x));
            least[1] += fmaxf(xy, fmaxf(xz.y, yz.y));
        }
        float2* sums = values + (y_group * (Z_SITES / 8) + z_group) * 32 + lane;
        float2 sum = QUADS && given > 0 ? *sums : make_float2(0.0f, 0.0f);
        const bool passes[2] = {reaches(bound[0].value(lines), least[0], given, sum.x),
                                reaches(bound[1].value(lines), least[1], given, sum.y)};
        if (QUADS && given < GIVEN - 1) *sums = sum;
        if (!__any_sync(~0u, passes[0] || passes[1])) continue;  // keeps the warp converged
        #pragma unroll 1
        for (int e = 0; e < 2; ++e) {
            if (!(e ? passes[1] : passes[0])) continue;
            u32* record = scan.found.take(x, first_y + y, first_z + z + e);
            if (QUADS || !record) continue;  // count_records counts the cells of quads
            const MarginsZ m = read_margins_z(margins_z + (z + e) * MARGINS_Z);
            Counts whole[2];
            read_tile(yz, y_group, z_group, lane, whole);
            #pragma unroll
            for (int index = 0; index <= X_STATES; ++index) {
                Counts own[2] = {whole[0], whole[1]}, c;
                if (index < X_STATES) read_state<WHICH>(tile, index, y_group, z_group, lane, own);
                #pragma unroll
                for (int i = 0; i < WORDS * CELLS; ++i) {
                    whole[0].word[i] -= own[0].word[i];
                    whole[1].word[i] -= own[1].word[i];
                    c.word[i] = e ? own[1].word[i] : own[0].word[i];
                }
                const int g = index < X_STATES ? stored_state(index) : 2;
                if (g < 2 || index == X_STATES)
                    visit_x(g, c, my, m,
                            [&](int cell, Count n) { write_count(record + cell * COUNT_WORDS, n); });
            }
        }
    }
}
#elif !TABLE
// Scores the pairs of 8 sites of y with some groups of z; tile: TILES of them.
__device__ __forceinline__ void score_pairs(const u32* tile, int y_group, int z_group, int z_stop,
                                            int lane, int first_y, int first_z, const Scan& scan) {
    const int y = first_y + y_group * 8 + lane / 4;
    Count of_y[STATES], other = all_samples(scan);
    #pragma unroll
    for (int s = 0; s < STATES; ++s) {
        of_y[s] = margin_of(scan, y, s);
        other = other - of_y[s];
    }
    #pragma unroll 1
    for (; z_group < z_stop; ++z_group) {
        const int z = first_z + z_group * 8 + lane % 4 * 2;
        Counts c[2];
        read_tile(tile, y_group, z_group, lane, c);
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            Count cell[STATES][COLUMN_STATES], of_z[COLUMN_STATES];
            unpack(c[e], cell);
            #pragma unroll
            for (int s = 0; s < COLUMN_STATES; ++s) of_z[s] = margin_of(scan, z + e, s);
            float least = scan.need, value;
            if (OFFSETS) least += fmaxf(scan.known[y], scan.known[z + e]);
#if RESIDUALS
            Squares squares;
            visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) { squares.add(n); });
            value = squares.value();
#else
            CloseBound bound;
            visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) { bound.add(n, scan.lines); });
            value = bound.value(scan.lines);
#endif
            if (value < least) continue;
            u32* record = take_pair(scan.found, y, z + e);
            if (record)
                visit_plane(0, cell, of_y, other, of_z,
                            [&](int index, Count n) { write_cell(record, index, n); });
        }
    }
}
#endif

#if ORDER == 2 && TABLE
// Counts of two sites in the pair tables.
__device__ __forceinline__ Counts pair_counts(const u32* tables, int y, int z, int padded_sites) {
    const u32* table = tables + table_at(y / TILE_SITES, z / Z_SITES * Z_SITES, padded_sites);
    Counts c;
    #pragma unroll
    for (int i = 0; i < WORDS * CELLS; ++i)
        c.word[i] = table[i / CELLS * TILE_WORDS
                          + tile_at(y % TILE_SITES / 8, i % CELLS / STATES, z % Z_SITES / 8,
                                    y % 8 * 4 + z % 8 / 2) + i % STATES * 2 + z % 2];
    return c;
}
#include "information.cuh"
#if SPLIT_ACCUMULATORS && !RESIDUALS
#include "pair_sizes.cuh"
#endif
#endif

__device__ __forceinline__ void resize_for_epilogue() {
    if (STATES == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(EPILOGUE_REGISTERS));
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
epistasis_scan(const u8* __restrict__ packed, const int* __restrict__ stages,
               const int* __restrict__ segments, const int4* __restrict__ items, int n_items,
               int x_first, int first_site, int padded_sites, const u32* __restrict__ xy,
               u32* yz, u32* scratch, u32* progress, const __grid_constant__ Scan scan) {
    extern __shared__ u8 shared[];
    u8* aligned = shared + (-(u32)__cvta_generic_to_shared(shared) & 1023);
    Count* margins = reinterpret_cast<Count*>(aligned + STAGES * SLOT_BYTES<Z_SITES>);
    const u32 barriers = (u32)__cvta_generic_to_shared(margins + 2 * MARGIN_COUNTS);
    const Slots slots((u32)__cvta_generic_to_shared(aligned), barriers);
    // mbarriers of the buffers of counts: full, empty
    const u32 counted = barriers + Slots::BARRIER_BYTES, scored = counted + BUFFERS * 8;
    const int rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < BUFFERS; ++i) {
            barrier_init(counted + 8 * i, CONSUMER_WARPS);
            barrier_init(scored + 8 * i, EPILOGUE_WARPS);
        }
        slots.init(CONSUMER_WARPS);
    }
    cluster_sync();

    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    scratch += (i64)blockIdx.x * SCRATCH_WORDS;
    if (warp < CONSUMER_WARPS) {
        if (STATES == 2)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(CONSUMER_REGISTERS));
        Mainloop<Z_SITES> mainloop(slots, warp / 4, lane);
        Ring<BUFFERS> buffer;
        int acc[N_ACC];
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const int2 range = operands_of(items[i], x_first);
            for (int operand = range.x; operand < range.y; ++operand) {
                const int* ends = segments + (i64)operand * (SEGMENTS + 1) + 1;
                mainloop.start(ends[ENDS - 1]);
                #pragma unroll 1
                for (int part = 0; part < TILES; ++part) {
                    if (RESIDUALS) {
                        mainloop.clear<0, N_ACC>(acc);
                        #pragma unroll 1
                        for (int s = part; s < (part ? SEGMENTS : 1); ++s) {
                            #pragma unroll
                            for (int j = 0; j < N_ACC; ++j) acc[j] *= 2;
                            mainloop.advance<0, N_ACC>(acc, ends[s]);
                        }
                    } else if (SPLIT_ACCUMULATORS) {  // a segment
                        mainloop.clear<0, N_ACC>(acc);
                        mainloop.advance<0, N_ACC>(acc, ends[part]);
                    } else if (OPERAND_SITES == 1) {
                        mainloop.count<0, N_ACC>(acc, ends + 2 * part);
                    } else {
                        if (part <= ALONE || part == ALONE + PARTS_IN_A_ROW)
                            mainloop.clear<0, N_ACC>(acc);
                        mainloop.add<0, N_ACC>(acc, ends + 2 * part);
                    }
#if ORDER == 2 && TABLE
                    const int tile_y = items[i].x * CLUSTER + rank;
                    u32* table = yz + table_at(tile_y, items[i].y * Z_SITES, padded_sites);
                    write_tile(acc, table + part * TILE_WORDS, warp, lane);
#else
                    if (part == 0) barrier_wait(scored + 8 * buffer.slot, buffer.parity ^ 1);
                    u32* tile = scratch + (buffer.slot * TILES + part) * TILE_WORDS;
                    write_tile(acc, tile, warp, lane);
#endif
                }
#if !TABLE
                __syncwarp();
                if (lane == 0) barrier_arrive(counted + 8 * buffer.slot, rank);
                buffer.advance();
#endif
            }
        }
    } else if (warp < CONSUMER_WARPS + EPILOGUE_WARPS) {
        resize_for_epilogue();
#if !TABLE
        constexpr int Z_GROUPS = Z_SITES / 8, GROUPS = TILE_SITES / 8 * Z_GROUPS;
        const int scorer = warp - CONSUMER_WARPS;
        const int first_group = GROUPS * scorer / EPILOGUE_WARPS;
        const int last_group = GROUPS * (scorer + 1) / EPILOGUE_WARPS;
        // Calls visit(group of y, group of z, its end) for all groups of sites of this warp.
        auto each_group = [&](auto visit) {
            #pragma unroll 1
            for (int group = first_group; group < last_group;) {
                const int z_group = group % Z_GROUPS;
                const int z_stop = min(Z_GROUPS, z_group + last_group - group);
                visit(group / Z_GROUPS, z_group, z_stop);
                group += z_stop - z_group;
            }
        };
        Ring<BUFFERS> buffer;
        Ring<2> turn;  // the two sets of margins
        for (int i = blockIdx.x / CLUSTER; i < n_items; i += gridDim.x / CLUSTER) {
            const int2 range = operands_of(items[i], x_first);
            const int tile_y = items[i].x * CLUSTER + rank, first_y = tile_y * TILE_SITES;
            const int first_z = items[i].y * Z_SITES;
            for (int operand = range.x; operand < range.y; ++operand) {
                const u32* tile = scratch + buffer.slot * TILES * TILE_WORDS;
#if ORDER == 3
                auto score = [&](auto which) {
                    constexpr int WHICH = decltype(which)::VALUE;
                    const int x = operand * OPERAND_SITES + WHICH, given = given_of(operand);
                    const int site_x = QUADS ? x_of(x_first, operand) : x_first + x;
                    Count* margins_y = margins + turn.slot * MARGIN_COUNTS;
                    Count* margins_z = margins_y + TILE_SITES * MARGINS_Y;
                    turn.advance();
                    for (int k = scorer * 32 + lane; k < TILE_SITES + Z_SITES;
                         k += EPILOGUE_WARPS * 32) {
                        MarginMaker<Z_SITES> maker(k, first_y, first_z, scan);
                        maker.load(xy, x, padded_sites, scan);
                        maker.make(site_x, scan, margins_y, margins_z, given);
                    }
                    asm volatile("bar.sync 1, %0;\n" ::"n"(EPILOGUE_WARPS * 32) : "memory");
                    if (WHICH == 0) barrier_wait(counted + 8 * buffer.slot, buffer.parity);
                    const u32* table = yz + table_at(tile_y, first_z, padded_sites);
                    if (QUADS) table += given * scan.table_words;
                    each_group([&](int y_group, int z_group, int z_stop) {
                        score_triples<WHICH>(tile, table, y_group, z_group, z_stop, lane, margins_y,
                                             margins_z, site_x, first_y, first_z, scan, given,
                                             reinterpret_cast<float2*>(scratch + COUNT_TILES));
                    });
                };
                score(Number<0>());
                if (OPERAND_SITES == 2) score(Number<OPERAND_SITES - 1>());
#else
                barrier_wait(counted + 8 * buffer.slot, buffer.parity);
                each_group([&](int y_group, int z_group, int z_stop) {
                    score_pairs(tile, y_group, z_group, z_stop, lane, first_y, first_z, scan);
                });
#endif
                __syncwarp();
                if (lane == 0) barrier_arrive(scored + 8 * buffer.slot, rank);
                buffer.advance();
            }
        }
#endif
    } else {
        resize_for_epilogue();
        if (lane == 0)
            produce<Z_SITES>(slots, packed, stages, items, n_items, x_first, first_site,
                                padded_sites, progress, scan);
    }
    // no CTA may exit while another one of the cluster can still write to its shared memory
    cluster_sync();
}
