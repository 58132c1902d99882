"""Indels, structural variants and multiallelic sites: one site an ALT, the same in every format."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import bcf_files as bcf

from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.match import SitePositions, find_repeated, match
from popdesic.core.errors import UserError
from popdesic.io.batches import DROPS, ONE_ALT, DecodeCounts
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.call_filters import CallFilters
from popdesic.io.genotypes import pack_bed, unpack_bed
from popdesic.io.plink import stream_plink
from popdesic.io.site_classes import CLASSES, open_record
from popdesic.io.vcf import stream_sites
from popdesic.study.configuration import fill_config

SAMPLES = ["a", "b", "c", "d", "e"]
HEADER = """\
##fileformat=VCFv4.2
##contig=<ID=1,length=1000000>
##FILTER=<ID=low,Description="low">
##INFO=<ID=SVLEN,Number=.,Type=Integer,Description="length">
##INFO=<ID=END,Number=1,Type=Integer,Description="end">
##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="reads">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"""
ALLELES = [
    *("A C", "A C,G", "A AT", "CAG C", "CAG CAT", "CAG TAT,C", "AT A,*", "G T,*", "G *", "A N"),
    *("GAT GA,GATAT,GAC", "T <DEL>", "T <DEL>,<INS>", "C [1:5[C", "C G,<NON_REF>", "CA C,<*>"),
    *("ACAC AC,ACACAC", "G GA,C", "GG TT", "A C,AT,<NON_REF>", "C <*>,CT,G"),
]


def write_records(path: Path, n_records: int, seed: int = 1) -> list[tuple]:
    """Write records of all kinds; return position, REF, ALT, FILTER, calls of each."""
    rng = np.random.default_rng(seed)
    lines, records = [], []
    for k in range(n_records):
        ref, alt = ALLELES[k % len(ALLELES)].split()
        n_alleles = 1 + alt.count(",") + 1
        numbers = [*map(str, range(n_alleles)), "."]
        calls = [str(rng.choice(["/", "|"])).join(rng.choice(numbers, 2).tolist()) for _ in SAMPLES]
        failed = "low" if k % 13 == 5 else "PASS"
        pos = 10 * k + 7
        info = f"END={pos + 40}" if k % 2 else ",".join(["SVLEN=-33", "12"][: n_alleles - 1])
        shown = [f"{','.join(['3'] * n_alleles)}:{call}" if k % 3 else call for call in calls]
        keys = "AD:GT" if k % 3 else "GT"
        fixed = ["1", str(pos), f"v{k}", ref, alt, ".", failed, info, keys]
        lines.append("\t".join([*fixed, *shown]) + "\n")
        records.append((pos, ref, alt.split(","), failed, calls, info))
    path.write_text(HEADER + "\t".join(SAMPLES) + "\n" + "".join(lines))
    return records


def expected_sites(records: list[tuple], classes: tuple[str, ...]) -> list[tuple]:
    """Sites of the records by their definition: one base after the other, one call at a time."""
    sites = []
    for pos, ref, alts, failed, calls, info in records:
        others = [str(k) for k, alt in enumerate(alts, 1) if alt in ("<NON_REF>", "<*>")]
        named = [alt for alt in alts if alt not in ("<NON_REF>", "<*>")]
        for number, alt in enumerate(alts, 1):
            if str(number) in others:
                continue
            start, one, two = pos, ref, alt
            if alt in ("<DEL>", "<INS>"):
                kind, one = "sv", "N"
                length = info[6:].split(",")[number - 1].strip("-") if "SVLEN" in info else "40"
                two = f"{alt[:-1]}:{length}>"
            elif set(ref + alt) - set("ACGT"):
                continue
            else:
                while len(one) > 1 and len(two) > 1 and one[-1] == two[-1]:
                    one, two = one[:-1], two[:-1]
                while len(one) > 1 and len(two) > 1 and one[0] == two[0]:
                    start, one, two = start + 1, one[1:], two[1:]
                kind = "snp" if len(one) == len(two) == 1 else "indel"
            plain = len(named) == 1 and len(ref) == len(alt) == 1
            if not plain and (not classes or (kind != "snp" and kind not in classes)):
                continue
            if (len(named) > 1 and "multiallelic" not in classes) or failed != "PASS":
                continue
            genotypes = []
            for call in calls:
                alleles = call.replace("|", "/").split("/")
                known = not set(alleles) & {".", *others}
                genotypes.append(alleles.count(str(number)) if known else -1)
            sites.append((start, one, two, genotypes))
    return sites


def read_sites(stream) -> list[tuple]:
    return [
        (int(batch.pos[k]), batch.ref[k], batch.alt[k], batch.genotypes[k].tolist())
        for batch in stream
        for k in range(len(batch.pos))
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("classes") / "in.vcf"
    return path, write_records(path, 4 * len(ALLELES))


@pytest.mark.parametrize(
    "classes",
    [c for n in range(4) for c in itertools.combinations(CLASSES[1:], n)],
    ids=lambda c: "+".join(c) or "snp",
)
def test_text_is_the_definition(written, classes):
    path, records = written
    filters, counts = CallFilters(classes=classes), DecodeCounts()
    found = read_sites(stream_sites(path, filters=filters, counts=counts, _chunk_bytes=1000))
    assert found == expected_sites(records, classes)
    assert counts.sites == len(found)
    read = sum(counts.opened[name] for name in (*ONE_ALT.values(), "split_records"))
    dropped = sum(getattr(counts, name) for name in DROPS)
    assert counts.records == len(records) == dropped + counts.snps + read
    whole = DecodeCounts()
    assert read_sites(stream_sites(path, filters=filters, counts=whole, threads=2)) == found
    assert whole.as_dict() == counts.as_dict()


def test_nothing_is_known_under_a_deletion_that_failed_a_filter(tmp_path):
    for failed, alt in itertools.product(("low", "PASS"), ("C", "C,CA")):
        path = tmp_path / "in.vcf"
        path.write_text(HEADER + f"a\n1\t5\t.\tCATT\t{alt}\t.\t{failed}\t.\tGT\t0/1\n")
        for classes in ((), ("indel",), CLASSES[1:]):
            counts = DecodeCounts()
            list(stream_sites(path, filters=CallFilters(classes=classes), counts=counts))
            under = {k for _, low, high in counts.dropped_at for k in range(low[0], high[0])}
            assert under == {4, 5, 6, 7}, (failed, alt, classes)


def test_lines_are_those_of_the_file(written):
    path, _ = written
    batches = stream_sites(path, filters=CallFilters(classes=CLASSES[1:]), _chunk_bytes=1000)
    lines = path.read_text().split("\n")
    for batch in batches:
        for line, name in zip(batch.line, batch.id, strict=True):
            assert lines[line - 1].split("\t")[2] == name


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("0/3", "'0/3' of sample 'b' names an allele"),
        ("0/1/2", "'0/1/2' of sample 'b' has more than two"),
        ("2", "'2' of sample 'b' is haploid"),
        ("x/2", "'x/2'"),
    ],
)
def test_a_bad_call_of_a_split_record_is_named(tmp_path, call, said):
    path = tmp_path / "in.vcf"
    fixed = "1\t5\tv\tA\tAT,C\t.\tPASS\t.\tGT"
    path.write_text(HEADER + "a\tb\n" + f"{fixed}\t0/1\t0/2\n" + f"{fixed}\t0/1\t{call}\n")
    with pytest.raises(UserError) as error:
        list(stream_sites(path, filters=CallFilters(classes=CLASSES[1:])))
    n_lines = HEADER.count("\n") + 3
    assert f"line {n_lines}" in str(error.value) and "'b'" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize("call", ["2", "0/2/1"])
def test_a_refused_call_of_a_split_record_of_bcf_is_as_in_the_file(tmp_path, call):
    calls = bcf.format_of(bcf.GT, bcf.calls_of(["0/1", call]))
    record = bcf.record_of([calls], n_samples=2, pos=5, alleles=("A", "AT", "C"))
    path = tmp_path / "in.bcf"
    path.write_bytes(bcf.bcf_of(bcf.header_of("ab"), [record] * 2))
    with pytest.raises(UserError, match=f"record 1: genotype '{call}' of sample 'b'"):
        list(stream_sites(path, filters=CallFilters(classes=CLASSES[1:])))


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools is not installed")
@pytest.mark.parametrize("classes", [(), ("indel",), CLASSES[1:]], ids="+".join)
def test_bcf_and_zarr_are_the_text(written, tmp_path, classes):
    path, _ = written
    filters, counts, others = CallFilters(classes=classes), DecodeCounts(), DecodeCounts()
    expected = read_sites(stream_sites(path, filters=filters, counts=counts))
    subprocess.run(["bcftools", "view", "-Ob", "-o", tmp_path / "in.bcf", path], check=True)
    found = stream_sites(tmp_path / "in.bcf", filters=filters, counts=others, _chunk_bytes=300)
    assert read_sites(found) == expected
    assert others.as_dict() == counts.as_dict()
    vcf2zarr = pytest.importorskip("bio2zarr.vcf")
    from popdesic.io.vcf_zarr import stream_zarr

    packed = tmp_path / "in.vcf.gz"
    subprocess.run(["bcftools", "view", "-Oz", "-o", packed, path], check=True)
    subprocess.run(["bcftools", "index", "-t", packed], check=True)
    vcf2zarr.convert([packed], tmp_path / "in.vcz", variants_chunk_size=9, worker_processes=0)
    others = DecodeCounts()
    assert read_sites(stream_zarr(tmp_path / "in.vcz", others, filters=filters)) == expected
    assert others.as_dict() == counts.as_dict()


@pytest.mark.parametrize("value", [bcf.descriptor(bcf.INT32, 1 << 28), bcf.descriptor(4, 1)])
def test_records_of_bcf_that_cannot_be_opened(tmp_path, value):
    """Without GT they are dropped, as in text; a length beyond the record is an error."""
    meta = bcf.META + '##INFO=<ID=SVLEN,Number=A,Type=Integer,Description="x",IDX=4>\n'
    genotypes = bcf.format_of(bcf.GT, bcf.calls_of(["0/1", "1/1"]))
    depth = bcf.format_of(bcf.DP, b"\x11\x05\x06")
    long, info = {"alleles": ("AT", "A")}, [bcf.typed([4]) + bcf.typed([-70])]
    records = [
        bcf.record_of([depth], n_samples=2, pos=3, **long),
        bcf.record_of([genotypes], n_samples=2, pos=5, **long),
        bcf.record_of([genotypes], n_samples=2, pos=7, alleles=("A", "<DEL>"), info=info),
    ]
    header, path = bcf.header_of("ab", meta), tmp_path / "in.bcf"
    filters = CallFilters(classes=CLASSES[1:])
    path.write_bytes(bcf.bcf_of(header, records))
    found = read_sites(stream_sites(path, filters=filters, counts=(counts := DecodeCounts())))
    assert found == [(5, "AT", "A", [1, 2]), (7, "N", "<DEL:70>", [1, 2])]
    assert (counts.indel, counts.records) == (1, 3)
    info = [bcf.typed([4]) + value]
    damaged = bcf.record_of([genotypes], n_samples=2, alleles=("A", "<DEL>"), info=info)
    path.write_bytes(bcf.bcf_of(header, [*records, damaged]))
    with pytest.raises(UserError, match="record 4: the record is damaged"):
        list(stream_sites(path, filters=filters))


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools is not installed")
def test_an_unknown_length_is_no_length_in_bcf(tmp_path):
    """BCF writes a point as the lowest integer of the type."""
    infos = ["SVLEN=.", "SVLEN=.;END=45", "SVLEN=-300", "SVLEN=.,-40000", "END=.", "SVLEN=-5,."]
    lines = (
        f"1\t{5 + k}\t.\tA\t<DEL>{',<DUP>' * (',' in info)}\t.\t.\t{info}\tGT\t0/1\t1/1\n"
        for k, info in enumerate(infos)
    )
    (tmp_path / "in.vcf").write_text(HEADER + "a\tb\n" + "".join(lines))
    command = ["bcftools", "view", "-Ob", "-o", tmp_path / "in.bcf", tmp_path / "in.vcf"]
    subprocess.run(command, check=True)
    filters = CallFilters(classes=CLASSES[1:])
    found = read_sites(stream_sites(tmp_path / "in.bcf", filters=filters))
    assert found == read_sites(stream_sites(tmp_path / "in.vcf", filters=filters))
    names = ["<DEL:39>", "<DEL:300>", "<DUP:40000>", "<DEL:5>"]
    assert [alt for _, _, alt, _ in found] == names


def test_lengths_of_a_store_are_those_of_the_text():
    """-1 is a point there, -2 fills short lists up; both are no length."""
    from popdesic.io.vcf_zarr import _infos

    lengths = np.array([[-300, -2], [-1, 500], [-1, -2], [2, 1]])
    found = _infos({"variant_END": np.array([-1, 45, 45, -1])}, lengths, 4)
    sites = [open_record(5, "A", ["<DEL>", "<DUP>"], one, CLASSES).sites for one in found]
    assert [[site.alt for site in one] for one in sites] == [
        ["<DEL:300>", "<DUP:300>"],
        ["<DEL:40>", "<DUP:500>"],
        ["<DEL:40>", "<DUP:40>"],
        ["<DEL:2>", "<DUP:1>"],
    ]


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools is not installed")
def test_split_is_that_of_bcftools(written):
    """`bcftools norm -m-` splits in the same way, but does not trim without a genome."""
    path, _ = written
    command = f"bcftools view -f PASS {path} | bcftools norm -m -any - | bcftools query -f"
    query = f"{command} '%POS %REF %ALT [ %GT]\\n' -"
    text = subprocess.run(query, shell=True, check=True, capture_output=True, text=True).stdout
    expected = Counter()
    for line in text.splitlines():
        pos, ref, alt, *calls = line.split()
        opened = open_record(int(pos), ref, [alt], "", ("indel",))
        for site in opened.sites:
            genotypes = [-1 if "." in call else call.count("1") for call in calls]
            expected[site.pos, site.ref, site.alt, *genotypes] += 1
    found = Counter(
        (pos, ref, alt, *genotypes)
        for pos, ref, alt, genotypes in read_sites(
            stream_sites(path, filters=CallFilters(classes=("indel", "multiallelic")))
        )
    )
    # A call of the allele that stands for any other is missing here, and 0 there.
    with_others = [
        k for k, alleles in enumerate(ALLELES) if "<NON_REF>" in alleles or "*>" in alleles
    ]
    without = [k for k in range(len(ALLELES)) if k not in with_others]

    def compared(sites: Counter) -> dict:
        return {key: n for key, n in sites.items() if key[0] // 10 % len(ALLELES) in without}

    assert compared(expected) == compared(found) and len(compared(found)) > 20


def test_structural_variants():
    sites = open_record(10, "A", ["<DEL>", "<dup:TANDEM>"], "SVLEN=-30,5;END=99", CLASSES).sites
    assert [(s.pos, s.ref, s.alt) for s in sites] == [
        (10, "N", "<DEL:30>"),
        (10, "N", "<DUP:TANDEM:5>"),
    ]
    assert open_record(10, "A", ["<DEL>"], "END=25", CLASSES).sites[0].alt == "<DEL:15>"
    assert open_record(10, "A", ["<INS:7>"], "", CLASSES).sites[0].alt == "<INS:7>"
    for info in ("", "END=10", "SVLEN=.", "SVLEN=0", "SVLEN=x"):
        assert open_record(10, "A", ["<INS>"], info, CLASSES) == ([], 1, True)
    for alt in ("A[2:5[", "]1:7]A", ".A", "A."):
        assert open_record(10, "A", [alt], "END=20", CLASSES) == ([], 1, False)


def write_plink(prefix: Path, sites: list[tuple[str, int, str, str]], genotypes) -> None:
    rows = pack_bed(np.array(genotypes, np.int8))
    prefix.with_suffix(".bed").write_bytes(b"\x6c\x1b\x01" + rows.tobytes())
    lines = (f"{c}\tv{k}\t0\t{pos}\t{alt}\t{ref}\n" for k, (c, pos, ref, alt) in enumerate(sites))
    prefix.with_suffix(".bim").write_text("".join(lines))
    names = (f"0\tS{k}\t0\t0\t0\t-9\n" for k in range(len(genotypes[0])))
    prefix.with_suffix(".fam").write_text("".join(names))


def test_plink_indels(tmp_path):
    sites = [("1", 5, "A", "C"), ("1", 7, "CAT", "CT"), ("1", 9, "I", "D"), ("1", 11, "A", "C,G")]
    sites += [("1", 13, "N", "<DEL:40>"), ("1", 15, "T", "G")]
    genotypes = [[0, 1, -1], [2, 1, 0], [1, 1, 1], [1, 1, 1], [0, 2, 1], [1, 0, 0]]
    write_plink(tmp_path / "in", sites, genotypes)
    counts = DecodeCounts()
    stream = stream_plink(tmp_path / "in", counts, CallFilters(classes=CLASSES[1:]), _chunk_bytes=2)
    assert read_sites(stream) == [
        (5, "A", "C", [0, 1, -1]),
        (7, "CA", "C", [2, 1, 0]),
        (13, "N", "<DEL:40>", [0, 2, 1]),
        (15, "T", "G", [1, 0, 0]),
    ]
    assert (counts.indel, counts.multiallelic, counts.opened["indels_read"]) == (1, 1, 1)


def test_repeats_of_trimmed_alleles_are_dropped(tmp_path):
    """Trimming moves a site behind its neighbour, and makes two spellings one site."""
    body = [("5", "CAAT", "CAAG"), ("5", "CA", "C"), ("6", "A", "T"), ("8", "T", "G")]
    body += [("9", "GTT", "GT"), ("9", "GT", "G"), ("9", "GT", "GTT")]
    lines = (f"1\t{p}\t.\t{r}\t{a}\t.\t.\t.\tGT\t0/1\t1/1\n" for p, r, a in body)
    (tmp_path / "in.vcf").write_text(HEADER + "a\tb\n" + "".join(lines))
    filters = CallFilters(classes=("indel",))
    counts = ingest_cohort(tmp_path / "in.vcf", tmp_path / "raw", filters=filters)
    bim = read_bim(tmp_path / "raw")
    assert list(zip(bim.pos, bim.ref, bim.alt, strict=True)) == [
        (8, "T", "G"),
        (5, "CA", "C"),
        (6, "A", "T"),
        (9, "GT", "G"),
        (9, "G", "GT"),
    ]
    assert (counts.duplicates, counts.sites) == (2, 5)
    assert (unpack_bed(open_bed(tmp_path / "raw", n_samples=2)[:], 2) == [1, 2]).all()


def table(*sites: tuple[int, str, str]) -> pd.DataFrame:
    return pd.DataFrame([("1", *site) for site in sites], columns=["chrom", "pos", "ref", "alt"])


def test_long_alleles_match_exactly():
    """None is turned: not a swapped one, not one of another strand; a SNP beside them is."""
    panel = table(
        (5, "A", "C"), (5, "A", "AT"), (7, "GA", "G"), (9, "C", "CT"), (11, "N", "<DEL:5>"),
        (13, "A", "G"), (15, "TA", "T"), (15, "T", "."),
    )  # fmt: skip
    own = table(
        (5, "A", "AT"), (5, "c", "a"), (7, "G", "GA"), (9, "G", "GA"), (11, "N", "<DEL:6>"),
        (13, "A", "AG"), (15, "ta", "t"), (15, "TA", "T"),
    )  # fmt: skip
    found = match(own, panel)
    assert found.row.tolist() == [1, 0, -1, -1, -1, -1, 6, -1]
    assert found.swapped.tolist() == [True, *[False] * 7]
    assert found.listed.all() and not found.flipped.any() and not found.completed.any()
    assert find_repeated(SitePositions(), own).tolist() == [*[False] * 7, True]
    assert found.positions == 1  # a SNP of two known alleles in both


def test_indels_are_compared_with_the_genome(tmp_path):
    """All bases of REF must be the genome's; nothing of an indel is turned."""
    (tmp_path / "genome.fa").write_text(">chr1\nAACCGTACGT\n")
    body = [
        ("2", "A", "AG"),
        ("3", "CC", "C"),
        ("3", "CG", "C"),
        ("5", "T", "G"),
        ("9", "GTA", "G"),
    ]
    body += [("4", "G", "GA"), ("6", "T", "<DEL>"), ("7", "A", "A[2:1["), ("8", "A", "C[1:1[,*")]
    lines = (f"1\t{p}\t.\t{r}\t{a}\t.\t.\tEND=9\tGT\t0/1\t1/1\n" for p, r, a in body)
    (tmp_path / "in.vcf").write_text(HEADER + "a\tb\n" + "".join(lines))
    counts = ingest_cohort(
        tmp_path / "in.vcf",
        tmp_path / "raw",
        filters=CallFilters(classes=CLASSES[1:]),
        fasta=tmp_path / "genome.fa",
    )
    bim = read_bim(tmp_path / "raw")
    assert list(zip(bim.pos, bim.ref, bim.alt, strict=True)) == [
        (2, "A", "AG"),
        (3, "CC", "C"),
        (5, "G", "T"),
        (6, "N", "<DEL:3>"),
    ]
    genotypes = unpack_bed(open_bed(tmp_path / "raw", n_samples=2)[:], 2)
    assert genotypes.tolist() == [[1, 2], [1, 2], [1, 0], [1, 2]]
    assert (counts.sites, counts.duplicates) == (4, 0)
    said = " ".join(counts.remarks)
    assert "3 do not have its base and were dropped" in said  # not the structural variant
    assert "1 records with breakends" in said and "1 records with several ALT give no site" in said


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_pgen_indels(tmp_path):
    pytest.importorskip("pgenlib", reason="pip install Pgenlib")
    from popdesic.io.pgen import stream_pgen

    body = [("5", "A", "C", "0/1"), ("7", "CAT", "CT", "1/1"), ("9", "A", "C,GT", "1/2")]
    body += [("11", "A", "ACC", "./."), ("13", "G", "T", "0/0")]
    lines = (f"1\t{p}\t.\t{r}\t{a}\t.\t.\t.\tGT\t{g}\t0/1\n" for p, r, a, g in body)
    (tmp_path / "in.vcf").write_text(HEADER + "a\tb\n" + "".join(lines))
    command = ["plink2", "--vcf", tmp_path / "in.vcf", "--make-pgen", "--out", tmp_path / "in"]
    subprocess.run(command, check=True, capture_output=True)
    counts = DecodeCounts()
    found = read_sites(stream_pgen(tmp_path / "in", counts, CallFilters(classes=CLASSES[1:])))
    assert found == [
        (5, "A", "C", [1, 1]),
        (7, "CA", "C", [2, 1]),
        (11, "A", "ACC", [-1, 1]),
        (13, "G", "T", [0, 1]),
    ]
    assert (counts.multiallelic, counts.opened["indels_read"]) == (1, 2)


def test_the_order_of_classes_means_nothing():
    one, other = (fill_config({"sites": {"classes": c}}) for c in (["snp", "sv"], ["sv", "snp"]))
    assert one == other
