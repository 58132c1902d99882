"""Every real data set agrees with PLINK 1.9, PLINK 2, bcftools, scikit-learn and published results.

`make concordance` writes the table concordance.tsv: one row per data set and quantity, with the
peer, the number of values compared, the largest difference from the printed value, the number of
significant digits printed (NA: all), the largest difference beyond the rounding of the last digit,
and its tolerance. Integers are exact.
"""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.components import cohort_relationship, principal_components
from oracles.population import lostruct_distances, with_swapped_alleles
from oracles.reference import hwe_exact as exact_fraction
from scenes.people import encode_alone, measure_alone
from sklearn.decomposition import PCA

from popdesic.cohort.hardy_weinberg_cpu import hwe_exact
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.core.tables import read_table
from popdesic.distance.matrix import metric_distances
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.io.bed import open_bed, read_bim, read_fam
from popdesic.io.genotypes import BED_MAGIC, MISSING, pack_bed, unpack_bed
from popdesic.io.vcf import stream_sites
from popdesic.population.allele_counts import load_counts
from popdesic.population.allele_sums_cpu import pair_sums
from popdesic.population.counts import ENDINGS, count_cohort
from popdesic.population.local_structure import window_components, window_distances
from popdesic.population.runs import RunLimits
from popdesic.population.sum_names import PAIR_SUMS

pytestmark = [pytest.mark.shared, pytest.mark.peer]

SETS = {
    "hapmap3_957": "hapmap3_957/hapmap3_957.vcf.gz",
    "hapmap279": "hapmap279/hapmap279.vcf.gz",
    "kg1_chr22_564": "kg1_chr22_564/kg1_chr22_dev564.vcf.gz",
    "mice1814": "mice1814/hs_mice.vcf.gz",
    "asthma1578": "asthma1578/asthma.vcf.gz",
    "bitepi_example123": "gametes/bitepi_example123.vcf.gz",
}
FLOAT, HWE = 1e-6, 1e-8
ROWS: list[tuple] = []
#: Larger matrices would take scikit-learn minutes.
MOST_VALUES = 12_000_000


@pytest.fixture(scope="module", autouse=True)
def table(tmp_path_factory):
    """Collects the measurements of the tests below and writes them."""
    yield
    path = os.environ.get("POPDESIC_CONCORDANCE") or tmp_path_factory.getbasetemp() / (
        "concordance.tsv"
    )
    columns = ["data", "quantity", "peer", "values", "largest_difference", "digits_printed"]
    measured = pd.DataFrame(ROWS, columns=[*columns, "beyond_rounding", "tolerance"])
    measured = measured.astype({"digits_printed": "Int64"})
    measured.to_csv(path, sep="\t", index=False, float_format="%.3g", na_rep="NA")
    print(f"\n{measured.to_string(index=False)}\n{path}")


def record(data: str, quantity: str, peer: str, ours, theirs, tolerance: float, digits: int = 0):
    """Record and check the largest deviation; `digits`: digits that the peer prints, 0 for all."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    assert ours.size
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    deviation = np.nan_to_num(np.abs(ours - theirs))
    largest = deviation.max()
    if digits:
        with np.errstate(divide="ignore", invalid="ignore"):
            place = np.floor(np.log10(np.abs(theirs))) - digits + 1
        rounding = np.where(theirs != 0, 0.5 * 10.0 ** np.nan_to_num(place, neginf=-99), 0)
        deviation = np.maximum(deviation - 1.000001 * rounding, 0)
    row = (data, quantity, peer, ours.size, largest, digits or None, deviation.max(), tolerance)
    ROWS.append(row)
    assert deviation.max() <= tolerance, (data, quantity, deviation.max())


def plink(program: str, prefix: Path, out: Path, *arguments: str) -> None:
    command = [program, "--bfile", prefix, "--allow-extra-chr", "--out", out, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def keep_sites(prefix: Path, rows: np.ndarray, out: Path) -> Path:
    """Reduce a .bed to these sites."""
    Path(f"{out}.bed").write_bytes(BED_MAGIC + np.ascontiguousarray(open_bed(prefix)[rows]).data)
    bim = read_bim(prefix).iloc[rows]
    bim = bim.assign(id=[f"s{k}" for k in range(len(bim))])
    bim.to_csv(f"{out}.bim", sep="\t", header=False, index=False)
    Path(f"{out}.fam").write_bytes(Path(f"{prefix}.fam").read_bytes())
    return out


def distances(found: dict[str, np.ndarray], metric: str) -> np.ndarray:
    return metric_distances(
        *(found[name] for name in ("squared", "called", "ibs0")),
        metric=metric,
        n_sites=int(found["n_sites"]),
        min_called=1,
    )


@pytest.fixture(
    scope="module",
    params=[pytest.param(k, marks=pytest.mark.slow) if k == "mice1814" else k for k in SETS],
)
def data(request, shared_data, tmp_path_factory, require_command) -> tuple[str, Path]:
    """Name of a data set, and a folder with its autosomal sites as raw.* and encoded."""
    require_command("plink1.9")
    require_command("plink2")
    folder = tmp_path_factory.mktemp(request.param)
    source = shared_data / SETS[request.param]
    ingest_cohort(source, folder / "all", haploid="diploidize", threads=2)
    bim, n_samples = read_bim(folder / "all"), len(read_fam(folder / "all"))
    genotypes = unpack_bed(open_bed(folder / "all"), n_samples)
    called = (genotypes != MISSING).any(axis=1)
    # PLINK treats X separately (females alone) and excludes it from distances.
    kept = np.flatnonzero(called & (bim.chrom != "X"))
    keep_sites(folder / "all", kept, folder / "raw")
    bim.iloc[kept].to_csv(folder / "own_ids.bim", sep="\t", header=False, index=False)
    encode_alone(folder / "raw", folder)
    return request.param, folder


def test_missingness_and_frequencies(data):
    name, folder = data
    plink("plink2", folder / "raw", folder / "p", "--missing", "--freq", "--nonfounders")
    ours = read_table(folder / "samples.qc")
    theirs = pd.read_csv(folder / "p.smiss", sep="\t")
    record(name, "missing by sample", "plink2", ours.n_missing, theirs.MISSING_CT, 0)
    sites = read_table(folder / "sites.qc")
    counts = sites[["n_ref", "n_het", "n_alt", "n_missing"]].to_numpy(np.int64)
    theirs = pd.read_csv(folder / "p.vmiss", sep="\t")
    record(name, "missing by site", "plink2", counts[:, 3], theirs.MISSING_CT, 0)
    theirs = pd.read_csv(folder / "p.afreq", sep="\t")
    called = counts[:, :3].sum(axis=1)
    record(name, "called alleles", "plink2", 2 * called, theirs.OBS_CT, 0)
    af = (counts[:, 1] + 2 * counts[:, 2]) / (2 * called)
    record(name, "ALT frequency", "plink2", af, theirs.ALT_FREQS, FLOAT, digits=6)


def test_hardy_weinberg(data):
    name, folder = data
    plink("plink2", folder / "raw", folder / "p", "--hardy", "midp", "--nonfounders")
    theirs = pd.read_csv(folder / "p.hardy", sep="\t")
    sites = read_table(folder / "sites.qc")
    counts = sites[["n_ref", "n_het", "n_alt"]].to_numpy(np.int64)
    flipped = (sites.alt != theirs.A1).to_numpy()
    homozygous = theirs[["HOM_A1_CT", "TWO_AX_CT"]].to_numpy()
    homozygous[flipped] = homozygous[flipped][:, ::-1]
    found = np.stack([homozygous[:, 1], theirs.HET_A1_CT, homozygous[:, 0]], axis=1)
    record(name, "genotype counts", "plink2", counts, found, 0)
    varies = (counts[:, 1] > 0) | ((counts[:, 0] > 0) & (counts[:, 2] > 0))
    ours = hwe_exact(*counts.T)
    assert (ours[~varies] == 1).all()  # by our definition; the formula of the mid-p gives 0.5
    record(name, "HWE mid-p", "plink2", ours[varies], theirs.MIDP[varies], HWE, digits=6)
    some = np.random.default_rng(1).choice(np.flatnonzero(varies), min(200, varies.sum()), False)
    exact = [float(exact_fraction(*map(int, counts[k]))) for k in some]
    record(name, "HWE mid-p, 200 sites", "exact fractions", ours[some], exact, HWE)


def test_bcftools(data, shared_data, require_command):
    """The same file read by htslib: allele counts, missingness, HWE without mid-p."""
    require_command("bcftools")
    name, folder = data
    view = ["bcftools", "view", "-m2", "-M2", "-v", "snps", "-Ou", shared_data / SETS[name]]
    tags = ["bcftools", "+fill-tags", "-", "-Ou", "--", "-t", "AN,AC,NS,HWE"]
    columns = ["chrom", "pos", "id", "ref", "alt", "an", "ac", "ns", "hwe"]
    form = "%CHROM\t%POS\t%ID\t%REF\t%ALT\t%AN\t%AC\t%NS\t%HWE\n"
    with subprocess.Popen(view, stdout=subprocess.PIPE) as viewed:
        tagged = subprocess.run(tags, stdin=viewed.stdout, check=True, capture_output=True)
    query = ["bcftools", "query", "-f", form]
    text = subprocess.run(query, input=tagged.stdout, check=True, capture_output=True).stdout
    theirs = pd.read_csv(io.BytesIO(text), sep="\t", names=columns, dtype=str)
    key = columns[:5]
    sites = read_table(folder / "sites.qc")[[*key, "n_ref", "n_het", "n_alt", "n_missing"]]
    sites["id"] = read_bim(folder / "own_ids").id.to_numpy()
    both = sites.merge(theirs.drop_duplicates(key), on=key, how="left", validate="many_to_one")
    counts = both[["n_ref", "n_het", "n_alt", "n_missing"]].to_numpy(np.int64)
    called = counts[:, :3].sum(axis=1)
    record(name, "called samples by site", "bcftools", called, both.ns.astype(int), 0)
    record(name, "called alleles", "bcftools", 2 * called, both.an.astype(int), 0)
    record(name, "ALT alleles", "bcftools", counts[:, 1] + 2 * counts[:, 2], both.ac.astype(int), 0)
    ours = hwe_exact(*counts[:, :3].T, midp=False)
    # bcftools stores tags in single precision, 6e-8 of their value.
    record(name, "HWE p", "bcftools", ours, both.hwe.astype(float), FLOAT, digits=6)


def test_distances_with_2_percent_masked(data, tmp_path):
    """With random missing genotypes in every data set."""
    name, folder = data
    n = len(read_fam(folder / "raw"))
    genotypes = unpack_bed(open_bed(folder / "raw"), n)
    genotypes[np.random.default_rng(2).random(genotypes.shape) < 0.02] = MISSING
    for end in (".bim", ".fam"):
        (tmp_path / f"raw{end}").write_bytes((folder / f"raw{end}").read_bytes())
    (tmp_path / "raw.bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
    encode_alone(tmp_path / "raw", tmp_path)
    arguments = ["--distance", "square", "bin", "ibs", "flat-missing"]
    plink("plink1.9", tmp_path / "raw", tmp_path / "p", *arguments)
    theirs = np.fromfile(tmp_path / "p.mibs.bin").reshape(n, n)
    off = ~np.eye(n, dtype=bool)
    ours = 1 - distances(measure_alone(tmp_path, "ibs"), "ibs")
    record(name, "IBS, 2 % masked", "plink1.9 flat-missing", ours[off], theirs[off], FLOAT)


def test_distances(data):
    name, folder = data
    found = measure_alone(folder, "ibs")
    off = ~np.eye(len(found["called"]), dtype=bool)
    genotypes = unpack_bed(open_bed(folder / "raw"), len(off))
    g = np.where(genotypes == MISSING, 0, genotypes).astype(np.float64).T
    c = (genotypes != MISSING).astype(np.float64).T
    squared = (g * g) @ c.T + c @ (g * g).T - 2 * g @ g.T
    record(name, "squared distance", "float64 products", found["squared"], squared, 0)
    record(name, "called in both", "float64 products", found["called"], c @ c.T, 0)
    for options, metric in ((["ibs"], "ibs"), ([], "manhattan")):
        arguments = ["--distance", "square", "bin", "flat-missing", *options]
        plink("plink1.9", folder / "raw", folder / "p", *arguments)
        theirs = np.fromfile(folder / ("p.mibs.bin" if options else "p.dist.bin"))
        theirs = theirs.reshape(off.shape)
        ours = distances(found, metric)
        ours = 1 - ours if options else ours / np.maximum(theirs, 1)
        theirs = theirs if options else np.where(theirs > 0, 1.0, 0.0)
        quantity = "IBS" if options else "allele count distance, relative"
        if not options and (ours[off] == 0).any():
            theirs[off & (ours == 0)] = 0.0
        record(name, quantity, "plink1.9 flat-missing", ours[off], theirs[off], FLOAT)
    complete = np.flatnonzero((genotypes != MISSING).all(axis=1))
    if 0 < len(complete) < len(genotypes):
        (folder / "complete").mkdir(exist_ok=True)
        raw = keep_sites(folder / "raw", complete, folder / "complete/raw")
        encode_alone(raw, folder / "complete")
        found = measure_alone(folder / "complete", "ibs")
        plink("plink1.9", raw, folder / "p", "--distance", "square", "bin")
        theirs = np.fromfile(folder / "p.dist.bin").reshape(off.shape)
        ours = found["squared"] - 2 * found["ibs0"]
        record(name, "allele count distance, complete sites", "plink1.9", ours, theirs, 0)


def test_principal_components(data):
    name, folder = data
    af = load_panel(folder / "panel.tsv")[0].af.to_numpy()
    related = cohort_relationship([folder / "genotypes"], af)
    n = len(related)
    scores = principal_components(related, np.ones(n, bool), 4)[0]
    genotypes = unpack_bed(open_bed(folder / "genotypes"), n).astype(np.float64).T
    varies = (af > 0) & (af < 1)
    missing = genotypes == MISSING
    z = (genotypes - 2 * af)[:, varies] / np.sqrt(2 * af * (1 - af))[varies]
    z[missing[:, varies]] = 0
    if not missing.any() and z.size < MOST_VALUES:
        # The centred matrix itself; scores agree up to one common scale and a sign each.
        expected = PCA(4, svd_solver="full").fit_transform(z)
        expected *= np.sign((expected * scores).sum(axis=0))
        scale = np.linalg.norm(expected[:, 0]) / np.linalg.norm(scores[:, 0])
        size = np.abs(expected[:, 0]).max()
        record(name, "PCA scores", "scikit-learn", scale * scores / size, expected / size, FLOAT)
    plink("plink2", folder / "raw", folder / "p", "--pca", "4", "--nonfounders")
    theirs = pd.read_csv(folder / "p.eigenvec", sep="\t").filter(like="PC").to_numpy()
    values = np.loadtxt(folder / "p.eigenval")
    r = np.array([abs(np.corrcoef(scores[:, k], theirs[:, k])[0, 1]) for k in range(4)])
    # Components of nearly equal variance mix freely, so only distinct ones can agree.
    distinct = np.r_[True, values[1:] / values[:-1] < 0.8].cumprod().astype(bool)

    record(name, "PCA, 1 - |r|", "plink2", 1 - r[distinct], np.zeros(distinct.sum()), FLOAT)


def test_published_identity_by_state(data, shared_data, tmp_path):
    """Matrices published by SNPRelate, on the sites that they were made from."""
    name, folder = data
    if name == "hapmap3_957":
        published = "ref_SNPRelate_IBS.tsv.gz"
    elif name == "hapmap279":
        published = "ref_all279_IBS.tsv.gz"
        text = {"sep": "\t", "dtype": str}
        used = pd.read_csv(shared_data / name / "ref_all279_snp_ids.tsv.gz", **text)
        used = used.merge(pd.read_csv(shared_data / name / "snprelate_snp_ids.tsv", **text))
        known = set(zip(used.rs, used.chrom, used.pos, strict=True))
        batches = list(stream_sites(shared_data / SETS[name], haploid="diploidize"))
        keys = [key for b in batches for key in zip(b.id, b.chrom, map(str, b.pos), strict=True)]
        rows = [key in known for key in keys]
        genotypes = np.concatenate([batch.genotypes for batch in batches])[rows]
        assert len(genotypes) == len(used)  # one site is there twice; ingest would drop the second
        (tmp_path / "raw.bed").write_bytes(BED_MAGIC + pack_bed(genotypes).tobytes())
        lines = [f"1\ts{k}\t0\t{k + 1}\tA\tC\n" for k in range(len(genotypes))]
        (tmp_path / "raw.bim").write_text("".join(lines))
        (tmp_path / "raw.fam").write_bytes((folder / "raw.fam").read_bytes())
        encode_alone(tmp_path / "raw", tmp_path)
        folder = tmp_path
    else:
        pytest.skip("There is no published matrix of this set.")
    theirs = pd.read_csv(shared_data / name / published, sep="\t", index_col=0)
    names = list(read_fam(folder / "genotypes")["sample"])
    ours = 1 - distances(measure_alone(folder, "ibs"), "ibs")
    record(name, "IBS", "SNPRelate", ours, theirs.loc[names, names].to_numpy(), FLOAT, digits=9)


def test_the_check_can_fail():
    with pytest.raises(AssertionError):
        record("none", "none", "none", [0.1234567], [0.1234], 1e-6, digits=6)
    ROWS.pop()


def test_populations(data, shared_data, tmp_path):
    """Heterozygosity, F_ST of two populations and runs of homozygosity."""
    name, folder = data
    fam = read_fam(folder / "genotypes")
    names = list(fam["sample"])
    sheet = (shared_data / SETS[name]).parent / "samples.tsv"
    labels = np.where(np.arange(len(names)) % 2, "odd", "even")
    if sheet.exists():
        table = pd.read_csv(sheet, sep="\t", dtype=str)
        if "population" in table:
            known = table.set_index(table.columns[0]).population
            labels = known.reindex(names).fillna("NA").to_numpy()
    rows = zip(names, labels, strict=True)
    lines = ["sample\tcohort\tpopulation", *(f"{s}\tone\t{p}" for s, p in rows)]
    (tmp_path / "samples.tsv").write_text("\n".join(lines) + "\n")
    count_cohort(
        *(folder, folder / "panel.tsv", tmp_path / "samples.tsv"),
        [tmp_path / f"one{ending}" for ending in ENDINGS],
        cohort="one",
        column="population",
        x_contigs=[],
        runs=RunLimits(),
        backend=lambda need: CpuBackend(1),
    )
    own = read_table(tmp_path / "one.tsv")
    keep = ["--allow-no-sex", "--homozyg", "--het", "small-sample"]
    plink("plink1.9", folder / "genotypes", tmp_path / "p", *keep)
    theirs = pd.read_csv(tmp_path / "p.het", sep=r"\s+")
    # PLINK leaves out sites that do not vary, which have no heterozygote.
    hets = theirs["N(NM)"] - theirs["O(HOM)"]
    title = "heterozygous sites by sample"
    record(name, title, "plink1.9 --het", own.heterozygous.astype(int), hets, 0)
    runs = pd.read_csv(tmp_path / "p.hom", sep=r"\s+", dtype={"IID": str})
    found = read_table(tmp_path / "one.runs.tsv")
    for kind, ours, peer in (
        ("runs of homozygosity", found["sample"], runs.IID),
        ("sites in runs", found["sample"], runs.IID),
    ):
        values = [found.sites.astype(int), runs.NSNP] if kind.startswith("sites") else [1, 1]
        counts = [
            pd.Series(value, index=ids.index).groupby(ids).sum().reindex(names).fillna(0)
            for value, ids in zip(values, (ours, peer), strict=True)
        ]
        record(name, kind, "plink1.9 --homozyg", *counts, 0)
    counts = load_counts([tmp_path / "one.npz"])
    largest = sorted(np.argsort(-counts.people, kind="stable")[:2].tolist())
    pair = [counts.names[k] for k in largest]
    chosen = [(s, p) for s, p in zip(names, labels, strict=True) if p in pair]
    family = dict(zip(names, fam.family, strict=True))
    lines = [f"{family[s]} {s} {p}\n" for s, p in chosen]
    (tmp_path / "w").write_text("".join(lines))
    within = ["--fst", "--within", tmp_path / "w", "--keep", tmp_path / "w"]
    plink("plink1.9", folder / "genotypes", tmp_path / "f", *within)
    theirs = pd.read_csv(tmp_path / "f.fst", sep="\t").FST.to_numpy()
    part = [np.ascontiguousarray(a[:, largest]) for a in (counts.alleles, counts.genotypes)]
    starts = np.arange(len(theirs) + 1)
    sums = pair_sums(*part, np.zeros(len(theirs), bool), starts)[:, 0]
    a, b, c = (sums[:, PAIR_SUMS.index(letter)] for letter in "abc")
    with np.errstate(invalid="ignore"):
        ours = np.where(a + b + c == 0, np.nan, a / (a + b + c))
    known = np.isfinite(theirs)
    title = "Weir-Cockerham F_ST by site"
    record(name, title, "plink1.9 --fst", ours[known], theirs[known], FLOAT, digits=6)


def test_local_structure(data):
    """Distances of windows of 50 sites of at most 150 people, missing calls filled with 0."""
    name, folder = data
    n = len(read_fam(folder / "genotypes"))
    rows = np.asarray(open_bed(folder / "genotypes")[:1000])
    genotypes = np.maximum(unpack_bed(rows, n), 0)[:, : min(n, 150)]
    windows = [genotypes[k : k + 50] for k in range(0, len(genotypes) - 49, 50)]
    both = [with_swapped_alleles(window).astype(np.int8) for window in windows]
    found = [window_components(window) for window in both]
    kept = [k for k, (values, _) in enumerate(found) if np.isfinite(values).all()]
    ours = window_distances(
        np.array([found[k][0] for k in kept]), np.array([found[k][1] for k in kept])
    )
    theirs = lostruct_distances([both[k] for k in kept])
    record(name, "distances of windows", "formula of lostruct", ours, theirs, FLOAT)
