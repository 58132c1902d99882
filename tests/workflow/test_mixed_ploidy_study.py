"""A study of diploids and tetraploids runs to its report; its truth is known.

Two populations, each with samples of both ploidies. The founders are in one file. A third of the
samples are newcomers, with a file for each ploidy, in which REF and ALT of every second site are
swapped.
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

N, KINDS = 9, [2, 4]
FOUNDERS = np.arange(2 * N * len(KINDS)) % 3 < 2
TETRAPLOID = np.tile(np.repeat([False, True], N), 2)
FILES = {"first": FOUNDERS, "second": ~FOUNDERS & ~TETRAPLOID, "third": ~FOUNDERS & TETRAPLOID}
#: Founders come first in all matrices.
ORDER = np.concatenate([np.flatnonzero(who) for who in FILES.values()])
CONFIG = """\
device: cpu
panel: {min_maf: 0.02}
distance: {metric: manhattan}
geodesic: {alpha: [2]}
embedding: {ensemble: 0}
communities: {methods: [tree]}
"""


def place_of(site: int) -> list[str]:
    """Contig and position: far apart, so that stretches of the genome count as independent."""
    return [str(1 + site // 120), str(10_000_000 * (1 + site % 120))]


def places_of(sites) -> np.ndarray:
    return (sites.chrom.astype(int).to_numpy() - 1) * 120 + sites.pos.to_numpy() // 10_000_000 - 1


@pytest.fixture(scope="module")
def drawn():
    """Genotypes, by sample, some calls missing; ploidies and populations."""
    parts = [mixed_ploidies(KINDS, n=N, seed=seed, parted=600) for seed in range(5, 9)]
    genotypes = np.concatenate([g for g, _, _ in parts], axis=1)
    genotypes[np.random.default_rng(1).random(genotypes.shape) < 0.01] = -1
    return genotypes, parts[0][1], parts[0][2]


@pytest.fixture(scope="module")
def study(tmp_path_factory, drawn) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    genotypes, ploidy, population = drawn
    rng = np.random.default_rng(2)
    names = np.array([f"s{k:02d}" for k in range(len(genotypes))])
    for file, who in FILES.items():
        head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
        rows = []
        for k, site in enumerate(genotypes[who].T):
            turned = file != "first" and k % 2
            calls = []
            for g, p in zip(site.tolist(), ploidy[who].tolist(), strict=True):
                alt = p - g if turned else g
                alleles = rng.permutation(["1"] * alt + ["0"] * (p - alt)) if g >= 0 else ["."] * p
                calls.append("/".join(alleles))
            alleles = ["C", "A"] if turned else ["A", "C"]
            fixed = [*place_of(k), ".", *alleles, ".", "PASS", ".", "GT"]
            rows.append("\t".join([*fixed, *calls]))
        text = ["##fileformat=VCFv4.2", head + "\t".join(names[who]), *rows]
        (folder / f"{file}.vcf").write_text("\n".join(text) + "\n")
    table = [f"{name}\tP{p}" for name, p in zip(names, population, strict=True)]
    (folder / "people.tsv").write_text("\n".join(["sample\tpopulation", *table]) + "\n")
    files = [*(str(folder / f"{file}.vcf") for file in FILES), "--founder", "first"]
    assert main(["init", str(folder), *files, "--samples", str(folder / "people.tsv")]) == 0
    (folder / "config/config.yaml").write_text(CONFIG)
    snakemake(folder)
    return folder


@pytest.fixture(scope="module")
def on_panel(study, drawn) -> np.ndarray:
    """The drawn genotypes at the panel's sites."""
    return drawn[0][:, places_of(read_bim(study / "results/cohorts/first/genotypes"))]


def test_init_finds_the_ploidy_of_each_sample(study, drawn):
    sheet = read_table(study / "config/samples.tsv").set_index("sample")
    found = sheet.ploidy.astype(int).loc[[f"s{k:02d}" for k in range(len(drawn[1]))]]
    assert found.tolist() == drawn[1].tolist()


def test_the_page_says_what_is_left_out(study, capsys):
    artefacts = read_json(study / "results/qc/artefacts.json")["cohorts"]
    assert artefacts == []
    page = (study / "results/report/report.html").read_text()
    assert "Samples are of ploidy 2 and 4 (column ploidy)" in page
    assert "kinship, pc_relate, identity, mixture (compare.analyses)" in page
    assert "NaN" not in (study / "results/report/summary.json").read_text()
    assert main(["check", str(study)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
def test_distances_are_those_of_the_api(study, drawn, on_panel, metric):
    """Bit for bit; and within a population they depend on ploidy as sampling of alleles says."""
    options = {"metric": metric, "n_sites": on_panel.shape[1], "min_called": 100}
    found = load_distances(study / "results/distance", **options)
    there, ploidy, population = on_panel[ORDER], drawn[1][ORDER], drawn[2][ORDER]
    expected = popdesic.pairwise_distance(there, ploidy=ploidy, metric=metric, device="cpu")
    np.testing.assert_array_equal(found, expected)
    if metric == "euclidean":  # squared, and less p (1 - p) of each sample: the same for all
        for one in (0, 1):
            own = population == one
            calls = np.where(there[own] < 0, 0, there[own])
            f = calls.sum(axis=0) / ((there[own] >= 0) * ploidy[own, None]).sum(axis=0)
            noise = 16 * (f * (1 - f)).sum()
            squared = found[np.ix_(own, own)] ** 2
            p = ploidy[own]
            for a, b in ((2, 2), (2, 4), (4, 4)):
                block = squared[np.ix_(p == a, p == b)]
                mean = block[block > 0].mean()
                assert mean == pytest.approx(noise * (1 / a + 1 / b), rel=0.12), (one, a, b)


def test_components_are_those_of_the_definition(study, drawn, on_panel):
    """(a - k f) / sqrt(k f (1 - f)), mean products over jointly called sites."""
    with np.load(study / "results/embedding/axes.npz") as axes:
        values, rows = axes["values"], axes["sites"]
    genotypes, k = on_panel[FOUNDERS][:, rows].astype(float), drawn[1][FOUNDERS, None]
    called = genotypes >= 0
    f = np.where(called, genotypes, 0).sum(axis=0) / (k * called).sum(axis=0)
    standard = np.where(called, (genotypes - k * f) / np.sqrt(k * f * (1 - f)), 0)
    relationship = standard @ standard.T / (called.astype(float) @ called.T)
    expected = np.linalg.eigvalsh(relationship)[::-1]
    np.testing.assert_allclose(values[:8], expected[:8], rtol=1e-9)


def test_components_part_populations_and_no_ploidies(study, drawn):
    scores = np.load(study / "results/embedding/pca.npy")
    ploidy, population = drawn[1][ORDER], drawn[2][ORDER]
    significant = read_json(study / "results/embedding/pca.json")["significant"]
    assert significant >= 1
    low, high = (scores[population == k, 0] for k in (0, 1))
    assert low.max() < high.min() or high.max() < low.min()
    middle = [[scores[(population == p) & (ploidy == k), 0].mean() for k in KINDS] for p in (0, 1)]
    gap = abs(middle[0][0] - middle[1][0])
    assert max(abs(a - b) for a, b in middle) < 0.1 * gap
    for axis in scores[:, :significant].T:
        for p in (0, 1):
            two, four = (axis[(population == p) & (ploidy == k)] for k in KINDS)
            spread = np.sqrt(two.var() / len(two) + four.var() / len(four))
            assert abs(two.mean() - four.mean()) < 4 * spread


def test_statistics_count_alleles(study, drawn, on_panel):
    """Frequencies, Hudson's F_ST, and expected heterozygosity of all sites; by definition."""
    genotypes, ploidy, population = drawn
    more = genotypes[:, places_of(load_panel(study / "results/panel/further.tsv")[0])]
    between, within, expected = 0.0, 0.0, []
    for k, site in enumerate(np.concatenate([on_panel, more], axis=1).T):
        counted = [(population == p) & (site >= 0) for p in (0, 1)]
        n = [int(ploidy[own].sum()) for own in counted]
        p = [site[own].sum() / m for own, m in zip(counted, n, strict=True)]
        own = [2 * p[i] * (1 - p[i]) * n[i] / (n[i] - 1) for i in (0, 1)]
        expected.append(own)
        if k < on_panel.shape[1]:
            between += p[0] * (1 - p[1]) + p[1] * (1 - p[0])
            within += sum(own) / 2
    pairs = read_table(study / "results/population/pairs.tsv")
    assert float(pairs.fst[0]) == pytest.approx(1 - within / between, rel=1e-5)
    table = read_table(study / "results/population/populations.tsv")
    np.testing.assert_allclose(table.expected.astype(float), np.mean(expected, axis=0), rtol=1e-5)
    assert table.call_rate.astype(float).between(0.98, 1).all()
    assert table.people.astype(int).tolist() == [2 * N, 2 * N]
    samples = read_table(study / "results/population/samples.tsv").set_index("sample")
    names = [f"s{k:02d}" for k in range(len(ploidy))]
    assert samples.ploidy.astype(int).loc[names].tolist() == ploidy.tolist()
    panel = load_panel(study / "results/panel/sites.tsv")[0]
    first = on_panel[FOUNDERS]
    alleles = ((first >= 0) * ploidy[FOUNDERS, None]).sum(axis=0)
    np.testing.assert_allclose(panel.af, np.where(first < 0, 0, first).sum(axis=0) / alleles)


def test_communities_are_the_populations(study, drawn):
    found = read_table(study / "results/communities/partition.tsv").set_index("sample")
    labels = np.array([f"P{k}" for k in drawn[2]])
    assert len(set(zip(found.loc[sorted(found.index)].community, labels, strict=True))) == 2
    pairs = read_table(study / "results/population/pairs.tsv")
    assert found.f_st.astype(float).max() == pytest.approx(float(pairs.fst[0]), rel=0.05)


def test_quality_counts_samples(study, drawn):
    table = read_table(study / "results/qc/first.samples.tsv")
    own, ploidy = drawn[0][FOUNDERS], drawn[1][FOUNDERS]
    missing = (own < 0).sum(axis=1)
    assert table.n_missing.astype(int).tolist() == missing.tolist()
    both = ((own > 0) & (own < ploidy[:, None])).sum(axis=1) / (own >= 0).sum(axis=1)
    np.testing.assert_allclose(table.heterozygosity.astype(float), both, rtol=1e-5)
    counts = read_json(study / "results/cohorts/first/raw.json")["counts"]
    assert counts["missing"] == missing.sum()
    assert counts["unphased"] == own.size - missing.sum()
    encoded = read_json(study / "results/cohorts/first/planes.json")["counts"]
    assert encoded["samples"] == len(own) and "samples_without_calls" not in encoded
    drift = read_table(study / "results/qc/drift.tsv").set_index("cohort")
    for file in ("second", "third"):
        expected = float(drift.expected_af_difference[file])
        assert float(drift.mean_af_difference[file]) == pytest.approx(expected, rel=0.3)


def test_a_call_of_another_ploidy_names_line_and_sample(study, tmp_path, capsys):
    """Than declared for that sample, before any job."""
    folder = tmp_path / "study"
    (folder / "config").mkdir(parents=True)
    for name in ("samples.tsv", "cohorts.tsv", "config.yaml"):
        text = (study / "config" / name).read_text()
        if name == "samples.tsv":
            text = "\n".join(
                line.replace("\t2", "\t4") if line.startswith("s00\t") else line
                for line in text.split("\n")
            )
        (folder / "config" / name).write_text(text)
    for file in FILES:
        (folder / f"{file}.vcf").write_text((study / f"{file}.vcf").read_text())
    assert main(["check", str(folder)]) == 1
    said = capsys.readouterr().err
    assert "first.vcf, line 3: genotype" in said
    assert "of sample 's00' is of ploidy 2, but 4 in the sample sheet" in said
