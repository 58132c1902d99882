"""Quality control equals Hardy-Weinberg in exact fractions, and counts and rates by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.stats
from oracles import reference
from support.study import make_cohorts, write_raw

from popdesic.cohort import qc
from popdesic.cohort.call_rates import BY_CHANCE
from popdesic.cohort.genotypes_cpu import add_by_sample, count_by_group
from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.io.sites import chunks


def run(tmp_path: Path, cohort, min_call_rate: float = 0.9, populations: dict | None = None):
    """Summarise a cohort; return counts and both tables."""
    if populations is None:
        populations = dict(zip(cohort.samples, cohort.populations, strict=True))
    counts = summarize_cohort(
        write_raw(tmp_path / "raw", cohort),
        populations,
        tmp_path / "sites.tsv",
        tmp_path / "samples.tsv",
        min_sample_call_rate=min_call_rate,
    )
    read = {"sep": "\t", "keep_default_na": False, "na_values": {"af": ["NA"]}}
    return counts, *(pd.read_csv(tmp_path / f"{n}.tsv", **read) for n in ("sites", "samples"))


# --- Hardy-Weinberg -----------------------------------------------------------------------------


@pytest.mark.parametrize("midp", [True, False])
def test_hwe_of_all_small_samples(midp):
    counts = [(r, h, a) for r in range(9) for h in range(9) for a in range(9) if r + h + a <= 16]
    found = hwe_exact(*np.array(counts).T, midp=midp)
    for (n_ref, n_het, n_alt), p in zip(counts, found, strict=True):
        if n_het + 2 * min(n_ref, n_alt) == 0:
            assert p == 1.0
        else:
            # sums of a few dozen doubles, each off by a few units in the last place
            exact = float(reference.hwe_exact(n_ref, n_het, n_alt, midp))
            assert p == pytest.approx(exact, rel=1e-11), (n_ref, n_het, n_alt)


@pytest.mark.parametrize("counts", [(57, 14, 50), (1469, 138, 5), (0, 500, 0), (300, 0, 300)])
def test_hwe_of_large_samples(counts):
    found = hwe_exact(*(np.array([n]) for n in counts))[0]
    # log-gamma of values in the thousands loses up to four of sixteen digits
    assert found == pytest.approx(float(reference.hwe_exact(*counts)), rel=1e-9)


@pytest.mark.parametrize("midp", [True, False])
def test_the_test_for_excess_of_all_small_samples(midp):
    counts = [(r, h, a) for r in range(9) for h in range(9) for a in range(9) if r + h + a <= 16]
    found = hwe_exact(*np.array(counts).T, midp=midp, excess=True)
    for (n_ref, n_het, n_alt), p in zip(counts, found, strict=True):
        if n_het + 2 * min(n_ref, n_alt) == 0:
            assert p == 1.0
        else:
            exact = float(reference.hwe_excess(n_ref, n_het, n_alt, midp))
            assert p == pytest.approx(exact, rel=1e-11), (n_ref, n_het, n_alt)


def test_hwe_published_value():
    # Wigginton, Cutler and Abecasis 2005: n = 100, 21 copies of the rare allele, 17 or more
    # heterozygotes agree with equilibrium; 5 do not.
    assert hwe_exact(np.array([87]), np.array([5]), np.array([8]), midp=False)[0] < 1e-6


def test_hwe_is_close_to_chi_square_where_that_holds():
    n_ref, n_het, n_alt = 2500 - 30, 5000 + 60, 2500 - 30
    n = n_ref + n_het + n_alt
    p = (2 * n_ref + n_het) / (2 * n)
    expected = np.array([n * p * p, 2 * n * p * (1 - p), n * (1 - p) ** 2])
    chi = scipy.stats.chisquare([n_ref, n_het, n_alt], expected, ddof=1).pvalue
    found = hwe_exact(*(np.array([x]) for x in (n_ref, n_het, n_alt)))[0]
    # one outcome more or less in the discrete tail: 0.004 at p = 0.23
    assert found == pytest.approx(chi, rel=2e-2)


def test_hwe_is_symmetric_and_independent_of_order():
    rng = np.random.default_rng(1)
    r, h, a = rng.integers(0, 60, (3, 200))
    found = hwe_exact(r, h, a)
    np.testing.assert_allclose(hwe_exact(a, h, r), found, rtol=1e-12)  # sums in another order
    order = rng.permutation(200)
    np.testing.assert_array_equal(hwe_exact(r[order], h[order], a[order]), found[order])
    assert ((found > 0) & (found <= 1)).all()


# --- counting kernels ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5, 63, 64, 65])
def test_counts_by_group_and_by_sample(n_samples):
    rng = np.random.default_rng(n_samples)
    genotypes = rng.integers(-1, 3, (37, n_samples)).astype(np.int8)
    rows = np.frombuffer(reference.bed_bytes(genotypes)[3:], np.uint8).reshape(37, -1)
    group = rng.integers(-1, 3, n_samples)
    by_group = count_by_group(rows, group, 3, threads=2)
    by_sample = np.zeros((n_samples, 4), np.int64)
    add_by_sample(rows, by_sample)
    for state, genotype in enumerate((0, 1, 2, -1)):
        hits = genotypes == genotype
        np.testing.assert_array_equal(by_sample[:, state], hits.sum(axis=0))
        for g in range(3):
            np.testing.assert_array_equal(by_group[:, g, state], hits[:, group == g].sum(axis=1))


def test_chunks():
    assert list(chunks(10, 4)) == [(0, 4), (4, 8), (8, 10)]
    assert list(chunks(0, 4)) == []


# --- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [7, 16_384])
def test_tables(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(qc.chunks, "__defaults__", (chunk,))
    cohort = make_cohorts((50,), n_sites=50, missing=0.05)[0]
    cohort.genotypes[:20, 3] = -1  # N03: below 0.8
    cohort.populations[-5:] = ["few"] * 5
    genotypes = cohort.genotypes
    counts, sites, samples = run(tmp_path, cohort, 0.8)
    assert counts == {"samples": 50, "samples_left_out": 1, "sites": 50}

    called = (genotypes >= 0).sum(axis=0)
    assert samples["sample"].tolist() == cohort.samples
    assert samples.population.tolist() == cohort.populations
    assert samples.n_called.tolist() == called.tolist()
    assert samples.n_missing.tolist() == (50 - called).tolist()
    # tables hold six significant digits
    np.testing.assert_allclose(samples.call_rate, called / 50, rtol=1e-5)
    np.testing.assert_allclose(
        samples.heterozygosity, (genotypes == 1).sum(axis=0) / called, rtol=1e-5
    )
    assert samples["sample"][samples.keep == "no"].tolist() == ["N03"]

    kept = np.array([name != "N03" for name in cohort.samples])
    among = genotypes[:, kept]
    for column, genotype in (("n_ref", 0), ("n_het", 1), ("n_alt", 2), ("n_missing", -1)):
        assert sites[column].tolist() == (among == genotype).sum(axis=1).tolist(), column
    there = list(sites[["chrom", "pos", "id", "ref", "alt"]].itertuples(index=False, name=None))
    assert there == [(int(chrom), *rest) for chrom, *rest in cohort.sites]
    af = np.where(among >= 0, among, 0).sum(axis=1) / (2 * (among >= 0).sum(axis=1))
    np.testing.assert_allclose(sites.af, af, rtol=1e-5)
    p_values, parts = {}, [among]
    for population, label in (("P", "P"), ("Q", "Q"), ("NA", "few")):
        chosen = genotypes[:, kept & (np.array(cohort.populations) == label)]
        if label != "few":
            parts.append(chosen)
        exact = reference.hwe_excess if label == "few" else reference.hwe_exact
        p_values[population] = [
            float(exact(*((row == g).sum() for g in (0, 1, 2))))
            if len(set(row[row >= 0])) > 1 or (row == 1).any()
            else 1.0
            for row in chosen
        ]
        np.testing.assert_allclose(sites[f"hwe_p_{population}"], p_values[population], rtol=1e-5)
    np.testing.assert_allclose(sites.hwe_p_min, np.min([*p_values.values()], axis=0), rtol=1e-5)
    assert list(sites.columns[-4:]) == ["hwe_p_min", "hwe_p_P", "hwe_p_Q", "hwe_p_NA"]
    bound = []
    for part in parts:
        test = [(int(missing), part.shape[1]) for missing in (part < 0).sum(axis=1)]
        bound.append([1 - largest_rate(missing, n) for missing, n in test])
    np.testing.assert_allclose(sites.call_rate_bound, np.min(bound, axis=0), rtol=1e-5)


def largest_rate(missing: int, n: int) -> float:
    """Smallest rate of missing calls at which as many or more have the probability BY_CHANCE."""
    if not missing:
        return 0.0
    if missing == n:
        return 1.0
    at_least = lambda rate: scipy.stats.binom.sf(missing - 1, n, rate) - BY_CHANCE  # noqa: E731
    return scipy.optimize.brentq(at_least, 1e-12, 1 - 1e-12, xtol=1e-12)


def test_call_rate_at_the_limit_is_kept(tmp_path):
    cohort = make_cohorts((4,), n_sites=20, missing=0)[0]
    cohort.genotypes[:2, 0] = -1
    cohort.genotypes[:3, 1] = -1
    _, _, samples = run(tmp_path, cohort, 0.9)
    assert samples.keep.tolist() == ["no" if k == 1 else "yes" for k in range(4)]


def test_sites_without_calls(tmp_path):
    cohort = make_cohorts((4,), n_sites=20, missing=0)[0]
    cohort.genotypes[5] = -1
    _, sites, _ = run(tmp_path, cohort, 0.5)
    assert np.isnan(sites.af[5])
    assert sites.hwe_p_min[5] == 1
    assert sites.n_missing[5] == 4


def test_samples_without_population(tmp_path):
    cohort = make_cohorts((4,), n_sites=20)[0]
    _, sites, samples = run(tmp_path, cohort, populations={})
    assert set(samples.population) == {"NA"}
    assert "hwe_p_NA" in sites


def test_a_population_called_min_has_its_own_column(tmp_path):
    """`hwe_p_min` stays the smallest of all p, even if a population is called `min`."""
    cohort = make_cohorts((100,), n_sites=50, missing=0)[0]
    labels = ["min", "min_", "P", "af", "chrom"]
    given = {name: labels[k % 5] for k, name in enumerate(cohort.samples)}
    _, sites, _ = run(tmp_path, cohort, populations=given)
    plain = {name: f"g{labels.index(label)}" for name, label in given.items()}
    (tmp_path / "other").mkdir()
    _, other, _ = run(tmp_path / "other", cohort, populations=plain)
    columns = ["hwe_p_min_", "hwe_p_min__", "hwe_p_P", "hwe_p_af", "hwe_p_chrom"]
    assert sorted(c for c in sites if c.startswith("hwe_p")) == sorted([*columns, "hwe_p_min"])
    assert sites.hwe_p_min.tolist() == other.hwe_p_min.tolist()
    assert (sites.hwe_p_min == sites[columns].min(axis=1)).all()
    for k, column in enumerate(columns):
        assert sites[column].tolist() == other[f"hwe_p_g{k}"].tolist()
    assert sites[["chrom", "af"]].equals(other[["chrom", "af"]])
    assert sites.columns.is_unique


def test_sample_without_a_genotype(tmp_path):
    cohort = make_cohorts((4,), n_sites=20)[0]
    cohort.genotypes[:, 2] = -1
    for limit in (0.9, 0.0):  # nothing can be said of the sample, whatever the limit
        _, sites, samples = run(tmp_path, cohort, min_call_rate=limit)
        assert samples.keep.tolist() == ["yes", "yes", "no", "yes"]
        assert samples.left_out.tolist()[2] == "qc.min_sample_call_rate"
        others = np.delete(cohort.genotypes, 2, axis=1)
        assert sites.n_missing.tolist() == (others < 0).sum(axis=1).tolist()


def test_no_sample_passes(tmp_path):
    cohort = make_cohorts((4,), n_sites=20, missing=0)[0]
    cohort.genotypes[:8] = -1
    with pytest.raises(UserError, match=r"call rate of at least 0\.9 .*best: 0\.6000"):
        run(tmp_path, cohort)
    assert not list(tmp_path.glob("*.tsv"))
