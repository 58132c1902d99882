"""Cohorts that are read together have the genotypes that they have alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.study import Cohort, make_sites, swap_alleles

from popdesic.cohort.absent import Absent
from popdesic.cohort.batch import ingest_batch
from popdesic.cohort.callable import BLOCKS, DROPPED, load_beside
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.io.bed import open_bed, read_bim, read_fam
from popdesic.io.genotypes import unpack_bed

N_SITES = 130
SITE = ["chrom", "pos", "id", "ref", "alt"]


def draw(names: str = "abcd", n_samples: int = 5, seed: int = 1) -> list[Cohort]:
    """Cohorts of 5, 4, 3 … samples at the same sites."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.1, 0.9, (N_SITES, 1))
    found = []
    for k, name in enumerate(names):
        shape = (N_SITES, n_samples - k)
        genotypes = rng.binomial(2, frequency, shape).astype(np.int8)
        genotypes[rng.random(shape) < 0.05] = -1
        samples = [f"{name}{i}" for i in range(shape[1])]
        found.append(Cohort(name, samples, make_sites(N_SITES), genotypes))
    return found


def ingest(folder: Path, cohorts: list[Cohort], texts=None, *, founders=True, absent=None, **more):
    """Write the files of cohorts and merge them; `texts` stands for the VCF of some."""
    folder.mkdir(exist_ok=True)
    for cohort in cohorts:
        (folder / f"{cohort.name}.vcf").write_text((texts or {}).get(cohort.name, cohort.vcf()))

    def decode(name: str, prefix: Path):
        return ingest_cohort(folder / f"{name}.vcf", prefix, **more)

    how = {"founders": founders, "absent": absent or Absent()}
    counts, _ = ingest_batch([c.name for c in cohorts], decode, folder / "out/raw", **how)
    return counts, folder / "out/raw"


def genotypes_of(raw: Path):
    return unpack_bed(np.array(open_bed(raw)), len(read_fam(raw)))


def only(cohort: Cohort, which) -> Cohort:
    rows = np.flatnonzero(which)
    return replace(cohort, sites=[cohort.sites[k] for k in rows], genotypes=cohort.genotypes[rows])


def test_equal_sites_give_the_files_of_one_cohort(tmp_path):
    cohorts = draw()
    counts, raw = ingest(tmp_path, cohorts)
    everyone = np.concatenate([c.genotypes for c in cohorts], axis=1)
    names = [name for c in cohorts for name in c.samples]
    (tmp_path / "all.vcf").write_text(Cohort("all", names, cohorts[0].sites, everyone).vcf())
    one = ingest_cohort(tmp_path / "all.vcf", tmp_path / "all")
    for end in (".bed", ".bim", ".fam"):
        assert Path(f"{raw}{end}").read_bytes() == Path(f"{tmp_path / 'all'}{end}").read_bytes()
    assert counts["sites"] == one.sites and counts["samples"] == one.samples
    about, alone = read_json(Path(f"{raw}.json")), read_json(tmp_path / "all.json")
    for key in ("files", "contigs", "reference_only", "haploid", "removed_calls"):
        assert about[key] == alone[key], key
    assert about["counts"]["missing"] == alone["counts"]["missing"]
    assert {c: n["samples"] for c, n in about["members"].items()} == dict(
        zip("abcd", (5, 4, 3, 2), strict=True)
    )
    assert sum(n["snps"] for n in about["members"].values()) == about["counts"]["snps"]
    assert not list(raw.parent.glob(".members*"))


@pytest.mark.parametrize("first", [0, 1, 2])
def test_alleles_strands_and_names_of_contigs_are_brought_together(tmp_path, first):
    cohorts = draw("abc")
    ingest(tmp_path / "plain", cohorts)
    expected = genotypes_of(tmp_path / "plain/out/raw")
    changed = list(cohorts)
    changed[first] = swap_alleles(cohorts[first], range(0, N_SITES, 3))
    other = [
        (f"chr{chrom}", pos, name, *("TGCA"["ACGT".index(a)] for a in alleles))
        for chrom, pos, name, *alleles in changed[(first + 1) % 3].sites
    ]
    changed[(first + 1) % 3] = replace(changed[(first + 1) % 3], sites=other)
    _, raw = ingest(tmp_path / "changed", changed)
    ends = np.cumsum([0, *(len(c.samples) for c in cohorts)])
    bim, plain = read_bim(raw), read_bim(tmp_path / "plain/out/raw")
    # A/T and C/G sites of a cohort on another strand are in doubt, as between cohorts.
    clear = ~np.isin(
        plain.pos, [pos for _, pos, _, *pair in make_sites(N_SITES) if {*pair} == {*"AT"}]
    )
    found = genotypes_of(raw)
    assert bim.pos.tolist() == plain.pos[clear].tolist()
    # Most samples are of the strand that the other two have, whichever comes first.
    pairs = [
        [{*pair} for pair in zip(one.ref, one.alt, strict=True)] for one in (bim, plain[clear])
    ]
    assert pairs[0] == pairs[1]
    swapped = (bim.ref.to_numpy() != plain.ref[clear].to_numpy()) & (
        bim.alt.to_numpy() == plain.ref[clear].to_numpy()
    )
    found[swapped] = np.where(found[swapped] < 0, -1, 2 - found[swapped])
    assert (found == expected[clear]).all()
    assert ends[-1] == found.shape[1]


def test_sites_that_a_file_lacks(tmp_path):
    cohorts = draw("abc")
    lists = np.random.default_rng(2).random((3, N_SITES)) < 0.8
    parts = [only(c, which) for c, which in zip(cohorts, lists, strict=True)]
    _, raw = ingest(tmp_path / "founders", parts)
    shared = lists.all(axis=0)
    everyone = np.concatenate([c.genotypes for c in cohorts], axis=1)
    assert read_bim(raw).id.tolist() == [f"rs{k}" for k in np.flatnonzero(shared)]
    assert (genotypes_of(raw) == everyone[shared]).all()
    _, raw = ingest(tmp_path / "newcomers", parts, founders=False)
    some = lists.any(axis=0)
    known = np.repeat(lists, [len(c.samples) for c in cohorts], axis=0).T
    assert read_bim(raw).id.tolist() == [f"rs{k}" for k in np.flatnonzero(some)]
    assert (genotypes_of(raw) == np.where(known, everyone, -1)[some]).all()


def test_reference_blocks_speak_about_sites_of_others(tmp_path):
    cohorts = draw("ab", 2)
    a = only(cohorts[0], np.arange(N_SITES) < 3)
    text = a.vcf().splitlines()
    text.insert(1, '##ALT=<ID=NON_REF,Description="other">')
    text.insert(2, '##INFO=<ID=END,Number=1,Type=Integer,Description="end">')
    block = "1\t1350\t.\tA\t<NON_REF>\t.\tPASS\tEND=1750\tGT\t0/0\t./."
    indel = "1\t1850\t.\tAC\tA\t.\tPASS\t.\tGT\t0/1\t0/0"
    b = only(cohorts[1], np.arange(N_SITES) < 10)
    _, raw = ingest(
        tmp_path, [a, b], {"a": "\n".join([*text, block, indel]) + "\n"}, founders=False
    )
    bim, found = read_bim(raw), genotypes_of(raw)
    assert bim.pos.tolist() == [1000 + 100 * k for k in range(10)]
    assert (found[:, 2:] == b.genotypes).all()
    assert (found[:3, :2] == a.genotypes).all()
    inside = (bim.pos >= 1350) & (bim.pos <= 1750)
    assert found[:, 0].tolist()[3:] == np.where(inside, 0, -1).tolist()[3:]
    assert (found[3:, 1] == -1).all()
    blocks, dropped = load_beside(raw, BLOCKS), load_beside(raw, DROPPED)
    assert blocks.sample.tolist() == [0] and blocks.start.tolist() == [1349]
    assert dropped.covers(np.array(["1"], object), np.array([1850])).all()
    _, raw = ingest(tmp_path / "founders", [b, a], {"a": "\n".join([*text, block, indel]) + "\n"})
    assert read_bim(raw).pos.tolist() == [1000, 1100, 1200, 1400, 1500, 1600, 1700]
    assert load_beside(raw, BLOCKS).sample.tolist() == [1]


def test_files_of_variants_alone_are_refused(tmp_path):
    sites = [("1", 100 * k + 1, f"rs{k}", "A", "C") for k in range(3000)]
    rng = np.random.default_rng(3)
    cohorts, complete = [], []
    for name in "abc":
        genotypes = rng.binomial(2, rng.beta(0.3, 1.2, (3000, 1)), (3000, 4)).astype(np.int8)
        whole = Cohort(name, [f"{name}{k}" for k in range(4)], sites, genotypes)
        complete.append(whole)
        cohorts.append(only(whole, (genotypes > 0).any(axis=1)))
    for founders in (True, False):
        with pytest.raises(
            UserError, match=r"cohort 'a' lists variant sites only .* of cohort b, c"
        ):
            ingest(tmp_path / f"{founders}", cohorts, founders=founders)
        with pytest.raises(
            UserError, match=r"cohort 'b' lists variant sites only .* of cohort a, c"
        ):
            mixed = [complete[0], cohorts[1], complete[2]]
            ingest(tmp_path / f"{founders} mixed", mixed, founders=founders)
    ingest(tmp_path / "known", cohorts, founders=False, absent=Absent("missing"))


def test_errors_name_the_file(tmp_path):
    cohorts = draw("abc")
    with pytest.raises(UserError, match=r"b\.vcf, line 5"):
        ingest(tmp_path, cohorts, {"b": cohorts[1].vcf().replace("\t1200\t", "\tx\t")})
    assert not list((tmp_path / "out").iterdir())
    far = replace(cohorts[1], sites=[("7", *site[1:]) for site in cohorts[1].sites])
    with pytest.raises(UserError, match="the 2 cohorts a, b, which are read together, share no"):
        ingest(tmp_path, [cohorts[0], far])


def test_excluded_samples_and_folders_of_killed_jobs(tmp_path):
    cohorts = draw("abc")
    (tmp_path / "out/.members.old").mkdir(parents=True)
    _, raw = ingest(tmp_path, cohorts, excluded={"a1", "c0"})
    everyone = [name for c in cohorts for name in c.samples]
    stays = [name not in ("a1", "c0") for name in everyone]
    assert read_fam(raw)["sample"].tolist() == [
        n for n, s in zip(everyone, stays, strict=True) if s
    ]
    expected = np.concatenate([c.genotypes for c in cohorts], axis=1)[:, stays]
    assert (genotypes_of(raw) == expected).all()
    assert sorted(p.name for p in raw.parent.iterdir() if p.is_dir()) == []
