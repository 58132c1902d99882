"""Sites beside the panel: which they are, their counts, and what rests on them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from support.study import Cohort, make_sites, write_raw

import popdesic
from popdesic.cohort.absent import Absent
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.cohort.panel import SiteLists, load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.files import has_lists
from popdesic.core.tables import read_table
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.io import listed_rows
from popdesic.io.bed import open_bed
from popdesic.io.listed_rows import write_again
from popdesic.population.allele_counts import load_counts
from popdesic.population.allele_sums_cpu import own_sums
from popdesic.population.blocks import block_starts
from popdesic.population.counts import count_cohort
from popdesic.population.equilibrium_cpu import LEVEL, low_sites, rejected
from popdesic.population.further_sites import FurtherSites
from popdesic.population.measure import measure_population
from popdesic.population.sum_names import OWN_SUMS
from popdesic.report.sections.population import population_section

FILTERS = {"exclude_contigs": [], "min_call_rate": 0.5, "min_maf": 0.1, "min_hwe_p": 0.0}
SAID = {"north": Absent(), "south": Absent("reference"), "west": Absent("missing")}
KEY = ("chrom", "pos", "ref", "alt")
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}


def draw_cohorts(rng, n_sites=600, sizes=(23, 18, 17)) -> list[Cohort]:
    """Founders `north` and `south`, newcomer `west`: rare alleles, missing genotypes, contig X."""
    frequency = np.exp(rng.uniform(np.log(0.004), np.log(0.5), n_sites))
    sites = [
        ("X" if k > 560 else chrom, *rest) for k, (chrom, *rest) in enumerate(make_sites(n_sites))
    ]
    cohorts = []
    for name, size in zip(SAID, sizes, strict=True):
        genotypes = rng.binomial(2, frequency[:, None], (n_sites, size))
        genotypes[rng.random(genotypes.shape) < 0.06] = -1
        samples = [f"{name[0]}{k}" for k in range(size)]
        labels = [["P", "Q", "NA"][k % 3] for k in range(size)]
        cohorts.append(
            Cohort(name, samples, list(sites), genotypes.astype(np.int8), populations=labels)
        )
    single = cohorts[0].genotypes[:, 4]  # a pseudo-haploid sample
    single[single == 1] = 2
    return cohorts


def as_sent(rng, cohort: Cohort, absent: np.ndarray, turned: float) -> Cohort:
    """The same as a file may have it: alleles swapped, on the other strand, sites absent."""
    sites, genotypes = list(cohort.sites), cohort.genotypes.copy()
    for k, (chrom, pos, name, ref, alt) in enumerate(sites):
        if COMPLEMENT[ref] == alt:
            continue
        if rng.random() < turned:
            ref, alt = alt, ref
            genotypes[k] = np.where(genotypes[k] < 0, -1, 2 - genotypes[k])
        if rng.random() < 0.01 * turned:
            ref, alt = COMPLEMENT[ref], COMPLEMENT[alt]
        sites[k] = (chrom, pos, name, ref, alt)
    kept = np.flatnonzero(~absent)
    return Cohort(
        cohort.name,
        cohort.samples,
        [sites[k] for k in kept],
        genotypes[kept],
        populations=cohort.populations,
    )


def prepare(folder, cohorts: list[Cohort], filters=FILTERS, said=SAID, further=True, lists=False):
    """Panel and further sites of the first two cohorts, and all cohorts on it."""
    for cohort in cohorts:
        out = folder / cohort.name
        raw = write_raw(out / "raw", cohort)
        if lists:
            sites = np.arange(len(cohort.sites))
            write_again(out / "raw.bed", open_bed(raw), sites, len(cohort.samples))
            assert has_lists(out / "raw.bed")
        summarize_cohort(raw, {}, out / "sites.qc", out / "samples.qc", min_sample_call_rate=0.0)
        table = read_table(out / "samples.qc")
        if cohort.name == "west":
            table.loc[2, "keep"] = "no"  # a sample that is left out
        table.to_csv(out / "samples.qc", sep="\t", index=False)
    founders = [cohort.name for cohort in cohorts[:2]]
    beside = folder / "further.tsv"
    build_panel(
        {name: folder / name / "sites.qc" for name in founders},
        folder / "panel.tsv",
        folder / "counts.json",
        PanelFilters(**filters),
        genotypes={
            name: (folder / name / "raw", folder / name / "samples.qc") for name in founders
        },
        absent={name: said[name] for name in founders},
        further_out=beside if further else None,
    )
    lines = ["sample\tcohort\tpopulation"]
    for cohort in cohorts:
        rows = zip(cohort.samples, cohort.populations, strict=True)
        lines += [f"{sample}\t{cohort.name}\t{label}" for sample, label in rows]
    (folder / "samples.tsv").write_text("\n".join(lines) + "\n")
    for cohort in cohorts:
        out = folder / cohort.name
        options = {"impute": "mode", "cohort": cohort.name, "absent": said[cohort.name]}
        encode_cohort(out / "raw", out / "samples.qc", folder / "panel.tsv", out, **options)
        place = FurtherSites(beside, out / "raw", out / "samples.qc", said[cohort.name])
        count_cohort(
            *(out, folder / "panel.tsv", folder / "samples.tsv"),
            [out / "counts.npz", out / "counts.tsv"],
            cohort=cohort.name,
            column="population",
            x_contigs=["X"],
            runs=None,
            backend=lambda need: CpuBackend(2),
            further=place if further else None,
        )
    return [folder / cohort.name / "counts.npz" for cohort in cohorts]


def lists_of(folder) -> SiteLists:
    return SiteLists(folder / "panel.tsv", folder / "further.tsv")


def at(table: pd.DataFrame, cohort: Cohort, absent: np.ndarray) -> np.ndarray:
    """Genotypes (n_sites, n) of the truth at sites of a table; absent ones are REF or missing."""
    row = {site[:2]: k for k, site in enumerate(cohort.sites)}
    own = [row[key] for key in zip(table.chrom, table.pos, strict=True)]
    assert [cohort.sites[k][3] for k in own] == table.ref.tolist()
    fill = 0 if SAID[cohort.name].rule == "reference" else -1
    return np.where(absent[own, None], fill, cohort.genotypes[own]).astype(np.int8)


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_counts_beside_the_panel(tmp_path, monkeypatch, seed, lists):
    """By the definition; from decoded files of rows, and from lists, which are counted as such."""
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", 1)
    monkeypatch.setattr(listed_rows, "LEAST_GAIN", 0)
    rng = np.random.default_rng(seed)
    cohorts = draw_cohorts(rng)
    truth = np.concatenate([cohort.genotypes for cohort in cohorts[:2]], axis=1)
    rare = (np.maximum(truth, 0).sum(axis=1) / (2 * (truth >= 0).sum(axis=1))) < 0.05
    absent = [np.zeros(600, bool), (rng.random(600) < 0.1) & rare, (rng.random(600) < 0.1) & rare]
    own = zip(cohorts[1:], absent[1:], (0.0, 0.4), strict=True)
    sent = [cohorts[0], *(as_sent(rng, *one) for one in own)]
    paths = prepare(tmp_path, sent, lists=lists)
    panel, digest = load_panel(tmp_path / "panel.tsv")
    further, same = load_panel(tmp_path / "further.tsv")
    assert digest == same
    assert not set(zip(*(panel[k] for k in KEY), strict=True)) & set(
        zip(*(further[k] for k in KEY), strict=True)
    )
    kept = [np.array([name != "w2" for name in cohort.samples]) for cohort in cohorts]
    _, both, order = lists_of(tmp_path).load()
    assert both.equals(
        pd.concat([panel, further], ignore_index=True).iloc[order].reset_index(drop=True)
    )
    of = [at(both, c, a)[:, k] for c, a, k in zip(cohorts, absent, kept, strict=True)]
    found = np.concatenate(of[:2], axis=1)
    alt, called = np.maximum(found, 0).sum(axis=1), (found >= 0).sum(axis=1)
    assert ((alt > 0) & (alt < 2 * called)).all()
    np.testing.assert_allclose(both.af, alt / (2 * called), rtol=1e-5)
    minor = np.minimum(alt, 2 * called - alt) / (2 * called)
    np.testing.assert_array_equal(minor >= 0.1, order < len(panel))
    # And counts by population, in all three cohorts.
    counts = load_counts(paths, order=order)
    labels = np.concatenate(
        [np.array(c.populations)[k] for c, k in zip(cohorts, kept, strict=True)]
    )
    names = np.concatenate([np.array(c.samples)[k] for c, k in zip(cohorts, kept, strict=True)])
    genotypes = np.concatenate(of, axis=1)
    genotypes[(both.chrom == "X").to_numpy()] = -1
    single = names == "n4"
    assert counts.names == ["P", "Q"] and counts.pseudo_haploid.tolist() == [0, 1]
    for k, name in enumerate("PQ"):
        own = genotypes[:, (labels == name) & ~single]
        for state in range(3):
            wanted = (own == state).sum(axis=1)
            np.testing.assert_array_equal(counts.genotypes[:, k, state], wanted)
        one = genotypes[:, (labels == name) & single]
        wanted = 2 * (own >= 0).sum(axis=1) + (one >= 0).sum(axis=1)
        np.testing.assert_array_equal(counts.alleles[:, k, 0], wanted)
    # The public functions give the same from the genotypes.
    out = tmp_path / "out"
    about = measure_population(
        *(paths, [path.with_suffix(".tsv") for path in paths], [], lists_of(tmp_path), out),
        analyses=["differentiation"],
        block="5 kb",
    )
    assert about["sites"] == len(panel) and about["diversity_sites"] == len(both)
    blocks = np.repeat(np.arange(len(s := block_starts(both, "5 kb")) - 1), np.diff(s))
    ours = read_table(out / "populations.tsv")
    inbred = ours.population[ours.inbred == "yes"].tolist()
    given = {"blocks": blocks, "pseudo_haploid": single, "inbred": inbred}
    named = np.where(labels == "NA", "", labels)
    theirs = popdesic.diversity(genotypes.T, named, **given)
    for name in theirs.columns[1:]:
        np.testing.assert_allclose(ours[name].astype(float), theirs[name], rtol=1e-5, err_msg=name)
    on_panel = order < len(panel)
    blocks = np.repeat(np.arange(len(s := block_starts(panel, "5 kb")) - 1), np.diff(s))
    given["blocks"] = blocks
    theirs = popdesic.f_st(genotypes[on_panel].T, named, **given)
    pairs = read_table(out / "pairs.tsv")
    for name in ("fst", "error", "weir_cockerham", "sites"):
        np.testing.assert_allclose(pairs[name].astype(float), theirs[name], rtol=1e-5, err_msg=name)


def test_a_newcomer_changes_no_count(tmp_path):
    """Another cohort leaves both lists, and the counts of the others, byte by byte."""
    cohorts = draw_cohorts(np.random.default_rng(7))
    names = ["panel.tsv", "further.tsv", "north/counts.npz", "south/counts.npz"]
    for folder, used in (("few", cohorts[:2]), ("more", cohorts)):
        prepare(tmp_path / folder, used)
    for name in names:
        assert (tmp_path / "few" / name).read_bytes() == (tmp_path / "more" / name).read_bytes()


@pytest.mark.parametrize(
    "filters", [{"min_maf": 0.0}, {"min_maf": 0.0, "ld_prune": ["100 sites", 5, 0.2]}]
)
def test_a_panel_of_all_frequencies(tmp_path, filters):
    """Without a filter on frequency no site lies beside the panel, but those in LD do."""
    cohorts = draw_cohorts(np.random.default_rng(8))
    for cohort in cohorts:
        cohort.genotypes[1:500:2] = cohort.genotypes[0:499:2]  # two sites alike
        cohort.genotypes[30] = 0
    said = {name: Absent() for name in SAID}
    paths = prepare(tmp_path, cohorts, FILTERS | filters, said)
    panel, _ = load_panel(tmp_path / "panel.tsv")
    further, _ = load_panel(tmp_path / "further.tsv")
    assert list(further.columns) == list(panel.columns)
    assert len(further) == 0 if len(filters) == 1 else len(further) > 200
    options = {"analyses": ["differentiation"], "block": "5 kb"}
    tables = [path.with_suffix(".tsv") for path in paths]
    for name, beside in (("with", tmp_path / "further.tsv"), ("without", None)):
        place = SiteLists(tmp_path / "panel.tsv", beside), tmp_path / name
        measure_population(paths, tables, [], *place, **options)
    same = {
        path.name: path.read_bytes() == (tmp_path / "without" / path.name).read_bytes()
        for path in (tmp_path / "with").iterdir()
        if path.name[0] != "."
    }
    assert same["pairs.tsv"] and same["spectrum.tsv"] == (len(further) == 0), same
    if len(further):
        with pytest.raises(popdesic.core.errors.UserError, match="different numbers of sites"):
            load_counts(paths, order=np.arange(len(panel)))


def test_d_xy_of_all_sites(tmp_path):
    """With a mask: the share of pairs of alleles that differ, over all its positions."""
    cohorts = draw_cohorts(np.random.default_rng(9))
    paths = prepare(tmp_path, cohorts, said={name: Absent() for name in SAID})
    _, both, order = lists_of(tmp_path).load()
    mask = tmp_path / "m.bed"
    mask.write_text("".join(f"{c}\t0\t100000\n" for c in both.chrom.unique()))
    tables = [path.with_suffix(".tsv") for path in paths]
    place = lists_of(tmp_path), tmp_path / "out"
    options = {"analyses": ["differentiation"], "block": "5 kb", "mask": str(mask)}
    measure_population(paths, tables, [], *place, **options)
    counts = load_counts(paths, order=order)
    p = counts.frequencies
    d_xy = np.nansum(p[:, 0] * (1 - p[:, 1]) + p[:, 1] * (1 - p[:, 0]))
    bp = 100000 * both.chrom.nunique()
    n = counts.alleles[..., 0]
    pi = np.nansum(2 * p * (1 - p) * n / np.maximum(n - 1, 1), axis=0) / bp
    pairs, own = (read_table(tmp_path / f"out/{name}.tsv") for name in ("pairs", "populations"))
    np.testing.assert_allclose(float(pairs.d_xy[0]), d_xy / bp, rtol=1e-5)
    np.testing.assert_allclose(own.pi.astype(float), pi, rtol=1e-5)


def test_a_population_without_sites_beside_the_panel(tmp_path, caplog):
    """Its VCF lists what varies in its own samples: without, nobody would have a spectrum."""
    rng = np.random.default_rng(10)
    cohorts = draw_cohorts(rng)
    west = cohorts[2]
    west.populations = ["R"] * len(west.samples)
    paths = prepare(tmp_path, [*cohorts[:2], as_sent(rng, west, np.zeros(600, bool), 0.0)])
    for name, lacking in (("few", 0.03), ("many", 0.4)):
        with np.load(paths[2]) as arrays:
            own = dict(arrays)
        _, _, order = lists_of(tmp_path).load()
        own["further"][: int(lacking * len(order))] = 0
        np.savez(paths[2], **own)
        tables, out = [path.with_suffix(".tsv") for path in paths], tmp_path / name / "population"
        options = {"analyses": ["diversity"], "block": "5 kb"}
        about = measure_population(paths, tables, [], lists_of(tmp_path), out, **options)
        assert (about["diversity_sites"] == about["sites"]) == (name == "many")
        assert ("rests on the panel alone" in caplog.text) == (name == "many")
        assert about["further_left_out"] == (name == "many")
        page = population_section(tmp_path / name, tmp_path, ["diversity"])
        assert ("panel leaves out do not count" in " ".join(page["words"])) == (name == "many")
        assert set(read_table(out / "spectrum.tsv").population) == {"P", "Q", "R"}
        assert about["without_further"] == []


def test_a_mask_and_a_population_without_sites_beside_the_panel(tmp_path, caplog):
    """Nobody has a spectrum; log and page say because of whom."""
    rng = np.random.default_rng(10)
    cohorts = draw_cohorts(rng)
    west = cohorts[2]
    west.populations = ["R"] * len(west.samples)
    paths = prepare(tmp_path, [*cohorts[:2], as_sent(rng, west, np.zeros(600, bool), 0.0)])
    _, both, order = lists_of(tmp_path).load()
    mask = tmp_path / "m.bed"
    mask.write_text("".join(f"{c}\t0\t100000\n" for c in both.chrom.unique()))
    for name, lacking in (("few", 0.03), ("many", 0.4)):
        with np.load(paths[2]) as arrays:
            own = dict(arrays)
        own["further"][: int(lacking * len(order))] = 0
        np.savez(paths[2], **own)
        tables, out = [path.with_suffix(".tsv") for path in paths], tmp_path / name / "population"
        options = {"analyses": ["diversity"], "block": "5 kb", "mask": str(mask)}
        about = measure_population(paths, tables, [], lists_of(tmp_path), out, **options)
        is_lacking = name == "many"
        assert about["without_further"] == ["R"] * is_lacking and not about["further_left_out"]
        assert ("no spectra, since population R" in caplog.text) == is_lacking
        words = " ".join(population_section(tmp_path / name, tmp_path, ["diversity"])["words"])
        assert ("There are no spectra: R has no genotypes" in words) == is_lacking
        assert read_table(out / "spectrum.tsv").empty == is_lacking


def test_rejected_outcomes():
    """Against the p-values of all outcomes, and their chances one by one."""
    rng = np.random.default_rng(1)
    for _ in range(120):
        n = int(rng.integers(1, 90))
        minor = int(rng.integers(1, n + 1))
        hets = np.arange(minor % 2, minor + 1, 2)
        rare = (minor - hets) // 2
        p = hwe_exact(n - hets - rare, hets, rare)
        likely = np.ones(len(hets))
        for k, h in enumerate(hets[:-1]):
            likely[k + 1] = likely[k] * 4 * rare[k] * (n - h - rare[k]) / ((h + 2) * (h + 1))
        likely /= likely.sum()
        low, high, chance = rejected(np.array([n]), np.array([minor]), LEVEL)
        np.testing.assert_array_equal((hets <= low) | (hets >= high), p < LEVEL, f"{n} {minor}")
        np.testing.assert_allclose(chance[0], likely[p < LEVEL].sum(), rtol=1e-9, atol=1e-15)
    # Many people: the tails that are not looked at are rejected.
    low, high, chance = rejected(np.array([200_000]), np.array([150_000]), LEVEL)
    assert 0 < low[0] < high[0] < 150_000 and abs(chance[0] - 0.05) < 0.002


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_low_sites(make_counts, missing):
    rng = np.random.default_rng(2)
    genotypes = rng.binomial(2, rng.uniform(0, 0.6, 400)[:, None], (400, 50)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    genotypes[:, :20] = np.where(
        genotypes[:, :20] == 1, 2 * rng.integers(0, 2, (400, 20)), genotypes[:, :20]
    )
    counts = make_counts(genotypes, np.repeat(["A", "B"], [20, 30]))
    found = low_sites(counts.genotypes)
    for k in range(2):
        p = hwe_exact(*counts.genotypes[:, k].T)
        varies = (counts.alleles[:, k, 1] > 0) & (counts.alleles[:, k, 1] < counts.alleles[:, k, 0])
        assert found[k, 0] == varies.sum() and found[k, 1] == (p < LEVEL).sum()
        assert 0 < found[k, 2] < LEVEL * found[k, 0]
    assert found[0, 1] > 0.5 * found[0, 0] and found[1, 1] < 0.08 * found[1, 0]
    assert not low_sites(np.zeros((0, 2, 3), np.int32)).any()


def test_hardy_weinberg_at_rare_alleles(make_counts):
    """Under random mating as many sites have a low mid-p as chance gives, at any frequency."""
    rng = np.random.default_rng(3)
    for n, highest in ((20, 0.02), (60, 0.01), (60, 0.5), (200, 0.01)):
        p = np.exp(rng.uniform(np.log(0.2 / n), np.log(highest), 30_000))
        genotypes = rng.binomial(2, p[:, None], (len(p), n)).astype(np.int8)
        genotypes[rng.random(genotypes.shape) < 0.02] = -1
        tested, low, chance = low_sites(make_counts(genotypes, np.repeat("A", n)).genotypes)[0]
        assert abs(low - chance) < 4 * np.sqrt(chance) + 1, (n, highest)
        assert chance < LEVEL * tested


@pytest.mark.parametrize("haploid", [False, True])
def test_heterozygosity_of_inbred_samples(make_counts, haploid):
    """Of different samples alone: the mean over all pairs of them, and 2 p (1 - p) on average."""
    rng = np.random.default_rng(4)
    p, inbreeding, n = np.repeat(rng.uniform(0.1, 0.5, 300), 60), 0.6, 4
    first = rng.random((len(p), n)) < p[:, None]
    same = rng.random(first.shape) < inbreeding
    second = np.where(same, first, rng.random(first.shape) < p[:, None])
    genotypes = (first.astype(np.int8) + second).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.05] = -1
    single = np.arange(n) == (0 if haploid else -1)
    genotypes[:, single] = np.where(genotypes[:, single] < 0, -1, 2 * first[:, single])
    counts = make_counts(genotypes, np.repeat("A", n), single)
    starts = np.array([0, 700, len(p)])
    sums = counts.alleles, counts.genotypes, np.ones(len(p), bool), starts
    index = OWN_SUMS.index
    own = own_sums(*sums, np.ones(1, bool)).sum(axis=0)[0]
    few = slice(0, 200)
    total = sites = 0
    for row in genotypes[few]:
        known = [
            [row[k] // 2] if single[k] else [row[k] > 0, row[k] > 1]
            for k in np.flatnonzero(row >= 0)
        ]
        pairs = [x != y for a, b in combinations(known, 2) for x in a for y in b]
        total, sites = total + (np.mean(pairs) if pairs else 0), sites + bool(pairs)
    part = own_sums(*(one[few] for one in sums[:3]), np.array([0, 200]), np.ones(1, bool))[0, 0]
    np.testing.assert_allclose(
        [part[index("he")], part[index("sites")]], [total, sites], rtol=1e-12
    )
    assert part[index("masked_he")] == part[index("he")]
    truth = (2 * p * (1 - p)).mean()
    value = own[index("he")] / own[index("sites")]
    old = own_sums(*sums).sum(axis=0)[0]
    assert abs(value / truth - 1) < 0.015 and old[index("he")] / old[index("sites")] < 0.95 * truth
    np.testing.assert_array_equal(own_sums(*sums, np.zeros(1, bool)), own_sums(*sums))
