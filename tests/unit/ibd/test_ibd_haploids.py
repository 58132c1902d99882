"""Haploids of a study: sites in LD are left out, and fits and segments are the true ones."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scenes.haploids import SHORTEST, coalescent_haploids
from support.study import Cohort, encode_cohorts

import popdesic
from popdesic.cohort.panel import load_panel
from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.engine.select import cpu_backend
from popdesic.ibd import haploid, haploid_blocks
from popdesic.ibd.cohorts import HAPLOID_PAIRS, join_tiles, measure_rows
from popdesic.ibd.definition import LD_CM, MOST_R2, SegmentLimits
from popdesic.ibd.haploid import allele_ratios
from popdesic.ibd.haploid_study import LEAST_LOD, haploid_lod, prepare_haploids

LIMITS = SegmentLimits(min_cm=3.0)
#: Strangers, of whom the last six and all relatives but the clones are newcomers.
STRANGERS, FOUNDERS = 24, 18


def prepared(study, out, limits=LIMITS, genetic_map="74 cM/Mb"):
    return prepare_haploids(
        *([study.folders["old"]], study.panel, out, out.with_suffix(".json"), cpu_backend(1)),
        **{"limits": limits, "genetic_map": genetic_map},
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Strangers by msprime and relatives, as two cohorts; their tables."""
    folder = tmp_path_factory.mktemp("haploids")
    scene, shared = coalescent_haploids(5, STRANGERS)
    rows = {"old": [*range(FOUNDERS), STRANGERS, STRANGERS + 1]}
    rows["new"] = [k for k in range(len(scene.kinds)) if k not in rows["old"]]
    sites = [
        (str(1 + int(contig[1:])), place, f"s{k}", *(("A", "C"), ("G", "T"))[k % 2])
        for k, (contig, place) in enumerate(
            zip(scene.contigs.tolist(), (1 + scene.positions).tolist(), strict=True)
        )
    ]
    doubled = np.where(scene.alleles < 0, -1, 2 * scene.alleles).astype(np.int8)
    cohorts = [
        Cohort(name, [f"h{k:02}" for k in own], sites, doubled[own].T) for name, own in rows.items()
    ]
    folders = dict(zip(rows, encode_cohorts(folder, cohorts), strict=True))
    made = SimpleNamespace(scene=scene, shared=shared, rows=rows, folder=folder, folders=folders)
    made.panel, made.genome = folder / "panel.tsv", folder / "genome.npz"
    made.about = prepared(made, made.genome)
    made.tables = tables(made, folder / "whole")
    return made


def tables(study, out):
    """Tables of segments and pairs, and the summary, from tiles in a new folder."""
    lists = {name: out / "tiles" / name / "row.json" for name in study.rows}
    pairs = {"old": [("old", "old")], "new": [("old", "new"), ("new", "new")]}
    measure_rows(
        {lists[name]: pairs[name] for name in lists},
        *(study.folders, study.genome, study.panel, lambda need: cpu_backend(2), "code"),
    )
    cohorts = {f"h{k:02}": name for name, own in study.rows.items() for k in own}
    files = out / "segments.tsv.gz", out / "pairs.tsv", out / "summary.json"
    join_tiles(list(lists.values()), study.genome, study.panel, cohorts, *files, LIMITS.min_cm)
    numbers = {"segments": int, "sites": int, "differ": int} | dict.fromkeys(
        ("total_cM", "longest_cM", "fraction", "generations", "LOD"), float
    )
    with gzip.open(files[0], "rt") as text:
        header, *lines = text.read().splitlines()
    segments = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    return segments, read_table(files[1]).astype(numbers), read_json(files[2])


def numbers_of(pairs) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the scene of both samples of each pair."""
    return tuple(pairs[name].str[1:].astype(int).to_numpy() for name in ("sample1", "sample2"))


def test_no_two_used_sites_are_in_ld(study):
    with np.load(study.genome) as arrays:
        cm, used = arrays["cm"], arrays["used"]
    np.testing.assert_allclose(cm, (1 + study.scene.positions) * 74e-6)
    assert 0.02 * len(used) < used.sum() < 0.5 * len(used)
    alleles = study.scene.alleles[study.rows["old"]].astype(float)
    alleles[alleles < 0] = np.nan
    compared = 0
    for contig in np.unique(study.scene.contigs):
        here = np.flatnonzero(used & (study.scene.contigs == contig))
        for k, site in enumerate(here.tolist()):
            near = [n for n in here[k + 1 :].tolist() if cm[n] - cm[site] <= LD_CM]
            for other in near:
                both = ~np.isnan(alleles[:, [site, other]]).any(axis=1)
                x, y = (alleles[both, one] - alleles[both, one].mean() for one in (site, other))
                assert (x @ y) ** 2 <= (MOST_R2 + 1e-9) * (x @ x) * (y @ y)
                compared += 1
    assert compared > 500
    assert study.about["used"] == used.sum() and study.about["lod_of_shortest"] > LEAST_LOD
    assert study.about["genome_cm"] == pytest.approx(150, rel=0.01)


def test_relatives_have_their_shares(study):
    """Clones, progeny of a cross, next generation: what they share is planted."""
    _, pairs, _ = study.tables
    assert list(pairs) == HAPLOID_PAIRS
    n = len(study.scene.kinds)
    assert len(pairs) == n * (n - 1) // 2, "all pairs are fitted"
    one, two = numbers_of(pairs)
    planted = (study.scene.ancestors[one] == study.scene.ancestors[two]).mean(axis=1)
    related = planted > 0.1
    assert related.sum() > 20
    off = (pairs.fraction - planted)[related].abs()
    assert off.mean() < 0.03 and off.max() < 0.12
    clones = pairs[planted == 1]
    assert len(clones) == 3 and clones.fraction.min() > 0.99 and clones.generations.max() < 0.1
    assert pairs.LOD[related].min() > 10
    assert (clones.total_cM > 0.97 * study.about["genome_cm"]).all()


def test_strangers_share_what_the_trees_say(study):
    """Truth: segments of at least SHORTEST in the genealogies; most strangers have none."""
    _, pairs, _ = study.tables
    one, two = numbers_of(pairs)
    strangers = (one < STRANGERS) & (two < STRANGERS)
    true = study.shared[one[strangers], two[strangers]]
    found = (pairs.total_cM / study.about["genome_cm"])[strangers]
    assert LIMITS.min_cm > SHORTEST
    assert np.abs(found - true).mean() < 0.01
    none = true == 0
    assert none.sum() > 100
    assert found[none].mean() < 0.003 and pairs.fraction[strangers][none].mean() < 0.03
    # Without the choice of sites, LD of the same strangers looks like old common ancestors.
    some = np.arange(10)
    every, _ = popdesic.haploid_ibd(
        study.scene.alleles[some],
        *(study.scene.positions, study.scene.contigs),
        centimorgans=study.scene.cm,
        af=load_panel(study.panel)[0].af.to_numpy(),
    )
    assert every.fraction.median() > 0.08


def test_fits_and_segments_are_those_of_the_function(study):
    """Of the used sites, with the panel's frequencies; LOD of a segment by definition."""
    segments, pairs, about = study.tables
    with np.load(study.genome) as arrays:
        cm, used = arrays["cm"], np.flatnonzero(arrays["used"])
    af, scene = load_panel(study.panel)[0].af.to_numpy()[used], study.scene
    order = study.rows["old"] + study.rows["new"]
    own, paths = popdesic.haploid_ibd(
        scene.alleles[order][:, used],
        *(1 + scene.positions[used], scene.contigs[used]),
        centimorgans=cm[used],
        af=af,
    )
    own["pair"] = [f"h{order[a]:02} h{order[b]:02}" for a, b in own[["sample1", "sample2"]].values]
    found = pairs.assign(pair=pairs.sample1 + " " + pairs.sample2).set_index("pair")
    expected = own.set_index("pair").loc[found.index]
    for name in ("sites", "differ", "fraction", "generations", "LOD"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-12)
    logs = np.log10(allele_ratios(af, LIMITS.error_rate))
    listed = []
    for path in paths[paths.cM >= LIMITS.min_cm].itertuples():
        one, two = scene.alleles[[order[path.sample1], order[path.sample2]]][:, used]
        inside = (scene.contigs[used] == path.contig) & (1 + scene.positions[used] >= path.start)
        inside &= (1 + scene.positions[used] <= path.end) & (one >= 0) & (two >= 0)
        lod = logs[np.flatnonzero(inside), (one + two)[inside]].sum()
        if lod >= LIMITS.min_lod:
            names = [f"h{order[k]:02}" for k in (path.sample1, path.sample2)]
            numbers = [f"{value:.6g}" for value in (path.cM, lod)]
            row = [*names, str(1 + int(path.contig[1:])), str(path.start), str(path.end), *numbers]
            listed.append([*row, "1", str(path.sites), str(path.differ)])
    assert sorted(listed) == sorted(list(segment.values()) for segment in segments)
    assert about["segments"] == len(listed) == pairs.segments.sum() > 50
    assert about["pairs_with_segments"] == (pairs.segments > 0).sum()
    assert about["mean_fraction"] == pytest.approx(pairs.fraction.mean(), rel=1e-4)
    assert about["called"] == sum(int(one["sites"]) for one in segments)
    assert about["differ"] / about["called"] == pytest.approx(2 * LIMITS.error_rate, rel=0.5)


def test_blocks_do_not_change_the_tables(study, tmp_path, monkeypatch):
    monkeypatch.setattr(haploid_blocks, "BLOCK_SAMPLES", 7)
    segments, pairs, about = tables(study, tmp_path)
    assert about == study.tables[2] and pairs.equals(study.tables[1])
    key = [sorted(map(str, one)) for one in (segments, study.tables[0])]
    assert key[0] == key[1]


def test_pairs_that_were_not_fitted_are_in_no_table(study, tmp_path, monkeypatch):
    """Their fits are NA in the tiles; the others, their order and their mean do not change."""
    with np.load(study.genome) as arrays:
        used = np.flatnonzero(arrays["used"])
    alleles = study.scene.alleles[:, used]
    minor = load_panel(study.panel)[0].af.to_numpy()[used] <= 0.5
    one, two = (alleles[rows] for rows in numbers_of(study.tables[1]))
    called = (one >= 0) & (two >= 0)
    informative = (called & ((one != two) | (one == minor))).sum(axis=1)
    monkeypatch.setattr(haploid, "FEWEST_INFORMATIVE", least := int(np.median(informative)))
    _, pairs, about = tables(study, tmp_path)
    fitted = study.tables[1][informative >= least].reset_index(drop=True)
    assert 50 < len(fitted) < len(informative) - 50
    assert pairs.equals(fitted) and about["pairs_fitted"] == len(fitted)
    assert about["mean_fraction"] == pytest.approx(fitted.fraction.mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("limits", "changes", "sentence"),
    [
        ({"min_cm": 60}, {}, r"at most 49.9 cM, less than ibd.min_cm = 60"),
        ({"min_cm": 3}, {"genetic_map": "1 cM/Mb"}, r"at most 0.675 cM, less than .* species"),
        ({"min_cm": 1, "error_rate": 0.3}, {}, r"reaches a LOD of .* raise ibd.min_cm to"),
    ],
)
def test_a_panel_without_segments_says_why(study, tmp_path, limits, changes, sentence):
    out = tmp_path / "genome.npz"
    about = prepared(study, out, replace(LIMITS, **limits), **changes)
    with np.load(out) as arrays:
        assert not arrays["used"].any()
    found = re.search(sentence, about["not_searched"])
    assert found, about["not_searched"]
    study_then = SimpleNamespace(**vars(study) | {"genome": out})
    segments, pairs, summary = tables(study_then, tmp_path / "out")
    assert not segments and not len(pairs) and summary["mean_fraction"] is None


def test_the_mean_ratio_of_a_site_is_that_of_its_table():
    """By definition: both alleles are copies of one, each read wrong at times."""
    af, error = np.array([0.1, 0.5, 0.8]), 0.05
    for alt, found in zip(af, haploid_lod(af, error), strict=True):
        total = 0.0
        read = alt * (1 - error) + (1 - alt) * error
        for x in (0, 1):
            for y in (0, 1):
                shared = sum(
                    (alt if true else 1 - alt)
                    * (1 - error if x == true else error)
                    * (1 - error if y == true else error)
                    for true in (0, 1)
                )
                alone = (read if x else 1 - read) * (read if y else 1 - read)
                total += shared * np.log10(shared / alone)
        assert found == pytest.approx(total, rel=1e-12)
