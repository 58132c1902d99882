// information: what two sites together say about the phenotype, for scans of triples for interactions.
//
// Formula   known[y][z] = N I(yz; class) in nats = whole - sum over the nine cells of total[n0 + n1] -
//           part[n0] - part[n1], whole the same of one cell with all samples; total and part are the
//           fixed-point tables of n ln n (engine/backend.py, ScanData), `unit` nats a little less than
//           theirs, which also covers the rounding of sums with it.
// Shapes    known float (rows of sites, known_pitch), indexed from site 0; tables as `pair_counts` of
//           the including core reads them. Sites without missing genotypes.
// Threads   one per pair: x over z, y over rows.
//
// Include after `pair_counts`, with -DORDER=2 -DTABLE=1.

#pragma once

extern "C" __global__ void pair_information(const u32* tables, int first_site, int n_sites,
                                            int padded_sites, const i64* total, const i64* part,
                                            double unit, const u32* margins, u32 controls, u32 cases,
                                            float* known) {
    const int z = blockIdx.x * blockDim.x + threadIdx.x;
    for (int y = first_site + blockIdx.y; y < min(z, n_sites); y += gridDim.y) {
        if (z >= n_sites) return;
        Count cell[STATES][STATES], of_y[STATES], of_z[STATES];
        Count other = count_of(controls, cases);
        unpack(pair_counts(tables, y, z, padded_sites), cell);
        #pragma unroll
        for (int s = 0; s < STATES; ++s) {
            of_y[s] = read_count(margins, (i64)y * PLANES + s);
            of_z[s] = read_count(margins, (i64)z * PLANES + s);
            other = other - of_y[s];
        }
        i64 information = total[controls + cases] - part[controls] - part[cases];
        visit_plane(0, cell, of_y, other, of_z, [&](int, Count n) {
#if SPLIT_CELLS
            const u32 n0 = n.controls, n1 = n.cases;
#else
            const u32 n0 = n.packed >> 16, n1 = n.packed & 0xFFFF;
#endif
            information -= total[n0 + n1] - part[n0] - part[n1];
        });
        known[(i64)y * padded_sites + z] = (float)(information * unit);
    }
}
