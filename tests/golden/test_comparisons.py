"""Kinship, LD and pruning on real genotypes, compared with PLINK, SNPRelate and known families.

`pytest tests/golden/test_comparisons.py -s` prints the measured figures.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import popdesic
from popdesic.cohort import prune
from popdesic.cohort.encode import planes_in_memory
from popdesic.cohort.prune_options import parse_pruning
from popdesic.cohort.site_alleles import read_cohorts
from popdesic.cohort.site_planes import site_planes
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.engine.select import select_backend
from popdesic.engine.site_pairs import r2_block
from popdesic.engine.terms import KINSHIP
from popdesic.ibd.verdict import relation_of
from popdesic.io.bed import open_bed, read_bim, read_fam
from popdesic.io.genotypes import unpack_bed
from popdesic.relatives import independence, kinship, mixture
from popdesic.relatives.ld import Decay, window_ends
from popdesic.relatives.ld_populations import ld_by_population, samples_by_population
from popdesic.relatives.pc_relate import ancestry_of, count_pairs, pc_relate
from popdesic.relatives.resolution import DUPLICATE, SECOND, resolve

pytestmark = pytest.mark.shared
BACKEND = select_backend("cpu", 2)


def run(*command) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def to_plink(vcf: Path, prefix: Path, *options: str) -> Path:
    """Convert a VCF's biallelic SNPs to PLINK files with unique names, by PLINK 2."""
    names = ["--set-all-var-ids", "@:#:$r:$a", "--rm-dup", "force-first"]
    only = ["--max-alleles", "2", "--snps-only", "--double-id", "--allow-extra-chr"]
    run("plink2", "--vcf", vcf, *names, *only, *options, "--make-bed", "--out", prefix)
    return prefix


@pytest.fixture(scope="module")
def hapmap(shared_data, tmp_path_factory, require_command) -> Path:
    """279 HapMap individuals, autosomes."""
    require_command("plink2")
    require_command("plink1.9")
    vcf = shared_data / "hapmap279" / "hapmap279.vcf.gz"
    return to_plink(vcf, tmp_path_factory.mktemp("hapmap") / "h", "--chr", "1-22")


@pytest.fixture(scope="module")
def chr22(shared_data, tmp_path_factory, require_command) -> Path:
    """564 individuals of the 1000 Genomes, chromosome 22."""
    require_command("plink2")
    vcf = shared_data / "kg1_chr22_564" / "kg1_chr22_dev564.vcf.gz"
    return to_plink(vcf, tmp_path_factory.mktemp("chr22") / "k")


@pytest.fixture(scope="module")
def counts(hapmap) -> dict[str, np.ndarray]:
    planes = planes_in_memory(open_bed(hapmap), 279)
    return dict(zip(KINSHIP.outputs, BACKEND.bitgemm(planes, None, KINSHIP), strict=True))


@pytest.fixture(scope="module")
def families(shared_data) -> dict:
    """Known pairs (parent and child, duplicates) by position in the file."""
    folder = shared_data / "hapmap279"
    sheet = pd.read_csv(folder / "samples.tsv", sep="\t", dtype=str, keep_default_na=False)
    place = {name: i for i, name in enumerate(sheet.sample_id)}
    parents, trios = set(), 0
    for row in sheet.itertuples():
        both = [p for p in (row.father_id, row.mother_id) if p in place]
        trios += len(both) == 2
        parents |= {frozenset((place[row.sample_id], place[p])) for p in both}
    duplicates = {
        frozenset((place[name], place[name.removesuffix(".dup")]))
        for name in place
        if name.endswith(".dup")
    }
    # a parent and child missing from the pedigrees (Pemberton et al. 2010)
    parents.add(frozenset((place["NA18913"], place["NA19238"])))
    return {"parents": parents, "duplicates": duplicates, "trios": trios, "names": list(place)}


@pytest.mark.peer
def test_kinship_equals_plink(hapmap, counts, tmp_path):
    run("plink2", "--bfile", hapmap, "--make-king", "square", "bin", "--out", tmp_path / "k")
    theirs = np.fromfile(tmp_path / "k.king.bin").reshape(279, 279)
    ours = kinship.king_robust(counts)
    off = ~np.eye(279, dtype=bool)
    worst = np.abs(ours - theirs)[off].max()
    print(f"\nKING-robust, 279 samples: largest difference from PLINK 2 {worst:.1e}")
    assert worst < 1e-6


def test_kinship_equals_snprelate(shared_data, tmp_path, require_command):
    """Compared with the reference matrix, on the sites that it was made from."""
    require_command("plink2")
    folder = shared_data / "hapmap279"
    prefix = tmp_path / "all"
    vcf = folder / "hapmap279.vcf.gz"
    run("plink2", "--vcf", vcf, "--double-id", "--allow-extra-chr", "--make-bed", "--out", prefix)
    text = {"sep": "\t", "dtype": str}
    used = pd.read_csv(folder / "ref_all279_snp_ids.tsv.gz", **text)
    sites = used.merge(pd.read_csv(folder / "snprelate_snp_ids.tsv", **text), on="snp_id")
    known = set(zip(sites.rs, sites.chrom, sites.pos, strict=True))
    bim = read_bim(prefix)
    keys = zip(bim.id, bim.chrom, bim.pos.astype(str), strict=True)
    keep = np.array([key in known for key in keys])
    assert keep.sum() == len(used)
    planes = planes_in_memory(np.ascontiguousarray(open_bed(prefix)[keep]), 279)
    ours = kinship.king_robust(
        dict(zip(KINSHIP.outputs, BACKEND.bitgemm(planes, None, KINSHIP), strict=True))
    )
    table = pd.read_csv(folder / "ref_all279_KINGrobust_kinship.tsv.gz", sep="\t", index_col=0)
    theirs = table.to_numpy()
    off = ~np.eye(279, dtype=bool)
    worst = np.abs(ours - theirs)[off].max()
    print(f"\nKING-robust: largest difference from SNPRelate {worst:.1e} on {keep.sum()} sites")
    assert worst < 1e-6


@pytest.fixture(scope="module")
def resolution(hapmap):
    return resolution_of(hapmap, 279)


def resolution_of(prefix: Path, n_samples: int):
    """Resolution of the common sites of PLINK files."""
    planes = planes_in_memory(open_bed(prefix), n_samples)
    bim = read_bim(prefix)
    return resolve(
        *independence.measure_variances([planes], bim.chrom.to_numpy(), BACKEND),
        panel="x",
        sites=len(bim),
        founders=n_samples,
        max_mismatch=0.02,
    )


def test_effective_sites_of_real_panels(resolution, chr22):
    """Effective sites of 9 000 thinned genome-wide sites and of one whole chromosome."""
    print(f"\n{resolution}")
    assert resolution.degrees == ["duplicate", "first", "second"]
    assert 4_000 < resolution.effective_sites < 9_000
    found = resolution_of(chr22, 564)
    print(found)
    assert 400 < found.effective_sites < 1_500
    assert "second" not in found.degrees
    # of 564 people, some of whom are related, almost nobody is a false relative
    planes = planes_in_memory(open_bed(chr22), 564)
    values = BACKEND.bitgemm(planes, None, KINSHIP)
    phi = np.triu(kinship.king_robust(dict(zip(KINSHIP.outputs, values, strict=True))), 1)
    print(f"chr22: {(phi >= 0.0442).sum()} pairs of third degree, "
          f"{(phi >= found.smallest_kinship).sum()} told")  # fmt: skip
    assert (phi >= 0.0442).sum() > 1_000
    assert (phi >= found.smallest_kinship).sum() < 50


def frequencies(prefix: Path) -> np.ndarray:
    """ALT frequencies of PLINK files of 279 samples."""
    genotypes = unpack_bed(np.ascontiguousarray(open_bed(prefix)), 279)
    return np.ma.masked_less(genotypes, 0).mean(axis=1).filled(0) / 2


def test_trios_and_duplicates_are_found(hapmap, counts, families, resolution):
    phi = kinship.king_robust(counts)
    wrong = counts["het_a"] + counts["het_b"] - 2 * counts["both_het"] + counts["ibs0"]
    same = resolution.same(wrong, counts["called"])
    assert (phi[same & ~np.eye(279, dtype=bool)] > DUPLICATE).all()
    assert resolution.least_kinship(counts["called"])[phi > kinship.FIRST].max() < kinship.FIRST
    rows, columns = np.nonzero(np.triu(phi > kinship.FIRST, 1))
    parents = kinship.panel_parent_limit(frequencies(hapmap), 0.005)
    found = {
        "duplicate or identical twin": set(),
        "parent and child": set(),
        "full siblings": set(),
    }
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        share = counts["ibs0"][i, j] / counts["called"][i, j]
        found[kinship.SAME if same[i, j] else relation_of(phi[i, j], share, parents)].add(
            frozenset((i, j))
        )
    assert families["trios"] == 59
    assert len(families["duplicates"]) == 10
    assert found["duplicate or identical twin"] == families["duplicates"]
    # a duplicate has its original's parents and children
    twin = {min(d): max(d) for d in families["duplicates"]}
    twin |= {b: a for a, b in twin.items()}
    expected = set(families["parents"])
    for pair in families["parents"]:
        a, b = tuple(pair)
        expected |= {frozenset((x, y)) for x in {a, twin.get(a, a)} for y in {b, twin.get(b, b)}}
    print(f"\nparent and child: {len(found['parent and child'])} of {len(expected)} known")
    assert found["parent and child"] == expected
    assert not found["full siblings"]


@pytest.mark.parametrize("components", [2, 4])
def test_pc_relate_finds_every_trio_and_nobody_else(
    hapmap, counts, families, resolution, components
):
    """Three populations: parents and children, all found, at first degree; nobody else is.

    With ten components, eight of them noise, one of the pairs is lost: `auto` takes two.
    """
    genotypes = unpack_bed(np.ascontiguousarray(open_bed(hapmap)), 279).T
    phi = kinship.king_robust(counts)
    wrong = counts["het_a"] + counts["het_b"] - 2 * counts["both_het"] + counts["ibs0"]
    same = resolution.same(wrong, counts["called"])
    near = np.triu((phi >= SECOND) | same, 1)
    training = np.zeros(279, bool)
    training[kinship.unrelated_set(279, [tuple(x) for x in np.argwhere(near).tolist()])] = True
    scores = popdesic.pca(genotypes, n_components=components, founders=training).scores
    ancestry = ancestry_of(scores, training, components)

    def read(first: int, last: int, people=slice(None)) -> np.ndarray:
        return genotypes[people, first:last].T

    found = pc_relate(read, genotypes.shape[1], ancestry, CpuBackend(2))
    limit = float(resolution.least_pc_relate(np.array(genotypes.shape[1])))
    rows, columns, values = found.close(max(limit, kinship.FIRST))
    pairs = count_pairs(read, ancestry, found.coefficients, rows, columns)
    least = resolution.least_pc_relate(pairs.sites)
    labels = [
        kinship.SAME if twin else relation_of(value, k0) if value >= limit else "distant"
        for twin, value, k0, limit in zip(same[rows, columns], values, pairs.k0, least, strict=True)
    ]
    expected = set()
    twin = {min(d): max(d) for d in families["duplicates"]}
    twin |= {b: a for a, b in twin.items()}
    for pair in families["parents"]:
        a, b = tuple(pair)
        expected |= {frozenset((x, y)) for x in {a, twin.get(a, a)} for y in {b, twin.get(b, b)}}
    by_label: dict[str, set] = {}
    for i, j, label in zip(rows.tolist(), columns.tolist(), labels, strict=True):
        by_label.setdefault(label, set()).add(frozenset((i, j)))
    parents = by_label.pop("parent and child")
    a, b = np.array([sorted(pair) for pair in expected]).T
    values = found.matrix()[a, b]
    print(f"\n{components} components, {len(parents & expected)} of {len(expected)} parents and "
          f"children, kinship {values.mean():.4f} +- {values.std():.4f}")  # fmt: skip
    assert parents == expected
    assert by_label.pop(kinship.SAME) == families["duplicates"]
    assert not by_label
    assert abs(values.mean() - 0.25) < 0.0075


def test_no_two_mice_are_called_the_same(shared_data, tmp_path, require_command):
    """No two of 1 814 mice, most of them siblings or cousins, are called duplicates."""
    require_command("plink2")
    prefix = to_plink(shared_data / "mice1814" / "hs_mice.vcf.gz", tmp_path / "m")
    found = resolution_of(prefix, 1814)
    planes = planes_in_memory(open_bed(prefix), 1814)
    values = BACKEND.bitgemm(planes, None, KINSHIP)
    counts = dict(zip(KINSHIP.outputs, values, strict=True))
    wrong = counts["het_a"] + counts["het_b"] - 2 * counts["both_het"] + counts["ibs0"]
    same = np.triu(found.same(wrong, counts["called"]), 1)
    phi = kinship.king_robust(counts)
    twice = np.triu(phi > DUPLICATE, 1)
    print(f"\nmice: {found}\n{same.sum()} pairs the same, {twice.sum()} by kinship alone, "
          f"{(np.triu(phi, 1) >= found.smallest_kinship).sum()} told as relatives")  # fmt: skip
    assert found.degrees[0] == "duplicate"
    assert not (same & ~twice).any()


@pytest.mark.parametrize("data", ["hapmap", "chr22"])
@pytest.mark.peer
def test_r2_equals_plink(data, request, tmp_path):
    prefix = request.getfixturevalue(data)
    genotypes = read_cohorts([prefix])[0](0, 1500)
    run("plink1.9", "--bfile", prefix, "--allow-extra-chr", "--r2", "square", "bin", "--extract",
        _ids(prefix, tmp_path, 1500), "--out", tmp_path / "r")  # fmt: skip
    theirs = np.fromfile(tmp_path / "r.ld.bin").reshape(1500, 1500)
    ours = r2_block(site_planes(genotypes), None, BACKEND)
    both = np.isfinite(ours) & np.isfinite(theirs)
    off = ~np.eye(1500, dtype=bool)
    worst = np.abs(ours - theirs)[both & off].max()
    print(f"\nr2, {data}, 1 500 sites: largest difference from PLINK 1.9 {worst:.1e}")
    assert (np.isfinite(ours) == np.isfinite(theirs))[off].mean() > 0.99
    assert worst < 1e-6


@pytest.mark.peer
def test_ld_of_populations_equals_plink(hapmap, shared_data, tmp_path):
    """Mean r2 by distance and between contigs, from the pairs that PLINK 1.9 lists."""
    sheet = pd.read_csv(shared_data / "hapmap279" / "samples.tsv", sep="\t", dtype=str)
    names = [read_fam(hapmap)["sample"]]
    labels = dict(zip(sheet.sample_id, sheet.population, strict=True))
    groups = samples_by_population(labels, names, [np.ones(279, bool)])
    bim = read_bim(hapmap)
    chosen = bim.groupby("chrom", sort=False).head(170).iloc[:510].id
    (tmp_path / "ids").write_text("\n".join(chosen) + "\n")
    few = ["--extract", tmp_path / "ids", "--make-bed", "--out", tmp_path / "few"]
    run("plink1.9", "--bfile", hapmap, *few)
    sites = read_bim(tmp_path / "few")
    table = ld_by_population(
        [tmp_path / "few"], groups, sites, window_ends(sites, "1000 kb"), BACKEND
    )
    assert len(groups) > 1 and set(table.population) == set(groups)
    for name, (who,) in groups.items():
        kept = "".join(f"{s}\t{s}\n" for s in names[0][who])
        (tmp_path / "keep").write_text(kept)
        run("plink1.9", "--bfile", tmp_path / "few", "--keep", tmp_path / "keep", "--maf", "0.05",
            "--r2", "inter-chr", "--ld-window-r2", "0", "--out", tmp_path / name)  # fmt: skip
        pairs = pd.read_csv(tmp_path / f"{name}.ld", sep=r"\s+", dtype={"CHR_A": str, "CHR_B": str})
        pairs = pairs[pairs.R2.notna()]
        far = pairs.CHR_A != pairs.CHR_B
        decay = Decay()
        near = pairs[~far & (pairs.BP_B - pairs.BP_A <= 1_000_000)]
        decay.add((near.BP_B - near.BP_A).to_numpy(), near.R2.to_numpy())
        theirs, ours = decay.table(), table[table.population == name]
        within, apart = ours[ours.from_bp.notna()], ours[ours.from_bp.isna()]
        assert within.from_bp.tolist() == theirs.from_bp.tolist()
        assert within.pairs.tolist() == theirs.pairs.tolist()
        np.testing.assert_allclose(within.mean_r2, theirs.mean_r2, atol=1e-6)
        assert apart.pairs.tolist() == [far.sum()]
        np.testing.assert_allclose(apart.mean_r2, pairs.R2[far].mean(), atol=1e-6)


def _ids(prefix: Path, folder: Path, n: int) -> Path:
    path = folder / "ids"
    path.write_text("\n".join(read_bim(prefix).id[:n]) + "\n")
    return path


@pytest.mark.parametrize(
    "values", [["50 sites", 5, 0.2], ["200 sites", 20, 0.1], ["100 kb", 1, 0.2]]
)
@pytest.mark.parametrize("data", ["hapmap", "chr22"])
@pytest.mark.peer
def test_pruning_keeps_the_sites_that_plink_keeps(data, values, request, tmp_path):
    """All three programs agree except on monomorphic sites, which PLINK 2 keeps when alone."""
    prefix = request.getfixturevalue(data)
    bim, genotypes = read_bim(prefix), read_cohorts([prefix])[0](0, None)
    varies = np.array([len(set(row[row >= 0].tolist())) > 1 for row in genotypes])
    pruning = parse_pruning(values, "x")
    ours = set(bim.id[~prune.pruned(site_planes(genotypes), bim, pruning, BACKEND)])
    window = [values[0].removesuffix(" sites").replace(" ", ""), values[1], values[2]]
    for program, options in (("plink1.9", []), ("plink2", ["--bad-freqs"])):
        out = tmp_path / program
        run(program, "--bfile", prefix, "--allow-extra-chr", *options, "--indep-pairwise", *window,
            "--out", out)  # fmt: skip
        theirs = set(Path(f"{out}.prune.in").read_text().split())
        assert ours == theirs & set(bim.id[varies]), program


def test_planted_mixtures_of_real_people(chr22):
    """Mixtures of 2 to 5 real people: rates of false exclusion and inclusion."""
    genotypes = read_cohorts([chr22])[0](0, None)
    rng = np.random.default_rng(1)
    af = genotypes.mean(axis=1) / 2
    # thinned common sites, because sites of one chromosome are far from independent
    common = np.flatnonzero((af > 0.1) & (af < 0.9))[::6]
    people, af = genotypes[common].T, af[common]
    errors = {"dropout": 0.02, "drop_in": 0.01}
    included = excluded = wrong_in = wrong_out = 0
    for contributors in (2, 3, 4, 5):
        for _ in range(5):
            chosen = rng.choice(len(people), contributors, replace=False)
            alt = (people[chosen] > 0).any(axis=0)
            ref = (people[chosen] < 2).any(axis=0)
            mixed = np.where(alt & ref, 1, np.where(alt, 2, 0)).astype(np.int8)
            ratios = mixture.likelihood_ratios(mixed, people, af, contributors, **errors)
            inside = np.isin(np.arange(len(people)), chosen)
            included += contributors
            excluded += len(people) - contributors
            wrong_out += int((ratios[inside] < mixture.DECISIVE).sum())
            wrong_in += int((ratios[~inside] >= mixture.DECISIVE).sum())
    print(
        f"\nmixtures of 2 to 5 of 564 real people, {len(common)} sites of chr22: "
        f"{wrong_out} of {included} contributors not included, "
        f"{wrong_in} of {excluded} others included"
    )
    assert wrong_out == 0
    assert wrong_in / excluded < 0.01
