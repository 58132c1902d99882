// density: what densMAP adds to an epoch of UMAP, in integers and single operations of IEEE float64.
//
// Formula   `maps/umap_epoch_cpu.py`, in the order of an epoch:
//           sum_spreads      sums[i] += phi, phi d2 over all edges of i
//           measure_radii    radii and their logarithms; sums over all points; clears `sums`
//           weigh_radii      P and Q of each point, by mean and slope that the host computes
//           add_density      sums[i] += 2 clip(c (y_i - y_j)) over all edges of i
// Source    Narayan, Berger and Cho 2021; umap-learn.
// Shapes    points int2 (n); heads, ends int32 (n_edges), edges in the order of their heads; tables
//           int64 (TABLE_LENGTH); sums int64 (n, 2); near, radii, logs, wanted int64 (n); totals
//           int64 (3); pulls float64 (n, 2).
// Threads   UMAP_THREADS; one an edge or a point.
// Overflow  sums of 2^20 edges of phi and phi d2 are below 2^62 (phi d2 < 2^5 units of the map); of
//           2^20 points, squares of logarithms are below 2^63.

#include "tables.cuh"

extern "C" __global__ void __launch_bounds__(UMAP_THREADS)
    sum_spreads(const int2* __restrict__ points, const int* __restrict__ heads,
                const int* __restrict__ ends, const i64* __restrict__ nearness,
                const i64* __restrict__ spread, u64* sums, i64 n_edges) {
    const i64 edge = (i64)blockIdx.x * UMAP_THREADS + threadIdx.x;
    int head = -1;
    i64 phi = 0, wide = 0;
    if (edge < n_edges) {
        head = heads[edge];
        const int2 own = points[head], other = points[ends[edge]];
        const u64 squared = squared_length(own.x - other.x, own.y - other.y);
        phi = squared ? value_at(nearness, squared) : 1ll << FORCE_BITS;
        wide = squared ? value_at(spread, squared) : 0;
    }
    add_to_heads(sums, head, phi, wide);
}

__device__ __forceinline__ void add_of_warp(u64* total, i64 value) {
    #pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        const u32 low = __shfl_xor_sync(ALL, (u32)value, apart);
        const u32 high = __shfl_xor_sync(ALL, (u32)((u64)value >> 32), apart);
        value += (i64)((u64)high << 32 | low);
    }
    if ((threadIdx.x & 31) == 0) atomicAdd(total, (u64)value);
}

extern "C" __global__ void __launch_bounds__(UMAP_THREADS)
    measure_radii(i64* sums, const i64* __restrict__ logarithms, const i64* __restrict__ wanted,
                  i64* near, i64* radii, i64* logs, u64* totals, int n) {
    const i64 i = (i64)blockIdx.x * UMAP_THREADS + threadIdx.x;
    i64 log = 0, want = 0;
    if (i < n) {
        const i64 phi = sums[2 * i], wide = sums[2 * i + 1];
        sums[2 * i] = sums[2 * i + 1] = 0;
        i64 radius = LEAST_RADIUS;
        if (phi > 0)
            radius += (i64)__dmul_rn(__ddiv_rn((double)wide, (double)phi),
                                     (double)(1ll << (2 * POINT_BITS + FORCE_BITS - SPREAD_BITS)));
        log = value_at(logarithms, (u64)radius);
        want = wanted[i];
        near[i] = phi;
        radii[i] = radius;
        logs[i] = log;
    }
    add_of_warp(totals, log);
    add_of_warp(totals + 1, log * log);
    add_of_warp(totals + 2, log * want);
}

extern "C" __global__ void __launch_bounds__(UMAP_THREADS)
    weigh_radii(const i64* __restrict__ wanted, const i64* __restrict__ near,
                const i64* __restrict__ radii, const i64* __restrict__ logs, double* pulls,
                double mean, double slope, int n) {
    const i64 i = (i64)blockIdx.x * UMAP_THREADS + threadIdx.x;
    if (i >= n) return;
    constexpr double RADIUS_UNIT = 1.0 / (1ll << RADIUS_BITS), FORCE_UNIT = 1.0 / (1ll << FORCE_BITS);
    constexpr double SQUARE_UNIT = 1.0 / (1ll << (2 * POINT_BITS));
    double p = 0.0, q = 0.0;
    if (near[i] > 0) {
        const double apart = __dsub_rn(__dmul_rn((double)logs[i], RADIUS_UNIT), mean);
        const double weight =
            __dsub_rn(__dmul_rn((double)wanted[i], RADIUS_UNIT), __dmul_rn(slope, apart));
        p = __ddiv_rn(weight, __dmul_rn((double)near[i], FORCE_UNIT));
        q = __ddiv_rn(p, __dmul_rn((double)radii[i], SQUARE_UNIT));
    }
    pulls[2 * i] = p;
    pulls[2 * i + 1] = q;
}

__device__ __forceinline__ int clip_to(double force, int apart, double farthest) {
    return (int)fmin(fmax(__dmul_rn(force, (double)apart), -farthest), farthest);
}

extern "C" __global__ void __launch_bounds__(UMAP_THREADS)
    add_density(const int2* __restrict__ points, const int* __restrict__ heads,
                const int* __restrict__ ends, const u32* __restrict__ shares,
                const i64* __restrict__ by_radius, const i64* __restrict__ by_nearness,
                const double* __restrict__ pulls, u64* sums, double factor, i64 n_edges) {
    const i64 edge = (i64)blockIdx.x * UMAP_THREADS + threadIdx.x;
    int head = -1, x = 0, y = 0;
    if (edge < n_edges) {
        head = heads[edge];
        const int end = ends[edge];
        const int2 own = points[head], other = points[end];
        const int dx = own.x - other.x, dy = own.y - other.y;
        const u64 squared = squared_length(dx, dy);
        if (squared) {
            const double p = __dadd_rn(pulls[2 * (i64)head], pulls[2 * (i64)end]);
            const double q = __dadd_rn(pulls[2 * (i64)head + 1], pulls[2 * (i64)end + 1]);
            const double force = __dmul_rn(
                factor, __dadd_rn(__dmul_rn((double)value_at(by_radius, squared), q),
                                  __dmul_rn((double)value_at(by_nearness, squared), p)));
            const double farthest = (double)((i64)shares[edge] * (FARTHEST >> SHARE_BITS));
            x = 2 * clip_to(force, dx, farthest);
            y = 2 * clip_to(force, dy, farthest);
        }
    }
    add_to_heads(sums, head, x, y);
}
