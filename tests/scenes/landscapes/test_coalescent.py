"""The coalescent of the scenes against msprime, and expected times against both and by hand."""

from itertools import combinations

import msprime
import numpy as np
import pytest

from scenes.landscapes.coalescent import Epoch, draw_sites
from scenes.landscapes.truth import distances_of_times, expected_times, route_lengths

#: Everything at once: a chain of four demes of unequal size, of which the last was founded by a
#: pulse from two others, and which were one population before that.
SIZES = np.array([50.0, 100.0, 50.0, 80.0])
ANCESTOR = np.array([120.0, 60.0, 60.0, 60.0])
HISTORY = [
    Epoch(0, SIZES, [(0, 1), (1, 2), (2, 3)], 0.01),
    Epoch(40, SIZES, [(0, 1), (1, 2)], 0.02, [(3, 0, 0.3), (3, 2, 1.0)]),
    Epoch(300, ANCESTOR, [(0, 1)], 0.005, [(2, 1, 1.0)]),
]
PEOPLE, MIN_MAF = 6, 0.1


def demography(epochs: list[Epoch]) -> msprime.Demography:
    """The same history in msprime."""
    made = msprime.Demography.isolated_model([*epochs[0].sizes])
    names = [one.name for one in made.populations]
    for a, b in epochs[0].edges:
        made.set_symmetric_migration_rate([names[a], names[b]], epochs[0].rate)
    for epoch in epochs[1:]:
        for a, b, share in epoch.moves:
            made.add_mass_migration(epoch.start, source=names[a], dest=names[b], proportion=share)
        made.add_migration_rate_change(epoch.start, rate=0)
        for a, b in epoch.edges:
            for source, dest in ((a, b), (b, a)):
                made.add_migration_rate_change(
                    epoch.start, rate=epoch.rate, source=names[source], dest=names[dest]
                )
        for name, size in zip(names, epoch.sizes, strict=True):
            made.add_population_parameters_change(epoch.start, initial_size=size, population=name)
    return made


def trees(epochs: list[Epoch], n: int, seed: int = 1):
    who = dict.fromkeys((f"pop_{d}" for d in range(len(epochs[0].sizes))), PEOPLE)
    return msprime.sim_ancestry(
        who, demography=demography(epochs), num_replicates=n, random_seed=seed, sequence_length=1
    )


def moments(frequency: np.ndarray) -> np.ndarray:
    """Of the derived allele: mean, heterozygosity of each deme, squared differences of two.

    `frequency` (..., 4) in the demes; the result is (..., 11).
    """
    one, other = np.array([*combinations(range(4), 2)]).T
    return np.concatenate(
        [
            frequency.mean(axis=-1, keepdims=True),
            frequency * (1 - frequency),
            (frequency[..., one] - frequency[..., other]) ** 2,
        ],
        axis=-1,
    )


def of_msprime(tree) -> np.ndarray:
    """Expected moments of a mutation that is common enough, given the tree."""
    n, lengths, frequencies = tree.num_samples(), [], []
    for node in tree.nodes():
        if node != tree.root and min(k := tree.num_samples(node), n - k) >= MIN_MAF * n:
            below = np.bincount([leaf // (2 * PEOPLE) for leaf in tree.samples(node)], minlength=4)
            frequencies.append(below / (2 * PEOPLE))
            lengths.append(tree.branch_length(node))
    return np.average(moments(np.array(frequencies)), axis=0, weights=lengths)


def standard_errors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Difference of the means of two sets of rows, in standard errors."""
    variance = a.var(axis=0) / len(a) + b.var(axis=0) / len(b)
    return (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(variance)


def test_sites_have_the_moments_of_msprime():
    theirs = np.array([of_msprime(ts.first()) for ts in trees(HISTORY, 2_000)])
    home = np.repeat(np.arange(4), PEOPLE)
    sites = draw_sites(HISTORY, home, 20_000, np.random.default_rng(1), min_maf=MIN_MAF)
    ours = moments(sites.reshape(-1, 4, PEOPLE).sum(axis=2) / (2 * PEOPLE))
    assert np.abs(standard_errors(ours, theirs)).max() < 4


def test_expected_times_are_the_means_of_msprime():
    pairs = [(0, 0), (0, 1), (0, 3), (1, 2), (2, 3), (3, 3)]
    times = []
    for ts in trees(HISTORY, 3_000, seed=2):
        tree = ts.first()
        times.append([tree.tmrca(2 * PEOPLE * a, 2 * PEOPLE * b + 1) for a, b in pairs])
    times = np.array(times)
    expected = np.array([expected_times(HISTORY)[pair] for pair in pairs])
    error = times.std(axis=0) / np.sqrt(len(times))
    assert np.abs((times.mean(axis=0) - expected) / error).max() < 4


def test_expected_times_of_islands_are_those_of_slatkin():
    d, n, m = 4, 100, 0.02
    found = expected_times([Epoch(0, np.full(d, float(n)), [*combinations(range(d), 2)], m / 3)])
    assert np.diagonal(found) == pytest.approx(2 * n * d)
    assert found[0, 1:] == pytest.approx(2 * n * d + (d - 1) / (2 * m))
    assert distances_of_times(found)[0] == pytest.approx([0, 75, 75, 75])


def test_expected_times_of_a_split_and_a_pulse():
    sizes = np.full(3, 100.0)
    huge = np.full(3, 1e12)  # nobody meets before the pulse
    found = expected_times(
        [
            Epoch(0, huge),
            Epoch(10, sizes, moves=[(2, 1, 0.5), (2, 0, 1.0)]),
            Epoch(500, sizes, moves=[(1, 0, 1.0)]),
        ]
    )
    assert found[0, 0] == pytest.approx(10 + 200)
    assert found[0, 1] == pytest.approx(500 + 200)
    assert found[0, 2] == pytest.approx(found[2, 2]) == pytest.approx((210 + 700) / 2)


def test_routes_are_counted_along_edges():
    lengths = route_lengths(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert lengths[0].tolist() == [0, 1, 2, 1]
    assert (lengths == lengths.T).all()


def test_a_share_of_ancestry_decides_where_a_gene_copy_starts():
    apart = [
        Epoch(0, np.full(2, 10.0)),
        Epoch(5_000, np.full(2, 10.0), moves=[(1, 0, 1.0)]),
    ]
    share = np.repeat([0.0, 0.25, 1.0], 40)
    sites = draw_sites(
        apart, np.zeros(120, int), 1_000, np.random.default_rng(1), min_maf=0.2, share=share
    )
    first, mixed, second = sites.reshape(1_000, 3, 40).mean(axis=2).T / 2
    assert (np.abs(first - second) == 1).mean() > 0.98  # nearly all mutations are on the two stems
    likeness = np.mean((mixed - first) / (second - first))
    assert likeness == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    "epochs",
    [
        [Epoch(0, np.full(2, 10.0))],
        [Epoch(0, np.full(3, 10.0), [(0, 2)], 0.1)],
        [Epoch(0, np.full(2, 10.0)), Epoch(9, np.full(2, 10.0), moves=[(1, 0, 0.9)])],
    ],
)
def test_demes_that_never_meet_are_refused(epochs):
    with pytest.raises(ValueError, match="never meet"):
        draw_sites(epochs, np.array([0, 1]), 1, np.random.default_rng(1))
