"""A study imputed by copying from a phased reference: jobs, bytes, newcomers, accuracy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scenes.mosaics import make_haplotypes, make_sites
from support.phased_files import write_vcf
from support.running import finished, planned, snakemake, snapshot
from support.study import FAST, Cohort, write_sheets, write_study

import popdesic
from popdesic.__main__ import main
from popdesic.core.files import read_json
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.frozen_haplotypes import open_haplotypes, require_intact
from popdesic.io.genotypes import MISSING, unpack_bed

N_SITES, N_REFERENCE = 1_200, 30
SIZES = {"north": 12, "south": 10, "west": 5}
#: Sites that the reference lacks, and those whose REF and ALT it has the other way round.
LACKED, SWAPPED = slice(7, None, 40), slice(3, None, 25)
#: What paints the samples.
PAINTED = "results/painting/groups.tsv"
#: What scores their haplotypes, and tables and a figure of it.
SWEEPS = "results/population/sweep_"
SWEPT = [f"{SWEEPS}{name}" for name in ("sites.tsv.gz", "pairs.tsv.gz", "windows.tsv")]
SWEPT_FIGURE = "results/figures/population_sweeps.svg"
#: Relative error of six digits, which tables have.
SHOWN = 5.1e-6
#: Sites that the newcomer does not call at all.
UNCALLED = slice(11, None, 30)
CONFIG = FAST | {
    "impute": {
        "method": "copying",
        "evaluate": ["mode", "copying"],
        "reference": "data/r.vcf",
        "stages": ["pca"],
    },
    "communities": {"methods": ["painting"]},
    "population": {"analyses": ["diversity", "sweeps"]},
    "close_kinship": 0,
    "qc": {"min_sample_call_rate": 0.5},
    "panel": {"min_call_rate": 0.4, "min_maf": 0.02},
}


def make_study(folder: Path) -> tuple[list[Cohort], dict[str, np.ndarray]]:
    """Cohorts with missing genotypes, the truth of each, and `data/r.vcf` in the folder."""
    sites = make_sites(N_SITES)
    sites.loc[N_SITES // 2 :, "chrom"] = "2"
    rows = [(r.chrom, int(r.pos), f"s{k}", r.ref, r.alt) for k, r in enumerate(sites.itertuples())]
    cohorts, truths = [], {}
    for seed, (name, size) in enumerate(SIZES.items()):
        haplotypes = make_haplotypes(N_SITES, 2 * size, seed)
        truth = (haplotypes[:, ::2] + haplotypes[:, 1::2]).astype(np.int8)
        shown = truth.copy()
        shown[np.random.default_rng(seed).random(truth.shape) < 0.06] = MISSING
        if name == "west":
            shown[UNCALLED] = MISSING
        names = [f"{name[0].upper()}{k:02d}" for k in range(size)]
        labels = ["P" if k < 6 else "Q" for k in range(size)]
        founder = name != "west"
        cohorts.append(Cohort(name, names, rows, shown, founder=founder, populations=labels))
        truths[name] = truth
    haplotypes = make_haplotypes(N_SITES, 2 * N_REFERENCE, 50)
    records = []
    lacked, swapped = (set(range(N_SITES)[which]) for which in (LACKED, SWAPPED))
    for k, (chrom, pos, name, ref, alt) in enumerate(rows):
        if k in lacked:
            continue
        row, bases = haplotypes[k], (ref, alt)
        if k in swapped:
            row, bases = 1 - row, (alt, ref)
        calls = " ".join(f"{a}|{b}" for a, b in zip(row[::2], row[1::2], strict=True))
        records.append(f"chr{chrom} {pos} {name} {bases[0]} {bases[1]} {calls}")
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_vcf(folder / "data/r.vcf", [f"r{k}" for k in range(N_REFERENCE)], records)
    return cohorts, truths


def genotypes(folder: Path, cohort: str, stem: str) -> np.ndarray:
    prefix = folder / "results/cohorts" / cohort / stem
    return unpack_bed(np.array(open_bed(prefix)), len(read_fam(prefix)))


def panel_rows(folder: Path) -> np.ndarray:
    """Rows of the panel's sites among all."""
    table = pd.read_csv(folder / "results/panel/sites.tsv", sep="\t", comment="#")
    return table.id.str[1:].astype(int).to_numpy()


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("copied")
    cohorts, truths = make_study(folder)
    write_study(folder, cohorts, CONFIG)
    write_sheets(folder, cohorts[:2], CONFIG)
    ran = finished(snakemake(folder, "impute", "encode", PAINTED, SWEPT_FIGURE))
    return {"folder": folder, "cohorts": cohorts, "truths": truths, "ran": ran}


def test_missing_genotypes_are_copied_and_calls_stay(study):
    folder, rows = study["folder"], panel_rows(study["folder"])
    assert study["ran"]["freeze_reference"] == 1
    assert study["ran"]["impute_by_copying"] == study["ran"]["fill_calls"] == 2
    assert "impute_window" not in study["ran"]
    lacked = np.isin(rows, range(N_SITES)[LACKED])
    for name in ("north", "south"):
        truth = study["truths"][name][rows]
        called, imputed = (genotypes(folder, name, stem) for stem in ("genotypes", "imputed"))
        every = unpack_bed(np.load(folder / f"results/impute/{name}/copied.npy"), truth.shape[1])
        r2 = np.load(folder / f"results/impute/quality/{name}/copied.npy")
        missing = called == MISSING
        np.testing.assert_array_equal(every[~missing], called[~missing])
        assert (every != MISSING).all()
        copied = missing & ~lacked[:, None]
        assert (every == truth)[copied].mean() > 0.97
        assert not r2[lacked & missing.any(axis=1)].any(), "sites that the reference lacks"
        assert np.isnan(r2[~missing.any(axis=1)]).all()
        good = np.nan_to_num(r2)[:, None] >= 0.8
        np.testing.assert_array_equal(imputed, np.where(missing & good, every, called))
        about = read_json(folder / f"results/impute/{name}/copied.json")
        assert about["reference"]["haplotypes"] == 2 * N_REFERENCE
        assert about["counts"]["in_reference"] == (~lacked).sum()
        assert about["counts"]["filled_by_copying"] == copied.sum() > 500
        phased = np.load(folder / f"results/impute/{name}/haplotypes.npz")
        np.testing.assert_array_equal(phased["sites"], np.flatnonzero(~lacked))
        bits = np.unpackbits(phased["haplotypes"].view(np.uint8), axis=1, bitorder="little")
        alleles = bits[:, : 2 * truth.shape[1]]
        np.testing.assert_array_equal(alleles[:, ::2] + alleles[:, 1::2], every[~lacked])


def test_haplotypes_of_founders_are_scored(study):
    folder = study["folder"]
    panel = pd.read_csv(folder / "results/panel/sites.tsv", sep="\t", comment="#")
    sites, pairs, windows = (pd.read_csv(folder / path, sep="\t") for path in SWEPT)
    rows, alleles = [], []
    for name in ("north", "south"):
        phased = np.load(folder / f"results/impute/{name}/haplotypes.npz")
        bits = np.unpackbits(phased["haplotypes"].view(np.uint8), axis=1, bitorder="little")
        alleles.append(bits[:, : 2 * SIZES[name]].T)
        rows.append(phased["sites"])
    first = np.concatenate([one[:12] for one in alleles])  # six samples of each cohort
    second = np.concatenate([one[12:] for one in alleles])
    places = panel.iloc[rows[0]]
    pos = places.pos.to_numpy()
    contigs = [np.flatnonzero(places.chrom == chrom) for chrom in places.chrom.unique()]
    for name, own in (("P", first), ("Q", second)):
        scored = [
            popdesic.sweep_scores(own[:, here], 1e-6 * pos[here], pos[here]) for here in contigs
        ]
        found = sites[sites.population == name]
        at = np.concatenate([here[one.sites] for here, one in zip(contigs, scored, strict=True)])
        np.testing.assert_array_equal(found.pos, pos[at])
        frequency = np.concatenate([one.frequency for one in scored])
        for column in ("ihs", "nsl"):
            values = np.concatenate([getattr(one, column) for one in scored])
            assert np.isfinite(values).sum() > 100
            expected = popdesic.standardised_scores(values, frequency)
            np.testing.assert_allclose(found[column], expected, rtol=SHOWN)
        listed = windows[windows.population == name].reset_index(drop=True)
        each = [popdesic.garud_h(own[:, here]) for here in contigs]
        for column in ("h1", "h12", "h123", "h2_h1"):
            expected = np.concatenate([getattr(one, column) for one in each])
            np.testing.assert_allclose(listed[column], expected, rtol=SHOWN)
        expected = [
            pos[here[row]] for here, one in zip(contigs, each, strict=True) for row in one.first
        ]
        assert listed.start.tolist() == expected and len(expected) > 5
    compared = [
        popdesic.xp_ehh(first[:, here], second[:, here], 1e-6 * pos[here], pos[here])
        for here in contigs
    ]
    at = np.concatenate([here[one] for here, (one, _) in zip(contigs, compared, strict=True)])
    np.testing.assert_array_equal(pairs.pos, pos[at])
    expected = popdesic.standardised_scores(np.concatenate([scores for _, scores in compared]))
    np.testing.assert_allclose(pairs["P/Q"], expected, rtol=SHOWN)
    assert np.isfinite(expected).sum() > 100
    assert (folder / SWEPT_FIGURE).stat().st_size > 5_000
    about = read_json(folder / f"{SWEEPS}summary.json")
    assert about["populations"] == {"P": 12, "Q": 10} and about["too_small"] == {}


def test_methods_are_compared_on_the_same_hidden_genotypes(study):
    table = pd.read_csv(study["folder"] / "results/impute/evaluation.tsv", sep="\t")
    whole = table[table.by == "all"].set_index(["method", "cohort"])
    mode, copying = whole.loc["mode"], whole.loc["copying"]
    assert (mode.hidden == copying.hidden).all() and mode.hidden.min() > 100
    assert (copying.dosage_r2 > 0.9).all() and (mode.dosage_r2 < 0.6).all()


def test_a_newcomer_changes_no_byte_and_a_new_reference_all(study):
    folder, before = study["folder"], snapshot(study["folder"])
    assert not planned(snakemake(folder, "impute", "encode", "-n"))
    write_sheets(folder, study["cohorts"], CONFIG)
    ran = finished(snakemake(folder, "impute", "encode", SWEPT[0]))
    assert ran["impute_by_copying"] == 1 and "freeze_reference" not in ran
    assert "measure_local_structure" not in ran
    after = snapshot(folder)
    kept = [name for name in before if name.startswith(("cohorts/", "impute/", "panel/"))]
    kept = [name for name in kept if "evaluation.tsv" not in name]
    assert len(kept) > 20
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}
    filled = read_json(folder / "results/impute/west/copied.json")["counts"]
    uncalled = (genotypes(folder, "west", "genotypes") == MISSING).all(axis=1)
    estimated = np.load(folder / "results/impute/quality/west/copied.npy")[uncalled]
    assert filled["filled_by_copying"] > 100 and uncalled.sum() > 20
    assert 0.6 < np.median(estimated) <= 1, "estimated where no call can be left out"
    reference = folder / "data/r.vcf"
    date = reference.stat().st_mtime_ns
    os.utime(reference, ns=(date - 10**10, date - 10**10))  # another file, of an older date
    plan = planned(snakemake(folder, "impute", "-n"))
    assert plan["freeze_reference"] == 1 and plan["impute_by_copying"] == 3
    os.utime(reference, ns=(date, date))


def test_founders_are_the_reference_where_there_is_none(tmp_path):
    """Phased once; a newcomer is imputed and painted from them and changes no byte."""
    sites = make_sites(1_100)
    rows = [(r.chrom, int(r.pos), f"s{k}", r.ref, r.alt) for k, r in enumerate(sites.itertuples())]
    cohorts, truths = [], {}
    for seed, (name, size) in enumerate({"north": 60, "south": 42, "west": 4}.items()):
        among = (0, 4) if name == "north" else (2, 6)
        haplotypes = make_haplotypes(len(sites), 2 * size, seed, among)
        truth = (haplotypes[:, ::2] + haplotypes[:, 1::2]).astype(np.int8)
        shown = truth.copy()
        shown[np.random.default_rng(seed).random(truth.shape) < 0.03] = MISSING
        names = [f"{name[0].upper()}{k:02d}" for k in range(size)]
        cohorts.append(Cohort(name, names, rows, shown, founder=name != "west"))
        truths[name] = truth
    config = CONFIG | {"impute": {"method": "copying", "stages": ["pca"]}}
    config |= {"genetic_map": "5 cM/Mb", "communities": {"methods": ["painting"]}}
    targets = ("impute", PAINTED)
    write_study(tmp_path, cohorts, config)
    write_sheets(tmp_path, cohorts[:2], config)
    ran = finished(snakemake(tmp_path, *targets))
    assert ran["freeze_reference"] == ran["paint_samples"] == 1 and ran["impute_by_copying"] == 2
    before = snapshot(tmp_path)
    write_sheets(tmp_path, cohorts, config)
    ran = finished(snakemake(tmp_path, *targets))
    assert ran["impute_by_copying"] == 1 and "freeze_reference" not in ran
    after = snapshot(tmp_path)
    folders = ("cohorts/", "impute/", "panel/", "painting/coancestry/")
    kept = [name for name in before if name.startswith(folders) and name.count("row.json") == 0]
    assert len(kept) > 19 and {n: before[n] for n in kept} == {n: after[n] for n in kept}
    frozen = open_haplotypes(tmp_path / "results/impute/reference.npz")
    require_intact(frozen)
    assert frozen.samples == [name for one in cohorts[:2] for name in one.samples]
    np.testing.assert_allclose(frozen.parts[0].cm, frozen.parts[0].pos * 5e-6)
    for cohort, truth in truths.items():
        table = pd.read_csv(tmp_path / "results/panel/sites.tsv", sep="\t", comment="#")
        panel = table.id.str[1:].astype(int).to_numpy()
        every = np.load(tmp_path / f"results/impute/{cohort}/copied.npy")
        found = unpack_bed(every, truth.shape[1])
        called = cohorts[[*truths].index(cohort)].genotypes[panel] != MISSING
        assert (found == truth[panel])[~called].mean() > 0.9, cohort
    check_painting(tmp_path, cohorts)


def painted_by_hand(folder: Path, cohorts: list[Cohort]) -> dict[str, list[np.ndarray]]:
    """Lengths (n_stretches, n, n_donors) of founders and of newcomers, by part of the reference."""
    table = pd.read_csv(folder / "results/panel/sites.tsv", sep="\t", comment="#")
    phased: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for cohort in cohorts:
        with np.load(folder / f"results/impute/{cohort.name}/haplotypes.npz") as file:
            bits = np.unpackbits(file["haplotypes"].view(np.uint8), axis=1, bitorder="little")
            sites = table.iloc[file["sites"]]
        phased[cohort.founder].append(bits[:, : 2 * len(cohort.samples)].T)
    donors = np.concatenate(phased[True])
    found: dict[str, list[np.ndarray]] = {"founders": [], "newcomers": []}
    for part in open_haplotypes(folder / "results/impute/reference.npz").parts:
        here = sites.chrom.astype(str).to_numpy() == part.contig.removeprefix("chr")
        cm = np.asarray(part.cm)[np.isin(part.pos, sites.pos[here])]
        model = {"ne": part.ne, "mismatch": part.mismatch, "threads": 2}
        given = np.ascontiguousarray(donors[:, here])
        found["founders"].append(popdesic.paint(given, cm, **model).lengths)
        for newcomers in phased[False]:
            target = np.ascontiguousarray(newcomers[:, here])
            found["newcomers"].append(popdesic.paint(given, cm, target, **model).lengths)
    return found


def test_samples_are_painted_with_a_reference_too(study):
    """Its map and model, but the founders' own haplotypes, on two contigs."""
    folder, founders = study["folder"], study["cohorts"][:2]
    assert study["ran"]["paint_samples"] == 1
    lengths = painted_by_hand(folder, founders)["founders"]
    assert len(lengths) == 2
    out = folder / "results/painting"
    rows = [np.load(out / f"coancestry/{cohort.name}.npy") for cohort in founders]
    np.testing.assert_array_equal(np.concatenate(rows), sum(part.sum(axis=0) for part in lengths))
    names = [name for one in founders for name in one.samples]
    table = pd.read_csv(out / "groups.tsv", sep="\t").head(len(names))
    assert pd.read_csv(out / "donors.tsv", sep="\t")["sample"].tolist() == names
    assert table["sample"].tolist() == names and (table.painted_group == 1).all()
    assert read_json(out / "groups.json")["tests"] == []  # 24 cM are too few stretches


def check_painting(folder: Path, cohorts: list[Cohort]) -> None:
    """Rows are those of the function for arrays; groups are the cohorts, newcomers placed."""
    lengths = painted_by_hand(folder, cohorts)
    (among,), (newcomers,) = lengths["founders"], lengths["newcomers"]
    out = folder / "results/painting"
    north, west = (np.load(out / f"coancestry/{name}.npy") for name in ("north", "west"))
    np.testing.assert_array_equal(north, among.sum(axis=0)[:60])
    np.testing.assert_array_equal(west, newcomers.sum(axis=0))
    stretches = np.load(out / "coancestry/west__stretches.npy")
    np.testing.assert_array_equal(stretches, newcomers.transpose(1, 0, 2).astype(np.float32))
    frozen = open_haplotypes(folder / "results/impute/reference.npz")
    listed = pd.read_csv(out / "donors.tsv", sep="\t")
    assert listed["sample"].tolist() == frozen.samples
    table = pd.read_csv(out / "groups.tsv", sep="\t")
    assert table["sample"].tolist() == [name for one in cohorts for name in one.samples]
    assert table.painted_group.tolist() == [1] * 60 + [2] * 46
    assert table.painted_stability.between(0.5, 1).mean() > 0.95
    about = read_json(out / "groups.json")
    assert [one["samples"] for one in about["groups"]] == [60, 46]
    assert sorted(about["tests"][0]["halves"]) == [42, 60] and about["stretches"] == len(newcomers)
    assert (folder / "results/figures/painting.png").stat().st_size > 5_000


def test_a_frozen_reference_gives_the_same_bytes(study, tmp_path):
    folder = study["folder"]
    cohorts = study["cohorts"][:2]
    (tmp_path / "data").mkdir()
    frozen = tmp_path / "data/r.npz"
    assert main(["freeze", str(folder / "data/r.vcf"), "-o", str(frozen)]) == 0
    assert frozen.read_bytes() == (folder / "results/impute/reference.npz").read_bytes()
    own = CONFIG | {"impute": {"method": "copying", "reference": "data/r.npz"}}
    write_study(tmp_path, cohorts, own)
    ran = finished(snakemake(tmp_path, "results/impute/north/copied.npy"))
    assert "freeze_reference" not in ran
    for name in ("copied.npy", "haplotypes.npz"):
        given, other = (one / "results/impute/north" / name for one in (folder, tmp_path))
        assert given.read_bytes() == other.read_bytes()
