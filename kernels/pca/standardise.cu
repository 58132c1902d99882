// standardise: what stands between the two sums of a pass over genotypes, and after them.
//
// Source    engine/genotype_products.py (`_standard`, `_back`, `_sum`): the same single operations, so
//           the same bytes.
// Shapes    sums int64 (n_sites, N_COLUMNS) of a block of sites, people (n_people, N_COLUMNS); numbers
//           of `columns` of these; digits int8 (SUM_DIGITS, N_COLUMNS, padded) for sum_codes.
// Rounding  every operation on its own (__dmul_rn, __dsub_rn, __dadd_rn); scaling by powers of two.
// Sums that were read are set to 0, for the next block.
//
// standardise_sites   thread block `column`: standardised genotypes of each site times the numbers,
//                     times the site's scale, as whole numbers below 2^SITE_BITS and the power of two
//                     that they stand for (back); these (times) and the mean genotype times these
//                     (less), in digits; less_total: their sum. absent: sums over missing genotypes,
//                     with less_digits, or null.
// add_people          total float64 (n_people, columns) += (people - less_total + absent) 2^back.

#include "digits.cuh"

#if !defined(N_COLUMNS) || !defined(SITE_BITS) || !defined(THREADS)
#error "N_COLUMNS, SITE_BITS, THREADS come from the launch (engine/gpu/genotype_plans.py)"
#endif

__device__ __forceinline__ double site_value(double sum, double absent, double total, int power,
                                             double mean, double inverse, double weight) {
    double found = __dsub_rn(sum, __dmul_rn(mean, __dsub_rn(total, absent)));
    found = ldexp(__dmul_rn(found, inverse), power);
    return __dmul_rn(__dmul_rn(found, weight), inverse);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    standardise_sites(i64* __restrict__ sums, i64* __restrict__ absent,
                      const double* __restrict__ totals, const int* __restrict__ powers,
                      const double* __restrict__ mean, const double* __restrict__ inverse,
                      double weight, i64 n_sites, i64 padded, signed char* __restrict__ digits,
                      signed char* __restrict__ less_digits, i64* __restrict__ less_total,
                      int* __restrict__ back) {
    __shared__ double largest[THREADS];
    __shared__ i64 lesses[THREADS];
    const int column = blockIdx.x, thread = threadIdx.x;
    const double total = totals[column];
    const int power = powers[column];
    double most = 0;
    for (i64 site = thread; site < n_sites; site += THREADS) {
        const i64 at = site * N_COLUMNS + column;
        const double less = absent ? (double)absent[at] : 0.0;
        most = fmax(most, fabs(site_value((double)sums[at], less, total, power, mean[site],
                                          inverse[site], weight)));
    }
    largest[thread] = most;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (thread < half) largest[thread] = fmax(largest[thread], largest[thread + half]);
        __syncthreads();
    }
    int own;
    frexp(largest[0], &own);
    own -= SITE_BITS;
    i64 sum = 0;
    for (i64 site = thread; site < padded; site += THREADS) {
        i64 times = 0, less = 0;
        if (site < n_sites) {
            const i64 at = site * N_COLUMNS + column;
            const double missing = absent ? (double)absent[at] : 0.0;
            const double value = site_value((double)sums[at], missing, total, power, mean[site],
                                            inverse[site], weight);
            const double whole = rint(ldexp(value, -own));
            times = (i64)whole;
            less = (i64)rint(__dmul_rn(mean[site], whole));
            sums[at] = 0;
            if (absent) absent[at] = 0;
        }
        sum += less;
        const i64 place = place_of(site);
        write_digits(digits, N_COLUMNS, column, padded, place, times);
        if (absent) write_digits(less_digits, N_COLUMNS, column, padded, place, less);
    }
    lesses[thread] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (thread < half) lesses[thread] += lesses[thread + half];
        __syncthreads();
    }
    if (thread == 0) {
        less_total[column] = lesses[0];
        back[column] = own;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    add_people(i64* __restrict__ people, i64* __restrict__ absent,
               const i64* __restrict__ less_total, const int* __restrict__ back,
               double* __restrict__ total, i64 n_people, int columns) {
    const i64 at = (i64)blockIdx.x * THREADS + threadIdx.x, person = at / N_COLUMNS;
    const int column = (int)(at % N_COLUMNS);
    if (person >= n_people || column >= columns) return;
    i64 sum = people[at] - less_total[column];
    people[at] = 0;
    if (absent) {
        sum += absent[at];
        absent[at] = 0;
    }
    double* own = total + person * columns + column;
    *own = __dadd_rn(*own, ldexp((double)sum, back[column]));
}
