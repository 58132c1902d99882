// epoch: forces of one epoch of UMAP, and the move of all points by them, in integers.
//
// add_forces
// Formula   sums[i] += sum over active edges (i, j) of
//               -2 clip(A(d2) (y_i - y_j)) + sum over draws r of clip(R(d2) (y_i - y_r))
//           `maps/umap_epoch_cpu.py` has the formulas, units and limits; each operation here is
//           one of its own.
// Source    McInnes, Healy and Melville 2018, section 4.2; SplitMix64 (Steele et al. 2014).
// Shapes    points int2 (n); heads, ends int32 (n_edges), edges in the order of their heads; shares
//           uint32 (n_edges); attraction, repulsion int64 (TABLE_LENGTH); sums int64 (n, 2).
// Threads   UMAP_THREADS. A warp walks over runs of `run` edges, whoever's they are: a point of many
//           edges slows no thread. Few edges are active in an epoch, so warps collect active ones in
//           a queue and work on 32 at a time. Lanes that hold edges of one point add them up (a
//           segmented scan), and its last one adds to the sum in memory.
// Shared    both tables, and a queue of each warp.
// Overflow  32 lanes add at most 32 (2 + DRAWS) FARTHEST in int32: DRAWS <= 13. Sums are int64.
//           Sums of integers do not depend on the order of atomic additions.
//
// move_points   points += sums * step, rounded, within BOUND; clears the sums. One thread a
//           coordinate.
//
// Compile with -DDRAWS=0 ... 13.

#include "tables.cuh"

#if !defined(DRAWS)
#error "DRAWS comes from the launch"
#endif

constexpr int WARPS = UMAP_THREADS / 32;
// thread blocks that a multiprocessor holds, by its shared memory
#if __CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
constexpr int RESIDENT = 3;
#else
constexpr int RESIDENT = __CUDA_ARCH__ < 800 ? 1 : 2;
#endif
static_assert(32ll * (2 + DRAWS) * FARTHEST < 1ll << 31, "a warp's sums fit int32");

__device__ __forceinline__ u64 mix(u64 value) {
    value += 0x9E3779B97F4A7C15ull;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

// Force times difference in units of the map, rounded towards 0.
__device__ __forceinline__ int clip(i64 product) {
    const i64 value = (product + ((product >> 63) & ((1 << FORCE_BITS) - 1))) >> FORCE_BITS;
    return (int)(value < -FARTHEST ? -FARTHEST : value > FARTHEST ? FARTHEST : value);
}

// Force of a table on a point at `own` from one at `other`; none from the same place.
__device__ __forceinline__ int2 force(const i64* table, int2 own, int2 other) {
    const int dx = own.x - other.x, dy = own.y - other.y;
    const u64 squared = squared_length(dx, dy);
    if (squared == 0) return int2{0, 0};
    const i64 value = value_at(table, squared);
    return int2{clip(value * dx), clip(value * dy)};
}

struct Tables {
    i64 attraction[TABLE_LENGTH], repulsion[TABLE_LENGTH];
};

// Add the forces of one edge a lane to the sums of their heads; edges of a lane from `count` on are
// none. Heads rise with the lane.
__device__ __forceinline__ void add_edges(const int2* __restrict__ points,
                                          const int* __restrict__ heads,
                                          const int* __restrict__ ends, const Tables& tables,
                                          u64* sums, int edge, int count, int n, u64 drawn) {
    const int lane = threadIdx.x & 31;
    int head = -1, x = 0, y = 0;
    if (lane < count) {
        head = heads[edge];
        int2 others[DRAWS + 1];
        others[DRAWS] = points[ends[edge]];
        u64 number = mix(drawn ^ (u64)edge);
        #pragma unroll
        for (int draw = 0; draw < DRAWS; ++draw) {
            number = mix(number);
            others[draw] = points[(u32)((number >> 32) * (u32)n >> 32)];
        }
        const int2 own = points[head];
        const int2 pull = force(tables.attraction, own, others[DRAWS]);
        x = -2 * pull.x;
        y = -2 * pull.y;
        #pragma unroll
        for (int draw = 0; draw < DRAWS; ++draw) {
            const int2 push = force(tables.repulsion, own, others[draw]);
            x += push.x;
            y += push.y;
        }
    }
    add_to_heads(sums, head, x, y);
}

extern "C" __global__ void __launch_bounds__(UMAP_THREADS, RESIDENT)
    add_forces(const int2* __restrict__ points, const int* __restrict__ heads,
               const int* __restrict__ ends, const u32* __restrict__ shares,
               const i64* __restrict__ attraction, const i64* __restrict__ repulsion, u64* sums,
               i64 n_edges, int n, int run, u32 epoch, u64 seed) {
    __shared__ Tables tables;
    __shared__ int queues[WARPS][64];
    for (int k = threadIdx.x; k < TABLE_LENGTH; k += UMAP_THREADS) {
        tables.attraction[k] = attraction[k];
        tables.repulsion[k] = repulsion[k];
    }
    __syncthreads();
    const int lane = threadIdx.x & 31;
    int* queue = queues[threadIdx.x / 32];
    const u64 drawn = mix(seed ^ mix((u64)epoch));
    const i64 stride = (i64)gridDim.x * WARPS * run;
    int waiting = 0;
    for (i64 first = ((i64)blockIdx.x * WARPS + threadIdx.x / 32) * run; first < n_edges;
         first += stride) {
        const i64 last = first + run < n_edges ? first + run : n_edges;
        for (i64 at = first; at < last; at += 32) {
            const u32 share = at + lane < last ? shares[at + lane] : 0;
            const bool active = (epoch + 1) * share >> SHARE_BITS != epoch * share >> SHARE_BITS;
            const u32 all = __ballot_sync(ALL, active);
            if (active) queue[waiting + __popc(all & ((1u << lane) - 1))] = (int)at + lane;
            waiting += __popc(all);
            __syncwarp();
            if (waiting < 32) continue;
            add_edges(points, heads, ends, tables, sums, queue[lane], 32, n, drawn);
            const int left = queue[32 + lane];
            __syncwarp();
            queue[lane] = left;
            waiting -= 32;
            __syncwarp();
        }
    }
    if (waiting) add_edges(points, heads, ends, tables, sums, queue[lane], waiting, n, drawn);
}

extern "C" __global__ void __launch_bounds__(UMAP_THREADS)
    move_points(int* points, i64* sums, i64 n_coordinates, i64 step) {
    const i64 k = (i64)blockIdx.x * UMAP_THREADS + threadIdx.x;
    if (k >= n_coordinates) return;
    const i64 to = points[k] + ((sums[k] * step + (1ll << (STEP_BITS - 1))) >> STEP_BITS);
    points[k] = (int)(to < -BOUND ? -BOUND : to > BOUND ? BOUND : to);
    sums[k] = 0;
}
