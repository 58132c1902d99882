"""Axes of inbred families are left out; those of small populations stay."""

import json

import numpy as np
import pandas as pd
import pytest
from scenes.relatives import define_axes_of, draw_inbred, draw_outliers

from popdesic.components.one_family import FamilyAxis, drop_families, shared_genome, stretches_of
from popdesic.report.axis_warnings import axis_warnings


@pytest.fixture(scope="module")
def inbred(tmp_path_factory):
    scene, families = draw_inbred(50)
    folder = tmp_path_factory.mktemp("inbred")
    return folder, scene, families, define_axes_of(scene, folder)


def test_inbred_families_define_no_axes(inbred):
    folder, _, families, about = inbred
    assert about["families"], "a scene in which KING-robust leaves relatives"
    assert about["significant"] == 0
    named = {int(name[1:]) for one in about["families"] for name in one["left_out"]}
    assert named <= {x for family in families for x in family}
    axes = np.load(folder / "axes.npz")
    assert not named & {int(name[1:]) for name in axes["samples"]}
    assert about["axis_samples"] == len(axes["samples"]) == len(axes["own"])


def test_the_page_says_who_was_left_out(inbred):
    """By the numbers of axes.json."""
    folder, *_ = inbred
    about = json.loads((folder / "axes.json").read_text())
    texts = [text for topic, text in axis_warnings({**about, "shifts": []}) if "family" in topic]
    assert len(texts) == len(about["families"])
    for text, one in zip(texts, about["families"], strict=True):
        assert text.startswith(f"PC{one['axis']} was that of one ")
        assert f"{one['share']:.0%}".replace("%", "") in text
        assert all(name in text for name in one["samples"])


def test_axes_of_small_populations_stay(tmp_path):
    about = define_axes_of(draw_outliers(1, n=90, sites=6_000), tmp_path)
    assert about["families"] == [] and about["significant"] == 2


def test_all_founders_define_axes_where_that_is_asked_for(inbred, tmp_path):
    """With close_kinship 0 there is no table of who is unrelated."""
    from popdesic.components.define_axes import define_axes

    folder, scene, _, _ = inbred
    paths = {name: tmp_path / name for name in ("axes", "about", "loadings")}
    options = {"components": "auto", "pcs": 2, "ld_prune": [], "regions": []}
    given = [folder / "genotypes"], folder / "sites.tsv"
    about = define_axes(*given, unrelated=None, **options, out=paths)
    assert about["axis_samples"] == len(scene.kind) and about["families"] == []


def test_shared_genome_of_known_pairs():
    """Half of the second contig by descent; a sample without heterozygotes on the first."""
    rng = np.random.default_rng(1)
    n_sites, af = 4_000, np.full(4_000, 0.5)
    sites = pd.DataFrame({"chrom": ["1"] * 2_000 + ["2"] * 2_000})
    haplotypes = rng.integers(0, 2, (4, 2, n_sites)).astype(np.int8)
    haplotypes[1, 0, 3_000:] = haplotypes[0, 0, 3_000:]
    haplotypes[2, 1, :2_000] = haplotypes[2, 0, :2_000]
    genotypes = haplotypes.sum(axis=1)
    genotypes[3] = -1
    found = shared_genome(lambda a, b: genotypes[:, a:b].T, af, sites)
    assert found[0, 1] == pytest.approx(0.25, abs=0.02)
    assert found[2, 2] == pytest.approx(0.5, abs=0.02)
    assert found[0, 2] < 0.02 and found[0, 0] < 0.02
    assert (found[3] == 0).all(), "nothing is called"
    stretch = stretches_of(2 * (af * (1 - af)) ** 2, sites)
    assert (np.bincount(stretch) >= 79).all() and len(np.unique(stretch[:2_000])) == 25
    assert stretch[2_000] == stretch[1_999] + 1


def test_the_first_of_each_family_stays_in_any_cohort():
    keep = [np.array([True, False, True]), np.array([False, True, True])]
    families = [FamilyAxis(1, [1, 2], 0.9), FamilyAxis(2, [3], 0.6)]
    left, about = drop_families(keep, ["a", "c", "e", "f"], families)
    assert [x.tolist() for x in left] == [[True, False, True], [False, False, False]]
    assert [one["left_out"] for one in about] == [["e"], ["f"]]
