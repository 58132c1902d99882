"""Compile the CPU's kernels in advance, so that no job has to (`popdesic tune`).

Numba keeps compiled code in `__pycache__` beside the module, where all jobs and nodes find it, or,
where that folder cannot be written, in the user's cache (NUMBA_CACHE_DIR sets another). It holds
for a CPU model and for the modification time of the module. What is not in it is compiled by every
job that needs it first, also by two at a time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import chain

import numpy as np
from numba.core.sigutils import normalize_signature
from numba.core.types import NamedTuple, NamedUniTuple, Type

from ..cohort import genotypes_cpu, hardy_weinberg_cpu, standard_genotypes_cpu
from ..communities import dip_cpu, graph_sides_cpu, two_means_cpu
from ..components import signed_sums_cpu
from ..copying import (
    copying_cpu,
    likelihoods_cpu,
    local_ancestry_cpu,
    painting_cpu,
    phasing_cpu,
)
from ..core import number_text_cpu
from ..core.threads import run_forked, usable_cpus
from ..distance import near_points_cpu, nearest_cpu, neighbor_lists_cpu, pair_summary_cpu
from ..engine import (
    bitgemm_cpu,
    carrier_sums_cpu,
    column_sums_cpu,
    flipped_sums_cpu,
    genotype_sums_cpu,
    minplus_cpu,
    site_pairs_cpu,
)
from ..epistasis import (
    cells_cpu,
    grouped_tables_cpu,
    interaction_cpu,
    onehot_cpu,
    quad_kernels_cpu,
    residual_cpu,
    residual_scan_cpu,
    scan_kernels_cpu,
    site_tables_cpu,
)
from ..geodesic import block_paths_cpu, spanning_cpu, sparse_paths_cpu, trees_cpu
from ..ibd import candidates_cpu, haploid_cpu, segments_cpu
from ..ibd.segments import ScoreTables
from ..io import (
    bcf_records_cpu,
    codecs_cpu,
    listed_rows_cpu,
    open_records_cpu,
    vcf_text_cpu,
    zarr_calls_cpu,
)
from ..io.batches import DecodedRecords
from ..maps import (
    near_ranks_cpu,
    nearest_rows_cpu,
    neighbor_union_cpu,
    outside_points_cpu,
    umap_epoch_cpu,
)
from ..population import (
    allele_sums_cpu,
    equilibrium_cpu,
    homozygous_runs_cpu,
    plane_counts_cpu,
    sweeps_cpu,
)
from ..relatives import expected_genotypes_cpu, matches_cpu, one_against_all_cpu, screen_cpu

#: Types of closures (`geodesic/weights.py`).
NUMBERS = tuple(map(np.dtype, ("int32", "int64", "float32", "float64")))
#: Numbers of counts of one pass of the bit-GEMM (`CpuBackend._accumulate`).
FORMS = (1, 2, 3, 4, 5)

_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_ROWS = "Array(uint8, 2, 'C', readonly=True)"


_DECODED = (
    "(int8[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64[::1],"
    " int64[:, ::1], int8[:, ::1])"
)


def _types(signature: str) -> tuple:
    return normalize_signature(signature)[0]


def _named(name: type, fields: str) -> Type:
    """The type of a NamedTuple with fields of these types."""
    types = _types(fields)
    if len(set(types)) == 1:
        return NamedUniTuple(types[0], len(types), name)
    return NamedTuple(types, name)


def _compile(function, *parts: str | Type) -> None:
    """Compile a function for types of arguments, as a call with such arguments does.

    The types themselves are the key in numba's cache: under a text no call would find it.
    """
    types = [_types(part) if isinstance(part, str) else (part,) for part in parts]
    function.compile(tuple(chain.from_iterable(types)))


def decoders_of_text() -> None:
    haploid, filters = "uint8[::1], int64[::1], int64[::1]", "uint8[::1], int64[::1], boolean"
    decode = f"(uint8[::1], int64, boolean[::1], int64, {haploid}, {filters}, float64[::1])"
    _compile(vcf_text_cpu.decode_records, decode, _named(DecodedRecords, _DECODED))
    _compile(vcf_text_cpu.count_columns, "(uint8[::1], int64)")
    _compile(open_records_cpu.choose_allele, f"({_BYTES}, int64, int64, boolean[::1])")


def decoders_of_bcf() -> None:
    _compile(bcf_records_cpu.split_records, f"({_BYTES}, int64)")
    inputs = f"{_BYTES}, int64, boolean[::1], int64[::1], int64[::1], boolean[::1], float64[::1]"
    _compile(bcf_records_cpu.decode_records, f"({inputs})", _named(DecodedRecords, _DECODED))


def decoders_of_zarr() -> None:
    counters = "int64[::1], int64[::1]"
    flags = "boolean[::1], int64[::1], boolean[::1]"
    inputs = f"int8[:, :, ::1], boolean[:, ::1], int64[::1], {flags}"
    _compile(zarr_calls_cpu.decode_calls, f"({inputs}, int8[:, ::1], {counters})")


def codecs_of_lists() -> None:
    encode = "uint64[:, ::1], int64, int64, uint8[::1], int64[::1]"
    _compile(listed_rows_cpu.encode_rows, f"({encode})")
    decode = f"{_BYTES}, int64[::1], int64, int64[::1], int64, uint8[:, ::1]"
    _compile(listed_rows_cpu.decode_rows, f"({decode})")
    records = f"{_BYTES}, int64[::1], int64, int64, int64[::1], int64[::1]"
    count = f"{records}, int64[:, :, ::1], int64[:, ::1], boolean[::1]"
    _compile(listed_rows_cpu.count_records, f"({count})")


def codecs_of_genotypes() -> None:
    _compile(codecs_cpu.pack_bed, "(int8[:, ::1],)")
    for rows in ("uint8[:, ::1]", _ROWS):
        _compile(codecs_cpu.take_samples, f"({rows}, int64[::1])")
        _compile(codecs_cpu.unpack_bed, f"({rows}, int64)")
        _compile(genotypes_cpu.count_bytes, f"({rows}, int32[:, ::1])")
        _compile(
            genotypes_cpu.pack_planes_loop, f"({rows}, uint64[::1], uint64[::1], uint64[:, :, :])"
        )
    masks = "int64[::1], uint64[::1], int64[::1], int64[::1]"
    _compile(genotypes_cpu.count_by_group_loop, f"(uint64[:, ::1], {masks}, int64[:, :, ::1])")
    _compile(
        genotypes_cpu.fill_site_planes_loop, "(uint64[:, ::1], int64, int64, uint64[:, :, ::1])"
    )
    _compile(hardy_weinberg_cpu.equilibrium_loop, "(int64[:, ::1], float64, boolean, float64[::1])")


def sums_of_relationships() -> None:
    matrices = "float64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1]"
    _compile(signed_sums_cpu.add_rows_loop, f"({matrices}, int64, int64)")
    chosen = "int8[:, ::1], int64[::1]"
    values = "float64[:, ::1], float64[:, ::1]"
    _compile(standard_genotypes_cpu.fill_rows_loop, f"({chosen}, {values})")
    square, short = "float64[:, ::1]", "int16[:, ::1]"
    scales = ", ".join(["float64"] * 4)
    _compile(
        expected_genotypes_cpu.fill_loop,
        f"(int8[:, ::1], {square}, {square}, {scales}, {short}, {short})",
    )
    _compile(expected_genotypes_cpu.add_loop, f"({short}, {short}, int64[:, ::1])")
    _compile(expected_genotypes_cpu.subtract_loop, f"({', '.join([square] * 5)})")
    columns = "float64[:, ::1], int64[::1], float64[:, ::1]"
    _compile(standard_genotypes_cpu.fill_columns, f"({chosen}, {columns})")
    _compile(
        standard_genotypes_cpu.list_missing_loop,
        f"({chosen}, int32[::1], int64[::1], int32[::1])",
    )


def products_of_genotypes() -> None:
    words = "uint32[:, ::1]"
    _compile(genotype_sums_cpu.sum_codes_loop, f"({words}, int64, int32[:, :, ::1], int64[:, ::1])")
    _compile(genotype_sums_cpu.sum_missing_loop, f"({words}, int64[:, ::1], int64[:, ::1])")
    rows, listed = "uint64[:, ::1]", "int64[::1], int32[::1]"
    _compile(genotype_sums_cpu.count_differing, f"({rows}, int64[:, ::1])")
    _compile(genotype_sums_cpu.list_differing, f"({rows}, int64[::1], int64[::1], {listed})")
    lists = f"Tuple(({listed}, int64[::1])), int64, int64"
    table = "int64[:, ::1], int64, int64[:, :, ::1]"
    _compile(genotype_sums_cpu.sum_listed_sites, f"({lists}, {table})")
    table = "UniTuple(int64[:, ::1], 3), int64, int64[:, ::1]"
    _compile(genotype_sums_cpu.sum_listed_people, f"({lists}, {table})")
    _compile(genotype_sums_cpu.transpose_codes, f"(uint8[:, ::1], {words})")
    blocks = "float64[:, ::1], float64[:, ::1]"
    _compile(column_sums_cpu.add_products, f"({blocks}, int64, int64, float64[:, :, ::1])")
    _compile(column_sums_cpu.add_combination, f"({blocks}, float64[:, ::1], int64, int64)")
    block, narrow = "float64[:, ::1]", "float64[:, :, ::1]"
    _compile(column_sums_cpu.add_own_products, f"({narrow}, {block}, int64, {narrow})")
    _compile(column_sums_cpu.add_own, f"({block}, {narrow}, {block}, int64, int64)")
    lists, whole, small = "int64[::1], int32[::1]", "int64[:, ::1]", "int32[:, ::1]"
    numbers, row, values = "float64[:, ::1]", "float64[::1]", "int32[:, :, ::1]"
    _compile(flipped_sums_cpu.list_missing_of_words, f"({words}, {lists})")
    _compile(flipped_sums_cpu.sum_listed, f"({lists}, int64, int64, {small}, {whole})")
    _compile(flipped_sums_cpu.draw_signs, "(uint64[:, ::1], int64, int64, int8[:, :, ::1])")
    signs = "int8[:, ::1]"
    _compile(
        flipped_sums_cpu.apply_signs,
        f"({numbers}, {signs}, {whole}, {values}, {small}, {row}, {whole})",
    )
    sites = _named(flipped_sums_cpu.SiteScale, f"({row}, {row}, {numbers})")
    filled = _named(flipped_sums_cpu.SiteValues, f"({values}, int32[::1], {whole}, {small})")
    inputs = f"({whole}, {whole}, {row})", sites, f"({row}, {numbers})"
    _compile(flipped_sums_cpu.standardise, *inputs, filled, "(int64, int64, int64)")
    _compile(
        flipped_sums_cpu.turn_back,
        f"({whole}, {row}, {numbers}, {numbers}, {signs}, {numbers})",
    )


def sums_of_populations() -> None:
    counts, values = "int32[:, :, ::1], int32[:, :, ::1], boolean[::1]", "float64[:, ::1]"
    _compile(allele_sums_cpu.own_sums_loop, f"({counts}, boolean[::1], {values})")
    _compile(allele_sums_cpu.pair_sums_loop, f"({counts}, boolean[::1], {values})")
    numbers = "int64[::1], int64[::1]"
    _compile(equilibrium_cpu.rejected_loop, f"({numbers}, float64, {numbers}, float64[::1])")
    values = "int32[:, :, ::1], int64, float64[::1], float64[::1]"
    _compile(allele_sums_cpu.private_sums_loop, f"({values})")
    planes = "uint64[:, :, ::1], uint64[::1]"
    _compile(
        plane_counts_cpu.count_by_site_loop,
        f"({planes}, int64[::1], int64, int64, int32[:, ::1])",
    )
    _compile(plane_counts_cpu.count_by_sample, f"({planes}, int64[::1], int64[:, ::1])")
    bits = "uint64[::1], uint64[::1], int64, int64"
    numbers = "int64[::1], int64[::1], float64[::1], uint8[::1], int64[:, ::1]"
    _compile(homozygous_runs_cpu.find_runs, f"({bits}, {numbers})")
    _compile(sweeps_cpu.shared_loop, "(uint8[:, ::1], float64[::1], boolean[::1])")


def segments_of_descent() -> None:
    planes = "Array(uint64, 3, 'C', readonly=True)"
    tables = "int32[:, ::1], int64[::1], int32[:, ::1]"
    tables = _named(ScoreTables, f"({tables}, {tables}, int64[::1], int64[::1])")
    numbers = "int64[::1], float64[::1], int64[::1], float64[::1], int64[:, ::1]"
    inputs = f"({planes}, {planes}, int64[:, ::1])"
    _compile(segments_cpu.find_segments, inputs, tables, f"({numbers})")
    pairs = "int8[:, ::1], int64, int64, float64[:, ::1], float64[::1], float64[::1]"
    _compile(haploid_cpu.fit_block, f"({pairs}, float64[:, ::1], uint8[:, ::1])")


def copies_of_haplotypes() -> None:
    words, whole = "uint32[:, ::1]", "int64[::1]"
    called, flags = f"Tuple(({whole}, int8[::1]))", "boolean[::1]"
    model = "Tuple((float64[::1], float32[::1], float64[:, ::1], float64))"
    sites = f"{words}, uint64[:, ::1], {whole}, {flags}, float64[::1], {called}, {model}"
    rest = f"uint32[::1], {whole}, int64, UniTuple(int64, 2), uint16[::1]"
    _compile(copying_cpu.impute_loop, f"({sites}, {rest})")
    _compile(copying_cpu.turn_rows, f"({words}, {flags}, uint64[:, ::1])")
    left_out = "float64[::1], float32, uint32[::1], int64, UniTuple(int64, 2), uint16[::1]"
    _compile(copying_cpu.left_out_loop, f"({words}, {called}, {left_out})")
    chances = "float64[::1], uint32[::1], int64, float32"
    _compile(copying_cpu.likelihood_loop, f"({words}, {whole}, int8[::1], {chances})")
    passed = f"{words}, {called}, Tuple((float64[::1], float32)), uint32[::1], int64"
    passed += ", UniTuple(int64, 2)"
    painted = f"{passed}, float64[::1], {whole}, float64[:, ::1], float64[::1]"
    _compile(painting_cpu.paint_loop, f"({painted})")
    _compile(painting_cpu.label_loop, f"({passed}, {whole}, float32[:, ::1])")
    of_site = "float64[::1], float64[::1], float64[::1], float64[:, :, ::1], float64[::1]"
    _compile(local_ancestry_cpu.pair_loop, f"(float64[:, ::1], float64[:, ::1], {of_site})")
    draws = f"{chances}, Tuple((uint64, int64, int64)), int64, int8[:, ::1], int8[:, ::1]"
    _compile(phasing_cpu.phase_loop, f"({words}, {whole}, {whole}, int8[::1], {draws})")
    emitted = "Tuple((int8[::1], float32[::1], float64[:, ::1]))"
    drawn = f"{chances}, Tuple((uint64, int64, int64)), int64, int8[::1]"
    _compile(likelihoods_cpu.draw_loop, f"({words}, UniTuple({whole}, 2), {emitted}, {drawn})")
    ends = "UniTuple(int64, 2)"
    _compile(likelihoods_cpu.join_loop, f"(uint16[:, :, ::1], {ends}, {ends}, uint16[:, ::1])")


def epochs_of_maps() -> None:
    umap_epoch_cpu.epoch_kernel()
    umap_epoch_cpu.density_kernels()
    lists, kept = "int64[:, ::1], float64[:, ::1]", "boolean[:, ::1], float64, int64[::1]"
    graph = "int64[::1], int64[::1], float64[::1]"
    _compile(nearest_rows_cpu.keep_smallest_loop, f"(float64[:, ::1], int64, {lists})")
    _compile(
        neighbor_union_cpu.unite_loop,
        f"({lists}, float64[:, ::1], boolean[:, ::1], int64, int64)",
    )
    _compile(neighbor_union_cpu.count_edges, f"({lists}, {kept}, int64[::1])")
    _compile(neighbor_union_cpu.place_back, f"({lists}, {kept}, {graph}, int64, int64)")
    lengths = "int64[::1], int64[::1], float64[::1], int64, int64"
    _compile(neighbor_union_cpu.find_lengths, f"({lists}, {lengths})")
    _compile(neighbor_union_cpu.sort_rows, f"({lists}, float64, {graph}, int64, int64)")


def texts_of_numbers() -> None:
    out = "uint8[:, ::1], int64[::1]"
    _compile(number_text_cpu.write_numbers, f"(float64[::1], int64, float64[::1], {out})")
    _compile(number_text_cpu.write_integers, f"(int64[::1], {out})")
    _compile(number_text_cpu.append_loop, f"({out}, int64[::1], int64, int64[::1], uint8[::1])")


def products_of_planes() -> None:
    for form in FORMS:
        bitgemm_cpu.tile_kernel(form)
    carrier_sums_cpu.compile_kernels()


def lists_of_neighbors() -> None:
    lists = "float64[:, ::1], int32[:, ::1], int32[:, ::1]"
    form = "int64, float64, float64, int64"
    counts, tile = "int64[:, :, ::1]", "float64[:, ::1]"
    _compile(nearest_cpu.fill_distances, f"({counts}, {form}, {tile}, int64, int64)")
    side = "int64[:, ::1], boolean, boolean, int64, int64"
    _compile(nearest_cpu.improve_lists, f"({tile}, {side}, {lists}, int64, int64)")
    _compile(neighbor_lists_cpu.merge_loop, f"({lists}, {lists}, int64, int64, int64)")
    points = "float64[:, ::1], float32[:, ::1]"
    sides = f"{points}, {points}, boolean, float64, float64"
    _compile(near_points_cpu.search, f"({sides}, {lists}, UniTuple(int64, 2))")
    points, found = "float64[:, ::1]" + 3 * ", int64[::1]", 2 * "float64[::1], " + "int64[::1]"
    _compile(outside_points_cpu.search_loop, f"({points}, {found}, int64, int64)")
    _compile(
        one_against_all_cpu.count_loop,
        "(uint64[:, ::1], uint64[:, :, ::1], int64[:, ::1], int64)",
    )


def screens_of_pairs() -> None:
    counts, lists = "int64[:, :, ::1]", "UniTuple(int64[:, ::1], 4)"
    numbers, limits = "int64, int64", "UniTuple(float64, 4), UniTuple(int64, 2)"
    block = f"{counts}, boolean, {limits}, {numbers}, {lists}, {numbers}"
    _compile(screen_cpu.screen_columns, f"({block})")
    _compile(screen_cpu.match_rows, f"({counts}, int64, {numbers}, {lists}, {numbers})")
    words = "uint64[:, :, ::1], uint64[:, :, ::1]"
    _compile(
        matches_cpu.search_tiles, f"({words}, int64, UniTuple(int64, 2), boolean, int64[:, ::1])"
    )


def candidates_of_descent() -> None:
    candidates_cpu.pack_kernel()
    for n_words in candidates_cpu.WINDOW_WORDS:
        candidates_cpu.find_kernel(n_words)


def pairs_of_sites() -> None:
    site_pairs_cpu.band_kernel()
    site_pairs_cpu.complete_kernel()
    site_pairs_cpu.masked_kernel()
    site_pairs_cpu.tables_kernel()
    site_pairs_cpu.prune_kernel()


def paths_between_points() -> None:
    for number in NUMBERS:
        minplus_cpu.block_kernel(number)
        for layout in ("[:, ::1]", "[:, :]"):  # a whole matrix, a block of one
            _compile(minplus_cpu.mirror_upper, f"({number}{layout},)")
            _compile(minplus_cpu.floyd_warshall, f"({number}{layout},)")
        trees_cpu.tree_kernel(number)
        sparse_paths_cpu.path_kernel(number)
        sparse_paths_cpu.nearest_kernel(number)
        block_paths_cpu.fill_kernel(number)
    _compile(spanning_cpu.spanning_edges, "(float64[:, ::1],)")


def ranks_on_maps() -> None:
    rows, lists = "float64[:, ::1], int64[::1]", "int64[:, ::1], int64[::1]"
    _compile(near_ranks_cpu.ranks_beyond_loop, f"({rows}, {lists})")


def figures_of_pairs() -> None:
    table, numbers = "float64[:, ::1]", "int64[::1], int64[::1], float64[::1]"
    bars = "float64[::1], float64[::1]"
    _compile(
        pair_summary_cpu.add_pair_rows, f"({table}, int64, {numbers}, {table}, {table}, {bars})"
    )


def splits_of_people() -> None:
    graph = "int64[::1], int64[::1]"
    block_paths_cpu.fill_kernel(np.dtype(np.float64))
    _compile(graph_sides_cpu.settle_sides, f"({graph}, boolean[::1], int64)")
    numbers = "int64[::1], int64[::1], int64, int64, int64"
    _compile(graph_sides_cpu.sides_of_edges, f"({graph}, {graph}, {numbers})")
    _compile(dip_cpu.twice_dip, "(float64[::1], float64[::1])")
    _compile(two_means_cpu.two_means_loop, "(float64[:, ::1], float64[:, ::1], int64, float64)")


def planes_of_scans() -> None:
    rows, numbers = "uint64[:, ::1], uint64[:, ::1]", "int64[:, ::1]"
    _compile(onehot_cpu.count_codes, f"({rows}, {numbers})")
    planes = "uint8[:, ::1], int64[::1], uint64[:, :, ::1]"
    _compile(onehot_cpu.fill_planes, f"({rows}, {planes})")


def scans_of_cases() -> None:
    cells_cpu.log2_kernel()
    scan_kernels_cpu.kernels()


def scans_of_quads() -> None:
    quad_kernels_cpu.quad_kernels()


def scans_of_residuals() -> None:
    residual_scan_cpu.residual_scan_kernel()
    residual_cpu.residual_kernels()


def tests_of_interaction() -> None:
    interaction_cpu.interaction_kernels()
    grouped_tables_cpu.grouped_kernels()
    site_tables_cpu.site_tables_kernel()


#: What is compiled, the longest first.
GROUPS: tuple[Callable[[], None], ...] = (
    *(
        scans_of_cases,
        paths_between_points,
        scans_of_residuals,
        scans_of_quads,
        products_of_planes,
        tests_of_interaction,
    ),
    *(decoders_of_bcf, decoders_of_text, decoders_of_zarr, pairs_of_sites),
    *(codecs_of_genotypes, codecs_of_lists),
    *(sums_of_populations, texts_of_numbers, sums_of_relationships, products_of_genotypes),
    *(epochs_of_maps, lists_of_neighbors, candidates_of_descent, segments_of_descent),
    *(copies_of_haplotypes, splits_of_people, screens_of_pairs, figures_of_pairs, ranks_on_maps),
    planes_of_scans,
)


def _timed(index: int) -> float:
    """Compile one of `GROUPS`, or read it from the cache; return the CPU seconds that it took."""
    start = time.process_time()
    gc.disable()  # the search for cycles in what the compiler made is a tenth of its time
    try:
        GROUPS[index]()
    finally:
        gc.enable()
    gc.collect()
    return time.process_time() - start


def compile_all(processes: int | None = None) -> dict[str, float]:
    """Compile all kernels of the CPU that are not in numba's cache yet.

    Parameters
    ----------
    processes : int, optional
        Copies of this process; by default one a usable CPU. 1: this process does it.

    Returns
    -------
    dict
        Name of a group -> CPU seconds that it took.
    """
    processes = usable_cpus() if processes is None else processes
    seconds = run_forked(_timed, [(index,) for index in range(len(GROUPS))], processes)
    names = (group.__name__.replace("_", " ") for group in GROUPS)
    return dict(zip(names, seconds, strict=True))
