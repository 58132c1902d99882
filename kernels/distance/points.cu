// points: candidates for the lists of nearest points, from coordinates.
//
// Formula   squared = sum over d of (x[i][d] - x[j][d])^2, float64, in the order of d, each
//           operation rounded once. A pair is judged first by the same sum in float32 over points
//           that were centred and scaled to norms of at most 1 (`distance.nearest.Scaled`), against
//           limits that allow for its rounding.
// Shapes    points (n, m) float64; turned (m, pitch) float32; lists.cuh for the rest.
// Threads   256, 8 x 8 pairs each: a thread block judges 128 x 128 pairs. FP32 bound: two
//           instructions a pair and coordinate.
// Shared    2 x POINT_DEPTH x 128 floats.

#include "lists.cuh"

#if !defined(POINT_TILE) || !defined(POINT_DEPTH) || !defined(POINT_SIDE)
#error "POINT_TILE ... POINT_SIDE come from distance/nearest_plan.py"
#endif

// pairs of a thread along each side: two runs of 4, half a tile apart
constexpr int EACH = POINT_TILE / POINT_SIDE, HALF = POINT_TILE / 2;
static_assert(EACH == 8, "a thread reads two float4 of each side");

__device__ __forceinline__ int offset_of(int thread, int i) {
    return thread * 4 + (i & 3) + (i >> 2) * HALF;
}

extern "C" __global__ void __launch_bounds__(POINT_SIDE * POINT_SIDE, 2)
filter_points(const double* __restrict__ points, const float* __restrict__ turned, int m, i64 pitch,
              int first_row, int end_row, int first_column, int end_column, int own, int low,
              int high, double* distance, int* index, int* called, float* limits,
              double* new_distance, int* new_index, int* new_called, u32* count, int k,
              int column_places) {
    __shared__ float xs[POINT_DEPTH][POINT_TILE], ys[POINT_DEPTH][POINT_TILE];
    const Lists lists{distance,     index,     called,     limits,
                      new_distance, new_index, new_called, count, k};
    const int row0 = blockIdx.y * POINT_TILE, column0 = blockIdx.x * POINT_TILE;
    if (own && row0 >= column0 + POINT_TILE) return;
    if (!meets_group(row0, row0 + POINT_TILE, column0, column0 + POINT_TILE, high)) return;
    if (low && (row0 >> low) == (column0 >> low)) return;
    const int ty = threadIdx.x / POINT_SIDE, tx = threadIdx.x % POINT_SIDE;
    float sum[EACH][EACH] = {};
    for (int d0 = 0; d0 < m; d0 += POINT_DEPTH) {
        const int depth = min(POINT_DEPTH, m - d0);
        for (int t = threadIdx.x; t < depth * POINT_TILE; t += POINT_SIDE * POINT_SIDE) {
            const int d = t / POINT_TILE, p = t % POINT_TILE;
            const float* line = turned + (d0 + d) * pitch;
            const int i = first_row + row0 + p, j = first_column + column0 + p;
            xs[d][p] = i < end_row ? line[i] : 0.0f;
            ys[d][p] = j < end_column ? line[j] : 0.0f;
        }
        __syncthreads();
        #pragma unroll 4
        for (int d = 0; d < depth; ++d) {
            float x[EACH], y[EACH];
            *reinterpret_cast<float4*>(x) = *reinterpret_cast<float4*>(&xs[d][ty * 4]);
            *reinterpret_cast<float4*>(x + 4) = *reinterpret_cast<float4*>(&xs[d][ty * 4 + HALF]);
            *reinterpret_cast<float4*>(y) = *reinterpret_cast<float4*>(&ys[d][tx * 4]);
            *reinterpret_cast<float4*>(y + 4) = *reinterpret_cast<float4*>(&ys[d][tx * 4 + HALF]);
            #pragma unroll
            for (int a = 0; a < EACH; ++a)
                #pragma unroll
                for (int b = 0; b < EACH; ++b) {
                    const float apart = x[a] - y[b];
                    sum[a][b] = fmaf(apart, apart, sum[a][b]);
                }
        }
        __syncthreads();
    }
    float row_limit[EACH], column_limit[EACH];
    #pragma unroll
    for (int a = 0; a < EACH; ++a) {
        const int i = first_row + row0 + offset_of(ty, a);
        const int j = first_column + column0 + offset_of(tx, a);
        row_limit[a] = i < end_row ? limits[i] : -1.0f;
        column_limit[a] = j < end_column ? limits[j] : -1.0f;
    }
    u64 close = 0;
    #pragma unroll
    for (int a = 0; a < EACH; ++a)
        #pragma unroll
        for (int b = 0; b < EACH; ++b)
            if (sum[a][b] <= fmaxf(row_limit[a], column_limit[b])) close |= 1ull << (a * EACH + b);
    while (close) {
        const int at = __ffsll((i64)close) - 1;
        close &= close - 1;
        const int i = row0 + offset_of(ty, at / EACH), j = column0 + offset_of(tx, at % EACH);
        const int row = first_row + i, column = first_column + j;
        if (row >= end_row || column >= end_column || (own && i >= j)) continue;
        if (!in_band(i, j, low, high)) continue;
        if (count[i] > LIST_ROOM && count[column_places + j] > LIST_ROOM) continue;
        double squared = 0;
        for (int d = 0; d < m; ++d) {
            const double apart = __dadd_rn(points[(i64)row * m + d], -points[(i64)column * m + d]);
            squared = __dadd_rn(squared, __dmul_rn(apart, apart));
        }
        offer(lists, i, row, column, squared, 0);
        offer(lists, column_places + j, column, row, squared, 0);
    }
}
