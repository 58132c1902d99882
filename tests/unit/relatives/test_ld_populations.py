"""LD of each population, compared with loops over pairs of sites."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.compare import r2
from support.plink_files import write_plink

from popdesic.engine.select import select_backend
from popdesic.relatives import ld_populations
from popdesic.relatives.ld import DECAY_BOUNDS, window_ends
from popdesic.relatives.ld_populations import ld_by_population, samples_by_population

BACKEND = select_backend("cpu", 2)


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, pd.DataFrame, dict[str, str]]:
    """Genotypes (sites, samples) with missing calls, LD within contigs; sites; populations."""
    rng = np.random.default_rng(4)
    genotypes = np.zeros((45, 50), np.int8)
    for site in range(45):
        fresh = rng.binomial(2, rng.uniform(0.02, 0.6), 50)
        keep = (rng.random(50) < 0.7) & (site % 15 > 0)
        genotypes[site] = np.where(keep, genotypes[site - 1], fresh)
    genotypes[rng.random(genotypes.shape) < 0.04] = -1
    sites = pd.DataFrame({"chrom": np.repeat(["1", "2", "X"], 15), "pos": np.tile(range(15), 3)})
    sites["pos"] = sites.pos * 37 + 5
    labels = dict(enumerate(["P"] * 20 + ["Q"] * 18 + ["R"] * 9 + ["NA"] * 3))
    labels = {f"s{k}": label for k, label in labels.items()}
    return genotypes, sites, labels


def oracle(genotypes: np.ndarray, sites: pd.DataFrame, window: int) -> list[tuple]:
    """Sums over all pairs: (from, to, pairs, mean); between contigs (None, None, pairs, mean)."""
    common = []
    for i, row in enumerate(genotypes):
        called = row[row >= 0]
        f = called.mean() / 2 if len(called) else 0
        if min(f, 1 - f) >= 0.05 and 0 < f < 1:
            common.append(i)
    found: dict[tuple, list[float]] = {}
    for i in common:
        for j in common:
            if i >= j:
                continue
            value = r2(genotypes[i], genotypes[j])
            if np.isnan(value):
                continue
            if sites.chrom[i] != sites.chrom[j]:
                found.setdefault((None, None), []).append(value)
                continue
            distance = sites.pos[j] - sites.pos[i]
            if distance <= window:
                k = int((distance >= DECAY_BOUNDS).sum()) - 1
                found.setdefault((DECAY_BOUNDS[k], DECAY_BOUNDS[k + 1]), []).append(value)
    last = found.pop((None, None), [])
    rows = [(*key, len(values), np.mean(values)) for key, values in sorted(found.items())]
    return rows + ([(None, None, len(last), np.mean(last))] if last else [])


def measured(drawn, folder: Path, window="400 bp", labels=None) -> pd.DataFrame:
    """Of two cohorts with the samples 0 to 29 and 30 to 49."""
    genotypes, sites, of = drawn
    prefixes, names = [folder / "a", folder / "b"], []
    for prefix, part in zip(prefixes, (range(30), range(30, 50)), strict=True):
        names.append(pd.Series([f"s{k}" for k in part]))
        write_plink(prefix, genotypes[:, part], names[-1], sites.chrom, sites.pos)
    keep = [np.ones(len(own), bool) for own in names]
    groups = samples_by_population(labels or of, names, keep)
    return ld_by_population(prefixes, groups, sites, window_ends(sites, window), BACKEND)


@pytest.mark.parametrize("run", [1024, 7])
@pytest.mark.parametrize("window", [400, 10_000])
def test_all_rows_equal_the_oracle(drawn, tmp_path, monkeypatch, run, window):
    monkeypatch.setattr(ld_populations, "BLOCK_SITES", run)
    monkeypatch.setattr(ld_populations, "MOST_RUNS", 100)
    table = measured(drawn, tmp_path, f"{window} bp")
    assert sorted(table.population.unique()) == ["P", "Q"]  # nine samples are too few
    for name, samples in (("P", slice(0, 20)), ("Q", slice(20, 38))):
        own = table[table.population == name]
        expected = oracle(drawn[0][:, samples], drawn[1], window)
        n = samples.stop - samples.start
        assert (own.samples == n).all() and len(own) == len(expected) > 3
        for row, (low, high, pairs, mean) in zip(own.itertuples(), expected, strict=True):
            bounds = (None, None) if row.from_bp is pd.NA else (row.from_bp, row.to_bp)
            assert (*bounds, row.pairs) == (low, high, pairs)
            assert row.mean_r2 == pytest.approx(mean, abs=1e-8)
            assert row.adjusted_r2 == pytest.approx(1 - (1 - mean) * (n - 1) / (n - 2), abs=1e-8)


def test_long_panels_show_some_runs(drawn, tmp_path, monkeypatch):
    every = measured(drawn, tmp_path).groupby("population").pairs.sum()
    monkeypatch.setattr(ld_populations, "BLOCK_SITES", 5)
    monkeypatch.setattr(ld_populations, "MOST_RUNS", 3)
    some = measured(drawn, tmp_path)
    within = some[some.from_bp.notna()].groupby("population").pairs.sum()
    assert (within < every * 0.5).all() and (within > 0).all()
    assert len(ld_populations.sampled_runs([(0, 17), (17, 30)])) == 3


def test_populations_without_ld_have_none_after_adjusting(tmp_path):
    rng = np.random.default_rng(8)
    genotypes = rng.binomial(2, 0.4, (400, 50)).astype(np.int8)
    sites = pd.DataFrame({"chrom": np.repeat(["1", "2"], 200), "pos": np.tile(range(200), 2)})
    labels = {f"s{k}": "PQ"[k % 2] for k in range(50)}
    table = measured((genotypes, sites, labels), tmp_path)
    assert table.mean_r2.min() > 0.03
    large = table[table.pairs > 10_000]
    assert len(large) and large.adjusted_r2.abs().max() < 0.004


def test_no_population(drawn, tmp_path):
    table = measured(drawn, tmp_path, labels={"s0": "P"})
    assert table.empty and list(table.columns) == list(ld_populations.COLUMNS)
