"""Units of scans: equal work, every first site once, the same tables for any number of them."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from popdesic.core.errors import UserError
from popdesic.core.tables import read_table, write_npy, write_npz, write_table
from popdesic.engine.select import cpu_backend
from popdesic.epistasis.permutations import merge_permutations, permute_unit
from popdesic.epistasis.reorder import pack_states, reorder_sites
from popdesic.epistasis.scan import scan_unit
from popdesic.epistasis.scan_work import BESIDE, BLOCK, FIXED, device_kind, first_site_work
from popdesic.epistasis.units import (
    check_spans,
    count_stored,
    merge_units,
    rate_of_unit,
    read_work,
    unit_bounds,
    unit_range,
    unit_spans,
)

BACKEND = cpu_backend(1)
SCAN = {"score": "k2", "min_distance_bp": 0, "max_r2": 1.0}


def genome(n_sites: int, n_samples: int) -> np.ndarray:
    """Stored samples by state of sites in Hardy-Weinberg proportions, MAF of 5 to 50 %."""
    q = np.linspace(0.05, 0.5, n_sites)
    shares = np.sort([q**2, 2 * q * (1 - q), (1 - q) ** 2], axis=0)[:2].T
    stored = np.rint(n_samples * shares).astype(np.int64)
    return stored[np.argsort(stored.sum(axis=1), kind="stable")]


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("n_samples", [5_000, 100_000])
def test_32_units_take_at_most_a_tenth_more_than_their_mean(kind, order, n_samples):
    """Cut by numbers of combinations, the slowest takes up to 1.9 times the mean."""
    n = 4000
    work = first_site_work(genome(n, n_samples), -(-n_samples // 64), order, kind)
    shares = np.array([work[unit_range(work, u, 32).start : unit_range(work, u, 32).stop].sum()
                       for u in range(32)])  # fmt: skip
    assert shares.max() <= 1.1 * shares.mean()
    assert shares.sum() == pytest.approx(work.sum())
    ends = np.round(n * (1 - (1 - np.arange(33) / 32) ** (1 / order))).astype(int)
    equal = np.array([work[a:b].sum() for a, b in itertools.pairwise(ends)])
    assert equal.max() >= shares.max()
    if order == 3 and n_samples == 100_000:
        assert equal.max() > (1.5 if kind == "cpu" else 1.3) * equal.mean()


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("n_samples", [5_000, 100_000])
def test_64_units_on_as_many_gpus(kind, order, n_samples):
    """The slowest takes at most a twentieth more than the mean, and each combination is in one."""
    n = 6400
    work = first_site_work(genome(n, n_samples), -(-n_samples // 64), order, kind)
    ranges = [unit_range(work, unit, 64) for unit in range(64)]
    shares = np.array([work[r.start : r.stop].sum() for r in ranges])
    assert 1 < shares.max() / shares.mean() <= 1.05
    check_spans([(r.start, r.stop) for r in ranges], n, Path("units"))
    # A combination belongs to its first site.
    counts = [sum(math.comb(n - 1 - x, order - 1) for x in r) for r in ranges]
    assert sum(counts) == math.comb(n, order)


def test_work_by_loops():
    """The model against its definition: lanes of all y > x, and depth of x."""
    rng = np.random.default_rng(1)
    stored = rng.integers(1, 900, (150, 3))
    stored[::3, 2] = 0
    for kind in FIXED:
        for order, n_words in ((2, 40), (3, 40)):
            found = first_site_work(stored, n_words, order, kind)
            states = np.where(stored[:, 2] > 0, 3, 2)
            for x in range(150):
                lanes = [
                    sum(BLOCK for z0 in range((y + 1) // BLOCK * BLOCK, 150, BLOCK))
                    + (BESIDE[kind] if order == 3 else 0)
                    for y in range(149)
                ]
                if order == 2:
                    count = states[x] * 3 * n_words
                    each = FIXED[kind] / 3 + count if kind == "cpu" else 1
                    wanted = each * lanes[x] if x < 149 else 0
                else:
                    depth = stored[x].sum() / 64 + 4 * states[x]
                    each = FIXED[kind] + states.mean() * 3 * depth
                    if kind == "cpu":
                        each += states.mean() * 3 * n_words / 32
                    wanted = each * sum(lanes[x + 1 :])
                assert found[x] == pytest.approx(wanted), (kind, order, x)


def test_work_of_quads_by_loops():
    """A quad costs a fixed amount and the samples counted: of w and x on a CPU, of x on a GPU."""
    rng, n = np.random.default_rng(2), 70
    stored = rng.integers(1, 900, (n, 3))
    stored[::3, 2] = 0
    states, depth = np.where(stored[:, 2] > 0, 3, 2), stored.sum(axis=1) / 64
    lanes = [BLOCK * (2 - (y + 1) // BLOCK) for y in range(n - 1)]
    for kind in FIXED:
        found = first_site_work(stored, 40, 4, kind)
        for w in range(n):
            wanted = 0.0
            for x in range(w + 1, n):
                counted = depth[w] * depth[x] / 40 + 4 * states[w] * states[x]
                if kind == "gpu":
                    counted = depth[x] + 4 * 3 * states[x]
                each = 3 * FIXED[kind] + states.mean() * 3 * counted
                wanted += each * sum(lanes[x + 1 :])
            assert found[w] == pytest.approx(wanted), (kind, w)


@pytest.mark.parametrize("order", [3, 4])
def test_no_more_than_one_site_of_few(order):
    for n in range(1, 6):
        work = first_site_work(np.ones((n, 2), np.int64), 1, order, "cpu")
        assert len(work) == n and (work >= 0).all() and (n < order or work[0] > 0)


@pytest.mark.parametrize("n_sites", [1, 2, 3, 15, 16, 17, 63, 64, 65, 300])
@pytest.mark.parametrize("n_units", [1, 2, 7, 32, 400])
@pytest.mark.parametrize("scans", [1, 2, 5])
def test_every_first_site_of_every_scan_once(n_sites, n_units, scans):
    rng = np.random.default_rng(n_sites)
    for work in (rng.random(n_sites), np.zeros(n_sites), np.r_[rng.random(n_sites - 1), 0]):
        seen = [
            (span.scan, x)
            for unit in range(n_units)
            for span in unit_spans(work, scans, unit, n_units)
            for x in span.first
        ]
        assert seen == list(itertools.product(range(scans), range(n_sites)))
        ranges = [unit_range(work, unit, n_units) for unit in range(n_units)]
        check_spans([(r.start, r.stop) for r in ranges], n_sites, Path("units"))
        assert np.array_equal(np.diff(unit_bounds(work, n_units)), [len(r) for r in ranges])


def test_permuted_scans_are_shared_equally():
    work = first_site_work(genome(1000, 5000), 79, 3, "cpu")
    for n_units in (3, 64, 320):
        shares = [
            sum(work[span.first.start : span.first.stop].sum() for span in spans)
            for spans in (unit_spans(work, 10, unit, n_units) for unit in range(n_units))
        ]
        assert max(shares) <= 1.1 * np.mean(shares)


def test_units_of_another_cut_are_refused():
    folder = Path("results/epistasis/units")
    for spans in ([(0, 4), (5, 9)], [(0, 5), (4, 9)], [(0, 4)], [], [(0, 9), (9, 10)], [(1, 9)]):
        with pytest.raises(UserError, match="do not hold each of its 9 first sites once"):
            check_spans(spans, 9, folder)
    check_spans([(5, 9), (0, 5), (5, 5), (9, 9), (0, 0)], 9, folder)


@pytest.fixture(scope="module")
def reordered(tmp_path_factory) -> Path:
    """results/reorder of 40 sites, 130 people in two strata, 1 % of the genotypes missing."""
    rng, folder = np.random.default_rng(3), tmp_path_factory.mktemp("reorder")
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.5, 40)[:, None], (40, 130)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.01] = -1
    words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(40), 70)
    named = pd.DataFrame({"chrom": "1", "pos": 1000 * sites["rank"], "ref": "A", "alt": "C"})
    named["id"] = "rs" + sites["rank"].astype(str)
    write_npy(folder / "onehot.npy", words)
    write_table(folder / "sites.tsv", pd.concat([named, sites], axis=1))
    people = {"sample": [f"S{i}" for i in range(130)], "cohort": "a"}
    people |= {"stratum": rng.choice(["x", "y"], 130), "phenotype": "NA"}
    people["class"] = ["control"] * 70 + ["case"] * 60
    write_table(folder / "samples.tsv", pd.DataFrame(people))
    return folder


def test_stored_samples_are_counted(monkeypatch):
    rng = np.random.default_rng(4)
    for n in (1, 2, 65):
        states = rng.integers(0, 4, (17, n)).astype(np.int8)
        states[0, 0] = 2
        monkeypatch.setattr("popdesic.epistasis.units.COUNT_BYTES", int(rng.integers(1, 200)))
        found = count_stored(pack_states(states, n // 2))
        wanted = np.stack([(states == k).sum(axis=1) for k in range(3)], axis=1)
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_hits_do_not_depend_on_units_or_devices(reordered, tmp_path, order):
    ranks, found = np.arange(40), []
    for n_units, device in ((1, "cpu"), (3, "cpu"), (3, "gpu"), (64, "auto")):
        units = [tmp_path / f"{n_units}.{device}.{unit}.npz" for unit in range(n_units)]
        for unit, path in enumerate(units):
            options = {"order": order, "unit": unit, "n_units": n_units, "device": device}
            scan_unit(reordered, BACKEND, path, top=30, **SCAN, **options)
        found.append(merge_units(units, ranks, 30))
        if n_units == 3:
            with pytest.raises(UserError, match="some are of another cut"):
                merge_units(units[1:], ranks, 30)
    for other in found[1:]:
        assert np.array_equal(found[0].cost, other.cost)
        assert np.array_equal(found[0].sites, other.sites)


@pytest.mark.parametrize("order", [2, 3])
def test_permutations_do_not_depend_on_units(reordered, tmp_path, order):
    tables, options = [], SCAN | {"order": order, "permutations": 5, "seed": 7}
    for n_units in (1, 2, 7, 230):
        units = [tmp_path / f"{n_units}.{unit}.npz" for unit in range(n_units)]
        for unit, path in enumerate(units):
            permute_unit(reordered, BACKEND, path, part=(unit, n_units), **options)
        out = tmp_path / f"{n_units}.tsv"
        merge_permutations(units, out, permutations=5)
        tables.append(out.read_bytes())
    assert len(set(tables)) == 1
    cost = read_table(tmp_path / "1.tsv").cost.astype(int)
    assert len(cost) == 5 and cost.nunique() > 1
    with pytest.raises(UserError, match="do not hold"):
        merge_permutations(units, out, permutations=6)
    with pytest.raises(UserError, match="do not hold"):
        merge_permutations([tmp_path / "7.0.npz"], out, permutations=5)


def test_a_scan_without_permitted_pairs_has_cost_zero(reordered, tmp_path):
    options = SCAN | {"order": 2, "permutations": 2, "seed": 7, "min_distance_bp": 10**6}
    permute_unit(reordered, BACKEND, tmp_path / "u.npz", **options)
    merge_permutations([tmp_path / "u.npz"], tmp_path / "null.tsv", permutations=2)
    assert list(read_table(tmp_path / "null.tsv").cost) == ["0", "0"]


def test_a_part_without_permitted_pairs_does_not_hide_a_positive_best(tmp_path):
    """Zero stands for nothing at all, never for a part of a scan."""
    nothing = np.iinfo(np.int64).max
    for name, first, cost in (("a", (0, 4), 12), ("b", (4, 9), nothing)):
        write_npz(
            tmp_path / f"{name}.npz", scan=np.array([0]), first=np.array([first]),
            cost=np.array([cost]),
        )  # fmt: skip
    units = [tmp_path / "a.npz", tmp_path / "b.npz"]
    merge_permutations(units, tmp_path / "null.tsv", permutations=1)
    assert list(read_table(tmp_path / "null.tsv").cost) == ["12"]


def test_work_of_a_folder(reordered):
    words = np.load(reordered / "onehot.npy")
    for device in ("cpu", "gpu", "auto"):
        wanted = first_site_work(count_stored(words), words.shape[2], 3, device_kind(device))
        assert np.array_equal(read_work(reordered, 3, device), wanted)
    assert np.array_equal(read_work(reordered, 3, "auto"), read_work(reordered, 3, "gpu"))


@pytest.mark.parametrize("order", [2, 3])
def test_the_log_of_a_unit_has_its_combinations_and_rate(order):
    """They add up to all combinations, also where none is left, and of more than 2 ** 64."""
    for n_sites, bounds in ((9, [0, 2, 2, 7, 9]), (500_000, [0, 1, 250_000, 500_000])):
        found = [
            rate_of_unit(range(a, b), n_sites, 1000, order, 0.5)["combinations"]
            for a, b in itertools.pairwise(bounds)
        ]
        assert sum(found) == math.comb(n_sites, order)
    listed = [c for c in itertools.combinations(range(9), order) if 2 <= c[0] < 7]
    found = rate_of_unit(range(2, 7), 9, 1000, order, 0.5)
    assert found["combinations"] == len(listed)
    want = f"{len(listed) * 2000:.3g} combinations x samples/s (1000 samples, 0.5 s)"
    assert found["rate"] == want
