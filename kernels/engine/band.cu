// band: squared correlations of each site with those that follow within a narrow window.
//
// Formula   of the allele counts x and y of two sites, over the n samples called in both,
//           (n sum(xy) - sum(x) sum(y))^2 / ((n sum(x^2) - sum(x)^2) (n sum(y^2) - sum(y)^2)),
//           from counts of bits: x = u + v, with u for at least one ALT allele and v for two.
// Source    engine/site_pairs_cpu.py, to the last bit: sums are integers, then one rounding each.
// Shapes    words (n_rows, n_planes, n_words) uint64, planes u, v and, if n_planes is 3, c; ends
//           (n_sites,) int64, one past each site's last partner, from the first row on; out
//           (n_sites, width) float64, NaN beyond the window and where a site does not vary.
// Threads   BAND_WARPS warps of a thread block share a site's partners; the lanes of a warp share
//           words, and their counts, below 2^31, meet by shuffles.

#include "../types.cuh"

#if !defined(BAND_WARPS)
#error "BAND_WARPS comes from engine/site_pairs_plan.py"
#endif

constexpr u32 ALL_LANES = 0xFFFFFFFFu;

__device__ __forceinline__ i64 sum_of_lanes(int value) {
#pragma unroll
    for (int apart = 16; apart; apart >>= 1) value += __shfl_xor_sync(ALL_LANES, value, apart);
    return value;
}

extern "C" __global__ void __launch_bounds__(32 * BAND_WARPS)
    band_r2(const u64* __restrict__ words, const i64* __restrict__ ends, double* __restrict__ out,
            i64 n_samples, i64 n_words, int n_planes, int width) {
    const i64 row = blockIdx.x;
    const int lane = threadIdx.x & 31;
    const u64* a = words + row * n_planes * n_words;
    for (int k = threadIdx.x >> 5; k < width; k += BAND_WARPS) {
        const bool inside = row + 1 + k < ends[row];
        double found = __longlong_as_double(0x7FF8000000000000ll);
        if (inside) {
            const u64* b = a + (i64)(k + 1) * n_planes * n_words;
            int n = 0, a1 = 0, a2 = 0, b1 = 0, b2 = 0, product = 0;
            for (i64 word = lane; word < n_words; word += 32) {
                const u64 au = a[word], av = a[n_words + word];
                const u64 bu = b[word], bv = b[n_words + word];
                u64 ac = ~0ull, bc = ~0ull;
                if (n_planes == 3) {
                    ac = a[2 * n_words + word], bc = b[2 * n_words + word];
                    n += __popcll(ac & bc);
                }
                a1 += __popcll(au & bc), a2 += __popcll(av & bc);
                b1 += __popcll(bu & ac), b2 += __popcll(bv & ac);
                product += __popcll(au & bu) + __popcll(au & bv) + __popcll(av & bu) +
                           __popcll(av & bv);
            }
            const i64 called = n_planes == 3 ? sum_of_lanes(n) : n_samples;
            const i64 one_a = sum_of_lanes(a1), two_a = sum_of_lanes(a2);
            const i64 one_b = sum_of_lanes(b1), two_b = sum_of_lanes(b2);
            const i64 both = sum_of_lanes(product);
            const i64 sum_a = one_a + two_a, sum_b = one_b + two_b;
            const double covariance = (double)(called * both - sum_a * sum_b);
            const double spread_a = (double)(called * (one_a + 3 * two_a) - sum_a * sum_a);
            const double spread_b = (double)(called * (one_b + 3 * two_b) - sum_b * sum_b);
            if (spread_a > 0 && spread_b > 0)
                found = __ddiv_rn(__dmul_rn(covariance, covariance), __dmul_rn(spread_a, spread_b));
        }
        if (lane == 0) out[row * width + k] = found;
    }
}
