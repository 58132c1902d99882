"""LD and pruning equal exact fractions, likelihoods and PLINK's description of pruning."""

from __future__ import annotations

import gzip
from copy import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.compare import haplotype_likelihood, r2
from oracles.compare import prune as slow_prune
from oracles.reference import draw_genotypes
from support.study import Cohort, make_sites, write_raw

from popdesic.cohort import genetic_maps, prune, prune_options
from popdesic.cohort import site_planes as planes_of_sites
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.site_planes import site_planes
from popdesic.core.errors import UserError
from popdesic.engine import site_pairs
from popdesic.engine.select import select_backend
from popdesic.engine.site_pairs import r2_block, r2_pairs
from popdesic.relatives import disequilibrium as dis
from popdesic.relatives import ld, ld_scan

BACKEND = select_backend("cpu", 2)
NO_FILTERS = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}


def correlated_genotypes(rng, n_sites: int, n_samples: int, missing: float = 0.0) -> np.ndarray:
    """int8 (n_sites, n_samples): neighbouring sites share most of their haplotypes."""
    haplotypes = np.zeros((n_sites, 2 * n_samples), np.int8)
    haplotypes[0] = rng.random(2 * n_samples) < 0.4
    for site in range(1, n_sites):
        fresh = rng.random(2 * n_samples) < rng.choice([0.03, 0.3, 1.0])
        drawn = rng.random(2 * n_samples) < rng.uniform(0.1, 0.6)
        haplotypes[site] = np.where(fresh, drawn, haplotypes[site - 1])
    genotypes = haplotypes[:, ::2] + haplotypes[:, 1::2]
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("n_samples", [1, 2, 15, 17, 63, 64, 65, 130])
def test_r2_in_exact_fractions(n_samples, missing):
    """All pairs of sites, with monomorphic and entirely missing ones on both sides of a block."""
    rng = np.random.default_rng(n_samples)
    genotypes = draw_genotypes(rng, n_samples, 9, missing).T.copy()
    genotypes[3] = 1
    if missing:
        genotypes[5] = -1
    planes = site_planes(genotypes)
    expected = np.array([[r2(a, b) for b in genotypes] for a in genotypes])
    np.testing.assert_allclose(r2_block(planes, None, BACKEND), expected, rtol=1e-12, atol=0)
    both = r2_block(site_planes(genotypes[:4]), site_planes(genotypes[4:]), BACKEND)
    np.testing.assert_allclose(both, expected[:4, 4:], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("window", "partners"), [("2 sites", [2, 2, 1, 0, 1, 0]), ("20 bp", [2, 1, 1, 0, 1, 0])]
)
def test_windows(window, partners):
    sites = pd.DataFrame({"chrom": ["2"] * 4 + ["1"] * 2, "pos": [10, 20, 30, 45, 5, 25]})
    ends = ld.window_ends(sites, window)
    np.testing.assert_array_equal(ends - np.arange(6) - 1, partners)
    cm = np.array([0.0, 0.1, 0.2, 0.9, 0.0, 0.3])
    ends = ld.window_ends(sites, "0.25 cM", cm)
    np.testing.assert_array_equal(ends - np.arange(6) - 1, [2, 1, 0, 0, 0, 0])


@pytest.mark.parametrize("window", ["", "10", "kb", "-3 kb", "ten bp", "5 miles"])
def test_invalid_windows_are_refused(window):
    with pytest.raises(UserError, match="is not a window"):
        prune_options.parse_window(window)


@pytest.mark.parametrize(
    "values", [[10, 5], ["50 sites", 0, 0.2], ["50 kb", 5, 0.2], ["1 cM", 1, 0.2]]
)
def test_invalid_pruning_settings_are_refused(values):
    with pytest.raises(UserError, match=r"panel\.ld_prune is"):
        prune_options.parse_pruning(values, "panel.ld_prune")


@pytest.mark.parametrize("narrow", [0, 256])
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("block", [7, 1024])
def test_pairs_of_windows(block, missing, narrow, monkeypatch):
    monkeypatch.setattr(site_pairs, "BLOCK_SITES", block)
    monkeypatch.setattr(site_pairs, "NARROW", narrow)
    rng = np.random.default_rng(1)
    genotypes = correlated_genotypes(rng, 40, 60, missing)
    sites = pd.DataFrame({"chrom": ["1"] * 25 + ["2"] * 15, "pos": np.arange(40) * 10})
    ends = ld.window_ends(sites, "90 bp")
    seen = []
    rows, columns, values = r2_pairs(
        BACKEND, site_planes(genotypes), ends, 0.2, lambda *block: seen.append(block)
    )
    everything = {}
    for i in range(40):
        for j in range(i + 1, 40):
            if sites.chrom[i] == sites.chrom[j] and j - i <= 9:
                everything[i, j] = r2(genotypes[i], genotypes[j])
    expected = {pair: value for pair, value in everything.items() if value >= 0.2}
    found = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), values, strict=True))
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], rel=1e-12) for pair in found)
    given = {
        (i, j): v for block in seen for i, j, v in zip(*(x.tolist() for x in block), strict=True)
    }
    assert given.keys() == everything.keys()


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("n_sites", "n_samples"), [(1, 1), (2, 65), (15, 63), (65, 64), (130, 7)])
def test_r2_does_not_depend_on_how_pairs_are_counted(n_sites, n_samples, missing, monkeypatch):
    rng = np.random.default_rng(n_sites)
    genotypes = rng.choice(np.array([0, 1, 2], np.int8), (n_sites, n_samples))
    genotypes[rng.random(genotypes.shape) < missing] = -1
    ends = np.minimum(np.arange(n_sites) + rng.integers(1, 9), n_sites)
    found = []
    for narrow in (0, 256):
        monkeypatch.setattr(site_pairs, "NARROW", narrow)
        parts = list(site_pairs.band_pairs(BACKEND, site_planes(genotypes), ends))
        i, j, values = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((j, i))
        found.append((i[order].tolist(), j[order].tolist(), values[order].tobytes()))
    assert found[0] == found[1]


def test_haplotype_frequencies_maximise_the_likelihood():
    """At fixed allele frequencies no nearby D is more likely than that of EM, for many tables."""
    rng = np.random.default_rng(7)
    tables = rng.integers(0, 12, (25, 3, 3)) * (rng.random((25, 3, 3)) < 0.8)
    tables[0] = np.diag([5, 9, 4])  # complete coupling
    frequency = dis.haplotype_frequencies(tables)
    d, d_prime = dis.disequilibrium(frequency)
    np.testing.assert_allclose(frequency.sum(axis=1), 1)
    assert d_prime[0] == pytest.approx(1)
    for table, f, here in zip(tables, frequency, d, strict=True):
        p, q = f[2] + f[3], f[1] + f[3]
        assert p == pytest.approx((table * [[0], [1], [2]]).sum() / (2 * table.sum()))
        best = haplotype_likelihood(table, p, q, here)
        for step in (-1e-3, 1e-3):
            low, high = max(-p * q, -(1 - p) * (1 - q)), min(p * (1 - q), (1 - p) * q)
            moved = min(max(here + step, low), high)
            assert haplotype_likelihood(table, p, q, moved) <= best + 1e-7


def test_pair_tables_count_genotypes():
    rng = np.random.default_rng(4)
    for missing in (0.0, 0.3):
        genotypes = draw_genotypes(rng, 70, 6, missing).T
        i, j = np.triu_indices(6, 1)
        found = site_pairs.tables_of(site_planes(genotypes), i, j, 2)
        for a, b, table in zip(i, j, found, strict=True):
            for x in range(3):
                for y in range(3):
                    assert table[x, y] == ((genotypes[a] == x) & (genotypes[b] == y)).sum()


@pytest.mark.parametrize(
    "values",
    [["5 sites", 2, 0.2], ["9 sites", 9, 0.1], ["4 sites", 1, 0.5], ["60 bp", 1, 0.15]],
)
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_pruning_equals_its_description(values, missing):
    rng = np.random.default_rng(11)
    for _ in range(8):
        genotypes = correlated_genotypes(rng, 60, 40, missing)
        genotypes[rng.integers(60, size=2)] = 0
        pos = np.cumsum(rng.integers(1, 30, 60))
        sites = pd.DataFrame({"chrom": ["1"] * 33 + ["2"] * 26 + ["3"], "pos": pos})
        pruning = prune_options.parse_pruning(values, "x")
        found = prune.pruned(site_planes(genotypes), sites, pruning, BACKEND)
        r2s = r2_block(site_planes(genotypes), None, BACKEND)
        p = np.array([row[row >= 0].mean() / 2 for row in genotypes])
        constant = np.array([len(set(row[row >= 0].tolist())) == 1 for row in genotypes])
        amount, unit, step, limit = pruning
        expected = slow_prune(
            *(r2s, np.maximum(p, 1 - p), sites.chrom.tolist(), pos.tolist()),
            *(amount, unit, step, limit, constant),
        )
        assert set(np.flatnonzero(found).tolist()) == expected


# --- the stage ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> dict:
    """One cohort of 200 sites on two contigs, encoded, with its phased VCF."""
    folder = tmp_path_factory.mktemp("ld")
    rng = np.random.default_rng(9)
    haplotypes = np.zeros((200, 80), np.int8)
    haplotypes[0] = rng.random(80) < 0.5
    for site in range(1, 200):
        fresh = rng.random(80) < 0.15
        haplotypes[site] = np.where(fresh, rng.random(80) < 0.4, haplotypes[site - 1])
    genotypes = haplotypes[:, ::2] + haplotypes[:, 1::2]
    cohort = Cohort("one", [f"s{k}" for k in range(40)], make_sites(200), genotypes)
    raw = write_raw(folder / "raw", cohort)
    summarize_cohort(raw, {}, folder / "s.tsv", folder / "q.tsv", min_sample_call_rate=0.0)
    tables = {"one": folder / "s.tsv"}
    build_panel(tables, folder / "panel.tsv", folder / "counts.json", PanelFilters(**NO_FILTERS))
    encode_cohort(raw, folder / "q.tsv", folder / "panel.tsv", folder, impute="mode", cohort="one")
    calls = np.array([["0|0", "0|1"], ["1|0", "1|1"]])
    rows = [
        "\t".join([c, str(p), i, r, a, ".", ".", ".", "GT", *calls[h[::2], h[1::2]]])
        for (c, p, i, r, a), h in zip(cohort.sites, haplotypes, strict=True)
    ]
    header = "##fileformat=VCFv4.2\n##contig=<ID=1>\n##contig=<ID=2>\n"
    header += '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
    columns = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
    text = header + columns + "\t".join(cohort.samples) + "\n" + "\n".join(rows) + "\n"
    (folder / "one.vcf").write_text(text)
    labels = ["A"] * 14 + ["B"] * 17 + ["small"] * 5 + [""] * 4
    rows = [f"{name}\tone\t{label}\n" for name, label in zip(cohort.samples, labels, strict=True)]
    (folder / "samples.tsv").write_text("sample\tcohort\tpopulation\n" + "".join(rows))
    return {"folder": folder, "haplotypes": haplotypes, "genotypes": genotypes, "text": text}


def run(study, out: Path, **changed):
    folder = study["folder"]
    paths = {
        "pairs": out / "ld.tsv.gz",
        "decay": out / "decay.tsv",
        "populations": out / "ld_populations.tsv",
        "region": out / "region.npz",
        "kept": out / "prune.in",
        "removed": out / "prune.out",
    }
    chosen = {"window": "500 bp", "min_r2": 0.1, "phase": "em", "map": None, "region": "auto"}
    chosen |= {"prune": ["10 sites", 1, 0.2]} | changed
    counts = ld_scan.measure_ld(
        [folder / "genotypes"],
        [changed.pop("sources", [folder / "one.vcf"])],
        folder / "panel.tsv",
        None,
        folder / "samples.tsv",
        paths,
        BACKEND,
        ld_scan.LdOptions(**{k: v for k, v in chosen.items() if k != "sources"}),
    )
    with gzip.open(paths["pairs"], "rt") as file:
        header = file.readline()
        table = pd.read_csv(file, sep="\t")
    return counts, header, table, paths


def test_stage_from_genotypes(study, tmp_path):
    counts, header, table, paths = run(study, tmp_path)
    assert "by EM" in header
    assert len(table) == counts["pairs with r2 of at least 0.1"] > 50
    index = {pos: k for k, (_, pos, *_) in enumerate(make_sites(200))}
    for row in table.head(50).itertuples():
        a, b = (study["genotypes"][index[pos]] for pos in (row.pos_a, row.pos_b))
        assert row.r2 == pytest.approx(r2(a, b), rel=1e-5)
    kept, removed = (paths[name].read_text().split() for name in ("kept", "removed"))
    assert len(kept) + len(removed) == 200
    assert not set(kept) & set(removed)
    decay = pd.read_csv(paths["decay"], sep="\t")
    assert decay.pairs.sum() == counts["pairs within the window"] == 2 * sum(range(95, 100))
    with np.load(paths["region"]) as region:
        assert region["r2"].shape == (len(region["pos"]),) * 2
        assert len(region["pos"]) == 100  # a contig has no more sites


@pytest.mark.parametrize(("threads", "room"), [(1, 1 << 30), (3, 1 << 30), (3, 1)])
def test_contigs_side_by_side_give_the_same_files(study, tmp_path, monkeypatch, threads, room):
    alone, together = tmp_path / "alone", tmp_path / "together"
    for folder in (alone, together):
        folder.mkdir()
    expected, _, _, files = run(study, alone)
    several = copy(BACKEND)
    several.threads = threads  # as on a machine with so many
    monkeypatch.setitem(globals(), "BACKEND", several)
    monkeypatch.setattr(planes_of_sites, "AHEAD_BYTES", room)
    found, _, _, others = run(study, together)
    assert found == expected
    for name in ("pairs", "decay", "populations", "kept", "removed", "region"):
        assert files[name].read_bytes() == others[name].read_bytes(), name


def test_stage_from_haplotypes(study, tmp_path):
    _, header, table, _ = run(study, tmp_path, phase="phased")
    assert "phased haplotypes" in header
    index = {pos: k for k, (_, pos, *_) in enumerate(make_sites(200))}
    for row in table.head(50).itertuples():
        a, b = (study["haplotypes"][index[pos]].astype(float) for pos in (row.pos_a, row.pos_b))
        d = (a * b).mean() - a.mean() * b.mean()
        assert row.d == pytest.approx(d, rel=1e-4, abs=1e-6)
        assert row.r2 == pytest.approx(np.corrcoef(a, b)[0, 1] ** 2, rel=1e-5)
        assert abs(row.d_prime) <= 1


def test_phase_from_one_file_per_contig(study, tmp_path):
    lines = study["text"].splitlines(keepends=True)
    for contig in ("1", "2"):
        kept = [line for line in lines if line.startswith(("#", f"{contig}\t"))]
        (tmp_path / f"chr{contig}.vcf").write_text("".join(kept))
    whole = run(study, tmp_path / "whole", phase="phased")[3]
    sources = [tmp_path / "chr1.vcf", tmp_path / "chr2.vcf"]
    parts = run(study, tmp_path / "parts", phase="phased", sources=sources)[3]
    for name, path in parts.items():
        assert path.read_bytes() == whole[name].read_bytes()


def test_unphased_data_for_haplotype_ld_gives_a_one_sentence_error(study, tmp_path):
    unphased = tmp_path / "two.vcf"
    unphased.write_text(study["text"].replace("0|1", "0/1"))
    with pytest.raises(UserError, match=r"two\.vcf: at 1:\d+ .* heterozygous without phase"):
        run(study, tmp_path, phase="phased", sources=[unphased])
    with pytest.raises(UserError, match="PLINK files have no phase"):
        run(study, tmp_path, phase="phased", sources=[study["folder"] / "raw"])


def test_regions_and_maps(study, tmp_path):
    sites = load_panel(study["folder"] / "panel.tsv")[0]
    none = np.zeros(0, np.int64)
    rows = ld_scan.choose_region(sites, "1:2000-3000", none, none)
    np.testing.assert_array_equal(sites.pos[rows], np.arange(2000, 3001, 100))
    with pytest.raises(UserError, match="has 0 panel sites"):
        ld_scan.choose_region(sites, "7:1-9", none, none)
    with pytest.raises(UserError, match=r"write chrom:from-to"):
        ld_scan.choose_region(sites, "7-1-9", none, none)
    path = tmp_path / "map.tsv"
    path.write_text("chrom\tpos\tcm\n1\t1000\t0\n1\t3000\t2\n2\t0\t0\n2\t90000\t9\n")
    cm = genetic_maps.read_map(path, sites)
    assert cm[10] == pytest.approx(1.0)
    path.write_text("chrom\tpos\tcm\n1\t1000\t0\n")
    with pytest.raises(UserError, match="contig '2' of the panel is not in the genetic map"):
        genetic_maps.read_map(path, sites)


def test_panel_is_pruned_like_its_list(study, tmp_path):
    """`panel.ld_prune` keeps the sites that `prune.in` lists, and the counts say so."""
    folder = study["folder"]
    steps = build_panel(
        {"one": folder / "s.tsv"},
        tmp_path / "panel.tsv",
        tmp_path / "counts.json",
        PanelFilters(**NO_FILTERS, ld_prune=["10 sites", 1, 0.2]),
        genotypes={"one": (folder / "raw", folder / "q.tsv")},
    )
    _, _, _, paths = run(study, tmp_path)
    sites, digest = load_panel(tmp_path / "panel.tsv")
    names = sites.chrom + ":" + sites.pos.astype(str) + ":" + sites.ref + ":" + sites.alt
    assert names.tolist() == paths["kept"].read_text().split()
    assert steps["after panel.ld_prune = 10 sites, 1, 0.2"] == len(sites)
    assert digest != load_panel(folder / "panel.tsv")[1]


def test_units_of_windows_in_any_case():
    windows = ["20 Mb", "20mb", "20 MB", "20000 kb", "20000000 bp"]
    assert {prune_options.parse_window(window) for window in windows} == {(2e7, "bp")}
    assert prune_options.parse_window("1.5 cm") == (1.5, "cM")
    assert prune_options.parse_pruning(["20 Mb", 1, 0.2], "x") == (2e7, "bp", 1, 0.2)
