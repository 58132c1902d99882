"""Local ancestry: events against an enumeration of all paths, known tracts, phase switches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from oracles import copying as oracle

from popdesic.copying.copying import haplotypes_of, recombination
from popdesic.copying.local_ancestry import Sources, label_posteriors, mix_sample
from popdesic.copying.local_ancestry_cpu import pair_loop


def enumerated(first, second, redrawn, swapped, mu):
    """Posterior of pairs, and expected events, over all paths of three sites or fewer."""
    n_sites, n = first.shape
    none = n  # no new label
    posterior, events, whole = np.zeros((n_sites, n, n)), np.zeros(n + 2), 0.0
    steps = list(product((False, True), range(n + 1), range(n + 1)))
    for start in product(range(n), repeat=2):
        for path in product(steps, repeat=n_sites - 1):
            pair, pairs = start, [start]
            p = mu[pair[0]] * mu[pair[1]] * first[0, pair[0]] * second[0, pair[1]]
            seen = np.zeros(n + 2)
            seen[pair[0]] += 1
            seen[pair[1]] += 1
            for m, (swap, *labels) in enumerate(path, 1):
                p *= swapped[m] if swap else 1 - swapped[m]
                pair = pair[::-1] if swap else pair
                seen[-1] += swap
                for label in labels:
                    p *= 1 - redrawn[m] if label == none else redrawn[m] * mu[label]
                    if label != none:
                        seen[label] += 1
                        seen[n] += 1
                pair = tuple(
                    old if label == none else label for old, label in zip(pair, labels, strict=True)
                )
                p *= first[m, pair[0]] * second[m, pair[1]]
                pairs.append(pair)
            for m, (a, b) in enumerate(pairs):
                posterior[m, a, b] += p
            events += p * seen
            whole += p
    return posterior / whole, events / whole


@pytest.mark.parametrize(("n_sites", "n"), [(1, 2), (2, 3), (3, 2)])
def test_pairs_and_events_are_those_of_all_paths(n_sites, n):
    rng = np.random.default_rng(n)
    first, second = rng.random((2, n_sites, n))
    redrawn, swapped, mu = rng.random(n_sites), rng.random(n_sites), rng.dirichlet(np.ones(n))
    posterior, events = np.empty((n_sites, n, n)), np.zeros(n + 2)
    pair_loop(first, second, redrawn, swapped, mu, posterior, events)
    expected = enumerated(first, second, redrawn, swapped, mu)
    np.testing.assert_allclose(posterior, expected[0], rtol=1e-10)
    np.testing.assert_allclose(events, expected[1], rtol=1e-10)


def drawn_sources(n, n_sites, seed):
    """Haplotypes of two sources with other frequencies, `n` each, and a map."""
    rng = np.random.default_rng(seed)
    shares = np.clip(rng.random(n_sites) + rng.normal(0, 0.3, (2, n_sites)), 0.02, 0.98)
    rows = (rng.random((2 * n, n_sites)) < np.repeat(shares, n, axis=0)).astype(np.int8)
    return Sources(
        haplotypes_of(rows, np.arange(n_sites) * 0.05), np.repeat([0, 1], n), 500.0, 0.01
    ), rows


def test_labels_are_sums_of_posteriors():
    sources, rows = drawn_sources(7, 90, 1)
    rng = np.random.default_rng(2)
    alleles = rng.integers(-1, 2, 90).astype(np.int8)
    own = np.array([3, -1])
    found = label_posteriors(sources, alleles, own)
    called, others = np.flatnonzero(alleles >= 0), np.setdiff1d(np.arange(14), [3])
    cm = sources.panel.cm[called]
    shares, _ = oracle.posteriors(rows[others][:, called], cm, alleles[called], 500.0, 0.01)
    by_label = np.stack([shares[:, :6].sum(axis=1) / (6 / 13), shares[:, 6:].sum(axis=1) * 13 / 7])
    power = recombination(cm, 500.0, 13)
    np.testing.assert_allclose(found[called], (by_label.T + 1e-6) ** power[:, None], rtol=1e-4)
    assert (found[alleles < 0] == 1).all()


def mixed(sources, rows, switches, seed):
    """Haplotypes of a sample with tracts of 200 sites, copied, and the true labels."""
    rng = np.random.default_rng(seed)
    n_sites, n = rows.shape[1], len(rows) // 2
    truth = np.repeat(rng.integers(0, 2, (2, n_sites // 200)), 200, axis=1)
    copied = truth * n + np.repeat(rng.integers(0, n, (2, n_sites // 20)), 20, axis=1)
    alleles = rows[copied, np.arange(n_sites)]
    turned = (np.searchsorted(switches, np.arange(n_sites), side="right") % 2).astype(bool)
    alleles[:, turned], truth[:, turned] = alleles[::-1, turned], truth[::-1, turned]
    return alleles, truth


def test_tracts_are_found_across_phase_switches():
    sources, rows = drawn_sources(30, 3000, 3)
    switches = np.arange(77, 3000, 150)
    alleles, truth = mixed(sources, rows, switches, 4)
    found = mix_sample([sources], [alleles])
    pairs = found.pairs[0]
    number = np.stack([pairs[:, 0, 0], pairs[:, 0, 1] + pairs[:, 1, 0], pairs[:, 1, 1]]).argmax(0)
    assert (number == truth.sum(axis=0)).mean() > 0.97
    assert found.proportions[1] == pytest.approx(truth.mean(), abs=0.02)
    hets = (alleles[0] != alleles[1]).sum()
    # Of the 20 switches only those between unlike labels can be seen.
    assert 5 / hets < found.switch_rate < 40 / hets
    assert 4 < found.generations < 60  # 10 cM a tract
    still = mix_sample([sources], [mixed(sources, rows, [], 4)[0]])
    assert still.switch_rate < found.switch_rate / 2


def test_a_sample_of_one_source_is_not_mixed():
    sources, rows = drawn_sources(40, 1500, 5)
    for label in (0, 1):
        one = 40 * label + np.arange(2)
        found = mix_sample([sources], [rows[one]], [one])
        assert found.proportions[label] > 0.98


def test_chromosomes_tell_together_and_haploid_samples_are_read():
    sources, rows = drawn_sources(30, 1000, 6)
    alleles, truth = mixed(sources, rows, [], 7)
    both = mix_sample([sources, sources], [alleles, alleles])
    np.testing.assert_array_equal(both.pairs[0], both.pairs[1])
    one = mix_sample([sources], [alleles[:1]])
    assert (one.pairs[0].sum(axis=2).argmax(axis=1) == truth[0]).mean() > 0.95
    assert one.proportions[1] == pytest.approx(truth[0].mean(), abs=0.05)
    unknown = mix_sample([sources], [np.full((2, 1000), -1, np.int8)])
    np.testing.assert_allclose(unknown.proportions, 0.5)
