// epistasis_parts: the order of the depth of one operand, that is of one x or, with JOINT = 2, of x and
// the site after it.
//
// Parts     Samples of one part have x in the same state. JOINT = 1: stored states alone, missing
//           first. JOINT = 2: the same states of both sites, without (2, 2), the one that both do
//           not store: a sample is multiplied once where each x for itself would take it once for
//           every x that it has in a stored state (at equal frequencies 8/9 of all samples
//           for two sites, not 4/3). Controls, then cases of each part are its two segments.
// Sums      JOINT = 2: eight parts for four tables (x in 0 or 1, the next in 0 or 1). In the order
//           01 02 00 20 | 10 12 11 21 (x, next) the parts of a table are neighbours. Four parts in a row
//           are added up; what stands there after each part is kept:
//             x in 0: sum 2        next in 0: sum 3 - sum 1 + sum 4
//             x in 1: sum 6        next in 1: sum 7 - sum 5 + sum 0
//
// Compile with -DSTATES=2|3 -DJOINT=1|2 (2: two stored states alone).

constexpr int RUN = 4;  // parts that are added up
constexpr int PARTS_OF_X = JOINT == 2 ? 2 * RUN : STATES, SEGMENTS = 2 * PARTS_OF_X;

// The stored states of one x in the order of the depth: missing first.
__device__ __forceinline__ int stored_state(int index) {
    return STATES == 2 ? index : (index + 2) % 3;
}
// State of site `which` of an operand in one part.
__device__ __forceinline__ int state_of_part(int part, int which = 0) {
    if (JOINT == 1) return stored_state(part);
    return (which == 0 ? 0x9580u : 0x5809u) >> (2 * part) & 3;  // two bits a part
}
