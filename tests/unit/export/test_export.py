"""Exports hold the same genotypes and distances, read back by the tools they are made for."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from support.study import Cohort, make_cohorts, write_raw

from popdesic.cohort.encode import write_planes
from popdesic.cohort.panel import load_panel
from popdesic.core.errors import UserError
from popdesic.core.files import write_json
from popdesic.distance.neighbor_joining import neighbor_joining
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.export.matrices import (
    export_eigenvec,
    export_king,
    export_mibs,
    export_newick,
    export_phylip,
    export_trees_and_matrices,
)
from popdesic.export.panel import export_plink, export_vcf
from popdesic.export.zarr import export_zarr
from popdesic.io.batches import DecodeCounts
from popdesic.io.bed import read_fam
from popdesic.io.genotypes import pack_bed
from popdesic.io.plink import stream_plink
from popdesic.io.vcf import stream_sites
from popdesic.io.vcf_zarr import stream_zarr
from popdesic.io.zarr_store import open_store


def needs(command: str):
    return pytest.mark.skipif(
        shutil.which(command) is None, reason=f"{command} is not installed; apt-get install it"
    )


@pytest.fixture
def placed(tmp_path) -> dict:
    """Two cohorts on a panel of 1 203 sites, more than one chunk."""
    cohorts = make_cohorts((9, 6), n_sites=1203, missing=0.1)
    prefixes = [write_raw(tmp_path / c.name / "genotypes", c) for c in cohorts]
    sites = pd.DataFrame(cohorts[0].sites, columns=["chrom", "pos", "id", "ref", "alt"])
    table = sites.assign(af=0.5, mode=1, n_called=10).to_csv(sep="\t", index=False)
    (tmp_path / "panel.tsv").write_text(f"# panel abc, {len(sites)} sites\n{table}")
    return {
        "prefixes": prefixes,
        "panel": tmp_path / "panel.tsv",
        "sites": cohorts[0].sites,
        "samples": [name for c in cohorts for name in c.samples],
        "genotypes": np.concatenate([c.genotypes for c in cohorts], axis=1),
    }


def test_vcf_is_what_went_in(placed, tmp_path):
    out = tmp_path / "panel.vcf.gz"
    export_vcf(placed["prefixes"], placed["panel"], out)
    batches = list(stream_sites(out))
    found = np.concatenate([batch.genotypes for batch in batches])
    np.testing.assert_array_equal(found, placed["genotypes"])
    fields = ("chrom", "pos", "id", "ref", "alt")
    rows = [row for b in batches for row in zip(*(getattr(b, f) for f in fields), strict=True)]
    assert rows == placed["sites"]
    first = out.read_bytes()
    export_vcf(placed["prefixes"], placed["panel"], out)
    assert out.read_bytes() == first


@pytest.mark.peer
@needs("bcftools")
@needs("plink2")
def test_vcf_opens_in_bcftools_and_plink2(placed, tmp_path):
    out = tmp_path / "panel.vcf.gz"
    export_vcf(placed["prefixes"], placed["panel"], out)
    subprocess.run(["bcftools", "index", out], check=True, capture_output=True)
    query = ["bcftools", "query", "-r", "2", "-f", "%POS[\t%GT]\n", out]
    lines = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [k for k, site in enumerate(placed["sites"]) if site[0] == "2"]
    assert len(lines) == len(rows) > 100
    codes = {"0/0": 0, "0/1": 1, "1/1": 2, "./.": -1}
    read = [[codes[word] for word in line.split("\t")[1:]] for line in lines]
    np.testing.assert_array_equal(read, placed["genotypes"][rows])
    plink = ["plink2", "--vcf", out, "--make-bed", "--out", tmp_path / "p", "--allow-extra-chr"]
    subprocess.run(plink, check=True, capture_output=True)
    assert list(read_fam(tmp_path / "p")["sample"]) == placed["samples"]


@pytest.fixture(params=[False, True], ids=["chunks", "shards"])
def shards(request, monkeypatch) -> bool:
    """Whether chunks lie in shards; they are small, so that there are some of each."""
    if request.param:
        monkeypatch.setattr("popdesic.export.zarr.CHUNK_SITES", 100)
        monkeypatch.setattr("popdesic.export.zarr.CHUNK_SAMPLES", 8)
        monkeypatch.setattr("popdesic.export.zarr.SHARD_BYTES", 5 * 100 * 8 * 2)
    return request.param


def test_zarr_holds_the_same(placed, tmp_path, shards):
    out = tmp_path / "panel.vcz"
    for _ in range(2):  # the second replaces the first
        export_zarr(placed["prefixes"], placed["panel"], out, shards=shards)
    root = zarr.open(str(out), mode="r")
    g = placed["genotypes"]
    calls = np.asarray(root["call_genotype"][:])
    assert calls.shape == (*g.shape, 2)
    np.testing.assert_array_equal(np.where((calls < 0).any(axis=2), -1, calls.sum(axis=2)), g)
    np.testing.assert_array_equal(root["call_genotype_mask"][:, :, 0], g < 0)
    assert not np.asarray(root["call_genotype_phased"][:]).any()
    contigs = list(root["contig_id"][:])
    sites = zip(
        [contigs[k] for k in root["variant_contig"][:]],
        [int(pos) for pos in root["variant_position"][:]],
        root["variant_id"][:],
        *np.asarray(root["variant_allele"][:]).T,
        strict=True,
    )
    assert list(sites) == placed["sites"]
    assert list(root["sample_id"][:]) == placed["samples"]
    about = root["call_genotype"]
    dimensions = about.metadata.dimension_names if shards else about.attrs["_ARRAY_DIMENSIONS"]
    assert list(dimensions) == ["variants", "samples", "ploidy"]
    assert root.attrs["vcf_zarr_version"] == "0.5"
    assert root.attrs["popdesic_panel"] == load_panel(placed["panel"])[1]
    first = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    export_zarr(placed["prefixes"], placed["panel"], out, shards=shards)
    assert first == {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".panel")]


def test_shards_are_read_back_and_are_few_files(placed, tmp_path, shards, monkeypatch):
    """However many chunks are read at a time: three do not divide a shard of five."""
    out = tmp_path / "panel.vcz"
    export_zarr(placed["prefixes"], placed["panel"], out, shards=shards)
    files = [path.name for path in (out / "call_genotype").rglob("*") if path.is_file()]
    assert sum(name[0].isdigit() for name in files) == (3 * 2 if shards else 2)
    for together, n_chunks in (1, 1), (3 * 100 * 15 * 2, 3), (10**9, 5):
        monkeypatch.setattr("popdesic.io.zarr_store.SHARD_BYTES", together)
        store = open_store(out)
        assert store.n_rows == (100 * n_chunks if shards else 1000)
        assert len(store.index), "the index of regions is compared"
        found = [batch.genotypes for batch in stream_zarr(out, DecodeCounts())]
        np.testing.assert_array_equal(np.concatenate(found), placed["genotypes"])


@pytest.mark.peer
@needs("vcztools")
def test_vcztools_makes_the_vcf_of_the_zarr(placed, tmp_path):
    export_zarr(placed["prefixes"], placed["panel"], tmp_path / "panel.vcz")
    export_vcf(placed["prefixes"], placed["panel"], tmp_path / "panel.vcf.gz")
    view = ["vcztools", "view", tmp_path / "panel.vcz"]
    theirs = subprocess.run(view, check=True, capture_output=True, text=True).stdout
    ours = gzip.decompress((tmp_path / "panel.vcf.gz").read_bytes()).decode()
    texts = [[x for x in text.splitlines() if not x.startswith("##")] for text in (theirs, ours)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 1 + len(placed["sites"])


# --- PLINK ------------------------------------------------------------------------------------


def sheet_of(names: list[str]) -> pd.DataFrame:
    """One family whose second sample is a son; the last sample is not in the sheet."""
    sheet = pd.DataFrame({"sample": names[:-1], "sex": "NA", "father": "NA", "mother": ""})
    sheet.loc[:2, "sex"] = ["M", "M", "F"]
    sheet.loc[1, ["father", "mother"]] = names[0], names[2]
    return sheet.assign(phenotype=["1", "0", "NA", *["0"] * (len(sheet) - 3)])


def test_plink_files_hold_genotypes_sexes_parents_and_phenotypes(placed, tmp_path):
    names = placed["samples"]
    export_plink(placed["prefixes"], sheet_of(names)[::-1], tmp_path / "panel")
    found = np.concatenate([b.genotypes for b in stream_plink(tmp_path / "panel", DecodeCounts())])
    np.testing.assert_array_equal(found, placed["genotypes"])
    fam = read_fam(tmp_path / "panel")
    assert fam["sample"].tolist() == names
    assert fam.iloc[1, 2:].tolist() == [names[0], names[2], "1", "1"]
    assert fam.sex.tolist() == ["1", "1", "2", *["0"] * (len(names) - 3)]
    assert fam.phenotype.tolist() == ["2", "1", "-9", *["1"] * (len(names) - 4), "-9"]
    trait = sheet_of(names).assign(phenotype=["1", "0", "NA", *["0.5"] * (len(names) - 4)])
    export_plink(placed["prefixes"], trait, tmp_path / "panel")
    assert read_fam(tmp_path / "panel").phenotype[:4].tolist() == ["1", "0", "-9", "0.5"]
    export_plink(placed["prefixes"], trait[["sample"]], tmp_path / "panel")
    assert set(read_fam(tmp_path / "panel").phenotype) == {"-9"}


@pytest.mark.peer
@needs("plink1.9")
@needs("plink2")
def test_plink_files_open_in_plink(placed, tmp_path):
    names = placed["samples"]
    export_plink(placed["prefixes"], sheet_of(names), tmp_path / "panel")
    for program, action in (("plink1.9", "--mendel"), ("plink2", "--missing")):
        options = ["--bfile", tmp_path / "panel", "--out", tmp_path / "p", action]
        subprocess.run([program, *options], check=True, capture_output=True)
    trio = placed["genotypes"][:, :3].tolist()
    impossible = sum(
        son >= 0 and not (father == mother == -1)
        and son not in {a + b for a in gametes(father) for b in gametes(mother)}
        for father, son, mother in trio
    )  # fmt: skip
    theirs = pd.read_csv(tmp_path / "p.lmendel", sep=r"\s+").N.sum()
    assert theirs == impossible > 50
    missing = pd.read_csv(tmp_path / "p.smiss", sep="\t").MISSING_CT
    np.testing.assert_array_equal(missing, (placed["genotypes"] < 0).sum(axis=0))


def gametes(genotype: int) -> set[int]:
    return {0: {0}, 1: {0, 1}, 2: {1}, -1: {0, 1}}[genotype]


# --- trees ------------------------------------------------------------------------------------


def patristic(newick: str) -> tuple[list[str], np.ndarray]:
    """Leaves and the path lengths between them, by a slow parser."""
    tokens = re.findall(r"'(?:[^']|'')*'|[(),;]|[^(),;']+", newick)
    position = 0

    def parse():
        nonlocal position
        leaves: dict[str, float] = {}
        if tokens[position] == "(":
            while tokens[position] in "(,":
                position += 1
                branch = parse()
                for a, x in leaves.items():
                    for b, y in branch.items():
                        lengths[frozenset((a, b))] = x + y
                leaves |= branch
            position += 1
        elif tokens[position].startswith("'"):
            leaves = {tokens[position][1:-1].replace("''", "'"): 0.0}
            position += 1
        else:
            name, _, length = tokens[position].partition(":")
            tokens[position] = f":{length}" if length else ""
            leaves = {name: 0.0}
            position += not length
        if tokens[position].startswith(":"):
            length = float(tokens[position][1:])
            leaves = {name: x + length for name, x in leaves.items()}
            position += 1
        return leaves

    lengths: dict[frozenset, float] = {}
    names = sorted(parse())
    matrix = [[lengths.get(frozenset((a, b)), 0.0) for b in names] for a in names]
    return names, np.array(matrix)


def random_tree_distances(n: int, seed: int) -> np.ndarray:
    """Additive distances, the path lengths in a random tree with n leaves."""
    rng = np.random.default_rng(seed)
    parts = [{k} for k in range(n)]
    d = np.zeros((n, n))
    for _ in range(2 * n):  # each split adds its branch length to the pairs that it separates
        if len(parts) > 1:
            i, j = rng.choice(len(parts), 2, replace=False)
            merged = parts[i] | parts[j]
            parts = [p for k, p in enumerate(parts) if k not in (i, j)] + [merged]
            inside = np.isin(np.arange(n), list(merged))
            d += rng.uniform(0.1, 1) * (inside[:, None] ^ inside[None, :])
    for k in range(n):
        leaf = np.arange(n) == k
        d += rng.uniform(0.1, 1) * (leaf[:, None] ^ leaf[None, :])
    return d


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 33])
def test_neighbor_joining_finds_the_tree_of_additive_distances(n):
    names = [f"{k:02d} it's; (a,b)" if k % 3 == 0 else f"N{k:02d}" for k in range(n)]
    d = random_tree_distances(n, seed=n)
    found, lengths = patristic(neighbor_joining(d, names))
    order = [names.index(name) for name in found]
    assert sorted(found) == sorted(names)
    np.testing.assert_allclose(lengths, d[np.ix_(order, order)], atol=1e-6)


@pytest.mark.peer
@needs("phylip")
def test_phylip_reads_the_matrix_and_joins_the_same_neighbours(tmp_path):
    n = 17
    rng = np.random.default_rng(4)
    d = random_tree_distances(n, seed=3) + (noise := rng.uniform(0, 0.2, (n, n))) + noise.T
    np.fill_diagonal(d, 0)
    names = [f"S{k:02d}" for k in range(n)]
    export_phylip(d, names, tmp_path / "infile")
    export_newick(d, names, tmp_path / "ours.nwk")
    subprocess.run(
        ["phylip", "neighbor"],
        cwd=tmp_path,
        input="Y\n",
        text=True,
        check=True,
        capture_output=True,
    )
    theirs = "".join((tmp_path / "outtree").read_text().split())
    their_names, their_lengths = patristic(theirs)
    our_names, our_lengths = patristic((tmp_path / "ours.nwk").read_text().strip())
    assert our_names == their_names == names
    np.testing.assert_allclose(our_lengths, their_lengths, atol=2e-4)  # PHYLIP prints five decimals


# --- matrices and components --------------------------------------------------------------------


def write_distances(folder: Path, cohort: Cohort) -> None:
    """Write `results/distance` of one cohort, counted sample by sample."""
    g = cohort.genotypes.astype(np.int64).T
    a, b = g[:, None], g[None, :]
    both = (a >= 0) & (b >= 0)
    folder.mkdir()
    np.save(folder / "called.npy", both.sum(axis=2))
    np.save(folder / "squared.npy", np.where(both, (a - b) ** 2, 0).sum(axis=2))
    np.save(folder / "ibs0.npy", (both & (abs(a - b) == 2)).sum(axis=2))
    rows = "".join(f"{name}\t{cohort.name}\n" for name in cohort.samples)
    (folder / "samples.tsv").write_text(f"sample\tcohort\n{rows}")


@pytest.mark.peer
@needs("plink1.9")
def test_mibs_equals_plinks_own(tmp_path):
    cohort = make_cohorts((12,), n_sites=300, missing=0.05)[0]
    raw = write_raw(tmp_path / "raw", cohort)
    write_distances(tmp_path / "distance", cohort)
    export_mibs(tmp_path / "distance", tmp_path / "ours.mibs")
    plink = ["plink1.9", "--bfile", raw, "--distance", "square", "ibs", "flat-missing"]
    subprocess.run([*plink, "--out", tmp_path / "p"], check=True, capture_output=True)
    ours, theirs = np.loadtxt(tmp_path / "ours.mibs"), np.loadtxt(tmp_path / "p.mibs")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    # The file of names is also a list of samples for PLINK.
    keep = ["plink1.9", "--bfile", raw, "--keep", tmp_path / "ours.mibs.id", "--make-bed"]
    subprocess.run([*keep, "--out", tmp_path / "k"], check=True, capture_output=True)
    assert list(read_fam(tmp_path / "k")["sample"]) == cohort.samples


@pytest.mark.peer
@needs("plink2")
def test_eigenvec_serves_plink2_as_covariates(tmp_path):
    cohort = make_cohorts((12,), n_sites=50)[0]
    raw = write_raw(tmp_path / "raw", cohort)
    scores = np.random.default_rng(1).normal(size=(12, 3))
    lines = ["sample\tPC1\tPC2\tPC3\tcohort\tPC"]
    lines += [
        "\t".join([name, *(f"{x:.9g}" for x in row), "north", "x"])
        for name, row in zip(cohort.samples, scores, strict=True)
    ]
    (tmp_path / "pca.tsv").write_text("\n".join(lines) + "\n")
    export_eigenvec(tmp_path / "pca.tsv", tmp_path / "pca.eigenvec")
    plink = ["plink2", "--bfile", raw, "--covar", tmp_path / "pca.eigenvec", "--write-covar"]
    subprocess.run([*plink, "--out", tmp_path / "p"], check=True, capture_output=True)
    read = pd.read_csv(tmp_path / "p.cov", sep="\t")
    assert list(read["IID"]) == cohort.samples
    np.testing.assert_allclose(read[["PC1", "PC2", "PC3"]], scores, rtol=1e-5)


def test_a_tree_of_unknown_distances_is_refused(tmp_path):
    cohort = make_cohorts((6,), n_sites=30)[0]
    write_distances(tmp_path / "d", cohort)
    options = {"metric": "ibs", "n_sites": 30, "min_called": 5}
    export_trees_and_matrices(tmp_path / "d", ["newick", "mibs"], tmp_path, **options)
    names, lengths = patristic((tmp_path / "distance.nwk").read_text().strip())
    assert names == cohort.samples
    assert lengths.max() > 0
    with pytest.raises(UserError, match="'N00' and 'N05' share fewer than"):
        export_trees_and_matrices(
            tmp_path / "d", ["phylip"], tmp_path, **(options | {"min_called": 30})
        )


@pytest.mark.peer
@needs("plink2")
def test_king_is_what_plink2_writes(placed, tmp_path):
    start = 0
    for prefix in placed["prefixes"]:
        names = read_fam(prefix)["sample"].tolist()
        genotypes = placed["genotypes"][:, start : start + len(names)]
        start += len(names)
        mode = np.ones(len(genotypes), np.int64)
        write_planes(pack_bed(genotypes), len(names), mode, "mode", prefix.parent / "planes.npy")
        write_json(
            prefix.parent / "planes.json",
            {"samples": names, "n_sites": len(genotypes), "panel": "abc"},
        )
    out = tmp_path / "kinship.king"
    export_king([prefix.parent for prefix in placed["prefixes"]], out, CpuBackend(2))
    vcf = tmp_path / "panel.vcf.gz"
    export_vcf(placed["prefixes"], placed["panel"], vcf)
    command = ["plink2", "--vcf", vcf, "--double-id", "--make-king", "square"]
    command += ["--allow-extra-chr", "--out", tmp_path / "theirs"]
    subprocess.run(command, check=True, capture_output=True)
    found, theirs = np.loadtxt(out), np.loadtxt(tmp_path / "theirs.king")
    off = ~np.eye(len(found), dtype=bool)
    # both print six digits
    np.testing.assert_allclose(found[off], theirs[off], rtol=2e-5, atol=1e-6)
    assert Path(f"{out}.id").read_text().split()[1:] == placed["samples"]
