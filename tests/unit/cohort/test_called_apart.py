"""Simulated cohorts called apart give what their joint call gives; shared sites alone do not."""

import numpy as np
import pytest
from scenes.called_apart import NAMES, STRETCH, Scene, compare, measure


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return Scene(tmp_path_factory.mktemp("apart"), 3, 12, 300_000, 0.85)


@pytest.mark.parametrize("founders", [NAMES, ("A",)])
def test_variant_files_give_the_numbers_of_the_joint_call(scene, founders):
    truth = measure(scene.joint(founders))
    found = compare(measure(scene.run("variants", "reference", founders)), truth)
    assert found.sites == truth.sites
    assert np.abs([*found.heterozygosity, *found.f_st, found.kinship, found.axes]).max() < 1e-9
    shared = compare(measure(scene.run("variants", "missing", founders)), truth)
    assert np.abs(shared.heterozygosity).max() > 0.2


@pytest.mark.parametrize("founders", [NAMES, ("A",)])
def test_masked_files_give_the_joint_call_within_the_masks(scene, founders):
    joint = scene.joint(founders)
    stretch = (joint.positions - 1) // STRETCH
    kept = np.logical_and.reduce([scene.masks[name][stretch] for name in founders])
    found = scene.run("masked", "mask", founders)
    assert np.array_equal(found.positions, joint.positions[kept])
    for name in NAMES:
        rows = joint.population == name
        expected = joint.genotypes[np.ix_(rows, kept)]
        expected[:, ~scene.masks[name][stretch[kept]]] = -1
        assert np.array_equal(found.genotypes[rows], expected)
