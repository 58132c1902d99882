"""Scans of quads by the kernels' sources, on a CPU, give the oracle's hits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from oracles.epistasis import assert_same, draw_scan, random_partners, scan

from popdesic.epistasis.scan_data import Hits
from popdesic.epistasis.scan_sites import scan_quads

ASSOCIATION = ("k2", "k2_excess", "mutual_information", "gini")


def run(data, first, top, cutoff=None, kernel="mma"):
    from popdesic.engine.backend_gpu import GpuBackend

    return scan_quads(GpuBackend(kernel=kernel), data, first, top, cutoff)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kernel", "score"), [*(("mma", score) for score in ASSOCIATION), ("popc", "k2")]
)
def test_hits_equal_the_oracle(machine, rng, kernel, missing, score):
    machine.backward = missing > 0
    data, states, cases = draw_scan(rng, score, 7, (50, 61), missing)
    expected = scan(data, states, cases, 4, range(7), 20)
    assert_same(run(data, range(7), 20, kernel=kernel), expected)
    # of each of four first sites: three tables of pairs, and the quads
    assert machine.launched.count("epistasis_scan") >= 16


def test_interactions_are_scanned_on_the_cpu(machine, rng):
    data, states, cases = draw_scan(rng, "interaction", 5, (30, 31), 0.0)
    expected = scan(data, states, cases, 4, range(5), 20)
    assert_same(run(data, range(5), 20), expected)
    assert not machine.launched


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("n_samples", [(1, 1), (1, 64), (700, 3), (2900, 2600)])
def test_awkward_numbers_of_samples(machine, rng, n_samples, missing):
    """Genotypes that no sample has, classes of unlike sizes, several stages."""
    machine.backward = n_samples[0] > 1
    data, states, cases = draw_scan(rng, "k2", 5, n_samples, missing)
    expected = scan(data, states, cases, 4, range(5), 9)
    assert_same(run(data, range(5), 9), expected)


@pytest.mark.parametrize("n_sites", range(1, 5))
def test_few_sites_have_few_quads(rng, n_sites):
    data, states, cases = draw_scan(rng, "k2", n_sites, (20, 20), 0.0)
    expected = scan(data, states, cases, 4, range(n_sites), 9)
    assert_same(run(data, range(n_sites), 9), expected)
    assert len(expected.cost) == (n_sites == 4)


@pytest.mark.parametrize(("kernel", "missing"), [("mma", 0.0), ("mma", 0.05), ("popc", 0.0)])
def test_quads_of_several_tiles(machine, rng, kernel, missing):
    """Sites 62 to 68, of two tiles of y and z; one thread block walks over all items."""
    machine.device = replace(machine.device, multiprocessors=1)
    data, states, cases = draw_scan(rng, "k2_excess", 69, (300, 260), missing)
    last = slice(62, 69)
    expected = scan(data.of_sites(last), states[last], cases, 4, range(7), 30)
    found = run(data, range(62, 69), 30, kernel=kernel)
    assert_same(found, replace(expected, sites=expected.sites + 62))


@pytest.mark.parametrize("batch", [4, 12])
def test_the_size_of_batches_changes_no_hit(machine, rng, batch, monkeypatch):
    """A quarter as many second sites as first sites of triples."""
    from popdesic.epistasis import scan_gpu

    monkeypatch.setattr(scan_gpu, "BATCH", batch)
    data, states, cases = draw_scan(rng, "k2", 8, (50, 61), 0.0)
    expected = scan(data, states, cases, 4, range(8), 20)
    assert_same(run(data, range(8), 20), expected)
    batches = sum(math.ceil(seconds / (batch // 4)) for seconds in range(1, 6))
    assert machine.launched.count("epistasis_scan") >= 3 * 5 + batches


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_partners_first_sites_and_cutoffs(rng, missing):
    data, states, cases = draw_scan(rng, "k2", 8, (45, 36), missing)
    first, permitted = range(1, 3), 0
    while not permitted:  # rules drawn at random may permit nothing
        data = replace(data, partners=random_partners(rng, 8, 0.2))
        expected = scan(data, states, cases, 4, first, 30)
        permitted = len(expected.cost)
    assert_same(run(data, first, 30), expected)
    cutoff = int(expected.cost[permitted // 2])
    few = run(data, first, 30, cutoff)
    n = int((expected.cost <= cutoff).sum())
    assert_same(Hits(few.cost[:n], few.sites[:n]), Hits(expected.cost[:n], expected.sites[:n]))


@pytest.mark.parametrize("most", [10, 45, 90])
@pytest.mark.parametrize(("kernel", "missing"), [("mma", 0.0), ("popc", 0.1)])
def test_counts_that_do_not_share_a_word(machine, rng, kernel, missing, most, monkeypatch):
    """As with more than 65 535 samples of a class: in a pair of genotypes, in a genotype."""
    from popdesic.epistasis import classes_gpu, packing_gpu, scan_gpu

    for module in (classes_gpu, packing_gpu, scan_gpu):
        monkeypatch.setattr(module, "MAX_SHARED", most)
    if missing:  # takes more shared memory than an A100 has
        machine.device = replace(machine.device, capability=90, shared_bytes=232_448)
    data, states, cases = draw_scan(rng, "mutual_information", 6, (120, 131), missing)
    expected = scan(data, states, cases, 4, range(6), 9)
    assert_same(run(data, range(6), 9, kernel=kernel), expected)


@pytest.mark.parametrize("score", ["mutual_information", "gini"])
def test_the_bound_rules_out_none_of_the_best(machine, rng, score, monkeypatch):
    """The scan starts with the cost of the fifth hit: it finds these, and not all others."""
    from popdesic.epistasis.scan_gpu import ClassBest

    written, merge = [], ClassBest.merge
    monkeypatch.setattr(
        ClassBest, "merge", lambda best, found: (written.append(len(found)), merge(best, found))
    )
    data, states, cases = draw_scan(rng, score, 9, (620, 580), 0.0)
    expected = scan(data, states, cases, 4, range(9), 5)
    assert_same(run(data, range(9), 5, int(expected.cost[-1])), expected)
    assert 5 <= sum(written) < math.comb(9, 4) * 2 / 3


@pytest.mark.parametrize(("kernel", "shared_bytes"), [("mma", 101_376), ("popc", 65_536)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_less_shared_memory(machine, rng, kernel, shared_bytes, missing):
    """The limits of an RTX 30 and an RTX 20: values of pairs of sites wait in global memory."""
    machine.device = replace(machine.device, shared_bytes=shared_bytes, multiprocessors=1)
    data, states, cases = draw_scan(rng, "k2", 6, (700, 600), missing)
    expected = scan(data, states, cases, 4, range(6), 9)
    assert_same(run(data, range(6), 9, kernel=kernel), expected)
