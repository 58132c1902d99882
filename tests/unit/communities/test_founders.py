"""What founders tell of communities is kept, and newcomers change none of it."""

import numpy as np
import pandas as pd
import pytest
from scenes.landscapes import scene
from scenes.landscapes.splitting import genotypes_of
from support.plink_files import write_plink

from popdesic.communities import study_splits, within
from popdesic.communities.founders import KEPT, Founders, founders_of
from popdesic.communities.stability import measure_stability
from popdesic.communities.study_splits import SplitSource, split_study
from popdesic.communities.within import structure_within
from popdesic.core.files import write_json
from popdesic.core.tables import write_npy, write_npz

SIZE = 40


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def study(tmp_path, rng):
    """Three groups of founders, and newcomers that are of two of them and of a fourth."""
    group = np.repeat([0, 1, 2, 0, 1, 3], [SIZE, SIZE, SIZE, 10, 10, 20])
    centre = np.array([[0, 0], [6, 0], [0, 9], [9, 9]], float)
    points = centre[group] + rng.normal(size=(len(group), 2))
    af = rng.uniform(0.1, 0.9, (4, 600))
    genotypes, cohorts = (
        rng.binomial(2, af[group].T).astype(np.int8),
        np.repeat(["a", "b"], [3 * SIZE, 40]),
    )
    names = [f"s{i}" for i in range(len(group))]
    for cohort in "ab":
        own = np.flatnonzero(cohorts == cohort)
        write_plink(tmp_path / cohort, genotypes[:, own], [names[i] for i in own])
    write_npz(tmp_path / "axes.npz", sites=np.arange(len(genotypes)))
    write_json(tmp_path / "axes.json", {"significant": 2})
    return tmp_path, points, names, cohorts


def find(study, cohorts, code="1", ploidy=2):
    """Splits of some of the cohorts in the folder of the study."""
    folder, points, names, of = study
    shown = np.isin(of, cohorts)
    write_npy(folder / "pca.npy", points[shown])
    table = pd.DataFrame({"sample": np.array(names)[shown], "cohort": of[shown]})
    table.to_csv(folder / "order.tsv", sep="\t", index=False)
    results = folder / "results"
    results.mkdir(exist_ok=True)
    files = folder / "pca.npy", folder / "axes.json", [folder / cohort for cohort in cohorts]
    return split_study(
        SplitSource(*files, folder / "axes.npz", None, ploidy),
        table["sample"],
        founders=founders_of(folder / "order.tsv", ["a"], results / "out", code),
        draws=5,
        seed=1,
    )[0]


def is_same(one, other):
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in arrays(one, other))
    return same and one.about == other.about


def arrays(one, other):
    return [(getattr(one, n), getattr(other, n)) for n in ("community", "stability", "f_st")]


def test_a_cohort_that_arrives_splits_no_subsample_again(study, monkeypatch):
    split, calls = study_splits.split_samples, []
    look = within._look
    monkeypatch.setattr(
        study_splits, "split_samples", lambda *a: calls.append(len(a[0])) or split(*a)
    )
    monkeypatch.setattr(within, "_look", lambda *a, **k: calls.append("within") or look(*a, **k))
    find(study, ["a"])
    assert calls.count(96) == 5 and calls.count("within") > 1
    calls.clear()
    added = find(study, ["a", "b"])
    # the whole; and within the group that has no founder
    assert calls.count(160) == 1 and 96 not in calls and calls.count("within") == 1
    (study[0] / "results" / KEPT).unlink()
    assert is_same(find(study, ["a", "b"]), added)


def test_newcomers_of_their_own_are_a_community_without_stability(study):
    alone, added = find(study, ["a"]), find(study, ["a", "b"])
    own = np.arange(140, 160)
    (number,) = set(added.fine[own])
    assert (added.fine == number).sum() == 20
    assert np.isnan(added.stability[own]).all() == (set(added.community[own]) == {number})
    founders = slice(0, 3 * SIZE)
    assert len(set(zip(added.fine[founders], alone.fine, strict=False))) == 3
    assert (added.fine[120:130] == added.fine[0]).all()
    assert (added.stability[founders] == 1).all() and (added.stability[120:140] == 1).all()


@pytest.mark.parametrize("changed", ["code", "bytes", "genotypes", "ploidy"])
def test_what_does_not_fit_is_found_again(study, monkeypatch, changed, rng):
    find(study, ["a"])
    kept = study[0] / "results" / KEPT
    before = kept.read_bytes()
    if changed == "bytes":
        kept.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    if changed == "genotypes":
        write_plink(study[0] / "a", rng.integers(0, 3, (600, 120)).astype(np.int8), study[2][:120])
    calls = []
    split = study_splits.split_samples
    monkeypatch.setattr(
        study_splits, "split_samples", lambda *a: calls.append(len(a[0])) or split(*a)
    )
    ploidy = 1 if changed == "ploidy" else 2
    find(study, ["a"], code="2" if changed == "code" else "1", ploidy=ploidy)
    assert calls.count(96) == 5
    assert (kept.read_bytes() == before) == (changed == "bytes")


def test_few_founders_do_not_speak_for_many(study):
    folder, _, names, of = study
    pd.DataFrame({"sample": names, "cohort": of}).to_csv(folder / "o.tsv", sep="\t")
    assert founders_of(folder / "o.tsv", ["b"], folder / "out", "").among.all()
    assert founders_of(folder / "o.tsv", ["a"], folder / "out", "").among.sum() == 120


def test_newcomers_do_not_say_which_groups_are_the_same():
    """More newcomers of a new group than founders of the group beside it."""
    points = np.array([[0.0]] * 4 + [[9.0]] * 4 + [[1.0]] * 9)
    groups, founders = np.repeat([1, 2, 3], [4, 4, 9]), np.arange(17) < 8
    found = measure_stability(
        points, groups, [np.arange(8)], [np.repeat([0, 1], 4)], founders=founders
    )
    assert (found[:8] == 1).all() and np.isnan(found[8:]).all()


def test_newcomers_show_what_is_within_where_founders_are_few(rng):
    genotypes = rng.binomial(2, 0.4, (500, 60)).astype(np.int8)
    opened = genotypes_of(genotypes, np.repeat("1", 500), np.arange(500))
    founders = Founders(np.arange(60) < 10)
    _, (one,) = structure_within(opened, np.ones(60, int), known=founders)
    assert one["samples"] == 60 and one["significant"] is not None and founders.within == {}
    founders = Founders(np.arange(60) < 45)
    structure_within(opened, np.ones(60, int), known=founders)
    assert len(founders.within) == 1


def test_axes_of_a_community_are_kept(tmp_path):
    drawn = scene("islands", 61, islands=2, per_island=40, f_st=0.03, sites=1_000)
    opened, community = genotypes_of(drawn.genotypes, drawn.chrom, drawn.pos), np.ones(80, int)
    kept = tmp_path / "results" / KEPT
    kept.parent.mkdir()
    everyone = Founders(np.ones(80, bool), kept, labels=[community])
    found = structure_within(opened, community, known=everyone)
    everyone.keep()
    again = Founders(np.ones(80, bool), kept)
    again.key = everyone.key
    again.load()
    ((key, one),), ((_, other),) = everyone.within.items(), again.within.items()
    assert key in again.within and one.splits == other.splits and one.splits
    for name in ("groups", "af"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(one.axes.vectors, other.axes.vectors) and one.axes.k == other.axes.k
    placed = structure_within(opened, community, known=again)
    assert (placed[0] == found[0]).all() and placed[1] == found[1]
