// minplus: C[i][j] = min(C[i][j], min_k P[k][i] + Q[k][j]), the (min, +) matrix product, and what
// closures need besides.
//
// Source    The CUDA product of the genome-distance work, with both operands k-major (rows of P and
//           Q are contiguous along i and j), as the panels and symmetric blocks of R-Kleene are
//           stored anyway: each pipeline stage is a contiguous 16-byte copy and nothing is
//           transposed. Only the upper triangle of tiles is computed where the product is
//           symmetric.
//
// Lists     Where `tiles` is given, thread block b computes the tile of rows tiles[2 b] and columns
//           tiles[2 b + 1], if it lies outside the rows and columns of the hole: so a device updates
//           the tiles of a spread matrix that it owns, and those of the next panel first.
//
// Types     NUMBER: int32 (values 0 ... 2^30 - 1, the largest standing for infinity: a sum of two
//           does not overflow), float32, float64, int64 (0 ... 2^62 - 1); never negative, never
//           NaN, so that float32 values compare like the integers with the same bits.
//
// Shapes    P (depth, m), Q (depth, n), C (m, n) with row lengths ldp, ldq, ldc; m and n multiples
//           of 128, depth of 32, rows aligned to 16 bytes: the host pads with infinity.
//
// Threads   256 per thread block: a tile of BM x BN by 16 x 16 threads of TM x TN results each.
//
// Shared    cp.async pipeline of SLOTS slots of DEPTH rows of P and Q; the runs that are not skipped.
//
// Operations. Two k per step: min3(best, p0 + q0, p1 + q1). In int32 the compiler emits two fused
// add-min instructions (DPX viaddmin); in float32 a three-way integer minimum replaces two of four
// instructions by one, which beats separate minima.
//
// Pruning. Where floors are given, a run of 32 k is skipped for a tile if
//   floor_p[k run][tile of i] + floor_q[k run][tile of j] >= ceil_c[tile of i][tile of j]:
// no sum of that run can be below any entry of the tile (exact in floats too,
// because rounding is monotone). Tiles are 128 x 128, whatever BM and BN are.

#include "../ptx.cuh"
#include "../types.cuh"

#if !defined(BOUND_TILE) || !defined(BOUND_RUN) || !defined(THREAD_SIDE) || \
    !defined(TURN_SIDE) || !defined(BASE) || !defined(NUMBER_INT32) || \
    !defined(NUMBER_FLOAT32) || !defined(NUMBER_FLOAT64) || !defined(LARGEST_INT32) || \
    !defined(LARGEST_INT64)
#error "BOUND_TILE ... LARGEST_INT64 come from engine/minplus_plan.py"
#endif
#if !defined(MAX_RUNS) || !defined(SLOTS) || !defined(DEPTH)
#error "MAX_RUNS, SLOTS and DEPTH come from engine/minplus_plan.py"
#endif

#if NUMBER == NUMBER_INT32
typedef int T;
constexpr int LANES = 4;
#define LARGEST LARGEST_INT32
#elif NUMBER == NUMBER_FLOAT32
typedef float T;
constexpr int LANES = 4;
#define LARGEST __int_as_float(0x7f800000)
#elif NUMBER == NUMBER_FLOAT64
typedef double T;
constexpr int LANES = 2;
#define LARGEST __longlong_as_double(0x7ff0000000000000LL)
#else
typedef i64 T;
constexpr int LANES = 2;
#define LARGEST ((T)LARGEST_INT64)
#endif

constexpr int THREADS = THREAD_SIDE * THREAD_SIDE;
constexpr int BM = THREAD_SIDE * TM, BN = THREAD_SIDE * TN;

struct alignas(16) Vector { T x[LANES]; };

__device__ __forceinline__ T smaller(T a, T b) { return b < a ? b : a; }

#if NUMBER == NUMBER_INT32
__device__ __forceinline__ T min3(T a, T b, T c) {
#if __CUDA_ARCH__ >= 900
  return __vimin3_s32(a, b, c);
#else
  return min(min(a, b), c);
#endif
}
__device__ __forceinline__ T plus(T a, T b) { return a + b; }
#elif NUMBER == NUMBER_FLOAT32
__device__ __forceinline__ T min3(T a, T b, T c) {
#if __CUDA_ARCH__ >= 900
  return __int_as_float(
      __vimin3_s32(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
#else
  return fminf(fminf(a, b), c);
#endif
}
__device__ __forceinline__ T plus(T a, T b) { return __fadd_rn(a, b); }
#else
__device__ __forceinline__ T min3(T a, T b, T c) { return smaller(smaller(a, b), c); }
__device__ __forceinline__ T plus(T a, T b) { return a + b; }
#endif

// Below compute capability 8.0 a copy is complete at once, and there are no groups.
__device__ __forceinline__ void copy_16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  copy_chunk((u32)__cvta_generic_to_shared(to), from);
#else
  *(uint4*)to = *(const uint4*)from;
#endif
}
__device__ __forceinline__ void commit() {
#if __CUDA_ARCH__ >= 800
  commit_copies();
#endif
}
template <int N> __device__ __forceinline__ void wait() {
#if __CUDA_ARCH__ >= 800
  wait_copies<N>();
#endif
}

// Producer: rows k ... k + DEPTH - 1 of the tile's columns of P and Q into one slot.
__device__ __forceinline__ void fetch(T* slot, const T* p, const T* q, i64 ldp, i64 ldq, int k) {
  constexpr int VP = BM / LANES, VQ = BN / LANES;
#pragma unroll
  for (int v = threadIdx.x; v < DEPTH * VP; v += THREADS) {
    int row = v / VP, at = v % VP * LANES;
    copy_16(slot + row * BM + at, p + (k + row) * ldp + at);
  }
#pragma unroll
  for (int v = threadIdx.x; v < DEPTH * VQ; v += THREADS) {
    int row = v / VQ, at = v % VQ * LANES;
    copy_16(slot + DEPTH * BM + row * BN + at, q + (k + row) * ldq + at);
  }
}

// Fragments of one k: TM values of P and TN of Q, as vectors that threads of one row or column
// share.
__device__ __forceinline__ void read_row(const T* p, const T* q, int ty, int tx, T* a, T* b) {
#pragma unroll
  for (int v = 0; v < TM / LANES; v++)
    *(Vector*)(a + v * LANES) = *(const Vector*)(p + v * THREAD_SIDE * LANES + ty * LANES);
#pragma unroll
  for (int v = 0; v < TN / LANES; v++)
    *(Vector*)(b + v * LANES) = *(const Vector*)(q + v * THREAD_SIDE * LANES + tx * LANES);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
minplus(const T* __restrict__ p, const T* __restrict__ q, T* c, i64 ldp, i64 ldq, i64 ldc, int m,
        int n, int depth, int symmetric, const T* __restrict__ floor_p,
        const T* __restrict__ floor_q, const T* __restrict__ ceil_c, u64* skipped,
        const unsigned short* __restrict__ tiles, int hole_top, int hole_bottom, int hole_left,
        int hole_right) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ unsigned short runs[MAX_RUNS];
  __shared__ int n_runs;
  T* slots = (T*)memory;
  constexpr int SLOT = DEPTH * (BM + BN);

  int bi, bj;
  const int columns = n / BN;
  if (tiles) {
    bi = tiles[2 * (i64)blockIdx.x];
    bj = tiles[2 * (i64)blockIdx.x + 1];
    if ((bi >= hole_top && bi < hole_bottom) || (bj >= hole_left && bj < hole_right)) return;
  } else if (symmetric) {  // row by row of the upper triangle (BM = BN there)
    int index = blockIdx.x, side = columns;
    bi = (int)((2.0 * side + 1 - sqrt((2.0 * side + 1) * (2.0 * side + 1) - 8.0 * index)) / 2);
    while (bi > 0 && (i64)bi * (2 * side - bi + 1) / 2 > index) bi--;
    while ((i64)(bi + 1) * (2 * side - bi) / 2 <= index) bi++;
    bj = bi + index - (int)((i64)bi * (2 * side - bi + 1) / 2);
  } else {
    bi = blockIdx.x / columns;
    bj = blockIdx.x % columns;
  }

  const int total = depth / BOUND_RUN;
  if (floor_p) {  // one warp lists the runs that are not skipped
    if (threadIdx.x < 32) {
      int ti = bi * BM / BOUND_TILE, tj = bj * BN / BOUND_TILE, found = 0;
      T ceiling = ceil_c[(i64)ti * (n / BOUND_TILE) + tj];
      for (int first = 0; first < total; first += 32) {
        int run = first + threadIdx.x;
        bool needed = run < total && plus(floor_p[(i64)run * (m / BOUND_TILE) + ti],
                                          floor_q[(i64)run * (n / BOUND_TILE) + tj]) < ceiling;
        unsigned mask = __ballot_sync(~0u, needed);
        if (needed) runs[found + __popc(mask & ((1u << threadIdx.x) - 1))] = run;
        found += __popc(mask);
      }
      if (threadIdx.x == 0) {
        n_runs = found;
        if (skipped && found < total) atomicAdd(skipped, (u64)(total - found));
      }
    }
    __syncthreads();
    if (n_runs == 0) return;
  }
  const int steps = (floor_p ? n_runs : total) * (BOUND_RUN / DEPTH);
  const T* pi = p + (i64)bi * BM;
  const T* qj = q + (i64)bj * BN;
  auto row_of = [&](int step) {
    int run = step / (BOUND_RUN / DEPTH), within = step % (BOUND_RUN / DEPTH) * DEPTH;
    return (floor_p ? runs[run] : run) * BOUND_RUN + within;
  };

  const int tx = threadIdx.x % THREAD_SIDE, ty = threadIdx.x / THREAD_SIDE;
  T best[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) best[i][j] = LARGEST;

#pragma unroll
  for (int s = 0; s < SLOTS - 1; s++) {
    if (s < steps) fetch(slots + s * SLOT, pi, qj, ldp, ldq, row_of(s));
    commit();
  }
  for (int step = 0; step < steps; step++) {
    wait<SLOTS - 2>();
    __syncthreads();
    int ahead = step + SLOTS - 1;
    if (ahead < steps) fetch(slots + ahead % SLOTS * SLOT, pi, qj, ldp, ldq, row_of(ahead));
    commit();
    const T* sp = slots + step % SLOTS * SLOT;
    const T* sq = sp + DEPTH * BM;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 2) {
      T a[2][TM], b[2][TN];
      read_row(sp + k * BM, sq + k * BN, ty, tx, a[0], b[0]);
      read_row(sp + (k + 1) * BM, sq + (k + 1) * BN, ty, tx, a[1], b[1]);
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
          best[i][j] = min3(best[i][j], plus(a[0][i], b[0][j]), plus(a[1][i], b[1][j]));
        }
    }
  }
#pragma unroll
  for (int i = 0; i < TM; i++) {
    i64 row = (i64)bi * BM + i / LANES * THREAD_SIDE * LANES + ty * LANES + i % LANES;
#pragma unroll
    for (int v = 0; v < TN / LANES; v++) {
      Vector* at = (Vector*)(c + row * ldc + (i64)bj * BN + v * THREAD_SIDE * LANES + tx * LANES);
      Vector old = *at;
#pragma unroll
      for (int x = 0; x < LANES; x++) old.x[x] = smaller(old.x[x], best[i][v * LANES + x]);
      *at = old;
    }
  }
}

// close_block: Floyd-Warshall of one symmetric block of up to BASE samples; reads the upper
// triangle, writes all.
// Threads   256; the block stays in registers, 8 x 8 entries per thread, rows ty + 16 i and columns
//           tx + 16 j.
// Shared    row k, double-buffered: one barrier per step. Row k equals column k, and does not
//           change in step k because its diagonal entry is zero.
constexpr int OWN = BASE / THREAD_SIDE;  // rows and columns of one thread

extern "C" __global__ void __launch_bounds__(THREADS) close_block(T* w, i64 ldw, int n) {
  __shared__ T row[2][BASE];
  const int tx = threadIdx.x % THREAD_SIDE, ty = threadIdx.x / THREAD_SIDE;
  T own[OWN][OWN];
#pragma unroll
  for (int i = 0; i < OWN; i++)
#pragma unroll
    for (int j = 0; j < OWN; j++) {
      int r = ty + THREAD_SIDE * i, c = tx + THREAD_SIDE * j;
      int low = r < c ? r : c, high = r < c ? c : r;
      own[i][j] = high < n ? w[low * ldw + high] : LARGEST;
    }
#pragma unroll
  for (int block = 0; block < OWN; block++)
    for (int r = 0; r < THREAD_SIDE; r++) {
      T* shared = row[r % 2];
      if (ty == r)
#pragma unroll
        for (int j = 0; j < OWN; j++) shared[tx + THREAD_SIDE * j] = own[block][j];
      __syncthreads();
      T a[OWN], b[OWN];
#pragma unroll
      for (int i = 0; i < OWN; i++) a[i] = shared[ty + THREAD_SIDE * i];
#pragma unroll
      for (int j = 0; j < OWN; j++) b[j] = shared[tx + THREAD_SIDE * j];
#pragma unroll
      for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) own[i][j] = smaller(own[i][j], plus(a[i], b[j]));
    }
#pragma unroll
  for (int i = 0; i < OWN; i++)
#pragma unroll
    for (int j = 0; j < OWN; j++)
      if (ty + THREAD_SIDE * i < n && tx + THREAD_SIDE * j < n)
        w[(ty + THREAD_SIDE * i) * ldw + tx + THREAD_SIDE * j] = own[i][j];
}

// transpose: to[j][i] = from[i][j] in 32 x 32 tiles. With `triangle` only entries i < j are copied,
// which mirrors an upper triangle in place (to and from are the same matrix).
extern "C" __global__ void __launch_bounds__(THREADS)
transpose(const T* from, T* to, i64 ld_from, i64 ld_to, int rows, int columns, int triangle) {
  __shared__ T tile[TURN_SIDE][TURN_SIDE + 1];
  int bi = blockIdx.y * TURN_SIDE, bj = blockIdx.x * TURN_SIDE;
  if (triangle && bi > bj) return;
  int x = threadIdx.x % TURN_SIDE, y = threadIdx.x / TURN_SIDE;
  for (int r = y; r < TURN_SIDE; r += THREADS / TURN_SIDE)
    if (bi + r < rows && bj + x < columns) tile[r][x] = from[(i64)(bi + r) * ld_from + bj + x];
  __syncthreads();
  for (int r = y; r < TURN_SIDE; r += THREADS / TURN_SIDE) {
    int i = bi + x, j = bj + r;
    if (i < rows && j < columns && (!triangle || i < j)) to[(i64)j * ld_to + i] = tile[x][r];
  }
}

// tile_extremes: out[block of rows][block of columns] = smallest (or, with `largest`, largest)
// entry of each height x BOUND_TILE block of x (rows, columns), whose sides are multiples of these.
extern "C" __global__ void __launch_bounds__(BOUND_TILE)
tile_extremes(const T* x, T* out, i64 ld, int height, int columns, int largest) {
  __shared__ T found[BOUND_TILE];
  const T* at = x + (i64)blockIdx.y * height * ld + (i64)blockIdx.x * BOUND_TILE + threadIdx.x;
  T best = *at;
  for (int r = 1; r < height; r++) {
    T value = at[(i64)r * ld];
    if (largest ? best < value : value < best) best = value;
  }
  found[threadIdx.x] = best;
  for (int half = BOUND_TILE / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      T value = found[threadIdx.x + half];
      if (largest ? found[threadIdx.x] < value : value < found[threadIdx.x])
        found[threadIdx.x] = value;
    }
  }
  if (threadIdx.x == 0) out[(i64)blockIdx.y * (columns / BOUND_TILE) + blockIdx.x] = found[0];
}
