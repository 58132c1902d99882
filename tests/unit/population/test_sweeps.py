"""Haplotype statistics: against definitions, a planted sweep, one population, refusals."""

from __future__ import annotations

import msprime
import numpy as np
import pandas as pd
import pytest
from oracles import sweeps as oracle
from support.phased_files import phased_records, write_vcf

from popdesic.__main__ import main
from popdesic.population import sweeps
from popdesic.report.sections.sweeps import DRIFT_SHARE, DRIFT_TIMES

#: Sums of products in another order.
ROUNDING = 1e-9


def mosaics(n_sites, n, seed, length=12):
    """Alleles (n_sites, n) of haplotypes that copy ten ancestors, with a few mutations."""
    rng = np.random.default_rng(seed)
    ancestors = rng.random((n_sites, 10)) < rng.uniform(0.05, 0.6, (n_sites, 1))
    changes = np.cumsum(rng.random((n_sites, n)) < 1 / length, axis=0)
    at = (7 * changes + 3 * np.arange(n) + rng.integers(0, 10, n)) % 10
    copied = np.take_along_axis(ancestors, at, axis=1)
    return (copied ^ (rng.random((n_sites, n)) < 0.01)).astype(np.uint8)


@pytest.mark.parametrize(("n_sites", "n", "seed"), [(90, 14, 1), (160, 25, 2), (60, 40, 3)])
def test_scores_are_those_of_the_definitions(n_sites, n, seed):
    alleles = mosaics(n_sites, n, seed)
    alleles[5] = 0  # does not vary
    rng = np.random.default_rng(seed)
    pos = np.cumsum(rng.integers(1, 30_000, n_sites))
    pos[n_sites // 2 :] += 250_000  # nothing goes across
    cm = np.cumsum(rng.random(n_sites))
    varying = sweeps.varying_sites(alleles)
    assert 5 not in varying
    gaps = np.diff(pos[varying])
    steps = [
        np.nan if gap > 200_000 else step * min(1, 20_000 / gap)
        for step, gap in zip(np.diff(cm[varying]), gaps, strict=True)
    ]
    found = sweeps.score_sites(alleles, cm, pos, threads=2)
    shares = alleles.mean(axis=1)
    common = np.flatnonzero(np.minimum(shares, 1 - shares) >= 0.05)
    assert found.sites.tolist() == common.tolist()
    np.testing.assert_allclose(found.frequency, shares[common], atol=ROUNDING)
    places = np.searchsorted(varying, common)
    expected = np.array([oracle.scores(alleles[varying], np.array(steps), k) for k in places])
    assert 5 < np.isfinite(expected[:, 0]).sum() < len(common)
    np.testing.assert_allclose(found.ihs, expected[:, 0], rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(found.nsl, expected[:, 1], rtol=ROUNDING, atol=ROUNDING)
    halves = [alleles[:, : n // 2], alleles[:, n // 2 :]]
    rows, pairs = sweeps.compare_populations(halves, cm, pos)
    assert rows.tolist() == common.tolist()
    few = [half[varying] for half in halves]
    expected = [oracle.between(*few, np.array(steps), k) for k in places]
    assert np.isfinite(expected).sum() > 5
    np.testing.assert_allclose(pairs[:, 0], expected, rtol=ROUNDING, atol=ROUNDING)


def test_windows_are_those_of_the_definitions():
    alleles = mosaics(80, 30, 4)
    alleles[[3, 17]] = 1  # do not vary
    varying = sweeps.varying_sites(alleles)
    found = sweeps.window_haplotypes(alleles, 11, 4)
    starts = range(0, len(varying) - 10, 4)
    assert found.first.tolist() == varying[starts].tolist()
    assert found.last.tolist() == [varying[start + 10] for start in starts]
    expected = [oracle.garud(alleles[varying[start : start + 11]]) for start in starts]
    np.testing.assert_allclose(np.transpose(found[2:]), expected, rtol=ROUNDING)
    assert not len(sweeps.window_haplotypes(alleles[:10], 11, 4).first)


def test_scores_are_standardised_by_frequency():
    rng = np.random.default_rng(5)
    frequency = rng.choice([0.06, 0.32, 0.98], 300, p=[0.4, 0.57, 0.03])
    scores = rng.normal(10 * frequency, 1 + frequency)
    scores[::7] = np.nan
    found = sweeps.standardised(scores, frequency)
    for one in (0.06, 0.32):
        here = found[frequency == one]
        assert np.nanmean(here) == pytest.approx(0, abs=ROUNDING)
        assert np.nanstd(here) == pytest.approx(1)
    assert np.isnan(found[frequency == 0.98]).all()  # too few
    assert np.isnan(found[::7]).all()


N_SITES, N = 2_000, 30
POS = 2_000 * np.arange(1, N_SITES + 1)
MIDDLE = N_SITES // 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two populations; in "west" one haplotype has spread around the middle."""
    folder = tmp_path_factory.mktemp("sweeps")
    west, east = mosaics(N_SITES, 2 * N, 6, 30), mosaics(N_SITES, 2 * N, 7, 30)
    rng = np.random.default_rng(8)
    swept = west[:, 0].copy()
    for k in range(2 * N):
        if rng.random() < 0.7:
            low, high = MIDDLE - rng.integers(150, 250), MIDDLE + rng.integers(150, 250)
            west[low:high, k] = swept[low:high]
    names = [f"s{k}" for k in range(2 * N + 1)]
    rows = np.concatenate([west, east, mosaics(N_SITES, 2, 9)], axis=1)
    write_vcf(folder / "r.vcf", names, phased_records(rows, POS))
    assert main(["freeze", str(folder / "r.vcf"), "-o", str(folder / "r.npz")]) == 0
    lines = [f"s{k}\t{'west' if k < N else 'east'}\n" for k in range(2 * N)]
    (folder / "labels.tsv").write_text("sample\tlabel\n" + "".join(lines))
    return folder


def run(folder, out, *words):
    return main(["sweeps", str(folder / "r.npz"), "-o", str(out), *words])


def test_a_planted_sweep_is_found(folder, tmp_path, capsys):
    labels = ["--labels", str(folder / "labels.tsv")]
    assert run(folder, tmp_path / "a.tsv", *labels) == 0
    counts = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    windows = pd.read_csv(tmp_path / "a.windows.tsv", sep="\t")
    sites = pd.read_csv(tmp_path / "a.tsv", sep="\t")
    pairs = pd.read_csv(tmp_path / "a.pairs.tsv", sep="\t")
    assert int(counts["sites"]) == len(sites)
    assert int(counts["windows"]) == len(windows)
    assert int(counts["ihs"]) == sites.ihs.notna().sum()
    for column in ("h12", "extreme_ihs"):
        west = windows[windows.population == "west"]
        best = west.loc[west[column].idxmax()]
        assert best.start < POS[MIDDLE] + 500_000, column
        assert best.end > POS[MIDDLE] - 500_000, column
    near = abs(pairs.pos - POS[MIDDLE]) < 150_000
    # A fifth of the sites lies in the sweep, so the standard deviation is mostly its own.
    assert pairs["east/west"][near].max() < pairs["east/west"][~near].quantile(0.5)
    assert pairs["east/west"].idxmin() in range(MIDDLE - 250, MIDDLE + 250)
    assert pairs["east/west"][near].mean() < pairs["east/west"][~near].mean() - 1.5
    east = windows[windows.population == "east"]
    assert east.h12.max() < windows.h12.max() / 2
    assert (tmp_path / "a.png").stat().st_size > 1_000
    # Other threads: the same bytes.
    assert run(folder, tmp_path / "b.tsv", *labels, "--threads", "3") == 0
    for end in (".tsv", ".pairs.tsv", ".windows.tsv", ".png", ".svg"):
        assert (tmp_path / f"a{end}").read_bytes() == (tmp_path / f"b{end}").read_bytes()


def test_without_labels_all_samples_are_one_population(folder, tmp_path):
    out = tmp_path / "a.tsv"
    assert run(folder, out, "--labels", str(folder / "labels.tsv")) == 0
    assert run(folder, out) == 0
    assert not (tmp_path / "a.pairs.tsv").exists()
    assert set(pd.read_csv(out, sep="\t").population) == {"all"}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("sample\tname\ns0\tA\n", "lacks the column 'label'"),
        ("sample\tlabel\ns0\tA\nzz\tB\n", "row 3: sample 'zz' is not in the reference"),
        ("sample\tlabel\n", "has 0 labels; this command needs 1 to 16"),
        ("sample\tlabel\ns0\tA\ns1\tA\n", "population 'A' has 2 samples"),
    ],
)
def test_mistakes_in_labels_get_one_sentence(folder, tmp_path, capsys, table, said):
    (tmp_path / "wrong.tsv").write_text(table)
    assert run(folder, tmp_path / "t.tsv", "--labels", str(tmp_path / "wrong.tsv")) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "t.tsv").exists()
    assert run(folder, tmp_path / "t.npy") == 1
    assert "give it a name that ends in .tsv" in capsys.readouterr().err


#: Base pairs of a simulated chromosome, and diploids at its start and now.
LENGTH, SIZE = 20_000_000, 10_000


def coalescent(history: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Alleles (n_sites, 2 n) with a MAF of 5 % or more, and positions, of n diploids."""
    if history == "sweep":
        swept = msprime.SweepGenicSelection(
            position=LENGTH / 2, start_frequency=1 / (2 * SIZE), end_frequency=0.8, s=0.02, dt=1e-6
        )
        given = {"population_size": SIZE, "model": [swept, msprime.StandardCoalescent()]}
    else:
        grown = msprime.Demography()
        grown.add_population(name="one", initial_size=SIZE)
        if history == "bottleneck":
            for time, size in ((1_500, SIZE // 10), (2_000, SIZE)):
                grown.add_population_parameters_change(time=time, initial_size=size)
        given = {"demography": grown}
    trees = msprime.sim_ancestry(
        n, sequence_length=LENGTH, recombination_rate=1e-8, random_seed=seed, **given
    )
    trees = msprime.sim_mutations(trees, rate=1.25e-8, random_seed=seed, model="binary")
    alleles = trees.genotype_matrix().astype(np.uint8)
    share = np.minimum(alleles.mean(axis=1), 1 - alleles.mean(axis=1))
    kept = share >= 0.05
    return np.ascontiguousarray(alleles[kept]), trees.sites_position[kept].astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("history", ["constant", "bottleneck", "sweep"])
def test_h12_of_coalescents(history):
    """How far the highest H12 lies above the median under drift, and after a sweep."""
    found = []
    for seed in range(1, 6):
        alleles, pos = coalescent(history, 20, seed)
        windows = sweeps.window_haplotypes(alleles)
        best, middle = int(windows.h12.argmax()), LENGTH / 2
        there = pos[windows.first[best]] < middle + 2e5 and pos[windows.last[best]] > middle - 2e5
        scores = sweeps.score_sites(alleles, pos * 1e-6, pos)
        ihs, at = sweeps.standardised(scores.ihs, scores.frequency), pos[scores.sites]
        shares = []
        for first, last in zip(pos[windows.first], pos[windows.last], strict=True):
            here = ihs[(at >= first) & (at <= last) & np.isfinite(ihs)]
            shares.append((np.abs(here) > 2).mean() if len(here) else 0)
        found.append((windows.h12.max() / np.median(windows.h12), there, max(shares)))
        times, there, share = found[-1]
        print(
            f"{history} {seed}: {len(shares)} windows, H12 {times:.1f} times the median, ", end=""
        )
        print(f"in the middle: {there}, sites with |iHS| above 2: {share:.2f}")
    times, there, shares = (np.array(column) for column in zip(*found, strict=True))
    if history == "sweep":
        assert there.all() and np.median(times) > DRIFT_TIMES and np.median(shares) > DRIFT_SHARE
    else:  # what the page says that drift does
        assert times.max() < DRIFT_TIMES + 0.05 and shares.max() < DRIFT_SHARE + 0.005
