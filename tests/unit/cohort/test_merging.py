"""Cohorts called apart: variant sites alone, masks, blocks, strands, one known allele, builds."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scenes.called_apart import draw
from support.study import Cohort, write_raw

from popdesic.cohort.absent import Absent
from popdesic.cohort.callable import BLOCKS, DROPPED, Callable
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.drift import measure_drift
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.planes import load_planes
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.core.files import beside
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import unpack_bed

OPEN = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}
OTHER = dict(zip("ACGT", "TGCA", strict=True))
NAMES = ("a", "b", "c")
SAMPLES = 8


def joint(seed: int = 1, n_sites: int = 300, names=NAMES) -> list[Cohort]:
    """Cohorts of one joint call: many sites vary in one of them alone."""
    rng = np.random.default_rng(seed)
    pairs = [(r, a) for r in "ACGT" for a in "ACGT" if r != a]
    sites = [
        (str(1 + 2 * k // n_sites), 100 + 10 * k, f"s{k}", *pairs[rng.integers(12)])
        for k in range(n_sites)
    ]
    found = []
    common = rng.beta(0.3, 1.2, n_sites)
    for name in names:
        frequency = common * (rng.random(n_sites) < 0.9)
        genotypes = rng.binomial(2, frequency[:, None], (n_sites, SAMPLES)).astype(np.int8)
        samples = [f"{name}{k}" for k in range(SAMPLES)]
        found.append(Cohort(name, samples, sites, genotypes))
    return found


def only(cohort: Cohort, which: np.ndarray) -> Cohort:
    """The cohort's file with some of its sites."""
    rows = np.flatnonzero(which)
    return replace(cohort, sites=[cohort.sites[k] for k in rows], genotypes=cohort.genotypes[rows])


def variants(cohort: Cohort) -> Cohort:
    """The cohort's file with its variant sites alone."""
    return only(cohort, (cohort.genotypes > 0).any(axis=1))


def prepare(folder: Path, cohorts: list[Cohort]) -> dict[str, tuple[Path, Path]]:
    """Decoded files and tables of cohorts; raw.json as ingest writes it."""
    genotypes = {}
    for cohort in cohorts:
        raw = write_raw(folder / cohort.name / "raw", cohort)
        called = cohort.genotypes >= 0
        same = called.any(axis=1) & (cohort.genotypes <= 0).all(axis=1)
        Path(f"{raw}.json").write_text(json.dumps({"reference_only": int(same.sum())}))
        genotypes[cohort.name] = raw, folder / f"{cohort.name}.samples.tsv"
        summarize_cohort(
            raw,
            {},
            folder / f"{cohort.name}.sites.tsv",
            genotypes[cohort.name][1],
            min_sample_call_rate=0.0,
        )
    return genotypes


def panel_of(folder: Path, cohorts: list[Cohort], absent=None, **filters):
    """The founders' panel, and its steps."""
    genotypes = prepare(folder, cohorts)
    tables = {cohort.name: folder / f"{cohort.name}.sites.tsv" for cohort in cohorts}
    steps = build_panel(
        tables,
        folder / "panel.tsv",
        folder / "counts.json",
        PanelFilters(**(OPEN | filters)),
        genotypes=genotypes,
        absent=absent or {},
    )
    return load_panel(folder / "panel.tsv")[0], steps


def encoded(folder: Path, cohort: Cohort, absent: Absent = Absent(), impute: str = "none"):  # noqa: B008
    """The cohort's genotypes on the panel, (n_sites, n_samples), and its counts."""
    if not (folder / cohort.name / "raw.bed").exists():
        prepare(folder, [cohort])
    out = folder / cohort.name
    counts = encode_cohort(
        out / "raw",
        folder / f"{cohort.name}.samples.tsv",
        folder / "panel.tsv",
        out,
        impute=impute,
        cohort=cohort.name,
        absent=absent,
    )
    return unpack_bed(open_bed(out / "genotypes"), len(cohort.samples)), counts


def truth(cohort: Cohort, panel) -> np.ndarray:
    """Genotypes of the joint call at the panel's sites, by its REF and ALT."""
    row = {site[2]: k for k, site in enumerate(cohort.sites)}
    found = cohort.genotypes[[row[name] for name in panel.id]].copy()
    refs = np.array([cohort.sites[row[name]][3] for name in panel.id])
    turned = refs != panel.ref.to_numpy()
    found[turned] = np.where(found[turned] < 0, -1, 2 - found[turned])
    return found


def mask(folder: Path, seed: int, cohort: Cohort) -> tuple[str, np.ndarray]:
    """A BED file of most positions, and which of the cohort's sites it covers."""
    rng = np.random.default_rng(seed)
    covered = np.repeat(rng.random(len(cohort.sites) // 10) < 0.85, 10)
    lines = [
        f"chr{chrom}\t{pos - 1}\t{pos}\n"
        for (chrom, pos, *_), inside in zip(cohort.sites, covered, strict=True)
        if inside
    ]
    path = folder / f"{cohort.name}.bed"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return str(path), covered


def test_variant_files_on_ones_own_word_give_the_joint_call(tmp_path):
    cohorts = joint()
    said = dict.fromkeys(NAMES, Absent("reference"))
    whole, _ = panel_of(tmp_path / "joint", cohorts, min_maf=0.03)
    panel, steps = panel_of(
        tmp_path / "apart", [variants(one) for one in cohorts], said, min_maf=0.03
    )
    assert panel.equals(whole)
    assert steps["sites of founder b alone added"] > 20
    for cohort in cohorts:
        found, counts = encoded(tmp_path / "apart", cohort, Absent("reference"))
        assert np.array_equal(found, truth(cohort, panel))
        bits = np.load(tmp_path / "apart" / cohort.name / "reference.npy")
        filled = np.unpackbits(bits, axis=1, bitorder="little")[:, : len(panel)]
        varies = (cohort.genotypes > 0).any(axis=1)
        listed = {site[2] for site, v in zip(cohort.sites, varies, strict=True) if v}
        assert filled.shape == (1, len(panel))
        assert np.array_equal(filled[0] == 0, panel.id.isin(listed))
        assert counts["absent_as_reference"] == filled.sum()
        assert counts["absent_as_reference_genotypes"] == filled.sum() * SAMPLES
        assert counts["panel_sites_absent"] == 0


@pytest.mark.parametrize("newcomer", [False, True])
def test_masked_files_give_the_joint_call_where_all_could_be_called(tmp_path, newcomer):
    cohorts = joint(2)
    said, files, covered = {}, [], []
    for k, cohort in enumerate(cohorts):
        path, inside = mask(tmp_path, k, cohort)
        said[cohort.name] = Absent("auto", path)
        covered.append(inside)
        files.append(only(cohort, inside & (cohort.genotypes > 0).any(axis=1)))
    founders = slice(0, 2 if newcomer else 3)
    everywhere = np.logical_and.reduce(covered[founders])
    whole, _ = panel_of(
        tmp_path / "joint", [only(one, everywhere) for one in cohorts[founders]], min_maf=0.03
    )
    panel, _ = panel_of(tmp_path / "apart", files[founders], said, min_maf=0.03)
    assert panel.equals(whole)
    for cohort, file, inside in zip(cohorts, files, covered, strict=True):
        found, _ = encoded(tmp_path / "apart", file, said[cohort.name])
        expected = truth(cohort, panel)
        known = panel.id.isin({s[2] for s, c in zip(cohort.sites, inside, strict=True) if c})
        expected[~known.to_numpy()] = -1
        assert np.array_equal(found, expected)
    tables = {c.name: tmp_path / "apart" / f"{c.name}.sites.tsv" for c in cohorts}
    genotypes = {
        c.name: (tmp_path / "apart" / c.name / "raw", tmp_path / "apart" / f"{c.name}.samples.tsv")
        for c in cohorts
    }
    drift = measure_drift(
        tables,
        tmp_path / "apart/panel.tsv",
        set(NAMES[founders]),
        tmp_path / "drift.tsv",
        genotypes=genotypes,
        absent=said,
    ).set_index("cohort")
    assert (drift.share_present[list(NAMES[founders])] == 1).all()


def test_blocks_of_a_gvcf_cover_some_samples(tmp_path):
    cohorts = joint(3)
    file = variants(cohorts[1])
    genotypes = prepare(tmp_path, [cohorts[0], file])
    rng = np.random.default_rng(0)
    covered = rng.random((len(file.samples), len(cohorts[1].sites))) < 0.7
    sample, site = np.nonzero(covered)
    pos = np.array([s[1] for s in cohorts[1].sites])[site]
    chrom = np.array([s[0] for s in cohorts[1].sites], object)[site]
    raw = genotypes["b"][0]
    Callable(chrom, pos - 1, pos, sample).save(beside(raw, BLOCKS))
    panel, _ = panel_of(tmp_path, [cohorts[0], file])
    varies = (cohorts[1].genotypes > 0).any(axis=1)
    assert set(panel.id) == {
        s[2] for s, v, c in zip(cohorts[1].sites, varies, covered.T, strict=True) if v or c.any()
    }
    found, counts = encoded(tmp_path, file)
    expected = truth(cohorts[1], panel)
    row = {s[2]: k for k, s in enumerate(cohorts[1].sites)}
    rows = [row[name] for name in panel.id]
    unknown = ~varies[rows][:, None] & ~covered.T[rows]
    expected[unknown] = -1
    assert np.array_equal(found, expected)
    assert panel.n_called.to_numpy().sum() == (expected >= 0).sum() + SAMPLES * len(panel)
    bits = np.load(tmp_path / "b/reference.npy")
    filled = np.unpackbits(bits, axis=1, bitorder="little")[:, : len(panel)].T
    assert np.array_equal(filled == 1, ~varies[rows][:, None] & covered.T[rows])
    assert counts["absent_as_reference_genotypes"] == filled.sum()


def test_uncovered_samples_of_an_earlier_founder_count_as_missing(tmp_path):
    a, b = joint(15, names=("a", "b"))
    absent_in_a = np.arange(len(a.sites)) % 2 == 0
    file = only(a, ~absent_in_a)
    genotypes = prepare(tmp_path, [file, b])
    covered = np.random.default_rng(1).integers(1, SAMPLES + 1, len(a.sites))
    absent = [(s, n) for s, n, lacks in zip(a.sites, covered, absent_in_a, strict=True) if lacks]
    places = [(s[0], s[1], j) for s, n in absent for j in range(n)]
    chrom, pos, sample = (np.array(one, object) for one in zip(*places, strict=True))
    pos = pos.astype(int)
    blocks = Callable(chrom, pos - 1, pos, sample.astype(int))
    blocks.save(beside(genotypes["a"][0], BLOCKS))
    panel, _ = panel_of(tmp_path, [file, b], min_call_rate=0.9)
    rate = np.where(absent_in_a, (covered + SAMPLES) / (2 * SAMPLES), 1)
    least = np.where(absent_in_a, covered / SAMPLES, 1)
    names = [s[2] for s in a.sites]
    kept = set(panel.id)
    assert all(rate[k] >= 0.9 for k, name in enumerate(names) if name in kept)
    assert all(name in kept for k, name in enumerate(names) if least[k] >= 0.9)
    assert panel.n_called.tolist() == [
        SAMPLES + (covered[k] if absent_in_a[k] else SAMPLES)
        for k in (names.index(name) for name in panel.id)
    ]


def test_a_position_with_a_dropped_record_is_not_reference(tmp_path):
    cohorts = joint(4)
    file = variants(cohorts[1])
    genotypes = prepare(tmp_path, [cohorts[0], file])
    listed = {s[2] for s in file.sites}
    lost = [s for s in cohorts[1].sites if s[2] not in listed][:5]
    Callable([s[0] for s in lost], [s[1] - 1 for s in lost], [s[1] for s in lost]).save(
        beside(genotypes["b"][0], DROPPED)
    )
    panel, _ = panel_of(tmp_path, [cohorts[0], file], {"b": Absent("reference")})
    assert set(panel.id) == {s[2] for s in cohorts[0].sites} - {s[2] for s in lost}


def test_a_position_with_other_alleles_is_not_reference(tmp_path):
    a, b = joint(5, names=("a", "b"))
    k = next(k for k, s in enumerate(b.sites) if {s[3], s[4]} == {"A", "C"})
    sites = list(b.sites)
    sites[k] = (*sites[k][:3], sites[k][3], "T" if sites[k][4] != "T" else "G")
    sites[k] = (*sites[k][:3], "A", "G")
    other = replace(b, sites=sites)
    panel, _ = panel_of(tmp_path, [a, other], {"b": Absent("reference")})
    assert a.sites[k][2] not in set(panel.id)
    assert len(panel) == len(a.sites) - 1
    # A newcomer: missing there, and not read as reference.
    panel, _ = panel_of(tmp_path / "new", [a])
    found, counts = encoded(tmp_path / "new", other, Absent("reference"))
    assert (found[panel.id.tolist().index(a.sites[k][2])] == -1).all()
    assert counts["panel_sites_absent"] == 1


@pytest.mark.parametrize("spelt", ["chr{}", "{}"])
def test_contigs_of_the_panel_have_one_spelling(tmp_path, spelt):
    """Sites that only a founder lists that says `1` join those of `chr1` from another."""
    whole = joint(5)
    other = {"{}": "chr{}", "chr{}": "{}"}[spelt]
    cohorts = [
        replace(variants(one), sites=[(name.format(s[0]), *s[1:]) for s in variants(one).sites])
        for one, name in zip(whole, (spelt, other, other), strict=True)
    ]
    word = {one.name: Absent("reference") for one in cohorts}
    panel, _ = panel_of(tmp_path, cohorts, word)
    assert panel.chrom.unique().tolist() == [spelt.format(k) for k in (1, 2)]
    (tmp_path / "same").mkdir()
    same, _ = panel_of(tmp_path / "same", [variants(one) for one in whole], word)
    assert panel.pos.tolist() == same.pos.tolist()
    for cohort, one in zip(cohorts, whole, strict=True):
        genotypes, _ = encoded(tmp_path, cohort, word[cohort.name])
        np.testing.assert_array_equal(genotypes, truth(one, same))


def test_absent_missing_keeps_the_shared_sites(tmp_path):
    files = [variants(one) for one in joint(6)]
    shared = set.intersection(*({s[2] for s in one.sites} for one in files))
    panel, steps = panel_of(tmp_path, files)
    assert set(panel.id) == shared
    assert not any("alone" in step or "reference" in step for step in steps)


def test_variant_files_that_differ_stop_the_run(tmp_path):
    cohorts = joint(7, 4_000)
    files = [variants(one) for one in cohorts]
    with pytest.raises(UserError, match="lists variant sites only") as caught:
        panel_of(tmp_path / "a", files)
    text = str(caught.value)
    assert "changes heterozygosity by +" in text
    for way in ("column callable", "gVCF", "absent = reference"):
        assert way in text
    panel_of(tmp_path / "b", files, dict.fromkeys(NAMES, Absent("missing")))
    # As a newcomer: the panel's sites that it lacks.
    panel_of(tmp_path / "c", cohorts[:2])
    with pytest.raises(UserError, match=r"lacks \d+ of \d+ sites of the panel"):
        encoded(tmp_path / "c", files[2])
    _, counts = encoded(tmp_path / "c", files[2], Absent("missing"))
    assert counts["panel_sites_absent"] > 500


@pytest.mark.parametrize("founder", [True, False])
@pytest.mark.parametrize("why", ["no interval of contig 2", "the file is not cut to it"])
def test_a_file_of_variants_beyond_its_mask_stops_the_run(tmp_path, why, founder):
    """A mask of one chromosome, or of a part, says nothing of the rest."""
    first, second = (variants(one) for one in joint(7, 4_000, ("a", "b")))
    sites = [s for s in second.sites if s[0] == "1" or ("cut" in why and s[1] % 3)]
    bed = tmp_path / "b.bed"
    bed.write_text("".join(f"chr{chrom}\t{pos - 1}\t{pos}\n" for chrom, pos, *_ in sites))
    word = {"a": Absent("reference"), "b": Absent("auto", str(bed))}
    says = f"cohort 'b' lists variant sites only, .* outside its mask .*{why}"
    if founder:
        with pytest.raises(UserError, match=says):
            panel_of(tmp_path, [first, second], word)
    else:
        panel_of(tmp_path, [first], word)
        with pytest.raises(UserError, match=says):
            encoded(tmp_path, second, word["b"])
    inside = {site[2] for site in sites}
    cut = only(second, np.array([site[2] in inside for site in second.sites]))
    panel_of(tmp_path / "cut", [first, cut] if founder else [first], word)
    encoded(tmp_path / "cut", cut, word["b"])
    # A founder alone is compared with nothing.
    panel_of(tmp_path / "alone", [second], {"b": word["b"]})
    encoded(tmp_path / "alone", second, word["b"])


def test_a_joint_call_and_chosen_sites_do_not_stop_the_run(tmp_path):
    cohorts = joint(8, 4_000)
    panel_of(tmp_path / "all", cohorts)
    common = np.concatenate([one.genotypes for one in cohorts], axis=1).mean(axis=1) / 2 > 0.25
    panel, _ = panel_of(tmp_path / "common", [only(one, common) for one in cohorts])
    assert len(panel) == common.sum()


@cache
def simulated() -> list[Cohort]:
    """Three populations with as many rare sites as real ones have."""
    truth = draw(5, 16, 2_000_000)
    pairs = zip(truth.pos.tolist(), truth.ref, truth.alt, strict=True)
    sites = [("1", pos, f"s{pos}", ref, alt) for pos, ref, alt in pairs]
    found = []
    for name in NAMES:
        genotypes = truth.genotypes[:, truth.population == name.upper()]
        names = [f"{name}{k}" for k in range(genotypes.shape[1])]
        found.append(Cohort(name, names, sites, genotypes))
    return found


def chosen(way: str, cohorts: list[Cohort]) -> np.ndarray:
    """The sites that the second cohort's file lists; `cohorts`: a founder, it, and another."""
    rng = np.random.default_rng(2)
    genotypes = [one.genotypes for one in cohorts]
    rate = genotypes[2].mean(axis=1) / 2
    n = len(rate)
    ways = {
        # The file of a set of samples, of which this cohort was taken.
        "subset": (np.concatenate(genotypes[1:], axis=1) > 0).any(axis=1),
        "few reference": (genotypes[1] > 0).any(axis=1) | (rng.random(n) < 0.1),
        "MAF": np.abs(genotypes[1].mean(axis=1) / 2 - 0.5) <= 0.44,
        "random": rng.random(n) < 0.6,
        "regions": np.arange(n) // 40 % 3 > 0,
        "array": (rate > 0.05) & (rng.random(n) < 0.4),
        # All sites vary in the file: as chosen for an array, in regions, and as sequencing finds.
        "own array": (np.abs(genotypes[1].mean(axis=1) / 2 - 0.5) < 0.45) & (rng.random(n) < 0.4),
        "MAF in regions": (np.abs(genotypes[1].mean(axis=1) / 2 - 0.5) <= 0.44)
        & (np.arange(n) // 100 % 2 > 0),
        "some variants": (genotypes[1] > 0).any(axis=1) & (rng.random(n) < 0.4),
    }
    return ways[way]


@pytest.mark.parametrize("founder", [True, False])
@pytest.mark.parametrize(
    "way",
    [
        *("subset", "few reference", "MAF", "random", "regions", "array"),
        *("own array", "MAF in regions", "some variants"),
    ],
)
def test_sites_chosen_by_frequency_stop_the_run(tmp_path, way, founder):
    a, b, other = simulated()
    which = chosen(way, [a, b, other])
    first = variants(a)
    file = only(b, which)
    word = {"a": Absent("reference")}
    run = {
        True: lambda said: panel_of(tmp_path / "a", [first, file], word | {"b": said}),
        False: lambda said: encoded(tmp_path / "b", file, said),
    }[founder]
    panel_of(tmp_path / "b", [first])
    if way in ("random", "regions", "array", "own array"):
        run(Absent())
        return
    with pytest.raises(UserError, match=r"cohort 'b' l(acks|ists variant sites only)") as caught:
        run(Absent())
    text = str(caught.value)
    if way == "some variants":
        assert "lists variant sites only" in text
    elif way == "MAF in regions":
        assert "% of those next to one that it lists)" in text
    elif way != "MAF":
        listed = {site[2] for site in file.sites}
        rates = np.array([row.mean() / 2 for row in first.genotypes])
        here = np.array([site[2] in listed for site in first.sites])
        share = here[(rates >= 0.25) & (rates <= 0.5)].mean()
        assert f"but lists {share:.0%} of those" in text
        value = 2 * rates * (1 - rates)
        assert f"heterozygosity by {value[here].mean() / value.mean() - 1:+.0%}" in text
        assert f"lacks {int((~here).sum())} of {len(here)} sites" in text
    run(Absent("missing"))
    if way.startswith("MAF"):  # sites where ALT is fixed, or nearly, are absent as well
        with pytest.raises(UserError, match=r"'b' lists no site at which all .* homozygous ALT"):
            run(Absent("reference"))
    else:
        run(Absent("reference"))


def flip(cohort: Cohort, which: np.ndarray) -> Cohort:
    """The cohort's file with some sites on the other strand."""
    sites = [
        (*s[:3], OTHER[s[3]], OTHER[s[4]]) if turned else s
        for s, turned in zip(cohort.sites, which, strict=True)
    ]
    return replace(cohort, sites=sites)


@pytest.mark.parametrize("founder", [False, True])
def test_sites_on_the_other_strand_are_turned(tmp_path, founder):
    a, b = joint(9, names=("a", "b"))
    which = np.arange(len(b.sites)) % 2 == 0
    file = flip(b, which)
    palindromic = np.array([OTHER[s[3]] == s[4] for s in b.sites])
    panel, steps = panel_of(tmp_path, [a, file] if founder else [a])
    found, counts = encoded(tmp_path, file)
    known = ~palindromic[[int(name[1:]) for name in panel.id]]
    expected = truth(b, panel)
    expected[~known] = -1
    assert np.array_equal(found, expected)
    turned = int((which & ~palindromic).sum())
    assert counts["strand_turned"] == turned
    if founder:
        assert known.all()
        assert steps["sites on the other strand turned in founder b"] == turned
        assert len(panel) == (~palindromic).sum()
    else:
        assert counts["strand_ambiguous_dropped"] == (palindromic & ~which).sum()
        assert counts["strand_ambiguous_dropped"] + counts["swapped_ambiguous_dropped"] == int(
            palindromic.sum()
        )


def test_without_flips_palindromic_sites_are_taken_as_they_are(tmp_path):
    a, b = joint(10, names=("a", "b"))
    panel_of(tmp_path, [a])
    found, counts = encoded(tmp_path, b)
    assert counts["panel_sites_found"] == len(a.sites)
    assert "strand_turned" not in counts
    assert (found >= 0).all()


def forget_alt(cohort: Cohort, unknown: str) -> Cohort:
    """Its file as PLINK 1.07 writes it: A2 is the one allele of sites that do not vary, A1 is 0."""
    sites, genotypes = list(cohort.sites), cohort.genotypes.copy()
    for k, row in enumerate(cohort.genotypes):
        chrom, pos, name, ref, alt = sites[k]
        if (row == 0).all():
            sites[k] = (chrom, pos, name, ref, unknown)
        elif (row == 2).all():
            sites[k] = (chrom, pos, name, alt, unknown)
            genotypes[k] = 0
    return replace(cohort, sites=sites, genotypes=genotypes)


@pytest.mark.parametrize("unknown", ["0", "."])
def test_sites_with_one_known_allele_get_the_others_pair(tmp_path, unknown):
    cohorts = joint(11)
    files = [forget_alt(one, unknown) for one in cohorts]
    assert all(any(s[4] == unknown for s in one.sites) for one in files)
    for founders in (files, [cohorts[0], *files[1:]]):
        folder = tmp_path / str(len([s for s in founders[0].sites if s[4] == unknown]))
        panel, _ = panel_of(folder, founders, min_maf=0.01)
        whole, _ = panel_of(folder / "whole", cohorts, min_maf=0.01)
        assert panel.id.tolist() == whole.id.tolist()
        assert np.allclose(
            np.where(panel.ref == whole.ref, panel.af, 1 - panel.af), whole.af, atol=1e-12
        )
        for cohort, file in zip(cohorts, founders, strict=True):
            assert np.array_equal(encoded(folder, file)[0], truth(cohort, panel))
    # As a newcomer, on a panel with both alleles.
    panel, _ = panel_of(tmp_path / "new", cohorts[:1])
    found, counts = encoded(tmp_path / "new", files[1])
    assert np.array_equal(found, truth(cohorts[1], panel))
    assert counts["one_allele_completed"] == sum(s[4] == unknown for s in files[1].sites)


def test_one_known_allele_that_fits_two_sites_is_missing(tmp_path):
    sites = [("1", 5, "x", "A", "C"), ("1", 5, "y", "A", "G"), ("1", 9, "z", "C", "T")]
    a = Cohort("a", ["a0", "a1"], sites, np.array([[0, 1], [1, 0], [1, 1]], np.int8))
    b = Cohort("b", ["b0", "b1"], [("1", 5, "w", "A", "0"), sites[2]], np.zeros((2, 2), np.int8))
    panel_of(tmp_path, [a])
    found, counts = encoded(tmp_path, b)
    assert found.tolist() == [[-1, -1], [-1, -1], [0, 0]]
    assert counts["one_allele_unclear"] == 2


@pytest.mark.parametrize("founder", [False, True])
def test_another_build_stops_the_run(tmp_path, founder):
    a, b = joint(12, 2_000, names=("a", "b"))
    rng = np.random.default_rng(1)
    order = rng.permutation(len(b.sites))
    sites = [(*site[:3], *b.sites[k][3:]) for site, k in zip(b.sites, order.tolist(), strict=True)]
    other = replace(b, sites=sites)
    with pytest.raises(UserError, match=r"share 2000 positions, but only \d+ .* lift one"):
        if founder:
            panel_of(tmp_path, [a, other])
        else:
            panel_of(tmp_path, [a])
            encoded(tmp_path, other)


def test_reference_must_be_the_genomes_to_fill_absent_sites(tmp_path):
    a, b = joint(13, 1_500, names=("a", "b"))
    sites, genotypes = list(b.sites), b.genotypes.copy()
    for k in range(0, len(sites), 10):
        sites[k] = (*sites[k][:3], sites[k][4], sites[k][3])
        genotypes[k] = 2 - genotypes[k]
    b = replace(b, sites=sites, genotypes=genotypes)
    file = only(b, (genotypes > 0).any(axis=1))
    panel_of(tmp_path / "new", [a])
    with pytest.raises(UserError, match="set REF to the genome's base"):
        encoded(tmp_path / "new", file, Absent("reference"))
    with pytest.raises(UserError, match="set REF to the genome's base"):
        panel_of(tmp_path, [a, file], {"b": Absent("reference")})


def test_a_newcomer_changes_no_byte_of_a_founder(tmp_path):
    cohorts = joint(14)
    said = dict.fromkeys(NAMES, Absent("reference"))
    files = [variants(one) for one in cohorts]
    panel_of(tmp_path, files[:2], said)
    for file in files[:2]:
        encoded(tmp_path, file, said["a"], "mode")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    encoded(tmp_path, files[2], said["a"], "mode")
    assert all(path.read_bytes() == content for path, content in before.items())
    planes, _ = load_planes(tmp_path / "c")
    assert planes.words.shape[1] == 2 or (tmp_path / "c/reference.npy").exists()


@pytest.mark.parametrize("swaps", [False, True])
def test_strands_are_told_by_frequency_where_the_minor_allele_is_clear(tmp_path, swaps):
    """A newcomer on both strands; its own A/T and C/G sites have no other sign of the strand."""
    rng = np.random.default_rng(3)
    pairs = [("A", "T"), ("C", "G"), ("A", "C"), ("G", "T"), ("A", "G"), ("C", "T")]
    sites = [("1", 10 + k, str(k), *pairs[rng.integers(6)]) for k in range(4_000)]
    rate = rng.beta(0.4, 0.8, 4_000)
    a, b = (
        Cohort(n, [f"{n}{k}" for k in range(30)], sites, draw_at(rng, rate, 30)) for n in ("a", "b")
    )
    file = flip(b, rng.random(4_000) < 0.5)
    if swaps:
        which, genotypes = np.flatnonzero(rng.random(4_000) < 0.3), file.genotypes.copy()
        genotypes[which] = 2 - genotypes[which]
        listed = list(file.sites)
        for k in which:
            listed[k] = (*listed[k][:3], listed[k][4], listed[k][3])
        file = replace(file, sites=listed, genotypes=genotypes)
    panel, _ = panel_of(tmp_path, [a], min_maf=0.01)
    found, counts = encoded(tmp_path, file)
    expected = truth(b, panel)
    known = (found >= 0).any(axis=1)
    assert np.array_equal(found[known], expected[known])
    palindromic = np.array([OTHER[r] == alt for r, alt in zip(panel.ref, panel.alt, strict=True)])
    assert known[~palindromic].all()
    told = int((known & palindromic).sum())
    assert counts["strand_by_frequency"] == told > palindromic.sum() / 3
    # Near one half the frequency tells nothing.
    half = palindromic & (np.abs(panel.af - 0.5) < 0.1).to_numpy()
    assert half.any() and not known[half].any()
    drift = measure_drift(
        {"b": tmp_path / "b.sites.tsv"}, tmp_path / "panel.tsv", ["a"], tmp_path / "drift.tsv"
    )
    assert drift.panel_sites_present.tolist() == [known.sum()]


@pytest.mark.parametrize("other", ["a", "b", "c", "ab", "abc"])
def test_strands_of_founders_are_told_whatever_their_order(tmp_path, other):
    """Founders at whose A/T and C/G sites the strand is clear, or the site is dropped.

    Names decide the order; the panel has the same sites in any.
    """
    rng = np.random.default_rng(4)
    n = 4_000
    pairs = [("A", "T"), ("C", "G"), ("A", "C"), ("G", "T"), ("A", "G"), ("C", "T")]
    sites = [("1", 10 + k, str(k), *pairs[rng.integers(6)]) for k in range(n)]
    rate = rng.beta(0.4, 0.8, n)
    people = [
        Cohort(name, [f"{name}{k}" for k in range(30)], sites, draw_at(rng, rate, 30))
        for name in "abc"
    ]
    flips = {name: rng.random(n) < 0.5 if name in other else np.zeros(n, bool) for name in "abc"}
    files = [flip(one, flips[one.name]) for one in people]
    ambiguous = np.array([OTHER[site[3]] == site[4] for site in sites])
    seen = []
    for k, order in enumerate(("abc", "cab", "bca")):
        folder = tmp_path / str(k)
        named = dict(zip("abc", order, strict=True))
        panel, steps = panel_of(folder, [replace(one, name=named[one.name]) for one in files])
        here = panel.id.astype(int).to_numpy()
        seen.append(set(here))
        assert set(np.flatnonzero(~ambiguous)) <= set(here)
        kept = ambiguous[here]
        assert kept.sum() > 100
        found = [encoded(folder, replace(one, name=named[one.name]))[0] for one in files]
        assert all((one >= 0).all() for one in found), "as when the panel was made"
        whole = np.concatenate([one.genotypes for one in people], axis=1)[here]
        told = np.concatenate(found, axis=1)
        turned = (told != whole).any(axis=1)
        assert np.array_equal(told[turned], 2 - whole[turned]), "all samples of a site alike"
        oriented = [text for text in steps if "oriented by allele frequency" in text]
        assert len(oriented) == (1 if len(other) == 1 else 2)
    assert seen[0] == seen[1] == seen[2]


def draw_at(rng, rate: np.ndarray, samples: int) -> np.ndarray:
    """Genotypes (n_sites, samples) with the sites' frequencies."""
    return rng.binomial(2, rate[:, None], (len(rate), samples)).astype(np.int8)


def small(name: str, sites: list, rows: list) -> Cohort:
    """A cohort of two samples."""
    sites = [(*site[:2], f"s{site[1]}", *site[2:]) for site in sites]
    return Cohort(name, [f"{name}0", f"{name}1"], sites, np.array(rows, np.int8))


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_a_known_allele_that_is_alt_does_not_turn_absent_sites(tmp_path, order):
    """A PLINK file with one known allele does not say that it is REF; a file with both does."""
    shared = ("1", 9, "G", "T")
    files = [
        ([("1", 5, "C", "0"), shared], [[0, 0], [0, 1]]),
        ([shared], [[1, 0]]),
        ([("1", 5, "A", "C"), shared], [[0, 1], [0, 0]]),
    ]
    said = [Absent(), Absent("reference"), Absent()]
    cohorts = [small(name, *files[k]) for name, k in zip("abc", order, strict=True)]
    absent = {name: said[k] for name, k in zip("abc", order, strict=True)}
    panel, _ = panel_of(tmp_path, cohorts, absent)
    assert panel[["pos", "ref", "alt"]].to_numpy().tolist() == [[5, "A", "C"], [9, "G", "T"]]
    found = {
        k: encoded(tmp_path, one, said[k])[0][0] for k, one in zip(order, cohorts, strict=True)
    }
    assert {k: row.tolist() for k, row in found.items()} == {0: [2, 2], 1: [0, 0], 2: [0, 1]}
    assert panel.af[0] == 5 / 12
    assert panel.n_called[0] == 6


def test_two_known_alleles_apart_say_nothing_of_the_third_cohort(tmp_path):
    """Where no file has both alleles, nobody knows which is REF."""
    shared = ("1", 9, "G", "T")
    a = small("a", [("1", 5, "C", "0"), shared], [[0, 0], [0, 1]])
    b = small("b", [("1", 5, "A", "0"), shared], [[0, 0], [0, 1]])
    c = small("c", [shared], [[1, 0]])
    panel, _ = panel_of(tmp_path / "two", [a, b])
    assert panel.pos.tolist() == [5, 9]
    assert encoded(tmp_path / "two", a)[0][0].tolist() == [0, 0]
    assert encoded(tmp_path / "two", b)[0][0].tolist() == [2, 2]
    for absent in ({"c": Absent("reference")}, {"a": Absent("reference")}):
        folder = tmp_path / "".join(absent)
        cohorts = [a, b, c] if "c" in absent else [replace(c, name="a"), b, replace(a, name="c")]
        assert panel_of(folder, cohorts, absent)[0].pos.tolist() == [9]


def test_complements_that_are_known_alone_may_be_one_allele(tmp_path):
    shared = ("1", 9, "G", "T")
    a = small("a", [("1", 5, "A", "0"), shared], [[0, 0], [0, 1]])
    b = small("b", [("1", 5, "T", "0"), shared], [[0, 0], [0, 1]])
    assert panel_of(tmp_path, [a, b])[0].pos.tolist() == [9]


def test_where_strands_differ_a_pair_from_one_known_allele_is_doubtful(tmp_path):
    """A/T from `A` and A/T, of a founder with flips, is as doubtful as from A/T and A/T."""
    rows = [[0, 1], [0, 1], [0, 0]]
    a = small("a", [("1", 5, "G", "A"), ("1", 7, "C", "A"), ("1", 9, "A", "0")], rows)
    b = small("b", [("1", 5, "C", "T"), ("1", 7, "C", "A"), ("1", 9, "T", "A")], rows)
    panel, steps = panel_of(tmp_path, [a, b])
    assert panel.pos.tolist() == [5, 7]
    assert steps["A/T and C/G sites dropped, founder b has other strands"] == 1
