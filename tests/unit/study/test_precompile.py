"""`popdesic tune` compiles what jobs use, and what it compiled is not compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIRST = """\
from popdesic.study.precompile_cpu import GROUPS, compile_all
assert len(compile_all(1)) == len(GROUPS)
"""
#: In another process: the functions that jobs call, on small data.
WORK = """\
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import zarr
from oracles import epistasis
from oracles.residuals import random_residuals
from support import bcf_files as bcf
from support.one_map import umap_layout
from scenes.ibd import draw_windows
from support.operands import planes_of

from popdesic.api.descent import haploid_ibd
from popdesic.cohort.encode import place_rows
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.qc import summarize_cohort
from popdesic.distance.neighbors import measure_of
from popdesic.communities.splits import split_samples
from popdesic.maps.densmap import densmap_layout
from popdesic.engine import carrier_sums_plan, terms
from popdesic.engine.site_pairs import r2_pairs
from popdesic.relatives.find_matches import top_matches, top_references
from popdesic.distance.find_nearest import nearest_between, nearest_points, nearest_samples
from popdesic.ibd.find_candidates import find_candidates
from popdesic.epistasis.scan_sites import scan_pairs, scan_quads, scan_residual_pairs, scan_triples
from popdesic.engine.columns import Bases
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.genotype_products import Calls, Flips
from popdesic.core import number_text_cpu as number_text
from popdesic.population.allele_sums_cpu import own_sums, pair_sums, private_sums
from popdesic.population.equilibrium_cpu import low_sites
from popdesic.relatives.expected_genotypes_cpu import residuals
from popdesic.cohort.genotypes_cpu import fill_site_planes
from popdesic.population.plane_counts_cpu import count_by_sample, count_by_site
from popdesic.engine.flipped_sums_cpu import draw_signs
from popdesic.components.signed_sums_cpu import add_signed
from popdesic.cohort import standard_genotypes_cpu as standard_genotypes
from popdesic.geodesic.edges import Edges
from popdesic.geodesic.block_paths_cpu import sparse_paths
from popdesic.distance.neighbor_lists_cpu import merge_lists
from popdesic.relatives.one_against_all_cpu import count_with_all
from popdesic.maps.outside_points_cpu import nearest_outside
from popdesic.geodesic.sparse_paths_cpu import nearest_by_paths
from popdesic.geodesic.trees_cpu import shortest_trees
from popdesic.engine.plane_parts import PlaneParts
from popdesic.epistasis.scores import score_tables
from popdesic.geodesic.closure import close_paths
from popdesic.geodesic.graph import spanning_tree
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.segments import SearchGenome, segments_between
from popdesic.ibd.windows import genetic_sites
from popdesic.io import listed_rows
from popdesic.io.genotypes import pack_bed
from popdesic.population.runs import RunLimits, find_all_runs

rng = np.random.default_rng(1)
kept = np.ones(40, bool)
backend = CpuBackend(2)
names = ["a", "b", "c", "d", "e"]
calls = ["0/1", "1/1", "./.", "0/0", "0|1"]
rotated = [calls[pos % 5 :] + calls[: pos % 5] for pos in range(50)]
records = [
    bcf.record_of([bcf.format_of(bcf.GT, bcf.calls_of(row))], n_samples=5, pos=pos + 1)
    for pos, row in enumerate(rotated)
]
Path("a.bcf").write_bytes(bcf.bcf_of(bcf.header_of(names), records))
text = "##fileformat=VCFv4.2\\n" + "\\t".join([bcf.COLUMNS, *names]) + "\\n"
with gzip.open("a.vcf.gz", "wt") as file:
    for pos, row in enumerate(rotated):
        text += "\\t".join(["1", str(pos + 1), ".\\tA\\tC\\t.\\t.\\t.\\tGT", *row]) + "\\n"
    file.write(text)
group = zarr.open_group("a.vcz", mode="w", zarr_format=2)
for name, data in {
    "sample_id": np.array(names),
    "contig_id": np.array(["1"]),
    "variant_contig": np.zeros(4, np.int8),
    "variant_position": np.arange(1, 5, dtype=np.int32),
    "variant_id": np.array(["."] * 4),
    "variant_allele": np.array([["A", "C"]] * 4),
    "call_genotype": rng.integers(-1, 2, (4, 5, 2), np.int8),
    "call_genotype_phased": rng.random((4, 5)) < 0.5,
}.items():
    group.create_array(name, shape=data.shape, dtype=data.dtype)[...] = data
for source in ("a.bcf", "a.vcf.gz", "a.vcz"):
    ingest_cohort(source, source[-3:], threads=2)
summarize_cohort(
    Path("bcf"), {}, Path("sites.tsv"), Path("samples.tsv"), min_sample_call_rate=0, threads=2
)
listed_rows.LEAST_LISTED = 1
with listed_rows.RowsFile(Path("lists.bed"), 100) as file:
    file.add(np.full((9, 25), 255, np.uint8))
listed = listed_rows.ListedRows(Path("lists.bed"), 100, 9)
listed.count(0, 9, np.zeros(100, np.int64), 1, np.zeros((100, 4), np.int64))
listed[:]
for rows in (np.zeros((3, 2), np.uint8), np.frombuffer(bytes(6), np.uint8).reshape(3, 2)):
    place_rows(rows, 5, np.array([0, 2]), np.arange(3), np.zeros(3, bool))
for missing in (0, 0.1):
    genotypes = rng.integers(0, 3, (40, 200)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    planes = planes_of(genotypes)
    for product in (terms.SQUARED, terms.SQUARED_IBS0, terms.SQUARED_SUMS, terms.KINSHIP, terms.LD):
        for other in (None, planes):
            backend.bitgemm(planes, other, product)
    carrier_sums_plan.LEAST_NS, carrier_sums_plan.LEAST_GAIN = 0, -np.inf
    carrier_sums_plan.PAIR_NS = carrier_sums_plan.CARRIER_NS = 0
    backend.bitgemm(planes, None, terms.SQUARED)
    carrier_sums_plan.LEAST_NS = np.inf
    calls = Calls((pack_bed(np.ascontiguousarray(genotypes.T)),), None, (kept,), np.full(200, 0.4))
    products, vectors = backend.genotype_products(calls), rng.random((40, 3))
    products.normal(vectors)
    rare = pack_bed(np.where(rng.random((200, 40)) < 0.01, 1, 0).astype(np.int8))
    backend.genotype_products(Calls((rare,), None, (kept,), np.full(200, 0.4))).normal(vectors)
    block = products.columns.put(vectors)
    products.columns.add(block, [block.copy()], products.columns.gram([block], block))
    narrow = rng.random((1, 40, 8))
    bases = Bases(products.columns, narrow[0], 3)
    bases.subtract(narrow[0].copy())
    known = np.linalg.qr(rng.random((40, 2)))[0]
    signs = np.empty((1, 40, 3), np.int8)
    draw_signs(rng.integers(0, 1 << 60, (40, 3)).astype(np.uint64), 0, 1, signs)
    products.flipped(vectors, Flips(signs, np.zeros(200, int), known, products.project(known)))
    sites = planes_of(np.ascontiguousarray(genotypes.T))
    r2_pairs(backend, sites, np.minimum(np.arange(200) + 20, 200), 0.1)
    fill_site_planes(pack_bed(genotypes), 200, 0, np.zeros((40, 3, 8), np.uint64), 2)
    top_matches(backend, planes, planes, 3)
    top_references(backend, planes, planes, 3)
    people = PlaneParts.of([planes])
    for metric in ("euclidean", "normalized"):
        found = nearest_samples(backend, people, measure_of(metric, 200, 1), 3)
        between, _ = nearest_between(backend, planes, planes, measure_of(metric, 200, 1), 3)
        merge_lists(found, between, 40)
    np.save("planes.npy", planes.words)
    mapped = terms.Planes(np.load("planes.npy", mmap_mode="r"), planes.n_sites)
    count_with_all(terms.Planes(planes.words[:1], planes.n_sites), mapped)
    for width in (20, 64, 100, 200):
        windows = draw_windows(rng, 200, width)
        find_candidates(backend, planes, None, windows, tolerance=2, min_length=0.5, most=1 << 20)
for number in ("int32", "int64", "float32", "float64"):
    for n in (50, 700):
        direct = np.abs(np.subtract.outer(*[rng.integers(1, 99, n)] * 2)).astype(number)
        close_paths(direct.copy(), backend)
    shortest_trees(direct, np.zeros(n, np.int64), 2)
    if number.startswith("i"):
        sparse_paths(direct, 2)
    edges = Edges(np.arange(4), np.array([1, 2, 0]), np.ones(3, number), np.zeros(3, bool))
    nearest_by_paths(edges, 2)
split_samples(rng.random((60, 2)))
spanning_tree(rng.random((5, 5)))
for missing in (0.0, 0.1):
    for score in ("k2", "interaction"):
        tables = score_tables(score, 60, 70)
        data, *_ = epistasis.random_scan(rng, 9, (60, 70), missing=missing, tables=tables)
        scan_pairs(backend, data, range(9), 5)
        scan_triples(backend, data, range(9), 5)
        scan_quads(backend, data, range(9), 5)
    trait, _ = random_residuals(rng, 9, 130, missing=missing)
    scan_residual_pairs(backend, trait, range(9), 5)
counts = [rng.integers(0, 9, (40, 3, k), dtype=np.int32) for k in (2, 3)]
for sums in (own_sums, pair_sums):
    sums(*counts, np.zeros(40, bool), np.array([0, 10, 40]))
low_sites(counts[1])
private_sums(np.minimum.accumulate(counts[0], 2), np.array([0, 10, 40]), 2)
for n_planes in (2, 3):
    words = rng.integers(0, 2**63, (5, n_planes, 4), dtype=np.uint64)
    used = words[0, 0].copy()
    count_by_site(words, used, np.arange(5), np.zeros((3, 256), np.int32))
    count_by_sample(words, used, np.arange(256), np.empty((5, 3), np.int64))
words = rng.integers(0, 2**63, (4, 2), dtype=np.uint64)
place = pd.DataFrame({"chrom": "1", "pos": np.arange(99)})
for absent in (None, words):
    find_all_runs(words, absent, place, RunLimits(window_sites=5))
limits = SegmentLimits(min_cm=1, window=16)
mapped = genetic_sites(place.assign(pos=100_000 * place.pos), None)
genome = SearchGenome.of(mapped, np.full(99, 0.4), limits)
for n_planes in (2, 3):
    words = np.full((3, n_planes, 8), ~np.uint64(0))
    assert len(segments_between(terms.Planes(words, 99), None, genome, limits, backend))
alleles = rng.integers(0, 2, (9, 40))
pairs, _ = haploid_ibd(alleles, 100_000 * np.arange(40), threads=1)
assert pairs.fraction.notna().any()
number_text.write_matrix(Path("matrix.txt"), rng.random((9, 9)))
columns = [number_text.string_fields(names), number_text.integer_fields(np.arange(5))]
number_text.join_fields(columns)
add_signed(np.zeros((2, 5, 5)), rng.random((3, 5, 5)), np.ones((2, 3, 5)))
few = rng.integers(-1, 3, (9, 7)).astype(np.int8)
varying = standard_genotypes.value_table(np.full(9, 0.4))
standard_genotypes.standard_rows(few, *varying)
standard_genotypes.standard_columns(few, *varying, np.arange(3))
standard_genotypes.list_missing(few, varying[0], np.arange(3))
residuals(few, rng.random((9, 2)), rng.random((7, 2)), (1.0, 1.0), (0.01, 0.99))
nearest_points(backend, rng.random((50, 4)), 3)
points = rng.random((30, 3))
nearest_outside(points, np.arange(30), np.arange(30) % 3, np.full(3, np.inf), 2)
rows = np.abs(points[:, :1] - points[:, 0]).__getitem__
for layout in (umap_layout, densmap_layout):
    layout(rows, 30, points, neighbors=5, min_dist=0.3, seed=1)
"""
#: Fails if numba compiles a function of the package. What it reads from its cache is no event.
WATCH = """\
from numba.core import event
class Listener(event.Listener):
    def on_start(self, one):
        function = one.data["dispatcher"].py_func
        types = [repr(a) for a in one.data["args"]]
        assert not function.__module__.startswith("popdesic"), f"{function.__qualname__} {types}"
    def on_end(self, one):
        pass
event.register("numba:compile", Listener())
"""


def run(program: str, folder: Path, **variables: str) -> None:
    paths = [str(ROOT / "src"), str(ROOT / "tests")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{program}"],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr[-3000:]


def test_all_kernels_can_be_cached(tmp_path):
    """A second process compiles nothing; the first one may, in numba's usual cache."""
    run(FIRST, tmp_path)
    run(WATCH + FIRST, tmp_path)


@pytest.mark.slow
def test_jobs_compile_nothing_that_was_compiled_in_advance(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run(FIRST, tmp_path, **cache)
    run(WATCH + WORK, tmp_path, **cache)
