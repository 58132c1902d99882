"""Sites with and without missing genotypes are scanned apart: the hits of one scan of all."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from oracles.epistasis import random_partners, scan_of_blocks

from popdesic.core.errors import UserError
from popdesic.engine.select import cpu_backend
from popdesic.epistasis import scan_work
from popdesic.epistasis.scan_data import Hits
from simt.test_simt_scans import assert_same, run


@pytest.fixture
def two_blocks(machine, monkeypatch):
    """Lets a block begin at any multiple of 64 sites, however few there are behind it."""
    monkeypatch.setattr(scan_work, "LEAST_BLOCK", 0.0)
    return machine


SCORED = [("mma", "k2"), ("mma", "mutual_information"), ("popc", "gini"), ("popc", "interaction")]


@pytest.mark.parametrize(("kernel", "score"), SCORED)
@pytest.mark.parametrize(("order", "first"), [(2, range(50, 80)), (3, range(62, 66))])
def test_hits_of_all_parts_are_those_of_the_cpu(two_blocks, rng, kernel, score, order, first):
    from popdesic.engine.backend_gpu import GpuBackend

    two_blocks.backward = kernel == "popc"
    data = scan_of_blocks(rng, score, 60, 30, (70, 61))
    expected = run(cpu_backend(1), order, data, first, 60)
    assert_same(run(GpuBackend(kernel=kernel), order, data, first, 60), expected)
    # each part was scanned
    least = {2: 3, 3: 6}[order]  # of triples also the tables of pairs
    assert two_blocks.launched.count("epistasis_scan") >= least


def test_planes_of_complete_sites_are_packed_once(two_blocks, rng):
    """Two scans need them: of two complete sites, and of a complete and an incomplete one."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.epistasis.scan_plan import upload_blocks

    n, begin = 400, 64
    data = scan_of_blocks(rng, "k2", begin, n - begin, (70, 61))
    expected = run(cpu_backend(1), 2, data, range(n), 60)
    two_blocks.launched.clear()
    assert_same(run(GpuBackend(kernel="popc"), 2, data, range(n), 60), expected)
    uploads = upload_blocks(begin, n, 2)
    others = 1 + len(upload_blocks(0, begin, 3))  # the incomplete ones: as z, then on their own
    assert two_blocks.launched.count("pack_rows") == len(uploads) + others


def send_plane_by_plane(monkeypatch) -> None:
    """As if planes were pinned, and long."""
    from popdesic.epistasis import planes_gpu

    monkeypatch.setattr(planes_gpu, "is_pinned", lambda words: True)
    monkeypatch.setattr(planes_gpu, "WIDE_ROW", 1)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "interaction"])
@pytest.mark.parametrize(("n_incomplete", "firsts"), [(60, range(300)), (140, range(70, 131))])
def test_pairs_of_planes_of_which_the_first_two_arrive_first(
    two_blocks, rng, score, n_incomplete, firsts, monkeypatch
):
    """Planes of missing genotypes of complete sites arrive last, and nothing reads them before."""
    from popdesic.engine.backend_gpu import GpuBackend

    send_plane_by_plane(monkeypatch)
    data = scan_of_blocks(rng, score, n_incomplete, 300 - n_incomplete, (70, 61))
    expected = run(cpu_backend(1), 2, data, firsts, 60)
    for given in (data, replace(data, complete_from=n_incomplete)):
        assert_same(run(GpuBackend(kernel="popc"), 2, given, firsts, 60), expected)
    wrong = replace(data, complete_from=n_incomplete - 1)
    with pytest.raises(UserError, match="n_missing 0"):
        run(GpuBackend(kernel="popc"), 2, wrong, firsts, 60)


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("score", ["k2", "k2_excess", "interaction"])
def test_as_many_pairs_pass_as_by_three_states(two_blocks, rng, score, kernel, monkeypatch):
    """The cells, and so the bounds, of pairs whose first site alone lacks genotypes."""
    from popdesic.epistasis import scan_gpu
    from popdesic.epistasis.parts_plan import ScanPart

    data, first = scan_of_blocks(rng, score, 64, 86, (150, 131)), range(3, 60)
    limit = int(run(cpu_backend(1), 2, data, first, 400).cost[100])
    passed: list[tuple[int, ...]] = []

    def take(scanner, n):
        passed.extend(map(tuple, scanner.records[:n, : 3 + 9].get().tolist()))

    monkeypatch.setattr(scan_gpu.Scanner, "merge", take)
    monkeypatch.setattr(scan_gpu.Scanner, "_missing", lambda scanner: (3, 3))  # as many for both
    found = []
    for states in (2, 3):
        part = ScanPart(states, 3, range(64), range(64), range(64, 150))
        given = (data, 2, 400, limit, two_blocks.device, kernel)
        scan_gpu.Scanner(*given, part=part).pairs(first)
        found.append(sorted(record for record in passed if record[2] >= 64))
        passed.clear()
    assert found[0] == found[1]
    assert 0 < len(found[0]) < 57 * 86


@pytest.mark.parametrize("kernel", ["mma", "popc"])
@pytest.mark.parametrize("score", ["k2", "k2_excess", "interaction"])
def test_pairs_counted_in_two_words(two_blocks, rng, score, kernel, monkeypatch):
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.epistasis import scan_gpu

    monkeypatch.setattr(scan_gpu, "MAX_SHARED", 30)
    data = scan_of_blocks(rng, score, 60, 70, (70, 61))
    expected = run(cpu_backend(1), 2, data, range(130), 60)
    assert_same(run(GpuBackend(kernel=kernel), 2, data, range(130), 60), expected)


@pytest.mark.parametrize("n_incomplete", [0, 1, 84])
@pytest.mark.parametrize(("order", "first"), [(2, range(84)), (3, range(62, 65))])
def test_all_sites_in_one_block(two_blocks, rng, n_incomplete, order, first):
    """Planes of missing genotypes that are empty, or not at the last site alone."""
    from popdesic.engine.backend_gpu import GpuBackend

    data = scan_of_blocks(rng, "k2", n_incomplete, 84 - n_incomplete, (50, 41))
    if not n_incomplete:
        data.classes[0].words[:, 2] = 0
    expected = run(cpu_backend(1), order, data, first, 40)
    assert_same(run(GpuBackend(kernel="popc"), order, data, first, 40), expected)


@pytest.mark.parametrize("order", [2, 3])
def test_partners_and_cutoffs(two_blocks, rng, order):
    from popdesic.engine.backend_gpu import GpuBackend

    data = scan_of_blocks(rng, "k2", 64, 16, (90, 70))
    data = replace(data, partners=random_partners(rng, 80, 0.05))
    first, backend = range(50, 80) if order == 2 else range(61, 66), GpuBackend(kernel="popc")
    expected = run(cpu_backend(1), order, data, first, 30)
    assert_same(run(backend, order, data, first, 30), expected)
    cutoff = int(expected.cost[len(expected.cost) // 2])
    few = run(backend, order, data, first, 30, cutoff)
    n = int((expected.cost <= cutoff).sum())
    assert_same(Hits(few.cost[:n], few.sites[:n]), Hits(expected.cost[:n], expected.sites[:n]))


@pytest.mark.parametrize(
    ("most", "many", "score"), [(-1, 0.0, "k2"), (24, math.inf, "interaction")]
)
def test_counts_in_two_words(two_blocks, rng, monkeypatch, most, many, score):
    """All counts, and those of some blocks of pairs (tests/simt/test_simt_packing.py)."""
    from popdesic.engine.backend_gpu import GpuBackend
    from popdesic.epistasis import classes_gpu, packing_gpu, scan_gpu

    two_blocks.device = replace(two_blocks.device, capability=90, shared_bytes=107_520)
    for module in (scan_gpu, classes_gpu, packing_gpu):
        monkeypatch.setattr(module, "MAX_SHARED", most)
    monkeypatch.setattr(packing_gpu, "MANY_OVERFLOWING", many)
    data = scan_of_blocks(rng, score, 60, 30, (70, 61))
    first = range(62, 65)
    expected = run(cpu_backend(1), 3, data, first, 40)
    assert_same(run(GpuBackend(kernel="mma"), 3, data, first, 40), expected)


def test_many_stages_and_classes_of_unlike_size(two_blocks, rng):
    """More depth than the pipeline has slots, and counts of both classes in words of their own."""
    from popdesic.engine.backend_gpu import GpuBackend

    two_blocks.device = replace(two_blocks.device, multiprocessors=1)
    for sizes in ((900, 700), (1200, 5)):
        data = scan_of_blocks(rng, "k2", 60, 10, sizes)
        first = range(63, 65)
        expected = run(cpu_backend(1), 3, data, first, 40)
        assert_same(run(GpuBackend(kernel="mma"), 3, data, first, 40), expected)


@pytest.mark.parametrize("score", ["k2", "k2_excess", "interaction"])
def test_as_many_pass_as_by_three_states(two_blocks, rng, score, monkeypatch):
    """The cells, and so the bounds, of triples whose first site alone lacks genotypes."""
    from popdesic.epistasis.parts_plan import ScanPart
    from popdesic.epistasis.scan_gpu import Scanner

    data, first = scan_of_blocks(rng, score, 64, 26, (150, 131)), range(60, 64)
    cost = run(cpu_backend(1), 3, data, first, 400).cost
    passed: list[tuple[int, ...]] = []

    def take(scanner, n):
        passed.extend(map(tuple, scanner.records[:n, :3].get().tolist()))

    monkeypatch.setattr(Scanner, "merge", take)
    monkeypatch.setattr(Scanner, "_missing", lambda scanner: (3, 3))  # as many for both
    found = []
    for states in (2, 3):
        part = ScanPart(states, 3, range(64), range(64, 90), range(64, 90))
        kernel = "popc" if score == "k2" else "mma"
        limit = int(cost[len(cost) // 4])
        given = (data, 3, 400, limit, two_blocks.device, kernel)
        Scanner(*given, part=part).triples(first)
        found.append(sorted(triple for triple in passed if triple[1] >= 64))
        passed.clear()
    assert found[0] == found[1]
    assert 0 < len(found[0]) < 4 * 325
