"""Artefacts between cohorts: what is planted is named, and nothing where nothing was planted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.artefacts import Cohorts, draw_cohorts, plant
from support.plink_files import write_plink

from popdesic.cohort import artefacts
from popdesic.cohort.artefacts import (
    ABSENT,
    DEFICIT,
    LEAST_PLACES,
    LEAST_SAMPLES,
    MANY_MISSED,
    OTHER_STRAND,
    SHIFTED,
    SWAPPED,
    find_study_artefacts,
    steady_components,
    write_artefacts,
)
from popdesic.cohort.callable import read_bed
from popdesic.core.files import read_json, write_json
from popdesic.core.tables import read_table
from popdesic.io.sites import is_ambiguous

SIZES = [60, 90, 50, 40]
ROOT = Path(__file__).parents[3]


def search(study: Cohorts):
    def reader(names):
        columns = np.concatenate([np.arange(*study.columns(n).indices(10**9)) for n in names])
        return lambda first, last: study.genotypes[first:last][:, columns]

    return find_study_artefacts(reader, study.sites, study.sizes, study.founders)


@pytest.mark.parametrize("design", ["one", "admixed", "two", "own", "families", "inbred"])
def test_nothing_is_found_where_nothing_is_planted(design):
    for seed in (301, 302):
        table, found = search(draw_cohorts(design, seed, 4_000))
        assert not any(one.departs for one in found), found
        assert table.empty


@pytest.mark.parametrize(
    ("kind", "looks"),
    [
        ("strand", {SWAPPED, OTHER_STRAND}),
        ("array", {SHIFTED}),
        ("build", {SHIFTED, SWAPPED, OTHER_STRAND}),
        ("depth", {DEFICIT}),
        ("dropout", {DEFICIT, ABSENT}),
    ],
)
@pytest.mark.parametrize("newcomer", [False, True])
def test_a_spoiled_cohort_is_named_with_its_sites(kind, looks, newcomer):
    study = plant(draw_cohorts("admixed", 312, 4_000, SIZES), kind, 0.03, 5, newcomer)
    table, found = search(study)
    assert [one.cohort for one in found if one.departs] == [study.cohort]
    (own,) = (one for one in found if one.departs)
    mine = table[table.cohort == study.cohort]
    assert own.sites == len(mine.index.unique()) and sum(own.named.values()) == len(mine)
    spoiled = mine.index.isin(study.planted)
    assert spoiled.mean() > 0.9
    assert len(mine.index[spoiled].unique()) > 0.1 * len(study.planted)
    assert set(mine.looks_like[spoiled].mode()) <= looks
    strand = mine.looks_like == OTHER_STRAND
    ambiguous = is_ambiguous(mine.ref, mine.alt)
    assert ambiguous[strand.to_numpy()].all()
    assert not ambiguous[(mine.looks_like == SWAPPED).to_numpy()].any()


def test_rows_say_what_was_seen_and_what_was_expected():
    study = plant(draw_cohorts("one", 321, 4_000, SIZES), "strand", 0.03, 5, newcomer=False)
    table, _ = search(study)
    rows = table[table.test == "frequency"]
    own = study.genotypes[:, study.columns(study.cohort)].astype(float)
    own[own < 0] = np.nan
    seen = np.nanmean(own, axis=1)[rows.index] / 2
    np.testing.assert_allclose(rows.observed, seen, atol=1e-6)
    assert (np.sign(rows.statistic) == np.sign(rows.observed - rows.expected)).all()
    flipped = rows.index.isin(study.planted)
    assert np.abs(rows.observed + rows.expected - 1)[flipped].mean() < 0.1


def test_ancestry_alone_explains_cohorts_of_other_frequencies():
    """Two cohorts of one population beside two of others: not one site is named."""
    table, found = search(draw_cohorts("two", 331, 4_000, SIZES))
    assert table.empty
    own = {one.cohort: one.own_population for one in found}
    assert not own["c00"] and not own["c01"] and own["c02"]


def test_a_population_of_its_own_is_not_judged_by_its_frequencies():
    study = draw_cohorts("own", 348, 4_000, [200, 200, 150])
    study = plant(study, "array", 0.05, 3, newcomer=False)
    table, found = search(study)
    assert all(one.own_population for one in found)
    assert not (table.looks_like == SHIFTED).any()


def test_artefacts_make_no_component():
    """Swapped sites of one cohort would be the first component of one population."""
    study = draw_cohorts("one", 351, 4_000, [100, 100])
    study = plant(study, "strand", 0.05, 3, newcomer=False)
    found = steady_components(study.read, len(study.sites), 200)
    member = np.repeat([1.0, -1.0], 100) / np.sqrt(200)
    assert ((member @ found) ** 2).sum() < 0.3
    values = study.genotypes.astype(float) - study.genotypes.mean(axis=1)[:, None]
    _, _, plain = np.linalg.svd(values, full_matrices=False)
    assert (member @ plain[0]) ** 2 > 0.7


def test_one_place_is_no_artefact():
    """Neighbours that all differ in one cohort, as by selection, are one place."""
    study = draw_cohorts("one", 361, 4_000, SIZES)
    part = study.genotypes[1000:1040, study.columns("c01")]
    part[part >= 0] = 2 - part[part >= 0]
    assert search(study)[0].empty
    far = 200 * np.arange(1, 3 * LEAST_PLACES)
    part = study.genotypes[far, study.columns("c01")]
    study.genotypes[far, study.columns("c01")] = np.where(part >= 0, 2 - part, part)
    assert not search(study)[0].empty


def test_missed_calls_alone_are_artefacts_where_they_are_many():
    for share, departs in ((MANY_MISSED / 2, False), (3 * MANY_MISSED, True)):
        study = draw_cohorts("one", 371, 4_000, SIZES)
        rng = np.random.default_rng(1)
        rows = rng.choice(len(study.sites), int(share * len(study.sites)), replace=False)
        part = study.genotypes[rows, study.columns("c03")]
        part[rng.random(part.shape) < 0.6] = -1
        study.genotypes[rows, study.columns("c03")] = part
        table, found = search(study)
        assert set(table.cohort) == {"c03"} and set(table.looks_like) == {ABSENT}
        assert np.isin(table.index, rows).mean() > 0.9
        assert [one.departs for one in found if one.cohort == "c03"] == [departs]


@pytest.mark.parametrize("called", [0, 1])
def test_no_cohort_is_blamed_where_another_has_few_calls(called):
    study = draw_cohorts("one", 381, 4_000, SIZES)
    study.genotypes[::30, study.columns("c01")][:, called:] = -1
    table, found = search(study)
    assert not (table.test == "frequency").any()
    assert {one.cohort for one in found if one.departs} <= {"c01"}


def test_newcomers_are_not_blamed_for_founders():
    """Most founders are of the cohort that is spoiled, so newcomers differ from the founders."""
    study = draw_cohorts("one", 342, 4_000, [40, 200, 60])
    study = plant(study, "strand", 0.05, 2, newcomer=False)
    table, _ = search(study)
    assert study.cohort == "c01" and study.founders == ["c00", "c01"]
    assert set(table.cohort) == {"c00", "c01"}, "of two founders either may be wrong"


def test_founders_keep_their_rows_when_a_cohort_arrives():
    study = plant(draw_cohorts("admixed", 381, 4_000, SIZES), "strand", 0.03, 5, newcomer=False)
    before, _ = search(study)
    kept = [name for name in study.sizes if name in study.founders]
    last = sum(study.sizes[name] for name in kept)
    alone = Cohorts(
        study.genotypes[:, :last],
        {name: study.sizes[name] for name in kept},
        study.sites,
        kept,
    )
    after, _ = search(alone)
    pd.testing.assert_frame_equal(before[before.cohort.isin(kept)], after)


def test_newcomers_keep_their_rows_whatever_others_there_are():
    study = draw_cohorts("admixed", 383, 4_000, [60, 50, 40, 30, 40, 30, 25])
    study = plant(study, "strand", 0.04, 5, newcomer=True)
    founders = study.founders
    newcomers = [name for name in study.sizes if name not in founders]
    assert len(newcomers) > 1
    whole, found = search(study)
    assert study.cohort in set(whole.cohort)
    for name in newcomers:
        kept = [*founders, name]
        columns = np.concatenate(
            [np.arange(*study.columns(n).indices(10**9)) for n in study.sizes if n in kept]
        )
        sizes = {n: study.sizes[n] for n in study.sizes if n in kept}
        alone, own = search(Cohorts(study.genotypes[:, columns], sizes, study.sites, founders))
        pd.testing.assert_frame_equal(
            whole[whole.cohort == name], alone[alone.cohort == name], check_dtype=False
        )
        assert [x for x in found if x.cohort == name] == [x for x in own if x.cohort == name]


def test_files_hold_the_sites_of_autosomes(tmp_path):
    """And the command of config/README.md makes a BED file of them."""
    study = plant(draw_cohorts("one", 391, 3_000, [60, 50]), "strand", 0.05, 5, newcomer=False)
    study.sites.loc[study.sites.chrom == "22", "chrom"] = "X"
    stems, panel = {}, tmp_path / "panel.tsv"
    for name in study.sizes:
        samples = [f"{name}_{k}" for k in range(study.sizes[name])]
        stems[name] = tmp_path / name
        places = study.sites.chrom.tolist(), study.sites.pos.tolist()
        write_plink(stems[name], study.genotypes[:, study.columns(name)], samples, *places)
    text = study.sites.assign(af=0.5, mode=0, n_called=1).to_csv(sep="\t", index=False)
    panel.write_text(f"# panel abc, {len(study.sites)} sites\n{text}")
    roles = {chrom: "X" if chrom == "X" else "autosome" for chrom in study.sites.chrom.unique()}
    genome = {"build": "none", "why": "", "roles": roles, "notes": []}
    write_json(tmp_path / "counts.json", {"genome": genome})
    said = write_artefacts(
        stems,
        study.founders,
        panel,
        tmp_path / "counts.json",
        tmp_path / "a.tsv",
        tmp_path / "a.json",
    )
    table, about = read_table(tmp_path / "a.tsv"), read_json(tmp_path / "a.json")
    assert len(table) and "X" not in set(table.chrom)
    assert about["sites"] == (study.sites.chrom != "X").sum()
    for one, sentence in zip(about["cohorts"], said, strict=True):
        mine = table[table.cohort == one["cohort"]]
        assert one["sites"] == len(mine[["chrom", "pos"]].drop_duplicates())
        assert str(one["sites"]) in sentence or not one["sites"]
    (command,) = re.findall(r"^awk .*", (ROOT / "config/README.md").read_text(), re.M)
    command = command.replace("results/qc/artefacts.tsv", "a.tsv").replace("config/", "")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    covered = read_bed(tmp_path / "artefacts.bed", "panel.exclude").covers(
        study.sites.chrom.to_numpy(), study.sites.pos.to_numpy()
    )
    named = set(zip(table.chrom, table.pos.astype(int), strict=True))
    places = zip(study.sites.chrom, study.sites.pos, strict=True)
    assert covered.tolist() == [place in named for place in places]


def test_of_large_cohorts_some_samples_are_looked_at(tmp_path, monkeypatch):
    """Those of evenly spaced bytes: the same as in a study of these alone, by any threads."""
    monkeypatch.setattr(artefacts, "MOST_SAMPLES", 40)
    monkeypatch.setattr(artefacts, "CHUNK_VALUES", 7_000)  # many chunks
    study = plant(draw_cohorts("one", 392, 2_000, [101, 40]), "strand", 0.05, 5, newcomer=False)
    columns = {name: np.arange(*study.columns(name).indices(10**9)) for name in study.sizes}
    first, second = study.sizes
    bytes_of = np.arange(10) * 26 // 10  # of the 26 of a row
    kept = (4 * bytes_of[:, None] + np.arange(4)).ravel()
    chosen = {first: columns[first][kept], second: columns[second]}
    panel = tmp_path / "panel.tsv"
    text = study.sites.assign(af=0.5, mode=0, n_called=1).to_csv(sep="\t", index=False)
    panel.write_text(f"# panel abc, {len(study.sites)} sites\n{text}")
    roles = dict.fromkeys(study.sites.chrom.unique(), "autosome")
    genome = {"build": "none", "why": "", "roles": roles, "notes": []}
    write_json(tmp_path / "counts.json", {"genome": genome})

    def written(name: str, of: dict, threads: int) -> tuple[bytes, bytes]:
        stems = {}
        for cohort, own in of.items():
            stems[cohort] = tmp_path / f"{name}-{cohort}"
            places = study.sites.chrom.tolist(), study.sites.pos.tolist()
            samples = [f"s{k}" for k in own]
            write_plink(stems[cohort], study.genotypes[:, own], samples, *places)
        outputs = tmp_path / f"{name}.tsv", tmp_path / f"{name}.json"
        counts = tmp_path / "counts.json"
        write_artefacts(stems, study.founders, panel, counts, *outputs, threads=threads)
        return tuple(path.read_bytes() for path in outputs)

    whole = written("whole", columns, 1)
    assert whole == written("threads", columns, 3) == written("chosen", chosen, 1)
    assert read_json(tmp_path / "whole.json")["cohorts"][0]["samples"] == 40
    assert b"swapped" in whole[0] or b"strand" in whole[0]


@pytest.mark.parametrize("sizes", [[1], [12], [10, 1], [11, 10, 12], [40, 3, 30]], ids=str)
@pytest.mark.parametrize("n_sites", [1, 17, 300])
def test_few_samples_and_odd_sites_are_no_artefacts(sizes, n_sites):
    """Sites without a call, of one genotype, and called in one cohort alone, among others."""
    rng = np.random.default_rng(n_sites)
    genotypes = rng.binomial(2, 0.3, (n_sites, sum(sizes))).astype(np.int8)
    genotypes[::7], genotypes[1::7], genotypes[2::7, : sizes[0]] = -1, 0, -1
    genotypes[3::7] = 2
    names = [f"c{k}" for k in range(len(sizes))]
    about = {"chrom": "1", "pos": np.arange(n_sites), "id": ".", "ref": "A", "alt": "C"}
    sites = pd.DataFrame(about)
    with np.errstate(all="raise", under="ignore"):
        table, found = search(
            Cohorts(genotypes, dict(zip(names, sizes, strict=True)), sites, names[:2])
        )
    assert [one.samples for one in found] == [size for size in sizes if size >= LEAST_SAMPLES]
    assert table.empty and not any(one.departs for one in found)
