// copying: haplotypes as mosaics of all haplotypes of a panel (Li and Stephens' recurrence), in the
// steps of copying/copying_cpu.py and with its bytes.
//
// copy_forward, copy_backward
// Formula   v(k) = fma(state(k), stay, jump); matched = sum over k that match of rint(v(k));
//           state(k) = v(k) if k matches, else v(k) loss; stay = keep / mass(matched). The backward
//           pass also has the posteriors v(k) forward(k): those that are large are listed, and
//           doses of the sites in front of a called one are sums over the lists of both ends.
// Source    Li and Stephens 2003, Genetics 165:2213; copying/copying_cpu.py says why sums are integers
// Shapes    one thread block a task (a target haplotype in a window), `Task`. rows (n_sites,
//           row_words) u32, bit k % 32 of word k / 32: haplotype k carries ALT; behind the last row
//           PITCH more words may be read. columns (n_sites / 32, 32 row_words) u32, bit site % 32:
//           haplotype k carries the minor allele. Of called sites: sites, keep, jump, alleles;
//           stays: written by the forward pass. counted (n_masks, PITCH). States in memory are
//           (32, PITCH) float, haplotype k at [k % 32][k / 32], in every kernel.
// Threads   COPY_THREADS, a target's states spread over all of them, COPY_STATES a thread in
//           registers: thread t has the haplotypes of word t, t + COPY_THREADS, ... of a row, and of
//           what is left of COPY_STATES 8 or 16 bits (byte or half word t behind these). Above what
//           registers hold, COPY_CHUNKS such sets pass through registers at each site.
// Sums      integers, by warp, then over shared memory: threads, warps and chunks cannot change them.
//           Doubles are computed by every thread from the same sum, no product is fused unasked.
// Overflow  states sum to COPY_UNITS = 2^22 and a recount is of less than 2^16 units, 2^6 finer: int.
//           Posteriors are below 2^22 units, of a thread 2^22 COPY_STATES; totals are int64.
// Flush     states are >= loss jump > 2^-100: nothing that counts is subnormal.
//
// turn_columns
// Formula   columns from rows; a warp transposes 32 sites x 32 haplotypes by votes.
//
// Compile with -DBACKWARD=0|1 (which pass) -DCOPY_THREADS=n -DCOPY_STATES=n -DCOPY_CHUNKS=n -DPITCH=n.

#include "../types.cuh"

#if !defined(CHECKPOINT) || !defined(COPY_UNITS) || !defined(DOSE_UNITS) || !defined(TASK_BYTES)
#error "CHECKPOINT ... TASK_BYTES come from copying/copying_plan.py"
#endif

constexpr u32 ALL = ~0u;
constexpr int WARPS = COPY_THREADS / 32;
constexpr int WHOLE = COPY_STATES / 32, TAIL = COPY_STATES % 32, WORDS = WHOLE + (TAIL > 0);
constexpr int CHUNK_WORDS = COPY_THREADS * COPY_STATES / 32;  // of a row
constexpr int STATE_FLOATS = 32 * PITCH;
constexpr int RUN = COPY_CHUNKS * COPY_STATES * 32;  // haplotypes of a warp
// Adding ROUND rounds a float below 2^23 to a whole number, which its lowest bits are then.
constexpr float ROUND = 8388608.0f;
constexpr u32 ROUND_BITS = 0x4B000000u;
constexpr int COARSE = 1 << 16, FINER = 6, FINEST = 18;
constexpr int ADDED = 512;  // posteriors, whose sum is at most 2^31

static_assert(COPY_THREADS % 32 == 0 && COPY_STATES % 8 == 0 && TAIL != 24, "whole pieces");
static_assert(COPY_CHUNKS * CHUNK_WORDS <= PITCH, "states in memory hold all haplotypes");
static_assert(COPY_CHUNKS * COPY_STATES < 512, "posteriors of a thread sum to less than 2^31");

struct Task {
    i64 called, n_called;   // first in sites, keep, jump; number
    i64 alleles, stays;     // first in alleles, in stays
    i64 mask, own, n_own;   // row of counted; first in own, number
    i64 n_states;           // haplotypes that may be copied
    i64 kept;               // first kept state of the forward pass
    i64 first, last, out;   // doses of first <= site < last go to out
    double loss;            // emission of a mismatch beside that of a match, a float
};
static_assert(sizeof(Task) == TASK_BYTES, "TASK in copying/copying_plan.py is laid out like Task");

typedef float States[COPY_STATES];
typedef u32 Bits[WORDS];

__device__ __forceinline__ void load_bits(Bits& bits, const u32* row, int chunk) {
    const u32* own = row + chunk * CHUNK_WORDS;
#pragma unroll
    for (int w = 0; w < WHOLE; w++) bits[w] = __ldg(own + w * COPY_THREADS + threadIdx.x);
    own += WHOLE * COPY_THREADS;
    if (TAIL == 8) bits[WORDS - 1] = __ldg(reinterpret_cast<const u8*>(own) + threadIdx.x);
    if (TAIL == 16)
        bits[WORDS - 1] = __ldg(reinterpret_cast<const unsigned short*>(own) + threadIdx.x);
}

// Number of the haplotype in a slot.
__device__ __forceinline__ int haplotype_of(int chunk, int slot) {
    const int w = slot / 32, first = 32 * (chunk * CHUNK_WORDS + w * COPY_THREADS);
    return first + (w < WHOLE ? 32 * threadIdx.x : TAIL * threadIdx.x) + slot % 32;
}

// Where the state in a slot of a thread is in memory: haplotypes of a word are PITCH apart.
__device__ __forceinline__ int place_of(int chunk, int w, int bit, int thread) {
    const int first = chunk * CHUNK_WORDS + w * COPY_THREADS;
    if (w < WHOLE) return bit * PITCH + first + thread;
    return (TAIL * thread % 32 + bit) * PITCH + first + TAIL * thread / 32;
}
__device__ __forceinline__ int place_of(int chunk, int slot) {
    return place_of(chunk, slot / 32, slot % 32, threadIdx.x);
}

__device__ __forceinline__ void load_states(States& states, const float* from, int chunk) {
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++) states[i] = from[place_of(chunk, i)];
}
__device__ __forceinline__ void store_states(const States& states, float* to, int chunk) {
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++) to[place_of(chunk, i)] = states[i];
}

// In some states in memory, 0 for what does not count: padding and the target's own haplotypes. A
// thread has written the states that it clears. Padding is whole words: threads store side by side.
__device__ __forceinline__ void clear_uncounted(float* states, int n, const Bits& counted,
                                                int chunk) {
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        u32 left = ~counted[w] & (w < WHOLE ? ALL : (1u << TAIL) - 1);
#pragma unroll 1
        for (; left; left &= left - 1) {
            float* to = states + place_of(chunk, w, __ffs((int)left) - 1, threadIdx.x);
            for (int i = 0; i < n; i++) to[(i64)i * STATE_FLOATS] = 0.0f;
        }
    }
}

__device__ __forceinline__ int rounded(float number) {
    return (int)(__float_as_uint(__fadd_rn(number, ROUND)) - ROUND_BITS);
}

__device__ __forceinline__ int add_warp(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL, value);
#else
#pragma unroll
    for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(ALL, value, apart);
    return value;
#endif
}
__device__ __forceinline__ int most_of_warp(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL, value);
#else
#pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        const int other = __shfl_xor_sync(ALL, value, apart);
        value = other > value ? other : value;
    }
    return value;
#endif
}

// Sums and maxima over a thread block. Two sets of parts by turns: one barrier a sum.
struct Team {
    i64* parts;
    int turn;

    __device__ __forceinline__ i64 add(i64 value) {  // of numbers from 0 to below 2^42
        value = (i64)add_warp((int)(value >> 16)) * 65536 + add_warp((int)(value & 0xFFFF));
        return exchange<false>(value);
    }
    __device__ __forceinline__ int add(int value) { return (int)exchange<false>(add_warp(value)); }
    __device__ __forceinline__ int most(int value) {
        return (int)exchange<true>(most_of_warp(value));
    }
    template <bool MOST>
    __device__ __forceinline__ i64 exchange(i64 value) {
        if (WARPS == 1) return value;
        turn ^= WARPS;
        if (threadIdx.x % 32 == 0) parts[turn + threadIdx.x / 32] = value;
        __syncthreads();
        value = parts[turn];
#pragma unroll
        for (int w = 1; w < WARPS; w++) {
            const i64 other = parts[turn + w];
            value = !MOST ? value + other : other > value ? other : value;
        }
        return value;
    }
};

// A transition and an emission of a thread's states; returns the units of those that match.
__device__ __forceinline__ int step(States& states, const Bits& match, float stay, float jump,
                                    float loss) {
    u32 units = 0;
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++) {
        float value = __fmaf_rn(states[i], stay, jump);
        if (match[i / 32] & 1u << i % 32) units += (u32)rounded(value);
        else value = __fmul_rn(value, loss);
        states[i] = value;
    }
    return (int)units;
}

// `step` without the sum, where the mass is known.
__device__ __forceinline__ void repeat_step(States& states, const Bits& match, float stay,
                                            float jump, float loss) {
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++) {
        const float value = __fmaf_rn(states[i], stay, jump);
        states[i] = match[i / 32] >> i % 32 & 1 ? value : __fmul_rn(value, loss);
    }
}

__device__ __forceinline__ int count_finer(const States& states, const Bits& match, float scale) {
    u32 units = 0;
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++)
        if (match[i / 32] >> i % 32 & 1) units += (u32)rounded(__fmul_rn(states[i], scale));
    return (int)units;
}

__device__ __forceinline__ void match_bits(Bits& match, const Bits& row, const Bits& counted,
                                           int allele) {
    const u32 flip = allele ? 0u : ALL;
#pragma unroll
    for (int w = 0; w < WORDS; w++) match[w] = (row[w] ^ flip) & counted[w];
}

// Sum of all states after the emission, in units. `at`: where states are if they are in chunks.
struct Massed {
    const u32* row;
    const u32* counted;
    const float* at;
    int allele;
    float loss;
};
__device__ __forceinline__ double mass_of(int matched, const States& states, const Bits& match,
                                          const Massed& given, Team& team) {
    int shift = 0;
#pragma unroll 1
    while (matched < COARSE && shift < FINEST) {
        shift += FINER;
        const float scale = (float)(1 << shift);
        if (COPY_CHUNKS == 1) {
            matched = team.add(count_finer(states, match, scale));
        } else {
            matched = 0;
#pragma unroll 1
            for (int c = 0; c < COPY_CHUNKS; c++) {
                States own;
                Bits row, counted;
                load_states(own, given.at, c);
                load_bits(row, given.row, c);
                load_bits(counted, given.counted, c);
                match_bits(row, row, counted, given.allele);
                matched += count_finer(own, row, scale);
            }
            matched = team.add(matched);
        }
    }
    const double unit = __longlong_as_double((i64)(1023 - shift) << 52);
    const double mass = __dmul_rn((double)matched, unit);
    const double rest = __dsub_rn((double)COPY_UNITS, mass);
    return __dadd_rn(mass, __dmul_rn((double)given.loss, rest > 0.0 ? rest : 0.0));
}

__device__ __forceinline__ float stay_of(double keep, double mass) {
    return __double2float_rn(__ddiv_rn(keep, mass));
}

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(COPY_THREADS)
    copy_forward(const u32* __restrict__ rows, int row_words, const int* __restrict__ sites,
                 const double* __restrict__ keep, const float* __restrict__ jump,
                 const u8* __restrict__ alleles, const u32* __restrict__ counted,
                 const Task* __restrict__ tasks, float* kept, float* scratch,
                 float* stays) {
    __shared__ i64 parts[2 * WARPS];
    Team team = {parts, 0};
    const Task& task = tasks[blockIdx.x];
    const int n = (int)task.n_called;
    const float loss = (float)task.loss;
    const u32* mask = counted + task.mask * PITCH;
    sites += task.called;
    keep += task.called;
    jump += task.called;
    alleles += task.alleles;
    stays += task.stays;
    kept += task.kept * STATE_FLOATS;
    scratch += (i64)blockIdx.x * CHECKPOINT * STATE_FLOATS;  // the states of all chunks

    States states;
    Bits row, mask_bits, match;
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++) states[i] = 0.0f;  // the first transition keeps none
    if (COPY_CHUNKS == 1) {
        load_bits(mask_bits, mask, 0);
        if (n) load_bits(row, rows + (i64)sites[0] * row_words, 0);
    }
    int site = n ? sites[0] : 0, next = n > 1 ? sites[1] : site;
    double mass = COPY_UNITS;
#pragma unroll 1
    for (int m = 0; m < n; m++) {
        const u32* own = rows + (i64)site * row_words;
        const int allele = alleles[m], far = m + 2 < n ? sites[m + 2] : next;
        const float fresh = jump[m], stay = stay_of(keep[m], mass);
        const bool keeps = m % CHECKPOINT == 0;
        float* to = kept + (i64)(m / CHECKPOINT) * STATE_FLOATS;
        int matched = 0;
        if (threadIdx.x == 0) stays[m] = stay;
        if (COPY_CHUNKS == 1) {
            match_bits(match, row, mask_bits, allele);
            load_bits(row, rows + (i64)next * row_words, 0);  // of the next site, ahead of its use
            if (keeps) store_states(states, to, 0);
            matched = step(states, match, stay, fresh, loss);
        } else {
#pragma unroll 1
            for (int c = 0; c < COPY_CHUNKS; c++) {
                if (m) load_states(states, scratch, c);
                load_bits(row, own, c);
                load_bits(mask_bits, mask, c);
                match_bits(match, row, mask_bits, allele);
                if (keeps) store_states(states, to, c);
                matched += step(states, match, stay, fresh, loss);
                store_states(states, scratch, c);
            }
        }
        mass = mass_of(team.add(matched), states, match, {own, mask, scratch, allele, loss}, team);
        site = next;
        next = far;
    }
}
#else

// Haplotypes with a large posterior at a called site and their units, a run of each warp; sums of
// all and of the others.
struct List {
    const int2* entries;
    const int* counts;
    i64 total, rest;
    double place;
};

// Units that carry the minor allele, of one site.
__device__ __forceinline__ i64 carried(const List& list, const u32* column, int bit) {
    i64 sum = 0;
#pragma unroll 1
    for (int w = 0; w < WARPS; w++) {
        const int2* entries = list.entries + w * RUN;
        const int count = list.counts[w];
#pragma unroll 1
        for (int begin = 0; begin < count; begin += ADDED) {
            const int end = count < begin + ADDED ? count : begin + ADDED;
            u32 part = 0;
#pragma unroll 4
            for (int e = begin; e < end; e++) {
                const int2 entry = entries[e];
                part += (u32)entry.y & (0u - (__ldg(column + entry.x) >> bit & 1u));
            }
            sum += part;
        }
    }
    return sum;
}

struct Panel {
    const u32* columns;
    const int* minor;
    const u8* flipped;
    const double* cm;
    i64 n_columns;
};

__device__ __forceinline__ double share_of(i64 sum, i64 rest, i64 total, i64 carriers,
                                           double n_states) {
    const double even = __ddiv_rn(__ll2double_rn(rest * carriers), n_states);
    return __ddiv_rn(__dadd_rn(__ll2double_rn(sum), even), __ll2double_rn(total));
}

// Doses of the sites from `begin` to `end`, between two sites with posteriors.
__device__ __forceinline__ void fill_between(i64 begin, i64 end, const Panel& panel,
                                             const Task& task, const int* own, const List& left,
                                             const List& right, unsigned short* out) {
    const double span = __dsub_rn(right.place, left.place), n_states = (double)task.n_states;
    const bool alike = left.entries == right.entries;
    for (i64 site = begin + threadIdx.x; site < end; site += COPY_THREADS) {
        const u32* column = panel.columns + site / 32 * panel.n_columns;
        const int bit = (int)(site % 32);
        i64 carriers = panel.minor[site];
        for (int k = 0; k < (int)task.n_own; k++) carriers -= __ldg(column + own[k]) >> bit & 1u;
        const i64 sum = carried(left, column, bit);
        const double before = share_of(sum, left.rest, left.total, carriers, n_states);
        double share = before;
        if (!alike) {
            const i64 other = carried(right, column, bit);
            const double after = share_of(other, right.rest, right.total, carriers, n_states);
            const double weight =
                span > 0.0 ? __ddiv_rn(__dsub_rn(panel.cm[site], left.place), span) : 0.0;
            share = __dadd_rn(before, __dmul_rn(weight, __dsub_rn(after, before)));
        }
        const int dose = __double2int_rn(__dmul_rn(share, (double)DOSE_UNITS));
        out[site - task.first] = (unsigned short)(panel.flipped[site] ? DOSE_UNITS - dose : dose);
    }
}

extern "C" __global__ void __launch_bounds__(COPY_THREADS)
    copy_backward(const u32* __restrict__ rows, int row_words, const int* __restrict__ sites,
                  const double* __restrict__ keep, const float* __restrict__ jump,
                  const u8* __restrict__ alleles, const u32* __restrict__ counted,
                  const Task* __restrict__ tasks, const float* kept, float* scratch,
                  const float* __restrict__ stays, const u32* __restrict__ columns,
                  const int* __restrict__ minor, const u8* __restrict__ flipped,
                  const double* __restrict__ cm, const int* __restrict__ owned, double small,
                  float* passed, int2* lists, unsigned short* out) {
    __shared__ i64 parts[2 * WARPS];
    __shared__ int counts[2 * WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Team team = {parts, 0};
    const Task& task = tasks[blockIdx.x];
    const int n = (int)task.n_called;
    const float loss = (float)task.loss;
    const i64 first = task.first, last = task.last;
    const u32* mask = counted + task.mask * PITCH;
    const int* own = owned + task.own;
    const Panel panel = {columns, minor, flipped, cm, 32ll * row_words};
    sites += task.called;
    keep += task.called;
    jump += task.called;
    alleles += task.alleles;
    stays += task.stays;
    kept += task.kept * STATE_FLOATS;
    scratch += (i64)blockIdx.x * CHECKPOINT * STATE_FLOATS;
    passed += (i64)blockIdx.x * STATE_FLOATS;  // backward states, if they are in chunks
    lists += (i64)blockIdx.x * 2 * STATE_FLOATS;
    out += task.out;

    if (lane == 0) counts[warp] = counts[WARPS + warp] = 0;
    __syncthreads();
    List here = {lists, counts, 1, 1, 0.0}, there = here;  // every haplotype alike
    if (!n) {
        fill_between(first, last, panel, task, own, here, here, out);
        return;
    }
    const double n_states = (double)task.n_states, least = __ddiv_rn(small, n_states);
    float stay = 0.0f, fresh = __double2float_rn(__ddiv_rn((double)COPY_UNITS, n_states));
    States states, others;  // backward; forward, then posteriors
    Bits row, mask_bits, match;
#pragma unroll
    for (int i = 0; i < COPY_STATES; i++) states[i] = 0.0f;
    if (COPY_CHUNKS == 1) load_bits(mask_bits, mask, 0);
#pragma unroll 1
    for (int m = n - 1; m >= 0; m--) {
        if (m == n - 1 || m % CHECKPOINT == CHECKPOINT - 1) {
            const int start = m - m % CHECKPOINT;
            const float* from = kept + (i64)(m / CHECKPOINT) * STATE_FLOATS;
#pragma unroll 1
            for (int c = 0; c < COPY_CHUNKS; c++) {
                load_states(others, from, c);
                if (COPY_CHUNKS > 1) load_bits(mask_bits, mask, c);
                load_bits(row, rows + (i64)sites[start] * row_words, c);
#pragma unroll 1
                for (int i = start; i <= m; i++) {
                    match_bits(match, row, mask_bits, alleles[i]);
                    if (i < m) load_bits(row, rows + (i64)sites[i + 1] * row_words, c);
                    repeat_step(others, match, stays[i], jump[i], loss);
                    store_states(others, scratch + (i64)(i - start) * STATE_FLOATS, c);
                }
                clear_uncounted(scratch, m + 1 - start, mask_bits, c);
            }
        }
        const int site = sites[m], allele = alleles[m];
        float* ahead = scratch + (i64)(m % CHECKPOINT) * STATE_FLOATS;
        const u32* bits = rows + (i64)site * row_words;
        int matched = 0, largest = 0;
#pragma unroll 1
        for (int c = 0; c < COPY_CHUNKS; c++) {
            load_states(others, ahead, c);
            load_bits(row, bits, c);
            if (COPY_CHUNKS > 1) {
                if (m < n - 1) load_states(states, passed, c);
                load_bits(mask_bits, mask, c);
            }
            match_bits(match, row, mask_bits, allele);
            u32 units = 0;
#pragma unroll
            for (int i = 0; i < COPY_STATES; i++) {
                const float value = __fmaf_rn(states[i], stay, fresh);
                const float other = __fmul_rn(value, loss);
                const bool same = match[i / 32] >> i % 32 & 1;
                if (same) units += (u32)rounded(value);
                states[i] = same ? value : other;
                others[i] = __fmul_rn(others[i], value);
            }
            matched += (int)units;
#pragma unroll
            for (int i = 0; i < COPY_STATES; i++)
                largest = max(largest, __float_as_int(others[i]));
            if (COPY_CHUNKS > 1) {
                store_states(states, passed, c);
                store_states(others, ahead, c);
            }
        }
        const double mass = mass_of(team.add(matched), states, match,
                                    {bits, mask, passed, allele, loss}, team);
        stay = stay_of(keep[m], mass);
        fresh = jump[m];
        const i64 behind = m + 1 < n ? sites[m + 1] : last;
        if (m && sites[m - 1] >= last) continue;  // in the margin behind the window
        if (behind < first) break;                // in the margin before it

        largest = team.most(largest);
        const float scale = __int_as_float(min(275 - (largest >> 23), 254) << 23);
        there = here;
        int2* entries = lists + (m & 1) * STATE_FLOATS;
        here.entries = entries;
        here.counts = counts + (m & 1) * WARPS;
        here.place = cm[site];
        entries += warp * RUN;
        int sum = 0;
#pragma unroll 1
        for (int c = 0; c < COPY_CHUNKS; c++) {
            if (COPY_CHUNKS > 1) load_states(others, ahead, c);
#pragma unroll
            for (int i = 0; i < COPY_STATES; i++) {
                const int units = rounded(__fmul_rn(others[i], scale));
                sum += units;
                others[i] = __int_as_float(units);
            }
            if (COPY_CHUNKS > 1) store_states(others, ahead, c);
        }
        here.total = team.add((i64)sum);
        const int limit = (int)__dmul_rn(__ll2double_rn(here.total), least);
        int count = 0;
        int listed = 0;
#pragma unroll 1
        for (int c = 0; c < COPY_CHUNKS; c++) {
            if (COPY_CHUNKS > 1) load_states(others, ahead, c);
#pragma unroll
            for (int i = 0; i < COPY_STATES; i++) {
                const int units = __float_as_int(others[i]);
                const u32 large = __ballot_sync(ALL, units > limit);
                if (!large) continue;
                if (units > limit) {
                    entries[count + __popc(large & ((1u << lane) - 1))] = {haplotype_of(c, i), units};
                    listed += units;
                }
                count += __popc(large);
            }
        }
        if (lane == 0) counts[(m & 1) * WARPS + warp] = count;
        here.rest = here.total - team.add((i64)listed);
        __syncthreads();
        if (m + 1 == n) there = here;
        const i64 begin = site + 1 > first ? site + 1 : first;
        fill_between(begin, behind < last ? behind : last, panel, task, own, here, there, out);
        if (threadIdx.x == 0 && site >= first && site < last)
            out[site - first] = (unsigned short)(DOSE_UNITS * allele);
        if (m == 0) fill_between(first, site < last ? site : last, panel, task, own, here, here, out);
        __syncthreads();
    }
}
#endif

// Grid: parts of 32 sites, words of a row in runs of 8; a warp has one of each.
extern "C" __global__ void __launch_bounds__(256)
    turn_columns(const u32* __restrict__ rows, int row_words, i64 n_sites,
                 const u8* __restrict__ flipped, u32* columns) {
    const int lane = threadIdx.x % 32, word = blockIdx.y * 8 + threadIdx.x / 32;
    if (word >= row_words) return;
    const i64 site = 32ll * blockIdx.x + lane;
    u32 bits = 0;
    if (site < n_sites) bits = rows[site * row_words + word] ^ (flipped[site] ? ALL : 0u);
    u32 own = 0;
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const u32 column = __ballot_sync(ALL, bits >> k & 1);
        if (k == lane) own = column;
    }
    columns[((i64)blockIdx.x * row_words + word) * 32 + lane] = own;
}
