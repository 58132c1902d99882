"""Permutation p-values, and the groups within which phenotypes are permuted."""

import numpy as np
import pandas as pd
from test_epistasis import build, random_genotypes

from popdesic.epistasis.options import permutations_run
from popdesic.epistasis.relatedness import Relatives, permutation_groups
from popdesic.epistasis.reorder import read_reordered, unpack_states
from popdesic.epistasis.scan import permuted
from popdesic.epistasis.scores import load_scan
from popdesic.epistasis.significance import strata_columns


def test_permutations_are_run_for_association_scores_alone():
    block = {"permutations": [200, 5]}
    assert permutations_run(block, {2: "k2", 3: "mutual_information"}) == {2: 200, 3: 5}
    assert permutations_run(block, {2: "interaction", 3: "k2"}) == {2: 0, 3: 5}
    assert permutations_run({"permutations": 9}, {2: "k2", 3: "k2"}) == {2: 9, 3: 0}
    assert permutations_run(block, {2: "residuals", 3: "interaction"}) == {2: 0, 3: 0}


def test_phenotypes_move_within_families_and_among_unrelated_people(tmp_path):
    """Families of a stratum keep their numbers of cases; the others exchange theirs."""
    rng = np.random.default_rng(4)
    case, strata = rng.integers(0, 2, 60), ["x"] * 30 + ["y"] * 30
    genotypes = np.tile(np.arange(60) % 3, (12, 1))
    genotypes[:6] = random_genotypes(rng, 6, 60)
    genotypes[6:] = np.array([[int(k >> bit & 1) for k in range(60)] for bit in range(6)])
    folder, _ = build(tmp_path, genotypes, case, strata=strata)
    words, sites, samples = read_reordered(folder)
    data, _, _ = load_scan(folder, "k2", 0, 1.0)
    number = samples["sample"].str[1:].astype(int).to_numpy()
    place = np.argsort(number)
    pairs = [(k, k + 1) for k in range(0, 12, 3)] + [(k + 1, k + 2) for k in range(0, 12, 3)]
    pairs += [(29, 30)]  # across strata: they are not exchangeable
    first, second = place[np.array(pairs)].T
    relatives = Relatives(first, second, np.full(len(pairs), 0.25))
    groups = permutation_groups(samples["stratum"], relatives)
    by_number = groups[place]
    assert all(len(set(by_number[k : k + 3])) == 1 for k in range(0, 12, 3))
    assert len(set(by_number)) == 4 + 2 and set(by_number[12:30]) == {"x"}
    assert set(by_number[30:]) == {"y"}
    moved = 0
    for index in range(8):
        drawn = permuted(words, samples.assign(stratum=groups), data, 1, index)
        split = drawn.classes[0].n_samples
        planes = np.concatenate([one.words for one in drawn.classes], axis=2)
        states = unpack_states(planes, split, 60 - split)
        # Sites 6 to 11 spell a person's number: where did each one go?
        labels = np.insert(sites[["state0", "state1", "other"]].to_numpy(), 2, -1, axis=1)
        alt = np.take_along_axis(labels, states.astype(int), axis=1)
        bits = [alt[np.flatnonzero(sites["rank"] == 6 + bit)[0]] for bit in range(6)]
        who = sum(bit.astype(int) << k for k, bit in enumerate(bits))
        now = np.zeros(60, int)
        now[who] = np.arange(60) >= split
        for group in set(by_number):
            members = by_number == group
            assert now[members].sum() == case[members].sum(), group
        moved += (now != case).sum()
    assert moved > 50


def test_strata_are_columns_of_the_null_model():
    samples = pd.DataFrame({"stratum": ["b", "a", "c", "a"]})
    assert strata_columns(samples).tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert strata_columns(samples.assign(stratum="all")).shape == (4, 0)
