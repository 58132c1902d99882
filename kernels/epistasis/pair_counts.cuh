// pair_counts: counts of two sites in the pair tables of cores whose tables are in the order of
// `table_index`, a warp's lanes beside each other.
//
// Include after `table_index` and TABLE_Z, with -DORDER=2 -DTABLE=1.

#pragma once

#include "scoring.cuh"

__device__ __forceinline__ Counts pair_counts(const u32* tables, int y, int z, int padded_sites) {
    const u32* table = tables + table_at(y / TILE_SITES, z / TABLE_Z * TABLE_Z, padded_sites);
    return read_counts(table, table_index(y % TILE_SITES, z % TABLE_Z), y % 8 * 4 + z % 8 / 2);
}
