"""FILTER, QUAL, and limits of depth, quality and allele balance, in all formats that state them."""

import itertools
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from bio2zarr import vcf as vcf2zarr

from popdesic.cohort.callable import BLOCKS, DROPPED, load_beside
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.call_filters import CallFilters
from popdesic.io.formats import require_readable
from popdesic.io.genotypes import unpack_bed

N_SAMPLES, N_SITES = 7, 200
HEADER = """##fileformat=VCFv4.2
##contig=<ID=1,length=1000000>
##FILTER=<ID=LowQual,Description="x">
##FILTER=<ID=q10,Description="x">
##INFO=<ID=END,Number=1,Type=Integer,Description="x">
##INFO=<ID=X,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=MIN_DP,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=GT,Number=1,Type=String,Description="x">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="x">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="x">
##FORMAT=<ID=GP,Number=G,Type=Float,Description="x">
##FORMAT=<ID=DS,Number=A,Type=Float,Description="x">
#CHROM	POS	ID	REF	ALT	QUAL	FILTER	INFO	FORMAT
"""
FILTERS = [
    CallFilters(),
    CallFilters(("q10",)),
    CallFilters(("*",)),
    CallFilters(min_qual=30),
    CallFilters(min_gq=20),
    CallFilters(min_dp=5, max_dp=20),
    CallFilters(("LowQual", "q10"), 10, 15, 4, 22, 0.25),
]


def draw(seed: int = 1) -> list[list[str]]:
    """Rows of a VCF: QUAL, FILTER and all fields of calls, some unknown, some fields left off."""
    rng = np.random.default_rng(seed)
    rows = []
    for site in range(N_SITES):
        calls = []
        for _ in range(N_SAMPLES):
            gt = rng.choice(["0/0", "0/1", "1|1", "0|0", "./.", "1/0"])
            reads = rng.poisson(6, 2) * rng.integers(0, 2, 2)
            depth = rng.choice([str(reads.sum()), ".", "0"], p=[0.8, 0.1, 0.1])
            balance = rng.choice([f"{reads[0]},{reads[1]}", "."], p=[0.9, 0.1])
            fields = [gt, balance, depth, rng.choice([str(rng.integers(0, 99)), "."])]
            calls.append(":".join(fields[: rng.choice([4, 4, 4, 2])]))
        alt = rng.choice(["C", "G", "GT", "."], p=[0.5, 0.3, 0.1, 0.1])
        if alt == ".":
            calls = [call.replace("1", "0", 2) if call[:3] != "./." else call for call in calls]
            calls = [call.replace(",", "") for call in calls]
        qual = rng.choice(["50", "12.5", ".", "1e1"])
        marks = rng.choice(["PASS", ".", "LowQual", "q10", "LowQual;q10"])
        row = ["1", str(10 * site + 1), ".", "A", alt, qual, marks, ".", "GT:AD:DP:GQ", *calls]
        if rng.random() < 0.3:  # an imputed record
            key = rng.choice(["GP", "DS"])
            row[8] = f"GT:{key}:AD:DP:GQ"
            value = {"GP": "0.9,.1,0", "DS": "1e-1"}[key] if alt != "." else "."
            for k in range(9, len(row)):
                gt, _, rest = row[k].partition(":")
                row[k] = f"{gt}:{rng.choice([value, '.'])}:{rest}"
        rows.append(row)
    return rows


def number(text: str) -> float:
    return np.nan if text == "." else float(text)


def expected(rows: list[list[str]], filters: CallFilters):
    """Positions and genotypes by the rules, one call at a time, and counts by name."""
    counts: dict = {}
    positions, genotypes = [], []

    def count(name: str) -> None:
        counts[name] = counts.get(name, 0) + 1

    for row in rows:
        if len(row[4]) > 1:
            continue
        failed = [name for name in row[6].split(";") if name not in ("PASS", ".")]
        failed = [] if "*" in filters.accepted else [f for f in failed if f not in filters.accepted]
        if failed:
            count("filtered")
            for name in failed:
                count(f"filter {name}")
            continue
        if number(row[5]) < filters.min_qual:
            count("low_qual")
            continue
        found, with_alt = [], False
        before = sum(counts.get(name, 0) for name in REASONS)
        for sample, call in enumerate(row[9:]):
            told = dict(zip(row[8].split(":"), call.split(":"), strict=False))
            gt, ad, dp, gq = (told.get(name, ".") for name in ("GT", "AD", "DP", "GQ"))
            imputed = "|" in gt or any(told.get(name, ".") != "." for name in ("GP", "DS"))
            genotype = -1 if "." in gt else gt.count("1")
            with_alt |= genotype > 0
            depth, quality = number(dp), number(gq)
            reads = [number(one) for one in ad.split(",")]
            reason = None
            if genotype == 0 and depth == 0 and not imputed:
                reason = "no_depth"
            elif genotype >= 0 and filters.min_dp and depth < filters.min_dp:
                reason = "low_dp"
            elif genotype >= 0 and filters.max_dp and depth > filters.max_dp:
                reason = "high_dp"
            elif genotype >= 0 and filters.min_gq and quality < filters.min_gq:
                reason = "low_gq"
            elif genotype == 1 and len(reads) == 2 and sum(reads) > 0:
                share = min(reads) / sum(reads)
                reason = "unbalanced" if share < filters.min_allele_balance else None
            if reason:
                count(reason)
                count(f"sample {sample}")
                genotype = -1
            found.append(genotype)
        if sum(counts.get(name, 0) for name in REASONS) > before:
            count("sites_with_removed_calls")
        if with_alt and max(found) == 0:
            count("made_reference")
        positions.append(int(row[1]))
        genotypes.append(found)
    return positions, np.array(genotypes, np.int8), counts


REASONS = ("no_depth", "low_dp", "high_dp", "low_gq", "unbalanced")


def write(folder: Path, rows: list[list[str]]) -> dict[str, Path]:
    """The same records as VCF, BCF and VCF-Zarr."""
    names = "\t".join(f"S{k}" for k in range(N_SAMPLES))
    text = HEADER.rstrip("\n") + f"\t{names}\n" + "".join("\t".join(row) + "\n" for row in rows)
    (folder / "in.vcf").write_text(text)
    commands = ("bcftools view -Ob -o in.bcf in.vcf", "bgzip -kf in.vcf", "tabix -f in.vcf.gz")
    for command in commands:
        subprocess.run(command.split(), cwd=folder, check=True)
    vcf2zarr.convert([folder / "in.vcf.gz"], folder / "in.vcz", worker_processes=0)
    return {name: folder / f"in.{name}" for name in ("vcf", "bcf", "vcz")}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    rows = draw()
    return rows, write(tmp_path_factory.mktemp("marks"), rows)


def test_samples_have_their_removed_calls(files, tmp_path):
    rows, sources = files
    ingest_cohort(sources["vcf"], tmp_path / "raw", filters=FILTERS[-1])
    _, _, counts = expected(rows, FILTERS[-1])
    tables = tmp_path / "sites.tsv", tmp_path / "samples.tsv"
    summarize_cohort(tmp_path / "raw", {}, *tables, min_sample_call_rate=0.0, excluded=["S2"])
    table = read_table(tables[1])
    assert table["sample"].tolist() == [f"S{k}" for k in range(N_SAMPLES) if k != 2]
    assert table.n_removed.astype(int).tolist() == [
        counts.get(f"sample {k}", 0) for k in range(N_SAMPLES) if k != 2
    ]
    assert (table.n_removed != "0").any()


@pytest.mark.parametrize("kind", ["vcf", "bcf", "vcz"])
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_records_and_calls_by_the_rules(files, tmp_path, kind, filters):
    rows, sources = files
    told = ingest_cohort(sources[kind], tmp_path / "raw", filters=filters)
    positions, genotypes, counts = expected(rows, filters)
    assert read_bim(tmp_path / "raw").pos.tolist() == positions
    np.testing.assert_array_equal(unpack_bed(open_bed(tmp_path / "raw"), N_SAMPLES), genotypes)
    written = json.loads((tmp_path / "raw.json").read_text())
    samples = {f"S{k}": n for k in range(N_SAMPLES) if (n := counts.pop(f"sample {k}", 0))}
    assert written["removed_calls"] == samples
    for name, n in counts.items():
        assert written["counts"][name] == n, name
    # A site whose ALT calls a limit removed still shows that the file lists it for them.
    same = (genotypes.max(axis=1) == 0).sum() - counts.get("made_reference", 0)
    assert written["reference_only"] == same
    found = told.decode
    assert found.missing + found.phased + found.unphased == genotypes.size
    assert found.missing == int((genotypes < 0).sum())
    assert found.records == found.snps + sum(found.dropped().values()) == N_SITES
    # Nothing is known of a site at a record that was dropped.
    lost = {int(row[1]) for row in rows} - set(positions)
    covered = load_beside(tmp_path / "raw", DROPPED).covers(
        ["1"] * N_SITES, np.arange(N_SITES) * 10 + 1
    )
    assert {10 * k + 1 for k in np.flatnonzero(covered).tolist()} == lost


def test_the_log_says_what_was_dropped(files, tmp_path):
    rows, sources = files
    remarks = ingest_cohort(sources["vcf"], tmp_path / "raw").remarks
    counts = expected(rows, CallFilters())[2]
    assert f"{counts['filtered']} of {N_SITES} records" in remarks[0]
    assert f"LowQual {counts['filter LowQual']}, q10 {counts['filter q10']}" in remarks[0]
    assert f"{counts['no_depth']} calls 0/0" in remarks[1]


def test_imputed_calls_keep_genotypes_without_depth(tmp_path):
    """A phased call, and one with GP or DS, does not rest on the reads of its own sample."""
    calls = [
        "GT:DP\t0|0:0\t0/0:0\t0|1:0\t1/1:0\t.|.:0\t0|0:9\t0/0:.",
        "GT:GP:DP\t0/0:1,0,0:0\t0/0:.:0\t0/1:0,1,0:0\t0/0:.9,.1,0:0\t./.:.:0\t0/0:.:9\t0/0",
        "GT:DP:DS\t0/0:0:0.02\t0/0:0:.\t0/0:0\t0/0:0:0\t0|0:0:.\t0/0:9:0\t0/0:00:1e-3",
    ]
    rows = [
        ["1", str(k + 1), ".", "A", "C", ".", ".", ".", *call.split("\t")]
        for k, call in enumerate(calls)
    ]
    wanted = [[0, -1, 1, 2, -1, 0, 0], [0, -1, 1, 0, -1, 0, 0], [0, -1, -1, 0, 0, 0, 0]]
    for source in write(tmp_path, rows).values():
        counts = ingest_cohort(source, tmp_path / "raw").as_dict()
        assert unpack_bed(open_bed(tmp_path / "raw"), N_SAMPLES).tolist() == wanted
        assert counts["no_depth"] == 4
        limited = ingest_cohort(source, tmp_path / "raw", filters=CallFilters(min_dp=1)).as_dict()
        assert (limited["no_depth"], limited["low_dp"]) == (4, 10)  # the user's limit holds for all


ORDERS = ("GT:DP", "GT:AD:DP:GQ:PL", "GT:PL:GQ:DP", "DP:GT:GQ", "GQ:GT:DP", "GT:GP:DP", "GT:DS:DP")
#: Values of each field, many of them beginning with the 0 that is looked for.
VALUES = {
    "DP": ["0", "0", "00", "07", "12", "."],
    "GQ": ["0", "00", "99", "."],
    "AD": ["0,0", "0,12", "12,0", "."],
    "PL": ["0,0,0", "0,30,300", "300,30,0", "."],
    "GP": ["0,1,0", ".", "."],
    "DS": ["0", ".", "."],
}


@pytest.mark.parametrize("order", ORDERS)
def test_depth_of_zero_wherever_it_stands(tmp_path, order):
    """Calls 0/0 without reads in fields of any order and width, against one call at a time."""
    rng = np.random.default_rng(ORDERS.index(order))
    n_samples, n_sites = 90, 40
    keys = order.split(":")
    genotypes = ["0/0", "0/0", "0|0", "0/1", "./.", "1/1", "0/.", "0"]
    rows = []
    for site in range(n_sites):
        calls = []
        for _ in range(n_samples):
            drawn = {key: rng.choice(VALUES[key]) for key in keys if key != "GT"}
            drawn["GT"] = rng.choice(genotypes)
            call = [drawn[key] for key in keys]
            calls.append(":".join(call[: rng.integers(keys.index("GT") + 1, len(keys) + 1)]))
        rows.append(["1", str(site + 1), ".", "A", "C", ".", ".", ".", order, *calls])
    names = [f"S{k}" for k in range(n_samples)]
    lines = [HEADER.rstrip("\n") + "\t" + "\t".join(names), *("\t".join(row) for row in rows)]
    pl = '##FORMAT=<ID=PL,Number=G,Type=Integer,Description="x">\n#CHROM'
    (tmp_path / "in.vcf").write_text(("\n".join(lines) + "\n").replace("#CHROM", pl))
    subprocess.run(["bcftools", "view", "-Ob", "-o", "in.bcf", "in.vcf"], cwd=tmp_path, check=True)
    wanted, n_removed, n_phased = [], 0, 0
    for row in rows:
        for call in row[9:]:
            told = dict(zip(keys, call.split(":"), strict=False))
            gt = told["GT"]
            genotype = -1 if "." in gt else gt.count("1")
            imputed = "|" in gt or any(told.get(key, ".") != "." for key in ("GP", "DS"))
            n_phased += gt == "0|0"
            if genotype == 0 and number(told.get("DP", ".")) == 0 and not imputed:
                n_removed, genotype = n_removed + 1, -1
            wanted.append(genotype)
    assert n_removed > 50
    for kind in ("vcf", "bcf"):
        found = ingest_cohort(tmp_path / f"in.{kind}", tmp_path / "raw", haploid="diploidize")
        read = unpack_bed(open_bed(tmp_path / "raw"), n_samples)
        np.testing.assert_array_equal(read.ravel(), wanted)
        counts = found.decode
        assert counts.no_depth == n_removed == counts.removed.sum()
        assert counts.missing == wanted.count(-1)
        assert counts.phased == n_phased


def test_filters_of_pgen(tmp_path):
    rows = [row for row in draw(2) if row[4] != "."]
    write(tmp_path, rows)
    command = ["plink2", "--vcf", "in.vcf", "--make-pgen", "--out", "in"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for filters in (CallFilters(), CallFilters(("q10",), min_qual=30)):
        ingest_cohort(tmp_path / "in.pgen", tmp_path / "raw", filters=filters)
        counts = json.loads((tmp_path / "raw.json").read_text())["counts"]
        positions, _, told = expected(rows, filters)
        assert read_bim(tmp_path / "raw").pos.tolist() == positions
        for name in ("filtered", "low_qual", "filter LowQual", "filter q10"):
            assert counts.get(name, 0) == told.get(name, 0)


def test_a_limit_needs_its_field(files, tmp_path):
    _, sources = files
    bare = tmp_path / "bare.vcf"
    text = sources["vcf"].read_text()
    bare.write_text("".join(x for x in text.splitlines(keepends=True) if "ID=GQ" not in x))
    require_readable(bare, CallFilters(min_dp=3, min_qual=3, min_allele_balance=0.2))
    require_readable(sources["vcz"], CallFilters(min_gq=3, min_allele_balance=0.2))
    with pytest.raises(UserError, match=r"bare\.vcf: ingest\.min_gq needs FORMAT/GQ"):
        require_readable(bare, CallFilters(min_gq=3))
    (tmp_path / "in.bim").write_text("1 s 0 5 A C\n")
    with pytest.raises(UserError, match=r"ingest\.min_dp needs FORMAT/DP"):
        require_readable(tmp_path / "in.bed", CallFilters(min_dp=3))


GVCF = """1\t1\t.\tA\t<NON_REF>\t.\t.\tEND=100\tGT:DP:GQ:MIN_DP\t0/0:30:60:9
1\t101\t.\tA\tG,<NON_REF>\t50\t.\t.\tGT:DP:GQ\t0/1:30:99
1\t102\t.\tA\tG,<NON_REF>\t50\t.\t.\tGT:DP:GQ\t1/2:30:99
1\t103\t.\tA\tG,T,<NON_REF>\t50\t.\t.\tGT:DP:GQ\t0/1:30:99
1\t104\t.\tAC\tA,<NON_REF>\t50\t.\t.\tGT:DP:GQ\t0/1:30:99
1\t106\t.\tC\t<*>\t.\t.\tX=1;END=150\tGT:DP:GQ:MIN_DP\t0/0:30:9:30
1\t151\t.\tC\t<NON_REF>\t.\t.\tEND=160\tGT:DP\t./.:0
1\t161\t.\tC\t<NON_REF>\t.\t.\tEND=170\tGT:DP:GQ:MIN_DP\t0/0:1:3:0
1\t171\t.\tC\t<NON_REF>\t.\tLowQual\tEND=180\tGT:DP:GQ:MIN_DP\t0/0:1:3:5
1\t181\t.\tC\t<NON_REF>\t.\t.\t.\tGT:DP\t0/0:4
"""


def test_reference_blocks_of_a_gvcf(tmp_path):
    """Blocks say where the sample is homozygous REF; records beside <NON_REF> are sites."""
    (tmp_path / "in.vcf").write_text(HEADER.rstrip("\n") + "\tS0\n" + GVCF)
    subprocess.run(["bcftools", "view", "-Ob", "-o", "in.bcf", "in.vcf"], cwd=tmp_path, check=True)
    wanted = {
        CallFilters(): {*range(1, 101), *range(106, 151), 181},
        CallFilters(min_dp=10): {*range(106, 151)},
        CallFilters(min_gq=20): {*range(1, 101), 181},
    }
    everywhere = np.arange(1, 200)
    for source, (filters, expected) in itertools.product(("in.vcf", "in.bcf"), wanted.items()):
        counts = ingest_cohort(tmp_path / source, tmp_path / "raw", filters=filters).as_dict()
        assert read_bim(tmp_path / "raw").pos.tolist() == [101, 102]
        assert unpack_bed(open_bed(tmp_path / "raw"), 1).tolist() == [[1], [-1]]
        assert (counts["reference_blocks"], counts["multiallelic"], counts["indel"]) == (6, 1, 1)
        blocks = load_beside(tmp_path / "raw", BLOCKS)
        covered = blocks.covers_samples(["chr1"] * len(everywhere), everywhere, np.array([0]))
        assert set(everywhere[covered[:, 0]].tolist()) == expected
        dropped = load_beside(tmp_path / "raw", DROPPED)
        assert everywhere[dropped.covers(["1"] * 199, everywhere)].tolist() == [103, 104, 105]


@pytest.mark.parametrize("kind", ["vcf", "bcf"])
def test_haploid_reference_blocks_by_contig(tmp_path, kind):
    rows = [
        [chrom, "1", ".", "A", "<NON_REF>", ".", ".", "END=50", "GT:DP", *["0:9"] * N_SAMPLES]
        for chrom in ("1", "X")
    ]
    rows.append(["X", "60", ".", "A", "C", ".", ".", ".", "GT:DP", *["1:9"] * N_SAMPLES])
    lines = "".join("\t".join(row) + "\n" for row in rows)
    names = "\t".join(f"S{k}" for k in range(N_SAMPLES))
    head = HEADER.replace("#CHROM", "##contig=<ID=X>\n#CHROM").rstrip("\n")
    (tmp_path / "in.vcf").write_text(f"{head}\t{names}\n{lines}")
    command = ["bcftools", "view", "-Ob", "-o", "in.bcf", "in.vcf"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ingest_cohort(tmp_path / f"in.{kind}", tmp_path / "raw", haploid={"X": "diploidize"})
    blocks, at = load_beside(tmp_path / "raw", BLOCKS), np.array([9, 9, 51])
    covered = blocks.covers_samples(["1", "X", "X"], at, np.arange(N_SAMPLES))
    assert covered.tolist() == [[k == 1] * N_SAMPLES for k in range(3)]
