"""A study of haploids runs to its report; what it says is that of one allele a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes.ploidy import mixed_ploidies
from support.browser import find_chromium
from support.reader import Question, contents, count_clicks
from support.running import snakemake

import popdesic
from popdesic.__main__ import main
from popdesic.cohort.panel import load_panel
from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.distance.matrix import load_distances
from popdesic.io.bed import read_bim

N = 15
CONFIG = """\
device: cpu
panel: {min_maf: 0}
distance: {metric: ibs}
geodesic: {alpha: [2], space: [genotypes]}
embedding: {ensemble: 0}
communities: {methods: [tree]}
species: yeast
compare: {analyses: [kinship, pc_relate, identity, mixture, ld, ibd]}
ibd: {min_cm: 20}
"""


@pytest.fixture(scope="module")
def drawn():
    """Haploids of two populations, with missing calls: genotypes (n_samples, n_sites), labels."""
    genotypes, _, population = mixed_ploidies([1], n=N, seed=3, parted=2_000)
    genotypes[1] = genotypes[0]  # a clone
    genotypes[np.random.default_rng(1).random(genotypes.shape) < 0.01] = -1
    return genotypes, population


def vcf_of(genotypes: np.ndarray, calls: str = "01.") -> str:
    names = [f"s{k:02d}" for k in range(len(genotypes))]
    head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join(names)
    rows = [
        "\t".join(
            ["IX" if k < 300 else "X", str(500 + 700 * k), ".", "A", "C", ".", "PASS", ".", "GT"]
        )
        + "".join(f"\t{calls[g]}" for g in site)
        for k, site in enumerate(genotypes.T.tolist())
    ]
    return "\n".join(["##fileformat=VCFv4.2", head, *rows]) + "\n"


@pytest.fixture(scope="module")
def study(tmp_path_factory, drawn) -> Path:
    folder = tmp_path_factory.mktemp("haploids")
    genotypes, population = drawn
    (folder / "yeast.vcf").write_text(vcf_of(genotypes))
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text(CONFIG)
    (folder / "config/cohorts.tsv").write_text(
        "cohort\tgenotypes\tfounder\nyeast\tyeast.vcf\tyes\n"
    )
    rows = [f"s{k:02d}\tyeast\tP{p}\t1\n" for k, p in enumerate(population)]
    (folder / "config/samples.tsv").write_text(
        "sample\tcohort\tpopulation\tploidy\n" + "".join(rows)
    )
    snakemake(folder)
    return folder


@pytest.fixture(scope="module")
def on_panel(study, drawn) -> np.ndarray:
    """The drawn alleles at the panel's sites, from the positions that the sites were given."""
    places = (read_bim(study / "results/cohorts/yeast/genotypes").pos.to_numpy() - 500) // 700
    return drawn[0][:, places]


def test_the_page_says_what_is_left_out(study):
    artefacts = read_json(study / "results/qc/artefacts.json")["cohorts"]
    assert artefacts[0]["cohort"] == "yeast"
    page = (study / "results/report/report.html").read_text()
    assert "All samples are haploid (column ploidy)" in page
    assert "kinship, pc_relate, mixture (compare.analyses)" in page
    for gone in ("compare/pc_relate.tsv", "population/runs.tsv", "panel/unrelated.tsv"):
        assert not (study / "results" / gone).exists(), gone
    assert "Hardy–Weinberg" not in page
    summary = (study / "results/report/summary.json").read_text()
    assert "NaN" not in summary


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium")
def test_a_reader_learns_what_ploidy_changes(study, browser):
    page = (study / "results/report/report.html").as_uri()
    pair = read_table(study / "results/population/pairs.tsv").iloc[0]
    fst, error = float(pair.fst), float(pair.error)
    rows = f"{pair.population1}\\s+{pair.population2}\\s+{fst:.4f} ± {error:.4f}"
    asked = [
        Question(
            "Which analyses does ploidy leave out?",
            r"All samples are haploid.*kinship, pc_relate, mixture",
            "#warnings li, #notes li",
            (contents("notes"),),
        ),
        Question("F_ST of haploids?", rows, "#population tbody tr", (contents("population"),)),
    ]
    for question in asked:
        assert count_clicks(browser, page, question) is not None, question.text


def test_contig_x_of_yeast_is_on_the_panel(study):
    """Its tenth chromosome: IX tells so."""
    assert set(read_bim(study / "results/cohorts/yeast/genotypes").chrom) == {"IX", "X"}


def test_distances_are_those_of_haploids(study, on_panel):
    options = {"metric": "ibs", "n_sites": on_panel.shape[1], "min_called": 100}
    found = load_distances(study / "results/distance", **options)
    expected = popdesic.pairwise_distance(on_panel, ploidy=1, metric="ibs", device="cpu")
    np.testing.assert_array_equal(found, expected)
    assert on_panel.shape[1] > 300 and expected.max() > 0.1


def test_statistics_count_one_allele_a_sample(study, drawn, on_panel):
    """Hudson's F_ST and the unbiased expected heterozygosity, by definition."""
    between, within, expected = 0.0, 0.0, []
    for site in on_panel.T:
        called = [site[(drawn[1] == k) & (site >= 0)].astype(float) for k in (0, 1)]
        p, n = [c.mean() for c in called], [len(c) for c in called]
        own = [2 * p[k] * (1 - p[k]) * n[k] / (n[k] - 1) for k in (0, 1)]
        expected.append(own)
        between += p[0] * (1 - p[1]) + p[1] * (1 - p[0])
        within += sum(own) / 2
    pairs = read_table(study / "results/population/pairs.tsv")
    assert float(pairs.fst[0]) == pytest.approx(1 - within / between, rel=1e-5)
    assert pairs.weir_cockerham[0] == "NA"
    table = read_table(study / "results/population/populations.tsv")
    np.testing.assert_allclose(table.expected.astype(float), np.mean(expected, axis=0), rtol=1e-5)
    assert (table.observed == "NA").all() and (table.f == "NA").all()
    assert (table.hwe_sites == "0").all() and (table.pseudo_haploid == str(N)).all()
    assert (read_table(study / "results/population/samples.tsv").ploidy == "1").all()


def test_components_separate_the_populations(study, drawn):
    scores = np.load(study / "results/embedding/pca.npy")[:, 0]
    low, high = scores[drawn[1] == 0], scores[drawn[1] == 1]
    assert low.max() < high.min() or high.max() < low.min()
    assert read_json(study / "results/embedding/pca.json")["variance_explained"][0] > 0.1


def test_clones_are_identical_and_groups_are_the_populations(study, drawn, on_panel):
    table = read_table(study / "results/compare/identity.tsv").set_index("query")
    assert table.loc["s00", ["match", "verdict"]].tolist() == ["s01", "same"]
    # One allele a site: twice as much if each counted as two.
    af = load_panel(study / "results/panel/sites.tsv")[0].af.to_numpy()
    share = np.where(on_panel[0] > 0, af, 1 - af)[(on_panel[:2] >= 0).all(axis=0)]
    assert float(table.loc["s00", "log10_rmp"]) == pytest.approx(np.log10(share).sum(), rel=1e-3)
    assert (table.verdict == "different").sum() >= 2 * N - 6
    found = read_table(study / "results/communities/partition.tsv").set_index("sample")
    labels = np.array([f"P{k}" for k in drawn[1]])
    assert len(set(zip(found.loc[sorted(found.index)].community, labels, strict=True))) == 2


def test_clones_share_their_genome_by_descent(study, drawn):
    """All pairs are fitted; the page says what a fraction means."""
    pairs = read_table(study / "results/ibd/pairs.tsv")
    assert len(pairs) == N * (2 * N - 1)
    assert pairs.loc[0, ["sample1", "sample2"]].tolist() == ["s00", "s01"]
    fractions = pairs.fraction.astype(float)
    one, two = (drawn[1][pairs[name].str[1:].astype(int)] for name in ("sample1", "sample2"))
    assert fractions[0] > 0.99 and fractions[one != two].mean() < 0.01
    about = read_json(study / "results/ibd/summary.json")
    assert about["map"] == "375 cM/Mb" and about["used"] > 50 and about["segments"] >= 2
    assert not (study / "results/compare/relatives.tsv").exists()
    page = (study / "results/report/report.html").read_text()
    assert 'id="ibd"' in page and "The fraction is 1 for clones" in page
    assert "IBD2 cM" not in page and ">Generations</th>" in page
    assert "hmmIBD" in (study / "results/report/methods.md").read_text()
    assert "Identity by descent" in page and "ibd (compare.analyses)" not in page


def test_a_haploid_is_placed(study, tmp_path, capsys):
    """Beside its clone, without what compares heterozygotes."""
    command = ["place", str(study / "yeast.vcf"), "--sample", "s00", "--study", str(study)]
    assert main([*command, "--out", str(tmp_path / "place")]) == 0
    said = capsys.readouterr().out
    assert "1. s00" in said and "2. s01" in said
    assert "heterozygous" not in said and "Relatives: not judged" in said
    sites = read_json(tmp_path / "place/place.json")["sites"]
    assert sites["heterozygosity"] is None
    assert sites["af_difference"] == pytest.approx(sites["expected_af_difference"], rel=0.2)
    assert sites["homozygous_ref"] == pytest.approx(sites["expected_homozygous_ref"], rel=0.2)
