// flips: passes over genotypes whose signs are flipped, without known components (K of them).
//
// Source    engine/genotype_products.py (`_flipped`): the same single operations, so the same bytes.
// Shapes    as in standardise.cu; signs int8 (n_places, columns), 0 where no sample stands; known
//           float64 (n_places, K), along float64 (n_sites, K); shares int64 (K, N_COLUMNS) and whole
//           numbers int32 (n, N_COLUMNS) that they are sums of.
//
// turn_numbers        numbers times signs: in digits for sum_codes, as whole numbers, and their sum.
// add_shares          shares[k][c] += sum over rows of left[row][k] * right[row][c], exact.
// standardise_flipped as standardise_sites, less `along` times the components' shares of the
//                     numbers; also the values themselves as whole numbers below 2^BITS (found), and
//                     the powers of two that these stand for (powers_found).
// add_flipped         total += ((people - less_total + absent) 2^back - known times shares) signs.

#include "digits.cuh"

#if !defined(N_COLUMNS) || !defined(SITE_BITS) || !defined(BITS) || !defined(THREADS)
#error "N_COLUMNS ... THREADS come from the launch (engine/gpu/genotype_plans.py)"
#endif

template <typename T, typename F>
__device__ __forceinline__ T reduce(T* shared, T own, F join) {
    const int thread = threadIdx.x;
    __syncthreads();
    shared[thread] = own;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (thread < half) shared[thread] = join(shared[thread], shared[thread + half]);
        __syncthreads();
    }
    return shared[0];
}

struct Larger {
    __device__ double operator()(double a, double b) const { return fmax(a, b); }
};
struct Plus {
    __device__ i64 operator()(i64 a, i64 b) const { return a + b; }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    turn_numbers(const double* __restrict__ numbers, const signed char* __restrict__ signs,
                 signed char* __restrict__ digits, int* __restrict__ whole,
                 i64* __restrict__ totals, i64 n_places, int columns) {
    __shared__ i64 sums[THREADS];
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    const bool there = at < n_places;
    const i64 place = place_of(at);
    for (int column = 0; column < columns; column++) {
        i64 value = 0;
        if (there) {
            value = (i64)numbers[at * columns + column] * signs[at * columns + column];
            whole[at * N_COLUMNS + column] = (int)value;
            write_digits(digits, N_COLUMNS, column, n_places, place, value);
        }
        const i64 sum = reduce(sums, value, Plus());
        if (threadIdx.x == 0 && sum) atomicAdd((u64*)(totals + column), (u64)sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    add_shares(const i64* __restrict__ left, const int* __restrict__ right,
               i64* __restrict__ shares, i64 n, int n_known, int columns) {
    __shared__ i64 sums[THREADS];
    const int k = blockIdx.y;
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x, step = (i64)gridDim.x * THREADS;
    i64 own[N_COLUMNS] = {};
    for (i64 row = at; row < n; row += step) {
        const i64 value = left[row * n_known + k];
#pragma unroll
        for (int column = 0; column < N_COLUMNS; column++)
            if (column < columns) own[column] += value * right[row * N_COLUMNS + column];
    }
#pragma unroll
    for (int column = 0; column < N_COLUMNS; column++) {
        if (column >= columns) continue;
        const i64 sum = reduce(sums, own[column], Plus());
        if (threadIdx.x == 0 && sum)
            atomicAdd((u64*)(shares + k * N_COLUMNS + column), (u64)sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    standardise_flipped(i64* __restrict__ sums, i64* __restrict__ absent,
                        const i64* __restrict__ totals, const int* __restrict__ powers,
                        const double* __restrict__ mean, const double* __restrict__ inverse,
                        const double* __restrict__ along, const i64* __restrict__ shares,
                        const int* __restrict__ known_powers, int n_known, i64 n_sites, i64 padded,
                        double* __restrict__ values, signed char* __restrict__ digits,
                        signed char* __restrict__ less_digits, i64* __restrict__ less_total,
                        int* __restrict__ back, int* __restrict__ found,
                        int* __restrict__ powers_found) {
    __shared__ double largest[THREADS];
    __shared__ i64 lesses[THREADS];
    extern __shared__ double parts[];  // of this column, n_known
    const int column = blockIdx.x, thread = threadIdx.x, power = powers[column];
    for (int k = thread; k < n_known; k += THREADS)
        parts[k] = ldexp((double)shares[k * N_COLUMNS + column], known_powers[k] + power);
    __syncthreads();
    const double total = (double)totals[column];
    double most = 0, most_back = 0;
    for (i64 site = thread; site < n_sites; site += THREADS) {
        const i64 at = site * N_COLUMNS + column;
        const double missing = absent ? (double)absent[at] : 0.0;
        double value = __dsub_rn((double)sums[at], __dmul_rn(mean[site], __dsub_rn(total, missing)));
        value = ldexp(__dmul_rn(value, inverse[site]), power);
        for (int k = 0; k < n_known; k++)
            value = __dsub_rn(value, __dmul_rn(along[site * n_known + k], parts[k]));
        values[at] = value;
        most = fmax(most, fabs(value));
        most_back = fmax(most_back, fabs(__dmul_rn(value, inverse[site])));
        sums[at] = 0;
        if (absent) absent[at] = 0;
    }
    int own, own_back;
    frexp(reduce(largest, most, Larger()), &own);
    frexp(reduce(largest, most_back, Larger()), &own_back);
    own -= BITS;
    own_back -= SITE_BITS;
    i64 sum = 0;
    for (i64 site = thread; site < padded; site += THREADS) {
        i64 times = 0, less = 0;
        if (site < n_sites) {
            const i64 at = site * N_COLUMNS + column;
            const double value = values[at];
            const double whole = rint(ldexp(__dmul_rn(value, inverse[site]), -own_back));
            times = (i64)whole;
            less = (i64)rint(__dmul_rn(mean[site], whole));
            found[at] = (int)rint(ldexp(value, -own));
        }
        sum += less;
        const i64 place = place_of(site);
        write_digits(digits, N_COLUMNS, column, padded, place, times);
        if (absent) write_digits(less_digits, N_COLUMNS, column, padded, place, less);
    }
    sum = reduce(lesses, sum, Plus());
    if (thread == 0) {
        less_total[column] = sum;
        back[column] = own_back;
        powers_found[column] = own;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    add_flipped(i64* __restrict__ people, i64* __restrict__ absent,
                const i64* __restrict__ less_total, const int* __restrict__ back,
                const double* __restrict__ known, const i64* __restrict__ shares,
                const int* __restrict__ left_powers, const int* __restrict__ powers_found,
                const signed char* __restrict__ signs, double* __restrict__ total, i64 n_people,
                int n_known, int columns) {
    extern __shared__ double parts[];  // (n_known, N_COLUMNS)
    for (int k = threadIdx.x; k < n_known * N_COLUMNS; k += THREADS) {
        const int column = k % N_COLUMNS;
        parts[k] = column < columns ? ldexp((double)shares[k], left_powers[k / N_COLUMNS] +
                                                                  powers_found[column])
                                    : 0.0;
    }
    __syncthreads();
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x, person = at / N_COLUMNS;
    const int column = (int)(at % N_COLUMNS);
    if (person >= n_people || column >= columns) return;
    i64 sum = people[at] - less_total[column];
    people[at] = 0;
    if (absent) {
        sum += absent[at];
        absent[at] = 0;
    }
    double value = ldexp((double)sum, back[column]);
    for (int k = 0; k < n_known; k++)
        value = __dsub_rn(value, __dmul_rn(known[person * n_known + k],
                                           parts[k * N_COLUMNS + column]));
    const i64 own = person * columns + column;
    total[own] = __dadd_rn(total[own], __dmul_rn(value, (double)signs[own]));
}
