"""A study of tetraploids runs to its report; what it says is that of four alleles a sample.

A third of the samples are newcomers, whose file has REF and ALT of every second site swapped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes.ploidy import mixed_ploidies
from support.running import snakemake

import popdesic
from popdesic.__main__ import main
from popdesic.cohort.panel import load_panel
from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.distance.matrix import load_distances
from popdesic.io.bed import read_bim

N, PLOIDY = 15, 4
FOUNDERS = np.arange(2 * N) % 3 < 2
#: Founders come first in all matrices.
ORDER = np.argsort(~FOUNDERS, kind="stable")
CONFIG = """\
device: cpu
panel: {min_maf: 0.02}
distance: {metric: manhattan}
geodesic: {alpha: [2, auto]}
embedding: {ensemble: 0}
communities: {methods: [tree]}
compare: {ld: {window: 3 sites}}
"""


def calls_of(genotypes: np.ndarray, rng: np.random.Generator) -> list[str]:
    """Calls of tetraploids, their alleles in any order; every third is a point alone if missing."""
    calls = []
    for k, g in enumerate(genotypes.tolist()):
        alleles = ["1"] * max(g, 0) + ["0"] * (PLOIDY - max(g, 0))
        rng.shuffle(alleles)
        calls.append("/".join(alleles) if g >= 0 else ("." if k % 3 else "./././."))
    return calls


def place_of(site: int) -> list[str]:
    """Contig and position: far apart, so that stretches of the genome count as independent."""
    return [str(1 + site // 120), str(10_000_000 * (1 + site % 120))]


@pytest.fixture(scope="module")
def drawn():
    """Tetraploids of two populations, some calls missing: genotypes, by sample, and labels."""
    parts = [mixed_ploidies([PLOIDY], n=N, seed=seed) for seed in range(5, 9)]
    genotypes, population = np.concatenate([g[:, ::3] for g, _, _ in parts], axis=1), parts[0][2]
    genotypes[1] = genotypes[0]  # a clone
    genotypes[np.random.default_rng(1).random(genotypes.shape) < 0.01] = -1
    return genotypes, population


@pytest.fixture(scope="module")
def study(tmp_path_factory, drawn) -> Path:
    folder = tmp_path_factory.mktemp("tetraploids")
    genotypes, population = drawn
    rng = np.random.default_rng(2)
    names = np.array([f"s{k:02d}" for k in range(len(genotypes))])
    for file, who in (("potato", FOUNDERS), ("wild", ~FOUNDERS)):
        head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
        rows = []
        for k, site in enumerate(genotypes[who].T):
            turned = file == "wild" and k % 2
            own = np.where(site >= 0, PLOIDY - site, -1) if turned else site
            alleles = ["C", "A"] if turned else ["A", "C"]
            fixed = [*place_of(k), ".", *alleles, ".", "PASS", ".", "GT"]
            rows.append("\t".join([*fixed, *calls_of(own, rng)]))
        text = ["##fileformat=VCFv4.2", head + "\t".join(names[who]), *rows]
        (folder / f"{file}.vcf").write_text("\n".join(text) + "\n")
    table = [f"{name}\tP{p}" for name, p in zip(names, population, strict=True)]
    (folder / "people.tsv").write_text("\n".join(["sample\tpopulation", *table]) + "\n")
    files = [str(folder / "potato.vcf"), str(folder / "wild.vcf"), "--founder", "potato"]
    assert main(["init", str(folder), *files, "--samples", str(folder / "people.tsv")]) == 0
    (folder / "config/config.yaml").write_text(CONFIG)
    snakemake(folder)
    return folder


@pytest.fixture(scope="module")
def on_panel(study, drawn) -> np.ndarray:
    """The drawn genotypes at the panel's sites."""
    return drawn[0][:, places_of(read_bim(study / "results/cohorts/potato/genotypes"))]


def places_of(sites) -> np.ndarray:
    return (sites.chrom.astype(int).to_numpy() - 1) * 120 + sites.pos.to_numpy() // 10_000_000 - 1


def test_the_page_says_what_is_left_out(study, capsys):
    artefacts = read_json(study / "results/qc/artefacts.json")["cohorts"]
    assert artefacts == []
    page = (study / "results/report/report.html").read_text()
    assert "All samples are of ploidy 4 (column ploidy)" in page
    assert "kinship, pc_relate, identity, mixture (compare.analyses)" in page
    for gone in ("compare/pc_relate.tsv", "population/runs.tsv"):
        assert not (study / "results" / gone).exists(), gone
    assert "NaN" not in (study / "results/report/summary.json").read_text()
    assert main(["check", str(study)]) == 0
    assert "auto (geodesic.alpha)" in "".join(capsys.readouterr())


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
def test_distances_are_those_of_tetraploids(study, on_panel, metric):
    """Bit for bit; the tiles have squares too."""
    options = {"metric": metric, "n_sites": on_panel.shape[1], "min_called": 100}
    found = load_distances(study / "results/distance", **options)
    there = on_panel[ORDER]
    expected = popdesic.pairwise_distance(there, ploidy=PLOIDY, metric=metric, device="cpu")
    np.testing.assert_array_equal(found, expected)
    assert on_panel.shape[1] > 250 and found[0, 1] == 0 < found[0, 2:].min()


def test_ld_decays(study):
    decay = read_table(study / "results/compare/decay.tsv")
    assert len(decay) and (decay.mean_r2.astype(float) <= 1).all()
    assert (study / "results/figures/ld_decay.svg").exists()
    lists = [(study / f"results/compare/prune.{end}").read_text().split() for end in ("in", "out")]
    assert len(lists[0]) > 50 and not set(lists[0]) & set(lists[1])


def test_components_are_those_of_the_definition(study, drawn, on_panel):
    """(g - 4 f) / sqrt(4 f (1 - f)), mean products over jointly called sites."""
    with np.load(study / "results/embedding/axes.npz") as axes:
        values, rows = axes["values"], axes["sites"]
    genotypes = on_panel[FOUNDERS][:, rows].astype(float)
    called = genotypes >= 0
    f = np.where(called, genotypes, 0).sum(axis=0) / (PLOIDY * called.sum(axis=0))
    standard = np.where(called, (genotypes - PLOIDY * f) / np.sqrt(PLOIDY * f * (1 - f)), 0)
    relationship = standard @ standard.T / (called.astype(float) @ called.T)
    expected = np.linalg.eigvalsh(relationship)[::-1]
    np.testing.assert_allclose(values[:8], expected[:8], rtol=1e-9)
    scores = np.load(study / "results/embedding/pca.npy")[:, 0]
    low, high = (scores[drawn[1][ORDER] == k] for k in (0, 1))
    assert low.max() < high.min() or high.max() < low.min()


def test_statistics_count_alleles(study, drawn, on_panel):
    """Hudson's F_ST on the panel; expected heterozygosity of all sites that vary; by definition."""
    more = drawn[0][:, places_of(load_panel(study / "results/panel/further.tsv")[0])]
    between, within, expected = 0.0, 0.0, []
    for k, site in enumerate(np.concatenate([on_panel, more], axis=1).T):
        called = [site[(drawn[1] == p) & (site >= 0)].astype(float) for p in (0, 1)]
        p, n = [c.mean() / PLOIDY for c in called], [PLOIDY * len(c) for c in called]
        own = [2 * p[k] * (1 - p[k]) * n[k] / (n[k] - 1) for k in (0, 1)]
        expected.append(own)
        if k < on_panel.shape[1]:
            between += p[0] * (1 - p[1]) + p[1] * (1 - p[0])
            within += sum(own) / 2
    pairs = read_table(study / "results/population/pairs.tsv")
    assert float(pairs.fst[0]) == pytest.approx(1 - within / between, rel=1e-5)
    assert pairs.weir_cockerham[0] == "NA" and len(more.T) > 50
    table = read_table(study / "results/population/populations.tsv")
    np.testing.assert_allclose(table.expected.astype(float), np.mean(expected, axis=0), rtol=1e-5)
    assert (table.observed == "NA").all() and (table.hwe_sites == "0").all()
    assert table.call_rate.astype(float).between(0.98, 1).all()
    samples = read_table(study / "results/population/samples.tsv")
    assert (samples.ploidy == str(PLOIDY)).all() and (samples.heterozygous == "NA").all()


def test_communities_are_the_populations(study, drawn):
    found = read_table(study / "results/communities/partition.tsv").set_index("sample")
    labels = np.array([f"P{k}" for k in drawn[1]])
    assert len(set(zip(found.loc[sorted(found.index)].community, labels, strict=True))) == 2
    pairs = read_table(study / "results/population/pairs.tsv")
    f_st = found.f_st.astype(float)
    assert f_st.max() == pytest.approx(float(pairs.fst[0]), rel=0.02)


def test_quality_counts_samples(study, drawn):
    table = read_table(study / "results/qc/potato.samples.tsv")
    own = drawn[0][FOUNDERS]
    missing = (own < 0).sum(axis=1)
    assert table.n_missing.astype(int).tolist() == missing.tolist()
    both = ((own > 0) & (own < PLOIDY)).sum(axis=1) / (own >= 0).sum(axis=1)
    np.testing.assert_allclose(table.heterozygosity.astype(float), both, rtol=1e-5)
    counts = read_json(study / "results/cohorts/potato/raw.json")["counts"]
    assert counts["missing"] == missing.sum()
    assert counts["unphased"] == own.size - missing.sum()
    drift = read_table(study / "results/qc/drift.tsv").set_index("cohort").loc["wild"]
    expected = float(drift.expected_af_difference)
    assert float(drift.mean_af_difference) == pytest.approx(expected, rel=0.3)


def test_a_polyploid_is_not_placed(study, tmp_path, capsys):
    command = ["place", str(study / "potato.vcf"), "--sample", "s00", "--study", str(study)]
    assert main([*command, "--out", str(tmp_path / "place")]) == 1
    assert "only haploids and diploids are placed; add the sample" in capsys.readouterr().err
