"""Slow, obvious versions of the epistasis scans: the oracles of their tests."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import stats
from scipy.special import gammaln, xlogy

from popdesic.epistasis.interaction_cpu import interaction_costs
from popdesic.epistasis.scan_data import Hits, OneHot, Partners, ScanData
from popdesic.epistasis.scores import lr_bits, score_tables


def random_scan(
    rng: np.random.Generator,
    n_sites: int,
    n_samples: tuple[int, int],
    *,
    missing: float = 0.0,
    frequencies: tuple[float, float, float] | None = None,
    tables: tuple[np.ndarray, np.ndarray],
) -> tuple[ScanData, np.ndarray, np.ndarray]:
    """Draw scan data; return it, its states int8 (n_sites, n_samples) and cases bool (n_samples).

    States: 0 and 1 are stored genotypes, 2 is missing, 3 is the genotype that is not stored.
    """
    cases = np.arange(sum(n_samples)) >= n_samples[0]
    states = np.empty((n_sites, sum(n_samples)), np.int8)
    for row in states:
        p = np.sort(rng.dirichlet((1, 1, 1))) if frequencies is None else frequencies
        row[:] = rng.choice([0, 1, 3], size=len(row), p=p)
        row[rng.random(len(row)) < missing] = 2
    stored = (states != 3).sum(axis=1)
    order = np.argsort(stored, kind="stable")
    states = states[order]
    return make_scan(states, cases, order.astype(np.int32), *tables), states, cases


def draw_scan(
    rng: np.random.Generator, score: str, n_sites: int, n_samples: tuple[int, int], missing: float
) -> tuple[ScanData, np.ndarray, np.ndarray]:
    """As `random_scan`, with the tables of a score."""
    tables = score_tables(score, *n_samples)
    data, states, cases = random_scan(rng, n_sites, n_samples, missing=missing, tables=tables)
    return replace(data, lr_bits=lr_bits(score, sum(n_samples))), states, cases


def assert_same(found: Hits, expected: Hits) -> None:
    assert found.cost.tolist() == expected.cost.tolist()
    assert found.sites.tolist() == expected.sites.tolist()


def make_scan(states, cases, rank, total, part) -> ScanData:
    """Scan data from states (0, 1 stored; 2 missing; 3 not stored), plane by plane."""
    kinds = [0, 1, 2] if (states == 2).any() else [0, 1]

    def planes(chosen):
        n = int(chosen.sum())
        words = np.zeros((len(states), len(kinds), -(-n // 64) * 8), np.uint8)
        for k, kind in enumerate(kinds):
            bits = np.packbits(states[:, chosen] == kind, axis=1, bitorder="little")
            words[:, k, : bits.shape[1]] = bits
        return OneHot(words.view(np.uint64), n)

    return ScanData((planes(~cases), planes(cases)), total, part, rank)


def scan_of_blocks(
    rng: np.random.Generator,
    score: str,
    n_incomplete: int,
    n_complete: int,
    n_samples: tuple[int, int],
    missing: float = 0.1,
) -> ScanData:
    """Scan data whose first sites, at least one, lack genotypes and whose last ones do not."""
    cases = np.arange(sum(n_samples)) >= n_samples[0]
    states = np.empty((n_incomplete + n_complete, sum(n_samples)), np.int8)
    for i, row in enumerate(states):
        row[:] = rng.choice([0, 1, 3], size=len(row), p=np.sort(rng.dirichlet((2, 2, 2))))
        if i < n_incomplete:
            row[rng.random(len(row)) < missing] = 2
    states[max(0, n_incomplete - 1), 0] = 2
    rank = rng.permutation(len(states)).astype(np.int32)
    data = make_scan(states, cases, rank, *score_tables(score, *n_samples))
    return replace(data, lr_bits=lr_bits(score, sum(n_samples)))


def random_partners(rng: np.random.Generator, n_sites: int, max_r2: float) -> Partners:
    """Rules that forbid about a quarter of all pairs by distance, and some by r2."""
    chrom = rng.integers(0, 2, n_sites, np.int32)
    pos, middle = rng.integers(0, 100, n_sites, np.int32), rng.integers(0, 3, n_sites, np.int8)
    return Partners(chrom, pos, middle, 30, max_r2)


def permits(partners: Partners, counts: np.ndarray, sites: tuple[int, ...]) -> bool:
    """Whether `partners` permits sites with this table, in Python's fractions."""
    people = counts.sum(axis=0)
    for a, b in itertools.combinations(range(len(sites)), 2):
        i, j = sites[a], sites[b]
        apart = abs(int(partners.pos[i]) - int(partners.pos[j]))
        if partners.chrom[i] == partners.chrom[j] and apart < partners.min_distance_bp:
            return False
        values = []  # allele counts of everybody
        for states in np.ndindex(*people.shape):
            pair = [
                {0: 1, 1: 2, 2: 0}[(states[k] - int(partners.middle[sites[k]])) % 3] for k in (a, b)
            ]
            values += [pair] * int(people[states])
        if partners.max_r2 < 1 and values:
            x, y = ([Fraction(v) for v in column] for column in zip(*values, strict=True))
            mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
            covariance = sum((u - mean_x) * (v - mean_y) for u, v in zip(x, y, strict=True))
            variances = [sum((u - m) ** 2 for u in c) for c, m in ((x, mean_x), (y, mean_y))]
            if covariance**2 > Fraction(partners.max_r2) * variances[0] * variances[1]:
                return False
    return True


def table(states: np.ndarray, cases: np.ndarray, sites: tuple[int, ...]) -> np.ndarray:
    """Contingency table of jointly called samples: int64 (2, 3, 3[, 3]), axes of states 0, 1, 3."""
    counts = np.zeros((2, *(4,) * len(sites)), np.int64)
    for sample in range(states.shape[1]):
        counts[(int(cases[sample]), *(int(states[s, sample]) for s in sites))] += 1
    return counts[np.ix_([0, 1], *[[0, 1, 3]] * len(sites))]


def cost(counts: np.ndarray, total: np.ndarray, part: np.ndarray) -> int:
    """Cost of one table, cell by cell in Python integers."""

    def cell(n0, n1):
        if not len(part):  # Gini
            return round(n0 * n1 / max(n0 + n1, 1) * int(total[0]))
        return int(total[n0 + n1]) - int(part[n0]) - int(part[n1])

    pairs = list(zip(counts[0].ravel().tolist(), counts[1].ravel().tolist(), strict=True))
    return sum(cell(*pair) for pair in pairs) - cell(*map(sum, zip(*pairs, strict=True)))


def mean_log_ways(n: int, n_controls: int, n_cases: int) -> float:
    """Mean of ln C(n, K) over all ways to draw the n people of a cell."""
    k = np.arange(max(0, n - n_controls), min(n, n_cases) + 1)
    chance = stats.hypergeom.pmf(k, n_controls + n_cases, n_cases, n)
    return float(chance @ (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)))


def interaction(counts: np.ndarray, sweeps: int = 4000) -> float:
    """LR / 2 in nats of the interaction of all sites of a table (2, 3, 3[, 3]).

    By iterative proportional fitting to all margins of one axis fewer; never too small.
    """
    fitted = np.ones(counts.shape)
    for _ in range(sweeps):
        before = fitted
        for axis in range(counts.ndim):
            want, have = (x.sum(axis=axis, keepdims=True) for x in (counts, fitted))
            fitted = fitted * np.divide(want, have, out=np.zeros(have.shape), where=have > 0)
        if np.abs(fitted - before).max() < 1e-13 * counts.sum():
            break
    ratio = np.divide(counts, fitted, out=np.ones(counts.shape), where=counts > 0)
    return float((counts * np.log(ratio)).sum())


def scan(
    data: ScanData,
    states: np.ndarray,
    cases: np.ndarray,
    order: int,
    first: range,
    top: int,
) -> Hits:
    """The best `top` of all combinations, computed one by one.

    Costs of interactions by the code of the scan itself, which `interaction` tests.
    """
    found = []
    for sites in itertools.combinations(range(len(states)), order):
        if sites[0] not in first:
            continue
        counts = table(states, cases, sites)
        if data.partners is not None and not permits(data.partners, counts, sites):
            continue
        if data.lr_bits is None:
            value = cost(counts, data.total, data.part)
        else:
            value = int(interaction_costs(counts.reshape(1, 2, -1), data.lr_bits)[0])
        found.append((value, sorted(int(data.rank[s]) for s in sites), sites))
    found = sorted(found)[:top]
    return Hits(
        np.array([f[0] for f in found], np.int64),
        np.array([f[2] for f in found], np.int32).reshape(-1, order),
    )


def class_information(tables: np.ndarray) -> np.ndarray:
    """N times the mutual information of genotypes and class, in nats: float64 (n,)."""
    tables = tables.reshape(len(tables), 2, -1).astype(np.float64)
    parts = (tables, tables.sum(axis=1), tables.sum(axis=2), tables.sum(axis=(1, 2)))
    cells, genotypes, classes, whole = (xlogy(n, n).reshape(len(n), -1).sum(axis=1) for n in parts)
    return cells - genotypes - classes + whole
